/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON files through Jansson: read with an error that names the file, write whole or not at all. */
#ifndef DL2_COMMON_JSON_H
#define DL2_COMMON_JSON_H

#include "common/error.h"

#include <jansson.h>

/* Largest JSON file that is read, in bytes. */
#define DL2_JSON_MAX_BYTES ((size_t)1 << 30)

/*
 * As json_loadb(), of text that others wrote: without a byte order mark, and with null for what
 * Python writes although it is not JSON: NaN, Infinity and -Infinity. So they are missing values.
 */
json_t *dl2_json_parse(const void *text, size_t size, size_t flags, json_error_t *why);

/* *out is a new reference. Its top must be an object whose "schema" is `schema` (NULL: any). */
int dl2_json_load(const char *path, const char *schema, json_t **out, struct dl2_error *error);

/* Appends it: indented, keys in insertion order, numbers with all their digits, newline at the end.
 * NULL: JSON that there was no memory to make, an error. */
struct dl2_bytes;
int dl2_json_append(struct dl2_bytes *out, const json_t *json, struct dl2_error *error);

/* Writes the same to a file; atomic. */
int dl2_json_save(const char *path, const json_t *json, struct dl2_error *error);
/* The same with a reference that it takes over. */
int dl2_json_save_new(const char *path, json_t *json, struct dl2_error *error);

/* A real, or null where it is not finite (JSON has no infinity). New reference. */
json_t *dl2_json_real(double value);

/*
 * A string; bytes that are not UTF-8 (file names may hold any) become U+FFFD, and passwords in
 * addresses of databases "***". New reference.
 */
json_t *dl2_json_text(const char *text);

/* Adds the fields of `more`, which it takes over, to an object; false if memory ran out, also for
 * either of the two. */
bool dl2_json_add(json_t *object, json_t *more);

/* Fields with a default where they are missing or of another type. Strings are borrowed. */
double dl2_json_get_real(const json_t *object, const char *key, double fallback);
long long dl2_json_get_integer(const json_t *object, const char *key, long long fallback);
const char *dl2_json_get_text(const json_t *object, const char *key, const char *fallback);

/* Is the text an element of the array? NULL is an empty array. */
bool dl2_json_lists(const json_t *array, const char *text);

#endif
