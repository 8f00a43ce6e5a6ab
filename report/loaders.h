/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other loaders beside dl2's: what `make study-loading LOADERS=...` leaves in
 * FOLDER/loaders/STORAGE/jobs-N/LOADER/VARIANT/round-N.json, dl2-loader/1 of study/peer_load.py.
 */
#ifndef DL2_REPORT_LOADERS_H
#define DL2_REPORT_LOADERS_H

#include "common/keep.h"

/* The lines of a table, means over rounds with their 95% intervals, and of what failed; none where
 * there are no results. Kept. */
struct dl2_words dl2_loaders_lines(const char *folder);

#endif
