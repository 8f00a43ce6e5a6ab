/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that makes a study again, as the report shows it, and the settings as JSON. */
#include "common/file.h"
#include "study/goals.h"
#include "study/paths.h"
#include "study/settings.h"

#include <ctype.h>
#include <stdlib.h>
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
    const char *value = dl2_words_join(&words, " ");
    if (words.count > 1 && !strpbrk(value, "\"'$\\`!"))
        return dl2_text("\"%s\"", value);
    const char *doubled = "";
    for (; *value; value++)
        doubled = dl2_text(*value == '$' ? "%s$%c" : "%s%c", doubled, *value);
    return dl2_shell_quote(doubled);
}

const char *dl2_study_command(const struct dl2_study_settings *study, const struct dl2_words *goals)
{
    const struct dl2_study_options *o = &study->options, *given = &study->given;
    const char *checkout = checkout_of(study), *makefile = study->options.makefile;
    struct dl2_words words = {0}, own = {0};
    for (size_t i = 0; i < goals->count; i++)
        if (dl2_goal_find(goals->at[i]) && dl2_goal_find(goals->at[i])->question)
            dl2_words_add(&own, goals->at[i]);
    if (!own.count)
        dl2_words_add(&own, "study");
    dl2_words_add(
        &words, !makefile  ? "dl2-study run"
                : checkout ? "make"
                           : dl2_text("make -f %s", dl2_shell_quote(dl2_path_absolute(makefile))));
    dl2_words_add_all(&words, &own);
    const char *dataset = study->data_is_named || study->data_is_table
                              ? o->dataset
                              : from_checkout(study->data, checkout);
    const struct {
        const char *name, *value;
        bool shown;
    } settings[] = {
        {"DATASET", dataset, true},
        {"OUT", from_checkout(study->out, checkout), true},
        {"VARIANTS", o->variants, *o->variants},
        {"CODECS", o->codecs, true},
        {"EXTERNAL", o->external, study->external},
        {"QUALITIES", o->qualities, true},
        {"SHORTS", o->shorts, *o->shorts},
        {"TABLES", o->tables, *o->tables},
        {"TRAIN_ON", o->train_on, study->train_on.count < study->variants.count},
        {"ARCHS", o->archs, true},
        {"EPOCHS", o->epochs, true},
        {"SEEDS", o->seeds, true},
        {"DECIDE", o->decide, *o->decide},
        {"IMAGE_SIZE", o->image_size, true},
        {"BATCH", o->batch, true},
        {"DEVICE", o->device, true},
        {"TOLERANCE", o->tolerance, true},
        {"GROUP", o->group, *o->group},
        {"FORECAST", o->forecast, *o->forecast},
        {"BUDGET", o->budget, *o->budget},
        {"ROUNDS", o->rounds, given->rounds != NULL},
        {"MEASURE", o->measure, given->measure != NULL},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i].shown)
            dl2_words_add(&words,
                          dl2_text("%s=%s", settings[i].name, in_quotes(settings[i].value)));
    for (size_t g = 0; dl2_goal_at(g); g++) {
        const struct dl2_goal *goal = dl2_goal_at(g);
        for (size_t v = 0; goal->variables && goal->variables[v].type != DL2_OPTION_END; v++) {
            const char *value = o->of_goals[g].at[v];
            if (value && *value && dl2_words_have(&own, goal->name))
                dl2_words_add(&words,
                              dl2_text("%s=%s", dl2_setting_variable(goal->variables[v].name),
                                       in_quotes(value)));
        }
    }
    const char *const flags[][2] = {{"TRANSCODE_FLAGS", o->transcode_flags},
                                    {"QUALITY_FLAGS", o->quality_flags},
                                    {"LOAD_FLAGS", o->load_flags},
                                    {"TRAIN_FLAGS", o->train_flags},
                                    {"REPORT_FLAGS", o->report_flags}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (*flags[i][1])
            dl2_words_add(&words, dl2_text("%s=%s", flags[i][0], in_quotes(flags[i][1])));
    return dl2_words_join(&words, " ");
}
