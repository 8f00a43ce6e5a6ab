/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What would training on a variant cost? An answer from trainings on the original alone, made by
 * `make forecast`: they are validated on every variant, and tuned on it for an epoch or so. Tuning
 * on the original is the control, so that what tuning itself costs or gains cancels.
 *
 * What tuning loses is no measurement of what training loses: it tells what to train on first.
 */
#ifndef DL2_REPORT_FORECAST_H
#define DL2_REPORT_FORECAST_H

#include "report/analysis.h"
#include "report/conditions.h"

/* Percentage points of accuracy that a variant loses; NAN: not known. */
struct dl2_forecast {
    double as_is; /* when the original's networks are validated on it, without tuning */
    double tuned; /* by tuning on it, against as much tuning on the original */
    double half;  /* of its 95% interval: chance of training, and the choice of images if known */
};

/* One for each variant of the study: [variant_count], kept. */
struct dl2_forecast *dl2_forecast_make(const struct dl2_study *study,
                                       const struct dl2_conditions *conditions, const char *arch);

/* Is any forecast known? */
bool dl2_forecast_any(const struct dl2_study *study, const struct dl2_forecast *forecasts);

#endif
