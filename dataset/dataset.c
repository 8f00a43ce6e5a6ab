/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/container.h"

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/files/files.h"
#include "dataset/packed/packed.h"
#include "dataset/packed/remote_container.h"
#include "dataset/postgresql/database_uri.h"
#include "dataset/write/variant_facts.h"
#include "remote/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* The last row that knows a path reads it: a folder can be anything, so its row comes first. NULL
 * if no row does. */
static const struct dl2_container *probe_container(const char *path)
{
    const struct dl2_container *packed = dl2_shards_probe(path), *found = NULL, *row;
    for (size_t i = 0; (row = dl2_container_at(i)); i++)
        if (row->shards ? row == packed : row->probe(path))
            found = row;
    return found;
}

bool dl2_dataset_has_members(const char *path)
{
    const bool is_remote = dl2_is_address(path);
    const struct dl2_container *container = is_remote ? NULL : probe_container(path);
    return is_remote || (container && container->shards && container->shards->has_members);
}

bool dl2_dataset_is_known(const char *path)
{
    return dl2_is_address(path) || probe_container(path);
}

static int unknown_path(const char *path, struct dl2_error *error)
{
    struct stat status;
    char known[512] = "";
    if (dl2_dataset_is_database(path))
        return dl2_database_unsupported(path, error);
    if (stat(path, &status) < 0)
        return dl2_error_system(error, "%s", path);
    const struct dl2_container *container;
    for (size_t i = 0; (container = dl2_container_at(i)); i++)
        dl2_list_name(known, sizeof known, container->looks_for);
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no dataset; looked for %s", path, known);
}

/* ---- Opening */

/* Does a dl2-variant.json say that there is more to come, here or above (ROOT/train/rose)? */
static int look_for_completeness(struct dl2_dataset *dataset, const char *path,
                                 struct dl2_error *error)
{
    enum { LEVELS = 3 };
    if (dataset->remote)
        return dl2_remote_look_for_completeness(dataset, error);
    const int length = dl2_is_file(path) ? (int)(dl2_path_base(path) - path) : (int)strlen(path);
    DL2_AUTO_FREE char *place = NULL;
    DL2_TRY(dl2_format(&place, error, "%.*s%s/../..", length, path, length ? "" : "."));
    for (size_t level = 0; level < LEVELS; level++) { /* from the highest on */
        json_auto_t *summary = NULL;
        if (level)
            place[strlen(place) - strlen("/..")] = '\0';
        DL2_TRY(dl2_facts_load(place, &summary, error));
        if (json_is_false(json_object_get(summary, "complete")))
            dataset->is_incomplete = true;
    }
    return DL2_OK;
}

/* Frees what the reader's open() has set. */
static void close_reader(struct dl2_dataset *dataset)
{
    if (dataset->state)
        dataset->container->reader->close(dataset);
    free(dataset->remark);
    free(dataset->name_note);
    free(dataset->aside);
    dl2_free_list(dataset->class_files);
    free(dataset->classes);
    free(dataset->labels);
    dl2_part_list_free(&dataset->parts);
}

/* Opens a folder without classes, whose metadata have labels, anew: by these. */
static int open_by_metadata(struct dl2_dataset *dataset, const char *path,
                            const struct dl2_dataset_options *options, struct dl2_error *error)
{
    close_reader(dataset);
    *dataset = (struct dl2_dataset){.container = dl2_container_find("list")};
    return dataset->container->reader->open(dataset, path, options, error);
}

static int open_by_container(struct dl2_dataset *dataset, const char *path,
                             const struct dl2_dataset_options *options, struct dl2_error *error)
{
    unsigned depth = 1;
    const enum dl2_part own_part = dl2_dataset_is_database(path) ? DL2_PART_NONE
                                   : dataset->remote             ? dl2_part_of_address(path, &depth)
                                                                 : dl2_part_of_path(path, &depth);
    DL2_TRY(dataset->container->reader->open(dataset, path, options, error));
    if (dataset->container->has_class_folders && !dataset->remote && dataset->count &&
        !dataset->class_count && !dataset->volumes && dl2_files_has_metadata(path))
        DL2_TRY(open_by_metadata(dataset, path, options, error));
    if (dataset->count > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %zu samples pass the limit of 2^32", path,
                             dataset->count);
    /* A folder of images in a split's folder is of that split; one with classes is a dataset. */
    if (!dataset->has_parts && (depth == 0 || !dataset->class_count))
        dataset->own_part = own_part;
    dataset->all_images = dataset->count;
    DL2_TRY(dl2_reader_make_names(dataset, error));
    DL2_TRY(dl2_clips_find(dataset, path, options, error));
    DL2_TRY(dl2_choose_split(dataset, path, options, error));
    DL2_TRY(dl2_choose_partitions(dataset, error));
    if (!dl2_dataset_is_database(path)) /* whose reader has looked */
        DL2_TRY(look_for_completeness(dataset, path, error));
    DL2_TRY(dl2_dataset_describe(dataset, path, options, error));
    return dataset->count ? DL2_OK : dl2_choose_refuse_empty(dataset, path, options->split, error);
}

static int find_container(struct dl2_dataset *dataset, const char *path,
                          const struct dl2_dataset_options *options, struct dl2_error *error)
{
    const struct dl2_remote_options *remote = &options->remote;
    if (options->labels && (dl2_is_address(path) || dl2_dataset_is_database(path)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: lists of labels are for videos and frames in a folder of this "
                             "machine; copy them to one",
                             path);
    if (dl2_is_address(path))
        return dl2_remote_find_container(dataset, path, remote, error);
    if (remote->cache_dir || remote->cache_bytes || remote->requests || remote->time_limit > 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s lies on this machine or in a database: settings of requests and "
                             "of a cache in a folder have an effect on http://, https:// and s3:// "
                             "alone",
                             path);
    dataset->container = options->labels ? dl2_container_find("list") : probe_container(path);
    return dataset->container ? DL2_OK : unknown_path(path, error);
}

int dl2_dataset_open(const char *path, const struct dl2_dataset_options *options,
                     struct dl2_dataset **out, struct dl2_error *error)
{
    *out = NULL;
    if (options->val_fraction < 0 || options->val_fraction > 1) /* NAN: not given */
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a validation part of %g is not within 0 and 1",
                             options->val_fraction);
    if (!(options->subset.fraction >= 0 && options->subset.fraction <= 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a subset of %g is not within 0 and 1",
                             options->subset.fraction);
    struct dl2_dataset *dataset;
    DL2_TRY(DL2_NEW(&dataset, 1, "a dataset", error));
    int status = find_container(dataset, path, options, error);
    if (status == DL2_OK && dl2_members_are_chosen(&options->members))
        status = dl2_packed_check_members(dataset->container, path, &options->members, error);
    if (status == DL2_OK)
        status = open_by_container(dataset, path, options, error);
    if (status < 0)
        dl2_dataset_close(dataset);
    else
        *out = dataset;
    return status;
}

void dl2_dataset_close(struct dl2_dataset *dataset)
{
    if (!dataset)
        return;
    close_reader(dataset);
    dl2_bytes_free(&dataset->remote_index);
    dl2_listing_free(&dataset->remote_listing);
    dl2_remote_close(dataset->remote);
    dl2_free_list(dataset->messages);
    dl2_reader_free_names(dataset);
    dl2_choose_forget_partitions(dataset);
    dl2_clips_free(dataset);
    free(dataset->chosen);
    free(dataset);
}

/* ---- What is in it */

/* Image `image` of the split, but that a frame of a clip has another key. */
static struct dl2_entry entry_of(const struct dl2_dataset *dataset, size_t image)
{
    return dl2_reader_entry(dataset, dl2_reader_number(dataset, image));
}

size_t dl2_dataset_count(const struct dl2_dataset *dataset)
{
    return dl2_has_clips(dataset) ? dataset->clip_count : dataset->count;
}

enum dl2_sample_kind dl2_dataset_kind(const struct dl2_dataset *dataset)
{
    return dataset->clips     ? DL2_SAMPLE_CLIP
           : dataset->volumes ? DL2_SAMPLE_VOLUME
           : dataset->videos  ? DL2_SAMPLE_VIDEO
                              : DL2_SAMPLE_IMAGE;
}

size_t dl2_dataset_image_count(const struct dl2_dataset *dataset)
{
    return dataset->count;
}

struct dl2_image_range dl2_dataset_frames(const struct dl2_dataset *dataset, size_t index)
{
    if (!dl2_has_clips(dataset))
        return (struct dl2_image_range){index, 1};
    return (struct dl2_image_range){dataset->clips[index].first, dataset->clips[index].count};
}

struct dl2_image_range dl2_dataset_clip_of(const struct dl2_dataset *dataset, size_t image,
                                           const char **key)
{
    if (!dataset->clips) {
        *key = entry_of(dataset, image).sample.key;
        return (struct dl2_image_range){image, 1};
    }
    const struct dl2_clip *clip = &dataset->clips[dl2_clip_of_image(dataset, image)];
    *key = dl2_clip_key(dataset, clip);
    return (struct dl2_image_range){clip->first, clip->count};
}

/* The reader's number of a sample's image, of a clip its first. */
static size_t first_number(const struct dl2_dataset *dataset, size_t index)
{
    return dl2_reader_number(dataset, dl2_dataset_frames(dataset, index).first);
}

uint64_t dl2_dataset_bytes(const struct dl2_dataset *dataset)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < dataset->count; i++)
        bytes += entry_of(dataset, i).sample.bytes;
    return bytes;
}

unsigned dl2_dataset_class_count(const struct dl2_dataset *dataset)
{
    return dataset->class_count;
}

const char *dl2_dataset_class_name(const struct dl2_dataset *dataset, unsigned label)
{
    return label < dataset->class_count ? dataset->classes[label] : NULL;
}

bool dl2_dataset_same_classes(const struct dl2_dataset *a, const struct dl2_dataset *b)
{
    bool same = a->class_count == b->class_count;
    for (unsigned i = 0; same && i < a->class_count; i++)
        same = !strcmp(a->classes[i], b->classes[i]);
    return same;
}

static uint64_t hash_text(const char *text, uint64_t hash)
{
    return XXH3_64bits_withSeed(text, strlen(text) + 1, hash);
}

static const char *split_of_image(const struct dl2_dataset *dataset, size_t image)
{
    const struct dl2_entry entry = entry_of(dataset, image);
    const bool in_one = dataset->has_parts && (entry.sample.label >= 0 || !dataset->class_count);
    return dl2_part_name(&dataset->parts, in_one ? entry.part : DL2_PART_NONE);
}

const char *dl2_dataset_sidecar_at(const struct dl2_dataset *dataset, size_t index, size_t i,
                                   const char **path)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->sidecar_at ? reader->sidecar_at(dataset, first_number(dataset, index), i, path)
                              : NULL;
}

uint64_t dl2_dataset_image_sidecar_sum(const struct dl2_dataset *dataset, size_t image)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->sidecar_sum ? reader->sidecar_sum(dataset, dl2_reader_number(dataset, image))
                               : 0;
}

int dl2_dataset_fingerprint(const struct dl2_dataset *dataset, uint64_t *fingerprint,
                            struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    struct dl2_bytes version = DL2_BYTES_INIT;
    uint64_t hash = hash_text(dataset->container->name, dataset->class_count);
    const int status = reader->version ? reader->version(dataset, &version, error) : DL2_OK;
    if (version.size)
        hash = XXH3_64bits_withSeed(version.data, version.size, hash);
    dl2_bytes_free(&version);
    for (unsigned i = 0; i < dataset->class_count; i++)
        hash = hash_text(dataset->classes[i], hash);
    for (size_t i = 0; i < dataset->count; i++) {
        const struct dl2_sample sample = entry_of(dataset, i).sample;
        const uint64_t facts[] = {(uint64_t)sample.label, sample.bytes,
                                  reader->version ? 0 : (uint64_t)sample.mtime_ns,
                                  dl2_dataset_image_sidecar_sum(dataset, i)};
        hash = hash_text(sample.name, hash);
        hash = hash_text(split_of_image(dataset, i), hash);
        hash = XXH3_64bits_withSeed(facts, sizeof facts, hash);
    }
    for (size_t i = 0; i < dataset->clip_count; i++)
        hash = hash_text(dl2_clip_key(dataset, &dataset->clips[i]), hash);
    *fingerprint = hash;
    return status;
}

void dl2_dataset_hash(const struct dl2_dataset *dataset, uint64_t *samples, uint64_t *times)
{
    const bool timed = !dataset->container->reader->version;
    *samples = dataset->class_count;
    *times = 0;
    for (unsigned i = 0; i < dataset->class_count; i++)
        *samples = hash_text(dataset->classes[i], *samples);
    for (size_t i = 0; i < dataset->clip_count; i++)
        *samples = hash_text(dl2_clip_key(dataset, &dataset->clips[i]), *samples);
    for (size_t i = 0; i < dataset->count; i++) {
        const struct dl2_sample sample = entry_of(dataset, i).sample;
        const uint64_t facts[] = {(uint64_t)sample.label, sample.bytes};
        *samples = XXH3_64bits_withSeed(facts, sizeof facts, hash_text(sample.name, *samples));
        if (timed)
            *times = XXH3_64bits_withSeed(&sample.mtime_ns, sizeof sample.mtime_ns, *times);
    }
}

bool dl2_dataset_remote_stats(const struct dl2_dataset *dataset, struct dl2_remote_stats *stats)
{
    if (dataset->container->reader->remote_stats)
        return dataset->container->reader->remote_stats(dataset, stats);
    if (dataset->remote)
        dl2_remote_get_stats(dataset->remote, stats);
    return dataset->remote;
}

const char *dl2_dataset_container(const struct dl2_dataset *dataset)
{
    return dataset->container->name;
}

bool dl2_dataset_is_incomplete(const struct dl2_dataset *dataset)
{
    return dataset->is_incomplete;
}

bool dl2_dataset_is_in_order(const struct dl2_dataset *dataset)
{
    return dataset->is_in_order;
}

bool dl2_dataset_has_parts(const struct dl2_dataset *dataset)
{
    return dataset->has_parts;
}

const char *dl2_dataset_split_of(const struct dl2_dataset *dataset, size_t index)
{
    return split_of_image(dataset, dl2_dataset_frames(dataset, index).first);
}

void dl2_dataset_image(const struct dl2_dataset *dataset, size_t image, struct dl2_sample *facts)
{
    const size_t number = dl2_reader_number(dataset, image);
    *facts = dl2_reader_entry(dataset, number).sample;
    facts->path = dl2_reader_path(dataset, number);
    if (dataset->clips)
        facts->key = dl2_frame_key(dataset, number);
}

void dl2_dataset_sample(const struct dl2_dataset *dataset, size_t index, struct dl2_sample *sample)
{
    const struct dl2_image_range frames = dl2_dataset_frames(dataset, index);
    dl2_dataset_image(dataset, frames.first, sample);
    if (!dl2_has_clips(dataset))
        return;
    sample->key = sample->name = dl2_clip_key(dataset, &dataset->clips[index]);
    for (size_t i = 1; i < frames.count; i++)
        sample->bytes += entry_of(dataset, frames.first + i).sample.bytes;
}

static int read_range(const struct dl2_dataset *dataset, size_t image,
                      const struct dl2_slice_range *range, struct dl2_bytes *scratch,
                      const uint8_t **data, size_t *size, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    DL2_TRY(reader->read(dataset, dl2_reader_number(dataset, image), range, scratch, error));
    *data = scratch->data;
    *size = scratch->size;
    return DL2_OK;
}

int dl2_dataset_read(const struct dl2_dataset *dataset, size_t image, struct dl2_bytes *scratch,
                     const uint8_t **data, size_t *size, struct dl2_error *error)
{
    return read_range(dataset, image, NULL, scratch, data, size, error);
}

int dl2_dataset_read_sidecar(const struct dl2_dataset *dataset, size_t index, const char *extension,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    const size_t number = first_number(dataset, index);
    return dl2_dataset_has_sidecars(dataset) && !dl2_reader_entry(dataset, number).is_further
               ? reader->read_sidecar(dataset, number, extension, out, error)
               : 0;
}

int dl2_dataset_read_sidecars(const struct dl2_dataset *dataset, size_t index,
                              struct dl2_sidecars *out, struct dl2_error *error)
{
    return dl2_dataset_read_image_sidecars(dataset, dl2_dataset_frames(dataset, index).first, out,
                                           error);
}

int dl2_dataset_read_image_sidecars(const struct dl2_dataset *dataset, size_t image,
                                    struct dl2_sidecars *out, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    const size_t number = dl2_reader_number(dataset, image);
    if (!reader->read_sidecars || dl2_reader_entry(dataset, number).is_further)
        return DL2_OK;
    DL2_TRY(reader->read_sidecars(dataset, number, out, error));
    dl2_sidecars_sort(out);
    return DL2_OK;
}

uint64_t dl2_dataset_sidecar_sum(const struct dl2_dataset *dataset, size_t index)
{
    return dl2_dataset_image_sidecar_sum(dataset, dl2_dataset_frames(dataset, index).first);
}

size_t dl2_dataset_missing(const struct dl2_dataset *dataset)
{
    return dataset->missing;
}

size_t dl2_dataset_ignored(const struct dl2_dataset *dataset)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->ignored ? reader->ignored(dataset) : 0;
}

const char *dl2_dataset_class_file(const struct dl2_dataset *dataset, size_t number)
{
    return number < dataset->class_file_count ? dataset->class_files[number] : NULL;
}

bool dl2_dataset_has_label_folders(const struct dl2_dataset *dataset)
{
    return dataset->label_folders;
}

bool dl2_dataset_has_sidecars(const struct dl2_dataset *dataset)
{
    return dataset->container->reader->read_sidecar;
}

bool dl2_dataset_locate(const struct dl2_dataset *dataset, size_t image,
                        struct dl2_location *location)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->locate &&
           reader->locate(dataset, dl2_reader_number(dataset, image), NULL, location);
}

bool dl2_dataset_in_batches(const struct dl2_dataset *dataset, size_t image, uint64_t *bytes)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->in_batches &&
           reader->in_batches(dataset, dl2_reader_number(dataset, image), bytes);
}

bool dl2_dataset_read_batch(const struct dl2_dataset *dataset, const uint32_t *indices,
                            size_t count, uint8_t *data)
{
    uint32_t numbers[DL2_DATASET_BATCH];
    if (count > DL2_DATASET_BATCH)
        return false;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)dl2_reader_number(dataset, indices[i]);
    return dataset->container->reader->read_batch(dataset, numbers, count, data);
}

bool dl2_dataset_can_fit(const struct dl2_dataset *dataset)
{
    return dataset->container->reader->fit;
}

int dl2_dataset_check_fit(const struct dl2_dataset *dataset, char version[DL2_FIT_VERSION_BYTES],
                          struct dl2_error *error)
{
    return dataset->container->reader->check_fit(dataset, version, error);
}

int dl2_dataset_fit(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
                    struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_server_fit own = *fit;
    DL2_AUTO_FREE uint32_t *rows = NULL;
    DL2_AUTO_FREE int32_t *labels = NULL;
    DL2_TRY(DL2_NEW(&rows, fit->count, "rows", error));
    DL2_TRY(DL2_NEW(&labels, fit->count, "rows", error));
    for (size_t i = 0; i < fit->count; i++) {
        rows[i] = (uint32_t)dl2_reader_number(dataset, fit->numbers[i]);
        labels[i] = dl2_reader_entry(dataset, rows[i]).sample.label;
    }
    own.rows = rows;
    own.labels = labels;
    return dataset->container->reader->fit(dataset, &own, out, error);
}

int dl2_dataset_verify(const struct dl2_dataset *dataset, size_t image, const uint8_t *data,
                       size_t size, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->verify
               ? reader->verify(dataset, dl2_reader_number(dataset, image), NULL, data, size, error)
               : DL2_OK;
}

bool dl2_dataset_cuts(const struct dl2_dataset *dataset, size_t image, struct dl2_cuts *cuts)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->cuts && reader->cuts(dataset, dl2_reader_number(dataset, image), cuts);
}

/* A reader that knows of slices has all functions. */
int dl2_dataset_read_slices(const struct dl2_dataset *dataset, size_t image,
                            struct dl2_slice_range range, struct dl2_bytes *scratch,
                            const uint8_t **data, size_t *size, struct dl2_error *error)
{
    return read_range(dataset, image, &range, scratch, data, size, error);
}

bool dl2_dataset_locate_slices(const struct dl2_dataset *dataset, size_t image,
                               struct dl2_slice_range range, struct dl2_location *location)
{
    return dataset->container->reader->locate(dataset, dl2_reader_number(dataset, image), &range,
                                              location);
}

int dl2_dataset_verify_slices(const struct dl2_dataset *dataset, size_t image,
                              struct dl2_slice_range range, const uint8_t *data, size_t size,
                              struct dl2_error *error)
{
    return dataset->container->reader->verify(dataset, dl2_reader_number(dataset, image), &range,
                                              data, size, error);
}
