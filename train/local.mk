# The training library: the device seam, its devices, networks. dl2-train stands on it.
noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES = \
	train/arch.c train/arch.h \
	train/device.c train/device.h \
	train/device_ref.c \
	train/element.c train/element.h \
	train/graph.c train/graph.h \
	train/launch.c \
	train/network.c train/network.h \
	train/reducer.c train/reducer.h \
	train/sync_norm.c train/sync_norm.h \
	train/world.c train/world.h \
	train/world_local.c train/world_local.h
libtrain_la_LIBADD = libcommon.la

if HAVE_MPI
noinst_LTLIBRARIES += libtrain_mpi.la
libtrain_mpi_la_SOURCES = train/world_mpi.c
libtrain_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
libtrain_mpi_la_LIBADD = $(MPI_LIBS)
libtrain_la_LIBADD += libtrain_mpi.la
endif

# The cpu device: its loops are compiled once for each SIMD level.
KERNELS_CFLAGS = $(AM_CFLAGS) -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math
if HAVE_ONEDNN
noinst_LTLIBRARIES += libtrain_cpu.la libkernels_c.la
libtrain_cpu_la_SOURCES = \
	train/cpu.h \
	train/cpu_attention.c \
	train/cpu_batch_norm.c \
	train/cpu_elementwise.c \
	train/cpu_layer_norm.c \
	train/cpu_pool.c \
	train/cpu_product.c \
	train/device_cpu.c \
	train/kernels.h \
	train/onednn.c train/onednn.h
libtrain_cpu_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
libtrain_cpu_la_LIBADD = libkernels_c.la $(ONEDNN_LIBS) $(OPENMP_LIBS)
libkernels_c_la_SOURCES = train/kernels.c
libkernels_c_la_CFLAGS = $(KERNELS_CFLAGS)
libtrain_la_LIBADD += libtrain_cpu.la
if HAVE_AVX2
noinst_LTLIBRARIES += libkernels_avx2.la
libkernels_avx2_la_SOURCES = train/kernels.c
libkernels_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DDL2_KERNELS=dl2_kernels_avx2 -DDL2_KERNELS_NAME='"avx2"'
libkernels_avx2_la_CFLAGS = $(KERNELS_CFLAGS) $(AVX2_CFLAGS)
libtrain_cpu_la_LIBADD += libkernels_avx2.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += libkernels_avx512.la
libkernels_avx512_la_SOURCES = train/kernels.c
libkernels_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DDL2_KERNELS=dl2_kernels_avx512 -DDL2_KERNELS_NAME='"avx512"'
libkernels_avx512_la_CFLAGS = $(KERNELS_CFLAGS) $(AVX512_CFLAGS) -mprefer-vector-width=512
libtrain_cpu_la_LIBADD += libkernels_avx512.la
endif
endif

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
	train/trainer.c train/trainer.h \
	train/weights.c train/weights.h
libtrainer_la_LIBADD = libtrain.la libdecoders.la libloader.la $(ZLIB_LIBS)

bin_PROGRAMS += dl2-train
dl2_commands += dl2-train
dl2_train_SOURCES = train/dl2_train.c
dl2_train_LDADD = libtrainer.la $(NVJPEG_LIBS)
