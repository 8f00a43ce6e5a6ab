# SPDX-License-Identifier: BSD-2-Clause
# Ranks on cards, which NCCL joins. One card is enough for the path of --gpus itself; two for sums.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
dl2-train --version | grep -q 'device cuda:' || skip "built without CUDA"
dl2-train --version | grep -q 'NCCL' || skip "built without NCCL"
dl2-train $smallest --loader synthetic --images 16 -e 1 --device cuda --out probe >probe.out 2>probe.err ||
    skip "no card that works here: $(tail -n 1 probe.err)"
make_images data 3 25 7 8
options="-d data --device cuda --deterministic --mixup 0.2 --ema 0.5"
expect 0 run $options --out alone
expect 0 run $options --out one --gpus 1
same alone/$CK one/$CK "a world of one card"
expect 0 run $options --out parts --gpus 1 --run-epochs 1.3
expect 0 run $options --out parts --gpus 1 --resume
same alone/$CK parts/$CK "resumed"
if ! dl2-train $smallest --loader synthetic --images 16 -e 1 --gpus 2 --out probe2 >probe.out 2>probe.err; then
    skip "one card does as it should; two are not to be had: $(tail -n 1 probe.err)"
fi
# losses REPORT: of all epochs.
losses() { sed -n '/"epochs": \[/,$s/^ *"loss": \([0-9.e-]*\).*/\1/p' "$1"; }
expect 0 run -d data --device cuda --deterministic -b 4 --out sync --gpus 2 --sync-bn
expect 0 run -d data --device cuda --deterministic -b 8 --out large
losses sync/$REPORT >sync.losses; losses large/$REPORT >large.losses
[ "$(wc -l <sync.losses)" -ge 6 ] || fail "no losses in the report"
paste sync.losses large.losses | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-3 * $2) exit 1 }' ||
    fail "two cards with synchronized batch norm are not one with the same step"
expect 0 run $options -b 4 --out two --gpus 2
expect 0 run $options -b 4 --out two-again --gpus 2
same two/$CK two-again/$CK "two runs on two cards"
# A rank that dies leaves nobody waiting for its card.
(exec dl2-train $smallest $options -b 4 --gpus 2 -e 100000 --out deaths) >out.deaths 2>err.deaths &
pid=$!
until_checkpoint deaths err.deaths
kill -KILL $(cut -d ' ' -f 2 /proc/$pid/task/$pid/children)
wait $pid
[ $? = 1 ] || fail "a killed rank is a success"
