/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of a run: experiment_report.json (docs/formats/train.md, dl2-experiment/1). */
#include "common/json.h"
#include "common/machine.h"
#include "common/scope.h"
#include "loader/loader_options.h"
#include "train/predictions.h"
#include "train/run.h"
#include "train/train_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many train on this machine: those of the stream, and others, which the user names. */
static json_int_t trainers(const struct dl2_run *run)
{
    const unsigned given = run->config->run.trainers;
    json_int_t count = given > 1 ? given - 1 : 0;
    for (size_t i = 0; i < run->stream->run_count; i++)
        count += !dl2_run_is_over(&run->stream->runs[i]);
    return count;
}

/* The size of a stage's images; NULL where it is that of the others. */
static json_t *own_size(const struct dl2_run *run, size_t stage)
{
    const struct dl2_train_stage *given = &run->config->data.stages[stage];
    const struct dl2_loader_config *loader = &run->config->loader;
    return given->height && (given->height != loader->height || given->width != loader->width)
               ? dl2_show_image_size(&given->height)
               : NULL;
}

static json_t *own_freeze(const struct dl2_run *run, size_t stage)
{
    return run->config->data.stages[stage].freeze ? json_true() : NULL;
}

static json_t *stage_list(const struct dl2_run *run, bool with_paths)
{
    json_t *array = json_array();
    for (size_t i = 0; i < run->stream->stage_count; i++) {
        const struct dl2_run_data *stage = &run->stream->stages[i];
        json_t *path = !with_paths ? NULL : stage->path ? dl2_json_text(stage->path) : json_null();
        json_array_append_new(
            array, json_pack("{s:o, s:o*, s:o, s:o*, s:o*, s:I, s:I}", "variant",
                             dl2_json_text(stage->name), "path", path, "epochs",
                             dl2_json_real(run->config->data.stages[i].epochs), "image_size",
                             own_size(run, i), "freeze", own_freeze(run, i), "images",
                             (json_int_t)stage->images, "bytes", (json_int_t)stage->bytes));
    }
    return array;
}

/* Every option under its long name, with the value that the run came to. */
json_t *dl2_run_arguments(const struct dl2_run *run)
{
    const struct dl2_train_config *c = run->config;
    const bool staged = c->data.stage_count > 1;
    const struct dl2_train_settings settings = {.config = *c,
                                                .freeze = !staged && c->data.stages[0].freeze};
    json_t *a = dl2_options_json(dl2_train_options, &settings);
    const bool cards = c->world && run->device->ops->is_card;
    double epochs = 0;
    for (size_t i = 0; i < c->data.stage_count; i++)
        epochs += c->data.stages[i].epochs;
    const char *data = c->data.joined_count ? run->stream->stages[0].path : c->data.stages[0].path;
    json_object_set_new(a, "data", staged || !data ? json_null() : dl2_json_text(data));
    json_object_set_new(a, "stages", staged ? stage_list(run, true) : json_null());
    json_object_set_new(a, "epochs", dl2_json_real(epochs));
    json_object_set_new(a, "classes", json_integer(run->stream->classes));
    json_object_set_new(a, "images", json_integer((json_int_t)run->stream->stages[0].images));
    json_object_set_new(a, "channels", json_integer(run->stream->channels));
    json_object_set_new(a, "jobs", json_integer(c->loader.workers));
    json_object_set_new(a, "device", json_string(run->device->ops->name));
    json_object_set_new(a, "ranks", json_integer(dl2_world_size(c->world)));
    json_object_set_new(a, "gpus", json_integer(cards ? c->world->local_size : 0));
    json_object_set_new(a, "world", c->world ? json_string(c->world->ops->name) : json_null());
    if (!dl2_optimizer_facts(c->optimizer.kind)->adaptive)
        json_object_set_new(a, "beta2", json_null());
    json_object_set_new(a, "checkpoint",
                        run->checkpoint ? dl2_json_text(run->checkpoint) : json_null());
    json_object_set_new(a, "name", dl2_json_text(run->name));
    json_object_set_new(a, "out", dl2_json_text(run->out));
    dl2_run_drop_idle(c, a);
    return a;
}

void dl2_run_drop_idle(const struct dl2_train_config *config, json_t *arguments)
{
    if (config->loader.volume_depth) {
        json_object_set_new(arguments, "mean", json_null());
        json_object_set_new(arguments, "std", json_null());
    }
    for (const struct dl2_option *option = dl2_volume_options;
         !config->loader.volume_depth && option->type != DL2_OPTION_END; option++)
        json_object_set_new(arguments, option->name, json_null());
}

/* The settings that bear on accuracy, which must be equal in runs that are compared. Data, seed and
 * network may differ: they are what is compared. */
static json_t *comparable_settings(const struct dl2_run *run)
{
    json_t *settings = dl2_options_select(dl2_train_options, run->arguments, DL2_OPTION_COMPARED);
    json_auto_t *stages =
        json_array(); /* lengths, of stages with settings of their own in objects */
    bool any = run->stream->stage_count > 1;
    for (size_t i = 0; i < run->stream->stage_count; i++) {
        json_auto_t *length = dl2_json_real(run->config->data.stages[i].epochs);
        json_auto_t *object = json_pack("{s:O, s:o*, s:o*}", "epochs", length, "image_size",
                                        own_size(run, i), "freeze", own_freeze(run, i));
        const bool own = json_object_size(object) > 1;
        any |= own && !json_is_true(json_object_get(settings, "freeze")); /* which says it */
        json_array_append(stages, own ? object : length);
    }
    if (any)
        json_object_set(settings, "stages", stages);
    return settings;
}

json_t *dl2_run_class_names(const struct dl2_run *run)
{
    const struct dl2_dataset *dataset =
        dl2_stream_first_data(run->stream)->dataset; /* NULL: noise */
    json_t *names = json_array();
    for (unsigned i = 0; run->config->loader.mask && i < run->stream->classes; i++)
        json_array_append_new(names, json_sprintf("%u", i)); /* of masks, whose values they are */
    for (unsigned i = 0; !run->config->loader.mask && dataset && i < run->stream->classes; i++)
        json_array_append_new(names, dl2_json_text(dl2_dataset_class_name(dataset, i)));
    return names;
}

static json_t *hash_text(uint64_t hash)
{
    return json_sprintf("%016llx", (unsigned long long)hash);
}

static json_t *hash_list(const struct dl2_run_data *data, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, data[i].dataset ? hash_text(data[i].samples) : json_null());
    return list;
}

json_t *dl2_run_data_hashes(const struct dl2_run *run)
{
    const struct dl2_stream *stream = run->stream;
    return json_pack("{s:o, s:o}", "training", hash_list(stream->stages, stream->stage_count),
                     "validation", hash_list(stream->val, stream->val_count));
}

/*
 * The identity of a run, whoever continues it and where: the settings that it keeps, and the data
 * by name, size and a hash of its samples, which a copy of them has, too.
 */
json_t *dl2_run_identity(const struct dl2_run *run)
{
    json_t *identity = dl2_options_select(dl2_train_options, run->arguments, DL2_OPTION_FIXED);
    json_object_set_new(identity, "pretrained", json_boolean(run->config->run.pretrained != NULL));
    json_object_set_new(identity, "training data", stage_list(run, false));
    json_object_set_new(identity, "class names", dl2_run_class_names(run));
    if (run->stream->stages[0].dataset) /* else noise, or rows of a server */
        json_object_set_new(identity, DL2_IDENTITY_IMAGES,
                            hash_list(run->stream->stages, run->stream->stage_count));
    return identity;
}

/* The settings that may change when a run is resumed, but not unnoticed: those that bear on its
 * results, and the validation images. */
json_t *dl2_run_part(const struct dl2_run *run)
{
    json_t *part = dl2_options_select(dl2_train_options, run->arguments, DL2_OPTION_NOTED);
    if (run->device->ops->rounds_by_threads)
        json_object_set_new(
            part, "threads",
            json_integer(run->config->threads ? run->config->threads : dl2_run_processors(run)));
    json_t *sets = json_array();
    for (size_t i = 0; i < run->stream->val_count; i++)
        json_array_append_new(sets, json_pack("{s:o, s:I, s:I, s:o, s:o}", "name",
                                              dl2_json_text(run->stream->val[i].name), "images",
                                              (json_int_t)run->stream->val[i].images, "bytes",
                                              (json_int_t)run->stream->val[i].bytes, "hash",
                                              hash_text(run->stream->val[i].samples), "times",
                                              hash_text(run->stream->val[i].times)));
    json_object_set_new(part, "validation", sets);
    json_t *times = json_array();
    for (size_t i = 0; i < run->stream->stage_count; i++)
        json_array_append_new(times, hash_text(run->stream->stages[i].times));
    json_object_set_new(part, "times", times);
    return part;
}

/* The processes that trained together; null for one process alone. */
static json_t *world_of(const struct dl2_run *run)
{
    const struct dl2_train_config *c = run->config;
    if (!c->world)
        return json_null();
    const json_int_t images =
        (json_int_t)c->loader.batch * c->optimizer.accumulate * c->world->size;
    return json_pack("{s:i, s:s, s:s, s:I}", "ranks", (int)c->world->size, "transport",
                     c->world->ops->name, "version", c->world->ops->version(), "images_per_step",
                     images);
}

json_t *dl2_run_report(const struct dl2_run *run)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->stream->stage_count; i++)
        bytes += run->stream->stages[i].bytes;
    json_t *versions =
        run->config->run.versions ? json_deep_copy(run->config->run.versions) : json_object();
    json_object_set_new(versions, "device", json_string(run->device->ops->version()));
    json_t *report = json_pack("{s:s, s:o, s:o, s:s, s:I, s:s, s:o, s:O, s:o, s:o, s:o, s:O*}",
                               "schema", DL2_EXPERIMENT_SCHEMA, "name", dl2_json_text(run->name),
                               "variant", dl2_json_text(run->variant), "arch", run->config->arch,
                               "seed", (json_int_t)run->config->seed, "device",
                               run->device->ops->name, "world", world_of(run), "arguments",
                               run->arguments, "comparable", comparable_settings(run), "versions",
                               versions, "machine", dl2_machine_describe(), "card", run->card);
    json_t *sizes = json_pack(
        "{s:I, s:I, s:I, s:I, s:I}", "classes", (json_int_t)run->stream->classes, "train_images",
        (json_int_t)dl2_run_images(run), "val_images",
        (json_int_t)(run->stream->val_count ? run->stream->val[0].images : 0), "train_bytes",
        (json_int_t)bytes, "parameters", (json_int_t)dl2_network_parameter_count(run->network));
    json_object_update_new(report, sizes);
    json_object_set_new(report, "stages", stage_list(run, true));
    json_object_set_new(report, "data_hashes", dl2_run_data_hashes(run));
    json_object_set(report, "epochs", run->state.epochs);
    return report;
}

/* Figures of a pass on one rank. */
enum {
    SECONDS,
    WAIT,
    JOULES,
    READ,
    DECODE,
    TRANSFORM,
    WORKER_WAIT,
    DECODED_HITS,
    PADDED,
    NO_FOREGROUND,
    DECOMPRESSED,
    MOVED,
    UNUSUAL, /* DL2_UNUSUAL of them */
    FIGURES = UNUSUAL + DL2_UNUSUAL
};

/* figures: [ranks][FIGURES] */
static int gather_figures(const struct dl2_run *run, double *figures, struct dl2_error *error)
{
    const struct dl2_world *world = run->config->world;
    double *own = figures + (size_t)dl2_world_rank(world) * FIGURES;
    struct dl2_loader_stats stats;
    dl2_feed_get_stats(run->source->feed, &stats);
    own[SECONDS] = run->state.seconds;
    own[WAIT] = run->state.data_wait;
    own[JOULES] = run->state.joules;
    own[READ] = stats.read;
    own[DECODE] = stats.decode;
    own[TRANSFORM] = stats.transform;
    own[WORKER_WAIT] = stats.worker_wait;
    own[DECODED_HITS] = (double)stats.decoded_hits;
    own[PADDED] = (double)stats.padded;
    own[NO_FOREGROUND] = (double)stats.no_foreground;
    own[DECOMPRESSED] = (double)stats.decompressed;
    dl2_run_get_unusual(&stats, own + UNUSUAL);
    const uint64_t moved = dl2_world_moved(world);
    own[MOVED] = (double)(moved - run->stream->moved_seen);
    run->stream->moved_seen = moved;
    return dl2_world_sum(world, figures, (size_t)dl2_world_size(world) * FIGURES, error);
}

static double sum_of(const double *figures, unsigned ranks, int which)
{
    double sum = 0;
    for (unsigned rank = 0; rank < ranks; rank++)
        sum += figures[rank * FIGURES + (unsigned)which];
    return sum;
}

static json_t *rank_records(const struct dl2_run *run, const double *figures, unsigned ranks)
{
    json_t *records = json_array();
    const double images = (double)run->state.images / ranks;
    for (unsigned rank = 0; rank < ranks; rank++) {
        const double *own = figures + (size_t)rank * FIGURES;
        json_array_append_new(records,
                              json_pack("{s:f, s:f, s:o}", "seconds", own[SECONDS],
                                        "data_wait_seconds", own[WAIT], "images_per_second",
                                        dl2_json_real(images / own[SECONDS])));
    }
    return records;
}

static struct dl2_train_epoch make_epoch(const struct dl2_run *run, const double *figures)
{
    const struct dl2_run_state *state = &run->state;
    const double counted = state->sums.counted ? (double)state->sums.counted : NAN;
    struct dl2_train_epoch epoch = {.number = state->pass + 1,
                                    .lr = state->lr,
                                    .loss = state->sums.loss / counted,
                                    .top1 = (double)state->sums.top1 / counted,
                                    .top5 = (double)state->sums.top5 / counted};
    for (unsigned rank = 0; rank < dl2_world_size(run->config->world); rank++) {
        epoch.seconds = fmax(epoch.seconds, figures[rank * FIGURES + SECONDS]);
        epoch.data_wait = fmax(epoch.data_wait, figures[rank * FIGURES + WAIT]);
    }
    epoch.images_per_second = epoch.seconds > 0 ? (double)state->images / epoch.seconds : NAN;
    return epoch;
}

static json_t *make_record(const struct dl2_run *run, double position,
                           const struct dl2_train_epoch *epoch, const double *figures)
{
    const struct dl2_run_state *state = &run->state;
    const unsigned ranks = dl2_world_size(run->config->world);
    const double seconds = epoch->seconds, wait = epoch->data_wait;
    const double joules = sum_of(figures, ranks, JOULES);
    const bool scaled = state->loss_scale.scale > 0;
    const bool metered = isfinite(joules) && state->images, shared = run->config->world;
    json_t *train =
        json_pack("{s:I, s:o, s:o, s:o, s:o*, s:o*}", "images", (json_int_t)state->images, "loss",
                  dl2_json_real(epoch->loss), "top1", dl2_json_real(epoch->top1), "top5",
                  dl2_json_real(epoch->top5), "loss_scale",
                  scaled ? json_real(state->loss_scale.scale) : NULL, "skipped_updates",
                  scaled ? json_integer((json_int_t)state->loss_scale.skipped) : NULL);
    json_t *loader =
        json_pack("{s:f, s:f, s:f, s:f, s:o*}", "read", sum_of(figures, ranks, READ), "decode",
                  sum_of(figures, ranks, DECODE), "transform", sum_of(figures, ranks, TRANSFORM),
                  "wait", sum_of(figures, ranks, WORKER_WAIT), "decoded_hits",
                  run->config->loader.decoded_cache_bytes
                      ? json_integer((json_int_t)sum_of(figures, ranks, DECODED_HITS))
                      : NULL);
    if (run->config->loader.volume_depth)
        for (int k = 0; k < 2; k++)
            json_object_set_new(
                loader, k ? "no_foreground" : "padded",
                json_integer((json_int_t)sum_of(figures, ranks, k ? NO_FOREGROUND : PADDED)));
    json_t *record =
        json_pack("{s:I, s:f, s:I, s:I, s:o, s:o, s:o, s:[]}", "epoch", (json_int_t)epoch->number,
                  "position", position, "stage", (json_int_t)state->stage, "trainers",
                  trainers(run), "variant", dl2_json_text(run->stream->stages[state->stage].name),
                  "lr", dl2_json_real(epoch->lr), "train", train, "val");
    json_t *costs =
        json_pack("{s:f, s:f, s:f, s:o, s:o, s:o*, s:o*, s:o, s:o*, s:o*, s:o*}", "seconds",
                  seconds, "data_wait_seconds", wait, "compute_seconds", seconds - wait,
                  "images_per_second", dl2_json_real(epoch->images_per_second), "data_stall",
                  dl2_json_real(seconds > 0 ? wait / seconds : NAN), "joules",
                  metered ? json_real(joules) : NULL, "joules_per_image",
                  metered ? json_real(joules / (double)state->images) : NULL, "loader", loader,
                  "resident", run->config->run.cold ? json_real(run->stream->resident) : NULL,
                  "ranks", shared ? rank_records(run, figures, ranks) : NULL, "bytes_moved",
                  shared ? json_integer((json_int_t)sum_of(figures, ranks, MOVED)) : NULL);
    json_object_update_new(record, costs);
    return record;
}

/* Says once what samples do not show as they should. */
static void note_samples(struct dl2_run *run, const double *figures)
{
    static const struct {
        int figure;
        const char *text;
    } notes[] = {
        {PADDED, "volumes are smaller than --image-size: they are in the middle of their patches, "
                 "among zeros without labels"},
        {NO_FOREGROUND,
         "patches were to show foreground (--oversample-foreground), and their volumes have "
         "none: they show any part"},
        {DECOMPRESSED,
         "files .nii.gz are decompressed for each patch: --cache-volumes does not keep them"},
    };
    const unsigned ranks = dl2_world_size(run->config->world);
    double unusual[DL2_UNUSUAL];
    if (run->state.pass)
        return;
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        const double count = sum_of(figures, ranks, notes[i].figure);
        if (count > 0)
            dl2_run_note(run, "%.0f of the first epoch's %s", count, notes[i].text);
    }
    for (int i = 0; i < DL2_UNUSUAL; i++)
        unusual[i] = sum_of(figures, ranks, UNUSUAL + i);
    dl2_run_note_unusual(run, "the first epoch", unusual);
}

int dl2_run_epoch_record(struct dl2_run *run, double position, struct dl2_train_epoch *epoch,
                         json_t **out, struct dl2_error *error)
{
    DL2_AUTO_FREE double *figures = NULL;
    DL2_TRY(DL2_NEW(&figures, (size_t)dl2_world_size(run->config->world) * FIGURES,
                    "an epoch's record", error));
    DL2_TRY(gather_figures(run, figures, error));
    note_samples(run, figures);
    *epoch = make_epoch(run, figures);
    *out = make_record(run, position, epoch, figures);
    return DL2_OK;
}

void dl2_run_record_validation(const struct dl2_run *run, double seconds, json_t *record)
{
    json_t *list = json_array();
    for (size_t i = 0; i < run->state.val_count; i++) {
        const struct dl2_train_val *val = &run->state.val[i];
        const bool cached = run->config->loader.decoded_cache_bytes;
        char name[DL2_PREDICTIONS_NAME];
        json_array_append_new(
            list,
            json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:o*, s:o*}", "name",
                      dl2_json_text(val->name), "images", (json_int_t)val->images, "images_sum",
                      json_sprintf("%016" PRIx64, val->images_sum), "loss",
                      dl2_json_real(val->loss), "top1", dl2_json_real(val->top1), "top5",
                      dl2_json_real(val->top5), "predictions",
                      val->predictions ? json_string(dl2_predictions_name(i, name)) : NULL,
                      "decoded_hits", cached ? json_integer((json_int_t)val->decoded_hits) : NULL));
        json_object_update(json_array_get(list, i), json_array_get(run->pixels, i));
    }
    json_object_set_new(record, "val", list);
    json_object_set_new(record, "val_seconds", json_real(seconds));
}

static json_t *best_of(const struct dl2_run_state *state)
{
    if (!state->best_epoch)
        return json_null();
    const json_t *record = json_array_get(state->epochs, (size_t)state->best_epoch - 1);
    return json_pack("{s:I, s:O}", "epoch", (json_int_t)state->best_epoch, "val",
                     json_object_get(record, "val"));
}

static json_t *final_of(const struct dl2_run_state *state)
{
    if (!state->val_count)
        return json_null();
    const size_t last = json_array_size(state->epochs) - 1;
    return json_incref(json_object_get(json_array_get(state->epochs, last), "val"));
}

json_t *dl2_run_bad_list(const struct dl2_run *run)
{
    json_t *array = json_array();
    const char *text;
    json_t *unused;
    json_object_foreach(run->stream->bad, text, unused)
    {
        json_array_append_new(array, json_string(text));
    }
    return array;
}

int dl2_run_gather_timelines(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_world *world = run->config->world;
    if (dl2_world_size(world) == 1)
        return DL2_OK;
    json_auto_t *own = dl2_monitor_timeline(run->stream->monitor), *all = NULL;
    DL2_TRY(dl2_world_gather(world, own, &all, error));
    return dl2_world_rank(world) > 0 || json_object_set(run->report, "rank_timelines", all) == 0
               ? DL2_OK
               : dl2_error_memory(error, "a report");
}

int dl2_run_save_report(struct dl2_run *run, struct dl2_error *error)
{
    json_object_set_new(run->report, "final", final_of(&run->state));
    json_object_set_new(run->report, "best", best_of(&run->state));
    if (run->config->run.until.metric)
        json_object_set_new(run->report, "until_reached", json_boolean(dl2_run_met_target(run)));
    return dl2_run_write_report(run, error);
}

int dl2_run_write_report(struct dl2_run *run, struct dl2_error *error)
{
    json_t *report = run->report;
    json_object_set(report, "epochs", run->state.epochs);
    json_object_set_new(report, "seconds", json_real(dl2_run_elapsed(run)));
    json_object_set_new(report, "peak_rss_bytes", json_integer((json_int_t)dl2_peak_rss()));
    json_object_set_new(report, "timeline", dl2_monitor_timeline(run->stream->monitor));
    json_object_set(report, "device_notes", run->device_notes);
    json_object_set_new(report, "bad", dl2_run_bad_list(run));
    json_object_set_new(report, "completed", json_boolean(run->state.completed));
    return dl2_json_save(run->report_path, report, error);
}

/* "224" or "192x256", of volumes "64x128x128". */
static json_t *size_text(const struct dl2_train_config *config)
{
    json_auto_t *shown = dl2_show_output_size(&config->loader.height);
    return json_is_string(shown) ? json_incref(shown) : json_sprintf("%u", config->loader.height);
}

/* What was done to the values that the network sees. */
static json_t *normalization_texts(const struct dl2_train_config *config)
{
    const double *mean = config->data.mean, *std = config->data.std;
    const struct dl2_loader_config *loader = &config->loader;
    if (!loader->volume_depth)
        return json_pack("{s:o, s:o}", "mean",
                         json_sprintf("[%g, %g, %g]", mean[0], mean[1], mean[2]), "std",
                         json_sprintf("[%g, %g, %g]", std[0], std[1], std[2]));
    json_auto_t *all = dl2_options_json(dl2_volume_options, loader);
    const bool windowed = loader->normalization == DL2_NORMALIZATION_WINDOW;
    return json_pack(
        "{s:O, s:o*}", "normalization", json_object_get(all, "normalization"), "window",
        windowed ? json_sprintf("[%g, %g]", loader->window_min, loader->window_max) : NULL);
}

json_t *dl2_run_export_texts(const struct dl2_run *run)
{
    const struct dl2_train_config *c = run->config;
    json_auto_t *classes = dl2_run_class_names(run);
    DL2_AUTO_FREE char *names = json_dumps(classes, JSON_COMPACT);
    json_t *texts = json_pack("{s:s, s:s, s:s, s:o, s:o*}", "format", "pt", "arch", c->arch,
                              "classes", names ? names : "[]", "image_size", size_text(c), "frames",
                              c->loader.frames ? json_sprintf("%u", c->loader.frames) : NULL);
    json_auto_t *normalization = normalization_texts(c);
    json_object_update(texts, normalization);
    json_auto_t *part = dl2_run_part(run);
    dl2_checkpoint_note_origin(texts, run->identity, part, dl2_run_position(run),
                               run->state.completed);
    return texts;
}
