/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the files of plots, and runs gnuplot on them. */
#ifndef DL2_REPORT_GNUPLOT_H
#define DL2_REPORT_GNUPLOT_H

#include "common/memory.h"

#include <stdbool.h>

/* Runs FOLDER/NAME.gp in its folder. What gnuplot complains of is thrown away. False: it failed. */
bool dl2_gnuplot_run(const char *gnuplot, const char *folder, const char *name);

/* Writes FOLDER/NAME.EXTENSION. */
int dl2_gnuplot_save(const char *folder, const char *name, const char *extension,
                     const struct dl2_bytes *bytes, struct dl2_error *error);

#endif
