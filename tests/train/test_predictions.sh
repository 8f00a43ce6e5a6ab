#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a run keeps of each validation image: NumPy reads it, and it adds up to the report's figures.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need_python numpy python3-numpy
make_images data 7 16 5 8
make_images other 7 16 4 8 color 9
make_images hard 7 2 9 8 color 3
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

# A network whose output has a NaN is right on no image.
"$PYTHON3" - one/$CK nan.safetensors <<'PY'
import json, math, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack_from("<Q", data)[0]
header, data = json.loads(data[8:8 + size]), data[8 + size:]
del header["__metadata__"]["crc32"]
for name, tensor in header.items():
    if name != "__metadata__" and tensor["dtype"] == "F32" and tensor["shape"] == [7]:  # the last layer's
        struct.pack_into("<f", data, tensor["data_offsets"][0], math.nan)
header = json.dumps(header).encode()
header += b" " * (-len(header) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(header)) + header + data)
PY
for device in cpu ref; do
    expect 0 dl2-train -j 2 evaluate nan.safetensors $sets --device $device --out nan-$device
    "$PYTHON3" - nan-$device <<'PY' || fail "a NaN counts as right"
import json, sys
import numpy
for k, found in enumerate(json.load(open(sys.argv[1] + "/evaluation_report.json"))["val"]):
    rows = numpy.load(f"{sys.argv[1]}/predictions-{k}.npy")
    assert found["images"] and found["loss"] is None and found["top1"] == found["top5"] == 0, found
    assert not rows["top1"].any() and not rows["top5"].any()
PY
done
