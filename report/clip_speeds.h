/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast clips load, by container: what `make study-clips` leaves in
 * FOLDER/clips/STORAGE/frames-N/load/CONTAINER/round-M.json (report/rounds.h).
 */
#ifndef DL2_REPORT_CLIP_SPEEDS_H
#define DL2_REPORT_CLIP_SPEEDS_H

#include "common/keep.h"

/* The lines of a table; none where there are no results. Kept. */
struct dl2_words dl2_clips_lines(const char *folder);

#endif
