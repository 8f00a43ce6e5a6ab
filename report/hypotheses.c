/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/hypotheses.h"

#include "common/json.h"
#include "common/scope.h"
#include "report/advice.h"
#include "report/equal_bytes.h"

#include <math.h>
#include <string.h>

enum { H1, H2A, H2B, H2C, H3, H4, H5, HYPOTHESES };
static const struct {
    const char *name, *claim, *paper, *needs; /* what it takes to measure it */
} hypotheses[] = {
    [H1] = {"H1", "A smaller variant trains faster, the more so from a slow disk.",
            "resnet18 trained on the original at 203 images/s from a hard disk, waiting 94% of the "
            "time, and at 2,916 from memory, waiting 1%. Alexnet from memory: 4,596 on the "
            "original, 5,818 on JPEGs of quality 85, 2,333 on WebPs of 85, which decode slower",
            "make study-loading"},
    [H2A] = {"H2a", "Some quality below the original's keeps the accuracy.",
             "resnet50 on ImageNet: 76.7% on the original, 76.1% at JPEG quality 75, 75.3% at 25, "
             "73.5% at 10; from one seed each, where alexnet's noise is near a point",
             "make study-quality"},
    [H2B] = {"H2b", "Within the same time, training on a smaller variant gets further.",
             "resnet50 from a hard disk in 10 hours: 42.4% on the original, 73.3% on JPEGs of "
             "quality 75; alexnet from an SSD in 5 hours: 49.8% and 54.0%",
             "make study-time"},
    [H2C] = {"H2c", "In the same bytes, compressing all images beats leaving some out.",
             "resnet50: 76.1% on all images at quality 75, 68.6% on the 40% of the originals that "
             "take as much; 73.5% at quality 10, 44.4% on 10%",
             "make study-bytes"},
    [H3] = {"H3", "Epochs on compressed images, then some on the original, do as well.",
            "resnet50: 75.9% after 45 epochs at quality 10 and 45 on the original, 76.7% after 90 "
            "on the original, 73.5% after 90 at quality 10",
            "make study-regimens"},
    [H4] =
        {"H4", "Where memory is short, compression and a cache add up.",
         "resnet50 from a hard disk with 64 GiB: 120 images/s, 228 with a cache, 762 on JPEGs of "
         "quality 85, 1,044 with both",
         "make study-loading"},
    [H5] = {"H5", "Another codec than JPEG is the better choice.",
            "bmshj2018 made files up to 7 times smaller than JPEG's, and took 23 to 29 minutes to "
            "decode 6,750 images; lossyless up to 40 times smaller, in 24 to 27 seconds. Its "
            "seconds for JPEG are without decoding pixels, so the comparison does not hold",
            "make study with two codecs, or study's EXTERNAL"},
};

struct view {
    const struct dl2_hypotheses_of *of;
    const struct dl2_study *study;
    const struct dl2_analysis *analysis; /* NULL: nothing was trained */
    size_t raw, pick;                    /* the variant that sentences are about */
};

/* What is known of one hypothesis. */
struct finding {
    const char *text;  /* NULL: not measured */
    const char *needs; /* to decide it; "" */
    int low, high;     /* whether the interval's ends say yes: 1, no: -1, nothing: 0 */
};

static size_t pick_variant(const struct dl2_study *study, const struct dl2_analysis *analysis)
{
    size_t best = analysis ? dl2_advice_pick(&analysis->smallest, study) : study->variant_count;
    const bool found = best < study->variant_count;
    for (size_t v = 0; v < study->variant_count && !found; v++)
        if (strcmp(study->variants[v].name, "raw") != 0 && isfinite(study->variants[v].bytes) &&
            (!analysis || isfinite(analysis->comparisons[v].difference)) &&
            (best == study->variant_count ||
             study->variants[v].bytes < study->variants[best].bytes))
            best = v;
    return best;
}

/* Takes the interval into account: `yes` is above 0. */
static void judge(struct finding *finding, double middle, double half)
{
    finding->low = middle - half > 0 ? 1 : -1;
    finding->high = middle + half < 0 ? -1 : 1;
}

/* How many seeds would do, if means and deviations stay as they are; a rough number, since few
 * seeds know little of either. */
static const char *more_seeds(double middle, double half, size_t seeds)
{
    const double times = pow(half / middle, 2);
    if (!(times > 1) || !(times < 100) || seeds < 2)
        return "More seeds, and more validation images, narrow the interval.";
    return dl2_text("About %.0f seeds (SEEDS) would decide it, if the difference stays and all "
                    "chance is that of training.",
                    ceil(times * (double)seeds));
}

/* "+1.5 points (95% interval +0.6 to +2.3)" */
static const char *change(const struct dl2_accuracy_kind *kind, double middle, double half)
{
    return dl2_text("%s%s%s (%s)", dl2_signed(kind, middle), *kind->unit ? " " : "", kind->unit,
                    isfinite(half) ? dl2_text("95%% interval %s", dl2_interval(kind, middle, half))
                                   : "no interval: few seeds");
}

/* ---- H1 */

/* "memory" or another storage's setup with the most workers; NULL: it was not measured. */
static const struct dl2_loading_setup *find_setup(const struct view *view, const char *storage)
{
    const struct dl2_loading *loading = view->of->loading;
    for (size_t i = 0; i < loading->count; i++)
        if (dl2_loading_starts_storage(loading, i) &&
            strcmp(loading->items[i].storage, storage) == 0)
            return &loading->items[dl2_loading_last_of_storage(loading, i)];
    return NULL;
}

static const char *ratio_text(const struct dl2_ratio *ratio)
{
    return ratio->rounds < 2 ? dl2_text("%.3g times as fast (no interval: one round)", ratio->ratio)
                             : dl2_text("%.3g times as fast (95%% interval %.3g to %.3g)",
                                        ratio->ratio, dl2_ratio_low(ratio), dl2_ratio_high(ratio));
}

static const char *rate_text(const struct view *view, const struct dl2_loading_setup *setup,
                             struct finding *finding)
{
    const char *arch = view->analysis ? view->analysis->arch : NULL;
    const char *name = view->study->variants[view->pick].name;
    const size_t rate = offsetof(struct dl2_round, rate);
    DL2_AUTO_FREE double *scratch =
        dl2_room(setup->rounds.count + 1, sizeof *scratch, "the hypotheses");
    const struct dl2_ratio loads = dl2_rounds_ratio(&setup->rounds, NULL, name, "raw", rate);
    const struct dl2_ratio trains =
        arch ? dl2_rounds_ratio(&setup->rounds, arch, name, "raw", rate) : (struct dl2_ratio){0};
    const struct dl2_estimate stall = dl2_rounds_mean(
        &setup->rounds, arch, "raw", offsetof(struct dl2_round, stall), 100, scratch);
    if (!trains.rounds)
        return loads.rounds ? dl2_text("from %s it loads %s", setup->storage, ratio_text(&loads))
                            : NULL;
    finding->low = dl2_ratio_low(&trains) > 1 ? 1 : -1;
    finding->high = dl2_ratio_high(&trains) < 1 ? -1 : 1;
    return dl2_text("from %s it trains %s%s%s", setup->storage, ratio_text(&trains),
                    isfinite(stall.mean) ? dl2_text(" as the original, which waits %.2g%% of the "
                                                    "time for data",
                                                    stall.mean)
                                         : "",
                    loads.rounds ? dl2_text(", and loads alone %s", ratio_text(&loads)) : "");
}

static struct finding answer_h1(const struct view *view)
{
    struct finding finding = {0};
    const char *text = NULL;
    static const char *const storages[] = {"memory", "disk"}; /* the last one decides */
    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
        const struct dl2_loading_setup *setup = find_setup(view, storages[i]);
        const char *own = setup && view->pick < view->study->variant_count
                              ? rate_text(view, setup, &finding)
                              : NULL;
        if (own)
            text = text ? dl2_text("%s; %s", text, own) : own;
    }
    if (text)
        finding.text = dl2_text("Of %s: %s.", view->study->variants[view->pick].name, text);
    finding.needs = "More ROUNDS, on a machine that does nothing else, narrow the interval; a "
                    "slower disk or a faster device makes data count for more.";
    return finding;
}

/* ---- H2a */

static const char *list_of(const struct view *view, bool (*is_in)(enum dl2_verdict verdict))
{
    const struct dl2_analysis *analysis = view->analysis;
    const char *list = "";
    for (size_t v = 0; v < view->study->variant_count; v++) {
        const struct dl2_comparison *own = &analysis->comparisons[v];
        const double half = dl2_comparison_half(own);
        if (v != view->raw && is_in(own->verdict))
            list = dl2_text("%s%s%s (%s%s)", list, *list ? ", " : "", view->study->variants[v].name,
                            dl2_signed(analysis->kind, own->difference),
                            isfinite(half)
                                ? dl2_text(", 95%% interval %s",
                                           dl2_interval(analysis->kind, own->difference, half))
                                : "");
    }
    return list;
}

static bool is_within(enum dl2_verdict verdict)
{
    return verdict == DL2_VERDICT_WITHIN;
}
static bool is_beyond(enum dl2_verdict verdict)
{
    return verdict == DL2_VERDICT_BEYOND;
}
static bool is_open(enum dl2_verdict verdict)
{
    return verdict == DL2_VERDICT_LIKELY || verdict == DL2_VERDICT_UNLIKELY;
}

static struct finding answer_h2a(const struct view *view)
{
    struct finding finding = {.needs = ""};
    const struct dl2_analysis *analysis = view->analysis;
    if (!analysis)
        return finding;
    const char *within = list_of(view, is_within), *beyond = list_of(view, is_beyond);
    const char *open = list_of(view, is_open);
    if (!*within && !*beyond && !*open)
        return finding;
    const char *tolerance = dl2_tolerance_text(analysis);
    finding.text = dl2_text("%s is shown to lose less than %s of the %s of %s; more: %s; not "
                            "decided: %s.",
                            *within ? within : "No variant", tolerance, analysis->kind->title,
                            analysis->arch, *beyond ? beyond : "none", *open ? open : "none");
    struct dl2_study_size needed;
    for (size_t v = view->study->variant_count; v-- > 0;)
        if (v != view->raw && is_open(analysis->comparisons[v].verdict))
            finding.needs = dl2_text("%s %s", dl2_blocks_text(view->study, analysis, v),
                                     dl2_settle_text(view->study, analysis, v, &needed));
    finding.low = *within ? 1 : -1;
    finding.high = *within || *open ? 1 : -1;
    return finding;
}

/* ---- H2b */

static struct finding answer_h2b(const struct view *view)
{
    struct finding finding = {.needs = ""};
    size_t count;
    const struct dl2_time_budgets *all = dl2_time_budgets_find(view->of->conditions, &count);
    for (size_t i = 0; i < count && view->pick < view->study->variant_count; i++)
        for (size_t b = all[i].count; b-- > 0;) { /* the shortest decides */
            const struct dl2_time_budget *budget = &all[i].items[b];
            const char *name = view->study->variants[view->pick].name;
            const struct dl2_comparison *own = dl2_time_budget_find(budget, name);
            if (!view->analysis || strcmp(all[i].arch, view->analysis->arch) != 0 || !own ||
                !isfinite(own->difference))
                continue;
            const double half = dl2_comparison_half(own);
            const char *text =
                dl2_text("%s %s %s sees %.3g epochs, the original %.3g, and ends at %s",
                         b ? "within" : "Within", budget->condition->name, name,
                         dl2_runs_seen(dl2_time_budget_runs(budget, name)),
                         dl2_runs_seen(dl2_time_budget_runs(budget, "raw")),
                         change(budget->analysis->kind, own->difference, half));
            finding.text = finding.text ? dl2_text("%s; %s", text, finding.text) : text;
            finding.needs = more_seeds(own->difference, half, own->pairs);
            judge(&finding, own->difference, half);
        }
    if (finding.text)
        finding.text = dl2_text("%s, against the original in the same time.", finding.text);
    return finding;
}

/* ---- H2c */

static struct finding answer_h2c(const struct view *view)
{
    struct finding finding = {.needs = "", .low = 1, .high = -1};
    size_t count = 0;
    const struct dl2_equal_bytes *pairs =
        view->analysis
            ? dl2_equal_bytes_find(view->study, view->of->conditions, view->analysis->arch, &count)
            : NULL;
    for (size_t p = 0; p < count; p++) {
        const struct dl2_equal_bytes *pair = &pairs[p];
        struct finding own = {0};
        if (!isfinite(pair->difference.mean))
            continue;
        judge(&own, pair->difference.mean, pair->difference.half);
        const char *text =
            dl2_text("%s %s, in %s%s: %s", finding.text ? "as" : "All images as",
                     view->study->variants[pair->variant].name, dl2_number("%.2g%%", pair->percent),
                     finding.text ? "" : " of the bytes",
                     change(view->analysis->kind, pair->difference.mean, pair->difference.half));
        finding.text = finding.text ? dl2_text("%s; %s", finding.text, text) : text;
        if (own.low < 0 && own.high > 0)
            finding.needs =
                more_seeds(pair->difference.mean, pair->difference.half, pair->difference.count);
        finding.low = own.low < finding.low ? own.low : finding.low;
        finding.high = own.high > finding.high ? own.high : finding.high;
    }
    if (finding.text)
        finding.text = dl2_text("%s, against as many bytes of the original's images, for as many "
                                "epochs. These intervals are over seeds alone.",
                                finding.text);
    return finding;
}

/* ---- H3 */

static struct finding answer_h3(const struct view *view)
{
    struct finding finding = {.needs = ""};
    const struct dl2_conditions *conditions = view->of->conditions;
    for (size_t i = 0; i < conditions->count && view->analysis; i++) {
        const struct dl2_condition *condition = &conditions->items[i];
        const size_t a = dl2_study_find_arch(&condition->study, view->analysis->arch);
        if (strcmp(condition->goal, "regimens") != 0 || a == condition->study.arch_count)
            continue;
        const struct dl2_regimens group = {condition, &condition->analyses[a]};
        for (size_t v = 0; v < condition->study.variant_count; v++) {
            const struct dl2_comparison *own = &group.analysis->comparisons[v];
            const double half = dl2_comparison_half(own);
            if (strcmp(condition->study.variants[v].name, "raw") == 0 || !isfinite(own->difference))
                continue;
            const char *text =
                dl2_text("%s%s %s", finding.text ? "" : "Regimen ", dl2_regimen_label(&group, v),
                         change(group.analysis->kind, own->difference, half));
            finding.text = finding.text ? dl2_text("%s; %s", finding.text, text) : text;
            const int low = own->verdict == DL2_VERDICT_WITHIN ? 1 : -1;
            const int high = own->verdict == DL2_VERDICT_BEYOND ? -1 : 1;
            if (low < 0 && high > 0)
                finding.needs = more_seeds(own->difference + group.analysis->question.tolerance,
                                           half, own->pairs);
            finding.low = finding.low == 1 ? 1 : low; /* one regimen that does will do */
            finding.high = finding.high == 1 ? 1 : high;
        }
    }
    if (finding.text)
        finding.text = dl2_text("%s, against as many epochs on the original; it may lose %s.",
                                finding.text, dl2_tolerance_text(view->analysis));
    return finding;
}

/* ---- H4 */

/* A cache that holds a part of the original, and none. */
static void find_caches(const struct view *view, const struct dl2_loading_setup *out[2])
{
    const struct dl2_loading *loading = view->of->loading;
    unsigned long best = 0;
    out[0] = find_setup(view, "cache-0");
    out[1] = NULL;
    for (size_t i = 0; i < loading->count; i++) {
        const unsigned long percent = dl2_loading_caches(&loading->items[i])
                                          ? strtoul(loading->items[i].storage + 6, NULL, 10)
                                          : 0;
        if (percent > 0 && percent < 100 &&
            (!best || labs((long)percent - 50) < labs((long)best - 50))) {
            best = percent;
            out[1] = &loading->items[i];
        }
    }
}

static struct finding answer_h4(const struct view *view)
{
    struct finding finding = {
        .needs = "It was loaded alone and once, so rates have no interval: STORAGES=\"memory=SIZE "
                 "memory=SIZE,cache=SIZE\" also limits the page cache, and trains in ROUNDS."};
    const struct dl2_loading_setup *setups[2];
    double read[2][2];
    const char *texts[2][2];
    find_caches(view, setups);
    if (!setups[0] || !setups[1] || view->pick == view->study->variant_count)
        return finding;
    const char *names[] = {"raw", view->study->variants[view->pick].name};
    for (int s = 0; s < 2; s++)
        for (int n = 0; n < 2; n++) {
            double cache;
            const struct dl2_round *round = dl2_rounds_first(&setups[s]->rounds, NULL, names[n]);
            if (!round || !dl2_loading_memory(setups[s], names[n], &cache, &read[s][n]))
                return finding;
            texts[s][n] = dl2_text("%s MB (%.0f images/s)", dl2_number("%.3g", read[s][n] / 1e6),
                                   round->rate);
        }
    finding.text = dl2_text("An epoch from a cold disk reads %s of the original, %s with a cache "
                            "of %s%% of all its bytes, "
                            "%s of %s, and %s with both.",
                            texts[0][0], texts[1][0], setups[1]->storage + 6, texts[0][1], names[1],
                            texts[1][1]);
    finding.low = finding.high =
        read[1][1] < read[0][1] && read[1][1] < read[1][0] && read[0][1] < read[0][0] ? 1 : -1;
    return finding;
}

/* ---- H5 */

/* Was any variant made by an external codec's commands? */
static bool has_external(const struct dl2_study *study)
{
    bool any = false;
    for (size_t v = 0; v < study->variant_count; v++)
        any |=
            json_object_get(json_object_get(study->variants[v].made, "encoder"), "decode") != NULL;
    return any;
}

static struct finding answer_h5(const struct view *view)
{
    const struct dl2_study *study = view->study;
    struct finding finding = {
        .needs = has_external(study) || study->late.count
                     ? "Loading was compared without an interval."
                     : "Loading was compared without an interval. No codec by EXTERNAL, such as a "
                       "learned one, was tried."};
    const struct dl2_codec_sizes *sizes = view->of->sizes;
    size_t metric = 0;
    for (size_t m = 0; m < sizes->metrics.count; m++)
        if (strcmp(sizes->metrics.names[m], "ssim") == 0)
            metric = m;
    for (size_t v = 0; v < study->variant_count && sizes->metrics.count; v++) {
        const struct dl2_codec_size *own = dl2_codec_size_at(study, sizes, metric, v);
        if (!own || v == sizes->anchor || !isfinite(own->pooled))
            continue;
        const char *interval =
            isfinite(own->pooled_low)
                ? dl2_text(" (95%% interval %.3g to %.3g)", own->pooled_low, own->pooled_high)
                : "";
        const char *text = dl2_text(
            "%s equal %s %s takes %.3g%%%s of %s's bytes%s%s", finding.text ? "at" : "At",
            sizes->metrics.names[metric], study->variants[v].codec, own->pooled, interval,
            study->variants[sizes->anchor].codec,
            isfinite(own->encoding)
                ? dl2_text(", %.3g times its time to encode", own->encoding / 100)
                : "",
            isfinite(own->loading) ? dl2_text(", %.3g times its time to load", own->loading / 100)
                                   : "");
        finding.text = finding.text ? dl2_text("%s; %s", finding.text, text) : text;
        const int low = own->pooled_high < 100 && !(own->loading > 100) ? 1 : -1;
        const int high = own->pooled_low > 100 || own->loading > 100 ? -1 : 1;
        finding.low = finding.low == 1 ? 1 : low;
        finding.high = finding.high == 1 ? 1 : high;
    }
    if (finding.text)
        finding.text = dl2_text("%s. Better is smaller and no slower to load.", finding.text);
    for (size_t i = 0; i < study->late.count; i++)
        finding.text = dl2_text("%s%s%s.", finding.text ? finding.text : "",
                                finding.text ? " " : "", study->late.at[i]);
    return finding;
}

/* ---- All of them */

/* What so small an experiment is about. */
static const char *limits_of(const struct view *view)
{
    const struct dl2_study_run *run = view->study->run_count ? view->study->runs : NULL;
    const json_t *arguments = run ? json_object_get(run->report, "arguments") : NULL;
    const json_t *size = json_object_get(arguments, "image-size");
    const char *pixels = json_is_string(size)
                             ? json_string_value(size)
                             : dl2_text("%lld", (long long)json_integer_value(size));
    if (!run)
        return "Nothing was trained: rates and sizes hold for these images on this machine.";
    return dl2_text(
        "These answers are of %s at %s pixels, %zu epochs, %zu seeds, %.0f images for training and "
        "%.0f for validation, on this machine. The paper trained resnet50, resnet18 and alexnet at "
        "224 pixels for 90 epochs on 1.28 million images, from one seed each. A small experiment "
        "cannot tell what another network loses, nor this one with more pixels, which show more of "
        "the artifacts, or with more epochs; intervals that few seeds leave wide are undecided, "
        "not equal; and a device that is faster or slower, or another disk, moves what data cost.",
        view->analysis->arch, pixels, run->epochs, view->analysis->seeds, run->train_images,
        run->val_images);
}

static json_t *answer_of(const struct view *view, size_t h)
{
    static struct finding (*const answers[])(const struct view *) = {
        [H1] = answer_h1, [H2A] = answer_h2a, [H2B] = answer_h2b, [H2C] = answer_h2c,
        [H3] = answer_h3, [H4] = answer_h4,   [H5] = answer_h5};
    const struct finding found = answers[h](view);
    const char *answer = !found.text      ? "not measured"
                         : found.low > 0  ? "yes"
                         : found.high < 0 ? "no"
                                          : "undecided";
    const bool open = !found.text || strcmp(answer, "undecided") == 0 || h == H4 || h == H5;
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:s}", "hypothesis", hypotheses[h].name,
                     "claim", hypotheses[h].claim, "network",
                     view->analysis ? dl2_json_text(view->analysis->arch) : json_null(), "answer",
                     answer, "text", found.text ? dl2_json_text(found.text) : json_null(), "needs",
                     dl2_json_text(!found.text ? dl2_text("%s measures it.", hypotheses[h].needs)
                                   : open      ? found.needs
                                               : ""),
                     "paper", hypotheses[h].paper);
}

const json_t *dl2_hypotheses_make(const struct dl2_hypotheses_of *of)
{
    struct view view = {.of = of, .study = of->study};
    json_t *list = json_array();
    view.raw = dl2_study_find(of->study, "raw");
    for (size_t h = 0; h < HYPOTHESES; h++)
        for (size_t a = 0; a < of->study->arch_count || a == 0; a++) {
            if (a && (h == H4 || h == H5)) /* no network is in these */
                break;
            view.analysis = of->study->arch_count ? &of->analyses[a] : NULL;
            view.pick = pick_variant(of->study, view.analysis);
            json_array_append_new(list, dl2_need(answer_of(&view, h)));
        }
    return dl2_keep_json(json_pack("{s:s, s:o, s:o, s:o}", "schema", "dl2-hypotheses/1", "title",
                                   dl2_json_text(of->title), "answers", list, "limits",
                                   dl2_json_text(limits_of(&view))));
}

const char *dl2_hypotheses_text(const json_t *all)
{
    const char *text =
        dl2_text("# The hypotheses of (DL)2 on %s\n", dl2_json_get_text(all, "title", ""));
    const json_t *list = json_object_get(all, "answers"), *answer;
    size_t i;
    bool several = false;
    json_array_foreach(list, i, answer) several |=
        i && strcmp(dl2_json_get_text(answer, "hypothesis", ""),
                    dl2_json_get_text(json_array_get(list, i - 1), "hypothesis", "")) == 0;
    json_array_foreach(list, i, answer)
    {
        const char *needs = dl2_json_get_text(answer, "needs", "");
        text =
            dl2_text("%s\n%s%s%s: %s\n\n**Here: %s.** %s%s%s\n\nThe paper: %s.\n", text, "## ",
                     dl2_json_get_text(answer, "hypothesis", ""),
                     several ? dl2_text(" (%s)", dl2_json_get_text(answer, "network", "")) : "",
                     dl2_json_get_text(answer, "claim", ""),
                     dl2_json_get_text(answer, "answer", ""), dl2_json_get_text(answer, "text", ""),
                     *needs ? " " : "", needs, dl2_json_get_text(answer, "paper", ""));
    }
    return dl2_text("%s\n## What this cannot tell\n\n%s\n", text,
                    dl2_json_get_text(all, "limits", ""));
}
