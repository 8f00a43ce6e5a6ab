#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Very many tiny files through dl2-transcode, from a folder to a folder and to tar:
#
#     many_files.sh [FILES [FOLDER [JOBS]]]
#
# FILES (1000000) images of 16x16 pixels, of 781 bytes each, a thousand a class, are made in FOLDER (a temporary one, which
# is removed; a name of yours stays). Prints for each run: images/s, seconds, processor time, peak memory, and bytes of
# memory a file. "again" is the same command once more, which has nothing to do. With SHARED=yes also two ranks, and the
# rerun after a run that was killed. Run it where dl2-transcode is on the PATH. Needs GNU time and Python (Debian: time, python3).
set -eu
files=${1:-1000000} jobs=${3:-2}
[ -x /usr/bin/time ] || { echo 'needs /usr/bin/time (Debian: time)' >&2; exit 2; }
if [ $# -gt 1 ]; then at=$2; mkdir -p "$at"; else at=$(mktemp -d); trap 'rm -rf "$at"' EXIT; fi
if [ ! -e "$at/made-$files" ]; then
    rm -rf "$at/src" "$at"/made-*
    "${PYTHON3:-python3}" - "$at/src" "$files" <<'MAKE'
import os, random, sys
root, count = sys.argv[1], int(sys.argv[2])
random.seed(1)
header = b"P6\n16 16\n255\n"
blocks = []
for i in range(256):
    r, g, b = (random.randrange(200) for _ in range(3))
    blocks.append(header + bytes(v for y in range(16) for x in range(16) for v in (r + 3 * x, g + 3 * y, b + x + y)))
for first in range(0, count, 1000):
    folder = f"{root}/train/c{first // 1000:04d}"
    os.makedirs(folder)
    for i in range(first, min(first + 1000, count)):
        with open(f"{folder}/{i:07d}.ppm", "wb") as file:
            file.write(blocks[i % 256])
MAKE
    : >"$at/made-$files"
fi
printf '%-24s %9s %9s %9s %9s %10s\n' run images/s seconds cpu MiB bytes/file
# run NAME COMMAND...: its time and memory
run() {
    name=$1
    shift
    /usr/bin/time -o "$at/time" -f '%e %U %S %M' "$@" >/dev/null
    awk -v name="$name" -v n="$files" '{ printf "%-24s %9.0f %9.1f %9.1f %9.0f %10.0f\n", name, n / $1, $1, $2 + $3, $4 / 1024, $4 * 1024 / n }' "$at/time"
}
for container in tar folder; do
    command="dl2-transcode --quiet -j $jobs --codec jpeg --container $container"
    rm -rf "$at/out"
    run "to $container" $command "$at/src" "$at/out"
    run "to $container, again" $command "$at/src" "$at/out"
    [ "${SHARED:-no}" = yes ] || continue
    rm -rf "$at/out"
    run "to $container, 2 ranks" dl2-transcode --quiet -j 1 --codec jpeg --container $container --ranks 2 "$at/src" "$at/out"
    rm -rf "$at/out"
    timeout -s KILL "$(awk -v n="$files" 'BEGIN { print n / 20000 + 1 }')" $command --part 1/1 "$at/src" "$at/out" >/dev/null 2>&1 || true
    ended=$(cat "$at"/out/jpeg-75/.dl2-variant.journal* 2>/dev/null | wc -l)
    run "to $container, $ended done" $command "$at/src" "$at/out"
done
rm -rf "$at/out"
