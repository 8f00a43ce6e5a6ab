/* SPDX-License-Identifier: BSD-2-Clause */
/* Validates a network that was trained before: no training, and a report of its own. */
#include "common/json.h"
#include "common/machine.h"
#include "network/weights.h"
#include "train/run.h"
#include "train/sensitivity.h"
#include "train/train_options.h"

#include <string.h>

static int load_weights(const struct dl2_run *run, struct dl2_error *error)
{
    const char *path = run->config->run.evaluate;
    char note[256];
    DL2_TRY(dl2_weights_load(path, run->network, true, note, sizeof note, error));
    return note[0] ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "%s is for another number of classes than the %u of %s", path,
                                   run->stream->classes, run->config->data.val[0])
                   : DL2_OK;
}

static json_t *settings(const struct dl2_run *run)
{
    const struct dl2_train_settings own = {.config = *run->config};
    json_auto_t *all = dl2_options_json(dl2_train_options, &own);
    json_t *chosen = json_object();
    json_object_set_new(all, "channels", json_integer(run->stream->channels));
    dl2_run_drop_idle(run->config, all);
    for (const char *const *name = dl2_evaluation_options; *name; name++)
        json_object_set(chosen, *name, json_object_get(all, *name));
    json_object_set(chosen, "val-split", json_object_get(all, "val-split"));
    return chosen;
}

/* `record` has what dl2_stream_validate() added. */
static int save_report(const struct dl2_run *run, const json_t *record, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    json_auto_t *report =
        json_pack("{s:s, s:o, s:o, s:s, s:I, s:s, s:o}", "schema", DL2_EVALUATION_SCHEMA, "name",
                  dl2_json_text(run->name), "variant", dl2_json_text(run->variant), "arch",
                  config->arch, "seed", (json_int_t)config->seed, "device", run->device->ops->name,
                  "weights", dl2_json_text(config->run.evaluate));
    for (const char *const *name = (const char *const[]){"epoch", "completed", NULL}; *name; name++)
        if (json_object_get(config->run.origin, *name))
            json_object_set(report, *name, json_object_get(config->run.origin, *name));
    json_object_set_new(report, "arguments", settings(run));
    json_t *versions = config->run.versions ? json_deep_copy(config->run.versions) : json_object();
    json_object_set_new(versions, "device", json_string(run->device->ops->version()));
    json_object_set_new(report, "versions", versions);
    json_object_set_new(report, "machine", dl2_machine_describe());
    json_object_set_new(report, "classes", json_integer(run->stream->classes));
    json_object_set(report, "val", json_object_get(record, "val"));
    json_object_set(report, "seconds", json_object_get(record, "val_seconds"));
    json_object_set_new(report, "bad", dl2_run_bad_list(run));
    return dl2_json_save(run->report_path, report, error);
}

static int evaluate(struct dl2_stream *stream, struct dl2_error *error)
{
    struct dl2_run *run = stream->runs;
    json_auto_t *record = json_object();
    DL2_TRY(dl2_stream_agree(stream, load_weights(run, error), error));
    dl2_run_tell_begun(run);
    struct dl2_validation due = {.run = run, .keep = true, .record = record};
    DL2_TRY(dl2_stream_validate(&due, 1, error));
    if (run->phase == DL2_RUN_STOPPED)
        return dl2_error_set(error, DL2_ERR_CANCELED, "stopped before the evaluation was done");
    if (run->config->run.sensitivity)
        DL2_TRY(dl2_sensitivity_measure(run, run->config->run.sensitivity, error));
    run->state.completed = true;
    return dl2_world_rank(run->config->world) == 0 ? save_report(run, record, error) : DL2_OK;
}

int dl2_evaluate(struct dl2_train_model *model, struct dl2_error *error)
{
    return dl2_stream_train(model, 1, false, evaluate, error);
}
