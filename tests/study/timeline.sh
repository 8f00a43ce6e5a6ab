#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# TIMELINE=yes: each step writes a timeline, also one that fails, and the page has a picture of them.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need_python json python3
expect 2 study survey TIMELINE=maybe
said 'TIMELINE is "maybe": it is yes or no'
expect 0 study survey
[ ! -e results/timelines ] || fail "timelines, and nobody wanted them"
expect 0 study report QUALITIES=50 TIMELINE=yes
steps() { sed -n 's/.*"command": "\(.*\)",/\1/p' results/timelines/dl2-study-*.json | LC_ALL=C sort | tr '\n' ' '; }
is "$(steps)" "crops detectable load/jpeg-50 load/raw quality report throughput train/jpeg-50/convnet/seed-1 \
train/jpeg-50/convnet/seed-2 train/raw/convnet/seed-1 train/raw/convnet/seed-2 variants " "the steps"
page_text results/report/report.html >page
grep -q '^## The machine over the study$' page && grep -qF "[The machine $(uname -n)]" page || { cat page >&2; fail "no picture"; }
made_again results/report/report.html | grep -q 'timeline=yes\|TIMELINE=yes' || fail "the command to make it again has no TIMELINE"
grep -c '"complete": true' results/timelines/*.json | grep -v ':1$' | grep -q . && fail "steps that ended are incomplete"
# Those of another program, which fails
echo 'exit 3' >own.sh
expect 1 dl2_study run train DATASET=data OUT=own QUALITIES=50 SEEDS='1 2' TIMELINE=yes TRAIN_WITH='sh own.sh %d %s %o'
grep -l '"command": "train/raw/own/seed-1"' own/timelines/*.json | xargs grep -q '"complete": true' || fail "a training that failed"
# A folder that can't be written
rm -r results/timelines results/survey.json
: >results/timelines
expect 1 study survey TIMELINE=yes
said "TIMELINE: results/timelines"
[ ! -e results/survey.json ] || fail "a step was done without its timeline"
rm results/timelines
expect 0 study survey TIMELINE=yes
expect 0 study clean-study
[ ! -e results ] || fail "clean-study left $(ls results)"
