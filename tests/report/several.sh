#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report of several studies: what they say together, and what is left out.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
page=$work/page/report.html
report() { dl2-report --gnuplot "$work/none" "$@" -o "$page"; }

# dataset NAME JPEG-50 JPEG-10 WEBP-50: a study of three seeds whose variants lose so many points, with an
# error of 0.05 points or so. $network (small), $training_hash (NAME).
dataset() {
    study=$work/studies/$1
    load "$study" raw 900
    variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
    variant "$study" jpeg-10 jpeg 10 1000000 25.9 0.815 2900
    variant "$study" webp-50 webp 50 1600000 31.9 0.925 5000
    for seed in 1 2 3; do
        train_one "$1" raw $seed 0
        train_one "$1" jpeg-50 $seed "$2"
        train_one "$1" jpeg-10 $seed "$3"
        train_one "$1" webp-50 $seed "$4"
    done
}
train_one() { # NAME VARIANT SEED LOSS
    comparable="{\"epochs\": ${epochs:-2}, \"image_size\": 32, \"mean\": [${#1}]}, \"data_hashes\": {\"training\": [\"${training_hash:-$1}\"], \"validation\": [\"v-$1\"]}"
    top1=$(awk -v seed="$3" -v loss="$4" -v name="$2" 'BEGIN {
        noise = loss ? (seed * length(name) + int(7 * loss)) % 3 - 1 : 0
        print 0.7 + 0.01 * seed - (loss + 0.05 * noise) / 100 }')
    training "$work/studies/$1" "$2" "${network:-small}" "$3" "$top1"
}
dataset birds 0.5 4 0.3
dataset flowers 0.3 0.4 0.2
dataset tools 0.6 0.2 0.4
cd "$work/studies" || exit 99

# jpeg-50 is within 2 points on all three, and so jpeg-10 is tested: on at least two.
expect 0 report --tolerance 2 birds flowers tools
cat >"$work/expected" <<'EOF'
                 mean top-1 accuracy    one more       datasets
variant   bytes  points (95% interval)  dataset        within 2 points
original  100%
jpeg-10   5%     −1.5 (−6.8 to +3.8)    −12.2 to +9.1  at least 2 of 3
webp-50   8%     −0.3 (−0.5 to −0.1)    −0.8 to +0.2   all 3
jpeg-50   10%    −0.5 (−0.8 to −0.1)    −1.2 to +0.3   all 3
EOF
says "$work/out" "jpeg-10 is within 2 points on at least 2 of 3 datasets, 20 times smaller." \
    " On birds jpeg-10 loses more than 2 points. With 3 datasets these intervals are wide."
head -6 "$work/out" | diff - "$work/expected" || fail 'another table'
says "$page" "jpeg-10: mean accuracy −1.5 points (95% interval " "Within on all 3 datasets: webp-50, 12.5 times smaller, mean accuracy −0.3 points"
says "$page" "How far can these 3 datasets be compressed?" "3 studies with like settings: birds, flowers, tools." \
    "| at least 2 of 3 |" "| all 3 |" \
    "one more dataset"
[ ! -s "$work/err" ] || grep -q "plots could not be drawn" "$work/err" || fail "$(cat "$work/err")"
if command -v gnuplot >/dev/null 2>&1; then
    expect 0 dl2-report --tolerance 2 birds flowers tools -o "$page"
    [ ! -s "$work/err" ] || fail "$(cat "$work/err")"
    says "$page" "[Each dataset and their mean]"
fi
[ -s "$work/page/plots/forest-small.gp" ] || fail "no plot"
expect 0 report --quiet --title 'our photographs' birds/ flowers/ ./tools
[ ! -s "$work/out" ] || fail "--quiet says $(cat "$work/out")"
says "$page" "How far can our photographs be compressed?"

# A larger variant that is not within on all ends its codec.
dataset tools 5 0.2 0.4
expect 0 report --tolerance 2 birds flowers tools
says "$work/out" "webp-50 is within 2 points on all 3 datasets"
says "$page" "at least 2 of 3" "not tested"
says "$work/out" "jpeg-10   5%" "not tested"

# Nothing is shown: which variant comes nearest, and what would tell more.
expect 0 report --tolerance 0.3 birds flowers
says "$work/out" "No smaller variant is shown to be within 0.3 points on most datasets." "webp-50   8%" \
    "With 2 datasets" "More seeds"
expect 0 report --tolerance 0.1 birds flowers
says "$work/out" "No smaller variant has a mean within."
dataset tools 0.6 0.2 0.4

# Looks share the error: what is claimed of one look need not be of several.
expect 0 report --tolerance 0.6 birds flowers tools
says "$work/out" "webp-50 is within 0.6 points on all 3 datasets"
expect 0 report --tolerance 0.6 --interim 2,3,40 birds flowers tools
says "$work/out" "No smaller variant is shown"

# One dataset twice, by folder, by fingerprint, by its images.
ln -s birds again
expect 1 report birds again
said "birds and again are studies of the same dataset (they are one folder), so that they are not independent"
mkdir flowers/.make tools/.make
echo 0123456789abcdef >flowers/.make/dataset
echo 0123456789abcdef >tools/.make/dataset
expect 1 report birds flowers tools
said "flowers and tools are studies of the same dataset (their fingerprints are equal)"
echo 1123456789abcdef >tools/.make/dataset
training_hash=birds dataset copy 0.5 4 0.3
expect 1 report birds flowers copy
said "birds and copy are studies of the same dataset (their training images are the same)"

# Other settings are left out and named; so is what one study alone has.
epochs=6 dataset longer 9 9 9
expect 0 report --tolerance 2 longer birds flowers
said "left out: longer, small: unlike birds, epochs is 6, not 2"
says "$work/out" "webp-50 is within 2 points on all 2 datasets"
says "$page" "these 2 datasets" "2 studies with like settings: birds, flowers." "1 result is left out" "- longer, small: unlike birds, epochs is 6, not 2"
expect 1 report longer birds
said "have nothing in common"
said "longer, small: no other study has results like it"
network=large dataset birds 0.5 4 0.3
network=large dataset flowers 0.5 4 0.3
sed -i 's/"options": {}/"options": {"subsampling": "444"}/' tools/variants/jpeg-?0/dl2-variant.json
sed -i 's/"options": {}/"options": {"subsampling": "420"}/' birds/variants/jpeg-?0/dl2-variant.json \
    flowers/variants/jpeg-?0/dl2-variant.json
rm -r tools/train/webp-50 flowers/train/webp-50
expect 0 report --tolerance 2 birds flowers tools
said 'tools, jpeg-50: unlike birds, subsampling is "444", not "420"'
said "birds, webp-50, small: no other study has results like it"
says "$page" "large" "small" "and all networks of this page"
says "$work/out" "large:" "small:"
expect 0 report --variants 'raw jpeg-50' birds flowers
said "birds: webp-50: not among the variants of this study"
silent "$page" "| jpeg-10 |"
sed -i 's/"options": {.*}, "encoder"/"options": {}, "encoder"/' ./*/variants/jpeg-?0/dl2-variant.json

# A variant without a size has no place in the order, and one training no interval.
rm -r birds/train/*/large flowers/train/*/large tools/variants/webp-50 tools/quality/webp-50.json
for seed in 1 2 3; do train_one tools webp-50 $seed 0.2; done
expect 1 report --tolerance 2 birds flowers tools
said "tools, webp-50, small: its size is not known"
said 'webp-50: its size is not known, so it cannot be recommended: expected "bytes" in tools/variants/webp-50/dl2-variant.json or tools/quality/webp-50.json'
rm -r birds/train/*/small/seed-[23]
expect 1 report --tolerance 2 birds flowers tools
said "birds, jpeg-50, small: too few trainings for an interval; train from more seeds"
says "$work/out" "jpeg-10 is within 2 points on all 2 datasets"

# What is broken in one of them is named, and the rest counts. A folder that is none is an error.
: >tools/train/jpeg-10/small/seed-1/experiment_report.json
expect 1 report --tolerance 2 birds flowers tools
said "tools/train/jpeg-10/small/seed-1/experiment_report.json"
says "$page" "tools"
expect 1 report birds nowhere
said "nowhere is not a folder"
for option in --command=x --trainings=x --bootstrap=9 --accuracy=9; do
    expect 2 report $option birds flowers
    said "has no effect on several studies"
done
exit 0
