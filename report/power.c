/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/power.h"

#include "common/random.h"
#include "common/stats.h"

#include <math.h>

enum { STUDIES = 1000 }; /* drawn for one probability: 1.4 points of Monte Carlo error at most */

#define FEW  0.7
#define MANY 0.8

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

/* Does one test of a new study pass? `common` is what the original's trainings and images are off,
 * in standard deviations: half of a difference's variance is theirs. */
static bool draw_test(struct dl2_random *random, const struct dl2_prospects *prospects,
                      const struct dl2_prospect *test, size_t seeds, double times_images,
                      const double common[2])
{
    const double own = (double)seeds - 1;
    /* What the variance may truly be, given its estimate; then what a new study estimates. */
    const double variance = test->seed_variance / draw_variance(random, test->seed_freedom);
    const struct dl2_spread training =
        dl2_spread_of_pairs(variance * draw_variance(random, own), seeds, &prospects->noise);
    const double of_images = test->image_variance / times_images;
    const double error =
        sqrt(variance / (double)seeds / 2) * (dl2_random_normal(random) + common[0]) +
        sqrt(of_images / 2) * (dl2_random_normal(random) + common[1]);
    const double estimated = training.variance + of_images;
    double uncertainty = training.variance * training.variance / training.freedom;
    if (prospects->images > 1)
        uncertainty += of_images * of_images / ((double)prospects->images * times_images - 1);
    if (!(estimated > 0))
        return test->margin + error >= 0;
    return test->margin + error > 0 &&
           dl2_student_tail((test->margin + error) / sqrt(estimated),
                            estimated * estimated / uncertainty) <= prospects->level;
}

double dl2_power(const struct dl2_prospects *prospects, size_t seeds, double times_images)
{
    size_t passed = 0;
    for (size_t study = 0; study < STUDIES; study++) {
        struct dl2_random random; /* the same for every size, so that more never seems less */
        dl2_random_init(&random, 0, DL2_RANDOM_BOOTSTRAP, 2, study);
        const double common[2] = {dl2_random_normal(&random), dl2_random_normal(&random)};
        bool passes = true;
        for (size_t i = 0; passes && i < prospects->count; i++)
            passes =
                draw_test(&random, prospects, &prospects->tests[i], seeds, times_images, common);
        passed += passes;
    }
    return (double)passed / STUDIES;
}

/* The fewest seeds from `least` on, 0 if DL2_MOST_SEEDS_NEEDED are too few. */
static size_t find_seeds(const struct dl2_prospects *prospects, double times_images, double wanted,
                         size_t least)
{
    size_t most = DL2_MOST_SEEDS_NEEDED;
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
    for (double times = 1; times <= DL2_MOST_TIMES_IMAGES; times *= sqrt(2)) {
        const size_t few = find_seeds(prospects, times, FEW, 2);
        const size_t many = few ? find_seeds(prospects, times, MANY, few) : 0;
        if (many && (!best.few || (double)many * times < (double)best.many * best.times_images))
            best = (struct dl2_study_size){few, many, times};
        if ((best.few && times == 1) || !prospects->images)
            break;
    }
    return best;
}
