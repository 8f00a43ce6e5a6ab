# SPDX-License-Identifier: BSD-2-Clause
# tests of ranks
if HAVE_CMOCKA
check_PROGRAMS += tests/ranks/test_ranks tests/ranks/test_world
tests_ranks_test_ranks_SOURCES = tests/ranks/test_ranks.c
tests_ranks_test_ranks_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_ranks_test_ranks_LDADD = libnetwork.la $(CMOCKA_LIBS)
tests_ranks_test_world_SOURCES = tests/ranks/test_world.c
tests_ranks_test_world_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_ranks_test_world_LDADD = libranks.la $(CMOCKA_LIBS)
TESTS += tests/ranks/test_ranks tests/ranks/test_world
endif
ranks_tests = tests/ranks/test_gpus.sh tests/ranks/test_local.sh tests/ranks/test_machines.sh tests/ranks/test_mpi.sh
TESTS += $(ranks_tests)
EXTRA_DIST += $(ranks_tests)
