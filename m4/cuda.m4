# SPDX-License-Identifier: BSD-2-Clause
# DL2_WITH_CUDA: --with-cuda=auto|yes|no|DIR. The training device needs the toolkit, cuDNN 9 and cublasLt, each beside the
# toolkit or where the compiler looks by itself; it is believed to be there when a real kernel compiles and a program with
# all three links. NCCL (several cards) and nvJPEG (decoding there) are optional beside it.
# Sets NVCC, NVCC_ARCH, NVCCFLAGS, CUDA_CPPFLAGS, CUDA_LIBS, CUDART_LIBS, NCCL_LIBS, NVJPEG_CPPFLAGS, NVJPEG_LIBS and the conditionals
# HAVE_CUDA, HAVE_NCCL and HAVE_NVJPEG.
AC_DEFUN([DL2_WITH_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=auto|yes|no|DIR], [CUDA toolkit with cuDNN 9, at DIR if given (default: auto)])],
    [], [with_cuda=auto])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST], [what kernels are compiled for, with commas: 90-real is machine code for cards of compute
      capability 9.0, 80-virtual what drivers of 8.0 and later compile at start, 90 both (default: 90-real,80-virtual)])],
    [], [with_cuda_arch=90-real,80-virtual])
  AC_ARG_WITH([nccl], [AS_HELP_STRING([--with-nccl=auto|yes|no], [NCCL: several cards train together (default: auto)])], [], [with_nccl=auto])
  AC_ARG_WITH([nvjpeg],
    [AS_HELP_STRING([--with-nvjpeg=auto|yes|no|DIR], [nvJPEG: decoding on the card; at DIR/include and DIR/lib if given (default: auto)])],
    [], [with_nvjpeg=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler; may begin with ccache])
  AC_ARG_VAR([NVCCFLAGS], [flags for it (default: -O3 -lineinfo)])
  have_cuda=no
  have_nccl=no
  have_nvjpeg=no
  dl2_cuda_lacks="no CUDA toolkit"
  AS_CASE([$with_cuda],
    [no], [],
    [auto|yes], [AS_VAR_IF([NVCC], [], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])])],
    [AS_VAR_IF([NVCC], [], [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])])
  AS_IF([test "x$with_cuda" != xno && test -n "$NVCC"], [DL2_CUDA_TRY])
  AS_CASE([$with_cuda:$have_cuda], [auto:*|no:*|*:yes], [],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: $dl2_cuda_lacks; see config.log])])
  AS_VAR_IF([have_cuda], [yes], [
    AC_DEFINE([HAVE_CUDA], [1], [Define to 1 for the training device cuda])
    dl2_found="yes, $dl2_cuda_release in $cuda_dir, cuDNN $dl2_cudnn, for $with_cuda_arch"],
    [AS_VAR_IF([with_cuda], [no], [dl2_found="no (switched off)"], [dl2_found="no ($dl2_cuda_lacks)"])])
  DL2_SUMMARY_ADD([`printf '%-26s' "CUDA (device cuda)"` $dl2_found])
  AS_CASE([$with_nccl:$have_nccl], [yes:no], [AC_MSG_ERROR([--with-nccl: no nccl.h and libnccl beside a CUDA toolkit; see config.log])])
  AS_VAR_IF([have_nccl], [yes], [AC_DEFINE([HAVE_NCCL], [1], [Define to 1 for NCCL])])
  DL2_SUMMARY_ADD([`printf '%-26s' "NCCL (several cards)"` $have_nccl])
  AS_CASE([$with_nvjpeg:$have_nvjpeg], [auto:*|no:*|*:yes], [],
    [AC_MSG_ERROR([--with-nvjpeg=$with_nvjpeg: no nvjpeg.h and libnvjpeg there, or no CUDA toolkit; see config.log])])
  AS_VAR_IF([have_nvjpeg], [yes],
    [AC_DEFINE([HAVE_NVJPEG], [1], [Define to 1 for nvJPEG])
     dl2_found="yes$dl2_nvjpeg_where"], [dl2_found="no (comes with the CUDA toolkit, or as the Python wheel nvidia-nvjpeg)"])
  DL2_SUMMARY_ADD([`printf '%-26s' "nvJPEG (decoding)"` $dl2_found])
  AC_SUBST([NVCC_ARCH])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([CUDART_LIBS])
  AC_SUBST([NCCL_LIBS])
  AC_SUBST([NVJPEG_CPPFLAGS])
  AC_SUBST([NVJPEG_LIBS])
  AM_CONDITIONAL([HAVE_CUDA], [test "x$have_cuda" = xyes])
  AM_CONDITIONAL([HAVE_NCCL], [test "x$have_nccl" = xyes])
  AM_CONDITIONAL([HAVE_NVJPEG], [test "x$have_nvjpeg" = xyes])
])

# Flags from the list of architectures, then the kernel, then the libraries.
AC_DEFUN([DL2_CUDA_TRY], [
  AS_VAR_IF([NVCCFLAGS], [], [NVCCFLAGS="-O3 -lineinfo"])
  dl2_nvcc=${NVCC##* }
  dl2_nvcc=`command -v "$dl2_nvcc"`
  cuda_dir=`dirname "$dl2_nvcc"`/..
  cuda_dir=`cd "$cuda_dir" && pwd -P`
  dl2_cuda_release=[`$NVCC --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'`]
  for dl2_arch in `echo "$with_cuda_arch" | tr , ' '`; do
    dl2_number=${dl2_arch%%-*}
    AS_CASE([$dl2_arch],
      [*-real], [NVCC_ARCH="$NVCC_ARCH -gencode=arch=compute_$dl2_number,code=sm_$dl2_number"],
      [*-virtual], [NVCC_ARCH="$NVCC_ARCH -gencode=arch=compute_$dl2_number,code=compute_$dl2_number"],
      [NVCC_ARCH="$NVCC_ARCH -gencode=arch=compute_$dl2_number,code=[[sm_$dl2_number,compute_$dl2_number]]"])
  done
  AC_MSG_CHECKING([whether $NVCC compiles and links a kernel for $with_cuda_arch])
  cat >conftest.cu <<'EOT'
__global__ void scale(float *x) { x[[threadIdx.x]] *= 2; }
int main(void) { scale<<<1, 32>>>(0); return cudaDeviceSynchronize() == cudaSuccess; }
EOT
  AS_IF([$NVCC $NVCC_ARCH -o conftest$EXEEXT conftest.cu >&AS_MESSAGE_LOG_FD 2>&1], [dl2_kernel=yes],
    [dl2_kernel=no; dl2_cuda_lacks="$NVCC compiles no kernel"])
  rm -f conftest.cu conftest$EXEEXT
  AC_MSG_RESULT([$dl2_kernel])

  # -isystem: NVIDIA's headers aren't clean under our warnings.
  CUDA_CPPFLAGS="-isystem $cuda_dir/include"
  dl2_cuda_path="-L$cuda_dir/lib64"
  AS_VAR_IF([dl2_kernel], [yes], [
    DL2_CUDA_LINK([cuDNN 9 and cublasLt], [cudnn.h], [CUDNN_MAJOR >= 9], [cublasLt.h],
      [cudnnHandle_t d; cublasLtHandle_t b; return cudaGetDeviceCount(&(int){0}) | (int)cudnnCreate(&d) | (int)cublasLtCreate(&b);],
      [$dl2_cuda_path -lcudnn -lcublasLt -lcudart])
    AS_VAR_IF([dl2_links], [no], [dl2_cuda_lacks="no cuDNN 9 and cublasLt beside $NVCC"], [
      have_cuda=yes
      CUDART_LIBS="$dl2_run_path $dl2_cuda_path -lcudart -lstdc++"
      CUDA_LIBS="$dl2_run_path $dl2_cuda_path -lcudnn -lcublasLt"
      dl2_cudnn=[`printf '#include <cudnn_version.h>\nversion CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL\n' | $CC $CUDA_CPPFLAGS -E -P - 2>/dev/null | sed -n 's/^version \([0-9]*\) \([0-9]*\) \([0-9]*\).*/\1.\2.\3/p'`]
    ])
  ])
  AS_IF([test "x$with_nccl" != xno && test $have_cuda = yes], [
    DL2_CUDA_LINK([NCCL], [nccl.h], [NCCL_MAJOR >= 2], [cuda_runtime_api.h],
      [int version; return ncclGetVersion(&version);], [$dl2_cuda_path -lnccl])
    have_nccl=$dl2_links
    AS_VAR_IF([have_nccl], [yes], [NCCL_LIBS="$dl2_run_path $dl2_cuda_path -lnccl"])
  ])
  AS_IF([test "x$with_nvjpeg" != xno && test $have_cuda = yes], [
    dl2_nvjpeg_path=$dl2_cuda_path
    dl2_saved_cuda_cppflags=$CUDA_CPPFLAGS
    AS_CASE([$with_nvjpeg], [auto|yes], [], [
      NVJPEG_CPPFLAGS="-isystem $with_nvjpeg/include"
      dl2_nvjpeg_path="-L$with_nvjpeg/lib"
      # The wheel has no libnvjpeg.so, only libnvjpeg.so.13.
      dl2_nvjpeg_lib=`ls "$with_nvjpeg"/lib/libnvjpeg.so "$with_nvjpeg"/lib/libnvjpeg.so.* 2>/dev/null | sed '1s,.*/,-l:,;1q'`
      dl2_nvjpeg_where=", $with_nvjpeg"
    ])
    AS_VAR_IF([dl2_nvjpeg_lib], [], [dl2_nvjpeg_lib=-lnvjpeg])
    CUDA_CPPFLAGS="$NVJPEG_CPPFLAGS $CUDA_CPPFLAGS"
    DL2_CUDA_LINK([nvJPEG], [nvjpeg.h], [NVJPEG_VER_MAJOR >= 11], [cuda_runtime_api.h],
      [int version; return nvjpegGetProperty(MAJOR_VERSION, &version);], [$dl2_nvjpeg_path $dl2_nvjpeg_lib])
    CUDA_CPPFLAGS=$dl2_saved_cuda_cppflags
    have_nvjpeg=$dl2_links
    AS_VAR_IF([have_nvjpeg], [yes], [NVJPEG_LIBS="$dl2_run_path $dl2_nvjpeg_path $dl2_nvjpeg_lib"])
  ])
])

# DL2_CUDA_LINK(what, header, condition, another header, body, libraries): sets dl2_links, and dl2_run_path to -R flags
# where the program starts only with these.
AC_DEFUN([DL2_CUDA_LINK], [
  AC_MSG_CHECKING([for $1])
  dl2_saved_cppflags=$CPPFLAGS
  dl2_saved_libs=$LIBS
  CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
  LIBS="$6 $LIBS"
  dl2_run_path=
  AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <$2>
#include <$4>
#if !($3)
#error another version
#endif
int main(int argc, char **argv)
{
    (void)argv;
    if (argc < 2)
        return 0;
    $5
}]])], [
    dl2_links=yes
    AS_IF([test "x$cross_compiling" = xyes || ./conftest$EXEEXT >&AS_MESSAGE_LOG_FD 2>&1], [],
      [dl2_run_path=-R`echo "$6" | sed 's/^-L\([[^ ]]*\).*/\1/'`])
  ], [dl2_links=no])
  CPPFLAGS=$dl2_saved_cppflags
  LIBS=$dl2_saved_libs
  AC_MSG_RESULT([$dl2_links])
])
