# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/volumes/fuzz_npy
tests_volumes_fuzz_npy_SOURCES = tests/volumes/fuzz_npy.c
tests_volumes_fuzz_npy_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_volumes_fuzz_npy_LDADD = $(FUZZ_LIBS) libdataset.la
TESTS += tests/volumes/fuzz_npy.sh
EXTRA_DIST += tests/volumes/fuzz_npy.sh

check_PROGRAMS += tests/volumes/fuzz_slices
tests_volumes_fuzz_slices_SOURCES = tests/volumes/fuzz_slices.c
tests_volumes_fuzz_slices_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_volumes_fuzz_slices_LDADD = $(FUZZ_LIBS) libdataset.la
TESTS += tests/volumes/fuzz_slices.sh
EXTRA_DIST += tests/volumes/fuzz_slices.sh

if HAVE_CMOCKA
check_PROGRAMS += tests/volumes/test_volume
tests_volumes_test_volume_SOURCES = tests/volumes/test_volume.c $(SCRATCH)
tests_volumes_test_volume_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_volumes_test_volume_LDADD = libdataset.la $(CMOCKA_LIBS)
TESTS += tests/volumes/test_volume
endif
EXTRA_DIST += tests/volumes/make_raw_volumes.py
