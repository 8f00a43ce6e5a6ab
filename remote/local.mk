# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libremote.la
libremote_la_SOURCES = \
	remote/access.h \
	remote/address.c remote/address.h \
	remote/credentials.c remote/credentials.h \
	remote/disk_cache.c remote/disk_cache.h \
	remote/remote.c remote/remote.h \
	remote/remote_options.c remote/remote_options.h \
	remote/transport.h \
	remote/upload.c
libremote_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
libremote_la_LIBADD = libcommon.la $(XXHASH_LIBS)
if HAVE_LIBCURL
libremote_la_SOURCES += remote/listing.c remote/listing.h remote/transport_curl.c
libremote_la_CFLAGS += $(LIBCURL_CFLAGS)
libremote_la_LIBADD += $(LIBCURL_LIBS)
endif
