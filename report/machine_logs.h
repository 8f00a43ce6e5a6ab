/* SPDX-License-Identifier: BSD-2-Clause */
/* How the machines were used while a study was made: the dl2-timeline/1 files of FOLDER/timelines.
 */
#ifndef DL2_REPORT_MACHINE_LOGS_H
#define DL2_REPORT_MACHINE_LOGS_H

#include "common/keep.h"

/* Times are seconds since the first one's start, without the pauses. */
struct dl2_machine_log {
    const char *host, *stage; /* of a study's step "train/raw/..." "train"; else the program */
    double from, to;
    const json_t *report, *timeline;
};

struct dl2_machine_logs {
    struct dl2_machine_log *items; /* by their start; kept */
    size_t count;
    size_t pauses; /* stretches of DL2_MACHINE_PAUSE seconds or more in which none was at work */
    struct dl2_words broken; /* "FILE: why" */
};

#define DL2_MACHINE_PAUSE 600.0

struct dl2_machine_logs dl2_machine_logs_read(const char *folder);

#endif
