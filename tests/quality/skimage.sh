#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Figures of dl2-quality against Debian's scikit-image, run here and now, on each path of the code.
. "$srcdir/tests/lib.sh"
need_python skimage python3-skimage
need_python PIL python3-pil
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
"$PYTHON3" - "$work" <<'END' || exit 99
import os, sys
import numpy as np
from PIL import Image
random = np.random.default_rng(4)
y, x = np.mgrid[0:187, 0:251]
pictures = {
    "smooth": 128 + 90 * np.sin(x / 31) * np.cos(y / 23),
    "edges": np.where((x // 40 + y // 30) % 2, 220, 25),
    "noise": random.integers(0, 256, (187, 251)),
    "bright": 250 + (x + y) % 5,
    "dark": (x * y) % 3,
}
for name, gray in pictures.items():
    image = np.clip(np.stack([gray, gray * 0.8 + 20, 255 - gray], -1), 0, 255)
    variants = {
        "ref": image,
        "noisy": image + random.normal(0, 8, image.shape),
        "shifted": image + 37,
        "coarse": image // 16 * 16 + 8,
        "other": random.integers(0, 256, image.shape),
        "gray": image.mean(-1),
    }
    for variant, pixels in variants.items():
        os.makedirs(f"{sys.argv[1]}/{variant}/sub", exist_ok=True)
        Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8)).save(f"{sys.argv[1]}/{variant}/sub/{name}.png")
END
for path in c neon avx2 avx512; do
    DL2_SIMD=$path
    export DL2_SIMD
    expect 0 dl2-quality --quiet --metrics all --json "$work/$path.json" "$work/ref" "$work/noisy" "$work/shifted" "$work/coarse" \
        "$work/other" "$work/gray"
    PYTHONDONTWRITEBYTECODE=1 "$PYTHON3" "$srcdir/tests/quality/compare_skimage.py" "$work/$path.json" || fail "DL2_SIMD=$path"
done
