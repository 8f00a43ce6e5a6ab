# SPDX-License-Identifier: BSD-2-Clause
# Image codecs: each library's flags go to its own file's small library and nowhere else.
noinst_LTLIBRARIES += libcodec.la
libcodec_la_SOURCES = \
	codec/codec.c codec/codec.h codec/codecs.h \
	codec/codec_external.c codec/external.h codec/external_decoders.h \
	codec/codec_bmp.c \
	codec/codec_pnm.c \
	codec/color.c codec/color.h \
	codec/decoder.c codec/decoder.h \
	codec/exif.c codec/exif.h \
	codec/icc.c codec/icc.h \
	codec/image_file.h \
	codec/metadata.c codec/metadata.h \
	codec/jpeg_tables.c codec/jpeg_tables.h \
	codec/settings.c codec/settings.h \
	codec/video.c codec/video.h codec/video_encoder.h \
	codec/video_notes.c codec/video_notes.h \
	codec/jpeg/jpeg_header.c codec/jpeg/jpeg_header.h \
	codec/jpeg/jpeg_plain.c codec/jpeg/jpeg_plain.h \
	codec/jpeg/jpeg_slices.c codec/jpeg/jpeg_slices.h \
	codec/jpeg/jpeg_tiles.c codec/jpeg/jpeg_tiles.h
libcodec_la_LIBADD = libpixels.la libcommon.la

if HAVE_FFMPEG
# Its libraries are loaded when they are needed.
noinst_LTLIBRARIES += libcodec_ffmpeg.la
libcodec_ffmpeg_la_SOURCES = \
	codec/codec_video.c \
	codec/ffmpeg_libraries.c codec/ffmpeg_libraries.h \
	codec/video_ffmpeg.c
libcodec_ffmpeg_la_CFLAGS = $(AM_CFLAGS) $(FFMPEG_CFLAGS)
libcodec_la_LIBADD += libcodec_ffmpeg.la
endif

if HAVE_LCMS
noinst_LTLIBRARIES += libcodec_lcms.la
libcodec_lcms_la_SOURCES = codec/color_lcms.c
libcodec_lcms_la_CFLAGS = $(AM_CFLAGS) $(LCMS_CFLAGS)
libcodec_lcms_la_LIBADD = $(LCMS_LIBS)
libcodec_la_LIBADD += libcodec_lcms.la
endif

if HAVE_JPEG
noinst_LTLIBRARIES += libcodec_jpeg.la
libcodec_jpeg_la_SOURCES = \
	codec/codec_jpeg.c \
	codec/jpeg/jpeg_coding.c codec/jpeg/jpeg_coding.h \
	codec/jpeg/jpeg_arena.c codec/jpeg/jpeg_arena.h \
	codec/jpeg/jpeg_baseline.c codec/jpeg/jpeg_baseline.h codec/jpeg/jpeg_frame.h \
	codec/jpeg/jpeg_color.c codec/jpeg/jpeg_color.h codec/jpeg/jpeg_color_kernels.inc \
	codec/jpeg/jpeg_entropy.c codec/jpeg/jpeg_entropy.h \
	codec/jpeg/jpeg_forward.c codec/jpeg/jpeg_forward.h \
	codec/jpeg/jpeg_huffman.c codec/jpeg/jpeg_huffman.h \
	codec/jpeg/jpeg_inverse.c codec/jpeg/jpeg_inverse.h \
	codec/jpeg/jpeg_optimal.c codec/jpeg/jpeg_optimal.h \
	codec/jpeg/jpeg_metadata.c codec/jpeg/jpeg_metadata.h \
	codec/jpeg/jpeg_retile.c codec/jpeg/jpeg_retile.h \
	codec/jpeg/jpeg_segments.c codec/jpeg/jpeg_segments.h \
	codec/jpeg/jpeg_sweep.c codec/jpeg/jpeg_sweep.h \
	codec/jpeg/jpeg_trial.c codec/jpeg/jpeg_trial.h \
	codec/jpeg/jpeg_writer.c codec/jpeg/jpeg_writer.h \
	codec/jpeg/jpeg_decode.c codec/jpeg/jpeg_decode.h codec/jpeg/jpeg_trap.c codec/jpeg/jpeg_trap.h
libcodec_jpeg_la_CFLAGS = $(AM_CFLAGS) $(JPEG_CFLAGS)
libcodec_jpeg_la_LIBADD = $(JPEG_LIBS)
libcodec_la_LIBADD += libcodec_jpeg.la
# Each SIMD level is a library because it has its own compiler flags; NEON needs none.
if HAVE_AVX2
noinst_LTLIBRARIES += libcodec_jpeg_avx2.la
libcodec_jpeg_avx2_la_SOURCES = \
	codec/jpeg/jpeg_color_x86.c codec/jpeg/jpeg_color_kernels.inc \
	codec/jpeg/jpeg_forward_avx2.c codec/jpeg/jpeg_forward_simd.inc \
	codec/jpeg/jpeg_inverse_avx2.c codec/jpeg/jpeg_inverse_simd.inc codec/jpeg/jpeg_lanes_simd.inc
libcodec_jpeg_avx2_la_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
libcodec_jpeg_la_LIBADD += libcodec_jpeg_avx2.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += libcodec_jpeg_avx512.la
libcodec_jpeg_avx512_la_SOURCES = \
	codec/jpeg/jpeg_color_x86.c codec/jpeg/jpeg_color_kernels.inc \
	codec/jpeg/jpeg_forward_avx512.c codec/jpeg/jpeg_forward_simd.inc \
	codec/jpeg/jpeg_inverse_avx512.c codec/jpeg/jpeg_inverse_simd.inc codec/jpeg/jpeg_lanes_simd.inc
libcodec_jpeg_avx512_la_CFLAGS = $(AM_CFLAGS) $(AVX512_CFLAGS)
libcodec_jpeg_la_LIBADD += libcodec_jpeg_avx512.la
endif
if HAVE_NEON
libcodec_jpeg_la_SOURCES += \
	codec/jpeg/jpeg_color_neon.c codec/jpeg/jpeg_forward_neon.c codec/jpeg/jpeg_inverse_neon.c \
	codec/jpeg/jpeg_lanes_neon.inc
endif
endif

if HAVE_PNG
noinst_LTLIBRARIES += libcodec_png.la
libcodec_png_la_SOURCES = codec/codec_png.c
libcodec_png_la_CFLAGS = $(AM_CFLAGS) $(PNG_CFLAGS) $(ZLIB_CFLAGS)
libcodec_png_la_LIBADD = $(PNG_LIBS) $(ZLIB_LIBS)
libcodec_la_LIBADD += libcodec_png.la
endif

if HAVE_TIFF
noinst_LTLIBRARIES += libcodec_tiff.la
libcodec_tiff_la_SOURCES = codec/codec_tiff.c
libcodec_tiff_la_CFLAGS = $(AM_CFLAGS) $(TIFF_CFLAGS)
libcodec_tiff_la_LIBADD = $(TIFF_LIBS)
libcodec_la_LIBADD += libcodec_tiff.la
endif

if HAVE_GIF
noinst_LTLIBRARIES += libcodec_gif.la
libcodec_gif_la_SOURCES = codec/codec_gif.c
libcodec_gif_la_CFLAGS = $(AM_CFLAGS) $(GIF_CFLAGS)
libcodec_gif_la_LIBADD = $(GIF_LIBS)
libcodec_la_LIBADD += libcodec_gif.la
endif

if HAVE_WEBP
noinst_LTLIBRARIES += libcodec_webp.la
libcodec_webp_la_SOURCES = codec/codec_webp.c
libcodec_webp_la_CFLAGS = $(AM_CFLAGS) $(WEBP_CFLAGS)
libcodec_webp_la_LIBADD = $(WEBP_LIBS)
libcodec_la_LIBADD += libcodec_webp.la
endif

if HAVE_AVIF
noinst_LTLIBRARIES += libcodec_avif.la
libcodec_avif_la_SOURCES = codec/codec_avif.c
libcodec_avif_la_CFLAGS = $(AM_CFLAGS) $(AVIF_CFLAGS)
libcodec_avif_la_LIBADD = $(AVIF_LIBS)
libcodec_la_LIBADD += libcodec_avif.la
endif

if HAVE_JXL
noinst_LTLIBRARIES += libcodec_jxl.la
libcodec_jxl_la_SOURCES = codec/codec_jxl.c
libcodec_jxl_la_CFLAGS = $(AM_CFLAGS) $(JXL_CFLAGS)
libcodec_jxl_la_LIBADD = $(JXL_LIBS)
libcodec_la_LIBADD += libcodec_jxl.la
endif
# For the metric; not a part of libcodec, whose users need no metric.
if HAVE_BUTTERAUGLI
noinst_LTLIBRARIES += libbutteraugli.la
libbutteraugli_la_SOURCES = codec/butteraugli.c codec/butteraugli.h
libbutteraugli_la_CFLAGS = $(AM_CFLAGS) $(JXL_CFLAGS)
libbutteraugli_la_LIBADD = $(JXL_LIBS)
endif

if HAVE_JP2
noinst_LTLIBRARIES += libcodec_jp2.la
libcodec_jp2_la_SOURCES = codec/codec_jp2.c codec/jp2_boxes.c codec/jp2_boxes.h
libcodec_jp2_la_CFLAGS = $(AM_CFLAGS) $(JP2_CFLAGS)
libcodec_jp2_la_LIBADD = $(JP2_LIBS)
libcodec_la_LIBADD += libcodec_jp2.la
endif
