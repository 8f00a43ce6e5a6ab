/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the groups of a table's images from one of its columns. */
#include "dataset/postgresql/postgresql_table.h"

#include "common/scope.h"

#include <stdlib.h>
#include <string.h>

/* A table with the columns that are read. */
struct source {
    struct dl2_database_place place;
    char *key, *split, *group; /* quoted; split NULL: there is no such column */
};

static void source_close(struct source *source)
{
    PQfreemem(source->key);
    PQfreemem(source->split);
    PQfreemem(source->group);
    dl2_database_close(&source->place);
}

static int quote(const struct source *source, const char *name, char **quoted,
                 struct dl2_error *error)
{
    const struct dl2_database_place *place = &source->place;
    *quoted = PQescapeIdentifier(place->connection, name, strlen(name));
    return *quoted ? DL2_OK : dl2_database_failed(place->connection, NULL, place->what, error);
}

/* A column "split" that the address does not name need not be there. */
static int find_split(struct source *source, struct dl2_error *error)
{
    const struct dl2_database_place *place = &source->place;
    const char *name = place->uri.split ? place->uri.split : "split";
    const char *const values[] = {place->table, name};
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(dl2_database_ask(place->connection, place->what,
                             "SELECT FROM pg_attribute WHERE attrelid = to_regclass($1)::oid AND "
                             "attname = $2 AND attnum > 0 AND NOT attisdropped",
                             2, values, &result, error));
    return PQntuples(result) > 0 || place->uri.split ? quote(source, name, &source->split, error)
                                                     : DL2_OK;
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
            source->place.what, key, group);
    DL2_TRY(dl2_bytes_append(lines, key, strlen(key), error));
    DL2_TRY(dl2_bytes_append(lines, "\t", 1, error));
    DL2_TRY(dl2_bytes_append(lines, group, strlen(group), error));
    return dl2_bytes_append(lines, "\n", 1, error);
}

/* Rows whose key no dataset can have (dl2_postgresql_list()) are of no image. */
static int read_rows(const struct source *source, struct dl2_bytes *lines, struct dl2_error *error)
{
    const struct dl2_database_place *place = &source->place;
    const char *split = source->split ? source->split : "''";
    DL2_CLEANUP(dl2_part_list_free) struct dl2_part_list parts = {0};
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_AUTO_FREE char *command = NULL;
    DL2_TRY(dl2_format(&command, error,
                       "SELECT %s::text, CASE WHEN octet_length(%s::text) <= %d THEN %s::text END, "
                       "%s::text FROM %s WHERE %s IS NOT NULL AND octet_length(%s::text) <= %d "
                       "ORDER BY 1",
                       source->key, split, DL2_DATABASE_MAX_SPLIT, split, source->group,
                       place->table, source->group, source->key, DL2_DATABASE_MAX_KEY));
    DL2_TRY(dl2_database_ask(place->connection, place->what, command, 0, NULL, &result, error));
    for (int row = 0; row < PQntuples(result); row++)
        DL2_TRY(add_line(source, result, row, &parts, lines, error));
    return DL2_OK;
}

int dl2_postgresql_read_groups(const char *address, struct dl2_bytes *lines,
                               struct dl2_error *error)
{
    DL2_CLEANUP(source_close) struct source source = {.key = NULL};
    DL2_TRY(dl2_database_open(&source.place, address, true, error));
    DL2_TRY(quote(&source, source.place.uri.key, &source.key, error));
    DL2_TRY(quote(&source, source.place.uri.group, &source.group, error));
    DL2_TRY(find_split(&source, error));
    return read_rows(&source, lines, error);
}
