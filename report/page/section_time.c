/* SPDX-License-Identifier: BSD-2-Clause */
/* What accuracy a time buys: trainings that ended when a time had passed, and their curves. */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/run_means.h"

#include "common/json.h"
#include "common/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One network within one time. */
struct budget {
    const struct dl2_condition *condition;
    double seconds;
    const struct dl2_analysis *analysis;
};

/* "90s", "30m" or "2h"; NAN for anything else. */
static double seconds_of(const char *name)
{
    char *end;
    const double number = strtod(name, &end);
    if (end == name || !(number > 0) || strlen(end) != 1)
        return NAN;
    return number * (*end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : NAN);
}

static int by_seconds(const void *left, const void *right)
{
    const struct budget *a = left, *b = right;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

/* The number of a network, arch_count where the study has none of that name. */
static size_t find_arch(const struct dl2_study *study, const char *arch)
{
    size_t a = 0;
    while (a < study->arch_count && strcmp(study->archs[a], arch) != 0)
        a++;
    return a;
}

/* The times within which `arch` was trained, shortest first. */
static struct budget *find_budgets(const struct dl2_page *page, const char *arch, size_t *count,
                                   struct dl2_html *html)
{
    const struct dl2_conditions *all = &page->conditions;
    struct budget *budgets = dl2_html_calloc(html, all->count + 1, sizeof *budgets);
    *count = 0;
    for (size_t i = 0; budgets && i < all->count; i++) {
        const struct dl2_condition *condition = &all->items[i];
        const double seconds = seconds_of(condition->name);
        const size_t a = find_arch(&condition->study, arch);
        if (strcmp(condition->goal, "time") == 0 && isfinite(seconds) &&
            a < condition->study.arch_count)
            budgets[(*count)++] = (struct budget){condition, seconds, &condition->analyses[a]};
    }
    if (*count)
        qsort(budgets, *count, sizeof *budgets, by_seconds);
    return budgets;
}

/* The variants of all of these times, raw first: a list to free, whose names are borrowed. */
static const char **find_names(const struct budget *budgets, size_t count, size_t *name_count,
                               struct dl2_html *html)
{
    size_t most = 1;
    *name_count = 0;
    for (size_t b = 0; b < count; b++)
        most += budgets[b].condition->study.variant_count;
    const char **names = dl2_html_calloc(html, most, sizeof *names);
    for (size_t b = 0; names && b < count; b++) {
        const struct dl2_study *study = &budgets[b].condition->study;
        for (size_t v = 0; v < study->variant_count; v++) {
            size_t known = 0;
            while (known < *name_count && strcmp(names[known], study->variants[v].name) != 0)
                known++;
            if (known == *name_count)
                names[(*name_count)++] = study->variants[v].name;
        }
    }
    return names;
}

static const struct dl2_comparison *find_comparison(const struct budget *budget, const char *name)
{
    const struct dl2_study *study = &budget->condition->study;
    const size_t v = dl2_study_find(study, name);
    return v < study->variant_count ? &budget->analysis->comparisons[v] : NULL;
}

static double epochs_of(const struct budget *budget, const char *name)
{
    const struct dl2_study *study = &budget->condition->study;
    const struct dl2_run_means means = {study, dl2_study_find(study, name), budget->analysis->arch};
    return dl2_run_means_seen(&means);
}

static const char *shown_name(const char *name)
{
    return strcmp(name, "raw") ? name : "original";
}

static void write_table(struct dl2_html *html, const struct budget *budgets, size_t count,
                        const char *const *names, size_t name_count)
{
    struct dl2_table table = {.html = html, .without_focus = true};
    dl2_table_heads(&table, "trained on");
    for (size_t b = 0; b < count; b++)
        dl2_html_element(html, "th scope='colgroup' colspan='3' class='l'", "within %s",
                         budgets[b].condition->name);
    dl2_html_markup(html, "</tr><tr><th></th>");
    for (size_t b = 0; b < count; b++)
        dl2_table_heads(&table, "epochs|top-1, %|<difference, points");
    for (size_t n = 0; n < name_count; n++) {
        dl2_table_row(&table, shown_name(names[n]));
        for (size_t b = 0; b < count; b++) {
            const struct dl2_comparison *comparison = find_comparison(&budgets[b], names[n]);
            dl2_part_cell(html, epochs_of(&budgets[b], names[n]), 1);
            if (comparison) {
                dl2_part_estimate_cell(html, &comparison->top1, 1);
                dl2_part_difference_cell(html, comparison);
            } else {
                dl2_html_markup(html, "<td>–</td><td></td>");
            }
        }
    }
    dl2_table_end(&table);
}

/* The original is `first`; its curve comes last, so that it lies above. */
static const char *colour_of(size_t name, size_t name_count, bool raw)
{
    return raw ? DL2_PLOT_INK : dl2_plot_ramp(name, name_count);
}

/* Accuracy against the time, a curve a variant. */
static void plot_budgets(struct dl2_part_figures *figures, const struct budget *budgets,
                         size_t count, const char *const *names, size_t name_count,
                         const char *detail)
{
    char text[128];
    struct dl2_plot plot;
    snprintf(text, sizeof text, "time-%s", budgets[0].analysis->arch);
    dl2_plot_begin(&plot, text, "Top-1 accuracy by the time of training", "seconds top1 from to",
                   DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot, "time of training", "validation top-1, %");
    dl2_plot_script(&plot, "set key outside right center vertical\nset yrange [0<*:*<100]\n"
                           "set xtics (");
    for (size_t b = 0; b < count; b++)
        dl2_plot_script(&plot, "%s'%s' %.8g", b ? ", " : "",
                        dl2_plot_plain(budgets[b].condition->name, text, sizeof text),
                        budgets[b].seconds);
    dl2_plot_script(&plot, ")\nset logscale x\nset xrange [%.8g:%.8g]\n", budgets[0].seconds / 1.3,
                    budgets[count - 1].seconds * 1.3);
    for (size_t n = 0; n < name_count; n++) {
        const double aside = 1 + 0.05 * ((double)n - (double)(name_count - 1) / 2);
        const bool raw = strcmp(names[n], "raw") == 0;
        struct dl2_curve curve = {.plot = &plot,
                                  .name = names[n],
                                  .title = raw ? "original" : NULL,
                                  .colour = colour_of(n, name_count, raw),
                                  .bars = "1:2:3:4",
                                  .dashed = raw,
                                  .size = 0.5};
        for (size_t b = 0; b < count; b++) {
            const struct dl2_comparison *comparison = find_comparison(&budgets[b], names[n]);
            if (!comparison || !isfinite(comparison->top1.mean))
                continue;
            const double mean = comparison->top1.mean, half = comparison->top1.half;
            dl2_curve_point(&curve,
                            (const double[]){budgets[b].seconds * aside, mean,
                                             isfinite(half) ? fmax(0, mean - half) : half,
                                             isfinite(half) ? fmin(100, mean + half) : half},
                            4, NULL);
        }
        dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, detail);
}

/* ---- The way there */

/* Accuracy by the time since the start, within the longest time. */
static void plot_progress(struct dl2_part_figures *figures, const struct budget *budget,
                          const char *const *names, size_t name_count, const char *detail)
{
    const struct dl2_study *study = &budget->condition->study;
    const double unit = budget->seconds <= 300 ? 1 : budget->seconds <= 10800 ? 60 : 3600;
    char text[160], title[160];
    struct dl2_plot plot;
    snprintf(text, sizeof text, "time-curves-%s", budget->analysis->arch);
    snprintf(title, sizeof title, "Validation top-1 on the way, within %s",
             budget->condition->name);
    dl2_plot_begin(&plot, text, title, "time top1", DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot,
                  unit == 1    ? "seconds"
                  : unit == 60 ? "minutes"
                               : "hours",
                  "validation top-1, %");
    dl2_plot_script(&plot, "set key outside right center vertical\nset xrange [0:*]\n"
                           "set style data linespoints\n");
    for (size_t n = 0; n < name_count; n++) {
        const size_t v = dl2_study_find(study, names[n]);
        const bool raw = strcmp(names[n], "raw") == 0;
        const struct dl2_run_means means = {study, v, budget->analysis->arch};
        struct dl2_curve curve = {.plot = &plot, .name = names[n]};
        double seconds, top1, end, final;
        if (v == study->variant_count || !dl2_run_means_at(&means, SIZE_MAX, &end, &final))
            continue;
        for (size_t e = 0, misses = 0; misses < 100; e++) { /* epochs without validation are many */
            if (!dl2_run_means_at(&means, e, &seconds, &top1)) {
                misses++;
                continue;
            }
            misses = 0;
            if (seconds >= end)
                break;
            dl2_curve_point(&curve, (const double[]){seconds / unit, 100 * top1}, 2, NULL);
        }
        dl2_curve_point(&curve, (const double[]){end / unit, 100 * final}, 2, NULL);
        dl2_plot_curve(&plot,
                       "using 1:2 linecolor rgb '%s' linewidth 2 %s pointtype 7 pointsize 0.3 "
                       "title '%s'",
                       colour_of(n, name_count, raw), raw ? "dashtype (6,4)" : "",
                       dl2_plot_plain(shown_name(names[n]), text, sizeof text));
    }
    dl2_part_figure(figures, &plot, detail);
}

static void write_arch(const struct dl2_page *page, const char *arch, bool heading,
                       const char *detail, struct dl2_html *html)
{
    size_t count, name_count = 0;
    struct budget *budgets = find_budgets(page, arch, &count, html);
    const char **names = budgets && count ? find_names(budgets, count, &name_count, html) : NULL;
    if (names && html->status == DL2_OK) {
        if (heading)
            dl2_html_markup(html, "<h2>Accuracy within a time</h2>\n");
        write_table(html, budgets, count, names, name_count);
        dl2_html_markup(
            html, heading
                      ? "<p class='note'>Trainings that ended when the time had passed, validation "
                        "included, each with the machine to itself and its schedule played to its "
                        "end. Accuracies are means over seeds with 95% intervals; differences are "
                        "to the original within the same time. Another machine does other numbers "
                        "of epochs.</p>\n"
                      : "<p></p>\n");
        struct dl2_part_figures figures = {.page = page, .html = html};
        if (count > 1)
            plot_budgets(&figures, budgets, count, names, name_count, detail);
        plot_progress(&figures, &budgets[count - 1], names, name_count, detail);
        dl2_part_figures_end(&figures);
    }
    free((void *)names);
    free(budgets);
}

void dl2_section_time(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_conditions *all = &page->conditions;
    const char *first = NULL;
    bool several = false;
    for (size_t i = 0; i < all->count; i++)
        for (size_t a = 0;
             strcmp(all->items[i].goal, "time") == 0 && a < all->items[i].study.arch_count; a++) {
            first = first ? first : all->items[i].study.archs[a];
            several |= strcmp(first, all->items[i].study.archs[a]) != 0;
        }
    for (size_t i = 0; i < all->count; i++) {
        const struct dl2_study *study = &all->items[i].study;
        for (size_t a = 0; strcmp(all->items[i].goal, "time") == 0 && a < study->arch_count; a++) {
            bool before = false;
            for (size_t k = 0; k < i; k++) {
                const struct dl2_study *earlier = &all->items[k].study;
                before |= strcmp(all->items[k].goal, "time") == 0 &&
                          find_arch(earlier, study->archs[a]) < earlier->arch_count;
            }
            if (!before)
                write_arch(page, study->archs[a], study->archs[a] == first,
                           several ? study->archs[a] : NULL, html);
        }
    }
}
