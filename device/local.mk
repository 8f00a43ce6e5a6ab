# SPDX-License-Identifier: BSD-2-Clause
# The device seam, the reference device, and the cpu device. The cuda device is in cuda/.
noinst_LTLIBRARIES += libdevice.la
libdevice_la_SOURCES = \
	device/device.c device/device.h \
	device/dense.c device/dense.h \
	device/device_ref.c \
	device/ref_dense.c device/ref_dense.h \
	device/element.c device/element.h \
	device/host_memory.c device/host_memory.h \
	device/optimizer.c device/optimizer.h
libdevice_la_LIBADD = libranks.la libcommon.la

# The cpu device: its loops are compiled once for each SIMD level, with fused operations where it has them.
CPU_KERNELS_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math
if HAVE_ONEDNN
noinst_LTLIBRARIES += libdevice_cpu.la libcpu_kernels_c.la
libdevice_cpu_la_SOURCES = \
	device/cpu.c device/cpu.h \
	device/cpu_attention.c \
	device/cpu_batch_norm.c \
	device/cpu_dense.c \
	device/cpu_elementwise.c \
	device/cpu_layer_norm.c \
	device/cpu_pool.c \
	device/cpu_conv_linear.c \
	device/device_cpu.c \
	device/cpu_kernels.h \
	device/onednn.c device/onednn.h
libdevice_cpu_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
libdevice_cpu_la_LIBADD = libcpu_kernels_c.la $(ONEDNN_LIBS) $(OPENMP_LIBS)
libcpu_kernels_c_la_SOURCES = device/cpu_kernels.c
libcpu_kernels_c_la_CFLAGS = $(CPU_KERNELS_CFLAGS)
libdevice_la_LIBADD += libdevice_cpu.la
if HAVE_AVX2
noinst_LTLIBRARIES += libcpu_kernels_avx2.la
libcpu_kernels_avx2_la_SOURCES = device/cpu_kernels.c
libcpu_kernels_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DDL2_CPU_KERNELS=dl2_cpu_kernels_avx2 -DDL2_CPU_KERNELS_NAME='"avx2"'
libcpu_kernels_avx2_la_CFLAGS = $(CPU_KERNELS_CFLAGS) $(AVX2_CFLAGS)
libdevice_cpu_la_LIBADD += libcpu_kernels_avx2.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += libcpu_kernels_avx512.la
libcpu_kernels_avx512_la_SOURCES = device/cpu_kernels.c
libcpu_kernels_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DDL2_CPU_KERNELS=dl2_cpu_kernels_avx512 -DDL2_CPU_KERNELS_NAME='"avx512"'
libcpu_kernels_avx512_la_CFLAGS = $(CPU_KERNELS_CFLAGS) $(AVX512_CFLAGS) -mprefer-vector-width=512
libdevice_cpu_la_LIBADD += libcpu_kernels_avx512.la
endif
endif
