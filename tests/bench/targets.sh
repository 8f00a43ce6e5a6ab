#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# How well --target finds each image's quality, against an exhaustive search:
#
#     targets.sh WORK FOLDER...
#
# Takes 60 images of each FOLDER (or all, if fewer), reduced to a shorter side of 96 pixels, has dl2-transcode search three
# targets with every lossy codec of the build, and makes the files of all qualities from 1 to 100. dl2-quality scores all of
# them. Prints a table of Markdown: images that meet the target, those of them whose file does not (none, if all is well),
# images of which a quality would have met it that the search missed, qualities tried for an image, and by how much the
# files are larger than the smallest (of sizes: smaller than the largest) that meet it: all together, and the worst image.
# WORK keeps what was made. Run it from a build folder; it takes some minutes.
set -eu
work=$1
shift
targets="ssim=0.95 psnr_y=34 bpp=1.5"
metrics=ssim,psnr_y
codecs=$(./dl2-transcode --list codecs | awk -F '\t' '$2 == "lossy" && $4 != "video" { print $1 }')
if [ ! -d "$work/images" ]; then
    mkdir -p "$work/images.tmp/all"
    number=0
    for folder in "$@"; do
        count=$(find -L "$folder" -type f \( -name '*.jpg' -o -name '*.png' \) | wc -l)
        for file in $(find -L "$folder" -type f \( -name '*.jpg' -o -name '*.png' \) | sort |
            awk -v step=$(((count + 59) / 60)) 'NR % step == 0'); do
            cp "$file" "$work/images.tmp/all/$((number += 1)).${file##*.}"
        done
    done
    mv "$work/images.tmp" "$work/images"
fi
transcode() { ./dl2-transcode --quiet --never-larger=no --resize-shorter 96 --codec "$@" "$work/images" "$work/variants" >/dev/null; }
score() { ./dl2-quality --quiet --metrics $metrics --csv "$work/csv" "$work/images" "$@" >/dev/null; tr -d '\r' <"$work/csv" | sed 1d; }
echo "| codec | target | met | on the wrong side | missed | tried | larger, all | larger, worst |"
echo "|---|---|---|---|---|---|---|---|"
for codec in $codecs; do
    transcode "$codec" --target "$(echo "$targets" | tr ' ' ,)"
    transcode "$codec" --q 1:100
    # key bytes bpp ssim psnr_y, of each quality
    score "$work/variants/$codec"-[0-9]*@96 | awk -F , '{ print $2, $6, $8, $13, $12 }' >"$work/all"
    for target in $targets; do
        variant=$work/variants/$codec-${target%=*}${target#*=}@96
        sed -n 's/^{"key":"\([^"]*\)".*"probes":\([0-9]*\),"met":\([a-z]*\).*/\1 \2 \3/p' "$variant/dl2-variant.jsonl" >"$work/found"
        score "$variant" | awk -F , '{ print $2, $6, $8, $13, $12 }' |
            awk -v codec="$codec" -v name="${target%=*}" -v value="${target#*=}" -v found="$work/found" -v all="$work/all" '
            function good() { return name == "bpp" ? $3 <= value : name == "ssim" ? $4 >= value : $5 >= value }
            BEGIN {
                while ((getline <found) > 0) { probes[$1] = $2; met[$1] = $3 }
                while ((getline <all) > 0)
                    if (good() && (!($1 in best) || (name == "bpp" ? $2 > best[$1] : $2 < best[$1]))) best[$1] = $2
            }
            { n++; tried += probes[$1] }
            met[$1] == "true" {
                mets++; wrong += !good(); sum += $2; least += best[$1]
                more = name == "bpp" ? best[$1] / $2 - 1 : $2 / best[$1] - 1
                if (more > worst) worst = more
            }
            met[$1] != "true" && ($1 in best) { missed++ }
            END { more = name == "bpp" ? least / sum - 1 : sum / least - 1
                printf "| %s | %s=%s | %d of %d | %d | %d | %.1f | %.1f%% | %.1f%% |\n", codec, name, value, mets, n, wrong, missed,
                    tried / n, 100 * more, 100 * worst }'
    done
done
