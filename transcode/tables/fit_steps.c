/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/tables/fit_steps.h"

#include "common/memory.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 2, COEFFICIENTS = 64, STEPS = 256, EIGHTHS = 8 };

/* Bits and errors of each table's coefficients at each step; step 0 is not used. */
struct curves {
    double bits[KINDS][COEFFICIENTS][STEPS];
    double error[KINDS][COEFFICIENTS][STEPS];
};

/* -count log2(count / all) */
static double information(double count, double all)
{
    return count > 0 ? -count * log2(count / all) : 0;
}

/* The bits of all levels of a step, each with its sign; `bins` counts magnitudes. */
static double entropy(const uint64_t *bins, size_t count, unsigned step)
{
    const size_t width = (size_t)EIGHTHS * step;
    double all = 0, bits = 0;
    for (size_t i = 0; i < count; i++)
        all += (double)bins[i];
    for (size_t first = 0; first < count;) {
        /* Halves are rounded away from zero: level n has [n - 1/2, n + 1/2). */
        const size_t level = (first + width / 2) / width;
        const size_t next = level * width + width - width / 2;
        double here = 0;
        for (size_t i = first; i < next && i < count; i++)
            here += (double)bins[i];
        bits += information(here, all) + (level ? here : 0);
        first = next;
    }
    return bits;
}

/* The sum of squared differences from the levels, in units of JPEG's coefficients. */
static double squared_error(const uint64_t *bins, size_t count, unsigned step)
{
    const size_t width = (size_t)EIGHTHS * step;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (bins[i]) {
            const double level = (double)((i + width / 2) / width * width);
            sum += (double)bins[i] * ((double)i - level) * ((double)i - level);
        }
    return sum / (EIGHTHS * EIGHTHS);
}

/* Bins up to the last one that isn't empty. */
static size_t used(const uint64_t *bins, size_t count)
{
    while (count && !bins[count - 1])
        count--;
    return count;
}

static void add_curve(struct curves *curves, int kind, unsigned k,
                      const struct dl2_coefficient_counts *counts, int plane, double weight)
{
    const uint64_t *const magnitudes = counts->magnitudes[plane][k];
    const uint64_t *const coded = k ? magnitudes : counts->differences[plane];
    const size_t bins = used(magnitudes, DL2_COEFFICIENT_BINS);
    const size_t coded_bins = used(coded, k ? DL2_COEFFICIENT_BINS : DL2_DIFFERENCE_BINS);
    for (unsigned step = 1; step < STEPS; step++) {
        curves->bits[kind][k][step] += entropy(coded, coded_bins, step);
        curves->error[kind][k][step] += weight * squared_error(magnitudes, bins, step);
    }
}

static double bits_of(const struct curves *curves, uint8_t steps[KINDS][COEFFICIENTS])
{
    double bits = 0;
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned k = 0; k < COEFFICIENTS; k++)
            bits += curves->bits[kind][k][steps[kind][k]];
    return bits;
}

static double usual_bits(const struct curves *curves, uint16_t usual[KINDS][COEFFICIENTS])
{
    uint8_t steps[KINDS][COEFFICIENTS];
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned k = 0; k < COEFFICIENTS; k++)
            steps[kind][k] = (uint8_t)usual[kind][k];
    return bits_of(curves, steps);
}

/* The best steps at a price; of equals the largest. */
static void choose_steps(const struct curves *curves, double lambda,
                         uint8_t steps[KINDS][COEFFICIENTS])
{
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned k = 0; k < COEFFICIENTS; k++) {
            double least = INFINITY;
            for (unsigned step = 1; step < STEPS; step++) {
                const double cost =
                    curves->error[kind][k][step] + lambda * curves->bits[kind][k][step];
                if (cost <= least) {
                    least = cost;
                    steps[kind][k] = (uint8_t)step;
                }
            }
        }
}

/* The lowest price at which the bits are at most `wanted`, or a very high one where none does. */
static double find_price(const struct curves *curves, double wanted,
                         uint8_t steps[KINDS][COEFFICIENTS], double unit)
{
    enum { HALVINGS = 48 };
    double low = log(unit) - 40, high = log(unit) + 40; /* far beyond any */
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        choose_steps(curves, exp(middle), steps);
        if (bits_of(curves, steps) > wanted)
            low = middle;
        else
            high = middle;
    }
    choose_steps(curves, exp(high), steps);
    return exp(high);
}

int dl2_fit_steps(const struct dl2_codec *codec, const struct dl2_coefficient_counts *counts,
                  double weights[3][64], struct dl2_jpeg_family *family, struct dl2_error *error)
{
    DL2_AUTO_FREE struct curves *curves = NULL;
    DL2_AUTO_FREE struct dl2_jpeg_steps *usual = NULL;
    DL2_TRY(DL2_NEW(&usual, 1, "quantization tables", error));
    DL2_TRY(DL2_NEW(&curves, 1, "quantization tables", error));
    for (int plane = 0; plane < 3; plane++)
        for (unsigned k = 0; k < COEFFICIENTS && counts->blocks[plane]; k++)
            add_curve(curves, plane > 0, k, counts, plane, weights[plane][k]);
    DL2_TRY(codec->usual_steps(usual, error));
    for (int q = 1; q <= DL2_TABLES_QUALITIES; q++)
        family->lambda[q - 1] = find_price(curves, usual_bits(curves, usual->steps[q]),
                                           family->steps[q - 1], weights[0][0]);
    return DL2_OK;
}
