/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A training run: one or several stages of data under one schedule, validation on any number of
 * sets, checkpoints to resume from, and a report (docs/formats/train.md, dl2-experiment/1) that is
 * updated after every epoch.
 *
 * An epoch here is a pass over a stage's training images. A run's position is a real number of
 * epochs: a pass is cut short where its stage, the run or the time budget ends. Two runs with equal
 * arguments give equal weights, bit for bit, for any number of loader workers, and also when one of
 * them was stopped and resumed anywhere (not with a time budget, which depends on the clock).
 *
 * Several ranks (ranks/world.h) call dl2_train() with equal settings, and share each step's images:
 * `batch` for each of them, next to each other in the epoch's order, so that R ranks with batches
 * of B see the same images as one process with batches of R * B. Their gradients are averaged;
 * weights are the same on all ranks, bit for bit. The ranks also share the validation images. Mixup
 * and dropout draw different numbers on each rank. Only rank 0 decides by the clock, writes files
 * and calls events.
 *
 * With loader.partitions a run is made of visits: it trains on one partition of the images, writes
 * its checkpoint, and stops. Resumed with each of the partitions once, in any order, it has trained
 * for an epoch. train/several/hop.h does that with several models on several ranks.
 *
 * Threads: one; the loader and the device have threads of their own.
 */
#ifndef DL2_TRAIN_TRAINER_H
#define DL2_TRAIN_TRAINER_H

#include "common/accuracy_kind.h"
#include "common/error.h"
#include "device/device.h"
#include "loader/batch_decoder.h"
#include "loader/loader.h"
#include "network/network.h"
#include "ranks/world.h"
#include "train/schedule.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#define DL2_EXPERIMENT_SCHEMA "dl2-experiment/1"
#define DL2_EXPERIMENT_FILE   "experiment_report.json"
#define DL2_CHECKPOINT_FILE   "checkpoint.safetensors"
#define DL2_BEST_FILE         "best.safetensors"
#define DL2_STEPS_FILE        "steps.jsonl"
#define DL2_RATE_SCHEMA       "dl2-rate/1"
#define DL2_RATE_FILE         "rate_report.json"
#define DL2_EVALUATION_SCHEMA "dl2-evaluation/1"
#define DL2_EVALUATION_FILE   "evaluation_report.json"

struct dl2_train_stage {
    const char *path; /* of a dataset; NULL: noise without one */
    double epochs;    /* > 0; INFINITY for one stage that only the time budget ends */
    /* Height and width of its training images, as in dl2_loader_config; height 0: the loader's,
     * which validation has. */
    unsigned height, width;
    bool freeze; /* train the last layer alone: dl2_network_freeze() */
};

/* What is trained and validated on. */
struct dl2_train_data {
    const struct dl2_train_stage *stages; /* at least one */
    size_t stage_count;
    /* Datasets that are joined to the only stage's (dl2_dataset_join()). */
    const char *const *joined;
    size_t joined_count;
    const char *const *val; /* datasets to validate on; none: the last stage's, joined as well */
    size_t val_count;
    const char *train_split, *val_split; /* names of splits of the datasets */
    double val_fraction;                 /* of training images: see dataset.h */
    uint64_t split_seed;
    struct dl2_subset subset;         /* of the images to train on */
    enum dl2_samples samples;         /* what the samples of all datasets are */
    const char *labels;               /* dl2_dataset_options.labels of the dataset; or NULL */
    struct dl2_member_choice members; /* of samples of tar shards */
    struct dl2_remote_options remote; /* of the datasets behind servers */
    bool synthetic;             /* the same batch of noise again and again; validates nothing */
    unsigned synthetic_classes; /* without a dataset, or of masks */
    uint64_t synthetic_images;
    /* Each of several models has an order and crops of its own, by its loader.seed, and all take
     * their images from one cache of decoded images. Else all train on the same batches. */
    bool own_batches;
    double mean[3], std[3]; /* on the 0-255 scale; gray images use the means of the three */
};

/* How batches change the weights. */
struct dl2_train_optimizer {
    unsigned accumulate; /* batches per step of a rank, at least 1; loader.batch has the images */
    enum dl2_lr_policy policy;
    double lr, end_lr;
    double warmup;     /* epochs; NAN: a tenth of the run, at most five */
    bool lr_per_epoch; /* the rate stays in a pass, as (DL)2 has it; else it moves every step */
    enum dl2_optimizer kind;
    double momentum, beta2; /* AdamW's two betas; beta2 is of adaptive optimizers */
    double weight_decay;
    double clip; /* largest norm of a step's gradients; 0: they are not clipped */
    bool nesterov, norm_decay;
    double smoothing;
    double mixup, cutmix; /* alpha; 0: none */
    /*
     * Above 0 and below 1: validate and export not the weights but their moving averages, which
     * keep this much of themselves in each update; of update n, counted from 0, n / (n + 9) where
     * that is less, so that they don't begin with the fresh weights (TensorFlow's
     * ExponentialMovingAverage, num_updates). 0: none.
     */
    double average_decay;
};

/* A figure of the first validation set at which a training ends, by its name in reports. */
extern const char *const dl2_until_metrics[]; /* NULL ends */
struct dl2_train_until {
    unsigned metric; /* 1 is the first of those; 0: none */
    double value;    /* at least, but of "loss" at most */
};

struct dl2_train_checkpoints {
    double every; /* epochs; 0: only when the run stops or ends */
    bool keep;    /* each, under a name of its own beside the last */
};

/* How long a run goes on, what it keeps, and where. */
struct dl2_train_run {
    unsigned trainers;  /* that share the machine, this one included, for the report alone; 0: 1 */
    double time_budget; /* seconds from `started`, all parts of a resumed run together; NAN: none */
    double run_epochs;  /* stop after this many in this part; NAN: go on to the end */
    double stop_at;     /* stop at this position, epochs; NAN: go on to the end */
    /* End, completed, after the epoch whose validation comes to this. The schedule is that of all
     * epochs. */
    struct dl2_train_until until;
    double measure;        /* seconds, for dl2_measure(); NAN: it is a training */
    bool cold;             /* evict the images from the page cache before each pass */
    double validate_every; /* epochs, whole; 0: only at the end */
    struct dl2_train_checkpoints checkpoints;
    bool in_database; /* of models that hop: the database that has the images trains on them */
    bool skip_validation;
    bool keep_best;         /* the weights of the best epoch go to DL2_BEST_FILE in `out` */
    bool log_steps;         /* to DL2_STEPS_FILE in `out`; waits for the device after each step */
    bool resume;            /* go on from the checkpoint if there is one */
    bool restart;           /* begin anew even over a checkpoint that is there */
    const char *name;       /* of the run; NULL: made from variant, arch and seed */
    const char *out;        /* folder of the report; made if missing */
    const char *checkpoint; /* file; NULL: DL2_CHECKPOINT_FILE in `out` */
    const char *pretrained; /* weights to begin with (network/weights.h); NULL: fresh ones */
    const char *export;     /* file that receives the weights at the end; NULL: none */
    double started;         /* dl2_clock_wall() when the program began */
    const volatile sig_atomic_t *stop; /* becomes non-zero to stop after the step; may be NULL */
    const char *evaluate; /* weights to validate, for dl2_evaluate(); NULL: it is a training */
    /* With `evaluate`: file that receives how much the network's loss depends on its input
     * (train/sensitivity.h); NULL: none. */
    const char *sensitivity;
    json_t *origin;     /* what that file says of its run: dl2_checkpoint_origin() */
    bool origin_splits; /* val_fraction and split_seed are that run's: used where they can be */
    /* One model of several: dl2_run_data_hashes() of those before it, whose data it must have;
     * NULL: there are none. Borrowed. */
    const json_t *data_hashes;
    json_t *versions; /* of libraries, for the report; borrowed, may be NULL */
};

struct dl2_train_config {
    struct dl2_train_data data;
    /*
     * Batches, crops, order and reading. The trainer sets what differs between training and
     * validation, and rank, world, decoder and where batches lie. channels 0: 1 where a sample of
     * the training images is all gray; workers 0: one per processor, shared among its ranks; resize
     * is validation's; caches and shuffling are training's.
     */
    struct dl2_loader_config loader;
    struct dl2_decode_choice decode; /* not by the processors: the device must be a card */

    /* Network and device. */
    const char *arch;
    const char *device; /* NULL: the best */
    unsigned threads;   /* the device's; 0: one a processor, shared among its ranks */
    enum dl2_precision precision;
    double loss_scale;  /* DL2_PRECISION_FP16; 0: dynamic */
    bool deterministic; /* the same bits in every run, where a device is quicker otherwise */
    uint64_t memory;    /* that the networks of all models may take together; 0: what there is */
    bool check_device;  /* compare its convolutions with float32 first; `deterministic` does so, too
                         */
    const struct dl2_world *world; /* NULL: alone */
    bool sync_norm;                /* batch norm's statistics over all ranks */

    struct dl2_train_optimizer optimizer;
    uint64_t seed; /* of weights, mixup and dropout; loader.seed: of order and crops */
    struct dl2_train_run run;
};

/* A run, once all is open. */
struct dl2_train_overview {
    const char *arch, *device, *device_version, *variant;
    size_t parameters;
    uint64_t images; /* of the largest stage */
    unsigned classes;
    uint64_t epochs_done; /* by the parts before this one */
};

/* The figures of a validation set. */
struct dl2_train_val {
    const char *name; /* the variant's */
    uint64_t images;  /* without those that cannot be read */
    double loss, top1, top5;
    bool predictions;      /* are in a file of the run's folder */
    uint64_t decoded_hits; /* images that were decoded already; 0 without a cache */
    uint64_t images_sum;   /* equal for the same images of one dataset */
    /* The accuracy (common/accuracy_kind.h), which epochs are ranked by. Where labels are of pixels
     * or voxels, top1 and top5 are parts of those that have one. */
    double score;
};

/* The accuracy of validations, by enum dl2_label_kind. */
extern const struct dl2_accuracy_kind *const dl2_val_accuracies[];

/* A pass that has ended. */
struct dl2_train_epoch {
    uint64_t number;                 /* from 1 */
    double lr, loss, top1, top5;     /* of training; NAN where no image counted */
    double seconds, data_wait;       /* the slowest rank's, and the one's that waited longest */
    double images_per_second;        /* of all ranks; NAN where it took no time */
    const struct dl2_train_val *val; /* no sets: it was not validated */
    size_t val_count;
};

/* What dl2_measure() measured: all passes but the first. NAN where it is not known. */
struct dl2_train_rate {
    double seconds, images;
    double data_wait; /* seconds that training waited for a batch */
    double joules;    /* of the card's board */
};

/* A run that has ended or stopped. */
struct dl2_train_summary {
    const struct dl2_train_val *val; /* of the last pass */
    size_t val_count;
    uint64_t best_epoch; /* with the highest score on the first set, the first of equals; 0: none */
    double best_score;
    double epochs;      /* that it has trained for */
    const char *until;  /* whether the target was reached; NULL: there was none */
    const char *report; /* path */
};

/* What a run trains on, in words for so many of them: "image", "images", "clips", "volumes". */
const char *dl2_train_samples(const struct dl2_train_config *config, uint64_t count);

/*
 * Functions that a run calls as it goes on. Each may be NULL. What the pointers point at is good
 * until the function returns.
 */
struct dl2_train_events {
    void *context;
    /* A dataset was opened: once for each, for dl2_dataset_message(). */
    void (*opened)(void *context, const char *path, const struct dl2_dataset *dataset);
    void (*begun)(void *context, const struct dl2_train_overview *overview);
    /* After each step: batches done out of all of this pass, or of a validation; `what` is "train"
     * or "validate". */
    void (*stepped)(void *context, const char *what, uint64_t done, uint64_t total);
    void (*epoch_ended)(void *context, const struct dl2_train_epoch *epoch);
    void (*measured)(void *context, const struct dl2_train_rate *rate);
    /* The checkpoint and the report are written. */
    void (*ended)(void *context, const struct dl2_train_summary *summary);
    /* The run goes on from its checkpoint, at a batch of an epoch, which count from 0; or, with
     * `found` false, begins anew where config->run.resume found none. Not of models that hop. */
    void (*resumed)(void *context, const char *checkpoint, bool found, uint64_t epoch,
                    uint64_t batch);
    /* A line for the user: what differs from the part before, a sample that cannot be read. */
    void (*note)(void *context, const char *text);
    /* This rank, any of several, failed. Next the run gives up the others, which wait for it; with
     * "mpi" that ends all processes. */
    void (*failed)(void *context, const struct dl2_error *error);
};

struct dl2_train_result {
    bool completed;  /* false: stopped, and can be resumed */
    bool diverged;   /* one of several models, which has ended by itself; a note says why */
    bool stopped;    /* by *config->run.stop, of any rank */
    bool common;     /* the error, if any, is every rank's: all have returned it */
    double position; /* epochs */
};

/* A model to train. */
struct dl2_train_model {
    struct dl2_train_config config;
    struct dl2_train_events events;
    struct dl2_train_result result; /* set by the functions below */
};

/*
 * Trains one. DL2_ERR_ARGUMENT for settings that make no sense together or for these data,
 * DL2_ERR_FORMAT for damaged data or a damaged checkpoint. On an error the last checkpoint and
 * report that were written stay as they are. DL2_ERR_CANCELED: another rank failed.
 * events.failed() was called for errors that are not result.common.
 */
int dl2_train(struct dl2_train_model *model, struct dl2_error *error);

/*
 * Measures how fast it trains for config.run.measure seconds, instead of training to an end: passes
 * of at most so long, the first of which only warms up, until those after it have taken as long.
 * Its stage's epochs are INFINITY. Nothing is validated, resumed, saved or exported, and the report
 * is DL2_RATE_FILE. DL2_ERR_CANCELED where it was stopped before; otherwise as dl2_train().
 */
int dl2_measure(struct dl2_train_model *model, struct dl2_error *error);

/* Validates the weights of the file config.run.evaluate, trains nothing, and writes
 * DL2_EVALUATION_FILE: there are no stages, and at least one set in `val`. */
int dl2_evaluate(struct dl2_train_model *model, struct dl2_error *error);

/*
 * Trains several models in turns. They train on one stream of batches: each batch is loaded,
 * decoded and cropped once for all. With own_batches only decoded images are shared, as far as the
 * cache holds them. Each model has the run, the folder and, bit for bit, the weights that
 * dl2_train() gives it alone. The configs agree in all that data, loading, device and validation
 * are chosen by, image size and batch included, but for loader.seed with own_batches; they have one
 * stage, strict batching and no world, time budget, measure or evaluation. A model whose loss
 * becomes NaN or infinite ends alone; any other error ends all of them.
 */
int dl2_train_models(struct dl2_train_model *models, size_t count, struct dl2_error *error);

#endif
