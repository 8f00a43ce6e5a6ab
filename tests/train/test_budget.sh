# SPDX-License-Identifier: BSD-2-Clause
# A time budget ends a run that would go on for long, validation and start included, is used, and plays the
# schedule to its end. How near it comes is a matter of the machine: test_schedule.c holds it in simulation.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 30 10 8
budget=4
before=$(date +%s.%N)
expect 0 run -d data -e 100000 --time-budget ${budget}s --min-lr 0.0001 --lr 0.01 --out budget
after=$(date +%s.%N)
"${PYTHON3:-python3}" - budget/$REPORT $before $after $budget <<'PY' || fail "the budget"
import json, sys
report = json.load(open(sys.argv[1]))
took, budget = float(sys.argv[3]) - float(sys.argv[2]), float(sys.argv[4])
epochs = report["epochs"]
print("took", took, "of", budget, "and", epochs[-1]["position"], "epochs; last rate", epochs[-1]["lr"])
assert report["completed"] is True
assert budget * 0.5 < report["seconds"] <= took < budget * 5, (report["seconds"], took)
assert epochs[-1]["lr"] < 0.002, "the rate has not come to its end"
# An epoch's rate is that of its end: where the machine is so busy that there are few, none shows the peak.
assert len(epochs) < 8 or max(e["lr"] for e in epochs) > 0.008, "the rate has never been at its peak"
assert report["final"], "no validation at the end"
PY
# Fewer epochs than there is time for: it ends with them.
expect 0 run -d data -e 2 --time-budget 1m --out few
[ "$(grep -c '"compute_seconds"' few/$REPORT)" = 2 ] || fail "-e is no bound under a time budget"

# A target ends a run after the first epoch that comes to it, which the summary and the report say; the weights are those
# of the whole run's first epochs. One that is missed is said, too.
expect 0 dl2-train ${smallest#--quiet} -d data -e 6 --validate-every 2 --until top1=0.001 --out hit
grep -q '^target top1=0.001 reached after 2 epochs$' "$work/out" || fail "the target: $(cat "$work/out")"
[ "$(grep -c '"compute_seconds"' hit/$REPORT)" = 2 ] || fail "--until has not ended the run"
[ "$(field hit/$REPORT until_reached)$(field hit/$REPORT completed)" = truetrue ] || fail "$(cat hit/$REPORT)"
[ -e hit/predictions-0.npy ] || fail "no predictions of the last epoch"
expect 0 run -d data -e 6 --run-epochs 2 --out part
same hit/$CK part/$CK "a run with a target"
expect 0 run -d data -e 6 --validate-every 2 --until top1=0.001 --resume --out hit
said 'this run is finished already'
expect 0 run -d data -e 2 --until loss=1e-9 --out miss
grep -q '^target loss=1e-09 not reached after 2 epochs$' "$work/out" || fail "the target: $(cat "$work/out")"
[ "$(field miss/$REPORT until_reached)" = false ] || fail "$(cat miss/$REPORT)"
for target in top9=1 top1 top1=x top1=nan top1=75 loss=0 miou=0.5 mean_dice=0.5; do
    expect 2 run -d data --until $target --out none
done
expect 2 run -d data --until top1=1 --skip-validation --out none
expect 2 dl2-train --quiet --loader synthetic --until top1=1 --out none
