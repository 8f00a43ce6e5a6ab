# SPDX-License-Identifier: BSD-2-Clause
# Unit tests link cmocka and include unit.h; command tests are shell scripts that find the programs through
# $(TESTS_ENVIRONMENT). Exit status 77 means SKIP, and the test says why. Tests run beside one another: threads of OpenMP
# that wait by spinning take the processors from each other.
AM_TESTS_ENVIRONMENT = \
	srcdir='$(abs_top_srcdir)'; export srcdir; \
	builddir='$(abs_top_builddir)'; export builddir; \
	CC='$(CC) $(DL2_SANITIZE)'; export CC; \
	PYTHON3='$(PYTHON3)'; export PYTHON3; \
	NVCC='$(NVCC)'; export NVCC; \
	PG_CONFIG='$(PG_CONFIG)'; export PG_CONFIG; \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	DL2_CUDA_PLAN_CACHE=off; export DL2_CUDA_PLAN_CACHE; \
	ASAN_OPTIONS=allocator_may_return_null=1; export ASAN_OPTIONS; \
	TSAN_OPTIONS='allocator_may_return_null=1:halt_on_error=1:suppressions=$(abs_top_srcdir)/tests/tsan.supp'; \
	export TSAN_OPTIONS; \
	PATH='$(abs_top_builddir)':$$PATH; export PATH;
TEST_EXTENSIONS = .sh
# Seconds after which a test that hangs is ended, and fails with a line that says so.
TEST_LIMIT = 1800
LOG_COMPILER = timeout --foreground --verbose --kill-after=30 $(TEST_LIMIT)
SH_LOG_COMPILER = $(LOG_COMPILER) $(SHELL)
EXTRA_DIST += tests/arm.sh tests/debian.sh tests/lib.sh tests/tsan.supp tests/unit.h

# A fuzz target links $(FUZZ_LIBS) with $(FUZZ_LINK): libFuzzer's driver under --enable-fuzzing, ours, which
# replays a corpus, otherwise. A shell test makes the corpus and runs `fuzz_X -runs=0 FOLDER`.
if FUZZING
FUZZ_LINK = -fsanitize=fuzzer
FUZZ_LIBS =
else
FUZZ_LINK =
FUZZ_LIBS = libfuzzreplay.la
check_LTLIBRARIES += libfuzzreplay.la
libfuzzreplay_la_SOURCES = tests/fuzz_replay.c
libfuzzreplay_la_LIBADD = libcommon.la
endif

include tests/tree/local.mk
include tests/common/local.mk
include tests/pixels/local.mk
include tests/codec/local.mk
include tests/remote/local.mk
include tests/volumes/local.mk
include tests/dataset/local.mk
include tests/quality/local.mk
include tests/transcode/local.mk
include tests/loader/local.mk
include tests/load/local.mk
include tests/ranks/local.mk
include tests/network/local.mk
include tests/train/local.mk
include tests/cuda/local.mk
include tests/report/local.mk
include tests/study/local.mk
include tests/install/local.mk
include tests/bundle/local.mk
include tests/device/local.mk
include tests/python/local.mk
include tests/postgres/local.mk
