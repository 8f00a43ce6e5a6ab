#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each figure of a study's files that cannot be is named with what is expected, and its file is not used.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
need_python json python3
study=$work/study page=$work/page.html
dl2-report --list figures >"$work/figures" || fail "no list of figures"

# Every row of the table, by a value below and one above its range, one that is not whole, and a text.
cat >"$work/each.py" <<'PY'
import json, math, os, shutil, subprocess, sys
work = sys.argv[1]
study = work + "/each"
TOP = {"dl2-experiment/1": {"completed": True}}
# Where a file of each schema lies; {} is a number, so that one report reads many. One that is alone has no number.
PLACES = {"dl2-variant/1": "variants/v{}/dl2-variant.json", "dl2-quality/1": "quality/v{}.json",
          "dl2-load/1": "load/v{}.json", "dl2-experiment/1": "train/raw/net/seed-{}/experiment_report.json",
          "dl2-rate/1": "throughput/net/raw/round-{}.json",
          "dl2-evaluation/1": "train/raw/net/seed-{}/evaluation/evaluation_report.json",
          "dl2-search/1": "search.json", "dl2-survey/1": "survey.json", "dl2-crops/2": "crops/crops.json",
          "dl2-timeline/1": "timelines/t{}.json"}

def nest(field, value, beside):
    """The JSON that has `value` at `field`, and the way to it in messages."""
    name, dot, rest = field.partition(".")
    many = name.endswith("[]")
    name = name.removesuffix("[]").split("|")[-1]
    name = "any" if name == "*" else name
    inner, way = nest(rest, value, beside) if dot else (value, "")
    own = {name: [inner] if many else inner}
    if not dot:
        own.update(beside)
    return own, name + ("[0]" if many else "") + ("." if way else "") + way

def alternatives(field):
    """x.a|b is x.a and x.b."""
    for at, part in enumerate(parts := field.split(".")):
        if "|" in part:
            tail = "[]" if part.endswith("[]") else ""
            for own in part.removesuffix("[]").split("|"):
                yield from alternatives(".".join(parts[:at] + [own + tail] + parts[at + 1:]))
            return
    yield field

def report():
    env = dict(os.environ)
    done = subprocess.run(["dl2-report", study, "--gnuplot", work + "/none", "-o", work + "/each.html"],
                          capture_output=True, text=True, env=env)
    return done.stderr + open(work + "/report.json").read().replace('\\"', '"')

def put(path, schema, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump({"schema": schema, **TOP.get(schema, {}), **content}, file)

def begin():
    shutil.rmtree(study, ignore_errors=True)
    put(study + "/load/raw.json", "dl2-load/1", {})

cases, wanted, alone = 0, {}, []
begin()
for line in open(work + "/figures"):
    schema, field, unit, low, high, whole, above = line.rstrip("\n").split("\t")
    low, high = float(low), float(high)
    wrong = ["many"] + [low - 1] * math.isfinite(low) + [high + 1] * math.isfinite(high)
    wrong += [max(low, 0) + 0.5] if whole == "whole" else []
    tries = [(value, {}) for value in wrong] + ([] if above == "-" else [(0.75 if high == 1 else 2, {above: 0.5 if high == 1 else 1})])
    if schema == "dl2-variant.jsonl":
        continue
    for own in alternatives(field):
        for value, beside in tries:
            cases += 1
            content, way = nest(own, value, beside)
            path = "%s/%s" % (study, PLACES[schema].format(cases))
            if schema == "dl2-evaluation/1":
                put(os.path.dirname(os.path.dirname(path)) + "/experiment_report.json", "dl2-experiment/1",
                    {"final": [{"top1": 0.5 + cases / 1e6, "loss": 1 + cases / 1e3}]})
            message = "%s: %s is %s: expected " % (path, way, json.dumps(value) if isinstance(value, str) else "%g" % value)
            if "{}" in PLACES[schema]:
                put(path, schema, content)
                wanted[message] = schema
            else:
                alone.append((path, schema, content, message))
said = report()
missing = [text for text in wanted if text not in said]
for path, schema, content, message in alone:
    begin()
    put(path, schema, content)
    if message not in report():
        missing.append(message)
assert cases > 500, cases
assert not missing, "%d of %d are not named, such as\n%s\nin\n%s" % (len(missing), cases, "\n".join(missing[:5]), said[:3000])
PY
"$PYTHON3" "$work/each.py" "$work" || fail "figures that cannot be: see above"

# What users write: percentages, PSNR as top-1, a negative size; each with what is expected, on the page, too.
two_jpegs "$study"
trainings "$study" jpeg-50 small 0.701 0.702 0.703
trainings "$study" jpeg-10 small 70.1 -0.5 130.2
load "$study" jpeg-10 -3
sed -i 's/"images_per_second"/"peak_rss_bytes": -1, &/' "$study/load/jpeg-50.json"
expect 1 dl2-report --gnuplot "$work/none" "$study" -o "$page"
report=experiment_report.json
for text in "train/jpeg-10/small/seed-1/$report: epochs[1].val[0].top1 is 70.1: expected a fraction from 0 to 1; 70.1% is 0.701" \
    "train/jpeg-10/small/seed-2/$report: epochs[1].val[0].top1 is -0.5: expected a fraction from 0 to 1" \
    "train/jpeg-10/small/seed-3/$report: epochs[1].val[0].top1 is 130.2: expected a fraction from 0 to 1" \
    "load/jpeg-10.json: images_per_second is -3: expected a number of images/s, 0 or more" \
    "load/jpeg-50.json: peak_rss_bytes is -1: expected a whole number of bytes, 0 or more"; do
    said "$study/$text"
    says "$page" "$study/$text"
done
is "$(grep -c expected "$work/err")" 5 "figures that are named"

# A line of a variant's list, where it is read.
rm -r "$study/train/jpeg-10"
load "$study" jpeg-10 3300
load "$study" jpeg-50 2900
echo '{"key": "train/rose/1", "bytes": -5}' >"$study/variants/jpeg-50/dl2-variant.jsonl"
touch -d 2001-01-01 "$study"/train/jpeg-50/small/seed-*/$report
expect 1 dl2-report --gnuplot "$work/none" "$study" -o "$page"
said "jpeg-50/dl2-variant.jsonl: bytes is -5: expected a whole number of bytes, 0 or more"

# Of trials of a search, too.
mkdir "$study/search" "$study/search/a"
echo '{"schema": "dl2-experiment/1", "epochs": [{"position": 1, "val": [{"top1": 55}]}]}' >"$study/search/a/$report"
echo '{"schema": "dl2-search/1", "trials": [{"name": "a", "report": "a/experiment_report.json"}]}' >"$study/search/search.json"
expect 1 dl2-report --gnuplot "$work/none" "$study" -o "$page"
said "search/a/$report: epochs[0].val[0].top1 is 55: expected a fraction from 0 to 1; 55% is 0.55"
exit 0
