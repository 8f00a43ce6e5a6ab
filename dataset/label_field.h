/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A class out of a sample's JSON, by the path of a field: "label", "meta.class", "labels.0". Names
 * stand between dots; one of digits alone is an element of an array, counted from 0, or a member of
 * an object. A dot in a name is written \. and a backslash \\.
 */
#ifndef DL2_DATASET_LABEL_FIELD_H
#define DL2_DATASET_LABEL_FIELD_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DL2_LABEL_BYTES = 4096,         /* limit of a label's text */
    DL2_LABEL_JSON_BYTES = 4 << 20, /* of a sample's JSON: parsed, it can take many times that */
    DL2_LABEL_FIELD_BYTES = 1024    /* of a path */
};

/* What a field holds. */
enum dl2_field_kind {
    DL2_LABEL_NONE,
    DL2_LABEL_NUMBER, /* an integer from 0 on: a class's number */
    DL2_LABEL_NAME    /* a string: a class's name */
};

/* DL2_ERR_ARGUMENT for a text that is no path. */
int dl2_label_field_check(const char *field, struct dl2_error *error);

/*
 * Sets `text` to what the field of this JSON holds, a number in digits. DL2_ERR_FORMAT, with
 * DL2_LABEL_NONE and the reason, for JSON that cannot be read, for a field that is not there, and
 * for one that is neither a name nor a number.
 */
int dl2_label_field_read(const char *field, const uint8_t *json, size_t size,
                         enum dl2_field_kind *kind, char text[DL2_LABEL_BYTES + 1],
                         struct dl2_error *error);

#endif
