#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What lies beside images in tables of PostgreSQL: label files, masks and JSON, there and back, in variants, and as columns
# of tables of others.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
serve
copy() { expect 0 dl2-transcode copy "$@"; }
same() { diff -r -x '.dl2-*' -x 'dl2-variant*' "$1" "$2" >&2 || fail "$3"; }
boxes() { # DATASET: what is said of its boxes, and the digest
    expect 0 dl2-load bench "$1" --boxes txt --image-size 8 -b 4 --split all --digest
    sed -n 's/^digest //p; s/^  boxes  */boxes /p' "$work/out"
}

# ---- There and back
src=$work/src
for part in train val; do
    for i in 1 2 3; do
        picture "$src/$part/rose/$i.ppm" 24 16 "$i" || exit 99
        echo "$i 0.5 0.5 0.25 0.$i" >"$src/$part/rose/$i.txt"
    done
done
: >"$src/train/rose/2.txt" # an image without objects
echo '{"a": 1}' >"$src/train/rose/3.json"
printf '\0\1\2\\x' >"$src/val/rose/1.seg.bin"
copy "$src" "$(at photos)"
! grep -q 'left out' "$work/err" || fail "left out: $(cat "$work/err")"
is "$(sql "select count(*), count(beside), sum(cardinality(beside_data)) from photos")" "6|6|8" "the table"
copy "$(at photos)" "$work/back"
same "$src" "$work/back" "not what was copied"
wanted=$(boxes "$src")
echo "$wanted" | grep -q '^boxes 15 ' || fail "boxes of the folder: $wanted"
is "$(boxes "$(at photos)")" "$wanted" "boxes of the table"
echo '7 0.5 0.5 0.5 0.5' >"$src/train/rose/1.txt"
copy "$src" "$(at photos)"
is "$(sql "select convert_from(beside_data[1], 'UTF8') from photos where key = 'train/rose/1'")" '7 0.5 0.5 0.5 0.5' "a label file that changed"
copy "$src" "$(at photos)"
grep -q '; 0 written' "$work/out" || fail "copied again: $(cat "$work/out")"

# ---- Variants keep it
if dl2-transcode --list codecs | grep -q '^jpeg'; then
    expect 0 dl2-transcode --quiet --q 50 "$(at photos)" "$(at sweep)"
    is "$(sql "select count(*), sum(cardinality(beside)) from sweep_jpeg_50")" "6|8" "a variant's table"
    is "$(boxes "$(at sweep_jpeg_50)" | sed -n '/^boxes/p')" "$(boxes "$src" | sed -n '/^boxes/p')" "boxes of a variant"
fi

# ---- A variant in a table has YOLO's label files, and no file of COCO's, which is said
if dl2-transcode --list codecs | grep -q '^jpeg'; then
    picture "$work/yolo/images/train/1.ppm" 16 12 1
    mkdir -p "$work/yolo/labels/train" && echo '3 0.5 0.5 0.5 0.5' >"$work/yolo/labels/train/1.txt"
    printf '{"images": [{"id": 1, "file_name": "images/train/1.ppm", "width": 16, "height": 12}], "annotations": [], "categories": []}' >"$work/yolo/coco.json"
    expect 0 dl2-transcode --quiet --q 50 --resize-shorter 6 "$work/yolo" "$(at yolo)"
    said "$work/yolo: variants on a server get no files of annotations, such as coco.json"
    is "$(sql "select key, convert_from(beside_data[array_position(beside, 'txt')], 'UTF8') from yolo_jpeg_50_6")" 'images/train/1|3 0.5 0.5 0.5 0.5' 'label files of a table'
fi

# ---- Tables of others: columns that beside= names
sql "create table plain as select key, image, label, split, convert_from(beside_data[array_position(beside, 'txt')], 'UTF8') as txt,
     beside_data[array_position(beside, 'seg.bin')] as \"seg.bin\", 17 as id from photos"
expect 1 dl2-load bench "$(at plain)&beside=label_file" --boxes txt --image-size 8
said 'the table has no column "label_file"; name one by beside=: key, image, label, split, txt, seg.bin, id'
for wrong in a/b .txt txt,,id; do
    expect 1 dl2-load bench "$(at plain)&beside=$wrong" --image-size 8
    said "can be no extension of what lies beside an image"
done
expect 1 dl2-load bench "$(at plain)" --boxes txt --image-size 8 -b 4 --split all --on-bad stop
said "has a label file: there is no 'txt' beside "
is "$(boxes "$(at plain)&beside=txt" | sed -n '/^boxes/p')" "$(boxes "$src" | sed -n '/^boxes/p')" "boxes in a column"
copy "$(at plain)" "$work/plain"
is "$(find "$work/plain" -name '*.txt' ! -name classes.txt)" "" "columns that were not named"
copy "$(at plain)&beside=txt,seg.bin" "$work/plain"
rm "$src/train/rose/3.json"
for dir in "$src" "$work/plain"; do (cd "$dir" && find . -name '*.txt' -o -name '*.bin' | LC_ALL=C sort | xargs cksum) >"$work/sums.${dir##*/}"; done
diff "$work/sums.src" "$work/sums.plain" >&2 || fail "columns copied beside the images"
copy "$(at plain)&beside=txt,id" "$work/numbers"
is "$(cat "$work/numbers/train/rose/2.id")" 17 "a number as a text"
sql "create view seen as select * from plain"
copy "$(at seen)&beside=txt" "$work/seen"
sql "update plain set txt = '9 0.5 0.5 0.1 0.1' where key = 'val/rose/2'"
copy "$(at seen)&beside=txt" "$work/seen"
is "$(cat "$work/seen/val/rose/2.txt")" '9 0.5 0.5 0.1 0.1' "a column of a view that changed"
sql "alter table photos add column txt text default '1 0.5 0.5 0.5 0.5'"
expect 1 dl2-load bench "$(at photos)&beside=txt" --boxes txt --image-size 8 -b 4 --split all --on-bad stop
said "'txt' is there twice beside it"
expect 2 dl2-transcode copy "$src" "$(at photos)&beside=txt"
said 'beside= has no effect on a table that is written'
