#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds and tests dl2 as it is committed in a fresh system of another release of Debian, as root:
#
#     sh tests/debian.sh RELEASE FOLDER [TEST...]
#
# RELEASE is a code name, such as trixie (Debian 13). The system goes to FOLDER/RELEASE, with the
# packages of study/packages.txt (4 GB) and a checkout in /dl2. There `make study` runs, with fewer
# settings, and then `make check`, whole or only the named tests. A second run updates the checkout
# and builds what changed. CONFIGURE_FLAGS of the environment are options for ./configure.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: sh tests/debian.sh RELEASE FOLDER [TEST...]" >&2
    exit 2
fi
release=$1
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2
command -v mmdebstrap >/dev/null || { echo "debian.sh: mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || { echo "debian.sh needs root, for chroot" >&2; exit 1; }

root=$folder/$release
if [ ! -d "$root" ]; then
    packages=$(awk '$2 ~ /(^|,)(build|study|demo|check)(,|$)/ { print $1 }' "$source/study/packages.txt")
    rm -rf "$root.new"
    mmdebstrap --quiet --variant=minbase --include="git $(echo $packages)" "$release" "$root.new"
    mv "$root.new" "$root"
fi
if [ -d "$root/dl2" ]; then
    git -C "$root/dl2" fetch -q "$source" HEAD
    git -C "$root/dl2" reset -q --hard FETCH_HEAD
else
    git clone -q "$source" "$root/dl2"
fi

# In mount and process namespaces of its own: whatever the tests start ends with them.
study="make study OUT=small-study CODECS=jpeg QUALITIES=50 EPOCHS=1 SEEDS='0 1'"
check="make check -k ${*:+TESTS='$*'}"
exec unshare --mount --pid --fork sh -ec '
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/run"
    exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        TERM="${TERM:-dumb}" ${CONFIGURE_FLAGS:+"CONFIGURE_FLAGS=$CONFIGURE_FLAGS"} sh -ec "$2"' \
    debian.sh "$root" "cd /dl2; $study; $check"
