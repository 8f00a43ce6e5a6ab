check_PROGRAMS += tests/dataset/fuzz_idx
tests_dataset_fuzz_idx_SOURCES = tests/dataset/fuzz_idx.c
tests_dataset_fuzz_idx_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_dataset_fuzz_idx_LDADD = $(FUZZ_LIBS) libdataset.la
TESTS += tests/dataset/fuzz_idx.sh
EXTRA_DIST += tests/dataset/fuzz_idx.sh tests/dataset/gen_split.py

if HAVE_CMOCKA
check_PROGRAMS += tests/dataset/test_dataset
tests_dataset_test_dataset_SOURCES = tests/dataset/test_dataset.c
tests_dataset_test_dataset_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(ZLIB_CFLAGS)
tests_dataset_test_dataset_LDADD = libdataset.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
TESTS += tests/dataset/test_dataset
endif
EXTRA_DIST += tests/dataset/gen_gulp.py
if HAVE_CMOCKA
check_PROGRAMS += tests/dataset/test_packed
tests_dataset_test_packed_SOURCES = tests/dataset/test_packed.c tests/dataset/gulp_golden.h
tests_dataset_test_packed_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_dataset_test_packed_LDADD = libdataset.la $(CMOCKA_LIBS)
TESTS += tests/dataset/test_packed
endif

# Not a test: what it is for it says itself.
EXTRA_PROGRAMS += tests/bench/bench_dataset
tests_bench_bench_dataset_SOURCES = tests/bench/bench_dataset.c
tests_bench_bench_dataset_LDADD = libdataset.la
