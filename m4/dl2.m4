# SPDX-License-Identifier: BSD-2-Clause
# Macros for optional dependencies: auto (use it if found), yes (an error if not found), no.
# Each adds a line to the table that configure ends with.

m4_define([DL2_SUMMARY_ADD], [dl2_summary="$dl2_summary
  $1"])

# DL2_WITH_PKG(option, VARIABLE, pkg-config module, description, Debian package)
AC_DEFUN([DL2_WITH_PKG], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$4 (default: auto)])], [], [with_$1=auto])
  have_$1=no
  AS_VAR_IF([with_$1], [no], [],
    [PKG_CHECK_MODULES([$2], [$3], [have_$1=yes],
      [AS_VAR_IF([with_$1], [yes], [AC_MSG_ERROR([--with-$1: $3 not found (Debian: $5)])])])])
  AS_VAR_IF([have_$1], [yes],
    [AC_DEFINE([HAVE_$2], [1], [Define to 1 for $4])
     dl2_found="yes, `$PKG_CONFIG --modversion m4_bpatsubst([$3], [ .*], [])`"],
    [AS_VAR_IF([with_$1], [no], [dl2_found="no (switched off)"], [dl2_found="no (Debian: $5)"])])
  AM_CONDITIONAL([HAVE_$2], [test "x$have_$1" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "$4"` $dl2_found])
])

# DL2_WITH_LIB(option, VARIABLE, header, library, function, description, Debian package, preprocessor condition)
# For libraries without a pkg-config file. One whose header does not meet the condition counts as not found.
AC_DEFUN([DL2_WITH_LIB], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$6 (default: auto)])], [], [with_$1=auto])
  have_$1=no
  AS_VAR_IF([with_$1], [no], [],
    [AC_CHECK_HEADER([$3],
      [AC_MSG_CHECKING([whether $3 has $8])
       AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <$3>
#if !($8)
#error another version
#endif]])], [dl2_version=yes], [dl2_version=no])
       AC_MSG_RESULT([$dl2_version])
       AS_VAR_IF([dl2_version], [yes], [AC_CHECK_LIB([$4], [$5], [have_$1=yes; $2_LIBS=-l$4])])])
     AS_CASE([$with_$1:$have_$1], [yes:no], [AC_MSG_ERROR([--with-$1: no $3 with $8, or no lib$4 (Debian: $7)])])])
  AC_SUBST([$2_LIBS])
  AS_VAR_IF([have_$1], [yes],
    [AC_DEFINE([HAVE_$2], [1], [Define to 1 for $6])
     dl2_found=yes],
    [AS_VAR_IF([with_$1], [no], [dl2_found="no (switched off)"], [dl2_found="no (Debian: $7)"])])
  AM_CONDITIONAL([HAVE_$2], [test "x$have_$1" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "$6"` $dl2_found])
])

# DL2_SIMD_FLAGS(NAME, flags, description, includes, body): NAME_CFLAGS and the conditional HAVE_NAME, where the compiler
# takes the program
AC_DEFUN([DL2_SIMD_FLAGS], [
  AC_MSG_CHECKING([whether $CC can compile for $3])
  dl2_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS $2"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([$4], [$5])], [have_simd=yes], [have_simd=no])
  CFLAGS=$dl2_saved_cflags
  AC_MSG_RESULT([$have_simd])
  AS_VAR_IF([have_simd], [yes], [AC_SUBST([$1_CFLAGS], ["$2"])
    AC_DEFINE([HAVE_$1], [1], [Define to 1 if the compiler can make $3 code])])
  AM_CONDITIONAL([HAVE_$1], [test "x$have_simd" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "$3 code"` $have_simd])
])

# DL2_OPENMP: OPENMP_CFLAGS and OPENMP_LIBS for the same OpenMP runtime as oneDNN's, GCC's. Clang would bring a second
# one into the process; it links GCC's instead, and runs our own loops on one thread. So does a build under ThreadSanitizer,
# which can't see GCC's runtime hand over work and takes every loop for a race.
AC_DEFUN([DL2_OPENMP], [
  AC_MSG_CHECKING([for the flags of GCC's OpenMP runtime])
  dl2_saved_cflags=$CFLAGS
  dl2_saved_libs=$LIBS
  dl2_openmp=no
  dl2_ways="-fopenmp=libgomp:-lgomp -fopenmp: -Wno-unknown-pragmas:-lgomp"
  AS_CASE([$enable_sanitize], [*thread*], [dl2_ways="-Wno-unknown-pragmas:-lgomp"])
  for dl2_try in $dl2_ways; do
    OPENMP_CFLAGS=${dl2_try%%:*}
    OPENMP_LIBS=${dl2_try#*:}
    CFLAGS="$dl2_saved_cflags $OPENMP_CFLAGS"
    LIBS="$dl2_saved_libs $OPENMP_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[void omp_set_num_threads(int);]], [[omp_set_num_threads(1);]])],
      [dl2_openmp=yes; break])
  done
  CFLAGS=$dl2_saved_cflags
  LIBS=$dl2_saved_libs
  AS_VAR_IF([dl2_openmp], [yes], [AC_MSG_RESULT([$OPENMP_CFLAGS $OPENMP_LIBS])],
    [AC_MSG_RESULT([none])
     AS_VAR_IF([have_onednn], [yes], [AC_MSG_ERROR([oneDNN is there, GCC's OpenMP runtime is not: install libgomp1 and GCC, or configure --without-onednn])])])
  AC_SUBST([OPENMP_CFLAGS])
  AC_SUBST([OPENMP_LIBS])
])

# DL2_CXX: the conditional HAVE_CXX, whether the C compiler compiles C++ too, as GCC with g++ and Clang do: for tests that
# compile kernels for this machine. They need no C++ library.
AC_DEFUN([DL2_CXX], [
  AC_MSG_CHECKING([whether $CC compiles C++17])
  echo 'template <class T> struct a { T b; }; int c() { if constexpr (sizeof(a<int>) > 1) return 1; return 0; }' >conftest.cpp
  AS_IF([$CC -x c++ -std=c++17 -fno-exceptions -fno-rtti -c conftest.cpp -o conftest.o >&AS_MESSAGE_LOG_FD 2>&1],
    [have_cxx=yes], [have_cxx=no])
  rm -f conftest.cpp conftest.o
  AC_MSG_RESULT([$have_cxx])
  AS_VAR_IF([have_cxx], [yes], [dl2_found=yes], [dl2_found="no (Debian: g++)"])
  # Fibres stand for the card's threads, and ThreadSanitizer can't follow them.
  AS_CASE([$enable_sanitize], [*thread*], [have_cxx=no; dl2_found="no (not under ThreadSanitizer)"])
  AM_CONDITIONAL([HAVE_CXX], [test "x$have_cxx" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "kernels tested on the CPU"` $dl2_found])
])

AC_DEFUN([AX_PTHREAD_OR_FAIL], [
  AC_SEARCH_LIBS([pthread_create], [pthread], [], [AC_MSG_ERROR([POSIX threads are needed])])
])

AC_DEFUN([DL2_SUMMARY], [
  cat <<EOF

$PACKAGE_NAME $PACKAGE_VERSION is configured:
$dl2_summary
  `printf '%-26s' "gnuplot (plots)"` ${GNUPLOT:-no (Debian: gnuplot-nox)}
  `printf '%-26s' "help2man (man pages)"` ${HELP2MAN:-no (Debian: help2man)}
  `printf '%-26s' "sanitizers"` $enable_sanitize
  `printf '%-26s' "fuzzing"` $enable_fuzzing
  `printf '%-26s' "compiler"` $CC $CFLAGS

EOF
])
