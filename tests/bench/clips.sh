#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Clips from frame files, GulpIO, tar and video files: dl2-load beside GulpIO's own reader and a PyTorch DataLoader over
# the files, in turns on one core. In every container but video are the same bytes, and everybody makes the same pixels
# of them: 18 frames of each clip, step 2, 84 x 84 from the middle of frames of 176 x 100, as GulpIO's own benchmark has
# of Jester. Videos are the same frames as H.264, by Debian's ffmpeg with its defaults (CRF 23, a key frame each 250).
#
#     clips.sh [WORK [CLIPS [ROUNDS [CORE]]]]
#
# Run it from a build folder. WORK keeps what was made (default: a temporary folder). PEERS_PYTHON is a Python with
# gulpio2, which PyPI has:
#     python3 -m venv peers && peers/bin/pip install gulpio2
# /usr/bin/python3 has PyTorch, Pillow and OpenCV (Debian: python3-torch python3-pil python3-opencv). Peers that are missing
# are said to be. Rates are medians of the rounds, in frames for each CPU second, user and system; dl2's are of the whole
# process. What is cold has left the page cache before each epoch.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)} clips=${2:-400} rounds=${3:-5} core=${4:-1}
python=${PEERS_PYTHON:-python3}
mkdir -p "$work"
[ -d "$work/files" ] || { /usr/bin/python3 "$here/peer_clips.py" make "$work/files.tmp" "$clips" && mv "$work/files.tmp" "$work/files"; }
for container in gulp tar; do
    ./dl2-transcode --quiet --samples clips copy --container=$container "$work/files" "$work/$container" >/dev/null
done
./dl2-transcode --quiet --samples clips -c jpeg -q 60 --container=gulp "$work/files" "$work/smaller" >/dev/null
command -v ffmpeg >/dev/null && [ ! -d "$work/video" ] && (cd "$work/files" && find . -name 00000.jpg) | while read -r first; do
    clip=${first%/*}
    mkdir -p "$work/video/${clip%/*}"
    ffmpeg -nostdin -v error -i "$work/files/$clip/%05d.jpg" -c:v libx264 -pix_fmt yuv420p "$work/video/$clip.mp4"
done
for place in files gulp tar smaller/jpeg-60 video; do
    echo "$place: $(find "$work/$place" \( -name '*.jpg' -o -name '*.gulp' -o -name '*.tar' -o -name '*.mp4' \) -printf '%s\n' | awk '{ s += $1 } END { print s, "bytes in", NR, "files" }')"
done
dl2() { # PLACE OPTIONS...: frames/s a core
    place=$1
    shift
    taskset -c "$core" ./dl2-load bench --quiet -j 1 -e 3 -b 10 --val --split all --samples clips --frames 18 --frame-step 2 --image-size 84 \
        --resize 100 "$@" "$work/$place" | sed -n 's|^  frames/s a core *||p'
}
peer() { # PYTHON WHAT PLACE
    taskset -c "$core" "$1" "$here/peer_clips.py" "$2" "$work/$3" 2 2>"$work/$2.log" || echo missing
}
PYTHONPATH=$PWD/python "${COMPARE_PYTHON:-$python}" "$here/peer_clips.py" compare "$work/files" "$work/gulp" 2>/dev/null ||
    echo "pixels were not compared: $python has no gulpio2, or cannot load dl2"
rm -f "$work"/rates-*
round=1
while [ "$round" -le "$rounds" ]; do
    for place in files gulp tar; do
        dl2 $place >>"$work/rates-dl2, $place"
        dl2 $place --cold >>"$work/rates-dl2, $place, cold"
    done
    dl2 smaller/jpeg-60 >>"$work/rates-dl2, gulp at quality 60"
    [ ! -d "$work/video" ] || dl2 video >>"$work/rates-dl2, video"
    peer "$python" gulpio gulp >>"$work/rates-gulpio2, gulp"
    peer "$python" exact gulp >>"$work/rates-gulpio2 with an exact decoder, gulp"
    peer /usr/bin/python3 pillow files >>"$work/rates-DataLoader and Pillow, files"
    peer /usr/bin/python3 opencv files >>"$work/rates-DataLoader and OpenCV, files"
    round=$((round + 1))
done
for file in "$work"/rates-*; do
    printf '%-40s ' "${file#"$work/rates-"}"
    sort -n "$file" | awk '/missing/ { gone = 1 } { v[NR] = $1 } END { if (gone || !NR) print "missing"; else printf "%6.0f frames/s a core\n", (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) }'
done
