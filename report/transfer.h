/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a variant cost one network as much as another? The interaction of variant and network: the
 * difference of their differences to the original, over the validation images that both have. The
 * trainings of two networks have nothing in common, so that their chances of training add; the
 * images are the same, so that an image that both lose cancels.
 *
 * All variants and pairs of networks are one family: intervals are adjusted by Bonferroni's
 * inequality, and hold together with 95%.
 */
#ifndef DL2_REPORT_TRANSFER_H
#define DL2_REPORT_TRANSFER_H

#include "report/analysis.h"
#include "report/differences.h"

struct dl2_transfer {
    size_t variant, a, b; /* networks, study->archs; a < b */
    double difference;    /* a's to the original less b's, points */
    double half;          /* of its adjusted interval, points; INFINITY: one training each */
    size_t images; /* that both were validated on; 0: it is of the chance of training alone */
};

/*
 * All that can be compared: [*count], by variant and networks. `analyses` is [arch_count]. Kept.
 * None with a single network.
 */
struct dl2_transfer *dl2_transfers_make(const struct dl2_study *study,
                                        const struct dl2_analysis *analyses, size_t *count);

/* Does its interval leave out 0? */
bool dl2_transfer_differs(const struct dl2_transfer *transfer);

#endif
