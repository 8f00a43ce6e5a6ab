/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/divergence.h"

#include "common/json.h"
#include "common/scope.h"
#include "common/stats.h"
#include "report/advice.h"

#include <math.h>
#include <string.h>

/* ---- Which */

/* The accuracies of the other seeds of a training's variant and network, sorted. */
static size_t find_others(const struct dl2_study *study, const struct dl2_study_run *run,
                          double *others)
{
    const struct dl2_runs runs = dl2_study_runs(study, run->variant, run->arch);
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++)
        if (&runs.at[i] != run && isfinite(runs.at[i].accuracy))
            others[count++] = runs.at[i].accuracy;
    dl2_sort(others, count);
    return count;
}

/* The accuracy of a network that has learnt nothing: a guess among all classes. Of masks, of
 * volumes and by metrics of other trainers it is lower. */
static double chance_of(const struct dl2_study_run *run)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), 0);
    const double classes = dl2_json_get_real(run->report, "classes", NAN);
    return classes > 0 && dl2_accuracy_kind_of(final) == &dl2_accuracy_top1 ? 1 / classes : 0;
}

/* What is far off is not known of a metric that is no share, or of which less is better. */
static bool has_diverged(const struct dl2_accuracy_kind *kind, const struct dl2_study_run *run,
                         const double *others, size_t count)
{
    enum { ERRORS = 6 };
    const double least = 0.05, median = dl2_percentile(others, count, 0.5);
    const json_t *final = json_array_get(json_object_get(run->report, "final"), 0);
    if (json_is_null(json_object_get(final, "loss")))
        return true;
    if (kind->is_foreign && (!kind->is_percent || kind->is_lower_better))
        return false;
    const double images = kind->is_foreign && isnan(run->val_images) ? INFINITY : run->val_images;
    const double error = sqrt(median * (1 - median) / fmax(1, images));
    return count && run->accuracy < chance_of(run) + (median - chance_of(run)) / 2 &&
           median - run->accuracy > fmax(least, ERRORS * error);
}

void dl2_study_mark_diverged(struct dl2_study *study)
{
    DL2_AUTO_FREE double *others = dl2_room(study->run_count + 1, sizeof *others, "trainings");
    for (size_t i = 0; i < study->run_count; i++)
        study->runs[i].diverged = has_diverged(dl2_study_accuracy(study), &study->runs[i], others,
                                               find_others(study, &study->runs[i], others));
}

/* ---- What is said of them */

static const char *name_of(const struct dl2_study *study, size_t v)
{
    return strcmp(study->variants[v].name, "raw") ? study->variants[v].name : "the original";
}

/* "seed 2 on jpeg-50 (10.0% top-1; its other seeds 70.1 to 70.3%)" */
static const char *describe(const struct dl2_study *study, const struct dl2_study_run *run,
                            double *others)
{
    const size_t count = find_others(study, run, others);
    const char *text = dl2_text("seed %llu on %s (%.1f%% %s", (unsigned long long)run->seed,
                                name_of(study, run->variant), 100 * run->accuracy,
                                dl2_study_accuracy(study)->name);
    if (!count)
        return dl2_text("%s)", text);
    return dl2_text("%s; its other seed%s %.1f%s%%)", text, count == 1 ? "" : "s", 100 * others[0],
                    count == 1 ? "" : dl2_text(" to %.1f", 100 * others[count - 1]));
}

/* The study without a network's diverged trainings. */
static struct dl2_study leave_out(const struct dl2_study *study, const char *arch)
{
    struct dl2_study without = *study;
    without.runs = dl2_keep(study->run_count, sizeof *without.runs, "trainings");
    without.run_count = 0;
    for (size_t i = 0; i < study->run_count; i++)
        if (!study->runs[i].diverged || strcmp(study->runs[i].arch, arch) != 0)
            without.runs[without.run_count++] = study->runs[i];
    return without;
}

static const char *pick_text(const struct dl2_study *study, const struct dl2_analysis *analysis)
{
    const struct dl2_advice *advice = &analysis->smallest;
    const size_t pick = dl2_advice_pick(advice, study);
    const char *points = dl2_tolerance_text(analysis);
    return pick == study->variant_count
               ? dl2_text("no smaller variant is shown to lose less than %s", points)
           : pick == advice->sure
               ? dl2_text("%s is the smallest that is shown to lose less than %s",
                          study->variants[pick].name, points)
               : dl2_text("%s is the smallest that may lose less than %s, and none is shown to",
                          study->variants[pick].name, points);
}

const char *dl2_divergence_text(const struct dl2_study *study, const struct dl2_analysis *analysis)
{
    DL2_AUTO_FREE double *others = dl2_room(study->run_count + 1, sizeof *others, "trainings");
    DL2_AUTO_FREE bool *concerns = dl2_room(study->variant_count, sizeof *concerns, "variants");
    const size_t raw = dl2_study_find(study, "raw");
    const char *text = NULL;
    size_t count = 0;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (!run->diverged || strcmp(run->arch, analysis->arch) != 0)
            continue;
        text =
            dl2_text("%s%s%s", count ? text : "", count ? ", " : "", describe(study, run, others));
        count++;
        for (size_t v = 0; v < study->variant_count; v++)
            concerns[v] |= v == run->variant || run->variant == raw;
    }
    if (!count)
        return NULL;
    const struct dl2_study without = leave_out(study, analysis->arch);
    const struct dl2_analysis other = dl2_analyze(&without, analysis->arch, &analysis->question);
    const char *them = count == 1 ? "it" : "them", *now = pick_text(study, analysis);
    const char *then = pick_text(&without, &other);
    text = dl2_text("%zu training%s diverged: %s. The answer counts %s. ", count,
                    count == 1 ? "" : "s", text, them);
    text = strcmp(now, then) == 0
               ? dl2_text("%sWithout %s the answer is the same: %s.", text, them, then)
               : dl2_text("%sWith %s, %s; without, %s.", text, them, now, then);
    for (size_t v = 0; v < study->variant_count; v++)
        if (concerns[v] && v != raw && analysis->comparisons[v].verdict != DL2_VERDICT_NONE &&
            other.comparisons[v].verdict != DL2_VERDICT_NONE)
            text =
                dl2_text("%s With %s %s %s; without, it %s.", text, them, study->variants[v].name,
                         dl2_change_text(analysis->kind, &analysis->comparisons[v]),
                         dl2_change_text(analysis->kind, &other.comparisons[v]));
    return text;
}
