/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/repetitions.h"

#include "common/keep.h"
#include "common/random.h"
#include "common/scope.h"

#include <math.h>
#include <string.h>

/* Each image's mean outcome over seeds, of top-1 the share in which it is right; NAN if it is not
 * known. `known` is scratch. */
static void average_seeds(const struct dl2_study *study, const char *arch, size_t variant,
                          size_t images, double *shares, uint32_t *known)
{
    const struct dl2_runs runs = dl2_study_runs(study, variant, arch);
    memset(known, 0, images * sizeof *known);
    for (size_t r = 0; r < runs.count; r++)
        for (size_t i = 0; runs.at[r].outcome && i < images; i++)
            if (!isnan(runs.at[r].outcome[i])) {
                known[i]++;
                shares[i] += (double)runs.at[r].outcome[i];
            }
    for (size_t i = 0; i < images; i++)
        shares[i] = known[i] ? shares[i] / known[i] : NAN;
}

/* The images that all runs of a network know of, 0 where any has no predictions. */
static size_t count_images(const struct dl2_study *study, const char *arch)
{
    size_t images = 0;
    for (size_t r = 0; r < study->run_count; r++) {
        if (strcmp(study->runs[r].arch, arch) != 0)
            continue;
        if (!study->runs[r].outcome)
            return 0;
        images = study->runs[r].images;
    }
    return images;
}

/* Accuracy in percent with images drawn `times`, NAN without any. */
static double mean_of_images(const double *shares, const uint32_t *times, size_t images)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < images; i++)
        if (!isnan(shares[i])) {
            sum += times[i] * shares[i];
            count += times[i];
        }
    return count > 0 ? 100 * sum / count : NAN;
}

/* Draws images, or whole groups of them; `groups` is room for as many. */
static void draw_images(struct dl2_random *random, const struct dl2_prediction_table *table,
                        uint32_t *times, size_t images, uint32_t *groups)
{
    const bool grouped = table->group && table->count == images;
    const size_t count = grouped ? table->group_count : images;
    uint32_t *drawn = grouped ? groups : times;
    memset(drawn, 0, count * sizeof *drawn);
    for (size_t i = 0; i < count; i++)
        drawn[dl2_random_below(random, (uint32_t)count)]++;
    for (size_t i = 0; grouped && i < images; i++)
        times[i] = groups[table->group[i]];
}

/* The noise of a training is an estimate: by what factor it is off. */
static double draw_scale(struct dl2_random *random, size_t freedom)
{
    double chi_squared = 0;
    for (size_t f = 0; f < freedom; f++) {
        const double normal = dl2_random_normal(random);
        chi_squared += normal * normal;
    }
    return sqrt((double)freedom / chi_squared);
}

/* `shares` has the images of each variant, `times` room for them and for their groups. */
static void draw_accuracies(bool as_it_is, const struct dl2_analysis *analysis,
                            const struct dl2_prediction_table *table, const double *shares,
                            uint32_t *times, size_t images, struct dl2_repetitions *repetitions)
{
    struct dl2_random random;
    dl2_random_init(&random, 0, DL2_RANDOM_BOOTSTRAP, 1, 0);
    for (size_t d = 0; d < DL2_REPETITIONS; d++) {
        draw_images(&random, table, times, images, times + images);
        const double deviation =
            as_it_is ? 0 : analysis->noise.deviation * draw_scale(&random, analysis->noise.freedom);
        for (size_t v = 0; v < repetitions->variants; v++) {
            const struct dl2_estimate *accuracy = &analysis->comparisons[v].accuracy;
            const double mean =
                images ? mean_of_images(shares + v * images, times, images) : accuracy->mean;
            const double noise = accuracy->count ? deviation / sqrt((double)accuracy->count) : NAN;
            repetitions->accuracy[v * DL2_REPETITIONS + d] =
                mean + noise * dl2_random_normal(&random);
        }
    }
}

struct dl2_repetitions dl2_repetitions_draw(const struct dl2_study *study,
                                            const struct dl2_analysis *analysis, size_t arch)
{
    static const struct dl2_prediction_table none;
    const size_t count = study->variant_count, images = count_images(study, analysis->arch);
    struct dl2_repetitions repetitions = {.variants = count, .images = images > 0};
    if ((!study->as_it_is && (!isfinite(analysis->noise.deviation) || !analysis->noise.freedom)) ||
        (study->as_it_is && !images) || !count)
        return repetitions;
    DL2_AUTO_FREE double *shares =
        dl2_room(images, count * sizeof *shares, "%zu validation images", images);
    DL2_AUTO_FREE uint32_t *times =
        dl2_room(images, 2 * sizeof *times, "%zu validation images", images);
    repetitions.accuracy =
        dl2_room(count, DL2_REPETITIONS * sizeof *repetitions.accuracy, "%zu variants", count);
    for (size_t v = 0; images && v < count; v++)
        average_seeds(study, analysis->arch, v, images, shares + v * images, times);
    draw_accuracies(study->as_it_is, analysis, study->images ? &study->images[arch] : &none, shares,
                    times, images, &repetitions);
    return repetitions;
}
