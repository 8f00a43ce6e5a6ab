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
