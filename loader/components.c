/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/components.h"

#include "common/scope.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 256 };

/* A component, or a part of one that was joined to another: `parent` is its number then. */
struct part {
    struct dl2_component found;
    uint32_t parent; /* its own number: it is a root */
    uint32_t number; /* of a root in the next slice; 0: no voxel of this slice is of it */
};

struct kept {
    struct dl2_component *items;
    uint32_t count;
    uint64_t seen, step; /* every step-th is kept */
};

struct scan {
    size_t size[3], slice; /* voxels of a slice */
    unsigned mask_fill;
    uint32_t *numbers;  /* [slice]: of the last voxel that was seen at each place; 0: background */
    struct part *parts; /* from 1 on */
    uint32_t count, room;
    struct kept kept[CLASSES];
    int status;
    struct dl2_error *error;
};

/* ---- parts ---- */

static uint32_t root_of(struct scan *scan, uint32_t number)
{
    struct part *parts = scan->parts;
    while (parts[number].parent != number)
        number = parts[number].parent = parts[parts[number].parent].parent;
    return number;
}

static void extend(struct dl2_component *found, const struct dl2_component *other)
{
    for (int i = 0; i < 3; i++) {
        found->first[i] = other->first[i] < found->first[i] ? other->first[i] : found->first[i];
        found->end[i] = other->end[i] > found->end[i] ? other->end[i] : found->end[i];
    }
}

/* The number of both parts together; 0 is none. */
static uint32_t join(struct scan *scan, uint32_t one, uint32_t other)
{
    one = one ? root_of(scan, one) : 0;
    other = other ? root_of(scan, other) : 0;
    if (!one || !other || one == other)
        return one ? one : other;
    const uint32_t low = one < other ? one : other, high = one < other ? other : one;
    extend(&scan->parts[low].found, &scan->parts[high].found);
    scan->parts[high].parent = low;
    return low;
}

/* 0 and scan->status after an error. */
static uint32_t add_part(struct scan *scan, const struct dl2_component *voxel)
{
    const uint32_t number = scan->count + 1;
    if (number >= scan->room) {
        const uint32_t room = 2 * scan->room + 64; /* below 4 times a slice's voxels */
        struct part *grown = dl2_realloc(scan->parts, room, sizeof *grown);
        if (!grown) {
            scan->status = dl2_error_memory(scan->error, "components of labels");
            return 0;
        }
        scan->parts = grown;
        scan->room = room;
    }
    scan->parts[number] = (struct part){*voxel, number, 0};
    return scan->count = number;
}

/* ---- components that have ended ---- */

static int keep(struct scan *scan, const struct dl2_component *found)
{
    struct kept *kept = &scan->kept[found->class];
    if (!kept->items)
        DL2_TRY(DL2_NEW(&kept->items, DL2_COMPONENTS, "components of labels", scan->error));
    if (kept->count == DL2_COMPONENTS) {
        for (uint32_t i = 0; i < DL2_COMPONENTS / 2; i++)
            kept->items[i] = kept->items[2 * (size_t)i];
        kept->count = DL2_COMPONENTS / 2;
        kept->step *= 2;
    }
    kept->step = kept->step ? kept->step : 1;
    if (kept->seen++ % kept->step == 0)
        kept->items[kept->count++] = *found;
    return DL2_OK;
}

/* After a slice: keeps what has ended, and numbers the others anew from 1 on. */
static int end_slice(struct scan *scan)
{
    uint32_t count = 0;
    if (!scan->count)
        return DL2_OK;
    for (size_t i = 0; i < scan->slice; i++)
        if (scan->numbers[i]) {
            scan->numbers[i] = root_of(scan, scan->numbers[i]);
            scan->parts[scan->numbers[i]].number = 1;
        }
    for (uint32_t k = 1; k <= scan->count; k++) {
        struct part *part = &scan->parts[k];
        if (part->parent == k && !part->number)
            DL2_TRY(keep(scan, &part->found));
        else if (part->parent == k)
            part->number = ++count;
    }
    for (size_t i = 0; i < scan->slice; i++)
        scan->numbers[i] = scan->numbers[i] ? scan->parts[scan->numbers[i]].number : 0;
    for (uint32_t k = 1; k <= scan->count; k++) {
        const struct part part = scan->parts[k];
        if (part.parent == k && part.number)
            scan->parts[part.number] = (struct part){part.found, part.number, 0};
    }
    scan->count = count;
    return DL2_OK;
}

/* ---- the scan ---- */

/* The number at a place if it is of the class, else 0. */
static uint32_t number_at(const struct scan *scan, size_t place, uint8_t class)
{
    const uint32_t number = scan->numbers[place];
    return number && scan->parts[number].found.class == class ? number : 0;
}

/* `place` is the voxel's in its slice z. */
static void see_voxel(struct scan *scan, size_t z, size_t place, uint8_t class)
{
    const size_t y = place / scan->size[2], x = place % scan->size[2];
    const struct dl2_component voxel = {{(uint32_t)z, (uint32_t)y, (uint32_t)x},
                                        {(uint32_t)z + 1, (uint32_t)y + 1, (uint32_t)x + 1},
                                        class};
    uint32_t number = number_at(scan, place, class); /* of the slice before */
    if (y)
        number = join(scan, number, number_at(scan, place - scan->size[2], class));
    if (x)
        number = join(scan, number, number_at(scan, place - 1, class));
    if (!number)
        number = add_part(scan, &voxel);
    else
        extend(&scan->parts[number = root_of(scan, number)].found, &voxel);
    scan->numbers[place] = number;
}

static void see_labels(void *context, uint64_t first, const uint8_t *labels, size_t count)
{
    struct scan *scan = context;
    size_t z = (size_t)(first / scan->slice), place = (size_t)(first % scan->slice);
    for (size_t i = 0; i < count && scan->status == DL2_OK; i++) {
        if (labels[i] && labels[i] != scan->mask_fill)
            see_voxel(scan, z, place, labels[i]);
        else
            scan->numbers[place] = 0;
        if (scan->status == DL2_OK && ++place == scan->slice) {
            scan->status = end_slice(scan);
            place = 0;
            z++;
        }
    }
}

/* After the last slice. */
static int collect(struct scan *scan, struct dl2_component **out, uint32_t *count)
{
    *count = 0;
    for (uint32_t k = 1; k <= scan->count; k++)
        DL2_TRY(keep(scan, &scan->parts[k].found));
    for (unsigned c = 0; c < CLASSES; c++)
        *count += scan->kept[c].count;
    if (!*count)
        return DL2_OK;
    DL2_TRY(DL2_NEW(out, *count, "components of labels", scan->error));
    for (unsigned c = 0, at = 0; c < CLASSES; at += scan->kept[c++].count)
        if (scan->kept[c].count)
            memcpy(*out + at, scan->kept[c].items, scan->kept[c].count * sizeof **out);
    return DL2_OK;
}

static void free_scan(struct scan *scan)
{
    free(scan->numbers);
    free(scan->parts);
    for (unsigned c = 0; c < CLASSES; c++)
        free(scan->kept[c].items);
}

int dl2_components_find(struct dl2_volume *labels, unsigned mask_fill, struct dl2_component **out,
                        uint32_t *count, struct dl2_error *error)
{
    const struct dl2_volume_info *info = dl2_volume_info(labels);
    DL2_CLEANUP(free_scan)
    struct scan scan = {.slice = info->size[1] * info->size[2],
                        .mask_fill = mask_fill,
                        .status = DL2_OK,
                        .error = error};
    *out = NULL;
    memcpy(scan.size, info->size, sizeof scan.size);
    if (scan.slice > UINT32_MAX / 8)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "components of labels: a slice of %zux%zu voxels passes the limit of "
                             "2^29",
                             info->size[1], info->size[2]);
    DL2_TRY(DL2_NEW(&scan.numbers, scan.slice, "components of labels", error));
    DL2_TRY(dl2_volume_scan_labels(labels, see_labels, &scan, error));
    DL2_TRY(scan.status);
    return collect(&scan, out, count);
}
