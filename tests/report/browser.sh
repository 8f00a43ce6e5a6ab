#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a browser shows of a page's document: every section, row, figure and crop, texts as texts, rows in order on request.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
plainly
need_python json python3
for chromium in chromium chromium-browser google-chrome none; do ! command -v $chromium >/dev/null 2>&1 || break; done
[ $chromium != none ] || skip "no Chromium is installed (Debian: chromium)"
study=$work/study page=$work/page/report.html
two_jpegs "$study" '{"path": "</script><script>alert(1)</script>", "error": "a \"quote\" & <!-- more"}'
variant "$study" webp-50 webp 50 900 31.9 0.925 500
variant "$study" jpeg-90 jpeg 90 3000000 33 0.95 2000
for arch in small '<b>large'; do
    trainings "$study" raw "$arch" 0.701 0.702 0.703
    trainings "$study" jpeg-10 "$arch" 0.601 0.602 0.603
    trainings "$study" jpeg-50 "$arch" 0.701 0.702 0.700
    trainings "$study" webp-50 "$arch" 0.701 0.702 0.703
done
for round in 1 2 3; do
    for name in raw jpeg-10 jpeg-50; do rate "$study" small $name $round $((round + 800)); done
    rate "$study" load raw $round 1000 loading/disk/jobs-2
    evaluation "$study" raw small $round raw:0.71 jpeg-10:0.41 jpeg-50:0.69
    evaluation "$study" jpeg-10 small $round raw:0.51 jpeg-10:0.61 jpeg-50:0.55
done
survey "$study"
crops "$study" 100 jpeg-10 webp-50
expect 0 dl2-report "$study" -o "$page" --title "</script><img src=x onerror=alert(1)> & \"more\" $(printf '\001\377')" \
    --about "<b>About</b>" --command "make study X='</pre>'"
page_text "$page" "$srcdir/docs/formats/dl2-report-1.schema.json" >"$work/text" || fail "the page's document: see above"
"$PYTHON3" "$srcdir/tests/report/browser.py" $chromium "$page" || fail "what the browser shows: see above"

# Several studies, by the same template.
cp -R "$study" "$work/other"
sed -i 's/"train_bytes": 1/"train_bytes": 2/' "$work"/other/train/*/*/seed-*/experiment_report.json
expect 0 dl2-report "$study" "$work/other" -o "$page"
page_text "$page" "$srcdir/docs/formats/dl2-report-1.schema.json" >"$work/text" || fail "several studies: see above"
"$PYTHON3" "$srcdir/tests/report/browser.py" $chromium "$page" || fail "what the browser shows of several: see above"
