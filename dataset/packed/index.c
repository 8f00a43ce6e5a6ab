/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/packed/index.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/packed.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC   "DL2INDEX"
#define VERSION 5
#define LOOSE   4 /* up to it what a scan left out went unsaid; our own shards have nothing of it */
#define OLDEST  2 /* knew no test split, and of the others train/ and val/ alone */

enum { HEADER_HAS_PARTS = 1, HEADER_IS_OWN = 2 };
/* There are remarks, an extension of images, and the path of a field of JSON, which gave the
 * labels: they stand behind the names of the splits, in this order. */
#define HEADER_REMARKS     0x20000000u
#define HEADER_IMAGE       0x10000000u
#define HEADER_LABEL_FIELD 0x40000000u
/* A scan made it, which numbers the classes of train first. */
#define HEADER_TRAIN_FIRST 0x80000000u

/* The block's own layout; all numbers little-endian. */
struct header {
    char magic[8];
    uint32_t version, kind, flags;
    uint32_t shard_count, class_count, part_count;
    uint64_t count, strings_size;
    uint64_t slices_size; /* numbers of 32 bits */
    uint64_t sum;         /* XXH3 of the whole block with this field 0 */
};

struct shard {
    uint64_t name; /* in the strings */
    uint64_t bytes;
    int64_t mtime_ns;
};

struct record {
    uint64_t offset, sum;
    uint64_t key;    /* in the strings; the extension follows it */
    uint64_t slices; /* where in the slices, plus 1; 0: not cut */
    uint32_t bytes, shard;
    uint32_t label;
    uint8_t part, flags;
    uint8_t reserved[2];
};

_Static_assert(sizeof(struct header) == 64 && sizeof(struct shard) == 24 &&
                   sizeof(struct record) == 48,
               "the layout has no padding");

/*
 * The slices are numbers of 32 bits: heads, each its size and its bytes, filled up with zeros, and
 * for each sample that is cut where its head is, width and orientation, height, rows, count,
 * count + 1 offsets, count check sums (the lower half of XXH3).
 */
/* The width has the lower bits. The upper ones are the orientation less 1: programs that do not
 * know them see an image that is too large to be planned, and read it whole. */
enum { WIDTH_BITS = 24, MAX_WIDTH = (1 << WIDTH_BITS) - 1 };
enum { SLICING_HEAD, SLICING_WIDTH, SLICING_HEIGHT, SLICING_ROWS, SLICING_COUNT, SLICING_NUMBERS };

/* After so many different heads, samples with another are not cut: heads would cost more bytes
 * than cuts save. */
#define MAX_HEADS 512

#define MAX_INDEX_BYTES ((uint64_t)1 << 40)

/* ---- The parts of a block */

struct layout {
    size_t shards, records, classes, parts, by_key, slices, strings, end;
};

static bool add_section(size_t *at, uint64_t count, size_t size)
{
    size_t bytes;
    return count <= SIZE_MAX && dl2_size_mul((size_t)count, size, &bytes) &&
           dl2_size_add(*at, bytes, at);
}

static bool index_lay_out(const struct header *header, struct layout *layout)
{
    size_t at = sizeof *header;
    const uint64_t count = le64toh(header->count);
    layout->shards = at;
    bool fits = add_section(&at, le32toh(header->shard_count), sizeof(struct shard));
    layout->records = at;
    fits = fits && add_section(&at, count, sizeof(struct record));
    layout->classes = at;
    fits = fits && add_section(&at, le32toh(header->class_count), sizeof(uint64_t));
    layout->parts = at;
    fits = fits && add_section(&at, le32toh(header->part_count), sizeof(uint64_t));
    layout->by_key = at;
    fits = fits && add_section(&at, count, sizeof(uint32_t));
    layout->slices = at;
    fits = fits && add_section(&at, le64toh(header->slices_size), sizeof(uint32_t));
    layout->strings = at;
    fits = fits && add_section(&at, le64toh(header->strings_size), 1);
    layout->end = at;
    return fits;
}

/* The sum of a block as it is while its field for it is 0. */
static int index_sum(const uint8_t *data, size_t size, uint64_t *sum, struct dl2_error *error)
{
    struct header header;
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return dl2_error_memory(error, "a check sum");
    memcpy(&header, data, sizeof header);
    header.sum = 0;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &header, sizeof header);
    XXH3_64bits_update(state, data + sizeof header, size - sizeof header);
    *sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return DL2_OK;
}

/* ---- Reading */

static struct record index_record_at(const struct dl2_index *index, size_t number)
{
    struct record record;
    memcpy(&record, index->records + number * sizeof record, sizeof record);
    return record;
}

static uint64_t index_number_at(const uint8_t *numbers, size_t number)
{
    uint64_t value;
    memcpy(&value, numbers + number * sizeof value, sizeof value);
    return le64toh(value);
}

struct dl2_index_entry dl2_index_entry(const struct dl2_index *index, size_t number)
{
    const struct record record = index_record_at(index, number);
    const char *key = index->strings + le64toh(record.key);
    return (struct dl2_index_entry){.offset = le64toh(record.offset),
                                    .sum = le64toh(record.sum),
                                    .bytes = le32toh(record.bytes),
                                    .shard = le32toh(record.shard),
                                    .label = (int32_t)le32toh(record.label),
                                    .part = record.part,
                                    .flags = record.flags,
                                    .key = key,
                                    .extension = key + strlen(key) + 1};
}

struct dl2_index_shard dl2_index_shard(const struct dl2_index *index, uint32_t number)
{
    struct shard shard;
    memcpy(&shard, index->shards + number * sizeof shard, sizeof shard);
    return (struct dl2_index_shard){index->strings + le64toh(shard.name), le64toh(shard.bytes),
                                    (int64_t)le64toh((uint64_t)shard.mtime_ns)};
}

/* Checked here and not at opening, which looks at no more than it must. */
bool dl2_index_slicing(const struct dl2_index *index, size_t number,
                       struct dl2_index_slicing *slicing)
{
    const struct record record = index_record_at(index, number);
    const size_t size = index->slices_size;
    if (!record.slices || le64toh(record.slices) > size ||
        size - (le64toh(record.slices) - 1) < SLICING_NUMBERS)
        return false;
    const size_t at = (size_t)le64toh(record.slices) - 1;
    const uint32_t head = dl2_index_u32(index->slices, at + SLICING_HEAD);
    const uint32_t width = dl2_index_u32(index->slices, at + SLICING_WIDTH);
    *slicing =
        (struct dl2_index_slicing){.width = width & MAX_WIDTH,
                                   .orientation = (int)(width >> WIDTH_BITS) + 1,
                                   .height = dl2_index_u32(index->slices, at + SLICING_HEIGHT),
                                   .rows = dl2_index_u32(index->slices, at + SLICING_ROWS),
                                   .count = dl2_index_u32(index->slices, at + SLICING_COUNT)};
    const uint32_t count = slicing->count;
    if (!count || count > DL2_MAX_SLICES || size - at - SLICING_NUMBERS < 2 * (size_t)count + 1 ||
        !slicing->width || slicing->orientation > 8 || !slicing->rows ||
        slicing->height > (uint64_t)slicing->rows * count ||
        slicing->height <= (uint64_t)slicing->rows * (count - 1) || head >= size ||
        dl2_index_u32(index->slices, head) > (size - head - 1) * sizeof(uint32_t))
        return false;
    const size_t offsets = at + SLICING_NUMBERS;
    for (uint32_t i = 0; i < count; i++)
        if (dl2_index_u32(index->slices, offsets + i) >=
            dl2_index_u32(index->slices, offsets + i + 1))
            return false;
    if (dl2_index_u32(index->slices, offsets + count) > le32toh(record.bytes))
        return false;
    slicing->head = index->slices + (head + 1) * sizeof(uint32_t);
    slicing->head_size = dl2_index_u32(index->slices, head);
    slicing->offsets = index->slices + offsets * sizeof(uint32_t);
    slicing->sums = slicing->offsets + ((size_t)count + 1) * sizeof(uint32_t);
    return true;
}

const char *dl2_index_class(const struct dl2_index *index, uint32_t number)
{
    return index->strings + index_number_at(index->classes, number);
}

const char *dl2_index_part(const struct dl2_index *index, uint32_t number)
{
    return index->strings + index_number_at(index->parts, number);
}

size_t dl2_index_find(const struct dl2_index *index, const char *key)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint32_t number = dl2_index_u32(index->by_key, middle);
        const int order = strcmp(index->strings + le64toh(index_record_at(index, number).key), key);
        if (order == 0)
            return number;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

bool dl2_index_is_key(const char *key)
{
    for (;;) {
        const char *end = strchrnul(key, '/');
        const size_t length = (size_t)(end - key);
        if (length == 0 || (key[0] == '.' && (length == 1 || (length == 2 && key[1] == '.'))))
            return false;
        if (!*end)
            return true;
        key = end + 1;
    }
}

static int index_check_shards(const struct dl2_index *index, struct dl2_error *error)
{
    for (uint32_t i = 0; i < index->shard_count; i++) {
        struct shard shard;
        memcpy(&shard, index->shards + i * sizeof shard, sizeof shard);
        const uint64_t name = le64toh(shard.name);
        if (name >= index->strings_size || !dl2_index_is_key(index->strings + name))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "shard %" PRIu32 " has no name that could be", i);
    }
    for (uint32_t i = 0; i < index->class_count; i++)
        if (index_number_at(index->classes, i) >= index->strings_size)
            return dl2_error_set(error, DL2_ERR_FORMAT, "class %" PRIu32 " has no name", i);
    for (uint32_t i = 0; i < index->part_count; i++)
        if (index_number_at(index->parts, i) >= index->strings_size)
            return dl2_error_set(error, DL2_ERR_FORMAT, "split %" PRIu32 " has no name", i);
    return DL2_OK;
}

/* The string that ends with the zero at *end, which becomes that of the string before. */
static const char *index_string_before(const struct dl2_index *index, size_t *end)
{
    size_t start = *end;
    while (start && index->strings[start - 1])
        start--;
    *end = start ? start - 1 : 0;
    return index->strings + start;
}

/* Finds what stands behind all names, and before two zeros. */
static int index_find_texts(struct dl2_index *index, uint32_t flags, struct dl2_error *error)
{
    size_t end = index->strings_size - 2;
    const char *field = index_string_before(index, &end); /* empty: there is none */
    if (flags & HEADER_LABEL_FIELD)
        index->members.label_field = field;
    if (flags & HEADER_IMAGE)
        index->members.image_extension = index_string_before(index, &end);
    if (flags & HEADER_REMARKS)
        index->remarks = index_string_before(index, &end);
    return index->members.label_field && dl2_label_field_check(field, NULL) < 0
               ? dl2_error_set(error, DL2_ERR_FORMAT, "its field of labels is no path")
               : DL2_OK;
}

static int index_check_record(const struct dl2_index *index, const struct record *record,
                              size_t number, struct dl2_error *error)
{
    const uint64_t offset = le64toh(record->offset), key = le64toh(record->key);
    const uint32_t bytes = le32toh(record->bytes), shard = le32toh(record->shard);
    const int32_t label = (int32_t)le32toh(record->label);
    const char *wrong = NULL;
    if (shard >= index->shard_count)
        wrong = "lies in no shard";
    else if (bytes > INT32_MAX || offset > dl2_index_shard(index, shard).bytes ||
             bytes > dl2_index_shard(index, shard).bytes - offset)
        wrong = "does not lie within its shard";
    else if (label < -1 || label >= (int64_t)index->class_count)
        wrong = "has a label beyond the classes";
    else if (record->part >= DL2_PARTS + index->part_count)
        wrong = "belongs to a split that has no name";
    /* The strings end with two zeros, so key and extension end within them. */
    else if (key >= index->strings_size - 1 || !dl2_index_is_key(index->strings + key))
        wrong = "has no name that could be";
    return wrong ? dl2_error_set(error, DL2_ERR_FORMAT, "sample %zu %s", number, wrong) : DL2_OK;
}

static int index_check_records(const struct dl2_index *index, struct dl2_error *error)
{
    for (size_t i = 0; i < index->count; i++) {
        const struct record record = index_record_at(index, i);
        DL2_TRY(index_check_record(index, &record, i, error));
        if (dl2_index_u32(index->by_key, i) >= index->count)
            return dl2_error_set(error, DL2_ERR_FORMAT, "the order of keys names no sample");
    }
    return DL2_OK;
}

static int index_check_sum(const void *data, size_t size, uint64_t wanted, struct dl2_error *error)
{
    uint64_t sum;
    DL2_TRY(index_sum(data, size, &sum, error));
    return sum == wanted
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT, "its check sum differs: it is damaged");
}

/* Does a class that train lacks have a number before one of train's? */
static int has_others_first(const struct dl2_index *index, bool *found, struct dl2_error *error)
{
    DL2_AUTO_FREE bool *in_train = NULL;
    DL2_TRY(DL2_NEW(&in_train, index->class_count, "an index", error));
    for (size_t i = 0; i < index->count; i++) {
        const struct dl2_index_entry entry = dl2_index_entry(index, i);
        if (entry.label >= 0 && entry.part == DL2_PART_TRAIN)
            in_train[entry.label] = true;
    }
    for (uint32_t i = 1; i < index->class_count; i++)
        *found = *found || (in_train[i] && !in_train[i - 1]);
    return DL2_OK;
}

int dl2_index_open(const void *data, size_t size, struct dl2_index *index, struct dl2_error *error)
{
    struct header header;
    *index = (struct dl2_index){0};
    if (size < sizeof header)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%zu bytes are no index", size);
    memcpy(&header, data, sizeof header);
    if (memcmp(header.magic, MAGIC, sizeof header.magic) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "not an index");
    const uint32_t version = le32toh(header.version);
    if (version < OLDEST || version > VERSION)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "an index of version %" PRIu32 ", and this program knows version %d",
                             version, VERSION);
    const struct dl2_container *container = dl2_container_of_index(le32toh(header.kind));
    if (!container)
        return dl2_error_set(error, DL2_ERR_FORMAT, "an index of no known kind");
    struct layout layout;
    if (!index_lay_out(&header, &layout) || layout.end != size ||
        le64toh(header.count) > UINT32_MAX || le32toh(header.class_count) > INT32_MAX ||
        le32toh(header.part_count) > DL2_MAX_PARTS - DL2_PARTS)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%zu bytes are not what its header speaks of: cut short?", size);
    DL2_TRY(index_check_sum(data, size, le64toh(header.sum), error));
    const uint8_t *bytes = data;
    *index = (struct dl2_index){.container = container,
                                .has_parts = le32toh(header.flags) & HEADER_HAS_PARTS,
                                .is_own = le32toh(header.flags) & HEADER_IS_OWN,
                                .is_outdated =
                                    version == OLDEST ||
                                    (version <= LOOSE && !(le32toh(header.flags) & HEADER_IS_OWN)),
                                .count = (size_t)le64toh(header.count),
                                .shard_count = le32toh(header.shard_count),
                                .class_count = le32toh(header.class_count),
                                .part_count = le32toh(header.part_count),
                                .strings_size = (size_t)le64toh(header.strings_size),
                                .slices_size = (size_t)le64toh(header.slices_size),
                                .shards = bytes + layout.shards,
                                .records = bytes + layout.records,
                                .classes = bytes + layout.classes,
                                .parts = bytes + layout.parts,
                                .by_key = bytes + layout.by_key,
                                .slices = bytes + layout.slices,
                                .strings = (const char *)bytes + layout.strings};
    const size_t n = index->strings_size;
    int status = n >= 2 && !index->strings[n - 1] && !index->strings[n - 2]
                     ? index_check_shards(index, error)
                     : dl2_error_set(error, DL2_ERR_FORMAT, "its names have no end");
    if (status == DL2_OK)
        status = index_find_texts(index, le32toh(header.flags), error);
    if (status == DL2_OK)
        status = index_check_records(index, error);
    if (status == DL2_OK && index->has_parts && !index->is_own &&
        !(le32toh(header.flags) & HEADER_TRAIN_FIRST))
        status = has_others_first(index, &index->is_outdated, error);
    if (status < 0)
        *index = (struct dl2_index){0};
    return status;
}

int dl2_index_map(const char *path, struct dl2_index *index, struct dl2_error *error)
{
    struct stat status;
    DL2_CLEANUP(dl2_close_file) const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *index = (struct dl2_index){0};
    if (fd < 0 || fstat(fd, &status) != 0)
        return dl2_error_system(error, "%s: cannot be read", path);
    const size_t size = (size_t)status.st_size;
    if (!S_ISREG(status.st_mode) || size == 0 || size > MAX_INDEX_BYTES)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: not an index", path);
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        return dl2_error_system(error, "%s: cannot be read", path);
    const int result = dl2_index_open(map, size, index, error);
    if (result < 0) {
        dl2_error_prefix(error, "%s (remove it to read the dataset without)", path);
        munmap(map, size);
        return result;
    }
    index->map = map;
    index->map_size = size;
    return DL2_OK;
}

void dl2_index_unmap(struct dl2_index *index)
{
    if (index->map)
        munmap(index->map, index->map_size);
    *index = (struct dl2_index){0};
}

/* ---- Making one */

int dl2_index_draft_add_shard(struct dl2_index_draft *draft, const char *name, uint64_t bytes,
                              int64_t mtime_ns, struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&draft->shards, draft->shard_count, sizeof *draft->shards, error));
    struct dl2_index_draft_shard *shard = &draft->shards[draft->shard_count];
    *shard = (struct dl2_index_draft_shard){NULL, bytes, mtime_ns, NULL};
    DL2_TRY(dl2_format(&shard->name, error, "%s", name));
    draft->shard_count++;
    return DL2_OK;
}

int dl2_index_draft_add(struct dl2_index_draft *draft, const struct dl2_index_entry *entry,
                        struct dl2_error *error)
{
    const struct dl2_index_draft_entry made = {.offset = entry->offset,
                                               .sum = entry->sum,
                                               .key = draft->strings.size,
                                               .bytes = entry->bytes,
                                               .shard = entry->shard,
                                               .label = entry->label,
                                               .part = entry->part,
                                               .flags = entry->flags};
    if (draft->count >= UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "more than 2^32 samples");
    DL2_TRY(dl2_bytes_append(&draft->strings, entry->key, strlen(entry->key) + 1, error));
    DL2_TRY(
        dl2_bytes_append(&draft->strings, entry->extension, strlen(entry->extension) + 1, error));
    DL2_TRY(dl2_bytes_append(&draft->entries, &made, sizeof made, error));
    draft->count++;
    return DL2_OK;
}

static int append_numbers(struct dl2_bytes *out, const uint32_t *numbers, size_t count,
                          struct dl2_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t number = htole32(numbers[i]);
        DL2_TRY(dl2_bytes_append(out, &number, sizeof number, error));
    }
    return DL2_OK;
}

static bool is_head_at(const struct dl2_index_draft *draft, uint32_t at,
                       const struct dl2_bytes *head)
{
    const uint8_t *there = draft->slices.data + at * sizeof(uint32_t);
    return dl2_index_u32(there, 0) == head->size &&
           !memcmp(there + sizeof(uint32_t), head->data, head->size);
}

/* Sets *at to where a head is, and adds it if it is new: 1, or 0 if there are too many heads. */
static int draft_find_head(struct dl2_index_draft *draft, const struct dl2_bytes *head,
                           uint32_t *at, struct dl2_error *error)
{
    const size_t count = draft->heads.size / sizeof *at;
    for (size_t i = count; i-- > 0;) { /* the latest is the likeliest */
        memcpy(at, draft->heads.data + i * sizeof *at, sizeof *at);
        if (is_head_at(draft, *at, head))
            return 1;
    }
    if (count >= MAX_HEADS || draft->slices.size / sizeof *at > UINT32_MAX)
        return 0;
    *at = (uint32_t)(draft->slices.size / sizeof *at);
    const uint32_t size = (uint32_t)head->size;
    static const uint8_t zeros[sizeof size];
    DL2_TRY(append_numbers(&draft->slices, &size, 1, error));
    DL2_TRY(dl2_bytes_append(&draft->slices, head->data, head->size, error));
    DL2_TRY(dl2_bytes_append(&draft->slices, zeros, -head->size % sizeof size, error));
    DL2_TRY(dl2_bytes_append(&draft->heads, at, sizeof *at, error));
    return 1;
}

int dl2_index_draft_slice(struct dl2_index_draft *draft, size_t number,
                          const struct dl2_slicing *slicing, const uint8_t *data,
                          struct dl2_error *error)
{
    uint32_t head;
    if (slicing->count > DL2_MAX_SLICES || slicing->width > MAX_WIDTH)
        return DL2_OK;
    const int found = draft_find_head(draft, &slicing->head, &head, error);
    if (found <= 0)
        return found;
    const uint32_t *offsets = (const uint32_t *)(const void *)slicing->offsets.data;
    const uint32_t turned = (uint32_t)(slicing->orientation - 1) << WIDTH_BITS;
    const uint32_t numbers[SLICING_NUMBERS] = {head, slicing->width | turned, slicing->height,
                                               slicing->rows, slicing->count};
    const uint64_t at = draft->slices.size / sizeof(uint32_t);
    DL2_TRY(append_numbers(&draft->slices, numbers, SLICING_NUMBERS, error));
    DL2_TRY(append_numbers(&draft->slices, offsets, (size_t)slicing->count + 1, error));
    for (uint32_t i = 0; i < slicing->count; i++) {
        const uint32_t sum = (uint32_t)XXH3_64bits(data + offsets[i], offsets[i + 1] - offsets[i]);
        DL2_TRY(append_numbers(&draft->slices, &sum, 1, error));
    }
    dl2_index_draft_entry(draft, number)->slices = at + 1;
    return DL2_OK;
}

struct dl2_index_draft_entry *dl2_index_draft_entry(const struct dl2_index_draft *draft,
                                                    size_t number)
{
    return (struct dl2_index_draft_entry *)draft->entries.data + number;
}

const char *dl2_index_draft_key(const struct dl2_index_draft *draft, size_t number)
{
    return (const char *)draft->strings.data + dl2_index_draft_entry(draft, number)->key;
}

int dl2_index_draft_set_classes(struct dl2_index_draft *draft, const char *const *names,
                                uint32_t count, struct dl2_error *error)
{
    draft->classes = dl2_copy_texts(names, count);
    draft->class_count = count;
    return draft->classes ? DL2_OK : dl2_error_memory(error, "a dataset");
}

static int compare_by_key(const void *left, const void *right, void *context)
{
    const struct dl2_index_draft *draft = context;
    return strcmp(dl2_index_draft_key(draft, *(const uint32_t *)left),
                  dl2_index_draft_key(draft, *(const uint32_t *)right));
}

/* Puts record numbers in the order of their keys; false if one comes twice, as samples first and
 * second. */
static bool draft_order_keys(struct dl2_index_draft *draft, uint32_t *first, uint32_t *second)
{
    uint32_t *by_key = draft->by_key;
    bool sorted = true;
    for (size_t i = 0; i < draft->count; i++) {
        by_key[i] = (uint32_t)i;
        sorted = sorted && (!i || strcmp(dl2_index_draft_key(draft, i - 1),
                                         dl2_index_draft_key(draft, i)) < 0);
    }
    if (!sorted)
        qsort_r(by_key, draft->count, sizeof *by_key, compare_by_key, draft);
    for (size_t i = 1; !sorted && i < draft->count; i++) {
        const uint32_t a = by_key[i - 1], b = by_key[i];
        *first = a < b ? a : b;
        *second = a < b ? b : a;
        if (!strcmp(dl2_index_draft_key(draft, a), dl2_index_draft_key(draft, b)))
            return false;
    }
    return true;
}

size_t dl2_index_shard_stem(const char *name)
{
    static const char *const ends[] = {".gz", ".tgz", ".tar"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        length -= length > end && !memcmp(name + length - end, ends[i], end) ? end : 0;
    }
    return length;
}

static int draft_append_key(struct dl2_index_draft *draft, const char *key, const char *shard,
                            struct dl2_error *error)
{
    const char *last = dl2_path_base(key);
    DL2_TRY(dl2_bytes_append(&draft->strings, key, (size_t)(last - key), error));
    if (shard) {
        shard = dl2_path_base(shard);
        DL2_TRY(dl2_bytes_append(&draft->strings, shard, dl2_index_shard_stem(shard), error));
        DL2_TRY(dl2_bytes_append(&draft->strings, "_", 1, error));
    }
    return dl2_bytes_append(&draft->strings, last, strlen(last) + 1, error);
}

/* Puts the names of the shards with this key_start into their keys. */
static int draft_name_shards(struct dl2_index_draft *draft, const char *key_start,
                             struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes before = draft->strings;
    draft->strings = (struct dl2_bytes)DL2_BYTES_INIT;
    for (size_t i = 0; i < draft->count; i++) {
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        const struct dl2_index_draft_shard *shard = &draft->shards[entry->shard];
        const bool named = shard->key_start && !strcmp(shard->key_start, key_start);
        const char *key = (const char *)before.data + entry->key,
                   *extension = strchr(key, '\0') + 1;
        entry->key = draft->strings.size;
        entry->flags |= named ? DL2_ENTRY_NAMED : 0;
        DL2_TRY(draft_append_key(draft, key, named ? shard->name : NULL, error));
        DL2_TRY(dl2_bytes_append(&draft->strings, extension, strlen(extension) + 1, error));
    }
    for (uint32_t i = 0; i < draft->shard_count; i++)
        if (draft->shards[i].key_start && !strcmp(draft->shards[i].key_start, key_start))
            draft->shards[i].key_start = NULL;
    return DL2_OK;
}

int dl2_index_draft_sort(struct dl2_index_draft *draft, struct dl2_error *error)
{
    uint32_t a, b;
    free(draft->by_key);
    DL2_TRY(DL2_NEW(&draft->by_key, draft->count, "a dataset", error));
    while (!draft_order_keys(draft, &a, &b)) {
        const struct dl2_index_draft_shard *one =
            &draft->shards[dl2_index_draft_entry(draft, a)->shard];
        const struct dl2_index_draft_shard *two =
            &draft->shards[dl2_index_draft_entry(draft, b)->shard];
        const char *start = one->key_start, *key = dl2_index_draft_key(draft, a);
        if (one == two)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "sample \"%s\" comes twice in %s; names must differ, and the "
                                 "members of a sample stand one behind the other",
                                 key, one->name);
        if (!start || !two->key_start || strcmp(start, two->key_start) != 0)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "sample \"%s\" comes twice, in %s and in %s; names must differ",
                                 key, one->name, two->name);
        DL2_TRY(draft_name_shards(draft, start, error));
        DL2_TRY(dl2_format_more(
            &draft->remarks, error,
            "several shards have the same names of samples, so keys have the shard's "
            "name: %s",
            DL2_SHOWN(dl2_index_draft_key(draft, a))));
    }
    return DL2_OK;
}

static void draft_put_records(const struct dl2_index_draft *draft, uint8_t *out)
{
    for (size_t i = 0; i < draft->count; i++) {
        const struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        const struct record record = {.offset = htole64(entry->offset),
                                      .sum = htole64(entry->sum),
                                      .key = htole64(entry->key),
                                      .slices = htole64(entry->slices),
                                      .bytes = htole32(entry->bytes),
                                      .shard = htole32(entry->shard),
                                      .label = htole32((uint32_t)entry->label),
                                      .part = entry->part,
                                      .flags = entry->flags};
        memcpy(out + i * sizeof record, &record, sizeof record);
    }
}

/* Names of shards, classes and splits behind those of the samples; and two zeros at the end. */
static uint64_t draft_put_string(char *strings, uint64_t *at, const char *text)
{
    const uint64_t start = *at;
    const size_t size = strlen(text) + 1;
    memcpy(strings + start, text, size);
    *at += size;
    return htole64(start);
}

static void draft_put_names(char *strings, uint64_t *at, char *const *names, uint32_t count,
                            uint8_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t name = draft_put_string(strings, at, names[i]);
        memcpy(out + i * sizeof name, &name, sizeof name);
    }
}

static uint64_t draft_strings_size(const struct dl2_index_draft *draft)
{
    uint64_t size = draft->strings.size + 2;
    for (uint32_t i = 0; i < draft->shard_count; i++)
        size += strlen(draft->shards[i].name) + 1;
    for (uint32_t i = 0; i < draft->class_count; i++)
        size += strlen(draft->classes[i]) + 1;
    for (uint32_t i = 0; i < draft->parts.count; i++)
        size += strlen(draft->parts.names[i]) + 1;
    size += draft->remarks ? strlen(draft->remarks) + 1 : 0;
    size += draft->image_extension ? strlen(draft->image_extension) + 1 : 0;
    return size + (draft->label_field ? strlen(draft->label_field) : 0);
}

static int draft_fill_in(const struct dl2_index_draft *draft, struct header *header,
                         const struct layout *layout, uint8_t *block, struct dl2_error *error)
{
    char *strings = (char *)block + layout->strings;
    uint64_t at = draft->strings.size;
    if (at)
        memcpy(strings, draft->strings.data, at);
    for (uint32_t i = 0; i < draft->shard_count; i++) {
        const struct shard shard = {draft_put_string(strings, &at, draft->shards[i].name),
                                    htole64(draft->shards[i].bytes),
                                    (int64_t)htole64((uint64_t)draft->shards[i].mtime_ns)};
        memcpy(block + layout->shards + i * sizeof shard, &shard, sizeof shard);
    }
    draft_put_names(strings, &at, draft->classes, draft->class_count, block + layout->classes);
    draft_put_names(strings, &at, draft->parts.names, draft->parts.count, block + layout->parts);
    if (draft->remarks)
        draft_put_string(strings, &at, draft->remarks);
    if (draft->image_extension)
        draft_put_string(strings, &at, draft->image_extension);
    if (draft->label_field) {
        memcpy(strings + at, draft->label_field, strlen(draft->label_field));
        at += strlen(draft->label_field);
    }
    strings[at] = strings[at + 1] = '\0';
    if (draft->slices.size)
        memcpy(block + layout->slices, draft->slices.data, draft->slices.size);
    draft_put_records(draft, block + layout->records);
    for (size_t i = 0; i < draft->count; i++) {
        const uint32_t number = htole32(draft->by_key[i]);
        memcpy(block + layout->by_key + i * sizeof number, &number, sizeof number);
    }
    memcpy(block, header, sizeof *header);
    uint64_t sum;
    DL2_TRY(index_sum(block, layout->end, &sum, error));
    header->sum = htole64(sum);
    memcpy(block, header, sizeof *header);
    return DL2_OK;
}

int dl2_index_draft_finish(struct dl2_index_draft *draft, struct dl2_bytes *out,
                           struct dl2_error *error)
{
    if (!draft->by_key)
        DL2_TRY(dl2_index_draft_sort(draft, error));
    struct header header = {
        .magic = MAGIC,
        .version = htole32(VERSION),
        .kind = htole32(draft->container->shards->index_kind),
        .flags =
            htole32(HEADER_TRAIN_FIRST | (draft->has_parts ? HEADER_HAS_PARTS : 0u) |
                    (draft->is_own ? HEADER_IS_OWN : 0u) | (draft->remarks ? HEADER_REMARKS : 0u) |
                    (draft->image_extension ? HEADER_IMAGE : 0u) |
                    (draft->label_field ? HEADER_LABEL_FIELD : 0u)),
        .shard_count = htole32(draft->shard_count),
        .class_count = htole32(draft->class_count),
        .part_count = htole32(draft->parts.count),
        .count = htole64(draft->count),
        .strings_size = htole64(draft_strings_size(draft)),
        .slices_size = htole64(draft->slices.size / sizeof(uint32_t))};
    struct layout layout;
    if (!index_lay_out(&header, &layout))
        return dl2_error_set(error, DL2_ERR_LIMIT, "the index would pass the address space");
    DL2_TRY(dl2_bytes_resize(out, layout.end, error));
    return draft_fill_in(draft, &header, &layout, out->data, error);
}

int dl2_index_draft_set_members(struct dl2_index_draft *draft,
                                const struct dl2_member_choice *members, struct dl2_error *error)
{
    if (members->label_field)
        DL2_TRY(dl2_format(&draft->label_field, error, "%s", members->label_field));
    if (members->image_extension)
        DL2_TRY(dl2_format(&draft->image_extension, error, "%s", members->image_extension));
    return DL2_OK;
}

int dl2_index_draft_save(struct dl2_index_draft *draft, const char *root, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes block = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = dl2_path_join(root, DL2_INDEX_NAME);
    if (!path)
        return dl2_error_memory(error, "a dataset");
    DL2_TRY(dl2_index_draft_finish(draft, &block, error));
    return dl2_file_write(path, block.data, block.size, error);
}

void dl2_index_draft_free(struct dl2_index_draft *draft)
{
    for (uint32_t i = 0; i < draft->shard_count; i++)
        free(draft->shards[i].name);
    free(draft->shards);
    free(draft->by_key);
    free(draft->classes);
    free(draft->remarks);
    free(draft->label_field);
    free(draft->image_extension);
    dl2_bytes_free(&draft->entries);
    dl2_bytes_free(&draft->strings);
    dl2_bytes_free(&draft->slices);
    dl2_bytes_free(&draft->heads);
    dl2_part_list_free(&draft->parts);
    *draft = (struct dl2_index_draft){0};
}
