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
dl2-report --interim 2,3,4 --tolerance 40 --decide "$work/results" >decided || fail "--decide"
grep -q ' [1-9][0-9]*$' decided && fail "ended before all was decided: $(cat decided)"
if grep -q 'jpeg-01/convnet/seed-3' last; then
    grep -q 'raw/convnet/seed-3' last || fail "nothing to compare a seed with"
fi
grep -q 'looks after 2, 3 and 4' results/report/report.html || fail "the report does not know of the looks"
grep -q 'DECIDE=yes' results/report/report.html || fail "the command that makes it again is another"
grep -q 'Changed after' results/report/report.html && fail "seeds that were planned are a change"

# Nothing twice, and -n trains nothing.
touch mark
expect 0 decide
[ -z "$(find results/train results/report -newer mark -name '*.json' -o -newer mark -name '*.html')" ] || fail "made again"
expect 0 decide new-plan
expect 0 decide
[ -z "$(find results/train -newer mark -name '*.json')" ] || fail "trained again for a new plan"
grep -q '1 earlier plan of this study was given up' results/report/report.html || fail "new-plan is not said"
expect 0 decide OUT=other -n
[ ! -e other/train ] || fail "-n trains"

# Groups of images go into decisions, so they are there before the first.
expect 0 decide OUT=grouped GROUP=survey
grep -qF '(grouped/survey-groups.tsv)' grouped/report/report.html || fail "decided without groups"
rm grouped/survey-groups.tsv
touch -d @1 grouped/.make/decided
expect 0 decide OUT=grouped GROUP=survey train
[ grouped/survey-groups.tsv -ot grouped/.make/decided ] || fail "the groups come after the decision"

# Wrong values are refused before anything is made.
for wrong in DECIDE=no BUDGET=2x BUDGET=h BUDGET=1.5h SEEDS=1; do
    expect 2 decide OUT=other "$wrong"
    said "$(echo "$wrong" | cut -d = -f 1) is \"${wrong#*=}\""
done

# With FORECAST, what tuning finds to lose more than the tolerance is trained on last, or not at all: here
# `lossy` loses 4 to 6 points, `close` 0.5 to 2.5. The programs are stand-ins that say what they are asked.
mkdir -p fake/out/.make
cat >fake/make <<'END'
#!/bin/sh
for word in "$@"; do case $word in RUNS=*) runs=${word#RUNS=} ;; *=*) ;; *) goal=$word ;; esac; done
echo "$goal:" $runs
END
cat >fake/report <<'END'
#!/bin/sh
case " $* " in
*' --forecast '*) printf 'net %s\n' 'lossy 5.00 1.00' 'close 1.50 1.00' ;;
*) printf 'net %s\n' 'lossy beyond 0' 'close within 0' 'raw done 0' ;;
esac
END
chmod +x fake/make fake/report
ordered() {
    expect 0 env MAKEFLAGS= OUT=fake/out NAMES='raw lossy close' TRAINED='raw lossy close' ARCHS=net SEEDS='3 1 2' \
        TOLERANCE=1 REPORT=fake/report "$@" sh "$srcdir/study/decide.sh" train fake/make
    grep : out | grep -v ', net:' >order
}
two() { for variant; do printf ' %s/net/seed-1 %s/net/seed-2' "$variant" "$variant"; done; }
ordered BUDGET= FORECAST=yes
{ echo "forecast-trainings:$(two raw)"; echo "train:$(two raw close)"
  echo "Next: what is forecast to lose more than 1: lossy"; echo "train:$(two raw close lossy)"; } >wanted
diff wanted order || fail "the order by forecast"
ordered BUDGET=0s FORECAST=yes
grep -qx 'Not trained, forecast to lose more than 1: lossy' order || fail "BUDGET does not end before the last: $(cat order)"
grep -q 'train:.*lossy' order && fail "trained beyond BUDGET"
ordered BUDGET= FORECAST=
is "$(cat order)" "train:$(two raw lossy close)" "the order without a forecast"
exit 0
