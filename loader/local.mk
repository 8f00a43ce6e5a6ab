# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libloader.la
libloader_la_SOURCES = \
	loader/bad_samples.c loader/bad_samples.h \
	loader/batch.c \
	loader/batch_decoder.h \
	loader/boxes.c loader/boxes.h \
	loader/cache.c loader/cache.h \
	loader/claim.c \
	loader/decode_queue.c \
	loader/decoded.c loader/decoded.h \
	loader/engine.h loader/engine_remote.c loader/engine_threads.c \
	loader/evict.c \
	loader/fetch.c loader/fetch.h \
	loader/loader.c loader/loader.h loader/loader_config.h \
	loader/loader_options.c loader/loader_options.h \
	loader/loader_settings.c loader/loader_settings.h \
	loader/loader_setup.c \
	loader/masks.c loader/masks.h \
	loader/pipeline.h \
	loader/read_ahead.c loader/read_ahead.h \
	loader/sample.c loader/sample.h \
	loader/sample_plan.c loader/sample_plan.h \
	loader/sample_weights.c loader/sample_weights.h \
	loader/sampler.c loader/sampler.h \
	loader/targets.c loader/targets.h \
	loader/unusual.c loader/unusual.h \
	loader/whole_image.c \
	loader/foreground.c loader/foreground.h \
	loader/components.c loader/components.h \
	loader/volume_cache.c loader/volume_cache.h \
	loader/volume_sample.c loader/volume_sample.h \
	loader/worker.c
libloader_la_LIBADD = libannotations.la libdataset.la libcodec.la libpixels.la libcommon.la $(XXHASH_LIBS)
libloader_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
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
# Programs link these: libtool does not pass on -R.
DECODERS = libdecoders.la $(NVJPEG_LIBS)
