/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run tells its user, where it is, and what its ranks agree on. */
#include "common/clock.h"
#include "common/json.h"
#include "common/thread.h"
#include "train/run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* -- events -- */

const char *dl2_train_samples(const struct dl2_train_config *config, uint64_t count)
{
    if (config->loader.volume_depth)
        return count == 1 ? "volume" : "volumes";
    if (config->loader.frames)
        return count == 1 ? "clip" : "clips";
    return count == 1 ? "image" : "images";
}

void dl2_run_note(struct dl2_run *run, const char *format, ...)
{
    if (!run->events.note)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->events.note(run->events.context, text);
}

void dl2_run_get_unusual(const struct dl2_loader_stats *stats, double counts[DL2_UNUSUAL])
{
    for (size_t i = 0; i < DL2_UNUSUAL; i++)
        counts[i] = (double)dl2_unusual_count(stats, &dl2_unusual_rows()[i]);
}

void dl2_run_note_unusual(struct dl2_run *run, const char *what, const double counts[DL2_UNUSUAL])
{
    for (size_t i = 0; i < DL2_UNUSUAL; i++)
        if (counts[i] > 0)
            dl2_run_note(run, "%.0f of %s's %s", counts[i], what, dl2_unusual_rows()[i].text);
}

void dl2_run_tell_step(const struct dl2_run *run, const char *what, uint64_t done, uint64_t total)
{
    /* The first of models that are trained together shows how far all are. */
    for (const struct dl2_run *before = run->stream->runs; before < run; before++)
        if (!dl2_run_is_over(before))
            return;
    if (run->events.stepped)
        run->events.stepped(run->events.context, what, done, total);
}

uint64_t dl2_run_images(const struct dl2_run *run)
{
    uint64_t images = 0;
    for (size_t i = 0; i < run->stream->stage_count; i++)
        images = run->stream->stages[i].images > images ? run->stream->stages[i].images : images;
    return images;
}

void dl2_run_tell_begun(const struct dl2_run *run)
{
    const struct dl2_device_class *ops = run->device->ops;
    const struct dl2_train_overview overview = {
        .arch = run->config->arch,
        .device = ops->name,
        .device_version = ops->version(),
        .variant = run->variant,
        .parameters = dl2_network_parameter_count(run->network),
        .images = dl2_run_images(run),
        .classes = run->stream->classes,
        .epochs_done = run->state.pass,
    };
    if (run->events.begun)
        run->events.begun(run->events.context, &overview);
}

void dl2_stream_add_bad(struct dl2_stream *stream, const char *text)
{
    json_t *key = text ? dl2_json_text(text) : NULL; /* as UTF-8 */
    const char *shown = json_string_value(key);
    if (shown && !json_object_get(stream->bad, shown)) {
        json_object_set_new(stream->bad, shown, json_true());
        dl2_run_note(&stream->runs[0], "%s", shown);
    }
    json_decref(key);
}

void dl2_stream_sum_up_bad(struct dl2_stream *stream)
{
    const size_t bad = json_object_size(stream->bad);
    if (bad)
        dl2_run_note(&stream->runs[0],
                     "%zu %s could not be used in this run; the report lists them as 'bad'", bad,
                     dl2_train_samples(stream->config, bad));
}

int dl2_stream_add_up_bad(struct dl2_stream *stream, json_t *own, double epoch[2],
                          const struct dl2_run_data *data, const char *then,
                          struct dl2_error *error)
{
    const struct dl2_world *world = stream->config->world;
    DL2_TRY(dl2_world_sum(world, epoch, 2, error));
    size_t rank, i;
    json_t *all, *list, *bad;
    int status = dl2_world_gather(world, own, &all, error);
    json_auto_t *distinct = json_object();
    const char *first = "";
    json_array_foreach(all, rank, list) json_array_foreach(list, i, bad)
    {
        dl2_stream_add_bad(stream, json_string_value(bad));
        json_object_set(distinct, json_string_value(bad), bad);
        first = *first ? first : json_string_value(bad);
    }
    if (status == DL2_OK && epoch[1] > 0) {
        dl2_run_note(&stream->runs[0], "%s: %.0f of the epoch's %.0f %s cannot be read, %s",
                     data->path, epoch[1], epoch[0], dl2_train_samples(stream->config, 0), then);
        status = dl2_loader_check_bad(stream->config->loader.max_bad, json_object_size(distinct),
                                      data->images, first, error);
        stream->data_failed = status < 0;
        stream->common |= status < 0;
    }
    json_decref(all);
    return status;
}

int dl2_stream_note_bad(struct dl2_stream *stream, const struct dl2_feed *feed,
                        const struct dl2_run_data *data, const char *then, struct dl2_error *error)
{
    double epoch[2];
    size_t count;
    const char *const *texts = dl2_feed_bad(feed, &count);
    json_auto_t *own = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(own, dl2_json_text(texts[i]));
    dl2_feed_epoch_bad(feed, epoch);
    return dl2_stream_add_up_bad(stream, own, epoch, data, then, error);
}

/* -- positions -- */

double dl2_run_elapsed(const struct dl2_run *run)
{
    return run->elapsed_before + dl2_clock_wall() - run->config->run.started;
}

uint64_t dl2_run_steps(const struct dl2_run *run)
{
    return run->config->loader.partitions ? run->pass_steps : dl2_feed_steps(run->source->feed);
}

double dl2_run_position(const struct dl2_run *run)
{
    if (run->state.batch == 0)
        return run->state.pass_start;
    uint64_t steps = dl2_run_steps(run);
    if (run->state.batch >= steps)
        return run->state.pass_start + 1;
    return run->state.pass_start + (double)run->state.batch / (double)steps;
}

double dl2_run_step_epochs(const struct dl2_run *run)
{
    return (double)run->config->optimizer.accumulate / (double)dl2_run_steps(run);
}

bool dl2_run_is_over(const struct dl2_run *run)
{
    return run->phase >= DL2_RUN_OVER;
}

/* A budget's length moves a little all the time: half a step is as near as one can come to it. */
bool dl2_run_reached(const struct dl2_run *run, double at)
{
    const bool budgeted = run->config->run.time_budget > 0 && run->source->feed;
    const double slack = budgeted ? dl2_run_step_epochs(run) / 2 : DL2_RUN_SAME;
    return dl2_run_position(run) >= at - slack;
}

bool dl2_run_is_at(const struct dl2_run_state *state, double position)
{
    return state->batch == 0 && !state->trained && state->pass_start >= position - DL2_RUN_SAME;
}

double dl2_run_stage_end(const struct dl2_run *run, size_t stage)
{
    return run->stream->stages[stage].share_end * run->length;
}

/* -- all ranks -- */

int dl2_stream_agree(struct dl2_stream *stream, int status, struct dl2_error *error)
{
    status = dl2_world_agree(stream->config->world, status, error);
    stream->common = status < 0 && status != DL2_ERR_CANCELED;
    return status;
}

const char *const dl2_until_metrics[] = {
    "loss", "top1", "top5", "miou", "mean_dice", "mean_dice_mlperf", NULL};

bool dl2_run_met_target(const struct dl2_run *run)
{
    const struct dl2_train_until *until = &run->config->run.until;
    const struct dl2_run_state *state = &run->state;
    const size_t passes = json_array_size(state->epochs);
    if (!until->metric || state->batch || state->trained || !state->val_count || !passes)
        return false;
    const json_t *sets = json_object_get(json_array_get(state->epochs, passes - 1), "val");
    const double value =
        dl2_json_get_real(json_array_get(sets, 0), dl2_until_metrics[until->metric - 1], NAN);
    return until->metric == 1 ? value <= until->value : value >= until->value;
}

/* Epochs that the whole run comes to; INFINITY where only the clock will tell and it can't yet. */
static double run_length(const struct dl2_run *run)
{
    double length = 0;
    if (dl2_run_met_target(run))
        return dl2_run_position(run);
    for (size_t i = 0; i < run->stream->stage_count; i++)
        length += run->config->data.stages[i].epochs;
    if (run->config->run.time_budget > 0)
        length = fmin(length,
                      dl2_budget_epochs(&run->budget, dl2_run_position(run), dl2_run_elapsed(run)));
    return length;
}

/* A device that has failed does nothing more, and so leaves out sums that the others wait for: that
 * is reported at once, and not when somebody asks for its losses. */
int dl2_run_agree_on_end(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    const struct dl2_error *failure = &run->device->failure;
    if (failure->status)
        return dl2_error_set(error, failure->status, "%s", failure->message);
    const bool first = dl2_world_rank(config->world) == 0;
    double seen[] = {config->run.stop && *config->run.stop, first ? run_length(run) : 0,
                     first && run->pass_seconds > 0 && run->state.seconds >= run->pass_seconds};
    DL2_TRY(dl2_world_sum(config->world, seen, 3, error));
    run->length = seen[1];
    run->decision = seen[2] > 0 ? DL2_RUN_END_PASS : seen[0] > 0 ? DL2_RUN_STOP : DL2_RUN_GO_ON;
    return DL2_OK;
}

unsigned dl2_run_processors(const struct dl2_run *run)
{
    const struct dl2_world *world = run->config->world;
    const unsigned processors = dl2_cpu_count(), sharers = world ? world->sharers : 1;
    return processors > sharers ? processors / sharers : 1;
}
