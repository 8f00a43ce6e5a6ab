#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report --group with a column of a table, against a server of the test's own.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
dl2-transcode --list containers | cut -f 1 | grep -qx postgresql || {
    expect 2 dl2-report . --group 'postgresql:///db?table=photos&group=patient'
    said "this build has no libpq"
    skip "this build has no libpq (Debian: libpq-dev)"
}
[ -n "${PYTHON3:-}" ] || skip "Python is not installed: it writes the predictions"
. "$srcdir/tests/postgres/server.sh"
find_server
make_server
start_server
study=$work/study
report() { dl2-report --gnuplot "$work/none" "$study" -o "$work/page.html" "$@"; }
refused() { # STATUS ADDRESS WORDS
    expect "$1" report --group "$2"
    said "$3"
}

# Keys as a dataset has them: a split's name in front, unless the key begins with it.
load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
rows="val/c/1:0:0:1 val/c/2:1:1:1 val/c/3:2:2:1 val/c/4:3:0:1"
for name in raw jpeg-50; do
    for seed in 1 2; do
        val_images=4 predictions=predictions-0.npy training "$study" $name small $seed 0.75
        "$PYTHON3" "$srcdir/tests/report/predictions.py" "$study/train/$name/small/seed-$seed/predictions-0.npy" $rows
    done
done
sql "create table photos (key text, image bytea, split text, patient int, note text);
     insert into photos values ('c/1', '', 'valid', 17, 'a'), ('val/c/2', '', 'val', 17, 'b'),
         ('c/3', '', 'val', 4, 'c'), ('c/4', '', 'val', null, 'd'), ('c/1', '', 'train', 9, 'e'),
         (null, '', 'val', 9, 'f');
     create table flat as select 'val/' || replace(key, 'val/', '') as name, patient as \"Patient no\" from photos where split <> 'train'"
expect 0 report --group "$(at photos)&group=patient"
grep -F "The 4 validation images count as 3 groups ($(at photos)&group=patient)" "$work/out" >&2 || fail "$(cat "$work/out")"
says "$work/out" "1 image without a group is a group of its own. 1 key of the list is of no validation image."
expect 0 report --group "$(at flat)&key=name&group=Patient%20no"
says "$work/out" "count as 3 groups" "1 image without a group is a group of its own."

# What is wrong is said before the study is read, or by the server.
refused 2 "$(at photos)" "which column has the groups? Add &group=COLUMN"
refused 1 "$(at photos)&group=doctor" 'column "doctor" does not exist'
refused 1 "$(at none)&group=patient" "none"
refused 1 "$(at photos)&split=fold&group=patient" 'column "fold" does not exist'
sql "update photos set note = E'a\tb' where patient = 4"
refused 1 "$(at photos)&group=note" 'the row of key val/c/3'
expect 1 dl2-load check "$(at photos)&group=patient"
said "group= has no effect here, only in dl2-report --group"
