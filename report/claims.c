/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/claims.h"

#include "common/keep.h"
#include "common/scope.h"

#include <math.h>

void dl2_looks_plan(struct dl2_looks *looks, size_t first, double left)
{
    const size_t before = first ? looks->seeds[first - 1] : 0;
    for (size_t look = first; look < looks->count; look++) {
        const size_t added = looks->seeds[look] - (look ? looks->seeds[look - 1] : 0);
        looks->share[look] =
            left * (double)added / (double)(looks->seeds[looks->count - 1] - before);
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

void dl2_claims_test(struct dl2_study_claim *claims, size_t count, size_t codecs, size_t networks,
                     double tolerance, const struct dl2_looks *looks, size_t look)
{
    DL2_AUTO_FREE size_t *next = dl2_room(codecs + 1, sizeof *next, "claims");
    for (size_t i = 0; i < count; i++)
        claims[i].blocker = i;
    for (bool passed = true; passed;) {
        passed = false;
        size_t open = 0;
        for (size_t codec = 0; codec < codecs; codec++) {
            next[codec] = next_claim(claims, count, codec);
            open += next[codec] < count || !has_claims(claims, count, codec);
        }
        for (size_t codec = 0; codec < codecs; codec++) {
            if (next[codec] == count)
                continue;
            struct dl2_study_claim *claim = &claims[next[codec]];
            if (claim->level == 0)
                claim->reached = look;
            claim->level = dl2_look_level(looks, look, open * networks);
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
        if (claim->difference + dl2_spread_half(&claim->spread, dl2_interval_level(looks, look)) <
            -tolerance) {
            claim->beyond = true;
            claim->look = look;
        }
    }
}
