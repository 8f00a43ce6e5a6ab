# SPDX-License-Identifier: BSD-2-Clause
# cuda/decode/decode.c, with what stands in for CUDA and nvJPEG (fake_cuda.h, fake_nvjpeg.c): with and without engines, where
# streams run as early as they may, as late as they may, and at random.
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_test_decode
[ -x "$fake" ] || skip "no CUDA toolkit, nvJPEG, C++ or cmocka"
for run in "none eager" "engines lazy" "engines random"; do
    DL2_FAKE_JPEG=${run% *} DL2_FAKE_PACE=${run#* } "$fake" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "$run"; }
done
