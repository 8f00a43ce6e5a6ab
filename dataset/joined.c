/* SPDX-License-Identifier: BSD-2-Clause */
/* Several open datasets as one: a reader over what theirs have, with keys and classes in common. */
#include "dataset/container.h"

#include "common/quote.h"
#include "common/scope.h"
#include "volumes/volume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    struct dl2_dataset *dataset; /* the caller's */
    char *path;
    char *name;                        /* the first part of its samples' keys */
    size_t first;                      /* image */
    int32_t *labels;                   /* of its classes, in the joined list */
    uint8_t parts[DL2_MAX_PARTS + 1u]; /* of its splits, likewise */
};

struct joined {
    struct dl2_container container; /* with `reader`, which lacks what not all of them have */
    struct dl2_reader reader;
    struct member *members;
    size_t count;
    const char **keys;        /* of all images; of clips NULL: the frames have others */
    struct dl2_bytes strings; /* keys */
};

/* ---- The reader */

static struct joined *joined_of(const struct dl2_dataset *dataset)
{
    return dataset->state;
}

/* Image `*number` of all is the reader's `*number` of this one's. */
static const struct member *find_member(const struct dl2_dataset *dataset, size_t *number)
{
    const struct joined *joined = joined_of(dataset);
    size_t at = joined->count - 1;
    while (joined->members[at].first > *number)
        at--;
    const struct member *member = &joined->members[at];
    *number = dl2_reader_number(member->dataset, *number - member->first);
    return member;
}

static const struct dl2_reader *reader_of(const struct member *member)
{
    return member->dataset->container->reader;
}

static struct dl2_entry joined_describe(const struct dl2_dataset *dataset, size_t number)
{
    const char *const *keys = joined_of(dataset)->keys;
    const char *key = keys ? keys[number] : NULL;
    const struct member *member = find_member(dataset, &number);
    struct dl2_entry entry = dl2_reader_entry(member->dataset, number);
    if (key)
        entry.sample.key = key;
    if (entry.sample.label >= 0)
        entry.sample.label = member->labels[entry.sample.label];
    entry.part = member->parts[entry.part];
    return entry;
}

static int joined_read(const struct dl2_dataset *dataset, size_t number,
                       const struct dl2_slice_range *slices, struct dl2_bytes *out,
                       struct dl2_error *error)
{
    const struct member *member = find_member(dataset, &number);
    return reader_of(member)->read(member->dataset, number, slices, out, error);
}

static int joined_read_sidecar(const struct dl2_dataset *dataset, size_t number,
                               const char *extension, struct dl2_bytes *out,
                               struct dl2_error *error)
{
    const struct member *member = find_member(dataset, &number);
    return reader_of(member)->read_sidecar(member->dataset, number, extension, out, error);
}

static int joined_read_sidecars(const struct dl2_dataset *dataset, size_t number,
                                struct dl2_sidecars *out, struct dl2_error *error)
{
    const struct member *member = find_member(dataset, &number);
    return reader_of(member)->read_sidecars(member->dataset, number, out, error);
}

static uint64_t joined_sidecar_sum(const struct dl2_dataset *dataset, size_t number)
{
    const struct member *member = find_member(dataset, &number);
    const struct dl2_reader *reader = reader_of(member);
    return reader->sidecar_sum ? reader->sidecar_sum(member->dataset, number) : 0;
}

static size_t joined_ignored(const struct dl2_dataset *dataset)
{
    const struct joined *joined = joined_of(dataset);
    size_t ignored = 0;
    for (size_t i = 0; i < joined->count; i++)
        ignored += dl2_dataset_ignored(joined->members[i].dataset);
    return ignored;
}

static bool joined_remote_stats(const struct dl2_dataset *dataset, struct dl2_remote_stats *stats)
{
    const struct joined *joined = joined_of(dataset);
    struct dl2_remote_stats sum = {0}, one;
    bool remote = false;
    for (size_t i = 0; i < joined->count; i++) {
        if (!dl2_dataset_remote_stats(joined->members[i].dataset, &one))
            continue;
        remote = true;
        sum.requests += one.requests;
        sum.retries += one.retries;
        sum.bytes += one.bytes;
        sum.cache_hits += one.cache_hits;
        sum.cache_misses += one.cache_misses;
        sum.cache_bytes += one.cache_bytes;
        sum.cache_damaged += one.cache_damaged;
        sum.cache_lost += one.cache_lost;
        sum.cache_reason = one.cache_reason ? one.cache_reason : sum.cache_reason;
    }
    if (remote)
        *stats = sum;
    return remote;
}

static bool joined_locate(const struct dl2_dataset *dataset, size_t number,
                          const struct dl2_slice_range *slices, struct dl2_location *location)
{
    const struct member *member = find_member(dataset, &number);
    const struct dl2_reader *reader = reader_of(member);
    return reader->locate && reader->locate(member->dataset, number, slices, location);
}

static int joined_verify(const struct dl2_dataset *dataset, size_t number,
                         const struct dl2_slice_range *slices, const uint8_t *data, size_t size,
                         struct dl2_error *error)
{
    const struct member *member = find_member(dataset, &number);
    const struct dl2_reader *reader = reader_of(member);
    return reader->verify ? reader->verify(member->dataset, number, slices, data, size, error)
                          : DL2_OK;
}

static bool joined_cuts(const struct dl2_dataset *dataset, size_t number, struct dl2_cuts *cuts)
{
    const struct member *member = find_member(dataset, &number);
    const struct dl2_reader *reader = reader_of(member);
    return reader->cuts && reader->cuts(member->dataset, number, cuts);
}

static uint32_t joined_table(const struct dl2_dataset *dataset, size_t number)
{
    return (uint32_t)(find_member(dataset, &number) - joined_of(dataset)->members);
}

static int joined_fit(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_server_fit own = *fit;
    const struct member *member = NULL;
    DL2_AUTO_FREE uint32_t *rows = NULL;
    DL2_TRY(DL2_NEW(&rows, fit->count, "rows", error));
    for (size_t i = 0; i < fit->count; i++) {
        size_t number = fit->rows[i];
        const struct member *found = find_member(dataset, &number);
        member = member ? member : found;
        rows[i] = (uint32_t)number;
        if (found != member)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s and %s: one query cannot train on rows of both", member->path,
                                 found->path);
    }
    own.rows = rows;
    return member ? reader_of(member)->fit(member->dataset, &own, out, error)
                  : dl2_error_set(error, DL2_ERR_ARGUMENT, "no rows to train on");
}

static int joined_version(const struct dl2_dataset *dataset, struct dl2_bytes *out,
                          struct dl2_error *error)
{
    const struct joined *joined = joined_of(dataset);
    for (size_t i = 0; i < joined->count; i++) {
        uint64_t fingerprint;
        DL2_TRY(dl2_dataset_fingerprint(joined->members[i].dataset, &fingerprint, error));
        DL2_TRY(dl2_bytes_append(out, &fingerprint, sizeof fingerprint, error));
    }
    return DL2_OK;
}

static void joined_close(struct dl2_dataset *dataset)
{
    struct joined *joined = joined_of(dataset);
    for (size_t i = 0; joined->members && i < joined->count; i++) {
        free(joined->members[i].path);
        free(joined->members[i].name);
        free(joined->members[i].labels);
    }
    free(joined->members);
    free(joined->keys);
    dl2_bytes_free(&joined->strings);
    free(joined);
}

/* Rows of a table are read one by one: samples that come together are of several tables. */
static const struct dl2_reader joined_reader = {
    .close = joined_close,
    .describe = joined_describe,
    .read = joined_read,
    .sidecar_sum = joined_sidecar_sum,
    .ignored = joined_ignored,
    .remote_stats = joined_remote_stats,
    .locate = joined_locate,
    .verify = joined_verify,
    .cuts = joined_cuts,
    .table = joined_table,
    .fit = joined_fit,
};

/* ---- What may be joined */

static const char *const kinds[] = {[DL2_SAMPLE_IMAGE] = "images",
                                    [DL2_SAMPLE_CLIP] = "clips",
                                    [DL2_SAMPLE_VOLUME] = "volumes",
                                    [DL2_SAMPLE_VIDEO] = "videos"};

static int check_kinds(const struct member *a, const struct member *b, struct dl2_error *error)
{
    const enum dl2_sample_kind one = dl2_dataset_kind(a->dataset);
    const enum dl2_sample_kind two = dl2_dataset_kind(b->dataset);
    if (one != two || a->dataset->by_frame != b->dataset->by_frame)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s holds %s, and %s holds %s%s: datasets of one kind go together",
                             a->path, kinds[one], b->path, kinds[two],
                             one == two ? ", whose frames are samples in one of them" : "");
    if (one != DL2_SAMPLE_VOLUME)
        return DL2_OK;
    const unsigned channels = dl2_dataset_volume_channels(a->dataset);
    const unsigned others = dl2_dataset_volume_channels(b->dataset);
    return channels == others
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "volumes of %s have %u channels, and those of %s %u: a network sees "
                               "as many of each",
                               a->path, channels, b->path, others);
}

/* Are all classes plain numbers? */
static bool has_numbers(const struct dl2_dataset *dataset)
{
    bool numbers = true;
    for (unsigned i = 0; numbers && i < dataset->class_count; i++)
        numbers = !dataset->classes[i][strspn(dataset->classes[i], "0123456789")];
    return numbers;
}

static int check_classes(const struct member *a, const struct member *b, struct dl2_error *error)
{
    const struct member *without = a->dataset->class_count ? b : a, *with = without == a ? b : a;
    if (!without->dataset->class_count != !with->dataset->class_count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s has classes, and %s has none: its samples would have no label",
                             with->path, without->path);
    const struct member *numbers = has_numbers(a->dataset) ? a : b;
    const struct member *names = numbers == a ? b : a;
    if (a->dataset->class_count && has_numbers(a->dataset) != has_numbers(b->dataset))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the classes of %s have names, such as '%s', and those of %s are "
                             "numbers: classes are joined by name, and no name says which number "
                             "is which; give both the same names",
                             names->path, names->dataset->classes[0], numbers->path);
    return DL2_OK;
}

/* The same samples, written at the same times: one dataset, or a copy of it. */
static int check_twice(const struct member *a, const struct member *b, struct dl2_error *error)
{
    uint64_t one[2], two[2];
    dl2_dataset_hash(a->dataset, &one[0], &one[1]);
    dl2_dataset_hash(b->dataset, &two[0], &two[1]);
    return a->dataset != b->dataset && (one[0] != two[0] || one[1] != two[1])
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s and %s are the same dataset: name it once, and let a larger "
                               "share of an epoch be of it",
                               a->path, b->path);
}

static int check_members(const struct joined *joined, struct dl2_error *error)
{
    for (size_t i = 0; joined->count > 1 && i < joined->count; i++) {
        const struct member *member = &joined->members[i];
        DL2_TRY(dl2_classes_check_names(member->path, (const char *const *)member->dataset->classes,
                                        member->dataset->class_count, error));
    }
    for (size_t i = 1; i < joined->count; i++) {
        const struct member *member = &joined->members[i];
        DL2_TRY(check_kinds(joined->members, member, error));
        DL2_TRY(check_classes(joined->members, member, error));
        for (size_t k = 0; k < i; k++)
            DL2_TRY(check_twice(&joined->members[k], member, error));
    }
    return DL2_OK;
}

/* ---- Classes and splits */

/* A class of a member. */
struct row {
    const char *name;
    size_t number; /* among all rows */
};

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    const int order = strcmp(a->name, b->name);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* Gives every row the label of the first row of its name. */
static unsigned number_rows(struct row *rows, size_t count, int32_t *labels, const char **names)
{
    unsigned classes = 0;
    qsort(rows, count, sizeof *rows, compare_rows);
    for (size_t i = 0, first = 0; i < count; i++) { /* -2 - first: as that row */
        first = i && !strcmp(rows[i].name, rows[i - 1].name) ? first : i;
        labels[rows[i].number] = first == i ? -1 : -2 - (int32_t)rows[first].number;
        names[rows[i].number] = rows[i].name;
    }
    for (size_t i = 0; i < count; i++) /* the first comes before the others */
        if (labels[i] == -1) {
            names[classes] = names[i];
            labels[i] = (int32_t)classes++;
        } else {
            labels[i] = labels[-2 - labels[i]];
        }
    return classes;
}

static int join_classes(struct dl2_dataset *dataset, struct dl2_error *error)
{
    struct joined *joined = joined_of(dataset);
    DL2_AUTO_FREE struct row *rows = NULL;
    DL2_AUTO_FREE int32_t *labels = NULL;
    DL2_AUTO_FREE const char **names = NULL;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < joined->count; i++)
        count += joined->members[i].dataset->class_count;
    DL2_TRY(DL2_NEW(&rows, count + 1, "classes", error));
    DL2_TRY(DL2_NEW(&labels, count + 1, "classes", error));
    DL2_TRY(DL2_NEW(&names, count + 1, "classes", error));
    for (size_t i = 0; i < joined->count; i++)
        for (unsigned c = 0; c < joined->members[i].dataset->class_count; c++, at++)
            rows[at] = (struct row){joined->members[i].dataset->classes[c], at};
    DL2_TRY(dl2_reader_set_classes(dataset, names, number_rows(rows, count, labels, names), error));
    const int32_t *from = labels;
    for (size_t i = 0; i < joined->count; i++) {
        struct member *member = &joined->members[i];
        const unsigned own = member->dataset->class_count;
        DL2_TRY(DL2_NEW(&member->labels, own + 1u, "classes", error));
        memcpy(member->labels, from, own * sizeof *from);
        from += own;
    }
    return DL2_OK;
}

static int join_parts(struct dl2_dataset *dataset, struct member *member, struct dl2_error *error)
{
    const struct dl2_part_list *list = &member->dataset->parts;
    for (unsigned part = 0; part < DL2_PARTS; part++)
        member->parts[part] = (uint8_t)part;
    for (unsigned i = 0; i < list->count; i++)
        DL2_TRY(dl2_part_add(&dataset->parts, list->names[i], strlen(list->names[i]),
                             &member->parts[DL2_PARTS + i], error));
    dataset->has_parts |= member->dataset->has_parts;
    return DL2_OK;
}

/* ---- Keys and clips */

static const char *key_of_image(const struct dl2_dataset *dataset, size_t image)
{
    const size_t number = dl2_reader_number(dataset, image);
    return dataset->clips ? dl2_frame_key(dataset, number)
                          : dl2_reader_entry(dataset, number).sample.key;
}

static const char *key_of_clip(const struct dl2_dataset *dataset, size_t clip)
{
    return dl2_clip_key(dataset, &dataset->clips[clip]);
}

/* Writes "NAME/KEY" for each image, or each clip, of a member. */
static char *print_keys(const struct member *member, bool clips, const char **keys, char *to)
{
    const size_t count = clips ? member->dataset->clip_count : member->dataset->count;
    for (size_t i = 0; i < count; i++) {
        keys[i] = to;
        to += sprintf(to, "%s/%s", member->name,
                      clips ? key_of_clip(member->dataset, i) : key_of_image(member->dataset, i)) +
              1;
    }
    return to;
}

static size_t size_of_keys(const struct member *member)
{
    const struct dl2_dataset *dataset = member->dataset;
    const size_t more = strlen(member->name) + 2;
    size_t size = 0;
    for (size_t i = 0; i < dataset->count; i++)
        size += more + strlen(key_of_image(dataset, i));
    for (size_t i = 0; i < dataset->clip_count; i++)
        size += more + strlen(key_of_clip(dataset, i));
    return size;
}

/* All clips of all members, whose frames are images of all. */
static int join_clips(struct dl2_dataset *dataset, const char **clip_keys, struct dl2_error *error)
{
    struct joined *joined = joined_of(dataset);
    DL2_TRY(DL2_NEW(&dataset->clips, dataset->clip_count, "clips", error));
    dataset->by_frame = joined->members[0].dataset->by_frame;
    dataset->least_frames = UINT32_MAX;
    struct dl2_clip *clip = dataset->clips;
    for (size_t i = 0; i < joined->count; i++) {
        const struct dl2_dataset *from = joined->members[i].dataset;
        for (size_t k = 0; k < from->clip_count; k++, clip++)
            *clip = (struct dl2_clip){joined->members[i].first + from->clips[k].first,
                                      from->clips[k].count, (uint32_t)(clip - dataset->clips)};
        if (from->least_frames < dataset->least_frames)
            dataset->least_frames = from->least_frames;
        if (from->most_frames > dataset->most_frames)
            dataset->most_frames = from->most_frames;
    }
    const int status = dl2_clips_set_keys(dataset, clip_keys, joined->keys, error);
    joined->keys = NULL; /* of frames, and no longer ours */
    return status;
}

static int join_keys(struct dl2_dataset *dataset, struct dl2_error *error)
{
    struct joined *joined = joined_of(dataset);
    const char **clip_keys = NULL;
    size_t size = 0, image = 0, clip = 0;
    for (size_t i = 0; i < joined->count; i++) {
        size += size_of_keys(&joined->members[i]);
        dataset->clip_count += joined->members[i].dataset->clip_count;
    }
    DL2_TRY(dl2_bytes_resize(&joined->strings, size, error));
    DL2_TRY(DL2_NEW(&joined->keys, dataset->count, "keys", error));
    if (dataset->clip_count)
        DL2_TRY(DL2_NEW(&clip_keys, dataset->clip_count, "keys", error));
    char *to = (char *)joined->strings.data;
    for (size_t i = 0; i < joined->count; i++) {
        const struct member *member = &joined->members[i];
        to = print_keys(member, false, joined->keys + image, to);
        if (clip_keys)
            to = print_keys(member, true, clip_keys + clip, to);
        image += member->dataset->count;
        clip += member->dataset->clip_count;
    }
    return clip_keys ? join_clips(dataset, clip_keys, error) : DL2_OK;
}

/* ---- Messages */

static int tell(struct dl2_dataset *dataset, char *text, struct dl2_error *error)
{
    return dl2_list_append(&dataset->messages, &dataset->message_count, text, error);
}

/* Names the classes that a member adds, from number `known` on. */
static int tell_added(struct dl2_dataset *dataset, const struct member *member, unsigned known,
                      unsigned count, struct dl2_error *error)
{
    enum { SHOWN = 5 };
    char list[512] = "", *text;
    for (unsigned i = known; i < count && i < known + SHOWN; i++)
        dl2_list_name(list, sizeof list, dataset->classes[i]);
    DL2_TRY(dl2_format(&text, error, "%s adds %u class%s, from number %u on: %s%s", member->path,
                       count - known, count - known == 1 ? "" : "es", known, list,
                       count - known > SHOWN ? ", ..." : ""));
    return tell(dataset, text, error);
}

/* Says which classes those behind the first dataset add. */
static int tell_classes(struct dl2_dataset *dataset, struct dl2_error *error)
{
    const struct joined *joined = joined_of(dataset);
    unsigned known = 0;
    for (size_t i = 0; i < joined->count; i++) {
        const struct member *member = &joined->members[i];
        const unsigned before = known;
        for (unsigned c = 0; c < member->dataset->class_count; c++)
            known = (unsigned)member->labels[c] < known ? known : (unsigned)member->labels[c] + 1;
        if (i && known > before)
            DL2_TRY(tell_added(dataset, member, before, known, error));
    }
    return DL2_OK;
}

static int tell_layout(struct dl2_dataset *dataset, struct dl2_error *error)
{
    const struct joined *joined = joined_of(dataset);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "a dataset");
    fprintf(out, "%zu %s in %u class%s", dl2_dataset_count(dataset),
            kinds[dl2_dataset_kind(dataset)], dataset->class_count,
            dataset->class_count == 1 ? "" : "es");
    for (size_t i = 0; i < joined->count; i++)
        fprintf(out, "%s%zu of %s", i ? ", " : ": ", dl2_dataset_count(joined->members[i].dataset),
                joined->members[i].path);
    if (fclose(out) != 0) {
        free(text);
        return dl2_error_memory(error, "a dataset");
    }
    return tell(dataset, text, error);
}

/* ---- The whole */

/* Names that messages and keys have: of several that are equal, the later get a number. */
static int name_member(struct joined *joined, size_t number, const char *path,
                       struct dl2_error *error)
{
    struct member *member = &joined->members[number];
    DL2_AUTO_FREE char *name = dl2_dataset_variant_name(path);
    DL2_TRY(dl2_format(&member->path, error, "%s", path));
    if (!name)
        return dl2_error_memory(error, "a dataset");
    for (unsigned copy = 1;; copy++) {
        free(member->name);
        DL2_TRY(copy > 1 ? dl2_format(&member->name, error, "%s-%u", name, copy)
                         : dl2_format(&member->name, error, "%s", name));
        size_t other = 0;
        while (other < number && strcmp(joined->members[other].name, member->name) != 0)
            other++;
        if (other == number)
            return DL2_OK;
    }
}

static int add_member(struct dl2_dataset *dataset, size_t number, struct dl2_dataset *from,
                      const char *path, struct dl2_error *error)
{
    struct joined *joined = joined_of(dataset);
    struct member *member = &joined->members[number];
    member->dataset = from;
    member->first = dataset->count;
    joined->count = number + 1;
    DL2_TRY(name_member(joined, number, path, error));
    DL2_TRY(join_parts(dataset, member, error));
    dataset->count += from->count;
    dataset->missing += from->missing;
    dataset->is_incomplete |= from->is_incomplete;
    dataset->is_in_order |= from->is_in_order;
    dataset->label_folders |= from->label_folders;
    if (reader_of(member)->version)
        joined->reader.version = joined_version;
    if (!reader_of(member)->fit)
        joined->reader.fit = NULL;
    if (reader_of(member)->read_sidecar)
        return DL2_OK;
    joined->reader.read_sidecar = NULL;
    joined->reader.read_sidecars = NULL;
    joined->container.name = from->container->name; /* for errors that say so */
    return DL2_OK;
}

static int join(struct dl2_dataset *dataset, struct dl2_dataset *const *members,
                const char *const *paths, size_t count, struct dl2_error *error)
{
    struct joined *joined = joined_of(dataset);
    bool has_names = false;
    DL2_TRY(DL2_NEW(&joined->members, count, "a dataset", error));
    for (size_t i = 0; i < count; i++) {
        DL2_TRY(add_member(dataset, i, members[i], paths[i], error));
        has_names |= members[i]->names != NULL;
    }
    if (dataset->count > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%zu images in %zu datasets pass the limit of "
                             "2^32",
                             dataset->count, count);
    dataset->volumes = members[0]->volumes;
    dataset->videos = members[0]->videos;
    dataset->decode_slice = members[0]->decode_slice;
    dataset->all_images = dataset->count;
    DL2_TRY(check_members(joined, error));
    DL2_TRY(join_keys(dataset, error));
    if (has_names) {
        DL2_TRY(DL2_NEW(&dataset->names, dataset->count, "a dataset", error));
        dataset->name_count = dataset->count;
    }
    DL2_TRY(join_classes(dataset, error));
    dataset->tables = joined->reader.fit ? (unsigned)count : 0; /* all are tables */
    DL2_TRY(dl2_choose_partitions(dataset, error));
    DL2_TRY(tell_layout(dataset, error));
    return tell_classes(dataset, error);
}

int dl2_dataset_join(struct dl2_dataset *const *members, const char *const *paths, size_t count,
                     struct dl2_dataset **out, struct dl2_error *error)
{
    *out = NULL;
    if (!count || count > DL2_DATASETS_MAX)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%zu datasets cannot be joined, but 1 to %d",
                             count, DL2_DATASETS_MAX);
    struct dl2_dataset *dataset;
    struct joined *joined = NULL;
    DL2_TRY(DL2_NEW(&dataset, 1, "a dataset", error));
    int status = DL2_NEW(&joined, 1, "a dataset", error);
    if (status == DL2_OK) {
        joined->reader = joined_reader;
        joined->reader.read_sidecar = joined_read_sidecar;
        joined->reader.read_sidecars = joined_read_sidecars;
        joined->container =
            (struct dl2_container){.name = "several", .looks_for = "", .reader = &joined->reader};
        dataset->container = &joined->container;
        dataset->state = joined;
        dataset->members = count;
        status = join(dataset, members, paths, count, error);
    }
    if (status < 0)
        dl2_dataset_close(dataset);
    else
        *out = dataset;
    return status;
}

size_t dl2_dataset_members(const struct dl2_dataset *dataset)
{
    return dataset->members ? dataset->members : 1;
}

size_t dl2_dataset_member_of(const struct dl2_dataset *dataset, size_t index)
{
    size_t number = dl2_reader_number(dataset, dl2_dataset_frames(dataset, index).first);
    return dataset->members ? (size_t)(find_member(dataset, &number) - joined_of(dataset)->members)
                            : 0;
}

const char *dl2_dataset_member_path(const struct dl2_dataset *dataset, size_t member)
{
    return member < dataset->members ? joined_of(dataset)->members[member].path : NULL;
}

/* ---- Of several paths ---- */

/* Puts "BEFORE, NEXT" in the place of *text, NULL before the first. */
static int add_text(char **text, const char *between, const char *next, struct dl2_error *error)
{
    char *longer;
    DL2_TRY(dl2_format(&longer, error, "%s%s%s", *text ? *text : "", *text ? between : "", next));
    free(*text);
    *text = longer;
    return DL2_OK;
}

int dl2_dataset_union_open(const char *const *paths, size_t count,
                           int (*open)(void *context, const char *path, struct dl2_dataset **out,
                                       struct dl2_error *error),
                           void *context, struct dl2_dataset_union *out, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&out->members, count, "datasets", error));
    for (; out->count < count; out->count++) {
        DL2_AUTO_FREE char *name = dl2_dataset_variant_name(paths[out->count]);
        if (!name)
            return dl2_error_memory(error, "datasets");
        DL2_TRY(add_text(&out->name, "+", name, error));
        DL2_TRY(add_text(&out->path, ", ", paths[out->count], error));
        DL2_TRY(open(context, paths[out->count], &out->members[out->count], error));
    }
    if (count > 1)
        return dl2_dataset_join(out->members, paths, count, &out->dataset, error);
    out->dataset = out->members[0];
    return DL2_OK;
}

void dl2_dataset_union_close(struct dl2_dataset_union *all)
{
    if (all->count > 1)
        dl2_dataset_close(all->dataset);
    for (size_t i = 0; i < all->count; i++)
        dl2_dataset_close(all->members[i]);
    free(all->members);
    free(all->path);
    free(all->name);
    *all = (struct dl2_dataset_union){0};
}
