# SPDX-License-Identifier: BSD-2-Clause
# tests of network
if HAVE_CMOCKA
check_PROGRAMS += tests/network/test_network tests/network/test_safetensors
tests_network_test_network_SOURCES = tests/network/test_network.c
tests_network_test_network_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_network_test_network_LDADD = libnetwork.la $(CMOCKA_LIBS)
tests_network_test_safetensors_SOURCES = tests/network/test_safetensors.c
tests_network_test_safetensors_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_network_test_safetensors_LDADD = libnetwork.la $(CMOCKA_LIBS)
TESTS += tests/network/test_network tests/network/test_safetensors
endif
check_PROGRAMS += tests/network/fuzz_safetensors tests/network/show_network
tests_network_fuzz_safetensors_SOURCES = tests/network/fuzz_safetensors.c
tests_network_fuzz_safetensors_LDADD = libnetwork.la $(FUZZ_LIBS)
tests_network_fuzz_safetensors_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_network_show_network_SOURCES = tests/network/show_network.c
tests_network_show_network_LDADD = libtrainer.la
network_tests = tests/network/fuzz_safetensors.sh tests/network/test_torchvision.sh tests/network/test_weights.sh
TESTS += $(network_tests)
EXTRA_DIST += $(network_tests) tests/network/compare_torchvision.py tests/network/edit_safetensors.py \
	tests/network/make_vectors.py tests/network/safetensors_file.py tests/network/vectors-convnet.txt \
	tests/network/vectors-resnet20.txt tests/network/vectors-convcolumn.txt \
	tests/network/vectors-unet.txt tests/network/vectors-unet3d_small.txt
