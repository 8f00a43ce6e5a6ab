/* SPDX-License-Identifier: BSD-2-Clause */
/* Evicts files of a dataset, or parts of them, from the page cache. */
#include "common/file.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"
#include "loader/engine.h"
#include "loader/loader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages of one mincore() call, which fills a byte for each. */
#define PAGES_AT_ONCE 65536

struct pages {
    uint64_t all, resident;
};

struct dl2_extent dl2_extent_of_pages(uint64_t offset, uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t start = offset / page * page;
    const uint64_t end = (offset + bytes + page - 1) / page * page;
    return (struct dl2_extent){start, end - start};
}

void dl2_evict_extent(int fd, uint64_t offset, uint64_t bytes)
{
    const struct dl2_extent pages = dl2_extent_of_pages(offset, bytes);
    posix_fadvise(fd, (off_t)pages.start, (off_t)pages.bytes, POSIX_FADV_DONTNEED);
}

/* Writes dirty pages to the disk first, since only clean pages can be evicted. */
static void evict_clean_pages(int fd, uint64_t size)
{
    sync_file_range(fd, 0, (off_t)size,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                        SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int count_pages(const char *path, int fd, uint64_t size, unsigned char *resident,
                       struct pages *pages, struct dl2_error *error)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t part = PAGES_AT_ONCE * page;
    for (uint64_t at = 0; at < size; at += part) {
        const size_t bytes = (size_t)(size - at < part ? size - at : part);
        const size_t count = (bytes + (size_t)page - 1) / (size_t)page;
        void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)at);
        if (memory == MAP_FAILED)
            return dl2_error_system(error, "%s: can't be mapped", path);
        const int status = mincore(memory, bytes, resident) == 0
                               ? DL2_OK
                               : dl2_error_system(error, "%s: its pages can't be counted", path);
        munmap(memory, bytes);
        DL2_TRY(status);
        pages->all += count;
        for (size_t i = 0; i < count; i++)
            pages->resident += resident[i] & 1;
    }
    return DL2_OK;
}

static int evict_file(const char *path, unsigned char *resident, struct pages *pages,
                      struct dl2_error *error)
{
    DL2_CLEANUP(dl2_close_file) const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return dl2_error_system(error, "%s: can't be opened", path);
    struct stat info;
    if (fstat(fd, &info) != 0)
        return dl2_error_system(error, "%s: its size can't be read", path);
    if (info.st_size <= 0)
        return DL2_OK;
    evict_clean_pages(fd, (uint64_t)info.st_size);
    return count_pages(path, fd, (uint64_t)info.st_size, resident, pages, error);
}

/* Lists the files that samples lie in, sorted, with few duplicates: neighbors share a shard. */
static size_t list_paths(const struct dl2_dataset *dataset, const char **paths)
{
    size_t count = 0;
    for (size_t i = 0; i < dl2_dataset_image_count(dataset); i++) {
        struct dl2_location location;
        if (!dl2_dataset_locate(dataset, i, &location) || location.remote)
            continue;
        if (!count || paths[count - 1] != location.path)
            paths[count++] = location.path;
    }
    qsort(paths, count, sizeof *paths, dl2_compare_texts);
    return count;
}

int dl2_fetch_evict(const struct dl2_dataset *dataset, double *resident, struct dl2_error *error)
{
    *resident = 1;
    DL2_AUTO_FREE const char **paths = NULL;
    DL2_AUTO_FREE unsigned char *map = NULL;
    DL2_TRY(DL2_NEW(&paths, dl2_dataset_image_count(dataset), "names of files", error));
    DL2_TRY(DL2_NEW(&map, PAGES_AT_ONCE, "names of files", error));
    const size_t count = list_paths(dataset, paths);
    struct pages pages = {0};
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(paths[i], paths[i - 1]))
            DL2_TRY(evict_file(paths[i], map, &pages, error));
    if (!count)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "this kind of dataset lies in memory as a whole, or with a server: "
                             "there is nothing to evict");
    *resident = pages.all ? (double)pages.resident / (double)pages.all : 0;
    return DL2_OK;
}
