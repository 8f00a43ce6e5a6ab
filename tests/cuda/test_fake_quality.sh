# SPDX-License-Identifier: BSD-2-Clause
# dl2-quality --device cuda, with what stands in for a card: the processors' figures, for several images and variants, by several
# threads, and with streams that run late or at random.
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_dl2_quality
[ -x "$fake" ] || skip "no CUDA toolkit or C++"
dl2-transcode --version | grep -q '^  jpeg:' || skip "no JPEG in this build"
"$builddir/tests/train/make_images" "$work/images" 2 3 1 40 || exit 99
"$builddir/tests/train/make_images" "$work/images" 1 1 1 9 || exit 99 # over one of those, below the window
"$builddir/tests/quality/make_image" "$work/images/large.ppm" 200 190 3 0 0 || exit 99 # large enough for MS-SSIM
for q in 40 90; do
    expect 0 dl2-transcode --quiet --codec jpeg --q $q "$work/images" "$work/variants"
done
expect 0 dl2-quality --quiet --metrics all --json "$work/cpu.json" "$work/images" "$work/variants/jpeg-40" "$work/variants/jpeg-90" "$work/images"
for pace in lazy random; do
    DL2_FAKE_PACE=$pace expect 0 "$fake" --quiet -j 3 --metrics all --device cuda --json "$work/$pace.json" "$work/images" \
        "$work/variants/jpeg-40" "$work/variants/jpeg-90" "$work/images"
    "${PYTHON3:-python3}" - "$work/cpu.json" "$work/$pace.json" <<'PY' || fail "not the processors' figures, $pace"
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert (a["scored_on"], b["scored_on"]) == ("cpu", "cuda")
seen = 0
for x, y in zip(a["variants"], b["variants"]):
    for p, q in zip(x["per_image"], y["per_image"]):
        assert p.keys() == q.keys() and p["key"] == q["key"]
        for m in ("psnr_rgb", "psnr_y", "ssim", "ms_ssim"):
            assert (p[m] is None) == (q[m] is None), (p, q)
            if p[m] is not None:
                assert abs(p[m] - q[m]) <= (0 if m == "ms_ssim" else 1e-5), (m, p[m], q[m]) # the card has no MS-SSIM
                seen += 1
assert seen > 20, seen
PY
done
grep -q '^cuda  *PSNR RGB, PSNR Y, SSIM Y$' "$work/out" && grep -q '^cpu  *MS-SSIM, ' "$work/out" || fail "who scored what: $(cat "$work/out")"
expect 1 "$fake" --quiet --metrics ms_ssim --device cuda "$work/images" "$work/variants/jpeg-40"
grep -q -e '--device=cuda has no effect' "$work/err" || fail "the card scores nothing, and nothing is said: $(cat "$work/err")"
expect 0 "$fake" --quiet --metrics ms_ssim --device auto --json "$work/json" "$work/images" "$work/variants/jpeg-40"
grep -q '"scored_on": "cpu"' "$work/json" || fail "the card is said to have scored what it can't"
expect 0 "$fake" --list devices
grep -q "^cuda	.*	psnr_rgb,psnr_y,ssim\$" "$work/out" || fail "the card's metrics: $(cat "$work/out")"
DL2_FAKE_MEMORY=2000 expect 1 "$fake" --quiet --device cuda "$work/images" "$work/variants/jpeg-40"
grep -q 'cudaMalloc (an image): out of memory' "$work/err" || fail "nothing is said of the card's memory: $(cat "$work/err")"
expect 1 "$fake" --quiet --device cuda:7 "$work/images" "$work/variants/jpeg-40"
grep -q 'no card number 7' "$work/err" || fail "card 7: $(cat "$work/err")"
