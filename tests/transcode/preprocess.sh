#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-transcode preprocess: raw volumes of several spacings, orientations and layouts come to what SciPy makes of them, by
# any number of workers; what cannot be made is named; reruns make what changed.
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_LIBNIFTI 1' "$builddir/config.h" || skip "this build lacks NIfTI (libnifti)"
need_python numpy python3-numpy
preprocess() { expect "${want_status:-0}" dl2-transcode preprocess "$@"; }
# raw LAYOUT COUNT: makes $work/LAYOUT.
raw() { "$PYTHON3" "$srcdir/tests/volumes/make_raw_volumes.py" "$work/$1" "$1" "$2" || exit 99; }
# Equal to SciPy's, or not looked at where that lacks.
"$PYTHON3" -c 'import scipy.ndimage' 2>/dev/null || echo "not compared with SciPy: Python has no module scipy"
equal() {
    "$PYTHON3" -c 'import scipy.ndimage' 2>/dev/null || return 0
    "$PYTHON3" "$srcdir/tests/transcode/preprocess.py" "$@" || fail "other than SciPy's: $*"
}
raw kits 5
raw decathlon 3

# MLPerf's preprocessing: KiTS19's axes as nibabel has them, [slice][row][column], and labels as PyTorch resamples them.
mlperf="--orientation IPL --spacing 1.6,1.2,1.2 --label-order mlperf --clip=-79,304 --normalize 101,76.9"
# shellcheck disable=SC2086
preprocess $mlperf -j 1 "$work/kits" "$work/one"
grep -q "one: 5 volumes, 5 with labels, as npy; 5 written, 0 failed" "$work/out" || fail "$(cat "$work/out")"
said 'volumes that are labels of others by their names: 5 (.nii.gz), such as case_00000/segmentation.nii.gz'
# shellcheck disable=SC2086
preprocess $mlperf -j 3 "$work/kits" "$work/three"
diff -r "$work/one" "$work/three" || fail "other bytes with three workers"
equal "$work/kits.npz" "$work/one" npy 1 mlperf IPL 1.6,1.2,1.2 -79,304 101,76.9

# A second command trains a U-Net on that. By MLPerf's Dice a class that the one volume lacks, and that was not found, is 1.
mkdir -p "$work/split/train" "$work/split/val"
cp "$work"/one/case_0000[0-2].* "$work/split/train" && cp "$work"/one/case_00003.* "$work/split/val"
if ! slow; then
    expect 0 dl2-train --quiet -d "$work/split" -a unet3d_small --mask mask.npy --classes 6 --image-size 32x32x32 -b 1 -e 3 --lr 0.02 \
        --normalization none --oversample-foreground 0.5 --label-smoothing 0 --threads 2 --out "$work/trained"
    "$PYTHON3" - "$work/trained/experiment_report.json" <<'END' || fail "$(cat "$work/trained/experiment_report.json")"
import json, sys
losses = [epoch["val"][0]["loss"] for epoch in json.load(open(sys.argv[1]))["epochs"]]
final = json.load(open(sys.argv[1]))["final"][0]
dice = [1 if d is None else d for d in final["dice"][1:]]
print("dice", final["dice"], "losses", losses)
assert losses[-1] < losses[0], losses
assert abs(final["mean_dice_mlperf"] - sum(dice) / len(dice)) < 1e-5, final
END
fi

# Other orders, orientations and formats; the Decathlon's folders are splits.
preprocess --orientation SPL --spacing 2,1.5,1.7 --order 3 --label-order 1 --normalize dataset --format nii.gz "$work/kits" "$work/cubic"
grep -q '^mean [-0-9.]*, deviation [0-9.]* over the voxels for training' "$work/out" || fail "$(cat "$work/out")"
equal "$work/kits.npz" "$work/cubic" nii.gz 3 1 SPL 2,1.5,1.7 - dataset
preprocess --spacing 2,2,2 --format nii "$work/decathlon" "$work/tasks"
grep -q "4 volumes, 3 with labels, as nii; 4 written" "$work/out" || fail "$(cat "$work/out")"
said 'decathlon: 1 volumes have no labels'
said "the axes of 3 volumes lie otherwise than those of the first, which run to LPI: --orientation LPI turns them alike"
equal "$work/decathlon.npz" "$work/tasks" nii 1 0 - 2,2,2 - -
[ -e "$work/tasks/test/other_00001.nii" ] || fail "imagesTs is not test: $(ls -R "$work/tasks")"
preprocess --orientation RAS "$work/decathlon" "$work/turned"
equal "$work/decathlon.npz" "$work/turned" npy 1 0 RAS - - -

# As they are, both layouts load with their labels, and become variants.
for layout in kits decathlon; do
    expect 0 dl2-load bench "$work/$layout" --image-size 16x16x16 --mask mask.nii.gz --oversample-foreground 1 -e 1
done
expect 1 dl2-load check "$work/decathlon" --mask mask.nii.gz
said "imagesTs/other_00001.nii.gz: mask: there is no 'mask.nii.gz' beside it"
if grep -q 'define HAVE_JP2 1' "$builddir/config.h"; then
    expect 0 dl2-transcode --codec jp2 --q 90 "$work/kits" "$work/variants"
    cmp "$work/kits/case_00001/segmentation.nii.gz" "$work/variants/jp2-90/case_00001.mask.nii.gz" || fail "other labels"
    [ -e "$work/variants/jp2-90/case_00001.slices" ] || fail "no variant: $(ls "$work/variants/jp2-90")"
fi

# A rerun makes what is missing or older than its source, or all where settings changed.
# shellcheck disable=SC2086
again() { preprocess $mlperf "$@" "$work/kits" "$work/one"; grep -q "$written written, 0 failed" "$work/out" || fail "$written, not $(cat "$work/out")"; }
written=0 again
rm "$work/one/case_00001.npy" "$work/one/case_00003.mask.npy"
touch "$work/kits/case_00004/segmentation.nii.gz"
written=3 again
written=0 again
written=5 again --order 3
said 'it was made by other settings: all volumes are made again'
written=5 again
written=5 again --force
diff -r "$work/one" "$work/three" || fail "other bytes after reruns"
# Labels whose source is gone are not those of the volume any more.
mv "$work/kits/case_00001/segmentation.nii.gz" "$work/segmentation"
written=1 again
[ ! -e "$work/one/case_00001.mask.npy" ] || fail "labels without a source"
mv "$work/segmentation" "$work/kits/case_00001/segmentation.nii.gz"
written=1 again
mv "$work/kits/case_00002" "$work/gone"
written=0 again
said 'one/case_00002.npy: no volume of SOURCE accounts for it'
said '2 such files are left alone; --prune removes them'
written=0 again --prune
[ ! -e "$work/one/case_00002.npy" ] && [ ! -e "$work/one/case_00002.mask.npy" ] || fail "--prune has left a volume"

# Headers without spacing or orientation, and labels that do not lie on their volume, are named; the rest is made.
cp -r "$work/kits" "$work/bad"
cp -r "$work/kits/case_00000" "$work/bad/case_00005"
cp -r "$work/kits/case_00000" "$work/bad/case_00006"
"$PYTHON3" - "$work/bad" <<'END' || exit 99
import gzip, struct, sys
def change(name, at, form, *values):
    path = f"{sys.argv[1]}/{name}.nii.gz"
    data = bytearray(gzip.open(path).read())
    struct.pack_into(form, data, at, *values)
    open(path, "wb").write(gzip.compress(data))
    return data
change("case_00000/imaging", 80, "<f", 0)
change("case_00001/imaging", 88, "<f", float("nan"))
sizes = struct.unpack_from("<3h", change("case_00003/segmentation", 0, "<i", 348), 42)
change("case_00003/segmentation", 42, "<3h", *sizes[::-1])
change("case_00005/segmentation", 288, "<f", 1.4)  # k to the right
change("case_00006/segmentation", 80, "<f", 9.0)
END
want_status=1 preprocess --spacing 2,2,2 "$work/bad" "$work/rest"
grep -q 'rest: 1 volumes, 1 with labels, as npy; 1 written, 5 failed' "$work/out" || fail "$(cat "$work/out" "$work/err")"
said 'bad/case_00000/imaging.nii.gz: its header has no spacing (1.4, 1.4, 0)'
said 'bad/case_00001/imaging.nii.gz: its header has no spacing (0, 1.4, 3)'
said 'bad/case_00003/imaging.nii.gz: its labels are of '
said 'bad/case_00005/imaging.nii.gz: the axes of its labels run to '
said 'bad/case_00006/imaging.nii.gz: the spacing of its labels is '
mkdir "$work/plain" && cp "$work/three/case_00000.npy" "$work/plain"
want_status=1 preprocess --spacing 2,2,2 "$work/plain" "$work/none"
said 'plain/case_00000.npy: its header has no spacing (0, 0, 0), and so it cannot be resampled'
want_status=1 preprocess --orientation RAS "$work/plain" "$work/none2"
said 'it does not say how its axes lie'
picture "$work/photos/a/1.ppm" 30 30 1
want_status=1 preprocess "$work/photos" "$work/none3"
said 'it holds no volumes'
want_status=2 preprocess "$work/kits" "$work/kits/inside"
want_status=2 preprocess "$work/kits" "$work/plain"
said 'plain/case_00000.npy is in the way'
for options in '--spacing 1,2' '--spacing 0,1,1' '--spacing 1,1,nan' '--clip=3,1' '--normalize 1' '--normalize 1,0' '--orientation RAX' \
    '--orientation RLS' '--order 3' '--label-order 1' '--container tar' '--q 9'; do
    # shellcheck disable=SC2086
    want_status=2 preprocess $options "$work/kits" "$work/none4"
done
