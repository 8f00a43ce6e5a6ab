# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libvolumes.la
libvolumes_la_SOURCES = \
	volumes/volume.c volumes/volume.h \
	volumes/volume_npy.c \
	volumes/volume_slices.c volumes/volume_slices.h
libvolumes_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
libvolumes_la_LIBADD = libcommon.la $(ZLIB_LIBS)
if HAVE_LIBNIFTI
libvolumes_la_SOURCES += volumes/volume_nifti.c
libvolumes_la_CFLAGS += $(LIBNIFTI_CFLAGS)
libvolumes_la_LIBADD += $(LIBNIFTI_LIBS)
endif
