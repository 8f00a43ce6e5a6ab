#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report compares what can be compared, and names the rest.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
study=$work/study page=$work/page/report.html
report() { dl2-report --gnuplot "$work/none" "$@" -o "$page"; }
silent() { # FILE WORDS...
    said=$1; shift
    for words in "$@"; do ! grep -qF -- "$words" "$said" || fail "${said##*/} says '$words'"; done
}

# First a study of two codecs with three seeds and two epochs, then one of jpeg with two seeds and six.
load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
variant "$study" webp-50 webp 50 1300000 31.9 0.925 5000
epochs=2
for seed in 1 2 3; do
    for name in raw jpeg-50 webp-50; do training "$study" $name small $seed "0.30$seed"; done
done
epochs=6
for seed in 1 2; do
    training "$study" raw small $seed "0.70$seed"
    training "$study" jpeg-50 small $seed "0.69$seed"
done
runs="raw/small/seed-1 raw/small/seed-2 jpeg-50/small/seed-1 jpeg-50/small/seed-2"
expect 0 report --variants "raw jpeg-50" --trainings "$runs" "$study"
# Means of 70.1 and 70.2, and of 69.1 and 69.2: nothing of the first study is in them.
says "$page" "| 70.1 |" "| 69.1 |" "Trainings from 2 seeds each" "4 trainings." "3 results are left out"
silent "$page" "| 30.2" "| webp-50 |"
for text in "webp-50: not among the variants of this study" \
    "raw, small, seed 3: not among the trainings of this study" \
    "jpeg-50, small, seed 3: not among the trainings of this study"; do
    says "$work/err" "dl2-report: left out: $text"
    says "$page" "- $text"
done
[ "$(grep -c 'left out' "$work/err")" -eq 3 ] || fail "more is left out: $(cat "$work/err")"
says "$work/out" "Use jpeg-50: "
# What is left out need not be whole.
echo '{' >"$study/load/webp-50.json"
echo '{' >"$study/train/raw/small/seed-3/experiment_report.json"
expect 0 report --variants raw,jpeg-50 --trainings "$runs" "$study"
load "$study" webp-50 5000
epochs=2 training "$study" raw small 3 0.303
epochs=6

# Without lists: as most of the original's trainings were; each other is named with what differs.
expect 0 report "$study"
says "$page" "| 70.1 |" "| 69.1 |"
silent "$page" "| 30.2"
for text in "raw, small, seed 3: unlike the trainings that are shown, epochs is 2, not 6" \
    "jpeg-50, small, seed 3: unlike the trainings that are shown, epochs is 2, not 6" \
    "webp-50, small, seed 1: unlike the trainings that are shown, epochs is 2, not 6" \
    "webp-50, small, seed 3: unlike the trainings that are shown, epochs is 2, not 6"; do
    says "$work/err" "left out: $text"
    says "$page" "- $text"
done
silent "$work/out" webp-50
# Undecided by the original: as most are. Then: as the newest.
epochs=2 training "$study" raw small 2 0.302
rm -r "$study/train/raw/small/seed-3" # 6, 2
expect 0 report "$study"
says "$work/err" "raw, small, seed 1: unlike the trainings that are shown, epochs is 6, not 2"
rm -r "$study/train/webp-50" "$study/train/jpeg-50/small/seed-3" "$study/train/jpeg-50/small/seed-2"
epochs=2 training "$study" jpeg-50 small 2 0.302 # of each: 6 and 2
touch -d 2001-01-01 "$study/train/raw/small/seed-2/experiment_report.json" \
    "$study/train/jpeg-50/small/seed-2/experiment_report.json"
expect 0 report "$study"
says "$work/err" "raw, small, seed 2: unlike the trainings that are shown, epochs is 2, not 6"
# A report's own list of what bears on accuracy is what counts, beside one without a list too.
comparable='{"epochs": 6, "lr": 0.5, "stages": [1, 2]}' epochs=2 training "$study" raw listed 1 0.8
comparable='{"epochs": 6, "lr": 0.5, "stages": [1, 2]}' epochs=9 training "$study" raw listed 2 0.8
comparable='{"epochs": 6, "lr": 0.25, "stages": [2, 1]}' training "$study" jpeg-50 listed 1 0.8
epochs=2 training "$study" jpeg-50 listed 2 0.8
expect 0 report "$study"
says "$work/err" "jpeg-50, listed, seed 1: unlike the trainings that are shown, lr is 0.25, not 0.5; stages is [2,1], not [1,2]" \
    "jpeg-50, listed, seed 2: unlike the trainings that are shown, epochs is 2, not 6"
silent "$work/err" "raw, listed"
rm -r "$study"/train/*/listed
# Networks are compared by themselves.
epochs=9.0 training "$study" raw large 1 0.8
epochs=9.0 training "$study" raw large 2 0.8
epochs=7.5 training "$study" jpeg-50 large 1 0.8
expect 0 report "$study"
says "$work/err" "left out: jpeg-50, large, seed 1: unlike the trainings that are shown, epochs is 7.5, not 9"
silent "$work/err" "raw, large"

# Loading that was measured otherwise ranks nothing.
rm -r "$study"
epochs=2 load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
batch=32 variant "$study" webp-50 webp 50 1300000 31.9 0.925 5000
for seed in 1 2 3; do
    for name in raw jpeg-50 webp-50; do training "$study" $name small $seed "0.70$seed"; done
done
expect 0 report "$study"
says "$work/err" "left out: loading webp-50: not measured as the original's was, batch is 32, not 64"
says "$work/out" "Use webp-50: " "; jpeg-50, which is within, "

# A variant that lacks a seed is said to.
rm -r "$study/train/jpeg-50/small/seed-3"
expect 0 report "$study"
says "$page" "jpeg-50 was trained from 2 of the original's 3 seeds"

# Images that the original has lost, or never had.
expect 0 report "$study"
silent "$page" "not in the original" "where the original has"
extra='"train/rose/gone", "train/rose/g\u001bne"' variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
loaded=1015 load "$study" webp-50 5000
images=815 val_images=202 training "$study" webp-50 small 2 0.702
expect 0 report "$study"
says "$page" "quality jpeg-50: 2" "train/rose/gone: not in the original" "load webp-50: 1" \
    "1015 images, where the original has 1000" "train webp-50, small: 1" \
    "seed 2: trained on 815 images and validated on 202, where the original has 800 and 200"
says "$work/err" "4 things went wrong with images on the way; the page names them"
silent "$page" "Nothing that"

# What others were validated on has its own name, whatever its place; the original is the original.
rm -r "$study"
load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
for seed in 1 2; do
    paths='"photos", "/other/set"' \
        sets=', {"name": "set", "images": 9, "loss": 1, "top1": 0.11, "top5": 0.5}' \
        training "$study" raw small $seed 0.701
    paths='"study/jpeg-50", "photos", "/other/set", "/third/set"' \
        sets=', {"name": "photos", "images": 200, "loss": 1, "top1": 0.66, "top5": 0.9},
            {"name": "set", "images": 9, "loss": 1, "top1": 0.22, "top5": 0.5},
            {"name": "set", "images": 9, "loss": 1, "top1": 0.33, "top5": 0.5}' \
        training "$study" jpeg-50 small $seed 0.691
done
mkdir -p "$study/time/90x/train"
expect 0 report "$study"
said 'left out: time/90x: no time such as 90s, 30m or 2h'
says "$page" "| trained on | itself | the original | /other/set | /third/set |" \
    "| original | 70.1 ± 0.0 {own +0.00} |" \
    "| 11.0 ± 0.0 | – |" \
    "| jpeg-50 | 69.1 ± 0.0 {own -0.24} | 66.0 ± 0.0 {-1.00} | 22.0 ± 0.0 | 33.0 ± 0.0 |"
[ "$(grep -o '| the original |' "$said" | wc -l)" -eq 1 ] || fail "not one original"

# Rates, waiting and energy are those that were measured by themselves, not the trainings'.
silent "$page" "## Speed" "0.125"
[ ! -e "$work/page/plots/accuracy-train-small.dat" ] || fail "a plot by rates of trainings"
for round in 1 2; do
    rate "$study" small raw $round 400
    rate "$study" small jpeg-50 $round 1200
    rate "$study" small webp-99 $round 9000
done
batch=32 rate "$study" small jpeg-50 2 2400
expect 0 report --variants "raw jpeg-50" "$study"
says "$page" "| 400 ± 0 | 6.2 ± 0.0 | 0.125 ± 0.000 |" \
    "| 1200 |"
silent "$page" 9000 2400
says "$work/err" "left out: the speed of small on jpeg-50, round 2: not measured as the original's was, batch is 32, not 64" \
    "left out: webp-99: not among the variants of this study"
says "$page" "jpeg-50 is the fastest to train on of those within 1 point: 1200 images/s, 3 times the original's (measured once"
[ -s "$work/page/plots/accuracy-train-small.dat" ] || fail "no plot by the rate of training alone"
# Of trainings that shared the machine, or may have, the card's figures are not shown.
for trainers in 3 ''; do
    for seed in 1 2; do training "$study" jpeg-50 small $seed 0.691; done
    expect 0 report "$study"
    silent "$work/page/plots/timeline-small-jpeg-50.dat" " 250" " 95 "
    says "$work/page/plots/timeline-small-raw.dat" "1 200 50 75 20 90 50 2 4 2 1 2 0 250"
done
rm -r "$study/throughput"

# A variant that was made from other images, or with other settings, than its like: its trainings and
# what is made of them are left out. So are trainings on files that a variant had before.
rm -r "$study"
for name in jpeg-50 jpeg-60 jpeg-70 webp-50 webp-60; do
    variant "$study" $name "${name%-*}" "${name#*-}" "${name#*-}0000" 30.9 0.915 2900
    for seed in 1 2 3; do training "$study" $name small $seed "0.70$seed"; done
done
for seed in 1 2 3; do training "$study" raw small $seed "0.70$seed"; done
edit() { sed "$2" "$1" >"$work/edited" && cat "$work/edited" >"$1" || fail "$1"; }
edit "$study/variants/jpeg-60/dl2-variant.json" 's/"source_bytes": 2/"source_bytes": 3/'
edit "$study/variants/webp-60/dl2-variant.json" 's/"options": {}/"options": {"effort": 9}/'
edit "$study/variants/webp-50/dl2-variant.json" 's/"options": {}/"options": {"effort": 4}/'
touch -d 2001-01-01 "$study/variants/webp-50/dl2-variant.json"
edit "$study/train/jpeg-70/small/seed-2/experiment_report.json" 's/"train_bytes": 1/"train_bytes": 2/'
touch -d 2001-01-01 "$study/train/jpeg-70/small/seed-2/experiment_report.json"
expect 0 report "$study"
for text in "trainings on jpeg-60: it was made from other images than other variants, source_bytes is 30000000, not 20000000" \
    "trainings on webp-50: it was made with other settings than others of its codec, effort is 4, not 9" \
    "jpeg-70, small, seed 2: trained on other files than the variant's newest training, train_bytes is 2, not 1"; do
    says "$page" "- $text"
done
[ "$(grep -c 'left out' "$work/err")" -eq 3 ] || fail "more is left out: $(cat "$work/err")"
says "$page" "11 trainings." "jpeg-70 was trained from 2 of the original's 3 seeds"
# A variant that was made anew: scores and trainings are those of its files before, as far as bytes tell.
edit "$study/variants/jpeg-70/dl2-variant.json" 's/"bytes": 700000/"bytes": 600000/'
for n in $(seq 1000); do
    split=$([ "$n" -le 800 ] && echo train || echo val)
    echo "{\"key\": \"$split/rose/$n\", \"path\": \"$split/rose/$n.jpg\", \"bytes\": 600}"
done >"$study/variants/jpeg-70/dl2-variant.jsonl"
edit "$study/train/jpeg-70/small/seed-1/experiment_report.json" 's/"train_bytes": 1/"train_bytes": 480000/'
edit "$study/train/jpeg-70/small/seed-2/experiment_report.json" 's/"train_bytes": 2/"train_bytes": 1/'
touch -d 2001-01-01 "$study"/train/jpeg-70/small/seed-*/experiment_report.json
expect 0 report "$study"
for text in "scores of jpeg-70: of other files than the variant has now, bytes is 700000, not 600000" \
    "jpeg-70, small, seed 2: trained on other files than the variant has now, train_bytes is 1, not 480000" \
    "jpeg-70, small, seed 3: trained on other files than the variant has now, train_bytes is 1, not 480000"; do
    says "$page" "- $text"
done
[ "$(grep -c 'left out' "$work/err")" -eq 5 ] || fail "more is left out: $(cat "$work/err")"
# Trainings after it are on its files.
edit "$study/variants/jpeg-70/dl2-variant.json" 's/"bytes": 600000/"bytes": 700000/'
touch -d 2000-01-01 "$study/variants/jpeg-70/dl2-variant.json"
rm "$study/train/jpeg-70/small/seed-1/experiment_report.json"
expect 0 report "$study"
silent "$work/err" "than the variant has now"
# A failed image is missing in the sums: no other source.
edit "$study/variants/jpeg-60/dl2-variant.json" 's/"failed": \[\]/"failed": [{"path": "a", "error": "b"}]/'
expect 0 report "$study"
silent "$work/err" "trainings on jpeg-60"
exit 0
