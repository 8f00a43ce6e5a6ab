/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"
#include "common/json.h"
#include "study/child.h"
#include "study/goals.h"
#include "study/work.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct dl2_option hypotheses_variables[] = {
    {DL2_OPTION_PARSE, "keep-copies", 0, "yes|no",
     "Of hypotheses: keep the images of the variants that it made; what needs them again makes "
     "them, and what depends on them, anew",
     offsetof(struct dl2_goal_values, at[0]), .parse = dl2_setting_parse_yes_or_no, .unset = "no"},
    {DL2_OPTION_END}};

static void set(const char **value, const char *text)
{
    if (!*value)
        *value = text;
}

/* As small as answers allow: three seeds and rounds for intervals, two qualities for the sizes of
 * codecs at equal quality. */
static void set_defaults(struct dl2_study_options *options)
{
    set(&options->codecs, "jpeg webp");
    set(&options->qualities, "10 75");
    set(&options->shorts, "full");
    set(&options->seeds, "1 2 3");
    set(&options->rounds, "3");
    set(&options->measure, "0.5");
    dl2_goal_default(options, "study-time", 0, "5s 15s");
}

static bool keeps(const struct dl2_study_settings *study)
{
    const char *keep = dl2_goal_value(study, "hypotheses", 0);
    return study->elsewhere || (keep && strcmp(keep, "yes") == 0);
}

/* The variants that this goal makes, also in a run that was interrupted; others are the user's. */
static const char *record_of(const struct dl2_study_plan *plan)
{
    return dl2_plan_stage(plan, "own-copies");
}

static void note_copies(const struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const char *path = record_of(plan), *text = dl2_text_of_file(path);
    if (keeps(study)) {
        unlink(path);
        return;
    }
    text = text ? text : "";
    for (size_t v = 0; v < study->variants.count; v++) {
        const char *name = study->variants.at[v];
        const char *folder = dl2_text("%s/variants/%s", study->out, name);
        if ((!dl2_is_folder(folder) ||
             dl2_plan_is_removed(dl2_text("%s/dl2-variant.json", folder))) &&
            !dl2_words_have(dl2_words_split(text), name))
            text = dl2_text("%s%s\n", text, name);
    }
    dl2_text_save(path, text);
}

/* What is known of the images stays. */
static double remove_images(const char *folder)
{
    json_auto_t *facts = dl2_work_load(dl2_text("%s/dl2-variant.json", folder), NULL);
    char **names;
    if (dl2_list_names(folder, &names, NULL) < 0)
        return 0;
    close(dl2_work_open(dl2_text("%s/" DL2_IMAGES_REMOVED, folder)));
    for (char **name = names; *name; name++) {
        const char *path = dl2_text("%s/%s", folder, *name);
        if (dl2_is_folder(path))
            dl2_remove_tree(path);
        else if (strncmp(*name, "dl2-variant.json", 16) != 0)
            unlink(path);
    }
    dl2_free_list(names);
    return dl2_json_get_real(facts, "bytes", 0);
}

static void remove_copies(const struct dl2_study_plan *plan)
{
    const char *path = record_of(plan), *text = dl2_text_of_file(path);
    const struct dl2_words names = dl2_words_split(text ? text : "");
    struct dl2_words removed = {0};
    double bytes = 0;
    for (size_t i = 0; i < names.count; i++) {
        const char *folder = dl2_text("%s/variants/%s", plan->out, names.at[i]);
        const char *facts = dl2_text("%s/dl2-variant.json", folder);
        if (!dl2_is_file(facts) || dl2_plan_is_removed(facts))
            continue;
        bytes += remove_images(folder);
        dl2_words_add(&removed, names.at[i]);
    }
    unlink(path);
    if (removed.count)
        dl2_work_say("Removed the images of %s, which this goal had made: %.3g MB. KEEP_COPIES=yes "
                     "keeps them",
                     dl2_words_join(removed, ", "), bytes / 1e6);
}

/* Also of a study that failed: what is not known is said so. The copies are there to go on with. */
static int finish(const struct dl2_study_plan *plan, int status)
{
    const struct dl2_study_settings *study = plan->study;
    const int shown = dl2_child_run(
        dl2_study_words(study, "dl2-report", "hypotheses", "--tolerance", study->options.tolerance,
                        "--variants", dl2_words_join(study->names, " "), "--trainings",
                        dl2_words_join(plan->runs, " "), "--group",
                        study->group ? study->group : "none", "--output",
                        dl2_text("%s/hypotheses.md", study->out), study->out, NULL),
        -1, -1);
    status = status == DL2_EXIT_OK ? shown : status;
    if (status == DL2_EXIT_OK && !keeps(study))
        remove_copies(plan);
    return status;
}

static struct dl2_words plan_hypotheses(struct dl2_study_plan *plan)
{
    (void)plan;
    return (struct dl2_words){0};
}

static const struct dl2_goal goal_hypotheses = {
    .name = "hypotheses",
    .summary = "all goals with a hypothesis, with a small grid by default, and a page that answers "
               "each in a sentence beside what the paper found (OUT/hypotheses.md, "
               "OUT/hypotheses.json); the images of variants that it made are removed at the end",
    .question = "What do the hypotheses of (DL)2 come to here?",
    .section = "answer",
    .folders = "hypotheses.md hypotheses.json",
    .variables = hypotheses_variables,
    .asks_hypotheses = true,
    .by_dl2_train = "whose parts need dl2-train",
    .defaults = set_defaults,
    .plan = plan_hypotheses,
    .begin = note_copies,
    .finish = finish,
};
