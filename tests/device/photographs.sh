#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: photographs.sh FOLDER [PHOTOGRAPHS]
#
# Makes what device.py decodes and trains on: 150 JPEGs of 500 x 375 pixels, quality 92, ten pieces of each photograph of
# Debian's lomiri-wallpapers-16.04, which are the classes. Each photograph is resized to a width of 1500 pixels. Three pieces
# of its right third are for validation, FOLDER/val/CLASS/N.jpg; seven of the rest are FOLDER/train/CLASS/N.jpg.
set -eu
folder=${1:?usage: photographs.sh FOLDER [PHOTOGRAPHS]} photographs=${2:-/usr/share/backgrounds}
convert=${CONVERT:-/usr/bin/convert}
die() { echo "photographs.sh: $*; a bundle does without them with BUNDLE_PHOTOGRAPHS=no" >&2; exit 1; }
command -v "$convert" >/dev/null 2>&1 || die "$convert is not there (Debian: imagemagick)"
rm -rf "$folder" "$folder.part"
for photo in "$photographs"/*_by_*.jpg; do
    [ -f "$photo" ] || die "$photo is not there (Debian: lomiri-wallpapers-16.04)"
    class=$(basename "$photo" .jpg | tr 'A-Z' 'a-z')
    mkdir -p "$folder.part/train/$class" "$folder.part/val/$class"
    pieces='' number=0
    last=$("$convert" "$photo" -auto-orient -resize 1500x +repage -format '%[fx:h-375]' -write info: \
        -strip "$folder.part/whole.ppm")
    for at in 0+0 0+$((last / 2)) 0+$last 500+0 500+$((last / 2)) 500+$last 250+$((last / 2)) \
        1000+0 1000+$((last / 2)) 1000+$last; do
        case $at in 1000*) split=val ;; *) split=train ;; esac
        pieces="$pieces ( -clone 0 -crop 500x375+$at +repage -write $folder.part/$split/$class/$number.jpg +delete )"
        number=$((number + 1))
    done
    # shellcheck disable=SC2086
    "$convert" "$folder.part/whole.ppm" -quality 92 $pieces null: || die "$photo: $convert failed"
    rm "$folder.part/whole.ppm"
done
count=$(find "$folder.part" -name '*.jpg' | wc -l)
[ "$count" = 150 ] || die "$count pieces, not 150: $photographs has other photographs than fifteen"
mv "$folder.part" "$folder"
echo "$count photographs in $folder"
