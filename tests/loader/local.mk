TESTS += tests/loader/load.sh tests/loader/batches.sh
EXTRA_DIST += tests/bench/compare_load.sh tests/bench/make_photos.sh tests/bench/peer_load.py
EXTRA_DIST += tests/loader/load.sh tests/loader/batches.sh tests/loader/compare_batches.py \
	tests/loader/gen_resize.py

check_PROGRAMS += tests/loader/show_batches
tests_loader_show_batches_SOURCES = tests/loader/show_batches.c
tests_loader_show_batches_LDADD = libloader.la libdataset.la libcodec.la libcommon.la

if HAVE_CMOCKA
check_PROGRAMS += tests/loader/test_loader tests/loader/test_resize
tests_loader_test_loader_SOURCES = tests/loader/test_loader.c
tests_loader_test_loader_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_loader_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
tests_loader_test_resize_SOURCES = tests/loader/test_resize.c tests/loader/resize_golden.h
tests_loader_test_resize_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_resize_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/loader/test_loader tests/loader/test_resize
endif
