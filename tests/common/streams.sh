#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Standard streams of every program: closed ones, full ones, and names that are not fit to print.
. "$srcdir/tests/lib.sh"
[ -c /dev/full ] || skip "this system has no /dev/full"

for part in train val; do
    for class in a b; do
        for i in 1 2 3; do picture "$work/data/$part/$class/$i.ppm" 16 16 "$i" || exit 99; done
    done
done
train="dl2-train --device ref --arch convnet --image-size 8 --epochs 1 --batch 2 --no-flip --restart"

# What could not be written is no success, of anything that a program says.
refused() { # PROGRAM ARGUMENTS...
    "$@" >/dev/full 2>"$work/err"; got=$?
    [ "$got" -eq 1 ] || { cat "$work/err" >&2; fail "exit status $got with a full output: $*"; }
    grep -q "^$1: the standard output could not be written" "$work/err" ||
        { cat "$work/err" >&2; fail "the full output is not named: $*"; }
}
for program in dl2-transcode dl2-quality dl2-load dl2-train dl2-report dl2-study; do
    refused "$program" --help
    refused "$program" --usage
    refused "$program" --version
done
refused dl2-transcode copy --container=tar "$work/data" "$work/full"
refused dl2-quality "$work/data" "$work/data"
refused dl2-load --image-size 8 --batch 2 bench "$work/data"
refused dl2-load check "$work/data"
refused dl2-load --image-size 8 --batch 2 --seconds 0.05 --device-rate 100 analyze "$work/data"
mkdir -p "$work/study"; (cd "$work" && exec $train --data data --out study/train/raw/convnet/seed-1 >/dev/null) ||
    fail "cannot train"
refused dl2-report --gnuplot false "$work/study" -o "$work/report.html"
# dl2-train flushes after each epoch, and so fails before the end.
(cd "$work" && exec $train --data data --out again >/dev/full 2>err) && fail "dl2-train with a full output"
grep -q "^dl2-train: the standard output could not be written" "$work/err" || fail "dl2-train is silent"
[ -s "$work/again/experiment_report.json" ] || fail "dl2-train with a full output wrote no report"

# A file that gets the number of a closed stream is not written into by that stream.
expect 0 dl2-transcode copy --container=tar "$work/data" "$work/open"
cp -R "$work/data" "$work/spoilt"; cp "$work/data/train/a/2.ppm" "$work/spoilt/train/a/2.pgm"
expect 1 dl2-transcode -j 1 copy --container=tar "$work/spoilt" "$work/named"
for closed in '0<&-' '2>&-' '0<&- 2>&-' '0<&- 1>&-' '0<&- 1>&- 2>&-'; do
    rm -rf "$work/closed"
    eval 'dl2-transcode copy --container=tar "$work/data" "$work/closed" >/dev/null' "$closed" ||
        fail "exit status $? with $closed"
    for file in train/shard-000000.tar val/shard-000000.tar; do
        cmp "$work/open/$file" "$work/closed/$file" || fail "$file is not the same with $closed"
    done
    rm -rf "$work/closed"
    eval 'dl2-transcode -j 1 copy --container=tar "$work/spoilt" "$work/closed" >/dev/null' "$closed"
    [ $? -eq 1 ] || fail "exit status $? where an image can't be copied, with $closed"
    cmp "$work/named/train/shard-000000.tar" "$work/closed/train/shard-000000.tar" ||
        fail "a message is in the shard with $closed"
    rm -rf "$work/closed"
    eval 'dl2-transcode --codec ppm --container=tar "$work/data" "$work/closed" >/dev/null' "$closed" ||
        fail "transcoding: exit status $? with $closed"
    eval 'dl2-load --json "$work/check.json" check "$work/closed/ppm" >/dev/null' "$closed" ||
        fail "checking: exit status $? with $closed"
    rm -rf "$work/trained"
    eval '$train --data "$work/data" --out "$work/trained" >/dev/null' "$closed" || fail "training with $closed"
    [ -s "$work/trained/experiment_report.json" ] || fail "training with $closed wrote no report"
done

# No byte of a file's name moves the cursor, colors text or begins a line.
odd=$(printf 'x\033[31mred\r\nline\302\233\377')
mkdir -p "$work/odd/$odd"
for class in a b; do mkdir -p "$work/odd/$odd/$class"; for i in 1 2 3 4 5; do
    cp "$work/data/train/$class/1.ppm" "$work/odd/$odd/$class/$i.ppm"; done; done
printf 'P6 16 16 255\n' >"$work/odd/$odd/a/$odd.ppm"
plain() { # PROGRAM...: what it says has no control characters and is UTF-8
    "$@" >"$work/out" 2>"$work/err"
    cat "$work/out" "$work/err" >"$work/both"
    LC_ALL=C tr -d '\n\40-\176\200-\377' <"$work/both" >"$work/control"
    [ ! -s "$work/control" ] || { od -c "$work/control" >&2; fail "control characters from $*"; }
    grep -q '^line' "$work/both" && fail "a name begins a line in what $* says"
    if command -v iconv >/dev/null 2>&1; then
        iconv -f UTF-8 -t UTF-8 "$work/both" >/dev/null 2>&1 || fail "not UTF-8: $*"
        LC_ALL=C grep -q "$(printf '\302\233')" "$work/both" && fail "U+009B from $*"
    fi
    LC_ALL=C grep -qF 'x\x1b[31mred\r\nline\xc2\x9b\xff' "$work/both" ||
        { cat "$work/both" >&2; fail "$* does not name the file"; }
}
plain dl2-load check "$work/odd/$odd"
plain dl2-load --image-size 8 --batch 2 bench "$work/odd/$odd"
plain dl2-load --image-size 8 --batch 2 --seconds 0.05 --device-rate 100 analyze "$work/odd/$odd"
plain dl2-load check "$work/odd/no such $odd"
plain dl2-load --io="$odd" bench "$work"
plain dl2-report "$odd" "$work"
plain dl2-study run --dataset "$odd"
plain dl2-study status "$odd"
plain dl2-study "$odd"
plain dl2-report "--$odd"
plain dl2-report "--$odd=x"
plain dl2-report "--tolerance=$odd"
expect 2 dl2-report "-$odd"
said "there is no option '-\x1b'"
plain dl2-quality "$work/odd/$odd" "$work/odd/$odd"
plain dl2-transcode --codec ppm "$work/odd/$odd" "$work/variants"
plain dl2-transcode --codec "$odd" "$work/odd/$odd" "$work/variants"
plain dl2-transcode copy --container=tar "$work/odd/$odd" "$work/$odd"
plain dl2-transcode index "$work/$odd"
plain $train --data "$work/odd/$odd" --out "$work/$odd-out"
# A device or a pipe is written to, and never replaced by a file.
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/piped" &
expect 0 dl2-load check --quiet --json "$work/pipe" "$work/data"
wait $!
[ -p "$work/pipe" ] && grep -q dl2-load-check "$work/piped" || fail 'a pipe was replaced'
mkdir "$work/$odd-study"
plain dl2-report "$work/$odd-study"
exit 0
