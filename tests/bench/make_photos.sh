#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: make_photos.sh FOLDER
#
# Photographs of the size that ImageNet is trained on, for benchmarks: those of Debian's lomiri-wallpapers-16.04,
# shrunk to a half, a third, a quarter and a sixth (which removes the traces of their own compression), cut into
# pieces of 500 x 375 pixels, stored losslessly as FOLDER/PHOTOGRAPH/SCALE-N.png. Rests at the edges are dropped.
set -eu
folder=${1:?usage: make_photos.sh FOLDER} convert=${CONVERT:-/usr/bin/convert}
mkdir -p "$folder"
for photo in "${PHOTOGRAPHS:-/usr/share/backgrounds}"/*_by_*.jpg; do
    class=$(basename "$photo" .jpg | tr 'A-Z' 'a-z')
    mkdir -p "$folder/$class"
    for scale in 50 33 25 17; do
        "$convert" "$photo" -auto-orient -scale $scale% +repage -strip -crop 500x375 +repage -depth 8 \
            "PNG24:$folder/$class/$scale-%03d.png"
    done
    for piece in "$folder/$class"/*.png; do
        [ "$(identify -format %wx%h "$piece")" = 500x375 ] || rm "$piece"
    done
    rmdir "$folder/$class" 2>/dev/null || :
done
echo "$(find "$folder" -name '*.png' | wc -l) photographs in $folder"
