/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts: for people to read, and in lists. File names may hold any bytes; some of them move the
 * cursor, color what follows or begin a line of their own.
 */
#ifndef DL2_COMMON_QUOTE_H
#define DL2_COMMON_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Copies `text` into `out`, of `size` bytes, with every control character (also DEL and those of
 * U+0080 to U+009F) and every byte that is not part of UTF-8 written as \n, \r, \t or \x1b. What
 * doesn't fit is cut off between characters. Quoting twice changes nothing more. Passwords in
 * addresses become "***". Returns `out`.
 */
char *dl2_quote(const char *text, char *out, size_t size);

/* The same in a buffer that lives as long as the enclosing block: for printf() and its like. */
#define DL2_SHOWN(text) dl2_quote(text, (char[2048]){""}, 2048)

/*
 * A copy of `text` with "***" for each password in an address (postgresql://, http://, s3://...):
 * to be freed; NULL if memory runs out.
 */
char *dl2_hide_passwords(const char *text);

/* Bytes of the UTF-8 sequence (RFC 3629) that a string, not an empty one, begins with; 0: none. */
size_t dl2_utf8_length(const char *text);

/* Writes a field of a CSV file (RFC 4180), in quotes if it needs them. */
void dl2_csv_field(FILE *out, const char *text);

/* Is `end` the end of a longer text? */
bool dl2_ends_with(const char *text, const char *end);
/* Is it one of these, in any case? NULL ends them. */
bool dl2_is_one_of(const char *text, const char *const *words);

/* The order, by byte value, of texts of these lengths. */
int dl2_compare_spans(const char *a, size_t length, const char *b, size_t other);
/* qsort()'s order of strings, by byte value. */
int dl2_compare_texts(const void *a, const void *b);

/* Appends a name to the list "a, b, c" in `list`, of `size` bytes. What doesn't fit is cut off. */
void dl2_list_name(char *list, size_t size, const char *name);

#endif
