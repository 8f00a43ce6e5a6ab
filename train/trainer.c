/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of a training run: passes, validations, and what is written when. */
#include "train/trainer.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/thread.h"
#include "network/weights.h"
#include "ranks/world.h"
#include "train/mixup.h"
#include "train/run.h"
#include "train/step_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two positions closer than this are one: sums of 1 / steps are not exact. */
#define SAME 1e-9
/* Steps from one look at the loss to the next. */
#define LOOK_EVERY 100

/* -- positions -- */

/* Epochs from one step of the optimiser to the next. */
static double step_epochs(const struct dl2_run *run)
{
    return (double)run->config->accumulate / (double)dl2_run_steps(run);
}

/* A budget's length moves a little all the time: half a step is as near as one can come to it. */
static bool reached(const struct dl2_run *run, double at)
{
    double slack = run->config->time_budget > 0 && run->source->feed ? step_epochs(run) / 2 : SAME;
    return dl2_run_position(run) >= at - slack;
}

bool dl2_run_is_at(const struct dl2_run_state *state, double position)
{
    return state->batch == 0 && !state->trained && state->pass_start >= position - SAME;
}

static double stage_end(const struct dl2_run *run, size_t stage)
{
    return run->stream->stages[stage].share_end * run->length;
}

static double learning_rate(const struct dl2_run *run)
{
    const struct dl2_train_config *config = run->config;
    struct dl2_schedule schedule = {config->policy, config->lr,     config->end_lr,
                                    run->length,    config->warmup, 1};
    if (isnan(config->warmup))
        schedule.warmup = fmin(5, run->length / 10);
    else if (config->time_budget > 0)
        schedule.warmup = fmin(config->warmup, run->length / 2);
    if (config->lr_per_epoch)
        return dl2_schedule_lr(&schedule, run->state.pass_start);
    schedule.interval = step_epochs(run);
    return dl2_schedule_lr(&schedule, dl2_run_position(run));
}

/* -- one step -- */

/* Moves them into the pass'. *loss (may be NULL) is the mean of those since the last time; NAN
 * where none counted. */
static int take_sums(struct dl2_run *run, double *loss, struct dl2_error *error)
{
    struct dl2_loss_sums sums;
    DL2_TRY(dl2_run_sums(run, &sums, error));
    run->diverged = run->common = !isfinite(sums.loss);
    if (loss)
        *loss = sums.counted ? sums.loss / (double)sums.counted : NAN;
    if (run->diverged)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             DL2_RUN_DIVERGED " in epoch %llu: the loss is no number any more. A "
                                              "lower --lr (it was %g) or a longer --warmup helps",
                             (unsigned long long)run->state.pass + 1, run->state.lr);
    run->state.sums.loss += sums.loss;
    run->state.sums.counted += sums.counted;
    run->state.sums.top1 += sums.top1;
    run->state.sums.top5 += sums.top5;
    return DL2_OK;
}

/* Adds what the card took since the last time. */
static void take_joules(struct dl2_run *run)
{
    const double now = dl2_monitor_joules(run->stream->monitor);
    run->state.joules += now - run->joules_seen;
    run->joules_seen = now;
}

int dl2_run_train_batch(struct dl2_run *run, const struct dl2_batch *batch, double waited,
                        struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    struct dl2_run_step *step = &run->step;
    struct dl2_network_input input = {batch->images, batch->labels, batch->count, NULL, 1};
    /* Random numbers are named by the batch, of all that any rank has. */
    const unsigned ranks = dl2_world_size(config->world);
    const uint64_t number = run->state.step * ranks + dl2_world_rank(config->world);
    if (config->mixup > 0 || config->cutmix > 0) {
        const struct dl2_run_data *stage = &run->stream->stages[run->source->stage];
        const struct dl2_mix mix =
            dl2_mix_draw(config->seed, number, config->mixup, config->cutmix, stage->height,
                         stage->width, run->partner, batch->count);
        input.lambda = (float)mix.share;
        input.partner = run->partner;
        input.pasted = mix.cuts;
        if (mix.cuts)
            dl2_mix_paste(&mix, batch->images, stage->height, stage->width, run->stream->channels,
                          run->partner, batch->count, run->row);
    }
    const struct dl2_network_step numbers = {number, 1.0f / (float)step->parts, step->part > 0,
                                             step->part + 1 < step->parts};
    step->part++;
    run->state.data_wait += waited;
    run->state.images += (uint64_t)batch->count * ranks; /* all have as many: loader/sampler.h */
    run->state.step++;
    run->state.batch++;
    return dl2_network_train(run->network, &input, &numbers, error);
}

static int update_weights(struct dl2_run *run, double lr, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
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

/* -- writing -- */

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

/* Notes the loss scale, if half-precision training has one. */
static int note_loss_scale(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_device_class *ops = run->device->ops;
    if (run->config->precision != DL2_PRECISION_FP16 || !ops->get_loss_scale)
        return DL2_OK;
    return ops->get_loss_scale(run->device, &run->state.loss_scale, error);
}

static int save_checkpoint(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(note_position(run, error));
    if (dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    if (run->log)
        DL2_TRY(dl2_step_log_flush(run->log, error));
    DL2_TRY(note_loss_scale(run, error));
    double began = dl2_clock_wall();
    run->state.elapsed = dl2_run_elapsed(run);
    DL2_TRY(dl2_checkpoint_save(&run->state, run->identity, run->network, run->checkpoint, error));
    dl2_budget_wrote(&run->budget, dl2_clock_wall() - began);
    return DL2_OK;
}

static bool checkpoint_due(const struct dl2_run *run, double before, double after)
{
    double every = run->config->checkpoint_every;
    return every > 0 && floor(after / every + SAME) > floor(before / every + SAME);
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

int dl2_run_enter_pass(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const struct dl2_run_data *stage = &run->stream->stages[state->stage];
    DL2_TRY(dl2_network_use_size(run->network, stage->height, stage->width, error));
    DL2_TRY(dl2_network_freeze(run->network, run->config->stages[state->stage].freeze, error));
    const uint64_t steps = dl2_run_steps(run);
    if (steps == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "there is nothing to train on");
    if (state->batch > steps)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the checkpoint is at batch %llu of an epoch of %llu",
                             (unsigned long long)state->batch, (unsigned long long)steps);
    run->step = (struct dl2_run_step){.parts = 0};
    run->training = true;
    return DL2_OK;
}

int dl2_run_leave_pass(struct dl2_run *run, struct dl2_error *error)
{
    const double waited = dl2_clock_wall();
    run->training = false;
    DL2_TRY(take_sums(run, NULL, error)); /* waits for the device */
    run->state.seconds += dl2_clock_wall() - waited;
    take_joules(run);
    return DL2_OK;
}

int dl2_run_begin_step(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const uint64_t steps = dl2_run_steps(run), end = run->visit_end ? run->visit_end : steps;
    const unsigned accumulate = run->config->accumulate;
    DL2_TRY(dl2_run_look(run, error));
    const double before = dl2_run_position(run);
    if (state->batch >= steps || run->pass_over || reached(run, run->length) ||
        reached(run, stage_end(run, state->stage))) {
        state->trained = true;
        return dl2_run_leave_pass(run, error);
    }
    if (run->stopping || before >= run->run_stop - SAME) {
        run->stopped = true;
        return dl2_run_leave_pass(run, error);
    }
    struct dl2_run_step *step = &run->step;
    const uint64_t left = end - state->batch;
    step->part = 0;
    step->parts = left < accumulate ? (unsigned)left : accumulate;
    step->lr = learning_rate(run);
    step->position = before;
    step->data_wait = state->data_wait;
    step->images = state->images;
    return DL2_OK;
}

int dl2_run_end_step(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    struct dl2_run_step *step = &run->step;
    const uint64_t steps = dl2_run_steps(run);
    double loss = NAN;
    DL2_TRY(update_weights(run, step->lr, error));
    step->part = step->parts = 0;
    if (++step->updates % LOOK_EVERY == 0 || run->config->log_steps)
        DL2_TRY(take_sums(run, &loss, error));
    const double now = dl2_clock_wall(), after = dl2_run_position(run), took = now - step->last;
    state->seconds += took;
    if (run->config->log_steps)
        DL2_TRY(log_step(run, took, loss, error));
    dl2_budget_trained(&run->budget, after - step->position, took);
    step->last = now;
    dl2_run_tell_step(run, "train", state->batch, steps);
    if (state->batch < steps && checkpoint_due(run, step->position, after)) {
        DL2_TRY(take_sums(run, NULL, error));
        take_joules(run);
        DL2_TRY(save_checkpoint(run, error));
        run->joules_seen = dl2_monitor_joules(run->stream->monitor);
        step->last = dl2_clock_wall();
    }
    return DL2_OK;
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
            any = dl2_stream_note_bad(stream, stream->sources[k].feed, error);
    return any;
}

/* -- the run -- */

static bool validation_due(const struct dl2_run *run)
{
    if (run->stream->val_count == 0)
        return false;
    if (reached(run, run->length))
        return true;
    double every = run->config->validate_every;
    return every > 0 && (run->state.pass + 1) % (uint64_t)every == 0;
}

/* A pass of a run that has ended. */
struct ended_pass {
    struct dl2_train_epoch epoch;
    json_t *record;
    bool due; /* for a validation */
};

static int describe_pass(struct dl2_run *run, struct ended_pass *ended, struct dl2_error *error)
{
    DL2_TRY(note_loss_scale(run, error));
    ended->due = validation_due(run);
    return dl2_run_epoch_record(run, dl2_run_position(run), &ended->epoch, &ended->record, error);
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
                                                  .keep = reached(runs[i], runs[i]->length),
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

/* Chooses the stage of the pass that begins; stages never go back. Where another part of the
 * network is trained than before, the optimizer begins anew: moments of layers that were frozen
 * would be old, and AdamW's would be taken for those of many updates. */
static int choose_stage(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const size_t before = state->stage;
    while (state->stage + 1 < run->stream->stage_count &&
           reached(run, stage_end(run, state->stage)))
        state->stage++;
    if (run->config->stages[before].freeze == run->config->stages[state->stage].freeze)
        return DL2_OK;
    state->optimizer_begun = state->updates - state->loss_scale.skipped;
    return dl2_network_forget_moments(run->network, error);
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

static int save_all(struct dl2_run *run, bool checkpoint, struct dl2_error *error)
{
    if (checkpoint)
        DL2_TRY(save_checkpoint(run, error));
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
        DL2_TRY(dl2_run_look(runs[i], error));
        /* What ends a run is written then. */
        const bool last = reached(runs[i], runs[i]->length);
        const double end = runs[i]->state.pass_start, begin = runs[i]->begin;
        DL2_TRY(save_all(runs[i], !last && checkpoint_due(runs[i], begin, end), error));
    }
    return DL2_OK;
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

static int export_weights(struct dl2_run *run, struct dl2_error *error)
{
    if (!run->config->export || dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    DL2_TRY(dl2_run_use_average(run, true, error));
    json_auto_t *texts = dl2_run_export_texts(run);
    return dl2_weights_save(run->config->export, run->network, texts, error);
}

static int load_pretrained(struct dl2_run *run, struct dl2_error *error)
{
    char note[256];
    if (!run->config->pretrained)
        return DL2_OK;
    DL2_TRY(
        dl2_weights_load(run->config->pretrained, run->network, false, note, sizeof note, error));
    if (note[0])
        dl2_run_note(run, "%s: %s", run->config->pretrained, note);
    return DL2_OK;
}

static void note_setting(struct dl2_run *run, const char *key, const json_t *was, const json_t *now)
{
    if (!was || !now || json_equal(was, now))
        return;
    char *then = json_dumps(was, JSON_ENCODE_ANY), *here = json_dumps(now, JSON_ENCODE_ANY);
    dl2_run_note(
        run,
        strcmp(key, "val-resize") == 0 || strcmp(key, "val-crop") == 0
            ? "--%s was %s and is %s: validation's figures from here on are of other crops"
            : "--%s was %s and is %s: the weights will not be, bit for bit, those of a run "
              "in one part",
        key, then ? then : "?", here ? here : "?");
    free(then);
    free(here);
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
    else if (dl2_json_get_integer(was, "bytes", 0) != dl2_json_get_integer(now, "bytes", 0))
        dl2_run_note(run,
                     "the validation images of %s have changed: figures from here on are of other "
                     "images than those before",
                     name);
}

/* Says in what this part of a run differs from the one before, where that changes its results. */
static void note_changes(struct dl2_run *run, const json_t *now)
{
    const json_t *was = run->state.part;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)now, key, value) if (!json_is_array(value))
        note_setting(run, key, json_object_get(was, key), value);
    const json_t *sets = json_object_get(was, "validation");
    const json_t *own = json_object_get(now, "validation");
    for (size_t i = 0; json_is_array(sets) && i < json_array_size(own); i++)
        note_set(run, json_array_get(sets, i), json_array_get(own, i));
    for (size_t i = json_array_size(own); i < json_array_size(sets); i++)
        dl2_run_note(run, "%s is not validated on any more",
                     dl2_json_get_text(json_array_get(sets, i), "name", "?"));
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
    json_auto_t *part = dl2_run_part(run);
    if (config->resume && dl2_is_file(run->checkpoint)) {
        dl2_run_state_free(&run->state);
        DL2_TRY(
            dl2_checkpoint_load(run->checkpoint, run->identity, run->network, &run->state, error));
        if (run->state.stage >= run->stream->stage_count)
            return dl2_error_set(error, DL2_ERR_FORMAT, "checkpoint %s: it has more stages",
                                 run->checkpoint);
        tell_resumed(run, true);
        if (!run->state.completed && !run->stream->hopping)
            note_changes(run, part);
    } else if (config->resume) {
        tell_resumed(run, false);
        DL2_TRY(load_pretrained(run, error));
    } else if (!config->restart && !(config->measure > 0) && dl2_is_file(run->checkpoint)) {
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is %s, or give it up by --restart",
                             run->checkpoint,
                             dl2_checkpoint_unfinished(run->checkpoint)
                                 ? "of a run that was not finished: go on with it by --resume"
                                 : "there already: name another place by --out or --checkpoint");
    } else {
        DL2_TRY(load_pretrained(run, error));
    }
    json_decref(run->state.part);
    run->state.part = json_incref(part);
    return DL2_OK;
}

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
static int begin(struct dl2_run *run, struct dl2_error *error)
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
    if (config->keep_best && dl2_world_rank(world) == 0)
        dl2_run_find_best(run);
    return DL2_OK;
}

/* Rank 0's, to go on where the checkpoint is. */
static int open_log(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    const bool own = config->log_steps && dl2_world_rank(config->world) == 0;
    int status = own ? dl2_step_log_open(run->steps, run->state.updates, &run->log, error) : DL2_OK;
    return dl2_stream_agree(run->stream, status, error);
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

static void tell_ended(const struct dl2_run *run)
{
    const struct dl2_run_state *state = &run->state;
    const struct dl2_train_summary summary = {state->val,        state->val_count,
                                              state->best_epoch, state->best_top1,
                                              dl2_run_rate(run), run->report_path};
    if (run->events.ended)
        run->events.ended(run->events.context, &summary);
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
    if (!partitions || state->completed || dl2_run_is_at(state, run->config->stop_at))
        return DL2_OK;
    const enum dl2_visit visit =
        dl2_visit_find(run->stream, state, own, &run->visit_begin, &run->visit_end);
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

/* Gets a run ready to train, or leaves it as it is where it is finished already. */
static int prepare(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    run->arguments = dl2_run_arguments(run);
    run->identity = dl2_run_identity(run);
    run->report = dl2_run_report(run);
    DL2_TRY(begin(run, error));
    run->budget.seconds = config->time_budget;
    run->budget.validate_every = run->stream->val_count ? config->validate_every : 0;
    run->run_stop = config->stop_at > 0 ? config->stop_at : INFINITY;
    if (config->run_epochs > 0) {
        if (run->state.batch > 0)
            DL2_TRY(dl2_run_open_feed(run, run->state.stage, error));
        run->run_stop = dl2_run_position(run) + config->run_epochs;
    }
    DL2_TRY(begin_visit(run, error));
    if (!run->stream->hopping || run->state.step == 0)
        dl2_run_tell_begun(run);
    if (run->state.completed) {
        run->over = true;
        DL2_TRY(export_weights(run, error));
        return keep_report(run, error);
    }
    DL2_TRY(dl2_stream_agree(run->stream, check_device(run, error), error));
    return open_log(run, error);
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
    dl2_monitor_sample(run->stream->monitor);
    int status = dl2_run_gather_timelines(run, error);
    if (status == DL2_OK)
        status = save_all(run, !(config->measure > 0), error);
    if (status == DL2_OK)
        status = export_weights(run, error);
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
    DL2_TRY(dl2_run_look(run, error));
    if (state->batch > 0 || state->trained)
        return DL2_OK;
    if (reached(run, run->length)) {
        DL2_TRY(validate_last(run, error));
        state->completed = true;
    } else if (run->stopping || reached(run, run->run_stop)) {
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
        if (status < 0)
            return status;
        status = run_round(stream, members, error);
        if (status == 0)
            return DL2_OK;
    }
}

static int drive(struct dl2_stream *stream, struct dl2_error *error)
{
    struct dl2_run **members = dl2_calloc(stream->run_count, sizeof(struct dl2_run *));
    int status = members ? DL2_OK : dl2_error_memory(error, "a training run");
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        status = prepare(&stream->runs[i], error);
        if (status < 0 && stream->several)
            dl2_error_prefix(error, "%s", stream->runs[i].name);
    }
    if (status == DL2_OK)
        status = run_to_end(stream, members, error);
    free(members);
    return status;
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
        status = prepare(run, error);
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
