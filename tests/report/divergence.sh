#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A seed that diverged is named, with the answer with and without it, and widens no other variant's interval.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
need_python json python3
study=$work/study page=$work/page/report.html
val_images=2000
report() { expect 0 dl2-report --gnuplot "$work/none" --tolerance 2 "$study" -o "$page"; }
silent() { ! grep -q 'diverged: ' "$work/out" "$page" || fail "diverged: $(grep -h diverged "$work/out")"; }
interval() { # NAME: of its difference
    "$PYTHON3" -c 'import json, sys
v = json.load(open(sys.argv[1]))["networks"]["small"]["variants"][sys.argv[2]]
print("%.1f to %.1f" % tuple(v["interval"]))' "$work/page/answer.json" "$1"
}
edit() { sed "$2" "$1" >"$work/edited" && cat "$work/edited" >"$1" || fail "$1"; }
two_jpegs "$study"
variant "$study" webp-50 webp 50 1300000 31.9 0.925 500
trainings "$study" raw small 0.701 0.712 0.703
trainings "$study" jpeg-10 small 0.695 0.704 0.701
trainings "$study" jpeg-50 small 0.702 0.708 0.705
trainings "$study" webp-50 small 0.703 0.709 0.702
report
silent
before=$(interval webp-50)

# One of three seeds at chance: named, counted, and the answer without it.
training "$study" jpeg-50 small 2 0.1
report
for text in "1 training diverged: seed 2 on jpeg-50 (10.0% top-1; its other seeds 70.2 to 70.5%). The answer counts it." \
    "With it, webp-50 is the smallest that is shown to lose less than 2 points; without, jpeg-10 is the smallest that is shown" \
    "With it jpeg-50 changes by −20.3 points" "; without, it changes by +0.1 points"; do
    says "$work/out" "$text"
    says "$page" "$text"
done
"$PYTHON3" - "$before" "$(interval webp-50)" <<'PY' || fail "webp-50's interval, from $before, is $(interval webp-50)"
import sys
(a, b), (c, d) = ([float(x) for x in text.split(" to ")] for text in sys.argv[1:])
assert d - c < 1.5 * (b - a), sys.argv
PY

# Where it is not what is recommended, the answer is the same.
training "$study" jpeg-50 small 2 0.708
training "$study" webp-50 small 2 0.1
report
says "$work/out" "seed 2 on webp-50 (10.0% top-1; its other seeds 70.2 to 70.3%)" \
    "Without it the answer is the same: jpeg-10 is the smallest that is shown to lose less than 2 points."

# A loss that is not a number, and a diverged original: all variants are told with and without.
training "$study" webp-50 small 2 0.709
edit "$study/train/webp-50/small/seed-3/experiment_report.json" 's/"loss": 1.3, "top1": 0.702, "top5": 1}\],$/"loss": null, "top1": 0.702, "top5": 1}],/'
training "$study" raw small 1 0.12
report
says "$work/out" "2 trainings diverged: seed 1 on the original (12.0% top-1; its other seeds 70.3 to 71.2%), seed 3 on webp-50 (70.2% top-1; its other seeds 70.3 to 70.9%). The answer counts them." \
    "With them jpeg-10 " "With them jpeg-50 " "With them webp-50 "

# Bad variants, and small validation sets, diverge by no seed.
trainings "$study" raw small 0.701 0.712 0.703
trainings "$study" webp-50 small 0.12 0.1 0.11
report
silent
val_images=20
trainings "$study" raw small 0.7 0.75 0.65
trainings "$study" jpeg-10 small 0.7 0.6 0.65
trainings "$study" jpeg-50 small 0.7 0.3 0.65
trainings "$study" webp-50 small 0.65 0.7 0.75
report
silent
exit 0
