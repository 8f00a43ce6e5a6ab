/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of containers, and finding the right row. */
#include "dataset/container.h"

#include "config.h"
#include "dataset/packed/packed.h"
#include "dataset/write/writer.h"

#include <string.h>

/* Each is defined by its own file. */
extern const struct dl2_container dl2_container_folder, dl2_container_tar, dl2_container_gulp,
    dl2_container_idx, dl2_container_list_files, dl2_container_postgresql;

static const struct dl2_container *const rows[] = {
    &dl2_container_folder,     &dl2_container_tar,        &dl2_container_gulp,
    &dl2_container_idx,        &dl2_container_list_files,
#ifdef HAVE_LIBPQ
    &dl2_container_postgresql,
#endif
};

enum { ROWS = sizeof rows / sizeof *rows };

const struct dl2_container *dl2_container_at(size_t number)
{
    return number < ROWS ? rows[number] : NULL;
}

const struct dl2_container *dl2_container_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i]->name, name))
            return rows[i];
    return NULL;
}

const struct dl2_container *dl2_container_of_index(uint32_t kind)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i]->shards && rows[i]->shards->index_kind == kind)
            return rows[i];
    return NULL;
}

const char *dl2_container_name(size_t number)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i]->can_write && !rows[i]->sink && number-- == 0)
            return rows[i]->name;
    return NULL;
}

const char *dl2_container_summary(const char *name)
{
    const struct dl2_container *container = dl2_container_find(name);
    return container ? container->summary : NULL;
}

const char *dl2_container_leaves_out(const char *name)
{
    return dl2_container_find(name)->leaves_out;
}

bool dl2_container_holds_clips(const char *name)
{
    const struct dl2_container *container = dl2_container_find(name);
    return container && (container->has_clip_paths || container->shards);
}

bool dl2_container_has_clip_items(const char *name)
{
    const struct dl2_container *container = dl2_container_find(name);
    return container && container->shards && container->shards->holds_clips;
}

bool dl2_container_has_class_folders(const char *name)
{
    const struct dl2_container *container = dl2_container_find(name);
    return container && container->has_class_folders;
}

bool dl2_container_is_packed(const char *name)
{
    const struct dl2_container *container = dl2_container_find(name);
    return container && (container->shards || container->sink);
}

void dl2_container_list(FILE *out)
{
    for (size_t i = 0; i < ROWS; i++)
        fprintf(out, "%s\t%s\t%s\t%s\n", rows[i]->name, rows[i]->can_write ? "read,write" : "read",
                rows[i]->extensions, rows[i]->summary);
}
