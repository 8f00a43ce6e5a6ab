/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IDX files as MNIST has them. Both parts are kept in memory, uncompressed. Samples are numbered in
 * the order of their keys, class by class, so that a folder with copies of them has the same order.
 * There is no writer.
 */
#include "dataset/files/idx.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/container.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_FILE_BYTES ((uint64_t)1 << 31)
#define MAX_ITEM_BYTES ((uint64_t)1 << 32)
/* Deflate cannot shrink data further: 258 bytes take two bits at least. */
#define MAX_RATIO 1032

/* ---- IDX files */

/* Reads and decompresses up to `size` bytes; *got is less only at the end of the file. */
static int idx_take(gzFile file, uint8_t *out, uint64_t size, uint64_t *got,
                    struct dl2_error *error)
{
    int code = Z_OK;
    for (*got = 0; *got < size;) {
        const unsigned part = size - *got > 1 << 30 ? 1 << 30 : (unsigned)(size - *got);
        const int count = gzread(file, out + *got, part);
        const char *why = gzerror(file, &code);
        if (code == Z_BUF_ERROR)
            return dl2_error_set(error, DL2_ERR_FORMAT, "the gzip data end too early");
        if (code == Z_ERRNO)
            return dl2_error_system(error, "cannot be read");
        if (count < 0)
            return dl2_error_set(error, DL2_ERR_FORMAT, "corrupt gzip data: %s", why);
        if (count == 0)
            break;
        *got += (uint64_t)count;
    }
    return DL2_OK;
}

static uint32_t big_endian(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static int idx_read_header(gzFile file, unsigned rank, struct dl2_idx *idx, struct dl2_error *error)
{
    uint8_t header[4 + 4 * DL2_IDX_MAX_RANK];
    const size_t size = 4 + 4 * rank;
    uint64_t got;
    DL2_TRY(idx_take(file, header, size, &got, error));
    if (got < 4 || header[0] || header[1])
        return dl2_error_set(error, DL2_ERR_FORMAT, "not an IDX file");
    if (header[2] != 8)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "IDX items of type 0x%02x; only unsigned bytes (0x08) can be read",
                             header[2]);
    if (header[3] != rank)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%u dimensions instead of %u", header[3],
                             rank);
    if (got < size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the IDX header is cut short");
    for (unsigned i = 0; i < DL2_IDX_MAX_RANK; i++) {
        idx->dims[i] = i < rank ? big_endian(header + 4 + 4 * i) : 1;
        if (!idx->dims[i])
            return dl2_error_set(error, DL2_ERR_FORMAT, "dimension %u is 0", i + 1);
    }
    return DL2_OK;
}

/* `possible`: so many bytes can follow the header at most. */
static int idx_read_items(gzFile file, uint64_t possible, struct dl2_idx *idx,
                          struct dl2_error *error)
{
    /* Two 32-bit factors cannot overflow 64 bits; the third is checked by division. */
    const uint64_t area = (uint64_t)idx->dims[1] * idx->dims[2];
    if (area > MAX_ITEM_BYTES / idx->dims[0])
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%" PRIu32 " items of %" PRIu32 "x%" PRIu32 " pass the limit of 4 GiB",
                             idx->dims[0], idx->dims[2], idx->dims[1]);
    const uint64_t size = area * idx->dims[0];
    if (size > possible)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the header promises %" PRIu64
                             " bytes, but the file cannot hold more than %" PRIu64,
                             size, possible);
    idx->items = dl2_alloc_aligned(size, 1);
    if (!idx->items)
        return dl2_error_memory(error, "a dataset");
    uint64_t got, more;
    uint8_t beyond;
    DL2_TRY(idx_take(file, idx->items, size, &got, error));
    if (got < size)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the header promises %" PRIu64 " bytes, but only %" PRIu64 " follow",
                             size, got);
    /* To read one more byte also makes zlib compare the check sum. */
    DL2_TRY(idx_take(file, &beyond, 1, &more, error));
    return more ? dl2_error_set(error, DL2_ERR_FORMAT,
                                "more bytes follow than the %" PRIu64 " that the header promises",
                                size)
                : DL2_OK;
}

int dl2_idx_read(int fd, unsigned rank, struct dl2_idx *idx, struct dl2_error *error)
{
    struct stat info;
    *idx = (struct dl2_idx){0};
    const int copy = dup(fd);
    gzFile file = copy < 0 || fstat(fd, &info) != 0 ? NULL : gzdopen(copy, "r");
    if (!file) {
        if (copy >= 0)
            close(copy);
        return dl2_error_system(error, "cannot be read");
    }
    const uint64_t bytes = (uint64_t)info.st_size;
    int status = bytes > MAX_FILE_BYTES
                     ? dl2_error_set(error, DL2_ERR_LIMIT,
                                     "%" PRIu64 " bytes pass the limit of 2 GiB", bytes)
                     : idx_read_header(file, rank, idx, error);
    if (status == DL2_OK)
        status = idx_read_items(file, gzdirect(file) ? bytes - 4 - 4 * rank : bytes * MAX_RATIO,
                                idx, error);
    gzclose(file);
    if (status < 0)
        dl2_idx_free(idx);
    return status;
}

void dl2_idx_free(struct dl2_idx *idx)
{
    free(idx->items);
    *idx = (struct dl2_idx){0};
}

/* ---- The dataset */

struct entry {
    const char *key;
    const uint8_t *pixels;
    uint8_t part; /* of struct idx_dataset */
    uint8_t label;
};

/* A pair of files, images and labels. */
struct part {
    char *images_path; /* NULL: not there */
    int64_t mtime_ns;
    struct dl2_idx images, labels;
    char header[48]; /* what makes the pixels of a sample a PGM file */
    size_t header_size, pixel_bytes;
};

struct idx_dataset {
    struct part parts[2]; /* train, t10k */
    struct entry *entries;
    char *strings;
};

static const char *const prefixes[2] = {"train", "t10k"};
static const char *const folders[2] = {"train", "val"};

/* FOLDER/PREFIX-WHAT or the same with .gz; NULL if neither is there. */
static char *idx_find_file(const char *folder, const char *prefix, const char *what)
{
    for (int packed = 0; packed < 2; packed++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%s%s", prefix, what, packed ? ".gz" : "");
        char *path = dl2_path_join(folder, name);
        if (!path || dl2_is_file(path))
            return path;
        free(path);
    }
    return NULL;
}

static bool idx_probe(const char *path)
{
    for (int i = 0; i < 2; i++) {
        DL2_AUTO_FREE char *images = idx_find_file(path, prefixes[i], "images-idx3-ubyte");
        if (images)
            return true;
    }
    return false;
}

static int idx_load_file(const char *path, unsigned rank, struct dl2_idx *idx,
                         struct dl2_error *error)
{
    DL2_CLEANUP(dl2_close_file) const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dl2_error_system(error, "%s: cannot be read", path);
    const int status = dl2_idx_read(fd, rank, idx, error);
    dl2_error_prefix(error, "%s", path);
    return status;
}

static int idx_load_labels(const char *folder, const char *prefix, struct part *part,
                           struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = idx_find_file(folder, prefix, "labels-idx1-ubyte");
    if (!path)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: no labels beside it: looked for %s-labels-idx1-ubyte[.gz]",
                             part->images_path, prefix);
    DL2_TRY(idx_load_file(path, 1, &part->labels, error));
    if (part->labels.dims[0] == part->images.dims[0])
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: %" PRIu32 " labels for the %" PRIu32 " images in %s", path,
                         part->labels.dims[0], part->images.dims[0], part->images_path);
}

static int idx_load_part(const char *folder, const char *prefix, struct part *part,
                         struct dl2_error *error)
{
    part->images_path = idx_find_file(folder, prefix, "images-idx3-ubyte");
    if (!part->images_path)
        return DL2_OK;
    struct stat status;
    if (stat(part->images_path, &status) < 0)
        return dl2_error_system(error, "%s", part->images_path);
    part->mtime_ns = dl2_mtime_ns(&status);
    DL2_TRY(idx_load_file(part->images_path, 3, &part->images, error));
    DL2_TRY(idx_load_labels(folder, prefix, part, error));
    part->pixel_bytes = (size_t)part->images.dims[1] * part->images.dims[2];
    part->header_size =
        (size_t)snprintf(part->header, sizeof part->header, "P5\n%" PRIu32 " %" PRIu32 "\n255\n",
                         part->images.dims[2], part->images.dims[1]);
    return DL2_OK;
}

/* Labels are the classes' numbers: 0 up to the largest. All names have as many digits. */
static int idx_make_classes(struct dl2_dataset *dataset, const struct idx_dataset *idx,
                            struct dl2_error *error)
{
    unsigned largest = 0;
    for (int p = 0; p < 2; p++)
        for (uint32_t i = 0; idx->parts[p].images_path && i < idx->parts[p].labels.dims[0]; i++)
            if (idx->parts[p].labels.items[i] > largest)
                largest = idx->parts[p].labels.items[i];
    const int digits = largest > 99 ? 3 : largest > 9 ? 2 : 1;
    char text[256][4];
    const char *names[256];
    for (unsigned label = 0; label <= largest; label++) {
        snprintf(text[label], sizeof text[label], "%0*u", digits, label & 255);
        names[label] = text[label];
    }
    return dl2_reader_set_classes(dataset, names, largest + 1, error);
}

/* Digits of a sample's number: five, as most datasets of this kind have, or more. */
static int number_digits(uint32_t count)
{
    int digits = 5;
    for (uint32_t largest = count - 1; largest > 99999 && digits < 10; largest /= 10)
        digits++;
    return digits;
}

/* Room for one sample's key: "train/", 3 digits, "/", 10 digits. */
enum { KEY_BYTES = 6 + 3 + 1 + 10 + 1 };

/* Adds a part's samples, by label, at *at in the block of strings. */
static void idx_add_part(struct dl2_dataset *dataset, int p, char **at)
{
    struct idx_dataset *idx = dataset->state;
    const struct part *part = &idx->parts[p];
    const uint32_t count = part->images.dims[0];
    const int digits = number_digits(count);
    for (unsigned label = 0; label < 256; label++)
        for (uint32_t i = 0; i < count; i++) {
            if (part->labels.items[i] != label)
                continue;
            struct entry *entry = &idx->entries[dataset->count++];
            entry->key = *at;
            char number[11]; /* "%0*" of a width that GCC can't see is a warning with -fsanitize */
            snprintf(number, sizeof number, "%010" PRIu32, i);
            snprintf(*at, KEY_BYTES, "%s/%s/%s", folders[p], dataset->classes[label],
                     number + 10 - digits);
            *at += strlen(*at) + 1;
            entry->pixels = part->images.items + (size_t)i * part->pixel_bytes;
            entry->part = (uint8_t)p;
            entry->label = (uint8_t)label;
        }
}

static int idx_open(struct dl2_dataset *dataset, const char *path,
                    const struct dl2_dataset_options *options, struct dl2_error *error)
{
    (void)options; /* there are no files to be left out */
    struct idx_dataset *idx;
    DL2_TRY(DL2_NEW(&idx, 1, "a dataset", error));
    dataset->state = idx;
    dataset->has_parts = true;
    for (int p = 0; p < 2; p++)
        DL2_TRY(idx_load_part(path, prefixes[p], &idx->parts[p], error));
    DL2_TRY(idx_make_classes(dataset, idx, error));
    const size_t count = (size_t)idx->parts[0].images.dims[0] + idx->parts[1].images.dims[0];
    DL2_TRY(DL2_NEW(&idx->entries, count, "a dataset", error));
    DL2_TRY(DL2_NEW(&idx->strings, count * KEY_BYTES, "a dataset", error));
    char *at = idx->strings;
    for (int p = 0; p < 2; p++)
        if (idx->parts[p].images_path)
            idx_add_part(dataset, p, &at);
    return DL2_OK;
}

static void idx_close(struct dl2_dataset *dataset)
{
    struct idx_dataset *idx = dataset->state;
    for (int p = 0; p < 2; p++) {
        free(idx->parts[p].images_path);
        dl2_idx_free(&idx->parts[p].images);
        dl2_idx_free(&idx->parts[p].labels);
    }
    free(idx->entries);
    free(idx->strings);
    free(idx);
}

static struct dl2_entry idx_describe(const struct dl2_dataset *dataset, size_t number)
{
    const struct idx_dataset *idx = dataset->state;
    const struct entry *entry = &idx->entries[number];
    const struct part *part = &idx->parts[entry->part];
    const char *digits = dl2_path_base(entry->key);
    digits += strspn(digits, "0");
    return (struct dl2_entry){.sample = {.key = entry->key,
                                         .path = part->images_path,
                                         .name = entry->key,
                                         .extension = "pgm",
                                         .label = entry->label,
                                         .bytes = part->header_size + part->pixel_bytes,
                                         .mtime_ns = part->mtime_ns},
                              .inner = *digits ? digits : "0",
                              .part = entry->part ? DL2_PART_VAL : DL2_PART_TRAIN};
}

static int idx_read(const struct dl2_dataset *dataset, size_t number,
                    const struct dl2_slice_range *slices, struct dl2_bytes *out,
                    struct dl2_error *error)
{
    (void)slices; /* samples are not cut */
    const struct idx_dataset *idx = dataset->state;
    const struct entry *entry = &idx->entries[number];
    const struct part *part = &idx->parts[entry->part];
    DL2_TRY(dl2_bytes_resize(out, part->header_size + part->pixel_bytes, error));
    memcpy(out->data, part->header, part->header_size);
    memcpy(out->data + part->header_size, entry->pixels, part->pixel_bytes);
    return DL2_OK;
}

static const struct dl2_reader idx_reader = {
    .open = idx_open,
    .close = idx_close,
    .describe = idx_describe,
    .read = idx_read,
};

const struct dl2_container dl2_container_idx = {
    .name = "idx",
    .extensions = "-",
    .summary = "IDX files as MNIST has them",
    .looks_for = "{train,t10k}-images-idx3-ubyte[.gz]",
    .reader = &idx_reader,
    .probe = idx_probe,
};
