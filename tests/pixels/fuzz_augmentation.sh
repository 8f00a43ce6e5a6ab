#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays texts of augmentations, whole and damaged: every row of the table, with its settings and without, and lists.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
cd "$work" || exit 99
dl2-train --list augmentations | cut -f 1 >rows
number=0
while read -r row; do
    number=$((number + 1))
    printf '%s' "$row" >corpus/row-$number
    printf '%s' "${row%%:*}" >corpus/name-$number
done <rows
[ $number -ge 10 ] || fail "the table has $number rows"
printf 'randaugment:n=2:m=9,erase:p=0.25' >corpus/list
printf 'blur:p=1e999,rotate:degrees=-0x1p3,erase:p=nan' >corpus/numbers
printf 'unknown@none.so:p=1' >corpus/plugin
: >corpus/empty
expect 0 "$builddir/tests/pixels/fuzz_augmentation" -runs=0 corpus
