/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/plan.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "report/sentence.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define SCHEMA "dl2-plan/1"

/* A look of the file, or this one. All are borrowed. */
struct plan_look {
    double tolerance;    /* in the metric's unit; 0 where it is in percent of the original's */
    double percent;      /* 0: it is not */
    json_t *planned;     /* numbers of seeds */
    json_t *variants;    /* name: codec */
    json_t *networks;    /* name: see struct plan_network */
    json_t *groups;      /* name of a network whose images are grouped: check sum */
    const char *data;    /* check sum of the question and the trainings */
    json_int_t repeated; /* trainings that were there before, with other results or none */
};

struct plan_network {
    struct dl2_looks looks; /* with shares, future planned ones, too */
    double spent;           /* of the error, up to and with this look */
    size_t seeds;           /* the original's */
    /* Names of variants, borrowed: what stood from looks before, and all that is claimed. */
    json_t *standing, *within;
};

/* ---- The file */

/* A plan without looks. Takes `earlier`, what there is of plans that were given up, over. Kept. */
static json_t *new_file(json_t *earlier)
{
    return dl2_keep_json(json_pack("{s:s,s:f,s:[],s:{},s:o}", "schema", SCHEMA, "error",
                                   DL2_CLAIMS_LEVEL, "looks", "trainings", "earlier", earlier));
}

static bool are_all(const json_t *array, json_type type)
{
    size_t i;
    const json_t *item;
    json_array_foreach(array, i, item) if (json_typeof(item) != type) return false;
    return json_is_array(array);
}

static bool are_texts(json_t *object)
{
    const char *key;
    json_t *item;
    json_object_foreach(object, key, item) if (!json_is_string(item)) return false;
    return json_is_object(object);
}

static bool is_share(double share)
{
    return share >= 0 && share <= 1 + 1e-9; /* sums are rounded */
}

/* False: it is none. */
static bool read_network(json_t *json, struct plan_network *network)
{
    json_t *looks, *seeds, *look;
    size_t i;
    *network = (struct plan_network){.spent = 0};
    if (json_unpack(json, "{s:o,s:o,s:F,s?o,s:o}", "seeds", &seeds, "looks", &looks, "spent",
                    &network->spent, "standing", &network->standing, "within",
                    &network->within) != 0 ||
        !are_all(seeds, JSON_STRING) ||
        (network->standing && !are_all(network->standing, JSON_STRING)) ||
        !are_all(network->within, JSON_STRING) || !json_is_array(looks) ||
        json_array_size(looks) > DL2_MAX_LOOKS || !is_share(network->spent))
        return false;
    if (!network->standing) /* an earlier version wrote none */
        network->standing = network->within;
    network->seeds = json_array_size(seeds);
    network->looks.count = json_array_size(looks);
    json_array_foreach(looks, i, look)
    {
        json_int_t count;
        double *share = &network->looks.share[i];
        if (json_unpack(look, "{s:I,s:F}", "seeds", &count, "share", share) != 0 ||
            count < (i ? (json_int_t)network->looks.seeds[i - 1] + 1 : 1) || !is_share(*share))
            return false;
        network->looks.seeds[i] = (size_t)count;
    }
    return network->looks.count > 0;
}

static bool read_look(json_t *json, struct plan_look *look)
{
    const char *name;
    json_t *network;
    *look = (struct plan_look){.tolerance = 0};
    if (json_unpack(json, "{s:F,s?F,s:o,s:o,s:o,s:o,s:s,s:I}", "tolerance", &look->tolerance,
                    "percent", &look->percent, "planned", &look->planned, "variants",
                    &look->variants, "networks", &look->networks, "groups", &look->groups, "data",
                    &look->data, "repeated", &look->repeated) != 0 ||
        !(look->tolerance >= 0) || !(look->percent >= 0) || !are_all(look->planned, JSON_INTEGER) ||
        !are_texts(look->variants) || !are_texts(look->groups) || !json_is_object(look->networks))
        return false;
    json_object_foreach(look->networks, name, network)
    {
        struct plan_network ignored;
        if (!read_network(network, &ignored))
            return false;
    }
    return true;
}

static bool have_same_tolerance(const struct plan_look *a, const struct plan_look *b)
{
    return a->tolerance == b->tolerance && a->percent == b->percent;
}

/* A look that can be read. */
static struct plan_look look_of(json_t *json)
{
    struct plan_look look;
    read_look(json, &look);
    return look;
}

static int check_file(json_t *file, const char *path, struct dl2_error *error)
{
    json_t *looks, *trainings, *earlier, *item, *variant;
    const char *name, *variant_name;
    size_t i;
    double level;
    struct plan_look look;
    if (json_unpack(file, "{s:F,s:o,s:o,s:o}", "error", &level, "looks", &looks, "trainings",
                    &trainings, "earlier", &earlier) != 0 ||
        level != DL2_CLAIMS_LEVEL || !json_is_array(looks) || !json_is_object(trainings) ||
        !are_all(earlier, JSON_OBJECT))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: not the plan of a study", path);
    json_array_foreach(looks, i, item) if (!read_look(item, &look)) return dl2_error_set(
        error, DL2_ERR_FORMAT, "%s: look %zu is broken", path, i + 1);
    json_object_foreach(trainings, name, item) json_object_foreach(
        item, variant_name,
        variant) if (!are_texts(variant)) return dl2_error_set(error, DL2_ERR_FORMAT,
                                                               "%s: the trainings of %s are broken",
                                                               path, name);
    return DL2_OK;
}

/* *file is kept. */
static int load(const char *path, json_t **file, struct dl2_error *error)
{
    struct dl2_error why = DL2_ERROR_INIT;
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        *file = new_file(json_array());
        return DL2_OK;
    }
    int status = dl2_json_load(path, SCHEMA, file, &why);
    if (status == DL2_OK)
        status = check_file(dl2_keep_json(*file), path, &why);
    if (status < 0)
        dl2_error_set(error, status,
                      "%s. It says how often this study was looked at: put a whole copy back, or "
                      "start another plan with dl2-report new-plan",
                      why.message);
    return status;
}

static json_t *date_now(void)
{
    const time_t now = time(NULL);
    struct tm parts;
    char text[32] = "";
    if (gmtime_r(&now, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

static const char *plan_path(const char *folder)
{
    return dl2_keep_block(dl2_path_join(folder, "report/plan.json"));
}

/* Locks the folder that the file is in; -1: it can't be made. */
static int lock_folder(const char *path, struct dl2_error *error)
{
    int lock = -1;
    if (dl2_make_folder_of(path, error) == DL2_OK)
        lock = open(dl2_text("%.*s", (int)(dl2_path_base(path) - path), path),
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    return lock;
}

/* ---- What there is now */

static void sum_training(const struct dl2_study_run *run, char sum[17])
{
    double facts[] = {run->accuracy, run->val_images, 0};
    for (size_t i = 0; run->outcome && i < run->images; i++)
        facts[2] += !isnan(run->outcome[i]);
    snprintf(sum, 17, "%016llx", (unsigned long long)XXH3_64bits(facts, sizeof facts));
}

/* Which images of a network are in one group, in the order of their keys. */
static json_t *sum_groups(const struct dl2_prediction_table *table)
{
    DL2_AUTO_FREE uint32_t *names = dl2_room(table->group_count, sizeof *names, "groups of images");
    uint32_t next = 0;
    char text[17];
    XXH64_hash_t sum = table->count;
    for (size_t i = 0; i < table->count; i++) {
        uint32_t *name = &names[table->group[table->order[i]]];
        *name = *name ? *name : ++next;
        sum = XXH3_64bits_withSeed(name, sizeof *name, sum);
    }
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    return json_string(text);
}

/* The object `name` of an object, made where there is none. Borrowed. */
static json_t *object_in(json_t *object, const char *name)
{
    json_t *inner = json_object_get(object, name);
    if (!inner && json_object_set_new(object, name, json_object()) == 0)
        inner = json_object_get(object, name);
    return inner;
}

/* {network: {variant: {seed: sum}}} of the networks that verdicts can be shown of. Kept. */
static json_t *list_trainings(const struct dl2_study *study)
{
    json_t *all = dl2_keep_json(json_object());
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        char seed[24], sum[17];
        if (!isfinite(run->accuracy))
            continue;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed);
        sum_training(run, sum);
        json_t *variants = object_in(all, run->arch);
        json_object_set_new(object_in(variants, study->variants[run->variant].name), seed,
                            json_string(sum));
    }
    for (size_t a = 0; a < study->arch_count; a++) {
        const json_t *variants = json_object_get(all, study->archs[a]);
        if (!json_object_get(variants, "raw") || json_object_size(variants) < 2)
            json_object_del(all, study->archs[a]);
    }
    return all;
}

/* The trainings of `old`, {seed: sum}, that are not in `now` with the same results. */
static size_t count_gone(json_t *old, const json_t *now)
{
    const char *seed;
    json_t *sum;
    size_t gone = 0;
    json_object_foreach(old, seed, sum) gone += !json_equal(sum, json_object_get(now, seed));
    return gone;
}

/* The same of a network, {variant: {seed: sum}}. */
static size_t count_all_gone(json_t *old, const json_t *now)
{
    const char *variant;
    json_t *seeds;
    size_t gone = 0;
    json_object_foreach(old, variant, seeds) gone +=
        count_gone(seeds, json_object_get(now, variant));
    return gone;
}

/* Those of variants and seeds that are still there. */
static size_t count_repeated(json_t *old, const json_t *now)
{
    const json_t *raw = json_object_get(now, "raw");
    const char *variant, *seed;
    json_t *seeds, *sum;
    size_t repeated = 0;
    json_object_foreach(old, variant, seeds)
    {
        const json_t *own = json_object_get(now, variant);
        if (own)
            json_object_foreach(seeds, seed, sum) repeated +=
                json_object_get(raw, seed) != NULL && !json_equal(sum, json_object_get(own, seed));
    }
    return repeated;
}

/* A file of groups by its path from the study's folder if it lies below it, so that a copy of the
 * study has its own; else the whole path. Any other way to group is as it was. */
static json_t *show_group(const char *folder, const char *group)
{
    DL2_AUTO_FREE char *file = group ? realpath(group, NULL) : NULL;
    DL2_AUTO_FREE char *whole = file ? realpath(folder, NULL) : NULL;
    const size_t length = whole ? strlen(whole) : 0;
    if (!group)
        return json_null();
    if (length && strncmp(file, whole, length) == 0 && file[length] == '/')
        return dl2_json_text(file + length + 1);
    return dl2_json_text(file ? file : group);
}

static const char *group_of(const char *folder, const json_t *look)
{
    const char *group = dl2_json_get_text(look, "group", NULL);
    const char *below = group ? dl2_text("%s/%s", folder, group) : NULL;
    return below && dl2_is_file(below) ? below : group ? dl2_text_copy(group) : NULL;
}

/* This look, without what it spends and claims. Kept. */
static json_t *describe(const char *folder, const struct dl2_study *study,
                        const struct dl2_question *question, json_t *trainings)
{
    const struct dl2_looks *looks = &question->looks;
    json_t *planned = json_array(), *variants = json_object(), *groups = json_object();
    const double tolerance = question->percent > 0 ? 0 : question->tolerance;
    char sum[17];
    for (size_t i = 0; i < looks->count; i++)
        json_array_append_new(planned, json_integer((json_int_t)looks->seeds[i]));
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        /* Where looks are planned, what is not trained yet may come. */
        bool counts = looks->count > 0;
        for (size_t a = 0; a < study->arch_count; a++)
            counts |=
                json_object_get(json_object_get(trainings, study->archs[a]), variant->name) != NULL;
        if (counts && strcmp(variant->name, "raw") != 0)
            json_object_set_new(variants, variant->name, json_string(variant->codec));
    }
    for (size_t a = 0; a < study->arch_count; a++)
        if (study->images[a].group && json_object_get(trainings, study->archs[a]))
            json_object_set_new(groups, study->archs[a], sum_groups(&study->images[a]));
    json_t *look = dl2_keep_json(json_pack("{s:o,s:f,s:o,s:o,s:o,s:o,s:i,s:{}}", "date", date_now(),
                                           "tolerance", tolerance, "planned", planned, "variants",
                                           variants, "group", show_group(folder, question->group),
                                           "groups", groups, "repeated", 0, "networks"));
    json_auto_t *asked = json_pack("{s:f,s:O,s:O,s:O}", "tolerance", tolerance, "planned", planned,
                                   "groups", groups, "trainings", trainings);
    if (question->percent > 0) {
        json_object_set_new(look, "percent", json_real(question->percent));
        json_object_set_new(asked, "percent", json_real(question->percent));
    }
    const char *text = dl2_keep_block(json_dumps(asked, JSON_SORT_KEYS | JSON_COMPACT));
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
    json_object_set_new(look, "data", json_string(sum));
    return look;
}

/* ---- Spending */

/* What a network's earlier looks left for this one. */
struct purse {
    const struct plan_look *last; /* the last one with this network; NULL: none */
    struct plan_network network;  /* of `last` */
    double spent;         /* by the network, or before it came, by the one that spent most */
    bool same_groups;     /* of images, as in `last` */
    bool unchanged, kept; /* then, since `last`: all trainings; those that there were */
};

static bool have_same_groups(const struct plan_look *a, const struct plan_look *b, const char *arch)
{
    json_t *one = json_object_get(a->groups, arch), *other = json_object_get(b->groups, arch);
    return one == other || json_equal(one, other);
}

static struct purse open_purse(const struct plan_look *looks, size_t count,
                               const struct plan_look *look, const char *arch, json_t *before,
                               json_t *now)
{
    struct purse purse = {.last = NULL};
    for (size_t i = 0; i < count; i++) {
        const char *name;
        json_t *json;
        struct plan_network network;
        json_object_foreach(looks[i].networks, name, json)
        {
            read_network(json, &network);
            const bool own = strcmp(name, arch) == 0;
            if (own) {
                purse.last = &looks[i];
                purse.network = network;
            }
            if (own || !purse.last)
                purse.spent = own ? network.spent : fmax(purse.spent, network.spent);
        }
    }
    purse.same_groups = purse.last && have_same_groups(purse.last, look, arch);
    purse.kept = purse.same_groups && count_all_gone(before, now) == 0;
    purse.unchanged = purse.same_groups && json_equal(before, now);
    return purse;
}

/* The share of the looks that so many seeds reach; a single one is at what there is. */
static double reached_share(const struct dl2_looks *looks, size_t seeds)
{
    double share = 0;
    for (size_t i = 0; i < looks->count; i++)
        if (looks->count == 1 || looks->seeds[i] <= seeds)
            share += looks->share[i];
    return share;
}

static bool has_others(json_t *names, const json_t *known)
{
    const char *name;
    json_t *ignored;
    json_object_foreach(names, name, ignored) if (!json_object_get(known, name)) return true;
    return false;
}

/* The planned looks that are still to come, with their shares. */
static void plan_anew(const struct purse *purse, bool first, bool unchanged,
                      const struct dl2_looks *planned, size_t seeds, struct dl2_looks *looks)
{
    size_t from = 0; /* the last that is reached */
    for (size_t i = 0; i < planned->count; i++)
        from = planned->seeds[i] <= seeds ? planned->seeds[i] : from;
    if (unchanged) {
        looks->seeds[looks->count++] = seeds; /* was seen, so it tests nothing */
        from = seeds + 1;
    } else if (first)
        from = 0;
    for (size_t i = 0; i < planned->count; i++)
        if (planned->seeds[i] >= from)
            looks->seeds[looks->count++] = planned->seeds[i];
    dl2_looks_plan(looks, unchanged, 1 - purse->spent);
}

/* What this look, and planned ones after it, may spend. `first`: the plan has no looks yet. */
static void spend(const struct purse *purse, bool first, const struct plan_look *now,
                  const struct dl2_looks *planned, size_t seeds, bool as_it_is,
                  struct plan_network *network)
{
    const bool same_tolerance = purse->last && have_same_tolerance(purse->last, now);
    const bool same_plan = same_tolerance && json_equal(purse->last->planned, now->planned) &&
                           !has_others(now->variants, purse->last->variants);
    const bool unchanged = same_tolerance && purse->unchanged;
    *network = (struct plan_network){.seeds = seeds};
    if (same_plan && (unchanged || (planned->count && purse->kept))) {
        network->looks = purse->network.looks;
        network->spent = purse->spent + reached_share(&network->looks, seeds) -
                         reached_share(&network->looks, purse->network.seeds);
        return;
    }
    if (planned->count)
        plan_anew(purse, first, unchanged, planned, seeds, &network->looks);
    else
        network->looks = (struct dl2_looks){
            1,
            {seeds},
            {unchanged || (seeds < 2 && !as_it_is) ? 0 : dl2_look_unplanned(purse->spent)}};
    network->spent = purse->spent + reached_share(&network->looks, seeds);
}

/* `within`: the claims that stand from before, [variant_count] */
static json_t *show_network(const struct plan_network *network, const json_t *raw,
                            const struct dl2_study *study, const bool *within)
{
    json_t *looks = json_array(), *seeds = json_array(), *standing = json_array();
    for (size_t v = 0; v < study->variant_count; v++)
        if (within[v])
            json_array_append_new(standing, json_string(study->variants[v].name));
    for (size_t i = 0; i < network->looks.count; i++)
        json_array_append_new(looks,
                              json_pack("{s:I,s:f}", "seeds", (json_int_t)network->looks.seeds[i],
                                        "share", network->looks.share[i]));
    const char *seed;
    json_t *ignored;
    json_object_foreach((json_t *)raw, seed, ignored)
        json_array_append_new(seeds, json_string(seed));
    return json_pack("{s:o,s:o,s:f,s:o,s:[]}", "seeds", seeds, "looks", looks, "spent",
                     network->spent, "standing", standing, "within");
}

/* What was claimed, as far as it stands. */
static void carry_claims(const struct dl2_study *study, const struct purse *purse,
                         const struct plan_look *now, json_t *before, const json_t *trainings,
                         bool *within)
{
    size_t i;
    json_t *name;
    if (!purse->same_groups || purse->last->tolerance > now->tolerance ||
        purse->last->percent > now->percent || (purse->last->percent > 0) != (now->percent > 0) ||
        count_gone(json_object_get(before, "raw"), json_object_get(trainings, "raw")))
        return;
    json_array_foreach(purse->network.within, i, name)
    {
        const char *variant = json_string_value(name);
        const size_t v = dl2_study_find(study, variant);
        if (v < study->variant_count &&
            !count_gone(json_object_get(before, variant), json_object_get(trainings, variant)))
            within[v] = true;
    }
}

/* ---- What was changed after results were seen */

/* ", seeds 4 5 added": the names in one object that are not in the other. */
static void say_names(struct dl2_sentence *writer, const char *noun, json_t *names,
                      const json_t *known, const char *what)
{
    const char *name;
    json_t *ignored;
    size_t count = 0, said = 0;
    json_object_foreach(names, name, ignored) count += !json_object_get(known, name);
    if (count == 0)
        return;
    dl2_say(writer, "%s%s%s", writer->used ? ", " : "", noun, count == 1 ? "" : "s");
    json_object_foreach(names, name, ignored) if (!json_object_get(known, name))
    {
        if (said++ < 8)
            dl2_say(writer, " %s", name);
        else if (said == 9)
            dl2_say(writer, " and %zu more", count - 8);
    }
    dl2_say(writer, " %s", what);
}

/* The codecs of {variant: codec}, and those of its variants that have one of `codecs`. Kept, as is
 * all below. */
static json_t *codecs_of(json_t *variants)
{
    const char *name;
    json_t *codec, *codecs = dl2_keep_json(json_object());
    json_object_foreach(variants, name, codec)
        json_object_set(codecs, json_string_value(codec), codec);
    return codecs;
}

static json_t *variants_of(json_t *variants, const json_t *codecs)
{
    const char *name;
    json_t *codec, *own = dl2_keep_json(json_object());
    json_object_foreach(variants, name,
                        codec) if (json_object_get(codecs, json_string_value(codec)))
        json_object_set(own, name, codec);
    return own;
}

/* The seeds of all networks, {seed: its name}. */
static json_t *seeds_of(json_t *networks)
{
    const char *name;
    json_t *network, *seed, *seeds = dl2_keep_json(json_object());
    size_t i;
    json_object_foreach(networks, name, network)
        json_array_foreach(json_object_get(network, "seeds"), i, seed)
            json_object_set(seeds, json_string_value(seed), seed);
    return seeds;
}

static void say_differences(struct dl2_sentence *writer, const char *noun, json_t *first,
                            json_t *earlier, json_t *now)
{
    say_names(writer, noun, earlier, now, "left out");
    say_names(writer, noun, now, first, "added");
}

/* All of the looks before `count`, together. */
struct plan_union {
    json_t *variants, *networks, *seeds;
};

static struct plan_union unite(const struct plan_look *looks, size_t count)
{
    struct plan_union all = {dl2_keep_json(json_object()), dl2_keep_json(json_object()),
                             dl2_keep_json(json_object())};
    for (size_t i = 0; i < count; i++) {
        json_object_update_missing(all.variants, looks[i].variants);
        json_object_update_missing(all.networks, looks[i].networks);
        json_object_update_missing(all.seeds, seeds_of(looks[i].networks));
    }
    return all;
}

/* Are images of a network grouped otherwise than when it was first looked at? */
static bool has_regrouped(const struct plan_look *looks, size_t count)
{
    const struct plan_look *now = &looks[count - 1];
    const char *name;
    json_t *ignored;
    json_object_foreach(now->networks, name, ignored)
    {
        size_t first = 0;
        while (!json_object_get(looks[first].networks, name))
            first++;
        if (!have_same_groups(&looks[first], now, name))
            return true;
    }
    return false;
}

static void say_tolerance(struct dl2_sentence *writer, const char *before,
                          const struct plan_look *look)
{
    if (look->percent > 0)
        dl2_say(writer, "%s%g%%", before, look->percent);
    else
        dl2_say(writer, "%s%g", before, look->tolerance);
}

/* "tolerance from 1 to 2 points, codec webp left out, seeds 4 5 added" of the last of `looks`; ""
 * where it is as planned. */
static void say_changes(struct dl2_sentence *writer, const struct dl2_accuracy_kind *kind,
                        const struct plan_look *looks, size_t count)
{
    const struct plan_look *first = &looks[0], *now = &looks[count - 1];
    json_int_t repeated = 0;
    bool other_tolerance = false;
    for (size_t i = 0; i < count; i++) {
        repeated += looks[i].repeated;
        other_tolerance |= !have_same_tolerance(&looks[i], first);
    }
    if (other_tolerance)
        say_tolerance(writer, "tolerance from ", first);
    for (size_t i = 1; i < count; i++)
        if (!have_same_tolerance(&looks[i], &looks[i - 1]))
            say_tolerance(writer, " to ", &looks[i]);
    if (other_tolerance)
        dl2_say(writer,
                now->percent > 0 ? " of the original's" : dl2_accuracy_words(kind, " points"));
    const struct plan_union earlier = unite(looks, count - 1);
    json_t *first_codecs = codecs_of(first->variants), *codecs = codecs_of(now->variants);
    json_t *seeds = seeds_of(now->networks);
    const bool as_planned = json_equal(first->planned, now->planned);
    say_differences(writer, "codec", first_codecs, codecs_of(earlier.variants), codecs);
    say_names(writer, "variant", variants_of(earlier.variants, codecs), now->variants, "left out");
    say_names(writer, "variant", variants_of(now->variants, first_codecs), first->variants,
              "added");
    say_differences(writer, "network", first->networks, earlier.networks, now->networks);
    say_names(writer, "seed", earlier.seeds, seeds, "left out");
    if (!as_planned || !json_array_size(now->planned))
        say_names(writer, "seed", seeds, seeds_of(first->networks), "added");
    if (!as_planned)
        dl2_say(writer, "%sother numbers of seeds to look at", writer->used ? ", " : "");
    if (has_regrouped(looks, count))
        dl2_say(writer, "%simages grouped otherwise", writer->used ? ", " : "");
    if (repeated)
        dl2_say(writer, "%s%lld training%s left out or with other results",
                writer->used ? ", " : "", (long long)repeated, repeated == 1 ? "" : "s");
    if (!writer->used && !json_array_size(now->planned))
        dl2_say(writer, "other trainings");
}

static struct dl2_sentence new_note(struct dl2_plan *plan)
{
    char *note = plan->notes[plan->note_count++];
    return (struct dl2_sentence){note, sizeof plan->notes[0], 0};
}

static void write_notes(struct dl2_plan *plan, const struct dl2_accuracy_kind *kind,
                        const struct plan_look *looks, size_t count, bool nothing_left)
{
    const size_t given_up = json_array_size(json_object_get(plan->file, "earlier"));
    char changes[900] = "";
    struct dl2_sentence writer = {changes, sizeof changes, 0};
    if (count > 1)
        say_changes(&writer, kind, looks, count);
    if (writer.used) {
        writer = new_note(plan);
        dl2_say(&writer, "Changed after results were seen: %s (look %zu of this plan).", changes,
                count);
    }
    if (given_up) {
        writer = new_note(plan);
        dl2_say(&writer, "%zu earlier plan%s of this study %s given up.", given_up,
                given_up == 1 ? "" : "s", given_up == 1 ? "was" : "were");
    }
    if (nothing_left) {
        writer = new_note(plan);
        dl2_say(&writer, "Earlier looks have spent the whole error of this plan: no more can be "
                         "claimed. dl2-report new-plan starts another.");
    }
}

/* ---- A look */

/* Fills the questions; `looks` are those before this one. Returns whether nothing is left to be
 * claimed. */
static bool ask(struct dl2_plan *plan, const struct dl2_study *study, const struct plan_look *looks,
                size_t count, const struct dl2_question *question)
{
    const struct plan_look now = look_of(plan->now);
    json_t *before = json_object_get(plan->file, "trainings");
    size_t repeated = 0;
    bool nothing_left = count > 0;
    for (size_t a = 0; a < study->arch_count; a++) {
        const char *arch = study->archs[a];
        json_t *own = json_object_get(plan->trainings, arch), *old = json_object_get(before, arch);
        if (!own)
            continue;
        const json_t *raw = json_object_get(own, "raw");
        const struct purse purse = open_purse(looks, count, &now, arch, old, own);
        struct plan_network network;
        spend(&purse, count == 0, &now, &question->looks, json_object_size(raw), study->as_it_is,
              &network);
        bool *within = plan->within + a * study->variant_count;
        carry_claims(study, &purse, &now, old, own, within);
        repeated += count_repeated(old, own);
        nothing_left &= purse.spent > 1 - 1e-9 &&
                        !(reached_share(&network.looks, json_object_size(raw)) > 1e-9);
        plan->questions[a].looks = network.looks;
        json_object_set_new(now.networks, arch, show_network(&network, raw, study, within));
    }
    json_object_set_new(plan->now, "repeated", json_integer((json_int_t)repeated));
    return nothing_left;
}

/* The same, of a look that was seen before: its own claims are tested again, for what it claims
 * first decides which variants the next tests reach, and so what seeds decide wants. */
static void ask_again(struct dl2_plan *plan, const struct dl2_study *study,
                      const struct plan_look *look)
{
    for (size_t a = 0; a < study->arch_count; a++) {
        struct plan_network network;
        size_t i;
        json_t *name;
        if (!read_network(json_object_get(look->networks, study->archs[a]), &network))
            continue;
        plan->questions[a].looks = network.looks;
        json_array_foreach(network.standing, i, name)
        {
            const size_t v = dl2_study_find(study, json_string_value(name));
            if (v < study->variant_count)
                plan->within[a * study->variant_count + v] = true;
        }
    }
}

/* `looks` has room for one more. */
static void open_look(struct dl2_plan *plan, const struct dl2_study *study,
                      const struct dl2_question *question, struct plan_look *looks, size_t count)
{
    const char *data = json_string_value(json_object_get(plan->now, "data"));
    size_t seen = 0;
    bool nothing_left = false;
    for (size_t i = 0; i < count; i++)
        looks[i] = look_of(json_array_get(json_object_get(plan->file, "looks"), i));
    while (seen < count && strcmp(looks[seen].data, data) != 0)
        seen++;
    plan->is_new = seen == count;
    plan->look = seen + 1;
    if (plan->is_new) {
        nothing_left = ask(plan, study, looks, count, question);
        looks[count] = look_of(plan->now);
    } else {
        ask_again(plan, study, &looks[seen]);
    }
    const struct plan_union all = unite(looks, plan->look);
    const size_t codecs = json_object_size(codecs_of(all.variants));
    for (size_t a = 0; a < study->arch_count; a++) {
        plan->questions[a].codecs = codecs;
        plan->questions[a].networks = json_object_size(all.networks);
    }
    write_notes(plan, dl2_study_accuracy(study), looks, plan->look, nothing_left);
}

int dl2_plan_asked(const char *folder, struct dl2_asked *asked, struct dl2_error *error)
{
    json_t *file = NULL;
    json_auto_t *answer = NULL;
    *asked = (struct dl2_asked){.tolerance = NAN};
    DL2_TRY(load(plan_path(folder), &file, error));
    json_t *looks = json_object_get(file, "looks");
    const size_t count = json_array_size(looks);
    dl2_json_load(dl2_text("%s/report/answer.json", folder), "dl2-answer/1", &answer, NULL);
    const long long shown = dl2_json_get_integer(answer, "look", 0);
    json_t *json =
        json_array_get(looks, shown > 0 && (size_t)shown <= count ? (size_t)shown - 1 : count - 1);
    if (!json)
        return DL2_OK;
    const struct plan_look look = look_of(json);
    size_t i;
    const json_t *seeds;
    asked->tolerance = look.tolerance;
    asked->percent = look.percent;
    asked->group = group_of(folder, json);
    json_array_foreach(look.planned, i, seeds) if (asked->looks.count < DL2_MAX_LOOKS - 1)
        asked->looks.seeds[asked->looks.count++] = (size_t)json_integer_value(seeds);
    return DL2_OK;
}

int dl2_plan_open(const char *folder, const struct dl2_study *study,
                  const struct dl2_question *question, bool records, struct dl2_plan *plan,
                  struct dl2_error *error)
{
    *plan = (struct dl2_plan){.lock = -1, .records = records};
    plan->questions = dl2_keep(study->arch_count, sizeof *plan->questions, "the plan");
    plan->within = dl2_keep(study->arch_count, study->variant_count * sizeof(bool), "the plan");
    plan->path = plan_path(folder);
    plan->trainings = list_trainings(study);
    for (size_t a = 0; a < study->arch_count; a++) {
        plan->questions[a] = *question;
        plan->questions[a].within = plan->within + a * study->variant_count;
        dl2_looks_plan(&plan->questions[a].looks, 0, 1);
    }
    if (json_object_size(plan->trainings) == 0)
        return DL2_OK;
    if (records)
        plan->lock = lock_folder(plan->path, NULL);
    DL2_TRY(load(plan->path, &plan->file, error));
    plan->now = describe(folder, study, question, plan->trainings);
    const size_t count = json_array_size(json_object_get(plan->file, "looks"));
    DL2_AUTO_FREE struct plan_look *looks = dl2_room(count + 1, sizeof *looks, "the plan");
    open_look(plan, study, question, looks, count);
    return DL2_OK;
}

static void unlock(int *lock)
{
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
}

/* Adds this look to the file. */
static int record_look(struct dl2_plan *plan, const struct dl2_study *study,
                       const struct dl2_analysis *analyses, struct dl2_error *error)
{
    for (size_t a = 0; a < study->arch_count; a++) {
        json_t *within = json_object_get(
            json_object_get(json_object_get(plan->now, "networks"), study->archs[a]), "within");
        for (size_t v = 0; within && v < study->variant_count; v++)
            if (analyses[a].comparisons[v].verdict == DL2_VERDICT_WITHIN)
                json_array_append_new(within, json_string(study->variants[v].name));
    }
    json_array_append(json_object_get(plan->file, "looks"), plan->now);
    json_object_update(json_object_get(plan->file, "trainings"), plan->trainings);
    DL2_TRY(dl2_make_folder_of(plan->path, error));
    return dl2_json_save(plan->path, plan->file, error);
}

int dl2_plan_record(struct dl2_plan *plan, const struct dl2_study *study,
                    const struct dl2_analysis *analyses, struct dl2_error *error)
{
    struct dl2_error why = DL2_ERROR_INIT;
    struct dl2_sentence writer;
    if (plan->is_new && !plan->records) {
        writer = new_note(plan);
        dl2_say(&writer, "This page is not recorded as a look at the study, because it is not in "
                         "the folder report/ of the study.");
        return DL2_OK;
    }
    const int status = plan->is_new ? record_look(plan, study, analyses, &why) : DL2_OK;
    unlock(&plan->lock);
    if (status != DL2_ERR_SYSTEM)
        return dl2_error_copy(error, &why);
    writer = new_note(plan);
    dl2_say(&writer,
            "This look at the results was not recorded, so a later report does not count it: %s.",
            why.message);
    return DL2_OK;
}

int dl2_plan_give_up(const char *folder, struct dl2_error *error)
{
    struct dl2_error why = DL2_ERROR_INIT;
    DL2_CLEANUP(unlock) int lock = -1;
    const char *path = plan_path(folder);
    json_t *old = NULL, *earlier = NULL, *ended;
    if (access(path, F_OK) != 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: no plan to give up: no report has shown a verdict yet", path);
    lock = lock_folder(path, error);
    if (load(path, &old, &why) == DL2_OK) {
        const json_t *looks = json_object_get(old, "looks"), *first = json_array_get(looks, 0);
        if (!first)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: no plan to give up: no report has shown a verdict under "
                                 "this one yet",
                                 path);
        ended = json_pack("{s:O,s:o,s:O,s:I}", "date", json_object_get(first, "date"), "given_up",
                          date_now(), "tolerance", json_object_get(first, "tolerance"), "looks",
                          (json_int_t)json_array_size(looks));
        earlier = json_deep_copy(json_object_get(old, "earlier"));
    } else if (why.status != DL2_ERR_SYSTEM) {
        earlier = json_array();
        ended =
            json_pack("{s:o,s:o}", "given_up", date_now(), "broken", dl2_json_text(why.message));
    } else {
        return dl2_error_copy(error, &why);
    }
    json_array_append_new(earlier, ended);
    return dl2_json_save(path, new_file(earlier), error);
}
