/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several models that are trained in turns on one stream of batches: the steps and epochs of run.c,
 * of all runs that are furthest behind.
 */
#include "common/clock.h"
#include "train/run.h"
#include "train/trainer.h"

#include <stdlib.h>

/* -- a pass -- */

/* What a step of one run comes to: if its loss became NaN or infinite, it ends alone. */
static int after_step(struct dl2_run *run, int status, const struct dl2_error *reason,
                      struct dl2_error *error)
{
    if (status < 0 && run->phase == DL2_RUN_DIVERGED)
        return dl2_run_end_diverged(run, reason, error);
    return status < 0 ? dl2_error_copy(error, reason) : DL2_OK;
}

/* Is the run to have batches of the source, in the pass that goes on? */
static bool draws_from(const struct dl2_run *run, const struct dl2_source *source)
{
    return run->phase == DL2_RUN_TRAINING && run->source == source;
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
    return first ? dl2_run_start_feed(first, error) : DL2_OK;
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

/* Of a run that waits for the feed. */
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
        DL2_TRY(after_step(run, status, &reason, error));
        any |= run->phase == DL2_RUN_TRAINING;
    }
    return any;
}

static int end_step(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(dl2_run_end_step(run, error));
    return dl2_run_save_step(run, error);
}

/* The source's next batch, for all runs that take it. */
static int train_on_next(struct dl2_stream *stream, struct dl2_source *source,
                         struct dl2_error *error)
{
    struct dl2_batch *batch;
    double waited;
    DL2_TRY(dl2_source_next(stream, source, &batch, &waited, error));
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
    dl2_source_release(stream, source, batch, waited);
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        struct dl2_run *run = &stream->runs[i];
        struct dl2_error reason = DL2_ERROR_INIT;
        if (draws_from(run, source) && takes_batch(run) && run->step.batches &&
            run->step.done == run->step.batches)
            status = after_step(run, end_step(run, &reason), &reason, error);
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

/* Trains the runs that are in the pass, one of which is `member`. */
static int train_pass(struct dl2_stream *stream, const struct dl2_run *member,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_run_make_cold(member, error));
    for (size_t i = 0; i < stream->run_count; i++)
        dl2_run_start_clock(&stream->runs[i]);
    for (size_t k = 0; k < stream->source_count; k++)
        DL2_TRY(start_feed(stream, &stream->sources[k], error));
    int any;
    while ((any = begin_steps(stream, error)) > 0)
        DL2_TRY(train_on_each(stream, error));
    for (size_t k = 0; k < stream->source_count && any == 0; k++)
        if (stream->sources[k].feed)
            any = dl2_source_note_bad(stream, &stream->sources[k], error);
    return any;
}

/* -- turns -- */

/* One pass, or what is left of one, and what follows it, of the runs that are furthest behind; the
 * others wait. */
static int run_pass(struct dl2_stream *stream, struct dl2_error *error)
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
    if (member)
        DL2_TRY(train_pass(stream, member, error));
    return dl2_stream_end_pass(stream, error);
}

/* All runs look for their end, then those that are furthest behind have a pass. Returns
 * whether there was any. */
static int take_turns(struct dl2_stream *stream, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = 0; i < stream->run_count; i++) {
        if (!dl2_run_is_over(&stream->runs[i]))
            DL2_TRY(dl2_run_look_for_end(&stream->runs[i], error));
        any |= !dl2_run_is_over(&stream->runs[i]);
    }
    if (any)
        DL2_TRY(run_pass(stream, error));
    return any;
}

static int run_to_end(struct dl2_stream *stream, struct dl2_error *error)
{
    int status = DL2_OK;
    for (size_t i = 0; i < stream->run_count && status == DL2_OK; i++) {
        status = dl2_run_prepare(&stream->runs[i], error);
        if (status < 0)
            dl2_error_prefix(error, "%s", stream->runs[i].name);
    }
    DL2_TRY(status);
    do
        status = take_turns(stream, error);
    while (status > 0);
    if (status < 0)
        dl2_stream_save_learnt(stream);
    return status;
}

int dl2_train_models(struct dl2_train_model *models, size_t count, struct dl2_error *error)
{
    return dl2_stream_train(models, count, true, run_to_end, error);
}
