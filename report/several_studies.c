/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/several_studies.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "common/stats.h"
#include "report/sentence.h"
#include "report/study.h"
#include "report/text_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Are they of different datasets? */

/* The hash of the original's images in a part of its trainings, "training" or "validation", or
 * NULL. */
static const char *hash_of_images(const struct dl2_study *study, const char *part)
{
    const size_t raw = dl2_study_find(study, "raw");
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].variant == raw) {
            const json_t *hashes = json_object_get(study->runs[i].report, "data_hashes");
            return json_string_value(json_array_get(json_object_get(hashes, part), 0));
        }
    return NULL;
}

static bool have_equal_fingerprints(const char *a, const char *b)
{
    enum { MAX_BYTES = 256 };
    const char *const folders[] = {a, b};
    struct dl2_bytes text[2] = {DL2_BYTES_INIT, DL2_BYTES_INIT};
    for (int i = 0; i < 2; i++) {
        if (dl2_file_read(dl2_text("%s/.make/dataset", folders[i]), MAX_BYTES, &text[i], NULL) < 0)
            text[i].size = 0; /* of another version of dl2-study, or without it */
    }
    const bool equal = text[0].size > 1 && text[0].size == text[1].size &&
                       memcmp(text[0].data, text[1].data, text[0].size) == 0;
    dl2_bytes_free(&text[0]);
    dl2_bytes_free(&text[1]);
    return equal;
}

/* What shows that two studies are of one dataset, or NULL. */
static const char *find_sameness(const struct dl2_source_study *a, const struct dl2_source_study *b)
{
    struct stat own, other;
    if (stat(a->folder, &own) == 0 && stat(b->folder, &other) == 0 && own.st_dev == other.st_dev &&
        own.st_ino == other.st_ino)
        return "they are one folder";
    if (have_equal_fingerprints(a->folder, b->folder))
        return "their fingerprints are equal";
    static const char *const parts[] = {"training", "validation"};
    static const char *const texts[] = {"their training images are the same",
                                        "their validation images are the same"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *x = hash_of_images(&a->study, parts[i]);
        const char *y = hash_of_images(&b->study, parts[i]);
        if (x && y && strcmp(x, y) == 0)
            return texts[i];
    }
    return NULL;
}

static int expect_different_datasets(const struct dl2_several_studies *several,
                                     struct dl2_error *error)
{
    for (size_t i = 0; i < several->count; i++)
        for (size_t k = 0; k < i; k++) {
            const char *same = find_sameness(&several->sources[k], &several->sources[i]);
            if (same)
                return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                     "%s and %s are studies of the same dataset (%s), so that they "
                                     "are not independent: name one of them",
                                     several->sources[k].folder, several->sources[i].folder, same);
        }
    return DL2_OK;
}

/* Sets several->kind, and the tolerance where none is asked. One in percent is of each original,
 * where verdicts have one. */
static int expect_one_metric(struct dl2_several_studies *several, struct dl2_error *error)
{
    double *tolerance = &several->question.tolerance;
    several->kind = dl2_study_accuracy(&several->sources[0].study);
    for (size_t i = 1; i < several->count; i++) {
        const struct dl2_accuracy_kind *kind = dl2_study_accuracy(&several->sources[i].study);
        if (several->kind->is_foreign != kind->is_foreign ||
            (kind->is_foreign && !dl2_accuracy_kinds_equal(several->kind, kind)))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s is of %s, %s of %s: name studies of one metric",
                                 several->sources[0].folder, several->kind->name,
                                 several->sources[i].folder, kind->name);
    }
    if (several->question.percent > 0 || (isnan(*tolerance) && !several->kind->is_percent))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "the tolerance of several studies is in the unit of %s, not in "
                             "percent of the original's: name one by --tolerance",
                             several->kind->name);
    *tolerance = isnan(*tolerance) ? 1 : *tolerance;
    return DL2_OK;
}

/* ---- Reading them */

/* Their folders without what all begin with. */
static void name_studies(struct dl2_several_studies *several)
{
    size_t common = 0;
    const char *first = several->sources[0].folder;
    for (size_t end = 0; first[end]; end++) {
        for (size_t i = 1; i < several->count; i++)
            if (several->sources[i].folder[end] != first[end])
                goto done;
        if (first[end] == '/')
            common = end + 1;
    }
done:
    for (size_t i = 0; i < several->count; i++) {
        const char *name = several->sources[i].folder + common;
        several->sources[i].name = *name ? name : several->sources[i].folder;
    }
}

static int collect_study(struct dl2_source_study *source,
                         const struct dl2_study_selection *selection, struct dl2_study *notes,
                         struct dl2_error *error)
{
    DL2_TRY(dl2_study_collect(source->folder, selection, &source->study, error));
    dl2_study_add_notes(notes, &source->study, source->name);
    return DL2_OK;
}

/* ---- With like settings */

/* How two studies differ in a network, or in a variant; "" where they are alike. */
typedef void compare_sources(const struct dl2_source_study *own, const struct dl2_source_study *its,
                             const char *what, char *out, size_t size);

static void compare_networks(const struct dl2_source_study *own, const struct dl2_source_study *its,
                             const char *arch, char *out, size_t size)
{
    dl2_study_compare_trainings(&own->study, &its->study, arch, out, size);
}

static void compare_variants(const struct dl2_source_study *own, const struct dl2_source_study *its,
                             const char *name, char *out, size_t size)
{
    dl2_study_compare_variants(&own->study.variants[dl2_study_find(&own->study, name)],
                               &its->study.variants[dl2_study_find(&its->study, name)], out, size);
}

/*
 * Leaves those studies in `has` that are as most are, and of two ways that are equally common, that
 * of the study which was named first. The others are noted. Returns how many are left.
 */
static size_t keep_alike(const struct dl2_several_studies *several, compare_sources *compare,
                         const char *what, bool *has, struct dl2_study *notes)
{
    size_t usual = several->count, most = 0, left = 0;
    char difference[1024];
    for (size_t i = 0; i < several->count; i++) {
        size_t alike = 0;
        for (size_t k = 0; has[i] && k < several->count; k++) {
            if (!has[k])
                continue;
            compare(&several->sources[k], &several->sources[i], what, difference,
                    sizeof difference);
            alike += !difference[0];
        }
        if (alike > most) {
            most = alike;
            usual = i;
        }
    }
    for (size_t i = 0; i < several->count; i++) {
        if (!has[i])
            continue;
        compare(&several->sources[i], &several->sources[usual], what, difference,
                sizeof difference);
        has[i] = !difference[0];
        left += has[i];
        if (!has[i])
            dl2_study_leave_out(notes, "%s, %s: unlike %s, %s", several->sources[i].name, what,
                                several->sources[usual].name, difference);
    }
    return left;
}

/* A network or a variant that one study alone has, with these settings. */
static void note_alone(const struct dl2_several_studies *several, const char *what, const bool *has,
                       struct dl2_study *notes)
{
    for (size_t i = 0; i < several->count; i++)
        if (has[i])
            dl2_study_leave_out(notes, "%s, %s: no other study has results like it",
                                several->sources[i].name, what);
}

/* ---- A variant over the studies */

static const struct dl2_analysis *find_analysis(const struct dl2_source_study *source,
                                                const char *arch)
{
    return &source->analyses[dl2_study_find_arch(&source->study, arch)];
}

static const struct dl2_comparison *find_comparison(const struct dl2_source_study *source,
                                                    const char *arch, size_t variant)
{
    return &find_analysis(source, arch)->comparisons[variant];
}

static struct dl2_spread spread_of(const struct dl2_comparison *comparison)
{
    return dl2_counts_images(comparison) ? comparison->both : comparison->training;
}

/* Half the interval, however wide. */
static double half_of(const struct dl2_source_study *source, const char *arch, size_t variant)
{
    const struct dl2_comparison *comparison = find_comparison(source, arch, variant);
    const struct dl2_spread spread = spread_of(comparison);
    const struct dl2_looks *looks = &find_analysis(source, arch)->question.looks;
    return dl2_spread_half(&spread, dl2_interval_tail(looks, comparison->pairs));
}

/*
 * Where seeds were added look by look, an interval has the error of a look on each side. The
 * p-value is divided by what part of all the error that is, which holds at whatever look a study
 * ended.
 */
static double p_of(const struct dl2_comparison *comparison, double half, double tolerance)
{
    const struct dl2_spread spread = spread_of(comparison);
    const double p = dl2_noninferiority_p(comparison->difference, &spread, tolerance);
    if (!(spread.variance > 0))
        return p;
    const double tail = dl2_student_tail(half / sqrt(spread.variance), spread.freedom);
    return fmin(1, p / fmin(1, tail / DL2_CLAIMS_LEVEL));
}

/* Fills in a variant of a network from the studies in `has`. */
static void pool_variant(struct dl2_several_studies *several, const char *arch, const bool *has,
                         struct dl2_shared_variant *variant)
{
    const size_t studies = several->count;
    double *variances = dl2_keep(studies, sizeof *variances, "%zu studies", studies);
    double logarithms = 0;
    variant->sources = dl2_keep(studies, sizeof *variant->sources, "%zu studies", studies);
    variant->differences = dl2_keep(studies, sizeof *variances, "%zu studies", studies);
    variant->halves = dl2_keep(studies, sizeof *variances, "%zu studies", studies);
    variant->p = dl2_keep(studies, sizeof *variances, "%zu studies", studies);
    for (size_t i = 0; i < several->count; i++) {
        struct dl2_source_study *source = &several->sources[i];
        if (!has[i])
            continue;
        source->is_used = true;
        const size_t v = dl2_study_find(&source->study, variant->name), n = variant->count++;
        const struct dl2_comparison *comparison = find_comparison(source, arch, v);
        variant->codec = source->study.variants[v].codec;
        variant->sources[n] = i;
        variant->differences[n] = comparison->difference;
        variant->halves[n] = half_of(source, arch, v);
        variant->p[n] = p_of(comparison, variant->halves[n], several->question.tolerance);
        variances[n] = spread_of(comparison).variance;
        logarithms += log(source->study.variants[v].ratio);
    }
    variant->ratio = exp(logarithms / (double)variant->count);
    dl2_random_effects(variant->differences, variances, variant->count, &variant->effects);
    dl2_partial_conjunction(variant->p, variant->count);
}

/* Which of the studies in `of_network` can say something of a variant. The others are noted, but
 * for those that never trained on it. */
static void find_studies(const struct dl2_several_studies *several, const char *arch,
                         const char *name, const bool *of_network, bool *has,
                         struct dl2_study *notes)
{
    for (size_t i = 0; i < several->count; i++) {
        const struct dl2_source_study *source = &several->sources[i];
        const size_t v = dl2_study_find(&source->study, name);
        has[i] = of_network[i] && v < source->study.variant_count &&
                 isfinite(find_comparison(source, arch, v)->difference);
        if (!has[i])
            continue;
        const char *lack = !isfinite(half_of(source, arch, v))
                               ? "too few trainings for an interval; train from more seeds"
                           : !isfinite(source->study.variants[v].ratio) ? "its size is not known"
                                                                        : NULL;
        has[i] = !lack;
        if (lack)
            dl2_study_leave_out(notes, "%s, %s, %s: %s", source->name, name, arch, lack);
    }
}

/* Adds a variant to the network, unless it is there already or cannot be pooled. */
static void add_variant(struct dl2_several_studies *several, const char *name,
                        const bool *of_network, struct dl2_shared_network *network, bool *has,
                        struct dl2_study *notes)
{
    for (size_t i = 0; i < network->variant_count; i++)
        if (strcmp(network->variants[i].name, name) == 0)
            return;
    find_studies(several, network->arch, name, of_network, has, notes);
    if (keep_alike(several, compare_variants, name, has, notes) < 2) {
        note_alone(several, dl2_text("%s, %s", name, network->arch), has, notes);
        return;
    }
    network->variants =
        dl2_keep_more(network->variants, network->variant_count, sizeof *network->variants);
    struct dl2_shared_variant *variant = &network->variants[network->variant_count++];
    *variant = (struct dl2_shared_variant){.name = name};
    pool_variant(several, network->arch, has, variant);
}

/* By codec, then from the largest to the smallest. */
static int compare_shared(const void *a, const void *b)
{
    const struct dl2_shared_variant *x = a, *y = b;
    const int order = strcmp(x->codec, y->codec);
    if (order || x->ratio > y->ratio || x->ratio < y->ratio)
        return order ? order : x->ratio > y->ratio ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* ---- Claims */

void dl2_shared_network_claim(struct dl2_shared_network *network, size_t networks)
{
    const struct dl2_looks once = {1, {1}, {1}};
    size_t count = 0, codecs = 0, n = 0;
    for (size_t v = 0; v < network->variant_count; v++)
        count += network->variants[v].count;
    DL2_AUTO_FREE struct dl2_study_claim *claims = dl2_room(count, sizeof *claims, "claims");
    for (size_t v = 0; v < network->variant_count; v++) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        codecs += v == 0 || strcmp(variant->codec, variant[-1].codec) != 0;
        /* A p-value is tested as the normal deviate that it belongs to; later ones as smaller. */
        for (size_t k = 0; k < variant->count; k++, n++)
            claims[n] = (struct dl2_study_claim){
                .codec = codecs - 1,
                .bytes = (double)(count - n),
                .difference = dl2_student_quantile(fmin(1, fmax(1e-30, variant->p[k])), INFINITY),
                .spread = {.variance = 1, .freedom = INFINITY}};
    }
    dl2_claims_test(claims, count, codecs, networks, 0, &once, 0);
    n = 0;
    for (size_t v = 0; v < network->variant_count; v++) {
        struct dl2_shared_variant *variant = &network->variants[v];
        variant->was_tested = claims[n].level > 0;
        for (size_t k = 0; k < variant->count; k++, n++)
            variant->within += claims[n].within;
    }
}

/* ---- All of it */

static void add_network(struct dl2_several_studies *several, const char *arch, bool *has,
                        struct dl2_study *notes)
{
    bool *of_variant = has + several->count;
    for (size_t i = 0; i < several->network_count; i++)
        if (strcmp(several->networks[i].arch, arch) == 0)
            return;
    for (size_t i = 0; i < several->count; i++) {
        const struct dl2_study *study = &several->sources[i].study;
        has[i] = dl2_study_find_arch(study, arch) < study->arch_count;
    }
    if (keep_alike(several, compare_networks, arch, has, notes) < 2) {
        note_alone(several, arch, has, notes);
        return;
    }
    several->networks =
        dl2_keep_more(several->networks, several->network_count, sizeof *several->networks);
    struct dl2_shared_network *network = &several->networks[several->network_count++];
    *network = (struct dl2_shared_network){.arch = arch};
    for (size_t i = 0; i < several->count; i++)
        for (size_t v = 0; has[i] && v < several->sources[i].study.variant_count; v++)
            if (strcmp(several->sources[i].study.variants[v].name, "raw") != 0)
                add_variant(several, several->sources[i].study.variants[v].name, has, network,
                            of_variant, notes);
    if (network->variant_count)
        qsort(network->variants, network->variant_count, sizeof *network->variants, compare_shared);
    else
        several->network_count--;
}

int dl2_several_studies_collect(char *const *folders, size_t count,
                                const struct dl2_study_selection *selection,
                                const struct dl2_question *question,
                                struct dl2_several_studies *several, struct dl2_study *notes,
                                struct dl2_error *error)
{
    *several = (struct dl2_several_studies){.question = *question};
    DL2_AUTO_FREE bool *has = dl2_room(2 * count, sizeof *has, "studies");
    several->sources = dl2_keep(count, sizeof *several->sources, "studies");
    several->count = count;
    for (size_t i = 0; i < count; i++)
        several->sources[i].folder = folders[i];
    name_studies(several);
    for (size_t i = 0; i < count; i++)
        DL2_TRY(collect_study(&several->sources[i], selection, notes, error));
    DL2_TRY(expect_one_metric(several, error));
    DL2_TRY(expect_different_datasets(several, error));
    for (size_t i = 0; i < count; i++)
        several->sources[i].analyses =
            dl2_analyze_all(&several->sources[i].study, &several->question);
    for (size_t i = 0; i < count; i++)
        for (size_t a = 0; a < several->sources[i].study.arch_count; a++)
            add_network(several, several->sources[i].study.archs[a], has, notes);
    if (!several->network_count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "these %zu studies have nothing in common: no network was trained "
                             "on the original and a variant in two of them with like settings",
                             count);
    for (size_t i = 0; i < several->network_count; i++)
        dl2_shared_network_claim(&several->networks[i], several->network_count);
    return DL2_OK;
}

/* ---- In words */

/* "all 4 datasets", "at least 3 of 4 datasets" */
static void say_claim(struct dl2_sentence *writer, const struct dl2_shared_variant *variant)
{
    if (variant->within == variant->count)
        dl2_say(writer, "all %zu datasets", variant->count);
    else
        dl2_say(writer, "at least %zu of %zu datasets", variant->within, variant->count);
}

static void say_mean(struct dl2_sentence *writer, const struct dl2_accuracy_kind *kind,
                     const struct dl2_random_effects *effects)
{
    dl2_say(writer, dl2_accuracy_words(kind, "mean accuracy %s points (95%% interval %s)"),
            dl2_signed(kind, effects->mean), dl2_interval(kind, effects->mean, effects->half));
}

/* The smallest of the variants that are claimed on all datasets, or on more than half of them; or,
 * where `mean` is given, whose mean is above it. NULL: none. */
static const struct dl2_shared_variant *find_smallest(const struct dl2_shared_network *network,
                                                      bool all, const double *mean)
{
    const struct dl2_shared_variant *found = NULL;
    for (size_t v = 0; v < network->variant_count; v++) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        const bool good = mean  ? variant->effects.mean >= *mean
                          : all ? variant->within == variant->count
                                : 2 * variant->within > variant->count;
        if (good && variant->ratio < 1 && (!found || variant->ratio < found->ratio))
            found = variant;
    }
    return found;
}

static void add_row(struct dl2_text_table *table, const struct dl2_several_studies *several,
                    const struct dl2_shared_variant *variant)
{
    const struct dl2_random_effects *effects = &variant->effects;
    const char **cells = dl2_text_row(table);
    cells[0] = variant->name;
    cells[1] = dl2_number("%.3g%%", 100 * variant->ratio);
    cells[2] = dl2_text("%s (%s)", dl2_signed(several->kind, effects->mean),
                        dl2_interval(several->kind, effects->mean, effects->half));
    cells[3] = dl2_interval(several->kind, effects->mean, effects->half_new);
    cells[4] = variant->within == variant->count ? dl2_text("all %zu", variant->count)
               : variant->within ? dl2_text("at least %zu of %zu", variant->within, variant->count)
                                 : (variant->was_tested ? "not shown" : "not tested");
}

/* The original, the variants that the sentences name, and the next ones. */
static void make_table(const struct dl2_several_studies *several,
                       const struct dl2_shared_network *network,
                       const struct dl2_shared_variant *const *named, size_t count,
                       struct dl2_several_answer *answer)
{
    enum { MOST_ROWS = 5 };
    const struct dl2_accuracy_kind *kind = several->kind;
    const char *points = dl2_count_points(kind, several->question.tolerance);
    const char *const heads[][DL2_TEXT_COLUMNS] = {
        {"", "", dl2_text("mean %s%s", kind->title, kind->is_lower_better ? ", better by" : ""),
         "one more", "datasets"},
        {"variant", "bytes", dl2_text("%s%s(95%% interval)", kind->unit, *kind->unit ? " " : ""),
         "dataset", dl2_text("within %s", points)},
        {"original", "100%", NULL, NULL, NULL}};
    struct dl2_text_table table = {0};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        memcpy(dl2_text_row(&table), heads[i], sizeof *heads);
    for (size_t i = 0; i < count; i++)
        if (named[i] && (!i || named[i] != named[i - 1]))
            add_row(&table, several, named[i]);
    for (size_t v = network->variant_count; v-- > 0 && table.count < DL2_TEXT_HEADS + MOST_ROWS;) {
        bool has = false;
        for (size_t i = 0; i < count; i++)
            has |= named[i] == &network->variants[v];
        if (!has)
            add_row(&table, several, &network->variants[v]);
    }
    answer->lines = dl2_text_lines(&table);
    answer->line_count = table.count;
}

void dl2_several_answer_make(const struct dl2_several_studies *several,
                             const struct dl2_shared_network *network,
                             struct dl2_several_answer *answer)
{
    const struct dl2_accuracy_kind *kind = several->kind;
    const double limit = -several->question.tolerance;
    const struct dl2_shared_variant *most = find_smallest(network, false, NULL);
    const struct dl2_shared_variant *all = find_smallest(network, true, NULL);
    const struct dl2_shared_variant *shown = most ? most : find_smallest(network, false, &limit);
    struct dl2_sentence headline = {answer->headline, sizeof answer->headline, 0};
    struct dl2_sentence details = {answer->details, sizeof answer->details, 0};
    struct dl2_sentence caveats = {answer->caveats, sizeof answer->caveats, 0};
    const char *points = dl2_count_points(kind, several->question.tolerance);
    answer->details[0] = answer->caveats[0] = '\0';
    make_table(several, network, (const struct dl2_shared_variant *[]){shown, all}, 2, answer);
    if (most) {
        dl2_say(&headline, "%s is within %s on ", most->name, points);
        say_claim(&headline, most);
        dl2_say(&headline, ", %.3g times smaller.", 1 / most->ratio);
    } else {
        dl2_say(&headline, "No smaller variant is shown to be within %s on most datasets.", points);
    }
    if (!shown) {
        dl2_say(&caveats, " No smaller variant has a mean within.");
        return;
    }
    dl2_say(&details, "%s: ", shown->name);
    say_mean(&details, kind, &shown->effects);
    dl2_say(&details, "; one more dataset would measure %s (95%% prediction interval).",
            dl2_interval(kind, shown->effects.mean, shown->effects.half_new));
    if (all && all != most) {
        dl2_say(&details, " Within on ");
        say_claim(&details, all);
        dl2_say(&details, ": %s, %.3g times smaller, ", all->name, 1 / all->ratio);
        say_mean(&details, kind, &all->effects);
        dl2_say(&details, ".");
    }
    for (size_t i = 0; i < shown->count; i++)
        if (shown->differences[i] + shown->halves[i] < limit)
            dl2_say(&caveats, dl2_accuracy_words(kind, " On %s %s loses more than %s."),
                    several->sources[shown->sources[i]].name, shown->name, points);
    if (shown->count < 4)
        dl2_say(&caveats, " With %zu datasets these intervals are wide.", shown->count);
    if (!most)
        dl2_say(&caveats, " More seeds and validation images in each study would tell more.");
}
