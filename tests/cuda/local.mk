if HAVE_CUDA
if HAVE_CMOCKA
check_PROGRAMS += tests/cuda/test_gpu
tests_cuda_test_gpu_SOURCES = tests/cuda/test_gpu.c
tests_cuda_test_gpu_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_gpu_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_cuda_test_gpu_LDADD = libgpu.la $(CMOCKA_LIBS)
TESTS += tests/cuda/test_gpu
endif
endif
