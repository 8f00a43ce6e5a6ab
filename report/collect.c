/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/collect.h"

#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"
#include "report/comparable.h"
#include "report/evaluation.h"
#include "report/search_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A list of texts, or of objects with `field` and perhaps "error", as failures. */
static int add_failures(struct dl2_study *study, const char *stage, const char *name,
                        const json_t *list, const char *field, const char *why,
                        struct dl2_error *error)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *what = json_is_string(item) ? json_string_value(item)
                                                : dl2_json_get_text(item, field, "(unnamed)");
        DL2_TRY(dl2_study_add_failure(study, stage, name, what,
                                      dl2_json_get_text(item, "error", why), error));
    }
    return DL2_OK;
}

/* ---- Walking through a study's folder */

struct walk {
    struct dl2_study *study;
    const struct dl2_study_selection *selection;
    const char *variant, *arch; /* of the folders that it is in */
};

/* What is done with the file or folder `path`, whose name is `name`. */
typedef int walk_take(struct walk *walk, const char *path, const char *name,
                      struct dl2_error *error);

/* Visits what lies in `folder`, by name; nothing where there's no such folder. */
static int walk_folder(struct walk *walk, const char *folder, walk_take *take,
                       struct dl2_error *error)
{
    DL2_AUTO_LIST char **names = NULL;
    char path[4096];
    DL2_TRY(dl2_list_names(folder, &names, error));
    for (size_t i = 0; names[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        DL2_TRY(take(walk, path, names[i], error));
    }
    return DL2_OK;
}

static bool is_listed(char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return !list;
}

/* A variant of the study, or one that is named as left out? */
static int is_wanted(struct dl2_study *study, const struct dl2_study_selection *selection,
                     const char *name, bool *wanted, struct dl2_error *error)
{
    *wanted = is_listed(selection->variants, name);
    return *wanted ? DL2_OK
                   : dl2_study_leave_out(study, error, "%s: not among the variants of this study",
                                         name);
}

/* *out is NULL for a broken or missing file, which is noted. */
static int load_results(struct dl2_study *study, const char *path, const char *schema, json_t **out,
                        struct dl2_error *error)
{
    struct dl2_error why = DL2_ERROR_INIT;
    *out = NULL;
    dl2_json_load(path, schema, out, &why);
    return dl2_study_note_broken(study, &why, error);
}

static int add_variant(struct dl2_study *study, const char *name, struct dl2_study_variant **out,
                       struct dl2_error *error)
{
    size_t index = dl2_study_find(study, name);
    if (index == study->variant_count) {
        DL2_TRY(dl2_grow(&study->variants, index, sizeof *study->variants, error));
        study->variants[index] = (struct dl2_study_variant){.codec = ""};
        DL2_TRY(dl2_copy_text(name, &study->variants[index].name, error));
        study->variant_count++;
    }
    *out = &study->variants[index];
    return DL2_OK;
}

static int take_made(struct walk *walk, const char *folder, const char *name,
                     struct dl2_error *error)
{
    struct dl2_study *study = walk->study;
    bool wanted = dl2_is_folder(folder);
    if (wanted)
        DL2_TRY(is_wanted(study, walk->selection, name, &wanted, error));
    if (!wanted)
        return DL2_OK;
    char path[4608];
    snprintf(path, sizeof path, "%s/dl2-variant.json", folder);
    json_auto_t *made = NULL;
    struct dl2_study_variant *variant;
    DL2_TRY(load_results(study, path, "dl2-variant/1", &made, error));
    if (!made)
        return DL2_OK;
    DL2_TRY(add_variant(study, name, &variant, error));
    variant->made = json_incref(made);
    struct stat info;
    variant->made_ns = stat(path, &info) == 0 ? dl2_mtime_ns(&info) : 0;
    if (json_is_false(json_object_get(made, "complete")))
        DL2_TRY(dl2_texts_add(&study->unfinished, path, error));
    return add_failures(study, "transcode", name, json_object_get(made, "failed"), "path", NULL,
                        error);
}

/* An entry of dl2-quality/1, and whatever it says is amiss. */
static int add_scored(struct dl2_study *study, const struct dl2_study_selection *selection,
                      const char *path, const char *name, json_t *entry, struct dl2_error *error)
{
    static const struct {
        const char *list, *why;
    } faults[] = {{"missing", "not in the variant"},
                  {"extra", "not in the original"},
                  {"mismatched", NULL},
                  {"failed", NULL}};
    bool wanted;
    struct dl2_study_variant *variant;
    DL2_TRY(is_wanted(study, selection, name, &wanted, error));
    if (!wanted)
        return DL2_OK;
    DL2_TRY(add_variant(study, name, &variant, error));
    json_object_del(entry, "per_image");
    json_decref(variant->scored);
    variant->scored = json_incref(entry);
    free(variant->scored_path);
    DL2_TRY(dl2_copy_text(path, &variant->scored_path, error));
    const char *unopened = dl2_json_get_text(entry, "error", NULL);
    if (unopened)
        return dl2_study_add_failure(study, "quality", name, "not scored", unopened, error);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        DL2_TRY(add_failures(study, "quality", name, json_object_get(entry, faults[i].list), "key",
                             faults[i].why, error));
    return DL2_OK;
}

/* "jpeg-50" of "jpeg-50.json"; false for another file. */
static bool name_results(const char *file, char out[256])
{
    snprintf(out, 256, "%.*s", (int)dl2_path_stem_length(file), file);
    return strcmp(dl2_path_extension(file), "json") == 0;
}

static int take_scored(struct walk *walk, const char *path, const char *file,
                       struct dl2_error *error)
{
    struct dl2_study *study = walk->study;
    char own[256];
    if (!name_results(file, own))
        return DL2_OK;
    json_auto_t *quality = NULL;
    DL2_TRY(load_results(study, path, "dl2-quality/1", &quality, error));
    json_auto_t *entries = json_incref(json_object_get(quality, "variants"));
    json_object_del(quality, "variants");
    if (!json_object_get(study->quality, "definitions")) {
        json_decref(study->quality);
        study->quality = json_incref(quality);
    }
    json_t *entry;
    size_t i;
    json_array_foreach(entries, i, entry)
    {
        /* A file of one variant is called as the variant is. */
        const char *name =
            json_array_size(entries) == 1 ? own : dl2_json_get_text(entry, "variant", own);
        DL2_TRY(add_scored(study, walk->selection, path, name, entry, error));
    }
    return DL2_OK;
}

static int take_loaded(struct walk *walk, const char *path, const char *file,
                       struct dl2_error *error)
{
    struct dl2_study *study = walk->study;
    char name[256];
    bool wanted = name_results(file, name);
    if (wanted)
        DL2_TRY(is_wanted(study, walk->selection, name, &wanted, error));
    if (!wanted)
        return DL2_OK;
    json_auto_t *loaded = NULL;
    struct dl2_study_variant *variant;
    DL2_TRY(load_results(study, path, "dl2-load/1", &loaded, error));
    if (!loaded)
        return DL2_OK;
    DL2_TRY(add_variant(study, name, &variant, error));
    json_decref(variant->loaded);
    variant->loaded = json_incref(loaded);
    return add_failures(study, "load", name, json_object_get(loaded, "bad"), "path", NULL, error);
}

/* The most trainings that shared the machine in any part of a run; 0: not recorded. */
static unsigned most_trainers(const json_t *report)
{
    const json_t *arguments = json_object_get(report, "arguments");
    long long most = dl2_json_get_integer(arguments, "trainers", 0);
    size_t i;
    json_t *epoch;
    json_array_foreach(json_object_get(report, "epochs"), i, epoch)
    {
        const long long own = dl2_json_get_integer(epoch, "trainers", most);
        most = own > most ? own : most;
    }
    return most > 0 && most <= UINT32_MAX ? (unsigned)most : 0;
}

/* The figures of a run whose report and names are set. */
static int read_run(struct dl2_study_run *run, struct dl2_error *error)
{
    json_t *epochs = json_object_get(run->report, "epochs"), *epoch;
    const size_t count = json_array_size(epochs);
    const json_t *final = json_array_get(json_object_get(run->report, "final"), 0);
    run->train_images = dl2_json_get_real(run->report, "train_images", NAN);
    run->val_images =
        dl2_json_get_real(final, "images", dl2_json_get_real(run->report, "val_images", NAN));
    run->accuracy = dl2_accuracy_of(final);
    /* Of pixels it would say nothing. */
    run->top5 = dl2_accuracy_kind_of(final) == &dl2_accuracy_top1
                    ? dl2_json_get_real(final, "top5", NAN)
                    : NAN;
    run->trainers = most_trainers(run->report);
    run->epochs = count;
    if (!count)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&run->val_accuracy, count, "epochs", error));
    size_t i;
    json_array_foreach(epochs, i, epoch)
    {
        run->val_accuracy[i] = dl2_accuracy_of(json_array_get(json_object_get(epoch, "val"), 0));
        run->seconds += dl2_json_get_real(epoch, "seconds", 0);
    }
    return DL2_OK;
}

static int add_run(struct dl2_study *study, const char *path, const char *name, const char *arch,
                   const char *seed, bool wanted, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    struct stat info;
    if (stat(path, &info) != 0)
        return DL2_OK;
    if (!wanted) /* only named, so that it need not be whole */
        return dl2_study_leave_out(study, error,
                                   "%s, %s, seed %s: not among the trainings of this study", name,
                                   arch, seed);
    if (S_ISREG(info.st_mode))
        DL2_TRY(load_results(study, path, "dl2-experiment/1", &report, error));
    if (!report)
        return DL2_OK;
    if (!json_is_true(json_object_get(report, "completed")))
        return dl2_texts_add(&study->unfinished, path, error);
    struct dl2_study_variant *variant;
    DL2_TRY(add_variant(study, name, &variant, error));
    DL2_TRY(dl2_grow(&study->runs, study->run_count, sizeof *study->runs, error));
    struct dl2_study_run *run = &study->runs[study->run_count++];
    *run = (struct dl2_study_run){.variant = (size_t)(variant - study->variants),
                                  .report = json_incref(report)};
    run->seed = strtoull(seed, NULL, 10);
    run->made_ns = dl2_mtime_ns(&info);
    DL2_TRY(dl2_copy_text(arch, &run->arch, error));
    DL2_TRY(dl2_copy_text(path, &run->path, error));
    DL2_TRY(read_run(run, error));
    const json_t *final = json_array_get(json_object_get(report, "final"), 0);
    const struct dl2_accuracy_kind *own = dl2_accuracy_kind_of(final);
    const struct dl2_accuracy_kind *first = dl2_study_accuracy(study);
    if (own != first) {
        dl2_study_remove_run(study, study->run_count - 1);
        return dl2_study_leave_out(study, error,
                                   "%s, %s, seed %s: its accuracy is %s, that of the "
                                   "trainings before it %s",
                                   name, arch, seed, own->name, first->name);
    }
    if (!isfinite(run->accuracy)) {
        char text[4700];
        snprintf(text, sizeof text, "%s: it has no final accuracy", path);
        DL2_TRY(dl2_texts_add(&study->broken, text, error));
    }
    if (dl2_study_find_arch(study, arch) == study->arch_count)
        DL2_TRY(dl2_list_append(&study->archs, &study->arch_count, strdup(arch), error));
    char of[512];
    snprintf(of, sizeof of, "%s, %s, seed %s", name, arch, seed);
    return add_failures(study, "train", of, json_object_get(report, "bad"), "path", NULL, error);
}

static int take_seed(struct walk *walk, const char *folder, const char *name,
                     struct dl2_error *error)
{
    if (strncmp(name, "seed-", 5) != 0)
        return DL2_OK;
    char path[4608], training[1024];
    snprintf(path, sizeof path, "%s/experiment_report.json", folder);
    snprintf(training, sizeof training, "%s/%s/%s", walk->variant, walk->arch, name);
    return add_run(walk->study, path, walk->variant, walk->arch, name + 5,
                   is_listed(walk->selection->trainings, training), error);
}

static int take_arch(struct walk *walk, const char *folder, const char *name,
                     struct dl2_error *error)
{
    walk->arch = name;
    return walk_folder(walk, folder, take_seed, error);
}

static int take_trained(struct walk *walk, const char *folder, const char *name,
                        struct dl2_error *error)
{
    bool wanted;
    DL2_TRY(is_wanted(walk->study, walk->selection, name, &wanted, error));
    walk->variant = name;
    return wanted ? walk_folder(walk, folder, take_arch, error) : DL2_OK;
}

/* A metric's mean over the images, or NAN. */
static double mean_score(const struct dl2_study_variant *variant, const char *name)
{
    if (variant->resized)
        return NAN;
    const json_t *metrics = json_object_get(variant->scored, "metrics");
    return dl2_json_get_real(json_object_get(metrics, name), "mean", NAN);
}

/*
 * Sets codec and resized. Variants of one codec, settings and resolution are one sequence, and its
 * name is theirs without the quality: "jpeg_444@320" of jpeg_444-25@320.
 */
static int read_codec(struct dl2_study_variant *v, struct dl2_error *error)
{
    const bool raw = strcmp(v->name, "raw") == 0;
    const json_t *from = v->made ? v->made : v->scored;
    const long long quality = dl2_json_get_integer(from, "quality", -1);
    const json_t *options = json_object_get(v->made, "options");
    char number[32];
    v->codec = raw ? "raw" : dl2_json_get_text(from, "codec", v->name);
    v->resized = json_object_get(options, "resize") || json_object_get(v->scored, "resize");
    snprintf(number, sizeof number, "-%02lld", quality);
    const char *at = quality < 0 ? NULL : strstr(v->name, number);
    const size_t length = strlen(v->codec);
    free(v->own_codec);
    v->own_codec = NULL;
    if (raw || strncmp(v->name, v->codec, length) != 0 || !strchr("_@-", v->name[length]) ||
        (quality >= 0 && !at))
        return DL2_OK;
    const char *target = dl2_json_get_text(json_object_get(options, "target"), "of", NULL);
    const char *after = at ? at + strlen(number) : NULL;
    if (target) { /* "jpeg-ssim" of jpeg-ssim0.95 */
        at = strstr(v->name + length, target);
        at = at ? at + strlen(target) : NULL;
        after = at ? strchr(at, '@') : NULL;
    }
    const int before = at ? (int)(at - v->name) : (int)strlen(v->name);
    DL2_TRY(dl2_format(&v->own_codec, error, "%.*s%s", before, v->name, after ? after : ""));
    v->codec = v->own_codec;
    return DL2_OK;
}

static int read_figures(struct dl2_study *study, struct dl2_error *error)
{
    const struct dl2_study_variant *any = NULL; /* tells of the original */
    for (size_t i = 0; i < study->variant_count; i++) {
        struct dl2_study_variant *v = &study->variants[i];
        const json_t *from = v->made ? v->made : v->scored;
        DL2_TRY(read_codec(v, error));
        v->quality = (int)dl2_json_get_integer(from, "quality", 0);
        v->images = dl2_json_get_real(from, "images", NAN);
        v->pixels = v->resized ? dl2_json_get_real(v->made, "source_pixels", NAN)
                               : dl2_json_get_real(from, "pixels", NAN);
        v->bytes = dl2_json_get_real(from, "bytes", NAN);
        v->bits_per_pixel = 8 * v->bytes / v->pixels;
        if (!v->resized)
            v->bits_per_pixel = dl2_json_get_real(from, "bits_per_pixel", v->bits_per_pixel);
        v->ratio =
            v->bytes / dl2_json_get_real(v->made, "source_bytes",
                                         dl2_json_get_real(v->scored, "reference_bytes", NAN));
        v->encode_seconds = dl2_json_get_real(v->made, "encode_cpu_seconds", NAN);
        v->psnr_rgb = mean_score(v, "psnr_rgb");
        v->ssim = mean_score(v, "ssim");
        v->volume_psnr = mean_score(v, "volume_psnr");
        v->volume_ssim = mean_score(v, "volume_ssim");
        v->load_rate = dl2_json_get_real(v->loaded, "images_per_core_second", NAN);
        if (v->made && (!any || dl2_json_get_real(v->made, "images", 0) > any->images))
            any = v;
    }
    const size_t index = dl2_study_find(study, "raw");
    if (any && index < study->variant_count) {
        struct dl2_study_variant *raw = &study->variants[index];
        raw->images = any->images;
        raw->pixels = any->pixels;
        raw->bytes = dl2_json_get_real(any->made, "source_bytes", NAN);
        raw->bits_per_pixel = 8 * raw->bytes / raw->pixels;
        raw->ratio = 1;
    }
    return DL2_OK;
}

/* Raw first, then codecs by name with their qualities upwards. */
static int compare_variants(const void *a, const void *b)
{
    const struct dl2_study_variant *x = a, *y = b;
    const bool x_raw = strcmp(x->name, "raw") == 0, y_raw = strcmp(y->name, "raw") == 0;
    if (x_raw != y_raw)
        return y_raw - x_raw;
    int order = strcmp(x->codec, y->codec);
    if (order == 0)
        order = x->quality - y->quality;
    return order ? order : strcmp(x->name, y->name);
}

static int compare_runs(const void *a, const void *b)
{
    const struct dl2_study_run *x = a, *y = b;
    if (x->variant != y->variant)
        return x->variant < y->variant ? -1 : 1;
    const int order = strcmp(x->arch, y->arch);
    return order ? order : (x->seed > y->seed) - (x->seed < y->seed);
}

/* Runs name their variants by index, which sorting moves. */
static int sort_all(struct dl2_study *study, struct dl2_error *error)
{
    const size_t count = study->variant_count;
    DL2_AUTO_FREE char **before = NULL;
    DL2_TRY(DL2_NEW(&before, count + 1, "variants", error));
    for (size_t i = 0; i < count; i++)
        before[i] = study->variants[i].name;
    if (count)
        qsort(study->variants, count, sizeof *study->variants, compare_variants);
    for (size_t i = 0; i < study->run_count; i++)
        study->runs[i].variant = dl2_study_find(study, before[study->runs[i].variant]);
    if (study->run_count)
        qsort(study->runs, study->run_count, sizeof *study->runs, compare_runs);
    if (study->arch_count)
        qsort(study->archs, study->arch_count, sizeof *study->archs, dl2_compare_texts);
    return DL2_OK;
}

/* ---- Predictions */

/* A run's predictions for a validation set: those of the training that its report is of. */
static int read_predictions(const struct dl2_study_run *run, const json_t *final,
                            struct dl2_prediction_table *table, struct dl2_error *error)
{
    const char *name = json_string_value(json_object_get(final, "predictions"));
    const double images = dl2_json_get_real(final, "images", run->val_images);
    const double reported = dl2_json_get_real(final, "top1", NAN);
    if (strchr(name, '/') || name[0] == '.')
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: its predictions are to be in \"%s\", "
                             "which is not a file's name",
                             run->path, name);
    char path[4608];
    snprintf(path, sizeof path, "%.*s%s", (int)(dl2_path_base(run->path) - run->path), run->path,
             name);
    DL2_TRY(dl2_prediction_table_read(path, table, error));
    const double accuracy = (double)table->right / (double)table->known;
    if ((double)table->known != images || fabs(accuracy - reported) > 0.25 / images)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: %zu of %zu images are right, where the report beside it has "
                             "top-1 %.6g of %.0f: it is of another training",
                             path, table->right, table->known, reported, images);
    return DL2_OK;
}

/* Whether a run is right, and its losses (or NULL), in the order of the reference's images. */
static int pair_predictions(const struct dl2_study_run *run,
                            const struct dl2_prediction_table *reference,
                            const struct dl2_prediction_table *own, uint8_t **correct, float **loss,
                            struct dl2_error *error)
{
    DL2_AUTO_FREE size_t *rows = NULL;
    DL2_TRY(DL2_NEW(&rows, reference->count, "predictions", error));
    if (dl2_prediction_table_join(reference, own, rows, error) < 0) {
        dl2_error_prefix(error, "%s", run->path);
        return error->status;
    }
    DL2_TRY(DL2_NEW(correct, reference->count, "predictions", error));
    if (loss)
        DL2_TRY(DL2_NEW(loss, reference->count, "predictions", error));
    for (size_t i = 0; i < reference->count; i++) {
        const bool there = rows[i] < own->count && own->rows[rows[i]].predicted >= 0;
        (*correct)[i] = there ? own->rows[rows[i]].top1 : DL2_STUDY_ABSENT;
        if (loss)
            (*loss)[i] = there ? own->rows[rows[i]].loss : NAN;
    }
    return DL2_OK;
}

/* Reads one set's predictions; those that are broken are named. The first table of a network
 * becomes the reference. */
static int collect_set(struct dl2_study *study, const struct dl2_study_run *run, size_t set,
                       struct dl2_prediction_table *reference, uint8_t **correct, float **loss,
                       struct dl2_error *error)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    if (!json_is_string(json_object_get(final, "predictions")))
        return DL2_OK;
    struct dl2_error why = DL2_ERROR_INIT;
    struct dl2_prediction_table table = {0};
    const bool first = !reference->count;
    int own = read_predictions(run, final, &table, &why);
    if (own == DL2_OK)
        own = pair_predictions(run, first ? &table : reference, &table, correct, loss, &why);
    if (own == DL2_OK && first)
        *reference = table;
    else
        dl2_prediction_table_free(&table);
    return dl2_study_note_broken(study, &why, error);
}

/* The set of validation images of the trainings on the original; false if there are none. */
static bool find_original_set(const struct dl2_study *study, const char *arch,
                              struct dl2_val_set *set)
{
    const struct dl2_study_run *run =
        dl2_study_first_run(study, dl2_study_find(study, "raw"), arch);
    if (run)
        *set = dl2_study_val_set(run, 0);
    return run != NULL;
}

/* Reads the predictions of a network's runs, on their own variant's images and on the original's.
 * Runs without, or whose are broken, have none. */
static int collect_predictions(struct dl2_study *study, size_t number, struct dl2_error *error)
{
    const char *arch = study->archs[number];
    const size_t raw = dl2_study_find(study, "raw");
    struct dl2_prediction_table *reference = &study->images[number];
    struct dl2_val_set original;
    const bool known = find_original_set(study, arch, &original);
    for (size_t i = 0; i < study->run_count; i++) {
        struct dl2_study_run *run = &study->runs[i];
        const json_t *final = json_object_get(run->report, "final");
        if (strcmp(run->arch, arch) != 0)
            continue;
        DL2_TRY(collect_set(study, run, 0, reference, &run->correct, &run->loss, error));
        for (size_t set = 1; known && run->variant != raw && set < json_array_size(final); set++) {
            const struct dl2_val_set own = dl2_study_val_set(run, set);
            if (!dl2_val_set_equal(&own, &original))
                continue;
            run->original_accuracy = dl2_accuracy_of(json_array_get(final, set));
            run->on_original = isfinite(run->original_accuracy);
            DL2_TRY(collect_set(study, run, set, reference, &run->original_correct, NULL, error));
            break;
        }
        run->images = reference->count;
    }
    return DL2_OK;
}

/* ---- Evaluations */

static int collect_evaluations(struct dl2_study *study, struct dl2_error *error)
{
    struct dl2_val_set original = {NULL, NULL};
    for (size_t a = 0; a < study->arch_count && !original.name; a++)
        find_original_set(study, study->archs[a], &original);
    for (size_t i = 0; i < study->run_count; i++) {
        struct dl2_study_run *run = &study->runs[i];
        struct dl2_error why = DL2_ERROR_INIT;
        bool found = false;
        DL2_TRY(DL2_NEW(&run->evaluated, study->variant_count, "variants", error));
        dl2_evaluation_read(study, run, original.name, run->evaluated, &found, &why);
        if (why.status == DL2_ERR_ARGUMENT) /* of the training that was here before */
            DL2_TRY(dl2_study_leave_out(study, error, "%s", why.message));
        else
            DL2_TRY(dl2_study_note_broken(study, &why, error));
        if (!found) {
            free(run->evaluated);
            run->evaluated = NULL;
        }
    }
    return DL2_OK;
}

/* ---- Rounds */

/* Drops measurements of variants that are not wanted, and those that cannot be compared. */
static int choose_rounds(struct dl2_study *study, const struct dl2_study_selection *selection,
                         struct dl2_error *error)
{
    for (size_t i = study->rounds.count; i-- > 0;) {
        bool keep;
        DL2_TRY(is_wanted(study, selection, study->rounds.items[i].variant, &keep, error));
        if (keep)
            DL2_TRY(dl2_study_round_is_comparable(study, i, &keep, error));
        if (!keep)
            dl2_rounds_drop(&study->rounds, i);
    }
    return DL2_OK;
}

static int collect_rounds(const char *folder, const struct dl2_study_selection *selection,
                          struct dl2_study *study, struct dl2_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/throughput", folder);
    DL2_TRY(dl2_rounds_read(path, &study->rounds, error));
    for (size_t i = 0; i < study->rounds.broken.count; i++)
        DL2_TRY(dl2_texts_add(&study->broken, study->rounds.broken.at[i], error));
    return choose_rounds(study, selection, error);
}

int dl2_study_collect(const char *folder, const struct dl2_study_selection *selection,
                      struct dl2_study *study, struct dl2_error *error)
{
    static const struct dl2_study_selection everything = {NULL, NULL};
    *study = (struct dl2_study){0};
    selection = selection ? selection : &everything;
    if (!dl2_is_folder(folder))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s is not a folder: name the one that a study wrote (its OUT)",
                             folder);
    if (strlen(folder) > 2048)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%.64s...: too long a path", folder);
    static const struct {
        const char *name;
        walk_take *take;
    } parts[] = {{"variants", take_made},
                 {"quality", take_scored},
                 {"load", take_loaded},
                 {"train", take_trained}};
    struct walk walk = {.study = study, .selection = selection};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, parts[i].name);
        DL2_TRY(walk_folder(&walk, path, parts[i].take, error));
    }
    if (!study->variant_count && !study->arch_count && !study->broken.count &&
        !study->unfinished.count && !study->left_out.count && !dl2_search_results_exist(folder))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s holds no results: neither variants/, quality/, load/ nor train/ "
                             "has any; name the folder that a study wrote (its OUT)",
                             folder);
    if (study->variant_count) { /* the original is always there to be compared with */
        struct dl2_study_variant *raw;
        DL2_TRY(add_variant(study, "raw", &raw, error));
    }
    DL2_TRY(read_figures(study, error));
    DL2_TRY(sort_all(study, error));
    DL2_TRY(dl2_study_keep_comparable_trainings(study, error));
    DL2_TRY(DL2_NEW(&study->images, study->arch_count + 1, "networks", error));
    for (size_t a = 0; a < study->arch_count; a++)
        DL2_TRY(collect_predictions(study, a, error));
    DL2_TRY(collect_evaluations(study, error));
    DL2_TRY(dl2_study_keep_comparable_loading(study, error));
    return collect_rounds(folder, selection, study, error);
}
