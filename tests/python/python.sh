#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The Python module, as it was built, against NumPy and PyTorch.
. "$srcdir/tests/lib.sh"
[ -e "$builddir/python/dl2.la" ] || skip "the Python module isn't built (Debian: python3-dev, libdlpack-dev)"
need_python numpy python3-numpy
# A sanitizer's runtime has to be there before Python is.
case "$CC" in
*-fsanitize=*thread*) runtime=tsan ;;
*-fsanitize=*address*) runtime=asan ;;
*-fsanitize=*) skip "this test knows how to load the runtimes of AddressSanitizer and ThreadSanitizer" ;;
*) runtime= ;;
esac
if [ -n "$runtime" ]; then
    case $($CC --version) in
    *clang*) LD_PRELOAD=$($CC -print-file-name=libclang_rt.$runtime-$(uname -m).so) ;;
    *) LD_PRELOAD=$($CC -print-file-name=lib$runtime.so) ;;
    esac
    [ -e "$LD_PRELOAD" ] || skip "no shared library $LD_PRELOAD to load before Python"
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # what Python keeps to the end
    export LD_PRELOAD ASAN_OPTIONS
fi
PYTHONPATH=$builddir/python/.libs PYTHONDONTWRITEBYTECODE=1 "$PYTHON3" "$srcdir/tests/python/test_dl2.py"
