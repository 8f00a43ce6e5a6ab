#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report --group: what each form of it says of the images, and what it refuses.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
[ -n "${PYTHON3:-}" ] || skip "Python is not installed: it writes the predictions"
study=$work/study page=$work/page/report.html
report() { dl2-report --gnuplot "$work/none" "$@" -o "$page"; }

# predicted NAME SEED WRONG: 60 images, val/c/PATIENT-IMAGE of 20 patients with 3 images each, and 2
# of other names.
predicted() {
    rows=$(awk -v seed="$2" -v wrong="$3" 'BEGIN {
        for (i = 0; i < 62; i++) {
            key = i < 60 ? sprintf("val/c/p%02d-%d", i / 3, i % 3) : "val/c/other" i
            printf "%s:%d:%d:1 ", key, i % 5, (i + ((i + seed) % 62 < wrong)) % 5
        } }')
    val_images=62 predictions=predictions-0.npy training "$study" "$1" small "$2" "$(awk "BEGIN { print (62 - $3) / 62 }")"
    "$PYTHON3" "$srcdir/tests/report/predictions.py" \
        "$study/train/$1/small/seed-$2/predictions-0.npy" $rows || fail "no predictions"
}
load "$study" raw 900
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
for seed in 1 2 3; do
    predicted raw $seed 6
    predicted jpeg-50 $seed 7
done

# Without: nothing is said of groups.
expect 0 report "$study" --about "Pictures of <b> patients."
! grep -q 'count as' "$page" "$work/out" || fail "groups that nobody asked for"
says "$page" "Pictures of <b> patients." "Nothing was wrong with trainings: none diverged, and no result is left out."

# An expression: its first parenthesis, or all of the match; what has no match is by itself.
of_20="The 62 validation images count as 22 groups (regex:p([0-9]+)-), whose images are gained and lost together. 2 images without a group are groups of their own."
expect 0 report "$study" --group 'regex:p([0-9]+)-'
says "$work/out" "$of_20"
says "$page" "$of_20"
! grep -q 'So few' "$page" || fail "22 groups are few"
expect 0 report "$study" --group 'regex:p[0-9]'
says "$page" "count as 4 groups (regex:p[0-9])" "So few groups make the intervals rough."
expect 0 report "$study" --group 'regex:[0-9]$'
says "$page" "count as 3 groups"
! grep -q 'without a group' "$page" || fail "all have a group"
expect 0 report "$study" --group 'regex:(p00)?-|other'
says "$page" "count as 60 groups" "59 images without a group"
expect 2 report "$study" --group 'regex:p(['
said "p([\" is not a valid extended regular expression"
expect 1 report "$study" --group 'regex:^patient'
said "--group regex:^patient matches the key of no validation image; they are like val/c/p00-0"
expect 1 report "$study" --group 'regex:^val'
said "puts all 62 validation images into one group"

# Before anything is trained: what so many images and groups can show. By Student's t of 21 degrees of
# freedom, 2.0796, and 4% of changed images: sqrt(0.04 / 62 + 1 / 62^2), and for copies, as an image is in
# 182 / 62 on average, sqrt(0.04 * 2.935 / 62 + (2 / 3 * 2.935 / 62)^2).
awk 'BEGIN { for (i = 0; i < 62; i++) {
    printf "{\"key\": \"val/c/%s\"}\n", i < 60 ? sprintf("p%02d-%d", i / 3, i % 3) : "other" i
    printf "{\"key\": \"train/c/%d\"}\n", i } }' >"$study/variants/jpeg-50/dl2-variant.jsonl"
expect 0 dl2-report detectable --output "$work/detectable" --group 'regex:p([0-9]+)-' "$study"
is "$(cat "$work/out")" "62 validation images in 22 groups: by their choice alone, 95% intervals of a change will reach about 6.3 points to each side, where 4% of the images change, and up to 11.2 if images of a group change together. Hardly any variant can be shown to lose less than 1 point: have more validation images, or a larger tolerance." 'what is detectable'
cmp "$work/out" "$work/detectable" || fail "the file says something else"
expect 0 dl2-report detectable --output "$work/detectable" --tolerance 7 "$study"
is "$(cat "$work/out")" "62 validation images: by their choice alone, 95% intervals of a change will reach about 6.0 points to each side, where 4% of the images change." 'without groups'
expect 2 dl2-report detectable --output "$work/detectable" --title x "$study"
said '--title is not an option of the command detectable'
# Splits by other names; a split that training draws, a fifth of 250 images; and a variant by itself.
list=$study/variants/jpeg-50/dl2-variant.jsonl
for split in validation Valid val2017 images/val; do
    awk -v folder=$split 'BEGIN { for (i = 0; i < 62; i++) printf "{\"key\": \"%s/%d\"}\n{\"key\": \"valley/%d\"}\n", folder, i, i }' >"$list"
    expect 0 dl2-report detectable --output "$work/detectable" --tolerance 7 "$study/variants/jpeg-50"
    is "$(cut -d: -f1 "$work/out")" '62 validation images' "the split $split"
done
awk 'BEGIN { for (i = 0; i < 250; i++) printf "{\"key\": \"c/p%d\"}\n", i / 2 }' >"$list"
expect 0 dl2-report detectable --output "$work/detectable" --tolerance 8 "$study"
drawn='Training draws the split, by default 20% of 250 images for validation. 50 validation images: by their choice alone, 95% intervals of a change will reach about 7.0 points to each side, where 4% of the images change.'
is "$(cat "$work/out")" "$drawn" 'a split that training draws'
expect 0 dl2-report detectable --output "$work/detectable" --tolerance 8 --group 'regex:p([0-9]+)' "$study"
is "$(cat "$work/out")" "$drawn Groups are not counted here: images of a group come into both splits, and accuracies are too high; make splits that keep groups together." 'groups of a split that training draws'
printf '{"key": "a"}\n{"key": "b"}\n' >"$list"
expect 0 dl2-report detectable --output "$work/detectable" "$study"
is "$(cat "$work/out")" 'Training draws the split, by default 20% of 2 images for validation. 0 validation images: no change can be shown.' 'hardly any images'
rm "$list"
expect 0 dl2-report detectable --output "$work/detectable" "$study"
none="There is no list of the variants' images here, so how small a change the validation images can show is not known before training."
is "$(cat "$work/out" "$work/detectable")" "$none
$none" 'without a list'

# A list: the last tab ends the key, and order doesn't matter.
awk 'BEGIN { for (i = 59; i >= 0; i--) printf "val/c/p%02d-%d\tpatient %d\n", i / 3, i % 3, i / 3 % 10 }' >"$work/list.tsv"
expect 0 report "$study" --group "$work/list.tsv"
says "$page" "The 62 validation images count as 12 groups ($work/list.tsv)" "2 images without a group are groups of their own."
! grep -q 'keys* of the list' "$page" || fail "all keys are of images"
{ cat "$work/list.tsv"; printf 'train/c/1\tx\nval/c/other61\ty\nwith\ttab\ty'; } >"$work/more.tsv"
expect 0 report "$study" --group "$work/more.tsv"
says "$work/out" "1 image without a group is a group of its own. 2 keys of the list are of no validation image."
listed() { # STATUS LINES WORDS
    printf "$2" >"$work/bad.tsv"
    expect "$1" report "$study" --group "$work/bad.tsv"
    said "$3"
}
listed 1 'val/c/p00-0\ta\n\n' "bad.tsv: line 2 is not a key, a tab and a group"
listed 1 'val/c/p00-0\n' "bad.tsv: line 1 is not"
listed 1 '\ta\n' "bad.tsv: line 1 is not"
listed 1 'val/c/p00-0\t' "bad.tsv: line 1 is not"
listed 1 'val/c/p00-0\ta\nx\ta\0b\n' "bad.tsv: it is not a text: byte 18 is zero"
listed 1 '' "bad.tsv: line 1 is not"
listed 1 'a\t1\nb\t1\na\t2\n' "bad.tsv: line 3 has the key of line 1 again: a"
listed 1 'train/x\t1\n' "names no validation image: its keys are like train/x, and those of the predictions like val/c/p00-0"
expect 2 report "$study" --group "$work/none.tsv"
said "none.tsv is neither a file nor regex:REGEX nor a table's address"
expect 2 report "$study" --group 'postgresql:///db?table=photos'
said "postgresql:///db?table=photos: "

# Trainings without predictions: groups would do nothing. Nothing trained: nothing to do yet.
cp -r "$study" "$work/bare"
rm "$work/bare"/train/*/small/*/predictions-0.npy
sed -i 's/, "predictions": "[^"]*"//' "$work/bare"/train/*/small/*/experiment_report.json
expect 1 report "$work/bare" --group 'regex:p([0-9]+)-'
said "--group has no effect: no training kept its predictions"
rm -r "$work/bare/train"
expect 0 report "$work/bare" --group 'regex:p([0-9]+)-'

# Two networks with other images say it twice, with equal ones once.
predicts() { sed "s/\"arch\": \"small\"/\"arch\": \"$1\"/" "$study/train/$2/small/seed-1/experiment_report.json" \
    >"$study/train/$2/$1/seed-1/experiment_report.json"; }
for variant in raw jpeg-50; do
    mkdir -p "$study/train/$variant/twin"
    cp -r "$study/train/$variant/small/seed-1" "$study/train/$variant/twin/"
    predicts twin $variant
done
expect 0 report "$study" --group 'regex:p([0-9]+)-'
[ "$(grep -o 'count as 22 groups' "$page" | wc -l)" -eq 1 ] || fail "said for each network"

# A leak that the survey found stands at the top.
survey "$study"
expect 0 report "$study"
! grep -q 'near duplicate among' "$page" || fail "a leak that isn't known"
sed -i 's/"across_splits": 1/"across_splits": 1, "val_near_train": 3/' "$study/survey.json"
expect 0 report "$study"
says "$page" "3 validation images have a near duplicate among the training images, by the survey: accuracies are too high"
