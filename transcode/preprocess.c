/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/preprocess.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "common/thread.h"
#include "dataset/tell.h"
#include "quality/image_dataset.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/source_items.h"
#include "volumes/volume.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_NAME "dl2-preprocess.json"
#define SCHEMA      "dl2-preprocess/1"

enum { STRAYS_NAMED = 10, NONE = 3 };

const char *const dl2_preprocess_formats[] = {"npy", "nii", "nii.gz", NULL};
static const char *const label_rules[] = {"nearest", "linear", "mlperf"};

/* What the voxels of a channel come to: the mean by Welford's method, over volumes by Chan's. */
struct moments {
    double count, mean, squares; /* of the distances to the mean */
};

/* A volume on its way. */
struct work {
    struct dl2_volume *volume, *labels; /* labels: NULL without */
    struct dl2_volume_info info;        /* of what is written */
    float *voxels;                      /* [channels][depth][height][width] */
    uint8_t *mask;
};

/* What comes of a volume, until it is counted in order. */
struct outcome {
    struct dl2_error error;
    bool labeled, current;
    size_t beside;           /* further files */
    struct moments *moments; /* [channels] */
    char towards[3];         /* of the source */
};

struct preprocess {
    const struct dl2_transcode_options *options;
    const struct dl2_preprocess_options *how;
    struct dl2_preprocess_result *result;
    struct dl2_dataset *dataset;
    struct dl2_source_items source;
    json_t *settings;
    int64_t began; /* when the record was written */
    struct moments moments[DL2_VOLUME_MAX_CHANNELS];
    struct outcome *outcomes; /* a slot each */
    size_t beside, other_ways, first_channels;
    char towards[3];  /* of the first volume that says it */
    bool is_counting; /* for the mean of the dataset: nothing is written */
};

/* ---- Options */

/* Numbers with commas between them; all finite. */
static bool parse_numbers(const char *text, double *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtod(text, &end);
        if (end == text || !isfinite(numbers[i]) || *end != (i + 1 < count ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

int dl2_preprocess_parse_spacing(const char *text, void *spacing, struct dl2_error *error)
{
    double *mm = spacing;
    return parse_numbers(text, mm, 3) && mm[0] > 0 && mm[1] > 0 && mm[2] > 0
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "'%s' is not three lengths in mm, of depth, height and width, such "
                               "as 1.6,1.2,1.2",
                               text);
}

int dl2_preprocess_parse_clip(const char *text, void *clip, struct dl2_error *error)
{
    double *ends = clip;
    return parse_numbers(text, ends, 2) && ends[0] < ends[1]
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "'%s' is not LOW,HIGH with LOW < HIGH, such as -79,304", text);
}

int dl2_preprocess_parse_normal(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_preprocess_options *how = value;
    how->of_dataset = !strcmp(text, "dataset");
    how->normal[0] = how->normal[1] = NAN;
    return how->of_dataset || (parse_numbers(text, how->normal, 2) && how->normal[1] > 0)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "'%s' is neither 'dataset' nor MEAN,DEVIATION with a deviation "
                               "above 0, such as 101,76.9",
                               text);
}

/* The axis of the body that a letter lies on; NONE: it is no letter of these. */
static unsigned axis_of(char letter)
{
    static const char letters[] = "RLAPSI";
    const char *found = letter ? strchr(letters, letter) : NULL;
    return found ? (unsigned)(found - letters) / 2 : NONE;
}

int dl2_preprocess_parse_towards(const char *text, void *towards, struct dl2_error *error)
{
    unsigned axes = 0;
    for (size_t i = 0; i < 3 && text[i] && axis_of(text[i]) != NONE; i++)
        axes |= 1u << axis_of(text[i]);
    if (strlen(text) != 3 || axes != 7)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not three letters, of R or L, A or P, S or I: the sides that "
                             "depth, height and width run to, such as SPL",
                             text);
    memcpy(towards, text, 3);
    return DL2_OK;
}

/* ---- The record of the settings */

static json_t *describe_settings(const struct preprocess *run)
{
    const struct dl2_preprocess_options *how = run->how;
    json_t *means = json_array(), *deviations = json_array(), *spacing = json_array();
    for (size_t c = 0; how->of_dataset && c < run->first_channels; c++) {
        const struct moments *m = &run->moments[c];
        json_array_append_new(means, json_real(m->mean));
        json_array_append_new(deviations, json_real(sqrt(m->squares / m->count)));
    }
    if (!how->of_dataset && !isnan(how->normal[0])) {
        json_array_append_new(means, json_real(how->normal[0]));
        json_array_append_new(deviations, json_real(how->normal[1]));
    }
    for (size_t i = 0; i < 3 && !isnan(how->spacing[0]); i++)
        json_array_append_new(spacing, json_real(how->spacing[i]));
    return json_pack("{s:s, s:o, s:i, s:s, s:s#, s:o, s:o, s:o, s:o, s:s}", "schema", SCHEMA,
                     "spacing", spacing, "order", how->cubic ? 3 : 1, "label_order",
                     label_rules[how->labels], "orientation", how->towards,
                     how->towards[0] ? (size_t)3 : 0, "clip_low", dl2_json_real(how->clip[0]),
                     "clip_high", dl2_json_real(how->clip[1]), "mean", means, "deviation",
                     deviations, "format", dl2_preprocess_formats[how->format]);
}

/* Leaves the record of an earlier run that had the same settings, or writes it anew, so that all
 * volumes are older. Refuses volumes that no run of this command has made. */
static int begin_record(struct preprocess *run, struct dl2_error *error)
{
    const char *dest = run->options->dest;
    DL2_AUTO_FREE char *path = NULL;
    json_auto_t *before = NULL;
    struct stat info;
    run->settings = describe_settings(run);
    if (!run->settings)
        return dl2_error_memory(error, "a record");
    DL2_TRY(dl2_format(&path, error, "%s/" RECORD_NAME, dest));
    if (dl2_is_file(path))
        DL2_TRY(dl2_json_load(path, SCHEMA, &before, error));
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list list = {0};
    DL2_TRY(dl2_list_files(dest, &list, error));
    for (size_t i = 0; !before && i < list.count; i++)
        if (dl2_is_volume_file(list.paths[i]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s/" DL2_OUTPUT_IN_THE_WAY, dest,
                                 list.paths[i], "");
    if (before && !json_equal(before, run->settings))
        dl2_progress_message(run->options->progress,
                             "%s: it was made by other settings: all volumes are made again", dest);
    if (!json_equal(before, run->settings) || run->options->force)
        DL2_TRY(dl2_json_save(path, run->settings, error));
    if (stat(path, &info) < 0)
        return dl2_error_system(error, "%s", path);
    run->began = dl2_mtime_ns(&info);
    return DL2_OK;
}

static int path_of(const struct preprocess *run, const char *key, bool labels, char **path,
                   struct dl2_error *error)
{
    return dl2_format(path, error, "%s/%s%s.%s", run->options->dest, key, labels ? ".mask" : "",
                      dl2_preprocess_formats[run->how->format]);
}

/* Is the file there, no older than the record and its source? */
static bool is_current(const struct preprocess *run, const char *key, bool labels,
                       const struct stat *source)
{
    DL2_AUTO_FREE char *path = NULL;
    struct stat info;
    return path_of(run, key, labels, &path, NULL) == DL2_OK && stat(path, &info) == 0 &&
           dl2_mtime_ns(&info) >= run->began && dl2_mtime_ns(&info) >= dl2_mtime_ns(source);
}

/* ---- A volume, on any thread */

/* Opens the volume, and the first file of labels that lies beside it. */
static int open_volumes(const struct preprocess *run, const struct dl2_source_item *item,
                        struct work *work, struct outcome *outcome, struct dl2_error *error)
{
    const char *extension, *path;
    DL2_TRY(dl2_dataset_open_volume(run->dataset, item->sample, NULL, &work->volume, error));
    work->info = *dl2_volume_info(work->volume);
    for (size_t i = 0; (extension = dl2_dataset_sidecar_at(run->dataset, item->sample, i, &path));
         i++) {
        if (work->labels || strncmp(extension, "mask.", 5) != 0 || !dl2_is_volume_file(path))
            outcome->beside++;
        else
            DL2_TRY(dl2_volume_open(path, dl2_gray_decode, &work->labels, error));
    }
    outcome->labeled = work->labels != NULL;
    memcpy(outcome->towards, work->info.towards, sizeof outcome->towards);
    return DL2_OK;
}

/* Do the labels lie on the volume, as far as the headers say? */
static int check_labels(const struct work *work, struct dl2_error *error)
{
    const struct dl2_volume_info *info = &work->info;
    const struct dl2_volume_info *mask = dl2_volume_info(work->labels);
    const size_t *a = mask->size, *b = info->size;
    if (memcmp(a, b, sizeof info->size) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "its labels are of %zux%zux%zu voxels, and it is of %zux%zux%zu", a[0],
                             a[1], a[2], b[0], b[1], b[2]);
    if (mask->towards[0] && info->towards[0] &&
        memcmp(mask->towards, info->towards, sizeof info->towards) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the axes of its labels run to %.3s, and its own to %.3s",
                             mask->towards, info->towards);
    for (int i = 0; i < 3; i++)
        if (mask->spacing[i] > 0 && info->spacing[i] > 0 &&
            fabsf(mask->spacing[i] - info->spacing[i]) > 1e-3f * info->spacing[i])
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "the spacing of its labels is %g, %g, %g mm, and its own %g, %g, "
                                 "%g",
                                 (double)mask->spacing[0], (double)mask->spacing[1],
                                 (double)mask->spacing[2], (double)info->spacing[0],
                                 (double)info->spacing[1], (double)info->spacing[2]);
    return DL2_OK;
}

/* How the axes come to run as they are to. */
static int find_turn(const struct preprocess *run, const struct work *work,
                     struct dl2_volume_turn *turn, struct dl2_error *error)
{
    const char *to = run->how->towards, *from = work->info.towards;
    *turn = (struct dl2_volume_turn){{0, 1, 2}, {false, false, false}};
    if (!to[0])
        return DL2_OK;
    if (!from[0])
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it does not say how its axes lie (sform and qform), so it cannot be "
                             "turned to %.3s; leave --orientation out if all volumes lie alike",
                             to);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned axis = 0; axis < 3; axis++)
            if (axis_of(from[axis]) == axis_of(to[i])) {
                turn->from[i] = axis;
                turn->reverse[i] = from[axis] != to[i];
            }
    return DL2_OK;
}

/* The header of the turned volume. Column 2 - i of the affine matrix is of axis i. */
static void turn_header(struct dl2_volume_info *info, const struct dl2_volume_turn *turn)
{
    const struct dl2_volume_info old = *info;
    for (int i = 0; i < 3; i++) {
        const unsigned axis = turn->from[i];
        info->size[i] = old.size[axis];
        info->spacing[i] = old.spacing[axis];
        for (int k = 0; k < 3; k++) {
            const float step = old.affine[k][2 - axis];
            info->affine[k][2 - i] = turn->reverse[i] ? -step : step;
            info->affine[k][3] += turn->reverse[i] ? step * (float)(old.size[axis] - 1) : 0;
        }
    }
}

static int check_spacing(const struct dl2_volume_info *info, struct dl2_error *error)
{
    const float *mm = info->spacing;
    return mm[0] > 0 && mm[1] > 0 && mm[2] > 0
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "its header has no spacing (%g, %g, %g), and so it cannot be "
                               "resampled; set pixdim, or leave --spacing out",
                               (double)mm[0], (double)mm[1], (double)mm[2]);
}

/* The grid of the result: as many voxels as MLPerf has, rounded down, and at least one. */
static int find_grid(const struct preprocess *run, struct dl2_volume_info *info,
                     struct dl2_error *error)
{
    uint64_t bytes;
    if (!isnan(run->how->spacing[0]))
        DL2_TRY(check_spacing(info, error));
    for (int i = 0; i < 3 && !isnan(run->how->spacing[0]); i++) {
        const size_t old = info->size[i];
        const double size = (double)info->spacing[i] / run->how->spacing[i] * (double)old;
        if (size > INT32_MAX)
            return dl2_error_set(error, DL2_ERR_LIMIT, "resampled, it has %g voxels along an axis",
                                 size);
        info->size[i] = size < 1 ? 1 : (size_t)size;
        const double step = info->size[i] > 1 ? (double)(old - 1) / (double)(info->size[i] - 1) : 1;
        info->spacing[i] = (float)(step * (double)info->spacing[i]);
        for (int k = 0; k < 3; k++)
            info->affine[k][2 - i] *= (float)step;
    }
    memcpy(info->towards, run->how->towards[0] ? run->how->towards : info->towards, 3);
    info->type = DL2_VOXEL_F32;
    info->slope = 1;
    info->intercept = 0;
    info->minimum = 0;
    info->swapped = false;
    info->offset = 0;
    return dl2_volume_check(info, &bytes, error);
}

/* Turns and resamples a channel, which it replaces. */
static int move_channel(const struct preprocess *run, const struct work *work,
                        const struct dl2_volume_turn *turn, float **channel,
                        struct dl2_error *error)
{
    size_t size[3];
    memcpy(size, dl2_volume_info(work->volume)->size, sizeof size);
    void *voxels = *channel;
    const int status = dl2_volume_turn(&voxels, sizeof **channel, size, turn, error);
    *channel = voxels;
    DL2_TRY(status);
    return dl2_volume_resample(channel, size, work->info.size, run->how->cubic ? 3 : 1, error);
}

/* The part of a volume that is all of it. */
static struct dl2_volume_part whole(const size_t size[3])
{
    return (struct dl2_volume_part){.size = {size[0], size[1], size[2]},
                                    .out = {size[0], size[1], size[2]}};
}

static int make_voxels(const struct preprocess *run, struct work *work,
                       const struct dl2_volume_turn *turn, struct dl2_error *error)
{
    const size_t *old = dl2_volume_info(work->volume)->size, *new = work->info.size;
    const size_t count = old[0] * old[1] * old[2], made = new[0] * new[1] * new[2];
    const size_t channels = work->info.channels;
    const struct dl2_volume_part part = whole(old);
    DL2_TRY(DL2_NEW(&work->voxels, count * channels, "a volume", error));
    DL2_TRY(dl2_volume_read(work->volume, &part, work->voxels, error));
    if (channels == 1)
        return move_channel(run, work, turn, &work->voxels, error);
    DL2_AUTO_FREE float *all = work->voxels;
    work->voxels = NULL;
    DL2_TRY(DL2_NEW(&work->voxels, made * channels, "a volume", error));
    for (size_t c = 0; c < channels; c++) {
        DL2_AUTO_FREE float *channel = NULL;
        DL2_TRY(DL2_NEW(&channel, count, "a volume", error));
        memcpy(channel, all + c * count, count * sizeof *all);
        DL2_TRY(move_channel(run, work, turn, &channel, error));
        memcpy(work->voxels + c * made, channel, made * sizeof *channel);
    }
    return DL2_OK;
}

static int make_mask(const struct preprocess *run, struct work *work,
                     const struct dl2_volume_turn *turn, struct dl2_error *error)
{
    size_t size[3];
    memcpy(size, dl2_volume_info(work->labels)->size, sizeof size);
    const struct dl2_volume_part part = whole(size);
    DL2_TRY(DL2_NEW(&work->mask, size[0] * size[1] * size[2], "labels", error));
    DL2_TRY(dl2_volume_read_labels(work->labels, &part, work->mask, error));
    void *mask = work->mask;
    const int status = dl2_volume_turn(&mask, 1, size, turn, error);
    work->mask = mask;
    DL2_TRY(status);
    return dl2_labels_resample(&work->mask, size, work->info.size, run->how->labels, error);
}

static size_t voxels_of(const struct work *work)
{
    return work->info.size[0] * work->info.size[1] * work->info.size[2];
}

static void clip(const struct preprocess *run, struct work *work)
{
    const float low = (float)run->how->clip[0], high = (float)run->how->clip[1];
    const size_t count = voxels_of(work) * work->info.channels;
    for (size_t i = 0; i < count && !isnan(low); i++)
        work->voxels[i] = work->voxels[i] < low    ? low
                          : work->voxels[i] > high ? high
                                                   : work->voxels[i];
}

static void normalize(const struct preprocess *run, struct work *work)
{
    const size_t count = voxels_of(work);
    for (size_t c = 0; c < work->info.channels; c++) {
        const struct moments *all = &run->moments[c];
        double mean = run->how->normal[0], deviation = run->how->normal[1];
        if (run->how->of_dataset) {
            mean = all->mean;
            deviation = all->squares > 0 ? sqrt(all->squares / all->count) : 1;
        }
        float *voxels = work->voxels + c * count;
        for (size_t i = 0; i < count && !isnan(mean); i++)
            voxels[i] = (voxels[i] - (float)mean) / (float)deviation;
    }
}

static struct moments count_voxels(const float *voxels, size_t count)
{
    struct moments moments = {.count = (double)count};
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)voxels[i];
    moments.mean = sum / moments.count;
    for (size_t i = 0; i < count; i++)
        moments.squares += ((double)voxels[i] - moments.mean) * ((double)voxels[i] - moments.mean);
    return moments;
}

static void add_moments(struct moments *sum, const struct moments *own)
{
    const double all = sum->count + own->count, apart = own->mean - sum->mean;
    if (own->count == 0)
        return;
    sum->squares += own->squares + apart * apart * sum->count * own->count / all;
    sum->mean += apart * own->count / all;
    sum->count = all;
}

static int write_volume(const struct preprocess *run, const struct work *work, const char *key,
                        bool labels, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_volume_info info = work->info;
    if (labels) {
        info.type = DL2_VOXEL_U8;
        info.channels = 1;
    }
    DL2_TRY(path_of(run, key, labels, &path, error));
    DL2_TRY(dl2_volume_encode(dl2_preprocess_formats[run->how->format], &info,
                              labels ? (const void *)work->mask : work->voxels, &file, error));
    DL2_TRY(dl2_make_folder_of(path, error));
    return dl2_file_write(path, file.data, file.size, error);
}

/* Is the volume, with its labels, in DEST as it would be made? */
static bool is_there(const struct preprocess *run, const struct work *work, const char *key)
{
    DL2_AUTO_FREE char *mask = NULL;
    struct stat volume, labels;
    if (path_of(run, key, true, &mask, NULL) < 0 ||
        fstat(dl2_volume_file(work->volume), &volume) < 0 || !is_current(run, key, false, &volume))
        return false;
    return work->labels ? fstat(dl2_volume_file(work->labels), &labels) == 0 &&
                              is_current(run, key, true, &labels)
                        : !dl2_is_file(mask);
}

/* Labels that an earlier run wrote of a volume that has none now. */
static int remove_labels(const struct preprocess *run, const char *key, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(path_of(run, key, true, &path, error));
    return unlink(path) < 0 && errno != ENOENT ? dl2_error_system(error, "%s", path) : DL2_OK;
}

static int make_volume(const struct preprocess *run, const struct dl2_source_item *item,
                       struct work *work, struct outcome *outcome, struct dl2_error *error)
{
    struct dl2_volume_turn turn;
    DL2_TRY(open_volumes(run, item, work, outcome, error));
    if (work->info.channels != run->first_channels)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has %zu channels, and the first volume %zu",
                             work->info.channels, run->first_channels);
    if (work->labels)
        DL2_TRY(check_labels(work, error));
    DL2_TRY(find_turn(run, work, &turn, error));
    turn_header(&work->info, &turn);
    DL2_TRY(find_grid(run, &work->info, error));
    outcome->current = !run->is_counting && is_there(run, work, item->key);
    if (outcome->current)
        return DL2_OK;
    DL2_TRY(make_voxels(run, work, &turn, error));
    clip(run, work);
    for (size_t c = 0; c < work->info.channels && run->is_counting; c++)
        outcome->moments[c] = count_voxels(work->voxels + c * voxels_of(work), voxels_of(work));
    if (run->is_counting)
        return DL2_OK;
    normalize(run, work);
    if (work->labels) { /* first: the volume stands for both */
        DL2_TRY(make_mask(run, work, &turn, error));
        DL2_TRY(write_volume(run, work, item->key, true, error));
    } else
        DL2_TRY(remove_labels(run, item->key, error));
    return write_volume(run, work, item->key, false, error);
}

/* Does the volume count for the mean of the dataset? */
static bool is_trained_on(const struct preprocess *run, size_t sample)
{
    return !dl2_dataset_has_parts(run->dataset) ||
           !strcmp(dl2_dataset_split_of(run->dataset, sample), "train");
}

static int make_next(void *context, unsigned worker, size_t slot, size_t number,
                     struct dl2_error *error)
{
    struct preprocess *run = context;
    const struct dl2_source_item *item = &run->source.items[number];
    struct outcome *outcome = &run->outcomes[slot];
    struct moments *moments = outcome->moments;
    struct work work = {.volume = NULL};
    (void)worker;
    (void)error;
    *outcome = (struct outcome){.error = DL2_ERROR_INIT, .moments = moments};
    memset(moments, 0, run->first_channels * sizeof *moments);
    if (run->is_counting && !is_trained_on(run, item->sample))
        return DL2_OK;
    int status = item->same_key_as == SIZE_MAX
                     ? make_volume(run, item, &work, outcome, &outcome->error)
                     : dl2_error_set(&outcome->error, DL2_ERR_FORMAT,
                                     "another file of this name comes before it, %s",
                                     run->source.items[item->same_key_as].name);
    if (status < 0 && !strstr(outcome->error.message, item->path))
        dl2_error_prefix(&outcome->error, "%s", item->path);
    dl2_volume_close(work.volume);
    dl2_volume_close(work.labels);
    free(work.voxels);
    free(work.mask);
    return DL2_OK;
}

/* Counts a volume, in their order. */
static int count_next(void *context, size_t slot, size_t number, struct dl2_error *error)
{
    struct preprocess *run = context;
    const struct outcome *outcome = &run->outcomes[slot];
    struct dl2_preprocess_result *result = run->result;
    const int status = outcome->error.status;
    dl2_progress_update(run->options->progress, number + 1, NULL);
    if (status == DL2_ERR_MEMORY)
        return dl2_error_copy(error, &outcome->error);
    for (size_t c = 0; c < run->first_channels && status == DL2_OK; c++)
        add_moments(&run->moments[c], &outcome->moments[c]);
    if (run->is_counting) /* failures are named when the volume is to be written */
        return DL2_OK;
    if (status < 0) {
        dl2_progress_message(run->options->progress, "%s", outcome->error.message);
        result->failed++;
        return DL2_OK;
    }
    result->volumes++;
    result->labeled += outcome->labeled;
    result->written += !outcome->current;
    run->beside += outcome->beside > 0;
    if (!run->towards[0])
        memcpy(run->towards, outcome->towards, sizeof run->towards);
    run->other_ways += memcmp(run->towards, outcome->towards, sizeof run->towards) != 0;
    return DL2_OK;
}

/* ---- The run */

/* Bytes that the largest volume takes, about; also the channels of the first that can be read. */
static uint64_t look_at_volumes(struct preprocess *run)
{
    enum { COPIES = 4 };
    uint64_t most = 1;
    for (size_t i = 0; i < run->source.count; i++) {
        struct dl2_volume *volume;
        if (dl2_dataset_open_volume(run->dataset, i, NULL, &volume, NULL) < 0)
            continue;
        struct dl2_volume_info info = *dl2_volume_info(volume);
        dl2_volume_close(volume);
        if (!run->first_channels)
            run->first_channels = info.channels;
        double bytes = (double)info.channels * sizeof(float) * COPIES, scaled = bytes;
        for (int k = 0; k < 3; k++)
            bytes *= (double)info.size[k];
        scaled = bytes;
        for (int k = 0; k < 3 && !isnan(run->how->spacing[0]) && !run->how->towards[0]; k++)
            scaled *= (double)info.spacing[k] / run->how->spacing[k];
        bytes = scaled > bytes ? scaled : bytes;
        most = bytes < 1e18 && (uint64_t)bytes > most ? (uint64_t)bytes : most;
    }
    return most;
}

static int work_on_all(struct preprocess *run, uint64_t largest, bool counts,
                       struct dl2_error *error)
{
    struct dl2_parallel loop = {.jobs = run->options->jobs,
                                .count = run->source.count,
                                .work = make_next,
                                .emit = count_next,
                                .context = run};
    const uint64_t together = run->options->memory / largest;
    dl2_parallel_resolve(&loop);
    loop.jobs = together < loop.jobs ? together ? (unsigned)together : 1 : loop.jobs;
    run->is_counting = counts;
    run->options->progress->total = loop.count;
    DL2_AUTO_FREE struct moments *moments = NULL;
    DL2_AUTO_FREE struct outcome *outcomes = NULL;
    DL2_TRY(DL2_NEW(&outcomes, loop.window, "volumes", error));
    DL2_TRY(DL2_NEW(&moments, loop.window * run->first_channels, "volumes", error));
    for (size_t i = 0; i < loop.window; i++)
        outcomes[i].moments = moments + i * run->first_channels;
    run->outcomes = outcomes;
    return dl2_parallel_run(&loop, error);
}

/* Volumes of earlier runs whose source is gone would be trained on: names them, or removes them. */
static int handle_strays(const struct preprocess *run, struct dl2_error *error)
{
    struct dl2_progress *progress = run->options->progress;
    const char *dest = run->options->dest;
    size_t left = 0, removed = 0;
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list list = {0};
    DL2_TRY(dl2_list_files(dest, &list, error));
    for (size_t i = 0; i < list.count; i++) {
        DL2_AUTO_FREE char *key = strndup(list.paths[i], dl2_volume_stem_length(list.paths[i]));
        bool gone = false;
        if (!key)
            return dl2_error_memory(error, "volumes");
        const size_t stem = dl2_dataset_mask_stem(key);
        key[stem ? stem : strlen(key)] = '\0';
        const char *format = dl2_preprocess_formats[run->how->format];
        if (!dl2_is_volume_file(list.paths[i]) ||
            (dl2_source_items_has(&run->source, key) &&
             !strcmp(list.paths[i] + dl2_volume_stem_length(list.paths[i]) + 1, format)))
            continue;
        if (run->options->prune)
            DL2_TRY(dl2_output_remove(dest, list.paths[i], &gone, error));
        removed += gone;
        if (!gone && left++ < STRAYS_NAMED)
            dl2_progress_message(progress, "%s/%s: no volume of SOURCE accounts for it", dest,
                                 list.paths[i]);
    }
    if (left)
        dl2_progress_message(progress, "%s: %zu such files are left alone; --prune removes them",
                             dest, left);
    if (removed)
        dl2_progress_message(progress, "%s: %zu files were removed that no volume accounts for",
                             dest, removed);
    return DL2_OK;
}

/* Says what a reader of DEST would not expect. */
static void tell_result(const struct preprocess *run)
{
    struct dl2_progress *progress = run->options->progress;
    const struct dl2_preprocess_result *result = run->result;
    const char *source = run->options->source;
    if (result->labeled && result->labeled < result->volumes)
        dl2_progress_message(progress, "%s: %zu volumes have no labels", source,
                             result->volumes - result->labeled);
    if (run->beside)
        dl2_progress_message(progress, "%s: further files beside %zu volumes are left out", source,
                             run->beside);
    if (run->other_ways && !run->how->towards[0])
        dl2_progress_message(
            progress,
            "%s: the axes of %zu volumes lie otherwise than those of the first, which run to %.3s: "
            "--orientation %.3s turns them alike",
            source, run->other_ways, run->towards, run->towards);
}

static int open_source(struct preprocess *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    struct dl2_dataset_options all = dl2_image_dataset_options(options->samples, &options->members);
    all.decode_slice = dl2_gray_decode;
    DL2_TRY(dl2_dataset_open(options->source, &all, &run->dataset, error));
    if (dl2_dataset_kind(run->dataset) != DL2_SAMPLE_VOLUME)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: it holds no volumes (.npy, .nii, .nii.gz), and preprocess is for "
                             "these",
                             options->source);
    dl2_dataset_tell(run->dataset, options->source, true, options->progress);
    return dl2_source_items_list(&run->source, run->dataset, error);
}

static int run_all(struct preprocess *run, struct dl2_error *error)
{
    DL2_TRY(open_source(run, error));
    const uint64_t largest = look_at_volumes(run);
    if (run->how->of_dataset)
        DL2_TRY(work_on_all(run, largest, true, error));
    if (run->how->of_dataset && !(run->moments[0].count > 0))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: no volume for training can be read, and --normalize dataset "
                             "needs their mean",
                             run->options->source);
    DL2_TRY(begin_record(run, error));
    DL2_TRY(work_on_all(run, largest, false, error));
    if (!run->result->volumes)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no volume could be made",
                             run->options->source);
    DL2_TRY(handle_strays(run, error));
    tell_result(run);
    return DL2_OK;
}

int dl2_preprocess(const struct dl2_transcode_options *options,
                   const struct dl2_preprocess_options *how, struct dl2_preprocess_result *result,
                   struct dl2_error *error)
{
    *result = (struct dl2_preprocess_result){0};
    struct preprocess run = {.options = options, .how = how, .result = result};
    struct dl2_output_lock lock = {.fd = -1};
    if (!dl2_output_is_folder(options->dest))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "preprocess writes to a folder of this machine");
    int status = dl2_output_begin_copy(options, &lock, error);
    if (status == DL2_OK)
        status = run_all(&run, error);
    result->mean = run.moments[0].mean;
    result->deviation = sqrt(run.moments[0].squares / run.moments[0].count);
    dl2_source_items_free(&run.source);
    dl2_dataset_close(run.dataset);
    json_decref(run.settings);
    dl2_output_unlock(&lock);
    return status;
}
