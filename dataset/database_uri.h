/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of datasets in PostgreSQL: what libpq's connection URIs know, and words of our own
 * among the parameters behind the "?" (docs/formats.md). Knows nothing of libpq, so that a build
 * without it can say what is missing. Only this room's files include this header.
 */
#ifndef DL2_DATASET_DATABASE_URI_H
#define DL2_DATASET_DATABASE_URI_H

#include "common/error.h"

struct dl2_database_uri {
    char *server; /* the URI without our words */
    char *schema; /* of table=SCHEMA.NAME; NULL: the server's search path finds the table */
    char *table;
    /* Columns; `label` and `split` are NULL if they were not given: a table may lack them. */
    char *key, *image, *label, *split;
    bool is_mapped; /* a column was given */
};

/* Sets *uri, to be freed also after an error. DL2_ERR_ARGUMENT says what is wrong. */
int dl2_database_uri_parse(const char *text, struct dl2_database_uri *uri, struct dl2_error *error);
void dl2_database_uri_free(struct dl2_database_uri *uri);

#endif
