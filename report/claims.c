/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/claims.h"

#include "common/memory.h"
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Levels of looks */

enum { STEPS = 120 }; /* of the integrals, even: Simpson's rule */
#define REACH 8.0     /* standard deviations below 0 at which they begin */

/* The part of a sum of normal increments that has not crossed a boundary so far. */
struct walk {
    double low, high, density[STEPS + 1];
};

static double place(const struct walk *walk, size_t step)
{
    return walk->low + (walk->high - walk->low) * (double)step / STEPS;
}

static double weight(const struct walk *walk, size_t step)
{
    const double simpson = step == 0 || step == STEPS ? 1 : step % 2 ? 4 : 2;
    return simpson * (walk->high - walk->low) / STEPS / 3;
}

static double normal_density(double x, double variance)
{
    return exp(-x * x / (2 * variance)) / sqrt(2 * M_PI * variance);
}

/*
 * The boundary that the walk, after an increment of that variance, is above with probability
 * `spent`. Newton's steps from 0, as of dl2_student_quantile(): what has not crossed yet lies to
 * the left, so that the tail is convex.
 */
static double find_boundary(const struct walk *walk, double variance, double spent)
{
    double boundary = 0;
    for (int round = 0; round < 200; round++) {
        double above = 0, density = 0;
        for (size_t i = 0; i <= STEPS; i++) {
            const double part = weight(walk, i) * walk->density[i];
            const double step = boundary - place(walk, i);
            above += part * dl2_student_tail(step / sqrt(variance), INFINITY);
            density += part * normal_density(step, variance);
        }
        boundary += (above - spent) / density;
        if (!(above - spent > 1e-9 * spent))
            break;
    }
    return boundary;
}

static void advance(const struct walk *walk, double variance, double low, double boundary,
                    struct walk *next)
{
    next->low = low;
    next->high = boundary;
    for (size_t k = 0; k <= STEPS; k++) {
        next->density[k] = 0;
        for (size_t i = 0; i <= STEPS; i++) {
            next->density[k] += weight(walk, i) * walk->density[i] *
                                normal_density(place(next, k) - place(walk, i), variance);
        }
    }
}

/*
 * The recursion of Armitage, McPherson & Rowe (1969), as in Jennison & Turnbull, Group Sequential
 * Methods, 2000, ch. 19: the walk is a sum of normal increments, its variance at the last look 1.
 */
int dl2_spend(double level, const struct dl2_looks *looks, double *levels, struct dl2_error *error)
{
    struct walk *walks = dl2_calloc(2, sizeof *walks);
    if (!walks)
        return dl2_error_memory(error, "the levels of %zu looks", looks->count);
    struct walk *walk = &walks[0], *next = &walks[1];
    const double most = (double)looks->seeds[looks->count - 1];
    double before = 0;
    for (size_t look = 0; look < looks->count; look++) {
        const double now = (double)looks->seeds[look] / most, increment = now - before;
        const double spent = level * increment;
        double boundary;
        if (look == 0) {
            boundary = dl2_student_quantile(spent, INFINITY) * sqrt(now);
            walk->low = -REACH * sqrt(now);
            walk->high = boundary;
            for (size_t i = 0; i <= STEPS; i++)
                walk->density[i] = normal_density(place(walk, i), now);
        } else {
            boundary = find_boundary(walk, increment, spent);
            if (look + 1 < looks->count) {
                advance(walk, increment, -REACH * sqrt(now), boundary, next);
                struct walk *old = walk;
                walk = next;
                next = old;
            }
        }
        levels[look] = dl2_student_tail(boundary / sqrt(now), INFINITY);
        before = now;
    }
    free(walks);
    return DL2_OK;
}

int dl2_plan_make(const struct dl2_looks *looks, size_t codecs, struct dl2_plan *plan,
                  struct dl2_error *error)
{
    *plan = (struct dl2_plan){.looks = *looks, .codecs = codecs};
    plan->levels = dl2_calloc(codecs + 1, looks->count * sizeof *plan->levels);
    if (!plan->levels)
        return dl2_error_memory(error, "the levels of %zu codecs", codecs);
    for (size_t open = 1; open <= codecs; open++)
        DL2_TRY(dl2_spend(DL2_CLAIMS_LEVEL / (double)open, looks,
                          &plan->levels[(open - 1) * looks->count], error));
    return DL2_OK;
}

void dl2_plan_free(struct dl2_plan *plan)
{
    free(plan->levels);
    plan->levels = NULL;
}

/* ---- The family */

/* The next claim of a codec: the largest file that is not claimed yet; `count`: none is left. */
static size_t next_claim(const struct dl2_study_claim *claims, size_t count, size_t codec)
{
    size_t next = count;
    for (size_t i = 0; i < count; i++)
        if (claims[i].codec == codec && !claims[i].within &&
            (next == count || claims[i].bytes > claims[next].bytes))
            next = i;
    return next;
}

int dl2_claims_test(struct dl2_study_claim *claims, size_t count, double tolerance,
                    const struct dl2_plan *plan, size_t look, struct dl2_error *error)
{
    size_t *next = dl2_calloc(plan->codecs + 1, sizeof *next);
    if (!next)
        return dl2_error_memory(error, "%zu claims", count);
    double *levels = &plan->levels[look];
    for (size_t i = 0; i < count; i++)
        claims[i].blocker = i;
    for (bool passed = true; passed;) {
        passed = false;
        size_t open = 0;
        for (size_t codec = 0; codec < plan->codecs; codec++) {
            next[codec] = next_claim(claims, count, codec);
            open += next[codec] < count;
        }
        for (size_t codec = 0; codec < plan->codecs; codec++) {
            if (next[codec] == count)
                continue;
            struct dl2_study_claim *claim = &claims[next[codec]];
            if (claim->level == 0)
                claim->reached = look;
            claim->level = levels[(open - 1) * plan->looks.count];
            if (claim->beyond ||
                !(claim->difference - dl2_spread_half(&claim->spread, claim->level) >= -tolerance))
                continue;
            claim->within = passed = true;
            claim->look = look;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct dl2_study_claim *claim = &claims[i];
        if (claim->within || claim->beyond)
            continue;
        claim->blocker = next[claim->codec];
        if (claim->difference + dl2_spread_half(&claim->spread, levels[0]) < -tolerance) {
            claim->beyond = true;
            claim->look = look;
        }
    }
    free(next);
    return DL2_OK;
}
