#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every look at a study's results is recorded, shares one error, and says what was changed since the first.
. "$srcdir/tests/lib.sh"
keep_plans=yes
. "$srcdir/tests/report/make_study.sh"
study=$work/study page=$work/study/report/report.html plan=$work/study/report/plan.json
report() { dl2-report --gnuplot "$work/none" "$@" -o "$page" "$study"; }
looks() { grep -c '"tolerance"' "$plan"; }
# noted TEXT: on the first screen, and where the command was called.
noted() { says "$work/out" "$1"; says "$page" "$1"; }
again() { rm -rf "$study"; cp -R "$work/whole" "$study"; }

load "$study" raw 900
variant "$study" jpeg-10 jpeg 10 700000 26.1 0.78 3300
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
variant "$study" webp-50 webp 50 1300000 31.9 0.925 500
trained() { # SEED...
    for seed; do
        training "$study" raw small "$seed" "0.70$seed"
        training "$study" jpeg-10 small "$seed" "0.60$seed"
        training "$study" jpeg-50 small "$seed" "0.70$((seed % 3))"
        training "$study" webp-50 small "$seed" "0.70$((seed + 1))"
    done
}
expect 0 report
[ ! -e "$plan" ] || fail "a plan of a study without trainings"
trained 1 2 3
rm -r "$study/report"
cp -R "$study" "$work/whole"

# The first report is the plan. The same one again, also elsewhere, is the same look with the same bytes.
expect 0 report
silent "$work/out" "Changed after"
silent "$page" "Changed after"
says "$plan" '"schema": "dl2-plan/1"' '"error": 0.025' '"spent": 0.75' '"jpeg-50": "jpeg"'
says "$page" "this one, look 1, has 1.9%"
cp "$plan" "$work/first.json"; cp "$page" "$work/first.html"
expect 0 report
expect 0 dl2-report decide "$study"
cmp "$plan" "$work/first.json" && cmp "$page" "$work/first.html" || fail "the same report is another look"

# Elsewhere: no look, whatever is asked, and what no option asks is what the study's own page asks.
elsewhere() { expect 0 dl2-report --gnuplot "$work/none" "$@" -o "$work/elsewhere.html" "$study"; }
cp "$work/out" "$work/decisions"
elsewhere
cmp "$work/answer.json" "$study/report/answer.json" || fail "the same question elsewhere has another answer"
silent "$work/out" "not recorded"
elsewhere --tolerance 2
says "$work/out" "less than 2 points" "This page is not recorded as a look at the study" "from 1 to 2 points"
says "$work/elsewhere.html" "This page is not recorded as a look at the study"
cmp "$plan" "$work/first.json" || fail "a page elsewhere is a look"
again
elsewhere
says "$work/out" "less than 1 point" "not recorded"
[ ! -e "$plan" ] || fail "a page elsewhere is the first look"
expect 0 report --tolerance 2 --interim 2,3,4
cp "$plan" "$work/first.json"; cp "$work/out" "$work/printed"
elsewhere
cmp "$work/out" "$work/printed" || fail "elsewhere the answer is another"
cmp "$plan" "$work/first.json" || fail "a page elsewhere is a look"
expect 0 dl2-report decide "$study"
cmp "$plan" "$work/first.json" || fail "decide asks something else"
elsewhere --tolerance 0 # is a tolerance, too
says "$work/out" "less than 0 points"
# After several looks it is the one that the study's page shows.
expect 0 report --tolerance 3
expect 0 report --tolerance 2
elsewhere
says "$work/out" "less than 2 points"
again

# More seeds, another tolerance, a codec that is left out: each is said, and each is a further look.
expect 0 report
trained 4 5
expect 0 report
noted "Changed after results were seen: seeds 4 5 added (look 2 of this plan)."
says "$plan" '"spent": 0.9375'
says "$page" "this one, look 2, has 0.47%"
expect 0 report --tolerance 2
noted "Changed after results were seen: tolerance from 1 to 2 points, seeds 4 5 added (look 3 of this plan)."
rm -r "$study/variants/webp-50" "$study/train/webp-50"
expect 0 report --tolerance 2
noted "Changed after results were seen: tolerance from 1 to 2 points, codec webp left out, seeds 4 5 added (look 4 of this plan)."
says "$page" "which 2 codecs share"
is "$(looks)" 4 "looks"
expect 0 report --tolerance 1
noted "Changed after results were seen: tolerance from 1 to 2 to 1 points, codec webp left out, seeds 4 5 added (look 5 of this plan)."

# What was seen before is shown as it was then.
again
trained 4
expect 0 report
cp "$page" "$work/then.html"
expect 0 report --tolerance 3
expect 0 report --tolerance 1
cmp "$page" "$work/then.html" || fail "an earlier look is shown otherwise"
is "$(looks)" 2 "looks"

# A claim stands while its trainings do, whatever seeds come; one that was repeated takes it back.
again
expect 0 report
says "$work/out" "Use webp-50: " "shown to lose less than 1 point "
training "$study" raw small 4 0.73
training "$study" webp-50 small 4 0.70
training "$study" jpeg-50 small 4 0.73
expect 0 report
noted "Changed after results were seen: seed 4 added (look 2 of this plan)."
says "$work/out" "Use webp-50: " "shown to lose less than 1 point "
training "$study" webp-50 small 1 0.699
expect 0 report
noted "Changed after results were seen: seed 4 added, 1 training left out or with other results (look 3 of this plan)."
silent "$work/out" "Use webp-50"
# A smaller tolerance takes it back, too; a larger one does not.
again
expect 0 report --tolerance 1
expect 0 report --tolerance 1.5
says "$work/out" "Use webp-50: " "shown to lose less than 1.5 points"
training "$study" webp-50 small 3 0.698
expect 0 report --tolerance 0.5
silent "$work/out" "Use webp-50"

# Variants and networks. A network that comes later has what is left.
again
expect 0 report --variants 'raw jpeg-50'
expect 0 report
noted "Changed after results were seen: codec webp added, variant jpeg-10 added (look 2 of this plan)."
for name in raw jpeg-50; do
    for seed in 1 2; do training "$study" $name other $seed "0.70$seed"; done
done
expect 0 report
noted "Changed after results were seen: codec webp added, variant jpeg-10 added, network other added (look 3 of this plan)."
says "$plan" '"spent": 0.984375'
rm -r "$study"/train/*/other
expect 0 report --tolerance 2 --variants 'raw jpeg-50'
noted "Changed after results were seen: tolerance from 1 to 2 points, codec webp left out, variant jpeg-10 left out, network other left out (look 4 of this plan)."

# Nothing can be claimed from one seed, so that look costs nothing.
again
rm -r "$study"/train/*/*/seed-[23]
expect 0 report
says "$plan" '"spent": 0.0'
trained 2 3
expect 0 report
noted "Changed after results were seen: seeds 2 3 added (look 2 of this plan)."
says "$plan" '"spent": 0.75'

# Planned looks go on without a word, and spend what they planned.
again
rm -r "$study"/train/*/*/seed-3
expect 0 report --interim 2,3,4
silent "$work/out" "Changed after"
says "$plan" '"spent": 0.125,'
trained 3
expect 0 report --interim 2,3,4
silent "$work/out" "Changed after"
says "$plan" '"spent": 0.421875,'
expect 0 report --interim 2,3,5
noted "Changed after results were seen: seed 3 added, other numbers of seeds to look at (look 3 of this plan)."
trained 4 5
expect 0 report --interim 2,3,5
noted "Changed after results were seen: seeds 3 4 5 added, other numbers of seeds to look at (look 4 of this plan)."
says "$plan" '"spent": 1.0,'
expect 0 report --tolerance 2
noted "Earlier looks have spent the whole error of this plan: no more can be claimed. dl2-report new-plan starts another."

# Groups of images are a part of the question.
if [ -n "${PYTHON3:-}" ]; then
    again
    rm -r "$study/train" "$study/variants/jpeg-10" "$study/variants/webp-50"
    for name in raw jpeg-50; do
        for seed in 1 2 3; do
            rows=$(awk -v seed=$seed 'BEGIN { for (i = 0; i < 60; i++)
                printf "val/c/p%02d-%d:%d:%d:1 ", i / 3, i % 3, i % 5, (i + ((i + seed) % 60 < 6)) % 5 }')
            val_images=60 predictions=predictions-0.npy training "$study" $name small $seed 0.9
            "$PYTHON3" "$srcdir/tests/report/predictions.py" \
                "$study/train/$name/small/seed-$seed/predictions-0.npy" $rows || fail "no predictions"
        done
    done
    expect 0 report --tolerance 4
    silent "$work/out" "Keep the original"
    expect 0 report --tolerance 4 --group 'regex:p([0-9]+)-'
    noted "Changed after results were seen: images grouped otherwise (look 2 of this plan)."
    says "$plan" '"spent": 0.9375'
    says "$work/out" "Keep the original" "Open: jpeg-50" # the claim without groups does not stand
    cp "$work/out" "$work/printed"
    elsewhere
    cmp "$work/out" "$work/printed" || fail "elsewhere images are not grouped as the study groups them"
    expect 0 report --tolerance 4 --group 'regex:p[0-9][0-9]'
    expect 0 report --group none
    silent "$work/out" "Changed after"
    silent "$work/out" "Keep the original"
    is "$(looks)" 2 "looks"
fi

# A plan is given up by its own command, and later pages say so.
again
expect 1 dl2-report new-plan "$study"
says "$work/err" "$plan: no plan to give up"
expect 0 report --tolerance 2
expect 0 dl2-report new-plan "$study"
expect 1 dl2-report new-plan "$study"
trained 4
expect 0 report
noted "1 earlier plan of this study was given up."
silent "$work/out" "Changed after"
says "$plan" '"given_up": "20' '"spent": 0.75'
expect 0 dl2-report new-plan "$study"
expect 0 report
noted "2 earlier plans of this study were given up."
expect 2 dl2-report new-plan decide "$study"

# Broken: named, and neither used nor replaced.
cp "$plan" "$work/good.json"
spoiled() {
    cp "$plan" "$work/spoiled.json"
    rm -f "$page"
    expect 1 report
    says "$work/err" "$plan" "dl2-report new-plan"
    [ ! -e "$page" ] || fail "a page in spite of a broken plan"
    cmp "$plan" "$work/spoiled.json" || fail "a broken plan was replaced"
    cp "$work/good.json" "$plan"
}
: >"$plan"; spoiled
head -c 300 "$work/good.json" >"$plan"; spoiled
sed 's,dl2-plan/1,dl2-plan/2,' "$work/good.json" >"$plan"; spoiled
for change in 's/"error": 0.02[0-9]*/"error": 0.5/' 's/"spent": 0.75/"spent": -1/' 's/"spent": 0.75/"spent": 2/' \
    's/"share": 0.75/"share": "all"/' 's/"share": 0.75/"share": 7/' 's/"tolerance": 1.0/"tolerance": -1/' \
    's/"jpeg-50": "jpeg"/"jpeg-50": 50/' 's/"networks"/"nets"/' 's/"groups": {/"groups": {"x": 1/' 's/"seeds": 4/"seeds": 0/' 's/"within": \[/"within": [1, /' \
    's/"looks": \[/"looks": [1, /' 's/"trainings": {/"trainings": {"x": 1, "y": {"z": 1},/' 's/"earlier": \[/"earlier": [1, /'; do
    sed "$change" "$work/good.json" >"$plan"
    ! cmp -s "$plan" "$work/good.json" || fail "$change changes nothing"
    spoiled
done
: >"$plan"
expect 0 dl2-report new-plan "$study"
says "$plan" '"broken": "'
expect 0 report
noted "1 earlier plan of this study was given up."

# Killed while it draws, after the look was written; what a kill while writing leaves is in nobody's way.
again
printf '#!/bin/sh\nkill -9 $PPID\n' >"$work/killer"
chmod +x "$work/killer"
dl2-report --gnuplot "$work/killer" -o "$page" "$study" >"$work/out" 2>&1
[ $? -gt 128 ] && [ ! -e "$page" ] || fail "the report was not killed: $(cat "$work/out")"
is "$(looks)" 1 "looks after a kill"
echo half >"$study/report/.plan.json.dl2-tmp"
cp "$plan" "$work/first.json"
expect 0 report
cmp "$plan" "$work/first.json" || fail "the look of a report that was killed is another"
trained 4
expect 0 report
noted "Changed after results were seen: seed 4 added (look 2 of this plan)."

# A study with planned looks asks from its first look on when it is continued: each asks for the same seeds again.
# Here jpeg-50 is claimed at the third look, so that jpeg-10, whose turn comes then, wants as many.
rm -rf "$study"
load "$study" raw 900
variant "$study" jpeg-10 jpeg 10 700000 26.1 0.78 3300
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
for seed in 1 2 3 4; do
    training "$study" raw small $seed "0.70$((seed % 3))"
    training "$study" jpeg-50 small $seed "0.70$((seed % 2))"
    [ $seed -gt 2 ] || training "$study" jpeg-10 small $seed "0.5$((60 + 20 * seed))"
done
for count in 2 3 4; do
    asked="raw/small/seed-1 raw/small/seed-2 jpeg-50/small/seed-1 jpeg-50/small/seed-2 jpeg-10/small/seed-1 jpeg-10/small/seed-2"
    for seed in 3 4; do
        [ $seed -gt $count ] || asked="$asked raw/small/seed-$seed jpeg-50/small/seed-$seed"
    done
    echo "$asked"
done >"$work/asked"
for round in first again; do
    while read -r asked; do
        expect 0 dl2-report --interim 2,3,4,5,6 --tolerance 6 --trainings "$asked" decide "$study"
        cat "$work/out"
    done <"$work/asked" >"$work/$round"
done
tail -n 25 "$work/first" | tr -d ' \n' | grep -q '"jpeg-10","state":"open","seeds":4.*"jpeg-50","state":"within"' ||
    fail "not claimed, or not open: $(cat "$work/first")"
cmp "$work/first" "$work/again" || fail "looks that were made before ask for other seeds"

# Where it can't be written: said, and the answer is given.
again
: >"$study/report"
expect 0 dl2-report decide "$study"
says "$work/err" "This look at the results was not recorded" "$study/report"
says "$work/out" webp-50
rm "$study/report"
if [ "$(id -u)" -ne 0 ]; then
    chmod a-w "$study"
    expect 0 dl2-report decide "$study"
    chmod u+w "$study"
    says "$work/err" "This look at the results was not recorded"
fi
exit 0
