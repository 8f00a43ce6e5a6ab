/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of PostgreSQL's files, 8 kB each, as they lie on disk: rows of a table, the chunks of large
 * values (TOAST), and the index of these chunks. A page may hold anything: it may be damaged, of
 * another age, or half overwritten. Every offset and length is checked, and nothing outside the
 * page is touched. Whether a row may be used is the caller's question. Only this room's files
 * include this header.
 *
 * Layout: bufpage.h, htup_details.h, itup.h, nbtree.h and varatt.h of PostgreSQL; the same since
 * 8.3, on little-endian machines.
 */
#ifndef DL2_DATASET_HEAP_PAGE_H
#define DL2_DATASET_HEAP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DL2_HEAP_PAGE = 8192, DL2_HEAP_CHUNK = 1996 };

/* A row. `data` is a view into the page and begins with the row's header. */
struct dl2_heap_row {
    const uint8_t *data;
    uint32_t size, header; /* bytes: of all of it, of the header */
    uint32_t xmin;         /* the transaction that wrote it */
    unsigned columns;
    const uint8_t *nulls; /* a bit for each column, 0: null; NULL: none is null */
};

/* The row at a line pointer, from 1 on. False if there is none, or it does not lie in the page. */
bool dl2_heap_row(const uint8_t *page, unsigned item, struct dl2_heap_row *row);

/* attlen and attalign (as 1, 2, 4 or 8 bytes) of pg_attribute. */
struct dl2_heap_column {
    int16_t length;
    uint8_t alignment;
};

struct dl2_heap_value {
    uint32_t bytes;    /* of the value itself */
    uint32_t offset;   /* where it is in the row; of no meaning for a large value */
    bool is_large;     /* it lies in chunks */
    uint32_t chunk_id; /* theirs */
};

/*
 * The value of column `number`, of type bytea. False if it is null, compressed or damaged, or the
 * row is older than the column.
 */
bool dl2_heap_value(const struct dl2_heap_row *row, const struct dl2_heap_column *columns,
                    size_t number, struct dl2_heap_value *value);

/* The bytes of a chunk; NULL if the row is not chunk `sequence` of `chunk_id` with `bytes` bytes.
 */
const uint8_t *dl2_heap_chunk(const struct dl2_heap_row *row, uint32_t chunk_id, uint32_t sequence,
                              uint32_t bytes);

/* Where an index has a chunk. */
struct dl2_heap_entry {
    uint32_t chunk_id, sequence, block;
    uint16_t item;
};

/* The number of line pointers of a leaf of a B-tree; 0 for any other page. */
unsigned dl2_heap_entries(const uint8_t *page);
/* False if line pointer `item`, from 1 on, is no entry for one chunk. */
bool dl2_heap_entry(const uint8_t *page, unsigned item, struct dl2_heap_entry *entry);

#endif
