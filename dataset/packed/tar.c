/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tar files, read and written as WebDataset does: consecutive members with the same name up to the
 * first dot of its last part are one sample. tar_members.h reads and writes the members.
 */
#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/packed.h"
#include "dataset/packed/tar_members.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

_Static_assert((int)DL2_LABEL_BYTES <= (int)DL2_TAR_LOOK, "a label is looked at whole");

/* ---- Reading: samples */

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

static const char *tar_last_part(const char *extension)
{
    const char *dot = strrchr(extension, '.');
    return dot ? dot + 1 : extension;
}

static int tar_compare_words(const void *word, const void *known)
{
    return strcasecmp(word, *(const char *const *)known);
}

/* Is it the extension of what stands beside the image in a sample? */
static bool tar_is_metadata(const char *extension)
{
    static const char *const known[] = {"cbor", "class", "cls",        "cls2",  "count", "csv",
                                        "flac", "html",  "id",         "index", "info",  "inx",
                                        "jsn",  "json",  "jsonl",      "m4a",   "md",    "mp",
                                        "mp3",  "msg",   "npy",        "npz",   "ogg",   "pickle",
                                        "pkl",  "pt",    "pth",        "pyd",   "pyx",   "tb",
                                        "ten",  "text",  "transcript", "tsv",   "txt",   "wav",
                                        "xml",  "yaml",  "yml"}; /* sorted */
    return bsearch(tar_last_part(extension), known, sizeof known / sizeof *known, sizeof *known,
                   tar_compare_words);
}

/* Is it the extension of a mask: mask.png, 1.seg.png? Folders have these beside images, too. */
static bool tar_is_mask(const char *extension)
{
    const char *last = tar_last_part(extension), *mark = last;
    while (mark > extension && (mark == last || mark[-1] != '.'))
        mark--;
    return !strncasecmp(mark, "mask.", strlen("mask.")) ||
           !strncasecmp(mark, "seg.", strlen("seg."));
}

/* Is it the extension of a label by another name than KEY.cls: output.cls, class? */
static bool tar_is_other_label(const char *extension)
{
    const char *last = tar_last_part(extension);
    return !strcasecmp(last, "class") || (last != extension && !strcasecmp(last, "cls"));
}

/* How well a member suits as its sample's image: the first of the least rank is. Where extensions
 * are asked for, these are the numbers of the list. */
enum { RANK_PLAIN, RANK_DOTTED, RANK_NONE = 1 << 20 };

/* The sample that is being put together. */
struct tar_group {
    struct dl2_bytes base;           /* the name up to the dot; then the first extension */
    struct dl2_bytes key, extension; /* of the image */
    bool any, has_label, has_json;
    size_t rank; /* of the image; RANK_NONE: it has none so far */
    size_t members;
    struct tar_others {
        size_t count;
        struct dl2_bytes first; /* the extension */
    } other_labels, other_images;
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
    struct dl2_findings found;
    struct dl2_bytes imageless; /* texts: the names of samples without an image */
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
    dl2_path_tidy(member->link);
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
    DL2_AUTO_FREE char *text = NULL;
    if (!tar->found.of[DL2_FOUND_UNLABELED].count)
        DL2_TRY(dl2_format(&text, error, "%s: %s", (const char *)tar->group.base.data, reason));
    return dl2_scan_find(tar->scan, &tar->found, DL2_FOUND_UNLABELED, 1, text, error);
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

/* Counts members of the sample, whose first has this extension. */
static int tar_find(struct tar_scan *tar, enum dl2_finding kind, size_t count,
                    const char *extension, struct dl2_error *error)
{
    DL2_AUTO_FREE char *name = NULL;
    if (!count)
        return DL2_OK;
    if (!tar->found.of[kind].count)
        DL2_TRY(dl2_format(&name, error, "%s%s%s", (const char *)tar->group.base.data,
                           *extension ? "." : "", extension));
    return dl2_scan_find(tar->scan, &tar->found, kind, count, name, error);
}

/* Keeps the name of a sample without an image, as a key has it. */
static int tar_note_imageless(struct tar_scan *tar, struct dl2_error *error)
{
    const char *base = (const char *)tar->group.base.data;
    const size_t size = strlen(base) + 1;
    DL2_TRY(tar_find(tar, DL2_FOUND_NO_IMAGE, tar->group.members, base + size, error));
    DL2_TRY(dl2_bytes_append(&tar->imageless, base, size, error));
    tar_unescape((char *)dl2_path_base((char *)tar->imageless.data + tar->imageless.size - size));
    return DL2_OK;
}

/* Sets *label to what the shard has for the sample, or to NULL. */
static int tar_choose_label(struct tar_scan *tar, const char **label, struct dl2_error *error)
{
    const struct tar_group *group = &tar->group;
    *label = NULL;
    if (tar->scan->draft.label_field)
        return tar_find_label(tar, label, error);
    if (group->has_label)
        return tar_name_label(tar, label, error);
    if (group->has_json)
        DL2_TRY(tar_find(tar, DL2_FOUND_JSON, 1, "json", error));
    return tar_find(tar, DL2_FOUND_LABEL, group->other_labels.count,
                    (const char *)group->other_labels.first.data, error);
}

static int tar_end_group(struct tar_scan *tar, struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    const char *base = (const char *)group->base.data, *label;
    if (!group->any)
        return DL2_OK;
    group->any = false;
    if (group->rank == RANK_NONE)
        return tar_note_imageless(tar, error);
    tar->has_dots |= !tar->scan->draft.image_extension && group->rank == RANK_DOTTED;
    DL2_TRY(tar_choose_label(tar, &label, error));
    DL2_TRY(tar_find(tar, DL2_FOUND_IMAGE, group->other_images.count,
                     (const char *)group->other_images.first.data, error));
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

static int tar_begin_group(struct tar_scan *tar, const char *name, const char *extension,
                           struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    DL2_TRY(tar_end_group(tar, error));
    group->base.size = 0;
    DL2_TRY(dl2_bytes_append(&group->base, name, strlen(name) + 1, error));
    DL2_TRY(dl2_bytes_append(&group->base, extension, strlen(extension) + 1, error));
    group->any = true;
    group->has_label = group->has_json = false;
    group->rank = RANK_NONE;
    group->members = group->other_labels.count = group->other_images.count = 0;
    return DL2_OK;
}

static int tar_add_other(struct tar_others *others, const char *extension, struct dl2_error *error)
{
    if (others->count++)
        return DL2_OK;
    others->first.size = 0;
    return dl2_bytes_append(&others->first, extension, strlen(extension) + 1, error);
}

static int tar_add_metadata(struct tar_scan *tar, const struct dl2_tar_member *member,
                            const char *extension, struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    tar->has_metadata = true;
    if (tar_is_other_label(extension))
        return tar_add_other(&group->other_labels, extension, error);
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

/* The number of an extension in a list with commas. */
static size_t tar_rank_in(const char *list, const char *extension)
{
    const size_t length = strlen(extension);
    for (size_t number = 0; *list; number++) {
        const size_t item = strcspn(list, ",");
        if (item == length && !strncasecmp(list, extension, item))
            return number;
        list += item + (list[item] == ',');
    }
    return RANK_NONE;
}

/* In a tree of files the name has all but the last extension. */
static size_t tar_rank(const struct tar_scan *tar, const char *name, const char *extension)
{
    if (tar->scan->draft.image_extension)
        return tar_rank_in(tar->scan->draft.image_extension, extension);
    if (tar->plain)
        return dl2_dataset_mask_stem(name) ? RANK_NONE : RANK_PLAIN;
    return tar_is_metadata(extension) || tar_is_mask(extension) ? RANK_NONE
           : strchr(extension, '.')                             ? RANK_DOTTED
                                                                : RANK_PLAIN;
}

/* Takes a member for the sample's image unless there is one that suits as well. */
static int tar_add_image(struct tar_scan *tar, const struct dl2_tar_member *member,
                         const char *extension, size_t rank, struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    const char *there = group->rank == RANK_NONE ? NULL : (const char *)group->extension.data;
    if (there && !strcmp(there, extension))
        return tar_comes_twice(member->name, extension, error);
    if (there && !tar->scan->draft.image_extension)
        DL2_TRY(tar_add_other(&group->other_images, rank < group->rank ? there : extension, error));
    if (rank >= group->rank)
        return DL2_OK;
    if (member->size > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %" PRIu64 " bytes pass 2 GiB", member->name,
                             member->size);
    group->rank = rank;
    group->offset = member->offset;
    group->bytes = (uint32_t)member->size;
    group->extension.size = 0;
    return dl2_bytes_append(&group->extension, extension, strlen(extension) + 1, error);
}

static int tar_add_member(struct tar_scan *tar, const struct dl2_tar_member *member,
                          struct dl2_error *error)
{
    struct tar_group *group = &tar->group;
    const char *last = dl2_path_base(member->name);
    char *dot = (char *)(tar->plain ? strrchr(last, '.') : strchr(last, '.'));
    const char *extension = dot ? dot + 1 : "";
    if (dot)
        *dot = '\0';
    /* In a tree, of two files of one name each is a sample, which the index refuses. */
    if (!group->any || tar->plain || strcmp((const char *)group->base.data, member->name) != 0)
        DL2_TRY(tar_begin_group(tar, member->name, extension, error));
    group->members++;
    const size_t rank = tar_rank(tar, member->name, extension);
    return rank != RANK_NONE ? tar_add_image(tar, member, extension, rank, error)
           : !tar->plain && tar_is_metadata(extension)
               ? tar_add_metadata(tar, member, extension, error)
               : DL2_OK;
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
        dl2_path_tidy(member.name);
        if (member.type == 'S')
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "%s is a sparse file: pack it again without tar's --sparse",
                                 member.name);
        if (member.type == '2' && !tar_is_hidden(member.name))
            DL2_TRY(dl2_scan_find(tar->scan, &tar->found, DL2_FOUND_LINK, 1, member.name, error));
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
    dl2_findings_free(&tar->found);
    tar->imageless.size = 0;
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
    dl2_bytes_free(&tar->group.other_labels.first);
    dl2_bytes_free(&tar->group.other_images.first);
    dl2_bytes_free(&tar->imageless);
    dl2_bytes_free(&tar->json);
    dl2_findings_free(&tar->found);
}

/*
 * Refuses a shard in which the members of a sample lie apart: some with its image, and some without
 * one. What lies beside an image is looked for around it, and labels would go unread.
 */
static int tar_refuse_apart(const struct tar_scan *tar, size_t before, struct dl2_error *error)
{
    const struct dl2_index_draft *draft = &tar->scan->draft;
    const char *const names = (const char *)tar->imageless.data;
    const size_t start = strlen(tar->input->key_start);
    size_t count = 0;
    for (size_t at = 0; at < tar->imageless.size; at += strlen(names + at) + 1)
        count++;
    DL2_AUTO_FREE const char **sorted = NULL;
    DL2_TRY(DL2_NEW(&sorted, count, "a dataset", error));
    for (size_t at = 0, i = 0; i < count; at += strlen(names + at) + 1)
        sorted[i++] = names + at;
    qsort(sorted, count, sizeof *sorted, dl2_compare_texts);
    for (size_t i = before; count && i < draft->count; i++) {
        const char *key = dl2_index_draft_key(draft, i) + start;
        if (bsearch(&key, sorted, count, sizeof *sorted, dl2_compare_texts))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "sample \"%s\" lies apart: other members stand between its image "
                                 "and what belongs to it; pack its members next to each other "
                                 "(tar --sort=name)",
                                 key);
    }
    return DL2_OK;
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
    DL2_TRY(tar_refuse_apart(&tar, before, error));
    dl2_scan_add_findings(scan, &tar.found);
    return DL2_OK;
}

/* ---- Reading: what is beside an image */

/* Does the sample's key end with the name of a group of members? What may precede it is a split's
 * folder and, in the last part, the shard's name. */
static bool tar_is_name_of(const struct dl2_shard_place *place, const char *base)
{
    DL2_AUTO_FREE char *name = strdup(base);
    if (!name)
        return false;
    const char *last = dl2_path_base(place->key), *own = dl2_path_base(name);
    const size_t before = (size_t)(last - place->key), folders = (size_t)(own - name);
    tar_unescape((char *)own);
    return !strcmp(last + place->key_prefix, own) && before >= folders &&
           !memcmp(last - folders, name, folders) &&
           (before == folders || last[-1 - (ptrdiff_t)folders] == '/');
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
    const char *extension = dot ? dot + 1 : "";
    const bool is_link = member->type == '1', is_image = member->offset == search->place->offset;
    char *last_dot = strrchr(last, '.');
    if (is_image && last_dot != dot) { /* in a tree of files, names end at their last dots */
        *last_dot = '\0';
        if (tar_is_name_of(search->place, member->name))
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
    search->is_samples |= (is_image || is_link) && tar_is_name_of(search->place, member->name);
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
        dl2_path_tidy(member.name);
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
    .keys_are_shards = true,
    .has_members = true,
    .shard = {"shard-", ".tar", 6, "shard (.tar)"},
    .classes_name = "classes.txt",
    .refusal = "samples of a compressed tar file cannot be read one by one; decompress it (images "
               "hardly get smaller anyway)",
    .compressed_refusal = "samples of a compressed tar file cannot be read one by one; make plain "
                          "shards with dl2-transcode copy --container=tar SOURCE DEST, without "
                          "--shuffle",
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
