/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/copy.h"

#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "common/quote.h"
#include "common/scope.h"
#include "common/thread.h"
#include "dataset/tell.h"
#include "dataset/write/variant_facts.h"
#include "quality/image_dataset.h"
#include "transcode/clip_packer.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/sidecar_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

enum { MAX_STRAYS_NAMED = 10, MAX_RECORD_BYTES = 1 << 30 };

/*
 * A hidden file in DEST: what SOURCE was when it was copied, as 16 digits and a newline, and in a
 * folder the paths of the files that copies have written, each ended by 0. A path is noted before
 * its file is written, so that a rerun after a kill knows whose the file is.
 */
#define RECORD_NAME ".dl2-copy"
enum { RECORD_HEAD = DL2_FACTS_ORIGIN_DIGITS + 1 };

/* Paths below DEST, each ended by 0, and pointers to them once sort_paths() has sorted them. */
struct paths {
    struct dl2_bytes text;
    const char **sorted;
    size_t count;
};

/* A sample that was read, until it is its turn to be written. */
struct reading {
    struct dl2_bytes bytes;
    const uint8_t *data;
    size_t size;
    struct dl2_sidecars sidecars;
    struct dl2_error error;
};

struct copy {
    const struct dl2_transcode_options *options;
    struct dl2_progress *progress;
    struct dl2_copy_result *result;
    struct dl2_dataset *dataset;
    struct dl2_writer *writer; /* NULL: class folders */
    struct dl2_clip_packer clip;
    uint64_t clip_frames, clip_bytes; /* of it, as counted in the result before it is whole */
    struct reading *readings;         /* a slot each */
    bool packed;                      /* DEST is a container, not class folders */
    json_t *summary;                  /* SOURCE's dl2-variant.json, for DEST; NULL: it has none */
    /* A container has another one once an image of SOURCE, what lies beside it, or the summary
     * changes. */
    char origin[DL2_FACTS_ORIGIN_DIGITS + 1];
    /* For class folders: the keys of SOURCE's images, sorted, and which of these were copied; what
     * lay in DEST before; its files that earlier copies have written, and those of this one; and
     * what could not be written beside images. */
    const char **keys;
    bool *copied;
    struct dl2_file_list there;
    struct paths before, now;
    FILE *journal; /* the record while files are written */
    struct dl2_left_out left_out;
};

/* ---- The record of what was copied */

/* A copied variant is still that variant: dl2-quality and dl2-report read its name here. */
static int load_summary(struct copy *copy, struct dl2_error *error)
{
    DL2_TRY(dl2_facts_load(copy->options->source, &copy->summary, error));
    int bad = 0;
    if (copy->summary && copy->packed)
        bad = json_object_set_new(copy->summary, "container",
                                  json_string(copy->options->pack.container));
    else if (copy->summary)
        json_object_del(copy->summary, "container");
    return bad ? dl2_error_memory(error, "a copy") : DL2_OK;
}

static int find_origin(struct copy *copy, struct dl2_error *error)
{
    uint64_t sum;
    if (!copy->packed)
        return DL2_OK; /* each file tells of itself: is_there() */
    DL2_TRY(dl2_dataset_fingerprint(copy->dataset, &sum, error));
    json_auto_t *what = copy->summary ? json_copy(copy->summary) : json_object();
    DL2_TRY(dl2_writer_describe(&copy->options->pack, what, error));
    DL2_AUTO_FREE char *text =
        json_object_size(what) ? json_dumps(what, JSON_SORT_KEYS) : strdup("");
    if (!text)
        return dl2_error_memory(error, "a copy");
    snprintf(copy->origin, sizeof copy->origin, "%016" PRIx64,
             XXH3_64bits_withSeed(text, strlen(text), sum));
    return DL2_OK;
}

/* Reads the record; none is one of nothing. Paths end with 0 whatever the file holds. */
static int read_record(const struct copy *copy, struct dl2_bytes *record, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%s/" RECORD_NAME, copy->options->dest));
    record->size = 0;
    if (dl2_is_file(path))
        DL2_TRY(dl2_file_read(path, MAX_RECORD_BYTES, record, error));
    return dl2_bytes_append(record, "", 1, error);
}

/* Was DEST copied from SOURCE as it is now? */
static bool has_same_origin(const struct copy *copy)
{
    const size_t digits = DL2_FACTS_ORIGIN_DIGITS;
    char origin[DL2_FACTS_ORIGIN_DIGITS + 1];
    if (dl2_dataset_is_database(copy->options->dest))
        return dl2_facts_load_origin(copy->options->dest, origin, NULL) == DL2_OK &&
               !strcmp(origin, copy->origin);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes record = DL2_BYTES_INIT;
    return read_record(copy, &record, NULL) == DL2_OK && record.size > digits &&
           !memcmp(record.data, copy->origin, digits);
}

static int add_path(struct paths *paths, const char *path, struct dl2_error *error)
{
    return dl2_bytes_append(&paths->text, path, strlen(path) + 1, error);
}

static int sort_paths(struct paths *paths, struct dl2_error *error)
{
    const char *text = (const char *)paths->text.data;
    size_t count = 0;
    for (size_t at = 0; at < paths->text.size; at += strlen(text + at) + 1)
        count++;
    DL2_TRY(DL2_NEW(&paths->sorted, count, "a copy", error));
    for (size_t at = 0; at < paths->text.size; at += strlen(text + at) + 1)
        paths->sorted[paths->count++] = text + at;
    qsort(paths->sorted, paths->count, sizeof *paths->sorted, dl2_compare_texts);
    return DL2_OK;
}

static bool has_path(const struct paths *paths, const char *path)
{
    return bsearch(&path, paths->sorted, paths->count, sizeof *paths->sorted, dl2_compare_texts);
}

static void free_paths(struct paths *paths)
{
    dl2_bytes_free(&paths->text);
    free(paths->sorted);
}

/* Notes a file that is about to be written. */
static int note_path(struct copy *copy, const char *path, struct dl2_error *error)
{
    DL2_AUTO_FREE char *record = NULL;
    DL2_TRY(dl2_format(&record, error, "%s/" RECORD_NAME, copy->options->dest));
    if (!copy->journal) {
        const bool begins = !dl2_is_file(record);
        copy->journal = fopen(record, "ae");
        if (copy->journal && begins)
            fprintf(copy->journal, "%s\n", copy->origin);
        else if (copy->journal)
            fputc('\0', copy->journal); /* behind a path that was cut */
    }
    return copy->journal && fwrite(path, strlen(path) + 1, 1, copy->journal) == 1 &&
                   fflush(copy->journal) == 0
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be written", record);
}

/* Writes the record anew. A table has its own record and lock, a store has none. */
static int write_record(struct copy *copy, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes record = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = NULL;
    if (!dl2_output_is_folder(copy->options->dest))
        return DL2_OK;
    DL2_TRY(dl2_format(&path, error, "%s/" RECORD_NAME, copy->options->dest));
    DL2_TRY(dl2_bytes_append(&record, copy->origin, strlen(copy->origin), error));
    DL2_TRY(dl2_bytes_append(&record, "\n", 1, error));
    if (copy->now.text.size)
        DL2_TRY(dl2_bytes_append(&record, copy->now.text.data, copy->now.text.size, error));
    return dl2_file_write(path, record.data, record.size, error);
}

/* ---- Is there anything to do? */

/* Are samples frames of clips, which a container takes clip by clip? */
static bool packs_clips(const struct copy *copy)
{
    return copy->packed && dl2_dataset_kind(copy->dataset) == DL2_SAMPLE_CLIP;
}

/* Does DEST hold the samples of SOURCE as SOURCE is now? */
static bool is_current(const struct copy *copy)
{
    struct dl2_dataset_options everything = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *there;
    const char *dest = copy->options->dest;
    everything.by_frame = true;
    everything.samples = packs_clips(copy) ? DL2_SAMPLES_CLIPS : DL2_SAMPLES_IMAGES;
    if (copy->options->force || dl2_is_address(dest) ||
        dl2_dataset_open(dest, &everything, &there, NULL) < 0)
        return false;
    bool same = !strcmp(dl2_dataset_container(there), copy->options->pack.container) &&
                (packs_clips(copy) || !dl2_output_has_clips(dest)) &&
                dl2_dataset_count(there) == dl2_dataset_count(copy->dataset) &&
                dl2_dataset_has_parts(there) == dl2_dataset_has_parts(copy->dataset) &&
                dl2_dataset_same_classes(there, copy->dataset);
    for (size_t i = 0; same && i < dl2_dataset_count(there); i++) {
        struct dl2_sample a, b;
        dl2_dataset_sample(copy->dataset, i, &a);
        dl2_dataset_sample(there, i, &b);
        same = !strcmp(a.key, b.key) && a.label == b.label && a.bytes == b.bytes;
    }
    dl2_dataset_close(there);
    return same && has_same_origin(copy);
}

/* ---- One sample */

/* The extension of a sample's name, or of its bytes: some containers keep no extensions. */
static const char *extension_of(const struct dl2_sample *sample, const uint8_t *data, size_t size)
{
    if (*sample->extension)
        return sample->extension;
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    return codec ? codec->extension : "";
}

/*
 * Is the file there with the sample's size and time? A source that took another's place is often
 * older than what was copied of that.
 */
static bool is_there(const char *path, const struct dl2_sample *sample)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           (uint64_t)info.st_size == sample->bytes && dl2_mtime_ns(&info) == sample->mtime_ns;
}

/* Gives a file its sample's time. Where that is not possible the next run writes the file again. */
static void keep_time(const char *path, const struct dl2_sample *sample)
{
    const int64_t second = 1000000000;
    const int64_t fraction = (sample->mtime_ns % second + second) % second;
    const struct timespec time = {.tv_sec = (time_t)((sample->mtime_ns - fraction) / second),
                                  .tv_nsec = (long)fraction};
    const struct timespec times[2] = {time, time};
    (void)utimensat(AT_FDCWD, path, times, 0);
}

/*
 * Writes a file to DEST, unless it has these bytes already; `sample`: those of an image, which has
 * its size and time then. What no copy has written there is in the way.
 */
static int put_file(struct copy *copy, const char *name, const uint8_t *data, size_t size,
                    const struct dl2_sample *sample, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_path_join(copy->options->dest, name);
    struct stat info;
    if (!path)
        return dl2_error_memory(error, "a copy");
    const bool is_own = has_path(&copy->before, name);
    if (!is_own && lstat(path, &info) == 0 && !dl2_file_has(path, data, size))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, DL2_OUTPUT_IN_THE_WAY, path, "");
    DL2_TRY(add_path(&copy->now, name, error));
    if (sample ? !copy->options->force && is_there(path, sample) : dl2_file_has(path, data, size))
        return DL2_OK;
    if (!is_own)
        DL2_TRY(note_path(copy, name, error));
    DL2_TRY(dl2_make_folder_of(path, error));
    DL2_TRY(dl2_file_write(path, data, size, error));
    if (!sample)
        return DL2_OK;
    keep_time(path, sample);
    copy->result->written++;
    return DL2_OK;
}

static const char **find_key(const struct copy *copy, const char *key)
{
    return bsearch(&key, copy->keys, dl2_dataset_count(copy->dataset), sizeof *copy->keys,
                   dl2_compare_texts);
}

static bool has_key(const void *context, const char *key)
{
    return find_key(context, key);
}

/* Was its image copied in this run? */
static bool has_copied(const void *context, const char *key)
{
    const struct copy *copy = context;
    const char **found = find_key(copy, key);
    return found && copy->copied[found - copy->keys];
}

static struct dl2_folder_keys keys_of(const struct copy *copy,
                                      bool (*has)(const void *copy, const char *key))
{
    return (struct dl2_folder_keys){has, copy, dl2_dataset_has_label_folders(copy->dataset)};
}

static int put_companion(struct copy *copy, const char *key, const struct dl2_sidecar *item,
                         struct dl2_error *error)
{
    const struct dl2_folder_keys keys = keys_of(copy, has_key);
    DL2_AUTO_FREE char *name = NULL;
    if (!dl2_sidecars_can_hold(&keys, key, item->extension, item->bytes.data, item->bytes.size)) {
        dl2_left_out_count(&copy->left_out, item->extension);
        return DL2_OK;
    }
    DL2_TRY(dl2_sidecars_path(keys.label_folders, key, item->extension, &name, error));
    return put_file(copy, name, item->bytes.data, item->bytes.size, NULL, error);
}

/* An image with what lies beside it. */
static int put_files(struct copy *copy, const struct dl2_sample *sample, const char *extension,
                     const struct reading *reading, struct dl2_error *error)
{
    DL2_AUTO_FREE char *name = NULL;
    DL2_TRY(dl2_format(&name, error, "%s.%s", sample->key, extension));
    DL2_TRY(put_file(copy, name, reading->data, reading->size, sample, error));
    for (size_t i = 0; i < reading->sidecars.count; i++)
        DL2_TRY(put_companion(copy, sample->key, &reading->sidecars.items[i], error));
    copy->copied[find_key(copy, sample->key) - copy->keys] = true;
    return DL2_OK;
}

/* Adds a frame to its clip, which is written with its last one. */
static int pack_frame(struct copy *copy, size_t index, const char *extension,
                      struct reading *reading, struct dl2_error *error)
{
    struct dl2_clip_packer *clip = &copy->clip;
    if (!dl2_clip_packer_expects(clip, index))
        dl2_clip_packer_begin(clip, copy->dataset, index);
    DL2_TRY(dl2_clip_packer_add_sidecars(clip, index, &reading->sidecars, error));
    DL2_TRY(dl2_clip_packer_add(clip, extension, &reading->bytes, error));
    if (!dl2_clip_packer_is_whole(clip)) {
        copy->clip_frames++;
        copy->clip_bytes += reading->size;
        return DL2_OK;
    }
    DL2_TRY(dl2_clip_packer_write(clip, copy->writer, error));
    copy->clip_frames = copy->clip_bytes = 0;
    return DL2_OK;
}

/* Behind the last frame of a clip: takes back the frames of one that could not be written whole. */
static void end_clip(struct copy *copy, size_t index)
{
    const char *key;
    const struct dl2_image_range clip = dl2_dataset_clip_of(copy->dataset, index, &key);
    if (index + 1 < clip.first + clip.count)
        return;
    if (copy->clip_frames) {
        copy->result->images -= copy->clip_frames;
        copy->result->written -= copy->clip_frames;
        copy->result->failed += copy->clip_frames;
        copy->result->bytes -= copy->clip_bytes;
    }
    if (copy->clip_frames || copy->clip.clip.count)
        dl2_progress_message(copy->progress,
                             "%s: the clip is left out with all its frames, for lack of one", key);
    copy->clip_frames = copy->clip_bytes = 0;
    copy->clip.clip.count = 0;
}

static int write_sample(struct copy *copy, size_t index, struct reading *reading,
                        struct dl2_error *error)
{
    const uint8_t *data = reading->data;
    const size_t size = reading->size;
    struct dl2_sample sample;
    dl2_dataset_sample(copy->dataset, index, &sample);
    const char *extension = extension_of(&sample, data, size);
    if (!*extension)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s: not an image", sample.path);
    if (!copy->writer)
        DL2_TRY(put_files(copy, &sample, extension, reading, error));
    else if (packs_clips(copy))
        DL2_TRY(pack_frame(copy, index, extension, reading, error));
    else
        DL2_TRY(dl2_writer_add_with_sidecars(copy->writer, sample.key, extension, sample.label,
                                             data, size, &reading->sidecars, error));
    copy->result->written += copy->writer != NULL;
    copy->result->images++;
    copy->result->bytes += size;
    return DL2_OK;
}

/* Is it the sample that is at fault, and not the disk? */
static bool is_samples_fault(const struct copy *copy, int status)
{
    return status == DL2_ERR_FORMAT || status == DL2_ERR_UNSUPPORTED || status == DL2_ERR_LIMIT ||
           (copy->writer && status == DL2_ERR_ARGUMENT);
}

/* Does an earlier sample have the same key? A container takes only the first of these. */
static bool is_twin(const struct copy *copy, size_t index)
{
    struct dl2_sample one, two;
    if (!copy->writer || index == 0)
        return false;
    dl2_dataset_sample(copy->dataset, index, &two);
    for (size_t i = index; i-- > 0;) {
        dl2_dataset_sample(copy->dataset, i, &one);
        if (!strcmp(one.key, two.key))
            return true;
        /* Names with one stem stand together but for what sorts between "." and the stem's end. */
        if (strncmp(one.key, two.key, strlen(two.key)) != 0)
            return false;
    }
    return false;
}

/* On any thread; what goes wrong is told in the samples' order, by write_next(). */
static int read_ahead(void *context, unsigned worker, size_t slot, size_t item,
                      struct dl2_error *error)
{
    (void)worker, (void)error;
    struct copy *copy = context;
    struct reading *reading = &copy->readings[slot];
    struct dl2_sample sample;
    dl2_error_clear(&reading->error);
    if (!is_twin(copy, item)) {
        if (dl2_dataset_read(copy->dataset, item, &reading->bytes, &reading->data, &reading->size,
                             &reading->error) == DL2_OK)
            dl2_dataset_read_sidecars(copy->dataset, item, &reading->sidecars, &reading->error);
        return DL2_OK;
    }
    dl2_dataset_sample(copy->dataset, item, &sample);
    dl2_error_set(&reading->error, DL2_ERR_UNSUPPORTED,
                  "%s: another file has the same name but for the extension", sample.path);
    return DL2_OK;
}

static int write_next(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    struct copy *copy = context;
    struct reading *reading = &copy->readings[slot];
    struct dl2_error *own = &reading->error;
    int status = own->status;
    if (status == DL2_OK)
        status = write_sample(copy, item, reading, own);
    dl2_sidecars_free(&reading->sidecars);
    if (status < 0 && !is_samples_fault(copy, status))
        return dl2_error_copy(error, own);
    if (status < 0) {
        copy->result->failed++;
        dl2_progress_message(copy->progress, "%s", own->message);
    }
    if (packs_clips(copy))
        end_clip(copy, item);
    dl2_progress_update(copy->progress, item + 1, NULL);
    return DL2_OK;
}

static int copy_all(struct copy *copy, struct dl2_error *error)
{
    const unsigned wanted = copy->options->jobs ? copy->options->jobs : dl2_cpu_count();
    const unsigned jobs = dl2_dataset_is_in_order(copy->dataset) ? 1 : wanted;
    const struct dl2_parallel loop = {.jobs = jobs,
                                      .window = 2 * (size_t)jobs,
                                      .count = dl2_dataset_count(copy->dataset),
                                      .work = read_ahead,
                                      .emit = write_next,
                                      .context = copy};
    copy->progress->total = loop.count;
    DL2_TRY(DL2_NEW(&copy->readings, loop.window, "a copy", error));
    const int status = dl2_parallel_run(&loop, error);
    for (size_t i = 0; i < loop.window; i++) {
        dl2_bytes_free(&copy->readings[i].bytes);
        dl2_sidecars_free(&copy->readings[i].sidecars);
    }
    free(copy->readings);
    return status;
}

/* ---- A folder DEST */

/* The size of a file that lay in DEST and that no copy has written; UINT64_MAX: there is none. */
static uint64_t foreign_size(const struct copy *copy, const char *name)
{
    const struct dl2_file_list *there = &copy->there;
    char **found = there->count
                       ? bsearch(&name, there->paths, there->count, sizeof name, dl2_compare_texts)
                       : NULL;
    return found && !has_path(&copy->before, name) ? there->bytes[found - there->paths]
                                                   : UINT64_MAX;
}

/* Looks for what would be overwritten before anything is. What has an image's size is compared with
 * its bytes by put_file(). */
static int check_foreign(const struct copy *copy, struct dl2_error *error)
{
    DL2_AUTO_FREE char *first = NULL, *more = NULL;
    size_t count = foreign_size(copy, DL2_FACTS_SUMMARY_NAME) != UINT64_MAX;
    if (count)
        DL2_TRY(dl2_format(&first, error, "%s", DL2_FACTS_SUMMARY_NAME));
    for (size_t i = 0; i < dl2_dataset_count(copy->dataset); i++) {
        struct dl2_sample sample;
        DL2_AUTO_FREE char *name = NULL;
        dl2_dataset_sample(copy->dataset, i, &sample);
        DL2_TRY(dl2_format(&name, error, "%s.%s", sample.key, sample.extension));
        const uint64_t size = foreign_size(copy, name);
        if (size == UINT64_MAX || size == sample.bytes)
            continue;
        if (!count++)
            DL2_TRY(dl2_format(&first, error, "%s", name));
    }
    if (!count)
        return DL2_OK;
    DL2_AUTO_FREE char *path = dl2_path_join(copy->options->dest, first);
    DL2_TRY(dl2_format(&more, error, " with %zu more files", count - 1));
    return dl2_error_set(error, DL2_ERR_ARGUMENT, DL2_OUTPUT_IN_THE_WAY, path ? path : first,
                         count > 1 ? more : "");
}

static int begin_folder(struct copy *copy, struct dl2_error *error)
{
    const size_t count = dl2_dataset_count(copy->dataset);
    DL2_TRY(DL2_NEW(&copy->keys, count, "a copy", error));
    DL2_TRY(DL2_NEW(&copy->copied, count, "a copy", error));
    for (size_t i = 0; i < count; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(copy->dataset, i, &sample);
        copy->keys[i] = sample.key;
    }
    qsort(copy->keys, count, sizeof *copy->keys, dl2_compare_texts);
    DL2_TRY(dl2_list_files(copy->options->dest, &copy->there, error));
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes record = DL2_BYTES_INIT;
    DL2_TRY(read_record(copy, &record, error));
    if (record.size > RECORD_HEAD)
        DL2_TRY(dl2_bytes_append(&copy->before.text, record.data + RECORD_HEAD,
                                 record.size - RECORD_HEAD, error));
    DL2_TRY(sort_paths(&copy->before, error));
    return check_foreign(copy, error);
}

/* What becomes of the files that lay in DEST and that this copy has not written. */
struct tidying {
    size_t removed, strays, beside; /* images removed; images left; files of others beside images */
    const char *first_beside;
};

/* An image, or a file of an earlier copy, that SOURCE has no more. */
static int tidy_stray(struct copy *copy, struct tidying *tidying, const char *path, bool image,
                      bool remove, struct dl2_error *error)
{
    bool gone = false;
    if (remove)
        DL2_TRY(dl2_output_remove(copy->options->dest, path, &gone, error));
    if (image && !gone && tidying->strays++ < MAX_STRAYS_NAMED)
        dl2_progress_message(copy->progress, "%s/%s: no source image accounts for it",
                             copy->options->dest, path);
    tidying->removed += image && gone;
    return !gone && has_path(&copy->before, path) ? add_path(&copy->now, path, error) : DL2_OK;
}

/*
 * What earlier copies have put beside an image that was copied, and SOURCE lacks, goes with the
 * image that it belonged to. Images that failed keep what they have.
 */
static int tidy_file(struct copy *copy, struct tidying *tidying, const char *path,
                     struct dl2_error *error)
{
    const struct dl2_folder_keys all = keys_of(copy, has_key), copied = keys_of(copy, has_copied);
    const bool own = has_path(&copy->before, path), image = dl2_codec_is_image_file(path);
    DL2_AUTO_FREE char *stem = strndup(path, dl2_path_stem_length(path));
    if (!stem)
        return dl2_error_memory(error, "a copy");
    if (dl2_sidecars_is_companion(&all, path)) {
        if (!own && !tidying->beside++)
            tidying->first_beside = path;
        const bool stale = own && dl2_sidecars_is_companion(&copied, path);
        return own ? tidy_stray(copy, tidying, path, false, stale, error) : DL2_OK;
    }
    if (image && find_key(copy, stem) && !has_copied(copy, stem))
        return own ? add_path(&copy->now, path, error) : DL2_OK;
    const bool facts = !strcmp(path, DL2_FACTS_SUMMARY_NAME);
    return image || own
               ? tidy_stray(copy, tidying, path, image, copy->options->prune || facts, error)
               : DL2_OK;
}

static int tidy_folder(struct copy *copy, struct dl2_error *error)
{
    struct dl2_progress *progress = copy->progress;
    const char *dest = copy->options->dest;
    struct tidying tidying = {0};
    struct paths written = {0};
    DL2_TRY(dl2_bytes_append(&written.text, copy->now.text.data, copy->now.text.size, error));
    int status = sort_paths(&written, error);
    for (size_t i = 0; status == DL2_OK && i < copy->there.count; i++)
        if (!has_path(&written, copy->there.paths[i]))
            status = tidy_file(copy, &tidying, copy->there.paths[i], error);
    free_paths(&written);
    DL2_TRY(status);
    if (tidying.strays > MAX_STRAYS_NAMED)
        dl2_progress_message(progress, "%s: and %zu more like it", dest,
                             tidying.strays - MAX_STRAYS_NAMED);
    if (tidying.strays)
        dl2_progress_message(
            progress,
            copy->options->prune
                ? "%s: they lie elsewhere, behind symbolic links, and are left alone"
                : "%s: such images are left alone; --prune removes them",
            dest);
    if (tidying.removed)
        dl2_progress_message(progress,
                             "%s: %zu images that no source image accounts for were removed", dest,
                             tidying.removed);
    if (tidying.beside)
        dl2_progress_message(progress, DL2_SIDECARS_FOREIGN, dest, tidying.first_beside,
                             tidying.beside);
    return DL2_OK;
}

/* ---- The run */

static void tell_left_out(const struct copy *copy)
{
    const char *dest = copy->options->dest;
    const char *why = dl2_container_leaves_out(copy->options->pack.container);
    dl2_progress_tell(copy->progress, dest,
                      copy->writer ? dl2_writer_left_out(copy->writer)
                                   : dl2_left_out_message(&copy->left_out, DL2_LEFT_OUT, why));
    dl2_progress_tell(copy->progress, dest, dl2_clip_packer_left_out(&copy->clip));
    if (dl2_dataset_ignored(copy->dataset))
        dl2_progress_message(copy->progress,
                             "%s: files that are neither images nor beside one, such as "
                             "annotations, are not copied: %zu",
                             copy->options->source, dl2_dataset_ignored(copy->dataset));
}

/* Completes DEST. The summary is the last of a folder's files; else the writer takes it along. */
static int complete_copy(struct copy *copy, struct dl2_error *error)
{
    if (copy->writer) {
        dl2_writer_set_summary(copy->writer, copy->summary);
        dl2_writer_set_origin(copy->writer, copy->origin);
        DL2_TRY(dl2_writer_finish(copy->writer, error));
    } else {
        if (copy->summary)
            DL2_TRY(add_path(&copy->now, DL2_FACTS_SUMMARY_NAME, error));
        DL2_TRY(tidy_folder(copy, error));
    }
    DL2_TRY(write_record(copy, error));
    tell_left_out(copy);
    return copy->summary && dl2_output_is_folder(copy->options->dest)
               ? dl2_facts_save(copy->options->dest, copy->summary, error)
               : DL2_OK;
}

static int run_copy(struct copy *copy, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = copy->options;
    struct dl2_dataset_options images =
        dl2_image_dataset_options(options->samples, &options->members);
    images.class_folders = !copy->packed;
    images.in_order = !options->shuffle;
    images.labels = options->labels;
    images.subset = options->subset;
    images.val_fraction = 0; /* where no names are of splits, the subset is one of all images */
    DL2_TRY(dl2_dataset_open(options->source, &images, &copy->dataset, error));
    dl2_dataset_tell(copy->dataset, options->source,
                     copy->packed || options->subset.fraction > 0 || options->labels,
                     copy->progress);
    copy->result->failed = dl2_dataset_missing(copy->dataset);
    DL2_TRY(dl2_output_check_source(copy->dataset, options->source, options->pack.container,
                                    copy->progress, error));
    if (options->shuffle)
        DL2_TRY(dl2_dataset_shuffle(copy->dataset, *options->shuffle, error));
    DL2_TRY(load_summary(copy, error));
    if (copy->summary && options->subset.fraction > 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s is a variant, and a part of one is none: copy the subset of its "
                             "original, and make the variant of that",
                             options->source);
    DL2_TRY(find_origin(copy, error));
    if (copy->packed && is_current(copy)) {
        copy->result->images = dl2_dataset_count(copy->dataset);
        copy->result->bytes = dl2_dataset_bytes(copy->dataset);
        return DL2_OK;
    }
    DL2_TRY(dl2_output_open_copy(options, copy->dataset, &copy->writer, error));
    if (!copy->packed)
        DL2_TRY(begin_folder(copy, error));
    DL2_TRY(copy_all(copy, error));
    if (!copy->result->images)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: nothing could be copied", options->source);
    return complete_copy(copy, error);
}

int dl2_copy(const struct dl2_transcode_options *options, struct dl2_copy_result *result,
             struct dl2_error *error)
{
    *result = (struct dl2_copy_result){0};
    struct copy copy = {.options = options,
                        .progress = options->progress,
                        .result = result,
                        .packed = dl2_container_is_packed(options->pack.container),
                        .origin = "0000000000000000"};
    struct dl2_output_lock lock = {.fd = -1};
    int status = dl2_output_begin_copy(options, &lock, error);
    if (status == DL2_OK)
        status = run_copy(&copy, error);
    if (status == DL2_ERR_LOST && copy.writer && dl2_is_address(options->dest))
        dl2_writer_leave(copy.writer);
    dl2_writer_close(copy.writer);
    dl2_clip_packer_free(&copy.clip);
    dl2_dataset_close(copy.dataset);
    dl2_left_out_free(&copy.left_out);
    free_paths(&copy.before);
    free_paths(&copy.now);
    dl2_file_list_free(&copy.there);
    json_decref(copy.summary);
    free(copy.keys);
    free(copy.copied);
    if (copy.journal)
        fclose(copy.journal);
    dl2_output_unlock(&lock);
    return status;
}
