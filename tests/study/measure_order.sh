#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Measuring speed: the order of the rounds balances drift, is written down, and outlives an interruption.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"

# Programs that measure nothing: each use is a line of `used`, and the 10th fails if there is a `stop`.
mkdir programs
for program in dl2-study dl2-transcode dl2-quality dl2-report; do ln -s "$builddir/$program" programs/; done
cat >programs/dl2-load <<END
#!/bin/sh
for word; do [ "\$word" != --help ] || exec "$builddir/dl2-load" "\$@"; done
while [ \$# -gt 2 ]; do case \$1 in --name) name=\$2 ;; --json) file=\$2 ;; esac; shift; done
echo "load/\$name" >>used
[ ! -e stop ] || [ "\$(wc -l <used)" -ne 10 ] || { rm stop; exit 3; }
echo '{}' >"\$file"
END
cat >programs/dl2-train <<END
#!/bin/sh
for word; do [ "\$word" != --list ] || exec "$builddir/dl2-train" "\$@"; done
while [ \$# -gt 1 ]; do case \$1 in --data) name=\${2##*/} ;; --out) out=\$2 ;; esac; shift; done
echo "convnet/\$name" | sed 's,/data$,/raw,' >>used
mkdir -p "\$out" && echo '{}' >"\$out/rate_report.json"
END
chmod +x programs/*
measure() { # OUT ROUNDS [VARIABLE...]
    out=$1 rounds=$2
    shift 2
    dl2-study run --programs "$PWD/programs" --dataset data --out "$out" --codecs jpeg --qualities '10 20 30' --archs convnet \
        --epochs 1 --seeds '1 2' --image-size 8 --batch 8 --rounds "$rounds" --jobs 1 "${@:-throughput}"
}
for name in raw jpeg-10 jpeg-20 jpeg-30; do printf 'load/%s\nconvnet/%s\n' $name $name; done >first
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
for rounds in 1 2 3 4 5 6; do
    rm -f used
    expect 0 measure "rounds-$rounds" "$rounds"
    order=rounds-$rounds/throughput/order.tsv
    cut -f2 "$order" | cmp - used || fail "$order is not what was measured"
    round 1 "$order" | cmp - first || fail "the first round of $rounds is not in the given order"
    for number in $(seq "$rounds"); do
        is "$(round "$number" "$order" | sort)" "$(sort first)" "round $number of $rounds"
        [ $((number % 2)) -eq 1 ] || is "$(round "$number" "$order")" \
            "$(round $((number - 1)) "$order" | backwards)" "round $number of $rounds, backwards"
    done
    case $rounds in # a steady drift favors nothing in an even number of rounds, and little in an odd one
    1) ;;
    *[02468]) is "$(places "$order")" "0 0" "the places of the cells in $rounds rounds" ;;
    3) is "$(places "$order")" "-1.16667 1.16667" "the places of the cells in 3 rounds" ;;
    5) is "$(places "$order")" "-0.7 0.7" "the places of the cells in 5 rounds" ;;
    esac
done
is "$(for n in 1 3 5; do round $n rounds-6/throughput/order.tsv | head -n 1; done | xargs)" "load/raw load/jpeg-10 load/jpeg-20" "where pairs begin"
grep -Eqv '^[1-6]	(load|convnet)/(raw|jpeg-[123]0)	[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$' rounds-6/throughput/order.tsv &&
    fail "$(cat rounds-6/throughput/order.tsv)"

# What was interrupted goes on in the same order, and nothing is measured twice but what failed.
rm -f used
: >stop
expect 1 measure again 4
said "could not be measured"
is "$(find again -name 'round-*.json' | wc -l)" 9 "measurements before the failure"
expect 0 measure again 4
uniq again/throughput/order.tsv | cut -f1,2 | uniq >gone_on
cut -f1,2 rounds-4/throughput/order.tsv | cmp - gone_on || fail "an interruption changes the order"
is "$(wc -l <used)" 33 "measurements in all"
expect 0 measure again 4
is "$(wc -l <used)" 33 "measurements after the last"

# What is measured once is, in the first round, and changes the others' order in no round.
rm programs/dl2-report
printf '#!/bin/sh\nfor word; do [ "$word" != --help ] || exec %s "$@"; [ "$last" != -o ] || : >"$word"; last=$word; done\n' \
    "$builddir/dl2-report" >programs/dl2-report
chmod +x programs/dl2-report
expect 0 dl2-study run study-loading --programs "$PWD/programs" --dataset data --out once --codecs jpeg --qualities '10 20 30' \
    --archs convnet --epochs 1 --seeds '1 2' --image-size 8 --batch 8 --rounds 4 --jobs 1 --workers 1 --storages memory --caches 25
is "$(grep -c '^1	cache-25/' once/loading/order.tsv) $(grep -c cache once/loading/order.tsv)" '4 4' "what is measured once"
sed -n 's,memory/jobs-1/,,p' once/loading/order.tsv | cut -f1,2 >others
cut -f1,2 rounds-4/throughput/order.tsv | cmp - others || fail "a cell that is measured once changes the order"
exit 0
