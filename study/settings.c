/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/settings.h"

#include "common/json.h"
#include "common/nearest.h"
#include "common/quote.h"
#include "common/thread.h"
#include "study/goals.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int parse_time(const char *text, void *value, struct dl2_error *error)
{
    if (dl2_words_split(text).count > 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "one value is expected");
    return dl2_setting_parse_times(text, value, error);
}

static int parse_yes(const char *text, void *value, struct dl2_error *error)
{
    if (*text && strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "it is yes or no");
    *(const char **)value = strcmp(text, "yes") == 0 ? text : "";
    return DL2_OK;
}

static int parse_group(const char *text, void *value, struct dl2_error *error)
{
    if (text[strcspn(text, " \t\r\n")])
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "it can't have blanks; in an expression write [[:blank:]]");
    *(const char **)value = text;
    return DL2_OK;
}

/* ---- The rows */

#define AT(member) offsetof(struct dl2_study_options, member)
#define PARSED(name, metavar, help, member, how, ...)                                              \
    {                                                                                              \
        DL2_OPTION_PARSE, name, 0, metavar, help, AT(member), .parse = how, __VA_ARGS__            \
    }

static const char *const engines[] = {"local", "slurm", NULL};

static const struct dl2_option own_rows[] = {
    {DL2_OPTION_GROUP, .help = "Settings; each is also make's variable of that name, --image-size "
                               "as IMAGE_SIZE:"},
    {DL2_OPTION_TEXT, "dataset", 0, "DATASET",
     "demo: pieces of the photographs of Debian's lomiri-wallpapers-16.04; fashion-mnist: Debian's "
     "dataset-fashion-mnist; imagenette: downloaded (about 95 MB); demo-clips: videos that FFmpeg "
     "draws, for study-clips; a folder, train/CLASS/... and "
     "val/CLASS/..., or CLASS/... that is then split; a folder of tar shards or GulpIO chunks, or "
     "one such file; an address without a password: a table, "
     "postgresql://HOST/DATABASE?table=NAME, or https:// or s3:// with shards and their index; "
     "Parquet files, FILE.parquet, a pattern such as 'data/*.parquet' or hf://datasets/OWNER/NAME, "
     "which dl2-hub copies into OUT",
     AT(dataset), .unset = "demo", .basic = true},
    {DL2_OPTION_TEXT, "out", 0, "FOLDER", "Where all results go", AT(out),
     .unset = "study-out/DATASET, or study-out/NAME of an address", .basic = true},
    {DL2_OPTION_TEXT, "variants", 0, "ADDRESS",
     "postgresql://HOST/DATABASE?table=NAME makes the variants the tables NAME_CODEC_QUALITY, "
     "s3://BUCKET/PREFIX tar shards in a store; clean-study leaves them there",
     AT(variants), .unset = "OUT/variants"},
    PARSED("codecs", "LIST", "Codecs, separated by blanks, as in 'jpeg webp avif jp2'", codecs,
           dl2_setting_parse_names, .unset = "jpeg; of the demo jpeg webp", .basic = true),
    {DL2_OPTION_TEXT, "external", 0, "COMMANDS",
     "One more codec, as two commands: 'cjxl=cjxl %i %o -q %q; djxl %i %o'", AT(external),
     .unset = "none"},
    PARSED("qualities", "LIST",
           "1 to 100, higher is better, the same for all codecs; of videos CRFs, lower is better",
           qualities, dl2_setting_parse_numbers, .unset = "10 25 50 75 85; of the demo 5 75",
           .also = "quality", .basic = true),
    PARSED("resize-shorter", "LIST",
           "Resolutions: lengths of the shorter side that images are reduced to, pixels, and full, "
           "as in "
           "'160 320 full'; each quality at each of them",
           shorts, dl2_setting_parse_names, .unset = "full; of the demo 48 full", .basic = true),
    PARSED("control", "yes|no",
           "Also make the original's images without loss at each length of RESIZE_SHORTER "
           "(png@48), which "
           "show what the resolution alone changes",
           control, dl2_setting_parse_yes_or_no, .unset = "yes"),
    PARSED("tables", "LIST",
           "Quantization tables of JPEG beside libjpeg's: pipeline, fitted to IMAGE_SIZE and the "
           "dataset; network, fitted to the first of ARCHS on the original, too; or none",
           tables, dl2_setting_parse_names, .unset = "none; of study-tables pipeline network"),
    {DL2_OPTION_TEXT, "train-on", 0, "LIST", "Variants to train on: 'jpeg-10 webp-50'",
     AT(train_on), .unset = "all"},
    PARSED("archs", "LIST", "Networks, as `dl2-train --list archs` or TRAIN_WITH names them", archs,
           dl2_setting_parse_names,
           .unset = "resnet10; of fashion-mnist convnet; with TRAIN_WITH its script's "
                    "name",
           .basic = true),
    PARSED(
        "train-with", "COMMAND",
        "What trains in the place of dl2-train, without a shell: 'python3 train.py --data %d "
        "--seed %s --out %o'. %d: the training data (a variant's folder, or the original's); %v: "
        "the validation data, of the same variant; %r: the original, to validate on it, too; %n: "
        "the variant's name, or raw; %m: the network, one of ARCHS; %s: the seed; %o: the folder "
        "for results; %t: threads; %e: EPOCHS; %b: BATCH; %p: IMAGE_SIZE; %g: DEVICE; %a: the "
        "attempt, from 2 on %o has what an earlier one left; %%: a percent sign. The same is in "
        "the environment as DL2_DATA, DL2_VAL, DL2_ORIGINAL, DL2_VARIANT, DL2_ARCH, DL2_SEED, "
        "DL2_OUT, DL2_THREADS, DL2_EPOCHS, DL2_BATCH, DL2_IMAGE_SIZE, DL2_DEVICE, DL2_ATTEMPT. "
        "What it hands back is in %o/result.json, or in RESULT",
        train_with, dl2_setting_parse_command, .unset = "dl2-train", .basic = true),
    PARSED("evaluate-with", "COMMAND",
           "What evaluates a network as it is, once on each variant, in the place of trainings "
           "(goal inference): 'python3 eval.py --data %v --out %o', as TRAIN_WITH",
           evaluate_with, dl2_setting_parse_command, .unset = "none", .basic = true),
    {DL2_OPTION_TEXT, "weights", 0, "FILE",
     "The same with a network of dl2-train's, a checkpoint or exported weights", AT(weights),
     .unset = "none", .basic = true},
    {DL2_OPTION_TEXT, "result", 0, "FILE:FIELD[:WORD...]",
     "Where TRAIN_WITH's tool writes its metric, below %o: a CSV file and a column, or a JSON file "
     "(also one of JSON lines) and a path such as log_history.eval_accuracy; FILE may be a pattern "
     "that matches one file. Words: last or best of several values; fraction (0 to 1), percent (0 "
     "to 100) or number; lower: lower is better. evaluation_report.json alone is that of dl2-train "
     "evaluate",
     AT(result), .unset = "result.json, a dl2-result/1; of FILE:FIELD last and fraction",
     .basic = true},
    PARSED("train-files", "PATHS",
           "Files and folders that TRAIN_WITH depends on: trainings are done again where one has "
           "changed. Files that the command names are among them without this",
           train_files, dl2_setting_parse_command, .unset = "none"),
    PARSED("sensitivity-with", "COMMAND",
           "With TRAIN_WITH and network tables: what writes %o/sensitivity.json, a "
           "dl2-sensitivity/1 of the network that was trained on the original from the first seed. "
           "%o is the folder of that training's results; its other words are those of TRAIN_WITH",
           sensitivity_with, dl2_setting_parse_command, .unset = "none"),
    PARSED("retries", "N", "How often a training that failed is tried again", retries,
           dl2_setting_parse_numbers, .unset = "0"),
    PARSED("encode-limit", "TIME",
           "90s, 30m or 2h for encoding the variants of EXTERNAL: one that lacks images then is left "
           "out of the study, and the report says so",
           encode_limit, parse_time, .unset = "none"),
    PARSED("train-limit", "TIME", "90s, 30m or 2h, after which a training is ended, and has failed",
           train_limit, parse_time, .unset = "none"),
    PARSED("gpus", "LIST|N",
           "Cards for trainings, as CUDA_VISIBLE_DEVICES names them: 0,1 (0,0,1,1: two trainings "
           "on each; 1, is the second alone), or how many. Each training sees its own alone",
           gpus, dl2_setting_parse_one, .unset = "as the environment has it"),
    PARSED("gpus-each", "N", "Cards of one training", gpus_each, dl2_setting_parse_numbers,
           .unset = "1"),
    PARSED("epochs", "N", "Epochs of each training", epochs, dl2_setting_parse_one,
           .unset = "30; of the demo 6, of fashion-mnist 5", .basic = true),
    PARSED("seeds", "LIST",
           "Seeds of the trainings; two at least, so that chance can be told from effect; two are "
           "rarely enough",
           seeds, dl2_setting_parse_numbers, .unset = "1 2 3 4; with DECIDE 1 to 8", .basic = true),
    PARSED("decide", "yes|no",
           "Begin with two of SEEDS, and add seeds only to variants whose verdict is open, until "
           "none is open",
           decide, parse_yes, .unset = "no; of the demo yes", .basic = true),
    PARSED("forecast", "yes|no",
           "With DECIDE: make `forecast`, and train what it finds to lose too much last", forecast,
           parse_yes, .unset = "no"),
    PARSED("budget", "TIME", "With DECIDE: 90s, 30m or 2h, after which no more seeds are added",
           budget, parse_time, .unset = "none", .basic = true),
    PARSED("image-size", "PIXELS",
           "Pixels that the networks see, squared; of volumes DEPTHxHEIGHTxWIDTH voxels",
           image_size, dl2_setting_parse_size, .unset = "64; of the demo 32, of fashion-mnist 28",
           .basic = true),
    PARSED("batch", "IMAGES", "Images a step", batch, dl2_setting_parse_numbers,
           .unset = "64; of the demo 32"),
    PARSED("device", "DEVICE", "auto, or what `dl2-train --list devices` names", device,
           dl2_setting_parse_one, .unset = "auto"),
    PARSED("trainers", "N", "Trainings at once; each has JOBS / TRAINERS threads", trainers,
           dl2_setting_parse_numbers,
           .unset = "one for each seed up to JOBS, of evaluations JOBS; 1 on a card; with GPUS as "
                    "many as these let"),
    PARSED("rounds", "N",
           "Rounds of throughput; two at least, so that rates have intervals; with an even number "
           "a steady drift of the machine favors no variant",
           rounds, dl2_setting_parse_numbers, .unset = "5"),
    PARSED("measure", "SECONDS",
           "Seconds of each measurement of throughput, and as many before to warm up", measure,
           dl2_setting_parse_one, .unset = "2; of the demo 0.5"),
    PARSED("tolerance", "POINTS",
           "Points of accuracy that may be lost, for the report's recommendation; in the unit of "
           "your trainer's metric, or as 2% of the original's value",
           tolerance, dl2_setting_parse_one, .unset = "1; of the demo 2; of your trainer 1%",
           .basic = true),
    PARSED("group", "SPEC",
           "Validation images that count as one in the report: what `dl2-report --group` takes, or "
           "survey, the groups of near duplicates that `survey` finds",
           group, parse_group, .unset = "each counts by itself; of the demo the tiles of a row"),
    PARSED("transcode-flags", "OPTIONS", "Further options of dl2-transcode", transcode_flags,
           dl2_setting_parse_command, .unset = "none"),
    PARSED("quality-flags", "OPTIONS", "Further options of dl2-quality", quality_flags,
           dl2_setting_parse_command, .unset = "none"),
    PARSED("load-flags", "OPTIONS", "Further options of dl2-load", load_flags,
           dl2_setting_parse_command, .unset = "none"),
    PARSED("train-flags", "OPTIONS", "Further options of dl2-train", train_flags,
           dl2_setting_parse_command,
           .unset = "none; of the demo --crop-area 0.5,1 --validate-every 3"),
    PARSED("report-flags", "OPTIONS", "Further options of dl2-report", report_flags,
           dl2_setting_parse_command, .unset = "none"),
    PARSED("timeline", "yes|no",
           "Record how each step used its machine: processors, disks, network; the report has a "
           "picture of it",
           timeline, parse_yes, .unset = "no"),
    {DL2_OPTION_TEXT, "programs", 0, "FOLDER", "Folder of dl2's other programs", AT(programs),
     .unset = "beside dl2-study, or on the PATH"},
    {DL2_OPTION_TEXT, "engine", 0, "ENGINE",
     "What does the steps: local, this machine; slurm, the nodes of a cluster that share OUT",
     AT(engine), .words = engines, .unset = "local"},
    {DL2_OPTION_TEXT, "checkout", 0, "FOLDER",
     "The checkout whose make runs this program, for the command that repeats the study",
     AT(checkout), .unset = "none"},
    {DL2_OPTION_GROUP, .help = "Settings of single goals:"},
};

const struct dl2_option *dl2_study_options(void)
{
    enum { OWN = sizeof own_rows / sizeof *own_rows };
    static struct dl2_option rows[OWN + DL2_MAX_GOALS + 1];
    if (rows[0].type != DL2_OPTION_END)
        return rows;
    memcpy(rows, own_rows, sizeof own_rows);
    size_t count = OWN;
    for (size_t i = 0; dl2_goal_at(i); i++)
        if (dl2_goal_at(i)->variables)
            rows[count++] =
                (struct dl2_option){DL2_OPTION_TABLE, .table = dl2_goal_at(i)->variables,
                                    .offset = AT(of_goals) + i * sizeof(struct dl2_goal_values)};
    return rows;
}

/* ---- From the environment */

static void read_rows(const struct dl2_option *rows, void *values)
{
    for (; rows->type != DL2_OPTION_END; rows++) {
        void *value = (char *)values + rows->offset;
        if (rows->type == DL2_OPTION_TABLE)
            read_rows(rows->table, value);
        if (rows->type != DL2_OPTION_TEXT && rows->type != DL2_OPTION_PARSE)
            continue;
        const char *name = dl2_setting_variable(rows->name), *text = getenv(name);
        struct dl2_error error = DL2_ERROR_INIT;
        if (!text || *(const char **)value)
            continue;
        if (rows->type == DL2_OPTION_TEXT)
            *(const char **)value = text;
        else if (rows->parse(text, value, &error) < 0)
            dl2_setting_refuse(name, text, "%s", error.message);
    }
}

static void try_rows(const struct dl2_option *rows, struct dl2_nearest *nearest, const char **best)
{
    for (; rows->type != DL2_OPTION_END; rows++) {
        if (rows->type == DL2_OPTION_TABLE)
            try_rows(rows->table, nearest, best);
        else if (rows->name &&
                 dl2_nearest_try(nearest, dl2_setting_variable(rows->name), rows->also))
            *best = dl2_setting_variable(rows->name);
    }
}

/* Refuses variables on make's command line, which MAKEFLAGS has behind a word "--", if they are
 * nearly the name of a setting: make would not say a word of them. Others may be a makefile's own.
 */
static void refuse_misspelled(void)
{
    const char *flags = getenv("MAKEFLAGS");
    const struct dl2_words words = dl2_words_split(flags ? flags : "");
    bool are_variables = false;
    for (size_t i = 0; i < words.count; i++) {
        const char *name =
            dl2_text("%.*s", (int)strspn(words.at[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), words.at[i]);
        struct dl2_nearest nearest = {.given = name};
        const char *best = NULL;
        if (are_variables && words.at[i][strlen(name)] == '=' && strlen(name) > 3)
            try_rows(dl2_study_options(), &nearest, &best);
        if (best && nearest.cost <= 1 && strcmp(best, name) != 0 && strcmp(name, "MAKE") != 0)
            dl2_study_fail(DL2_EXIT_USAGE, "there is no setting %s; did you mean %s?", name, best);
        are_variables |= strcmp(words.at[i], "--") == 0;
    }
}

void dl2_study_read_environment(struct dl2_study_options *options)
{
    refuse_misspelled();
    read_rows(dl2_study_options(), options);
    const char *jobs = getenv("JOBS");
    if (!jobs || options->jobs)
        return;
    const char *number;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_setting_parse_numbers(jobs, &number, &error) < 0)
        dl2_setting_refuse("JOBS", jobs, "%s", error.message);
    const unsigned long long count = strtoull(number, NULL, 10);
    if (count < 1 || count > 1024 || strchr(number, ' '))
        dl2_setting_refuse("JOBS", jobs, "it is not between 1 and 1024");
    options->jobs = (unsigned)count;
}

/* ---- As JSON */

static void show_rows(const struct dl2_option *rows, const void *values, json_t *json)
{
    for (; rows->type != DL2_OPTION_END; rows++) {
        const void *value = (const char *)values + rows->offset;
        if (rows->type == DL2_OPTION_TABLE)
            show_rows(rows->table, value, json);
        if ((rows->type == DL2_OPTION_TEXT || rows->type == DL2_OPTION_PARSE) &&
            *(const char *const *)value)
            json_object_set_new(json, rows->name, dl2_json_text(*(const char *const *)value));
    }
}

json_t *dl2_study_settings_json(const struct dl2_study_settings *study)
{
    json_t *json = json_object();
    show_rows(dl2_study_options(), &study->options, json);
    json_object_set_new(json, "jobs", json_integer(study->jobs));
    return json;
}
