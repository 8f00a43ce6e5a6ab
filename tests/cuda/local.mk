# SPDX-License-Identifier: BSD-2-Clause
if HAVE_CUDA
if HAVE_CMOCKA
check_PROGRAMS += tests/cuda/test_gpu
tests_cuda_test_gpu_SOURCES = tests/cuda/test_gpu.c
tests_cuda_test_gpu_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_gpu_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_gpu_LDADD = libgpu.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/cuda/test_gpu
if HAVE_NVJPEG
check_PROGRAMS += tests/cuda/test_decode
tests_cuda_test_decode_SOURCES = tests/cuda/test_decode.c $(loader_photos)
tests_cuda_test_decode_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_decode_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_decode_LDADD = $(DECODERS) libgpu.la libloader.la libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/cuda/test_decode
endif
check_PROGRAMS += tests/cuda/test_plans
tests_cuda_test_plans_SOURCES = tests/cuda/test_plans.c
tests_cuda_test_plans_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_plans_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_plans_LDADD = libnetwork.la $(CMOCKA_LIBS) -ldl
TESTS += tests/cuda/test_plans
# The kernels on a card, without cuDNN and cublasLt; what compute-sanitizer watches.
check_PROGRAMS += tests/cuda/card_kernels
tests_cuda_card_kernels_SOURCES = tests/cuda/test_kernels.c
tests_cuda_card_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DDL2_CARD
tests_cuda_card_kernels_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_card_kernels_LDADD = libgpu.la libnetwork.la $(CMOCKA_LIBS)
TESTS += tests/cuda/card_kernels
endif
endif

# The kernels, compiled for this machine: cuda/NAME.cu becomes tests/cuda/NAME.emulated.o, which goes with
# tests/cuda/emulate.o.
EXTRA_DIST += tests/cuda/emulate.cpp tests/cuda/emulate.h
if HAVE_CXX
EMULATE = $(CC) -x c++ -std=c++17 -fno-exceptions -fno-rtti -DDL2_EMULATE $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) \
	$(EMULATE_WARNINGS) $(DL2_SANITIZE) $(CFLAGS)
EMULATE_WARNINGS = -Wall -Wextra -Wno-unknown-pragmas $(EMULATE_WERROR)
if WERROR
EMULATE_WERROR = -Werror
endif
# Of TRAIN_KERNELS, one by one: Automake has dependencies of what it can read.
train_kernels = tests/cuda/dense.emulated.o tests/cuda/depthwise.emulated.o tests/cuda/elementwise.emulated.o tests/cuda/ingest.emulated.o \
	tests/cuda/layer_norm.emulated.o tests/cuda/loss.emulated.o tests/cuda/norm.emulated.o tests/cuda/optimizer.emulated.o \
	tests/cuda/pool.emulated.o tests/cuda/softmax.emulated.o tests/cuda/tokens.emulated.o
# The same, which say what they read and write, so that emulate.o finds races; where no sanitizer watches them already.
if SANITIZE
WATCHED = emulated
else
WATCHED = watched
endif
watched_kernels = tests/cuda/depthwise.$(WATCHED).o tests/cuda/elementwise.$(WATCHED).o tests/cuda/ingest.$(WATCHED).o \
	tests/cuda/layer_norm.$(WATCHED).o tests/cuda/loss.$(WATCHED).o tests/cuda/norm.$(WATCHED).o \
	tests/cuda/optimizer.$(WATCHED).o tests/cuda/pool.$(WATCHED).o tests/cuda/softmax.$(WATCHED).o tests/cuda/tokens.$(WATCHED).o
tests/cuda/emulate.o: tests/cuda/emulate.cpp tests/cuda/emulate.h
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(EMULATE) -c -o $@ $(srcdir)/tests/cuda/emulate.cpp
tests/cuda/%.emulated.o: cuda/%.cu tests/cuda/emulate.h cuda/launch.h
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(EMULATE) -MMD -MF $@.d -MT $@ -c -o $@ $<
tests/cuda/%.watched.o: cuda/%.cu tests/cuda/emulate.h cuda/launch.h
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(EMULATE) -fsanitize=thread -MMD -MF $@.d -MT $@ -c -o $@ $<
-include $(wildcard tests/cuda/*.o.d tests/cuda/decode/*.o.d)
CLEANFILES += tests/cuda/*.o tests/cuda/*.o.d tests/cuda/decode/*.o tests/cuda/decode/*.o.d
if HAVE_CMOCKA
check_PROGRAMS += tests/cuda/test_score
tests_cuda_test_score_SOURCES = tests/cuda/test_score.c quality/score.c quality/score_share.c quality/score_source.c quality/volume_metrics.c quality/heatmap.c
tests_cuda_test_score_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_score_LDADD = tests/cuda/score.$(WATCHED).o tests/cuda/emulate.o libquality.la libdataset.la \
	libcodec.la libranks.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/cuda/test_score
check_PROGRAMS += tests/cuda/test_transform
tests_cuda_test_transform_SOURCES = tests/cuda/test_transform.c cuda/decode/transform_plan.c
tests_cuda_test_transform_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_transform_LDADD = tests/cuda/decode/transform.$(WATCHED).o tests/cuda/emulate.o libloader.la libdataset.la \
	libcodec.la libcommon.la $(CMOCKA_LIBS)
TESTS += tests/cuda/test_transform
check_PROGRAMS += tests/cuda/test_kernels
tests_cuda_test_kernels_SOURCES = tests/cuda/test_kernels.c
tests_cuda_test_kernels_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_kernels_LDADD = $(watched_kernels) tests/cuda/emulate.o libnetwork.la $(CMOCKA_LIBS)
TESTS += tests/cuda/test_kernels
# The training device's host code, too: with what stands in for CUDA, cuDNN and cublasLt before the real ones.
if HAVE_CUDA
fake_cuda_sources = \
	tests/cuda/fake_cublas.c tests/cuda/fake_cuda.c tests/cuda/fake_cuda.h tests/cuda/fake_cudnn.c
if HAVE_NCCL
fake_cuda_sources += tests/cuda/fake_nccl.c
endif
fake_cuda_objects = $(train_kernels) tests/cuda/emulate.o
check_PROGRAMS += tests/cuda/fake_test_device
tests_cuda_fake_test_device_SOURCES = $(test_device_sources) $(fake_cuda_sources)
tests_cuda_fake_test_device_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_fake_test_device_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_fake_test_device_LDADD = $(fake_cuda_objects) libnetwork.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/cuda/fake_dl2_quality
tests_cuda_fake_dl2_quality_SOURCES = $(dl2_quality_SOURCES) tests/cuda/fake_threads.c tests/cuda/fake_threads.h tests/cuda/fake_cuda.h
tests_cuda_fake_dl2_quality_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_fake_dl2_quality_LDADD = tests/cuda/score.emulated.o tests/cuda/emulate.o $(dl2_quality_LDADD)
if HAVE_NVJPEG
check_PROGRAMS += tests/cuda/fake_test_decode
tests_cuda_fake_test_decode_SOURCES = tests/cuda/test_decode.c tests/cuda/fake_nvjpeg.c tests/cuda/fake_threads.c \
	tests/cuda/fake_threads.h tests/cuda/fake_cuda.h $(loader_photos)
tests_cuda_fake_test_decode_CPPFLAGS = $(AM_CPPFLAGS) $(NVJPEG_CPPFLAGS) $(CUDA_CPPFLAGS) -DDL2_FAKE
tests_cuda_fake_test_decode_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_fake_test_decode_LDADD = tests/cuda/decode/transform.emulated.o tests/cuda/emulate.o $(DECODERS) libgpu.la libloader.la \
	libdataset.la libcodec.la libcommon.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/cuda/fake_decode_train
tests_cuda_fake_decode_train_SOURCES = $(dl2_train_SOURCES) tests/cuda/fake_cublas.c tests/cuda/fake_cudnn.c \
	tests/cuda/fake_nvjpeg.c tests/cuda/fake_threads.c tests/cuda/fake_threads.h tests/cuda/fake_cuda.h
tests_cuda_fake_decode_train_CPPFLAGS = $(AM_CPPFLAGS) $(NVJPEG_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_fake_decode_train_LDADD = tests/cuda/decode/transform.emulated.o $(fake_cuda_objects) $(dl2_train_LDADD)
endif
check_PROGRAMS += tests/cuda/fake_dl2_train
tests_cuda_fake_dl2_train_SOURCES = $(dl2_train_SOURCES) $(fake_cuda_sources)
tests_cuda_fake_dl2_train_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_fake_dl2_train_LDADD = $(fake_cuda_objects) $(dl2_train_LDADD)
endif
endif
endif
# The longest first, so that no core waits for them at the end.
cuda_tests = \
	tests/cuda/test_fake_train.sh \
	tests/cuda/test_fake_ranks.sh \
	tests/cuda/test_fake_device.sh \
	tests/cuda/test_fake_check.sh \
	tests/cuda/test_fake_plans.sh \
	tests/cuda/test_attention_plans.sh \
	tests/cuda/test_fake_decode.sh \
	tests/cuda/test_fake_decode_train.sh \
	tests/cuda/test_fake_quality.sh \
	tests/cuda/test_sass.sh
TESTS += $(cuda_tests)
EXTRA_DIST += $(cuda_tests)

# What a step must do at least, from a count; run by hand (docs/measurements/cuda.md).
EXTRA_PROGRAMS += tests/cuda/count_step
tests_cuda_count_step_SOURCES = tests/cuda/count_step.c
tests_cuda_count_step_LDADD = libnetwork.la
