#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A time limit of encoding: dl2-transcode ends at it and says how far it came, and goes on with a higher one; in a study the
# external codec that is too slow is left out, and the report says so.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
cat >slow <<'END_SLOW'
#!/bin/sh
sleep "$3" && cp "$1" "$2"
END_SLOW
chmod +x slow
slow="slow=$work/slow %i %o 0.4 %q; cp %i %o"
count() { sed -n "s/^ *\"images\": \([0-9]*\),$/\1/p" "$1/dl2-variant.json" | head -n 1; }

# 32 images in 2 workers take 6.4 s.
expect 1 dl2-transcode --quiet -j 2 --codec "$slow" --q 30 --time-limit 1.5 data variants
said 'slow-30 did not finish in 1.5 s (--time-limit): '
made=$(count variants/slow-30)
said "$made of 32 images are made"
[ "$made" -ge 1 ] && [ "$made" -lt 32 ] || fail "$made images within the limit"
grep -q '"complete": false' variants/slow-30/dl2-variant.json || fail "$(cat variants/slow-30/dl2-variant.json)"
expect 1 dl2-transcode --quiet -j 2 --codec "$slow" --q 30 --time-limit 1.5 data variants
is "$(count variants/slow-30)" "$made" "images once the time is spent"
expect 0 dl2-transcode -j 2 --codec "$slow" --q 30 --time-limit 600 data variants
grep -q "^slow-30  *32  *$((32 - made)) " "$work/out" || fail "it did not go on: $(cat "$work/out")"
grep -q time_limit variants/slow-30/dl2-variant.json && fail "a whole variant has a limit"
for wrong in '--container tar' '--part 1/2' '--ranks 2'; do
    expect 2 dl2-transcode --quiet --codec "$slow" --q 30 --time-limit 1 $wrong data elsewhere
    said 'time-limit needs one process and --container folder'
done

external() { "$@" EXTERNAL="$slow" QUALITIES=20 OUT=results ENCODE_LIMIT=2s; }
expect 0 external study
said 'left out, not encoded within ENCODE_LIMIT, 2s: slow-20'
grep -q 'slow-20 did not finish within ENCODE_LIMIT' "$work/out" || fail "not said: $(cat "$work/out")"
page_text results/report/report.html >page
grep -q 'slow-20 was not encoded within 2 s: [0-9]* of 32 images' page || fail "the page does not say it: $(cat page)"
grep -q '^jpeg-20 ' "$work/out" || fail "jpeg-20 is missing: $(cat "$work/out")"
[ ! -e results/train/slow-20 ] || fail "it was trained on"
expect 0 external study
said 'left out, not encoded within ENCODE_LIMIT, 2s: slow-20'
made=$(count results/variants/slow-20)
is "$(count results/variants/slow-20)" "$made" "images once the time is spent"
expect 0 dl2-report hypotheses results
grep -q 'slow-20 was not encoded within 2 s' "$work/out" || fail "H5 does not say it: $(cat "$work/out")"

refused 'ENCODE_LIMIT is "2s": it has an effect on EXTERNAL alone' ENCODE_LIMIT=2s
refused 'containers are written as a whole' EXTERNAL="$slow" ENCODE_LIMIT=2s TRANSCODE_FLAGS='--container tar'
refused 'ENCODE_LIMIT is "2": ' EXTERNAL="$slow" ENCODE_LIMIT=2
