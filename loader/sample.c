#include "loader/sample.h"

#include "codec/jpeg/jpeg_slices.h"
#include "common/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dl2_work_init(struct dl2_work *work, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
    DL2_TRY(dl2_decoder_create(&work->decoder, error));
    if (!config->operation_count)
        return DL2_OK;
    const size_t side = config->image_size;
    work->pixels = dl2_alloc_aligned(side * side, config->channels);
    if (!work->pixels)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for an image of %zux%zu", side,
                             side);
    return DL2_OK;
}

void dl2_work_free(struct dl2_work *work, const struct dl2_recipe *recipe)
{
    dl2_work_drop(work, recipe);
    dl2_bytes_free(&work->fetched.scratch);
    dl2_bytes_free(&work->joined);
    dl2_decoder_destroy(work->decoder);
    work->decoder = NULL;
    dl2_resizer_free(&work->resizer);
    dl2_jpeg_splice_free(&work->splice);
    free(work->pixels);
    work->pixels = NULL;
}

size_t dl2_work_memory(const struct dl2_work *work, const struct dl2_recipe *recipe)
{
    const struct dl2_loader_config *config = recipe->config;
    const size_t pixels = (size_t)config->image_size * config->image_size * config->channels;
    return sizeof *work + work->fetched.scratch.capacity + work->joined.capacity +
           work->splice.jpeg.capacity + work->splice.shift.capacity +
           work->splice.segments.capacity + (work->pixels ? pixels : 0) +
           dl2_decoder_memory(work->decoder) + dl2_resizer_memory(&work->resizer);
}

void dl2_work_begin(struct dl2_work *work, const struct dl2_recipe *recipe, uint32_t index,
                    size_t position)
{
    work->index = index;
    work->position = position;
    work->stage = DL2_STAGE_READ;
    work->operation = 0;
    work->seconds = 0;
    work->has_crop = false;
    work->slices.count = 0;
    work->staged = false;
    dl2_random_init(&work->random, recipe->config->seed, DL2_RANDOM_AUGMENT, recipe->epoch, index);
}

bool dl2_work_needs_place(const struct dl2_work *work, const struct dl2_recipe *recipe)
{
    return work->stage == DL2_STAGE_PUT ||
           (work->stage == DL2_STAGE_TRANSFORM && !recipe->config->operation_count);
}

void dl2_work_drop(struct dl2_work *work, const struct dl2_recipe *recipe)
{
    if (work->holds_bytes)
        dl2_fetch_give(recipe->fetch, &work->fetched);
    work->holds_bytes = false;
}

struct dl2_crop_config dl2_loader_crop_config(const struct dl2_loader_config *config)
{
    return (struct dl2_crop_config){
        .image_size = config->image_size,
        .resize = config->resize,
        .area_min = config->area_min,
        .area_max = config->area_max,
        .aspect_min = config->aspect_min,
        .aspect_max = config->aspect_max,
        .flip = config->flip,
    };
}

struct dl2_resize_output dl2_loader_output(const struct dl2_loader_config *config, void *out)
{
    struct dl2_resize_output output = {
        .data = out,
        .width = config->image_size,
        .height = config->image_size,
        .channels = config->channels,
        .dtype = config->dtype,
        .layout = config->layout,
    };
    memcpy(output.mean, config->mean, sizeof output.mean);
    memcpy(output.std, config->std, sizeof output.std);
    return output;
}

/* ---- the stages ---- */

static void choose_crop(const struct dl2_loader_config *config, struct dl2_random *random,
                        uint32_t width, uint32_t height, struct dl2_crop *crop)
{
    const struct dl2_crop_config crops = dl2_loader_crop_config(config);
    if (config->train)
        dl2_crop_for_training(&crops, random, width, height, crop);
    else
        dl2_crop_for_validation(&crops, width, height, crop);
}

/* None where the crop needs about all of them: one read of what lies together is as good. */
static struct dl2_slice_range slices_of_crop(const struct dl2_cuts *cuts,
                                             const struct dl2_crop *crop)
{
    const uint32_t top = crop->y < DL2_JPEG_SLICE_MARGIN ? 0 : crop->y - DL2_JPEG_SLICE_MARGIN;
    const uint64_t bottom = (uint64_t)crop->y + crop->height + DL2_JPEG_SLICE_MARGIN;
    const uint64_t end = bottom < cuts->height ? (bottom - 1) / cuts->rows + 1 : cuts->count;
    const uint32_t first = top / cuts->rows, count = (uint32_t)end - first;
    return count < cuts->count ? (struct dl2_slice_range){first, count}
                               : (struct dl2_slice_range){0};
}

/*
 * The crop of a sample whose size the dataset knows, before there are bytes, and the slices that it
 * needs, count 0 for all of them. False where the size isn't known, or too large: such an image is
 * read, to be refused.
 */
static bool crop_of_cuts(const struct dl2_recipe *recipe, uint32_t index, struct dl2_random *random,
                         struct dl2_cuts *cuts, struct dl2_crop *crop,
                         struct dl2_slice_range *slices)
{
    const uint64_t most = recipe->config->max_pixels;
    if (!dl2_dataset_cuts(recipe->dataset, index, cuts) ||
        (uint64_t)cuts->width * cuts->height > (most ? most : DL2_DEFAULT_MAX_PIXELS))
        return false;
    choose_crop(recipe->config, random, cuts->width, cuts->height, crop);
    *slices = slices_of_crop(cuts, crop);
    return true;
}

bool dl2_sample_slices(const void *context, uint32_t index, struct dl2_slice_range *range)
{
    const struct dl2_recipe *recipe = context;
    struct dl2_cuts cuts;
    struct dl2_random random;
    struct dl2_crop crop;
    dl2_random_init(&random, recipe->config->seed, DL2_RANDOM_AUGMENT, recipe->epoch, index);
    return crop_of_cuts(recipe, index, &random, &cuts, &crop, range) && range->count;
}

static int read_bytes(struct dl2_work *work, const struct dl2_recipe *recipe,
                      struct dl2_error *error)
{
    work->cached = recipe->decoded ? dl2_cache_find(recipe->decoded, work->index) : NULL;
    if (work->cached)
        return DL2_OK;
    work->holds_bytes = true; /* to be given back after an error, too */
    work->has_crop = recipe->sliced && crop_of_cuts(recipe, work->index, &work->random, &work->cuts,
                                                    &work->crop, &work->slices);
    DL2_TRY(dl2_fetch_take(recipe->fetch, work->position, work->index,
                           work->slices.count ? &work->slices : NULL, &work->fetched, error));
    work->stats.bytes += work->fetched.size;
    return DL2_OK;
}

/* A block as a raster of one plane. */
static void look_at(struct dl2_work *work, const struct dl2_cache_block *block)
{
    work->raster = (struct dl2_raster){
        .color = block->channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
        .planes[0] = {.data = block->data,
                      .stride = (size_t)block->width * block->channels,
                      .width = block->width,
                      .height = block->height,
                      .step_x = 1,
                      .step_y = 1},
    };
}

/* Decodes the whole image and keeps it where the cache has room: 1, or 0 where it has none. */
static int decode_into_cache(struct dl2_work *work, const struct dl2_recipe *recipe,
                             struct dl2_decode_request *request, uint32_t width, uint32_t height,
                             uint32_t channels, struct dl2_error *error)
{
    const size_t row = (size_t)width * channels;
    struct dl2_cache_block *block = dl2_cache_offer(recipe->decoded, work->index, row * height);
    if (!block)
        return 0;
    request->x = request->y = 0;
    request->width = width;
    request->height = height;
    int status = dl2_decoder_decode(work->decoder, request, &work->raster, error);
    const struct dl2_plane *plane = &work->raster.planes[0];
    if (status == DL2_OK && dl2_raster_channels(&work->raster) != channels)
        status = dl2_error_set(error, DL2_ERR_FORMAT, "%u channels where the header speaks of %u",
                               dl2_raster_channels(&work->raster), channels);
    if (status < 0) {
        dl2_cache_withdraw(recipe->decoded, work->index, block);
        return status;
    }
    for (uint32_t y = 0; y < height; y++)
        memcpy(block->data + y * row, plane->data + y * plane->stride, row);
    block->width = width;
    block->height = height;
    block->channels = channels;
    dl2_cache_publish(recipe->decoded, work->index, block);
    look_at(work, block);
    return 1;
}

/* A raster of uncompressed pixels may be the encoded bytes themselves. */
static bool lies_in_bytes(const struct dl2_work *work)
{
    const uintptr_t pixels = (uintptr_t)work->raster.planes[0].data;
    const uintptr_t bytes = (uintptr_t)work->fetched.data;
    return pixels >= bytes && pixels < bytes + work->fetched.size;
}

/* From here on the sample is an image of the rows that were read, which the crop is told in. */
static int join_slices(struct dl2_work *work, const struct dl2_recipe *recipe,
                       struct dl2_error *error)
{
    const struct dl2_cuts *cuts = &work->cuts;
    const int status = dl2_jpeg_join_slices(cuts->head, cuts->head_size, cuts->width, cuts->height,
                                            cuts->rows, work->slices, work->fetched.data,
                                            work->fetched.size, &work->joined, error);
    dl2_work_drop(work, recipe);
    work->crop.y -= work->slices.first * cuts->rows;
    return status;
}

/* A small JPEG of the segments under the crop, if that is all that is needed. */
static bool splice_crop(struct dl2_work *work, const uint8_t *data, size_t size)
{
    const struct dl2_crop *crop = &work->crop;
    struct dl2_jpeg_splice *splice = &work->splice;
    return dl2_jpeg_splice(splice, data, size, crop->x, crop->y, crop->width, crop->height, NULL) ==
               1 &&
           splice->y + splice->height >= crop->y + crop->height;
}

/* Makes work->encoded where the batch decoder takes the image. */
static bool stage(struct dl2_work *work, const struct dl2_recipe *recipe,
                  const struct dl2_image_info *info, const uint8_t *data, size_t size)
{
    struct dl2_batch_decoder *decoder = recipe->config->decoder;
    const struct dl2_crop *crop = &work->crop;
    struct dl2_encoded *encoded = &work->encoded;
    *encoded = (struct dl2_encoded){.data = data, .size = size, .flip = crop->flip};
    if (info->orientation != 1 || !dl2_jpeg_plain_read(&encoded->jpeg, data, size))
        return false;
    double x = crop->x, y = crop->y;
    if (recipe->config->decoder_splices && splice_crop(work, data, size)) {
        encoded->data = work->splice.jpeg.data;
        encoded->size = work->splice.jpeg.size;
        encoded->jpeg.width = work->splice.width;
        encoded->jpeg.height = work->splice.height;
        if (work->splice.shifted)
            encoded->shift = (const uint32_t *)(const void *)work->splice.shift.data;
        x -= work->splice.x;
        y -= work->splice.y;
    }
    if (!decoder->ops->takes(decoder, &encoded->jpeg))
        return false;
    encoded->limit = (struct dl2_box){x, y, x + crop->width, y + crop->height};
    encoded->box = (struct dl2_box){x + crop->box.left, y + crop->box.top, x + crop->box.right,
                                    y + crop->box.bottom};
    if (encoded->data != data)
        dl2_work_drop(work, recipe);
    return true;
}

/* Header, crop, pixels. Gray stays gray until it is resized: that is a third of the work. */
static int decode(struct dl2_work *work, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
    if (work->cached) {
        choose_crop(config, &work->random, work->cached->width, work->cached->height, &work->crop);
        look_at(work, work->cached);
        work->stats.decoded_hits++;
        return DL2_OK;
    }
    struct dl2_image_info info;
    if (work->slices.count)
        DL2_TRY(join_slices(work, recipe, error));
    const uint8_t *const data = work->slices.count ? work->joined.data : work->fetched.data;
    const size_t size = work->slices.count ? work->joined.size : work->fetched.size;
    DL2_TRY(dl2_decoder_open(work->decoder, data, size, config->max_pixels, &info, error));
    const uint32_t width = dl2_upright_width(&info), height = dl2_upright_height(&info);
    if (!work->has_crop)
        choose_crop(config, &work->random, width, height, &work->crop);
    else if (!work->slices.count && (width != work->cuts.width || height != work->cuts.height))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "is of %" PRIu32 "x%" PRIu32 " where the index says %" PRIu32
                             "x%" PRIu32 ": run dl2-transcode --index",
                             width, height, work->cuts.width, work->cuts.height);
    work->staged = work->to_decoder && stage(work, recipe, &info, data, size);
    if (work->staged)
        return DL2_OK;
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    request.channels = config->channels == 1 ? 1 : 0;
    /* The cache keeps gray or RGB of full size; samples without room in it must look alike. */
    request.planes = !recipe->decoded;
    request.reduction = recipe->decoded ? 1 : dl2_crop_reduction(&work->crop, config->image_size);
    int status = 0;
    if (recipe->decoded)
        status = decode_into_cache(work, recipe, &request, width, height,
                                   config->channels == 1 ? 1 : info.channels, error);
    if (status == 0) {
        request.x = work->crop.x;
        request.y = work->crop.y;
        request.width = work->crop.width;
        request.height = work->crop.height;
        status = dl2_decoder_decode(work->decoder, &request, &work->raster, error);
    }
    if (status < 0 || !lies_in_bytes(work))
        dl2_work_drop(work, recipe);
    return status < 0 ? status : DL2_OK;
}

/* Where operations follow, they work on uint8 NHWC pixels. */
static int transform(struct dl2_work *work, const struct dl2_recipe *recipe, void *out,
                     struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
    if (work->staged) {
        const int added =
            config->decoder->ops->add(work->slot, work->number, &work->encoded, error);
        dl2_work_drop(work, recipe);
        work->stats.decoder_images += added == DL2_OK;
        return added;
    }
    struct dl2_resize_output output = dl2_loader_output(config, out);
    if (config->operation_count) {
        output.data = work->pixels;
        output.dtype = DL2_UINT8;
        output.layout = DL2_NHWC;
    }
    const int status = dl2_crop_resize(&work->resizer, &work->raster, &work->crop, output, error);
    dl2_work_drop(work, recipe);
    return status;
}

static int operate(struct dl2_work *work, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
    const struct dl2_operation *operation = &config->operations[work->operation];
    const int status =
        operation->run(operation->context, work->index, &work->random, work->pixels,
                       config->image_size, config->image_size, config->channels, error);
    /* Whatever the number: it is the caller's, not one that means lack of memory or a stop here. */
    if (status < 0 && error->status == DL2_OK)
        dl2_error_set(error, DL2_ERR_FORMAT, "failed");
    return status < 0 ? DL2_ERR_FORMAT : DL2_OK;
}

static int put(struct dl2_work *work, const struct dl2_recipe *recipe, void *out,
               struct dl2_error *error)
{
    const struct dl2_resize_output output = dl2_loader_output(recipe->config, out);
    return dl2_convert_pixels(&work->resizer, work->pixels, &output, error);
}

/* What the stages are called in a message; what reads already names the file. */
static const char *stage_name(const struct dl2_work *work, const struct dl2_recipe *recipe)
{
    switch (work->stage) {
    case DL2_STAGE_READ:
        return NULL;
    case DL2_STAGE_DECODE:
        return "decode";
    case DL2_STAGE_OPERATION:
        return recipe->config->operations[work->operation].name;
    default:
        return "resize";
    }
}

static enum dl2_stage stage_after(const struct dl2_work *work, const struct dl2_recipe *recipe)
{
    const unsigned operations = recipe->config->operation_count;
    switch (work->stage) {
    case DL2_STAGE_READ:
        return DL2_STAGE_DECODE;
    case DL2_STAGE_DECODE:
        return DL2_STAGE_TRANSFORM;
    case DL2_STAGE_TRANSFORM:
        return operations ? DL2_STAGE_OPERATION : DL2_STAGE_DONE;
    case DL2_STAGE_OPERATION:
        return work->operation < operations ? DL2_STAGE_OPERATION : DL2_STAGE_PUT;
    default:
        return DL2_STAGE_DONE;
    }
}

int dl2_work_step(struct dl2_work *work, const struct dl2_recipe *recipe, void *out,
                  struct dl2_error *error)
{
    int status = DL2_OK;
    double *sum = &work->stats.transform;
    const double start = dl2_clock_wall();
    switch (work->stage) {
    case DL2_STAGE_READ:
        sum = &work->stats.read;
        status = read_bytes(work, recipe, error);
        break;
    case DL2_STAGE_DECODE:
        sum = &work->stats.decode;
        status = decode(work, recipe, error);
        break;
    case DL2_STAGE_TRANSFORM:
        status = transform(work, recipe, out, error);
        break;
    case DL2_STAGE_OPERATION:
        sum = &work->stats.operations;
        status = operate(work, recipe, error);
        break;
    default:
        status = put(work, recipe, out, error);
        break;
    }
    const double seconds = dl2_clock_wall() - start;
    *sum += seconds;
    work->seconds += seconds;
    const char *name = stage_name(work, recipe);
    if (status < 0 && name) {
        struct dl2_sample sample;
        dl2_dataset_sample(recipe->dataset, work->index, &sample);
        dl2_error_prefix(error, "%s: %s", sample.path, name);
    }
    if (status < 0)
        dl2_work_drop(work, recipe);
    if (work->stage == DL2_STAGE_OPERATION)
        work->operation++;
    work->stage = stage_after(work, recipe);
    return status;
}
