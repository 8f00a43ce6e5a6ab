/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the dataset, if `make survey` has looked. */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

enum { MAX_BINS = 1000, HISTOGRAM_HEIGHT = 240 };

static const struct histogram {
    const char *figures, *title, *axis;
} histograms[] = {
    {"quality", "Quality of the JPEG files", "quality by their quantization tables"},
    {"bits_per_pixel", "Compression of the files", "bits per pixel"},
    {"width", "Widths of the images", "pixels"},
    {"height", "Heights of the images", "pixels"},
    {"short", "Shorter sides of the images", "pixels"},
};

static void plot_histogram(struct dl2_part_figures *figures, const json_t *survey,
                           const struct histogram *histogram)
{
    const json_t *summary = json_object_get(survey, histogram->figures);
    const json_t *bins = json_object_get(summary, "histogram");
    const double min = dl2_json_get_real(summary, "min", NAN);
    const double max = dl2_json_get_real(summary, "max", NAN);
    const size_t count = json_array_size(bins);
    if (!isfinite(min) || !(max >= min) || !isfinite(max) || count == 0 || count > MAX_BINS)
        return;
    const double width = max > min ? (max - min) / (double)count : 1;
    struct dl2_plot plot = dl2_plot_begin(histogram->title, "middle-of-the-bin images width",
                                          HISTOGRAM_HEIGHT, "survey-%s", histogram->figures);
    dl2_plot_axes(&plot, histogram->axis, "images");
    dl2_plot_block(&plot, histogram->figures);
    for (size_t i = 0; i < count; i++) {
        const json_t *images = json_array_get(bins, i);
        dl2_plot_number(&plot, min + ((double)i + (max > min ? 0.5 : 0)) * width);
        dl2_plot_number(&plot, json_is_number(images) ? json_number_value(images) : NAN);
        dl2_plot_data(&plot, "%.8g\n", width);
    }
    dl2_plot_script(&plot, "set yrange [0:]\nset style fill solid 1\n");
    dl2_plot_curve(&plot, "using 1:2:3 with boxes linecolor rgb '" DL2_PLOT_BLUE "' notitle");
    dl2_part_figure(figures, &plot, NULL);
}

/* "1449 in train, 372 in val" and "1820 jpeg, 1 png": what an object counts. */
static void write_counts(json_t *text, const json_t *counts, const char *joint)
{
    const char *name, *comma = "";
    json_t *value;
    json_object_foreach((json_t *)counts, name, value)
    {
        dl2_block_say(text, "%s%lld %s%s", comma,
                      json_is_object(value) ? dl2_json_get_integer(value, "images", 0)
                                            : (long long)json_integer_value(value),
                      joint, name);
        comma = ", ";
    }
}

static void write_text(json_t *section, const json_t *survey)
{
    const json_t *splits = json_object_get(survey, "splits");
    const json_t *duplicates = json_object_get(survey, "duplicates");
    const long long classes = dl2_json_get_integer(survey, "classes", 0);
    const long long across = dl2_json_get_integer(duplicates, "across_splits", 0);
    const size_t bad = json_array_size(json_object_get(survey, "bad"));
    const double quality = dl2_json_get_real(json_object_get(survey, "quality"), "p95", NAN);
    json_t *text = dl2_block_text(section, "paragraph", "%lld images",
                                  dl2_json_get_integer(survey, "images", 0));
    if (classes > 0)
        dl2_block_say(text, " of %lld classes", classes);
    if (json_object_size(splits)) {
        dl2_block_say(text, ": ");
        write_counts(text, splits, "in ");
    }
    dl2_block_say(text, ". By format: ");
    write_counts(text, json_object_get(survey, "formats"), "");
    dl2_block_say(text, ".");
    if (quality > 0)
        dl2_block_say(text,
                      " 95%% of the JPEG files are of quality %.0f or below; recompressing them "
                      "at that quality or a higher one saves little.",
                      ceil(quality));
    if (across > 0)
        dl2_block_say(text,
                      " %lld group%s of near duplicates span%s several splits, so that "
                      "validation has images that were trained on.",
                      across, across == 1 ? "" : "s", across == 1 ? "s" : "");
    if (bad > 0)
        dl2_block_say(text, " %zu file%s can't be read.", bad, bad == 1 ? "" : "s");
}

void dl2_section_survey(const struct dl2_page *page, json_t *section)
{
    struct dl2_error why = DL2_ERROR_INIT;
    json_auto_t *survey = dl2_part_survey(page, &why);
    dl2_block_set(section, "heading", "The dataset");
    if (why.status)
        dl2_block_text(section, "warning", "The survey in %s/survey.json can't be shown: %s",
                       page->folder, why.message);
    if (!survey)
        return;
    write_text(section, survey);
    struct dl2_part_figures figures = {.page = page, .parent = section};
    for (size_t i = 0; i < sizeof histograms / sizeof *histograms; i++)
        plot_histogram(&figures, survey, &histograms[i]);
}
