/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Butteraugli, by the code of its own authors (codec/butteraugli.h); a build without it has no such
 * metrics. It is not exact on all machines: it computes in single precision, with the vector
 * instructions that it finds.
 *
 * A comparison allocates some 300 bytes for each pixel, and frees them.
 */
#include "codec/butteraugli.h"
#include "quality/scorer.h"

#define TEXT(value)    #value
#define TEXT_OF(value) TEXT(value)
#define INTENSITY      "intensity target " TEXT_OF(DL2_BUTTERAUGLI_INTENSITY)
#define ASYMMETRY      "hf_asymmetry " TEXT_OF(DL2_BUTTERAUGLI_HF_ASYMMETRY)
#define CONDITIONS                                                                                 \
    " by JPEG XL's library with butteraugli_main's settings, " INTENSITY ", " ASYMMETRY            \
    ", samples count as sRGB; below 1 is hard to see; 0 for identical images, lower is better"

enum { MIN_SIDE = 8 };

static int butteraugli_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                               double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    struct dl2_butteraugli distances;
    DL2_TRY(dl2_butteraugli_compare(scorer->reference, variant, &distances, error));
    sums[0] = distances.max;
    sums[1] = distances.norm_3;
    return DL2_OK;
}

/* Their sums: the largest distance, and the norm. */
const struct dl2_metric dl2_metric_butteraugli_max = {
    .name = "butteraugli_max",
    .viewer_name = "butteraugli",
    .title = "Butteraugli",
    .unit = "",
    .definition = "Butteraugli, the largest distance of a pixel," CONDITIONS,
    .digits = 3,
    .lower_is_better = true,
    .missing = "too_small",
    .missing_note = "too small for Butteraugli",
    .min_side = MIN_SIDE,
    .measure = butteraugli_measure,
};

const struct dl2_metric dl2_metric_butteraugli_3 = {
    .name = "butteraugli_3",
    .viewer_name = "p3-norm",
    .title = "Butteraugli 3",
    .unit = "",
    .definition = "Butteraugli, the 3-norm of the pixels' distances (mean of their 3-, 6- and "
                  "12-norm)," CONDITIONS,
    .digits = 3,
    .lower_is_better = true,
    .missing = "too_small",
    .missing_note = "too small for Butteraugli's 3-norm",
    .min_side = MIN_SIDE,
    .measure = butteraugli_measure,
    .sum = 1,
};
