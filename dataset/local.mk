# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	dataset/dataset.c dataset/dataset.h \
	dataset/container.c dataset/container.h \
	dataset/subset_options.c dataset/subset_options.h \
	dataset/folder.c \
	dataset/layout.c \
	dataset/idx.c dataset/idx.h \
	dataset/packed.c dataset/packed.h \
	dataset/index.c dataset/index.h \
	dataset/scan.c \
	dataset/shards.c \
	dataset/gulp.c \
	dataset/tar.c \
	dataset/split.c dataset/split.h \
	dataset/tree.c \
	dataset/writer.c dataset/writer.h
libdataset_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(XXHASH_CFLAGS)
libdataset_la_LIBADD = libcommon.la $(ZLIB_LIBS) $(XXHASH_LIBS)
