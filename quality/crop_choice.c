/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/crop_choice.h"

#include "common/json.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An image's scores by one metric, added up over the variants. */
struct candidate {
    const char *key; /* of the first variant's JSON */
    size_t variants; /* that have a score */
    double sum;      /* higher is better */
};

const json_t *dl2_crop_rows(const json_t *scores)
{
    return json_object_get(json_array_get(json_object_get(scores, "variants"), 0), "per_image");
}

const json_t *dl2_crop_row(const json_t *scores, const char *key)
{
    size_t i;
    json_t *row;
    json_array_foreach(dl2_crop_rows(scores), i, row)
    {
        if (strcmp(dl2_json_get_text(row, "key", ""), key) == 0)
            return row;
    }
    return NULL;
}

size_t dl2_crop_find(const struct dl2_dataset *dataset, const char *key, struct dl2_sample *sample)
{
    const size_t count = dl2_dataset_count(dataset);
    for (size_t index = 0; index < count; index++) {
        dl2_dataset_sample(dataset, index, sample);
        if (strcmp(sample->key, key) == 0)
            return index;
    }
    return count;
}

/* ---- Metrics */

/* Does any image of each variant have a score of this metric? */
static bool all_have(json_t *const *scores, size_t count, const char *metric)
{
    for (size_t v = 0; v < count; v++) {
        bool any = false;
        size_t i;
        json_t *row;
        json_array_foreach(dl2_crop_rows(scores[v]), i, row)
        {
            any |= json_is_number(json_object_get(row, metric));
        }
        if (!any)
            return false;
    }
    return true;
}

static void add_metric(json_t *const *scores, size_t count, const char *metric,
                       struct dl2_crop_choice *choice)
{
    for (size_t m = 0; m < choice->metric_count; m++)
        if (strcmp(choice->metrics[m], metric) == 0)
            return;
    if (choice->metric_count == DL2_CROP_METRICS || strlen(metric) >= sizeof choice->metrics[0] ||
        !all_have(scores, count, metric))
        return;
    choice->lower_is_better[choice->metric_count] =
        dl2_json_lists(json_object_get(scores[0], "lower_is_better"), metric);
    strcpy(choice->metrics[choice->metric_count++], metric);
}

static void find_metrics(json_t *const *scores, size_t count, struct dl2_crop_choice *choice)
{
    const json_t *entry = json_array_get(json_object_get(scores[0], "variants"), 0);
    const char *name;
    json_t *metric;
    add_metric(scores, count, "ssim", choice);
    json_object_foreach(json_object_get(entry, "metrics"), name, metric)
    {
        add_metric(scores, count, name, choice);
    }
}

/* ---- Images */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->key, ((const struct candidate *)b)->key);
}

static int compare_sums(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->sum != y->sum ? (x->sum > y->sum) - (x->sum < y->sum) : strcmp(x->key, y->key);
}

/* The images of the first variant, by key. */
static size_t list_images(const json_t *rows, struct candidate *images)
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", NULL);
        if (key)
            images[count++] = (struct candidate){.key = key};
    }
    qsort(images, count, sizeof *images, compare_keys);
    return count;
}

static void add_scores(const json_t *rows, const char *metric, bool lower_is_better,
                       struct candidate *images, size_t count)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const struct candidate wanted = {.key = dl2_json_get_text(row, "key", "")};
        struct candidate *found = bsearch(&wanted, images, count, sizeof *images, compare_keys);
        const double score = dl2_json_get_real(row, metric, NAN);
        if (found && isfinite(score)) {
            found->variants++;
            found->sum += lower_is_better ? -score : score;
        }
    }
}

/* Moves those that all variants have to the front, from the worst to the best. */
static size_t rank(struct candidate *images, size_t count, size_t variants)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (images[i].variants == variants)
            images[left++] = images[i];
    if (left)
        qsort(images, left, sizeof *images, compare_sums);
    return left;
}

static int add_pick(struct dl2_crop_choice *choice, const char *key, const char *metric,
                    const char *kind, struct dl2_error *error)
{
    size_t p = 0;
    while (p < choice->count && strcmp(choice->picks[p].key, key) != 0)
        p++;
    if (p == choice->count)
        choice->picks[choice->count++] = (struct dl2_crop_pick){key, json_array()};
    return json_array_append_new(choice->picks[p].of,
                                 json_pack("{s:s, s:s}", "metric", metric, "kind", kind)) == 0
               ? DL2_OK
               : dl2_error_memory(error, "the choice of crops");
}

/* The candidate that the reference has and that is the nearest to `wanted`, in steps of `step`;
 * NULL: none. Keys that are not UTF-8 are not as they were in JSON. */
static const char *find_key(const struct candidate *images, size_t count, size_t wanted, int step,
                            const struct dl2_dataset *reference)
{
    struct dl2_sample sample;
    for (size_t i = wanted; i < count; i += (size_t)step) /* below 0 it wraps */
        if (dl2_crop_find(reference, images[i].key, &sample) < dl2_dataset_count(reference))
            return images[i].key;
    return NULL;
}

int dl2_crop_choose(json_t *const *scores, size_t count, const struct dl2_dataset *reference,
                    struct dl2_crop_choice *choice, struct dl2_error *error)
{
    const size_t rows = json_array_size(dl2_crop_rows(scores[0]));
    *choice = (struct dl2_crop_choice){0};
    DL2_AUTO_FREE struct candidate *images = NULL;
    DL2_TRY(DL2_NEW(&images, rows + 1, "images", error));
    find_metrics(scores, count, choice);
    for (size_t m = 0; m < choice->metric_count; m++) {
        const size_t all = list_images(dl2_crop_rows(scores[0]), images);
        for (size_t v = 0; v < count; v++)
            add_scores(dl2_crop_rows(scores[v]), choice->metrics[m], choice->lower_is_better[m],
                       images, all);
        const size_t ranked = rank(images, all, count);
        const struct {
            const char *kind, *key;
        } found[] = {{"worst", find_key(images, ranked, 0, 1, reference)},
                     {"median", find_key(images, ranked, ranked / 2, 1, reference)},
                     {"best", find_key(images, ranked, ranked - 1, -1, reference)}};
        for (size_t i = 0; i < sizeof found / sizeof *found; i++)
            if (found[i].key)
                DL2_TRY(add_pick(choice, found[i].key, choice->metrics[m], found[i].kind, error));
    }
    return DL2_OK;
}

void dl2_crop_choice_free(struct dl2_crop_choice *choice)
{
    for (size_t p = 0; p < choice->count; p++)
        json_decref(choice->picks[p].of);
    choice->count = 0;
}
