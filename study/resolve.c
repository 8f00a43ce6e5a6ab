/* SPDX-License-Identifier: BSD-2-Clause */
/* From options to a study: defaults, names and places, and what the programs say of them. */
#include "common/file.h"
#include "common/process.h"
#include "common/quote.h"
#include "common/thread.h"
#include "study/child.h"
#include "study/paths.h"
#include "study/plan.h"
#include "study/trainer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Datasets with a name, and the defaults that go with them */

static const struct preset {
    const char *about;
    struct dl2_study_options options;
} presets[] = {
    /* The demo is to end within minutes on two processors, and yet to say something: small images,
     * crops that keep most of one, and a tolerance that 1,306 validation images can tell. */
    {"The images are tiles of 15 photographs, and which photograph a tile is cut out of is its "
     "class. The tiles for validation are from other parts of the same photographs as those for "
     "training, so the answer is about these photographs, not about photographs in general.",
     {.dataset = "demo",
      .codecs = "jpeg webp",
      .qualities = "5 75",
      .shorts = "48 full",
      .epochs = "6",
      .decide = "yes",
      .image_size = "32",
      .batch = "32",
      .tolerance = "2",
      .group = "regex:[^/]*/r[0-9]*", /* neighbors in a photograph: a row of its tiles */
      .measure = "0.5",
      .train_flags = "--crop-area 0.5,1 --validate-every 3"}},
    {NULL, {.dataset = "fashion-mnist", .archs = "convnet", .epochs = "5", .image_size = "28"}},
    {NULL, {.dataset = "imagenette"}},
    {NULL, {.dataset = "demo-clips", .image_size = "84", .batch = "10", .measure = "0.5"}},
    {NULL,
     {.group = "",
      .codecs = "jpeg",
      .shorts = "",
      .control = "yes",
      .tables = "",
      .qualities = "10 25 50 75 85",
      .archs = "resnet10",
      .epochs = "30",
      .seeds = "1 2 3 4",
      .image_size = "64",
      .batch = "64",
      .device = "auto",
      .rounds = "5",
      .tolerance = "1",
      .measure = "2",
      .train_flags = "",
      .engine = "local"}},
};
enum { PRESETS = sizeof presets / sizeof *presets - 1 }; /* the last is of all others */

static const struct preset *find_preset(const char *dataset)
{
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].options.dataset, dataset) == 0)
            return &presets[i];
    return NULL;
}

/* Sets what was not given to what the defaults have. */
static void fill_in(struct dl2_study_options *options, const struct dl2_option *rows,
                    const struct dl2_study_options *defaults)
{
    for (const struct dl2_option *row = rows; row->type != DL2_OPTION_END; row++) {
        const char **value = (const char **)((char *)options + row->offset);
        if ((row->type == DL2_OPTION_TEXT || row->type == DL2_OPTION_PARSE) && !*value)
            *value = *(const char *const *)((const char *)defaults + row->offset);
    }
}

/* What the networks are fed is what is measured: settings of clips go to dl2-load, too. */
static const char *with_clips(const char *load_flags, const char *train_flags)
{
    static const char *const options[] = {"--samples", "--frames", "--frame-step",
                                          "--frame-sampling"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *value = dl2_flags_value(train_flags, options[i]);
        if (value && !dl2_flags_value(load_flags, options[i]))
            load_flags = dl2_text("%s%s%s %s", load_flags, *load_flags ? " " : "", options[i],
                                  dl2_shell_quote(value));
    }
    return load_flags;
}

static void fill_in_defaults(struct dl2_study_settings *study, const struct dl2_option *rows)
{
    struct dl2_study_options *options = &study->options;
    const struct preset *own = find_preset(options->dataset);
    const char **texts[] = {
        &options->transcode_flags, &options->quality_flags, &options->load_flags,
        &options->report_flags,    &options->decide,        &options->forecast,
        &options->budget,          &options->variants,      &options->external,
        &options->train_with,      &options->result,        &options->train_files,
        &options->evaluate_with,   &options->weights,       &options->sensitivity_with,
        &options->timeline};
    if (own && !options->decide) /* before what seeds it has by default */
        options->decide = own->options.decide;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!*texts[i])
            *texts[i] = "";
    if (!options->seeds && *options->decide)
        options->seeds = "1 2 3 4 5 6 7 8";
    if (dl2_trainer_is_given(options)) /* the presets' defaults are dl2-train's */
        dl2_trainer_defaults(options);
    if (own)
        fill_in(options, rows, &own->options);
    fill_in(options, rows, &presets[PRESETS].options);
    options->load_flags = with_clips(options->load_flags, options->train_flags);
    study->about = own ? own->about : NULL;
    study->jobs = options->jobs ? options->jobs : dl2_cpu_count();
}

/* ---- Names of tables and stores */

/* "table=NAME" of a table's address. */
static const char *table_in(const char *address)
{
    const char *query = dl2_study_is_table(address) ? strchr(address, '?') : NULL;
    while (query) {
        query++;
        if (strncmp(query, "table=", 6) == 0)
            return dl2_text("%.*s", (int)strcspn(query + 6, "&?"), query + 6);
        query = strpbrk(query, "&?");
    }
    return NULL;
}

bool dl2_study_is_table(const char *text)
{
    return strncmp(text, "postgresql://", 13) == 0 || strncmp(text, "postgres://", 11) == 0;
}

/* Whether a text is an address of HTTP or S3. */
static bool is_in_store(const char *text)
{
    return strncmp(text, "s3://", 5) == 0 || strncmp(text, "http://", 7) == 0 ||
           strncmp(text, "https://", 8) == 0;
}

/* Commands and results show addresses. */
static void refuse_password(const char *name, const char *value)
{
    char *hidden = dl2_hide_passwords(value);
    const bool has_password = !hidden || strcmp(hidden, value) != 0;
    free(hidden);
    if (has_password)
        dl2_setting_refuse(name, value,
                           "it has a password, which commands and results would show: leave it to "
                           "~/.pgpass or a service file");
}

/* A path or an address. Lists of programs have one a line, and plans are JSON. */
static void refuse_odd(const char *name, const char *value)
{
    json_auto_t *text = json_string(value);
    if (!*value)
        dl2_setting_refuse(name, value, "it is empty");
    for (const char *c = value; *c; c++)
        if (iscntrl((unsigned char)*c))
            dl2_setting_refuse(name, value, "it has a line break or another control character");
    if (!text)
        dl2_setting_refuse(name, value, "it is not UTF-8");
}

/* Without slashes at its end. Programs would take a dash at its beginning for an option, and a
 * brace stands for what is filled into a command. */
static const char *tidy_path(const char *path)
{
    const int length = dl2_path_folder_length(path);
    return dl2_text("%s%.*s", strchr("-{", *path) ? "./" : "", length ? length : 1, path);
}

/* ---- The dataset, and OUT */

/* Parquet files, which dl2-hub copies into OUT: on the Hub, or by their names. */
static bool is_parquet(const char *text)
{
    return strncmp(text, "hf://", 5) == 0 || strcmp(dl2_path_extension(text), "parquet") == 0;
}

/* What such a dataset is called: without a pattern or a revision. */
static const char *called_of_parquet(const char *dataset)
{
    const size_t length = strcspn(dataset, "*?[@");
    return dl2_path_base(tidy_path(dl2_text("%.*s", length ? (int)length : 1, dataset)));
}

static void resolve_dataset(struct dl2_study_settings *study)
{
    struct dl2_study_options *options = &study->options;
    const char *dataset = options->dataset;
    refuse_password("DATASET", dataset);
    study->data_is_got = is_parquet(dataset);
    study->data_is_address =
        !study->data_is_got && (dl2_study_is_table(dataset) || is_in_store(dataset));
    study->data_is_named = study->data_is_got || find_preset(dataset) != NULL;
    refuse_odd("DATASET", dataset);
    const char *table = table_in(dataset);
    study->called = dl2_study_is_table(dataset) ? table ? table : ""
                    : study->data_is_got        ? called_of_parquet(dataset)
                    : study->data_is_address    ? dl2_path_base(tidy_path(dataset))
                                                : dl2_path_base(dl2_path_absolute(dataset));
    if (!options->out)
        options->out = dl2_text("study-out/%s", study->called);
    refuse_odd("OUT", options->out);
    study->out = tidy_path(options->out);
    study->identity = dataset;
    if (strcmp(dataset, "fashion-mnist") == 0) {
        study->data = "/usr/share/datasets/fashion-mnist";
    } else if (study->data_is_named) {
        study->data = dl2_text("%s/data", study->out);
        study->data_is_made = true;
    } else if (study->data_is_address) {
        study->data = dataset;
    } else {
        study->data = tidy_path(dataset);
        char *real = realpath(study->data, NULL);
        if (!real)
            dl2_setting_refuse("DATASET", dataset,
                               "it is neither a folder nor shards, an address, or one of demo, "
                               "fashion-mnist, imagenette, demo-clips");
        study->identity = dl2_text("%s", real);
        free(real);
    }
    if (access(study->out, F_OK) == 0 && !dl2_is_folder(study->out))
        dl2_setting_refuse("OUT", options->out, "it is a file: name a folder");
}

/* What lies in DATASET is read as images, and what lies in OUT is the study's to delete. */
static void refuse_nested(const struct dl2_study_settings *study)
{
    const struct dl2_study_options *options = &study->options;
    if (!study->data_is_address && !study->data_is_named) {
        const char *out = dl2_path_canonical(study->out);
        const char *names[] = {"OUT", "DATASET"}, *values[] = {options->out, options->dataset};
        const int inner = dl2_path_is_within(out, study->identity)   ? 0
                          : dl2_path_is_within(study->identity, out) ? 1
                                                                     : -1;
        if (inner >= 0)
            dl2_setting_refuse(names[inner], values[inner],
                               "it lies in %s, \"%s\": name another folder with OUT=",
                               names[!inner], values[!inner]);
    }
    const char *owner = dl2_text_of_file(dl2_text("%s/.make/owner", study->out));
    if (owner && *owner && strcmp(owner, dl2_text("%s\n", study->identity)) != 0)
        dl2_study_fail(DL2_EXIT_USAGE,
                       "%s holds a study of %.*s, not of %s: name another folder with OUT=, or "
                       "delete that study with 'make clean-study OUT=%s'",
                       study->out, (int)strcspn(owner, "\n"), owner, study->identity, study->out);
}

/* ---- The programs */

/* Beside this one, or on the PATH. */
static void find_programs(struct dl2_study_settings *study)
{
    const char *self = dl2_path_of_program(), *folder = self ? dl2_path_folder(self) : NULL;
    if (study->options.programs)
        return;
    study->options.programs =
        folder && access(dl2_text("%s/dl2-transcode", folder), X_OK) == 0 ? folder : "";
}

static void check_programs(const struct dl2_study_settings *study)
{
    if (!dl2_program_find(dl2_study_program(study, "dl2-transcode"), (char[PATH_MAX]){0}))
        dl2_study_fail(
            DL2_EXIT_USAGE,
            "dl2's programs are neither beside dl2-study nor on the PATH: say where with "
            "PROGRAMS=FOLDER");
}

/* The value behind "KEY<tab>" at the start of one of the lines, or NULL. */
static const char *field_of(const char *lines, const char *key)
{
    const size_t length = strlen(key);
    for (; *lines; lines = dl2_next_line(lines))
        if (strncmp(lines, key, length) == 0 && lines[length] == '\t')
            return dl2_first_line(lines + length + 1);
    return NULL;
}

/* What is in a dataset that the study does not make itself. */
static void identify(struct dl2_study_settings *study)
{
    study->videos = strcmp(study->options.dataset, "demo-clips") == 0;
    if (study->data_is_made)
        return;
    struct dl2_words command = {0};
    const char *output, *messages;
    dl2_words_more(&command, dl2_study_program(study, "dl2-transcode"), "identify", study->data,
                   NULL);
    dl2_child_ask(command, &output, &messages);
    study->fingerprint = field_of(output, "fingerprint");
    if (!study->fingerprint && study->data_is_address)
        dl2_setting_refuse("DATASET", study->options.dataset, "%s", dl2_first_line(messages));
    study->container = field_of(output, "container");
    study->volumes = field_of(output, "volumes");
    study->videos = field_of(output, "videos");
    study->clips = field_of(output, "clips");
    study->unsplit = field_of(output, "splits");
    const char *complete = field_of(output, "complete");
    if (complete && strcmp(complete, "no") == 0)
        dl2_setting_refuse("DATASET", study->options.dataset,
                           "it is a variant that is not finished: run the dl2-transcode that "
                           "writes it again");
}

/* ---- The variants */

/* Every program is told how to decode the files of an external codec. */
static void resolve_external(struct dl2_study_settings *study)
{
    const char *external = study->options.external;
    if (external[strspn(external, " \t")]) {
        study->external =
            dl2_words_split(dl2_text("%.*s", (int)strcspn(external, "="), external)).at[0];
        const char *decode = dl2_command_find(external, ';');
        decode += *decode == ';';
        decode += strspn(decode, " \t");
        dl2_words_add(&study->decoding, "--decoder");
        dl2_words_add(&study->decoding, dl2_text("%s=%s", study->external, decode));
    }
}

static void resolve_lists(struct dl2_study_settings *study)
{
    const struct dl2_study_options *options = &study->options;
    study->archs = dl2_words_split(options->archs);
    study->seeds = dl2_words_split(options->seeds);
    resolve_external(study);
    const struct dl2_words tables = dl2_words_split(options->tables);
    for (size_t i = 0; i < tables.count; i++)
        if (strcmp(tables.at[i], "pipeline") == 0 || strcmp(tables.at[i], "network") == 0)
            dl2_words_add(&study->tables, tables.at[i]);
        else if (strcmp(tables.at[i], "none") != 0 || tables.count > 1)
            dl2_setting_refuse("TABLES", options->tables,
                               "pipeline and network, or none alone, are known, not %s",
                               tables.at[i]);
    study->sensitivity = dl2_trainer_resolve_sensitivity(study);
    if (study->tables.count && strpbrk(study->out, ",:"))
        dl2_setting_refuse("OUT", options->out, "TABLES can't work with a comma or a colon in it");
}

const char *dl2_study_place(const struct dl2_study_settings *study, const char *name)
{
    for (size_t v = 0; v < study->variants.count; v++)
        if (strcmp(study->variants.at[v], name) == 0)
            return study->places.at[v];
    return study->data;
}

unsigned dl2_study_threads(const struct dl2_study_settings *study, unsigned at_once)
{
    return study->jobs < at_once ? 1 : study->jobs / at_once;
}

/* A number of a setting whose form was checked, which is one alone and not zero. */
static unsigned one_number(const char *name, const char *text)
{
    const unsigned long long number = strtoull(text, NULL, 10);
    if (strchr(text, ' '))
        dl2_setting_refuse(name, text, "one value is expected");
    if (number < 1 || number > 1000000)
        dl2_setting_refuse(name, text, "it is not between 1 and 1000000");
    return (unsigned)number;
}

/* GPUS: a list, or how many of those that the environment lets this process see. */
static void resolve_cards(struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    const char *list = o->gpus, *seen = getenv("CUDA_VISIBLE_DEVICES");
    study->gpus_each = o->gpus_each ? one_number("GPUS_EACH", o->gpus_each) : 1;
    if (!list)
        return;
    if (strcmp(o->engine, "slurm") == 0)
        dl2_setting_refuse("GPUS", list,
                           "Slurm chooses the cards: GPUS_EACH and DEVICE=cuda ask for them");
    if (strcmp(o->device, "cpu") == 0 || strcmp(o->device, "ref") == 0)
        dl2_setting_refuse("GPUS", list, "it has no effect with DEVICE=%s", o->device);
    const bool is_count = list[strspn(list, "0123456789")] == '\0';
    const unsigned count = is_count ? one_number("GPUS", list) : 0;
    if (is_count)
        list = seen && *seen ? seen : "";
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (*list != ',' && (!is_count || study->gpus.count < count))
            dl2_words_add(&study->gpus, dl2_text("%.*s", (int)strcspn(list, ","), list));
        else if (*list == ',')
            dl2_setting_refuse("GPUS", o->gpus, "a card's name is missing before a comma");
    if (is_count && (!seen || !*seen))
        for (unsigned i = 0; i < count; i++)
            dl2_words_add(&study->gpus, dl2_text("%u", i));
    if (is_count && study->gpus.count < count)
        dl2_setting_refuse("GPUS", o->gpus, "CUDA_VISIBLE_DEVICES has fewer: %s", seen);
    for (size_t i = 0; i < study->gpus.count && study->gpus_each > 1; i++)
        if (dl2_words_have((struct dl2_words){study->gpus.at, i}, study->gpus.at[i]))
            dl2_setting_refuse("GPUS", o->gpus,
                               "card %s is there twice, and GPUS_EACH gives a training several",
                               study->gpus.at[i]);
    if (study->gpus.count < study->gpus_each)
        dl2_setting_refuse("GPUS", o->gpus, "these are fewer cards than GPUS_EACH, %u",
                           study->gpus_each);
}

static void resolve_numbers(struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    study->rounds = one_number("ROUNDS", o->rounds);
    study->retries =
        o->retries && strcmp(o->retries, "0") != 0 ? one_number("RETRIES", o->retries) : 0;
    if (o->train_limit)
        study->train_limit = (unsigned)fmin(dl2_setting_seconds(o->train_limit), 1e9);
    resolve_cards(study);
    if (o->trainers) {
        study->trainers = one_number("TRAINERS", o->trainers);
    } else if (study->gpus.count) {
        study->trainers = (unsigned)study->gpus.count / study->gpus_each;
    } else {
        const char *own[] = {"auto", "ref", "cpu"};
        study->trainers = 1;
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (strcmp(o->device, own[i]) == 0)
                study->trainers = study->seeds.count < study->jobs &&
                                          !(study->trainer && study->trainer->evaluates)
                                      ? (unsigned)study->seeds.count
                                      : study->jobs;
    }
    if (study->gpus.count && study->trainers * (size_t)study->gpus_each > study->gpus.count)
        dl2_setting_refuse("TRAINERS", o->trainers, "GPUS has cards for %zu at once",
                           study->gpus.count / study->gpus_each);
    if (strchr(o->image_size, ' '))
        dl2_setting_refuse("IMAGE_SIZE", o->image_size, "one value is expected");
    if (strchr(o->batch, ' '))
        dl2_setting_refuse("BATCH", o->batch, "one value is expected");
    if (*o->forecast && !*o->decide)
        dl2_setting_refuse("FORECAST", o->forecast, "it has an effect with DECIDE=yes only");
    if (*o->forecast && strchr(o->tolerance, '%'))
        dl2_setting_refuse("TOLERANCE", o->tolerance,
                           "FORECAST compares points of accuracy, and this is a part of them");
    if (*o->budget && !*o->decide)
        dl2_setting_refuse("BUDGET", o->budget, "it has an effect with DECIDE=yes only");
    if (*o->decide && study->seeds.count < 2)
        dl2_setting_refuse(
            "SEEDS", o->seeds,
            "that is one seed, and DECIDE begins with two: list more, as SEEDS=\"0 1 2\", "
            "or add DECIDE=no");
    if (strcmp(o->engine, "local") != 0 && strcmp(o->engine, "slurm") != 0)
        dl2_setting_refuse("ENGINE", o->engine, "local and slurm are known");
}

static void resolve_group(struct dl2_study_settings *study)
{
    const char *group = study->options.group;
    if (!*group)
        return;
    refuse_password("GROUP", group);
    study->group = group;
    study->group_is_survey = strcmp(group, "survey") == 0;
    if (study->group_is_survey)
        study->group = study->group_file = dl2_text("%s/survey-groups.tsv", study->out);
    else if (strncmp(group, "regex:", 6) != 0 && !dl2_study_is_table(group))
        study->group_file = group;
    if (study->group_file)
        refuse_odd("GROUP", study->group_file);
}

static void resolve_variants(struct dl2_study_settings *study)
{
    const char *variants = study->options.variants;
    if (!*variants)
        return;
    refuse_password("VARIANTS", variants);
    refuse_odd("VARIANTS", variants);
    study->elsewhere = table_in(variants) || strncmp(variants, "s3://", 5) == 0;
    if (!study->elsewhere)
        dl2_setting_refuse("VARIANTS", variants,
                           "name a table, postgresql://HOST/DATABASE?table=NAME, or a prefix of a "
                           "bucket, s3://BUCKET/PREFIX; or leave it out");
}

void dl2_study_locate(struct dl2_study_settings *study, const struct dl2_option *rows)
{
    if (!study->options.dataset)
        study->options.dataset = "demo";
    study->given = study->options;
    fill_in_defaults(study, rows);
    resolve_dataset(study);
    find_programs(study);
}

void dl2_study_resolve(struct dl2_study_settings *study)
{
    resolve_variants(study);
    resolve_group(study);
    refuse_nested(study);
    check_programs(study);
    identify(study);
    study->trainer = dl2_trainer_resolve(study);
    if (study->trainer && study->trainer->evaluates)
        study->options.seeds = DL2_SEED_OF_INFERENCE;
    resolve_lists(study);
    resolve_numbers(study);
}
