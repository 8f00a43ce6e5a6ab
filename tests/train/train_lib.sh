# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the tests of dl2-train, after lib.sh.
cd "$work" || exit 99
make_images() { "$builddir/tests/train/make_images" "$@" || exit 99; }
# The smallest run there is: a net for 8 pixels. Later options win.
smallest="--quiet -j 2 --threads 1 -a convnet --image-size 8 -b 8 -e 3"
run() { dl2-train $smallest "$@"; }
# weights FILE: a checksum of a checkpoint's tensors, without its header (which holds times).
weights() {
    [ -f "$1" ] || fail "there is no checkpoint $1"
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    tail -c +$((header + 9)) "$1" | cksum
}
same() { [ "$(weights "$1")" = "$(weights "$2")" ] || fail "$1 and $2 differ${3:+: $3}"; }
differ() { [ "$(weights "$1")" != "$(weights "$2")" ] || fail "$1 and $2 are the same${3:+: $3}"; }
# field FILE NAME: the first value of a field in a report.
field() { sed -n "s/^ *\"$2\": \"*\([^\",]*\).*/\1/p" "$1" | head -n 1; }
CK=checkpoint.safetensors
REPORT=experiment_report.json
# all_same FOLDER WHAT: every model of the folder, in $models, ended as its own run did, in a folder of its name.
all_same() {
    for model in $models; do
        same $model/$CK "$1/$model/$CK" "$2"
        cmp $model/predictions-0.npy "$1/$model/predictions-0.npy" || fail "$2: other predictions of $model"
        [ "$(field "$1/$model/$REPORT" completed)" = true ] || fail "$2: $model is not completed"
    done
}
# await WHAT COMMAND...: waits until the command succeeds; after five minutes WHAT is the failure.
await() {
    what=$1 tries=0
    shift
    until "$@"; do
        sleep 0.05
        tries=$((tries + 1))
        [ $tries -lt 6000 ] || fail "$what after five minutes"
    done
}
# gone PROCESS: it has ended, whether or not anybody has taken notice.
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
# until_checkpoint FOLDER ERR: waits for the first of a run in the background, whose stderr is ERR.
until_checkpoint() { (await "no checkpoint in $1" test -s "$1/$CK") || { cat "$2" >&2; exit 1; }; }
