/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/advice.h"

#include "common/json.h"
#include "common/stats.h"
#include "report/sentence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- How accuracy changes */

const char *dl2_tolerance_text(const struct dl2_analysis *analysis)
{
    const char *amount = dl2_count_points(analysis->kind, analysis->question.tolerance);
    return analysis->question.percent > 0
               ? dl2_text("%g%% (%s)", analysis->question.percent,
                          dl2_count_points(
                              analysis->kind,
                              strtod(dl2_number("%.3g", analysis->question.tolerance), NULL)))
               : amount;
}

const char *dl2_change_text(const struct dl2_accuracy_kind *kind,
                            const struct dl2_comparison *comparison)
{
    const double difference = comparison->difference, half = dl2_comparison_half(comparison);
    const char *alone = dl2_counts_images(comparison) ? "" : ", of training alone";
    if (!isfinite(half))
        return dl2_text(
            dl2_accuracy_words(kind, "changes by %s points (too few trainings for an interval)"),
            dl2_signed(kind, difference));
    if (difference - half > 0 || difference + half < 0)
        return dl2_text(
            dl2_accuracy_words(kind, difference > 0
                                         ? "gains %.1f points (95%% interval %.1f to %.1f%s)"
                                         : "loses %.1f points (95%% interval %.1f to %.1f%s)"),
            fabs(difference), fabs(difference) - half, fabs(difference) + half, alone);
    return dl2_text(dl2_accuracy_words(kind, "changes by %s points (95%% interval %s%s)"),
                    dl2_signed(kind, difference), dl2_interval(kind, difference, half), alone);
}

const char *dl2_changes_text(const struct dl2_analysis *analysis, size_t variant)
{
    const struct dl2_comparison *own = &analysis->comparisons[variant];
    const struct dl2_comparison *other =
        analysis->on_original ? &analysis->on_original[variant] : NULL;
    const char *text = dl2_change_text(analysis->kind, own);
    if (!other || other->verdict == DL2_VERDICT_NONE)
        return text;
    const char *of_other = dl2_change_text(analysis->kind, other);
    if (other->verdict == own->verdict)
        return strcmp(text, of_other) == 0
                   ? dl2_text("%s, on its own images and on the original's", text)
                   : dl2_text("%s; validated on the original's images it %s", text, of_other);
    const char *shown = other->verdict == DL2_VERDICT_WITHIN   ? "is shown to lose less than"
                        : other->verdict == DL2_VERDICT_BEYOND ? "is shown to lose more than"
                                                               : "is not shown to lose less than";
    return dl2_text("%s; validated on the original's images, where it %s %s, it %s", text,
                    dl2_accuracy_words(analysis->kind, shown), dl2_tolerance_text(analysis),
                    of_other);
}

/* ---- How much smaller it is, and than what */

static bool is_smaller(const struct dl2_study *study, size_t v, size_t than)
{
    return study->variants[v].bytes < study->variants[than].bytes;
}

/* Bits per pixel from which images are hardly compressed: no lossy encoder is run at so many. */
#define HARDLY_COMPRESSED 6.0

/* How often a study of the size that is named shows the variant: 80% is aimed at, and this is what
 * `simulate told` finds (docs/analysis.md). */
#define LIKELY "with a probability of 65 to 90%%, by simulation"

/* What dl2-quality recorded of the original's files. */
struct originals {
    long long lossy;    /* of a codec that may lose something; -1: not recorded */
    long long known;    /* JPEGs of known quality */
    json_int_t all;     /* 0: not recorded */
    const char *format; /* of most of them; NULL: not recorded */
    double quality;     /* the median of the known ones */
};

static struct originals find_originals(const struct dl2_study *study)
{
    const json_t *files = json_object_get(study->quality, "reference_files");
    struct originals originals = {dl2_json_get_integer(files, "lossy", -1),
                                  dl2_json_get_integer(files, "of_known_quality", 0), 0, NULL,
                                  dl2_json_get_real(files, "median_quality", NAN)};
    const char *name;
    json_t *count;
    json_int_t most = 0;
    json_object_foreach(json_object_get(files, "formats"), name, count)
    {
        originals.all += json_integer_value(count);
        if (json_integer_value(count) <= most)
            continue;
        most = json_integer_value(count);
        originals.format = name;
    }
    return originals;
}

bool dl2_is_hardly_compressed(const struct dl2_study *study)
{
    const size_t raw = dl2_study_find(study, "raw");
    const struct originals originals = find_originals(study);
    if (dl2_study_has_volumes(study))
        return false;
    return originals.lossy >= 0 ? originals.lossy == 0 || 2 * originals.lossy <= originals.all
                                : raw < study->variant_count &&
                                      study->variants[raw].bits_per_pixel > HARDLY_COMPRESSED;
}

const char *dl2_original_text(const struct dl2_study *study)
{
    const struct originals originals = find_originals(study);
    const char *format = originals.format;
    if (dl2_is_hardly_compressed(study))
        return originals.lossy < 0 ? "hardly compressed files"
                                   : dl2_text("%s%s without loss", originals.lossy ? "mostly " : "",
                                              format ? format : "files");
    if (isfinite(originals.quality) && 2 * originals.known > originals.all)
        return dl2_text("%sJPEG of quality %.0f in the median",
                        originals.known < originals.all ? "mostly " : "", originals.quality);
    return format && originals.lossy == originals.all ? dl2_text("%s with loss", format) : NULL;
}

/* The largest variant with a quality of the original's resolution: what one would have had without
 * much thought. */
static size_t find_usual(const struct dl2_study *study)
{
    size_t usual = study->variant_count;
    for (size_t v = 0; v < study->variant_count; v++)
        if (study->variants[v].quality && !strchr(study->variants[v].codec, '@') &&
            isfinite(study->variants[v].bytes) &&
            (usual == study->variant_count || is_smaller(study, usual, v)))
            usual = v;
    return usual;
}

const char *dl2_size_text(const struct dl2_study *study, size_t v)
{
    const struct dl2_study_variant *variant = &study->variants[v];
    const char *original = dl2_original_text(study);
    const char *text = dl2_text("%.3g times smaller%s%s", 1 / variant->ratio,
                                original ? " than " : "", original ? original : "");
    const size_t usual = dl2_is_hardly_compressed(study) ? find_usual(study) : study->variant_count;
    if (usual == study->variant_count || !is_smaller(study, v, usual))
        return text;
    return dl2_text("%s, %.3g times smaller than %s", text,
                    study->variants[usual].bytes / variant->bytes, study->variants[usual].name);
}

/* The variant of v's resolution that lost nothing but that: png@48 of jpeg-75@48. variant_count:
 * none was trained on, or v is not resized. */
static size_t control_of(const struct dl2_study *study, const struct dl2_analysis *analysis,
                         size_t v)
{
    const char *at = strchr(study->variants[v].codec, '@');
    const char *codec = at ? dl2_text("png%s", at) : "";
    for (size_t i = 0; i < study->variant_count; i++)
        if (i != v && strcmp(study->variants[i].codec, codec) == 0 &&
            analysis->comparisons[i].verdict != DL2_VERDICT_NONE)
            return i;
    return study->variant_count;
}

const char *dl2_control_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t v)
{
    const size_t control = control_of(study, analysis, v);
    if (control == study->variant_count)
        return "";
    return dl2_text("For comparison, %s, the same resolution without loss, %s.",
                    study->variants[control].name,
                    dl2_change_text(analysis->kind, &analysis->comparisons[control]));
}

/* ---- Why a variant is not claimed */

const char *dl2_blocks_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    const struct dl2_comparison *blocker = &analysis->comparisons[comparison->blocker];
    if (comparison->blocker != v)
        return dl2_text(
            "A codec's files are tested from the largest to the smallest, and %s is "
            "not shown%s.",
            study->variants[comparison->blocker].name,
            isfinite(blocker->bound)
                ? dl2_text(dl2_accuracy_words(analysis->kind, ": its bound is %s points"),
                           dl2_signed(analysis->kind, blocker->bound))
                : "");
    if (isfinite(comparison->bound) &&
        comparison->difference - dl2_comparison_half(comparison) >= -analysis->question.tolerance)
        return dl2_text(
            dl2_accuracy_words(analysis->kind,
                               "Its own interval is within, but its bound as one of several "
                               "claims, with an error of %.2g%%, is %s points."),
            100 * comparison->level, dl2_signed(analysis->kind, comparison->bound));
    return "";
}

/* ---- What would settle it */

/* A variance from one degree of freedom may be off by a factor of hundreds: no ground for a plan.
 */
enum { LEAST_FREEDOM = 2 };

/* Codecs of which not all is claimed, and those that are not here but keep their part. */
static size_t open_codecs(const struct dl2_study *study, const struct dl2_analysis *analysis)
{
    size_t here = 0, open = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        if (!dl2_study_starts_codec(study, v))
            continue;
        size_t claimed = 0, all = 0;
        for (size_t w = v; w < dl2_study_end_of_codec(study, v); w++) {
            all += analysis->comparisons[w].verdict != DL2_VERDICT_NONE;
            claimed += analysis->comparisons[w].verdict == DL2_VERDICT_WITHIN;
        }
        here += all > 0;
        open += claimed < all;
    }
    open += analysis->codecs > here ? analysis->codecs - here : 0;
    return open ? open : 1;
}

static bool is_open(const struct dl2_comparison *comparison)
{
    return comparison->verdict == DL2_VERDICT_LIKELY || comparison->verdict == DL2_VERDICT_UNLIKELY;
}

/* No tests yet. A new study's first look; codecs that are done here would leave it their parts. */
static struct dl2_prospects begin_prospects(const struct dl2_study *study,
                                            const struct dl2_analysis *analysis, size_t variant)
{
    const struct dl2_looks look = {1, {0}, {dl2_look_unplanned(0)}};
    const struct dl2_comparison *comparison = &analysis->comparisons[variant];
    struct dl2_prospects prospects = {
        .level = dl2_look_level(&look, 0, open_codecs(study, analysis) * dl2_networks_of(analysis)),
        .noise = analysis->noise,
        .units = comparison->units,
        .seeds = comparison->pairs,
    };
    /* A study of one variant has no other trainings than the pairs', however many seeds it has. */
    prospects.noise.freedom = analysis->noise.freedom + 1 > analysis->seeds ? SIZE_MAX : 0;
    return prospects;
}

/* False if the study says too little of its noise. */
static bool add_prospect(const struct dl2_analysis *analysis, size_t v,
                         struct dl2_prospects *prospects)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    if (!comparison->pairs || analysis->noise.freedom < LEAST_FREEDOM ||
        prospects->count == DL2_MAX_BLOCKERS)
        return false;
    /* To plan by: the noise of all variants together, of which most is known. */
    prospects->tests[prospects->count++] = (struct dl2_prospect){
        .margin = analysis->question.tolerance + comparison->difference,
        .seed_variance = 2 * analysis->noise.deviation * analysis->noise.deviation,
        .seed_freedom = (double)analysis->noise.freedom,
        .image_variance = dl2_counts_images(comparison) ? comparison->both.added : 0,
    };
    return true;
}

/* All claims that showing a variant takes: those of its codec from the first that is open. */
static bool gather_prospects(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t wanted, struct dl2_prospects *prospects)
{
    *prospects = begin_prospects(study, analysis, wanted);
    for (size_t v = 0; v < study->variant_count; v++)
        if (strcmp(study->variants[v].codec, study->variants[wanted].codec) == 0 &&
            analysis->comparisons[v].verdict != DL2_VERDICT_NONE &&
            analysis->comparisons[v].verdict != DL2_VERDICT_WITHIN &&
            !is_smaller(study, v, wanted) && !add_prospect(analysis, v, prospects))
            return false;
    return prospects->count > 0;
}

/* The probability of the largest study that is thought of. */
static double largest_chance(const struct dl2_prospects *prospects)
{
    return dl2_power(prospects, DL2_MAX_SEEDS_NEEDED, DL2_MAX_TIMES_IMAGES);
}

struct dl2_outlook dl2_outlook_find(const struct dl2_study *study,
                                    const struct dl2_analysis *analysis, size_t variant)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[variant];
    struct dl2_outlook outlook = {
        comparison->difference + analysis->question.tolerance, NAN, {0, 0, 1}, NAN};
    if (!is_open(comparison))
        return outlook;
    const struct dl2_spread *both = &comparison->both;
    const double half = dl2_spread_half(both, DL2_CLAIMS_LEVEL);
    if (dl2_counts_images(comparison) && isfinite(half) && half > 0) {
        const double images = dl2_student_quantile(DL2_CLAIMS_LEVEL, both->added_freedom);
        outlook.of_images = images * images * both->added / (half * half);
    }
    struct dl2_prospects prospects = begin_prospects(study, analysis, variant);
    if (!add_prospect(analysis, variant, &prospects))
        return outlook;
    outlook.needed = dl2_study_size_needed(&prospects);
    outlook.chance = largest_chance(&prospects);
    return outlook;
}

/* To two digits. */
static double round_up(double count)
{
    const double step = pow(10, floor(log10(count)) - 1);
    return step * ceil(count / step);
}

/* "4 to 6 seeds and about 5200 validation images" */
static const char *size_of_study(const struct dl2_study_size *size, size_t images)
{
    const char *text = dl2_text("%zu", size->few);
    if (size->many > size->few)
        text = dl2_text("%s to %zu", text, size->many);
    text = dl2_text("%s seeds", text);
    return size->times_images > 1 ? dl2_text("%s and about %.0f validation images", text,
                                             round_up(size->times_images * (double)images))
                                  : text;
}

/* The largest that is thought of, of a study with so many images or groups; 0: they don't count. */
static const char *largest_study(size_t units)
{
    return dl2_text("%d seeds%s", DL2_MAX_SEEDS_NEEDED,
                    units ? dl2_text(" and %d times the validation images", DL2_MAX_TIMES_IMAGES)
                          : "");
}

/* "0.6 points from the limit" */
static const char *distance_text(const struct dl2_accuracy_kind *kind, double margin)
{
    return dl2_text("%s %s the limit",
                    dl2_count_points(kind, strtod(dl2_number("%.2g", fabs(margin)), NULL)),
                    margin < 0 ? "beyond" : "from");
}

static const char *join(const char *text, const char *more)
{
    return dl2_text("%s%s%s", text, *text && *more ? " " : "", more);
}

/* How many images would show that a network loses less than the tolerance as it is, if what was
 * measured holds, and no larger file of the codec is open; or how many times those that there are.
 */
static const char *images_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                               size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    const double margin = comparison->difference + analysis->question.tolerance;
    const struct dl2_looks look = {1, {0}, {dl2_look_unplanned(0)}};
    const double level =
        dl2_look_level(&look, 0, open_codecs(study, analysis) * dl2_networks_of(analysis));
    const double errors =
        dl2_student_quantile(level, INFINITY) + dl2_student_quantile(0.2, INFINITY);
    const double times = errors * errors * comparison->both.added / (margin * margin);
    if (!dl2_counts_images(comparison))
        return "Outcomes of images, or resamples of them, would tell how sure that is.";
    if (!(margin > 0) || !(times > 0))
        return "";
    if (!comparison->images)
        return dl2_text("A new study of %.2g times as many images would show it with a "
                        "probability of 80%%, if the true change is the measured one.",
                        times);
    return dl2_text("A new study of about %.0f images would show it with a probability of 80%%, if "
                    "the true change is the measured one.",
                    round_up(fmax(10, times * (double)comparison->images)));
}

const char *dl2_outlook_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t variant)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[variant];
    const struct dl2_outlook outlook = dl2_outlook_find(study, analysis, variant);
    if (!is_open(comparison))
        return "";
    const char *text = dl2_text("%s %s, %s.", study->variants[variant].name,
                                dl2_change_text(analysis->kind, comparison),
                                distance_text(analysis->kind, outlook.margin));
    if (analysis->kind->is_as_it_is)
        return join(text, images_text(study, analysis, variant));
    if (outlook.of_images > 0.5)
        text = dl2_text("%s Most of the interval's width is from the choice of images (%.0f%% of "
                        "its square): more seeds hardly narrow it.",
                        text, 100 * outlook.of_images);
    else if (isfinite(outlook.of_images))
        text = dl2_text("%s Most of the interval's width is from the chance of training (%.0f%% of "
                        "its square): more seeds narrow it.",
                        text, 100 * (1 - outlook.of_images));
    if (outlook.needed.few)
        text = dl2_text("%s A new study of %s would show it " LIKELY ".", text,
                        size_of_study(&outlook.needed, comparison->images));
    else if (isfinite(outlook.chance))
        text = dl2_text("%s A new study of %s would show it with a probability of only %.0f%%.",
                        text, largest_study(comparison->units), 100 * outlook.chance);
    else
        text = dl2_text("%s Train from at least four seeds to tell chance from effect.", text);
    if (comparison->blocker != variant)
        text = dl2_text("%s %s has to be shown first, or left out of a new study.", text,
                        study->variants[comparison->blocker].name);
    return text;
}

const char *dl2_settle_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            size_t v, struct dl2_study_size *needed)
{
    struct dl2_prospects prospects;
    *needed = (struct dl2_study_size){0, 0, 1};
    if (analysis->kind->is_as_it_is)
        return images_text(study, analysis, v);
    if (!gather_prospects(study, analysis, v, &prospects))
        return analysis->seeds < 2
                   ? "Train from several seeds to tell chance from effect."
                   : "How many seeds would show it can't be told from so few: train from at least "
                     "four.";
    *needed = dl2_study_size_needed(&prospects);
    if (needed->few)
        return dl2_text("A new study of %s would show it " LIKELY ".",
                        size_of_study(needed, analysis->comparisons[v].images));
    const size_t blocker = analysis->comparisons[v].blocker;
    return dl2_text(
        "A new study of %s would show %s with a probability of only %.0f%%: %s was measured %s.",
        largest_study(prospects.units), blocker == v ? "it" : "both",
        100 * largest_chance(&prospects), study->variants[blocker].name,
        distance_text(analysis->kind,
                      analysis->comparisons[blocker].difference + analysis->question.tolerance));
}

/* ---- The recommendation */

/* The smallest of those with that verdict; of none, variant_count. */
static size_t smallest_variant(const struct dl2_study *study, const struct dl2_analysis *analysis,
                               size_t raw, enum dl2_verdict verdict)
{
    size_t found = study->variant_count;
    for (size_t v = 0; v < study->variant_count; v++)
        if (v != raw && analysis->comparisons[v].verdict == verdict && is_smaller(study, v, raw) &&
            (found == study->variant_count || is_smaller(study, v, found)))
            found = v;
    return found;
}

/* Why there is nothing to recommend. */
static void say_none(struct dl2_sentence *writer, const struct dl2_study *study,
                     const struct dl2_analysis *analysis, size_t raw, const char *points)
{
    size_t gains = 0, judged = 0, beyond = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const enum dl2_verdict verdict = analysis->comparisons[v].verdict;
        if (v == raw || !is_smaller(study, v, raw))
            continue;
        gains++;
        judged += verdict != DL2_VERDICT_NONE;
        beyond += verdict == DL2_VERDICT_BEYOND;
    }
    if (gains == 0)
        dl2_say(writer, "No variant is smaller than the original.");
    else if (judged == 0)
        dl2_say(writer, "%s",
                dl2_accuracy_words(analysis->kind,
                                   "No variant that is smaller than the original was trained on."));
    else
        dl2_say(writer,
                dl2_accuracy_words(analysis->kind,
                                   "No smaller variant is shown to lose less than %s, and each "
                                   "%s: keep the original%s."),
                points,
                beyond == judged ? "one's own interval lies beyond that"
                                 : "was measured beyond that",
                beyond == judged
                    ? ""
                    : dl2_accuracy_words(analysis->kind, ", or train from more seeds to be sure"));
}

void dl2_advise(const struct dl2_study *study, struct dl2_analysis *analysis)
{
    struct dl2_advice *advice = &analysis->smallest;
    const size_t none = study->variant_count, raw = dl2_study_find(study, "raw");
    struct dl2_sentence writer = {advice->text, sizeof advice->text, 0};
    advice->text[0] = advice->gain[0] = '\0';
    advice->sure = advice->likely = none;
    if (raw == none || analysis->comparisons[raw].accuracy.count == 0) {
        dl2_say(&writer, "%s",
                dl2_accuracy_words(analysis->kind, "The original was not trained on, so nothing "
                                                   "can be said of accuracy."));
        return;
    }
    if (isnan(study->variants[raw].bytes)) {
        dl2_say(&writer, "The sizes are not known.");
        return;
    }
    const char *points = dl2_tolerance_text(analysis);
    advice->sure = smallest_variant(study, analysis, raw, DL2_VERDICT_WITHIN);
    advice->likely = smallest_variant(study, analysis, raw, DL2_VERDICT_LIKELY);
    if (advice->sure < none && advice->likely < none &&
        !is_smaller(study, advice->likely, advice->sure))
        advice->likely = none;
    const size_t pick = dl2_advice_pick(advice, study);
    if (pick == none) {
        say_none(&writer, study, analysis, raw, points);
        return;
    }
    snprintf(advice->gain, sizeof advice->gain, "%.3g times smaller",
             1 / study->variants[pick].ratio);
    if (advice->likely < none)
        dl2_settle_text(study, analysis, advice->likely, &analysis->needed);
}
