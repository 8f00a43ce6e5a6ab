#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# examples/copy_into_shards.py copies what other projects' packages wrote, image by image and class by class. The packages are not
# in Debian; DL2_PEER_PYTHON names a Python with at least one of them and Pillow:
#   python3 -m venv V && V/bin/pip install pillow mosaicml-streaming ffcv && DL2_PEER_PYTHON=V/bin/python make check
. "$srcdir/tests/lib.sh"
plainly
[ -n "${DL2_PEER_PYTHON:-}" ] || skip 'DL2_PEER_PYTHON names no Python with mosaicml-streaming or ffcv (PyPI)'
tried=
# unpack SHARDS FOLDER: the files of a copy in shards. Class folders would give classes other numbers, and are refused.
unpack() {
    expect 0 dl2-transcode --quiet copy --container=tar "$1" "$2.tars"
    (cd "$2.tars" && find . -name '*.tar') >"$work/tars"
    while read -r shard; do # in the folder of its split
        mkdir -p "$2/${shard%/*}" && tar -C "$2/${shard%/*}" -xf "$2.tars/$shard" || fail "$shard"
    done <"$work/tars"
}
for kind in mds/streaming beton/ffcv; do
    module=${kind#*/} kind=${kind%/*}
    "$DL2_PEER_PYTHON" -c "import numpy, PIL, $module" 2>/dev/null || { echo "not tried: no $module"; continue; }
    tried="$tried $kind" at=$work/$kind
    mkdir "$at"
    expect 0 "$DL2_PEER_PYTHON" "$srcdir/tests/python/copy_into_shards.py" "$kind" "$at"
    source=$(echo "$at/source"*)
    expect 0 "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" --shard 1 "$source" "$at/shards/train"
    grep -q '7 images' "$work/out" || fail "$kind: $(cat "$work/out")"
    expect 1 "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" "$source" "$at/shards/train"
    said 'is there already'
    expect 1 "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" --label nothing "$source" "$at/other"
    said 'which column has the labels'
    mkdir -p "$at/mds/train" "$at/empty" && echo '{}' >"$at/mds/train/index.json"
    expect 1 "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" --split holdout "$at/mds" "$at/none"
    said 'has no split holdout, but train'
    expect 1 "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" "$at/empty" "$at/none"
    said 'has no index.json of MDS'
    [ ! -e "$at/other" ] || fail "$kind: a folder of a copy that failed"
    unpack "$at/shards" "$at/copy"
    for file in "$at/expected/"*; do
        name=${file##*/}
        found=$(find "$at/copy" -name "$name")
        cmp "$file" "$found" || fail "$kind: $name is not the same bytes"
        is "$(find "$at/copy/train" -name '*.png' -o -name '*.jpg' | wc -l)" 7 "$kind: images"
    done
    class=$(basename "$(dirname "$(find "$at/copy" -name '000000001.*')")") # in a folder of its class
    is "$class" 1 "$kind: the class of the second image"
done
[ -n "$tried" ] || skip "$DL2_PEER_PYTHON has neither mosaicml-streaming nor ffcv with Pillow"
