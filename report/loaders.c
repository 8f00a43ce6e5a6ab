/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/loaders.h"

#include "common/json.h"
#include "common/scope.h"
#include "report/accuracy_text.h"
#include "report/inference.h"
#include "report/study.h"
#include "report/text_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One loader on one variant: its rounds. */
struct row {
    const char *storage, *jobs, *loader, *variant, *error;
    const json_t **rounds;
    size_t count;
};

struct rows {
    struct row **at;
    size_t count;
    const char *storage, *jobs; /* that are being visited */
};

static struct row *find_row(struct rows *rows, const char *loader, const char *variant)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = rows->at[i];
        if (strcmp(row->storage, rows->storage) == 0 && strcmp(row->jobs, rows->jobs) == 0 &&
            strcmp(row->loader, loader) == 0 && strcmp(row->variant, variant) == 0)
            return row;
    }
    struct row *row = dl2_keep(1, sizeof *row, "the loaders");
    row->storage = rows->storage;
    row->jobs = rows->jobs;
    row->loader = dl2_text_copy(loader);
    row->variant = dl2_text_copy(variant);
    rows->at = dl2_keep_more(rows->at, rows->count, sizeof(struct row *));
    return rows->at[rows->count++] = row;
}

/* Loaders, variants, rounds. */
static bool visit_round(void *context, const char *path, const char *const *names, size_t depth)
{
    json_t *json = NULL;
    struct dl2_error error = DL2_ERROR_INIT;
    if (depth < 2)
        return true;
    struct row *row = find_row(context, names[0], names[1]);
    if (dl2_json_load(path, "dl2-loader/1", &json, &error) < 0) {
        row->error = dl2_text("%s", error.message);
        return false;
    }
    const char *why = dl2_json_get_text(dl2_keep_json(json), "error", NULL);
    if (why)
        row->error = why;
    else {
        row->rounds = dl2_keep_more(row->rounds, row->count, sizeof *row->rounds);
        row->rounds[row->count++] = json;
    }
    return false;
}

/* Storages, numbers of workers. */
static bool visit_setup(void *context, const char *path, const char *const *names, size_t depth)
{
    struct rows *rows = context;
    if (depth == 0)
        return true;
    rows->storage = dl2_text_copy(names[0]);
    rows->jobs = strncmp(names[1], "jobs-", 5) == 0 ? dl2_text_copy(names[1] + 5) : names[1];
    dl2_walk(path, visit_round, rows);
    return false;
}

/* A figure of each round; NAN: it is not known. */
static struct dl2_estimate estimate(const struct row *row, const char *part, const char *field,
                                    const char *per, double scale)
{
    DL2_AUTO_FREE double *values = dl2_room(row->count + 1, sizeof *values, "the loaders");
    size_t count = 0;
    for (size_t i = 0; i < row->count; i++) {
        const json_t *from = part ? json_object_get(row->rounds[i], part) : row->rounds[i];
        const double value =
            dl2_json_get_real(from, field, NAN) / (per ? dl2_json_get_real(from, per, NAN) : 1);
        if (isfinite(value))
            values[count++] = scale * value;
    }
    return dl2_estimate_mean(values, count);
}

static const struct row *find_first(const struct rows *rows, const struct row *of)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->at[i]->storage, of->storage) == 0 &&
            strcmp(rows->at[i]->jobs, of->jobs) == 0 &&
            strcmp(rows->at[i]->variant, of->variant) == 0 &&
            strcmp(rows->at[i]->loader, "dl2") == 0)
            return rows->at[i];
    return NULL;
}

static void add_row(struct dl2_text_table *table, const struct rows *rows, const struct row *row)
{
    static const struct {
        size_t cell;
        const char *part, *field, *per;
        double scale;
        int digits;
    } figures[] = {{4, "load", "images_per_second", NULL, 1, 0},
                   {6, "load", "images_per_second", "cores", 1, 0},
                   {7, "load", "disk_bytes", "images", 1e-3, 1},
                   {8, "device", "images_per_second", NULL, 1, 0},
                   {9, "device", "wait", NULL, 100, 1},
                   {10, "device", "busy", NULL, 100, 1}};
    const struct row *first = find_first(rows, row);
    const double rate = estimate(row, "load", "images_per_second", NULL, 1).mean;
    const double most = first ? estimate(first, "load", "images_per_second", NULL, 1).mean : NAN;
    const char **cells = dl2_text_row(table);
    cells[0] = row->storage;
    cells[1] = row->jobs;
    cells[2] = row->variant;
    cells[3] = row->loader;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        const struct dl2_estimate own =
            estimate(row, figures[i].part, figures[i].field, figures[i].per, figures[i].scale);
        cells[figures[i].cell] = dl2_text_estimate(&own, figures[i].digits);
    }
    cells[5] = row != first && isfinite(most / rate) ? dl2_number("%.2f", most / rate) : NULL;
    cells[11] = dl2_number("%.0f", estimate(row, NULL, "peak_memory_bytes", NULL, 1e-6).mean);
}

struct dl2_words dl2_loaders_lines(const char *folder)
{
    static const char *const heads[DL2_TEXT_HEADS][DL2_TEXT_COLUMNS] = {
        {"", "", "", "", "loads alone,", "dl2's", "a core,", "disk,", "with a device:", "it waits,",
         "it is busy,", "memory,"},
        {"storage", "workers", "variant", "loader", "images/s", "times", "images/s", "kB/image",
         "images/s", "%", "%", "MB"}};
    struct rows rows = {0};
    struct dl2_words lines = {0};
    struct dl2_text_table table = {0};
    dl2_walk(dl2_text("%s/loaders", folder), visit_setup, &rows);
    if (!rows.count)
        return lines;
    for (size_t h = 0; h < DL2_TEXT_HEADS; h++)
        memcpy(dl2_text_row(&table), heads[h], sizeof heads[h]);
    for (size_t i = 0; i < rows.count; i++)
        if (rows.at[i]->count)
            add_row(&table, &rows, rows.at[i]);
    const char **texts = dl2_text_lines(&table);
    for (size_t i = 0; i < table.count; i++)
        dl2_words_add(&lines, texts[i]);
    for (size_t i = 0; i < rows.count; i++)
        if (rows.at[i]->error)
            dl2_words_add(&lines, dl2_text("%s, %s workers, %s: %s failed: %s", rows.at[i]->storage,
                                           rows.at[i]->jobs, rows.at[i]->variant,
                                           rows.at[i]->loader, rows.at[i]->error));
    for (size_t i = 0; i < rows.count; i++) /* one version is all rounds' */
        if (rows.at[i]->count && json_object_get(rows.at[i]->rounds[0], "package")) {
            const json_t *round = rows.at[i]->rounds[0];
            const char *line =
                dl2_text("%s: %s %s", rows.at[i]->loader, dl2_json_get_text(round, "package", ""),
                         dl2_json_get_text(round, "version", ""));
            bool said = false;
            for (size_t l = 0; l < lines.count; l++)
                said |= strcmp(lines.at[l], line) == 0;
            if (!said)
                dl2_words_add(&lines, line);
        }
    dl2_words_add(&lines, "Means over rounds, ± half a 95% interval. \"times\": dl2's rate over "
                          "this one. The device takes a fixed number of images a second, which "
                          "synthetic batches show.");
    return lines;
}
