/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/advice.h"

#include "common/json.h"
#include "common/stats.h"
#include "report/sentence.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Numbers */

const char *dl2_number(const char *format, ...)
{
    char text[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return dl2_text_copy(text);
}

const char *dl2_signed_digits(double value, int digits)
{
    const double scale = pow(10, digits), rounded = round(scale * value) / scale;
    return dl2_number("%s%.*f", rounded > 0 ? "+" : rounded < 0 ? "−" : "", digits, fabs(rounded));
}

const char *dl2_signed(double value)
{
    return dl2_signed_digits(value, 1);
}

const char *dl2_interval(double middle, double half, int digits)
{
    return dl2_text("%s to %s", dl2_signed_digits(middle - half, digits),
                    dl2_signed_digits(middle + half, digits));
}

const char *dl2_count_points(double points)
{
    return dl2_number("%g point%s", points, points == 1 ? "" : "s");
}

/* ---- How accuracy changes */

const char *dl2_change_text(const struct dl2_comparison *comparison)
{
    const double difference = comparison->difference, half = dl2_comparison_half(comparison);
    const char *alone = comparison->images ? "" : ", of training alone";
    if (!isfinite(half))
        return dl2_text("changes by %s points (one training each gives no interval)",
                        dl2_signed(difference));
    if (difference - half > 0 || difference + half < 0)
        return dl2_text("%s %.1f points (95%% interval %.1f to %.1f%s)",
                        difference > 0 ? "gains" : "loses", fabs(difference),
                        fabs(difference) - half, fabs(difference) + half, alone);
    return dl2_text("changes by %s points (95%% interval %s%s)", dl2_signed(difference),
                    dl2_interval(difference, half, 1), alone);
}

const char *dl2_changes_text(const struct dl2_analysis *analysis, size_t variant)
{
    const struct dl2_comparison *own = &analysis->comparisons[variant];
    const struct dl2_comparison *other =
        analysis->on_original ? &analysis->on_original[variant] : NULL;
    const char *text = dl2_change_text(own);
    if (!other || other->verdict == DL2_VERDICT_NONE)
        return text;
    const char *of_other = dl2_change_text(other);
    if (other->verdict == own->verdict)
        return strcmp(text, of_other) == 0
                   ? dl2_text("%s, on its own images and on the original's", text)
                   : dl2_text("%s; validated on the original's images it %s", text, of_other);
    return dl2_text("%s; validated on the original's images, where it %s %s, it %s", text,
                    other->verdict == DL2_VERDICT_WITHIN   ? "is shown to lose less than"
                    : other->verdict == DL2_VERDICT_BEYOND ? "is shown to lose more than"
                                                           : "is not shown to lose less than",
                    dl2_count_points(analysis->question.tolerance), of_other);
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
                    dl2_change_text(&analysis->comparisons[control]));
}

/* ---- Why a variant is not claimed */

const char *dl2_blocks_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    const struct dl2_comparison *blocker = &analysis->comparisons[comparison->blocker];
    if (comparison->blocker != v)
        return dl2_text("A codec's files are tested from the largest to the smallest, and %s is "
                        "not shown%s.",
                        study->variants[comparison->blocker].name,
                        isfinite(blocker->bound)
                            ? dl2_text(": its bound is %s points", dl2_signed(blocker->bound))
                            : "");
    if (isfinite(comparison->bound) &&
        comparison->difference - dl2_comparison_half(comparison) >= -analysis->question.tolerance)
        return dl2_text("Its own interval is within, but its bound as one of several claims, with "
                        "an error of %.2g%%, is %s points.",
                        100 * comparison->level, dl2_signed(comparison->bound));
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
        .image_variance = comparison->images ? comparison->both.added : 0,
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
    if (comparison->images && isfinite(half) && half > 0) {
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
static const char *distance_text(double margin)
{
    const char *points = dl2_number("%.2g", fabs(margin));
    return dl2_text("%s point%s %s the limit", points, strcmp(points, "1") == 0 ? "" : "s",
                    margin < 0 ? "beyond" : "from");
}

const char *dl2_outlook_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t variant)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[variant];
    const struct dl2_outlook outlook = dl2_outlook_find(study, analysis, variant);
    if (!is_open(comparison))
        return "";
    const char *text = dl2_text("%s %s, %s.", study->variants[variant].name,
                                dl2_change_text(comparison), distance_text(outlook.margin));
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

/* How large a study would show a variant, with all that has to be shown before it. */
static void say_what_would_tell(struct dl2_sentence *writer, const struct dl2_study *study,
                                struct dl2_analysis *analysis, size_t v)
{
    struct dl2_prospects prospects;
    if (!gather_prospects(study, analysis, v, &prospects)) {
        dl2_say(writer, analysis->seeds < 2
                            ? " Train from several seeds to tell chance from effect."
                            : " How many seeds would show it can't be told from so few: train from "
                              "at least four.");
        return;
    }
    analysis->needed = dl2_study_size_needed(&prospects);
    if (analysis->needed.few) {
        dl2_say(writer,
                " A new study of %s would show it " LIKELY
                ", which allows for a true change that differs from the measured one.",
                size_of_study(&analysis->needed, analysis->comparisons[v].images));
        return;
    }
    const size_t blocker = analysis->comparisons[v].blocker;
    dl2_say(
        writer,
        " A new study of %s would show %s with a probability of only %.0f%%: %s was measured "
        "%s.",
        largest_study(prospects.units), blocker == v ? "it" : "both",
        100 * largest_chance(&prospects), study->variants[blocker].name,
        distance_text(analysis->comparisons[blocker].difference + analysis->question.tolerance));
}

/* ---- The recommendation */

static void say_gain(struct dl2_sentence *writer, const struct dl2_study *study,
                     const struct dl2_analysis *analysis, size_t v)
{
    dl2_say(writer, "it %s. It has %.3g%% of the original's bytes: %s.",
            dl2_changes_text(analysis, v), 100 * study->variants[v].ratio, dl2_size_text(study, v));
}

static void say(struct dl2_sentence *writer, const char *text)
{
    dl2_say(writer, "%s%s", *text ? " " : "", text);
}

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
        dl2_say(writer, "No variant that is smaller than the original was trained on.");
    else
        dl2_say(writer,
                "No smaller variant is shown to lose less than %s, and each %s: keep the "
                "original%s.",
                points,
                beyond == judged ? "one's own interval lies beyond that"
                                 : "was measured beyond that",
                beyond == judged ? "" : ", or train from more seeds to be sure");
}

void dl2_advise(const struct dl2_study *study, struct dl2_analysis *analysis)
{
    struct dl2_advice *advice = &analysis->smallest;
    const size_t none = study->variant_count, raw = dl2_study_find(study, "raw");
    struct dl2_sentence writer = {advice->text, sizeof advice->text, 0};
    advice->text[0] = advice->gain[0] = '\0';
    advice->sure = advice->likely = none;
    if (raw == none || analysis->comparisons[raw].accuracy.count == 0) {
        dl2_say(&writer, "The original was not trained on, so nothing can be said of accuracy.");
        return;
    }
    if (isnan(study->variants[raw].bytes)) {
        dl2_say(&writer, "The sizes are not known.");
        return;
    }
    const char *points = dl2_count_points(analysis->question.tolerance);
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
    if (advice->sure < none)
        dl2_say(&writer, "%s is the smallest variant shown to lose less than %s of %s: ",
                study->variants[pick].name, points, dl2_study_accuracy(study)->title);
    else
        dl2_say(&writer,
                "No smaller variant is shown to lose less than %s of %s. %s is the "
                "smallest that may: ",
                points, dl2_study_accuracy(study)->title, study->variants[pick].name);
    say_gain(&writer, study, analysis, pick);
    say(&writer, dl2_control_text(study, analysis, pick));
    if (advice->sure < none && advice->likely < none) {
        dl2_say(&writer, " %s may lose less, too: ", study->variants[advice->likely].name);
        say_gain(&writer, study, analysis, advice->likely);
    }
    if (advice->likely < none) {
        say(&writer, dl2_blocks_text(study, analysis, advice->likely));
        say_what_would_tell(&writer, study, analysis, advice->likely);
    }
}
