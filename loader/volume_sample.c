/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/volume_sample.h"

#include "common/half.h"
#include "loader/engine.h"

#include <string.h>
#include <sys/stat.h>

static void size_of(const struct dl2_loader_config *config, size_t size[3])
{
    size[0] = config->volume_depth;
    size[1] = config->height;
    size[2] = dl2_loader_width(config);
}

int dl2_volume_sample_init(struct dl2_volume_sample *sample, const struct dl2_loader_config *config,
                           struct dl2_error *error)
{
    size_t size[3];
    if (!config->volume_depth)
        return DL2_OK;
    size_of(config, size);
    return dl2_voxels_init(&sample->voxels, config->channels, size, config->mask != NULL, error);
}

void dl2_volume_sample_free(struct dl2_volume_sample *sample)
{
    dl2_voxels_free(&sample->voxels);
}

/* ---- reading ---- */

static int check_sizes(const struct dl2_volume *volume, const struct dl2_volume *labels,
                       const struct dl2_loader_config *config, struct dl2_error *error)
{
    const struct dl2_volume_info *info = dl2_volume_info(volume);
    const size_t *size = info->size;
    const size_t *mask = labels ? dl2_volume_info(labels)->size : size;
    if (info->channels != config->channels)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has %zu channel%s, and %u are loaded",
                             info->channels, info->channels == 1 ? "" : "s", config->channels);
    if (memcmp(size, mask, sizeof info->size) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "mask: it is of %zux%zux%zu, its volume of %zux%zux%zu", mask[0],
                             mask[1], mask[2], size[0], size[1], size[2]);
    return DL2_OK;
}

static int64_t draw_between(struct dl2_random *random, int64_t low, int64_t high)
{
    return low + dl2_random_below(random, (uint32_t)(high - low + 1));
}

/* Draws the first voxel along an axis of a volume that is larger than the patch. */
static int64_t draw_first(struct dl2_random *random, int64_t size, int64_t patch)
{
    return draw_between(random, 0, size - patch);
}

/* The same, so that the patch has a voxel. */
static int64_t draw_with_voxel(struct dl2_random *random, int64_t size, int64_t patch,
                               int64_t voxel)
{
    const int64_t low = voxel + 1 - patch, high = size - patch;
    return draw_between(random, low > 0 ? low : 0, voxel < high ? voxel : high);
}

/* The same, so that the patch has all of a component from `first` up to `end`, or else lies within
 * it. */
static int64_t draw_with_component(struct dl2_random *random, int64_t size, int64_t patch,
                                   int64_t first, int64_t end)
{
    const int64_t other = end - patch, high = size - patch;
    const int64_t drawn =
        draw_between(random, other < first ? other : first, other < first ? first : other);
    return drawn < 0 ? 0 : drawn < high ? drawn : high;
}

/* `box`: of foreground that the patch is to show; NULL: none. */
static int64_t draw_start(const struct dl2_loader_config *config, struct dl2_random *random,
                          size_t size, size_t patch, const struct dl2_foreground_box *box, int axis)
{
    const int64_t all = (int64_t)size, shown = (int64_t)patch;
    if (!box)
        return draw_first(random, all, shown);
    const int64_t first = (int64_t)box->first[axis], end = (int64_t)box->end[axis];
    return config->foreground_rule == DL2_FOREGROUND_COMPONENT
               ? draw_with_component(random, all, shown, first, end)
               : draw_with_voxel(random, all, shown, first);
}

/* Decides what the patch shows. */
static int choose_patch(struct dl2_volume_sample *sample, const struct dl2_planner *planner,
                        struct dl2_foreground *foreground, const struct dl2_volume *volume,
                        struct dl2_volume *labels, struct dl2_sample_plan *plan,
                        struct dl2_loader_stats *stats, struct dl2_error *error)
{
    const struct dl2_loader_config *config = planner->config;
    const struct dl2_volume_info *info = dl2_volume_info(volume);
    struct dl2_random *random = &plan->random;
    struct dl2_patch *patch = &sample->patch;
    struct dl2_sample facts;
    struct dl2_foreground_box box;
    int shows = 0;
    if (config->train && config->foreground > 0 &&
        dl2_random_uniform(random) < config->foreground) {
        dl2_dataset_sample(planner->dataset, plan->index, &facts);
        shows =
            dl2_foreground_draw(foreground, plan->index, facts.path, labels, random, &box, error);
        DL2_TRY(shows);
        stats->no_foreground += !shows;
    }
    bool padded = false;
    for (int i = 0; i < 3; i++) {
        const size_t size = info->size[i], wanted = sample->voxels.size[i];
        const int64_t first = config->train && size > wanted
                                  ? draw_start(config, random, size, wanted, shows ? &box : NULL, i)
                                  : ((int64_t)size - (int64_t)wanted) / 2;
        patch->first[i] = (int32_t)first;
        patch->size[i] = (uint32_t)size;
        patch->spacing[i] = info->spacing[i];
        sample->at[i] = first < 0 ? (size_t)-first : 0;
        sample->part[i] = size < wanted ? size : wanted;
        padded |= size < wanted;
    }
    stats->padded += padded;
    return DL2_OK;
}

static int read_patch(struct dl2_volume_sample *sample, const struct dl2_loader_config *config,
                      struct dl2_volume *volume, struct dl2_volume *labels, struct dl2_error *error)
{
    struct dl2_voxels *voxels = &sample->voxels;
    struct dl2_volume_part part;
    const size_t count = voxels->size[0] * voxels->size[1] * voxels->size[2];
    bool padded = false;
    for (int i = 0; i < 3; i++) {
        part.first[i] = sample->patch.first[i] > 0 ? (size_t)sample->patch.first[i] : 0;
        part.size[i] = sample->part[i];
        part.at[i] = sample->at[i];
        part.out[i] = voxels->size[i];
        padded |= part.size[i] < part.out[i];
    }
    if (padded) {
        memset(voxels->data, 0, count * voxels->channels * sizeof *voxels->data);
        if (labels)
            memset(voxels->labels, (int)config->mask_fill, count);
    }
    DL2_TRY(dl2_volume_read(volume, &part, voxels->data, error));
    return labels ? dl2_volume_read_labels(labels, &part, voxels->labels, error) : DL2_OK;
}

static void end_reading(struct dl2_volume *volume, const struct dl2_planner *planner,
                        struct dl2_fetch *fetch, struct dl2_loader_stats *stats)
{
    uint64_t bytes, reads;
    struct stat status;
    if (!volume)
        return;
    dl2_volume_counts(volume, &bytes, &reads);
    dl2_fetch_count(fetch, bytes, reads);
    stats->bytes += bytes;
    if (planner->config->fetch.drop_behind && fstat(dl2_volume_file(volume), &status) == 0)
        dl2_evict_extent(dl2_volume_file(volume), 0, (uint64_t)status.st_size);
    dl2_volume_close(volume);
}

int dl2_volume_open_labeled(const struct dl2_dataset *dataset, size_t index,
                            const struct dl2_loader_config *config, struct dl2_volume **volume,
                            struct dl2_volume **labels, struct dl2_error *error)
{
    struct dl2_sample facts;
    *volume = *labels = NULL;
    dl2_dataset_sample(dataset, index, &facts);
    DL2_TRY(dl2_dataset_open_volume(dataset, index, NULL, volume, error));
    if (config->mask)
        DL2_TRY(dl2_dataset_open_volume(dataset, index, config->mask, labels, error));
    if (config->mask && !*labels)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: mask: there is no '%s' beside it",
                             facts.path, config->mask);
    const int status = check_sizes(*volume, *labels, config, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", facts.path);
    return status;
}

static void use_cache(struct dl2_volume_cache *cache, size_t index, bool labels,
                      struct dl2_volume *volume, struct dl2_loader_stats *stats)
{
    const enum dl2_volume_kept kept = dl2_volume_cache_use(cache, index, labels, volume);
    stats->decoded_hits += !labels && kept == DL2_VOLUME_FOUND;
    stats->decompressed += volume && dl2_volume_info(volume)->compressed && kept == DL2_VOLUME_READ;
}

int dl2_volume_sample_read(struct dl2_volume_sample *sample, const struct dl2_volume_source *source,
                           struct dl2_sample_plan *plan, struct dl2_loader_stats *stats,
                           struct dl2_error *error)
{
    const struct dl2_planner *planner = source->planner;
    const struct dl2_loader_config *config = planner->config;
    struct dl2_volume *volume, *labels;
    dl2_plan_sample(planner, plan);
    int status =
        dl2_volume_open_labeled(planner->dataset, plan->index, config, &volume, &labels, error);
    if (status == DL2_OK) {
        use_cache(source->cache, plan->index, false, volume, stats);
        use_cache(source->cache, plan->index, true, labels, stats);
        status =
            choose_patch(sample, planner, source->foreground, volume, labels, plan, stats, error);
    }
    if (status == DL2_OK)
        status = read_patch(sample, config, volume, labels, error);
    end_reading(volume, planner, source->fetch, stats);
    end_reading(labels, planner, source->fetch, stats);
    return status;
}

/* ---- values ---- */

void dl2_volume_sample_normalize(struct dl2_volume_sample *sample,
                                 const struct dl2_loader_config *config)
{
    if (config->normalization == DL2_NORMALIZATION_ZSCORE)
        dl2_voxels_zscore(&sample->voxels, sample->at, sample->part);
    else if (config->normalization == DL2_NORMALIZATION_WINDOW)
        dl2_voxels_window(&sample->voxels, sample->at, sample->part, config->window_min,
                          config->window_max);
}

/* `from` is one channel. False: a value is too large for the type. */
static bool store_channel(const float *from, size_t count, enum dl2_dtype dtype, void *out,
                          size_t first, size_t stride)
{
    float *floats = out;
    uint16_t *halves = out;
    bool fits = true;
    if (dtype == DL2_FLOAT32 && stride == 1)
        memcpy(floats + first, from, count * sizeof *from);
    else if (dtype == DL2_FLOAT32)
        for (size_t i = 0; i < count; i++)
            floats[first + i * stride] = from[i];
    else if (dtype == DL2_FLOAT16)
        for (size_t i = 0; i < count; i++) {
            const uint16_t half = dl2_float_to_half(from[i]);
            halves[first + i * stride] = half;
            fits &= (half & 0x7c00) != 0x7c00; /* else it is infinite */
        }
    else
        for (size_t i = 0; i < count; i++)
            halves[first + i * stride] = dl2_float_to_bfloat(from[i]);
    return fits;
}

int dl2_volume_sample_store(const struct dl2_volume_sample *sample,
                            const struct dl2_loader_config *config, void *out,
                            struct dl2_error *error)
{
    const struct dl2_voxels *voxels = &sample->voxels;
    const size_t count = voxels->size[0] * voxels->size[1] * voxels->size[2];
    const bool planes = config->layout == DL2_NCHW;
    bool fits = true;
    for (size_t c = 0; c < voxels->channels; c++)
        fits &= store_channel(voxels->data + c * count, count, config->dtype, out,
                              planes ? c * count : c, planes ? 1 : voxels->channels);
    return fits ? DL2_OK
                : dl2_error_set(error, DL2_ERR_FORMAT,
                                "it has values beyond 65504, the largest of float16: load bfloat16 "
                                "or float32, or normalize");
}

/* ---- settings ---- */

int dl2_volumes_check(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                      struct dl2_error *error)
{
    struct dl2_volume *volume;
    if (config->dtype == DL2_UINT8)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "dtype uint8 is of images: volumes are loaded as floats, such as "
                             "float32");
    if (config->mask && !dl2_is_volume_file(config->mask))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "mask '%s': masks of volumes are volumes: mask.npy, for example",
                             config->mask);
    /* A first volume that cannot be read is a bad sample like any other. */
    if (dl2_dataset_open_volume(dataset, 0, NULL, &volume, NULL) < 0)
        return config->channels
                   ? DL2_OK
                   : dl2_error_set(error, DL2_ERR_ARGUMENT, "channels must be at least 1");
    const size_t channels = dl2_volume_info(volume)->channels;
    dl2_volume_close(volume);
    if (channels != config->channels)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "channels is %u, and the first volume has %zu: set channels to that",
                             config->channels, channels);
    return DL2_OK;
}
