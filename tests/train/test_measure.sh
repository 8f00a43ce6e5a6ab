#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# measure tells a training's speed: a warm-up, whole epochs or as much as there is time for, and a report
# of its own beside what a training left. --cold reads from the disk.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 30 10 8
measure() { dl2-train measure ${smallest% -e *} "$@"; }
check() { "${PYTHON3:-python3}" - "$@" || fail "see above"; }

# Beside a training, whose files stay as they are.
expect 0 run -d data --out run
cp run/$REPORT kept && cp run/$CK kept-weights || exit 99
expect 0 measure -d data --out run --duration 0.3 --warmup 0.5
cmp -s kept run/$REPORT && cmp -s kept-weights run/$CK || fail "it wrote over the training's files"
grep -Eq '^[0-9]+ images/s, [0-9.]+% of the time waiting for data; measured for [0-9.]+ s$' "$work/out" ||
    fail "no rate: $(cat "$work/out")"
check run/rate_report.json 0.3 <<'PY'
import json, sys
report, wanted = json.load(open(sys.argv[1])), float(sys.argv[2])
measured, epochs = report["measured"], report["epochs"]
assert report["schema"] == "dl2-rate/1" and report["completed"] and "final" not in report
images = [e["train"]["images"] for e in epochs]
assert len(images) >= 2 and all(n == 88 or e["seconds"] >= wanted for n, e in zip(images, epochs)), images
counted = epochs[1:]  # the first warms up
for name, key in (("seconds", "seconds"), ("data_wait_seconds", None)):
    total = sum(e[name] for e in counted)
    share = measured["seconds"] if key else measured["data_stall"] * measured["seconds"]
    assert abs(total - share) < 1e-9 * (1 + total), (name, total, share)
assert measured["images"] == sum(images[1:])
assert abs(measured["images_per_second"] - measured["images"] / measured["seconds"]) < 1e-6
assert wanted <= measured["seconds"] < wanted + epochs[-1]["seconds"] + 1e-9
assert not any(e["val"] for e in epochs), "it validates"
assert "joules_per_image" in measured
PY

# Epochs that are longer than that end early.
make_images large 2 4000 2 8
expect 0 measure -d large --out large-run --duration 0.2 -b 2
check large-run/rate_report.json <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
images = [e["train"]["images"] for e in report["epochs"]]
print(images, report["measured"])
assert len(images) >= 2 and all(0 < n < report["train_images"] for n in images[:2]), images
assert report["epochs"][0]["seconds"] >= 0.2 and report["measured"]["seconds"] >= 0.2
PY
[ ! -e large-run/$CK ] || fail "it wrote a checkpoint"
[ ! -e large-run/$REPORT ] || fail "it wrote a training's report"

# Several ranks end together.
expect 0 measure -d data --out ranks --duration 0.2 --ranks 2
grep -q '"ranks": 2' ranks/rate_report.json && grep -q '"completed": true' ranks/rate_report.json ||
    fail "ranks: $(cat ranks/rate_report.json)"
# So does noise.
expect 0 measure --loader synthetic --images 400 --out noise --duration 0.1
grep -q '"completed": true' noise/rate_report.json || fail "noise"

# From the disk, each epoch.
expect 0 measure -d data --out cold --duration 0.1 --cold
[ "$(grep -c '"resident": [01]' cold/rate_report.json)" -ge 2 ] || fail "--cold says nothing of what stayed in memory"
expect 0 run -d data -e 2 --out cold --cold
[ "$(grep -c '"resident": [01]' cold/$REPORT)" = 2 ] || fail "--cold has no effect on a training"
expect 0 run -d data -e 2 --out warm
differ cold/$CK run/$CK "runs of two and three epochs"
same cold/$CK warm/$CK "--cold changes the weights"

# A signal ends it without a report that is complete.
dl2-train measure ${smallest% -e *} -d large --out stopped --duration 1m >"$work/out" 2>"$work/err" &
process=$!
(await "no log of its start" test -d stopped) || exit 1
sleep 0.5
kill -TERM $process
wait $process && fail "a signal is a success"
said "stopped before the rate was measured"
! grep -qs '"completed": true' stopped/rate_report.json || fail "it pretends to be complete"

# It refuses what has no effect on it: validation, checkpoints and the run's length.
for wrong in --resume --restart "--run-epochs 1" "--export x" "--time-budget 1m" "--epochs 1" "--stages data:1" "--val data" \
    "--val-split val" "--until top1=1" "--val-crop squash" "--val-resize 9" "--val-clips 2" "--validate-every 2" --skip-validation --keep-best --step-log \
    "--checkpoint x" "--checkpoint-every 2" "--partition 1/2"; do
    expect 2 measure -d data --duration 1s $wrong
    said "${wrong%% *} is not an option of the command measure"
    echo "${wrong%% *}"
done | sort >refused
expect 0 dl2-train --list not-measured
cut -f 1 "$work/out" | grep -vx -e --memory -e --sensitivity | sort | cmp - refused || fail "--list not-measured: $(cat "$work/out")"
for wrong in x 0; do
    expect 2 measure -d data --duration $wrong
    said "--duration"
done
expect 2 run --loader synthetic --cold
said "--cold has no effect on synthetic data"
exit 0
