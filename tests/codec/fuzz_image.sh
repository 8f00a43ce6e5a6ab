#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays files of every codec, good and damaged, through the decoders.
. "$srcdir/tests/lib.sh"
expect 0 "$builddir/tests/codec/make_corpus" "$work/corpus"
cd "$work" || exit 99
DL2_FUZZ_SECONDS=4; export DL2_FUZZ_SECONDS
for folder in corpus/*; do
    targets=fuzz_image
    [ "$folder" = corpus/exif ] && targets=fuzz_exif
    [ "$folder" = corpus/jpeg_tiles ] && targets="fuzz_jpeg_tiles fuzz_jpeg"
    for target in $targets; do
        "$builddir/tests/codec/$target" -runs=0 "$folder" || {
            cp fuzz-crash-* crash-* "$builddir/tests/codec/" 2>/dev/null
            fail "$folder (the input that did it is in $builddir/tests/codec)"
        }
    done
done
