/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a table in one transaction: COPY into a new one, which then takes the old one's place. A
 * run that is cut short leaves the database as it was.
 */
#include "dataset/container.h"
#include "dataset/postgresql/database.h"
#include "dataset/write/writer.h"

#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* libpq keeps what is sent until the server takes it: so much of an image at a time. */
enum { PIECE = 64 << 10 };

/* What a row has; images last, since they are sent apart. */
#define COLUMNS "key, split, label, extension, sum, number, made, beside, beside_data, image"
enum { COLUMN_COUNT = 10 };

struct writing {
    struct dl2_database_place place;
    char *what;  /* the place's address */
    char *fresh; /* the new table, quoted */
    json_t *classes;
    uint64_t number;      /* of rows so far */
    struct dl2_bytes row; /* but for the image */
};

/* ---- Beginning */

/* The new table's name until it takes its place, in the same schema. */
static int name_fresh(struct writing *writing, struct dl2_error *error)
{
    const char *table = writing->place.uri.table;
    struct dl2_database_uri fresh = writing->place.uri;
    char name[32];
    snprintf(name, sizeof name, "dl2-new-%016" PRIx64, XXH3_64bits(table, strlen(table)));
    fresh.table = name;
    writing->fresh = dl2_database_table(writing->place.connection, &fresh, error);
    return writing->fresh ? DL2_OK : DL2_ERR_ARGUMENT;
}

/* Refuses a table that dl2-transcode did not write. */
static int check_old_table(const struct writing *writing, struct dl2_error *error)
{
    DL2_AUTO_FREE char *comment = NULL;
    DL2_TRY(dl2_database_comment(writing->place.connection, writing->place.table, writing->what,
                                 &comment, error));
    json_auto_t *json = comment ? json_loads(comment, 0, NULL) : NULL;
    const bool is_own = !strcmp(dl2_json_get_text(json, "schema", ""), DL2_DATABASE_SCHEMA);
    return !comment || is_own
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: the table %s is in the way: dl2-transcode did not write "
                               "it; name another table, or drop this one",
                               writing->what, writing->place.table);
}

static int lock_name(const struct writing *writing, struct dl2_error *error)
{
    const char *table = writing->place.uri.table;
    const int status = dl2_database_run(writing->place.connection, writing->what, error,
                                        "SELECT pg_advisory_xact_lock(%" PRId64 ")",
                                        (int64_t)XXH3_64bits(table, strlen(table)));
    dl2_error_prefix(error, "another dl2-transcode may be writing this table");
    return status;
}

static int begin_copy(const struct writing *writing, struct dl2_error *error)
{
    static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
    PGconn *connection = writing->place.connection;
    DL2_AUTO_FREE char *command = NULL;
    DL2_TRY(dl2_format(&command, error, "COPY %s (" COLUMNS ") FROM STDIN (FORMAT binary)",
                       writing->fresh));
    PGresult *result = PQexec(connection, command);
    if (PQresultStatus(result) != PGRES_COPY_IN)
        return dl2_database_failed(connection, result, writing->what, error);
    PQclear(result);
    if (PQputCopyData(connection, header, sizeof header) != 1)
        return dl2_database_failed(connection, NULL, writing->what, error);
    return DL2_OK;
}

static int list_classes(struct writing *writing, const char *const *classes, unsigned count,
                        struct dl2_error *error)
{
    writing->classes = json_array();
    bool good = writing->classes;
    for (unsigned i = 0; good && i < count; i++)
        good = json_array_append_new(writing->classes, dl2_json_text(classes[i])) == 0;
    return good ? DL2_OK : dl2_error_memory(error, "a table");
}

static int begin_writing(struct writing *writing, struct dl2_error *error)
{
    DL2_TRY(dl2_database_uri_check_writing(writing->what, error));
    DL2_TRY(dl2_database_open(&writing->place, writing->what, false, error));
    PGconn *connection = writing->place.connection;
    DL2_TRY(name_fresh(writing, error));
    DL2_TRY(dl2_database_run(connection, writing->what, error,
                             "BEGIN; SET LOCAL lock_timeout = '10s'"));
    DL2_TRY(lock_name(writing, error));
    DL2_TRY(check_old_table(writing, error));
    DL2_TRY(dl2_database_run(
        connection, writing->what, error,
        "CREATE TABLE %s (key text PRIMARY KEY, split text, label text, image bytea NOT "
        "NULL, extension text NOT NULL, sum bigint, number bigint NOT NULL, made jsonb, "
        "beside text[], beside_data bytea[])",
        writing->fresh));
    DL2_TRY(dl2_database_run(connection, writing->what, error,
                             "ALTER TABLE %s ALTER COLUMN image SET STORAGE EXTERNAL",
                             writing->fresh));
    return begin_copy(writing, error);
}

static void sink_close(void *state)
{
    struct writing *writing = state;
    dl2_database_close(&writing->place);
    PQfreemem(writing->fresh);
    json_decref(writing->classes);
    dl2_bytes_free(&writing->row);
    free(writing->what);
    free(writing);
}

static int sink_open(const char *path, const char *const *classes, unsigned class_count,
                     void **state, struct dl2_error *error)
{
    struct writing *writing;
    DL2_TRY(DL2_NEW(&writing, 1, "a table", error));
    writing->what = strdup(path);
    int status = writing->what ? list_classes(writing, classes, class_count, error)
                               : dl2_error_memory(error, "a table");
    if (status == DL2_OK)
        status = begin_writing(writing, error);
    if (status == DL2_OK)
        *state = writing;
    else
        sink_close(writing);
    return status;
}

/* ---- Rows */

static int put_null(struct writing *writing, struct dl2_error *error)
{
    return dl2_database_put_number(&writing->row, UINT32_MAX, error);
}

/* NULL and "" become null. */
static int put_text(struct writing *writing, const char *text, struct dl2_error *error)
{
    return text && *text ? dl2_database_put_bytes(&writing->row, text, strlen(text), error)
                         : put_null(writing, error);
}

static int put_number(struct writing *writing, uint64_t number, struct dl2_error *error)
{
    const uint64_t big_endian = htobe64(number);
    return dl2_database_put_bytes(&writing->row, &big_endian, sizeof big_endian, error);
}

/* jsonb is the number of its format and a text. */
static int put_json(struct writing *writing, const char *json, struct dl2_error *error)
{
    static const uint8_t format = 1;
    if (!json)
        return put_text(writing, NULL, error);
    const uint32_t length = htobe32((uint32_t)(sizeof format + strlen(json)));
    DL2_TRY(dl2_bytes_append(&writing->row, &length, sizeof length, error));
    DL2_TRY(dl2_bytes_append(&writing->row, &format, sizeof format, error));
    return dl2_bytes_append(&writing->row, json, strlen(json), error);
}

/* The extensions of what lies beside the image, and its bytes: two arrays, or null. */
static int put_beside(struct writing *writing, const struct dl2_sidecars *sidecars,
                      struct dl2_error *error)
{
    struct dl2_bytes *row = &writing->row;
    size_t names = DL2_DATABASE_ARRAY_HEADER, bytes = DL2_DATABASE_ARRAY_HEADER;
    if (!sidecars->count) {
        DL2_TRY(put_null(writing, error));
        return put_null(writing, error);
    }
    for (size_t i = 0; i < sidecars->count; i++) {
        names += sizeof(uint32_t) + strlen(sidecars->items[i].extension);
        bytes += sizeof(uint32_t) + sidecars->items[i].bytes.size;
    }
    DL2_TRY(dl2_database_put_number(row, (uint32_t)names, error));
    DL2_TRY(dl2_database_put_array(row, DL2_OID_TEXT, sidecars->count, error));
    for (size_t i = 0; i < sidecars->count; i++)
        DL2_TRY(dl2_database_put_bytes(&writing->row, sidecars->items[i].extension,
                                       strlen(sidecars->items[i].extension), error));
    DL2_TRY(dl2_database_put_number(row, (uint32_t)bytes, error));
    DL2_TRY(dl2_database_put_array(row, DL2_OID_BYTEA, sidecars->count, error));
    for (size_t i = 0; i < sidecars->count; i++)
        DL2_TRY(dl2_database_put_bytes(&writing->row, sidecars->items[i].bytes.data,
                                       sidecars->items[i].bytes.size, error));
    return DL2_OK;
}

static bool is_utf8(const char *text)
{
    size_t length;
    for (; *text; text += length)
        if (!(length = dl2_utf8_length(text)))
            return false;
    return true;
}

static bool sink_holds_sidecar(const struct dl2_sidecar *item)
{
    return is_utf8(item->extension);
}

static int check_sink_sample(const struct dl2_new_sample *sample, struct dl2_error *error)
{
    if (!is_utf8(sample->key) || (sample->class && !is_utf8(sample->class)))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the name is not UTF-8, as texts in a database must be; rename it",
                             sample->key);
    if (strlen(sample->key) > DL2_DATABASE_MAX_KEY ||
        (sample->class && strlen(sample->class) > DL2_DATABASE_MAX_LABEL))
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%.100s...: a name above %d bytes, or a class above %d", sample->key,
                             DL2_DATABASE_MAX_KEY, DL2_DATABASE_MAX_LABEL);
    const uint64_t bytes = (uint64_t)sample->size + sample->sidecars.bytes;
    if (bytes > DL2_DATABASE_MAX_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%s: %" PRIu64 " bytes pass PostgreSQL's limit of 1 GiB for a row",
                             sample->key, bytes);
    return DL2_OK;
}

/* The server ends a COPY that it cannot take; its reason is a result. */
static int copy_failed(const struct writing *writing, struct dl2_error *error)
{
    return dl2_database_failed(writing->place.connection, PQgetResult(writing->place.connection),
                               writing->what, error);
}

static int send_bytes(const struct writing *writing, const void *data, size_t size,
                      struct dl2_error *error)
{
    for (size_t sent = 0; sent < size;) {
        const size_t piece = size - sent < PIECE ? size - sent : PIECE;
        if (PQputCopyData(writing->place.connection, (const char *)data + sent, (int)piece) != 1)
            return copy_failed(writing, error);
        sent += piece;
    }
    return DL2_OK;
}

static int sink_add(void *state, const struct dl2_new_sample *sample, struct dl2_error *error)
{
    struct writing *writing = state;
    const uint16_t columns = htobe16(COLUMN_COUNT);
    const uint32_t length = htobe32((uint32_t)sample->size);
    DL2_TRY(check_sink_sample(sample, error));
    writing->row.size = 0;
    DL2_TRY(dl2_bytes_append(&writing->row, &columns, sizeof columns, error));
    DL2_TRY(dl2_database_put_bytes(&writing->row, sample->key, strlen(sample->key), error));
    DL2_TRY(put_text(writing, sample->split, error));
    DL2_TRY(put_text(writing, sample->class, error));
    DL2_TRY(
        dl2_database_put_bytes(&writing->row, sample->extension, strlen(sample->extension), error));
    DL2_TRY(put_number(writing, XXH3_64bits(sample->data, sample->size), error));
    DL2_TRY(put_number(writing, writing->number, error));
    DL2_TRY(put_json(writing, sample->line, error));
    DL2_TRY(put_beside(writing, &sample->sidecars, error));
    DL2_TRY(dl2_bytes_append(&writing->row, &length, sizeof length, error));
    DL2_TRY(send_bytes(writing, writing->row.data, writing->row.size, error));
    DL2_TRY(send_bytes(writing, sample->data, sample->size, error));
    writing->number++;
    return DL2_OK;
}

/* ---- The end */

static int end_copy(const struct writing *writing, struct dl2_error *error)
{
    static const char trailer[] = {'\377', '\377'};
    DL2_TRY(send_bytes(writing, trailer, sizeof trailer, error));
    if (PQputCopyEnd(writing->place.connection, NULL) != 1)
        return copy_failed(writing, error);
    PGresult *result;
    int status = DL2_OK;
    while ((result = PQgetResult(writing->place.connection))) {
        if (status == DL2_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
            status = dl2_database_failed(writing->place.connection, result, writing->what, error);
        else
            PQclear(result);
    }
    return status;
}

/* The lower half of the transaction's number is what the rows have as xmin. */
static int find_transaction(const struct writing *writing, json_int_t *number,
                            struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(dl2_database_ask(writing->place.connection, writing->what, "SELECT txid_current()", 0,
                             NULL, &result, error));
    *number = (json_int_t)strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    return DL2_OK;
}

static int write_comment(const struct writing *writing, const json_t *summary, const char *origin,
                         struct dl2_error *error)
{
    json_int_t transaction = 0;
    struct timespec now;
    DL2_TRY(find_transaction(writing, &transaction, error));
    clock_gettime(CLOCK_REALTIME, &now);
    json_auto_t *json =
        json_pack("{s:s, s:I, s:I, s:O, s:O*, s:s*}", "schema", DL2_DATABASE_SCHEMA, "written_ns",
                  (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec, "transaction", transaction,
                  "classes", writing->classes, "variant", (json_t *)summary, "origin", origin);
    return json ? dl2_database_set_comment(writing->place.connection, writing->place.table,
                                           writing->what, json, error)
                : dl2_error_memory(error, "a table");
}

/* The new table takes the old one's place; `name` is its own, quoted. */
static int replace_table(const struct writing *writing, const char *name, struct dl2_error *error)
{
    PGconn *connection = writing->place.connection;
    DL2_TRY(dl2_database_run(connection, writing->what, error, "DROP TABLE IF EXISTS %s",
                             writing->place.table));
    return dl2_database_run(connection, writing->what, error, "ALTER TABLE %s RENAME TO %s",
                            writing->fresh, name);
}

static int sink_finish(void *state, const json_t *summary, const char *origin,
                       struct dl2_error *error)
{
    struct writing *writing = state;
    PGconn *connection = writing->place.connection;
    const char *table = writing->place.uri.table;
    DL2_TRY(end_copy(writing, error));
    char *name = PQescapeIdentifier(connection, table, strlen(table));
    if (!name)
        return dl2_error_memory(error, "a table");
    const int status = replace_table(writing, name, error);
    PQfreemem(name);
    DL2_TRY(status);
    DL2_TRY(write_comment(writing, summary, origin, error));
    return dl2_database_run(connection, writing->what, error, "COMMIT");
}

const struct dl2_sink dl2_database_sink = {
    .open = sink_open,
    .holds_sidecar = sink_holds_sidecar,
    .add = sink_add,
    .finish = sink_finish,
    .close = sink_close,
};
