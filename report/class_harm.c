/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/class_harm.h"

#include "common/keep.h"
#include "common/quote.h"
#include "common/scope.h"
#include "common/stats.h"
#include "report/sentence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Classes and their names */

static const char *key_of(const struct dl2_prediction_table *images, size_t row)
{
    return images->keys + row * images->key_size;
}

/* Shortens `length` characters of `folder` to the folders that `key` lies in, too. */
static size_t common_folders(const char *folder, size_t length, const char *key)
{
    size_t same = 0, end = 0;
    for (; same < length && key[same] == folder[same]; same++)
        end = key[same] == '/' ? same + 1 : end;
    return end;
}

static int compare_targets(const void *a, const void *b, void *table)
{
    const struct dl2_prediction *rows = ((const struct dl2_prediction_table *)table)->rows;
    const int32_t x = rows[*(const uint32_t *)a].target, y = rows[*(const uint32_t *)b].target;
    return (x > y) - (x < y);
}

/* Is a name missing, or does it come twice? Sorts `names`. */
static bool names_fail(char **names, size_t count)
{
    qsort(names, count, sizeof *names, dl2_compare_texts);
    bool fail = false;
    for (size_t i = 0; i < count; i++)
        fail |= !names[i][0] || (i && strcmp(names[i - 1], names[i]) == 0);
    return fail;
}

/* Names by the folders of a class's keys below those of all keys; `rows` are by class. */
static void name_by_folders(const struct dl2_prediction_table *images, const uint32_t *rows,
                            struct dl2_classes *classes)
{
    const char *first = key_of(images, 0);
    size_t shared = strlen(first), place = 0;
    for (size_t i = 0; i < images->count; i++)
        shared = common_folders(first, shared, key_of(images, i));
    for (size_t c = 0; c < classes->count; c++) {
        const char *folder = key_of(images, rows[place]);
        size_t length = strlen(folder);
        for (; place < images->count && classes->of[rows[place]] == c; place++)
            length = common_folders(folder, length, key_of(images, rows[place]));
        classes->names[c] = dl2_keep_block(
            length > shared ? strndup(folder + shared, length - shared - 1) : strdup(""));
    }
}

static void name_by_numbers(const struct dl2_prediction_table *images, const uint32_t *rows,
                            struct dl2_classes *classes)
{
    for (size_t i = 0; i < images->count; i++)
        if (!i || classes->of[rows[i]] != classes->of[rows[i - 1]])
            classes->names[classes->of[rows[i]]] =
                dl2_text("class %d", images->rows[rows[i]].target);
}

struct dl2_classes dl2_classes_find(const struct dl2_prediction_table *images)
{
    struct dl2_classes classes = {0};
    if (!images->count)
        return classes;
    DL2_AUTO_FREE uint32_t *rows = dl2_room(images->count, sizeof *rows, "validation images");
    classes.of = dl2_keep(images->count, sizeof *classes.of, "validation images");
    for (size_t i = 0; i < images->count; i++)
        rows[i] = (uint32_t)i;
    qsort_r(rows, images->count, sizeof *rows, compare_targets, (void *)images);
    for (size_t i = 0; i < images->count; i++) {
        classes.count += !i || images->rows[rows[i]].target != images->rows[rows[i - 1]].target;
        classes.of[rows[i]] = (uint32_t)(classes.count - 1);
    }
    classes.names = dl2_keep(classes.count, sizeof *classes.names, "classes");
    DL2_AUTO_FREE char **sorted = dl2_room(classes.count, sizeof *sorted, "classes");
    name_by_folders(images, rows, &classes);
    memcpy(sorted, classes.names, classes.count * sizeof *sorted);
    if (names_fail(sorted, classes.count))
        name_by_numbers(images, rows, &classes);
    return classes;
}

/* ---- Differences of recall */

/* A table's columns by class: those of class c are columns[begin[c]] to columns[begin[c + 1] - 1];
 * `begin` has room for one more than that. */
static void order_columns(const struct dl2_differences *table, const struct dl2_classes *classes,
                          uint32_t *columns, size_t *begin)
{
    size_t *next = begin + 1; /* moves from a class's begin to its end */
    for (size_t i = 0; i < table->images; i++)
        next[classes->of[table->image[i]] + 1]++;
    for (size_t c = 1; c <= classes->count; c++)
        next[c] += next[c - 1];
    for (size_t i = 0; i < table->images; i++)
        columns[next[classes->of[table->image[i]]]++] = (uint32_t)i;
}

static double original_recall(const struct dl2_run_pair *pairs, const struct dl2_differences *part)
{
    double sum = 0;
    for (size_t p = 0; p < part->seeds; p++)
        for (size_t i = 0; i < part->images; i++)
            sum += pairs[p].original->outcome[part->image[i]];
    return sum / (double)(part->seeds * part->images);
}

/* What one class changes, as a fraction, and its mean squares. */
static void measure_class(const struct dl2_differences *table, const struct dl2_run_pair *pairs,
                          const uint32_t *columns, size_t images, struct dl2_class_change *change,
                          struct dl2_mean_squares *squares)
{
    change->images = images;
    change->original = change->difference = NAN;
    change->low = -INFINITY;
    change->high = INFINITY;
    if (!images)
        return;
    DL2_CLEANUP(dl2_differences_free)
    struct dl2_differences part = dl2_differences_choose(table, columns, images);
    *squares = dl2_differences_squares(&part);
    change->original = 100 * original_recall(pairs, &part);
    change->difference = 100 * squares->mean;
    change->units = squares->units;
}

static void measure_variant(const struct dl2_prediction_table *images,
                            const struct dl2_classes *classes, const struct dl2_run_pair *pairs,
                            size_t count, struct dl2_class_harm *harm,
                            struct dl2_mean_squares *squares)
{
    DL2_CLEANUP(dl2_differences_free)
    struct dl2_differences table = dl2_differences_make(pairs, count, DL2_MEASURE_OUTCOME, images);
    if (!table.images)
        return;
    DL2_AUTO_FREE uint32_t *columns = dl2_room(table.images, sizeof *columns, "validation images");
    DL2_AUTO_FREE size_t *begin = dl2_room(classes->count + 2, sizeof *begin, "classes");
    order_columns(&table, classes, columns, begin);
    harm->changes = dl2_keep(classes->count, sizeof *harm->changes, "classes");
    harm->pairs = count;
    harm->count = harm->bounding = classes->count;
    for (size_t c = 0; c < classes->count; c++) {
        harm->changes[c].class = c;
        measure_class(&table, pairs, columns + begin[c], begin[c + 1] - begin[c], &harm->changes[c],
                      &squares[c]);
    }
}

/* ---- Chance */

/* Degrees of freedom that all classes together count as, or half of those that they have: more than
 * all variants do for top-1, as there are more classes, and what each image adds by itself is known
 * of each class. */
#define COMMON_FREEDOM 3.0

static bool can_judge(const struct dl2_class_harm *harm, const struct dl2_mean_squares *squares)
{
    return harm->pairs > 1 && squares->units > 1;
}

static bool varies(const struct dl2_mean_squares *squares)
{
    return squares->mean != 0 || squares->image > 0 || squares->seed > 0 || squares->residual > 0;
}

/*
 * What the chance of training adds to a class's recall beyond what it does to each image by itself:
 * the variance between seeds, of all classes and variants together. A variant with the original's
 * predictions, of the same pixels, says nothing of it, nor does one of which a training diverged.
 */
static struct dl2_spread common_spread(const struct dl2_class_harm *harms,
                                       const struct dl2_mean_squares *squares, size_t variants,
                                       size_t classes)
{
    double sum = 0, weights = 0, freedom = 0;
    for (size_t v = 0; v < variants; v++) {
        const struct dl2_mean_squares *own = squares + v * classes;
        bool any = false;
        for (size_t c = 0; c < harms[v].count && !harms[v].diverged; c++)
            any |= varies(&own[c]);
        for (size_t c = 0; any && c < harms[v].count; c++) {
            if (!can_judge(&harms[v], &own[c]))
                continue;
            const double units = (double)own[c].units;
            const double weight = units * (double)(harms[v].pairs - 1);
            sum += weight * (own[c].seed - own[c].residual) / units;
            weights += weight;
            freedom += (double)(harms[v].pairs - 1);
        }
    }
    return (struct dl2_spread){.variance = weights > 0 ? fmax(0, sum / weights) : 0,
                               .freedom = fmin(COMMON_FREEDOM, freedom / 2)};
}

/* The chance of training in a class: its own variance between seeds, drawn towards that of all. */
static struct dl2_spread spread_of_training(const struct dl2_mean_squares *squares, size_t pairs,
                                            const struct dl2_spread *common)
{
    const double units = (double)squares->units, own = (double)pairs - 1;
    const double of_all = common->variance + squares->residual / units;
    const double freedom = own + common->freedom;
    const double variance = (own * squares->seed / units + common->freedom * of_all) / freedom;
    return (struct dl2_spread){.variance = variance / (double)pairs, .freedom = freedom};
}

/* The lower end of an interval, a fraction: see the header. */
static double lower_end(const struct dl2_mean_squares *squares, const struct dl2_spread *training,
                        const struct dl2_spread *both, double tail)
{
    const double units = (double)squares->units, loss = -squares->mean;
    const double quantile = dl2_student_quantile(tail, units - 1);
    const double of_training = dl2_spread_half(training, tail);
    /* (d - loss)^2 = of_training^2 + floor d (1 - d): images of which a share d is lost. */
    const double floor = quantile * quantile / units;
    const double a = 1 + floor, b = 2 * loss + floor, c = loss * loss - of_training * of_training;
    const double at_end = (b + sqrt(fmax(0, b * b - 4 * a * c))) / (2 * a);
    return -fmin(1, fmax(at_end, loss + dl2_spread_half(both, tail)));
}

/* A class loses no more recall than the original has: the upper end of that, a fraction, by
 * Wilson's interval. */
static double most_to_lose(const struct dl2_class_change *change, double tail)
{
    const double units = (double)change->units, recall = change->original / 100;
    const double quantile = dl2_student_quantile(tail, units - 1);
    const double floor = quantile * quantile / units;
    return fmin(1, (recall + floor / 2 + sqrt(floor * recall * (1 - recall) + floor * floor / 4)) /
                       (1 + floor));
}

/* Holm's step: the classes whose whole interval is below 0, at the level for those that are left.
 */
static void find_losers(struct dl2_class_harm *harm, const struct dl2_spread *spreads, double level)
{
    for (size_t before = SIZE_MAX; harm->losers != before;) {
        before = harm->losers;
        const double tail = level / (double)(harm->judged - before);
        for (size_t c = 0; c < harm->count; c++) {
            struct dl2_class_change *change = &harm->changes[c];
            if (change->loses || isinf(change->low) ||
                !(change->difference / 100 + dl2_spread_half(&spreads[c], tail) < 0))
                continue;
            change->loses = true;
            harm->losers++;
        }
        if (harm->losers == harm->judged)
            return;
    }
}

static int compare_changes(const void *a, const void *b)
{
    const struct dl2_class_change *x = a, *y = b;
    if (isinf(x->low) != isinf(y->low))
        return isinf(x->low) ? 1 : -1;
    if (isnan(x->difference) != isnan(y->difference))
        return isnan(x->difference) ? 1 : -1;
    if (x->difference < y->difference || x->difference > y->difference)
        return x->difference < y->difference ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

/* `spreads` has room for all classes. */
static void judge_variant(struct dl2_class_harm *harm, const struct dl2_mean_squares *squares,
                          const struct dl2_spread *common, double tail, struct dl2_spread *spreads)
{
    for (size_t c = 0; c < harm->count; c++) {
        struct dl2_class_change *change = &harm->changes[c];
        if (!can_judge(harm, &squares[c]))
            continue;
        const struct dl2_spread training = spread_of_training(&squares[c], harm->pairs, common);
        spreads[c] = dl2_spread_of_both(&squares[c], &training);
        change->low = 100 * fmax(lower_end(&squares[c], &training, &spreads[c], tail),
                                 -most_to_lose(change, tail));
        change->high = 100 * fmin(1, squares[c].mean + dl2_spread_half(&spreads[c], tail));
        harm->judged++;
    }
    if (!harm->judged)
        return;
    find_losers(harm, spreads, tail);
    qsort(harm->changes, harm->count, sizeof *harm->changes, compare_changes);
    harm->bounding = 0;
    for (size_t c = 1; c < harm->judged; c++)
        if (harm->changes[c].low < harm->changes[harm->bounding].low)
            harm->bounding = c;
    harm->bound = fmax(0, -harm->changes[harm->bounding].low);
}

struct dl2_class_harm *dl2_class_harm_make(const struct dl2_study *study,
                                           const struct dl2_analysis *analysis, size_t arch,
                                           const struct dl2_classes *classes)
{
    const size_t variants = study->variant_count, count = classes->count;
    struct dl2_class_harm *harms = dl2_keep(variants, sizeof *harms, "%zu variants", variants);
    DL2_AUTO_FREE struct dl2_mean_squares *squares =
        dl2_room(count, variants * sizeof *squares, "%zu classes of %zu variants", count, variants);
    DL2_AUTO_FREE struct dl2_spread *spreads =
        dl2_room(count, sizeof *spreads, "%zu classes", count);
    DL2_AUTO_FREE struct dl2_run_pair *pairs =
        dl2_room(study->run_count, sizeof *pairs, "%zu trainings", study->run_count);
    for (size_t v = 0; v < variants; v++) {
        const size_t found = dl2_pairs_find(study, study->archs[arch], v, pairs);
        measure_variant(&study->images[arch], classes, pairs, found, &harms[v],
                        squares + v * count);
        for (size_t i = 0; i < found; i++)
            harms[v].diverged |= pairs[i].own->diverged || pairs[i].original->diverged;
    }
    const struct dl2_spread common = common_spread(harms, squares, variants, count);
    for (size_t v = 0; v < variants; v++)
        judge_variant(&harms[v], squares + v * count, &common,
                      dl2_interval_tail(&analysis->question.looks, harms[v].pairs), spreads);
    return harms;
}

size_t dl2_class_harm_shown(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            const struct dl2_class_harm *harms)
{
    const size_t none = study->variant_count;
    const size_t pick = dl2_advice_pick(&analysis->smallest, study);
    if (pick < none && harms[pick].judged)
        return pick;
    size_t smallest = none;
    for (size_t v = 0; v < none; v++)
        if (harms[v].judged &&
            (smallest == none || study->variants[v].bytes < study->variants[smallest].bytes))
            smallest = v;
    return smallest;
}

enum { MAX_NAMES = 5 }; /* of a sentence */

static void say_losers(struct dl2_sentence *writer, const struct dl2_class_harm *harm,
                       const struct dl2_classes *classes)
{
    size_t written = 0;
    for (size_t c = 0; c < harm->judged && written < MAX_NAMES; c++)
        if (harm->changes[c].loses) {
            dl2_say(writer, "%s%s", dl2_joint(written, harm->losers),
                    classes->names[harm->changes[c].class]);
            written++;
        }
    if (harm->losers > written)
        dl2_say(writer, " and %zu more", harm->losers - written);
}

void dl2_class_harm_losers(const struct dl2_class_harm *harm, const struct dl2_classes *classes,
                           char *text, size_t size)
{
    struct dl2_sentence writer = {text, size, 0};
    text[0] = '\0';
    say_losers(&writer, harm, classes);
}

/* Is it left open whether a class loses all the recall that it has? */
static bool may_lose_all(const struct dl2_class_change *change)
{
    return -change->low >= change->original;
}

/* Says of which classes nothing is excluded, since they have too few images that the original's
 * network finds, and what is not excluded of the others. */
static void say_bounds(struct dl2_sentence *writer, const struct dl2_class_harm *harm,
                       const struct dl2_classes *classes)
{
    const struct dl2_class_change *bounding = NULL;
    size_t open = 0, written = 0;
    for (size_t c = 0; c < harm->judged; c++) {
        const struct dl2_class_change *change = &harm->changes[c];
        const bool all = may_lose_all(change);
        open += all;
        if (!all && (!bounding || change->low < bounding->low))
            bounding = change;
    }
    if (open)
        dl2_say(writer,
                "These images are too few to exclude that %zu class%s all %s recall: ", open,
                open == 1 ? " loses" : "es lose", open == 1 ? "its" : "their");
    for (size_t c = 0; c < harm->judged && written < MAX_NAMES; c++) {
        const struct dl2_class_change *change = &harm->changes[c];
        if (may_lose_all(change))
            dl2_say(writer, "%s%s (%.1f%% of %zu images)", dl2_joint(written++, open),
                    classes->names[change->class], change->original, change->images);
    }
    if (open > written)
        dl2_say(writer, " and %zu more", open - written);
    if (open)
        dl2_say(writer, ". ");
    if (!bounding)
        return;
    dl2_say(writer, open ? "Of the others they" : "These images");
    dl2_say(writer,
            " do not exclude a class that loses up to %.1f points: the lower end of the interval "
            "of %s, which has %zu validation images",
            fmax(0, -bounding->low), classes->names[bounding->class], bounding->images);
    if (bounding->units < bounding->images)
        dl2_say(writer, " in %zu groups", bounding->units);
    dl2_say(writer, ". In a class of few images a large loss may not show, so this is a limit, "
                    "wrong in at most 2.5%% of such studies, and not an estimate.");
}

void dl2_class_harm_say(const struct dl2_class_harm *harm, const struct dl2_classes *classes,
                        char *text, size_t size)
{
    const size_t unjudged = harm->count - harm->judged;
    struct dl2_sentence writer = {text, size, 0};
    if (harm->losers) {
        dl2_say(&writer, "%zu class%s shown to lose: ", harm->losers,
                harm->losers == 1 ? " is" : "es are");
        say_losers(&writer, harm, classes);
    } else {
        dl2_say(&writer, "No class is shown to lose");
    }
    dl2_say(&writer,
            ". The worst measured is %s (%s points of recall, top-1 within the class). The worst "
            "of %zu measurements is biased: that class probably loses less. ",
            classes->names[harm->changes[0].class],
            dl2_signed(&dl2_accuracy_top1, harm->changes[0].difference), harm->judged);
    say_bounds(&writer, harm, classes);
    if (unjudged)
        dl2_say(&writer,
                " %zu class%s fewer than two validation images (or groups of them): nothing is "
                "said of %s.",
                unjudged, unjudged == 1 ? " has" : "es have", unjudged == 1 ? "it" : "them");
}

const char *dl2_class_harm_brief(const struct dl2_class_harm *harm,
                                 const struct dl2_classes *classes)
{
    char losers[1024];
    dl2_class_harm_losers(harm, classes, losers, sizeof losers);
    const bool all = harm->judged && may_lose_all(&harm->changes[harm->bounding]);
    return dl2_text(
        "Worst class measured: %s, %s points of recall. %s; %s.",
        classes->names[harm->changes[0].class],
        dl2_signed(&dl2_accuracy_top1, harm->changes[0].difference),
        harm->losers ? dl2_text("Shown to lose: %s", losers) : "None is shown to lose",
        all ? "these images are too few to exclude that one loses all of its recall"
            : dl2_text("one that loses up to %.1f points is not excluded", harm->bound));
}
