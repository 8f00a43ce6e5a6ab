#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: measure.sh FOLDER ROUNDS PREREQUISITE... <CELLS
#
# Measures speeds in rounds. A round measures each cell once, one after the other, so that what changes
# on the machine from round to round changes all of them. What changes within a round is balanced: every
# second round goes backwards through the order of the one before it, and each such pair begins at another
# cell, up to the middle one. FOLDER/order.tsv has a line for each measurement that was begun: its round, PATH,
# and when. A line of CELLS is
#   KIND PATH JOBS DATASET [OPTION...]
# and its results are FOLDER/PATH/round-1.json, round-2.json... The last part of PATH is the dataset's name,
# raw or a variant's. KIND is
#   load    dl2-load bench, as $LOAD begins its command
#   once    the same, in the first round alone
#   others  the network of dl2-train --measure, as $TRAIN begins its command
# "--cache 25%", which comes last, is of $BYTES. FOLDER is measured anew if a PREREQUISITE is newer than it; what was
# interrupted is gone on with. FOLDER/.made is touched at the end.
set -uf

folder=$1 rounds=$2
shift 2
for than in "$@"; do
    [ -e "$folder/.begun" ] && ! [ "$folder/.begun" -ot "$than" ] || { rm -rf "$folder"; break; }
done
mkdir -p "$folder" || exit 1
[ -e "$folder/.begun" ] || : >"$folder/.begun" || exit 1
cells=$(cat)
log=$folder/.log work=$folder/.work

# measure KIND PATH JOBS DATASET OPTION...: one cell to $file
measure() {
    kind=$1 path=$2 jobs=$3 dataset=$4
    shift 4
    case $kind in
    load | once)
        eval "$LOAD -j \$jobs --name \${path##*/} --json \$work.json --quiet \$* bench \$dataset" >"$log" 2>&1 ||
            [ $? -eq 1 ]; [ -e "$work.json" ] && mv "$work.json" "$file" ;;
    *)
        eval "$TRAIN -j \$jobs --arch \$kind --seed \$round --data \$dataset --out \$work --quiet \$*" >"$log" 2>&1 &&
            mv "$work/rate_report.json" "$file" ;;
    esac || { cat "$log" >&2; echo "The speed of $path could not be measured: see above" >&2; return 1; }
}

# The cells of a round, in its order.
order() {
    printf '%s\n' "$cells" | awk -v round="$round" -v rounds="$rounds" '
        $1 != "once" || round == 1 { cell[count++] = $0 }
        END {
            pair = int((round - 1) / 2); pairs = int((rounds + 1) / 2)
            start = pairs > 1 ? int(count * pair / (2 * (pairs - 1))) : 0
            for (i = 0; i < count; i++)
                print cell[(start + (round % 2 ? i : count - 1 - i)) % count]
        }'
}

round=1
while [ "$round" -le "$rounds" ]; do
    order | {
        told=
        while read -r cell; do
            set -- $cell
            file=$folder/$2/round-$round.json
            [ ! -e "$file" ] || continue
            [ "$told" ] || echo "Measuring speed, round $round of $rounds"
            told=yes
            case $cell in *%)
                share=${cell##* }
                set -- ${cell% *} $((BYTES * ${share%\%} / 100)) ;;
            esac
            mkdir -p "$folder/$2" &&
                printf '%s\t%s\t%s\n' "$round" "$2" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >>"$folder/order.tsv" &&
                measure "$@" </dev/null || exit 1
        done
    } || exit 1
    round=$((round + 1))
done
rm -rf "$work" "$log" && touch "$folder/.made"
