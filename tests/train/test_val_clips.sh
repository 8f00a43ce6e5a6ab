# SPDX-License-Identifier: BSD-2-Clause
# Several clips of a validation video: their mean softmax is its prediction, as NumPy has it of the clips alone.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need_python numpy python3-numpy
FRAMES=8
"$builddir/tests/train/make_clips" few 4 3 22 18 || exit 99
# Videos of several lengths: the first of each class is as long as a clip, the second shorter, the third longer.
for class in few/val/*; do
    for f in 08 09 10 11 12 13 14 15 16 17 18 19 20 21; do rm "$class/0000/0$f.ppm"; done
    for f in 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21; do rm "$class/0001/0$f.ppm"; done
done
for f in 19 20 21; do rm few/val/left/0002/0$f.ppm; done
clips="-a convcolumn --frames $FRAMES --image-size 16 --no-flip --threads 2"
evaluate() { dl2-train --quiet evaluate one/$CK --val few --out "$@"; }
expect 0 run -d few $clips -e 4 --lr 0.02 --skip-validation --out one

# One clip is what there was before.
expect 0 evaluate plain
expect 0 evaluate single --val-clips 1
cmp plain/predictions-0.npy single/predictions-0.npy || fail "--val-clips 1 predicts something else"

# reference N: each video's clips as datasets of their own, which stand in all classes, so that the losses of a clip
# are its probabilities' logarithms. Then the same by --val-clips N.
reference() {
    "$PYTHON3" - few/val $FRAMES "$1" <<'PY' || exit 99
import os, shutil, sys
root, span, clips = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for clip in range(clips):
    for name in sorted(os.listdir(root)):
        for video in sorted(os.listdir(f"{root}/{name}")):
            frames = sorted(os.listdir(f"{root}/{name}/{video}"))
            start = (2 * clip + 1) * max(len(frames) - span + 1, 1) // (2 * clips)
            for other in os.listdir(root):
                folder = f"clips-{clips}-{clip}/val/{other}/{name}-{video}"
                os.makedirs(folder)
                for k in range(span):
                    shutil.copy(f"{root}/{name}/{video}/{frames[min(start + k, len(frames) - 1)]}", f"{folder}/{k:03}.ppm")
PY
    i=0
    while [ $i -lt "$1" ]; do
        expect 0 dl2-train --quiet evaluate one/$CK --val clips-$1-$i --out clips-$1-$i/out
        i=$((i + 1))
    done
}
# agrees N OUT: the predictions and the report of OUT are the means of the reference.
agrees() {
    "$PYTHON3" - "$@" <<'PY' || fail "$2 is not the mean of $1 clips"
import json, numpy, sys
clips, out = int(sys.argv[1]), sys.argv[2]
names = ["down", "left", "right", "up"]
mean = {}
for clip in range(clips):
    for row in numpy.load(f"clips-{clips}-{clip}/out/predictions-0.npy"):
        name = row["key"].decode().split("/")[2]
        mean.setdefault(name, numpy.zeros(4))[row["target"]] += numpy.exp(-float(row["loss"])) / clips
try:
    report = json.load(open(f"{out}/evaluation_report.json"))["val"][0]
except FileNotFoundError:
    report = json.load(open(f"{out}/experiment_report.json"))["final"][0]
rows = numpy.load(f"{out}/predictions-0.npy")
assert len(rows) == 12 and report["images"] == 12, (len(rows), report)
wrong = 0
for row in rows:
    _, name, video = row["key"].decode().split("/")
    p = mean[f"{name}-{video}"]
    assert abs(p.sum() - 1) < 1e-5, p
    assert names[row["target"]] == name
    assert abs(row["loss"] + numpy.log(p[row["target"]])) < 1e-5, (row, p)
    assert row["predicted"] == p.argmax() and row["top1"] == (p.argmax() == row["target"]) and row["top5"] == 1, (row, p)
assert abs(rows["loss"].astype(float).mean() - report["loss"]) < 1e-6
assert rows["top1"].mean() == report["top1"] and report["top5"] == 1
PY
}
reference 3
expect 0 evaluate three --val-clips 3
agrees 3 three
cmp -s plain/predictions-0.npy three/predictions-0.npy && fail "three clips are one"
grep -q '"val-clips": 3' three/evaluation_report.json || fail "the report has no clips"
expect 0 dl2-train evaluate one/$CK --val few --out said --val-clips 2
said 'few: 8 of 12 videos are too short for 2 different clips, and show some of theirs several times'
said 'few: in 1 of 12 videos, which are short for 2 clips, these overlap'

# More clips than a batch has, and clips that repeat or overlap in every video; in other batches, by ranks and from
# another container: the same.
reference 10
expect 0 evaluate ten --val-clips 10
agrees 10 ten
for how in "-b 3" "-b 64 -j 1" "--ranks 2"; do
    expect 0 evaluate how --val-clips 10 $how
    agrees 10 how
done
expect 0 dl2-transcode --quiet copy --container=gulp few few-gulp
expect 0 dl2-train --quiet evaluate one/$CK --val few-gulp --val-clips 10 --out gulp
agrees 10 gulp

# Runs validate so, too, alone and among several, and an evaluation of their weights takes the number over.
expect 0 run -d few $clips -e 4 --lr 0.02 --val-clips 3 --out run
same one/$CK run/$CK "validation changes the weights"
agrees 3 run
grep -q '"val-clips": 3' run/$REPORT || fail "the run's report has no clips"
expect 0 dl2-train --quiet evaluate run/$CK --val few --out again
agrees 3 again
printf '{"name": "a"}\n{"name": "b", "seed": 3}\n' >configs
expect 0 run -d few $clips -e 4 --lr 0.02 --val-clips 3 several --configs configs --out several
agrees 3 several/a
cmp -s several/a/predictions-0.npy several/b/predictions-0.npy && fail "two seeds predict the same"
printf '{"seed": [0]}\n' >space
expect 0 run -d few $clips -e 4 --lr 0.02 --val-clips 3 search --space space --algorithm grid --out search
agrees 3 "$(dirname search/*/$REPORT)"

# A video with a damaged frame in one of its clips does not count.
cp -r few damaged
: >damaged/val/up/0002/021.ppm
expect 0 dl2-train --quiet evaluate one/$CK --val damaged --val-clips 25 --out damaged-out
[ "$(field damaged-out/evaluation_report.json images)" = 11 ] || fail "$(cat damaged-out/evaluation_report.json)"

# Wrong uses.
refuses() { expect 2 "$@"; said "$told"; }
make_images data 3 8 4 12
told='--val-clips needs --frames' refuses run -d data --val-clips 3 --out bad
told='--val-clips has no effect with --frame-sampling uniform' refuses evaluate bad --val-clips 3 --frame-sampling uniform
told='--val-clips times --frames must be at most 1024' refuses evaluate bad --val-clips 129
told='--val-clips' refuses evaluate bad --val-clips 0
told='--val-clips has no effect with --skip-validation' refuses run -d few $clips --val-clips 3 --skip-validation --out bad
told='--val-clips has no effect on synthetic data' refuses run --loader synthetic --images 8 --classes 3 $clips --val-clips 3 --out bad
told='--val-clips is not an option of the command' refuses dl2-train measure -d few $clips --val-clips 3 --out bad
mkdir scans
told='--val-clips has no effect on volumes' refuses run -d scans -a unet3d --image-size 16x16x16 --mask mask.npy --classes 2 --val-clips 3 --out bad
