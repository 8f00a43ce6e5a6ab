/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of struct dl2_subset, as a table for programs to include (common/option.h). */
#ifndef DL2_DATASET_SUBSET_OPTIONS_H
#define DL2_DATASET_SUBSET_OPTIONS_H

#include "common/option.h"

extern const struct dl2_option dl2_subset_options[];

#endif
