/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs say of the options that the study will pass to them. */
#include "study/child.h"
#include "study/plan.h"

#include <string.h>

static const char *first_line(const char *text)
{
    return dl2_text("%.*s", (int)strcspn(text, "\n"), text);
}

/* Which setting an option's value is of. */
static const char *const variable_of_option[][2] = {
    {"codec", "CODECS"},        {"q", "QUALITIES"},           {"jobs", "JOBS"},
    {"threads", "JOBS"},        {"image-size", "IMAGE_SIZE"}, {"batch", "BATCH"},
    {"seed", "SEEDS"},          {"epochs", "EPOCHS"},         {"device", "DEVICE"},
    {"tolerance", "TOLERANCE"}, {"group", "GROUP"},           {"measure", "MEASURE"},
    {"arch", "ARCHS"},
};

static const char *value_of(const struct dl2_study_settings *study, const char *variable)
{
    const struct dl2_study_options *o = &study->options;
    const char *const values[] = {o->codecs,
                                  o->qualities,
                                  dl2_text("%u", study->jobs),
                                  dl2_text("%u", study->jobs),
                                  o->image_size,
                                  o->batch,
                                  o->seeds,
                                  o->epochs,
                                  o->device,
                                  o->tolerance,
                                  o->group,
                                  o->measure,
                                  o->archs};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(variable_of_option[i][1], variable) == 0)
            return values[i];
    return NULL;
}

const char *dl2_study_ask(const struct dl2_study_settings *study, const char *flags,
                          const char *value, const struct dl2_words *command)
{
    const char *output, *messages;
    if (dl2_child_ask(command, &output, &messages) == 0)
        return output;
    messages = first_line(messages);
    for (size_t i = 0; i < sizeof variable_of_option / sizeof *variable_of_option; i++) {
        const char *mark = dl2_text(": --%s: ", variable_of_option[i][0]);
        const char *complaint = strstr(messages, mark);
        if (complaint)
            dl2_setting_refuse(variable_of_option[i][1], value_of(study, variable_of_option[i][1]),
                               "%s", complaint + strlen(mark));
    }
    dl2_setting_refuse(flags, value, "%s", messages);
}

static void add_flags(struct dl2_words *command, const char *flags, const char *end,
                      const char *what)
{
    const struct dl2_words words = dl2_words_of_command(flags);
    dl2_words_add_all(command, &words);
    dl2_words_add(command, end);
    if (what)
        dl2_words_add(command, what);
}

static void check_encoding(const struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    struct dl2_words command;
    if (study->external) {
        const char *output, *messages;
        command = dl2_study_words(study, "dl2-transcode", "--codec", o->external, "--list",
                                  "codecs", NULL);
        if (dl2_child_ask(&command, &output, &messages) != 0) {
            const char *mark = "--codec: ", *complaint = strstr(messages, mark);
            dl2_setting_refuse("EXTERNAL", o->external, "%s",
                               first_line(complaint ? complaint + strlen(mark) : messages));
        }
    }
    const char *codecs = dl2_words_join(&study->codecs, ",");
    command =
        dl2_study_words(study, "dl2-transcode", "-j", dl2_text("%u", study->jobs), "--codec",
                        study->external ? dl2_text("%s,%s", codecs, o->external) : codecs, NULL);
    if (dl2_study_has_qualities(study)) {
        dl2_words_add(&command, "--q");
        dl2_words_add(&command, dl2_words_join(&study->qualities, ","));
    }
    add_flags(&command, o->transcode_flags, "--list", "codecs");
    dl2_study_ask(study, "TRANSCODE_FLAGS", o->transcode_flags, &command);
}

/* Whether an option, "--name" or "--name=value", is in a list of dl2-train, and so to be left out
 * of a command; *takes: the next word is its value. */
static bool is_listed(const char *word, const char *list, bool *takes)
{
    const size_t length = strcspn(word, "=");
    while (*list) {
        if (strncmp(list, word, length) == 0 && list[length] == '\t') {
            *takes = !word[length] && list[length + 1] != '\n';
            return true;
        }
        list += strcspn(list, "\n");
        list += *list == '\n';
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
        for (size_t s = 0; s < study->seeds.count; s++) {
            dl2_words_add(&command, "--seed");
            dl2_words_add(&command, study->seeds.at[s]);
        }
        add_flags(&command, o->train_flags, "--list", "not-measured");
        study->rate_flags =
            find_rate_flags(study, dl2_study_ask(study, "TRAIN_FLAGS", o->train_flags, &command));
    }
    if (strcmp(o->device, "auto") == 0)
        return;
    struct dl2_words command = dl2_study_words(study, "dl2-train", "--device", o->device, NULL);
    const char *list;
    add_flags(&command, o->train_flags, "--list", "devices");
    dl2_child_ask(&command, &list, NULL);
    const char *state = strchr(list, '\t');
    state = state ? strchr(state + 1, '\t') : NULL;
    if (!state || strncmp(state, "\tusable\n", 8) != 0)
        dl2_setting_refuse("DEVICE", o->device, "%s", state ? first_line(state + 1) : "not known");
}

void dl2_settings_check(struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    const char *jobs = dl2_text("%u", study->jobs);
    check_encoding(study);
    struct dl2_words command = dl2_study_words(study, "dl2-quality", "-j", jobs, NULL);
    add_flags(&command, o->quality_flags, "--help", NULL);
    dl2_study_ask(study, "QUALITY_FLAGS", o->quality_flags, &command);
    command = dl2_study_words(study, "dl2-load", "-j", jobs, "--image-size", o->image_size,
                              "--batch", o->batch, "--measure", o->measure, NULL);
    add_flags(&command, o->load_flags, "--help", NULL);
    dl2_study_ask(study, "LOAD_FLAGS", o->load_flags, &command);
    command = dl2_study_words(study, "dl2-report", "--tolerance", o->tolerance, NULL);
    if (study->group && strcmp(o->group, "survey") != 0) { /* the survey's file comes later */
        dl2_words_add(&command, "--group");
        dl2_words_add(&command, study->group);
    }
    add_flags(&command, o->report_flags, "--help", NULL);
    dl2_study_ask(study, "REPORT_FLAGS", o->report_flags, &command);
    check_training(study);
}
