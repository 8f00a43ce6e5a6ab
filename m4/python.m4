# SPDX-License-Identifier: BSD-2-Clause
# DL2_WITH_PYTHON: the module dl2, for $PYTHON3 (3.9 or later, whose stable ABI it is built for), which needs its
# headers and DLPack's. Sets PYTHON_CPPFLAGS, and pyexecdir, where that Python looks for modules below the prefix.
AC_DEFUN([DL2_WITH_PYTHON], [
  AC_ARG_WITH([python], [AS_HELP_STRING([--with-python=auto|yes|no], [Python module (default: auto)])], [], [with_python=auto])
  have_python=no
  AS_VAR_IF([with_python], [no], [dl2_found="no (switched off)"], [
    AC_MSG_CHECKING([for the headers of Python 3.9 or later])
    dl2_python=`test -n "$PYTHON3" && "$PYTHON3" - "$prefix" 2>/dev/null <<'PYTHON'
import os, sys, sysconfig
# Debian's Python looks in dist-packages below /usr/local and /usr; other prefixes have what is usual elsewhere.
below = {"NONE": ("posix_local", "/local"), "/usr/local": ("posix_local", "/local"), "/usr": ("deb_system", "")}
scheme, cut = below.get(sys.argv[[1]], ("posix_prefix", ""))
if scheme not in sysconfig.get_scheme_names():
    scheme, cut = "posix_prefix", ""
folder = sysconfig.get_path("platlib", scheme, vars={"base": "", "platbase": ""})[[len(cut):]]
include = sysconfig.get_path("include")
if sys.version_info >= (3, 9) and os.path.exists(include + "/Python.h"):
    print(include, folder, sys.version.split()[[0]])
PYTHON`
    AS_IF([test -n "$dl2_python"], [
      set dummy $dl2_python
      PYTHON_CPPFLAGS="-isystem $[2]"
      AS_VAR_IF([pyexecdir], [], [pyexecdir='${exec_prefix}'$[3]])
      dl2_found="yes, $[4]"
      AC_MSG_RESULT([$[2]])
      AC_CHECK_HEADER([dlpack/dlpack.h], [have_python=yes], [dl2_found="no (Debian: libdlpack-dev)"])
    ], [
      AC_MSG_RESULT([none])
      dl2_found="no (Debian: python3-dev)"
    ])
    AS_CASE([$with_python:$have_python], [yes:no], [AC_MSG_ERROR([--with-python: $dl2_found])])
  ])
  AC_SUBST([PYTHON_CPPFLAGS])
  AC_ARG_VAR([pyexecdir], [where the Python module is installed])
  AM_CONDITIONAL([HAVE_PYTHON], [test "x$have_python" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "Python module"` $dl2_found])
])
