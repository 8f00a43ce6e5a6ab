#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds dl2 for 64-bit ARM on another machine with Debian, and runs tests under QEMU:
#
#     sh tests/arm.sh FOLDER [all | TEST...]
#
# FOLDER gets ARM's libraries (FOLDER/debian, which nothing is installed from) and the build
# (FOLDER/build). Without names of tests these are the tests of the rooms that have kernels of their
# own. `all` is the whole suite; a test that says nothing under QEMU skips and says why.
set -eu
if [ $# -eq 0 ]; then
    echo "usage: sh tests/arm.sh FOLDER [all | TEST...]" >&2
    exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
root=$folder/debian
triplet=aarch64-linux-gnu

packages="gcc-$triplet g++-$triplet qemu-user-static mmdebstrap"
for command in $triplet-gcc $triplet-g++ qemu-aarch64-static mmdebstrap; do
    command -v $command >/dev/null || { echo "arm.sh: $command is missing: apt-get install $packages" >&2; exit 1; }
done

# Only unpacked: no program of these packages is set up, and no package of this machine changes.
if [ ! -d "$root/usr" ]; then
    libraries=$(awk '$2 ~ /^(build|check)/ && ($3 ~ /^(pkg-config|header):/) { print $1 }' "$source/study/packages.txt")
    rm -rf "$root.new"
    mmdebstrap --quiet --variant=extract --architectures=arm64 \
        --include="libc6-dev libgomp1 python3-numpy python3-pil $(echo $libraries)" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root.new"
    # NumPy's choice of a BLAS, which setting up would make.
    for library in blas lapack; do
        ln -s $library/lib$library.so.3 "$root.new/usr/lib/$triplet/lib$library.so.3"
    done
    mv "$root.new" "$root"
fi

# The kernel hands ARM's programs to QEMU; QEMU finds their libraries.
QEMU_LD_PREFIX=$root
# Else dl2-train starts itself twice (train/dl2_train.c), and its threads spin while others need the processor.
OMP_WAIT_POLICY=passive
export QEMU_LD_PREFIX OMP_WAIT_POLICY
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
    PKG_CONFIG_SYSROOT_DIR=$root "$source/configure" -q --host=$triplet PYTHON3="$root/usr/bin/python3" \
        CC="${CCACHE:-} $triplet-gcc --sysroot=$root" --without-cuda --with-postgres-extension=no
fi
make -s -j"$(nproc)"

names() { make -s --eval='names: ; @echo $(TESTS)' names | tr ' ' '\n' | grep -E "$1"; }
case ${1:-} in
'') set -- $(names '^tests/(common|pixels|codec|quality|dataset|loader|load|transcode)/') ;;
all) set -- $(names .) ;;
esac
# The module needs ARM's Python. Comparisons with other software are as good on this machine's, and much faster.
module= others= status=0
for test; do
    case $test in
    tests/python/* | tests/install/* | tests/dataset/postgresql.sh) module="$module $test" ;;
    *) others="$others $test" ;;
    esac
done
[ -z "$others" ] || make -k check -j"$(nproc)" TESTS="$others" PYTHON3="$(command -v python3)" || status=1
[ -z "$module" ] || make -k check -j"$(nproc)" TESTS="$module" || status=1
exit $status
