#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# study-loading: every cell of storage, workers and cache, what they say, and that none is made twice.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
loading() { study QUALITIES=10 study-loading CACHES='0 25 100' "$@"; }
# field FILE NAME: the last epoch's.
last() { sed -n "s/^ *\"$2\": \([0-9]*\).*/\1/p" "$1" | tail -n 1; }
expect 0 loading
for name in raw jpeg-10; do
    for cell in memory/jobs-1 memory/jobs-2 disk/jobs-1 disk/jobs-2; do
        for file in load convnet; do
            for round in 1 2; do
                [ -f results/loading/$cell/$file/$name/round-$round.json ] || fail "no round $round of $cell/$file/$name"
            done
        done
        want=${cell#*-}
        is "$(sed -n 's/^  "workers": \([0-9]*\),$/\1/p' results/loading/$cell/load/$name/round-1.json)" "$want" workers
        is "$(sed -n 's/^ *"jobs": \([0-9]*\).*/\1/p' results/loading/$cell/convnet/$name/round-1.json)" "$want" jobs
    done
    for cold in load/$name/round-1.json convnet/$name/round-2.json; do
        grep -q '"cold": true' results/loading/disk/jobs-2/$cold || fail "$cold is not cold"
        grep -q '"cold": false' results/loading/memory/jobs-2/$cold || fail "$cold is cold in memory"
    done
    [ ! -e results/loading/cache-25/jobs-2/load/$name/round-2.json ] || fail "a cache is measured more than once"
done
[ ! -e results/train ] || fail "study-loading trains for accuracy"
# The second epoch reads from the disk what the cache does not keep: all, about half, nothing.
bytes=$(find data/train -name '*.png' -exec cat {} + | wc -c)
is "$(last results/loading/cache-0/jobs-2/load/raw/round-1.json bytes_read)" "$bytes" "read without a cache"
is "$(last results/loading/cache-100/jobs-2/load/raw/round-1.json bytes_read)" 0 "read with a cache for all"
half=$(last results/loading/cache-25/jobs-2/load/raw/round-1.json bytes_read)
[ "$half" -lt "$bytes" ] || fail "a cache saves nothing: $half of $bytes"
is "$(last results/loading/cache-25/jobs-2/load/jpeg-10/round-1.json bytes_read)" 0 "jpeg-10 fits where the original doesn't"
grep -q '"heading": "Loading, by storage"' results/report/report.json || fail "the report says nothing of it"
for plot in loading-memory loading-disk-alone loading-memory-alone; do
    [ -s results/report/plots/$plot.dat ] || fail "no $plot"
done

# Nothing twice; what was interrupted goes on; another number of workers is measured with the others.
touch mark
expect 0 loading
[ -z "$(find results/loading -newer mark -type f)" ] || fail "measured again"
rm results/loading/.made results/loading/disk/jobs-1/load/raw/round-2.json
expect 0 loading
is "$(find results/loading -newer mark -name '*.json')" results/loading/disk/jobs-1/load/raw/round-2.json "what was missing"
expect 0 loading WORKERS=2 STORAGES=memory CACHES=25
[ ! -e results/loading/disk ] && [ -f results/loading/memory/jobs-2/load/raw/round-1.json ] || fail "STORAGES and WORKERS"
grep -q "WORKERS=2 STORAGES=memory" results/report/report.html || fail "the command that makes it again is another"

# A copy elsewhere, and memory for the process and its page cache together.
limited=
sh "$srcdir/study/memory-limit.sh" 64000000 true -- true 2>"$work/why" && limited='memory=1G memory=1G,cache=1M'
[ -n "$limited" ] || echo "memory is not limited: $(cat "$work/why")"
expect 0 loading WORKERS=2 STORAGES="$work/elsewhere $limited" CACHES=25 ROUNDS=1
elsewhere=results/loading/$(echo "${work#/}/elsewhere" | tr / -)
for name in raw jpeg-10; do
    [ -d "$work/elsewhere/$name/train" ] || fail "no copy of $name"
    grep -q "\"$work/elsewhere/$name\"" "$elsewhere/jobs-2/load/$name/round-1.json" || fail "$name was not loaded from its copy"
    grep -q '"cold": true' "$elsewhere/jobs-2/convnet/$name/round-1.json" || fail "the copy of $name is not cold"
    for cell in ${limited:+memory-1G memory-1G-cache-1M}; do
        [ -f results/loading/$cell/jobs-2/convnet/$name/round-1.json ] || fail "no $cell of $name"
    done
done
[ -z "$limited" ] || is "$(sed -n 's/^ *"cache_bytes": \([0-9]*\),$/\1/p' results/loading/memory-1G-cache-1M/jobs-2/load/raw/round-1.json)" 1048576 "cache="
if [ -n "$limited" ]; then
    expect 1 loading WORKERS=2 STORAGES=memory=1M
    said 'bytes of memory are too few for it'
fi
exit 0
