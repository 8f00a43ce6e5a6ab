/* SPDX-License-Identifier: BSD-2-Clause */
/* What the readers of all containers share. */
#include "dataset/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dl2_reader_set_classes(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                           struct dl2_error *error)
{
    dataset->classes = dl2_copy_texts(names, count);
    dataset->class_count = count;
    return dataset->classes ? DL2_OK : dl2_error_memory(error, "a dataset");
}

int dl2_reader_set_parts(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                         struct dl2_error *error)
{
    for (unsigned i = 0; i < count; i++) {
        uint8_t part;
        DL2_TRY(dl2_part_add(&dataset->parts, names[i], strlen(names[i]), &part, error));
        if (part != DL2_PARTS + i)
            return dl2_error_set(error, DL2_ERR_FORMAT, "\"%.200s\" is no name for a split",
                                 names[i]);
    }
    return DL2_OK;
}

int dl2_reader_make_names(struct dl2_dataset *dataset, struct dl2_error *error)
{
    if (!dataset->count || !dl2_reader_entry(dataset, 0).inner)
        return DL2_OK;
    dataset->names = dl2_calloc(dataset->count, sizeof *dataset->names);
    dataset->name_count = dataset->names ? dataset->count : 0;
    return dataset->names ? DL2_OK : dl2_error_memory(error, "a dataset");
}

void dl2_reader_free_names(struct dl2_dataset *dataset)
{
    for (size_t i = 0; i < dataset->name_count; i++)
        free(atomic_load(&dataset->names[i]));
    free(dataset->names);
}

const char *dl2_reader_path(const struct dl2_dataset *dataset, size_t number)
{
    const struct dl2_entry entry = dl2_reader_entry(dataset, number);
    if (!entry.inner)
        return entry.sample.path;
    char *name = atomic_load_explicit(&dataset->names[number], memory_order_acquire), *made;
    if (name)
        return name;
    if (asprintf(&made, "%s[%s]", entry.sample.path, entry.inner) < 0)
        return entry.inner;
    if (atomic_compare_exchange_strong(&dataset->names[number], &name, made))
        return made;
    free(made); /* another thread was faster */
    return name;
}
