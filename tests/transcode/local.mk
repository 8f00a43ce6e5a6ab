# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/transcode/images
tests_transcode_images_SOURCES = tests/transcode/images.c tests/codec/sample_files.c tests/codec/sample_files.h
tests_transcode_images_CFLAGS = $(sample_cflags)
tests_transcode_images_LDADD = libcodec.la $(sample_libs)
TESTS += tests/transcode/transcode.sh tests/transcode/kill.sh tests/transcode/masks.sh tests/transcode/annotations.sh tests/transcode/clips.sh tests/transcode/frames.sh tests/transcode/videos.sh tests/transcode/container.sh tests/transcode/copy.sh tests/transcode/foreign.sh \
	tests/transcode/resolution.sh tests/transcode/settings.sh tests/transcode/parts.sh tests/transcode/parts_kill.sh tests/transcode/target.sh tests/transcode/sidecars.sh tests/transcode/color.sh tests/transcode/metadata.sh \
	tests/transcode/survey.sh tests/transcode/fit_tables.sh tests/transcode/tables.sh tests/transcode/parts_tables.sh tests/transcode/external.sh tests/transcode/external_pipe.sh tests/transcode/external_cjxl.sh tests/transcode/volumes.sh tests/transcode/preprocess.sh
EXTRA_DIST += tests/transcode/transcode.sh tests/transcode/kill.sh tests/transcode/masks.sh tests/transcode/annotations.sh tests/transcode/clips.sh tests/transcode/frames.sh tests/transcode/videos.sh tests/transcode/container.sh tests/transcode/copy.sh tests/transcode/foreign.sh \
	tests/transcode/resolution.sh tests/transcode/settings.sh tests/transcode/parts.sh tests/transcode/parts_kill.sh tests/transcode/target.sh tests/transcode/sidecars.sh tests/transcode/color.sh tests/transcode/metadata.sh \
	tests/transcode/survey.sh tests/transcode/fit_tables.sh tests/transcode/tables.sh tests/transcode/parts_tables.sh tests/transcode/external.sh tests/transcode/external_pipe.sh tests/transcode/external_cjxl.sh tests/transcode/volumes.sh tests/transcode/volumes.py tests/transcode/preprocess.sh tests/transcode/preprocess.py tests/transcode/foreign.py

check_PROGRAMS += tests/transcode/fuzz_variant
tests_transcode_fuzz_variant_SOURCES = tests/transcode/fuzz_variant.c
tests_transcode_fuzz_variant_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_transcode_fuzz_variant_LDADD = $(FUZZ_LIBS) libtranscode.la
TESTS += tests/transcode/fuzz_variant.sh
EXTRA_DIST += tests/transcode/fuzz_variant.sh

# Not a test: tests/transcode/bench_transcode.sh says how to run it.
if HAVE_JPEG
EXTRA_PROGRAMS += tests/transcode/bench_transcode
tests_transcode_bench_transcode_SOURCES = tests/transcode/bench_transcode.c
tests_transcode_bench_transcode_CFLAGS = $(AM_CFLAGS) $(JPEG_CFLAGS)
tests_transcode_bench_transcode_LDADD = libcommon.la $(JPEG_LIBS)
endif
EXTRA_DIST += tests/transcode/bench_transcode.sh

if HAVE_CMOCKA
check_PROGRAMS += tests/transcode/test_fit
tests_transcode_test_fit_SOURCES = tests/transcode/test_fit.c
tests_transcode_test_fit_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_transcode_test_fit_LDADD = libtranscode.la $(CMOCKA_LIBS)
TESTS += tests/transcode/test_fit
endif

# Not tests: their first comments say how to run them.
EXTRA_PROGRAMS += tests/bench/bench_target
tests_bench_bench_target_SOURCES = tests/bench/bench_target.c
tests_bench_bench_target_LDADD = libtranscode.la
EXTRA_DIST += tests/bench/targets.sh tests/bench/many_files.sh tests/bench/share_transcode.sh

if HAVE_CMOCKA
check_PROGRAMS += tests/transcode/test_target
TESTS += tests/transcode/test_target
tests_transcode_test_target_SOURCES = tests/transcode/test_target.c tests/codec/sample_files.c tests/codec/sample_files.h
tests_transcode_test_target_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_transcode_test_target_LDADD = libtranscode.la $(sample_libs) $(CMOCKA_LIBS)
endif
