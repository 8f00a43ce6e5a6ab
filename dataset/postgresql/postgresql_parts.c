/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of parts of a run as rows of a table beside that of DEST (dataset/write/parts_place.h), and
 * locks of the session: of each part, and of who completes the run. */
#include "dataset/postgresql/database.h"
#include "dataset/write/parts_place.h"

#include "common/quote.h"
#include "common/scope.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { PIECE = 16 << 20 }; /* bytes of a file in a row */

struct meeting {
    struct dl2_database_place place;
    char *what;  /* the place's address */
    char *table; /* quoted */
    struct dl2_work_part part;
    uint64_t number; /* that differs where the place does */
    char **names;    /* at the last look; NULL-ended or NULL */
    size_t count;
};

static void parts_close(void *state)
{
    struct meeting *meeting = state;
    dl2_database_close(&meeting->place);
    PQfreemem(meeting->table);
    dl2_free_list(meeting->names);
    free(meeting->what);
    free(meeting);
}

static int name_table(struct meeting *meeting, const char *digest, struct dl2_error *error)
{
    struct dl2_database_uri uri = meeting->place.uri;
    char name[32];
    meeting->number = XXH3_64bits(uri.table, strlen(uri.table));
    meeting->number = XXH3_64bits_withSeed(digest, strlen(digest), meeting->number);
    snprintf(name, sizeof name, "dl2-parts-%016" PRIx64, meeting->number);
    uri.table = name;
    meeting->table = dl2_database_table(meeting->place.connection, &uri, error);
    return meeting->table ? DL2_OK : DL2_ERR_ARGUMENT;
}

/* Of the session. */
static int lock_part(const struct meeting *meeting, struct dl2_error *error)
{
    const struct dl2_work_part *part = &meeting->part;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_AUTO_FREE char *command = NULL;
    const uint64_t key = XXH3_64bits_withSeed(&part->number, sizeof part->number, meeting->number);
    DL2_TRY(dl2_format(&command, error, "SELECT pg_try_advisory_lock(%" PRId64 ")", (int64_t)key));
    DL2_TRY(dl2_database_ask(meeting->place.connection, meeting->what, command, 0, NULL, &result,
                             error));
    return *PQgetvalue(result, 0, 0) == 't'
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_CANCELED,
                               "%s: another process is making part %u/%u; give each process a part "
                               "of its own",
                               meeting->what, part->number, part->count);
}

/* Two that create it at once would be in each other's way. */
static int make_table(const struct meeting *meeting, struct dl2_error *error)
{
    return dl2_database_run(meeting->place.connection, meeting->what, error,
                            "BEGIN; SET LOCAL client_min_messages TO warning; SELECT "
                            "pg_advisory_xact_lock(%" PRId64 "); "
                            "CREATE TABLE IF NOT EXISTS %s (name text, piece int, data bytea NOT "
                            "NULL, PRIMARY KEY (name, piece)); COMMIT",
                            (int64_t)meeting->number, meeting->table);
}

static int parts_open(const char *dest, const char *digest, const struct dl2_work_part *part,
                      void **state, struct dl2_error *error)
{
    struct meeting *meeting;
    DL2_TRY(dl2_database_uri_check_writing(dest, error));
    DL2_TRY(DL2_NEW(&meeting, 1, "parts", error));
    *state = meeting;
    DL2_TRY(dl2_format(&meeting->what, error, "%s", dest));
    DL2_TRY(dl2_database_open(&meeting->place, meeting->what, false, error));
    DL2_TRY(name_table(meeting, digest, error));
    meeting->part = *part;
    return lock_part(meeting, error);
}

/* The connection has waited while the part was made. */
static int revive(const struct meeting *meeting, struct dl2_error *error)
{
    PGconn *connection = meeting->place.connection;
    if (dl2_database_run(connection, meeting->what, NULL, "SELECT 1") == DL2_OK)
        return DL2_OK;
    PQreset(connection);
    return PQstatus(connection) == CONNECTION_OK
               ? lock_part(meeting, error)
               : dl2_database_failed(connection, NULL, meeting->what, error);
}

static int send_piece(const struct meeting *meeting, const char *name, uint32_t number,
                      const struct dl2_bytes *piece, struct dl2_error *error)
{
    DL2_AUTO_FREE char *command = NULL;
    const uint32_t big_endian = htobe32(number);
    static const Oid types[] = {DL2_OID_TEXT, DL2_OID_INT4, DL2_OID_BYTEA};
    const char *const values[] = {name, (const char *)&big_endian, (const char *)piece->data};
    const int lengths[] = {(int)strlen(name), sizeof big_endian, (int)piece->size};
    static const int formats[] = {1, 1, 1};
    DL2_TRY(dl2_format(&command, error, "INSERT INTO %s VALUES ($1, $2, $3)", meeting->table));
    PGresult *result =
        PQexecParams(meeting->place.connection, command, 3, types, values, lengths, formats, 1);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        return dl2_database_failed(meeting->place.connection, result, meeting->what, error);
    PQclear(result);
    return DL2_OK;
}

static int send_pieces(const struct meeting *meeting, const char *name, FILE *file,
                       const char *path, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes piece = DL2_BYTES_INIT;
    uint32_t number = 0;
    do {
        DL2_TRY(dl2_bytes_resize(&piece, PIECE, error));
        piece.size = fread(piece.data, 1, PIECE, file);
        if (ferror(file))
            return dl2_error_system(error, "%s: cannot be read", path);
        DL2_TRY(send_piece(meeting, name, number++, &piece, error));
    } while (piece.size == PIECE);
    return DL2_OK;
}

static int send_file(const struct meeting *meeting, const char *name, FILE *file, const char *path,
                     struct dl2_error *error)
{
    PGconn *connection = meeting->place.connection;
    char *literal = PQescapeLiteral(connection, name, strlen(name));
    int status =
        literal ? dl2_database_run(connection, meeting->what, error,
                                   "BEGIN; DELETE FROM %s WHERE name = %s", meeting->table, literal)
                : dl2_error_memory(error, "parts");
    PQfreemem(literal);
    if (status == DL2_OK)
        status = send_pieces(meeting, name, file, path, error);
    if (status == DL2_OK)
        return dl2_database_run(connection, meeting->what, error, "COMMIT");
    dl2_database_run(connection, meeting->what, NULL, "ROLLBACK");
    return status;
}

static int parts_send(void *state, const char *name, const char *path, struct dl2_error *error)
{
    const struct meeting *meeting = state;
    DL2_TRY(revive(meeting, error));
    DL2_TRY(make_table(meeting, error));
    FILE *file = fopen(path, "re");
    if (!file)
        return dl2_error_system(error, "%s: cannot be read", path);
    const int status = send_file(meeting, name, file, path, error);
    fclose(file);
    return status;
}

static int parts_claim(void *state, struct dl2_error *error)
{
    const struct meeting *meeting = state;
    return dl2_database_run(meeting->place.connection, meeting->what, error,
                            "SELECT pg_advisory_lock(%" PRId64 ")", (int64_t)(meeting->number + 1));
}

/* Under the claim, in which alone the table is dropped. */
static int parts_list(void *state, struct dl2_error *error)
{
    struct meeting *meeting = state;
    const char *table = meeting->table;
    DL2_CLEANUP(dl2_database_clear) PGresult *there = NULL, *result = NULL;
    DL2_AUTO_FREE char *command = NULL;
    dl2_free_list(meeting->names);
    meeting->names = NULL;
    meeting->count = 0;
    DL2_TRY(dl2_database_ask(meeting->place.connection, meeting->what,
                             "SELECT to_regclass($1) IS NOT NULL", 1, &table, &there, error));
    if (*PQgetvalue(there, 0, 0) != 't')
        return DL2_OK;
    DL2_TRY(dl2_format(&command, error, "SELECT DISTINCT name FROM %s", table));
    DL2_TRY(dl2_database_ask(meeting->place.connection, meeting->what, command, 0, NULL, &result,
                             error));
    for (int i = 0; i < PQntuples(result); i++)
        DL2_TRY(dl2_list_append(&meeting->names, &meeting->count, strdup(PQgetvalue(result, i, 0)),
                                error));
    if (meeting->names)
        qsort(meeting->names, meeting->count, sizeof *meeting->names, dl2_compare_texts);
    return DL2_OK;
}

static bool parts_has(const void *state, const char *name)
{
    const struct meeting *meeting = state;
    return meeting->names && bsearch(&name, meeting->names, meeting->count, sizeof *meeting->names,
                                     dl2_compare_texts);
}

/* Appends piece `number`: its size; 0: there is none. */
static int fetch_piece(const struct meeting *meeting, const char *name, uint32_t number, FILE *out,
                       size_t *size, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_AUTO_FREE char *command = NULL;
    const uint32_t big_endian = htobe32(number);
    static const Oid types[] = {DL2_OID_TEXT, DL2_OID_INT4};
    const char *const values[] = {name, (const char *)&big_endian};
    const int lengths[] = {(int)strlen(name), sizeof big_endian};
    static const int formats[] = {1, 1};
    DL2_TRY(dl2_format(&command, error, "SELECT data FROM %s WHERE name = $1 AND piece = $2",
                       meeting->table));
    result =
        PQexecParams(meeting->place.connection, command, 2, types, values, lengths, formats, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        PGresult *failed = result;
        result = NULL;
        return dl2_database_failed(meeting->place.connection, failed, meeting->what, error);
    }
    if (!PQntuples(result) && !number)
        return dl2_error_set(error, DL2_ERR_CANCELED, "%s: %s is gone", meeting->what, name);
    *size = PQntuples(result) ? (size_t)PQgetlength(result, 0, 0) : 0;
    if (*size && fwrite(PQgetvalue(result, 0, 0), 1, *size, out) != *size)
        return dl2_error_system(error, "a file of a part cannot be written");
    return DL2_OK;
}

static int parts_fetch(void *state, const char *name, const char *path, struct dl2_error *error)
{
    size_t size = PIECE;
    int status = DL2_OK;
    FILE *out = fopen(path, "we");
    if (!out)
        return dl2_error_system(error, "%s: cannot be written", path);
    for (uint32_t number = 0; status == DL2_OK && size == PIECE; number++)
        status = fetch_piece(state, name, number, out, &size, error);
    if (fclose(out) != 0 && status == DL2_OK)
        return dl2_error_system(error, "%s: cannot be written", path);
    return status;
}

static int parts_clear(void *state, struct dl2_error *error)
{
    const struct meeting *meeting = state;
    return dl2_database_run(meeting->place.connection, meeting->what, error,
                            "DROP TABLE IF EXISTS %s", meeting->table);
}

const struct dl2_parts_store dl2_database_parts = {.open = parts_open,
                                                   .close = parts_close,
                                                   .send = parts_send,
                                                   .claim = parts_claim,
                                                   .list = parts_list,
                                                   .has = parts_has,
                                                   .fetch = parts_fetch,
                                                   .clear = parts_clear};
