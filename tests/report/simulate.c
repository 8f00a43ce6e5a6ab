/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does the report keep its promises? Studies are drawn whose truth is known, analyzed as real ones
 * are, and counted: how often is any variant recommended that loses more than the tolerance, and
 * how often do the intervals hold the truth?
 *
 *   simulate [STUDIES [WORDS]]     of each kind whose name has these words; without, as many of
 * some kinds as a test has time for
 *
 * An image is right in a training if its ease + the variant's effect on it + the training's luck,
 * with all images and with those of the image's class, + chance is above 0. All are normally
 * distributed, or ease has two modes (most images are easy, some are hard) and the effect is skewed
 * (a variant harms few images much). So seeds and images are crossed, and a variant's true loss is
 * known exactly. Each kind of study states what that makes of it: the share of images that two
 * seeds of one variant disagree on, and the standard deviations of top-1 over seeds of the original
 * and of the smallest variant, measured in the drawn studies. Images may come in groups of one ease
 * and one effect, as near-duplicates do.
 *
 * Another trainer may hand back outcomes that are no right and wrong but between 0 and 1, one
 * number for each training, or the metric on resamples of the images; or nothing was trained, and a
 * network is evaluated as it is. With a number alone claims and intervals are about the drawn
 * images, so each study has its losses on these.
 *
 * The sentence "a new study of A to B seeds would show it with a probability of 65 to 90%" is
 * tested, too: true losses are drawn from a wide range, and for studies that say it new ones of A
 * and of B seeds are drawn with the same truth, and counted.
 */
#include "common/random.h"
#include "common/stats.h"
#include "report/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CODECS = 3,
    MAX_QUALITIES = 3,
    MAX_VARIANTS = 10,
    MAX_SEEDS = 8, /* of a study; new ones that a sentence asks for may have more */
    MAX_TIMES = 4, /* the images; larger studies that a sentence asks for are not drawn */
    CLASSES = 10,
    STEPS = 200, /* of the integral over a skewed effect */
    DRAWS = 200, /* resamples */
};

#define TOLERANCE 1.0 /* points */
#define ACCURACY  0.75

struct kind {
    const char *name;
    size_t studies;                          /* in a test; 0: none */
    size_t images, codecs, qualities, seeds; /* seeds 0: they are added until all is decided */
    double chance;  /* of a cell; an image's ease has a standard deviation of 1 */
    double luck;    /* of a training */
    double effect;  /* of a variant on an image */
    double unequal; /* the luck of each codec's smallest variant, in that of the others */
    double loss[MAX_CODECS][MAX_QUALITIES]; /* points, from the largest file to the smallest */
    enum { PLAIN, REAL } world; /* REAL: two modes of ease, skewed effects, luck with a class */
    bool told;    /* the sentences about new studies are tried, with losses from -2 to 4 points */
    size_t group; /* images of one ease and effect, which the analysis knows; 0: 1 */
    bool again;   /* from three seeds, one more until all is claimed, which nobody planned */
    double own_ease, own_effect; /* the shares of images that have their own, not their group's */
    double accuracy;             /* of the original; 0: ACCURACY */
    bool heavy;      /* luck is Student's t with 3 degrees of freedom, of the same deviation */
    double softness; /* outcomes are shares that rise from 0 to 1 over so much ease; 0: 0 or 1 */
    enum { OUTCOMES, NUMBERS, RESAMPLES, AS_IT_IS } given; /* what a trainer hands back */
};

/* Losses are at the tolerance, where a wrong claim is most likely, or none, or far beyond. */
#define ALL_AT_LIMIT                                                                               \
    {                                                                                              \
        {1, 1, 1}, {1, 1, 1},                                                                      \
        {                                                                                          \
            1, 1, 1                                                                                \
        }                                                                                          \
    }
#define ONE_AT_LIMIT                                                                               \
    {                                                                                              \
        {0, 0, 0}, {0, 0, 1},                                                                      \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
/* One codec's; the others of it gain, so that they never end it. */
#define LAST_ALONE                                                                                 \
    {                                                                                              \
        {-4, -4, 1},                                                                               \
    }
/* One codec's. */
#define LAST_AT_LIMIT                                                                              \
    {                                                                                              \
        {0, 0, 1},                                                                                 \
    }
#define NO_LOSS                                                                                    \
    {                                                                                              \
        {0, 0, 0}, {0, 0, 0},                                                                      \
    }
#define STAIRS                                                                                     \
    {                                                                                              \
        {0, 1, 4}, {0, 0, 1},                                                                      \
        {                                                                                          \
            1, 4, 9                                                                                \
        }                                                                                          \
    }

#define CLEAR                                                                                      \
    {                                                                                              \
        {0, 0, 4}, {0, 3, 9},                                                                      \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

/* About what the demo's variants lose, in units of half its tolerance. */
#define DEMO                                                                                       \
    {                                                                                              \
        {0, 0, 4}, {0, 0.65, 3},                                                                   \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

static const struct kind kinds[] = {
    {"2 seeds, all at the limit", 0, 500, 2, 3, 2, 0.15, 0.005, 0.2, 1, ALL_AT_LIMIT},
    {"2 seeds, one at the limit", 0, 2000, 2, 3, 2, 0.15, 0.01, 0.2, 1, ONE_AT_LIMIT},
    {"2 seeds, one variant", 300, 2000, 1, 1, 2, 0.15, 0.01, 0.2, 1, ALL_AT_LIMIT},
    {"3 seeds, all at the limit", 300, 500, 3, 3, 3, 0.15, 0.005, 0.2, 1, ALL_AT_LIMIT},
    {"3 seeds, one at the limit", 0, 2000, 2, 3, 3, 0.28, 0.02, 0.1, 1, ONE_AT_LIMIT},
    {"3 seeds, stairs", 300, 2000, 3, 3, 3, 0.2, 0.02, 0.2, 1, STAIRS},
    {"3 seeds, one variant", 300, 2000, 1, 1, 3, 0.28, 0.01, 0.1, 1, ALL_AT_LIMIT},
    {"3 seeds, as the demo", 300, 447, 2, 3, 3, 0.25, 0.04, 0.05, 1, ALL_AT_LIMIT},
    {"5 seeds, all at the limit", 300, 500, 2, 3, 5, 0.28, 0.005, 0.2, 1, ALL_AT_LIMIT},
    {"5 seeds, one at the limit", 0, 2000, 2, 3, 5, 0.15, 0.01, 0.1, 1, ONE_AT_LIMIT},
    {"2 to 8 seeds, all at the limit", 60, 500, 2, 3, 0, 0.15, 0.005, 0.2, 1, ALL_AT_LIMIT},
    {"2 to 8 seeds, one at the limit", 0, 2000, 2, 3, 0, 0.2, 0.01, 0.1, 1, ONE_AT_LIMIT},
    {"2 to 8 seeds, stairs", 0, 2000, 3, 3, 0, 0.15, 0.02, 0.2, 1, STAIRS},
    {"2 to 8 seeds, clear", 0, 2000, 2, 3, 0, 0.15, 0.01, 0.2, 1, CLEAR},
    /* Four times its images for half its tolerance: the same odds. */
    {"2 to 8 seeds, as the demo", 0, 1788, 2, 3, 0, 0.25, 0.02, 0.05, 1, DEMO},
    {"3 seeds, 10,000 images", 0, 10000, 2, 3, 3, 0.2, 0.02, 0.1, 1, ONE_AT_LIMIT},
    /* Where stopping early misleads most: the chance of training is all there is. */
    {"2 to 8 seeds, one variant", 60, 5000, 1, 1, 0, 0.15, 0.03, 0.05, 1, ALL_AT_LIMIT},
    {"2 to 8 seeds, three variants", 0, 5000, 1, 3, 0, 0.15, 0.03, 0.05, 1, LAST_AT_LIMIT},
    {"2 to 8 seeds, real, one variant", 0, 5000, 1, 1, 0, 0.15, 0.04, 0.05, 1, ALL_AT_LIMIT, REAL},
    {"2 to 8 seeds, real, three variants", 0, 5000, 1, 3, 0, 0.15, 0.04, 0.05, 1, LAST_AT_LIMIT,
     REAL},
    {"3 seeds, real, one at the limit", 300, 2000, 2, 3, 3, 0.15, 0.02, 0.1, 1, ONE_AT_LIMIT, REAL},
    {"5 seeds, real, all at the limit", 0, 500, 2, 3, 5, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, REAL},
    /* Unequal luck makes the smallest variant's top-1 three times as noisy as the original's. */
    {"2 seeds, unequal noise", 300, 5000, 1, 3, 2, 0.1, 0.02, 0.05, 3.3, LAST_AT_LIMIT},
    {"3 seeds, unequal noise", 300, 5000, 1, 3, 3, 0.1, 0.02, 0.05, 3.3, LAST_AT_LIMIT},
    {"5 seeds, unequal noise", 0, 5000, 1, 3, 5, 0.1, 0.02, 0.05, 3.3, LAST_AT_LIMIT},
    {"2 seeds, one is noisier", 0, 5000, 1, 3, 2, 0.1, 0.02, 0.05, 3.3, LAST_ALONE},
    {"3 seeds, one is noisier", 300, 5000, 1, 3, 3, 0.1, 0.02, 0.05, 3.3, LAST_ALONE},
    {"4 seeds, one is noisier", 0, 5000, 1, 3, 4, 0.1, 0.02, 0.05, 3.3, LAST_ALONE},
    {"8 seeds, one is noisier", 0, 5000, 1, 3, 8, 0.1, 0.02, 0.05, 3.3, LAST_ALONE},
    {"3 seeds, real, unequal noise", 0, 5000, 2, 3, 3, 0.1, 0.03, 0.05, 3.3, ONE_AT_LIMIT, REAL},
    {"2 to 8 seeds, unequal noise", 0, 5000, 1, 3, 0, 0.1, 0.02, 0.05, 3.3, LAST_AT_LIMIT},
    {"3 seeds, groups of 5", 200, 2000, 1, 3, 3, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN, false, 5},
    {"8 seeds, groups of 5", 0, 2000, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN, false, 5},
    {"3 seeds, groups of 20", 200, 2000, 1, 3, 3, 0.15, 0.01, 0.2, 1, LAST_ALONE, REAL, false, 20},
    {"8 seeds, groups of 20", 0, 2000, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN, false, 20},
    {"8 seeds, real, groups of 20", 0, 2000, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, REAL, false,
     20},
    /* Tiles of few photographs: images that are independent in truth, and less so. */
    {"3 seeds, 15 loose groups", 0, 1305, 1, 3, 3, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN, false, 87,
     false, 1, 1},
    {"3 seeds, 30 loose groups", 100, 1200, 1, 3, 3, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN, false,
     40, false, 1, 1},
    {"8 seeds, 60 loose groups", 0, 1200, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN, false, 20,
     false, 1, 1},
    {"3 seeds, 15 groups, half alike", 0, 1305, 1, 3, 3, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN,
     false, 87, false, 0.3, 0.3},
    {"8 seeds, real, 15 groups, half alike", 0, 1305, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, REAL,
     false, 87, false, 0.3, 0.3},
    {"8 seeds, 60 groups, half alike", 0, 1200, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN,
     false, 20, false, 0.3, 0.3},
    /* What the groups' ease does not tell. */
    {"8 seeds, 15 groups of one effect", 0, 1305, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE, PLAIN,
     false, 87, false, 1, 0},
    {"8 seeds, real, 15 groups of one effect", 0, 1305, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE,
     REAL, false, 87, false, 1, 0},
    {"8 seeds, real, 60 groups of one effect", 0, 1200, 1, 3, 8, 0.15, 0.01, 0.2, 1, LAST_ALONE,
     REAL, false, 20, false, 1, 0},
    {"looked again, one variant", 100, 5000, 1, 1, 0, 0.15, 0.03, 0.05, 1, ALL_AT_LIMIT, PLAIN,
     false, 0, true},
    {"looked again, real, six variants", 0, 2000, 2, 3, 0, 0.15, 0.02, 0.1, 1, ONE_AT_LIMIT, REAL,
     false, 0, true},
    /* What few studies are like. */
    {"3 seeds, 99.5% right", 0, 2000, 2, 3, 3, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, .accuracy = 0.995},
    {"5 seeds, 95% right", 0, 2000, 1, 3, 5, 0.15, 0.02, 0.1, 1, LAST_ALONE, .accuracy = 0.95},
    {"3 seeds, 20 images", 0, 20, 1, 3, 3, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT},
    {"5 seeds, 20 images", 0, 20, 1, 1, 5, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT},
    {"3 seeds, heavy tails", 0, 5000, 1, 3, 3, 0.15, 0.03, 0.05, 1, LAST_ALONE, .heavy = true},
    {"2 to 8 seeds, heavy tails", 0, 5000, 1, 1, 0, 0.15, 0.03, 0.05, 1, ALL_AT_LIMIT,
     .heavy = true},
    {"2 to 8 seeds, four times the noise", 0, 5000, 1, 3, 0, 0.1, 0.02, 0.05, 4.4, LAST_ALONE},
    {"3 seeds, groups of 10", 0, 2000, 1, 3, 3, 0.15, 0.01, 0.2, 1, LAST_ALONE, REAL, false, 10},
    {"2 to 8 seeds, groups of 10", 0, 2000, 1, 3, 0, 0.15, 0.01, 0.2, 1, LAST_ALONE, REAL, false,
     10},
    /* Of another trainer. */
    {"3 seeds, shares", 100, 500, 2, 3, 3, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, .softness = 0.5},
    {"4 seeds, shares, one variant", 0, 1000, 1, 1, 4, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT,
     .softness = 0.5},
    {"5 seeds, shares, real", 0, 500, 1, 3, 5, 0.15, 0.02, 0.2, 1, LAST_ALONE, REAL,
     .softness = 0.5},
    {"8 seeds, shares", 0, 500, 1, 3, 8, 0.15, 0.02, 0.2, 1, LAST_ALONE, .softness = 0.5},
    {"3 seeds, right or wrong", 0, 500, 1, 1, 3, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT},
    {"5 seeds, right or wrong", 0, 1000, 1, 3, 5, 0.15, 0.02, 0.2, 1, LAST_ALONE},
    {"2 seeds, numbers", 0, 500, 1, 1, 2, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, .given = NUMBERS},
    {"3 seeds, numbers", 100, 500, 2, 3, 3, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, .given = NUMBERS},
    {"5 seeds, numbers, real", 0, 500, 1, 3, 5, 0.15, 0.03, 0.2, 1, LAST_ALONE, REAL,
     .given = NUMBERS},
    {"8 seeds, numbers", 0, 500, 1, 1, 8, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, .given = NUMBERS},
    {"3 seeds, F1 by resamples", 100, 500, 1, 3, 3, 0.15, 0.02, 0.2, 1, LAST_ALONE,
     .given = RESAMPLES},
    {"4 seeds, F1 by resamples", 0, 500, 2, 1, 4, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT,
     .given = RESAMPLES},
    {"5 seeds, F1 by resamples, real", 0, 1000, 1, 1, 5, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT, REAL,
     .given = RESAMPLES},
    {"8 seeds, F1 by resamples", 0, 500, 1, 1, 8, 0.15, 0.02, 0.2, 1, ALL_AT_LIMIT,
     .given = RESAMPLES},
    {"as it is, six variants", 200, 1000, 2, 3, 1, 0.15, 0, 0.2, 1, ALL_AT_LIMIT,
     .given = AS_IT_IS},
    {"as it is, real", 0, 1000, 2, 3, 1, 0.15, 0, 0.2, 1, ONE_AT_LIMIT, REAL, .given = AS_IT_IS},
    {"as it is, shares", 0, 500, 2, 3, 1, 0.15, 0, 0.2, 1, ALL_AT_LIMIT, .softness = 0.5,
     .given = AS_IT_IS},
    {"as it is, few images", 0, 200, 1, 1, 1, 0.15, 0, 0.2, 1, ALL_AT_LIMIT, .given = AS_IT_IS},
    {"3 seeds, one variant, told", 400, 2000, 1, 1, 3, 0.15, 0.02, 0.1, 1, NO_LOSS, PLAIN, true},
    {"4 seeds, one variant, told", 0, 2000, 1, 1, 4, 0.15, 0.02, 0.1, 1, NO_LOSS, PLAIN, true},
    {"5 seeds, one variant, told", 0, 1000, 1, 1, 5, 0.15, 0.03, 0.1, 1, NO_LOSS, REAL, true},
    {"2 seeds, six variants, told", 200, 2000, 2, 3, 2, 0.15, 0.02, 0.1, 1, NO_LOSS, PLAIN, true},
    {"3 seeds, six variants, told", 0, 2000, 2, 3, 3, 0.15, 0.02, 0.1, 1, NO_LOSS, REAL, true},
    {"5 seeds, six variants, told", 0, 1000, 2, 3, 5, 0.15, 0.03, 0.1, 1, NO_LOSS, PLAIN, true},
};

static struct dl2_looks growing = {7, {2, 3, 4, 5, 6, 7, 8}, {0}};

static const struct dl2_accuracy_kind another_metric = {
    "value",          "metric",           "metric",          "a metric",
    .unit = "points", .is_foreign = true, .is_percent = true};

struct drawing {
    struct dl2_study study;
    struct dl2_study_variant variants[MAX_VARIANTS];
    struct dl2_study_run runs[MAX_VARIANTS * DL2_MAX_SEEDS_NEEDED];
    char names[MAX_VARIANTS][32], codecs[MAX_CODECS][32], *archs[1];
    float *outcome[MAX_VARIANTS][DL2_MAX_SEEDS_NEEDED];
    double accuracy[MAX_VARIANTS][DL2_MAX_SEEDS_NEEDED];
    double truth[MAX_VARIANTS];     /* the difference over all seeds and images, points */
    double of_images[MAX_VARIANTS]; /* over all seeds, with the drawn images */
    size_t trained[MAX_VARIANTS];   /* seeds that there are */
    bool within[MAX_VARIANTS];      /* claimed at an earlier look, where one looks again */
    double shifts[MAX_VARIANTS];    /* of ease, that make the true differences */
    double *ease, *moved;           /* before and with a variant's effects */
    uint16_t *times;                /* [DRAWS][images] */
    double resamples[MAX_VARIANTS][MAX_SEEDS][DRAWS];
    struct dl2_prediction_table images; /* its groups alone */
};

static double accuracy_of(const struct kind *kind)
{
    return kind->accuracy > 0 ? kind->accuracy : ACCURACY;
}

static double normal_above(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/* Modes of ease: easy and hard images. */
static const struct mode {
    double share, mean, deviation;
} modes[2][2] = {{{1, 0, 1}, {0, 0, 1}}, {{0.7, 1, 0.4}, {0.3, -1, 0.6}}};

/* A variant's codec and quality; the original, 0, has none. */
static size_t codec_of(const struct kind *kind, size_t v)
{
    return (v - 1) / kind->qualities;
}

static size_t quality_of(const struct kind *kind, size_t v)
{
    return (v - 1) % kind->qualities;
}

static double luck_of(const struct kind *kind, size_t v)
{
    return v && quality_of(kind, v) == kind->qualities - 1 ? kind->luck * kind->unequal
                                                           : kind->luck;
}

/* Luck with an image: with all of a training, and with those of its class. */
static double class_luck_of(const struct kind *kind)
{
    return kind->world == REAL ? kind->luck : 0;
}

/* What moves a cell for a given image and variant. */
static double scale_of(const struct kind *kind, size_t v)
{
    return hypot(hypot(kind->chance, kind->softness), hypot(luck_of(kind, v), class_luck_of(kind)));
}

/* The share of all images that are right, over all seeds. */
static double share_right(const struct kind *kind, size_t v, double shift)
{
    const double effect = v ? kind->effect : 0, scale = scale_of(kind, v);
    double share = 0;
    for (size_t m = 0; m < 2; m++) {
        const struct mode *mode = &modes[kind->world][m];
        const double spread = hypot(mode->deviation, scale);
        if (kind->world == PLAIN)
            share += mode->share * normal_above((mode->mean + shift) / hypot(spread, effect));
        for (int step = 0; kind->world == REAL && step < STEPS; step++) {
            const double harm = -log((step + 0.5) / STEPS); /* exponential */
            share +=
                mode->share / STEPS * normal_above((mode->mean + shift - effect * harm) / spread);
        }
    }
    return share;
}

/* The shifts of ease that make the true differences what the kind says. */
static void find_shifts(const struct kind *kind, struct drawing *drawn)
{
    for (size_t v = 0; v < 1 + kind->codecs * kind->qualities; v++) {
        drawn->truth[v] = v ? -kind->loss[codec_of(kind, v)][quality_of(kind, v)] : 0;
        double low = -10, high = 10;
        for (int step = 0; step < 60; step++) {
            const double middle = (low + high) / 2;
            if (share_right(kind, v, middle) < accuracy_of(kind) + drawn->truth[v] / 100)
                low = middle;
            else
                high = middle;
        }
        drawn->shifts[v] = low;
    }
}

static double draw_effect(const struct kind *kind, struct dl2_random *random)
{
    if (kind->world == PLAIN)
        return kind->effect * dl2_random_normal(random);
    /* The middles of the integral's steps, so that the truth is exact. */
    return kind->effect * log((dl2_random_below(random, STEPS) + 0.5) / STEPS);
}

/* What makes the loss on the drawn images what the kind says. `share` is in percent. */
static double find_shift_here(const struct kind *kind, const struct drawing *drawn, size_t v,
                              double share)
{
    double low = -10, high = 10;
    for (int step = 0; step < 50; step++) {
        const double middle = (low + high) / 2;
        double right = 0;
        for (size_t i = 0; i < kind->images; i++)
            right += normal_above((drawn->moved[i] + middle) / scale_of(kind, v));
        *(100 * right / (double)kind->images < share ? &low : &high) = middle;
    }
    return low;
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* How often resample b has each image (docs/formats/study.md). */
static void count_draws(size_t b, size_t images, uint16_t *times)
{
    memset(times, 0, images * sizeof *times);
    for (uint64_t i = 0; i < images; i++)
        times[((mix(mix(b + 1) + i) >> 32) * images) >> 32]++;
}

/*
 * F1 of images of which every other is positive, and on resamples of them; it takes accuracy's
 * place. Right is as probable for both, so F1 of all images there might be is the share of those
 * that are right, 2 (p / 2) / (2 (p / 2) + 1 - p) = p.
 */
static double find_f1(const float *outcome, const uint16_t *times, size_t images)
{
    double found = 0, wrong = 0;
    for (size_t i = 0; i < images; i++) {
        found += (times ? times[i] : 1) * (i % 2 && outcome[i] > 0);
        wrong += (times ? times[i] : 1) * !(outcome[i] > 0);
    }
    return 2 * found / (2 * found + wrong);
}

static void draw_resamples(const struct kind *kind, struct drawing *drawn, size_t v, size_t s)
{
    const float *outcome = drawn->outcome[v][s];
    for (size_t b = 0; b < DRAWS; b++)
        drawn->resamples[v][s][b] = find_f1(outcome, drawn->times + b * kind->images, kind->images);
    drawn->accuracy[v][s] = find_f1(outcome, NULL, kind->images);
}

/* Student's t with 3 degrees of freedom, whose variance is 3, made 1. */
static double draw_heavy(struct dl2_random *random)
{
    double squares = 0;
    for (int i = 0; i < 3; i++) {
        const double one = dl2_random_normal(random);
        squares += one * one;
    }
    return dl2_random_normal(random) / sqrt(squares);
}

static void draw_study(const struct kind *kind, struct dl2_random *random, struct drawing *drawn)
{
    const size_t variants = 1 + kind->codecs * kind->qualities;
    const size_t seeds = kind->seeds ? kind->seeds : MAX_SEEDS;
    const size_t group = kind->group ? kind->group : 1;
    double of_group = 0;
    for (size_t i = 0; i < kind->images; i++) {
        const struct mode *mode =
            &modes[kind->world][dl2_random_uniform(random) >= modes[kind->world][0].share];
        const double ease = mode->mean + mode->deviation * dl2_random_normal(random);
        /* Drawn only where images differ from their group: other kinds stay what they are. */
        const bool own = kind->own_ease > 0 && dl2_random_uniform(random) < kind->own_ease;
        if (i % group == 0)
            of_group = ease;
        drawn->ease[i] = own || i % group == 0 ? ease : of_group;
    }
    double original = 0;
    for (size_t v = 0; v < variants; v++) {
        double right = 0, effect = 0, luck[DL2_MAX_SEEDS_NEEDED][CLASSES];
        double sums[DL2_MAX_SEEDS_NEEDED] = {0};
        const double scale = scale_of(kind, v);
        for (size_t s = 0; s < seeds; s++) {
            const double of_all =
                luck_of(kind, v) * (kind->heavy ? draw_heavy(random) : dl2_random_normal(random));
            for (size_t c = 0; c < CLASSES; c++)
                luck[s][c] = of_all + class_luck_of(kind) * dl2_random_normal(random);
        }
        for (size_t i = 0; i < kind->images; i++) {
            const bool own =
                v && kind->own_effect > 0 && dl2_random_uniform(random) < kind->own_effect;
            if (v && i % group == 0)
                effect = draw_effect(kind, random);
            drawn->moved[i] = drawn->ease[i] + (own ? draw_effect(kind, random) : effect);
        }
        const double shift = kind->given == NUMBERS && v
                                 ? find_shift_here(kind, drawn, v, original + drawn->truth[v])
                                 : drawn->shifts[v];
        for (size_t i = 0; i < kind->images; i++) {
            const double ease = drawn->moved[i] + shift;
            right += normal_above(ease / scale);
            /* Most images are so easy or so hard that chance does not reach them. */
            for (size_t s = 0; s < seeds; s++) {
                const double now = ease + luck[s][i / group % CLASSES];
                const bool sure = fabs(now) > 6 * kind->chance;
                const double chance =
                    sure && !(kind->softness > 0) ? 0 : kind->chance * dl2_random_normal(random);
                drawn->outcome[v][s][i] =
                    (float)(kind->softness > 0 ? normal_above((now + chance) / kind->softness)
                                               : now + chance > 0);
                sums[s] += (double)drawn->outcome[v][s][i];
            }
        }
        for (size_t s = 0; s < seeds; s++) {
            drawn->accuracy[v][s] = sums[s] / (double)kind->images;
            if (kind->given == RESAMPLES)
                draw_resamples(kind, drawn, v, s);
        }
        right *= 100 / (double)kind->images;
        original = v ? original : right;
        drawn->of_images[v] = right - original;
        drawn->trained[v] = kind->seeds ? kind->seeds : growing.seeds[0];
    }
}

/* The study as far as it was trained. */
static void assemble(const struct kind *kind, struct drawing *drawn)
{
    struct dl2_study *study = &drawn->study;
    *study = (struct dl2_study){.variants = drawn->variants,
                                .variant_count = 1 + kind->codecs * kind->qualities,
                                .runs = drawn->runs,
                                .archs = drawn->archs,
                                .arch_count = 1,
                                .accuracy = kind->given == OUTCOMES ? NULL : &another_metric,
                                .as_it_is = kind->given == AS_IT_IS,
                                .images = kind->group ? &drawn->images : NULL};
    drawn->archs[0] = drawn->names[0];
    for (size_t v = 0; v < study->variant_count; v++) {
        const size_t codec = v ? codec_of(kind, v) : 0;
        snprintf(drawn->names[v], sizeof drawn->names[v], v ? "variant-%zu" : "raw", v);
        snprintf(drawn->codecs[codec], sizeof drawn->codecs[codec], "codec%zu", codec);
        const double ratio = v ? 0.9 / (double)(2 + quality_of(kind, v)) - 0.01 * (double)codec : 1;
        drawn->variants[v] = (struct dl2_study_variant){.name = drawn->names[v],
                                                        .codec = v ? drawn->codecs[codec] : "raw",
                                                        .bytes = 1e6 * ratio,
                                                        .ratio = ratio,
                                                        .load_rate = NAN};
        for (size_t s = 0; s < drawn->trained[v]; s++) {
            struct dl2_study_run *run = &drawn->runs[study->run_count++];
            *run = (struct dl2_study_run){.variant = v,
                                          .arch = drawn->archs[0],
                                          .seed = s + 1,
                                          .accuracy = drawn->accuracy[v][s],
                                          .images = kind->images};
            if (kind->given == OUTCOMES || kind->given == AS_IT_IS)
                run->outcome = drawn->outcome[v][s];
            if (kind->given == RESAMPLES) {
                run->resamples = drawn->resamples[v][s];
                run->resample_count = DRAWS;
            }
        }
    }
}

static void must(bool well, const char *what)
{
    if (!well) {
        fprintf(stderr, "simulate: %s\n", what);
        exit(1);
    }
}

static void analyze_drawing(const struct kind *kind, struct drawing *drawn,
                            struct dl2_analysis *analysis)
{
    struct dl2_question question = {.tolerance = TOLERANCE};
    if (!kind->seeds)
        question.looks = growing;
    else if (kind->told) /* as a study's first report does */
        question.looks = (struct dl2_looks){1, {kind->seeds}, {dl2_look_unplanned(0)}};
    assemble(kind, drawn);
    *analysis = dl2_analyze(&drawn->study, drawn->archs[0], &question);
}

/* Adds a seed to all variants until all are claimed, and spends what looks that nobody planned may.
 * Returns the trainings. */
static size_t look_again(const struct kind *kind, struct drawing *drawn,
                         struct dl2_analysis *analysis)
{
    const size_t variants = 1 + kind->codecs * kind->qualities;
    double spent = 0;
    memset(drawn->within, 0, sizeof drawn->within);
    for (size_t seeds = 3;; seeds++) {
        const double share = dl2_look_unplanned(spent);
        const struct dl2_question question = {
            .tolerance = TOLERANCE, .looks = {1, {seeds}, {share}}, .within = drawn->within};
        bool all = true;
        for (size_t v = 0; v < variants; v++)
            drawn->trained[v] = seeds;
        assemble(kind, drawn);
        *analysis = dl2_analyze(&drawn->study, drawn->archs[0], &question);
        for (size_t v = 1; v < variants; v++)
            all &= drawn->within[v] = analysis->comparisons[v].verdict == DL2_VERDICT_WITHIN;
        if (all || seeds == MAX_SEEDS)
            return seeds * variants;
        spent += share;
    }
}

/* Adds seeds to what is open until nothing is, or all seeds are there. Returns the trainings. */
static size_t train_until_decided(const struct kind *kind, struct drawing *drawn,
                                  struct dl2_analysis *analysis)
{
    size_t trainings = 0;
    for (;;) {
        analyze_drawing(kind, drawn, analysis);
        bool any = false;
        for (size_t v = 1; !kind->seeds && v < drawn->study.variant_count; v++) {
            const size_t more = dl2_analysis_seeds_wanted(analysis, v);
            any |= more > drawn->trained[v];
            drawn->trained[v] = more > drawn->trained[v] ? more : drawn->trained[v];
            drawn->trained[0] = more > drawn->trained[0] ? more : drawn->trained[0];
        }
        if (!any)
            break;
    }
    for (size_t v = 0; v < drawn->study.variant_count; v++)
        trainings += drawn->trained[v];
    return trainings;
}

/* Verdicts that trainings from all seeds, looked at once, would have given, too. */
static size_t count_same(const struct kind *kind, struct drawing *drawn,
                         const struct dl2_analysis *analysis)
{
    struct kind fixed = *kind;
    struct dl2_analysis all;
    size_t same = 0;
    fixed.seeds = MAX_SEEDS;
    for (size_t v = 0; v < drawn->study.variant_count; v++)
        drawn->trained[v] = MAX_SEEDS;
    analyze_drawing(&fixed, drawn, &all);
    for (size_t v = 1; v < drawn->study.variant_count; v++)
        same += (analysis->comparisons[v].verdict == DL2_VERDICT_WITHIN) ==
                (all.comparisons[v].verdict == DL2_VERDICT_WITHIN);
    return same;
}

struct tally {
    size_t studies, wrong, claims, trainings;
    size_t told, too_large, shown[2]; /* by studies of the fewer and of the more seeds */
    size_t same;                      /* verdicts that are those of a study of all seeds */
    size_t intervals, finite, hold_both, hold_training;
    double flips, deviation, smallest_deviation, half;
};

static void count_study(const struct kind *kind, const struct drawing *drawn,
                        const struct dl2_analysis *analysis, struct tally *tally)
{
    bool wrong = false;
    for (size_t v = 1; v < drawn->study.variant_count; v++) {
        const struct dl2_comparison *comparison = &analysis->comparisons[v];
        const bool within = comparison->verdict == DL2_VERDICT_WITHIN;
        wrong |= within && drawn->truth[v] <= -TOLERANCE;
        tally->claims += within;
        tally->intervals++;
        const double half = dl2_comparison_half(comparison);
        tally->finite += isfinite(half);
        tally->half += isfinite(half) ? half : 0;
        tally->hold_both +=
            fabs(comparison->difference - drawn->truth[v]) <= dl2_comparison_half(comparison);
        tally->hold_training +=
            fabs(comparison->difference - drawn->of_images[v]) <= comparison->half;
    }
    tally->studies++;
    tally->wrong += wrong;
    size_t flips = 0;
    for (size_t i = 0; kind->seeds != 1 && i < kind->images; i++)
        flips += fabsf(drawn->outcome[0][0][i] - drawn->outcome[0][1][i]) > 0.5F;
    tally->flips += (double)flips / (double)kind->images;
    const size_t last = drawn->study.variant_count - 1;
    if (kind->seeds == 1)
        return;
    const double step = 100 * (drawn->accuracy[0][0] - drawn->accuracy[0][1]);
    const double smallest = 100 * (drawn->accuracy[last][0] - drawn->accuracy[last][1]);
    tally->deviation += step * step / 2;
    tally->smallest_deviation += smallest * smallest / 2;
}

/* A wide range of losses, so that a study of any truth may measure what it does. */
static void draw_losses(struct kind *kind, struct dl2_random *random)
{
    for (size_t codec = 0; codec < kind->codecs; codec++)
        for (size_t quality = 0; quality < kind->qualities; quality++)
            kind->loss[codec][quality] = 6 * dl2_random_uniform(random) - 2;
}

/* Draws the new studies that the advice speaks of, with the same truth. */
static void try_advice(const struct kind *kind, struct dl2_random *random, struct drawing *drawn,
                       const struct dl2_analysis *analysis, struct tally *tally)
{
    const struct dl2_study_size *needed = &analysis->needed;
    const size_t likely = analysis->smallest.likely;
    if (!needed->few)
        return;
    if (needed->times_images > MAX_TIMES) {
        tally->too_large++;
        return;
    }
    tally->told++;
    struct kind new = *kind;
    new.images = (size_t)((double)kind->images * needed->times_images);
    for (int more = 0; more < 2; more++) {
        struct dl2_analysis again;
        new.seeds = more ? needed->many : needed->few;
        find_shifts(&new, drawn);
        draw_study(&new, random, drawn);
        analyze_drawing(&new, drawn, &again);
        tally->shown[more] += again.comparisons[likely].verdict == DL2_VERDICT_WITHIN;
    }
}

/* 4 standard errors: fails by chance once in thirty thousand. */
static bool above(double share, double limit, double count)
{
    return share > limit + 4 * sqrt(limit * (1 - limit) / count);
}

static bool report_kind(const struct kind *kind, const struct tally *tally)
{
    const double studies = (double)tally->studies, intervals = (double)tally->intervals;
    const double wrong = (double)tally->wrong / studies;
    const double both = (double)tally->hold_both / intervals;
    const double training = (double)tally->hold_training / intervals;
    printf("%-34s %6zu images, %4.1f%% flip, seed sd %.2f and %.2f: wrong %.2f%%, both %.1f%%, "
           "training %.1f%%, half %.1f, %.1f claims, %.1f trainings a study\n",
           kind->name, kind->images, 100 * tally->flips / studies, sqrt(tally->deviation / studies),
           sqrt(tally->smallest_deviation / studies), 100 * wrong, 100 * both, 100 * training,
           tally->half / (double)tally->finite, (double)tally->claims / studies,
           (double)tally->trainings / studies);
    if (!kind->seeds)
        printf(
            "%-34s %.1f%% of these verdicts are those of %d seeds, with %.0f%% of the trainings\n",
            "", 100 * (double)tally->same / intervals, MAX_SEEDS,
            100 * (double)tally->trainings /
                (studies * MAX_SEEDS * (1 + (double)(kind->codecs * kind->qualities))));
    bool well = !above(wrong, DL2_CLAIMS_LEVEL, studies);
    /* Variants of a study share the original, so that studies count and not intervals. */
    well &= !above(0.93, both, studies);
    well &= kind->given == AS_IT_IS || kind->given == RESAMPLES || !above(0.93, training, studies);
    if (kind->told) {
        const double told = (double)tally->told;
        const double few = (double)tally->shown[0] / told, many = (double)tally->shown[1] / told;
        printf("%-34s of %zu studies %.0f%% were told how large a new one must be, %zu that it "
               "must be too large to draw; of those with fewer seeds %.1f%% show it, with more "
               "%.1f%%\n",
               "", tally->studies, 100 * told / studies, tally->too_large, 100 * few, 100 * many);
        well &= !above(0.7, many, told) && !above(few, 0.95, told);
    }
    return well;
}

int main(int argc, char **argv)
{
    static struct drawing drawn;
    bool well = true;
    dl2_looks_plan(&growing, 0, 1);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct kind own = kinds[k];
        const struct kind *kind = &own;
        const size_t studies = argc > 1 ? strtoul(argv[1], NULL, 10) : kind->studies;
        if (!studies || (argc > 2 && !strstr(kind->name, argv[2])))
            continue;
        struct tally tally = {0};
        const size_t seeds = kind->told ? DL2_MAX_SEEDS_NEEDED : MAX_SEEDS;
        const size_t images = kind->images * (kind->told ? MAX_TIMES : 1);
        float *cells = calloc(MAX_VARIANTS * seeds * images, sizeof *cells);
        drawn.ease = calloc(images, sizeof *drawn.ease);
        drawn.images.group = calloc(images, sizeof *drawn.images.group);
        drawn.moved = calloc(images, sizeof *drawn.moved);
        drawn.times = calloc(images, DRAWS * sizeof *drawn.times);
        must(cells && drawn.ease && drawn.images.group && drawn.moved && drawn.times,
             "out of memory");
        for (size_t b = 0; kind->given == RESAMPLES && b < DRAWS; b++)
            count_draws(b, images, drawn.times + b * images);
        for (size_t i = 0; kind->group && i < images; i++)
            drawn.images.group[i] = (uint32_t)(i / kind->group);
        drawn.images.group_count = kind->group ? kind->images / kind->group : 0;
        for (size_t i = 0; i < MAX_VARIANTS * seeds; i++)
            drawn.outcome[i / seeds][i % seeds] = cells + i * images;
        for (size_t n = 0; n < studies; n++) {
            struct dl2_random random;
            struct dl2_analysis analysis;
            dl2_random_init(&random, 1, DL2_RANDOM_TEST, k, n);
            if (kind->told)
                draw_losses(&own, &random);
            if (!n || kind->told)
                find_shifts(kind, &drawn);
            draw_study(kind, &random, &drawn);
            tally.trainings += kind->again ? look_again(kind, &drawn, &analysis)
                                           : train_until_decided(kind, &drawn, &analysis);
            count_study(kind, &drawn, &analysis, &tally);
            if (kind->told)
                try_advice(kind, &random, &drawn, &analysis, &tally);
            if (!kind->seeds)
                tally.same += count_same(kind, &drawn, &analysis);
            dl2_free_kept();
        }
        well &= report_kind(kind, &tally);
        fflush(stdout);
        free(cells);
        free(drawn.ease);
        free(drawn.moved);
        free(drawn.times);
        free(drawn.images.group);
    }
    puts(well ? "all within bounds" : "OUT OF BOUNDS");
    return !well;
}
