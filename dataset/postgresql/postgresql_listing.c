/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the rows of a table of PostgreSQL: one query for keys, sizes, labels and splits. */
#include "dataset/postgresql/postgresql_table.h"

#include "common/json.h"
#include "common/quote.h"

#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EXTENSION = 16 };

/* ---- What there is */

/* A column that is there, with its type. */
struct column {
    char *quoted; /* NULL: there is none */
    uint32_t type;
    char type_name[128];
};

enum { KEY, IMAGE, LABEL, SPLIT, EXTENSION, SUM, NUMBER, COLUMNS };

struct listing {
    struct dl2_postgresql_table *table;
    PGconn *connection;
    const char *what; /* the address */
    char *quoted;     /* the table's name */
    struct column columns[COLUMNS];
    bool is_own;        /* dl2-transcode wrote it */
    bool is_incomplete; /* it is a copy of a variant that was not finished */
    bool has_xmin;      /* rows tell which transaction wrote them: neither a view nor foreign */
    json_t *classes;    /* of such a table: an array of strings */
    uint32_t transaction;
    struct dl2_scan scan;
    char *last_key;
    unsigned partitions; /* the number of the table's */
};

static void listing_free(struct listing *listing)
{
    for (size_t i = 0; i < COLUMNS; i++)
        PQfreemem(listing->columns[i].quoted);
    PQfreemem(listing->quoted);
    json_decref(listing->classes);
    dl2_scan_free(&listing->scan);
    free(listing->last_key);
}

static int find_column(struct listing *listing, const PGresult *result, const char *name,
                       struct column *column, struct dl2_error *error)
{
    for (int i = 0; name && i < PQntuples(result); i++) {
        if (strcmp(PQgetvalue(result, i, 0), name) != 0)
            continue;
        column->quoted = PQescapeIdentifier(listing->connection, name, strlen(name));
        column->type = (uint32_t)strtoul(PQgetvalue(result, i, 1), NULL, 10);
        const char *type = PQgetvalue(result, i, 2);
        if (!column->quoted || strlen(type) >= sizeof column->type_name)
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s: the column \"%s\" cannot be used",
                                 listing->what, name);
        strcpy(column->type_name, type);
    }
    return DL2_OK;
}

static int need_column(const struct listing *listing, const PGresult *result, const char *name,
                       const struct column *column, const char *word, struct dl2_error *error)
{
    char known[256] = "";
    if (!name || column->quoted)
        return DL2_OK;
    for (int i = 0; i < PQntuples(result); i++)
        dl2_list_name(known, sizeof known, PQgetvalue(result, i, 0));
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "%s: the table has no column \"%s\"; name one by %s=: %s", listing->what,
                         name, word, known);
}

static int use_columns(struct listing *listing, const PGresult *result, struct dl2_error *error)
{
    const struct dl2_database_uri *uri = &listing->table->uri;
    struct column *columns = listing->columns;
    const char *const names[COLUMNS] = {uri->key,
                                        uri->image,
                                        uri->label ? uri->label : "label",
                                        uri->split ? uri->split : "split",
                                        "extension",
                                        "sum",
                                        "number"};
    for (size_t i = 0; i < COLUMNS; i++)
        DL2_TRY(find_column(listing, result, names[i], &columns[i], error));
    DL2_TRY(need_column(listing, result, uri->key, &columns[KEY], "key", error));
    DL2_TRY(need_column(listing, result, uri->image, &columns[IMAGE], "image", error));
    DL2_TRY(need_column(listing, result, uri->label, &columns[LABEL], "label", error));
    DL2_TRY(need_column(listing, result, uri->split, &columns[SPLIT], "split", error));
    if (columns[IMAGE].type != DL2_OID_BYTEA)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the column \"%s\" is %s, and images are read from bytea alone",
                             listing->what, uri->image, columns[IMAGE].type_name);
    listing->is_own = listing->is_own && !uri->is_mapped &&
                      columns[EXTENSION].type == DL2_OID_TEXT &&
                      columns[SUM].type == DL2_OID_INT8 && columns[NUMBER].type == DL2_OID_INT8;
    return DL2_OK;
}

static int look_at_columns(struct listing *listing, struct dl2_error *error)
{
    const char *table = listing->quoted;
    PGresult *result =
        PQexecParams(listing->connection,
                     "SELECT attname, atttypid, format_type(atttypid, -1), "
                     "relkind IN ('r', 'm', 'p') AND NOT EXISTS (SELECT FROM "
                     "pg_partition_tree(attrelid) JOIN pg_class AS c ON c.oid = relid WHERE "
                     "c.relkind = 'f') "
                     "FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
                     "WHERE attrelid = to_regclass($1)::oid AND attnum > 0 AND NOT attisdropped "
                     "ORDER BY attnum",
                     1, NULL, &table, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return dl2_database_failed(listing->connection, result, listing->what, error);
    listing->has_xmin = PQntuples(result) && *PQgetvalue(result, 0, 3) == 't';
    const int status = use_columns(listing, result, error);
    PQclear(result);
    return status;
}

/* The comment of a table that dl2-transcode wrote. Any other is somebody else's. */
static void read_comment(struct listing *listing, const char *comment)
{
    json_t *json = json_loads(comment, JSON_REJECT_DUPLICATES, NULL);
    json_t *classes = json_object_get(json, "classes"), *name;
    listing->is_own = !strcmp(dl2_json_get_text(json, "schema", ""), DL2_DATABASE_SCHEMA);
    bool texts = listing->is_own && json_is_array(classes);
    size_t i;
    json_array_foreach(classes, i, name) texts = texts && json_is_string(name);
    listing->classes = texts ? json_incref(classes) : NULL;
    listing->is_incomplete =
        listing->is_own &&
        json_is_false(json_object_get(json_object_get(json, "variant"), "complete"));
    listing->transaction = (uint32_t)dl2_json_get_integer(json, "transaction", 0);
    listing->table->mtime_ns[0] = dl2_json_get_integer(json, "written_ns", 0);
    json_decref(json);
}

static int compare_partitions(const void *left, const void *right)
{
    const uint32_t a = ((const struct dl2_postgresql_partition *)left)->oid;
    const uint32_t b = ((const struct dl2_postgresql_partition *)right)->oid;
    return (a > b) - (a < b);
}

/* The partitions that have rows themselves. A table without partitions is none of its own. */
static int look_at_partitions(struct listing *listing, struct dl2_error *error)
{
    struct dl2_postgresql_table *table = listing->table;
    const char *name = listing->quoted;
    PGresult *result =
        PQexecParams(listing->connection,
                     "SELECT relid::oid FROM pg_partition_tree(to_regclass($1)) "
                     "WHERE isleaf AND level > 0 ORDER BY relid::regclass::text COLLATE \"C\"",
                     1, NULL, &name, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return dl2_database_failed(listing->connection, result, listing->what, error);
    const int count = PQntuples(result);
    table->partition_of.size = 0; /* of a listing whose connection was lost */
    free(table->partitions);
    table->partitions = dl2_calloc((size_t)count, sizeof *table->partitions);
    for (int i = 0; table->partitions && i < count; i++)
        table->partitions[i] = (struct dl2_postgresql_partition){
            (uint32_t)strtoul(PQgetvalue(result, i, 0), NULL, 10), (uint32_t)i};
    PQclear(result);
    if (!table->partitions)
        return dl2_error_memory(error, "a dataset");
    listing->partitions = (unsigned)count;
    qsort(table->partitions, listing->partitions, sizeof *table->partitions, compare_partitions);
    return DL2_OK;
}

static int look_at_table(struct listing *listing, struct dl2_error *error)
{
    char *comment;
    const struct dl2_database_uri *uri = &listing->table->uri;
    listing->quoted = dl2_database_table(listing->connection, uri, error);
    if (!listing->quoted)
        return DL2_ERR_ARGUMENT;
    DL2_TRY(
        dl2_database_comment(listing->connection, listing->quoted, listing->what, &comment, error));
    if (!comment)
        return dl2_database_no_table(listing->what, listing->quoted, error);
    read_comment(listing, comment);
    free(comment);
    DL2_TRY(look_at_partitions(listing, error));
    return look_at_columns(listing, error);
}

/* ---- The rows */

static int add_class_list(struct listing *listing, struct dl2_error *error)
{
    const size_t count = json_array_size(listing->classes);
    char **names = count ? dl2_calloc(count, sizeof *names) : NULL;
    bool good = names;
    if (!count)
        return DL2_OK;
    for (size_t i = 0; good && i < count; i++)
        good = (names[i] = strdup(json_string_value(json_array_get(listing->classes, i))));
    if (good)
        return dl2_scan_add_classes(&listing->scan, "", names, (uint32_t)count, error);
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
    return dl2_error_memory(error, "a dataset");
}

/* What a table of somebody else keeps as an extension might lead out of a folder. */
static const char *safe_extension(const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]))
            return "";
    return length <= MAX_EXTENSION ? text : "";
}

static uint64_t number_at(const PGresult *result, int column)
{
    uint64_t number = 0;
    if (PQgetlength(result, 0, column) == sizeof number)
        memcpy(&number, PQgetvalue(result, 0, column), sizeof number);
    return be64toh(number);
}

static int check_key(struct listing *listing, const PGresult *result, struct dl2_error *error)
{
    const char *key = PQgetvalue(result, 0, 0);
    if (PQgetisnull(result, 0, 0))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: a key in the column %s is null or longer than %d bytes",
                             listing->what, listing->columns[KEY].quoted, DL2_DATABASE_MAX_KEY);
    if (!dl2_index_is_key(key))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: the key \"%.200s\" cannot name a sample: it is a path with an "
                             "empty part, \".\" or \"..\"; name another column by key=",
                             listing->what, key);
    if (listing->last_key && !strcmp(listing->last_key, key))
        return dl2_error_set(
            error, DL2_ERR_FORMAT,
            "%s: the key \"%.200s\" comes twice; name another column by key=", listing->what, key);
    free(listing->last_key);
    listing->last_key = strdup(key);
    return listing->last_key ? DL2_OK : dl2_error_memory(error, "a dataset");
}

/* Columns of the listing. */
enum {
    AT_KEY,
    AT_BYTES,
    AT_SPLIT,
    AT_LABEL,
    AT_EXTENSION,
    AT_SUM,
    AT_UNCHANGED,
    AT_TABLE, /* with partitions, or for reading pages */
    AT_PLACE, /* this and what follows: only for reading pages */
    AT_TRANSACTION
};

static uint32_t u32_at(const PGresult *result, int column, size_t size)
{
    uint32_t number = 0;
    if ((size_t)PQgetlength(result, 0, column) == size)
        memcpy(&number, PQgetvalue(result, 0, column), sizeof number);
    return be32toh(number);
}

/* Where the row is in the server's files. A place is a page and a number of 16 bits there. */
static int add_place(struct listing *listing, const PGresult *result, uint32_t bytes,
                     struct dl2_error *error)
{
    enum { PLACE_BYTES = 6 };
    uint16_t item = 0;
    if (PQgetlength(result, 0, AT_PLACE) == PLACE_BYTES)
        memcpy(&item, PQgetvalue(result, 0, AT_PLACE) + 4, sizeof item);
    const struct dl2_pages_row row = {.table = u32_at(result, AT_TABLE, 4),
                                      .block = u32_at(result, AT_PLACE, PLACE_BYTES),
                                      .item = be16toh(item),
                                      .xmin = u32_at(result, AT_TRANSACTION, 4),
                                      .bytes = bytes};
    return dl2_pages_add(listing->table->pages, &row, error);
}

/* Notes which partition the row is in. */
static int add_partition(struct listing *listing, const PGresult *result, struct dl2_error *error)
{
    struct dl2_postgresql_table *table = listing->table;
    const struct dl2_postgresql_partition wanted = {.oid = u32_at(result, AT_TABLE, 4)};
    const struct dl2_postgresql_partition *found =
        bsearch(&wanted, table->partitions, listing->partitions, sizeof wanted, compare_partitions);
    if (!found) /* attached since they were listed */
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: the partitions of the table change; open it again",
                             listing->what);
    return dl2_bytes_append(&table->partition_of, &found->number, sizeof found->number, error);
}

int dl2_postgresql_key(struct dl2_part_list *parts, const char *split, const char *row_key,
                       char key[DL2_POSTGRESQL_KEY_BYTES], uint8_t *part, struct dl2_error *error)
{
    DL2_TRY(dl2_part_add(parts, split, strlen(split), part, error));
    const char *slash = strchr(row_key, '/');
    /* A key that names its split needs no second name of it. */
    const bool named =
        !*part || (slash && dl2_part_find(parts, row_key, (size_t)(slash - row_key)) == *part);
    snprintf(key, DL2_POSTGRESQL_KEY_BYTES, "%s%s%s", named ? "" : dl2_part_name(parts, *part),
             named ? "" : "/", row_key);
    return DL2_OK;
}

static int add_row(struct listing *listing, const PGresult *result, struct dl2_error *error)
{
    DL2_TRY(check_key(listing, result, error));
    char key[DL2_POSTGRESQL_KEY_BYTES];
    const char *table_key = PQgetvalue(result, 0, AT_KEY);
    uint8_t part;
    DL2_TRY(dl2_postgresql_key(&listing->scan.draft.parts, PQgetvalue(result, 0, AT_SPLIT),
                               table_key, key, &part, error));
    const bool null = PQgetisnull(result, 0, AT_BYTES);
    const bool summed = !PQgetisnull(result, 0, AT_SUM);
    const struct dl2_index_entry entry = {
        .offset = strlen(key) - strlen(table_key),
        .sum = number_at(result, AT_SUM),
        .bytes = (uint32_t)number_at(result, AT_BYTES),
        .shard = !*PQgetvalue(result, 0, AT_UNCHANGED),
        .flags = (uint8_t)((summed ? DL2_ENTRY_SUMMED : 0) | (null ? DL2_ROW_IS_NULL : 0) |
                           (part ? DL2_ROW_HAS_SPLIT : 0)),
        .key = key,
        .extension = safe_extension(PQgetvalue(result, 0, AT_EXTENSION))};
    if (listing->partitions)
        DL2_TRY(add_partition(listing, result, error));
    if (listing->table->pages)
        DL2_TRY(add_place(listing, result, entry.bytes, error));
    const bool labelled = !PQgetisnull(result, 0, AT_LABEL);
    return dl2_scan_add(&listing->scan, &entry, labelled ? PQgetvalue(result, 0, AT_LABEL) : NULL,
                        error);
}

static char *listing_command(const struct listing *listing)
{
    const struct column *columns = listing->columns;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    const char *key = columns[KEY].quoted;
    fprintf(out,
            "SELECT CASE WHEN octet_length(%s::text) <= %d THEN %s::text END, "
            "octet_length(%s)::int8, ",
            key, DL2_DATABASE_MAX_KEY, key, columns[IMAGE].quoted);
    if (columns[SPLIT].quoted)
        fprintf(out, "CASE WHEN octet_length(%s::text) <= %d THEN %s::text END, ",
                columns[SPLIT].quoted, DL2_DATABASE_MAX_SPLIT, columns[SPLIT].quoted);
    else
        fprintf(out, "NULL::text, ");
    if (columns[LABEL].quoted)
        fprintf(out, "CASE WHEN octet_length(%s::text) <= %d THEN %s::text END, ",
                columns[LABEL].quoted, DL2_DATABASE_MAX_LABEL, columns[LABEL].quoted);
    else
        fprintf(out, "NULL::text, ");
    if (listing->is_own)
        fprintf(out, "extension, sum, xmin::text = '%" PRIu32 "'", listing->transaction);
    else
        fprintf(out, "NULL::text, NULL::int8, false");
    if (listing->partitions || listing->table->pages)
        fprintf(out, ", tableoid");
    if (listing->table->pages)
        fprintf(out, ", ctid, xmin");
    if (listing->is_own)
        fprintf(out, " FROM ONLY %s ORDER BY number, key COLLATE \"C\"", listing->quoted);
    else
        fprintf(out, " FROM %s ORDER BY %s::text COLLATE \"C\"", listing->quoted, key);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Takes all results of a command, one row each, so that no more than one is held. */
static int take_rows(struct listing *listing, struct dl2_error *error)
{
    int status = DL2_OK;
    PGresult *result;
    while ((result = PQgetResult(listing->connection))) {
        const ExecStatusType what = PQresultStatus(result);
        if (status < 0)
            PQclear(result);
        else if (what == PGRES_SINGLE_TUPLE) {
            status = add_row(listing, result, error);
            PQclear(result);
            if (status < 0) /* the rest is of no use */
                PQrequestCancel(listing->connection);
        } else if (what != PGRES_TUPLES_OK)
            status = dl2_database_failed(listing->connection, result, listing->what, error);
        else
            PQclear(result);
    }
    return status;
}

static int list_rows(struct listing *listing, struct dl2_error *error)
{
    char *command = listing_command(listing);
    if (!command)
        return dl2_error_memory(error, "a dataset");
    const int sent =
        PQsendQueryParams(listing->connection, command, 0, NULL, NULL, NULL, NULL, 1) &&
        PQsetSingleRowMode(listing->connection);
    free(command);
    if (!sent)
        return dl2_database_failed(listing->connection, NULL, listing->what, error);
    return take_rows(listing, error);
}

/* The table's column decides on splits, if it has one; the keys do otherwise. */
static int use_split_column(struct dl2_index_draft *draft, struct dl2_error *error)
{
    draft->has_parts = false;
    dl2_part_list_free(&draft->parts);
    for (size_t i = 0; i < draft->count; i++) {
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        const char *key = dl2_index_draft_key(draft, i);
        entry->part = DL2_PART_NONE;
        if (entry->flags & DL2_ROW_HAS_SPLIT)
            DL2_TRY(dl2_part_add(&draft->parts, key, strcspn(key, "/"), &entry->part, error));
        draft->has_parts = draft->has_parts || entry->part;
    }
    return DL2_OK;
}

static int list_table(struct listing *listing, struct dl2_error *error)
{
    DL2_TRY(look_at_table(listing, error));
    DL2_TRY(add_class_list(listing, error));
    DL2_TRY(list_rows(listing, error));
    /* The column's names have numbered the rows; the keys tell them again. */
    dl2_part_list_free(&listing->scan.draft.parts);
    DL2_TRY(dl2_scan_finish(&listing->scan, error));
    return listing->columns[SPLIT].quoted ? use_split_column(&listing->scan.draft, error) : DL2_OK;
}

/* A sum, so that it takes no memory and the order of the rows does not matter. */
static int make_version_command(struct listing *listing, struct dl2_error *error)
{
    const char *image = listing->columns[IMAGE].quoted;
    char *what = NULL, **version = &listing->table->version;
    const int written = listing->has_xmin ? asprintf(&what, "xmin::text")
                                          : asprintf(&what, "coalesce(md5(%s), '')", image);
    if (written < 0 ||
        asprintf(version,
                 "SELECT sum(hashtextextended(%s::text || ' ' || %s, 0)::numeric)::text FROM %s%s",
                 listing->columns[KEY].quoted, what, listing->is_own ? "ONLY " : "",
                 listing->quoted) < 0)
        *version = NULL;
    if (written >= 0)
        free(what);
    return *version ? DL2_OK : dl2_error_memory(error, "a dataset");
}

/* The command that reads images: keys as text[], and the largest size; and the one that trains. */
static int make_commands(struct listing *listing, struct dl2_error *error)
{
    const struct column *key = &listing->columns[KEY], *image = &listing->columns[IMAGE];
    const bool is_text = key->type == DL2_OID_TEXT || key->type == DL2_OID_VARCHAR;
    char **read = &listing->table->read, **fit = &listing->table->fit;
    /* The order is a subquery's: a sort within the aggregate would copy the model for each row. A
     * row that is gone is a bad one, as is one without an image. */
    if (asprintf(fit,
                 "SELECT dl2_fit(coalesce(r.image, ''), r.label, $1::bytea, $2::text::jsonb, "
                 "r.number) FROM "
                 "(SELECT t.%s AS image, o.label, o.number FROM "
                 "unnest($3::text[], $4::int8[], $5::int4[]) "
                 "WITH ORDINALITY AS o(key, number, label, place) "
                 "LEFT JOIN %s%s AS t ON t.%s = o.key::%s ORDER BY o.place OFFSET 0) AS r",
                 image->quoted, listing->is_own ? "ONLY " : "", listing->quoted, key->quoted,
                 is_text ? "text" : key->type_name) < 0) {
        *fit = NULL;
        return dl2_error_memory(error, "a dataset");
    }
    if (asprintf(read,
                 "SELECT %s::text, octet_length(%s)::int8, "
                 "CASE WHEN octet_length(%s) <= $2::int8 THEN %s END "
                 "FROM %s%s WHERE %s = ANY($1::text[]::%s[])",
                 key->quoted, image->quoted, image->quoted, image->quoted,
                 listing->is_own ? "ONLY " : "", listing->quoted, key->quoted,
                 is_text ? "text" : key->type_name) >= 0)
        return DL2_OK;
    *read = NULL;
    return dl2_error_memory(error, "a dataset");
}

/* ---- Both, and the server's files */

/* Sets the remark that takes the place of any other; NULL: none. */
DL2_PRINTF(2, 3) static int set_remark(struct dl2_dataset *dataset, const char *format, ...)
{
    va_list args;
    free(dataset->remark);
    dataset->remark = NULL;
    if (!format)
        return DL2_OK;
    va_start(args, format);
    const int length = vasprintf(&dataset->remark, format, args);
    va_end(args);
    if (length < 0)
        dataset->remark = NULL;
    return length < 0 ? DL2_ERR_MEMORY : DL2_OK;
}

/* Opens the server's files, if access= wants that: listing is part of their transaction. */
static int connect_listing(struct dl2_dataset *dataset, struct listing *listing,
                           struct dl2_error *error)
{
    struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_database_uri *uri = &table->uri;
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_TRY(dl2_database_pool_acquire(table->pool, &listing->connection, error));
    if (uri->access == DL2_ACCESS_SQL)
        return DL2_OK;
    char *quoted = dl2_database_table(listing->connection, uri, error);
    if (!quoted) {
        dl2_database_pool_release(table->pool, listing->connection, true);
        return DL2_ERR_ARGUMENT;
    }
    dl2_database_pool_give_away(table->pool);
    const int status =
        dl2_pages_open(listing->connection, quoted, uri->image, listing->what, &table->pages, &own);
    PQfreemem(quoted);
    if (status == DL2_OK)
        return DL2_OK;
    if (uri->access == DL2_ACCESS_PAGES || status == DL2_ERR_LOST || status == DL2_ERR_MEMORY)
        return dl2_error_copy(error, &own);
    if (set_remark(dataset, "SQL reads all images: %s", own.message) < 0)
        return dl2_error_memory(error, "a dataset");
    return dl2_database_pool_acquire(table->pool, &listing->connection, error);
}

/* Says in how far images come from the server's files. */
static int tell_found(struct dl2_dataset *dataset, const struct dl2_index_draft *draft,
                      size_t found, const char *what, struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const bool summed = dl2_index_draft_entry(draft, 0)->flags & DL2_ENTRY_SUMMED;
    int status = DL2_OK;
    if (!found && table->uri.access == DL2_ACCESS_PAGES)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the server's files have none of the images as it is: they are "
                             "compressed (ALTER TABLE ... SET STORAGE EXTERNAL keeps new ones from "
                             "that), or not written yet (CHECKPOINT); leave out access=pages",
                             what);
    if (found < draft->count)
        status = set_remark(dataset,
                            "SQL reads %zu of %zu images: the server's files do not have them as "
                            "they are",
                            draft->count - found, draft->count);
    else if (!summed)
        status = set_remark(dataset, "SQL reads each image for the first time, since there are no "
                                     "check sums; the server's files serve after that");
    return status < 0 ? dl2_error_memory(error, "a dataset") : DL2_OK;
}

/* Finds the rows in the server's files. The check sums that the table has prove what is read. */
static int find_in_pages(struct dl2_dataset *dataset, const struct listing *listing,
                         struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const struct dl2_index_draft *draft = &listing->scan.draft;
    size_t found;
    if (!table->pages || !draft->count)
        return DL2_OK;
    DL2_TRY(dl2_pages_find(table->pages, &found, error));
    for (size_t i = 0; i < draft->count; i++)
        if (dl2_index_draft_entry(draft, i)->flags & DL2_ENTRY_SUMMED)
            dl2_pages_prove(table->pages, i, dl2_index_draft_entry(draft, i)->sum);
    return tell_found(dataset, draft, found, listing->what, error);
}

int dl2_postgresql_list(struct dl2_dataset *dataset, const char *path, struct dl2_error *error)
{
    struct dl2_postgresql_table *table = dataset->state;
    struct listing listing = {.table = table, .what = path};
    listing.scan.draft.container = dataset->container;
    DL2_TRY(set_remark(dataset, NULL));
    DL2_TRY(connect_listing(dataset, &listing, error));
    int status = list_table(&listing, error);
    if (status == DL2_OK)
        status = find_in_pages(dataset, &listing, error);
    if (status == DL2_OK)
        status = make_commands(&listing, error);
    if (status == DL2_OK)
        status = make_version_command(&listing, error);
    if (status == DL2_OK) {
        table->draft = listing.scan.draft;
        listing.scan.draft = (struct dl2_index_draft){0};
        dataset->tables = listing.partitions;
        dataset->is_incomplete = listing.is_incomplete;
    }
    listing_free(&listing);
    if (!table->pages) {
        dl2_database_pool_release(table->pool, listing.connection, status < 0);
    } else if (status < 0) {
        dl2_pages_close(table->pages);
        table->pages = NULL;
    }
    return status;
}
