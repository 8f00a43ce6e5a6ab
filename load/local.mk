# SPDX-License-Identifier: BSD-2-Clause
# dl2-load: measures, checks and explains the input pipeline.
bin_PROGRAMS += dl2-load
dl2_commands += dl2-load
dl2_load_SOURCES = load/dl2_load.c load/load.h load/load_analyze.c load/load_analyze.h \
	load/load_analyze_model.c load/load_analyze_report.c load/load_bench.c \
	load/load_check.c load/load_run.c
dl2_load_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
# Link only the libraries of the CUDA toolkit that are called: they are large.
dl2_load_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
dl2_load_LDADD = $(DECODERS) libloader.la libdataset.la libcodec.la libcommon.la $(ZLIB_LIBS)
