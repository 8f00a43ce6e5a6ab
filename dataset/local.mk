noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	dataset/dataset.c dataset/dataset.h dataset/source.h \
	dataset/folder.c \
	dataset/idx.c dataset/idx.h \
	dataset/split.c
libdataset_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
libdataset_la_LIBADD = libcommon.la $(ZLIB_LIBS)
