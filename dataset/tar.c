/*
 * Tar archives: POSIX.1-1988 ustar headers, with long names and sizes by pax headers (POSIX.1-2001)
 * or GNU's extensions; and WebDataset's rule of what a sample is: consecutive members with the same
 * name up to the first dot of its last part.
 */
#include "common/file.h"
#include "dataset/packed.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    BLOCK = 512,
    NEAR_BYTES = 4096,    /* read at once after a jump: a header, a label, the next header */
    FAR_BYTES = 64 << 10, /* and where members are so small that reading on is cheaper */
    MAX_NAME_BYTES = 1 << 20,
    MAX_LABEL_BYTES = 4096,
};

/* A window onto the file. */
struct reader {
    int fd;
    uint64_t bytes; /* of the file */
    uint64_t start;
    size_t size; /* what is in `data` from `start` on */
    uint8_t data[FAR_BYTES];
};

static int cut_short(struct dl2_error *error, uint64_t offset)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "cut short, or not a tar file: nothing at %" PRIu64,
                         offset);
}

static int read_at(int fd, uint64_t offset, void *out, size_t size, struct dl2_error *error)
{
    for (size_t got = 0; got < size;) {
        ssize_t count = pread(fd, (char *)out + got, size - got, (off_t)(offset + got));
        if (count == 0)
            return cut_short(error, offset + got);
        if (count > 0)
            got += (size_t)count;
        else if (errno != EINTR)
            return dl2_error_system(error, "can't be read");
    }
    return DL2_OK;
}

/* *out = `size` bytes (at most NEAR_BYTES) at `offset`, valid until the next call. */
static int look(struct reader *reader, uint64_t offset, size_t size, const uint8_t **out,
                struct dl2_error *error)
{
    const uint64_t end = reader->start + reader->size;
    if (offset < reader->start || offset > end || size > end - offset) {
        if (offset > reader->bytes || size > reader->bytes - offset)
            return cut_short(error, reader->bytes);
        size_t wanted =
            offset >= reader->start && offset < end + FAR_BYTES ? FAR_BYTES : NEAR_BYTES;
        if (wanted > reader->bytes - offset)
            wanted = (size_t)(reader->bytes - offset);
        reader->size = 0;
        DL2_TRY(read_at(reader->fd, offset, reader->data, wanted, error));
        reader->start = offset;
        reader->size = wanted;
    }
    *out = reader->data + (offset - reader->start);
    return DL2_OK;
}

/* ---- Headers */

struct member {
    char *name, *link; /* point into the walk's buffers; link: what a link points to */
    uint64_t offset, size;
    char type;
};

/* Octal, or binary where the first bit is set (GNU). False for anything else and above 2^62. */
static bool read_number(const uint8_t *field, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    if (field[0] & 0x80) {
        for (size_t i = 0; i < size; i++) {
            if (value >> 54)
                return false;
            value = value << 8 | (i ? field[i] : field[i] & 0x7f);
        }
        *out = value;
        return true;
    }
    size_t i = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    *out = value;
    return i == size || field[i] == ' ' || field[i] == '\0';
}

/* The sum of a header's bytes with its own field as blanks; some old programs summed signed ones.
 */
static bool sum_fits(const uint8_t *header)
{
    uint64_t wanted;
    int64_t plain = 0, with_sign = 0;
    for (int i = 0; i < BLOCK; i++) {
        const uint8_t byte = i >= 148 && i < 156 ? ' ' : header[i];
        plain += byte;
        with_sign += (int8_t)byte;
    }
    return read_number(header + 148, 8, &wanted) &&
           ((int64_t)wanted == plain || (int64_t)wanted == with_sign);
}

static bool is_zero(const uint8_t *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* The name in a header: PREFIX/NAME where it is ustar's. */
static int plain_name(const uint8_t *header, struct dl2_bytes *out, struct dl2_error *error)
{
    out->size = 0;
    const size_t prefix =
        memcmp(header + 257, "ustar\0", 6) ? 0 : strnlen((const char *)header + 345, 155);
    if (prefix) {
        DL2_TRY(dl2_bytes_append(out, header + 345, prefix, error));
        DL2_TRY(dl2_bytes_append(out, "/", 1, error));
    }
    DL2_TRY(dl2_bytes_append(out, header, strnlen((const char *)header, 100), error));
    return dl2_bytes_append(out, "", 1, error);
}

/* What stands in headers about the next header, and counts instead of what that says. */
struct extras {
    bool has_name, has_link, has_size;
    uint64_t size;
};

static int set_text(struct dl2_bytes *out, const char *text, size_t length, struct dl2_error *error)
{
    out->size = 0;
    DL2_TRY(dl2_bytes_append(out, text, length, error));
    return dl2_bytes_append(out, "", 1, error);
}

/* pax records, "LENGTH KEYWORD=VALUE\n": path, linkpath and size are what matters here. */
static int read_pax(const char *text, size_t length, struct dl2_bytes *name, struct dl2_bytes *link,
                    struct extras *extras, struct dl2_error *error)
{
    while (length) {
        size_t record = 0, at = 0;
        for (; at < length && at < 9 && isdigit((unsigned char)text[at]); at++)
            record = 10 * record + (size_t)(text[at] - '0');
        if (at == 0 || at >= length || text[at] != ' ' || record <= at + 1 || record > length ||
            text[record - 1] != '\n')
            return dl2_error_set(error, DL2_ERR_FORMAT, "a pax header is damaged");
        const char *keyword = text + at + 1, *end = text + record - 1;
        const char *equals = memchr(keyword, '=', (size_t)(end - keyword));
        const char *value = equals ? equals + 1 : end;
        if (equals && equals - keyword == 4 && !memcmp(keyword, "path", 4)) {
            DL2_TRY(set_text(name, value, (size_t)(end - value), error));
            extras->has_name = true;
        } else if (equals && equals - keyword == 8 && !memcmp(keyword, "linkpath", 8)) {
            DL2_TRY(set_text(link, value, (size_t)(end - value), error));
            extras->has_link = true;
        } else if (equals && equals - keyword == 4 && !memcmp(keyword, "size", 4)) {
            uint64_t number = 0;
            for (const char *p = value; p < end; p++) {
                if (!isdigit((unsigned char)*p) || number >> 58)
                    return dl2_error_set(error, DL2_ERR_FORMAT, "a pax header is damaged");
                number = 10 * number + (uint64_t)(*p - '0');
            }
            extras->size = number;
            extras->has_size = true;
        }
        text += record;
        length -= record;
    }
    return DL2_OK;
}

/* A walk over the members. */
struct walk {
    struct reader *reader;
    uint64_t at;
    struct dl2_bytes name, link, extra;
};

/* The contents of a header about a header: a long name, pax records. */
static int read_extra(struct walk *walk, uint64_t offset, uint64_t size, struct dl2_error *error)
{
    if (size > MAX_NAME_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "a header of %" PRIu64 " bytes at %" PRIu64,
                             size, offset);
    DL2_TRY(dl2_bytes_resize(&walk->extra, (size_t)size + 1, error));
    DL2_TRY(read_at(walk->reader->fd, offset, walk->extra.data, (size_t)size, error));
    walk->extra.data[size] = '\0';
    return DL2_OK;
}

/* 1 and the next member of any type; 0 at the end. */
static int next_member(struct walk *walk, struct member *member, struct dl2_error *error)
{
    struct extras extras = {0};
    for (;;) {
        const uint8_t *header;
        const uint64_t at = walk->at;
        if (walk->reader->bytes - at < BLOCK)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "ends without the empty block that closes a tar file: cut short?");
        DL2_TRY(look(walk->reader, at, BLOCK, &header, error));
        if (is_zero(header))
            return 0;
        uint64_t size;
        if (!sum_fits(header) || !read_number(header + 124, 12, &size))
            return dl2_error_set(error, DL2_ERR_FORMAT, "the header at %" PRIu64 " is damaged", at);
        const char type = (char)header[156];
        const bool about = type == 'x' || type == 'g' || type == 'L' || type == 'K';
        if (!about && extras.has_size)
            size = extras.size;
        const uint64_t offset = at + BLOCK, room = walk->reader->bytes - offset;
        if (size > room || (size + BLOCK - 1) / BLOCK * BLOCK > room)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "the member at %" PRIu64 " has %" PRIu64
                                 " bytes, and the file ends before them: cut short?",
                                 at, size);
        walk->at = offset + (size + BLOCK - 1) / BLOCK * BLOCK;
        if (about) {
            if (type == 'g')
                continue;
            DL2_TRY(read_extra(walk, offset, size, error));
            const char *text = (const char *)walk->extra.data;
            if (type == 'x') {
                DL2_TRY(read_pax(text, (size_t)size, &walk->name, &walk->link, &extras, error));
            } else {
                DL2_TRY(
                    set_text(type == 'L' ? &walk->name : &walk->link, text, strlen(text), error));
                *(type == 'L' ? &extras.has_name : &extras.has_link) = true;
            }
            continue;
        }
        if (!extras.has_name)
            DL2_TRY(plain_name(header, &walk->name, error));
        if (!extras.has_link)
            DL2_TRY(set_text(&walk->link, (const char *)header + 157,
                             strnlen((const char *)header + 157, 100), error));
        *member =
            (struct member){(char *)walk->name.data, (char *)walk->link.data, offset, size, type};
        return 1;
    }
}

/* ---- Samples */

/* Drops "./", "//" and a leading "/" in place. */
static void tidy(char *name)
{
    char *out = name;
    for (const char *part = name; *part;) {
        const char *end = strchrnul(part, '/');
        const size_t length = (size_t)(end - part);
        if (length && !(length == 1 && part[0] == '.')) {
            if (out != name)
                *out++ = '/';
            memmove(out, part, length);
            out += length;
        }
        part = *end ? end + 1 : end;
    }
    *out = '\0';
}

/* What a folder would leave out: a part of the name starts with a dot. */
static bool is_hidden(const char *name)
{
    return !*name || *name == '.' || strstr(name, "/.");
}

/* What stands beside images in a sample. */
static bool is_metadata(const char *extension)
{
    static const char *const known[] = {
        "cls",    "cls2",       "class", "count", "csv",  "html", "id",  "index", "info",
        "inx",    "json",       "jsn",   "jsonl", "md",   "mp",   "msg", "npy",   "npz",
        "pickle", "pkl",        "pt",    "pth",   "pyd",  "pyx",  "ten", "tb",    "tsv",
        "text",   "transcript", "txt",   "xml",   "yaml", "yml",  "cbor"};
    const char *dot = strrchr(extension, '.');
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(dot ? dot + 1 : extension, known[i]))
            return true;
    return false;
}

/* The sample being put together. */
struct group {
    struct dl2_bytes base; /* the name up to the dot */
    struct dl2_bytes key, extension;
    bool any, has_image, has_label, has_json;
    uint64_t offset;
    uint32_t bytes;
    char label[MAX_LABEL_BYTES + 1];
};

struct tar_scan {
    struct dl2_scan *scan;
    struct walk walk;
    struct group group;
    const char *key_part;
    const struct dl2_class_list *classes;
    bool plain; /* a tree of files: a name ends at its last dot, and nothing is metadata */
    bool has_metadata, has_dots;
    bool has_links; /* hard links: */
    void *targets;  /* then a tree (search.h) of struct target, what they may point to */
};

/* A file of the archive that a hard link may point to. */
struct target {
    uint64_t offset, size;
    const char *name; /* stands behind this */
};

static int compare_targets(const void *left, const void *right)
{
    return strcmp(((const struct target *)left)->name, ((const struct target *)right)->name);
}

static int add_target(struct tar_scan *tar, const struct member *member, struct dl2_error *error)
{
    const size_t length = strlen(member->name) + 1;
    struct target *target = dl2_calloc(1, sizeof *target + length);
    if (!target)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for hard links");
    target->name = memcpy((char *)(target + 1), member->name, length);
    struct target **there = tsearch(target, &tar->targets, compare_targets);
    if (!there || *there != target)
        free(target);
    if (!there)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for hard links");
    (*there)->offset = member->offset; /* of members called the same the last counts, as for tar */
    (*there)->size = member->size;
    return DL2_OK;
}

/* Gives a hard link the bytes of the file that it is another name of. */
static int follow_link(struct tar_scan *tar, struct member *member, struct dl2_error *error)
{
    tidy(member->link);
    const struct target wanted = {.name = member->link};
    struct target *const *found = tfind(&wanted, &tar->targets, compare_targets);
    if (!found)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s is a hard link to %s, and no file of that name comes before it",
                             member->name, member->link);
    member->offset = (*found)->offset;
    member->size = (*found)->size;
    return DL2_OK;
}

/* What writer.c makes of dots and per cent signs in names. */
static void unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (!strncmp(in, "%2E", 3) || !strncmp(in, "%25", 3)) {
            *out++ = in[2] == 'E' ? '.' : '%';
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
}

/* The class of "3", where there is a list; else the text itself. */
static int name_label(const struct tar_scan *tar, const char **label, struct dl2_error *error)
{
    const char *text = tar->group.label;
    const size_t digits = strspn(text, "0123456789");
    *label = text;
    if (!tar->classes || !tar->classes->names || !digits || text[digits])
        return DL2_OK;
    const uint64_t number = digits < 10 ? strtoull(text, NULL, 10) : UINT64_MAX;
    if (number >= tar->classes->count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s.cls has label %s, and classes.txt %" PRIu32 " classes",
                             (const char *)tar->group.base.data, text, tar->classes->count);
    *label = tar->classes->names[number];
    return DL2_OK;
}

static int end_group(struct tar_scan *tar, struct dl2_error *error)
{
    struct group *group = &tar->group;
    const bool is_sample = group->any && group->has_image;
    group->any = false;
    if (!is_sample)
        return DL2_OK;
    const char *base = (const char *)group->base.data, *label = NULL;
    if (group->has_label)
        DL2_TRY(name_label(tar, &label, error));
    else if (group->has_json)
        tar->scan->draft.notes |= DL2_NOTE_JSON_LABELS;
    group->key.size = 0;
    DL2_TRY(dl2_bytes_append(&group->key, tar->key_part, strlen(tar->key_part), error));
    DL2_TRY(dl2_bytes_append(&group->key, base, strlen(base) + 1, error));
    unescape((char *)dl2_path_base((const char *)group->key.data));
    const struct dl2_index_entry entry = {.offset = group->offset,
                                          .bytes = group->bytes,
                                          .shard = tar->scan->draft.shard_count - 1,
                                          .key = (const char *)group->key.data,
                                          .extension = (const char *)group->extension.data};
    return dl2_scan_add(tar->scan, &entry, label, error);
}

static int comes_twice(const char *name, const char *extension, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s%s%s comes twice; names must differ", name,
                         *extension ? "." : "", extension);
}

static int read_label(struct tar_scan *tar, const struct member *member, struct dl2_error *error)
{
    const uint8_t *text;
    struct group *group = &tar->group;
    if (group->has_label)
        return comes_twice(member->name, "cls", error);
    if (member->size > MAX_LABEL_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: a label of %" PRIu64 " bytes", member->name,
                             member->size);
    DL2_TRY(look(tar->walk.reader, member->offset, (size_t)member->size, &text, error));
    size_t start = 0, end = (size_t)member->size;
    while (start < end && isspace(text[start]))
        start++;
    while (end > start && isspace(text[end - 1]))
        end--;
    if (start == end || memchr(text + start, '\0', end - start))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: not a label", member->name);
    memcpy(group->label, text + start, end - start);
    group->label[end - start] = '\0';
    group->has_label = true;
    return DL2_OK;
}

static int add_member(struct tar_scan *tar, const struct member *member, struct dl2_error *error)
{
    struct group *group = &tar->group;
    const char *last = dl2_path_base(member->name);
    char *dot = (char *)(tar->plain ? strrchr(last, '.') : strchr(last, '.'));
    const char *extension = dot ? dot + 1 : "";
    if (!tar->plain && strchr(extension, '.'))
        tar->has_dots = true;
    if (dot)
        *dot = '\0';
    if (!group->any || strcmp((const char *)group->base.data, member->name) != 0) {
        DL2_TRY(end_group(tar, error));
        group->base.size = 0;
        DL2_TRY(dl2_bytes_append(&group->base, member->name, strlen(member->name) + 1, error));
        group->any = true;
        group->has_image = group->has_label = group->has_json = false;
    } else if (tar->plain) {
        DL2_TRY(end_group(tar, error)); /* one that is called the same: found out as such */
        group->any = true;
        group->has_image = false;
    }
    if (!tar->plain && is_metadata(extension)) {
        tar->has_metadata = true;
        group->has_json |= !strcasecmp(extension, "json");
        return strcasecmp(extension, "cls") ? DL2_OK : read_label(tar, member, error);
    }
    if (group->has_image && !strcmp((const char *)group->extension.data, extension))
        return comes_twice(member->name, extension, error);
    if (group->has_image)
        return DL2_OK;
    if (member->size > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %" PRIu64 " bytes pass 2 GiB", member->name,
                             member->size);
    group->has_image = true;
    group->offset = member->offset;
    group->bytes = (uint32_t)member->size;
    group->extension.size = 0;
    return dl2_bytes_append(&group->extension, extension, strlen(extension) + 1, error);
}

/* Goes through the members. Ends early, with has_links set, at a hard link that it didn't expect.
 */
static int scan_members(struct tar_scan *tar, struct dl2_error *error)
{
    const bool follows = tar->has_links;
    struct member member = {0};
    tar->walk.at = 0;
    tar->group.any = false;
    int more;
    while ((more = next_member(&tar->walk, &member, error)) > 0) {
        tidy(member.name);
        if (member.type == 'S')
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s is a sparse file", member.name);
        if (member.type == '2' && !is_hidden(member.name))
            tar->scan->draft.notes |= DL2_NOTE_SYMBOLIC_LINKS;
        if (member.type == '1' && !follows) {
            tar->has_links = true;
            return DL2_OK;
        }
        if (member.type == '1')
            DL2_TRY(follow_link(tar, &member, error));
        else if (member.type != '0' && member.type != '\0' && member.type != '7')
            continue; /* not a regular file, by its old or its new mark: a folder, a device */
        if (follows)
            DL2_TRY(add_target(tar, &member, error));
        if (!is_hidden(member.name))
            DL2_TRY(add_member(tar, &member, error));
    }
    DL2_TRY(more);
    return end_group(tar, error);
}

/* Once more, with what the first look has found out of the archive. */
static int scan_again(struct tar_scan *tar, size_t before, struct dl2_error *error)
{
    dl2_scan_cut(tar->scan, before);
    tdestroy(tar->targets, free);
    tar->targets = NULL;
    return scan_members(tar, error);
}

int dl2_tar_scan(struct dl2_scan *scan, int fd, uint64_t bytes, const char *key_part,
                 const struct dl2_class_list *classes, struct dl2_error *error)
{
    struct tar_scan *tar = dl2_calloc(1, sizeof *tar);
    struct reader *reader = dl2_calloc(1, sizeof *reader);
    int status = DL2_ERR_MEMORY;
    if (tar && reader) {
        const size_t before = scan->draft.count;
        *reader = (struct reader){.fd = fd, .bytes = bytes};
        tar->scan = scan;
        tar->walk.reader = reader;
        tar->key_part = key_part;
        tar->classes = classes;
        status = scan_members(tar, error);
        if (status == DL2_OK && tar->has_links)
            status = scan_again(tar, before, error);
        /* Images alone, "a.1.jpg" and "a.2.jpg" among them: a tree of files, not WebDataset's. */
        if (status == DL2_OK && tar->has_dots && !tar->has_metadata) {
            tar->plain = true;
            status = scan_again(tar, before, error);
        }
        tdestroy(tar->targets, free);
        dl2_bytes_free(&tar->walk.name);
        dl2_bytes_free(&tar->walk.link);
        dl2_bytes_free(&tar->walk.extra);
        dl2_bytes_free(&tar->group.base);
        dl2_bytes_free(&tar->group.key);
        dl2_bytes_free(&tar->group.extension);
    } else {
        dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a tar file");
    }
    free(tar);
    free(reader);
    return status;
}

/* classes.txt: a name a line, in the order of their numbers. */
int dl2_tar_read_classes(struct dl2_scan *scan, const char *root, const char *folder,
                         struct dl2_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "%sclasses.txt", folder);
    char *path = dl2_path_join(root, name);
    if (!path)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    struct dl2_bytes text = DL2_BYTES_INIT;
    const bool there = dl2_is_file(path);
    int status = there ? dl2_file_read(path, 64 << 20, &text, error) : DL2_OK;
    free(path);
    char **names = NULL;
    uint32_t count = 0;
    for (size_t at = 0; status == DL2_OK && at < text.size;) {
        const char *line = (const char *)text.data + at;
        const char *end = memchr(line, '\n', text.size - at);
        size_t length = end ? (size_t)(end - line) : text.size - at;
        at += length + 1;
        if (length && line[length - 1] == '\r')
            length--;
        char **grown = dl2_realloc(names, (size_t)count + 1, sizeof *names);
        if (grown)
            names = grown;
        if (!grown || !(names[count] = strndup(line, length)))
            status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for classes");
        else
            count++;
    }
    dl2_bytes_free(&text);
    if (status == DL2_OK && count)
        return dl2_scan_add_classes(scan, folder, names, count, error);
    while (count)
        free(names[--count]);
    free(names);
    return status;
}
