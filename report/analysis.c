/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/analysis.h"

#include "common/scope.h"
#include "common/stats.h"
#include "report/advice.h"
#include "report/differences.h"

#include <math.h>
#include <string.h>

const char *dl2_verdict_text(enum dl2_verdict verdict)
{
    static const char *const texts[] = {"", "within", "could be", "looks worse", "worse"};
    return texts[verdict];
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

static const float *outcome_of(const struct block *block, const struct dl2_study_run *run)
{
    return block->on_original && run->variant != block->raw ? run->original_outcome : run->outcome;
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
        const float *outcome = outcome_of(block, own);
        if (accuracy_of(block, own) != original->accuracy ||
            (outcome && original->outcome &&
             memcmp(outcome, original->outcome, own->images * sizeof *outcome) != 0))
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
            block->accuracies[rows * seeds + s] =
                run && !run->diverged ? 100 * accuracy_of(block, run) : NAN;
        }
        rows++;
    }
    return dl2_noise_estimate(block->accuracies, rows, seeds);
}

/* The bootstrap's interval of a table of differences. */
static void draw_interval(const struct dl2_differences *table, size_t draws,
                          struct dl2_comparison *comparison)
{
    const struct dl2_groups groups = {table->of, table->of_count, table->alike};
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
        pairs, count, block->on_original ? DL2_MEASURE_ON_ORIGINAL : DL2_MEASURE_OUTCOME,
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

static const double *resamples_of(const struct block *block, const struct dl2_study_run *run)
{
    return block->on_original && run->variant != block->raw ? run->original_resamples
                                                            : run->resamples;
}

/* The same of a metric that is no mean over images: seeds pair by pair, on the same resamples. */
static void compare_resamples(const struct block *block, size_t variant, size_t seeds,
                              struct dl2_comparison *comparison)
{
    size_t count = 0, resamples = 0;
    for (size_t s = 0; s < seeds; s++) {
        const struct dl2_study_run *own = run_at(block, variant, s);
        const struct dl2_study_run *original = run_at(block, block->raw, s);
        if (!own || !original)
            continue;
        if (!resamples_of(block, own) || !original->resamples)
            return;
        resamples = original->resample_count;
        count++;
    }
    DL2_AUTO_FREE double *table = dl2_room(count * resamples, sizeof *table, "resamples");
    count = 0;
    for (size_t s = 0; s < seeds; s++) {
        const struct dl2_study_run *own = run_at(block, variant, s);
        const struct dl2_study_run *original = run_at(block, block->raw, s);
        for (size_t b = 0; own && original && b < resamples; b++)
            table[count * resamples + b] =
                100 * resamples_of(block, own)[b] - 100 * original->resamples[b];
        count += own && original;
    }
    const struct dl2_spread images = dl2_spread_of_resamples(table, count, resamples);
    comparison->resamples = resamples;
    comparison->both = dl2_spread_sum(&comparison->training, &images);
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

/* INFINITY, as if not known, where the interval excludes nothing that the metric can be. */
static double shown_half(const struct dl2_spread *spread, double tail,
                         const struct dl2_accuracy_kind *kind)
{
    const double half = dl2_spread_half(spread, tail);
    return kind->is_percent && half >= 100 ? INFINITY : half;
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
    comparison->pairs = comparison->images = comparison->units = comparison->resamples = 0;
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
        comparison->training =
            block->study->as_it_is /* no chance of training; without images, nothing is known */
                ? (struct dl2_spread){.variance = 0, .freedom = INFINITY}
                : dl2_spread_of_pairs(summary.stddev * summary.stddev, comparison->pairs,
                                      &analysis->noise);
        /* Equal differences, as of rounded values or unused seeds, are no proof of no chance. */
        if (analysis->kind->is_foreign && !block->study->as_it_is &&
            !(comparison->training.variance > 0))
            comparison->training = (struct dl2_spread){.variance = INFINITY};
        compare_images(block, variant, seeds, draws, comparison);
        if (!comparison->images)
            compare_resamples(block, variant, seeds, comparison);
        if (block->study->as_it_is && !dl2_counts_images(comparison))
            comparison->training = (struct dl2_spread){.variance = INFINITY};
    }
    const double tail = dl2_interval_tail(&analysis->question.looks, comparison->pairs);
    comparison->half = shown_half(&comparison->training, tail, analysis->kind);
    comparison->half_both = shown_half(&comparison->both, tail, analysis->kind);
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
        comparison->bound = claim->bound;
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
            claims[i].spread =
                dl2_counts_images(comparison) ? comparison->both : comparison->training;
            /* Not trained as far as this look goes: it waits. */
            if (planned && comparison->pairs < looks->seeds[look])
                claims[i].spread = (struct dl2_spread){.variance = INFINITY};
        }
        dl2_claims_test(claims, count, analysis->codecs, dl2_networks_of(analysis),
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

/* ---- Both questions */

/* Asks the second question, if any training was validated on the original's images, too. */
static void analyze_on_original(const struct dl2_study *study, struct dl2_runs raw,
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
    analysis->on_original = dl2_analyze(study, analysis->arch, &question).comparisons;
}

struct dl2_analysis dl2_analyze(const struct dl2_study *study, const char *arch,
                                const struct dl2_question *question)
{
    struct dl2_analysis analysis = {
        .arch = arch, .kind = dl2_study_accuracy(study), .question = *question};
    analysis.comparisons =
        dl2_keep(study->variant_count + 1, sizeof *analysis.comparisons, "the analysis");
    DL2_AUTO_FREE double *scratch = dl2_room(study->run_count + 1, sizeof *scratch, "the analysis");
    const struct dl2_runs raw = dl2_study_runs(study, dl2_study_find(study, "raw"), arch);
    analysis.seeds = raw.count;
    for (size_t v = 0; v < study->variant_count; v++) {
        struct dl2_comparison *comparison = &analysis.comparisons[v];
        const struct dl2_runs own = dl2_study_runs(study, v, arch);
        comparison->blocker = v;
        comparison->bound = NAN;
        const bool other = question->on_original && own.at != raw.at;
        comparison->accuracy = estimate(own,
                                        other ? offsetof(struct dl2_study_run, original_accuracy)
                                              : offsetof(struct dl2_study_run, accuracy),
                                        other, scratch);
        comparison->top5 = estimate(own, offsetof(struct dl2_study_run, top5), false, scratch);
    }
    if (question->percent > 0 && raw.count)
        analysis.question.tolerance =
            question->percent / 100 *
            fabs(analysis.comparisons[dl2_study_find(study, "raw")].accuracy.mean);
    compare_with_original(study, raw, &analysis, scratch);
    if (!question->on_original)
        analyze_on_original(study, raw, &analysis);
    dl2_advise(study, &analysis);
    return analysis;
}

struct dl2_analysis *dl2_analyze_all(const struct dl2_study *study,
                                     const struct dl2_question *question)
{
    struct dl2_analysis *analyses =
        dl2_keep(study->arch_count, sizeof *analyses, "%zu networks", study->arch_count);
    for (size_t a = 0; a < study->arch_count; a++)
        analyses[a] = dl2_analyze(study, study->archs[a], question);
    return analyses;
}

/* May the seeds of the last look decide it, with a probability of DL2_WORTH_SEEDS or more, if what
 * was measured holds? The difference moves with the chance of training; the interval is that of the
 * last look. To ask for no more seeds makes no claim, so it costs nothing of the family's level. */
static bool may_be_decided(const struct dl2_analysis *analysis,
                           const struct dl2_comparison *comparison)
{
    const struct dl2_looks *looks = &analysis->question.looks;
    if (comparison->pairs < 2 || !(comparison->training.freedom > 0))
        return true;
    const double now = (double)comparison->pairs, last = (double)looks->seeds[looks->count - 1];
    const double of_pair = comparison->training.variance * now;
    const struct dl2_spread then = {
        .variance = of_pair / last,
        .freedom = comparison->training.freedom + last - now,
        .added = dl2_counts_images(comparison) ? comparison->both.added : 0,
        .added_freedom = comparison->both.added_freedom,
    };
    const double half = dl2_spread_half(&then, dl2_interval_level(looks, looks->count - 1));
    const double needed = dl2_student_quantile(DL2_WORTH_SEEDS, INFINITY) *
                          sqrt(fmax(0, of_pair / now - of_pair / last));
    return fabs(comparison->difference + analysis->question.tolerance) > half - needed;
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
