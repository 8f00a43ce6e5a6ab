/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that makes a study again, as the report shows it, and the settings as JSON. */
#include "common/file.h"
#include "study/goals.h"
#include "study/paths.h"
#include "study/settings.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The checkout that the makefile lies in, or NULL. */
static const char *checkout_of(const struct dl2_study_settings *study)
{
    if (!study->options.makefile)
        return NULL;
    const char *file = dl2_path_canonical(study->options.makefile);
    const char *root =
        dl2_path_canonical(dl2_text("%.*s/..", (int)(dl2_path_base(file) - file) - 1, file));
    return access(dl2_text("%s/configure.ac", root), F_OK) == 0 ? root : NULL;
}

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

/* For make, on a shell's command line. */
static const char *in_quotes(const char *text)
{
    const struct dl2_words words = dl2_words_split(text);
    const char *value = dl2_words_join(words, " ");
    if (words.count > 1 && !strpbrk(value, "\"'$\\`!"))
        return dl2_text("\"%s\"", value);
    const char *doubled = "";
    for (; *value; value++)
        doubled = dl2_text(*value == '$' ? "%s$%c" : "%s%c", doubled, *value);
    return dl2_shell_quote(doubled);
}

/* One without a value is left out. */
static void add_setting(struct dl2_words *words, const char *name, const char *value)
{
    if (value && *value)
        dl2_words_add(words, dl2_text("%s=%s", name, in_quotes(value)));
}

/* One that has a default and was given without a value. */
static void add_emptied(struct dl2_words *words, const char *name, const char *given)
{
    if (given && !*given)
        dl2_words_add(words, dl2_text("%s=", name));
}

const char *dl2_study_command(const struct dl2_study_settings *study, struct dl2_words goals)
{
    const struct dl2_study_options *o = &study->options, *given = &study->given;
    const char *checkout = checkout_of(study), *makefile = study->options.makefile;
    struct dl2_words words = {0}, own = {0};
    for (size_t i = 0; i < goals.count; i++)
        if (dl2_goal_find(goals.at[i]) && dl2_goal_find(goals.at[i])->question)
            dl2_words_add(&own, goals.at[i]);
    if (!own.count)
        dl2_words_add(&own, "study");
    dl2_words_add(
        &words, !makefile  ? "dl2-study run"
                : checkout ? "make"
                           : dl2_text("make -f %s", dl2_shell_quote(dl2_path_absolute(makefile))));
    dl2_words_add_all(&words, own);
    const char *dataset = study->data_is_named || study->data_is_address
                              ? o->dataset
                              : from_checkout(study->data, checkout);
    const char *const settings[][2] = {
        {"DATASET", dataset},
        {"OUT", from_checkout(study->out, checkout)},
        {"VARIANTS", o->variants},
        {"CODECS", o->codecs},
        {"EXTERNAL", study->external ? o->external : ""},
        {"QUALITIES", o->qualities},
        {"SHORTS", o->shorts},
        {"CONTROL", given->control},
        {"TABLES", o->tables},
        {"TRAIN_ON", study->train_on.count < study->variants.count ? o->train_on : ""},
        {"ARCHS", o->archs},
        {"EPOCHS", o->epochs},
        {"SEEDS", o->seeds},
        {"DECIDE", o->decide},
        {"IMAGE_SIZE", o->image_size},
        {"BATCH", o->batch},
        {"DEVICE", o->device},
        {"TOLERANCE", o->tolerance},
        {"GROUP", o->group},
        {"FORECAST", o->forecast},
        {"BUDGET", o->budget},
        {"ROUNDS", given->rounds},
        {"MEASURE", given->measure},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        add_setting(&words, settings[i][0], settings[i][1]);
    for (size_t g = 0; dl2_goal_at(g); g++) {
        const struct dl2_option *variables = dl2_goal_at(g)->variables;
        if (variables && dl2_words_have(own, dl2_goal_at(g)->name))
            for (size_t v = 0; variables[v].type != DL2_OPTION_END; v++)
                add_setting(&words, dl2_setting_variable(variables[v].name), o->of_goals[g].at[v]);
    }
    add_setting(&words, "TRANSCODE_FLAGS", o->transcode_flags);
    add_setting(&words, "QUALITY_FLAGS", o->quality_flags);
    add_setting(&words, "LOAD_FLAGS", given->load_flags);
    add_setting(&words, "TRAIN_FLAGS", o->train_flags);
    add_setting(&words, "REPORT_FLAGS", o->report_flags);
    add_emptied(&words, "SHORTS", given->shorts);
    add_emptied(&words, "TRAIN_FLAGS", given->train_flags);
    return dl2_words_join(words, " ");
}
