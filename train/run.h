/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training runs, private to the files of the trainer; others include trainer.h. Each file calls
 * only files below it:
 *
 *     several/hop.c  streams of models that visit the ranks, each a run
 *     several/visit.c  a part of such a run on one rank
 *     several/in_database.c  a visit's training, by the database that has the images
 *     measure.c      passes that tell how fast a run trains
 *     evaluate.c     validates the weights of a file
 *     sensitivity.c  how much such a network's loss depends on its input
 *     fit.c          a run whose images a database has
 *     loop.c         trains the runs of a stream, in turns
 *     run.c          what a run does: open, epochs of steps, validation, saving, close
 *     run_begin.c    from fresh weights or from a checkpoint to the first step
 *     validation.c   validates runs, and keeps the best weights
 *     experiment.c   describes a run in its report
 *     whole_volumes.c  validates on whole volumes, by sliding_window.h
 *     run_loss.c     sums of losses
 *     pixel_labels.c labels of pixels, and what of them a validation finds
 *     run_open.c     opens and closes devices, networks and folders
 *     run_data.c     datasets, partitions, and feeds of batches
 *     run_progress.c events, positions, and what all ranks agree on
 *
 * A stream has what runs share that are trained together: data, decoder, monitor. A run has one
 * model: network, device, position, log, checkpoint and report. Most streams have one run. A source
 * has training's batches, for all runs of a stream or, with config->data.own_batches, for one.
 */
#ifndef DL2_TRAIN_RUN_H
#define DL2_TRAIN_RUN_H

#include "common/monitor.h"
#include "dataset/dataset.h"
#include "network/network.h"
#include "train/checkpoint.h"
#include "train/feed.h"
#include "train/several/budget.h"
#include "train/trainer.h"

struct dl2_run_data {
    const char *path; /* NULL: noise without a dataset; of joined ones "a, b" */
    const char *name; /* the variant's, "a+b" */
    struct dl2_dataset *dataset;
    struct dl2_dataset_union all; /* which has these; of noise without any */
    uint64_t images, bytes;
    uint64_t samples, times; /* dl2_dataset_hash() */
    /* A stage's: */
    double share_end;       /* where it ends, as a part of the run; 1 for the last */
    unsigned height, width; /* of its images in batches, pixels */
    /* A validation set's; NULL: images are decoded in each validation. */
    struct dl2_decoded_cache *decoded;
    bool noted; /* also a validation set's: what is unusual about its videos has been said */
};

/* How the error of a run begins whose loss became no number, here and in a database's server. */
#define DL2_DIVERGED_TEXT "training diverged"

struct dl2_step_log; /* train/step_log.h */
struct dl2_run;

/* A step of a run: one or, with `accumulate`, several batches, then an update. */
struct dl2_run_step {
    unsigned done, batches; /* batches that are done, of those of the step */
    double lr;
    double last;     /* when the step before ended, or the pass began */
    double position; /* before it */
    double data_wait;
    uint64_t images;  /* of the pass, before it */
    uint64_t updates; /* of this part of the pass */
};

/* What a run is doing. */
enum dl2_run_phase {
    DL2_RUN_READY,      /* for a pass, or for the end of one that is trained */
    DL2_RUN_TRAINING,   /* takes batches of a pass */
    DL2_RUN_VALIDATING, /* sums on the device are the validation's */
    DL2_RUN_STOPPED,    /* this part of the run is over, and is to be saved */
    DL2_RUN_OVER,       /* the run or this part of it is over, and is saved */
    DL2_RUN_DIVERGED,   /* the loss became NaN or infinite: nothing follows */
};

/* What is to come after the step that is done. */
enum dl2_run_decision {
    DL2_RUN_GO_ON,
    DL2_RUN_END_PASS, /* this pass has taken run->pass_seconds */
    DL2_RUN_STOP,     /* a rank was asked to stop */
};

struct dl2_source {
    struct dl2_feed *feed; /* of the stage `stage`; NULL: not open */
    size_t stage;
    uint64_t next; /* number of the feed's next batch in its pass */
};

struct dl2_stream {
    struct dl2_run *runs;
    size_t run_count;
    bool several; /* models of dl2_train_models(), be it one */
    /* Runs take turns: each has a network only during dl2_run_visit(). The others are over. */
    bool hopping;
    /* The first run's. The settings of data and loading are the same in all; but where runs take
     * turns it is that of the run on a visit, which may have images and batches of its own size. */
    const struct dl2_train_config *config;
    struct dl2_run_data *stages, *val;
    size_t stage_count, val_count;
    unsigned classes, channels;
    struct dl2_batch_decoder *decoder; /* NULL: the processors decode */
    struct dl2_source *sources;
    size_t source_count;               /* 1, or one a run */
    struct dl2_decoded_cache *decoded; /* of all sources; NULL: they have none in common */
    uint64_t moved_seen;               /* bytes from other ranks, up to the last pass' end */
    struct dl2_monitor *monitor;       /* of the process, and of the card of the first run */
    double resident;  /* with config->run.cold: the part of the images that stayed in memory */
    bool data_failed; /* the loader did, or too many samples are bad; runs that are between two
                       * steps are as they were before */
    bool common;      /* the error, if any, is every rank's */
    json_t *bad;      /* samples that cannot be read: an object with true for each message */
};

struct dl2_run {
    struct dl2_stream *stream;
    struct dl2_source *source;
    const struct dl2_train_config *config;
    struct dl2_train_events events;
    char *variant, *name, *out, *report_path, *best, *steps;
    char *checkpoint; /* NULL: the run is measured or evaluated, and saves nothing */
    bool keeps;       /* a checkpoint was kept, and the room said */
    int lock;         /* of `out`, of rank 0; -1: none */
    struct dl2_device *device;
    struct dl2_network *network;
    uint32_t *partner; /* mixup's */
    uint8_t *row;      /* of an image, for CutMix */
    int32_t *labels;   /* of a batch's pixels; NULL: none yet */
    size_t label_room; /* of those */
    json_t *pixels;    /* a validation's figures of pixels, by set; NULL: none */
    struct dl2_budget budget;
    double best_kept;         /* score of the weights in `best`; -1: none of this run's are there */
    struct dl2_step_log *log; /* rank 0's; NULL: none */
    double joules_seen; /* the monitor's, up to which state.joules counts; NAN without a card */
    struct dl2_run_state state;
    struct dl2_loss_sums own_sums; /* this rank's part of state.sums, at the last look */
    double elapsed_before;         /* of the parts before this one */
    double run_stop;               /* position where this part ends; INFINITY: the run's end */
    /* With partitions: batches of all of them in a pass, and whether their last ones are never
     * short; batches of the pass before the visit, and after it. */
    uint64_t pass_steps;
    bool drops_last;
    uint64_t visit_begin, visit_end;
    double pass_seconds;      /* after which a pass ends early; 0: never */
    struct dl2_run_step step; /* that is going on */
    double begin;             /* position where the pass began that is going on */
    enum dl2_run_phase phase;
    /* All ranks agree on these: dl2_run_agree_on_end(). */
    double length; /* epochs that the whole run comes to; INFINITY: not known yet */
    enum dl2_run_decision decision;
    json_t *arguments, *identity, *report;
    json_t *card;         /* for the report; NULL: no card */
    json_t *device_notes; /* lines that the device told the user */
};

/* ---- run_progress.c ---- */

DL2_PRINTF(2, 3) void dl2_run_note(struct dl2_run *run, const char *format, ...);
/* What samples do not show of their files (struct dl2_unusual): the counts of a pass, and a note
 * for each that is not 0. */
void dl2_run_get_unusual(const struct dl2_loader_stats *stats, double counts[DL2_UNUSUAL]);
void dl2_run_note_unusual(struct dl2_run *run, const char *what, const double counts[DL2_UNUSUAL]);
void dl2_run_tell_begun(const struct dl2_run *run);
void dl2_run_tell_step(const struct dl2_run *run, const char *what, uint64_t done, uint64_t total);
/* Notes the samples of `data` that the feeds of all ranks could not read, and how many those of the
 * epoch were; DL2_ERR_FORMAT, on all ranks alike, if there are more than the loader's max_bad.
 * `then` says what becomes of them. Collective. */
int dl2_stream_note_bad(struct dl2_stream *stream, const struct dl2_feed *feed,
                        const struct dl2_run_data *data, const char *then, struct dl2_error *error);
/* The same of the messages `own` of this rank's; epoch: its samples, and the bad ones of them,
 * which become those of all ranks. */
int dl2_stream_add_up_bad(struct dl2_stream *stream, json_t *own, double epoch[2],
                          const struct dl2_run_data *data, const char *then,
                          struct dl2_error *error);
/* Notes at a run's end how many samples there were in all. */
void dl2_stream_sum_up_bad(struct dl2_stream *stream);
/* Notes one, by a message that names it. */
void dl2_stream_add_bad(struct dl2_stream *stream, const char *text);

/* Images of the largest stage. */
uint64_t dl2_run_images(const struct dl2_run *run);

/* Two positions closer than this are one: sums of 1 / steps are not exact. */
#define DL2_RUN_SAME 1e-9

/* Seconds since the run began, all its parts together. */
double dl2_run_elapsed(const struct dl2_run *run);
/* Batches of a pass; with partitions those of all. */
uint64_t dl2_run_steps(const struct dl2_run *run);
/* Epochs that are done. */
double dl2_run_position(const struct dl2_run *run);
/* Epochs from one step of the optimizer to the next. */
double dl2_run_step_epochs(const struct dl2_run *run);
/* DL2_RUN_OVER or DL2_RUN_DIVERGED: takes no further part in the stream. */
bool dl2_run_is_over(const struct dl2_run *run);
/* Did the last epoch's validation come to config->run.until? Only between two epochs. */
bool dl2_run_met_target(const struct dl2_run *run);
/* Has the run come to a position, as near as its steps allow? */
bool dl2_run_reached(const struct dl2_run *run, double position);
/* The same of a run that is at `state`, which is between two passes; NAN: no. */
bool dl2_run_is_at(const struct dl2_run_state *state, double position);
/* Where a stage ends, of the run's length as it is known now. */
double dl2_run_stage_end(const struct dl2_run *run, size_t stage);

/* dl2_world_agree(); a failure is then common to all ranks. */
int dl2_stream_agree(struct dl2_stream *stream, int status, struct dl2_error *error);
/* Decides with the other ranks whether to stop (any rank's signal says so), and how long the run
 * is, which with a time budget rank 0's clock says. Collective, before every step. */
int dl2_run_agree_on_end(struct dl2_run *run, struct dl2_error *error);
/* This rank's share of the processors, at least 1. */
unsigned dl2_run_processors(const struct dl2_run *run);

/* ---- run_data.c ---- */

/* Opens the datasets of all stages and of validation, and finds classes and channels. */
int dl2_stream_open_data(struct dl2_stream *stream, struct dl2_error *error);
void dl2_stream_close_data(struct dl2_stream *stream);
/* The data whose classes all others must have: the first stage's, or of an evaluation the first
 * set's. */
const struct dl2_run_data *dl2_stream_first_data(const struct dl2_stream *stream);

/* What a run that is at `state` can do on a partition. */
enum dl2_visit {
    DL2_VISIT_NEW,       /* visit it; or, where training is done, validate */
    DL2_VISIT_BEGUN,     /* go on with its visit, which was begun */
    DL2_VISIT_DONE,      /* nothing: the pass has visited it */
    DL2_VISIT_ELSEWHERE, /* nothing: another partition's visit was begun */
};
/* *begin and *end: the batches of the pass that the visit has. */
enum dl2_visit dl2_visit_find(const struct dl2_run *run, const struct dl2_run_state *state,
                              unsigned partition, uint64_t *begin, uint64_t *end);

/* Opens the feed of the run's source for a stage, unless it is open already. */
int dl2_run_open_feed(struct dl2_run *run, size_t stage, struct dl2_error *error);
/* The settings of a validation set's loader: a batch has all clips of its videos, of which several
 * clips are at most config->loader.batch where a batch can have fewer videos. */
struct dl2_loader_config dl2_stream_val_config(const struct dl2_stream *stream);
/* Opens the feed of a validation set; the caller destroys it. */
int dl2_stream_open_val(struct dl2_stream *stream, size_t set, struct dl2_feed **out,
                        struct dl2_error *error);
/* The same in random order and with training's random crops; of one process alone. */
int dl2_stream_open_crops(struct dl2_stream *stream, size_t set, struct dl2_feed **out,
                          struct dl2_error *error);

/* ---- run_open.c ---- */

/* Opens the runs, whose config and events are set, but for the training feed. Call
 * dl2_stream_close() also after an error. */
int dl2_stream_open(struct dl2_stream *stream, struct dl2_error *error);
void dl2_stream_close(struct dl2_stream *stream);
/* The device and the network of a run whose stream has its stages, classes and channels. */
int dl2_run_open_device(struct dl2_run *run, struct dl2_error *error);
int dl2_run_open_network(struct dl2_run *run, struct dl2_error *error);
/* Memory that the network will take, once the device is open. */
int dl2_run_plan_bytes(const struct dl2_run *run, uint64_t *bytes, struct dl2_error *error);
/* Makes the folder of the run's files, and keeps others out of it. */
int dl2_run_claim_folder(struct dl2_run *run, struct dl2_error *error);

/* ---- run_loss.c ---- */

/* The devices' sums since the last time, added up over the ranks. Collective. */
int dl2_run_sums(struct dl2_run *run, struct dl2_loss_sums *sums, struct dl2_error *error);
/* The same of sums that each rank has. */
int dl2_run_add_up(const struct dl2_run *run, struct dl2_loss_sums *sums, struct dl2_error *error);
/* Do the sums of a pass stay on the device up to its end? */
bool dl2_run_adds_up_on_device(const struct dl2_run *run);
/* Takes over the pass' sums. `last`: of this part of the run. With a log *loss becomes the mean
 * since the last time, NAN if no image counted. Fails if the loss became NaN or infinite. */
int dl2_run_take_losses(struct dl2_run *run, bool last, double *loss, struct dl2_error *error);
/* Fails if a weight became NaN or infinite. */
int dl2_run_check_weights(struct dl2_run *run, struct dl2_error *error);

/* ---- pixel_labels.c ---- */

/* Does the network label pixels or voxels, and not samples? */
bool dl2_run_labels_pixels(const struct dl2_run *run);
/* The labels of a batch, as the network takes them; those of pixels are the run's, until the next
 * call. `dataset` names samples in errors; NULL: noise. DL2_ERR_FORMAT for a value of a mask that
 * is no class. */
int dl2_run_labels(struct dl2_run *run, const struct dl2_dataset *dataset,
                   const struct dl2_batch *batch, const int32_t **labels, struct dl2_error *error);
/* Could a sample of a batch not be read? Of pixels: does none have a label? */
bool dl2_run_has_lost(const struct dl2_run *run, const struct dl2_batch *batch, unsigned sample);
/* Discards what an evaluation has found so far. */
int dl2_run_drop_pixels(const struct dl2_run *run, struct dl2_error *error);
/* DL2_ERR_FORMAT: the mask of the sample at `path` has a value that is no class. */
int dl2_run_refuse_label(const struct dl2_run *run, const char *path, unsigned value,
                         struct dl2_error *error);
/* The figures of a set go to run->pixels, which takes them over. `matrix` has the pixels or voxels
 * of the set, [label][class that was found]: classes that none has are noted once. */
void dl2_run_note_pixels(struct dl2_run *run, size_t set, const double *matrix, json_t *figures);
/* The same of a set of masks that was evaluated. *miou is the mean over classes of the intersection
 * over union. Collective. */
int dl2_run_take_pixels(struct dl2_run *run, size_t set, double *miou, struct dl2_error *error);

/* ---- whole_volumes.c: sets of volumes are labeled volume by volume, by a sliding window ---- */

struct dl2_validation;
struct dl2_whole_volumes;
struct dl2_volume_figures; /* of a run on a set */

/* Free or close what was made after an error, too. */
int dl2_volume_figures_create(unsigned classes, struct dl2_volume_figures **out,
                              struct dl2_error *error);
void dl2_volume_figures_free(struct dl2_volume_figures *figures);
int dl2_whole_volumes_open(struct dl2_stream *stream, size_t set, struct dl2_whole_volumes **out,
                           struct dl2_error *error);
void dl2_whole_volumes_close(struct dl2_whole_volumes *volumes);
/* The volumes that each rank has, one more or less. */
uint64_t dl2_whole_volumes_steps(const struct dl2_whole_volumes *volumes);
/* Labels the next volume of this rank by the networks of all runs, into their `volumes`; one that
 * cannot be read is bad. Returns 1, or 0 after the last. */
int dl2_whole_volumes_next(struct dl2_whole_volumes *volumes, struct dl2_validation *due,
                           size_t count, struct dl2_error *error);
/* Notes the bad ones, and counts the others for each run. Collective. */
int dl2_whole_volumes_end(struct dl2_whole_volumes *volumes, struct dl2_validation *due,
                          size_t count, struct dl2_error *error);
/* The figures of a set go to run->pixels. *dice is the mean of the classes but class 0, each the
 * mean of the volumes that have it or were found to; NAN where there is none. Collective. */
int dl2_run_take_volumes(struct dl2_run *run, size_t set, struct dl2_volume_figures *figures,
                         struct dl2_loss_sums *sums, double *dice, struct dl2_error *error);

/* ---- run_begin.c ---- */

/* Gets a run ready to train, from its checkpoint where it resumes; or leaves it as it is,
 * DL2_RUN_OVER, where it is finished already. Collective. */
int dl2_run_prepare(struct dl2_run *run, struct dl2_error *error);
/* Writes config->run.export, if there is one. */
int dl2_run_export_weights(struct dl2_run *run, struct dl2_error *error);

/* ---- validation.c ---- */

/* Puts the averages of the weights in their place, where the run has any, or takes them out. */
int dl2_run_use_average(struct dl2_run *run, bool use, struct dl2_error *error);
/* A run to validate: for state.val and the record of pass number `pass`; with `keep` the
 * predictions are written. The rest is the validation's own. */
struct dl2_validation {
    struct dl2_run *run;
    uint64_t pass;
    bool keep;
    json_t *record;
    struct dl2_train_val *val;
    struct dl2_predictions *predictions;
    double decoded_hits;               /* of the set, on this rank */
    double images;                     /* of the set, that could be read, on all ranks */
    const struct dl2_dataset *dataset; /* the set's */
    double lost_sum; /* of the set's images that could not be read: equal where they are */
    struct dl2_volume_figures *volumes; /* of a set of volumes */
    struct dl2_clip_means *clips;       /* of a set's videos with several clips; NULL: none */
};
/* What an image that could not be read adds to lost_sum: sums of up to 2^20 such are exact. */
static inline double dl2_validation_lost(uint64_t index)
{
    return (double)((index + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
/* Validates runs of one stream, on all sets. Each batch is loaded once for all of them.
 * If one was asked to stop, there are no figures, and all of them become DL2_RUN_STOPPED. */
int dl2_stream_validate(struct dl2_validation *due, size_t count, struct dl2_error *error);
/* Finds whose weights are in `best`, once the run's state is loaded. */
void dl2_run_find_best(struct dl2_run *run);
/* What a validation of one run will cost, from a few batches of each set, for a time budget to set
 * aside. */
int dl2_run_probe_validation(struct dl2_run *run, struct dl2_error *error);

/* ---- experiment.c ---- */

/* The arguments by option name, the part of them that must not change on resuming,
 * and the report. */
json_t *dl2_run_arguments(const struct dl2_run *run);
/* Makes null of them what volumes, or images, have no use for. */
void dl2_run_drop_idle(const struct dl2_train_config *config, json_t *arguments);
json_t *dl2_run_identity(const struct dl2_run *run);
/* {"training", "validation"}: a hash of each dataset's samples. */
json_t *dl2_run_data_hashes(const struct dl2_run *run);
/* Settings that may change on resuming. They affect results, so the run notes a change. */
json_t *dl2_run_part(const struct dl2_run *run);
json_t *dl2_run_report(const struct dl2_run *run);
/* The pass that ends at `position`, as all ranks saw it, without validation: its figures, and its
 * record for the report. Collective. */
int dl2_run_epoch_record(struct dl2_run *run, double position, struct dl2_train_epoch *epoch,
                         json_t **out, struct dl2_error *error);
/* Adds state.val, which took `seconds`, to the record of its pass. */
void dl2_run_record_validation(const struct dl2_run *run, double seconds, json_t *record);
/* The names of the first data's classes: a new reference. */
json_t *dl2_run_class_names(const struct dl2_run *run);
/* The samples that cannot be read, for a report: a new reference. */
json_t *dl2_run_bad_list(const struct dl2_run *run);
/* Puts the timelines of all ranks, where there are several, into rank 0's report. Collective. */
int dl2_run_gather_timelines(struct dl2_run *run, struct dl2_error *error);
/* Brings the report up to date and writes it. */
int dl2_run_save_report(struct dl2_run *run, struct dl2_error *error);
/* The same of a report that has its results already. */
int dl2_run_write_report(struct dl2_run *run, struct dl2_error *error);
/* The metadata of exported weights, for programs that use them. */
json_t *dl2_run_export_texts(const struct dl2_run *run);

/* ---- loop.c ---- */

/* Trains runs that are prepared, to their ends or to a stop, and saves them. */
int dl2_stream_train_to_end(struct dl2_stream *stream, struct dl2_error *error);
/* One pass, or what is left of one, of the runs that are furthest behind; the others wait. */
int dl2_stream_train_pass(struct dl2_stream *stream, struct dl2_error *error);

/* ---- run.c; an epoch is: begin the pass, then steps (begin, batches, end, save) until
 * dl2_run_begin_step() leaves the pass, then end the pass ---- */

/* Adds the record of a pass that has ended, takes it over, and moves on to the next pass. */
void dl2_run_add_pass(struct dl2_run *run, const struct dl2_train_epoch *epoch, json_t *record);
/* Opens a stream of runs, has them trained by `train`, tells how it went, and closes them. */
int dl2_stream_train(struct dl2_train_model *models, size_t count, bool several,
                     int (*train)(struct dl2_stream *stream, struct dl2_error *error),
                     struct dl2_error *error);
void dl2_run_tell_ended(const struct dl2_run *run);

/* Before a pass: saves and ends a run that has come to its end, or to a stop. */
int dl2_run_look_for_end(struct dl2_run *run, struct dl2_error *error);
/* Chooses the stage of a pass, opens its feed, and enters it unless it is trained already. */
int dl2_run_begin_pass(struct dl2_run *run, struct dl2_error *error);
int dl2_run_enter_pass(struct dl2_run *run, struct dl2_error *error);
/* Seconds and joules count from here on. */
void dl2_run_start_clock(struct dl2_run *run);
/* Before a step: it begins, or the run leaves the pass, where this ends, its stage, the run or this
 * part, whichever comes first. */
int dl2_run_begin_step(struct dl2_run *run, struct dl2_error *error);
/* Forward and backward of one batch, which the run waited for. The batch is in use until
 * dl2_network_wait_input(). */
int dl2_run_train_batch(struct dl2_run *run, const struct dl2_batch *batch, double waited,
                        struct dl2_error *error);
/* After the last batch of a step: updates the weights. */
int dl2_run_end_step(struct dl2_run *run, struct dl2_error *error);
/* Writes a checkpoint between two steps, if one is due. */
int dl2_run_save_step(struct dl2_run *run, struct dl2_error *error);
/* A run's part of the pass is over: it has come to the pass's end, or to its own. */
int dl2_run_leave_pass(struct dl2_run *run, struct dl2_error *error);
/* The same if this part of the run stops there. */
int dl2_run_stop_pass(struct dl2_run *run, struct dl2_error *error);
/* Ends the pass of the runs of a stream that have trained to its end: validates them if that is
 * due, and writes their reports and the checkpoints that are due. */
int dl2_stream_end_pass(struct dl2_stream *stream, struct dl2_error *error);
/* Moves the position to the beginning of the next pass. */
void dl2_run_next_pass(struct dl2_run *run);
/* Takes the loss scale into the state, where half-precision training has one. */
int dl2_run_note_loss_scale(struct dl2_run *run, struct dl2_error *error);
/* What a step of a run comes to, whose status and `reason` are given. If its loss became NaN or
 * infinite, a run of several ends alone, without an error. */
int dl2_run_end_diverged(struct dl2_run *run, int status, const struct dl2_error *reason,
                         struct dl2_error *error);
/* After an error: if the loader failed, such as when a server went away, saves what the runs had
 * learnt before. */
void dl2_stream_save_learnt(struct dl2_stream *stream);

/* ---- in_database.c ---- */

/* Can this rank's visits be trained in a database? Of several tables each rank has one, in the
 * server of that; what is wrong names the table. Asks the rank's server alone. */
int dl2_stream_check_database(const struct dl2_stream *stream, unsigned rank, unsigned ranks,
                              struct dl2_error *error);
/* What is left of a visit's training, by the database that has the images. */
int dl2_run_train_in_database(struct dl2_run *run, struct dl2_error *error);

/* ---- visit.c ---- */

/* With stream->hopping: one visit to the stream's partition, from the run's checkpoint, or from the
 * beginning where there is none, to a checkpoint; and the pass's end where it is the last one. */
int dl2_run_visit(struct dl2_run *run, struct dl2_error *error);

#endif
