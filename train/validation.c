/* SPDX-License-Identifier: BSD-2-Clause */
/* Validates a run's network, and keeps what it says of each image. */
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "network/safetensors.h"
#include "network/weights.h"
#include "train/clip_means.h"
#include "train/predictions.h"
#include "train/run.h"

#include <stdlib.h>

/* Batches of each validation set that tell a time budget what a validation costs. */
#define PROBE_BATCHES 4

/* Each sample of a batch has several clips. */
static int evaluate_clips(struct dl2_validation *due, const struct dl2_batch *batch,
                          struct dl2_error *error)
{
    const float *losses, *logits;
    DL2_TRY(dl2_clip_means_evaluate(due->clips, due->run->network, batch, &losses, &logits, error));
    if (due->predictions)
        dl2_predictions_take(due->predictions, batch, losses, logits);
    return DL2_OK;
}

static int evaluate_samples(struct dl2_validation *due, const struct dl2_dataset *dataset,
                            const struct dl2_batch *batch, struct dl2_error *error)
{
    struct dl2_network_input input = {batch->images, NULL, batch->count, NULL, 1};
    DL2_TRY(dl2_run_labels(due->run, dataset, batch, &input.labels, error));
    DL2_TRY(dl2_network_evaluate(due->run->network, &input, error));
    return due->predictions ? dl2_predictions_add(due->predictions, due->run->network, batch, error)
                            : DL2_OK;
}

/* A batch for all runs that are validated. */
static int evaluate_batch(struct dl2_validation *due, size_t count, const struct dl2_batch *batch,
                          struct dl2_error *error)
{
    int status = DL2_OK;
    /* In the last step some ranks may have none. */
    for (size_t i = 0; i < count && status == DL2_OK && batch->count; i++)
        status = due[i].clips ? evaluate_clips(&due[i], batch, error)
                              : evaluate_samples(&due[i], due[0].dataset, batch, error);
    for (size_t i = 0; i < count; i++)
        dl2_network_wait_input(due[i].run->network);
    for (unsigned b = 0; b < batch->count; b++)
        if (dl2_run_has_lost(due[0].run, batch, b))
            due[0].lost_sum += dl2_validation_lost(batch->indices[b]);
    return status;
}

/* A validation set: batches of images, or whole volumes. */
struct set {
    struct dl2_feed *feed; /* NULL: volumes */
    struct dl2_whole_volumes *volumes;
};

static void close_set(struct dl2_validation *due, size_t count, struct set *set)
{
    dl2_feed_destroy(set->feed);
    dl2_whole_volumes_close(set->volumes);
    for (size_t i = 0; i < count; i++) {
        dl2_predictions_free(due[i].predictions);
        due[i].predictions = NULL;
    }
}

static void free_figures(struct dl2_validation *due)
{
    dl2_volume_figures_free(due->volumes);
    due->volumes = NULL;
    dl2_clip_means_free(due->clips);
    due->clips = NULL;
}

/* What of a run's figures on a set is not the device's. */
static int make_figures(struct dl2_validation *due, struct dl2_error *error)
{
    const struct dl2_stream *stream = due->run->stream;
    const struct dl2_loader_config config = dl2_stream_val_config(stream);
    free_figures(due);
    if (config.volume_depth)
        return dl2_volume_figures_create(stream->classes, &due->volumes, error);
    return dl2_loader_clips(&config) > 1
               ? dl2_clip_means_create(&config, due->run->config->loader.batch, stream->classes,
                                       &due->clips, error)
               : DL2_OK;
}

/* Close it after an error, too. */
static int open_set(struct dl2_validation *due, size_t count, size_t number, struct set *set,
                    struct dl2_error *error)
{
    struct dl2_stream *stream = due[0].run->stream;
    int status = DL2_OK;
    *set = (struct set){NULL, NULL};
    due[0].dataset = stream->val[number].dataset;
    for (size_t i = 0; i < count && status == DL2_OK; i++)
        status = make_figures(&due[i], error);
    if (!stream->config->loader.volume_depth) {
        DL2_TRY(dl2_stream_agree(stream, status, error));
        return dl2_stream_open_val(stream, number, &set->feed, error);
    }
    if (status == DL2_OK)
        status = dl2_whole_volumes_open(stream, number, &set->volumes, error);
    return dl2_stream_agree(stream, status, error);
}

static uint64_t set_steps(const struct set *set)
{
    return set->feed ? dl2_feed_steps(set->feed) : dl2_whole_volumes_steps(set->volumes);
}

/* Its next batch or volume. Returns 1, or 0 at the end. */
static int evaluate_next(struct dl2_validation *due, size_t count, const struct set *set,
                         struct dl2_error *error)
{
    struct dl2_batch *batch;
    if (!set->feed)
        return dl2_whole_volumes_next(set->volumes, due, count, error);
    const int got = dl2_feed_next(set->feed, &batch, error);
    due[0].run->stream->data_failed = got < 0;
    if (got <= 0)
        return got;
    const int status = evaluate_batch(due, count, batch, error);
    dl2_feed_release(set->feed, batch);
    return status < 0 ? status : 1;
}

/* Discards the sums. Ends the validation by a status without a message. */
static int stop(struct dl2_validation *due, size_t count, struct dl2_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct dl2_loss_sums unused;
        DL2_TRY(dl2_network_take_sums(due[i].run->network, &unused, error));
        due[i].run->phase = DL2_RUN_STOPPED;
    }
    return DL2_ERR_CANCELED;
}

static int evaluate(struct dl2_validation *due, size_t count, const struct set *set, uint64_t most,
                    double *batch_seconds, struct dl2_error *error)
{
    uint64_t steps = set_steps(set), done = 0;
    double first = 0, began = dl2_clock_wall();
    due[0].lost_sum = 0;
    for (size_t i = 0; i < count; i++) {
        due[i].run->phase = DL2_RUN_VALIDATING;
        DL2_TRY(dl2_run_drop_pixels(due[i].run, error));
    }
    if (set->feed)
        DL2_TRY(dl2_feed_start_epoch(set->feed, 0, 0, error));
    while (done < most) {
        bool stopping = false;
        for (size_t i = 0; i < count; i++) {
            DL2_TRY(dl2_run_agree_on_end(due[i].run, error));
            stopping |= due[i].run->decision == DL2_RUN_STOP;
        }
        if (stopping)
            return stop(due, count, error);
        const int got = evaluate_next(due, count, set, error);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        if (++done == 1)
            first = dl2_clock_wall();
        dl2_run_tell_step(due[0].run, "validate", done, steps);
    }
    double now = dl2_clock_wall();
    /* The first batch fills queues and makes plans. */
    *batch_seconds = done > 1 ? (now - first) / (double)(done - 1) : now - began;
    return DL2_OK;
}

/* Rank 0 writes all ranks' predictions to the run's folder. */
static int save_predictions(struct dl2_run *run, struct dl2_predictions *predictions, size_t set,
                            struct dl2_error *error)
{
    DL2_TRY(dl2_predictions_gather(predictions, run->config->world, error));
    if (dl2_world_rank(run->config->world) > 0)
        return DL2_OK;
    char name[DL2_PREDICTIONS_NAME];
    DL2_AUTO_FREE char *path = dl2_path_join(run->out, dl2_predictions_name(set, name));
    return path ? dl2_predictions_save(predictions, path, error)
                : dl2_error_memory(error, "predictions");
}

/* seen: videos, bad ones, those whose clips overlap, and those with equal clips. */
static void note_clips(struct dl2_run *run, const struct dl2_run_data *data, const double seen[4])
{
    const unsigned clips = run->config->loader.val_clips;
    if (seen[3] > 0)
        dl2_run_note(run,
                     "%s: %.0f of %.0f videos are too short for %u different clips, and show some "
                     "of theirs several times",
                     data->path, seen[3], seen[0], clips);
    if (seen[2] > seen[3])
        dl2_run_note(run, "%s: in %.0f of %.0f videos, which are short for %u clips, these overlap",
                     data->path, seen[2] - seen[3], seen[0], clips);
}

/* What the batches of a set came to. */
static int end_feed(struct dl2_validation *due, size_t count, const struct dl2_feed *feed,
                    size_t number, struct dl2_error *error)
{
    struct dl2_stream *stream = due[0].run->stream;
    struct dl2_loader_stats stats;
    struct dl2_run_data *const data = &stream->val[number];
    DL2_TRY(dl2_stream_note_bad(stream, feed, data, "and do not count", error));
    dl2_feed_get_stats(feed, &stats);
    /* images, and bad ones; videos whose clips overlap, or are the same; and unusual ones */
    double seen[4 + DL2_UNUSUAL] = {
        [2] = (double)stats.overlapping_clips, [3] = (double)stats.equal_clips};
    dl2_run_get_unusual(&stats, seen + 4);
    dl2_feed_epoch_bad(feed, seen);
    DL2_TRY(dl2_world_sum(stream->config->world, seen, 4 + DL2_UNUSUAL, error));
    if (!data->noted) {
        dl2_run_note_unusual(due[0].run, data->path, seen + 4);
        note_clips(due[0].run, data, seen);
    }
    data->noted = true;
    for (size_t i = 0; i < count; i++) {
        due[i].images = seen[0] - seen[1];
        due[i].decoded_hits = (double)stats.decoded_hits;
    }
    return DL2_OK;
}

/* One pass over a validation set, with room for the predictions to keep. */
static int evaluate_with(struct dl2_validation *due, size_t count, const struct set *set,
                         size_t number, struct dl2_error *error)
{
    struct dl2_stream *stream = due[0].run->stream;
    double unused;
    for (size_t i = 0; i < count; i++)
        if (due[i].keep)
            DL2_TRY(dl2_predictions_create(stream->val[number].dataset, stream->classes,
                                           stream->config->loader.batch, &due[i].predictions,
                                           error));
    DL2_TRY(evaluate(due, count, set, UINT64_MAX, &unused, error));
    if (set->feed)
        DL2_TRY(end_feed(due, count, set->feed, number, error));
    else
        DL2_TRY(dl2_whole_volumes_end(set->volumes, due, count, error));
    DL2_TRY(dl2_world_sum(stream->config->world, &due[0].lost_sum, 1, error));
    for (size_t i = 0; i < count; i++)
        due[i].lost_sum = due[0].lost_sum;
    for (size_t i = 0; i < count; i++)
        if (due[i].keep)
            DL2_TRY(save_predictions(due[i].run, due[i].predictions, number, error));
    return DL2_OK;
}

static int evaluate_set(struct dl2_validation *due, size_t count, size_t number,
                        struct dl2_error *error)
{
    struct set set;
    int status = open_set(due, count, number, &set, error);
    if (status == DL2_OK)
        status = evaluate_with(due, count, &set, number, error);
    close_set(due, count, &set);
    return status;
}

/* The figures of a set that the run was validated on. */
static int take_figures(const struct dl2_validation *due, size_t set, struct dl2_error *error)
{
    struct dl2_run *run = due->run;
    const struct dl2_run_data *data = &run->stream->val[set];
    const enum dl2_label_kind kind = dl2_network_labels(run->network).kind;
    struct dl2_loss_sums sums;
    double hits = due->decoded_hits, score;
    if (kind == DL2_LABEL_VOLUME)
        DL2_TRY(dl2_run_take_volumes(run, set, due->volumes, &sums, &score, error));
    else if (due->clips) {
        sums = dl2_clip_means_sums(due->clips);
        DL2_TRY(dl2_run_add_up(run, &sums, error));
    } else
        DL2_TRY(dl2_run_sums(run, &sums, error));
    run->stream->common = sums.counted == 0;
    if (run->stream->common)
        return dl2_error_set(
            error, DL2_ERR_FORMAT, "none of the %llu validation %s of %s can be read%s",
            (unsigned long long)data->images, dl2_train_samples(run->config, 0), data->path,
            run->config->loader.mask ? ", or nothing in their masks has a label" : "");
    const double counted = (double)sums.counted;
    if (kind == DL2_LABEL_CLASS)
        score = (double)sums.top1 / counted;
    else if (kind == DL2_LABEL_MASK)
        DL2_TRY(dl2_run_take_pixels(run, set, &score, error));
    const uint64_t images = kind == DL2_LABEL_CLASS ? sums.counted : (uint64_t)due->images;
    if (run->config->loader.decoded_cache_bytes)
        DL2_TRY(dl2_world_sum(run->config->world, &hits, 1, error));
    due->val[set] = (struct dl2_train_val){data->name,
                                           images,
                                           sums.loss / counted,
                                           (double)sums.top1 / counted,
                                           (double)sums.top5 / counted,
                                           due->keep,
                                           (uint64_t)hits,
                                           (uint64_t)due->lost_sum << 8 ^ images,
                                           score};
    return DL2_OK;
}

static int validate_sets(struct dl2_validation *due, size_t count, struct dl2_error *error)
{
    for (size_t set = 0; set < due[0].run->stream->val_count; set++) {
        DL2_TRY(evaluate_set(due, count, set, error));
        for (size_t i = 0; i < count; i++)
            DL2_TRY(take_figures(&due[i], set, error));
    }
    return DL2_OK;
}

int dl2_run_use_average(struct dl2_run *run, bool use, struct dl2_error *error)
{
    bool there = run->config->optimizer.average_decay > 0 && run->state.updates > 0;
    return there ? dl2_network_use_average(run->network, use, error) : DL2_OK;
}

/* The epoch and its score, in the metadata of its weights. */
#define BEST_KEY "dl2.best"

static const char *score_name(const struct dl2_run *run)
{
    return dl2_val_accuracies[dl2_network_labels(run->network).kind]->key;
}

void dl2_run_find_best(struct dl2_run *run)
{
    const struct dl2_run_state *state = &run->state;
    struct dl2_safetensors file;
    run->best_kept = -1;
    if (!state->best_epoch)
        return;
    if (dl2_safetensors_read(run->best, &file, NULL) == DL2_OK) {
        const char *text = dl2_safetensors_text(&file, BEST_KEY);
        json_auto_t *best = text ? json_loads(text, 0, NULL) : NULL;
        if (dl2_json_get_integer(best, "epoch", 0) == (long long)state->best_epoch &&
            dl2_json_get_real(best, score_name(run), -1) == state->best_score)
            run->best_kept = state->best_score;
        dl2_safetensors_free(&file);
    }
    if (run->best_kept < 0)
        dl2_run_note(run,
                     "%s does not have the weights of epoch %llu, the best so far: --keep-best "
                     "keeps the best of the epochs to come",
                     run->best, (unsigned long long)state->best_epoch);
}

/* The weights that have just been validated, while averages are in their place. */
static int keep_best(struct dl2_run *run, uint64_t pass, const struct dl2_train_val *val,
                     struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    if (!config->run.keep_best || dl2_world_rank(config->world) > 0 ||
        !(val->score > run->best_kept) || !dl2_run_state_compares(&run->state, val->images_sum))
        return DL2_OK;
    json_auto_t *texts = dl2_run_export_texts(run);
    json_auto_t *best =
        json_pack("{s:I, s:f}", "epoch", (json_int_t)pass, score_name(run), val->score);
    DL2_AUTO_FREE char *text =
        best ? json_dumps(best, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_object_set_new(texts, BEST_KEY, json_string(text ? text : "{}"));
    DL2_TRY(dl2_weights_save(run->best, run->network, texts, error));
    run->best_kept = val->score;
    return DL2_OK;
}

/* Makes a run ready for a validation. */
static int begin_validation(struct dl2_validation *due, struct dl2_error *error)
{
    struct dl2_run *run = due->run;
    const struct dl2_loader_config *loader = &run->config->loader;
    DL2_TRY(DL2_NEW(&due->val, run->stream->val_count, "a validation", error));
    due->keep &= !dl2_run_labels_pixels(run); /* predictions are of images */
    DL2_TRY(dl2_network_use_size(run->network, loader->height, dl2_loader_width(loader), error));
    /* Each rank has its own where batch norm isn't synchronized; rank 0's are what is kept. */
    DL2_TRY(dl2_checkpoint_share_statistics(run->network, run->config->world, error));
    return dl2_run_use_average(run, true, error);
}

static void end_validation(struct dl2_validation *due, double seconds)
{
    struct dl2_run *run = due->run;
    run->phase = DL2_RUN_READY;
    dl2_budget_validated(&run->budget, seconds);
    free(run->state.val);
    run->state.val = due->val;
    run->state.val_count = run->stream->val_count;
    if (!dl2_run_state_compares(&run->state, due->val[0].images_sum))
        dl2_run_note(run,
                     "epoch %llu was validated on %llu %s of %s that are not those of the epochs "
                     "before, since some of them could or cannot be read now: it does not count as "
                     "the best epoch",
                     (unsigned long long)due->pass, (unsigned long long)due->val[0].images,
                     dl2_train_samples(run->config, 0), run->stream->val[0].path);
    dl2_run_state_rank(&run->state, due->pass, due->val[0].score, due->val[0].images_sum);
    dl2_run_record_validation(run, seconds, due->record);
}

/* That a run was asked to stop is no failure. */
static int unless_stopped(const struct dl2_run *run, int status)
{
    return run->phase == DL2_RUN_STOPPED && status == DL2_ERR_CANCELED ? DL2_OK : status;
}

int dl2_stream_validate(struct dl2_validation *due, size_t count, struct dl2_error *error)
{
    const double began = dl2_clock_wall();
    int status = DL2_OK;
    for (size_t i = 0; i < count && status == DL2_OK; i++)
        status = begin_validation(&due[i], error);
    if (status == DL2_OK)
        status = validate_sets(due, count, error);
    for (size_t i = 0; i < count; i++) {
        if (status == DL2_OK && due[i].pass)
            status = keep_best(due[i].run, due[i].pass, &due[i].val[0], error);
        const int back = dl2_run_use_average(due[i].run, false, status == DL2_OK ? error : NULL);
        status = status == DL2_OK ? back : status;
    }
    const double took = dl2_clock_wall() - began;
    for (size_t i = 0; i < count; i++) {
        if (status == DL2_OK)
            end_validation(&due[i], took);
        else
            free(due[i].val);
        free_figures(&due[i]);
    }
    return unless_stopped(due[0].run, status);
}

int dl2_run_probe_validation(struct dl2_run *run, struct dl2_error *error)
{
    double seconds = 0;
    for (size_t i = 0; i < run->stream->val_count; i++) {
        struct set set;
        struct dl2_loss_sums unused;
        struct dl2_validation probe = {.run = run};
        double batch_seconds = 0;
        int status = open_set(&probe, 1, i, &set, error);
        if (status == DL2_OK) {
            status = evaluate(&probe, 1, &set, PROBE_BATCHES, &batch_seconds, error);
            seconds += batch_seconds * (double)set_steps(&set);
        }
        close_set(&probe, 1, &set);
        free_figures(&probe);
        if (status < 0)
            return unless_stopped(run, status);
        run->phase = DL2_RUN_READY;
        DL2_TRY(dl2_network_take_sums(run->network, &unused, error));
    }
    run->budget.validate_guess = seconds;
    return DL2_OK;
}
