/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a program that cannot go on without it. Asking for it cannot fail: where there is none
 * left, the program ends with a message, and what it had begun is done again by its next run. What
 * is kept lives until dl2_free_kept(), or as long as the program; all else is to be freed as usual.
 * For rooms of one program alone: what others share returns its errors.
 *
 * Threads: main's.
 */
#ifndef DL2_COMMON_KEEP_H
#define DL2_COMMON_KEEP_H

#include "common/error.h"
#include "common/memory.h"

#include <jansson.h>
#include <stddef.h>

/* Ends the program for DL2_ERR_MEMORY, too. Returns any other status. */
int dl2_unless_memory(int status, const struct dl2_error *why);
/* Returns what was made elsewhere; NULL is a sign that memory ran out. */
void *dl2_need(void *made);

/* `count` zeroed items of `size` bytes, to free; the format names them. */
void *dl2_room(size_t count, size_t size, const char *what, ...) DL2_PRINTF(3, 4);
/* The same, kept. */
void *dl2_keep(size_t count, size_t size, const char *what, ...) DL2_PRINTF(3, 4);
/* A kept array, NULL at first, with room for one more behind its `count` items. Where it has to
 * move, the old one stays. */
void *dl2_keep_more(void *items, size_t count, size_t size);
/* Keeps what free() would free, a reference that json_decref() would release. */
void *dl2_keep_block(void *block);
json_t *dl2_keep_json(json_t *json);
/* printf() into a new text, which is kept; a copy. */
char *dl2_text(const char *format, ...) DL2_PRINTF(1, 2);
char *dl2_text_copy(const char *text);
void dl2_free_kept(void);

/* A list of texts. Zero it first. */
struct dl2_words {
    const char **at;
    size_t count;
};
void dl2_words_add(struct dl2_words *words, const char *word);

/* dl2_bytes_append(), to free as usual. */
void dl2_append(struct dl2_bytes *bytes, const void *data, size_t size);
void dl2_append_text(struct dl2_bytes *bytes, const char *text);

#endif
