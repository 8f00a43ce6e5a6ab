#include "dataset/writer.h"

#include "common/file.h"
#include "common/json.h"
#include "dataset/packed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define DEFAULT_SHARD_BYTES   ((uint64_t)256 << 20)
#define DEFAULT_CHUNK_SAMPLES 10000

enum {
    TAR_BLOCK = 512,
    TAR_NAME = 100,
    TAR_PREFIX = 155,
    GULP_ALIGNMENT = 4,
    BUFFER_BYTES = 1 << 20
};

/* What is written in one folder: the container's own, or that of a split in it. */
struct group {
    char *folder; /* "", "train/", "validation/"... */
    enum dl2_part part;
    FILE *file;      /* of the shard being written, or NULL */
    uint32_t shard;  /* its number in the draft */
    uint32_t number; /* shards before it in this group */
    uint64_t bytes;
    uint32_t samples;
    struct dl2_bytes meta; /* gulp: what goes into its meta file */
};

struct dl2_writer {
    struct dl2_writer_options options;
    char *root;
    struct dl2_index_draft draft;
    struct group *groups;
    size_t group_count;
    struct dl2_bytes name;
    struct dl2_slicing slicing; /* of the last sample that was cut */
    char *(*renames)[2];        /* temporary name, final name */
    size_t rename_count;
    bool finished;
};

const char *dl2_container_name(enum dl2_container container)
{
    static const char *const names[] = {"folder", "gulp", "tar"};
    return names[container];
}

static int no_memory(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a packed dataset");
}

static int cannot_write(struct dl2_error *error, const char *path)
{
    return dl2_error_system(error, "%s: can't be written", path);
}

/* ---- What is there from before */

/* "data_17.gulp": START, digits, END. */
static bool is_numbered(const char *name, const char *start, const char *end)
{
    const size_t length = strlen(start);
    if (strncmp(name, start, length) != 0)
        return false;
    const size_t digits = strspn(name + length, "0123456789");
    return digits && !strcmp(name + length + digits, end);
}

static bool is_written_here(const char *name)
{
    return is_numbered(name, "data_", ".gulp") || is_numbered(name, "meta_", ".gmeta") ||
           is_numbered(name, "shard-", ".tar") || !strcmp(name, "label2idx.json") ||
           !strcmp(name, "classes.txt") || !strcmp(name, DL2_INDEX_NAME);
}

/* ".NAME.dl2-tmp" of such a name. */
static bool is_temporary(const char *name)
{
    const size_t length = strlen(name), tail = strlen(DL2_TEMPORARY_SUFFIX);
    char inner[64];
    if (name[0] != '.' || length <= tail + 1 || length - tail - 1 >= sizeof inner ||
        strcmp(name + length - tail, DL2_TEMPORARY_SUFFIX) != 0)
        return false;
    memcpy(inner, name + 1, length - tail - 1);
    inner[length - tail - 1] = '\0';
    return is_written_here(inner);
}

static bool may_stay(const char *name, bool top)
{
    return name[0] == '.' ||
           (top && (!strcmp(name, "dl2-variant.json") || !strcmp(name, "dl2-variant.jsonl")));
}

/*
 * Goes through a folder and its folders of splits: says what would be in the way (remove false), or
 * removes what a writer has left.
 */
static int clear_folder(const char *path, bool top, bool own, bool remove, struct dl2_error *error)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? DL2_OK : dl2_error_system(error, "%s: can't be listed", path);
    int status = DL2_OK;
    const struct dirent *entry;
    while (status == DL2_OK && (entry = readdir(folder))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        char *inner = dl2_path_join(path, name);
        if (!inner) {
            status = no_memory(error);
        } else if (top && dl2_part_of_folder(name, strlen(name)) && dl2_is_folder(inner)) {
            status = clear_folder(inner, false, own, remove, error);
            if (remove && status == DL2_OK)
                rmdir(inner); /* unless something hidden is there */
        } else if (own && (is_written_here(name) || is_temporary(name))) {
            if (remove && unlink(inner) != 0 && errno != ENOENT)
                status = dl2_error_system(error, "%s: can't be removed", inner);
        } else if (!may_stay(name, top)) {
            status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "%s is in the way: a packed dataset needs a folder of its own, "
                                   "or one that dl2-transcode has packed",
                                   inner);
        }
        free(inner);
    }
    closedir(folder);
    return status;
}

/* Are all shards that are there the index's? GulpIO adds its own chunks to a folder of chunks. */
static bool has_all(const struct dl2_index *index, const char *root)
{
    struct dl2_shard_files list;
    if (dl2_shard_files_list(root, &list, NULL) < 0)
        return false;
    size_t known = 0;
    for (size_t i = 0; i < list.count; i++)
        for (uint32_t n = 0; n < index->shard_count; n++)
            known += !strcmp(dl2_index_shard(index, n).name, list.files[i].name);
    const bool all = known == list.count;
    dl2_shard_files_free(&list);
    return all;
}

/* An index of our own, or the mark that one was being written. */
static bool is_own_container(const char *root)
{
    char *mark = dl2_path_join(root, DL2_UNFINISHED_NAME),
         *file = dl2_path_join(root, DL2_INDEX_NAME);
    bool own = mark && dl2_is_file(mark);
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_index index;
    if (!own && file && dl2_is_file(file) &&
        dl2_file_read(file, (uint64_t)1 << 40, &bytes, NULL) == DL2_OK &&
        dl2_index_open(bytes.data, bytes.size, &index, NULL) == DL2_OK)
        own = index.is_own && has_all(&index, root);
    dl2_bytes_free(&bytes);
    free(mark);
    free(file);
    return own;
}

static int write_mark(const struct dl2_writer *writer, struct dl2_error *error)
{
    static const char text[] = "A packed dataset is being written here, or was when that was cut "
                               "short. Run the same dl2-transcode again to complete it.\n";
    char *path = dl2_path_join(writer->root, DL2_UNFINISHED_NAME);
    int status = path ? dl2_file_write(path, text, strlen(text), error) : no_memory(error);
    free(path);
    return status;
}

static int remove_mark(const struct dl2_writer *writer, struct dl2_error *error)
{
    char *path = dl2_path_join(writer->root, DL2_UNFINISHED_NAME);
    int status = path ? DL2_OK : no_memory(error);
    if (path && unlink(path) != 0 && errno != ENOENT)
        status = dl2_error_system(error, "%s: can't be removed", path);
    free(path);
    return status;
}

static int prepare(struct dl2_writer *writer, struct dl2_error *error)
{
    const bool own = is_own_container(writer->root);
    DL2_TRY(clear_folder(writer->root, true, own, false, error));
    DL2_TRY(dl2_make_folders(writer->root, error));
    DL2_TRY(write_mark(writer, error));
    return own ? clear_folder(writer->root, true, true, true, error) : DL2_OK;
}

int dl2_writer_open(const char *path, const struct dl2_writer_options *options,
                    const char *const *classes, unsigned class_count, struct dl2_writer **out,
                    struct dl2_error *error)
{
    *out = NULL;
    if (options->container != DL2_CONTAINER_GULP && options->container != DL2_CONTAINER_TAR)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: a folder is no packed dataset", path);
    struct dl2_writer *writer = dl2_calloc(1, sizeof *writer);
    if (!writer)
        return no_memory(error);
    const bool gulp = options->container == DL2_CONTAINER_GULP;
    writer->options = *options;
    if (!options->shard_bytes)
        writer->options.shard_bytes = DEFAULT_SHARD_BYTES;
    if (!options->shard_samples)
        writer->options.shard_samples = gulp ? DEFAULT_CHUNK_SAMPLES : UINT32_MAX;
    writer->draft.kind = gulp ? DL2_INDEX_GULP : DL2_INDEX_TAR;
    writer->draft.has_parts = options->has_parts;
    writer->draft.is_own = true;
    writer->root = strdup(path);
    int status = writer->root ? prepare(writer, error) : no_memory(error);
    if (status == DL2_OK)
        status = dl2_index_draft_set_classes(&writer->draft, classes, class_count, error);
    if (status < 0) {
        writer->finished = true; /* nothing to remove */
        dl2_writer_close(writer);
        return status;
    }
    *out = writer;
    return DL2_OK;
}

/* ---- Shards */

/* "ROOT/PART.NAME.dl2-tmp" and "ROOT/PARTNAME", noted to be renamed. */
static int note_rename(struct dl2_writer *writer, const struct group *group, const char *name,
                       const char **temporary, struct dl2_error *error)
{
    char *(*grown)[2] = dl2_realloc(writer->renames, writer->rename_count + 1, sizeof *grown);
    if (!grown)
        return no_memory(error);
    writer->renames = grown;
    char **pair = grown[writer->rename_count];
    if (asprintf(&pair[0], "%s/%s.%s" DL2_TEMPORARY_SUFFIX, writer->root, group->folder, name) < 0)
        return no_memory(error);
    if (asprintf(&pair[1], "%s/%s%s", writer->root, group->folder, name) < 0) {
        free(pair[0]);
        return no_memory(error);
    }
    writer->rename_count++;
    *temporary = pair[0];
    return DL2_OK;
}

static int begin_shard(struct dl2_writer *writer, struct group *group, struct dl2_error *error)
{
    char name[64], path[128];
    const bool gulp = writer->options.container == DL2_CONTAINER_GULP;
    snprintf(name, sizeof name, gulp ? "data_%" PRIu32 ".gulp" : "shard-%06" PRIu32 ".tar",
             group->number);
    snprintf(path, sizeof path, "%s%s", group->folder, name);
    const char *temporary;
    DL2_TRY(dl2_index_draft_add_shard(&writer->draft, path, 0, 0, error));
    DL2_TRY(note_rename(writer, group, name, &temporary, error));
    group->shard = writer->draft.shard_count - 1;
    group->bytes = 0;
    group->samples = 0;
    group->meta.size = 0;
    group->file = fopen(temporary, "we");
    if (!group->file)
        return cannot_write(error, temporary);
    setvbuf(group->file, NULL, _IOFBF, BUFFER_BYTES);
    return DL2_OK;
}

/* Names the container, too: a run may write several. */
static int cannot_write_shard(const struct dl2_writer *writer, const struct group *group,
                              struct dl2_error *error)
{
    return dl2_error_system(error, "%s/%s: can't be written", writer->root,
                            writer->draft.shards[group->shard].name);
}

static int put(struct dl2_writer *writer, struct group *group, const void *data, size_t size,
               struct dl2_error *error)
{
    if (size && fwrite(data, 1, size, group->file) != size)
        return cannot_write_shard(writer, group, error);
    group->bytes += size;
    return DL2_OK;
}

static int put_zeros(struct dl2_writer *writer, struct group *group, size_t size,
                     struct dl2_error *error)
{
    static const uint8_t zeros[2 * TAR_BLOCK];
    return put(writer, group, zeros, size, error);
}

static int write_meta(struct dl2_writer *writer, struct group *group, struct dl2_error *error)
{
    char name[64];
    const char *temporary;
    snprintf(name, sizeof name, "meta_%" PRIu32 ".gmeta", group->number);
    DL2_TRY(dl2_bytes_append(&group->meta, "}", 1, error));
    DL2_TRY(note_rename(writer, group, name, &temporary, error));
    FILE *file = fopen(temporary, "we");
    if (!file)
        return cannot_write(error, temporary);
    struct stat info = {0};
    const bool written = fwrite(group->meta.data, 1, group->meta.size, file) == group->meta.size &&
                         fflush(file) == 0 && fstat(fileno(file), &info) == 0;
    if (fclose(file) != 0 || !written)
        return cannot_write(error, temporary);
    int64_t *mtime_ns = &writer->draft.shards[group->shard].mtime_ns;
    *mtime_ns = dl2_mtime_ns(&info) > *mtime_ns ? dl2_mtime_ns(&info) : *mtime_ns;
    return DL2_OK;
}

static int end_shard(struct dl2_writer *writer, struct group *group, struct dl2_error *error)
{
    if (!group->file)
        return DL2_OK;
    int status = DL2_OK;
    if (writer->options.container == DL2_CONTAINER_TAR)
        status = put_zeros(writer, group, 2 * TAR_BLOCK, error);
    struct dl2_index_draft_shard *shard = &writer->draft.shards[group->shard];
    struct stat info = {0};
    /* What is still in the buffer would change the time again. */
    if (fflush(group->file) != 0 || fstat(fileno(group->file), &info) != 0)
        status = cannot_write_shard(writer, group, error);
    if (fclose(group->file) != 0)
        status = cannot_write_shard(writer, group, error);
    group->file = NULL;
    shard->bytes = group->bytes;
    shard->mtime_ns = dl2_mtime_ns(&info);
    if (status == DL2_OK && writer->options.container == DL2_CONTAINER_GULP)
        status = write_meta(writer, group, error);
    group->number++;
    return status;
}

/* ---- GulpIO */

static int append_text(struct dl2_bytes *out, const char *text, struct dl2_error *error)
{
    return dl2_bytes_append(out, text, strlen(text), error);
}

/* A code point of UTF-8 that was found to be valid. */
static uint32_t next_code(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    const int more = p[0] < 0x80 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    static const uint32_t masks[] = {0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = p[0] & masks[more];
    for (int i = 1; i <= more; i++)
        code = code << 6 | (p[i] & 0x3f);
    *text += more + 1;
    return code;
}

/* A JSON string as Python's json.dump() writes it, which GulpIO uses: nothing but ASCII. */
static int append_json(struct dl2_bytes *out, const char *text, struct dl2_error *error)
{
    DL2_TRY(append_text(out, "\"", error));
    while (*text) {
        static const char specials[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
        const char *special = strchr(specials, *text);
        char escape[16];
        if (special) {
            snprintf(escape, sizeof escape, "\\%c", names[special - specials]);
            text++;
        } else {
            const uint32_t code = next_code(&text);
            if (code >= ' ' && code <= '~')
                snprintf(escape, sizeof escape, "%c", (char)code);
            else if (code < 0x10000)
                snprintf(escape, sizeof escape, "\\u%04" PRIx32, code);
            else
                snprintf(escape, sizeof escape, "\\u%04" PRIx32 "\\u%04" PRIx32,
                         0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
        }
        DL2_TRY(append_text(out, escape, error));
    }
    return append_text(out, "\"", error);
}

static bool is_utf8(const char *text)
{
    json_t *json = json_string(text);
    json_decref(json);
    return json;
}

static int add_to_gulp(struct dl2_writer *writer, struct group *group, const char *id, int label,
                       const void *data, size_t size, struct dl2_error *error)
{
    const size_t fill = (GULP_ALIGNMENT - size % GULP_ALIGNMENT) % GULP_ALIGNMENT;
    const char *class = label >= 0 ? writer->draft.classes[label] : NULL;
    char numbers[96];
    snprintf(numbers, sizeof numbers,
             ": {\"frame_info\": [[%" PRIu64 ", %zu, %zu]], \"meta_data\": ", group->bytes, fill,
             size + fill);
    DL2_TRY(put(writer, group, data, size, error));
    DL2_TRY(put_zeros(writer, group, fill, error));
    struct dl2_bytes *meta = &group->meta;
    DL2_TRY(append_text(meta, group->samples ? ", " : "{", error));
    DL2_TRY(append_json(meta, id, error));
    DL2_TRY(append_text(meta, numbers, error));
    DL2_TRY(append_text(meta, "[{\"id\": ", error));
    DL2_TRY(append_json(meta, id, error));
    if (class) {
        DL2_TRY(append_text(meta, ", \"label\": ", error));
        DL2_TRY(append_json(meta, class, error));
        snprintf(numbers, sizeof numbers, ", \"idx\": %d", label);
        DL2_TRY(append_text(meta, numbers, error));
    }
    return append_text(meta, "}]}", error);
}

/* {"rose": 0, "tulip": 1} */
static int gulp_classes(const struct dl2_writer *writer, struct dl2_bytes *out,
                        struct dl2_error *error)
{
    for (uint32_t i = 0; i < writer->draft.class_count; i++) {
        char number[24];
        snprintf(number, sizeof number, ": %" PRIu32, i);
        DL2_TRY(append_text(out, i ? ", " : "{", error));
        DL2_TRY(append_json(out, writer->draft.classes[i], error));
        DL2_TRY(append_text(out, number, error));
    }
    return append_text(out, "}", error);
}

/* ---- Tar */

/*
 * A name in WebDataset ends at its first dot, so dots become %2E, and per cent signs, so that this
 * can be undone, %25. Folders may keep theirs.
 */
static int tar_name(struct dl2_writer *writer, const char *id, const char *extension,
                    struct dl2_error *error)
{
    struct dl2_bytes *name = &writer->name;
    const char *base = dl2_path_base(id);
    name->size = 0;
    DL2_TRY(dl2_bytes_append(name, id, (size_t)(base - id), error));
    for (const char *p = base; *p; p++) {
        const char *escape = *p == '.' ? "%2E" : *p == '%' ? "%25" : NULL;
        DL2_TRY(escape ? append_text(name, escape, error) : dl2_bytes_append(name, p, 1, error));
    }
    DL2_TRY(append_text(name, ".", error));
    DL2_TRY(append_text(name, extension, error));
    return dl2_bytes_append(name, "", 1, error);
}

static int put_header(struct dl2_writer *writer, struct group *group, const char *prefix,
                      size_t prefix_length, const char *name, size_t name_length, char type,
                      size_t size, struct dl2_error *error)
{
    uint8_t header[TAR_BLOCK] = {0};
    char field[16];
    memcpy(header, name, name_length);
    memcpy(header + 100, "0000644\0000000000\0000000000", 24);
    snprintf(field, sizeof field, "%011zo", size);
    memcpy(header + 124, field, 12);
    memcpy(header + 136, "00000000000", 12);
    header[156] = (uint8_t)type;
    memcpy(header + 257, "ustar\00000", 8);
    memcpy(header + 345, prefix, prefix_length);
    unsigned sum = 8 * ' ';
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += header[i];
    snprintf(field, sizeof field, "%06o", sum);
    memcpy(header + 148, field, 7);
    header[155] = ' ';
    return put(writer, group, header, sizeof header, error);
}

/* Where a long name can be cut into a prefix of ustar and the rest: at a slash; 0: nowhere. */
static size_t cut_of(const char *name, size_t length)
{
    for (size_t i = length < TAR_PREFIX ? length : TAR_PREFIX; i > 0; i--)
        if (name[i] == '/' && length - i - 1 <= TAR_NAME && length - i - 1 > 0)
            return i;
    return 0;
}

static int put_member(struct dl2_writer *writer, struct group *group, const char *name,
                      const void *data, size_t size, struct dl2_error *error)
{
    const size_t length = strlen(name), cut = length > TAR_NAME ? cut_of(name, length) : 0;
    if (length <= TAR_NAME) {
        DL2_TRY(put_header(writer, group, "", 0, name, length, '0', size, error));
    } else if (cut) {
        DL2_TRY(put_header(writer, group, name, cut, name + cut + 1, length - cut - 1, '0', size,
                           error));
    } else {
        /* "LENGTH path=NAME\n", where LENGTH counts its own digits. */
        size_t record = length + strlen(" path=\n") + 1;
        for (size_t digits = 1, power = 10; record >= power; digits++, power *= 10)
            record++;
        char *text = NULL;
        if (asprintf(&text, "%zu path=%s\n", record, name) < 0)
            return no_memory(error);
        const size_t text_length = strlen(text);
        int status = put_header(writer, group, "", 0, "PaxHeader", strlen("PaxHeader"), 'x',
                                text_length, error);
        if (status == DL2_OK)
            status = put(writer, group, text, text_length, error);
        free(text);
        DL2_TRY(status);
        DL2_TRY(put_zeros(writer, group, -text_length % TAR_BLOCK, error));
        DL2_TRY(put_header(writer, group, "", 0, name, TAR_NAME, '0', size, error));
    }
    DL2_TRY(put(writer, group, data, size, error));
    return put_zeros(writer, group, -size % TAR_BLOCK, error);
}

/* *offset: where the sample's bytes begin. */
static int add_to_tar(struct dl2_writer *writer, struct group *group, const char *id,
                      const char *extension, int label, const void *data, size_t size,
                      uint64_t *offset, struct dl2_error *error)
{
    DL2_TRY(tar_name(writer, id, extension, error));
    DL2_TRY(put_member(writer, group, (const char *)writer->name.data, data, size, error));
    *offset = group->bytes - (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    if (label < 0)
        return DL2_OK;
    char text[16];
    snprintf(text, sizeof text, "%d", label);
    DL2_TRY(tar_name(writer, id, "cls", error));
    return put_member(writer, group, (const char *)writer->name.data, text, strlen(text), error);
}

/* A name a line; none where one has a newline of its own: the index has them all the same. */
static int tar_classes(const struct dl2_writer *writer, struct dl2_bytes *out,
                       struct dl2_error *error)
{
    for (uint32_t i = 0; i < writer->draft.class_count; i++)
        if (strpbrk(writer->draft.classes[i], "\r\n")) {
            out->size = 0;
            return DL2_OK;
        } else {
            DL2_TRY(append_text(out, writer->draft.classes[i], error));
            DL2_TRY(append_text(out, "\n", error));
        }
    return DL2_OK;
}

/* ---- Samples */

static int add_group(struct dl2_writer *writer, const char *key, size_t length, enum dl2_part part,
                     struct dl2_error *error)
{
    struct group *grown = dl2_realloc(writer->groups, writer->group_count + 1, sizeof *grown);
    if (!grown)
        return no_memory(error);
    writer->groups = grown;
    struct group *group = &grown[writer->group_count];
    *group = (struct group){.folder = strndup(key, length), .part = part};
    if (!group->folder)
        return no_memory(error);
    writer->group_count++;
    if (!length)
        return DL2_OK;
    char *folder = dl2_path_join(writer->root, group->folder);
    int status = folder ? dl2_make_folders(folder, error) : no_memory(error);
    free(folder);
    return status;
}

/* How much of a key is the folder of its split: "train/" of "train/rose/0017"; 0: no split's. */
static size_t split_folder(const struct dl2_writer *writer, const char *key, enum dl2_part *part)
{
    const char *slash = writer->options.has_parts ? strchr(key, '/') : NULL;
    *part = slash ? dl2_part_of_folder(key, (size_t)(slash - key)) : DL2_PART_NONE;
    return *part ? (size_t)(slash - key) + 1 : 0;
}

/* The folder that is the first `length` bytes of a key. */
static int find_group(struct dl2_writer *writer, const char *key, size_t length, enum dl2_part part,
                      struct group **group, struct dl2_error *error)
{
    size_t i = 0;
    while (i < writer->group_count && (strlen(writer->groups[i].folder) != length ||
                                       memcmp(writer->groups[i].folder, key, length) != 0))
        i++;
    if (i == writer->group_count)
        DL2_TRY(add_group(writer, key, length, part, error));
    *group = &writer->groups[i];
    return DL2_OK;
}

static int check_sample(const struct dl2_writer *writer, const char *key, const char *id,
                        const char *extension, int label, size_t size, struct dl2_error *error)
{
    if (size > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %zu bytes pass the limit of 2 GiB", key,
                             size);
    if (label < -1 || (label >= 0 && (uint32_t)label >= writer->draft.class_count) ||
        !dl2_index_is_key(id) || !*extension || strpbrk(extension, "/"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: no key, extension and label for a sample", key);
    const bool gulp = writer->options.container == DL2_CONTAINER_GULP;
    if (gulp && !size)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s: GulpIO has no empty samples", key);
    if (gulp && (!is_utf8(id) || (label >= 0 && !is_utf8(writer->draft.classes[label]))))
        return dl2_error_set(
            error, DL2_ERR_UNSUPPORTED,
            "%s: its name is not UTF-8, and GulpIO's names must be: pack it as tar, "
            "or rename it",
            key);
    return DL2_OK;
}

int dl2_writer_add(struct dl2_writer *writer, const char *key, const char *extension, int label,
                   const void *data, size_t size, struct dl2_error *error)
{
    struct group *group;
    enum dl2_part part;
    const size_t folder = split_folder(writer, key, &part);
    const char *id = key + folder;
    DL2_TRY(check_sample(writer, key, id, extension, label, size, error));
    DL2_TRY(find_group(writer, key, folder, part, &group, error));
    if (group->file &&
        (group->bytes + size > writer->options.shard_bytes ||
         group->samples >= writer->options.shard_samples) &&
        group->samples)
        DL2_TRY(end_shard(writer, group, error));
    if (!group->file)
        DL2_TRY(begin_shard(writer, group, error));
    uint64_t offset = group->bytes;
    DL2_TRY(writer->options.container == DL2_CONTAINER_GULP
                ? add_to_gulp(writer, group, id, label, data, size, error)
                : add_to_tar(writer, group, id, extension, label, data, size, &offset, error));
    group->samples++;
    const struct dl2_index_entry entry = {.offset = offset,
                                          .sum = XXH3_64bits(data, size),
                                          .bytes = (uint32_t)size,
                                          .shard = group->shard,
                                          .label = label,
                                          .part = (uint8_t)group->part,
                                          .flags = DL2_ENTRY_SUMMED,
                                          .key = key,
                                          .extension = extension};
    DL2_TRY(dl2_index_draft_add(&writer->draft, &entry, error));
    if (!writer->options.slice)
        return DL2_OK;
    const int cut = writer->options.slice(data, size, &writer->slicing, error);
    return cut == 1 ? dl2_index_draft_slice(&writer->draft, writer->draft.count - 1,
                                            &writer->slicing, data, error)
                    : cut;
}

static int write_classes(struct dl2_writer *writer, const struct group *group,
                         struct dl2_error *error)
{
    const bool gulp = writer->options.container == DL2_CONTAINER_GULP;
    struct dl2_bytes text = DL2_BYTES_INIT;
    char *path = NULL;
    int status = gulp ? gulp_classes(writer, &text, error) : tar_classes(writer, &text, error);
    if (status == DL2_OK && asprintf(&path, "%s/%s%s", writer->root, group->folder,
                                     gulp ? "label2idx.json" : "classes.txt") < 0)
        status = no_memory(error);
    if (status == DL2_OK && text.size)
        status = dl2_file_write(path, text.data, text.size, error);
    free(path);
    dl2_bytes_free(&text);
    return status;
}

static int write_index(const struct dl2_writer *writer, struct dl2_error *error)
{
    struct dl2_bytes block = DL2_BYTES_INIT;
    char *path = dl2_path_join(writer->root, DL2_INDEX_NAME);
    int status = path ? dl2_index_draft_finish(&writer->draft, &block, error) : no_memory(error);
    if (status == DL2_OK)
        status = dl2_file_write(path, block.data, block.size, error);
    free(path);
    dl2_bytes_free(&block);
    return status;
}

int dl2_writer_finish(struct dl2_writer *writer, struct dl2_error *error)
{
    for (size_t i = 0; i < writer->group_count; i++)
        DL2_TRY(end_shard(writer, &writer->groups[i], error));
    for (size_t i = 0; i < writer->group_count; i++)
        if (writer->draft.class_count)
            DL2_TRY(write_classes(writer, &writer->groups[i], error));
    for (size_t i = 0; i < writer->rename_count; i++)
        if (rename(writer->renames[i][0], writer->renames[i][1]) != 0)
            return dl2_error_system(error, "%s: can't be put in its place", writer->renames[i][1]);
    DL2_TRY(write_index(writer, error));
    DL2_TRY(remove_mark(writer, error));
    writer->finished = true;
    return DL2_OK;
}

void dl2_writer_close(struct dl2_writer *writer)
{
    if (!writer)
        return;
    for (size_t i = 0; i < writer->group_count; i++) {
        if (writer->groups[i].file)
            fclose(writer->groups[i].file);
        dl2_bytes_free(&writer->groups[i].meta);
        free(writer->groups[i].folder);
    }
    free(writer->groups);
    if (!writer->finished && clear_folder(writer->root, true, true, true, NULL) == DL2_OK)
        remove_mark(writer, NULL);
    for (size_t i = 0; i < writer->rename_count; i++) {
        free(writer->renames[i][0]);
        free(writer->renames[i][1]);
    }
    free(writer->renames);
    dl2_index_draft_free(&writer->draft);
    dl2_bytes_free(&writer->name);
    dl2_slicing_free(&writer->slicing);
    free(writer->root);
    free(writer);
}
