/* SPDX-License-Identifier: BSD-2-Clause */
/* Trainings that are copies of others, and what a study needs and lacks. */
#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "report/accuracy_text.h"
#include "report/study.h"

#include <math.h>
#include <string.h>

/* ---- Copies */

static double final_loss(const struct dl2_study_run *run)
{
    return dl2_json_get_real(json_array_get(json_object_get(run->report, "final"), 0), "loss", NAN);
}

enum likeness { OTHER, PERHAPS_BY_CHANCE, COPY };

/* A loss is never the same by chance, nor is a whole curve. A single accuracy may be. */
static enum likeness compare(const struct dl2_accuracy_kind *kind, const struct dl2_study_run *a,
                             const struct dl2_study_run *b)
{
    const double loss = final_loss(a), other = final_loss(b);
    size_t values = 0; /* of the curve that are not the one before */
    double before = NAN;
    if (a->variant != b->variant || strcmp(a->arch, b->arch) != 0 || a->accuracy != b->accuracy ||
        a->epochs != b->epochs)
        return OTHER;
    for (size_t e = 0; e < a->epochs; e++) {
        if (a->val_accuracy[e] != b->val_accuracy[e] && isfinite(a->val_accuracy[e]))
            return OTHER;
        values += isfinite(a->val_accuracy[e]) && a->val_accuracy[e] != before;
        before = a->val_accuracy[e];
    }
    if (isfinite(loss) || isfinite(other))
        return loss == other ? COPY : OTHER;
    /* Networks that learnt nothing, or all, may well be alike. */
    if (kind->is_percent && (fabs(a->accuracy) <= 0 || fabs(a->accuracy) >= 1))
        return OTHER;
    return values > 1 ? COPY : PERHAPS_BY_CHANCE;
}

/* The first training that has the figures of this one, where another seed cannot have them; NULL:
 * there is none. Without losses, one accuracy in three trainings is no chance. */
static const struct dl2_study_run *find_twin(const struct dl2_study *study, size_t index)
{
    const struct dl2_study_run *run = &study->runs[index], *first = NULL;
    size_t alike = 1;
    bool copy = false;
    for (size_t i = 0; i < study->run_count; i++) {
        const enum likeness likeness =
            i == index ? OTHER : compare(dl2_study_accuracy(study), run, &study->runs[i]);
        if (likeness == OTHER)
            continue;
        alike++;
        copy |= likeness == COPY;
        if (!first && i < index)
            first = &study->runs[i];
    }
    return copy || alike > 2 ? first : NULL;
}

void dl2_study_leave_out_copies(struct dl2_study *study)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    const size_t count = study->run_count;
    DL2_AUTO_FREE bool *copies = dl2_room(count + 1, sizeof *copies, "trainings");
    for (size_t i = 0; i < count; i++) {
        const struct dl2_study_run *run = &study->runs[i], *twin = find_twin(study, i);
        copies[i] = twin;
        if (twin)
            dl2_words_add(
                &study->broken,
                dl2_text(
                    "%s: its %s%s of seed %llu (%.6g): expected another, as trainings from other "
                    "seeds have; %s",
                    run->path, dl2_accuracy_words(kind, "accuracy"),
                    isfinite(final_loss(run)) ? " and its loss are those" : " is that",
                    (unsigned long long)twin->seed,
                    kind->is_foreign ? dl2_accuracy_shown(kind, 100 * run->accuracy)
                                     : run->accuracy,
                    kind->is_foreign
                        ? "does the training use its seed?"
                        : dl2_text("train it with --seed %llu", (unsigned long long)run->seed)));
    }
    for (size_t i = count; i-- > 0;)
        if (copies[i])
            dl2_study_remove_run(study, i);
}

/* ---- What is missing */

static bool has_size(const struct dl2_study_variant *variant)
{
    return isfinite(variant->bytes);
}

/* Names the original if it is missing, with what may be it. */
static void name_original(struct dl2_study *study, const char *folder, const char *arch)
{
    const char *candidate = "";
    for (size_t v = 0; v < study->variant_count; v++)
        if (!has_size(&study->variants[v]) && dl2_study_runs(study, v, arch).count &&
            strcmp(study->variants[v].name, "raw") != 0)
            candidate = dl2_text("; if that is %s, rename %s/train/%s to raw",
                                 study->variants[v].name, folder, study->variants[v].name);
    const char *expected = dl2_text("%s/train/raw/%s", folder, arch);
    /* What is there and not used is named for its own reason. */
    if (!dl2_study_runs(study, dl2_study_find(study, "raw"), arch).count &&
        !dl2_is_folder(expected))
        dl2_words_add(&study->broken, dl2_text("%s: expected trainings on the original, with which "
                                               "all others are compared%s",
                                               expected, candidate));
}

/* Names a variant that was trained on and has no size, unless the file with it is named already. */
static void name_size(struct dl2_study *study, const char *folder, size_t v)
{
    const struct dl2_study_variant *variant = &study->variants[v];
    const char *made = dl2_text("%s/variants/%s/dl2-variant.json", folder, variant->name);
    const char *scored = dl2_text("%s/quality/%s.json", folder, variant->name);
    size_t runs = 0;
    for (size_t i = 0; i < study->run_count; i++)
        runs += study->runs[i].variant == v;
    if (!runs || has_size(variant) || strcmp(variant->name, "raw") == 0)
        return;
    if (variant->made || variant->scored || (!dl2_is_file(made) && !dl2_is_file(scored)))
        dl2_words_add(&study->broken,
                      dl2_text("%s: its size is not known, so it cannot be recommended: expected "
                               "\"bytes\" in %s or %s",
                               variant->name, made, scored));
}

void dl2_study_name_missing(struct dl2_study *study, const char *folder)
{
    for (size_t a = 0; a < study->arch_count; a++)
        name_original(study, folder, study->archs[a]);
    for (size_t v = 0; v < study->variant_count; v++)
        name_size(study, folder, v);
}
