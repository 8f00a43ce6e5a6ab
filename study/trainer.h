/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trainer of the user's: a command that trains, or evaluates, in the place of dl2-train. What it
 * is told stands in its words (%d) and in the environment (DL2_DATA); what it hands back is read by
 * study/result.h once it has exited with status 0, which alone says that it is complete.
 *
 * Who it is, its words and the contents of its files, is a setting that results depend on.
 */
#ifndef DL2_STUDY_TRAINER_H
#define DL2_STUDY_TRAINER_H

#include "study/plan.h"

/* What it is told. */
enum dl2_told_number {
    DL2_TOLD_DATA,
    DL2_TOLD_VAL,
    DL2_TOLD_ORIGINAL,
    DL2_TOLD_VARIANT,
    DL2_TOLD_ARCH,
    DL2_TOLD_SEED,
    DL2_TOLD_OUT,
    DL2_TOLD_THREADS,
    DL2_TOLD_EPOCHS,
    DL2_TOLD_BATCH,
    DL2_TOLD_IMAGE_SIZE,
    DL2_TOLD_DEVICE,
    DL2_TOLD_ATTEMPT,
    DL2_TOLD_COUNT
};
extern const struct dl2_told_value {
    char letter; /* of its placeholder */
    const char *variable, *what;
} dl2_told[DL2_TOLD_COUNT];
/* The one of a letter; DL2_TOLD_COUNT: there is none. */
size_t dl2_told_of_letter(char letter);

struct dl2_trainer {
    const char *variable;     /* that it was given by: "TRAIN_WITH" */
    const char *text;         /* as it was given */
    bool evaluates;           /* a network as it is; nothing is trained */
    struct dl2_words command; /* as given, with placeholders */
    const char *result;       /* RESULT, or "result.json" */
    json_t *files;            /* {PATH: sha256}: what the command names, and TRAIN_FILES */
    bool resumes;             /* it learns of an earlier attempt, whose files are left to it */
    const char *identity;     /* all this as a setting's text */
};

/* The "seed" of evaluations. */
#define DL2_SEED_OF_INFERENCE "0"

/* Whether there is one, and what other settings are then unless they are given. */
bool dl2_trainer_is_given(const struct dl2_study_options *options);
void dl2_trainer_defaults(struct dl2_study_options *options);

/* TRAIN_WITH, EVALUATE_WITH or WEIGHTS, checked; NULL where none is given. Ends the program as
 * other settings do. */
const struct dl2_trainer *dl2_trainer_resolve(const struct dl2_study_settings *study);

/* SENSITIVITY_WITH, which writes this file into %o of the original's first training, or NULL; after
 * TABLES. */
#define DL2_SENSITIVITY_FILE "sensitivity.json"
const struct dl2_trainer *dl2_trainer_resolve_sensitivity(const struct dl2_study_settings *study);

/* Whether the command or one of its files, of at most 1 MiB, has the text. */
bool dl2_trainer_names(const struct dl2_trainer *trainer, const char *name);
/* Says on stderr what a script that does not load by dl2 reads in another way, or not at all. */
void dl2_trainer_say_readers(const struct dl2_study_settings *study);

/* The command with all but %a filled in, for one of `at_once` trainings, its results in `out`. */
struct dl2_words dl2_trainer_command(const struct dl2_study_settings *study,
                                     const struct dl2_trainer *trainer,
                                     const struct dl2_training *training, const char *out,
                                     unsigned at_once);
/* What the report of it begins with: all that is known before it runs. Kept. */
json_t *dl2_trainer_report(const struct dl2_study_settings *study,
                           const struct dl2_trainer *trainer, const struct dl2_training *training,
                           unsigned at_once);

/* The command to run, of what dl2_trainer_command() made. */
struct dl2_words dl2_trainer_attempt(struct dl2_words command, unsigned attempt);
/* sha-256 of a file in hexadecimal digits; NULL if it cannot be read. */
const char *dl2_trainer_sum(const char *path);

#endif
