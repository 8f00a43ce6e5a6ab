/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts and lists of texts, which common/keep.h keeps. With one that JSON cannot hold, too,
 * dl2-study ends with a message; what it had begun is gone on with by the next run.
 *
 * Threads: main's.
 */
#ifndef DL2_STUDY_TEXT_H
#define DL2_STUDY_TEXT_H

#include "common/keep.h"

#include <stdbool.h>

/* Prints "dl2-study: MESSAGE" on stderr and ends the program. */
_Noreturn void dl2_study_fail(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text up to the end of its first line. */
const char *dl2_first_line(const char *text);

/* More for lists. */
void dl2_words_add_all(struct dl2_words *words, struct dl2_words more);
/* Adds words up to NULL. */
void dl2_words_more(struct dl2_words *words, ...) __attribute__((sentinel));
/* At blanks. */
struct dl2_words dl2_words_split(const char *text);
/* As a shell splits a command, quotes counted; the text was checked before. */
struct dl2_words dl2_words_of_command(const char *text);
void dl2_words_add_command(struct dl2_words *words, const char *text);
/* The value of an option among those of a command, "--name value" or "--name=value"; NULL: it is
 * not there. */
const char *dl2_flags_value(const char *flags, const char *option);
bool dl2_words_have(struct dl2_words words, const char *word);
const char *dl2_words_join(struct dl2_words words, const char *separator);
/* Sets a member to a new value, which is NULL where memory ran out. */
void dl2_put(json_t *object, const char *key, json_t *value);
/* A new string, which ends the program where the text is not UTF-8; a new array of them. */
json_t *dl2_text_json(const char *text);
json_t *dl2_words_json(struct dl2_words words);
/* The strings of an array, which are borrowed. */
struct dl2_words dl2_words_of_json(const json_t *array);

/* The text as one word of a shell's command. */
const char *dl2_shell_quote(const char *text);
/* The words of a command as a shell takes them. */
const char *dl2_shell_command(struct dl2_words words);

/* The whole file, or NULL where there is none. */
const char *dl2_text_of_file(const char *path);
/* Writes it, and makes the folders above it. */
void dl2_text_save(const char *path, const char *text);
/* Behind the end of the text's first line. */
const char *dl2_next_line(const char *text);

#endif
