#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Labels of a field of JSON in tar shards: every program reads them, an index and a copy keep them, and what has none is
# counted and named.
. "$srcdir/tests/lib.sh"
need tar tar
cd "$work" || exit 99
mkdir plain shards
for i in 1 2 3 4 5 6 7 8; do
    picture "plain/$i.ppm" 8 8 $i
    case $((i % 2)) in 0) name=bush ;; *) name=tree ;; esac
    echo "{\"class\": {\"id\": $((i % 2)), \"names\": [\"$name\"]}, \"caption\": \"$i\"}" >"plain/$i.json"
done
echo '{"class": {"id": 0}}' >plain/8.json
(cd plain && tar cf ../shards/train-0.tar ./*) || fail tar
identify() { expect 0 dl2-transcode identify "$@"; grep ^classes "$work/out"; }
is "$(identify shards)" 'classes	0' 'classes without a field'
expect 0 dl2-load check shards
said 'samples with a .json beside them and no .cls: 8, such as 1.json in train-0.tar'
said '--label-field (label_field in Python) names a field'
is "$(identify --label-field class.id shards)" 'classes	2' 'classes by number'
is "$(identify --label-field class.names.0 shards)" 'classes	2' 'classes by name'
expect 0 dl2-load check --label-field class.names.0 shards
said 'no label in the field class.names.0 of .json for 1 of 8: 8: it is missing'
said '1 image is outside every class'
expect 0 dl2-load check --label-field class.id shards
expect 0 dl2-transcode survey --label-field class.id shards

# ---- A copy and variants have the labels; so has an index, for all programs
expect 0 dl2-transcode --quiet copy --container=tar --label-field class.names.0 shards copy
is "$(identify copy)" 'classes	2' 'classes of a copy'
is "$(cat copy/classes.txt copy/train/classes.txt 2>/dev/null)" 'bush
tree' 'names of a copy'
is "$(tar xOf copy/train/shard-000000.tar 1.cls)" 1 'a class of a copy'
expect 0 dl2-transcode --quiet --codec ppm --container=gulp --label-field class.id shards variants
is "$(identify variants/ppm)" 'classes	2' 'classes of variants'
expect 0 dl2-transcode index --label-field class.names.0 shards
said '8: it is missing'
is "$(identify shards)" 'classes	2' 'classes of an index'
expect 0 dl2-load check shards
said '8: it is missing' # as the index says
expect 0 dl2-transcode index shards # the same labels again
is "$(identify shards)" 'classes	2' 'classes of an index that was made again'
expect 0 dl2-quality --quiet --metrics psnr_rgb --label-field class.id --subset 50% shards variants/ppm
touch -d @0 shards/train-0.tar
is "$(identify shards)" 'classes	2' 'classes of an index that is out of date'

# ---- Settings without effect
expect 1 dl2-transcode identify --label-field class.title shards
said 'shards: no sample has a label in the field class.title of its .json: 1: it is missing'
expect 2 dl2-transcode identify --label-field class plain
said "labels come from a field of .json in tar shards alone"
expect 2 dl2-transcode identify --label-field class..id shards
said "is not the path of a field"
expect 2 dl2-transcode index --label-field id variants/ppm
said "the container here is 'gulp'"
expect 1 dl2-quality --quiet --label-field class.id plain plain
said "labels come from a field of .json in tar shards alone"
exit 0
