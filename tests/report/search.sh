# SPDX-License-Identifier: BSD-2-Clause
# The report on a search: its two plots, its best model, hostile names, a search beside a study, one that is broken.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
cd "$work" || exit 99
# model NAME TOP1...: a model's report, an epoch for each top-1.
model() {
    mkdir -p "search/$1"
    name=$1 epochs= position=0
    shift
    for top1; do
        position=$((position + 1))
        epochs="$epochs${epochs:+,}{\"position\": $position, \"val\": [{\"top1\": $top1}]}"
    done
    echo "{\"schema\": \"dl2-experiment/1\", \"epochs\": [$epochs]}" >"search/$name/experiment_report.json"
}
model a 0.5 0.6 0.75
model b 0.25
model c 0.4 0.5 0.7
trial() { # NAME LR OPTIMIZER STATUS EPOCHS TOP1
    echo "{\"name\": \"$1\", \"settings\": {\"lr\": $2, \"optimizer\": \"$3\"}, \"status\": \"$4\", \"epochs\": $5,
        \"accuracy\": $6, \"rank\": ${7:-null}, \"loss\": 1, \"report\": \"$1/experiment_report.json\"}"
}
cat >search/search.json <<END
{"schema": "dl2-search/1", "best": "a", "epochs": 7, "all_epochs": 12, "completed": true, "rounds": [],
 "search": {"algorithm": "asha", "space": {"lr": {"min": 0.01, "max": 1, "scale": "log"},
  "optimizer": ["sgd", "<x>'; system(0)"]}},
 "trials": [$(trial a 0.1 sgd trained 3 0.75 1), $(trial b 0.01 sgd stopped 1 0.25 3),
  $(trial c 1 "<x>'; system(0)" trained 3 0.7 2), $(trial d 1 sgd diverged 0 null), $(trial e 0.5 sgd waiting 0 null)]}
END
expect 0 dl2-report search -o page/report.html
says page/report.html "What a search found: search" "(asha) trained 5 models, 7 epochs in all" "would have been 12" \
    "The best is a, accuracy 75.00%: lr 0.1, optimizer sgd" "trained, the best" "diverged" "waiting" "<x>';"
silent page/report.html "no results"
is "$(sed -n 's/^| \([a-e]\) |.*/\1/p' "$said" | tr -d '\n')" acbde "the table's order, by rank"
# curves OUTCOME: the points of its block, without the comments.
block() { "$AWK" -v name="# $2" '$0 == name {on = 1; next} /^#/ {on = 0} on && NF' "page/plots/$1.dat" | tr '\n' ';'; }
AWK=${AWK:-awk}
is "$(block search-curves stopped)" "1 25 1;" "the curve that was stopped"
is "$(block search-curves best)" "1 50 0;2 60 0;3 75 1;" "the best curve"
is "$(block search-settings best)" "-0.14 0.5;0.14 0.5;0.86 0;1.14 0;1.86 1;2.14 1;" "the best line"
is "$(block search-settings stopped)" "-0.14 0;0.14 0;0.86 0;1.14 0;1.86 0;2.14 0;" "the line that was stopped"
is "$(block search-settings trained_to_the_end)" "-0.14 1;0.14 1;0.86 1;1.14 1;1.86 0.9;2.14 0.9;" "the other line"
! grep -q "system(" page/plots/search-settings.gp || fail "a name of the space is in gnuplot's script unchanged"
if command -v gnuplot >/dev/null; then
    for plot in search-curves search-settings; do
        [ -s "page/plots/$plot.svg" ] || fail "no picture $plot"
    done
    is "$(grep -c '"svg": ".*<svg' page/report.json)" 2 "number of figures"
fi

# Several spaces: their lists and ranges together.
cp search/search.json kept.json
sed -i 's/"space": {/"space": [{"lr": {"min": 0.1, "max": 1, "scale": "log"}, "optimizer": ["sgd"]}, {/; s/system(0)"\]}},/system(0)"]}]},/' search/search.json
expect 0 dl2-report search -o page/report.html
is "$(block search-settings best)" "-0.14 0.5;0.14 0.5;0.86 0;1.14 0;1.86 1;2.14 1;" "the best line, of two spaces"
mv kept.json search/search.json

# Beside a study; then without a model's report, and without an end.
mkdir study && load study raw 900 && mv search study/
expect 0 dl2-report study -o page/report.html
says page/report.html "How far can study be compressed?" "The best is a,"
sed -i 's/"best": "a"/"best": null/; s/"completed": true/"completed": false/; s#c/experiment#nowhere/experiment#' study/search/search.json
expect 0 dl2-report study -o page/report.html
says page/report.html "It has not come to its end"
is "$(block search-curves trained_to_the_end)" "1 50 0;2 60 0;3 75 1;" "curves without the missing report"
# Broken, and of another kind.
echo '{"schema": "dl2-search/1", "trials": 3, "search": []}' >study/search/search.json
expect 0 dl2-report study -o page/report.html
for text in '{' '{"schema": "dl2-load/1"}'; do
    echo "$text" >study/search/search.json
    expect 1 dl2-report study -o page/report.html
    grep -q "search/search.json" "$work/err" || fail "the broken search is not named"
done
