#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Two processes that share a transcoding against one process with two threads, in turns, so that all see the same machine:
#
#     share_transcode.sh SOURCE [ROUNDS [CODECS [PROCESSES]]]
#
# Ways: one process, ranks (--ranks), parts (--part, all at once), each with PROCESSES (2) threads in all, to a folder
# and to tar. Prints for each way the median over ROUNDS (5) of wall and processor seconds, and one process' median
# divided by it: the efficiency. On a machine that others use too, trust the processor time.
# Run it where dl2-transcode is on the PATH.
set -eu
source=$1 rounds=${2:-5} codecs=${3:-jpeg,webp} processes=${4:-2}
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
out=$(mktemp -d "${TMPDIR:-/tmp}/share.XXXXXX"); trap 'rm -rf "$out"' EXIT
# run WAY CONTAINER COMMAND...
run() {
    way=$1-$2
    shift 2
    rm -rf "$out/variants"
    "${PYTHON3:-python3}" -c '
import resource, subprocess, sys, time
start = time.time()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.time() - start, used.ru_utime + used.ru_stime)' "$@" >>"$out/$way"
}
for round in $(seq "$rounds"); do
    for container in folder tar; do
        command="dl2-transcode --quiet --codec $codecs --q 50 --container $container"
        run one $container $command -j "$processes" "$source" "$out/variants"
        run ranks $container $command -j 1 --ranks "$processes" "$source" "$out/variants"
        run parts $container sh -c "for i in \$(seq $processes); do $command -j 1 --part \$i/$processes '$source' '$out/variants' & done; wait"
    done
done
median() { cut -d ' ' -f "$2" "$1" | sort -n | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
printf '%-14s %8s %8s %10s %10s\n' way wall cpu wall-eff. cpu-eff.
for container in folder tar; do
    wall=$(median "$out/one-$container" 1) cpu=$(median "$out/one-$container" 2)
    for way in one ranks parts; do
        own="$out/$way-$container"
        echo "$(median "$own" 1) $(median "$own" 2) $wall $cpu" |
            awk -v way="$way, $container" '{ printf "%-14s %8.2f %8.2f %9.1f%% %9.1f%%\n", way, $1, $2, 100 * $3 / $1, 100 * $4 / $2 }'
    done
done
