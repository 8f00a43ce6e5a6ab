#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report on studies that are whole, partial and broken.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
need_python json python3
study=$work/study page=$work/page/report.html
well_formed() { page_text "$1" "$srcdir/docs/formats/dl2-report-1.schema.json" >"$work/text" || fail "$1: see above"; }

# A whole study: two codecs, three seeds.
two_jpegs "$study" '{"path": "train/rose/<7>.png", "error": "not a \"PNG\" & nothing else"}'
variant "$study" webp-50 webp 50 1300000 31.9 0.925 500
trainings "$study" jpeg-10 small 0.601 0.602 0.603
trainings "$study" jpeg-50 small 0.701 0.702 0.700
trainings "$study" webp-50 small 0.701 0.702 0.703
for round in 1 2 3; do
    rate "$study" small raw "$round" 800
    rate "$study" small jpeg-10 "$round" 3000
    rate "$study" small jpeg-50 "$round" 1600
    rate "$study" small webp-50 "$round" 1200
done
expect 0 dl2-report "$study" -o "$page" --title "A <title> & more" --command "make study 'X=<1>'"
says "$work/out" "Use webp-50: " "the smallest that is shown to lose less than 1 point" \
    "; jpeg-50, which is within, loads 3.22 times and trains 2 times as fast as the original." "Nothing is open."
says "$page" "jpeg-50 is the fastest to load of those within 1 point: 2900 images/s a core" \
    "jpeg-50 is the fastest to train on of those within 1 point: 1600 images/s, 2 times the original's (95% interval 2 to 2 in this run)." \
    "jpeg-50 is the fastest to 69.2% top-1 of those within 1 point: 0.99 s of training, after 1.98 of the schedule's 2 epochs"
well_formed "$page"
says "$page" "A <title> & more" "make study 'X=<1>'" "26.12" "3.5 %" \
    "train/rose/<7>.png: not a \"PNG\" & nothing else" \
    "A <fast> & \"quoted\" processor" "webp-50" "within tolerance" "Wang 2004"
says "$page" '| −10.0 (' ') worse |'

# What sizes stand on: what was measured, and that nothing was.
says "$page" '## What the sizes stand on' '| not measured |' "How the sources were encoded is not recorded"
stand=$work/stand
reference_files='{"lossy": 900, "of_known_quality": 800, "median_quality": 92}' header_bytes=300000
variant "$stand" jpeg-10 jpeg 10 500000 26.1 0.8 2900
variant "$stand" jpeg-50 jpeg 50 3000000 31.5 0.93 2800
load "$stand" raw 900
expect 0 dl2-report "$stand" -o "$work/stand.html"
says "$work/stand.html" '| 300 | 10 to 60 % |' 'jpeg-10: more than half of these files are headers' \
    'Up to 7 images of a variant, or their originals, have more than 8 bits a sample: PSNR RGB and Y are of 16 bits of 6' \
    '900 sources are files of a lossy codec already, 800 of them JPEGs, of quality 92 in the median'
unset reference_files header_bytes
for plot in rate-psnr_rgb rate-ssim accuracy-bytes-small accuracy-load-small accuracy-train-small \
    curves-small-jpeg curves-small-webp timeline-small-raw timeline-small-jpeg-10; do
    for part in dat gp; do
        [ -s "$work/page/plots/$plot.$part" ] || fail "no plots/$plot.$part"
    done
done
says "$work/page/plots/rate-psnr_rgb.dat" "0.56 26.125 10 NaN NaN NaN NaN jpeg-10"

# Speed: from its own measurements. Timelines: slopes between samples, processors out of two.
says "$page" "## Speed" "| 800 ± 0 | 6.2 ± 0.0 | 0.125" \
    "| 2.0 |" "| 2.00 (2.00 to 2.00) |" "in 3 rounds of all" "wrong in at most 2.5% of such studies" "Fastest to 69.2% top-1" \
    "The card: A <card> & more, 80.0 GB of memory; driver 580."
says "$work/page/plots/timeline-small-raw.dat" "0.5 100 25 50 10 0 50 1 1 0 1 2 0 100" "1 200 50 75 20 90 50 2 4 2 1 2 0 250" \
    "2 800 100 100 30 95 0 2 4 4 0 0 3 NaN"
says "$work/page/plots/timeline-small-raw-rank-1.dat" "1 10 NaN" "2 20 NaN"

# The same results give the same bytes.
cp "$page" "$work/first.html"
expect 0 dl2-report --quiet "$study" -o "$page" --title "A <title> & more" --command "make study 'X=<1>'"
[ ! -s "$work/out" ] || fail "--quiet isn't"
cmp "$page" "$work/first.html" || fail "not reproducible"

if command -v gnuplot >/dev/null 2>&1; then
    says "$page" "[Training on the original, seed 1, rank 0]" "> The other timelines"
    grep -q '"svg": ".*<svg' "$work/page/report.json" || fail "no pictures"
    # The scripts can be run by hand.
    rm "$work/page/plots/rate-psnr_rgb.svg"
    (cd "$work/page/plots" && gnuplot rate-psnr_rgb.gp) || fail "rate-psnr_rgb.gp can't be run by hand"
    [ -s "$work/page/plots/rate-psnr_rgb.svg" ] || fail "rate-psnr_rgb.gp makes nothing"
else
    echo "gnuplot is not installed (Debian: gnuplot-nox): pictures not tested"
fi

# Without gnuplot: the tables, and what is missing.
expect 0 dl2-report --gnuplot "$work/no such gnuplot" "$study" -o "$work/bare.html"
says "$work/err" "gnuplot-nox"
says "$work/bare.html" "gnuplot-nox" "webp-50 loses less than 1 point"
grep -q '"svg"' "$work/report.json" && fail "pictures without gnuplot"
well_formed "$work/bare.html"

# Rounds of loading, and by storage.
for round in 1 2 3; do
    rate "$study" load raw "$round" 1000
    rate "$study" load jpeg-50 "$round" 2500
    rate "$study" load webp-50 "$round" $((3000 + round))
    for jobs in 1 2; do
        for name in raw jpeg-50; do
            rate "$study" load $name "$round" $((jobs * 1000)) loading/disk/jobs-$jobs
            rate "$study" small $name "$round" $((jobs * 300)) loading/disk/jobs-$jobs
        done
    done
done
cache=4000000 read=20000 rate "$study" load raw 1 1000 loading/cache-50/jobs-2
cache=8000000 read=5000 rate "$study" load raw 1 1000 loading/cache-100/jobs-2
expect 0 dl2-report "$study" -o "$page"
says "$page" "webp-50 is the fastest to load of those within 1 point: 3002 images/s a core, 3 times the original's (95% interval 3 to 3 in this run)."
# The loader's rate is by the clock there, of half a second: 2000 images are 4000 a second.
says "$page" "## Loading, by storage" "| storage |" "Up to 50% of the files could not be evicted" \
    "| jpeg-50 | disk | 4000 ± 0 | 600 ± 0 | 6.2 ± 0.0 |"
says "$work/page/plots/loading-disk-alone.dat" "1 2000 0" "2 4000 0"
says "$work/page/plots/loading-disk-small.dat" "1 300 0" "2 600 0"
says "$work/page/plots/loading-memory.dat" "4 0.02" "8 0.005"
well_formed "$page"

# Nothing trained yet, and nothing at all.
cp -R "$study" "$work/untrained"; rm -r "$work/untrained/train"
expect 0 dl2-report "$work/untrained" -o "$work/untrained.html"
says "$work/untrained.html" "Nothing was trained yet" "26.12" "| disk |"
well_formed "$work/untrained.html"
mkdir "$work/empty"
expect 1 dl2-report "$work/empty" -o "$work/empty.html"
says "$work/err" "holds no results"
[ ! -e "$work/empty.html" ] || fail "a page about nothing"

# A training that was cut short doesn't count, and is named.
training "$study" raw small 4 0.1 false
expect 0 dl2-report "$study" -o "$page"
says "$work/err" "train/raw/small/seed-4/experiment_report.json: cut short"
says "$page" "seed-4/experiment_report.json"
rm -r "$study/train/raw/small/seed-4"

# Wrong usage.
expect 2 dl2-report
expect 2 dl2-report --tolerance -1 "$study"
expect 1 dl2-report "$work/nowhere" -o "$work/nowhere.html"
says "$work/err" "$work/nowhere is not a folder"

# Each file broken in each of several ways: never a crash, always named, and the page still written.
spoil() { # FILE KIND
    case $2 in
    empty) : >"$1" ;;
    cut) head -c 100 "$1" >"$1.tmp"; mv "$1.tmp" "$1" ;;
    array) echo '[]' >"$1" ;;
    schema) echo '{"schema": "other/1"}' >"$1" ;;
    deep) awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >"$1" ;;
    esac
}
for file in variants/jpeg-50/dl2-variant.json quality/jpeg-50.json load/raw.json \
    train/raw/small/seed-2/experiment_report.json throughput/small/raw/round-2.json \
    throughput/load/raw/round-1.json loading/disk/jobs-2/load/raw/round-1.json; do
    cp "$study/$file" "$work/kept"
    for kind in empty cut array schema deep; do
        spoil "$study/$file" "$kind"
        expect 1 dl2-report "$study" -o "$page"
        says "$work/err" "$file"
        says "$page" "$file" "webp-50"
        well_formed "$page"
    done
    # Of the right schema, and nothing else in it, or all of it of the wrong type.
    schema=$(sed -n 's/.*"schema": "\([^"]*\)".*/\1/p' "$work/kept" | head -n 1)
    echo "{\"schema\": \"$schema\"}" >"$study/$file"
    dl2-report "$study" -o "$page" >/dev/null 2>&1
    [ $? -le 1 ] || fail "$file with only a schema"
    well_formed "$page"
    for value in '"text"' '[1]' '{"a": 1}' '-1e308' null; do
        awk -v s="$schema" -v v="$value" 'BEGIN {
            n = split("variant codec quality complete source options encoder libraries images " \
                "pixels bytes bits_per_pixel source_bytes encode_cpu_seconds failed variants " \
                "definitions images_per_core_second bad machine versions epochs final arguments seed timeline card measured per_epoch", k)
            printf "{\"schema\": \"%s\", \"completed\": true", s
            for (i = 1; i <= n; i++) printf ", \"%s\": %s", k[i], v
            print "}" }' >"$study/$file"
        dl2-report "$study" -o "$page" >/dev/null 2>&1
        [ $? -le 1 ] || fail "$file with $value everywhere"
        well_formed "$page"
    done
    cp "$work/kept" "$study/$file"
done
expect 0 dl2-report "$study" -o "$page"
exit 0
