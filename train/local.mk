# SPDX-License-Identifier: BSD-2-Clause
# How a run goes: schedules, budgets, mixup, checkpoints, the loop.
noinst_LTLIBRARIES += libtrainer.la
libtrainer_la_SOURCES = \
	train/checkpoint.c train/checkpoint.h \
	train/clip_means.c train/clip_means.h \
	train/evaluate.c \
	train/experiment.c \
	train/feed.c train/feed.h \
	train/fit.c train/fit.h \
	train/loop.c \
	train/measure.c \
	train/mixup.c train/mixup.h \
	train/pixel_labels.c \
	train/predictions.c train/predictions.h \
	train/run.c train/run.h \
	train/run_begin.c \
	train/run_data.c \
	train/run_loss.c \
	train/run_open.c \
	train/run_progress.c \
	train/schedule.c train/schedule.h \
	train/sensitivity.c train/sensitivity.h \
	train/sliding_window.c train/sliding_window.h \
	train/step_log.c train/step_log.h \
	train/train_options.c train/train_options.h \
	train/trainer.h \
	train/validation.c \
	train/whole_volumes.c \
	train/several/budget.c train/several/budget.h \
	train/several/configs.c train/several/configs.h \
	train/several/hop.c train/several/hop.h \
	train/several/in_database.c \
	train/several/makespan.c train/several/makespan.h \
	train/several/search.c train/several/search.h \
	train/several/search_options.h \
	train/several/search_space.c train/several/search_space.h \
	train/several/search_state.h \
	train/several/search_table.c \
	train/several/visit.c
libtrainer_la_LIBADD = libnetwork.la libdecoders.la libloader.la $(ZLIB_LIBS)

bin_PROGRAMS += dl2-train
dl2_commands += dl2-train
dl2_train_SOURCES = train/dl2_train.c train/train_console.c train/train_console.h
dl2_train_LDADD = libtrainer.la $(NVJPEG_LIBS)
