/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a run begins: at fresh or given weights, or at its checkpoint; and what has changed since.
 */
#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "common/thread.h"
#include "network/weights.h"
#include "ranks/world.h"
#include "train/run.h"
#include "train/step_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- changes since the part before -- */

static void note_setting(struct dl2_run *run, const char *key, const json_t *was, const json_t *now)
{
    if (!was || !now || json_equal(was, now))
        return;
    DL2_AUTO_FREE char *then = json_dumps(was, JSON_ENCODE_ANY);
    DL2_AUTO_FREE char *here = json_dumps(now, JSON_ENCODE_ANY);
    dl2_run_note(
        run,
        strcmp(key, "val-resize") == 0 || strcmp(key, "val-crop") == 0
            ? "--%s was %s and is %s: validation's figures from here on are of other crops"
        : strcmp(key, "val-clips") == 0
            ? "--%s was %s and is %s: validation's figures from here on are of other clips"
            : "--%s was %s and is %s: the weights will not be, bit for bit, those of a run "
              "in one part",
        key, then ? then : "?", here ? here : "?");
}

/* Are both known, and not the same? */
static bool differ(const json_t *was, const json_t *now, const char *key)
{
    const json_t *before = json_object_get(was, key), *here = json_object_get(now, key);
    return before && here && !json_equal(before, here);
}

static void note_times(struct dl2_run *run, const char *what, const char *name)
{
    dl2_run_note(run,
                 "the %s images of %s have the names, classes and sizes that they had, but other "
                 "times: they were copied, or changed",
                 what, name);
}

static void note_set(struct dl2_run *run, const json_t *was, const json_t *now)
{
    const char *name = dl2_json_get_text(now, "name", "?");
    const long long before = dl2_json_get_integer(was, "images", -1);
    const long long images = dl2_json_get_integer(now, "images", 0);
    if (strcmp(dl2_json_get_text(was, "name", ""), name) != 0)
        dl2_run_note(run, "validation is on %s, which it was not before", name);
    else if (before != images)
        dl2_run_note(run,
                     "%s has %lld validation images, where it had %lld: figures from here on are "
                     "of other images than those before",
                     name, images, before);
    else if (differ(was, now, "bytes") || differ(was, now, "hash"))
        dl2_run_note(run,
                     "the validation images of %s have changed: figures from here on are of other "
                     "images than those before",
                     name);
    else if (differ(was, now, "times"))
        note_times(run, "validation", name);
}

/* Says in what this part of a run differs from the one before, where that changes its results. */
static void note_changes(struct dl2_run *run, const json_t *now)
{
    const json_t *was = run->state.part;
    const char *key;
    json_t *value;
    /* Ranks that a model hops between may differ in threads and devices. */
    json_object_foreach((json_t *)now, key,
                        value) if (!json_is_array(value) && !run->stream->hopping)
        note_setting(run, key, json_object_get(was, key), value);
    if (differ(was, now, "times"))
        note_times(run, "training", run->variant);
    const json_t *sets = json_object_get(was, "validation");
    const json_t *own = json_object_get(now, "validation");
    for (size_t i = 0; json_is_array(sets) && i < json_array_size(own); i++)
        note_set(run, json_array_get(sets, i), json_array_get(own, i));
    for (size_t i = json_array_size(own); i < json_array_size(sets); i++)
        dl2_run_note(run, "%s is not validated on any more",
                     dl2_json_get_text(json_array_get(sets, i), "name", "?"));
}

/* -- weights and checkpoints -- */

static int load_pretrained(struct dl2_run *run, struct dl2_error *error)
{
    char note[256];
    if (!run->config->run.pretrained)
        return DL2_OK;
    DL2_TRY(dl2_weights_load(run->config->run.pretrained, run->network, false, note, sizeof note,
                             error));
    if (note[0])
        dl2_run_note(run, "%s: %s", run->config->run.pretrained, note);
    return DL2_OK;
}

static void tell_resumed(const struct dl2_run *run, bool found)
{
    if (run->events.resumed && !run->stream->hopping)
        run->events.resumed(run->events.context, run->checkpoint, found, run->state.pass,
                            run->state.batch);
}

/* Loads the checkpoint that is there, or makes sure that none would be lost. Rank 0. */
static int load_checkpoint(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    json_auto_t *part = dl2_run_part(run), *hashes = dl2_run_data_hashes(run);
    if (config->run.data_hashes && !json_equal(config->run.data_hashes, hashes))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: its images are not those of the models before it: since then "
                             "some were added, removed, renamed, moved to another class or changed "
                             "in size; bring back those that the search was begun with, or begin "
                             "anew with --restart",
                             run->name);
    if (config->run.resume && dl2_is_file(run->checkpoint)) {
        dl2_run_state_free(&run->state);
        DL2_TRY(
            dl2_checkpoint_load(run->checkpoint, run->identity, run->network, &run->state, error));
        if (run->state.stage >= run->stream->stage_count)
            return dl2_error_set(error, DL2_ERR_FORMAT, "checkpoint %s: it has more stages",
                                 run->checkpoint);
        tell_resumed(run, true);
        if (run->state.images_unknown)
            dl2_run_note(run,
                         "checkpoint %s does not say which images it was trained on: nobody knows "
                         "whether these are the same",
                         run->checkpoint);
        if (!run->state.completed)
            note_changes(run, part);
    } else if (config->run.resume) {
        tell_resumed(run, false);
        DL2_TRY(load_pretrained(run, error));
    } else if (!config->run.restart && run->checkpoint && dl2_is_file(run->checkpoint)) {
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT, "%s is %s, or overwrite it with --restart", run->checkpoint,
            dl2_checkpoint_unfinished(run->checkpoint)
                ? "of a run that was not finished: continue it with --resume"
                : "there already: choose another place with --out or --checkpoint");
    } else {
        DL2_TRY(load_pretrained(run, error));
    }
    json_decref(run->state.part);
    run->state.part = json_incref(part);
    return DL2_OK;
}

/* -- all ranks -- */

/* Are all ranks at the same thing? */
static int check_alike(const struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_world *world = run->config->world;
    char *own = json_dumps(run->identity, JSON_COMPACT | JSON_SORT_KEYS), *first = own;
    int status = own ? DL2_OK : dl2_error_memory(error, "a run");
    if (status == DL2_OK)
        status = dl2_world_share(world, &first, error);
    if (status == DL2_OK && strcmp(own, first) != 0)
        status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "rank %u has other options or other data than rank 0",
                               dl2_world_rank(world));
    if (first != own)
        free(first);
    free(own);
    return status;
}

/* mpirun binds each of a few ranks to one core, which starves the loader. */
static void note_binding(struct dl2_run *run)
{
    const struct dl2_world *world = run->config->world;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned own = dl2_cpu_count();
    if (world && world->ops->open && (long)(own * world->local_size / world->sharers) < processors)
        dl2_run_note(
            run,
            "each rank may run on %u of this machine's %ld processors only; more are to be "
            "had by mpirun --bind-to none, or srun --cpus-per-task",
            own, processors);
}

/* From where all ranks go on. */
static int begin_run(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    const struct dl2_world *world = config->world;
    note_binding(run);
    DL2_TRY(dl2_stream_agree(run->stream, check_alike(run, error), error));
    int status = dl2_world_rank(world) == 0 ? load_checkpoint(run, error) : DL2_OK;
    DL2_TRY(dl2_stream_agree(run->stream, status, error));
    DL2_TRY(dl2_checkpoint_share(&run->state, run->network, world, error));
    if (run->state.loss_scale.scale > 0 && run->device->ops->set_loss_scale)
        DL2_TRY(run->device->ops->set_loss_scale(run->device, &run->state.loss_scale, error));
    run->elapsed_before = run->state.elapsed;
    if (config->run.keep_best && dl2_world_rank(world) == 0)
        dl2_run_find_best(run);
    return DL2_OK;
}

/* Rank 0's, to go on where the checkpoint is. */
static int open_log(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    const bool own = config->run.log_steps && dl2_world_rank(config->world) == 0;
    int status = own ? dl2_step_log_open(run->steps, run->state.updates, &run->log, error) : DL2_OK;
    return dl2_stream_agree(run->stream, status, error);
}

/* Before the first step: does the device compute what it should? */
static int check_device(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    unsigned checked;
    if (!config->check_device && !config->deterministic)
        return DL2_OK;
    DL2_TRY(dl2_network_check_device(run->network, &checked, error));
    if (config->check_device && checked)
        dl2_run_note(run, "device %s: %u passes of layers agree with float32",
                     run->device->ops->name, checked);
    else if (config->check_device)
        dl2_run_note(run,
                     "--check-device: there is nothing to check on device %s, which computes each "
                     "layer in one way only",
                     run->device->ops->name);
    return DL2_OK;
}

/* Finds the batches that this part of the run has, which end with the visit. */
static int begin_visit(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const unsigned own = run->config->loader.partition;
    const unsigned partitions = run->config->loader.partitions;
    const bool fresh = state->pass == 0 && state->batch == 0 && !state->visits;
    if (fresh && partitions) {
        state->partitions = partitions;
        state->visits = json_array();
    }
    if (state->partitions != partitions)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "checkpoint %s: its run has %u partitions of the data, 0 for all of "
                             "it in one, and this run %u",
                             run->checkpoint, state->partitions, partitions);
    if (!partitions || state->completed || dl2_run_is_at(state, run->config->run.stop_at))
        return DL2_OK;
    const enum dl2_visit visit =
        dl2_visit_find(run, state, own, &run->visit_begin, &run->visit_end);
    if (visit == DL2_VISIT_ELSEWHERE)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "checkpoint %s: its visit to partition %d/%u is not done, and comes first",
            run->checkpoint,
            (int)json_integer_value(
                json_array_get(state->visits, json_array_size(state->visits) - 1)) +
                1,
            partitions);
    if (visit == DL2_VISIT_DONE)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "checkpoint %s: epoch %llu has visited partition %u/%u already",
                             run->checkpoint, (unsigned long long)state->pass + 1, own + 1,
                             partitions);
    if (visit == DL2_VISIT_NEW && !state->trained)
        json_array_append_new(state->visits, json_integer(own));
    const double steps = (double)dl2_run_steps(run);
    run->run_stop = state->pass_start + (double)run->visit_end / steps;
    return DL2_OK;
}

int dl2_run_export_weights(struct dl2_run *run, struct dl2_error *error)
{
    if (!run->config->run.export || dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    DL2_TRY(dl2_run_use_average(run, true, error));
    json_auto_t *texts = dl2_run_export_texts(run);
    return dl2_weights_save(run->config->run.export, run->network, texts, error);
}

/* A finished run is left as it is; its report is made anew only where it is lost, or where a kill
 * came between its last checkpoint and its report. */
static int keep_report(struct dl2_run *run, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    if (dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    dl2_run_note(run, "this run is finished already");
    if (dl2_json_load(run->report_path, DL2_EXPERIMENT_SCHEMA, &report, NULL) == DL2_OK &&
        json_is_true(json_object_get(report, "completed")))
        return DL2_OK;
    return dl2_run_save_report(run, error);
}

int dl2_run_prepare(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    run->arguments = dl2_run_arguments(run);
    run->identity = dl2_run_identity(run);
    run->report = dl2_run_report(run);
    DL2_TRY(begin_run(run, error));
    run->budget.seconds = config->run.time_budget;
    run->budget.validate_every = run->stream->val_count ? config->run.validate_every : 0;
    run->run_stop = config->run.stop_at > 0 ? config->run.stop_at : INFINITY;
    if (config->run.run_epochs > 0) {
        if (run->state.batch > 0)
            DL2_TRY(dl2_run_open_feed(run, run->state.stage, error));
        run->run_stop = dl2_run_position(run) + config->run.run_epochs;
    }
    DL2_TRY(begin_visit(run, error));
    if (!run->stream->hopping || run->state.step == 0)
        dl2_run_tell_begun(run);
    if (run->state.completed) {
        run->phase = DL2_RUN_OVER;
        DL2_TRY(dl2_run_export_weights(run, error));
        return keep_report(run, error);
    }
    DL2_TRY(dl2_stream_agree(run->stream, check_device(run, error), error));
    return open_log(run, error);
}
