/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A training run, in the order in which things happen: open, then for each epoch its steps, its
 * validation and what is saved, then close. loop.c goes through them.
 */
#include "train/run.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "ranks/world.h"
#include "train/mixup.h"
#include "train/step_log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Steps from one look at the loss to the next. */
#define LOOK_EVERY 100

/* -- an epoch begins -- */

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
    if (run->config->data.stages[before].freeze == run->config->data.stages[state->stage].freeze)
        return DL2_OK;
    state->optimizer_begun = state->updates - state->loss_scale.skipped;
    return dl2_network_forget_moments(run->network, error);
}

int dl2_run_enter_pass(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const struct dl2_run_data *stage = &run->stream->stages[state->stage];
    DL2_TRY(dl2_network_use_size(run->network, stage->height, stage->width, error));
    DL2_TRY(dl2_network_freeze(run->network, run->config->data.stages[state->stage].freeze, error));
    const uint64_t steps = dl2_run_steps(run);
    if (steps == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "there is nothing to train on");
    if (state->batch > steps)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the checkpoint is at batch %llu of an epoch of %llu",
                             (unsigned long long)state->batch, (unsigned long long)steps);
    run->step = (struct dl2_run_step){.batches = 0};
    run->phase = DL2_RUN_TRAINING;
    if (state->batch > 0 && dl2_run_adds_up_on_device(run)) {
        const struct dl2_loss_sums own = dl2_checkpoint_get_sums(state, run->config->world);
        DL2_TRY(dl2_network_set_sums(run->network, &own, error));
    }
    json_decref(state->rank_sums);
    state->rank_sums = NULL;
    return DL2_OK;
}

int dl2_run_begin_pass(struct dl2_run *run, struct dl2_error *error)
{
    run->begin = run->state.pass_start;
    if (run->state.batch == 0 && !run->state.trained)
        DL2_TRY(choose_stage(run, error));
    DL2_TRY(dl2_run_open_feed(run, run->state.stage, error));
    return run->state.trained ? DL2_OK : dl2_run_enter_pass(run, error);
}

void dl2_run_start_clock(struct dl2_run *run)
{
    run->step.last = dl2_clock_wall();
    run->joules_seen = dl2_monitor_joules(run->stream->monitor);
}

/* -- steps -- */

static double learning_rate(const struct dl2_run *run)
{
    const struct dl2_train_optimizer *config = &run->config->optimizer;
    struct dl2_schedule schedule = {config->policy, config->lr,     config->end_lr,
                                    run->length,    config->warmup, 1};
    if (isnan(config->warmup))
        schedule.warmup = fmin(5, run->length / 10);
    else if (run->config->run.time_budget > 0)
        schedule.warmup = fmin(config->warmup, run->length / 2);
    if (config->lr_per_epoch)
        return dl2_schedule_lr(&schedule, run->state.pass_start);
    schedule.interval = dl2_run_step_epochs(run);
    return dl2_schedule_lr(&schedule, dl2_run_position(run));
}

/* Adds what the card took since the last time. */
static void take_joules(struct dl2_run *run)
{
    const double now = dl2_monitor_joules(run->stream->monitor);
    run->state.joules += now - run->joules_seen;
    run->joules_seen = now;
}

int dl2_run_leave_pass(struct dl2_run *run, struct dl2_error *error)
{
    const double waited = dl2_clock_wall();
    double loss;
    run->phase = DL2_RUN_READY;
    DL2_TRY(dl2_run_take_losses(run, true, &loss, error)); /* waits for the device */
    run->state.seconds += dl2_clock_wall() - waited;
    take_joules(run);
    return dl2_run_check_weights(run, error);
}

int dl2_run_stop_pass(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(dl2_run_leave_pass(run, error));
    run->phase = DL2_RUN_STOPPED;
    return DL2_OK;
}

int dl2_run_begin_step(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const uint64_t steps = dl2_run_steps(run), end = run->visit_end ? run->visit_end : steps;
    const unsigned accumulate = run->config->optimizer.accumulate;
    DL2_TRY(dl2_run_agree_on_end(run, error));
    const double before = dl2_run_position(run);
    if (state->batch >= steps || run->decision == DL2_RUN_END_PASS ||
        dl2_run_reached(run, run->length) ||
        dl2_run_reached(run, dl2_run_stage_end(run, state->stage))) {
        state->trained = true;
        return dl2_run_leave_pass(run, error);
    }
    if (run->decision == DL2_RUN_STOP || before >= run->run_stop - DL2_RUN_SAME)
        return dl2_run_stop_pass(run, error);
    struct dl2_run_step *step = &run->step;
    const uint64_t left = end - state->batch;
    step->done = 0;
    step->batches = left < accumulate ? (unsigned)left : accumulate;
    step->lr = learning_rate(run);
    step->position = before;
    step->data_wait = state->data_wait;
    step->images = state->images;
    return DL2_OK;
}

int dl2_run_train_batch(struct dl2_run *run, const struct dl2_batch *batch, double waited,
                        struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    struct dl2_run_step *step = &run->step;
    struct dl2_network_input input = {batch->images, NULL, batch->count, NULL, 1};
    DL2_TRY(dl2_run_labels(run, run->stream->stages[run->source->stage].dataset, batch,
                           &input.labels, error));
    /* Random numbers are named by the batch, of all that any rank has. */
    const unsigned ranks = dl2_world_size(config->world);
    const uint64_t number = run->state.step * ranks + dl2_world_rank(config->world);
    if (config->optimizer.mixup > 0 || config->optimizer.cutmix > 0) {
        const struct dl2_run_data *stage = &run->stream->stages[run->source->stage];
        const struct dl2_mix mix =
            dl2_mix_draw(config->seed, number, config->optimizer.mixup, config->optimizer.cutmix,
                         stage->height, stage->width, run->partner, batch->count);
        input.lambda = (float)mix.share;
        input.partner = run->partner;
        input.pasted = mix.cuts;
        if (mix.cuts)
            dl2_mix_paste(&mix, batch->images, dl2_loader_frames(&config->loader), stage->height,
                          stage->width, run->stream->channels, run->partner, batch->count,
                          run->row);
    }
    const struct dl2_network_step numbers = {number, 1.0f / (float)step->batches, step->done > 0,
                                             step->done + 1 < step->batches};
    step->done++;
    run->state.data_wait += waited;
    run->state.images += (uint64_t)batch->count * ranks; /* all have as many: loader/sampler.h */
    run->state.step++;
    run->state.batch++;
    return dl2_network_train(run->network, &input, &numbers, error);
}

static int update_weights(struct dl2_run *run, double lr, struct dl2_error *error)
{
    const struct dl2_train_optimizer *config = &run->config->optimizer;
    const double updates = (double)run->state.updates++;
    const struct dl2_update update = {
        .rate = (float)lr,
        .momentum = (float)config->momentum,
        .weight_decay = (float)config->weight_decay,
        .nesterov = config->nesterov,
        .average_decay = (float)fmin(config->average_decay, updates / (updates + 9)),
        .beta2 = (float)config->beta2,
        .epsilon = 1e-8f, /* PyTorch's default */
        .number = run->state.updates - run->state.optimizer_begun,
        .clip = (float)config->clip,
    };
    run->state.lr = lr;
    return dl2_network_update(run->network, &update, error);
}

/* The log's line of the step that is done. */
static int log_step(struct dl2_run *run, double seconds, double loss, struct dl2_error *error)
{
    const struct dl2_run_state *state = &run->state;
    const struct dl2_step_entry entry = {.step = state->updates,
                                         .epoch = dl2_run_position(run),
                                         .loss = loss,
                                         .lr = state->lr,
                                         .seconds = seconds,
                                         .data_wait = state->data_wait - run->step.data_wait,
                                         .images = state->images - run->step.images};
    return run->log ? dl2_step_log_add(run->log, &entry, error) : DL2_OK;
}

int dl2_run_end_step(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    struct dl2_run_step *step = &run->step;
    const uint64_t steps = dl2_run_steps(run);
    double loss = NAN;
    DL2_TRY(update_weights(run, step->lr, error));
    step->done = step->batches = 0;
    if (++step->updates % LOOK_EVERY == 0 || run->config->run.log_steps)
        DL2_TRY(dl2_run_take_losses(run, false, &loss, error));
    const double now = dl2_clock_wall(), after = dl2_run_position(run), took = now - step->last;
    state->seconds += took;
    if (run->config->run.log_steps)
        DL2_TRY(log_step(run, took, loss, error));
    dl2_budget_trained(&run->budget, after - step->position, took);
    step->last = now;
    dl2_run_tell_step(run, "train", state->batch, steps);
    return DL2_OK;
}

/* -- the end of an epoch -- */

static bool validation_due(const struct dl2_run *run)
{
    if (run->stream->val_count == 0)
        return false;
    if (dl2_run_reached(run, run->length))
        return true;
    double every = run->config->run.validate_every;
    return every > 0 && (run->state.pass + 1) % (uint64_t)every == 0;
}

int dl2_run_note_loss_scale(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_device_class *ops = run->device->ops;
    if (run->config->precision != DL2_PRECISION_FP16 || !ops->get_loss_scale)
        return DL2_OK;
    return ops->get_loss_scale(run->device, &run->state.loss_scale, error);
}

void dl2_run_next_pass(struct dl2_run *run)
{
    struct dl2_run_state *state = &run->state;
    const double end = dl2_run_position(run);
    state->pass++;
    state->pass_start = end;
    state->batch = 0;
    json_decref(state->missing);
    state->missing = NULL;
    if (state->visits)
        json_array_clear(state->visits);
    state->trained = false;
    memset(&state->sums, 0, sizeof state->sums);
    state->seconds = state->data_wait = state->joules = 0;
    state->images = 0;
}

/* A pass of a run that has trained to its end. */
struct ended_pass {
    struct dl2_run *run;
    struct dl2_train_epoch epoch;
    json_t *record;
    bool due; /* for a validation */
};

static int describe_pass(struct ended_pass *ended, struct dl2_error *error)
{
    struct dl2_run *run = ended->run;
    DL2_TRY(dl2_run_note_loss_scale(run, error));
    ended->due = validation_due(run);
    return dl2_run_epoch_record(run, dl2_run_position(run), &ended->epoch, &ended->record, error);
}

void dl2_run_add_pass(struct dl2_run *run, const struct dl2_train_epoch *epoch, json_t *record)
{
    json_array_append_new(run->state.epochs, record);
    dl2_run_next_pass(run);
    if (run->events.epoch_ended)
        run->events.epoch_ended(run->events.context, epoch);
    dl2_feed_stats_reset(run->source->feed);
}

/* Adds the pass's record, validation and all, and begins the next one. */
static void close_pass(struct ended_pass *ended)
{
    struct dl2_run_state *state = &ended->run->state;
    if (!ended->due)
        state->val_count = 0;
    ended->epoch.val = state->val;
    ended->epoch.val_count = state->val_count;
    if (state->visits)
        json_object_set_new(ended->record, "visits", dl2_visits_shown(state->visits));
    dl2_run_add_pass(ended->run, &ended->epoch, json_incref(ended->record));
}

/* -- saving -- */

/* In the middle of a pass: which samples each rank had, where that isn't a matter of the batches'
 * number. */
static int note_position(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    struct dl2_loader_position at = {.missing_count = 0};
    if (run->source->feed && state->batch && !state->trained)
        DL2_TRY(dl2_feed_get_position(run->source->feed, &at, error));
    return dl2_checkpoint_set_missing(state, &at, run->config->world, error);
}

/* Gives the checkpoint that was written a second name, which the next one leaves alone. Says once
 * how much room they take. */
static int keep_checkpoint(struct dl2_run *run, struct dl2_error *error)
{
    const char *path = run->checkpoint, *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    const int stem = (int)(dot ? dot - path : (ptrdiff_t)strlen(path));
    const double at = dl2_run_position(run), every = run->config->run.checkpoints.every;
    char kept[4096];
    struct stat file;
    if (snprintf(kept, sizeof kept, "%.*s-%g%s", stem, path, at, dot ? dot : "") >=
        (int)sizeof kept)
        return dl2_error_set(error, DL2_ERR_LIMIT, "the name %s is too long", path);
    unlink(kept); /* of a run before, or of this one before it was resumed */
    if (link(path, kept) || stat(kept, &file))
        return dl2_error_set(error, DL2_ERR_SYSTEM,
                             "cannot keep checkpoint %s as %s: %s; keep none (--checkpoint-every "
                             "%g) or choose another --out",
                             path, kept, strerror(errno), every);
    const double more = isfinite(run->length) ? ceil((run->length - at) / every - DL2_RUN_SAME) : 0;
    if (!run->keeps)
        dl2_run_note(run, "keeping %s, %.3g MB, and each later checkpoint: %.0f more, %.3g MB",
                     kept, 1e-6 * (double)file.st_size, more, 1e-6 * more * (double)file.st_size);
    run->keeps = true;
    return DL2_OK;
}

/* Rank 0 writes it; the others tell it which samples they had. Collective. */
static int save_checkpoint(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(note_position(run, error));
    if (run->state.batch && !run->state.trained && dl2_run_adds_up_on_device(run))
        DL2_TRY(dl2_checkpoint_set_sums(&run->state, &run->own_sums, run->config->world, error));
    if (dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    if (run->log)
        DL2_TRY(dl2_step_log_flush(run->log, error));
    DL2_TRY(dl2_run_note_loss_scale(run, error));
    double began = dl2_clock_wall();
    run->state.elapsed = dl2_run_elapsed(run);
    DL2_TRY(dl2_checkpoint_save(&run->state, run->identity, run->network, run->checkpoint, error));
    dl2_budget_wrote(&run->budget, dl2_clock_wall() - began);
    return run->config->run.checkpoints.keep ? keep_checkpoint(run, error) : DL2_OK;
}

/* Is a checkpoint due at position `after`, if there was none since `before`? */
static bool checkpoint_due(const struct dl2_run *run, double before, double after)
{
    double every = run->config->run.checkpoints.every;
    return every > 0 && floor(after / every + DL2_RUN_SAME) > floor(before / every + DL2_RUN_SAME);
}

static int save_all(struct dl2_run *run, bool checkpoint, struct dl2_error *error)
{
    if (checkpoint)
        DL2_TRY(save_checkpoint(run, error));
    return dl2_world_rank(run->config->world) == 0 ? dl2_run_save_report(run, error) : DL2_OK;
}

int dl2_run_save_step(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_step *step = &run->step;
    double loss;
    if (run->state.batch >= dl2_run_steps(run) ||
        !checkpoint_due(run, step->position, dl2_run_position(run)))
        return DL2_OK;
    DL2_TRY(dl2_run_take_losses(run, false, &loss, error));
    take_joules(run);
    DL2_TRY(save_checkpoint(run, error));
    dl2_run_start_clock(run);
    return DL2_OK;
}

/* Writes the report, and a checkpoint if one is due. */
static int save_pass(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(dl2_run_agree_on_end(run, error));
    /* What ends a run is written then. */
    const bool last = dl2_run_reached(run, run->length);
    const bool due = checkpoint_due(run, run->begin, run->state.pass_start);
    return save_all(run, !last && due, error);
}

/* A budget's end may come closer before the first step of a pass: then there is none. */
static bool has_trained(struct dl2_run *run)
{
    if (run->state.batch == 0)
        run->state.trained = false;
    return run->state.trained && !dl2_run_is_over(run);
}

/* `due` has room for all. */
static int end_passes(struct ended_pass *ended, size_t count, struct dl2_validation *due,
                      struct dl2_error *error)
{
    size_t dues = 0;
    for (size_t i = 0; i < count; i++) {
        struct dl2_run *run = ended[i].run;
        DL2_TRY(describe_pass(&ended[i], error));
        if (ended[i].due)
            due[dues++] = (struct dl2_validation){.run = run,
                                                  .pass = ended[i].epoch.number,
                                                  .keep = dl2_run_reached(run, run->length) ||
                                                          run->config->run.until.metric,
                                                  .record = ended[i].record};
    }
    if (dues)
        DL2_TRY(dl2_stream_validate(due, dues, error));
    if (dues && due[0].run->phase == DL2_RUN_STOPPED) /* it is done when the runs go on */
        return DL2_OK;
    for (size_t i = 0; i < count; i++)
        close_pass(&ended[i]);
    for (size_t i = 0; i < count; i++)
        DL2_TRY(save_pass(ended[i].run, error));
    return DL2_OK;
}

int dl2_stream_end_pass(struct dl2_stream *stream, struct dl2_error *error)
{
    struct ended_pass *ended = dl2_calloc(stream->run_count, sizeof *ended);
    struct dl2_validation *due = dl2_calloc(stream->run_count, sizeof *due);
    size_t count = 0;
    for (size_t i = 0; ended && i < stream->run_count; i++)
        if (has_trained(&stream->runs[i]))
            ended[count++].run = &stream->runs[i];
    const int status = ended && due ? end_passes(ended, count, due, error)
                                    : dl2_error_memory(error, "the end of an epoch");
    for (size_t i = 0; i < count; i++)
        json_decref(ended[i].record);
    free(ended);
    free(due);
    return status;
}

/* -- the end of the run -- */

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
    run->phase = DL2_RUN_OVER;
    if (run == &run->stream->runs[0])
        dl2_stream_sum_up_bad(run->stream);
    dl2_monitor_sample(run->stream->monitor);
    int status = dl2_run_gather_timelines(run, error);
    if (status == DL2_OK)
        status = save_all(run, true, error);
    if (status == DL2_OK)
        status = dl2_run_export_weights(run, error);
    status = dl2_stream_agree(run->stream, status, error); /* nobody goes before all is written */
    dl2_network_destroy(run->network);                     /* makes room for the others */
    run->network = NULL;
    return status;
}

int dl2_run_look_for_end(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    if (run->phase == DL2_RUN_STOPPED)
        return conclude(run, error);
    DL2_TRY(dl2_run_agree_on_end(run, error));
    if (state->batch > 0 || state->trained)
        return DL2_OK;
    if (dl2_run_reached(run, run->length)) {
        DL2_TRY(validate_last(run, error));
        state->completed = run->phase != DL2_RUN_STOPPED;
        return conclude(run, error);
    }
    const bool stops = run->decision == DL2_RUN_STOP || dl2_run_reached(run, run->run_stop);
    return stops ? conclude(run, error) : DL2_OK;
}

/* The loader failed, such as where a server went away: what the run has learnt before is kept. */
static int save_learnt(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_loss_sums unused;
    const bool training = run->phase == DL2_RUN_TRAINING;
    if (training && run->step.done > 0)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "in the middle of a step of %u batches",
                             run->step.batches);
    if (run->phase == DL2_RUN_VALIDATING)
        DL2_TRY(dl2_network_take_sums(run->network, &unused, error));
    if (training)
        DL2_TRY(dl2_run_leave_pass(run, error));
    return save_all(run, true, error);
}

/* Hopping models are saved after each visit. */
void dl2_stream_save_learnt(struct dl2_stream *stream)
{
    const struct dl2_train_config *config = stream->config;
    if (!stream->data_failed || stream->hopping)
        return;
    if (config->world && !stream->common) {
        dl2_run_note(&stream->runs[0],
                     "no checkpoint is written, since the other ranks are at another step: "
                     "--resume goes on from the last one, if there is any (--checkpoint-every)");
        return;
    }
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_error own = DL2_ERROR_INIT;
        if (dl2_run_is_over(run) || run->state.updates == 0)
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

int dl2_run_end_diverged(struct dl2_run *run, int status, const struct dl2_error *reason,
                         struct dl2_error *error)
{
    if (status >= 0)
        return DL2_OK;
    if (!run->stream->several || run->phase != DL2_RUN_DIVERGED)
        return dl2_error_copy(error, reason);
    dl2_run_note(run, "%s", reason->message);
    /* Progress since the last checkpoint is discarded; the report has the passes that are done. */
    return dl2_run_save_report(run, error);
}

/* -- open and close -- */

void dl2_run_tell_ended(const struct dl2_run *run)
{
    const struct dl2_run_state *state = &run->state;
    const struct dl2_train_until *until = &run->config->run.until;
    char text[128];
    snprintf(text, sizeof text, "target %s=%g %s",
             until->metric ? dl2_until_metrics[until->metric - 1] : "", until->value,
             dl2_run_met_target(run) ? "reached" : "not reached");
    const struct dl2_train_summary summary = {.val = state->val,
                                              .val_count = state->val_count,
                                              .best_epoch = state->best_epoch,
                                              .best_score = state->best_score,
                                              .epochs = dl2_run_position(run),
                                              .until = until->metric ? text : NULL,
                                              .report = run->report_path};
    if (run->events.ended)
        run->events.ended(run->events.context, &summary);
}

/* What is left to do after an error. */
static void tell_failure(struct dl2_run *run, const struct dl2_train_events *events, int status,
                         const struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    if (status == DL2_ERR_CANCELED && run->checkpoint && dl2_is_file(run->checkpoint)) {
        dl2_run_note(run, "--resume goes on from %s", run->checkpoint);
    } else if (config->world && !run->stream->common && status != DL2_ERR_CANCELED) {
        /* Before anything is closed: a card may wait for others, which wait for this rank. */
        if (events->failed)
            events->failed(events->context, error);
        config->world->ops->give_up(config->world);
    }
}

static void tell_result(struct dl2_run *run, struct dl2_train_result *result)
{
    result->completed = run->state.completed;
    result->diverged = run->phase == DL2_RUN_DIVERGED;
    result->stopped = !run->state.completed && run->decision == DL2_RUN_STOP;
    result->position = dl2_run_position(run);
    if (!result->diverged)
        dl2_run_tell_ended(run);
}

int dl2_stream_train(struct dl2_train_model *models, size_t count, bool several,
                     int (*train)(struct dl2_stream *stream, struct dl2_error *error),
                     struct dl2_error *error)
{
    struct dl2_stream stream = {.run_count = count, .several = several};
    DL2_TRY(DL2_NEW(&stream.runs, count, "training runs", error));
    for (size_t i = 0; i < count; i++) {
        stream.runs[i].config = &models[i].config;
        if (dl2_world_rank(models[i].config.world) == 0)
            stream.runs[i].events = models[i].events;
    }
    int status = dl2_stream_agree(&stream, dl2_stream_open(&stream, error), error);
    if (status == DL2_OK)
        status = train(&stream, error);
    for (size_t i = 0; i < count; i++) {
        models[i].result = (struct dl2_train_result){.common = stream.common};
        if (status == DL2_OK)
            tell_result(&stream.runs[i], &models[i].result);
        else
            tell_failure(&stream.runs[i], &models[i].events, status, error);
    }
    dl2_stream_close(&stream);
    free(stream.runs);
    return status;
}
