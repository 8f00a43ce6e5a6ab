/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/checkpoint.h"
#include "common/json.h"
#include "common/scope.h"
#include "network/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_KEY    "dl2.state"
#define IDENTITY_KEY "dl2.identity"
#define ORIGIN_KEY   "dl2.origin" /* of exported weights */

/* Every digit, so that numbers come back as they were. */
static char *dump(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
}

void dl2_run_state_free(struct dl2_run_state *state)
{
    json_decref(state->epochs);
    json_decref(state->missing);
    json_decref(state->rank_sums);
    json_decref(state->part);
    json_decref(state->visits);
    free(state->val);
    memset(state, 0, sizeof *state);
}

bool dl2_run_state_compares(const struct dl2_run_state *state, uint64_t images_sum)
{
    return !state->validated || !state->images_sum || state->images_sum == images_sum;
}

void dl2_run_state_rank(struct dl2_run_state *state, uint64_t epoch, double score,
                        uint64_t images_sum)
{
    if (!(score >= 0) || !dl2_run_state_compares(state, images_sum))
        return;
    state->validated = true;
    state->images_sum = images_sum;
    if (state->best_epoch && !(score > state->best_score))
        return;
    state->best_epoch = epoch;
    state->best_score = score;
}

static json_t *sums_to_json(const struct dl2_loss_sums *sums)
{
    return json_pack("{s:f, s:I, s:I, s:I}", "loss", sums->loss, "counted",
                     (json_int_t)sums->counted, "top1", (json_int_t)sums->top1, "top5",
                     (json_int_t)sums->top5);
}

static json_t *state_to_json(const struct dl2_run_state *state)
{
    const struct dl2_loss_scale *scale = &state->loss_scale;
    return json_pack(
        "{s:I, s:I, s:f, s:I, s:b, s:b, s:I, s:I, s:f, s:o, s:f, s:f, s:f, s:I, s:O, s:o*, s:o*, "
        "s:o*, s:O*, s:O*, s:O*, s:o*, s:O*}",
        "pass", (json_int_t)state->pass, "stage", (json_int_t)state->stage, "pass_start",
        state->pass_start, "batch", (json_int_t)state->batch, "trained", state->trained,
        "completed", state->completed, "step", (json_int_t)state->step, "updates",
        (json_int_t)state->updates, "elapsed", state->elapsed, "sums", sums_to_json(&state->sums),
        "seconds", state->seconds, "data_wait", state->data_wait, "lr", state->lr, "images",
        (json_int_t)state->images, "epochs", state->epochs, /* those that follow may be left out */
        "joules", isfinite(state->joules) ? json_real(state->joules) : NULL, "optimizer_begun",
        state->optimizer_begun ? json_integer((json_int_t)state->optimizer_begun) : NULL,
        "loss_scale",
        scale->scale > 0 ? json_pack("{s:f, s:I, s:I}", "scale", scale->scale, "good",
                                     (json_int_t)scale->good, "skipped", (json_int_t)scale->skipped)
                         : NULL,
        "missing", state->missing, "rank_sums", state->rank_sums, "part", state->part, "partitions",
        state->visits ? json_integer(state->partitions) : NULL, "visits", state->visits);
}

static bool is_position(const json_t *json)
{
    return json_is_integer(json) && json_integer_value(json) >= 0 &&
           json_integer_value(json) <= UINT32_MAX;
}

/* The loader checks whether they make sense. */
static int missing_from_json(const json_t *json, struct dl2_run_state *state,
                             struct dl2_error *error)
{
    json_t *all = json_object_get(json, "missing"), *own, *position;
    bool valid = !all || json_is_array(all);
    size_t rank, i;
    json_array_foreach(all, rank, own)
    {
        valid = valid && is_position(json_object_get(own, "next")) &&
                json_is_array(json_object_get(own, "missing"));
        json_array_foreach(json_object_get(own, "missing"), i, position) valid &=
            is_position(position);
    }
    if (!valid)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its position within the epoch makes no sense");
    state->missing = json_incref(all);
    return DL2_OK;
}

static int visits_from_json(const json_t *json, struct dl2_run_state *state,
                            struct dl2_error *error)
{
    const json_t *visits = json_object_get(json, "visits"), *partition;
    const long long partitions = dl2_json_get_integer(json, "partitions", 0);
    bool valid = !visits ? partitions == 0 : json_is_array(visits) && partitions > 0;
    size_t i;
    valid =
        valid && partitions <= DL2_PARTITIONS_MAX && json_array_size(visits) <= (size_t)partitions;
    json_array_foreach(visits, i, partition) valid =
        valid && is_position(partition) && json_integer_value(partition) < partitions;
    if (!valid)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its visits to partitions make no sense");
    state->partitions = (unsigned)partitions;
    state->visits = json_incref((json_t *)visits);
    return DL2_OK;
}

static int loss_scale_from_json(json_t *json, struct dl2_loss_scale *scale, struct dl2_error *error)
{
    json_t *kept = json_object_get(json, "loss_scale");
    json_int_t good, skipped;
    if (!kept)
        return DL2_OK;
    if (json_unpack(kept, "{s:F, s:I, s:I}", "scale", &scale->scale, "good", &good, "skipped",
                    &skipped) != 0 ||
        !(scale->scale > 0 && scale->scale < 1e30) || good < 0 || skipped < 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its loss scale makes no sense");
    scale->good = (uint64_t)good;
    scale->skipped = (uint64_t)skipped;
    return DL2_OK;
}

static int val_from_json(const json_t *list, struct dl2_run_state *state, struct dl2_error *error)
{
    size_t i;
    json_t *set;
    state->val_count = json_array_size(list);
    if (!state->val_count)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&state->val, state->val_count, "a run's state", error));
    json_array_foreach(list, i, set) state->val[i] =
        (struct dl2_train_val){dl2_json_get_text(set, "name", "?"),
                               (uint64_t)dl2_json_get_integer(set, "images", 0),
                               dl2_json_get_real(set, "loss", NAN),
                               dl2_json_get_real(set, "top1", NAN),
                               dl2_json_get_real(set, "top5", NAN),
                               json_object_get(set, "predictions") != NULL,
                               (uint64_t)dl2_json_get_integer(set, "decoded_hits", 0),
                               strtoull(dl2_json_get_text(set, "images_sum", "0"), NULL, 16),
                               dl2_accuracy_of(set)};
    return DL2_OK;
}

/* The figures of state->epochs. */
static int figures_from_json(struct dl2_run_state *state, struct dl2_error *error)
{
    size_t i;
    json_t *record, *val = NULL;
    json_array_foreach(state->epochs, i, record)
    {
        val = json_object_get(record, "val");
        const json_t *set = json_array_get(val, 0);
        dl2_run_state_rank(state, i + 1, dl2_accuracy_of(set),
                           strtoull(dl2_json_get_text(set, "images_sum", "0"), NULL, 16));
    }
    return val_from_json(val, state, error);
}

static int state_from_json(json_t *json, struct dl2_run_state *state, struct dl2_error *error)
{
    json_int_t pass, stage, batch, step, updates, counted, top1, top5, images;
    int trained, completed;
    json_t *epochs;
    json_error_t reason;
    if (json_unpack_ex(json, &reason, 0,
                       "{s:I, s:I, s:F, s:I, s:b, s:b, s:I, s:I, s:F, s:{s:F, s:I, s:I, s:I}, s:F, "
                       "s:F, s:F, s:I, s:o}",
                       "pass", &pass, "stage", &stage, "pass_start", &state->pass_start, "batch",
                       &batch, "trained", &trained, "completed", &completed, "step", &step,
                       "updates", &updates, "elapsed", &state->elapsed, "sums", "loss",
                       &state->sums.loss, "counted", &counted, "top1", &top1, "top5", &top5,
                       "seconds", &state->seconds, "data_wait", &state->data_wait, "lr", &state->lr,
                       "images", &images, "epochs", &epochs) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its position can't be read: %s", reason.text);
    if (pass < 0 || stage < 0 || batch < 0 || step < 0 || updates < 0 || counted < 0 ||
        images < 0 || !(state->pass_start >= 0) || !json_is_array(epochs))
        return dl2_error_set(error, DL2_ERR_FORMAT, "its position makes no sense");
    const long long begun = dl2_json_get_integer(json, "optimizer_begun", 0);
    if (begun < 0 || begun > updates)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its number of updates makes no sense");
    state->optimizer_begun = (uint64_t)begun;
    DL2_TRY(loss_scale_from_json(json, &state->loss_scale, error));
    DL2_TRY(missing_from_json(json, state, error));
    DL2_TRY(visits_from_json(json, state, error));
    state->rank_sums = json_incref(json_object_get(json, "rank_sums"));
    state->pass = (uint64_t)pass;
    state->stage = (size_t)stage;
    state->batch = (uint64_t)batch;
    state->trained = trained;
    state->completed = completed;
    state->step = (uint64_t)step;
    state->updates = (uint64_t)updates;
    state->sums.counted = (uint64_t)counted;
    state->sums.top1 = (uint64_t)top1;
    state->sums.top5 = (uint64_t)top5;
    state->images = (uint64_t)images;
    state->joules = dl2_json_get_real(json, "joules", images ? NAN : 0);
    state->epochs = json_incref(epochs);
    state->part = json_incref(json_object_get(json, "part"));
    return figures_from_json(state, error);
}

static int set_json(struct dl2_safetensors *checkpoint, const char *key, const json_t *json,
                    struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = json ? dump(json) : NULL;
    return text ? dl2_safetensors_set_text(checkpoint, key, text, error)
                : dl2_error_memory(error, "a checkpoint's %s", key);
}

static int get_json(const struct dl2_safetensors *checkpoint, const char *key, json_t **out,
                    struct dl2_error *error)
{
    const char *text = dl2_safetensors_text(checkpoint, key);
    json_error_t reason;
    *out = text ? json_loads(text, JSON_REJECT_DUPLICATES, &reason) : NULL;
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it has no %s: it holds no run that dl2-train could go on with", key);
    }
    return DL2_OK;
}

/* The parts of the network's state and their names. */
static const struct part {
    enum dl2_network_part part;
    const char *prefix;
} parts[] = {{DL2_NETWORK_VALUE, ""},
             {DL2_NETWORK_MOMENTUM, DL2_CHECKPOINT_MOMENTUM},
             {DL2_NETWORK_SECOND_MOMENT, DL2_CHECKPOINT_SECOND_MOMENT},
             {DL2_NETWORK_AVERAGE, DL2_CHECKPOINT_AVERAGE}};

/* Work on one array of floats of the network's state. */
typedef int part_work(void *context, struct dl2_network *network, size_t index,
                      const struct part *part, struct dl2_error *error);

/* Calls work() for each of them. */
static int each_part(struct dl2_network *network, part_work *work, void *context,
                     struct dl2_error *error)
{
    for (size_t i = 0; i < dl2_network_tensor_count(network); i++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            if (dl2_network_has(network, i, parts[p].part))
                DL2_TRY(work(context, network, i, &parts[p], error));
    return DL2_OK;
}

static int add_part(void *checkpoint, struct dl2_network *network, size_t index,
                    const struct part *part, struct dl2_error *error)
{
    return dl2_weights_add(checkpoint, network, index, part->part, part->prefix, error);
}

static int fill(struct dl2_safetensors *checkpoint, const struct dl2_run_state *state,
                const json_t *identity, struct dl2_network *network, struct dl2_error *error)
{
    json_auto_t *json = state_to_json(state);
    DL2_TRY(set_json(checkpoint, STATE_KEY, json, error));
    DL2_TRY(set_json(checkpoint, IDENTITY_KEY, identity, error));
    return each_part(network, add_part, checkpoint, error);
}

/* Into the file `path` or, without one, `out`. */
static int write_checkpoint(const struct dl2_run_state *state, const json_t *identity,
                            struct dl2_network *network, const char *path, struct dl2_bytes *out,
                            struct dl2_error *error)
{
    struct dl2_safetensors checkpoint;
    DL2_TRY(dl2_safetensors_init(&checkpoint, error));
    int status = fill(&checkpoint, state, identity, network, error);
    if (status < 0 && path)
        dl2_error_prefix(error, "checkpoint %s", path);
    else if (status == DL2_OK && !path)
        status = dl2_safetensors_format(&checkpoint, out, error);
    else if (status == DL2_OK && (status = dl2_safetensors_write(&checkpoint, path, error)) < 0)
        dl2_error_prefix(error, "the checkpoint");
    dl2_safetensors_free(&checkpoint);
    return status;
}

int dl2_checkpoint_save(const struct dl2_run_state *state, const json_t *identity,
                        struct dl2_network *network, const char *path, struct dl2_error *error)
{
    return write_checkpoint(state, identity, network, path, NULL, error);
}

int dl2_checkpoint_format(const struct dl2_run_state *state, const json_t *identity,
                          struct dl2_network *network, struct dl2_bytes *out,
                          struct dl2_error *error)
{
    return write_checkpoint(state, identity, network, NULL, out, error);
}

static int restore_part(void *checkpoint, struct dl2_network *network, size_t index,
                        const struct part *part, struct dl2_error *error)
{
    struct dl2_network_tensor tensor;
    char name[256];
    dl2_network_tensor(network, index, &tensor);
    snprintf(name, sizeof name, "%s%s", part->prefix, tensor.name);
    DL2_AUTO_FREE float *values = dl2_alloc_aligned(tensor.count, sizeof *values);
    if (!values)
        return dl2_error_memory(error, "the weights of a checkpoint");
    DL2_TRY(dl2_safetensors_copy(checkpoint, name, "F32", tensor.rank, tensor.dims, values, error));
    return dl2_network_set(network, index, part->part, values, error);
}

/* Names the first setting in which the two differ. */
static int check_identity(const json_t *own, const json_t *its, struct dl2_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)own, key, value)
    {
        json_t *other = json_object_get(its, key);
        const bool of_images = strcmp(key, DL2_IDENTITY_IMAGES) == 0;
        /* Without an option that it has no use for, a run may have been begun before there was it.
         */
        if (other ? json_equal(value, other) : of_images || json_is_null(value))
            continue;
        if (of_images)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "it was trained on other images: since then some were added, "
                                 "removed, renamed, moved to another class or changed in size; "
                                 "bring back those that it was begun with, or begin anew with "
                                 "--restart");
        DL2_AUTO_FREE char *now = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        DL2_AUTO_FREE char *then = other ? json_dumps(other, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "it is of another run: %s was %.200s, and now is %.200s; resume with the "
            "options it was begun with, or begin anew with --restart",
            key, then ? then : "unknown", now ? now : "?");
    }
    return DL2_OK;
}

int dl2_checkpoint_identity(const struct dl2_safetensors *checkpoint, json_t **out,
                            struct dl2_error *error)
{
    return get_json(checkpoint, IDENTITY_KEY, out, error);
}

int dl2_checkpoint_restore(const struct dl2_safetensors *checkpoint, const json_t *identity,
                           struct dl2_network *network, struct dl2_run_state *state,
                           struct dl2_error *error)
{
    json_auto_t *own = NULL, *json = NULL;
    memset(state, 0, sizeof *state);
    DL2_TRY(get_json(checkpoint, IDENTITY_KEY, &own, error));
    DL2_TRY(check_identity(identity, own, error));
    if (!checkpoint->checksummed)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has lost its checksum");
    DL2_TRY(each_part(network, restore_part, (void *)checkpoint, error));
    DL2_TRY(get_json(checkpoint, STATE_KEY, &json, error));
    state->images_unknown = !json_object_get(own, DL2_IDENTITY_IMAGES) &&
                            json_object_get(identity, DL2_IDENTITY_IMAGES);
    return state_from_json(json, state, error);
}

int dl2_checkpoint_load(const char *path, const json_t *identity, struct dl2_network *network,
                        struct dl2_run_state *state, struct dl2_error *error)
{
    struct dl2_safetensors checkpoint;
    DL2_TRY(dl2_safetensors_read(path, &checkpoint, error));
    int status = dl2_checkpoint_restore(&checkpoint, identity, network, state, error);
    if (status < 0)
        dl2_error_prefix(error, "checkpoint %s", path);
    dl2_safetensors_free(&checkpoint);
    return status;
}

static json_t *make_origin(const json_t *identity, const json_t *part, double epoch, bool completed)
{
    json_t *origin = json_pack("{s:f, s:b}", "epoch", epoch, "completed", completed);
    json_object_set(origin, "identity", (json_t *)identity);
    if (part)
        json_object_set(origin, "part", (json_t *)part);
    return origin;
}

void dl2_checkpoint_note_origin(json_t *texts, const json_t *identity, const json_t *part,
                                double epoch, bool completed)
{
    json_auto_t *origin = make_origin(identity, part, epoch, completed);
    DL2_AUTO_FREE char *text = dump(origin);
    json_object_set_new(texts, ORIGIN_KEY, json_string(text ? text : "{}"));
}

/* The metadata of a checkpoint. */
static int checkpoint_origin(const struct dl2_safetensors *file, json_t **out,
                             struct dl2_error *error)
{
    DL2_CLEANUP(dl2_run_state_free) struct dl2_run_state state = {0};
    json_auto_t *identity = NULL, *json = NULL;
    DL2_TRY(get_json(file, IDENTITY_KEY, &identity, error));
    DL2_TRY(get_json(file, STATE_KEY, &json, error));
    DL2_TRY(state_from_json(json, &state, error));
    *out = make_origin(identity, state.part, state.pass_start, state.completed);
    return DL2_OK;
}

int dl2_checkpoint_origin(const char *path, json_t **out, struct dl2_error *error)
{
    struct dl2_safetensors file;
    int status = DL2_OK;
    *out = NULL;
    DL2_TRY(dl2_safetensors_read(path, &file, error));
    if (dl2_safetensors_text(&file, ORIGIN_KEY))
        status = get_json(&file, ORIGIN_KEY, out, error);
    else if (dl2_safetensors_text(&file, IDENTITY_KEY))
        status = checkpoint_origin(&file, out, error);
    else
        *out = json_object();
    if (status < 0)
        dl2_error_prefix(error, "%s", path);
    dl2_safetensors_free(&file);
    return status;
}

json_t *dl2_visits_shown(const json_t *visits)
{
    json_t *shown = json_array();
    size_t i;
    json_t *visit;
    json_array_foreach((json_t *)visits, i, visit)
        json_array_append_new(shown, json_integer(json_integer_value(visit) + 1));
    return shown;
}

int dl2_checkpoint_peek(const char *path, struct dl2_run_state *state, struct dl2_error *error)
{
    json_auto_t *texts = NULL;
    memset(state, 0, sizeof *state);
    int status = dl2_safetensors_read_metadata(path, &texts, error);
    const char *text = dl2_json_get_text(texts, STATE_KEY, "");
    json_auto_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (status == DL2_OK)
        status = json ? state_from_json(json, state, error)
                      : dl2_error_set(error, DL2_ERR_FORMAT, "it holds no run");
    if (status < 0) {
        dl2_run_state_free(state);
        dl2_error_prefix(error, "checkpoint %s", path);
    }
    return status;
}

bool dl2_checkpoint_unfinished(const char *path)
{
    struct dl2_safetensors checkpoint;
    DL2_CLEANUP(dl2_run_state_free) struct dl2_run_state state = {0};
    json_auto_t *json = NULL;
    if (dl2_safetensors_read(path, &checkpoint, NULL) < 0)
        return false;
    get_json(&checkpoint, STATE_KEY, &json, NULL);
    dl2_safetensors_free(&checkpoint);
    return json && state_from_json(json, &state, NULL) == DL2_OK && !state.completed;
}

/* -- several ranks -- */

struct sharing {
    const struct dl2_world *world;
    bool statistics; /* batch norm's alone */
};

static int share_part(void *context, struct dl2_network *network, size_t index,
                      const struct part *part, struct dl2_error *error)
{
    const struct sharing *sharing = context;
    const struct dl2_world *world = sharing->world;
    struct dl2_network_tensor tensor;
    dl2_network_tensor(network, index, &tensor);
    if (sharing->statistics && tensor.parameter)
        return DL2_OK;
    DL2_AUTO_FREE float *values = dl2_alloc_aligned(tensor.count, sizeof *values);
    if (!values)
        return dl2_error_set(error, DL2_ERR_MEMORY, "no memory to share weights");
    if (world->rank == 0)
        DL2_TRY(dl2_network_get(network, index, part->part, values, error));
    DL2_TRY(world->ops->broadcast(world, 0, values, tensor.count * sizeof *values, error));
    return world->rank > 0 ? dl2_network_set(network, index, part->part, values, error) : DL2_OK;
}

/* Rank 0's position and records, as in a checkpoint. */
static int share_position(struct dl2_run_state *state, const struct dl2_world *world,
                          struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    json_auto_t *json = world->rank == 0 ? state_to_json(state) : NULL;
    if (world->rank == 0 && !(text = json ? dump(json) : NULL))
        return dl2_error_set(error, DL2_ERR_MEMORY, "no memory to share a run's state");
    DL2_TRY(dl2_world_share(world, &text, error));
    if (world->rank == 0)
        return DL2_OK;
    json = json_loads(text, 0, NULL);
    dl2_run_state_free(state);
    return state_from_json(json, state, error);
}

int dl2_checkpoint_share(struct dl2_run_state *state, struct dl2_network *network,
                         const struct dl2_world *world, struct dl2_error *error)
{
    if (!world)
        return DL2_OK;
    struct sharing sharing = {.world = world};
    DL2_TRY(share_position(state, world, error));
    return each_part(network, share_part, &sharing, error);
}

int dl2_checkpoint_share_statistics(struct dl2_network *network, const struct dl2_world *world,
                                    struct dl2_error *error)
{
    struct sharing sharing = {.world = world, .statistics = true};
    return world ? each_part(network, share_part, &sharing, error) : DL2_OK;
}

int dl2_checkpoint_set_sums(struct dl2_run_state *state, const struct dl2_loss_sums *own,
                            const struct dl2_world *world, struct dl2_error *error)
{
    json_auto_t *sums = sums_to_json(own);
    json_decref(state->rank_sums);
    state->rank_sums = NULL;
    return world ? dl2_world_gather(world, sums, &state->rank_sums, error) : DL2_OK;
}

struct dl2_loss_sums dl2_checkpoint_get_sums(const struct dl2_run_state *state,
                                             const struct dl2_world *world)
{
    const json_t *own = json_array_get(state->rank_sums, dl2_world_rank(world));
    if (!own) /* of one process alone, or of an older version */
        return dl2_world_rank(world) ? (struct dl2_loss_sums){.loss = 0} : state->sums;
    return (struct dl2_loss_sums){.loss = dl2_json_get_real(own, "loss", 0),
                                  .counted = (uint64_t)dl2_json_get_integer(own, "counted", 0),
                                  .top1 = (uint64_t)dl2_json_get_integer(own, "top1", 0),
                                  .top5 = (uint64_t)dl2_json_get_integer(own, "top5", 0)};
}

static json_t *position_to_json(const struct dl2_loader_position *at)
{
    json_t *missing = json_array();
    for (uint32_t i = 0; i < at->missing_count; i++)
        json_array_append_new(missing, json_integer(at->missing[i]));
    return json_pack("{s:I, s:o}", "next", (json_int_t)at->next, "missing", missing);
}

int dl2_checkpoint_set_missing(struct dl2_run_state *state, const struct dl2_loader_position *at,
                               const struct dl2_world *world, struct dl2_error *error)
{
    json_auto_t *own = position_to_json(at);
    const json_t *its;
    size_t rank;
    bool any = false;
    json_decref(state->missing);
    const int status = dl2_world_gather(world, own, &state->missing, error);
    json_array_foreach(state->missing, rank, its) any |=
        json_array_size(json_object_get(its, "missing")) > 0;
    if (!any) {
        json_decref(state->missing);
        state->missing = NULL;
    }
    return status;
}

int dl2_checkpoint_get_missing(const struct dl2_run_state *state, const struct dl2_world *world,
                               struct dl2_loader_position *at, uint32_t **missing,
                               struct dl2_error *error)
{
    const json_t *own = json_array_get(state->missing, dl2_world_rank(world));
    const json_t *list = json_object_get(own, "missing");
    const size_t count = json_array_size(list);
    *missing = NULL;
    *at = (struct dl2_loader_position){.epoch = state->pass, .step = state->batch};
    if (count == 0)
        return DL2_OK;
    DL2_TRY(DL2_NEW(missing, count, "going on with an epoch", error));
    for (size_t i = 0; i < count; i++)
        (*missing)[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    at->next = (uint32_t)json_integer_value(json_object_get(own, "next"));
    at->missing_count = (uint32_t)count;
    at->missing = *missing;
    return DL2_OK;
}
