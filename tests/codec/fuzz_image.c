/* SPDX-License-Identifier: BSD-2-Clause */
/* Every decoder and parser of headers and metadata on any bytes; the first bytes decide which. */
#include "codec/codec.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = 1 << 20;
    options.channels = size % 3 == 1 ? 1 : size % 3 == 2 ? 3 : 0;
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_image_info info;
    struct dl2_error info_error = DL2_ERROR_INIT, error = DL2_ERROR_INIT;
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    struct dl2_coding coding;
    if (codec && codec->coding && codec->coding(data, size, &coding) &&
        (coding.quality < 0 || coding.quality > 100 || !*coding.subsampling))
        abort();
    if (codec && codec->coded_bytes && codec->coded_bytes(data, size) > size)
        abort();
    int info_status = dl2_image_read_info(data, size, &info, &info_error);
    int status = dl2_image_decode(data, size, &options, &image, &scratch, &error);
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB};
    struct dl2_error color_error = DL2_ERROR_INIT;
    const int color_status = info_status == DL2_OK
                                 ? dl2_image_read_color(data, size, &info, &color, &color_error)
                                 : DL2_OK;
    if ((color_status < 0) != (color_error.message[0] != '\0') ||
        (color_status == DL2_OK && color.form != DL2_COLOR_SPACE_SRGB && !*color.name))
        abort();
    dl2_color_free(&color);
    /* A failure says why, and is the same for those who don't ask. */
    if ((info_status < 0) != (info_error.message[0] != '\0') ||
        (status < 0) != (error.message[0] != '\0') || (info_status < 0 && status == DL2_OK))
        abort();
    if (status == DL2_OK) {
        uint32_t channels = options.channels ? options.channels : info.channels;
        if (image.width != dl2_upright_width(&info) || image.height != dl2_upright_height(&info) ||
            image.channels != channels ||
            (uint64_t)image.width * image.height > options.max_pixels || info.orientation < 1 ||
            info.orientation > 8)
            abort();
        /* All of the pixels can be read. */
        volatile uint8_t last = image.data[image.stride * image.height - 1];
        (void)last;
    }
    struct dl2_deep_image deep = {.width = 0};
    const int depth = dl2_image_decode_deep(data, size, &options, &deep, NULL);
    if (depth > 0 && (info_status < 0 || deep.width != dl2_upright_width(&info) ||
                      deep.height != dl2_upright_height(&info) || deep.channels != info.channels))
        abort();
    dl2_bytes_free(&deep.bytes);
    struct dl2_metadata metadata = {.partial = false};
    if (dl2_image_read_metadata(data, size, &metadata, NULL) == DL2_OK)
        dl2_metadata_make_upright(&metadata);
    dl2_metadata_free(&metadata);
    dl2_image_free(&image);
    dl2_image_free(&scratch);
    return 0;
}
