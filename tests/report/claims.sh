#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report with predictions: both sources of chance, broken files, and decide.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
[ -n "${PYTHON3:-}" ] || skip "Python is not installed: it writes the predictions"
study=$work/study page=$work/page/report.html
report() { dl2-report --gnuplot "$work/none" "$@" -o "$page"; }

# predicted FOLDER NAME SEED WRONG: of 200 images, the first 60 and WRONG others, which move with the
# seed, are wrong; the order of the rows differs, too.
predicted() {
    top1=$(awk "BEGIN { print (140 - $4) / 200 }")
    predictions=predictions-0.npy training "$1" "$2" small "$3" "$top1"
    rows=$(awk -v seed="$3" -v wrong="$4" 'BEGIN {
        for (k = 0; k < 200; k++) {
            i = (k * 7 + seed) % 200
            bad = i < 60 || (i - 60 + 140 - 3 * seed) % 140 < wrong
            printf "val/c/%03d:%d:%d:1 ", i, i % 5, (i + bad) % 5
        } }')
    "$PYTHON3" "$srcdir/tests/report/predictions.py" \
        "$1/train/$2/small/seed-$3/predictions-0.npy" $rows || fail "no predictions"
}
load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
variant "$study" jpeg-10 jpeg 10 1000000 25.9 0.815 2900
variant "$study" webp-50 webp 50 1300000 31.9 0.925 5000
for seed in 1 2 3; do
    predicted "$study" raw $seed 0
    predicted "$study" jpeg-50 $seed $((2 + seed / 3))
    predicted "$study" jpeg-10 $seed $((60 + seed % 2))
    predicted "$study" webp-50 $seed $((4 - seed % 2))
done
expect 0 report --tolerance 6 "$study"
says "$work/out" "Use webp-50: " "the smallest that is shown to lose less than 6 points of"
says "$page" "By the chance of training alone the intervals are " "count two sources of chance: new trainings, and new validation images in place of these 200" \
    "which 2 codecs share" ") worse |"
silent "$page" "kept no predictions"
silent "$page" "bootstrap"
expect 0 report --tolerance 6 --bootstrap 500 "$study"
says "$page" "the pigeonhole bootstrap draws seeds and images anew, 500 times" "| bootstrap |"
grep -q "^| webp-50 |.*| −[0-9.]* to [−+0-9.]* |" "$said" || fail "no interval of the bootstrap"
# Two codecs share the probability of a wrong claim, so that an interval within is not enough; and what
# is uncertain is the choice of 200 images, which no seeds change.
expect 0 report --tolerance 3 "$study"
says "$work/out" "Use jpeg-50: " "the smallest that is shown to lose less than 3 points" "Open: webp-50. Its own interval is" \
    "Its own interval is within, but its bound as one of several claims, with an error of 0.94%, is −3.4 points." \
    " seeds and about " " validation images would show it with a probability of 65 to 90%, by simulation."

# Broken, of another training, or missing: named, and judged by the trainings alone.
file=train/webp-50/small/seed-2/predictions-0.npy
cp "$study/$file" "$work/kept"
spoiled() { # WORDS: what the report says of it
    expect 1 report --tolerance 6 "$study"
    says "$work/err" "$file" "$1"
    says "$work/out" "Use webp-50: " "to lose less than 6 points" ")*  " "* By the chance of training alone; that of the choice of images is not known."
    says "$page" "Where predictions are missing they count the trainings alone."
    cp "$work/kept" "$study/$file"
}
head -c 1000 "$work/kept" >"$study/$file"; spoiled "which is not 200 rows of"
cp "$study/train/jpeg-10/small/seed-2/predictions-0.npy" "$study/$file"; spoiled "it is of another training"
: >"$study/$file"; spoiled "not a NumPy file"
rm "$study/$file"; spoiled "No such file"
sed 's/predictions-0.npy/..\/seed-1\/predictions-0.npy/' "$study/train/webp-50/small/seed-2/experiment_report.json" \
    >"$work/report.json"
cp "$work/report.json" "$study/train/webp-50/small/seed-2/experiment_report.json"
expect 1 report --tolerance 6 "$study"
says "$work/err" "which is not a file's name"
predicted "$study" webp-50 2 4
expect 0 report --tolerance 6 "$study"
# None at all: as earlier versions trained.
cp -R "$study" "$work/old"
find "$work/old" -name '*.npy' -exec rm {} +
for file in "$work"/old/train/*/*/*/experiment_report.json; do
    sed 's/, "predictions": "[^"]*"//' "$file" >"$work/report.json" && cp "$work/report.json" "$file"
done
expect 0 dl2-report --gnuplot "$work/none" --tolerance 3 "$work/old" -o "$page"
says "$page" "kept no predictions (earlier versions keep none)"
says "$work/out" "Use webp-50: " "to lose less than 3 points" "* By the chance of training alone"

# For dl2-study: what is decided, and how many seeds the next look needs.
need_python json python3
looks=2,3,5
decides() { # TOLERANCE, and "VARIANT STATE SEEDS" of each
    expect 0 dl2-report --interim $looks --tolerance "$1" decide "$study"
    shift
    "$PYTHON3" - "$work/out" "$@" <<'PY' || fail "decide: see above"
import json, sys
told = json.load(open(sys.argv[1]))
assert told["schema"] == "dl2-decisions/1", told
found = ["%s %s %d" % (d["variant"], d["state"], d["seeds"]) for d in told["decisions"] if d["network"] == "small"]
assert found == sys.argv[2:], found
PY
}
rm -r "$study/train/jpeg-50/small/seed-3" "$study/train/jpeg-10/small/seed-3"
decides 25 "jpeg-10 undecided 0" "jpeg-50 within 0" "webp-50 within 0" "raw done 0"
decides 6 "jpeg-10 beyond 0" "jpeg-50 open 3" "webp-50 within 0" "raw open 3"
decides 4 "jpeg-10 beyond 0" "jpeg-50 open 3" "webp-50 open 5" "raw open 5"
# Seeds would hardly decide what is close to the limit.
decides 2.5 "jpeg-10 beyond 0" "jpeg-50 open 3" "webp-50 undecided 0" "raw open 3"
# A file that is smaller than one that is beyond can't be claimed.
variant "$study" jpeg-05 jpeg 5 500000 25.9 0.815 2900
predicted "$study" jpeg-05 1 1; predicted "$study" jpeg-05 2 1
decides 6 "jpeg-05 waits 0" "jpeg-10 beyond 0" "jpeg-50 open 3" "webp-50 within 0" "raw open 3"
looks=2
decides 6 "jpeg-05 behind 0" "jpeg-10 beyond 0" "jpeg-50 within 0" "webp-50 within 0" "raw done 0"
expect 0 report --interim 2,3,5 --tolerance 6 "$study"
says "$page" "looks after 2, 3 and 5; all looks share the 2.5%"
for looks in 3,2 1,2 x 2,,3 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18; do
    expect 2 dl2-report --interim "$looks" decide "$study"
done
exit 0
