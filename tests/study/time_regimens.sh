#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The goals study-time and study-regimens: what they train, once, and what the report says of it.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
unset BUDGETS REGIMENS TUNING
small() { study IMAGE_SIZE=16 QUALITIES=50 TRAIN_ON=jpeg-50 "$@"; }
page=results/report/report.html
field() { sed -n "s/^ *\"$2\": \"*\([^\",]*\).*/\1/p" "$1" | head -n 1; }

# ---- Before anything is made
expect 2 small study-time
said 'study-time needs BUDGETS'
expect 2 small study-time BUDGETS='1s 2d'
said 'BUDGETS is "1s 2d": 2d is no time'
expect 2 small study-regimens TRAIN_ON=
said 'study-regimens needs a variant in TRAIN_ON, or REGIMENS'
expect 2 small study-regimens REGIMENS='jpeg-50:1,raw:1 jpeg-10:1,raw:1'
said 'REGIMENS is "jpeg-50:1,raw:1 jpeg-10:1,raw:1": jpeg-10:1,raw:1: jpeg-10 is neither raw nor among the variants'
expect 2 small study-regimens REGIMENS='jpeg-50:0,raw:1'
said 'REGIMENS is "jpeg-50:0,raw:1"'
expect 2 small study-regimens REGIMENS='jpeg-50:1:size=7,raw:1'
said 'is not a folder and its epochs'
[ ! -e results/variants ] || fail "something was made before the variables were checked"

# ---- Within a time
expect 0 small study-time BUDGETS='2s 1s'
for budget in 1s 2s; do
    for run in raw/convnet/seed-1 raw/convnet/seed-2 jpeg-50/convnet/seed-1 jpeg-50/convnet/seed-2; do
        report=results/time/$budget/train/$run/experiment_report.json
        [ "$(field $report completed)" = true ] || fail "no training $report"
        [ "$(field $report time-budget)" = "${budget%s}.0" ] || fail "$report: budget $(field $report time-budget)"
        [ "$(field $report trainers)" = 1 ] || fail "$report: not alone"
    done
done
[ ! -e results/train ] || fail "study-time trains for itself alone"
grep -q 'Accuracy within a time' $page || fail "the report says nothing of the times"
for text in 'within 1s' 'within 2s' 'on the way, within 2s'; do
    grep -q "$text" $page || fail "the report has no '$text'"
done
awk '/^[0-9]/ { n++ } END { exit n != 4 }' results/report/plots/time-convnet.dat ||
    { cat results/report/plots/time-convnet.dat >&2; fail "not two variants within two times"; }
grep -q '^[0-9]' results/report/plots/time-curves-convnet.dat || fail "no way there"
touch mark
sleep 0.05
expect 0 small study-time BUDGETS='2s 1s'
[ -z "$(find results/time -newer mark -name experiment_report.json)" ] || fail "trained again"

# ---- In stages
expect 0 small study-regimens REGIMENS='jpeg-50:1,raw:1 jpeg-50:1:size=8,raw:1 raw:1:freeze,jpeg-50:0.5'
for run in 2/train/raw 2/train/jpeg-50.1+raw.1 2/train/jpeg-50.1.size-8+raw.1 1.5/train/raw \
    1.5/train/raw.1.freeze+jpeg-50.0.5; do
    for seed in 1 2; do
        report=results/regimens/$run/convnet/seed-$seed/experiment_report.json
        [ "$(field $report completed)" = true ] || fail "no training $report"
    done
done
[ "$(find results/regimens -name experiment_report.json | wc -l)" -eq 10 ] || fail "more trainings than asked for"
is "$(field results/regimens/2/train/jpeg-50.1+raw.1/convnet/seed-1/experiment_report.json variant)" jpeg-50+data "stages"
is "$(field results/regimens/2/train/raw/convnet/seed-1/experiment_report.json epochs)" 2.0 "the original's epochs"
grep -A 3 '"final"' results/regimens/1.5/train/raw.1.freeze+jpeg-50.0.5/convnet/seed-1/experiment_report.json |
    grep -q '"name": "jpeg-50"' || fail "not validated on the last stage's variant"
grep -q 'left out' "$work/err" && fail "a regimen is left out: $(cat "$work/err")"
for text in '2 epochs on' '1.5 epochs on' 'jpeg-50:1,raw:1"' 'jpeg-50:1:size=8,raw:1"' 'raw:1:freeze,jpeg-50:0.5"'; do
    grep -qF "$text" $page || fail "the report has no '$text'"
done
grep -q '^1 ' results/report/plots/regimens-2-convnet.dat && grep -q '^2 ' results/report/plots/regimens-2-convnet.dat ||
    fail "no differences of two regimens"
touch mark
sleep 0.05
expect 0 small study-regimens REGIMENS='jpeg-50:1:size=8,raw:1'
[ -z "$(find results/regimens -newer mark -name experiment_report.json)" ] || fail "trained again"
expect 0 small clean-study
[ ! -e results ] || fail "clean-study left $(find results | head -n 3)"
exit 0
