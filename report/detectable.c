/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/detectable.h"

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

/* The keys, each ended by 0, as rows of a table. */
static void take_keys(const char *keys, size_t count, struct dl2_prediction_table *table)
{
    const char *key = keys;
    for (size_t i = 0; i < count; i++, key += strlen(key) + 1)
        if (strlen(key) >= table->key_size)
            table->key_size = strlen(key) + 1;
    table->keys = dl2_room(count, table->key_size, "validation images");
    for (table->count = 0, key = keys; table->count < count; key += strlen(key) + 1)
        strcpy(table->keys + table->count++ * table->key_size, key);
}

static const char *describe(const struct dl2_detectable *detectable, double tolerance)
{
    const bool grouped = detectable->units < detectable->images;
    const char *text = dl2_text("%zu validation images", detectable->images);
    if (grouped)
        text = dl2_text("%s in %zu groups", text, detectable->units);
    if (detectable->units < 2)
        return dl2_text("%s: no change can be shown.", text);
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
                        text, dl2_count_points(&dl2_accuracy_top1, tolerance));
    return detectable->half_copies >= tolerance && grouped
               ? dl2_text(
                     "%s Whether a loss of less than %s can be shown depends on how alike they "
                     "are.",
                     text, dl2_count_points(&dl2_accuracy_top1, tolerance))
               : text;
}

/* What a split of dl2-train's default share shows, if it is drawn without regard to groups. */
static const char *describe_drawn(size_t images, bool grouped, double tolerance)
{
    const size_t drawn = (size_t)((double)images * DL2_DRAWN_SHARE + 0.5);
    DL2_AUTO_FREE size_t *sizes = dl2_room(drawn + 1, sizeof *sizes, "validation images");
    for (size_t i = 0; i < drawn; i++)
        sizes[i] = 1;
    const struct dl2_detectable detectable = dl2_detectable_of(sizes, drawn);
    return dl2_text(
        "Training draws the split, by default %.0f%% of %zu images for validation. %s%s",
        100 * DL2_DRAWN_SHARE, images, describe(&detectable, tolerance),
        grouped ? " Groups are not counted here: images of a group come into both "
                  "splits, and accuracies are too high; make splits that keep groups "
                  "together."
                : "");
}

int dl2_detectable_text(const char *keys, size_t count, size_t images,
                        const struct dl2_grouping *groups, double tolerance, const char **text,
                        struct dl2_error *error)
{
    struct dl2_prediction_table table = {0};
    struct dl2_study study = {.images = &table, .arch_count = 1};
    if (!count) {
        *text = images ? describe_drawn(images, groups, tolerance)
                       : "There is no list of the variants' images here, so how small a change the "
                         "validation images can show is not known before training.";
        return DL2_OK;
    }
    take_keys(keys, count, &table);
    const int status = groups ? dl2_study_group(&study, groups, error) : DL2_OK;
    if (status == DL2_OK) {
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
