#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Reading ahead under valgrind, which runs one thread at a time and passes the turn on only at calls that it knows
# to block: the loader ends there by every way to read, without an error of memory, with the same batches.
. "$srcdir/tests/lib.sh"
need valgrind valgrind
emulated && skip "valgrind runs no programs of another processor"
case "$CC" in *-fsanitize=*) skip "a sanitizer's program doesn't run under valgrind" ;; esac
for class in aster rose; do
    for n in 1 2 3 4 5 6; do
        picture "$work/flowers/train/$class/$n.ppm" $((40 + n)) $((90 - n)) $n
    done
done
load() { "$@" bench "$work/flowers" -e 2 -i 16 -b 4 -j 2 --digest --quiet --io $io; }
io=direct
expect 0 load dl2-load
wanted=$(grep '^digest' "$work/out")
echo 'int main(void) { return 0; }' >"$work/empty.c"
expect 0 $CC "$work/empty.c" -o "$work/empty"
valgrind -q "$work/empty" >"$work/out" 2>&1 || skip "valgrind doesn't run here: $(head -n 1 "$work/out")"
tried=
for io in auto threads uring; do
    if [ $io = uring ] && ! load dl2-load >"$work/out" 2>"$work/err"; then
        grep -q 'kernel refuses\|built without' "$work/err" || fail "--io uring: $(cat "$work/err")"
        continue
    fi
    # A hang in valgrind heeds SIGKILL alone.
    expect 0 load timeout -k 1 120 valgrind -q --error-exitcode=9 "$(command -v dl2-load)"
    [ "$(grep '^digest' "$work/out")" = "$wanted" ] || fail "--io $io under valgrind: $(cat "$work/out") where it is $wanted"
    tried="$tried $io"
done
echo "under valgrind:$tried"
