/* SPDX-License-Identifier: BSD-2-Clause */
/* What a table keeps about a variant: in its comment, and a line for each image in a column. */
#include "dataset/container.h"
#include "dataset/postgresql/database.h"

#include "common/json.h"
#include "common/scope.h"
#include "dataset/write/variant_facts.h"

#include <stdlib.h>
#include <string.h>

/* What the comment of a table that dl2-transcode wrote says; NULL of any other, and of none. */
static int load_comment(const struct dl2_database_place *place, json_t **json,
                        struct dl2_error *error)
{
    DL2_AUTO_FREE char *comment = NULL;
    *json = NULL;
    DL2_TRY(dl2_database_comment(place->connection, place->table, place->what, &comment, error));
    *json = comment ? json_loads(comment, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (strcmp(dl2_json_get_text(*json, "schema", ""), DL2_DATABASE_SCHEMA) != 0) {
        json_decref(*json);
        *json = NULL;
    }
    return DL2_OK;
}

static int facts_load(const char *what, json_t **summary, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_close) struct dl2_database_place place;
    json_auto_t *comment = NULL;
    *summary = NULL;
    DL2_TRY(dl2_database_open(&place, what, false, error));
    DL2_TRY(load_comment(&place, &comment, error));
    json_t *variant = json_object_get(comment, "variant");
    *summary = json_is_object(variant) ? json_incref(variant) : NULL;
    return DL2_OK;
}

static int facts_load_origin(const char *what, char *origin, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_close) struct dl2_database_place place;
    json_auto_t *comment = NULL;
    *origin = '\0';
    DL2_TRY(dl2_database_open(&place, what, false, error));
    DL2_TRY(load_comment(&place, &comment, error));
    snprintf(origin, DL2_FACTS_ORIGIN_DIGITS + 1, "%s", dl2_json_get_text(comment, "origin", ""));
    return DL2_OK;
}

static int take_line(void *context, const PGresult *row, struct dl2_error *error)
{
    struct dl2_bytes *lines = context;
    const size_t size = (size_t)PQgetlength(row, 0, 0);
    if (size > DL2_JSON_MAX_BYTES - 1 || lines->size > DL2_JSON_MAX_BYTES - 1 - size)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "the column \"made\" has more than 1 GiB; drop the table, and it is "
                             "written anew");
    DL2_TRY(dl2_bytes_append(lines, PQgetvalue(row, 0, 0), size, error));
    return dl2_bytes_append(lines, "\n", 1, error);
}

static int facts_load_lines(const char *what, struct dl2_bytes *lines, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_close) struct dl2_database_place place;
    DL2_AUTO_FREE char *command = NULL;
    DL2_TRY(dl2_database_open(&place, what, false, error));
    DL2_TRY(dl2_format(&command, error,
                       "SELECT made::text FROM ONLY %s WHERE made IS NOT NULL ORDER BY number",
                       place.table));
    const int status =
        dl2_database_each_row(place.connection, what, command, 0, take_line, lines, error);
    if (status == DL2_ERR_LIMIT)
        dl2_error_prefix(error, "%s", what);
    return status;
}

/* ---- Changing the comment */

int dl2_database_set_comment(PGconn *connection, const char *table, const char *what,
                             const json_t *comment, struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = json_dumps(comment, JSON_COMPACT | JSON_REAL_PRECISION(17));
    char *quoted = text ? PQescapeLiteral(connection, text, strlen(text)) : NULL;
    if (!quoted)
        return dl2_error_memory(error, "a table");
    const int status =
        dl2_database_run(connection, what, error, "COMMENT ON TABLE %s IS %s", table, quoted);
    PQfreemem(quoted);
    return status;
}

/* The lock keeps others from replacing the table, whose comment would then tell of the old one. */
static int facts_save(const char *what, const json_t *summary, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_close) struct dl2_database_place place;
    json_auto_t *comment = NULL;
    DL2_TRY(dl2_database_open(&place, what, false, error));
    DL2_TRY(dl2_database_run(place.connection, what, error,
                             "BEGIN; SET LOCAL lock_timeout = '10s'; LOCK TABLE %s IN SHARE UPDATE "
                             "EXCLUSIVE MODE",
                             place.table));
    DL2_TRY(load_comment(&place, &comment, error));
    if (!comment)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: another program has changed the comment of the table; run the "
                             "same command again",
                             what);
    if (json_object_set(comment, "variant", (json_t *)summary) != 0)
        return dl2_error_memory(error, "a table");
    DL2_TRY(dl2_database_set_comment(place.connection, place.table, what, comment, error));
    return dl2_database_run(place.connection, what, error, "COMMIT");
}

/* ---- Which table is it? */

static int facts_identify(const char *what, char **identity, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_close) struct dl2_database_place place;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    *identity = NULL;
    DL2_TRY(dl2_database_open(&place, what, false, error));
    const char *const table = place.table;
    DL2_TRY(dl2_database_ask(
        place.connection, what,
        "SELECT extract(epoch FROM pg_postmaster_start_time()) || ' ' || oid || ' ' || "
        "to_regclass($1)::oid FROM pg_database WHERE datname = current_database()",
        1, &table, &result, error));
    if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
        return DL2_OK;
    return dl2_format(identity, error, "%s", PQgetvalue(result, 0, 0));
}

const struct dl2_facts_store dl2_database_facts = {
    .load = facts_load,
    .load_lines = facts_load_lines,
    .save = facts_save,
    .load_origin = facts_load_origin,
    .identify = facts_identify,
};
