/* SPDX-License-Identifier: BSD-2-Clause */
/* An open table of PostgreSQL, shared by postgresql.c and postgresql_listing.c alone. */
#ifndef DL2_DATASET_POSTGRESQL_TABLE_H
#define DL2_DATASET_POSTGRESQL_TABLE_H

#include "dataset/packed/packed.h"
#include "dataset/postgresql/database.h"
#include "dataset/postgresql/pages.h"

/* Flags of an entry of the draft, beside those of the index. A row that has a split has it in front
 * of its key. */
enum { DL2_ROW_IS_NULL = 8, DL2_ROW_HAS_SPLIT = 16 };

/* A partition of the table, and its place among their names. */
struct dl2_postgresql_partition {
    uint32_t oid, number;
};

/*
 * The samples are the draft's entries. `offset` is the length of what their keys have in front of
 * the table's: "train/", or nothing. `shard` is 1 for a row that was changed since the table was
 * written, or may have been.
 */
struct dl2_postgresql_table {
    struct dl2_database_uri uri;
    struct dl2_database_pool *pool;
    struct dl2_index_draft draft;
    struct dl2_pages *pages; /* NULL: all images are read by SQL */
    char *read;              /* the command that reads images */
    char *read_beside; /* the command that reads what lies beside an image; NULL: nothing does */
    char *fit;         /* the command that trains on them */
    char *version;     /* the command that sums up which transactions wrote the rows */
    /* dataset->tables of them, by oid; NULL: it has none. */
    struct dl2_postgresql_partition *partitions;
    struct dl2_bytes partition_of; /* uint32_t: the number of each row's partition */
    int64_t mtime_ns[2];           /* when the table was written; when it was opened */
};

/*
 * Lists the rows of the table, whose uri and pool are set, and sets draft, pages, read, fit and
 * partitions. Opens the server's files, too, if access= wants that: listing is part of their
 * transaction. dataset->remark says why not, or how many images they have. DL2_ERR_LOST: the
 * connection was lost, and another try may do.
 */
int dl2_postgresql_list(struct dl2_dataset *dataset, const char *path, struct dl2_error *error);

/*
 * The key that a sample has: that of its row, behind the name of its split where that does not
 * begin the row's key. Adds the split to `parts`; `split` may be "".
 */
enum { DL2_POSTGRESQL_KEY_BYTES = DL2_DATABASE_MAX_KEY + DL2_DATABASE_MAX_SPLIT + 2 };
int dl2_postgresql_key(struct dl2_part_list *parts, const char *split, const char *row_key,
                       char key[DL2_POSTGRESQL_KEY_BYTES], uint8_t *part, struct dl2_error *error);

/* postgresql_groups.c: as dl2_group_column_read(). */
int dl2_postgresql_read_groups(const char *address, struct dl2_bytes *lines,
                               struct dl2_error *error);

#endif
