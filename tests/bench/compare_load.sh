#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-load against other loaders, in turns on the same core, so that all see the same machine:
#
#     compare_load.sh [WORK [PHOTOS [CORES [ROUNDS]]]]
#
# Crops of 8 to 100% to 224 x 224, uint8 batches of 64, from JPEGs of quality 90 with standard Huffman tables, warm in the page cache. PHOTOS
# is a folder of lossless photographs, CLASS/FILE (default: made by make_photos.sh); each is loaded six times an epoch. CORES are
# what everything is confined to (default: 1, that is core number 1). WORK keeps what was made (default: a temporary folder).
#
# PEERS_PYTHON is a Python that has the peers; those that it lacks are said to be missing:
#     python3 -m venv --system-site-packages peers        # Debian: python3-torch python3-torchvision python3-opencv
#                                                         # python3-numba python3-pandas libturbojpeg0-dev libopencv-dev
#                                                         # libavdevice59
#     peers/bin/pip install nvidia-dali-cuda120 webdataset spdl spdl_io tqdm
#     peers/bin/pip install --no-deps --no-build-isolation ffcv terminaltables fastargs
# TODAY_PYTHON has PyTorch 2.11 or later, which TorchCodec's decoder of images (0.16 or later) wants; torchvision runs there, too:
#     python3 -m venv today; today/bin/pip install torch torchvision torchcodec
# CLOCK=cpu counts CPU seconds instead of wall seconds: on one core the same, but for what others use of it.
# Run it from a build folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)} photos=${2:-} cores=${3:-1} rounds=${4:-3}
python=${PEERS_PYTHON:-/usr/bin/python3} today=${TODAY_PYTHON:-/usr/bin/python3}
workers=$(taskset -c "$cores" nproc)
mkdir -p "$work"
[ -n "$photos" ] || { photos=$work/made; [ -d "$photos" ] || sh "$here/make_photos.sh" "$photos"; }
if [ ! -d "$work/source" ]; then # names in turn, so that neighbours in name aren't the same picture
    for copy in 1 2 3 4 5 6; do
        (cd "$photos" && find . -type f) | while read -r file; do
            mkdir -p "$work/source.tmp/$(dirname "$file")"
            cp "$photos/$file" "$work/source.tmp/$(dirname "$file")/$copy-$(basename "$file")"
        done
    done
    mv "$work/source.tmp" "$work/source"
fi
./dl2-transcode --quiet --q 90 --effort 0 --restart=none "$work/source" "$work/plain" >/dev/null
./dl2-transcode --quiet --q 90 --effort 0 --restart=tiles "$work/source" "$work/tiles" >/dev/null
plain=$work/plain/jpeg-90 tiles=$work/tiles/jpeg-90
echo "$(find "$plain" -name '*.jpg' | wc -l) files, $(du -sb "$plain" | cut -f1) bytes plain, $(du -sb "$tiles" | cut -f1) in tiles;" \
    "cores $cores"
dl2() {
    taskset -c "$cores" ./dl2-load bench --quiet -j "$workers" -e 4 -b 64 --image-size 224 "$1" |
        awk -v cpu="${CLOCK:-wall}" 'cpu == "wall" && /^  epoch [2-9]/ {print $5} cpu == "cpu" && /images\/s a core/ {print $4}'
}
peer() { # PEER [PYTHON]
    FFCV_SOURCE=$work/source taskset -c "$cores" "${2:-$python}" "$here/peer_load.py" "$1" "$plain" 224 64 "$workers" 3 "$work" \
        2>"$work/$1.log" | tail -1 | tr ' ' '\n'
}
round=1
rm -f "$work"/rates-*
while [ "$round" -le "$rounds" ]; do
    dl2 "$tiles" >>"$work/rates-dl2 tiles"
    peer ffcv >>"$work/rates-ffcv"
    dl2 "$plain" >>"$work/rates-dl2 plain"
    peer dali >>"$work/rates-dali"
    DALI_ANTIALIAS=1 peer dali >>"$work/rates-dali antialiased"
    peer torchvision >>"$work/rates-torchvision"
    peer torchcodec "$today" >>"$work/rates-torchcodec today"
    peer torchvision "$today" >>"$work/rates-torchvision today"
    peer webdataset >>"$work/rates-webdataset"
    peer spdl >>"$work/rates-spdl"
    round=$((round + 1))
done
best=$(sort -n "$work/rates-dl2 tiles" | tail -1)
for rates in "$work"/rates-*; do
    name=${rates##*/rates-}
    if [ ! -s "$rates" ]; then
        printf '%-18s missing: %s\n' "$name" "$(tail -1 "$work/${name%% *}.log")"
        continue
    fi
    sort -n "$rates" | awk -v name="$name" -v ours="$best" '{v[NR] = $1} END {
        printf "%-18s best %6d  median %6d images/s  dl2 tiles / it: %.2f\n", name, v[NR], v[int((NR + 1) / 2)], ours / v[NR]}'
done
