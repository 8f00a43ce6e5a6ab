/* SPDX-License-Identifier: BSD-2-Clause */
/* A visit whose training a database does (config->run.in_database): the checkpoint goes there, and
 * comes back at the end of the visit. */
#include "config.h"

#include "common/scope.h"
#include "dataset/server_fit.h"
#include "loader/sampler.h"
#include "train/checkpoint.h"
#include "train/run.h"

#include <stdio.h>
#include <string.h>

static const char *path_of(const struct dl2_run_data *data, size_t table)
{
    return data->all.count > 1 ? dl2_dataset_member_path(data->dataset, table) : data->path;
}

/* Of several tables the first has all classes: a name that is spelled in another way in one of them
 * would be a class more. */
static int check_classes(const struct dl2_run_data *data, struct dl2_error *error)
{
    const unsigned count = dl2_dataset_class_count(data->all.members[0]);
    const char *added = dl2_dataset_class_name(data->dataset, count);
    for (size_t i = 1; added && i < data->all.count; i++)
        for (unsigned c = 0; c < dl2_dataset_class_count(data->all.members[i]); c++)
            if (!strcmp(dl2_dataset_class_name(data->all.members[i], c), added))
                return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                     "%s: %s has no class '%s': with --in-database the first table "
                                     "has the classes of all; give them the same names",
                                     path_of(data, i), path_of(data, 0), added);
    return DL2_OK;
}

static int check_server(const struct dl2_stream *stream, const char *path,
                        const struct dl2_dataset *table, struct dl2_error *error)
{
    char version[DL2_FIT_VERSION_BYTES];
    DL2_TRY(dl2_dataset_check_fit(table, version, error));
    if (strcmp(version, PACKAGE_VERSION) != 0)
        dl2_run_note(&stream->runs[0],
                     "%s: the extension dl2 there is of version %s, and dl2-train of %s: weights "
                     "may differ from those of other ranks",
                     path, version, PACKAGE_VERSION);
    return DL2_OK;
}

int dl2_stream_check_database(const struct dl2_stream *stream, unsigned rank, unsigned ranks,
                              struct dl2_error *error)
{
    const struct dl2_run_data *data = &stream->stages[0];
    const size_t tables = data->all.count;
    for (size_t i = 0; i < tables || i == 0; i++) {
        if (!tables || !dl2_dataset_can_fit(data->all.members[i]))
            return dl2_error_set(
                error, DL2_ERR_ARGUMENT,
                "%s: --in-database needs a table, like postgresql:///db?table=photos",
                tables ? path_of(data, i) : "synthetic images");
    }
    if (tables > 1 && tables != ranks)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: these are %zu tables, and --in-database trains on them by %zu "
                             "ranks, not %u: each has a table, in the server of that",
                             data->path, tables, tables, ranks);
    if (tables > 1)
        DL2_TRY(check_classes(data, error));
    const size_t own = tables > 1 ? rank : 0;
    return check_server(stream, path_of(data, own), data->all.members[own], error);
}

/* The order of the pass in the visit's partition, as the loader of a visit here has it. */
static int make_order(const struct dl2_run *run, struct dl2_sampler *sampler,
                      struct dl2_error *error)
{
    struct dl2_loader_config loader = run->config->loader;
    loader.train = true;
    loader.rank = 0;
    loader.world = 1;
    loader.drop_last = run->drops_last;
    DL2_TRY(dl2_sampler_init_for(sampler, &loader, run->stream->stages[0].dataset, error));
    dl2_sampler_set_epoch(sampler, run->state.pass);
    return DL2_OK;
}

struct visitor {
    struct dl2_run *run;
    const uint32_t *numbers; /* of samples, in the order of the visit */
};

/* As the loader names a sample that it cannot read. */
static void note_bad(void *context, size_t place, const char *reason)
{
    const struct visitor *visitor = context;
    struct dl2_stream *stream = visitor->run->stream;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_sample sample;
    dl2_dataset_sample(stream->stages[0].dataset, visitor->numbers[place], &sample);
    dl2_error_set(&error, DL2_ERR_FORMAT, "%s: %s", sample.path, reason);
    dl2_stream_add_bad(stream, error.message);
}

static int ask_server(struct dl2_run *run, const struct dl2_sampler *sampler,
                      const struct dl2_bytes *model, struct dl2_bytes *trained,
                      struct dl2_error *error)
{
    const struct dl2_device_class *ops = run->device->ops;
    const uint64_t done =
        (run->state.batch - run->visit_begin) * (uint64_t)run->config->loader.batch;
    char options[160], device[32] = "";
    if (done >= sampler->size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the checkpoint is past the visit's images");
    if (!ops->is_card)
        snprintf(device, sizeof device, ", \"device\": \"%s\"", ops->name);
    snprintf(options, sizeof options, "{\"on-bad\": \"%s\", \"visit\": [%llu, %llu, %llu]%s}",
             run->config->loader.stop_on_bad ? "stop" : "skip",
             (unsigned long long)run->visit_begin, (unsigned long long)run->visit_end,
             (unsigned long long)run->pass_steps, device);
    const struct visitor visitor = {run, sampler->order + done};
    const struct dl2_server_fit fit = {.model = model->data,
                                       .size = model->size,
                                       .options = options,
                                       .numbers = visitor.numbers,
                                       .count = sampler->size - (size_t)done,
                                       .stop = run->config->run.stop,
                                       .bad = note_bad,
                                       .context = (void *)&visitor};
    return dl2_dataset_fit(run->stream->stages[0].dataset, &fit, trained, error);
}

/* Puts the trained model in the place of the run's. */
static int take_model(struct dl2_run *run, struct dl2_bytes *trained, struct dl2_error *error)
{
    struct dl2_safetensors file;
    DL2_TRY(dl2_safetensors_parse(trained, &file, error));
    dl2_run_state_free(&run->state);
    const int status =
        dl2_checkpoint_restore(&file, run->identity, run->network, &run->state, error);
    dl2_safetensors_free(&file);
    return status;
}

static int train_visit(struct dl2_run *run, const struct dl2_sampler *sampler,
                       struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes model = DL2_BYTES_INIT, trained = DL2_BYTES_INIT;
    DL2_TRY(dl2_checkpoint_format(&run->state, run->identity, run->network, &model, error));
    DL2_TRY(ask_server(run, sampler, &model, &trained, error));
    dl2_bytes_free(&model); /* makes room */
    return take_model(run, &trained, error);
}

int dl2_run_train_in_database(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_sampler sampler;
    if (dl2_run_is_over(run) || run->state.trained || run->state.batch >= run->visit_end)
        return DL2_OK;
    if (run->config->precision != DL2_PRECISION_FP32)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "--in-database computes in float32: leave out --amp");
    DL2_TRY(make_order(run, &sampler, error));
    int status = train_visit(run, &sampler, error);
    dl2_sampler_free(&sampler);
    if (status == DL2_ERR_CANCELED) { /* the visit is as it was, and goes into the checkpoint */
        run->decision = DL2_RUN_STOP;
        run->phase = DL2_RUN_STOPPED;
        return DL2_OK;
    }
    if (status < 0 && error && strstr(error->message, DL2_DIVERGED_TEXT))
        run->phase = DL2_RUN_DIVERGED;
    if (status == DL2_OK) {
        const struct dl2_stream *stream = run->stream;
        const char *first = json_object_iter_key(json_object_iter(stream->bad));
        status = dl2_loader_check_bad(run->config->loader.max_bad, json_object_size(stream->bad),
                                      stream->stages[0].images, first ? first : "", error);
    }
    return status;
}
