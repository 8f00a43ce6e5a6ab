/* SPDX-License-Identifier: BSD-2-Clause */
/* Class lists that go together by name. */
#include "dataset/container.h"

#include "common/quote.h"
#include "common/scope.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 5 }; /* names of a list in a message */

struct named {
    const char *name;
    int32_t label;
};

static int compare_named(const void *left, const void *right)
{
    return strcmp(((const struct named *)left)->name, ((const struct named *)right)->name);
}

/* The list by name. A new array. */
static int sort_names(const char *const *names, unsigned count, struct named **out,
                      struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(out, count + 1u, "classes", error));
    for (unsigned i = 0; i < count; i++)
        (*out)[i] = (struct named){names[i], (int32_t)i};
    qsort(*out, count, sizeof **out, compare_named);
    return DL2_OK;
}

static int refuse_twins(const char *path, const struct named *sorted, unsigned count,
                        struct dl2_error *error)
{
    for (unsigned i = 1; i < count; i++)
        if (!strcmp(sorted[i - 1].name, sorted[i].name))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "two classes of %s are called '%s', and class lists go together "
                                 "by name: give one of them another name",
                                 path, sorted[i].name);
    return DL2_OK;
}

int dl2_classes_check_names(const char *path, const char *const *names, unsigned count,
                            struct dl2_error *error)
{
    DL2_AUTO_FREE struct named *sorted = NULL;
    DL2_TRY(sort_names(names, count, &sorted, error));
    return refuse_twins(path, sorted, count, error);
}

static int refuse_unknown(const struct dl2_dataset *dataset, const char *path,
                          const struct dl2_known_classes *list, int label, struct dl2_error *error)
{
    size_t images = 0;
    char known[512] = "";
    for (size_t i = 0; i < dataset->count; i++)
        images += dl2_reader_entry(dataset, dl2_reader_number(dataset, i)).sample.label == label;
    for (unsigned i = 0; i < list->count && i < SHOWN; i++)
        dl2_list_name(known, sizeof known, list->names[i]);
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "%s: %zu of its images are of the class '%s', and %s has no such class, "
                         "but %s%s",
                         path, images, dataset->classes[label], list->of, known,
                         list->count > SHOWN ? ", ..." : "");
}

/* Puts the numbers that the dataset's classes have in the list into `labels`. */
static int number_classes(const struct dl2_dataset *dataset, const char *path,
                          const struct dl2_known_classes *list, int32_t *labels,
                          struct dl2_error *error)
{
    DL2_AUTO_FREE struct named *sorted = NULL;
    DL2_TRY(sort_names(list->names, list->count, &sorted, error));
    DL2_TRY(refuse_twins(list->of, sorted, list->count, error));
    DL2_TRY(dl2_classes_check_names(path, (const char *const *)dataset->classes,
                                    dataset->class_count, error));
    for (unsigned i = 0; i < dataset->class_count; i++) {
        const struct named wanted = {dataset->classes[i], 0};
        const struct named *found =
            bsearch(&wanted, sorted, list->count, sizeof *sorted, compare_named);
        labels[i] = found ? found->label : -1;
    }
    for (size_t i = 0; i < dataset->count; i++) {
        const int label = dl2_reader_entry(dataset, dl2_reader_number(dataset, i)).sample.label;
        if (label >= 0 && labels[label] < 0)
            return refuse_unknown(dataset, path, list, label, error);
    }
    return DL2_OK;
}

int dl2_dataset_use_classes(struct dl2_dataset *dataset, const char *path,
                            const struct dl2_known_classes *list, struct dl2_error *error)
{
    DL2_AUTO_FREE int32_t *labels = NULL;
    char *text, **names;
    unsigned same = 0, here = 0;
    while (same < list->count && same < dataset->class_count &&
           !strcmp(list->names[same], dataset->classes[same]))
        same++;
    if (same == list->count && same == dataset->class_count)
        return DL2_OK;
    if (!dataset->class_count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s has no classes, and %s has: its samples would have no label", path,
                             list->of);
    DL2_TRY(DL2_NEW(&labels, dataset->class_count, "classes", error));
    DL2_TRY(number_classes(dataset, path, list, labels, error));
    for (unsigned i = 0; i < dataset->class_count; i++)
        here += labels[i] >= 0;
    DL2_TRY(dl2_format(&text, error,
                       "labels are numbers of the %u classes of %s, by name: it has %u of them",
                       list->count, list->of, here));
    DL2_TRY(dl2_list_append(&dataset->messages, &dataset->message_count, text, error));
    names = dl2_copy_texts(list->names, list->count);
    if (!names)
        return dl2_error_memory(error, "classes");
    free(dataset->classes);
    dataset->classes = names;
    dataset->class_count = list->count;
    dataset->labels = labels;
    labels = NULL;
    return DL2_OK;
}
