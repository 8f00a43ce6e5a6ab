# SPDX-License-Identifier: BSD-2-Clause
# tests of pixels
if HAVE_CMOCKA
check_PROGRAMS += tests/pixels/test_resize tests/pixels/test_operations
tests_pixels_test_resize_SOURCES = tests/pixels/test_resize.c tests/pixels/resize_golden.h
tests_pixels_test_resize_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_pixels_test_resize_LDADD = libpixels.la $(CMOCKA_LIBS)
tests_pixels_test_operations_SOURCES = tests/pixels/test_operations.c tests/pixels/operations_golden.h
tests_pixels_test_operations_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_pixels_test_operations_LDADD = libpixels.la $(CMOCKA_LIBS)
TESTS += tests/pixels/test_resize tests/pixels/test_operations
check_PROGRAMS += tests/pixels/test_volume_resample
tests_pixels_test_volume_resample_SOURCES = tests/pixels/test_volume_resample.c tests/pixels/resample_golden.h
tests_pixels_test_volume_resample_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_pixels_test_volume_resample_LDADD = libpixels.la $(CMOCKA_LIBS)
TESTS += tests/pixels/test_volume_resample
endif
check_PROGRAMS += tests/pixels/fuzz_augmentation
tests_pixels_fuzz_augmentation_SOURCES = tests/pixels/fuzz_augmentation.c
tests_pixels_fuzz_augmentation_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_pixels_fuzz_augmentation_LDADD = $(FUZZ_LIBS) libpixels.la
TESTS += tests/pixels/fuzz_augmentation.sh
EXTRA_DIST += tests/pixels/fuzz_augmentation.sh tests/pixels/gen_resize.py tests/pixels/gen_operations.py tests/pixels/gen_resample.py tests/pixels/roll_plugin.c

# Not a test: `make tests/bench/bench_resize && ./tests/bench/bench_resize`.
EXTRA_PROGRAMS += tests/bench/bench_resize
tests_bench_bench_resize_SOURCES = tests/bench/bench_resize.c
tests_bench_bench_resize_LDADD = libpixels.la

# Not a test: see tests/bench/compare_augment.py.
EXTRA_PROGRAMS += tests/bench/bench_augment
tests_bench_bench_augment_SOURCES = tests/bench/bench_augment.c
tests_bench_bench_augment_LDADD = libpixels.la
EXTRA_DIST += tests/bench/compare_augment.py

check_PROGRAMS += tests/pixels/show_volume_operation
tests_pixels_show_volume_operation_SOURCES = tests/pixels/show_volume_operation.c
tests_pixels_show_volume_operation_LDADD = libpixels.la
TESTS += tests/pixels/volume_operations.sh
EXTRA_DIST += tests/pixels/volume_operations.sh tests/pixels/compare_volume_operations.py
