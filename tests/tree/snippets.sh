#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every command and example of README.md, docs/ and the programs' --help runs, page by page, on a small dataset with the demo's layout and class
# names; snippets.txt has those that do not, and why. SNIPPETS="README.md docs/study.md" runs these pages alone.
. "$srcdir/tests/lib.sh"
plainly
! emulated || skip "too slow under QEMU"
[ -n "${PYTHON3:-}" ] || skip "python3 is not installed"
for codec in jpeg webp avif jp2 png; do
    dl2-transcode --list codecs | grep -q "^$codec	" || skip "this build lacks codec $codec, which the documents use"
done
dl2-train --list devices | grep -q cpu || skip "this build lacks oneDNN, and device ref is too slow (Debian: libdnnl-dev)"
unset MAKEFLAGS MFLAGS MAKELEVEL

# A server with the extension, if it can be had.
. "$srcdir/tests/postgres/server.sh"
(
    skip() { trap - EXIT; rm -rf "${home:-}"; echo "$*" >"$work/no-server"; exit 0; }
    start_extension
    trap - EXIT
    printf "home='%s' server='%s' as='%s'\n" "$home" "$server" "$as" >"$work/server"
) || exit 1
if [ -e "$work/server" ]; then
    . "$work/server"
    trap '$as "$server/pg_ctl" -D "$home/data" -m immediate stop >/dev/null 2>&1; rm -rf "$home" "$work"' EXIT
    export PGHOST="$home" PGUSER=dl2
else
    DL2_NO_SERVER=$(cat "$work/no-server")
    export DL2_NO_SERVER
fi
# shellcheck disable=SC2086
"$PYTHON3" -u "$srcdir/tests/tree/snippets.py" "$work" ${SNIPPETS:-}
