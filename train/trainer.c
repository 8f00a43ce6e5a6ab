/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of training: rounds of passes over the runs of a stream, and what is written when. */
#include "train/trainer.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "ranks/world.h"
#include "train/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- a pass -- */

/* A model among others ends without them. */
static bool ends_alone(const struct dl2_run *run)
{
    return run->diverged && run->stream->several;
}

static int diverge(struct dl2_run *run, const struct dl2_error *reason, struct dl2_error *error)
{
    dl2_run_note(run, "%s", reason->message);
    run->training = false;
    run->over = true;
    /* What is not in its checkpoint is worth nothing; the passes that are done are in its report.
     */
    return dl2_run_save_report(run, error);
}

/* What a step of one run comes to: it may end the run alone. */
static int after_step(struct dl2_run *run, int status, const struct dl2_error *reason,
                      struct dl2_error *error)
{
    if (status < 0 && ends_alone(run))
        return diverge(run, reason, error);
    return status < 0 ? dl2_error_copy(error, reason) : DL2_OK;
}

/* Is the run to have batches of the source, in the pass that goes on? */
static bool draws_from(const struct dl2_run *run, const struct dl2_source *source)
{
    return run->training && run->source == source;
}

/* Begins the pass where the run that is furthest behind in it stands; if there is one. */
static int start_feed(struct dl2_stream *stream, struct dl2_source *source, struct dl2_error *error)
{
    const struct dl2_run *first = NULL;
    struct dl2_loader_position at;
    uint32_t *missing;
    for (size_t i = 0; i < stream->run_count; i++) {
        const struct dl2_run *run = &stream->runs[i];
        if (draws_from(run, source) && (!first || run->state.batch < first->state.batch))
            first = run;
    }
    if (!first)
        return DL2_OK;
    const struct dl2_run_state *state = &first->state;
    source->next = state->batch;
    DL2_TRY(dl2_checkpoint_get_missing(state, stream->config->world, &at, &missing, error));
    if (!missing)
        return dl2_feed_start_epoch(source->feed, state->pass, state->batch - first->visit_begin,
                                    error);
    const int status = dl2_feed_resume(source->feed, &at, error);
    free(missing);
    return status;
}

/* With config->cold: the pass reads from the disk. */
static int make_cold(struct dl2_stream *stream, size_t stage, struct dl2_error *error)
{
    const struct dl2_dataset *dataset = stream->stages[stage].dataset;
    if (!stream->config->cold)
        return DL2_OK;
    const int status = dl2_world_rank(stream->config->world) == 0
                           ? dl2_fetch_evict(dataset, &stream->resident, error)
                           : DL2_OK;
    return dl2_stream_agree(stream, status, error);
}

/* Does the run train on the feed's next batch? A run that was resumed further on waits for the
 * feed. */
static bool takes_batch(const struct dl2_run *run)
{
    return run->training && run->state.batch == run->source->next;
}

static bool asked_to_stop(const struct dl2_run *run)
{
    return run->config->stop && *run->config->stop;
}

/* Of a run that waits for the feed. */
static int stop_waiting(struct dl2_run *run, struct dl2_error *error)
{
    run->stopping = run->stopped = true;
    return dl2_run_leave_pass(run, error);
}

/* Begins the steps of the runs that are between two. Returns whether a run trains on. */
static int begin_steps(struct dl2_stream *stream, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_error reason = DL2_ERROR_INIT;
        int status = DL2_OK;
        if (takes_batch(run) && run->step.part == 0)
            status = dl2_run_begin_step(run, &reason);
        else if (run->training && run->step.part == 0 && asked_to_stop(run))
            status = stop_waiting(run, &reason);
        DL2_TRY(after_step(run, status, &reason, error));
        any |= run->training;
    }
    return any;
}

/* The source's next batch, for all runs that take it. */
static int train_on_next(struct dl2_stream *stream, struct dl2_source *source,
                         struct dl2_error *error)
{
    struct dl2_batch *batch;
    double waited = dl2_clock_wall();
    const int got = dl2_feed_next(source->feed, &batch, error);
    waited = dl2_clock_wall() - waited;
    stream->data_failed = got < 0;
    if (got < 0)
        return got;
    if (got == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the loader ended an epoch early");
    int status = DL2_OK;
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        struct dl2_run *run = &stream->runs[i];
        if (!draws_from(run, source))
            continue;
        if (takes_batch(run))
            status = dl2_run_train_batch(run, batch, waited, error);
        else
            run->step.last = dl2_clock_wall();
    }
    for (size_t i = 0; i < stream->run_count; i++)
        if (draws_from(&stream->runs[i], source))
            dl2_network_wait_input(stream->runs[i].network);
    dl2_monitor_count(stream->monitor, batch->count, waited);
    dl2_feed_release(source->feed, batch);
    source->next++;
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_error reason = DL2_ERROR_INIT;
        if (draws_from(run, source) && takes_batch(run) && run->step.parts &&
            run->step.part == run->step.parts)
            status = after_step(run, dl2_run_end_step(run, &reason), &reason, error);
    }
    return status;
}

/* One batch of each source that a run of the pass draws from. */
static int train_on_each(struct dl2_stream *stream, struct dl2_error *error)
{
    for (size_t k = 0; k < stream->source_count; k++) {
        bool wanted = false;
        for (size_t i = 0; i < stream->run_count && !wanted; i++)
            wanted = draws_from(&stream->runs[i], &stream->sources[k]);
        if (wanted)
            DL2_TRY(train_on_next(stream, &stream->sources[k], error));
    }
    return DL2_OK;
}

/* Trains the runs that are in the pass, which is of a stage. */
static int train_pass(struct dl2_stream *stream, size_t stage, struct dl2_error *error)
{
    DL2_TRY(make_cold(stream, stage, error));
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        run->step.last = dl2_clock_wall();
        run->joules_seen = dl2_monitor_joules(stream->monitor);
    }
    for (size_t k = 0; k < stream->source_count; k++)
        DL2_TRY(start_feed(stream, &stream->sources[k], error));
    int any;
    while ((any = begin_steps(stream, error)) > 0)
        DL2_TRY(train_on_each(stream, error));
    for (size_t k = 0; k < stream->source_count && any == 0; k++)
        if (stream->sources[k].feed)
            any = dl2_stream_note_bad(stream, stream->sources[k].feed,
                                      &stream->stages[stream->sources[k].stage],
                                      "and others took their places", error);
    return any;
}

/* -- the end of a pass -- */

/* A pass of a run that has ended. */
struct ended_pass {
    struct dl2_train_epoch epoch;
    json_t *record;
    bool due; /* for a validation */
};

static bool validation_due(const struct dl2_run *run)
{
    if (run->stream->val_count == 0)
        return false;
    if (dl2_run_reached(run, run->length))
        return true;
    double every = run->config->validate_every;
    return every > 0 && (run->state.pass + 1) % (uint64_t)every == 0;
}

static int describe_pass(struct dl2_run *run, struct ended_pass *ended, struct dl2_error *error)
{
    DL2_TRY(dl2_run_note_loss_scale(run, error));
    ended->due = validation_due(run);
    return dl2_run_epoch_record(run, dl2_run_position(run), &ended->epoch, &ended->record, error);
}

/* Adds the pass' record, validation and all, and begins the next one. */
static void close_pass(struct dl2_run *run, struct ended_pass *ended)
{
    struct dl2_run_state *state = &run->state;
    if (!ended->due)
        state->val_count = 0;
    ended->epoch.val = state->val;
    ended->epoch.val_count = state->val_count;
    if (state->visits)
        json_object_set_new(ended->record, "visits", dl2_visits_shown(state->visits));
    json_array_append(state->epochs, ended->record);
    if (state->pass > 0) /* the first warms up */
        run->measured += ended->epoch.seconds;
    dl2_run_next_pass(run);
    if (run->events.epoch_ended)
        run->events.epoch_ended(run->events.context, &ended->epoch);
}

/* Ends the pass of the `count` runs that have trained to its end; `due` has room for as many. */
static int end_passes(struct dl2_run *const *runs, size_t count, struct ended_pass *ended,
                      struct dl2_validation *due, struct dl2_error *error)
{
    size_t dues = 0;
    for (size_t i = 0; i < count; i++) {
        DL2_TRY(describe_pass(runs[i], &ended[i], error));
        if (ended[i].due)
            due[dues++] = (struct dl2_validation){.run = runs[i],
                                                  .pass = ended[i].epoch.number,
                                                  .keep = dl2_run_reached(runs[i], runs[i]->length),
                                                  .record = ended[i].record};
    }
    if (dues)
        DL2_TRY(dl2_stream_validate(due, dues, error));
    for (size_t i = 0; i < count; i++) {
        close_pass(runs[i], &ended[i]);
        dl2_feed_stats_reset(runs[i]->source->feed);
    }
    return DL2_OK;
}

static int save_all(struct dl2_run *run, bool checkpoint, struct dl2_error *error)
{
    if (checkpoint)
        DL2_TRY(dl2_run_save_checkpoint(run, error));
    return dl2_world_rank(run->config->world) == 0 ? dl2_run_save_report(run, error) : DL2_OK;
}

/* Ends the pass of all runs that have trained to its end, and writes what is due then. */
static int end_pass(struct dl2_stream *stream, struct dl2_run **runs, struct dl2_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        if (run->state.trained && run->state.batch == 0)
            run->state.trained = false; /* a budget's end came closer before the first step */
        if (!run->over && run->state.trained)
            runs[count++] = run;
    }
    if (count == 0)
        return DL2_OK;
    struct ended_pass *ended = dl2_calloc(count, sizeof *ended);
    struct dl2_validation *due = dl2_calloc(count, sizeof *due);
    int status = ended && due ? end_passes(runs, count, ended, due, error)
                              : dl2_error_memory(error, "the end of an epoch");
    for (size_t i = 0; ended && i < count; i++)
        json_decref(ended[i].record);
    free(ended);
    free(due);
    DL2_TRY(status);
    for (size_t i = 0; i < count; i++) {
        DL2_TRY(dl2_run_agree_on_end(runs[i], error));
        /* What ends a run is written then. */
        const bool last = dl2_run_reached(runs[i], runs[i]->length);
        const double end = runs[i]->state.pass_start, begin = runs[i]->begin;
        DL2_TRY(save_all(runs[i], !last && dl2_run_checkpoint_due(runs[i], begin, end), error));
    }
    return DL2_OK;
}

/* -- rounds -- */

/* Chooses the stage of the pass that begins; stages never go back. Where another part of the
 * network is trained than before, the optimizer begins anew: moments of layers that were frozen
 * would be old, and AdamW's would be taken for those of many updates. */
static int choose_stage(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const size_t before = state->stage;
    while (state->stage + 1 < run->stream->stage_count &&
           dl2_run_reached(run, dl2_run_stage_end(run, state->stage)))
        state->stage++;
    if (run->config->stages[before].freeze == run->config->stages[state->stage].freeze)
        return DL2_OK;
    state->optimizer_begun = state->updates - state->loss_scale.skipped;
    return dl2_network_forget_moments(run->network, error);
}

/* One pass, or what is left of one, and what follows it, of the runs that are furthest behind; the
 * others wait. `members` has room for all runs. */
static int run_pass(struct dl2_stream *stream, struct dl2_run **members, struct dl2_error *error)
{
    const struct dl2_run *member = NULL;
    uint64_t pass = UINT64_MAX;
    for (size_t i = 0; i < stream->run_count; i++)
        if (!stream->runs[i].over && stream->runs[i].state.pass < pass)
            pass = stream->runs[i].state.pass;
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        if (run->over || run->state.pass != pass)
            continue;
        run->begin = run->state.pass_start;
        if (run->state.batch == 0 && !run->state.trained)
            DL2_TRY(choose_stage(run, error));
        DL2_TRY(dl2_run_open_feed(run, run->state.stage, error));
        if (run->state.trained)
            continue;
        DL2_TRY(dl2_run_enter_pass(run, error));
        member = run;
    }
    if (member)
        DL2_TRY(train_pass(stream, member->state.stage, error));
    return end_pass(stream, members, error);
}

/* A budget may end between a pass without validation and the next: then it comes now. */
static int validate_last(struct dl2_run *run, struct dl2_error *error)
{
    const size_t passes = json_array_size(run->state.epochs);
    if (run->stream->val_count == 0 || run->state.val_count > 0 || passes == 0)
        return DL2_OK;
    struct dl2_validation last = {.run = run,
                                  .pass = passes,
                                  .keep = true,
                                  .record = json_array_get(run->state.epochs, passes - 1)};
    return dl2_stream_validate(&last, 1, error);
}

/* Writes what a run has come to, which is its end or a stop. */
static int conclude(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    run->over = true;
    if (config->measure > 0 && !run->state.completed) {
        run->common = true;
        return dl2_error_set(error, DL2_ERR_CANCELED, "stopped before the rate was measured");
    }
    if (run == &run->stream->runs[0])
        dl2_stream_sum_up_bad(run->stream);
    dl2_monitor_sample(run->stream->monitor);
    int status = dl2_run_gather_timelines(run, error);
    if (status == DL2_OK)
        status = save_all(run, !(config->measure > 0), error);
    if (status == DL2_OK)
        status = dl2_run_export_weights(run, error);
    status = dl2_stream_agree(run->stream, status, error); /* nobody goes before all is written */
    dl2_network_destroy(run->network);                     /* makes room for the others */
    run->network = NULL;
    return status;
}

/* Before a pass: has the run come to its end, or to a stop? */
static int look_for_end(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    if (run->stopped)
        return conclude(run, error);
    DL2_TRY(dl2_run_agree_on_end(run, error));
    if (state->batch > 0 || state->trained)
        return DL2_OK;
    if (dl2_run_reached(run, run->length)) {
        DL2_TRY(validate_last(run, error));
        state->completed = true;
    } else if (run->stopping || dl2_run_reached(run, run->run_stop)) {
        run->stopped = true;
    }
    return state->completed || run->stopped ? conclude(run, error) : DL2_OK;
}

/* A validation was interrupted: its numbers are thrown away and it is done again. Returns `status`
 * where that is not what happened. */
static int stop_validating(struct dl2_stream *stream, int status, struct dl2_error *error)
{
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_loss_sums unused;
        if (!run->interrupted || run->over)
            continue;
        DL2_TRY(dl2_network_take_sums(run->network, &unused, error));
        run->interrupted = false;
        run->stopped = true;
        status = DL2_OK;
    }
    return status;
}

/* The loader failed, such as where a server went away: what the run has learnt before is kept. */
static int save_learnt(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_loss_sums unused;
    if (run->training && run->step.part > 0)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "in the middle of a step of %u batches",
                             run->step.parts);
    if (run->interrupted)
        DL2_TRY(dl2_network_take_sums(run->network, &unused, error));
    if (run->training)
        DL2_TRY(dl2_run_leave_pass(run, error));
    return save_all(run, true, error);
}

/* Hopping models are saved after each visit. */
static void save_all_learnt(struct dl2_stream *stream)
{
    const struct dl2_train_config *config = stream->config;
    if (!stream->data_failed || stream->hopping || config->measure > 0)
        return;
    if (config->world && !stream->runs[0].common) {
        dl2_run_note(&stream->runs[0],
                     "no checkpoint is written, since the other ranks are at another step: "
                     "--resume goes on from the last one, if there is any (--checkpoint-every)");
        return;
    }
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_error own = DL2_ERROR_INIT;
        if (run->over || run->state.updates == 0)
            continue;
        if (save_learnt(run, &own) < 0)
            dl2_run_note(run, "no checkpoint of epoch %.4g is written: %s", dl2_run_position(run),
                         own.message);
        else
            dl2_run_note(run,
                         "a checkpoint of epoch %.4g is written; when the data can be read "
                         "again, the same command with --resume goes on from there",
                         dl2_run_position(run));
    }
    dl2_world_agree(config->world, DL2_OK, NULL); /* nobody goes before all is written */
}

/* One round: all runs look for their end, then those that are furthest behind have a pass. Returns
 * whether there was any. */
static int run_round(struct dl2_stream *stream, struct dl2_run **members, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = 0; i < stream->run_count; i++) {
        if (!stream->runs[i].over)
            DL2_TRY(look_for_end(&stream->runs[i], error));
        any |= !stream->runs[i].over;
    }
    if (any)
        DL2_TRY(run_pass(stream, members, error));
    return any;
}

static int run_to_end(struct dl2_stream *stream, struct dl2_run **members, struct dl2_error *error)
{
    int status = stream->config->time_budget > 0 ? dl2_run_probe_validation(&stream->runs[0], error)
                                                 : DL2_OK;
    for (;;) {
        if (status == DL2_ERR_CANCELED)
            status = stop_validating(stream, status, error);
        if (status < 0) {
            save_all_learnt(stream);
            return status;
        }
        status = run_round(stream, members, error);
        if (status == 0)
            return DL2_OK;
    }
}

/* -- the interface -- */

static int drive(struct dl2_stream *stream, struct dl2_error *error)
{
    struct dl2_run **members = dl2_calloc(stream->run_count, sizeof(struct dl2_run *));
    int status = members ? DL2_OK : dl2_error_memory(error, "a training run");
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        status = dl2_run_prepare(&stream->runs[i], error);
        if (status < 0 && stream->several)
            dl2_error_prefix(error, "%s", stream->runs[i].name);
    }
    if (status == DL2_OK)
        status = run_to_end(stream, members, error);
    free(members);
    return status;
}

static void tell_ended(const struct dl2_run *run)
{
    const struct dl2_run_state *state = &run->state;
    const struct dl2_train_summary summary = {state->val,        state->val_count,
                                              state->best_epoch, state->best_top1,
                                              dl2_run_rate(run), run->report_path};
    if (run->events.ended)
        run->events.ended(run->events.context, &summary);
}

static void tell_result(struct dl2_run *run, struct dl2_train_result *result)
{
    *result = (struct dl2_train_result){.completed = run->state.completed,
                                        .diverged = run->diverged,
                                        .stopped = run->stopped && run->stopping,
                                        .position = dl2_run_position(run)};
    if (!run->diverged)
        tell_ended(run);
}

/* What is left to do after an error. */
static void tell_failure(struct dl2_run *run, const struct dl2_train_events *events, int status,
                         const struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    if (status == DL2_ERR_CANCELED && !(config->measure > 0) && run->checkpoint &&
        dl2_is_file(run->checkpoint)) {
        dl2_run_note(run, "--resume goes on from %s", run->checkpoint);
    } else if (config->world && !run->common && status != DL2_ERR_CANCELED) {
        /* Before anything is closed: a card may wait for others, which wait for this rank. */
        if (events->failed)
            events->failed(events->context, error);
        config->world->ops->give_up(config->world);
    }
}

int dl2_run_visit(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run *member;
    struct dl2_error reason = DL2_ERROR_INIT;
    int status = dl2_run_enter(run, error);
    run->over = false;
    if (status == DL2_OK)
        status = dl2_run_prepare(run, error);
    if (status == DL2_OK && run->config->in_database)
        status = after_step(run, dl2_run_train_in_database(run, &reason), &reason, error);
    if (status == DL2_OK)
        status = run_to_end(run->stream, &member, error);
    if (status == DL2_OK && run->state.completed)
        tell_ended(run);
    dl2_run_leave(run);
    return status;
}

static int train_stream(struct dl2_train_model *models, size_t count, bool several,
                        struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_stream stream = {.run_count = count, .several = several};
    error = error ? error : &own;
    stream.runs = dl2_calloc(count, sizeof *stream.runs);
    if (!stream.runs)
        return dl2_error_memory(error, "training runs");
    for (size_t i = 0; i < count; i++) {
        stream.runs[i].config = &models[i].config;
        if (dl2_world_rank(models[i].config.world) == 0)
            stream.runs[i].events = models[i].events;
        models[i].result = (struct dl2_train_result){.completed = false};
    }
    int status = dl2_stream_agree(&stream, dl2_stream_open(&stream, error), error);
    if (status == DL2_OK)
        status = stream.config->evaluate ? dl2_run_evaluate(&stream.runs[0], error)
                                         : drive(&stream, error);
    for (size_t i = 0; i < count; i++) {
        if (status == DL2_OK)
            tell_result(&stream.runs[i], &models[i].result);
        else
            tell_failure(&stream.runs[i], &models[i].events, status, error);
        models[i].result.common = stream.runs[i].common;
    }
    dl2_stream_close(&stream);
    free(stream.runs);
    return status;
}

int dl2_train_models(struct dl2_train_model *models, size_t count, struct dl2_error *error)
{
    return train_stream(models, count, true, error);
}

int dl2_train(const struct dl2_train_config *config, const struct dl2_train_events *events,
              struct dl2_train_result *result, struct dl2_error *error)
{
    struct dl2_train_model model = {.config = *config};
    if (events)
        model.events = *events;
    const int status = train_stream(&model, 1, false, error);
    *result = model.result;
    return status;
}
