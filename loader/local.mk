noinst_LTLIBRARIES += libloader.la
libloader_la_SOURCES = \
	loader/ahead.c loader/ahead.h \
	loader/bad.c loader/bad.h \
	loader/batch_decoder.h \
	loader/batcher.c \
	loader/cache.c loader/cache.h \
	loader/engine.h loader/engine_threads.c \
	loader/evict.c \
	loader/fetch.c loader/fetch.h \
	loader/finisher.c \
	loader/loader.c loader/loader.h \
	loader/pace.c loader/pace.h \
	loader/pipeline.h \
	loader/resize.c loader/resize.h \
	loader/resize_kernels.c loader/resize_kernels.h \
	loader/sample.c loader/sample.h \
	loader/sampler.c loader/sampler.h \
	loader/task.c \
	loader/transform.c loader/transform.h \
	loader/words.c loader/words.h \
	loader/worker.c
libloader_la_LIBADD = libdataset.la libcodec.la libcommon.la $(XXHASH_LIBS)
# The resize gives the same bytes by every path, so no product and sum becomes one operation.
libloader_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -ffp-contract=off
if HAVE_AVX2
noinst_LTLIBRARIES += libloader_avx2.la
libloader_avx2_la_SOURCES = loader/resize_avx2.c
libloader_avx2_la_CFLAGS = $(libloader_la_CFLAGS) $(AVX2_CFLAGS)
libloader_la_LIBADD += libloader_avx2.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += libloader_avx512.la
libloader_avx512_la_SOURCES = loader/resize_avx512.c
libloader_avx512_la_CFLAGS = $(libloader_la_CFLAGS) $(AVX512_CFLAGS)
libloader_la_LIBADD += libloader_avx512.la
endif
if HAVE_LIBURING
libloader_la_SOURCES += loader/engine_uring.c
libloader_la_LIBADD += $(LIBURING_LIBS)
endif

# For the programs that decode on a card: libdl2 needs no card's libraries.
noinst_LTLIBRARIES += libdecoders.la
libdecoders_la_SOURCES = loader/batch_decoders.c
libdecoders_la_LIBADD = libcommon.la
if HAVE_NVJPEG
libdecoders_la_LIBADD += libdecode_cuda.la
endif
# What programs link: libtool doesn't hand on -R.
DECODERS = libdecoders.la $(NVJPEG_LIBS)

bin_PROGRAMS += dl2-load
dl2_commands += dl2-load
dl2_load_SOURCES = loader/dl2_load.c loader/load.h loader/load_analyze.c loader/load_analyze.h \
	loader/load_analyze_model.c loader/load_analyze_report.c loader/load_bench.c \
	loader/load_check.c loader/load_heap.c loader/load_run.c
dl2_load_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
# Of a toolkit, only what it calls: these libraries are large.
dl2_load_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
dl2_load_LDADD = $(DECODERS) libloader.la libdataset.la libcodec.la libcommon.la $(ZLIB_LIBS)
