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
	train/feed.c train/feed.h \
	train/mixup.c train/mixup.h \
	train/schedule.c train/schedule.h
libtrainer_la_LIBADD = $(ZLIB_LIBS)
