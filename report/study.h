/* SPDX-License-Identifier: BSD-2-Clause */
/* A study's results by variant and by training. Figures are NAN where they aren't known. */
#ifndef DL2_REPORT_STUDY_H
#define DL2_REPORT_STUDY_H

#include "common/accuracy_kind.h"
#include "common/error.h"
#include "report/prediction_table.h"
#include "report/rounds.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_study_variant {
    char *name; /* "jpeg-50", or "raw": the dataset as it was given */
    /* What it is one of a sequence of: "jpeg"; with settings or of resized images
     * "jpeg_444@320"; "raw" */
    const char *codec;
    int quality;       /* 1 to 100; 0 where there is none */
    bool resized;      /* its scores are against the resized original, so they do not compare */
    json_t *made;      /* dl2-variant/1, or NULL (always for raw) */
    int64_t made_ns;   /* that file's modification time */
    char *list_path;   /* of the list of its images beside it */
    json_t *scored;    /* its entry of dl2-quality/1 without the images, or NULL */
    char *scored_path; /* the file that it is from, or NULL */
    json_t *loaded;    /* dl2-load/1, or NULL */
    double images, pixels, bytes;    /* pixels of the original's images */
    double bits_per_pixel;           /* of these pixels */
    double ratio;                    /* bytes over the original's */
    double psnr_rgb;                 /* mean over images, dB */
    double ssim;                     /* mean over images */
    double volume_psnr, volume_ssim; /* the same of volumes */
    double load_rate;      /* images a second and core of the input pipeline, measured once */
    double encode_seconds; /* CPU seconds */
};

/* One training that ended. */
struct dl2_study_run {
    size_t variant;
    char *arch;
    uint64_t seed;
    char *path;        /* of its report */
    json_t *report;    /* dl2-experiment/1 */
    int64_t made_ns;   /* the file's modification time */
    unsigned trainers; /* most that shared the machine at a time; 0: not recorded */
    /* Last epoch, first validation set; as common/accuracy_kind.h has it, top-5 a fraction. */
    double accuracy, top5;
    bool diverged;  /* by dl2_study_mark_diverged() */
    double seconds; /* all epochs */
    double train_images, val_images;
    size_t epochs;
    double *val_accuracy; /* [epochs] */
    /* The part of each of `images` validation images in the accuracy, their mean: 1 or 0
     * by whether top-1 is right, or the outcome of a foreign metric; NAN: absent. The images are
     * the same, in the same order, for all runs of a network; NULL: not known. */
    float *outcome;
    float *loss; /* of each of them the cross-entropy, nats; NAN where it is absent; or NULL */
    size_t images;
    /* The accuracy on resamples of the validation images, the same ones for all runs of a network
     * (docs/formats/study.md); NULL: not known. */
    double *resamples;
    size_t resample_count;
    /* The same on the original's validation images, of runs on variants. */
    bool on_original; /* it was validated on them, too */
    double original_accuracy;
    float *original_outcome;    /* NULL: not known */
    double *original_resamples; /* [resample_count]; NULL: not known */
    /* [variant_count]: accuracy on the validation images of each variant, a fraction, NAN where it
     * was not evaluated on them. NULL: on none. */
    double *evaluated;
};

/* Something that went wrong in a stage: a file that couldn't be read, a missing partner... */
struct dl2_study_failure {
    char *stage; /* "transcode jpeg-50" */
    char *what;  /* the file or sample, and why */
};

struct dl2_study {
    struct dl2_study_variant *variants; /* raw first, then by codec and quality */
    size_t variant_count;
    struct dl2_study_run *runs; /* by variant, network, seed */
    size_t run_count;
    const struct dl2_accuracy_kind *accuracy; /* of all of them; NULL: top-1 */
    bool as_it_is; /* its runs are evaluations of networks as they are: nothing was trained */
    char **archs;  /* sorted */
    size_t arch_count;
    struct dl2_prediction_table *images; /* [arch_count]: what the runs' `outcome` is of */
    char *grouped; /* in sentences, how images count as groups; NULL: each is by itself */
    struct dl2_study_failure *failures;
    size_t failure_count;
    struct dl2_words broken;     /* files that should be there and whole, and aren't: "FILE: why" */
    struct dl2_words unfinished; /* trainings and variants that were cut short */
    struct dl2_words late;       /* sentences on those variants that a time limit has cut short */
    struct dl2_words left_out;   /* results of another study, or not comparable: "WHICH: why" */
    json_t *quality;             /* a dl2-quality/1 without the images' scores; or NULL */
    struct dl2_rounds rounds;    /* the speeds of loading and training, each measured alone */
};

/* Did others share the machine while it trained, or is that not known? Then what a card tells of
 * itself is not of this training alone. */
bool dl2_study_run_shared(const struct dl2_study_run *run);

/* A set of validation images: by its path, or by its name where the path is not known. */
struct dl2_val_set {
    const char *path, *name; /* borrowed from the run */
};

/* What a run's `set`-th result of "final" is of: the first is its own variant, or the original. */
struct dl2_val_set dl2_study_val_set(const struct dl2_study_run *run, size_t set);
bool dl2_val_set_equal(const struct dl2_val_set *a, const struct dl2_val_set *b);

/* The kind of accuracy of all its trainings. */
const struct dl2_accuracy_kind *dl2_study_accuracy(const struct dl2_study *study);

/* Is it one of volumes, by what dl2-quality scored? */
bool dl2_study_has_volumes(const struct dl2_study *study);

/* The index of the variant `name`, or study->variant_count. */
size_t dl2_study_find(const struct dl2_study *study, const char *name);
/* The index of the network, or study->arch_count. */
size_t dl2_study_find_arch(const struct dl2_study *study, const char *arch);

/* The trainings on variant `v` with a network, by seed: a stretch of study->runs. */
struct dl2_runs {
    const struct dl2_study_run *at; /* NULL: there are none */
    size_t count;
};
struct dl2_runs dl2_study_runs(const struct dl2_study *study, size_t v, const char *arch);

/* The training on variant `v` with a network from a seed; NULL: there is none with an accuracy. */
const struct dl2_study_run *dl2_study_run_of(const struct dl2_study *study, size_t v,
                                             const char *arch, uint64_t seed);

/* Is variant `v` the first of its codec? The original isn't of any. */
bool dl2_study_starts_codec(const struct dl2_study *study, size_t v);

/* One after the last variant of the codec that `first` is of. */
size_t dl2_study_end_of_codec(const struct dl2_study *study, size_t first);

/* -- how trainings of one variant and network went: means over their seeds -- */

/* The epochs of the longest; 0: there is none. */
size_t dl2_runs_epochs(struct dl2_runs runs);

/* 100 times the validation accuracy after epoch `epoch`; NAN: none was validated then. */
double dl2_runs_accuracy(struct dl2_runs runs, size_t epoch);

/* Seconds of training; NAN: there is none, or others shared the machine. */
double dl2_runs_seconds(struct dl2_runs runs);

/* Epochs that were seen, parts of one included; NAN: there are none. */
double dl2_runs_seen(struct dl2_runs runs);

/*
 * Seconds since the start, validation included, and accuracy, a fraction, after epoch `epoch` of
 * each, or after its last one (SIZE_MAX). False: one has no such epoch, or was not validated then.
 */
bool dl2_runs_at(struct dl2_runs runs, size_t epoch, double *seconds, double *accuracy);

/* -- for what fills a study -- */

enum { DL2_WALK_DEPTH = 3 };
/* Visits what lies in `folder`, in the order of `ls -v`; nothing where there is no such folder.
 * names[0 .. depth] lead to `path`. True: it is a folder to go down into. */
typedef bool dl2_visit(void *context, const char *path, const char *const *names, size_t depth);
void dl2_walk(const char *folder, dl2_visit *visit, void *context);

/* Adds an error, if it is one, to study->broken. */
void dl2_study_note_broken(struct dl2_study *study, const struct dl2_error *why);
/* `what` failed in "STAGE NAME"; `why` may be NULL. */
void dl2_study_add_failure(struct dl2_study *study, const char *stage, const char *name,
                           const char *what, const char *why);
/* Names a result in left_out, once. */
DL2_PRINTF(2, 3)
void dl2_study_leave_out(struct dl2_study *study, const char *format, ...);
/* Adds what went wrong in `other`, a part of the study that was collected by itself; `where` says
 * which. */
void dl2_study_add_notes(struct dl2_study *study, const struct dl2_study *other, const char *where);
void dl2_study_remove_run(struct dl2_study *study, size_t index);

/* Reads the variant's quality file once more. Returns its entry, with the images, borrowed from
 * *file, which is to free; NULL: there is none, or it is of resized images, whose scores do not
 * compare. */
const json_t *dl2_study_scores(const struct dl2_study_variant *variant, json_t **file);

/*
 * A study's results: every JSON file of docs/formats.md below its folder, put together by variant
 * and by training. What is missing is left out; what is broken is noted, and the rest still counts.
 *
 * A folder may hold results of several studies: with other codecs, seeds or epochs. Only those that
 * were asked for are taken, and of them only those that can be compared: trainings of one network
 * that differ in nothing but data, seed and what can't bear on accuracy, on variants that were made
 * from the same images with the same settings, and loading that was measured as the original's was.
 * All else is named in `left_out`.
 */

/* The parts of a study. Lists end with NULL; a list that is NULL: all there is. */
struct dl2_study_selection {
    char *const *variants;  /* "raw", "jpeg-50" */
    char *const *trainings; /* "jpeg-50/resnet10/seed-1" */
    /* Trainings of a goal that have no sizes of their own; regimens have names of their own. */
    bool is_condition;
};

/*
 * Reads what lies below `folder` and is in `selection` (NULL: all). Fails only where there's no
 * such folder, or nothing in it; for all else look at `broken`.
 */
int dl2_study_collect(const char *folder, const struct dl2_study_selection *selection,
                      struct dl2_study *study, struct dl2_error *error);

/*
 * Which results of a study can be compared with each other. What cannot is taken out and named in
 * study->left_out.
 *
 * Trainings of one network are comparable where they differ in nothing but data, seed and what
 * cannot bear on accuracy, on variants that were made from the same images with the same settings.
 * Speeds are comparable where they were measured as the original's were.
 */

/* Takes out all other trainings. Of those that are kept, numbers of images that differ from the
 * original's are noted as failures. Variants, runs and archs must be sorted. */
void dl2_study_keep_comparable_trainings(struct dl2_study *study);

/*
 * Marks trainings that diverged: their loss is not a number, or their accuracy is less than half
 * way from chance to the median of the variant's other seeds, and by at least 5 points and 6
 * standard errors below that median. They count as the other trainings do, but say nothing of how
 * much those vary.
 */
void dl2_study_mark_diverged(struct dl2_study *study);

/* Takes out trainings whose figures are those of another seed, and names them in study->broken. */
void dl2_study_leave_out_copies(struct dl2_study *study);

/* Names in study->broken, with where they are expected, trainings on the original and sizes of
 * variants that were trained on, if there are none. */
void dl2_study_name_missing(struct dl2_study *study, const char *folder);

/* Takes out the scores of files that a variant had before, by the sum of their bytes. */
void dl2_study_keep_scores_of_today(struct dl2_study *study);

/* Takes out the variants' other rates of loading. */
void dl2_study_keep_comparable_loading(struct dl2_study *study);

/* Is study->rounds.items[index]? Else it is named; the caller drops it. */
bool dl2_study_round_is_comparable(struct dl2_study *study, size_t index);

/*
 * In what two studies of different datasets differ that bears on accuracy: "epochs is 6, not 2", or
 * "" where they are alike. What goes with a dataset (its classes, channels, split, the mean of its
 * pixels) may differ. Of the trainings of a network that both have, and of how a variant was made
 * that both have.
 */
void dl2_study_compare_trainings(const struct dl2_study *study, const struct dl2_study *reference,
                                 const char *arch, char *out, size_t size);
void dl2_study_compare_variants(const struct dl2_study_variant *variant,
                                const struct dl2_study_variant *reference, char *out, size_t size);

#endif
