/*
 * The samples that can't be read or decoded: each is counted and named once.
 *
 * Threads: dl2_bad_is_known() on any number at once; for the rest the caller holds a lock.
 */
#ifndef DL2_LOADER_BAD_H
#define DL2_LOADER_BAD_H

#include "common/error.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_bad_sample {
    uint32_t index;
    char *text; /* "path: stage: reason" */
};

struct dl2_bad_list {
    atomic_uchar *known; /* per sample of the dataset */
    struct dl2_bad_sample *samples;
    size_t count, capacity;
    const char **texts; /* what dl2_bad_texts() gave last */
};

int dl2_bad_init(struct dl2_bad_list *list, uint32_t samples, struct dl2_error *error);
void dl2_bad_free(struct dl2_bad_list *list);

static inline bool dl2_bad_is_known(const struct dl2_bad_list *list, uint32_t index)
{
    return atomic_load_explicit(&list->known[index], memory_order_relaxed);
}

/* 1: it is new, and its text copied; 0: it was known; DL2_ERR_MEMORY. */
int dl2_bad_add(struct dl2_bad_list *list, uint32_t index, const char *text,
                struct dl2_error *error);

/* In the dataset's order; NULL without memory. The array is valid until the next call. */
const char *const *dl2_bad_texts(struct dl2_bad_list *list);

#endif
