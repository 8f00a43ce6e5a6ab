noinst_LTLIBRARIES += libloader.la
libloader_la_SOURCES = \
	loader/ahead.c loader/ahead.h \
	loader/bad.c loader/bad.h \
	loader/batcher.c \
	loader/cache.c loader/cache.h \
	loader/engine.h loader/engine_threads.c \
	loader/evict.c \
	loader/fetch.c loader/fetch.h \
	loader/loader.c loader/loader.h \
	loader/pace.c loader/pace.h \
	loader/pipeline.h \
	loader/resize.c loader/resize.h \
	loader/sample.c loader/sample.h \
	loader/sampler.c loader/sampler.h \
	loader/transform.c loader/transform.h \
	loader/worker.c
libloader_la_LIBADD = libdataset.la libcodec.la libcommon.la
if HAVE_LIBURING
libloader_la_SOURCES += loader/engine_uring.c
libloader_la_LIBADD += $(LIBURING_LIBS)
endif

bin_PROGRAMS += dl2-load
dl2_commands += dl2-load
dl2_load_SOURCES = loader/dl2_load.c loader/load.h loader/load_analyze.c loader/load_bench.c \
	loader/load_check.c loader/load_heap.c loader/load_run.c
dl2_load_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
dl2_load_LDADD = libloader.la libdataset.la libcodec.la libcommon.la $(ZLIB_LIBS)
