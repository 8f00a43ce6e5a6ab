#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study that is killed: nothing that it started goes on, and the next one ends with what an undisturbed one has.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need pgrep procps
set -- QUALITIES='10 50' TRAINERS=1
expect 0 study OUT=whole "$@"
results() { # OUT
    (cd "$1" && grep -hE '"(top1|loss|bytes|psnr_rgb)":' $(find train quality variants -name '*.json' | LC_ALL=C sort))
}
results whole >expected && [ -s expected ] || fail "no results"
killed=0
for after in 0.3 0.8 1.6; do
    study OUT=killed "$@" >killed.out 2>&1 &
    make=$!
    sleep $after
    run=$(pgrep -P $(pgrep -P $make -x make) -x dl2-study)
    [ -z "$run" ] || { kill -KILL $run && killed=$((killed + 1)); }
    wait $make 2>/dev/null
    for try in $(seq 100); do
        pgrep -f "dl2-study do killed" >/dev/null || break
        sleep 0.1
    done
    ! pgrep -f "dl2-study do killed" || fail "a step goes on after a kill"
done
[ $killed -gt 0 ] || fail "each run had ended before it was killed"
expect 0 study OUT=killed "$@"
results killed | diff expected - || fail "a study that was killed ends with other results"
exit 0
