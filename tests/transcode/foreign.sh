#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Variants of datasets with boxes, masks and captions, as a program that knows nothing of dl2 reads them.
. "$srcdir/tests/lib.sh"
plainly
need_python PIL python3-pil
for codec in jpeg webp png; do
    dl2-transcode --list codecs | grep -q "^$codec	" || skip "this build lacks codec $codec"
done
foreign() { "$PYTHON3" -B "$srcdir/tests/transcode/foreign.py" "$@"; }
foreign make "$work" || fail "the datasets"
cd "$work" || exit 99
for kind in coco yolo masks captions; do
    expect 0 dl2-transcode -j 1 --quiet --codec jpeg,webp --q 90 --resize-shorter 20,full "$kind" "variants/$kind"
    for side in 20 full; do
        at=@$side && [ $side = 20 ] || at=
        foreign read "variants/$kind/jpeg-90$at" jpg $side || fail "$kind, jpeg-90$at"
        foreign read "variants/$kind/webp-90$at" webp $side || fail "$kind, webp-90$at"
    done
done
# A copy has the names of the variants: of masks, and of images in a list.
expect 0 dl2-transcode --quiet copy masks copied/masks/all
foreign read copied/masks/all png full || fail "a copy of masks"
printf 'path,label,split\npictures/1.png,a,train\npictures/2.png,b,train\npictures/3.png,a,val\n' >list/list.csv
expect 0 dl2-transcode --quiet copy list/list.csv copied/list
expect 0 dl2-transcode --quiet --codec webp --q 90 list/list.csv variants/list
keys() { (cd "$1" && find . -name "*.$2" | sed 's/\.[a-z]*$//' | sort); }
is "$(keys copied/list png)" "$(keys variants/list/webp-90 webp)" "images of a list"
# The test would see boxes that stay behind.
cp coco/annotations/instances.json variants/coco/jpeg-90@20/annotations/instances.json
sed -i 's/\.png/.jpg/g' variants/coco/jpeg-90@20/annotations/instances.json
! foreign read variants/coco/jpeg-90@20 jpg 20 2>/dev/null || fail "boxes of another size are not noticed"
exit 0
