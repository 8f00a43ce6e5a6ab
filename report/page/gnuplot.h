/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs gnuplot. */
#ifndef DL2_REPORT_GNUPLOT_H
#define DL2_REPORT_GNUPLOT_H

#include <stdbool.h>

/* Runs FOLDER/NAME.gp in its folder. What gnuplot complains of is thrown away. False: it failed. */
bool dl2_gnuplot_run(const char *gnuplot, const char *folder, const char *name);

#endif
