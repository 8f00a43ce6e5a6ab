# SPDX-License-Identifier: BSD-2-Clause
# Processes that train together.
noinst_LTLIBRARIES += libranks.la
libranks_la_SOURCES = \
	ranks/launch.c \
	ranks/reducer.c ranks/reducer.h \
	ranks/share_options.c ranks/share_options.h \
	ranks/sync_norm.c ranks/sync_norm.h \
	ranks/world.c ranks/world.h \
	ranks/world_local.c ranks/world_local.h ranks/world_numbers.h
libranks_la_LIBADD = libcommon.la
if HAVE_MPI
noinst_LTLIBRARIES += libranks_mpi.la
libranks_mpi_la_SOURCES = ranks/world_mpi.c
libranks_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS) # its library is loaded at run time
libranks_la_LIBADD += libranks_mpi.la
endif
