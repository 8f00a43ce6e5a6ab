/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images of a table, read from the files of a PostgreSQL server on this machine (access=pages).
 *
 * Which rows there are, the server says, by SQL, in one transaction: with each row the file that it
 * lies in, its place there, and the transaction that wrote it. An image is looked for in the row of
 * just this place and this transaction, as the file has it. Chunks of large values are found by
 * their index, read from its file as well. What the server has not written yet, has compressed, or
 * has moved since, is not found, and left to SQL.
 *
 * No image that was found is believed: its check sum must be that which the table has for it, or
 * that of the bytes which SQL gave for it before. So a page that is damaged, half overwritten or
 * used for something else by now costs a query and never gives other bytes.
 *
 * The transaction stays open until the end, so that VACUUM keeps the rows that it sees. It holds no
 * lock on the table. Nothing depends on its staying: if the server ends, files are read on.
 *
 * Threads: reading and proving on any number at once, everything else on one. Only this room's
 * files include this header.
 */
#ifndef DL2_DATASET_PAGES_H
#define DL2_DATASET_PAGES_H

#include "common/error.h"

#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_pages;

/*
 * Begins the transaction in which the rows are listed, and opens the files of the table and of all
 * tables that inherit from it or are its partitions. Takes the connection, also after a failure.
 * `table` is quoted, `image` is not. DL2_ERR_UNSUPPORTED and DL2_ERR_SYSTEM say why the files
 * cannot be used.
 */
int dl2_pages_open(PGconn *connection, const char *table, const char *image, const char *what,
                   struct dl2_pages **out, struct dl2_error *error);
void dl2_pages_close(struct dl2_pages *pages);

/* Adds the next row of the listing. */
struct dl2_pages_row {
    uint32_t table; /* tableoid */
    uint32_t block; /* ctid */
    uint16_t item;
    uint32_t xmin;
    uint32_t bytes; /* of the image */
};
int dl2_pages_add(struct dl2_pages *pages, const struct dl2_pages_row *row,
                  struct dl2_error *error);

/*
 * Ends the listing, and finds the images of all rows. If some are not on disk yet, asks the server
 * for a checkpoint, which it may refuse, and looks again. Sets *found to their number.
 */
int dl2_pages_find(struct dl2_pages *pages, size_t *found, struct dl2_error *error);

/* Notes the check sum of the image of row `number`: XXH3, 64 bits. */
void dl2_pages_prove(struct dl2_pages *pages, size_t number, uint64_t sum);

/*
 * Reads the image of row `number` into `data`, which has room for the bytes that were added. False
 * if it was not found, has no check sum yet, or another one.
 */
bool dl2_pages_read(const struct dl2_pages *pages, size_t number, uint8_t *data);

#endif
