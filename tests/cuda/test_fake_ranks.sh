# SPDX-License-Identifier: BSD-2-Clause
# Several cards, each in a process of its own, with what stands in for CUDA and NCCL (fake_cuda.h): sums beside backward
# and in recordings, batch norm over all cards, and what happens when one is lost.
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_dl2_train
[ -x "$fake" ] || skip "no CUDA toolkit, C++ or cmocka"
"$fake" --version | grep -q NCCL || skip "built without NCCL"
. "$srcdir/tests/train/train_lib.sh"
TMPDIR=$work; export TMPDIR
images=25
slow && images=13
make_images data 3 $images 7 8
small="$smallest -e 2 --seed 3 -d data"
train() { timeout 600 "$fake" $small "$@"; }
DL2_FAKE_CARDS=3; export DL2_FAKE_CARDS

# A world of one card is none.
if ! slow; then
    expect 0 train -b 8 --device cuda --deterministic --mixup 0.2 --out alone
    expect 0 train -b 8 --gpus 1 --deterministic --mixup 0.2 --out one
    same alone/$CK one/$CK "a world of one"
fi
# The same bits, whenever what is queued runs, and with steps done anew rather than replayed.
options="-b 4 --gpus 2 --deterministic --mixup 0.2 --grad-accum 2"
paces="lazy random"
slow && paces=random
for pace in eager $paces; do
    DL2_FAKE_PACE=$pace expect 0 train $options --out $pace
    same eager/$CK $pace/$CK "eager and $pace streams"
done
DL2_CUDA_GRAPHS=off expect 0 train $options --out plain
same eager/$CK plain/$CK "with and without graphs"
DL2_FAKE_RECORDING=call expect 0 train $options --out unrecorded
same eager/$CK unrecorded/$CK "where recording fails"
# However cards are asked for: what starts the ranks must not have asked CUDA for anything.
names="--ranks --gpus"
slow && names=
for name in $names; do
    expect 0 train -b 4 $name 2 --device cuda --deterministic --mixup 0.2 --grad-accum 2 --out named --restart
    same eager/$CK named/$CK "$name 2 --device cuda"
done
expect 0 train $options --out parts --run-epochs 1.4
expect 0 train $options --out parts --resume
same eager/$CK parts/$CK "resumed"

# losses REPORT REPORT: of all epochs, the same but for rounding.
losses() {
    for report; do
        sed -n '/"epochs": \[/,$s/^ *"loss": \([0-9][0-9.e-]*\).*/\1/p' "$report/$REPORT" >"$report.losses"
        [ "$(wc -l <"$report.losses")" -ge 4 ] || fail "no losses in $report"
    done
    paste "$1.losses" "$2.losses" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $2) { print; exit 1 } }' ||
        fail "$1 and $2 have other losses"
}
DL2_FAKE_PACE=lazy expect 0 train -b 4 --gpus 3 --sync-bn --out sync
expect 0 train -b 12 --device cuda --out large
losses sync large
expect 0 train -b 4 --ranks 3 --sync-bn --device ref --out ref
losses sync ref
slow || expect 0 train -b 4 --gpus 2 --amp fp16 --out fp16

# A transformer, by AdamW. (Not at random: a rank may then wait in one sum, in the middle of its calls, for a card that stands still
# while its rank waits in another. A real card goes on.)
if ! slow; then
    make_images few 3 4 16 16
    transformer() { train -d few -a vit_tiny --image-size 16 -b 3 "$@"; }
    DL2_FAKE_PACE=lazy expect 0 transformer --gpus 2 --out vit
    expect 0 transformer --ranks 2 --device ref --out vit.ref
    losses vit vit.ref
fi

# More ranks than cards: told by the rank that has none.
expect 1 train -b 4 --gpus 4 --out none
grep -q 'no card number 3' "$work/err" || fail "the missing card: $(cat "$work/err")"
# A peer that is lost leaves nobody waiting for its card, whether NCCL notices or the launcher.
DL2_FAKE_PACE=lazy DL2_FAKE_NCCL_SUMS=50 expect 1 train -b 4 --gpus 2 -e 50 --out lost
grep -q 'a peer is lost' "$work/err" || fail "a lost peer: $(cat "$work/err")"
# Nor does a card that breaks, whichever.
for run in "0 eager" "1 lazy"; do
    card=${run% *}
    DL2_FAKE_PACE=${run#* } DL2_FAKE_FAULT="$card 150" expect 1 train -b 4 --gpus 2 -e 50 --out broken$card
    grep -q "rank $card: .*device cuda:.*cudaMemcpyAsync" "$work/err" || fail "a broken card: $(cat "$work/err")"
done
(DL2_FAKE_PACE=lazy exec "$fake" $small -b 4 --gpus 3 -e 100000 --out deaths) >out.deaths 2>err.deaths &
pid=$!
until_checkpoint deaths err.deaths
kill -KILL $(cut -d ' ' -f 2 /proc/$pid/task/$pid/children)
wait $pid
[ $? = 1 ] || fail "a killed rank is a success"
grep -q 'rank 1 of 3 .*killed by signal 9' err.deaths || fail "who was killed? $(cat err.deaths)"
