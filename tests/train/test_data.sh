# SPDX-License-Identifier: BSD-2-Clause
# Stages, several validation sets, splits, gray images, bad samples, synthetic data, and how missing or
# wrong data is answered.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 16 5 8
make_images other 3 16 4 8 color 9
make_images flat 3 20 0 8
make_images gray 3 16 4 8 gray
make_images four 4 8 2 8

# It learns: three mean colors are easy.
expect 0 run -d data -e 12 --out easy
"${PYTHON3:-python3}" - easy/$REPORT <<'PY' || fail "it does not learn"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == "dl2-experiment/1" and report["completed"] is True
assert report["final"][0]["top1"] > 0.8, report["final"]
assert report["epochs"][-1]["train"]["loss"] < report["epochs"][0]["train"]["loss"]
assert report["classes"] == 3 and report["train_images"] == 48 and report["val_images"] == 15
assert len(report["epochs"]) == 12 and report["timeline"]["seconds"] and report["machine"]["cores"] >= 1
for epoch in report["epochs"]:
    assert epoch["val"][0]["images"] == 15
    assert epoch["val"][0]["top5"] == 1.0
    assert abs(epoch["seconds"] - epoch["data_wait_seconds"] - epoch["compute_seconds"]) < 1e-9
PY

# Validation on several sets doesn't touch the weights, nor does leaving it out.
expect 0 run -d data --out one
expect 0 run -d data --out two --val other --val data --validate-every 2
same one/$CK two/$CK "validation sets"
[ "$(grep -c '"name": "other"' two/$REPORT)" -ge 2 ] || fail "no validation on the second set"
expect 0 run -d data --out none --skip-validation
same one/$CK none/$CK "validation left out"
grep -q '"final": null' none/$REPORT || fail "--skip-validation validates"

# Two stages of the same data are one run; of other data, another. Epochs need not be whole.
expect 0 run -d data -e 2.5 --out run
expect 0 dl2-train --quiet -a convnet --image-size 8 -b 8 --threads 1 --stages data:1,data:1.5 --out same
same run/$CK same/$CK "stages of the same data"
expect 0 dl2-train --quiet -a convnet --image-size 8 -b 8 --threads 1 --stages data:1,other:1.5 --out staged
differ run/$CK staged/$CK "stages of other data"
[ "$(field staged/$REPORT variant)" = data+other ] || fail "the stages' names"
expect 0 dl2-train --quiet -a convnet --image-size 8 -b 8 --threads 1 --stages data:1,other:1.5 --out cut \
    --run-epochs 1.2
expect 0 dl2-train --quiet -a convnet --image-size 8 -b 8 --threads 1 --stages data:1,other:1.5 --out cut \
    --resume
same staged/$CK cut/$CK "stages, resumed"

# Several datasets as one, validated together: 48 and 32 images of three classes and of four.
expect 0 run -d data -d four -e 2 --out union
[ "$(field union/$REPORT variant)" = data+four ] || fail "the names of joined datasets"
[ "$(field union/$REPORT classes)" = 4 ] || fail "the classes of joined datasets"
[ "$(field union/$REPORT train_images)" = 80 ] || fail "the images of joined datasets"
[ "$(field union/$REPORT val_images)" = 23 ] || fail "the validation images of joined datasets"
grep -q '^ *"data": "data, four"' union/$REPORT || fail "the paths of joined datasets"
grep -q 'data, four: four adds 1 class, from number 3 on' "$work/err" || fail "no word of the classes that were added"
printf '{"name": "a"}\n{"name": "b", "seed": 1}\n' >configs
expect 0 run several -d data -d four -e 2 --configs configs --out several
same union/$CK several/a/$CK "joined datasets of several models"
expect 0 run -d data -d four -e 2 --shares 1,3 --out shares
grep -q "shares: 60 of an epoch's 80 samples are of four, which has 32: each comes 1.88 times" "$work/err" ||
    fail "images come again, and nothing says so"
differ union/$CK shares/$CK "--shares"
expect 0 run -d data -d four -e 2 --shares 2,6 -j 1 --out again
same shares/$CK again/$CK "equal shares, with other workers"
expect 0 run -d data -d four -e 2 --shares 1,3 --out parts --run-epochs 0.5
expect 1 run -d data -d four -e 2 --shares 1,2 --out parts --resume
expect 0 run -d data -d four -e 2 --shares 1,3 --out parts --resume
same shares/$CK parts/$CK "shares, resumed in the middle of an epoch"
expect 0 run -d data -d other -e 2 --shares 1,1 --num-samples 24 --val data --out apart
[ "$(field apart/$REPORT val_images)" = 15 ] || fail "--val beside joined datasets"
expect 2 run -d data --shares 1,3
grep -q -e '--shares needs --data several times' "$work/err" || fail "--shares of one dataset"
expect 2 run -d data -d other --shares 1,nan
expect 2 run -d data -d other --shares 1,0
expect 2 run -d data -d other --shares 1,3 --repeats 2
expect 2 run -d data -d other --shares 1,3 --partition 1/2
expect 1 run -d data -d other --shares 1,2,3 --out wrong
grep -q 'there are 3 shares for 2 datasets' "$work/err" || fail "shares of no dataset"
expect 1 run -d data -d ./data --out wrong
grep -q 'data and ./data are the same dataset' "$work/err" || fail "one dataset twice"
expect 1 run -d data -d four --val-split all --val four --out wrong
grep -q 'validation would be on images that are trained on' "$work/err" || fail "validation on joined training images"

# One tree is split, by part and seed.
expect 0 run -d flat --out flat
[ "$(field flat/$REPORT val_images)" = 12 ] || fail "a fifth of sixty is not kept for validation"
expect 0 run -d flat --out flat3 --val-fraction 0.3
[ "$(field flat3/$REPORT val_images)" = 18 ] || fail "--val-fraction does nothing"
expect 0 run -d flat --out flat-seed --split-seed 5
differ flat/$CK flat-seed/$CK "--split-seed"

grep -q 'flat: 60 images in 3 classes, without folders for splits: 48 for training and 12 for validation' \
    "$work/err" || fail "the split by the rule is not announced"

# It splits a folder train, too; where it would do nothing, it is refused, but for an evaluation that has it
# from its run.
mkdir tree && cp -r flat tree/train
expect 0 run -d tree --out tree9 --val-fraction 0.1
[ "$(field tree9/$REPORT train_images) $(field tree9/$REPORT val_images)" = '54 6' ] ||
    fail "--val-fraction does not split train"
expect 0 dl2-train --quiet evaluate tree9/$CK --val tree --out tree-evaluation
grep -q '"images": 6,' tree-evaluation/evaluation_report.json || fail "an evaluation has other images than its run"
expect 1 run -d data --out refused --val-fraction 0.1
grep -q 'data: val_fraction and split_seed have no effect here: the dataset has a split for validation' "$work/err" ||
    fail "$(cat "$work/err")"
expect 1 run -d data --out refused --split-seed 1
expect 0 dl2-train --quiet evaluate tree9/$CK --val data --out tree-evaluation
grep -q '"images": 15,' tree-evaluation/evaluation_report.json || fail "an evaluation on a split of its own"

# A part of the training images: nested, by seed, by name; the same of every variant; validation stays
# whole. It is part of what a run is.
expect 0 run -d data --out half --subset 50%
[ "$(field half/$REPORT train_images) $(field half/$REPORT val_images)" = '24 15' ] || fail "--subset 50%"
grep -q 'data: a subset: 24 of the 48 images for training, 50% of each class, drawn with seed 0' "$work/err" ||
    fail "the subset is not announced: $(cat "$work/err")"
[ "$(field half/$REPORT subset)" = 50% ] || fail "the subset is not in the report"
expect 0 run -d data --out half-1 --subset 50% --subset-seed 1
differ half/$CK half-1/$CK "--subset-seed"
expect 0 run -d data --out half-name --subset 50% --subset-by name
differ half/$CK half-name/$CK "--subset-by"
expect 0 run -d data --out whole --subset 100%
expect 0 run -d data --out all
same all/$CK whole/$CK "--subset 100%"
expect 0 run -d data --out half-cut --subset 50% --run-epochs 1
expect 1 run -d data --out half-cut --subset 60% --resume
said 'subset was "50%", and now is "60%"'
expect 0 run -d data --out half-cut --subset 50% --resume
same half/$CK half-cut/$CK "a subset, resumed"
for wrong in 0% 101% 50 half -5%; do
    expect 2 run -d data --out x --subset $wrong
done
said 'is not a percentage above 0% and up to 100%'
for idle in '--subset-seed 1' '--subset-by name'; do
    expect 2 run -d data --out x $idle
    said "${idle%% *} needs --subset"
done
expect 2 run -d data --out x --subset 50% --subset-by name --subset-seed 1
said 'subset-seed has no effect with --subset-by name, which draws nothing'

# Splits by other names; a test split only by its name; a folder of a split is that split, whole.
mkdir valid test && cp -r data/train valid/Training && cp -r data/val valid/Valid
expect 0 dl2-train -j 2 --threads 1 -a convnet --image-size 8 -b 8 -e 1 -d valid --out valid-out
grep -q 'valid: train 48 images in 3 classes (Training/), val 15 (Valid/)' "$work/err" ||
    fail "the layout is not said: $(cat "$work/err")"
[ "$(field valid-out/$REPORT val_images)" = 15 ] || fail "valid/ is not the validation split"
cp -r data/train test/train && cp -r data/val test/test
expect 1 run -d test --out x
grep -q 'no samples for validation, but train 48 images in 3 classes, test 15' "$work/err" ||
    fail "it isn't said that there is only a test split"
expect 0 run -d test --val-split test --out test-out
[ "$(field test-out/$REPORT val_images)" = 15 ] || fail "--val-split test"
# Any folder beside train and test is a split; a run keeps its own.
cp -r data/val test/holdout
expect 0 run -d test --train-split test --val-split holdout --out holdout-out
[ "$(field holdout-out/$REPORT train_images) $(field holdout-out/$REPORT val_images)" = "15 15" ] ||
    fail "--train-split test --val-split holdout"
expect 1 run -d test --val-split holdout --out holdout-out --resume
grep -q 'train-split was "test", and now is "train"' "$work/err" || fail "resumed on another split: $(cat "$work/err")"
expect 1 run -d test --train-split holdup --val-split test --out x
grep -q "no split is called 'holdup', but train 48 images in 3 classes, test 15, holdout 15" "$work/err" ||
    fail "no such split: $(cat "$work/err")"
# Nobody validates on what was trained on.
expect 1 run -d data --train-split val --out x
grep -q 'in the splits val (--train-split) and val (--val-split)' "$work/err" || fail "val twice: $(cat "$work/err")"
expect 1 run -d data --train-split all --out x
expect 1 run -d data --val-split all --out x
expect 1 dl2-train $smallest -e 1 --train-split val -d data --val other --val data --out x
expect 0 run -d data --train-split validation --skip-validation --out unvalidated
expect 0 run -d data --train-split val --val other --out elsewhere
expect 2 run -d test --train-split holdout --val-split test --subset 50% --out x
grep -q -e "--subset takes a part of the split train" "$work/err" || fail "a subset of another split: $(cat "$work/err")"
expect 0 run -d data/train --val data/val --out folders
[ "$(field folders/$REPORT train_images)" = 48 ] || fail "a part of data/train is left out"
[ "$(field folders/$REPORT val_images)" = 15 ] || fail "a part of data/val is left out"
expect 1 run -d data/train --out x
grep -q 'no samples for validation' "$work/err" || fail "training images are validated on"

# Gray images make a network of one channel, unless told otherwise.
expect 0 run -d gray --out gray
[ "$(field gray/$REPORT channels)" = 1 ] || fail "gray images were not noticed"
expect 0 run -d gray --out gray3 --channels 3
[ "$(field gray3/$REPORT channels)" = 3 ] || fail "--channels does nothing"

# Bad samples are named, counted once, and left out.
cp -r data bad
printf 'P6\n8 8\n255\nshort' >bad/train/c1/003.ppm
printf 'P6\n8 8\n255\nshort' >bad/val/c2/001.ppm
expect 0 run -d bad --out bad
[ "$(grep -c 'c1/003.ppm' "$work/err")" = 1 ] || fail "the bad training sample is not named once"
[ "$(grep -c 'c2/001.ppm' "$work/err")" = 1 ] || fail "the bad validation sample is not named once"
"${PYTHON3:-python3}" - bad/$REPORT <<'PY' || fail "bad samples in the report"
import json, sys
report = json.load(open(sys.argv[1]))
assert len(report["bad"]) == 2, report["bad"]
assert report["final"][0]["images"] == 14, report["final"]
PY

# Noise, with and without a dataset that says how much.
expect 0 run --loader synthetic --images 20 --classes 4 --out noise
[ "$(field noise/$REPORT classes)" = 4 ] || fail "--classes does nothing"
[ "$(grep -c '"images": 16' noise/$REPORT)" -ge 3 ] || fail "--images: not two batches of eight"
expect 0 run --loader synthetic -d data --out noise-data
[ "$(field noise-data/$REPORT train_images)" = 48 ] || fail "synthetic data of a dataset's size"

# What can't be trained on.
expect 1 run -d nowhere --out x
grep -q nowhere "$work/err" || fail "a missing folder is not named"
mkdir empty
expect 1 run -d empty --out x
expect 1 run -d data --val four --out x
said "four: 2 of its images are of the class 'c3', and data has no such class, but c0, c1, c2"
cp -r data renamed
mv renamed/train/c2 renamed/train/zz && mv renamed/val/c2 renamed/val/zz
expect 1 run -d data --val renamed --out x
said "are of the class 'zz', and data has no such class"
cp -r data part && rm -r part/train/c0 part/val/c0
expect 0 dl2-train --quiet -a convnet --image-size 8 -b 8 --threads 1 --stages data:4,part:1 --val data --out stages-of-part
said "part: labels are numbers of the 3 classes of data, by name: it has 2 of them"
[ "$(field stages-of-part/$REPORT classes)" = 3 ] || fail "a stage of fewer classes"
mkdir -p single && cp -r data/train single/train && rm -r single/train/c1 single/train/c2
expect 1 run -d single --skip-validation --out x
[ ! -e x/$REPORT ] || fail "a run that never began left a report"
exit 0
