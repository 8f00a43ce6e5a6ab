#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# decode_on_card.sh WORK [IMAGES [SIDE [BATCH [EPOCHS]]]]: how fast a card decodes, crops and resizes for training, beside the
# processors. IMAGES is a folder of images (default: photographs that make_photos.sh finds); WORK receives its variants, JPEG
# of qualities 75 and 90, without restart intervals and with (crop-addressable), and all reports. Rows are repeated in turns,
# EPOCHS each time, and the best of three is shown. Run it in the build directory, or where dl2's programs are in the PATH.
set -eu
work=$1 images=${2:-} side=${3:-224} batch=${4:-256} epochs=${5:-4}
[ -x ./dl2-load ] && PATH=$PWD:$PATH
srcdir=${srcdir:-$(dirname "$0")/../..}
mkdir -p "$work/reports"
[ -n "$images" ] || {
    images=$work/photos
    [ -d "$images" ] || sh "$srcdir/tests/bench/make_photos.sh" "$images"
}
dl2-transcode --quiet --codec jpeg --q 75,90 "$images" "$work/tiles"
dl2-transcode --quiet --codec jpeg --q 75,90 --restart=none "$images" "$work/plain"

# report LABEL VARIANT OPTIONS...: one run, its report kept
run() {
    label=$1 variant=$2
    shift 2
    dl2-load bench "$work/$variant" --quiet --split all -i "$side" -b "$batch" -e "$epochs" --cache 4G \
        --json "$work/reports/$label.json" "$@" >"$work/reports/$label.txt" 2>"$work/reports/$label.err" ||
        { sed "s/^/$label: /" "$work/reports/$label.err" >&2; echo "$label" >>"$work/reports/failed"; }
}
field() { sed -n "s|^ *$2  *\([0-9.]*\).*|\1|p" "$1" | head -n 1; } # FILE NAME: the first such line
: >"$work/reports/failed"
rows="cpu-plain:plain:--decode=cpu
cpu-tiles:tiles:--decode=cpu
engines-plain:plain:--decode=gpu --gpu-engine=engines
engines-region:plain:--decode=gpu --gpu-engine=engines --gpu-input=region
engines-spliced:tiles:--decode=gpu --gpu-engine=engines --gpu-input=spliced
cores-plain:plain:--decode=gpu --gpu-engine=cores
cores-spliced:tiles:--decode=gpu --gpu-engine=cores --gpu-input=spliced
hybrid-plain:plain:--decode=hybrid
hybrid-spliced:tiles:--decode=hybrid --gpu-input=spliced"
for round in 1 2 3; do
    for q in 75 90; do
        echo "$rows" | while IFS=: read -r name folder options; do
            # shellcheck disable=SC2086
            run "$name-q$q-$round" "$folder/jpeg-$q" $options
        done
    done
done
echo "| row | quality | images/s | MP/s decoded | by engines | decode, us an image | transform, us an image |"
echo "|---|---|---|---|---|---|---|"
for q in 75 90; do
    echo "$rows" | while IFS=: read -r name folder options; do
        best=
        for round in 1 2 3; do
            text=$work/reports/$name-q$q-$round.txt
            rate=$(field "$text" images/s)
            [ -n "$rate" ] && { [ -z "$best" ] || [ "$rate" -gt "$(field "$best" images/s)" ]; } && best=$text
        done
        [ -n "$best" ] || { echo "| $name | $q | failed, see $work/reports | | | | |"; continue; }
        engines=$(sed -n 's/.* images, \([0-9]*\) of them by its engines.*/\1/p' "$best")
        mp=$(field "$best" 'MP/s decoded') decode=$(sed -n '/^On the card/,$s/^  decode  *\([0-9.]*\) us.*/\1/p' "$best")
        transform=$(sed -n '/^On the card/,$s/^  transform  *\([0-9.]*\) us.*/\1/p' "$best")
        echo "| $name | $q | $(field "$best" images/s) | ${mp:--} | ${engines:--} | ${decode:--} | ${transform:--} |"
    done
done
[ ! -s "$work/reports/failed" ]
