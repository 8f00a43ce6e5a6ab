/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a packed dataset: where every sample lies, what it is called, its label, its part
 * and its check sum, in one block that is mapped as it is (dl2-index.bin,
 * docs/formats/datasets.md). Numbers are little-endian.
 *
 *   header | shards | records, in the dataset's order | classes | splits | record numbers by key |
 *   slices | strings
 *
 * The same block is made in memory for packed datasets that come without one. Only this room's
 * files include it.
 */
#ifndef DL2_DATASET_INDEX_H
#define DL2_DATASET_INDEX_H

#include "common/error.h"
#include "common/memory.h"
#include "common/slices.h"
#include "dataset/split.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DL2_INDEX_NAME "dl2-index.bin"

struct dl2_container;

enum dl2_entry_flags {
    DL2_ENTRY_FURTHER = 1, /* a further frame of the item that the entry before belongs to */
    DL2_ENTRY_SUMMED = 2,  /* has a check sum */
    DL2_ENTRY_NAMED = 4    /* its shard's name stands before the last part of its key */
};

/* One sample. */
struct dl2_index_entry {
    uint64_t offset; /* in its shard */
    uint64_t sum;    /* XXH3, 64 bits */
    uint32_t bytes;
    uint32_t shard;
    int32_t label;
    uint8_t part;  /* enum dl2_part, or behind it a name of the list */
    uint8_t flags; /* enum dl2_entry_flags */
    const char *key, *extension;
};

struct dl2_index_shard {
    const char *name; /* path from the dataset's root */
    uint64_t bytes;
    int64_t mtime_ns;
};

/* Views into a block that was checked: every offset and string lies within it. */
struct dl2_index {
    const struct dl2_container *container;
    bool has_parts;
    bool is_own;         /* writer.c made the container, so it may overwrite it */
    bool is_outdated;    /* of a version that read such shards in another way */
    const char *remarks; /* as in struct dl2_index_draft */
    struct dl2_member_choice members;
    size_t count; /* of entries */
    uint32_t shard_count, class_count;
    uint32_t part_count;              /* of splits by names of their own */
    size_t strings_size, slices_size; /* the latter in numbers of 32 bits */
    const uint8_t *shards, *records, *classes, *parts, *by_key, *slices;
    const char *strings;
    void *map; /* of dl2_index_map() */
    size_t map_size;
};

/*
 * Checks all of a block, which stays the caller's, is aligned to 8 bytes and must outlive the
 * index. DL2_ERR_FORMAT says what is wrong; a version that is not known is DL2_ERR_UNSUPPORTED,
 * the first is_outdated.
 */
int dl2_index_open(const void *data, size_t size, struct dl2_index *index, struct dl2_error *error);

/* The same for a file, which stays mapped until dl2_index_unmap(). */
int dl2_index_map(const char *path, struct dl2_index *index, struct dl2_error *error);
/* Does nothing to an index that is not mapped but to zero it. */
void dl2_index_unmap(struct dl2_index *index);

struct dl2_index_entry dl2_index_entry(const struct dl2_index *index, size_t number);
struct dl2_index_shard dl2_index_shard(const struct dl2_index *index, uint32_t number);
/* How a sample is cut, as views into the block; false if it is not, or if that is damaged. */
struct dl2_index_slicing {
    uint32_t width, height, rows, count; /* as in struct dl2_slicing */
    int orientation;
    const uint8_t *head;
    uint32_t head_size;
    const uint8_t *offsets, *sums; /* little-endian u32 [count + 1], [count] */
};
bool dl2_index_slicing(const struct dl2_index *index, size_t number,
                       struct dl2_index_slicing *slicing);
/* Number `at` of an array of numbers of 32 bits in a block. */
static inline uint32_t dl2_index_u32(const uint8_t *numbers, size_t at)
{
    uint32_t value;
    memcpy(&value, numbers + at * sizeof value, sizeof value);
    return le32toh(value);
}
const char *dl2_index_class(const struct dl2_index *index, uint32_t number);
/* The name of part DL2_PARTS + number. */
const char *dl2_index_part(const struct dl2_index *index, uint32_t number);
/* The number of the entry that has the key, SIZE_MAX if there is none. */
size_t dl2_index_find(const struct dl2_index *index, const char *key);

/* Can this be the key of a sample: a path of which no part is empty, "." or ".."? */
bool dl2_index_is_key(const char *key);

/* An index that is being made. Zero it first, then set `container`. */
struct dl2_index_draft {
    const struct dl2_container *container;
    bool has_parts, is_own;
    char *remarks; /* what there is to say of the samples when they are opened, a line each */
    char *label_field, *image_extension; /* as in struct dl2_member_choice */
    struct dl2_bytes entries;            /* struct dl2_index_draft_entry */
    size_t count;
    struct dl2_bytes strings; /* "KEY\0EXTENSION\0" an entry */
    struct dl2_bytes slices;  /* as in the block */
    struct dl2_bytes heads;   /* uint32_t: where each of them is in `slices` */
    struct dl2_index_draft_shard {
        char *name;
        uint64_t bytes;
        int64_t mtime_ns;
        /* What a shard's keys start with if it may have the keys of another, the caller's. NULL:
         * keys differ. */
        const char *key_start;
    } * shards;
    uint32_t shard_count;
    uint32_t *by_key; /* entries by their keys: dl2_index_draft_sort() */
    char **classes;   /* in one block */
    uint32_t class_count;
    struct dl2_part_list parts; /* the names of parts from DL2_PARTS on */
};

struct dl2_index_draft_entry {
    uint64_t offset, sum;
    uint64_t key;    /* in strings */
    uint64_t slices; /* where in slices, plus 1; 0: not cut */
    uint32_t bytes, shard;
    int32_t label;
    uint8_t part, flags;
};

/* Copies the name. */
int dl2_index_draft_add_shard(struct dl2_index_draft *draft, const char *name, uint64_t bytes,
                              int64_t mtime_ns, struct dl2_error *error);
/* Copies key and extension. Its shard must be there already. */
int dl2_index_draft_add(struct dl2_index_draft *draft, const struct dl2_index_entry *entry,
                        struct dl2_error *error);
struct dl2_index_draft_entry *dl2_index_draft_entry(const struct dl2_index_draft *draft,
                                                    size_t number);
/* Notes how an entry is cut; `data` are its bytes. */
int dl2_index_draft_slice(struct dl2_index_draft *draft, size_t number,
                          const struct dl2_slicing *slicing, const uint8_t *data,
                          struct dl2_error *error);
const char *dl2_index_draft_key(const struct dl2_index_draft *draft, size_t number);
/* Copies the names. */
int dl2_index_draft_set_classes(struct dl2_index_draft *draft, const char *const *names,
                                uint32_t count, struct dl2_error *error);

/* Copies the choice. */
int dl2_index_draft_set_members(struct dl2_index_draft *draft,
                                const struct dl2_member_choice *members, struct dl2_error *error);

/*
 * Sorts the entries by their keys, behind the last that is added. Where a key comes in two shards
 * with a key_start, all shards with this key_start get their names into their keys ("a/7" of
 * x-3.tar becomes "a/x-3_7"), and a remark says so. DL2_ERR_FORMAT if another key comes twice.
 */
int dl2_index_draft_sort(struct dl2_index_draft *draft, struct dl2_error *error);
/* How much of a shard's name that is. */
size_t dl2_index_shard_stem(const char *name);
/* Sorts, and replaces the contents of `out` by the finished block. */
int dl2_index_draft_finish(struct dl2_index_draft *draft, struct dl2_bytes *out,
                           struct dl2_error *error);
/* Writes the finished block to ROOT/dl2-index.bin. */
int dl2_index_draft_save(struct dl2_index_draft *draft, const char *root, struct dl2_error *error);
void dl2_index_draft_free(struct dl2_index_draft *draft);

#endif
