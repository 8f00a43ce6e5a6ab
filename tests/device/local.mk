# SPDX-License-Identifier: BSD-2-Clause
# tests of device
test_device_sources = tests/device/test_device.c tests/device/test_device.h tests/device/device_cases.c \
	tests/device/device_dense.c \
	tests/device/device_operations.c tests/device/device_subjects.c
if HAVE_CMOCKA
check_PROGRAMS += tests/device/test_device
tests_device_test_device_SOURCES = $(test_device_sources)
tests_device_test_device_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_device_test_device_LDADD = libdevice.la $(CMOCKA_LIBS)
TESTS += tests/device/test_device
endif

# What a machine with a card runs, from a bundle or a checkout: device.py checks and measures everything there.
check_PROGRAMS += tests/device/smoke tests/device/steps
tests_device_smoke_SOURCES = tests/device/smoke.c
tests_device_smoke_LDADD = libnetwork.la
tests_device_steps_SOURCES = tests/device/steps.c
tests_device_steps_LDADD = libnetwork.la
TESTS += tests/device/device.sh
device_files = tests/device/card_load.py tests/device/device.py tests/device/peer_model.py tests/device/peer_steps.py tests/device/peer_train.py
EXTRA_DIST += tests/device/device.sh tests/device/photographs.sh $(device_files)
bundle_device_files += $(device_files)
bundle_checks += tests/device/smoke$(EXEEXT) tests/device/steps$(EXEEXT) tests/train/make_images$(EXEEXT)
if HAVE_CMOCKA
bundle_checks += tests/device/test_device$(EXEEXT)
if HAVE_CUDA
bundle_checks += tests/cuda/card_kernels$(EXEEXT)
if HAVE_NVJPEG
bundle_checks += tests/cuda/test_decode$(EXEEXT)
endif
endif
endif
