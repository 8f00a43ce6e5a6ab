#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Clips stay clips: copied and recompressed in folders, GulpIO and tar, shuffled, and with frames that cannot be had.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
for split in train val; do
    for class in run walk; do
        for clip in 1 2 3; do
            frame=0
            while [ $frame -lt $((clip + 1)) ]; do
                frame=$((frame + 1))
                picture "$work/src/$split/$class/c$clip/$frame.ppm" $((16 + 8 * clip)) 16 "$((frame + 10 * clip))"
            done
        done
    done
done
frames=36
clips() { # PLACE: what is in it
    expect 0 dl2-load check "$1"
    said "train 6 clips of 2 to 4 frames in 2 classes, val 6"
    grep -q "12 clips, $frames frames, 0 bad" "$work/out" || fail "$1: $(cat "$work/out")"
}
digest() { dl2-load bench --quiet --val --split all --frames 3 --frame-step 2 --image-size 20 --digest "$1" | sed -n 's/^digest //p'; }
same_frames() { # FOLDER: those of the source, numbered from 0 on
    (cd "$1" && find . -name '*.ppm') | while read -r name; do
        base=${name##*/} && number=${base%.ppm} && cmp "$1/$name" "$work/src/${name%/*}/$((1$number - 99999)).ppm" || exit 1
    done || fail "$1: other frames"
}
clips "$work/src"
expect 0 dl2-transcode identify "$work/src"
is "$(grep -E '^(clips|images)' "$work/out" | tr '\t\n' '  ')" "clips 12 images $frames " 'identity'
wanted=$(digest "$work/src")
[ -n "$wanted" ] || fail 'no digest'

# ---- Copies, from each container to each
for container in gulp tar folder; do
    expect 0 dl2-transcode --quiet copy --container=$container "$work/src" "$work/$container"
    grep -q ": $frames images,.* 0 failed" "$work/out" || fail "$(cat "$work/out")"
    clips "$work/$container"
    is "$(digest "$work/$container")" "$wanted" "$container: pixels"
done
same_frames "$work/folder"
for from in gulp tar; do
    for to in gulp tar folder; do
        expect 0 dl2-transcode --quiet copy --container=$to "$work/$from" "$work/$from-$to"
        diff -r -x 'dl2-*' -x '.dl2-*' "$work/$to" "$work/$from-$to" >&2 || fail "$from to $to"
        expect 0 dl2-transcode --quiet copy --container=$to "$work/$from" "$work/$from-$to"
        grep -q ' 0 written' "$work/out" || fail "$from to $to was copied again"
    done
done
# The order is of clips, and frames keep theirs.
expect 0 dl2-transcode --quiet copy --container=gulp --shuffle=5 "$work/tar" "$work/mixed"
clips "$work/mixed"
cmp -s "$work/gulp/train/data_0.gulp" "$work/mixed/train/data_0.gulp" && fail 'not shuffled'
expect 0 dl2-transcode --quiet copy "$work/mixed" "$work/unmixed"
same_frames "$work/unmixed"
# Without clips, each frame is an image; the same DEST is made again where that changes.
expect 0 dl2-transcode --quiet copy --container=gulp --samples images "$work/src" "$work/apart"
expect 0 dl2-load check --quiet "$work/apart"
grep -q ": $frames images, 0 bad" "$work/out" || fail 'images'
expect 0 dl2-transcode --quiet copy --container=gulp "$work/src" "$work/apart"
clips "$work/apart"
expect 0 dl2-transcode --quiet copy --container=gulp --samples images "$work/src" "$work/apart"
grep -q " $frames written" "$work/out" || fail 'clips were kept where images were asked for'

# ---- Variants
for container in folder gulp tar; do
    expect 0 dl2-transcode --quiet -c jpeg -q 60,90 --container=$container "$work/src" "$work/v-$container"
    clips "$work/v-$container/jpeg-60"
    expect 0 dl2-transcode --quiet -c jpeg -q 60,90 --container=$container "$work/src" "$work/v-$container"
    is "$(awk '$1 == "jpeg-60" { print $3 }' "$work/out")" 0 "$container: made again"
    expect 0 dl2-quality --quiet --json="$work/scores.json" "$work/src" "$work/v-$container/jpeg-60"
    grep -q '"missing": \[\]' "$work/scores.json" || fail "$container: frames have other keys"
done
is "$(digest "$work/v-gulp/jpeg-90")" "$(digest "$work/v-folder/jpeg-90")" 'pixels of variants'
expect 0 dl2-transcode --quiet -c jpeg -q 60 --container=gulp --samples images "$work/src" "$work/v-gulp"
is "$(awk '$1 == "jpeg-60" { print $3 }' "$work/out")" $frames 'clips were kept where images were asked for'
expect 1 dl2-quality --quiet "$work/src" "$work/v-gulp/jpeg-60"
said 'only one of it and the reference is read as clips'

# ---- Of large frames only the rows of the crop are read, and the pixels are the same
for clip in run/1 run/2 walk/3; do
    for frame in 0 1; do picture "$work/large/$clip/$frame.ppm" 400 300 "$frame${clip#*/}"; done
done
expect 0 dl2-transcode --quiet -c jpeg -q 90 --container=gulp "$work/large" "$work/rows"
for how in --io=direct --io=threads '--io=direct --whole'; do
    dl2-load bench --quiet --split all --frames 2 --image-size 32 --crop-area 0.05,0.1 -e 1 --digest --json="$work/rows.json" $how \
        "$work/rows/jpeg-90" >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
    echo "$how $(sed -n 's/^digest //p' "$work/out") $(sed -n 's/.*"bytes_read": \([0-9]*\).*/\1/p' "$work/rows.json" | head -1)"
done >"$work/rows.txt"
is "$(awk '{ print $(NF - 1) }' "$work/rows.txt" | sort -u | wc -l)" 1 "pixels of rows: $(cat "$work/rows.txt")"
# (Reading ahead also reads small gaps between them.)
awk '/whole/ { whole = $NF; next } /direct/ { rows = $NF } END { exit !(rows > 0 && rows < 0.8 * whole) }' "$work/rows.txt" ||
    fail "more than the rows were read: $(cat "$work/rows.txt")"

# ---- A clip that lacks a frame is left out whole, and said
cp -R "$work/src" "$work/bad"
echo 'P6 not an image' >"$work/bad/train/walk/c2/2.ppm"
for container in gulp tar; do
    for run in first second; do
        expect 1 dl2-transcode --quiet -c jpeg -q 60 --container=$container "$work/bad" "$work/bad-$container"
        said 'train/walk/c2/2.ppm'
        expect 0 dl2-load check "$work/bad-$container/jpeg-60"
        said 'train 5 clips of 2 to 4 frames in 2 classes, val 6'
    done
done
rm "$work/bad/train/walk/c2/2.ppm"
ln -s /nonexistent "$work/bad/train/walk/c2/2.ppm"
expect 0 dl2-load check "$work/bad"
said 'if each such folder is a clip, say --samples clips'
expect 1 dl2-load check --samples clips --split nonsense "$work/bad"

# ---- Parts and ranks may part a clip, and pack it whole
for container in gulp tar; do
    expect 0 dl2-transcode --quiet -j 1 -c jpeg -q 60 --container=$container "$work/src" "$work/one-$container"
    for part in 2/3 1/3 3/3; do
        expect 0 dl2-transcode --quiet -j 1 -c jpeg -q 60 --container=$container --part $part "$work/src" "$work/parts-$container"
    done
    diff -r -x 'dl2-variant.*' -x dl2-index.bin "$work/one-$container/jpeg-60" "$work/parts-$container/jpeg-60" ||
        fail "$container: parts make other clips"
done

# ---- What lies beside a clip's first frame is the item's; what lies beside others is left out, and said
cp -R "$work/src" "$work/beside"
echo '{"caption": "a run"}' | tee "$work/beside/train/run/c1/1.json" >"$work/beside/train/run/c1/2.json"
expect 0 dl2-transcode --quiet copy --container=gulp "$work/beside" "$work/beside-gulp"
said 'left out beside frames: 1 .json'
grep -q '"run/c1": .*"caption": "a run"' "$work/beside-gulp/train/meta_0.gmeta" || fail 'no metadata'
expect 0 dl2-transcode --quiet copy "$work/beside-gulp" "$work/beside-folder"
grep -q '"caption": "a run"' "$work/beside-folder/train/run/c1/00000.json" || fail 'no metadata in a folder'
expect 0 dl2-transcode --quiet -c jpeg -q 60 --container=tar "$work/beside" "$work/beside-tar"
said 'left out beside frames: 1 .json'

# ---- What has no use for clips says so
expect 1 dl2-train --quiet --data "$work/gulp" --epochs 1 --image-size 16 --out "$work/run"
said 'it holds clips, and resnet10 sees single images'
expect 1 dl2-load bench --quiet "$work/gulp"
said 'holds clips: set frames'
expect 1 dl2-load bench --quiet --frames 2 --samples images "$work/gulp"
said 'the dataset holds images'
expect 1 dl2-load analyze --quiet --device-rate 100 --frames 2 "$work/gulp"
said 'analyze predicts the loading of images'
expect 2 dl2-load bench --quiet --frames 2 --cache-decoded 4M "$work/gulp"
said '--cache-decoded excludes --frames'
expect 2 dl2-load bench --quiet --frame-step 2 "$work/gulp"
said '--frame-step needs --frames'
expect 0 dl2-load bench --quiet --frames 3 --json="$work/bench.json" "$work/gulp"
grep -q 'frames/s a core' "$work/out" || fail 'no frames a second'
grep -q '"short_clips": 6' "$work/bench.json" || fail "$(cat "$work/bench.json")"
