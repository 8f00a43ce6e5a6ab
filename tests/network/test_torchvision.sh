# SPDX-License-Identifier: BSD-2-Clause
# Networks here are torchvision's: names, shapes, logits both ways, losses of ten steps; of clips, too.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need_python torchvision python3-torchvision
slow && skip "test_network runs the same code of ours; most of the time here is torchvision's"
compare() { "$PYTHON3" -B "$srcdir/tests/network/compare_torchvision.py" "$builddir/tests/network/show_network" "$work" "$@" || exit 1; }
set -- 'from alexnet 64' 'from vit_b_16 48' 'from squeezenet1_0 64' 'from resnext50_32x4d 64' 'from seresnext50_32x4d 64'
for arch in densenet121 efficientnet_b0 squeezenet1_1 efficientnet_lite0; do
    set -- "$@" "from $arch 64" "to $arch 64"
done
set -- "$@" 'losses densenet121 64 sgd' 'losses efficientnet_b0 32 sgd' 'losses squeezenet1_1 32 sgd' 'losses seresnext50_32x4d 32 sgd'
archs="resnet18 mobilenet_v2 vit_tiny resnet50"
tensors="alexnet vgg16 vgg16_bn resnet34 resnet101 resnet152 vit_b_16 resnext50_32x4d resnext101_32x8d seresnext50_32x4d efficientnet_b0 efficientnet_lite0 densenet121
    squeezenet1_0 squeezenet1_1 $archs"
for arch in $archs; do
    set -- "$@" "from $arch 64" "to $arch 64"
done
compare "tensors $tensors r3d_18" "$@" 'from r3d_18 5x32' 'to r3d_18 5x32' 'losses r3d_18 4x16 sgd' 'losses resnet18 64 sgd' 'losses vit_tiny 24 adamw'

# From torchvision into a run with other classes, and back.
make_images data 3 11 4 12
expect 0 run -d data -a resnet18 --image-size 32 -e 0.5 --skip-validation --pretrained resnet18.safetensors \
    --export out.safetensors --out one
grep -q "the last layer, fc, begins anew: it was for 7 classes, not 3" "$work/err" || fail "no word of the classes: $(cat err)"
compare 'strict resnet18 out.safetensors' "strict resnet18 one/$CK"
