# DL2_WITH_CUDA: --with-cuda=auto|yes|no|DIR. Compiles and links a real kernel before it believes that CUDA is there.
# Sets NVCC, CUDA_CPPFLAGS, CUDA_LDFLAGS, CUDA_LIBS and the conditional HAVE_CUDA.
AC_DEFUN([DL2_WITH_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=auto|yes|no|DIR], [CUDA toolkit, at DIR if given (default: auto)])],
    [], [with_cuda=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  have_cuda=no
  AS_CASE([$with_cuda],
    [no], [],
    [auto|yes], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])
  AS_IF([test "x$with_cuda" != xno && test -n "$NVCC"], [
    AC_MSG_CHECKING([whether $NVCC compiles and links a kernel])
    cuda_dir=`dirname "$NVCC"`/..
    cuda_dir=`cd "$cuda_dir" && pwd -P`
    cat >conftest.cu <<'EOF'
__global__ void scale(float *x) { x[[threadIdx.x]] *= 2; }
int main(void) { scale<<<1, 32>>>(0); return cudaDeviceSynchronize() == cudaSuccess; }
EOF
    AS_IF([$NVCC -o conftest$EXEEXT conftest.cu >&AS_MESSAGE_LOG_FD 2>&1], [have_cuda=yes])
    rm -f conftest.cu conftest$EXEEXT
    AC_MSG_RESULT([$have_cuda])
  ])
  AS_CASE([$with_cuda:$have_cuda], [auto:*|no:*|*:yes], [],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: no working nvcc found there; see config.log])])
  AS_VAR_IF([have_cuda], [yes], [
    AC_SUBST([CUDA_CPPFLAGS], ["-I$cuda_dir/include"])
    AC_SUBST([CUDA_LDFLAGS], ["-L$cuda_dir/lib64"])
    AC_SUBST([CUDA_LIBS], ["-lcudart"])
    dl2_found="yes, $cuda_dir (found; no device uses it yet)"],
    [AS_VAR_IF([with_cuda], [no], [dl2_found="no (switched off)"], [dl2_found="no (CUDA toolkit)"])])
  AM_CONDITIONAL([HAVE_CUDA], [test "x$have_cuda" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "CUDA"` $dl2_found])
])
