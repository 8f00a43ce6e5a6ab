# SPDX-License-Identifier: BSD-2-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/common/test_common
tests_common_test_common_SOURCES = tests/common/test_common.c
tests_common_test_common_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_common_test_common_LDADD = libpixels.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/common/test_common
endif
TESTS += tests/common/card.sh tests/common/completion.sh tests/common/hints.sh tests/common/streams.sh tests/common/timeline.sh
EXTRA_DIST += tests/common/card.sh tests/common/completion.sh tests/common/hints.sh tests/common/streams.sh tests/common/timeline.sh tests/common/fake_nvml.c
