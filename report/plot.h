/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report's plots: for each a data file, a gnuplot script that can be run by hand in the
 * plots' folder, and the SVG that it makes.
 */
#ifndef DL2_REPORT_PLOT_H
#define DL2_REPORT_PLOT_H

#include "common/memory.h"
#include "report/analysis.h"

/* A colour of the plots as gnuplot writes it, "rgb( 47, 111, 222)", and
 * what it is on a dark page. */
struct dl2_plot_colour {
    const char *light; /* "#2f6fde" */
    const char *dark;
};
/* All of them; ends with NULLs. */
extern const struct dl2_plot_colour dl2_plot_colours[];

enum dl2_plot_kind {
    DL2_PLOT_RATE_DISTORTION,
    DL2_PLOT_ACCURACY,
    DL2_PLOT_CURVES,
    DL2_PLOT_TIMELINE,
};

struct dl2_plot {
    enum dl2_plot_kind kind;
    size_t arch;          /* of the study's, for all kinds but the first */
    size_t variant;       /* for DL2_PLOT_TIMELINE */
    char name[128];       /* "rate-psnr": the files' names without extension */
    char title[256];      /* what it shows */
    struct dl2_bytes svg; /* an <svg> element to stand in a page; empty where gnuplot failed */
};

struct dl2_plots {
    struct dl2_plot *items;
    size_t count;
    char problem[1024]; /* why there are no pictures, or "" */
};

/*
 * Writes into `folder` each plot for which the study has figures. `analyses` has one per network of
 * the study. Without gnuplot the data and scripts are written all the same and `problem` says so.
 * Free with dl2_plots_free(), on failure too.
 */
int dl2_plots_make(const struct dl2_study *study, const struct dl2_analysis *analyses,
                   const char *folder, const char *gnuplot, struct dl2_plots *plots,
                   struct dl2_error *error);
void dl2_plots_free(struct dl2_plots *plots);

#endif
