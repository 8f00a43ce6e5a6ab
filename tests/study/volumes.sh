#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study of volumes, from slices to the mean Dice.
. "$srcdir/tests/lib.sh"
plainly
grep -q 'define HAVE_JP2 1' "$builddir/config.h" || skip "this build has no JPEG 2000 (Debian: libopenjp2-7-dev)"
unset MAKEFLAGS MFLAGS MAKELEVEL
cd "$work" || exit 99
"$builddir/tests/train/make_volumes" ball 2 0 32 1 2 && "$builddir/tests/train/make_volumes" ball 0 1 32 1 2 || exit 99
study() {
    dl2-study run --dataset ball --out results --codecs jp2 --qualities 50 --archs unet3d_small --train-flags '--mask mask.npy --classes 2' \
        --epochs 1 --seeds '1 2' --image-size 32x32x32 --batch 2 --jobs 2 --rounds 1 --measure 0.02 "$@"
}
expect 2 study --out none --image-size 32x32
said '32x32 is no patch of a volume'
expect 2 study --out none --image-size 32
said 'IMAGE_SIZE is "32": unet3d_small sees patches of volumes'
[ ! -e none ] || fail "refused after work had begun"
expect 0 study
grep -q 'mean Dice' out || fail "no answer: $(tail -n 3 out)"
[ ! -e results/crops ] || fail "there are crops of volumes"
! grep -q 'a JPEG of high quality' results/report/report.html || fail "volumes are compared with a JPEG"
"$PYTHON3" - <<'END' || fail "the scores are not in the page"
import json, sys
[score] = json.load(open("results/quality/jp2-50.json"))["variants"]
psnr = score["metrics"]["volume_psnr"]["mean"]
page = open("results/report/report.json").read()
sys.exit(not (40 < psnr < 55 and f'"text": "{psnr:.2f}"' in page and "voxels" in page and " volumes, validated on " in page))
END
expect 0 study # nothing is to be done
grep -q 'mean Dice' out || fail "no answer: $(tail -n 3 out)"
