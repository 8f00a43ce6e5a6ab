/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scores datasets: pairs every image of a reference with its variants by key, scores each pair with
 * the chosen metrics, and aggregates the scores. Nothing is left out in silence: what can't be
 * paired or scored is in the result with its reason.
 *
 * A variant whose images were resized (pixels/resolution.h), as its dl2-variant.json says, is
 * scored against the reference's images, resized in the same way: its scores are those of the
 * encoder alone, and not of the lost resolution.
 *
 * Results are the same for any number of jobs: each pair has its own place, and sums run in the
 * reference's order.
 */
#ifndef DL2_QUALITY_SCORE_H
#define DL2_QUALITY_SCORE_H

#include "codec/codec.h"
#include "common/error.h"
#include "common/progress.h"
#include "dataset/dataset.h"
#include "pixels/resolution.h"
#include "quality/heatmap.h"
#include "quality/metric.h"
#include "quality/score_device.h"

#include <stddef.h>
#include <stdint.h>

enum dl2_pair_state {
    DL2_PAIR_MISSING,    /* the variant has no image of this key */
    DL2_PAIR_FAILED,     /* an image couldn't be decoded, or the key stands for several files */
    DL2_PAIR_MISMATCHED, /* the images differ in size */
    DL2_PAIR_SCORED,
    DL2_PAIR_STATES,
};

/* An image of the reference and a variant's. */
struct dl2_pair {
    enum dl2_pair_state state;
    /* From here to `scores`: of scored pairs. */
    bool identical;         /* every sample is the same; at 8 bits, if above_8_bits and not deep */
    bool above_8_bits;      /* a file of the two has more */
    bool deep;              /* and 16 were compared, by metrics with measure_deep and `identical` */
    bool drawn;             /* it has a heat map */
    bool alpha;             /* a file of the two has some, which was laid over the background */
    bool resized;           /* the reference was resized as the variant's image */
    bool colors_differ;     /* other descriptions of their colors: numbers were compared */
    uint32_t width, height; /* pixels */
    uint32_t slices;        /* of a volume, of all channels; an image is 1 */
    uint64_t bytes, reference_bytes;
    int64_t header_bytes; /* of `bytes`, those that do not hold the coded image; -1: not known */
    struct dl2_score scores[DL2_METRIC_COUNT]; /* in the order of the scoring's metrics */
    char *error;                               /* why it failed or is mismatched; else NULL */
};

/* How a file of the reference was encoded: what was lost before. */
struct dl2_reference_file {
    const struct dl2_codec *codec; /* NULL: not known, or a video's */
    bool lossy;                    /* its codec is one that can lose something */
    uint8_t quality;               /* of a JPEG, 1 to 100; 0: not known */
};

/* One metric over a variant. Values are NAN where no image has one. */
struct dl2_aggregate {
    size_t values; /* images with a value: the next four are over these */
    /* Where lower is better, p5 is the 95th percentile and min the maximum: 5% of the images are
     * worse, and none. */
    double mean, median, p5, min;
    size_t missing; /* scored images without a value: identical, or too small */
    /* For metrics that have of_mse: of_mse() of the mean MSE, to which identical images add 0; NAN
     * if all are identical. */
    double of_mean_mse;
};

struct dl2_scored_variant {
    char *name; /* dl2_dataset_variant_name() */
    const char *path;
    char *codec;                      /* from its dl2-variant.json, or NULL */
    char *library;                    /* that encoded it, with its version, likewise */
    int quality;                      /* from the same file, or -1 */
    struct dl2_resolution resolution; /* likewise; its references are resized to it */
    size_t resized;                   /* scored pairs whose reference was resized */
    char *error; /* why it couldn't be opened, in which case all pairs are missing; or NULL */
    struct dl2_pair *pairs; /* one for each key of the reference */
    char **extra;           /* keys that only the variant has */
    size_t extra_count;
    size_t states[DL2_PAIR_STATES];                    /* pairs by state */
    uint64_t pixels, bytes, reference_bytes;           /* sums over the scored pairs */
    int64_t header_bytes;                              /* likewise; -1: not known of all of them */
    size_t identical;                                  /* scored pairs without any difference */
    size_t above_8_bits, deep, alpha, colors_differ;   /* scored pairs */
    struct dl2_aggregate aggregates[DL2_METRIC_COUNT]; /* in the order of the scoring's metrics */
    double cpu_seconds; /* reading, decoding and scoring this variant's files */
};

struct dl2_scoring {
    const char *reference; /* path */
    const char *device;    /* "cuda", if a card scored at least one of the metrics; else "cpu" */
    const struct dl2_metric *metrics[DL2_METRIC_COUNT]; /* those that were scored */
    bool by_device[DL2_METRIC_COUNT];                   /* which of them by the device */
    unsigned metric_count;
    unsigned input_size;              /* 0: no metric has of_input */
    bool volumes;                     /* the reference's samples are volumes, not images */
    size_t count;                     /* images of the reference */
    char **keys;                      /* [count], in the dataset's order */
    struct dl2_reference_file *files; /* [count] */
    double reference_cpu_seconds;     /* reading and decoding the reference */
    struct dl2_scored_variant *variants;
    size_t variant_count;
};

struct dl2_score_share;

struct dl2_scoring_options {
    unsigned jobs;                    /* 0: dl2_cpu_count() */
    struct dl2_subset subset;         /* of the reference's and the variants' images for training */
    enum dl2_samples samples;         /* frames of clips are images here */
    struct dl2_remote_options remote; /* of what lies behind a server */
    bool any_is_remote;               /* of the reference and the variants */
    struct dl2_member_choice members; /* of samples of tar shards */
    bool any_has_members;             /* of the reference and the variants */
    uint64_t max_pixels;              /* larger images fail; 0: DL2_DEFAULT_MAX_PIXELS */
    bool drop_bands;                  /* as in struct dl2_decode_options */
    const struct dl2_external_decoders *external; /* NULL: none */
    uint8_t background[3];                        /* under alpha, R, G, B */
    bool metrics[DL2_METRIC_COUNT];               /* those to score, by number in the registry */
    /* Volumes are scored by their own metrics (quality/volume_metrics.h). An option of the command
     * line that has no effect on them, to be refused where the reference holds some; or NULL. */
    const char *idle_on_volumes;
    unsigned input_size; /* for metrics with of_input; 0: DL2_INPUT_SIZE */
    struct dl2_heatmap_options heatmaps;
    /* Scores the metrics that it knows; the processors score the others, and all if it is NULL. */
    struct dl2_score_device *device;
    /* Other processes score other images: quality/score_share.h. Where that does not complete the
     * scoring, it has no sums. Only of datasets; NULL: this process scores all. */
    struct dl2_score_share *share;
    struct dl2_progress *progress; /* counts the images that have met all their variants; or NULL */
};

/*
 * Scores `variants` against `reference`: all are datasets (see dataset/dataset.h), or all are image
 * files. The paths must outlive the scoring. Fails where the reference can't be opened or memory
 * runs out; what is wrong with a variant or an image stands in the result. Memory: two images and a
 * scorer for each job, and the result.
 */
int dl2_scoring_run(const char *reference, const char *const *variants, size_t variant_count,
                    const struct dl2_scoring_options *options, struct dl2_scoring *scoring,
                    struct dl2_error *error);
void dl2_scoring_free(struct dl2_scoring *scoring);

/* The pixels, or voxels, of a scored pair. */
static inline uint64_t dl2_pair_pixels(const struct dl2_pair *pair)
{
    return (uint64_t)pair->width * pair->height * pair->slices;
}

/* Is the score worse than `bound`: below it, or above it where lower is better? One that a metric
 * has no value for because nothing differs is not; nor is one of an image too small for it. */
bool dl2_score_is_worse(const struct dl2_metric *metric, const struct dl2_score *score,
                        double bound);

/* Is anything missing, mismatched, failed or extra? */
bool dl2_scoring_has_faults(const struct dl2_scoring *scoring);

#endif
