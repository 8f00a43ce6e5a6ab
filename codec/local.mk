# Image codecs: each library's flags go to its own file's small library and nowhere else.
noinst_LTLIBRARIES += libcodec.la
libcodec_la_SOURCES = \
	codec/codec.c codec/codec.h codec/codecs.h \
	codec/codec_pnm.c \
	codec/exif.c codec/exif.h
libcodec_la_LIBADD = libcommon.la

if HAVE_JPEG
noinst_LTLIBRARIES += libcodec_jpeg.la
libcodec_jpeg_la_SOURCES = codec/codec_jpeg.c
libcodec_jpeg_la_CFLAGS = $(AM_CFLAGS) $(JPEG_CFLAGS)
libcodec_jpeg_la_LIBADD = $(JPEG_LIBS)
libcodec_la_LIBADD += libcodec_jpeg.la
endif

if HAVE_PNG
noinst_LTLIBRARIES += libcodec_png.la
libcodec_png_la_SOURCES = codec/codec_png.c
libcodec_png_la_CFLAGS = $(AM_CFLAGS) $(PNG_CFLAGS)
libcodec_png_la_LIBADD = $(PNG_LIBS)
libcodec_la_LIBADD += libcodec_png.la
endif
