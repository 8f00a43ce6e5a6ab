/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codecs compared at equal accuracy, by Bjontegaard's comparison (report/bd_rate.h) with accuracy
 * in the place of image quality: what a codec, with its settings and resolution, needs to keep as
 * much accuracy as the anchor's. The costs are bytes, CPU time of encoding, and that of loading.
 *
 * A curve has the codec's variants. Where a larger file is less accurate, accuracies are first made
 * not to fall by pooling neighbors (isotonic regression: Barlow, Bartholomew, Bremner & Brunk,
 * Statistical Inference under Order Restrictions, 1972); of one level the least cost counts.
 * Intervals are the middle 95% of repetitions (report/repetitions.h).
 */
#ifndef DL2_REPORT_ACCURACY_SIZES_H
#define DL2_REPORT_ACCURACY_SIZES_H

#include "report/bd_rate.h"
#include "report/codec_sizes.h"
#include "report/repetitions.h"
#include "report/speed.h"

/* What one codec needs, in percent of the anchor's at equal accuracy; NAN: not known. */
struct dl2_accuracy_size {
    double cost[DL2_COSTS];
    double low[DL2_COSTS], high[DL2_COSTS]; /* NAN also if the curves have accuracies in common in
                                               fewer than 95% of the repetitions */
    double gain; /* points of accuracy that it is ahead at equal bytes, over the bytes in common */
    double gain_low, gain_high;
    double overlap;  /* percent of the accuracies that both have; 0: none in common */
    size_t variants; /* with an accuracy and bytes; below 2 there is no curve */
    size_t falls;    /* variants that are less accurate than a smaller one of the codec */
};

/* [arch * variant_count + v] of each codec's first variant v, kept; of the anchor's only `falls`
 * and `variants` are set. `analyses` and `speeds` are [arch_count]; `anchor` is as
 * dl2_codec_anchor() has it. */
struct dl2_accuracy_size *dl2_accuracy_sizes_find(const struct dl2_study *study,
                                                  const struct dl2_analysis *analyses,
                                                  const struct dl2_speeds *speeds, size_t anchor);

#endif
