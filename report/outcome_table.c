/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/outcome_table.h"

#include "common/file.h"
#include "common/keep.h"
#include "common/scope.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_KEY_BYTES = 4096 };

static const char expected[] =
    "expected the heading key,value, and a line with a key and a number for each image";

/* ---- Keys */

/* Its length without the extension of an image's file: the variants' files differ in it. */
static size_t stem_length(const char *key)
{
    static const char *const images[] = {"jpg", "jpeg", "png",  "webp", "avif", "jxl", "jp2", "j2k",
                                         "bmp", "gif",  "tiff", "tif",  "ppm",  "pgm", "npy"};
    const char *dot = strrchr(key, '.');
    for (size_t i = 0; dot && dot > key && i < sizeof images / sizeof *images; i++)
        if (strcasecmp(dot + 1, images[i]) == 0)
            return (size_t)(dot - key);
    return strlen(key);
}

static char *key_at(const struct dl2_prediction_table *table, size_t row)
{
    return table->keys + row * table->key_size;
}

/* Where the key cannot be, `where` is "line 7" or "row 6". */
static int check_key(char *key, const char *name, const char *what, size_t where,
                     struct dl2_error *error)
{
    for (const char *c = key; *c; c++)
        if ((unsigned char)*c < ' ')
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: the key of %s %zu has a control character", name, what,
                                 where);
    key[stem_length(key)] = '\0';
    return *key ? DL2_OK
                : dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s %zu has no key", name, what, where);
}

static int check_value(double value, const char *key, const char *name, struct dl2_error *error)
{
    return isfinite(value) && fabs(value) <= 1e12
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s: the value of %s is %g: expected a number from -1e12 to 1e12",
                               name, key, value);
}

static void make_table(size_t rows, size_t key_size, const char *name,
                       struct dl2_prediction_table *table)
{
    *table = (struct dl2_prediction_table){.count = rows, .known = rows, .key_size = key_size};
    table->rows = dl2_room(
        rows, sizeof *table->rows + sizeof *table->values + sizeof *table->order + key_size,
        "%s: %zu outcomes", name, rows);
    table->values = (double *)(table->rows + rows);
    table->order = (uint32_t *)(table->values + rows);
    table->keys = (char *)(table->order + rows);
}

/* ---- CSV */

/* A field of a line, which ends there; unquoted in place. *rest is what follows its comma, NULL: it
 * was the last. NULL: its quotes do not match. */
static char *next_field(char *line, char **rest)
{
    char *out = line, *in = line;
    const bool quoted = *in == '"';
    bool closed = !quoted;
    for (in += quoted; *in && (quoted ? !closed : *in != ',');) {
        if (quoted && *in == '"' && in[1] != '"')
            closed = true;
        else
            *out++ = *in;
        in += quoted && *in == '"' && !closed ? 2 : 1;
    }
    if (!closed || (*in && *in != ','))
        return NULL;
    *rest = *in ? in + 1 : NULL;
    *out = '\0';
    return line;
}

/* A plain decimal number: strtod() takes more. */
static bool read_number(const char *text, double *value)
{
    char *end;
    if (!*text || text[strspn(text, "+-.0123456789eE")])
        return false;
    *value = strtod(text, &end);
    return !*end;
}

static int read_line(char *line, size_t number, const char *name,
                     struct dl2_prediction_table *table, struct dl2_error *error)
{
    const size_t row = number - 2;
    char *rest = NULL, *more = NULL, *key = next_field(line, &rest);
    char *text = key && rest ? next_field(rest, &more) : NULL;
    double value = NAN;
    if (number == 1)
        return text && !more && strcmp(key, "key") == 0 && strcmp(text, "value") == 0
                   ? DL2_OK
                   : dl2_error_set(error, DL2_ERR_FORMAT, "%s: line 1: %s", name, expected);
    if (!text || more || !read_number(text, &value))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: line %zu: %s", name, number,
                             text && !more && (strcasestr(text, "nan") || !*text)
                                 ? "its value is not a number"
                                 : expected);
    if (strlen(key) > MAX_KEY_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%s: line %zu: a key of %zu bytes; up to %d are "
                             "read",
                             name, number, strlen(key), MAX_KEY_BYTES);
    DL2_TRY(check_key(key, name, "line", number, error));
    DL2_TRY(check_value(value, key, name, error));
    strcpy(key_at(table, row), key);
    table->values[row] = value;
    return DL2_OK;
}

static int read_csv(const char *data, size_t size, const char *name,
                    struct dl2_prediction_table *table, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    size_t lines = 0, longest = 0, number = 0;
    dl2_append(&bytes, data, size);
    const int status = dl2_text_begin(&bytes, error);
    if (status < 0) {
        dl2_error_prefix(error, "%s", name);
        return status;
    }
    char *const text = (char *)bytes.data;
    for (const char *at = text; *at; at += *at == '\n') {
        const size_t length = strcspn(at, "\n");
        lines++;
        longest = length > longest ? length : longest;
        at += length;
    }
    if (lines < 2)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s", name,
                             lines ? "a table without rows" : expected);
    if (longest > 2 * MAX_KEY_BYTES + 64)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: a line of %zu bytes; up to %d are read",
                             name, longest, 2 * MAX_KEY_BYTES + 64);
    make_table(lines - 1, longest + 1, name, table);
    for (char *line = text, *end; *line; line = end) {
        char *const stop = line + strcspn(line, "\n");
        end = stop + (*stop == '\n');
        *stop = '\0';
        if (stop > line && stop[-1] == '\r')
            stop[-1] = '\0';
        DL2_TRY(read_line(line, ++number, name, table, error));
    }
    return DL2_OK;
}

/* ---- NumPy */

/* Types of numbers. */
static const struct type {
    const char *name;
    size_t bytes;
} types[] = {{"<f8", 8}, {"<f4", 4}, {"<i8", 8}, {"<i4", 4}, {"|u1", 1}, {"|b1", 1}, {"|i1", 1}};

static double number_at(const uint8_t *at, const struct type *type)
{
    union {
        uint64_t bits;
        double real;
    } wide = {0};
    union {
        uint32_t bits;
        float real;
    } narrow = {0};
    if (type->bytes == 8) {
        memcpy(&wide.bits, at, 8);
        wide.bits = le64toh(wide.bits);
        return type->name[1] == 'f' ? wide.real : (double)(int64_t)wide.bits;
    }
    if (type->bytes == 4) {
        memcpy(&narrow.bits, at, 4);
        narrow.bits = le32toh(narrow.bits);
        return type->name[1] == 'f' ? (double)narrow.real : (double)(int32_t)narrow.bits;
    }
    return type->name[1] == 'i' ? (double)(int8_t)*at : (double)*at;
}

/* One character of UTF-32 as UTF-8. 0: it is none. */
static size_t write_utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    const size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | c);
    return more + 1;
}

/* A key of so many characters; what is behind its end must be zero. */
static bool read_key(const uint8_t *at, size_t characters, bool wide, char *out)
{
    bool ended = false;
    for (size_t i = 0; i < characters; i++) {
        uint32_t c = at[i];
        if (wide) {
            memcpy(&c, at + 4 * i, 4);
            c = le32toh(c);
        }
        if (ended && c)
            return false;
        ended = !c;
        if (ended)
            continue;
        if (!wide)
            *out++ = (char)c;
        const size_t length = wide ? write_utf8(c, out) : 0;
        if (wide && !length)
            return false;
        out += length;
    }
    *out = '\0';
    return true;
}

static int read_npy(const uint8_t *data, size_t size, const char *name,
                    struct dl2_prediction_table *table, struct dl2_error *error)
{
    size_t begin, rows = 0, characters = 0;
    const char *found;
    struct type type = {NULL, 0};
    char kind = 0;
    DL2_TRY(dl2_npy_header(data, size, name, &found, &begin, error));
    for (size_t i = 0; i < sizeof types / sizeof *types && !type.name; i++)
        if (dl2_npy_is_table(found,
                             dl2_text(" [{] 'descr': [[][(]'key', '[<|]?([SU][0-9]+)'[)], "
                                      "[(]'value', '[%c]%s'[)]], ",
                                      types[i].name[0], types[i].name + 1),
                             &kind, &characters, &rows))
            type = types[i];
    if (!type.name)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: not a table of key (S or U) and value (a number)", name);
    const bool wide = kind == 'U';
    if (!rows || !characters || characters > MAX_KEY_BYTES)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %zu rows with keys of %zu characters",
                             name, rows, characters);
    const size_t key_bytes = wide ? 4 * characters : characters, row_bytes = key_bytes + type.bytes;
    DL2_TRY(dl2_npy_expect_rows(size, begin, rows, row_bytes, name, error));
    make_table(rows, key_bytes + 1, name, table);
    for (size_t row = 0; row < rows; row++) {
        const uint8_t *at = data + begin + row * row_bytes;
        char *key = key_at(table, row);
        if (!read_key(at, characters, wide, key))
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: the key of row %zu is not a text",
                                 name, row);
        DL2_TRY(check_key(key, name, "row", row, error));
        table->values[row] = number_at(at + key_bytes, &type);
        DL2_TRY(check_value(table->values[row], key, name, error));
    }
    return DL2_OK;
}

/* ---- Both */

int dl2_outcome_table_parse(const void *data, size_t size, const char *name,
                            struct dl2_prediction_table *table, struct dl2_error *error)
{
    const size_t length = strlen(name);
    *table = (struct dl2_prediction_table){0};
    DL2_TRY(length > 4 && strcmp(name + length - 4, ".npy") == 0
                ? read_npy(data, size, name, table, error)
                : read_csv(data, size, name, table, error));
    return dl2_prediction_table_sort(name, table, error);
}

int dl2_outcome_table_read(const char *path, struct dl2_prediction_table *table,
                           struct dl2_error *error)
{
    *table = (struct dl2_prediction_table){0};
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    DL2_TRY(dl2_file_read(path, DL2_PREDICTIONS_MAX_BYTES, &bytes, error));
    return dl2_outcome_table_parse(bytes.data, bytes.size, path, table, error);
}

double dl2_outcome_table_mean(const struct dl2_prediction_table *table)
{
    double sum = 0;
    for (size_t i = 0; i < table->count; i++)
        sum += table->values[i];
    return sum / (double)table->count;
}

int dl2_outcome_table_same_keys(const struct dl2_prediction_table *reference,
                                const struct dl2_prediction_table *own, struct dl2_error *error)
{
    for (size_t i = 0; i < reference->count || i < own->count; i++) {
        const char *a = i < reference->count ? key_at(reference, reference->order[i]) : NULL;
        const char *b = i < own->count ? key_at(own, own->order[i]) : NULL;
        const int order = !a ? 1 : !b ? -1 : strcmp(a, b);
        if (order)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "the image %s is %s: expected the same keys of all trainings, "
                                 "such as paths from the dataset's folder",
                                 order < 0 ? a : b,
                                 order < 0 ? "missing here" : "not in the first training");
    }
    return DL2_OK;
}
