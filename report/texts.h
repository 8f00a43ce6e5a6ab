/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts, and lists of them. */
#ifndef DL2_REPORT_TEXTS_H
#define DL2_REPORT_TEXTS_H

#include "common/error.h"

#include <stddef.h>

/* Sets *out to a copy of the text, which the caller frees; NULL if memory runs out. */
int dl2_copy_text(const char *text, char **out, struct dl2_error *error);

/* Texts that the list owns. Zero it first. */
struct dl2_texts {
    char **at;
    size_t count;
};
/* Adds a copy. */
int dl2_texts_add(struct dl2_texts *texts, const char *text, struct dl2_error *error);
void dl2_texts_free(struct dl2_texts *texts);

#endif
