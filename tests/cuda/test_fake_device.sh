# SPDX-License-Identifier: BSD-2-Clause
# The training device's host code, against the reference device in each precision, where streams run as early as they
# may, as late as they may, and at random: with what stands in for a card (fake_cuda.h).
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_test_device
[ -x "$fake" ] || skip "no CUDA toolkit, C++ or cmocka"
runs="fp32:random tf32:eager bf16:lazy fp16:random"
slow && runs=bf16:random # test_fake_train trains in float32
for run in $runs; do
    DL2_FAKE_PACE=${run#*:} "$fake" cuda "${run%:*}" >"$work/out" 2>&1
    case $? in
    0) ;;
    77) cat "$work/out"; skip "see above" ;;
    *) cat "$work/out" >&2; fail "$run" ;;
    esac
done
# Where nothing can be recorded, it says why.
DL2_FAKE_RECORDING=begin "$fake" cuda bf16 recording >"$work/out" 2>&1 && fail "a recording that cannot be made is one"
grep -q '^note: device cuda: steps cannot be recorded (.*cudaStreamBeginCapture' "$work/out" || { cat "$work/out" >&2; fail "see above"; }
# Attention of 16 bits, and convolutions with their bias, where cuDNN has no plan, or none that runs; linear layers where
# cublasLt adds no bias.
DL2_FAKE_BIAS=none "$fake" cuda bf16 linear >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "a product without its bias"; }
for plans in none fail; do
    DL2_FAKE_ATTENTION=$plans "$fake" cuda bf16 attention >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "attention, plans: $plans"; }
    DL2_FAKE_BIAS=$plans "$fake" cuda bf16 convolution >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "bias, plans: $plans"; }
done
