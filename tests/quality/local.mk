# SPDX-License-Identifier: BSD-2-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/quality/test_metric
tests_quality_test_metric_SOURCES = tests/quality/test_metric.c tests/quality/pattern.h tests/quality/golden.inc
tests_quality_test_metric_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_quality_test_metric_LDADD = libquality.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/quality/test_metric
endif
EXTRA_DIST += tests/quality/make_golden.py

check_PROGRAMS += tests/quality/make_image
tests_quality_make_image_SOURCES = tests/quality/make_image.c tests/quality/pattern.h
TESTS += tests/quality/quality.sh tests/quality/parts.sh tests/quality/volumes.sh
EXTRA_DIST += tests/quality/quality.sh tests/quality/parts.sh tests/quality/volumes.sh tests/quality/volumes.py
TESTS += tests/quality/skimage.sh tests/quality/kodak.sh tests/quality/schema.sh
EXTRA_DIST += tests/quality/skimage.sh tests/quality/compare_skimage.py tests/quality/kodak.sh tests/quality/schema.sh

# Not a test: `make tests/bench/bench_metrics && ./tests/bench/bench_metrics`.
EXTRA_PROGRAMS += tests/bench/bench_metrics
EXTRA_DIST += tests/bench/metrics.sh
tests_bench_bench_metrics_SOURCES = tests/bench/bench_metrics.c tests/quality/pattern.h
tests_bench_bench_metrics_LDADD = libquality.la libcommon.la
