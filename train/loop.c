/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of training: the steps and epochs of run.c, of one run, or of several that are trained
 * in turns on one stream of batches.
 */
#include "common/clock.h"
#include "ranks/world.h"
#include "train/run.h"
#include "train/trainer.h"

#include <stdlib.h>

/* -- a pass -- */

/* Is the run to have batches of the source, in the pass that goes on? */
static bool draws_from(const struct dl2_run *run, const struct dl2_source *source)
{
    return run->phase == DL2_RUN_TRAINING && run->source == source;
}

/* With config->run.cold: the pass of the stage reads from the disk. */
static int make_cold(struct dl2_stream *stream, size_t stage, struct dl2_error *error)
{
    if (!stream->config->run.cold)
        return DL2_OK;
    const int status =
        dl2_world_rank(stream->config->world) == 0
            ? dl2_fetch_evict(stream->stages[stage].dataset, &stream->resident, error)
            : DL2_OK;
    return dl2_stream_agree(stream, status, error);
}

/* The batches of the run's source begin where it stands. */
static int start_feed_at(const struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_run_state *state = &run->state;
    struct dl2_source *source = run->source;
    struct dl2_loader_position at;
    uint32_t *missing;
    source->next = state->batch;
    DL2_TRY(dl2_checkpoint_get_missing(state, run->config->world, &at, &missing, error));
    if (!missing)
        return dl2_feed_start_epoch(source->feed, state->pass, state->batch - run->visit_begin,
                                    error);
    const int status = dl2_feed_resume(source->feed, &at, error);
    free(missing);
    return status;
}

/* Begins the pass where the run that is furthest behind in it stands; if there is one. */
static int start_feed(struct dl2_stream *stream, struct dl2_source *source, struct dl2_error *error)
{
    const struct dl2_run *first = NULL;
    for (size_t i = 0; i < stream->run_count; i++) {
        const struct dl2_run *run = &stream->runs[i];
        if (draws_from(run, source) && (!first || run->state.batch < first->state.batch))
            first = run;
    }
    return first ? start_feed_at(first, error) : DL2_OK;
}

/* Does the run train on the feed's next batch? A run that was resumed further on waits for the
 * feed. */
static bool takes_batch(const struct dl2_run *run)
{
    return run->phase == DL2_RUN_TRAINING && run->state.batch == run->source->next;
}

static bool asked_to_stop(const struct dl2_run *run)
{
    return run->config->run.stop && *run->config->run.stop;
}

/* Stops a run that waits for the feed. */
static int stop_waiting(struct dl2_run *run, struct dl2_error *error)
{
    run->decision = DL2_RUN_STOP;
    return dl2_run_stop_pass(run, error);
}

/* Begins the steps of the runs that are between two. Returns whether a run trains on. */
static int begin_steps(struct dl2_stream *stream, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_error reason = DL2_ERROR_INIT;
        int status = DL2_OK;
        if (takes_batch(run) && run->step.done == 0)
            status = dl2_run_begin_step(run, &reason);
        else if (run->phase == DL2_RUN_TRAINING && run->step.done == 0 && asked_to_stop(run))
            status = stop_waiting(run, &reason);
        DL2_TRY(dl2_run_end_diverged(run, status, &reason, error));
        any |= run->phase == DL2_RUN_TRAINING;
    }
    return any;
}

static int end_step(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(dl2_run_end_step(run, error));
    return dl2_run_save_step(run, error);
}

/* The source's next batch, and the seconds until it came. */
static int next_batch(struct dl2_stream *stream, const struct dl2_source *source,
                      struct dl2_batch **batch, double *waited, struct dl2_error *error)
{
    const double began = dl2_clock_wall();
    const int got = dl2_feed_next(source->feed, batch, error);
    *waited = dl2_clock_wall() - began;
    stream->data_failed = got < 0;
    if (got == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the loader ended an epoch early");
    return got < 0 ? got : DL2_OK;
}

/* Trains all runs that take the source's next batch. */
static int train_on_next(struct dl2_stream *stream, struct dl2_source *source,
                         struct dl2_error *error)
{
    struct dl2_batch *batch;
    double waited;
    DL2_TRY(next_batch(stream, source, &batch, &waited, error));
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
        if (draws_from(run, source) && takes_batch(run) && run->step.batches &&
            run->step.done == run->step.batches)
            status = dl2_run_end_diverged(run, end_step(run, &reason), &reason, error);
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

/* The samples of the source's pass that could not be read. */
static int note_bad(struct dl2_stream *stream, const struct dl2_source *source,
                    struct dl2_error *error)
{
    return dl2_stream_note_bad(stream, source->feed, &stream->stages[source->stage],
                               "and others took their places", error);
}

/* Trains the runs that are in the pass, one of which is `member`. */
static int take_steps(struct dl2_stream *stream, const struct dl2_run *member,
                      struct dl2_error *error)
{
    DL2_TRY(make_cold(stream, member->state.stage, error));
    for (size_t i = 0; i < stream->run_count; i++)
        dl2_run_start_clock(&stream->runs[i]);
    for (size_t k = 0; k < stream->source_count; k++)
        DL2_TRY(start_feed(stream, &stream->sources[k], error));
    int any;
    while ((any = begin_steps(stream, error)) > 0)
        DL2_TRY(train_on_each(stream, error));
    for (size_t k = 0; k < stream->source_count && any == 0; k++)
        if (stream->sources[k].feed)
            any = note_bad(stream, &stream->sources[k], error);
    return any;
}

/* -- turns -- */

int dl2_stream_train_pass(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_run *member = NULL;
    uint64_t pass = UINT64_MAX;
    for (size_t i = 0; i < stream->run_count; i++)
        if (!dl2_run_is_over(&stream->runs[i]) && stream->runs[i].state.pass < pass)
            pass = stream->runs[i].state.pass;
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        if (dl2_run_is_over(run) || run->state.pass != pass)
            continue;
        DL2_TRY(dl2_run_begin_pass(run, error));
        if (run->phase == DL2_RUN_TRAINING)
            member = run;
    }
    return member ? take_steps(stream, member, error) : DL2_OK;
}

/* All runs look for their end, then those that are furthest behind have a pass, and what follows
 * it. Returns whether there was any. */
static int take_turns(struct dl2_stream *stream, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = 0; i < stream->run_count; i++) {
        if (!dl2_run_is_over(&stream->runs[i]))
            DL2_TRY(dl2_run_look_for_end(&stream->runs[i], error));
        any |= !dl2_run_is_over(&stream->runs[i]);
    }
    if (!any)
        return 0;
    DL2_TRY(dl2_stream_train_pass(stream, error));
    DL2_TRY(dl2_stream_end_pass(stream, error));
    return 1;
}

int dl2_stream_train_to_end(struct dl2_stream *stream, struct dl2_error *error)
{
    int status;
    do
        status = take_turns(stream, error);
    while (status > 0);
    if (status < 0)
        dl2_stream_save_learnt(stream);
    return status;
}

static int train(struct dl2_stream *stream, struct dl2_error *error)
{
    struct dl2_run *runs = stream->runs;
    int status = DL2_OK;
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        status = dl2_run_prepare(&runs[i], error);
        if (status < 0 && stream->several)
            dl2_error_prefix(error, "%s", runs[i].name);
    }
    DL2_TRY(status);
    if (stream->config->run.time_budget > 0 && !dl2_run_is_over(runs)) /* it is of one run */
        DL2_TRY(dl2_run_probe_validation(runs, error));
    return dl2_stream_train_to_end(stream, error);
}

int dl2_train(struct dl2_train_model *model, struct dl2_error *error)
{
    return dl2_stream_train(model, 1, false, train, error);
}

int dl2_train_models(struct dl2_train_model *models, size_t count, struct dl2_error *error)
{
    return dl2_stream_train(models, count, true, train, error);
}
