/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists that grow item by item. */
#ifndef DL2_REPORT_LISTS_H
#define DL2_REPORT_LISTS_H

#include "common/error.h"

#include <stddef.h>

/* Makes room for one more item in a list, which doubles at powers of two. */
int dl2_list_grow(void **items, size_t count, size_t size, struct dl2_error *error);
int dl2_copy_text(const char *text, char **out, struct dl2_error *error);

/* Texts that the list owns; zero it before. */
struct dl2_texts {
    char **at;
    size_t count;
};
/* Adds a copy. */
int dl2_texts_add(struct dl2_texts *texts, const char *text, struct dl2_error *error);
void dl2_texts_free(struct dl2_texts *texts);

#endif
