/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measurements of speed that were repeated in rounds, each alone on its machine. A round measures
 * all variants one after the other, so that what changes on the machine from round to round changes
 * all of them: ratios are taken within a round, and their interval tells of the rounds alone.
 *
 * FOLDER/NETWORK/VARIANT/round-N.json is of `dl2-train measure`, FOLDER/load/VARIANT/round-N.json
 * of `dl2-load bench`. Figures are NAN where they aren't known.
 */
#ifndef DL2_REPORT_ROUNDS_H
#define DL2_REPORT_ROUNDS_H

#include "common/keep.h"
#include "report/inference.h"

#include <jansson.h>
#include <stddef.h>

struct dl2_round {
    char *network; /* NULL: the loader alone */
    char *variant;
    unsigned number;    /* from 1 */
    json_t *report;     /* dl2-rate/1 or dl2-load/1 */
    double rate;        /* images a second */
    double core_rate;   /* the loader's images a second of a core */
    double stall;       /* share of the time that training waited for data */
    double joules;      /* of the card, an image */
    double image_bytes; /* that the loader read for an image */
};

struct dl2_rounds {
    struct dl2_round *items; /* by network, variant and number */
    size_t count;
    struct dl2_words broken; /* files that should be whole and aren't: "FILE: why" */
};

/* How many times as fast: a geometric mean over rounds. NAN without a common round. */
struct dl2_ratio {
    double ratio;
    struct dl2_spread spread; /* of its natural logarithm */
    size_t rounds;
};

/* Reads what lies below `folder`; nothing where there is no such folder. */
struct dl2_rounds dl2_rounds_read(const char *folder);

/* Drops the measurement at `index`. */
void dl2_rounds_drop(struct dl2_rounds *rounds, size_t index);

/* A variant's first round of `network` (NULL: the loader); NULL: there is none. */
const struct dl2_round *dl2_rounds_first(const struct dl2_rounds *rounds, const char *network,
                                         const char *variant);

/* Mean of a variant's figure over the rounds of `network` (NULL: the loader), times `scale`.
 * `field` is the offset of a double of struct dl2_round; `scratch` has room for all measurements.
 */
struct dl2_estimate dl2_rounds_mean(const struct dl2_rounds *rounds, const char *network,
                                    const char *variant, size_t field, double scale,
                                    double *scratch);

/* `variant` against `base`, in the rounds that measured both. */
struct dl2_ratio dl2_rounds_ratio(const struct dl2_rounds *rounds, const char *network,
                                  const char *variant, const char *base, size_t field);

/* The ends of a ratio's 95% interval: 0 and INFINITY where the rounds can't tell. */
double dl2_ratio_low(const struct dl2_ratio *ratio);
double dl2_ratio_high(const struct dl2_ratio *ratio);

#endif
