#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each source file names its license in one of its first three lines (CONTRIBUTING.md, "Habits").
. "$srcdir/tests/lib.sh"
plainly
cd "$srcdir" || exit 99

# The rooms are the folders with a local.mk; what autoreconf writes lies in m4/ and build-aux/.
rooms=$(for file in */local.mk; do echo "${file%/*}"; done)
# shellcheck disable=SC2086
find $rooms examples m4 -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \
    -o -name '*.cpp' -o -name '*.py' -o -name '*.sh' -o -name '*.mk' -o -name '*.m4' \) |
    grep -v '^m4/l[it]' >"$work/sources"
printf '%s\n' GNUmakefile Makefile.am bootstrap build-aux/nvcc.sh configure.ac >>"$work/sources"
[ "$(wc -l <"$work/sources")" -gt 400 ] || fail "only $(wc -l <"$work/sources") source files found"

while read -r file; do
    sed -n '1,3p' "$file" | grep -q "SPDX-License-Identifier: BSD-2-Clause" ||
        echo "$file"
done <"$work/sources" >"$work/without"
[ ! -s "$work/without" ] ||
    fail "no SPDX-License-Identifier: BSD-2-Clause in the first three lines of: $(cat "$work/without")"

# Data is made or installed by the tests, not committed: pictures are those of the documents.
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files '*.png' '*.jpg' '*.jpeg' '*.webp' '*.avif' '*.tar' | grep -v '^docs/\|^tests/' >"$work/data" || :
    [ ! -s "$work/data" ] || fail "data in the repository: $(head -n 5 "$work/data")"
fi
