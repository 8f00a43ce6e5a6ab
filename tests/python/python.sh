#!/bin/sh
# The Python module, as it was built, against NumPy and PyTorch.
. "$srcdir/tests/lib.sh"
[ -e "$builddir/python/dl2.la" ] || skip "the Python module isn't built (Debian: python3-dev, libdlpack-dev)"
need_python numpy python3-numpy
# The sanitizers' runtime has to be there before Python is.
case "$CC" in
*-fsanitize=*thread*) skip "ThreadSanitizer takes Python's own locks for races" ;;
*-fsanitize=*address*)
    case $($CC --version) in
    *clang*) LD_PRELOAD=$($CC -print-file-name=libclang_rt.asan-$(uname -m).so) ;;
    *) LD_PRELOAD=$($CC -print-file-name=libasan.so) ;;
    esac
    [ -e "$LD_PRELOAD" ] || skip "no shared AddressSanitizer runtime to load before Python: $LD_PRELOAD"
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # what Python keeps to the end
    export LD_PRELOAD ASAN_OPTIONS ;;
esac
PYTHONPATH=$builddir/python/.libs PYTHONDONTWRITEBYTECODE=1 "$PYTHON3" "$srcdir/tests/python/test_dl2.py"
