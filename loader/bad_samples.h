/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples that can't be read or decoded. Each is counted and named once.
 *
 * Threads: dl2_bad_samples_has() on any number at once; for the rest the caller holds a lock.
 */
#ifndef DL2_LOADER_BAD_SAMPLES_H
#define DL2_LOADER_BAD_SAMPLES_H

#include "common/error.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_bad_sample {
    uint32_t index;
    char *text; /* "path: stage: reason" */
};

struct dl2_bad_samples {
    atomic_uchar *known; /* per sample of the dataset */
    struct dl2_bad_sample *samples;
    size_t count;
    const char **texts; /* the array that dl2_bad_samples_texts() returned last */
};

int dl2_bad_samples_init(struct dl2_bad_samples *list, uint32_t samples, struct dl2_error *error);
void dl2_bad_samples_free(struct dl2_bad_samples *list);

static inline bool dl2_bad_samples_has(const struct dl2_bad_samples *list, uint32_t index)
{
    return atomic_load_explicit(&list->known[index], memory_order_relaxed);
}

/* Returns 1 if the sample is new, and copies its text; 0 if it is known; DL2_ERR_MEMORY. */
int dl2_bad_samples_add(struct dl2_bad_samples *list, uint32_t index, const char *text,
                        struct dl2_error *error);

/* The texts in the dataset's order; NULL without memory. The array is valid until the next call. */
const char *const *dl2_bad_samples_texts(struct dl2_bad_samples *list);

#endif
