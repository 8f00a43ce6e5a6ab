/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/score_source.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/subset_options.h"
#include "dataset/tell.h"
#include "quality/image_dataset.h"
#include "remote/remote_options.h"

#include <stdlib.h>
#include <string.h>

/* Largest encoded file that is read, bytes. */
#define MAX_FILE_BYTES ((uint64_t)1 << 31)

static int compare_keys(const void *left, const void *right)
{
    const struct dl2_score_key *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* ---- Videos */

static int open_video(const struct dl2_dataset *dataset, size_t sample, uint64_t max_pixels,
                      struct dl2_bytes *scratch, struct dl2_video **video, struct dl2_error *error)
{
    const uint8_t *data;
    size_t size;
    struct dl2_sample facts;
    dl2_dataset_sample(dataset, sample, &facts);
    int status = dl2_dataset_read(dataset, sample, scratch, &data, &size, error);
    if (status == DL2_OK)
        status = dl2_video_open(data, size, max_pixels, video, error);
    if (status < 0 && strncmp(error->message, facts.path, strlen(facts.path)) != 0)
        dl2_error_prefix(error, "%s", facts.path);
    return status;
}

/* Lists the frames of all videos. One that can't be read is named and has none, so that all of them
 * are missing, or too many, in what it is compared with. */
static int list_frames(struct dl2_score_source *source, const struct dl2_scoring_options *scoring,
                       struct dl2_error *error)
{
    const size_t samples = dl2_dataset_count(source->dataset);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes scratch = DL2_BYTES_INIT;
    size_t count = 0;
    DL2_TRY(DL2_NEW(&source->first, samples + 1, "videos", error));
    for (size_t i = 0; i < samples; i++) {
        struct dl2_video *video = NULL;
        struct dl2_error own = DL2_ERROR_INIT;
        source->first[i] = count;
        const int status =
            open_video(source->dataset, i, scoring->max_pixels, &scratch, &video, &own);
        if (status == DL2_OK)
            count += dl2_video_info(video)->frames;
        else if (status == DL2_ERR_MEMORY || status == DL2_ERR_LOST || dl2_video_missing())
            return dl2_error_copy(error, &own);
        else if (scoring->progress)
            dl2_progress_message(scoring->progress, "%s", own.message);
        dl2_video_close(video);
    }
    source->first[samples] = source->count = count;
    DL2_TRY(DL2_NEW(&source->sample, count, "videos", error));
    DL2_TRY(DL2_NEW(&source->frames, count + 1, "videos", error));
    for (size_t i = 0; i < samples; i++) {
        struct dl2_sample facts;
        dl2_dataset_sample(source->dataset, i, &facts);
        for (size_t f = source->first[i]; f < source->first[i + 1]; f++) {
            source->sample[f] = i;
            DL2_TRY(
                dl2_format(&source->frames[f], error, "%s/%05zu", facts.key, f - source->first[i]));
        }
    }
    return DL2_OK;
}

int dl2_score_source_frame(const struct dl2_score_source *source, size_t index, uint64_t max_pixels,
                           struct dl2_score_video *open, struct dl2_bytes *scratch,
                           struct dl2_image *image, struct dl2_error *error)
{
    const size_t sample = source->sample[index];
    if (!open->video || open->sample != sample) {
        dl2_video_close(open->video);
        open->video = NULL;
        open->sample = sample;
        DL2_TRY(open_video(source->dataset, sample, max_pixels, scratch, &open->video, error));
    }
    return dl2_video_image(open->video, index - source->first[sample], NULL, &open->resizer, image,
                           error);
}

void dl2_score_video_free(struct dl2_score_video *open)
{
    dl2_video_close(open->video);
    dl2_resizer_free(&open->resizer);
}

/* ---- Sources */

int dl2_score_source_open(struct dl2_score_source *source, const char *path,
                          const struct dl2_scoring_options *scoring, struct dl2_error *error)
{
    *source = (struct dl2_score_source){.file = path, .count = 1};
    if (!dl2_is_file(path) || dl2_dataset_is_known(path)) {
        const struct dl2_member_choice members =
            dl2_members_of(&scoring->members, path, scoring->any_has_members);
        struct dl2_dataset_options options = dl2_image_dataset_options(scoring->samples, &members);
        options.decode_slice = dl2_gray_decode;
        options.subset = scoring->subset;
        options.remote = dl2_remote_options_of(&scoring->remote, path, scoring->any_is_remote);
        options.takes_videos = true;
        DL2_TRY(dl2_dataset_open(path, &options, &source->dataset, error));
        dl2_dataset_tell(source->dataset, path, false, scoring->progress);
        source->count = dl2_dataset_count(source->dataset);
        if (dl2_dataset_kind(source->dataset) == DL2_SAMPLE_VIDEO)
            DL2_TRY(list_frames(source, scoring, error));
    }
    DL2_TRY(DL2_NEW(&source->keys, source->count, "keys", error));
    for (size_t i = 0; i < source->count; i++) {
        struct dl2_sample sample;
        dl2_score_source_sample(source, i, &sample);
        source->keys[i] = (struct dl2_score_key){sample.key, i};
    }
    qsort(source->keys, source->count, sizeof *source->keys, compare_keys);
    return DL2_OK;
}

void dl2_score_source_close(struct dl2_score_source *source)
{
    dl2_dataset_close(source->dataset);
    free(source->keys);
    free(source->first);
    free(source->sample);
    dl2_free_list(source->frames);
    *source = (struct dl2_score_source){0};
}

void dl2_score_source_sample(const struct dl2_score_source *source, size_t index,
                             struct dl2_sample *sample)
{
    if (source->frames) {
        const size_t video = source->sample[index], first = source->first[video];
        const uint64_t frames = source->first[video + 1] - first, number = index - first;
        dl2_dataset_sample(source->dataset, video, sample);
        sample->key = source->frames[index];
        sample->bytes = /* so that those of all are the file's */
            (number + 1) * sample->bytes / frames - number * sample->bytes / frames;
    } else if (source->dataset)
        dl2_dataset_sample(source->dataset, index, sample);
    else
        *sample = (struct dl2_sample){
            .key = "", .path = source->file, .name = dl2_path_base(source->file), .label = -1};
}

int dl2_score_source_read(const struct dl2_score_source *source, size_t index,
                          struct dl2_bytes *scratch, const uint8_t **data, size_t *size,
                          struct dl2_error *error)
{
    if (source->dataset)
        return dl2_dataset_read(source->dataset, index, scratch, data, size, error);
    DL2_TRY(dl2_file_read(source->file, MAX_FILE_BYTES, scratch, error));
    *data = scratch->data;
    *size = scratch->size;
    return DL2_OK;
}

/* The first of this key in order, or behind where it would be; *count is how many there are. */
static const struct dl2_score_key *find_key(const struct dl2_score_source *source, const char *key,
                                            size_t *count)
{
    size_t low = 0, high = source->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(source->keys[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < source->count && !strcmp(source->keys[low + *count].key, key))
        ++*count;
    return source->keys + low;
}

int dl2_score_source_find(const struct dl2_score_source *source, const char *key, bool *found,
                          size_t *index, struct dl2_error *error)
{
    size_t count;
    const struct dl2_score_key *first = find_key(source, key, &count);
    *found = count > 0;
    if (count)
        *index = first->index;
    if (count < 2)
        return DL2_OK;
    struct dl2_sample one, other;
    dl2_score_source_sample(source, first[0].index, &one);
    dl2_score_source_sample(source, first[1].index, &other);
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "%s and %s differ in their extensions alone, so neither can be paired",
                         one.path, other.path);
}

int dl2_score_source_extra(const struct dl2_score_source *source,
                           const struct dl2_score_source *other, char ***extra, size_t *count,
                           struct dl2_error *error)
{
    for (size_t i = 0; source->dataset && i < source->count; i++) {
        const char *key = source->keys[i].key;
        size_t found;
        find_key(other, key, &found);
        if (!found && (!i || strcmp(key, source->keys[i - 1].key) != 0))
            DL2_TRY(dl2_list_append(extra, count, strdup(key), error));
    }
    return DL2_OK;
}
