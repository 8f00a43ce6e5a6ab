#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays IDX files, good and damaged, through the parser.
. "$srcdir/tests/lib.sh"
need gzip gzip
mkdir "$work/corpus"
pixels='\001\002\003\004\005\006\007\010\011\012\013\014'
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\003'"$pixels" >"$work/images"
printf '\0\0\010\001\0\0\0\005\001\002\003\001\002' >"$work/labels"
# A header that promises four gigabytes.
printf '\0\0\010\003\0\001\0\0\0\001\0\0\0\0\0\001' >"$work/huge"
head -c 5000 /dev/zero >>"$work/huge"
for kind in images labels huge; do
    for type in 0 1; do
        { printf "\\00$type"; cat "$work/$kind"; } >"$work/corpus/$kind-$type"
        { printf "\\00$type"; gzip -c "$work/$kind"; } >"$work/corpus/$kind-$type-gz"
        { printf "\\00$type"; gzip -c "$work/$kind"; gzip -c "$work/$kind"; } >"$work/corpus/$kind-$type-gz2"
    done
done
expect 0 "$builddir/tests/dataset/fuzz_idx" -runs=0 "$work/corpus"
