/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a variant does to the validation loss: cross-entropy without label smoothing, nats, of each
 * image. Accuracy hides what a network is less sure of as long as the class stays the first.
 */
#ifndef DL2_REPORT_LOSS_CHANGE_H
#define DL2_REPORT_LOSS_CHANGE_H

#include "report/analysis.h"
#include "report/differences.h"

struct dl2_loss_change { /* one variant, one network */
    double mean;         /* of all its trainings, nats; NAN: no predictions, or not a number */
    double difference;   /* to the original, seed by seed and image by image; above 0 is worse */
    double half;         /* of its 95% interval, with both sources of chance; INFINITY: unknown */
};

/* The changes of network study->archs[arch], whose analysis this is: [variant_count]. */
void dl2_loss_changes_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                           size_t arch, struct dl2_loss_change *changes);

/* The changes of all networks, [arch * variant_count + variant], kept; NULL: no training kept its
 * predictions. */
struct dl2_loss_change *dl2_loss_changes_find(const struct dl2_study *study,
                                              const struct dl2_analysis *analyses);

/* Is the loss shown to be higher? */
bool dl2_loss_is_higher(const struct dl2_loss_change *change);

#endif
