#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Variants with a quality for each image: every target that is said to be met is met by dl2-quality's scores; JPEG's are the
# lowest qualities that do so; reruns, jobs, copies, misses, refusals.
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
field() { sed -n 's/^  "'"$2"'": \(.*[^,]\),\{0,1\}$/\1/p' "$work/$1/dl2-variant.json"; }
# lines VARIANT: key, bytes, quality, score, probes and met of each image
lines() {
    sed -n 's/^{"key":"\([^"]*\)".*"bytes":\([0-9]*\),"source_bytes.*"quality":\([0-9]*\),"score":\([^,]*\),"probes":\([0-9]*\),"met":\([a-z]*\).*/\1 \2 \3 \4 \5 \6/p' \
        "$work/$1/dl2-variant.jsonl"
}
same_images() { # A B
    diff -r -x 'dl2-*' "$1" "$2" >"$work/diff" || { cat "$work/diff" >&2; fail "$1 and $2 differ"; }
}
"$images" tree "$work/src" 10 || exit 99

# ---- What is met is met, by the program that scores; the record says the same
targets=ssim=0.9,psnr_rgb=30,bytes=2000,bpp=3
for codec in jpeg webp jp2 jxl; do
    has $codec || continue
    run 0 --codec $codec --target $targets "$work/src" "$work/a"
    is "$(ls "$work/a" | grep "^$codec" | tr '\n' ' ')" "$codec-bpp3 $codec-bytes2000 $codec-psnr_rgb30 $codec-ssim0.9 " 'variants'
    for metric in ssim:0.9 psnr_rgb:30; do
        v=$codec-${metric%:*}${metric#*:}
        is "$(lines "a/$v" | wc -l | tr -d ' ')" 10 "lines of $v"
        expect 0 dl2-quality --quiet --metrics "${metric%:*}" --csv "$work/scores" "$work/src" "$work/a/$v"
        tr -d '\r' <"$work/scores" | awk -F , 'NR > 1 { print $2, $12 }' | sort >"$work/scored"
        lines "a/$v" | sort | join - "$work/scored" | awk -v least="${metric#*:}" '
            ($6 == "true") != ($7 >= least) || ($4 - $7) ^ 2 > 1e-10 { print; bad = 1 } END { exit bad || NR != 10 }' || fail "scores of $v"
        is "$(lines "a/$v" | grep -c false)" "$(field "a/$v" missed)" "misses of $v"
    done
    lines "a/$codec-bytes2000" | awk '($6 == "true") != ($2 <= 2000) || $4 != $2 { print; bad = 1 } END { exit bad }' || fail 'bytes'
done
grep -A 8 '"target"' "$work/a/jpeg-ssim0.9/dl2-variant.json" | tr -d ' \n' | grep -q '"target":{"of":"ssim","value":0.9' || fail 'the record'
is "$(field a/jpeg-ssim0.9 quality)" null 'the quality'

# ---- Files are those of their qualities, and JPEG's quality is the lowest that meets a score
run 0 --q 1:100 "$work/src" "$work/all"
lines a/jpeg-ssim0.9 | while read -r key bytes quality rest; do
    cmp "$work/a/jpeg-ssim0.9/$key.jpg" "$work/all/jpeg-$(printf %02d "$quality")/$key.jpg" || fail "$key at $quality"
done || exit 1
# shellcheck disable=SC2046
expect 0 dl2-quality --quiet --metrics ssim --csv "$work/scores" "$work/src" $(ls -d "$work"/all/jpeg-*)
tr -d '\r' <"$work/scores" | awk -F , 'NR > 1 { q = substr($1, 6) + 0; if ($12 >= 0.9 && (!($2 in low) || q < low[$2])) low[$2] = q }
    END { for (key in low) print key, low[key] }' | sort >"$work/lowest"
lines a/jpeg-ssim0.9 | awk '$6 == "true" { print $1, $3 }' | sort >"$work/found"
cmp "$work/lowest" "$work/found" || fail 'not the lowest qualities'
awk '{ print $2 }' "$work/found" | sort -u | wc -l | grep -qv '^ *1$' || fail 'all images have one quality'

# ---- Other codecs' searches end where the next quality, lower for a score and higher for a size, misses the target
for codec in webp jxl; do
    has $codec || continue
    run 0 --codec $codec --never-larger=no --target ssim=0.9,bytes=900 "$work/src" "$work/ends"
    run 0 --codec $codec --never-larger=no --q 1:100 "$work/src" "$work/ends"
    for variant in "$codec"-ssim0.9 "$codec"-bytes900; do
        lines "ends/$variant" | awk '$6 == "true" { print $1, $3 }' >"$work/found"
        [ -s "$work/found" ] || fail "nothing meets $variant"
        while read -r key quality; do
            case $variant in *bytes*) next=$((quality + 1)) ;; *) next=$((quality - 1)) ;; esac
            [ $next -ge 1 ] && [ $next -le 100 ] || continue
            file=$work/ends/$codec-$(printf %02d $next)/$key.$codec
            case $variant in
            *bytes*) [ "$(wc -c <"$file")" -gt 900 ] || fail "$variant: $key takes quality $quality, and $next has no more than 900 bytes" ;;
            *)
                expect 0 dl2-quality --quiet --metrics ssim --csv "$work/next" "$work/src/$key.ppm" "$file"
                tr -d '\r' <"$work/next" | awk -F , 'NR == 2 && $12 < 0.9 { found = 1 } END { exit !found }' ||
                    fail "$variant: $key takes quality $quality, and $next reaches the target" ;;
            esac
        done <"$work/found"
    done
    rm -r "$work/ends"
done
if has webp; then # ended early, which is said
    run 0 --codec webp --target ssim=0.9 --target-tolerance 0.1 "$work/src" "$work/early"
    grep -q 'searches end within a share of 0.1 of the target' "$work/out" || fail 'a tolerance is not told'
    run 0 --codec webp --target ssim=0.9 "$work/src" "$work/early"
    ! grep -q 'searches end' "$work/out" || fail 'a tolerance that is none'
fi

# ---- The same bytes whatever the jobs; a rerun makes nothing; another range makes all again
for jobs in 1 4; do
    expect 0 dl2-transcode --quiet -j $jobs --target $targets "$work/src" "$work/jobs-$jobs"
    for v in jpeg-ssim0.9 jpeg-bytes2000; do same_images "$work/a/$v" "$work/jobs-$jobs/$v"; done
done
if has webp; then # begins at the curve of a sample, which is the same in every run of a source
    run 0 --codec webp --target $targets "$work/src" "$work/jobs-1"
    rm -r "$work/jobs-1/webp-ssim0.9/train"
    run 0 --codec webp --target $targets "$work/src" "$work/jobs-1"
    is "$(made webp-ssim0.9)" 8 'made again'
    same_images "$work/a/webp-ssim0.9" "$work/jobs-1/webp-ssim0.9"
    run 1 --codec webp --target ms_ssim=0.9,ssim=0.9 "$work/src" "$work/beside" # which has no score of such small images
    same_images "$work/a/webp-ssim0.9" "$work/beside/webp-ssim0.9"
fi
run 0 --target ssim=0.9 "$work/src" "$work/a"
is "$(made jpeg-ssim0.9)" 0 'made again'
rm "$work/a/jpeg-ssim0.9/train/rose/0001.jpg"
run 0 --target ssim=0.9 "$work/src" "$work/a"
is "$(made jpeg-ssim0.9)" 1 'made for what was missing'
same_images "$work/a/jpeg-ssim0.9" "$work/jobs-1/jpeg-ssim0.9"
run 0 --target ssim=0.9 --q-range 1:3 "$work/src" "$work/a"
is "$(made jpeg-ssim0.9)" 10 'made with other qualities'
missed=$(field a/jpeg-ssim0.9 missed)
[ "$missed" -gt 0 ] || fail 'nothing misses'
grep -qF "$missed of 10 images miss the target ssim of at least 0.9 at quality 3" "$work/out" || fail 'misses are not told'
lines a/jpeg-ssim0.9 | awk '$3 > 3 { exit 1 }' || fail 'beyond the range'

# ---- Rules, limits and misses
run 0 --codec jpeg --target ssim=0.9 --target-rule nearest "$work/src" "$work/nearest"
lines nearest/jpeg-ssim0.9 | awk '{ print $1 "," $3 }' >"$work/nearest.csv"
tr -d '\r' <"$work/scores" | awk -F , 'NR == FNR { at[$1] = $2; next } FNR > 1 { q = substr($1, 6) + 0
    d = $12 > 0.9 ? log(0.1 / (1 - $12)) : log((1 - $12) / 0.1)
    if (!($2 in best) || d < best[$2]) { best[$2] = d; which[$2] = q } }
    END { for (key in best) { n++; if (which[key] != at[key]) { print key, at[key], which[key]; bad = 1 } } exit bad || n != 10 }' \
    "$work/nearest.csv" - || fail 'not the nearest qualities'
run 0 --codec jpeg --target bytes=2000 --probes 1 "$work/src" "$work/limits"
lines limits/jpeg-bytes2000 | awk '$5 != 1 { exit 1 }' || fail 'more probes than allowed'
grep -q '"probes": 1,\{0,1\}$' "$work/limits/jpeg-bytes2000/dl2-variant.json" || fail 'the limit is not recorded'
run 1 --codec jpeg --target ssim=0.999 --q-range 1:20 --on-miss fail "$work/src" "$work/fails"
said 'no quality that was tried reaches ssim 0.999: 0.'
run 1 --codec jpeg --target ssim=0.999 --q-range 1:20 --on-miss copy "$work/src" "$work/fails"
said 'no quality reaches ssim 0.999, and the source cannot be copied'
run 0 --codec jpeg --target ssim=0.999 --q-range 1:3 --on-miss copy "$work/all/jpeg-95" "$work/copies"
is "$(field copies/jpeg-ssim0.999 copied) $(field copies/jpeg-ssim0.999 missed)" '10 0' 'copies of what misses'
same_images "$work/all/jpeg-95" "$work/copies/jpeg-ssim0.999"

# ---- At a resolution the target is of the resized image; settings, lossless codecs and copies go along
run 0 --codec jpeg:subsampling=444,ppm --target ssim=0.9 --resize-shorter 25 "$work/src" "$work/small"
is "$(ls "$work/small" | tr '\n' ' ')" 'jpeg_444-ssim0.9@25 ppm@25 ' 'variants'
expect 0 dl2-quality --quiet --metrics ssim "$work/src" "$work/small/jpeg_444-ssim0.9@25"
awk '/^jpeg_444/ { found = $11 >= 0.9 } END { exit !found }' "$work/out" || fail 'a score at a resolution'
run 0 --target ssim=0.999 "$work/all/jpeg-20" "$work/again"
copies=$(field again/jpeg-ssim0.999 copied)
[ "$copies" -gt 0 ] || fail 'no file is copied where none smaller meets the target'
is "$(lines again/jpeg-ssim0.999 | awk '$4 == "null" && $6 == "true"' | wc -l | tr -d ' ')" "$copies" 'copies meet the target'

# ---- Images that are too small for the metric fail by name
picture "$work/tiny/x/1.ppm" 5 5 1
run 1 --target ssim=0.9 "$work/tiny" "$work/failed"
said 'x/1.ppm: 5x5 pixels are too few for a target of ssim'

# ---- Refused
for wrong in ssim ssim= ssim=x ssim=1 ssim=0 ssim=-1 ssim=0.9x =0.9 bytes=0 vmaf=90 ssim=0.95, ssim=0.12345678 psnr_rgb=1e5 ssimulacra2=100 ciede2000=0; do
    run 2 --target "$wrong" "$work/src" "$work/refused"
done
run 2 --target vmaf=90 "$work/src" "$work/refused"
said "--target: 'vmaf=90' is not a target and its value, as in ssim=0.95: psnr_rgb"
run 2 --target ssim=0.9 --q 50 "$work/src" "$work/refused"
run 2 --q-range 5:50 "$work/src" "$work/refused"
said '--q-range has no effect without --target'
for option in target-rule=nearest target-tolerance=0.1 probes=3 on-miss=fail; do
    run 2 --q 50 --$option "$work/src" "$work/refused"
    said "--${option%=*} has no effect without --target"
done
run 2 --target ssim=0.9 --probes 3 "$work/src" "$work/refused"
said '--probes has no effect: all qualities are tried'
run 2 --target ssim=0.9 --target-tolerance 0.1 "$work/src" "$work/refused"
said '--target-tolerance has no effect: all qualities are tried'
run 2 --target bytes=9 --on-miss copy "$work/src" "$work/refused"
said '--on-miss copy has no effect on targets of sizes'
run 2 --target ssim=0.9 --on-miss copy --never-larger no "$work/src" "$work/refused"
said '--on-miss copy has no effect with --never-larger=no'
for wrong in 5 , 5:4 0:5 5:50:5 5,7; do
    [ "$wrong" = 5 ] || run 2 --target ssim=0.9 --q-range "$wrong" "$work/src" "$work/refused"
done
run 2 --codec ppm --target ssim=0.9 "$work/src" "$work/refused"
run 2 --codec 'x=true %i %o %q; true %i %o' --target ssim=0.9 "$work/src" "$work/refused"
[ ! -e "$work/refused" ] || fail 'a refused run wrote something'

# ---- By what a network sees, at its size
run 0 --target input_ssim=0.9,ssim=0.9 --input-size 16 "$work/src" "$work/inputs"
grep -q '"input_size": 16' "$work/inputs/jpeg-input_ssim0.9/dl2-variant.json" || fail 'the input size is not recorded'
! grep -q '"input_size"' "$work/inputs/jpeg-ssim0.9/dl2-variant.json" || fail 'an input size of a target without one'
run 2 --target ssim=0.9 --input-size 16 "$work/src" "$work/refused"
said '--input-size has no effect but on --target input_psnr or input_ssim'
exit 0
