/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/targets.h"

#include <stdlib.h>
#include <string.h>

static const char *next_name(const char *name)
{
    return name + strlen(name) + 1;
}

static int check_target_names(const struct dl2_target_list *list, struct dl2_error *error)
{
    const char *name = list->names;
    for (unsigned i = 0; i < list->count; i++, name = next_name(name)) {
        if (!*name || *name == '.' || strpbrk(name, "/ "))
            return dl2_error_set(
                error, DL2_ERR_ARGUMENT,
                "targets: '%s' is not an extension; give some with commas, such as "
                "json,txt",
                name);
        const char *before = list->names;
        for (unsigned j = 0; j < i; j++, before = next_name(before))
            if (!strcmp(before, name))
                return dl2_error_set(error, DL2_ERR_ARGUMENT, "targets: '%s' comes twice", name);
    }
    return DL2_OK;
}

int dl2_target_list_parse(struct dl2_target_list *list, const char *text, struct dl2_error *error)
{
    if (!text)
        return DL2_OK;
    DL2_TRY(dl2_format(&list->text, error, "%s", text));
    DL2_TRY(dl2_format(&list->names, error, "%s", text));
    list->count = 1;
    for (char *comma = list->names; (comma = strchr(comma, ',')); *comma++ = '\0')
        list->count++;
    return check_target_names(list, error);
}

void dl2_target_list_free(struct dl2_target_list *list)
{
    free(list->text);
    free(list->names);
}

int dl2_targets_read(const struct dl2_target_list *list, const struct dl2_dataset *dataset,
                     uint32_t index, struct dl2_target_bytes *targets, struct dl2_error *error)
{
    const char *name = list->names;
    for (unsigned i = 0; i < list->count; i++, name = next_name(name)) {
        const int status = dl2_dataset_read_sidecar(dataset, index, name, &targets[i].bytes, error);
        DL2_TRY(status);
        targets[i].there = status == 1;
    }
    return DL2_OK;
}

void dl2_targets_place(const struct dl2_target_list *list, struct dl2_target_bytes *from,
                       struct dl2_target_bytes *to, struct dl2_target *out)
{
    for (unsigned i = 0; i < list->count; i++) {
        const struct dl2_target_bytes unused = to[i];
        out[i] = (struct dl2_target){NULL, 0};
        if (!from)
            continue;
        to[i] = from[i];
        from[i] = unused;
        if (to[i].there)
            out[i] = (struct dl2_target){to[i].bytes.size ? to[i].bytes.data : (const uint8_t *)"",
                                         to[i].bytes.size};
    }
}

size_t dl2_targets_memory(const struct dl2_target_bytes *targets, unsigned count)
{
    size_t bytes = count * sizeof *targets;
    for (unsigned i = 0; i < count; i++)
        bytes += targets[i].bytes.capacity;
    return bytes;
}

void dl2_targets_free(struct dl2_target_bytes *targets, size_t count)
{
    for (size_t i = 0; targets && i < count; i++)
        dl2_bytes_free(&targets[i].bytes);
    free(targets);
}
