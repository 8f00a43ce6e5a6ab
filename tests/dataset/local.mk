# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/dataset/fuzz_idx
tests_dataset_fuzz_idx_SOURCES = tests/dataset/fuzz_idx.c
tests_dataset_fuzz_idx_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_dataset_fuzz_idx_LDADD = $(FUZZ_LIBS) libdataset.la
TESTS += tests/dataset/fuzz_idx.sh
EXTRA_DIST += tests/dataset/fuzz_idx.sh tests/dataset/gen_split.py

check_PROGRAMS += tests/dataset/fuzz_labels
tests_dataset_fuzz_labels_SOURCES = tests/dataset/fuzz_labels.c
tests_dataset_fuzz_labels_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_dataset_fuzz_labels_LDADD = $(FUZZ_LIBS) libdataset.la
TESTS += tests/dataset/fuzz_labels.sh
EXTRA_DIST += tests/dataset/fuzz_labels.sh

if HAVE_CMOCKA
check_PROGRAMS += tests/dataset/test_dataset
tests_dataset_test_dataset_SOURCES = tests/dataset/test_dataset.c $(SCRATCH)
tests_dataset_test_dataset_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(ZLIB_CFLAGS)
tests_dataset_test_dataset_LDADD = libdataset.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
TESTS += tests/dataset/test_dataset
check_PROGRAMS += tests/dataset/test_packed
tests_dataset_test_packed_SOURCES = tests/dataset/test_packed.c $(SCRATCH)
tests_dataset_test_packed_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(XXHASH_CFLAGS)
tests_dataset_test_packed_LDADD = libdataset.la $(CMOCKA_LIBS)
TESTS += tests/dataset/test_packed
check_PROGRAMS += tests/dataset/test_clips
tests_dataset_test_clips_SOURCES = tests/dataset/test_clips.c $(SCRATCH)
tests_dataset_test_clips_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_dataset_test_clips_LDADD = libdataset.la $(CMOCKA_LIBS)
TESTS += tests/dataset/test_clips
check_PROGRAMS += tests/dataset/test_heap_page
tests_dataset_test_heap_page_SOURCES = tests/dataset/test_heap_page.c
tests_dataset_test_heap_page_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_dataset_test_heap_page_LDADD = libdataset.la $(CMOCKA_LIBS)
TESTS += tests/dataset/test_heap_page
endif
SCRATCH = tests/dataset/scratch.c tests/dataset/scratch.h
EXTRA_DIST += tests/dataset/gen_gulp.py tests/dataset/gulpio

# Not a test: what it is for it says itself.
EXTRA_PROGRAMS += tests/bench/bench_dataset
tests_bench_bench_dataset_SOURCES = tests/bench/bench_dataset.c
tests_bench_bench_dataset_LDADD = libdataset.la

check_PROGRAMS += tests/dataset/fuzz_gulp tests/dataset/fuzz_tar tests/dataset/fuzz_index
tests_dataset_fuzz_gulp_SOURCES = tests/dataset/fuzz_gulp.c tests/dataset/fuzz_packed.h
tests_dataset_fuzz_gulp_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_dataset_fuzz_gulp_LDADD = $(FUZZ_LIBS) libdataset.la
tests_dataset_fuzz_tar_SOURCES = tests/dataset/fuzz_tar.c tests/dataset/fuzz_packed.h
tests_dataset_fuzz_tar_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_dataset_fuzz_tar_LDADD = $(FUZZ_LIBS) libdataset.la
tests_dataset_fuzz_index_SOURCES = tests/dataset/fuzz_index.c
tests_dataset_fuzz_index_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
tests_dataset_fuzz_index_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_dataset_fuzz_index_LDADD = $(FUZZ_LIBS) libdataset.la $(XXHASH_LIBS)
TESTS += tests/dataset/fuzz_packed.sh tests/dataset/list.sh tests/dataset/label_field.sh tests/dataset/tar_shards.sh tests/dataset/label_values.sh tests/dataset/layouts.sh tests/dataset/compressed_tar.sh tests/dataset/unreadable.sh tests/dataset/incomplete.sh
EXTRA_DIST += tests/dataset/fuzz_packed.sh tests/dataset/list.sh tests/dataset/label_field.sh tests/dataset/tar_shards.sh tests/dataset/label_values.sh tests/dataset/layouts.sh tests/dataset/compressed_tar.sh tests/dataset/unreadable.sh tests/dataset/incomplete.sh

# GulpIO and WebDataset themselves, where a Python that has them is named.
TESTS += tests/dataset/peers.sh
EXTRA_DIST += tests/dataset/peers.sh tests/dataset/peers.py

# These start a PostgreSQL server, and skip where none is installed.
TESTS += tests/dataset/postgresql.sh tests/dataset/postgresql_beside.sh tests/dataset/postgresql_pages.sh
EXTRA_DIST += tests/dataset/postgresql.sh tests/dataset/postgresql_beside.sh tests/dataset/postgresql_pages.sh
