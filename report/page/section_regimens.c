/* SPDX-License-Identifier: BSD-2-Clause */
/* Trainings in stages, on one variant after the other, against the original alone. */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/run_means.h"

#include "common/json.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_LABEL 256

/* Regimens of as many epochs, and the original alone: one network's. */
struct group {
    const struct dl2_condition *condition; /* its name is the number of epochs */
    const struct dl2_analysis *analysis;
};

static const struct dl2_study_run *first_run(const struct group *group, size_t v)
{
    return dl2_study_first_run(&group->condition->study, v, group->analysis->arch);
}

/* What reports call the original: its folder's name. */
static const char *name_of_original(const struct group *group)
{
    const struct dl2_study *study = &group->condition->study;
    const struct dl2_study_run *run = first_run(group, dl2_study_find(study, "raw"));
    return run ? dl2_json_get_text(run->report, "variant", "") : "";
}

DL2_PRINTF(2, 3) static void append_text(char *out, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, MAX_LABEL - used, format, arguments);
    va_end(arguments);
}

/* A regimen as REGIMENS has it, "jpeg-10:20,raw:10:freeze"; fit for a plot's script. */
static const char *label_of(const struct group *group, size_t v, char out[MAX_LABEL])
{
    const struct dl2_study *study = &group->condition->study;
    const struct dl2_study_run *run = first_run(group, v);
    size_t i;
    json_t *stage;
    out[0] = '\0';
    if (strcmp(study->variants[v].name, "raw") == 0)
        return strcpy(out, "original");
    json_array_foreach(run ? json_object_get(run->report, "stages") : NULL, i, stage)
    {
        const json_t *size = json_object_get(stage, "image_size");
        const char *variant = dl2_json_get_text(stage, "variant", "?");
        if (strcmp(variant, name_of_original(group)) == 0)
            variant = "raw";
        append_text(out, "%s%s:%g", i ? "," : "", variant, dl2_json_get_real(stage, "epochs", NAN));
        if (json_is_string(size))
            append_text(out, ":size=%s", json_string_value(size));
        else if (size)
            append_text(out, ":size=%g", json_number_value(size));
        if (json_is_true(json_object_get(stage, "freeze")))
            append_text(out, ":freeze");
    }
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(":,=.-+", *c))
            *c = '_';
    return out;
}

static struct dl2_run_means means_of(const struct group *group, size_t v)
{
    return (struct dl2_run_means){&group->condition->study, v, group->analysis->arch};
}

static double seconds_of(const struct group *group, size_t v)
{
    const struct dl2_run_means means = means_of(group, v);
    return dl2_run_means_seconds(&means);
}

static void write_table(struct dl2_html *html, const struct group *group)
{
    const struct dl2_study *study = &group->condition->study;
    char label[MAX_LABEL];
    bool timed = false;
    for (size_t v = 0; v < study->variant_count; v++)
        timed |= isfinite(seconds_of(group, v));
    struct dl2_table table = {.html = html};
    dl2_table_head(&table, "%s epochs on", group->condition->name);
    dl2_table_heads(&table, "top-1, %|<difference, points");
    dl2_table_heads(&table, timed ? "training, s" : "");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &group->analysis->comparisons[v];
        if (!first_run(group, v))
            continue;
        dl2_table_row(&table, label_of(group, v, label));
        dl2_part_estimate_cell(html, &comparison->top1, 1);
        dl2_part_difference_cell(html, comparison);
        if (timed)
            dl2_part_cell(html, seconds_of(group, v), 1);
    }
    dl2_table_end(&table);
}

/* What each regimen gains or loses, one below the other. */
static void plot_differences(struct dl2_part_figures *figures, const struct group *group,
                             const char *detail)
{
    const struct dl2_study *study = &group->condition->study;
    char name[160], title[160], label[MAX_LABEL];
    size_t count = 0, row = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        count += isfinite(group->analysis->comparisons[v].difference);
    if (!count)
        return;
    struct dl2_plot plot;
    snprintf(name, sizeof name, "regimens-%s-%s", group->condition->name, group->analysis->arch);
    snprintf(title, sizeof title, "Regimens of %s epochs against the original alone",
             group->condition->name);
    dl2_plot_begin(&plot, name, title, "row difference half-interval",
                   110 + 30 * (int)(count < 40 ? count : 40), figures->html->error);
    dl2_plot_axes(&plot, "difference in top-1, percentage points", "");
    dl2_curve_reference(&plot, 'x', 0, -group->analysis->question.tolerance);
    dl2_plot_script(&plot,
                    "set yrange [%.8g:0.5] reverse\nset offsets graph 0.05, graph 0.05, 0, 0\n"
                    "set grid noytics xtics\nset ytics (",
                    (double)count + 0.5);
    for (size_t v = 0; v < study->variant_count; v++)
        if (isfinite(group->analysis->comparisons[v].difference)) {
            dl2_plot_script(&plot, "%s'%s' %zu", row ? ", " : "", label_of(group, v, label),
                            row + 1);
            row++;
        }
    dl2_plot_script(&plot, ")\n");
    struct dl2_curve curve = {.plot = &plot, .name = "regimens", .bars = "2:1:3"};
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &group->analysis->comparisons[v];
        if (isfinite(comparison->difference))
            dl2_curve_point(&curve,
                            (const double[]){(double)curve.count + 1, comparison->difference,
                                             dl2_comparison_half(comparison)},
                            3, NULL);
    }
    if (curve.intervals)
        dl2_plot_curve(&plot, "using 2:1:3 with xerrorbars linecolor rgb '" DL2_PLOT_INK
                              "' linewidth 2 pointtype 0 notitle");
    dl2_plot_curve(&plot, "using 2:1 with points linecolor rgb '" DL2_PLOT_INK
                          "' pointtype 7 pointsize 0.7 notitle");
    dl2_part_figure(figures, &plot, detail);
}

static void plot_curves(struct dl2_part_figures *figures, const struct group *group,
                        const char *detail)
{
    const struct dl2_study *study = &group->condition->study;
    char name[160], label[MAX_LABEL];
    struct dl2_plot plot;
    snprintf(name, sizeof name, "regimens-curves-%s-%s", group->condition->name,
             group->analysis->arch);
    dl2_plot_begin(&plot, name, "Validation top-1 by epoch, by regimen", "epoch top1",
                   DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot, "epoch", "validation top-1, %");
    dl2_plot_script(&plot, "set key inside bottom right vertical\n"
                           "set offsets 0, 0, graph 0.04, 0\nset style data lines\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_run *run = first_run(group, v);
        const struct dl2_run_means means = means_of(group, v);
        const bool raw = strcmp(study->variants[v].name, "raw") == 0;
        if (!run)
            continue;
        dl2_plot_block(&plot, study->variants[v].name);
        for (size_t e = 0; e < run->epochs; e++) {
            const json_t *epoch = json_array_get(json_object_get(run->report, "epochs"), e);
            const double top1 = dl2_run_means_top1(&means, e);
            if (!isfinite(top1))
                continue;
            dl2_plot_number(&plot, dl2_json_get_real(epoch, "position", (double)e + 1));
            dl2_plot_number(&plot, top1);
            dl2_plot_data(&plot, "\n");
        }
        dl2_plot_curve(&plot, "using 1:2 linecolor rgb '%s' linewidth 2 %s title '%s'",
                       raw ? DL2_PLOT_INK : dl2_plot_ramp(v, study->variant_count),
                       raw ? "dashtype (6,4)" : "", label_of(group, v, label));
    }
    dl2_part_figure(figures, &plot, detail);
}

static void write_group(const struct dl2_page *page, struct dl2_html *html,
                        const struct group *group, bool first)
{
    const char *detail = group->condition->study.arch_count > 1 ? group->analysis->arch : NULL;
    struct dl2_part_figures figures = {.page = page, .html = html};
    dl2_html_markup(html, first ? "<h2>Regimens</h2>\n" : "");
    write_table(html, group);
    dl2_html_markup(
        html, first ? "<p class='note'>Trainings in stages, each on a variant for a number of "
                      "epochs, under one schedule; the original alone was trained for as many "
                      "epochs. Validated on the images of the last stage's variant. Bars are "
                      "95% intervals, of each regimen by itself. Shaded: the tolerance.</p>\n"
                    : "<p></p>\n");
    plot_differences(&figures, group, detail);
    plot_curves(&figures, group, detail);
    dl2_part_figures_end(&figures);
}

void dl2_section_regimens(const struct dl2_page *page, struct dl2_html *html)
{
    bool first = true;
    for (size_t i = 0; i < page->conditions.count; i++) {
        const struct dl2_condition *condition = &page->conditions.items[i];
        if (strcmp(condition->goal, "regimens") != 0)
            continue;
        for (size_t a = 0; a < condition->study.arch_count; a++) {
            write_group(page, html, &(struct group){condition, &condition->analyses[a]}, first);
            first = false;
        }
    }
}
