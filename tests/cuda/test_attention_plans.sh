# SPDX-License-Identifier: BSD-2-Clause
# That the real cuDNN has plans for the attention of all networks, on an H200 by its description. Without a driver it lists
# some only beside the toolkit's stub of libcuda.so.1.
. "$srcdir/tests/lib.sh"
plans=$builddir/tests/cuda/test_plans
[ -x "$plans" ] || skip "no CUDA toolkit or cmocka"
nvcc=${NVCC##* }
for stub in "$(dirname "$nvcc")"/../lib*/stubs/libcuda.so none; do
    [ -f "$stub" ] && break
done
"$plans" "$stub" >"$work/out" 2>&1
case $? in
0) ;;
77) cat "$work/out"; skip "see above" ;;
*) cat "$work/out" >&2; fail "plans of attention" ;;
esac
cat "$work/out"
