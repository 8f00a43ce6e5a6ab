/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/work_part.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int dl2_work_part_parse(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_work_part *part = value;
    char rest;
    const size_t digits = strspn(text, "0123456789/");
    if (sscanf(text, "%5u/%5u%c", &part->number, &part->count, &rest) == 2 && !text[digits] &&
        part->number >= 1 && part->number <= part->count && part->count <= DL2_WORK_PARTS_MAX)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "'%s' is not a part such as 2/4: I/N with I from 1 to N, and N at most %d",
                         text, DL2_WORK_PARTS_MAX);
}

void dl2_work_part_name(const struct dl2_work_part *part, char out[DL2_WORK_PART_NAME])
{
    out[0] = '\0';
    if (part->count)
        snprintf(out, DL2_WORK_PART_NAME, "-%u-of-%u", part->number, part->count);
}

/* ---- Division */

struct load {
    uint64_t cost;
    uint16_t part;
};

static bool is_less(const struct load *a, const struct load *b)
{
    return a->cost != b->cost ? a->cost < b->cost : a->part < b->part;
}

/* Restores a heap whose root has grown. */
static void sift_down(struct load *heap, unsigned count)
{
    for (unsigned at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &heap[at]))
            return;
        const struct load other = heap[at];
        heap[at] = heap[child];
        heap[child] = other;
    }
}

int dl2_work_divide(const uint64_t *costs, size_t count, unsigned parts, uint16_t *owners,
                    struct dl2_error *error)
{
    struct load *heap;
    DL2_TRY(DL2_NEW(&heap, parts, "parts", error));
    for (unsigned i = 0; i < parts; i++)
        heap[i].part = (uint16_t)(i + 1); /* in order, and so a heap */
    for (size_t i = 0; i < count; i++) {
        owners[i] = heap[0].part;
        heap[0].cost += costs[i];
        sift_down(heap, parts);
    }
    free(heap);
    return DL2_OK;
}

/* ---- Files of parts */

static char *path_of(const char *stem, const struct dl2_work_part *part)
{
    char name[DL2_WORK_PART_NAME], *path;
    dl2_work_part_name(part, name);
    return asprintf(&path, "%s%s", stem, name) < 0 ? NULL : path;
}

int dl2_part_file_open(struct dl2_part_file *file, const char *stem,
                       const struct dl2_work_part *part, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = path_of(stem, part);
    if (!path)
        return dl2_error_memory(error, "a path");
    int status = DL2_OK;
    file->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file->fd < 0)
        status = dl2_error_system(error, "%s: can't be written", path);
    else if (flock(file->fd, LOCK_EX | LOCK_NB) != 0)
        status =
            errno == EWOULDBLOCK
                ? dl2_error_set(error, DL2_ERR_CANCELED,
                                "another process is making part %u/%u: it has %s locked; give each "
                                "process a part of its own",
                                part->number, part->count, path)
                : dl2_error_system(
                      error, "%s: can't be locked; parts need a file system with flock()", path);
    else if (ftruncate(file->fd, 0) != 0)
        status = dl2_error_system(error, "%s: can't be written", path);
    if (status < 0)
        dl2_part_file_close(file);
    return status;
}

int dl2_part_file_end(const struct dl2_part_file *file, const char *digest, struct dl2_error *error)
{
    const size_t size = strlen(digest);
    return pwrite(file->fd, digest, size, 0) == (ssize_t)size
               ? DL2_OK
               : dl2_error_system(error, "the mark of a part that has ended can't be written");
}

void dl2_part_file_close(struct dl2_part_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

unsigned dl2_part_files_missing(const char *stem, unsigned count, const char *digest,
                                unsigned *first)
{
    unsigned missing = 0;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    for (unsigned i = count; i > 0; i--) {
        DL2_AUTO_FREE char *path = path_of(stem, &(struct dl2_work_part){i, count});
        const bool ended = path && dl2_is_file(path) &&
                           dl2_file_read(path, 1024, &text, NULL) == DL2_OK &&
                           text.size == strlen(digest) && !memcmp(text.data, digest, text.size);
        if (ended)
            continue;
        missing++;
        *first = i;
    }
    return missing;
}

void dl2_part_files_remove(const char *stem)
{
    const char *const base = dl2_path_base(stem);
    DL2_AUTO_FREE char *folder_path = dl2_folder_of(stem);
    DL2_CLEANUP(dl2_close_folder) DIR *folder = folder_path ? opendir(folder_path) : NULL;
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        unsigned number, count;
        char rest;
        if (strncmp(entry->d_name, base, strlen(base)) != 0 ||
            sscanf(entry->d_name + strlen(base), "-%5u-of-%5u%c", &number, &count, &rest) != 2)
            continue;
        DL2_AUTO_FREE char *path = dl2_path_join(folder_path, entry->d_name);
        if (path)
            unlink(path);
    }
}
