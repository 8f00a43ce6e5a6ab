/* SPDX-License-Identifier: BSD-2-Clause */
/* What a training did, or a machine, sample by sample: figures of timelines in result files. */
#ifndef DL2_REPORT_TIMELINE_H
#define DL2_REPORT_TIMELINE_H

#include "report/study.h"

struct dl2_timeline_figure {
    const char *column; /* of the timeline */
    double unit;        /* 1e9: in GB; 0: the cores of the machine */
    bool is_rate;       /* how fast the column rises, a second */
    bool is_share;      /* percent, and at most all of it */
    bool of_card;       /* of all who share the machine: a card tells of all */
};

/* A rank's timeline; NULL: there is none. Borrowed from the run. */
const json_t *dl2_timeline_of(const struct dl2_study_run *run, size_t rank);
size_t dl2_timeline_samples(const json_t *timeline);
/* Seconds from the start to sample `i`; NAN: not known. */
double dl2_timeline_seconds(const json_t *timeline, size_t i);
/* `report`: the file, which has the machine's cores. NAN where it is not known. */
double dl2_timeline_value(const json_t *report, const json_t *timeline,
                          const struct dl2_timeline_figure *figure, size_t i);

#endif
