/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics of volumes: a variant against its reference, at the reference's own range of values.
 *
 * Threads: one at a time for each reference.
 */
#ifndef DL2_QUALITY_VOLUME_METRICS_H
#define DL2_QUALITY_VOLUME_METRICS_H

#include "common/error.h"
#include "quality/metric.h"
#include "volumes/volume.h"

/* In a fixed order; NULL at the end. They have no functions of images. */
const struct dl2_metric *dl2_volume_metric_at(unsigned index);

/* A volume that variants are compared with. Zeroed at first. */
struct dl2_volume_reference {
    struct dl2_volume *volume; /* owned */
    double low, high;          /* its range */
    double *slices[2];         /* of it and of a variant */
};

/* Takes over the open volume, also on failure, and reads all of it. */
int dl2_volume_reference_open(struct dl2_volume_reference *reference, struct dl2_volume *volume,
                              struct dl2_error *error);
void dl2_volume_reference_close(struct dl2_volume_reference *reference);

/*
 * Scores a variant by all metrics, in their order. *identical: each value is the same as float32.
 * DL2_ERR_ARGUMENT where sizes or channels differ.
 */
int dl2_volume_compare(struct dl2_volume_reference *reference, struct dl2_scorer *scorer,
                       struct dl2_volume *variant, struct dl2_score *scores, bool *identical,
                       struct dl2_error *error);

#endif
