# SPDX-License-Identifier: BSD-2-Clause
# A run that was stopped anywhere, by whatever, ends with the very weights of one that wasn't.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 15 3 8

# Five batches an epoch of eight; mixup, accumulation and averages have numbers of their own to keep.
options="-d data --mixup 0.3 --grad-accum 2 --nesterov --ema 0.5"
expect 0 run $options --out whole
expect 0 run $options --out workers1 -j 1
expect 0 run $options --out workers5 -j 5
same whole/$CK workers1/$CK "the number of workers"
same whole/$CK workers5/$CK "the number of workers"
expect 0 run $options --out seed --seed 7
differ whole/$CK seed/$CK "the seed"

# Stopped in the middle of an epoch, at an epoch's end, and again and again.
expect 0 run $options --out parts --run-epochs 1.3
[ "$(field parts/$REPORT completed)" = false ] || fail "a stopped run calls itself completed"
differ whole/$CK parts/$CK "a part of the run"
expect 1 run $options --out parts
grep -q -e --resume "$work/err" || fail "an unfinished run would be overwritten without a word"
expect 0 run $options --out parts --resume --run-epochs 0.7
expect 0 run $options --out parts --resume --run-epochs 0.2 -j 1
expect 0 run $options --out parts --resume
same whole/$CK parts/$CK "a run in four parts"
[ "$(field parts/$REPORT completed)" = true ] || fail "the resumed run is not completed"
# A kill between the last checkpoint and the report leaves a report that --resume completes.
sed -i 's/"completed": true/"completed": false/' parts/$REPORT
expect 0 run $options --out parts --resume
[ "$(field parts/$REPORT completed)" = true ] || fail "the report of a finished run stays unfinished"
# Nor is a finished one lost, whatever is in the file; --restart says that it may be.
cp parts/$CK finished
expect 1 run $options --out parts --lr 0.02
grep -q 'parts/.* is there already: .*--out.*--restart' "$work/err" || fail "a finished run would be overwritten without a word"
cmp finished parts/$CK || fail "a finished run was overwritten"
mkdir other-file && echo 'not of a run' >other-file/$CK
expect 1 run $options --out other-file
[ "$(cat other-file/$CK)" = 'not of a run' ] || fail "a file that is no checkpoint was overwritten"
expect 0 run $options --out other-file --restart
same whole/$CK other-file/$CK "--restart"
# The report has every epoch once, with the same losses to the last digit, be they small and large.
losses() {
    for report; do sed -n 's/^ *"loss": //p' $report/$REPORT >$report.losses; done
    cmp $1.losses $2.losses || fail "the resumed run's report has other losses"
}
losses whole parts
small="-d data --label-smoothing 0 --lr 0.3 --warmup 0"
for ranks in "" "--ranks 2 -b 4"; do
    expect 0 run $small $ranks --out small --restart
    expect 0 run $small $ranks --out small-parts --run-epochs 1.3 --restart
    expect 0 run $small $ranks --out small-parts --resume --run-epochs 0.9 --checkpoint-every 0.2
    expect 0 run $small $ranks --out small-parts --resume
    losses small small-parts
done
[ "$(grep -c '"compute_seconds"' parts/$REPORT)" = 3 ] || fail "not three epochs in the report"

# AdamW's moments and its count of updates.
adamw="-d data --grad-accum 2 --optimizer adamw --lr 0.01"
expect 0 run $adamw --out adamw
expect 0 run $adamw --out adamw-parts --run-epochs 1.3
expect 0 run $adamw --out adamw-parts --resume
same adamw/$CK adamw-parts/$CK "AdamW in two parts"

# RMSprop's means, and clipped gradients.
rmsprop="-d data --grad-accum 2 --optimizer rmsprop --clip-grad 0.5"
expect 0 run $rmsprop --out rmsprop
expect 0 run $rmsprop --out rmsprop-parts --run-epochs 1.3
expect 0 run $rmsprop --out rmsprop-parts --resume
same rmsprop/$CK rmsprop-parts/$CK "RMSprop in two parts"
expect 0 run $rmsprop --out rmsprop-parts --restart --run-epochs 1
for option in '--clip-grad 0.6' --freeze; do
    expect 1 run $rmsprop --out rmsprop-parts --resume $option
    grep -q "is of another run: ${option#--}" "$work/err" || grep -q 'clip-grad was' "$work/err" ||
        fail "--resume with $option: $(cat "$work/err")"
done

# Where the order is the machine's, too, each epoch has every image once, over all the parts of a run;
# images that are kept in memory change nothing.
for mode in completion; do
    expect 0 run $options --out $mode --batching $mode -j 5 --run-epochs 0.4
    expect 0 run $options --out $mode --batching $mode -j 3 --resume --run-epochs 0.8
    expect 0 run $options --out $mode --batching $mode --resume
    [ "$(field $mode/$REPORT completed)" = true ] || fail "--batching $mode: not completed"
    for report in whole $mode; do
        sed -n '/"train": {/,/}/s/^ *"images": //p' $report/$REPORT >$report.images
    done
    [ "$(wc -l <$mode.images)" = 3 ] || fail "--batching $mode: not three epochs in the report"
    cmp whole.images $mode.images || fail "--batching $mode: other numbers of images"
done
expect 0 run $options --out cached --cache 10M --run-epochs 1.3
expect 0 run $options --out cached --cache 1K --io direct --depth 5 --resume
same whole/$CK cached/$CK "the cache"
expect 0 run $options --out decoded --cache-decoded 10M --run-epochs 1.3
expect 0 run $options --out decoded --cache-decoded 4K -j 1 --resume
same whole/$CK decoded/$CK "the cache of decoded images"
expect 0 run $options --out chunks --shuffle-chunk 4 --shuffle-window 3 --run-epochs 1
expect 1 run $options --out chunks --shuffle-chunk 5 --shuffle-window 3 --resume
expect 0 run $options --out chunks --shuffle-chunk 4 --shuffle-window 3 --resume
differ whole/$CK chunks/$CK "the order"

# An augmentation goes on with the same numbers, may be written in another way, and must not change.
# CutMix draws anew for every batch, too.
mixed="$options --cutmix 1"
expect 0 run $mixed --out augmented --augment randaugment,erase
expect 0 run $mixed --out augmented2 --augment randaugment:m=9,erase:p=0.5 --run-epochs 1.3 -j 2
expect 1 run $mixed --out augmented2 --resume --augment randaugment:m=8,erase
grep -q 'is of another run: augment' "$work/err" || fail "the message doesn't name the augmentation: $(cat "$work/err")"
expect 1 run $mixed --out augmented2 --resume --augment randaugment,erase --interpolation box
grep -q 'is of another run: interpolation' "$work/err" || fail "the message doesn't name the filter: $(cat "$work/err")"
expect 0 run $mixed --out augmented2 --resume --augment erase --augment randaugment,erase
same augmented/$CK augmented2/$CK "an augmented run in two parts"
differ whole/$CK augmented/$CK "the augmentation"

# What may change but bears on results is named: threads, by which the device cpu rounds, and what is
# validated on.
expect 0 run $options --out changed --run-epochs 1
cp -R data kept
expect 0 run $options --out changed --resume --run-epochs 0.5
grep -q 'bit for bit\|validat' "$work/err" && fail "a change is told where there was none: $(cat "$work/err")"
gone=$(find data/val -type f | sort | head -n 1)
total=$(find data/val -type f | wc -l)
rm "$gone"
expect 0 run $options --out changed --resume --run-epochs 0.5 --threads 2 --val-resize 9
grep -q "data has $((total - 1)) validation images, where it had $total: figures from here on" "$work/err" ||
    fail "validation images that are gone are not named: $(cat "$work/err")"
grep -q -e '--val-resize was 0 and is 9' "$work/err" || fail "another --val-resize is not named"
if [ "$(field changed/$REPORT device)" = cpu ]; then
    grep -q -e '--threads was 1 and is 2: the weights will not be, bit for bit' "$work/err" ||
        fail "other threads are not named: $(cat "$work/err")"
else
    grep -q -e '--threads' "$work/err" && fail "threads are named where they change nothing"
fi
# As many images, but others; and another set.
set -- $(find data/val -type f | sort | head -n 2)
cat "$2" "$2" >"$1"
expect 0 run $options --out changed --resume --run-epochs 0.25 --threads 2 --val-resize 9
grep -q "the validation images of data have changed" "$work/err" || fail "changed images are not named"
expect 0 run $options --val kept --val data --out changed --resume --threads 2 --val-resize 9
grep -q "validation is on kept, which it was not before" "$work/err" || fail "another set is not named"
rm -r data && mv kept data

# Training images must be those that it was begun with, by name, class and size, wherever they lie; files that were
# written again are told of.
expect 0 run $options --out images --run-epochs 1
set -- data/train/*
one=$(ls "$1" | head -n 1) other=$(ls "$2" | head -n 1)
mv "$1/$one" "$2/moved-$one" && mv "$2/$other" "$1/moved-$other"
expect 1 run $options --out images --resume
said 'checkpoint.safetensors: it was trained on other images: '
mv "$2/moved-$one" "$1/$one" && mv "$1/moved-$other" "$2/moved"
expect 1 run $options --out images --resume
said 'or begin anew with --restart'
mv "$2/moved" "$2/$other"
expect 0 run $options --out images --resume --run-epochs 0.5
! grep -q 'images' "$work/err" || fail "a change is told where there was none: $(cat "$work/err")"
touch "$1/$one"
expect 0 run $options --out images --resume --run-epochs 0.5
said 'the training images of data have the names, classes and sizes that they had, but other times'
if [ -n "${PYTHON3:-}" ]; then # a checkpoint of before there was a hash
    "$PYTHON3" - images/$CK <<'END'
import sys, zlib
path, key = sys.argv[1], b"training images"
data = open(path, "rb").read()
assert data.count(key) == 1
data = bytearray(data.replace(key, b"training imagez"))
at = data.index(b'"crc32":"') + 9
data[at:at + 8] = b"00000000"
data[at:at + 8] = b"%08x" % zlib.crc32(data)
open(path, "wb").write(data)
END
    expect 0 run $options --out images --resume --run-epochs 0.1
    said 'does not say which images it was trained on'
fi
expect 0 run $options --out images --resume
! grep -q 'images' "$work/err" || fail "said more than once: $(cat "$work/err")"
same whole/$CK images/$CK "after images were moved and came back"

# A finished run is left alone.
cp parts/$REPORT before
expect 0 run $options --out parts --resume
cmp before parts/$REPORT || fail "resuming a finished run changed its report"

# Other settings are another run; --restart gives the old one up.
expect 0 run $options --out other --run-epochs 1
expect 1 run $options --out other --resume --lr 0.5
grep -q 'lr was' "$work/err" || fail "the message doesn't name the setting that differs"
expect 1 run $options --out other --resume -e 4
make_images more 3 16 3 8
expect 1 run -d more --mixup 0.3 --grad-accum 2 --nesterov --ema 0.5 --out other --resume
expect 0 run $options --out other --restart
same whole/$CK other/$CK "a run begun anew"

# A damaged checkpoint is refused, and left as it is.
expect 0 run $options --out broken --run-epochs 1
size=$(wc -c <broken/$CK)
printf 'X' | dd of=broken/$CK bs=1 seek=$((size - 9)) conv=notrunc 2>/dev/null
cp broken/$CK before
expect 1 run $options --out broken --resume
grep -q checksum "$work/err" || fail "a damaged checkpoint is not called so"
cmp before broken/$CK || fail "a damaged checkpoint was touched"
head -c 1000 before >broken/$CK
expect 1 run $options --out broken --resume

# EPOCHS,keep: each stays, is a checkpoint like the last, and the room that they take is said once.
expect 0 run $options --out kept --checkpoint-every 1,keep
[ "$(grep -c "keeping kept/checkpoint-1.safetensors, .* MB, and each later checkpoint" err)" = 1 ] || fail "$(cat err)"
same kept/$CK "$(ls -t kept/checkpoint-*.safetensors | head -1)"
differ kept/$CK kept/checkpoint-1.safetensors "an earlier checkpoint"
cp kept/checkpoint-1.safetensors kept/$CK
expect 0 run $options --out kept --resume
same whole/$CK kept/$CK "a run that went on from a kept checkpoint"
expect 2 run $options --out kept --checkpoint-every 0,keep

# --checkpoint names the file; --checkpoint-every 0 leaves only the last.
expect 0 run $options --out named --checkpoint elsewhere.bin --checkpoint-every 0
same whole/$CK elsewhere.bin
[ ! -e named/$CK ] || fail "--checkpoint left a file at the default place too"
