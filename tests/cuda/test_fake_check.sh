# SPDX-License-Identifier: BSD-2-Clause
# dl2-train --check-device, with what stands in for a card (fake_cuda.h): what is computed right passes, in each
# precision, and one wrong number is found, and named.
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_dl2_train
[ -x "$fake" ] || skip "no CUDA toolkit, C++ or cmocka"
. "$srcdir/tests/train/train_lib.sh"
train() { "$fake" $smallest --loader synthetic --images 12 --classes 3 -e 1 -b 6 --seed 3 --device cuda --restart --out run "$@"; }

for amp in off tf32 bf16 fp16; do
    expect 0 train --check-device --amp $amp
    grep -q 'device cuda: [0-9]* passes of layers agree with float32' "$work/err" || fail "$amp: $(cat "$work/err")"
    grep -o '[0-9]* passes' "$work/err" >$amp.passes
done
# A plan: three passes of each convolution that has a shape of its own; linear layers where there is more than float32.
cmp -s tf32.passes bf16.passes && cmp -s bf16.passes fp16.passes || fail "not the same passes in all precisions"
[ "$(sed 's/ .*//' off.passes)" -lt "$(sed 's/ .*//' bf16.passes)" ] || fail "no linear layers"

wrong="off tf32 bf16 fp16"
slow && wrong=bf16
for amp in $wrong; do
    # Number 1 is the first that runs; float32 is held against the next.
    for options in --deterministic --check-device; do
        [ $options = --check-device ] && best=3 || best=1
        DL2_FAKE_WRONG=$best expect 1 train $options --amp $amp
        grep -q "stage1.conv1.weight: .*forward pass of the 3x3 .* by plan eng10_k2=$best is wrong: .* differs .* in channel 31," \
            "$work/err" || fail "$amp $options: $(cat "$work/err")"
    done
done
DL2_FAKE_WRONG=product expect 1 train --deterministic --amp bf16
grep -q 'fc.weight: .*forward pass of a linear layer.* by plan of cublasLt is wrong: in bf16 it differs' "$work/err" ||
    fail "a linear layer: $(cat "$work/err")"
DL2_FAKE_WRONG=nan expect 1 train --deterministic --amp bf16
grep -q 'is wrong: .* differs from a result in float32 by inf ' "$work/err" || fail "no number: $(cat "$work/err")"
# Nobody looks unasked.
DL2_FAKE_WRONG=product expect 0 train --amp bf16
# Attention in one go: two passes of a shape more than without cuDNN's plans of it, which is done by products then. Of
# these each layer is checked for itself.
transformer() { train -a vit_tiny --image-size 16 -b 2 --images 2 --check-device "$@"; }
amps="bf16 fp16"
slow && amps=bf16
for amp in $amps; do
    expect 0 transformer --amp $amp
done
for plans in none fail; do
    DL2_FAKE_ATTENTION=$plans expect 0 transformer --amp bf16
done
for options in "" --deterministic; do
    # shellcheck disable=SC2086
    DL2_FAKE_WRONG=attention expect 1 transformer --amp bf16 $options
    grep -q 'attention: .*forward pass of attention of 3 heads .* by plan eng10_.* is wrong: in bf16 it differs' "$work/err" ||
        fail "attention $options: $(cat "$work/err")"
done
DL2_FAKE_WRONG="attention's gradient" expect 1 transformer --amp bf16
grep -q 'the gradient of attention of 3 heads .* is wrong: in bf16 it differs' "$work/err" || fail "attention's gradient: $(cat "$work/err")"
# A convolution with its bias in one call: that of the patches.
DL2_FAKE_WRONG=3 expect 1 transformer --amp bf16
grep -q 'conv_proj.weight: .*forward pass with bias of the .* by plan eng10_k2=3 is wrong: in bf16 it differs' "$work/err" ||
    fail "bias: $(cat "$work/err")"
DL2_FAKE_BIAS=none expect 0 transformer --amp bf16
# Convolutions by our own kernels, too.
expect 0 train --check-device -a mobilenet_v2 --image-size 32 -b 2 --images 2 --amp bf16 --deterministic
# What there is no memory to check is left out, with a warning.
DL2_FAKE_REFUSED=$((6 * 8 * 8 * 3 * 2)) expect 0 train --check-device --amp bf16
grep -q 'warning: .*no memory to check the forward pass of the 3x3 .* from 3 to' "$work/err" || fail "no memory: $(cat "$work/err")"
# Other devices choose nothing.
expect 0 run --loader synthetic --images 12 --classes 3 -e 1 --check-device --out cpu
grep -q -e '--check-device: there is nothing to check on device' "$work/err" || fail "the cpu: $(cat "$work/err")"
