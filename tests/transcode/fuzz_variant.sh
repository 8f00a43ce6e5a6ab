#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays a variant's records, good and damaged, through what a rerun reads.
. "$srcdir/tests/lib.sh"
mkdir "$work/source" "$work/corpus"
printf 'P5 2 1 255 ab' >"$work/source/a.ppm"
printf 'P5 1 1 255 a' >"$work/source/b.ppm"
expect 0 dl2-transcode --quiet --codec ppm "$work/source" "$work/made"
{ printf '\000'; cat "$work/made/ppm/dl2-variant.json"; } >"$work/corpus/summary" || fail "no summary"
for kind in 1 2; do
    { printf "\\00$kind"; cat "$work/made/ppm/dl2-variant.jsonl"; } >"$work/corpus/lines-$kind" || fail "no lines"
    # Lines that fit what the target expects, and some that only look so.
    { printf "\\00$kind"; cat <<'L'
{"key": "a", "path": "a.ppm", "source": "a.ppm", "width": 1, "height": 1, "channels": 1, "bytes": 3, "source_bytes": 7, "source_mtime_ns": 11, "encode_cpu_seconds": 0.1, "decode_cpu_seconds": 0.1}
{"key": "b", "path": "b.ppm", "source": "b.ppm", "width": 1, "height": 1, "channels": 1, "bytes": 3, "source_bytes": 7, "source_mtime_ns": 11, "encode_cpu_seconds": 0.1, "decode_cpu_seconds": 0.1}
{"key": "a", "bytes": -3, "source_bytes": 1e300, "width": 99999999999999999999, "channels": []}
[1]
{"key": "a"
L
    } >"$work/corpus/fitting-$kind"
done
DL2_FUZZ_SECONDS=4; export DL2_FUZZ_SECONDS
cd "$work" || exit 99
expect 0 "$builddir/tests/transcode/fuzz_variant" -runs=0 corpus
