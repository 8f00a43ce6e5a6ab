/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"
#include "common/option.h"
#include "study/child.h"
#include "study/goals.h"
#include "study/paths.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS, STORAGES, CACHES, LOADERS, LOADERS_PYTHON, DEVICE_RATE };

static const struct dl2_option loading_variables[] = {
    {DL2_OPTION_PARSE, "workers", 0, "LIST", "Of study-loading: numbers of worker threads",
     offsetof(struct dl2_goal_values, at[WORKERS]), .parse = dl2_setting_parse_numbers,
     .unset = "1, 2, 4... up to JOBS"},
    {DL2_OPTION_PARSE, "storages", 0, "LIST",
     "Of study-loading: memory (the page cache), disk (evicted before each epoch), memory=SIZE (so "
     "much for the process and its page cache), memory=SIZE,cache=SIZE, or a folder or address, to "
     "which all is copied",
     offsetof(struct dl2_goal_values, at[STORAGES]), .parse = dl2_setting_parse_names,
     .unset = "memory and disk; of tables memory alone"},
    {DL2_OPTION_PARSE, "caches", 0, "LIST",
     "Of study-loading: memory for images, in percent of the original's bytes",
     offsetof(struct dl2_goal_values, at[CACHES]), .parse = dl2_setting_parse_numbers,
     .unset = "0 25 50 75 100"},
    {DL2_OPTION_PARSE, "loaders", 0, "LIST",
     "Of study-loading: loaders to compare (OUT/loaders.txt), each with the same crops, batches "
     "and "
     "WORKERS: dl2 (from Python), torch (PyTorch's DataLoader with torchvision), dali (on the "
     "CPU), "
     "and the others of study/peer_load.py. Those whose package is missing are left out",
     offsetof(struct dl2_goal_values, at[LOADERS]), .parse = dl2_setting_parse_names,
     .unset = "none"},
    {DL2_OPTION_TEXT, "loaders-python", 0, "PROGRAM", "Of study-loading: the Python of LOADERS",
     offsetof(struct dl2_goal_values, at[LOADERS_PYTHON]), .unset = "python3"},
    {DL2_OPTION_PARSE, "device-rate", 0, "IMAGES",
     "Of study-loading: images a second that a device takes of LOADERS; how long it waits for them "
     "is measured, and how busy it is",
     offsetof(struct dl2_goal_values, at[DEVICE_RATE]), .parse = dl2_setting_parse_numbers,
     .unset = "1000"},
    {DL2_OPTION_END}};

/* A server's memory can't be emptied, so tables have no disk. */
static bool has_tables(const struct dl2_study_settings *study)
{
    return study->data_is_address || study->elsewhere;
}

/* One of STORAGES. */
struct storage {
    const char *folder; /* of its results */
    const char *limit;  /* of memory, bytes; NULL: none */
    const char *cache;  /* the loader's, bytes; NULL: none */
    const char *root;   /* where copies are read from; NULL: where the study has its files */
    bool cold;          /* they are evicted before each epoch */
};

/* The text as a part of file names: "/mnt/x" is "mnt-x". */
static const char *file_name_of(const char *text)
{
    char *name = (char *)dl2_text("%s", text), *end = name;
    for (const char *at = text; *at; at++)
        if (isalnum((unsigned char)*at) || (*at == '.' && end > name))
            *end++ = *at;
        else if (end > name && end[-1] != '-')
            *end++ = '-';
    while (end > name && end[-1] == '-')
        end--;
    *end = '\0';
    return name;
}

/* The value of a size, "memory=SIZE" or "cache=SIZE", up to the end of the word or its comma. */
static const char *size_of(const char *word, const char *key, const char *all)
{
    const char *value = word + strlen(key);
    struct dl2_error error = DL2_ERROR_INIT;
    uint64_t bytes;
    if (dl2_parse_size(dl2_text("%.*s", (int)strcspn(value, ","), value), &bytes, &error) < 0 ||
        !bytes)
        dl2_setting_refuse("STORAGES", all, "%s: %s", word, bytes ? error.message : "it is 0");
    return dl2_text("%" PRIu64, bytes);
}

static struct storage storage_of(const char *word, const char *all)
{
    struct storage storage = {.folder = file_name_of(word)};
    const char *comma = strchr(word, ',');
    if (strchr(word, '/')) {
        storage.root = word;
        storage.cold = !strstr(word, "://");
    } else if (strncmp(word, "memory=", 7) == 0) {
        storage.limit = size_of(word, "memory=", all);
        if (comma && strncmp(comma, ",cache=", 7) == 0 && !strchr(comma + 1, ','))
            storage.cache = size_of(comma, ",cache=", all);
        else if (comma)
            dl2_setting_refuse("STORAGES", all, "%s: what follows memory= is cache=", word);
    } else if (strcmp(word, "disk") == 0) {
        storage.cold = true;
    } else if (strcmp(word, "memory") != 0) {
        dl2_setting_refuse("STORAGES", all,
                           "%s is neither memory, disk, memory=SIZE, memory=SIZE,cache=SIZE nor a "
                           "path with a slash",
                           word);
    }
    return storage;
}

/* Can memory be limited here? The shell's reason is the refusal. */
static void check_limit(const struct dl2_study_settings *study, const struct storage *storage,
                        const char *all)
{
    struct dl2_words command = {0};
    const char *output, *messages;
    dl2_words_more(&command, "sh", dl2_text("%s/memory-limit.sh", study->scripts), storage->limit,
                   "true", "--", "true", NULL);
    if (!study->scripts)
        dl2_setting_refuse("STORAGES", all,
                           "memory-limit.sh, which comes with dl2-study, is not found");
    if (dl2_child_ask(command, &output, &messages) != 0)
        dl2_setting_refuse("STORAGES", all, "memory cannot be limited here: %s",
                           dl2_first_line(messages));
}

static const char *python_of(const struct dl2_study_settings *study)
{
    const char *python = dl2_goal_value(study, "study-loading", LOADERS_PYTHON);
    return python && *python ? python : "python3";
}

static const char *peers_script(const struct dl2_study_settings *study)
{
    return dl2_text("%s/peer_load.py", study->scripts);
}

/* The Python module lies beside the programs, where these were not installed. */
static struct dl2_words peer_command(const struct dl2_study_settings *study)
{
    const char *folder = study->options.programs, *path = getenv("PYTHONPATH");
    struct dl2_words command = {0};
    if (*folder && dl2_is_folder(dl2_text("%s/python/dl2", folder)))
        dl2_words_more(&command, "env",
                       dl2_text("PYTHONPATH=%s/python%s%s", dl2_path_absolute(folder),
                                path && *path ? ":" : "", path ? path : ""),
                       NULL);
    dl2_words_more(&command, python_of(study), peers_script(study), NULL);
    return command;
}

/* Those of LOADERS that can run here; says which cannot. Each takes seconds to find out. */
static struct dl2_words find_loaders(const struct dl2_study_settings *study)
{
    static struct dl2_words found;
    const char *text = dl2_goal_value(study, "study-loading", LOADERS);
    const struct dl2_words all = dl2_words_split(found.count || !text ? "" : text);
    if (all.count && !study->scripts)
        dl2_setting_refuse("LOADERS", text,
                           "peer_load.py, which comes with dl2-study, is not found");
    for (size_t i = 0; i < all.count; i++) {
        struct dl2_words command = peer_command(study);
        const char *output, *messages;
        dl2_words_more(&command, "check", all.at[i], NULL);
        if (dl2_child_ask(command, &output, &messages) == 0)
            dl2_words_add(&found, all.at[i]);
        else
            fprintf(stderr, "dl2-study: LOADERS: %s is left out: %s\n", all.at[i],
                    dl2_first_line(messages));
    }
    if (all.count && !found.count)
        dl2_setting_refuse("LOADERS", text, "%s can run none of them: see above", python_of(study));
    return found;
}

static void check_loading(const struct dl2_study_settings *study, bool is_asked)
{
    const char *text = dl2_goal_value(study, "study-loading", STORAGES);
    const char *loaders = dl2_goal_value(study, "study-loading", LOADERS);
    const struct dl2_words storages = dl2_words_split(text ? text : "");
    struct dl2_words folders = {0};
    for (size_t i = 0; i < storages.count; i++) {
        const char *word = storages.at[i];
        const struct storage storage = storage_of(word, text);
        if (dl2_words_have(folders, storage.folder))
            dl2_setting_refuse("STORAGES", text,
                               "results of two of them would be in one folder, %s", storage.folder);
        dl2_words_add(&folders, storage.folder);
        if (is_asked && has_tables(study) && !storage.root && strcmp(word, "memory") != 0)
            dl2_setting_refuse("STORAGES", text,
                               "a server keeps tables in its own memory: leave %s out", word);
        if (is_asked && storage.limit)
            check_limit(study, &storage, text);
        if (is_asked && storage.cache && loaders && *loaders)
            fprintf(stderr,
                    "dl2-study: LOADERS are not measured from %s: its cache is dl2-load's own\n",
                    word);
    }
    if (is_asked && loaders && *loaders && has_tables(study))
        dl2_setting_refuse("LOADERS", loaders, "they read files, and these are at an address");
    if (is_asked)
        find_loaders(study);
}

/* Copies all variants to where they are to be read from; the same again does nothing. */
static void add_copies(struct dl2_study_plan *plan, struct dl2_step *step,
                       const struct storage *storage)
{
    const struct dl2_study_settings *study = plan->study;
    const char *container = dl2_flags_value(study->options.transcode_flags, "--container");
    for (size_t n = 0; n < study->names.count; n++) {
        const char *name = study->names.at[n];
        struct dl2_words command = dl2_study_words(study, "dl2-transcode", "copy", "--quiet", NULL);
        if (container || !storage->cold)
            dl2_words_more(&command, "--container", container ? container : "tar", NULL);
        dl2_words_more(&command, dl2_study_place(study, name),
                       dl2_text("%s/%s", storage->root, name), NULL);
        dl2_commands_add(&step->commands, command);
    }
}

/* A storage's cells: each variant with each number of workers. */
static void add_storage(struct dl2_study_plan *plan, struct dl2_step *step,
                        const struct storage *storage, struct dl2_words workers)
{
    const struct dl2_study_settings *study = plan->study;
    if (storage->root)
        add_copies(plan, step, storage);
    for (size_t w = 0; w < workers.count; w++)
        for (size_t n = 0; n < study->names.count; n++) {
            const char *name = study->names.at[n];
            struct dl2_cell cell = {.path = dl2_text("%s/jobs-%s/", storage->folder, workers.at[w]),
                                    .name = name,
                                    .workers = workers.at[w],
                                    .limit = storage->limit};
            if (storage->root)
                cell.place = dl2_text("%s/%s", storage->root, name);
            if (storage->cold)
                dl2_words_add(&cell.options, "--cold");
            if (storage->cache)
                dl2_words_more(&cell.options, "--cache", storage->cache, NULL);
            dl2_step_cells(plan, step, &cell);
        }
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
static void add_cache_cells(struct dl2_study_plan *plan, struct dl2_step *step, const char *cache)
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

/* A storage's cells of other loaders, and of a device without one. */
static void add_peers(struct dl2_study_plan *plan, struct dl2_step *step,
                      const struct storage *storage, struct dl2_words workers,
                      struct dl2_words loaders)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *rate = dl2_goal_value(study, "study-loading", DEVICE_RATE);
    if (storage->root)
        add_copies(plan, step, storage);
    for (size_t w = 0; w < workers.count; w++)
        for (size_t n = 0; n < study->names.count; n++)
            for (size_t l = 0; l < loaders.count + !n; l++) {
                const char *loader = l < loaders.count ? loaders.at[l] : "synthetic";
                const char *name = study->names.at[n];
                const char *place = storage->root ? dl2_text("%s/%s", storage->root, name)
                                                  : dl2_study_place(study, name);
                struct dl2_cell cell = {.path = dl2_text("%s/jobs-%s/%s/%s", storage->folder,
                                                         workers.at[w], loader, name),
                                        .name = name,
                                        .place = place,
                                        .workers = workers.at[w],
                                        .limit = storage->limit,
                                        .by = peer_command(study)};
                dl2_words_more(&cell.by, "measure", loader, place, o->image_size, o->batch,
                               workers.at[w], o->measure, "{work}", rate ? rate : "1000", "{file}",
                               storage->cold ? "cold" : NULL, NULL);
                dl2_step_cell(plan, step, &cell);
            }
}

/* Other loaders: measured by themselves, so that what is there of dl2-load's stays. */
static void plan_loaders(struct dl2_study_plan *plan, struct dl2_words workers,
                         struct dl2_words storages, struct dl2_words variants)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const struct dl2_words loaders = find_loaders(study);
    const char *made = dl2_text("%s/loaders/.made", study->out);
    const char *rate = dl2_goal_value(study, "study-loading", DEVICE_RATE);
    if (!loaders.count)
        return;
    struct dl2_step *step = dl2_plan_step(plan, "loaders", "measure", made);
    if (!step)
        return;
    dl2_plan_settings(plan, step, "loaders",
                      dl2_text("%s %s %s %s %s %s %s %s %s %s", dl2_words_join(study->names, " "),
                               dl2_words_join(loaders, " "), python_of(study), rate ? rate : "",
                               o->image_size, o->batch, o->rounds, o->measure,
                               dl2_words_join(workers, " "), dl2_words_join(storages, " ")));
    dl2_files_add(&step->inputs, dl2_plan_dataset(plan));
    dl2_files_add_all(&step->inputs, variants);
    dl2_step_rounds(plan, step);
    for (size_t s = 0; s < storages.count; s++) {
        const struct storage storage = storage_of(storages.at[s], dl2_words_join(storages, " "));
        if (storage.cache) /* of dl2-load's own */
            continue;
        add_peers(plan, step, &storage, workers, loaders);
    }
    dl2_plan_close(plan, step, false);
    const char *table = dl2_plan_table(plan, "loaders", made);
    dl2_words_add(&plan->targets, table);
    dl2_words_add(&plan->shown, table);
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
    plan_loaders(plan, workers, storages, variants);
    dl2_words_add(&files, dl2_text("%s/loading/.made", study->out));
    struct dl2_step *step = dl2_plan_step(plan, "loading", "measure", files.at[0]);
    if (!step)
        return files;
    dl2_plan_settings(plan, step, "loading",
                      dl2_text("%s %s %s %s %s %u %s %s %s %s %s %s %s",
                               dl2_words_join(study->names, " "), o->archs, o->image_size, o->batch,
                               o->device, study->jobs, o->rounds, o->measure,
                               dl2_words_join(workers, " "), dl2_words_join(storages, " "),
                               dl2_words_join(caches, " "), o->load_flags, o->train_flags));
    dl2_files_add(&step->inputs, dl2_plan_dataset(plan));
    dl2_files_add_all(&step->inputs, variants);
    dl2_step_rounds(plan, step);
    for (size_t s = 0; s < storages.count; s++) {
        const struct storage storage = storage_of(storages.at[s], dl2_words_join(storages, " "));
        add_storage(plan, step, &storage, workers);
    }
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
    .folders = "loading loaders loaders.txt",
    .variables = loading_variables,
    .check = check_loading,
    .plan = plan_study_loading,
};
