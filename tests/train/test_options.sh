# SPDX-License-Identifier: BSD-2-Clause
# Every option acts: where it should change the weights it does, where it shouldn't it doesn't; all are in
# the report; wrong usage is status 2.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 11 4 12
base="-d data --skip-validation"
(cd data && find train -type f) | sed 's,\.[^.]*$,,' | awk '{ print $0, NR % 3 }' >weights
expect 0 run $base --out base
alike() {
    expect 0 run $base --out changed --restart "$@"
    same base/$CK changed/$CK "$*"
}
for options in "-a resnet10 --image-size 32 -e 0.5" "-b 6" "-e 2" "--lr 0.02" "--lr-policy step" "--lr-policy linear" \
    "--lr-policy exponential" --lr-per-epoch "--warmup 1" "--warmup 0" "--min-lr 0.001" "--momentum 0.8" --nesterov \
    "--optimizer adamw" "--optimizer rmsprop" "--clip-grad 0.1" "--weight-decay 0.01" --bn-weight-decay "--label-smoothing 0" "--mixup 0.2" "--cutmix 1" "--ema 0.9" \
    "--grad-accum 2" "--image-size 9" "--channels 1" "--mean 100" "--std 50,51,52" "--crop-area 0.5,1" "--crop-aspect 1,1" \
    --no-flip "--augment vflip" "--interpolation bicubic" "--seed 1" "--data-seed 1" "--loader synthetic" \
    --balanced "--repeats 2" "--num-samples 8" "--sample-weights weights"; do
    expect 0 run $base --out changed --restart $options
    differ base/$CK changed/$CK "$options"
done
expect 0 run $base --out warm --pretrained base/$CK
expect 0 run $base --out frozen --pretrained base/$CK --freeze
differ warm/$CK frozen/$CK --freeze
expect 0 run $base --out adamw --optimizer adamw
expect 0 run $base --out adamw-alike --optimizer adamw --lr 0.00017677669529663689 --weight-decay 0.05 --momentum 0.9 --beta2 0.999
same adamw/$CK adamw-alike/$CK "adamw's defaults"
expect 0 run $base --out beta2 --optimizer adamw --beta2 0.9
differ adamw/$CK beta2/$CK --beta2
expect 0 run $base --out rmsprop --optimizer rmsprop
expect 0 run $base --out rmsprop-alike --optimizer rmsprop --lr 0.00017677669529663689 --weight-decay 0.00001 \
    --momentum 0.9 --beta2 0.99
same rmsprop/$CK rmsprop-alike/$CK "rmsprop's defaults"
expect 0 run $base --out beta2 --restart --optimizer rmsprop --beta2 0.9
differ rmsprop/$CK beta2/$CK "--beta2 of rmsprop"
expect 0 run $base --out rmsprop --restart --optimizer rmsprop --momentum 1
alike --clip-grad 1000
alike --clip-grad 0
alike --step-log
alike --lr 0.00625 --lr-policy cosine --warmup 0.3 --momentum 0.9 --weight-decay 5e-4 --label-smoothing 0.1
alike --mean 122.655,116.535,104.04 --std 59.415,58.395,58.65 --crop-area 0.08,1
alike --data-seed 0
alike --interpolation bilinear
alike --crop-aspect 0.75,1.3333333333333333 --loader real --mixup 0 --cutmix 0 --grad-accum 1 --seed 0
alike --device auto --name "a name" --checkpoint-every 0.4
[ "$(field changed/$REPORT name)" = "a name" ] || fail "--name does nothing"
expect 0 run $base --out policy --lr-policy exponential
expect 0 run $base --out end-lr --lr-policy exponential --min-lr 0.001
differ policy/$CK end-lr/$CK "--min-lr of --lr-policy exponential"
expect 0 run $base --out ref --device ref --threads 2
[ "$(field ref/$REPORT device)" = ref ] || fail "--device does nothing"

# Half precision learns nearly the same; a static loss scale that divides out changes little, one that is too
# large skips every update, and a dynamic one falls until it fits, also across --resume.
run_ref() { run $base --device ref -a resnet10 --image-size 32 -e 0.5 "$@"; }
for amp in off bf16 fp16; do
    expect 0 run_ref --amp $amp --out amp-$amp
    [ "$(field amp-$amp/$REPORT amp)" = $amp ] || fail "--amp $amp is not in the report"
done
differ amp-off/$CK amp-bf16/$CK "--amp bf16"
differ amp-off/$CK amp-fp16/$CK "--amp fp16"
awk -v a="$(field amp-off/$REPORT loss)" -v b="$(field amp-bf16/$REPORT loss)" -v c="$(field amp-fp16/$REPORT loss)" \
    'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 0.0025 * a * a && (a - c) ^ 2 < 0.0025 * a * a) }' ||
    fail "losses: $(field amp-off/$REPORT loss) $(field amp-bf16/$REPORT loss) $(field amp-fp16/$REPORT loss)"
# oneDNN's bf16 needs AMX to gain: without, a clear word; with, the loss is near float32's.
run_cpu() { run -d data -a convnet --device cpu "$@"; }
if dl2-train --list devices | grep -q '^cpu'; then
    ONEDNN_MAX_CPU_ISA=AVX2 expect 1 run_cpu --amp bf16 --out no-amx
    grep -q "device cpu has bf16 where processors have AMX" "$work/err" || fail "$(cat "$work/err")"
fi
if dl2-train --list devices --amp bf16 --device cpu | grep -q usable; then
    expect 0 run_cpu --out cpu-off
    expect 0 run_cpu --amp bf16 --out cpu-bf16
    differ cpu-off/$CK cpu-bf16/$CK "--amp bf16 on the processor"
    awk -v a="$(field cpu-off/$REPORT loss)" -v b="$(field cpu-bf16/$REPORT loss)" \
        'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (a / 20) ^ 2) }' || fail "--amp bf16 on the processor: another loss"
fi
expect 0 run_ref --amp fp16 --loss-scale 16777216 --out much
skipped=$(field much/$REPORT skipped_updates)
[ "$skipped" -gt 0 ] || fail "a loss scale of 2^24 skipped no update"
[ "$(field amp-fp16/$REPORT loss_scale)" != "" ] || fail "the report has no loss scale"
expect 0 run_ref --amp fp16 --out parts --run-epochs 0.25
expect 0 run_ref --amp fp16 --out parts --resume
same amp-fp16/$CK parts/$CK "fp16 after --resume"
expect 1 run_ref --amp bf16 --out parts --resume
grep -q "amp was" "$work/err" || fail "--resume with another --amp: $(cat "$work/err")"
expect 1 run $base --device ref --amp tf32 --out tf32
grep -q "device cuda" "$work/err" || fail "--amp tf32 on ref: $(cat "$work/err")"
expect 2 run $base --amp int8 --out int8
expect 2 run $base --device cpu:x --out cpux
alike --deterministic

# --val-resize is validation's.
expect 0 run -d data --out v1
expect 0 run -d data --out v2 --val-resize 20
same v1/$CK v2/$CK --val-resize
[ "$(grep '"loss"' v1/$REPORT)" != "$(grep '"loss"' v2/$REPORT)" ] || fail "--val-resize does nothing"

# --val-crop too, and takes the place of the resize.
expect 0 run -d data --out v3 --val-crop squash
same v1/$CK v3/$CK --val-crop
[ "$(grep '"loss"' v1/$REPORT)" != "$(grep '"loss"' v3/$REPORT)" ] || fail "--val-crop does nothing"

# Images that are not square.
expect 0 run -d data -a resnet10 --image-size 24x40 -e 1 --cutmix 1 --out wide
is "$(field wide/$REPORT image-size)" 24x40 "the report's image-size"
expect 1 run -d data -a resnet10 --image-size 40x24 -e 1 --cutmix 1 --out wide --resume
grep -q 'image-size' "$work/err" || fail "a resume at 40x24: $(cat "$work/err")"

# The default folder is made from variant, architecture and seed.
expect 0 run $base --seed 3
[ -s experiments/data-convnet-seed-3/$REPORT ] || fail "no report in the default folder"

# Every option of --help that a run has is in the report.
dl2-train run --help | sed -n 's/^ \{2,6\}\(-., \)\{0,1\}--\([a-z0-9-]*\).*/\2/p' |
    grep -v -x -e help -e usage -e version -e quiet -e list |
    while read -r name; do
        grep -q "\"$name\":" base/$REPORT || { echo "FAIL: the report has no '$name'" >&2; exit 1; }
    done || exit 1

# What bears on accuracy is listed for comparisons; where the run is, how it loads and its seed are not.
sed -n '/"comparable": {/,/^  }/p' base/$REPORT >comparable
for name in augment batch classes device epochs image-size interpolation lr val-crop val-resize; do
    grep -q "\"$name\":" comparable || fail "comparable has no '$name'"
done
for name in arch cache data jobs name out seed threads; do
    ! grep -q "\"$name\":" comparable || fail "comparable has '$name'"
done

# Which images an epoch has is a part of what a run is, by the weights and not by where their file lies.
expect 0 run $base --out weighed --sample-weights weights --num-samples 16 -e 2 --run-epochs 1
mkdir -p elsewhere && cp weights elsewhere/weights
expect 0 run $base --out weighed --sample-weights elsewhere/weights --num-samples 16 -e 2 --resume
grep -q '"images": 16' weighed/$REPORT || fail "an epoch of --num-samples 16"
for other in "--sample-weights weights --num-samples 24" "--balanced --num-samples 16"; do
    expect 0 run $base --out weighed --restart --sample-weights weights --num-samples 16 -e 2 --run-epochs 1
    expect 1 run $base --out weighed $other -e 2 --resume
    grep -q 'it is of another run: \(num-samples\|sample-weights\) was' "$work/err" || fail "$other: $(cat "$work/err")"
done
sed 's/1$/3/' weights >elsewhere/weights
expect 1 run $base --out weighed --sample-weights elsewhere/weights --num-samples 16 -e 2 --resume
said 'it is of another run: sample-weights was'
for option in sample-weights balanced repeats num-samples; do
    grep -q "\"$option\":" comparable || fail "comparable has no '$option'"
done

# Wrong usage.
dl2-train $smallest $base --decode gpu --device ref --out wrong >"$work/out" 2>"$work/err" # 2: not built
got=$?
{ [ $got = 1 ] && grep -q 'needs --device cuda, not ref' "$work/err"; } ||
    { [ $got = 2 ] && grep -q 'configure --with-cuda --with-nvjpeg' "$work/err"; } ||
    { cat "$work/err" >&2; fail "--decode gpu on the device ref: $got"; }
rm -rf wrong
count=0
for wrong in "" "-d data --decode tpu" "-d data --gpu-input region" "-d data --gpu-engine cores" \
    "-d data --decode hybrid --deterministic" "-d data --decode gpu --cache-decoded 1M" "-d data stray" "-d data -e 0" "-d data -e x" "-d data --lr-policy cosinus" \
    "-d data --arch vgg" "-d data --device gpu9" "-d data --loader fast" "-d data --mean 1,2" \
    "-d data --std 0" "-d data --mean 0.485,0.456,0.406" "-d data --std 0.229,0.224,0.225" "-d data --mean 300" \
    "-d data --crop-area 1,0.5" "-d data --crop-area 0.5,2" \
    "-d data --crop-aspect 0,1" "-d data --time-budget 10x" "-d data --time-budget -5s" \
    "-d data --time-budget 5s7" "-d data --stages data:1" "--stages data" "--stages data:0" \
    "--stages data:1,:2" "-d data --resume --restart" "-d data --channels 2" \
    "-d data --min-lr 9" "-d data --warmup 3" "-d data --val data --skip-validation" \
    "-d data --classes 3" "--loader synthetic --val data" "-d data --momentum 0 --nesterov" \
    "-d data --optimizer adam" "-d data --optimizer adamw --nesterov" "-d data --beta2 0.9" \
    "-d data --optimizer adamw --momentum 1" "-d data --optimizer rmsprop --nesterov" "-d data --clip-grad -1" \
    "-d data --skip-validation --keep-best" "--loader synthetic --keep-best" "--loader synthetic --label-field a" "--stages data:1 --freeze" \
    "--stages data:1:size=7" "--stages data:1:size=x" "--stages data:1:size=12:thaw" "--stages data:freeze" "-d data --optimizer adamw --beta2 1" \
    "-d data --augment mirror" "-d data --augment jitter" "-d data --augment randaugment:m=31" \
    "-d data --decode gpu --augment vflip" "-d data --decode gpu --interpolation box" "-d data --interpolation hamming" "-d data --decode gpu --cutmix 1" "-d data --cutmix -1" "-d data --shuffle-window 2" "-d data --balanced --sample-weights weights" "-d data --balanced --repeats 2" "-d data --loss-scale 8" "-d data --loss-scale 8 --amp bf16" "-d data --sync-bn" \
    "-d data --image-size 7x32" "-d data --image-size 32x" "--stages data:1:size=12x7" "-d data --skip-validation --val-crop squash" \
    "-d data --val-crop squash --val-resize 20" "-d data --skip-validation --val-resize 20" "-d data --skip-validation --validate-every 2" \
    "--loader synthetic --balanced" "-d data --num-samples 8 --partition 1/2" "-d data --repeats 0" "-d data --validate-every 0.5" "-d data --no-such-option" "-d data -b 0"; do
    ! slow || [ $((count = (count + 1) % 5)) = 0 ] || continue # all go the same way
    expect 2 run $wrong --out wrong
    [ -s "$work/err" ] || fail "no word about: $wrong"
done
[ ! -e wrong ] || fail "wrong usage made a folder"
for option in loader batching on-bad io decode gpu-input gpu-engine amp lr-policy; do
    explained $option dl2-train -d data
done

# What is meant, where another option or file was.
advice() { # TEXT OPTION...
    text=$1
    shift
    expect 2 run "$@" --out wrong
    said "$text"
}
advice '--freeze needs --pretrained FILE' -d data --freeze
advice '--freeze needs --pretrained FILE' -d data --freeze --skip-validation
advice "no option '--weights'; did you mean --pretrained=FILE" -d data --weights x.safetensors
advice '--pretrained takes a safetensors file, and this is one of PyTorch' -d data --pretrained x.pth
printf 'PK\003\004' >torch-file
advice '--pretrained takes a safetensors file, and this is one of PyTorch' -d data --pretrained torch-file
cp base/$CK renamed.pth
expect 0 run $base --out renamed --pretrained renamed.pth
expect 2 dl2-train evaluate x.pt --val data --out wrong
said 'evaluate takes a safetensors file, and this is one of PyTorch'
expect 2 dl2-train evaluate base/$CK -d data --out wrong
said '--data is not an option of the command evaluate'
[ ! -e wrong ] || fail "wrong usage made a folder"
mkdir unsplit && cp -R data/train unsplit/train
expect 1 run -d unsplit --out wrong
said '--val-fraction 0.2, val_fraction=0.2 in Python, keeps a fifth of the training images for it'
rm -rf wrong
expect 0 run -d unsplit --val-fraction 0.2 --out wrong
rm -rf wrong
for size in 20 16x20 20x16; do
    expect 1 run -d data -a vit_tiny --image-size $size --out wrong --restart
    said 'do not fit vit_tiny, whose patches of 8x8 pixels would leave a part of them out: choose sides that are multiples of 8'
done
rm -rf wrong

# A rate that is far too high ends with advice, not with a checkpoint full of nothing.
expect 1 run -d data --skip-validation --lr 1e6 --warmup 0 -e 30 --momentum 0.99 --out diverged
grep -q 'lower --lr' "$work/err" || fail "no advice on a run that diverged"
# NaN goes through ReLUs to the loss, of a network in which batch norm keeps that finite for long.
expect 1 run -d data --skip-validation -a resnet10 --image-size 32 -b 4 --lr 1e5 --warmup 0 --out diverged --restart
said 'training diverged in epoch 1: the loss became NaN or infinite'
# A weight that overflows where the loss stays finite: the first one is 1e35 and decays by 1e7 of itself.
expect 0 run -d data --skip-validation --device ref -e 1 --export large --out large.out
head=$(od -An -t u8 -N 8 large | tr -d ' ')
LC_ALL=C sed -i 's/"crc32"/"older"/' large
printf '\014\023\232\171' | dd of=large bs=1 seek=$((8 + head)) conv=notrunc 2>"$work/dd" || fail "$(cat "$work/dd")"
expect 1 run -d data --skip-validation --device ref -e 1 -b 8 --num-samples 8 --lr 1e6 --min-lr 1e6 --warmup 0 --weight-decay 10 --pretrained large \
    --out diverged --restart
said 'training diverged in epoch 1: a value of stage1.conv1.weight became NaN or infinite'

# --list: for scripts, a line each with tabs between the columns; --help knows the same architectures. Options are checked first.
expect 0 run --list archs
cut -f 1 "$work/out" >archs
grep -qx vit_tiny archs || fail "--list archs without vit_tiny"
[ "$(awk -F '\t' 'NF == 7 && $4 > 0 && $7 != ""' "$work/out" | wc -l)" -eq "$(wc -l <archs)" ] || fail "--list archs: not seven columns"
expect 0 dl2-train run --help
cp "$work/out" help
expect 2 run --optimizer none
for optimizer in $(sed -n "s/.*'none' is not one of //p" "$work/err" | tr -d ,); do
    sed -n '/^Optimizers/,/^$/p' help | grep -q "^  $optimizer  *0" || fail "--help says nothing of $optimizer"
done
while read -r arch; do
    sed -n '/^Architectures/,/^$/p' help | grep -q "^  $arch " || fail "--help says nothing of $arch"
    case $arch in unet3d*) size=32x32x32 ;; *) size=8 ;; esac
    expect 0 run --arch "$arch" --image-size $size --device ref --list devices
done <archs
[ "$(awk -F '\t' '{ print NF, $1, $3 }' "$work/out")" = "3 ref usable" ] || fail "--list devices: $(cat "$work/out")"
expect 0 run --device ref:1 --list devices
grep -q 'ref:1.*there is one device ref' "$work/out" || fail "no word of a device that isn't there: $(cat "$work/out")"
expect 0 run --list augmentations
[ "$(awk -F '\t' 'NF == 2 && $2 != ""' "$work/out" | wc -l)" -ge 17 ] || fail "--list augmentations: $(cat "$work/out")"
for wrong in "--device none" "--arch resnet51" "-e 3 --warmup 9 -d data" "--epochs x"; do
    expect 2 run $wrong --list archs
    [ ! -s "$work/out" ] || fail "a list in spite of: $wrong"
done
