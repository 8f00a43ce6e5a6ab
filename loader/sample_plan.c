/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/sample_plan.h"

#include "codec/decoder.h"
#include "loader/decoded.h"

#include <inttypes.h>

struct dl2_planner dl2_planner_of(const struct dl2_dataset *dataset,
                                  const struct dl2_loader_config *config)
{
    return (struct dl2_planner){
        .dataset = dataset,
        .config = config,
        .decoded = config->decoded_cache,
        .videos = dataset && dl2_dataset_kind(dataset) == DL2_SAMPLE_VIDEO,
        .sliced = !config->fetch.whole && !config->fetch.cache_bytes &&
                  !config->decoded_cache_bytes && !config->decoded_cache,
    };
}

struct dl2_crop_config dl2_loader_crop_config(const struct dl2_loader_config *config)
{
    return (struct dl2_crop_config){
        .height = config->height,
        .width = dl2_loader_width(config),
        .resize = config->resize ? config->resize
                                 : dl2_crop_usual_resize(dl2_loader_shorter_side(config)),
        .squash = config->val_crop == DL2_VAL_SQUASH,
        .area_min = config->area_min,
        .area_max = config->area_max,
        .aspect_min = config->aspect_min,
        .aspect_max = config->aspect_max,
        .flip = config->flip,
        .interpolation = config->interpolation,
    };
}

static void draw_crop(const struct dl2_planner *planner, uint32_t width, uint32_t height,
                      struct dl2_sample_plan *plan)
{
    const struct dl2_crop_config crops = dl2_loader_crop_config(planner->config);
    if (planner->config->train)
        dl2_crop_for_training(&crops, &plan->random, width, height, &plan->crop);
    else
        dl2_crop_for_validation(&crops, width, height, &plan->crop);
    plan->width = width;
    plan->height = height;
}

uint32_t dl2_plan_reduction(const struct dl2_loader_config *config, const struct dl2_crop *crop)
{
    return config->interpolation == DL2_NEAREST
               ? 1
               : dl2_crop_reduction(crop, config->height, dl2_loader_width(config));
}

void dl2_plan_find_decoded(const struct dl2_planner *planner, struct dl2_sample_plan *plan)
{
    if (!planner->decoded || plan->decoded)
        return;
    if (!plan->width) {
        const struct dl2_decoded_image *any = dl2_decoded_find_any(planner->decoded, plan->index);
        if (!any)
            return;
        draw_crop(planner, any->width, any->height, plan);
    }
    plan->decoded = dl2_decoded_find(planner->decoded, plan->index,
                                     dl2_plan_reduction(planner->config, &plan->crop));
}

int dl2_plan_set_size(const struct dl2_planner *planner, uint32_t width, uint32_t height,
                      struct dl2_sample_plan *plan, struct dl2_error *error)
{
    if (!plan->width)
        draw_crop(planner, width, height, plan);
    if (width == plan->width && height == plan->height)
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_FORMAT, "is of %" PRIu32 "x%" PRIu32 " where %s %" PRIu32 "x%" PRIu32 "%s",
        width, height, planner->sliced ? "the index says" : "it was decoded before as", plan->width,
        plan->height, planner->sliced ? ": run dl2-transcode index" : "");
}

/* ---- Frames of a clip */

static unsigned step_of(const struct dl2_loader_config *config)
{
    return config->frame_step ? config->frame_step : 1;
}

uint64_t dl2_loader_frame_span(const struct dl2_loader_config *config)
{
    return config->frame_sampling == DL2_FRAMES_UNIFORM
               ? config->frames
               : (uint64_t)(config->frames - 1) * step_of(config) + 1;
}

bool dl2_plan_is_short(const struct dl2_planner *planner, const struct dl2_sample_plan *plan)
{
    return plan->available < dl2_loader_frame_span(planner->config);
}

/* The first frames that a clip can have. */
static uint64_t possible_starts(const struct dl2_loader_config *config,
                                const struct dl2_sample_plan *plan)
{
    const uint64_t span = dl2_loader_frame_span(config);
    return plan->available > span ? plan->available - span + 1 : 1;
}

bool dl2_plan_overlaps(const struct dl2_planner *planner, const struct dl2_sample_plan *plan)
{
    const unsigned clips = dl2_loader_clips(planner->config);
    const uint64_t starts = possible_starts(planner->config, plan);
    uint64_t nearest = UINT64_MAX; /* two that begin one after the other */
    for (unsigned i = 1; i < clips; i++) {
        const uint64_t apart =
            (2 * i + 1) * starts / (2 * clips) - (2 * i - 1) * starts / (2 * clips);
        nearest = apart < nearest ? apart : nearest;
    }
    return nearest < dl2_loader_frame_span(planner->config);
}

bool dl2_plan_has_equal_clips(const struct dl2_planner *planner, const struct dl2_sample_plan *plan)
{
    return possible_starts(planner->config, plan) < dl2_loader_clips(planner->config);
}

/* Which frame of its clip or video is number `frame` of those that are loaded. */
static size_t pick_frame(const struct dl2_loader_config *config, const struct dl2_sample_plan *plan,
                         unsigned frame)
{
    const unsigned clips = dl2_loader_clips(config);
    if (config->frame_sampling == DL2_FRAMES_UNIFORM)
        return (size_t)((2 * (uint64_t)frame + 1) * plan->available /
                        (2 * (uint64_t)config->frames));
    const unsigned clip = clips > 1 ? frame / config->frames : 0;
    const uint64_t start =
        clips > 1 ? (2 * clip + 1) * possible_starts(config, plan) / (2 * clips) : plan->start;
    const uint64_t picked = start + (uint64_t)(frame - clip * config->frames) * step_of(config);
    return picked < plan->available ? (size_t)picked : plan->available - 1;
}

bool dl2_plan_repeats(const struct dl2_planner *planner, const struct dl2_sample_plan *plan,
                      unsigned frame)
{
    const struct dl2_loader_config *config = planner->config;
    return frame && config->frames &&
           pick_frame(config, plan, frame) == pick_frame(config, plan, frame - 1);
}

/* Draws where in the clip the frames begin. */
static void choose_frames(const struct dl2_planner *planner, size_t first, size_t count,
                          struct dl2_sample_plan *plan)
{
    const struct dl2_loader_config *config = planner->config;
    const uint64_t span = dl2_loader_frame_span(config);
    const uint64_t spare = count > span ? count - span : 0;
    const bool random = config->frame_sampling == DL2_FRAMES_RANDOM ||
                        (config->frame_sampling == DL2_FRAMES_AUTO && config->train);
    plan->clip = first;
    plan->available = count;
    plan->start = random ? dl2_random_below(&plan->random, (uint32_t)spare + 1) : (size_t)spare / 2;
}

void dl2_plan_set_frames(const struct dl2_planner *planner, size_t count,
                         struct dl2_sample_plan *plan)
{
    choose_frames(planner, 0, count, plan);
}

size_t dl2_plan_frame(const struct dl2_planner *planner, const struct dl2_sample_plan *plan)
{
    return pick_frame(planner->config, plan, plan->frame);
}

/* An image that is too large gets no crop: it is read whole and refused by the decoder. */
void dl2_plan_sample(const struct dl2_planner *planner, struct dl2_sample_plan *plan)
{
    const uint64_t most = planner->config->max_pixels;
    plan->width = plan->height = 0;
    plan->decoded = NULL;
    plan->slices = (struct dl2_slice_range){0};
    dl2_random_init(&plan->random, planner->config->seed, DL2_RANDOM_AUGMENT, planner->epoch,
                    plan->epoch_position << 32 | plan->index);
    plan->image = plan->index;
    if (planner->config->frames && !planner->videos) {
        const struct dl2_image_range clip = dl2_dataset_frames(planner->dataset, plan->index);
        choose_frames(planner, clip.first, clip.count, plan);
        plan->image = (uint32_t)(clip.first + dl2_plan_frame(planner, plan));
    }
    dl2_plan_find_decoded(planner, plan);
    if (plan->width || !planner->sliced ||
        !dl2_dataset_cuts(planner->dataset, plan->image, &plan->cuts) ||
        (uint64_t)plan->cuts.width * plan->cuts.height > (most ? most : DL2_DEFAULT_MAX_PIXELS))
        return;
    const struct dl2_image_info info = {.width = plan->cuts.width,
                                        .height = plan->cuts.height,
                                        .orientation = plan->cuts.orientation};
    draw_crop(planner, dl2_upright_width(&info), dl2_upright_height(&info), plan);
    plan->slices = dl2_image_slices_of(&plan->cuts, plan->crop.x, plan->crop.y, plan->crop.width,
                                       plan->crop.height);
}
