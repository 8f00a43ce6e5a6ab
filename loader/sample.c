#include "loader/sample.h"

#include "codec/codec.h"
#include "common/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dl2_work_init(struct dl2_work *work, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
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
    dl2_bytes_free(&work->encoded);
    dl2_image_free(&work->image);
    dl2_image_free(&work->turned);
    dl2_resizer_free(&work->resizer);
    free(work->pixels);
    work->pixels = NULL;
}

size_t dl2_work_memory(const struct dl2_work *work, const struct dl2_recipe *recipe)
{
    const struct dl2_loader_config *config = recipe->config;
    const size_t pixels = (size_t)config->image_size * config->image_size * config->channels;
    return sizeof *work + work->encoded.capacity + work->image.capacity + work->turned.capacity +
           (work->pixels ? pixels : 0);
}

void dl2_work_begin(struct dl2_work *work, const struct dl2_recipe *recipe, uint32_t index,
                    size_t position)
{
    work->index = index;
    work->position = position;
    work->stage = DL2_STAGE_READ;
    work->operation = 0;
    work->seconds = 0;
    dl2_random_init(&work->random, recipe->config->seed, DL2_RANDOM_AUGMENT, recipe->epoch, index);
}

bool dl2_work_needs_place(const struct dl2_work *work, const struct dl2_recipe *recipe)
{
    return work->stage == DL2_STAGE_PUT ||
           (work->stage == DL2_STAGE_TRANSFORM && !recipe->config->operation_count);
}

void dl2_work_drop(struct dl2_work *work, const struct dl2_recipe *recipe)
{
    (void)recipe;
    work->data = NULL;
}

/* ---- the stages ---- */

static int read_bytes(struct dl2_work *work, const struct dl2_recipe *recipe,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_dataset_read(recipe->dataset, work->index, &work->encoded, &work->data, &work->size,
                             error));
    work->stats.bytes += work->size;
    return DL2_OK;
}

/* The upright size, from the header. */
static int read_size(const struct dl2_work *work, const struct dl2_recipe *recipe, uint32_t *width,
                     uint32_t *height, struct dl2_error *error)
{
    struct dl2_image_info info;
    const uint64_t limit =
        recipe->config->max_pixels ? recipe->config->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(dl2_image_read_info(work->data, work->size, &info, error));
    DL2_TRY(dl2_image_check_size(info.width, info.height, limit, error));
    const bool turned = info.orientation >= 5;
    *width = turned ? info.height : info.width;
    *height = turned ? info.width : info.height;
    return DL2_OK;
}

/* Header, view, pixels. Gray stays gray until it is resized: that is a third of the work. */
static int decode(struct dl2_work *work, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
    uint32_t width, height;
    DL2_TRY(read_size(work, recipe, &width, &height, error));
    if (config->train)
        dl2_view_for_training(config, &work->random, width, height, &work->view);
    else
        dl2_view_for_validation(config, width, height, &work->view);
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = config->max_pixels;
    options.channels = config->channels == 1 ? 1 : 0;
    DL2_TRY(dl2_image_decode(work->data, work->size, &options, &work->image, &work->turned, error));
    if (work->image.width != width || work->image.height != height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%" PRIu32 "x%" PRIu32 " pixels where the header speaks of %" PRIu32
                             "x%" PRIu32,
                             work->image.width, work->image.height, width, height);
    return DL2_OK;
}

static int transform(struct dl2_work *work, const struct dl2_recipe *recipe, void *out,
                     struct dl2_error *error)
{
    return dl2_transform(&work->resizer, &work->image, &work->view, recipe->config, out, error);
}

static int operate(struct dl2_work *work, const struct dl2_recipe *recipe, struct dl2_error *error)
{
    const struct dl2_loader_config *config = recipe->config;
    const struct dl2_operation *operation = &config->operations[work->operation];
    const int status =
        operation->run(operation->context, work->index, &work->random, work->pixels,
                       config->image_size, config->image_size, config->channels, error);
    if (status < 0 && error->status == DL2_OK)
        dl2_error_set(error, status, "failed");
    return status < 0 ? status : DL2_OK;
}

static int put(const struct dl2_work *work, const struct dl2_recipe *recipe, void *out)
{
    memcpy(out, work->pixels, recipe->sample_bytes);
    return DL2_OK;
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
        status =
            transform(work, recipe, recipe->config->operation_count ? work->pixels : out, error);
        break;
    case DL2_STAGE_OPERATION:
        sum = &work->stats.operations;
        status = operate(work, recipe, error);
        break;
    default:
        status = put(work, recipe, out);
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
