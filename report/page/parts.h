/* SPDX-License-Identifier: BSD-2-Clause */
/* What the page's sections share: figures as people read them, cells of tables, plots. */
#ifndef DL2_REPORT_PARTS_H
#define DL2_REPORT_PARTS_H

#include "report/page/document.h"
#include "report/page/page.h"
#include "report/page/plot.h"

/* "1.2 MB"; finite. Kept. */
const char *dl2_part_bytes(double bytes);

/* A variant's name as readers know it: raw is "original". Borrowed. */
const char *dl2_part_variant_name(const char *name);

/* The color of a variant's codec, the same in all plots of a study and for all settings and
 * resolutions of the codec; the original has its own. */
const char *dl2_part_codec_color(const struct dl2_study *study, size_t v);

/* A curve without points for the variants of v's codec, settings and resolution: the codec's
 * color, a kind of points for the settings, and of dashes for the resolution. */
struct dl2_curve dl2_part_codec_curve(struct dl2_plot *plot, const struct dl2_study *study,
                                      size_t v);
/* A curve without points for the variant `name`, the i-th of `count`: the original is dashed, the
 * others go from red (strong compression) to violet. */
struct dl2_curve dl2_part_variant_curve(struct dl2_plot *plot, const char *name, size_t i,
                                        size_t count);
/* Makes room in the plot's key for a curve of each codec, its settings and resolution, and for
 * `more` entries. */
void dl2_part_codec_key(struct dl2_plot *plot, const struct dl2_study *study, size_t more);

/* Cells of a table's last row. A mean and half its interval. */
json_t *dl2_part_estimate(json_t *table, const struct dl2_estimate *estimate, int digits);
/* An accuracy, as the report shows it, with so many digits in percent; and half its interval. */
void dl2_part_accuracy(json_t *table, const struct dl2_accuracy_kind *kind, double value,
                       int digits);
json_t *dl2_part_accuracy_estimate(json_t *table, const struct dl2_accuracy_kind *kind,
                                   const struct dl2_estimate *accuracy);
/* "62.6 % (61.1 to 64.2)"; no interval where `low` is NAN. */
void dl2_part_percent(json_t *table, double value, int digits, double low, double high);
/* "5 to 12", from the least to the most, and the unit; "none" where that is not known. */
void dl2_part_range(json_t *table, double least, double most, int digits, const char *unit,
                    const char *none);
/* "0.62 (0.50 to 0.71)"; no interval where `low` is NAN. */
void dl2_part_ratio(json_t *table, double ratio, double low, double high);
/* A difference: "−1.3 (−2.1 to −0.5)"; no interval where `low` is NAN, a dash without a middle. */
json_t *dl2_part_interval(json_t *table, const struct dl2_accuracy_kind *kind, double middle,
                          double low, double high);
/* A difference to the original, the interval that its verdict goes by, and the verdict; empty where
 * there is none. */
void dl2_part_difference(json_t *table, const struct dl2_accuracy_kind *kind,
                         const struct dl2_comparison *comparison);

/*
 * A group of plots:
 *
 *     struct dl2_part_figures figures = {.page = page, .parent = section};
 *     struct dl2_plot plot = dl2_plot_begin(...);   ... any number
 *     dl2_part_figure(&figures, &plot, NULL);
 *
 * Without any picture nothing is written, not even the note.
 */
struct dl2_part_figures {
    const struct dl2_page *page;
    json_t *parent;
    const char *note;    /* above them; or NULL */
    const char *summary; /* of a group that is folded up; or NULL */
    json_t *shown;       /* their block, once there is one */
};
/* Draws and frees the plot. `detail` is added to its title in the page; or NULL. */
void dl2_part_figure(struct dl2_part_figures *figures, struct dl2_plot *plot, const char *detail);

/* What tells a network's figures from the others': its name, or NULL if it is the only one. */
const char *dl2_part_arch(const struct dl2_page *page, size_t arch);
/* The same above them, in a new table behind "variant", say, and in its rows. Nothing if it is
 * the only one. */
void dl2_part_arch_heading(json_t *parent, const struct dl2_page *page, size_t arch);
json_t *dl2_part_arch_table(json_t *parent, const struct dl2_page *page, const char *first);
void dl2_part_arch_cell(json_t *table, const struct dl2_page *page, size_t arch);
/* Such as " with resnet10", to tell it from the others in a sentence; "" if it is the only one. */
const char *dl2_part_arch_after(const struct dl2_page *page, const char *words, size_t arch);

/* The dataset's survey; NULL where there is none, or *why says what is wrong with it. */
json_t *dl2_part_survey(const struct dl2_page *page, struct dl2_error *why);

#endif
