/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files FOLDER/XX/HASH, of the 32 digits of a hash of object and unit, XX their first two:
 *
 *     struct head | object | bytes
 *
 * A file's time of modification is that of its last use. Each process knows how many bytes there
 * were when it looked last, and how many it has written since. When these pass the limit, or a part
 * of it that other processes may also have written, it looks again and removes the oldest.
 */
#include "remote/disk_cache.h"

#include "common/file.h"
#include "common/scope.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    LOOK_AGAIN_PART = 32, /* of the limit, written since the last look */
    KEEP_PERCENT = 90,    /* of the limit, when entries are removed */
    OLD_TEMPORARY = 3600, /* seconds: its writer was killed */
    MAX_OBJECT = 8192
};

/* All numbers are little-endian. */
struct head {
    char magic[8];
    uint64_t sum; /* XXH3 of all that follows */
    uint64_t start, offset, size;
    uint64_t object_size;
};

static const char magic[8] = "dl2cach1";

struct dl2_disk_cache {
    char *folder;
    uint64_t limit;
    /* No mutex: it might be locked for ever in the child of a fork. */
    atomic_uint_fast64_t known, written;
    atomic_bool looking;
    atomic_uint_fast64_t damaged, lost, number;
    atomic_int reason;
};

/* ---- Names */

static char *entry_path(const struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit)
{
    char *path = NULL;
    const XXH128_hash_t hash =
        XXH3_128bits_withSeed(unit->object, strlen(unit->object), unit->start);
    return asprintf(&path, "%s/%02x/%016" PRIx64 "%016" PRIx64, cache->folder,
                    (unsigned)(hash.high64 >> 56), (uint64_t)hash.high64, (uint64_t)hash.low64) < 0
               ? NULL
               : path;
}

static bool is_hex(const char *text, size_t length)
{
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* ---- Room */

struct found_entry {
    char name[36]; /* "XX/HASH" */
    uint64_t bytes;
    int64_t used_ns;
};

struct found_entries {
    struct dl2_bytes list; /* struct found_entry */
    uint64_t bytes;        /* of them */
};

static int compare_use(const void *a, const void *b)
{
    const struct found_entry *one = a, *two = b;
    return (one->used_ns > two->used_ns) - (one->used_ns < two->used_ns);
}

static void add_found(struct found_entries *found, const char *folder, const char *name,
                      const struct stat *info)
{
    struct found_entry entry = {.used_ns = dl2_mtime_ns(info)};
    const uint64_t bytes = (uint64_t)info->st_size, blocks = (uint64_t)info->st_blocks * 512;
    entry.bytes = blocks > bytes ? blocks : bytes;
    snprintf(entry.name, sizeof entry.name, "%.2s/%.32s", folder, name);
    if (dl2_bytes_append(&found->list, &entry, sizeof entry, NULL) == DL2_OK)
        found->bytes += entry.bytes;
}

static void look_into(int root, const char *name, struct found_entries *found)
{
    DL2_CLEANUP(dl2_close_folder) DIR *folder = dl2_open_folder(root, name);
    const struct dirent *entry;
    struct stat info;
    while (folder && (entry = readdir(folder))) {
        if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (is_hex(entry->d_name, 32))
            add_found(found, name, entry->d_name, &info);
        else if (!strncmp(entry->d_name, ".new-", 5) && info.st_mtime < time(NULL) - OLD_TEMPORARY)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
}

/* Removes the entries that were used least recently; what is left, in bytes. */
static uint64_t make_room(const struct dl2_disk_cache *cache)
{
    struct found_entries found = {DL2_BYTES_INIT, 0};
    DL2_CLEANUP(dl2_close_folder) DIR *folder = dl2_open_folder(AT_FDCWD, cache->folder);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (is_hex(entry->d_name, 2))
            look_into(dirfd(folder), entry->d_name, &found);
    if (found.bytes > cache->limit) {
        const struct found_entry *entries = (struct found_entry *)found.list.data;
        const size_t count = found.list.size / sizeof *entries;
        qsort(found.list.data, count, sizeof *entries, compare_use);
        for (size_t i = 0; i < count && found.bytes > cache->limit / 100 * KEEP_PERCENT; i++)
            if (unlinkat(dirfd(folder), entries[i].name, 0) == 0 || errno == ENOENT)
                found.bytes -= entries[i].bytes;
    }
    dl2_bytes_free(&found.list);
    return found.bytes;
}

/* Before `size` bytes more are written. One thread looks; the others write meanwhile. */
static void count_write(struct dl2_disk_cache *cache, uint64_t size)
{
    const uint64_t written = atomic_fetch_add(&cache->written, size) + size;
    if (atomic_load(&cache->known) + written <= cache->limit &&
        written <= cache->limit / LOOK_AGAIN_PART)
        return;
    if (atomic_exchange(&cache->looking, true))
        return;
    atomic_store(&cache->written, size);
    atomic_store(&cache->known, make_room(cache));
    atomic_store(&cache->looking, false);
}

/* ---- Entries */

static uint64_t sum_of(const struct head *head, const char *object, const uint8_t *data,
                       size_t size)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t sum = 0;
    if (!state)
        return 0;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &head->start, sizeof *head - offsetof(struct head, start));
    XXH3_64bits_update(state, object, strlen(object));
    XXH3_64bits_update(state, data, size);
    sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum ? sum : 1;
}

/* 1: good; 0: damaged; -1: not this unit's (a hash of 128 bits was the same), or not readable. */
static int read_entry_of(int fd, const struct dl2_cache_unit *unit, struct dl2_bytes *bytes,
                         uint64_t *offset)
{
    struct head head;
    struct stat info;
    char object[MAX_OBJECT];
    const size_t object_size = strlen(unit->object);
    if (fstat(fd, &info) < 0)
        return -1;
    if (dl2_read_at(fd, 0, &head, sizeof head) != (int64_t)sizeof head ||
        memcmp(head.magic, magic, sizeof magic) != 0)
        return 0;
    const uint64_t size = le64toh(head.size), rest = sizeof head + le64toh(head.object_size);
    if (le64toh(head.object_size) >= MAX_OBJECT || size > INT64_MAX - rest ||
        (uint64_t)info.st_size != rest + size)
        return 0;
    if (le64toh(head.object_size) != object_size || le64toh(head.start) != unit->start)
        return -1;
    if (dl2_read_at(fd, sizeof head, object, object_size) != (int64_t)object_size)
        return 0;
    if (memcmp(object, unit->object, object_size) != 0)
        return -1;
    if (dl2_bytes_resize(bytes, (size_t)size, NULL) < 0)
        return -1;
    if (dl2_read_at(fd, rest, bytes->data, (size_t)size) != (int64_t)size)
        return 0;
    *offset = le64toh(head.offset);
    return sum_of(&head, unit->object, bytes->data, bytes->size) == le64toh(head.sum);
}

bool dl2_disk_cache_get(struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit,
                        struct dl2_bytes *bytes, uint64_t *offset)
{
    DL2_AUTO_FREE char *path = entry_path(cache, unit);
    DL2_CLEANUP(dl2_close_file)
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    const int good = fd < 0 ? -1 : read_entry_of(fd, unit, bytes, offset);
    if (good == 1)
        futimens(fd, NULL);
    if (good == 0) {
        unlink(path);
        atomic_fetch_add(&cache->damaged, 1);
    }
    return good == 1;
}

static bool write_entry(struct dl2_disk_cache *cache, const char *path, const struct head *head,
                        const char *object, const uint8_t *data, size_t size)
{
    DL2_AUTO_FREE char *temporary = NULL;
    const int folder = (int)(dl2_path_base(path) - path);
    if (dl2_format(&temporary, NULL, "%.*s.new-%ld-%" PRIu64, folder, path, (long)getpid(),
                   (uint64_t)atomic_fetch_add(&cache->number, 1)) < 0)
        return false;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(temporary, flags, 0666);
    if (fd < 0 && errno == ENOENT && dl2_make_folder_of(path, NULL) == DL2_OK)
        fd = open(temporary, flags, 0666);
    bool good = fd >= 0 && dl2_write_all(fd, head, sizeof *head) &&
                dl2_write_all(fd, object, strlen(object)) && dl2_write_all(fd, data, size);
    good = (fd < 0 || close(fd) == 0) && good && rename(temporary, path) == 0;
    const int reason = errno;
    if (!good && fd >= 0)
        unlink(temporary);
    errno = reason;
    return good;
}

void dl2_disk_cache_put(struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit,
                        uint64_t offset, const uint8_t *data, size_t size)
{
    struct head head = {.start = htole64(unit->start),
                        .offset = htole64(offset),
                        .size = htole64(size),
                        .object_size = htole64(strlen(unit->object))};
    if (strlen(unit->object) >= MAX_OBJECT || size > cache->limit / 2)
        return;
    memcpy(head.magic, magic, sizeof magic);
    head.sum = htole64(sum_of(&head, unit->object, data, size));
    DL2_AUTO_FREE char *path = entry_path(cache, unit);
    count_write(cache, size + sizeof head + strlen(unit->object));
    errno = ENOMEM;
    if (!path || !write_entry(cache, path, &head, unit->object, data, size)) {
        atomic_store(&cache->reason, errno);
        atomic_fetch_add(&cache->lost, 1);
    }
}

void dl2_disk_cache_remove(struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit)
{
    DL2_AUTO_FREE char *path = entry_path(cache, unit);
    if (path && unlink(path) == 0)
        atomic_fetch_add(&cache->damaged, 1);
}

void dl2_disk_cache_get_stats(const struct dl2_disk_cache *cache, struct dl2_remote_stats *stats)
{
    stats->cache_damaged = atomic_load(&cache->damaged);
    stats->cache_lost = atomic_load(&cache->lost);
    stats->cache_reason = atomic_load(&cache->reason);
}

/* ---- The folder */

int dl2_disk_cache_open(const char *folder, uint64_t limit, struct dl2_disk_cache **out,
                        struct dl2_error *error)
{
    *out = NULL;
    DL2_TRY(dl2_make_folders(folder, error));
    if (access(folder, R_OK | W_OK | X_OK) < 0)
        return dl2_error_system(error, "%s: cannot be a cache", folder);
    DL2_AUTO_FREE struct dl2_disk_cache *cache = NULL;
    DL2_TRY(DL2_NEW(&cache, 1, "a cache", error));
    DL2_TRY(dl2_format(&cache->folder, error, "%s", folder));
    cache->limit = limit;
    atomic_store(&cache->known, make_room(cache));
    *out = cache;
    cache = NULL;
    return DL2_OK;
}

void dl2_disk_cache_close(struct dl2_disk_cache *cache)
{
    if (!cache)
        return;
    free(cache->folder);
    free(cache);
}
