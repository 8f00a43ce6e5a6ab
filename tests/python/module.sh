# SPDX-License-Identifier: BSD-2-Clause
# Sourced after lib.sh by the tests of the Python package: it as it was built, for $PYTHON3.
[ -e "$builddir/python/dl2/_core.la" ] || skip "the Python module isn't built (Debian: python3-dev, libdlpack-dev)"
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
PYTHONPATH=$builddir/python
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
