# SPDX-License-Identifier: BSD-2-Clause
# A search tries what its algorithm says, trains each model as a run of its own would, stops the bad ones, and
# decides the same when it was stopped in between.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 15 4 12
search() { run -d data -e 4 search --space "$@"; }
# found FILE PATH...: values of a search's file, by python's notation.
need_python json python3
found() { "$PYTHON3" -c 'import json, sys; s = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1/search.json" "$2"; }

# grid: every combination, the last setting first, each with the weights of its own run; the best is the one with
# the highest accuracy, then the lowest loss.
echo '{"lr": [0.001, 0.02, 1e6], "optimizer": ["sgd", "adamw"]}' >grid.json
expect 0 search grid.json --algorithm grid --max-concurrent 4 --out grid
is "$(found grid "[(t['settings']['lr'], t['settings']['optimizer']) for t in s['trials'][:3]]")" \
    "[(0.001, 'sgd'), (0.001, 'adamw'), (0.02, 'sgd')]" "the grid"
is "$(found grid "len(s['trials']), s['completed'], s['search']['algorithm']")" "(6, True, 'grid')" "the grid's file"
is "$(found grid "s['best'] == min((t for t in s['trials'] if t['status'] == 'trained' and t['loss'] is not None),
    key=lambda t: (-t['accuracy'], t['loss']))['name']")" True "the best of the grid"
grep -q "^best: accuracy .*$(found grid "s['best']")" "$work/out" || fail "the best is not named: $(cat "$work/out")"
expect 0 run -d data -e 4 --out alone --lr 0.02
same alone/$CK grid/trial-002/$CK "a trial"
for number in 0 1 2 3 4 5; do
    is "$(found grid "s['trials'][$number]['accuracy'] if s['trials'][$number]['status'] == 'trained' else None")" \
        "$("$PYTHON3" -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r["final"][0]["top1"] if r["final"] and r["completed"] else None)' \
        grid/trial-00$number/$REPORT)" "top-1 of trial $number"
done
echo '{"lr": {"min": 0.001, "max": 0.1, "scale": "log", "points": 3}}' >points.json
expect 0 search points.json --algorithm grid --out points -e 1
is "$(found points "[t['settings']['lr'] for t in s['trials']]")" "[0.001, 0.01, 0.1]" "points of a range"

# random: as many as told, within the ranges, the same for the same seed.
echo '{"lr": {"min": 0.001, "max": 0.1, "scale": "log"}, "momentum": {"min": 0.5, "max": 0.9}, "nesterov": [true, false]}' >space.json
if ! slow; then
    for name in random again; do expect 0 search space.json --trials 5 --out $name -e 1; done
    expect 0 search space.json --trials 5 --out other -e 1 --seed 1
    drawn="[t['settings'] for t in s['trials']]"
    is "$(found random "$drawn")" "$(found again "$drawn")" "two searches with one seed"
    [ "$(found random "$drawn")" != "$(found other "$drawn")" ] || fail "--seed does not draw others"
    is "$(found other "len(s['trials']), all(0.001 <= t['lr'] <= 0.1 and 0.5 <= t['momentum'] <= 0.9 for t in $drawn)")" \
        "(5, True)" "draws"
fi

# Spaces whose settings depend on others, and whole numbers.
cat >spaces.json <<'END'
[{"optimizer": ["sgd"], "nesterov": [true, false], "lr": {"min": 0.01, "max": 0.1, "points": 2}},
 {"optimizer": ["adamw"], "lr": [0.001], "grad-accum": {"min": 1, "max": 3, "integer": true, "points": 3}}]
END
expect 0 search spaces.json --algorithm grid --out spaces -e 1
is "$(found spaces "[tuple(t['settings'].values()) for t in s['trials']]")" \
    "[('sgd', True, 0.01), ('sgd', True, 0.1), ('sgd', False, 0.01), ('sgd', False, 0.1), ('adamw', 0.001, 1), ('adamw', 0.001, 2), ('adamw', 0.001, 3)]" \
    "a grid of two spaces"
is "$(grep -c adamw,,0.001 spaces/search.csv)" 3 "settings that some models lack, in the table"
expect 0 search spaces.json --algorithm random --trials 7 --out spaces-drawn -e 1
is "$(found spaces-drawn "sorted(str(t['settings']) for t in s['trials'])")" \
    "$(found spaces "sorted(str(t['settings']) for t in s['trials'])")" "all combinations of two spaces, drawn"
sed 's/"points": [23]/"scale": "log"/' spaces.json >drawn.json
expect 0 search drawn.json --trials 12 --out drawn -e 1
is "$(found drawn "sorted(set((t['settings']['optimizer'], 'nesterov' in t['settings']) for t in s['trials']))")" \
    "[('adamw', False), ('sgd', True)]" "draws of two spaces"
is "$(found drawn "all(type(t['settings'].get('accumulate', 1)) is int for t in s['trials'])")" True "whole numbers"

# halving: 9 for one epoch, 3 up to the third, 1 to the end; the kept ones are the best of their round.
halving="space.json --algorithm halving --trials 9 --reduction-factor 3 --max-concurrent 4"
expect 0 search $halving --out halving
[ ! -s "$work/err" ] || fail "--quiet, and a line per model: $(cat "$work/err")"
is "$(found halving "[(r['epochs'], len(r['ranking']), r['kept']) for r in s['rounds']]")" "[(1.0, 9, 3), (3.0, 3, 1)]" rounds
is "$(found halving "sorted(t['epochs'] for t in s['trials'])")" "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 4.0]" epochs
is "$(found halving "s['epochs'], s['all_epochs']")" "(16.0, 36.0)" "epochs in all"
is "$(found halving "[t['status'] for t in s['trials']].count('stopped'), s['rounds'][1]['ranking'][0] == s['best']")" "(8, True)" "who is stopped"
first=$(found halving "s['rounds'][0]['ranking'][0]")
for trial in halving/trial-*; do
    "$PYTHON3" -c 'import json, sys
val = [json.load(open(f"{p}/experiment_report.json"))["epochs"][0]["val"][0] for p in sys.argv[1:]]
sys.exit((-val[0]["top1"], val[0]["loss"]) > (-val[1]["top1"], val[1]["loss"]))' halving/$first $trial || fail "$trial is better than $first"
done

# Stopped by a signal after its first waves, then resumed: the same decisions and weights.
dl2-train $smallest -d data -e 4 search --space $halving --out parts --checkpoint-every 0.2 >/dev/null 2>&1 &
process=$!
await "no first model" test -s parts/trial-000/$REPORT
kill -TERM $process 2>/dev/null
wait $process 2>/dev/null
expect 0 search $halving --out parts --resume --budget 0.001s
said 'the budget is used up; --resume goes on'
grep -q "^best so far: accuracy " "$work/out" || fail "no best so far: $(cat "$work/out")"
is "$(found parts "s['completed'], s['best']")" "(False, None)" "a search at its budget's end"
# All of its models need the same images, those to validate on, too.
val=$(find data/val -type f | sort | head -n 1)
mv "$val" "$val.moved.ppm"
cp -R parts others
for way in "" "--task --ranks 2"; do
    expect 1 search $halving $way --out others --resume
    said 'bring back those that the search was begun with'
done
mv "$val.moved.ppm" "$val"
# One of them cannot be read any more, though its size and time are the same.
cp -pR parts lossy
cp -p "$val" val.kept
printf 'X' | dd of="$val" conv=notrunc 2>/dev/null
touch -r val.kept "$val"
expect 1 search $halving --out lossy --resume
said "validated on $(($(find data/val -type f | wc -l) - 1)) images that are not the $(find data/val -type f | wc -l) of the models before"
cp -p val.kept "$val"
expect 1 search $halving --out lossy --resume
said 'begins them anew'
names=$(sed -n 's/.*dl2-train: \(trial-.*\): validated on.*/\1/p' "$work/err" | tr -d ,)
[ -n "$names" ] || fail "no model is named: $(cat "$work/err")"
for name in $names; do rm -r "lossy/$name"; done
expect 0 search $halving --out lossy --resume
cmp halving/search.json lossy/search.json || fail "the search on mended images found something else"
expect 0 search $halving --out parts --resume
cmp halving/search.json parts/search.json || fail "the resumed search found something else"
best=$(found halving "s['best']")
same halving/$best/$CK parts/$best/$CK "the best of a search in parts"
expect 0 search $halving --out parts --resume
cmp halving/search.json parts/search.json || fail "a finished search changed"
expect 1 search $halving --out parts
said 'there is a search already'
for other in "--seed 4" "-e 5" "--weight-decay 0.1"; do
    expect 1 search $halving --out parts --resume $other
    said 'is of another search'
done
expect 0 search space.json --trials 2 --out parts --restart -e 1
is "$(found parts "len(s['trials'])")" 2 "--restart"

# A table of all models, the best first, on stdout, in the file and as CSV; a line for each round.
expect 0 dl2-train ${smallest#--quiet} -d data -e 4 search --space $halving --out shown
grep -qx 'round 1, to epoch 1: kept 3 of 9' "$work/out" || fail "no line of round 1: $(cat "$work/out")"
grep -qx 'round 2, to epoch 3: kept 1 of 3' "$work/out" || fail "no line of round 2: $(cat "$work/out")"
"$PYTHON3" - "$work/out" <<'END' || fail "the table: $(cat "$work/out" shown/search.csv)"
import csv, json, math, sys
trials = json.load(open("shown/search.json"))["trials"]
order = sorted(trials, key=lambda t: (-t["epochs"], -t["accuracy"], t["loss"], t["name"]))
assert [t["rank"] for t in order] == list(range(1, 10))
lines = open(sys.argv[1]).read().splitlines()
at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["rank", "model"])
rows = [line.split() for line in lines[at + 1:at + 10]]
assert [row[1] for row in rows] == [t["name"] for t in order]
assert rows[0][0] == "1" and rows[0][5] == "trained" and rows[0][6].startswith("lr=")
assert abs(float(rows[0][2]) - 100 * order[0]["accuracy"]) < 0.006
table = list(csv.DictReader(open("shown/search.csv")))
assert [row["name"] for row in table] == [t["name"] for t in order]
for row, trial in zip(table, order):
    assert float(row["loss"]) == trial["loss"] and row["report"] == trial["report"]
    assert float(row["lr"]) == trial["settings"]["lr"] and row["nesterov"] == str(trial["settings"]["nesterov"]).lower()
END

# The goal may be the loss, of which a model with a lower accuracy can have less.
expect 0 search $halving --objective loss --out by-loss
"$PYTHON3" - <<'END' || fail "the goal loss: $(cat by-loss/search.json)"
import json
search = json.load(open("by-loss/search.json"))
first = {}
for trial in search["trials"]:
    first[trial["name"]] = json.load(open(f"by-loss/{trial['report']}"))["epochs"][0]["val"][0]["loss"]
assert search["search"]["objective"] == "loss"
assert search["rounds"][0]["ranking"] == sorted(first, key=lambda name: (first[name], name))
END
grep -q '^best: loss 0.*, accuracy ' "$work/out" || fail "the goal is not told: $(cat "$work/out")"
expect 1 search $halving --out by-loss --resume
said 'is of another search'

# The best of the first round diverges in the next: the best of the others takes its place, is named, and trained.
echo '{"lr": [1e-9, 4, 2e-9]}' >later.json
later="later.json -e 9 --warmup 8.9 --weight-decay 10 --momentum 0 --reduction-factor 3"
for way in "halving --max-concurrent 3" "halving --task --ranks 2" "asha --max-concurrent 1"; do
    expect 0 search $later --algorithm $way --out later --restart
    is "$(found later "[t['settings']['lr'] for t in s['trials'] if t['status'] in ('diverged', 'stopped') and t['epochs'] > 1]")" \
        "[4]" "a model that fails in the second round, $way"
    is "$(found later "next(t['settings']['lr'] for t in s['trials'] if t['name'] == s['rounds'][0]['ranking'][0])")" 4 \
        "the best of the first round, $way"
    is "$(found later "[(t['name'] == s['best'], t['epochs']) for t in s['trials'] if t['status'] == 'trained']")" \
        "[(True, 9.0)]" "who is trained instead, $way"
    grep -q "^best: accuracy .*$(found later "s['best']")" "$work/out" || fail "the best is not named, $way: $(cat "$work/out")"
    is "$(tail -n 1 later/search.csv | cut -d , -f 1,8)" ",4" "the last line of the table, $way"
done

# By ranks with a model each: what one process finds, also where ranks are stopped and one is killed; by ranks with
# partitions each model visits each of them once an epoch, as far as the search lets it.
if ! slow; then
    expect 0 search grid.json --algorithm grid --task --ranks 2 --out task
    cmp grid/search.json task/search.json || fail "ranks found something else in the grid"
    for number in 0 1 2 3; do same grid/trial-00$number/$CK task/trial-00$number/$CK "trial $number by ranks"; done
    expect 1 search grid.json --algorithm grid --task --ranks 2 --out task
    said 'there is a search already'
    is "$(wc -l <"$work/err")" 1 "lines that tell an error of all ranks"
fi
(exec dl2-train $smallest -d data -e 4 search --space $halving --task --ranks 2 --out killed --checkpoint-every 0.2) >/dev/null 2>err.killed &
process=$!
await "no first model" test -s killed/trial-000/$REPORT
kill -KILL $(cut -d ' ' -f 2 /proc/$process/task/$process/children)
await "no model after a kill" test -s killed/trial-002/$REPORT
kill -TERM $process 2>/dev/null
wait $process 2>/dev/null
expect 0 search $halving --task --ranks 2 --out killed --resume --budget 0.001s
expect 0 search $halving --task --ranks 3 --out killed --resume
cmp halving/search.json killed/search.json || fail "the search by ranks found something else: $(cat err.killed)"
same halving/$best/$CK killed/$best/$CK "the best of a search by ranks"
expect 0 search $halving --hop --ranks 2 --out hop
"$PYTHON3" - <<'END' || fail "a search that hops: $(cat hop/search.json)"
import collections, json
search = json.load(open("hop/search.json"))
assert [(r["epochs"], len(r["ranking"]), r["kept"]) for r in search["rounds"]] == [(1.0, 9, 3), (3.0, 3, 1)]
assert sorted(t["epochs"] for t in search["trials"]) == [1] * 6 + [3, 3, 4] and search["completed"]
seen = collections.Counter()
for line in map(json.loads, open("hop/visits.jsonl")):
    seen[line["model"], line["epoch"], line["partition"]] += 1
assert set(seen.values()) == {1}
assert len(seen) == 2 * sum(t["epochs"] for t in search["trials"])
END

# All diverge: that is a failure of the search, and is said.
echo '{"lr": [1e6], "momentum": [0.99]}' >wild.json
expect 1 search wild.json --algorithm grid --out wild --warmup 0 -e 30
said 'all diverged'
is "$(found wild "s['trials'][0]['status'], s['best']")" "('diverged', None)" "a search that diverged"

# wrong SPACE TEXT [OPTION...]
wrong() {
    echo "$1" >wrong.json
    expect 2 search wrong.json --out wrong-out ${3:-}
    said "$2"
}
wrong '' 'wrong.json:2:0: not valid JSON'
: >empty.json
expect 2 search empty.json --out wrong-out
said 'empty.json:1:0: not valid JSON: it is empty'
wrong '{"lr": [0.1],' 'wrong.json:2:'
wrong '{"lr": [0.1], "lr": [0.2]}' 'wrong.json:1:'
wrong '[1]' 'wrong.json is not an object like {"lr": [0.1, 0.3]}, nor a list of such'
wrong '[]' 'has 0 spaces'
wrong '[{"lr": [0.1]}, {"lr": 3}]' 'wrong.json: space 2: "lr": it is neither a list of values nor a range, such as'
wrong '{"grad-accum": {"min": 1, "max": 2.5, "integer": true}}' '"grad-accum": an "integer" range has whole numbers'
wrong '{"grad-accum": {"min": 1, "max": 2, "integer": 1}}' '"integer" is true or false'
wrong '{"optimizer": ["sgd", "adamw"], "nesterov": [true]}' '--nesterov needs an --optimizer that has it' --algorithm=grid
said 'belong in spaces of their own: [{'
expect 1 search missing.json --out wrong-out
said 'missing.json'
wrong '{}' 'has no settings'
wrong '{"rate": [1]}' '"rate": there is no such option'
wrong '{"batch": [1]}' '"batch": it is the same for all models'
wrong '{"name": ["a"]}' "makes the models' names"
wrong '{"lr": []}' 'neither a list of values nor a range'
wrong '{"lr": 1}' 'neither a list of values nor a range'
wrong '{"lr": [-1]}' 'trial 0: "lr": '
wrong '{"lr": {"min": 1}}' 'needs numbers min and max'
wrong '{"lr": {"min": 2, "max": 1}}' 'needs numbers min and max'
wrong '{"lr": {"min": 0, "max": 1, "scale": "log"}}' 'is above 0'
wrong '{"lr": {"min": 0.1, "max": 1, "scale": "ln"}}' 'linear or log'
wrong '{"lr": {"min": 0.1, "max": 1, "step": 1}}' 'alone'
wrong '{"lr": {"min": 0.1, "max": 1, "points": 1}}' 'from 2 to 1000'
wrong '{"lr": {"min": 0.1, "max": 1}}' 'needs "points"' "--algorithm=grid"
wrong '{"epochs": [1, 2]}' 'give -e' "--algorithm=halving"
for options in "--skip-validation" "--algorithm halving --validate-every 2" "--reduction-factor 2" "--min-epochs 2" \
    "--algorithm grid --trials 3" "--run-epochs 1" "--algorithm halving --min-epochs 1.5"; do
    expect 2 search space.json --out wrong-out $options
done
expect 1 search space.json --out early --budget 0.001s
said '--budget ended before any validation'
for wrong in '--budget 1h' '--objective loss' '--configs space.json'; do
    expect 2 run -d data $wrong --out wrong-out
    said "${wrong%% *} is not an option of the command run"
done
expect 2 search space.json --configs space.json --out wrong-out
said '--configs is not an option of the command search'
expect 2 run search -d data --out wrong-out
said 'search needs --space FILE'
[ ! -e wrong-out ] || fail "wrong usage made a folder"
explained algorithm dl2-train search -d data
