#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# SIGKILL at any moment leaves no half-written file under a final name, and a rerun ends with the same bytes as an
# undisturbed run. Half of the rounds start on variants made with other options, whose files are overwritten.
# In memory where that can be had: many files are made and removed, at which disks are slow.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
seconds=${KILL_SECONDS:-12}
"$builddir/tests/transcode/images" tree "$work/src" 500 || exit 99
transcode() { # DEST OPTIONS...
    dest=$1
    shift
    dl2-transcode --quiet -j 2 --codec jpeg,ppm --q 50,90 --resize-shorter 32,full "$@" "$work/src" "$dest"
}
now() { date +%s%N; }
start=$(now)
transcode "$work/good" >"$work/out" || fail 'an undisturbed run'
again=$(now)
transcode "$work/timed" >"$work/out" || fail 'an undisturbed run'
took=$((($(now) - again) / 1000)) # microseconds
transcode "$work/other" --effort 1 >"$work/out" || fail 'a run with other options'

# Every image there must be whole: the bytes of one of the undisturbed runs.
check_whole() {
    diff -rq -x 'dl2-variant.json*' -x '.dl2-*' -x '.*.dl2-tmp' "$1" "$work/good" | grep -v "^Only in $work/good" |
        sed -n 's/^Files \(.*\) and .* differ$/\1/p; t; s/^/unexpected: /p' | while read -r file; do
        cmp -s "$file" "$work/other/${file#"$1/"}" || echo "$file"
    done >"$work/broken"
    [ ! -s "$work/broken" ] || { cat "$work/broken" >&2; fail 'half-written files after SIGKILL'; }
    for file in "$1"/*/dl2-variant.json; do
        [ ! -e "$file" ] || tail -c 2 "$file" | grep -q '}' || fail "$file is cut"
    done
    for file in "$1"/*/dl2-variant.jsonl; do
        [ ! -e "$file" ] || [ "$(grep -vc '^{.*}$' "$file")" -eq 0 ] || fail "$file is cut"
    done
}

# A kill between a run's last two steps: all is done, but the journal is still there. The random kills below hit that
# moment once in a thousand.
cp -Rp "$work/good" "$work/late"
cp "$work/late/jpeg-50/dl2-variant.jsonl" "$work/late/jpeg-50/.dl2-variant.journal"
transcode "$work/late" >"$work/out" || fail 'a run that has nothing to do'
diff -r "$work/good" "$work/late" || fail 'a journal without a run is left over'

# Where a sanitizer makes one round longer than that, a few more are needed until a kill has left something done.
kills=0 saved=0 round=0
while [ $round -lt 40 ] && { [ $((($(now) - start) / 1000000000)) -lt "$seconds" ] ||
    { [ $round -lt 8 ] && { [ "$kills" -lt 2 ] || [ "$saved" -eq 0 ]; }; }; }; do
    rm -rf "$work/victim"
    [ $((round % 2)) -eq 0 ] || cp -Rp "$work/other" "$work/victim"
    for attempt in 1 2 3; do
        dl2-transcode --quiet -j 2 --codec jpeg,ppm --q 50,90 --resize-shorter 32,full "$work/src" "$work/victim" >/dev/null 2>&1 &
        pid=$!
        # Any moment of a run; what is left to do gets less with every attempt, so the last may come too late.
        delay=$(awk -v seed="$((round * 3 + attempt))" -v took="$took" \
            'BEGIN { srand(seed); rand(); printf "%.6f", rand() * took / 1e6 }')
        sleep "$delay"
        kill -9 $pid 2>/dev/null && kills=$((kills + 1))
        wait $pid 2>/dev/null
        [ ! -d "$work/victim" ] || check_whole "$work/victim"
    done
    transcode "$work/victim" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail 'the rerun'; }
    awk 'NR > 1 && $3 < $2 { found = 1 } END { exit !found }' "$work/out" && saved=$((saved + 1))
    diff -r -x 'dl2-variant.json*' "$work/good" "$work/victim" || fail 'the rerun ends with other bytes'
    grep -L '"complete": true' "$work"/victim/*/dl2-variant.json | grep . && fail 'not complete'
    [ -z "$(find "$work/victim" -name '*.dl2-tmp' -o -name '*journal*')" ] || fail 'something is left over'
    round=$((round + 1))
done
echo "$kills kills in $round rounds; $saved reruns found work done"
[ "$kills" -ge 2 ] || fail 'too few kills to tell anything'
[ "$saved" -ge 1 ] || fail 'no rerun found anything done: a killed run saves nothing'
