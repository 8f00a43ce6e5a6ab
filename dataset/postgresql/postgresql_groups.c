/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the groups of a table's images from one of its columns. */
#include "dataset/postgresql/postgresql_table.h"

#include <stdlib.h>
#include <string.h>

/* A table, with a connection of its own. */
struct source {
    struct dl2_database_uri uri;
    const char *what; /* the address */
    PGconn *connection;
    char *table, *key, *split, *group; /* quoted; split NULL: there is no such column */
};

static void source_close(struct source *source)
{
    char *quoted[] = {source->table, source->key, source->split, source->group};
    for (size_t i = 0; i < sizeof quoted / sizeof *quoted; i++)
        PQfreemem(quoted[i]);
    PQfinish(source->connection);
    dl2_database_uri_free(&source->uri);
}

static int quote(const struct source *source, const char *name, char **quoted,
                 struct dl2_error *error)
{
    *quoted = PQescapeIdentifier(source->connection, name, strlen(name));
    return *quoted ? DL2_OK : dl2_database_failed(source->connection, NULL, source->what, error);
}

/* A column "split" that the address does not name need not be there. */
static int find_split(struct source *source, struct dl2_error *error)
{
    const char *name = source->uri.split ? source->uri.split : "split";
    const char *const values[] = {source->table, name};
    PGresult *result =
        PQexecParams(source->connection,
                     "SELECT FROM pg_attribute WHERE attrelid = to_regclass($1)::oid AND "
                     "attname = $2 AND attnum > 0 AND NOT attisdropped",
                     2, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return dl2_database_failed(source->connection, result, source->what, error);
    const bool there = PQntuples(result) > 0;
    PQclear(result);
    return there || source->uri.split ? quote(source, name, &source->split, error) : DL2_OK;
}

static int source_open(struct source *source, const char *what, struct dl2_error *error)
{
    *source = (struct source){.what = what};
    DL2_TRY(dl2_database_uri_parse_group(what, &source->uri, error));
    DL2_TRY(dl2_database_connect(source->uri.server, what, &source->connection, error));
    source->table = dl2_database_table(source->connection, &source->uri, error);
    if (!source->table)
        return DL2_ERR_ARGUMENT;
    DL2_TRY(quote(source, source->uri.key, &source->key, error));
    DL2_TRY(quote(source, source->uri.group, &source->group, error));
    return find_split(source, error);
}

static int add_line(const struct source *source, const PGresult *result, int row,
                    struct dl2_part_list *parts, struct dl2_bytes *lines, struct dl2_error *error)
{
    char key[DL2_POSTGRESQL_KEY_BYTES];
    uint8_t part;
    const char *group = PQgetvalue(result, row, 2);
    DL2_TRY(dl2_postgresql_key(parts, PQgetvalue(result, row, 1), PQgetvalue(result, row, 0), key,
                               &part, error));
    if (!*group || strpbrk(group, "\t\n") || strchr(key, '\n'))
        return dl2_error_set(
            error, DL2_ERR_FORMAT,
            "%s: the row of key %s can't be written as a line KEY, tab, GROUP: its "
            "group \"%s\" is empty or has a tab, or one of both a newline",
            source->what, key, group);
    DL2_TRY(dl2_bytes_append(lines, key, strlen(key), error));
    DL2_TRY(dl2_bytes_append(lines, "\t", 1, error));
    DL2_TRY(dl2_bytes_append(lines, group, strlen(group), error));
    return dl2_bytes_append(lines, "\n", 1, error);
}

/* Rows whose key no dataset can have (dl2_postgresql_list()) are of no image. */
static int read_rows(const struct source *source, struct dl2_bytes *lines, struct dl2_error *error)
{
    char *command;
    const char *split = source->split ? source->split : "''";
    if (asprintf(&command,
                 "SELECT %s::text, CASE WHEN octet_length(%s::text) <= %d THEN %s::text END, "
                 "%s::text FROM %s WHERE %s IS NOT NULL AND octet_length(%s::text) <= %d "
                 "ORDER BY 1",
                 source->key, split, DL2_DATABASE_MAX_SPLIT, split, source->group, source->table,
                 source->group, source->key, DL2_DATABASE_MAX_KEY) < 0)
        return dl2_error_memory(error, "the groups of images");
    PGresult *result = PQexec(source->connection, command);
    free(command);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return dl2_database_failed(source->connection, result, source->what, error);
    struct dl2_part_list parts = {0};
    int status = DL2_OK;
    for (int row = 0; status == DL2_OK && row < PQntuples(result); row++)
        status = add_line(source, result, row, &parts, lines, error);
    dl2_part_list_free(&parts);
    PQclear(result);
    return status;
}

int dl2_postgresql_read_groups(const char *address, struct dl2_bytes *lines,
                               struct dl2_error *error)
{
    struct source source;
    int status = source_open(&source, address, error);
    if (status == DL2_OK)
        status = read_rows(&source, lines, error);
    source_close(&source);
    return status;
}
