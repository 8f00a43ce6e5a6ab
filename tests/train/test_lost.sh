# SPDX-License-Identifier: BSD-2-Clause
# Images that are lost during a run: an epoch that was validated on other images is not the best one, over --resume,
# too; the losses are counted in every epoch; too many of them end the run.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 4 16 16 8
# spoil FILE...: of the same size and time, so that the dataset is the same to all who look at it.
spoil() {
    for file in "$@"; do
        touch -r "$file" stamp
        printf 'X' | dd of="$file" conv=notrunc 2>/dev/null
        touch -r stamp "$file"
    done
}
# best REPORT: checks the best epoch; prints for each epoch whether it was validated on the images of the first.
best() {
    "${PYTHON3:-python3}" - "$1" <<'PY' || fail "$1"
import json, sys
run = json.load(open(sys.argv[1]))
val = [epoch["val"][0] for epoch in run["epochs"]]
print(*["same" if one["images_sum"] == val[0]["images_sum"] else one["images"] for one in val])
same = [one["top1"] if one["images_sum"] == val[0]["images_sum"] else -1 for one in val]
assert run["best"]["epoch"] == 1 + same.index(max(same)), (run["best"]["epoch"], [one["top1"] for one in val])
PY
}
# The images that the network does not know go, so that top-1 rises.
options="-d data -e 4 --lr 1e-9 --keep-best --out run"
expect 0 run $options --run-epochs 2
expect 0 run -d data -e 1 --lr 1e-9 --out probe
"${PYTHON3:-python3}" - probe/predictions-0.npy >wrong <<'PY' || skip "Python has no numpy (Debian: python3-numpy)"
import sys, numpy
rows = numpy.load(sys.argv[1])
print(*[f"data/{key.decode()}.ppm" for key in rows["key"][rows["predicted"] != rows["target"]][:8]])
PY
spoil $(cat wrong)
expect 0 run $options --resume
said "data: 8 of the epoch's 64 images cannot be read, and do not count"
said "epoch 3 was validated on 56 images of data that are not those of the epochs before"
said "epoch 4 was validated on 56 images of data that are not those of the epochs before"
said "8 images could not be used in this run; the report lists them as 'bad'"
is "$(best run/$REPORT)" "same same 56 56" "the best epoch"
expect 0 run $options --run-epochs 3 --restart # from now on these are the images
is "$(best run/$REPORT)" "same same same" "the best of a run that never had more"

# Lost to training: others take their places, up to a limit, which counts 100 images at least.
spoil data/train/c0/00[0-4].ppm data/train/c1/00[0-4].ppm
expect 0 run -d data -e 2 --out train
is "$(grep -c "data: 10 of the epoch's 64 images cannot be read, and others took their places" "$work/err")" 2 "epochs that say so"
spoil data/train/c1/005.ppm
expect 1 run -d data -e 2 --out too-many
said "at least 11 of 64 images cannot be used, above the limit of 10%"
said "--max-bad"
expect 0 run -d data -e 1 --max-bad 0.11 --out some
expect 1 run -d data -e 1 --max-bad 0 --out none
for ranks in 1 2; do # each rank finds fewer than the limit
    expect 1 run -d data -e 4 --ranks $ranks -b 4 --out ranks-$ranks
    said "images cannot be used, above the limit of 10%"
done
# All ranks find that out together, at the epoch's end: what it learnt is kept.
said 'a checkpoint of epoch 1 is written'
expect 1 run -d data -e 4 --ranks 2 -b 4 --out ranks-2 --resume
expect 0 run -d data -e 4 --ranks 2 -b 4 --out ranks-2 --resume --max-bad 0.2
expect 0 run -d data -e 4 --ranks 2 -b 4 --out whole --max-bad 0.2
same whole/$CK ranks-2/$CK "a run that too many bad images had ended"
spoil data/val/c[01]/00[0-7].ppm data/val/c2/00[0-7].ppm
expect 1 run -d data -e 2 --ranks 2 -b 4 --max-bad 0.2 --out in-validation
said "data: "
said 'a checkpoint of epoch 1 is written'

# While it runs.
make_images going 4 16 16 8
run -d going -e 3000 --out going-out >going.out 2>going.err &
process=$!
until_checkpoint going-out going.err
rm going/val/c[012]/00[0-4].ppm
wait $process
is $? 1 "the status of a run whose images vanish"
# Two workers may find one too many at once.
grep -q "at least 1[1-9] of 64 images cannot be used" going.err || fail "$(cat going.err)"
