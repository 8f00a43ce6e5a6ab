/* What a scorer holds; private to this room's metrics. */
#ifndef DL2_QUALITY_SCORER_H
#define DL2_QUALITY_SCORER_H

#include "common/memory.h"
#include "quality/metric.h"
#include "quality/metric_kernels.h"

/* SSIM's strip of columns, worked through from top to bottom: at most 730 kB, for a second-level
 * cache. */
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
    const struct dl2_metric_kernels *kernels;
    const struct dl2_image *reference;
    struct dl2_ssim_strip strip;
};

static inline struct dl2_pixel_run dl2_pixel_run_at(const struct dl2_image *image, size_t x,
                                                    size_t y)
{
    return (struct dl2_pixel_run){image->data + y * image->stride + x * image->channels,
                                  image->channels};
}

/* PSNR's value, or its gap. */
void dl2_set_psnr(struct dl2_score *score, double mse);

extern const struct dl2_metric dl2_metric_psnr_rgb, dl2_metric_psnr_y, dl2_metric_ssim;

#endif
