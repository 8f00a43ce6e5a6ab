/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/study.h"

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "report/outcome_table.h"
#include "report/result_files.h"
#include "report/search_results.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A list of texts, or of objects with `field` and perhaps "error", as failures. */
static void add_failures(struct dl2_study *study, const char *stage, const char *name,
                         const json_t *list, const char *field, const char *why)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *what = json_is_string(item) ? json_string_value(item)
                                                : dl2_json_get_text(item, field, "(unnamed)");
        dl2_study_add_failure(study, stage, name, what, dl2_json_get_text(item, "error", why));
    }
}

/* ---- Walking through a study's folder */

struct collecting {
    struct dl2_study *study;
    const struct dl2_study_selection *selection;
};

static bool is_listed(char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return !list;
}

/* Is it a variant of the study? Else it is named as left out. */
static bool is_wanted(const struct collecting *into, const char *name)
{
    const bool wanted = is_listed(into->selection->variants, name);
    if (!wanted)
        dl2_study_leave_out(into->study, "%s: not among the variants of this study", name);
    return wanted;
}

/* Notes that the file is not of what its folder says; true if it is. */
static bool is_of(struct dl2_study *study, const json_t *json, const char *path, const char *field,
                  const char *name)
{
    struct dl2_error why = DL2_ERROR_INIT;
    const int status = dl2_result_is_of(json, path, field, name, &why);
    dl2_study_note_broken(study, &why);
    return status == DL2_OK;
}

/* The same of a variant. Results of the original have the dataset's name there, which is known to
 * be wrong only where it is a variant's. */
static bool is_of_variant(struct dl2_study *study, const json_t *json, const char *path,
                          const char *name)
{
    const char *own = dl2_json_get_text(json, "variant", name);
    if (strcmp(name, "raw") != 0 || dl2_study_find(study, own) < study->variant_count)
        return is_of(study, json, path, "variant", name);
    return true;
}

/* Kept; NULL for a broken or missing file, which is noted. */
static json_t *load_results(struct dl2_study *study, const char *path, const char *schema)
{
    struct dl2_error why = DL2_ERROR_INIT;
    json_t *out = NULL;
    dl2_result_load(path, schema, &out, &why);
    dl2_study_note_broken(study, &why);
    return out ? dl2_keep_json(out) : NULL;
}

static struct dl2_study_variant *add_variant(struct dl2_study *study, const char *name)
{
    const size_t index = dl2_study_find(study, name);
    if (index == study->variant_count) {
        study->variants = dl2_keep_more(study->variants, index, sizeof *study->variants);
        study->variants[study->variant_count++] =
            (struct dl2_study_variant){.name = dl2_text_copy(name), .codec = ""};
    }
    return &study->variants[index];
}

/* Is the quality in the name, "jpeg-50", the file's? */
static bool has_its_quality(struct dl2_study *study, const json_t *made, const char *path,
                            const char *name)
{
    const char *codec = dl2_json_get_text(made, "codec", "");
    const size_t length = strlen(codec);
    char *end;
    if (!length || strncmp(name, codec, length) != 0 || name[length] != '-')
        return true;
    const long named = strtol(name + length + 1, &end, 10);
    if (end == name + length + 1 || (*end && *end != '@') ||
        !json_is_integer(json_object_get(made, "quality")))
        return true;
    return is_of(study, made, path, "quality", dl2_text("%ld", named));
}

/* A variant that lacks images is left out. */
static void add_unfinished(struct dl2_study *study, const json_t *made, const char *path)
{
    const json_t *limit = json_object_get(made, "time_limit");
    if (!limit) {
        dl2_words_add(&study->unfinished, path);
        return;
    }
    const char *late =
        dl2_text("%s was not encoded within %g s: %lld of %lld images",
                 dl2_json_get_text(made, "variant", ""), dl2_json_get_real(limit, "seconds", 0),
                 (long long)dl2_json_get_integer(made, "images", 0),
                 (long long)dl2_json_get_integer(limit, "images", 0));
    dl2_words_add(&study->late, late);
    dl2_words_add(&study->unfinished, dl2_text("%s: %s", path, late));
}

static bool take_made(void *context, const char *folder, const char *const *names, size_t depth)
{
    const struct collecting *into = context;
    struct dl2_study *study = into->study;
    const char *name = names[depth];
    if (!dl2_is_folder(folder) || !is_wanted(into, name))
        return false;
    const char *path = dl2_text("%s/dl2-variant.json", folder);
    json_t *made = load_results(study, path, "dl2-variant/1");
    if (!made || !is_of(study, made, path, "variant", name) ||
        !has_its_quality(study, made, path, name))
        return false;
    if (json_is_false(json_object_get(made, "complete"))) {
        add_unfinished(study, made, path);
        return false;
    }
    struct dl2_study_variant *variant = add_variant(study, name);
    struct stat info;
    variant->made = made;
    variant->made_ns = stat(path, &info) == 0 ? dl2_mtime_ns(&info) : 0;
    variant->list_path = dl2_text("%s/dl2-variant.jsonl", folder);
    add_failures(study, "transcode", name, json_object_get(made, "failed"), "path", NULL);
    return false;
}

/* An entry of dl2-quality/1, and whatever it says is amiss. */
static void add_scored(const struct collecting *into, const char *path, const char *name,
                       json_t *entry)
{
    static const struct {
        const char *list, *why;
    } faults[] = {{"missing", "not in the variant"},
                  {"extra", "not in the original"},
                  {"mismatched", NULL},
                  {"failed", NULL}};
    struct dl2_study *study = into->study;
    if (!is_wanted(into, name))
        return;
    struct dl2_study_variant *variant = add_variant(study, name);
    variant->scored = entry;
    variant->scored_path = dl2_text_copy(path);
    const char *unopened = dl2_json_get_text(entry, "error", NULL);
    if (unopened)
        dl2_study_add_failure(study, "quality", name, "not scored", unopened);
    for (size_t i = 0; !unopened && i < sizeof faults / sizeof *faults; i++)
        add_failures(study, "quality", name, json_object_get(entry, faults[i].list), "key",
                     faults[i].why);
}

/* "jpeg-50" of "jpeg-50.json"; false for another file. */
static bool name_results(const char *file, char out[256])
{
    snprintf(out, 256, "%.*s", (int)dl2_path_stem_length(file), file);
    return strcmp(dl2_path_extension(file), "json") == 0;
}

static bool take_scored(void *context, const char *path, const char *const *names, size_t depth)
{
    const struct collecting *into = context;
    struct dl2_study *study = into->study;
    char own[256];
    if (!name_results(names[depth], own))
        return false;
    json_t *quality = load_results(study, path, "dl2-quality/1"), *entry;
    const json_t *entries = json_object_get(quality, "variants");
    size_t i;
    if (!json_object_get(study->quality, "definitions"))
        study->quality = quality;
    json_array_foreach(entries, i, entry)
    {
        /* A file of one variant is called as the variant is. */
        const char *name =
            json_array_size(entries) == 1 ? own : dl2_json_get_text(entry, "variant", own);
        json_object_del(entry, "per_image");
        if (is_of(study, entry, path, "variant", name))
            add_scored(into, path, name, entry);
    }
    return false;
}

static bool take_loaded(void *context, const char *path, const char *const *names, size_t depth)
{
    const struct collecting *into = context;
    struct dl2_study *study = into->study;
    char name[256];
    if (!name_results(names[depth], name) || !is_wanted(into, name))
        return false;
    json_t *loaded = load_results(study, path, "dl2-load/1");
    if (loaded && is_of_variant(study, loaded, path, name)) {
        add_variant(study, name)->loaded = loaded;
        add_failures(study, "load", name, json_object_get(loaded, "bad"), "path", NULL);
    }
    return false;
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
static void read_run(struct dl2_study_run *run)
{
    json_t *epochs = json_object_get(run->report, "epochs"), *epoch;
    const json_t *final = json_array_get(json_object_get(run->report, "final"), 0);
    run->train_images = dl2_json_get_real(run->report, "train_images", NAN);
    run->val_images =
        dl2_json_get_real(final, "images", dl2_json_get_real(run->report, "val_images", NAN));
    run->accuracy = dl2_accuracy_of(final);
    /* The top-5 of pixels would say nothing. */
    run->top5 = dl2_accuracy_kind_of(final) == &dl2_accuracy_top1
                    ? dl2_json_get_real(final, "top5", NAN)
                    : NAN;
    run->trainers = most_trainers(run->report);
    run->epochs = json_array_size(epochs);
    run->val_accuracy = dl2_keep(run->epochs, sizeof *run->val_accuracy, "epochs");
    size_t i;
    json_array_foreach(epochs, i, epoch)
    {
        run->val_accuracy[i] = dl2_accuracy_of(json_array_get(json_object_get(epoch, "val"), 0));
        run->seconds += dl2_json_get_real(epoch, "seconds", 0);
    }
}

/* The number of a seed's folder; false for one without, which is noted. */
static bool read_seed(struct dl2_study *study, const char *path, const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (isdigit((unsigned char)*text) && !*end && !errno && (*text != '0' || !text[1]))
        return true;
    dl2_words_add(&study->broken,
                  dl2_text("%s: expected in a folder seed-NUMBER, such as seed-1", path));
    return false;
}

/* "mAP", "loss in nats, of which less is better" */
static const char *name_kind(const struct dl2_accuracy_kind *kind)
{
    const bool shows_unit = kind->is_foreign && *kind->unit;
    return dl2_text("%s%s%s%s", kind->name, shows_unit ? " in " : "", shows_unit ? kind->unit : "",
                    kind->is_lower_better ? ", of which less is better" : "");
}

static void add_run(const struct collecting *into, const char *path, const char *name,
                    const char *arch, const char *seed, bool wanted)
{
    struct dl2_study *study = into->study;
    uint64_t number;
    const char *of = dl2_text("%s, %s, seed %s", name, arch, seed);
    struct stat info;
    if (stat(path, &info) != 0)
        return;
    if (!wanted) { /* only named, so that it need not be whole */
        dl2_study_leave_out(study, "%s: not among the trainings of this study", of);
        return;
    }
    json_t *report = S_ISREG(info.st_mode) && read_seed(study, path, seed, &number)
                         ? load_results(study, path, "dl2-experiment/1")
                         : NULL;
    if (!report || !is_of(study, report, path, "arch", arch) ||
        !is_of(study, report, path, "seed", seed) ||
        !(into->selection->is_condition || is_of_variant(study, report, path, name)))
        return;
    if (!json_is_true(json_object_get(report, "completed"))) {
        dl2_words_add(&study->unfinished, dl2_text("%s", path));
        return;
    }
    const struct dl2_study_variant *variant = add_variant(study, name);
    struct dl2_study_run run = {.variant = (size_t)(variant - study->variants),
                                .arch = dl2_text_copy(arch),
                                .seed = number,
                                .path = dl2_text_copy(path),
                                .report = report,
                                .made_ns = dl2_mtime_ns(&info)};
    read_run(&run);
    study->runs = dl2_keep_more(study->runs, study->run_count, sizeof run);
    study->runs[study->run_count++] = run;
    const json_t *final = json_array_get(json_object_get(report, "final"), 0);
    const struct dl2_accuracy_kind *own = dl2_accuracy_kind_of(final);
    const bool as_it_is = json_is_true(json_object_get(report, "inference"));
    if (study->run_count == 1) {
        study->accuracy = own;
        study->as_it_is = as_it_is;
    }
    if (as_it_is != study->as_it_is) {
        study->run_count--;
        dl2_study_leave_out(study,
                            as_it_is
                                ? "%s: a network as it is, where those before it were trained"
                                : "%s: trained, where those before it are networks as they are",
                            of);
        return;
    }
    if (!dl2_accuracy_kinds_equal(own, study->accuracy)) {
        study->run_count--;
        dl2_study_leave_out(study, "%s: its accuracy is %s, that of the trainings before it %s", of,
                            name_kind(own), name_kind(study->accuracy));
        return;
    }
    if (!isfinite(run.accuracy))
        dl2_words_add(&study->broken, dl2_text("%s: it has no final accuracy", path));
    if (dl2_study_find_arch(study, arch) == study->arch_count) {
        study->archs = dl2_keep_more(study->archs, study->arch_count, sizeof *study->archs);
        study->archs[study->arch_count++] = run.arch;
    }
    add_failures(study, "train", of, json_object_get(report, "bad"), "path", NULL);
}

/* Variants, networks and seeds. */
static bool take_trained(void *context, const char *path, const char *const *names, size_t depth)
{
    const struct collecting *into = context;
    const char *report = dl2_text("%s/experiment_report.json", path);
    if (depth == 0 && !is_wanted(into, names[0]))
        return false;
    if (depth == 2 && strncmp(names[2], "seed-", 5) == 0)
        add_run(into, report, names[0], names[1], names[2] + 5,
                is_listed(into->selection->trainings,
                          dl2_text("%s/%s/%s", names[0], names[1], names[2])));
    else if (dl2_is_file(report))
        dl2_words_add(&into->study->broken,
                      dl2_text("%s: expected as train/VARIANT/NETWORK/seed-NUMBER/%s", report,
                               dl2_path_base(report)));
    return depth < 2;
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
static void read_codec(struct dl2_study_variant *v)
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
    if (raw || strncmp(v->name, v->codec, length) != 0 || !strchr("_@-", v->name[length]) ||
        (quality >= 0 && !at))
        return;
    const char *target = dl2_json_get_text(json_object_get(options, "target"), "of", NULL);
    const char *after = at ? at + strlen(number) : NULL;
    if (target) { /* "jpeg-ssim" of jpeg-ssim0.95 */
        at = strstr(v->name + length, target);
        at = at ? at + strlen(target) : NULL;
        after = at ? strchr(at, '@') : NULL;
    }
    const int before = at ? (int)(at - v->name) : (int)strlen(v->name);
    v->codec = dl2_text("%.*s%s", before, v->name, after ? after : "");
}

static void read_figures(struct dl2_study *study)
{
    const struct dl2_study_variant *any = NULL; /* tells of the original */
    for (size_t i = 0; i < study->variant_count; i++) {
        struct dl2_study_variant *v = &study->variants[i];
        const json_t *from = v->made ? v->made : v->scored;
        read_codec(v);
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
static void sort_all(struct dl2_study *study)
{
    const size_t count = study->variant_count;
    DL2_AUTO_FREE char **before = dl2_room(count + 1, sizeof *before, "variants");
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
}

/* Completes the kind of accuracy: a foreign metric's digits, by the original's values, else by any.
 */
static void complete_kind(struct dl2_study *study)
{
    if (!study->accuracy || (!study->accuracy->is_foreign && !study->as_it_is))
        return;
    struct dl2_accuracy_kind *kind = dl2_keep(1, sizeof *kind, "a metric");
    double most = 0;
    *kind = *study->accuracy;
    for (size_t i = 0; i < study->run_count; i++) /* the original's come first */
        if (study->runs[i].variant == study->runs[0].variant && isfinite(study->runs[i].accuracy))
            most = fmax(most, fabs(100 * study->runs[i].accuracy));
    kind->digits = kind->is_percent ? 0 : dl2_accuracy_digits(most);
    kind->is_as_it_is = study->as_it_is;
    study->accuracy = kind;
}

/* ---- Predictions */

/* The file `name` beside a run's report. Kept. */
static const char *beside_report(const struct dl2_study_run *run, const char *name)
{
    return dl2_text("%.*s%s", (int)(dl2_path_base(run->path) - run->path), run->path, name);
}

/* The outcomes of another trainer, whose mean is the metric as far as it is rounded. */
static int read_outcomes(const struct dl2_study_run *run, const json_t *final, const char *name,
                         struct dl2_prediction_table *table, struct dl2_error *error)
{
    const char *path = beside_report(run, name);
    const struct dl2_accuracy_kind *kind = dl2_accuracy_kind_of(final);
    const double value = dl2_json_get_real(final, "value", NAN);
    const double images = dl2_json_get_real(final, "images", NAN);
    DL2_TRY(dl2_outcome_table_read(path, table, error));
    const double mean = dl2_outcome_table_mean(table);
    const double scale = kind->is_percent ? fabs(value / dl2_accuracy_of(final)) : 10 * fabs(value);
    if (isfinite(images) && images != (double)table->count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: %zu outcomes, where the report beside it has %.0f images", path,
                             table->count, images);
    if (!(fabs(mean - value) <= 1e-4 * (isfinite(scale) ? scale : 1) + 1e-9))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: the mean of its %zu outcomes is %.6g, where %s is %.6g: they are "
                             "of another training, or the metric is no mean over images",
                             path, table->count, mean, kind->name, value);
    for (size_t i = 0; i < table->count; i++)
        table->values[i] = dl2_accuracy_of_value(final, table->values[i]);
    return DL2_OK;
}

/* A run's predictions for a validation set, or outcomes: those of the training that its report is
 * of. */
static int read_predictions(const struct dl2_study_run *run, const json_t *final,
                            struct dl2_prediction_table *table, struct dl2_error *error)
{
    const char *name = json_string_value(json_object_get(final, "outcomes"));
    if (name)
        return read_outcomes(run, final, name, table, error);
    name = json_string_value(json_object_get(final, "predictions"));
    const double images = dl2_json_get_real(final, "images", run->val_images);
    const double reported = dl2_json_get_real(final, "top1", NAN);
    if (strchr(name, '/') || name[0] == '.')
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: its predictions are to be in \"%s\", "
                             "which is not a file's name",
                             run->path, name);
    const char *path = beside_report(run, name);
    DL2_TRY(dl2_prediction_table_read(path, table, error));
    const double accuracy = (double)table->right / (double)table->known;
    if ((double)table->known != images || fabs(accuracy - reported) > 0.25 / images)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: %zu of %zu images are right, where the report beside it has "
                             "top-1 %.6g of %.0f: it is of another training",
                             path, table->right, table->known, reported, images);
    return DL2_OK;
}

/* A run's outcomes, and its losses (or NULL), in the order of the reference's images. */
static int pair_predictions(const struct dl2_study_run *run,
                            const struct dl2_prediction_table *reference,
                            const struct dl2_prediction_table *own, float **outcome, float **loss,
                            struct dl2_error *error)
{
    DL2_AUTO_FREE size_t *rows = dl2_room(reference->count, sizeof *rows, "predictions");
    int status = own->values ? dl2_outcome_table_same_keys(reference, own, error) : DL2_OK;
    if (status == DL2_OK)
        status = dl2_prediction_table_join(reference, own, rows, error);
    if (status < 0) {
        dl2_error_prefix(error, "%s", run->path);
        return status;
    }
    *outcome = dl2_keep(reference->count, sizeof **outcome, "predictions");
    if (loss && own->values)
        loss = NULL;
    if (loss)
        *loss = dl2_keep(reference->count, sizeof **loss, "predictions");
    for (size_t i = 0; i < reference->count; i++) {
        const bool there = rows[i] < own->count && own->rows[rows[i]].predicted >= 0;
        (*outcome)[i] = !there        ? NAN
                        : own->values ? (float)own->values[rows[i]]
                                      : (float)own->rows[rows[i]].top1;
        if (loss)
            (*loss)[i] = there ? own->rows[rows[i]].loss : NAN;
    }
    return DL2_OK;
}

/* Reads one set's predictions; those that are broken are named. The first table of a network
 * becomes the reference. */
static void collect_set(struct dl2_study *study, const struct dl2_study_run *run, size_t set,
                        struct dl2_prediction_table *reference, float **outcome, float **loss)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    if (!json_is_string(json_object_get(final, "predictions")) &&
        !json_is_string(json_object_get(final, "outcomes")))
        return;
    struct dl2_error why = DL2_ERROR_INIT;
    struct dl2_prediction_table table = {0};
    const bool first = !reference->count;
    int own = read_predictions(run, final, &table, &why);
    if (own == DL2_OK)
        own = pair_predictions(run, first ? &table : reference, &table, outcome, loss, &why);
    if (own == DL2_OK && first) {
        *reference = table;
        dl2_keep_block(table.rows);
    } else {
        dl2_prediction_table_free(&table);
    }
    dl2_study_note_broken(study, &why);
}

/* -- Resamples -- */

static double correlation(const double *a, const double *b, size_t count)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        x += a[i] / (double)count;
        y += b[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        xx += (a[i] - x) * (a[i] - x);
        yy += (b[i] - y) * (b[i] - y);
        xy += (a[i] - x) * (b[i] - y);
    }
    return xy / sqrt(xx * yy);
}

/* Values of networks on the same resamples rise and fall together, with the images that are easy.
 * On 100 other resamples chance correlates them as much in 2 of 10,000 cases. */
#define LEAST_ALIKE 0.35

/* Why they are not those of the same images as `first`, which may be NULL; NULL: they may be. */
static const char *find_fault(const double *values, size_t count, const struct dl2_study_run *first)
{
    bool same = true;
    for (size_t i = 1; i < count; i++)
        same &= values[i] == values[0];
    if (same)
        return dl2_text("all %zu resamples have one value: expected the metric of each", count);
    if (!first)
        return NULL;
    if (first->resample_count != count)
        return dl2_text("%zu resamples, where %s has %zu: expected as many", count, first->path,
                        first->resample_count);
    return correlation(values, first->resamples, count) < LEAST_ALIKE
               ? dl2_text("its values on resamples do not go with those of %s: expected the same "
                          "resamples, of images sorted by key",
                          first->path)
               : NULL;
}

/* A set's values on resamples, kept; NULL: it has none, or they are broken, which is noted. */
static double *read_resamples(struct dl2_study *study, const struct dl2_study_run *run, size_t set,
                              const struct dl2_study_run *first, size_t *count)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set), *value;
    const json_t *list = json_object_get(final, "resamples");
    size_t i;
    if (!json_is_array(list))
        return NULL;
    *count = json_array_size(list);
    double *values = dl2_keep(*count, sizeof *values, "resamples");
    json_array_foreach(list, i, value) values[i] =
        dl2_accuracy_of_value(final, json_number_value(value));
    const char *fault = find_fault(values, *count, first);
    if (fault)
        dl2_words_add(&study->broken, dl2_text("%s: %s", run->path, fault));
    return fault ? NULL : values;
}

/* The first run of a network that has resamples; NULL: none. */
static const struct dl2_study_run *first_resampled(const struct dl2_study *study, const char *arch)
{
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].resamples && strcmp(study->runs[i].arch, arch) == 0)
            return &study->runs[i];
    return NULL;
}

/* The set of validation images of the trainings on the original; false if there are none. */
static bool find_original_set(const struct dl2_study *study, const char *arch,
                              struct dl2_val_set *set)
{
    const struct dl2_runs runs = dl2_study_runs(study, dl2_study_find(study, "raw"), arch);
    if (runs.count)
        *set = dl2_study_val_set(runs.at, 0);
    return runs.count > 0;
}

/* Reads the predictions of a network's runs, on their own variant's images and on the original's.
 * Runs without, or whose are broken, have none. */
static void collect_predictions(struct dl2_study *study, size_t number)
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
        collect_set(study, run, 0, reference, &run->outcome, &run->loss);
        run->resamples =
            read_resamples(study, run, 0, first_resampled(study, arch), &run->resample_count);
        for (size_t set = 1; known && run->variant != raw && set < json_array_size(final); set++) {
            const struct dl2_val_set own = dl2_study_val_set(run, set);
            if (!dl2_val_set_equal(&own, &original))
                continue;
            run->original_accuracy = dl2_accuracy_of(json_array_get(final, set));
            run->on_original = isfinite(run->original_accuracy);
            collect_set(study, run, set, reference, &run->original_outcome, NULL);
            size_t ignored;
            run->original_resamples =
                read_resamples(study, run, set, first_resampled(study, arch), &ignored);
            break;
        }
        run->images = reference->count;
        if (run->outcome && isnan(run->val_images))
            run->val_images = (double)reference->count;
    }
}

/* ---- Evaluations */

/* The variant that a validation set is of, or study->variant_count. A dataset may be called like
 * one of its variants: then it comes first, as dl2-study has it. */
static size_t variant_of_set(const struct dl2_study *study, const char *name, const char *original,
                             const double *accuracy)
{
    const size_t raw = dl2_study_find(study, "raw");
    if (original && strcmp(name, original) == 0 && raw < study->variant_count &&
        isnan(accuracy[raw]))
        return raw;
    return strcmp(name, "raw") ? dl2_study_find(study, name) : study->variant_count;
}

/* Reads the evaluation beside a training, if there is one. */
static void read_evaluation(struct dl2_study *study, struct dl2_study_run *run,
                            const char *original)
{
    const char *path = dl2_text("%.*sevaluation/evaluation_report.json",
                                (int)(dl2_path_base(run->path) - run->path), run->path);
    struct stat info;
    struct dl2_error why = DL2_ERROR_INIT;
    json_auto_t *report = NULL;
    json_t *set;
    size_t i;
    if (stat(path, &info) != 0)
        return;
    if (dl2_mtime_ns(&info) < run->made_ns) { /* of the training that was here before */
        dl2_study_leave_out(study, "%s: it is older than the training beside it; make matrix again",
                            path);
        return;
    }
    double *accuracy = dl2_keep(study->variant_count, sizeof *accuracy, "variants");
    for (size_t v = 0; v < study->variant_count; v++)
        accuracy[v] = NAN;
    dl2_result_load(path, "dl2-evaluation/1", &report, &why);
    dl2_study_note_broken(study, &why);
    if (!report || !is_of(study, report, path, "arch", run->arch) ||
        !is_of(study, report, path, "seed", dl2_text("%llu", (unsigned long long)run->seed)) ||
        !is_of_variant(study, report, path, study->variants[run->variant].name))
        return;
    json_array_foreach(json_object_get(report, "val"), i, set)
    {
        const size_t v =
            variant_of_set(study, dl2_json_get_text(set, "name", ""), original, accuracy);
        const double own = dl2_accuracy_of(set);
        if (v < study->variant_count && own >= 0 && own <= 1) {
            accuracy[v] = own;
            run->evaluated = accuracy;
        }
    }
}

static void collect_evaluations(struct dl2_study *study)
{
    struct dl2_val_set original = {NULL, NULL};
    for (size_t a = 0; a < study->arch_count && !original.name; a++)
        find_original_set(study, study->archs[a], &original);
    for (size_t i = 0; i < study->run_count; i++)
        read_evaluation(study, &study->runs[i], original.name);
}

/* ---- Rounds */

/* Without measurements of variants that are not wanted, and those that cannot be compared. */
static void collect_rounds(const char *folder, const struct collecting *into)
{
    struct dl2_study *study = into->study;
    study->rounds = dl2_rounds_read(dl2_text("%s/throughput", folder));
    for (size_t i = 0; i < study->rounds.broken.count; i++)
        dl2_words_add(&study->broken, dl2_text("%s", study->rounds.broken.at[i]));
    for (size_t i = study->rounds.count; i-- > 0;)
        if (!is_wanted(into, study->rounds.items[i].variant) ||
            !dl2_study_round_is_comparable(study, i))
            dl2_rounds_drop(&study->rounds, i);
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
        dl2_visit *take;
    } parts[] = {{"variants", take_made},
                 {"quality", take_scored},
                 {"load", take_loaded},
                 {"train", take_trained}};
    struct collecting into = {study, selection};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        dl2_walk(dl2_text("%s/%s", folder, parts[i].name), parts[i].take, &into);
    if (!study->variant_count && !study->arch_count && !study->broken.count &&
        !study->unfinished.count && !study->left_out.count && !dl2_search_results_exist(folder))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s holds no results: neither variants/, quality/, load/ nor train/ "
                             "has any; name the folder that a study wrote (its OUT)",
                             folder);
    if (study->variant_count) /* the original is always there to be compared with */
        add_variant(study, "raw");
    dl2_study_keep_scores_of_today(study);
    read_figures(study);
    sort_all(study);
    complete_kind(study);
    dl2_study_leave_out_copies(study);
    dl2_study_keep_comparable_trainings(study);
    dl2_study_mark_diverged(study);
    if (!selection->is_condition)
        dl2_study_name_missing(study, folder);
    study->images = dl2_keep(study->arch_count, sizeof *study->images, "networks");
    for (size_t a = 0; a < study->arch_count; a++)
        collect_predictions(study, a);
    collect_evaluations(study);
    dl2_study_keep_comparable_loading(study);
    collect_rounds(folder, &into);
    return DL2_OK;
}
