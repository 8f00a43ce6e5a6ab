/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of a study: steps, each with its commands, the files that it makes and those that it
 * needs. A step is a JSON object, as docs/formats.md describes it, since it goes from here to
 * OUT/study-plan.json, and from there to `dl2-study do`.
 *
 * Files are what counts: a step is to be done if one of its outputs is not there, is not whole, or
 * is older than an input, or if an input is to be made. Settings are files, too: OUT/.make/STAGE
 * holds those that bear on a stage, and its time is when they last changed.
 */
#ifndef DL2_STUDY_PLAN_H
#define DL2_STUDY_PLAN_H

#include "study/settings.h"

struct dl2_study_plan {
    const struct dl2_study_settings *study;
    struct dl2_words goals; /* that were asked for */
    struct dl2_words runs;  /* the trainings: "raw/resnet10/seed-1" */
    const char *command;    /* that makes the study again */
    json_t *settings;       /* as JSON; owned */
    bool quiet;             /* nothing is said of how far it is */
    const char *interim;    /* numbers of seeds after which DECIDE looks: "2,3,4"; or NULL */
    json_t *steps;          /* in an order in which they can be done */
    json_t *stages;  /* name: its settings as a text; those whose file differs are in `changed` */
    json_t *changed; /* {STAGE: text} */
    json_t *coming;  /* {path: name of the step that will make it} */
    struct dl2_words targets; /* files that the goals ask for */
    struct dl2_words shown;   /* of them, those whose contents are the goals' answer */
    bool has_report;          /* and whether the report's answer is */
};

void dl2_plan_begin(struct dl2_study_plan *plan, const struct dl2_study_settings *study,
                    struct dl2_words goals);
void dl2_plan_discard(struct dl2_study_plan *plan);
/* Leaves in the plan what its targets need. */
void dl2_plan_end(struct dl2_study_plan *plan);

/* How many steps are to be done. */
size_t dl2_plan_needed(const struct dl2_study_plan *plan);
/* "57 steps, 12 to be done" */
const char *dl2_plan_summary(const struct dl2_study_plan *plan);
void dl2_plan_save(const struct dl2_study_plan *plan, const char *path);

/* ---- To make steps */

/* A new step, which `work` in work.c does, with its first output; NULL: none yet. NULL if the plan
 * has one of this name. */
json_t *dl2_plan_step(struct dl2_study_plan *plan, const char *name, const char *work,
                      const char *output);
/* Adds to the step's outputs, inputs, or `after`: what has to be there, however old. */
void dl2_step_add(json_t *step, const char *list, const char *path);
void dl2_step_add_all(json_t *step, const char *list, struct dl2_words paths);
void dl2_step_set(json_t *step, const char *key, const char *text);
void dl2_step_command(json_t *step, struct dl2_words command);
/* The step depends on these settings; a blank more or less is no change. */
void dl2_plan_settings(struct dl2_study_plan *plan, json_t *step, const char *stage,
                       const char *text);
/* The path of a stage's file. */
const char *dl2_plan_stage(const struct dl2_study_plan *plan, const char *stage);

/* Whether a file is to be made that needs `inputs`; `again` if what there is of it is not whole. */
bool dl2_plan_wants(const struct dl2_study_plan *plan, const char *output, const json_t *inputs,
                    bool again);
/* Ends a step: whether it is to be done. */
void dl2_plan_close(struct dl2_study_plan *plan, json_t *step, bool again);

/* A command of a program of dl2 and the words up to NULL. */
struct dl2_words dl2_study_words(const struct dl2_study_settings *study, const char *program, ...)
    __attribute__((sentinel));

/* ---- The stages; each adds its steps once, with those that it needs, and returns their outputs */

const char *dl2_plan_dataset(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_survey(struct dl2_study_plan *plan);
/* Quantisation tables of a kind, "pipeline" or "network". */
const char *dl2_plan_tables(struct dl2_study_plan *plan, const char *kind);
struct dl2_words dl2_plan_variants(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_quality(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_load(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_throughput(struct dl2_study_plan *plan);
struct dl2_words dl2_plan_trainings(struct dl2_study_plan *plan, const struct dl2_words *after);
/* Of the plan's trainings: each network on every variant. */
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
    const char *arch;         /* of dl2-train --measure; NULL: dl2-load bench */
    const char *name;         /* of a variant, or raw */
    const char *place;        /* where it is; NULL: where the study has it */
    const char *workers;      /* threads */
    struct dl2_words options; /* more of them */
    const char *cache;        /* percent of the original's bytes, for --cache; or NULL */
    bool once;                /* in the first round alone */
    const char *limit;        /* bytes of memory, the page cache included; or NULL */
};
void dl2_step_cell(const struct dl2_study_plan *plan, json_t *step, const struct dl2_cell *cell);
/* Those of a variant, or raw: of loading, and of training each network, with the cell's options.
 * Paths begin with the cell's. */
void dl2_step_cells(const struct dl2_study_plan *plan, json_t *step, const struct dl2_cell *cell);
/* The step measures the cells that follow, in the study's rounds. */
void dl2_step_rounds(const struct dl2_study_plan *plan, json_t *step);

#endif
