# SPDX-License-Identifier: BSD-2-Clause
# Networks that learn the class of each voxel: they reach a high Dice on volumes that they have not seen, go on from a
# checkpoint, and refuse what is not theirs.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_volumes() { "$builddir/tests/train/make_volumes" "$@" || exit 99; }
refused() { grep -q -e "$1" "$work/err" || fail "no '$1' in: $(cat "$work/err")"; }
# The last of a report.
last() { sed -n "s/^ *\"$2\": \([0-9.]*\).*/\1/p" "$1" | tail -n 1; }
volumes="-a unet3d_small --mask mask.npy --classes 3 --image-size 32x32x32 -b 1 --threads 2"

# Balls and cubes in noise; all background would be 0. The volumes of validation are larger than the patch.
if ! slow; then
    make_volumes shapes 16 0 32 1 2
    make_volumes shapes 0 3 36 1 2
    expect 0 dl2-train -d shapes $volumes --classes 2 -b 2 -e 12 --lr 0.1 --label-smoothing 0 --validate-every 0 \
        --export weights.safetensors --out learned
    grep -q 'voxel accuracy .*, mean Dice 0' "$work/out" || fail "no mean Dice: $(cat "$work/out")"
    awk -v m="$(last learned/$REPORT mean_dice)" 'BEGIN { exit !(m > 0.9) }' || fail "$(cat learned/$REPORT)"
    # Its own settings come with the weights, and so do its classes and the normalization.
    for weights in learned/$CK weights.safetensors; do
        expect 0 dl2-train --quiet evaluate $weights --val shapes --out evaluated
        for figure in mean_dice loss voxels top1; do
            [ "$(last evaluated/evaluation_report.json $figure)" = "$(last learned/$REPORT $figure)" ] ||
                fail "$figure: $(cat evaluated/evaluation_report.json)"
        done
    done
    grep -aq '"normalization":"zscore"' weights.safetensors || fail "the export does not say how to normalize"
fi

# A run in two parts, with other workers, is the same run; of two channels, with augmentation; on volumes that are
# smaller than the patch along some axes.
make_volumes few 3 2 32 2
few="--quiet -j 2 $volumes --lr 0.01 -e 2 --oversample-foreground 0.5 --normalization window --window=60,140 --augment flips,noise:p=0.5"
expect 0 dl2-train -d few $few --out one
[ "$(field one/$REPORT mask)" = mask.npy ] || fail "the report has no mask: $(cat one/$REPORT)"
[ "$(field one/$REPORT image-size)" = 32x32x32 ] || fail "the report has no size: $(cat one/$REPORT)"
[ "$(field one/$REPORT normalization)" = window ] || fail "the report has no normalization: $(cat one/$REPORT)"
refused "of the first epoch's volumes are smaller than --image-size: they are in the middle of their patches"
grep -q '"padded": [1-9]' one/$REPORT || fail "smaller volumes are not counted: $(cat one/$REPORT)"
[ "$(field one/$REPORT channels)" = 2 ] || fail "the report has no channels: $(cat one/$REPORT)"
! grep -q '"predictions"' one/$REPORT || fail "predictions of volumes: $(cat one/$REPORT)"
expect 0 dl2-train -d few $few --run-epochs 1 --keep-best --out parts
expect 0 dl2-train -d few $few -j 1 --resume --keep-best --out parts
same one/$CK parts/$CK "a run in two parts"
grep -aq 'dl2.best[^}]*mean_dice' parts/best.safetensors || fail "no weights of the best epoch by mean Dice"
expect 1 dl2-train -d few $few --image-size 32x32x64 --resume --out parts
refused 'it is of another run: image-size was "32x32x32", and now is "32x32x64"'
if ! slow; then
    # Each of two ranks labels its share of the volumes.
    expect 0 dl2-train -d few $few -e 1 --threads 1 --ranks 2 --skip-validation --out ranks
    expect 0 dl2-train --quiet evaluate one/$CK --val few --ranks 2 --threads 1 --out evaluated-2
    for figure in mean_dice voxels loss; do
        want=$(last one/$REPORT $figure) got=$(last evaluated-2/evaluation_report.json $figure)
        awk -v a="$want" -v b="$got" 'BEGIN { exit !(a - b < 1e-4 && b - a < 1e-4) }' ||
            fail "$figure of two ranks: $got, not $want"
    done
    expect 0 dl2-train --quiet --loader synthetic -a unet3d_small --classes 3 --threads 2 --images 1 -b 1 \
        --image-size 32x32x32 -e 1 --out noise
    # Two models on the same volumes.
    printf '{"name": "a"}\n{"name": "b", "lr": 0.002}\n' >models.jsonl
    expect 0 dl2-train -d few $few -e 1 several --configs models.jsonl --out several
    expect 0 dl2-train -d few $few -e 1 --out single
    [ "$(last several/a/$REPORT mean_dice)" = "$(last single/$REPORT mean_dice)" ] || fail "a model of two differs"
fi

# Labels that are no class, and volumes without labels or of other sizes, are named; in validation they do not count.
cp -R few bad
rm bad/val/0001.mask.npy
cp few/train/0000.mask.npy bad/train/0001.mask.npy
expect 0 dl2-train -d bad $volumes --quiet -e 1 --max-bad 1 --out bad-run
refused "bad/val/0001.npy: mask: there is no 'mask.npy' beside it"
refused 'bad/train/0001.npy: mask: it is of [0-9x]*, its volume of [0-9x]*'
grep -q '"images": 1,' bad-run/$REPORT || fail "bad volumes count: $(cat bad-run/$REPORT)"
expect 1 dl2-train -d bad $volumes --quiet -e 1 --on-bad stop --out stopped
expect 1 dl2-train -d few $few -e 1 --classes 2 --out values
refused 'few/train/000..npy: its mask has the value 2, and with --classes 2 they are 0 to 1'

# Volumes of .nii.gz train to the same weights, whether or not they are kept decompressed; those that are not are counted.
if grep -q 'define HAVE_LIBNIFTI 1' "$builddir/config.h"; then
    expect 0 dl2-transcode --quiet preprocess --format nii.gz --normalize dataset few few-gz
    gz="-d few-gz $volumes --mask mask.nii.gz --quiet -e 1 --skip-validation"
    expect 0 dl2-train $gz --out gz-kept
    ! grep -q 'nii.gz' "$work/err" || fail "kept volumes are decompressed: $(cat "$work/err")"
    expect 0 dl2-train $gz --cache-volumes 0 --out gz-not
    refused "6 of the first epoch's files .nii.gz are decompressed for each patch"
    same gz-kept/$CK gz-not/$CK "volumes that are kept decompressed"
fi

# 255, no label, is no foreground.
cp -R few plain
for mask in plain/train/*.mask.npy; do
    { head -c 128 $mask; tail -c +129 $mask | LC_ALL=C tr '\1\2' '\0\0'; } >mask && mv mask $mask
done
expect 0 dl2-train -d plain $volumes --quiet -e 1 --oversample-foreground 1 --skip-validation --out plain-run
refused "3 of the first epoch's patches were to show foreground"
expect 0 dl2-train -d plain $volumes --quiet -e 1 --oversample-foreground 1 --foreground-rule component --skip-validation --out plain-rule
refused "3 of the first epoch's patches were to show foreground"

# MLPerf's rule shows other patches of volumes that have foreground.
expect 0 dl2-train -d few $few -e 1 --skip-validation --out by-voxel
expect 0 dl2-train -d few $few -e 1 --skip-validation --foreground-rule component --out by-component
[ "$(field by-component/$REPORT foreground-rule)" = component ] || fail "the report has no rule"
differ by-voxel/$CK by-component/$CK "the rules of foreground"

# Networks for images refuse volumes, and the reverse; so do options without a meaning.
none() {
    want=$1 says=$2 folder=none; shift 2
    [ "$want" = 2 ] || folder=odd # it was opened
    expect "$want" dl2-train -d few $few "$@" --out $folder
    refused "$says"
}
none 2 'image-size: depth, height and width are for networks of volumes, such as --arch unet3d, and resnet10 sees images' \
    -a resnet10
none 2 'image-size: unet3d_small sees patches of volumes: give DEPTHxHEIGHTxWIDTH voxels' --image-size 32
none 1 'volumes of 32x32x40 do not fit unet3d_small' --image-size 32x32x40
for option in '--mean 1' '--std 1' '--channels 1' '--no-flip' '--crop-area 0.5,1' '--crop-aspect 1,2' \
    '--interpolation box' '--val-crop squash' '--val-resize 40' '--frames 32' '--cache 1M' '--cache-decoded 1M' \
    '--io threads' '--decode hybrid' '--decoder cjxl=djxl%i%o' '--external-timeout 9'; do
    none 2 "^dl2-train: ${option%% *} " $option
done
for option in '--mixup 0.2' '--cutmix 1'; do
    none 2 "${option% *} mixes the labels of images" $option
done
none 1 'rotate is an operation on images, not on volumes' --augment rotate
none 1 "mask 'mask.png': masks of volumes are volumes" --mask mask.png
expect 2 dl2-train --quiet --stages few:1:size=32,few:1 $volumes --out none
refused 'stages of volumes have no size of their own'
expect 2 dl2-train --quiet -d few -a unet3d_small --out none
refused 'learns the classes of volumes. voxels: name the masks beside them by --mask, such as --mask mask.npy'
expect 2 dl2-train --quiet --loader synthetic $volumes --out none
refused 'mask has no effect on synthetic data'
expect 2 dl2-train --quiet --loader synthetic -a unet3d_small --normalization none --out none
refused 'normalization has no effect on synthetic data'
expect 1 run -d few -a unet --mask mask.npy --classes 3 --image-size 32 --out none
refused 'it holds volumes .*dl2-train with a network for volumes, such as --arch unet3d'
make_images pictures 2 2 2 16
expect 1 dl2-train -d pictures $volumes --quiet --out none
refused 'pictures: it holds images, and unet3d_small sees volumes'
expect 2 run -d few -a convnet --normalization none --out none
refused 'normalization is for volumes'
[ ! -e none ] || fail "what was refused has left a folder"
