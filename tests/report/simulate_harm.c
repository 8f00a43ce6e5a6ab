/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do bounds on the worst class, differences of the loss and of two networks hold? As simulate.c,
 * with studies whose truth is known: images are drawn from a population of POPULATION, over which
 * every truth is a sum.
 *
 *   simulate_harm [STUDIES [WORDS]]     of each kind whose name has these words; without, as many
 * of each as a test has time for
 *
 * An image is right in a training if its ease + the class's shift + the variant's effect on it +
 * the training's luck, with all images and with those of the class, + chance is above 0. Its loss
 * is log(1 + exp(-2 x that)). Networks share a part of an image's ease, and of the effect on it.
 */
#include "common/random.h"
#include "report/class_harm.h"
#include "report/loss_change.h"
#include "report/transfer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POPULATION = 20000,
    MAX_VARIANTS = 4, /* with the original */
    MAX_SEEDS = 5,
    NETWORKS = 2,
    MAX_CLASSES = 100,
    MAX_IMAGES = 12000,
    KEY = 32,
    STEPS = 60, /* of the integral over luck and chance, 5 standard deviations to each side */
};

struct kind {
    const char *name;
    size_t studies;                                /* in a test */
    size_t seeds, variants, classes, fewest, most; /* images of a class, evenly between */
    double chance, luck, class_luck, effect;
    bool skewed;         /* two modes of ease, effects that harm few images much; else normal */
    double worst, other; /* points that the first class loses, and the others */
    size_t networks;
    double noisy; /* the first class's luck, in that of the others; 0: 1 */
    double first; /* the original's recall of the first class; 0: 0.75, as of the others */
};

static const struct kind kinds[] = {
    {"2 seeds, worst loses 6", 100, 2, 1, 10, 40, 200, 0.15, 0.02, 0.1, 0.2, false, 6, 0, 1},
    {"3 seeds, worst loses 6", 100, 3, 1, 10, 40, 200, 0.15, 0.04, 0.04, 0.1, false, 6, 0, 1},
    {"5 seeds, worst loses 15", 100, 5, 1, 10, 40, 200, 0.15, 0.02, 0.1, 0.2, false, 15, 0, 1},
    {"2 seeds, skewed, worst loses 6", 100, 2, 1, 10, 40, 200, 0.05, 0.02, 0.02, 0.1, true, 6, 0,
     1},
    {"3 seeds, skewed, worst loses 15", 100, 3, 1, 10, 40, 200, 0.15, 0.02, 0.1, 0.2, true, 15, 0,
     1},
    {"5 seeds, skewed, worst loses 6", 100, 5, 1, 10, 40, 200, 0.05, 0.02, 0.02, 0.1, true, 6, 0,
     1},
    {"5 seeds, skewed, all lose 6", 0, 5, 1, 10, 40, 200, 0.05, 0.02, 0.02, 0.1, true, 6, 6, 1},
    {"3 seeds, none loses", 100, 3, 1, 10, 40, 200, 0.15, 0.02, 0.1, 0.2, true, 0, 0, 1},
    {"3 seeds, best of three variants", 100, 3, 3, 10, 40, 200, 0.15, 0.02, 0.05, 0.1, true, 6, 0,
     1},
    {"3 seeds, 100 classes of 50", 0, 3, 1, 100, 50, 50, 0.15, 0.02, 0.05, 0.1, true, 15, 0, 1},
    {"2 seeds, worst is noisy", 100, 2, 1, 10, 40, 200, 0.1, 0.02, 0.05, 0.1, true, 6, 0, 1, 3},
    {"3 seeds, worst is noisy", 0, 3, 1, 10, 200, 200, 0.1, 0.02, 0.05, 0.1, false, 6, 0, 1, 3},
    {"5 seeds, worst is noisy", 100, 5, 1, 10, 40, 200, 0.1, 0.02, 0.05, 0.1, true, 15, 0, 1, 3},
    /* A class that loses all of its little recall: the bound goes by what the original has. */
    {"3 seeds, worst has a recall of 8", 100, 3, 1, 10, 40, 200, 0.15, 0.02, 0.1, 0.1, false, 8, 0,
     1, 0, 0.083},
    {"3 seeds, worst has a recall of 8, noisy", 0, 3, 1, 10, 40, 200, 0.15, 0.02, 0.1, 0.1, true, 8,
     0, 1, 3, 0.083},
    {"2 seeds, two classes", 100, 2, 1, 2, 200, 200, 0.1, 0.02, 0.05, 0.1, true, 6, 0, 1},
    {"2 seeds, two networks", 100, 2, 2, 10, 40, 200, 0.15, 0.02, 0.05, 0.2, false, 2, 1, 2},
    {"3 seeds, two networks, skewed", 100, 3, 1, 10, 40, 200, 0.15, 0.02, 0.05, 0.2, true, 2, 1, 2},
    {"5 seeds, two networks, skewed", 0, 5, 3, 10, 40, 200, 0.05, 0.02, 0.05, 0.2, true, 2, 1, 2},
};

/* ---- The population */

struct image {
    double ease[NETWORKS], effect[NETWORKS];
};

static struct image population[POPULATION];

static double class_luck_of(const struct kind *kind, bool first)
{
    return kind->class_luck * (first && kind->noisy > 0 ? kind->noisy : 1);
}

static double scale_of(const struct kind *kind, bool first)
{
    const double luck = class_luck_of(kind, first);
    return sqrt(kind->chance * kind->chance + kind->luck * kind->luck + luck * luck);
}

static double loss_of(double margin)
{
    return log1p(exp(-2 * margin));
}

/* The second network finds other images hard, and loses others. */
static void draw_population(const struct kind *kind, struct dl2_random *random)
{
    for (size_t i = 0; i < POPULATION; i++)
        for (size_t n = 0; n < NETWORKS; n++) {
            struct image *image = &population[i];
            const bool same = n && dl2_random_uniform(random) < 0.7;
            const bool easy = dl2_random_uniform(random) < 0.7;
            image->ease[n] = same            ? image->ease[0]
                             : !kind->skewed ? dl2_random_normal(random)
                             : easy          ? 1 + 0.4 * dl2_random_normal(random)
                                             : -1 + 0.6 * dl2_random_normal(random);
            image->effect[n] = same            ? image->effect[0]
                               : !kind->skewed ? kind->effect * dl2_random_normal(random)
                                               : kind->effect * log(dl2_random_uniform(random));
        }
}

/* What a variant does to an image; each harms others. */
static double effect_on(size_t image, size_t network, size_t v)
{
    return v ? population[(image + (v - 1) * 4999) % POPULATION].effect[network] : 0;
}

/* The share of the population that is right over all seeds, and its mean loss. */
static double mean_right(const struct kind *kind, size_t network, size_t v, bool first,
                         double shift)
{
    double sum = 0;
    for (size_t i = 0; i < POPULATION; i++)
        sum += erfc(-(population[i].ease[network] + shift + effect_on(i, network, v)) /
                    scale_of(kind, first) / sqrt(2)) /
               2 / POPULATION;
    return sum;
}

static double mean_loss(const struct kind *kind, size_t v, bool first, double shift)
{
    double sum = 0, weights = 0;
    for (int step = 0; step < STEPS; step++) {
        const double z = 10 * (step + 0.5) / STEPS - 5, weight = exp(-z * z / 2);
        weights += weight;
        for (size_t i = 0; i < POPULATION; i++)
            sum += weight / POPULATION *
                   loss_of(population[i].ease[0] + shift + effect_on(i, 0, v) +
                           z * scale_of(kind, first));
    }
    return sum / weights;
}

static double find_shift(const struct kind *kind, size_t network, size_t v, bool first,
                         double right)
{
    double low = -10, high = 10;
    for (int step = 0; step < 40; step++) {
        const double middle = (low + high) / 2;
        *(mean_right(kind, network, v, first, middle) < right ? &low : &high) = middle;
    }
    return low;
}

/* ---- A study */

struct drawing {
    struct dl2_study study;
    struct dl2_study_variant variants[MAX_VARIANTS];
    struct dl2_study_run runs[NETWORKS * MAX_VARIANTS * MAX_SEEDS];
    struct dl2_prediction_table images[NETWORKS];
    char *archs[NETWORKS], names[MAX_VARIANTS][32];
    size_t class_of[MAX_IMAGES], chosen[MAX_IMAGES]; /* of the population */
    double shifts[NETWORKS][MAX_VARIANTS][2]; /* of ease, in other classes and in the first */
    double loss_truth[2];                     /* of the first variant's loss, in the same classes */
};

static void must(bool well, const char *what)
{
    if (!well) {
        fprintf(stderr, "simulate_harm: %s\n", what);
        exit(1);
    }
}

static double loss_of_class(const struct kind *kind, size_t class)
{
    return class ? kind->other : kind->worst;
}

/* What does not change from study to study. */
static void prepare(const struct kind *kind, struct drawing *drawn)
{
    static struct dl2_prediction rows[MAX_IMAGES];
    static char keys[MAX_IMAGES * KEY];
    static char *archs[] = {"a", "b"};
    size_t count = 0;
    *drawn = (struct drawing){.archs = {archs[0], archs[1]}};
    for (size_t c = 0; c < kind->classes; c++) {
        const size_t images = kind->fewest + c * (kind->most - kind->fewest) / (kind->classes - 1);
        for (size_t i = 0; i < images; i++) {
            must(count < MAX_IMAGES, "too many images");
            snprintf(keys + count * KEY, KEY, "%06zu", count);
            rows[count] = (struct dl2_prediction){.target = (int32_t)c};
            drawn->class_of[count++] = c;
        }
    }
    static uint32_t order[MAX_IMAGES];
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t n = 0; n < NETWORKS; n++) {
        drawn->images[n] = (struct dl2_prediction_table){
            .count = count, .keys = keys, .key_size = KEY, .rows = rows, .order = order};
        for (size_t v = 0; v <= kind->variants; v++)
            for (size_t first = 0; first < 2; first++)
                drawn->shifts[n][v][first] =
                    find_shift(kind, n, v, first,
                               (first && kind->first > 0 ? kind->first : 0.75) -
                                   (v ? loss_of_class(kind, !first) / 100 : 0));
    }
    for (size_t first = 0; first < 2; first++)
        drawn->loss_truth[first] = mean_loss(kind, 1, first, drawn->shifts[0][1][first]) -
                                   mean_loss(kind, 0, first, drawn->shifts[0][0][first]);
    drawn->study = (struct dl2_study){.variants = drawn->variants,
                                      .variant_count = 1 + kind->variants,
                                      .runs = drawn->runs,
                                      .archs = drawn->archs,
                                      .arch_count = kind->networks,
                                      .images = drawn->images};
    for (size_t v = 0; v <= kind->variants; v++) {
        snprintf(drawn->names[v], sizeof drawn->names[v], v ? "variant-%zu" : "raw", v);
        drawn->variants[v] = (struct dl2_study_variant){
            .name = drawn->names[v], .codec = v ? "jpeg" : "raw", .bytes = 100.0 - (double)v};
    }
}

static void draw_run(const struct kind *kind, struct dl2_random *random, struct drawing *drawn,
                     size_t network, size_t v, struct dl2_study_run *run)
{
    const double luck = kind->luck * dl2_random_normal(random);
    double of_class[MAX_CLASSES], right = 0;
    for (size_t c = 0; c < kind->classes; c++)
        of_class[c] = luck + class_luck_of(kind, c == 0) * dl2_random_normal(random);
    for (size_t i = 0; i < run->images; i++) {
        const size_t c = drawn->class_of[i];
        const double margin = population[drawn->chosen[i]].ease[network] +
                              drawn->shifts[network][v][c == 0] +
                              effect_on(drawn->chosen[i], network, v) + of_class[c] +
                              kind->chance * dl2_random_normal(random);
        run->outcome[i] = margin > 0;
        run->loss[i] = (float)loss_of(margin);
        right += run->outcome[i];
    }
    run->accuracy = right / (double)run->images;
}

static void draw_study(const struct kind *kind, struct dl2_random *random, struct drawing *drawn)
{
    static float outcome[NETWORKS * MAX_VARIANTS * MAX_SEEDS][MAX_IMAGES];
    static float loss[NETWORKS * MAX_VARIANTS * MAX_SEEDS][MAX_IMAGES];
    struct dl2_study *study = &drawn->study;
    const size_t images = drawn->images[0].count;
    for (size_t i = 0; i < images; i++)
        drawn->chosen[i] = dl2_random_below(random, POPULATION);
    study->run_count = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t n = 0; n < kind->networks; n++)
            for (size_t s = 0; s < kind->seeds; s++) {
                struct dl2_study_run *run = &drawn->runs[study->run_count];
                *run = (struct dl2_study_run){.variant = v,
                                              .arch = drawn->archs[n],
                                              .seed = s,
                                              .outcome = outcome[study->run_count],
                                              .loss = loss[study->run_count],
                                              .images = images};
                draw_run(kind, random, drawn, n, v, run);
                study->run_count++;
            }
}

/* ---- What it says, and whether that is true */

struct tally {
    size_t studies, wrong_bounds, wrong_losers, losers;
    size_t intervals, hold, loss_hold, transfers, wrong_transfers;
    double bound;
};

static void count_classes(const struct kind *kind, const struct drawing *drawn,
                          const struct dl2_analysis *analysis, struct tally *tally)
{
    struct dl2_loss_change changes[MAX_VARIANTS];
    const struct dl2_classes classes = dl2_classes_find(&drawn->images[0]);
    const struct dl2_class_harm *harms = dl2_class_harm_make(&drawn->study, analysis, 0, &classes);
    dl2_loss_changes_make(&drawn->study, analysis, 0, changes);
    must(classes.count == kind->classes, "classes are missing");
    size_t best = 1; /* as a reader would pick it */
    for (size_t v = 2; v <= kind->variants; v++)
        if (analysis->comparisons[v].difference > analysis->comparisons[best].difference)
            best = v;
    const struct dl2_class_harm *harm = &harms[best];
    const double worst = fmax(kind->worst, kind->other);
    double truth = 0;
    bool wrong = false;
    must(harm->judged == kind->classes && harm->pairs == kind->seeds, "classes are not judged");
    for (size_t c = 0; c < harm->count; c++) {
        const struct dl2_class_change *change = &harm->changes[c];
        const double loss = loss_of_class(kind, change->class);
        wrong |= change->loses && loss <= 0;
        tally->losers += change->loses && loss > 0;
        tally->hold += change->low <= -loss && change->high >= -loss;
        truth += drawn->loss_truth[change->class == 0] * (double)change->images /
                 (double)drawn->images[0].count;
    }
    tally->studies++;
    tally->intervals += harm->count;
    tally->wrong_losers += wrong;
    tally->wrong_bounds += harm->bound < worst;
    tally->bound += harm->bound;
    tally->loss_hold += fabs(changes[1].difference - truth) <= changes[1].half;
}

static void count_transfers(const struct drawing *drawn, const struct dl2_analysis *analyses,
                            struct tally *tally)
{
    size_t count;
    bool wrong = false;
    const struct dl2_transfer *transfers = dl2_transfers_make(&drawn->study, analyses, &count);
    for (size_t i = 0; i < count; i++) {
        must(transfers[i].images == drawn->images[0].count, "images are missing");
        wrong |= dl2_transfer_differs(&transfers[i]); /* both lose the same */
    }
    tally->transfers += count;
    tally->wrong_transfers += wrong;
}

/* 4 standard errors: fails by chance once in thirty thousand. */
static bool above(double share, double limit, double count)
{
    return share > limit + 4 * sqrt(limit * (1 - limit) / count);
}

static bool report_kind(const struct kind *kind, const struct tally *tally)
{
    const double studies = (double)tally->studies;
    const double bounds = (double)tally->wrong_bounds / studies;
    const double losers = (double)tally->wrong_losers / studies;
    const double hold = (double)tally->hold / (double)tally->intervals;
    const double loss = (double)tally->loss_hold / studies;
    const double transfers = (double)tally->wrong_transfers / studies;
    printf("%-34s wrong bounds %.2f%% (mean %.1f points), wrong losers %.2f%% (%.2f right), "
           "class intervals %.1f%%, loss %.1f%%",
           kind->name, 100 * bounds, tally->bound / studies, 100 * losers,
           (double)tally->losers / studies, 100 * hold, 100 * loss);
    if (tally->transfers)
        printf(", networks that differ wrongly %.2f%%", 100 * transfers);
    puts("");
    return !above(bounds, 0.025, studies) && !above(losers, 0.025, studies) &&
           !above(transfers, 0.05, studies) && !above(1 - hold, 0.05, studies) &&
           !above(1 - loss, 0.05, studies);
}

int main(int argc, char **argv)
{
    static struct drawing drawn;
    bool well = true;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct kind *kind = &kinds[k];
        const size_t studies = argc > 1 ? strtoul(argv[1], NULL, 10) : kind->studies;
        if (!studies || (argc > 2 && !strstr(kind->name, argv[2])))
            continue;
        struct tally tally = {0};
        struct dl2_random random;
        dl2_random_init(&random, 2, DL2_RANDOM_TEST, k, UINT32_MAX);
        draw_population(kind, &random);
        prepare(kind, &drawn);
        for (size_t n = 0; n < studies; n++) {
            const struct dl2_question question = {.tolerance = 1};
            struct dl2_analysis analyses[NETWORKS];
            dl2_random_init(&random, 2, DL2_RANDOM_TEST, k, n);
            draw_study(kind, &random, &drawn);
            for (size_t a = 0; a < kind->networks; a++)
                analyses[a] = dl2_analyze(&drawn.study, drawn.archs[a], &question);
            count_classes(kind, &drawn, &analyses[0], &tally);
            if (kind->networks > 1)
                count_transfers(&drawn, analyses, &tally);
            dl2_free_kept();
        }
        well &= report_kind(kind, &tally);
        fflush(stdout);
    }
    puts(well ? "all within bounds" : "OUT OF BOUNDS");
    return !well;
}
