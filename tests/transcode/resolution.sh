#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Resized variants: names, sizes, pixels, what is copied, what lies beside images, reruns, scores; what is refused.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
LC_ALL=C; export LC_ALL
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
images=$builddir/tests/transcode/images
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 "$@"
}
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
copied() { awk -v v="$1" '$1 == v { print $7 }' "$work/out"; }
field() { sed -n 's/^  "'"$2"'": \(.*[^,]\),\{0,1\}$/\1/p' "$work/$1/dl2-variant.json"; }
# number FILE NAME: of a line of dl2-variant.jsonl
number() { sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" "$1"; }
says() { grep -qF -- "$1" "$work/out" || { cat "$work/out" >&2; fail "stdout says nothing of '$1'"; }; }
same_images() { # A B
    diff -r -x 'dl2-*' -x '.dl2-*' "$1" "$2" >"$work/diff" || { cat "$work/diff" >&2; fail "$1 and $2 differ"; }
}

# 40 images of 40x30 to 79x69 pixels.
"$images" tree "$work/src" 40 || exit 99

# ---- Names, sizes, records; each image that is no larger keeps its size, and is counted
run 0 --codec jpeg,ppm --q 5,50 --resize-shorter 35,full --max-side 44 --fit 60x40,44x44 "$work/src" "$work/a"
is "$(ls "$work/a" | tr '\n' ' ')" \
    'jpeg-05 jpeg-05@35 jpeg-05@44x44 jpeg-05@60x40 jpeg-50 jpeg-50@35 jpeg-50@44x44 jpeg-50@60x40 ppm ppm@35 ppm@44x44 ppm@60x40 ' \
    'variants'
is "$(field a/jpeg-50@35 variant)" '"jpeg-50@35"' 'variant'
is "$(grep -A 5 '"resize"' "$work/a/jpeg-50@60x40/dl2-variant.json" | tr -d ' \n')" \
    '"resize":{"fit":[60,40],"filter":"lanczos"' 'the record'
! grep -q resize "$work/a/jpeg-50/dl2-variant.json" || fail 'a full variant has a resize'
# The lines tell both sizes: none is larger than its source or the limit; those that are smaller keep the aspect.
for at in 35:0:0 44x44:44:44 60x40:60:40; do
    awk -v limits="${at#*:}" -v short="${at%%:*}" 'BEGIN { split(limits, limit, ":") } {
        split("width height source_width source_height", names, " ")
        for (n in names) {
            match($0, "\"" names[n] "\":[0-9]+")
            value[names[n]] = substr($0, RSTART + length(names[n]) + 3, RLENGTH - length(names[n]) - 3) + 0
        }
        w = value["width"]; h = value["height"]; sw = value["source_width"]; sh = value["source_height"]
        fits = limit[1] ? sw <= limit[1] && sh <= limit[2] : (sw < sh ? sw : sh) <= short
        if (fits ? w != sw || h != sh : limit[1] ? w > limit[1] || h > limit[2] || w < limit[1] && h < limit[2] : (w < h ? w : h) != short)
            print "size: " $0
        if ((w / sw - h / sh) ^ 2 > (0.5001 / sw) ^ 2 + (0.5001 / sh) ^ 2)
            print "aspect: " $0
        resized += w != sw || h != sh
        pixels += sw * sh
        total += w * h
    } END { print resized, pixels, total }' "$work/a/jpeg-50@${at%%:*}/dl2-variant.jsonl" >"$work/have"
    is "$(cat "$work/have")" "$(field "a/jpeg-50@${at%%:*}" resized) $(field "a/jpeg-50@${at%%:*}" source_pixels) $(field "a/jpeg-50@${at%%:*}" pixels)" "sizes @$at"
done
resized=$(field a/ppm@35 resized)
[ "$resized" -gt 0 ] && [ "$resized" -lt 40 ] || fail "$resized of 40 were resized"
says "$resized images resized (lanczos); $((40 - resized)) that are no larger keep their size"
is "$(field a/ppm source_pixels)" '' 'source_pixels of a full variant'
# Those that keep their size are the full variant's.
sed -n 's/.*"path":"\([^"]*\)".*"width":\([0-9]*\),"height":\([0-9]*\).*"source_width":\2,"source_height":\3[,}].*/\1/p' \
    "$work/a/jpeg-50@35/dl2-variant.jsonl" >"$work/kept"
is "$(wc -l <"$work/kept")" $((40 - resized)) 'images that keep their size'
while read -r path; do cmp "$work/a/jpeg-50/$path" "$work/a/jpeg-50@35/$path" || fail "$path"; done <"$work/kept"

# ---- Pixels are Pillow's; the name has a filter that is not the usual one
run 0 --codec ppm --resize-shorter 20 --filter box "$work/src" "$work/a"
run 0 --codec ppm --resize-shorter 20 --filter bilinear "$work/src" "$work/a"
run 0 --codec ppm --resize-shorter 20 "$work/src" "$work/a"
pillow=
if [ -n "${PYTHON3:-}" ] && "$PYTHON3" -c 'import PIL' 2>/dev/null; then
    pillow=yes
    "$PYTHON3" - "$work/src" "$work/a" >"$work/out" 2>&1 <<'EOF' || { cat "$work/out"; fail 'pixels'; }
import glob, os, sys
from PIL import Image, ImageChops
source, variants = sys.argv[1:]
for filter, name in ("LANCZOS", "ppm@20"), ("BOX", "ppm@20-box"), ("BILINEAR", "ppm@20-bilinear"):
    paths = glob.glob(source + "/**/*.ppm", recursive=True)
    assert len(paths) == 40
    for path in paths:
        made = Image.open(os.path.join(variants, name, os.path.relpath(path, source)))
        wanted = Image.open(path).resize(made.size, Image.Resampling[filter])
        extrema = ImageChops.difference(made, wanted).getextrema()
        most = max(high for low, high in (extrema if made.mode == "RGB" else [extrema]))
        assert min(made.size) == 20 and most <= 1, (path, filter, most)
EOF
fi

# ---- Any number of jobs, and one variant alone, give the same bytes
for jobs in 1 4; do
    expect 0 dl2-transcode --quiet -j $jobs --q 5,50 --resize-shorter 35 "$work/src" "$work/jobs-$jobs"
    for v in jpeg-05@35 jpeg-50@35; do same_images "$work/a/$v" "$work/jobs-$jobs/$v"; done
done

# ---- Reruns: nothing, what is missing, other settings of the same name, strays
run 0 --codec jpeg,ppm --q 5,50 --resize-shorter 35,full --fit 60x40 "$work/src" "$work/a"
is "$(made jpeg-50@35) $(made ppm@60x40) $(made jpeg-50)" '0 0 0' 'made again'
says "$resized images resized"
rm "$work/a/jpeg-50@35/train/rose/0001.jpg"
run 0 --q 50 --resize-shorter 35,full "$work/src" "$work/a"
is "$(made jpeg-50@35) $(made jpeg-50)" '1 0' 'made for what was missing'
sed -i 's/"filter": "lanczos"/"filter": "box"/' "$work/a/jpeg-50@35/dl2-variant.json"
run 0 --q 50 --resize-shorter 35 "$work/src" "$work/a"
is "$(made jpeg-50@35)" 40 'made with other settings'
same_images "$work/a/jpeg-50@35" "$work/jobs-1/jpeg-50@35"
cp "$work/a/jpeg-50@35/train/rose/0001.jpg" "$work/a/jpeg-50@35/train/rose/gone.jpg"
run 0 --q 50 --resize-shorter 35 --prune "$work/src" "$work/a"
[ ! -e "$work/a/jpeg-50@35/train/rose/gone.jpg" ] || fail '--prune left a stray'
same_images "$work/a/jpeg-50@35" "$work/jobs-1/jpeg-50@35"

# ---- A source's file is taken only where its image is not resized
run 0 --q 90 --restart none --resize-shorter 35,full "$work/a/jpeg-50" "$work/taken"
is "$(copied jpeg-90) $(copied jpeg-90@35)" "40 $((40 - resized))" 'copied'
is "$(field taken/jpeg-90@35 copied)" $((40 - resized)) 'copied'
if dl2-transcode --list codecs | grep -q ^jxl_lossless; then
    run 0 --codec jxl_lossless --resize-shorter 20 "$work/a/jpeg-50" "$work/taken"
    run 0 --codec ppm --resize-shorter 20 "$work/a/jpeg-50" "$work/taken"
    run 0 --codec ppm "$work/taken/jxl_lossless@20" "$work/unwrapped"
    same_images "$work/taken/ppm@20" "$work/unwrapped/ppm"
fi

# ---- Upright first: a limit is of the image as it is seen
"$images" special "$work/special" || exit 99
rm "$work/special/cut-short.jpg"
run 0 --codec ppm --fit 16x99 "$work/special" "$work/upright"
is "$("$images" show "$work/upright/ppm@16x99/exif-1.ppm" | cut -d ' ' -f 1-2)" '16 10' 'a wide image'
is "$("$images" show "$work/upright/ppm@16x99/exif-6.ppm" | cut -d ' ' -f 1-2)" '16 26' 'a wide image on its side' # 25.6

# ---- Masks beside images follow, by the nearest pixel; what else lies there stays and is counted
mkdir -p "$work/scenes/x" && rose=$work/scenes/x/1
picture "$rose.ppm" 9 6 1
picture "$work/scenes/x/2.ppm" 4 3 2
picture "$work/scenes/x/2.seg.ppm" 4 3 7
printf '{"box": [1, 2, 3, 4]}' >"$rose.json"
printf 'a rose' >"$rose.txt"
picture "$rose.seg.ppm" 9 6 3
# Numbers of a palette of 4 colors, one of them half transparent: (x + y) % 3.
if [ "$pillow" ]; then
    "$PYTHON3" - "$rose.mask.png" <<'EOF' || exit 99
import sys
from PIL import Image
image = Image.new("P", (9, 6))
image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3])
image.putdata([(x + y) % 3 for y in range(6) for x in range(9)])
image.save(sys.argv[1], bits=2, transparency=b"\0\x80")
EOF
fi
run 0 --codec ppm --resize-shorter 3,full "$work/scenes" "$work/masks"
said "$work/scenes: copied as they are beside resized images: 1 .json, 1 .txt; coordinates in pixels"
cmp "$rose.seg.ppm" "$work/masks/ppm/x/1.seg.ppm" || fail 'a mask of a full variant'
cmp "$rose.json" "$work/masks/ppm@3/x/1.json" || fail 'JSON of a resized variant'
cmp "$work/scenes/x/2.seg.ppm" "$work/masks/ppm@3/x/2.seg.ppm" || fail 'a mask of an image that keeps its size'
is "$("$images" show "$work/masks/ppm@3/x/1.ppm" | cut -d ' ' -f 1-3)" '5 3 3' 'the image' # 4.5
# pixel FILE X Y WIDTH: of a PPM
pixel() { tail -c +"$(($(stat -c %s "$1") - $5 * $4 * 3 + ($3 * $4 + $2) * 3 + 1))" "$1" | head -c 3 | od -An -tx1; }
for x in 0 1 2 3 4; do
    for y in 0 1 2; do # the middles, in the source's pixels: 1.8 x + 0.9 and 2 y + 1
        is "$(pixel "$work/masks/ppm@3/x/1.seg.ppm" $x $y 5 3)" \
            "$(pixel "$rose.seg.ppm" $(((18 * x + 9) / 10)) $((2 * y + 1)) 9 6)" "pixel $x, $y of the mask"
    done
done
if [ "$pillow" ]; then
    "$PYTHON3" - "$work/masks/ppm@3/x/1.mask.png" <<'EOF' || fail 'a mask with a palette'
import sys
from PIL import Image
image = Image.open(sys.argv[1])
assert image.mode == "P" and image.size == (5, 3), image
assert image.getpalette()[:12] == [255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3], image.getpalette()
assert image.info["transparency"][:2] == b"\0\x80", image.info
assert list(image.getdata()) == [((18 * x + 9) // 10 + 2 * y + 1) % 3 for y in range(3) for x in range(5)]
EOF
fi
# The same in shards, whatever they are made by.
run 0 --codec ppm --resize-shorter 3,full --container tar "$work/scenes" "$work/packed"
run 0 copy "$work/packed/ppm@3" "$work/unpacked"
same_images "$work/masks/ppm@3" "$work/unpacked"
is "$(field unpacked variant)" '"ppm@3"' 'the name of a copy'
# A mask that cannot follow fails its image by name, in resized variants alone.
cp "$work/scenes/x/2.seg.ppm" "$rose.seg.ppm"
run 1 --codec ppm --resize-shorter 3,full "$work/scenes" "$work/masks"
said "x/1.ppm: its mask .seg.ppm cannot be resized: it is of 4x3 pixels, its image of 9x6"
is "$(field masks/ppm images) $(field masks/ppm@3 images)" '2 1' 'images'
[ ! -e "$work/masks/ppm@3/x/1.ppm" ] || fail 'an image whose mask does not fit it'

# In shards, too, where it is tried again once the mask is another.
run 1 --codec ppm --resize-shorter 3 --container tar "$work/scenes" "$work/packed"
run 1 --codec ppm --resize-shorter 3 --container tar "$work/scenes" "$work/packed"
is "$(made ppm@3) $(field packed/ppm@3 images)" '0 1' 'a packed variant that lacks an image'
picture "$rose.seg.ppm" 9 6 3
run 0 --codec ppm --resize-shorter 3 --container tar "$work/scenes" "$work/packed"
is "$(made ppm@3) $(field packed/ppm@3 images)" '2 2' 'a packed variant once the mask fits'

# ---- Scores are against the reference, resized alike; other sizes are refused by name
expect 0 dl2-quality --quiet --json "$work/score.json" "$work/src" "$work/a/jpeg-50@35" "$work/a/ppm@60x40" "$work/a/jpeg-50"
says "scored against the reference resized as they are"
grep -q '"resized": '"$resized" "$work/score.json" || fail 'the record of the scores'
expect 0 dl2-quality --quiet --json-dir "$work/scores" "$work/a/ppm@35" "$work/a/jpeg-50@35"
cp "$work/scores/jpeg-50@35.json" "$work/direct"
expect 0 dl2-quality --quiet --json-dir "$work/scores" "$work/src" "$work/a/jpeg-50@35"
scores() { grep -o '"psnr_rgb": [0-9.]*' "$1"; }
is "$(scores "$work/scores/jpeg-50@35.json")" "$(scores "$work/direct")" 'scores against a resized reference'
grep -q 'identical to the reference' "$work/out" && fail 'a lossy variant is identical'
expect 0 dl2-quality --quiet "$work/src" "$work/a/ppm@60x40"
says "40 identical to the reference, $(field a/ppm@60x40 resized) scored against"
mkdir "$work/plain" && cp -R "$work/a/ppm@35/train" "$work/a/ppm@35/val" "$work/plain/" || exit 99
expect 1 dl2-quality --quiet "$work/src" "$work/plain" # nothing says that it is resized
said "pixels, its reference"
sed -i 's/"lanczos"/"cubist"/' "$work/a/ppm@35/dl2-variant.json"
expect 1 dl2-quality --quiet "$work/src" "$work/a/ppm@35"
said 'has a "resize" that is not known here'
expect 0 dl2-quality --quiet --json-dir "$work/scores" "$work/src" "$work/a/jpeg-50" "$work/a/jpeg-50@35"
expect 0 dl2-quality --json-dir "$work/scores" crops --out "$work/crops" "$work/src" "$work/a/jpeg-50" "$work/a/jpeg-50@35"
if [ -n "${PYTHON3:-}" ]; then # resized images are shown enlarged, without scores
    "$PYTHON3" - "$work/crops" <<'PY' || fail 'crops of resized images: see above'
import json, struct, sys
crops = json.load(open(sys.argv[1] + "/crops.json"))
assert crops["left_out"] == [] and crops["crops"], crops
for crop in crops["crops"]:
    full, small = crop["variants"]
    assert (full["variant"], small["variant"]) == ("jpeg-50", "jpeg-50@35"), crop
    assert full["scores"] and not small["scores"], crop
    sizes = [struct.unpack(">II", open(sys.argv[1] + "/" + name, "rb").read(24)[16:])
             for name in (crop["original"], full["file"], small["file"])]
    assert sizes == [(crop["width"], crop["height"])] * 3, sizes
PY
fi
# Without a variant of the original's size no image can be chosen.
expect 0 dl2-quality --json-dir "$work/scores" crops --out "$work/crops" "$work/src" "$work/a/jpeg-50@35"
grep -q '"jpeg-50@35"' "$work/crops/crops.json" || fail 'crops.json does not name what was left out'

# ---- The survey tells the shorter sides
expect 0 dl2-transcode --quiet survey "$work/src" --json "$work/survey.json"
says 'short '
grep -q '"short": {' "$work/survey.json" || fail 'the survey has no shorter sides'

# ---- Refused
for wrong in --resize-shorter=0 --resize-shorter=12x --resize-shorter=65536 --resize-shorter=320x200 --resize-shorter=, --resize-shorter=-1 --resize-shorter=99999999999999999999 --max-side=big \
    --max-side=1x1 --fit=320 --fit=320x --fit=x320 --fit=0x5 --fit=5x0 --fit=5x5x5 --filter=nearest --filter=box \
    '--resize-shorter=full --filter=box' 'copy --resize-shorter=5' 'survey --fit=3x3'; do
    # shellcheck disable=SC2086
    run 2 $wrong "$work/src" "$work/refused"
done
run 2 --resize-shorter 320x200 "$work/src" "$work/refused"
said "--resize-shorter: '320x200' is not a number of pixels from 1 to 65535, nor \"full\""
[ ! -e "$work/refused" ] || fail 'a refused run wrote something'
exit 0
