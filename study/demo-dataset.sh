#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: demo-dataset.sh FOLDER [PHOTOGRAPHS]
#
# Makes the demo dataset: which of fifteen photographs is this a piece of?
#
# The photographs of Debian's lomiri-wallpapers-16.04 are halved (each pixel is the mean of four,
# which removes the traces of their own JPEG compression), cut into tiles of 96 x 96 pixels, and
# stored losslessly as FOLDER/{train,val}/PHOTOGRAPH/rROWcCOLUMN.png. Rests at the right and lower
# edges are dropped.
#
# Columns 3 to 5 of each seven are for validation: vertical bands, so that both splits see the sky and
# the ground of every photograph, but validation sees other places. Tiles of the two splits touch
# only where bands do. A random split would ask for places that training has seen all around.
#
# A photograph's tiles appear all at once by a rename, and FOLDER only when all is done: a rerun goes
# on where an earlier one was stopped. The same photographs give the same pixels. FOLDER/.tiles-96
# says that it is by these rules; what an earlier version made is replaced.
set -eu

tile=96
die() { echo "demo-dataset.sh: $*" >&2; exit 1; }

if [ "${1:-}" = --cut ]; then # --cut TILE CONVERT PARTS PHOTOGRAPH: one photograph
    tile=$2 convert=$3 parts=$4 photo=$5
    class=$(basename "$photo" .jpg | tr 'A-Z' 'a-z')
    [ ! -d "$parts/$class" ] || exit 0
    work=$parts/.$class.tmp
    rm -rf "$work"
    mkdir -p "$work/all" "$work/train" "$work/val"
    (cd "$work/all" && # in its name, percent signs and brackets would have a meaning
        "$convert" "$photo" -auto-orient -scale 50% +repage -strip -crop "${tile}x$tile" \
            -set filename:at "%[fx:page.y/$tile] %[fx:page.x/$tile] %wx%h" +repage -depth 8 \
            -define png:compression-level=6 -define png:exclude-chunk=date,time \
            "PNG24:%[filename:at].png") || die "$photo: $convert failed"
    for file in "$work/all/"*" ${tile}x$tile.png"; do
        name=${file##*/}
        row=${name%% *} rest=${name#* }
        column=${rest%% *}
        case $((column % 7)) in [234]) split=val ;; *) split=train ;; esac
        mv "$file" "$work/$split/$(printf 'r%02dc%02d.png' "$row" "$column")"
    done
    rm -rf "$work/all"
    mv "$work" "$parts/$class"
    exit 0
fi

case ${1:--} in -*) set -- ;; esac
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: demo-dataset.sh FOLDER [PHOTOGRAPHS]" >&2; exit 2; }
folder=${1%/}
photographs=${2:-/usr/share/backgrounds}
case $photographs in /*) ;; *) photographs=$PWD/$photographs ;; esac
[ ! -e "$folder/.tiles-$tile" ] || exit 0
[ ! -e "$folder" ] || [ -d "$folder/val/dragonfly_by_bolly" ] ||
    die "$folder is there, and is no demo dataset: name another folder"

# Debian's own first: another program of that name may stand before it on the PATH.
convert=
for candidate in ${CONVERT:-/usr/bin/convert convert}; do
    if "$candidate" -version 2>/dev/null | grep -q ImageMagick; then
        convert=$candidate
        break
    fi
done
[ -n "$convert" ] || die "ImageMagick's convert is needed (Debian: imagemagick)"

# By name, so that other packages' pictures in the same place don't change the dataset.
set --
for name in Bridge_by_Sander_Klootwijk Dragonfly_by_Bolly Picture_0B_by_freespace \
    Picture_1A_by_freespace Wine_by_Jakkub_Mede aitzgorri_by_Aitzol_Berasategi \
    analogpattern_by_Peter_Nerlich free_by_Peter_Nerlich friends_by_Aitzol_Berasategi \
    greentock_by_Peter_Nerlich life_by_Aitzol_Berasategi picosdeeuropa_by_Aitzol_Berasategi \
    seeding_by_Clements_Engelhardt sunset_by_Aitzol_Berasategi umang_by_Abhishek_Mudgal; do
    [ -f "$photographs/$name.jpg" ] ||
        die "$photographs/$name.jpg is not there (Debian: lomiri-wallpapers-16.04)"
    set -- "$@" "$photographs/$name.jpg"
done

echo "Cutting the demo dataset"
parts=$folder.parts/$tile
mkdir -p "$parts"
# One thread a photograph; several photographs at once.
export MAGICK_THREAD_LIMIT=1 OMP_NUM_THREADS=1
printf '%s\0' "$@" |
    xargs -0 -n 1 -P "${JOBS:-$(nproc)}" sh "$0" --cut "$tile" "$convert" "$parts" ||
    die "some photographs could not be cut"

work=$folder.tmp
rm -rf "$work"
mkdir -p "$work/train" "$work/val"
for part in "$parts"/*; do
    for split in train val; do # links where the file system has them
        cp -al "$part/$split" "$work/$split/${part##*/}" 2>/dev/null ||
            cp -a "$part/$split/." "$work/$split/${part##*/}"
    done
done
touch "$work/.tiles-$tile"
rm -rf "$folder"
mv "$work" "$folder"
rm -rf "$folder.parts"
echo "$(find "$folder" -name '*.png' | wc -l) tiles of $# photographs in $folder"
