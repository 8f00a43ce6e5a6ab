#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The report's first screen, heat map, crops and metrics; and how large it gets.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
study=$work/study page=$work/page/report.html

load "$study" raw 900
variant "$study" jpeg-10 jpeg 10 700000 26.125 0.78 3300
variant "$study" jpeg-30 jpeg 30 1500000 28.5 0.85 3000
variant "$study" jpeg-50 jpeg 50 2000000 30.9 0.915 2900
variant "$study" webp-50 webp 50 1300000 31.9 0.925 500
trainings() { # from three seeds
    for seed in 1 2 3; do
        training "$study" raw small "$seed" "0.70$seed"
        training "$study" jpeg-10 small "$seed" "0.60$seed"
        training "$study" jpeg-30 small "$seed" "0.68$seed"
        training "$study" jpeg-50 small "$seed" "0.70$((seed % 3))"
        training "$study" webp-50 small "$seed" "0.70$seed"
    done
}
trainings

# ---- The first screen: a sentence, and what is uncertain
expect 0 dl2-report "$study" -o "$page"
says "$page" "webp-50 loses less than 1 point of top-1 accuracy, at 6.5% of the original's bytes (15.4 times smaller than hardly compressed files, 1.54 times smaller than jpeg-50)." \
    "It changes by 0.0 points (95% interval " "That it loses less than 1 point is claimed by a rule that makes any wrong claim in at most 2.5% of such studies: its bound, with an error of 0.94%, is " \
    "| after jpeg-30 |" "| −2.1 (1.9%) |" \
    "small, input of 32 pixels squared, 2 epochs, 3 seeds; trained on 800 images, validated on 200. Accuracy is top-1. Each variant is validated on its own images. The original has 16 bits per pixel (hardly compressed files): a JPEG of high quality would be several times smaller already." \
    "One new training on webp-50 would end between "
silent "$page" "What is open"
says "$work/page/plots/accuracy-bytes-small.dat" "3.5 -10 " "10 jpeg-10" "100 0 NaN"
if command -v gnuplot >/dev/null 2>&1; then
    page_text "$page" | tr '\n' ' ' | grep "webp-50 loses.*\[Accuracy against size\].*Nothing is open" >/dev/null ||
        fail "the plot is not between the recommendation and what is open"
fi
# What is not certain is not claimed.
expect 0 dl2-report --tolerance 0.0001 "$study" -o "$page"
says "$page" "webp-50 may lose less than 0.0001 points" "What is open, and what would settle it" \
    "- jpeg-50 changes by −0.1 points (95% interval −0.5 to +0.3, of training alone), 0.1 points beyond the limit. A new study of 32 seeds would show it with a probability of only "
rm -r "$study/train/jpeg-10" "$study/train/jpeg-30" "$study/train/jpeg-50"
for seed in 2 3; do rm -r "$study/train/webp-50/small/seed-$seed" "$study/train/raw/small/seed-$seed"; done
expect 0 dl2-report "$study" -o "$page"
says "$page" "(too few trainings for an interval)"
silent "$page" "Kendall" "Size at equal quality" "qualities in common"
trainings

# ---- Curves by settings and resolution, in the codec's color, and rings on the Pareto front
styled=$work/styled
load "$styled" raw 900
for one in raw:0:0.70 jpeg-30:15:0.63 jpeg-50:25:0.65 jpeg_444-50:26:0.64 jpeg-30@64:9:0.60 webp-30:12:0.62 webp-50:25:0.64; do
    name=${one%%:*} quality=${one%%:*} top1=${one##*:} bytes=${one#*:} quality=${quality#*-}
    [ "$name" = raw ] ||
        variant "$styled" "$name" "${name%%[-_]*}" "${quality%@*}" "${bytes%:*}00000" 30 0.9 3000
    training "$styled" "$name" small 1 "$top1"; training "$styled" "$name" small 2 "$top1"
done
sed -i 's/"options": {}/"options": {"resize": {"short": 64}}/' "$styled/variants/jpeg-30@64/dl2-variant.json"
expect 0 dl2-report "$styled" -o "$work/styled.html"
script=$work/plots/accuracy-bytes-small.gp
grep "title 'jpeg'" "$script" | grep -q "#2f6fde.*pointtype 7 " || fail "jpeg's curve"
grep "title 'jpeg_444'" "$script" | grep -q "#2f6fde.*pointtype 5 " || fail "settings have no points of their own"
grep "title 'jpeg@64'" "$script" | grep -q "#2f6fde.*dashtype (6,3) pointtype 7 " || fail "a resolution has no dashes of its own"
grep "title 'webp'" "$script" | grep -q "#d9730d.*pointtype 7 " || fail "webp's curve"
sed -n '/^# Pareto/,$p' "$work/plots/accuracy-bytes-small.dat" >"$work/front"
printf '# Pareto_front\n4.5 -10 jpeg-30@64\n6 -8 webp-30\n7.5 -7 jpeg-30\n12.5 -5 jpeg-50\n100 0 raw\n' >"$work/wanted"
diff "$work/wanted" "$work/front" || fail "the Pareto front"
! grep -q 'Pareto' "$work/plots/accuracy-ssim-small.gp" || fail "a metric is no cost, and has a Pareto front"
# Of 62 to 65, jpeg and webp have 63 to 64 in common. There webp has 12 (25/12)^(3/4), jpeg 15 (25/15)^(1/4).
says "$work/styled.html" "## Size at equal accuracy, of jpeg" "| webp | 122.1 %" "| 33 % |"
says "$work/answer.json" '"equal_accuracy"'

# ---- Codecs at equal quality: by aggregates, as these files have no scores of images
variant "$work/codecs" jpeg-10 jpeg 10 1000000 26 0.78 3300
variant "$work/codecs" jpeg-50 jpeg 50 2000000 32 0.93 2900
variant "$work/codecs" webp-10 webp 10 1000000 28 0.85 500
variant "$work/codecs" webp-50 webp 50 2000000 36 0.95 500
expect 0 dl2-report "$work/codecs" -o "$work/codecs.html"
# At 30 dB, in the middle of the common 28 to 32 of 26 to 36, webp has 2^(1/4) times its smaller size, jpeg 2^(2/3).
says "$work/codecs.html" "## Size at equal quality, of jpeg" "| PSNR RGB | – |" "74.9 %" "40 %" \
    "Warning: in 2 rows the codecs have less than 75% of their qualities in common"
says "$work/answer.json" '"anchor": "jpeg"' '"metric": "psnr_rgb"' '"bd_rate": -25.'
expect 0 dl2-report --anchor webp --range psnr_rgb=29:31 "$work/codecs" -o "$work/codecs.html"
says "$work/codecs.html" "Size at equal quality, of webp" "Of psnr_rgb only qualities from 29 to 31 are compared"
expect 1 dl2-report --anchor avif "$work/codecs" -o "$work/codecs.html"
said "the study has no codec 'avif'; it has jpeg, webp"
expect 1 dl2-report --range vmaf=1:2 "$work/codecs" -o "$work/codecs.html"
said "the study has no scores by 'vmaf'; it has psnr_rgb, ssim"
expect 2 dl2-report --range psnr_rgb=2:1 "$work/codecs"
expect 2 dl2-report decide --anchor webp "$work/codecs"
rm -r "$work/codecs"/*/jpeg-*
expect 1 dl2-report --anchor webp "$work/codecs" -o "$work/codecs.html"
said 'compare codecs'

# ---- Metrics against accuracy: PSNR orders all but the pair jpeg-50, webp-50, which is nearly equal
expect 0 dl2-report "$study" -o "$page"
says "$page" "Which metric predicts accuracy?" "| SSIM mean | 1.00 |" \
    "| bits per pixel | 0.33 |" "| 4 of 6 |" \
    "and SSIM (5th percentile) each order 6 as accuracy does; size alone orders 4. Of the 5 whose accuracies can be told apart, each orders 5, size alone 4. They are equal" "without predictions, the choice of images is not in it"
[ -s "$work/page/plots/accuracy-ssim-small.dat" ] || fail "no plot against SSIM"
# A variant without scores: size is compared on those that have some.
cp -r "$study" "$work/scored"
rm "$work/scored/quality/webp-50.json"
expect 0 dl2-report "$work/scored" -o "$work/scored.html"
says "$work/scored.html" "Of the 3 pairs of 3 variants"
silent "$work/scored.html" " of 6 |"

# ---- The heat map: rows are trained on, columns validated on
silent "$page" "Trained on one"
for seed in 1 2 3; do
    # The training on the original is called after its dataset, "raw"; a variant is called as it is.
    evaluation "$study" raw small $seed raw:0.71 jpeg-10:0.41 jpeg-50:0.69
    evaluation "$study" jpeg-10 small $seed raw:0.51 jpeg-10:0.61 jpeg-50:0.55 stranger:0.9
done
expect 0 dl2-report "$study" -o "$page"
says "$page" "| trained on | original | jpeg-10 | jpeg-50 |" \
    "| original | 71.0 ± 0.0 {own +0.00} | 41.0 ± 0.0 {-1.00} |" \
    "| jpeg-10 | 51.0 ± 0.0 {-0.67} | 61.0 ± 0.0 {own" \
    "trained on the original differs by −30.0 points from what it scores on the original" \
    "trained on jpeg-10, by −10.0; and that one on the original's images, by −20.0."
silent "$page" "stranger" "| 90.0"
# One that is older than its training tells of another network.
touch -d @1000000000 "$study/train/raw/small/seed-1/evaluation/evaluation_report.json"
expect 0 dl2-report "$study" -o "$page"
says "$work/err" "left out: $study/train/raw/small/seed-1/evaluation/evaluation_report.json: it is older than the training"
says "$page" "left out above" "it is older than the training beside it"
# A broken one is named, and the rest is shown.
for kind in '' '[]' '{"schema": "other/1"}' '{"schema": "dl2-evaluation/1", "val": 7}'; do
    echo "$kind" >"$study/train/raw/small/seed-1/evaluation/evaluation_report.json"
    dl2-report "$study" -o "$page" >/dev/null 2>&1
    [ $? -le 1 ] || fail "an evaluation with '$kind'"
    says "$page" "41.0"
done
rm -r "$study/train/raw/small/seed-1/evaluation"

# ---- The forecast: networks of the original on a variant, as they are and tuned; and training on it
silent "$page" "Before training on a variant"
for seed in 1 2 3; do
    evaluation "$study" raw small $seed raw:0.71 jpeg-10:0.41 webp-50:0.70
    comparable="{\"pretrained\": \"$study/train/raw/small/seed-$seed/checkpoint.safetensors\"}"
    training "$study/forecast/tuned" raw small $seed 0.72$seed
    training "$study/forecast/tuned" jpeg-10 small $seed 0.65$seed
    comparable=
done
expect 0 dl2-report "$study" -o "$page"
silent "$page" "pretrained is"
says "$page" "Before training on a variant" \
    "| jpeg-10 | 3.5 | 30.0 | 7.0 ± 0.0 | 10.0 ± 0.1 |"
silent "$page" "| webp-50 | 6.5 | 1.0 |"
says "$work/page/plots/forecast-small.dat" "7 10 " "jpeg-10"
expect 0 dl2-report forecast "$study"
says "$work/out" '"schema": "dl2-forecasts/1"' '"variant": "jpeg-10"' '"half": ' # for dl2-study

# ---- What the survey found
silent "$page" "## The dataset"
survey "$study"
expect 0 dl2-report "$study" -o "$page"
says "$page" "## The dataset" "9 images of 2 classes: 6 in train, 3 in val. By format: 8 jpeg, 1 png." \
    "95% of the JPEG files are of quality 90 or below;" "1 group of near duplicates spans several splits" \
    "1 file can't be read."
says "$work/page/plots/survey-quality.dat" "81 3 2" "89 5 2"
says "$work/page/plots/survey-width.dat" "32 9 1"
[ ! -e "$work/page/plots/survey-height.dat" ] || fail "a plot of nothing"
echo '{"schema": "other/1"}' >"$study/survey.json"
expect 0 dl2-report "$study" -o "$page"
says "$page" "The survey in $study/survey.json can't be shown"
rm "$study/survey.json"

# ---- Crops: in the page, with what they are
crops "$study" 100 jpeg-10 webp-50 stranger
expect 0 dl2-report "$study" -o "$page"
says "$page" "worst by SSIM, PSNR RGB val/<worst>" "val/<median>" "[webp-50 6.5% SSIM 0.812]"
[ "$(grep -c 'SSIM 0.812]' "$said")" -eq 4 ] || fail "not two crops a variant"
silent "$page" "[stranger"
"$PYTHON3" - "$work/page/report.json" "$study/crops/median-jpeg-10.png" <<'PY' || fail "see above" # the bytes come back
import base64, re, sys
texts = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]*)", open(sys.argv[1], encoding="utf-8").read())
data = [base64.b64decode(t, validate=True) for t in texts]
assert len(data) == 6, len(data)
assert open(sys.argv[2], "rb").read() in data
PY
# What is no crop is not taken, and said.
for file in median.png ../quality/jpeg-10.json missing.png; do
    crops "$study" 100 jpeg-10
    sed "s|worst-jpeg-10.png|$file|" "$study/crops/crops.json" >"$work/edited"
    cat "$work/edited" >"$study/crops/crops.json"
    [ $file != median.png ] || echo 'no picture' >"$study/crops/median.png"
    expect 0 dl2-report "$study" -o "$page"
    says "$page" "The crops in $study/crops/crops.json can't be shown" "webp-50"
done
head -c 300000 /dev/zero >"$study/crops/median.png"
expect 0 dl2-report "$study" -o "$page"
says "$page" "can't be shown"
rm -r "$study/crops"

# ---- Twenty variants stay below 5 MB: 128 x 128 pixels of noise are 49 kB as PNG
rm -r "$study"/train/*/small/seed-*/evaluation
for quality in 10 20 30 40 50 60 70 80 90 95; do
    for codec in jpeg webp; do
        variant "$study" $codec-$quality $codec $quality ${quality}0000 30.9 0.9 2900
        for seed in 1 2 3; do training "$study" $codec-$quality small $seed "0.6$quality$seed"; done
        evaluation "$study" $codec-$quality small 1 raw:0.5 jpeg-10:0.5 webp-10:0.6
    done
done
# shellcheck disable=SC2046
crops "$study" 49300 $(for q in 10 20 30 40 50 60 70 80 90 95; do echo jpeg-$q webp-$q; done)
expect 0 dl2-report "$study" -o "$page"
says "$page" "20 variants" "[webp-95 "
silent "$page" "there was no room" "they were resized"
sed -i 's/"crops": /"left_out": ["jpeg-7@64", "a\&b"], &/' "$study/crops/crops.json"
expect 0 dl2-report "$study" -o "$page"
says "$page" "Not here, because they have no scores that compare: jpeg-7@64, a&b."
# Larger ones: the second image does not fit into 3 MB, and is named.
# shellcheck disable=SC2046
crops "$study" 56000 $(for q in 10 20 30 40 50 60 70 80 90 95; do echo jpeg-$q webp-$q; done)
expect 0 dl2-report "$study" -o "$page"
says "$page" "Images take up to 3 MB of this page; there was no room for: worst by SSIM, PSNR RGB. They lie in"
[ "$(wc -c <"$page")" -lt 3500000 ] || fail "the page has $(wc -c <"$page") bytes"

# ---- Histograms of the images of original and variants: of eight variants seven
spread=$work/spread
for q in 10 20 30 40 50 60 70 80; do
    variant "$spread" jpeg-$q jpeg $q ${q}000 30 0.9 3000
    for image in 1 2 3; do
        echo '{"key": "train/'$image'", "bytes": '$((q * 64 / 10))', "source_bytes": 1024, "width": 16, "height": 16}'
    done >"$spread/variants/jpeg-$q/dl2-variant.jsonl"
done
expect 0 dl2-report "$spread" -o "$work/spread.html"
says "$work/spread.html" "Histograms are of 7 of the 8 variants, evenly chosen from the smallest to the largest."
silent "$work/spread.html" "dl2-variant.jsonl"
block() { sed -n "/^# $2\$/,/^\$/p" "$work/plots/images-$1.dat" | sed '/^$/d' | tr '\n' ' '; }
[ "$(block bytes raw)" = '# raw 1024 0 1024 3 1217.7481 0 ' ] || fail "the original's bytes: $(block bytes raw)"
[ "$(block bytes jpeg-10)" = '# jpeg-10 64 0 64 3 76.109255 0 ' ] || fail "jpeg-10's bytes: $(block bytes jpeg-10)"
[ "$(block bits-per-pixel jpeg-10)" = '# jpeg-10 2 0 2 3 2.3784142 0 ' ] || fail "jpeg-10's bits per pixel"
[ "$(grep -c '^# jpeg-' "$work/plots/images-bytes.dat")" = 7 ] || fail "not seven variants"
[ ! -e "$work/plots/images-short.dat" ] || fail "sizes are drawn, and no variant is resized"
sed -i 's/"options": {}/"options": {"resize": {"short": 8}}/' "$spread/variants/jpeg-80/dl2-variant.json"
sed -i 's/"width": 16, "height": 16/"width": 12, "height": 8, "source_width": 24, "source_height": 16/' "$spread/variants/jpeg-80/dl2-variant.jsonl"
echo '{"key": "train/4", "bytes": -1}' >>"$spread/variants/jpeg-10/dl2-variant.jsonl"
printf '{"key": "tra' >>"$spread/variants/jpeg-20/dl2-variant.jsonl"
rm "$spread/variants/jpeg-30/dl2-variant.jsonl"
expect 0 dl2-report "$spread" -o "$work/spread.html"
says "$work/spread.html" "jpeg-10/dl2-variant.jsonl: bytes is -1" "jpeg-20/dl2-variant.jsonl: line 4 is not a JSON object" \
    "Histograms are of 5 of the 8 variants, evenly chosen from the smallest to the largest of those that have a dl2-variant.jsonl."
[ "$(block short jpeg-80)" = '# jpeg-80 8 0 8 3 9.5136569 0 ' ] || fail "shorter sides: $(block short jpeg-80)"
[ "$(block short raw)" = '# raw 16 0 16 3 19.027314 0 ' ] || fail "the original's shorter sides: $(block short raw)"

# ---- The machines over the study: on b two steps at once; then on a, after two hours, of which nothing is shown
silent "$work/spread.html" "The machine over the study"
timeline "$spread" b 1 quality 1000000 100
timeline "$spread" b 2 train/raw/small/seed-1 1000010 140
server=50 timeline "$spread" a 1 train/jpeg-10/small/seed-1 1007300 100
expect 0 dl2-report "$spread" -o "$work/spread.html"
says "$work/spread.html" "## The machine over the study" "[The machine b]" "[The machine a]" " 1 pause of 10 minutes or more is left out."
grep '^[0-9]' "$work/plots/machine-1.dat" >"$work/rows"
# Time, and percent of both processors; of 250 s in bins of 0.625. The steps; where both tell, the first one's samples count.
printf '%s\n' '0.3125 NaN NaN NaN 0 NaN NaN NaN NaN NaN NaN NaN NaN NaN ' '100.3125 NaN NaN 50 0 NaN NaN NaN NaN 0 0 1 0 NaN ' \
    '150.3125 NaN NaN 50 0 NaN NaN NaN NaN 0 0 0.7142857143 0 NaN ' '0 0 100 quality' '10 1 140 train' |
    diff - "$work/rows" || fail "the machine b"
grep '^[0-9]' "$work/plots/machine-2.dat" >"$work/rows"
printf '%s\n' '150.3125 NaN NaN NaN 0 NaN NaN NaN NaN NaN NaN NaN NaN NaN ' '249.6875 NaN NaN 50 25 NaN NaN NaN NaN 0 0 1 0 NaN ' \
    '150 0 100 train' | diff - "$work/rows" || fail "the machine a"
grep -q "title 'server'" "$work/plots/machine-2.gp" || fail "the server of a is not drawn"
! grep -q "title 'server'" "$work/plots/machine-1.gp" || fail "b had no server, and it is drawn"
grep -q "set ytics ('quality' 0, 'train' 1)" "$work/plots/machine-1.gp" || fail "the stages have no names"
sed -i 's/"started": [0-9]*/"started": -1/' "$spread/timelines/dl2-study-a-1.json"
expect 0 dl2-report "$spread" -o "$work/spread.html"
says "$work/spread.html" "timelines/dl2-study-a-1.json: started is -1" "[The machine b]"
silent "$work/spread.html" "[The machine a]"
exit 0
