/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/postgresql/pages.h"

#include "dataset/postgresql/database.h"
#include "dataset/postgresql/heap_page.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/scope.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* PostgreSQL has at most 1600 columns in a table; those that were dropped count. */
enum { MAX_TABLES = 10000, MAX_TABLE_COLUMNS = 1600 };

/* How many pages one call of pread() takes: they stay in a core's cache until they are copied. */
enum { SPAN = 16 };

/* A relation's files: segments of 1 GiB, if the server was not built otherwise. */
struct relation {
    int *segments; /* open for reading */
    uint32_t count;
};

enum { HEAP, CHUNKS, CHUNK_INDEX, FILES };

/* A table, or one of those that inherit from it. */
struct heap {
    uint32_t oid;
    struct relation files[FILES]; /* without the last two if it has no large values */
    struct dl2_heap_column *columns;
    size_t column_count, image; /* SIZE_MAX: it has no such column */
};

/* Where a chunk is, or a row with a small image. Not found: item 0. */
struct spot {
    uint16_t block[2], item;
};

/* What is known of an image. The spots are those of its chunks in order, or of its row. */
struct image {
    uint64_t spots; /* the first */
    uint32_t count; /* 0: SQL reads it */
    uint32_t bytes;
    uint16_t heap;
    uint16_t offset; /* in the row; 0: it lies in chunks */
    uint32_t chunk_id;
};

struct dl2_pages {
    PGconn *connection;
    pid_t process; /* whose connection it is */
    char *what;
    char directory[2048]; /* of the server's data */
    uint32_t segment_pages;
    struct heap *heaps; /* by oid */
    size_t heap_count;
    struct dl2_bytes rows; /* struct dl2_pages_row, while they are listed */
    size_t count;
    struct image *images;
    struct spot *spots;
    size_t spot_count;
    _Atomic(uint64_t) *sums; /* 0: not known */
};

/* ---- What the server says of itself */

/* Runs a query in the transaction; the result has at least one row. */
static int ask_server(struct dl2_pages *pages, const char *command, const char *parameter,
                      PGresult **result, struct dl2_error *error)
{
    DL2_TRY(dl2_database_ask(pages->connection, pages->what, command, parameter != NULL, &parameter,
                             result, error));
    if (PQntuples(*result) > 0)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "%s: the table is kept in another way than pages of rows; leave out "
                         "access=pages",
                         pages->what);
}

static int begin_transaction(struct dl2_pages *pages, struct dl2_error *error)
{
    static const char *const commands[] = {"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                           "SET LOCAL idle_in_transaction_session_timeout = 0",
                                           "SELECT 1", /* the snapshot is taken here */
                                           "SAVEPOINT dl2"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        DL2_TRY(dl2_database_run(pages->connection, pages->what, error, "%s", commands[i]));
    return DL2_OK;
}

/* Is the server's folder one of this machine, and of this server? Compares the number in it. */
static int check_folder(struct dl2_pages *pages, const char *identifier, struct dl2_error *error)
{
    char path[sizeof pages->directory + 32];
    uint64_t number = 0;
    snprintf(path, sizeof path, "%s/global/pg_control", pages->directory);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the server's folder %s is not on this machine: access=pages "
                             "needs the server's files; leave it out",
                             pages->what, pages->directory);
    if (fd < 0) {
        dl2_error_system(error, "%s", path);
        dl2_error_prefix(error,
                         "%s: access=pages needs leave to read the server's files: run dl2 as the "
                         "server's user, or as a member of its group (initdb "
                         "--allow-group-access)",
                         pages->what);
        return DL2_ERR_SYSTEM;
    }
    const ssize_t got = pread(fd, &number, sizeof number, 0);
    close(fd);
    if (got == sizeof number && number == strtoull(identifier, NULL, 10))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "%s: %s belongs to another server, so this one's files are not on this "
                         "machine; leave out access=pages",
                         pages->what, pages->directory);
}

static int look_at_server(struct dl2_pages *pages, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    const int status = ask_server(pages,
                                  "SELECT current_setting('data_directory'), system_identifier, "
                                  "database_block_size, max_toast_chunk_size, blocks_per_segment "
                                  "FROM pg_control_system(), pg_control_init()",
                                  NULL, &result, error);
    if (status < 0) {
        dl2_error_prefix(error, "access=pages needs to know the server's folder");
        return status;
    }
    const char *directory = PQgetvalue(result, 0, 0);
    const bool standard = atoi(PQgetvalue(result, 0, 2)) == DL2_HEAP_PAGE &&
                          atoi(PQgetvalue(result, 0, 3)) == DL2_HEAP_CHUNK;
    const long segment = strtol(PQgetvalue(result, 0, 4), NULL, 10);
    const bool fits =
        strlen(directory) < sizeof pages->directory && segment > 0 && segment <= UINT32_MAX / 2;
    if (fits) {
        strcpy(pages->directory, directory);
        pages->segment_pages = (uint32_t)segment;
    }
    if (!standard || !fits)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the server was built with pages, chunks or segments of another "
                             "size than usual; leave out access=pages",
                             pages->what);
    return check_folder(pages, PQgetvalue(result, 0, 1), error);
}

/* ---- Files */

static void relation_close(struct relation *relation)
{
    for (uint32_t i = 0; i < relation->count; i++)
        close(relation->segments[i]);
    free(relation->segments);
    *relation = (struct relation){0};
}

/* Opens all segments: PATH, PATH.1, PATH.2 ... A relation without a path has none. */
static int relation_open(struct dl2_pages *pages, const char *path, struct relation *relation,
                         struct dl2_error *error)
{
    char name[sizeof pages->directory + 256];
    for (uint32_t i = 0; *path && i < UINT16_MAX; i++) {
        char suffix[16] = "";
        if (i)
            snprintf(suffix, sizeof suffix, ".%" PRIu32, i);
        if (snprintf(name, sizeof name, "%s/%s%s", pages->directory, path, suffix) >=
            (int)sizeof name)
            return dl2_error_set(error, DL2_ERR_LIMIT, "%s: the path of a file is too long",
                                 pages->what);
        const int fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return DL2_OK; /* behind the last; or the table was rewritten just now */
        if (fd < 0) {
            dl2_error_system(error, "%s", name);
            dl2_error_prefix(error, "%s: access=pages needs one open file for each GiB",
                             pages->what);
            return DL2_ERR_SYSTEM;
        }
        const int status = dl2_grow(&relation->segments, i, sizeof *relation->segments, error);
        if (status < 0) {
            close(fd);
            return status;
        }
        relation->segments[i] = fd;
        relation->count = i + 1;
    }
    return DL2_OK;
}

/* Reads up to `count` pages from `block` on, all of one segment. Returns how many there are. */
static uint32_t relation_read(const struct dl2_pages *pages, const struct relation *relation,
                              uint32_t block, uint32_t count, uint8_t *out)
{
    const uint32_t segment = block / pages->segment_pages, first = block % pages->segment_pages;
    if (segment >= relation->count)
        return 0;
    const uint32_t left = pages->segment_pages - first;
    const size_t wanted = (size_t)(count < left ? count : left) * DL2_HEAP_PAGE;
    const int64_t got =
        dl2_read_at(relation->segments[segment], (uint64_t)first * DL2_HEAP_PAGE, out, wanted);
    return got < 0 ? 0 : (uint32_t)(got / DL2_HEAP_PAGE);
}

/* ---- Tables */

/* attalign of pg_attribute. */
static uint8_t alignment_of(char letter)
{
    return letter == 'd' ? 8 : letter == 'i' ? 4 : letter == 's' ? 2 : 1;
}

static int look_at_heap_columns(struct dl2_pages *pages, struct heap *heap, const char *image,
                                struct dl2_error *error)
{
    char oid[16];
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    snprintf(oid, sizeof oid, "%" PRIu32, heap->oid);
    DL2_TRY(ask_server(pages,
                       "SELECT CASE WHEN attisdropped THEN '' ELSE attname END, attlen, attalign "
                       "FROM pg_attribute WHERE attrelid = $1::oid AND attnum > 0 ORDER BY attnum",
                       oid, &result, error));
    const size_t count = (size_t)PQntuples(result);
    heap->image = SIZE_MAX;
    heap->columns = count <= MAX_TABLE_COLUMNS ? dl2_calloc(count, sizeof *heap->columns) : NULL;
    for (size_t i = 0; heap->columns && i < count; i++) {
        const int row = (int)i;
        heap->columns[i] = (struct dl2_heap_column){(int16_t)atoi(PQgetvalue(result, row, 1)),
                                                    alignment_of(*PQgetvalue(result, row, 2))};
        if (!strcmp(PQgetvalue(result, row, 0), image))
            heap->image = i;
    }
    heap->column_count = count;
    return heap->columns ? DL2_OK : dl2_error_memory(error, "a dataset");
}

/* The table and those below it, with their files: of rows, of chunks, of the chunks' index. */
static const char tables_command[] =
    "WITH RECURSIVE tree(oid) AS (SELECT to_regclass($1)::oid "
    "UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = oid) "
    "SELECT c.oid, c.relkind, coalesce(pg_relation_filepath(c.oid), ''), "
    "coalesce(pg_relation_filepath(nullif(c.reltoastrelid, 0)), ''), "
    "coalesce(pg_relation_filepath(i.indexrelid), '') "
    "FROM tree JOIN pg_class c USING (oid) LEFT JOIN pg_am a ON a.oid = c.relam "
    "LEFT JOIN pg_index i ON i.indrelid = nullif(c.reltoastrelid, 0) AND i.indisvalid "
    "WHERE c.relkind NOT IN ('r', 'm') OR a.amname = 'heap' ORDER BY c.oid";

static int add_heap(struct dl2_pages *pages, const PGresult *result, int row, const char *image,
                    struct dl2_error *error)
{
    const char kind = *PQgetvalue(result, row, 1);
    struct heap *heap = &pages->heaps[pages->heap_count];
    if (kind == 'v')
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: a view has no files; leave out access=pages", pages->what);
    if (kind != 'r' && kind != 'm') /* a partitioned table itself; a foreign one */
        return DL2_OK;
    pages->heap_count++;
    heap->oid = (uint32_t)strtoul(PQgetvalue(result, row, 0), NULL, 10);
    for (int i = 0; i < FILES; i++)
        DL2_TRY(relation_open(pages, PQgetvalue(result, row, 2 + i), &heap->files[i], error));
    return look_at_heap_columns(pages, heap, image, error);
}

static int look_at_heaps(struct dl2_pages *pages, const char *table, const char *image,
                         struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_AUTO_FREE char *comment = NULL;
    DL2_TRY(dl2_database_comment(pages->connection, table, pages->what, &comment, error));
    if (!comment)
        return dl2_database_no_table(pages->what, table, error);
    DL2_TRY(ask_server(pages, tables_command, table, &result, error));
    const int count = PQntuples(result);
    if (count > MAX_TABLES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: access=pages knows at most %d partitions",
                             pages->what, MAX_TABLES);
    DL2_TRY(DL2_NEW(&pages->heaps, (size_t)count, "a dataset", error));
    for (int row = 0; row < count; row++)
        DL2_TRY(add_heap(pages, result, row, image, error));
    return DL2_OK;
}

static int compare_oid(const void *key, const void *item)
{
    const uint32_t oid = *(const uint32_t *)key, other = ((const struct heap *)item)->oid;
    return (oid > other) - (oid < other);
}

int dl2_pages_open(PGconn *connection, const char *table, const char *image, const char *what,
                   struct dl2_pages **out, struct dl2_error *error)
{
    struct dl2_pages *pages = dl2_calloc(1, sizeof *pages);
    *out = NULL;
    if (!pages || !(pages->what = strdup(what))) {
        PQfinish(connection);
        free(pages);
        return dl2_error_memory(error, "a dataset");
    }
    pages->connection = connection;
    pages->process = getpid();
    int status = begin_transaction(pages, error);
    if (status == DL2_OK)
        status = look_at_server(pages, error);
    if (status == DL2_OK)
        status = look_at_heaps(pages, table, image, error);
    if (status < 0)
        dl2_pages_close(pages);
    else
        *out = pages;
    return status;
}

void dl2_pages_close(struct dl2_pages *pages)
{
    if (!pages)
        return;
    if (pages->process == getpid()) /* else of the process that forked this one, where it stays */
        PQfinish(pages->connection);
    for (size_t i = 0; i < pages->heap_count; i++) {
        for (int k = 0; k < FILES; k++)
            relation_close(&pages->heaps[i].files[k]);
        free(pages->heaps[i].columns);
    }
    free(pages->heaps);
    free(pages->what);
    dl2_bytes_free(&pages->rows);
    free(pages->images);
    free(pages->spots);
    free(pages->sums);
    free(pages);
}

/* ---- Finding images */

int dl2_pages_add(struct dl2_pages *pages, const struct dl2_pages_row *row, struct dl2_error *error)
{
    return dl2_bytes_append(&pages->rows, row, sizeof *row, error);
}

static const struct dl2_pages_row *row_at(const struct dl2_pages *pages, size_t number)
{
    return (const struct dl2_pages_row *)(const void *)pages->rows.data + number;
}

static struct spot make_spot(uint32_t block, unsigned item)
{
    return (struct spot){{(uint16_t)(block >> 16), (uint16_t)block}, (uint16_t)item};
}

static uint32_t block_of(const struct spot *spot)
{
    return (uint32_t)spot->block[0] << 16 | spot->block[1];
}

/* Rows in the order of their places, so that each page of the table is read once. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct dl2_pages *pages = context;
    const struct dl2_pages_row *a = row_at(pages, *(const uint32_t *)left);
    const struct dl2_pages_row *b = row_at(pages, *(const uint32_t *)right);
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

static int sort_rows(struct dl2_pages *pages, uint32_t **out, struct dl2_error *error)
{
    uint32_t *order = pages->count <= UINT32_MAX ? dl2_calloc(pages->count, sizeof *order) : NULL;
    *out = order;
    if (!order)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < pages->count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, pages->count, sizeof *order, compare_rows, pages);
    return DL2_OK;
}

/* Takes what a row of the table says of its image. False if the row is not on disk as listed. */
static bool take_row(struct dl2_pages *pages, const struct heap *heap, const uint8_t *page,
                     size_t number)
{
    const struct dl2_pages_row *row = row_at(pages, number);
    struct image *image = &pages->images[number];
    struct dl2_heap_row on_disk;
    struct dl2_heap_value value;
    if (!dl2_heap_row(page, row->item, &on_disk) || on_disk.xmin != row->xmin ||
        on_disk.columns > heap->column_count)
        return false;
    if (heap->image == SIZE_MAX || !dl2_heap_value(&on_disk, heap->columns, heap->image, &value) ||
        value.bytes != row->bytes || !value.bytes)
        return true; /* compressed, null or empty: it will never be found */
    *image = (struct image){.spots = pages->spot_count, .bytes = value.bytes};
    image->heap = (uint16_t)(heap - pages->heaps);
    image->count = value.is_large ? (value.bytes + DL2_HEAP_CHUNK - 1) / DL2_HEAP_CHUNK : 1;
    image->offset = value.is_large ? 0 : (uint16_t)value.offset;
    image->chunk_id = value.chunk_id;
    pages->spot_count += image->count;
    return true;
}

/* Reads the pages of all tables; counts the rows that are not on disk as listed. */
static size_t read_rows(struct dl2_pages *pages, const uint32_t *order)
{
    uint8_t page[DL2_HEAP_PAGE];
    const struct dl2_pages_row *last = NULL;
    const struct heap *heap = NULL;
    bool there = false;
    size_t missing = 0;
    for (size_t i = 0; i < pages->count; i++) {
        const struct dl2_pages_row *row = row_at(pages, order[i]);
        if (!last || last->table != row->table)
            heap = bsearch(&row->table, pages->heaps, pages->heap_count, sizeof *heap, compare_oid);
        if (heap && (!last || last->table != row->table || last->block != row->block))
            there = relation_read(pages, &heap->files[HEAP], row->block, 1, page);
        last = row;
        if (heap && !(there && take_row(pages, heap, page, order[i])))
            missing++;
    }
    return missing;
}

/* Large images of one table, by their chunks' number. */
struct by_chunk {
    uint32_t chunk_id, number;
};

static int compare_chunks(const void *left, const void *right)
{
    const uint32_t a = ((const struct by_chunk *)left)->chunk_id;
    const uint32_t b = ((const struct by_chunk *)right)->chunk_id;
    return (a > b) - (a < b);
}

/* Notes where the chunks are that a leaf of the index knows. */
static void take_leaf(struct dl2_pages *pages, const uint8_t *page, const struct by_chunk *list,
                      size_t count)
{
    const struct by_chunk *found = NULL;
    const unsigned items = dl2_heap_entries(page);
    for (unsigned item = 1; item <= items; item++) {
        struct dl2_heap_entry entry;
        if (!dl2_heap_entry(page, item, &entry))
            continue;
        const struct by_chunk wanted = {entry.chunk_id, 0};
        if (!found || found->chunk_id != entry.chunk_id)
            found = bsearch(&wanted, list, count, sizeof *list, compare_chunks);
        if (found && entry.sequence < pages->images[found->number].count)
            pages->spots[pages->images[found->number].spots + entry.sequence] =
                make_spot(entry.block, entry.item);
    }
}

static void read_index(struct dl2_pages *pages, const struct heap *heap,
                       const struct by_chunk *list, size_t count)
{
    uint8_t buffer[SPAN * DL2_HEAP_PAGE];
    uint32_t got;
    for (uint32_t block = 0;; block += got) {
        got = relation_read(pages, &heap->files[CHUNK_INDEX], block, SPAN, buffer);
        if (!got)
            return;
        for (uint32_t i = 0; i < got; i++)
            take_leaf(pages, buffer + (size_t)i * DL2_HEAP_PAGE, list, count);
    }
}

/* Finds the chunks of the large images among the rows of one table. */
static void find_chunks(struct dl2_pages *pages, const uint32_t *rows, size_t row_count,
                        struct by_chunk *list)
{
    size_t count = 0;
    for (size_t i = 0; i < row_count; i++) {
        const struct image *image = &pages->images[rows[i]];
        if (image->count && !image->offset)
            list[count++] = (struct by_chunk){image->chunk_id, rows[i]};
    }
    if (!count)
        return;
    qsort(list, count, sizeof *list, compare_chunks);
    read_index(pages, &pages->heaps[pages->images[list[0].number].heap], list, count);
}

/* Gives up images of which a chunk is missing; returns how many. */
static size_t drop_incomplete(struct dl2_pages *pages)
{
    size_t missing = 0;
    for (size_t i = 0; i < pages->count; i++) {
        struct image *image = &pages->images[i];
        bool whole = true;
        for (uint32_t k = 0; k < image->count; k++)
            whole = whole && pages->spots[image->spots + k].item;
        missing += !whole;
        image->count = whole ? image->count : 0;
    }
    return missing;
}

/* Makes images and spots of what is on disk now; counts what should be there and is not. */
static int look_at_files(struct dl2_pages *pages, const uint32_t *order, size_t *missing,
                         struct dl2_error *error)
{
    memset(pages->images, 0, pages->count * sizeof *pages->images);
    free(pages->spots);
    pages->spots = NULL;
    pages->spot_count = 0;
    *missing = read_rows(pages, order);
    DL2_AUTO_FREE struct by_chunk *list = dl2_calloc(pages->count, sizeof *list);
    pages->spots = dl2_calloc(pages->spot_count, sizeof *pages->spots);
    if (!list || !pages->spots)
        return dl2_error_memory(error, "the places of %zu images", pages->count);
    for (size_t i = 0; i < pages->count; i++)
        if (pages->images[i].offset) {
            const struct dl2_pages_row *row = row_at(pages, i);
            pages->spots[pages->images[i].spots] = make_spot(row->block, row->item);
        }
    for (size_t first = 0, end; first < pages->count; first = end) {
        const uint32_t table = row_at(pages, order[first])->table;
        for (end = first + 1; end < pages->count && row_at(pages, order[end])->table == table;)
            end++;
        find_chunks(pages, order + first, end - first, list);
    }
    *missing += drop_incomplete(pages);
    return DL2_OK;
}

int dl2_pages_find(struct dl2_pages *pages, size_t *found, struct dl2_error *error)
{
    size_t missing = 0;
    uint32_t *order;
    pages->count = pages->rows.size / sizeof(struct dl2_pages_row);
    DL2_TRY(DL2_NEW(&pages->images, pages->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&pages->sums, pages->count, "a dataset", error));
    DL2_TRY(sort_rows(pages, &order, error));
    int status = look_at_files(pages, order, &missing, error);
    if (status == DL2_OK && missing) {
        PQclear(PQexec(pages->connection, "CHECKPOINT"));
        status = look_at_files(pages, order, &missing, error);
    }
    free(order);
    dl2_bytes_free(&pages->rows);
    /* This also ends the locks that listing took: the transaction keeps what it sees, no more. */
    PQclear(PQexec(pages->connection, "ROLLBACK TO SAVEPOINT dl2"));
    *found = 0;
    for (size_t i = 0; status == DL2_OK && i < pages->count; i++)
        *found += pages->images[i].count > 0;
    return status;
}

/* ---- Reading */

void dl2_pages_prove(struct dl2_pages *pages, size_t number, uint64_t sum)
{
    atomic_store_explicit(&pages->sums[number], sum, memory_order_relaxed);
}

/* Copies what lies at a spot of an image to its place in `data`. */
static bool copy_piece(const struct image *image, const struct spot *spot, uint32_t sequence,
                       const uint8_t *page, uint8_t *data)
{
    const size_t done = (size_t)sequence * DL2_HEAP_CHUNK;
    const size_t left = image->bytes - done;
    const uint32_t bytes = (uint32_t)(left < DL2_HEAP_CHUNK ? left : DL2_HEAP_CHUNK);
    struct dl2_heap_row row;
    if (!dl2_heap_row(page, spot->item, &row))
        return false;
    if (image->offset) { /* the proof tells whether it is the row that was listed */
        if ((size_t)image->offset + image->bytes > row.size)
            return false;
        memcpy(data, row.data + image->offset, image->bytes);
        return true;
    }
    const uint8_t *chunk = dl2_heap_chunk(&row, image->chunk_id, sequence, bytes);
    if (chunk)
        memcpy(data + done, chunk, bytes);
    return chunk;
}

/* How many spots from `first` on lie in pages one behind the other, at most SPAN of them. */
static uint32_t count_run(const struct spot *spots, uint32_t first, uint32_t count)
{
    const uint32_t start = block_of(&spots[first]);
    uint32_t end = first + 1;
    while (end < count && block_of(&spots[end]) - block_of(&spots[end - 1]) <= 1 &&
           block_of(&spots[end]) - start < SPAN)
        end++;
    return end - first;
}

static bool copy_pieces(const struct dl2_pages *pages, const struct image *image, uint8_t *data)
{
    uint8_t buffer[SPAN * DL2_HEAP_PAGE];
    const struct spot *spots = pages->spots + image->spots;
    const struct relation *relation =
        &pages->heaps[image->heap].files[image->offset ? HEAP : CHUNKS];
    for (uint32_t first = 0; first < image->count;) {
        const uint32_t run = count_run(spots, first, image->count);
        const uint32_t start = block_of(&spots[first]);
        const uint32_t wanted = block_of(&spots[first + run - 1]) - start + 1;
        const uint32_t got = relation_read(pages, relation, start, wanted, buffer);
        uint32_t done = 0;
        while (done < run && block_of(&spots[first + done]) - start < got) {
            const size_t page = block_of(&spots[first + done]) - start;
            if (!copy_piece(image, &spots[first + done], first + done,
                            buffer + page * DL2_HEAP_PAGE, data))
                return false;
            done++;
        }
        if (!done)
            return false;
        first += done; /* fewer than the run where it passes into another segment */
    }
    return true;
}

bool dl2_pages_read(const struct dl2_pages *pages, size_t number, uint8_t *data)
{
    const struct image *image = &pages->images[number];
    const uint64_t sum = atomic_load_explicit(&pages->sums[number], memory_order_relaxed);
    return image->count && sum && copy_pieces(pages, image, data) &&
           XXH3_64bits(data, image->bytes) == sum;
}
