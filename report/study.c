/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/study.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct dl2_val_set dl2_study_val_set(const struct dl2_study_run *run, size_t set)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    const json_t *arguments = json_object_get(run->report, "arguments");
    const json_t *paths = json_object_get(arguments, "val");
    const char *path =
        dl2_json_get_text(final, "path", json_string_value(json_array_get(paths, set)));
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
    return study->accuracy ? study->accuracy : &dl2_accuracy_top1;
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

struct dl2_runs dl2_study_runs(const struct dl2_study *study, size_t v, const char *arch)
{
    struct dl2_runs found = {NULL, 0};
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (run->variant != v || strcmp(run->arch, arch) != 0)
            continue;
        found.at = found.at ? found.at : run;
        found.count++;
    }
    return found;
}

const struct dl2_study_run *dl2_study_run_of(const struct dl2_study *study, size_t v,
                                             const char *arch, uint64_t seed)
{
    const struct dl2_runs runs = dl2_study_runs(study, v, arch);
    for (size_t i = 0; i < runs.count; i++)
        if (runs.at[i].seed == seed && isfinite(runs.at[i].accuracy))
            return &runs.at[i];
    return NULL;
}

/* -- means over seeds -- */

size_t dl2_runs_epochs(struct dl2_runs runs)
{
    size_t epochs = 0;
    for (size_t i = 0; i < runs.count; i++)
        epochs = runs.at[i].epochs > epochs ? runs.at[i].epochs : epochs;
    return epochs;
}

double dl2_runs_accuracy(struct dl2_runs runs, size_t epoch)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        if (epoch >= run->epochs || !isfinite(run->val_accuracy[epoch]))
            continue;
        sum += run->val_accuracy[epoch];
        count++;
    }
    return count ? 100 * sum / (double)count : NAN;
}

double dl2_runs_seconds(struct dl2_runs runs)
{
    double sum = 0;
    for (size_t i = 0; i < runs.count; i++)
        sum += dl2_study_run_shared(&runs.at[i]) ? NAN : runs.at[i].seconds;
    return runs.count ? sum / (double)runs.count : NAN;
}

static const json_t *epoch_at(const struct dl2_study_run *run, size_t epoch)
{
    return json_array_get(json_object_get(run->report, "epochs"), epoch);
}

double dl2_runs_seen(struct dl2_runs runs)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        if (!run->epochs)
            continue;
        sum += dl2_json_get_real(epoch_at(run, run->epochs - 1), "position", NAN);
        count++;
    }
    return count ? sum / (double)count : NAN;
}

bool dl2_runs_at(struct dl2_runs runs, size_t epoch, double *seconds, double *accuracy)
{
    *seconds = *accuracy = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        const size_t last = epoch == SIZE_MAX ? run->epochs - 1 : epoch;
        if (!run->epochs || last >= run->epochs || !isfinite(run->val_accuracy[last]))
            return false;
        for (size_t e = 0; e <= last; e++)
            *seconds += dl2_json_get_real(epoch_at(run, e), "seconds", 0) +
                        dl2_json_get_real(epoch_at(run, e), "val_seconds", 0);
        *accuracy += run->val_accuracy[last];
    }
    *seconds /= (double)runs.count;
    *accuracy /= (double)runs.count;
    return runs.count > 0;
}

/* -- codecs -- */

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

static void walk(const char *folder, const char **names, size_t depth, dl2_visit *visit,
                 void *context)
{
    DL2_AUTO_LIST char **found = NULL;
    struct dl2_error why = DL2_ERROR_INIT;
    dl2_unless_memory(dl2_list_names(folder, &found, &why), &why);
    for (size_t i = 0; found[i]; i++) {
        const char *path = dl2_text("%s/%s", folder, found[i]);
        names[depth] = found[i];
        if (visit(context, path, names, depth))
            walk(path, names, depth + 1, visit, context);
    }
}

void dl2_walk(const char *folder, dl2_visit *visit, void *context)
{
    const char *names[DL2_WALK_DEPTH];
    walk(folder, names, 0, visit, context);
}

void dl2_study_note_broken(struct dl2_study *study, const struct dl2_error *why)
{
    if (dl2_unless_memory(why->status, why) < 0)
        dl2_words_add(&study->broken, dl2_text("%s", why->message));
}

void dl2_study_add_failure(struct dl2_study *study, const char *stage, const char *name,
                           const char *what, const char *why)
{
    study->failures = dl2_keep_more(study->failures, study->failure_count, sizeof *study->failures);
    study->failures[study->failure_count++] = (struct dl2_study_failure){
        .stage = dl2_text("%s %s", stage, name),
        .what = dl2_text("%s%s%s", what, why && *why ? ": " : "", why ? why : "")};
}

void dl2_study_leave_out(struct dl2_study *study, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < study->left_out.count; i++)
        if (strcmp(study->left_out.at[i], text) == 0)
            return;
    dl2_words_add(&study->left_out, dl2_text("%s", text));
}

void dl2_study_add_notes(struct dl2_study *study, const struct dl2_study *other, const char *where)
{
    for (size_t i = 0; i < other->broken.count; i++)
        dl2_words_add(&study->broken, dl2_text("%s", other->broken.at[i]));
    for (size_t i = 0; i < other->unfinished.count; i++)
        dl2_words_add(&study->unfinished, dl2_text("%s", other->unfinished.at[i]));
    for (size_t i = 0; i < other->late.count; i++)
        dl2_words_add(&study->late, dl2_text("%s", other->late.at[i]));
    for (size_t i = 0; i < other->left_out.count; i++)
        dl2_study_leave_out(study, "%s: %s", where, other->left_out.at[i]);
    for (size_t i = 0; i < other->failure_count; i++)
        dl2_study_add_failure(study, where, other->failures[i].stage, other->failures[i].what,
                              NULL);
}

void dl2_study_remove_run(struct dl2_study *study, size_t index)
{
    study->run_count--;
    memmove(&study->runs[index], &study->runs[index + 1],
            (study->run_count - index) * sizeof *study->runs);
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
