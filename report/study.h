/* SPDX-License-Identifier: BSD-2-Clause */
/* A study's results by variant and by training, as report/collect.h finds them. Figures are NAN
 * where they aren't known. */
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
    char *own_codec;   /* what `codec` is, where it is not another's text; or NULL */
    int quality;       /* 1 to 100; 0 where there is none */
    bool resized;      /* its scores are against the resized original, so they do not compare */
    json_t *made;      /* dl2-variant/1, or NULL (always for raw) */
    int64_t made_ns;   /* that file's modification time */
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

enum { DL2_STUDY_ABSENT = 2 };

/* One training that ended. */
struct dl2_study_run {
    size_t variant;
    char *arch;
    uint64_t seed;
    char *path;            /* of its report */
    json_t *report;        /* dl2-experiment/1 */
    int64_t made_ns;       /* the file's modification time */
    unsigned trainers;     /* most that shared the machine at a time; 0: not recorded */
    double accuracy, top5; /* last epoch, first validation set; fractions */
    double seconds;        /* all epochs */
    double train_images, val_images;
    size_t epochs;
    double *val_accuracy; /* [epochs] */
    /* Of each of `images` validation images whether top-1 is right: 1, 0, or DL2_STUDY_ABSENT. The
     * images are the same, in the same order, for all runs of a network; NULL: not known. */
    uint8_t *correct;
    float *loss; /* of each of them the cross-entropy, nats; NAN where it is absent; or NULL */
    size_t images;
    /* The same on the original's validation images, of runs on variants. */
    bool on_original; /* it was validated on them, too */
    double original_accuracy;
    uint8_t *original_correct; /* NULL: not known */
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
    char **archs; /* sorted */
    size_t arch_count;
    struct dl2_prediction_table *images; /* [arch_count]: what the runs' `correct` is of */
    char *grouped; /* in sentences, how images count as groups; NULL: each is by itself */
    struct dl2_study_failure *failures;
    size_t failure_count;
    struct dl2_texts broken;     /* files that should be there and whole, and aren't: "FILE: why" */
    struct dl2_texts unfinished; /* trainings and variants that were cut short */
    struct dl2_texts left_out;   /* results of another study, or not comparable: "WHICH: why" */
    json_t *quality;             /* a dl2-quality/1 without the variants; or NULL */
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

/* Of all its trainings. */
const struct dl2_accuracy_kind *dl2_study_accuracy(const struct dl2_study *study);

/* Is it one of volumes, by what dl2-quality scored? */
bool dl2_study_has_volumes(const struct dl2_study *study);

/* The index of the variant `name`, or study->variant_count. */
size_t dl2_study_find(const struct dl2_study *study, const char *name);
/* The index of the network, or study->arch_count. */
size_t dl2_study_find_arch(const struct dl2_study *study, const char *arch);

/* The training on variant `v` with a network that has the lowest seed; NULL: there is none. */
const struct dl2_study_run *dl2_study_first_run(const struct dl2_study *study, size_t v,
                                                const char *arch);

/* The training on variant `v` with a network from a seed; NULL: there is none with an accuracy. */
const struct dl2_study_run *dl2_study_run_of(const struct dl2_study *study, size_t v,
                                             const char *arch, uint64_t seed);

/* Is variant `v` the first of its codec? The original isn't of any. */
bool dl2_study_starts_codec(const struct dl2_study *study, size_t v);

/* One after the last variant of the codec that `first` is of. */
size_t dl2_study_end_of_codec(const struct dl2_study *study, size_t first);

/* -- for what fills a study -- */

/* Adds to study->broken, or returns what is no matter of a file: that memory ran out. */
int dl2_study_note_broken(struct dl2_study *study, const struct dl2_error *why,
                          struct dl2_error *error);
/* `what` failed in "STAGE NAME"; `why` may be NULL. */
int dl2_study_add_failure(struct dl2_study *study, const char *stage, const char *name,
                          const char *what, const char *why, struct dl2_error *error);
/* Names a result in left_out, once. */
DL2_PRINTF(3, 4)
int dl2_study_leave_out(struct dl2_study *study, struct dl2_error *error, const char *format, ...);
/* Adds what went wrong in `other`, a part of the study that was collected by itself; `where` says
 * which. */
int dl2_study_add_notes(struct dl2_study *study, const struct dl2_study *other, const char *where,
                        struct dl2_error *error);

void dl2_study_free_run(struct dl2_study_run *run);
void dl2_study_remove_run(struct dl2_study *study, size_t index);
void dl2_study_free(struct dl2_study *study);

/* Reads the variant's quality file once more. Returns its entry, with the images, borrowed from
 * *file, which is to free; NULL: there is none, or it is of resized images, whose scores do not
 * compare. */
const json_t *dl2_study_scores(const struct dl2_study_variant *variant, json_t **file);

#endif
