/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plots for LaTeX: for each, its data, a gnuplot script, and what the script makes by gnuplot's
 * terminal cairolatex: NAME.tex, which sets the texts in the document's fonts, and NAME.pdf below
 * them. figures.tex is a document with all of them.
 */
#ifndef DL2_REPORT_LATEX_H
#define DL2_REPORT_LATEX_H

#include "report/page/plot.h"

struct dl2_latex {
    const char *folder;        /* exists */
    struct dl2_bytes document; /* what there is of figures.tex */
};

/* Writes and draws a plot. An error if gnuplot can't: this was asked for. */
int dl2_latex_draw(struct dl2_latex *latex, const struct dl2_plot *plot, const char *gnuplot,
                   struct dl2_error *error);

/* Writes figures.tex and frees the document, on failure too. DL2_ERR_ARGUMENT without any plot. */
int dl2_latex_end(struct dl2_latex *latex, struct dl2_error *error);

#endif
