#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# All goals can be asked for; what `forecast` trains, and that it leaves the study's own trainings alone.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
command -v flock >/dev/null 2>&1 || skip "flock is not installed (Debian: util-linux)"
goal() { study QUALITIES=50 "$@"; }
trained() { find results -name experiment_report.json | sed 's,^results/,,; s,/exp.*,,' | LC_ALL=C sort; }
# field NAME FILE: a setting of a training
field() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" "$2" | head -n 1; }

# Every goal that the help texts name can be asked for in a checkout and in a build folder.
dl2-study --help >help || fail "help"
names=$(sed '1,/^Goals/d; /^Examples/,$d' help | sed -n 's/^  \([a-z-]*[a-z]\)   *[^ ].*/\1/p')
for name in study survey matrix throughput study-quality study-time study-bytes study-regimens study-loading study-codec \
    forecast; do
    echo "$names" | grep -qx "$name" || fail "the help texts don't name $name"
done
for name in $names; do
    grep -q "STUDY_GOALS" "$builddir/Makefile" && make -C "$builddir" -pnq "$name" 2>/dev/null |
        grep -q "^$name: run-study" || fail "$name is no goal of the build folder's Makefile"
done

# From make: any path, and what make itself says.
mkdir 'a folder, with "blanks"' && cp -R data/train data/val 'a folder, with "blanks"/' || exit 99
built() { # all is built; what the caller's make says of that is not asked
    make -C "$builddir" --no-print-directory -o all "$@" STUDY_FOLDER="$work" DATASET='a folder, with "blanks"' OUT="it's \$\$here & there/" \
        CODECS=jpeg QUALITIES=50 ARCHS=convnet EPOCHS=1 SEEDS='1 2 3' IMAGE_SIZE=8 BATCH=8 JOBS=3 ROUNDS=1 MEASURE=0.05
}
if make --version 2>/dev/null | grep -q 'GNU Make'; then
    expect 0 built -n study
    grep -q 'dl2-study. run --checkout' "$work/out" && [ ! -e "it's \$here & there" ] || fail "make -n: $(cat "$work/out")"
    expect 2 built study QUALITY=50
    said 'there is no setting QUALITY; did you mean QUALITIES?'
    (export GROUP=staff; expect 0 built -j2 variants study) || exit 1 # what csh exports
    said 'make -j2 lets 2 of 3 trainings run at once'
    page="$work/it's \$here & there/report/report.html"
    is "$(tail -n 1 "$work/out")" "The report: $page" "the end of a study from make"
    [ -f "it's \$here & there/variants/jpeg-50/val/fine/3.jpg" ] || fail "no variant"
    [ -n "$(find "it's \$here & there/report/plots" -name '*.dat')" ] || fail "no plots"
    up_to_date "$(made_again "$page") JOBS=3"
fi

# The sections of the report that goals name are there.
for section in $(sed -n 's/.*\.section = "\(.*\)",/\1/p' "$srcdir"/study/goals/*.c); do
    [ -f "$srcdir/report/page/section_$section.c" ] || fail "the report has no section $section"
done

# ---- What would training on a variant cost?

expect 0 goal forecast SEEDS='1 2 3'
trained >made
printf '%s\n' forecast/tuned/train/jpeg-50/convnet/seed-1 forecast/tuned/train/jpeg-50/convnet/seed-2 \
    forecast/tuned/train/raw/convnet/seed-1 forecast/tuned/train/raw/convnet/seed-2 \
    train/raw/convnet/seed-1 train/raw/convnet/seed-2 >wanted
diff wanted made || fail "forecast"
own=results/train/raw/convnet/seed-2
case $(field pretrained results/forecast/tuned/train/jpeg-50/convnet/seed-2/experiment_report.json) in
*train/raw/convnet/seed-2/checkpoint.safetensors) ;;
*) fail "tuning starts from something else" ;;
esac
is "$(field pretrained $own/experiment_report.json)" null "what the original's training starts from"
[ -s $own/evaluation/evaluation_report.json ] || fail "the original's network is not validated on the variants"

# A study afterwards keeps what is there; clean-study deletes all.
touch mark
expect 0 goal study SEEDS='1 2'
[ -z "$(find $own results/forecast -newer mark -name '*_report.json')" ] || fail "study trains again"
expect 0 goal clean-study
[ ! -e results ] || fail "clean-study leaves $(find results)"
exit 0
