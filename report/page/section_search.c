/* SPDX-License-Identifier: BSD-2-Clause */
/* A search for settings: what it found, two plots, and a table of its models. */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/search_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The plots of a search: the models' accuracy by epoch, and their settings beside it */

/* Settings in the plot, values with a label on an axis, and characters of a label. */
enum { MAX_AXES = 8, MAX_LABELS = 12, MAX_CHARACTERS = 12 };

/* How each outcome is drawn. */
static const struct {
    const char *title, *colour;
    double width;
} looks[DL2_SEARCHED_OUTCOMES] = {
    [DL2_SEARCHED_STOPPED] = {"stopped", DL2_PLOT_AXIS, 1},
    [DL2_SEARCHED_DIVERGED] = {"diverged", DL2_PLOT_RED, 1},
    [DL2_SEARCHED_TRAINED] = {"trained to the end", DL2_PLOT_BLUE, 1.5},
    [DL2_SEARCHED_BEST] = {"best", DL2_PLOT_GREEN, 3},
};

/* -- curves -- */

/* All curves of an outcome are one block, with a blank line between two models. */
static void add_curves(struct dl2_plot *plot, const struct dl2_search_results *search,
                       enum dl2_searched_outcome outcome)
{
    size_t drawn = 0;
    for (size_t i = 0; i < search->count; i++) {
        const struct dl2_searched *model = &search->models[i];
        if (model->outcome != outcome || model->count == 0)
            continue;
        if (drawn++ == 0)
            dl2_plot_block(plot, looks[outcome].title);
        else
            dl2_plot_data(plot, "\n");
        for (size_t k = 0; k < model->count; k++) {
            dl2_plot_number(plot, model->position[k]);
            dl2_plot_number(plot, 100 * model->val_accuracy[k]);
            dl2_plot_data(plot, "%d\n", k + 1 == model->count);
        }
    }
    if (!drawn)
        return;
    dl2_plot_curve(plot, "using 1:2 with lines linecolor rgb '%s' linewidth %g title '%s'",
                   looks[outcome].colour, looks[outcome].width, looks[outcome].title);
    dl2_plot_curve(
        plot,
        "using 1:($3 == 1 ? $2 : NaN) with points linecolor rgb '%s' pointtype %d pointsize "
        "%g notitle",
        looks[outcome].colour, outcome == DL2_SEARCHED_STOPPED ? 2 : 7,
        outcome == DL2_SEARCHED_TRAINED ? 0.4 : 0.7);
}

static void plot_curves(struct dl2_part_figures *figures)
{
    struct dl2_plot plot =
        dl2_plot_begin("Validation accuracy by epoch: the search's models",
                       "epoch accuracy is-last", DL2_PLOT_HEIGHT, "search-curves");
    dl2_plot_axes(&plot, "epoch", "validation accuracy, %");
    double epochs = 0;
    for (size_t i = 0; i < figures->page->search.count; i++)
        epochs = fmax(epochs, figures->page->search.models[i].epochs);
    dl2_plot_script(&plot, "set offsets 0, 0, 0, 0\nset yrange [*:*<100]\nset xtics 0, %.0f\n",
                    fmax(1, ceil(epochs / 10)));
    for (int outcome = 0; outcome < DL2_SEARCHED_OUTCOMES; outcome++)
        add_curves(&plot, &figures->page->search, (enum dl2_searched_outcome)outcome);
    dl2_part_figure(figures, &plot, NULL);
}

/* -- parallel coordinates -- */

static const char *label_of(const json_t *value, char out[MAX_CHARACTERS + 1])
{
    char *text = json_is_string(value)
                     ? strdup(json_string_value(value))
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(4));
    dl2_plot_plain(text ? text : "", out, MAX_CHARACTERS + 1);
    free(text);
    return out;
}

/* A value stands above its line, in the middle of the axis; the least of a range below it. */
static void add_label(struct dl2_plot *plot, size_t axis, double height, bool below,
                      const char *text)
{
    dl2_plot_script(plot,
                    "set label '%s' at %zu, %.6g center offset 0, %g front font ',10' textcolor "
                    "rgb '" DL2_PLOT_SOFT_INK "'\n",
                    text, axis, height, below ? -0.55 : 0.5);
}

static void label_coordinate(struct dl2_plot *plot, size_t number,
                             const struct dl2_search_axis *axis)
{
    char text[32];
    const size_t count = json_array_size(axis->list);
    const size_t each = (count + MAX_LABELS - 1) / MAX_LABELS;
    for (size_t i = 0; i < count; i += each)
        add_label(plot, number, dl2_search_axis_height(axis, json_array_get(axis->list, i)), false,
                  label_of(json_array_get(axis->list, i), text));
    if (axis->list)
        return;
    snprintf(text, sizeof text, "%.4g", axis->min);
    add_label(plot, number, 0, true, text);
    snprintf(text, sizeof text, "%.4g", axis->max);
    add_label(plot, number, 1, false, text);
}

/* The models' lines, with a level piece on each axis that its labels stand on. */
static void add_lines(struct dl2_plot *plot, const struct dl2_search_results *search,
                      const struct dl2_search_axis *axes, size_t count,
                      const struct dl2_search_axis *accuracy, enum dl2_searched_outcome outcome)
{
    size_t drawn = 0;
    for (size_t i = 0; i < search->count; i++) {
        const struct dl2_searched *model = &search->models[i];
        if (model->outcome != outcome || model->epochs == 0)
            continue;
        if (drawn++ == 0)
            dl2_plot_block(plot, looks[outcome].title);
        else
            dl2_plot_data(plot, "\n");
        for (size_t k = 0; k <= count; k++) {
            json_auto_t *reached =
                json_real(isfinite(model->accuracy) ? 100 * model->accuracy : -1);
            const double height =
                k == count ? dl2_search_axis_height(accuracy, reached)
                           : dl2_search_axis_height(&axes[k],
                                                    json_object_get(model->settings, axes[k].name));
            for (int side = -1; side <= 1 && isfinite(height); side += 2)
                dl2_plot_data(plot, "%.6g %.6g\n", (double)k + 0.14 * side, height);
        }
    }
    if (drawn)
        dl2_plot_curve(plot, "using 1:2 with lines linecolor rgb '%s' linewidth %g title '%s'",
                       looks[outcome].colour, looks[outcome].width, looks[outcome].title);
}

static void set_coordinates(struct dl2_plot *plot, const struct dl2_search_axis *axes, size_t count,
                            const struct dl2_search_axis *accuracy)
{
    char clean[32];
    dl2_plot_script(plot,
                    "set tics scale 0\nunset border\nunset ytics\nunset grid\nset offsets 0, 0, 0, "
                    "0\nset lmargin 2\nset rmargin 2\nset xrange [-0.3:%zu.3]\nset yrange "
                    "[-0.12:1.12]\nset xtics (",
                    count);
    for (size_t k = 0; k < count; k++)
        dl2_plot_script(plot, "'%s' %zu, ", dl2_plot_plain(axes[k].name, clean, sizeof clean), k);
    dl2_plot_script(plot, "'accuracy, %%%%' %zu)\n", count);
    for (size_t k = 0; k <= count; k++) {
        dl2_plot_script(plot,
                        "set arrow from %zu, -0.04 to %zu, 1.04 nohead back linecolor rgb '%s'\n",
                        k, k, DL2_PLOT_GRID);
        label_coordinate(plot, k, k < count ? &axes[k] : accuracy);
    }
}

static void plot_coordinates(struct dl2_part_figures *figures)
{
    const struct dl2_search_results *search = &figures->page->search;
    const json_t *space = dl2_search_results_space(search);
    const struct dl2_search_axis accuracy = dl2_search_accuracy(search);
    struct dl2_search_axis axes[MAX_AXES];
    const size_t count = dl2_search_axes(space, axes, MAX_AXES);
    if (count == 0 || !isfinite(accuracy.min))
        return;
    struct dl2_plot plot = dl2_plot_begin("Settings and accuracy: a line for each model",
                                          "axis height", DL2_PLOT_HEIGHT, "search-settings");
    set_coordinates(&plot, axes, count, &accuracy);
    for (int outcome = 0; outcome < DL2_SEARCHED_OUTCOMES; outcome++)
        add_lines(&plot, search, axes, count, &accuracy, (enum dl2_searched_outcome)outcome);
    dl2_part_figure(figures, &plot,
                    json_object_size(space) > MAX_AXES ? "the first eight settings" : NULL);
}

static void search_plots(struct dl2_part_figures *figures)
{
    plot_curves(figures);
    plot_coordinates(figures);
}

/* ---- The section */

static void write_settings(struct dl2_bytes *html, const json_t *settings)
{
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach((json_t *)settings, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        const char *plain = json_is_string(value) ? json_string_value(value) : text;
        dl2_html_format(html, "%s%s %s", comma, key, plain ? plain : "");
        free(text);
        comma = ", ";
    }
}

static void write_answer(const struct dl2_search_results *search, struct dl2_bytes *html)
{
    const json_t *report = search->report;
    dl2_html_markup(html, "<p>");
    dl2_html_format(html,
                    "The search (%s) trained %zu models, %.4g epochs in all; with every model to "
                    "its end it would have been %.4g. ",
                    dl2_json_get_text(json_object_get(report, "search"), "algorithm", "unknown"),
                    search->count, dl2_json_get_real(report, "epochs", 0),
                    dl2_json_get_real(report, "all_epochs", 0));
    if (search->best) {
        dl2_html_format(html, "The best is %s, accuracy %.2f%%: ", search->best->name,
                        100 * search->best->accuracy);
        write_settings(html, search->best->settings);
        dl2_html_markup(html, ". It was chosen on these validation images, so this accuracy is too "
                              "high for new ones.");
    } else {
        dl2_html_text(html, json_is_true(json_object_get(report, "completed"))
                                ? "All of them diverged."
                                : "It has not come to its end.");
    }
    dl2_html_markup(html, "</p>\n");
}

static void write_table(const struct dl2_search_results *search, struct dl2_bytes *html)
{
    struct dl2_table table = {.html = html};
    dl2_html_markup(html, "<details><summary>Every model of the search</summary>");
    dl2_table_heads(&table, "rank|model|<settings|<status|epochs|accuracy, %|loss");
    for (size_t i = 0; i < search->count; i++) {
        const struct dl2_searched *model = &search->models[search->ranked[i]];
        dl2_table_bare_row(&table, "");
        dl2_part_cell(html, model->rank, 0);
        dl2_html_element(html, "th scope='row'", "%s", model->name);
        dl2_html_markup(html, "<td class='l'>");
        write_settings(html, model->settings);
        dl2_html_markup(html, "</td>");
        dl2_html_element(html, "td class='l'", "%s",
                         model == search->best ? "trained, the best" : model->status);
        dl2_part_cell(html, model->epochs, 2);
        dl2_part_cell(html, 100 * model->accuracy, 2);
        dl2_part_cell(html, model->loss, 4);
    }
    dl2_table_end(&table);
    dl2_html_markup(html, "</details>\n");
}

void dl2_section_search(const struct dl2_page *page, struct dl2_bytes *html)
{
    struct dl2_part_figures figures = {.page = page, .html = html};
    if (!page->search.report)
        return;
    dl2_html_markup(html, "<h2>Search for settings</h2>\n");
    write_answer(&page->search, html);
    search_plots(&figures);
    dl2_part_figures_end(&figures);
    write_table(&page->search, html);
}
