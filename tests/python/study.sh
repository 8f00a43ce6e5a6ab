#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2.study: its file by itself, where there is nothing but Python's own library, with each Python from 3.9 on that is on
# PATH and starts; and in the package.
. "$srcdir/tests/lib.sh"
plainly
[ -n "${PYTHON3:-}" ] || skip "no Python (Debian: python3)"
mkdir "$work/alone" && cp "$srcdir/python/dl2/study.py" "$work/alone" || exit 99
export PYTHONDONTWRITEBYTECODE=1
cd "$work" || exit 99
for python in "$PYTHON3" python3.9 python3.10 python3.11 python3.12 python3.13 python3.14; do
    "$python" -c '' 2>/dev/null || continue
    expect 0 env PYTHONPATH="$work/alone" "$python" -S "$srcdir/tests/python/test_study.py"
    grep -q '^OK$' "$work/err" || fail "$(cat "$work/err")"
done
. "$srcdir/tests/python/module.sh"
cd "$builddir" || exit 99
"$PYTHON3" "$srcdir/tests/python/test_study.py"
