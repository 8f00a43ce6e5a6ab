/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which figure should a quality be chosen? Every metric's mean and worse 5th percentile, and
 * bits per pixel, each with how it orders the variants (report/metric_trust.h), and which metrics
 * do best.
 */
#ifndef DL2_REPORT_METRIC_GUIDES_H
#define DL2_REPORT_METRIC_GUIDES_H

#include "report/metric_trust.h"

enum { DL2_MAX_GUIDES = 2 * DL2_MAX_METRICS + 1 };

/* What variants are ordered by: a metric's aggregate, or bits per pixel. */
struct dl2_guide {
    const char *metric; /* NULL: bits per pixel */
    const char *part;   /* "mean" */
    const char *title;  /* of the part */
    bool lower_is_better;
    struct dl2_ranking ranking;
};

struct dl2_guides { /* of one network */
    struct dl2_guide items[DL2_MAX_GUIDES];
    size_t count; /* bits per pixel comes last */
    bool any;     /* has any of them a tau? */
};

/* "PSNR RGB" of "psnr_rgb"; its own name where dl2-quality has not told. */
const char *dl2_metric_title(const struct dl2_study *study, const char *metric);
double dl2_guide_value(const struct dl2_guide *guide, const struct dl2_study_variant *variant);

/* `metrics` must outlive them. */
int dl2_guides_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                    const struct dl2_accuracy_order *order, const struct dl2_metric_names *metrics,
                    struct dl2_guides *guides, struct dl2_error *error);
/* Says which metrics come first, and whether the study can tell them from the others; empty where
 * none has a tau. */
void dl2_guides_say(const struct dl2_guides *guides, const struct dl2_study *study, char *text,
                    size_t size);

#endif
