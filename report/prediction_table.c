/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/prediction_table.h"

#include "common/file.h"
#include "common/keep.h"
#include "common/memory.h"
#include "common/scope.h"
#include "report/sentence.h"

#include <endian.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* ---- NumPy's header: numpy.lib.format, versions 1.0 and 2.0 */

enum {
    MAGIC_BYTES = 8,
    MAX_HEADER_BYTES = 4096,
    MAX_KEY_BYTES = 65536,
    COLUMN_BYTES = 4 + 4 + 1 + 1 + 4, /* of a row after its key */
};

/* The columns of dl2-train's table in the dictionary that NumPy writes, and what follows them. */
static const char predictions[] =
    " [{] 'descr': [[][(]'key', '[|]?(S[0-9]+)'[)], [(]'target', '<i4'[)], "
    "[(]'predicted', '<i4'[)], [(]'top1', '[|]u1'[)], [(]'top5', '[|]u1'[)], "
    "[(]'loss', '<f4'[)]], ";
static const char shape[] = "'fortran_order': False, 'shape': [(]([0-9]+) , [)] ,? [}] ";

bool dl2_npy_is_table(const char *dictionary, const char *columns, char *kind, size_t *characters,
                      size_t *rows)
{
    char pattern[512] = "";
    struct dl2_sentence writer = {pattern, sizeof pattern, 0};
    dl2_say(&writer, "^");
    for (const char *part = columns; part; part = part == columns ? shape : NULL)
        for (const char *c = part; *c; c++)
            dl2_say(&writer, *c == ' ' ? "[ \n]*" : "%c", *c);
    dl2_say(&writer, "$");
    regex_t regex;
    regmatch_t found[3];
    dl2_need(regcomp(&regex, pattern, REG_EXTENDED) == 0 ? &regex : NULL);
    const bool matches = regexec(&regex, dictionary, 3, found, 0) == 0;
    regfree(&regex);
    if (!matches)
        return false;
    const unsigned long long key = strtoull(dictionary + found[1].rm_so + 1, NULL, 10);
    const unsigned long long count = strtoull(dictionary + found[2].rm_so, NULL, 10);
    *kind = dictionary[found[1].rm_so];
    *characters = (size_t)key;
    *rows = (size_t)count;
    return key <= MAX_KEY_BYTES && count < UINT32_MAX;
}

int dl2_npy_header(const uint8_t *data, size_t size, const char *name, const char **dictionary,
                   size_t *begin, struct dl2_error *error)
{
    if (size < MAGIC_BYTES + 4 || memcmp(data, "\x93NUMPY", 6) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: not a NumPy file", name);
    if ((data[6] != 1 && data[6] != 2) || data[7] != 0)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: NumPy's format %u.%u; 1.0 and 2.0 are read", name, data[6],
                             data[7]);
    uint16_t short_length;
    uint32_t length;
    memcpy(&short_length, data + MAGIC_BYTES, 2);
    memcpy(&length, data + MAGIC_BYTES, 4);
    length = data[6] == 1 ? le16toh(short_length) : le32toh(length);
    *begin = MAGIC_BYTES + (data[6] == 1 ? 2 : 4);
    if (length > MAX_HEADER_BYTES || length > size - *begin)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: a header of %u bytes in a file of %zu (at most %d are read)",
                             name, length, size, MAX_HEADER_BYTES);
    *dictionary = dl2_text("%.*s", (int)length, (const char *)data + *begin);
    *begin += length;
    if (strlen(*dictionary) != length) /* a zero in it */
        *dictionary = "";
    return DL2_OK;
}

int dl2_npy_expect_rows(size_t size, size_t begin, size_t rows, size_t row_bytes, const char *name,
                        struct dl2_error *error)
{
    size_t body;
    return dl2_size_mul(rows, row_bytes, &body) && body == size - begin
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s: %zu bytes, which is not %zu rows of %zu after a header of %zu",
                               name, size, rows, row_bytes, begin);
}

static int read_header(const uint8_t *data, size_t size, const char *name, size_t *header_bytes,
                       size_t *key_bytes, size_t *rows, struct dl2_error *error)
{
    const char *dictionary;
    char kind;
    DL2_TRY(dl2_npy_header(data, size, name, &dictionary, header_bytes, error));
    return dl2_npy_is_table(dictionary, predictions, &kind, key_bytes, rows)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s: not a table of key, target, predicted, top1, top5 and loss",
                               name);
}

/* ---- Rows */

static const char *key_of(const struct dl2_prediction_table *table, size_t row)
{
    return table->keys + row * table->key_size;
}

static int read_row(const uint8_t *data, size_t key_bytes, size_t row, const char *name,
                    struct dl2_prediction_table *table, struct dl2_error *error)
{
    char *key = table->keys + row * table->key_size;
    memcpy(key, data, key_bytes);
    const size_t length = strlen(key);
    for (size_t i = length; i < key_bytes; i++)
        if (key[i] != '\0')
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: the key of row %zu goes on after its "
                                 "end",
                                 name, row);
    if (length == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: row %zu has no key", name, row);
    uint32_t words[2], bits;
    memcpy(words, data + key_bytes, 8);
    memcpy(&bits, data + key_bytes + 10, 4);
    const uint8_t top1 = data[key_bytes + 8], top5 = data[key_bytes + 9];
    struct dl2_prediction *out = &table->rows[row];
    bits = le32toh(bits);
    out->target = (int32_t)le32toh(words[0]);
    out->predicted = (int32_t)le32toh(words[1]);
    out->top1 = top1;
    out->top5 = top5;
    memcpy(&out->loss, &bits, 4);
    const bool known = out->predicted >= 0;
    const bool right = known && out->predicted == out->target;
    /* A network whose output has a NaN is right nowhere, and has no loss. */
    if (top1 > 1 || top5 > 1 || top1 > top5 || out->predicted < -1 || (top5 && !known) ||
        (top1 && !right) || (right && !top1 && isfinite(out->loss)) || out->loss < -1e-3F)
        return dl2_error_set(
            error, DL2_ERR_FORMAT,
            "%s: row %zu contradicts itself: target %d, predicted %d, top1 %u, "
            "top5 %u, loss %g; expected top1 1 where predicted is the target, else "
            "0, top5 1 where top1 is, and a loss of 0 or more",
            name, row, out->target, out->predicted, top1, top5, out->loss);
    table->known += known;
    table->right += top1;
    return DL2_OK;
}

static int compare_keys(const void *a, const void *b, void *table)
{
    return strcmp(key_of(table, *(const uint32_t *)a), key_of(table, *(const uint32_t *)b));
}

int dl2_prediction_table_sort(const char *name, struct dl2_prediction_table *table,
                              struct dl2_error *error)
{
    bool sorted = true;
    for (size_t i = 0; i < table->count; i++) {
        table->order[i] = (uint32_t)i;
        sorted &= i == 0 || strcmp(key_of(table, i - 1), key_of(table, i)) < 0;
    }
    if (sorted)
        return DL2_OK;
    qsort_r(table->order, table->count, sizeof *table->order, compare_keys, table);
    for (size_t i = 1; i < table->count; i++)
        if (strcmp(key_of(table, table->order[i - 1]), key_of(table, table->order[i])) == 0)
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: the key %s comes twice", name,
                                 key_of(table, table->order[i]));
    return DL2_OK;
}

int dl2_prediction_table_parse(const void *data, size_t size, const char *name,
                               struct dl2_prediction_table *table, struct dl2_error *error)
{
    *table = (struct dl2_prediction_table){0};
    size_t header = 0, key_bytes = 0, rows = 0;
    DL2_TRY(read_header(data, size, name, &header, &key_bytes, &rows, error));
    if (key_bytes == 0 || rows == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: a table without %s", name,
                             rows ? "keys" : "rows");
    DL2_TRY(dl2_npy_expect_rows(size, header, rows, key_bytes + COLUMN_BYTES, name, error));
    table->count = rows;
    table->key_size = key_bytes + 1;
    table->rows = dl2_room(rows, sizeof *table->rows + sizeof *table->order + table->key_size,
                           "%s: %zu predictions", name, rows);
    table->order = (uint32_t *)(table->rows + rows);
    table->keys = (char *)(table->order + rows);
    for (size_t row = 0; row < rows; row++)
        DL2_TRY(read_row((const uint8_t *)data + header + row * (key_bytes + COLUMN_BYTES),
                         key_bytes, row, name, table, error));
    return dl2_prediction_table_sort(name, table, error);
}

int dl2_prediction_table_read(const char *path, struct dl2_prediction_table *table,
                              struct dl2_error *error)
{
    *table = (struct dl2_prediction_table){0};
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    DL2_TRY(dl2_file_read(path, DL2_PREDICTIONS_MAX_BYTES, &bytes, error));
    return dl2_prediction_table_parse(bytes.data, bytes.size, path, table, error);
}

void dl2_prediction_table_free(struct dl2_prediction_table *table)
{
    free(table->rows);
    *table = (struct dl2_prediction_table){0};
}

int dl2_prediction_table_join(const struct dl2_prediction_table *reference,
                              const struct dl2_prediction_table *own, size_t *found,
                              struct dl2_error *error)
{
    size_t pairs = 0;
    for (size_t i = 0, k = 0; i < reference->count; i++) {
        const size_t row = reference->order[i];
        int order = -1;
        while (k < own->count &&
               (order = strcmp(key_of(own, own->order[k]), key_of(reference, row))) < 0)
            k++;
        found[row] = k < own->count && order == 0 ? own->order[k] : own->count;
        if (found[row] == own->count)
            continue;
        const int32_t target = reference->rows[row].target, other = own->rows[found[row]].target;
        if (target != other)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s is of class %d there and of class %d here: the datasets "
                                 "differ",
                                 key_of(reference, row), target, other);
        pairs++;
    }
    if (!pairs)
        return dl2_error_set(error, DL2_ERR_FORMAT, "no image in common: %s here, %s there",
                             key_of(own, 0), key_of(reference, 0));
    return DL2_OK;
}
