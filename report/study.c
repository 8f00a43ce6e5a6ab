/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/study.h"

#include "common/json.h"
#include "common/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dl2_val_set dl2_study_val_set(const struct dl2_study_run *run, size_t set)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    const json_t *arguments = json_object_get(run->report, "arguments");
    const json_t *paths = json_object_get(arguments, "val");
    const char *path = json_string_value(json_array_get(paths, set));
    /* Without --val it is the dataset that was trained on. */
    if (!path && json_array_size(paths) == 0 && set == 0)
        path = dl2_json_get_text(arguments, "data", NULL);
    return (struct dl2_val_set){path, dl2_json_get_text(final, "name", "?")};
}

bool dl2_val_set_equal(const struct dl2_val_set *a, const struct dl2_val_set *b)
{
    return a->path && b->path ? strcmp(a->path, b->path) == 0 : strcmp(a->name, b->name) == 0;
}

const struct dl2_accuracy_kind *dl2_study_accuracy(const struct dl2_study *study)
{
    if (!study->run_count)
        return &dl2_accuracy_top1;
    return dl2_accuracy_kind_of(json_array_get(json_object_get(study->runs->report, "final"), 0));
}

bool dl2_study_has_volumes(const struct dl2_study *study)
{
    return json_object_get(json_object_get(study->quality, "definitions"), "volume_psnr");
}

size_t dl2_study_find(const struct dl2_study *study, const char *name)
{
    size_t i = 0;
    while (i < study->variant_count && strcmp(study->variants[i].name, name) != 0)
        i++;
    return i;
}

size_t dl2_study_find_arch(const struct dl2_study *study, const char *arch)
{
    size_t a = 0;
    while (a < study->arch_count && strcmp(study->archs[a], arch) != 0)
        a++;
    return a;
}

const struct dl2_study_run *dl2_study_first_run(const struct dl2_study *study, size_t v,
                                                const char *arch)
{
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].variant == v && strcmp(study->runs[i].arch, arch) == 0)
            return &study->runs[i];
    return NULL;
}

const struct dl2_study_run *dl2_study_run_of(const struct dl2_study *study, size_t v,
                                             const char *arch, uint64_t seed)
{
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (run->variant == v && run->seed == seed && strcmp(run->arch, arch) == 0 &&
            isfinite(run->accuracy))
            return run;
    }
    return NULL;
}

bool dl2_study_starts_codec(const struct dl2_study *study, size_t v)
{
    return strcmp(study->variants[v].name, "raw") != 0 &&
           (v == 0 || strcmp(study->variants[v].codec, study->variants[v - 1].codec) != 0);
}

size_t dl2_study_end_of_codec(const struct dl2_study *study, size_t first)
{
    size_t v = first;
    while (v < study->variant_count &&
           strcmp(study->variants[v].codec, study->variants[first].codec) == 0)
        v++;
    return v;
}

bool dl2_study_run_shared(const struct dl2_study_run *run)
{
    return run->trainers != 1;
}

/* -- lists -- */

int dl2_study_note_broken(struct dl2_study *study, const struct dl2_error *why,
                          struct dl2_error *error)
{
    if (why->status == DL2_ERR_MEMORY)
        return dl2_error_copy(error, why);
    return why->status < 0 ? dl2_texts_add(&study->broken, why->message, error) : DL2_OK;
}

int dl2_study_add_failure(struct dl2_study *study, const char *stage, const char *name,
                          const char *what, const char *why, struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&study->failures, study->failure_count, sizeof *study->failures, error));
    struct dl2_study_failure *failure = &study->failures[study->failure_count];
    *failure = (struct dl2_study_failure){NULL, NULL};
    study->failure_count++;
    char text[1536];
    snprintf(text, sizeof text, "%s %s", stage, name);
    DL2_TRY(dl2_copy_text(text, &failure->stage, error));
    snprintf(text, sizeof text, "%s%s%s", what, why && *why ? ": " : "", why ? why : "");
    return dl2_copy_text(text, &failure->what, error);
}

int dl2_study_leave_out(struct dl2_study *study, struct dl2_error *error, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < study->left_out.count; i++)
        if (strcmp(study->left_out.at[i], text) == 0)
            return DL2_OK;
    return dl2_texts_add(&study->left_out, text, error);
}

int dl2_study_add_notes(struct dl2_study *study, const struct dl2_study *other, const char *where,
                        struct dl2_error *error)
{
    for (size_t i = 0; i < other->broken.count; i++)
        DL2_TRY(dl2_texts_add(&study->broken, other->broken.at[i], error));
    for (size_t i = 0; i < other->unfinished.count; i++)
        DL2_TRY(dl2_texts_add(&study->unfinished, other->unfinished.at[i], error));
    for (size_t i = 0; i < other->left_out.count; i++)
        DL2_TRY(dl2_study_leave_out(study, error, "%s: %s", where, other->left_out.at[i]));
    for (size_t i = 0; i < other->failure_count; i++)
        DL2_TRY(dl2_study_add_failure(study, where, other->failures[i].stage,
                                      other->failures[i].what, NULL, error));
    return DL2_OK;
}

/* -- the end -- */

void dl2_study_free_run(struct dl2_study_run *run)
{
    free(run->arch);
    free(run->path);
    free(run->val_accuracy);
    free(run->correct);
    free(run->loss);
    free(run->original_correct);
    free(run->evaluated);
    json_decref(run->report);
}

void dl2_study_remove_run(struct dl2_study *study, size_t index)
{
    dl2_study_free_run(&study->runs[index]);
    memmove(&study->runs[index], &study->runs[index + 1],
            (study->run_count - index - 1) * sizeof *study->runs);
    study->run_count--;
}

void dl2_study_free(struct dl2_study *study)
{
    for (size_t i = 0; i < study->variant_count; i++) {
        free(study->variants[i].name);
        free(study->variants[i].own_codec);
        json_decref(study->variants[i].made);
        json_decref(study->variants[i].scored);
        free(study->variants[i].scored_path);
        json_decref(study->variants[i].loaded);
    }
    for (size_t i = 0; i < study->run_count; i++)
        dl2_study_free_run(&study->runs[i]);
    for (size_t i = 0; i < study->failure_count; i++) {
        free(study->failures[i].stage);
        free(study->failures[i].what);
    }
    for (size_t a = 0; study->images && a < study->arch_count; a++)
        dl2_prediction_table_free(&study->images[a]);
    free(study->images);
    free(study->grouped);
    free(study->variants);
    free(study->runs);
    free(study->failures);
    dl2_rounds_free(&study->rounds);
    dl2_free_list(study->archs);
    dl2_texts_free(&study->broken);
    dl2_texts_free(&study->unfinished);
    dl2_texts_free(&study->left_out);
    json_decref(study->quality);
    *study = (struct dl2_study){0};
}

const json_t *dl2_study_scores(const struct dl2_study_variant *variant, json_t **file)
{
    *file = NULL;
    if (variant->resized || !variant->scored_path ||
        dl2_json_load(variant->scored_path, "dl2-quality/1", file, NULL) < 0)
        return NULL;
    const json_t *entries = json_object_get(*file, "variants");
    json_t *entry;
    size_t i;
    if (json_array_size(entries) == 1)
        return json_array_get(entries, 0);
    json_array_foreach(entries, i, entry)
    {
        if (strcmp(dl2_json_get_text(entry, "variant", ""), variant->name) == 0)
            return entry;
    }
    return NULL;
}
