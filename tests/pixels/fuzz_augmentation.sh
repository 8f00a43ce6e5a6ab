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
printf 'flips,noise:p=1,brightness:p=1,gamma:p=1,blur:p=1,elastic:p=1' >corpus/volumes
printf 'elastic:p=1:voxels=1000:points=16,blur:p=1:sigma-min=10:sigma-max=10' >corpus/far
printf 'unknown@none.so:p=1' >corpus/plugin
: >corpus/empty
expect 0 "$builddir/tests/pixels/fuzz_augmentation" -runs=0 corpus
