/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tar files, read and written as WebDataset does: consecutive members with the same name up to the
 * first dot of its last part are one sample. tar_members.h reads and writes the members.
 */
#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed.h"
#include "dataset/tar_members.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

_Static_assert((int)DL2_LABEL_BYTES <= (int)DL2_TAR_LOOK, "a label is looked at whole");

/* Bits of a draft's notes, in the order of tar_format.notes. */
enum { NOTE_JSON_LABELS = 1, NOTE_SYMBOLIC_LINKS = 2 };

/* ---- Reading: samples */

/* Drops "./", "//" and a leading "/" in place. */
static void tar_tidy(char *name)
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

/* Regular files have one of three types. */
static bool tar_is_file(const struct dl2_tar_member *member)
{
    return member->type == '0' || member->type == '\0' || member->type == '7';
}

/* Does a part of the name start with a dot? Folders leave such files out, too. */
static bool tar_is_hidden(const char *name)
{
    return !*name || *name == '.' || strstr(name, "/.");
}

/* Is it the extension of what stands beside the image in a sample? */
static bool tar_is_metadata(const char *extension)
{
    static const char *const known[] = {
        "cls",    "cls2",       "class", "count", "csv",  "html", "id",   "index", "info",
        "inx",    "json",       "jsn",   "jsonl", "md",   "mp",   "msg",  "npy",   "npz",
        "pickle", "pkl",        "pt",    "pth",   "pyd",  "pyx",  "ten",  "tb",    "tsv",
        "text",   "transcript", "txt",   "xml",   "yaml", "yml",  "cbor", NULL};
    const char *dot = strrchr(extension, '.');
    return dl2_is_one_of(dot ? dot + 1 : extension, known);
}

/* The sample that is being put together. */
struct tar_group {
    struct dl2_bytes base; /* the name up to the dot */
    struct dl2_bytes key, extension;
    bool any, has_image, has_label, has_json;
    uint64_t offset;
    uint32_t bytes;
    uint64_t json_offset, json_bytes;
    char label[DL2_LABEL_BYTES + 1];
};

struct tar_scan {
    struct dl2_scan *scan;
    struct dl2_tar_walk walk;
    struct tar_group group;
    const struct dl2_shard_input *input;
    bool plain; /* a tree of files: a name ends at its last dot, and nothing is metadata */
    bool has_metadata, has_dots;
    size_t without_label; /* samples without a label in the field, and why the first has none: */
    char *first_without;
    struct dl2_bytes json;
    bool has_links; /* there are hard links: */
    void *targets;  /* then a tree (search.h) of struct target, what links may point to */
};

/* A file of the archive that a hard link may point to. */
struct target {
    uint64_t offset, size;
    const char *name; /* in the same allocation */
};

static int tar_compare_targets(const void *left, const void *right)
{
    return strcmp(((const struct target *)left)->name, ((const struct target *)right)->name);
}

static int tar_add_target(struct tar_scan *tar, const struct dl2_tar_member *member,
                          struct dl2_error *error)
{
    const size_t length = strlen(member->name) + 1;
    struct target *target = dl2_calloc(1, sizeof *target + length);
    if (!target)
        return dl2_error_memory(error, "a dataset");
    target->name = memcpy((char *)(target + 1), member->name, length);
    struct target **there = tsearch(target, &tar->targets, tar_compare_targets);
    if (!there || *there != target)
        free(target);
    if (!there)
        return dl2_error_memory(error, "a dataset");
    (*there)->offset = member->offset; /* the last member of a name counts, as when extracting */
    (*there)->size = member->size;
    return DL2_OK;
}

/* Sets the bytes of a hard link to those of the file that it points to. */
static int tar_follow_link(struct tar_scan *tar, struct dl2_tar_member *member,
                           struct dl2_error *error)
{
    tar_tidy(member->link);
    const struct target wanted = {.name = member->link};
    struct target *const *found = tfind(&wanted, &tar->targets, tar_compare_targets);
    if (!found)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s is a hard link to %s, and no file of that name comes before it",
                             member->name, member->link);
    member->offset = (*found)->offset;
    member->size = (*found)->size;
    return DL2_OK;
}

/* Undoes what tar_name() does to dots and per cent signs. */
static void tar_unescape(char *text)
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

/* Sets *label to class 3 of the list for the label "3" if there is a list, else to the text. */
static int tar_name_label(const struct tar_scan *tar, const char **label, struct dl2_error *error)
{
    const char *text = tar->group.label;
    const int64_t number = dl2_label_number(text);
    *label = text;
    const struct dl2_class_list *classes = tar->input->classes;
    if (!classes || !classes->names || number < 0)
        return DL2_OK;
    if (number >= classes->count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s.%s has label %s, but classes.txt has %" PRIu32 " classes",
                             (const char *)tar->group.base.data,
                             tar->scan->draft.label_field ? "json" : "cls", text, classes->count);
    *label = classes->names[number];
    return DL2_OK;
}

/* Reads what the field of the sample's JSON holds. A fault of the JSON is DL2_ERR_FORMAT. */
static int tar_read_field(struct tar_scan *tar, enum dl2_field_kind *kind, struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    struct dl2_bytes *json = &tar->json;
    *kind = DL2_LABEL_NONE;
    if (!group->has_json)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the sample has no .json");
    if (group->json_bytes > DL2_LABEL_JSON_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%" PRIu64 " bytes of .json pass %d MiB",
                             group->json_bytes, DL2_LABEL_JSON_BYTES >> 20);
    DL2_TRY(dl2_bytes_resize(json, (size_t)group->json_bytes, error));
    DL2_TRY(
        dl2_tar_read_at(&tar->input->source, group->json_offset, json->data, json->size, error));
    return dl2_label_field_read(tar->scan->draft.label_field, json->data, json->size, kind,
                                group->label, error);
}

/* Notes a sample without a label in the field. */
static int tar_note_without(struct tar_scan *tar, const char *reason, struct dl2_error *error)
{
    return tar->without_label++ ? DL2_OK
                                : dl2_format(&tar->first_without, error, "%s: %s",
                                             (const char *)tar->group.base.data, reason);
}

/* Sets *label to the class by the field of JSON, or to NULL. */
static int tar_find_label(struct tar_scan *tar, const char **label, struct dl2_error *error)
{
    enum dl2_field_kind kind, *before = &tar->scan->label_kind;
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status = tar_read_field(tar, &kind, &reason);
    *label = NULL;
    if (status == DL2_ERR_FORMAT)
        return tar_note_without(tar, reason.message, error);
    if (status < 0) {
        dl2_error_copy(error, &reason);
        dl2_error_prefix(error, "%s", (const char *)tar->group.base.data);
        return status;
    }
    if (*before != DL2_LABEL_NONE && kind != *before)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the field %s of %s.json is a %s, and that of samples before it a %s: "
                             "classes are either",
                             tar->scan->draft.label_field, (const char *)tar->group.base.data,
                             kind == DL2_LABEL_NAME ? "name" : "number",
                             kind == DL2_LABEL_NAME ? "number" : "name");
    *before = kind;
    *label = tar->group.label;
    return kind == DL2_LABEL_NUMBER ? tar_name_label(tar, label, error) : DL2_OK;
}

static int tar_end_group(struct tar_scan *tar, struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    const bool is_sample = group->any && group->has_image;
    group->any = false;
    if (!is_sample)
        return DL2_OK;
    const char *base = (const char *)group->base.data, *label = NULL;
    if (tar->scan->draft.label_field)
        DL2_TRY(tar_find_label(tar, &label, error));
    else if (group->has_label)
        DL2_TRY(tar_name_label(tar, &label, error));
    else if (group->has_json)
        tar->scan->draft.notes |= NOTE_JSON_LABELS;
    group->key.size = 0;
    DL2_TRY(
        dl2_bytes_append(&group->key, tar->input->key_start, strlen(tar->input->key_start), error));
    DL2_TRY(dl2_bytes_append(&group->key, base, strlen(base) + 1, error));
    tar_unescape((char *)dl2_path_base((const char *)group->key.data));
    const struct dl2_index_entry entry = {.offset = group->offset,
                                          .bytes = group->bytes,
                                          .shard = tar->scan->draft.shard_count - 1,
                                          .key = (const char *)group->key.data,
                                          .extension = (const char *)group->extension.data};
    return dl2_scan_add(tar->scan, &entry, label, error);
}

static int tar_comes_twice(const char *name, const char *extension, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s%s%s comes twice; names must differ", name,
                         *extension ? "." : "", extension);
}

static int tar_read_label(struct tar_scan *tar, const struct dl2_tar_member *member,
                          struct dl2_error *error)
{
    const uint8_t *text;
    struct tar_group *group = &tar->group;
    if (group->has_label)
        return tar_comes_twice(member->name, "cls", error);
    if (member->size > DL2_LABEL_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: a label of %" PRIu64 " bytes", member->name,
                             member->size);
    DL2_TRY(dl2_tar_look(&tar->walk, member->offset, (size_t)member->size, &text, error));
    const char *label = (const char *)text;
    size_t size = (size_t)member->size;
    dl2_label_trim(&label, &size);
    if (!size || memchr(label, '\0', size))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: not a label", member->name);
    memcpy(group->label, label, size);
    group->label[size] = '\0';
    group->has_label = true;
    return DL2_OK;
}

static int tar_add_member(struct tar_scan *tar, const struct dl2_tar_member *member,
                          struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    const char *last = dl2_path_base(member->name);
    char *dot = (char *)(tar->plain ? strrchr(last, '.') : strchr(last, '.'));
    const char *extension = dot ? dot + 1 : "";
    if (!tar->plain && strchr(extension, '.'))
        tar->has_dots = true;
    if (dot)
        *dot = '\0';
    if (!group->any || strcmp((const char *)group->base.data, member->name) != 0) {
        DL2_TRY(tar_end_group(tar, error));
        group->base.size = 0;
        DL2_TRY(dl2_bytes_append(&group->base, member->name, strlen(member->name) + 1, error));
        group->any = true;
        group->has_image = group->has_label = group->has_json = false;
    } else if (tar->plain) {
        DL2_TRY(tar_end_group(tar, error)); /* a second one of this name: the index refuses it */
        group->any = true;
        group->has_image = false;
    }
    if (!tar->plain && tar_is_metadata(extension)) {
        tar->has_metadata = true;
        if (!strcasecmp(extension, "json")) {
            if (group->has_json && tar->scan->draft.label_field)
                return tar_comes_twice(member->name, extension, error);
            group->has_json = true;
            group->json_offset = member->offset;
            group->json_bytes = member->size;
        }
        return strcasecmp(extension, "cls") || tar->scan->draft.label_field
                   ? DL2_OK
                   : tar_read_label(tar, member, error);
    }
    if (group->has_image && !strcmp((const char *)group->extension.data, extension))
        return tar_comes_twice(member->name, extension, error);
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

/* Goes through the members; unless has_links is set, only to the first hard link, and sets it. */
static int tar_scan_members(struct tar_scan *tar, struct dl2_error *error)
{
    const bool follows = tar->has_links;
    struct dl2_tar_member member = {0};
    tar->walk.at = 0;
    tar->group.any = false;
    int more;
    while ((more = dl2_tar_next(&tar->walk, &member, error)) > 0) {
        tar_tidy(member.name);
        if (member.type == 'S')
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "%s is a sparse file: pack it again without tar's --sparse",
                                 member.name);
        if (member.type == '2' && !tar_is_hidden(member.name))
            tar->scan->draft.notes |= NOTE_SYMBOLIC_LINKS;
        if (member.type == '1' && !follows) {
            tar->has_links = true;
            return DL2_OK;
        }
        if (member.type == '1')
            DL2_TRY(tar_follow_link(tar, &member, error));
        else if (!tar_is_file(&member))
            continue; /* a folder or a device */
        if (follows)
            DL2_TRY(tar_add_target(tar, &member, error));
        if (!tar_is_hidden(member.name))
            DL2_TRY(tar_add_member(tar, &member, error));
    }
    DL2_TRY(more);
    return tar_end_group(tar, error);
}

/* Scans once more, knowing what the first scan found out. */
static int tar_scan_again(struct tar_scan *tar, size_t before, struct dl2_error *error)
{
    dl2_scan_cut(tar->scan, before);
    tar->without_label = 0;
    free(tar->first_without);
    tar->first_without = NULL;
    tdestroy(tar->targets, free);
    tar->targets = NULL;
    return tar_scan_members(tar, error);
}

static void tar_end_scan(struct tar_scan *tar)
{
    tdestroy(tar->targets, free);
    dl2_tar_walk_close(&tar->walk);
    dl2_bytes_free(&tar->group.base);
    dl2_bytes_free(&tar->group.key);
    dl2_bytes_free(&tar->group.extension);
    dl2_bytes_free(&tar->json);
    free(tar->first_without);
}

/* Adds the samples without a label to those of the shards before. */
static void tar_hand_over(struct tar_scan *tar)
{
    tar->scan->without_label += tar->without_label;
    if (!tar->scan->first_without) {
        tar->scan->first_without = tar->first_without;
        tar->first_without = NULL;
    }
}

static int tar_scan(struct dl2_scan *scan, const struct dl2_shard_input *input,
                    struct dl2_error *error)
{
    DL2_CLEANUP(tar_end_scan) struct tar_scan tar = {.scan = scan, .input = input};
    const size_t before = scan->draft.count;
    DL2_TRY(dl2_tar_walk_open(&tar.walk, &input->source, input->bytes, error));
    DL2_TRY(tar_scan_members(&tar, error));
    if (tar.has_links)
        DL2_TRY(tar_scan_again(&tar, before, error));
    /* Only images, with dots in names such as a.1.jpg: a tree of files, not WebDataset's. */
    if (tar.has_dots && !tar.has_metadata) {
        tar.plain = true;
        DL2_TRY(tar_scan_again(&tar, before, error));
    }
    tar_hand_over(&tar);
    return DL2_OK;
}

/* ---- Reading: what is beside an image */

/* Does a sample's key end with the name of a group of members? What may precede it is a split's
 * folder. */
static bool tar_is_name_of(const char *key, const char *base)
{
    DL2_AUTO_FREE char *name = strdup(base);
    if (!name)
        return false;
    tar_unescape((char *)dl2_path_base(name));
    const size_t length = strlen(name), whole = strlen(key);
    return whole >= length && !strcmp(key + whole - length, name) &&
           (whole == length || key[whole - length - 1] == '/');
}

struct tar_search {
    const struct dl2_shard_place *place;
    const char *extension;
    struct dl2_bytes base;      /* of the group of members that is gone through */
    bool is_samples, is_linked; /* the group is the sample's; what is looked for is a hard link */
    bool found;
    uint64_t offset, size; /* of what was found */
    /* Instead of `extension`, all that is beside the image is looked for. */
    struct tar_found {
        char *extension;
        uint64_t offset, size;
    } * all;
    size_t all_count;
};

static void tar_forget_found(struct tar_search *search)
{
    for (size_t i = 0; i < search->all_count; i++)
        free(search->all[i].extension);
    search->all_count = 0;
}

static void tar_end_search(struct tar_search *search)
{
    tar_forget_found(search);
    free(search->all);
    dl2_bytes_free(&search->base);
}

/* The last member of a name counts. The class is no matter of this list. */
static int tar_note_found(struct tar_search *search, const struct dl2_tar_member *member,
                          const char *extension, struct dl2_error *error)
{
    if (!*extension || *extension == '.' || !strcasecmp(extension, "cls") ||
        !strcasecmp(extension, search->place->extension))
        return DL2_OK;
    size_t i = 0;
    while (i < search->all_count && strcasecmp(search->all[i].extension, extension) != 0)
        i++;
    if (i == search->all_count) {
        if (i == DL2_BESIDE_MAX_ITEMS + 1) /* so many are refused, whatever they are */
            return DL2_OK;
        DL2_TRY(dl2_grow(&search->all, i, sizeof *search->all, error));
        DL2_TRY(dl2_format(&search->all[i].extension, error, "%s", extension));
        search->all_count++;
    }
    search->all[i].offset = member->offset;
    search->all[i].size = member->size;
    return DL2_OK;
}

/* Looks at a member: 1 if it is the first behind the sample's, or there can be none. */
static int tar_search_member(struct tar_search *search, const struct dl2_tar_member *member,
                             struct dl2_error *error)
{
    char *last = (char *)dl2_path_base(member->name), *dot = strchr(last, '.');
    const char *extension = dot ? dot + 1 : "", *key = search->place->key;
    const bool is_link = member->type == '1', is_image = member->offset == search->place->offset;
    char *last_dot = strrchr(last, '.');
    if (is_image && last_dot != dot) { /* in a tree of files, names end at their last dots */
        *last_dot = '\0';
        if (tar_is_name_of(key, member->name))
            return 1;
        *last_dot = '.';
    }
    if (dot)
        *dot = '\0';
    if (!search->base.size || strcmp((const char *)search->base.data, member->name) != 0) {
        if (search->is_samples)
            return 1;
        search->found = search->is_linked = false;
        tar_forget_found(search);
        search->base.size = 0;
        DL2_TRY(dl2_bytes_append(&search->base, member->name, strlen(member->name) + 1, error));
    }
    if (!search->extension) {
        if (!is_link && !is_image)
            DL2_TRY(tar_note_found(search, member, extension, error));
    } else if (!strcasecmp(extension, search->extension)) {
        search->found = true;
        search->is_linked = is_link;
        search->offset = member->offset;
        search->size = member->size;
    }
    search->is_samples |= (is_image || is_link) && tar_is_name_of(key, member->name);
    return 0;
}

/* Goes through the members around the sample's image. */
static int tar_search_run(struct tar_search *search, struct dl2_error *error)
{
    struct dl2_tar_member member;
    int status;
    DL2_CLEANUP(dl2_tar_walk_close) struct dl2_tar_walk walk = {.window = NULL};
    DL2_TRY(dl2_tar_walk_open(&walk, &search->place->source, search->place->shard_bytes, error));
    walk.at = (search->place->start + DL2_TAR_BLOCK - 1) / DL2_TAR_BLOCK * DL2_TAR_BLOCK;
    while ((status = dl2_tar_next(&walk, &member, error)) > 0) {
        tar_tidy(member.name);
        if ((member.type != '1' && !tar_is_file(&member)) || tar_is_hidden(member.name))
            continue;
        status = tar_search_member(search, &member, error);
        if (status)
            break;
    }
    return status < 0 ? status : DL2_OK;
}

static int tar_read_sidecar(const struct dl2_shard_place *place, const char *extension,
                            struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_CLEANUP(tar_end_search) struct tar_search search = {.place = place, .extension = extension};
    DL2_TRY(tar_search_run(&search, error));
    if (!search.is_samples || !search.found)
        return 0;
    if (search.is_linked)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is a hard link, which only an image can be");
    if (search.size > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%" PRIu64 " bytes pass 2 GiB", search.size);
    DL2_TRY(dl2_bytes_resize(out, (size_t)search.size, error));
    DL2_TRY(dl2_tar_read_at(&place->source, search.offset, out->data, out->size, error));
    return 1;
}

static int tar_read_sidecars(const struct dl2_shard_place *place, struct dl2_sidecars *out,
                             struct dl2_error *error)
{
    DL2_CLEANUP(tar_end_search) struct tar_search search = {.place = place};
    DL2_TRY(tar_search_run(&search, error));
    for (size_t i = 0; search.is_samples && i < search.all_count; i++) {
        const struct tar_found *found = &search.all[i];
        struct dl2_sidecar *item;
        DL2_TRY(dl2_sidecars_add(out, found->extension, found->size, &item, error));
        DL2_TRY(dl2_tar_read_at(&place->source, found->offset, item->bytes.data, item->bytes.size,
                                error));
    }
    return DL2_OK;
}

/* classes.txt has a name a line, in the order of the numbers. */
static int tar_read_classes(const struct dl2_bytes *text, char ***out, uint32_t *count,
                            struct dl2_error *error)
{
    const size_t mark = dl2_text_mark(text->data, text->size);
    const char *start = (const char *)text->data + mark;
    size_t lines = 0, size = text->size - mark;
    while (size && strchr("\r\n", start[size - 1])) /* also a zero, which no name has */
        size--;
    for (size_t at = 0; at < size; at++)
        lines += start[at] == '\n' || at + 1 == size;
    if (!lines || lines > UINT32_MAX)
        return 0;
    /* Pointers, then the text with zeros for the ends of lines. */
    char **names = dl2_calloc(1, lines * sizeof *names + size + 1);
    if (!names)
        return dl2_error_memory(error, "a dataset");
    char *at = memcpy(names + lines, start, size), *const last = at + size;
    for (*count = 0; *count < lines; ++*count) {
        char *end = memchr(at, '\n', (size_t)(last - at));
        end = end ? end : last;
        *end = '\0';
        if (end > at && end[-1] == '\r')
            end[-1] = '\0';
        names[*count] = at;
        at = end + 1;
    }
    *out = names;
    return 1;
}

/* ---- Writing */

/*
 * Appends a member's name. A key in WebDataset ends at its first dot, so a dot becomes %2E, and a
 * per cent sign %25, so that this can be undone. Folders keep theirs.
 */
static int tar_name(struct dl2_bytes *name, const char *id, const char *extension,
                    struct dl2_error *error)
{
    const char *base = dl2_path_base(id);
    name->size = 0;
    DL2_TRY(dl2_bytes_append(name, id, (size_t)(base - id), error));
    for (const char *p = base; *p; p++)
        DL2_TRY(*p == '.'   ? dl2_bytes_append(name, "%2E", 3, error)
                : *p == '%' ? dl2_bytes_append(name, "%25", 3, error)
                            : dl2_bytes_append(name, p, 1, error));
    DL2_TRY(dl2_bytes_append(name, ".", 1, error));
    return dl2_bytes_append(name, extension, strlen(extension) + 1, error);
}

static int tar_write_add(struct dl2_shard_output *output, const struct dl2_new_sample *sample,
                         uint64_t *offset, struct dl2_error *error)
{
    struct dl2_bytes *name = &output->scratch;
    DL2_TRY(tar_name(name, sample->id, sample->extension, error));
    DL2_TRY(
        dl2_tar_put_member(output, (const char *)name->data, sample->data, sample->size, error));
    *offset = output->bytes - (sample->size + DL2_TAR_BLOCK - 1) / DL2_TAR_BLOCK * DL2_TAR_BLOCK;
    if (sample->label >= 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", sample->label);
        DL2_TRY(tar_name(name, sample->id, "cls", error));
        DL2_TRY(dl2_tar_put_member(output, (const char *)name->data, text, strlen(text), error));
    }
    for (size_t i = 0; i < sample->sidecars.count; i++) {
        const struct dl2_sidecar *item = &sample->sidecars.items[i];
        DL2_TRY(tar_name(name, sample->id, item->extension, error));
        DL2_TRY(dl2_tar_put_member(output, (const char *)name->data, item->bytes.data,
                                   item->bytes.size, error));
    }
    return DL2_OK;
}

/* Members are told apart by their extensions in any case, and .cls is the class. */
static bool tar_holds_sidecars(const struct dl2_new_sample *sample, const struct dl2_sidecar *item)
{
    if (!strcasecmp(item->extension, "cls") || !strcasecmp(item->extension, sample->extension))
        return false;
    for (size_t i = 0; i < sample->sidecars.count; i++)
        if (!strcasecmp(sample->sidecars.items[i].extension, item->extension))
            return false;
    return true;
}

/* A name a line; no list if a name has a newline of its own, since the index has all names. */
static void tar_write_classes(const char *const *names, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (strpbrk(names[i], "\r\n"))
            return;
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s\n", names[i]);
}

/* ---- The row */

static enum dl2_file_role tar_role(const char *name)
{
    static const char *const others[] = {".tar.zst", ".tar.xz", ".tar.bz2", ".tar.lz4"};
    if (dl2_ends_with(name, ".tar"))
        return DL2_FILE_SHARD;
    if (dl2_ends_with(name, ".tar.gz") || dl2_ends_with(name, ".tgz"))
        return DL2_FILE_COMPRESSED;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (dl2_ends_with(name, others[i]))
            return DL2_FILE_REFUSED;
    return DL2_FILE_OTHER;
}

static const struct dl2_shard_format tar_format = {
    .index_kind = 2,
    .is_alone = true,
    .keys_are_paths = true,
    .has_label_fields = true,
    .shard = {"shard-", ".tar", 6, "shard (.tar)"},
    .classes_name = "classes.txt",
    .refusal = "samples of a compressed tar file cannot be read one by one; decompress it (images "
               "hardly get smaller anyway)",
    .compressed_refusal = "samples of a compressed tar file cannot be read one by one; make plain "
                          "shards with dl2-transcode --copy --container=tar SOURCE DEST, without "
                          "--shuffle",
    .notes = {"samples have a .json beside them and no .cls: labels are read from .cls alone, so "
              "these samples have none; --label-field names a field of .json to read them from",
              "symbolic links in tar files are left out: pack the files themselves (tar "
              "--dereference)"},
    .role = tar_role,
    .scan = tar_scan,
    .read_classes = tar_read_classes,
    .read_sidecar = tar_read_sidecar,
    .read_sidecars = tar_read_sidecars,
    .holds_sidecars = tar_holds_sidecars,
    .write_add = tar_write_add,
    .write_end = dl2_tar_put_end,
    .write_classes = tar_write_classes,
};

const struct dl2_container dl2_container_tar = {
    .name = "tar",
    .extensions = "tar",
    .summary = "WebDataset's tar shards",
    .looks_for = "WebDataset shards *.tar",
    .can_write = true,
    .has_clip_paths = true,
    .leaves_out = "a sample in tar can't have two members of one name, and its .cls is the class",
    .reader = &dl2_packed_reader,
    .shards = &tar_format,
};
