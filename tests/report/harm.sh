#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report on what accuracy over all images hides: classes that lose, the loss, and other networks.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
[ -n "${PYTHON3:-}" ] || skip "Python is not installed: it writes the predictions"
study=$work/study page=$work/page/report.html
report() { expect 0 dl2-report --gnuplot "$work/none" --tolerance 12 "$study" -o "$page"; }

# predicted NAME NETWORK SEED ROSES LOSS: 200 images of 5 classes. Of each class every tenth is wrong, which
# moves with the seed, and of the first ROSES more. Images have that LOSS, and a third of them a hundredth more a
# seed. Variables: keys (val/%s/%03d: of class and number), classes (their names).
predicted() {
    "$PYTHON3" - "$3" "$4" "$5" "${keys:-val/%s/%03d}" "${classes:-rose tulip lily iris daisy}" >"$work/rows" <<'PY'
import sys
seed, roses, loss, keys, classes = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:]
for i in range(200):
    names = classes.split()
    target, place = i % len(names), i // len(names)
    wrong = (place + seed) % 10 == 0 or (target == 0 and 10 < place <= 10 + roses)
    key = keys % ((names[target], i) if "%s" in keys else i)
    print("%s:%d:%d:1:%g" % (key, target, (target + wrong) % len(names), loss + seed / 100 * (i % 3)))
PY
    top1=$(awk -F: '{ right += $2 == $3 } END { print right / NR }' "$work/rows")
    predictions=predictions-0.npy training "$study" "$1" "$2" "$3" "$top1"
    # shellcheck disable=SC2046
    "$PYTHON3" "$srcdir/tests/report/predictions.py" "$study/train/$1/$2/seed-$3/predictions-0.npy" \
        $(cat "$work/rows") || fail "no predictions"
}
load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
variant "$study" webp-50 webp 50 3000000 31.9 0.925 5000
trainings() { # NETWORK ROSES: that jpeg-50 loses
    for seed in 1 2 3; do
        predicted raw "$1" $seed 0 0.5
        predicted jpeg-50 "$1" $seed $(($2 + seed % 2)) 0.7
        predicted webp-50 "$1" $seed $((seed % 2)) 0.5
    done
}

# ---- Classes: 7 points of top-1 are 37 of the roses'
trainings small 15
report
says "$page" "## Which classes lose" "jpeg-50: 1 class is shown to lose: rose. The worst measured is rose (−36.7 points of recall" \
    "The worst of 5 measurements is biased" "These images do not exclude a class that loses up to " \
    "the lower end of the interval of rose, which has 40 validation images. In a class of few images" \
    "| rose | 40 | 90.0 | −36.7 (" ") loses |" \
    "| tulip | 40 | 90.0 | 0.0 (" \
    "| rose, 40 images | rose, −1.7 | none |"
says "$work/page/plots/classes-small-jpeg-50.dat" "1 -36.66" " 40 rose" "2 0 " " 40 tulip"
# The first screen, in order: what is recommended, the worst class, what is open, what it is about, what went wrong.
last=0
page_text "$page" >"$work/text"
for words in " less than 12 points of top-1 accuracy, at " "Worst class measured: rose, −36.7 points of recall. Shown to lose: rose; one that loses up to " \
    "pen" "small, input of 32 pixels squared" "Nothing was wrong with trainings" "Fastest to load"; do
    at=$(grep -nF -- "$words" "$work/text" | head -1 | cut -d: -f1)
    [ -n "$at" ] && [ "$at" -ge "$last" ] || fail "'$words' is on line ${at:-none}, what comes before it on line $last"
    last=$at
done
silent "$page" "From one network to another"

# ---- The loss: of every image by 0.2, while top-1 is within
says "$page" "| loss, nats |" "| 0.520 |" \
    "| +0.200 (+0.1" "| 0.000 (−0.0" \
    "“Higher” is harm that accuracy hides"
[ "$(grep -c ") higher |" "$said")" -eq 1 ] || fail "not one variant whose loss alone is higher"
grep -q "^| jpeg-50 |.*) within |.*) higher |" "$said" || fail "harm that accuracy hides"
# One that is not a number is no difference.
predicted webp-50 small 2 0 nan
report
says "$page" "| – |" "+0.200"

# ---- Names: folders, or numbers where keys have none or do not tell classes apart; few images
keys=%06d
trainings small 15
report
says "$page" "1 class is shown to lose: class 0."
keys=val/%s/%03d classes="rose rose lily iris daisy"
trainings small 15
report
says "$page" "1 class is shown to lose: class 0."
# 101 classes: the last two have one image.
keys=%06d classes=$(seq -s ' ' 101)
trainings small 0
report
says "$page" "The 10 worst by measurement; 89 other classes are left out of the table." \
    " 2 classes have fewer than two validation images (or groups of them): nothing is said of them."
[ "$(grep -c '^[0-9]' "$work/page/plots/classes-small-jpeg-50.dat")" -eq 99 ] || fail "the plot lacks classes"
unset keys classes
trainings small 15

# ---- One training each says nothing of chance
for seed in 2 3; do rm -r "$study"/train/*/small/seed-$seed; done
report
silent "$page" "Which classes lose"
says "$page" "| +0.200 |"

# ---- Networks: one loses the roses, the other none; and one without predictions
trainings small 15
trainings wide 0
report
says "$page" "From one network to another" "What a variant loses depends on the network in 1 of 2 comparisons" \
    "| small −7.3 | wide −0.3 | −7.0 (" "| small loses more |" \
    "the same within " "
wide
"
trainings wide 15
report
says "$page" "No variant was shown to cost one network more than another."
silent "$page" "loses more |"
for seed in 1 2 3; do training "$study" jpeg-50 wide $seed 0.82$seed; done
report
says "$page" ", of training alone)"
exit 0
