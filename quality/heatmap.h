/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pictures of where a variant differs from its reference: PNG files of the images' size, one for
 * each image of each variant. The scale is the same for all, so their colors compare: from dark
 * blue, no error, over gray to yellow, by the colors of cividis (Nuñez, Anderton, Renslow 2018),
 * whose lightness rises evenly and which look the same to people with red-green blindness.
 */
#ifndef DL2_QUALITY_HEATMAP_H
#define DL2_QUALITY_HEATMAP_H

#include "quality/metric.h"

enum dl2_heatmap_error {
    DL2_HEATMAP_SSIM,    /* 1 - SSIM of the window around the pixel, 0 to 1 (and beyond, as 1); the
                          * five pixels at each edge have that of the nearest window */
    DL2_HEATMAP_SQUARED, /* root of the mean squared error of the pixel's R, G and B, 0 to 64 (and
                          * beyond, as 64) of 255 */
};
extern const char *const dl2_heatmap_errors[]; /* their names; NULL at the end */

struct dl2_heatmap_options {
    const char *folder; /* FOLDER/VARIANT/KEY.png; NULL: none are drawn */
    enum dl2_heatmap_error error;
    unsigned limit; /* so many images of each variant, the first of the reference */
};

/*
 * Draws the scorer's reference against a variant of its size. Returns 1, or 0 for an image too
 * small for SSIM, of which nothing is written. DL2_ERR_ARGUMENT for a key that cannot be a file's
 * path, DL2_ERR_UNSUPPORTED in a build without PNG. `scratch` is memory. Threads: one a scorer.
 */
int dl2_heatmap_write(const struct dl2_heatmap_options *options, struct dl2_scorer *scorer,
                      const struct dl2_image *variant, const char *variant_name, const char *key,
                      struct dl2_image *scratch, struct dl2_error *error);

/* DL2_ERR_UNSUPPORTED in a build without PNG. */
int dl2_heatmap_check(struct dl2_error *error);

#endif
