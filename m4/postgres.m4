# SPDX-License-Identifier: BSD-2-Clause
# DL2_WITH_POSTGRES: the extension, for the server whose pg_config is $PG_CONFIG, which needs the server's headers (12 or
# later). Sets POSTGRES_CPPFLAGS, and postgres_bindir, postgres_libdir and postgres_datadir, that server's own folders.
AC_DEFUN([DL2_WITH_POSTGRES], [
  AC_ARG_WITH([postgres-extension],
    [AS_HELP_STRING([--with-postgres-extension=auto|yes|no], [extension of the PostgreSQL server (default: auto)])],
    [], [with_postgres_extension=auto])
  AC_ARG_VAR([PG_CONFIG], [pg_config of the PostgreSQL server that the extension is for])
  have_postgres=no
  AS_VAR_IF([with_postgres_extension], [no], [dl2_found="no (switched off)"], [
    AC_PATH_PROG([PG_CONFIG], [pg_config])
    dl2_found="no (Debian: postgresql-server-dev-all)"
    AS_IF([test -n "$PG_CONFIG"], [
      POSTGRES_CPPFLAGS="-isystem `$PG_CONFIG --includedir-server` -isystem `$PG_CONFIG --includedir`"
      dl2_saved_cppflags=$CPPFLAGS
      CPPFLAGS="$CPPFLAGS $POSTGRES_CPPFLAGS -D_GNU_SOURCE"
      AC_MSG_CHECKING([for the headers of PostgreSQL's server])
      AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <postgres.h>
#include <fmgr.h>
#if PG_VERSION_NUM < 120000
#error too old
#endif
PG_MODULE_MAGIC;]])], [
        have_postgres=yes
        postgres_bindir=`$PG_CONFIG --bindir`
        postgres_libdir=`$PG_CONFIG --pkglibdir`
        postgres_datadir=`$PG_CONFIG --sharedir`
        dl2_found="yes, `$PG_CONFIG --version | sed 's/^PostgreSQL //; s/ .*//'`"])
      AC_MSG_RESULT([$have_postgres])
      CPPFLAGS=$dl2_saved_cppflags
    ])
    AS_CASE([$with_postgres_extension:$have_postgres], [yes:no], [AC_MSG_ERROR([--with-postgres-extension: $dl2_found])])
  ])
  AC_SUBST([POSTGRES_CPPFLAGS])
  AC_SUBST([postgres_bindir])
  AC_SUBST([postgres_libdir])
  AC_SUBST([postgres_datadir])
  AM_CONDITIONAL([HAVE_POSTGRES], [test "x$have_postgres" = xyes])
  DL2_SUMMARY_ADD([`printf '%-26s' "PostgreSQL extension"` $dl2_found])
])
