/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of datasets, the first of struct dl2_subset, as tables for programs to include
 * (common/option.h). */
#ifndef DL2_DATASET_SUBSET_OPTIONS_H
#define DL2_DATASET_SUBSET_OPTIONS_H

#include "common/option.h"

#include "dataset/dataset.h"

extern const struct dl2_option dl2_subset_options[];
/* Refuses those of them that have no effect, as dl2_program_refuse() does. */
int dl2_subset_options_check(const struct dl2_program *program,
                             const struct dl2_common_options *common,
                             const struct dl2_subset *subset);

/* What samples are, of an enum dl2_samples. */
extern const struct dl2_option dl2_samples_options[];
extern const char *const dl2_samples_words[]; /* ends with NULL */

/* dl2_dataset_options.labels, a const char *. */
extern const struct dl2_option dl2_labels_options[];

/* A struct dl2_member_choice. */
extern const struct dl2_option dl2_member_options[];
/* What of it one of several datasets takes: nothing if it has no such members and another has. */
struct dl2_member_choice dl2_members_of(const struct dl2_member_choice *members, const char *path,
                                        bool another_has);

#endif
