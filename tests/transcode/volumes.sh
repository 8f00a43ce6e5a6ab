#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Variants of volumes: slices that other libraries decode to the same numbers, exact where they should be; reruns, parts
# and kills as of images; what has no effect on volumes is refused by name.
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JP2 1' "$builddir/config.h" && grep -q 'define HAVE_JXL 1' "$builddir/config.h" ||
    skip "this build lacks JPEG 2000 or JPEG XL"
. "$srcdir/tests/python/module.sh"
need_python numpy python3-numpy
volumes() { expect 0 "$PYTHON3" "$srcdir/tests/transcode/volumes.py" "$1" "$work/vols" "$work/out.d"; }
volumes make
make() { expect 0 dl2-transcode --codec jp2,jxl,jxl_lossless --q 30,90 "$@" "$work/vols" "$work/out.d"; }
make -j 1
grep -q '2 of 7 volumes have values that 16 bits do not hold exactly' "$work/out" || fail "$(cat "$work/out")"
grep -q '"quantized": 2' "$work/out.d/jp2-30/dl2-variant.json" || fail "no word of quantization in the facts"
is "$(grep -c '"quantization_error"' "$work/out.d/jp2-30/dl2-variant.jsonl")" 2 "lines of quantized volumes"
volumes check
expect 0 dl2-quality --json "$work/scores.json" "$work/vols" "$work/out.d/jp2-30" "$work/out.d/jxl_lossless"
grep -q '% of the bytes are headers' "$work/out" || fail "no word of the bytes around the images: $(cat "$work/out")"
grep -q '5 identical to the reference' "$work/out" || fail "lossless variants differ: $(cat "$work/out")"
cmp "$work/vols/train/a/ct.mask.npy" "$work/out.d/jxl-90/train/a/ct.mask.npy" || fail "labels are others"

# The same bytes by several workers and by parts; nothing to do twice; one volume again where its source is another.
expect 0 dl2-transcode --quiet --codec jp2,jxl,jxl_lossless --q 30,90 -j 3 "$work/vols" "$work/three"
for part in 1 2; do
    expect 0 dl2-transcode --quiet --codec jp2,jxl,jxl_lossless --q 30,90 --part $part/2 "$work/vols" "$work/parts"
done
for dest in three parts; do
    diff -r -x 'dl2-variant.json*' -x '.dl2-*' "$work/out.d" "$work/$dest" >/dev/null || fail "$dest: other bytes"
done
make
awk '/^j/ && NF == 8 && $3 != 0 { exit 1 }' "$work/out" || fail "made twice: $(cat "$work/out")"
touch "$work/vols/train/b/flat.npy"
rm "$work/out.d/jp2-30/val/b/wide.slices"
make
awk '/^j/ && NF == 8 && $3 != ($1 == "jp2-30" ? 2 : 1) { exit 1 }' "$work/out" || fail "$(cat "$work/out")"

# A run that is killed leaves whole files alone, and the next one completes it.
for wait in 0.02 0.1 0.2; do
    dl2-transcode --quiet -j 2 --codec jp2,jxl,jxl_lossless --q 30,90 "$work/vols" "$work/killed" >/dev/null 2>&1 &
    pid=$!
    sleep $wait
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    mkdir -p "$work/killed"
    find "$work/killed" -name '*.slices' | while read -r file; do
        cmp -s "$file" "$work/out.d/${file#"$work/killed/"}" || echo "$file"
    done >"$work/broken"
    [ ! -s "$work/broken" ] || fail "half-written: $(cat "$work/broken")"
done
expect 0 dl2-transcode --quiet --codec jp2,jxl,jxl_lossless --q 30,90 "$work/vols" "$work/killed"
diff -r -x 'dl2-variant.json*' -x '.dl2-*' "$work/out.d" "$work/killed" >/dev/null || fail "a killed run: other bytes"

# A volume that is gone is named, and removed on demand.
mkdir "$work/gone" && mv "$work/vols/train/b/far.npy" "$work/vols/train/b/far.mask.npy" "$work/gone"
make
said 'jp2-90/train/b/far.slices: no source image accounts for it'
make --prune
[ ! -e "$work/out.d/jp2-90/train/b/far.slices" ] || fail "--prune has left a volume"
[ ! -e "$work/out.d/jp2-90/train/b/far.mask.npy" ] || fail "--prune has left labels"

# Every epoch has each volume once; one that is damaged is named, as a source, too.
expect 0 dl2-load bench "$work/out.d/jp2-90" --image-size 2x8x8 -e 2 --mask mask.npy --oversample-foreground 0.5
grep -q '^jp2-90: 4 volumes for training' "$work/out" || fail "$(cat "$work/out")"
head -c 4000 "$work/out.d/jp2-90/train/a/ct.slices" >"$work/short" && mv "$work/short" "$work/out.d/jp2-90/train/a/ct.slices"
expect 1 dl2-load bench "$work/out.d/jp2-90" --image-size 2x8x8 -e 1
said 'ct.slices: volume.json: slice '
said 'does not lie in the file'
expect 1 dl2-transcode --codec jp2 "$work/out.d/jp2-90" "$work/again"
said 'ct.slices: volume.json: slice '
said 'does not lie in the file'
is "$(find "$work/again" -name '*.slices' | wc -l)" 5 "variants of a variant"
make --force
cmp -s "$work/out.d/jp2-90/train/a/ct.slices" "$work/three/jp2-90/train/a/ct.slices" || fail "--force has not made it"

# A volume that has a value that is no number fails, and no other.
"$PYTHON3" -c "
import numpy
voxels = numpy.zeros((3, 4, 5), numpy.float32)
voxels[2, 3, 4] = numpy.nan
numpy.save('$work/vols/train/a/nan.npy', voxels)"
expect 1 dl2-transcode --codec jp2 --q 50 "$work/vols" "$work/nan"
said 'nan.npy: it has a voxel that is no finite number'
grep -q 'nan.npy' "$work/nan/jp2-50/dl2-variant.json" || fail "the failure is not noted"
is "$(find "$work/nan" -name '*.slices' | wc -l)" 6 "the other volumes"
expect 1 dl2-transcode --codec jp2 --max-pixels 300 "$work/vols" "$work/few"
said 'ct.npy: slices of 33x41 pixels are more than --max-pixels'

# refused WORDS OPTIONS...
refused() {
    words=$1
    shift
    expect 2 dl2-transcode "$@" "$work/vols" "$work/never"
    said "$words"
    [ ! -e "$work/never" ] || fail "DEST was made: $*"
}
refused 'jpeg is written with 8 bits a sample' --codec jpeg
refused 'webp is written with 8 bits a sample' --codec jp2,webp
refused 'variants of volumes are class folders' --codec jp2 --container tar
for option in '--resize-shorter 20' '--max-side 20' '--fit 20x20' '--target ssim=0.9' '--color drop' '--background 000000' \
    '--never-larger=no'; do
    # shellcheck disable=SC2086
    refused 'has no effect on volumes' --codec jp2 $option
done
