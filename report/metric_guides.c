/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/metric_guides.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "report/sentence.h"

#include <math.h>

const char *dl2_metric_title(const struct dl2_study *study, const char *metric)
{
    return dl2_json_get_text(json_object_get(study->quality, "titles"), metric, metric);
}

double dl2_guide_value(const struct dl2_guide *guide, const struct dl2_study_variant *variant)
{
    return guide->metric ? dl2_metric_aggregate(variant, guide->metric, guide->part)
                         : variant->bits_per_pixel;
}

static void list_guides(const struct dl2_metric_names *metrics, struct dl2_guides *guides)
{
    *guides = (struct dl2_guides){.count = 0};
    for (size_t m = 0; m < metrics->count; m++) {
        const bool lower = metrics->lower_is_better[m];
        guides->items[guides->count++] =
            (struct dl2_guide){metrics->names[m], "mean", "mean", lower};
        guides->items[guides->count++] =
            (struct dl2_guide){metrics->names[m], lower ? "p95" : "p5",
                               lower ? "95th percentile" : "5th percentile", lower};
    }
    guides->items[guides->count++] = (struct dl2_guide){.metric = NULL};
}

int dl2_guides_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                    const struct dl2_accuracy_order *order, const struct dl2_metric_names *metrics,
                    struct dl2_guides *guides, struct dl2_error *error)
{
    DL2_AUTO_FREE double *values = dl2_calloc(study->variant_count + 1, sizeof *values);
    DL2_AUTO_FREE bool *scored = dl2_calloc(study->variant_count + 1, sizeof *scored);
    if (!values || !scored)
        return dl2_error_memory(error, "the metrics");
    bool any = false; /* metrics and size are compared on the same variants */
    list_guides(metrics, guides);
    for (size_t i = 0; i < guides->count; i++) {
        struct dl2_guide *guide = &guides->items[i];
        for (size_t v = 0; v < study->variant_count; v++) {
            values[v] =
                dl2_guide_value(guide, &study->variants[v]) * (guide->lower_is_better ? -1 : 1);
            scored[v] |= guide->metric && !isnan(values[v]);
            any |= scored[v];
            if (!guide->metric && any && !scored[v])
                values[v] = NAN;
        }
        DL2_TRY(dl2_ranking_make(study, analysis, order, values, &guide->ranking, error));
        guides->any |= isfinite(guide->ranking.tau);
    }
    return DL2_OK;
}

/* The metrics of the highest tau, and the others. */
struct best {
    const struct dl2_ranking *first; /* NULL: none has a tau */
    double tau;
    size_t equals, others;
    size_t reach; /* of the others, whose interval reaches that of the first */
};

static bool is_best(const struct dl2_guide *guide, const struct best *best)
{
    return guide->metric && guide->ranking.tau >= best->tau;
}

static struct best find_best(const struct dl2_guides *guides)
{
    struct best best = {.tau = -INFINITY};
    for (size_t i = 0; i < guides->count; i++)
        if (guides->items[i].metric && guides->items[i].ranking.tau > best.tau) {
            best.tau = guides->items[i].ranking.tau;
            best.first = &guides->items[i].ranking;
        }
    for (size_t i = 0; best.first && i < guides->count; i++) {
        const struct dl2_guide *guide = &guides->items[i];
        best.equals += is_best(guide, &best);
        if (!guide->metric || is_best(guide, &best) || isnan(guide->ranking.tau))
            continue;
        best.others++;
        best.reach += !(guide->ranking.high < best.first->low);
    }
    return best;
}

static void say_names(struct dl2_sentence *writer, const struct dl2_guides *guides,
                      const struct dl2_study *study, const struct best *best)
{
    for (size_t i = 0, written = 0; i < guides->count; i++) {
        const struct dl2_guide *guide = &guides->items[i];
        if (!is_best(guide, best))
            continue;
        dl2_say(writer, "%s%s (%s)", dl2_joint(written++, best->equals),
                dl2_metric_title(study, guide->metric), guide->title);
    }
}

void dl2_guides_say(const struct dl2_guides *guides, const struct dl2_study *study, char *text,
                    size_t size)
{
    const struct best best = find_best(guides);
    const struct dl2_ranking *first = best.first, *bits = &guides->items[guides->count - 1].ranking;
    struct dl2_sentence writer = {text, size, 0};
    text[0] = '\0';
    if (!first)
        return;
    dl2_say(&writer, "Of the %zu pairs of %zu variants, ", first->pairs, first->variants);
    say_names(&writer, guides, study, &best);
    dl2_say(&writer, "%s %zu as accuracy does", best.equals == 1 ? " orders" : " each order",
            first->alike);
    if (isfinite(bits->tau))
        dl2_say(&writer, "; size alone orders %zu", bits->alike);
    dl2_say(&writer, ".");
    if (first->told) {
        dl2_say(&writer, " Of the %zu whose accuracies can be told apart, %s %zu", first->told,
                best.equals == 1 ? "it orders" : "each orders", first->told_alike);
        if (isfinite(bits->tau) && bits->told == first->told)
            dl2_say(&writer, ", size alone %zu", bits->told_alike);
        dl2_say(&writer, ".");
    }
    if (best.equals + best.others > 1 && (best.equals > 1 || best.reach))
        dl2_say(&writer,
                " %s, so this study does not show that one metric is a better guide than another.",
                best.reach ? "The intervals overlap" : "They are equal");
}
