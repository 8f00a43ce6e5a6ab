#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: demo-clips-dataset.sh FOLDER
#
# Draws videos by FFmpeg: FOLDER/{train,val}/CLASS/N.mp4, H.264 of 176x100 pixels, four seconds of 12 frames. The classes are
# cellular automata of three kinds; each video begins at another state. FOLDER appears when all is done.
set -eu
[ $# -eq 1 ] || { echo "usage: demo-clips-dataset.sh FOLDER" >&2; exit 2; }
rm -rf "$1.tmp"
draw() { # SPLIT CLASS NUMBER SOURCE
    mkdir -p "$1/$2"
    ffmpeg -nostdin -v error -f lavfi -i "$4" -t 4 -c:v libx264 -pix_fmt yuv420p "$1/$2/$3.mp4"
}
number=1
while [ "$number" -le 24 ]; do
    [ "$number" -le 18 ] && split=$1.tmp/train || split=$1.tmp/val
    draw "$split" life "$number" "life=size=176x100:rate=12:seed=$number:mold=10:life_color=#C8E6A0:death_color=#402010"
    draw "$split" maze "$number" "life=size=176x100:rate=12:seed=$number:rule=S12345/B3:mold=8:ratio=0.02:life_color=#90B0F0"
    draw "$split" rows "$number" "cellauto=size=176x100:rate=12:seed=$number:rule=$((number * 7 % 256)):scroll=1"
    number=$((number + 1))
done
mv "$1.tmp" "$1"
