# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	dataset/annotations.h dataset/coco.c dataset/yolo.c dataset/data_yaml.c \
	dataset/dataset.c dataset/dataset.h \
	dataset/sidecars.c dataset/sidecars.h \
	dataset/postgresql/database_uri.c dataset/postgresql/database_uri.h \
	dataset/container.c dataset/container.h \
	dataset/choose.c \
	dataset/clips.c \
	dataset/find.c \
	dataset/subset_options.c dataset/subset_options.h \
	dataset/file_names.c dataset/file_names.h \
	dataset/files.c dataset/files.h \
	dataset/folder.c \
	dataset/reader.c \
	dataset/group_column.c dataset/group_column.h \
	dataset/layout.c \
	dataset/list.c \
	dataset/idx.c dataset/idx.h \
	dataset/packed.c dataset/packed.h \
	dataset/index.c dataset/index.h \
	dataset/label_field.c dataset/label_field.h \
	dataset/remote/address.c dataset/remote/address.h \
	dataset/remote/credentials.c dataset/remote/credentials.h \
	dataset/remote/disk_cache.c dataset/remote/disk_cache.h \
	dataset/remote/remote.c dataset/remote/remote.h \
	dataset/remote/transport.h \
	dataset/remote/upload.c \
	dataset/remote_container.c dataset/remote_container.h \
	dataset/remote_options.c dataset/remote_options.h \
	dataset/scan.c \
	dataset/shards.c \
	dataset/gulp.c \
	dataset/gzip_files.c dataset/gzip_files.h \
	dataset/postgresql/heap_page.c dataset/postgresql/heap_page.h \
	dataset/tar.c \
	dataset/tar_members.c dataset/tar_members.h \
	dataset/server_fit.h \
	dataset/source.c dataset/source.h \
	dataset/split.c dataset/split.h \
	dataset/tell.c dataset/tell.h \
	dataset/tree.c \
	dataset/variant_facts.c dataset/variant_facts.h \
	dataset/volume.c dataset/volume.h dataset/volume_npy.c \
	dataset/volume_slices.c dataset/volume_slices.h \
	dataset/volumes.c \
	dataset/store_place.c dataset/store_place.h \
	dataset/write_place.c dataset/write_place.h \
	dataset/writer.c dataset/writer.h
libdataset_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(XXHASH_CFLAGS) $(YAML_CFLAGS)
libdataset_la_LIBADD = libcommon.la $(ZLIB_LIBS) $(XXHASH_LIBS) $(YAML_LIBS)
if HAVE_LIBNIFTI
libdataset_la_SOURCES += dataset/volume_nifti.c
libdataset_la_CFLAGS += $(LIBNIFTI_CFLAGS)
libdataset_la_LIBADD += $(LIBNIFTI_LIBS)
endif
if HAVE_LIBPQ
libdataset_la_SOURCES += \
	dataset/postgresql/database.c dataset/postgresql/database.h \
	dataset/postgresql/postgresql.c dataset/postgresql/postgresql_table.h \
	dataset/postgresql/postgresql_listing.c \
	dataset/postgresql/postgresql_facts.c \
	dataset/postgresql/postgresql_groups.c \
	dataset/postgresql/pages.c dataset/postgresql/pages.h \
	dataset/postgresql/postgresql_write.c
libdataset_la_CFLAGS += $(LIBPQ_CFLAGS)
libdataset_la_LIBADD += $(LIBPQ_LIBS)
endif
if HAVE_LIBCURL
libdataset_la_SOURCES += \
	dataset/remote/listing.c dataset/remote/listing.h \
	dataset/remote/transport_curl.c
libdataset_la_CFLAGS += $(LIBCURL_CFLAGS)
libdataset_la_LIBADD += $(LIBCURL_LIBS)
endif
