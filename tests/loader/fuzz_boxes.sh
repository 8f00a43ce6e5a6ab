#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays COCO's JSON, label files and data.yaml, good and damaged.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
cd "$work" || exit 99
cp "$srcdir/tests/loader/instance_masks.json" corpus/good
for size in 1 2 100 400 401 402 403 2000 9000; do
    head -c $size corpus/good >corpus/cut$size
done
coco() { # NAME ANNOTATIONS IMAGES
    printf '{"annotations":[%s],"categories":[{"id":1}],"images":[%s]}' "$2" "$3" >corpus/"$1"
}
one='{"id":1,"file_name":"a","width":20,"height":10}'
object='"id":1,"image_id":1,"category_id":1,"bbox":[1,2,30,40]'
coco empty '' ''
coco none "{$object}" "$one"
coco points "{$object,\"segmentation\":[[1,1,1,1,1,1],[19.9,9.9,-20,-10,40,20]]}" "$one"
coco far "{$object,\"segmentation\":[[1,1,999999,1,1,999999]]}" "$one"
coco few "{$object,\"segmentation\":[[1,2]]}" "$one"
coco words "{$object,\"segmentation\":[[1,2,3,4,5,\"6\"]]}" "$one"
coco runs "{$object,\"segmentation\":{\"size\":[10,20],\"counts\":[0,200]}}" "$one"
coco other "{$object,\"segmentation\":{\"size\":[20,10],\"counts\":[5,195]}}" "$one"
coco long "{$object,\"segmentation\":{\"size\":[10,20],\"counts\":[5,196]}}" "$one"
coco large "{$object,\"segmentation\":{\"size\":[16777216,16777216],\"counts\":\"ooooooooooooo\"}}" "$one"
coco negative "{$object,\"segmentation\":{\"size\":[10,20],\"counts\":[-5,205]}}" "$one"
coco text "{$object,\"segmentation\":{\"size\":[10,20],\"counts\":\"XQ1\"}}" "$one"
coco side "{$object}" '{"id":1,"file_name":"a","width":16777216,"height":16777215}'
coco giant "{$object}" '{"id":9223372036854775808,"file_name":"a"}'
printf '{"images":[' >corpus/deep
head -c 5000 /dev/zero | tr '\0' '[' >>corpus/deep
printf '{"images":]}' >corpus/bracket
printf '{"images":[1,{}],"annotations":[null,[]],"categories":["x"]}' >corpus/kinds
printf '0 .5 .5 .2 .2\n3 1 1 2 2\n' >corpus/labels
printf '0 .5 .5 nan .2\n' >corpus/nan
printf '1e9 0 0 0 0\n' >corpus/class
printf '0 .5 .5 .2 .2\0\n' >corpus/zero
: >corpus/nothing
printf 'path: ../x\ntrain: ./images/train\nval: [images/val, ../more/]\nnames:\n  0: person\n  17: "two words"\n' >corpus/yaml
printf 'names: &n [a, *n, {b: c}]\ntrain: *n\n' >corpus/alias
printf 'names: {0: a, 0: b, -1: c, x: d}\n' >corpus/twice
printf 'names: ' >corpus/nested
head -c 20000 /dev/zero | tr '\0' '[' >>corpus/nested
head -c 300 "$builddir/dl2-load" >corpus/binary
expect 0 "$builddir/tests/loader/fuzz_boxes" -runs=0 corpus
