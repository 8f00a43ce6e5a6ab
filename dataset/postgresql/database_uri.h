/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of datasets in PostgreSQL: what libpq's connection URIs know, and words of our own
 * among the parameters behind the "?" (docs/formats/datasets.md). Knows nothing of libpq, so that a
 * build without it can say what is missing. Only this room's files include this header.
 */
#ifndef DL2_DATASET_DATABASE_URI_H
#define DL2_DATASET_DATABASE_URI_H

#include "common/error.h"

/* How images are read; AUTO: as PAGES where that is possible (dataset/postgresql/pages.h). */
enum dl2_database_access { DL2_ACCESS_SQL, DL2_ACCESS_PAGES, DL2_ACCESS_AUTO };

struct dl2_database_uri {
    char *server; /* the URI without our words */
    char *schema; /* of schema= or table=SCHEMA.NAME; NULL: the search path finds the table */
    char *table;
    /* Columns; `label` and `split` are NULL if they were not given: a table may lack them. */
    char *key, *image, *label, *split;
    char *beside; /* columns of what lies beside the images, with commas; NULL: not given */
    char *group;  /* NULL unless the address was parsed with `grouped` */
    /* What access= and timeout= say; NULL: not given. */
    char *access_word, *timeout_word;
    unsigned given; /* bits: of our words, those that were given */
    bool is_mapped; /* a column was */
    enum dl2_database_access access;
    double timeout; /* seconds to try to connect again to a server that was there */
};

/*
 * Sets *uri, to be freed also after an error. DL2_ERR_ARGUMENT says what is wrong. With `grouped`
 * the address must name a column by group=, else it must not.
 */
int dl2_database_uri_parse(const char *text, bool grouped, struct dl2_database_uri *uri,
                           struct dl2_error *error);
void dl2_database_uri_free(struct dl2_database_uri *uri);

/* DL2_ERR_ARGUMENT for words that have no effect on writing; the message says why. */
int dl2_database_uri_check_writing(const char *text, struct dl2_error *error);

/* Says that this build cannot read or write what lies at an address. */
int dl2_database_unsupported(const char *text, struct dl2_error *error);

/*
 * The address `text` with "_" and `name` at the end of its table's name, "-" in `name` as "_": a
 * string to free; NULL if memory runs out. Without a table, the address as it is.
 */
char *dl2_database_uri_of_variant(const char *text, const char *name);

#endif
