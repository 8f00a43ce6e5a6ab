/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/power.h"

#include "common/random.h"
#include "common/stats.h"

#include <math.h>

enum { STUDIES = 1000 }; /* drawn for one probability: 1.4 points of Monte Carlo error at most */

#define FEW  0.72
#define MANY 0.77

/* A chi-squared variable over its degrees of freedom, which need not be whole: mean 1 (Marsaglia &
 * Tsang, "A simple method for generating gamma variables", 2000). */
static double draw_variance(struct dl2_random *random, double freedom)
{
    const double shape = freedom / 2, boosted = shape < 1 ? shape + 1 : shape;
    const double d = boosted - 1.0 / 3, c = 1 / sqrt(9 * d);
    double v, normal;
    do {
        do {
            normal = dl2_random_normal(random);
            v = 1 + c * normal;
        } while (v <= 0);
        v = v * v * v;
    } while (log(1 - dl2_random_uniform(random)) >= normal * normal / 2 + d - d * v + d * log(v));
    const double boost = shape < 1 ? pow(1 - dl2_random_uniform(random), 1 / shape) : 1;
    return d * v * boost / shape;
}

/* A new study's size, with the quantiles of Student's t that its tests take. */
struct size {
    size_t seeds;
    double times_images, of_seeds, of_images;
};

/* Shared by all tests, in standard deviations: what the original's trainings and images are off, in
 * this study and in the new one. Half of a difference's variance is theirs. */
struct common {
    double seeds_here, images_here, seeds, images;
};

/* Does one test of a new study pass? */
static bool draw_test(struct dl2_random *random, const struct dl2_prospects *prospects,
                      const struct dl2_prospect *test, const struct size *size,
                      const struct common *common)
{
    const double S = (double)size->seeds, here = (double)prospects->seeds;
    /* What the variance may truly be, given its estimate; then what a new study estimates. */
    const double variance = test->seed_variance / draw_variance(random, test->seed_freedom);
    const struct dl2_spread training = dl2_spread_of_pairs(variance * draw_variance(random, S - 1),
                                                           size->seeds, &prospects->noise);
    const double of_images = test->image_variance / size->times_images;
    double error = sqrt(variance / S / 2) * (dl2_random_normal(random) + common->seeds) +
                   sqrt(of_images / 2) * (dl2_random_normal(random) + common->images);
    if (here > 0) /* what this study's margin is off */
        error += sqrt(variance / here / 2) * (dl2_random_normal(random) + common->seeds_here) +
                 sqrt(test->image_variance / 2) * (dl2_random_normal(random) + common->images_here);
    return test->margin + error >=
           hypot(size->of_seeds * sqrt(training.variance), size->of_images * sqrt(of_images));
}

double dl2_power(const struct dl2_prospects *prospects, size_t seeds, double times_images)
{
    const double units = (double)prospects->units * times_images;
    const struct dl2_spread pairs = dl2_spread_of_pairs(1, seeds, &prospects->noise);
    const struct size size = {
        seeds, times_images, dl2_student_quantile(prospects->level, pairs.freedom),
        dl2_student_quantile(prospects->level, prospects->units > 1 ? units - 1 : INFINITY)};
    size_t passed = 0;
    for (size_t study = 0; study < STUDIES; study++) {
        struct dl2_random random; /* the same for every size, so that more never seems less */
        dl2_random_init(&random, 0, DL2_RANDOM_BOOTSTRAP, 2, study);
        const struct common common = {dl2_random_normal(&random), dl2_random_normal(&random),
                                      dl2_random_normal(&random), dl2_random_normal(&random)};
        bool passes = true;
        for (size_t i = 0; passes && i < prospects->count; i++)
            passes = draw_test(&random, prospects, &prospects->tests[i], &size, &common);
        passed += passes;
    }
    return (double)passed / STUDIES;
}

/* The fewest seeds from `least` on, 0 if DL2_MAX_SEEDS_NEEDED are too few. */
static size_t find_seeds(const struct dl2_prospects *prospects, double times_images, double wanted,
                         size_t least)
{
    size_t most = DL2_MAX_SEEDS_NEEDED;
    if (dl2_power(prospects, most, times_images) < wanted)
        return 0;
    while (least < most) {
        const size_t middle = (least + most) / 2;
        if (dl2_power(prospects, middle, times_images) < wanted)
            least = middle + 1;
        else
            most = middle;
    }
    return most;
}

struct dl2_study_size dl2_study_size_needed(const struct dl2_prospects *prospects)
{
    struct dl2_study_size best = {0, 0, 1};
    for (size_t i = 0; i < prospects->count; i++)
        if (!(prospects->tests[i].margin > 0))
            return best;
    for (double times = 1; times <= DL2_MAX_TIMES_IMAGES; times *= sqrt(2)) {
        const size_t few = find_seeds(prospects, times, FEW, 2);
        const size_t many = few ? find_seeds(prospects, times, MANY, few) : 0;
        if (many && (!best.few || (double)many * times < (double)best.many * best.times_images))
            best = (struct dl2_study_size){few, many, times};
        if ((best.few && times == 1) || !prospects->units)
            break;
    }
    return best;
}
