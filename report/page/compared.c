/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/compared.h"

#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A network's settings, as the first of its trainings has them: all that are here have the same. */
static void write_network(struct dl2_html *html, const struct dl2_page *page, size_t arch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_study_run *run = NULL;
    for (size_t i = 0; i < study->run_count && !run; i++)
        if (strcmp(study->runs[i].arch, study->archs[arch]) == 0)
            run = &study->runs[i];
    if (!run)
        return;
    const json_t *arguments = json_object_get(run->report, "arguments");
    const json_t *size = json_object_get(arguments, "image-size");
    dl2_html_text(html, study->archs[arch]);
    if (json_is_integer(size))
        dl2_html_format(html, ", input of %lld pixels squared",
                        (long long)json_integer_value(size));
    else if (json_is_string(size))
        dl2_html_format(html, ", input of %s pixels", json_string_value(size));
    dl2_html_format(html, ", %zu epoch%s, %zu seed%s", run->epochs, run->epochs == 1 ? "" : "s",
                    analysis->seeds, analysis->seeds == 1 ? "" : "s");
    if (run->train_images > 0 && run->val_images > 0)
        dl2_html_format(html, "; trained on %.0f images, validated on %.0f", run->train_images,
                        run->val_images);
    dl2_html_markup(html, ". ");
}

static bool is_lossless(const char *format)
{
    static const char *const formats[] = {"png", "bmp", "gif", "tiff"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(format, formats[i]) == 0)
            return true;
    return false;
}

/* The format that most of the original's images have, by the survey; NULL: it was not made. */
static const char *main_format(const json_t *survey)
{
    const char *name, *most = NULL;
    json_t *format;
    double images = 0;
    json_object_foreach(json_object_get(survey, "formats"), name, format)
    {
        const double own = dl2_json_get_real(format, "images", 0);
        if (own > images) {
            images = own;
            most = name;
        }
    }
    return most;
}

/* "Times smaller" than what? A variant loses less on top of what the original has lost already. */
static void write_original(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const size_t raw = dl2_study_find(study, "raw");
    const double bits = raw < study->variant_count ? study->variants[raw].bits_per_pixel : NAN;
    if (!isfinite(bits))
        return;
    char path[4608];
    struct dl2_error why = DL2_ERROR_INIT; /* the survey's own section tells it */
    json_t *survey = NULL;
    snprintf(path, sizeof path, "%s/survey.json", page->folder);
    dl2_json_load(path, "dl2-survey/1", &survey, &why);
    const char *format = main_format(survey);
    dl2_html_format(html, "The original has %.3g bits per pixel", bits);
    if (format)
        dl2_html_format(html, ", %s", format);
    if (format && is_lossless(format))
        dl2_html_markup(html, ", stored without loss: a JPEG of high quality would be several "
                              "times smaller already");
    else if (format)
        dl2_html_markup(html, ", encoded with loss already: variants lose once more");
    else if (bits > 6) /* no lossy encoder is run at so many */
        dl2_html_markup(html, ", so it is hardly compressed: a JPEG of high quality would be "
                              "several times smaller already");
    dl2_html_markup(html, ". ");
    json_decref(survey);
}

void dl2_write_compared(const struct dl2_page *page, struct dl2_html *html)
{
    bool both = false;
    dl2_html_markup(html, "<p class='note'>");
    for (size_t a = 0; a < page->study->arch_count; a++) {
        write_network(html, page, a);
        both |= page->analyses[a].on_original != NULL;
    }
    dl2_html_format(html, "Each variant is validated on its own images%s. ",
                    both ? ", and as a second question on the original's" : "");
    write_original(html, page);
    dl2_html_markup(html, "</p>\n");
}
