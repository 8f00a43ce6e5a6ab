#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: imagenette-dataset.sh FOLDER
#
# Downloads fast.ai's imagenette2-160 (about 95 MB) and unpacks it as FOLDER. The sum is the one that
# torchvision checks it with. A rerun takes up the archive that is there.
set -eu

[ $# -eq 1 ] || { echo "usage: imagenette-dataset.sh FOLDER" >&2; exit 2; }
folder=${1%/}
archive=${folder%/*}/imagenette2-160.tgz
url=https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-160.tgz
sum=e793b78cc4c9e9a4ccc0c1155377a412

[ ! -d "$folder" ] || exit 0
if [ ! -f "$archive" ]; then
    echo "Downloading $url"
    curl -fsSL --retry 2 --connect-timeout 20 -o "$archive.part" "$url" && mv "$archive.part" "$archive" || {
        echo 'DATASET=imagenette needs the internet, and the download failed. Where there is none,' \
            'unpack a copy of that file and name its folder: DATASET=.../imagenette2-160' >&2
        exit 1
    }
fi
echo "$sum  $archive" | md5sum --quiet -c - || {
    echo "$archive is not the file that was expected: delete it and try again" >&2
    exit 1
}
rm -rf "$folder.tmp"
mkdir "$folder.tmp"
tar -xzf "$archive" -C "$folder.tmp" --strip-components=1
mv "$folder.tmp" "$folder"
