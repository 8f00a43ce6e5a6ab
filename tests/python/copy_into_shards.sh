#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# examples/copy_into_shards.py copies what other projects' packages wrote, image by image and class by class. The packages are not
# in Debian; DL2_PEER_PYTHON names a Python with at least one of them and Pillow:
#   python3 -m venv V && V/bin/pip install pillow pyarrow mosaicml-streaming ffcv && DL2_PEER_PYTHON=V/bin/python make check
. "$srcdir/tests/lib.sh"
plainly
[ -n "${DL2_PEER_PYTHON:-}" ] || skip 'DL2_PEER_PYTHON names no Python with pyarrow, mosaicml-streaming or ffcv (PyPI)'
tried=
# unpack SHARDS FOLDER: the files of a copy in shards. Class folders would give classes other numbers, and are refused.
unpack() {
    expect 0 dl2-transcode --quiet copy --container=tar "$1" "$2.tars"
    (cd "$2.tars" && find . -name '*.tar') >"$work/tars"
    while read -r shard; do # in the folder of its split
        mkdir -p "$2/${shard%/*}" && tar -C "$2/${shard%/*}" -xf "$2.tars/$shard" || fail "$shard"
    done <"$work/tars"
}
for kind in parquet/pyarrow mds/streaming beton/ffcv; do
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
    if [ $kind = parquet ]; then
        expect 1 "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" --label several "$source" "$at/other"
        said 'row 0 has the label [0, 0], which is not the number of one class'
        rm -r "$at/other.tmp"
        # A folder from the Hub: its splits stay apart, and what has no image is counted.
        copy() { "$DL2_PEER_PYTHON" "$srcdir/examples/copy_into_shards.py" "$@"; }
        expect 0 copy "$at/hub" "$at/apart"
        is "$(sed -n 's/.*apart/apart/p' "$work/out" | sort)" "apart/test: 1 images, 1 shards; 0 images were pixels and are PNG files now, 0 have no class, 0 rows had no image
apart/train: 3 images, 1 shards; 0 images were pixels and are PNG files now, 0 have no class, 1 rows had no image
apart/validation: 2 images, 1 shards; 0 images were pixels and are PNG files now, 0 have no class, 0 rows had no image" "the summary"
        grep -q 'train-00001-of-00002.parquet, row 1 has no image, and is left out' "$work/out" || fail "$(cat "$work/out")"
        unpack "$at/apart" "$at/apart-copy"
        is "$(cd "$at/apart-copy" && find * -name '*.??g' | sort)" "test/two words/000000000.jpg
train/daisy.x/000000001.jpg
train/rose/000000000.png
train/two words/000000002.png
validation/daisy.x/000000001.png
validation/rose/000000000.jpg" "what is in which split"
        expect 0 copy --split train "$at/hub/data" "$at/one"
        grep -q '/one: 3 images' "$work/out" || fail "$(cat "$work/out")"
        expect 1 copy --split holdout "$at/hub" "$at/none"
        said 'has no split holdout, but test, train, validation'
        expect 1 copy "$at/hub" "$at/train"
        said 'choose one by --split'
        expect 1 copy "$at/hub/data/train-00000-of-00002.parquet,$at/hub/data/test-00000-of-00001.parquet" "$at/none"
        said 'would mix the splits test, train'
        mkdir "$at/hub/other" && cp "$at/hub/data/train-00000-of-00002.parquet" "$at/hub/other/"
        expect 1 copy "$at/hub" "$at/none"
        said 'files in several folders'
        mkdir -p "$at/mds/train" && echo '{}' >"$at/mds/train/index.json"
        expect 1 copy --split holdout "$at/mds" "$at/none"
        said 'has no split holdout, but train'
        mkdir "$at/empty"
        expect 1 copy "$at/empty" "$at/none"
        said 'neither Parquet files nor an index.json'
    fi
    [ ! -e "$at/other" ] || fail "$kind: a folder of a copy that failed"
    unpack "$at/shards" "$at/copy"
    for file in "$at/expected/"*; do
        name=${file##*/}
        found=$(find "$at/copy" -name "$name")
        cmp "$file" "$found" || fail "$kind: $name is not the same bytes"
        is "$(find "$at/copy/train" -name '*.png' -o -name '*.jpg' | wc -l)" 7 "$kind: images"
    done
    class=$(basename "$(dirname "$(find "$at/copy" -name '000000001.*')")") # in a folder of its class
    [ $kind = parquet ] && wanted=daisy.x || wanted=1
    is "$class" $wanted "$kind: the class of the second image"
done
[ -n "$tried" ] || skip "$DL2_PEER_PYTHON has none of pyarrow, mosaicml-streaming and ffcv with Pillow"
