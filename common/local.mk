# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = \
	common/accuracy_kind.c common/accuracy_kind.h \
	common/clock.c common/clock.h \
	common/csv.c common/csv.h \
	common/device_name.c common/device_name.h \
	common/error.c common/error.h \
	common/file.c common/file.h \
	common/half.h \
	common/json.c common/json.h \
	common/keep.c common/keep.h \
	common/machine.c common/machine.h \
	common/memory.c common/memory.h \
	common/machine_log.c common/machine_log.h \
	common/monitor.c common/monitor.h \
	common/nearest.c common/nearest.h \
	common/nvml.c common/nvml.h \
	common/option.c common/option.h \
	common/process.c common/process.h \
	common/progress.c common/progress.h \
	common/quote.c common/quote.h \
	common/random.c common/random.h \
	common/scope.h \
	common/gray.h \
	common/slices.c common/slices.h \
	common/simd.c common/simd.h \
	common/stats.c common/stats.h \
	common/streams.c common/streams.h \
	common/thread.c common/thread.h \
	common/vectors.h \
	common/work_part.c common/work_part.h
libcommon_la_LIBADD = $(JANSSON_LIBS)
