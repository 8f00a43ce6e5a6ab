/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labels as others write them: what a text says, wherever it stands, and what a value in JSON says.
 *
 * A field of a sample's JSON has a path: "label", "meta.class", "labels.0". Names stand between
 * dots; one of digits alone is an element of an array, counted from 0, or a member of an object. A
 * dot in a name is written \. and a backslash \\.
 */
#ifndef DL2_DATASET_LABEL_FIELD_H
#define DL2_DATASET_LABEL_FIELD_H

#include "common/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DL2_LABEL_BYTES = 4096,         /* limit of a label's text */
    DL2_LABEL_JSON_BYTES = 4 << 20, /* of a sample's JSON: parsed, it can take many times that */
    DL2_LABEL_FIELD_BYTES = 1024    /* of a path */
};

/*
 * The class's number that a label's text reads as: 3 for "3", "3.0", "[3]", "003", also with a byte
 * order mark and blanks around it. DL2_LABEL_ABSENT for a number below 0 and for blanks, which mean
 * that there is no class, and DL2_LABEL_WORD for any other text, which may be a class's name. What
 * 64 bits do not hold is INT64_MAX.
 */
enum { DL2_LABEL_ABSENT = -1, DL2_LABEL_WORD = -2 };
int64_t dl2_label_number(const char *text);
/* Cuts a byte order mark and blanks off both ends of a label's text. */
void dl2_label_trim(const char **text, size_t *size);

/* What the labels of a dataset say together: begin with DL2_LABEL_CENSUS and count each text, which
 * stays the caller's, once. Without a `word` they are the numbers of their classes. */
struct dl2_label_census {
    int64_t largest;    /* number; -1: there is none */
    const char *top;    /* the label that says it */
    const char *number; /* the first that is a number, or NULL */
    const char *word;   /* the first that is none, or NULL */
};
#define DL2_LABEL_CENSUS ((struct dl2_label_census){.largest = -1})
void dl2_label_count(struct dl2_label_census *census, const char *text);
/* DL2_ERR_LIMIT if so many classes do not fit into memory; `key` is that of a sample of `top`. */
int dl2_label_check_largest(const struct dl2_label_census *census, const char *key,
                            struct dl2_error *error);
/* Adds to the remark why words are names of classes, unless that is plain: among numbers, and where
 * they look like numbers that are not whole. The keys are of samples of `number` and `word`. */
int dl2_label_remark_words(const struct dl2_label_census *census, const char *number_key,
                           const char *word_key, char **remark, struct dl2_error *error);
/* Adds how many of `all` samples have a label below 0, and the key of one; nothing for 0. */
int dl2_label_remark_absent(size_t absent, size_t all, const char *key, char **remark,
                            struct dl2_error *error);

/* What a value in JSON holds. */
enum dl2_field_kind {
    DL2_LABEL_NONE,
    DL2_LABEL_NUMBER, /* a whole number, also 3.0 and [3] */
    DL2_LABEL_NAME    /* a string: a class's name, or a number in quotes */
};

/* Sets `text` to a label, a number in digits. DL2_ERR_FORMAT, with DL2_LABEL_NONE and the reason
 * ("it holds an object"), for a value that is neither a name nor a whole number. */
int dl2_label_of_json(const json_t *value, enum dl2_field_kind *kind,
                      char text[DL2_LABEL_BYTES + 1], struct dl2_error *error);

/* DL2_ERR_ARGUMENT for a text that is no path. */
int dl2_label_field_check(const char *field, struct dl2_error *error);

/* The same of a field of this JSON; also DL2_ERR_FORMAT for JSON that cannot be read, and for a
 * field that is not there. */
int dl2_label_field_read(const char *field, const uint8_t *json, size_t size,
                         enum dl2_field_kind *kind, char text[DL2_LABEL_BYTES + 1],
                         struct dl2_error *error);

#endif
