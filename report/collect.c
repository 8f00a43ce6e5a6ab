/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/collect.h"

#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/quote.h"
#include "report/evaluation.h"
#include "report/search_results.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Makes room for one more item in a list that doubles at powers of two. */
static int grow(void **items, size_t count, size_t size, struct dl2_error *error)
{
    if (count & (count - 1))
        return DL2_OK;
    void *grown = dl2_realloc(*items, count ? 2 * count : 1, size);
    if (!grown)
        return dl2_error_memory(error, "the study's results");
    *items = grown;
    return DL2_OK;
}

static int copy_text(const char *text, char **out, struct dl2_error *error)
{
    *out = strdup(text);
    return *out ? DL2_OK : dl2_error_memory(error, "'%s'", text);
}

static int add_text(char ***list, size_t *count, const char *text, struct dl2_error *error)
{
    DL2_TRY(grow((void **)list, *count, sizeof **list, error));
    DL2_TRY(copy_text(text, &(*list)[*count], error));
    ++*count;
    return DL2_OK;
}

static void free_texts(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

static int add_failure(struct dl2_study *study, const char *stage, const char *name,
                       const char *what, const char *why, struct dl2_error *error)
{
    DL2_TRY(grow((void **)&study->failures, study->failure_count, sizeof *study->failures, error));
    struct dl2_study_failure *failure = &study->failures[study->failure_count];
    *failure = (struct dl2_study_failure){NULL, NULL};
    study->failure_count++;
    char text[1536];
    snprintf(text, sizeof text, "%s %s", stage, name);
    DL2_TRY(copy_text(text, &failure->stage, error));
    snprintf(text, sizeof text, "%s%s%s", what, why && *why ? ": " : "", why ? why : "");
    return copy_text(text, &failure->what, error);
}

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
        DL2_TRY(
            add_failure(study, stage, name, what, dl2_json_get_text(item, "error", why), error));
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
typedef int walk_visit(struct walk *walk, const char *path, const char *name,
                       struct dl2_error *error);

/* Visits what lies in `folder`, by name; nothing where there's no such folder. */
static int walk_folder(struct walk *walk, const char *folder, walk_visit *visit,
                       struct dl2_error *error)
{
    char path[4096], **names;
    DL2_TRY(dl2_list_names(folder, &names, error));
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && names[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        status = visit(walk, path, names[i], error);
    }
    dl2_free_list(names);
    return status;
}

static int leave_out(struct dl2_study *study, struct dl2_error *error, const char *format, ...)
    DL2_PRINTF(3, 4);
static int leave_out(struct dl2_study *study, struct dl2_error *error, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < study->left_out_count; i++)
        if (strcmp(study->left_out[i], text) == 0)
            return DL2_OK;
    return add_text(&study->left_out, &study->left_out_count, text, error);
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
                   : leave_out(study, error, "%s: not among the variants of this study", name);
}

/* *out is NULL for a broken file, which is noted, or a missing one, which is noted if `must`. */
static int load_results(struct dl2_study *study, const char *path, const char *schema, bool must,
                        json_t **out, struct dl2_error *error)
{
    *out = NULL;
    if (!must && !dl2_is_file(path))
        return DL2_OK;
    struct dl2_error why = DL2_ERROR_INIT;
    int status = dl2_json_load(path, schema, out, &why);
    if (status == DL2_ERR_MEMORY)
        return dl2_error_set(error, status, "%s", why.message);
    if (status < 0)
        return add_text(&study->broken, &study->broken_count, why.message, error);
    return DL2_OK;
}

static int add_variant(struct dl2_study *study, const char *name, struct dl2_study_variant **out,
                       struct dl2_error *error)
{
    size_t index = dl2_study_find(study, name);
    if (index == study->variant_count) {
        DL2_TRY(grow((void **)&study->variants, index, sizeof *study->variants, error));
        study->variants[index] = (struct dl2_study_variant){.codec = ""};
        DL2_TRY(copy_text(name, &study->variants[index].name, error));
        study->variant_count++;
    }
    *out = &study->variants[index];
    return DL2_OK;
}

static int visit_made(struct walk *walk, const char *folder, const char *name,
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
    json_t *made;
    struct dl2_study_variant *variant;
    DL2_TRY(load_results(study, path, "dl2-variant/1", true, &made, error));
    if (!made)
        return DL2_OK;
    const int status = add_variant(study, name, &variant, error);
    if (status < 0) {
        json_decref(made);
        return status;
    }
    variant->made = made;
    struct stat info;
    variant->made_ns = stat(path, &info) == 0 ? dl2_mtime_ns(&info) : 0;
    if (json_is_false(json_object_get(made, "complete")))
        DL2_TRY(add_text(&study->unfinished, &study->unfinished_count, path, error));
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
    DL2_TRY(copy_text(path, &variant->scored_path, error));
    const char *unopened = dl2_json_get_text(entry, "error", NULL);
    if (unopened)
        return add_failure(study, "quality", name, "not scored", unopened, error);
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

static int visit_scored(struct walk *walk, const char *path, const char *file,
                        struct dl2_error *error)
{
    struct dl2_study *study = walk->study;
    char own[256];
    if (!name_results(file, own))
        return DL2_OK;
    json_t *quality;
    DL2_TRY(load_results(study, path, "dl2-quality/1", true, &quality, error));
    if (!study->definitions)
        study->definitions = json_incref(json_object_get(quality, "definitions"));
    json_t *entries = json_object_get(quality, "variants"), *entry;
    int status = DL2_OK;
    size_t i;
    json_array_foreach(entries, i, entry)
    {
        /* A file of one variant is called as the variant is. */
        const char *name =
            json_array_size(entries) == 1 ? own : dl2_json_get_text(entry, "variant", own);
        if ((status = add_scored(study, walk->selection, path, name, entry, error)) < 0)
            break;
    }
    json_decref(quality);
    return status;
}

static int visit_loaded(struct walk *walk, const char *path, const char *file,
                        struct dl2_error *error)
{
    struct dl2_study *study = walk->study;
    char name[256];
    bool wanted = name_results(file, name);
    if (wanted)
        DL2_TRY(is_wanted(study, walk->selection, name, &wanted, error));
    if (!wanted)
        return DL2_OK;
    json_t *loaded;
    struct dl2_study_variant *variant;
    DL2_TRY(load_results(study, path, "dl2-load/1", true, &loaded, error));
    if (!loaded)
        return DL2_OK;
    const int status = add_variant(study, name, &variant, error);
    if (status < 0) {
        json_decref(loaded);
        return status;
    }
    json_decref(variant->loaded);
    variant->loaded = loaded;
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
    run->top1 = dl2_json_get_real(final, "top1", NAN);
    run->top5 = dl2_json_get_real(final, "top5", NAN);
    run->trainers = most_trainers(run->report);
    run->epochs = count;
    if (!count)
        return DL2_OK;
    run->val_top1 = dl2_calloc(count, sizeof *run->val_top1);
    if (!run->val_top1)
        return dl2_error_memory(error, "%zu epochs", count);
    size_t i;
    json_array_foreach(epochs, i, epoch)
    {
        run->val_top1[i] =
            dl2_json_get_real(json_array_get(json_object_get(epoch, "val"), 0), "top1", NAN);
        run->seconds += dl2_json_get_real(epoch, "seconds", 0);
    }
    return DL2_OK;
}

static int add_run(struct dl2_study *study, const char *path, const char *name, const char *arch,
                   const char *seed, bool wanted, struct dl2_error *error)
{
    json_t *report;
    struct stat info;
    if (stat(path, &info) != 0)
        return DL2_OK;
    if (!wanted) /* only named, so that it need not be whole */
        return leave_out(study, error, "%s, %s, seed %s: not among the trainings of this study",
                         name, arch, seed);
    DL2_TRY(load_results(study, path, "dl2-experiment/1", false, &report, error));
    if (!report)
        return DL2_OK;
    if (!json_is_true(json_object_get(report, "completed"))) {
        json_decref(report);
        return add_text(&study->unfinished, &study->unfinished_count, path, error);
    }
    struct dl2_study_variant *variant;
    int status = add_variant(study, name, &variant, error);
    if (status == DL2_OK)
        status = grow((void **)&study->runs, study->run_count, sizeof *study->runs, error);
    if (status < 0) {
        json_decref(report);
        return status;
    }
    struct dl2_study_run *run = &study->runs[study->run_count++];
    *run = (struct dl2_study_run){.variant = (size_t)(variant - study->variants), .report = report};
    run->seed = strtoull(seed, NULL, 10);
    run->made_ns = dl2_mtime_ns(&info);
    DL2_TRY(copy_text(arch, &run->arch, error));
    DL2_TRY(copy_text(path, &run->path, error));
    DL2_TRY(read_run(run, error));
    if (!isfinite(run->top1)) {
        char text[4700];
        snprintf(text, sizeof text, "%s: it has no final top-1 accuracy", path);
        DL2_TRY(add_text(&study->broken, &study->broken_count, text, error));
    }
    size_t known = 0;
    while (known < study->arch_count && strcmp(study->archs[known], arch) != 0)
        known++;
    if (known == study->arch_count)
        DL2_TRY(add_text(&study->archs, &study->arch_count, arch, error));
    char of[512];
    snprintf(of, sizeof of, "%s, %s, seed %s", name, arch, seed);
    return add_failures(study, "train", of, json_object_get(report, "bad"), "path", NULL, error);
}

static int visit_seed(struct walk *walk, const char *folder, const char *name,
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

static int visit_arch(struct walk *walk, const char *folder, const char *name,
                      struct dl2_error *error)
{
    walk->arch = name;
    return walk_folder(walk, folder, visit_seed, error);
}

static int visit_trained(struct walk *walk, const char *folder, const char *name,
                         struct dl2_error *error)
{
    bool wanted;
    DL2_TRY(is_wanted(walk->study, walk->selection, name, &wanted, error));
    walk->variant = name;
    return wanted ? walk_folder(walk, folder, visit_arch, error) : DL2_OK;
}

/* A metric's mean over the images, or NAN. */
static double mean_score(const struct dl2_study_variant *variant, const char *name)
{
    const json_t *metrics = json_object_get(variant->scored, "metrics");
    return dl2_json_get_real(json_object_get(metrics, name), "mean", NAN);
}

static void read_figures(struct dl2_study *study)
{
    const struct dl2_study_variant *any = NULL; /* tells of the original */
    for (size_t i = 0; i < study->variant_count; i++) {
        struct dl2_study_variant *v = &study->variants[i];
        const bool raw = strcmp(v->name, "raw") == 0;
        const json_t *from = v->made ? v->made : v->scored;
        v->codec = raw ? "raw" : dl2_json_get_text(from, "codec", v->name);
        v->quality = (int)dl2_json_get_integer(from, "quality", 0);
        v->images = dl2_json_get_real(from, "images", NAN);
        v->pixels = dl2_json_get_real(from, "pixels", NAN);
        v->bytes = dl2_json_get_real(from, "bytes", NAN);
        v->bits_per_pixel = dl2_json_get_real(from, "bits_per_pixel", 8 * v->bytes / v->pixels);
        v->ratio =
            v->bytes / dl2_json_get_real(v->made, "source_bytes",
                                         dl2_json_get_real(v->scored, "reference_bytes", NAN));
        v->encode_seconds = dl2_json_get_real(v->made, "encode_cpu_seconds", NAN);
        v->psnr_rgb = mean_score(v, "psnr_rgb");
        v->ssim = mean_score(v, "ssim");
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
static int sort_all(struct dl2_study *study, struct dl2_error *error)
{
    const size_t count = study->variant_count;
    char **before = dl2_calloc(count, sizeof *before);
    if (count && !before)
        return dl2_error_memory(error, "%zu variants", count);
    for (size_t i = 0; i < count; i++)
        before[i] = study->variants[i].name;
    if (count)
        qsort(study->variants, count, sizeof *study->variants, compare_variants);
    for (size_t i = 0; i < study->run_count; i++)
        study->runs[i].variant = dl2_study_find(study, before[study->runs[i].variant]);
    free(before);
    if (study->run_count)
        qsort(study->runs, study->run_count, sizeof *study->runs, compare_runs);
    if (study->arch_count)
        qsort(study->archs, study->arch_count, sizeof *study->archs, dl2_compare_texts);
    return DL2_OK;
}

/* ---- What can be compared with what */

/* The value as people write it: a whole number without ".0". To free. */
static char *show_value(const json_t *value)
{
    char *text = NULL;
    if (!json_is_real(value))
        return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    return asprintf(&text, "%.6g", json_real_value(value)) < 0 ? NULL : text;
}

/* "epochs is 2, not 6", of each field in which the two differ; one that either lacks is no
 * difference. */
static void describe_difference(const json_t *own, const json_t *reference, char *out, size_t size)
{
    const char *key;
    json_t *value;
    out[0] = '\0';
    json_object_foreach((json_t *)own, key, value)
    {
        const json_t *other = json_object_get(reference, key);
        const size_t used = strlen(out);
        if (!other || json_equal(value, other))
            continue;
        char *a = show_value(value), *b = show_value(other);
        snprintf(out + used, size - used, "%s%s is %.100s, not %.100s", used ? "; " : "", key,
                 a ? a : "?", b ? b : "?");
        free(a);
        free(b);
    }
}

/*
 * The settings that must be equal in trainings that are compared: the report's own list of settings
 * that bear on accuracy. Reports made before that list was added have none: there it is the
 * arguments without those that had no bearing then, the lengths of several stages, and the number
 * of classes. A new reference.
 */
static json_t *settings_of(const struct dl2_study_run *run)
{
    static const char *const without_bearing[] = {
        "data",           "stages", "val",     "images",     "seed",       "arch",
        "jobs",           "depth",  "on-bad",  "io",         "cache",      "threads",
        "trainers",       "gpus",   "world",   "run-epochs", "checkpoint", "checkpoint-every",
        "validate-every", "resume", "restart", "name",       "out",        "export",
        "skip-validation"};
    json_t *comparable = json_object_get(run->report, "comparable");
    if (json_is_object(comparable))
        return json_incref(comparable);
    json_t *arguments = json_object_get(run->report, "arguments");
    json_t *settings = json_is_object(arguments) ? json_copy(arguments) : json_object();
    for (size_t i = 0; i < sizeof without_bearing / sizeof *without_bearing; i++)
        json_object_del(settings, without_bearing[i]);
    json_t *lengths = json_array(), *stage; /* of a run in several stages, else null */
    size_t i;
    json_array_foreach(json_object_get(arguments, "stages"), i, stage)
        json_array_append(lengths, json_object_get(stage, "epochs"));
    if (json_array_size(lengths) > 1)
        json_object_set(settings, "stages", lengths);
    json_decref(lengths);
    json_object_set(settings, "classes", json_object_get(run->report, "classes"));
    return settings;
}

static void free_run(struct dl2_study_run *run)
{
    free(run->arch);
    free(run->path);
    free(run->val_top1);
    free(run->correct);
    free(run->evaluated);
    json_decref(run->report);
}

/* ---- Variants that were made alike */

/* What a variant was made from, or with: what variants that are compared agree on. A new reference;
 * NULL: nothing to compare by. */
static json_t *origin_of(const struct dl2_study_variant *variant, bool settings)
{
    if (!variant->made)
        return NULL;
    if (settings)
        return json_incref(json_object_get(variant->made, "options"));
    /* An image that failed is missing in the sums. */
    if (json_array_size(json_object_get(variant->made, "failed")))
        return NULL;
    json_t *origin = json_object();
    json_object_set(origin, "images", json_object_get(variant->made, "images"));
    json_object_set(origin, "source_bytes", json_object_get(variant->made, "source_bytes"));
    return origin;
}

static void remove_run(struct dl2_study *study, size_t index)
{
    free_run(&study->runs[index]);
    memmove(&study->runs[index], &study->runs[index + 1],
            (study->run_count - index - 1) * sizeof *study->runs);
    study->run_count--;
}

/* Leaves out the trainings on a variant, if there are any. */
static int leave_out_variant(struct dl2_study *study, size_t variant, const char *how,
                             const char *difference, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = study->run_count; i-- > 0;)
        if (study->runs[i].variant == variant) {
            remove_run(study, i);
            any = true;
        }
    return any ? leave_out(study, error, "trainings on %s: it was made %s, %s",
                           study->variants[variant].name, how, difference)
               : DL2_OK;
}

/* The variant whose origin most of its peers share; of equally many, the newest. */
static size_t find_usual(const struct dl2_study *study, json_t *const *origins, const char *codec)
{
    size_t usual = study->variant_count, most = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        size_t same = 0;
        char difference[8];
        if (!origins[v] || (codec && strcmp(study->variants[v].codec, codec) != 0))
            continue;
        for (size_t w = 0; w < study->variant_count; w++) {
            if (!origins[w] || (codec && strcmp(study->variants[w].codec, codec) != 0))
                continue;
            describe_difference(origins[w], origins[v], difference, sizeof difference);
            same += !difference[0];
        }
        if (same > most ||
            (same == most && study->variants[v].made_ns > study->variants[usual].made_ns)) {
            usual = v;
            most = same;
        }
    }
    return usual;
}

/*
 * Leaves out trainings on variants that were made from other images than the others (with other
 * `settings`: than the others of their codec).
 */
static int compare_variants_made(struct dl2_study *study, bool settings, struct dl2_error *error)
{
    const size_t count = study->variant_count;
    json_t **origins = dl2_calloc(count + 1, sizeof *origins);
    if (!origins)
        return dl2_error_memory(error, "%zu variants", count);
    for (size_t v = 0; v < count; v++)
        origins[v] = origin_of(&study->variants[v], settings);
    int status = DL2_OK;
    for (size_t v = 0; status == DL2_OK && v < count; v++) {
        const size_t usual = find_usual(study, origins, settings ? study->variants[v].codec : NULL);
        char difference[1024] = "";
        if (origins[v] && usual < count)
            describe_difference(origins[v], origins[usual], difference, sizeof difference);
        if (difference[0])
            status = leave_out_variant(study, v,
                                       settings ? "with other settings than others of its codec"
                                                : "from other images than other variants",
                                       difference, error);
    }
    for (size_t v = 0; v < count; v++)
        json_decref(origins[v]);
    free(origins);
    return status;
}

/* Leaves out trainings on files that the variant had before: the newest training has today's. */
static int compare_files(struct dl2_study *study, struct dl2_error *error)
{
    for (size_t i = study->run_count; i-- > 0;) {
        const struct dl2_study_run *run = &study->runs[i], *newest = run;
        for (size_t k = 0; k < study->run_count; k++) {
            const struct dl2_study_run *other = &study->runs[k];
            if (other->variant == run->variant && strcmp(other->arch, run->arch) == 0 &&
                other->made_ns > newest->made_ns)
                newest = other;
        }
        const double own = dl2_json_get_real(run->report, "train_bytes", NAN);
        const double today = dl2_json_get_real(newest->report, "train_bytes", NAN);
        if (!(own < today || own > today))
            continue;
        DL2_TRY(leave_out(study, error,
                          "%s, %s, seed %llu: trained on other files than the variant's newest "
                          "training, train_bytes is %.0f, not %.0f",
                          study->variants[run->variant].name, run->arch,
                          (unsigned long long)run->seed, own, today));
        remove_run(study, i);
    }
    return DL2_OK;
}

/* Runs of a network that have the same settings. */
struct group {
    size_t first, of_raw, all;
    int64_t made_ns; /* the newest */
};

static bool is_better(const struct group *a, const struct group *b)
{
    if (a->of_raw != b->of_raw)
        return a->of_raw > b->of_raw;
    return a->all != b->all ? a->all > b->all : a->made_ns > b->made_ns;
}

/*
 * The run that the others of a network are compared with: the first of those with the settings that
 * most runs of the original have; where that is undecided, that most runs have; then the newest.
 */
static int find_reference(const struct dl2_study *study, const char *arch, json_t *const *settings,
                          size_t *reference, struct dl2_error *error)
{
    const size_t raw = dl2_study_find(study, "raw");
    struct group *groups = dl2_calloc(study->run_count + 1, sizeof *groups);
    size_t count = 0, best = 0;
    if (!groups)
        return dl2_error_memory(error, "%zu trainings", study->run_count);
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (strcmp(run->arch, arch) != 0)
            continue;
        size_t g = 0;
        for (char difference[8] = "?"; g < count; g++) {
            describe_difference(settings[i], settings[groups[g].first], difference,
                                sizeof difference);
            if (!difference[0])
                break;
        }
        if (g == count)
            groups[count++] = (struct group){.first = i, .made_ns = INT64_MIN};
        groups[g].all++;
        groups[g].of_raw += run->variant == raw;
        groups[g].made_ns = run->made_ns > groups[g].made_ns ? run->made_ns : groups[g].made_ns;
    }
    for (size_t g = 1; g < count; g++)
        if (is_better(&groups[g], &groups[best]))
            best = g;
    *reference = groups[best].first;
    free(groups);
    return DL2_OK;
}

/* Names images that the original has and a variant's training hasn't, and the other way round. */
static int compare_images(struct dl2_study *study, const struct dl2_study_run *run,
                          const struct dl2_study_run *reference, struct dl2_error *error)
{
    if (!(run->train_images != reference->train_images || run->val_images != reference->val_images))
        return DL2_OK;
    if (!isfinite(run->train_images + run->val_images + reference->train_images +
                  reference->val_images))
        return DL2_OK;
    char of[512], what[64], text[256];
    snprintf(of, sizeof of, "%s, %s", study->variants[run->variant].name, run->arch);
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)run->seed);
    snprintf(text, sizeof text,
             "trained on %.0f images and validated on %.0f, where %s has %.0f and %.0f",
             run->train_images, run->val_images,
             strcmp(study->variants[reference->variant].name, "raw")
                 ? study->variants[reference->variant].name
                 : "the original",
             reference->train_images, reference->val_images);
    return add_failure(study, "train", of, what, text, error);
}

/* Leaves out the network's runs that differ from the others in more than data and seed. */
static int compare_trainings(struct dl2_study *study, const char *arch, struct dl2_error *error)
{
    const size_t count = study->run_count;
    json_t **settings = dl2_calloc(count + 1, sizeof *settings);
    if (!settings)
        return dl2_error_memory(error, "%zu trainings", count);
    for (size_t i = 0; i < count; i++)
        settings[i] = settings_of(&study->runs[i]);
    size_t left = 0, reference = 0;
    int status = find_reference(study, arch, settings, &reference, error);
    const struct dl2_study_run kept = study->runs[reference];
    for (size_t i = 0; i < count; i++) {
        struct dl2_study_run *run = &study->runs[i];
        char difference[1024] = "";
        if (status == DL2_OK && strcmp(run->arch, arch) == 0)
            describe_difference(settings[i], settings[reference], difference, sizeof difference);
        if (difference[0]) {
            status = leave_out(study, error,
                               "%s, %s, seed %llu: unlike the trainings that are shown, %s",
                               study->variants[run->variant].name, run->arch,
                               (unsigned long long)run->seed, difference);
            free_run(run);
            continue;
        }
        if (status == DL2_OK && strcmp(run->arch, arch) == 0)
            status = compare_images(study, run, &kept, error);
        study->runs[left++] = *run;
    }
    study->run_count = left;
    for (size_t i = 0; i < count; i++)
        json_decref(settings[i]);
    free(settings);
    return status;
}

/* ---- Predictions */

/* A run's predictions for its first validation set: those of the training that its report is of. */
static int read_predictions(const struct dl2_study_run *run, const char *name,
                            struct dl2_prediction_table *table, struct dl2_error *error)
{
    if (strchr(name, '/') || name[0] == '.')
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: its predictions are to be in \"%s\", "
                             "which is not a file's name",
                             run->path, name);
    char path[4608];
    snprintf(path, sizeof path, "%.*s%s", (int)(dl2_path_base(run->path) - run->path), run->path,
             name);
    DL2_TRY(dl2_prediction_table_read(path, table, error));
    const double top1 = (double)table->right / (double)table->known;
    if ((double)table->known != run->val_images || fabs(top1 - run->top1) > 0.25 / run->val_images)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: %zu of %zu images are right, where the report beside it has "
                             "top-1 %.6g of %.0f: it is of another training",
                             path, table->right, table->known, run->top1, run->val_images);
    return DL2_OK;
}

/* Sets run->correct, in the order of the reference's images. */
static int pair_predictions(struct dl2_study_run *run, const struct dl2_prediction_table *reference,
                            const struct dl2_prediction_table *own, struct dl2_error *error)
{
    size_t *rows = dl2_calloc(reference->count, sizeof *rows);
    uint8_t *correct = dl2_calloc(reference->count, sizeof *correct);
    int status = DL2_OK;
    if (!rows || !correct)
        status = dl2_error_memory(error, "%zu predictions", reference->count);
    if (status == DL2_OK)
        status = dl2_prediction_table_join(reference, own, rows, error);
    if (status < 0) {
        free(rows);
        free(correct);
        dl2_error_prefix(error, "%s", run->path);
        return status;
    }
    for (size_t i = 0; i < reference->count; i++) {
        const bool there = rows[i] < own->count && own->rows[rows[i]].predicted >= 0;
        correct[i] = there ? own->rows[rows[i]].top1 : DL2_STUDY_ABSENT;
    }
    free(rows);
    run->correct = correct;
    run->images = reference->count;
    return DL2_OK;
}

/* Reads the predictions of a network's runs. Runs without, or whose are broken, have none. */
static int collect_predictions(struct dl2_study *study, size_t number, struct dl2_error *error)
{
    const char *arch = study->archs[number];
    struct dl2_prediction_table reference = {0};
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < study->run_count; i++) {
        struct dl2_study_run *run = &study->runs[i];
        const json_t *final = json_array_get(json_object_get(run->report, "final"), 0);
        const char *name = dl2_json_get_text(final, "predictions", NULL);
        if (strcmp(run->arch, arch) != 0 || !name)
            continue;
        struct dl2_error why = DL2_ERROR_INIT;
        struct dl2_prediction_table table = {0};
        int own = read_predictions(run, name, &table, &why);
        if (own == DL2_OK)
            own = pair_predictions(run, reference.count ? &reference : &table, &table, &why);
        if (own == DL2_OK && !reference.count)
            reference = table;
        else
            dl2_prediction_table_free(&table);
        if (own == DL2_ERR_MEMORY)
            status = dl2_error_set(error, own, "%s", why.message);
        else if (own < 0)
            status = add_text(&study->broken, &study->broken_count, why.message, error);
    }
    study->images[number] = reference;
    return status;
}

/* ---- Evaluations */

/* The name that reports have for the original's validation images, or NULL. Borrowed. */
static const char *name_of_original(const struct dl2_study *study)
{
    const size_t raw = dl2_study_find(study, "raw");
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].variant == raw)
            return dl2_json_get_text(
                json_array_get(json_object_get(study->runs[i].report, "final"), 0), "name", NULL);
    return NULL;
}

static int collect_evaluations(struct dl2_study *study, struct dl2_error *error)
{
    const char *original = name_of_original(study);
    for (size_t i = 0; i < study->run_count; i++) {
        struct dl2_study_run *run = &study->runs[i];
        struct dl2_error why = DL2_ERROR_INIT;
        bool found = false;
        run->evaluated = dl2_calloc(study->variant_count, sizeof *run->evaluated);
        if (!run->evaluated)
            return dl2_error_memory(error, "%zu variants", study->variant_count);
        const int status = dl2_evaluation_read(study, run, original, run->evaluated, &found, &why);
        if (status == DL2_ERR_MEMORY)
            return dl2_error_set(error, status, "%s", why.message);
        if (status == DL2_ERR_ARGUMENT) /* of the training that was here before */
            DL2_TRY(leave_out(study, error, "%s", why.message));
        else if (status < 0)
            DL2_TRY(add_text(&study->broken, &study->broken_count, why.message, error));
        if (!found) {
            free(run->evaluated);
            run->evaluated = NULL;
        }
    }
    return DL2_OK;
}

/* ---- Loading */

/* The settings that must be equal in measurements of loading that are compared. A new reference. */
static json_t *conditions_of(const json_t *loaded)
{
    static const char *const fields[] = {"mode", "batch", "image_size", "workers", "config"};
    json_t *conditions = json_object(), *machine = json_object_get(loaded, "machine");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (json_object_get(loaded, fields[i]))
            json_object_set(conditions, fields[i], json_object_get(loaded, fields[i]));
    if (json_object_get(machine, "cpu"))
        json_object_set(conditions, "cpu", json_object_get(machine, "cpu"));
    if (json_object_get(machine, "cores"))
        json_object_set(conditions, "cores", json_object_get(machine, "cores"));
    return conditions;
}

/* Leaves out rates of loading that were not measured as the original's was. */
static int compare_loading(struct dl2_study *study, struct dl2_error *error)
{
    const size_t index = dl2_study_find(study, "raw");
    const json_t *original = index < study->variant_count ? study->variants[index].loaded : NULL;
    const double images = dl2_json_get_real(original, "images", NAN);
    json_t *conditions = conditions_of(original);
    int status = DL2_OK;
    for (size_t i = 0; original && status == DL2_OK && i < study->variant_count; i++) {
        struct dl2_study_variant *variant = &study->variants[i];
        const double own_images = dl2_json_get_real(variant->loaded, "images", images);
        char text[1024];
        json_t *own = conditions_of(variant->loaded);
        describe_difference(own, conditions, text, sizeof text);
        json_decref(own);
        if (text[0]) {
            status = leave_out(study, error, "loading %s: not measured as the original's was, %s",
                               variant->name, text);
            json_decref(variant->loaded);
            variant->loaded = NULL;
            variant->load_rate = NAN;
        } else if (own_images != images && isfinite(own_images) && isfinite(images)) {
            snprintf(text, sizeof text, "%.0f images, where the original has %.0f", own_images,
                     images);
            status = add_failure(study, "load", variant->name, text, NULL, error);
        }
    }
    json_decref(conditions);
    return status;
}

/* ---- Rounds */

/* The settings that must be equal in measurements of speed that are compared. A new reference. */
static json_t *conditions_of_round(const struct dl2_round *round)
{
    static const char *const own[] = {"data",      "val",  "images", "seed",
                                      "data-seed", "name", "out",    "checkpoint"};
    static const char *const machine[] = {"cpu", "cores"};
    if (!round->network)
        return conditions_of(round->report);
    const json_t *arguments = json_object_get(round->report, "arguments");
    json_t *conditions = json_is_object(arguments) ? json_copy((json_t *)arguments) : json_object();
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        json_object_del(conditions, own[i]);
    for (size_t i = 0; i < sizeof machine / sizeof *machine; i++) {
        json_t *value = json_object_get(json_object_get(round->report, "machine"), machine[i]);
        if (value)
            json_object_set(conditions, machine[i], value);
    }
    return conditions;
}

/* The original's first measurement of the same kind, or NULL. */
static const struct dl2_round *round_of_original(const struct dl2_rounds *rounds,
                                                 const char *network)
{
    for (size_t i = 0; i < rounds->count; i++) {
        const struct dl2_round *round = &rounds->items[i];
        if (strcmp(round->variant, "raw") == 0 && !round->network == !network &&
            (!network || strcmp(round->network, network) == 0))
            return round;
    }
    return NULL;
}

/* Leaves out measurements of variants that are not wanted, and those that were not made as the
 * original's. */
static int compare_rounds(struct dl2_study *study, const struct dl2_study_selection *selection,
                          struct dl2_error *error)
{
    for (size_t i = study->rounds.count; i-- > 0;) {
        const struct dl2_round *round = &study->rounds.items[i];
        const struct dl2_round *original = round_of_original(&study->rounds, round->network);
        char text[1024] = "";
        bool wanted;
        DL2_TRY(is_wanted(study, selection, round->variant, &wanted, error));
        if (wanted && original && original != round) {
            json_t *own = conditions_of_round(round), *its = conditions_of_round(original);
            describe_difference(own, its, text, sizeof text);
            json_decref(own);
            json_decref(its);
        }
        if (text[0])
            DL2_TRY(leave_out(
                study, error,
                "the speed of %s on %s, round %u: not measured as the original's was, "
                "%s",
                round->network ? round->network : "loading", round->variant, round->number, text));
        if (!wanted || text[0])
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
    for (size_t i = 0; i < study->rounds.broken_count; i++)
        DL2_TRY(add_text(&study->broken, &study->broken_count, study->rounds.broken[i], error));
    return compare_rounds(study, selection, error);
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
        walk_visit *visit;
    } parts[] = {{"variants", visit_made},
                 {"quality", visit_scored},
                 {"load", visit_loaded},
                 {"train", visit_trained}};
    struct walk walk = {.study = study, .selection = selection};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, parts[i].name);
        DL2_TRY(walk_folder(&walk, path, parts[i].visit, error));
    }
    if (!study->variant_count && !study->arch_count && !study->broken_count &&
        !study->unfinished_count && !study->left_out_count && !dl2_search_results_exist(folder))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s holds no results: neither variants/, quality/, load/ nor train/ "
                             "has any; name the folder that a study wrote (its OUT)",
                             folder);
    if (study->variant_count) { /* the original is always there to be compared with */
        struct dl2_study_variant *raw;
        DL2_TRY(add_variant(study, "raw", &raw, error));
    }
    read_figures(study);
    DL2_TRY(sort_all(study, error));
    DL2_TRY(compare_variants_made(study, false, error));
    DL2_TRY(compare_variants_made(study, true, error));
    for (size_t a = 0; a < study->arch_count; a++)
        DL2_TRY(compare_trainings(study, study->archs[a], error));
    DL2_TRY(compare_files(study, error));
    study->images = dl2_calloc(study->arch_count + 1, sizeof *study->images);
    if (!study->images)
        return dl2_error_memory(error, "%zu networks", study->arch_count);
    for (size_t a = 0; a < study->arch_count; a++)
        DL2_TRY(collect_predictions(study, a, error));
    DL2_TRY(collect_evaluations(study, error));
    DL2_TRY(compare_loading(study, error));
    return collect_rounds(folder, selection, study, error);
}

int dl2_study_add_notes(struct dl2_study *study, const struct dl2_study *other, const char *where,
                        struct dl2_error *error)
{
    for (size_t i = 0; i < other->broken_count; i++)
        DL2_TRY(add_text(&study->broken, &study->broken_count, other->broken[i], error));
    for (size_t i = 0; i < other->unfinished_count; i++)
        DL2_TRY(
            add_text(&study->unfinished, &study->unfinished_count, other->unfinished[i], error));
    for (size_t i = 0; i < other->left_out_count; i++)
        DL2_TRY(leave_out(study, error, "%s: %s", where, other->left_out[i]));
    for (size_t i = 0; i < other->failure_count; i++)
        DL2_TRY(add_failure(study, where, other->failures[i].stage, other->failures[i].what, NULL,
                            error));
    return DL2_OK;
}

void dl2_study_free(struct dl2_study *study)
{
    for (size_t i = 0; i < study->variant_count; i++) {
        free(study->variants[i].name);
        json_decref(study->variants[i].made);
        json_decref(study->variants[i].scored);
        free(study->variants[i].scored_path);
        json_decref(study->variants[i].loaded);
    }
    for (size_t i = 0; i < study->run_count; i++)
        free_run(&study->runs[i]);
    for (size_t i = 0; i < study->failure_count; i++) {
        free(study->failures[i].stage);
        free(study->failures[i].what);
    }
    for (size_t a = 0; study->images && a < study->arch_count; a++)
        dl2_prediction_table_free(&study->images[a]);
    free(study->images);
    free(study->variants);
    free(study->runs);
    free(study->failures);
    dl2_rounds_free(&study->rounds);
    free_texts(study->archs, study->arch_count);
    free_texts(study->broken, study->broken_count);
    free_texts(study->unfinished, study->unfinished_count);
    free_texts(study->left_out, study->left_out_count);
    json_decref(study->definitions);
    *study = (struct dl2_study){0};
}
