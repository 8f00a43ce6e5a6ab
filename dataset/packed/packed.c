/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads packed datasets by their index, and makes an index for what other programs packed. */
#include "dataset/packed/packed.h"

#include "common/file.h"
#include "common/scope.h"
#include "common/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* So many shards are kept open, the first that are read; others are opened for every read. They
 * take half of the process's descriptors at most: other datasets, and all else, take them, too. */
enum { MAX_OPEN_SHARDS = 256 };

/* A remote sample whose check sum differs is read so often. */
enum { MAX_TRIES = 3 };

struct shard {
    char *path;
    atomic_int fd;                /* -1: not open */
    struct dl2_remote_file *file; /* of a remote dataset; else NULL */
    bool compressed;              /* packed->gzip reads it */
    atomic_bool is_listed;        /* it was found as the index has it */
    struct dl2_shard_kept kept;
};

struct packed {
    struct dl2_index index;
    struct dl2_bytes block; /* the index, if it was made here and not mapped */
    struct shard *shards;
    struct dl2_remote_file *files; /* of the shards of a remote dataset; else NULL */
    struct dl2_gzip_files *gzip;   /* NULL if no shard is compressed */
    atomic_uint open_shards, most_open;
    /* Where all earlier images of a sample's shard end, once something beside one is read. */
    uint64_t *starts;
    pthread_mutex_t starts_mutex;
};

static int compare_shard_names(const void *left, const void *right)
{
    return strcmp(((const struct dl2_shard_file *)left)->name,
                  ((const struct dl2_shard_file *)right)->name);
}

/* Zeros at the end of a time do not count: not every file system and not every copy keeps more than
 * seconds. */
static bool is_same_time(int64_t found_ns, int64_t listed_ns)
{
    int64_t unit = 1;
    while (unit < 1000000000 && found_ns % (10 * unit) == 0)
        unit *= 10;
    return found_ns / unit == listed_ns / unit;
}

/* Does the index list the shards that are there, with their sizes and times? */
static bool is_index_current(const struct dl2_index *index, const struct dl2_shard_files *list)
{
    if (index->is_outdated || index->shard_count != list->count ||
        index->container != list->container)
        return false;
    DL2_AUTO_FREE struct dl2_shard_file *sorted = dl2_calloc(list->count, sizeof *sorted);
    bool same = sorted;
    if (sorted && list->count) {
        memcpy(sorted, list->files, list->count * sizeof *sorted);
        qsort(sorted, list->count, sizeof *sorted, compare_shard_names);
    }
    for (uint32_t i = 0; same && i < index->shard_count; i++) {
        const struct dl2_index_shard shard = dl2_index_shard(index, i);
        const struct dl2_shard_file wanted = {.name = (char *)shard.name};
        const struct dl2_shard_file *found =
            bsearch(&wanted, sorted, list->count, sizeof *sorted, compare_shard_names);
        uint64_t bytes;
        int64_t mtime_ns;
        same = found && dl2_shard_stat(list, found, &bytes, &mtime_ns, NULL) == DL2_OK &&
               bytes == shard.bytes && is_same_time(mtime_ns, shard.mtime_ns);
    }
    return same;
}

/* Takes check sums from an index that is out of date, for samples that still lie where they lay. */
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

int dl2_packed_check_members(const struct dl2_container *container, const char *path,
                             const struct dl2_member_choice *members, struct dl2_error *error)
{
    if (members->label_field)
        DL2_TRY(dl2_label_field_check(members->label_field, error));
    if (members->image_extension && !*members->image_extension)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the extension of images is empty");
    return container->shards && container->shards->has_members
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: %s in tar shards alone, and the container here is '%s'", path,
                               members->label_field ? "labels come from a field of .json"
                                                    : "images are chosen by their extension",
                               container->name);
}

/* Makes the index out of the shards; one that is mapped but out of date gives check sums. */
static int scan_into(struct packed *packed, const struct dl2_shard_files *list,
                     const struct dl2_member_choice *members, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_scan_free) struct dl2_scan scan = {0};
    DL2_TRY(dl2_shards_scan(list, members, &scan, error));
    if (packed->index.map)
        adopt_sums(&scan.draft, &packed->index);
    dl2_index_unmap(&packed->index);
    const int status = dl2_index_draft_finish(&scan.draft, &packed->block, error);
    dl2_error_prefix(error, "%s", list->root);
    DL2_TRY(status);
    return dl2_index_open(packed->block.data, packed->block.size, &packed->index, error);
}

/* What is asked for, or else what the index has. */
static struct dl2_member_choice choose_members(const struct dl2_index *index,
                                               const struct dl2_member_choice *asked)
{
    const struct dl2_member_choice *there = &index->members;
    return (struct dl2_member_choice){asked->label_field ? asked->label_field : there->label_field,
                                      asked->image_extension ? asked->image_extension
                                                             : there->image_extension};
}

static bool is_same(const char *asked, const char *there)
{
    return !asked || (there && !strcmp(asked, there));
}

/* Shards of our own have one image a sample, and the index knows which. */
static bool has_members(const struct dl2_index *index, const struct dl2_member_choice *asked)
{
    return is_same(asked->label_field, index->members.label_field) &&
           (index->is_own || is_same(asked->image_extension, index->members.image_extension));
}

static int read_index(struct packed *packed, const char *path, const struct dl2_shard_files *list,
                      const struct dl2_member_choice *asked, struct dl2_error *error)
{
    DL2_AUTO_FREE char *unfinished = dl2_path_join(path, DL2_UNFINISHED_NAME);
    DL2_AUTO_FREE char *file = dl2_path_join(path, DL2_INDEX_NAME);
    if (!unfinished || !file)
        return dl2_error_memory(error, "a dataset");
    if (dl2_is_file(unfinished))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: this dataset was not written to its end; run the dl2-transcode "
                             "command that was to make it again",
                             path);
    if (dl2_is_file(file))
        DL2_TRY(dl2_index_map(file, &packed->index, error));
    const struct dl2_member_choice members = choose_members(&packed->index, asked);
    return packed->index.map && has_members(&packed->index, asked) &&
                   is_index_current(&packed->index, list)
               ? DL2_OK
               : scan_into(packed, list, &members, error);
}

/* Hands over the names of the classes and of the splits. */
static int copy_names(struct dl2_dataset *dataset, const struct dl2_index *index,
                      struct dl2_error *error)
{
    DL2_AUTO_FREE const char **classes = NULL, **parts = NULL;
    DL2_TRY(DL2_NEW(&classes, index->class_count, "a dataset", error));
    DL2_TRY(DL2_NEW(&parts, index->part_count, "a dataset", error));
    for (uint32_t i = 0; i < index->class_count; i++)
        classes[i] = dl2_index_class(index, i);
    for (uint32_t i = 0; i < index->part_count; i++)
        parts[i] = dl2_index_part(index, i);
    DL2_TRY(dl2_reader_set_parts(dataset, parts, index->part_count, error));
    return dl2_reader_set_classes(dataset, classes, index->class_count, error);
}

static int prepare_shards(struct packed *packed, const char *root, struct dl2_remote *remote,
                          struct dl2_error *error)
{
    const struct dl2_index *index = &packed->index;
    DL2_TRY(DL2_NEW(&packed->shards, index->shard_count, "a dataset", error));
    for (uint32_t i = 0; i < index->shard_count; i++) {
        atomic_init(&packed->shards[i].fd, -1);
        pthread_mutex_init(&packed->shards[i].kept.mutex, NULL);
    }
    for (uint32_t i = 0; i < index->shard_count; i++)
        if (!(packed->shards[i].path = dl2_path_join(root, dl2_index_shard(index, i).name)))
            return dl2_error_memory(error, "a dataset");
    if (remote && !(packed->files = dl2_calloc(index->shard_count, sizeof *packed->files)))
        return dl2_error_memory(error, "a dataset");
    for (uint32_t i = 0; remote && i < index->shard_count; i++) {
        const struct dl2_index_shard shard = dl2_index_shard(index, i);
        packed->shards[i].file = &packed->files[i];
        DL2_TRY(
            dl2_remote_file_init(remote, shard.name, shard.bytes, NULL, &packed->files[i], error));
    }
    if (remote && dl2_remote_has_cache(remote)) /* which needs the ETags to find anything */
        DL2_TRY(dl2_remote_identify(packed->files, index->shard_count, error));
    return DL2_OK;
}

/* The shards of a remote dataset are those that its index lists; each is compared with it when it
 * is read for the first time. */
static int read_remote_index(struct dl2_dataset *dataset, const char *path,
                             const struct dl2_member_choice *asked, struct dl2_error *error)
{
    struct packed *packed = dataset->state;
    packed->block = dataset->remote_index;
    dataset->remote_index = (struct dl2_bytes)DL2_BYTES_INIT;
    DL2_TRY(dl2_index_open(packed->block.data, packed->block.size, &packed->index, error));
    if (!has_members(&packed->index, asked)) {
        const bool label = !is_same(asked->label_field, packed->index.members.label_field);
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: its index has %s than %s; where the shards lie, make one with "
                             "dl2-transcode index %s %s, and copy it beside them",
                             path, label ? "labels of another field" : "other images",
                             label ? asked->label_field : asked->image_extension,
                             label ? "--label-field" : "--image-extension",
                             label ? asked->label_field : asked->image_extension);
    }
    return prepare_shards(packed, path, dataset->remote, error);
}

static struct packed *make_packed(struct dl2_error *error)
{
    struct packed *packed = dl2_calloc(1, sizeof *packed);
    if (!packed) {
        dl2_error_memory(error, "a dataset");
        return NULL;
    }
    pthread_mutex_init(&packed->starts_mutex, NULL);
    atomic_init(&packed->most_open, MAX_OPEN_SHARDS);
    return packed;
}

/* Notes which shards are compressed. */
static int note_compressed(struct packed *packed, const struct dl2_shard_files *list,
                           struct dl2_error *error)
{
    const struct dl2_shard_format *format = list->container->shards;
    for (uint32_t i = 0; list->in_order && i < packed->index.shard_count; i++) {
        struct shard *shard = &packed->shards[i];
        shard->compressed = format->role(dl2_path_base(shard->path)) == DL2_FILE_COMPRESSED;
        if (shard->compressed && !packed->gzip && !(packed->gzip = dl2_gzip_files_new(error)))
            return DL2_ERR_MEMORY;
    }
    return DL2_OK;
}

static int packed_open(struct dl2_dataset *dataset, const char *path,
                       const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct packed *packed = dataset->state = make_packed(error);
    if (!packed)
        return DL2_ERR_MEMORY;
    if (dataset->remote) {
        DL2_TRY(read_remote_index(dataset, path, &options->members, error));
    } else {
        DL2_CLEANUP(dl2_shards_free) struct dl2_shard_files list;
        DL2_TRY(dl2_shards_list(dataset->container, path, options->in_order, &list, error));
        DL2_TRY(read_index(packed, path, &list, &options->members, error));
        DL2_TRY(prepare_shards(packed, list.root, NULL, error));
        DL2_TRY(note_compressed(packed, &list, error));
        dataset->is_in_order = packed->gzip;
    }
    dataset->count = packed->index.count;
    dataset->has_parts = packed->index.has_parts;
    dataset->label_field = packed->index.members.label_field;
    if (packed->index.remarks)
        DL2_TRY(dl2_format(&dataset->remark, error, "%s", packed->index.remarks));
    const int status = copy_names(dataset, &packed->index, error);
    dl2_error_prefix(error, "%s/%s", path, DL2_INDEX_NAME);
    return status;
}

static void free_packed(struct packed *packed)
{
    dl2_gzip_files_free(packed->gzip); /* which has the paths of shards */
    for (uint32_t i = 0; packed->shards && i < packed->index.shard_count; i++) {
        if (atomic_load(&packed->shards[i].fd) >= 0)
            close(atomic_load(&packed->shards[i].fd));
        if (packed->shards[i].kept.data)
            packed->index.container->shards->forget(packed->shards[i].kept.data);
        pthread_mutex_destroy(&packed->shards[i].kept.mutex);
        if (packed->files)
            dl2_remote_file_free(&packed->files[i]);
        free(packed->shards[i].path);
    }
    free(packed->starts);
    pthread_mutex_destroy(&packed->starts_mutex);
    free(packed->shards);
    free(packed->files);
    dl2_index_unmap(&packed->index);
    dl2_bytes_free(&packed->block);
    free(packed);
}

static void packed_close(struct dl2_dataset *dataset)
{
    free_packed(dataset->state);
}

static struct dl2_entry packed_describe(const struct dl2_dataset *dataset, size_t number)
{
    const struct packed *packed = dataset->state;
    const struct dl2_index_entry from = dl2_index_entry(&packed->index, number);
    return (struct dl2_entry){
        .sample = {.key = from.key,
                   .path = packed->shards[from.shard].path,
                   .name = from.key,
                   .extension = from.extension,
                   .label = from.label,
                   .bytes = from.bytes,
                   .mtime_ns = dl2_index_shard(&packed->index, from.shard).mtime_ns},
        .inner = from.key,
        .part = packed->index.has_parts ? from.part : DL2_PART_NONE,
        .is_further = from.flags & DL2_ENTRY_FURTHER};
}

/* ---- Reading */

/*
 * The entry of a sample, with the offset and size of its slices where these are given; false if
 * the sample has no such slices. `slicing` is filled in only with slices.
 */
static bool find_bytes(const struct packed *packed, size_t number,
                       const struct dl2_slice_range *slices, struct dl2_index_slicing *slicing,
                       struct dl2_index_entry *entry)
{
    *entry = dl2_index_entry(&packed->index, number);
    if (!slices)
        return true;
    if (!dl2_index_slicing(&packed->index, number, slicing) || !slices->count ||
        slices->first >= slicing->count || slices->count > slicing->count - slices->first)
        return false;
    const uint32_t begin = dl2_index_u32(slicing->offsets, slices->first);
    entry->bytes = dl2_index_u32(slicing->offsets, slices->first + slices->count) - begin;
    entry->offset += begin;
    return true;
}

/* Before a shard is read for the first time: is it still the one that the index lists? Its time is
 * that of its companion where that one is newer; the size in the index of a compressed shard is
 * that of what it decompresses to. */
static int check_shard(const struct packed *packed, uint32_t number, struct dl2_error *error)
{
    struct shard *shard = &packed->shards[number];
    if (shard->file || atomic_load_explicit(&shard->is_listed, memory_order_relaxed))
        return DL2_OK;
    const struct dl2_index_shard listed = dl2_index_shard(&packed->index, number);
    struct stat info;
    if (stat(shard->path, &info) != 0)
        return dl2_error_system(error, "%s: cannot be opened", shard->path);
    const int64_t mtime_ns = dl2_mtime_ns(&info);
    if ((!shard->compressed && (uint64_t)info.st_size != listed.bytes) ||
        (mtime_ns > listed.mtime_ns && !is_same_time(mtime_ns, listed.mtime_ns)))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it was changed since the dataset was opened; open it again",
                             shard->path);
    atomic_store_explicit(&shard->is_listed, true, memory_order_relaxed);
    return DL2_OK;
}

/* The lowest number that is free is a new descriptor's, so it tells how many there are. */
static bool is_in_upper_half(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd >= limit.rlim_cur / 2;
}

/* The shard's descriptor; a new one, to be closed by the caller (*once), if enough are open. */
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
    struct packed *own = (struct packed *)packed;
    atomic_uint *open_shards = &own->open_shards;
    if (is_in_upper_half(fd))
        atomic_store(&own->most_open, 0); /* no more than are open now */
    if (atomic_fetch_add(open_shards, 1) < atomic_load(&own->most_open)) {
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
    const int64_t got = dl2_read_at(fd, entry->offset, out, entry->bytes);
    if (got < 0)
        return dl2_error_system(error, "%s: cannot be read", path);
    return got == entry->bytes
               ? DL2_OK
               : dl2_error_set(
                     error, DL2_ERR_FORMAT,
                     "%s: the shard ends before the sample does; it was cut since it was opened",
                     path);
}

static int read_compressed(const struct packed *packed, const struct shard *shard,
                           const struct dl2_index_entry *entry, uint8_t *out,
                           struct dl2_error *error)
{
    const int64_t got =
        dl2_gzip_read(packed->gzip, shard->path, entry->offset, out, entry->bytes, error);
    if (got >= 0 && got != entry->bytes)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: it was cut since it was opened",
                             shard->path);
    dl2_error_prefix(error, "%s", shard->path);
    return got < 0 ? (int)got : DL2_OK;
}

/* Reads `bytes` of an entry from its offset on, which may be those of slices of a sample that
 * begins at `start`. */
static int read_entry(const struct packed *packed, const struct dl2_index_entry *entry,
                      uint64_t start, struct dl2_bytes *scratch, struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_resize(scratch, entry->bytes, error));
    struct shard *shard = &packed->shards[entry->shard];
    if (shard->file)
        return dl2_remote_read(shard->file, start, entry->offset, scratch->data, scratch->size,
                               error);
    DL2_TRY(check_shard(packed, entry->shard, error));
    if (shard->compressed)
        return read_compressed(packed, shard, entry, scratch->data, error);
    bool once;
    int fd = open_shard(packed, entry->shard, &once);
    if (fd < 0)
        return dl2_error_system(error, "%s: cannot be opened", packed->shards[entry->shard].path);
    int status = read_fully(fd, entry, packed->shards[entry->shard].path, scratch->data, error);
    if (once)
        close(fd);
    return status;
}

static int packed_verify(const struct dl2_dataset *dataset, size_t number,
                         const struct dl2_slice_range *slices, const uint8_t *data, size_t size,
                         struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    struct dl2_index_slicing slicing;
    struct dl2_index_entry entry;
    bool good = find_bytes(packed, number, slices, &slicing, &entry) && size == entry.bytes;
    if (!slices)
        good = good && (!(entry.flags & DL2_ENTRY_SUMMED) || XXH3_64bits(data, size) == entry.sum);
    for (uint32_t n = 0; slices && good && n < slices->count; n++) {
        const uint32_t i = slices->first + n;
        const uint32_t bytes =
            dl2_index_u32(slicing.offsets, i + 1) - dl2_index_u32(slicing.offsets, i);
        good = (uint32_t)XXH3_64bits(data, bytes) == dl2_index_u32(slicing.sums, i);
        data += bytes;
    }
    return good ? DL2_OK
                : dl2_error_set(error, DL2_ERR_FORMAT,
                                "%s: damaged: the check sum%s is not the one in " DL2_INDEX_NAME,
                                dl2_reader_path(dataset, number), slices ? " of a part of it" : "");
}

static int packed_read(const struct dl2_dataset *dataset, size_t number,
                       const struct dl2_slice_range *slices, struct dl2_bytes *out,
                       struct dl2_error *error)
{
    const struct packed *packed = dataset->state;
    struct dl2_index_slicing slicing;
    struct dl2_index_entry entry;
    if (!find_bytes(packed, number, slices, &slicing, &entry))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no such slices",
                             dl2_reader_path(dataset, number));
    const uint64_t start = dl2_index_entry(&packed->index, number).offset;
    struct shard *shard = &packed->shards[entry.shard];
    for (unsigned tries = 1;; tries++) {
        DL2_TRY(read_entry(packed, &entry, start, out, error));
        /* What a network has damaged may come well another time. */
        if (!shard->file || tries == MAX_TRIES)
            return packed_verify(dataset, number, slices, out->data, out->size, error);
        if (packed_verify(dataset, number, slices, out->data, out->size, NULL) == DL2_OK)
            return DL2_OK;
        dl2_remote_forget(shard->file, start);
    }
}

/*
 * The least start of a search around a sample, whose members come after those of earlier samples. A
 * hard link may have its image far before them.
 */
static int find_start(struct packed *packed, size_t number, uint64_t *start,
                      struct dl2_error *error)
{
    const size_t count = packed->index.count;
    uint32_t shard = UINT32_MAX;
    uint64_t end = 0;
    pthread_mutex_lock(&packed->starts_mutex);
    const bool known = packed->starts;
    if (!known)
        packed->starts = dl2_calloc(count, sizeof *packed->starts);
    for (size_t i = 0; !known && packed->starts && i < count; i++) {
        const struct dl2_index_entry entry = dl2_index_entry(&packed->index, i);
        if (entry.shard != shard)
            end = 0;
        shard = entry.shard;
        packed->starts[i] = end;
        if (entry.offset + entry.bytes > end)
            end = entry.offset + entry.bytes;
    }
    const uint64_t *starts = packed->starts;
    pthread_mutex_unlock(&packed->starts_mutex);
    if (!starts)
        return dl2_error_memory(error, "a dataset");
    *start = starts[number];
    return DL2_OK;
}

/* Where a sample lies; *once: the caller must close the descriptor. */
static int find_place(struct packed *packed, size_t number, struct dl2_shard_place *place,
                      bool *once, struct dl2_error *error)
{
    uint64_t start = 0;
    DL2_TRY(find_start(packed, number, &start, error));
    const struct dl2_index_entry entry = dl2_index_entry(&packed->index, number);
    struct shard *shard = &packed->shards[entry.shard];
    *once = false;
    DL2_TRY(check_shard(packed, entry.shard, error));
    *place = (struct dl2_shard_place){
        .source = {.fd = shard->file || shard->compressed ? -1
                                                          : open_shard(packed, entry.shard, once),
                   .remote = shard->file,
                   .gzip = shard->compressed ? packed->gzip : NULL,
                   .path = shard->path},
        .path = shard->path,
        .shard_bytes = dl2_index_shard(&packed->index, entry.shard).bytes,
        .start = start,
        .offset = entry.offset,
        .key = entry.key,
        .extension = entry.extension,
        .key_prefix = entry.flags & DL2_ENTRY_NAMED
                          ? dl2_index_shard_stem(dl2_path_base(shard->path)) + 1
                          : 0,
        .kept = &shard->kept,
    };
    if (place->source.fd < 0 && !place->source.remote && !place->source.gzip)
        return dl2_error_system(error, "%s: cannot be opened", shard->path);
    return DL2_OK;
}

/* Reads what is beside a sample: of one extension into `out`, or all of it into `all`. */
static int read_beside(const struct dl2_dataset *dataset, size_t number, const char *extension,
                       struct dl2_bytes *out, struct dl2_sidecars *all, struct dl2_error *error)
{
    struct packed *packed = dataset->state;
    const struct dl2_shard_format *format = packed->index.container->shards;
    struct dl2_shard_place place;
    bool once;
    DL2_TRY(find_place(packed, number, &place, &once, error));
    const int status = extension ? format->read_sidecar(&place, extension, out, error)
                                 : format->read_sidecars(&place, all, error);
    if (once)
        close(place.source.fd);
    dl2_error_prefix(error, "%s%s%s", dl2_reader_path(dataset, number), extension ? ": " : "",
                     extension ? extension : "");
    return status;
}

static int packed_read_sidecar(const struct dl2_dataset *dataset, size_t number,
                               const char *extension, struct dl2_bytes *out,
                               struct dl2_error *error)
{
    return read_beside(dataset, number, extension, out, NULL, error);
}

static int packed_read_sidecars(const struct dl2_dataset *dataset, size_t number,
                                struct dl2_sidecars *out, struct dl2_error *error)
{
    return read_beside(dataset, number, NULL, NULL, out, error);
}

static bool packed_locate(const struct dl2_dataset *dataset, size_t number,
                          const struct dl2_slice_range *slices, struct dl2_location *location)
{
    const struct packed *packed = dataset->state;
    struct dl2_index_slicing slicing;
    struct dl2_index_entry entry;
    if (!find_bytes(packed, number, slices, &slicing, &entry))
        return false;
    struct shard *shard = &packed->shards[entry.shard];
    if (shard->compressed || check_shard(packed, entry.shard, NULL) < 0)
        return false; /* read by packed_read(), which says what is wrong */
    *location = (struct dl2_location){
        .path = shard->path,
        .fd = shard->file ? -1 : atomic_load_explicit(&shard->fd, memory_order_acquire),
        .offset = entry.offset,
        .bytes = entry.bytes,
        .remote = shard->file,
        .start = shard->file ? dl2_index_entry(&packed->index, number).offset : 0};
    bool once = false;
    /* A descriptor that would be closed again at once is of no use to the caller. */
    if (!shard->file && location->fd < 0 &&
        atomic_load(&packed->open_shards) < atomic_load(&packed->most_open))
        location->fd = open_shard(packed, entry.shard, &once);
    if (once) {
        close(location->fd);
        location->fd = -1;
    }
    return true;
}

static bool packed_cuts(const struct dl2_dataset *dataset, size_t number, struct dl2_cuts *cuts)
{
    const struct packed *packed = dataset->state;
    struct dl2_index_slicing slicing;
    if (!dl2_index_slicing(&packed->index, number, &slicing))
        return false;
    *cuts = (struct dl2_cuts){.width = slicing.width,
                              .height = slicing.height,
                              .rows = slicing.rows,
                              .count = slicing.count,
                              .orientation = slicing.orientation,
                              .head = slicing.head,
                              .head_size = slicing.head_size};
    return true;
}

/* The id of an item is its key; with several frames it is what stands before "/00000". */
static size_t packed_find(const struct dl2_dataset *dataset, const char *id)
{
    const struct packed *packed = dataset->state;
    const size_t number = dl2_index_find(&packed->index, id);
    DL2_AUTO_FREE char *key = NULL;
    if (number != SIZE_MAX || dl2_format(&key, NULL, "%s/00000", id) < 0)
        return number;
    const size_t first = dl2_index_find(&packed->index, key);
    const bool has_frames = first != SIZE_MAX && first + 1 < packed->index.count &&
                            dl2_index_entry(&packed->index, first + 1).flags & DL2_ENTRY_FURTHER;
    return has_frames ? first : SIZE_MAX;
}

const struct dl2_reader dl2_packed_reader = {
    .open = packed_open,
    .close = packed_close,
    .describe = packed_describe,
    .read = packed_read,
    .read_sidecar = packed_read_sidecar,
    .read_sidecars = packed_read_sidecars,
    .locate = packed_locate,
    .verify = packed_verify,
    .cuts = packed_cuts,
    .find = packed_find,
};

/* ---- An index for what others have packed */

/* A sample that was read and cut, until its turn comes. */
struct summed_sample {
    struct dl2_bytes bytes;
    struct dl2_slicing slicing;
    bool cut;
    struct dl2_error error;
};

struct summing {
    const struct packed *packed;
    dl2_slice_function slice;
    struct dl2_index_draft *draft;
    struct summed_sample *samples; /* a slot each */
};

static int sum_sample(void *context, unsigned worker, size_t slot, size_t item,
                      struct dl2_error *error)
{
    (void)worker, (void)error;
    const struct summing *summing = context;
    struct summed_sample *sample = &summing->samples[slot];
    struct dl2_index_draft_entry *to = dl2_index_draft_entry(summing->draft, item);
    const struct dl2_index_entry entry = {
        .offset = to->offset, .bytes = to->bytes, .shard = to->shard};
    dl2_error_clear(&sample->error);
    sample->cut = false;
    if (read_entry(summing->packed, &entry, entry.offset, &sample->bytes, &sample->error) < 0)
        return DL2_OK; /* add_sum() reports it, so that the first bad sample is named each time */
    to->sum = XXH3_64bits(sample->bytes.data, sample->bytes.size);
    to->flags |= DL2_ENTRY_SUMMED;
    sample->cut = summing->slice && summing->slice(sample->bytes.data, sample->bytes.size,
                                                   &sample->slicing, &sample->error) == 1;
    return DL2_OK;
}

static int add_sum(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    const struct summing *summing = context;
    const struct summed_sample *sample = &summing->samples[slot];
    DL2_TRY(dl2_error_copy(error, &sample->error));
    return sample->cut ? dl2_index_draft_slice(summing->draft, item, &sample->slicing,
                                               sample->bytes.data, error)
                       : DL2_OK;
}

static int sum_all(const struct packed *packed, dl2_slice_function slice, unsigned jobs,
                   struct dl2_index_draft *draft, struct dl2_error *error)
{
    struct summing summing = {.packed = packed, .slice = slice, .draft = draft};
    struct dl2_parallel loop = {.jobs = jobs ? jobs : dl2_cpu_count(),
                                .count = draft->count,
                                .work = sum_sample,
                                .emit = add_sum,
                                .context = &summing};
    loop.window = 2 * (size_t)loop.jobs;
    summing.samples = dl2_calloc(loop.window, sizeof *summing.samples);
    const int status =
        summing.samples ? dl2_parallel_run(&loop, error) : dl2_error_memory(error, "a dataset");
    for (size_t i = 0; summing.samples && i < loop.window; i++) {
        dl2_slicing_free(&summing.samples[i].slicing);
        dl2_bytes_free(&summing.samples[i].bytes);
    }
    free(summing.samples);
    return status;
}

static int index_into(struct packed *packed, const struct dl2_shard_files *list,
                      const struct dl2_member_choice *members, dl2_slice_function slice,
                      unsigned jobs, struct dl2_scan *scan, struct dl2_error *error)
{
    DL2_TRY(dl2_shards_scan(list, members, scan, error));
    if (!scan->draft.count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no samples", list->root);
    DL2_TRY(dl2_index_draft_finish(&scan->draft, &packed->block, error));
    DL2_TRY(dl2_index_open(packed->block.data, packed->block.size, &packed->index, error));
    DL2_TRY(prepare_shards(packed, list->root, NULL, error));
    DL2_TRY(sum_all(packed, slice, jobs, &scan->draft, error));
    return dl2_index_draft_save(&scan->draft, list->root, error);
}

int dl2_dataset_look_for_shards(const struct dl2_dataset *dataset, bool *whole,
                                struct dl2_error *error)
{
    *whole = true;
    if (!dataset->remote || !dataset->container->shards || !dl2_remote_lists(dataset->remote))
        return DL2_OK;
    const struct packed *packed = dataset->state;
    struct dl2_listing listing = {.count = 0};
    const int status = dl2_remote_list(dataset->remote, &listing, error);
    for (uint32_t i = 0; status == DL2_OK && *whole && i < packed->index.shard_count; i++) {
        const struct dl2_index_shard shard = dl2_index_shard(&packed->index, i);
        const struct dl2_listed_object *object = dl2_listing_find(&listing, shard.name);
        *whole = object && object->bytes == shard.bytes;
    }
    dl2_listing_free(&listing);
    return status;
}

int dl2_dataset_write_index(const char *path, const struct dl2_member_choice *members,
                            dl2_slice_function slice, unsigned jobs, size_t *count, char **remarks,
                            struct dl2_error *error)
{
    if (remarks)
        *remarks = NULL;
    if (dl2_is_address(path))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: an index is made where the shards lie; make it there, and copy "
                             "it beside them",
                             path);
    if (!dl2_is_folder(path))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: an index is for a folder of shards",
                             path);
    const struct dl2_container *container = dl2_shards_probe(path);
    if (!container)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: no packed dataset, and other folders need no index", path);
    if (dl2_members_are_chosen(members))
        DL2_TRY(dl2_packed_check_members(container, path, members, error));
    DL2_AUTO_FREE char *file = dl2_path_join(path, DL2_INDEX_NAME);
    if (!file)
        return dl2_error_memory(error, "a dataset");
    DL2_CLEANUP(dl2_index_unmap) struct dl2_index before = {.map = NULL};
    if (dl2_is_file(file))
        (void)dl2_index_map(file, &before, NULL); /* one that is damaged is replaced */
    const struct dl2_member_choice chosen = choose_members(&before, members);
    DL2_CLEANUP(dl2_shards_free) struct dl2_shard_files list;
    DL2_TRY(dl2_shards_list(container, path, false, &list, error));
    struct packed *packed = make_packed(error);
    if (!packed)
        return DL2_ERR_MEMORY;
    DL2_CLEANUP(dl2_scan_free) struct dl2_scan scan = {0};
    int status = index_into(packed, &list, &chosen, slice, jobs, &scan, error);
    *count = scan.draft.count;
    free_packed(packed);
    if (status == DL2_OK && remarks && scan.draft.remarks)
        status = dl2_format(remarks, error, "%s", scan.draft.remarks);
    return status;
}
