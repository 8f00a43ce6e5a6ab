# SPDX-License-Identifier: BSD-2-Clause
# tests of train
if HAVE_CMOCKA
check_PROGRAMS += tests/train/test_schedule
tests_train_test_schedule_SOURCES = tests/train/test_schedule.c tests/train/schedule_vectors.h
tests_train_test_schedule_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_schedule_LDADD = libtrainer.la $(NVJPEG_LIBS) $(CMOCKA_LIBS)
TESTS += tests/train/test_schedule

check_PROGRAMS += tests/train/test_makespan
tests_train_test_makespan_SOURCES = tests/train/test_makespan.c
tests_train_test_makespan_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_makespan_LDADD = libtrainer.la $(NVJPEG_LIBS) $(CMOCKA_LIBS)
TESTS += tests/train/test_makespan

check_PROGRAMS += tests/train/test_sliding_window
tests_train_test_sliding_window_SOURCES = tests/train/test_sliding_window.c \
	tests/dataset/scratch.c tests/dataset/scratch.h
tests_train_test_sliding_window_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_sliding_window_LDADD = libtrainer.la $(NVJPEG_LIBS) $(CMOCKA_LIBS)
TESTS += tests/train/test_sliding_window
endif
EXTRA_DIST += tests/train/make_schedule_vectors.py

check_PROGRAMS += tests/train/make_images tests/train/make_clips tests/train/make_masks \
	tests/train/make_volumes
tests_train_make_volumes_SOURCES = tests/train/make_volumes.c
tests_train_make_volumes_LDADD = libcommon.la
tests_train_make_masks_SOURCES = tests/train/make_masks.c
tests_train_make_masks_LDADD = libcommon.la
tests_train_make_clips_SOURCES = tests/train/make_clips.c
tests_train_make_clips_LDADD = libcommon.la
tests_train_make_images_SOURCES = tests/train/make_images.c
tests_train_make_images_LDADD = libcommon.la

check_PROGRAMS += tests/train/fit_rows
tests_train_fit_rows_SOURCES = tests/train/fit_rows.c
tests_train_fit_rows_LDADD = libtrainer.la $(NVJPEG_LIBS)

check_PROGRAMS += tests/train/fuzz_settings
tests_train_fuzz_settings_SOURCES = tests/train/fuzz_settings.c
tests_train_fuzz_settings_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_train_fuzz_settings_LDADD = $(FUZZ_LIBS) libtrainer.la $(NVJPEG_LIBS)

train_tests = \
	tests/train/fuzz_settings.sh \
	tests/train/test_asha.sh \
	tests/train/test_best.sh \
	tests/train/test_budget.sh \
	tests/train/test_clips.sh \
	tests/train/test_val_clips.sh \
	tests/train/test_masks.sh \
	tests/train/test_volumes.sh \
	tests/train/test_configs.sh \
	tests/train/test_data.sh \
	tests/train/test_device_cuda.sh \
	tests/train/test_evaluate.sh \
	tests/train/test_sensitivity.sh \
	tests/train/test_fit.sh \
	tests/train/test_hop.sh tests/train/test_plan.sh \
	tests/train/test_lost.sh \
	tests/train/test_measure.sh \
	tests/train/test_options.sh \
	tests/train/test_predictions.sh \
	tests/train/test_resume.sh \
	tests/train/test_search.sh \
	tests/train/test_share.sh \
	tests/train/test_signal.sh \
	tests/train/test_stages.sh \
	tests/train/test_task.sh
TESTS += $(train_tests)
EXTRA_DIST += $(train_tests) tests/train/train_lib.sh

# How fast the cpu device trains beside PyTorch: a benchmark, run by hand (docs/measurements/train.md).
EXTRA_PROGRAMS += tests/bench/bench_train
tests_bench_bench_train_SOURCES = tests/bench/bench_train.c
tests_bench_bench_train_LDADD = libnetwork.la
EXTRA_DIST += tests/bench/bench_train.py tests/bench/compare_train.sh tests/bench/scale_ranks.sh \
	tests/bench/hop.sh tests/bench/share_batches.sh tests/bench/ways.sh
