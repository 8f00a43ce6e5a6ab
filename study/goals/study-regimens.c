/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"
#include "study/paths.h"

#include <stdlib.h>
#include <string.h>

static const struct dl2_option regimen_variables[] = {
    {DL2_OPTION_PARSE, "regimens", 0, "LIST",
     "Of study-regimens: stages of a training, each a variant (raw: the original) and its epochs, "
     "for example 'jpeg-10:20,raw:10 jpeg-10:20:size=48,raw:10' (dl2-train --help: --stages)",
     offsetof(struct dl2_goal_values, at[0]), .parse = dl2_setting_parse_names,
     .unset = "half of EPOCHS on the first of TRAIN_ON, the rest on the original"},
    {DL2_OPTION_END}};

struct regimen {
    struct dl2_words variants; /* of its stages */
    const char *name;          /* jpeg-10.20+raw.10 */
    const char *stages;        /* PLACE:20,PLACE:10 */
    double epochs;
};

static struct regimen read_regimen(const struct dl2_study_settings *study, const char *text)
{
    struct regimen regimen = {.name = "", .stages = ""};
    for (const char *c = text; *c; c++)
        regimen.name = dl2_text("%s%c", regimen.name,
                                *c == ':'   ? '.'
                                : *c == ',' ? '+'
                                : *c == '=' ? '-'
                                            : *c);
    while (*text) {
        const size_t length = strcspn(text, ","), name = strcspn(text, ":,");
        const char *variant = dl2_text("%.*s", (int)name, text);
        const bool known = dl2_words_have(study->names, variant);
        dl2_words_add(&regimen.variants, variant);
        regimen.epochs += text[name] == ':' ? strtod(text + name + 1, NULL) : 0;
        regimen.stages = dl2_text("%s%s%s%.*s", regimen.stages, *regimen.stages ? "," : "",
                                  known ? dl2_study_place(study, variant) : variant,
                                  (int)(length - name), text + name);
        text += length + (text[length] == ',');
    }
    return regimen;
}

/* REGIMENS, or its default. */
static const char *regimens_of(const struct dl2_study_settings *study)
{
    const char *own = dl2_goal_value(study, "study-regimens", 0);
    const double half = strtod(study->options.epochs, NULL) / 2;
    return own && *own             ? own
           : study->train_on.count ? dl2_text("%s:%.6g,raw:%.6g", study->train_on.at[0], half, half)
                                   : "";
}

static void check_regimens(const struct dl2_study_settings *study, bool is_asked)
{
    const char *text = is_asked ? regimens_of(study) : dl2_goal_value(study, "study-regimens", 0);
    const struct dl2_words list = dl2_words_split(text ? text : "");
    if (is_asked && !list.count)
        dl2_study_fail(DL2_EXIT_USAGE, "study-regimens needs a variant in TRAIN_ON, or REGIMENS");
    for (size_t i = 0; i < list.count; i++) {
        const struct regimen regimen = read_regimen(study, list.at[i]);
        for (size_t v = 0; v < regimen.variants.count; v++) {
            const char *name = regimen.variants.at[v], *place = dl2_study_place(study, name);
            if (!dl2_words_have(study->names, name))
                dl2_setting_refuse("REGIMENS", text,
                                   "%s: %s is neither raw nor among the variants %s", list.at[i],
                                   name, dl2_words_join(study->variants, " "));
            if (strchr(place, ','))
                dl2_setting_refuse("REGIMENS", text, "%s: %s lies in %s, which has a comma",
                                   list.at[i], name, place);
        }
        struct dl2_words command = dl2_study_words(study, "dl2-train", "--stages", "", "--batch",
                                                   study->options.batch, NULL);
        /* The variants may not be there yet: the dataset stands for them. */
        const char *stages = "", *stage = list.at[i];
        for (; *stage; stage += strcspn(stage, ","), stage += *stage == ',') {
            const size_t name = strcspn(stage, ":,"), length = strcspn(stage, ",");
            stages = dl2_text("%s%s%s%.*s", stages, *stages ? "," : "", study->data,
                              (int)(length - name), stage + name);
        }
        command.at[2] = stages;
        dl2_words_add_command(&command, study->options.train_flags);
        dl2_words_more(&command, "--list", "archs", NULL);
        dl2_study_ask(study, "REGIMENS", text, command);
    }
}

/* The study's own training on the original, of as many epochs, stands here, too. */
static const char *plan_link(struct dl2_study_plan *plan, const struct dl2_training *training)
{
    const char *run = dl2_text("raw/%s/seed-%s", training->arch, training->seed);
    const char *folder = dl2_text("%s/train/%s", training->root, run);
    const char *file = dl2_text("%s/experiment_report.json", folder);
    const char *own = dl2_plan_run(plan, run, NULL);
    struct dl2_step *step = dl2_plan_step(plan, folder + strlen(plan->out) + 1, "run", file);
    struct dl2_words command = {0};
    if (!step)
        return file;
    dl2_words_more(&command, "cp", "-R", dl2_text("%s/.", dl2_path_folder(own)), folder, NULL);
    dl2_commands_add(&step->commands, command);
    dl2_files_add(&step->inputs, own);
    step->clears = folder;
    dl2_plan_close(plan, step, false);
    return file;
}

static void plan_regimen(struct dl2_study_plan *plan, const struct regimen *regimen,
                         struct dl2_words *files)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *settings =
        dl2_text("%s %s %s %s", o->image_size, o->batch, o->device, o->train_flags);
    const char *epochs = dl2_text("%.6g", regimen->epochs);
    for (size_t a = 0; a < study->archs.count; a++)
        for (size_t s = 0; s < study->seeds.count; s++) {
            struct dl2_training training = {.stage = "regimens",
                                            .root = dl2_text("%s/regimens/%s", study->out, epochs),
                                            .name = "raw",
                                            .arch = study->archs.at[a],
                                            .seed = study->seeds.at[s],
                                            .on = dl2_training_on(study, "raw"),
                                            .validated = "raw"};
            dl2_words_add(&training.inputs, dl2_plan_dataset(plan));
            struct dl2_training own = training;
            dl2_words_more(&training.lasting, "--epochs", epochs, NULL);
            dl2_words_add(files, strcmp(epochs, o->epochs) == 0
                                     ? plan_link(plan, &training)
                                     : dl2_plan_training(plan, &training, settings, NULL));
            own.name = regimen->name;
            own.on = (struct dl2_words){0};
            dl2_words_more(&own.on, "--stages", regimen->stages, NULL);
            own.validated = regimen->variants.at[regimen->variants.count - 1];
            own.inputs = (struct dl2_words){0};
            dl2_words_add(&own.inputs, dl2_plan_dataset(plan));
            for (size_t v = 0; v < regimen->variants.count; v++)
                dl2_words_add(&own.inputs, dl2_plan_place_file(plan, regimen->variants.at[v]));
            dl2_words_add(files, dl2_plan_training(plan, &own, settings, NULL));
        }
}

/* Beside each regimen the original alone, for as many epochs. */
static struct dl2_words plan_study_regimens(struct dl2_study_plan *plan)
{
    const struct dl2_words list = dl2_words_split(regimens_of(plan->study));
    struct dl2_words files = {0};
    dl2_plan_variants(plan);
    for (size_t i = 0; i < list.count; i++) {
        const struct regimen regimen = read_regimen(plan->study, list.at[i]);
        plan_regimen(plan, &regimen, &files);
    }
    return files;
}

static const struct dl2_goal goal_study_regimens = {
    .name = "study-regimens",
    .summary = "training by REGIMENS beside training on the original for as many epochs "
               "(OUT/regimens)",
    .question = "Does training in stages do as well?",
    .hypothesis = "H3",
    .section = "regimens",
    .folders = "regimens",
    .variables = regimen_variables,
    .check = check_regimens,
    .by_dl2_train = "whose stages are dl2-train's",
    .plan = plan_study_regimens,
};
