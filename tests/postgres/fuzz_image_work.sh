#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays files of every codec, good and damaged, through the work of PostgreSQL's extension.
. "$srcdir/tests/lib.sh"
expect 0 "$builddir/tests/codec/make_corpus" "$work/corpus"
cd "$work" || exit 99
DL2_FUZZ_SECONDS=0.4; export DL2_FUZZ_SECONDS
for folder in corpus/*; do
    case $folder in */exif) continue ;; esac # pieces of files
    "$builddir/tests/postgres/fuzz_image_work" -runs=0 "$folder" || {
        cp fuzz-crash-* crash-* "$builddir/tests/postgres/" 2>/dev/null
        fail "$folder (the input that did it is in $builddir/tests/postgres)"
    }
done
