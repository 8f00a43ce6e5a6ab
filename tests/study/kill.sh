#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study that a signal ends: nothing that it started goes on, programs get one signal to end by, and the next run ends with
# what an undisturbed one has.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need flock util-linux
env --default-signal=INT,HUP,TERM true 2>/dev/null || skip "env has no --default-signal (Debian: coreutils)"
run() { # OUT OPTION...: in the place of this shell, where signals are not ignored, as SIGINT is in the background
    out=$1
    shift
    exec env --default-signal=INT,HUP,TERM dl2-study run --dataset data --out "$out" --codecs jpeg --qualities '10 50' --archs convnet --epochs 1 \
        --seeds '1 2' --image-size 8 --batch 8 --jobs 2 --rounds 1 --measure 0.05 --trainers 1 "$@"
}
(expect 0 run whole) || exit 1
results() { # OUT
    (cd "$1" && grep -hE '"(top1|loss|bytes|psnr_rgb)":' $(find train quality variants -name '*.json' | LC_ALL=C sort))
}
results whole >expected && [ -s expected ] || fail "no results"

# hang PROGRAM SCRIPT: the program, but to check options, says that it has started, and then does this
mkdir programs
hang() {
    rm -rf programs started signals
    mkdir programs
    for program in dl2-transcode dl2-quality dl2-load dl2-train dl2-report; do ln -s "$builddir/$program" programs/; done
    rm "programs/$1"
    cat >"programs/$1" <<END
#!/bin/sh
for word; do case \$word in --list | --help | --version | identify) exec "$builddir/$1" "\$@" ;; esac; done
touch started
$2
END
    chmod +x "programs/$1"
}
# ended SIGNAL STATUS: begins a run, sends it the signal once a program hangs, and waits until nothing is left that holds the lock of
# the run, as all that it starts does.
ended() {
    (run ended --programs "$PWD/programs") >ended.out 2>&1 &
    run=$!
    until [ -e started ]; do
        kill -0 $run 2>/dev/null || { cat ended.out >&2; fail "the study has ended by itself"; }
        sleep 0.05
    done
    kill -$1 $run
    wait $run
    is $? $2 "exit status after SIG$1"
    flock -w 60 ended/.make/at-work true || fail "something goes on after SIG$1"
}
hang dl2-transcode 'exec sleep 1000'
ended KILL 137
hang dl2-quality 'sleep 1000 & sleep 1000' # a script, and what it starts
ended TERM 143
grep -q 'stopped; the same command goes on from here' ended.out || fail "not said: $(cat ended.out)"
! grep -q 'failed:$' ended.out || fail "what was stopped is called failed: $(cat ended.out)"
hang dl2-load 'sleep 1000 & sleep 1000'
ended HUP 129
hang dl2-train 'trap "echo got it >>signals; exit 1" TERM INT HUP; sleep 1000 & while :; do wait; done'
ended INT 130
is "$(cat signals)" "got it" "signals to a training"
(expect 0 run ended) || exit 1
results ended | diff expected - || fail "a study that was stopped ends with other results"
! dl2-study status ended | grep -v 'no run is at work' || fail "a run is at work"
exit 0
