/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory whose size was computed from somebody's input: every product is checked before it
 * reaches an allocator.
 */
#ifndef DL2_COMMON_MEMORY_H
#define DL2_COMMON_MEMORY_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Alignment of images, tensors and SIMD loads, in bytes. */
#define DL2_ALIGNMENT 64

/* *out = a * b (or a + b). Return false, and leave *out alone, where that overflows. */
bool dl2_size_mul(size_t a, size_t b, size_t *out);
bool dl2_size_add(size_t a, size_t b, size_t *out);

/* `count` zeroed items of `size` bytes. Free with free(). NULL when it overflows or fails. */
void *dl2_calloc(size_t count, size_t size);

/*
 * Sets *pointer to `count` zeroed items of its own type, which the caller frees. `what` names them
 * in the message of DL2_ERR_MEMORY, after which *pointer is NULL.
 */
#define DL2_NEW(pointer, count, what, error)                                                       \
    dl2_new(pointer, count, sizeof **(pointer), what, error)
int dl2_new(void *pointer, size_t count, size_t size, const char *what, struct dl2_error *error);

/* Sets *text to what printf() would print; the caller frees it. NULL after DL2_ERR_MEMORY. */
int dl2_format(char **text, struct dl2_error *error, const char *format, ...) DL2_PRINTF(3, 4);

/* Adds such a text as one more line to *text, which may be NULL and stays as it is on failure. */
int dl2_format_more(char **text, struct dl2_error *error, const char *format, ...) DL2_PRINTF(3, 4);

/* realloc() of `count` items; the old block stays valid on NULL. */
void *dl2_realloc(void *old, size_t count, size_t size);

/* Makes room for one more behind the `count` items of `size` bytes of an array; `array` is the
 * address of the pointer to them. */
int dl2_grow(void *array, size_t count, size_t size, struct dl2_error *error);

/* Uninitialized, aligned to DL2_ALIGNMENT, at least one byte. Free with free(). */
void *dl2_alloc_aligned(size_t count, size_t size);

/*
 * A block that grows and is reused: encoded bytes, scratch rows. Start from DL2_BYTES_INIT; the
 * owner frees it with dl2_bytes_free(). Growing throws the old contents away unless kept.
 */
struct dl2_bytes {
    uint8_t *data;
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
};

#define DL2_BYTES_INIT                                                                             \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

/* Makes room for `size` bytes in all and sets bytes->size; contents are undefined afterwards. */
int dl2_bytes_resize(struct dl2_bytes *bytes, size_t size, struct dl2_error *error);

/* Appends `size` bytes, keeping what is there; capacity doubles. */
int dl2_bytes_append(struct dl2_bytes *bytes, const void *data, size_t size,
                     struct dl2_error *error);

/* Inserts `size` bytes at `at`, which is at most bytes->size. */
int dl2_bytes_insert(struct dl2_bytes *bytes, size_t at, const void *data, size_t size,
                     struct dl2_error *error);

void dl2_bytes_swap(struct dl2_bytes *a, struct dl2_bytes *b);
void dl2_bytes_free(struct dl2_bytes *bytes);

/* Adds `text`, which it takes over, to a list of `*count` texts that ends with NULL. *list is NULL
 * before the first. DL2_ERR_MEMORY also if `text` is NULL. */
int dl2_list_append(char ***list, size_t *count, char *text, struct dl2_error *error);

/* Copies of texts and the array of them, in one block to be freed; NULL if memory runs out. */
char **dl2_copy_texts(const char *const *texts, size_t count);

/* Frees a list of texts that ends with NULL, and the texts; NULL is allowed. */
void dl2_free_list(char **list);

#ifdef __cplusplus
}
#endif

#endif
