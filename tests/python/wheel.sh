#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make wheel`: in a virtual environment that has nothing else, and knows nothing of the build, it loads, and trains.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize*) skip "a build with sanitizers is not for others" ;; esac
emulated && skip "it is made of the libraries of the machine that it is made on, which has another processor"
[ -e "$builddir/python/dl2/_core.la" ] || skip "the Python module isn't built (Debian: python3-dev, libdlpack-dev)"
need patchelf patchelf
need readelf binutils
need_python ensurepip python3-venv
unset MAKEFLAGS MFLAGS
expect 0 make -C "$builddir" wheel BUNDLE_FOLDER="$work"
cp "$work/out" "$work/said"
version=$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$builddir/config.h")
wheel=$(ls "$work"/*.whl)
printf '%s\n' "${wheel##*/}" | grep -Eqx "dl2_images-$version-cp39-abi3-manylinux_2_[0-9]+_$(uname -m)\.whl" || fail "its name: $wheel"
grep -q "^${wheel##*/}: [0-9]* MiB, " "$work/said" || fail "$(cat "$work/said")"

# Its tag is what auditwheel says; on Debian 12 it is that of Ubuntu 22.04 or an older one.
if "${DL2_PEER_PYTHON:-false}" -c 'import auditwheel' 2>/dev/null; then
    expect 0 "$DL2_PEER_PYTHON" -m auditwheel show "$wheel"
    tag=${wheel##*-abi3-}
    tr -s '\n ' '  ' <"$work/out" | grep -Eq "(following|constrains the) platform tag(: | to )\"${tag%.whl}\"" || fail "$(cat "$work/out")"
else
    echo "its tag was not compared with auditwheel's: DL2_PEER_PYTHON names no Python that has it (PyPI: auditwheel)"
fi
[ "$(getconf GNU_LIBC_VERSION)" != "glibc 2.36" ] || case $wheel in *manylinux_2_3[0-5]_*) ;; *) fail "its tag: $wheel" ;; esac

site=$work/venv/lib/python*/site-packages
expect 0 env -i PATH=/usr/bin:/bin "$PYTHON3" -m venv "$work/venv"
bare() { env -i PATH="$work/venv/bin:/usr/bin:/bin" "$@"; }
expect 0 bare pip install --no-index --no-cache-dir --disable-pip-version-check "$wheel"
expect 0 bare pip show dl2-images
grep -qx "Version: $version" "$work/out" || fail "$(cat "$work/out")"
cd "$work" || exit 99
# What decodes on a card has its libraries, where there is something.
expect 0 bare python3 -c 'import dl2._decoders'

# What is needed from outside is libc's family and the compiler's own library.
for file in $site/dl2/_core.abi3.so $site/dl2/_decoders.abi3.so $site/dl2/lib/*.so* $site/dl2/libexec/dl2-*; do
    for library in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $library in
        ld-linux* | libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | libstdc++.so.* | libgcc_s.so.*) ;;
        *) [ -e "$(echo $site)/dl2/lib/$library" ] || [ -e "$(echo $site)/dl2/lib/node/$library" ] || fail "${file##*/} needs $library" ;;
        esac
    done
    readelf -d "$file" | grep -E 'RUNPATH|RPATH' | grep -v '\[\$ORIGIN' && fail "$file looks elsewhere"
done
# Each library has a name of its own, and its license.
tail -n +2 $site/dl2/share/licenses/LIBRARIES | while IFS='	' read -r library package version license; do
    [ -e "$(echo $site)/dl2/lib/$library" ] || fail "LIBRARIES has $library, which isn't there"
    printf '%s\n' "$library" | grep -Eq -- '-[0-9a-f]{8}\.so' || fail "$library has a name that others have"
    case $license in share/*) [ -s "$(echo $site)/dl2/$license" ] || fail "no license of $package" ;; esac
done || exit 1
[ -s $site/dl2_images-*.dist-info/LICENSE ] || fail "dl2's own license is not there"

# Asters are dark, roses bright.
"$PYTHON3" "$srcdir/tests/python/train_plain.py" make flowers || exit 99
expect 0 dl2-load bench --digest --quiet -i 32 -b 8 -e 1 flowers
wanted=$(grep '^digest' "$work/out")
expect 0 bare dl2-load bench --digest --quiet -i 32 -b 8 -e 1 flowers
is "$(grep '^digest' "$work/out")" "$wanted" "what the wheel's dl2-load loads"
for program in "$builddir"/dl2-*; do
    [ ! -f "$program" ] || [ ! -x "$program" ] || expect 0 bare "${program##*/}" --version
done
expect 0 bare dl2-train --quiet -j 1 --threads 1 -d flowers -a convnet --image-size 16 -b 8 -e 2 --out trained
[ -s trained/experiment_report.json ] || fail "dl2-train has trained nothing"
expect 1 bare dl2-load check nowhere
expect 0 bare python3 "$srcdir/tests/python/train_plain.py" train flowers
grep -q '^loss .*, 8 of 8 right$' "$work/out" || fail "the training loop: $(cat "$work/out")"

# With the PyTorch that is here, and Pillow, whose libraries have the same names.
if "$PYTHON3" -c 'import torch, torchvision, PIL' 2>/dev/null; then
    packages=$("$PYTHON3" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
    expect 0 bare env PYTHONPATH="$packages" python3 -c '
import io, sys
from PIL import Image
import dl2
from dl2.torch import Dataset
file = io.BytesIO()
Image.new("RGB", (9, 9)).save(file, "jpeg")
assert dl2.__file__.startswith(sys.prefix), dl2.__file__
assert Dataset("flowers")[0][0].size == (40, 40)'
    expect 0 bare env PYTHONPATH="$packages" python3 "$srcdir/examples/train_torch.py" flowers --epochs 1 --batch 8 --size 32
    grep -q '^epoch 0: .* of 8 images$' "$work/out" || fail "$(cat "$work/out")"
else
    echo "no PyTorch and torchvision here: the example was not tried with the wheel (Debian: python3-torchvision)"
fi

# The same wheel with every other Python from 3.9 on that is on PATH and starts, which a shim of pyenv may not.
own=$("$PYTHON3" -c 'import sys; print(sys.version_info.minor)')
minor=8
while [ $((minor += 1)) -le 30 ]; do
    other=$("python3.$minor" -c 'import ensurepip, sys; print(sys.executable)' 2>/dev/null) && [ "$minor" != "$own" ] || continue
    expect 0 env -i PATH=/usr/bin:/bin "$other" -m venv "$work/other"
    of_other() { env -i PATH="$work/other/bin:/usr/bin:/bin" "$@"; }
    expect 0 of_other pip install --no-index --no-cache-dir --disable-pip-version-check "$wheel"
    expect 0 of_other dl2-load --version
    expect 0 of_other python3 "$srcdir/tests/python/train_plain.py" train flowers
    grep -q '^loss .*, 8 of 8 right$' "$work/out" || fail "the training loop with Python 3.$minor: $(cat "$work/out")"
    if packages=$("$other" -c 'import os, numpy; print(os.path.dirname(os.path.dirname(numpy.__file__)))' 2>/dev/null); then
        expect 0 of_other env PYTHONPATH="$packages" python3 -c 'import dl2, sys; assert dl2.__file__.startswith(sys.prefix), dl2.__file__'
        expect 0 of_other env PYTHONPATH="$packages" python3 "$srcdir/tests/python/test_images.py" Masks
        echo "Python 3.$minor: as well, with NumPy"
    else
        echo "Python 3.$minor: as well, but it has no NumPy to compare arrays with"
    fi
    rm -r "$work/other"
done
exit 0
