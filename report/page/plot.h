/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws one plot with gnuplot: a data file, a script that can be run by hand in the plots' folder,
 * and the SVG that it makes. What a plot shows is its section's business.
 *
 *     struct dl2_plot plot =
 *         dl2_plot_begin("Accuracy against size", "x y", DL2_PLOT_HEIGHT, "accuracy");
 *     dl2_plot_axes(&plot, "bytes", "accuracy, %");
 *     dl2_plot_block(&plot, "jpeg");
 *     dl2_plot_number(&plot, x), dl2_plot_number(&plot, y), dl2_plot_data(&plot, "\n");
 *     dl2_plot_curve(&plot, "using 1:2 with lines linecolor rgb '%s' notitle", DL2_PLOT_INK);
 *     struct dl2_bytes svg = dl2_plot_draw(&plot, plotter);
 */
#ifndef DL2_REPORT_PLOT_H
#define DL2_REPORT_PLOT_H

#include "common/error.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stddef.h>

/* The colors of plots; page.html has those of a dark page, and a plot uses no others. */
#define DL2_PLOT_INK      "#3a4048"
#define DL2_PLOT_SOFT_INK "#5b616b"
#define DL2_PLOT_AXIS     "#8a8f98"
#define DL2_PLOT_GRID     "#e6e8eb"
#define DL2_PLOT_BAND     "#eef3ee"
#define DL2_PLOT_BLUE     "#2f6fde"
#define DL2_PLOT_ORANGE   "#d9730d"
#define DL2_PLOT_GREEN    "#14895c"
#define DL2_PLOT_VIOLET   "#8f4fc4"
#define DL2_PLOT_PINK     "#b8336a"
#define DL2_PLOT_TEAL     "#0e7f94"
#define DL2_PLOT_BROWN    "#8a6d1a"
#define DL2_PLOT_RED      "#c2410c"
#define DL2_PLOT_LIME     "#6b8f1a"

enum { DL2_PLOT_WIDTH = 560, DL2_PLOT_HEIGHT = 360 }; /* of most plots, pixels */

/* A codec's color; `number` (from 0) tells those apart that have none of their own. */
const char *dl2_plot_codec_color(const char *codec, size_t number);

/* The color of item `i` of `count` in a row: from red (strong compression) to violet (weak). */
const char *dl2_plot_ramp(size_t i, size_t count);

/*
 * The plots for LaTeX: for each, its data, a gnuplot script, and what the script makes by gnuplot's
 * terminal cairolatex: NAME.tex, which sets the texts in the document's fonts, and NAME.pdf below
 * them. figures.tex is a document with all of them.
 */
struct dl2_latex {
    const char *folder;        /* exists */
    struct dl2_bytes document; /* what there is of figures.tex */
};
/* Writes figures.tex and frees the document, on failure too. DL2_ERR_ARGUMENT without any plot. */
int dl2_latex_end(struct dl2_latex *latex, struct dl2_error *error);

/* Where and with what a page's plots are drawn. */
struct dl2_plotter {
    const char *folder, *gnuplot;
    char problem[1024];      /* why there are no pictures, or "" */
    struct dl2_error error;  /* the first plot's that could not be written */
    struct dl2_latex *latex; /* where they are drawn for LaTeX, too; or NULL */
};

/* A range of an axis, from < to; above 0 where it is logarithmic. */
struct dl2_plot_range {
    double from, to;
    bool logarithmic;
};

/* A point that labels keep clear of. */
struct dl2_plot_point {
    double x, y;       /* pixels from the lower left corner */
    bool joined;       /* a line leads to it from the point before */
    char label[32];    /* "" for none */
    const char *color; /* of the label */
};

/* A plot that is being written. */
struct dl2_plot {
    char name[128]; /* "rate-ssim": the files' names without extension */
    char title[256];
    struct dl2_bytes data, script;
    size_t blocks;              /* in the data file */
    size_t curves;              /* in the current plot command */
    int height;                 /* pixels */
    int key_height;             /* of it, above the frame; pixels */
    struct dl2_plot_range x, y; /* of dl2_plot_frame() */
    struct dl2_plot_point *points;
    size_t point_count;
};

/*
 * Starts a plot, whose files get the name that the format makes, fit for a file's by
 * dl2_plot_plain(); it must be unique in the report. `columns` is a comment that heads the data.
 * End it with dl2_plot_draw().
 */
struct dl2_plot dl2_plot_begin(const char *title, const char *columns, int height, const char *name,
                               ...) DL2_PRINTF(4, 5);

/* Appends to the script, to the data. */
void dl2_plot_script(struct dl2_plot *plot, const char *format, ...) DL2_PRINTF(2, 3);
void dl2_plot_data(struct dl2_plot *plot, const char *format, ...) DL2_PRINTF(2, 3);
/* A number and a blank for the data; gnuplot reads NaN as missing. */
void dl2_plot_number(struct dl2_plot *plot, double value);

/* Labels the axes. Texts are gnuplot's: '' stands for a quote. */
void dl2_plot_axes(struct dl2_plot *plot, const char *x, const char *y);

/* Makes room for a key of so many entries, the longest of which has so many characters: the plot
 * grows where it needs several rows. Before dl2_plot_frame(), or without a frame. */
void dl2_plot_key(struct dl2_plot *plot, size_t entries, size_t longest);

/* Fixes the axes' ranges and the frame's place, as dl2_plot_point() needs it. */
void dl2_plot_frame(struct dl2_plot *plot, const struct dl2_plot_range *x,
                    const struct dl2_plot_range *y);

/*
 * Tells of a point of a curve, and of its label (NULL: none) in a color of the plots. Labels are
 * placed beside their points by dl2_plot_labels(), before the first curve, so that they cover
 * neither points, lines nor each other; one for which there is no room is left out.
 */
void dl2_plot_point(struct dl2_plot *plot, double x, double y, bool joined, const char *label,
                    const char *color);
void dl2_plot_labels(struct dl2_plot *plot);

/* Starts a block of the data. */
void dl2_plot_block(struct dl2_plot *plot, const char *name);

/* One more curve of the plot command, of the block that was started last: "using 1:2 with ...". */
void dl2_plot_curve(struct dl2_plot *plot, const char *format, ...) DL2_PRINTF(2, 3);

/*
 * Writes and draws the plot and frees it. Returns an <svg> element that can stand in a page with
 * others, which the caller frees. It is empty for a plot without curves, which is not written, for
 * one that can't be written (plotter->error), and where gnuplot failed, now or for an earlier plot:
 * then the data and script are written all the same, and plotter->problem says what to do. The
 * plotter's folder must exist; a NULL plotter draws and writes nothing.
 */
struct dl2_bytes dl2_plot_draw(struct dl2_plot *plot, struct dl2_plotter *plotter);

/* Makes a name safe for a script or data file: no blanks, no quotes, nothing that gnuplot expands.
 * Returns `out`. */
const char *dl2_plot_plain(const char *name, char *out, size_t size);
/* The same for a text that people read: blanks and some marks stay. */
const char *dl2_plot_label(const char *text, char *out, size_t size);

/*
 * A curve of a plot, with or without intervals:
 *
 *     struct dl2_curve curve = {.plot = &plot, .name = "jpeg", .color = color, .bars = "1:2:3"};
 *     dl2_curve_point(&curve, (const double[]){x, y, half}, 3, "jpeg-50");   ... any number
 *     dl2_curve_draw(&curve);
 *
 * Its points are a block of the data, a line each. Without a point nothing is drawn.
 */
struct dl2_curve {
    struct dl2_plot *plot;
    const char *name;  /* of the block */
    const char *title; /* in the plot's key, as gnuplot reads it; NULL: the name */
    const char *color;
    const char *columns; /* of the points; NULL: "1:2" */
    const char *bars;    /* columns of the intervals, which a point has where its third number is
                          * finite; NULL: the curve has none */
    double size;         /* of points; 0: 0.6 */
    const char *dash;    /* "(6,4)"; NULL: a solid line */
    int point;           /* gnuplot's type of points; 0: 7, a disc */
    size_t count;        /* of its points */
    size_t rises, falls; /* of x from point to point */
    double last;         /* x */
    bool intervals;      /* has any of them one? */
};

/* `note` ends the line of the data: what the point is of; or NULL. */
void dl2_curve_point(struct dl2_curve *curve, const double *numbers, size_t count,
                     const char *note);
/* Draws the intervals as a band between two columns ("1:4:5") if x rises, or falls, from point to
 * point; as bars otherwise. */
void dl2_curve_draw_band(const struct dl2_curve *curve, const char *columns, double opacity);
/* Draws points, and the line that joins them; "points" or "linespoints". */
void dl2_curve_draw_as(const struct dl2_curve *curve, const char *style);
/* Draws intervals, points and the line that joins them. */
void dl2_curve_draw(const struct dl2_curve *curve);

/* What curves are compared with: a dashed line at `at`, and the tolerance from `from` to there
 * (NAN: none), shaded. On the axis of x or y. */
void dl2_curve_reference(struct dl2_plot *plot, char axis, double at, double from);

#endif
