#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make bundle`: unpacked elsewhere, with nothing in the environment, it does a small study; and so it does where there is
# nothing else: in a root of its own with libc and a few commands alone.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize*) skip "a build with sanitizers is not for others" ;; esac
emulated && skip "it is made of the libraries of the machine that it is made on, which has another processor"
need patchelf patchelf
need readelf binutils
unset MAKEFLAGS MFLAGS
bundle() { make -C "$builddir" bundle BUNDLE_CUDA=no BUNDLE_FORMAT=gz BUNDLE_NAME=dl2-test BUNDLE_FOLDER="$work" BUNDLE_PHOTOGRAPHS=no "$@"; }
# Too large for its purpose: refused, with what is largest.
expect 2 bundle BUNDLE_LIMIT=1
grep -Eq '^dl2-test.tar.gz would have [0-9]+ MiB, and BUNDLE_LIMIT is 1\.' "$work/err" && grep -q 'dl2-test/lib.*/' "$work/err" ||
    fail "$(cat "$work/err")"
[ -z "$(ls -d "$work"/dl2-test* 2>/dev/null)" ] || fail "what is too large is left: $(ls "$work")"
expect 0 bundle BUNDLE_LIMIT=
grep -Eq '^dl2-test.tar.gz: [0-9]+ MiB, .* for glibc 2\.[0-9]+ and later' "$work/out" || fail "$(cat "$work/out")"
cp "$work/out" "$work/said"
mkdir -p "$work/some where" && tar -C "$work/some where" -xzf "$work/dl2-test.tar.gz" || fail "it does not unpack"
bundle="$work/some where/dl2-test"

if [ -e "$builddir/tests/cuda/test_gpu" ]; then
    [ -z "$(ls "$bundle"/lib/libnvjpeg.so.* 2>/dev/null)" ] && is=not || is=
    grep -q "^nvJPEG is ${is:+$is }inside" "$work/said" || fail "nothing right is said of nvJPEG: $(cat "$work/said")"
fi

# What it needs from outside: libc's family and what README.bundle names.
for file in "$bundle"/libexec/* "$bundle"/lib/*.so* "$bundle"/lib/python/dl2/*; do
    for library in $(readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $library in
        ld-linux* | libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.*) continue ;;
        esac
        [ -e "$bundle/lib/$library" ] && continue
        [ -e "$bundle/lib/node/$library" ] && grep -q "^    $library$" "$bundle/README.bundle" && continue
        fail "${file##*/} needs $library, which is neither in the bundle nor said to be the machine's"
    done
    readelf -d "$file" 2>/dev/null | grep -E 'RUNPATH|RPATH' | grep -v '\[\$ORIGIN' && fail "$file looks elsewhere"
done
# A stand-in must not answer for a library that is there.
defined() { nm -D --defined-only "$1" 2>/dev/null | sed -n 's/.* [TWiBDR] \([^@]*\).*/\1/p' | sort -u; }
for library in "$bundle"/lib/*.so*; do defined "$library"; done | sort -u >"$work/bundled"
for library in "$bundle"/lib/node/*.so*; do
    [ -e "$library" ] || continue
    defined "$library" | comm -12 - "$work/bundled" >"$work/both"
    [ ! -s "$work/both" ] || fail "the stand-in for ${library##*/} answers for others: $(head -n 3 "$work/both" | tr '\n' ' ')"
done
tail -n +2 "$bundle/share/licenses/LIBRARIES" | while IFS='	' read -r library package version license; do
    [ -e "$bundle/lib/$library" ] || fail "LIBRARIES has $library, which isn't there"
    case $license in share/*) [ -s "$bundle/$license" ] || fail "no license of $package" ;; esac
done || exit 1
glibc=$(sed -n 's/.*glibc \([0-9.]*\) or later.*/\1/p' "$bundle/README.bundle")
[ -n "$glibc" ] || fail "README.bundle names no glibc"
grep -q '@[A-Z]*@' "$bundle/README.bundle" && fail "README.bundle has gaps"

# The study: everything on tiny images, by hand.
mkdir "$work/data" && cd "$work/data" || exit 99
"$builddir/tests/train/make_images" photos 2 12 4 32 || exit 99
cat >"$work/study.sh" <<'END'
set -e
bin=$1 data=$2 out=$3
case $CODECS in png) lossy= ;; *) lossy='--q 20,80' ;; esac
"$bin/dl2-transcode" --quiet --codec "$CODECS" $lossy "$data" "$out/variants"
"$bin/dl2-quality" --quiet --json-dir "$out/quality" "$data" "$out"/variants/*
for variant in "$data" "$out"/variants/*; do
    case $variant in "$data") name=raw ;; *) name=${variant##*/} ;; esac
    "$bin/dl2-load" --quiet -j 1 --image-size 16 --batch 8 --name "$name" --json "$out/load-$name.json" bench "$variant"
    "$bin/dl2-train" --quiet -j 1 --threads 1 -d "$variant" -a convnet --image-size 16 -b 8 -e 2 --device "${DEVICE:-auto}" \
        --out "$out/train/$name/convnet/seed-0"
done
"$bin/dl2-report" -o "$out/report.html" "$out"
test -s "$out/report.html"
END
codecs=
for codec in jpeg webp png; do
    "$bundle/bin/dl2-transcode" --version | grep -qi "lib$codec" && codecs=$codecs${codecs:+,}$codec
done
[ -n "$codecs" ] || skip "built without codecs"
case $codecs in *png*) codecs=${codecs%,png} ;; esac
[ -n "$codecs" ] || codecs=png
expect 0 env -i PATH=/usr/bin:/bin CODECS="$codecs" sh "$work/study.sh" "$bundle/bin" "$work/data/photos" "$work/out1"
expect 0 env -i PATH=/usr/bin:/bin "$bundle/libexec/run" dl2-train --version
# Moved once more, and found by a link.
mv "$bundle" "$work/moved" && mkdir "$work/links" && ln -s "$work/moved/bin/dl2-load" "$work/links/dl2-load"
expect 0 env -i PATH=/usr/bin:/bin "$work/links/dl2-load" --version
bundle=$work/moved
# An environment with other libraries of the same names doesn't matter.
mkdir "$work/wrong" && for library in "$bundle"/lib/*.so*; do echo broken >"$work/wrong/${library##*/}"; done
expect 0 env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH="$work/wrong" "$bundle/bin/dl2-transcode" --version
# The machine's libraries are found where PyTorch's packages put them, and in DL2_LIBRARIES before that.
library=$(sed -n '/cudnn/p' "$bundle/lib/node/LIST" 2>/dev/null)
if [ -n "$library" ] && [ -n "${PYTHON3:-}" ]; then
    mkdir -p "$work/site/nvidia/cudnn/lib" "$work/own" "$work/python"
    ln -s "$PYTHON3" "$work/python/python3"
    cp "$bundle/lib/node/$library" "$work/site/nvidia/cudnn/lib"
    expect 0 env -i PATH="$work/python:/usr/bin:/bin" PYTHONPATH="$work/site" DL2_VERBOSE=1 "$bundle/bin/dl2-train" --version
    grep -qx "$library $work/site/nvidia/cudnn/lib" "$work/err" || fail "not found: $(cat "$work/err")"
    cp "$bundle/lib/node/$library" "$work/own"
    expect 0 env -i PATH="$work/python:/usr/bin:/bin" PYTHONPATH="$work/site" DL2_LIBRARIES="$work/own" DL2_VERBOSE=1 \
        "$bundle/bin/dl2-train" --version
    grep -qx "$library $work/own" "$work/err" || fail "not the one that was named: $(cat "$work/err")"
fi
# What a machine with a card would run, which has JPEGs decoded.
if [ -n "${PYTHON3:-}" ] && [ -e "$bundle/libexec/make_images" ] && [ "${codecs#jpeg}" != "$codecs" ]; then
    expect 0 "$PYTHON3" "$bundle/share/dl2/device/device.py" first --rehearse --only decoding --out "$work/results"
    grep -q 'restart tiles, cpu' "$work/results/results.md" || fail "$(cat "$work/results/results.md")"
fi
# The makefile finds the programs.
expect 0 "$bundle/bin/dl2-study" run --dataset "$work/data/photos" --out "$work/out2" --codecs "${codecs%%,*}" --qualities 50 variants

# Nothing but libc: no folder of this machine is there.
PATH=$PATH:/usr/sbin:/sbin # chroot, mount
inside='mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" || exit 77; exec chroot "$@"'
bare() { unshare -r -m sh -c "$inside" sh "$root" /bin/sh -c 'PATH=/bin; export PATH; unset LD_LIBRARY_PATH; "$@"' sh "$@"; }
root=$work/root
mkdir -p "$root/bin" "$root/tmp" "$root/work" "$root/usr" "$root/proc" "$root/dev" && ln -s ../bin "$root/usr/bin"
commands="sh readlink sed awk sort tr"
for command in $commands; do
    path=$(readlink -f "$(command -v "$command")")
    cp -L "$path" "$root/bin/$command" || exit 99
    # Where the loader looks by itself; programs' own libraries of libc's family are here, too.
    ldd "$path" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p'
done | sort -u >"$work/libraries"
for program in "$bundle"/libexec/dl2-*; do
    ldd "$program" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p'
done | grep -E '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv))\.so\.[0-9]+$' >>"$work/libraries"
sort -u "$work/libraries" | while read -r library; do
    mkdir -p "$root${library%/*}" && cp -L "$library" "$root$library"
done
cp -R "$bundle" "$root/bundle" && cp -R "$work/data/photos" "$work/study.sh" "$root/work"
unshare -r -m sh -c "$inside" sh "$root" /bin/sh -c : 2>"$work/err" ||
    { echo "no root of its own here, so that isn't tried: $(cat "$work/err")"; exit 0; }
CODECS=$codecs
export CODECS
expect 0 bare /bin/sh /work/study.sh /bundle/bin /work/photos /work/out
[ -s "$root/work/out/report.html" ] || fail "no report in the bare root"
# What isn't on this machine is said when it is asked for, in words.
if grep -q libcudnn "$bundle/lib/node/LIST" 2>/dev/null; then
    expect 1 bare /bundle/bin/dl2-train --device cuda --loader synthetic --classes 2 \
        -a convnet --image-size 16 --out /work/none
    echo "without a card: $(cat "$work/err")"
fi
exit 0
