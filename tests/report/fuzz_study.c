/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A study's result files on any bytes: the first byte says which of the kinds below the rest is; it
 * is read, analyzed and made a page (without plots, which are gnuplot's work). Beside it lie two
 * trainings, so that evaluations have something to be of, and another trainer's on the original,
 * for the kind whose metric is another trainer's.
 */
#include "common/file.h"
#include "report/analysis.h"
#include "report/page/page.h"
#include "report/speed.h"
#include "report/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const folders[] = {"variants/jpeg-50",
                                      "quality",
                                      "load",
                                      "train/jpeg-50/convnet/seed-1",
                                      "train/jpeg-25/convnet/seed-1/evaluation",
                                      "crops",
                                      ".",
                                      "train/jpeg-10/a/seed-1",
                                      "variants/jpeg-25",
                                      "timelines",
                                      "report"};
static const char *const names[] = {
    "dl2-variant.json",       "jpeg-50.json",       "jpeg-50.json", "experiment_report.json",
    "evaluation_report.json", "crops.json",         "survey.json",  "experiment_report.json",
    "dl2-variant.jsonl",      "dl2-study-a-1.json", "plan.json"};
enum { KINDS = sizeof names / sizeof *names };

static const struct {
    const char *folder, *name, *text;
} kept[] = {
    {"train/raw/convnet/seed-1", "experiment_report.json",
     "{\"schema\": \"dl2-experiment/1\", \"completed\": true, \"final\": [{\"name\": \"data\", "
     "\"images\": 9, \"top1\": 0.5}]}"},
    {"train/jpeg-25/convnet/seed-1", "experiment_report.json",
     "{\"schema\": \"dl2-experiment/1\", \"completed\": true, \"final\": [{\"name\": "
     "\"jpeg-25\", \"images\": 9, \"top1\": 0.5}]}"},
    {"variants/jpeg-25", "dl2-variant.json",
     "{\"schema\": \"dl2-variant/1\", \"variant\": \"jpeg-25\", \"codec\": \"jpeg\", \"quality\": "
     "25, "
     "\"options\": {\"resize\": {\"short\": 8}}}"},
    {"train/raw/convnet/seed-1/evaluation", "evaluation_report.json",
     "{\"schema\": \"dl2-evaluation/1\", \"val\": [{\"name\": \"data\", \"top1\": 0.5}]}"},
    {"train/raw/a/seed-1", "experiment_report.json",
     "{\"schema\": \"dl2-experiment/1\", \"completed\": true, \"final\": [{\"name\": \"raw\", "
     "\"value\": 0.75, \"outcomes\": \"o.csv\", \"metric\": {\"name\": \"mAP\", \"unit\": "
     "\"fraction\", \"higher_is_better\": true}}]}"},
    {"train/raw/a/seed-1", "o.csv", "key,value\n1,0.5\n2,1\n"},
    {"train/jpeg-10/a/seed-1", "o.csv", "key,value\n1,0.5\n2,0\n"},
};

static char root[] = "/tmp/dl2-fuzz-study.XXXXXX";
static char *folder_paths[KINDS], *paths[KINDS];

static void must(bool well)
{
    if (!well)
        abort();
}

static void remove_study(void)
{
    char command[sizeof root + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        perror(root);
}

static void make_study(void)
{
    must(mkdtemp(root));
    atexit(remove_study);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char *folder = dl2_path_join(root, kept[i].folder);
        must(folder && dl2_make_folders(folder, NULL) == DL2_OK);
        char *path = dl2_path_join(folder, kept[i].name);
        must(path && dl2_file_write(path, kept[i].text, strlen(kept[i].text), NULL) == DL2_OK);
        free(path);
        free(folder);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        folder_paths[kind] = dl2_path_join(root, folders[kind]);
        must(folder_paths[kind] && dl2_make_folders(folder_paths[kind], NULL) == DL2_OK);
        paths[kind] = dl2_path_join(folder_paths[kind], names[kind]);
        must(paths[kind]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!paths[0])
        make_study();
    if (size == 0)
        return 0;
    const char *path = paths[data[0] % KINDS], *plan_path = paths[KINDS - 1];
    must(dl2_file_write(path, data + 1, size - 1, NULL) == DL2_OK);

    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_study study;
    must(dl2_study_collect(root, NULL, &study, &error) == DL2_OK);
    const struct dl2_question question = {.tolerance = 1, .looks = {2, {1, 3}, {0}}, .draws = 3};
    struct dl2_page page = {
        .title = "fuzz", .folder = root, .study = &study, .question = &question};
    const int opened = dl2_plan_open(root, &study, &question, true, &page.plan, NULL);
    page.analyses = dl2_keep(study.arch_count, sizeof *page.analyses, "analyses");
    page.speeds = dl2_keep(study.arch_count, sizeof *page.speeds, "speeds");
    for (size_t a = 0; a < study.arch_count; a++) {
        page.analyses[a] =
            dl2_analyze(&study, study.archs[a], opened < 0 ? &question : &page.plan.questions[a]);
        page.speeds[a] = dl2_speeds_analyze(&study, &page.analyses[a], NAN);
    }
    if (opened == DL2_OK)
        must(dl2_plan_record(&page.plan, &study, page.analyses, &error) == DL2_OK);
    else if (page.plan.lock >= 0)
        close(page.plan.lock);
    dl2_page_complete(&page);
    struct dl2_bytes html = DL2_BYTES_INIT;
    dl2_document_render(dl2_page_make(&page), &html);
    dl2_bytes_free(&html);
    dl2_free_kept();
    must(unlink(path) == 0);
    if (path != plan_path) /* what this wrote */
        unlink(plan_path);
    return 0;
}
