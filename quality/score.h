/*
 * Scores datasets: pairs every image of a reference with its variants by key, scores each pair with
 * every metric, and makes aggregates. Nothing is left out in silence: what can't be paired or
 * scored is in the result with its reason.
 *
 * Figures are the same for any number of jobs: each pair has its own place, and sums run in the
 * reference's order.
 */
#ifndef DL2_QUALITY_SCORE_H
#define DL2_QUALITY_SCORE_H

#include "common/error.h"
#include "quality/metric.h"
#include "quality/score_device.h"

#include <stddef.h>
#include <stdint.h>

enum dl2_pair_state {
    DL2_PAIR_MISSING, /* the variant has no image of this key */
    /* One of both couldn't be read or decoded, or the key stands for several files. */
    DL2_PAIR_FAILED,
    DL2_PAIR_MISMATCHED, /* both are there, but their sizes differ */
    DL2_PAIR_SCORED,
    DL2_PAIR_STATES,
};

/* An image of the reference and a variant's. */
struct dl2_pair {
    enum dl2_pair_state state;
    bool identical; /* every sample is the same. From here to `scores`: where it was scored */
    uint32_t width, height; /* pixels */
    uint64_t bytes, reference_bytes;
    struct dl2_score scores[DL2_METRIC_COUNT];
    char *error; /* where it failed or is mismatched: why */
};

/* One metric over a variant. Figures are NAN where no image has a value. */
struct dl2_aggregate {
    size_t values;    /* images that have a value: those that the four figures are of */
    size_t identical; /* images that have none because nothing differs (PSNR) */
    size_t too_small; /* images that have none because they're smaller than a window (SSIM) */
    double mean, median, p5, min;
    /* PSNR: 10 log10(255^2 / mean MSE), with identical images' MSE of 0; NAN if all are identical.
     * Others: NAN */
    double of_mean_mse;
};

struct dl2_scored_variant {
    char *name; /* dl2_dataset_variant_name() */
    const char *path;
    char *codec; /* as its dl2-variant.json has it, or NULL */
    int quality; /* the same, or -1 */
    char *error; /* why it couldn't be opened at all, then all its pairs are missing; or NULL */
    struct dl2_pair *pairs; /* one for each key of the reference */
    char **extra;           /* keys that only the variant has */
    size_t extra_count;
    size_t states[DL2_PAIR_STATES];          /* pairs by state */
    uint64_t pixels, bytes, reference_bytes; /* sums over the scored pairs */
    size_t identical;                        /* scored pairs that are */
    struct dl2_aggregate aggregates[DL2_METRIC_COUNT];
    double cpu_seconds; /* of reading, decoding and scoring this variant's files */
};

struct dl2_scoring {
    const char *reference; /* path */
    const char *device;    /* what scored: "cpu", "cuda" */
    size_t count;          /* its images */
    char **keys;           /* theirs, in the dataset's order */
    /* Of reading and decoding it, and what metrics need of it alone. */
    double reference_cpu_seconds;
    struct dl2_scored_variant *variants;
    size_t variant_count;
};

struct dl2_scoring_options {
    unsigned jobs;                   /* 0: dl2_cpu_count() */
    uint64_t max_pixels;             /* larger images fail; 0: DL2_DEFAULT_MAX_PIXELS */
    uint8_t background[3];           /* under alpha, R, G, B */
    struct dl2_score_device *device; /* that scores what the processors decode; NULL: they do */
    /* Called from one thread at a time when an image has met all its variants; may be NULL. */
    void (*progress)(void *context, size_t done, size_t total);
    void *context;
};

/*
 * Scores `variants` against `reference`: datasets (see dataset/dataset.h), or image files one and
 * all. The paths must outlive the scoring. Fails where the reference can't be opened or memory runs
 * out; what is wrong with a variant or an image stands in the result. Memory: an image, a variant
 * and a luma plane a job, and the result.
 */
int dl2_scoring_run(const char *reference, const char *const *variants, size_t variant_count,
                    const struct dl2_scoring_options *options, struct dl2_scoring *scoring,
                    struct dl2_error *error);
void dl2_scoring_free(struct dl2_scoring *scoring);

/* Is anything missing, mismatched, failed or extra? */
bool dl2_scoring_has_faults(const struct dl2_scoring *scoring);

#endif
