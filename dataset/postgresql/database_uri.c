/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/postgresql/database_uri.h"

#include "common/memory.h"
#include "common/scope.h"
#include "dataset/dataset.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer names are cut by PostgreSQL (NAMEDATALEN). */
enum { MAX_NAME_BYTES = 63, MAX_LIST_BYTES = 4096 };

/* Seconds. A server that restarts after a crash takes some. */
enum { DEFAULT_TIMEOUT = 20, MAX_TIMEOUT = 604800 };

static const char *const schemes[] = {"postgresql://", "postgres://"};

#define OWN_NAMES "dl2-transcode names the columns itself"

enum word_kind { WORD, COLUMN, COLUMN_LIST };

static const struct word {
    const char *name;
    size_t member;
    enum word_kind kind;
    const char *idle; /* why it has no effect on a table that is written; NULL: it has one */
} words[] = {
    {"table", offsetof(struct dl2_database_uri, table), WORD, NULL},
    {"schema", offsetof(struct dl2_database_uri, schema), WORD, NULL},
    {"key", offsetof(struct dl2_database_uri, key), COLUMN, OWN_NAMES},
    {"image", offsetof(struct dl2_database_uri, image), COLUMN, OWN_NAMES},
    {"label", offsetof(struct dl2_database_uri, label), COLUMN, OWN_NAMES},
    {"split", offsetof(struct dl2_database_uri, split), COLUMN, OWN_NAMES},
    {"group", offsetof(struct dl2_database_uri, group), COLUMN, OWN_NAMES},
    {"beside", offsetof(struct dl2_database_uri, beside), COLUMN_LIST, OWN_NAMES},
    {"access", offsetof(struct dl2_database_uri, access_word), WORD, "it says how images are read"},
    {"timeout", offsetof(struct dl2_database_uri, timeout_word), WORD,
     "a table is written in one transaction, which ends with its connection"},
};

static const char *const accesses[] = {
    [DL2_ACCESS_SQL] = "sql", [DL2_ACCESS_PAGES] = "pages", [DL2_ACCESS_AUTO] = "auto", NULL};

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

/* A value without its percent signs; NULL if they stand for no text, or memory runs out. */
static char *decode(const char *text, size_t length)
{
    char *out = dl2_calloc(length + 1, 1);
    size_t used = 0;
    for (size_t i = 0; out && i < length; i++) {
        char byte = text[i];
        if (byte == '%') {
            const char digits[] = {i + 1 < length ? text[i + 1] : '\0',
                                   i + 2 < length ? text[i + 2] : '\0', '\0'};
            const bool hex =
                isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1]);
            byte = hex ? (char)strtoul(digits, NULL, 16) : '\0';
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
    static const size_t limits[] = {
        [WORD] = 2 * MAX_NAME_BYTES + 1, [COLUMN] = MAX_NAME_BYTES, [COLUMN_LIST] = MAX_LIST_BYTES};
    if (!*value || !**value || strlen(*value) > limits[word->kind])
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s= needs a name of 1 to %d bytes, with %%26 for & and %%25 for %%",
                             word->name, MAX_NAME_BYTES);
    uri->given |= 1u << (word - words);
    uri->is_mapped = uri->is_mapped || word->kind == COLUMN;
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
    return *value ? DL2_OK : dl2_format(value, error, "%s", name);
}

static int split_schema(struct dl2_database_uri *uri, struct dl2_error *error)
{
    char *dot = uri->schema ? NULL : strchr(uri->table, '.');
    if (dot) {
        DL2_TRY(dl2_format(&uri->schema, error, "%.*s", (int)(dot - uri->table), uri->table));
        memmove(uri->table, dot + 1, strlen(dot));
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
    for (int i = 0; uri->access_word && accesses[i]; i++)
        if (!strcmp(uri->access_word, accesses[i])) {
            uri->access = (enum dl2_database_access)i;
            return DL2_OK;
        }
    return uri->access_word
               ? dl2_error_set(error, DL2_ERR_ARGUMENT, "access= is sql, pages or auto")
               : DL2_OK;
}

static int choose_timeout(struct dl2_database_uri *uri, struct dl2_error *error)
{
    char *end = NULL;
    uri->timeout = uri->timeout_word ? strtod(uri->timeout_word, &end) : DEFAULT_TIMEOUT;
    if (uri->timeout_word && (*end || !(uri->timeout >= 0 && uri->timeout <= MAX_TIMEOUT)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "timeout=%s: it is a number of seconds, 0 to %d", uri->timeout_word,
                             MAX_TIMEOUT);
    return DL2_OK;
}

static int parse(const char *text, bool grouped, struct dl2_database_uri *uri,
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
    DL2_TRY(choose_timeout(uri, error));
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

int dl2_database_uri_parse(const char *text, bool grouped, struct dl2_database_uri *uri,
                           struct dl2_error *error)
{
    *uri = (struct dl2_database_uri){0};
    const int status = parse(text, grouped, uri, error);
    dl2_error_prefix(error, "%s", text);
    return status;
}

int dl2_database_uri_check_writing(const char *path, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_uri_free) struct dl2_database_uri uri;
    DL2_TRY(dl2_database_uri_parse(path, false, &uri, error));
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].idle && uri.given >> i & 1)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: %s= has no effect on a table that is written: %s; leave it "
                                 "out",
                                 path, words[i].name, words[i].idle);
    return DL2_OK;
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
    char *out;
    if (dl2_format(&out, NULL, "%.*s_%s%s", (int)(at - text), text, name, at) < 0)
        return NULL;
    for (char *byte = out + (at - text) + 1; byte < out + (at - text) + 1 + strlen(name); byte++)
        if (strchr("-@.", *byte))
            *byte = '_';
    return out;
}

void dl2_database_uri_free(struct dl2_database_uri *uri)
{
    free(uri->server);
    for (size_t i = 0; i < WORDS; i++)
        free(*value_of(uri, &words[i]));
    *uri = (struct dl2_database_uri){0};
}
