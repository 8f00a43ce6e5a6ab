/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strong compression or fewer images? Variants beside trainings on as many of the original's images
 * as have their bytes, which `make study-bytes` leaves in FOLDER/bytes.
 */
#ifndef DL2_REPORT_EQUAL_BYTES_H
#define DL2_REPORT_EQUAL_BYTES_H

#include "report/analysis.h"
#include "report/conditions.h"

/* A variant and its counterpart: few images of the original. */
struct dl2_equal_bytes {
    size_t variant;
    double percent, subset_percent; /* bytes, of the original's */
    double images, subset_images;
    struct dl2_estimate accuracy, subset_accuracy, difference; /* percent; points, seed by seed */
};

/* All pairs of a network, sorted by bytes: [*count], kept. */
struct dl2_equal_bytes *dl2_equal_bytes_find(const struct dl2_study *study,
                                             const struct dl2_conditions *conditions,
                                             const char *arch, size_t *count);

#endif
