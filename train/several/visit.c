/* SPDX-License-Identifier: BSD-2-Clause */
/* A visit: the part of a run that one of the ranks trains that its model hops between. */
#include "common/json.h"
#include "train/run.h"
#include "train/step_log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool loads_alike(const struct dl2_loader_config *a, const struct dl2_loader_config *b)
{
    const char *one = a->augment ? a->augment : "", *other = b->augment ? b->augment : "";
    return a->batch == b->batch && a->height == b->height && a->width == b->width &&
           a->volume_depth == b->volume_depth && a->frames == b->frames && strcmp(one, other) == 0;
}

/* Images and batches are of the run's sizes from here on. */
static void take_turn(struct dl2_run *run)
{
    struct dl2_stream *stream = run->stream;
    const struct dl2_loader_config *loader = &run->config->loader;
    if (!loads_alike(loader, &stream->config->loader)) {
        dl2_feed_destroy(run->source->feed);
        run->source->feed = NULL;
    }
    stream->config = run->config;
    stream->stages[0].height = loader->height;
    stream->stages[0].width = dl2_loader_width(loader);
}

/* Gives the run its network, and all else that it has only for a visit. */
static int enter(struct dl2_run *run, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    size_t i;
    json_t *bad;
    dl2_run_state_free(&run->state);
    run->state.epochs = json_array();
    run->phase = DL2_RUN_READY;
    run->decision = DL2_RUN_GO_ON;
    take_turn(run);
    DL2_TRY(dl2_run_claim_folder(run, error));
    /* What other ranks could not read belongs to the report, too. */
    if (dl2_json_load(run->report_path, DL2_EXPERIMENT_SCHEMA, &report, NULL) == DL2_OK)
        json_array_foreach(json_object_get(report, "bad"), i, bad) if (json_is_string(bad))
            json_object_set_new(run->stream->bad, json_string_value(bad), json_true());
    return dl2_run_open_network(run, error);
}

/* Takes that away. */
static void leave(struct dl2_run *run)
{
    if (run->phase != DL2_RUN_DIVERGED)
        run->phase = DL2_RUN_OVER;
    dl2_step_log_close(run->log);
    run->log = NULL;
    dl2_network_destroy(run->network);
    run->network = NULL;
    free(run->partner);
    free(run->row);
    run->partner = NULL;
    run->row = NULL;
    json_decref(run->arguments);
    json_decref(run->identity);
    json_decref(run->report);
    run->arguments = run->identity = run->report = NULL;
    if (run->lock >= 0)
        close(run->lock);
    run->lock = -1;
}

static int train(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status =
        run->config->run.in_database ? dl2_run_train_in_database(run, &reason) : DL2_OK;
    DL2_TRY(dl2_run_end_diverged(run, status, &reason, error));
    return dl2_stream_train_to_end(run->stream, error);
}

int dl2_run_visit(struct dl2_run *run, struct dl2_error *error)
{
    int status = enter(run, error);
    if (status == DL2_OK)
        status = dl2_run_prepare(run, error);
    if (status == DL2_OK)
        status = train(run, error);
    if (status == DL2_OK && run->state.completed)
        dl2_run_tell_ended(run);
    leave(run);
    return status;
}
