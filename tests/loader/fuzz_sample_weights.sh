#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays files of weights, good and damaged.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
cd "$work" || exit 99
printf 'a/x 1\na/y 0\nb c/z 1 2.5\n' >corpus/good
printf 'a/x\t1e-300 \r\n\n  \nval/other 7\nb c/z 1 \t 0x1p3\na/y 3' >corpus/forms
printf 'a/x 1\na/x 2\na/y 1\nb c/z 1 1\n' >corpus/twice
printf 'a/x 1\n\0\0 1\na/y\0 1\n' >corpus/zeros
printf 'a/x nan\na/y inf\nb c/z 1 -1\n' >corpus/numbers
printf 'a/x 1\n' >corpus/missing
: >corpus/empty
expect 0 "$builddir/tests/loader/fuzz_sample_weights" -runs=0 corpus
