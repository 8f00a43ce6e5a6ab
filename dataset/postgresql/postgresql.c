/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of PostgreSQL, as dl2-transcode writes them or as they are (docs/formats/datasets.md). One
 * query lists the keys, sizes, labels and splits (postgresql_listing.c); images are read by key.
 */
#include "dataset/postgresql/postgresql_table.h"

#include "common/scope.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* Most times that the rows are listed, where connections are lost. */
enum { LISTINGS = 5 };

/* ---- Opening and closing */

static int take_draft(struct dl2_dataset *dataset, struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_index_draft *draft = &table->draft;
    dataset->count = draft->count;
    dataset->has_parts = draft->has_parts;
    DL2_TRY(dl2_reader_set_parts(dataset, (const char *const *)draft->parts.names,
                                 draft->parts.count, error));
    return dl2_reader_set_classes(dataset, (const char *const *)draft->classes, draft->class_count,
                                  error);
}

static int postgresql_open(struct dl2_dataset *dataset, const char *path,
                           const struct dl2_dataset_options *options, struct dl2_error *error)
{
    (void)options; /* a table has no files to be left out */
    struct dl2_postgresql_table *table;
    DL2_TRY(DL2_NEW(&table, 1, "a dataset", error));
    dataset->state = table;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    table->mtime_ns[1] = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    DL2_TRY(dl2_database_uri_parse(path, false, &table->uri, error));
    DL2_TRY(dl2_database_pool_create(&table->uri, path, &table->pool, error));
    for (unsigned tries = 1;; tries++) {
        struct dl2_error own = DL2_ERROR_INIT;
        const int status = dl2_postgresql_list(dataset, path, &own);
        if (status == DL2_OK)
            return take_draft(dataset, error);
        if (status != DL2_ERR_LOST || tries == LISTINGS)
            return dl2_error_copy(error, &own);
    }
}

static void postgresql_close(struct dl2_dataset *dataset)
{
    struct dl2_postgresql_table *table = dataset->state;
    free(table->read);
    free(table->read_beside);
    free(table->version);
    free(table->partitions);
    dl2_bytes_free(&table->partition_of);
    dl2_pages_close(table->pages);
    free(table->fit);
    dl2_database_pool_destroy(table->pool);
    dl2_index_draft_free(&table->draft);
    dl2_database_uri_free(&table->uri);
    free(table);
}

/* ---- What is in it */

/* The key as the table has it. */
static const char *table_key(const struct dl2_postgresql_table *table, size_t number)
{
    return dl2_index_draft_key(&table->draft, number) +
           dl2_index_draft_entry(&table->draft, number)->offset;
}

static struct dl2_entry postgresql_describe(const struct dl2_dataset *dataset, size_t number)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_index_draft_entry *entry = dl2_index_draft_entry(&table->draft, number);
    const char *key = dl2_index_draft_key(&table->draft, number);
    return (struct dl2_entry){.sample = {.key = key,
                                         .path = table->uri.table,
                                         .name = key,
                                         .extension = key + strlen(key) + 1,
                                         .label = entry->label,
                                         .bytes = entry->bytes,
                                         .mtime_ns = table->mtime_ns[entry->shard]},
                              .inner = key + entry->offset,
                              .part = dataset->has_parts ? entry->part : DL2_PART_NONE};
}

static int postgresql_version(const struct dl2_dataset *dataset, struct dl2_bytes *out,
                              struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_database_query query = {.command = table->version};
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    const char *beside = table->uri.beside;
    DL2_TRY(dl2_database_read(table->pool, &query, &result, error));
    DL2_TRY(
        dl2_bytes_append(out, PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0), error));
    return beside ? dl2_bytes_append(out, beside, strlen(beside), error) : DL2_OK;
}

static uint32_t postgresql_table(const struct dl2_dataset *dataset, size_t number)
{
    const struct dl2_postgresql_table *table = dataset->state;
    uint32_t partition;
    memcpy(&partition, table->partition_of.data + number * sizeof partition, sizeof partition);
    return partition;
}

/* ---- Reading */

/* The keys of samples as a binary text[]. */
static int put_keys(const struct dl2_postgresql_table *table, const uint32_t *numbers, size_t count,
                    struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_TRY(dl2_database_put_array(out, DL2_OID_TEXT, count, error));
    for (size_t i = 0; i < count; i++) {
        const char *key = table_key(table, numbers[i]);
        DL2_TRY(dl2_database_put_bytes(out, key, strlen(key), error));
    }
    return DL2_OK;
}

/* Reads the rows of samples; images above `most` bytes stay with the server. */
static int query_rows(const struct dl2_postgresql_table *table, const uint32_t *numbers,
                      size_t count, uint64_t most, PGresult **result, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes keys = DL2_BYTES_INIT;
    const uint64_t limit = htobe64(most);
    DL2_TRY(put_keys(table, numbers, count, &keys, error));
    const char *const values[] = {(const char *)keys.data, (const char *)&limit};
    const int lengths[] = {(int)keys.size, (int)sizeof limit};
    const struct dl2_database_query query = {table->read, 2, values, lengths};
    return dl2_database_read(table->pool, &query, result, error);
}

static int postgresql_verify(const struct dl2_dataset *dataset, size_t number,
                             const struct dl2_slice_range *slices, const uint8_t *data, size_t size,
                             struct dl2_error *error)
{
    (void)slices; /* images are not cut */
    const struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_index_draft_entry *entry = dl2_index_draft_entry(&table->draft, number);
    if (!(entry->flags & DL2_ENTRY_SUMMED) || XXH3_64bits(data, size) == entry->sum)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: damaged, or changed since it was listed: its check sum differs",
                         dl2_reader_path(dataset, number));
}

/* What SQL gives for an image without a check sum proves what its pages give later. */
static void prove_image(const struct dl2_postgresql_table *table, size_t number,
                        const uint8_t *data, size_t size)
{
    const struct dl2_index_draft_entry *entry = dl2_index_draft_entry(&table->draft, number);
    if (table->pages && !(entry->flags & DL2_ENTRY_SUMMED) && size == entry->bytes)
        dl2_pages_prove(table->pages, number, XXH3_64bits(data, size));
}

/* Takes the image out of the rows that one key gave. */
static int take_image(const struct dl2_dataset *dataset, size_t number, const PGresult *result,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    const char *name = dl2_reader_path(dataset, number);
    if (PQntuples(result) != 1)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s", name,
                             PQntuples(result) ? "several rows have this key"
                                               : "the row is gone since the table was listed");
    if (PQgetisnull(result, 0, 1))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: the image is null", name);
    if (PQgetisnull(result, 0, 2))
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: the image has more than %zu bytes", name,
                             DL2_DATABASE_MAX_BYTES);
    const size_t size = (size_t)PQgetlength(result, 0, 2);
    DL2_TRY(dl2_bytes_resize(out, size, error));
    if (size)
        memcpy(out->data, PQgetvalue(result, 0, 2), size);
    prove_image(dataset->state, number, out->data, size);
    return DL2_OK;
}

static int read_by_sql(const struct dl2_dataset *dataset, size_t number, struct dl2_bytes *out,
                       struct dl2_error *error)
{
    const uint32_t one = (uint32_t)number;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(query_rows(dataset->state, &one, 1, DL2_DATABASE_MAX_BYTES, &result, error));
    return take_image(dataset, number, result, out, error);
}

static int postgresql_read(const struct dl2_dataset *dataset, size_t number,
                           const struct dl2_slice_range *slices, struct dl2_bytes *out,
                           struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    DL2_TRY(dl2_bytes_resize(out, dl2_index_draft_entry(&table->draft, number)->bytes, error));
    if (table->pages && dl2_pages_read(table->pages, number, out->data))
        return DL2_OK;
    DL2_TRY(read_by_sql(dataset, number, out, error));
    return postgresql_verify(dataset, number, slices, out->data, out->size, error);
}

static bool postgresql_in_batches(const struct dl2_dataset *dataset, size_t number, uint64_t *bytes)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_index_draft_entry *entry = dl2_index_draft_entry(&table->draft, number);
    *bytes = entry->bytes;
    return !(entry->flags & DL2_ROW_IS_NULL);
}

/* Copies each row's image to its sample's place; false if one is missing or of another size. */
static bool place_images(const struct dl2_postgresql_table *table, const uint32_t *numbers,
                         size_t count, const PGresult *result, uint8_t **places)
{
    size_t placed = 0;
    for (int row = 0; row < PQntuples(result); row++) {
        const char *key = PQgetvalue(result, row, 0);
        const size_t before = placed;
        for (size_t i = 0; i < count; i++) { /* a sample may be asked for several times */
            const size_t bytes = dl2_index_draft_entry(&table->draft, numbers[i])->bytes;
            if (!places[i] || strcmp(key, table_key(table, numbers[i])) != 0)
                continue;
            if (PQgetisnull(result, row, 2) || (size_t)PQgetlength(result, row, 2) != bytes)
                return false;
            if (bytes)
                memcpy(places[i], PQgetvalue(result, row, 2), bytes);
            prove_image(table, numbers[i], places[i], bytes);
            places[i] = NULL;
            placed++;
        }
        if (placed == before)
            return false;
    }
    return placed == count;
}

static bool postgresql_read_batch(const struct dl2_dataset *dataset, const uint32_t *numbers,
                                  size_t count, uint8_t *data)
{
    const struct dl2_postgresql_table *table = dataset->state;
    uint32_t asked[DL2_DATASET_BATCH];
    uint8_t *places[DL2_DATASET_BATCH];
    size_t left = 0;
    uint64_t most = 0;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = dl2_index_draft_entry(&table->draft, numbers[i])->bytes;
        if (!table->pages || !dl2_pages_read(table->pages, numbers[i], data)) {
            asked[left] = numbers[i];
            places[left++] = data;
            most = bytes > most ? bytes : most;
        }
        data += bytes;
    }
    return !left || (query_rows(table, asked, left, most, &result, NULL) == DL2_OK &&
                     place_images(table, asked, left, result, places));
}

/* ---- Beside the images */

/* Asks for what lies beside a row's image, with one extension or (NULL) all: names and bytes. */
static int query_beside(const struct dl2_dataset *dataset, size_t number, const char *extension,
                        PGresult **result, struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const char *const values[] = {table_key(table, number), extension};
    const int lengths[] = {(int)strlen(values[0]), extension ? (int)strlen(extension) : 0};
    const struct dl2_database_query query = {table->read_beside, 2, values, lengths};
    const int status = dl2_database_read(table->pool, &query, result, error);
    dl2_error_prefix(error, "%s: beside it", dl2_reader_path(dataset, number));
    DL2_TRY(status);
    for (int row = 1; row < PQntuples(*result); row++)
        if (!strcmp(PQgetvalue(*result, row, 0), PQgetvalue(*result, row - 1, 0)))
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: '%.200s' is there twice beside it",
                                 dl2_reader_path(dataset, number), PQgetvalue(*result, row, 0));
    return DL2_OK;
}

static int postgresql_read_sidecar(const struct dl2_dataset *dataset, size_t number,
                                   const char *extension, struct dl2_bytes *out,
                                   struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    if (!table->read_beside)
        return 0;
    DL2_TRY(query_beside(dataset, number, extension, &result, error));
    if (!PQntuples(result))
        return 0;
    out->size = 0;
    DL2_TRY(
        dl2_bytes_append(out, PQgetvalue(result, 0, 1), (size_t)PQgetlength(result, 0, 1), error));
    return 1;
}

static int postgresql_read_sidecars(const struct dl2_dataset *dataset, size_t number,
                                    struct dl2_sidecars *out, struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    if (!table->read_beside)
        return DL2_OK;
    DL2_TRY(query_beside(dataset, number, NULL, &result, error));
    for (int row = 0; row < PQntuples(result); row++) {
        const char *extension = PQgetvalue(result, row, 0);
        const size_t size = (size_t)PQgetlength(result, row, 1);
        struct dl2_sidecar *item;
        if (!dl2_is_sidecar_extension(extension))
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: '%.200s' beside it is no extension",
                                 dl2_reader_path(dataset, number), extension);
        DL2_TRY(dl2_sidecars_add(out, extension, size, &item, error));
        if (size)
            memcpy(item->bytes.data, PQgetvalue(result, row, 1), size);
    }
    return DL2_OK;
}

/* Rows that change are new ones; so are all with other columns. */
static uint64_t postgresql_sidecar_sum(const struct dl2_dataset *dataset, size_t number)
{
    (void)number;
    const struct dl2_postgresql_table *table = dataset->state;
    return table->uri.beside ? XXH3_64bits(table->uri.beside, strlen(table->uri.beside)) : 0;
}

/* ---- Training in the server */

/* The samples' numbers as int8[] and their labels as int4[]. */
static int put_numbers(const struct dl2_server_fit *fit, struct dl2_bytes *numbers,
                       struct dl2_bytes *labels, struct dl2_error *error)
{
    DL2_TRY(dl2_database_put_array(numbers, DL2_OID_INT8, fit->count, error));
    DL2_TRY(dl2_database_put_array(labels, DL2_OID_INT4, fit->count, error));
    for (size_t i = 0; i < fit->count; i++) {
        DL2_TRY(dl2_database_put_number(numbers, 8, error));
        DL2_TRY(dl2_database_put_number(numbers, 0, error));
        DL2_TRY(dl2_database_put_number(numbers, fit->numbers[i], error));
        DL2_TRY(dl2_database_put_number(labels, 4, error));
        DL2_TRY(dl2_database_put_number(labels, (uint32_t)fit->labels[i], error));
    }
    return DL2_OK;
}

/* The server warns of an image that cannot be decoded, with its row in the order of training. */
static void note_bad_row(void *context, const PGresult *result)
{
    const struct dl2_server_fit *fit = context;
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    size_t row;
    int used = 0;
    if (fit->bad && code && text && strcmp(code, "22P03") == 0 &&
        sscanf(text, "dl2_fit: row %zu: %n", &row, &used) == 1 && used && row > 0 &&
        row <= fit->count)
        fit->bad(fit->context, row - 1, text + used);
}

static int run_fit(const struct dl2_postgresql_table *table, const struct dl2_server_fit *fit,
                   const struct dl2_bytes *arrays, struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    const char *const values[] = {fit->model, fit->options, (const char *)arrays[0].data,
                                  (const char *)arrays[1].data, (const char *)arrays[2].data};
    const int lengths[] = {(int)fit->size, (int)strlen(fit->options), (int)arrays[0].size,
                           (int)arrays[1].size, (int)arrays[2].size};
    const struct dl2_database_query query = {.command = table->fit,
                                             .count = 5,
                                             .values = values,
                                             .lengths = lengths,
                                             .stop = fit->stop,
                                             .notice = note_bad_row,
                                             .context = (void *)fit};
    DL2_TRY(dl2_database_read(table->pool, &query, &result, error));
    if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: the server returned no model",
                             table->uri.table);
    out->size = 0;
    return dl2_bytes_append(out, PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0),
                            error);
}

static int postgresql_fit(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
                          struct dl2_bytes *out, struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    struct dl2_bytes arrays[] = {DL2_BYTES_INIT, DL2_BYTES_INIT, DL2_BYTES_INIT};
    int status = put_keys(table, fit->rows, fit->count, &arrays[0], error);
    if (status == DL2_OK)
        status = put_numbers(fit, &arrays[1], &arrays[2], error);
    if (status == DL2_OK &&
        (fit->size > DL2_DATABASE_MAX_BYTES || arrays[0].size > DL2_DATABASE_MAX_BYTES ||
         arrays[1].size > DL2_DATABASE_MAX_BYTES))
        status = dl2_error_set(error, DL2_ERR_LIMIT,
                               "%s: a model, or the keys of a visit, above 1 GiB do not fit into "
                               "a query: take more partitions",
                               table->uri.table);
    if (status == DL2_OK)
        status = run_fit(table, fit, arrays, out, error);
    for (size_t i = 0; i < 3; i++)
        dl2_bytes_free(&arrays[i]);
    return status;
}

static int postgresql_check_fit(const struct dl2_dataset *dataset,
                                char version[DL2_FIT_VERSION_BYTES], struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    static const char command[] =
        "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'dl2'), "
        "to_regprocedure('dl2_fit(bytea, int, bytea, jsonb, bigint)') IS NOT NULL";
    const struct dl2_database_query query = {.command = command};
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(dl2_database_read(table->pool, &query, &result, error));
    snprintf(version, DL2_FIT_VERSION_BYTES, "%s", PQgetvalue(result, 0, 0));
    if (*PQgetvalue(result, 0, 1))
        return DL2_OK;
    const char *what = dl2_database_pool_what(table->pool);
    return *version
               ? dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                               "%s: version %s of the extension dl2 there has no dl2_fit() as "
                               "dl2-train needs it, or it is not in the search path: install "
                               "dl2-train's own, then DROP EXTENSION dl2 and CREATE EXTENSION dl2",
                               what, version)
               : dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                               "%s: the database has no extension dl2, which trains there: "
                               "CREATE EXTENSION dl2, after make install-postgres on its "
                               "server",
                               what);
}

static const struct dl2_reader postgresql_reader = {
    .open = postgresql_open,
    .close = postgresql_close,
    .describe = postgresql_describe,
    .read = postgresql_read,
    .read_batch = postgresql_read_batch,
    .read_sidecar = postgresql_read_sidecar,
    .read_sidecars = postgresql_read_sidecars,
    .sidecar_sum = postgresql_sidecar_sum,
    .in_batches = postgresql_in_batches,
    .verify = postgresql_verify,
    .version = postgresql_version,
    .table = postgresql_table,
    .fit = postgresql_fit,
    .check_fit = postgresql_check_fit,
};

const struct dl2_container dl2_container_postgresql = {
    .name = "postgresql",
    .extensions = "-",
    .summary = "a table of a PostgreSQL database",
    .looks_for = "rows of a table",
    .can_write = true,
    .leaves_out = "an extension in a table is a text of UTF-8",
    .reader = &postgresql_reader,
    .probe = dl2_dataset_is_database,
    .sink = &dl2_database_sink,
    .facts = &dl2_database_facts,
    .parts = &dl2_database_parts,
    .read_groups = dl2_postgresql_read_groups,
};
