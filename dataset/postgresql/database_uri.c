/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/postgresql/database_uri.h"

#include "common/memory.h"
#include "dataset/dataset.h"
#include "dataset/writer.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer names are cut by PostgreSQL (NAMEDATALEN). */
enum { MAX_NAME_BYTES = 63 };

/* Seconds. A server that restarts after a crash takes some. */
enum { DEFAULT_PATIENCE = 20, MAX_PATIENCE = 604800 };

static const char *const schemes[] = {"postgresql://", "postgres://"};

#define OWN_NAMES "dl2-transcode names the columns itself"

static const struct word {
    const char *name;
    size_t member;
    bool is_column;
    const char *idle; /* why it has no effect on a table that is written; NULL: it has one */
} words[] = {
    {"table", offsetof(struct dl2_database_uri, table), false, NULL},
    {"schema", offsetof(struct dl2_database_uri, schema), false, NULL},
    {"key", offsetof(struct dl2_database_uri, key), true, OWN_NAMES},
    {"image", offsetof(struct dl2_database_uri, image), true, OWN_NAMES},
    {"label", offsetof(struct dl2_database_uri, label), true, OWN_NAMES},
    {"split", offsetof(struct dl2_database_uri, split), true, OWN_NAMES},
    {"group", offsetof(struct dl2_database_uri, group), true, OWN_NAMES},
    {"access", offsetof(struct dl2_database_uri, access_word), false,
     "it says how images are read"},
    {"patience", offsetof(struct dl2_database_uri, patience_word), false,
     "a table is written in one transaction, which ends with its connection"},
};

static const char *const accesses[] = {
    [DL2_ACCESS_SQL] = "sql", [DL2_ACCESS_PAGES] = "pages", [DL2_ACCESS_AUTO] = "auto"};

enum { WORDS = sizeof words / sizeof *words };

static char **value_of(struct dl2_database_uri *uri, const struct word *word)
{
    return (char **)(void *)((char *)uri + word->member);
}

static size_t scheme_length(const char *path)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (!strncmp(path, schemes[i], strlen(schemes[i])))
            return strlen(schemes[i]);
    return 0;
}

bool dl2_dataset_is_database(const char *path)
{
    return scheme_length(path) > 0;
}

/* Where the parameters begin, behind the "?", which a password may hold, too; or the end. */
static const char *find_parameters(const char *text)
{
    const char *at = text + scheme_length(text);
    const char *end_of_user = at + strcspn(at, "@/");
    if (*end_of_user == '@')
        at = end_of_user;
    at += strcspn(at, "?");
    return *at ? at + 1 : at;
}

static int hex_digit(char digit)
{
    return isdigit((unsigned char)digit) ? digit - '0' : (tolower((unsigned char)digit) - 'a') + 10;
}

/* A value without its percent signs; NULL if they stand for no text, or memory runs out. */
static char *decode(const char *text, size_t length)
{
    char *out = dl2_calloc(length + 1, 1);
    size_t used = 0;
    for (size_t i = 0; out && i < length; i++) {
        char byte = text[i];
        if (byte == '%') {
            const bool hex = i + 2 < length && isxdigit((unsigned char)text[i + 1]) &&
                             isxdigit((unsigned char)text[i + 2]);
            byte = hex ? (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : '\0';
            i += 2;
        }
        if (!byte) {
            free(out);
            return NULL;
        }
        out[used++] = byte;
    }
    return out;
}

static int set_word(struct dl2_database_uri *uri, const struct word *word, const char *text,
                    size_t length, struct dl2_error *error)
{
    char **value = value_of(uri, word);
    if (*value)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s= is there twice", word->name);
    *value = decode(text, length);
    const size_t limit = word->is_column ? MAX_NAME_BYTES : 2 * MAX_NAME_BYTES + 1;
    if (!*value || !**value || strlen(*value) > limit)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s= needs a name of 1 to %d bytes, with %%26 for & and %%25 for %%",
                             word->name, MAX_NAME_BYTES);
    uri->given |= 1u << (word - words);
    uri->is_mapped = uri->is_mapped || word->is_column;
    return DL2_OK;
}

/* Takes our words out of the parameters; the others follow in `server`. */
static int split_parameters(struct dl2_database_uri *uri, const char *parameters,
                            struct dl2_error *error)
{
    char *end = uri->server + strlen(uri->server);
    bool first = true;
    while (*parameters) {
        const size_t length = strcspn(parameters, "&");
        const char *equals = memchr(parameters, '=', length);
        const size_t name = equals ? (size_t)(equals - parameters) : length;
        const struct word *ours = NULL;
        for (size_t i = 0; i < WORDS; i++)
            if (strlen(words[i].name) == name && !strncmp(parameters, words[i].name, name))
                ours = &words[i];
        if (ours) {
            DL2_TRY(set_word(uri, ours, equals ? equals + 1 : "", equals ? length - name - 1 : 0,
                             error));
        } else if (length) {
            *end++ = first ? '?' : '&';
            first = false;
            memcpy(end, parameters, length);
            end += length;
            *end = '\0';
        }
        parameters += length + (parameters[length] == '&');
    }
    return DL2_OK;
}

static int set_default(char **value, const char *name, struct dl2_error *error)
{
    if (!*value && !(*value = strdup(name)))
        return dl2_error_memory(error, "a dataset");
    return DL2_OK;
}

static int split_schema(struct dl2_database_uri *uri, struct dl2_error *error)
{
    char *dot = uri->schema ? NULL : strchr(uri->table, '.');
    if (dot) {
        uri->schema = strndup(uri->table, (size_t)(dot - uri->table));
        memmove(uri->table, dot + 1, strlen(dot));
        if (!uri->schema)
            return dl2_error_memory(error, "a dataset");
    }
    if (!*uri->table || strlen(uri->table) > MAX_NAME_BYTES ||
        (uri->schema && (!*uri->schema || strlen(uri->schema) > MAX_NAME_BYTES)))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "table= needs NAME or SCHEMA.NAME, or schema= beside table=, each of 1 to "
            "%d bytes",
            MAX_NAME_BYTES);
    return DL2_OK;
}

static int choose_access(struct dl2_database_uri *uri, struct dl2_error *error)
{
    if (!uri->access_word)
        return DL2_OK;
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
        if (!strcmp(uri->access_word, accesses[i])) {
            uri->access = (enum dl2_database_access)i;
            return DL2_OK;
        }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "access= is sql, pages or auto");
}

static int choose_patience(struct dl2_database_uri *uri, struct dl2_error *error)
{
    char *end = NULL;
    uri->patience = uri->patience_word ? strtod(uri->patience_word, &end) : DEFAULT_PATIENCE;
    if (uri->patience_word && (*end || !(uri->patience >= 0 && uri->patience <= MAX_PATIENCE)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "patience=%s: it is a number of seconds, 0 to %d", uri->patience_word,
                             MAX_PATIENCE);
    return DL2_OK;
}

static int parse(const char *text, struct dl2_database_uri *uri, bool grouped,
                 struct dl2_error *error)
{
    const char *parameters = find_parameters(text);
    const size_t start = (size_t)(parameters - text) - (*parameters || parameters[-1] == '?');
    uri->server = dl2_calloc(strlen(text) + 2, 1);
    if (!uri->server)
        return dl2_error_memory(error, "a dataset");
    memcpy(uri->server, text, start);
    DL2_TRY(split_parameters(uri, parameters, error));
    DL2_TRY(choose_access(uri, error));
    DL2_TRY(choose_patience(uri, error));
    if (!uri->table)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "which table? Add ?table=NAME, or &table=NAME behind other parameters");
    if (grouped && !uri->group)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "which column has the groups? Add "
                             "&group=COLUMN");
    if (!grouped && uri->group)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "group= has no effect here, only in dl2-report --group; leave it out");
    DL2_TRY(split_schema(uri, error));
    DL2_TRY(set_default(&uri->key, "key", error));
    return set_default(&uri->image, "image", error);
}

static int parse_whole(const char *text, struct dl2_database_uri *uri, bool grouped,
                       struct dl2_error *error)
{
    *uri = (struct dl2_database_uri){0};
    const int status = parse(text, uri, grouped, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", text);
    return status;
}

int dl2_database_uri_parse(const char *text, struct dl2_database_uri *uri, struct dl2_error *error)
{
    return parse_whole(text, uri, false, error);
}

int dl2_database_uri_parse_group(const char *text, struct dl2_database_uri *uri,
                                 struct dl2_error *error)
{
    return parse_whole(text, uri, true, error);
}

int dl2_writer_check_place(const char *path, struct dl2_error *error)
{
    struct dl2_database_uri uri;
    if (!dl2_dataset_is_database(path))
        return DL2_OK;
    int status = dl2_database_uri_parse(path, &uri, error);
    for (size_t i = 0; i < WORDS && status == DL2_OK; i++)
        if (words[i].idle && uri.given >> i & 1)
            status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "%s: %s= has no effect on a table that is written: %s; leave "
                                   "it out",
                                   path, words[i].name, words[i].idle);
    dl2_database_uri_free(&uri);
    return status;
}

int dl2_database_unsupported(const char *text, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "%s: this build has no libpq (Debian: libpq-dev)", text);
}

char *dl2_database_uri_of_variant(const char *text, const char *name)
{
    static const char word[] = "table=";
    const char *at = find_parameters(text);
    while (*at && strncmp(at, word, sizeof word - 1) != 0) {
        at += strcspn(at, "&");
        at += *at == '&';
    }
    if (!*at)
        return strdup(text);
    at += strcspn(at, "&");
    char *out = NULL;
    if (asprintf(&out, "%.*s_%s%s", (int)(at - text), text, name, at) < 0)
        return NULL;
    for (char *byte = out + (at - text) + 1; byte < out + (at - text) + 1 + strlen(name); byte++)
        if (strchr("-@.", *byte))
            *byte = '_';
    return out;
}

void dl2_database_uri_free(struct dl2_database_uri *uri)
{
    free(uri->server);
    free(uri->schema);
    free(uri->table);
    free(uri->key);
    free(uri->image);
    free(uri->label);
    free(uri->split);
    free(uri->group);
    free(uri->access_word);
    free(uri->patience_word);
    *uri = (struct dl2_database_uri){0};
}
