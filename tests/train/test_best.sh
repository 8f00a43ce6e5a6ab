# SPDX-License-Identifier: BSD-2-Clause
# --keep-best: the weights of the best epoch, as they were validated, over --resume; --step-log: a line for each
# step, once, over --resume.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 12 4 3 8
make_images other 12 4 5 8 color 9
BEST=best.safetensors
# Epochs get better and worse: with these, the second and the fifth are the best ones so far.
options="-d data -e 6 --val other --val data --lr 0.02 --lr-policy linear --warmup 2 --keep-best --step-log --ema 0.3"
# is_best FOLDER: its best.safetensors is that of the report's best epoch, by an evaluation.
is_best() {
    expect 0 dl2-train --quiet -j 2 --threads 1 evaluate "$1/$BEST" --val other --out "$1/of-best"
    "${PYTHON3:-python3}" - "$1/$REPORT" "$1/of-best/evaluation_report.json" <<'PY' || fail "$1: not the best epoch's weights"
import json, sys
run, evaluation = (json.load(open(path)) for path in sys.argv[1:])
best, got = run["best"], evaluation["val"][0]
print("best epoch", best["epoch"], "of", [e["val"][0]["top1"] for e in run["epochs"]])
assert best["val"][0]["top1"] == max(e["val"][0]["top1"] for e in run["epochs"])
assert got["top1"] == best["val"][0]["top1"] and abs(got["loss"] - best["val"][0]["loss"]) < 1e-9, (got, best)
assert evaluation["epoch"] == best["epoch"], evaluation["epoch"]
PY
}
expect 0 run $options --out whole
is_best whole

# In parts; a part that is lost has no best.
for stop in 1.4 0.9 1 1.5; do
    expect 0 run $options --out parts --resume --run-epochs $stop
    is "$(grep -c 'does not have the weights' "$work/err")" 0 "a best that is there is missed"
    is_best parts
    cp parts/$CK parts/$BEST .
done
cp parts/steps.jsonl shorter.jsonl
expect 0 run $options --out parts --resume
is_best parts
same whole/$CK parts/$CK
cmp whole/$BEST parts/$BEST || fail "another best after --resume"
expect 0 run $options --out parts2 --run-epochs 2
rm parts2/$BEST
expect 0 run $options --out parts2 --resume
said 'does not have the weights of epoch'
[ -s parts2/$BEST ] || fail "nothing is kept after a lost best"

# ---- Steps
check_steps() {
    "${PYTHON3:-python3}" - "$1/$REPORT" "$1/steps.jsonl" <<'PY' || fail "the log of steps of $1"
import json, sys
report = json.load(open(sys.argv[1]))
steps = [json.loads(line) for line in open(sys.argv[2])]
assert [s["step"] for s in steps] == list(range(1, len(steps) + 1)), [s["step"] for s in steps]
for epoch in report["epochs"]:
    begin = epoch["position"] - 1
    own = [s for s in steps if begin + 1e-9 < s["epoch"] <= epoch["position"] + 1e-9]
    assert len(own) == 6, (begin, len(own))
    assert sum(s["images"] for s in own) == epoch["train"]["images"]
    loss = sum(s["loss"] * s["images"] for s in own) / sum(s["images"] for s in own)
    assert abs(loss - epoch["train"]["loss"]) < 1e-6, (loss, epoch["train"]["loss"])
    assert own[-1]["lr"] == float("%.9g" % epoch["lr"])
    assert all(0 <= s["data_wait_seconds"] <= s["seconds"] for s in own)
    assert sum(s["seconds"] for s in own) <= epoch["seconds"] * 1.01
PY
}
check_steps whole
check_steps parts
# As a part leaves it that is killed: steps beyond the checkpoint, the last line cut.
mkdir killed
cp $CK $BEST killed/
{ cat shorter.jsonl; printf '{"step":1000,"epoch":9,"loss":1}\n{"step":10'; } >killed/steps.jsonl
expect 0 run $options --out killed --resume
check_steps killed
cut -d , -f 1-5 whole/steps.jsonl >want
cut -d , -f 1-5 killed/steps.jsonl | cmp - want || fail "other steps after a part that was killed"
# Over two ranks, which share each step's images.
expect 0 run -d data -b 4 --step-log --ranks 2 --out ranks
check_steps ranks
# --restart begins the log anew.
expect 0 run $options --out whole --restart
check_steps whole
exit 0
