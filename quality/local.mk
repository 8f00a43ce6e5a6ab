# SPDX-License-Identifier: BSD-2-Clause
# The metrics and dl2-quality. Each SIMD level is a library because it has its own compiler flags;
# NEON needs none.
noinst_LTLIBRARIES += libquality.la
libquality_la_SOURCES = \
	quality/ciede2000.c \
	quality/image_dataset.h \
	quality/input.c \
	quality/metric_kernels.c quality/metric_kernels.h quality/metric_loops.h \
	quality/ciede2000_loops.h \
	quality/score_device.h \
	quality/metric.c quality/metric.h \
	quality/ms_ssim.c \
	quality/psnr.c \
	quality/psnr_hvs_m.c \
	quality/scorer.h \
	quality/ssim.c \
	quality/ssimulacra2.c quality/ssimulacra2.h
libquality_la_LIBADD = libpixels.la libcommon.la

if HAVE_BUTTERAUGLI
libquality_la_SOURCES += quality/butteraugli.c
libquality_la_LIBADD += libbutteraugli.la
endif

if HAVE_AVX2
noinst_LTLIBRARIES += libquality_avx2.la
libquality_avx2_la_SOURCES = quality/metric_kernels_avx2.c quality/metric_kernels_simd.inc quality/metric_filters.inc
libquality_avx2_la_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
libquality_la_LIBADD += libquality_avx2.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += libquality_avx512.la
libquality_avx512_la_SOURCES = quality/metric_kernels_avx512.c quality/metric_kernels_simd.inc quality/metric_filters.inc
libquality_avx512_la_CFLAGS = $(AM_CFLAGS) $(AVX512_CFLAGS)
libquality_la_LIBADD += libquality_avx512.la
endif
if HAVE_NEON
libquality_la_SOURCES += quality/metric_kernels_neon.c quality/metric_filters.inc
endif

noinst_LTLIBRARIES += libscore_devices.la
libscore_devices_la_SOURCES = quality/score_devices.c
libscore_devices_la_LIBADD = libcommon.la
if HAVE_CUDA
libscore_devices_la_LIBADD += libscore_cuda.la
endif

bin_PROGRAMS += dl2-quality
dl2_commands += dl2-quality
dl2_quality_SOURCES = \
	quality/codec_compare.c quality/codec_compare.h \
	quality/crops.c quality/crops.h \
	quality/dl2_quality.c \
	quality/heatmap.c quality/heatmap.h \
	quality/output.c quality/output.h \
	quality/score.c quality/score.h \
	quality/score_share.c quality/score_share.h \
	quality/score_source.c quality/score_source.h \
	quality/volume_metrics.c quality/volume_metrics.h
# Leave out the CUDA libraries that it doesn't call.
dl2_quality_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
dl2_quality_LDADD = libscore_devices.la libquality.la libdataset.la libcodec.la libranks.la libcommon.la
