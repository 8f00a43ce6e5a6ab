#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# measure.sh: the order of its rounds balances drift, is written down, and outlives an interruption.
. "$srcdir/tests/lib.sh"
plainly
cd "$work" || exit 99

# Programs that measure nothing: each use is a line of `used`, and the 10th fails if there is a `stop`.
mkdir bin
cat >bin/load <<'SH'
while [ $# -gt 2 ]; do case $1 in --name) name=$2 ;; --json) file=$2 ;; esac; shift; done
echo "load/$name" >>used
[ ! -e stop ] || [ "$(wc -l <used)" -ne 10 ] || { rm stop; exit 3; }
echo '{}' >"$file"
SH
cat >bin/train <<'SH'
while [ $# -gt 1 ]; do case $1 in --data) name=$2 ;; --out) out=$2 ;; esac; shift; done
echo "net/$name" >>used
mkdir -p "$out" && echo '{}' >"$out/rate_report.json"
SH
measure() { # FOLDER ROUNDS
    LOAD='sh bin/load' TRAIN='sh bin/train' sh "$srcdir/study/measure.sh" "$@" <cells
}
for name in a b c d; do
    echo "load load/$name 1 $name"
    echo "net net/$name 1 $name"
done >cells
round() { awk -v round="$1" '$1 == round { print $2 }' "$2"; }
backwards() { sed -n '1!G;h;$p'; }
# places FILE: how late each cell is measured on average, in cells, from a round's middle: the earliest and the latest
places() {
    awk '{ place[$2] += ++seen[$1]; count[$2]++ } END {
        for (path in place) {
            mean = place[path] / count[path] - 4.5
            if (mean < low) low = mean
            if (mean > high) high = mean
        }
        print low + 0, high + 0 }' "$1"
}

# Every cell once a round; a round and the next go in opposite directions; pairs begin elsewhere.
cut -d' ' -f2 cells >first
for rounds in 1 2 3 4 5 6; do
    rm -f used
    expect 0 measure "rounds-$rounds" "$rounds"
    order=rounds-$rounds/order.tsv
    cut -f2 "$order" | cmp - used || fail "$order is not what was measured"
    round 1 "$order" | cmp - first || fail "the first round of $rounds is not in the given order"
    for number in $(seq "$rounds"); do
        is "$(round "$number" "$order" | sort)" "$(sort first)" "round $number of $rounds"
        [ $((number % 2)) -eq 1 ] || is "$(round "$number" "$order")" \
            "$(round $((number - 1)) "$order" | backwards)" "round $number of $rounds, backwards"
    done
    case $rounds in # a steady drift favours nothing in an even number of rounds, and little in an odd one
    1) ;;
    *[02468]) is "$(places "$order")" "0 0" "the places of the cells in $rounds rounds" ;;
    3) is "$(places "$order")" "-1.16667 1.16667" "the places of the cells in 3 rounds" ;;
    5) is "$(places "$order")" "-0.7 0.7" "the places of the cells in 5 rounds" ;;
    esac
done
is "$(for n in 1 3 5; do round $n rounds-6/order.tsv | head -n 1; done | xargs)" "load/a load/b load/c" "where pairs begin"
grep -Eqv '^[1-6]	(load|net)/[a-d]	[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$' rounds-6/order.tsv &&
    fail "$(cat rounds-6/order.tsv)"

# What was interrupted goes on in the same order, and nothing is measured twice but what failed.
rm -f used
: >stop
expect 1 measure again 4
said "could not be measured"
is "$(find again -name 'round-*.json' | wc -l)" 9 "measurements before the failure"
expect 0 measure again 4
uniq again/order.tsv | cut -f1,2 | uniq >gone_on
cut -f1,2 rounds-4/order.tsv | cmp - gone_on || fail "an interruption changes the order"
is "$(wc -l <used)" 33 "measurements in all"
expect 0 measure again 4
is "$(wc -l <used)" 33 "measurements after the last"

# What is measured once is, and changes the others' order in no round.
echo 'once load/once 1 once' >>cells
expect 0 measure once 4
is "$(grep -c once once/order.tsv)" 1 "what is measured once"
grep -v once once/order.tsv | cut -f1,2 >others
cut -f1,2 rounds-4/order.tsv | cmp - others || fail "a cell that is measured once changes the order"
exit 0
