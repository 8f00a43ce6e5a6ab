# A time budget holds, validation and start included, is used, and plays the schedule to its end.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 30 10 8
budget=4
before=$(date +%s.%N)
expect 0 run -d data -e 100000 --time-budget ${budget}s --end-lr 0.0001 --lr 0.01 --out budget
after=$(date +%s.%N)
# Sanitizers slow the start, which no estimate can know: the bound is generous there, and 15% elsewhere.
"${PYTHON3:-python3}" - budget/$REPORT $before $after $budget <<'PY' || fail "the budget"
import json, sys
report = json.load(open(sys.argv[1]))
took, budget = float(sys.argv[3]) - float(sys.argv[2]), float(sys.argv[4])
epochs = report["epochs"]
print("took", took, "of", budget, "and", epochs[-1]["position"], "epochs; last rate", epochs[-1]["lr"])
assert report["completed"] is True
assert took < budget * 1.15, took
assert report["seconds"] < budget * 1.1, report["seconds"]
assert took > budget * 0.6, took
assert epochs[-1]["lr"] < 0.002, "the rate has not come to its end"
assert max(e["lr"] for e in epochs) > 0.008, "the rate has never been at its peak"
assert report["final"], "no validation at the end"
PY
# Fewer epochs than there is time for: it ends with them.
expect 0 run -d data -e 2 --time-budget 1m --out few
[ "$(grep -c '"compute_seconds"' few/$REPORT)" = 2 ] || fail "-e is no bound under a time budget"
