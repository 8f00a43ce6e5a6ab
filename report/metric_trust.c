/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/metric_trust.h"

#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
#include "common/stats.h"
#include "report/accuracy_text.h"
#include "report/sentence.h"

#include <math.h>
#include <string.h>

/* ---- The metrics, and their figures */

static bool is_known(const struct dl2_metric_names *metrics, const char *name)
{
    for (size_t m = 0; m < metrics->count; m++)
        if (strcmp(metrics->names[m], name) == 0)
            return true;
    return false;
}

void dl2_metric_names_find(const struct dl2_study *study, struct dl2_metric_names *metrics)
{
    metrics->count = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const char *name;
        json_t *metric;
        json_object_foreach(json_object_get(study->variants[v].scored, "metrics"), name, metric)
        {
            if (metrics->count < DL2_MAX_METRICS && strlen(name) < sizeof metrics->names[0] &&
                json_is_object(metric) && !is_known(metrics, name)) {
                metrics->lower_is_better[metrics->count] =
                    dl2_json_lists(json_object_get(study->quality, "lower_is_better"), name);
                metrics->one_is_best[metrics->count] =
                    dl2_json_lists(json_object_get(study->quality, "one_is_best"), name);
                strcpy(metrics->names[metrics->count++], name);
            }
        }
    }
}

double dl2_metric_aggregate(const struct dl2_study_variant *variant, const char *metric,
                            const char *part)
{
    if (variant->resized)
        return NAN;
    const json_t *own = json_object_get(json_object_get(variant->scored, "metrics"), metric);
    return dl2_json_get_real(own, part,
                             json_is_true(json_object_get(own, "lossless")) ? INFINITY : NAN);
}

/* ---- The order by accuracy */

/* 1, -1 or 0 as in struct dl2_accuracy_order. */
static int8_t tell_apart(const double *a, const double *b, double *scratch)
{
    double low, high;
    for (size_t d = 0; d < DL2_REPETITIONS; d++) {
        scratch[d] = a[d] - b[d];
        if (isnan(scratch[d]))
            return 0;
    }
    dl2_middle_95(scratch, DL2_REPETITIONS, &low, &high);
    return low > 0 ? 1 : high < 0 ? -1 : 0;
}

struct dl2_accuracy_order dl2_accuracy_order_make(const struct dl2_study *study,
                                                  const struct dl2_analysis *analysis, size_t arch)
{
    const size_t count = study->variant_count;
    const struct dl2_repetitions repetitions = dl2_repetitions_draw(study, analysis, arch);
    DL2_AUTO_FREE double *accuracy = repetitions.accuracy;
    DL2_AUTO_FREE double *scratch =
        dl2_room(DL2_REPETITIONS, sizeof *scratch, "the order of variants");
    struct dl2_accuracy_order order = {.variants = count, .images = repetitions.images};
    if (!accuracy)
        return order;
    order.signs = dl2_keep(count, count, "the order of %zu variants", count);
    for (size_t v = 0; v < count; v++)
        for (size_t w = 0; w < v; w++) {
            const int8_t sign =
                tell_apart(accuracy + v * DL2_REPETITIONS, accuracy + w * DL2_REPETITIONS, scratch);
            order.signs[v * count + w] = sign;
            order.signs[w * count + v] = (int8_t)-sign;
        }
    return order;
}

/* ---- Ranks */

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

/* The interval of tau: what is not told may be for or against. `x` and `y` are the pairs that the
 * figure and the measured accuracies do not tie; true accuracies tie none. */
static void bound_tau(struct dl2_ranking *ranking, double x, double y)
{
    const double sum = 2. * (double)ranking->told_alike - (double)ranking->told;
    const double open = x - (double)ranking->told;
    const double scale = sqrt(x * (double)ranking->pairs), measured = sqrt(x * y);
    ranking->low = fmax(-1, fmin((sum - open) / scale, (sum - open) / measured));
    ranking->high = fmin(1, fmax((sum + open) / scale, (sum + open) / measured));
}

struct dl2_ranking dl2_ranking_make(const struct dl2_study *study,
                                    const struct dl2_analysis *analysis,
                                    const struct dl2_accuracy_order *order, const double *values)
{
    const size_t all = study->variant_count, raw = dl2_study_find(study, "raw");
    struct dl2_ranking ranking = {.tau = NAN, .low = NAN, .high = NAN};
    DL2_AUTO_FREE size_t *variants = dl2_room(all + 1, sizeof *variants, "variants");
    for (size_t v = 0; v < all; v++)
        if (v != raw && !isnan(values[v]) && isfinite(analysis->comparisons[v].accuracy.mean))
            variants[ranking.variants++] = v;
    size_t tied = 0, tied_accuracy = 0, opposed = 0;
    for (size_t i = 0; i < ranking.variants; i++)
        for (size_t k = i + 1; k < ranking.variants; k++) {
            const size_t v = variants[i], w = variants[k];
            const int by_value = compare(values[v], values[w]);
            const int by_accuracy = compare(analysis->comparisons[v].accuracy.mean,
                                            analysis->comparisons[w].accuracy.mean);
            const int told = order->signs && by_value ? order->signs[v * all + w] : 0;
            ranking.pairs++;
            tied += !by_value;
            tied_accuracy += !by_accuracy;
            ranking.alike += by_value * by_accuracy > 0;
            opposed += by_value * by_accuracy < 0;
            ranking.told += told != 0;
            ranking.told_alike += told * by_value > 0;
        }
    /* Kendall, Rank Correlation Methods, 1948: tau-b. */
    const double x = (double)(ranking.pairs - tied), y = (double)(ranking.pairs - tied_accuracy);
    if (ranking.variants < 3 || !(x > 0) || !(y > 0))
        return ranking;
    ranking.tau = ((double)ranking.alike - (double)opposed) / sqrt(x * y);
    if (order->signs)
        bound_tau(&ranking, x, y);
    return ranking;
}

/* ---- Images that a variant breaks */

enum fate { FATE_OTHER, FATE_KEPT, FATE_BROKEN, FATE_MENDED };

/* fates[images]; returns the number of seeds. */
static size_t tell_fates(const struct dl2_study *study, const char *arch, size_t raw,
                         size_t variant, size_t images, uint8_t *fates, size_t *counts)
{
    size_t seeds = 0;
    memset(counts, 0, 3 * images * sizeof *counts);
    size_t *right = counts, *broken = counts + images, *mended = counts + 2 * images;
    const struct dl2_runs runs = dl2_study_runs(study, variant, arch);
    for (size_t r = 0; r < runs.count; r++) {
        const struct dl2_study_run *own = &runs.at[r];
        const struct dl2_study_run *original = dl2_study_run_of(study, raw, arch, own->seed);
        if (!own->outcome || !original || !original->outcome)
            continue;
        seeds++;
        for (size_t i = 0; i < images; i++) {
            if (isnan(own->outcome[i]) || isnan(original->outcome[i]))
                continue;
            right[i] += original->outcome[i] > 0;
            broken[i] += original->outcome[i] > 0 && !(own->outcome[i] > 0);
            mended[i] += own->outcome[i] > 0 && !(original->outcome[i] > 0);
        }
    }
    for (size_t i = 0; i < images; i++)
        fates[i] = 2 * broken[i] > seeds   ? FATE_BROKEN
                   : 2 * mended[i] > seeds ? FATE_MENDED
                   : 2 * right[i] > seeds  ? FATE_KEPT
                                           : FATE_OTHER;
    return seeds;
}

void dl2_mann_whitney_interval(double share, size_t a, size_t b, double *low, double *high)
{
    const double z = dl2_student_quantile(0.025, INFINITY);
    const double pairs = (double)a * (double)b, extra = (double)(a + b) / 2 - 1;
    double ends[2] = {0, 1};
    for (int side = 0; side < 2; side++) {
        double outside = side, inside = share; /* an end between the two */
        for (int step = 0; step < 60; step++) {
            const double middle = (outside + inside) / 2;
            const double variance =
                middle * (1 - middle) *
                (1 + extra * ((1 - middle) / (2 - middle) + middle / (1 + middle))) / pairs;
            if (fabs(share - middle) > z * sqrt(variance))
                outside = middle;
            else
                inside = middle;
        }
        ends[side] = inside;
    }
    *low = ends[0];
    *high = ends[1];
}

static double median_of(const double *sorted, size_t count)
{
    if (!count)
        return NAN;
    const double a = sorted[(count - 1) / 2], b = sorted[count / 2];
    return a == b ? a : (a + b) / 2; /* also of infinities */
}

/* Compares the scores of broken and kept images. `values` has `images` scores, NAN where there is
 * none; `scratch` has room for as many. */
static void compare_scores(const double *values, const uint8_t *fates, size_t images,
                           double *scratch, struct dl2_breakage *breakage, size_t metric)
{
    double *broken = scratch, *kept;
    size_t a = 0, b = 0;
    for (size_t i = 0; i < images; i++)
        if (fates[i] == FATE_BROKEN && !isnan(values[i]))
            broken[a++] = values[i];
    kept = scratch + a;
    for (size_t i = 0; i < images; i++)
        if (fates[i] == FATE_KEPT && !isnan(values[i]))
            kept[b++] = values[i];
    dl2_sort(broken, a);
    dl2_sort(kept, b);
    breakage->metrics[metric].broken = a;
    breakage->metrics[metric].kept = b;
    breakage->metrics[metric].broken_median = median_of(broken, a);
    breakage->metrics[metric].kept_median = median_of(kept, b);
    if (!a || !b)
        return;
    double lower = 0; /* pairs */
    for (size_t i = 0, below = 0, through = 0; i < a; i++) {
        while (below < b && kept[below] < broken[i])
            below++;
        while (through < b && kept[through] <= broken[i])
            through++;
        lower += (double)(b - through) + 0.5 * (double)(through - below);
    }
    const double share = lower / ((double)a * (double)b);
    breakage->metrics[metric].worse = share;
    dl2_mann_whitney_interval(share, a, b, &breakage->metrics[metric].low,
                              &breakage->metrics[metric].high);
}

/* The row of an image in the table of predictions, table->count where there is none. */
static size_t find_image(const struct dl2_prediction_table *table, const char *key)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const size_t row = table->order[middle];
        const int order = strcmp(table->keys + row * table->key_size, key);
        if (order == 0)
            return row;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return table->count;
}

/* values[metric * images + image], NAN where there is no score. */
static void take_scores(const json_t *rows, const struct dl2_metric_names *metrics,
                        const struct dl2_prediction_table *table, double *values)
{
    size_t i;
    json_t *row;
    for (i = 0; i < metrics->count * table->count; i++)
        values[i] = NAN;
    json_array_foreach(rows, i, row)
    {
        const size_t image = find_image(table, dl2_json_get_text(row, "key", ""));
        const bool same = json_is_true(json_object_get(row, "lossless"));
        for (size_t m = 0; image < table->count && m < metrics->count; m++)
            if (json_object_get(row, metrics->names[m]))
                values[m * table->count + image] =
                    dl2_json_get_real(row, metrics->names[m], same ? INFINITY : NAN);
    }
}

static void find_breakage(const struct dl2_study *study, size_t arch, size_t variant,
                          const struct dl2_metric_names *metrics, const json_t *rows,
                          struct dl2_breakage *breakage)
{
    const struct dl2_prediction_table *table = &study->images[arch];
    const size_t images = table->count, raw = dl2_study_find(study, "raw");
    if (!images)
        return;
    DL2_AUTO_FREE uint8_t *fates = dl2_room(images, sizeof *fates, "%zu validation images", images);
    DL2_AUTO_FREE size_t *counts =
        dl2_room(images, 3 * sizeof *counts, "%zu validation images", images);
    DL2_AUTO_FREE double *values =
        dl2_room(images, (metrics->count + 1) * sizeof *values, "%zu validation images", images);
    breakage->seeds = tell_fates(study, study->archs[arch], raw, variant, images, fates, counts);
    for (size_t i = 0; i < images; i++) {
        breakage->broken += fates[i] == FATE_BROKEN;
        breakage->kept += fates[i] == FATE_KEPT;
        breakage->mended += fates[i] == FATE_MENDED;
    }
    take_scores(rows, metrics, table, values);
    for (size_t m = 0; m < metrics->count; m++) {
        /* Compared as if higher were better. */
        const double sign = metrics->lower_is_better[m] ? -1 : 1;
        for (size_t i = 0; i < images; i++)
            values[m * images + i] *= sign;
        compare_scores(values + m * images, fates, images, values + metrics->count * images,
                       breakage, m);
        breakage->metrics[m].broken_median *= sign;
        breakage->metrics[m].kept_median *= sign;
    }
}

struct dl2_breakage *dl2_breakages_find(const struct dl2_study *study,
                                        const struct dl2_metric_names *metrics)
{
    struct dl2_breakage *breakages =
        dl2_keep(study->arch_count, study->variant_count * sizeof *breakages, "%zu variants",
                 study->variant_count);
    for (size_t i = 0; i < study->arch_count * study->variant_count; i++) {
        for (size_t m = 0; m < DL2_MAX_METRICS; m++)
            breakages[i].metrics[m].broken_median = breakages[i].metrics[m].kept_median =
                breakages[i].metrics[m].worse = breakages[i].metrics[m].low =
                    breakages[i].metrics[m].high = NAN;
    }
    if (dl2_study_accuracy(study)->is_foreign) /* whose outcomes need not be right or wrong */
        return breakages;
    for (size_t v = 0; v < study->variant_count; v++) {
        if (strcmp(study->variants[v].name, "raw") == 0)
            continue;
        json_auto_t *file = NULL;
        const json_t *rows =
            json_object_get(dl2_study_scores(&study->variants[v], &file), "per_image");
        for (size_t a = 0; a < study->arch_count; a++)
            find_breakage(study, a, v, metrics, rows, &breakages[a * study->variant_count + v]);
    }
    return breakages;
}

/* ---- Which metric is the best guide? */

const char *dl2_metric_title(const struct dl2_study *study, const char *metric)
{
    return dl2_json_get_text(json_object_get(study->quality, "titles"), metric, metric);
}

double dl2_guide_value(const struct dl2_guide *guide, const struct dl2_study_variant *variant)
{
    return guide->metric ? dl2_metric_aggregate(variant, guide->metric, guide->part)
                         : variant->bits_per_pixel;
}

static struct dl2_guides list_guides(const struct dl2_metric_names *metrics)
{
    struct dl2_guides guides = {.count = 0};
    for (size_t m = 0; m < metrics->count; m++) {
        const bool lower = metrics->lower_is_better[m];
        guides.items[guides.count++] = (struct dl2_guide){metrics->names[m], "mean", "mean", lower};
        guides.items[guides.count++] =
            (struct dl2_guide){metrics->names[m], lower ? "p95" : "p5",
                               lower ? "95th percentile" : "5th percentile", lower};
    }
    guides.items[guides.count++] = (struct dl2_guide){.metric = NULL};
    return guides;
}

struct dl2_guides dl2_guides_make(const struct dl2_study *study,
                                  const struct dl2_analysis *analysis,
                                  const struct dl2_accuracy_order *order,
                                  const struct dl2_metric_names *metrics)
{
    DL2_AUTO_FREE double *values = dl2_room(study->variant_count, sizeof *values, "the metrics");
    DL2_AUTO_FREE bool *scored = dl2_room(study->variant_count, sizeof *scored, "the metrics");
    bool any = false; /* metrics and size are compared on the same variants */
    struct dl2_guides guides = list_guides(metrics);
    for (size_t i = 0; i < guides.count; i++) {
        struct dl2_guide *guide = &guides.items[i];
        for (size_t v = 0; v < study->variant_count; v++) {
            values[v] =
                dl2_guide_value(guide, &study->variants[v]) * (guide->lower_is_better ? -1 : 1);
            scored[v] |= guide->metric && !isnan(values[v]);
            any |= scored[v];
            if (!guide->metric && any && !scored[v])
                values[v] = NAN;
        }
        guide->ranking = dl2_ranking_make(study, analysis, order, values);
        guides.any |= isfinite(guide->ranking.tau);
    }
    return guides;
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
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    struct dl2_sentence writer = {text, size, 0};
    text[0] = '\0';
    if (!first)
        return;
    dl2_say(&writer, "Of the %zu pairs of %zu variants, ", first->pairs, first->variants);
    say_names(&writer, guides, study, &best);
    dl2_say(&writer, dl2_accuracy_words(kind, "%s %zu as accuracy does"),
            best.equals == 1 ? " orders" : " each order", first->alike);
    if (isfinite(bits->tau))
        dl2_say(&writer, "; size alone orders %zu", bits->alike);
    dl2_say(&writer, ".");
    if (first->told) {
        dl2_say(&writer,
                dl2_accuracy_words(kind, " Of the %zu whose accuracies can be told apart, %s %zu"),
                first->told, best.equals == 1 ? "it orders" : "each orders", first->told_alike);
        if (isfinite(bits->tau) && bits->told == first->told)
            dl2_say(&writer, ", size alone %zu", bits->told_alike);
        dl2_say(&writer, ".");
    }
    if (best.equals + best.others > 1 && (best.equals > 1 || best.reach))
        dl2_say(&writer,
                " %s, so this study does not show that one metric is a better guide than another.",
                best.reach ? "The intervals overlap" : "They are equal");
}
