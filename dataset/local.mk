# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	dataset/choose.c \
	dataset/clips.c \
	dataset/container.c dataset/container.h \
	dataset/dataset.c dataset/dataset.h \
	dataset/file_names.c dataset/file_names.h \
	dataset/find.c \
	dataset/group_column.c dataset/group_column.h \
	dataset/joined.c \
	dataset/layout.c \
	dataset/reader.c \
	dataset/relabel.c \
	dataset/server_fit.h \
	dataset/sidecars.c dataset/sidecars.h \
	dataset/split.c dataset/split.h \
	dataset/subset_options.c dataset/subset_options.h \
	dataset/tell.c dataset/tell.h \
	dataset/volumes.c \
	dataset/files/files.c dataset/files/files.h \
	dataset/files/folder.c \
	dataset/files/gzip_files.c dataset/files/gzip_files.h \
	dataset/files/idx.c dataset/files/idx.h \
	dataset/files/list.c \
	dataset/files/tree.c \
	dataset/packed/gulp.c \
	dataset/packed/index.c dataset/packed/index.h \
	dataset/packed/label_field.c dataset/packed/label_field.h \
	dataset/packed/packed.c dataset/packed/packed.h \
	dataset/packed/remote_container.c dataset/packed/remote_container.h \
	dataset/packed/scan.c \
	dataset/packed/shards.c \
	dataset/packed/source.c dataset/packed/source.h \
	dataset/packed/tar.c \
	dataset/packed/tar_members.c dataset/packed/tar_members.h \
	dataset/postgresql/database_uri.c dataset/postgresql/database_uri.h \
	dataset/postgresql/heap_page.c dataset/postgresql/heap_page.h \
	dataset/write/parts_place.c dataset/write/parts_place.h \
	dataset/write/store_place.c dataset/write/store_place.h \
	dataset/write/variant_facts.c dataset/write/variant_facts.h \
	dataset/write/write_place.c dataset/write/write_place.h \
	dataset/write/writer.c dataset/write/writer.h
libdataset_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(XXHASH_CFLAGS)
libdataset_la_LIBADD = libremote.la libvolumes.la libcommon.la $(ZLIB_LIBS) $(XXHASH_LIBS)
if HAVE_LIBPQ
libdataset_la_SOURCES += \
	dataset/postgresql/database.c dataset/postgresql/database.h \
	dataset/postgresql/postgresql.c dataset/postgresql/postgresql_table.h \
	dataset/postgresql/postgresql_listing.c \
	dataset/postgresql/postgresql_facts.c \
	dataset/postgresql/postgresql_parts.c \
	dataset/postgresql/postgresql_groups.c \
	dataset/postgresql/pages.c dataset/postgresql/pages.h \
	dataset/postgresql/postgresql_write.c
libdataset_la_CFLAGS += $(LIBPQ_CFLAGS)
libdataset_la_LIBADD += $(LIBPQ_LIBS)
endif
