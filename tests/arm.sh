#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds dl2 for 64-bit ARM on another machine with Debian, and runs tests under QEMU:
#
#     sh tests/arm.sh FOLDER [TEST...]
#
# FOLDER gets ARM's libraries (FOLDER/debian, which nothing is installed from) and the build
# (FOLDER/build). Without names of tests these are the tests of the rooms that have kernels of their
# own, which take a quarter of an hour on two cores.
set -eu
if [ $# -eq 0 ]; then
    echo "usage: sh tests/arm.sh FOLDER [TEST...]" >&2
    exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
root=$folder/debian
triplet=aarch64-linux-gnu

missing() { echo "arm.sh: $1 is missing: apt-get install gcc-$triplet qemu-user-static mmdebstrap" >&2; exit 1; }
for command in $triplet-gcc qemu-aarch64-static mmdebstrap; do
    command -v $command >/dev/null || missing $command
done

# Only unpacked: no program of these packages runs, and no package of this machine changes.
if [ ! -d "$root/usr" ]; then
    libraries=$(awk '$2 == "build" && ($3 ~ /^(pkg-config|header):/) { print $1 }' "$source/study/packages.txt")
    rm -rf "$root.new"
    mmdebstrap --quiet --variant=extract --architectures=arm64 \
        --include="libc6-dev libgomp1 $(echo $libraries)" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root.new"
    mv "$root.new" "$root"
fi

# The kernel hands ARM's programs to QEMU; QEMU finds their libraries.
QEMU_LD_PREFIX=$root
export QEMU_LD_PREFIX
printf 'int main(void) { return 42; }\n' | $triplet-gcc --sysroot="$root" -x c -o "$folder/hello" -
status=0
"$folder/hello" 2>/dev/null || status=$?
if [ $status -ne 42 ]; then
    echo "arm.sh: this kernel doesn't run ARM's programs by QEMU; as root:" >&2
    echo "  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc" >&2
    echo "  cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register" >&2
    exit 1
fi

[ -x "$source/configure" ] || (cd "$source" && ./bootstrap)
mkdir -p "$folder/build"
cd "$folder/build"
if [ ! -f Makefile ]; then
    PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig \
    PKG_CONFIG_SYSROOT_DIR=$root "$source/configure" -q --host=$triplet \
        CC="${CCACHE:-} $triplet-gcc --sysroot=$root" --without-cuda --without-mpi --without-python \
        --with-postgres-extension=no
fi
make -s -j"$(nproc)"

# Not under QEMU: tests/common/test_common and tests/transcode/external.sh want to know why a command
# cannot be started, where QEMU gives a status alone; valgrind runs no foreign programs; and tests/common/card.sh trains for
# some seconds, in which emulated training takes one step.
if [ $# -eq 0 ]; then
    set -- $(make -s --eval='names: ; @echo $(TESTS)' names | tr ' ' '\n' |
        grep -E '^tests/(common|pixels|codec|quality|dataset|loader|load|transcode)/' |
        grep -v -x -e tests/common/card.sh -e tests/load/valgrind.sh \
            -e tests/common/test_common -e tests/transcode/external.sh)
fi
make -k check -j"$(nproc)" TESTS="$*"
