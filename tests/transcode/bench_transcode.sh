#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What dl2-transcode costs beyond libjpeg itself: CPU seconds (user and system) of the whole program for a five-quality
# sweep, over those of one decode and five encodes by bare library calls, best of ROUNDS (5) in turn.
#
#     make tests/transcode/bench_transcode && sh .../tests/transcode/bench_transcode.sh FOLDER [SCRATCH [EFFORT]]
#
# in a build folder. FOLDER holds JPEG files. SCRATCH is where variants are written (default: a temporary folder). The bare
# calls make standard Huffman tables, and so does dl2-transcode with EFFORT 0 (default); auto and 1 choose tables.
set -eu
folder=${1:?usage: bench_transcode.sh FOLDER [SCRATCH]}
scratch=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/dl2-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
find -L "$folder" -type f \( -name '*.jpg' -o -name '*.jpeg' \) | sort >"$scratch/list"
[ -s "$scratch/list" ] || { echo "$folder holds no JPEG files" >&2; exit 1; }
# Each round writes to a folder of its own: ext4 is slow to make files just after many were deleted.
round=0
while [ $round -lt "${ROUNDS:-5}" ]; do
    ./tests/transcode/bench_transcode 10 25 50 75 85 <"$scratch/list" >>"$scratch/bare"
    ( ./dl2-transcode --quiet -j 1 --restart=none --effort "${3:-0}" --q 10,25,50,75,85 "$folder" "$scratch/out$round" >"$scratch/table"
      times >"$scratch/times" )
    # The second line of `times` is that of the children.
    sed -n 2p "$scratch/times" | sed 's/[ms]/ /g' | awk '{ print $1 * 60 + $2, $3 * 60 + $4 }' >>"$scratch/ours"
    round=$((round + 1))
done
cat "$scratch/table"
bare=$(sort -n "$scratch/bare" | head -n 1)
ours=$(awk '{ print $1 + $2, $1, $2 }' "$scratch/ours" | sort -n | head -n 1)
echo "$bare $ours" | awk '{ printf "bare library calls %.3f s, dl2-transcode %.3f s (user %.3f, system %.3f) for %d images: ratio %.3f\n",
    $1, $4, $5, $6, $2, $4 / $1 }'
