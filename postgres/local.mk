# SPDX-License-Identifier: BSD-2-Clause
# The extension of PostgreSQL. `make install` leaves the server's folders alone: `make install-postgres`
# writes there.
EXTRA_DIST += postgres/dl2.sql
# What needs none of the server's headers, for the tests, too.
noinst_LTLIBRARIES += libimagework.la
libimagework_la_SOURCES = postgres/image_work.c postgres/image_work.h

if HAVE_POSTGRES
noinst_LTLIBRARIES += postgres/dl2.la
postgres_dl2_la_SOURCES = postgres/functions.c postgres/jansson.c postgres/sql_error.h
postgres_dl2_la_CPPFLAGS = $(AM_CPPFLAGS) $(POSTGRES_CPPFLAGS)
postgres_dl2_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath $(pkglibdir) \
	-Wl,--wrap=json_object -export-symbols-regex '^(Pg_magic_func|_PG_init|(pg_finfo_)?dl2_sql_[a-z]*)$$'
# Objects, as of libdl2.la. The server has a json_object(), too: postgres/jansson.c.
postgres_dl2_la_LIBADD = $(libcommon_la_OBJECTS) $(libpixels_la_OBJECTS) $(libcodec_la_OBJECTS) $(libquality_la_OBJECTS) \
	$(libreuse_la_OBJECTS) $(libimagework_la_OBJECTS) \
	$(filter-out $(LIBDL2_ROOMS),$(libpixels_la_LIBADD) $(libcodec_la_LIBADD) $(libquality_la_LIBADD) $(libcommon_la_LIBADD))
postgres_dl2_la_DEPENDENCIES = $(LIBDL2_ROOMS) libquality.la libreuse.la libimagework.la

# What trains is a library of its own, which only its functions load.
noinst_LTLIBRARIES += postgres/dl2_train.la
postgres_dl2_train_la_SOURCES = postgres/training.c postgres/jansson.c postgres/sql_error.h
postgres_dl2_train_la_CPPFLAGS = $(AM_CPPFLAGS) $(POSTGRES_CPPFLAGS)
postgres_dl2_train_la_LDFLAGS = $(postgres_dl2_la_LDFLAGS)
POSTGRES_ROOMS = $(LIBDL2_ROOMS) libranks.la libranks_mpi.la libdevice.la libdevice_cpu.la libdevice_cuda.la libgpu.la libnetwork.la \
	libdecoders.la libdecode_cuda.la libtransform_cuda.la libcpu_kernels_c.la libcpu_kernels_avx2.la libcpu_kernels_avx512.la
postgres_dl2_train_la_LIBADD = \
	$(libcommon_la_OBJECTS) $(libpixels_la_OBJECTS) $(libcodec_la_OBJECTS) $(libremote_la_OBJECTS) $(libvolumes_la_OBJECTS) \
	$(libdataset_la_OBJECTS) $(libannotations_la_OBJECTS) $(libloader_la_OBJECTS) \
	$(libdecoders_la_OBJECTS) $(libdecode_cuda_la_OBJECTS) $(libtransform_cuda_la_OBJECTS) $(libgpu_la_OBJECTS) \
	$(libranks_la_OBJECTS) $(libranks_mpi_la_OBJECTS) $(libnetwork_la_OBJECTS) $(libtrainer_la_OBJECTS) \
	$(libdevice_la_OBJECTS) $(libdevice_cpu_la_OBJECTS) $(libdevice_cuda_la_OBJECTS) \
	$(libcpu_kernels_c_la_OBJECTS) $(libcpu_kernels_avx2_la_OBJECTS) $(libcpu_kernels_avx512_la_OBJECTS) \
	$(filter-out $(POSTGRES_ROOMS),$(libpixels_la_LIBADD) $(libcodec_la_LIBADD) $(libremote_la_LIBADD) $(libvolumes_la_LIBADD) \
	$(libdataset_la_LIBADD) $(libannotations_la_LIBADD) $(libloader_la_LIBADD) \
	$(libcommon_la_LIBADD) $(libranks_la_LIBADD) $(libdevice_cpu_la_LIBADD) $(libdevice_cuda_la_LIBADD) \
	$(libgpu_la_LIBADD) $(libdecode_cuda_la_LIBADD) $(libnetwork_la_LIBADD))
postgres_dl2_train_la_DEPENDENCIES = libtrainer.la

install-postgres: postgres/dl2.la postgres/dl2_train.la postgres/dl2.control
	$(MKDIR_P) '$(DESTDIR)$(postgres_libdir)' '$(DESTDIR)$(postgres_datadir)/extension'
	$(INSTALL_PROGRAM) postgres/.libs/dl2.so '$(DESTDIR)$(postgres_libdir)/dl2.so'
	$(INSTALL_PROGRAM) postgres/.libs/dl2_train.so '$(DESTDIR)$(postgres_libdir)/dl2_train.so'
	$(INSTALL_DATA) '$(srcdir)/postgres/dl2.sql' '$(DESTDIR)$(postgres_datadir)/extension/dl2--$(VERSION).sql'
	$(INSTALL_DATA) postgres/dl2.control '$(DESTDIR)$(postgres_datadir)/extension/dl2.control'
uninstall-postgres:
	rm -f '$(DESTDIR)$(postgres_libdir)/dl2.so' '$(DESTDIR)$(postgres_libdir)/dl2_train.so' '$(DESTDIR)$(postgres_datadir)/extension/dl2--$(VERSION).sql' \
	    '$(DESTDIR)$(postgres_datadir)/extension/dl2.control'
else
install-postgres uninstall-postgres:
	@echo "this build has no extension of PostgreSQL (Debian: postgresql-server-dev-all)" >&2; exit 1
endif
.PHONY: install-postgres uninstall-postgres
