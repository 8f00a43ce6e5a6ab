/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/foreground.h"

#include "common/scope.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct voxels {
    uint32_t count;
    uint64_t numbers[]; /* within the volume */
};

struct dl2_foreground {
    pthread_mutex_t mutex; /* guards `found` */
    struct voxels **found; /* [samples]; NULL: not looked for yet */
    uint32_t samples;
    unsigned mask_fill;
    atomic_size_t memory;
};

int dl2_foreground_create(uint32_t samples, unsigned mask_fill, struct dl2_foreground **out,
                          struct dl2_error *error)
{
    *out = NULL;
    DL2_AUTO_FREE struct dl2_foreground *foreground = NULL;
    DL2_TRY(DL2_NEW(&foreground, 1, "a loader", error));
    DL2_TRY(DL2_NEW(&foreground->found, samples, "a loader", error));
    foreground->samples = samples;
    foreground->mask_fill = mask_fill;
    atomic_init(&foreground->memory, sizeof *foreground + samples * sizeof *foreground->found);
    pthread_mutex_init(&foreground->mutex, NULL);
    *out = foreground;
    foreground = NULL;
    return DL2_OK;
}

void dl2_foreground_destroy(struct dl2_foreground *foreground)
{
    if (!foreground)
        return;
    for (uint32_t i = 0; i < foreground->samples; i++)
        free(foreground->found[i]);
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
static struct voxels *look(struct dl2_volume *labels, unsigned mask_fill, struct dl2_error *error,
                           int *status)
{
    struct scan scan = {.mask_fill = mask_fill, .step = 1};
    *status = dl2_volume_scan_labels(labels, see_labels, &scan, error);
    if (*status < 0)
        return NULL;
    struct voxels *found = dl2_calloc(1, sizeof *found + scan.count * sizeof *found->numbers);
    if (!found)
        *status = dl2_error_memory(error, "the foreground of a volume");
    for (uint32_t i = 0; found && i < scan.count; i++)
        found->numbers[i] = scan.numbers[i];
    if (found)
        found->count = scan.count;
    return found;
}

int dl2_foreground_draw(struct dl2_foreground *foreground, uint32_t index, const char *path,
                        struct dl2_volume *labels, struct dl2_random *random, size_t voxel[3],
                        struct dl2_error *error)
{
    const size_t *size = dl2_volume_info(labels)->size;
    int status = DL2_OK;
    pthread_mutex_lock(&foreground->mutex);
    struct voxels *found = foreground->found[index];
    pthread_mutex_unlock(&foreground->mutex);
    if (!found) {
        struct voxels *made = look(labels, foreground->mask_fill, error, &status);
        DL2_TRY(status);
        pthread_mutex_lock(&foreground->mutex);
        if (!foreground->found[index]) {
            foreground->found[index] = made;
            atomic_fetch_add(&foreground->memory,
                             sizeof *made + made->count * sizeof *made->numbers);
            made = NULL;
        }
        found = foreground->found[index];
        pthread_mutex_unlock(&foreground->mutex);
        free(made); /* another worker was first */
    }
    if (!found->count)
        return 0;
    const uint64_t number = found->numbers[dl2_random_below(random, found->count)];
    voxel[2] = number % size[2];
    voxel[1] = number / size[2] % size[1];
    voxel[0] = number / size[2] / size[1];
    /* The file may have been replaced by a smaller one. */
    if (voxel[0] >= size[0])
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: its labels are not of the size that they had before", path);
    return 1;
}
