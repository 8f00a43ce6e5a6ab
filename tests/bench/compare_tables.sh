#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a JPEG's own Huffman tables save in bytes and cost in loading, against the standard ones:
#
#     compare_tables.sh PHOTOS [WORK [ROUNDS]]
#
# Recompresses PHOTOS at several qualities and sizes with both kinds of tables, and loads each variant with one worker: both
# kinds by our own decoder and those with tables of their own by libjpeg-turbo, in turns. Prints a table of Markdown: the
# bytes of those with tables of their own as a share of the others', images/s of one core, the best of the rounds, and in
# brackets the median ratio of the rounds.
# WORK keeps what was made (default: a temporary folder). Run it from a build folder.
set -eu
photos=$1 work=${2:-$(mktemp -d)} rounds=${3:-5}
./dl2-transcode --quiet --never-larger=no --codec jpeg:effort=0,jpeg:effort=1 --q 5,25,50,75 --resize-shorter 96,160,full "$photos" "$work" >/dev/null
rate() { # VARIANT OUTPUT
    ./dl2-load bench --quiet --split all -j 1 -e 4 -b 64 --image-size "$2" "$work/$1" | awk '/images\/s a core/ { print $4 }'
}
bytes() { sed -n 's/^  "bytes": \([0-9]*\),$/\1/p' "$work/$1/dl2-variant.json"; }
best() { sort -n "$work/rates-$1" | tail -n 1; }
ratio() { # of a way to standard tables
    paste "$work/rates-$1" "$work/rates-standard" | awk '{ print $1 / $2 }' | sort -n | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }'
}
echo "| side, output | quality | bytes | of standard | standard | own tables | own, libjpeg-turbo |"
echo "|---|---|---|---|---|---|---|"
for size in 96:64 160:128 full:224; do
    side=${size%:*} output=${size#*:} at=@${size%:*}
    [ "$side" != full ] || at=
    for q in 05 25 50 75; do
        standard=jpeg_effort0-$q$at own=jpeg_effort1-$q$at
        rm -f "$work"/rates-*
        round=0
        while [ $((round += 1)) -le "$rounds" ]; do
            rate "$standard" "$output" >>"$work/rates-standard"
            rate "$own" "$output" >>"$work/rates-own"
            DL2_JPEG=libjpeg rate "$own" "$output" >>"$work/rates-libjpeg"
        done
        images=$(sed -n 's/^  "images": \([0-9]*\),$/\1/p' "$work/$own/dl2-variant.json")
        awk -v side="$side, $output" -v q="${q#0}" -v own="$(bytes "$own")" -v standard="$(bytes "$standard")" -v n="$images" \
            -v a="$(best standard)" -v b="$(best own)" -v c="$(best libjpeg)" -v rb="$(ratio own)" -v rc="$(ratio libjpeg)" 'BEGIN {
            printf "| %s | %s | %d | %.1f%% | %d | %d (%.2f) | %d (%.2f) |\n", side, q, own / n, 100 * own / standard, a, b, rb, c, rc }'
    done
done
