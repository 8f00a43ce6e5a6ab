#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays predictions, good and damaged, through their reader.
. "$srcdir/tests/lib.sh"
[ -n "${PYTHON3:-}" ] || skip "Python is not installed: it writes the files"
mkdir "$work/corpus"
write() { # NAME, then as predictions.py
    name=$1; shift
    "$PYTHON3" "$srcdir/tests/report/predictions.py" "$work/corpus/$name" "$@" || fail "not written: $name"
}
rows="rose/1:0:0:1 rose/2:0:1:0 tulip/1:1:1:1 tulip/2:1:-1:0"
write plain $rows
write longer $rows -- version=2 key=40
write unsorted b:0:0:1 a:1:0:1 c:2:2:1
write twice a:0:0:1 a:0:0:1
write many $rows -- rows=4294967294
write huge $rows -- rows=99999999999999999999
write keys $rows -- key=65536
write short $rows -- cut=3
write long $rows -- more=3
write outcomes $rows -- "descr=[('key', '|S7'), ('value', '<f8')]"
write wide $rows -- "descr=[('key', '<U3'), ('value', '|b1')]"
printf 'key,value\na.jpg,0.5\n"b,""c""",1e3\r\nd,-1\n' >"$work/corpus/csv"
printf 'key,value\n"a",1\n"a,1\n' >"$work/corpus/quote"
DL2_FUZZ_SECONDS=4; export DL2_FUZZ_SECONDS
cd "$work" || exit 99
expect 0 "$builddir/tests/report/fuzz_predictions" -runs=0 corpus
