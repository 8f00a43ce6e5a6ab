/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a search of dl2-train found: search.json, and how its models' accuracy went. It lies in the
 * folder that is reported on, or in its folder search/.
 */
#ifndef DL2_REPORT_SEARCH_RESULTS_H
#define DL2_REPORT_SEARCH_RESULTS_H

#include "common/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum dl2_searched_outcome {
    DL2_SEARCHED_STOPPED, /* by the search, or before it came to its end */
    DL2_SEARCHED_DIVERGED,
    DL2_SEARCHED_TRAINED,
    DL2_SEARCHED_BEST,
    DL2_SEARCHED_OUTCOMES
};

struct dl2_searched {   /* a model of the search */
    const char *name;   /* borrowed, as what follows */
    const char *status; /* "stopped", as the file has it */
    const json_t *settings;
    enum dl2_searched_outcome outcome;
    double epochs, accuracy, loss; /* NAN: none */
    double rank;                   /* from 1; NAN: it has no figures */
    size_t count;                  /* of validations */
    double *position, *val_accuracy;
};

struct dl2_search_results {
    json_t *report; /* dl2-search/1; NULL: there is no search, and all else is 0 */
    struct dl2_searched *models;
    size_t count, *ranked;           /* [count]: numbers of the models, the best first */
    const struct dl2_searched *best; /* NULL: none */
    struct dl2_error
        broken; /* why search.json is no search; status 0: it is one, or there is none */
};

bool dl2_search_results_exist(const char *folder);

/* Collects the search. What is pointed to is kept. */
struct dl2_search_results dl2_search_results_collect(const char *folder);

/* The settings that were searched, those of all spaces in one object: values of lists together, and
 * the widest ranges. Kept. */
json_t *dl2_search_results_space(const struct dl2_search_results *results);

/* A setting that was searched, as an axis of a plot. */
struct dl2_search_axis {
    const char *name;   /* borrowed from the space */
    const json_t *list; /* NULL: a range */
    double min, max;
    bool logarithmic;
};
/* Makes axes of the first settings of a space that there is room for; returns their number. */
size_t dl2_search_axes(const json_t *space, struct dl2_search_axis *axes, size_t room);
/* The height of a value on its axis, 0 to 1; NAN: it is not there. */
double dl2_search_axis_height(const struct dl2_search_axis *axis, const json_t *value);
/* The axis of accuracy, percent, from the lowest to the highest; not finite: there is none. */
struct dl2_search_axis dl2_search_accuracy(const struct dl2_search_results *results);

#endif
