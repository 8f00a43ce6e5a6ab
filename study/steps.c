/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of the stages that goals share, from the dataset to the report. */
#include "common/file.h"
#include "common/json.h"
#include "study/paths.h"
#include "study/plan.h"
#include "study/trainer.h"
#include "study/work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first network's training on the original, from the first seed; its report's path. */
static const char *plan_original(struct dl2_study_plan *plan);

static const char *in_out(const struct dl2_study_plan *plan, const char *name)
{
    return dl2_text("%s/%s", plan->study->out, name);
}

static const char *jobs_of(const struct dl2_study_plan *plan)
{
    return dl2_text("%u", plan->study->jobs);
}

/* Whether a result is there that does not say it is whole. */
static bool is_cut_short(const char *path, const char *key)
{
    return dl2_is_file(path) && !dl2_work_is_true(path, key);
}

/* ---- The dataset */

/* Whether a file that failed was touched in any way since, for example by chmod: it may be readable
 * now without looking newer. */
static bool has_touched_failures(const struct dl2_study_settings *study, const char *variant,
                                 int64_t since)
{
    const char *path = dl2_text("%s/variants/%s/dl2-variant.json", study->out, variant);
    json_auto_t *json = NULL;
    json_t *failure;
    bool touched = false;
    size_t i;
    if (!dl2_is_file(path) || dl2_json_load(path, NULL, &json, NULL) < 0)
        return false;
    json_array_foreach(json_object_get(json, "failed"), i, failure)
    {
        struct stat info;
        const char *name = dl2_json_get_text(failure, "path", "");
        touched |= stat(dl2_text("%s/%s", study->data, name), &info) == 0 &&
                   info.st_ctim.tv_sec * (int64_t)1000000000 + info.st_ctim.tv_nsec > since;
    }
    return touched;
}

static bool has_changed(const struct dl2_study_settings *study, const char *stamp)
{
    struct stat info;
    if (stat(stamp, &info) < 0)
        return false; /* it is made in any case */
    if (strcmp(study->options.dataset, "demo") == 0)
        return access(dl2_text("%s/.tiles-96", study->data), F_OK) != 0;
    if (study->data_is_made)
        return access(
                   dl2_text("%s/%s", study->data, study->data_is_got ? "dl2-index.bin" : "train"),
                   F_OK) != 0;
    const char *before = dl2_text_of_file(stamp);
    if (!study->fingerprint || !before || strcmp(before, dl2_text("%s\n", study->fingerprint)) != 0)
        return true;
    char **names;
    bool touched = false;
    if (study->data_is_address ||
        dl2_list_names(dl2_text("%s/variants", study->out), &names, NULL) < 0)
        return false;
    for (char **name = names; *name; name++)
        touched |= has_touched_failures(study, *name, dl2_mtime_ns(&info));
    dl2_free_list(names);
    return touched;
}

/* The packages that a dataset comes with or is made by, and what makes it. */
static void plan_getting(const struct dl2_study_settings *study, struct dl2_step *step)
{
    const char *name = study->options.dataset;
    struct dl2_words command = {0};
    if (study->data_is_got) {
        dl2_commands_add(&step->commands,
                         dl2_study_words(study, "dl2-hub", "get", name, study->data, NULL));
        return;
    }
    if (!study->scripts)
        dl2_study_fail(DL2_EXIT_FAILED,
                       "the scripts that make %s, which come with dl2-study, are "
                       "not found",
                       name);
    dl2_words_more(&command, "sh", dl2_text("%s/packages.sh", study->scripts), name, NULL);
    step->asks = true;
    dl2_commands_add(&step->commands, command);
    if (!study->data_is_made)
        return;
    command = (struct dl2_words){0};
    dl2_words_more(&command, "env", dl2_text("JOBS=%u", study->jobs), "sh",
                   dl2_text("%s/%s-dataset.sh", study->scripts, name), study->data, NULL);
    dl2_commands_add(&step->commands, command);
}

const char *dl2_plan_dataset(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const char *stamp = dl2_plan_stage(plan, "dataset");
    struct dl2_step *step = dl2_plan_step(plan, "dataset", "dataset", stamp);
    if (!step)
        return stamp;
    step->identity = study->identity;
    if (study->data_is_named)
        plan_getting(study, step);
    if (!study->data_is_made)
        step->identify = dl2_study_words(study, "dl2-transcode", "identify", study->data, NULL);
    dl2_plan_close(plan, step, has_changed(study, stamp));
    return stamp;
}

/* ---- What is in it */

struct dl2_words dl2_plan_survey(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    struct dl2_words outputs = {0};
    dl2_words_more(&outputs, in_out(plan, "survey.json"), in_out(plan, "survey-groups.tsv"), NULL);
    const char *dataset = dl2_plan_dataset(plan);
    struct dl2_step *step = dl2_plan_step(plan, "survey", "run", NULL);
    if (!step)
        return outputs;
    dl2_files_add_all(&step->outputs, outputs);
    dl2_files_add(&step->inputs, dataset);
    dl2_commands_add(&step->commands,
                     dl2_study_words(study, "dl2-transcode", "survey", "-j", jobs_of(plan),
                                     "--quiet", "--groups", outputs.at[1], "--json", outputs.at[0],
                                     study->data, NULL));
    step->output = in_out(plan, "survey.txt");
    step->may_fail_in_part = true; /* unreadable files are in it */
    dl2_plan_close(plan, step, false);
    return outputs;
}

/* ---- Quantization tables */

/* The same by SENSITIVITY_WITH, of a network that TRAIN_WITH has trained. */
static const char *plan_own_sensitivity(struct dl2_study_plan *plan, const char *trained)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_training training = {.name = "raw",
                                          .arch = study->archs.at[0],
                                          .seed = dl2_seeds_in_order(study).at[0],
                                          .validated = "raw"};
    const char *out = dl2_text("%s/out", dl2_path_folder(trained));
    const char *file = dl2_text("%s/%s", out, DL2_SENSITIVITY_FILE);
    struct dl2_step *step = dl2_plan_step(plan, "tables/sensitivity", "run", file);
    if (!step)
        return file;
    dl2_files_add(&step->inputs, trained);
    dl2_plan_settings(plan, step, "sensitivity", study->sensitivity->identity);
    dl2_commands_add(
        &step->commands,
        dl2_trainer_attempt(dl2_trainer_command(study, study->sensitivity, &training, out, 1), 1));
    step->uses_device = true;
    step->log = in_out(plan, ".make/sensitivity.log");
    dl2_plan_close(plan, step, false);
    return file;
}

/* How much the first network, as trained on the original from the first seed, depends on its
 * input. */
static const char *plan_sensitivity(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const char *file = in_out(plan, "tables/sensitivity.json");
    const char *trained = plan_original(plan);
    if (study->sensitivity)
        return plan_own_sensitivity(plan, trained);
    struct dl2_step *step = dl2_plan_step(plan, "tables/sensitivity", "run", file);
    if (!step)
        return file;
    dl2_files_add(&step->inputs, trained);
    dl2_plan_settings(plan, step, "sensitivity", study->options.device);
    struct dl2_words command =
        dl2_study_words(study, "dl2-train", "evaluate",
                        dl2_text("%s/checkpoint.safetensors", dl2_path_folder(trained)), "--val",
                        study->data, "--val-split", "train", "--sensitivity", file, "--device",
                        study->options.device, "--threads", jobs_of(plan), "-j", jobs_of(plan),
                        "--out", in_out(plan, "tables/evaluation"), "--quiet", NULL);
    dl2_words_add_all(&command, study->decoding);
    dl2_commands_add(&step->commands, command);
    step->uses_device = true;
    step->log = in_out(plan, ".make/sensitivity.log");
    dl2_plan_close(plan, step, false);
    return file;
}

const char *dl2_plan_tables(struct dl2_study_plan *plan, const char *kind)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *file = dl2_settings_tables(study, kind);
    const char *area = dl2_flags_value(o->train_flags, "--crop-area");
    const char *filter = dl2_flags_value(o->transcode_flags, "--filter");
    const bool of_network = strcmp(kind, "network") == 0;
    const char *sensitivity = of_network ? plan_sensitivity(plan) : NULL;
    const char *dataset = dl2_plan_dataset(plan);
    struct dl2_step *step = dl2_plan_step(plan, dl2_text("tables/%s", kind), "run", file);
    if (!step)
        return file;
    dl2_files_add(&step->inputs, dataset);
    dl2_plan_settings(
        plan, step, "tables",
        dl2_text("%s %s %s %s", o->image_size, o->shorts, area ? area : "", filter ? filter : ""));
    struct dl2_words command =
        dl2_study_words(study, "dl2-transcode", "fit-tables", "-j", jobs_of(plan), "--quiet", NULL);
    if (of_network) {
        dl2_files_add(&step->inputs, sensitivity);
        dl2_words_more(&command, "--sensitivity", sensitivity, NULL);
    } else {
        dl2_words_more(&command, "--input-size", o->image_size, NULL);
    }
    if (*o->shorts)
        dl2_words_more(&command, "--resize-shorter",
                       dl2_words_join(dl2_words_split(o->shorts), ","), NULL);
    if (area)
        dl2_words_more(&command, "--crop-area", area, NULL);
    if (filter)
        dl2_words_more(&command, "--filter", filter, NULL);
    dl2_words_more(&command, study->data, file, NULL);
    dl2_commands_add(&step->commands, command);
    step->log = in_out(plan, dl2_text(".make/tables-%s.log", kind));
    step->may_fail_in_part = true;
    dl2_plan_close(plan, step, false);
    return file;
}

/* ---- Variants: a source image is decoded once for all that are missing */

static const char *variant_file(const struct dl2_study_plan *plan, const char *name)
{
    return dl2_text("%s/variants/%s/dl2-variant.json", plan->study->out, name);
}

const char *dl2_plan_place_file(struct dl2_study_plan *plan, const char *name)
{
    return strcmp(name, "raw") == 0 ? dl2_plan_dataset(plan) : variant_file(plan, name);
}

static struct dl2_words encoding(const struct dl2_study_plan *plan, unsigned group)
{
    const struct dl2_study_settings *study = plan->study;
    struct dl2_words command = dl2_settings_encoding(study, group, study->has_qualities);
    if (!study->elsewhere)
        dl2_words_add(&command, "--prune");
    if (group == DL2_VARIANTS_EXTERNAL && study->options.encode_limit)
        dl2_words_more(&command, "--time-limit",
                       dl2_text("%.9g", dl2_setting_seconds(study->options.encode_limit)), NULL);
    dl2_words_more(&command, "--facts", in_out(plan, ".make/facts"), study->data,
                   study->elsewhere ? study->options.variants : in_out(plan, "variants"), NULL);
    return command;
}

/* A group's variants. Those of the external codec, and controls, come from a command that has the
 * usual ones, too: it leaves alone what is there, and options may be of some of its codecs. `after`
 * has the variants of the groups before, and gets this one's. */
static void plan_encoding(struct dl2_study_plan *plan, unsigned group, struct dl2_words *after)
{
    static const char *const names[] = {[DL2_VARIANTS_USUAL] = "variants",
                                        [DL2_VARIANTS_PIPELINE] = "variants-pipeline",
                                        [DL2_VARIANTS_NETWORK] = "variants-network",
                                        [DL2_VARIANTS_EXTERNAL] = "variants-external",
                                        [DL2_VARIANTS_CONTROL] = "variants-control"};
    const struct dl2_study_settings *study = plan->study;
    const char *dataset = dl2_plan_dataset(plan);
    const char *tables = group == DL2_VARIANTS_PIPELINE  ? dl2_plan_tables(plan, "pipeline")
                         : group == DL2_VARIANTS_NETWORK ? dl2_plan_tables(plan, "network")
                                                         : NULL;
    struct dl2_step *step = dl2_plan_step(plan, names[group], "variants", NULL);
    if (!step)
        return;
    dl2_files_add(&step->inputs, dataset);
    if (tables)
        dl2_files_add(&step->inputs, tables);
    dl2_files_add_all(&step->after, *after);
    dl2_plan_settings(plan, step, "transcode",
                      dl2_text("%s %s", study->options.transcode_flags, study->options.variants));
    if (group == DL2_VARIANTS_EXTERNAL)
        dl2_plan_settings(plan, step, "external", study->options.external);
    dl2_commands_add(&step->commands, encoding(plan, group));
    if (study->elsewhere)
        step->elsewhere = true;
    struct dl2_words all = {0};
    bool cut_short = false;
    for (size_t v = 0; v < study->variants.count; v++) {
        const char *name = study->variants.at[v], *file = variant_file(plan, name);
        if (dl2_settings_group_of(study, name) != group)
            continue;
        const bool is_cut =
            is_cut_short(file, "complete") || (plan->remakes && dl2_plan_is_removed(file));
        cut_short |= is_cut;
        dl2_words_add(&all, file);
        if (dl2_plan_wants(plan, file, step->inputs, is_cut))
            dl2_files_add(&step->outputs, file);
    }
    if (!step->outputs.count)
        dl2_files_add_all(&step->outputs, all);
    dl2_words_add_all(after, all);
    dl2_plan_close(plan, step, cut_short);
}

struct dl2_words dl2_plan_variants(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    struct dl2_words files = {0}, made = {0};
    plan_encoding(plan, DL2_VARIANTS_USUAL, &made);
    if (study->of_pipeline.count)
        plan_encoding(plan, DL2_VARIANTS_PIPELINE, &made);
    if (study->of_network.count)
        plan_encoding(plan, DL2_VARIANTS_NETWORK, &made);
    if (study->of_external.count)
        plan_encoding(plan, DL2_VARIANTS_EXTERNAL, &made);
    if (study->of_control.count)
        plan_encoding(plan, DL2_VARIANTS_CONTROL, &made);
    for (size_t v = 0; v < study->variants.count; v++)
        dl2_words_add(&files, variant_file(plan, study->variants.at[v]));
    return files;
}

/* ---- Quality: a reference image is decoded once for all variants */

static struct dl2_words quality(const struct dl2_study_plan *plan, const char *task)
{
    const struct dl2_study_settings *study = plan->study;
    struct dl2_words command = dl2_study_words(study, "dl2-quality", task, "-j", jobs_of(plan),
                                               "--json-dir", in_out(plan, "quality"), NULL);
    dl2_words_add_all(&command, study->decoding);
    return command;
}

/* Also what the networks see, at the study's size, unless the flags choose metrics without it. */
static void add_metrics(struct dl2_words *command, const struct dl2_study_options *o)
{
    const char *chosen = dl2_flags_value(o->quality_flags, "--metrics");
    dl2_words_add_command(command, o->quality_flags);
    if (!chosen)
        dl2_words_more(command, "--metrics", "default,input_psnr,input_ssim", NULL);
    if (!chosen || strstr(chosen, "input_") || strcmp(chosen, "all") == 0)
        dl2_words_more(command, "--input-size", o->image_size, NULL);
}

/* Crops for people to look at, by scores that are there. */
static void add_crops(struct dl2_words *command, const struct dl2_study_options *o,
                      const char *folder)
{
    static const char *const heeded[] = {"--background", "--max-pixels"};
    dl2_words_more(command, "--out", folder, NULL);
    for (size_t i = 0; i < sizeof heeded / sizeof *heeded; i++) {
        const char *value = dl2_flags_value(o->quality_flags, heeded[i]);
        if (value)
            dl2_words_more(command, heeded[i], value, NULL);
    }
}

struct dl2_words dl2_plan_quality(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const char *folder = in_out(plan, "quality");
    struct dl2_words files = {0};
    const struct dl2_words variants = dl2_plan_variants(plan);
    struct dl2_step *step = dl2_plan_step(plan, "quality", "run", NULL);
    struct dl2_words command = quality(plan, "score");
    if (study->volumes) /* which have metrics of their own */
        dl2_words_add_command(&command, study->options.quality_flags);
    else
        add_metrics(&command, &study->options);
    dl2_words_add(&command, study->data);
    if (step)
        dl2_plan_settings(
            plan, step, "quality",
            dl2_text("%s %s", study->options.image_size, study->options.quality_flags));
    for (size_t v = 0; v < study->variants.count; v++) {
        const char *name = study->variants.at[v];
        const char *file = dl2_text("%s/%s.json", folder, name);
        struct dl2_words inputs = {0};
        dl2_words_more(&inputs, variant_file(plan, name), dl2_plan_stage(plan, "quality"), NULL);
        dl2_words_add(&files, file);
        if (step && dl2_plan_wants(plan, file, inputs, false)) {
            dl2_words_add(&step->outputs, file);
            dl2_files_add_all(&step->inputs, inputs);
            dl2_words_add(&command, dl2_study_place(study, name));
        }
    }
    if (!step)
        return files;
    dl2_commands_add(&step->commands, command);
    step->may_fail_in_part = true;
    dl2_plan_close(plan, step, false);

    if (study->volumes) /* of which nobody cuts crops yet */
        return files;
    step = dl2_plan_step(plan, "crops", "run", in_out(plan, "crops/crops.json"));
    dl2_files_add_all(&step->inputs, files);
    dl2_files_add_all(&step->after, variants);
    command = quality(plan, "crops");
    add_crops(&command, &study->options, in_out(plan, "crops"));
    dl2_words_add(&command, study->data);
    for (size_t v = 0; v < study->variants.count; v++)
        dl2_words_add(&command, dl2_study_place(study, study->variants.at[v]));
    dl2_commands_add(&step->commands, command);
    step->clears = in_out(plan, "crops");
    dl2_plan_close(plan, step, false);
    return files;
}

/* ---- The input pipeline's speed */

struct dl2_words dl2_plan_load(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    struct dl2_words files = {0};
    dl2_plan_variants(plan);
    for (size_t n = 0; n < study->names.count; n++) {
        const char *name = study->names.at[n], *file = in_out(plan, dl2_text("load/%s.json", name));
        const char *input = dl2_plan_place_file(plan, name);
        dl2_words_add(&files, file);
        struct dl2_step *step = dl2_plan_step(plan, dl2_text("load/%s", name), "run", file);
        if (!step)
            continue;
        dl2_files_add(&step->inputs, input);
        dl2_plan_settings(
            plan, step, "load",
            dl2_text("%s %s %s %s", o->image_size, o->batch, jobs_of(plan), o->load_flags));
        struct dl2_words command = dl2_study_words(
            study, "dl2-load", "bench", "-j", jobs_of(plan), "--image-size", o->image_size,
            "--batch", o->batch, "--name", name, "--json", file, "--quiet", NULL);
        dl2_words_add_all(&command, study->decoding);
        dl2_words_add_command(&command, o->load_flags);
        dl2_words_add(&command, dl2_study_place(study, name));
        dl2_commands_add(&step->commands, command);
        step->says = dl2_text("Loading %s", name);
        step->log = in_out(plan, dl2_text(".make/load-%s.log", name));
        step->may_fail_in_part = true;
        dl2_plan_close(plan, step, false);
    }
    return files;
}

/* ---- How fast variants load and train, alone on the machine, in rounds */

/* The words before a command that is to have so much memory. Before it, an epoch is read cold: what
 * is in the page cache of others would not count. */
static void add_limit(struct dl2_words *command, const struct dl2_study_settings *study,
                      const struct dl2_cell *cell, const char *place)
{
    dl2_words_more(command, "sh", dl2_text("%s/memory-limit.sh", study->scripts), cell->limit,
                   NULL);
    dl2_words_add_all(command, dl2_study_words(study, "dl2-load", "bench", "--cold", "--epochs",
                                               "1", "-j", cell->workers, "--image-size",
                                               study->options.image_size, "--quiet", NULL));
    dl2_words_add_all(command, study->decoding);
    dl2_words_more(command, place, "--", NULL);
}

/* Words in braces are filled in when the cell is measured: its file, its round, a folder to work
 * in, and bytes of a cache. */
void dl2_step_cell(const struct dl2_study_plan *plan, struct dl2_step *step,
                   const struct dl2_cell *cell)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *place = cell->place ? cell->place : dl2_study_place(study, cell->name);
    struct dl2_words command = {0};
    if (cell->limit)
        add_limit(&command, study, cell, place);
    if (cell->by.count) {
        dl2_words_add_all(&command, cell->by);
    } else if (cell->arch) {
        dl2_words_add_all(&command,
                          dl2_study_words(study, "dl2-train", "measure", "--duration", o->measure,
                                          "--batch", o->batch, "--image-size", o->image_size,
                                          "--device", o->device, "--threads", jobs_of(plan), NULL));
        dl2_words_add_all(&command, study->decoding);
        dl2_words_add_all(&command, study->rate_flags);
        dl2_words_more(&command, "-j", cell->workers, "--arch", cell->arch, "--seed", "{round}",
                       "--data", place, "--out", "{work}", "--quiet", NULL);
        dl2_words_add_all(&command, cell->options);
    } else {
        dl2_words_add_all(&command, dl2_study_words(study, "dl2-load", "bench", "--image-size",
                                                    o->image_size, "--batch", o->batch, NULL));
        dl2_words_add_all(&command, study->decoding);
        dl2_words_add_command(&command, o->load_flags);
        dl2_words_more(&command, "-j", cell->workers, "--name", cell->name, "--json", "{file}",
                       "--quiet", NULL);
        dl2_words_add_all(&command, cell->options);
        if (cell->cache)
            dl2_words_more(&command, "--cache", "{cache}", NULL);
        dl2_words_add(&command, place);
    }
    step->cells = dl2_keep_more(step->cells, step->cell_count, sizeof *step->cells);
    step->cells[step->cell_count++] = (struct dl2_measurement){.path = cell->path,
                                                               .command = command,
                                                               .cache = cell->cache,
                                                               .trains = cell->arch != NULL,
                                                               .may_fail = cell->by.count > 0,
                                                               .once = cell->once};
}

void dl2_step_cells(const struct dl2_study_plan *plan, struct dl2_step *step,
                    const struct dl2_cell *cell)
{
    const struct dl2_study_settings *study = plan->study;
    struct dl2_cell own = *cell;
    own.path = dl2_text("%sload/%s", cell->path, cell->name);
    own.options = (struct dl2_words){0};
    dl2_words_more(&own.options, "--measure", study->options.measure, NULL);
    dl2_words_add_all(&own.options, cell->options);
    dl2_step_cell(plan, step, &own);
    own.options = cell->options;
    for (size_t a = 0; a < study->archs.count && !study->trainer; a++) {
        own.arch = study->archs.at[a];
        own.path = dl2_text("%s%s/%s", cell->path, own.arch, cell->name);
        dl2_step_cell(plan, step, &own);
    }
}

const char *dl2_plan_table(struct dl2_study_plan *plan, const char *task, const char *input)
{
    const char *table = in_out(plan, dl2_text("%s.txt", task));
    struct dl2_step *step = dl2_plan_step(plan, dl2_text("%s-table", task), "run", table);
    if (!step)
        return table;
    dl2_files_add(&step->inputs, input);
    dl2_commands_add(&step->commands,
                     dl2_study_words(plan->study, "dl2-report", task, plan->out, NULL));
    step->output = table;
    dl2_plan_close(plan, step, false);
    return table;
}

void dl2_step_rounds(const struct dl2_study_plan *plan, struct dl2_step *step)
{
    step->uses_device = true;
    step->rounds = plan->study->rounds;
}

struct dl2_words dl2_plan_throughput(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    struct dl2_words files = {0};
    dl2_words_add(&files, in_out(plan, "throughput/.made"));
    dl2_plan_variants(plan);
    const char *dataset = dl2_plan_dataset(plan);
    struct dl2_step *step = dl2_plan_step(plan, "throughput", "measure", files.at[0]);
    if (!step)
        return files;
    dl2_plan_settings(plan, step, "throughput",
                      dl2_text("raw %s %s %s %s %s %s %s %s %s %s", o->train_on, o->archs,
                               o->image_size, o->batch, o->device, jobs_of(plan), o->rounds,
                               o->measure, o->load_flags, o->train_flags));
    dl2_files_add(&step->inputs, dataset);
    dl2_step_rounds(plan, step);
    for (size_t n = 0; n < study->train_on.count + 1; n++) {
        const char *name = n ? study->train_on.at[n - 1] : "raw";
        if (n)
            dl2_files_add(&step->inputs, variant_file(plan, name));
        dl2_step_cells(plan, step,
                       &(struct dl2_cell){.path = "", .name = name, .workers = jobs_of(plan)});
    }
    dl2_plan_close(plan, step, false);
    return files;
}

/* ---- Training */

struct dl2_words dl2_training_on(const struct dl2_study_settings *study, const char *name)
{
    struct dl2_words words = {0};
    dl2_words_more(&words, "--data", dl2_study_place(study, name), NULL);
    return words;
}

/* What trains, to `folder`; {start} is --restart or --resume. It validates on the variant itself,
 * which is what counts, and on the original. */
static struct dl2_words training_command(const struct dl2_study_settings *study,
                                         const struct dl2_training *training, const char *folder,
                                         unsigned at_once)
{
    const struct dl2_study_options *o = &study->options;
    const char *threads = dl2_text("%u", dl2_study_threads(study, at_once));
    struct dl2_words command = dl2_study_words(study, "dl2-train", "{start}", NULL);
    dl2_words_add_all(&command, training->on);
    dl2_words_more(&command, "--val", dl2_study_place(study, training->validated), NULL);
    if (strcmp(training->validated, "raw") != 0)
        dl2_words_more(&command, "--val", study->data, NULL);
    dl2_words_more(&command, "--arch", training->arch, "--seed", training->seed, NULL);
    dl2_words_add_all(&command, training->lasting);
    dl2_words_more(&command, "--batch", o->batch, "--image-size", o->image_size, "--device",
                   o->device, "--threads", threads, "-j", threads, "--out", folder, "--quiet",
                   "--trainers", dl2_text("%u", at_once), NULL);
    dl2_words_add_all(&command, study->decoding);
    dl2_words_add_command(&command, o->train_flags);
    return command;
}

/* The step is a command of the user's. */
static void set_trainer(const struct dl2_study_settings *study, const struct dl2_trainer *trainer,
                        struct dl2_step *step, const struct dl2_training *training, const char *out,
                        unsigned at_once)
{
    dl2_commands_add(&step->commands, dl2_trainer_command(study, trainer, training, out, at_once));
    step->trainer = dl2_trainer_report(study, trainer, training, at_once);
    step->clears = trainer->resumes ? NULL : out;
}

const char *dl2_plan_training(struct dl2_study_plan *plan, const struct dl2_training *training,
                              const char *settings, const char *subset_of)
{
    const struct dl2_study_settings *study = plan->study;
    const char *label = dl2_text("%s/%s/seed-%s", training->name, training->arch, training->seed);
    const char *folder = dl2_text("%s/train/%s", training->root, label);
    const char *file = dl2_text("%s/experiment_report.json", folder);
    const struct dl2_trainer *trainer = study->trainer;
    const unsigned at_once = training->alone ? 1 : study->trainers;
    struct dl2_step *step = dl2_plan_step(plan, folder + strlen(study->out) + 1,
                                          trainer ? "trainer" : "training", file);
    if (!step)
        return file;
    dl2_plan_settings(plan, step, training->stage, settings);
    dl2_files_add_all(&step->inputs, training->inputs);
    dl2_files_add_all(&step->after, training->after);
    if (trainer)
        set_trainer(study, trainer, step, training, dl2_text("%s/out", folder), at_once);
    else
        dl2_commands_add(&step->commands, training_command(study, training, folder, at_once));
    const char *below = training->root + strlen(study->out);
    step->retries = study->retries;
    step->limit = study->train_limit;
    step->label = *below ? dl2_text("%s/train/%s", strrchr(training->root, '/') + 1, label) : label;
    step->log = dl2_text("%s/log", folder);
    step->subset_of = subset_of;
    step->uses_device = true;
    step->alone = training->alone;
    step->threads = dl2_study_threads(study, at_once);
    dl2_plan_close(plan, step, is_cut_short(file, "completed"));
    return file;
}

/* A part of "raw/resnet10/seed-1": 0 to 2; the seed without its word. */
static const char *part_of_run(const char *run, int part)
{
    for (; part; part--)
        run += strcspn(run, "/") + 1;
    if (strncmp(run, "seed-", 5) == 0 && !strchr(run, '/'))
        return run + 5;
    return dl2_text("%.*s", (int)strcspn(run, "/"), run);
}

static int compare_seeds(const void *a, const void *b)
{
    const unsigned long long one = strtoull(*(const char *const *)a, NULL, 10);
    const unsigned long long other = strtoull(*(const char *const *)b, NULL, 10);
    return (one > other) - (one < other);
}

struct dl2_words dl2_seeds_in_order(const struct dl2_study_settings *study)
{
    struct dl2_words seeds = {0};
    dl2_words_add_all(&seeds, study->seeds);
    qsort(seeds.at, seeds.count, sizeof *seeds.at, compare_seeds);
    return seeds;
}

struct dl2_training dl2_training_of_run(struct dl2_study_plan *plan, const char *run,
                                        const char *stage, const char *root)
{
    struct dl2_training training = {.stage = stage,
                                    .root = root,
                                    .name = part_of_run(run, 0),
                                    .arch = part_of_run(run, 1),
                                    .seed = part_of_run(run, 2)};
    training.validated = training.name;
    training.on = dl2_training_on(plan->study, training.name);
    dl2_words_add(&training.inputs, dl2_plan_place_file(plan, training.name));
    return training;
}

const char *dl2_plan_run(struct dl2_study_plan *plan, const char *run,
                         const struct dl2_words *after)
{
    const struct dl2_study_options *o = &plan->study->options;
    struct dl2_training training = dl2_training_of_run(plan, run, "train", plan->study->out);
    dl2_words_more(&training.lasting, "--epochs", o->epochs, NULL);
    if (after)
        training.after = *after;
    const struct dl2_trainer *trainer = plan->study->trainer;
    return dl2_plan_training(plan, &training,
                             dl2_text("%s %s %s %s %s", o->epochs, o->image_size, o->batch,
                                      o->device, trainer ? trainer->identity : o->train_flags),
                             NULL);
}

static const char *plan_original(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    return dl2_plan_run(
        plan, dl2_text("raw/%s/seed-%s", study->archs.at[0], dl2_seeds_in_order(study).at[0]),
        NULL);
}

/* Says how small a change the validation images can show, before hours of training; the file that
 * it writes, or NULL without variants. */
static const char *plan_detectable(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const char *file = in_out(plan, ".make/detectable.txt");
    if (!study->variants.count)
        return NULL;
    if (study->group_is_survey)
        dl2_plan_survey(plan);
    struct dl2_step *step = dl2_plan_step(plan, "detectable", "run", file);
    if (!step)
        return file;
    dl2_files_add(&step->inputs, variant_file(plan, study->variants.at[0]));
    step->reads_facts = true;
    if (study->group_file)
        dl2_files_add(&step->inputs, study->group_file);
    dl2_plan_settings(plan, step, "detectable",
                      dl2_text("%s %s", study->options.tolerance, study->options.group));
    struct dl2_words command = dl2_study_words(study, "dl2-report", "detectable", "--output", file,
                                               "--tolerance", study->options.tolerance, NULL);
    if (study->group)
        dl2_words_more(&command, "--group", study->group, NULL);
    dl2_words_add(&command,
                  study->elsewhere ? dl2_study_place(study, study->variants.at[0]) : study->out);
    dl2_commands_add(&step->commands, command);
    dl2_plan_close(plan, step, false);
    return file;
}

struct dl2_words dl2_plan_trainings(struct dl2_study_plan *plan, const struct dl2_words *after)
{
    struct dl2_words files = {0}, before = {0};
    dl2_plan_variants(plan);
    /* Nobody knows beforehand what a difference in one image is in metrics of others. */
    const char *detectable = plan->study->trainer ? NULL : plan_detectable(plan);
    if (after)
        dl2_words_add_all(&before, *after);
    if (detectable)
        dl2_words_add(&before, detectable);
    for (size_t i = 0; i < plan->runs.count; i++)
        dl2_words_add(&files, dl2_plan_run(plan, plan->runs.at[i], &before));
    return files;
}

/* ---- Every network on every variant */

struct dl2_words dl2_plan_matrix(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_words variants = dl2_plan_variants(plan);
    struct dl2_words files = {0};
    dl2_plan_trainings(plan, NULL);
    for (size_t i = 0; i < plan->runs.count; i++) {
        const char *run = plan->runs.at[i], *folder = in_out(plan, dl2_text("train/%s", run));
        const char *file = dl2_text("%s/evaluation/evaluation_report.json", folder);
        dl2_words_add(&files, file);
        struct dl2_step *step = dl2_plan_step(plan, dl2_text("matrix/%s", run), "run", file);
        if (!step)
            continue;
        dl2_files_add(&step->inputs, dl2_text("%s/experiment_report.json", folder));
        const char *names = dl2_words_join(study->names, " ");
        dl2_plan_settings(plan, step, "matrix", dl2_text("%s %s", names, study->options.device));
        dl2_files_add_all(&step->inputs, variants);
        struct dl2_words command = dl2_study_words(
            study, "dl2-train", "evaluate", dl2_text("%s/checkpoint.safetensors", folder), NULL);
        for (size_t n = 0; n < study->names.count; n++)
            dl2_words_more(&command, "--val", dl2_study_place(study, study->names.at[n]), NULL);
        dl2_words_more(&command, "--device", study->options.device, "--threads", jobs_of(plan),
                       "-j", jobs_of(plan), "--out", dl2_text("%s/evaluation", folder), "--quiet",
                       NULL);
        dl2_words_add_all(&command, study->decoding);
        dl2_commands_add(&step->commands, command);
        step->uses_device = true;
        step->says = dl2_text("Evaluating %s", run);
        step->log = in_out(plan, ".make/evaluation.log");
        dl2_plan_close(plan, step, false);
    }
    return files;
}

/* ---- The report */

void dl2_plan_report(struct dl2_study_plan *plan, struct dl2_words inputs)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *page = in_out(plan, "report/report.html");
    struct dl2_words all = {0};
    dl2_words_add_all(&all, study->names);
    dl2_words_add_all(&all, study->late);
    const char *names = dl2_words_join(all, " ");
    const char *runs = dl2_words_join(plan->runs, " ");
    plan->has_report = true;
    if (study->group_is_survey)
        dl2_plan_survey(plan);
    struct dl2_step *step = dl2_plan_step(plan, "report", "report", page);
    if (!step) { /* of several goals that are made at once, it comes last */
        size_t i = 0;
        while (strcmp(plan->steps[i]->name, "report") != 0)
            i++;
        step = plan->steps[i];
        memmove(plan->steps + i, plan->steps + i + 1, (--plan->count - i) * sizeof *plan->steps);
        plan->steps[plan->count++] = step;
    } else {
        dl2_words_add(&plan->targets, page);
        dl2_plan_settings(plan, step, "report",
                          dl2_text("%s %s %s %s %s %s %s", o->tolerance, names, runs,
                                   plan->interim ? plan->interim : "",
                                   *o->group ? dl2_shell_quote(o->group) : "",
                                   study->about ? study->about : "", o->report_flags));
        struct dl2_words command = dl2_study_words(
            study, "dl2-report", "page", "--tolerance", o->tolerance, "--title", study->called,
            "--command", plan->command, "--variants", names, "--trainings", runs, NULL);
        if (plan->interim)
            dl2_words_more(&command, "--interim", plan->interim, NULL);
        /* Without, the page would ask by the groups that it had before. */
        dl2_words_more(&command, "--group", study->group ? study->group : "none", NULL);
        if (study->about)
            dl2_words_more(&command, "--about", study->about, NULL);
        dl2_words_add_command(&command, o->report_flags);
        dl2_words_more(&command, "-o", page, study->out, NULL);
        dl2_commands_add(&step->commands, command);
        step->output = in_out(plan, ".make/answer");
        if (study->group_file)
            dl2_files_add(&step->inputs, study->group_file);
    }
    /* A survey and evaluations are shown where they are there; only their goals make them. */
    const char *survey = in_out(plan, "survey.json");
    if (dl2_is_file(survey))
        dl2_files_add(&step->inputs, survey);
    for (size_t i = 0; i < plan->runs.count; i++) {
        const char *evaluation =
            in_out(plan, dl2_text("train/%s/evaluation/evaluation_report.json", plan->runs.at[i]));
        if (dl2_is_file(evaluation))
            dl2_files_add(&step->inputs, evaluation);
    }
    dl2_files_add_all(&step->inputs, inputs);
    step->reads_facts = true;
    dl2_plan_close(plan, step, !dl2_is_file(in_out(plan, "report/answer.json")));
}
