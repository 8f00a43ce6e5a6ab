/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that makes a study again, as the report shows it, and the settings as JSON. */
#include "common/file.h"
#include "study/goals.h"
#include "study/paths.h"
#include "study/settings.h"
#include "study/trainer.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As seen from the checkout, or from anywhere. Links keep their names where that leads to the same
 * place. */
static const char *from_checkout(const char *path, const char *checkout)
{
    struct stat one, other;
    const char *absolute = dl2_path_absolute(path);
    if (stat(path, &one) < 0 || stat(absolute, &other) < 0 || one.st_ino != other.st_ino ||
        one.st_dev != other.st_dev)
        absolute = dl2_path_canonical(path);
    return checkout && dl2_path_is_within(absolute, checkout) && strlen(absolute) > strlen(checkout)
               ? absolute + strlen(checkout) + 1
               : absolute;
}

/* On a shell's command line; for make a dollar is written twice. */
static const char *in_quotes(const char *value, bool of_make)
{
    const char *doubled = "";
    if (strchr(value, ' ') && !strpbrk(value, "\"'$\\`!"))
        return dl2_text("\"%s\"", value);
    for (; *value; value++)
        doubled = dl2_text(*value == '$' && of_make ? "%s$%c" : "%s%c", doubled, *value);
    return dl2_shell_quote(doubled);
}

/* A setting as make's variable or dl2-study's option. */
static void add(struct dl2_words *words, const char *option, const char *value, bool of_make)
{
    const char *text = in_quotes(value, of_make);
    if (of_make)
        dl2_words_add(words, dl2_text("%s=%s", dl2_setting_variable(option), *value ? text : ""));
    else
        dl2_words_add(words, dl2_text("--%s=%s", option, *value ? text : ""));
}

const char *dl2_study_command(const struct dl2_study_settings *study, struct dl2_words goals)
{
    const struct dl2_study_options *o = &study->options, *given = &study->given;
    const char *checkout = o->checkout ? dl2_path_canonical(o->checkout) : NULL;
    const bool of_make = checkout != NULL;
    struct dl2_words words = {0}, own = {0};
    for (size_t i = 0; i < goals.count; i++)
        if (dl2_goal_find(goals.at[i]) && dl2_goal_find(goals.at[i])->question)
            dl2_words_add(&own, goals.at[i]);
    if (!own.count)
        dl2_words_add(&own, "study");
    dl2_words_add(&words, of_make ? "make" : "dl2-study run");
    dl2_words_add_all(&words, own);
    own = dl2_goals_asked(own);
    const char *dataset = study->data_is_named || study->data_is_address
                              ? o->dataset
                              : from_checkout(study->data, checkout);
    const char *const settings[][2] = {
        {"dataset", dataset},
        {"out", from_checkout(study->out, checkout)},
        {"variants", o->variants},
        {"codecs", o->codecs},
        {"external", study->external ? o->external : ""},
        {"qualities", o->qualities},
        {"resize-shorter", o->shorts},
        {"control", given->control},
        {"tables", o->tables},
        {"train-on", study->train_on.count < study->variants.count ? o->train_on : ""},
        {"archs", o->archs},
        {"train-with", o->train_with},
        {"evaluate-with", o->evaluate_with},
        {"weights", given->weights ? from_checkout(given->weights, checkout) : NULL},
        {"result", given->result},
        {"train-files", o->train_files},
        {"sensitivity-with", o->sensitivity_with},
        {"retries", given->retries},
        {"train-limit", given->train_limit},
        {"encode-limit", given->encode_limit},
        {"gpus", given->gpus},
        {"gpus-each", given->gpus_each},
        {"epochs", o->epochs},
        {"seeds", study->trainer && study->trainer->evaluates ? NULL : o->seeds},
        {"decide", o->decide},
        {"image-size", o->image_size},
        {"batch", o->batch},
        {"device", o->device},
        {"tolerance", o->tolerance},
        {"group", o->group},
        {"forecast", o->forecast},
        {"budget", o->budget},
        {"rounds", given->rounds},
        {"measure", given->measure},
        {"transcode-flags", o->transcode_flags},
        {"quality-flags", o->quality_flags},
        {"load-flags", given->load_flags},
        {"train-flags", o->train_flags},
        {"report-flags", o->report_flags},
        {"timeline", o->timeline},
    };
    /* Those that have a default and were given without a value. */
    const char *const emptied[][2] = {
        {"resize-shorter", given->shorts},
        {"train-on", given->train_on},
        {"decide", given->decide}, /* no */
        {"train-flags", given->train_flags},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i][1] && *settings[i][1])
            add(&words, settings[i][0], settings[i][1], of_make);
    for (size_t g = 0; dl2_goal_at(g); g++) {
        const struct dl2_option *variable = dl2_goal_at(g)->variables;
        const char *const *value = o->of_goals[g].at;
        for (; variable && variable->type != DL2_OPTION_END; variable++, value++)
            if (*value && **value && dl2_words_have(own, dl2_goal_at(g)->name))
                add(&words, variable->name, *value, of_make);
    }
    for (size_t i = 0; i < sizeof emptied / sizeof *emptied; i++)
        if (emptied[i][1] && !*emptied[i][1])
            add(&words, emptied[i][0], "", of_make);
    return dl2_words_join(words, " ");
}
