/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy against size and speed. */
#include "report/parts.h"
#include "report/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum axis { AXIS_BYTES, AXIS_LOAD, AXIS_TRAIN };

static double axis_value(const struct dl2_page *page, size_t arch, size_t v, enum axis axis)
{
    const struct dl2_study_variant *variant = &page->study->variants[v];
    switch (axis) {
    case AXIS_BYTES:
        return 100 * variant->ratio;
    case AXIS_LOAD:
        return variant->load_rate;
    default:
        return page->analyses[arch].comparisons[v].train_rate.mean;
    }
}

static void plot_accuracy(struct dl2_part_figures *figures, size_t arch, enum axis axis)
{
    /* Rates of trainings that shared a machine are no measure of the variants. */
    if (axis == AXIS_TRAIN && figures->page->analyses[arch].shared)
        return;
    static const struct {
        const char *name, *title, *label;
    } texts[] = {{"bytes", "size", "bytes, % of the original''s (logarithmic)"},
                 {"load", "the input pipeline's speed", "input pipeline, images a second and core"},
                 {"train", "training speed", "training, images a second"}};
    const struct dl2_page *page = figures->page;
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[arch];
    char clean[256];
    char name[128], title[256];
    snprintf(name, sizeof name, "accuracy-%s-%s", texts[axis].name, study->archs[arch]);
    snprintf(title, sizeof title, "Top-1 accuracy against %s", texts[axis].title);
    struct dl2_plot plot;
    dl2_plot_begin(&plot, name, title, "x top1 half-width-of-95%-interval quality variant",
                   DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot, texts[axis].label, "top-1 accuracy, %");
    double least = INFINITY, most = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const double x = axis_value(page, arch, v, axis);
        if (x > 0 && isfinite(x) && isfinite(analysis->comparisons[v].top1.mean)) {
            least = x < least ? x : least;
            most = x > most ? x : most;
        }
    }
    if (axis == AXIS_BYTES)
        dl2_plot_script(
            &plot,
            "set logscale x\nset xtics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)\n"
            "set xrange [%.8g:%.8g]\nset offsets 0, 0, graph 0.08, graph 0.06\n",
            least / 1.3, most * 1.2);
    else if (least == most)
        dl2_plot_script(&plot, "set xrange [%.8g:%.8g]\n", 0.9 * least, 1.1 * most);
    const size_t raw = dl2_study_find(study, "raw");
    const double original = raw < study->variant_count ? analysis->comparisons[raw].top1.mean : NAN;
    if (isfinite(original))
        dl2_plot_script(
            &plot,
            "set object 1 rectangle from graph 0, first %.8g to graph 1, first %.8g behind "
            "fillcolor rgb '" DL2_PLOT_BAND "' fillstyle solid noborder # the tolerance\n"
            "set arrow 1 from graph 0, first %.8g to graph 1, first %.8g nohead dashtype (6,4) "
            "linecolor rgb '" DL2_PLOT_AXIS "' # the original\n",
            original - analysis->question.tolerance, original, original, original);
    for (size_t v = 0, codecs = 0; v < study->variant_count; v++) {
        const char *codec = study->variants[v].codec;
        if (v != raw && !dl2_study_starts_codec(study, v))
            continue;
        size_t count = 0;
        bool intervals = false;
        for (size_t i = v; i < study->variant_count && strcmp(study->variants[i].codec, codec) == 0;
             i++) {
            const struct dl2_comparison *comparison = &analysis->comparisons[i];
            const double x = axis_value(page, arch, i, axis);
            if (!isfinite(x) || !(x > 0) || !isfinite(comparison->top1.mean))
                continue;
            if (count++ == 0)
                dl2_plot_block(&plot, codec);
            dl2_plot_number(&plot, x);
            dl2_plot_number(&plot, comparison->top1.mean);
            dl2_plot_number(&plot, comparison->top1.half);
            intervals |= isfinite(comparison->top1.half);
            if (i == raw)
                dl2_plot_data(&plot, "original raw\n");
            else
                dl2_plot_data(&plot, "%d %s\n", study->variants[i].quality,
                              dl2_plot_plain(study->variants[i].name, clean, sizeof clean));
        }
        if (!count)
            continue;
        const char *colour = v == raw ? DL2_PLOT_INK : dl2_plot_codec_colour(codec, codecs++);
        if (intervals) /* first: gnuplot clears the line below each bar's point */
            dl2_plot_curve(&plot,
                           "using 1:2:3 with yerrorbars linecolor rgb '%s' linewidth 1 pointtype 0 "
                           "notitle",
                           colour);
        dl2_plot_curve(
            &plot, "using 1:2 with %s linecolor rgb '%s' %s pointtype 7 pointsize 0.6 title '%s'",
            v == raw ? "points" : "linespoints", colour, v == raw ? "" : "linewidth 2",
            v == raw ? "original" : dl2_plot_plain(codec, clean, sizeof clean));
        if (v != raw) /* beside the curve, which rises with size and falls with speed */
            dl2_plot_curve(
                &plot,
                "using 1:2:4 with labels %s,0.7 font ',10' textcolor rgb '" DL2_PLOT_SOFT_INK
                "' notitle",
                axis == AXIS_BYTES ? "right offset -0.6" : "left offset 0.6");
    }
    dl2_part_figure(figures, &plot, dl2_part_arch(page, arch));
}

void dl2_section_accuracy(const struct dl2_page *page, struct dl2_html *html)
{
    struct dl2_part_figures figures = {
        .page = page,
        .html = html,
        .heading = "Accuracy",
        .note = "Bars are 95% intervals over seeds, of each variant by itself. The line: the "
                "original; shaded: the tolerance below it. Numbers are qualities."};
    for (size_t arch = 0; arch < page->study->arch_count; arch++)
        for (int axis = AXIS_BYTES; axis <= AXIS_TRAIN; axis++)
            plot_accuracy(&figures, arch, (enum axis)axis);
    dl2_part_figures_end(&figures);
}
