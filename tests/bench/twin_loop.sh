#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A loop of `datasets` and torchvision over a dataset of Parquet files and over its twins, and dl2's loader over the same rows
# (dl2-hub get), in turns on the same core:
#
#     twin_loop.sh SOURCE [WORK [CORES [ROUNDS]]]
#
# Images per CPU second of a process, user and system: crops of 8 to 100% to 224 x 224, uint8 batches of 64, warm in the page
# cache (study/peer_load.py). SOURCE is a folder of Parquet files, or of JPEGs CLASS_NAME.JPEG, as that of
# github.com/EliSchwartz/imagenet-sample-images, of which `datasets` then makes one. WORK keeps what was made (default: a temporary
# folder), CORES are as in compare_load.sh. PYTHON is a Python with the peers:
#     python3 -m venv today && today/bin/pip install torch torchvision datasets
# Run it from a build folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$1 work=$(mkdir -p "${2:-.}" && cd "${2:-$(mktemp -d)}" && pwd) cores=${3:-1} rounds=${4:-3}
python=${PYTHON:-/usr/bin/python3}
export HF_HUB_OFFLINE=1 PYTHONPATH="$PWD/python" CLOCK=cpu
if [ -z "$(find "$source" -name '*.parquet')" ]; then
    [ -d "$work/parquet" ] || "$python" - "$source" "$work/parquet" <<'PY'
import glob, os, sys
import datasets
files = sorted(glob.glob(sys.argv[1] + "/*.JPEG"))
images = [{"bytes": open(file, "rb").read(), "path": os.path.basename(file)} for file in files]
labels = [image["path"].split("_")[0] for image in images]
features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=sorted(set(labels)))})
os.makedirs(sys.argv[2] + "/data")
datasets.Dataset.from_dict({"image": images, "label": labels}, features).to_parquet(
    sys.argv[2] + "/data/train-00000-of-00001.parquet")
PY
    source=$work/parquet
fi
twin() { # NAME OPTION...
    name=$1; shift
    [ -e "$work/$name/README.md" ] || "$python" dl2-hub twin "$source" "$work/$name" "$@"
}
twin jpeg-30 --codec jpeg --q 30
twin jpeg-80@256 --codec jpeg --q 80 --resize-shorter 256
twin webp-30 --codec webp --q 30
rm -f "$work"/rates-*
round=1
while [ "$round" -le "$rounds" ]; do
    for name in "$(basename "$source")" jpeg-30 jpeg-80@256 webp-30; do
        data=$work/$name
        [ -d "$data" ] || data=$source
        for peer in datasets dl2; do
            folder=$data
            if [ "$peer" = dl2 ]; then
                folder=$work/shards-$name
                [ -d "$folder" ] || "$python" dl2-hub get "$data" "$folder"
            fi
            mkdir -p "$work/cache-$name"
            taskset -c "$cores" "$python" "$here/../../study/peer_load.py" $peer "$folder" 224 64 1 "${EPOCHS:-3}" "$work/cache-$name" \
                2>"$work/log" | tail -1 | tr ' ' '\n' | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}' \
                >>"$work/rates-$name-$peer"
        done
    done
    round=$((round + 1))
done
printf '%-12s %9s %20s %20s\n' dataset MB datasets dl2
for name in "$(basename "$source")" jpeg-30 jpeg-80@256 webp-30; do
    data=$work/$name
    [ -d "$data" ] || data=$source
    printf '%-12s %9.1f' "$name" "$(find "$data" -name '*.parquet' -printf '%s\n' | awk '{sum += $1} END {print sum / 1e6}')"
    for peer in datasets dl2; do
        sort -n "$work/rates-$name-$peer" | awk '{v[NR] = $1} END {printf " %20s", v[int((NR + 1) / 2)] " (" v[1] "-" v[NR] ")"}'
    done
    echo
done
