/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/foreground.h"

#include "common/scope.h"
#include "loader/components.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct found {
    uint32_t count;
    struct dl2_component *components; /* by class; NULL: voxels */
    uint64_t numbers[];               /* of voxels, within the volume */
};

struct dl2_foreground {
    pthread_mutex_t mutex; /* guards `found` */
    struct found **found;  /* [samples]; NULL: not looked for yet */
    uint32_t samples;
    unsigned mask_fill;
    enum dl2_foreground_rule rule;
    atomic_size_t memory;
};

int dl2_foreground_create(uint32_t samples, const struct dl2_loader_config *config,
                          struct dl2_foreground **out, struct dl2_error *error)
{
    *out = NULL;
    DL2_AUTO_FREE struct dl2_foreground *foreground = NULL;
    DL2_TRY(DL2_NEW(&foreground, 1, "a loader", error));
    DL2_TRY(DL2_NEW(&foreground->found, samples, "a loader", error));
    foreground->samples = samples;
    foreground->mask_fill = config->mask_fill;
    foreground->rule = config->foreground_rule;
    atomic_init(&foreground->memory, sizeof *foreground + samples * sizeof *foreground->found);
    pthread_mutex_init(&foreground->mutex, NULL);
    *out = foreground;
    foreground = NULL;
    return DL2_OK;
}

static void free_found(struct found *found)
{
    if (found)
        free(found->components);
    free(found);
}

void dl2_foreground_destroy(struct dl2_foreground *foreground)
{
    if (!foreground)
        return;
    for (uint32_t i = 0; i < foreground->samples; i++)
        free_found(foreground->found[i]);
    free(foreground->found);
    pthread_mutex_destroy(&foreground->mutex);
    free(foreground);
}

size_t dl2_foreground_memory(const struct dl2_foreground *foreground)
{
    return atomic_load(&foreground->memory);
}

struct scan {
    uint64_t numbers[DL2_FOREGROUND_VOXELS];
    uint32_t count;
    unsigned mask_fill;
    uint64_t seen, step; /* every step-th voxel of the foreground is kept */
};

static void keep(struct scan *scan, uint64_t number)
{
    if (scan->seen++ % scan->step)
        return;
    if (scan->count == DL2_FOREGROUND_VOXELS) {
        for (uint32_t i = 0; i < DL2_FOREGROUND_VOXELS / 2; i++)
            scan->numbers[i] = scan->numbers[2 * i];
        scan->count = DL2_FOREGROUND_VOXELS / 2;
        scan->step *= 2;
    }
    if ((scan->seen - 1) % scan->step == 0)
        scan->numbers[scan->count++] = number;
}

static void see_labels(void *context, uint64_t first, const uint8_t *labels, size_t count)
{
    struct scan *scan = context;
    for (size_t i = 0; i < count; i++)
        if (labels[i] && labels[i] != scan->mask_fill)
            keep(scan, first + i);
}

/* New memory; NULL and an error. */
static struct found *look_for_voxels(struct dl2_volume *labels, unsigned mask_fill,
                                     struct dl2_error *error, int *status)
{
    struct scan scan = {.mask_fill = mask_fill, .step = 1};
    *status = dl2_volume_scan_labels(labels, see_labels, &scan, error);
    if (*status < 0)
        return NULL;
    struct found *found = dl2_calloc(1, sizeof *found + scan.count * sizeof *found->numbers);
    if (!found)
        *status = dl2_error_memory(error, "the foreground of a volume");
    for (uint32_t i = 0; found && i < scan.count; i++)
        found->numbers[i] = scan.numbers[i];
    if (found)
        found->count = scan.count;
    return found;
}

static struct found *look_for_components(struct dl2_volume *labels, unsigned mask_fill,
                                         struct dl2_error *error, int *status)
{
    struct found *found;
    *status = DL2_NEW(&found, 1, "the foreground of a volume", error);
    if (*status == DL2_OK)
        *status = dl2_components_find(labels, mask_fill, &found->components, &found->count, error);
    if (*status == DL2_OK)
        return found;
    free_found(found);
    return NULL;
}

static size_t memory_of(const struct found *found)
{
    return sizeof *found +
           found->count * (found->components ? sizeof *found->components : sizeof *found->numbers);
}

/* What was found in a sample before, or is now. */
static int look(struct dl2_foreground *foreground, uint32_t index, struct dl2_volume *labels,
                struct found **out, struct dl2_error *error)
{
    int status = DL2_OK;
    pthread_mutex_lock(&foreground->mutex);
    *out = foreground->found[index];
    pthread_mutex_unlock(&foreground->mutex);
    if (*out)
        return DL2_OK;
    struct found *made = (foreground->rule == DL2_FOREGROUND_COMPONENT
                              ? look_for_components
                              : look_for_voxels)(labels, foreground->mask_fill, error, &status);
    DL2_TRY(status);
    pthread_mutex_lock(&foreground->mutex);
    if (!foreground->found[index]) {
        foreground->found[index] = made;
        atomic_fetch_add(&foreground->memory, memory_of(made));
        made = NULL;
    }
    *out = foreground->found[index];
    pthread_mutex_unlock(&foreground->mutex);
    free_found(made); /* another worker was first */
    return DL2_OK;
}

/* First a class, then a component of it. */
static const struct dl2_component *draw_component(const struct found *found,
                                                  struct dl2_random *random)
{
    const struct dl2_component *all = found->components;
    uint32_t classes = 1, first = 0, end = 0;
    for (uint32_t i = 1; i < found->count; i++)
        classes += all[i].class != all[i - 1].class;
    for (uint32_t left = dl2_random_below(random, classes) + 1; left; left--)
        for (first = end++; end < found->count && all[end].class == all[first].class;)
            end++;
    return &all[first + dl2_random_below(random, end - first)];
}

int dl2_foreground_draw(struct dl2_foreground *foreground, uint32_t index, const char *path,
                        struct dl2_volume *labels, struct dl2_random *random,
                        struct dl2_foreground_box *box, struct dl2_error *error)
{
    const size_t *size = dl2_volume_info(labels)->size;
    struct found *found;
    DL2_TRY(look(foreground, index, labels, &found, error));
    if (!found->count)
        return 0;
    if (found->components) {
        const struct dl2_component *component = draw_component(found, random);
        for (int i = 0; i < 3; i++) {
            box->first[i] = component->first[i];
            box->end[i] = component->end[i];
        }
    } else {
        const uint64_t number = found->numbers[dl2_random_below(random, found->count)];
        box->first[2] = number % size[2];
        box->first[1] = number / size[2] % size[1];
        box->first[0] = number / size[2] / size[1];
        for (int i = 0; i < 3; i++)
            box->end[i] = box->first[i] + 1;
    }
    /* The file may have been replaced by a smaller one. */
    for (int i = 0; i < 3; i++)
        if (box->end[i] > size[i])
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: its labels are not of the size that they had before", path);
    return 1;
}
