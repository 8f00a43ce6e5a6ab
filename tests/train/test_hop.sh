# SPDX-License-Identifier: BSD-2-Clause
# Models that hop from rank to rank: in a fixed order they have the weights of the same visits by hand, bit for
# bit, also where ranks are killed or stopped; in any order each visits every partition once an epoch.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
models="a b c"
make_images data 3 25 7 8 # 75 to train on: partitions of 38 and 37, which leave out the rest of a batch
cat >configs <<'EOF'
{"name": "a"}
{"name": "b", "lr": 0.02, "seed": 5, "mixup": 0.3, "clip-grad": 1}
{"name": "c", "optimizer": "adamw", "epochs": 1.6, "weight-decay": 0, "ema": 0.9, "grad-accum": 3}
EOF
hop() { run -d data --seed 1 several --configs configs --hop "$@"; }
fixed() { hop --hop-order fixed --ranks 2 "$@"; }
# visits NAME ORDER OPTION...: by hand, one after the other.
visits() {
    name=$1 order=$2
    shift 2
    for partition in $order; do
        expect 0 run -d data --out $name --partition $partition/2 --resume "$@"
    done
}
visits a "1 2 1 2 1" --seed 1
said 'at epoch 2.5; --resume with a --partition that it has not visited goes on'
[ "$(field a/$REPORT completed)" = false ] || fail "completed before the last visit"
visits a 2 --seed 1
visits b "2 1 2 1 2 1" --seed 5 --data-seed 1 --lr 0.02 --mixup 0.3 --clip-grad 1
visits c "1 2 1 2" --seed 1 --optimizer adamw -e 1.6 --weight-decay 0 --ema 0.9 --grad-accum 3
expect 0 fixed --out hop
all_same hop "hops in a fixed order and visits by hand"
expect 0 run -d data --seed 1 --out plain
differ a/$CK plain/$CK "partitions make no difference"
# once FOLDER RANKS: each visit comes once, is in the report, and moved the checkpoint if that was elsewhere.
once() {
    "${PYTHON3:-python3}" - "$1" "$2" <<'EOF' || fail "the visits in $1"
import collections, json, os, sys
out, ranks = sys.argv[1], int(sys.argv[2])
lines = [json.loads(line) for line in open(out + "/visits.jsonl")]
seen = collections.Counter((l["model"], l["epoch"], l["partition"]) for l in lines)
assert max(seen.values()) == 1 and all(l["outcome"] == "done" for l in lines), seen
last = {}
for l in lines:
    size = os.path.getsize(f"{out}/{l['model']}/checkpoint.safetensors")
    moved = last.get(l["model"], l["partition"]) != l["partition"]
    assert (abs(l["bytes_moved"] - size) < 4096) if moved else l["bytes_moved"] == 0, l
    last[l["model"]] = l["partition"]
for model in "abc":
    epochs = json.load(open(f"{out}/{model}/experiment_report.json"))["epochs"]
    for e in epochs:
        order = [l["partition"] for l in lines if (l["model"], l["epoch"]) == (model, e["epoch"])]
        assert e["visits"] == order, (model, e["visits"], order)
        assert model == "c" or sorted(order) == list(range(1, ranks + 1)), (model, order)
    assert model == "c" or len(epochs) == 3
EOF
}
once hop 2
expect 0 hop --ranks 3 --out random
once random 3

# What was there already; a finished one; and --restart.
expect 1 fixed --out hop
said 'is there already: continue it with --resume'
is "$(wc -l <"$work/err")" 1 "lines that tell an error of all ranks"
rm hop/a/$REPORT
expect 0 fixed --out hop --resume
all_same hop "a report that was lost"
expect 0 fixed --out random --restart
all_same random "--restart"

# Ranks that are killed are started again and lose a visit; a signal stops all, and --resume goes on.
sed 's/"epochs": 1.6, //' configs >longer
long="-d data --seed 1 several --configs longer --hop --hop-order fixed --ranks 2 -e 8"
expect 0 run $long --out whole
(exec dl2-train $smallest $long --out killed --checkpoint-every 0.3) >/dev/null 2>err.killed &
pid=$!
has_lines() { [ -e killed/visits.jsonl ] && [ "$(wc -l <killed/visits.jsonl)" -ge "$1" ]; }
for victim in 1 2; do
    await "no visit" has_lines $((8 * victim))
    kill -KILL $(cut -d ' ' -f $victim /proc/$pid/task/$pid/children)
done
await "no visit after a kill" has_lines 20
kill -TERM $pid
wait $pid; status=$?
[ $status = 1 ] || { cat err.killed >&2; fail "status $status after SIGTERM"; }
grep -q 'rank [01] was killed, and goes on with partition [12]' err.killed || { cat err.killed >&2; fail "who was killed?"; }
grep -q 'stopped; the same command with --resume goes on' err.killed || { cat err.killed >&2; fail "how to go on?"; }
touch "$(find data/val -type f | head -n 1)"
expect 0 run $long --out killed --resume
said 'the validation images of data have the names, classes and sizes that they had'
for model in a b c; do same whole/$model/$CK killed/$model/$CK "$model after kills and a stop"; done

# A model that diverges ends alone, and stays so.
cat >wild <<'EOF'
{"name": "wild", "lr": 1e6, "warmup": 0, "momentum": 0.99, "epochs": 30}
{"name": "b", "seed": 5}
EOF
for again in "" --resume; do
    expect 1 run -d data several --configs wild --hop --ranks 2 --out wild-out $again
    [ "$(field wild-out/b/$REPORT completed)" = true ] || fail "beside one that diverged"
    [ "$(field wild-out/wild/$REPORT completed)" = false ] || fail "a run that diverged calls itself completed"
done

# Wrong usage, and checkpoints of other partitions.
expect 0 run -d data --out x --partition 1/2
for options in "--partition 1/2" "--partition 2/3" ""; do
    expect 1 run -d data --out x --resume $options
    said 'checkpoint x/checkpoint.safetensors: '
done
expect 1 run -d data --out y --partition 90/99
said '75 training images cannot be divided into 99 partitions'
for options in "--partition 3/2" "--partition 0/2" "--partition 1" "--partition 1/5000" "--partition 1/2 --ranks 2" \
    "--partition 1/2 --run-epochs 1" "--partition 1/2 --batching completion" "--hop" "--hop-order fixed" "--in-database"; do
    expect 2 run -d data --out wrong-out $options
done
for options in "" "--ranks 2 --share batch" "--ranks 2 --run-epochs 1" "--ranks 2 --partition 1/2" "--gpus 2" "--ranks 2 --sync-bn"; do
    expect 2 hop --out wrong-out $options
done
printf '{"name": "visits.jsonl"}\n' >wrong
expect 2 run -d data several --configs wrong --hop --ranks 2 --out wrong-out
said "wrong:1: \"name\": 'visits.jsonl' is the file of visits"
[ ! -e wrong-out ] || fail "wrong usage made a folder"
explained hop-order dl2-train several -d data
