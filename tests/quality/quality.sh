#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-quality from the outside: what it pairs, what it names, what it writes.
. "$srcdir/tests/lib.sh"
make=$builddir/tests/quality/make_image
image() { "$make" "$@" || exit 99; }
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-quality --quiet "$@"
}
# Everything but the times, which are never the same.
figures() { grep -v cpu_seconds "$1"; }

metrics=psnr_rgb,psnr_y,ssim,ms_ssim,psnr_hvs_m,ssimulacra2,ciede2000,ciede2000_p95,input_psnr,input_ssim
if grep -q 'define HAVE_BUTTERAUGLI 1' "$builddir/config.h"; then
    metrics=$metrics,butteraugli_max,butteraugli_3
fi
mkdir -p "$work/ref/a" "$work/ref/b c" "$work/fine/a" "$work/fine/b c" "$work/bad/a" "$work/same" || exit 99
for i in 1 2 3 4 5 6 7 8; do
    image "$work/ref/a/$i.ppm" $((20 + 13 * i)) 40 3 0 0
    image "$work/fine/a/$i.ppm" $((20 + 13 * i)) 40 3 $((3 * i)) 0
done
# Odd names, gray, a gray variant of a color image, smaller than SSIM's window; and a file that is no image.
image "$work/ref/b c/q\"uo,te.v2.ppm" 30 30 3 0 0
image "$work/fine/b c/q\"uo,te.v2.pgm" 30 30 1 5 0
image "$work/ref/b c/-.pgm" 25 35 1 0 0
image "$work/fine/b c/-.pgm" 25 35 1 9 1
image "$work/ref/tiny.ppm" 7 50 3 0 0
image "$work/fine/tiny.ppm" 7 50 3 2 0
echo 'not an image' >"$work/ref/README.txt"

# ---- All is well
run 0 -j 1 --json "$work/1.json" --csv "$work/1.csv" "$work/ref" "$work/fine"
[ ! -s "$work/err" ] || fail "quiet, but: $(cat "$work/err")"
grep -q 'Wang et al. 2004' "$work/out" || fail 'the table does not name its SSIM'
grep -q '1 too small for SSIM' "$work/out" || fail 'the table does not say what has no SSIM'
is "$(wc -l <"$work/1.csv")" 12 'lines of CSV'
grep -q '^fine,"b c/q""uo,te.v2",scored,30,30,' "$work/1.csv" || fail "CSV quotes: $(cat "$work/1.csv")"
grep -q '^fine,tiny,scored,7,50,.*,0,[0-9.]*,[0-9.]*,,'"$(printf '\r')"'$' "$work/1.csv" || fail 'tiny in the CSV'
grep -q '"schema": "dl2-quality/1"' "$work/1.json" || fail 'no schema'
grep -q '"too_small": 1' "$work/1.json" || fail 'too small for SSIM, not counted'

# ---- The chosen metrics and no others; those that nobody chose are as before
image "$work/ref/large.ppm" 200 180 3 0 0
image "$work/fine/large.ppm" 200 180 3 9 0
run 0 --metrics ms_ssim,psnr_y --json "$work/chosen.json" --csv "$work/chosen.csv" "$work/ref" "$work/fine"
is "$(sed -n '1s/.*at_16_bits,\(.*\),error.*/\1/p' "$work/chosen.csv")" psnr_y,ms_ssim 'metrics in the CSV'
is "$(grep -c '"ssim"\|"psnr_rgb"' "$work/chosen.json")" 0 'metrics that were not chosen'
grep -q '11 too small for MS-SSIM' "$work/out" || { cat "$work/out" >&2; fail 'too small for MS-SSIM, not counted'; }
run 0 --metrics all --csv "$work/all.csv" "$work/ref" "$work/fine"
is "$(sed -n '1s/.*at_16_bits,\(.*\),error.*/\1/p' "$work/all.csv")" "$metrics" 'metrics in the CSV'
grep large "$work/all.csv" | grep -q ',0\.[0-9]*,0\.[0-9]*,[0-9.,]*,'"$(printf '\r')"'$' || fail 'no MS-SSIM of a large image'
run 2 --metrics ssim,vmaf "$work/ref" "$work/fine"
said "'vmaf' is not one of $(echo "$metrics" | sed 's/,/, /g'), all, default"

# ---- Bounds: what is worse is listed, and makes the exit status 1
run 0 --csv "$work/bounded.csv" "$work/ref" "$work/fine"
run 1 --below ssim=0.99 "$work/ref" "$work/fine"
awk -F, 'NR > 1 && $(NF - 1) != "" && $(NF - 1) < 0.99 { n++ } END { print n + 0 }' "$work/bounded.csv" >"$work/worse"
is "$(grep -c "^fine$(printf '\t').*$(printf '\t')ssim$(printf '\t')0\." "$work/out")" "$(cat "$work/worse")" 'images below the bound'
[ "$(cat "$work/worse")" -gt 0 ] || fail 'no image is below the bound'
grep -q 'SSIM Y lower than 0.99:' "$work/out" || fail 'the bound is not named'
grep -q 'not judged, too small for SSIM: 1' "$work/out" || fail 'what is too small is not named'
run 0 --below ssim=0 --below ciede2000=100 "$work/ref" "$work/fine"
is "$(grep -c '^no image' "$work/out")" 2 'bounds that hold'
run 1 --below ciede2000=0.001 "$work/ref" "$work/fine"
grep -q 'CIEDE2000 higher than 0.001:' "$work/out" || fail 'the bound of a metric of which lower is better'
run 0 --below psnr_rgb=90 "$work/ref" "$work/ref" # identical images have no PSNR, and nothing is wrong
for wrong in ssim ssim= ssim=x ssim=nan vmaf=1 'ssim=1 '; do run 2 --below "$wrong" "$work/ref" "$work/fine"; done
run 2 --below ssim=1 --below ssim=2 "$work/ref" "$work/fine"
run 2 --below ssim=1 crops --out "$work/crops" --json-dir "$work/json" "$work/ref" "$work/fine"

# ---- As a network gets them: at the size that is asked for, also of a variant whose images were resized
run 0 --metrics default,input_psnr,input_ssim --input-size 48 --json "$work/input.json" "$work/ref" "$work/fine"
grep -q '"input_size": 48' "$work/input.json" || fail 'the size of the inputs is not in the JSON'
grep -q '^inputs  *48x48 pixels' "$work/out" || fail 'the size of the inputs is not in the table'
is "$(grep -c '"input_ssim": 0\.' "$work/input.json")" 12 'images with an SSIM of their inputs, however small'
grep -q '"psnr_y"' "$work/input.json" || fail 'the default metrics are not scored'
run 0 --metrics input_ssim --input-size 8 "$work/ref" "$work/fine"
grep -q '12 with inputs too small for SSIM' "$work/out" || fail 'inputs too small for SSIM, not counted'
run 1 --below input_psnr=90 --input-size 32 "$work/ref" "$work/fine"
run 2 --input-size 32 "$work/ref" "$work/fine"
said '--input-size has no effect without input_psnr or input_ssim'
run 2 --input-size 32 --metrics input_ssim crops --out "$work/crops" --json-dir "$work/json" "$work/ref" "$work/fine"
expect 0 dl2-transcode --quiet --codec ppm --resize-shorter 20,full "$work/ref" "$work/smaller"
run 0 --metrics psnr_rgb,input_psnr --input-size 64 --csv "$work/input.csv" "$work/ref" "$work/smaller/ppm" "$work/smaller/ppm@20"
# Nothing is lost but resolution: by inputs that shows.
awk -F, 'NR > 1 { bad += $(NF - 2) != "" || ($(NF - 1) == "") != ($1 == "ppm" || $2 == "tiny"); n++ } END { exit bad || n != 24 }' \
    "$work/input.csv" || { cat "$work/input.csv" >&2; fail 'inputs of resized images are not compared with the original'; }

# ---- Butteraugli, where the build has it: 0 for the same, growing with the noise, its norm below its maximum
case $metrics in
*butteraugli*)
    for noise in 0 3 12 40; do image "$work/noise-$noise.ppm" 64 48 3 $noise 0; done
    run 0 --metrics butteraugli_max,butteraugli_3 --csv "$work/noise.csv" "$work/noise-0.ppm" "$work/noise-0.ppm" \
        "$work/noise-3.ppm" "$work/noise-12.ppm" "$work/noise-40.ppm"
    grep -q 'intensity target 80' "$work/out" || fail 'the definition does not tell the intensity target'
    awk -F, 'NR > 1 { bad += NR == 2 ? $12 != 0 || $13 != 0 : !($12 > max && $13 > norm && $13 < $12); max = $12; norm = $13; n++ }
        END { exit bad || n != 4 }' "$work/noise.csv" || { cat "$work/noise.csv" >&2; fail 'Butteraugli does not grow with the noise'; }
    # butteraugli_main of libjxl 0.7 on these pairs; where it is installed, what it says here.
    for pair in 3:0.5272285342:0.302688 12:1.9513728619:1.174104 40:6.4074621201:3.848004; do
        tool=$pair noise=${pair%%:*}
        if command -v butteraugli_main >"$work/tool"; then
            butteraugli_main "$work/noise-0.ppm" "$work/noise-$noise.ppm" >"$work/tool" 2>"$work/tool.err" || fail 'butteraugli_main'
            tool=$noise:$(sed -n 1p "$work/tool"):$(sed -n 's/^3-norm: //p' "$work/tool")
        fi
        run 0 --metrics butteraugli_max,butteraugli_3 --csv "$work/pair.csv" "$work/noise-0.ppm" "$work/noise-$noise.ppm"
        awk -F, -v tool="$tool" 'function off(a, b) { return (a - b) ^ 2 > (1e-4 * b) ^ 2 }
            NR > 1 { split(tool, t, ":"); bad = off($12, t[2]) || off($13, t[3]); n++ } END { exit bad || n != 1 }' "$work/pair.csv" ||
            { cat "$work/pair.csv" >&2; fail "butteraugli_main says $tool"; }
    done ;;
esac
rm "$work/ref/large.ppm" "$work/fine/large.ppm"

# ---- A part of the training images
for i in 1 2 3 4; do
    for part in ref/train fine/train ref/val fine/val; do
        mkdir -p "$work/part/$part/a"
        image "$work/part/$part/a/$i.ppm" 30 40 3 $i 0
    done
done
run 0 --subset 25% --subset-by name --csv "$work/part.csv" "$work/part/ref" "$work/part/fine"
is "$(sed 1d "$work/part.csv" | cut -d , -f 2 | paste -sd ' ')" 'train/a/1 val/a/1 val/a/2 val/a/3 val/a/4' 'a subset'
for idle in --subset-by=name --subset-seed=1; do
    run 2 $idle "$work/part/ref" "$work/part/fine"
    said "${idle%=*} needs --subset"
done
run 2 --subset 25% --subset-by name --subset-seed 1 "$work/part/ref" "$work/part/fine"
said 'has no effect with --subset-by name'

# ---- What there is, for scripts
run 0 --list metrics
is "$(cut -f1 "$work/out" | paste -sd ,)" "$metrics" 'names of metrics'
is "$(awk -F '\t' 'NF == 5' "$work/out" | grep -c .)" "$(wc -l <"$work/out")" 'rows of five fields'
run 0 --list devices
is "$(cut -f1 "$work/out" | head -1)" cpu 'the first device'
run 2 --list codecs

# ---- The same figures for any number of jobs
for jobs in 2 7; do
    run 0 -j $jobs --json "$work/$jobs.json" --csv "$work/$jobs.csv" "$work/ref" "$work/fine"
    cmp "$work/1.csv" "$work/$jobs.csv" || fail "-j $jobs makes another CSV"
    figures "$work/1.json" >"$work/x"
    figures "$work/$jobs.json" | cmp - "$work/x" || fail "-j $jobs makes other JSON"
done

# ---- Heat maps: the same scale for all, and what has none is counted
if dl2-transcode --list codecs | grep -q '^png'; then
    run 0 heatmap --out "$work/heat" --limit 10 "$work/ref" "$work/fine" "$work/ref"
    is "$(find "$work/heat" -name '*.png' | wc -l)" 20 'heat maps'
    [ -s "$work/heat/fine/b c/q\"uo,te.v2.png" ] || fail "not named after its key: $(find "$work/heat")"
    grep -q 'Heat maps (ssim): 20 in .*; none of 2 images behind the first 10' "$work/out" || fail 'what has no heat map is not counted'
    # No difference is cividis's first color; all but the flat ones of a variant have others.
    printf 'P6 124 40 255\n' >"$work/none.ppm"
    awk 'BEGIN { for (i = 0; i < 124 * 40; i++) printf "%c%c%c", 1, 34, 78 }' | LC_ALL=C tr '\001' '\000' >>"$work/none.ppm"
    run 0 --metrics psnr_rgb --json "$work/heat.json" "$work/none.ppm" "$work/heat/ref/a/8.png" "$work/heat/fine/a/8.png"
    is "$(grep -c '"lossless": true' "$work/heat.json")" 2 'a heat map without an error'
    run 0 heatmap --out "$work/heat" --of squared "$work/ref" "$work/fine"
    grep -q 'Heat maps (squared): 11 in' "$work/out" || fail 'no heat maps of squared errors'
    run 0 heatmap --out "$work/heat" "$work/ref" "$work/fine"
    grep -q 'none of 1 images that are too small for SSIM' "$work/out" || fail 'too small for a heat map, not counted'
    run 2 heatmap --out "$work/heat" "$work/ref" "$work/fine" "$work/fine/."
fi
for option in --limit=3 --of=ssim; do
    run 2 $option "$work/ref" "$work/fine"
    said "${option%=*} is not an option of the command score, but of heatmap"
done

# ---- Missing, of another size, unreadable, twice there, without a reference
cp -r "$work/fine/a/." "$work/bad/a/" || exit 99
rm "$work/bad/a/1.ppm"
image "$work/bad/a/2.ppm" 5 5 3 0 0
head -c 100 "$work/fine/a/3.ppm" >"$work/bad/a/3.ppm"
: >"$work/bad/a/4.ppm"
image "$work/bad/a/5.pgm" 85 40 1 0 0
image "$work/bad/extra.ppm" 20 20 3 0 0
run 1 --json-dir "$work/json" --csv "$work/bad.csv" "$work/ref" "$work/fine" "$work/bad"
said 'bad: a/1: missing'
said 'bad: tiny: missing'
said 'is 5x5 pixels, its reference 46x40'
said 'bad: a/3: '
said 'bad: a/4: '
said 'differ in their extensions alone'
said 'bad: extra: has no reference'
[ "$(grep -c . "$work/err")" -eq 9 ] || { cat "$work/err" >&2; fail 'not nine lines on stderr'; }
is "$(ls "$work/json" | tr '\n' ' ')" 'bad.json fine.json ' '--json-dir'
for state in 'extra 1' 'failed 3' 'mismatched 1' 'missing 4' 'scored 14'; do
    is "$(grep -c ",${state% *}," "$work/bad.csv")" "${state#* }" "${state% *} in the CSV"
done
figures "$work/json/fine.json" | sed 's/"reference.*//' >"$work/x"
figures "$work/1.json" | sed 's/"reference.*//' | cmp - "$work/x" || fail 'a bad variant changes a good one'

# An unreadable reference is nobody's gap but its own.
head -c 50 "$work/ref/a/8.ppm" >"$work/x" && mv "$work/x" "$work/ref/a/8.ppm"
run 1 "$work/ref" "$work/fine"
said 'fine: a/8: reference: '
is "$(grep -c . "$work/err")" 1 'lines on stderr'

# ---- Identical images
run 0 --json "$work/same.json" "$work/fine" "$work/fine/."
grep -q '11 identical' "$work/out" || { cat "$work/out" >&2; fail 'identical images are not counted'; }
is "$(grep -c '"lossless": true' "$work/same.json")" 13 'lossless images and metrics'
grep -q '"psnr_rgb": null' "$work/same.json" || fail 'PSNR of identical images is not null'
grep -q '"of_mean_mse": null' "$work/same.json" || fail 'PSNR of no error is not null'
grep -Eq '(inf|nan)' "$work/same.json" && fail 'no JSON: inf or nan'

# ---- Files, and what can't be paired
run 0 "$work/ref/a/2.ppm" "$work/fine/a/2.ppm"
run 1 "$work/ref/a/2.ppm" "$work/fine"
said 'is a dataset, the reference a file'
run 1 "$work/ref/a/2.ppm" "$work/fine/a/3.ppm"
run 1 "$work/ref" "$work/nowhere"
said 'nowhere'
mkdir "$work/empty"
run 1 "$work/ref" "$work/empty"
run 1 "$work/empty" "$work/fine"
run 2 "$work/ref"
run 2 --json-dir "$work/json" "$work/fine" "$work/fine" "$work/fine/../fine"
said 'have the same name'
run 2 --background puce "$work/ref" "$work/fine"
run 1 --json "$work/fine" "$work/fine" "$work/fine"
said 'is a folder'
[ ! -s "$work/out" ] || fail 'scored before it looked where to write'
run 0 --json "$work/new/folder/x.json" "$work/fine" "$work/fine"
[ -s "$work/new/folder/x.json" ] || fail 'no file in a new folder'

# ---- Alpha: the background is the one that the variant was made with
if command -v convert >/dev/null 2>&1 && dl2-transcode --version | grep -q '^  png:'; then
    mkdir "$work/alpha"
    convert -size 64x48 gradient:'rgba(255,0,0,1)'-'rgba(0,90,255,0)' "PNG32:$work/alpha/a.png" || exit 99
    for color in 000000 00ff00; do
        expect 0 dl2-transcode --quiet --codec ppm --background "$color" "$work/alpha" "$work/on-$color"
        run 0 --json "$work/alpha.json" "$work/alpha" "$work/on-$color/ppm"
        grep -q '"lossless": true' "$work/alpha.json" || fail "not scored on the background $color"
    done
    run 1 "$work/alpha" "$work/on-000000/ppm" "$work/on-00ff00/ppm"
    said 'have different backgrounds'
    run 0 --json "$work/alpha.json" --background ffffff "$work/alpha" "$work/on-000000/ppm" "$work/on-00ff00/ppm"
    grep -q '"lossless": true' "$work/alpha.json" && fail '--background is not heard'
fi

# ---- More than 8 bits: PSNR and what is identical are of all of them, or the output says that they are not
if command -v convert >/dev/null 2>&1 && dl2-transcode --version | grep -q '^  png:'; then
    cd "$work" || exit 99
    convert -size 40x30 gradient:'#123456789abc'-'#fedc00001234' -depth 16 deep.png || exit 99
    convert deep.png -evaluate add 1 -depth 16 near.png || exit 99
    run 0 --metrics psnr_rgb,ssim --json deep.json deep.png near.png
    grep -q '"psnr_rgb": 96\.3[0-9]*' deep.json || fail 'not 1 of 65535'
    grep -q '"at_16_bits": true' deep.json || fail 'the JSON does not say that 16 bits were compared'
    grep -q '"lossless": true' deep.json && fail 'identical, by 8 of 16 bits'
    grep -q '1 with more than 8 bits: PSNR and what is identical at 16 bits' "$work/out" || fail 'the table does not say at how many bits'
    convert deep.png -alpha set -channel A -evaluate set 43% -depth 16 clear.png || exit 99
    same_at_16_bits() { # A B
        run 0 --background 123456 --json deep.json "$1" "$2"
        grep -q '"at_16_bits": true' deep.json || fail "$2 at 8 bits"
        grep -q '"lossless": true' deep.json || fail "$2 is not $1 at 16 bits"
    }
    same_at_16_bits clear.png clear.png
    convert deep.png -depth 16 deep.ppm || exit 99
    same_at_16_bits deep.png deep.ppm
    for format in tiff:tif jp2:jp2 tiff:tiles.tif; do
        dl2-transcode --version | grep -q "^  ${format%:*}:" || continue
        for image in deep clear; do # tiles of 16 x 16 pixels do not end where the image does
            tiles=; [ "${format#*:}" = tiles.tif ] && tiles='-define tiff:tile-geometry=16x16'
            convert $image.png -depth 16 $tiles "$image.${format#*:}" 2>/dev/null || continue
            same_at_16_bits $image.png "$image.${format#*:}"
        done
    done
    convert deep.png -rotate -90 -orient RightTop -depth 16 turned.tif 2>/dev/null &&
        dl2-transcode --version | grep -q '^  tiff:' && same_at_16_bits deep.png turned.tif
    # An image of 8 bits against one of 16: half a level in 255 is not "identical".
    convert deep.png -depth 8 "PNG24:shallow.png" || exit 99
    run 0 --json deep.json --csv deep.csv deep.png shallow.png
    grep -q '"lossless": true' deep.json && fail 'identical, by 8 of 16 bits'
    is "$(sed -n 2p deep.csv | cut -d , -f 9-11)" '0,1,1' 'lossless, above_8_bits and at_16_bits of the CSV'
    # Resized: the reference is resized at its own depth.
    mkdir -p tall/a && cp deep.png tall/a/
    expect 0 dl2-transcode --quiet --codec png --resize-shorter 20 tall small
    run 0 --metrics psnr_rgb --json deep.json tall small/png@20
    grep -q '"resized": true' deep.json && grep -q '"at_16_bits": true' deep.json || fail 'a resized reference at 8 bits'
    # Planes of a TIFF are not read at 16 bits, and the output says so.
    if dl2-transcode --version | grep -q '^  tiff:' && convert deep.png -interlace Plane -depth 16 planes.tif 2>/dev/null; then
        run 0 --json deep.json planes.tif planes.tif
        grep -q '1 identical to the reference at 8 bits, 1 with more than 8 bits, scored at 8 bits' "$work/out" || fail 'not "at 8 bits"'
        grep -q '"at_16_bits": true' deep.json && fail 'the JSON says that 16 bits were compared'
    fi
    cd "$OLDPWD" || exit 99
fi

# ---- What sizes stand on: bytes that are not the coded image, and files that had lost something before
if [ -n "${PYTHON3:-}" ] && dl2-transcode --list codecs | grep -q '^jpeg'; then
    mkdir -p "$work/stand/ref" && image "$work/stand/ref/a.ppm" 500 300 3 0 0
    set --
    for codec in jpeg webp png avif jp2 jxl; do
        dl2-transcode --list codecs | grep -q "^$codec	" || continue
        options='--q 30,60'
        case $codec in jpeg) options="$options --restart=none" ;; png) options= ;; esac
        expect 0 dl2-transcode --quiet --codec $codec $options "$work/stand/ref" "$work/stand"
        for variant in "$work/stand/$codec" "$work/stand/$codec-30" "$work/stand/$codec-60"; do
            [ -d "$variant" ] && set -- "$@" "$variant"
        done
    done
    expect 0 dl2-transcode --quiet --codec jpeg --q 60 --restart tiles "$work/stand/ref" "$work/stand/tiles"
    if dl2-transcode --list codecs | grep -q '^jxl_lossless	'; then # of a JPEG: a container
        expect 0 dl2-transcode --quiet --codec jxl_lossless "$work/stand/jpeg-60" "$work/stand"
        set -- "$@" "$work/stand/jxl_lossless"
    fi
    run 0 --json "$work/stand.json" "$work/stand/ref" "$work/stand/tiles/jpeg-60" "$@"
    "$PYTHON3" - "$work/stand.json" <<'END' || fail 'header bytes'
import glob, json, re, sys
def of_jpeg(data):
    scan = data.index(b"\xff\xda")
    start = scan + 2 + int.from_bytes(data[scan + 2:scan + 4], "big")
    return start + 2 + 2 * len(re.findall(rb"\xff[\xd0-\xd7]", data[start:]))
def of_png(data):
    at, left = 8, len(data)
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "big")
        left -= length * (data[at + 4:at + 8] == b"IDAT")
        at += 12 + length
    return left
def of_webp(data):
    return 20 + len(data) % 2
def of_jxl(data): # the signature, the size (500x300: 1 + 2 + 9 bits, no ratio, 2 + 9 bits), two flags: all usual
    if data.startswith(b"\xff\x0a"):
        return 2 + (1 + 2 + 9 + 3 + 2 + 9 + 2 + 7) // 8
    at, left = 0, len(data)
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "big") or len(data) - at
        if data[at + 4:at + 8] in (b"jxlc", b"jxlp"):
            left -= length - 8 - 4 * (data[at + 4:at + 8] == b"jxlp")
        at += length
    return left + 2 + (26 + 13 + 7) // 8 # the same size; colors as in the JPEG, not XYB, take 13 bits
known, got = {"jpg": of_jpeg, "png": of_png, "webp": of_webp, "jxl": of_jxl}, {}
for v in json.load(open(sys.argv[1]))["variants"]:
    [file] = [f for f in glob.glob(v["path"] + "/a.*")]
    got["tiles" if "/tiles/" in file else v["variant"]] = v["header_bytes"]
    assert v["header_bytes"] == v["per_image"][0]["header_bytes"]
    extension = file.rsplit(".", 1)[1]
    if extension in known:
        expected = known[extension](open(file, "rb").read())
        assert v["header_bytes"] == expected, (file, v["header_bytes"], expected)
    else: # boxes
        assert 100 < v["header_bytes"] < min(1000, v["bytes"]), (file, v["header_bytes"])
assert got["tiles"] > got["jpeg-60"] + 6, got
for codec in "avif", "jp2":
    assert got.get(codec + "-30") == got.get(codec + "-60"), got
END
    grep -q '"lossy": 0' "$work/stand.json" || fail 'a source of PPM is said to have lost something'
    run 0 --json "$work/stand.json" "$work/stand/jpeg-60" "$work/stand/jpeg-30"
    grep -q '^1 of its files is of a lossy codec already, JPEGs of quality 60 (median; 60 to 60)' "$work/out" || fail 'no generation of loss'
    "$PYTHON3" -c 'import json, sys
files = json.load(open(sys.argv[1]))["reference_files"]
assert files == {"lossy": 1, "of_known_quality": 1, "median_quality": 60, "formats": {"jpeg": 1}}, files' \
        "$work/stand.json" || fail 'how the sources were encoded'
fi

# ---- Crops, chosen by earlier scores
if [ -z "${PYTHON3:-}" ] || ! dl2-transcode --list codecs | grep -q '^png'; then
    echo 'crops are not tested: that takes python3 and a build with PNG'
else
    noise() { # FILE X: 300 x 200 pixels, gray but for 40 x 40 pixels of noise at X, 50
        mkdir -p "${1%/*}"
        awk -v left="$2" 'BEGIN {
            printf "P6\n300 200\n255\n"; srand(1)
            for (y = 0; y < 200; y++) for (x = 0; x < 300; x++) for (c = 0; c < 3; c++)
                printf "%c", (x >= left && x < left + 40 && y >= 50 && y < 90) ? 33 + int(90 * rand()) : 100
        }' >"$1"
    }
    for i in 3 5 7; do
        for set in ref fine; do mkdir -p "$work/look/$set"; cp "$work/$set/a/$i.ppm" "$work/look/$set/"; done
    done
    noise "$work/look/ref/wide.ppm" 400
    noise "$work/look/fine/wide.ppm" 210
    cp -R "$work/look/fine" "$work/look/other"
    run 2 crops --out "$work/crops" "$work/look/ref" "$work/look/fine"
    said 'crops: --json-dir must name the folder of the scores'
    run 1 crops --out "$work/crops" --json-dir "$work/scores" "$work/look/ref" "$work/look/fine"
    run 0 --json-dir "$work/scores" --csv "$work/look.csv" "$work/look/ref" "$work/look/fine" "$work/look/other"
    run 0 crops --out "$work/crops" --json-dir "$work/scores" "$work/look/ref" "$work/look/fine" "$work/look/other"
    # The key that was chosen by METRIC as KIND.
    chosen() {
        "$PYTHON3" -c 'import json, sys
for crop in json.load(open(sys.argv[1]))["crops"]:
    if {"metric": sys.argv[2], "kind": sys.argv[3]} in crop["of"]:
        print(crop["key"], crop["original"], crop["variants"][0]["file"])' "$work/crops/crops.json" "$@"
    }
    is "$(find "$work/crops" -name '*.png' | wc -l)" "$(($(grep -c '"key"' "$work/crops/crops.json") * 3))" 'files of crops'
    # By SSIM, from the lowest: the first of four, the third and the last.
    awk -F, 'NR > 1 && $1 == "fine" { print $(NF - 1), $2 }' "$work/look.csv" | LC_ALL=C sort -g | cut -d ' ' -f 2 >"$work/ranked"
    for place in 1:worst 3:median 4:best; do
        is "$(chosen ssim ${place#*:} | cut -d ' ' -f 1)" "$(sed -n ${place%:*}p "$work/ranked")" "the ${place#*:} image"
    done
    # By a metric of which lower is better, the worst is the highest.
    run 0 --metrics ciede2000 --json-dir "$work/lower" --csv "$work/look.csv" "$work/look/ref" "$work/look/fine"
    grep -q '"max": ' "$work/lower/fine.json" || fail 'no maximum'
    run 0 crops --out "$work/crops" --json-dir "$work/lower" "$work/look/ref" "$work/look/fine"
    awk -F, 'NR > 1 { print $(NF - 1), $2 }' "$work/look.csv" | LC_ALL=C sort -gr | cut -d ' ' -f 2 >"$work/ranked"
    is "$(chosen ciede2000 worst | cut -d ' ' -f 1)" "$(sed -n 1p "$work/ranked")" 'the worst image by CIEDE2000'
    is "$(chosen ciede2000 best | cut -d ' ' -f 1)" "$(sed -n 4p "$work/ranked")" 'the best image by CIEDE2000'
    run 0 crops --out "$work/crops" --json-dir "$work/scores" "$work/look/ref" "$work/look/fine" "$work/look/other"
    # Small images are shown whole, losslessly; of a large one the part that differs most.
    for kind in median worst; do
        read -r key original variant <<KEY
$(chosen ssim $kind)
KEY
        [ "$key" != wide ] || continue
        run 0 --json "$work/same.json" "$work/look/ref/$key.ppm" "$work/crops/$original"
        grep -q '"lossless": true' "$work/same.json" || fail "the original's crop is another image"
        run 0 --json "$work/same.json" "$work/look/fine/$key.ppm" "$work/crops/$variant"
        grep -q '"lossless": true' "$work/same.json" || fail "the variant's crop is another image"
    done
    rm "$work/look"/*/[0-9].ppm
    run 0 --json-dir "$work/scores" "$work/look/ref" "$work/look/fine"
    run 0 crops --out "$work/crops" --json-dir "$work/scores" "$work/look/ref" "$work/look/fine"
    is "$(sed -n 's/.*"\(x\|y\|width\|height\)": \(.*\),/\2/p' "$work/crops/crops.json" | head -4 | tr '\n' ' ')" \
        "128 0 128 128 " 'the window'
    # Scores of images that are gone, and of none: no crops, no failure.
    mv "$work/look/ref/wide.ppm" "$work/look/ref/renamed.ppm"
    run 0 crops --out "$work/crops" --json-dir "$work/scores" "$work/look/ref" "$work/look/fine"
    grep -q '"crops": \[\]' "$work/crops/crops.json" || fail 'crops of an image that is gone'
    run 1 crops --out "$work/crops" --json-dir "$work/scores" "$work/look/ref/renamed.ppm" "$work/look/fine"
    said 'crops are of datasets, not of files'
fi

# ---- On a card: not built, no card here, or the same figures
dl2-quality --quiet --device cuda --json "$work/card.json" "$work/fine/a" "$work/fine/a" >"$work/out" 2>"$work/err"
case $? in
0) grep -q '"scored_on": "cuda"' "$work/card.json" || fail 'the report does not say what scored' ;;
1) said 'cudaGetDeviceCount' ;;
2) said 'there are: auto, cpu' ;;
*) fail "--device cuda: $(cat "$work/err")" ;;
esac
run 2 --device cuda:x "$work/fine/a" "$work/fine/a"
run 0 --device cpu --json "$work/card.json" "$work/fine/a" "$work/fine/a"
grep -q '"scored_on": "cpu"' "$work/card.json" || fail 'the report does not say what scored'

# ---- Names that a file system allows and a terminal, JSON or a file name doesn't
mkdir -p "$work/odd" "$work/odd2" || exit 99
odd=$(printf 'new\nline \033[31m \377')
if cp "$work/fine/a/2.ppm" "$work/odd/$odd.ppm" 2>/dev/null; then
    cp "$work/fine/a/2.ppm" "$work/odd2/x.ppm"
    run 1 --json "$work/odd.json" --csv "$work/odd.csv" "$work/odd" "$work/odd2"
    is "$(grep -c . "$work/err")" 2 'lines on stderr'
    LC_ALL=C grep -q "$(printf '\033')" "$work/err" && fail 'a control character reaches the terminal'
    grep -q 'new\\nline' "$work/odd.json" || fail 'an odd name is not in the JSON'
fi
mkdir "$work/climb" && cp "$work/fine/a/2.ppm" "$work/climb/"
echo '{"schema": "dl2-variant/1", "variant": "../../climbed"}' >"$work/climb/dl2-variant.json"
run 2 --json-dir "$work/json" "$work/fine/a" "$work/climb"
exit 0
