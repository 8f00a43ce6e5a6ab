# SPDX-License-Identifier: BSD-2-Clause
TESTS += tests/loader/slices.sh tests/loader/batches.sh tests/loader/photos.sh tests/loader/videos.sh
EXTRA_DIST += tests/bench/clips.sh tests/bench/batching.sh tests/bench/peer_clips.py tests/bench/decode_on_card.sh tests/bench/compare_accuracy.py tests/bench/compare_load.sh tests/bench/compare_tables.sh tests/bench/check_prediction.sh tests/bench/make_photos.sh tests/bench/make_scans.py tests/bench/make_shapes.py tests/bench/make_tiles.py tests/bench/python_share.py tests/bench/twin_loop.sh
EXTRA_DIST += tests/loader/slices.sh tests/loader/batches.sh tests/loader/photos.sh tests/loader/videos.sh tests/loader/compare_batches.py

check_PROGRAMS += tests/loader/fuzz_sample_weights
tests_loader_fuzz_sample_weights_SOURCES = tests/loader/fuzz_sample_weights.c
tests_loader_fuzz_sample_weights_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_loader_fuzz_sample_weights_LDADD = $(FUZZ_LIBS) libloader.la libdataset.la libcodec.la libcommon.la
TESTS += tests/loader/fuzz_sample_weights.sh
EXTRA_DIST += tests/loader/fuzz_sample_weights.sh

check_PROGRAMS += tests/loader/fuzz_boxes
tests_loader_fuzz_boxes_SOURCES = tests/loader/fuzz_boxes.c
tests_loader_fuzz_boxes_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_loader_fuzz_boxes_LDADD = $(FUZZ_LIBS) libloader.la libdataset.la libcodec.la libcommon.la
TESTS += tests/loader/fuzz_boxes.sh
EXTRA_DIST += tests/loader/fuzz_boxes.sh tests/loader/gen_instance_masks.py tests/loader/instance_masks.json

check_PROGRAMS += tests/loader/show_components
tests_loader_show_components_SOURCES = tests/loader/show_components.c
tests_loader_show_components_LDADD = libloader.la libdataset.la libcodec.la libcommon.la
TESTS += tests/loader/components.sh
EXTRA_DIST += tests/loader/components.sh

check_PROGRAMS += tests/loader/show_batches
tests_loader_show_batches_SOURCES = tests/loader/show_batches.c
tests_loader_show_batches_LDADD = libloader.la libdataset.la libcodec.la libcommon.la

loader_pictures = tests/loader/pictures.c tests/loader/pictures.h
fake_decoder = tests/loader/fake_decoder.c tests/loader/fake_decoder.h

if HAVE_CMOCKA
check_PROGRAMS += tests/loader/test_boxes
tests_loader_test_boxes_SOURCES = tests/loader/test_boxes.c $(loader_pictures)
tests_loader_test_boxes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(ZLIB_CFLAGS)
tests_loader_test_boxes_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
TESTS += tests/loader/test_boxes
check_PROGRAMS += tests/loader/test_allocations tests/loader/test_batch_decoder tests/loader/test_batching \
	tests/loader/test_fetch tests/loader/test_loader tests/loader/test_sampler
tests_loader_test_fetch_SOURCES = tests/loader/test_fetch.c $(loader_pictures)
tests_loader_test_fetch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_fetch_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
tests_loader_test_loader_SOURCES = tests/loader/test_loader.c $(loader_pictures)
tests_loader_test_loader_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_loader_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
loader_photos = tests/loader/photos.c tests/loader/photos.h $(loader_pictures)
tests_loader_test_batch_decoder_SOURCES = tests/loader/test_batch_decoder.c $(fake_decoder) $(loader_photos)
tests_loader_test_batch_decoder_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(ZLIB_CFLAGS)
tests_loader_test_batch_decoder_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
tests_loader_test_batching_SOURCES = tests/loader/test_batching.c $(loader_pictures)
tests_loader_test_batching_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_batching_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
tests_loader_test_allocations_SOURCES = tests/loader/test_allocations.c tests/common/allocations.c tests/common/allocations.h \
	$(loader_pictures)
tests_loader_test_allocations_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_allocations_LDADD = libloader.la libdataset.la libcodec.la libcommon.la \
	$(CMOCKA_LIBS)
tests_loader_test_sampler_SOURCES = tests/loader/test_sampler.c
tests_loader_test_sampler_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_sampler_LDADD = libloader.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/loader/test_allocations tests/loader/test_batch_decoder tests/loader/test_batching tests/loader/test_fetch \
	tests/loader/test_loader tests/loader/test_sampler
endif

# Not a test: `make tests/bench/bench_batching && ./tests/bench/bench_batching`.
EXTRA_PROGRAMS += tests/bench/bench_batching
tests_bench_bench_batching_SOURCES = tests/bench/bench_batching.c
tests_bench_bench_batching_LDADD = libloader.la libdataset.la libcodec.la libcommon.la

# Not a test: `make tests/bench/bench_fetch && ./tests/bench/bench_fetch PHOTOS SCRATCH`.
EXTRA_PROGRAMS += tests/bench/bench_fetch
tests_bench_bench_fetch_SOURCES = tests/bench/bench_fetch.c
tests_bench_bench_fetch_LDADD = libloader.la libdataset.la libcodec.la libcommon.la
