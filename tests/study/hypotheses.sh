#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The goal hypotheses: each is answered, by the study's own results; the copies that it made are removed, and no others.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
unset KEEP_COPIES
need_python json python3
all() { study CODECS='jpeg jpeg:subsampling=444' QUALITIES='10 75' BUDGETS=1s WORKERS=1 STORAGES='memory disk' CACHES='0 50' hypotheses "$@"; }
images() { find results/variants -name '*.jpg' | cut -d/ -f3 | sort | uniq -c | awk '{ printf "%s%s:%s", s, $2, $1; s = " " }'; }
refused 'KEEP_COPIES is "maybe": it is yes or no' hypotheses KEEP_COPIES=maybe
refused 'KEEP_COPIES is "yes": it has an effect on hypotheses only' KEEP_COPIES=yes

# One variant is there before.
expect 0 study CODECS=jpeg QUALITIES=10 variants
is "$(images)" jpeg-10:32 'before'
expect 0 all
is "$(images)" jpeg-10:32 'the images that are left'
for name in jpeg-75 jpeg_444-10 jpeg_444-75; do
    is "$(find results/variants/$name -type f | sort | paste -sd ' ')" \
        "results/variants/$name/.removed results/variants/$name/dl2-variant.json results/variants/$name/dl2-variant.jsonl" 'what is left'
done
grep -q '^Removed the images of jpeg-75, jpeg_444-10, jpeg_444-75, which this goal had made' "$work/out" || fail "nothing is said of it"
is "$(find results -name experiment_report.json | sed 's,^results/,,; s,/.*,,' | sort | uniq -c | awk '{ printf "%s %s ", $2, $1 }')" \
    'bytes 8 regimens 4 time 10 train 10 ' 'trainings'
"${PYTHON3:-python3}" - <<'PY' || fail "the answers"
import json, re
page = open("results/hypotheses.md").read()
found = json.load(open("results/hypotheses.json"))
assert found["schema"] == "dl2-hypotheses/1"
answers = {answer["hypothesis"]: answer for answer in found["answers"]}
assert list(answers) == ["H1", "H2a", "H2b", "H2c", "H3", "H4", "H5"], list(answers)
for name, answer in answers.items():
    assert answer["answer"] in ("yes", "no", "undecided"), answer  # each was measured
    assert f"## {name}: {answer['claim']}\n\n**Here: {answer['answer']}.** {answer['text']}" in page, page
    assert answer["paper"] in page and (answer["needs"] or answer["answer"] != "undecided"), answer
assert "convnet at 8 pixels, 1 epochs, 2 seeds, 16 images for training and 16 for validation" in page, page
def top1(path, seed):
    return json.load(open(f"results/{path}/convnet/seed-{seed}/experiment_report.json"))["final"][0]["top1"]
def is_said(name, before, differences):
    text, mean = answers[name]["text"], sum(differences) / len(differences)
    said = float(re.search(re.escape(before) + " ([−+]?[0-9.]+) points", text)[1].replace("−", "-"))
    assert abs(said - mean) < 0.051, (text, mean)
is_said("H2c", "as jpeg-10, in 17% of the bytes:",
        [100 * (top1("train/jpeg-10", seed) - top1("bytes/jpeg-10/train/raw", seed)) for seed in (1, 2)])
is_said("H3", "jpeg-10:0.5,raw:0.5",
        [100 * (top1("regimens/1/train/jpeg-10.0.5+raw.0.5", seed) - top1("train/raw", seed)) for seed in (1, 2)])
PY

# Nothing is to be done again without the images; what needs them again makes them.
touch mark
sleep 0.05
expect 0 all
[ -z "$(find results -newer mark -name '*_report.json')" ] || fail "trained again without a reason"
up_to_date "$(made_again results/report/report.html) JOBS=2"
is "$(images)" jpeg-10:32 'after a second run'
rm -r results/loading
expect 0 all KEEP_COPIES=yes
is "$(images)" 'jpeg-10:32 jpeg-75:32 jpeg_444-10:32 jpeg_444-75:32' 'copies to keep'
expect 0 all
is "$(images)" 'jpeg-10:32 jpeg-75:32 jpeg_444-10:32 jpeg_444-75:32' 'copies that were kept are nobody else'"'"'s'

# What was not measured is said so.
expect 0 dl2-report hypotheses results --variants "raw jpeg-10" --trainings none -o some.md
expect 0 dl2-report hypotheses results
grep -q '^\*\*Here: not measured\.\*\*' some.md || fail "all is measured: $(cat some.md)"
[ -s some.json ] || fail "no some.json"
exit 0
