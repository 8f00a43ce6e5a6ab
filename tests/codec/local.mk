# SPDX-License-Identifier: BSD-2-Clause
# The libraries that sample files are made with.
sample_cflags = $(AM_CFLAGS) $(JP2_CFLAGS) $(JPEG_CFLAGS) $(JXL_CFLAGS) $(PNG_CFLAGS) $(WEBP_CFLAGS)
sample_libs = $(JP2_LIBS) $(JPEG_LIBS) $(JXL_LIBS) $(PNG_LIBS) $(WEBP_LIBS)

check_PROGRAMS += tests/codec/make_corpus tests/codec/fuzz_image tests/codec/fuzz_exif
tests_codec_make_corpus_SOURCES = tests/codec/make_corpus.c tests/codec/ht_golden.h tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_make_corpus_CFLAGS = $(sample_cflags)
tests_codec_make_corpus_LDADD = libcodec.la $(sample_libs)
tests_codec_fuzz_image_SOURCES = tests/codec/fuzz_image.c
tests_codec_fuzz_image_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_codec_fuzz_image_LDADD = $(FUZZ_LIBS) libcodec.la
tests_codec_fuzz_exif_SOURCES = tests/codec/fuzz_exif.c
tests_codec_fuzz_exif_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_codec_fuzz_exif_LDADD = $(FUZZ_LIBS) libcodec.la
check_PROGRAMS += tests/codec/fuzz_video
tests_codec_fuzz_video_SOURCES = tests/codec/fuzz_video.c
tests_codec_fuzz_video_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_codec_fuzz_video_LDADD = $(FUZZ_LIBS) libcodec.la
check_PROGRAMS += tests/codec/compare_parts
tests_codec_compare_parts_SOURCES = tests/codec/compare_parts.c
tests_codec_compare_parts_LDADD = libloader.la libdataset.la libcodec.la libcommon.la -lm
if HAVE_JPEG
check_PROGRAMS += tests/codec/fuzz_jpeg_tiles
tests_codec_fuzz_jpeg_tiles_SOURCES = tests/codec/fuzz_jpeg_tiles.c
tests_codec_fuzz_jpeg_tiles_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_codec_fuzz_jpeg_tiles_LDADD = $(FUZZ_LIBS) libcodec.la
check_PROGRAMS += tests/codec/fuzz_jpeg
tests_codec_fuzz_jpeg_SOURCES = tests/codec/fuzz_jpeg.c tests/codec/jpeg_compare.c tests/codec/jpeg_compare.h
tests_codec_fuzz_jpeg_CFLAGS = $(AM_CFLAGS) $(JPEG_CFLAGS)
tests_codec_fuzz_jpeg_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_codec_fuzz_jpeg_LDADD = $(FUZZ_LIBS) libcodec.la
endif
TESTS += tests/codec/fuzz_image.sh tests/codec/fuzz_video.sh tests/codec/parts.sh tests/codec/read_only.sh tests/codec/bands.sh tests/codec/further_pictures.sh
EXTRA_DIST += tests/codec/fuzz_image.sh tests/codec/fuzz_video.sh tests/codec/parts.sh tests/codec/read_only.sh tests/codec/read_only.py tests/codec/bands.sh tests/codec/bands.py tests/codec/further_pictures.sh tests/codec/further_pictures.py tests/codec/gen_ht.sh

if HAVE_CMOCKA
if HAVE_LCMS
check_PROGRAMS += tests/codec/test_color
tests_codec_test_color_SOURCES = tests/codec/test_color.c tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_color_CFLAGS = $(sample_cflags) $(LCMS_CFLAGS) $(CMOCKA_CFLAGS)
tests_codec_test_color_LDADD = libcodec.la $(sample_libs) $(LCMS_LIBS) $(CMOCKA_LIBS)
TESTS += tests/codec/test_color
endif
check_PROGRAMS += tests/codec/test_gray
tests_codec_test_gray_SOURCES = tests/codec/test_gray.c
tests_codec_test_gray_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_codec_test_gray_LDADD = libcodec.la $(CMOCKA_LIBS) -lm
TESTS += tests/codec/test_gray
if HAVE_JXL
check_PROGRAMS += tests/codec/test_jxl
tests_codec_test_jxl_SOURCES = tests/codec/test_jxl.c tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_jxl_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_codec_test_jxl_LDADD = libcodec.la $(sample_libs) $(CMOCKA_LIBS)
TESTS += tests/codec/test_jxl
endif
if HAVE_JPEG
check_PROGRAMS += tests/codec/test_jpeg
tests_codec_test_jpeg_SOURCES = tests/codec/test_jpeg.c tests/codec/jpeg_compare.c tests/codec/jpeg_compare.h tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_jpeg_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_codec_test_jpeg_LDADD = libcodec.la $(sample_libs) $(CMOCKA_LIBS)
check_PROGRAMS += tests/codec/test_jpeg_sweep
tests_codec_test_jpeg_sweep_SOURCES = tests/codec/test_jpeg_sweep.c tests/common/allocations.c tests/common/allocations.h tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_jpeg_sweep_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_codec_test_jpeg_sweep_LDADD = libcodec.la $(sample_libs) $(CMOCKA_LIBS)
TESTS += tests/codec/test_jpeg tests/codec/test_jpeg_sweep
endif
check_PROGRAMS += tests/codec/test_codec
tests_codec_test_codec_SOURCES = tests/codec/test_codec.c tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_codec_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_codec_test_codec_LDADD = libcodec.la $(sample_libs) $(CMOCKA_LIBS)
check_PROGRAMS += tests/codec/test_rectangles
tests_codec_test_rectangles_SOURCES = tests/codec/test_rectangles.c tests/codec/ht_golden.h tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_rectangles_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_codec_test_rectangles_LDADD = libcodec.la $(sample_libs) $(CMOCKA_LIBS)
check_PROGRAMS += tests/codec/test_decoder
tests_codec_test_decoder_SOURCES = tests/codec/test_decoder.c tests/common/allocations.c tests/common/allocations.h tests/codec/sample_files.c tests/codec/sample_files.h
tests_codec_test_decoder_CFLAGS = $(sample_cflags) $(CMOCKA_CFLAGS)
tests_codec_test_decoder_LDADD = libcodec.la $(sample_libs) $(CMOCKA_LIBS)
TESTS += tests/codec/test_codec tests/codec/test_rectangles tests/codec/test_decoder
endif

# Not a test: `make tests/bench/bench_decode && ./tests/bench/bench_decode jpeg-90 5 IMAGE...`.
EXTRA_PROGRAMS += tests/bench/bench_decode
tests_bench_bench_decode_SOURCES = tests/bench/bench_decode.c
tests_bench_bench_decode_LDADD = libcodec.la libcommon.la -lm
EXTRA_PROGRAMS += tests/bench/bench_encode
tests_bench_bench_encode_SOURCES = tests/bench/bench_encode.c
tests_bench_bench_encode_LDADD = libcodec.la libcommon.la -lm
