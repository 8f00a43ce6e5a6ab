/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/masks.h"

#include <inttypes.h>
#include <math.h>

int dl2_mask_init(struct dl2_sample_mask *mask, const struct dl2_loader_config *config,
                  struct dl2_error *error)
{
    if (!config->mask)
        return DL2_OK;
    const unsigned width = dl2_loader_width(config);
    DL2_TRY(dl2_decoder_create(&mask->decoder, error));
    DL2_TRY(dl2_bytes_resize(&mask->columns, width * sizeof(uint32_t), error));
    DL2_TRY(dl2_pixels_init(&mask->pixels, width, config->height, 1, error));
    mask->pixels.is_mask = true;
    mask->pixels.mask_fill = (uint8_t)config->mask_fill;
    return DL2_OK;
}

void dl2_mask_free(struct dl2_sample_mask *mask)
{
    dl2_bytes_free(&mask->bytes);
    dl2_bytes_free(&mask->columns);
    dl2_decoder_destroy(mask->decoder);
    dl2_pixels_free(&mask->pixels);
    mask->decoder = NULL;
}

size_t dl2_mask_memory(const struct dl2_sample_mask *mask)
{
    return mask->decoder ? mask->bytes.capacity + mask->columns.capacity +
                               dl2_decoder_memory(mask->decoder) + dl2_pixels_memory(&mask->pixels)
                         : 0;
}

int dl2_mask_read(struct dl2_sample_mask *mask, const struct dl2_loader_config *config,
                  const struct dl2_dataset *dataset, uint32_t index, struct dl2_error *error)
{
    const int status = dl2_dataset_read_sidecar(dataset, index, config->mask, &mask->bytes, error);
    if (status == 1)
        return DL2_OK;
    struct dl2_sample sample;
    dl2_dataset_sample(dataset, index, &sample);
    return status < 0 ? status
                      : dl2_error_set(error, DL2_ERR_FORMAT, "%s: mask: there is no '%s' beside it",
                                      sample.path, config->mask);
}

static int check_mask(const struct dl2_image_info *info, uint32_t width, uint32_t height,
                      struct dl2_error *error)
{
    const uint32_t own_width = dl2_upright_width(info), own_height = dl2_upright_height(info);
    if (!info->palette && (info->channels != 1 || info->alpha || info->bits > 8))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it has to be gray of 8 bits or fewer without alpha, or a PNG with a "
                             "palette, whose numbers count");
    if (own_width != width || own_height != height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is of %" PRIu32 "x%" PRIu32 ", its image of %" PRIu32 "x%" PRIu32,
                             own_width, own_height, width, height);
    return DL2_OK;
}

static uint32_t limited(double value, uint32_t highest)
{
    return value < 0 ? 0 : value > highest ? highest : (uint32_t)value;
}

int dl2_mask_show(struct dl2_sample_mask *mask, const struct dl2_loader_config *config,
                  uint32_t width, uint32_t height, const struct dl2_crop_box *crop,
                  struct dl2_error *error)
{
    struct dl2_image_info info;
    struct dl2_raster raster;
    DL2_TRY(dl2_decoder_open(mask->decoder, mask->bytes.data, mask->bytes.size, config->max_pixels,
                             &info, error));
    DL2_TRY(check_mask(&info, width, height, error));
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    request.indices = true;
    request.planes = false;
    request.external = &config->external;
    request.x = limited(floor(crop->left), width - 1);
    request.y = limited(floor(crop->top), height - 1);
    request.width = limited(ceil(crop->right), width) - request.x;
    request.height = limited(ceil(crop->bottom), height) - request.y;
    DL2_TRY(dl2_decoder_decode(mask->decoder, &request, &raster, error));
    const struct dl2_box box = {crop->left, crop->top, crop->right, crop->bottom};
    return dl2_crop_nearest(&raster, &box, crop->flipped, &mask->pixels,
                            (uint32_t *)(void *)mask->columns.data, error);
}
