#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# GulpIO and WebDataset open what dl2 wrote, and dl2 opens what they wrote. They are not in Debian:
#   python3 -m venv V && V/bin/pip install gulpio2 webdataset && DL2_PEER_PYTHON=V/bin/python make check
. "$srcdir/tests/lib.sh"
[ -n "${DL2_PEER_PYTHON:-}" ] || skip 'DL2_PEER_PYTHON names no Python with gulpio2 and webdataset (PyPI)'
"$DL2_PEER_PYTHON" -c 'import gulpio2, webdataset' 2>/dev/null || skip "$DL2_PEER_PYTHON lacks gulpio2 or webdataset"
need convert imagemagick
i=0
for name in train/rose/1 train/rose/x.y train/rose/100% "train/two words/3" train/Blüte/4 val/rose/5; do
    i=$((i + 1))
    mkdir -p "$work/src/$(dirname "$name")"
    convert -size "$((20 + i))x10" "gradient:red-rgb($((i * 40)),0,0)" "$work/src/$name.jpg" || exit 99
done
echo 'beside the last image' | tee "$work/src/train/Blüte/4.txt" "$work/src/train/two words/3.txt" >"$work/src/val/rose/5.txt"
for container in gulp tar; do
    expect 0 dl2-transcode --quiet copy --container=$container "$work/src" "$work/$container"
done
expect 0 "$DL2_PEER_PYTHON" "$srcdir/tests/dataset/peers.py" read "$work/src" "$work/gulp" "$work/tar"
expect 0 "$DL2_PEER_PYTHON" "$srcdir/tests/dataset/peers.py" write "$work/theirs"
# Unpacked by dl2, their samples are the files that they say they wrote.
for container in gulp tar; do
    expect 0 dl2-transcode --quiet copy "$work/theirs/$container" "$work/un-$container"
    diff -r -x '.dl2-*' "$work/un-$container" "$work/theirs/$container-files" || fail "$container: other samples"
done
# Clips, with their frames.
for class in run walk; do
    for clip in 1 2 3; do
        mkdir -p "$work/frames/$class/c$clip"
        for frame in 1 2 3 4 5 6 7 8 9 10 11; do
            convert -size 20x10 "gradient:red-rgb($((frame * 20)),$((clip * 60)),0)" "$work/frames/$class/c$clip/$frame.jpg" || exit 99
        done
    done
done
expect 0 dl2-transcode --quiet copy --container=gulp "$work/frames" "$work/packed"
expect 0 "$DL2_PEER_PYTHON" "$srcdir/tests/dataset/peers.py" clips "$work/frames" "$work/packed"
expect 0 dl2-load check "$work/theirs/clips"
said '6 clips of 1 to 13 frames in 2 classes'
expect 0 dl2-transcode --quiet copy "$work/theirs/clips" "$work/un-clips"
diff -r -x '.dl2-*' "$work/un-clips" "$work/theirs/clips-files" || fail 'clips: other frames'
expect 0 dl2-transcode --quiet copy --container=gulp "$work/theirs/clips" "$work/clips-again"
is "$(cat "$work"/theirs/clips/data_*.gulp | cksum)" "$(cat "$work/clips-again/data_0.gulp" | cksum)" 'frames of all chunks'
expect 0 dl2-load bench --quiet --frames 4 --image-size 8 "$work/theirs/clips"
