# SPDX-License-Identifier: BSD-2-Clause
# These start a server that has the extension; they skip where it was not built.
TESTS += tests/postgres/extension.sh tests/postgres/fit.sh tests/postgres/fit_servers.sh
EXTRA_DIST += tests/postgres/extension.sh tests/postgres/fit.sh tests/postgres/fit_servers.sh tests/postgres/server.sh
# Not tests: they say themselves how to run them.
EXTRA_DIST += tests/bench/access.sh tests/bench/kills.sh

check_PROGRAMS += tests/postgres/fuzz_image_work
tests_postgres_fuzz_image_work_SOURCES = tests/postgres/fuzz_image_work.c
tests_postgres_fuzz_image_work_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_postgres_fuzz_image_work_LDADD = $(FUZZ_LIBS) libimagework.la libreuse.la libquality.la libcodec.la libcommon.la
TESTS += tests/postgres/fuzz_image_work.sh
EXTRA_DIST += tests/postgres/fuzz_image_work.sh
