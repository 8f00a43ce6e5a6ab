/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

#include <string.h>

enum { WORKERS, STORAGES, CACHES };

static const struct dl2_option loading_variables[] = {
    {DL2_OPTION_PARSE, "workers", 0, "LIST", "Of study-loading: numbers of worker threads",
     offsetof(struct dl2_goal_values, at[WORKERS]), .parse = dl2_setting_parse_numbers,
     .unset = "1, 2, 4... up to JOBS"},
    {DL2_OPTION_PARSE, "storages", 0, "LIST",
     "Of study-loading: memory (the page cache), disk (evicted before each epoch), or both",
     offsetof(struct dl2_goal_values, at[STORAGES]), .parse = dl2_setting_parse_names,
     .unset = "both; of tables memory alone"},
    {DL2_OPTION_PARSE, "caches", 0, "LIST",
     "Of study-loading: memory for images, in percent of the original's bytes",
     offsetof(struct dl2_goal_values, at[CACHES]), .parse = dl2_setting_parse_numbers,
     .unset = "0 25 50 75 100"},
    {DL2_OPTION_END}};

/* A server's memory can't be emptied, so tables have no disk. */
static bool has_tables(const struct dl2_study_settings *study)
{
    return study->data_is_table || study->table;
}

static void check_loading(const struct dl2_study_settings *study, bool is_asked)
{
    const char *text = dl2_goal_value(study, "study-loading", STORAGES);
    const struct dl2_words storages = dl2_words_split(text ? text : "");
    for (size_t i = 0; i < storages.count; i++)
        if (strcmp(storages.at[i], "memory") != 0 && strcmp(storages.at[i], "disk") != 0)
            dl2_setting_refuse("STORAGES", text, "memory and disk are known");
    if (is_asked && has_tables(study) && dl2_words_have(storages, "disk"))
        dl2_setting_refuse("STORAGES", text,
                           "a server keeps tables in its own memory: leave disk out");
}

static struct dl2_words some_workers(unsigned jobs)
{
    struct dl2_words list = {0};
    unsigned workers = 1;
    for (; workers < jobs; workers *= 2)
        dl2_words_add(&list, dl2_text("%u", workers));
    dl2_words_add(&list, dl2_text("%u", jobs));
    return list;
}

/* What memory saves is a matter of whole epochs, and not of chance: once, from a disk that nothing
 * else caches. */
static void add_cache_cells(struct dl2_study_plan *plan, json_t *step, const char *cache)
{
    const struct dl2_study_settings *study = plan->study;
    const char *jobs = dl2_text("%u", study->jobs);
    for (size_t n = 0; n < study->names.count; n++) {
        const char *name = study->names.at[n];
        struct dl2_cell cell = {.path = dl2_text("cache-%s/jobs-%s/load/%s", cache, jobs, name),
                                .name = name,
                                .workers = jobs,
                                .cache = cache,
                                .once = true};
        dl2_words_more(&cell.options, "--epochs", "2", has_tables(study) ? NULL : "--cold", NULL);
        dl2_step_cell(plan, step, &cell);
    }
}

/* A variable's list, or the default. */
static struct dl2_words list_of(const struct dl2_study_settings *study, size_t variable,
                                const char *usual)
{
    const char *text = dl2_goal_value(study, "study-loading", variable);
    return dl2_words_split(text ? text : usual);
}

static struct dl2_words plan_study_loading(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const struct dl2_words workers =
        list_of(study, WORKERS, dl2_words_join(some_workers(study->jobs), " "));
    const struct dl2_words storages =
        list_of(study, STORAGES, has_tables(study) ? "memory" : "memory disk");
    const struct dl2_words caches = list_of(study, CACHES, "0 25 50 75 100");
    const struct dl2_words variants = dl2_plan_variants(plan);
    struct dl2_words files = {0};
    dl2_words_add(&files, dl2_text("%s/loading/.made", study->out));
    json_t *step = dl2_plan_step(plan, "loading", "measure", files.at[0]);
    if (!step)
        return files;
    dl2_plan_settings(plan, step, "loading",
                      dl2_text("%s %s %s %s %s %u %s %s %s %s %s %s %s",
                               dl2_words_join(study->names, " "), o->archs, o->image_size, o->batch,
                               o->device, study->jobs, o->rounds, o->measure,
                               dl2_words_join(workers, " "), dl2_words_join(storages, " "),
                               dl2_words_join(caches, " "), o->load_flags, o->train_flags));
    dl2_step_add(step, "inputs", dl2_plan_dataset(plan));
    dl2_step_add_all(step, "inputs", variants);
    dl2_step_rounds(plan, step);
    for (size_t s = 0; s < storages.count; s++)
        for (size_t w = 0; w < workers.count; w++)
            for (size_t n = 0; n < study->names.count; n++)
                dl2_step_cells(plan, step, dl2_text("%s/jobs-%s/", storages.at[s], workers.at[w]),
                               study->names.at[n], workers.at[w],
                               strcmp(storages.at[s], "memory") != 0);
    for (size_t c = 0; c < caches.count; c++)
        add_cache_cells(plan, step, caches.at[c]);
    dl2_plan_close(plan, step, false);
    return files;
}

static const struct dl2_goal goal_study_loading = {
    .name = "study-loading",
    .summary =
        "each variant from memory and from a cold disk, with several numbers of workers, and "
        "what memory saves: the loader alone and with training, in ROUNDS (OUT/loading)",
    .question = "How fast is each variant, from what storage?",
    .hypothesis = "H1, H4",
    .section = "loading",
    .folders = "loading",
    .variables = loading_variables,
    .check = check_loading,
    .plan = plan_study_loading,
};
