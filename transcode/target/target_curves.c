/* SPDX-License-Identifier: BSD-2-Clause */
/* The mean curves of targets, of a sample of the images. */
#include "common/random.h"
#include "transcode/transcoder.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLE_IMAGES = 8, SAMPLE_SHARE = 4 /* no more than one in so many */ };

struct sample {
    struct dl2_transcoder *run;
    size_t count;                        /* images */
    uint32_t *order;                     /* of all items; its first are the sample's */
    double (*evens)[DL2_TARGET_SAMPLES]; /* [variant_count][count], NAN: none */
};

static bool needs_curve(const struct dl2_transcoder *run, size_t v)
{
    const struct dl2_quality_target *const target = &run->variants[v].target;
    bool needed = false;
    for (size_t n = 0; n < run->todo_count && !needed; n++)
        needed = dl2_transcoder_needs(run, v, run->todo[n]);
    return needed && target->name && !dl2_target_is_scanned(target, run->variants[v].codec);
}

static int sample_variant(const struct dl2_variant *variant, struct dl2_transcode_worker *worker,
                          double evens[DL2_TARGET_SAMPLES], struct dl2_error *error)
{
    struct dl2_encode_options encode;
    DL2_TRY(dl2_resize_to(&worker->resizer, &worker->image, &variant->resolution, &worker->resized,
                          &worker->shown, error));
    DL2_TRY(dl2_worker_options(worker, variant, &encode, error));
    const struct dl2_target_job job = {.searcher = &worker->searcher,
                                       .target = &variant->target,
                                       .codec = variant->codec,
                                       .image = worker->shown,
                                       .encode = &encode};
    return dl2_target_sample(&job, evens, error);
}

/* Does an error say that the run cannot go on? Others mean that an image has no part in a curve,
 * of which dl2_encode_image() tells. */
static bool ends_run(int status)
{
    return status == DL2_ERR_LOST || status == DL2_ERR_MEMORY;
}

static int sample_image(const struct sample *sample, struct dl2_transcode_worker *worker, size_t n,
                        struct dl2_error *error)
{
    const struct dl2_transcoder *const run = sample->run;
    DL2_CLEANUP(dl2_sample_memory_end) struct dl2_sample_memory memory = {.worker = worker};
    DL2_TRY(dl2_worker_decode(&memory, sample->order[n], true, error));
    for (size_t v = 0; v < run->variant_count; v++) {
        if (!needs_curve(run, v))
            continue;
        const int status =
            sample_variant(&run->variants[v], worker, sample->evens[v * sample->count + n], error);
        if (ends_run(status))
            return status;
        dl2_error_clear(error);
    }
    return DL2_OK;
}

static int work(void *context, unsigned number, size_t slot, size_t n, struct dl2_error *error)
{
    const struct sample *const sample = context;
    struct dl2_transcode_worker *const worker = &sample->run->workers[number];
    struct dl2_error own = DL2_ERROR_INIT;
    (void)slot;
    int status = dl2_worker_read(worker, sample->order[n], &own);
    if (status == DL2_OK)
        status = sample_image(sample, worker, n, &own);
    return ends_run(status) ? dl2_error_copy(error, &own) : DL2_OK;
}

/* The sample depends on the source alone, so that every run of it has the same. */
static int draw(struct sample *sample, struct dl2_error *error)
{
    const struct dl2_transcoder *const run = sample->run;
    const size_t values = sample->count * run->variant_count;
    struct dl2_random random;
    DL2_TRY(DL2_NEW(&sample->order, run->source.count, "images", error));
    DL2_TRY(DL2_NEW(&sample->evens, values, "images", error));
    dl2_random_init(&random, 0, DL2_RANDOM_TARGET, 0, 0);
    dl2_random_permutation(&random, sample->order, (uint32_t)run->source.count);
    for (size_t i = 0; i < values; i++)
        for (int k = 0; k < DL2_TARGET_SAMPLES; k++)
            sample->evens[i][k] = NAN;
    const struct dl2_parallel loop = {
        .jobs = run->options->jobs, .count = sample->count, .work = work, .context = sample};
    return dl2_parallel_run(&loop, error);
}

int dl2_target_curves_make(struct dl2_transcoder *run, struct dl2_error *error)
{
    struct sample sample = {.run = run, .count = run->source.count / SAMPLE_SHARE};
    bool any = false;
    for (size_t v = 0; v < run->variant_count; v++)
        any = any || needs_curve(run, v);
    if (sample.count > SAMPLE_IMAGES)
        sample.count = run->source.count > UINT32_MAX ? 0 : SAMPLE_IMAGES;
    DL2_TRY(DL2_NEW(&run->curves, run->variant_count, "variants", error));
    if (!any)
        return DL2_OK;
    const int status = draw(&sample, error);
    for (size_t v = 0; status == DL2_OK && v < run->variant_count; v++)
        if (run->variants[v].target.name)
            dl2_target_curve_make(
                &run->curves[v], &run->variants[v].target,
                (const double(*)[DL2_TARGET_SAMPLES])(sample.evens + v * sample.count),
                sample.count);
    free(sample.order);
    free(sample.evens);
    return status;
}
