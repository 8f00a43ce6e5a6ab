/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of a study: a graph of steps, each with its commands, the files that it makes and those
 * that it needs. Goals build it, an engine (study/engine.h) walks it, and OUT/study-plan.json has
 * it for others, as docs/formats/study.md describes.
 *
 * Files are what counts: a step is to be done if one of its outputs is not there, is not whole, or
 * is older than an input, or if an input is to be made. Two kinds of input have a file whose time
 * is when they last changed: the dataset, OUT/.make/dataset, by its fingerprint; and the settings
 * that bear on a stage, OUT/.make/STAGE, by their text.
 */
#ifndef DL2_STUDY_PLAN_H
#define DL2_STUDY_PLAN_H

#include "study/settings.h"

struct dl2_commands {
    struct dl2_words *at;
    size_t count;
};
void dl2_commands_add(struct dl2_commands *commands, struct dl2_words command);

/* A program whose speed is measured. In its command {file}, {work}, {round} and {cache} stand for
 * the result, a folder to work in, the round, and bytes. */
struct dl2_measurement {
    const char *path; /* in the step's folder, of its results: "load/raw" */
    struct dl2_words command;
    const char *cache; /* percent of the original's bytes, or NULL */
    bool trains;       /* by dl2-train, not dl2-load */
    bool once;         /* in the first round alone */
    bool may_fail;     /* then its result is the reason */
};

/* What a step does not have is NULL, 0 or false. */
struct dl2_step {
    const char *name;         /* unique: "train/raw/resnet10/seed-1" */
    const char *work;         /* how it is done: one of study/work.c */
    struct dl2_words outputs; /* files that it makes */
    struct dl2_words inputs;  /* files that it needs, also for its age */
    struct dl2_words after;   /* files that have to be there before, however old */
    struct dl2_commands commands;
    bool needed;           /* to be done, as files were when the plan was made */
    bool reads_facts;      /* of variants alone, which are there without their images */
    bool may_fail_in_part; /* exit status 1 is no failure: unreadable images are in the results */
    const char *settings;  /* that bear on it */
    const char *says;      /* a line on stdout before it is done */
    const char *log;       /* file of what its commands print */
    const char *output;    /* file of what the last command prints on stdout */

    /* Resources */
    bool alone;       /* nothing runs beside it */
    bool uses_device; /* it computes on DEVICE */
    unsigned threads; /* of a step that is not alone */
    bool asks;        /* it may ask on the terminal, as sudo does */

    /* Only some kinds of work use these: */
    const char *clears;        /* run, trainer: a folder to remove before */
    const char *identity;      /* dataset: what it is */
    struct dl2_words identify; /* dataset: the command that prints its fingerprint */
    bool elsewhere;            /* variants: they lie at an address */
    const char *label;         /* training: its name in messages */
    const char *subset_of;     /* training: the report of the one whose bytes it is to have */
    json_t *trainer;           /* trainer: what its report begins with */
    unsigned retries, limit;   /* trainer, training: more attempts; seconds of each, or 0 */
    unsigned rounds;           /* measure */
    struct dl2_measurement *cells;
    size_t cell_count;

    /* Positions in the plan of steps that are to be done before; of dl2_plan_end(). */
    size_t *needs;
    size_t need_count;
};

struct dl2_study_plan {
    const struct dl2_study_settings *study; /* NULL: the plan was loaded */
    const char *out;                        /* the study's folder */
    unsigned trainers;                      /* steps at once that are not alone */
    bool quiet;                             /* nothing is said of how far it is */
    bool timeline;                          /* each step writes one to OUT/timelines */
    struct dl2_words goals;                 /* that were asked for */
    struct dl2_words runs;                  /* the trainings: "raw/resnet10/seed-1" */
    bool remakes;                           /* variants whose images were removed */
    const char *command;                    /* that makes the study again */
    const char *interim;     /* numbers of seeds after which DECIDE looks: "2,3,4"; or NULL */
    struct dl2_step **steps; /* in an order in which they can be done */
    size_t count;
    json_t *changed;          /* {STAGE: text} of the stages whose settings are other than before */
    json_t *coming;           /* {PATH: true} of files that will be made */
    struct dl2_words targets; /* files that the goals ask for */
    struct dl2_words shown;   /* of them, those whose contents are the goals' answer */
    bool has_report;          /* and whether the report's answer is */
};

void dl2_plan_begin(struct dl2_study_plan *plan, const struct dl2_study_settings *study,
                    struct dl2_words goals);
/* Leaves in the plan what its targets need. */
void dl2_plan_end(struct dl2_study_plan *plan);

/* A file in the folder of a variant whose images were removed; its facts are there. */
#define DL2_IMAGES_REMOVED ".removed"
bool dl2_plan_is_removed(const char *facts);
/* Do a variant's facts say that a time limit ended it before it had all images? */
bool dl2_plan_is_late(const char *facts);
/* Does a step that is to be done read or make such a variant? */
bool dl2_plan_misses(const struct dl2_study_plan *plan);

/* How many steps are to be done. */
size_t dl2_plan_needed(const struct dl2_study_plan *plan);
/* Prints the steps that are to be done, with their commands. */
void dl2_plan_print(const struct dl2_study_plan *plan);
/* Writes OUT/study-plan.json, and reads what engines and dl2_progress_text() need of it. */
void dl2_plan_save(const struct dl2_study_plan *plan);
void dl2_plan_read(struct dl2_study_plan *plan, const char *out);
/* Writes the settings that have changed, so that their files have the time of now. */
void dl2_plan_save_settings(const struct dl2_study_plan *plan);

/* ---- To make steps */

/* A new step, which is done alone by `work`, with its first output; NULL: none yet. NULL if the
 * plan has one of this name. */
struct dl2_step *dl2_plan_step(struct dl2_study_plan *plan, const char *name, const char *work,
                               const char *output);
/* Adds what the list, as a step's inputs, does not have yet. */
void dl2_files_add(struct dl2_words *files, const char *path);
void dl2_files_add_all(struct dl2_words *files, struct dl2_words paths);
/* The step depends on these settings; outside of quotes a blank more or less is no change. */
void dl2_plan_settings(struct dl2_study_plan *plan, struct dl2_step *step, const char *stage,
                       const char *text);
/* The path of a stage's file. */
const char *dl2_plan_stage(const struct dl2_study_plan *plan, const char *stage);

/* Whether a file is to be made that needs `inputs`; `again` if what there is of it is not whole. */
bool dl2_plan_wants(const struct dl2_study_plan *plan, const char *output, struct dl2_words inputs,
                    bool again);
/* Ends a step: whether it is to be done; `again` as above. */
void dl2_plan_close(struct dl2_study_plan *plan, struct dl2_step *step, bool again);

/* A command of a program of dl2 and the words up to NULL. */
struct dl2_words dl2_study_words(const struct dl2_study_settings *study, const char *program, ...)
    __attribute__((sentinel));

/* ---- The stages; each adds its steps once, with those that it needs, and returns their outputs */

const char *dl2_plan_dataset(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_survey(struct dl2_study_plan *plan);
/* Quantization tables of a kind, "pipeline" or "network". */
const char *dl2_plan_tables(struct dl2_study_plan *plan, const char *kind);
struct dl2_words dl2_plan_variants(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_quality(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_load(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_throughput(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_trainings(struct dl2_study_plan *plan, const struct dl2_words *after);
/* Validates each network of the plan's trainings on every variant. */
struct dl2_words dl2_plan_matrix(struct dl2_study_plan *plan);
/* The report of all that is there, made again if one of `inputs` is newer. */
void dl2_plan_report(struct dl2_study_plan *plan, struct dl2_words inputs);

/* The file whose time is that of a variant, or of raw. */
const char *dl2_plan_place_file(struct dl2_study_plan *plan, const char *name);

/* ---- Trainings of goals of their own */

struct dl2_training {
    const char *stage; /* the settings that bear on it */
    const char *root;  /* OUT/GOAL/CONDITION: results go to ROOT/train/NAME/ARCH/seed-S */
    const char *name;  /* of a variant, or what stands for one */
    const char *arch, *seed;
    struct dl2_words on;      /* options that say what it trains on */
    struct dl2_words lasting; /* and for how long */
    const char *validated;    /* the variant to validate on */
    struct dl2_words inputs;  /* files that it needs beside its stage's */
    struct dl2_words after;
    bool alone; /* it measures time, so nothing runs beside it */
};

/* Adds one of the study's own, "raw/resnet10/seed-1", and returns its report's path; `after` may be
 * NULL. */
const char *dl2_plan_run(struct dl2_study_plan *plan, const char *run,
                         const struct dl2_words *after);
/* Adds the step; returns its report's path. `settings` is the stage's. */
const char *dl2_plan_training(struct dl2_study_plan *plan, const struct dl2_training *training,
                              const char *settings, const char *subset_of);
/* A training of the study, "jpeg-10/resnet10/seed-1", without how long it lasts. */
struct dl2_training dl2_training_of_run(struct dl2_study_plan *plan, const char *run,
                                        const char *stage, const char *root);
/* The study's seeds, smallest first. */
struct dl2_words dl2_seeds_in_order(const struct dl2_study_settings *study);
/* "--data PLACE". */
struct dl2_words dl2_training_on(const struct dl2_study_settings *study, const char *name);

/* ---- Speeds, in rounds */

/* One of a plan's cells, which is measured once in each round: to FOLDER/PATH/round-1.json... */
struct dl2_cell {
    const char *path;
    const char *arch;         /* of dl2-train measure; NULL: dl2-load bench */
    const char *name;         /* of a variant, or raw */
    const char *place;        /* where it is; NULL: where the study has it */
    const char *workers;      /* threads */
    struct dl2_words options; /* more of them */
    const char *cache;        /* percent of the original's bytes, for --cache; or NULL */
    bool once;                /* in the first round alone */
    const char *limit;        /* bytes of memory, the page cache included; or NULL */
    struct dl2_words by;      /* the command that loads in the place of dl2-load bench, or none */
};
void dl2_step_cell(const struct dl2_study_plan *plan, struct dl2_step *step,
                   const struct dl2_cell *cell);
/* Those of a variant, or raw: of loading, and of training each network, with the cell's options.
 * Paths begin with the cell's. */
void dl2_step_cells(const struct dl2_study_plan *plan, struct dl2_step *step,
                    const struct dl2_cell *cell);
/* A step that writes OUT/TASK.txt, what `dl2-report TASK OUT` prints, once `input` is there.
 * Returns that file. */
const char *dl2_plan_table(struct dl2_study_plan *plan, const char *task, const char *input);
/* The step measures the cells that follow, in the study's rounds. */
void dl2_step_rounds(const struct dl2_study_plan *plan, struct dl2_step *step);

#endif
