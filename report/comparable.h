/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which results of a study can be compared with each other. What cannot is taken out and named in
 * study->left_out.
 *
 * Trainings of one network are comparable where they differ in nothing but data, seed and what
 * cannot bear on accuracy, on variants that were made from the same images with the same settings.
 * Speeds are comparable where they were measured as the original's were.
 */
#ifndef DL2_REPORT_COMPARABLE_H
#define DL2_REPORT_COMPARABLE_H

#include "common/error.h"
#include "report/study.h"

/* Takes out all other trainings. Of those that are kept, numbers of images that differ from the
 * original's are noted as failures. Variants, runs and archs must be sorted. */
int dl2_study_keep_comparable_trainings(struct dl2_study *study, struct dl2_error *error);

/* Takes out the variants' other rates of loading. */
int dl2_study_keep_comparable_loading(struct dl2_study *study, struct dl2_error *error);

/* Says whether study->rounds.items[index] is, and where not names it; the caller drops it. */
int dl2_study_round_is_comparable(struct dl2_study *study, size_t index, bool *comparable,
                                  struct dl2_error *error);

/*
 * In what two studies of different datasets differ that bears on accuracy: "epochs is 6, not 2", or
 * "" where they are alike. What goes with a dataset (its classes, channels, split, the mean of its
 * pixels) may differ. Of the trainings of a network that both have, and of how a variant was made
 * that both have.
 */
void dl2_study_compare_trainings(const struct dl2_study *study, const struct dl2_study *reference,
                                 const char *arch, char *out, size_t size);
void dl2_study_compare_variants(const struct dl2_study_variant *variant,
                                const struct dl2_study_variant *reference, char *out, size_t size);

#endif
