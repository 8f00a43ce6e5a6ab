/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/bad_samples.h"

#include "common/memory.h"
#include "loader/loader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dl2_bad_samples_init(struct dl2_bad_samples *list, uint32_t samples, struct dl2_error *error)
{
    *list = (struct dl2_bad_samples){0};
    return DL2_NEW(&list->known, samples, "a list of bad samples", error);
}

void dl2_bad_samples_free(struct dl2_bad_samples *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->samples[i].text);
    free(list->samples);
    free(list->texts);
    free(list->known);
    *list = (struct dl2_bad_samples){0};
}

int dl2_bad_samples_add(struct dl2_bad_samples *list, uint32_t index, const char *text,
                        struct dl2_error *error)
{
    if (dl2_bad_samples_has(list, index))
        return 0;
    DL2_TRY(dl2_grow(&list->samples, list->count, sizeof *list->samples, error));
    list->samples[list->count].index = index;
    DL2_TRY(dl2_format(&list->samples[list->count].text, error, "%s", text));
    list->count++;
    atomic_store_explicit(&list->known[index], 1, memory_order_relaxed);
    return 1;
}

static int compare_indices(const void *left, const void *right)
{
    const struct dl2_bad_sample *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

const char *const *dl2_bad_samples_texts(struct dl2_bad_samples *list)
{
    const char **texts = dl2_realloc(list->texts, list->count ? list->count : 1, sizeof *texts);
    if (!texts)
        return NULL;
    list->texts = texts;
    if (list->count)
        qsort(list->samples, list->count, sizeof *list->samples, compare_indices);
    for (size_t i = 0; i < list->count; i++)
        texts[i] = list->samples[i].text;
    return texts;
}

int dl2_loader_check_bad(double max_bad, uint64_t bad, uint64_t samples, const char *first,
                         struct dl2_error *error)
{
    const double counted = samples < 100 ? 100 : (double)samples;
    if (max_bad >= 1 || (double)bad <= max_bad * counted)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "at least %" PRIu64 " of %" PRIu64 " images cannot be used, above the "
                         "limit of %g%%: `dl2-load check` names them all; mend or remove them, or "
                         "raise --max-bad (max_bad in Python and C); one is %s",
                         bad, samples, 100 * max_bad, first);
}
