# SPDX-License-Identifier: BSD-2-Clause
TESTS += tests/python/copy_into_shards.sh tests/python/examples.sh tests/python/frameworks.sh tests/python/hub.sh tests/python/optuna.sh tests/python/other_torch.sh \
	tests/python/python.sh tests/python/study.sh tests/python/torch.sh tests/python/wheel.sh
EXTRA_DIST += tests/python/copy_into_shards.py tests/python/copy_into_shards.sh tests/python/examples.sh tests/python/fake_card.py \
	tests/python/frameworks.sh tests/python/hub.sh tests/python/module.sh tests/python/optuna.sh tests/python/other_torch.sh \
	tests/python/python.sh \
	tests/python/small_dataset.py tests/python/study.sh tests/python/test_study.py tests/python/test_sensitivity.py tests/python/test_arrays.py tests/python/test_boxes.py tests/python/test_calls.py tests/python/test_clips.py tests/python/test_videos.py tests/python/test_dataset.py \
	tests/python/test_epochs.py tests/python/test_frameworks.py tests/python/test_hub.py tests/python/test_images.py tests/python/test_joined.py tests/python/test_volumes.py tests/python/test_torch.py tests/python/torch.sh \
	tests/python/train_plain.py tests/python/wheel.sh

# dl2._decoders with a stand-in for a card.
if HAVE_PYTHON
check_LTLIBRARIES += tests/python/fake_decoders.la
tests_python_fake_decoders_la_SOURCES = tests/python/fake_decoders.c python/py_decoders.c loader/batch_decoders.c \
	$(fake_decoder)
tests_python_fake_decoders_la_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS) $(ZLIB_CFLAGS) -DHAVE_NVJPEG=1
tests_python_fake_decoders_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere \
	-export-symbols-regex '^(PyInit__decoders|fake_.*)$$'
tests_python_fake_decoders_la_LIBADD = $(libcommon_la_OBJECTS) $(libpixels_la_OBJECTS) $(libcodec_la_OBJECTS) \
	$(filter-out $(LIBDL2_ROOMS),$(libpixels_la_LIBADD) $(libcodec_la_LIBADD) $(libcommon_la_LIBADD)) $(ZLIB_LIBS)
tests_python_fake_decoders_la_DEPENDENCIES = libcommon.la libpixels.la libcodec.la
endif
