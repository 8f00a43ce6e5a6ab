/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast a run trains: passes of loop.c that end by the clock, and a report of their own
 * (docs/formats/train.md, dl2-rate/1). */
#include "common/json.h"
#include "ranks/world.h"
#include "train/run.h"

#include <math.h>

/* Adds a pass to the sums. */
static void add_record(struct dl2_train_rate *rate, const json_t *record)
{
    rate->seconds += dl2_json_get_real(record, "seconds", NAN);
    rate->images += dl2_json_get_real(json_object_get(record, "train"), "images", NAN);
    rate->data_wait += dl2_json_get_real(record, "data_wait_seconds", NAN);
    rate->joules += dl2_json_get_real(record, "joules", NAN);
}

static int save_report(struct dl2_run *run, const struct dl2_train_rate *rate,
                       struct dl2_error *error)
{
    if (dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    json_object_set_new(run->report, "schema", json_string(DL2_RATE_SCHEMA));
    json_object_set_new(run->report, "measured",
                        json_pack("{s:f, s:f, s:o, s:o, s:o}", "seconds", rate->seconds, "images",
                                  rate->images, "images_per_second",
                                  dl2_json_real(rate->images / rate->seconds), "data_stall",
                                  dl2_json_real(rate->data_wait / rate->seconds),
                                  "joules_per_image", dl2_json_real(rate->joules / rate->images)));
    return dl2_run_write_report(run, error);
}

static int measure_pass(struct dl2_run *run, struct dl2_train_rate *rate, struct dl2_error *error)
{
    struct dl2_train_epoch epoch;
    json_t *record;
    DL2_TRY(dl2_stream_train_pass(run->stream, error));
    if (run->phase == DL2_RUN_STOPPED) {
        run->stream->common = true;
        return dl2_error_set(error, DL2_ERR_CANCELED, "stopped before the rate was measured");
    }
    DL2_TRY(dl2_run_note_loss_scale(run, error));
    DL2_TRY(dl2_run_epoch_record(run, dl2_run_position(run), &epoch, &record, error));
    if (run->state.pass > 0) /* the first warms up */
        add_record(rate, record);
    dl2_run_add_pass(run, &epoch, record);
    return save_report(run, rate, error);
}

static int conclude(struct dl2_run *run, const struct dl2_train_rate *rate, struct dl2_error *error)
{
    run->phase = DL2_RUN_OVER;
    run->state.completed = true;
    dl2_stream_sum_up_bad(run->stream);
    dl2_monitor_sample(run->stream->monitor);
    int status = dl2_run_gather_timelines(run, error);
    if (status == DL2_OK)
        status = save_report(run, rate, error);
    DL2_TRY(dl2_stream_agree(run->stream, status, error));
    if (run->events.measured)
        run->events.measured(run->events.context, rate);
    return DL2_OK;
}

static int measure(struct dl2_stream *stream, struct dl2_error *error)
{
    struct dl2_run *run = stream->runs;
    struct dl2_train_rate rate = {.seconds = 0};
    run->pass_seconds = run->config->run.measure;
    DL2_TRY(dl2_run_prepare(run, error));
    while (rate.seconds < run->config->run.measure)
        DL2_TRY(measure_pass(run, &rate, error));
    return conclude(run, &rate, error);
}

int dl2_measure(struct dl2_train_model *model, struct dl2_error *error)
{
    return dl2_stream_train(model, 1, false, measure, error);
}
