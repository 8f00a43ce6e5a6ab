# The training library: the device seam, its devices, networks. dl2-train stands on it.
noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES = \
	train/arch.c train/arch.h \
	train/device.c train/device.h \
	train/device_ref.c \
	train/network.c train/network.h
libtrain_la_LIBADD = libcommon.la

# How a run goes: schedules, budgets, mixup, checkpoints, the loop.
noinst_LTLIBRARIES += libtrainer.la
libtrainer_la_SOURCES = \
	train/budget.c train/budget.h \
	train/checkpoint.c train/checkpoint.h \
	train/experiment.c \
	train/feed.c train/feed.h \
	train/mixup.c train/mixup.h \
	train/run.c train/run.h \
	train/run_state.c train/run_state.h \
	train/schedule.c train/schedule.h \
	train/trainer.c train/trainer.h
libtrainer_la_LIBADD = libtrain.la libloader.la $(ZLIB_LIBS)

bin_PROGRAMS += dl2-train
dl2_train_SOURCES = train/dl2_train.c
dl2_train_LDADD = libtrainer.la
