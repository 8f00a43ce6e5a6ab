# SPDX-License-Identifier: BSD-2-Clause
# asha trains whom its rule names, by the figures of the reports; is cheaper than the grid and finds its best where
# early figures tell; decides the same when it was stopped in between; and draws no combination twice.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 15 4 12
need_python json python3
echo '{"lr": [0.0001, 0.001, 0.005, 0.02, 0.05, 1e6], "optimizer": ["sgd", "rmsprop"]}' >space.json
trials=9
slow && trials=6
search() { run -d data -e 4 search --space space.json --algorithm asha --trials $trials --max-concurrent 2 --reduction-factor 2 "$@"; }

# replay FOLDER EPOCHS FIRST ETA AT_ONCE: the rule anew, from each trial's own report.
cat >replay.py <<'END'
import json, math, sys
folder, length, first, eta, at_once = sys.argv[1], *map(int, sys.argv[2:])
search = json.load(open(f"{folder}/search.json"))
curves = []
for trial in search["trials"]:
    report = json.load(open(f"{folder}/{trial['report']}"))
    curves.append({e["position"]: (-e["val"][0]["top1"], e["val"][0]["loss"])
                   for e in report["epochs"] if e.get("val") and e["val"][0]["loss"] is not None})
ends = []
while first < length:
    ends.append(float(first))
    first *= eta
rungs = [[] for _ in ends]  # of (figures, trial), and who went on
went, begun, trained = [set() for _ in ends], 0, set()
def good(entry):
    return math.isfinite(entry[0][1])
while True:
    wave = []
    for k in reversed(range(len(ends))):
        part = sorted(rungs[k])[:len(rungs[k]) // eta]
        wave = [e[1] for e in part if good(e) and e[1] not in went[k]][:at_once]
        if wave:
            went[k].update(wave)
            goal = k + 1
            break
    if not wave:
        goal = 0
        while len(wave) < at_once and begun < len(curves):
            wave.append(begun)
            begun += 1
    for k in reversed(range(len(ends))):
        if not wave and not trained:
            left = [e[1] for e in sorted(rungs[k]) if good(e) and e[1] not in went[k]]
            wave, goal = left[:1], k + 1
            went[k].update(wave)
    if not wave:
        break
    for trial in wave:
        if goal < len(ends):
            rungs[goal].append((curves[trial].get(ends[goal], (1, math.inf)), trial))
        elif search["trials"][trial]["status"] != "diverged":
            trained.add(trial)
names = [t["name"] for t in search["trials"]]
expected = [{"epochs": e, "ranking": [names[t] for _, t in sorted(r)], "kept": len(w)} for e, r, w in zip(ends, rungs, went) if r]
assert search["rounds"] == expected, (search["rounds"], expected)
assert [i for i, t in enumerate(search["trials"]) if t["status"] == "trained"] == sorted(trained), trained
assert {t["status"] for t in search["trials"]} <= {"trained", "stopped", "diverged"}
best = min(trained, key=lambda t: curves[t][float(length)])
assert search["best"] == names[best], (search["best"], names[best])
assert search["completed"] and search["epochs"] == sum(t["epochs"] for t in search["trials"]) < search["all_epochs"]
drawn = [json.dumps(t["settings"], sort_keys=True) for t in search["trials"]]
assert len(set(drawn)) == len(drawn), drawn
END

expect 0 search --out asha
"$PYTHON3" replay.py asha 4 1 2 2 || fail "asha did not follow its rule"

# Stopped by a signal, then resumed: the same decisions, and the same weights of the best.
dl2-train $smallest -d data -e 4 search --space space.json --algorithm asha --trials $trials --max-concurrent 2 --reduction-factor 2 --out parts \
    --checkpoint-every 0.2 >/dev/null 2>&1 &
process=$!
await "no third model" test -s parts/trial-002/$REPORT
kill -TERM $process 2>/dev/null
wait $process 2>/dev/null
expect 1 search --out parts --resume --max-concurrent 3
said 'is of another search'
expect 0 search --out parts --resume
cmp asha/search.json parts/search.json || fail "the resumed search found something else"
best=$(field asha/search.json best)
same asha/$best/$CK parts/$best/$CK "the best of a search in parts"

# More trials than combinations: each once. A rung that one model alone has come to: it goes on.
echo '{"lr": [0.005, 0.02]}' >space.json
expect 0 search --trials 50 --reduction-factor 3 --max-concurrent 8 --out few
"$PYTHON3" replay.py few 4 1 3 8 || fail "a small search did not follow the rule"
is "$(grep -c '"name"' few/search.json)" 2 "number of trials"
is "$(grep -c '"status": "trained"' few/search.json)" 1 "number of trained models"

# By ranks: while one is stopped in its first model, the other decides on all others up to a whole run, and waits
# for nothing. The one that is killed then is started again and goes on with its model.
echo '{"lr": [0.001, 0.005, 0.01, 0.02, 0.05]}' >space.json
# The one that is stopped must be in its first model, and not hold the plan: no line is written yet, or it begins anew.
make_images long 3 200 4 12
both_begun() { [ -e ranks/trial-000 ] && [ -e ranks/trial-001 ]; }
begin_ranks() {
    (exec dl2-train $smallest -d long -e 4 search --space space.json --algorithm asha --trials 5 --reduction-factor 2 --task \
        --ranks 2 --out ranks) >found 2>err.ranks &
    pid=$!
    await "no two models" both_begun
    stopped=$(cut -d ' ' -f 1 /proc/$pid/task/$pid/children)
    kill -STOP $stopped
    [ ! -s ranks/visits.jsonl ] && return
    kill -KILL $stopped
    wait $pid
    rm -r ranks
    return 1
}
tries=0
until begin_ranks; do
    tries=$((tries + 1))
    [ $tries -lt 10 ] || skip "no rank could be stopped in its first model"
done
has_lines() { [ -e ranks/visits.jsonl ] && [ "$(wc -l <ranks/visits.jsonl)" -ge "$1" ]; }
await "a rank waits for another: $(cat err.ranks)" has_lines 7 # 4 for 1 epoch, 2 for 2, 1 for 4
kill -KILL $stopped
wait $pid || { cat err.ranks >&2; fail "a killed rank ended a search"; }
grep -q 'was killed, and goes on$' err.ranks || fail "it does not tell of the killed rank: $(cat err.ranks)"
grep -q "^best: accuracy .*$(field ranks/search.json best)" found || fail "the best is not named: $(cat found)"
"$PYTHON3" - <<'END' || fail "the ranks' search: $(cat ranks/search.json)"
import json
search = json.load(open("ranks/search.json"))
trials = search["trials"]
assert search["completed"] and {t["status"] for t in trials} <= {"trained", "stopped"}
assert all(t["epochs"] == t["goal"] for t in trials), trials
assert len(search["rounds"][0]["ranking"]) == 5 and search["rounds"][0]["kept"] in (2, 3)
assert search["best"] == max((t for t in trials if t["status"] == "trained"), key=lambda t: (t["accuracy"], -t["loss"]))["name"]
END
