# SPDX-License-Identifier: BSD-2-Clause
# Pixel operations on memory.
noinst_LTLIBRARIES += libpixels.la
libpixels_la_SOURCES = \
	pixels/augment.c pixels/augment.h \
	pixels/crop.c pixels/crop.h \
	pixels/deep_image.c pixels/deep_image.h \
	pixels/image.c pixels/image.h \
	pixels/operation_kernels.c pixels/operation_kernels.h pixels/operation_loops.h \
	pixels/operations.c pixels/operations.h \
	pixels/operation_plugin.h \
	pixels/pixel_format.h \
	pixels/plugin.c pixels/plugin.h \
	pixels/policies.c pixels/policies.h \
	pixels/raster.h \
	pixels/resize.c pixels/resize.h \
	pixels/resize_image.c pixels/resize_image.h \
	pixels/resize_kernels.c pixels/resize_kernels.h \
	pixels/resolution.c pixels/resolution.h \
	pixels/volume_operations.c pixels/volume_operations.h \
	pixels/volume_resample.c pixels/volume_resample.h

libpixels_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
libpixels_la_LIBADD = libcommon.la $(XXHASH_LIBS)
if HAVE_AVX2
noinst_LTLIBRARIES += libpixels_avx2.la
libpixels_avx2_la_SOURCES = pixels/operation_x86.c pixels/resize_avx2.c pixels/resize_simd.inc
libpixels_avx2_la_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
libpixels_la_LIBADD += libpixels_avx2.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += libpixels_avx512.la
libpixels_avx512_la_SOURCES = pixels/operation_x86.c pixels/resize_avx512.c pixels/resize_simd.inc
libpixels_avx512_la_CFLAGS = $(AM_CFLAGS) $(AVX512_CFLAGS)
libpixels_la_LIBADD += libpixels_avx512.la
endif
if HAVE_NEON
libpixels_la_SOURCES += pixels/resize_neon.c
endif
