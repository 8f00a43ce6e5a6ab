/* SPDX-License-Identifier: BSD-2-Clause */
#include "postgres/image_work.h"

#include "codec/codec.h"
#include "common/memory.h"
#include "common/quote.h"
#include "quality/metric.h"
#include "transcode/colors.h"
#include "transcode/reuse.h"

#include <stdlib.h>
#include <string.h>

/* A server has many backends, and some live for days. */
enum { KEPT_BYTES = 8 << 20 };

struct dl2_image_work {
    struct dl2_image images[DL2_IMAGE_ROLES], scratch;
    struct dl2_bytes encoded, spare;
    struct dl2_source_colors colors;
    struct dl2_scorer *scorer; /* NULL until one is needed */
};

int dl2_image_work_create(struct dl2_image_work **out, struct dl2_error *error)
{
    return DL2_NEW(out, 1, "images", error);
}

void dl2_image_work_destroy(struct dl2_image_work *work)
{
    if (!work)
        return;
    for (size_t i = 0; i < DL2_IMAGE_ROLES; i++)
        dl2_image_free(&work->images[i]);
    dl2_image_free(&work->scratch);
    dl2_bytes_free(&work->encoded);
    dl2_bytes_free(&work->spare);
    dl2_colors_free(&work->colors);
    dl2_scorer_free(work->scorer);
    free(work);
}

static void trim_image(struct dl2_image *image)
{
    if (image->capacity > KEPT_BYTES)
        dl2_image_free(image);
}

static void trim_bytes(struct dl2_bytes *bytes)
{
    if (bytes->capacity > KEPT_BYTES)
        dl2_bytes_free(bytes);
}

void dl2_image_work_trim(struct dl2_image_work *work)
{
    for (size_t i = 0; i < DL2_IMAGE_ROLES; i++)
        trim_image(&work->images[i]);
    trim_image(&work->scratch);
    trim_bytes(&work->encoded);
    trim_bytes(&work->spare);
    dl2_colors_free(&work->colors);
}

int dl2_image_work_look(const void *data, size_t size, struct dl2_image_facts *facts,
                        struct dl2_error *error)
{
    struct dl2_image_info info;
    struct dl2_coding coding = {0};
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB};
    DL2_TRY(dl2_image_read_info(data, size, &info, error));
    const int status = dl2_image_read_color(data, size, &info, &color, error);
    dl2_color_free(&color); /* the name stays */
    DL2_TRY(status);
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    const bool known = codec->coding && codec->coding(data, size, &coding);
    *facts = (struct dl2_image_facts){.format = codec->name,
                                      .width = info.width,
                                      .height = info.height,
                                      .channels = info.channels,
                                      .bits = info.bits,
                                      .alpha = info.alpha,
                                      .orientation = info.orientation,
                                      .quality = known ? coding.quality : 0,
                                      .subsampling = known ? coding.subsampling : NULL,
                                      .progressive = known ? coding.progressive : -1};
    if (color.form != DL2_COLOR_SPACE_SRGB)
        memcpy(facts->color, color.name, sizeof facts->color);
    return DL2_OK;
}

int dl2_image_work_decode(struct dl2_image_work *work, enum dl2_image_role role, const void *data,
                          size_t size, uint64_t max_pixels, struct dl2_error *error)
{
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = max_pixels;
    if (role == DL2_IMAGE_REFERENCE)
        options.info = &work->colors.info; /* for dl2_image_work_encode() */
    return dl2_image_decode(data, size, &options, &work->images[role], &work->scratch, error);
}

static const struct dl2_metric *find_metric(const char *name, struct dl2_error *error)
{
    char known[256] = "";
    const struct dl2_metric *metric;
    for (unsigned i = 0; (metric = dl2_metric_at(i)); i++) {
        if (!strcmp(metric->name, name))
            return metric;
        dl2_list_name(known, sizeof known, metric->name);
    }
    dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no metric '%s'; there are %s", name, known);
    return NULL;
}

int dl2_image_work_score(struct dl2_image_work *work, const char *name, double *value,
                         struct dl2_error *error)
{
    struct dl2_score score;
    const struct dl2_metric *metric = find_metric(name, error);
    if (!metric)
        return DL2_ERR_ARGUMENT;
    if (!work->scorer)
        DL2_TRY(dl2_scorer_create(&work->scorer, error));
    dl2_scorer_set_reference(work->scorer, &work->images[DL2_IMAGE_REFERENCE]);
    const int status =
        dl2_scorer_score(work->scorer, metric, &work->images[DL2_IMAGE_VARIANT], &score, error);
    if (status < 0)
        dl2_error_prefix(error, "the variant");
    else
        *value = score.value;
    return status;
}

static const struct dl2_codec *find_codec(const char *name, struct dl2_error *error)
{
    char known[256] = "";
    const struct dl2_codec *codec = dl2_codec_find(name);
    if (codec && codec->encode)
        return codec;
    for (size_t i = 0; (codec = dl2_codec_at(i)); i++)
        if (codec->encode)
            dl2_list_name(known, sizeof known, codec->name);
    dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no codec '%s' to encode with; there are %s",
                  name, known);
    return NULL;
}

int dl2_image_work_encode(struct dl2_image_work *work, const char *name, int quality,
                          const void *data, size_t size, const uint8_t **out, size_t *out_size,
                          struct dl2_error *error)
{
    double seconds = 0;
    struct dl2_reuse reuse;
    struct dl2_encode_options encode = DL2_ENCODE_DEFAULTS;
    const struct dl2_codec *codec = find_codec(name, error);
    if (!codec)
        return DL2_ERR_ARGUMENT;
    if (quality < 1 || quality > 100)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the quality %d is not in 1 to 100", quality);
    encode.quality = quality;
    encode.source = data;
    encode.source_size = size;
    DL2_TRY(dl2_colors_apply(&work->colors, DL2_COLORS_KEEP, data, size,
                             &work->images[DL2_IMAGE_REFERENCE], error));
    DL2_TRY(
        dl2_colors_fit(&work->colors, codec, &work->images[DL2_IMAGE_REFERENCE], &encode, error));
    dl2_reuse_look(&reuse, data, size);
    const int status = dl2_reuse_encode(&reuse, codec, &work->images[DL2_IMAGE_REFERENCE], &encode,
                                        &work->spare, &work->encoded, &seconds, error);
    *out = work->encoded.data;
    *out_size = work->encoded.size;
    return status < 0 ? status : DL2_OK;
}
