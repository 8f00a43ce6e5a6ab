/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/study.h"

#include "common/json.h"
#include "common/scope.h"
#include "report/result_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- differences -- */

/* The value as people write it: a whole number without ".0". To free. */
static char *show_value(const json_t *value)
{
    char *text = NULL;
    if (!json_is_real(value))
        return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    return asprintf(&text, "%.6g", json_real_value(value)) < 0 ? NULL : text;
}

/* A field that is missing is as null, or as a flag that was not given: programs get new ones. */
static bool is_none(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value);
}

/* "; epochs is 2, not 6" at the end of `out`; NULL: the field is missing. */
static void add_difference(const char *key, const json_t *own, const json_t *reference, char *out,
                           size_t size)
{
    const size_t used = strlen(out);
    const bool none = is_none(own), no_other = is_none(reference);
    /* Regimens of several stages are compared with trainings of one, which have no list of them. */
    if ((none && no_other) || json_equal(own, reference) ||
        ((none || no_other) && strcmp(key, "stages") == 0))
        return;
    DL2_AUTO_FREE char *a = json_is_null(own) ? NULL : show_value(own);
    DL2_AUTO_FREE char *b = json_is_null(reference) ? NULL : show_value(reference);
    snprintf(out + used, size - used, "%s%s is %.100s, not %.100s", used ? "; " : "", key,
             a ? a : "missing", b ? b : "missing");
}

/* "epochs is 2, not 6; lr is missing, not 0.1", of each field in which the two differ. Nothing
 * where one of the two is not known. */
static void describe_difference(const json_t *own, const json_t *reference, char *out, size_t size)
{
    const char *key;
    json_t *value;
    out[0] = '\0';
    if (!own || !reference)
        return;
    json_object_foreach((json_t *)own, key, value)
        add_difference(key, value, json_object_get(reference, key), out, size);
    json_object_foreach((json_t *)reference, key, value) if (!json_object_get(own, key))
        add_difference(key, NULL, value, out, size);
}

static bool are_alike(const json_t *own, const json_t *reference)
{
    char difference[8];
    describe_difference(own, reference, difference, sizeof difference);
    return !difference[0];
}

/* -- variants that were made alike -- */

/* What a variant was made from, or with: what variants that are compared agree on. Kept; NULL:
 * nothing to compare by. */
static json_t *origin_of(const struct dl2_study_variant *variant, bool settings)
{
    if (!variant->made)
        return NULL;
    if (settings) { /* without how the images are packed */
        json_t *options = dl2_keep_json(json_object());
        json_object_update(options, json_object_get(variant->made, "options"));
        json_object_del(options, "shuffle");
        json_object_del(options, "shards");
        json_object_del(options, "shard_bytes");
        return options;
    }
    /* An image that failed is missing in the sums. */
    if (json_array_size(json_object_get(variant->made, "failed")))
        return NULL;
    json_t *origin = dl2_keep_json(json_object());
    json_object_set(origin, "images", json_object_get(variant->made, "images"));
    json_object_set(origin, "source_bytes", json_object_get(variant->made, "source_bytes"));
    return origin;
}

/* Leaves out the trainings on a variant, if there are any. */
static void leave_out_variant(struct dl2_study *study, size_t variant, const char *how,
                              const char *difference)
{
    bool any = false;
    for (size_t i = study->run_count; i-- > 0;)
        if (study->runs[i].variant == variant) {
            dl2_study_remove_run(study, i);
            any = true;
        }
    if (any)
        dl2_study_leave_out(study, "trainings on %s: it was made %s, %s",
                            study->variants[variant].name, how, difference);
}

/* The variant whose origin most of its peers share; of equally many, the newest. */
static size_t find_usual(const struct dl2_study *study, json_t *const *origins, const char *codec)
{
    size_t usual = study->variant_count, most = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        size_t same = 0;
        if (!origins[v] || (codec && strcmp(study->variants[v].codec, codec) != 0))
            continue;
        for (size_t w = 0; w < study->variant_count; w++) {
            if (!origins[w] || (codec && strcmp(study->variants[w].codec, codec) != 0))
                continue;
            same += are_alike(origins[w], origins[v]);
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
static void compare_variants_made(struct dl2_study *study, bool settings)
{
    const size_t count = study->variant_count;
    DL2_AUTO_FREE json_t **origins = dl2_room(count + 1, sizeof *origins, "variants");
    for (size_t v = 0; v < count; v++)
        origins[v] = origin_of(&study->variants[v], settings);
    for (size_t v = 0; v < count; v++) {
        const size_t usual = find_usual(study, origins, settings ? study->variants[v].codec : NULL);
        char difference[1024] = "";
        if (origins[v] && usual < count)
            describe_difference(origins[v], origins[usual], difference, sizeof difference);
        if (difference[0])
            leave_out_variant(study, v,
                              settings ? "with other settings than others of its codec"
                                       : "from other images than other variants",
                              difference);
    }
}

/* -- trainings -- */

/*
 * The settings that must be equal in trainings that are compared: the report's own list of settings
 * that bear on accuracy. Reports made before that list was added have none: there it is the
 * arguments without those that had no bearing then, the lengths of several stages, and the number
 * of classes. Kept.
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
        return comparable;
    json_t *arguments = json_object_get(run->report, "arguments");
    json_t *settings =
        dl2_keep_json(json_is_object(arguments) ? json_copy(arguments) : json_object());
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
static size_t find_reference(const struct dl2_study *study, const char *arch,
                             json_t *const *settings)
{
    const size_t raw = dl2_study_find(study, "raw");
    size_t count = 0, best = 0;
    DL2_AUTO_FREE struct group *groups =
        dl2_room(study->run_count + 1, sizeof *groups, "trainings");
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (strcmp(run->arch, arch) != 0)
            continue;
        size_t g = 0;
        while (g < count && !are_alike(settings[i], settings[groups[g].first]))
            g++;
        if (g == count)
            groups[count++] = (struct group){.first = i, .made_ns = INT64_MIN};
        groups[g].all++;
        groups[g].of_raw += run->variant == raw;
        groups[g].made_ns = run->made_ns > groups[g].made_ns ? run->made_ns : groups[g].made_ns;
    }
    for (size_t g = 1; g < count; g++)
        if (is_better(&groups[g], &groups[best]))
            best = g;
    return groups[best].first;
}

/* Names images that the original has and a variant's training hasn't, and the other way round. */
static void compare_images(struct dl2_study *study, const struct dl2_study_run *run,
                           const struct dl2_study_run *reference)
{
    if (!(run->train_images != reference->train_images || run->val_images != reference->val_images))
        return;
    if (!isfinite(run->train_images + run->val_images + reference->train_images +
                  reference->val_images))
        return;
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
    dl2_study_add_failure(study, "train", of, what, text);
}

/* Where each seed begins with a network of its own, as `forecast` does with the study's of that
 * seed, the path is the same but for the seed: "train/raw/small/seed-*" of each. */
static void name_own_networks(const struct dl2_study *study, const char *arch, json_t **settings)
{
    const char *first = NULL;
    bool several = false;
    for (size_t i = 0; i < study->run_count; i++) {
        const char *path = strcmp(study->runs[i].arch, arch) == 0
                               ? dl2_json_get_text(settings[i], "pretrained", NULL)
                               : NULL;
        several |= first && path && strcmp(path, first) != 0;
        first = path ? path : first;
    }
    for (size_t i = 0; several && i < study->run_count; i++) {
        char seed[32];
        snprintf(seed, sizeof seed, "/seed-%llu/", (unsigned long long)study->runs[i].seed);
        const char *path = dl2_json_get_text(settings[i], "pretrained", "");
        const char *own = strstr(path, seed);
        if (strcmp(study->runs[i].arch, arch) != 0 || !own)
            continue;
        settings[i] = dl2_keep_json(json_copy(settings[i]));
        json_object_set_new(
            settings[i], "pretrained",
            json_sprintf("%.*s/seed-*/%s", (int)(own - path), path, own + strlen(seed)));
    }
}

/* Leaves out the network's runs that differ from the others in more than data and seed. */
static void compare_trainings(struct dl2_study *study, const char *arch)
{
    const size_t count = study->run_count;
    DL2_AUTO_FREE json_t **settings = dl2_room(count + 1, sizeof *settings, "trainings");
    for (size_t i = 0; i < count; i++)
        settings[i] = settings_of(&study->runs[i]);
    name_own_networks(study, arch, settings);
    const size_t reference = find_reference(study, arch, settings);
    const struct dl2_study_run kept = study->runs[reference];
    study->run_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct dl2_study_run run = study->runs[i];
        const bool own = strcmp(run.arch, arch) == 0;
        char difference[1024] = "";
        if (own)
            describe_difference(settings[i], settings[reference], difference, sizeof difference);
        if (difference[0]) {
            dl2_study_leave_out(study, "%s, %s, seed %llu: unlike the trainings that are shown, %s",
                                study->variants[run.variant].name, arch,
                                (unsigned long long)run.seed, difference);
            continue;
        }
        if (own)
            compare_images(study, &run, &kept);
        study->runs[study->run_count++] = run;
    }
}

/* -- the files that a variant has now -- */

/* Adds up the images of the variant's list that are for training; false if there is none, or a
 * figure in it cannot be, which is noted. */
static bool sum_training_files(struct dl2_study *study, const struct dl2_study_variant *variant,
                               double *images, double *bytes)
{
    static const char split[] = "train/";
    struct dl2_error why = DL2_ERROR_INIT;
    DL2_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    FILE *list = variant->list_path ? fopen(variant->list_path, "r") : NULL;
    *images = *bytes = 0;
    while (list && why.status == DL2_OK && getline(&line, &capacity, list) > 0) {
        json_auto_t *row = json_loads(line, 0, NULL);
        dl2_result_check(row, "dl2-variant.jsonl", variant->list_path, &why);
        if (strncmp(dl2_json_get_text(row, "key", ""), split, sizeof split - 1) != 0)
            continue;
        *images += 1;
        *bytes += dl2_json_get_real(row, "bytes", NAN);
    }
    if (list)
        fclose(list);
    dl2_study_note_broken(study, &why);
    return list && why.status == DL2_OK;
}

/* Leaves out a training on other files than `today`, which have so many bytes. */
static void compare_bytes(struct dl2_study *study, size_t index, double bytes, const char *today)
{
    const struct dl2_study_run *run = &study->runs[index];
    const double own = dl2_json_get_real(run->report, "train_bytes", NAN);
    if (!(own < bytes || own > bytes))
        return;
    dl2_study_leave_out(
        study, "%s, %s, seed %llu: trained on other files than %s, train_bytes is %.0f, not %.0f",
        study->variants[run->variant].name, run->arch, (unsigned long long)run->seed, today, own,
        bytes);
    dl2_study_remove_run(study, index);
}

/* Leaves out trainings on files that the variant had before. Only where it was written after the
 * training can it have others, and only of as many images are the sums comparable. */
static void compare_variant_files(struct dl2_study *study)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        double images = NAN, bytes = NAN;
        for (size_t i = study->run_count; i-- > 0;) {
            const struct dl2_study_run *run = &study->runs[i];
            if (run->variant != v || run->made_ns >= variant->made_ns ||
                (isnan(images) && !sum_training_files(study, variant, &images, &bytes)))
                continue;
            if (run->train_images == images)
                compare_bytes(study, i, bytes, "the variant has now");
        }
    }
}

/* Leaves out trainings on other files than the newest training's, of variants without a list. */
static void compare_newest_files(struct dl2_study *study)
{
    for (size_t i = study->run_count; i-- > 0;) {
        const struct dl2_study_run *run = &study->runs[i], *newest = run;
        for (size_t k = 0; k < study->run_count; k++) {
            const struct dl2_study_run *other = &study->runs[k];
            if (other->variant == run->variant && strcmp(other->arch, run->arch) == 0 &&
                other->made_ns > newest->made_ns)
                newest = other;
        }
        compare_bytes(study, i, dl2_json_get_real(newest->report, "train_bytes", NAN),
                      "the variant's newest training");
    }
}

void dl2_study_keep_scores_of_today(struct dl2_study *study)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        struct dl2_study_variant *variant = &study->variants[v];
        const double bytes = dl2_json_get_real(variant->made, "bytes", NAN);
        const double own = dl2_json_get_real(variant->scored, "bytes", NAN);
        if (dl2_json_get_real(variant->made, "images", NAN) !=
                dl2_json_get_real(variant->scored, "images", NAN) ||
            !(own < bytes || own > bytes))
            continue;
        dl2_study_leave_out(study,
                            "scores of %s: of other files than the variant has now, bytes is %.0f, "
                            "not %.0f",
                            variant->name, own, bytes);
        variant->scored = NULL;
        variant->scored_path = NULL;
    }
}

void dl2_study_keep_comparable_trainings(struct dl2_study *study)
{
    compare_variants_made(study, false);
    compare_variants_made(study, true);
    for (size_t a = 0; a < study->arch_count; a++)
        compare_trainings(study, study->archs[a]);
    compare_variant_files(study);
    compare_newest_files(study);
}

/* -- several studies -- */

/* The settings of the trainings that are kept of a network. Kept. */
static json_t *settings_of_network(const struct dl2_study *study, const char *arch)
{
    static const char *const of_data[] = {"classes",     "channels",  "mean",         "std",
                                          "train-split", "val-split", "val-fraction", "split-seed"};
    json_t *settings = NULL;
    for (size_t i = 0; i < study->run_count && !settings; i++)
        if (strcmp(study->runs[i].arch, arch) == 0)
            settings = dl2_keep_json(json_copy(settings_of(&study->runs[i])));
    for (size_t i = 0; i < sizeof of_data / sizeof *of_data; i++)
        json_object_del(settings, of_data[i]);
    return settings;
}

void dl2_study_compare_trainings(const struct dl2_study *study, const struct dl2_study *reference,
                                 const char *arch, char *out, size_t size)
{
    describe_difference(settings_of_network(study, arch), settings_of_network(reference, arch), out,
                        size);
}

void dl2_study_compare_variants(const struct dl2_study_variant *variant,
                                const struct dl2_study_variant *reference, char *out, size_t size)
{
    describe_difference(origin_of(variant, true), origin_of(reference, true), out, size);
}

/* -- loading -- */

/* A report's machine, as far as speeds depend on it; fields that it lacks are left out. */
static void add_machine(json_t *conditions, const json_t *report)
{
    const json_t *machine = json_object_get(report, "machine");
    json_object_set(conditions, "cpu", json_object_get(machine, "cpu"));
    json_object_set(conditions, "cores", json_object_get(machine, "cores"));
}

/* The settings that must be equal in measurements of loading that are compared. Kept. */
static json_t *conditions_of(const json_t *loaded)
{
    static const char *const fields[] = {"mode", "batch", "image_size", "workers", "config"};
    json_t *conditions = dl2_keep_json(json_object());
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set(conditions, fields[i], json_object_get(loaded, fields[i]));
    add_machine(conditions, loaded);
    return conditions;
}

void dl2_study_keep_comparable_loading(struct dl2_study *study)
{
    const size_t index = dl2_study_find(study, "raw");
    const json_t *original = index < study->variant_count ? study->variants[index].loaded : NULL;
    const double images = dl2_json_get_real(original, "images", NAN);
    const json_t *conditions = conditions_of(original);
    for (size_t i = 0; original && i < study->variant_count; i++) {
        struct dl2_study_variant *variant = &study->variants[i];
        const double own_images = dl2_json_get_real(variant->loaded, "images", images);
        char text[1024];
        if (!variant->loaded)
            continue;
        describe_difference(conditions_of(variant->loaded), conditions, text, sizeof text);
        if (text[0]) {
            dl2_study_leave_out(study, "loading %s: not measured as the original's was, %s",
                                variant->name, text);
            variant->loaded = NULL;
            variant->load_rate = NAN;
        } else if (own_images != images && isfinite(own_images) && isfinite(images)) {
            snprintf(text, sizeof text, "%.0f images, where the original has %.0f", own_images,
                     images);
            dl2_study_add_failure(study, "load", variant->name, text, NULL);
        }
    }
}

/* -- rounds -- */

/* The settings that must be equal in measurements of speed that are compared. Kept. */
static json_t *conditions_of_round(const struct dl2_round *round)
{
    static const char *const own[] = {"data",      "val",  "images", "seed",
                                      "data-seed", "name", "out",    "checkpoint"};
    if (!round->network)
        return conditions_of(round->report);
    const json_t *arguments = json_object_get(round->report, "arguments");
    json_t *conditions =
        dl2_keep_json(json_is_object(arguments) ? json_copy((json_t *)arguments) : json_object());
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        json_object_del(conditions, own[i]);
    add_machine(conditions, round->report);
    return conditions;
}

bool dl2_study_round_is_comparable(struct dl2_study *study, size_t index)
{
    const struct dl2_round *round = &study->rounds.items[index];
    const struct dl2_round *original = dl2_rounds_first(&study->rounds, round->network, "raw");
    char text[1024] = "";
    if (original && original != round)
        describe_difference(conditions_of_round(round), conditions_of_round(original), text,
                            sizeof text);
    if (text[0])
        dl2_study_leave_out(
            study, "the speed of %s on %s, round %u: not measured as the original's was, %s",
            round->network ? round->network : "loading", round->variant, round->number, text);
    return !text[0];
}
