/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/packed/tar_members.h"

#include "common/file.h"
#include "common/scope.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 100, /* of a name in a header */
    PREFIX_BYTES = 155,
    FAR_BYTES = 64 << 10, /* read at once if members are so small that reading on is cheaper */
    MAX_NAME_BYTES = 1 << 20,
};

/* ---- Reading: a window onto the file */

struct dl2_tar_window {
    struct dl2_shard_source source;
    uint64_t bytes; /* of the file */
    uint64_t start; /* where `data` begins in the file */
    size_t size;    /* of what `data` holds */
    uint8_t data[FAR_BYTES];
};

static int tar_cut_short(struct dl2_error *error, uint64_t offset)
{
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "cut short, or not a tar file: it ends at byte %" PRIu64, offset);
}

int dl2_tar_read_at(const struct dl2_shard_source *source, uint64_t offset, void *out, size_t size,
                    struct dl2_error *error)
{
    const int64_t got = dl2_source_read(source, offset, out, size, error);
    if (got < 0)
        return (int)got;
    return (size_t)got == size ? DL2_OK : tar_cut_short(error, offset + (uint64_t)got);
}

int dl2_tar_look(struct dl2_tar_walk *walk, uint64_t offset, size_t size, const uint8_t **out,
                 struct dl2_error *error)
{
    struct dl2_tar_window *window = walk->window;
    const uint64_t end = window->start + window->size;
    if (offset < window->start || offset > end || size > end - offset) {
        if (offset > window->bytes || size > window->bytes - offset)
            return tar_cut_short(error, window->bytes);
        size_t wanted =
            offset >= window->start && offset < end + FAR_BYTES ? FAR_BYTES : DL2_TAR_LOOK;
        if (wanted > window->bytes - offset)
            wanted = (size_t)(window->bytes - offset);
        window->size = 0;
        DL2_TRY(dl2_tar_read_at(&window->source, offset, window->data, wanted, error));
        window->start = offset;
        window->size = wanted;
    }
    *out = window->data + (offset - window->start);
    return DL2_OK;
}

/* ---- Reading: headers */

/* Octal digits, or a binary number if the first bit is set (GNU), below 2^62; else false. */
static bool tar_read_number(const uint8_t *field, size_t size, uint64_t *out)
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

/*
 * Is the check sum right: the sum of the header's bytes, with blanks for its own field? Some old
 * programs summed signed bytes.
 */
static bool tar_sum_fits(const uint8_t *header)
{
    uint64_t wanted;
    int64_t plain = 0, with_sign = 0;
    for (int i = 0; i < DL2_TAR_BLOCK; i++) {
        const uint8_t byte = i >= 148 && i < 156 ? ' ' : header[i];
        plain += byte;
        with_sign += (int8_t)byte;
    }
    return tar_read_number(header + 148, 8, &wanted) &&
           ((int64_t)wanted == plain || (int64_t)wanted == with_sign);
}

static bool tar_is_zero(const uint8_t *block)
{
    for (int i = 0; i < DL2_TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* The name in a header: PREFIX/NAME in one of ustar's with a prefix. */
static int tar_plain_name(const uint8_t *header, struct dl2_bytes *out, struct dl2_error *error)
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

/* The fields of an extended header, which replace those of the next header. */
struct extras {
    bool has_name, has_link, has_size, is_sparse;
    uint64_t size;
};

static int tar_set_text(struct dl2_bytes *out, const char *text, size_t length,
                        struct dl2_error *error)
{
    out->size = 0;
    DL2_TRY(dl2_bytes_append(out, text, length, error));
    return dl2_bytes_append(out, "", 1, error);
}

static bool tar_is_keyword(const char *text, const char *equals, const char *keyword)
{
    return equals && (size_t)(equals - text) == strlen(keyword) &&
           !strncmp(text, keyword, strlen(keyword));
}

/* Reads path, linkpath and size of pax records, each "LENGTH KEYWORD=VALUE\n". GNU tar stores a
 * sparse file as its map and its parts, under another path. */
static int tar_read_pax(const char *text, size_t length, struct dl2_bytes *name,
                        struct dl2_bytes *link, struct extras *extras, struct dl2_error *error)
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
        if (equals && !strncmp(keyword, "GNU.sparse.", strlen("GNU.sparse.")))
            extras->is_sparse = true;
        if (tar_is_keyword(keyword, equals, "path") ||
            tar_is_keyword(keyword, equals, "GNU.sparse.name")) {
            DL2_TRY(tar_set_text(name, value, (size_t)(end - value), error));
            extras->has_name = true;
        } else if (tar_is_keyword(keyword, equals, "linkpath")) {
            DL2_TRY(tar_set_text(link, value, (size_t)(end - value), error));
            extras->has_link = true;
        } else if (tar_is_keyword(keyword, equals, "size")) {
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

/* Reads the contents of an extended header: a long name, or pax records. */
static int tar_read_extra(struct dl2_tar_walk *walk, uint64_t offset, uint64_t size,
                          struct dl2_error *error)
{
    if (size > MAX_NAME_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "a header of %" PRIu64 " bytes at %" PRIu64,
                             size, offset);
    DL2_TRY(dl2_bytes_resize(&walk->extra, (size_t)size + 1, error));
    DL2_TRY(dl2_tar_read_at(&walk->window->source, offset, walk->extra.data, (size_t)size, error));
    walk->extra.data[size] = '\0';
    return DL2_OK;
}

/* What is no header; a file that begins so may be compressed, whatever its name says. */
static int tar_refuse_header(struct dl2_tar_walk *walk, uint64_t at, struct dl2_error *error)
{
    static const struct {
        const char *name, *start;
    } compressed[] = {{"gzip", "\x1f\x8b"},
                      {"zstd", "\x28\xb5\x2f\xfd"},
                      {"xz", "\xfd\x37zXZ"},
                      {"bzip2", "BZh"},
                      {"lz4", "\x04\x22\x4d\x18"}};
    const uint64_t left = walk->window->bytes - at;
    char start[8] = {0};
    if (!at)
        DL2_TRY(dl2_tar_read_at(&walk->window->source, 0, start,
                                left < sizeof start ? (size_t)left : sizeof start, error));
    for (size_t i = 0; i < sizeof compressed / sizeof *compressed; i++)
        if (!memcmp(start, compressed[i].start, strlen(compressed[i].start)))
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "it is compressed by %s, though its name does not say so: "
                                 "decompress it%s",
                                 compressed[i].name,
                                 i ? "" : ", or call it .tar.gz for dl2-transcode copy");
    return left < DL2_TAR_BLOCK
               ? dl2_error_set(error, DL2_ERR_FORMAT,
                               "it ends without the empty block that closes a tar file: cut short?")
               : dl2_error_set(error, DL2_ERR_FORMAT, "the header at %" PRIu64 " is damaged", at);
}

int dl2_tar_next(struct dl2_tar_walk *walk, struct dl2_tar_member *member, struct dl2_error *error)
{
    struct extras extras = {0};
    bool closed = false;
    for (;;) {
        const uint8_t *header;
        const uint64_t at = walk->at;
        if (walk->window->bytes - at < DL2_TAR_BLOCK)
            return closed ? 0 : tar_refuse_header(walk, at, error);
        DL2_TRY(dl2_tar_look(walk, at, DL2_TAR_BLOCK, &header, error));
        if (tar_is_zero(header)) {
            closed = true;
            walk->at += DL2_TAR_BLOCK;
            continue;
        }
        uint64_t size;
        if (!tar_sum_fits(header) || !tar_read_number(header + 124, 12, &size))
            return tar_refuse_header(walk, at, error);
        const char type = (char)header[156];
        const bool about = type == 'x' || type == 'g' || type == 'L' || type == 'K';
        if (!about && extras.has_size)
            size = extras.size;
        const uint64_t offset = at + DL2_TAR_BLOCK, room = walk->window->bytes - offset;
        if (size > room || (size + DL2_TAR_BLOCK - 1) / DL2_TAR_BLOCK * DL2_TAR_BLOCK > room)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "the member at %" PRIu64 " has %" PRIu64
                                 " bytes, and the file ends before them: cut short?",
                                 at, size);
        walk->at = offset + (size + DL2_TAR_BLOCK - 1) / DL2_TAR_BLOCK * DL2_TAR_BLOCK;
        if (about) {
            if (type == 'g')
                continue;
            DL2_TRY(tar_read_extra(walk, offset, size, error));
            const char *text = (const char *)walk->extra.data;
            if (type == 'x') {
                DL2_TRY(tar_read_pax(text, (size_t)size, &walk->name, &walk->link, &extras, error));
            } else {
                DL2_TRY(tar_set_text(type == 'L' ? &walk->name : &walk->link, text, strlen(text),
                                     error));
                *(type == 'L' ? &extras.has_name : &extras.has_link) = true;
            }
            continue;
        }
        if (!extras.has_name)
            DL2_TRY(tar_plain_name(header, &walk->name, error));
        if (!extras.has_link)
            DL2_TRY(tar_set_text(&walk->link, (const char *)header + 157,
                                 strnlen((const char *)header + 157, 100), error));
        *member = (struct dl2_tar_member){(char *)walk->name.data, (char *)walk->link.data, offset,
                                          size, extras.is_sparse ? 'S' : type};
        return 1;
    }
}

/* ---- Reading: a walk */

int dl2_tar_walk_open(struct dl2_tar_walk *walk, const struct dl2_shard_source *source,
                      uint64_t bytes, struct dl2_error *error)
{
    *walk = (struct dl2_tar_walk){.window = malloc(sizeof *walk->window)};
    if (!walk->window)
        return dl2_error_memory(error, "a tar file");
    walk->window->source = *source;
    walk->window->bytes = bytes;
    walk->window->start = walk->window->size = 0;
    return DL2_OK;
}

void dl2_tar_walk_close(struct dl2_tar_walk *walk)
{
    dl2_bytes_free(&walk->name);
    dl2_bytes_free(&walk->link);
    dl2_bytes_free(&walk->extra);
    free(walk->window);
}

/* ---- Writing */

static int tar_put_header(struct dl2_shard_output *output, const char *prefix, size_t prefix_length,
                          const char *name, size_t name_length, char type, size_t size,
                          struct dl2_error *error)
{
    uint8_t header[DL2_TAR_BLOCK] = {0};
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
    for (int i = 0; i < DL2_TAR_BLOCK; i++)
        sum += header[i];
    snprintf(field, sizeof field, "%06o", sum);
    memcpy(header + 148, field, 7);
    header[155] = ' ';
    return dl2_shard_put(output, header, sizeof header, error);
}

/* The slash at which a long name can be cut into a prefix of ustar's and the rest; 0: none. */
static size_t tar_find_cut(const char *name, size_t length)
{
    for (size_t i = length < PREFIX_BYTES ? length : PREFIX_BYTES; i > 0; i--)
        if (name[i] == '/' && length - i - 1 <= NAME_BYTES && length - i - 1 > 0)
            return i;
    return 0;
}

/* A pax header with a name, "LENGTH path=NAME\n", where LENGTH counts its own digits. */
static int tar_put_pax(struct dl2_shard_output *output, const char *name, struct dl2_error *error)
{
    size_t length = strlen(name) + strlen(" path=\n") + 1;
    for (size_t power = 10; length >= power; power *= 10)
        length++;
    DL2_AUTO_FREE char *text = NULL;
    DL2_TRY(dl2_format(&text, error, "%zu path=%s\n", length, name));
    DL2_TRY(tar_put_header(output, "", 0, "PaxHeader", strlen("PaxHeader"), 'x', length, error));
    DL2_TRY(dl2_shard_put(output, text, length, error));
    return dl2_shard_put_zeros(output, -length % DL2_TAR_BLOCK, error);
}

int dl2_tar_put_member(struct dl2_shard_output *output, const char *name, const void *data,
                       size_t size, struct dl2_error *error)
{
    size_t length = strlen(name), cut = 0;
    if (length > NAME_BYTES && !(cut = tar_find_cut(name, length))) {
        DL2_TRY(tar_put_pax(output, name, error));
        length = NAME_BYTES;
    }
    const char *rest = cut ? name + cut + 1 : name;
    DL2_TRY(
        tar_put_header(output, name, cut, rest, length - (size_t)(rest - name), '0', size, error));
    DL2_TRY(dl2_shard_put(output, data, size, error));
    return dl2_shard_put_zeros(output, -size % DL2_TAR_BLOCK, error);
}

int dl2_tar_put_end(struct dl2_shard_output *output, struct dl2_error *error)
{
    return dl2_shard_put_zeros(output, 2 * DL2_TAR_BLOCK, error);
}
