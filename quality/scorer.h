/* What a scorer holds; private to this room's metrics. */
#ifndef DL2_QUALITY_SCORER_H
#define DL2_QUALITY_SCORER_H

#include "common/memory.h"
#include "quality/kernel.h"
#include "quality/metric.h"

/* Pixels whose luma is made at a time where no plane is needed. */
enum { DL2_LUMA_CHUNK = 2048 };

/* SSIM's strip of columns, worked through from top to bottom: small enough for a first-level cache.
 */
struct dl2_ssim_strip {
    /* Input rows, sum and difference, in rings: row y lies at y % DL2_SSIM_ROWS. Aligned, as all
     * rows here are. */
    _Alignas(DL2_ALIGNMENT) float sum[DL2_SSIM_ROWS][DL2_SSIM_STRIDE];
    float difference[DL2_SSIM_ROWS][DL2_SSIM_STRIDE];
    /* Of a group of rows: moments down the columns. */
    float sum_mean[DL2_SSIM_GROUP][DL2_SSIM_STRIDE], sum_variance[DL2_SSIM_GROUP][DL2_SSIM_STRIDE];
    float difference_mean[DL2_SSIM_GROUP][DL2_SSIM_STRIDE],
        difference_variance[DL2_SSIM_GROUP][DL2_SSIM_STRIDE];
};

struct dl2_scorer {
    const struct dl2_kernels *kernels;
    const struct dl2_image *reference;
    float *reference_luma; /* its plane, rows of `width` */
    size_t luma_capacity;  /* floats */
    bool luma_ready;       /* it is this reference's */
    float luma[DL2_LUMA_CHUNK];
    struct dl2_ssim_strip strip;
};

/* The reference's luma plane, made when first asked for. */
int dl2_scorer_reference_luma(struct dl2_scorer *scorer, const float **plane,
                              struct dl2_error *error);

extern const struct dl2_metric dl2_metric_psnr_rgb, dl2_metric_psnr_y, dl2_metric_ssim;

#endif
