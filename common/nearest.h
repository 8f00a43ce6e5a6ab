/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The known name that an unknown one means: for options of programs and arguments of Python.
 *
 *     struct dl2_nearest nearest = {.given = "batch-size"};
 *     for (row...)
 *         if (dl2_nearest_try(&nearest, row->name, row->also))
 *             best = row;
 */
#ifndef DL2_COMMON_NEAREST_H
#define DL2_COMMON_NEAREST_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dl2_nearest {
    const char *given;
    const char *name; /* the nearest so far, as it was tried, or NULL: none is near */
    unsigned cost;    /* its distance; 0: it is another name for the same */
};

/*
 * Whether `name` is nearer than all before it: equal but for dashes and underscores, a whole word
 * at the start of the other, or a few letters apart. `also` are names that other programs have for
 * it, with commas, or NULL. Texts are borrowed.
 */
bool dl2_nearest_try(struct dl2_nearest *nearest, const char *name, const char *also);

#ifdef __cplusplus
}
#endif

#endif
