/* SPDX-License-Identifier: BSD-2-Clause */
/* What a training did, sample by sample: figures of the timelines in its report. */
#ifndef DL2_REPORT_TIMELINE_H
#define DL2_REPORT_TIMELINE_H

#include "report/study.h"

enum dl2_timeline_figure {
    DL2_TIMELINE_IMAGES_RATE, /* a second */
    DL2_TIMELINE_WAIT,        /* for data, percent of the time */
    DL2_TIMELINE_CPU,         /* percent of all cores */
    DL2_TIMELINE_CARD,        /* percent of the time; what follows with CARD is of the card, too */
    DL2_TIMELINE_PROCESS_GB,
    DL2_TIMELINE_CARD_GB,
    DL2_TIMELINE_RECEIVED, /* MB a second */
    DL2_TIMELINE_SENT,
    DL2_TIMELINE_CARD_WATTS
};

/* A rank's timeline; NULL: there is none. Borrowed from the run. */
const json_t *dl2_timeline_of(const struct dl2_study_run *run, size_t rank);
size_t dl2_timeline_samples(const json_t *timeline);
/* Seconds from the start to sample `i`; NAN: not known. */
double dl2_timeline_seconds(const json_t *timeline, size_t i);
/* NAN where it is not known, and for a card's where others shared the machine: those are of all
 * that ran on the card. */
double dl2_timeline_value(const struct dl2_study_run *run, const json_t *timeline,
                          enum dl2_timeline_figure figure, size_t i);

#endif
