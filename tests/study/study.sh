#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study with the real programs on a tiny dataset: what is made, and what is not made again.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
# What was made since `mark`: one file for each thing, without logs and locks.
news() {
    find results -newer mark -type f ! -path '*/.make/*' ! -name study-plan.json ! -name log ! -name '*.safetensors' \
        ! -name '*.npy' ! -path '*/crops/*.png' | LC_ALL=C sort
}
mark() { sleep 0.05; touch mark; sleep 0.05; }

# What is in the dataset.
expect 0 study survey
grep -q '^png  *32 ' "$work/out" || fail "no survey"
[ ! -e results/variants ] || fail "survey makes variants"

# Stage by stage, then all.
expect 0 study QUALITIES='10 50' variants
[ -f results/variants/jpeg-10/val/fine/3.jpg ] || fail "no variant"
[ ! -e results/quality ] || fail "variants doesn't stop there"
expect 0 study QUALITIES='10 50' variants quality
[ -f results/quality/jpeg-50.json ] || fail "no scores"
grep -q '"input_size": 8,' results/quality/jpeg-50.json || fail "no scores at the networks' size"
[ ! -e results/load ] && [ ! -e results/train ] || fail "quality doesn't stop there"
expect 0 study QUALITIES='10 50'
for file in load/raw.json load/jpeg-10.json train/raw/convnet/seed-1/experiment_report.json \
    throughput/convnet/raw/round-2.json throughput/load/jpeg-10/round-1.json \
    train/jpeg-50/convnet/seed-2/experiment_report.json crops/crops.json report/report.html; do
    [ -f "results/$file" ] || fail "no $file"
done
grep -q '"heading": "Speed"' results/report/report.json || fail "the report has no speeds"
grep -q '"trainers": 1' results/throughput/convnet/raw/round-1.json || fail "not measured alone"
grep -qF "The report: $work/results/report/report.html" "$work/out" || fail "the report's path isn't said"

# Nothing twice, but the answer.
dl2-report answer results >"$work/answer" && [ -s "$work/answer" ] || fail "no answer"
echo "The report: $work/results/report/report.html" >>"$work/answer"
grep -q '^original  100%  ' "$work/answer" && grep -qE '^(Use|Keep|No )' "$work/answer" || fail "no table, or nothing to use: $(cat "$work/answer")"
tail -n "$(wc -l <"$work/answer")" "$work/out" | cmp - "$work/answer" || fail "the study ends without its answer"
mark
expect 0 study QUALITIES='10 50'
[ -z "$(news)" ] || fail "made again: $(news)"
cmp "$work/out" "$work/answer" || fail "the answer is not printed again"
expect 0 planned QUALITIES='10 50'
grep -q '^[0-9]* steps, 0 to be done$' "$work/out" || fail "to be made again: $(cat "$work/out")"

# What training would wait for: beside the study, and once.
expect 0 study QUALITIES='10 50' analyze
grep -q '^jpeg-10 .* [0-9.]*$' "$work/out" || fail "no table of what training would wait for"
grep -q '"psnr_rgb"' results/analysis/convnet.json || fail "no quality in the analysis"
mark
expect 0 study QUALITIES='10 50' analyze
[ -z "$(news)" ] || fail "analyzed again: $(news)"

# Every network on every variant: beside its training, and once.
mark
expect 0 study QUALITIES='10 50' matrix
is "$(news | grep -c 'evaluation/evaluation_report.json$') $(news | wc -l)" '6 6' "evaluations"
is "$(grep '"name"' results/train/jpeg-50/convnet/seed-2/evaluation/evaluation_report.json |
    sed 's/.*: "//; s/".*//' | paste -sd ' ')" "jpeg-50-convnet-seed-2 data jpeg-10 jpeg-50" "evaluated on"
[ -f results/train/raw/convnet/seed-1/evaluation/predictions-2.npy ] || fail "no predictions"
mark
expect 0 study QUALITIES='10 50' matrix
[ -z "$(news)" ] || fail "evaluated again: $(news)"
page_text results/report/report.html | grep '^| trained on .* jpeg-10 |' >/dev/null && fail "evaluations before the report was made again"
expect 0 study QUALITIES='10 50'
page_text results/report/report.html | grep '^| trained on .* jpeg-10 |' >/dev/null || fail "the report does not show the evaluations"
page_text results/report/report.html | grep '^\[jpeg-50 .*SSIM' >/dev/null || fail "the report shows no crops"

# Groups of images are a part of the question: the report is made again, and nothing else.
for group in 'regex:^val/([^/]*/[1-4])?$' survey; do
    mark
    expect 0 study QUALITIES='10 50' GROUP="$group"
    [ -z "$(news | grep -v '^results/report/')" ] || fail "made again for other groups: $(news)"
    grep -q '^The 16 validation images count as [0-9]* groups' "$work/out" || fail "groups have no effect"
    case $group in survey) said=survey ;; *) said="'$(printf %s "$group" | sed 's/\$/$$/')'" ;; esac
    grep -qF "GROUP=$said" results/report/report.html || fail "the command lacks GROUP"
done
grep -qF '(results/survey-groups.tsv)' results/report/report.html || fail "not the survey's groups"
expect 0 study QUALITIES='10 50'
! grep -q 'validation images count as' results/report/report.html || fail "groups stay"

# An added quality: that variant, its score, its speed, its trainings, and the report.
expect 0 study QUALITIES='10 30 50'
cat >expected <<LIST
results/crops/crops.json
results/load/jpeg-30.json
results/quality/jpeg-30.json
results/train/jpeg-30/convnet/seed-1/experiment_report.json
results/train/jpeg-30/convnet/seed-2/experiment_report.json
LIST
news | grep -v -e '^results/report/' -e '^results/variants/jpeg-30/' -e '^results/throughput/' >made
cmp -s made expected || { cat made; fail "an added quality made the above"; }
[ -f results/variants/jpeg-30/train/fine/1.jpg ] || fail "no jpeg-30"
# Speeds are compared within a round: all of them are measured again.
is "$(news | grep -c '^results/throughput/.*/round-[12].json$')" 16 "measurements of speed"
# What was interrupted goes on; more rounds than before are all made anew.
rm results/throughput/.made results/throughput/convnet/raw/round-2.json
mark
expect 0 study QUALITIES='10 30 50' throughput
is "$(news | grep -v -e '/[.]' -e order.tsv)" results/throughput/convnet/raw/round-2.json "what was missing"

# An added seed: its trainings.
mark
expect 0 study QUALITIES='10 50' SEEDS='1 2 3' train
[ "$(news | grep -c seed-3/experiment_report.json)" -eq 3 ] && [ "$(news | wc -l)" -eq 3 ] ||
    fail "an added seed made $(news)"

# Longer trainings: all of them, and nothing before them.
mark
expect 0 study QUALITIES=50 EPOCHS=2 train
[ "$(news | wc -l)" -eq 4 ] || fail "longer trainings made $(news)"
[ "$(grep -c '"lr":' results/train/raw/convnet/seed-1/experiment_report.json)" -ge 2 ] || fail "one epoch"

# Other encoder options: every variant.
mark
expect 0 study QUALITIES=50 TRANSCODE_FLAGS='--subsampling 444' variants
news | grep -qx results/variants/jpeg-50/train/fine/1.jpg || fail "options don't count"

# A variant that was cut short, and one that lost its file.
sed 's/"complete": *true/"complete": false/' results/variants/jpeg-10/dl2-variant.json >cut
mv cut results/variants/jpeg-10/dl2-variant.json
expect 0 study QUALITIES='10 50' TRANSCODE_FLAGS='--subsampling 444' variants
grep -q '"complete": *true' results/variants/jpeg-10/dl2-variant.json || fail "not completed"

# A new image in the dataset: in every variant.
cp data/train/fine/1.png data/train/fine/9.png
expect 0 study QUALITIES='10 50' TRANSCODE_FLAGS='--subsampling 444' variants
[ -f results/variants/jpeg-50/train/fine/9.jpg ] || fail "a new image isn't seen"

# An image that can't be read doesn't end the study; the report names it.
echo 'not an image' >data/train/fine/bad.png
expect 0 study QUALITIES=50 SEEDS=1
grep -q 'train/fine/bad' results/report/report.html || fail "the bad image isn't in the report"

# Lossless variants have no quality.
expect 0 study CODECS=png QUALITIES=50 OUT=lossless quality
[ -f lossless/variants/png/train/fine/1.png ] || fail "no png"
[ -f lossless/quality/png.json ] || fail "png isn't scored"

# Without train/ and val/: the programs split.
cp -R data/train tree
expect 0 study DATASET=tree OUT=tree-out QUALITIES=50 SEEDS=1

# What can't be done is said.
expect 2 study DATASET=nowhere
said 'DATASET is "nowhere": it is neither a folder'
expect 2 study DATASET='a
b'
said 'it has a line break or another control character'
expect 2 study DATASET=tree
said "holds a study of $work/data"
expect 2 study PROGRAMS="$work/no-such-folder"
said "dl2's programs"
expect 2 study TRAIN_ON=jpeg-99
said 'TRAIN_ON is "jpeg-99": jpeg-99 is not among the variants'
expect 2 study ARCHS="convnet resnet51"
said 'ARCHS is "convnet resnet51": '
mkdir keep
expect 2 study OUT=keep clean-study
[ -d keep ] || fail "clean-study took a folder that isn't a study"
expect 0 study clean-study
[ ! -e results ] || fail "clean-study left the study"
exit 0
