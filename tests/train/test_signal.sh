# SPDX-License-Identifier: BSD-2-Clause
# SIGTERM and SIGINT: the step ends, checkpoint and report are written, --resume goes on to the same
# weights. SIGKILL: the last checkpoint is whole.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 24 6 8
# The slow device, and as many epochs as take more than a second here, so that signals meet it at work.
options="-d data --device ref --checkpoint-every 0.5"
begin=$(date +%s%N)
expect 0 run $options -e 2 --out short
took=$((($(date +%s%N) - begin) / 1000000))
epochs=$((2 * 1200 / (took + 1)))
[ $epochs -ge 3 ] || epochs=3
options="$options -e $epochs"
expect 0 run $options --out whole
round=0
stopped=0
for signal in TERM INT KILL TERM KILL; do
    round=$((round + 1))
    touch mark
    # exec, so that the signal meets the program and not a shell around it.
    (exec dl2-train $smallest $options --out killed --resume) >out.$round 2>err.$round &
    pid=$!
    # To a checkpoint of its own; then a little longer each time.
    tries=0
    until [ killed/$CK -nt mark ] || [ $tries -eq 500 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
    sleep 0.0$round
    # Found by its name, too, unless it has ended.
    emulated || case $(cat /proc/$pid/comm 2>/dev/null) in
    '' | *dl2-train) ;;
    *) fail "in ps the program is called $(cat /proc/$pid/comm)" ;;
    esac
    kill -s $signal $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    if [ $signal != KILL ] && [ $status -ne 0 ]; then
        stopped=$((stopped + 1))
        [ $status -eq 1 ] || { cat err.$round >&2; fail "status $status after SIG$signal"; }
        grep -q -e --resume err.$round || fail "no word of how to go on after SIG$signal"
        [ "$(field killed/$REPORT completed)" = false ] || fail "completed after SIG$signal"
    fi
done
[ $stopped -ge 1 ] || fail "no signal met a run at work"
expect 0 run $options --out killed --resume
same whole/$CK killed/$CK "after five signals"
[ "$(grep -c '"compute_seconds"' killed/$REPORT)" = $epochs ] || fail "not $epochs epochs in the report"
