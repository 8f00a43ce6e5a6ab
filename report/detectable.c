/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/detectable.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "common/stats.h"
#include "report/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same as dl2_mean_squares() and dl2_variance_of_images() make of it. */
static double half_of(double images, double units, double size)
{
    const double unit = fmax(1, 2 * size / 3) / images;
    return 100 * dl2_student_quantile(0.025, units - 1) *
           sqrt(DL2_CHANGED_IMAGES * size / images + unit * unit);
}

struct dl2_detectable dl2_detectable_of(const size_t *sizes, size_t units)
{
    double images = 0, squares = 0;
    for (size_t u = 0; u < units; u++) {
        images += (double)sizes[u];
        squares += (double)sizes[u] * (double)sizes[u];
    }
    return (struct dl2_detectable){
        .images = (size_t)images,
        .units = units,
        .half = units > 1 ? half_of(images, (double)units, 1) : INFINITY,
        .half_copies = units > 1 ? half_of(images, (double)units, squares / images) : INFINITY,
    };
}

/* The keys of a variant's validation images, into an empty table. False: it has none to compare. */
static bool read_keys(FILE *list, struct dl2_prediction_table *table)
{
    static const char split[] = "val/";
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes keys = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, list) > 0) {
        json_auto_t *image = json_loads(line, 0, NULL);
        const char *key = dl2_json_get_text(image, "key", "");
        const size_t size = strlen(key) + 1;
        if (strncmp(key, split, strlen(split)) != 0)
            continue;
        dl2_append(&keys, key, size);
        table->key_size = size > table->key_size ? size : table->key_size;
        table->count++;
    }
    table->keys = dl2_room(table->count, table->key_size, "validation images");
    const char *key = (const char *)keys.data;
    for (size_t i = 0; i < table->count; i++, key += strlen(key) + 1)
        strcpy(table->keys + i * table->key_size, key);
    return table->count > 1;
}

/* The first variant's list; NULL: there is none. */
static FILE *open_list(const char *folder)
{
    char **names = NULL;
    FILE *list = NULL;
    const char *variants = dl2_text("%s/variants", folder);
    if (dl2_list_names(variants, &names, NULL) < 0)
        return NULL;
    for (char **name = names; *name && !list; name++)
        list = fopen(dl2_text("%s/%s/dl2-variant.jsonl", variants, *name), "r");
    dl2_free_list(names);
    return list;
}

static const char *describe(const struct dl2_detectable *detectable, double tolerance)
{
    const bool grouped = detectable->units < detectable->images;
    const char *text = dl2_text("%zu validation images", detectable->images);
    if (grouped)
        text = dl2_text("%s in %zu groups", text, detectable->units);
    text = dl2_text("%s: by their choice alone, 95%% intervals of a change will reach about %.1f "
                    "points to each side, where %.0f%% of the images change",
                    text, detectable->half, 100 * DL2_CHANGED_IMAGES);
    if (grouped)
        text = dl2_text("%s, and up to %.1f if images of a group change together", text,
                        detectable->half_copies);
    text = dl2_text("%s.", text);
    if (detectable->half >= tolerance)
        return dl2_text("%s Hardly any variant can be shown to lose less than %s: have more "
                        "validation images, or a larger tolerance.",
                        text, dl2_count_points(tolerance));
    return detectable->half_copies >= tolerance && grouped
               ? dl2_text(
                     "%s Whether a loss of less than %s can be shown depends on how alike they "
                     "are.",
                     text, dl2_count_points(tolerance))
               : text;
}

int dl2_detectable_text(const char *folder, const struct dl2_grouping *groups, double tolerance,
                        const char **text, struct dl2_error *error)
{
    FILE *list = open_list(folder);
    struct dl2_prediction_table table = {0};
    struct dl2_study study = {.images = &table, .arch_count = 1};
    *text = NULL;
    const bool any = list && read_keys(list, &table);
    if (list)
        fclose(list);
    int status = any && groups ? dl2_study_group(&study, groups, error) : DL2_OK;
    if (any && status == DL2_OK) {
        const size_t units = table.group ? table.group_count : table.count;
        DL2_AUTO_FREE size_t *sizes = dl2_room(units, sizeof *sizes, "groups of images");
        for (size_t i = 0; i < table.count; i++)
            sizes[table.group ? table.group[i] : i]++;
        const struct dl2_detectable detectable = dl2_detectable_of(sizes, units);
        *text = describe(&detectable, tolerance);
    }
    free(table.keys);
    return status;
}
