/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/analysis.h"

#include "common/memory.h"
#include "common/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SEEDS 64 /* that more are asked for */

const char *dl2_verdict_text(enum dl2_verdict verdict)
{
    static const char *const texts[] = {"", "within", "could be", "looks worse", "worse"};
    return texts[verdict];
}

/* Half the width of the two-sided 95% interval of a standard deviation of 1. */
static double student(size_t freedom)
{
    return dl2_confidence95(1, freedom + 1) * sqrt((double)freedom + 1);
}

struct dl2_estimate dl2_estimate_mean(double *values, size_t count)
{
    if (count == 0)
        return (struct dl2_estimate){NAN, NAN, 0};
    struct dl2_summary summary;
    dl2_summarize(values, count, &summary);
    return (struct dl2_estimate){summary.mean, dl2_confidence95(summary.stddev, count), count};
}

enum dl2_verdict dl2_judge(double difference, double half, double tolerance)
{
    if (isnan(difference) || isnan(half))
        return DL2_VERDICT_NONE;
    if (difference - half >= -tolerance)
        return DL2_VERDICT_WITHIN;
    if (difference + half < -tolerance)
        return DL2_VERDICT_BEYOND;
    return difference >= -tolerance ? DL2_VERDICT_LIKELY : DL2_VERDICT_UNLIKELY;
}

/* The runs of one variant with one network: a stretch of the sorted runs. */
struct stretch {
    const struct dl2_study_run *runs;
    size_t count;
};

static struct stretch find_runs(const struct dl2_study *study, const char *arch, size_t variant)
{
    struct stretch found = {NULL, 0};
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (run->variant != variant || strcmp(run->arch, arch) != 0)
            continue;
        if (!found.count)
            found.runs = run;
        found.count++;
    }
    return found;
}

/* Top-1 in percent of the run from `seed`, NAN if there is none. */
static double top1_of(struct stretch stretch, uint64_t seed)
{
    for (size_t i = 0; i < stretch.count; i++)
        if (stretch.runs[i].seed == seed)
            return 100 * stretch.runs[i].top1;
    return NAN;
}

static size_t count_pairs(struct stretch raw, struct stretch own)
{
    size_t pairs = 0;
    for (size_t i = 0; i < raw.count; i++)
        pairs += isfinite(raw.runs[i].top1) && isfinite(top1_of(own, raw.runs[i].seed));
    return pairs;
}

static struct dl2_estimate estimate(struct stretch stretch, double scale, size_t field,
                                    double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < stretch.count; i++) {
        const double value = *(const double *)((const char *)&stretch.runs[i] + field);
        if (isfinite(value))
            scratch[count++] = scale * value;
    }
    return dl2_estimate_mean(scratch, count);
}

/*
 * The noise of one training from the block of all variants that have all of the original's seeds:
 * residuals of variant + seed.
 */
static void estimate_noise(const struct dl2_study *study, struct dl2_analysis *analysis,
                           struct stretch raw)
{
    const size_t seeds = raw.count;
    analysis->noise = NAN;
    if (seeds < 2 || count_pairs(raw, raw) < seeds)
        return;
    size_t rows = 0;
    double squares = 0, all = 0;
    double *of_seed = dl2_calloc(seeds, sizeof *of_seed);
    if (!of_seed)
        return;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct stretch own = find_runs(study, analysis->arch, v);
            if (own.count == 0 || count_pairs(raw, own) < seeds)
                continue;
            double row = 0;
            for (size_t s = 0; s < seeds; s++)
                row += top1_of(own, raw.runs[s].seed) / (double)seeds;
            if (pass == 0) {
                rows++;
                all += row;
                for (size_t s = 0; s < seeds; s++)
                    of_seed[s] += top1_of(own, raw.runs[s].seed);
                continue;
            }
            for (size_t s = 0; s < seeds; s++) {
                const double residual = top1_of(own, raw.runs[s].seed) - row - of_seed[s] + all;
                squares += residual * residual;
            }
        }
        if (pass == 0 && rows) {
            all /= (double)rows;
            for (size_t s = 0; s < seeds; s++)
                of_seed[s] /= (double)rows;
        }
    }
    free(of_seed);
    if (rows < 2)
        return;
    analysis->freedom = (rows - 1) * (seeds - 1);
    analysis->noise = sqrt(squares / (double)analysis->freedom);
}

static void compare_with_original(const struct dl2_analysis *analysis,
                                  struct dl2_comparison *comparison, struct stretch raw,
                                  struct stretch own, double *scratch)
{
    comparison->pairs = count_pairs(raw, own);
    if (comparison->pairs == raw.count && isfinite(analysis->noise)) {
        double sum = 0;
        for (size_t s = 0; s < raw.count; s++)
            sum += top1_of(own, raw.runs[s].seed) - 100 * raw.runs[s].top1;
        comparison->difference = sum / (double)raw.count;
        comparison->half =
            student(analysis->freedom) * analysis->noise * sqrt(2.0 / (double)raw.count);
        return;
    }
    if (comparison->pairs >= 1) {
        size_t count = 0;
        for (size_t s = 0; s < raw.count; s++) {
            const double other = top1_of(own, raw.runs[s].seed);
            if (isfinite(other) && isfinite(raw.runs[s].top1))
                scratch[count++] = other - 100 * raw.runs[s].top1;
        }
        const struct dl2_estimate paired = dl2_estimate_mean(scratch, count);
        if (count >= 2) {
            comparison->difference = paired.mean;
            comparison->half = paired.half;
            return;
        }
    }
    const struct dl2_estimate a = estimate(raw, 100, offsetof(struct dl2_study_run, top1), scratch);
    const struct dl2_estimate b = comparison->top1;
    comparison->difference = b.mean - a.mean;
    comparison->half = INFINITY;
    if (a.count >= 2 && b.count >= 2) {
        const size_t least = a.count < b.count ? a.count : b.count;
        const double error_a = a.half / student(a.count - 1),
                     error_b = b.half / student(b.count - 1);
        comparison->half = student(least - 1) * sqrt(error_a * error_a + error_b * error_b);
    }
    if (a.count == 0 || b.count == 0)
        comparison->difference = comparison->half = NAN;
}

/* ---- Sentences */

struct writer {
    char *text;
    size_t size, used;
};

static void say(struct writer *writer, const char *format, ...) DL2_PRINTF(2, 3);
static void say(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(writer->text + writer->used, writer->size - writer->used, format, arguments);
    va_end(arguments);
    if (length > 0)
        writer->used += (size_t)length < writer->size - writer->used
                            ? (size_t)length
                            : writer->size - writer->used - 1;
}

/* A number of points with its sign; the minus is a real one. */
static const char *signed_points(char out[32], double points)
{
    const double rounded = round(10 * points) / 10;
    snprintf(out, 32, "%s%.1f", rounded > 0 ? "+" : rounded < 0 ? "−" : "", fabs(rounded));
    return out;
}

static const char *count_points(char out[32], double points)
{
    snprintf(out, 32, "%g point%s", points, points == 1 ? "" : "s");
    return out;
}

static void say_difference(struct writer *writer, const struct dl2_comparison *comparison)
{
    char mean[32], low[32], high[32];
    say(writer, "top-1 differs by %s points", signed_points(mean, comparison->difference));
    if (isfinite(comparison->half))
        say(writer, " (95%% interval %s to %s)",
            signed_points(low, comparison->difference - comparison->half),
            signed_points(high, comparison->difference + comparison->half));
    else
        say(writer, " (a single pair of trainings, so no interval)");
}

/* How many seeds would make the interval narrow enough, the noise staying as it is; 0: too many. */
static size_t seeds_needed(const struct dl2_analysis *analysis,
                           const struct dl2_comparison *comparison)
{
    const double margin = analysis->tolerance + comparison->difference;
    if (!isfinite(analysis->noise) || !analysis->freedom || margin <= 0)
        return 0;
    const size_t rows = analysis->freedom / (analysis->seeds - 1);
    for (size_t seeds = analysis->seeds + 1; seeds <= MOST_SEEDS; seeds++)
        if (student(rows * (seeds - 1)) * analysis->noise * sqrt(2.0 / (double)seeds) <= margin)
            return seeds;
    return 0;
}

struct criterion {
    const char *adjective; /* "smallest" */
    bool bytes;            /* else the loader's speed */
};

static double merit(const struct dl2_study *study, const struct criterion *criterion, size_t v)
{
    return criterion->bytes ? -study->variants[v].bytes : study->variants[v].load_rate;
}

static void say_gain(struct writer *writer, const struct dl2_study *study,
                     const struct criterion *criterion, size_t v)
{
    const struct dl2_study_variant *raw = &study->variants[dl2_study_find(study, "raw")];
    if (criterion->bytes)
        say(writer, "%.3g%% of the original's bytes (%.3g times smaller)",
            100 * study->variants[v].ratio, 1 / study->variants[v].ratio);
    else
        say(writer, "%.0f images a second and core (%.3g times the original's)",
            study->variants[v].load_rate, study->variants[v].load_rate / raw->load_rate);
}

static size_t best_variant(const struct dl2_study *study, const struct dl2_analysis *analysis,
                           const struct criterion *criterion, size_t raw, enum dl2_verdict verdict)
{
    size_t found = study->variant_count;
    for (size_t v = 0; v < study->variant_count; v++) {
        if (v == raw || analysis->comparisons[v].verdict != verdict)
            continue;
        const double own = merit(study, criterion, v);
        if (!(own > merit(study, criterion, raw))) /* no gain, or unknown */
            continue;
        if (found == study->variant_count || own > merit(study, criterion, found))
            found = v;
    }
    return found;
}

static void write_advice(const struct dl2_study *study, const struct dl2_analysis *analysis,
                         const struct criterion *criterion, struct dl2_advice *advice)
{
    const size_t none = study->variant_count, raw = dl2_study_find(study, "raw");
    struct writer writer = {advice->text, sizeof advice->text, 0};
    advice->text[0] = '\0';
    advice->sure = advice->likely = none;
    if (raw == none || analysis->comparisons[raw].top1.count == 0) {
        say(&writer, "The original was not trained on, so nothing can be said of accuracy.");
        return;
    }
    if (isnan(merit(study, criterion, raw))) {
        say(&writer, criterion->bytes ? "The sizes are not known."
                                      : "The input pipeline's speed was not measured.");
        return;
    }
    char points[32];
    count_points(points, analysis->tolerance);
    advice->sure = best_variant(study, analysis, criterion, raw, DL2_VERDICT_WITHIN);
    advice->likely = best_variant(study, analysis, criterion, raw, DL2_VERDICT_LIKELY);
    if (advice->sure < none && advice->likely < none &&
        merit(study, criterion, advice->likely) <= merit(study, criterion, advice->sure))
        advice->likely = none;

    if (advice->sure < none) {
        say(&writer,
            "%s is the %s variant within %s of the original: ", study->variants[advice->sure].name,
            criterion->adjective, points);
        say_gain(&writer, study, criterion, advice->sure);
        say(&writer, "; ");
        say_difference(&writer, &analysis->comparisons[advice->sure]);
        say(&writer, ".");
        if (advice->likely < none) {
            say(&writer, " %s could be within, too: ", study->variants[advice->likely].name);
            say_gain(&writer, study, criterion, advice->likely);
            say(&writer, "; ");
            say_difference(&writer, &analysis->comparisons[advice->likely]);
            say(&writer, ".");
        }
    } else if (advice->likely < none) {
        say(&writer,
            "No %s variant is within %s of the original for certain. "
            "%s is the %s that could be: ",
            criterion->bytes ? "smaller" : "faster", points, study->variants[advice->likely].name,
            criterion->adjective);
        say_gain(&writer, study, criterion, advice->likely);
        say(&writer, "; ");
        say_difference(&writer, &analysis->comparisons[advice->likely]);
        say(&writer, ".");
    } else {
        size_t gains = 0, judged = 0, beyond = 0;
        for (size_t v = 0; v < none; v++) {
            const enum dl2_verdict verdict = analysis->comparisons[v].verdict;
            if (v == raw || !(merit(study, criterion, v) > merit(study, criterion, raw)))
                continue;
            gains++;
            judged += verdict != DL2_VERDICT_NONE;
            beyond += verdict == DL2_VERDICT_BEYOND;
        }
        if (gains == 0)
            say(&writer, "No variant is %s than the original.",
                criterion->bytes ? "smaller" : "faster to load");
        else if (judged == 0)
            say(&writer, "No variant that is %s than the original was trained on.",
                criterion->bytes ? "smaller" : "faster to load");
        else
            say(&writer, "Every variant that is %s %s more than %s: keep the original%s.",
                criterion->bytes ? "smaller" : "faster to load",
                beyond == judged ? "loses" : "was measured to lose", points,
                beyond == judged ? "" : ", or train from more seeds to be sure");
        return;
    }
    if (advice->likely < none) {
        const size_t needed = seeds_needed(analysis, &analysis->comparisons[advice->likely]);
        if (analysis->seeds < 2)
            say(&writer, " Train from several seeds to tell chance from effect.");
        else if (needed)
            say(&writer, " About %zu seeds would tell, if what was measured holds.", needed);
        else
            say(&writer, " The interval is wide: more seeds would narrow it.");
    }
}

int dl2_analyse(const struct dl2_study *study, const char *arch, double tolerance,
                struct dl2_analysis *analysis, struct dl2_error *error)
{
    *analysis = (struct dl2_analysis){.arch = arch, .tolerance = tolerance, .noise = NAN};
    analysis->comparisons = dl2_calloc(study->variant_count + 1, sizeof *analysis->comparisons);
    double *scratch = dl2_calloc(study->run_count + 1, sizeof *scratch);
    if (!analysis->comparisons || !scratch) {
        free(scratch);
        return dl2_error_memory(error, "the analysis");
    }
    const size_t raw_index = dl2_study_find(study, "raw");
    const struct stretch raw = find_runs(study, arch, raw_index);
    analysis->seeds = raw.count;
    estimate_noise(study, analysis, raw);
    for (size_t v = 0; v < study->variant_count; v++) {
        struct dl2_comparison *comparison = &analysis->comparisons[v];
        const struct stretch own = find_runs(study, arch, v);
        comparison->top1 = estimate(own, 100, offsetof(struct dl2_study_run, top1), scratch);
        comparison->top5 = estimate(own, 100, offsetof(struct dl2_study_run, top5), scratch);
        comparison->train_rate =
            estimate(own, 1, offsetof(struct dl2_study_run, train_rate), scratch);
        comparison->stall = estimate(own, 100, offsetof(struct dl2_study_run, stall), scratch);
        comparison->joules = estimate(own, 1, offsetof(struct dl2_study_run, joules), scratch);
        for (size_t i = 0; i < own.count; i++) {
            const unsigned trainers = own.runs[i].trainers;
            comparison->shared |= dl2_study_run_shared(&own.runs[i]);
            analysis->trainers = trainers > analysis->trainers ? trainers : analysis->trainers;
        }
        analysis->shared |= comparison->shared;
        comparison->difference = comparison->half = NAN;
        if (v == raw_index || raw.count == 0 || own.count == 0)
            continue;
        compare_with_original(analysis, comparison, raw, own, scratch);
        comparison->verdict = dl2_judge(comparison->difference, comparison->half, tolerance);
    }
    free(scratch);
    write_advice(study, analysis, &(struct criterion){"smallest", true}, &analysis->smallest);
    write_advice(study, analysis, &(struct criterion){"fastest", false}, &analysis->fastest);
    return DL2_OK;
}

void dl2_analysis_free(struct dl2_analysis *analysis)
{
    free(analysis->comparisons);
    analysis->comparisons = NULL;
}
