/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing packed datasets. What is special to a format stands in its struct dl2_shard_format. */
#include "dataset/write/writer.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/packed/packed.h"
#include "dataset/postgresql/database_uri.h"
#include "dataset/write/variant_facts.h"
#include "dataset/write/write_place.h"
#include "remote/address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define DEFAULT_SHARD_BYTES ((uint64_t)256 << 20)

enum { BUFFER_BYTES = 1 << 20 };

/* The shards of one folder: the root, or the folder of a split in it. */
struct group {
    char *folder; /* "", "train/", "validation/"... */
    struct dl2_shard_output output;
    uint32_t shard;         /* its number in the draft */
    uint32_t number;        /* of shards before it in this group */
    uint64_t images, added; /* with options.shards: that it will hold, and that it holds */
};

struct dl2_writer {
    const struct dl2_shard_format *format; /* NULL: the sink writes */
    const struct dl2_sink *sink;
    void *sink_state;
    const char *line; /* what the sink keeps of the next sample, and of all; NULL: nothing */
    const json_t *summary;
    const char *origin;
    struct dl2_writer_options options;
    const struct dl2_dataset *source; /* with options.shards; else NULL */
    struct dl2_write_place place;     /* unless the sink writes */
    struct dl2_index_draft draft;
    struct group *groups;
    size_t group_count;
    struct dl2_slicing slicing; /* of the last sample that was cut */
    char *(*renames)[2];        /* temporary name, final name */
    size_t rename_count;
    struct dl2_left_out left_out; /* of what samples had beside their images */
    bool finished;
};

/* ---- The beginning */

int dl2_writer_check_place(const char *path, struct dl2_error *error)
{
    if (dl2_dataset_is_database(path))
        return dl2_database_uri_check_writing(path, error);
    if (!dl2_is_address(path))
        return DL2_OK;
    DL2_CLEANUP(dl2_address_free) struct dl2_address address = {.is_s3 = false};
    DL2_TRY(dl2_address_parse(path, &address, error));
    return address.is_s3
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: http:// and https:// can only be read; write to a folder, or "
                               "to s3://BUCKET/PREFIX",
                               path);
}

int dl2_writer_open(const char *path, const struct dl2_writer_options *options,
                    const char *const *classes, unsigned class_count, struct dl2_writer **out,
                    struct dl2_error *error)
{
    *out = NULL;
    const char *name = options->container ? options->container : "";
    const struct dl2_container *container = dl2_container_find(name);
    if (!container || (!container->shards && !container->sink))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: '%s' is no packed container", path,
                             name);
    struct dl2_writer *writer;
    DL2_TRY(DL2_NEW(&writer, 1, "a dataset", error));
    writer->format = container->shards;
    writer->sink = container->sink;
    writer->options = *options;
    if (!options->shard_bytes)
        writer->options.shard_bytes = DEFAULT_SHARD_BYTES;
    if (!options->shard_samples && writer->format)
        writer->options.shard_samples = writer->format->max_samples;
    writer->draft.container = container;
    writer->draft.has_parts = options->has_parts;
    writer->draft.is_own = true;
    int status = dl2_writer_check_place(path, error);
    if (status == DL2_OK)
        status = writer->sink
                     ? writer->sink->open(path, classes, class_count, &writer->sink_state, error)
                     : dl2_write_place_open(path, &writer->place, error);
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

int dl2_writer_open_like(const char *path, const struct dl2_writer_options *options,
                         const struct dl2_dataset *source, struct dl2_writer **out,
                         struct dl2_error *error)
{
    struct dl2_writer_options own = *options;
    own.has_parts = source->has_parts;
    if (options->shards && dl2_dataset_kind(source) != DL2_SAMPLE_IMAGE)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: a given number of shards is for images; clips are divided by the "
                             "shards' sizes",
                             path);
    DL2_TRY(dl2_writer_open(path, &own, (const char *const *)source->classes, source->class_count,
                            out, error));
    uint8_t part;
    int status = DL2_OK;
    (*out)->source = options->shards ? source : NULL;
    /* What is beside images comes along, so the labels can be read there again. */
    const struct dl2_member_choice members = {source->label_field, NULL};
    if ((*out)->format && (*out)->format->has_members)
        status = dl2_index_draft_set_members(&(*out)->draft, &members, error);
    for (unsigned i = 0; status == DL2_OK && i < source->parts.count; i++)
        status = dl2_part_add(&(*out)->draft.parts, source->parts.names[i],
                              strlen(source->parts.names[i]), &part, error);
    if (status < 0) {
        dl2_writer_close(*out);
        *out = NULL;
    }
    return status;
}

int dl2_writer_describe(const struct dl2_writer_options *options, json_t *described,
                        struct dl2_error *error)
{
    int bad = 0;
    if (options->shards)
        bad = json_object_set_new(described, "shards", json_integer(options->shards));
    else if (options->shard_bytes && options->shard_bytes != DEFAULT_SHARD_BYTES)
        bad = json_object_set_new(described, "shard_bytes",
                                  json_integer((json_int_t)options->shard_bytes));
    return bad ? dl2_error_memory(error, "shards") : DL2_OK;
}

int dl2_writer_reserve(const char *path, const struct dl2_writer_options *options,
                       const struct dl2_dataset *source, struct dl2_error *error)
{
    struct dl2_writer *writer;
    DL2_TRY(dl2_writer_open_like(path, options, source, &writer, error));
    writer->finished = true; /* its mark stays */
    dl2_writer_close(writer);
    return DL2_OK;
}

/* ---- Shards */

/*
 * Opens the next file of a group under a temporary name, "ROOT/FOLDER/.NAME.dl2-tmp", which is
 * noted to be renamed; *path is set to the final name.
 */
static int create_file(struct dl2_writer *writer, const struct group *group,
                       const struct dl2_numbered_name *form, FILE **file, const char **path,
                       struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&writer->renames, writer->rename_count, sizeof *writer->renames, error));
    char **pair = writer->renames[writer->rename_count], name[64];
    snprintf(name, sizeof name, "%s%0*" PRIu32 "%s", form->start, form->digits, group->number,
             form->end);
    pair[1] = NULL;
    DL2_TRY(dl2_format(&pair[0], error, "%s/%s.%s" DL2_TEMPORARY_SUFFIX, writer->place.root,
                       group->folder, name));
    writer->rename_count++;
    DL2_TRY(dl2_format(&pair[1], error, "%s/%s%s", writer->place.root, group->folder, name));
    *path = pair[1];
    *file = fopen(pair[0], "we");
    return *file ? DL2_OK : dl2_error_system(error, "%s: cannot be written", *path);
}

static int begin_shard(struct dl2_writer *writer, struct group *group, struct dl2_error *error)
{
    struct dl2_shard_output *output = &group->output;
    output->bytes = 0;
    output->samples = 0;
    DL2_TRY(
        create_file(writer, group, &writer->format->shard, &output->file, &output->path, error));
    setvbuf(output->file, NULL, _IOFBF, BUFFER_BYTES);
    if (writer->format->companion.start)
        DL2_TRY(create_file(writer, group, &writer->format->companion, &output->companion,
                            &output->companion_path, error));
    group->shard = writer->draft.shard_count;
    return dl2_index_draft_add_shard(&writer->draft, output->path + strlen(writer->place.root) + 1,
                                     0, 0, error);
}

int dl2_shard_put(struct dl2_shard_output *output, const void *data, size_t size,
                  struct dl2_error *error)
{
    if (size && fwrite(data, 1, size, output->file) != size)
        return dl2_error_system(error, "%s: cannot be written", output->path);
    output->bytes += size;
    return DL2_OK;
}

int dl2_shard_put_zeros(struct dl2_shard_output *output, size_t size, struct dl2_error *error)
{
    static const uint8_t zeros[1024];
    return dl2_shard_put(output, zeros, size, error);
}

/* Closes *file if it is open; raises *mtime_ns to the time of its last change. */
static int close_file(FILE **file, const char *path, int64_t *mtime_ns, struct dl2_error *error)
{
    struct stat info = {0};
    int status = DL2_OK;
    if (!*file)
        return DL2_OK;
    /* Bytes that are still in the buffer would change the time again. */
    if (fflush(*file) != 0 || ferror(*file) || fstat(fileno(*file), &info) != 0)
        status = dl2_error_system(error, "%s: cannot be written", path);
    if (fclose(*file) != 0 && status == DL2_OK)
        status = dl2_error_system(error, "%s: cannot be written", path);
    *file = NULL;
    const int64_t time = dl2_mtime_ns(&info);
    *mtime_ns = time > *mtime_ns ? time : *mtime_ns;
    return status;
}

/* Sends a closed file, by its final name, to the store if there is one. */
static int send_closed(const struct dl2_writer *writer, const char *path, struct dl2_error *error)
{
    for (size_t i = 0; writer->place.store && i < writer->rename_count; i++)
        if (writer->renames[i][1] == path)
            return dl2_write_place_send(&writer->place, writer->renames[i][0],
                                        path + strlen(writer->place.root) + 1, error);
    return DL2_OK;
}

static int end_shard(struct dl2_writer *writer, struct group *group, struct dl2_error *error)
{
    struct dl2_shard_output *output = &group->output;
    if (!output->file)
        return DL2_OK;
    struct dl2_index_draft_shard *shard = &writer->draft.shards[group->shard];
    DL2_TRY(writer->format->write_end(output, error));
    DL2_TRY(close_file(&output->file, output->path, &shard->mtime_ns, error));
    DL2_TRY(close_file(&output->companion, output->companion_path, &shard->mtime_ns, error));
    shard->bytes = output->bytes;
    group->number++;
    DL2_TRY(send_closed(writer, output->path, error));
    return writer->format->companion.start ? send_closed(writer, output->companion_path, error)
                                           : DL2_OK;
}

/* ---- Classes in a folder */

static int check_class(const struct dl2_dataset *dataset, const struct dl2_sample *sample,
                       const struct dl2_tree *tree, int there, struct dl2_error *error)
{
    static const char *const remedy = "use --container=tar, which keeps classes";
    const char *class = sample->label < 0 ? NULL : dataset->classes[sample->label];
    if (there < 0 || (there == sample->label && !strcmp(class, tree->classes[there])))
        return DL2_OK;
    if (class && !strcmp(class, tree->classes[there]))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: the number of its class, %s, is %d, but in a folder, whose "
                             "classes are numbered by name, it would be %d; %s",
                             sample->path, class, sample->label, there, remedy);
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "%s: %s%s, but in a folder it would be the folder's name, %s; %s",
                         sample->path, class ? "its class is " : "it has no class",
                         class ? class : "", tree->classes[there], remedy);
}

int dl2_dataset_check_class_folders(const struct dl2_dataset *dataset, size_t *lost,
                                    struct dl2_error *error)
{
    const size_t count = dl2_dataset_count(dataset);
    struct dl2_sample sample;
    DL2_AUTO_FREE const char **names = NULL;
    *lost = 0;
    if (!dataset->class_count)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&names, count, "classes", error));
    for (size_t i = 0; i < count; i++) {
        dl2_dataset_sample(dataset, i, &sample);
        names[i] = sample.key;
    }
    DL2_CLEANUP(dl2_tree_free) struct dl2_tree tree;
    DL2_TRY(dl2_tree_read(names, count, NULL, &tree, error));
    for (size_t i = 0; i < count; i++) {
        dl2_dataset_sample(dataset, i, &sample);
        DL2_TRY(check_class(dataset, &sample, &tree, tree.labels[i], error));
        *lost += sample.label >= 0 && tree.labels[i] < 0;
    }
    return DL2_OK;
}

/* ---- Samples */

/* Sets *part, and *folder to how much of a key is the folder of its split: 6, that of "train/", of
 * "train/rose/0017"; 0: no split's. The rules are those of tree.c. */
static int split_folder(struct dl2_writer *writer, const char *key, int label, uint8_t *part,
                        size_t *folder, struct dl2_error *error)
{
    const size_t prefix = writer->options.has_parts ? dl2_part_prefix(key) : 0;
    const char *slash = writer->options.has_parts ? strchr(key + prefix, '/') : NULL;
    const size_t length = slash ? (size_t)(slash - key) - prefix : 0;
    if (prefix) { /* its name says the split, in the root as well */
        *part = (uint8_t)dl2_part_find(&writer->draft.parts, key + prefix, length);
        *folder = 0;
        return DL2_OK;
    }
    *part = (uint8_t)dl2_part_find(&writer->draft.parts, key, length);
    if (!*part && slash && (label >= 0 || !writer->draft.class_count))
        DL2_TRY(dl2_part_add(&writer->draft.parts, key, length, part, error));
    *folder = *part ? length + 1 : 0;
    return DL2_OK;
}

/* Finds how many images of the source a group will hold, and whether that can be divided. */
static int count_images(struct dl2_writer *writer, struct group *group, struct dl2_error *error)
{
    const uint32_t shards = writer->options.shards, most = writer->format->max_samples;
    const size_t length = strlen(group->folder), count = dl2_dataset_count(writer->source);
    for (size_t i = 0; i < count; i++) {
        struct dl2_sample sample;
        uint8_t part;
        size_t folder;
        dl2_dataset_sample(writer->source, i, &sample);
        DL2_TRY(split_folder(writer, sample.key, sample.label, &part, &folder, error));
        group->images += folder == length && !memcmp(sample.key, group->folder, length);
    }
    const char *split = length ? group->folder : "the dataset";
    if (group->images < shards)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has %" PRIu64 " images for %u shards",
                             split, group->images, shards);
    if (most && (group->images + shards - 1) / shards > most)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s has %" PRIu64 " images, %" PRIu64 " in each of %u shards, and "
                             "%s takes at most %u",
                             split, group->images, (group->images + shards - 1) / shards, shards,
                             writer->draft.container->name, most);
    return DL2_OK;
}

static int add_group(struct dl2_writer *writer, const char *key, size_t length, uint8_t part,
                     struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&writer->groups, writer->group_count, sizeof *writer->groups, error));
    struct group *group = &writer->groups[writer->group_count];
    *group = (struct group){0};
    DL2_TRY(dl2_format(&group->folder, error, "%.*s", (int)length, key));
    writer->group_count++;
    if (writer->source)
        DL2_TRY(count_images(writer, group, error));
    if (!length)
        return DL2_OK;
    if (part >= DL2_PARTS)
        DL2_TRY(dl2_write_place_add_folder(&writer->place,
                                           dl2_part_name(&writer->draft.parts, part), error));
    DL2_AUTO_FREE char *folder = dl2_path_join(writer->place.root, group->folder);
    return folder ? dl2_make_folders(folder, error) : dl2_error_memory(error, "a dataset");
}

/* The folder that is the first `length` bytes of a key. */
static int find_group(struct dl2_writer *writer, const char *key, size_t length, uint8_t part,
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

static int check_shard_sample(const struct dl2_writer *writer, const char *key,
                              const struct dl2_new_sample *sample, struct dl2_error *error)
{
    if (sample->size > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %zu bytes pass the limit of 2 GiB", key,
                             sample->size);
    if (sample->label < -1 || (sample->label >= 0 && !sample->class) ||
        !dl2_index_is_key(sample->id) || !*sample->extension || strchr(sample->extension, '/'))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: no key, extension and label for a sample", key);
    const int status =
        writer->format && writer->format->check ? writer->format->check(sample, error) : DL2_OK;
    dl2_error_prefix(error, "%s", key);
    return status;
}

/* Is the shard that is open full, for a sample of so many bytes? */
static bool is_full(const struct dl2_writer *writer, const struct group *group, uint64_t bytes)
{
    const struct dl2_shard_output *output = &group->output;
    const uint32_t most = writer->options.shard_samples;
    if (writer->source)
        return group->added >= (group->number + 1) * group->images / writer->options.shards;
    return output->bytes + bytes > writer->options.shard_bytes || (most && output->samples >= most);
}

/* Opens a shard with room for a sample of so many bytes, or a new one. */
static int make_room(struct dl2_writer *writer, struct group *group, uint64_t bytes,
                     struct dl2_error *error)
{
    const struct dl2_shard_output *output = &group->output;
    if (output->file && output->samples && is_full(writer, group, bytes))
        DL2_TRY(end_shard(writer, group, error));
    return output->file ? DL2_OK : begin_shard(writer, group, error);
}

/* Adds an image that was written to the index. */
static int index_image(struct dl2_writer *writer, const struct group *group, const char *key,
                       const struct dl2_new_sample *sample, uint64_t offset, uint8_t flags,
                       struct dl2_error *error)
{
    const struct dl2_index_entry entry = {.offset = offset,
                                          .sum = XXH3_64bits(sample->data, sample->size),
                                          .bytes = (uint32_t)sample->size,
                                          .shard = group->shard,
                                          .label = sample->label,
                                          .part = sample->part,
                                          .flags = DL2_ENTRY_SUMMED | flags,
                                          .key = key,
                                          .extension = sample->extension};
    DL2_TRY(dl2_index_draft_add(&writer->draft, &entry, error));
    if (!writer->options.slice)
        return DL2_OK;
    const int cut = writer->options.slice(sample->data, sample->size, &writer->slicing, error);
    return cut == 1 ? dl2_index_draft_slice(&writer->draft, writer->draft.count - 1,
                                            &writer->slicing, sample->data, error)
                    : cut;
}

static int put_sample(struct dl2_writer *writer, struct group *group, const char *key,
                      const struct dl2_new_sample *sample, struct dl2_error *error)
{
    uint64_t offset;
    DL2_TRY(make_room(writer, group, sample->size + sample->sidecars.bytes, error));
    DL2_TRY(writer->format->write_add(&group->output, sample, &offset, error));
    group->output.samples++;
    group->added++;
    return index_image(writer, group, key, sample, offset, 0, error);
}

/* A clip whose frames are written; `key` has room for KEY/00000, and sample->id lies in it. */
struct clip {
    char *key;
    size_t length, room; /* of the clip's key, and of all of it */
};

/* Makes a sample of frame `number`. */
static void take_frame(struct dl2_new_sample *sample, size_t number)
{
    sample->extension = sample->frames[number].extension;
    sample->data = sample->frames[number].data;
    sample->size = sample->frames[number].size;
}

/* The same, with the key of a frame. */
static void become_frame(struct dl2_new_sample *sample, const struct clip *clip, size_t number)
{
    snprintf(clip->key + clip->length, clip->room - clip->length, "/%05zu", number);
    take_frame(sample, number);
}

/* A clip as one item. The frame of an item that has no other has the item's key. */
static int put_item(struct dl2_writer *writer, struct group *group, const struct clip *clip,
                    const struct dl2_new_sample *sample, struct dl2_error *error)
{
    DL2_AUTO_FREE uint64_t *offsets = NULL;
    uint64_t bytes = sample->sidecars.bytes;
    DL2_TRY(DL2_NEW(&offsets, sample->frame_count, "a clip", error));
    for (size_t i = 0; i < sample->frame_count; i++)
        bytes += sample->frames[i].size;
    DL2_TRY(make_room(writer, group, bytes, error));
    DL2_TRY(writer->format->write_add(&group->output, sample, offsets, error));
    group->output.samples++;
    struct dl2_new_sample frame = *sample;
    for (size_t i = 0; i < sample->frame_count; i++) {
        become_frame(&frame, clip, i);
        if (sample->frame_count == 1)
            clip->key[clip->length] = '\0';
        DL2_TRY(index_image(writer, group, clip->key, &frame, offsets[i], i ? DL2_ENTRY_FURTHER : 0,
                            error));
    }
    return DL2_OK;
}

/* A clip as an image a frame, in a format that has no clips. */
static int put_frames(struct dl2_writer *writer, struct group *group, const struct clip *clip,
                      const struct dl2_new_sample *sample, struct dl2_error *error)
{
    struct dl2_new_sample frame = *sample;
    for (size_t i = 0; i < sample->frame_count; i++) {
        become_frame(&frame, clip, i);
        DL2_TRY(put_sample(writer, group, clip->key, &frame, error));
        frame.sidecars = (struct dl2_sidecars){0};
    }
    return DL2_OK;
}

/* Makes sample->beside of the items that the container can hold; they stay the caller's. */
static int let_through(struct dl2_writer *writer, struct dl2_new_sample *sample,
                       const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    if (!sidecars || !sidecars->count)
        return DL2_OK;
    struct dl2_sidecars *held = &sample->sidecars;
    DL2_TRY(DL2_NEW(&held->items, sidecars->count, "a dataset", error));
    for (size_t i = 0; i < sidecars->count; i++) {
        const struct dl2_sidecar *item = &sidecars->items[i];
        if (writer->sink ? !writer->sink->holds_sidecar(item)
                         : !writer->format || !writer->format->holds_sidecars(sample, item)) {
            dl2_left_out_count(&writer->left_out, item->extension);
            continue;
        }
        held->items[held->count++] = *item;
        held->bytes += item->bytes.size;
    }
    return DL2_OK;
}

/* Writes a sample that was checked; `clip` is NULL for an image. */
static int put(struct dl2_writer *writer, size_t folder, const struct clip *clip,
               const struct dl2_new_sample *sample, struct dl2_error *error)
{
    struct group *group;
    if (writer->sink)
        return writer->sink->add(writer->sink_state, sample, error);
    DL2_TRY(find_group(writer, sample->key, folder, sample->part, &group, error));
    if (!clip)
        return put_sample(writer, group, sample->key, sample, error);
    return writer->format->holds_clips ? put_item(writer, group, clip, sample, error)
                                       : put_frames(writer, group, clip, sample, error);
}

/* Adds an image, which is a frame, or a clip of several. */
static int add_frames(struct dl2_writer *writer, const char *key, int label,
                      const struct dl2_writer_frame *frames, size_t count, bool is_clip,
                      const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    const char *line = writer->line;
    uint8_t part;
    size_t folder;
    writer->line = NULL;
    DL2_TRY(split_folder(writer, key, label, &part, &folder, error));
    struct clip clip = {.length = strlen(key), .room = strlen(key) + 24};
    DL2_AUTO_FREE char *clip_key = is_clip ? dl2_calloc(clip.room, 1) : NULL;
    if (is_clip && !clip_key)
        return dl2_error_memory(error, "a clip");
    if (is_clip)
        clip.key = strcpy(clip_key, key);
    const bool has_class = label >= 0 && (uint32_t)label < writer->draft.class_count;
    struct dl2_new_sample sample = {
        .key = key,
        .id = (is_clip ? clip.key : key) + folder,
        .split = dl2_part_name(&writer->draft.parts, part),
        .part = part,
        .label = label,
        .class = has_class ? writer->draft.classes[label] : NULL,
        .frames = frames,
        .line = line,
        .frame_count = is_clip ? count : 0,
    };
    for (size_t i = 0; i < count; i++) {
        take_frame(&sample, i);
        DL2_TRY(check_shard_sample(writer, key, &sample, error));
    }
    take_frame(&sample, 0);
    int status = let_through(writer, &sample, sidecars, error);
    if (status == DL2_OK)
        status = put(writer, folder, is_clip ? &clip : NULL, &sample, error);
    free(sample.sidecars.items);
    return status;
}

int dl2_writer_add(struct dl2_writer *writer, const char *key, const char *extension, int label,
                   const void *data, size_t size, struct dl2_error *error)
{
    return dl2_writer_add_with_sidecars(writer, key, extension, label, data, size, NULL, error);
}

int dl2_writer_add_with_sidecars(struct dl2_writer *writer, const char *key, const char *extension,
                                 int label, const void *data, size_t size,
                                 const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    const struct dl2_writer_frame image = {extension, data, size};
    return add_frames(writer, key, label, &image, 1, false, sidecars, error);
}

int dl2_writer_add_clip(struct dl2_writer *writer, const char *key, int label,
                        const struct dl2_writer_frame *frames, size_t count,
                        const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    if (writer->sink)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: a clip, and the container '%s' holds images alone", key,
                             writer->draft.container->name);
    if (!count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: a clip without frames", key);
    return add_frames(writer, key, label, frames, count, true, sidecars, error);
}

void dl2_writer_set_line(struct dl2_writer *writer, const char *line)
{
    writer->line = line;
}

void dl2_writer_set_summary(struct dl2_writer *writer, const json_t *summary)
{
    writer->summary = summary;
}

void dl2_writer_set_origin(struct dl2_writer *writer, const char *origin)
{
    writer->origin = origin;
}

const char *dl2_writer_folder(const struct dl2_writer *writer)
{
    return writer->sink ? NULL : writer->place.root;
}

char *dl2_writer_left_out(const struct dl2_writer *writer)
{
    return dl2_left_out_message(&writer->left_out, DL2_LEFT_OUT,
                                writer->draft.container->leaves_out);
}

static int write_classes(const struct dl2_writer *writer, const struct group *group,
                         struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL, *path = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out)
        writer->format->write_classes((const char *const *)writer->draft.classes,
                                      writer->draft.class_count, out);
    const bool whole = out && !ferror(out);
    if (!out || fclose(out) != 0 || !whole)
        return dl2_error_memory(error, "a dataset");
    DL2_TRY(dl2_format(&path, error, "%s/%s%s", writer->place.root, group->folder,
                       writer->format->classes_name));
    if (!size)
        return DL2_OK;
    DL2_TRY(dl2_file_write(path, text, size, error));
    return dl2_write_place_send(&writer->place, path, path + strlen(writer->place.root) + 1, error);
}

/* Sends what is about a variant, of which in a folder the caller writes the summary; the index
 * last.
 */
static int complete_store(const struct dl2_writer *writer, struct dl2_error *error)
{
    static const char *const names[] = {DL2_FACTS_LINES_NAME, DL2_FACTS_SUMMARY_NAME,
                                        DL2_INDEX_NAME};
    if (writer->summary)
        DL2_TRY(dl2_facts_save(writer->place.root, writer->summary, error));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        DL2_AUTO_FREE char *path = dl2_path_join(writer->place.root, names[i]);
        if (!path)
            return dl2_error_memory(error, "a dataset");
        if (dl2_is_file(path))
            DL2_TRY(dl2_write_place_send(&writer->place, path, names[i], error));
    }
    return DL2_OK;
}

int dl2_writer_finish(struct dl2_writer *writer, struct dl2_error *error)
{
    if (writer->sink)
        return writer->sink->finish(writer->sink_state, writer->summary, writer->origin, error);
    for (size_t i = 0; i < writer->group_count; i++)
        DL2_TRY(end_shard(writer, &writer->groups[i], error));
    for (size_t i = 0; i < writer->group_count; i++)
        if (writer->draft.class_count)
            DL2_TRY(write_classes(writer, &writer->groups[i], error));
    for (size_t i = 0; !writer->place.store && i < writer->rename_count; i++)
        if (rename(writer->renames[i][0], writer->renames[i][1]) != 0)
            return dl2_error_system(error, "%s: cannot be put in its place", writer->renames[i][1]);
    DL2_TRY(dl2_index_draft_save(&writer->draft, writer->place.root, error));
    if (writer->place.store)
        DL2_TRY(complete_store(writer, error));
    DL2_TRY(dl2_write_place_unmark(&writer->place, error));
    writer->finished = true;
    return DL2_OK;
}

void dl2_writer_leave(struct dl2_writer *writer)
{
    writer->finished = true;
}

void dl2_writer_close(struct dl2_writer *writer)
{
    if (!writer)
        return;
    for (size_t i = 0; i < writer->group_count; i++) {
        if (writer->groups[i].output.file)
            fclose(writer->groups[i].output.file);
        if (writer->groups[i].output.companion)
            fclose(writer->groups[i].output.companion);
        dl2_bytes_free(&writer->groups[i].output.scratch);
        free(writer->groups[i].folder);
    }
    free(writer->groups);
    if (writer->sink_state)
        writer->sink->close(writer->sink_state);
    if (!writer->sink && !writer->finished)
        dl2_write_place_undo(&writer->place);
    dl2_write_place_close(&writer->place);
    for (size_t i = 0; i < writer->rename_count; i++) {
        free(writer->renames[i][0]);
        free(writer->renames[i][1]);
    }
    free(writer->renames);
    dl2_left_out_free(&writer->left_out);
    dl2_index_draft_free(&writer->draft);
    dl2_slicing_free(&writer->slicing);
    free(writer);
}
