#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The goals study-quality, study-bytes and study-codec on a tiny dataset of JPEGs: what they make, what they
# don't make again, and their sections of the report.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need_python json python3
mkdir sources && expect 0 dl2-transcode --quiet --q 60 data sources && mv sources/jpeg-60 jpegs && rm jpegs/dl2-variant.json* || exit 99
few() { study DATASET=jpegs QUALITIES='10 75' "$@"; }
news() { find results -newer mark -type f ! -path '*/.make/*' ! -path 'results/report/*' ! -path results/study-plan.json ! -name log \
    ! -name '*.safetensors' ! -name '*.npy' | LC_ALL=C sort; }
mark() { sleep 0.05; touch mark; sleep 0.05; }
page=results/report/report.html
said_on_page() { page_text $page >text; grep -qF -- "$1" text || fail "the page says nothing of '$1'"; }

# ---- Accuracy at a quality, with copies counted
expect 0 few study-quality
said_on_page '## Accuracy at a quality'
said_on_page 'in jpeg-75 32 of 32.'
said_on_page '| files copied |'
[ ! -e results/load ] || fail "study-quality measures loading"
[ "$(grep -c '^[17]' results/report/plots/accuracy-quality-convnet.dat)" = 2 ] || fail "not two points by quality"
grep -q 'Strong compression\|## Codecs' text && fail "sections without results"

# ---- Equal bytes
mark
expect 0 few study-bytes
is "$(news | paste -sd ' ')" "$(for v in 10 75; do for s in 1 2; do
    echo results/bytes/jpeg-$v/train/raw/convnet/seed-$s/experiment_report.json; done; done | paste -sd ' ')" 'what is made'
"${PYTHON3:-python3}" - <<'PY' || fail "the subsets are not of equal bytes"
import json
def report(path): return json.load(open(f"results/{path}/convnet/seed-1/experiment_report.json"))
raw = report("train/raw")
for variant in "jpeg-10", "jpeg-75":
    subset, whole = report(f"bytes/{variant}/train/raw"), report(f"train/{variant}")
    percent = 100 * whole["train_bytes"] / raw["train_bytes"]
    assert abs(float(subset["arguments"]["subset"].rstrip("%")) - percent) < 1e-3, (subset["arguments"]["subset"], percent)
    each = round(percent / 100 * 8)  # of the 8 images in each of two classes
    assert subset["train_images"] == 2 * max(each, 1) and whole["train_images"] == 16, subset["train_images"]
    assert subset["val_images"] == 16 and len(subset["epochs"]) == len(whole["epochs"])
assert percent == 100
PY
said_on_page '## Strong compression or fewer images?'
is "$(sed -n '/^## Strong compression/,/^## [^S]/p' text | grep -c '^| jpeg-')" 2 'rows at equal bytes'
[ "$(sed -n '/subset/,$p' results/report/plots/accuracy-equal-bytes-convnet.dat | grep -c '^[0-9]')" = 3 ] ||
    fail "not three points of fewer images"
mark
expect 0 few study-bytes
[ -z "$(news)" ] || fail "made again: $(news)"

# ---- An external codec beside the others
cat >encode <<'SH'
#!/bin/sh
[ "$3" -ge 10 ] && cp "$1" "$2"
SH
chmod +x encode
expect 2 few study-codec
said 'study-codec needs EXTERNAL'
expect 2 few EXTERNAL='mine=nothing' study-codec
said 'EXTERNAL is "mine=nothing": mine: a command that decodes must follow'
mark
expect 0 few EXTERNAL="mine=$PWD/encode %i %o %q; cp %i %o" study-codec
for file in variants/mine-10/train/fine/3.dl2x quality/mine-75.json load/mine-10.json load/raw.json \
    train/mine-75/convnet/seed-2/experiment_report.json; do
    [ -f "results/$file" ] || fail "no $file"
done
[ -z "$(news | grep 'variants/jpeg\|train/jpeg\|train/raw\|quality/jpeg')" ] || fail "other codecs are made again: $(news)"
grep -q '"identical": 32' results/quality/mine-10.json || fail "the external codec's images are not the original's"
said_on_page '## Codecs'
said_on_page 'An external codec starts a process for each image'
is "$(sed -n '/^## Codecs/,/^## [^C]/p' text | grep -c '^| [^c]')" 2 'rows of codecs'
mark
expect 0 few EXTERNAL="mine=$PWD/encode %i %o %q; cp %i %o" study-codec
[ -z "$(news)" ] || fail "made again: $(news)"
expect 0 few EXTERNAL="mine=$PWD/encode %i %o %q; cp -f %i %o" study-codec
is "$(news | grep variants | grep -vc /mine-)" 0 'other variants made by another command'
[ "$(news | grep -c 'variants/mine-.*dl2x')" = 64 ] || fail "another command makes nothing"
exit 0
