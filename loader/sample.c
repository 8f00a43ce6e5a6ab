/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/sample.h"

#include "common/clock.h"
#include "loader/unusual.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void close_video(struct dl2_job *job)
{
    dl2_video_close(job->video);
    job->video = NULL;
}

static void end_video(struct dl2_job *job)
{
    dl2_unusual_note_video(&job->stats, dl2_video_info(job->video));
    close_video(job);
}

/*
 * What the stages do with a sample of a kind. After TRANSFORM come the operations, if there are
 * any, and then STORE; without them, TRANSFORM writes into the batch, unless the kind stores.
 */
struct sample_kind {
    int (*init)(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error);
    int (*read)(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error);
    /* NULL: there is no DECODE */
    int (*decode)(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error);
    int (*transform)(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                     struct dl2_error *error);
    unsigned (*operations)(const struct dl2_recipe *recipe); /* the number of OPERATIONs */
    const char *(*operation_name)(const struct dl2_job *job, const struct dl2_recipe *recipe);
    int (*operate)(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error);
    int (*store)(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                 struct dl2_error *error);
    const char *store_name; /* in messages */
    bool stores;
};

static const struct sample_kind images, videos, volumes;

static const struct sample_kind *kind_of(const struct dl2_recipe *recipe)
{
    return recipe->planner.config->volume_depth ? &volumes
           : recipe->planner.videos             ? &videos
                                                : &images;
}

int dl2_job_init(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    DL2_TRY(dl2_decoder_create(&job->decoder, error));
    DL2_TRY(DL2_NEW(&job->targets, recipe->targets.count, "a sample", error));
    return kind_of(recipe)->init(job, recipe, error);
}

void dl2_job_free(struct dl2_job *job, const struct dl2_recipe *recipe)
{
    dl2_job_drop(job, recipe);
    close_video(job);
    dl2_bytes_free(&job->fetched.scratch);
    dl2_bytes_free(&job->joined);
    dl2_bytes_free(&job->clip);
    dl2_decoder_destroy(job->decoder);
    job->decoder = NULL;
    dl2_resizer_free(&job->resizer);
    dl2_pixels_free(&job->pixels);
    dl2_targets_free(job->targets, recipe->targets.count);
    dl2_mask_free(&job->mask);
    dl2_boxes_free(&job->boxes);
    dl2_volume_sample_free(&job->volume);
    job->targets = NULL;
}

size_t dl2_job_memory(const struct dl2_job *job, const struct dl2_recipe *recipe)
{
    return sizeof *job + job->fetched.scratch.capacity + job->joined.capacity + job->clip.capacity +
           dl2_targets_memory(job->targets, recipe->targets.count) + dl2_mask_memory(&job->mask) +
           dl2_boxes_memory(&job->boxes) + dl2_pixels_memory(&job->pixels) +
           dl2_decoder_memory(job->decoder) + dl2_video_memory(job->video) +
           dl2_resizer_memory(&job->resizer) + dl2_voxels_memory(&job->volume.voxels);
}

void dl2_job_begin(struct dl2_job *job, uint32_t index, size_t position, uint64_t epoch_position)
{
    close_video(job);
    job->plan.index = job->plan.image = index;
    job->plan.frame = 0;
    job->plan.epoch_position = epoch_position;
    job->position = position;
    job->stage = DL2_STAGE_READ;
    job->operation = 0;
    job->seconds = 0;
    job->staged = false;
}

bool dl2_job_needs_place(const struct dl2_job *job, const struct dl2_recipe *recipe)
{
    const struct sample_kind *kind = kind_of(recipe);
    if (recipe->gathers)
        return job->stage == DL2_STAGE_PLACE;
    return job->stage == DL2_STAGE_STORE ||
           (job->stage == DL2_STAGE_TRANSFORM && !kind->stores && !kind->operations(recipe));
}

void dl2_job_drop(struct dl2_job *job, const struct dl2_recipe *recipe)
{
    if (job->holds_bytes)
        dl2_fetch_release(recipe->fetch, &job->fetched);
    job->holds_bytes = false;
}

struct dl2_resize_output dl2_loader_output(const struct dl2_loader_config *config, void *out)
{
    struct dl2_resize_output output = {
        .data = out,
        .width = dl2_loader_width(config),
        .height = config->height,
        .channels = config->channels,
        .dtype = config->dtype,
        .layout = config->layout,
        .interpolation = config->interpolation,
        .plane = (size_t)dl2_loader_width(config) * config->height * dl2_loader_frames(config),
    };
    memcpy(output.mean, config->mean, sizeof output.mean);
    memcpy(output.std, config->std, sizeof output.std);
    return output;
}

/* Where what is decoded begins in the upright image. */
static void find_origin(const struct dl2_sample_plan *plan, uint32_t *x, uint32_t *y)
{
    *x = *y = 0;
    if (plan->slices.count)
        dl2_image_slices_origin(&plan->cuts, plan->slices, x, y);
}

struct dl2_crop_box dl2_job_crop_box(const struct dl2_job *job)
{
    const struct dl2_sample_plan *plan = &job->plan;
    const struct dl2_crop *crop = &plan->crop;
    uint32_t left, top;
    find_origin(plan, &left, &top);
    const double x = (double)crop->x + left, y = (double)crop->y + top;
    return (struct dl2_crop_box){x + crop->box.left, y + crop->box.top, x + crop->box.right,
                                 y + crop->box.bottom, crop->flip};
}

/* ---- images ---- */

/* The augmentation counts as one. */
static unsigned image_operations(const struct dl2_recipe *recipe)
{
    return recipe->planner.config->operation_count + (recipe->augmentation != NULL);
}

static int init_image(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    DL2_TRY(dl2_mask_init(&job->mask, config, error));
    if (recipe->gathers)
        DL2_TRY(dl2_bytes_resize(&job->clip, recipe->sample_bytes, error));
    return image_operations(recipe) ? dl2_pixels_init(&job->pixels, dl2_loader_width(config),
                                                      config->height, config->channels, error)
                                    : DL2_OK;
}

/* What lies beside the image or the volume, but the mask. */
static int read_sidecars(struct dl2_job *job, const struct dl2_recipe *recipe,
                         struct dl2_error *error)
{
    const struct dl2_planner *planner = &recipe->planner;
    if (recipe->targets.count)
        DL2_TRY(dl2_targets_read(&recipe->targets, planner->dataset, job->plan.index, job->targets,
                                 error));
    return dl2_boxes_read(&job->boxes, &recipe->boxes, planner->dataset, job->plan.index,
                          &job->stats, error);
}

static int read_bytes(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const size_t frames = dl2_plan_reads(&recipe->planner);
    if (job->video) {
        dl2_plan_sample(&recipe->planner, &job->plan);
        return DL2_OK;
    }
    job->holds_bytes = true; /* to be given back after an error, too */
    DL2_TRY(dl2_fetch_acquire(recipe->fetch, job->position * frames + job->plan.frame,
                              job->plan.index, &job->plan, &job->fetched, error));
    job->holds_bytes = !job->plan.decoded;
    job->stats.bytes += job->fetched.size;
    return DL2_OK;
}

static int read_image(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_planner *planner = &recipe->planner;
    DL2_TRY(read_bytes(job, recipe, error));
    if (job->plan.frame)
        return DL2_OK; /* the rest is the clip's */
    DL2_TRY(read_sidecars(job, recipe, error));
    return planner->config->mask ? dl2_mask_read(&job->mask, planner->config, planner->dataset,
                                                 job->plan.index, error)
                                 : DL2_OK;
}

/*
 * Decodes the whole image, at the reduction of its crop, and keeps it. Returns 1, or 0 where the
 * crop is to be decoded alone, as without a cache: there is no room, or damage outside the crop.
 */
static int decode_whole(struct dl2_job *job, const struct dl2_recipe *recipe,
                        const struct dl2_decode_request *crop, const struct dl2_image_info *info,
                        const uint8_t *data, size_t size, struct dl2_error *error)
{
    struct dl2_decoded_image image = {.width = dl2_upright_width(info),
                                      .height = dl2_upright_height(info)};
    struct dl2_decode_request request = *crop;
    struct dl2_image_info unused;
    const uint32_t index = job->plan.index;
    const bool reduces = dl2_decoder_reduces(job->decoder);
    const uint32_t reduction = reduces ? request.reduction : 1;
    if (!dl2_decoded_claim(recipe->planner.decoded, index, reduction, image.width, image.height,
                           request.channels == 1 ? 1 : 3))
        return 0;
    request.x = request.y = 0;
    request.width = image.width;
    request.height = image.height;
    if (dl2_decoder_decode(job->decoder, &request, &image.raster, NULL) < 0) {
        dl2_decoded_unclaim(recipe->planner.decoded, index, reduction);
        return dl2_decoder_open(job->decoder, data, size, recipe->planner.config->max_pixels,
                                &unused, error);
    }
    dl2_decoded_keep(recipe->planner.decoded, index, reduction, reduces, &image);
    job->raster = image.raster;
    return 1;
}

/* A raster of uncompressed pixels may be the encoded bytes themselves. */
static bool lies_in_bytes(const struct dl2_job *job)
{
    const uintptr_t pixels = (uintptr_t)job->raster.planes[0].data;
    const uintptr_t bytes = (uintptr_t)job->fetched.data;
    return pixels >= bytes && pixels < bytes + job->fetched.size;
}

/* Makes a file of the rows that were read. From here on the crop is relative to its pixels. */
static int join_slices(struct dl2_job *job, const struct dl2_recipe *recipe,
                       struct dl2_error *error)
{
    struct dl2_sample_plan *plan = &job->plan;
    const int status = dl2_image_join_slices(&plan->cuts, plan->slices, job->fetched.data,
                                             job->fetched.size, &job->joined, error);
    dl2_job_drop(job, recipe);
    uint32_t left, top;
    find_origin(plan, &left, &top);
    plan->crop.x -= left;
    plan->crop.y -= top;
    return status;
}

/* Fills in job->encoded if the batch decoder takes the image. */
static bool stage_encoded(struct dl2_job *job, const struct dl2_recipe *recipe,
                          const struct dl2_decode_request *request, const uint8_t *data)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    const struct dl2_crop *crop = &job->plan.crop;
    struct dl2_encoded *encoded = &job->encoded;
    struct dl2_crop_bytes *file = &encoded->file;
    if (!dl2_decoder_crop_bytes(job->decoder, request, config->decoder_splices, file) ||
        !config->decoder->ops->takes(config->decoder, &file->frame))
        return false;
    const double x = (double)crop->x - file->x, y = (double)crop->y - file->y;
    encoded->flip = crop->flip;
    encoded->limit = (struct dl2_box){x, y, x + crop->width, y + crop->height};
    encoded->box = (struct dl2_box){x + crop->box.left, y + crop->box.top, x + crop->box.right,
                                    y + crop->box.bottom};
    if (file->data != data)
        dl2_job_drop(job, recipe);
    return true;
}

/* The crop of a clip is that of its first frame. */
static int check_frame_size(struct dl2_job *job, const struct dl2_recipe *recipe,
                            struct dl2_error *error)
{
    const struct dl2_sample_plan *plan = &job->plan;
    if (!recipe->planner.config->frames)
        return DL2_OK;
    if (!plan->frame) {
        job->clip_width = plan->width;
        job->clip_height = plan->height;
    }
    if (plan->width == job->clip_width && plan->height == job->clip_height)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "is of %" PRIu32 "x%" PRIu32
                         " where the clip's first frame that is loaded "
                         "is of %" PRIu32 "x%" PRIu32 "; frames of one clip must be of one size",
                         plan->width, plan->height, job->clip_width, job->clip_height);
}

/* Gray images stay gray until they are resized, which is a third of the work. */
static int decode_pixels(struct dl2_job *job, const struct dl2_recipe *recipe,
                         struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    struct dl2_sample_plan *plan = &job->plan;
    if (plan->decoded) {
        job->raster = plan->decoded->raster;
        job->stats.decoded_hits++;
        return DL2_OK;
    }
    struct dl2_image_info info;
    if (plan->slices.count)
        DL2_TRY(join_slices(job, recipe, error));
    const uint8_t *const data = plan->slices.count ? job->joined.data : job->fetched.data;
    const size_t size = plan->slices.count ? job->joined.size : job->fetched.size;
    DL2_TRY(dl2_decoder_open(job->decoder, data, size, config->max_pixels, &info, error));
    if (plan->slices.count)
        dl2_decoder_turn(job->decoder, plan->cuts.orientation, &info);
    else
        DL2_TRY(dl2_plan_set_size(&recipe->planner, dl2_upright_width(&info),
                                  dl2_upright_height(&info), plan, error));
    DL2_TRY(check_frame_size(job, recipe, error));
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    request.x = plan->crop.x;
    request.y = plan->crop.y;
    request.width = plan->crop.width;
    request.height = plan->crop.height;
    job->staged = job->to_decoder && stage_encoded(job, recipe, &request, data);
    if (job->staged)
        return DL2_OK;
    request.external = &config->external;
    request.drop_bands = config->drop_bands;
    request.channels = config->channels == 1 ? 1 : 0;
    request.reduction = dl2_plan_reduction(config, &plan->crop);
    int status = 0;
    if (recipe->planner.decoded)
        status = decode_whole(job, recipe, &request, &info, data, size, error);
    if (status == 0)
        status = dl2_decoder_decode(job->decoder, &request, &job->raster, error);
    if (status < 0 || !lies_in_bytes(job))
        dl2_job_drop(job, recipe);
    if (status >= 0)
        dl2_unusual_note(&job->stats, &info, &job->raster);
    return status < 0 ? status : DL2_OK;
}

static int show_mask(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_crop_box crop = dl2_job_crop_box(job);
    const int status = dl2_mask_show(&job->mask, recipe->planner.config, job->plan.width,
                                     job->plan.height, &crop, error);
    if (status < 0)
        dl2_error_prefix(error, "mask '%s'", recipe->planner.config->mask);
    return status;
}

static int show_boxes(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_crop_box crop = dl2_job_crop_box(job);
    const int status =
        dl2_boxes_show(&job->boxes, &recipe->boxes, recipe->planner.config, job->plan.index,
                       job->plan.width, job->plan.height, &crop, error);
    if (status < 0)
        dl2_error_prefix(error, "boxes '%s'", recipe->boxes.text);
    return status;
}

/* Shows of what lies beside the image what the crop shows. */
static int show_sidecars(struct dl2_job *job, const struct dl2_recipe *recipe,
                         struct dl2_error *error)
{
    if (recipe->planner.config->mask)
        DL2_TRY(show_mask(job, recipe, error));
    return recipe->boxes.text ? show_boxes(job, recipe, error) : DL2_OK;
}

/* Operations, if there are any, work on uint8 NHWC pixels. */
static int resize_image(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                        struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    if (job->staged) {
        const int added =
            config->decoder->ops->add(job->decode_slot, job->place_number, &job->encoded, error);
        dl2_job_drop(job, recipe);
        job->stats.decoder_images += added == DL2_OK;
        return added;
    }
    struct dl2_resize_output output = dl2_loader_output(config, out);
    if (image_operations(recipe)) {
        output.data = job->pixels.data;
        output.dtype = DL2_UINT8;
        output.layout = DL2_NHWC;
    }
    const int status = dl2_crop_resize(&job->resizer, &job->raster, &job->plan.crop, output, error);
    dl2_job_drop(job, recipe);
    return status;
}

/* The caller's operation that is next; NULL: the augmentation is. */
static const struct dl2_operation *next_operation(const struct dl2_job *job,
                                                  const struct dl2_recipe *recipe)
{
    const unsigned before = recipe->augmentation != NULL;
    return job->operation < before ? NULL
                                   : &recipe->planner.config->operations[job->operation - before];
}

static const char *image_operation_name(const struct dl2_job *job, const struct dl2_recipe *recipe)
{
    const struct dl2_operation *operation = next_operation(job, recipe);
    return operation ? operation->name : "augment";
}

static int operate_on_image(struct dl2_job *job, const struct dl2_recipe *recipe,
                            struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    const struct dl2_operation *operation = next_operation(job, recipe);
    if (!operation) {
        struct dl2_random again = job->plan.random;
        DL2_TRY(dl2_augmentation_run(recipe->augmentation, &job->plan.random, &job->pixels, error));
        return config->mask
                   ? dl2_augmentation_run(recipe->augmentation, &again, &job->mask.pixels, error)
                   : DL2_OK;
    }
    const int status =
        operation->run(operation->context, job->plan.index, &job->plan.random, job->pixels.data,
                       dl2_loader_width(config), config->height, config->channels, error);
    /* The number is the caller's: it must not be taken for lack of memory or a stop. */
    if (status < 0 && error->status == DL2_OK)
        dl2_error_set(error, DL2_ERR_FORMAT, "failed");
    return status < 0 ? DL2_ERR_FORMAT : DL2_OK;
}

static int store_image(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                       struct dl2_error *error)
{
    const struct dl2_resize_output output = dl2_loader_output(recipe->planner.config, out);
    return dl2_convert_pixels(&job->resizer, job->pixels.data, &output, error);
}

#define IMAGE_STAGES                                                                               \
    .init = init_image, .read = read_image, .transform = resize_image,                             \
    .operations = image_operations, .operation_name = image_operation_name,                        \
    .operate = operate_on_image, .store = store_image, .store_name = "resize"

static const struct sample_kind images = {IMAGE_STAGES, .decode = decode_pixels};

/* ---- videos ---- */

/* Decodes the next frame of a video that is loaded. */
static int decode_frame(struct dl2_job *job, const struct dl2_recipe *recipe,
                        struct dl2_error *error)
{
    const struct dl2_planner *planner = &recipe->planner;
    if (!job->video) {
        const int status = dl2_video_open(job->fetched.data, job->fetched.size,
                                          planner->config->max_pixels, &job->video, error);
        dl2_job_drop(job, recipe);
        DL2_TRY(status);
    }
    const struct dl2_video_info *info = dl2_video_info(job->video);
    dl2_plan_set_frames(planner, info->frames, &job->plan);
    DL2_TRY(dl2_video_seek(job->video, dl2_plan_frame(planner, &job->plan), error));
    DL2_TRY(dl2_video_pixels(job->video, &job->raster, error));
    return dl2_plan_set_size(planner, info->width, info->height, &job->plan, error);
}

static const struct sample_kind videos = {IMAGE_STAGES, .decode = decode_frame};

/* ---- volumes ---- */

static int init_volume(struct dl2_job *job, const struct dl2_recipe *recipe,
                       struct dl2_error *error)
{
    return dl2_volume_sample_init(&job->volume, recipe->planner.config, error);
}

static int read_volume(struct dl2_job *job, const struct dl2_recipe *recipe,
                       struct dl2_error *error)
{
    const struct dl2_volume_source source = {&recipe->planner, recipe->foreground, recipe->volumes,
                                             recipe->fetch};
    DL2_TRY(dl2_volume_sample_read(&job->volume, &source, &job->plan, &job->stats, error));
    return read_sidecars(job, recipe, error);
}

static int normalize_volume(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                            struct dl2_error *error)
{
    (void)out;
    (void)error;
    dl2_volume_sample_normalize(&job->volume, recipe->planner.config);
    return DL2_OK;
}

/* Each of the augmentation's counts. */
static unsigned volume_operations(const struct dl2_recipe *recipe)
{
    return recipe->augmentation ? (unsigned)dl2_augmentation_count(recipe->augmentation) : 0;
}

static const char *volume_operation_name(const struct dl2_job *job, const struct dl2_recipe *recipe)
{
    (void)job;
    (void)recipe;
    return "augment";
}

static int operate_on_volume(struct dl2_job *job, const struct dl2_recipe *recipe,
                             struct dl2_error *error)
{
    const unsigned last = DL2_AUGMENT_TIMED - 1;
    const double start = dl2_clock_wall();
    (void)error;
    dl2_augmentation_run_volume(recipe->augmentation, job->operation, &job->plan.random,
                                &job->volume.voxels);
    job->stats.augment[job->operation < last ? job->operation : last] += dl2_clock_wall() - start;
    return DL2_OK;
}

static int store_volume(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                        struct dl2_error *error)
{
    return dl2_volume_sample_store(&job->volume, recipe->planner.config, out, error);
}

static const struct sample_kind volumes = {
    .init = init_volume,
    .read = read_volume,
    .transform = normalize_volume,
    .operations = volume_operations,
    .operation_name = volume_operation_name,
    .operate = operate_on_volume,
    .store = store_volume,
    .store_name = "dtype",
    .stores = true,
};

/* ---- clips ---- */

/* Where a frame begins in the memory of its clip. */
static uint8_t *frame_at(const struct dl2_recipe *recipe, uint8_t *clip, unsigned frame)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    const bool planes = config->layout == DL2_NCHW;
    return clip + frame * (planes ? recipe->image_bytes / config->channels : recipe->image_bytes);
}

/* Copies a frame to the next one's place. */
static void repeat_frame(const struct dl2_recipe *recipe, uint8_t *clip, unsigned frame)
{
    const struct dl2_loader_config *config = recipe->planner.config;
    const unsigned planes = config->layout == DL2_NCHW ? config->channels : 1;
    const size_t bytes = recipe->image_bytes / planes;
    for (unsigned p = 0; p < planes; p++, clip += bytes * dl2_loader_frames(config))
        memcpy(frame_at(recipe, clip, frame + 1), frame_at(recipe, clip, frame), bytes);
}

/* The stage after a frame's last: that of the next frame which is another image, or of the clip. */
static enum dl2_stage end_frame(struct dl2_job *job, const struct dl2_recipe *recipe, uint8_t *clip)
{
    const unsigned frames = dl2_loader_frames(recipe->planner.config);
    struct dl2_sample_plan *plan = &job->plan;
    if (!recipe->planner.config->frames)
        return DL2_STAGE_DONE;
    if (!plan->frame) {
        job->stats.short_clips += dl2_plan_is_short(&recipe->planner, plan);
        job->stats.overlapping_clips += dl2_plan_overlaps(&recipe->planner, plan);
        job->stats.equal_clips += dl2_plan_has_equal_clips(&recipe->planner, plan);
    }
    job->stats.frames++;
    while (plan->frame + 1 < frames && dl2_plan_repeats(&recipe->planner, plan, plan->frame + 1)) {
        repeat_frame(recipe, clip, plan->frame++);
        job->stats.frames++;
    }
    if (++plan->frame == frames) {
        if (job->video)
            end_video(job);
        return recipe->gathers ? DL2_STAGE_PLACE : DL2_STAGE_DONE;
    }
    job->operation = 0;
    return DL2_STAGE_READ;
}

/* ---- the stages ---- */

/* A stage that is run: its name in messages (NULL: errors name the file), what its time is added
 * to, and the stage that comes next. */
struct step {
    const char *name;
    double *sum;
    enum dl2_stage next;
};

/* `to` is the place of the sample, or of the clip's frame. */
static int run_stage(struct dl2_job *job, const struct dl2_recipe *recipe, uint8_t *out,
                     uint8_t *to, struct step *step, struct dl2_error *error)
{
    const struct sample_kind *kind = kind_of(recipe);
    const unsigned operations = kind->operations(recipe);
    int status;
    *step = (struct step){"resize", &job->stats.transform, DL2_STAGE_DONE};
    switch (job->stage) {
    case DL2_STAGE_READ:
        *step = (struct step){NULL, &job->stats.read,
                              kind->decode ? DL2_STAGE_DECODE : DL2_STAGE_TRANSFORM};
        return kind->read(job, recipe, error);
    case DL2_STAGE_DECODE:
        *step = (struct step){"decode", &job->stats.decode, DL2_STAGE_TRANSFORM};
        DL2_TRY(kind->decode(job, recipe, error));
        return show_sidecars(job, recipe, error);
    case DL2_STAGE_TRANSFORM:
        step->next = operations     ? DL2_STAGE_OPERATION
                     : kind->stores ? DL2_STAGE_STORE
                                    : DL2_STAGE_DONE;
        return kind->transform(job, recipe, to, error);
    case DL2_STAGE_OPERATION:
        *step =
            (struct step){kind->operation_name(job, recipe), &job->stats.operations,
                          job->operation + 1 < operations ? DL2_STAGE_OPERATION : DL2_STAGE_STORE};
        status = kind->operate(job, recipe, error);
        job->operation++;
        return status;
    case DL2_STAGE_PLACE:
        memcpy(out, job->clip.data, recipe->sample_bytes);
        return DL2_OK;
    default:
        step->name = kind->store_name;
        return kind->store(job, recipe, to, error);
    }
}

int dl2_job_step(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                 struct dl2_error *error)
{
    uint8_t *const clip = recipe->gathers ? job->clip.data : out;
    struct step step;
    const double start = dl2_clock_wall();
    const int status = run_stage(
        job, recipe, out, clip ? frame_at(recipe, clip, job->plan.frame) : NULL, &step, error);
    const double seconds = dl2_clock_wall() - start;
    *step.sum += seconds;
    job->seconds += seconds;
    if (status == DL2_OK && step.next == DL2_STAGE_DONE && job->stage != DL2_STAGE_PLACE)
        step.next = end_frame(job, recipe, clip);
    if (status < 0 && step.name) {
        struct dl2_sample sample;
        dl2_error_prefix(error, "%s", step.name);
        if (recipe->planner.dataset) {
            dl2_dataset_image(recipe->planner.dataset, job->plan.image, &sample);
            dl2_error_prefix(error, "%s", sample.path);
        }
    }
    if (status < 0) {
        dl2_job_drop(job, recipe);
        close_video(job);
    }
    job->stage = step.next;
    return status;
}
