/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do the report's sentences on speed keep their promises? Studies are drawn whose truth is known,
 * their speeds are analyzed as those of real ones, and counted: how often do the intervals hold the
 * truth, how often is any variant wrongly claimed to be faster than the original, and how often is
 * the fastest neither recommended nor said to be perhaps as fast?
 *
 *   simulate_speed [STUDIES [WORDS]]     of each kind whose name has these words
 *
 * The accuracy of a training after an epoch is the variant's curve + luck of the training, of which
 * a part is shared by the trainings of a seed, + luck of the epoch, larger early in the schedule. A
 * rate is the variant's + luck of the round, shared by all its measurements, + chance. What is true
 * is of the curves and rates without luck, read off at the epochs that are validated.
 */
#include "common/random.h"
#include "report/speed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARIANTS = 7, MAX_SEEDS = 8, MAX_ROUNDS = 8, MAX_EPOCHS = 90 };

#define TOLERANCE 2.0 /* points */

static const struct schedule {
    const char *name;
    size_t epochs, every; /* an epoch is validated */
    double pace, late;    /* epochs of a curve's fast part; the share of what comes late */
    double luck, early;   /* points; what the first epochs have of it in addition, as a factor */
    double shared;        /* the share of a training's luck that its seed has in all variants */
} schedules[] = {
    {"8 epochs", 8, 2, 2.5, 0.3, 2, 1, 0},    {"8 epochs, rough", 8, 2, 2.5, 0.3, 2.5, 2, 0.3},
    {"30 epochs", 30, 1, 6, 0.3, 1, 1, 0.2},  {"30 epochs, rough", 30, 1, 6, 0.1, 1, 3, 0.2},
    {"90 epochs", 90, 5, 20, 0.5, 0.4, 1, 0},
};

/* Variants' final accuracies in points above the original's, paces and rates in parts of its. */
static const struct variants {
    const char *name;
    size_t count;
    struct {
        double gain, pace, rate;
    } items[MAX_VARIANTS];
} families[] = {
    {"one", 1, {{0, 1, 1}}},
    {"one that is better", 1, {{0.7, 0.8, 1.1}}},
    {"one that is worse", 1, {{-1, 1.1, 1}}},
    {"six alike", 6, {{0, 1, 1}, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}}},
    {"six, three faster",
     6,
     {{0, 1, 1}, {0, 1, 1}, {0, 1, 1}, {0, 1, 1.3}, {0, 1, 1.31}, {-1, 1, 1.4}}},
};

static const struct kind {
    const struct schedule *schedule;
    const struct variants *variants;
    size_t seeds, rounds;
    double noise; /* of a rate, as a share */
} drawn_kinds[] = {
#define OF(schedule, family, seeds, rounds, noise)                                                 \
    {                                                                                              \
        &schedules[schedule], &families[family], seeds, rounds, noise                              \
    }
    OF(0, 0, 2, 5, 0.03), OF(1, 0, 2, 8, 0.03),  OF(3, 2, 2, 5, 0.01),  OF(4, 1, 2, 3, 0.03),
    OF(0, 1, 3, 5, 0.03), OF(1, 2, 3, 8, 0.01),  OF(2, 0, 3, 2, 0.03),  OF(3, 0, 3, 5, 0.01),
    OF(0, 2, 4, 5, 0.03), OF(1, 1, 4, 5, 0.005), OF(3, 0, 4, 5, 0.005), OF(4, 0, 4, 2, 0.03),
    OF(0, 0, 8, 5, 0.03), OF(1, 2, 8, 5, 0.03),  OF(2, 2, 8, 3, 0.1),   OF(3, 0, 8, 8, 0.03),
    OF(0, 3, 2, 5, 0.03), OF(1, 3, 3, 5, 0.005), OF(2, 3, 4, 3, 0.03),  OF(3, 3, 8, 8, 0.01),
    OF(0, 4, 3, 5, 0.03), OF(2, 4, 4, 3, 0.03),  OF(4, 4, 3, 2, 0.01),  OF(2, 4, 8, 8, 0.1),
#undef OF
};

struct drawing {
    struct dl2_study study;
    struct dl2_study_variant variants[MAX_VARIANTS];
    struct dl2_study_run runs[MAX_VARIANTS * MAX_SEEDS];
    struct dl2_round rounds[MAX_VARIANTS * MAX_ROUNDS];
    struct dl2_comparison comparisons[MAX_VARIANTS];
    struct dl2_analysis analysis;
    double curves[MAX_VARIANTS * MAX_SEEDS][MAX_EPOCHS]; /* fractions */
    char names[MAX_VARIANTS][16];
    double truth[DL2_SPEED_KINDS][MAX_VARIANTS]; /* logarithms of ratios to the original */
};

static double rate_of(const struct kind *kind, size_t v)
{
    return v ? kind->variants->items[v - 1].rate : 1;
}

/* Top-1 in percent after `epoch`, without luck. */
static double curve_of(const struct kind *kind, size_t v, size_t epoch)
{
    const struct schedule *schedule = kind->schedule;
    const double pace = schedule->pace * (v ? kind->variants->items[v - 1].pace : 1);
    const double done = (double)epoch, all = (double)schedule->epochs;
    const double fast = (1 - exp(-done / pace)) / (1 - exp(-all / pace));
    const double late = done * done / (all * all);
    return (81 + (v ? kind->variants->items[v - 1].gain : 0)) *
           ((1 - schedule->late) * fast + schedule->late * late);
}

static double epochs_to(const struct kind *kind, size_t v, double accuracy)
{
    const size_t every = kind->schedule->every;
    size_t epoch = every;
    while (curve_of(kind, v, epoch) < accuracy)
        epoch += every;
    if (epoch == every)
        return (double)epoch;
    const double before = curve_of(kind, v, epoch - every), after = curve_of(kind, v, epoch);
    return (double)epoch - (double)every * (after - accuracy) / (after - before);
}

static void draw_study(const struct kind *kind, struct dl2_random *random, struct drawing *drawn)
{
    static char network[] = "network", *archs[] = {network};
    const struct schedule *schedule = kind->schedule;
    const size_t variants = 1 + kind->variants->count;
    double shared[MAX_SEEDS], of_round[MAX_ROUNDS], final[MAX_VARIANTS] = {0};
    for (size_t s = 0; s < kind->seeds; s++)
        shared[s] = dl2_random_normal(random);
    for (size_t r = 0; r < kind->rounds; r++)
        of_round[r] = dl2_random_normal(random);
    drawn->study = (struct dl2_study){.variants = drawn->variants,
                                      .variant_count = variants,
                                      .runs = drawn->runs,
                                      .archs = archs,
                                      .arch_count = 1,
                                      .rounds.items = drawn->rounds};
    for (size_t v = 0; v < variants; v++) {
        snprintf(drawn->names[v], sizeof drawn->names[v], v ? "variant-%zu" : "raw", v);
        drawn->variants[v] = (struct dl2_study_variant){.name = drawn->names[v], .load_rate = NAN};
        for (size_t s = 0; s < kind->seeds; s++) {
            double *curve = drawn->curves[drawn->study.run_count];
            const double luck = sqrt(schedule->shared) * shared[s] +
                                sqrt(1 - schedule->shared) * dl2_random_normal(random);
            for (size_t e = 1; e <= schedule->epochs; e++) {
                const double part = (double)e / (double)schedule->epochs;
                curve[e - 1] =
                    e % schedule->every
                        ? NAN
                        : (curve_of(kind, v, e) + schedule->luck * sqrt(0.5) *
                                                      (luck + (1 + schedule->early * (1 - part)) *
                                                                  dl2_random_normal(random))) /
                              100;
            }
            final[v] += 100 * curve[schedule->epochs - 1] / (double)kind->seeds;
            drawn->runs[drawn->study.run_count++] =
                (struct dl2_study_run){.variant = v,
                                       .arch = network,
                                       .seed = s + 1,
                                       .accuracy = curve[schedule->epochs - 1],
                                       .train_images = 1000,
                                       .epochs = schedule->epochs,
                                       .val_accuracy = curve};
        }
        for (size_t r = 0; r < kind->rounds; r++) {
            const double chance = 0.2 * of_round[r] + kind->noise * dl2_random_normal(random);
            drawn->rounds[drawn->study.rounds.count++] =
                (struct dl2_round){.network = network,
                                   .variant = drawn->names[v],
                                   .number = (unsigned)r + 1,
                                   .rate = 100 * rate_of(kind, v) * exp(chance),
                                   .core_rate = NAN,
                                   .stall = NAN,
                                   .joules = NAN};
        }
        /* Verdicts by what was measured: who is lucky at the end is more likely to be named. */
        const double difference = final[v] - final[0];
        drawn->comparisons[v] =
            (struct dl2_comparison){.accuracy.count = kind->seeds,
                                    .verdict = !v                            ? DL2_VERDICT_NONE
                                               : difference > -TOLERANCE / 2 ? DL2_VERDICT_WITHIN
                                               : difference > -TOLERANCE     ? DL2_VERDICT_LIKELY
                                                                         : DL2_VERDICT_UNLIKELY};
        const double accuracy = curve_of(kind, 0, schedule->epochs) - TOLERANCE;
        drawn->truth[DL2_SPEED_TRAIN][v] = log(rate_of(kind, v));
        drawn->truth[DL2_SPEED_ACCURACY][v] =
            log(rate_of(kind, v) * epochs_to(kind, 0, accuracy) / epochs_to(kind, v, accuracy));
    }
    drawn->analysis = (struct dl2_analysis){.arch = network,
                                            .kind = dl2_study_accuracy(&drawn->study),
                                            .question.tolerance = TOLERANCE,
                                            .comparisons = drawn->comparisons,
                                            .seeds = kind->seeds};
}

struct tally {
    size_t studies;
    struct {
        size_t intervals, hold; /* of the first variant */
        size_t wrong;           /* studies that claim "faster" of any that isn't */
        size_t claims, right;   /* of all variants that are; those that may be claimed */
        size_t picks, missed;   /* studies that recommend one; of these, the fastest isn't named */
    } of[DL2_SPEED_KINDS];
};

static void count_study(const struct drawing *drawn, const struct dl2_speeds *speeds,
                        struct tally *tally)
{
    const size_t variants = drawn->study.variant_count;
    tally->studies++;
    for (int way = DL2_SPEED_TRAIN; way < DL2_SPEED_KINDS; way++) {
        const double *truth = drawn->truth[way];
        const struct dl2_ratio *first = &speeds->variants[1].ratio[way];
        if (first->spread.freedom > 0) {
            tally->of[way].intervals++;
            tally->of[way].hold += log(dl2_ratio_low(first)) <= truth[1] + 1e-12 &&
                                   truth[1] - 1e-12 <= log(dl2_ratio_high(first));
        }
        bool wrong = false;
        size_t best = 0;
        for (size_t v = 1; v < variants; v++) {
            const struct dl2_speed *speed = &speeds->variants[v];
            wrong |= speed->faster[way] && truth[v] <= 1e-12;
            if (truth[v] > 1e-12) {
                tally->of[way].right++;
                tally->of[way].claims += speed->faster[way];
            }
            if (drawn->comparisons[v].verdict == DL2_VERDICT_WITHIN &&
                (!best || truth[v] > truth[best]))
                best = v;
        }
        tally->of[way].wrong += wrong;
        const size_t pick = speeds->fastest[way].sure;
        if (pick == variants)
            continue;
        tally->of[way].picks++;
        tally->of[way].missed += best != pick && !speeds->variants[best].rival[way];
    }
}

/* 4 standard errors: fails by chance once in thirty thousand. */
static bool above(double share, double limit, double count)
{
    return share > limit + 4 * sqrt(limit * (1 - limit) / count);
}

static double percent(size_t part, size_t all)
{
    return all ? 100 * (double)part / (double)all : 0;
}

static bool report_kind(const char *name, const struct tally *tally)
{
    static const char *const ways[] = {NULL, "trains", "to accuracy"};
    const double studies = (double)tally->studies;
    bool well = true;
    for (int way = DL2_SPEED_TRAIN; way < DL2_SPEED_KINDS; way++) {
        const size_t intervals = tally->of[way].intervals;
        printf("%-54s %-11s %5.1f%% have intervals, %5.1f%% of these hold; wrongly faster %.2f%%, "
               "rightly %5.1f%%; the fastest not named %.2f%%\n",
               way == DL2_SPEED_TRAIN ? name : "", ways[way], percent(intervals, tally->studies),
               percent(tally->of[way].hold, intervals),
               percent(tally->of[way].wrong, tally->studies),
               percent(tally->of[way].claims, tally->of[way].right),
               percent(tally->of[way].missed, tally->studies));
        well &= !above(0.945, percent(tally->of[way].hold, intervals) / 100, (double)intervals);
        well &= !above((double)tally->of[way].wrong / studies, DL2_CLAIMS_LEVEL, studies);
        well &= !above((double)tally->of[way].missed / studies, DL2_CLAIMS_LEVEL, studies);
    }
    return well;
}

int main(int argc, char **argv)
{
    static struct drawing drawn;
    const size_t studies = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    bool well = true;
    for (size_t k = 0; k < sizeof drawn_kinds / sizeof *drawn_kinds; k++) {
        const struct kind *kind = &drawn_kinds[k];
        struct tally tally = {0};
        char name[128];
        snprintf(name, sizeof name, "%zu seeds, %s, %s; %zu rounds, noise %g%%", kind->seeds,
                 kind->schedule->name, kind->variants->name, kind->rounds, 100 * kind->noise);
        if (argc > 2 && !strstr(name, argv[2]))
            continue;
        for (size_t n = 0; n < studies; n++) {
            struct dl2_random random;
            dl2_random_init(&random, 1, DL2_RANDOM_TEST, k, n);
            draw_study(kind, &random, &drawn);
            const struct dl2_speeds speeds = dl2_speeds_analyze(&drawn.study, &drawn.analysis, NAN);
            count_study(&drawn, &speeds, &tally);
            dl2_free_kept();
        }
        well &= report_kind(name, &tally);
        fflush(stdout);
    }
    puts(well ? "all within bounds" : "OUT OF BOUNDS");
    return !well;
}
