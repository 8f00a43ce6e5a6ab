/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/speed.h"

#include "common/scope.h"
#include "report/advice.h"
#include "report/sentence.h"

#include <math.h>

const char *const dl2_speed_words[] = {[DL2_SPEED_LOAD] = "load",
                                       [DL2_SPEED_TRAIN] = "train",
                                       [DL2_SPEED_ACCURACY] = "accuracy",
                                       NULL};

const char *dl2_speed_duration(double seconds)
{
    return seconds < 10     ? dl2_number("%.2f s", seconds)
           : seconds < 120  ? dl2_number("%.0f s", seconds)
           : seconds < 7200 ? dl2_number("%.1f min", seconds / 60)
                            : dl2_number("%.1f h", seconds / 3600);
}

/* A stretch of a curve that doesn't fall: its mean accuracy and epoch. */
struct level {
    double accuracy, epoch, validations;
};

/* What the speeds of a network are computed from. */
struct race {
    const struct dl2_study *study;
    const struct dl2_analysis *analysis;
    struct dl2_speeds *speeds;
    size_t raw;
    double accuracy; /* fraction; NAN: the original's less the tolerance */
    const struct dl2_study_run **own, **base, **original; /* of each seed that all three have */
    double *scratch;
    struct level *levels; /* [epochs] */
    size_t epochs;        /* of the longest training */
};

/* ---- Epochs to an accuracy */

/* Sets own, base and original; returns the number of seeds. */
static size_t pair_runs(struct race *race, size_t variant, size_t base)
{
    const struct dl2_runs runs = dl2_study_runs(race->study, race->raw, race->analysis->arch);
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        if (!isfinite(run->accuracy))
            continue;
        race->original[count] = run;
        race->own[count] = dl2_study_run_of(race->study, variant, run->arch, run->seed);
        race->base[count] = dl2_study_run_of(race->study, base, run->arch, run->seed);
        count += race->own[count] && race->base[count];
    }
    return count;
}

/* The accuracy to reach, without seed number `skip`. */
static double target(const struct race *race, size_t count, size_t skip)
{
    double sum = 0, seeds = 0;
    if (isfinite(race->accuracy))
        return race->accuracy;
    for (size_t s = 0; s < count; s++)
        if (s != skip) {
            sum += race->original[s]->accuracy;
            seeds++;
        }
    return sum / seeds - race->analysis->question.tolerance / 100;
}

/* The mean accuracy after an epoch of the runs but number `skip`; NAN: not all were validated. */
static double mean_accuracy(const struct dl2_study_run *const *runs, size_t count, size_t skip,
                            size_t epoch)
{
    double sum = 0, seeds = 0;
    for (size_t s = 0; s < count; s++)
        if (s != skip) {
            sum += epoch < runs[s]->epochs ? runs[s]->val_accuracy[epoch] : NAN;
            seeds++;
        }
    return sum / seeds;
}

/*
 * Epochs until the mean accuracy of the runs but number `skip` reaches `accuracy`; NAN: never.
 *
 * The mean curve is first made one that doesn't fall (isotonic regression, by pooling adjacent
 * violators). The first validation that happens to be above would be earlier than the truth, and
 * its jackknife too narrow: of rough curves from eight seeds, 5% of families had a wrong claim.
 */
static double crossing(const struct race *race, const struct dl2_study_run *const *runs,
                       size_t count, size_t skip, double accuracy)
{
    struct level *levels = race->levels;
    size_t used = 0;
    for (size_t e = 0; e < race->epochs; e++) {
        const double mean = mean_accuracy(runs, count, skip, e);
        if (isnan(mean))
            continue;
        levels[used++] = (struct level){mean, (double)e + 1, 1};
        for (; used > 1 && levels[used - 2].accuracy > levels[used - 1].accuracy; used--) {
            struct level *into = &levels[used - 2], *from = &levels[used - 1];
            const double all = into->validations + from->validations;
            const double share = from->validations / all;
            into->accuracy += share * (from->accuracy - into->accuracy);
            into->epoch += share * (from->epoch - into->epoch);
            into->validations = all;
        }
    }
    size_t reached = 0;
    while (reached < used && levels[reached].accuracy < accuracy - 1e-9)
        reached++;
    if (reached == used)
        return NAN;
    if (reached == 0)
        return levels[0].epoch;
    const struct level *below = &levels[reached - 1], *above = &levels[reached];
    const double part = (accuracy - below->accuracy) / (above->accuracy - below->accuracy);
    return below->epoch + fmin(1, part) * (above->epoch - below->epoch);
}

/* How many times fewer epochs a variant takes than `base`: a logarithm. */
static double fewer_epochs(const struct race *race, size_t count, size_t skip)
{
    const double accuracy = target(race, count, skip);
    return log(crossing(race, race->base, count, skip, accuracy) /
               crossing(race, race->own, count, skip, accuracy));
}

/* The same with its spread over seeds, by the jackknife. */
static struct dl2_ratio epochs_ratio(struct race *race, size_t variant, size_t base)
{
    const size_t count = pair_runs(race, variant, base), all = SIZE_MAX;
    struct dl2_ratio ratio = {NAN, {INFINITY, 0}, count};
    if (!count)
        return ratio;
    ratio.ratio = exp(fewer_epochs(race, count, all));
    if (count < 2)
        return ratio;
    double sum = 0, squares = 0;
    for (size_t s = 0; s < count; s++)
        sum += fewer_epochs(race, count, s);
    const double n = (double)count;
    for (size_t s = 0; s < count; s++)
        squares += pow(fewer_epochs(race, count, s) - sum / n, 2);
    if (isfinite(squares)) /* without some seed it never gets there: not known */
        ratio.spread = (struct dl2_spread){(n - 1) / n * squares, n - 1};
    return ratio;
}

/* ---- Ratios */

/* The product of two that were measured apart. Satterthwaite's degrees of freedom would be those of
 * the rates where two seeds happen to agree: with 2 seeds the interval then held the truth in 87%
 * of studies. The smaller of the two is safe (Mickey & Brown, 1966). */
static struct dl2_ratio multiply(struct dl2_ratio a, struct dl2_ratio b)
{
    struct dl2_ratio product = {a.ratio * b.ratio, {INFINITY, 0}, b.rounds};
    const double x = a.spread.variance, y = b.spread.variance;
    if (!isfinite(x + y) || !(a.spread.freedom > 0) || !(b.spread.freedom > 0))
        return product;
    product.spread = (struct dl2_spread){x + y, fmin(a.spread.freedom, b.spread.freedom)};
    return product;
}

static double epoch_images(const struct race *race, size_t variant)
{
    const struct dl2_runs runs = dl2_study_runs(race->study, variant, race->analysis->arch);
    return runs.count ? runs.at->train_images : NAN;
}

/* How many times as fast a variant is as `base`. */
static struct dl2_ratio ratio_of(struct race *race, enum dl2_speed_kind kind, size_t variant,
                                 size_t base)
{
    const struct dl2_study_variant *variants = race->study->variants;
    const struct dl2_rounds *rounds = &race->study->rounds;
    const char *network = race->analysis->arch, *name = variants[variant].name;
    struct dl2_ratio ratio;
    switch (kind) {
    case DL2_SPEED_LOAD:
        ratio = dl2_rounds_ratio(rounds, NULL, name, variants[base].name,
                                 offsetof(struct dl2_round, core_rate));
        if (!ratio.rounds) /* measured once, if at all */
            ratio.ratio = variants[variant].load_rate / variants[base].load_rate;
        return ratio;
    case DL2_SPEED_TRAIN:
        return dl2_rounds_ratio(rounds, network, name, variants[base].name,
                                offsetof(struct dl2_round, rate));
    default:
        ratio = multiply(epochs_ratio(race, variant, base),
                         dl2_rounds_ratio(rounds, network, name, variants[base].name,
                                          offsetof(struct dl2_round, rate)));
        ratio.ratio *= epoch_images(race, base) / epoch_images(race, variant);
        return ratio;
    }
}

static struct dl2_estimate estimate(const struct race *race, const char *network, size_t variant,
                                    size_t field, double scale)
{
    return dl2_rounds_mean(&race->study->rounds, network, race->study->variants[variant].name,
                           field, scale, race->scratch);
}

static void measure(struct race *race, size_t v, struct dl2_speed *speed)
{
    const char *network = race->analysis->arch;
    speed->load_rate = estimate(race, NULL, v, offsetof(struct dl2_round, core_rate), 1);
    if (!speed->load_rate.count && isfinite(race->study->variants[v].load_rate))
        speed->load_rate = (struct dl2_estimate){race->study->variants[v].load_rate, INFINITY, 1};
    speed->train_rate = estimate(race, network, v, offsetof(struct dl2_round, rate), 1);
    speed->stall = estimate(race, network, v, offsetof(struct dl2_round, stall), 100);
    speed->joules = estimate(race, network, v, offsetof(struct dl2_round, joules), 1);
    for (int kind = 0; kind < DL2_SPEED_KINDS; kind++)
        speed->ratio[kind] = ratio_of(race, (enum dl2_speed_kind)kind, v, race->raw);
    const size_t count = pair_runs(race, v, race->raw);
    speed->epochs =
        count ? crossing(race, race->own, count, SIZE_MAX, target(race, count, SIZE_MAX)) : NAN;
    speed->schedule = count ? race->own[0]->epochs : 0;
    speed->seconds = speed->epochs * epoch_images(race, v) / speed->train_rate.mean;
}

/* ---- Claims */

/* Is it one of the claims of that kind? Rates know nothing of accuracies, so that of rates only
 * those that may be named are claims. Time to an accuracy is of the trainings that the verdicts are
 * from: whoever looks lucky in one does in the other, so all that were trained on are. */
static bool is_claim(const struct race *race, enum dl2_speed_kind kind, size_t v)
{
    const enum dl2_verdict verdict = race->analysis->comparisons[v].verdict;
    return v != race->raw && (kind == DL2_SPEED_ACCURACY
                                  ? verdict != DL2_VERDICT_NONE
                                  : verdict == DL2_VERDICT_WITHIN || verdict == DL2_VERDICT_LIKELY);
}

/* Is it above 1, by a one-sided test? */
static bool is_above_one(const struct dl2_ratio *ratio, double level)
{
    return log(ratio->ratio) > dl2_spread_half(&ratio->spread, level);
}

static size_t count_claims(const struct race *race, enum dl2_speed_kind kind)
{
    size_t claims = 0;
    for (size_t v = 0; v < race->study->variant_count; v++)
        claims += is_claim(race, kind, v);
    return claims;
}

/* Holm's steps. */
static void claim_faster(struct race *race, enum dl2_speed_kind kind)
{
    size_t open = count_claims(race, kind);
    for (size_t before = SIZE_MAX; open < before;) {
        const double level = DL2_CLAIMS_LEVEL / (double)open;
        before = open;
        for (size_t v = 0; v < race->study->variant_count; v++) {
            struct dl2_speed *speed = &race->speeds->variants[v];
            if (speed->faster[kind] || !is_claim(race, kind, v) ||
                !is_above_one(&speed->ratio[kind], level))
                continue;
            speed->faster[kind] = true;
            open--;
        }
    }
}

/* Those within the tolerance that can't be told to be slower than `pick`; returns how many. */
static size_t find_rivals(struct race *race, enum dl2_speed_kind kind, size_t pick)
{
    const double level = DL2_CLAIMS_LEVEL / fmax(1, (double)count_claims(race, kind) - 1);
    size_t count = 0;
    for (size_t v = 0; v < race->study->variant_count; v++) {
        if (v == pick || race->analysis->comparisons[v].verdict != DL2_VERDICT_WITHIN)
            continue;
        const struct dl2_ratio ratio = ratio_of(race, kind, pick, v);
        race->speeds->variants[v].rival[kind] =
            isfinite(ratio.ratio) && !is_above_one(&ratio, level);
        count += race->speeds->variants[v].rival[kind];
    }
    return count;
}

/* ---- Sentences */

/* "to load", after "fastest" or "faster". */
static const char *aim(const struct race *race, enum dl2_speed_kind kind)
{
    if (kind == DL2_SPEED_ACCURACY)
        return dl2_text("to %s", dl2_accuracy_named(race->analysis->kind, race->speeds->accuracy));
    return kind == DL2_SPEED_LOAD ? "to load" : "to train on";
}

/* Rounds of one run say nothing of another run, on a machine in another state. */
static void say_interval(struct dl2_sentence *writer, const struct race *race,
                         enum dl2_speed_kind kind, const struct dl2_ratio *ratio)
{
    if (ratio->spread.freedom > 0)
        dl2_say(writer, " (95%% interval %.3g to %.3g in this run)", dl2_ratio_low(ratio),
                dl2_ratio_high(ratio));
    else if (kind == DL2_SPEED_ACCURACY)
        dl2_say(writer, "%s",
                dl2_accuracy_words(race->analysis->kind,
                                   " (without an interval: too few seeds or rounds, or without one "
                                   "of the seeds the accuracy is not reached)"));
    else
        dl2_say(writer, " (measured once, so without an interval)");
}

static void say_speed(struct dl2_sentence *writer, const struct race *race,
                      enum dl2_speed_kind kind, size_t v)
{
    const struct dl2_speed *speed = &race->speeds->variants[v];
    const struct dl2_ratio *ratio = &speed->ratio[kind];
    if (kind == DL2_SPEED_LOAD)
        dl2_say(writer, "%.0f images/s a core, %.3g times the original's", speed->load_rate.mean,
                ratio->ratio);
    else if (kind == DL2_SPEED_TRAIN)
        dl2_say(writer, "%.0f images/s, %.3g times the original's", speed->train_rate.mean,
                ratio->ratio);
    else
        dl2_say(writer,
                "%s of training, after %.3g of the schedule's %zu epochs, %.3g times as fast as "
                "the original",
                dl2_speed_duration(speed->seconds), speed->epochs, speed->schedule, ratio->ratio);
    say_interval(writer, race, kind, ratio);
}

/* Is it faster than the original, as far as was measured? A rate that was measured once is taken as
 * it is; epochs to an accuracy are too uncertain for that. */
static bool is_faster(const struct race *race, enum dl2_speed_kind kind, size_t v)
{
    const struct dl2_speed *speed = &race->speeds->variants[v];
    const struct dl2_ratio *ratio = &speed->ratio[kind];
    return speed->faster[kind] ||
           (kind != DL2_SPEED_ACCURACY && !(ratio->spread.freedom > 0) && ratio->ratio > 1);
}

/* The fastest with that verdict; `sure`: of those that are shown to be faster than the original,
 * else of those that were measured to be. variant_count: none. */
static size_t fastest_variant(const struct race *race, enum dl2_speed_kind kind,
                              enum dl2_verdict verdict, bool sure)
{
    size_t found = race->study->variant_count;
    double best = 1;
    for (size_t v = 0; v < race->study->variant_count; v++) {
        const double own = race->speeds->variants[v].ratio[kind].ratio;
        if (v == race->raw || race->analysis->comparisons[v].verdict != verdict || !(own > best) ||
            (sure && !is_faster(race, kind, v)))
            continue;
        found = v;
        best = own;
    }
    return found;
}

static void say_rivals(struct dl2_sentence *writer, struct race *race, enum dl2_speed_kind kind,
                       size_t pick)
{
    const size_t rivals = find_rivals(race, kind, pick);
    size_t said = 0;
    if (!rivals)
        return;
    dl2_say(writer, " ");
    for (size_t v = 0; v < race->study->variant_count; v++)
        if (race->speeds->variants[v].rival[kind])
            dl2_say(writer, "%s%s", dl2_joint(said++, rivals), race->study->variants[v].name);
    dl2_say(writer, " may be as fast.");
}

/* Why no speed can be compared, if so. */
static bool say_unknown(struct dl2_sentence *writer, const struct race *race,
                        enum dl2_speed_kind kind)
{
    const struct dl2_speed *raw =
        race->raw < race->study->variant_count ? &race->speeds->variants[race->raw] : NULL;
    if (!raw || race->analysis->comparisons[race->raw].accuracy.count == 0)
        dl2_say(writer, "%s",
                dl2_accuracy_words(race->analysis->kind,
                                   "The original was not trained on, so nothing can be said of "
                                   "accuracy."));
    else if (kind == DL2_SPEED_LOAD && !raw->load_rate.count)
        dl2_say(writer, "The input pipeline's speed was not measured.");
    else if (kind != DL2_SPEED_LOAD && !raw->train_rate.count)
        dl2_say(writer, "The speed of training was not measured by itself; make throughput "
                        "measures it.");
    else if (kind == DL2_SPEED_ACCURACY && !(raw->epochs > 0))
        dl2_say(writer, "The original's trainings do not reach %s.",
                dl2_accuracy_named(race->analysis->kind, race->speeds->accuracy));
    return writer->used > 0;
}

/* Why there is nothing to recommend. */
static void say_none(struct dl2_sentence *writer, const struct race *race, enum dl2_speed_kind kind,
                     const char *points)
{
    const size_t none = race->study->variant_count;
    const size_t within = fastest_variant(race, kind, DL2_VERDICT_WITHIN, false);
    size_t gains = 0, judged = 0, beyond = 0;
    const char *what = aim(race, kind);
    if (within < none) {
        dl2_say(writer,
                "No variant within %s is shown to be faster %s than the original. %s was measured "
                "to be: ",
                points, what, race->study->variants[within].name);
        say_speed(writer, race, kind, within);
        dl2_say(writer, ".");
        if (is_above_one(&race->speeds->variants[within].ratio[kind], DL2_CLAIMS_LEVEL))
            dl2_say(writer,
                    " Its own interval is above 1, but not by enough for one of %zu claims.",
                    count_claims(race, kind));
        return;
    }
    for (size_t v = 0; v < none; v++) {
        const enum dl2_verdict verdict = race->analysis->comparisons[v].verdict;
        if (v == race->raw || !(race->speeds->variants[v].ratio[kind].ratio > 1))
            continue;
        gains++;
        judged += verdict != DL2_VERDICT_NONE;
        beyond += verdict == DL2_VERDICT_BEYOND;
    }
    if (gains == 0)
        dl2_say(writer, "No variant was measured to be faster %s than the original.", what);
    else if (judged == 0)
        dl2_say(
            writer,
            dl2_accuracy_words(race->analysis->kind,
                               "No variant that is faster %s than the original was trained on."),
            what);
    else if (beyond == judged) /* each is shown to be beyond, so all are: no shares of the error */
        dl2_say(writer,
                dl2_accuracy_words(race->analysis->kind,
                                   "Every variant that was measured to be faster %s%s loses more "
                                   "than %s: keep the original."),
                what,
                judged < gains ? dl2_accuracy_words(race->analysis->kind, " and trained on") : "",
                points);
    else
        dl2_say(
            writer,
            dl2_accuracy_words(race->analysis->kind,
                               "No variant that is faster %s is shown to be within %s: keep the "
                               "original, or train from more seeds to be sure."),
            what, points);
}

static void write_advice(struct race *race, enum dl2_speed_kind kind, struct dl2_advice *advice)
{
    const struct dl2_study *study = race->study;
    const size_t none = study->variant_count;
    struct dl2_sentence writer = {advice->text, sizeof advice->text, 0};
    advice->text[0] = advice->gain[0] = '\0';
    advice->sure = advice->likely = none;
    if (say_unknown(&writer, race, kind))
        return;
    const char *points = dl2_tolerance_text(race->analysis);
    const char *what = aim(race, kind);
    advice->sure = fastest_variant(race, kind, DL2_VERDICT_WITHIN, true);
    advice->likely = fastest_variant(race, kind, DL2_VERDICT_LIKELY, true);
    const struct dl2_speed *speeds = race->speeds->variants;
    if (advice->sure < none && advice->likely < none &&
        !(speeds[advice->likely].ratio[kind].ratio > speeds[advice->sure].ratio[kind].ratio))
        advice->likely = none;
    const size_t pick = dl2_advice_pick(advice, study);
    if (pick == none) {
        say_none(&writer, race, kind, points);
        return;
    }
    snprintf(advice->gain, sizeof advice->gain, "%.3g times as fast",
             speeds[pick].ratio[kind].ratio);
    if (advice->sure < none)
        dl2_say(&writer, "%s is the fastest %s of those within %s: ", study->variants[pick].name,
                what, points);
    else
        dl2_say(&writer,
                "No variant that is faster %s is shown to be within %s. %s is the fastest that "
                "could be: ",
                what, points, study->variants[pick].name);
    say_speed(&writer, race, kind, pick);
    dl2_say(&writer, ".");
    if (advice->sure < none && speeds[pick].faster[kind])
        say_rivals(&writer, race, kind, pick);
    if (advice->sure < none && advice->likely < none) {
        dl2_say(&writer, " %s, which could be within, was measured to be faster: ",
                study->variants[advice->likely].name);
        say_speed(&writer, race, kind, advice->likely);
        dl2_say(&writer, ".");
    }
    if (kind == DL2_SPEED_ACCURACY)
        dl2_say(&writer, "%s",
                dl2_accuracy_words(race->analysis->kind,
                                   " A training whose schedule ends there may reach another "
                                   "accuracy."));
}

struct dl2_speeds dl2_speeds_analyze(const struct dl2_study *study,
                                     const struct dl2_analysis *analysis, double accuracy)
{
    const size_t runs = study->run_count + 1;
    struct dl2_speeds speeds = {.accuracy = NAN};
    struct race race = {.study = study,
                        .analysis = analysis,
                        .speeds = &speeds,
                        .raw = dl2_study_find(study, "raw"),
                        .accuracy = accuracy / 100};
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].epochs > race.epochs)
            race.epochs = study->runs[i].epochs;
    DL2_AUTO_FREE const struct dl2_study_run **seeds =
        dl2_room(3 * runs, sizeof *seeds, "the speeds of trainings");
    DL2_AUTO_FREE double *scratch =
        dl2_room(study->rounds.count + 1, sizeof *scratch, "the speeds of trainings");
    DL2_AUTO_FREE struct level *levels =
        dl2_room(race.epochs + 1, sizeof *levels, "the speeds of trainings");
    race.own = seeds;
    race.base = seeds + runs;
    race.original = seeds + 2 * runs;
    race.scratch = scratch;
    race.levels = levels;
    speeds.variants = dl2_keep(study->variant_count + 1, sizeof *speeds.variants,
                               "the speeds of %zu variants", study->variant_count);
    const size_t count = pair_runs(&race, race.raw, race.raw);
    if (count)
        speeds.accuracy = 100 * target(&race, count, SIZE_MAX);
    for (size_t v = 0; v < study->variant_count; v++) {
        measure(&race, v, &speeds.variants[v]);
        if (speeds.variants[v].train_rate.count > speeds.rounds)
            speeds.rounds = speeds.variants[v].train_rate.count;
    }
    for (int kind = 0; kind < DL2_SPEED_KINDS; kind++) {
        claim_faster(&race, (enum dl2_speed_kind)kind);
        write_advice(&race, (enum dl2_speed_kind)kind, &speeds.fastest[kind]);
    }
    return speeds;
}
