#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The answer: the table and the sentences at the end, printed again, and answer.json and answer.csv for scripts.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
need_python json python3
study=$work/study report=$work/study/report

two_jpegs "$study"
variant "$study" jpeg-90 jpeg 90 3000000 40 0.99 1900
trainings "$study" jpeg-10 small 0.701 0.702 0.703
trainings "$study" jpeg-50 small 0.601 0.602 0.603
trainings "$study" jpeg-90 small 0.703 0.702 0.701
expect 0 dl2-report "$study" -o "$report/report.html"
cp "$work/out" "$work/printed"

# The table: the original, what is recommended, and what comes next.
cat >"$work/expected" <<'EOF'
                 top-1 accuracy          loading,
variant   bytes  points (95% interval)   images/s/core  verdict
original  100%   70.2%                   900
jpeg-90   15%    0.0 (−0.4 to +0.4)*     1900 (2.11x)   within
jpeg-10   3.5%   0.0 (−0.1 to +0.1)*     3300 (3.67x)   could be
jpeg-50   10%    −10.0 (−10.1 to −9.9)*  2900 (3.22x)   worse
* By the chance of training alone; that of the choice of images is not known.
Use jpeg-90: 6.67 times smaller than hardly compressed files, and the smallest that is shown to lose less than 1 point of top-1 accuracy; it loads 2.11 times as fast as the original.
Open: jpeg-10. A codec's files are tested from the largest to the smallest, and jpeg-50 is not shown: its bound is −10.1 points. A new study of 32 seeds would show both with a probability of only 0%: jpeg-50 was measured 9 points beyond the limit.
EOF
diff "$work/expected" "$work/printed" || fail 'the answer is printed in another way'
# The same again, and no look at the study.
expect 0 dl2-report answer "$study"
cmp "$work/out" "$work/printed" || fail 'answer prints something else'
expect 2 dl2-report answer --tolerance 5 "$study"
said '--tolerance is not an option of the command answer'

# Verdicts, and their reasons.
"$PYTHON3" - "$report" "$work/printed" <<'PY' || fail 'answer.json: see above'
import csv, json, math, sys
answer = json.load(open(sys.argv[1] + "/answer.json"))
assert answer["schema"] == "dl2-answer/1" and answer["tolerance"] == 1, answer
network = answer["networks"]["small"]
printed = open(sys.argv[2]).read().splitlines()
assert answer["notes"] + network["table"] + [network["smallest"]["text"], network["open"]] == printed, (answer, printed)
variants = network["variants"]
told = {name: (v["verdict"], v["reason"], v["blocked_by"]) for name, v in variants.items()}
assert told == {
    "raw": (None, "original", None),
    "jpeg-90": ("within", "claimed", None),
    "jpeg-50": ("worse", "interval beyond the tolerance", None),
    "jpeg-10": ("could be", "larger variant not claimed", "jpeg-50"),
}, told
assert network["smallest"]["claimed"] == "jpeg-90", network["smallest"]
# A claim goes by its bound, with its part of the error; behind jpeg-50, which failed, jpeg-10 was not tested.
claim = variants["jpeg-90"]["claim"]
assert -1 <= claim["bound"] < variants["jpeg-90"]["interval"][0] and 0.018 < claim["error"] < 0.019, claim
assert variants["jpeg-50"]["claim"]["bound"] < -10 and variants["jpeg-10"]["claim"] is None, variants
assert variants["jpeg-90"]["outlook"] is None and variants["jpeg-50"]["outlook"] is None, variants
outlook = variants["jpeg-10"]["outlook"]
assert math.isclose(outlook["margin"], 1) and outlook["of_images"] is None and 0 < outlook["chance"] <= 1, outlook
assert ", 1 point from the limit." in outlook["text"], outlook
assert outlook["text"].endswith("jpeg-50 has to be shown first, or left out of a new study."), outlook
assert math.isclose(variants["jpeg-50"]["difference"], -10, abs_tol=1e-9)
assert [name for name, v in variants.items() if v["pareto_front"]] == ["jpeg-10"], variants
low, high = variants["jpeg-90"]["interval"]
assert low < 0 < high and variants["jpeg-90"]["seeds"] == 3
assert answer["variants"]["jpeg-10"]["ratio"] == 0.035
for name in answer["variants"]: # counts are whole
    assert type(answer["variants"][name]["images"]) is int and type(answer["variants"][name]["bytes"]) is int, name
assert answer["equal_quality"] == {"anchor": "jpeg", "rates": []}, answer["equal_quality"]
table = list(csv.DictReader(open(sys.argv[1] + "/answer.csv")))
assert [row["variant"] for row in table] == list(answer["variants"]), table
for row in table:
    own = variants[row["variant"]]
    assert row["network"] == "small" and row["verdict"] == (own["verdict"] or ""), row
    assert row["reason"] == own["reason"], row
    if own["verdict"]:
        assert math.isclose(float(row["low"]), own["interval"][0], rel_tol=1e-8), row
    if own["claim"]:
        assert math.isclose(float(row["claim_bound"]), own["claim"]["bound"], rel_tol=1e-8), row
PY

# Not only of one network: each has its table.
for seed in 1 2; do
    training "$study" raw large "$seed" "0.80$seed"
    training "$study" jpeg-90 large "$seed" "0.80$seed"
done
expect 0 dl2-report "$study" -o "$report/report.html"
says "$work/out" "large:" "small:" "−10.0 (−10.1 to −9.9)*"
is "$(grep -c '^original ' "$work/out")" 2 'tables of two networks'
"$PYTHON3" -c 'import json, sys
networks = json.load(open(sys.argv[1]))["networks"]
assert networks["large"]["variants"]["jpeg-10"]["reason"] == "not compared", networks
assert len(networks["large"]["variants"]) == 4 and "small" in networks' "$report/answer.json" || fail 'two networks'

# Somebody else's file of that name is not overwritten, and a study without a report has no answer.
for name in answer report; do
    mkdir "$work/own-$name"
    echo '{"schema": "mine"}' >"$work/own-$name/$name.json"
    expect 1 dl2-report "$study" -o "$work/own-$name/report.html"
    said "$work/own-$name/$name.json may not be dl2-report's"
    is "$(cat "$work/own-$name/$name.json")" '{"schema": "mine"}' 'a file of another kind'
done
rm -r "$report"
expect 1 dl2-report answer "$study"
said "answer.json"

# A variant of resized images is one of a sequence of its own, and its scores are left out; all bits per pixel are of the
# original's pixels, also if only resized variants tell how many these are.
variant "$study" jpeg-90@160 jpeg 90 500000 41 0.995 4000
sed -i 's/"options": {}/"options": {"resize": {"short": 160, "filter": "lanczos"}}/
    s/"pixels": 10000000/"resized": 1000, "source_pixels": 10000000, "pixels": 500000/' \
    "$study/variants/jpeg-90@160/dl2-variant.json"
sed -i 's/"metrics"/"resize": {"short": 160, "filter": "lanczos"}, "metrics"/' "$study/quality/jpeg-90@160.json"
variant "$study" jpeg_444-05@160 jpeg 5 400000 41 0.995 4000
variant "$study" jpeg-ms_ssim0.95@160 jpeg null 450000 41 0.995 4000
sed -i 's/"options": {}/"options": {"target": {"of": "ms_ssim", "value": 0.95}}/' "$study/variants/jpeg-ms_ssim0.95@160/dl2-variant.json"
variant "$study" png@160 png null 600000 41 0.995 4000
for seed in 1 2 3; do training "$study" jpeg-90@160 small "$seed" "0.70$seed"; done
expect 0 dl2-report "$study" -o "$report/report.html"
says "$report/report.html" 'What stands behind an @'
"$PYTHON3" - "$report" <<'PY' || fail 'answer.json of resized images: see above'
import json, sys
answer = json.load(open(sys.argv[1] + "/answer.json"))
small, large = answer["variants"]["jpeg-90@160"], answer["variants"]["jpeg-90"]
codecs = [answer["variants"][name]["codec"] for name in ("jpeg_444-05@160", "png@160", "jpeg-ms_ssim0.95@160")]
assert codecs == ["jpeg_444@160", "png@160", "jpeg-ms_ssim@160"], codecs
assert (small["codec"], large["codec"]) == ("jpeg@160", "jpeg"), (small, large)
assert small["psnr_rgb"] is None and small["ssim"] is None and large["ssim"] == 0.99, (small, large)
assert abs(small["bits_per_pixel"] - 0.4) < 1e-12, small
assert answer["networks"]["small"]["variants"]["jpeg-90@160"]["accuracy"] is not None, answer["networks"]["small"]
PY
rm -r "$study"/*/jpeg_444* "$study"/*/jpeg-ms_* "$study"/*/png* "$study"/variants/jpeg-?0 "$study"/quality/jpeg-?0.json "$study"/load/jpeg-?0.json "$study"/train/jpeg-?0
expect 0 dl2-report "$study" -o "$report/report.html"
"$PYTHON3" -c 'import json, sys
variants = json.load(open(sys.argv[1]))["variants"]
assert list(variants) == ["raw", "jpeg-90@160"] and variants["raw"]["bits_per_pixel"] == 16, variants' \
    "$report/answer.json" || fail 'bits per pixel of the original'

# A gain is called a gain, with its estimate; sizes say what the original is; and what the resolution alone does is
# beside it. Both questions are one sentence where they have one answer.
gains=$work/gains
load "$gains" raw 900
reference_files='{"lossy": 0, "of_known_quality": 0, "median_quality": null, "formats": {"png": 1000}}'
variant "$gains" jpeg-90 jpeg 90 4000000 40 0.99 1900
variant "$gains" jpeg-75@48 jpeg 75 1000000 40 0.99 1900
variant "$gains" png@48 png null 2000000 40 0.99 1900
unset reference_files
sed -i 's/"options": {}/"options": {"resize": {"short": 48}}/' "$gains"/variants/*@48/dl2-variant.json
trainings "$gains" raw small 0.700 0.702 0.704
paths='"own", "original"'
original() { sets=", {\"name\": \"raw\", \"images\": 200, \"loss\": 1, \"top1\": $1, \"top5\": 0.9}"; }
for seed in 1 2 3; do
    original "0.72$((2 * seed))"
    training "$gains" jpeg-75@48 small $seed "0.72$((2 * seed))"
    training "$gains" png@48 small $seed "0.73$((2 * seed - 1))"
    sets=
    training "$gains" jpeg-90 small $seed "0.69$((2 * seed))"
done
paths='"original"'
trainings "$gains" raw small 0.700 0.702 0.704
expect 0 dl2-report "$gains" -o "$work/gains.html"
says "$work/out" "jpeg-75@48  5%     +2.2 (+2.2 to +2.2)*   1900 (2.11x)   within" \
    "Use jpeg-75@48: 20 times smaller than png without loss, 4 times smaller than jpeg-90, and the smallest that is shown to lose less than 1 point of top-1 accuracy, on its own images and on the original's; it loads 2.11 times as fast as the original."
says "$work/gains.html" "jpeg-75@48 gains 2.2 points of top-1 accuracy, at 5% of the original's bytes (20 times smaller than png without loss, 4 times smaller than jpeg-90)." \
    "It gains 2.2 points (95% interval " ", on its own images and on the original's. " \
    "For comparison, png@48, the same resolution without loss, gains 3.1 points (95% interval " "That it loses less than 1 point is claimed by a rule"
# What was not measured has no column.
cp -R "$gains" "$work/unloaded"; rm -r "$work/unloaded/load"
expect 0 dl2-report "$work/unloaded" -o "$work/unloaded.html"
says "$work/out" "jpeg-75@48  5%     +2.2 (+2.2 to +2.2)*   within" "on the original's."
! grep -q 'loading\|images/s' "$work/out" || fail "speeds that were not measured: $(cat "$work/out")"
# A few JPEGs among originals without loss make them no JPEGs; most do.
originals() { # LOSSY PNGS JPEGS
    sed -i "s/\"lossy\".*}}/\"lossy\": $1, \"of_known_quality\": $1, \"median_quality\": 60, \"formats\": {\"png\": $2, \"jpeg\": $3}}/" \
        "$gains"/quality/*.json
    expect 0 dl2-report "$gains" -o "$work/gains.html"
}
originals 10 990 10
says "$work/gains.html" "20 times smaller than mostly png without loss, 4 times smaller than jpeg-90"
originals 600 400 600
says "$work/gains.html" "20 times smaller than mostly JPEG of quality 60 in the median)"
