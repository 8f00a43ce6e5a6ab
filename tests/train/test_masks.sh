# SPDX-License-Identifier: BSD-2-Clause
# Networks that learn the class of each pixel: they reach a high mean IoU, go on from a checkpoint, and refuse what is not
# theirs.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_masks() { "$builddir/tests/train/make_masks" "$@" || exit 99; }
refused() { grep -q -e "$1" "$work/err" || fail "no '$1' in: $(cat "$work/err")"; }
# The last of a report.
last() { sed -n "s/^ *\"$2\": \([0-9.]*\).*/\1/p" "$1" | tail -n 1; }
unet="-a unet --classes 3 --threads 2"
masks="$unet --mask mask.pgm"

# A disc and a square on noise: all background would be 0.27.
if ! slow; then
    make_masks shapes 72 16 48
    expect 0 dl2-train -d shapes $masks --image-size 32 -b 8 -e 3 --lr 1e-3 --validate-every 0 --out learned
    grep -q 'pixel accuracy .*, mIoU 0' "$work/out" || fail "no mean IoU: $(cat "$work/out")"
    awk -v m="$(last learned/$REPORT miou)" 'BEGIN { exit !(m > 0.8) }' || fail "$(cat learned/$REPORT)"
    # Its own settings come with the weights, and so do its classes.
    expect 0 dl2-train --quiet evaluate learned/$CK --val shapes --out evaluated
    for figure in miou loss pixels; do
        [ "$(last evaluated/evaluation_report.json $figure)" = "$(last learned/$REPORT $figure)" ] ||
            fail "$figure: $(cat evaluated/evaluation_report.json)"
    done
fi

# A run in two parts, with other workers, from other containers, is the same run.
make_masks few 8 4 20
few="$masks --image-size 16 -b 4 -e 2 --augment rotate:degrees=20"
expect 0 run -d few $few --out one
[ "$(field one/$REPORT mask)" = mask.pgm ] || fail "the report has no mask: $(cat one/$REPORT)"
[ "$(field one/$REPORT classes)" = 3 ] || fail "the report has no classes: $(cat one/$REPORT)"
expect 0 run -d few $few --run-epochs 1 --keep-best --out parts
expect 0 run -d few $few -j 1 --resume --keep-best --out parts
same one/$CK parts/$CK "a run in two parts"
grep -aq 'dl2.best[^}]*miou' parts/best.safetensors || fail "no weights of the best epoch by mean IoU"
for container in gulp tar; do
    expect 0 dl2-transcode --quiet copy --container=$container few few-$container
    expect 0 run -d few-$container $few --skip-validation --out $container
    same one/$CK $container/$CK "masks of a folder and of $container"
done
expect 0 dl2-train --quiet --loader synthetic $unet --images 4 -b 2 --image-size 16 -e 1 --out noise

# Images without the pixels of a class say so; values beyond the classes, and images without a mask, are named.
expect 0 dl2-train -d few $masks --classes 5 --image-size 16 -b 4 -e 1 --out more
said 'no pixel of its validation masks has class 3, 4: 2 of 5 classes are missing'
expect 1 run -d few $masks --classes 2 --image-size 16 -b 4 -e 1 --out values
refused 'few/train/000..ppm: its mask has the value 2, and with --classes 2 they are 0 to 1'
rm few/train/0003.mask.pgm
expect 1 run -d few $few --max-bad 0 --out missing
refused "0003.ppm: mask: there is no 'mask.pgm' beside it"

# Networks for images refuse masks, and the reverse; so do options without a meaning.
expect 2 run -d few -a resnet10 --mask mask.pgm --classes 3 --out none
refused 'resnet10 learns the class of an image, not of its pixels: choose a network for masks, such as --arch unet'
expect 2 run -d few $unet --out none
refused "learns the classes of images. pixels: name the masks beside them by --mask, such as --mask png"
expect 2 run -d few -a unet --mask mask.pgm --out none
refused 'mask needs --classes'
expect 2 run -d few -a resnet10 --classes 3 --out none
refused 'classes needs --mask'
for option in '--mixup 0.2' '--cutmix 1'; do
    expect 2 run -d few $masks $option --out none
    refused "${option% *} mixes the labels of images, and unet learns those of pixels"
done
expect 2 run -d few $masks --classes 300 --out none
refused 'masks hold classes 0 to 254'
expect 2 run --loader synthetic $masks --out none
refused 'mask has no effect on synthetic data'
expect 1 run -d few $masks --image-size 24 --out odd
refused 'images of 24x24 do not fit unet'
printf '{"name": "a"}\n{"name": "b", "arch": "resnet10"}\n' >models.jsonl
expect 2 run -d few $few several --configs models.jsonl --out none
refused 'resnet10 learns the class of an image'
expect 1 run -d few -a resnet10 --image-size 16 --out none
refused 'only one class'
[ ! -e none ] || fail "what was refused has left a folder"
