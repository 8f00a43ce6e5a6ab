#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The example that searches with Optuna: a search that is cut off after its second trial, and continued.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/python/module.sh"
need_python torch python3-torch
need_python optuna "none; from PyPI: pip install optuna"
for class in aster rose; do
    for n in 1 2 3 4 5 6 7 8 9 10; do picture "$work/flowers/$class/$n.ppm" 40 36 $n; done
done
cd "$work" || exit 99
search() { "$PYTHON3" "$srcdir/examples/optuna_search.py" flowers --size 32 --epochs 1 --trials "$1"; }
expect 0 search 2
expect 0 search 3
said "Trial 2 "
! grep -q 'Trial [013] ' "$work/err" || fail "not continued: $(cat "$work/err")"
grep -Eq "^best of 3 trials: top-1 [01]\.[0-9]* with .*'rate'" "$work/out" || fail "$(cat "$work/out")"
exit 0
