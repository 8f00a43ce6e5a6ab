#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study of a table of PostgreSQL whose variants are tables, against a server of the test's own: every goal, what is
# made again when rows change, and what the report says.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/postgres/server.sh"
serve
. "$srcdir/tests/study/study_lib.sh"
mv data/train/fine/1.png 'data/train/fine/a b.png'
mv data/val/coarse/1.png "data/val/coarse/it's \$1.png"
expect 0 dl2-transcode --quiet copy data "$(at photos)"
table() { study DATASET="$(at photos)" VARIANTS="$(at small)" OUT=results QUALITIES=10 SEEDS=1 ROUNDS=1 "$@"; }
stamp() { sleep 0.05; touch mark; sleep 0.05; }
made() { find results -newer mark -name '*.json' ! -path '*/.make/*' ! -path '*/report/*' ! -path results/study-plan.json | LC_ALL=C sort; }
page=results/report/report.html

expect 0 table
is "$(sql "select count(*) from small_jpeg_10")" 32 "rows of the variant"
is "$(find results/variants -type f)" results/variants/jpeg-10/dl2-variant.json "files of the variant"
grep -q '^16 validation images: by their choice alone' results/.make/detectable.txt || fail "detectable: $(cat results/.make/detectable.txt)"
for name in raw jpeg-10; do
    for file in load/$name.json train/$name/convnet/seed-1/experiment_report.json throughput/convnet/$name/round-1.json; do
        [ -f results/$file ] || fail "no $file"
    done
done
grep -q '"title": ".*photos.*"' results/report/report.json || fail "the report is not called after the table"
# The command makes the same report again: from here, with what its quotes hold.
command=$(made_again $page)
case $command in *"DATASET='$(at photos)'"*"VARIANTS='$(at small)'"*) ;; *) fail "the command: $command" ;; esac
up_to_date "$command JOBS=2"
stamp
expect 0 table
[ -z "$(made)" ] || fail "made again: $(made)"

# ---- The same as from folders
as_from_files raw jpeg-10

# ---- The other goals
expect 0 table matrix study-regimens study-bytes study-loading REGIMENS=jpeg-10:1,raw:1 WORKERS=1 CACHES=100
is "$(grep '"name"' results/train/raw/convnet/seed-1/evaluation/evaluation_report.json |
    sed 's/.*: "//; s/".*//' | paste -sd ' ')" "photos-convnet-seed-1 photos jpeg-10" "evaluated on"
[ -f results/loading/memory/jobs-1/load/raw/round-1.json ] || fail "loading from tables is not measured"

# ---- Rows that change: nothing else is a reason to make things again
sql "update photos set (image, sum) = (select image, sum from photos where key = 'train/fine/2') where key = 'train/fine/3'"
stamp
expect 0 table train
is "$(made | grep -c experiment_report)" 2 "trainings after a row was changed"
is "$(sql "select count(distinct image) from small_jpeg_10 where key in ('train/fine/2', 'train/fine/3')")" 1 "the variant's row"

# ---- Somebody else's table; then a view, whose images the server reads
sql "create table theirs as select number as id, split as fold, label as species, image as jpeg from photos"
sql "create view seen as select * from theirs"
fingerprint() { expect 0 dl2-transcode identify "$1"; sed -n 's/^fingerprint	//p' "$work/out"; }
columns='&key=id&image=jpeg&label=species&split=fold'
for name in theirs seen; do
    first=$(fingerprint "$(at $name)$columns")
    is "$(fingerprint "$(at $name)$columns")" "$first" "the fingerprint of $name"
    sql "update theirs set jpeg = set_byte(jpeg, 40, 255 - get_byte(jpeg, 40)) where id = 5"
    [ "$(fingerprint "$(at $name)$columns")" != "$first" ] || fail "another image of the same size in $name is not seen"
    sql "update theirs set jpeg = set_byte(jpeg, 40, 255 - get_byte(jpeg, 40)) where id = 5"
done
expect 0 study DATASET="$(at theirs)$columns" OUT=theirs QUALITIES=10 SEEDS=1 quality
[ -f theirs/quality/jpeg-10.json ] || fail "no scores of somebody else's table"

# ---- From tables to a folder and back; the tables outlive the study
expect 0 table VARIANTS= variants
[ -f results/variants/jpeg-10/train/fine/3.jpg ] || fail "no variants in a folder"
expect 0 table variants
[ ! -e results/variants/jpeg-10/train ] || fail "images of a variant that is a table"
expect 0 table clean-study
[ ! -e results ] && is "$(sql "select count(*) from small_jpeg_10")" 32 "rows after clean-study"
expect 2 study DATASET="$(at nothing)" OUT=none
said 'there is no table'
exit 0
