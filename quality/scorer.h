/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a scorer, shared by its metrics. Private to this room. */
#ifndef DL2_QUALITY_SCORER_H
#define DL2_QUALITY_SCORER_H

#include "common/memory.h"
#include "pixels/resize.h"
#include "quality/metric.h"
#include "quality/metric_kernels.h"

/* SSIM's strip of columns, worked through from top to bottom: at most 730 kB, for a second-level
 * cache. */
struct dl2_ssim_strip {
    /* Input rows, sum and difference, in rings: row y lies at y % DL2_SSIM_ROWS. Aligned, as all
     * rows here are. */
    _Alignas(DL2_ALIGNMENT) float sum[DL2_SSIM_ROWS][DL2_SSIM_STRIDE];
    float difference[DL2_SSIM_ROWS][DL2_SSIM_STRIDE];
    /* Moments down the columns, of a group of rows. */
    float sum_mean[DL2_SSIM_GROUP][DL2_SSIM_STRIDE], sum_variance[DL2_SSIM_GROUP][DL2_SSIM_STRIDE];
    float difference_mean[DL2_SSIM_GROUP][DL2_SSIM_STRIDE],
        difference_variance[DL2_SSIM_GROUP][DL2_SSIM_STRIDE];
};

struct dl2_scorer {
    const struct dl2_metric_kernels *kernels;
    const struct dl2_image *reference;
    /* Linear light of an sRGB sample, 0 to 1. */
    float linear[256];
    struct dl2_ssim_strip strip;
    const struct dl2_image *original; /* of metrics with of_input */
    unsigned input_size;
    struct dl2_resizer resizer;
    struct dl2_image inputs[2]; /* the original and the variant, as a network gets them */
    bool has_input;             /* inputs[0] is of this original */
    struct dl2_bytes scratch;   /* the memory of the metric at work; another's contents are gone */
};

/* The pair of planes that SSIM is computed of. */
struct dl2_ssim_source {
    size_t width, height; /* at least DL2_SSIM_TAPS each */
    /* Writes `count` values of row y from column x on: the sum of both images and their difference.
     * For each range of columns that is called for, rows come from top to bottom, and those before
     * this one stand where they were written until DL2_SSIM_ROWS more have come. */
    void (*load)(void *context, size_t x, size_t y, size_t count, float *sum, float *difference);
    void *context;
    float *map; /* [height - 10][width - 10]: receives each window's SSIM; NULL: not wanted */
};

/*
 * The sum of SSIM over all windows, whose count is (width - 10) (height - 10). `c1` is twice the
 * constant that C1 is on the planes' scale, DL2_SSIM_2C1 for thousandths; with
 * DL2_SSIM_NO_LUMINANCE each window counts with its contrast and structure alone.
 */
double dl2_ssim_sum(struct dl2_scorer *scorer, const struct dl2_ssim_source *source, float c1);

/* SSIM of each window, [height - 10][width - 10], of images of at least DL2_SSIM_TAPS each way; the
 * map is valid until the scorer's next use. */
int dl2_ssim_map(struct dl2_scorer *scorer, const struct dl2_image *variant, const float **map,
                 struct dl2_error *error);

/* `out` becomes the image as a network gets it. */
int dl2_scorer_make_input(struct dl2_scorer *scorer, const struct dl2_image *image,
                          struct dl2_image *out, struct dl2_error *error);

/* 10 log10(255^2 / mse); INFINITY of 0. */
double dl2_psnr_of_mse(double mse);

static inline struct dl2_pixel_run dl2_pixel_run_at(const struct dl2_image *image, size_t x,
                                                    size_t y)
{
    return (struct dl2_pixel_run){image->data + y * image->stride + x * image->channels,
                                  image->channels};
}

#endif
