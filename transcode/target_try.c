/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/target_try.h"

#include <math.h>
#include <string.h>

double dl2_target_size(const struct dl2_quality_target *target, const struct dl2_image *image,
                       const struct dl2_bytes *file)
{
    const double pixels = (double)image->width * image->height;
    return (double)file->size * (strcmp(target->name, "bpp") ? 1 : 8 / pixels);
}

int dl2_target_score(const struct dl2_target_job *job, const struct dl2_image *image, double *score,
                     struct dl2_error *error)
{
    struct dl2_score value;
    DL2_TRY(dl2_scorer_score(job->searcher->scorer, job->target->metric, image, &value, error));
    *score = value.value;
    if (isnan(*score) && dl2_images_equal(job->image, image))
        *score = INFINITY; /* of dB */
    return DL2_OK;
}

int dl2_target_try(const struct dl2_target_job *job, int quality, double *score,
                   struct dl2_error *error)
{
    struct dl2_target_searcher *const searcher = job->searcher;
    struct dl2_bytes *const file = &searcher->trial;
    const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_encode_options encode = *job->encode;
    encode.quality = quality;
    DL2_TRY(dl2_image_encode(job->codec, job->image, &encode, file, error));
    if (!job->target->metric) {
        *score = dl2_target_size(job->target, job->image, file);
        return DL2_OK;
    }
    DL2_TRY(dl2_image_decode(file->data, file->size, &decode, &searcher->decoded,
                             &searcher->scratch, error));
    return dl2_target_score(job, &searcher->decoded, score, error);
}

int dl2_target_begin(const struct dl2_target_job *job, struct dl2_error *error)
{
    const struct dl2_metric *const metric = job->target->metric;
    const struct dl2_image *const image = job->image;
    if (metric && (image->width < metric->min_side || image->height < metric->min_side))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%ux%u pixels are too few for a target of %s", (unsigned)image->width,
                             (unsigned)image->height, job->target->name);
    if (!job->searcher->scorer)
        DL2_TRY(dl2_scorer_create(&job->searcher->scorer, error));
    dl2_scorer_set_reference(job->searcher->scorer, image);
    if (job->target->input_size)
        dl2_scorer_set_input_size(job->searcher->scorer, job->target->input_size);
    return DL2_OK;
}

void dl2_target_searcher_free(struct dl2_target_searcher *searcher)
{
    dl2_scorer_free(searcher->scorer);
    dl2_image_free(&searcher->decoded);
    dl2_image_free(&searcher->scratch);
    dl2_bytes_free(&searcher->trial);
}
