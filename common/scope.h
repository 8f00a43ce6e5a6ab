/* SPDX-License-Identifier: BSD-2-Clause */
/* Locals that end with their scope, whichever way it is left. */
#ifndef DL2_COMMON_SCOPE_H
#define DL2_COMMON_SCOPE_H

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

/* For a struct that `function`, which gets its address, frees:
 * DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT; */
#define DL2_CLEANUP(function) __attribute__((cleanup(function)))

/* For pointers to free(); set at once: DL2_AUTO_FREE double *values = NULL; */
#define DL2_AUTO_FREE DL2_CLEANUP(dl2_free_local)

static inline void dl2_free_local(void *pointer)
{
    void *block;
    memcpy(&block, pointer, sizeof block);
    free(block);
}

/* For lists of texts that end with NULL: DL2_AUTO_LIST char **names = NULL; */
#define DL2_AUTO_LIST DL2_CLEANUP(dl2_free_list_local)

static inline void dl2_free_list_local(char ***list)
{
    dl2_free_list(*list);
}

#endif
