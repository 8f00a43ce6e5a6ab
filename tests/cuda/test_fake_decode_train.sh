# SPDX-License-Identifier: BSD-2-Clause
# dl2-train --device cuda --decode gpu, with what stands in for a card and for nvJPEG: the weights that --decode cpu gives, as the
# pixels are the same; on from a checkpoint, too, and while steps are recorded.
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_decode_train
[ -x "$fake" ] || skip "no CUDA toolkit, nvJPEG or C++"
dl2-transcode --version | grep -q '^  jpeg:' || skip "no JPEG in this build"
. "$srcdir/tests/train/train_lib.sh"
make_images images 3 20 6 8
expect 0 dl2-transcode --quiet --codec jpeg --q 90 images data
small="$smallest --image-size 8 -e 2 -b 7 --seed 3 --deterministic --device cuda"
train() { "$fake" $small -d data/jpeg-90 "$@"; }
expect 0 train --out cpu
for pace in eager random; do
    DL2_FAKE_PACE=$pace expect 0 train --decode gpu --out gpu-$pace
    same cpu/$CK gpu-$pace/$CK "decoded by the processors and by the card, $pace"
done
[ "$(field gpu-random/$REPORT decode)" = gpu ] || fail "the report does not say who decoded"
DL2_FAKE_JPEG=engines expect 0 train --decode gpu --gpu-input spliced --run-epochs 1 --out parts
DL2_FAKE_JPEG=engines expect 0 train --decode gpu --gpu-input spliced --resume --out parts
same cpu/$CK parts/$CK "in two parts"
DL2_FAKE_JPEG=engines expect 0 train --decode gpu --gpu-input region --out region
expect 1 train --decode gpu --gpu-input region --out cores
grep -q "choose gpu_input 'plain' or 'spliced'" "$work/err" || fail "regions without engines: $(cat "$work/err")"
