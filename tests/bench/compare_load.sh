#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-load against other loaders, in turns on the same core, so that all see the same machine:
#
#     compare_load.sh [WORK [PHOTOS [CORES [ROUNDS]]]]
#
# Crops of 8 to 100% to 224 x 224, uint8 batches of 64, from JPEGs warm in the page cache. PHOTOS is a folder of JPEGs, which are
# loaded as they are: CLASS/FILE, or files whose names begin with their class and _, as n01440764_tench.JPEG of
# github.com/EliSchwartz/imagenet-sample-images; "tiles" are their copies with restart intervals, "q90" what dl2-transcode makes of
# them at quality 90, the only form of JPEG that FFCV has them in. Or PHOTOS is a folder of lossless
# photographs, CLASS/FILE (default: made by make_photos.sh), which become JPEGs of quality 90 with standard Huffman tables; each is
# loaded six times an epoch. CORES are what everything is confined to (default: 1, that is core number 1). WORK keeps what was made
# (default: a temporary folder).
#
# study/peer_load.py describes the peers; those that a Python lacks, or that fail, are said to be missing. TODAY_PYTHON has all but FFCV:
#     python3 -m venv today
#     today/bin/pip install torch torchvision torchcodec nvidia-dali-cuda120 webdataset spdl spdl_io litdata datasets grain
# FFCV_PYTHON is for FFCV, which wants older packages:
#     python3 -m venv --system-site-packages peers        # Debian: python3-torch python3-torchvision python3-opencv
#                                                         # python3-numba python3-pandas libturbojpeg0-dev libopencv-dev
#                                                         # libavdevice59
#     peers/bin/pip install tqdm
#     peers/bin/pip install --no-deps --no-build-isolation ffcv terminaltables fastargs
# CLOCK=cpu counts CPU seconds instead of wall seconds: on one core the same, but for what others use of it. EPOCHS is how many a
# peer is measured for in each round, after one to warm up [3]. Run it from a build folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "${1:-.}" && cd "${1:-$(mktemp -d)}" && pwd) photos=${2:-} cores=${3:-1} rounds=${4:-3}
today=${TODAY_PYTHON:-/usr/bin/python3} ffcv=${FFCV_PYTHON:-/usr/bin/python3}
workers=$(taskset -c "$cores" nproc)
[ -n "$photos" ] || { photos=$work/made; [ -d "$photos" ] || sh "$here/make_photos.sh" "$photos"; }
if [ ! -d "$work/source" ]; then
    copies="1 2 3 4 5 6" # names in turn, so that neighbors in name aren't the same picture
    [ -z "$(find "$photos" -iname '*.jp*g' | head -1)" ] || copies=0
    for copy in $copies; do
        (cd "$photos" && find . -type f ! -name '*.md') | while read -r file; do
            name=$(basename "$file") class=$(dirname "$file")
            [ "$class" != . ] || class=${name%%_*}
            mkdir -p "$work/source.tmp/$class"
            cp "$photos/$file" "$work/source.tmp/$class/$copy-$name"
        done
    done
    mv "$work/source.tmp" "$work/source"
fi
if [ -n "$(find "$work/source" -iname '*.jp*g' | head -1)" ]; then
    # Above all sources' qualities, with the finest chroma: every file is copied, with restart intervals.
    plain=$work/source tiles=$work/tiles/jpeg-100 q90=$work/q90/jpeg-90
    ./dl2-transcode --quiet --q 100 --subsampling 444 --restart=tiles "$work/source" "$work/tiles"
    ./dl2-transcode --quiet --q 90 "$work/source" "$work/q90"
else
    plain=$work/plain/jpeg-90 tiles=$work/tiles/jpeg-90 q90=
    ./dl2-transcode --quiet --q 90 --effort 0 --restart=none "$work/source" "$work/plain" >/dev/null
    ./dl2-transcode --quiet --q 90 --effort 0 --restart=tiles "$work/source" "$work/tiles" >/dev/null
fi
export FFCV_SOURCE="$work/source" HF_HUB_OFFLINE=1 PYTHONPATH="$PWD/python"
pinned="taskset -c $cores"
dl2() { # NAME FOLDER
    $pinned ./dl2-load bench --quiet --split all --train -j "$workers" -e 4 -b 64 --image-size 224 "$2" >"$work/$1.log" 2>&1
    awk -v cpu="${CLOCK:-wall}" 'cpu == "wall" && /^  epoch [2-9]/ {print $5} cpu == "cpu" && /images\/s a core/ {print $4}' \
        "$work/$1.log" >>"$work/rates-$1"
    bytes=$(find "$2" -type f -iname '*.jp*g' -printf '%s\n' | awk '{sum += $1} END {printf "%.0f", sum}')
    awk -v bytes="$bytes" '/peak memory/ {print "facts", $3, bytes, "dl2-load"}' "$work/$1.log" >"$work/facts-$1"
}
peer() { # NAME PEER PYTHON FOLDER
    [ ! -e "$work/missing-$1" ] || return 0
    load="$pinned $3 $here/../../study/peer_load.py $2 $4 224 64 $workers"
    [ -e "$work/made-$1" ] || $load none "$work" >"$work/$1.log" 2>&1 || { mv "$work/$1.log" "$work/missing-$1"; return 0; }
    touch "$work/made-$1"
    $load "${EPOCHS:-3}" "$work" >"$work/$1.out" 2>"$work/$1.log" || { mv "$work/$1.log" "$work/missing-$1"; return 0; }
    grep '^facts' "$work/$1.out" >"$work/facts-$1"
    tail -1 "$work/$1.out" | tr ' ' '\n' >>"$work/rates-$1"
}
round=1
rm -f "$work"/rates-* "$work"/missing-* "$work"/facts-*
while [ "$round" -le "$rounds" ]; do
    dl2 dl2-plain "$plain"
    dl2 dl2-tiles "$tiles"
    [ -z "$q90" ] || dl2 dl2-q90 "$q90"
    peer dl2-python dl2 "$today" "$plain"
    peer torchvision torch "$today" "$plain"
    for name in torchcodec webdataset litdata datasets grain spdl dali dali_bilinear dali_dynamic; do
        peer "$name" "$name" "$today" "$plain"
    done
    peer ffcv ffcv "$ffcv" "$plain"
    peer ffcv_raw ffcv_raw "$ffcv" "$plain"
    round=$((round + 1))
done
median() {
    sort -n "$work/rates-$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}
echo "$(find "$plain" -iname '*.jp*g' | wc -l) files; cores $cores; ${CLOCK:-wall} clock; $rounds rounds"
printf '%-18s %8s %13s %8s %8s %7s %8s  %s\n' loader images/s range plain/it tiles/it "mem MB" "disk MB" package
for rates in "$work"/rates-*; do
    name=${rates##*/rates-}
    sort -n "$rates" | awk -v name="$name" -v plain="$(median dl2-plain)" -v tiles="$(median dl2-tiles)" \
        -v facts="$(cat "$work/facts-$name")" '{v[NR] = $1} END {
        m = v[int((NR + 1) / 2)]; split(facts, f, " ")
        printf "%-18s %8d %6d-%6d %8.2f %8.2f ", name, m, v[1], v[NR], plain / m, tiles / m
        printf "%7d %8.1f  %s %s\n", f[2], f[3] / 1e6, f[4], f[5]}'
done | sort -k2,2nr
for missing in "$work"/missing-*; do
    [ ! -e "$missing" ] || echo "${missing##*/missing-} is missing: $(tail -1 "$missing")"
done
