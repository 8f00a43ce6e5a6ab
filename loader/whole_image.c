/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/codec.h"
#include "common/scope.h"
#include "loader/unusual.h"

static int decode(const struct dl2_loader_config *config, const uint8_t *data, size_t size,
                  struct dl2_image *image, struct dl2_loader_stats *stats, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_image_free) struct dl2_image scratch = DL2_IMAGE_INIT;
    struct dl2_image_info info;
    struct dl2_decode_options how = DL2_DECODE_DEFAULTS;
    how.max_pixels = config->max_pixels;
    how.external = &config->external;
    how.drop_bands = config->drop_bands;
    how.channels = 3;
    how.info = &info;
    DL2_TRY(dl2_image_decode(data, size, &how, image, &scratch, error));
    const struct dl2_raster raster = dl2_raster_of(image, 0, 0);
    dl2_unusual_note(stats, &info, &raster);
    return DL2_OK;
}

int dl2_loader_decode(const struct dl2_dataset *dataset, size_t image,
                      const struct dl2_loader_config *config, struct dl2_bytes *pixels,
                      uint32_t *width, uint32_t *height, struct dl2_loader_stats *stats,
                      struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes encoded = DL2_BYTES_INIT;
    DL2_CLEANUP(dl2_image_free) struct dl2_image decoded = DL2_IMAGE_INIT;
    const enum dl2_sample_kind kind = dl2_dataset_kind(dataset);
    const uint8_t *data;
    size_t size;
    if (kind == DL2_SAMPLE_VIDEO || kind == DL2_SAMPLE_VOLUME)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "the dataset holds %s, not images",
                             kind == DL2_SAMPLE_VIDEO ? "videos" : "volumes");
    DL2_TRY(dl2_dataset_read(dataset, image, &encoded, &data, &size, error));
    const int status = decode(config, data, size, &decoded, stats, error);
    if (status < 0) {
        struct dl2_sample sample;
        dl2_dataset_image(dataset, image, &sample);
        dl2_error_prefix(error, "%s: decode", sample.path);
        return status;
    }
    *width = decoded.width;
    *height = decoded.height;
    pixels->size = 0;
    return dl2_bytes_append(pixels, decoded.data, decoded.stride * decoded.height, error);
}
