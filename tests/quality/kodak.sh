#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Published figures of two Kodak images under libjpeg-turbo, as cjpeg and djpeg make them, to their last printed digit.
# SSIMULACRA2 is that of libjxl's tool with its recursive filter in double precision: in single precision, the tool's
# own rounding moves its scores (62.0207, 64.3116, 80.9711, 82.0505 with AVX2; 62.0219, 64.2815, 80.9125, 81.9696
# with SSE2).
# DL2_KODAK names the folder of kodim01.png to kodim24.png.
. "$srcdir/tests/lib.sh"
[ -n "${DL2_KODAK:-}" ] || skip "DL2_KODAK does not name a folder with the Kodak images"
[ -f "$DL2_KODAK/kodim03.png" ] && [ -f "$DL2_KODAK/kodim23.png" ] || skip "$DL2_KODAK has no kodim03.png and kodim23.png"
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
need_python PIL python3-pil
mkdir "$work/ref" && cp "$DL2_KODAK/kodim03.png" "$DL2_KODAK/kodim23.png" "$work/ref" || exit 99
"$PYTHON3" - "$work" <<'END' || exit 99
import os, sys
from PIL import Image
for quality in (50, 85):
    os.makedirs(f"{sys.argv[1]}/q{quality}")
    for name in ("kodim03", "kodim23"):
        Image.open(f"{sys.argv[1]}/ref/{name}.png").save(f"{sys.argv[1]}/q{quality}/{name}.jpg", quality=quality)
END
[ "$(wc -c <"$work/q50/kodim03.jpg")" -eq 30139 ] || skip "Pillow's libjpeg does not make cjpeg's bytes"
for path in c neon avx2 avx512; do
    DL2_SIMD=$path
    export DL2_SIMD
    expect 0 dl2-quality --quiet --metrics all --csv "$work/csv" "$work/ref" "$work/q50" "$work/q85"
    tr -d '\r' <"$work/csv" | awk -F, 'NR > 1 { printf "%s %s %d %.6f %.6f %.6f %.6f %.3f\n", $1, $2, $6, $12, $13, $14, $15, $17 }' >"$work/got"
    cat >"$work/want" <<'END'
q50 kodim03 30139 34.557641 36.219255 0.935067 0.988977 62.037
q50 kodim23 27754 35.075269 37.729705 0.943822 0.990275 64.325
q85 kodim03 61911 38.680253 40.988122 0.972253 0.996806 81.024
q85 kodim23 58733 38.557744 41.722692 0.969051 0.996651 82.108
END
    diff "$work/got" "$work/want" || fail "DL2_SIMD=$path"
done
