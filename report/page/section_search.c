/* SPDX-License-Identifier: BSD-2-Clause */
/* A search for settings: what it found, two plots, and a table of its models. */
#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
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
    const char *title, *color;
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
                   looks[outcome].color, looks[outcome].width, looks[outcome].title);
    dl2_plot_curve(
        plot,
        "using 1:($3 == 1 ? $2 : NaN) with points linecolor rgb '%s' pointtype %d pointsize "
        "%g notitle",
        looks[outcome].color, outcome == DL2_SEARCHED_STOPPED ? 2 : 7,
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
                       looks[outcome].color, looks[outcome].width, looks[outcome].title);
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

/* ---- The section */

/* "lr 0.1, optimizer sgd" */
static const char *text_of(const json_t *settings)
{
    const char *key, *all = "";
    json_t *value;
    json_object_foreach((json_t *)settings, key, value)
    {
        DL2_AUTO_FREE char *text =
            json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        const char *plain = json_is_string(value) ? json_string_value(value) : text;
        all = dl2_text("%s%s%s %s", all, *all ? ", " : "", key, plain ? plain : "");
    }
    return all;
}

static void write_answer(const struct dl2_search_results *search, json_t *section)
{
    const json_t *report = search->report;
    json_t *text = dl2_block_text(
        section, "paragraph",
        "The search (%s) trained %zu models, %.4g epochs in all; with every model to its end it "
        "would have been %.4g. ",
        dl2_json_get_text(json_object_get(report, "search"), "algorithm", "unknown"), search->count,
        dl2_json_get_real(report, "epochs", 0), dl2_json_get_real(report, "all_epochs", 0));
    if (search->best)
        dl2_block_say(text,
                      "The best is %s, accuracy %.2f%%: %s. It was chosen on these validation "
                      "images, so this accuracy is too high for new ones.",
                      search->best->name, 100 * search->best->accuracy,
                      text_of(search->best->settings));
    else
        dl2_block_say(text, json_is_true(json_object_get(report, "completed"))
                                ? "All of them diverged."
                                : "It has not come to its end.");
}

void dl2_section_search(const struct dl2_page *page, json_t *section)
{
    const struct dl2_search_results *search = &page->search;
    struct dl2_part_figures figures = {.page = page, .parent = section};
    if (!search->report)
        return;
    dl2_block_set(section, "heading", "Search for settings");
    write_answer(search, section);
    plot_curves(&figures);
    plot_coordinates(&figures);
    json_t *table = dl2_table_add(dl2_block_fold(section, "Every model of the search"),
                                  "model|rank|<settings|<status|epochs|accuracy, %|loss");
    for (size_t i = 0; i < search->count; i++) {
        const struct dl2_searched *model = &search->models[search->ranked[i]];
        dl2_table_row(table, model->name);
        dl2_table_number(table, model->rank, 0);
        dl2_table_text(table, "%s", text_of(model->settings));
        dl2_table_text(table, "%s", model == search->best ? "trained, the best" : model->status);
        dl2_table_number(table, model->epochs, 2);
        dl2_table_number(table, 100 * model->accuracy, 2);
        dl2_table_number(table, model->loss, 4);
    }
}
