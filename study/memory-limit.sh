#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: memory-limit.sh BYTES FIRST... -- COMMAND...
#
# Runs two commands one after the other in a control group of Linux that has BYTES of memory. The page
# cache counts: files that FIRST reads from the disk, and what COMMAND reads of them.
#
# With control groups of version 2 systemd makes the group (systemd-run; as another user than root, the
# user's own systemd must have been given the memory controller, as it usually is). With version 1 it
# is made below this shell's own, which takes root.
set -eu
if [ "$1" = --here ]; then # in the group
    shift
    first='' # words in quotes, for eval
    while [ "$1" != -- ]; do
        first="$first '$(printf %s "$1" | sed "s/'/'\\\\''/g")'"
        shift
    done
    shift
    eval "$first" && exec "$@"
    exit
fi
fail() {
    echo "memory-limit.sh: $*" >&2
    exit 3
}
limit=$1 status=0
shift
memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
if [ -z "$memory" ]; then
    command -v systemd-run >/dev/null || fail "memory is limited by systemd-run, which is not installed (Debian: systemd)"
    [ "$(id -u)" -eq 0 ] && whose='' || whose=--user
    systemd-run $whose --scope --quiet -p MemoryMax="$limit" -p MemorySwapMax=0 sh "$0" --here "$@" || status=$?
else
    own=$memory$(sed -n 's|^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*:||p' /proc/self/cgroup | sed 's|^/$||')
    [ -d "$own" ] || own=$memory # in a container, the path is the host's
    group=$own/dl2-$$
    mkdir "$group" 2>/dev/null || fail "$group: cannot be made: limiting memory takes root with control groups of version 1"
    trap 'rmdir "$group"' EXIT
    echo "$limit" 2>/dev/null >"$group/memory.limit_in_bytes" || fail "$group: has no limit of $limit bytes"
    sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec sh "$@"' sh "$group" "$0" --here "$@" || status=$?
fi
[ $status -ne 137 ] || echo "memory-limit.sh: killed: $limit bytes of memory are too few for it" >&2
exit $status
