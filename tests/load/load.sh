#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-load: the same batches for every number of workers, its report, bad images, wrong usage.
. "$srcdir/tests/lib.sh"

for class in aster rose; do
    for n in 01 02 03 04 05 06 07 08 09 10; do
        picture "$work/flowers/train/$class/$n.ppm" $((20 + ${n#0} * 5)) $((90 - ${n#0} * 7)) $n
    done
    picture "$work/flowers/val/$class/01.ppm" 40 30 1
done
echo 'not an image' >"$work/flowers/train/rose/README.txt"

for mode in --train --val; do
    first=
    for jobs in 1 2 8; do
        expect 0 dl2-load bench "$work/flowers" $mode --split all -j $jobs --batch 7 --image-size 24 \
            --epochs 2 --seed 3 --digest --quiet
        [ ! -s "$work/err" ] || fail "--quiet, but: $(cat "$work/err")"
        digest=$(sed -n 's/^digest //p' "$work/out")
        [ -n "$digest" ] || fail "no digest"
        [ "$digest" = "${first:=$digest}" ] || fail "$mode: $digest with $jobs workers, $first with one"
    done
done
expect 0 dl2-load bench "$work/flowers" --split all -b 7 -i 24 -e 2 --seed 4 --digest --quiet
[ "$(sed -n 's/^digest //p' "$work/out")" != "$digest" ] || fail "another seed gives the same batches"

expect 0 dl2-load bench "$work/flowers" -b 8 -i 16 -e 2 -j 2 --json "$work/load.json"
grep -q '^  decode .* us an image$' "$work/out" || fail "no table of stages"
for field in '"schema": "dl2-load/1"' '"variant": "flowers"' '"images": 20' '"epochs": 2' '"batch": 8' \
    '"image_size": 16' '"workers": 2' '"bad": \[\]' '"images_per_core_second": [0-9]' '"p99": [0-9.e-]*' '"max": [0-9]' '"transform": [0-9]'; do
    grep -q "$field" "$work/load.json" || fail "no $field in $(cat "$work/load.json")"
done
expect 0 dl2-load bench "$work/flowers" --val -e 1 --name other --json "$work/load.json"
grep -q '"variant": "other"' "$work/load.json" || fail "--name is not heard"
grep -q '"images": 2,' "$work/load.json" || fail "--val loads something else than val/"

expect 0 dl2-load check "$work/flowers"
grep -q ': 22 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
head -c 100 "$work/flowers/train/rose/04.ppm" >"$work/short" && mv "$work/short" "$work/flowers/train/rose/04.ppm"
expect 1 dl2-load check "$work/flowers" -j 3
grep -q 'train/rose/04.ppm: decode: ' "$work/err" || fail "check does not name the bad image"
grep -q ': 22 images, 1 bad' "$work/out" || fail "$(cat "$work/out")"
expect 1 dl2-load bench "$work/flowers" -e 2 -i 16 --json "$work/load.json"
[ "$(grep -c 'train/rose/04.ppm: decode: ' "$work/err")" = 1 ] || fail "a bad image is not named once"
grep -q 'train/rose/04.ppm: decode: ' "$work/load.json" || fail "the report does not name the bad image"
said "1 of 20 images could not be used"

grep -q '^With more workers' "$work/out" && fail "a scaling table that nobody asked for"
expect 1 dl2-load bench "$work/flowers" -e 2 -i 16 --max-bad 0
said "at least 1 of 20 images cannot be used, above the limit of 0%"
[ ! -s "$work/out" ] || fail "a rate of images that are too few: $(cat "$work/out")"
expect 2 dl2-load bench "$work/flowers" --max-bad 2

# check's own report, written also where something is bad
expect 1 dl2-load check "$work/flowers" --json "$work/check.json"
for field in '"schema": "dl2-load-check/1"' '"images": 22' 'rose/04.ppm: decode: '; do
    grep -q "$field" "$work/check.json" || fail "no $field in $(cat "$work/check.json")"
done
expect 1 dl2-load bench "$work/flowers" -e 1 --on-bad stop --batch 4
grep -q 'train/rose/04.ppm: decode: ' "$work/err" || fail "--on-bad=stop does not name the image"
rm "$work/flowers/train/rose/04.ppm"

# each number of workers has its row, the first is what others are held against
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --scaling 1,3 --json "$work/load.json" --cold
grep -Eq '^ +1 +[0-9]+ +[0-9]+ +100.0%$' "$work/out" || fail "no row of one worker: $(cat "$work/out")"
grep -Eq '^ +3 +[0-9]+ +[0-9]+ +[0-9.]+%$' "$work/out" || fail "no row of three workers"
for field in '"efficiency": 1.0' '"workers": 3' '"cold": true' '"peak_rss_bytes": [1-9]'; do
    grep -q "$field" "$work/load.json" || fail "no $field in $(cat "$work/load.json")"
done
# an epoch that is ended early, and what each has read: all files in a whole one
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --json "$work/load.json"
bytes=$(cat "$work"/flowers/train/*/*.ppm | wc -c)
[ "$(grep -c "\"bytes_read\": $bytes,\$" "$work/load.json")" = 2 ] || fail "not $bytes bytes in each epoch: $(cat "$work/load.json")"
grep -q '"disk_bytes": [0-9]' "$work/load.json" || fail "nothing of the disk"
expect 0 dl2-load bench "$work/flowers" -i 16 -b 4 --measure 0.05 --json "$work/load.json"
sed -n '/"per_epoch"/,/\]/s/^      "seconds": \([0-9.e-]*\),$/\1/p' "$work/load.json" |
    awk 'NR > 1 { if (sum >= 0.05) late = 1; sum += $1 } END { exit !(sum >= 0.05 && !late) }' ||
    fail "not 0.05 s after the first epoch: $(cat "$work/load.json")"
expect 0 dl2-load bench "$work/flowers" -i 2048 -b 1 -j 1 --measure 0.01 --json "$work/load.json"
for images in $(sed -n 's/^      "images": \([0-9]*\).*/\1/p' "$work/load.json"); do
    [ "$images" -lt 19 ] || fail "an epoch of 0.01 s has all images"
done
grep -q '"measure": 0.01' "$work/load.json" || fail "the report has no --measure"
# so many samples take longer than that to shuffle: a batch comes all the same
mkdir "$work/many"
{ printf '\0\0\10\3\0\036\204\200\0\0\0\1\0\0\0\1'; head -c 2000000 /dev/zero; } >"$work/many/train-images-idx3-ubyte"
{ printf '\0\0\10\1\0\036\204\200'; head -c 2000000 /dev/zero; } >"$work/many/train-labels-idx1-ubyte"
expect 0 dl2-load bench "$work/many" --quiet -i 2048 -b 1 -j 1 --measure 0.01 --json "$work/load.json"
rm -r "$work/many"
grep -q '^      "images": 0,' "$work/load.json" && fail "nothing was loaded in 0.01 s"
# what is measured doesn't change what comes out
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest -j 2 --scaling 1,2
digest=$(sed -n 's/^digest //p' "$work/out")
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --cold --depth 5
[ "$(sed -n 's/^digest //p' "$work/out")" = "$digest" ] || fail "--scaling, --cold or --depth changes the batches"
for same in "--io direct" "--io threads --ahead 2" "--cache 2K" "--cache 1M" "--cache-decoded 20K" \
    "--cache-decoded 1M --cache 4K --cold"; do
    expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest $same
    [ "$(sed -n 's/^digest //p' "$work/out")" = "$digest" ] || fail "$same changes the batches"
done
# io_uring may be forbidden here; then that is said
if dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --io uring >"$work/out" 2>"$work/err"; then
    [ "$(sed -n 's/^digest //p' "$work/out")" = "$digest" ] || fail "--io uring changes the batches"
else
    grep -q . "$work/err" || fail "--io uring fails without a word"
fi
# a cache that holds all is all that the second epoch reads from
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 --cache 1M --json "$work/load.json"
grep -q '"encoded_hits": 19,' "$work/load.json" || fail "--cache: $(grep hits "$work/load.json")"
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 --cache-decoded 10M --json "$work/load.json"
grep -q '"decoded_hits": 19,' "$work/load.json" || fail "--cache-decoded: $(grep hits "$work/load.json")"
# which images an epoch has: as many as are asked for, and others
images() { sed -n 's/^      "images": \([0-9]*\).*/\1/p' "$work/load.json"; }
(cd "$work/flowers/train" && find . -type f -name '*.*' ! -name '.*') | sed 's,^\.,train,; s,\.[^.]*$,,' |
    awk '{ printf "%s\t%g\n", $0, NR % 3 }' >"$work/weights"
sampled() { expect 0 dl2-load bench "$work/flowers" -e 1 -i 16 -b 4 --digest "$@" --json "$work/load.json"; sed -n 's/^digest //p' "$work/out"; }
plain=$(sampled)
is "$(sampled --repeats 1)" "$plain" "--repeats 1"
for choice in "7 --num-samples 7" "57 --repeats 3" "19 --balanced" "30 --balanced --num-samples 30" "19 --sample-weights $work/weights" "40 --sample-weights $work/weights --num-samples 40"; do
    other=$(sampled ${choice#* })
    is "$(images)" "${choice%% *}" "images with ${choice#* }"
    [ "$other" != "$plain" ] || fail "${choice#* } changes nothing"
    is "$(sampled ${choice#* } -j 1)" "$other" "${choice#* } with one worker"
done
grep -q '"sample-weights": "weights, XXH3 [0-9a-f]\{16\}"' "$work/load.json" && grep -q '"num-samples": 40' "$work/load.json" ||
    fail "the report has no --sample-weights: $(grep sample-weights "$work/load.json")"
sed '1d' "$work/weights" >"$work/short"
sed '3s/.*/train 1 x/' "$work/weights" >"$work/odd"
sed '3p' "$work/weights" >"$work/twice"
sed '4s/[0-9]$/-1/' "$work/weights" >"$work/below"
printf 'a\0b 1\n' >"$work/zero"
: >"$work/empty"
for wrong in "short: no weight for train/" "odd: line 3 is not KEY WEIGHT" "twice: lines 3 and 4 are both of train/" \
    "below: line 4 is not" "zero: it is not a text: byte 2 is zero" "empty: no weight for" "none: No such file"; do
    expect 1 dl2-load bench "$work/flowers" --sample-weights "$work/${wrong%%:*}"
    said "${wrong#*: }"
done
expect 1 dl2-load bench "$work/flowers" --num-samples 20
said 'draws'
for wrong in "--balanced --sample-weights $work/weights" "--repeats 2 --balanced" "--shuffle-chunk 4 --sample-weights $work/weights"; do
    expect 2 dl2-load bench "$work/flowers" $wrong
    said "dl2-load: ${wrong%% *} excludes --"
done

# the rest of the order: every image once, in one part or the other
for order in "--shuffle-chunk 4 --shuffle-window 2" "--batching completion"; do
    expect 0 dl2-load bench "$work/flowers" -e 1 -i 16 -b 4 $order --json "$work/load.json"
    [ "$(sed -n 's/^      "images": \([0-9]*\).*/\1/p' "$work/load.json")" = 19 ] || fail "$order"
done
for rank in 0 1 2; do
    expect 0 dl2-load bench "$work/flowers" -e 1 -i 16 -b 4 --val --split train --rank $rank --world 3 --json "$work/load.json"
    sed -n 's/^      "images": \([0-9]*\).*/\1/p' "$work/load.json"
done >"$work/ranks"
[ "$(awk '{ n += $1 } END { print n }' "$work/ranks")" = 19 ] || fail "ranks had $(tr '\n' ' ' <"$work/ranks")"

expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --crop-area 0.5,0.6
[ "$(sed -n 's/^digest //p' "$work/out")" != "$digest" ] || fail "--crop-area changes nothing"

# each filter makes other pixels, the same for every number of workers, and is in the report
for filter in bilinear nearest box bicubic lanczos; do
    expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --interpolation $filter --scaling 1,2 --json "$work/load.json"
    sed -n 's/^digest //p' "$work/out" >>"$work/filters"
    grep -q "\"interpolation\": \"$filter\"" "$work/load.json" || fail "the report has no --interpolation $filter"
done
[ "$(sort -u "$work/filters" | wc -l)" = 5 ] || fail "filters with the same pixels: $(cat "$work/filters")"
[ "$(head -n 1 "$work/filters")" = "$digest" ] || fail "the default is not bilinear"

# an augmentation: other batches, the same for every number of workers and wherever the images come from
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --augment randaugment,erase:p=0.9 -j 1
augmented=$(sed -n 's/^digest //p' "$work/out")
[ "$augmented" != "$digest" ] || fail "--augment changes nothing"
for same in "-j 3" "-j 2 --depth 5 --cache 1M" "--scaling 1,2"; do
    expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --augment erase:p=0.9 --json "$work/load.json" \
        --augment randaugment:n=2:m=9,erase:p=0.9 $same
    [ "$(sed -n 's/^digest //p' "$work/out")" = "$augmented" ] || fail "with --augment, $same changes the batches"
done
grep -q '"augment": "randaugment:p=1:n=2:m=9:bins=31:fill=0,erase:p=0.9:area-min=0.02:' "$work/load.json" || fail "the report has no --augment"
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16 -b 4 --digest --augment randaugment,erase:p=0.9 --seed 1
[ "$(sed -n 's/^digest //p' "$work/out")" != "$augmented" ] || fail "--seed changes nothing"

# a size that is not square, HEIGHTxWIDTH; an equal pair is a square
expect 0 dl2-load bench "$work/flowers" -e 2 -i 16x16 -b 4 --digest
[ "$(sed -n 's/^digest //p' "$work/out")" = "$digest" ] || fail "16x16 is not 16"
for mode in --train "--val --split train" "--val --split train --val-crop squash"; do
    expect 0 dl2-load bench "$work/flowers" -e 1 -i 12x24 -b 4 --digest $mode --json "$work/load.json"
    grep -q 'images for [a-z]*, 12x24x3 ' "$work/out" || fail "12x24 is not printed"
    grep -q '"image_size": "12x24"' "$work/load.json" || fail "12x24 is not in the report"
    sed -n 's/^digest //p' "$work/out"
    expect 0 dl2-load bench "$work/flowers" -e 1 -i 12x24 -b 4 -j 3 --cache-decoded 10M --digest $mode
    sed -n 's/^digest //p' "$work/out"
done >"$work/digests"
is "$(uniq "$work/digests" | wc -l)" 3 'digests of three modes, each with two settings of the loader'
grep -q '"val_crop": "squash"' "$work/load.json" || fail "the report has no val_crop"

# a part of the training images
expect 0 dl2-load bench "$work/flowers" --subset 50% -e 1 -i 16 --json "$work/load.json" --quiet
is "$(sed -n 's/^  "images": \([0-9]*\).*/\1/p' "$work/load.json")" 10 'images of a subset'
grep -q 'a subset: 10 of the 19 images for training' "$work/err" || fail "--subset: $(cat "$work/err")"

# a packed dataset: the same batches as the folder's, and a damaged sample in it is named
if command -v tar >/dev/null; then
    (cd "$work/flowers" && tar -cf "$work/packed.tar" train/*/*.ppm val/*/*.ppm) || exit 99
    expect 0 dl2-load check "$work/packed.tar"
    expect 0 dl2-load bench "$work/packed.tar" -e 1 -i 16 -b 4 --cold
    # a byte of a pixel changes no header: only the check sum tells
    expect 0 dl2-transcode --quiet copy --container=tar "$work/flowers" "$work/shards"
    expect 0 dl2-load check "$work/shards"
    for shard in "$work"/shards/train/*.tar; do
        printf '\001' | dd of="$shard" bs=1 seek=700 conv=notrunc 2>/dev/null || exit 99
        break
    done
    expect 1 dl2-load check "$work/shards"
    [ "$(grep -c 'train/.*check sum' "$work/err")" = 1 ] || fail "the changed sample: $(cat "$work/err")"
    expect 1 dl2-load bench "$work/shards" -e 1 -i 16 -b 4
    grep -q 'check sum' "$work/err" || fail "bench does not name the changed sample: $(cat "$work/err")"

    (cd "$work/flowers" && head -c 60 train/aster/02.ppm >short && mv short train/aster/02.ppm &&
        tar -cf "$work/packed.tar" train/*/*.ppm val/*/*.ppm) || exit 99
    expect 1 dl2-load check "$work/packed.tar"
    [ "$(grep -c 'packed.tar.*: decode: ' "$work/err")" = 1 ] || fail "the damaged sample: $(cat "$work/err")"
    grep -q ', 1 bad$' "$work/out" || fail "$(cat "$work/out")"
fi

# several datasets as one, by the code and the options of dl2-train: shuffled together, resumable, exact shares
for n in 1 2 3 4 5 6; do
    picture "$work/garden/train/aster/$n.ppm" 30 20 $n
    picture "$work/garden/train/zinnia/$n.ppm" 20 30 $n
done
joined() { expect 0 dl2-load bench "$@" -e 2 -i 16 -b 4 --digest --json "$work/load.json"; sed -n 's/^digest //p' "$work/out"; }
plain=$(joined "$work/garden" "$work/shelf" 2>/dev/null) && fail "a missing dataset is joined"
cp -r "$work/garden" "$work/shelf"
rm "$work/shelf/train/aster/1.ppm"
plain=$(joined "$work/garden" "$work/shelf")
said "$work/garden, $work/shelf: 23 images in 2 classes: 12 of $work/garden, 11 of $work/shelf"
is "$(images | tr '\n' ' ')" "23 23 " "images of several datasets"
grep -q '"variant": "garden+shelf"' "$work/load.json" || fail "the name of several datasets"
is "$(joined "$work/garden" "$work/shelf" -j 1)" "$plain" "several datasets with one worker"
[ "$(joined "$work/shelf" "$work/garden")" != "$plain" ] || fail "the order of datasets does not count"
shared=$(joined "$work/garden" "$work/shelf" --shares 1,3 --num-samples 16)
is "$(images | tr '\n' ' ')" "16 16 " "images of shares"
is "$(joined "$work/garden" "$work/shelf" --shares 1,3 --num-samples 16 -j 1)" "$shared" "shares with one worker"
[ "$shared" != "$plain" ] || fail "--shares changes nothing"
said "12 of an epoch's 16 samples are of $work/shelf, which has 11"
grep -q '"shares": \[' "$work/load.json" || fail "the report has no shares"
expect 2 dl2-load bench "$work/garden" --shares 1,3
said "--shares needs several DIRs"
expect 2 dl2-load check "$work/garden" "$work/shelf" --shares 1,3
expect 0 dl2-load check "$work/garden" "$work/shelf" --json "$work/check.json"
grep -q ', .*: 23 images, 0 bad$' "$work/out" || fail "check of several datasets: $(cat "$work/out")"
echo P6 >"$work/shelf/train/zinnia/2.ppm"
expect 1 dl2-load check "$work/garden" "$work/shelf"
said "$work/shelf/train/zinnia/2.ppm: decode: "
expect 1 dl2-load check "$work/garden" "$work/garden"
said "are the same dataset"
# joined, two classes of one name would be one
mkdir "$work/twins" && cp "$work/garden/train/aster/1.ppm" "$work/twins/a.ppm" && cp "$work/garden/train/aster/2.ppm" "$work/twins/b.ppm"
printf 0 >"$work/twins/a.cls" && printf 1 >"$work/twins/b.cls" && printf 'crane\ncrane\n' >"$work/twins/classes.txt"
(cd "$work/twins" && tar -cf train-0.tar a.ppm a.cls b.ppm b.cls && rm ./*.ppm ./*.cls) || exit 99
expect 0 dl2-load check "$work/twins"
expect 1 dl2-load check "$work/garden" "$work/twins"
said "two classes of $work/twins are called 'crane', and class lists go together by name"

expect 1 dl2-load bench "$work/absent"
grep -q absent "$work/err" || fail "the missing folder is not named"
expect 1 dl2-load bench "$work/flowers" --drop-last -b 64
expect 2 dl2-load bench
expect 2 dl2-load
grep -q 'the command comes first: one of bench, check, analyze' "$work/err" || fail "too few: $(cat "$work/err")"
expect 1 dl2-load bench "$work/flowers" --json "$work"
{ [ ! -s "$work/out" ] && grep -q 'is a folder' "$work/err"; } || fail "measured before it looked where to write"
expect 2 dl2-load fill "$work/flowers"
expect 1 dl2-load bench "$work/flowers" --split trial
grep -q "no split is called 'trial', but train" "$work/err" || fail "no such split: $(cat "$work/err")"
expect 2 dl2-load bench "$work/flowers" --batch 0
for wrong in "--cache 5X" "--io tape" "--dtype int8" "--layout hwcn" "--batching random" "--on-bad ask" \
    "--image-size 0" "--image-size 8x" "--image-size x8" "--image-size 8x0" "--image-size 8x8x3x1" "--image-size 8x70000" "--val-crop top" \
    "--crop-area 0.5" "--crop-area 0.5,0.4" "--scaling 1,x" "--rank 1" "--shuffle-window 4" "--device gpu" \
    "--augment cutout" "--augment vflip:p=2" "--interpolation hamming" "--decode tpu" "--gpu-input raw" "--gpu-input spliced" "--gpu-engine cores" "--device cuda:1"; do
    expect 2 dl2-load bench "$work/flowers" $wrong
    grep -q -e "${wrong%% *}" "$work/err" || fail "$wrong: $(cat "$work/err")"
done
# options that would have no effect
for wrong in "--shuffle-chunk 4 --val" "--crop-area 0.5,1 --val" "--augment vflip --val" "--resize 80" "--val-crop squash" "--resize 80 --val --val-crop squash" "--balanced --val" "--sample-weights x --val" "--num-samples 3 --val" "--repeats 2 --val" "--ahead 4 --io direct" "--device cuda" \
    "--subset-by name" "--subset-seed 1" "--subset-seed 1 --subset 50% --subset-by name" "--seconds 2" "--memory 1G" "--device-kind separate" "--quality x" "--within 3"; do
    expect 2 dl2-load bench "$work/flowers" $wrong
    grep -q -e "dl2-load: ${wrong%% *} " "$work/err" || fail "bench $wrong: $(cat "$work/err")"
done
for wrong in "--epochs 2" "--measure 2" --cold --digest "--scaling 1" "--name x" "--image-size 32" --val --gray "--dtype float32" "--batch 3" \
    "--seed 2" "--cache 1M" "--on-bad stop" "--depth 4" --whole "--rank 0"; do
    expect 2 dl2-load check "$work/flowers" $wrong
    grep -q -e "dl2-load: ${wrong%% *} " "$work/err" || fail "check $wrong: $(cat "$work/err")"
done
for wrong in "--epochs 2" --cold "--name x" --balanced; do
    expect 2 dl2-load analyze "$work/flowers" --device-rate 5 $wrong
    grep -q -e "dl2-load: ${wrong%% *} " "$work/err" || fail "analyze $wrong: $(cat "$work/err")"
done
for wrong in "--image-size 32" "--batch 3" --gray "--crop-area 0.5,1" "--augment vflip" "--interpolation box"; do
    expect 2 dl2-load analyze "$work/flowers" --device-report x $wrong
    grep -q -e "dl2-load: ${wrong%% *} is taken from --device-report" "$work/err" || fail "analyze $wrong: $(cat "$work/err")"
done
for option in val-crop dtype layout interpolation on-bad batching io device-kind decode gpu-input gpu-engine; do
    case $option in device-kind) command=analyze ;; *) command=bench ;; esac
    explained $option dl2-load $command "$work/flowers"
done
# decoding on a card: not built, no card here, or all as without
dl2-load bench "$work/flowers" --decode gpu -e 1 -i 16 -b 4 >"$work/out" 2>"$work/err"
case $? in
0) grep -q '^On the card' "$work/out" || fail "the card decoded nothing: $(cat "$work/out")" ;;
1) grep -q 'decoding on the card (decode .cpu. needs none): ' "$work/err" || fail "no card: $(cat "$work/err")" ;;
2) grep -q 'configure --with-cuda --with-nvjpeg' "$work/err" || fail "not built: $(cat "$work/err")" ;;
*) fail "--decode gpu: $(cat "$work/err")" ;;
esac
if ! grep -q configure "$work/err"; then
    expect 2 dl2-load bench "$work/flowers" --decode gpu --dtype float32
    expect 2 dl2-load bench "$work/flowers" --decode gpu --augment vflip
    expect 2 dl2-load bench "$work/flowers" --decode gpu --interpolation bicubic
    expect 2 dl2-load check "$work/flowers" --decode gpu
fi
expect 2 dl2-load analyze "$work/flowers"
expect 2 dl2-load analyze "$work/flowers" --device-rate 5 --device-report x
expect 0 dl2-load --version
grep -q zlib "$work/out" || fail "--version does not list the libraries"
exit 0
