# SPDX-License-Identifier: BSD-2-Clause
# The room of CUDA: the training device cuda, and what else runs on the card.
#
# A .cu file goes into a library's SOURCES like any other. nvcc compiles it through libtool; build-aux/nvcc.sh hands on
# what is meant for the host's compiler. What the kernels are compiled for: configure --with-cuda-arch.
CUDA_FLAGS = $(NVCC_ARCH) $(NVCCFLAGS) $(CUDA_WARNINGS) -Wall -fno-exceptions
if WERROR
CUDA_WARNINGS = -Werror all-warnings
endif
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
.cu.lo:
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=compile \
		$(SHELL) $(top_srcdir)/build-aux/nvcc.sh $(NVCC) $(CUDA_FLAGS) $(DL2_SANITIZE) $(DEFS) $(DEFAULT_INCLUDES) \
		$(AM_CPPFLAGS) $(CPPFLAGS) -MMD -MF $@.d -MT $@ -c -o $@ $<
-include $(wildcard $(CUDA_KERNELS:.cu=.lo.d))
CLEANFILES += $(CUDA_KERNELS:.cu=.lo.d)
EXTRA_DIST += build-aux/nvcc.sh

# All .cu files, for their dependencies.
TRAIN_KERNELS = cuda/dense.cu cuda/depthwise.cu cuda/elementwise.cu cuda/ingest.cu cuda/layer_norm.cu cuda/loss.cu cuda/norm.cu \
	cuda/optimizer.cu cuda/pool.cu cuda/softmax.cu cuda/tokens.cu
CUDA_KERNELS = $(TRAIN_KERNELS) cuda/score.cu cuda/decode/transform.cu

if HAVE_CUDA
# Shared by the parts of this room.
noinst_LTLIBRARIES += libgpu.la
libgpu_la_SOURCES = cuda/gpu.c cuda/gpu.h
libgpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
libgpu_la_LIBADD = $(CUDART_LIBS)

# The training device.
noinst_LTLIBRARIES += libdevice_cuda.la
libdevice_cuda_la_SOURCES = \
	cuda/attention_graph.c cuda/conv_graph.c cuda/cudnn_choice.c cuda/cudnn_choice.h cuda/cudnn_graph.c cuda/cudnn_graph.h cuda/cudnn_plan.c cuda/cudnn_plan.h cuda/plan_files.c cuda/plan_files.h \
	cuda/device_attention.c cuda/device_calls.c cuda/device_check.c cuda/device_check.h cuda/device_conv.c cuda/device_cuda.c cuda/device_cuda.h cuda/device_dense.c cuda/device_kernels.c \
	cuda/device_linear.c cuda/device_norm.c \
	$(TRAIN_KERNELS) cuda/kernels.h cuda/launch.h cuda/rows.cuh cuda/tensor.cuh \
	cuda/matmul.c cuda/matmul.h \
	cuda/reducer.h cuda/step_times.c cuda/step_times.h
libdevice_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
libdevice_cuda_la_LIBADD = libgpu.la $(CUDA_LIBS)
if HAVE_NCCL
libdevice_cuda_la_SOURCES += cuda/reducer_nccl.c
libdevice_cuda_la_LIBADD += $(NCCL_LIBS)
else
libdevice_cuda_la_SOURCES += cuda/reducer_none.c
endif
libdevice_la_LIBADD += libdevice_cuda.la
endif

# The loader's transform, of what was decoded on the card.
if HAVE_CUDA
noinst_LTLIBRARIES += libtransform_cuda.la
libtransform_cuda_la_SOURCES = cuda/decode/transform.cu cuda/decode/transform.h cuda/decode/transform_plan.c
endif

# Scoring.
if HAVE_CUDA
noinst_LTLIBRARIES += libscore_cuda.la
libscore_cuda_la_SOURCES = cuda/score.cu cuda/score.h cuda/score_device_cuda.c cuda/score_device_cuda.h
libscore_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
libscore_cuda_la_LIBADD = libgpu.la
endif

# The batch decoder nvjpeg.
if HAVE_NVJPEG
noinst_LTLIBRARIES += libdecode_cuda.la
libdecode_cuda_la_SOURCES = cuda/decode/decode.c cuda/decode/decode.h cuda/decode/jpeg_lists.c cuda/decode/jpeg_lists.h
libdecode_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(NVJPEG_CPPFLAGS) $(CUDA_CPPFLAGS)
libdecode_cuda_la_LIBADD = libtransform_cuda.la libgpu.la $(NVJPEG_LIBS)
endif
