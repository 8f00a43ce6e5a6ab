/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics and the recommendation, against figures worked out by hand. */
#include "common/keep.h"
#include "common/memory.h"
#include "report/advice.h"
#include "report/brief.h"
#include "report/page/document.h"
#include "report/speed.h"
#include "tests/unit.h"

#include <math.h>
#include <stdbool.h>

#define T2 4.302652729911275 /* Student's t, 97.5%, 2 degrees of freedom */
#define T3 3.182446305284263 /* 3 */
/* With a quarter of a degree more, which is the weight of all variants together. */
#define T1Q 8.027951388514332
#define T2Q 3.8754802232558645
#define T3Q 3.0483398701868105

struct row {
    const char *name;
    double ratio, load_rate;
    size_t seeds;
    double accuracy[4]; /* percent; seeds 1, 2, ... */
    uint64_t first_seed;
};

/* The study of the last make_study(). */
static struct dl2_study_variant variants[8];
static struct dl2_study_run runs[32];
static char *archs[] = {"small"};
static struct dl2_study study = {
    .variants = variants, .runs = runs, .archs = archs, .arch_count = 1};

/* What the last judge() found. */
static struct dl2_analysis analysis;
static struct dl2_speeds speeds;
static struct dl2_brief brief;
static const struct dl2_advice *const smallest = &analysis.smallest;
static const struct dl2_advice *const fastest = &speeds.fastest[DL2_SPEED_LOAD];

static void make_study(const struct row *rows, size_t count)
{
    study.variant_count = count;
    study.run_count = 0;
    for (size_t v = 0; v < count; v++) {
        variants[v] = (struct dl2_study_variant){.name = (char *)rows[v].name,
                                                 .codec = "jpeg",
                                                 .bytes = 1e6 * rows[v].ratio,
                                                 .ratio = rows[v].ratio,
                                                 .load_rate = rows[v].load_rate};
        for (size_t s = 0; s < rows[v].seeds; s++)
            runs[study.run_count++] =
                (struct dl2_study_run){.variant = v,
                                       .arch = "small",
                                       .seed = (rows[v].first_seed ? rows[v].first_seed : 1) + s,
                                       .accuracy = rows[v].accuracy[s] / 100,
                                       .top5 = 0.9};
    }
}

static void judge(double tolerance, struct dl2_looks looks)
{
    const struct dl2_question question = {.tolerance = tolerance, .looks = looks, .draws = 200};
    analysis = dl2_analyze(&study, "small", &question);
    speeds = dl2_speeds_analyze(&study, &analysis, NAN);
    brief = dl2_brief_make(&study, &analysis, &speeds);
}

static const struct dl2_looks once = {0, {0}, {0}};

static void analyze(const struct row *rows, size_t count, double tolerance)
{
    make_study(rows, count);
    judge(tolerance, once);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-3)) /* the table of t has three decimals */
        fail_msg("%.12g, not %.12g", value, expected);
}

static void test_mean(void **state)
{
    double three[] = {3, 1, 2}, one[] = {5};
    const struct dl2_estimate a = dl2_estimate_mean(three, 3);
    assert_near(a.mean, 2);
    assert_near(a.half, T2 / sqrt(3)); /* standard deviation 1 */
    const struct dl2_estimate b = dl2_estimate_mean(one, 1);
    assert_near(b.mean, 5);
    assert_true(isinf(b.half));
    assert_true(isnan(dl2_estimate_mean(one, 0).mean));
}

/* One variant: the block design must be the paired t-test. Differences -1, 0, -0.5. */
static void test_paired(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 75}, 0},
                               {"jpeg-50", 0.1, 200, 3, {69, 72, 74.5}, 0}};
    analyze(rows, 2, 1);
    const struct dl2_comparison *c = &analysis.comparisons[1];
    assert_int_equal(analysis.noise.freedom, 2);
    assert_near(c->difference, -0.5);
    assert_near(c->half, T2 * 0.5 / sqrt(3));
    assert_int_equal(c->pairs, 3);
    assert_int_equal(c->verdict, DL2_VERDICT_LIKELY);
    assert_near(c->accuracy.mean, (69 + 72 + 74.5) / 3);
    assert_int_equal(analysis.comparisons[0].verdict, DL2_VERDICT_NONE);
}

/*
 * Two variants, three seeds: residuals of variant + seed. Table (rows raw, a, b; columns seeds)
 *   70 72 74 | 69 71 76 | 68 73 72: means 72, 72, 71; of seeds 69, 72, 74; of all 71 2/3.
 * Residuals times 3: raw 2 -1 -1; a -1 -4 5; b -1 5 -4. Squares: 6 + 42 + 42 = 90, over 9: 10.
 */
static void test_block(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 74}, 0},
                               {"a", 0.1, 200, 3, {69, 71, 76}, 0},
                               {"b", 0.05, 300, 3, {68, 73, 72}, 0}};
    analyze(rows, 3, 1);
    assert_int_equal(analysis.noise.freedom, 4);
    assert_near(analysis.noise.deviation, sqrt(10.0 / 4));
    assert_near(analysis.comparisons[1].difference, 0);
    assert_near(analysis.comparisons[2].difference, -1);
    /* b's differences -2, 1, -2 have a variance of 3; all variants together, as a quarter of a
     * degree of freedom, say 2 x 10/4. */
    assert_near(analysis.comparisons[2].half, T2Q * sqrt((2 * 3 + 1.25) / 2.25 / 3));
}

/* No seed in common: Welch's standard error, the smaller sample's degrees of freedom. */
static void test_unpaired(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 71, 72}, 0},
                               {"a", 0.1, 200, 3, {70, 72, 74}, 10}};
    analyze(rows, 2, 1);
    const struct dl2_comparison *c = &analysis.comparisons[1];
    assert_int_equal(c->pairs, 0);
    assert_near(c->difference, 1);
    assert_near(c->half, T2 * sqrt(1.0 / 3 + 4.0 / 3));
}

/*
 * A variant that lacks a seed: what it has counts. Row + seed fitted to the eight cells leaves
 * squares of 7/4 over 8 - 3 - 3 + 1 degrees of freedom.
 */
static void test_missing_seed(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 75}, 0},
                               {"a", 0.1, 200, 3, {69, 72, 73}, 0},
                               {"b", 0.2, 200, 2, {69, 73}, 0}};
    analyze(rows, 3, 1);
    assert_int_equal(analysis.noise.freedom, 3);
    assert_near(analysis.noise.deviation, sqrt(1.75 / 3));
    assert_near(analysis.comparisons[1].half, T2Q * sqrt((2 * 1 + 0.5 * 1.75 / 3) / 2.25 / 3));
    assert_near(analysis.comparisons[2].half, T1Q * sqrt((1 * 2 + 0.5 * 1.75 / 3) / 1.25 / 2));
    assert_int_equal(analysis.comparisons[2].pairs, 2);
    assert_near(analysis.comparisons[2].difference, 0);
}

static void assert_contains(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void assert_says(const struct dl2_advice *advice, const char *words)
{
    assert_contains(advice->text, words);
}

/* Its table, with an end of line behind each row; what its star means follows. */
static void assert_table(const char *expected)
{
    const char *table = "";
    for (size_t i = 0; i < brief.line_count; i++)
        table = dl2_text("%s%s\n", table, brief.lines[i]);
    assert_string_equal(table, dl2_text("%s* By the chance of training alone; that of the choice "
                                        "of images is not known.\n",
                                        expected));
}

/* All noise is equal in all rows, so that residuals are 0 and intervals are points. */
static void test_advice_sure(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 2, {70, 71}, 0},
                               {"jpeg-10", 0.04, 400, 2, {60, 61}, 0},
                               {"jpeg-50", 0.1, 300, 2, {69.5, 70.5}, 0},
                               {"jpeg-85", 0.2, 200, 2, {70, 71}, 0},
                               {"jp2-50", 0.08, 20, 2, {69.4, 70.4}, 0}};
    analyze(rows, 5, 1);
    assert_int_equal(smallest->sure, 4);
    assert_int_equal(smallest->likely, 5);
    assert_int_equal(fastest->sure, 2);
    assert_string_equal(
        brief.use, "Use jp2-50: 12.5 times smaller, and the smallest that is shown to lose less "
                   "than 1 point of top-1 accuracy; jpeg-50, which is within, loads 3 times as "
                   "fast as the original.");
    assert_string_equal(brief.open, "Nothing is open.");
    assert_table("                 top-1 accuracy           loading,\n"
                 "variant   bytes  points (95% interval)    images/s/core  verdict\n"
                 "original  100%   70.5%                    100\n"
                 "jp2-50    8%     −0.6 (−0.6 to −0.6)*     20 (0.2x)      within\n"
                 "jpeg-50   10%    −0.5 (−0.5 to −0.5)*     300 (3x)       within\n"
                 "jpeg-10   4%     −10.0 (−10.0 to −10.0)*  400 (4x)       worse\n"
                 "jpeg-85   20%    0.0 (0.0 to 0.0)*        200 (2x)       within\n");
    assert_says(fastest, "jpeg-50 is the fastest to load of those within 1 point: 300 images/s a "
                         "core, 3 times the original's (measured once, so without an interval).");
    assert_int_equal(analysis.comparisons[1].verdict, DL2_VERDICT_BEYOND);
}

static void test_advice_likely(void **state)
{
    /* As test_paired: -0.5 with +-1.24. */
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 75}, 0},
                               {"jpeg-50", 0.1, 50, 3, {69, 72, 74.5}, 0}};
    analyze(rows, 2, 1);
    assert_int_equal(smallest->sure, 2);
    assert_int_equal(smallest->likely, 1);
    assert_string_equal(brief.use, "Keep the original: no smaller variant is shown to lose less "
                                   "than 1 point of top-1 accuracy.");
    assert_table("                 top-1 accuracy         loading,\n"
                 "variant   bytes  points (95% interval)  images/s/core  verdict\n"
                 "original  100%   72.3%                  100\n"
                 "jpeg-50   10%    −0.5 (−1.7 to +0.7)*   50 (0.5x)      could be\n");
    /* The margin, 0.5, is 1.7 standard errors of two degrees of freedom: by Student's t the true
     * change is within with 89%, and 32 seeds that vary as little would show nearly all of it. */
    assert_contains(brief.open, "Open: jpeg-50. A new study of 32 seeds would show it with a "
                                "probability of only 7");
    assert_contains(brief.open, "%: jpeg-50 was measured 0.5 points from the limit.");
    assert_int_equal(analysis.needed.few, 0);
    const struct dl2_outlook outlook = dl2_outlook_find(&study, &analysis, 1);
    assert_near(outlook.margin, 0.5);
    assert_true(isnan(outlook.of_images) && outlook.chance > 0.7 && outlook.chance < 0.8);
    assert_says(fastest, "No variant was measured to be faster to load than the original.");

    analyze(rows, 2, 2); /* the same figures, a wider tolerance */
    assert_int_equal(smallest->sure, 1);
    assert_contains(brief.use, "shown to lose less than 2 points");
}

static void test_advice_one_seed(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 1, {70}, 0}, {"jpeg-50", 0.1, 200, 1, {70.2}, 0}};
    analyze(rows, 2, 1);
    assert_int_equal(smallest->sure, 2);
    assert_int_equal(smallest->likely, 1);
    assert_string_equal(brief.open,
                        "Open: jpeg-50. Train from several seeds to tell chance from effect.");
    assert_contains(brief.lines[3], "+0.2 (no interval)");
}

static void test_advice_none(void **state)
{
    const struct row rows[] = {{"raw", 1, NAN, 2, {70, 71}, 0},
                               {"jpeg-10", 0.04, NAN, 2, {60, 61}, 0},
                               {"png", 1.1, NAN, 2, {70, 71}, 0}};
    analyze(rows, 3, 1);
    assert_int_equal(smallest->sure, 3);
    assert_int_equal(smallest->likely, 3);
    assert_string_equal(
        brief.use,
        "No smaller variant is shown to lose less than 1 point, and each one's own interval lies "
        "beyond that: keep the original.");
    assert_says(fastest, "speed was not measured");

    const struct row untrained[] = {{"raw", 1, 100, 0, {0}, 0}, {"a", 0.1, 200, 2, {60, 61}, 0}};
    analyze(untrained, 2, 1);
    assert_contains(brief.use, "The original was not trained on");
    assert_int_equal(brief.line_count, 0);
    assert_int_equal(analysis.comparisons[1].verdict, DL2_VERDICT_NONE);
}

/* Two seeds and four images whose differences are 1 0 -1 1 and 1 1 -1 0. */
static void test_predictions(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 2, {25, 25}, 0}, {"a", 0.1, 200, 2, {50, 50}, 0}};
    float original[2][5] = {{0, 0, 1, 0, 1}, {0, 0, 1, 0, NAN}};
    float own[2][5] = {{1, 0, 0, 1, 1}, {1, 1, 0, 0, 1}};
    make_study(rows, 2);
    for (size_t s = 0; s < 2; s++) {
        runs[s].outcome = original[s];
        runs[2 + s].outcome = own[s];
        runs[s].images = runs[2 + s].images = 5;
    }
    judge(1, once);
    const struct dl2_comparison *c = &analysis.comparisons[1];
    assert_int_equal(c->images, 4); /* the fifth could not be read everywhere */
    assert_near(c->difference, 25);
    assert_near(c->half, 0); /* alike in both seeds */
    /* Sums of images 2 1 -2 1, of all 2; level 1/2, images 10/2 - 1/2, all squares 6. */
    const double b = 4.5 / 3 / 8 + 1.0 / 16, r = (6 - 0.5 - 4.5) / 3 / 8;
    assert_near(c->both.variance, 0);
    assert_near(c->both.added, 1e4 * (b - r));
    assert_near(c->both.added_freedom, 3);
    assert_near(dl2_spread_half(&c->both, 0.025), T3 * 100 * sqrt(b - r));
    assert_true(isinf(c->half_both)); /* above 100 points, so it excludes nothing */
    assert_true(c->low < 25 && c->high > 25 && c->low >= -100 && c->high <= 100); /* drawn */
    assert_int_equal(brief.line_count, 4);                                        /* no star */
    /* The first and last of the four belong together: three groups; the image that is absent and
     * the group that only it has don't count. */
    uint32_t group[] = {2, 1, 3, 2, 0};
    struct dl2_prediction_table images = {.group = group, .group_count = 4};
    study.images = &images;
    judge(1, once);
    c = &analysis.comparisons[1];
    assert_int_equal(c->units, 3);
    assert_near(c->difference, 25);
    /* Sums of groups less 1/4 an image: 3/2 -1/4 -5/4 and 1/2 3/4 -5/4. Of both seeds 2 1/2 -5/2,
     * whose squares / 2 are 21/4; all squares are 25/4, and seeds have none. */
    assert_near(c->both.added, 1e4 * (9.0 / 16 * (21.0 / 4 - 1) / 2 / 6 + 1.0 / 16));
    assert_near(c->both.added_freedom, 2);
    study.images = NULL;
    /* On the original's images the other way round: as if nothing were lost. */
    for (size_t s = 0; s < 2; s++) {
        runs[2 + s].original_accuracy = runs[s].accuracy;
        runs[2 + s].original_outcome = original[s];
        runs[2 + s].on_original = true;
    }
    const struct dl2_question question = {.tolerance = 1, .on_original = true};
    analysis = dl2_analyze(&study, "small", &question);
    assert_near(analysis.comparisons[1].difference, 0);
    assert_near(analysis.comparisons[1].accuracy.mean, 25);
    runs[3].on_original = false; /* not validated on it */
    analysis = dl2_analyze(&study, "small", &question);
    assert_int_equal(analysis.comparisons[1].pairs, 1);
    judge(1, once); /* both questions */
    assert_near(analysis.comparisons[1].difference, 25);
    assert_near(analysis.on_original[1].difference, 0);
    assert_contains(dl2_changes_text(&analysis, 1),
                    "; validated on the original's images it changes by 0.0 points (");
    runs[3].outcome = NULL; /* one run without predictions: as if there were none */
    judge(1, once);
    assert_int_equal(analysis.comparisons[1].images, 0);
    assert_contains(brief.lines[4], "of training alone");
}

/* One variant is ten times as noisy: what it is judged by is mostly its own. */
static void test_unequal_noise(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 4, {70, 70.1, 70.2, 70}, 0},
                               {"a", 0.5, 200, 4, {70, 70.2, 70.2, 70.1}, 0},
                               {"b", 0.4, 200, 4, {70.1, 70.1, 70.3, 70}, 0},
                               {"c", 0.3, 200, 4, {70.1, 70.2, 70.2, 70}, 0},
                               {"d", 0.2, 200, 4, {66, 74, 69, 71.5}, 0}};
    analyze(rows, 5, 1);
    const double together = analysis.noise.deviation * analysis.noise.deviation / 2; /* 2 / 4 */
    const struct dl2_comparison *a = &analysis.comparisons[1], *d = &analysis.comparisons[4];
    assert_near(a->difference, 0.05);
    assert_near(a->half, T3Q * sqrt((0.01 + together) / 3.25 / 4)); /* differences 0 0.1 0 0.1 */
    /* Differences -4 3.9 -1.2 1.5: their squares, less their mean's. */
    assert_near(d->half, T3Q * sqrt((34.9 - 4 * 0.05 * 0.05 + together) / 3.25 / 4));
    assert_true(d->half > 1.4 * T3Q * sqrt(4 * together / 4));
    assert_int_equal(d->verdict, DL2_VERDICT_LIKELY);
}

/* Seeds are added until it is decided: after 2 of 2, 3, 4 for the one, not yet for the other. */
static void test_looks(void **state)
{
    struct dl2_looks looks = {3, {2, 3, 4}, {0}};
    dl2_looks_plan(&looks, 0, 1);
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 71, 72}, 0},
                               {"a", 0.5, 200, 2, {70.01, 71}, 0},
                               {"b", 0.4, 200, 3, {69.99, 71, 71.02}, 0},
                               {"c", 0.3, 200, 2, {60, 61.01}, 0},
                               {"d", 0.2, 200, 2, {69, 70.01}, 0}};
    make_study(rows, 5);
    judge(1, looks);
    assert_int_equal(analysis.comparisons[1].verdict, DL2_VERDICT_WITHIN);
    assert_int_equal(analysis.comparisons[1].decided, 2);
    assert_int_equal(dl2_analysis_seeds_wanted(&analysis, 1), 0);
    assert_int_equal(analysis.comparisons[2].verdict, DL2_VERDICT_WITHIN);
    assert_int_equal(analysis.comparisons[3].verdict, DL2_VERDICT_BEYOND);
    assert_int_equal(analysis.comparisons[3].decided, 2);
    /* Smaller than what is beyond: it can't be claimed, however good. */
    assert_int_equal(analysis.comparisons[4].decided, 0);
    assert_int_equal(dl2_analysis_seeds_wanted(&analysis, 4), 0);

    /* One that is neither: it wants the next look's seeds. */
    runs[5].accuracy = 0.6903; /* b's, almost 1 below the original's */
    runs[6].accuracy = 0.7002;
    runs[7].accuracy = 0.7104;
    judge(1, looks);
    assert_int_equal(analysis.comparisons[1].decided, 2);
    assert_int_equal(analysis.comparisons[2].decided, 0);
    assert_int_equal(dl2_analysis_seeds_wanted(&analysis, 2), 4);

    /* It waits for a larger file's verdict. */
    runs[3].accuracy = 0.6904;
    runs[4].accuracy = 0.7003;
    judge(1, looks);
    assert_int_equal(analysis.comparisons[1].decided, 0);
    assert_int_equal(dl2_analysis_seeds_wanted(&analysis, 1), 3);
    assert_int_equal(dl2_analysis_seeds_wanted(&analysis, 2), 0);
}

/* What stands in the page's document, from the tag to the next. */
static json_t *document_of(const struct dl2_bytes *html)
{
    static const char tag[] = "<script type=\"application/json\" id=\"document\">";
    const char *at = memmem(html->data, html->size, tag, strlen(tag));
    assert_non_null(at);
    at += strlen(tag);
    const char *end = memchr(at, '<', (size_t)((const char *)html->data + html->size - at));
    assert_memory_equal(end, "</script>", 9);
    return json_loadb(at, (size_t)(end - at), 0, NULL);
}

static void test_document(void **state)
{
    static const char hostile[] = "</script><!--<script>&amp;\"b\" 'c'\\\x01\xff é";
    static const char kept[] = "</script><!--<script>&amp;\"b\" 'c'\\\x01\xef\xbf\xbd é";
    json_auto_t *document = json_object();
    json_t *section = dl2_block_append(document, "sections", json_object());
    assert_true(dl2_block_is_empty(section));
    json_t *text = dl2_block_text(section, "note", "%s", hostile);
    dl2_block_say(text, "%s", "");
    dl2_block_mark(text, "strong", "%s", hostile);
    dl2_block_say(text, "%d", 1);
    dl2_block_say(text, "%d", 2);
    json_t *table = dl2_table_add(section, "a|b\nc|<d");
    dl2_table_row(table, hostile);
    dl2_table_number(table, 1.25, 1);
    dl2_table_badge(dl2_table_value(table, NAN, "%s", "-"), DL2_VERDICT_BEYOND, "%s", "x");
    struct dl2_bytes html = DL2_BYTES_INIT;
    dl2_document_render(document, &html);
    json_auto_t *shown = document_of(&html);
    assert_true(json_equal(shown, document));
    json_auto_t *expected = json_pack(
        "{s:[{s:[{s:s, s:[s, {s:s}, s]}, {s:s, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}], "
        "s:[{s:[{s:s}, {s:f, s:s}, {s:n, s:s, s:{s:s, s:s}}]}]}]}]}",
        "sections", "blocks", "kind", "note", "text", kept, "strong", kept, "12", "kind", "table",
        "columns", "label", "a", "type", "text", "label", "b\nc", "type", "number", "label", "d",
        "type", "text", "rows", "cells", "text", kept, "value", 1.25, "text", "1.2", "value",
        "text", "-", "badge", "verdict", "beyond", "text", "x");
    assert_true(json_equal(shown, expected));
    dl2_bytes_free(&html);
}

static int free_analysis(void **state)
{
    dl2_free_kept();
    return 0;
}

static void assert_words(const struct dl2_accuracy_kind *kind, const char *text, const char *words)
{
    assert_string_equal(dl2_accuracy_words(kind, text), words);
}

static void test_words(void **state)
{
    (void)state;
    const struct dl2_accuracy_kind share = {
        .name = "mAP", .unit = "points", .is_foreign = true, .is_percent = true};
    const struct dl2_accuracy_kind loss = {.name = "accuracy loss",
                                           .unit = "nats",
                                           .is_foreign = true,
                                           .is_lower_better = true,
                                           .digits = 2};
    const struct dl2_accuracy_kind bare = {.name = "AUC", .unit = "", .is_foreign = true};
    const struct dl2_accuracy_kind as_it_is = {
        .name = "top-1", .unit = "points", .is_percent = true, .is_as_it_is = true};
    const char *gains = "gains %.1f points (%.1f to %.1f)", *in = "are in points of accuracy";
    const char *falls = "Accuracy does not rise: an accuracy; neighbors that fall";
    assert_words(&dl2_accuracy_top1, falls, falls);
    assert_words(&share, gains, gains);
    assert_words(&share, in, "are in points of mAP");
    assert_words(&share, falls, "mAP does not rise: a value of mAP; neighbors that fall");
    assert_words(&loss, gains, "is better by %.3f nats (%.3f to %.3f)");
    assert_words(&loss, in, "are in nats of accuracy loss");
    assert_words(&loss, falls,
                 "accuracy loss does not fall: a value of accuracy loss; neighbors that rise");
    assert_words(&bare, gains, "gains %.1f (%.1f to %.1f)");
    assert_words(&bare, in, "are in AUC");
    assert_words(&bare, "against, inaccuracy, pointsize", "against, inaccuracy, pointsize");
    assert_words(&as_it_is, "It was trained on.", "It was evaluated.");
    assert_words(&as_it_is, "was trained on the original", "was trained on the original");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),          cmocka_unit_test(test_paired),
        cmocka_unit_test(test_block),         cmocka_unit_test(test_unpaired),
        cmocka_unit_test(test_missing_seed),  cmocka_unit_test(test_advice_sure),
        cmocka_unit_test(test_advice_likely), cmocka_unit_test(test_advice_one_seed),
        cmocka_unit_test(test_advice_none),   cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_unequal_noise), cmocka_unit_test(test_looks),
        cmocka_unit_test(test_document),      cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, free_analysis);
}
