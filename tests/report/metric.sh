#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report on what another trainer hands back: a metric of any name, unit and direction.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
need_python json python3
study=$work/study page=$work/page/report.html
report() { dl2-report --gnuplot "$work/none" "$study" "$@" -o "$page"; }

# handed NAME SEED VALUE: a training whose trainer handed back that, of $metric (JSON)
handed() {
    mkdir -p "$study/train/$1/net/seed-$2"
    cat >"$study/train/$1/net/seed-$2/experiment_report.json" <<JSON
{"schema": "dl2-experiment/1", "variant": "$1", "arch": "net", "seed": $2, "completed": true, "seconds": 7,
 "trainer": {"command": ["python3", "train.py", "%d"], "files": {}, "result": "result.json"},
 "comparable": {"trainer": {"command": "1"}, "settings": {"lr": 0.1}},
 "epochs": [{"epoch": 0, "seconds": 3, "images": 800, "val": [{"metric": $metric, "value": $3}]}],
 "final": [{"name": "$1", "path": "data/$1", "metric": $metric, "value": $3}]}
JSON
}
# handed_all LOSS50 LOSS10 BASE: three seeds of the original and of two variants, which lose so much of BASE
handed_all() {
    rm -rf "$study/train"
    for seed in 1 2 3; do
        handed raw $seed "$(awk "BEGIN { print $3 + 0.0001 * $seed * $3 }")"
        handed jpeg-50 $seed "$(awk "BEGIN { print $3 - $1 - 0.0001 * ($seed % 2) * $3 }")"
        handed jpeg-10 $seed "$(awk "BEGIN { print $3 - $2 + 0.0001 * ($seed % 3) * $3 }")"
    done
}
# plain: the page's text, but the names of files
plain() { page_text "$page" | grep -v '^The plots could not' >"$work/text"; }
silent() { for words in "$@"; do ! grep -qi -- "$words" "$work/text" || { grep -i -- "$words" "$work/text" >&2; fail "the page says '$words'"; }; done; }
variant "$study" jpeg-10 jpeg 10 700000 26.125 0.78 3300
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
load "$study" raw 900

# ---- A fraction, higher is better: in percent, its differences in points; by its name and no other
metric='{"name": "metrics/mAP50-95(B)", "unit": "fraction", "higher_is_better": true}'
handed_all 0.002 0.1 0.42
expect 0 report
plain
says "$work/out" "Use jpeg-50: " "shown to lose less than 1 point of metrics/mAP50-95(B); it" "  metrics/mAP50-95(B)  " \
    "  points (95% interval)" "original  100%   42.0%  " "jpeg-50   10%    −0.2 (−0.2 to −0.2)*  "
says "$work/text" "The metric is metrics/mAP50-95(B), as the trainer reports it." "metrics/mAP50-95(B), %" "difference, points" \
    "Verdicts and intervals count the chance of training alone: the trainer hands back a number for each training, so the chance of which validation images there are is not in them." \
    "Tolerance: 1 point of metrics/mAP50-95(B), which is a metric that the trainer reports."
silent "top-1" "top-5" accura "best epoch"
says "$work/page/plots/accuracy-bytes-net.gp" "set ylabel 'metrics/mAP50-95(B), points to the original'"
says "$work/page/answer.json" '"accuracy": "metrics/mAP50-95(B)"' '"higher_is_better": true' '"unit": "percent"'
# In percent of the original's
expect 0 report --tolerance 0.2%
says "$work/out" "No smaller variant is shown to lose less than 0.2% (0.084 points), and each one"
expect 0 report --tolerance 2%
plain
says "$work/out" "Use jpeg-50: " "shown to lose less than 2% (0.84 points) of metrics/mAP50-95(B)"
says "$work/text" "Tolerance: 2% of the original's measured metrics/mAP50-95(B) (0.84 points)" "above −0.84:"
says "$work/page/answer.json" '"tolerance_percent": 2.0'
for wrong in 2%% % -1 60% 0% two nan; do
    expect 2 report --tolerance "$wrong"
    said "'$wrong' is neither a number, 0 or more, nor a part of the original's accuracy above 0% and up to 50%"
done

# ---- Percent, of the best epoch
metric='{"name": "eval_top1", "unit": "percent", "higher_is_better": true}'
handed_all 0.2 10 71.5
for name in raw jpeg-50 jpeg-10; do sed -i 's/"final": .*"value": [^}]*/&, "best": true/' "$study"/train/$name/net/seed-*/experiment_report.json; done
expect 0 report
plain
says "$work/out" "to lose less than 1 point of eval_top1" "−0.2 (−0.2 to −0.2)*"
says "$work/text" "Each training's eval_top1 is that of its best epoch, which was chosen by these validation images: it is better than new images would show, for the original as for variants." "71.5"

# ---- Nats, lower is better: 1% of the original's unless a tolerance is named; more digits
metric='{"name": "val_loss", "unit": "nats", "higher_is_better": false}'
handed_all -0.002 -0.1 0.93
expect 0 report
plain
says "$work/out" "Use jpeg-50: " "shown to be worse by less than 1% (0.0093 nats) of val_loss; it" "  val_loss, better by " "  nats (95% interval) " \
    "original  100%   0.930 nats" "jpeg-50   10%    −0.002 (−0.00"
says "$work/text" "The metric is val_loss in nats, as the trainer reports it. Lower is better: a difference above 0 is an improvement." \
    "val_loss, nats" "better by, nats" "0.932" "−0.100 (" 
silent points accura "lose" "gains"
"$PYTHON3" - "$work/page/answer.json" <<'PY' || fail "answer.json of a loss"
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["metric"] == {"name": "val_loss", "unit": "nats", "higher_is_better": False}, answer["metric"]
own = answer["networks"]["net"]["variants"]["jpeg-50"]
assert abs(own["accuracy"] - 0.931938) < 1e-9 and abs(own["difference"] + 0.001752) < 1e-9, own
assert abs(answer["networks"]["net"]["tolerance"] - 0.0093) < 1e-5, answer["networks"]["net"]["tolerance"]
PY
# A tolerance in the metric's unit; one that was recorded counts next time, and a change is said.
expect 0 report --tolerance 0.02
says "$work/out" "to be worse by less than 0.02 nats of val_loss"
keep=$study/report/report.html
expect 0 dl2-report --gnuplot "$work/none" "$study" --tolerance 3% -o "$keep"
cp "$study/report/plan.json" "$work/plan.json"
says "$work/plan.json" '"percent": 3.0'
sed -i '/^find/d' "$work/bin/dl2-report" # plans stay from here on
expect 0 dl2-report --gnuplot "$work/none" "$study" -o "$page"
says "$work/out" "by less than 3% (0.0279 nats)"
expect 0 dl2-report --gnuplot "$work/none" "$study" --tolerance 0.02 -o "$keep"
says "$keep" "Changed after results were seen: tolerance from 3% to 0.02 nats"
rm -r "$study/report"

# ---- A unit without a name, and one whose values are large
metric='{"name": "AUC", "unit": "", "higher_is_better": true}'
handed_all 0.0005 0.1 0.91
expect 0 report --tolerance 0.01
plain
says "$work/out" "Use jpeg-50: " "shown to lose less than 0.01 of AUC; it" "  AUC  " "  (95% interval)  " "original  100%   0.910  " "jpeg-50   10%    −0.001 ("
says "$work/text" "0.910"
silent points nats

# ---- What compares, and what does not: another name, unit or direction; another command or setting
metric='{"name": "F1", "unit": "", "higher_is_better": true}'
handed jpeg-10 3 0.7
expect 0 report --tolerance 0.01
said "left out: jpeg-10, net, seed 3: its accuracy is F1, that of the trainings before it AUC"
metric='{"name": "AUC", "unit": "", "higher_is_better": true}'
handed jpeg-10 3 0.7
sed -i 's/"lr": 0.1/"lr": 0.2/' "$study/train/jpeg-10/net/seed-3/experiment_report.json"
expect 0 report --tolerance 0.01
said "jpeg-10, net, seed 3"
# Seeds that change nothing tell nothing: of two each, and of three, which are no chance
rm -r "$study/train"
for seed in 1 2; do handed raw $seed 0.91; handed jpeg-50 $seed 0.90; done
sed -i 's/"epochs": \[.*\],$/"epochs": [],/' "$study"/train/*/net/seed-*/experiment_report.json
expect 0 report --tolerance 0.05
plain
says "$work/out" "no smaller variant is shown to lose less than 0.05 of AUC" "−0.010 (no interval)"
says "$work/text" "All seeds have one value for each variant, so nothing is known of the chance of training, and nothing is claimed. Does the training use its seed?"
handed jpeg-50 3 0.90
sed -i 's/"epochs": \[.*\],$/"epochs": [],/' "$study/train/jpeg-50/net/seed-3/experiment_report.json"
expect 1 report --tolerance 0.05
said "train/jpeg-50/net/seed-2/experiment_report.json: its AUC is that of seed 1 (0.9): expected another, as trainings from other seeds have; does the training use its seed?"

# ---- What cannot be: each is named, and its file is not used
handed_all 0.0005 0.1 0.91
refused() { # EXPECTED: of seed 2 of jpeg-10, as it was just written
    expect 1 report --tolerance 0.01
    said "$study/train/jpeg-10/net/seed-2/experiment_report.json: $1"
}
cat >"$work/change.py" <<'PY'
import json, sys
path, change = sys.argv[1:]
report = json.load(open(path))
final = report["final"]
metric, value = final[0]["metric"], final[0]["value"]
exec(change)
json.dump(report, open(path, "w"))
PY
tried() { # CHANGE EXPECTED
    metric='{"name": "AUC", "unit": "", "higher_is_better": true}' handed jpeg-10 2 0.81
    "$PYTHON3" "$work/change.py" "$study/train/jpeg-10/net/seed-2/experiment_report.json" "$1" || fail "cannot change a report: $1"
    refused "$2"
}
both='report["epochs"][0]["val"][0]["metric"] = metric;'
tried "metric.update(unit='fraction'); $both final[0]['value'] = 73.1; report['epochs'] = []" "final[0].value is 73.1: expected a fraction from 0 to 1; 73.1% is 0.731"
tried "metric.update(unit='percent'); $both final[0]['value'] = -1; report['epochs'] = []" "final[0].value is -1: expected a number of percent from 0 to 100"
tried "final[0]['value'] = 'many'" 'final[0].value is "many": expected a number from -1e+12 to 1e+12'
tried "final[0]['value'] = 1e300" "final[0].value is 1e+300: expected"
tried "final[0]['value'] = None" "it has no final accuracy"
tried "report['epochs'][0]['val'][0]['value'] = []" "epochs[0].val[0].value is []: expected"
tried "final[0]['metric'] = dict(metric, name='A<b>')" "final[0].metric: expected that of the other sets of this training"
tried "metric.update(name='A<b>'); $both" "epochs[0].val[0].metric.name: expected a name of up to 64 bytes without any of"
tried "metric.update(name='x' * 65); $both" "epochs[0].val[0].metric.name: expected"
tried "metric.update(name=''); $both" "epochs[0].val[0].metric.name: expected"
tried "metric.update(name=7); $both" "epochs[0].val[0].metric.name: expected"
tried "del metric['unit']; $both" 'epochs[0].val[0].metric.unit: expected fraction, percent, or a plain text such as nats, or ""'
tried "metric.update(unit='%'); $both" "epochs[0].val[0].metric.unit: expected fraction"
tried "metric.update(higher_is_better='yes'); $both" "epochs[0].val[0].metric.higher_is_better: expected true or false"
tried "final[0]['top1'] = 0.5" "final[0].top1: expected none beside a metric"
tried "final[0]['predictions'] = 'p.npy'" "final[0].predictions: expected none beside a metric"
tried "report['epochs'][0]['val'][0] = {'top1': 0.5}" "final[0].metric: expected none, as other sets of this training have none"
tried "final.append({'top1': 0.5})" "final[1].metric: expected that of the other sets"
tried "final[0]['metric'] = 7; report['epochs'] = []" "final[0].metric.name: expected"

# ---- Outcomes: what dl2-train's predictions say, another trainer's right and wrong images say, too
cat >"$work/outcomes.py" <<'PY'
"""outcomes.py FOLDER UNIT LOSS50 LOSS10 [FORM]: 240 images; of the original a third are wrong, by seed and by chance.
FORM: csv (also: quoted, crlf), npy (S keys, f8), wide (U keys, f4), bool; iou: outcomes between 0 and 1."""
import json, os, random, struct, sys
folder, unit, loss50, loss10, form = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
def npy(path, rows, wide, number):
    size = max(len(key if wide else key.encode()) for key, _ in rows)
    descr = "[('key', '%s'), ('value', '%s')]" % ("<U%d" % size if wide else "|S%d" % size, number)
    header = "{'descr': %s, 'fortran_order': False, 'shape': (%d,), }" % (descr, len(rows))
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    for key, value in rows:
        data += key.encode("utf-32-le" if wide else "utf-8").ljust(size * (4 if wide else 1), b"\0")
        data += struct.pack({"<f8": "<d", "<f4": "<f", "|b1": "<?"}[number], value)
    open(path, "wb").write(data)
for variant, loss in (("raw", 0), ("jpeg-50", loss50), ("jpeg-10", loss10)):
    for seed in (1, 2, 3):
        dice = random.Random("%s-%d" % (variant, seed))
        rows = []
        for image in range(240):
            ease = random.Random(image).gauss(0.5, 1) - loss + dice.gauss(0, 0.3)
            value = min(1, max(0, 0.5 + ease / 4)) if form == "iou" else float(ease > 0)
            rows.append(("val/ä %d.%s" % (image, "png" if variant == "raw" else "jpg"), value))
        if seed == 2:
            rows.reverse()
        place = "%s/train/%s/net/seed-%d" % (folder, variant, seed)
        os.makedirs(place, exist_ok=True)
        scale = 100 if unit == "percent" else 1
        name = "outcomes.npy" if form in ("npy", "wide", "bool") else "o.csv"
        if name == "o.csv":
            quote = '"' if form == "quoted" else ""
            end = "\r\n" if form == "crlf" else "\n"
            lines = ["key,value"] + ["%s%s%s,%r" % (quote, key, quote, scale * value) for key, value in rows]
            mark = "\ufeff" if form == "crlf" else "" # as spreadsheets write it
            open(place + "/" + name, "w", newline="").write(mark + end.join(lines) + end)
        else:
            npy(place + "/" + name, rows, form == "wide", {"npy": "<f8", "wide": "<f4", "bool": "|b1"}[form])
        right = sum(value for _, value in rows)
        report = {"schema": "dl2-experiment/1", "variant": variant, "arch": "net", "seed": seed, "completed": True,
                  "epochs": [], "trainer": {}, "comparable": {}}
        if form == "predictions":
            report["final"] = [{"name": variant, "images": 240, "top1": right / 240, "top5": 1, "loss": seed + right / 1e4,
                                "predictions": "predictions-0.npy"}]
            open(place + "/rows", "w").write(" ".join("%s:1:%d:1" % (key.rsplit(".", 1)[0].replace(" ", "_"), value) for key, value in rows))
        else:
            report["final"] = [{"name": variant, "path": variant, "value": scale * right / 240, "outcomes": name,
                                "metric": {"name": "eval", "unit": unit, "higher_is_better": True}}]
        json.dump(report, open(place + "/experiment_report.json", "w"))
PY
# outcomes UNIT FORM [LOSS50 [LOSS10]]
outcomes() {
    rm -rf "$study/train"
    "$PYTHON3" "$work/outcomes.py" "$study" "$1" "${3:-0.02}" "${4:-0.5}" "$2" || fail "no outcomes"
}
differences() { # of each variant with its intervals, to nine digits
    "$PYTHON3" - "$work/page/answer.json" <<'PY'
import json, sys
for name, own in json.load(open(sys.argv[1]))["networks"]["net"]["variants"].items():
    numbers = [own["accuracy"], own["difference"], *(own["interval"] or []), *(own["interval_training"] or [])]
    print(name, own["images"], own["verdict"], *("%.6g" % number if number is not None else "-" for number in numbers))
PY
}
outcomes fraction predictions
for rows in "$study"/train/*/net/seed-*/rows; do
    # shellcheck disable=SC2046
    "$PYTHON3" "$srcdir/tests/report/predictions.py" "${rows%rows}predictions-0.npy" $(cat "$rows") || fail "no predictions"
done
expect 0 report --tolerance 5
differences >"$work/wanted"
[ "$(grep -c ' 240 ' "$work/wanted")" -eq 2 ] || fail "predictions of 240 images: $(cat "$work/wanted")"
for form in fraction:csv fraction:quoted percent:csv percent:crlf fraction:npy fraction:wide fraction:bool; do
    outcomes ${form%:*} ${form#*:}
    expect 0 report --tolerance 5
    differences >"$work/got"
    cmp -s "$work/got" "$work/wanted" || { diff "$work/got" "$work/wanted" >&2; fail "$form: other differences than predictions give"; }
done
plain
says "$work/text" "Verdicts and the table's intervals count two sources of chance: new trainings, and new validation images in place of these 240." \
    "The worst class is not known: that takes the classes that a network predicts."
silent "not in them" predictions top-1
expect 0 report --tolerance 5 --group 'regex:ä ([0-9]+)[0-9]$'
says "$work/out" "The 240 validation images count as 33 groups"
# Not right or wrong alone
outcomes fraction iou 0.02 0.5
expect 0 report --tolerance 3
says "$work/out" "Use jpeg-50: " "shown to lose less than 3 points of eval"
differences >"$work/got"
awk '$1 == "jpeg-50" && !($2 == 240 && $5 > -1.2 && $5 < -0.2 && $7 - $6 > 0 && $7 - $6 < 3) { exit 1 }' "$work/got" ||
    fail "outcomes between 0 and 1: $(cat "$work/got")"

# What cannot be
spoiled() { # EDIT EXPECTED: sed's edit of a file that is as it should be
    outcomes fraction csv
    sed -i "$1" "$study/train/jpeg-10/net/seed-2/o.csv"
    expect 1 report --tolerance 5
    said "$study/train/jpeg-10/net/seed-2/$2"
}
spoiled '1s/.*/image,value/' o.csv "line 1: expected the heading key,value, and a line with a key and a number for each image"
spoiled '1d' o.csv "line 1: expected the heading"
spoiled '5s/,.*//' o.csv "line 5: expected the heading"
spoiled '5s/,.*/,/' o.csv "line 5: its value is not a number"
spoiled '5s/,.*/,nan/' o.csv "line 5: its value is not a number"
spoiled '5s/,.*/,0x1/' o.csv "line 5: expected the heading"
spoiled '5s/,.*/,inf/' o.csv "line 5: expected the heading"
spoiled '5s/,.*/,1e300/' o.csv "is 1e+300: expected a number from -1e12 to 1e12"
spoiled '5s/$/,7/' o.csv "line 5: expected the heading"
spoiled '5s/^/"/' o.csv "line 5: expected the heading"
spoiled '5s/^[^,]*//' o.csv "line 5 has no key"
spoiled '5s/^[^,]*/.jpg/' experiment_report.json "the image .jpg is not in the first training"
spoiled '5p' o.csv "comes twice"
spoiled '5s|^val.ä|val/ö|' experiment_report.json "is missing here: expected the same keys of all trainings, such as paths from the dataset's folder"
spoiled 's|^val/|other/|' experiment_report.json "is not in the first training"
spoiled '2,90s/,.*/,1.0/' o.csv "the mean of its 240 outcomes is"
spoiled '2,$d' o.csv "a table without rows"
spoiled '1,$d' o.csv "expected the heading"
outcomes fraction csv
rm "$study/train/jpeg-10/net/seed-2/o.csv"
expect 1 report --tolerance 5
said "$study/train/jpeg-10/net/seed-2/o.csv"
outcomes fraction csv
sed -i 's/"outcomes": "/&..\//' "$study/train/jpeg-10/net/seed-2/experiment_report.json"
expect 1 report --tolerance 5
said "final[0].outcomes: expected the name of a file beside this one"
outcomes fraction csv
sed -i 's/"outcomes": /"images": 239, &/' "$study/train/jpeg-10/net/seed-2/experiment_report.json"
expect 1 report --tolerance 5
said "o.csv: 240 outcomes, where the report beside it has 239 images"
broken_npy() { # BYTES-OF-SED EXPECTED
    outcomes fraction wide
    LC_ALL=C sed -i "$1" "$study/train/jpeg-10/net/seed-2/outcomes.npy"
    expect 1 report --tolerance 5
    said "$study/train/jpeg-10/net/seed-2/outcomes.npy: $2"
}
broken_npy "s/'key'/'Key'/" "not a table of key (S or U) and value (a number)"
broken_npy "s/<f4/<c8/" "not a table of key (S or U) and value (a number)"
broken_npy "s/(240,)/(241,)/" "13568 bytes, which is not 241 rows of 56 after a header of 128"
broken_npy "1s/NUMPY/NUMPX/" "not a NumPy file"

# ---- A network as it is: images alone are chance, in pairs; nothing is said of seeds
cat >"$work/as_it_is.py" <<'PY'
import glob, json, os, shutil, sys
for path in glob.glob(sys.argv[1] + "/train/*/net/seed-*"):
    if not path.endswith("seed-1"):
        shutil.rmtree(path)
        continue
    report = json.load(open(path + "/experiment_report.json"))
    report.update(seed=0, inference=True)
    json.dump(report, open(path + "/experiment_report.json", "w"))
    os.rename(path, path[:-1] + "0")
PY
as_it_is() { "$PYTHON3" "$work/as_it_is.py" "$study" || fail "cannot change reports"; }
outcomes fraction csv 0.02 0.5
as_it_is
expect 0 report --tolerance 8
plain
says "$work/out" "Use jpeg-50: " "shown to lose less than 8 points of eval"
says "$work/text" "3 evaluations." "net, as it is, evaluated on 240 images. The metric is eval, as the trainer reports it." \
    "Nothing was trained: this is what compressing costs a network that exists." \
    "Verdicts and intervals count one source of chance: new images in place of these 240." "Every evaluation" "evaluated on"
silent "of training" "more seeds" "seeds each" "new training" "trainings" "trained on" "validated on"
says "$work/page/answer.json" '"inference": true'
"$PYTHON3" - "$work/page/answer.json" "$study/train" <<'PY' || fail "the interval of a network as it is"
import csv, json, math, sys
own = json.load(open(sys.argv[1]))["networks"]["net"]["variants"]["jpeg-10"]
rows = [dict((key.rsplit(".", 1)[0], float(value)) for key, value in list(csv.reader(open("%s/%s/net/seed-0/o.csv" % (sys.argv[2], name))))[1:])
        for name in ("raw", "jpeg-10")]
change = [rows[1][key] - rows[0][key] for key in rows[0]]
mean = sum(change) / 240
variance = sum((one - mean) ** 2 for one in change) / 239
half = 100 * 1.969939 * math.sqrt(variance / 240 + 1 / 240 ** 2) # Student's t of 239 degrees of freedom; one more image
assert abs(own["difference"] - 100 * mean) < 1e-6 and abs(own["interval"][1] - own["difference"] - half) < 1e-4, (own, mean, half)
assert own["interval_training"] == [own["difference"]] * 2, own
PY
expect 0 report --tolerance 4
says "$work/out" "A new study of about " " images would show it with a probability of 80%, if the true change is the measured one."
# One of dl2-train's own, by its weights
outcomes fraction predictions
for rows in "$study"/train/*/net/seed-1/rows; do
    # shellcheck disable=SC2046
    "$PYTHON3" "$srcdir/tests/report/predictions.py" "${rows%rows}predictions-0.npy" $(cat "$rows") || fail "no predictions"
done
as_it_is
expect 0 report --tolerance 8
plain
says "$work/out" "Use jpeg-50: " "shown to lose less than 8 points of top-1 accuracy"
says "$work/text" "net, as it is, evaluated on 240 images. Accuracy is top-1." "new images in place of these 240" \
    "The worst class is not known: it is judged from several trainings."
silent "of training" "more seeds" "trainings each" "trained on"
# A number alone
outcomes fraction csv
as_it_is
sed -i 's/"outcomes": "o.csv", //' "$study"/train/*/net/seed-0/experiment_report.json
expect 0 report --tolerance 30
plain
says "$work/out" "no smaller variant is shown to lose less than 30 points of eval" "(no interval)" \
    "Outcomes of images, or resamples of them, would tell how sure that is."
says "$work/text" "A number alone says nothing of chance: without outcomes of images or resamples there are no intervals, and no claims."
# Not both in one study
outcomes fraction csv
sed -i 's/"epochs": \[\]/"inference": true, &/' "$study/train/jpeg-10/net/seed-2/experiment_report.json"
expect 0 report --tolerance 5
said "left out: jpeg-10, net, seed 2: a network as it is, where those before it were trained"

# ---- Resamples: of a mean over images they say what its outcomes say; of F1, what nothing else does
cat >"$work/resamples.py" <<'PY'
"""resamples.py FOLDER METRIC COUNT [CHANGE]: 300 images of two classes, from three seeds; METRIC is mean or F1."""
import json, os, random, sys
folder, metric, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
def mix(x):
    x = (x + 0x9e3779b97f4a7c15) % 2**64
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    x = (x ^ x >> 27) * 0x94d049bb133111eb % 2**64
    return x ^ x >> 31
def resample(b, n):
    return [((mix((mix(b + 1) + i) % 2**64) >> 32) * n) >> 32 for i in range(n)]
assert resample(0, 10) == [3, 5, 7, 6, 8, 4, 1, 1, 1, 2], resample(0, 10)
def value_of(images, right):
    if metric == "mean":
        return sum(right[i] for i in images) / len(images)
    found = sum(1 for i in images if right[i] and i % 2)
    wrong = sum(1 for i in images if not right[i])
    return 2 * found / (2 * found + wrong)
draws = [resample(b, 300) for b in range(count)]
for variant, loss in (("raw", 0), ("jpeg-50", 0.03), ("jpeg-10", 0.6)):
    for seed in (1, 2, 3):
        dice = random.Random("%s/%d" % (variant, seed))
        right = [random.Random(i).gauss(1, 1) - loss + dice.gauss(0, 0.3) > 0 for i in range(300)]
        final = {"name": variant, "path": variant, "value": value_of(range(300), right),
                 "metric": {"name": metric, "unit": "fraction", "higher_is_better": True},
                 "resamples": [value_of(draw, right) for draw in draws]}
        report = {"schema": "dl2-experiment/1", "variant": variant, "arch": "net", "seed": seed, "completed": True,
                  "epochs": [], "trainer": {}, "comparable": {}, "final": [final]}
        place = "%s/train/%s/net/seed-%d" % (folder, variant, seed)
        os.makedirs(place, exist_ok=True)
        if len(sys.argv) > 4 and (variant, seed) == ("jpeg-10", 2):
            exec(sys.argv[4])
        open(place + "/o.csv", "w").write("key,value\n" + "".join("%d,%d\n" % (i, right[i]) for i in range(300)))
        json.dump(report, open(place + "/experiment_report.json", "w"))
PY
resamples() { rm -rf "$study/train"; "$PYTHON3" "$work/resamples.py" "$study" "$@" || fail "no resamples"; }
widths() { # of both intervals of a variant
    "$PYTHON3" - "$work/page/answer.json" "$1" <<'PY'
import json, sys
own = json.load(open(sys.argv[1]))["networks"]["net"]["variants"][sys.argv[2]]
print(own["interval"][1] - own["interval"][0], own["interval_training"][1] - own["interval_training"][0], own.get("resamples"))
PY
}
resamples mean 400
expect 0 report --tolerance 5
plain
says "$work/text" "Verdicts and the table's intervals count two sources of chance: new trainings, and new validation images, by the differences on 400 resamples of these."
silent ", of training alone" "not in them"
by_resamples=$(widths jpeg-10)
sed -i 's/"resamples": \[[^]]*\]/"outcomes": "o.csv"/' "$study"/train/*/net/seed-*/experiment_report.json
expect 0 report --tolerance 5
echo "$by_resamples $(widths jpeg-10)" | awk '{ exit !($3 == 400 && $6 == "None" && $5 == $2 && $1 > 1.1 * $2 && $1 < 1.12 * $4 && $1 > 0.88 * $4) }' ||
    fail "intervals by resamples $by_resamples, by outcomes $(widths jpeg-10)"
resamples F1 100
expect 0 report --tolerance 5
says "$work/out" "of F1"
[ "$(widths jpeg-50 | cut -d' ' -f3)" = 100 ] || fail "resamples of F1"
unlike() { # CHANGE EXPECTED
    resamples F1 120 "$1"
    expect 1 report --tolerance 5
    said "$study/train/jpeg-10/net/seed-2/experiment_report.json: $2"
}
unlike 'final["resamples"] = final["resamples"][:99]' "final[0].resamples: expected a list of 100 to 100000 numbers"
unlike 'final["resamples"] = 7' "final[0].resamples: expected a list"
unlike 'final["resamples"][5] = "x"' 'final[0].resamples[5] is "x": expected a fraction from 0 to 1'
unlike 'final["resamples"][5] = None' "final[0].resamples: expected numbers alone"
unlike 'final["resamples"][5] = 1.5' "final[0].resamples[5] is 1.5: expected a fraction from 0 to 1"
unlike 'final["resamples"] = final["resamples"][:110]' "110 resamples, where $study/train/raw/net/seed-1/experiment_report.json has 120: expected as many"
unlike 'final["resamples"] = [final["value"]] * 120' "all 120 resamples have one value: expected the metric of each"
unlike 'final["resamples"].reverse()' "its values on resamples do not go with those of $study/train/raw/net/seed-1/experiment_report.json: expected the same resamples, of images sorted by key"

metric='{"name": "AUC", "unit": "", "higher_is_better": true}'
rm -r "$study/train"

# ---- Several studies: of one metric alone, and each on its own page's terms
other=$work/other
handed_all 0.0005 0.1 0.91
cp -r "$study" "$other"
sed -i 's/AUC/F1/g' "$other"/train/*/net/seed-*/experiment_report.json
expect 1 dl2-report --gnuplot "$work/none" "$study" "$other" --tolerance 0.01 -o "$page"
said "$study is of AUC, $other of F1: name studies of one metric"
handed_all -0.02 0.2 0.8
mv "$study/train" "$other/train.new"
rm -r "$other/train"
mv "$other/train.new" "$other/train"
handed_all 0.0005 0.1 0.91
several() { dl2-report --gnuplot "$work/none" "$study" "$other" "$@" -o "$page"; }
for tolerance in --tolerance=1% ''; do
    # shellcheck disable=SC2086
    expect 1 several $tolerance
    said "the tolerance of several studies is in the unit of AUC, not in percent of the original's: name one by --tolerance"
done
expect 0 several --tolerance 0.01
plain
says "$work/out" "jpeg-50 is within 0.01 on all 2 datasets" "  mean AUC  " "jpeg-50   10%    +0.010 ("
says "$work/text" "Differences are in AUC to the original"
sed -i 's/AUC/loss/g; s/"higher_is_better": true/"higher_is_better": false/g' "$study"/train/*/net/seed-*/experiment_report.json \
    "$other"/train/*/net/seed-*/experiment_report.json
expect 0 several --tolerance 0.5
plain
says "$work/out" "  mean loss, better by  "
says "$work/text" "mean improvement "
says "$work/text" "Lower is better: a difference above 0 is an improvement."
exit 0
