#include "dataset/packed.h"

#include "common/file.h"
#include "common/thread.h"
#include "dataset/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    /* Shards that are kept open, the first that are read; the others are opened for every read. */
    MAX_OPEN_SHARDS = 256,
    /* Names of samples for messages are made this many at a time, once one of them is asked for. */
    NAMES_AT_ONCE = 256,
};

#define MAX_INDEX_BYTES ((uint64_t)1 << 40)

static int no_memory(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a packed dataset");
}

struct shard {
    char *path;
    atomic_int fd; /* -1: not open */
};

struct packed {
    struct dl2_index index;
    void *map; /* the index file, or NULL where there is none: */
    size_t map_size;
    struct dl2_bytes block;
    uint32_t *chosen; /* numbers of the split's entries; NULL: all */
    struct shard *shards;
    atomic_uint open_shards;
    _Atomic(char **) *names; /* NAMES_AT_ONCE strings each, made when asked for */
    size_t name_blocks;
};

static int map_index(struct packed *packed, const char *path, struct dl2_error *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC), result = DL2_OK;
    if (fd < 0 || fstat(fd, &status) != 0)
        result = dl2_error_system(error, "%s: can't be read", path);
    else if (!S_ISREG(status.st_mode) || status.st_size == 0 ||
             (uint64_t)status.st_size > MAX_INDEX_BYTES)
        result = dl2_error_set(error, DL2_ERR_FORMAT, "%s: not an index", path);
    if (result == DL2_OK) {
        packed->map_size = (size_t)status.st_size;
        packed->map = mmap(NULL, packed->map_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        if (packed->map == MAP_FAILED) {
            packed->map = NULL;
            result = dl2_error_system(error, "%s: can't be read", path);
        }
    }
    if (fd >= 0)
        close(fd);
    if (result == DL2_OK) {
        result = dl2_index_open(packed->map, packed->map_size, &packed->index, error);
        if (result < 0)
            dl2_error_prefix(error, "%s (remove it to do without)", path);
    }
    return result;
}

static void unmap_index(struct packed *packed)
{
    if (packed->map)
        munmap(packed->map, packed->map_size);
    packed->map = NULL;
    packed->index = (struct dl2_index){0};
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct dl2_shard_file *)left)->name,
                  ((const struct dl2_shard_file *)right)->name);
}

/* Does the index speak of the shards that are there, with their sizes and times? */
static bool is_current(const struct dl2_index *index, const struct dl2_shard_files *list)
{
    if (index->is_outdated || index->shard_count != list->count || index->kind != list->kind)
        return false;
    struct dl2_shard_file *sorted = dl2_calloc(list->count, sizeof *sorted);
    bool same = sorted;
    if (sorted && list->count) {
        memcpy(sorted, list->files, list->count * sizeof *sorted);
        qsort(sorted, list->count, sizeof *sorted, compare_names);
    }
    for (uint32_t i = 0; same && i < index->shard_count; i++) {
        const struct dl2_index_shard shard = dl2_index_shard(index, i);
        const struct dl2_shard_file wanted = {.name = (char *)shard.name};
        const struct dl2_shard_file *found =
            bsearch(&wanted, sorted, list->count, sizeof *sorted, compare_names);
        uint64_t bytes;
        int64_t mtime_ns;
        /* To the second: not every file system, and not every copy, keeps more. */
        same = found && dl2_shard_file_stat(list, found, &bytes, &mtime_ns, NULL) == DL2_OK &&
               bytes == shard.bytes && mtime_ns / 1000000000 == shard.mtime_ns / 1000000000;
    }
    free(sorted);
    return same;
}

/* What an index that is out of date says of samples that still lie where they lay. */
static void adopt_sums(struct dl2_index_draft *draft, const struct dl2_index *old)
{
    for (size_t i = 0; i < draft->count; i++) {
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        const size_t number = dl2_index_find(old, dl2_index_draft_key(draft, i));
        if (number == SIZE_MAX)
            continue;
        const struct dl2_index_entry was = dl2_index_entry(old, number);
        if (was.flags & DL2_ENTRY_SUMMED && was.offset == entry->offset &&
            was.bytes == entry->bytes &&
            !strcmp(dl2_index_shard(old, was.shard).name, draft->shards[entry->shard].name)) {
            entry->sum = was.sum;
            entry->flags |= DL2_ENTRY_SUMMED;
        }
    }
}

static int scan_into(struct packed *packed, const struct dl2_shard_files *list,
                     struct dl2_error *error)
{
    struct dl2_scan scan = {0};
    int status = dl2_shard_files_scan(list, &scan, error);
    if (status == DL2_OK && packed->map)
        adopt_sums(&scan.draft, &packed->index);
    unmap_index(packed);
    if (status == DL2_OK) {
        status = dl2_index_draft_finish(&scan.draft, &packed->block, error);
        if (status < 0)
            dl2_error_prefix(error, "%s", list->root);
    }
    dl2_scan_free(&scan);
    if (status == DL2_OK)
        status = dl2_index_open(packed->block.data, packed->block.size, &packed->index, error);
    return status;
}

static char *inside(const char *path, const char *name)
{
    return dl2_is_folder(path) ? dl2_path_join(path, name) : NULL;
}

static int read_index(struct packed *packed, const char *path, const struct dl2_shard_files *list,
                      struct dl2_error *error)
{
    char *unfinished = inside(path, DL2_UNFINISHED_NAME), *file = inside(path, DL2_INDEX_NAME);
    int status = DL2_OK;
    if (unfinished && dl2_is_file(unfinished))
        status = dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s: this dataset was not written to its end; run the "
                               "dl2-transcode that was to make it again",
                               path);
    if (status == DL2_OK && file && dl2_is_file(file))
        status = map_index(packed, file, error);
    free(unfinished);
    free(file);
    DL2_TRY(status);
    if (packed->map && is_current(&packed->index, list))
        return DL2_OK;
    return scan_into(packed, list, error);
}

/* By the rule of dataset.h, items as a whole: frames of one film don't part. */
static int split_items(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                       uint8_t *part, struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    const struct dl2_index *index = &packed->index;
    const char **keys = dl2_calloc(index->count, sizeof *keys);
    int *labels = dl2_calloc(index->count, sizeof *labels);
    uint8_t *part_of_item = dl2_calloc(index->count, 1);
    size_t items = 0;
    int status = keys && labels && part_of_item ? DL2_OK : no_memory(error);
    for (size_t i = 0; status == DL2_OK && i < index->count; i++) {
        const struct dl2_index_entry entry = dl2_index_entry(index, i);
        if (entry.flags & DL2_ENTRY_FURTHER && items)
            continue;
        keys[items] = entry.key;
        labels[items++] = entry.label;
    }
    if (status == DL2_OK)
        status =
            dl2_dataset_assign_parts(dataset, options, keys, labels, items, part_of_item, error);
    for (size_t i = 0, item = 0; status == DL2_OK && i < index->count; i++) {
        if (!(dl2_index_entry(index, i).flags & DL2_ENTRY_FURTHER) || !item)
            item++;
        part[i] = part_of_item[item - 1];
    }
    free(keys);
    free(labels);
    free(part_of_item);
    return status;
}

static int choose(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                  struct dl2_error *error)
{
    struct packed *packed = dataset->state;
    const struct dl2_index *index = &packed->index;
    dataset->count = index->count;
    dataset->has_parts = index->has_parts;
    dataset->container = index->kind == DL2_INDEX_GULP ? "gulp" : "tar";
    dataset->notes = index->notes;
    const bool all = options->split == DL2_SPLIT_ALL;
    uint8_t *part = dl2_calloc(index->count, 1);
    packed->chosen = all ? NULL : dl2_calloc(index->count, sizeof *packed->chosen);
    int status = part && (all || packed->chosen) ? DL2_OK : no_memory(error);
    if (status == DL2_OK && !all && !index->has_parts)
        status = split_items(dataset, options, part, error);
    dataset->count = 0;
    for (size_t i = 0; status == DL2_OK && i < index->count; i++) {
        struct dl2_index_entry entry = dl2_index_entry(index, i);
        if (!index->has_parts)
            entry.part = part[i];
        dl2_dataset_note(dataset, entry.part, entry.label, entry.key);
        if (!dl2_dataset_wants(dataset, options->split, entry.part, entry.label))
            continue;
        if (packed->chosen)
            packed->chosen[dataset->count] = (uint32_t)i;
        dataset->count++;
    }
    free(part);
    return status;
}

static int set_classes(struct dl2_dataset *dataset, const struct dl2_index *index,
                       struct dl2_error *error)
{
    const char **names = dl2_calloc(index->class_count, sizeof *names);
    if (!names)
        return no_memory(error);
    for (uint32_t i = 0; i < index->class_count; i++)
        names[i] = dl2_index_class(index, i);
    int status = dl2_dataset_set_classes(dataset, names, index->class_count, error);
    free(names);
    return status;
}

static int prepare_shards(struct packed *packed, const char *root, struct dl2_error *error)
{
    const struct dl2_index *index = &packed->index;
    packed->shards = dl2_calloc(index->shard_count, sizeof *packed->shards);
    if (!packed->shards)
        return no_memory(error);
    for (uint32_t i = 0; i < index->shard_count; i++)
        atomic_init(&packed->shards[i].fd, -1);
    for (uint32_t i = 0; i < index->shard_count; i++)
        if (!(packed->shards[i].path = dl2_path_join(root, dl2_index_shard(index, i).name)))
            return no_memory(error);
    packed->name_blocks = (index->count + NAMES_AT_ONCE - 1) / NAMES_AT_ONCE;
    packed->names = dl2_calloc(packed->name_blocks, sizeof *packed->names);
    return packed->names ? DL2_OK : no_memory(error);
}

static int open_packed(struct dl2_dataset *dataset, const char *path,
                       const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct packed *packed = dl2_calloc(1, sizeof *packed);
    if (!packed)
        return no_memory(error);
    dataset->state = packed;
    struct dl2_shard_files list;
    DL2_TRY(dl2_shard_files_list(path, &list, error));
    int status = read_index(packed, path, &list, error);
    if (status == DL2_OK)
        status = prepare_shards(packed, list.root, error);
    dl2_shard_files_free(&list);
    DL2_TRY(status);
    DL2_TRY(set_classes(dataset, &packed->index, error));
    return choose(dataset, options, error);
}

static void close_packed(struct dl2_dataset *dataset)
{
    struct packed *packed = dataset->state;
    if (!packed)
        return;
    for (uint32_t i = 0; packed->shards && i < packed->index.shard_count; i++) {
        if (atomic_load(&packed->shards[i].fd) >= 0)
            close(atomic_load(&packed->shards[i].fd));
        free(packed->shards[i].path);
    }
    for (size_t i = 0; packed->names && i < packed->name_blocks; i++)
        free(atomic_load(&packed->names[i]));
    free(packed->names);
    free(packed->shards);
    free(packed->chosen);
    unmap_index(packed);
    dl2_bytes_free(&packed->block);
    free(packed);
}

static size_t number_of(const struct packed *packed, size_t index)
{
    return packed->chosen ? packed->chosen[index] : index;
}

/* "SHARD[KEY]" for the samples of one block, in one allocation. */
static char **make_names(const struct packed *packed, size_t block)
{
    const size_t first = block * NAMES_AT_ONCE;
    const size_t left = packed->index.count - first;
    const size_t count = left < NAMES_AT_ONCE ? left : NAMES_AT_ONCE;
    size_t size = count * sizeof(char *);
    for (size_t i = 0; i < count; i++) {
        const struct dl2_index_entry entry = dl2_index_entry(&packed->index, first + i);
        size += strlen(packed->shards[entry.shard].path) + strlen(entry.key) + 3;
    }
    char **names = dl2_calloc(size, 1);
    char *at = (char *)(names + count);
    for (size_t i = 0; names && i < count; i++) {
        const struct dl2_index_entry entry = dl2_index_entry(&packed->index, first + i);
        names[i] = at;
        at = stpcpy(stpcpy(stpcpy(stpcpy(at, packed->shards[entry.shard].path), "["), entry.key),
                    "]") +
             1;
    }
    return names;
}

/* Whoever comes first makes a block's names; without memory the key must do. */
static const char *name_for_messages(const struct packed *packed, size_t number)
{
    const size_t block = number / NAMES_AT_ONCE;
    char **names = atomic_load_explicit(&packed->names[block], memory_order_acquire);
    if (!names) {
        char **made = make_names(packed, block);
        if (!made)
            return dl2_index_entry(&packed->index, number).key;
        if (atomic_compare_exchange_strong(&packed->names[block], &names, made))
            names = made;
        else
            free(made);
    }
    return names[number % NAMES_AT_ONCE];
}

static void sample_of_packed(const struct dl2_dataset *dataset, size_t index,
                             struct dl2_sample *sample)
{
    const struct packed *packed = dataset->state;
    const size_t number = number_of(packed, index);
    const struct dl2_index_entry entry = dl2_index_entry(&packed->index, number);
    *sample = (struct dl2_sample){
        .key = entry.key,
        .path = name_for_messages(packed, number),
        .name = entry.key,
        .extension = entry.extension,
        .label = entry.label,
        .bytes = entry.bytes,
        .mtime_ns = dl2_index_shard(&packed->index, entry.shard).mtime_ns,
    };
}

/* A shard's descriptor: its own, or a new one to be closed (*once) where enough are open. */
static int open_shard(const struct packed *packed, uint32_t number, bool *once)
{
    struct shard *shard = &packed->shards[number];
    *once = false;
    int fd = atomic_load_explicit(&shard->fd, memory_order_acquire);
    if (fd >= 0)
        return fd;
    fd = open(shard->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    atomic_uint *open_shards = &((struct packed *)packed)->open_shards;
    if (atomic_fetch_add(open_shards, 1) < MAX_OPEN_SHARDS) {
        int none = -1;
        if (atomic_compare_exchange_strong(&shard->fd, &none, fd))
            return fd;
        atomic_fetch_sub(open_shards, 1); /* another thread was faster */
        close(fd);
        return none;
    }
    atomic_fetch_sub(open_shards, 1);
    *once = true;
    return fd;
}

static int read_fully(int fd, const struct dl2_index_entry *entry, const char *path, uint8_t *out,
                      struct dl2_error *error)
{
    for (size_t got = 0; got < entry->bytes;) {
        ssize_t count = pread(fd, out + got, entry->bytes - got, (off_t)(entry->offset + got));
        if (count == 0)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: its shard ends before it does; was it cut since?", path);
        if (count > 0)
            got += (size_t)count;
        else if (errno != EINTR)
            return dl2_error_system(error, "%s: can't be read", path);
    }
    return DL2_OK;
}

static int verify(const struct packed *packed, size_t number, const uint8_t *data, size_t size,
                  struct dl2_error *error)
{
    const struct dl2_index_entry entry = dl2_index_entry(&packed->index, number);
    if (size == entry.bytes &&
        (!(entry.flags & DL2_ENTRY_SUMMED) || XXH3_64bits(data, size) == entry.sum))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: damaged: its check sum is not the one in " DL2_INDEX_NAME,
                         name_for_messages(packed, number));
}

/* The bytes of an entry, or of a part that has its offset and size. */
static int read_entry(const struct packed *packed, const struct dl2_index_entry *entry,
                      struct dl2_bytes *scratch, struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_resize(scratch, entry->bytes, error));
    bool once;
    int fd = open_shard(packed, entry->shard, &once);
    if (fd < 0)
        return dl2_error_system(error, "%s: can't be opened", packed->shards[entry->shard].path);
    int status = read_fully(fd, entry, packed->shards[entry->shard].path, scratch->data, error);
    if (once)
        close(fd);
    return status;
}

static int read_from_packed(const struct dl2_dataset *dataset, size_t index,
                            struct dl2_bytes *scratch, const uint8_t **data, size_t *size,
                            struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    const size_t number = number_of(packed, index);
    const struct dl2_index_entry entry = dl2_index_entry(&packed->index, number);
    int status = read_entry(packed, &entry, scratch, error);
    if (status == DL2_OK)
        status = verify(packed, number, scratch->data, scratch->size, error);
    *data = scratch->data;
    *size = scratch->size;
    return status;
}

static bool locate_in_packed(const struct dl2_dataset *dataset, size_t index,
                             struct dl2_location *location)
{
    const struct packed *packed = dataset->state;
    const struct dl2_index_entry entry = dl2_index_entry(&packed->index, number_of(packed, index));
    const struct shard *shard = &packed->shards[entry.shard];
    int fd = atomic_load_explicit(&shard->fd, memory_order_acquire);
    bool once = false;
    /* Not one that would be closed again at once. */
    if (fd < 0 && atomic_load(&packed->open_shards) < MAX_OPEN_SHARDS)
        fd = open_shard(packed, entry.shard, &once);
    if (once) {
        close(fd);
        fd = -1;
    }
    *location = (struct dl2_location){shard->path, fd, entry.offset, entry.bytes};
    return true;
}

static int verify_packed(const struct dl2_dataset *dataset, size_t index, const uint8_t *data,
                         size_t size, struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    return verify(packed, number_of(packed, index), data, size, error);
}

/* ---- Slices */

static bool cuts_of_packed(const struct dl2_dataset *dataset, size_t index, struct dl2_cuts *cuts)
{
    const struct packed *packed = dataset->state;
    struct dl2_index_slicing slicing;
    if (!dl2_index_slicing(&packed->index, number_of(packed, index), &slicing))
        return false;
    *cuts = (struct dl2_cuts){.width = slicing.width,
                              .height = slicing.height,
                              .rows = slicing.rows,
                              .count = slicing.count,
                              .head = slicing.head,
                              .head_size = slicing.head_size};
    return true;
}

static uint32_t number_in(const uint8_t *numbers, size_t at)
{
    uint32_t value;
    memcpy(&value, numbers + at * sizeof value, sizeof value);
    return le32toh(value);
}

/* The entry with the offset and size of its slices; false where there aren't such. */
static bool find_slices(const struct packed *packed, size_t number, struct dl2_slice_range range,
                        struct dl2_index_slicing *slicing, struct dl2_index_entry *entry)
{
    if (!dl2_index_slicing(&packed->index, number, slicing) || !range.count ||
        range.first >= slicing->count || range.count > slicing->count - range.first)
        return false;
    const uint32_t begin = number_in(slicing->offsets, range.first);
    *entry = dl2_index_entry(&packed->index, number);
    entry->bytes = number_in(slicing->offsets, range.first + range.count) - begin;
    entry->offset += begin;
    return true;
}

static int verify_slices_of_packed(const struct dl2_dataset *dataset, size_t index,
                                   struct dl2_slice_range range, const uint8_t *data, size_t size,
                                   struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    const size_t number = number_of(packed, index);
    struct dl2_index_slicing slicing;
    struct dl2_index_entry entry;
    bool good = find_slices(packed, number, range, &slicing, &entry) && size == entry.bytes;
    for (uint32_t i = range.first; good && i < range.first + range.count; i++) {
        const uint32_t bytes = number_in(slicing.offsets, i + 1) - number_in(slicing.offsets, i);
        good = (uint32_t)XXH3_64bits(data, bytes) == number_in(slicing.sums, i);
        data += bytes;
    }
    return good ? DL2_OK
                : dl2_error_set(error, DL2_ERR_FORMAT,
                                "%s: damaged: the check sum of a part of it is not the one "
                                "in " DL2_INDEX_NAME,
                                name_for_messages(packed, number));
}

static int read_slices_from_packed(const struct dl2_dataset *dataset, size_t index,
                                   struct dl2_slice_range range, struct dl2_bytes *scratch,
                                   const uint8_t **data, size_t *size, struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    const size_t number = number_of(packed, index);
    struct dl2_index_slicing slicing;
    struct dl2_index_entry entry;
    if (!find_slices(packed, number, range, &slicing, &entry))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no such slices",
                             name_for_messages(packed, number));
    DL2_TRY(read_entry(packed, &entry, scratch, error));
    *data = scratch->data;
    *size = scratch->size;
    return verify_slices_of_packed(dataset, index, range, *data, *size, error);
}

static bool locate_slices_in_packed(const struct dl2_dataset *dataset, size_t index,
                                    struct dl2_slice_range range, struct dl2_location *location)
{
    const struct packed *packed = dataset->state;
    struct dl2_index_slicing slicing;
    struct dl2_index_entry entry;
    if (!find_slices(packed, number_of(packed, index), range, &slicing, &entry) ||
        !locate_in_packed(dataset, index, location))
        return false;
    location->offset = entry.offset;
    location->bytes = entry.bytes;
    return true;
}

/* An item is called KEY, or, where it has several frames, what is before the "/00000" of the first.
 */
static bool find_in_packed(const struct dl2_dataset *dataset, const char *id, size_t *first,
                           size_t *count)
{
    const struct packed *packed = dataset->state;
    size_t number = dl2_index_find(&packed->index, id);
    if (number == SIZE_MAX) {
        char *key;
        if (asprintf(&key, "%s/00000", id) < 0)
            return false;
        number = dl2_index_find(&packed->index, key);
        free(key);
        if (number == SIZE_MAX || number + 1 >= packed->index.count ||
            !(dl2_index_entry(&packed->index, number + 1).flags & DL2_ENTRY_FURTHER))
            return false;
    }
    size_t low = number;
    if (packed->chosen) {
        size_t high = dataset->count;
        for (low = 0; low < high;) {
            const size_t middle = low + (high - low) / 2;
            if (packed->chosen[middle] < number)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == dataset->count || packed->chosen[low] != number)
            return false;
    }
    *first = low;
    *count = 1;
    while (low + *count < dataset->count && number_of(packed, low + *count) == number + *count &&
           dl2_index_entry(&packed->index, number + *count).flags & DL2_ENTRY_FURTHER)
        ++*count;
    return true;
}

const struct dl2_source dl2_source_packed = {
    .name = "packed",
    .looks_for = "GulpIO chunks data_N.gulp, WebDataset shards *.tar",
    .probe = dl2_dataset_is_packed,
    .open = open_packed,
    .close = close_packed,
    .sample = sample_of_packed,
    .read = read_from_packed,
    .locate = locate_in_packed,
    .verify = verify_packed,
    .cuts = cuts_of_packed,
    .read_slices = read_slices_from_packed,
    .locate_slices = locate_slices_in_packed,
    .verify_slices = verify_slices_of_packed,
    .find = find_in_packed,
};

/* ---- An index for what others have packed */

/* One sample, read and looked at, until its turn comes. */
struct look {
    struct dl2_bytes bytes;
    struct dl2_slicing slicing;
    bool cut;
    struct dl2_error error;
};

struct summing {
    const struct packed *packed;
    dl2_slice_function slice;
    struct dl2_index_draft *draft;
    struct look *looks; /* a slot each */
};

static int look_at(void *context, unsigned worker, size_t slot, size_t item,
                   struct dl2_error *error)
{
    (void)worker, (void)error;
    const struct summing *summing = context;
    struct look *look = &summing->looks[slot];
    struct dl2_index_draft_entry *to = dl2_index_draft_entry(summing->draft, item);
    const struct dl2_index_entry entry = {
        .offset = to->offset, .bytes = to->bytes, .shard = to->shard};
    dl2_error_clear(&look->error);
    look->cut = false;
    if (read_entry(summing->packed, &entry, &look->bytes, &look->error) < 0)
        return DL2_OK; /* add_look() tells it: the first bad sample counts, not the first found */
    to->sum = XXH3_64bits(look->bytes.data, look->bytes.size);
    to->flags |= DL2_ENTRY_SUMMED;
    look->cut = summing->slice && summing->slice(look->bytes.data, look->bytes.size, &look->slicing,
                                                 &look->error) == 1;
    return DL2_OK;
}

static int add_look(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    const struct summing *summing = context;
    const struct look *look = &summing->looks[slot];
    if (look->error.status < 0)
        return dl2_error_set(error, look->error.status, "%s", look->error.message);
    return look->cut ? dl2_index_draft_slice(summing->draft, item, &look->slicing, look->bytes.data,
                                             error)
                     : DL2_OK;
}

static int sum_all(const struct packed *packed, dl2_slice_function slice, unsigned jobs,
                   struct dl2_index_draft *draft, struct dl2_error *error)
{
    struct summing summing = {.packed = packed, .slice = slice, .draft = draft};
    struct dl2_parallel loop = {.jobs = jobs ? jobs : dl2_cpu_count(),
                                .count = draft->count,
                                .work = look_at,
                                .emit = add_look,
                                .context = &summing};
    loop.window = 2 * (size_t)loop.jobs;
    summing.looks = dl2_calloc(loop.window, sizeof *summing.looks);
    const int status = summing.looks ? dl2_parallel_run(&loop, error) : no_memory(error);
    for (size_t i = 0; summing.looks && i < loop.window; i++) {
        dl2_slicing_free(&summing.looks[i].slicing);
        dl2_bytes_free(&summing.looks[i].bytes);
    }
    free(summing.looks);
    return status;
}

static int index_into(struct packed *packed, const struct dl2_shard_files *list,
                      dl2_slice_function slice, unsigned jobs, struct dl2_scan *scan,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_shard_files_scan(list, scan, error));
    if (!scan->draft.count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no samples", list->root);
    DL2_TRY(dl2_index_draft_finish(&scan->draft, &packed->block, error));
    DL2_TRY(dl2_index_open(packed->block.data, packed->block.size, &packed->index, error));
    DL2_TRY(prepare_shards(packed, list->root, error));
    DL2_TRY(sum_all(packed, slice, jobs, &scan->draft, error));
    struct dl2_bytes block = DL2_BYTES_INIT;
    char *path = dl2_path_join(list->root, DL2_INDEX_NAME);
    int status = path ? dl2_index_draft_finish(&scan->draft, &block, error) : no_memory(error);
    if (status == DL2_OK)
        status = dl2_file_write(path, block.data, block.size, error);
    free(path);
    dl2_bytes_free(&block);
    return status;
}

int dl2_dataset_write_index(const char *path, dl2_slice_function slice, unsigned jobs,
                            size_t *count, struct dl2_error *error)
{
    if (!dl2_is_folder(path))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: an index is for a folder of shards",
                             path);
    if (!dl2_dataset_is_packed(path))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: no packed dataset; looked for %s. Folders need no index", path,
                             dl2_source_packed.looks_for);
    struct dl2_dataset dataset = {.state = dl2_calloc(1, sizeof(struct packed))};
    struct packed *packed = dataset.state;
    if (!packed)
        return no_memory(error);
    struct dl2_shard_files list;
    struct dl2_scan scan = {0};
    int status = dl2_shard_files_list(path, &list, error);
    if (status == DL2_OK) {
        status = index_into(packed, &list, slice, jobs, &scan, error);
        *count = scan.draft.count;
        dl2_shard_files_free(&list);
    }
    dl2_scan_free(&scan);
    close_packed(&dataset);
    return status;
}
