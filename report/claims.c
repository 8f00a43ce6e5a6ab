/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/claims.h"

#include "common/keep.h"
#include "common/scope.h"

#include <math.h>

void dl2_looks_plan(struct dl2_looks *looks, size_t first, double left)
{
    const double before = first ? pow((double)looks->seeds[first - 1], 3) : 0;
    double last = before;
    for (size_t look = first; look < looks->count; look++) {
        const double now = pow((double)looks->seeds[look], 3);
        const double all = pow((double)looks->seeds[looks->count - 1], 3) - before;
        looks->share[look] = left * (now - last) / all;
        last = now;
    }
}

double dl2_look_unplanned(double spent)
{
    return 0.75 * (1 - spent);
}

double dl2_look_level(const struct dl2_looks *looks, size_t look, size_t parts)
{
    return DL2_CLAIMS_LEVEL / (double)parts * looks->share[look];
}

double dl2_interval_level(const struct dl2_looks *looks, size_t look)
{
    return looks->count < 2 || !(looks->share[look] > 0) ? DL2_CLAIMS_LEVEL
                                                         : dl2_look_level(looks, look, 1);
}

static bool has_claims(const struct dl2_study_claim *claims, size_t count, size_t codec)
{
    for (size_t i = 0; i < count; i++)
        if (claims[i].codec == codec)
            return true;
    return false;
}

/* The next claim of a codec: the largest file that has not passed; `count`: none is left. */
static size_t next_claim(const struct dl2_study_claim *claims, const bool *passed, size_t count,
                         size_t codec)
{
    size_t next = count;
    for (size_t i = 0; i < count; i++)
        if (claims[i].codec == codec && !passed[i] &&
            (next == count || claims[i].bytes > claims[next].bytes))
            next = i;
    return next;
}

void dl2_claims_test(struct dl2_study_claim *claims, size_t count, size_t codecs, size_t networks,
                     double tolerance, const struct dl2_looks *looks, size_t look)
{
    DL2_AUTO_FREE size_t *next = dl2_room(codecs + 1, sizeof *next, "claims");
    DL2_AUTO_FREE bool *passed = dl2_room(count + 1, sizeof *passed, "claims");
    for (size_t i = 0; i < count; i++) {
        claims[i].blocker = i;
        passed[i] = claims[i].shown;
        if (claims[i].level == 0)
            claims[i].bound = NAN;
    }
    for (bool any = true; any;) {
        any = false;
        size_t open = 0;
        for (size_t codec = 0; codec < codecs; codec++) {
            next[codec] = next_claim(claims, passed, count, codec);
            open += next[codec] < count || !has_claims(claims, count, codec);
        }
        for (size_t codec = 0; codec < codecs; codec++) {
            if (next[codec] == count)
                continue;
            struct dl2_study_claim *claim = &claims[next[codec]];
            const double level = dl2_look_level(looks, look, open * networks);
            const double half = dl2_spread_half(&claim->spread, level);
            if (claim->level == 0)
                claim->reached = look;
            if (claim->level == 0 || isfinite(half)) { /* else it waits, and its last test holds */
                claim->level = level;
                claim->bound = claim->difference - half;
            }
            if (!claim->beyond && claim->difference - half >= -tolerance) {
                claim->shown = true;
                claim->look = look;
            }
            /* What stands from before these looks passes whatever they say, but its bound is that
             * of the look that shows it. */
            claim->within |= claim->shown;
            passed[next[codec]] = claim->within;
            any |= claim->within;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct dl2_study_claim *claim = &claims[i];
        if (claim->within || claim->beyond)
            continue;
        claim->blocker = next[claim->codec];
        if (claim->difference + dl2_spread_half(&claim->spread, dl2_interval_level(looks, look)) <
            -tolerance) {
            claim->beyond = true;
            claim->look = look;
        }
    }
}
