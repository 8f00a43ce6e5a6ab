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
    return (double)run->config->accumulate / (double)dl2_feed_steps(run->feed);
}

/* A budget's length moves a little all the time: half a step is as near as one can come to it. */
static bool reached(const struct dl2_run *run, double at)
{
    double slack = run->config->time_budget > 0 && run->feed ? step_epochs(run) / 2 : SAME;
    return dl2_run_position(run) >= at - slack;
}

static double stage_end(const struct dl2_run *run, size_t stage)
{
    return run->stages[stage].share_end * run->length;
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
    run->common = !isfinite(sums.loss);
    if (loss)
        *loss = sums.counted ? sums.loss / (double)sums.counted : NAN;
    if (run->common)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "training diverged in epoch %llu: the loss is no number any more. A "
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
    const double now = dl2_monitor_joules(run->monitor);
    run->state.joules += now - run->joules_seen;
    run->joules_seen = now;
}

/* One batch, forward and backward; `part` of `parts` whose gradients are averaged. */
static int train_batch(struct dl2_run *run, unsigned part, unsigned parts, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    struct dl2_batch *batch;
    double waited = dl2_clock_wall();
    int got = dl2_feed_next(run->feed, &batch, error);
    waited = dl2_clock_wall() - waited;
    run->state.data_wait += waited;
    if (got < 0)
        return got;
    if (got == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the loader ended an epoch early");
    struct dl2_network_input input = {batch->images, batch->labels, batch->count, NULL, 1};
    /* Random numbers are named by the batch, of all that any rank has. */
    const unsigned ranks = dl2_world_size(config->world);
    const uint64_t number = run->state.step * ranks + dl2_world_rank(config->world);
    if (config->mixup > 0 || config->cutmix > 0) {
        const uint32_t side = run->stages[run->feed_stage].image_size;
        const struct dl2_mix mix = dl2_mix_draw(config->loader.seed, number, config->mixup,
                                                config->cutmix, side, run->partner, batch->count);
        input.lambda = (float)mix.share;
        input.partner = run->partner;
        input.pasted = mix.cuts;
        if (mix.cuts)
            dl2_mix_paste(&mix, batch->images, side, run->channels, run->partner, batch->count,
                          run->row);
    }
    const struct dl2_network_step step = {number, 1.0f / (float)parts, part > 0, part + 1 < parts};
    int status = dl2_network_train(run->network, &input, &step, error);
    dl2_network_wait_input(run->network);
    run->state.images += (uint64_t)batch->count * ranks; /* all have as many: loader/sampler.h */
    dl2_monitor_count(run->monitor, batch->count, waited);
    dl2_feed_release(run->feed, batch);
    run->state.step++;
    run->state.batch++;
    return status;
}

static int train_step(struct dl2_run *run, double lr, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    uint64_t left = dl2_feed_steps(run->feed) - run->state.batch;
    unsigned parts = left < config->accumulate ? (unsigned)left : config->accumulate;
    for (unsigned part = 0; part < parts; part++)
        DL2_TRY(train_batch(run, part, parts, error));
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
    if (run->feed && state->batch && !state->trained)
        DL2_TRY(dl2_feed_get_position(run->feed, &at, error));
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

/* What a pass' figures were before a step. */
struct before_step {
    double data_wait;
    uint64_t images;
};

/* The log's line of the step that is done. */
static int log_step(struct dl2_run *run, const struct before_step *before, double seconds,
                    double loss, struct dl2_error *error)
{
    const struct dl2_run_state *state = &run->state;
    const struct dl2_step_entry entry = {.step = state->updates,
                                         .epoch = dl2_run_position(run),
                                         .loss = loss,
                                         .lr = state->lr,
                                         .seconds = seconds,
                                         .data_wait = state->data_wait - before->data_wait,
                                         .images = state->images - before->images};
    return run->log ? dl2_step_log_add(run->log, &entry, error) : DL2_OK;
}

/* -- a pass -- */

/* Begins the pass, or goes on where the checkpoint left it. */
static int start_feed(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_run_state *state = &run->state;
    struct dl2_loader_position at;
    uint32_t *missing;
    DL2_TRY(dl2_checkpoint_get_missing(state, run->config->world, &at, &missing, error));
    if (!missing)
        return dl2_feed_start_epoch(run->feed, state->pass, state->batch, error);
    const int status = dl2_feed_resume(run->feed, &at, error);
    free(missing);
    return status;
}

/* With config->cold: the pass reads from the disk. */
static int make_cold(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_dataset *dataset = run->stages[run->state.stage].dataset;
    if (!run->config->cold)
        return DL2_OK;
    const int status = dl2_world_rank(run->config->world) == 0
                           ? dl2_fetch_evict(dataset, &run->resident, error)
                           : DL2_OK;
    return dl2_run_agree(run, status, error);
}

/* Trains to the end of the pass, of its stage, of the run or of this
 * part, whichever comes first. */
static int train_pass(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const struct dl2_run_data *stage = &run->stages[state->stage];
    DL2_TRY(dl2_run_open_feed(run, state->stage, error));
    DL2_TRY(dl2_network_use_size(run->network, stage->image_size, stage->image_size, error));
    DL2_TRY(dl2_network_freeze(run->network, stage->freeze, error));
    uint64_t steps = dl2_feed_steps(run->feed);
    if (steps == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "there is nothing to train on");
    if (state->batch > steps)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the checkpoint is at batch %llu of an epoch of %llu",
                             (unsigned long long)state->batch, (unsigned long long)steps);
    DL2_TRY(make_cold(run, error));
    double last = dl2_clock_wall();
    uint64_t updates = 0;
    run->joules_seen = dl2_monitor_joules(run->monitor);
    DL2_TRY(start_feed(run, error));
    for (;;) {
        DL2_TRY(dl2_run_look(run, error));
        double before = dl2_run_position(run);
        if (state->batch >= steps || run->pass_over || reached(run, run->length) ||
            reached(run, stage_end(run, state->stage))) {
            state->trained = true;
            break;
        }
        if (run->stopping || before >= run->run_stop - SAME) {
            run->stopped = true;
            break;
        }
        const struct before_step step = {state->data_wait, state->images};
        double loss = NAN;
        DL2_TRY(train_step(run, learning_rate(run), error));
        if (++updates % LOOK_EVERY == 0 || run->config->log_steps)
            DL2_TRY(take_sums(run, &loss, error));
        double now = dl2_clock_wall(), after = dl2_run_position(run);
        state->seconds += now - last;
        if (run->config->log_steps)
            DL2_TRY(log_step(run, &step, now - last, loss, error));
        dl2_budget_trained(&run->budget, after - before, now - last);
        last = now;
        dl2_run_tell_step(run, "train", state->batch, steps);
        if (state->batch < steps && checkpoint_due(run, before, after)) {
            DL2_TRY(take_sums(run, NULL, error));
            take_joules(run);
            DL2_TRY(save_checkpoint(run, error));
            run->joules_seen = dl2_monitor_joules(run->monitor);
            last = dl2_clock_wall();
        }
    }
    double waited = dl2_clock_wall();
    DL2_TRY(take_sums(run, NULL, error)); /* waits for the device */
    state->seconds += dl2_clock_wall() - waited;
    take_joules(run);
    return dl2_run_note_bad(run, run->feed, error);
}

/* -- the run -- */

static bool validation_due(const struct dl2_run *run)
{
    if (run->val_count == 0)
        return false;
    if (reached(run, run->length))
        return true;
    double every = run->config->validate_every;
    return every > 0 && (run->state.pass + 1) % (uint64_t)every == 0;
}

/* Validates where it is due, and adds the pass' record. */
static int end_pass(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    DL2_TRY(note_loss_scale(run, error));
    json_t *record = NULL;
    struct dl2_train_epoch epoch;
    const bool due = validation_due(run);
    DL2_TRY(dl2_run_epoch_record(run, dl2_run_position(run), &epoch, &record, error));
    int status = due ? dl2_run_validate(run, epoch.number, reached(run, run->length), record, error)
                     : DL2_OK;
    if (status == DL2_OK) {
        if (!due)
            state->val_count = 0;
        epoch.val = state->val;
        epoch.val_count = state->val_count;
        json_array_append(state->epochs, record);
        if (state->pass > 0) /* the first warms up */
            run->measured += epoch.seconds;
        double end = dl2_run_position(run);
        state->pass++;
        state->pass_start = end;
        state->batch = 0;
        json_decref(state->missing);
        state->missing = NULL;
        state->trained = false;
        memset(&state->sums, 0, sizeof state->sums);
        state->seconds = state->data_wait = state->joules = 0;
        state->images = 0;
        dl2_feed_stats_reset(run->feed);
        if (run->events.epoch_ended)
            run->events.epoch_ended(run->events.context, &epoch);
    }
    json_decref(record);
    return status;
}

/* Chooses the stage of the pass that begins; stages never go back. Where another part of the
 * network is trained than before, the optimizer begins anew: moments of layers that were frozen
 * would be old, and AdamW's would be taken for those of many updates. */
static int choose_stage(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    const size_t before = state->stage;
    while (state->stage + 1 < run->stage_count && reached(run, stage_end(run, state->stage)))
        state->stage++;
    if (run->stages[before].freeze == run->stages[state->stage].freeze)
        return DL2_OK;
    state->optimizer_begun = state->updates - state->loss_scale.skipped;
    return dl2_network_forget_moments(run->network, error);
}

/* A budget may end between a pass without validation and the next: then it comes now. */
static int validate_last(struct dl2_run *run, struct dl2_error *error)
{
    const size_t passes = json_array_size(run->state.epochs);
    if (run->val_count == 0 || run->state.val_count > 0 || passes == 0)
        return DL2_OK;
    return dl2_run_validate(run, passes, true, json_array_get(run->state.epochs, passes - 1),
                            error);
}

static int save_all(struct dl2_run *run, bool checkpoint, struct dl2_error *error)
{
    if (checkpoint)
        DL2_TRY(save_checkpoint(run, error));
    return dl2_world_rank(run->config->world) == 0 ? dl2_run_save_report(run, error) : DL2_OK;
}

/* One pass, or what is left of one, and what follows it. */
static int run_pass(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    if (state->batch == 0 && !state->trained)
        DL2_TRY(choose_stage(run, error));
    if (state->trained)
        DL2_TRY(dl2_run_open_feed(run, state->stage, error));
    else
        DL2_TRY(train_pass(run, error));
    if (state->trained && state->batch == 0)
        state->trained = false; /* a budget's end came closer before the first step */
    if (!state->trained)
        return DL2_OK;
    double before = state->pass_start;
    DL2_TRY(end_pass(run, error));
    DL2_TRY(dl2_run_look(run, error));
    bool last = reached(run, run->length); /* what ends a run is written then */
    return save_all(run, !last && checkpoint_due(run, before, state->pass_start), error);
}

static int run_to_end(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_run_state *state = &run->state;
    if (run->config->time_budget > 0)
        DL2_TRY(dl2_run_probe_validation(run, error));
    while (!run->stopped && !state->completed) {
        DL2_TRY(dl2_run_look(run, error));
        bool fresh = state->batch == 0 && !state->trained;
        if (fresh && reached(run, run->length)) {
            DL2_TRY(validate_last(run, error));
            state->completed = true;
        } else if (fresh && (run->stopping || reached(run, run->run_stop))) {
            run->stopped = true;
        } else {
            DL2_TRY(run_pass(run, error));
        }
    }
    return DL2_OK;
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
        strcmp(key, "val-resize") == 0
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

/* Loads the checkpoint that is there, or makes sure that none would be lost. Rank 0. */
static int load_checkpoint(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    json_auto_t *part = dl2_run_part(run);
    if (config->resume && dl2_is_file(run->checkpoint)) {
        dl2_run_state_free(&run->state);
        DL2_TRY(
            dl2_checkpoint_load(run->checkpoint, run->identity, run->network, &run->state, error));
        if (run->state.stage >= run->stage_count)
            return dl2_error_set(error, DL2_ERR_FORMAT, "checkpoint %s: it has more stages",
                                 run->checkpoint);
        dl2_run_note(run, "going on from %s: epoch %llu, batch %llu", run->checkpoint,
                     (unsigned long long)run->state.pass + 1, (unsigned long long)run->state.batch);
        if (!run->state.completed)
            note_changes(run, part);
    } else if (config->resume) {
        dl2_run_note(run, "there is no checkpoint %s yet: beginning anew", run->checkpoint);
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
    DL2_TRY(dl2_run_agree(run, check_alike(run, error), error));
    int status = dl2_world_rank(world) == 0 ? load_checkpoint(run, error) : DL2_OK;
    DL2_TRY(dl2_run_agree(run, status, error));
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
    return dl2_run_agree(run, status, error);
}

/* A finished run is left as it is; its report is made anew only where it is lost. */
static int keep_report(struct dl2_run *run, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    if (dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    dl2_run_note(run, "this run is finished already");
    if (dl2_json_load(run->report_path, DL2_EXPERIMENT_SCHEMA, &report, NULL) < 0)
        return dl2_run_save_report(run, error);
    return DL2_OK;
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

static int drive(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    run->arguments = dl2_run_arguments(run);
    run->identity = dl2_run_identity(run);
    run->report = dl2_run_report(run);
    DL2_TRY(begin(run, error));
    run->budget.seconds = config->time_budget;
    run->budget.validate_every = run->val_count ? config->validate_every : 0;
    run->run_stop = INFINITY;
    if (config->run_epochs > 0) {
        if (run->state.batch > 0)
            DL2_TRY(dl2_run_open_feed(run, run->state.stage, error));
        run->run_stop = dl2_run_position(run) + config->run_epochs;
    }
    dl2_run_tell_begun(run);
    if (run->state.completed) {
        DL2_TRY(export_weights(run, error));
        return keep_report(run, error);
    }
    DL2_TRY(dl2_run_agree(run, check_device(run, error), error));
    DL2_TRY(open_log(run, error));
    int status = run_to_end(run, error);
    if (status == DL2_ERR_CANCELED && run->interrupted) {
        /* A validation was interrupted: its numbers are thrown away and it is done again. */
        struct dl2_loss_sums unused;
        DL2_TRY(dl2_network_take_sums(run->network, &unused, error));
        run->stopped = true;
        status = DL2_OK;
    }
    DL2_TRY(status);
    if (config->measure > 0 && !run->state.completed) {
        run->common = true;
        return dl2_error_set(error, DL2_ERR_CANCELED, "stopped before the rate was measured");
    }
    status = save_all(run, !(config->measure > 0), error);
    if (status == DL2_OK)
        status = export_weights(run, error);
    return dl2_run_agree(run, status, error); /* nobody goes before all is written */
}

int dl2_train(const struct dl2_train_config *config, const struct dl2_train_events *events,
              struct dl2_train_result *result, struct dl2_error *error)
{
    struct dl2_run run = {.config = config};
    struct dl2_error own = DL2_ERROR_INIT;
    error = error ? error : &own;
    if (events && dl2_world_rank(config->world) == 0)
        run.events = *events;
    memset(result, 0, sizeof *result);
    int status = dl2_run_agree(&run, dl2_run_open(&run, error), error);
    if (status == DL2_OK)
        status = config->evaluate ? dl2_run_evaluate(&run, error) : drive(&run, error);
    result->common = run.common;
    if (status == DL2_OK) {
        result->completed = run.state.completed;
        result->stopped = run.stopped && run.stopping;
        result->position = dl2_run_position(&run);
        tell_ended(&run);
    } else if (status == DL2_ERR_CANCELED && !(config->measure > 0) && run.checkpoint &&
               dl2_is_file(run.checkpoint)) {
        dl2_run_note(&run, "--resume goes on from %s", run.checkpoint);
    } else if (config->world && !run.common && status != DL2_ERR_CANCELED) {
        /* Before anything is closed: a card may wait for others, which wait for this rank. */
        if (events && events->failed)
            events->failed(events->context, error);
        config->world->ops->give_up(config->world);
    }
    dl2_run_close(&run);
    return status;
}
