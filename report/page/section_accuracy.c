/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy against speed. Against size it is in the answer. */
#include "common/scope.h"
#include "report/page/accuracy_plot.h"
#include "report/page/sections.h"

void dl2_section_accuracy(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    struct dl2_part_figures figures = {
        .page = page,
        .parent = section,
        .note = "Bands and bars are 95% intervals of each variant by itself, those that verdicts "
                "go by. Shaded: the tolerance below the original. Numbers are qualities."};
    dl2_block_set(section, "heading", "%s", dl2_accuracy_words(kind, "Accuracy and speed"));
    DL2_AUTO_FREE double *values = dl2_room(study->variant_count, sizeof *values, "variants");
    for (size_t arch = 0; arch < study->arch_count; arch++) {
        const struct dl2_speeds *speeds = &page->speeds[arch];
        for (size_t v = 0; v < study->variant_count; v++)
            values[v] = speeds->variants[v].load_rate.mean;
        dl2_accuracy_plot(
            &figures, arch,
            &(struct dl2_accuracy_axis){
                "load", dl2_accuracy_words(kind, "Accuracy against the input pipeline's speed"),
                "input pipeline, images a second and core", values, false, DL2_FRONT_HIGH});
        for (size_t v = 0; v < study->variant_count; v++)
            values[v] = speeds->variants[v].train_rate.mean;
        dl2_accuracy_plot(&figures, arch,
                          &(struct dl2_accuracy_axis){
                              "train", dl2_accuracy_words(kind, "Accuracy against training speed"),
                              "training, images a second", values, false, DL2_FRONT_HIGH});
    }
}
