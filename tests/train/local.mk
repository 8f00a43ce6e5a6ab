# tests of train

# How a run goes.
if HAVE_CMOCKA
check_PROGRAMS += tests/train/test_schedule tests/train/test_checkpoint
tests_train_test_schedule_SOURCES = tests/train/test_schedule.c tests/train/schedule_vectors.h
tests_train_test_schedule_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_schedule_LDADD = libtrainer.la $(NVJPEG_LIBS) $(CMOCKA_LIBS)
tests_train_test_checkpoint_SOURCES = tests/train/test_checkpoint.c
tests_train_test_checkpoint_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_checkpoint_LDADD = libtrainer.la $(NVJPEG_LIBS) $(CMOCKA_LIBS)
TESTS += tests/train/test_schedule tests/train/test_checkpoint
endif
EXTRA_DIST += tests/train/make_schedule_vectors.py

check_PROGRAMS += tests/train/fuzz_checkpoint
tests_train_fuzz_checkpoint_SOURCES = tests/train/fuzz_checkpoint.c
tests_train_fuzz_checkpoint_LDADD = libtrainer.la $(NVJPEG_LIBS) $(FUZZ_LIBS)
tests_train_fuzz_checkpoint_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)

# Devices and networks.
if HAVE_CMOCKA
check_PROGRAMS += tests/train/test_device
tests_train_test_device_SOURCES = tests/train/test_device.c
tests_train_test_device_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_device_LDADD = libtrain.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/train/test_network
tests_train_test_network_SOURCES = tests/train/test_network.c
tests_train_test_network_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_network_LDADD = libtrain.la $(CMOCKA_LIBS)
TESTS += tests/train/test_device tests/train/test_network
check_PROGRAMS += tests/train/test_world
tests_train_test_world_SOURCES = tests/train/test_world.c
tests_train_test_world_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_world_LDADD = libtrain.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/train/test_ranks
tests_train_test_ranks_SOURCES = tests/train/test_ranks.c
tests_train_test_ranks_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_train_test_ranks_LDADD = libtrain.la $(CMOCKA_LIBS)
TESTS += tests/train/test_world tests/train/test_ranks
endif
EXTRA_DIST += tests/train/make_vectors.py tests/train/vectors-convnet.txt tests/train/vectors-resnet20.txt

# How fast the cpu device trains beside PyTorch: a benchmark, run by hand (docs/performance.md).
EXTRA_PROGRAMS += tests/bench/bench_train
tests_bench_bench_train_SOURCES = tests/bench/bench_train.c
tests_bench_bench_train_LDADD = libtrain.la
EXTRA_DIST += tests/bench/bench_train.py tests/bench/compare_train.sh tests/bench/scale_ranks.sh
check_PROGRAMS += tests/train/show_network
tests_train_show_network_SOURCES = tests/train/show_network.c
tests_train_show_network_LDADD = libtrainer.la
EXTRA_DIST += tests/train/compare_torchvision.py tests/train/edit_safetensors.py \
	tests/train/safetensors_file.py
check_PROGRAMS += tests/train/make_images
tests_train_make_images_SOURCES = tests/train/make_images.c
tests_train_make_images_LDADD = libcommon.la
train_tests = \
	tests/train/test_budget.sh \
	tests/train/test_data.sh \
	tests/train/test_device_cuda.sh \
	tests/train/test_fuzz_checkpoint.sh \
	tests/train/test_gpus.sh \
	tests/train/test_local.sh \
	tests/train/test_machines.sh \
	tests/train/test_mpi.sh \
	tests/train/test_options.sh \
	tests/train/test_resume.sh \
	tests/train/test_signal.sh \
	tests/train/test_torchvision.sh \
	tests/train/test_weights.sh
TESTS += $(train_tests)
EXTRA_DIST += $(train_tests) tests/train/train_lib.sh
