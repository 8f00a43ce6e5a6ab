/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs say of the options that the study will pass to them. */
#include "study/child.h"
#include "study/plan.h"
#include "study/trainer.h"

#include <stdio.h>
#include <string.h>

const char *dl2_study_ask(const struct dl2_study_settings *study, const char *flags,
                          const char *value, struct dl2_words command)
{
    const struct dl2_study_options *o = &study->options;
    const char *jobs = dl2_text("%u", study->jobs);
    /* Which setting an option's value is of. */
    const struct {
        const char *option, *variable, *value;
    } settings[] = {{"codec", "CODECS", o->codecs},
                    {"q", "QUALITIES", o->qualities},
                    {"resize-shorter", "RESIZE_SHORTER", o->shorts},
                    {"jobs", "JOBS", jobs},
                    {"threads", "JOBS", jobs},
                    {"image-size", "IMAGE_SIZE", o->image_size},
                    {"batch", "BATCH", o->batch},
                    {"seed", "SEEDS", o->seeds},
                    {"epochs", "EPOCHS", o->epochs},
                    {"device", "DEVICE", o->device},
                    {"tolerance", "TOLERANCE", o->tolerance},
                    {"group", "GROUP", o->group},
                    {"measure", "MEASURE", o->measure},
                    {"arch", "ARCHS", o->archs}};
    const char *output, *messages;
    if (dl2_child_ask(command, &output, &messages) == 0)
        return output;
    messages = dl2_first_line(messages);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *mark = dl2_text(": --%s: ", settings[i].option);
        const char *complaint = strstr(messages, mark);
        if (complaint)
            dl2_setting_refuse(settings[i].variable, settings[i].value, "%s",
                               complaint + strlen(mark));
    }
    dl2_setting_refuse(flags, value, "%s", messages);
}

static void add_flags(struct dl2_words *command, const char *flags, const char *end,
                      const char *what)
{
    dl2_words_add_command(command, flags);
    dl2_words_more(command, end, what, NULL);
}

static void check_external(const struct dl2_study_settings *study)
{
    const struct dl2_words command = dl2_study_words(
        study, "dl2-transcode", "--codec", study->options.external, "--list", "codecs", NULL);
    const char *output, *messages;
    if (dl2_child_ask(command, &output, &messages) == 0)
        return;
    const char *mark = "--codec: ", *complaint = strstr(messages, mark);
    dl2_setting_refuse("EXTERNAL", study->options.external, "%s",
                       dl2_first_line(complaint ? complaint + strlen(mark) : messages));
}

/* "10 25" as "10,25". */
static const char *in_commas(const char *list)
{
    return dl2_words_join(dl2_words_split(list), ",");
}

const char *dl2_settings_tables(const struct dl2_study_settings *study, const char *kind)
{
    return dl2_text("%s/tables/%s.json", study->out, kind);
}

/* JPEG, with any settings but tables. */
static bool takes_tables(const char *codec)
{
    return (strncmp(codec, "jpeg:", 5) == 0 || strcmp(codec, "jpeg") == 0) &&
           !strstr(codec, ":tables=");
}

/* Those of CODECS, and JPEG's with each kind of tables, as far as the group has them. */
static struct dl2_words codecs_of(const struct dl2_study_settings *study, unsigned group)
{
    static const char *const kinds[] = {
        [DL2_VARIANTS_PIPELINE] = "pipeline", [DL2_VARIANTS_NETWORK] = "network"};
    const struct dl2_words own = dl2_words_split(study->options.codecs);
    struct dl2_words codecs = {0};
    if (group != DL2_VARIANTS_PIPELINE && group != DL2_VARIANTS_NETWORK)
        dl2_words_add_all(&codecs, own);
    if (group == DL2_VARIANTS_CONTROL)
        dl2_words_add(&codecs, "png");
    for (unsigned k = DL2_VARIANTS_PIPELINE; k <= DL2_VARIANTS_NETWORK; k++)
        for (size_t i = 0; i < own.count; i++)
            if ((group == k || group == DL2_VARIANTS_ALL) && takes_tables(own.at[i]) &&
                dl2_words_have(study->tables, kinds[k]))
                dl2_words_add(&codecs, dl2_text("%s:tables=%s", own.at[i],
                                                dl2_settings_tables(study, kinds[k])));
    return codecs;
}

enum dl2_variant_group dl2_settings_group_of(const struct dl2_study_settings *study,
                                             const char *variant)
{
    return dl2_words_have(study->of_control, variant)    ? DL2_VARIANTS_CONTROL
           : dl2_words_have(study->of_external, variant) ? DL2_VARIANTS_EXTERNAL
           : dl2_words_have(study->of_pipeline, variant) ? DL2_VARIANTS_PIPELINE
           : dl2_words_have(study->of_network, variant)  ? DL2_VARIANTS_NETWORK
                                                         : DL2_VARIANTS_USUAL;
}

/* Those of RESIZE_SHORTER, for a control without `full`, in commas. */
static const char *lengths_of(const struct dl2_study_settings *study, unsigned group)
{
    const struct dl2_words shorts = dl2_words_split(study->options.shorts);
    struct dl2_words lengths = {0};
    for (size_t i = 0; i < shorts.count; i++)
        if (group != DL2_VARIANTS_CONTROL || strcmp(shorts.at[i], "full") != 0)
            dl2_words_add(&lengths, shorts.at[i]);
    return dl2_words_join(lengths, ",");
}

/* The external codec is encoded along with the usual ones, but for one with a time limit. */
static bool has_external(const struct dl2_study_settings *study, unsigned group)
{
    return group == DL2_VARIANTS_EXTERNAL || group == DL2_VARIANTS_ALL ||
           (!study->options.encode_limit &&
            (group == DL2_VARIANTS_USUAL || group == DL2_VARIANTS_CONTROL));
}

/* An external codec stands behind the others. */
struct dl2_words dl2_settings_encoding(const struct dl2_study_settings *study, unsigned group,
                                       bool grades)
{
    const struct dl2_study_options *o = &study->options;
    struct dl2_words own = codecs_of(study, group);
    if (study->external && has_external(study, group))
        dl2_words_add(&own, o->external);
    struct dl2_words command =
        dl2_study_words(study, "dl2-transcode", "recompress", "-j", dl2_text("%u", study->jobs),
                        "--codec", dl2_words_join(own, ","), NULL);
    if (grades)
        dl2_words_more(&command, "--q", in_commas(o->qualities), NULL);
    if (*o->shorts)
        dl2_words_more(&command, "--resize-shorter", lengths_of(study, group), NULL);
    dl2_words_add_command(&command, o->transcode_flags);
    /* Folders would change the numbers of the classes that Parquet files have. */
    if ((strncmp(o->variants, "s3://", 5) == 0 || (study->data_is_got && !*o->variants)) &&
        !dl2_flags_value(o->transcode_flags, "--container"))
        dl2_words_add(&command, "--container=tar");
    return command;
}

static struct dl2_words listing(const struct dl2_study_settings *study, unsigned group, bool grades)
{
    struct dl2_words command = dl2_settings_encoding(study, group, grades);
    dl2_words_more(&command, "--list", "variants", study->data,
                   study->elsewhere ? study->options.variants : dl2_text("%s/variants", study->out),
                   NULL);
    return command;
}

/* Lines of dl2-transcode --list variants. */
static const char *list_variants(const struct dl2_study_settings *study, bool grades)
{
    return dl2_study_ask(study, "TRANSCODE_FLAGS", study->options.transcode_flags,
                         listing(study, DL2_VARIANTS_ALL, grades));
}

enum { NAME, CODEC, QUALITY, PLACE, TABLES, COLUMNS }; /* of such a line */

/* Reads a line, and passes over it. */
static void read_columns(const char **lines, const char *columns[COLUMNS])
{
    for (int c = 0; c < COLUMNS; c++) {
        const size_t length = strcspn(*lines, "\t\n");
        columns[c] = dl2_text("%.*s", (int)length, *lines);
        *lines += length + ((*lines)[length] != '\0');
    }
}

/* Where images are reduced: what that alone does. */
static void name_controls(struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    const char *lines, *messages, *columns[COLUMNS];
    const bool is_png = dl2_words_have(dl2_words_split(o->codecs), "png");
    if (strcmp(o->control, "no") == 0 || is_png || !*lengths_of(study, DL2_VARIANTS_CONTROL))
        return;
    if (dl2_child_ask(listing(study, DL2_VARIANTS_CONTROL, study->has_qualities), &lines,
                      &messages) != 0) {
        if (study->given.control)
            dl2_setting_refuse("CONTROL", o->control, "%s", dl2_first_line(messages));
        fprintf(stderr, "dl2-study: no control of RESIZE_SHORTER without loss: %s\n",
                dl2_first_line(messages));
        return;
    }
    while (*lines) {
        read_columns(&lines, columns);
        if (strcmp(columns[CODEC], "png") != 0)
            continue;
        dl2_words_add(&study->variants, columns[NAME]);
        dl2_words_add(&study->places, columns[PLACE]);
        dl2_words_add(&study->of_control, columns[NAME]);
    }
}

static void check_limit(const struct dl2_study_settings *study)
{
    const char *limit = study->options.encode_limit;
    const struct dl2_words command = dl2_settings_encoding(study, DL2_VARIANTS_EXTERNAL, false);
    if (!study->external)
        dl2_setting_refuse("ENCODE_LIMIT", limit, "it has an effect on EXTERNAL alone");
    if (study->elsewhere)
        dl2_setting_refuse("ENCODE_LIMIT", limit, "variants at an address are written as a whole");
    for (size_t i = 0; i < command.count; i++)
        if (strncmp(command.at[i], "--con", 5) == 0)
            dl2_setting_refuse("ENCODE_LIMIT", limit, "containers are written as a whole: %s",
                               command.at[i]);
    /* Flags must suit the usual codecs, which have a command of their own. */
    dl2_study_ask(study, "TRANSCODE_FLAGS", study->options.transcode_flags,
                  listing(study, DL2_VARIANTS_USUAL, study->has_qualities));
}

void dl2_settings_name_variants(struct dl2_study_settings *study)
{
    const char *pipeline = dl2_settings_tables(study, "pipeline");
    const char *network = dl2_settings_tables(study, "network");
    bool has_tables = !study->tables.count;
    if (study->external)
        check_external(study);
    const char *lines = list_variants(study, false);
    for (const char *line = lines; *line; line = dl2_next_line(line))
        study->has_qualities |= strstr(dl2_first_line(line), "\t-\t") == NULL;
    if (study->has_qualities)
        lines = list_variants(study, true);
    dl2_words_add(&study->names, "raw");
    while (*lines) {
        const char *columns[COLUMNS];
        read_columns(&lines, columns);
        dl2_words_add(&study->variants, columns[NAME]);
        dl2_words_add(&study->places, columns[PLACE]);
        if (study->external && strcmp(columns[CODEC], study->external) == 0)
            dl2_words_add(&study->of_external, columns[NAME]);
        if (strcmp(columns[TABLES], pipeline) == 0)
            dl2_words_add(&study->of_pipeline, columns[NAME]);
        if (strcmp(columns[TABLES], network) == 0)
            dl2_words_add(&study->of_network, columns[NAME]);
        has_tables |= strcmp(columns[TABLES], "-") != 0;
    }
    if (!has_tables && !study->given.tables) /* the dataset's default */
        study->options.tables = "none";
    else if (!has_tables)
        dl2_setting_refuse("TABLES", study->options.tables,
                           "it has no effect: CODECS, \"%s\", has no jpeg", study->options.codecs);
    name_controls(study);
    if (study->options.encode_limit)
        check_limit(study);
    dl2_words_add_all(&study->names, study->variants);
    const char *asked = study->options.train_on;
    if (!asked)
        study->options.train_on = dl2_words_join(study->variants, " ");
    study->train_on = dl2_words_split(study->options.train_on);
    for (size_t i = 0; i < study->train_on.count; i++)
        if (!dl2_words_have(study->variants, study->train_on.at[i]))
            dl2_setting_refuse("TRAIN_ON", asked, "%s is not among the variants %s",
                               study->train_on.at[i], dl2_words_join(study->variants, " "));
}

void dl2_settings_leave_out_late(struct dl2_study_settings *study)
{
    const struct dl2_study_settings all = *study;
    study->variants = study->places = study->of_external = (struct dl2_words){0};
    for (size_t i = 0; i < all.variants.count; i++) {
        const char *name = all.variants.at[i];
        const bool external = dl2_words_have(all.of_external, name);
        const bool late = external && dl2_plan_is_late(dl2_text("%s/variants/%s/dl2-variant.json",
                                                                study->out, name));
        dl2_words_add(late ? &study->late : &study->variants, name);
        if (!late)
            dl2_words_add(&study->places, all.places.at[i]);
        if (!late && external)
            dl2_words_add(&study->of_external, name);
    }
    study->names = study->train_on = (struct dl2_words){0};
    for (size_t i = 0; i < all.names.count; i++)
        if (!dl2_words_have(study->late, all.names.at[i]))
            dl2_words_add(&study->names, all.names.at[i]);
    for (size_t i = 0; i < all.train_on.count; i++)
        if (!dl2_words_have(study->late, all.train_on.at[i]))
            dl2_words_add(&study->train_on, all.train_on.at[i]);
    if (study->late.count)
        fprintf(stderr, "dl2-study: left out, not encoded within ENCODE_LIMIT, %s: %s\n",
                study->options.encode_limit, dl2_words_join(study->late, ", "));
}

/* Whether an option, "--name" or "--name=value", is in a list of dl2-train, and so to be left out
 * of a command; *takes: the next word is its value. */
static bool is_listed(const char *word, const char *list, bool *takes)
{
    const size_t length = strcspn(word, "=");
    for (; *list; list = dl2_next_line(list))
        if (strncmp(list, word, length) == 0 && list[length] == '\t') {
            *takes = !word[length] && list[length + 1] != '\n';
            return true;
        }
    return false;
}

/* What tells of validation, checkpoints and the run's length has no place where speed is measured.
 */
static struct dl2_words find_rate_flags(const struct dl2_study_settings *study, const char *list)
{
    const struct dl2_words flags = dl2_words_of_command(study->options.train_flags);
    struct dl2_words kept = {NULL, 0};
    bool skips = false;
    for (size_t i = 0; i < flags.count; i++) {
        const bool is_value = skips;
        skips = false;
        if (!is_value && !is_listed(flags.at[i], list, &skips))
            dl2_words_add(&kept, flags.at[i]);
    }
    return kept;
}

static void check_training(struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    for (size_t a = 0; a < study->archs.count; a++) {
        struct dl2_words command =
            dl2_study_words(study, "dl2-train", "-j", dl2_text("%u", study->jobs), "--image-size",
                            o->image_size, "--batch", o->batch, "--epochs", o->epochs, "--device",
                            o->device, "--data", study->data, "--arch", study->archs.at[a], NULL);
        for (size_t s = 0; s < study->seeds.count; s++)
            dl2_words_more(&command, "--seed", study->seeds.at[s], NULL);
        add_flags(&command, o->train_flags, "--list", "not-measured");
        study->rate_flags =
            find_rate_flags(study, dl2_study_ask(study, "TRAIN_FLAGS", o->train_flags, command));
    }
    /* The machine that plans for a cluster need not have its cards. */
    if (strcmp(o->device, "auto") == 0 || strcmp(o->engine, "slurm") == 0)
        return;
    struct dl2_words command = dl2_study_words(study, "dl2-train", "--device", o->device, NULL);
    const char *list;
    add_flags(&command, o->train_flags, "--list", "devices");
    dl2_child_ask(command, &list, NULL);
    const char *state = strchr(list, '\t');
    state = state ? strchr(state + 1, '\t') : NULL;
    if (!state || strncmp(state, "\tusable\n", 8) != 0)
        dl2_setting_refuse("DEVICE", o->device, "%s",
                           state ? dl2_first_line(state + 1) : "not known");
}

void dl2_settings_check(struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    const char *jobs = dl2_text("%u", study->jobs);
    struct dl2_words command = dl2_study_words(study, "dl2-quality", "score", "-j", jobs, NULL);
    add_flags(&command, o->quality_flags, "--help", NULL);
    if (*o->quality_flags) /* nothing else that dl2-quality gets can be wrong */
        dl2_study_ask(study, "QUALITY_FLAGS", o->quality_flags, command);
    command = dl2_study_words(study, "dl2-load", "bench", "-j", jobs, "--image-size", o->image_size,
                              "--batch", o->batch, "--measure", o->measure, NULL);
    add_flags(&command, o->load_flags, "--help", NULL);
    dl2_study_ask(study, "LOAD_FLAGS", o->load_flags, command);
    command = dl2_study_words(study, "dl2-report", "page", "--tolerance", o->tolerance, NULL);
    if (study->group && !study->group_is_survey) /* the survey's file comes later */
        dl2_words_more(&command, "--group", study->group, NULL);
    add_flags(&command, o->report_flags, "--help", NULL);
    dl2_study_ask(study, "REPORT_FLAGS", o->report_flags, command);
    if (study->trainer)
        dl2_trainer_say_readers(study);
    else
        check_training(study);
}
