/* SPDX-License-Identifier: BSD-2-Clause */
/* What a table keeps about a variant: in its comment, and a line for each image in a column. */
#include "dataset/container.h"
#include "dataset/postgresql/database.h"

#include "common/json.h"
#include "dataset/variant_facts.h"

#include <stdlib.h>
#include <string.h>

/* A table, with a connection of its own. */
struct place {
    struct dl2_database_uri uri;
    const char *what; /* the address */
    PGconn *connection;
    char *table; /* quoted */
};

static int place_open(struct place *place, const char *what, struct dl2_error *error)
{
    *place = (struct place){.what = what};
    DL2_TRY(dl2_database_uri_parse(what, &place->uri, error));
    DL2_TRY(dl2_database_connect(place->uri.server, what, &place->connection, error));
    place->table = dl2_database_table(place->connection, &place->uri, error);
    return place->table ? DL2_OK : DL2_ERR_ARGUMENT;
}

static void place_close(struct place *place)
{
    PQfinish(place->connection);
    PQfreemem(place->table);
    dl2_database_uri_free(&place->uri);
}

/* What the comment of a table that dl2-transcode wrote says; NULL of any other, and of none. */
static int load_comment(const struct place *place, json_t **json, struct dl2_error *error)
{
    char *comment;
    *json = NULL;
    DL2_TRY(dl2_database_comment(place->connection, place->table, place->what, &comment, error));
    *json = comment ? json_loads(comment, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (strcmp(dl2_json_get_text(*json, "schema", ""), DL2_DATABASE_SCHEMA) != 0) {
        json_decref(*json);
        *json = NULL;
    }
    free(comment);
    return DL2_OK;
}

static int facts_load(const char *what, json_t **summary, struct dl2_error *error)
{
    struct place place;
    json_t *comment = NULL;
    int status = place_open(&place, what, error);
    if (status == DL2_OK)
        status = load_comment(&place, &comment, error);
    json_t *variant = json_object_get(comment, "variant");
    *summary = json_is_object(variant) ? json_incref(variant) : NULL;
    json_decref(comment);
    place_close(&place);
    return status;
}

static int facts_load_origin(const char *what, char *origin, struct dl2_error *error)
{
    struct place place;
    json_t *comment = NULL;
    int status = place_open(&place, what, error);
    if (status == DL2_OK)
        status = load_comment(&place, &comment, error);
    snprintf(origin, DL2_FACTS_ORIGIN_DIGITS + 1, "%s", dl2_json_get_text(comment, "origin", ""));
    json_decref(comment);
    place_close(&place);
    return status;
}

/* ---- Lines */

/* Takes all rows, so that no more than one is held. */
static int take_lines(const struct place *place, struct dl2_bytes *lines, struct dl2_error *error)
{
    int status = DL2_OK;
    PGresult *result;
    while ((result = PQgetResult(place->connection))) {
        const ExecStatusType what = PQresultStatus(result);
        if (status == DL2_OK && what != PGRES_SINGLE_TUPLE && what != PGRES_TUPLES_OK) {
            status = dl2_database_failed(place->connection, result, place->what, error);
            continue;
        }
        if (status == DL2_OK && what == PGRES_SINGLE_TUPLE) {
            const size_t size = (size_t)PQgetlength(result, 0, 0);
            if (size > DL2_JSON_MAX_BYTES - 1 || lines->size > DL2_JSON_MAX_BYTES - 1 - size)
                status = dl2_error_set(error, DL2_ERR_LIMIT,
                                       "%s: the column \"made\" has more than 1 GiB; drop the "
                                       "table, and it is written anew",
                                       place->what);
            if (status == DL2_OK)
                status = dl2_bytes_append(lines, PQgetvalue(result, 0, 0), size, error);
            if (status == DL2_OK)
                status = dl2_bytes_append(lines, "\n", 1, error);
            if (status < 0)
                PQrequestCancel(place->connection);
        }
        PQclear(result);
    }
    return status;
}

static int read_lines(const struct place *place, struct dl2_bytes *lines, struct dl2_error *error)
{
    char *command;
    if (asprintf(&command, "SELECT made::text FROM ONLY %s WHERE made IS NOT NULL ORDER BY number",
                 place->table) < 0)
        return dl2_error_memory(error, "a variant");
    const bool sent =
        PQsendQuery(place->connection, command) && PQsetSingleRowMode(place->connection);
    free(command);
    return sent ? take_lines(place, lines, error)
                : dl2_database_failed(place->connection, NULL, place->what, error);
}

static int facts_load_lines(const char *what, struct dl2_bytes *lines, struct dl2_error *error)
{
    struct place place;
    int status = place_open(&place, what, error);
    if (status == DL2_OK)
        status = read_lines(&place, lines, error);
    place_close(&place);
    return status;
}

/* ---- Changing the comment */

int dl2_database_set_comment(PGconn *connection, const char *table, const char *what,
                             const json_t *comment, struct dl2_error *error)
{
    char *text = json_dumps(comment, JSON_COMPACT | JSON_REAL_PRECISION(17)), *command = NULL;
    char *quoted = text ? PQescapeLiteral(connection, text, strlen(text)) : NULL;
    if (quoted && asprintf(&command, "COMMENT ON TABLE %s IS %s", table, quoted) < 0)
        command = NULL;
    const int status = command ? dl2_database_run(connection, command, what, error)
                               : dl2_error_memory(error, "a table");
    free(command);
    PQfreemem(quoted);
    free(text);
    return status;
}

/* The lock keeps others from replacing the table, whose comment would then tell of the old one. */
static int change_comment(const struct place *place, const json_t *summary, struct dl2_error *error)
{
    char *command;
    json_t *comment;
    if (asprintf(&command,
                 "BEGIN; SET LOCAL lock_timeout = '10s'; LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE "
                 "MODE",
                 place->table) < 0)
        return dl2_error_memory(error, "a table");
    int status = dl2_database_run(place->connection, command, place->what, error);
    free(command);
    if (status < 0)
        return status;
    DL2_TRY(load_comment(place, &comment, error));
    if (!comment)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: another program has changed the comment of the table; run the "
                             "same command again",
                             place->what);
    status =
        json_object_set(comment, "variant", (json_t *)summary) == 0
            ? dl2_database_set_comment(place->connection, place->table, place->what, comment, error)
            : dl2_error_memory(error, "a table");
    json_decref(comment);
    return status == DL2_OK ? dl2_database_run(place->connection, "COMMIT", place->what, error)
                            : status;
}

static int facts_save(const char *what, const json_t *summary, struct dl2_error *error)
{
    struct place place;
    int status = place_open(&place, what, error);
    if (status == DL2_OK)
        status = change_comment(&place, summary, error);
    place_close(&place); /* which rolls back what was not committed */
    return status;
}

/* ---- Which table is it? */

static int facts_identify(const char *what, char **identity, struct dl2_error *error)
{
    struct place place;
    *identity = NULL;
    int status = place_open(&place, what, error);
    if (status == DL2_OK) {
        const char *const table = place.table;
        PGresult *result = PQexecParams(
            place.connection,
            "SELECT extract(epoch FROM pg_postmaster_start_time()) || ' ' || oid || ' ' || "
            "to_regclass($1)::oid FROM pg_database WHERE datname = current_database()",
            1, NULL, &table, NULL, NULL, 0);
        if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1) {
            status = dl2_database_failed(place.connection, result, what, error);
        } else {
            if (!PQgetisnull(result, 0, 0) && !(*identity = strdup(PQgetvalue(result, 0, 0))))
                status = dl2_error_memory(error, "a table");
            PQclear(result);
        }
    }
    place_close(&place);
    return status;
}

const struct dl2_facts_store dl2_database_facts = {
    .load = facts_load,
    .load_lines = facts_load_lines,
    .save = facts_save,
    .load_origin = facts_load_origin,
    .identify = facts_identify,
};
