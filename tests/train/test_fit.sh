# SPDX-License-Identifier: BSD-2-Clause
# A model that is trained on images that come one at a time: bit for bit dl2-train's, also in several
# calls; refused settings; damaged models.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
fit_rows() { "$builddir/tests/train/fit_rows" "$@"; }
make_images data 3 20 7 12
common='"arch": "convnet", "image-size": 8, "classes": 3, "images": 60, "batch": 8'
# both NAME ROWS SETTINGS OPTION...: by rows, so many a call, and by dl2-train.
both() {
    name=$1 rows=$2 settings=$3
    shift 3
    expect 0 fit_rows train "{$common, $settings}" data $name $rows
    expect 0 run -d data --device ref --out by-$name "$@"
    same $name by-$name/$CK "$name by rows and by dl2-train"
}
both plain 24 '"seed": 3, "epochs": 2' --seed 3 -e 2
printf 'P6\n12 12\n255\ncut short' >"$(find data/train/c1 -name "*.ppm" | sort | head -n 1)" # the next one takes its place, too
both other 60 '"seed": 4, "epochs": 3, "optimizer": "adamw", "ema": 0.9, "mixup": 0.3, "clip-grad": 1, "augment": "rotate", "no-flip": true' \
    --seed 4 -e 3 --optimizer adamw --ema 0.9 --mixup 0.3 --clip-grad 1 --augment rotate --no-flip
differ plain other
expect 0 fit_rows evaluate other data
is "$(cut -d ' ' -f 1 <"$work/out")" 21 "images that were evaluated"
wanted=$(sed -n '/"val": \[/,/\]/s/^ *"loss": \([0-9.]*\).*/\1/p' by-other/$REPORT | tail -n 1)
awk -v wanted="$wanted" '{ exit !(($2 - wanted) ^ 2 < 1e-9) }' "$work/out" || fail "loss: $(cat "$work/out") and not $wanted"

# refused SETTINGS MESSAGE
refused() {
    expect 1 fit_rows train "$1" data no 24
    said "$2"
}
refused '{"classes": 3}' 'a new model needs "images"'
refused "{$common, \"pretrained\": \"/etc/passwd\"}" 'there is no option "pretrained" here'
refused "{$common, \"lr\": -1}" '"lr": '
refused "{$common, \"lr\": 0.1, \"min-lr\": 1}" 'min-lr 1 is above'
refused "{$common, \"grad-accum\": 2}" '"grad-accum": nobody knows how many images will come'
refused "{\"classes\": 3, \"images\": 60, \"image-size\": 224, \"batch\": 256}" 'and the limit is 256.0 MiB'
refused '[]' 'no JSON object'
refused "{$common, \"augment\": \"vflip,grain@./libgrain.so\"}" 'names a plug-in: files on the server'
# Nor does a model's record make it run code.
expect 0 $CC -std=c11 -shared -fPIC "-I$srcdir" "$srcdir/examples/grain.c" -o libgrain.so
expect 0 run -d data --device ref --seed 0 --run-epochs 1 --augment grain@./libgrain.so --out recorded
expect 1 fit_rows evaluate recorded/$CK data
said "\"augment\": 'grain@./libgrain.so#"

expect 0 run -d data --device ref --seed 0 -e 50 --run-epochs 1 --out half
changes=600
slow && changes=100
expect 0 fit_rows damage half/$CK data $changes
grep -q opened "$work/out" || fail "of damaged models: $(cat "$work/out")"
