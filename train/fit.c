/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/fit.h"

#include "common/clock.h"
#include "common/json.h"
#include "loader/sample.h"
#include "loader/sampler.h"
#include "network/arch.h"
#include "network/safetensors.h"
#include "train/checkpoint.h"
#include "train/run.h"
#include "train/train_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A stream of one run, whose batches are filled here. */
struct dl2_fit {
    enum dl2_fit_kind kind;
    struct dl2_train_settings command; /* as of a command line */
    json_t *settings, *identity;       /* options' texts lie in both */
    struct dl2_stream stream;
    struct dl2_loader_config loader;
    struct dl2_recipe recipe;
    struct dl2_job job;
    struct dl2_batch batch;
    /* In training the next good image takes the places of bad ones, too, and after the last the
     * first one does, as in the loader. */
    uint8_t *pixels, *first; /* of the image that came last, and of the first good one */
    int first_label;         /* -1: there is none yet */
    uint64_t open_places;
    uint64_t bad; /* images */
};

static const char *const fit_options[] = {"device", "on-bad", "visit", NULL};

/* Is it the name of an option that a model has? */
static bool is_model_setting(const char *name)
{
    return dl2_option_has_role(dl2_train_options, name, DL2_OPTION_FIT);
}

static bool is_fit_option(const char *name)
{
    const char *const *names = fit_options;
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* -- settings -- */

static int read_object(const char *text, bool (*is_known)(const char *name), json_t **out,
                       struct dl2_error *error)
{
    json_error_t reason;
    const char *key;
    json_t *value;
    *out = json_loads(text, JSON_REJECT_DUPLICATES, &reason);
    if (!json_is_object(*out))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the options are no JSON object");
    json_object_foreach(*out, key, value)
    {
        const bool late = is_known == is_fit_option && is_model_setting(key);
        if (!is_known(key))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no option \"%s\" here%s", key,
                                 late ? ": the model has it since it was made" : "");
    }
    return DL2_OK;
}

/* Completes settings and finds those that make no sense together, as dl2-train does. `given` are
 * those of a new model; NULL: of a model that was made before. */
static int check_settings(struct dl2_fit *fit, const json_t *given, struct dl2_error *error)
{
    struct dl2_error refusal = DL2_ERROR_INIT;
    struct dl2_common_options common = {.jobs = 1};
    struct dl2_train_config *config = &fit->command.config;
    const struct dl2_program program = {
        .name = "dl2", .options = dl2_train_options, .values = &fit->command, .refusal = &refusal};
    const char *key;
    json_t *value;
    if (!given)
        dl2_option_note_given(&program, &common, "data-seed", true);
    /* dl2-train knows the size of data but from the data. */
    json_object_foreach((json_t *)given, key,
                        value) if (strcmp(key, "classes") != 0 && strcmp(key, "images") != 0)
        dl2_option_note_given(&program, &common, key, !json_is_false(value));
    if (dl2_train_options_check(&fit->command, &program, &common, false) != 0 ||
        dl2_train_options_check_rates(config, &program, 1) != 0)
        return refusal.status ? dl2_error_copy(error, &refusal)
                              : dl2_error_memory(error, "settings");
    if (config->loader.frames)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s sees clips, and a table has images: choose a network for images, "
                             "such as resnet10",
                             config->arch);
    if (dl2_arch_find(config->arch, NULL)->labels != DL2_LABEL_CLASS)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s learns the classes of pixels, and a table has those of images",
                             config->arch);
    if (config->data.synthetic_images > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "an epoch has at most %u images", UINT32_MAX);
    return DL2_OK;
}

/* A plug-in's code would run as the server. */
static int check_augment(const json_t *settings, struct dl2_error *error)
{
    const char *augment = json_string_value(json_object_get(settings, "augment"));
    if (!augment || !dl2_augmentation_names_file(augment))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "\"augment\": '%s' names a plug-in: files on the server cannot be named "
                         "here, and dl2-train takes it",
                         augment);
}

static int give_settings(struct dl2_fit *fit, const char *text, struct dl2_error *error)
{
    const char *key;
    json_t *value;
    DL2_TRY(read_object(text, is_model_setting, &fit->settings, error));
    for (int i = 0; i < 2; i++)
        if (!json_object_get(fit->settings, i ? "images" : "classes"))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "a new model needs \"%s\"",
                                 i ? "images" : "classes");
    DL2_TRY(check_augment(fit->settings, error));
    json_object_foreach(fit->settings, key, value)
    {
        const int status = dl2_option_from_user(dl2_train_options, &fit->command, key, value,
                                                DL2_OPTION_FIXED | DL2_OPTION_MODEL, error);
        if (status < 0)
            dl2_error_prefix(error, "\"%s\"", key);
        DL2_TRY(status);
    }
    return check_settings(fit, fit->settings, error);
}

static int take_settings(struct dl2_fit *fit, struct dl2_error *error)
{
    const char *name;
    json_t *value;
    DL2_TRY(check_augment(fit->identity, error));
    json_object_foreach(fit->identity, name, value)
    {
        if (!is_model_setting(name))
            continue;
        const int status =
            dl2_option_from_record(dl2_train_options, &fit->command, name, value, error);
        if (status < 0)
            dl2_error_prefix(error, "the model's \"%s\"", name);
        DL2_TRY(status);
    }
    return check_settings(fit, NULL, error);
}

static int take_options(struct dl2_fit *fit, const char *text, struct dl2_error *error)
{
    DL2_TRY(read_object(text, is_fit_option, &fit->settings, error));
    for (const char *const *name = fit_options; *name; name++) {
        const int status = dl2_option_from_record(dl2_train_options, &fit->command, *name,
                                                  json_object_get(fit->settings, *name), error);
        if (status < 0)
            dl2_error_prefix(error, "\"%s\"", *name);
        DL2_TRY(status);
    }
    return DL2_OK;
}

/* -- opening -- */

static struct dl2_run *run_of(const struct dl2_fit *fit)
{
    return fit->stream.runs;
}

static bool is_training(const struct dl2_run *run)
{
    return run->phase == DL2_RUN_TRAINING;
}

/* Not a card's: servers have many backends. */
static int choose_device(struct dl2_train_config *config, struct dl2_error *error)
{
    struct dl2_device_name name;
    if (!config->device)
        config->device = dl2_device_parse("cpu", &name, NULL) == DL2_OK ? "cpu" : "ref";
    DL2_TRY(dl2_device_parse(config->device, &name, error));
    if (name.automatic || dl2_device_named(&name)->is_card)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the device is cpu or ref, not %s",
                             config->device);
    return DL2_OK;
}

/* The stream as dl2_stream_open() would have it, of settings alone. */
static int set_up_stream(struct dl2_fit *fit, struct dl2_error *error)
{
    struct dl2_stream *stream = &fit->stream;
    struct dl2_train_config *config = &fit->command.config;
    config->threads = 1;
    config->run.started = dl2_clock_wall();
    config->run.checkpoints.every = 0;
    stream->runs = dl2_calloc(1, sizeof *stream->runs);
    stream->stages = dl2_calloc(1, sizeof *stream->stages);
    stream->sources = dl2_calloc(1, sizeof *stream->sources);
    stream->bad = json_object();
    if (!stream->runs || !stream->stages || !stream->sources || !stream->bad)
        return dl2_error_memory(error, "a model");
    struct dl2_run *run = stream->runs;
    stream->config = config;
    stream->run_count = stream->stage_count = stream->source_count = 1;
    stream->classes = config->data.synthetic_classes;
    stream->channels = config->loader.channels ? config->loader.channels : 3;
    *run = (struct dl2_run){.stream = stream,
                            .config = config,
                            .source = stream->sources,
                            .lock = -1,
                            .run_stop = INFINITY};
    struct dl2_run_data *stage = stream->stages;
    stage->name = "rows";
    stage->images = config->data.synthetic_images;
    stage->height = config->loader.height;
    stage->width = dl2_loader_width(&config->loader);
    stage->share_end = 1;
    run->name = strdup("rows");
    run->out = strdup("");
    run->checkpoint = strdup("");
    run->state.epochs = json_array();
    return run->name && run->out && run->checkpoint && run->state.epochs
               ? DL2_OK
               : dl2_error_memory(error, "a model");
}

/* How images become pixels of a batch, as the loader has it. */
static int set_up_images(struct dl2_fit *fit, uint64_t max_pixels, struct dl2_error *error)
{
    struct dl2_loader_config *loader = &fit->loader;
    *loader = fit->command.config.loader;
    loader->train = fit->kind == DL2_FIT_TRAIN;
    loader->channels = fit->stream.channels;
    loader->max_pixels = max_pixels;
    if (!loader->train)
        loader->augment = NULL;
    DL2_TRY(dl2_recipe_init(&fit->recipe, loader, error));
    fit->batch.images = dl2_alloc_aligned(loader->batch, fit->recipe.sample_bytes);
    fit->batch.labels = dl2_calloc(loader->batch, sizeof *fit->batch.labels);
    fit->pixels = dl2_alloc_aligned(fit->recipe.sample_bytes, 1);
    fit->first = dl2_alloc_aligned(fit->recipe.sample_bytes, 1);
    fit->first_label = -1;
    if (!fit->batch.images || !fit->batch.labels || !fit->pixels || !fit->first)
        return dl2_error_memory(error, "a batch");
    return dl2_job_init(&fit->job, &fit->recipe, error);
}

/* Refuses what would take too much before any of it is taken. `model`: the bytes of one that is
 * there, which are in memory three times, when it is read and when it is written. */
static int check_memory(const struct dl2_fit *fit, size_t model, uint64_t limit,
                        struct dl2_error *error)
{
    const double mib = 1048576;
    const struct dl2_loader_config *loader = &fit->command.config.loader;
    const double pixels = (double)loader->height * dl2_loader_width(loader);
    uint64_t network;
    DL2_TRY(dl2_run_plan_bytes(run_of(fit), &network, error));
    const double all =
        (double)network + 3.0 * (double)model + pixels * fit->stream.channels * loader->batch;
    if (all <= (double)limit)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_LIMIT,
                         "the model takes %.1f MiB with its batch of %u images, and the limit is "
                         "%.1f MiB: make one with a smaller \"batch\", or raise the limit",
                         all / mib, loader->batch, (double)limit / mib);
}

static int open_run(struct dl2_fit *fit, size_t model, const struct dl2_fit_limits *limits,
                    struct dl2_error *error)
{
    DL2_TRY(choose_device(&fit->command.config, error));
    DL2_TRY(set_up_stream(fit, error));
    DL2_TRY(dl2_run_open_device(run_of(fit), error));
    DL2_TRY(check_memory(fit, model, limits->memory, error));
    return dl2_run_open_network(run_of(fit), error);
}

static struct dl2_fit *create(enum dl2_fit_kind kind)
{
    struct dl2_fit *fit = dl2_calloc(1, sizeof *fit);
    if (!fit)
        return NULL;
    fit->kind = kind;
    fit->command = dl2_train_defaults();
    return fit;
}

static int make_model(struct dl2_fit *fit, const char *settings,
                      const struct dl2_fit_limits *limits, struct dl2_bytes *out,
                      struct dl2_error *error)
{
    DL2_TRY(give_settings(fit, settings, error));
    if (fit->command.config.optimizer.accumulate != 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "\"grad-accum\": nobody knows how many images will come: give a "
                             "larger \"batch\"");
    DL2_TRY(open_run(fit, 0, limits, error));
    struct dl2_run *run = run_of(fit);
    run->arguments = dl2_run_arguments(run);
    run->identity = dl2_run_identity(run);
    return dl2_checkpoint_format(&run->state, run->identity, run->network, out, error);
}

int dl2_fit_make(const char *settings, const struct dl2_fit_limits *limits, struct dl2_bytes *out,
                 struct dl2_error *error)
{
    struct dl2_fit *fit = create(DL2_FIT_TRAIN);
    const int status =
        fit ? make_model(fit, settings, limits, out, error) : dl2_error_memory(error, "a model");
    dl2_fit_close(fit);
    return status;
}

/* The batches of a visit, which whoever has the partitions knows: [BEGIN, END, ALL] of an epoch. */
static int take_visit(struct dl2_fit *fit, const json_t *visit, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    const uint64_t batch = run->state.batch;
    json_int_t begin, end, all;
    if (!visit)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the model's run has partitions: \"visit\" has to tell the batches of "
                             "this one");
    if (json_unpack((json_t *)visit, "[I, I, I!]", &begin, &end, &all) != 0 || begin < 0 ||
        (uint64_t)begin > batch || end < 0 || (uint64_t)end <= batch || all < end)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "\"visit\" is not [BEGIN, END, ALL], batches of an epoch that is at "
                             "batch %llu",
                             (unsigned long long)batch);
    run->visit_begin = (uint64_t)begin;
    run->visit_end = (uint64_t)end;
    run->pass_steps = (uint64_t)all;
    run->run_stop = run->state.pass_start + (double)end / (double)all;
    return DL2_OK;
}

/* Finds the batches of this call in the epoch. */
static int find_place(struct dl2_fit *fit, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    const struct dl2_run_state *state = &run->state;
    const json_t *visit = json_object_get(fit->settings, "visit");
    const uint64_t images = fit->command.config.data.synthetic_images,
                   batch = fit->command.config.loader.batch;
    if (state->completed)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the model has had all of its %g epochs: make one with more",
                             fit->command.config.data.stages[0].epochs);
    if (state->stage > 0 || state->missing || state->trained)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the model's run is at a place where no images can be added");
    if (fit->command.config.optimizer.accumulate != 1 && !state->partitions)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "the model's run accumulates gradients, without partitions");
    if (visit && !state->partitions)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "\"visit\": the model's run has no partitions");
    fit->command.config.loader.partitions = 1; /* so that dl2_run_steps() asks for no feed */
    if (state->partitions)
        return take_visit(fit, visit, error);
    run->pass_steps = images < batch ? 1 : images / batch;
    run->visit_end = run->pass_steps;
    return DL2_OK;
}

static int open_model(struct dl2_fit *fit, struct dl2_safetensors *file, size_t size,
                      const char *options, const struct dl2_fit_limits *limits,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_checkpoint_identity(file, &fit->identity, error));
    DL2_TRY(take_settings(fit, error));
    DL2_TRY(take_options(fit, options, error));
    DL2_TRY(open_run(fit, size, limits, error));
    struct dl2_run *run = run_of(fit);
    dl2_run_state_free(&run->state);
    DL2_TRY(dl2_checkpoint_restore(file, fit->identity, run->network, &run->state, error));
    DL2_TRY(set_up_images(fit, limits->max_pixels, error));
    if (fit->kind == DL2_FIT_EVALUATE)
        return dl2_run_use_average(run, true, error);
    run->elapsed_before = run->state.elapsed;
    DL2_TRY(find_place(fit, error));
    fit->recipe.planner.epoch = run->state.pass;
    DL2_TRY(dl2_run_enter_pass(run, error));
    run->step.last = dl2_clock_wall();
    return DL2_OK;
}

int dl2_fit_open(enum dl2_fit_kind kind, const void *model, size_t size, const char *options,
                 const struct dl2_fit_limits *limits, struct dl2_fit **out, struct dl2_error *error)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_safetensors file;
    *out = NULL;
    DL2_TRY(dl2_bytes_append(&bytes, model, size, error));
    int status = dl2_safetensors_parse(&bytes, &file, error);
    if (status < 0)
        dl2_error_prefix(error, "the model");
    DL2_TRY(status);
    struct dl2_fit *fit = create(kind);
    status = fit ? open_model(fit, &file, size, options, limits, error)
                 : dl2_error_memory(error, "a model");
    dl2_safetensors_free(&file);
    if (status < 0)
        dl2_fit_close(fit);
    else
        *out = fit;
    return status;
}

void dl2_fit_close(struct dl2_fit *fit)
{
    if (!fit)
        return;
    if (fit->job.decoder || fit->job.targets)
        dl2_job_free(&fit->job, &fit->recipe);
    dl2_augmentation_free(fit->recipe.augmentation);
    free(fit->batch.images);
    free(fit->batch.labels);
    free(fit->pixels);
    free(fit->first);
    if (fit->stream.run_count)
        dl2_stream_close(&fit->stream);
    free(fit->stream.runs);
    dl2_train_options_free(&fit->command.config);
    json_decref(fit->settings);
    json_decref(fit->identity);
    free(fit);
}

/* -- training -- */

/* What the report of dl2-train has of an epoch, as far as it is known here. */
static int record_pass(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_run_state *state = &run->state;
    const double counted = state->sums.counted ? (double)state->sums.counted : NAN;
    json_t *record = json_pack(
        "{s:I, s:f, s:o, s:{s:I, s:o, s:o, s:o}, s:[]}", "epoch", (json_int_t)state->pass + 1,
        "position", dl2_run_position(run), "lr", dl2_json_real(state->lr), "train", "images",
        (json_int_t)state->images, "loss", dl2_json_real(state->sums.loss / counted), "top1",
        dl2_json_real((double)state->sums.top1 / counted), "top5",
        dl2_json_real((double)state->sums.top5 / counted), "val");
    return record && json_array_append_new(state->epochs, record) == 0
               ? DL2_OK
               : dl2_error_memory(error, "an epoch's record");
}

/* Begins the next step, in the next epoch where this one is over. The run then trains, or has come
 * to its end or to the end of its visit. */
static int begin_next(struct dl2_fit *fit, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    struct dl2_run_state *state = &run->state;
    for (;;) {
        DL2_TRY(dl2_run_begin_step(run, error));
        if (is_training(run) || state->partitions)
            return DL2_OK;
        state->trained = false;
        if (state->batch == 0) {
            state->completed = true;
            return DL2_OK;
        }
        DL2_TRY(record_pass(run, error));
        dl2_run_next_pass(run);
        run->phase = DL2_RUN_TRAINING;
    }
}

static int train_on_batch(struct dl2_fit *fit, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    if (is_training(run) && run->step.done == 0)
        DL2_TRY(begin_next(fit, error));
    if (!is_training(run)) /* the images are more than the run has epochs for */
        return DL2_OK;
    const int status = dl2_run_train_batch(run, &fit->batch, 0, error);
    dl2_network_wait_input(run->network);
    DL2_TRY(status);
    return run->step.done == run->step.batches ? dl2_run_end_step(run, error) : DL2_OK;
}

static int use_batch(struct dl2_fit *fit, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    int status;
    if (fit->kind == DL2_FIT_TRAIN) {
        status = train_on_batch(fit, error);
        fit->recipe.planner.epoch = run->state.pass;
    } else {
        const struct dl2_network_input input = {fit->batch.images, fit->batch.labels,
                                                fit->batch.count, NULL, 1};
        status = dl2_network_evaluate(run->network, &input, error);
        dl2_network_wait_input(run->network);
    }
    fit->batch.count = 0;
    return status;
}

/* From bytes to fit->pixels. */
static int decode_image(struct dl2_fit *fit, const void *image, size_t size, uint32_t number,
                        struct dl2_error *error)
{
    struct dl2_job *job = &fit->job;
    dl2_job_begin(job, number, 0, 0);
    dl2_plan_sample(&fit->recipe.planner, &job->plan);
    job->fetched.data = image;
    job->fetched.size = size;
    job->stage = DL2_STAGE_DECODE;
    int status = DL2_OK;
    while (status == DL2_OK && job->stage != DL2_STAGE_DONE)
        status = dl2_job_step(job, &fit->recipe, fit->pixels, error);
    return status;
}

static int fill_place(struct dl2_fit *fit, const uint8_t *pixels, int label,
                      struct dl2_error *error)
{
    const size_t bytes = fit->recipe.sample_bytes;
    memcpy(fit->batch.images + fit->batch.count * bytes, pixels, bytes);
    fit->batch.labels[fit->batch.count++] = label;
    return fit->batch.count == fit->loader.batch ? use_batch(fit, error) : DL2_OK;
}

static int fill_open_places(struct dl2_fit *fit, const uint8_t *pixels, int label,
                            struct dl2_error *error)
{
    for (; fit->open_places; fit->open_places--)
        DL2_TRY(fill_place(fit, pixels, label, error));
    return DL2_OK;
}

int dl2_fit_add(struct dl2_fit *fit, const void *image, size_t size, int label, uint32_t number,
                struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    const bool training = fit->kind == DL2_FIT_TRAIN;
    if (label < 0 || (unsigned)label >= fit->stream.classes)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the label %d is not a class of the model: 0 to %u", label,
                             fit->stream.classes - 1);
    /* A batch's first image may be an epoch's first, whose random numbers its crop has. */
    if (training && fit->batch.count == 0 && is_training(run) && run->step.done == 0) {
        DL2_TRY(begin_next(fit, error));
        run->step.batches = 0;
        fit->recipe.planner.epoch = run->state.pass;
    }
    const int status = decode_image(fit, image, size, number, error);
    if (status < 0 && status != DL2_ERR_MEMORY && !fit->loader.stop_on_bad) {
        fit->bad++;
        fit->open_places += training;
        return 1;
    }
    DL2_TRY(status);
    if (fit->first_label < 0) {
        memcpy(fit->first, fit->pixels, fit->recipe.sample_bytes);
        fit->first_label = label;
    }
    DL2_TRY(fill_open_places(fit, fit->pixels, label, error));
    return fill_place(fit, fit->pixels, label, error);
}

/* The visit must have had its images, or a run would believe that it has seen them. */
static int end_training(struct dl2_fit *fit, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    const struct dl2_run_state *state = &run->state;
    if (fit->first_label >= 0)
        DL2_TRY(fill_open_places(fit, fit->first, fit->first_label, error));
    /* A short batch counts as the last one of a visit, or of an epoch that has no other. */
    const bool short_one = state->partitions
                               ? state->batch + 1 == run->visit_end
                               : fit->command.config.data.synthetic_images < fit->loader.batch;
    if (fit->batch.count && short_one)
        DL2_TRY(use_batch(fit, error));
    if (state->partitions && is_training(run) && state->batch != run->visit_end)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the rows made %llu batches, and the visit has %llu",
                             (unsigned long long)(state->batch - run->visit_begin),
                             (unsigned long long)(run->visit_end - run->visit_begin));
    if (is_training(run) && !state->partitions)
        DL2_TRY(begin_next(fit, error));
    return is_training(run) ? dl2_run_leave_pass(run, error) : DL2_OK;
}

int dl2_fit_end(struct dl2_fit *fit, struct dl2_fit_figures *figures, struct dl2_error *error)
{
    struct dl2_loss_sums sums = {.counted = 0};
    if (fit->kind == DL2_FIT_TRAIN) {
        DL2_TRY(end_training(fit, error));
    } else {
        if (fit->batch.count)
            DL2_TRY(use_batch(fit, error));
        DL2_TRY(dl2_run_sums(run_of(fit), &sums, error));
    }
    const double counted = sums.counted ? (double)sums.counted : NAN;
    *figures = (struct dl2_fit_figures){.images = sums.counted,
                                        .bad = fit->bad,
                                        .loss = sums.loss / counted,
                                        .top1 = (double)sums.top1 / counted};
    return DL2_OK;
}

int dl2_fit_save(struct dl2_fit *fit, struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_run *run = run_of(fit);
    run->state.elapsed = dl2_run_elapsed(run);
    return dl2_checkpoint_format(&run->state, fit->identity, run->network, out, error);
}

int dl2_fit_order(uint32_t count, uint64_t seed, uint64_t epoch, uint32_t *order,
                  struct dl2_error *error)
{
    struct dl2_sampler sampler;
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.seed = seed;
    config.batch = 1;
    DL2_TRY(dl2_sampler_init(&sampler, &config, count, error));
    dl2_sampler_set_epoch(&sampler, epoch);
    memcpy(order, sampler.order, count * sizeof *order);
    dl2_sampler_free(&sampler);
    return DL2_OK;
}
