#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# DECIDE: seeds are added to what is open, to nothing else, and until nothing is.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
command -v flock >/dev/null 2>&1 || skip "flock is not installed (Debian: util-linux)"
# Sixteen validation images can't tell less than a wide tolerance.
decide() { study IMAGE_SIZE=16 CODECS='jpeg ppm' QUALITIES=1 DECIDE=yes SEEDS='2 1 3 4' TOLERANCE=40 "$@"; }
trained() { find results/train -name experiment_report.json | sed 's,^results/train/,,; s,/exp.*,,' | LC_ALL=C sort; }

# No time for more than the first look: from the two smallest seeds, all variants.
expect 0 decide BUDGET=1s train
trained >first
printf '%s/convnet/seed-%d\n' jpeg-01 1 jpeg-01 2 ppm 1 ppm 2 raw 1 raw 2 >expected
diff expected first || fail "the first look"
[ ! -e results/report/report.html ] || fail "train does not stop there"
grep -q '^ppm, convnet: within$' out || fail "the same pixels are not the same"
if grep -q ': open$' out; then
    grep -q 'BUDGET is spent' out || fail "BUDGET does not stop it"
fi

# Until all is decided, or no seed is left.
expect 0 decide
trained >last
grep -q 'ppm/convnet/seed-3' last && fail "seeds are added to what is decided"
dl2-report --interim 2,3,4 --tolerance 40 decide "$work/results" >decided || fail "decide"
grep -q '"seeds": [1-9]' decided && fail "ended before all was decided: $(cat decided)"
if grep -q 'jpeg-01/convnet/seed-3' last; then
    grep -q 'raw/convnet/seed-3' last || fail "nothing to compare a seed with"
fi
grep -q 'looks after 2, 3 and 4' results/report/report.html || fail "the report does not know of the looks"
grep -q 'DECIDE=yes' results/report/report.html || fail "the command that makes it again is another"
grep -q 'Changed after' results/report/report.html && fail "seeds that were planned are a change"

# Nothing twice, and a plan trains nothing.
touch mark
expect 0 decide
[ -z "$(find results/train results/report -newer mark -name '*.json' -o -newer mark -name '*.html')" ] || fail "made again"
expect 0 decide new-plan
expect 0 decide
[ -z "$(find results/train -newer mark -name '*.json')" ] || fail "trained again for a new plan"
grep -q '1 earlier plan of this study was given up' results/report/report.html || fail "new-plan is not said"
expect 0 planned IMAGE_SIZE=16 DECIDE=yes OUT=other
grep -q '^train/jpeg-85/convnet/seed-2, beside others$' out && grep -q 'first round' out || fail "the plan: $(cat out)"
! grep -q '^train/jpeg-85/convnet/seed-3' out && [ ! -e other/train ] || fail "a plan trains"

# Groups of images go into decisions, so they are there before the first.
expect 0 decide OUT=grouped GROUP=survey
grep -qF '(grouped/survey-groups.tsv)' grouped/report/report.html || fail "decided without groups"
rm grouped/survey-groups.tsv
expect 0 decide OUT=grouped GROUP=survey train # dl2-report decide would miss them
[ -f grouped/survey-groups.tsv ] || fail "decided without groups"

# Wrong values are refused before anything is made.
for wrong in DECIDE=maybe BUDGET=2x BUDGET=h BUDGET=1.5h SEEDS=1; do
    expect 2 decide OUT=other "$wrong"
    said "$(echo "$wrong" | cut -d = -f 1) is \"${wrong#*=}\""
done

# With FORECAST, what tuning finds to lose more than the tolerance is trained on last, or not at all: here jpeg-10
# loses 4 to 6 points, jpeg-90 0.5 to 2.5. dl2-train and dl2-report are stand-ins: one notes what it is to train, the
# other says what it was told to.
mkdir programs
for program in dl2-transcode dl2-quality dl2-load; do ln -s "$builddir/$program" programs/; done
cat >programs/dl2-train <<END
#!/bin/sh
for word; do [ "\$word" != --list ] || exec "$builddir/dl2-train" "\$@"; done
report=experiment_report
for word; do
    case \$last in --out) out=\$word ;; esac
    case \$word in evaluate) report=evaluation_report ;; esac
    last=\$word
done
[ ! -e slow ] || sleep 1.1
mkdir -p "\$out"
echo '{"schema": "dl2-train/1", "completed": true}' >"\$out/\$report.json"
[ \$report != experiment_report ] || echo "\${out#*/}" | sed 's,^train/,,' >>trained
END
cat >programs/dl2-report <<END
#!/bin/sh
while [ \$# -gt 0 ]; do
    case \$1 in
    --help) exit ;;
    detectable) while [ "\$1" != --output ]; do shift; done; : >"\$2" && exit ;;
    forecast) exec cat forecasts.json ;;
    decide) echo decided >>trained; exec cat decisions.json ;;
    esac
    shift
done
END
cat >forecasts.json <<'END'
{"schema": "dl2-forecasts/1", "forecasts": [{"network": "convnet", "variant": "jpeg-10", "loss": 5, "half": 1},
 {"network": "convnet", "variant": "jpeg-90", "loss": 1.5, "half": 1.0}]}
END
cat >decisions.json <<'END'
{"schema": "dl2-decisions/1", "decisions": [{"network": "convnet", "variant": "jpeg-10", "state": "beyond", "seeds": 0},
 {"network": "convnet", "variant": "jpeg-90", "state": "within", "seeds": 0},
 {"network": "convnet", "variant": "raw", "state": "done", "seeds": 0}]}
END
chmod +x programs/*
stand_in() { study OUT=stand-in QUALITIES='10 90' SEEDS='3 1 2' TOLERANCE=1 TRAINERS=1 DECIDE=yes PROGRAMS="$PWD/programs" "$@" train; }
ordered() {
    rm -rf stand-in trained
    expect 0 stand_in "$@"
    sed 's,/convnet/seed-,:,; s,forecast/tuned/train/,~,' trained | paste -sd ' ' >order
}
two() { for variant; do printf '%s:1 %s:2 ' "$variant" "$variant"; done; }
ordered FORECAST=yes
is "$(cat order)" "$(two raw '~raw' '~jpeg-10' '~jpeg-90' jpeg-90)decided $(two jpeg-10)decided" "the order by forecast"
grep -qx 'Next: what is forecast to lose more than 1: jpeg-10' out || fail "what is next is not said: $(cat out)"
touch slow
ordered BUDGET=1s FORECAST=yes
grep -qx 'Not trained, forecast to lose more than 1: jpeg-10' out || fail "BUDGET does not end before the last: $(cat out)"
is "$(cat order)" "$(two raw '~raw' '~jpeg-10' '~jpeg-90' jpeg-90)decided" "the order within BUDGET"
rm slow
ordered
is "$(cat order)" "$(two raw jpeg-10 jpeg-90)decided" "the order without a forecast"
# What is not dl2-report's JSON ends the study.
echo 'convnet jpeg-10 open 3' >decisions.json
expect 1 stand_in
said 'dl2-report decide did not print dl2-decisions/1'
exit 0

# The demo decides, where its goals do, unless it is told not to.
expect 0 dl2-study plan --dataset demo --out demo study
grep -q '^DECIDE: the plan is of the first round' "$work/out" || fail "the demo does not decide: $(cat "$work/out")"
expect 0 dl2-study plan --dataset demo --out demo --decide no study
is "$(grep -c '^train/raw/resnet10/seed-' "$work/out")" 4 "seeds of a demo that does not decide"
expect 0 dl2-study plan --dataset demo --out demo study-bytes
! grep -q 'seed-5' "$work/out" || fail "goals that do not decide have more seeds: $(cat "$work/out")"
