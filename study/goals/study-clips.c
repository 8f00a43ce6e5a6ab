/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

#include <string.h>

enum { LENGTHS, FPS };

static const struct dl2_option clips_variables[] = {
    {DL2_OPTION_PARSE, "clip-lengths", 0, "LIST",
     "Of study-clips: numbers of frames that are loaded of each clip",
     offsetof(struct dl2_goal_values, at[LENGTHS]), .parse = dl2_setting_parse_numbers,
     .unset = "8 16 32"},
    {DL2_OPTION_PARSE, "clip-fps", 0, "N",
     "Of study-clips: frames of each second of videos that clips get",
     offsetof(struct dl2_goal_values, at[FPS]), .parse = dl2_setting_parse_one, .unset = "12"},
    {DL2_OPTION_END}};

static const char *value_of(const struct dl2_study_settings *study, size_t variable,
                            const char *usual)
{
    const char *text = dl2_goal_value(study, "study-clips", variable);
    return text && *text ? text : usual;
}

/* The demo's images are no clips. */
static void set_dataset(struct dl2_study_options *options)
{
    if (!options->dataset)
        options->dataset = "demo-clips";
}

static void check_clips(const struct dl2_study_settings *study, bool is_asked)
{
    if (is_asked && !study->videos && !study->clips)
        dl2_setting_refuse("DATASET", study->options.dataset,
                           "study-clips needs a folder of videos, or of clips' frames");
    if (is_asked && study->data_is_address)
        dl2_setting_refuse("DATASET", study->options.dataset,
                           "study-clips needs a folder, whose files it can evict");
}

static const char *record(const struct dl2_study_settings *study, const char *container)
{
    return dl2_text("%s/records/%s", study->out, container);
}

/* Where the clips lie as files. */
static const char *files_of(const struct dl2_study_settings *study)
{
    return study->videos ? record(study, "files") : study->data;
}

/* Frames of videos, and both kinds of records with the same bytes; where these lie in them depends
 * on the splits, so another file says that they are there. */
static const char *plan_records(struct dl2_study_plan *plan)
{
    static const char *const containers[] = {"gulp", "tar"};
    const struct dl2_study_settings *study = plan->study;
    const char *jobs = dl2_text("%u", study->jobs), *made = record(study, ".made");
    const char *dataset = dl2_plan_dataset(plan);
    struct dl2_step *step = dl2_plan_step(plan, "records", "run", made);
    dl2_files_add(&step->inputs, dataset);
    dl2_plan_settings(
        plan, step, "records",
        dl2_text("%s %s", value_of(study, FPS, "12"), study->options.transcode_flags));
    if (study->videos) {
        struct dl2_words command =
            dl2_study_words(study, "dl2-transcode", "frames", "-j", jobs, "--quiet", "--fps",
                            value_of(study, FPS, "12"), NULL);
        dl2_words_add_command(&command, study->options.transcode_flags);
        dl2_words_more(&command, study->data, files_of(study), NULL);
        dl2_commands_add(&step->commands, command);
    }
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        dl2_commands_add(&step->commands,
                         dl2_study_words(study, "dl2-transcode", "copy", "--quiet", "--samples",
                                         "clips", "--container", containers[i], files_of(study),
                                         record(study, containers[i]), NULL));
    struct dl2_words touch = {0};
    dl2_words_more(&touch, "touch", made, NULL);
    dl2_commands_add(&step->commands, touch);
    step->clears = dl2_text("%s/records", study->out);
    step->log = dl2_text("%s/.make/records.log", study->out);
    step->says = "Making records";
    dl2_plan_close(plan, step, false);
    return made;
}

/* DATASET is "raw". The loader's cell and, where ARCHS names networks, which the default is none
 * of, theirs. */
static void add_cells(struct dl2_study_plan *plan, struct dl2_step *step, const char *container,
                      const char *length, bool cold)
{
    const struct dl2_study_settings *study = plan->study;
    const char *folder = dl2_text("%s/frames-%s", cold ? "disk" : "memory", length);
    struct dl2_cell cell = {.path = dl2_text("%s/load/%s", folder, container),
                            .name = container,
                            .place = strcmp(container, "raw") == 0 ? study->data
                                                                   : record(study, container),
                            .workers = dl2_text("%u", study->jobs)};
    dl2_words_more(&cell.options, "--samples", "clips", "--frames", length, NULL);
    if (cold)
        dl2_words_add(&cell.options, "--cold");
    struct dl2_cell own = cell;
    own.options = (struct dl2_words){0};
    dl2_words_add_all(&own.options, cell.options);
    dl2_words_more(&own.options, "--train", "--measure", study->options.measure, NULL);
    dl2_step_cell(plan, step, &own);
    for (size_t a = 0; a < study->archs.count && study->given.archs; a++) {
        cell.arch = study->archs.at[a];
        cell.path = dl2_text("%s/%s/%s", folder, cell.arch, container);
        dl2_step_cell(plan, step, &cell);
    }
}

static struct dl2_words plan_study_clips(struct dl2_study_plan *plan)
{
    static const char *const containers[] = {"raw", "files", "gulp", "tar"};
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *lengths = value_of(study, LENGTHS, "8 16 32");
    const struct dl2_words list = dl2_words_split(lengths);
    const char *records = plan_records(plan);
    const char *made = dl2_text("%s/clips/.made", study->out);
    struct dl2_step *step = dl2_plan_step(plan, "clips", "measure", made);
    dl2_files_add(&step->inputs, records);
    dl2_plan_settings(plan, step, "clips",
                      dl2_text("%s %s %s %s %u %s %s %s", lengths,
                               study->given.archs ? o->archs : "", o->image_size, o->batch,
                               study->jobs, o->rounds, o->measure, o->load_flags));
    dl2_step_rounds(plan, step);
    for (size_t l = 0; l < list.count; l++)
        for (size_t c = 0; c < sizeof containers / sizeof *containers; c++)
            for (int cold = 0; cold < 2; cold++)
                if (study->videos || strcmp(containers[c], "files") != 0)
                    add_cells(plan, step, containers[c], list.at[l], cold);
    dl2_plan_close(plan, step, false);
    const char *table = dl2_plan_table(plan, "clips", made);
    dl2_words_add(&plan->shown, table);
    struct dl2_words targets = {0};
    dl2_words_add(&targets, table);
    return targets;
}

static const struct dl2_goal goal_study_clips = {
    .name = "study-clips",
    .summary = "how fast clips load from files of frames, GulpIO's chunks, tar shards and videos, "
               "warm and from a cold disk, by CLIP_LENGTHS, and how fast ARCHS train on them "
               "(OUT/clips.txt); DATASET is a folder of videos or frames, by default videos that "
               "FFmpeg draws; not a part of `study`",
    .section = "variants",
    .folders = "clips clips.txt records",
    .variables = clips_variables,
    .defaults = set_dataset,
    .check = check_clips,
    .plan = plan_study_clips,
};
