/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a run: batches, the update that ends a step, its log and its checkpoints. */
#include "common/clock.h"
#include "ranks/world.h"
#include "train/mixup.h"
#include "train/run.h"
#include "train/step_log.h"

#include <math.h>
#include <string.h>

/* Steps from one look at the loss to the next. */
#define LOOK_EVERY 100

/* -- checkpoints and the log -- */

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

/* Sums of losses stay on the device up to the pass' end, so that they are added in one order,
 * wherever a run stops. A log's steps have sums of their own, which are the same in all runs. */
static bool adds_up_on_device(const struct dl2_run *run)
{
    return !run->config->log_steps;
}

int dl2_run_note_loss_scale(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_device_class *ops = run->device->ops;
    if (run->config->precision != DL2_PRECISION_FP16 || !ops->get_loss_scale)
        return DL2_OK;
    return ops->get_loss_scale(run->device, &run->state.loss_scale, error);
}

int dl2_run_save_checkpoint(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(note_position(run, error));
    if (run->state.batch && !run->state.trained && adds_up_on_device(run))
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
    return DL2_OK;
}

bool dl2_run_checkpoint_due(const struct dl2_run *run, double before, double after)
{
    double every = run->config->checkpoint_every;
    return every > 0 && floor(after / every + DL2_RUN_SAME) > floor(before / every + DL2_RUN_SAME);
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

/* -- batches -- */

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
    schedule.interval = dl2_run_step_epochs(run);
    return dl2_schedule_lr(&schedule, dl2_run_position(run));
}

/* The same on all ranks. */
static int diverged(struct dl2_run *run, const char *what, struct dl2_error *error)
{
    run->diverged = run->common = true;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         DL2_RUN_DIVERGED " in epoch %llu: %s became NaN or infinite. A lower --lr "
                                          "(it was %g) or a longer --warmup helps",
                         (unsigned long long)run->state.pass + 1, what, run->state.lr);
}

/* A loss may stay finite where weights do not: behind a ReLU that makes NaN 0, or when the last
 * update was too large. */
static int check_weights(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_network_tensor tensor;
    char what[160];
    for (size_t i = 0; i < dl2_network_tensor_count(run->network); i++) {
        dl2_network_tensor(run->network, i, &tensor);
        if (!tensor.parameter)
            continue;
        float *values = dl2_calloc(tensor.count, sizeof *values);
        if (!values)
            return dl2_error_memory(error, "weights");
        const int status = dl2_network_get(run->network, i, DL2_NETWORK_VALUE, values, error);
        size_t good = 0;
        while (status == DL2_OK && good < tensor.count && isfinite(values[good]))
            good++;
        free(values);
        DL2_TRY(status);
        if (good < tensor.count) {
            snprintf(what, sizeof what, "a value of %s", tensor.name);
            return diverged(run, what, error);
        }
    }
    return DL2_OK;
}

/* Takes over the pass' sums. `last`: of this part of the run. With a log *loss becomes the mean
 * since the last time, NAN where no image counted. */
static int take_sums(struct dl2_run *run, bool last, double *loss, struct dl2_error *error)
{
    struct dl2_loss_sums sums;
    const bool on_device = adds_up_on_device(run);
    DL2_TRY((last || !on_device ? dl2_network_take_sums : dl2_network_get_sums)(run->network, &sums,
                                                                                error));
    run->own_sums = sums;
    DL2_TRY(dl2_run_add_up(run, &sums, error));
    *loss = sums.counted ? sums.loss / (double)sums.counted : NAN;
    if (!isfinite(sums.loss))
        return diverged(run, "the loss", error);
    if (on_device) {
        run->state.sums = sums;
        return DL2_OK;
    }
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

/* -- a pass, step by step -- */

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
    if (state->batch > 0 && adds_up_on_device(run)) {
        const struct dl2_loss_sums own = dl2_checkpoint_get_sums(state, run->config->world);
        DL2_TRY(dl2_network_set_sums(run->network, &own, error));
    }
    json_decref(state->rank_sums);
    state->rank_sums = NULL;
    return DL2_OK;
}

int dl2_run_leave_pass(struct dl2_run *run, struct dl2_error *error)
{
    const double waited = dl2_clock_wall();
    double loss;
    run->training = false;
    DL2_TRY(take_sums(run, true, &loss, error)); /* waits for the device */
    run->state.seconds += dl2_clock_wall() - waited;
    take_joules(run);
    return check_weights(run, error);
}

int dl2_run_begin_step(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const uint64_t steps = dl2_run_steps(run), end = run->visit_end ? run->visit_end : steps;
    const unsigned accumulate = run->config->accumulate;
    DL2_TRY(dl2_run_agree_on_end(run, error));
    const double before = dl2_run_position(run);
    if (state->batch >= steps || run->pass_over || dl2_run_reached(run, run->length) ||
        dl2_run_reached(run, dl2_run_stage_end(run, state->stage))) {
        state->trained = true;
        return dl2_run_leave_pass(run, error);
    }
    if (run->stopping || before >= run->run_stop - DL2_RUN_SAME) {
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
        DL2_TRY(take_sums(run, false, &loss, error));
    const double now = dl2_clock_wall(), after = dl2_run_position(run), took = now - step->last;
    state->seconds += took;
    if (run->config->log_steps)
        DL2_TRY(log_step(run, took, loss, error));
    dl2_budget_trained(&run->budget, after - step->position, took);
    step->last = now;
    dl2_run_tell_step(run, "train", state->batch, steps);
    if (state->batch < steps && dl2_run_checkpoint_due(run, step->position, after)) {
        DL2_TRY(take_sums(run, false, &loss, error));
        take_joules(run);
        DL2_TRY(dl2_run_save_checkpoint(run, error));
        run->joules_seen = dl2_monitor_joules(run->stream->monitor);
        step->last = dl2_clock_wall();
    }
    return DL2_OK;
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
