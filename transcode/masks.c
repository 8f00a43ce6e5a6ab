/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/masks.h"

#include "codec/decoder.h"
#include "common/file.h"
#include "common/scope.h"
#include "dataset/dataset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Is "KEY.EXTENSION" called as a mask is? */
static bool is_called_mask(const char *extension)
{
    char name[64];
    const char *dot = strrchr(extension, '.');
    return dot && dot - extension < (int)sizeof name - 2 &&
           snprintf(name, sizeof name, "k.%.*s", (int)(dot - extension), extension) > 0 &&
           dl2_dataset_mask_stem(name) == 1;
}

/* Why the item is no mask that can be resized; DL2_OK: it is one. */
static int check_mask(const struct dl2_sidecar *item, bool called_mask, uint32_t width,
                      uint32_t height, struct dl2_image_info *info, struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_sniff(item->bytes.data, item->bytes.size);
    DL2_TRY(dl2_image_read_info(item->bytes.data, item->bytes.size, info, error));
    if (codec->lossy || !codec->encode)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "this build writes no lossless %s; convert it to PNG", codec->name);
    if (!info->palette && (info->bits > 8 || info->alpha || (info->channels != 1 && !called_mask)))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "it has more than 8 bits a sample, alpha, or colors");
    if (dl2_upright_width(info) != width || dl2_upright_height(info) != height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is of %" PRIu32 "x%" PRIu32 " pixels, its image of %" PRIu32
                             "x%" PRIu32,
                             dl2_upright_width(info), dl2_upright_height(info), width, height);
    return DL2_OK;
}

/* Decodes a mask of this size into resizer->image. */
static int decode_mask(struct dl2_mask_resizer *resizer, const struct dl2_sidecar *item,
                       uint32_t width, uint32_t height, struct dl2_error *error)
{
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    struct dl2_image *image = &resizer->image;
    struct dl2_image_info info;
    struct dl2_raster raster;
    DL2_CLEANUP(dl2_decoder_drop) struct dl2_decoder *decoder = NULL;
    request.indices = true;
    request.planes = false;
    request.width = width;
    request.height = height;
    DL2_TRY(dl2_decoder_create(&decoder, error));
    DL2_TRY(dl2_decoder_open(decoder, item->bytes.data, item->bytes.size, (uint64_t)width * height,
                             &info, error));
    DL2_TRY(dl2_decoder_decode(decoder, &request, &raster, error));
    DL2_TRY(dl2_image_reshape(image, width, height, dl2_raster_channels(&raster), error));
    for (size_t y = 0; y < height; y++)
        memcpy(image->data + y * image->stride, raster.planes[0].data + y * raster.planes[0].stride,
               image->stride);
    return DL2_OK;
}

/* The mask at its new size, as a file of the same format, in resizer->bytes. */
static int resize_mask(struct dl2_mask_resizer *resizer, const struct dl2_sidecar *item,
                       const struct dl2_image_info *info, uint32_t new_width, uint32_t new_height,
                       struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_sniff(item->bytes.data, item->bytes.size);
    struct dl2_encode_options encode = DL2_ENCODE_DEFAULTS;
    DL2_TRY(decode_mask(resizer, item, dl2_upright_width(info), dl2_upright_height(info), error));
    DL2_TRY(dl2_resize_image(&resizer->resizer, &resizer->image, DL2_NEAREST, new_width, new_height,
                             &resizer->resized, error));
    encode.indices = info->palette;
    encode.source = item->bytes.data;
    encode.source_size = item->bytes.size;
    return dl2_image_encode(codec, &resizer->resized, &encode, &resizer->bytes, error);
}

static void count(struct dl2_unresized *unresized, const char *extension)
{
    if (!unresized || (unresized->label_folders && !strcmp(extension, "txt")))
        return;
    pthread_mutex_lock(&unresized->mutex);
    dl2_left_out_count(&unresized->counts, extension);
    pthread_mutex_unlock(&unresized->mutex);
}

static int add_item(struct dl2_sidecars *out, const char *extension, const struct dl2_bytes *bytes,
                    struct dl2_error *error)
{
    struct dl2_sidecar *added;
    DL2_TRY(dl2_sidecars_add(out, extension, bytes->size, &added, error));
    if (bytes->size)
        memcpy(added->bytes.data, bytes->data, bytes->size);
    return DL2_OK;
}

int dl2_masks_resize(struct dl2_mask_resizer *resizer, const struct dl2_sidecars *in,
                     uint32_t width, uint32_t height, uint32_t new_width, uint32_t new_height,
                     struct dl2_sidecars *out, struct dl2_unresized *unresized,
                     struct dl2_error *error)
{
    for (size_t i = 0; i < in->count; i++) {
        const struct dl2_sidecar *item = &in->items[i];
        const bool called_mask = is_called_mask(item->extension);
        struct dl2_image_info info;
        struct dl2_error why = DL2_ERROR_INIT;
        int status = check_mask(item, called_mask, width, height, &info, &why);
        if (status == DL2_OK)
            status = resize_mask(resizer, item, &info, new_width, new_height, &why);
        else if (!called_mask && status != DL2_ERR_MEMORY) {
            count(unresized, item->extension);
            DL2_TRY(add_item(out, item->extension, &item->bytes, error));
            continue;
        }
        if (status < 0) {
            dl2_error_copy(error, &why);
            dl2_error_prefix(error, "its mask .%s cannot be resized", item->extension);
            return status;
        }
        DL2_TRY(add_item(out, item->extension, &resizer->bytes, error));
    }
    return DL2_OK;
}

void dl2_mask_resizer_free(struct dl2_mask_resizer *resizer)
{
    dl2_image_resizer_free(&resizer->resizer);
    dl2_image_free(&resizer->image);
    dl2_image_free(&resizer->resized);
    dl2_bytes_free(&resizer->bytes);
}

char *dl2_unresized_message(const struct dl2_unresized *unresized)
{
    return dl2_left_out_message(&unresized->counts, "copied as they are beside resized images",
                                "coordinates in pixels in such files are those of the source");
}

/* ---- Masks by other names */

enum { FEW = 64, LEAST_PIXELS = 1024, LEAST_STEP = 8 };

static uint32_t color_at(const struct dl2_image *image, uint32_t x, uint32_t y)
{
    const uint8_t *pixel = image->data + y * image->stride + x * image->channels;
    return image->channels == 1 ? pixel[0]
                                : (uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2];
}

static uint32_t step_between(uint32_t a, uint32_t b)
{
    uint32_t most = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        const int step = abs((int)(a >> shift & 255) - (int)(b >> shift & 255));
        most = (uint32_t)step > most ? (uint32_t)step : most;
    }
    return most;
}

/* Has an image at most FEW colors, and, if they are not numbers, edges between them? Photographs
 * have more within their first rows, but for pieces of sky, whose colors change in small steps. */
static bool has_few_colors(const struct dl2_image *image, bool numbers)
{
    uint32_t colors[FEW];
    size_t count = 0;
    uint64_t changes = 0, steps = 0;
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++) {
            const uint32_t color = color_at(image, x, y);
            const uint32_t last = x ? color_at(image, x - 1, y) : color;
            size_t i = 0;
            if (x && color == last)
                continue;
            changes += x > 0;
            steps += step_between(color, last);
            while (i < count && colors[i] != color)
                i++;
            if (i == FEW)
                return false;
            colors[i] = color;
            count += i == count;
        }
    return numbers || steps > LEAST_STEP * changes;
}

struct dl2_mask_look dl2_mask_look_at(const uint8_t *data, size_t size,
                                      const struct dl2_image *image)
{
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    struct dl2_image_info info = {0};
    const bool numbers = image->channels == 1 ||
                         (dl2_image_read_info(data, size, &info, NULL) == DL2_OK && info.palette);
    return (struct dl2_mask_look){image->width, image->height,
                                  codec && !codec->lossy &&
                                      (uint64_t)image->width * image->height >= LEAST_PIXELS &&
                                      has_few_colors(image, numbers)};
}

static int compare_sizes(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, two = *(const uint64_t *)b;
    return one < two ? -1 : one > two;
}

static uint64_t size_of(const struct dl2_mask_look *look)
{
    return (uint64_t)look->width << 32 | look->height;
}

int dl2_mask_looks_count(const struct dl2_mask_look *looks, size_t count, size_t *found,
                         size_t *first, struct dl2_error *error)
{
    DL2_AUTO_FREE uint64_t *sizes = NULL;
    size_t others = 0;
    *found = 0;
    DL2_TRY(DL2_NEW(&sizes, count + 1, "images", error));
    for (size_t i = 0; i < count; i++)
        if (looks[i].width && !looks[i].few_colors)
            sizes[others++] = size_of(&looks[i]);
    qsort(sizes, others, sizeof *sizes, compare_sizes);
    for (size_t i = 0; i < count && others; i++) {
        const uint64_t size = size_of(&looks[i]);
        if (looks[i].few_colors && bsearch(&size, sizes, others, sizeof *sizes, compare_sizes) &&
            !(*found)++)
            *first = i;
    }
    return DL2_OK;
}
