#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Variants of several resolutions, and of one codec with several settings: dl2-transcode names them, and a study makes,
# scores, loads and trains on each.
. "$srcdir/tests/lib.sh"
plainly
[ -n "${PYTHON3:-}" ] || skip "Python is not installed: it reads the answer"
. "$srcdir/tests/study/study_lib.sh"
refused 'RESIZE_SHORTER is "0"' RESIZE_SHORTER=0
refused 'RESIZE_SHORTER is "20 20": 20 is there twice' RESIZE_SHORTER='20 20'
refused 'TRAIN_ON is "jpeg-50": jpeg-50 is not among the variants jpeg-50@20' QUALITIES=50 RESIZE_SHORTER=20 TRAIN_ON=jpeg-50

refused 'CONTROL is "maybe": it is yes or no' RESIZE_SHORTER=20 CONTROL=maybe

# Beside what is reduced, a control: the same resolution without loss.
expect 0 study CODECS='jpeg jpeg:subsampling=444' QUALITIES=50 RESIZE_SHORTER='20 full' SEEDS='1 2'
is "$(cd results/variants && echo *)" 'jpeg-50 jpeg-50@20 jpeg_444-50 jpeg_444-50@20 png@20' 'variants'
for variant in jpeg-50 jpeg-50@20 jpeg_444-50 jpeg_444-50@20 png@20; do
    for file in quality/$variant.json load/$variant.json throughput/convnet/$variant/round-2.json \
        train/$variant/convnet/seed-1/experiment_report.json; do
        [ -f "results/$file" ] || fail "no $file"
    done
done
grep -q '"short": 20' results/variants/jpeg-50@20/dl2-variant.json ||
    fail "the resolution is not recorded"
grep -q 'RESIZE_SHORTER=\\"20 full\\"' results/report/report.json || fail "the command lacks RESIZE_SHORTER"
grep -qx 'convnet,jpeg-50@20,.*' results/report/answer.csv || fail "the answer has no jpeg-50@20"
grep -q "title 'jpeg@20'" results/report/plots/accuracy-bytes-convnet.gp || fail "the plot has no curve of jpeg@20"

"$PYTHON3" - results/report <<'PY' || fail "the control in the answer: see above"
import json, re, sys
answer = json.load(open(sys.argv[1] + "/answer.json"))
smallest = answer["networks"]["convnet"]["smallest"]
pick = smallest["claimed"] or smallest["candidate"]
page = open(sys.argv[1] + "/report.html", encoding="utf-8").read()
assert pick is None or ("For comparison, png@20, the same resolution without loss, " in page) == pick.endswith("@20"), smallest
PY

# An added resolution: its variants alone. All resized: there is nothing for crops.
touch mark
sleep 0.05
expect 0 study CODECS='jpeg jpeg:subsampling=444' QUALITIES=50 RESIZE_SHORTER='10 20 full' SEEDS='1 2' load
is "$(find results/load -newer mark -name '*.json' | LC_ALL=C sort | xargs)" \
    'results/load/jpeg-50@10.json results/load/jpeg_444-50@10.json results/load/png@10.json' 'an added resolution'
expect 0 study CODECS='jpeg jpeg:subsampling=444' QUALITIES=50 RESIZE_SHORTER='10 20' CONTROL=no OUT=without variants
is "$(cd without/variants && echo *)" 'jpeg-50@10 jpeg-50@20 jpeg_444-50@10 jpeg_444-50@20' 'without a control'
# Lanczos reduces them, whatever the input, unless TRANSCODE_FLAGS has another filter; the name and what is printed say so.
expect 0 study QUALITIES=50 RESIZE_SHORTER=10 OUT=filter TRANSCODE_FLAGS='--filter bilinear' variants
is "$(cd filter/variants && echo *)" 'jpeg-50@10-bilinear png@10-bilinear' 'another filter'
cat out err | grep -q 'images resized (bilinear)' || fail "the filter is not said: $(cat out err)"
expect 0 study QUALITIES=50 RESIZE_SHORTER=20 SEEDS=1 OUT=small study-regimens REGIMENS=jpeg-50@20:1,raw:1
page_text small/report/report.html | grep '^| jpeg-50@20:1,raw:1 |' >/dev/null || fail "no regimen of a resized variant"
made_again small/report/report.html | grep -q 'REGIMENS=jpeg-50@20:1,raw:1$' ||
    fail "the command has what was not set: $(made_again small/report/report.html)"
exit 0
