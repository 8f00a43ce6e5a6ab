#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Settings of encoders: each combination is a variant of its own, by its name and its record; those without effect are refused.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
LC_ALL=C; export LC_ALL
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
images=$builddir/tests/transcode/images
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 "$@"
}
has() { dl2-transcode --list codecs | grep -q "^$1	"; }
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
bytes() { awk -v v="$1" '$1 == v { print $4 }' "$work/out"; }
settings() { sed -n '/"settings"/,/}/p' "$work/a/$1/dl2-variant.json" | tr -d ' \n,'; }
same_images() { # A B
    diff -r -x 'dl2-*' "$1" "$2" >"$work/diff" || { cat "$work/diff" >&2; fail "$1 and $2 differ"; }
}
"$images" tree "$work/src" 8 || exit 99

# ---- Names are of the settings that are not the usual ones, in one order; the same settings twice are one variant
run 0 --codec jpeg,jpeg:effort=1,jpeg:subsampling=444:effort=1,jpeg:effort=1:subsampling=444,jpeg:restart=none,jpeg:subsampling=420 \
    --q 5,50 "$work/src" "$work/a"
is "$(ls "$work/a" | tr '\n' ' ')" \
    'jpeg-05 jpeg-50 jpeg_effort1-05 jpeg_effort1-50 jpeg_effort1_444-05 jpeg_effort1_444-50 jpeg_restartnone-05 jpeg_restartnone-50 ' \
    'variants'
grep -q '"variant": "jpeg_effort1_444-50"' "$work/a/jpeg_effort1_444-50/dl2-variant.json" || fail 'the name'
grep -q '"codec": "jpeg"' "$work/a/jpeg_effort1_444-50/dl2-variant.json" || fail 'the codec'
# What options for all codecs make is the same, under the codec's name.
run 0 --effort 1 --subsampling 444 --q 50 "$work/src" "$work/b"
same_images "$work/a/jpeg_effort1_444-50" "$work/b/jpeg-50"
run 2 --restart none --codec jpeg,jpeg:restart=tiles --q 50 "$work/src" "$work/c"
said 'would both be written there'
run 0 --codec jpeg:effort=1,jpeg --q 50 "$work/src" "$work/a"
is "$(made jpeg_effort1-50) $(made jpeg-50)" '0 0' 'made again'
run 0 --codec jpeg:effort=auto:subsampling=420 --q 50 "$work/src" "$work/a" # what is usual, in words
is "$(made jpeg-50)" 0 'made again'
run 0 --effort auto --q 50 "$work/src" "$work/a"
is "$(made jpeg-50)" 0 'made again'
grep -q '"effort": "auto"' "$work/a/jpeg-50/dl2-variant.json" || fail 'auto is not recorded'
run 2 --codec jpeg:effort=auto --effort 1 --q 50 "$work/src" "$work/c"
said '--effort 1 has no effect: --codec gives jpeg an effort everywhere'
run 2 --codec png --effort auto "$work/src" "$work/c"
said '--effort: png takes 0 to 9, not auto'
run 2 --effort 3 "$work/src" "$work/c"
said '--effort: jpeg takes auto or 0 to 2, not 3'
run 2 --codec jpeg:effort=-1 "$work/src" "$work/c"
said 'jpeg: effort takes auto or 0 to 2, not '
# Files are no larger than with either of the two tables.
run 0 --codec jpeg:effort=0,jpeg:effort=1,jpeg --q 5,50 "$work/src" "$work/a"
for q in 05 50; do
    [ "$(bytes jpeg-$q)" -le "$(bytes jpeg_effort0-$q)" ] && [ "$(bytes jpeg-$q)" -le "$(bytes jpeg_effort1-$q)" ] || fail "bytes of auto at $q"
done

# ---- Lists and ranges of qualities
run 0 --q 5:30:10,50,29:31 "$work/src" "$work/ranges"
is "$(ls "$work/ranges" | tr '\n' ' ')" 'jpeg-05 jpeg-15 jpeg-25 jpeg-29 jpeg-30 jpeg-31 jpeg-50 ' 'a range'
for wrong in 5: :5 5:4 5:9:0 5:9:1:1 0:5 5:101 5-9; do run 2 --q "$wrong" "$work/src" "$work/refused"; done
run 2 --q 9:5 "$work/src" "$work/refused"
said '--q: 9:5 is not a range'

# ---- Each codec's own; with one in its place, the quality has no effect
if has webp; then
    run 0 --codec webp,webp:lossless=yes,webp:near_lossless=40,webp:sharp_yuv=yes,webp:filter=0,webp:autofilter=yes --q 30,80 \
        "$work/src" "$work/a"
    is "$(ls "$work/a" | grep webp | tr '\n' ' ')" \
        'webp-30 webp-80 webp_autofilter-30 webp_autofilter-80 webp_filter0-30 webp_filter0-80 webp_lossless webp_near_lossless40 webp_sharp_yuv-30 webp_sharp_yuv-80 ' \
        'variants of webp'
    is "$(settings webp_near_lossless40)" '"settings":{"near_lossless":40}' 'the record'
    is "$(settings webp-30)" '' 'the record of the usual settings'
    grep -q '"quality": null' "$work/a/webp_lossless/dl2-variant.json" || fail 'the quality of a lossless file'
    expect 0 dl2-quality --quiet "$work/src" "$work/a/webp_lossless"
    grep -q '8 identical to the reference' "$work/out" || fail 'lossless files are not identical'
    for v in near_lossless40:webp_lossless sharp_yuv-80:webp-80 filter0-30:webp-30 autofilter-30:webp-30; do
        ! cmp -s "$work/a/webp_${v%:*}/train/rose/0003.webp" "$work/a/${v#*:}/train/rose/0003.webp" || fail "webp_${v%:*} has no effect"
    done
    for wrong in lossless=yes:filter=3 near_lossless=5:sharp_yuv=yes lossless=yes:near_lossless=50 filter=3:autofilter=yes; do
        run 2 --codec "webp:$wrong" "$work/src" "$work/refused"
    done
    said 'webp: filter has no effect: autofilter chooses the strength'
    run 2 --codec webp:lossless=yes --q 50 "$work/src" "$work/refused"
    said '--q: every codec in use is lossless'
fi
if has avif; then
    run 0 --codec avif:effort=0,avif:effort=0:depth=10,avif:depth=12:effort=0,avif:effort=4:tune=psnr,avif:effort=4 --q 30 "$work/src" "$work/a"
    is "$(ls "$work/a" | grep avif | tr '\n' ' ')" \
        'avif-30 avif_effort0-30 avif_effort0_depth10-30 avif_effort0_depth12-30 avif_tunepsnr-30 ' 'variants of avif'
    grep -q '"tune": "ssim"' "$work/a/avif_effort0-30/dl2-variant.json" || fail 'the tune is not recorded'
    run 0 --effort avif=0 --codec avif --q 30 "$work/src" "$work/b"
    same_images "$work/a/avif_effort0-30" "$work/b/avif-30"
    # Depth and tune change the file; pixels are about the same, gray ones too.
    expect 0 dl2-quality --quiet --metrics psnr_rgb --csv "$work/scores" "$work/src" "$work/a/avif_effort0-30" \
        "$work/a/avif_effort0_depth10-30" "$work/a/avif_effort0_depth12-30" "$work/a/avif_tunepsnr-30"
    awk -F , 'NR > 1 && $12 < 22 { print; bad = 1 } END { exit bad }' "$work/scores" || fail 'scores of avif'
    expect 0 dl2-transcode --quiet survey "$work/a/avif_effort0_depth10-30"
    grep '^bits' "$work/out" | grep -q 10 || fail 'the depth'
    ! cmp -s "$work/a/avif_tunepsnr-30/train/rose/0003.avif" "$work/a/avif-30/train/rose/0003.avif" || fail 'tune has no effect'
    run 2 --codec avif:encoder=rav1e:tune=psnr "$work/src" "$work/refused"
fi
if has jp2; then
    run 0 --codec jp2:rate=10 "$work/src" "$work/a"
    is "$(ls "$work/a" | grep jp2)" 'jp2_rate10' 'variants of jp2'
    pixels=$(sed -n 's/.*"pixels": \([0-9]*\).*/\1/p' "$work/a/jp2_rate10/dl2-variant.json")
    [ "$(bytes jp2_rate10)" -lt $((pixels * 3 / 10 + 8 * 150)) ] || fail 'the rate'
fi
if has jxl; then
    run 0 --codec jxl:effort=3:distance=2.5,jxl:distance=1:effort=3 "$work/src" "$work/a"
    [ "$(bytes jxl_effort3_distance2.5)" -lt "$(bytes jxl_effort3_distance1)" ] || fail 'the distance'
    is "$(settings jxl_effort3_distance2.5)" '"settings":{"distance":2.5}' 'the record of a distance'
    # Without the decoder's filter, and at 100, where there is none, as without the setting.
    run 0 --codec jxl,jxl:epf=0,jxl:epf=3 --q 25,100 "$work/src" "$work/a"
    is "$(settings jxl_epf0-25)" '"settings":{"epf":0}' 'the record of a filter'
    for v in jxl-25 jxl_epf3-25; do
        ! cmp -s "$work/a/jxl_epf0-25/train/rose/0003.jxl" "$work/a/$v/train/rose/0003.jxl" || fail "jxl_epf0-25 is $v"
    done
    expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=22 "$work/src" "$work/a/jxl_epf0-25" "$work/a/jxl_epf3-25"
    same_images "$work/a/jxl_epf0-100" "$work/a/jxl-100"
    run 2 --codec jxl:epf=4 --q 25 "$work/src" "$work/refused"
    said "--codec: jxl: epf takes auto or 0 to 3, not '4'"
fi

# ---- JPEG's turn: all of these images are wide
run 0 --codec jpeg:turn=yes --q 50 "$work/src" "$work/a"
is "$(settings jpeg_turn-50)" '"settings":{"turn":"yes"}' 'the record'
expect 0 dl2-transcode --quiet survey "$work/a/jpeg_turn-50"
is "$(grep '^orientation\|^width\|^height' "$work/out" | tr -s ' ')" "width 40 40 44 47 47
height 30 30 34 37 37
orientation 5: 8" 'turned images'
run 0 --codec jpeg:turn=yes --target bpp=3 "$work/src" "$work/a"
run 2 --codec jpeg:turn=yes:restart=none --q 50 "$work/src" "$work/refused"
said "a JPEG's turn=yes has no effect without tiles"
run 2 --codec jpeg:turn=yes --metadata keep --q 50 "$work/src" "$work/refused"
said "can't keep other EXIF or XMP"
# It scores as the upright file does; files that are copied stay as they are.
expect 0 dl2-quality --quiet --metrics psnr_y --csv "$work/scores" "$work/src" "$work/a/jpeg-50" "$work/a/jpeg_turn-50"
awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "psnr_y") c = i } NR > 1 { sum[$1] += $c }
    END { off = (sum["jpeg_turn-50"] - sum["jpeg-50"]) / 8; exit !(sum["jpeg-50"] > 100 && off < 0.5 && off > -0.5) }' "$work/scores" ||
    fail "the turned images' scores: $(cat "$work/scores")"
run 0 --codec jpeg:turn=yes --q 60 "$work/a/jpeg-50" "$work/again"
is "$(awk '$1 == "jpeg_turn-60" { print $7 }' "$work/out")" 8 'copied'

# ---- The list, and what is refused by name
dl2-transcode --list settings | grep -q "^jpeg	subsampling	420, 422 or 444	420	" || fail 'the list'
for wrong in jpeg: jpeg:effort jpeg:effort= jpeg:=1 jpeg:effort=3 jpeg:effort=1:effort=1 jpeg:subsampling=411 jpeg:effort=0.5 jpeg:effort=-1 \
    jpeg:effort=1,nosuch:effort=1 ppm:effort=1 jpeg::effort=1 jpeg:effort=1: jpeg:effort=2:restart=tiles; do
    run 2 --codec "$wrong" "$work/src" "$work/refused"
done
run 2 --codec jpeg:speed=4 "$work/src" "$work/refused"
said "--codec: jpeg has no setting 'speed': effort, subsampling, restart"
run 2 --codec jpeg:effort=9 "$work/src" "$work/refused"
said "--codec: jpeg: effort takes auto or 0 to 2, not '9'"
run 2 --codec jpeg:effort=1 --effort 0 "$work/src" "$work/refused"
said '--effort 0 has no effect'
run 2 --codec jpeg:subsampling=444 --subsampling 422 "$work/src" "$work/refused"
run 2 --codec jpeg:restart=none --restart tiles "$work/src" "$work/refused"
[ ! -e "$work/refused" ] || fail 'a refused run wrote something'
exit 0
