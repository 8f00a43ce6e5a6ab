#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Masks by other names than NAME.mask.EXT: they are masks and no samples, keep their values at every resolution, and load as
# masks; images that only look like masks are said.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
run() { expect 0 dl2-transcode -j 2 "$@"; }
# mask FILE: 24x18 pixels of three classes, in blocks
mask() {
    mkdir -p "${1%/*}"
    { printf 'P5\n24 18\n255\n'; awk 'BEGIN { for (i = 0; i < 432; i++) printf "%c", 48 + int(i % 24 / 8 + i / 24 / 6) % 3 }'; } >"$1"
}
values() { tail -c "$2" "$1" | od -An -v -tu1 -w1 | sort -un | tr -d ' ' | tr '\n' ' '; }
keys() { (cd "$1" && find . -type f ! -name 'dl2-*' | sort | sed 's|^./||' | tr '\n' ' '); }

# ---- Every name: IMAGE MASK, and what the variant holds
try() {
    rm -rf "$work/src" "$work/out-dir"
    picture "$work/src/$1.ppm" 24 18 1
    mask "$work/src/$2.pgm"
    run --codec ppm,jpeg --q 50 --resize-shorter 9 "$work/src" "$work/out-dir"
    is "$(keys "$work/out-dir/jpeg-50@9")" "$1.jpg $1.$3.pgm " "the variant of $1 and $2"
    is "$(values "$work/out-dir/jpeg-50@9/$1.$3.pgm" 108)" '48 49 50 ' "classes of $2"
    said "images that are masks of others by their names: 1 (.pgm), such as $2.pgm; they are read"
    if grep -q 'look like masks' "$work/err"; then fail "$2 is one"; fi
    # In a shard they are images, which is said by the same names; a copy of the folder packs them as masks.
    rm -rf "$work/named" && mkdir "$work/named" && (cd "$work/src" && tar -cf "$work/named/0.tar" "$1.ppm" "$2.pgm")
    expect 0 dl2-load check --split all "$work/named"
    said "images that are called like masks of others: 1, such as $2; here they are images"
    run copy --container tar "$work/src" "$work/named/copy"
    rm "$work/named/copy/dl2-index.bin"
    expect 0 dl2-load check --split all --mask "$3.pgm" "$work/named/copy"
    if grep -q 'called like masks' "$work/err"; then fail "$2 of a copy"; fi
    expect 0 dl2-load check --split all --mask "$3.pgm" "$work/src"
    grep -q ': 1 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
    expect 0 dl2-load check --split all --mask "$3.pgm" "$work/out-dir/jpeg-50@9"
    expect 0 dl2-load bench --val --split all --epochs 1 --batch 1 --image-size 8 --mask "$3.pgm" --on-bad stop "$work/src"
}
try train/a/0 train/a/0_mask mask
try a/0 a/0-mask mask
try a/x_0 a/x_0_seg seg
try a/0 a/0_segmentation seg
try images/0 masks/0 mask
try images/train/0 labels/train/0 mask
try train/images/0 train/masks/0_mask mask
try images/training/ADE_0 annotations/training/ADE_0 mask
try JPEGImages/0 SegmentationClass/0 mask
try JPEGImages/0 SegmentationObject/0 seg
try train/Image/0 train/Mask/0 mask

# ---- What is no mask: a photograph, a class by such a name, a mask without its image
rm -rf "$work/src"
picture "$work/src/a/0.ppm" 24 18 1
picture "$work/src/a/1.ppm" 24 18 2
run --q 90 "$work/src" "$work/photos"
mv "$work/photos/jpeg-90/a/1.jpg" "$work/src/a/0_mask.jpg"
picture "$work/src/mask/2.ppm" 24 18 3
picture "$work/src/labels/7.ppm" 24 18 4
picture "$work/src/a/9_mask.ppm" 24 18 4
expect 0 dl2-load check --split all "$work/src"
grep -q ': 6 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
if grep -q 'masks of others' "$work/err"; then fail 'no mask is there'; fi

# ---- Two of a kind: the first counts, and the other is named
rm -rf "$work/src" "$work/out-dir"
picture "$work/src/images/0.ppm" 24 18 1
mask "$work/src/masks/0.pgm"
mask "$work/src/labels/0.pgm"
run --q 50 "$work/src" "$work/out-dir"
said "files left out because they are masks of images that have another one of that kind: 1 (.pgm), such as masks/0.pgm"
is "$(keys "$work/out-dir/jpeg-50")" 'images/0.jpg images/0.mask.pgm ' 'the variant'

# ---- Other names: said where they become photographs, and only there
rm -rf "$work/src" "$work/out-dir"
for n in 0 1 2; do
    picture "$work/src/leftImg8bit/$n.ppm" 48 36 $n
    mask "$work/src/gtFine/${n}_labelIds.pgm"
done
run --q 50 "$work/src" "$work/out-dir"
if grep -q 'look like masks' "$work/err"; then fail 'no image has that size, or so few pixels'; fi
rm -rf "$work/src/gtFine" "$work/out-dir"
for n in 0 1 2; do
    mkdir -p "$work/src/gtFine"
    { printf 'P5\n48 36\n255\n'; head -c 1000 /dev/zero; head -c 728 /dev/zero | tr '\0' '\001'; } >"$work/src/gtFine/${n}_labelIds.pgm"
done
run --q 50 "$work/src" "$work/out-dir"
said "$work/src: 3 images look like masks, with at most 64 colors and the size of another image, such as gtFine/0_labelIds.pgm"
said "masks are called NAME.mask.EXT beside NAME.EXT, or in a folder masks/NAME.EXT for images/NAME.EXT"
run --q 50 "$work/src" "$work/out-dir"
if grep -q 'look like masks' "$work/err"; then fail 'said again where nothing was made'; fi
run --codec ppm "$work/src" "$work/out-dir"
if grep -q 'look like masks' "$work/err"; then fail 'lossless files keep them'; fi
run --codec ppm --resize-shorter 20 "$work/src" "$work/out-dir"
said '3 images look like masks'
rm "$work/src/leftImg8bit"/*
# A piece of sky: 48 colors in small steps.
awk 'BEGIN { for (i = 0; i < 1728; i++) { v = 64 + i % 48; printf "%c%c%c", v, v, v + 15 } }' >"$work/sky"
{ printf 'P6\n48 36\n255\n'; cat "$work/sky"; } >"$work/src/gtFine/sky.ppm"
picture "$work/src/leftImg8bit/0.ppm" 48 36 1
run --q 50 "$work/src" "$work/sky-dir"
said '3 images look like masks'
rm "$work/src/gtFine/sky.ppm" "$work/src/leftImg8bit"/*
run --q 50 "$work/src" "$work/drawings"
if grep -q 'look like masks' "$work/err"; then fail 'drawings alone'; fi
# The same of shards, whose members have no such names.
picture "$work/src/leftImg8bit/0.ppm" 48 36 1
run copy --container tar "$work/src" "$work/shards"
run --q 50 "$work/shards" "$work/of-shards"
said '3 images look like masks'
