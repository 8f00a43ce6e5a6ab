if HAVE_CMOCKA
check_PROGRAMS += tests/loader/test_loader
tests_loader_test_loader_SOURCES = tests/loader/test_loader.c
tests_loader_test_loader_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_loader_test_loader_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/loader/test_loader
endif
