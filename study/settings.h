/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A study's settings: what the user says, and what follows from it. Each is an option of dl2-study,
 * and a variable of make: --image-size and IMAGE_SIZE.
 */
#ifndef DL2_STUDY_SETTINGS_H
#define DL2_STUDY_SETTINGS_H

#include "common/option.h"
#include "study/text.h"

enum { DL2_MAX_GOALS = 32, DL2_MAX_GOAL_VARIABLES = 6 };

struct dl2_trainer;

/* As given. NULL: not given. */
struct dl2_study_options {
    const char *dataset, *out, *variants, *codecs, *external, *qualities, *shorts, *control,
        *tables, *train_on;
    const char *archs, *epochs, *seeds, *decide, *forecast, *budget;
    const char *train_with, *evaluate_with, *weights, *result, *train_files, *sensitivity_with,
        *gpus, *gpus_each, *retries, *train_limit, *encode_limit;
    const char *image_size, *batch, *device, *trainers, *rounds, *measure, *tolerance, *group;
    const char *transcode_flags, *quality_flags, *load_flags, *train_flags, *report_flags;
    const char *programs, *engine, *checkout, *timeline;
    unsigned jobs; /* 0: one for each processor */
    struct dl2_goal_values {
        const char *at[DL2_MAX_GOAL_VARIABLES];
    } of_goals[DL2_MAX_GOALS]; /* the goals' own variables, in the registry's order */
};

/* A study: its options with every default filled in, checked, and what follows from them. */
struct dl2_study_settings {
    struct dl2_study_options options;
    struct dl2_study_options given; /* as they were before */
    const char *scripts;            /* folder of the scripts that come with dl2-study, or NULL */
    const char *about;              /* a sentence on the dataset for the report, or NULL */

    struct dl2_words archs, seeds, train_on;
    bool has_qualities; /* any of the codecs */
    unsigned jobs, trainers, rounds;
    /* TRAIN_WITH, or EVALUATE_WITH or WEIGHTS (study/trainer.h); NULL: dl2-train trains. */
    const struct dl2_trainer *trainer;
    const struct dl2_trainer *sensitivity; /* SENSITIVITY_WITH, or NULL */
    struct dl2_words gpus;                 /* slots, as CUDA_VISIBLE_DEVICES names cards */
    unsigned gpus_each;                    /* slots of one training */
    unsigned retries, train_limit;         /* seconds of one training; 0: no limit */

    const char *called;   /* the study's title */
    const char *out;      /* folder of the results, without slashes at the end */
    const char *data;     /* the original: a folder, file or address */
    const char *identity; /* the same from any folder */
    bool data_is_address, data_is_named, data_is_made; /* named: demo..; made: lies in OUT */
    bool data_is_got;        /* named and made: Parquet files, which dl2-hub copies */
    bool elsewhere;          /* VARIANTS is an address: of tables, or of a store */
    const char *fingerprint; /* of a dataset that the study does not make itself, or NULL */
    const char *container;   /* its form, as dl2-transcode identify names it: "folder"; or NULL */
    bool volumes;            /* such a dataset holds volumes */
    bool videos;             /* it holds videos */
    bool clips;              /* it holds clips of frames */
    bool unsplit;            /* such a dataset has no splits but the rule's */

    const char *external;         /* name of the external codec, or NULL */
    struct dl2_words decoding;    /* the option that tells programs its decoder */
    struct dl2_words rate_flags;  /* TRAIN_FLAGS, but for what dl2-train measure lacks */
    struct dl2_words variants;    /* names: jpeg-10, jpeg-10@320... as dl2-transcode says */
    struct dl2_words places;      /* where each lies: a folder, or a table's address */
    struct dl2_words of_external; /* those of the external codec */
    struct dl2_words tables;      /* kinds of fitted tables: pipeline, network */
    struct dl2_words of_pipeline, of_network; /* the variants that have them */
    struct dl2_words of_control; /* the original's images at RESIZE_SHORTER without loss: png@48 */
    struct dl2_words names;         /* raw, and the variants */
    struct dl2_words late; /* variants that ENCODE_LIMIT has left out: not among the above */
    const char *group, *group_file; /* --group's value, and the file that it names; or NULL */
    bool group_is_survey;           /* the file is one that the step `survey` makes */
};

/* A table of struct dl2_study_options, with the goals' variables. */
const struct dl2_option *dl2_study_options(void);

/* For rows of variables. Each takes a text, checks its form and keeps it, in a const char *. */
int dl2_setting_parse_one(const char *text, void *value, struct dl2_error *error);
int dl2_setting_parse_names(const char *text, void *value, struct dl2_error *error);
int dl2_setting_parse_numbers(const char *text, void *value, struct dl2_error *error);
int dl2_setting_parse_size(const char *text, void *value, struct dl2_error *error);
int dl2_setting_parse_times(const char *text, void *value, struct dl2_error *error);
int dl2_setting_parse_yes_or_no(const char *text, void *value, struct dl2_error *error);
int dl2_setting_parse_command(const char *text, void *value, struct dl2_error *error);
/* Seconds of 90s, 30m or 2h; the form was checked. */
double dl2_setting_seconds(const char *time);

/* Prints `NAME is "VALUE": MESSAGE` on stderr and ends the program with DL2_EXIT_USAGE. */
_Noreturn void dl2_setting_refuse(const char *name, const char *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes the variables of the environment, which make sets, for the options that were not given. */
void dl2_study_read_environment(struct dl2_study_options *options);

/* Fills in the defaults and finds where things lie. Ends the program at a setting that is wrong, as
 * the next three do; nothing was written until then. `rows` are dl2_study_options(), which this
 * cannot call: they are the goals' too, and goals need what is found here. */
void dl2_study_locate(struct dl2_study_settings *study, const struct dl2_option *rows);
/* The rest: looks at the dataset, and checks the settings that no program knows. */
void dl2_study_resolve(struct dl2_study_settings *study);

/* Variants that depend on the same files and settings. */
enum dl2_variant_group {
    DL2_VARIANTS_USUAL,
    DL2_VARIANTS_PIPELINE, /* with fitted tables */
    DL2_VARIANTS_NETWORK,
    DL2_VARIANTS_EXTERNAL,
    DL2_VARIANTS_CONTROL, /* of the resolution */
    DL2_VARIANTS_ALL
};

/* The options of dl2-transcode that say which variants a group, or DL2_VARIANTS_ALL, has, flags
 * included; with `grades` also their qualities. */
struct dl2_words dl2_settings_encoding(const struct dl2_study_settings *study, unsigned group,
                                       bool grades);
enum dl2_variant_group dl2_settings_group_of(const struct dl2_study_settings *study,
                                             const char *variant);
/* The file of fitted tables, "pipeline" or "network". */
const char *dl2_settings_tables(const struct dl2_study_settings *study, const char *kind);
/* Has dl2-transcode name the variants, which checks their settings. */
void dl2_settings_name_variants(struct dl2_study_settings *study);
/* Moves variants that did not finish within ENCODE_LIMIT to `late`, and says so. */
void dl2_settings_leave_out_late(struct dl2_study_settings *study);

/* Has the programs check the options that the study will pass to them, and sets rate_flags by what
 * dl2-train says of them; ends the program as above. */
void dl2_settings_check(struct dl2_study_settings *study);

/* Has a program check its options: `command` ends with --help or --list. Returns what it prints. A
 * complaint about an option whose value is of another setting is that one's, any other is of
 * `name`. */
const char *dl2_study_ask(const struct dl2_study_settings *study, const char *name,
                          const char *value, struct dl2_words command);

/* A program of dl2, to be run. */
const char *dl2_study_program(const struct dl2_study_settings *study, const char *name);
/* Where a variant, or raw, lies: a folder or a table's address. */
const char *dl2_study_place(const struct dl2_study_settings *study, const char *name);
/* Threads of each of `at_once` works. */
unsigned dl2_study_threads(const struct dl2_study_settings *study, unsigned at_once);

/* Whether a text is the address of a table. */
bool dl2_study_is_table(const char *text);
/* "image-size" as IMAGE_SIZE. */
const char *dl2_setting_variable(const char *option);
/* {"image-size": "64"...}, with the defaults that were filled in; a new reference. */
json_t *dl2_study_settings_json(const struct dl2_study_settings *study);
/* The command that makes a study again: `make` in a checkout, or dl2-study. */
const char *dl2_study_command(const struct dl2_study_settings *study, struct dl2_words goals);

#endif
