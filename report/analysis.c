/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/analysis.h"

#include "common/scope.h"
#include "common/stats.h"
#include "report/differences.h"
#include "report/sentence.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t dl2_advice_pick(const struct dl2_advice *advice, const struct dl2_study *study)
{
    return advice->sure < study->variant_count ? advice->sure : advice->likely;
}

const char *dl2_verdict_text(enum dl2_verdict verdict)
{
    static const char *const texts[] = {"", "within", "could be", "looks worse", "worse"};
    return texts[verdict];
}

double dl2_comparison_half(const struct dl2_comparison *comparison)
{
    return comparison->images ? comparison->half_both : comparison->half;
}

double dl2_comparison_single(const struct dl2_comparison *comparison)
{
    /* A mean of as many pairs, and one pair more. */
    return dl2_spread_half(&comparison->training, 0.025) * sqrt(1 + (double)comparison->pairs);
}

static struct dl2_estimate estimate(struct dl2_runs runs, size_t field, bool on_original,
                                    double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const double value = *(const double *)((const char *)&runs.at[i] + field);
        if (isfinite(value) && (runs.at[i].on_original || !on_original))
            scratch[count++] = 100 * value;
    }
    return dl2_estimate_mean(scratch, count);
}

/* ---- Differences */

/* A network's trainings: runs[variant * seeds + seed], NULL where there is none. */
struct block {
    const struct dl2_study *study;
    const struct dl2_prediction_table *images; /* of the network; NULL: no predictions */
    bool on_original;
    size_t raw;   /* the original */
    size_t seeds; /* the original's */
    const struct dl2_study_run **runs;
    double *accuracies; /* [variants][seeds] */
};

static const struct dl2_study_run *run_at(const struct block *block, size_t variant, size_t seed)
{
    return block->runs[variant * block->seeds + seed];
}

static double accuracy_of(const struct block *block, const struct dl2_study_run *run)
{
    if (!block->on_original || run->variant == block->raw)
        return run->accuracy;
    return run->on_original ? run->original_accuracy : NAN;
}

static const uint8_t *correct_of(const struct block *block, const struct dl2_study_run *run)
{
    return block->on_original && run->variant != block->raw ? run->original_correct : run->correct;
}

/* Equal to the original's in every seed: of the same pixels, so it says nothing of chance. */
static bool is_repetition(const struct block *block, size_t variant, size_t seeds)
{
    size_t pairs = 0;
    for (size_t s = 0; s < seeds; s++) {
        const struct dl2_study_run *own = run_at(block, variant, s);
        const struct dl2_study_run *original = run_at(block, block->raw, s);
        if (!own || !original)
            continue;
        const uint8_t *correct = correct_of(block, own);
        if (accuracy_of(block, own) != original->accuracy ||
            (correct && original->correct && memcmp(correct, original->correct, own->images) != 0))
            return false;
        pairs++;
    }
    return pairs && variant != block->raw;
}

/* The noise of a training from the first `seeds` seeds. */
static struct dl2_noise estimate_noise(const struct block *block, size_t seeds)
{
    size_t rows = 0;
    for (size_t v = 0; v < block->study->variant_count; v++) {
        if (is_repetition(block, v, seeds))
            continue;
        for (size_t s = 0; s < seeds; s++) {
            const struct dl2_study_run *run = run_at(block, v, s);
            block->accuracies[rows * seeds + s] = run ? 100 * accuracy_of(block, run) : NAN;
        }
        rows++;
    }
    return dl2_noise_estimate(block->accuracies, rows, seeds);
}

/* The bootstrap's interval of a table of differences. */
static void draw_interval(const struct dl2_differences *table, size_t draws,
                          struct dl2_comparison *comparison)
{
    const struct dl2_groups groups = {table->of, table->of_count};
    DL2_AUTO_FREE double *means = dl2_room(draws, sizeof *means, "draws");
    dl2_pigeonhole(table->cells, table->seeds, table->images, table->of ? &groups : NULL, 0, means,
                   draws);
    dl2_middle_95(means, draws, &comparison->low, &comparison->high);
    comparison->low *= 100;
    comparison->high *= 100;
}

static void compare_images(const struct block *block, size_t variant, size_t seeds, size_t draws,
                           struct dl2_comparison *comparison)
{
    DL2_AUTO_FREE struct dl2_run_pair *pairs = dl2_room(seeds, sizeof *pairs, "trainings");
    size_t count = 0;
    for (size_t s = 0; s < seeds; s++) {
        const struct dl2_run_pair pair = {run_at(block, variant, s), run_at(block, block->raw, s)};
        if (pair.own && pair.original)
            pairs[count++] = pair;
    }
    DL2_CLEANUP(dl2_differences_free)
    struct dl2_differences table = dl2_differences_make(
        pairs, count, block->on_original ? DL2_MEASURE_ON_ORIGINAL : DL2_MEASURE_TOP1,
        block->images);
    if (!table.images)
        return;
    const struct dl2_mean_squares squares = dl2_differences_squares(&table);
    if (squares.units < 2)
        return;
    if (draws)
        draw_interval(&table, draws, comparison);
    comparison->difference = 100 * squares.mean;
    comparison->images = table.images;
    comparison->units = squares.units;
    const struct dl2_spread fractions = dl2_spread_scaled(&comparison->training, 0.01);
    const struct dl2_spread both = dl2_spread_of_both(&squares, &fractions);
    comparison->both = dl2_spread_scaled(&both, 100);
}

/* Welch's t-test, of all seeds. */
static void compare_unpaired(struct dl2_comparison *comparison, const struct dl2_estimate *original)
{
    const struct dl2_estimate *own = &comparison->accuracy;
    comparison->difference = own->mean - original->mean;
    if (own->count < 2 || original->count < 2)
        return;
    const double least = (double)(own->count < original->count ? own->count : original->count);
    const double own_error = own->half / dl2_student_quantile(0.025, (double)own->count - 1);
    const double original_error =
        original->half / dl2_student_quantile(0.025, (double)original->count - 1);
    comparison->training = (struct dl2_spread){
        .variance = own_error * own_error + original_error * original_error, .freedom = least - 1};
}

double dl2_interval_tail(const struct dl2_looks *looks, size_t pairs)
{
    size_t look = 0;
    while (look + 1 < looks->count && looks->seeds[look + 1] <= pairs)
        look++;
    return dl2_interval_level(looks, look);
}

/* Compares a variant with the original after the first `seeds` seeds. */
static void compare(const struct block *block, size_t variant, size_t seeds,
                    const struct dl2_analysis *analysis, double *scratch,
                    struct dl2_comparison *comparison)
{
    const size_t none = block->study->variant_count;
    const struct dl2_estimate *original =
        block->raw < none ? &analysis->comparisons[block->raw].accuracy : NULL;
    const size_t draws = seeds == block->seeds ? analysis->question.draws : 0;
    comparison->difference = comparison->half = comparison->half_both = NAN;
    comparison->low = comparison->high = NAN;
    comparison->training = comparison->both = (struct dl2_spread){.variance = INFINITY};
    comparison->pairs = comparison->images = comparison->units = 0;
    if (!original || variant == block->raw || !original->count || !comparison->accuracy.count)
        return;
    for (size_t s = 0; s < seeds; s++) {
        const struct dl2_study_run *own = run_at(block, variant, s);
        const struct dl2_study_run *raw = run_at(block, block->raw, s);
        if (own && raw)
            scratch[comparison->pairs++] = 100 * accuracy_of(block, own) - 100 * raw->accuracy;
    }
    if (!comparison->pairs)
        compare_unpaired(comparison, original);
    else {
        struct dl2_summary summary;
        dl2_summarize(scratch, comparison->pairs, &summary);
        comparison->difference = summary.mean;
        comparison->training = dl2_spread_of_pairs(summary.stddev * summary.stddev,
                                                   comparison->pairs, &analysis->noise);
        compare_images(block, variant, seeds, draws, comparison);
    }
    const double tail = dl2_interval_tail(&analysis->question.looks, comparison->pairs);
    comparison->half = dl2_spread_half(&comparison->training, tail);
    comparison->half_both = dl2_spread_half(&comparison->both, tail);
}

/* Compares all variants after the first `seeds` seeds. */
static void compare_all(const struct block *block, size_t seeds, struct dl2_analysis *analysis,
                        double *scratch)
{
    analysis->noise = estimate_noise(block, seeds);
    for (size_t v = 0; v < block->study->variant_count; v++)
        compare(block, v, seeds, analysis, scratch, &analysis->comparisons[v]);
}

/* ---- Claims */

static size_t networks_of(const struct dl2_analysis *analysis)
{
    return analysis->question.networks ? analysis->question.networks : 1;
}

/* The family: each variant that can be compared, with its codec. Sets analysis->codecs. */
static size_t gather_claims(const struct dl2_study *study, struct dl2_analysis *analysis,
                            struct dl2_study_claim *claims, size_t *variants)
{
    size_t count = 0;
    analysis->codecs = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        if (isnan(analysis->comparisons[v].difference))
            continue;
        const struct dl2_study_variant *variant = &study->variants[v];
        size_t codec = analysis->codecs;
        for (size_t i = 0; i < count; i++)
            if (strcmp(study->variants[variants[i]].codec, variant->codec) == 0)
                codec = claims[i].codec;
        analysis->codecs += codec == analysis->codecs;
        claims[count] = (struct dl2_study_claim){
            .codec = codec,
            .bytes = isfinite(variant->bytes) ? variant->bytes : variant->quality,
            .within = analysis->question.within && analysis->question.within[v],
        };
        variants[count++] = v;
    }
    if (analysis->codecs < analysis->question.codecs)
        analysis->codecs = analysis->question.codecs;
    return count;
}

static void judge(struct dl2_analysis *analysis, const struct dl2_study_claim *claims, size_t count,
                  const size_t *variants, const struct dl2_looks *looks)
{
    for (size_t i = 0; i < count; i++) {
        struct dl2_comparison *comparison = &analysis->comparisons[variants[i]];
        const struct dl2_study_claim *claim = &claims[i];
        comparison->verdict = claim->within   ? DL2_VERDICT_WITHIN
                              : claim->beyond ? DL2_VERDICT_BEYOND
                              : comparison->difference >= -analysis->question.tolerance
                                  ? DL2_VERDICT_LIKELY
                                  : DL2_VERDICT_UNLIKELY;
        comparison->level = claim->level;
        comparison->reached = looks->seeds[claim->reached];
        comparison->blocker = variants[claim->blocker];
        comparison->decided = claim->within || claim->beyond ? looks->seeds[claim->look] : 0;
    }
}

/* Makes the claims look by look, then shows what all trainings say. */
static void claim_all(const struct block *block, const struct dl2_looks *looks,
                      struct dl2_analysis *analysis, double *scratch)
{
    const size_t most = block->study->variant_count;
    const bool planned = looks->count > 1;
    DL2_AUTO_FREE struct dl2_study_claim *claims =
        dl2_room(most + 1, sizeof *claims, "%zu variants", most);
    DL2_AUTO_FREE size_t *variants = dl2_room(most + 1, sizeof *variants, "%zu variants", most);
    compare_all(block, block->seeds, analysis, scratch);
    const size_t count = gather_claims(block->study, analysis, claims, variants);
    for (size_t look = 0; look < looks->count; look++) {
        if (planned && looks->seeds[look] > block->seeds)
            break;
        if (planned)
            compare_all(block, looks->seeds[look], analysis, scratch);
        for (size_t i = 0; i < count; i++) {
            const struct dl2_comparison *comparison = &analysis->comparisons[variants[i]];
            claims[i].difference = comparison->difference;
            claims[i].spread = comparison->images ? comparison->both : comparison->training;
            /* Not trained as far as this look goes: it waits. */
            if (planned && comparison->pairs < looks->seeds[look])
                claims[i].spread = (struct dl2_spread){.variance = INFINITY};
        }
        dl2_claims_test(claims, count, analysis->codecs, networks_of(analysis),
                        analysis->question.tolerance, looks, look);
    }
    if (planned)
        compare_all(block, block->seeds, analysis, scratch);
    judge(analysis, claims, count, variants, looks);
}

static void compare_with_original(const struct dl2_study *study, struct dl2_runs raw,
                                  struct dl2_analysis *analysis, double *scratch)
{
    const size_t variants = study->variant_count;
    const size_t arch = dl2_study_find_arch(study, analysis->arch);
    const struct dl2_looks once = {1, {raw.count ? raw.count : 1}, {1}};
    const struct dl2_looks *looks = &analysis->question.looks;
    DL2_AUTO_FREE const struct dl2_study_run **runs =
        dl2_room(variants + 1, (raw.count + 1) * sizeof *runs, "%zu variants", variants);
    DL2_AUTO_FREE double *accuracies =
        dl2_room(variants + 1, (raw.count + 1) * sizeof *accuracies, "%zu variants", variants);
    const struct block block = {
        .study = study,
        .images = study->images && arch < study->arch_count ? &study->images[arch] : NULL,
        .on_original = analysis->question.on_original,
        .raw = dl2_study_find(study, "raw"),
        .seeds = raw.count,
        .runs = runs,
        .accuracies = accuracies};
    for (size_t v = 0; v < variants; v++)
        for (size_t s = 0; s < raw.count; s++) {
            const struct dl2_study_run *run =
                dl2_study_run_of(study, v, analysis->arch, raw.at[s].seed);
            runs[v * raw.count + s] = run && isfinite(accuracy_of(&block, run)) ? run : NULL;
        }
    claim_all(&block, looks->count ? looks : &once, analysis, scratch);
}

/* ---- Sentences */

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

/* "(95% interval of the change −1.1 to +1.9 points)": the interval that the verdict goes by. The
 * measured change itself is not told of a variant that was picked: the pick is easily the luckiest,
 * and so its estimate is too high. */
static void say_interval(struct dl2_sentence *writer, const struct dl2_comparison *comparison)
{
    const double difference = comparison->difference, half = dl2_comparison_half(comparison);
    if (isfinite(half))
        dl2_say(writer, "(95%% interval of the change %s points%s)",
                dl2_interval(difference, half, 1), comparison->images ? "" : ", of training alone");
    else
        dl2_say(writer, "(one training each gives no interval)");
}

static bool is_smaller(const struct dl2_study *study, size_t v, size_t than)
{
    return study->variants[v].bytes < study->variants[than].bytes;
}

/* Why a variant is not claimed. */
static void say_what_blocks(struct dl2_sentence *writer, const struct dl2_study *study,
                            const struct dl2_analysis *analysis, size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    const bool inside =
        comparison->difference - dl2_comparison_half(comparison) >= -analysis->question.tolerance;
    if (comparison->blocker != v)
        dl2_say(writer,
                " %s, a larger file of its codec, is not certain and has to be shown first.",
                study->variants[comparison->blocker].name);
    else if (inside)
        dl2_say(writer,
                " Its own interval is within, but not by enough for one of several claims.");
}

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

/* All claims that showing a variant takes: those of its codec from the first that is open. False if
 * the study says too little of its noise. */
static bool gather_prospects(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t wanted, struct dl2_prospects *prospects)
{
    /* A new study's first look. Codecs that are done here would leave it their parts. */
    const struct dl2_looks look = {1, {0}, {dl2_look_unplanned(0)}};
    *prospects = (struct dl2_prospects){
        .level = dl2_look_level(&look, 0, open_codecs(study, analysis) * networks_of(analysis)),
        .noise = analysis->noise,
        .units = analysis->comparisons[wanted].units,
    };
    /* A study of one variant has no other trainings than the pairs', however many seeds it has. */
    prospects->noise.freedom = analysis->noise.freedom + 1 > analysis->seeds ? SIZE_MAX : 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &analysis->comparisons[v];
        if (strcmp(study->variants[v].codec, study->variants[wanted].codec) != 0 ||
            comparison->verdict == DL2_VERDICT_NONE || comparison->verdict == DL2_VERDICT_WITHIN ||
            is_smaller(study, v, wanted))
            continue;
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
    }
    return prospects->count > 0;
}

/* To two digits. */
static double round_up(double count)
{
    const double step = pow(10, floor(log10(count)) - 1);
    return step * ceil(count / step);
}

/* How large a study would show it, if what was measured is true. */
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
    const struct dl2_study_size *needed = &analysis->needed;
    if (!needed->few) {
        const size_t blocker = analysis->comparisons[v].blocker;
        for (size_t i = 0; i < prospects.count; i++)
            if (!(prospects.tests[i].margin > 0)) {
                dl2_say(writer, " As long as that measures beyond the tolerance, it can't be.");
                return;
            }
        dl2_say(writer,
                " A new study of %d seeds%s would hardly show %s: what was measured is too close "
                "to the tolerance.",
                DL2_MAX_SEEDS_NEEDED, prospects.units ? " and 32 times the validation images" : "",
                blocker == v ? "it" : "them");
        return;
    }
    dl2_say(writer, " A new study of %zu", needed->few);
    if (needed->many > needed->few)
        dl2_say(writer, " to %zu", needed->many);
    dl2_say(writer, " seeds");
    if (needed->times_images > 1)
        dl2_say(writer, " and about %.0f validation images",
                round_up(needed->times_images * (double)analysis->comparisons[v].images));
    dl2_say(writer,
            " would show it with a probability of about 80%%, if what was measured is true.");
}

static void say_gain(struct dl2_sentence *writer, const struct dl2_study *study,
                     const struct dl2_analysis *analysis, size_t v)
{
    const double ratio = study->variants[v].ratio;
    dl2_say(writer, "%.3g%% of the bytes, %.3g times smaller ", 100 * ratio, 1 / ratio);
    say_interval(writer, &analysis->comparisons[v]);
    dl2_say(writer, ".");
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

/* The second question's answer for a variant. */
static void say_on_original(struct dl2_sentence *writer, const struct dl2_analysis *analysis,
                            size_t v)
{
    const struct dl2_comparison *comparison =
        analysis->on_original ? &analysis->on_original[v] : NULL;
    if (!comparison || comparison->verdict == DL2_VERDICT_NONE)
        return;
    dl2_say(writer, " Validated on the original's images it %s %s ",
            comparison->verdict == DL2_VERDICT_WITHIN   ? "loses less than"
            : comparison->verdict == DL2_VERDICT_BEYOND ? "loses more than"
                                                        : "is not shown to lose less than",
            dl2_count_points(analysis->question.tolerance));
    say_interval(writer, comparison);
    dl2_say(writer, ".");
}

static void write_advice(const struct dl2_study *study, struct dl2_analysis *analysis,
                         struct dl2_advice *advice)
{
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
    say_on_original(&writer, analysis, pick);
    if (advice->sure < none && advice->likely < none) {
        dl2_say(&writer, " %s may lose less, too: ", study->variants[advice->likely].name);
        say_gain(&writer, study, analysis, advice->likely);
    }
    if (advice->likely < none) {
        say_what_blocks(&writer, study, analysis, advice->likely);
        say_what_would_tell(&writer, study, analysis, advice->likely);
    }
}

/* Asks the second question, if any training was validated on the original's images, too. */
static void analyse_on_original(const struct dl2_study *study, struct dl2_runs raw,
                                struct dl2_analysis *analysis)
{
    bool any = false;
    for (size_t i = 0; i < study->run_count; i++)
        any |= study->runs[i].on_original && strcmp(study->runs[i].arch, analysis->arch) == 0;
    if (!any || !raw.count)
        return;
    struct dl2_question question = analysis->question;
    question.on_original = true;
    question.draws = 0;
    question.within = NULL; /* claims of the other question say nothing of this one */
    analysis->on_original = dl2_analyse(study, analysis->arch, &question).comparisons;
}

struct dl2_analysis dl2_analyse(const struct dl2_study *study, const char *arch,
                                const struct dl2_question *question)
{
    struct dl2_analysis analysis = {.arch = arch, .question = *question};
    analysis.comparisons =
        dl2_keep(study->variant_count + 1, sizeof *analysis.comparisons, "the analysis");
    DL2_AUTO_FREE double *scratch = dl2_room(study->run_count + 1, sizeof *scratch, "the analysis");
    const struct dl2_runs raw = dl2_study_runs(study, dl2_study_find(study, "raw"), arch);
    analysis.seeds = raw.count;
    for (size_t v = 0; v < study->variant_count; v++) {
        struct dl2_comparison *comparison = &analysis.comparisons[v];
        const struct dl2_runs own = dl2_study_runs(study, v, arch);
        comparison->blocker = v;
        const bool other = question->on_original && own.at != raw.at;
        comparison->accuracy = estimate(own,
                                        other ? offsetof(struct dl2_study_run, original_accuracy)
                                              : offsetof(struct dl2_study_run, accuracy),
                                        other, scratch);
        comparison->top5 = estimate(own, offsetof(struct dl2_study_run, top5), false, scratch);
    }
    compare_with_original(study, raw, &analysis, scratch);
    if (!question->on_original)
        analyse_on_original(study, raw, &analysis);
    write_advice(study, &analysis, &analysis.smallest);
    return analysis;
}

struct dl2_analysis *dl2_analyse_all(const struct dl2_study *study,
                                     const struct dl2_question *question)
{
    struct dl2_analysis *analyses =
        dl2_keep(study->arch_count, sizeof *analyses, "%zu networks", study->arch_count);
    for (size_t a = 0; a < study->arch_count; a++)
        analyses[a] = dl2_analyse(study, study->archs[a], question);
    return analyses;
}

/*
 * May the seeds of the last look decide it, if what was measured holds? The difference moves with
 * the chance of training; the interval, at its narrowest, is that of a single look and many degrees
 * of freedom. Within is given up only where that interval is wider than the tolerance, by the
 * choice of images mostly: to give up what was unlucky so far would bias what is left. To ask for
 * no more seeds makes no claim, so it costs nothing of the family's level.
 */
static bool may_be_decided(const struct dl2_analysis *analysis,
                           const struct dl2_comparison *comparison)
{
    const struct dl2_looks *looks = &analysis->question.looks;
    if (comparison->pairs < 2 || !(comparison->training.freedom > 0))
        return true;
    const double now = (double)comparison->pairs, last = (double)looks->seeds[looks->count - 1];
    const double of_pair = comparison->training.variance * now;
    const double half = dl2_student_quantile(0.025, INFINITY) *
                        sqrt(of_pair / last + (comparison->images ? comparison->both.added : 0));
    const double needed =
        dl2_student_quantile(0.1, INFINITY) * sqrt(fmax(0, of_pair / now - of_pair / last));
    const double margin = comparison->difference + analysis->question.tolerance;
    return half < analysis->question.tolerance || margin - half > -needed ||
           -margin - half > -needed;
}

/* A codec's variants are tested one after the other, so one whose turn has not come waits: that
 * changes no claim, as seeds before its turn could not have claimed it. */
size_t dl2_analysis_seeds_wanted(const struct dl2_analysis *analysis, size_t variant)
{
    const struct dl2_looks *looks = &analysis->question.looks;
    const struct dl2_comparison *comparison = &analysis->comparisons[variant];
    if (!looks->count || comparison->decided || comparison->blocker != variant ||
        !may_be_decided(analysis, comparison))
        return 0;
    for (size_t look = 0; look < looks->count; look++)
        if (looks->seeds[look] > comparison->pairs && looks->seeds[look] >= comparison->reached)
            return looks->seeds[look];
    return 0;
}

/* ---- Pareto fronts */

double dl2_pareto_gain(const struct dl2_study *study, const struct dl2_analysis *analysis, size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    if (v == dl2_study_find(study, "raw"))
        return comparison->accuracy.count ? 0 : NAN;
    return comparison->difference;
}

void dl2_pareto_find(const struct dl2_study *study, const struct dl2_analysis *analysis,
                     const double *costs, bool *front)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        const double cost = costs[v], gain = dl2_pareto_gain(study, analysis, v);
        front[v] = isfinite(cost) && isfinite(gain);
        for (size_t i = 0; front[v] && i < study->variant_count; i++) {
            const double other = dl2_pareto_gain(study, analysis, i);
            if (costs[i] <= cost && other >= gain && (costs[i] < cost || other > gain))
                front[v] = false;
        }
    }
}

bool *dl2_pareto_of_bytes(const struct dl2_study *study, const struct dl2_analysis *analyses)
{
    const size_t count = study->variant_count;
    DL2_AUTO_FREE double *bytes = dl2_room(count, sizeof *bytes, "%zu variants", count);
    bool *fronts = dl2_keep(study->arch_count, count * sizeof *fronts, "%zu variants", count);
    for (size_t v = 0; v < count; v++)
        bytes[v] = study->variants[v].bytes;
    for (size_t a = 0; a < study->arch_count; a++)
        dl2_pareto_find(study, &analyses[a], bytes, fronts + a * count);
    return fronts;
}
