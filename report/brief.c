/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/brief.h"

#include "common/scope.h"
#include "report/advice.h"
#include "report/sentence.h"
#include "report/text_table.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 5, MOST_NAMES = 3 };

struct view {
    const struct dl2_study *study;
    const struct dl2_analysis *analysis;
    const struct dl2_speeds *speeds;
    size_t raw;
};

/* ---- Which variants */

static bool is_open(const struct view *view, size_t v)
{
    const enum dl2_verdict verdict = view->analysis->comparisons[v].verdict;
    return verdict == DL2_VERDICT_LIKELY || verdict == DL2_VERDICT_UNLIKELY;
}

/* Would a claim change the recommendation? */
static bool is_smaller(const struct view *view, size_t v)
{
    const size_t sure = view->analysis->smallest.sure;
    const struct dl2_study_variant *variants = view->study->variants;
    return variants[v].bytes < variants[sure < view->study->variant_count ? sure : view->raw].bytes;
}

/* How much a reader wants to see a variant that is not recommended; 0: not at all. */
static int interest(const struct view *view, size_t v)
{
    const enum dl2_verdict verdict = view->analysis->comparisons[v].verdict;
    if (v == view->raw || verdict == DL2_VERDICT_NONE)
        return 0;
    return is_open(view, v)                ? (is_smaller(view, v) ? 5 : 3)
           : verdict == DL2_VERDICT_WITHIN ? 2
           : is_smaller(view, v)           ? 4
                                           : 1;
}

/* Is v the more interesting? Of equals, the one that is nearest to a claim. */
static bool is_ahead(const struct view *view, size_t v, size_t other)
{
    const int mine = interest(view, v), its = interest(view, other);
    return mine != its ? mine > its
                       : view->analysis->comparisons[v].difference >
                             view->analysis->comparisons[other].difference;
}

static bool is_picked(const size_t *picked, size_t count, size_t v)
{
    for (size_t i = 0; i < count; i++)
        if (picked[i] == v)
            return true;
    return false;
}

/* Adds a variant to the `most` that are picked; returns how many these are. */
static size_t pick(const struct view *view, size_t *picked, size_t count, size_t most, size_t v)
{
    if (v < view->study->variant_count && count < most && !is_picked(picked, count, v))
        picked[count++] = v;
    return count;
}

/* Fills `picked` up with the most interesting ones, open ones alone where `open` is set. */
static size_t fill_up(const struct view *view, size_t *picked, size_t count, size_t most, bool open)
{
    const size_t none = view->study->variant_count;
    for (size_t before = SIZE_MAX; count < most && before != count;) {
        size_t best = none;
        before = count;
        for (size_t v = 0; v < none; v++)
            if (interest(view, v) && (!open || is_open(view, v)) && !is_picked(picked, count, v) &&
                (best == none || is_ahead(view, v, best)))
                best = v;
        count = pick(view, picked, count, most, best);
    }
    return count;
}

/* The variant to name as the fastest of those within: the smallest, if it may be as fast. */
static size_t fastest_of(const struct view *view, enum dl2_speed_kind kind)
{
    const size_t none = view->study->variant_count, sure = view->analysis->smallest.sure;
    const size_t fastest = view->speeds->fastest[kind].sure;
    if (fastest == none || sure == none)
        return fastest;
    const struct dl2_speed *own = &view->speeds->variants[sure];
    const struct dl2_ratio *best = &view->speeds->variants[fastest].ratio[kind];
    const bool ties = best->spread.freedom > 0 ? own->faster[kind] && own->rival[kind]
                                               : own->ratio[kind].ratio >= best->ratio;
    return ties ? sure : fastest;
}

/* ---- The table */

/* "+1.5 (+0.6 to +2.3)"; with a star where the interval is of training alone. */
static const char *change_cell(const struct view *view, size_t v, bool *is_alone)
{
    const struct dl2_comparison *comparison = &view->analysis->comparisons[v];
    const struct dl2_accuracy_kind *kind = view->analysis->kind;
    const double half = dl2_comparison_half(comparison);
    if (v == view->raw)
        return dl2_accuracy_amount(kind, comparison->accuracy.mean);
    if (!isfinite(half))
        return dl2_text("%s (no interval)", dl2_signed(kind, comparison->difference));
    const bool alone = !dl2_counts_images(comparison);
    *is_alone |= alone;
    return dl2_text("%s (%s)%s", dl2_signed(kind, comparison->difference),
                    dl2_interval(kind, comparison->difference, half), alone ? "*" : "");
}

/* "52000 (9.12x)" */
static const char *load_cell(const struct view *view, size_t v)
{
    const struct dl2_speed *speed = &view->speeds->variants[v];
    const double ratio = speed->ratio[DL2_SPEED_LOAD].ratio;
    if (!speed->load_rate.count)
        return NULL;
    const char *rate =
        dl2_number(speed->load_rate.mean < 99.5 ? "%.3g" : "%.0f", speed->load_rate.mean);
    return v == view->raw || !isfinite(ratio) ? rate : dl2_text("%s (%.3gx)", rate, ratio);
}

static void add_heads(struct dl2_text_table *table, const struct dl2_accuracy_kind *kind)
{
    const char **first = dl2_text_row(table);
    first[2] = dl2_text("%s%s", kind->title, kind->is_lower_better ? ", better by" : "");
    first[3] = "loading,";
    const char **second = dl2_text_row(table);
    second[0] = "variant";
    second[1] = "bytes";
    second[2] = dl2_text("%s%s(95%% interval)", kind->unit, *kind->unit ? " " : "");
    second[3] = "images/s/core";
    second[4] = "verdict";
}

static void add_row(struct dl2_text_table *table, const struct view *view, size_t v, bool *is_alone)
{
    const struct dl2_study_variant *variant = &view->study->variants[v];
    const char **cells = dl2_text_row(table);
    cells[0] = v == view->raw ? "original" : variant->name;
    cells[1] = isfinite(variant->ratio) ? dl2_number("%.3g%%", 100 * variant->ratio) : NULL;
    cells[2] = change_cell(view, v, is_alone);
    cells[3] = load_cell(view, v);
    cells[4] = dl2_verdict_text(view->analysis->comparisons[v].verdict);
}

static void make_table(const struct view *view, struct dl2_brief *brief)
{
    const struct dl2_advice *smallest = &view->analysis->smallest;
    size_t picked[MOST_ROWS], count = pick(view, picked, 0, MOST_ROWS, view->raw);
    count = pick(view, picked, count, MOST_ROWS, smallest->sure);
    count = pick(view, picked, count, MOST_ROWS, fastest_of(view, DL2_SPEED_LOAD));
    count = pick(view, picked, count, MOST_ROWS, smallest->likely);
    count = pick(view, picked, count, MOST_ROWS, view->speeds->fastest[DL2_SPEED_LOAD].likely);
    count = fill_up(view, picked, count, MOST_ROWS, false);
    struct dl2_text_table table = {0};
    bool is_alone = false;
    if (count < 2)
        return;
    add_heads(&table, view->analysis->kind);
    for (size_t i = 0; i < count; i++)
        add_row(&table, view, picked[i], &is_alone);
    const char **lines = dl2_text_lines(&table);
    brief->line_count = table.count;
    if (is_alone) {
        lines[brief->line_count++] = "* By the chance of training alone; that of the choice "
                                     "of images is not known.";
    }
    brief->lines = lines;
}

/* ---- What to use */

/* "loads 9.12 times and trains 2 times as fast as the original": where v is the fastest that is
 * claimed; "" where it is not. */
static const char *speed_text(const struct view *view, size_t v)
{
    const struct dl2_speed *speed = &view->speeds->variants[v];
    const bool loads = fastest_of(view, DL2_SPEED_LOAD) == v;
    const bool trains = fastest_of(view, DL2_SPEED_TRAIN) == v;
    if (!loads && !trains)
        return "";
    return dl2_text("%s%s%s as fast as the original",
                    loads ? dl2_text("loads %.3g times", speed->ratio[DL2_SPEED_LOAD].ratio) : "",
                    loads && trains ? " and " : "",
                    trains ? dl2_text("trains %.3g times", speed->ratio[DL2_SPEED_TRAIN].ratio)
                           : "");
}

/* What is shown of the recommended variant on the original's validation images. */
static const char *on_original_text(const struct dl2_analysis *analysis, size_t v)
{
    const struct dl2_comparison *other = analysis->on_original ? &analysis->on_original[v] : NULL;
    if (!other || other->verdict == DL2_VERDICT_NONE)
        return "";
    return other->verdict == DL2_VERDICT_WITHIN ? ", on its own images and on the original's"
           : other->verdict == DL2_VERDICT_BEYOND
               ? dl2_accuracy_words(analysis->kind, ", on its own images; on the original's it is "
                                                    "shown to lose more")
               : ", on its own images; on the original's that is not shown";
}

static const char *use_text(const struct view *view)
{
    const struct dl2_study *study = view->study;
    const struct dl2_analysis *analysis = view->analysis;
    const struct dl2_advice *advice = &analysis->smallest;
    const size_t none = study->variant_count, sure = advice->sure;
    const char *points = dl2_tolerance_text(analysis), *text = advice->text;
    if (sure < none) {
        const char *speed = speed_text(view, sure);
        text = dl2_text(
            dl2_accuracy_words(
                analysis->kind,
                "Use %s: %s, and the smallest that is shown to lose less than %s of %s%s%s%s"),
            study->variants[sure].name, dl2_size_text(study, sure), points, analysis->kind->title,
            on_original_text(analysis, sure), *speed ? "; it " : "", speed);
    } else if (advice->likely < none) {
        text = dl2_text(dl2_accuracy_words(analysis->kind,
                                           "Keep the original: no smaller variant is shown to "
                                           "lose less than %s of %s"),
                        points, analysis->kind->title);
    }
    const char *end = sure < none || advice->likely < none ? "." : "";
    for (size_t v = 0; v < none; v++)
        if (v != sure && *speed_text(view, v)) {
            text = dl2_text("%s%s %s, which is within, %s", text, *end ? ";" : "",
                            study->variants[v].name, speed_text(view, v));
            end = ".";
        }
    return dl2_text("%s%s", text, end);
}

/* ---- What is open */

static const char *open_text(const struct view *view, size_t *open_count)
{
    const struct dl2_study *study = view->study;
    const size_t none = study->variant_count;
    DL2_AUTO_FREE size_t *open = dl2_room(none + 1, sizeof *open, "variants");
    struct dl2_study_size needed;
    size_t count = pick(view, open, 0, none, view->analysis->smallest.likely);
    count = fill_up(view, open, count, none, true);
    *open_count = count;
    if (!count)
        return "Nothing is open.";
    const char *reasons[] = {dl2_blocks_text(study, view->analysis, open[0]),
                             dl2_settle_text(study, view->analysis, open[0], &needed)};
    const char *text = dl2_text("Open: %s.", study->variants[open[0]].name);
    for (size_t i = 0; i < 2; i++)
        text = dl2_text("%s%s%s", text, *reasons[i] ? " " : "", reasons[i]);
    const size_t named = count <= MOST_NAMES + 1 ? count : MOST_NAMES;
    for (size_t i = 1; i < named; i++)
        text = dl2_text("%s%s%s", text, i == 1 ? " Also open: " : dl2_joint(i - 1, count - 1),
                        study->variants[open[i]].name);
    if (count > named)
        text = dl2_text("%s and %zu more", text, count - named);
    return count > 1 ? dl2_text("%s.", text) : text;
}

struct dl2_brief dl2_brief_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                                const struct dl2_speeds *speeds)
{
    const struct view view = {study, analysis, speeds, dl2_study_find(study, "raw")};
    struct dl2_brief brief = {.use = analysis->smallest.text};
    if (view.raw == study->variant_count)
        return brief;
    make_table(&view, &brief);
    brief.use = use_text(&view);
    brief.open = brief.line_count ? open_text(&view, &brief.open_count) : NULL;
    return brief;
}
