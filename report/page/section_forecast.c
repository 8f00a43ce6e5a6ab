/* SPDX-License-Identifier: BSD-2-Clause */
/* What training on each variant would cost, forecast from trainings on the original. */
#include "report/forecast.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static void write_row(json_t *table, const struct dl2_accuracy_kind *kind,
                      const struct dl2_study_variant *variant, const struct dl2_forecast *forecast,
                      const struct dl2_comparison *comparison)
{
    const struct dl2_estimate tuned = {forecast->tuned, forecast->half, 1};
    const struct dl2_estimate trained = {-comparison->difference, dl2_comparison_half(comparison),
                                         comparison->pairs};
    dl2_table_row(table, dl2_part_variant_name(variant->name));
    dl2_table_number(table, 100 * variant->ratio, 1);
    dl2_table_number(table, forecast->as_is, 1 + kind->digits);
    dl2_part_estimate(table, &tuned, 1 + kind->digits);
    dl2_part_estimate(table, &trained, 1 + kind->digits);
}

/* Measured against forecast, where variants were trained on. */
static void plot_forecast(struct dl2_part_figures *figures, size_t arch,
                          const struct dl2_forecast *forecasts)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_analysis *analysis = &figures->page->analyses[arch];
    struct dl2_plot plot = dl2_plot_begin("Loss by training against loss by tuning",
                                          "tuned trained half-width-of-95%-interval as-is variant",
                                          DL2_PLOT_HEIGHT, "forecast-%s", study->archs[arch]);
    char tuned[128], trained[128];
    dl2_plot_axes(
        &plot,
        dl2_plot_label(dl2_accuracy_words(analysis->kind, "loss of accuracy by tuning, points"),
                       tuned, sizeof tuned),
        dl2_plot_label(dl2_accuracy_words(analysis->kind, "loss by training, points"), trained,
                       sizeof trained));
    double most = 1;
    struct dl2_curve curve = {.plot = &plot, .name = "variants"};
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &analysis->comparisons[v];
        if (!isfinite(forecasts[v].tuned) || !isfinite(comparison->difference))
            continue;
        dl2_curve_point(&curve,
                        (const double[]){forecasts[v].tuned, -comparison->difference,
                                         dl2_comparison_half(comparison), forecasts[v].as_is},
                        4, study->variants[v].name);
        most = fmax(most, forecasts[v].tuned);
    }
    if (curve.count) {
        dl2_plot_script(&plot,
                        "set arrow 1 from 0, 0 to %.8g, %.8g nohead dashtype "
                        "(6,4) linecolor rgb '" DL2_PLOT_AXIS "' # equal\n"
                        "set xrange [*<0:%.8g<*]\nset yrange [*<0:%.8g<*]\n",
                        most, most, most, most);
        dl2_plot_curve(&plot,
                       "using 1:2:3 with yerrorbars linecolor rgb '%s' linewidth 1 pointtype 7 "
                       "pointsize 0.6 notitle",
                       DL2_PLOT_INK);
        dl2_plot_curve(&plot,
                       "using 1:2:5 with labels left offset 0.6,0.7 font ',10' textcolor rgb '%s' "
                       "notitle",
                       DL2_PLOT_SOFT_INK);
    }
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

void dl2_section_forecast(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    struct dl2_part_figures figures = {.page = page, .parent = section};
    dl2_block_set(section, "heading", "Before training on a variant");
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_forecast *forecasts =
            dl2_forecast_make(study, &page->conditions, study->archs[a]);
        if (!dl2_forecast_any(study, forecasts))
            continue;
        if (dl2_block_is_empty(section))
            dl2_block_text(
                section, "paragraph", "%s",
                dl2_accuracy_words(
                    dl2_study_accuracy(study),
                    "What each variant loses against the original, in points of accuracy, from "
                    "networks that were trained on the original: validated on the variant without "
                    "tuning, and tuned on it, against as much tuning on the original. It tells "
                    "which variants to train on first. The last column is what training on the "
                    "variant from the start lost, where it was done. Intervals are 95%."));
        dl2_part_arch_heading(section, page, a);
        json_t *table = dl2_table_add(section, "variant|size, %|without tuning|tuned|trained");
        for (size_t v = 0; v < study->variant_count; v++)
            if (isfinite(forecasts[v].tuned) && v != dl2_study_find(study, "raw"))
                write_row(table, page->analyses[a].kind, &study->variants[v], &forecasts[v],
                          &page->analyses[a].comparisons[v]);
        plot_forecast(&figures, a, forecasts);
    }
}
