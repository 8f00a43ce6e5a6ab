#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study of Parquet files, which it gets first, and a twin of them whose card has its answer (tests/python/hub.sh has what is needed).
. "$srcdir/tests/lib.sh"
plainly
[ -n "${DL2_PEER_PYTHON:-}" ] || skip "DL2_PEER_PYTHON names no Python with datasets (PyPI)"
"$DL2_PEER_PYTHON" -c 'import pyarrow, fsspec, yaml; assert int(pyarrow.__version__.split(".")[0]) >= 21' 2>/dev/null ||
    skip "$DL2_PEER_PYTHON lacks pyarrow 21, fsspec or pyyaml"
. "$srcdir/tests/study/study_lib.sh"
expect 2 planned DATASET='rows/*.parquet.gz'
said "it is neither a folder nor shards"
mkdir rows with without
printf '#!/bin/sh\nexec "%s" "$@"\n' "$DL2_PEER_PYTHON" >with/python3
printf '#!/bin/sh\nexec "%s" "$@"\n' "$PYTHON3" >without/python3
chmod +x with/python3 without/python3
# Classes in the order of a list, not of their names: folders would change their numbers.
"$DL2_PEER_PYTHON" - <<'PYTHON'
import glob, json, pyarrow as pa, pyarrow.parquet as pq
names = ["fine", "coarse"]
about = json.dumps({"info": {"features": {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}}})
schema = pa.schema([("image", pa.struct({"bytes": pa.binary(), "path": pa.string()})), ("label", pa.int64())], {"huggingface": about})
for split in ("train", "val"):
    rows = [{"image": {"bytes": open(path, "rb").read(), "path": path}, "label": label}
            for label, name in enumerate(names) for path in sorted(glob.glob(f"data/{split}/{name}/*"))]
    pq.write_table(pa.Table.from_pylist(rows, schema), f"rows/{split}-00000-of-00001.parquet")
PYTHON
of_rows() { study DATASET='rows/*.parquet' OUT=results QUALITIES=10 SEEDS='1 2' ROUNDS=1 "$@"; }
plain=$PATH
PATH=$work/without:$PATH
"$PYTHON3" -c 'import pyarrow' 2>/dev/null || { # named with what installs it
    expect 1 of_rows
    said "pip install 'pyarrow>=21'"
}
PATH=$work/with:$plain
expect 0 of_rows
is "$(cat results/data/train/classes.txt)" "fine
coarse" "the classes of the shards"
[ -e results/variants/jpeg-10/train/shard-000000.tar ] || fail "variants are not shards: $(find results/variants -type f)"
is "$(find results/train -name experiment_report.json | wc -l)" 4 "trainings"
expect 0 planned DATASET='rows/*.parquet' OUT=results QUALITIES=10 SEEDS='1 2' ROUNDS=1
grep -q '^[0-9]* steps, 0 to be done$' "$work/out" || fail "something is to be done: $(cat "$work/out")"
# The twin has the images that were trained on, and verify finds the study's scores.
expect 0 "$builddir/dl2-hub" twin 'rows/*.parquet' twin --variant results/variants/jpeg-10 --study results
expect 0 "$builddir/dl2-hub" twin 'rows/*.parquet' same --codec jpeg --q 10 --study results
for file in rows/*.parquet; do
    cmp "twin/${file##*/}" "same/${file##*/}" || fail "the twin of the variant and that of its options differ"
done
answer=$("$PYTHON3" -c 'import json; print(json.load(open("results/report/answer.json"))["networks"]["convnet"]["smallest"]["text"])')
grep -qxF "$answer" twin/README.md || fail "the card lacks the answer: $(cat twin/README.md)"
grep -q '^| convnet | 2 | ' twin/README.md || fail "the card lacks the network: $(cat twin/README.md)"
expect 0 "$builddir/dl2-hub" verify twin 'rows/*.parquet'
grep -q 'rows and 32 images are as the card says' "$work/out" || fail "$(cat "$work/out")"
rm rows/val*
expect 1 "$builddir/dl2-hub" twin 'rows/*.parquet' part --codec jpeg --q 10 --study results
said 'is about other images: its raw has 32 images, and the twin 16'
