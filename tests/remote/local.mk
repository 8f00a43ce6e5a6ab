# SPDX-License-Identifier: BSD-2-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/remote/test_remote
tests_remote_test_remote_SOURCES = tests/remote/test_remote.c $(SCRATCH)
tests_remote_test_remote_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_remote_test_remote_LDADD = libdataset.la $(CMOCKA_LIBS)
TESTS += tests/remote/test_remote
endif

# These start servers, and skip where none is installed.
TESTS += tests/remote/remote.sh tests/remote/remote_s3.sh
EXTRA_DIST += tests/remote/remote.sh tests/remote/remote_s3.sh tests/remote/proxy.py tests/remote/s3.py
EXTRA_DIST += tests/bench/remote.sh
if HAVE_LIBCURL
check_PROGRAMS += tests/remote/fuzz_listing
tests_remote_fuzz_listing_SOURCES = tests/remote/fuzz_listing.c
tests_remote_fuzz_listing_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_remote_fuzz_listing_LDADD = $(FUZZ_LIBS) libdataset.la
TESTS += tests/remote/fuzz_listing.sh
endif
EXTRA_DIST += tests/remote/fuzz_listing.sh
