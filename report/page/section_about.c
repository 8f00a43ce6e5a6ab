/* SPDX-License-Identifier: BSD-2-Clause */
/* What the answer is about: the networks, their images, and what they are compared by. */
#include "common/json.h"
#include "common/scope.h"
#include "report/advice.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

/* What a training's samples are, by its options. */
static const char *name_samples(const json_t *arguments)
{
    const char *size = dl2_json_get_text(arguments, "image-size", "");
    const char *across = strchr(size, 'x');
    return dl2_json_get_integer(arguments, "frames", 0) > 0 ? "clips"
           : across && strchr(across + 1, 'x')              ? "volumes"
                                                            : "images";
}

/* A network's settings, as the first of its trainings has them: all that are here have the same. */
static void write_network(json_t *text, const struct dl2_page *page, size_t arch)
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
    dl2_block_say(text, "%s", study->archs[arch]);
    if (json_is_integer(size))
        dl2_block_say(text, ", input of %lld pixels squared", (long long)json_integer_value(size));
    else if (json_is_string(size))
        dl2_block_say(text, ", input of %s pixels", json_string_value(size));
    if (study->as_it_is) {
        dl2_block_say(text,
                      run->val_images > 0 ? ", as it is, evaluated on %.0f %s. " : ", as it is. ",
                      run->val_images, name_samples(arguments));
        return;
    }
    dl2_block_say(text, ", %zu epoch%s, %zu seed%s", run->epochs, run->epochs == 1 ? "" : "s",
                  analysis->seeds, analysis->seeds == 1 ? "" : "s");
    if (run->train_images > 0 && run->val_images > 0)
        dl2_block_say(text, "; trained on %.0f %s, validated on %.0f", run->train_images,
                      name_samples(arguments), run->val_images);
    dl2_block_say(text, ". ");
}

/* "Times smaller" than what? A variant loses less on top of what the original has lost already. */
static void write_original(json_t *text, const struct dl2_study *study)
{
    const size_t raw = dl2_study_find(study, "raw");
    const double bits = raw < study->variant_count ? study->variants[raw].bits_per_pixel : NAN;
    const char *original = dl2_original_text(study);
    if (!isfinite(bits))
        return;
    dl2_block_say(text, "The original has %.3g bits per pixel", bits);
    if (original)
        dl2_block_say(text, " (%s)", original);
    if (dl2_is_hardly_compressed(study))
        dl2_block_say(text, ": a JPEG of high quality would be several times smaller already");
    else if (original)
        dl2_block_say(text, ": variants lose once more");
    dl2_block_say(text, ". ");
}

/* Did a trainer choose the epoch by the results that are shown? */
static bool takes_best(const struct dl2_study *study)
{
    for (size_t i = 0; i < study->run_count; i++)
        if (json_is_true(json_object_get(
                json_array_get(json_object_get(study->runs[i].report, "final"), 0), "best")))
            return true;
    return false;
}

static void write_compared(json_t *text, const struct dl2_page *page)
{
    bool both = false;
    for (size_t a = 0; a < page->study->arch_count; a++) {
        write_network(text, page, a);
        both |= page->analyses[a].on_original != NULL;
    }
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    if (!kind->is_foreign)
        dl2_block_say(text, "Accuracy is %s. ", kind->name);
    else if (kind->is_percent || !*kind->unit)
        dl2_block_say(text, "The metric is %s, as the trainer reports it. ", kind->name);
    else
        dl2_block_say(text, "The metric is %s in %s, as the trainer reports it. ", kind->name,
                      kind->unit);
    if (kind->is_lower_better)
        dl2_block_say(text, "Lower is better: a difference above 0 is an improvement. ");
    if (page->study->as_it_is)
        dl2_block_say(text, "Nothing was trained: this is what compressing costs a network that "
                            "exists. ");
    else
        dl2_block_say(text, "Each variant is validated on its own images%s. ",
                      both ? ", and as a second question on the original's" : "");
    if (takes_best(page->study))
        dl2_block_say(text, "%s",
                      dl2_accuracy_words(kind,
                                         "Each training's accuracy is that of its best epoch, "
                                         "which was chosen by these validation images: it is "
                                         "better than new images would show, for the original "
                                         "as for variants. "));
    write_original(text, page->study);
}

/* What readers must know of the images before they read an accuracy. */
void dl2_section_about(const struct dl2_page *page, json_t *section)
{
    struct dl2_error why = DL2_ERROR_INIT; /* the survey's section shows it */
    json_auto_t *survey = dl2_part_survey(page, &why);
    const json_t *duplicates = json_object_get(survey, "duplicates");
    const long long leaks = dl2_json_get_integer(duplicates, "val_near_train", 0);
    if (page->study->arch_count || page->about || page->study->grouped) {
        json_t *text = dl2_block_add(section, "note");
        if (page->study->arch_count)
            write_compared(text, page);
        dl2_block_say(text, "%s%s%s", page->about ? page->about : "", page->about ? " " : "",
                      page->study->grouped ? page->study->grouped : "");
    }
    if (leaks > 0)
        dl2_block_text(section, "warning",
                       "%lld validation image%s a near duplicate among the training images, by "
                       "the survey: accuracies are too high, and losses of compression perhaps "
                       "too low. Take such images out of one of the two splits.",
                       leaks, leaks == 1 ? " has" : "s have");
}
