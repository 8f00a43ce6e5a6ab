/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the rows of a table of PostgreSQL: one query for keys, sizes, labels and splits. */
#include "dataset/postgresql/postgresql_table.h"

#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"

#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
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

enum { KEY, IMAGE, LABEL, SPLIT, EXTENSION, SUM, NUMBER, BESIDE, BESIDE_DATA, COLUMNS };

struct listing {
    struct dl2_postgresql_table *table;
    PGconn *connection;
    const char *what; /* the address */
    char *quoted;     /* the table's name */
    struct column columns[COLUMNS];
    bool is_own;        /* dl2-transcode wrote it */
    bool is_incomplete; /* it is a copy of a variant that was not finished */
    bool has_xmin;      /* rows tell which transaction wrote them: neither a view nor foreign */
    char *beside;       /* the query for what lies beside an image, of the row t; "": nothing */
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
    free(listing->beside);
    json_decref(listing->classes);
    dl2_scan_free(&listing->scan);
    free(listing->last_key);
}

static int find_column(const struct listing *listing, const PGresult *result, const char *name,
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
                                        "number",
                                        "beside",
                                        "beside_data"};
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

/*
 * Prints the rows of what lies beside the image of a row t: of dl2-transcode's arrays, and of the
 * columns that beside= names, whose names are the extensions.
 */
static int print_beside(const struct listing *listing, const PGresult *result, FILE *out,
                        struct dl2_error *error)
{
    const struct column *columns = listing->columns;
    const char *more = "";
    if (listing->is_own && columns[BESIDE].type == DL2_OID_TEXT_ARRAY &&
        columns[BESIDE_DATA].type == DL2_OID_BYTEA_ARRAY) {
        fprintf(out, "SELECT * FROM unnest(t.beside, t.beside_data)");
        more = " UNION ALL ";
    }
    DL2_AUTO_FREE char *names = NULL;
    const char *beside = listing->table->uri.beside;
    DL2_TRY(dl2_format(&names, error, "%s", beside ? beside : ""));
    char *rest = names;
    for (const char *name; *names && (name = strsep(&rest, ","));) {
        struct column column = {0};
        int status =
            dl2_is_sidecar_extension(name)
                ? find_column(listing, result, name, &column, error)
                : dl2_error_set(error, DL2_ERR_ARGUMENT,
                                "%s: beside=: '%s' can be no extension of what lies beside "
                                "an image; give columns with commas between",
                                listing->what, name);
        if (status == DL2_OK)
            status = need_column(listing, result, name, &column, "beside", error);
        char *literal =
            status == DL2_OK ? PQescapeLiteral(listing->connection, name, strlen(name)) : NULL;
        if (status == DL2_OK && !literal)
            status = dl2_error_memory(error, "a dataset");
        if (status == DL2_OK)
            fprintf(out,
                    column.type == DL2_OID_BYTEA ? "%sVALUES (%s, t.%s)"
                                                 : "%sVALUES (%s, convert_to(t.%s::text, 'UTF8'))",
                    more, literal, column.quoted);
        PQfreemem(literal);
        PQfreemem(column.quoted);
        DL2_TRY(status);
        more = " UNION ALL ";
    }
    return DL2_OK;
}

static int find_beside(struct listing *listing, const PGresult *result, struct dl2_error *error)
{
    size_t size;
    free(listing->beside);
    listing->beside = NULL;
    FILE *out = open_memstream(&listing->beside, &size);
    if (!out)
        return dl2_error_memory(error, "a dataset");
    const int status = print_beside(listing, result, out, error);
    return fclose(out) == 0 ? status : dl2_error_memory(error, "a dataset");
}

static int look_at_columns(struct listing *listing, struct dl2_error *error)
{
    const char *table = listing->quoted;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(
        dl2_database_ask(listing->connection, listing->what,
                         "SELECT attname, atttypid, format_type(atttypid, -1), "
                         "relkind IN ('r', 'm', 'p') AND NOT EXISTS (SELECT FROM "
                         "pg_partition_tree(attrelid) JOIN pg_class AS c ON c.oid = relid WHERE "
                         "c.relkind = 'f') "
                         "FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
                         "WHERE attrelid = to_regclass($1)::oid AND attnum > 0 AND NOT "
                         "attisdropped ORDER BY attnum",
                         1, &table, &result, error));
    listing->has_xmin = PQntuples(result) && *PQgetvalue(result, 0, 3) == 't';
    DL2_TRY(use_columns(listing, result, error));
    return find_beside(listing, result, error);
}

/* The comment of a table that dl2-transcode wrote. Any other is somebody else's. */
static void read_comment(struct listing *listing, const char *comment)
{
    json_auto_t *json = json_loads(comment, JSON_REJECT_DUPLICATES, NULL);
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
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(dl2_database_ask(listing->connection, listing->what,
                             "SELECT relid::oid FROM pg_partition_tree(to_regclass($1)) "
                             "WHERE isleaf AND level > 0 ORDER BY relid::regclass::text COLLATE "
                             "\"C\"",
                             1, &name, &result, error));
    const int count = PQntuples(result);
    table->partition_of.size = 0; /* of a listing whose connection was lost */
    free(table->partitions);
    DL2_TRY(DL2_NEW(&table->partitions, (size_t)count, "a dataset", error));
    for (int i = 0; i < count; i++)
        table->partitions[i] = (struct dl2_postgresql_partition){
            (uint32_t)strtoul(PQgetvalue(result, i, 0), NULL, 10), (uint32_t)i};
    listing->partitions = (unsigned)count;
    qsort(table->partitions, listing->partitions, sizeof *table->partitions, compare_partitions);
    return DL2_OK;
}

static int look_at_table(struct listing *listing, struct dl2_error *error)
{
    DL2_AUTO_FREE char *comment = NULL;
    const struct dl2_database_uri *uri = &listing->table->uri;
    listing->quoted = dl2_database_table(listing->connection, uri, error);
    if (!listing->quoted)
        return DL2_ERR_ARGUMENT;
    DL2_TRY(
        dl2_database_comment(listing->connection, listing->quoted, listing->what, &comment, error));
    if (!comment)
        return dl2_database_no_table(listing->what, listing->quoted, error);
    read_comment(listing, comment);
    DL2_TRY(look_at_partitions(listing, error));
    return look_at_columns(listing, error);
}

/* ---- The rows */

static int add_class_list(struct listing *listing, struct dl2_error *error)
{
    const size_t count = json_array_size(listing->classes);
    if (!count)
        return DL2_OK;
    DL2_AUTO_FREE const char **texts = dl2_calloc(count, sizeof *texts);
    for (size_t i = 0; texts && i < count; i++)
        texts[i] = json_string_value(json_array_get(listing->classes, i));
    char **names = texts ? dl2_copy_texts(texts, count) : NULL;
    return names ? dl2_scan_add_classes(&listing->scan, "", names, (uint32_t)count, error)
                 : dl2_error_memory(error, "a dataset");
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
    return dl2_format(&listing->last_key, error, "%s", key);
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
    const char *folder = row_key + dl2_part_prefix(row_key), *slash = strchr(folder, '/');
    /* A key that names its split needs no second name of it. */
    const bool named =
        !*part || (slash && dl2_part_find(parts, folder, (size_t)(slash - folder)) == *part);
    snprintf(key, DL2_POSTGRESQL_KEY_BYTES, "%s%s%s", named ? "" : dl2_part_name(parts, *part),
             named ? "" : "/", row_key);
    return DL2_OK;
}

static int add_row(void *context, const PGresult *result, struct dl2_error *error)
{
    struct listing *listing = context;
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
    const bool labeled = !PQgetisnull(result, 0, AT_LABEL);
    return dl2_scan_add(&listing->scan, &entry, labeled ? PQgetvalue(result, 0, AT_LABEL) : NULL,
                        error);
}

/* A column as a text; null where there is none, or more than `most` bytes. */
static void print_column(FILE *out, const char *quoted, int most)
{
    if (quoted)
        fprintf(out, "CASE WHEN octet_length(%s::text) <= %d THEN %s::text END, ", quoted, most,
                quoted);
    else
        fprintf(out, "NULL::text, ");
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
    fprintf(out, "SELECT ");
    print_column(out, key, DL2_DATABASE_MAX_KEY);
    fprintf(out, "octet_length(%s)::int8, ", columns[IMAGE].quoted);
    print_column(out, columns[SPLIT].quoted, DL2_DATABASE_MAX_SPLIT);
    print_column(out, columns[LABEL].quoted, DL2_DATABASE_MAX_LABEL);
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

static int list_rows(struct listing *listing, struct dl2_error *error)
{
    DL2_AUTO_FREE char *command = listing_command(listing);
    return command ? dl2_database_each_row(listing->connection, listing->what, command, 1, add_row,
                                           listing, error)
                   : dl2_error_memory(error, "a dataset");
}

/* The table's column decides on splits, if it has one; the keys do otherwise. */
static int use_split_column(struct dl2_index_draft *draft, struct dl2_error *error)
{
    draft->has_parts = false;
    dl2_part_list_free(&draft->parts);
    for (size_t i = 0; i < draft->count; i++) {
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        const char *key = dl2_index_draft_key(draft, i);
        key += dl2_part_prefix(key);
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

/*
 * The command that sums up which transactions wrote the rows: a sum, so that it takes no memory and
 * the order of the rows does not matter.
 */
static int make_version_command(struct listing *listing, struct dl2_error *error)
{
    DL2_AUTO_FREE char *what = NULL;
    if (listing->has_xmin)
        DL2_TRY(dl2_format(&what, error, "xmin::text"));
    else if (!*listing->beside)
        DL2_TRY(dl2_format(&what, error, "coalesce(md5(%s), '')", listing->columns[IMAGE].quoted));
    else
        DL2_TRY(dl2_format(&what, error,
                           "coalesce(md5(%s), '') || (SELECT coalesce(string_agg(md5(b.data), ' ' "
                           "ORDER BY b.name), '') FROM (%s) AS b(name, data))",
                           listing->columns[IMAGE].quoted, listing->beside));
    return dl2_format(
        &listing->table->version, error,
        "SELECT sum(hashtextextended(%s::text || ' ' || %s, 0)::numeric)::text FROM %s%s AS t",
        listing->columns[KEY].quoted, what, listing->is_own ? "ONLY " : "", listing->quoted);
}

/* The command that reads what lies beside the image of one key, of one extension or all. */
static int make_beside_command(struct listing *listing, const char *type, struct dl2_error *error)
{
    const char *key = listing->columns[KEY].quoted;
    return *listing->beside
               ? dl2_format(&listing->table->read_beside, error,
                            "SELECT b.name, b.data FROM %s%s AS t, LATERAL (%s) AS b(name, data) "
                            "WHERE t.%s = $1::text::%s AND b.data IS NOT NULL AND "
                            "($2::text IS NULL OR b.name = $2::text) ORDER BY b.name",
                            listing->is_own ? "ONLY " : "", listing->quoted, listing->beside, key,
                            type)
               : DL2_OK;
}

/* The command that reads images: keys as text[], and the largest size; and the one that trains. */
static int make_commands(struct listing *listing, struct dl2_error *error)
{
    const struct column *key = &listing->columns[KEY], *image = &listing->columns[IMAGE];
    const char *only = listing->is_own ? "ONLY " : "";
    const bool is_text = key->type == DL2_OID_TEXT || key->type == DL2_OID_VARCHAR;
    const char *type = is_text ? "text" : key->type_name;
    DL2_TRY(make_beside_command(listing, type, error));
    /* The order is a subquery's: a sort within the aggregate would copy the model for each row. A
     * row that is gone is a bad one, as is one without an image. */
    DL2_TRY(dl2_format(&listing->table->fit, error,
                       "SELECT dl2_fit(coalesce(r.image, ''), r.label, $1::bytea, $2::text::jsonb, "
                       "r.number) FROM "
                       "(SELECT t.%s AS image, o.label, o.number FROM "
                       "unnest($3::text[], $4::int8[], $5::int4[]) "
                       "WITH ORDINALITY AS o(key, number, label, place) "
                       "LEFT JOIN %s%s AS t ON t.%s = o.key::%s ORDER BY o.place OFFSET 0) AS r",
                       image->quoted, only, listing->quoted, key->quoted, type));
    return dl2_format(&listing->table->read, error,
                      "SELECT %s::text, octet_length(%s)::int8, "
                      "CASE WHEN octet_length(%s) <= $2::int8 THEN %s END "
                      "FROM %s%s WHERE %s = ANY($1::text[]::%s[])",
                      key->quoted, image->quoted, image->quoted, image->quoted, only,
                      listing->quoted, key->quoted, type);
}

/* ---- Both, and the server's files */

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
    DL2_TRY(dl2_format_more(&dataset->remark, error, "SQL reads all images: %s", own.message));
    return dl2_database_pool_acquire(table->pool, &listing->connection, error);
}

/* Says in how far images come from the server's files. */
static int tell_found(struct dl2_dataset *dataset, const struct dl2_index_draft *draft,
                      size_t found, const char *what, struct dl2_error *error)
{
    const struct dl2_postgresql_table *table = dataset->state;
    const bool summed = dl2_index_draft_entry(draft, 0)->flags & DL2_ENTRY_SUMMED;
    if (!found && table->uri.access == DL2_ACCESS_PAGES)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the server's files have none of the images as it is: they are "
                             "compressed (ALTER TABLE ... SET STORAGE EXTERNAL keeps new ones from "
                             "that), or not written yet (CHECKPOINT); leave out access=pages",
                             what);
    if (found < draft->count)
        return dl2_format_more(&dataset->remark, error,
                               "SQL reads %zu of %zu images: the server's files do not have them "
                               "as they are",
                               draft->count - found, draft->count);
    return summed ? DL2_OK
                  : dl2_format_more(&dataset->remark, error,
                                    "SQL reads each image for the first time, since there are no "
                                    "check sums; the server's files serve after that");
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

/* All that a listing takes of the server; its connection, or the pages', is there. */
static int list_all(struct dl2_dataset *dataset, struct listing *listing, struct dl2_error *error)
{
    DL2_TRY(list_table(listing, error));
    if (listing->scan.draft.remarks)
        DL2_TRY(dl2_format_more(&dataset->remark, error, "%s", listing->scan.draft.remarks));
    DL2_TRY(find_in_pages(dataset, listing, error));
    DL2_TRY(make_commands(listing, error));
    return make_version_command(listing, error);
}

int dl2_postgresql_list(struct dl2_dataset *dataset, const char *path, struct dl2_error *error)
{
    struct dl2_postgresql_table *table = dataset->state;
    DL2_CLEANUP(listing_free) struct listing listing = {.table = table, .what = path};
    listing.scan.draft.container = dataset->container;
    free(dataset->remark); /* of a listing whose connection was lost */
    dataset->remark = NULL;
    DL2_TRY(connect_listing(dataset, &listing, error));
    const int status = list_all(dataset, &listing, error);
    if (status == DL2_OK) {
        table->draft = listing.scan.draft;
        listing.scan.draft = (struct dl2_index_draft){0};
        dataset->tables = listing.partitions;
        dataset->is_incomplete = listing.is_incomplete;
    }
    if (!table->pages) {
        dl2_database_pool_release(table->pool, listing.connection, status < 0);
    } else if (status < 0) {
        dl2_pages_close(table->pages);
        table->pages = NULL;
    }
    return status;
}
