/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/sample_weights.h"

#include "common/file.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line of the file, whose text has zeros in place of what ended the key and the line. */
struct line {
    const char *key;
    double weight;
    size_t number;
};

static int compare_lines(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->key, ((const struct line *)b)->key);
}

/* Cuts a line, which ends with 0, into key and weight; false: it has no such form. */
static bool cut_line(char *text, struct line *line)
{
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    size_t start = length;
    while (start && text[start - 1] != ' ' && text[start - 1] != '\t')
        start--;
    if (start < 2 || start == length)
        return false;
    char *end;
    line->weight = strtod(text + start, &end);
    while (start && (text[start - 1] == ' ' || text[start - 1] == '\t'))
        text[--start] = '\0';
    line->key = text;
    return start && !*end && isfinite(line->weight) && line->weight >= 0;
}

/* Finds the lines of `text`, and sorts them by their keys, none of which may come twice. */
static int find_lines(const char *path, struct dl2_bytes *text, struct line **out, size_t *count,
                      struct dl2_error *error)
{
    size_t most = 1, number = 1;
    char *at = (char *)text->data, *end = at + text->size;
    for (size_t i = 0; i < text->size; i++)
        most += text->data[i] == '\n';
    *count = 0;
    DL2_TRY(DL2_NEW(out, most, "weights", error));
    struct line *const lines = *out;
    for (; at < end; number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *next = newline ? newline : end;
        *next = '\0';
        struct line *line = &lines[*count];
        const bool is_text = strlen(at) == (size_t)(next - at);
        if (!is_text || at[strspn(at, " \t\r")]) {
            if (!is_text || !cut_line(at, line))
                return dl2_error_set(error, DL2_ERR_FORMAT,
                                     "%s: line %zu is not KEY WEIGHT, with a weight of at least 0 "
                                     "such as in 'train/rose/0017 2.5'",
                                     path, number);
            line->number = number;
            ++*count;
        }
        at = next + 1;
    }
    qsort(lines, *count, sizeof *lines, compare_lines);
    for (size_t i = 1; i < *count; i++)
        if (!strcmp(lines[i].key, lines[i - 1].key))
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: lines %zu and %zu are both of %s",
                                 path, lines[i - 1].number, lines[i].number, lines[i].key);
    return DL2_OK;
}

static int match_lines(const char *path, const struct line *lines, size_t count,
                       const struct dl2_dataset *dataset, double *weights, struct dl2_error *error)
{
    const size_t samples = dl2_dataset_count(dataset);
    struct dl2_sample sample, first = {0};
    size_t missing = 0;
    for (size_t i = 0; i < samples; i++) {
        dl2_dataset_sample(dataset, i, &sample);
        const struct line wanted = {.key = sample.key};
        const struct line *line = bsearch(&wanted, lines, count, sizeof *lines, compare_lines);
        weights[i] = line ? line->weight : 0;
        if (!line && !missing++)
            first = sample;
    }
    return missing ? dl2_error_set(error, DL2_ERR_FORMAT,
                                   "%s: no weight for %s, and none for %zu of %zu images in all; "
                                   "give each a line, with 0 for those that shall not come",
                                   path, first.key, missing, samples)
                   : DL2_OK;
}

int dl2_sample_weights_read(const char *path, const struct dl2_dataset *dataset, double **out,
                            struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_AUTO_FREE struct line *lines = NULL;
    DL2_AUTO_FREE double *weights = NULL;
    size_t count;
    *out = NULL;
    DL2_TRY(DL2_NEW(&weights, dl2_dataset_count(dataset), "weights", error));
    DL2_TRY(dl2_file_read(path, DL2_SAMPLE_WEIGHTS_MAX_BYTES, &text, error));
    const int status = dl2_text_begin(&text, error);
    dl2_error_prefix(error, "%s", path);
    DL2_TRY(status);
    DL2_TRY(find_lines(path, &text, &lines, &count, error));
    DL2_TRY(match_lines(path, lines, count, dataset, weights, error));
    *out = weights;
    weights = NULL;
    return DL2_OK;
}
