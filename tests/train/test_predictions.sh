#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a run keeps of each validation image: NumPy reads it, and it adds up to the report's figures.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need_python numpy python3-numpy
make_images data 7 16 5 8
make_images other 7 16 4 8 colour 9
make_images hard 7 2 9 8 colour 3
for k in 0 1 2 3 4 5 6; do # in each class a few images of others
    for i in 1 2 3 4 5; do cp hard/val/c$k/008.ppm hard/val/c$(((k + i) % 7))/00$i.ppm; done
done
bad=$(find other/val -name '003.ppm' | sort | head -n 1)
: >"$bad"
sets="--val other --val hard --batch 4"

# adds_up REPORT...: each set's file has all its images in order, and the report's means.
adds_up() {
    "$PYTHON3" - "${bad%.ppm}" "$@" <<'PY' || fail "the predictions do not add up to the report"
import json, os, sys
import numpy
bad = sys.argv[1].split("/", 1)[1].encode()
for path in sys.argv[2:]:
    report = json.load(open(path))
    counts = {"other": 28, "hard": 63}
    assert [found["name"] for found in report["final"]] == ["other", "hard"], report["final"]
    for k, found in enumerate(report["final"]):
        assert found["predictions"] == "predictions-%d.npy" % k
        rows = numpy.load(os.path.join(os.path.dirname(path), found["predictions"]))
        assert rows.dtype.names == ("key", "target", "predicted", "top1", "top5", "loss")
        assert len(rows) == counts[found["name"]]
        assert list(rows["key"]) == sorted(rows["key"]) and rows["key"][0] == b"val/c0/000"
        unread = rows[rows["predicted"] < 0]
        assert list(unread["key"]) == ([bad] if k == 0 else []), unread
        assert numpy.isnan(unread["loss"]).all() and not unread["top1"].any() and not unread["top5"].any()
        rows = rows[rows["predicted"] >= 0]
        assert len(rows) == found["images"]
        assert ((rows["predicted"] == rows["target"]) == rows["top1"]).all()
        assert (rows["top5"] >= rows["top1"]).all()
        assert abs(rows["top1"].mean() - found["top1"]) < 1e-12
        assert abs(rows["top5"].mean() - found["top5"]) < 1e-12
        assert abs(rows["loss"].astype(float).mean() - found["loss"]) < 1e-5 * (1 + found["loss"])
    assert 0 < report["final"][1]["top1"] < report["final"][1]["top5"] < 1, report["final"][1]
PY
}
expect 0 run -d data $sets --out one
expect 0 run -d data $sets --out averaged --ema 0.9
expect 0 run -d data $sets --out ranks --ranks 2
adds_up one/$REPORT averaged/$REPORT ranks/$REPORT
cmp -s one/predictions-1.npy averaged/predictions-1.npy && fail "the averages predict what the weights predict"

# A run that was stopped and resumed keeps the same. One that is not finished keeps none.
expect 0 run -d data $sets --out cut --run-epochs 1.5
[ ! -e cut/predictions-0.npy ] || fail "an unfinished run keeps predictions"
! grep -q predictions cut/$REPORT || fail "the report names them"
expect 0 run -d data $sets --out cut --resume
for k in 0 1; do
    cmp one/predictions-$k.npy cut/predictions-$k.npy || fail "a resumed run predicts something else"
done
