/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searches for a target: JPEG's trials find what trying the file of every quality finds, for each
 * metric and rule; searches of other codecs and of sizes keep their promises.
 */
#include "config.h"

#include "tests/codec/sample_files.h"
#include "tests/unit.h"
#include "transcode/target/target_search.h"

#include <math.h>

enum { LOW = 31, HIGH = 44, SIDE = 80 };

static struct dl2_target_searcher searcher;
static struct dl2_image image, decoded, scratch;
static struct dl2_bytes file, out;

static int free_all(void **state)
{
    dl2_target_searcher_free(&searcher);
    dl2_image_free(&image);
    dl2_image_free(&decoded);
    dl2_image_free(&scratch);
    dl2_bytes_free(&file);
    dl2_bytes_free(&out);
    return 0;
}

static const struct dl2_encode_options defaults = DL2_ENCODE_DEFAULTS;

/* Scores the file of each quality from LOW to HIGH. */
static void score_all(const struct dl2_codec *codec, const struct dl2_metric *metric,
                      double scores[HIGH + 1])
{
    const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_encode_options encode = defaults;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_scorer *scorer;
    expect_ok(dl2_scorer_create(&scorer, &error), &error);
    dl2_scorer_set_reference(scorer, &image);
    for (encode.quality = LOW; encode.quality <= HIGH; encode.quality++) {
        struct dl2_score score;
        expect_ok(dl2_image_encode(codec, &image, &encode, &file, &error), &error);
        expect_ok(dl2_image_decode(file.data, file.size, &decode, &decoded, &scratch, &error),
                  &error);
        expect_ok(dl2_scorer_score(scorer, metric, &decoded, &score, &error), &error);
        scores[encode.quality] = score.value;
    }
    dl2_scorer_free(scorer);
}

/* The quality that a target is to have, by all scores: the lowest of equals. */
static int expected(const struct dl2_quality_target *target, const double scores[HIGH + 1])
{
    const double wanted = dl2_target_even(target, target->value);
    int best = LOW;
    for (int q = LOW; q <= HIGH && target->rule == DL2_TARGET_AT_LEAST; q++)
        if (dl2_target_meets(target, scores[q]))
            return q;
    for (int q = LOW; q <= HIGH; q++)
        if (fabs(dl2_target_even(target, scores[q]) - wanted) <
            fabs(dl2_target_even(target, scores[best]) - wanted))
            best = q;
    return best;
}

static void check_scan(const struct dl2_quality_target *target, const double scores[HIGH + 1])
{
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    const struct dl2_target_curve none = {.known = false};
    struct dl2_encode_options encode = defaults;
    struct dl2_target_result result;
    const struct dl2_target_job job = {&searcher, target,    &none, jpeg,
                                       &image,    &defaults, &out,  &result};
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_target_search(&job, &error), &error);
    encode.quality = expected(target, scores);
    if (result.quality != encode.quality)
        fail_msg("%s %g, rule %d: quality %d, not %d", target->name, target->value, target->rule,
                 result.quality, encode.quality);
    assert_true(result.score >= scores[encode.quality] && result.score <= scores[encode.quality]);
    if (target->rule == DL2_TARGET_AT_LEAST)
        assert_int_equal(result.met, dl2_target_meets(target, result.score));
    expect_ok(dl2_image_encode(jpeg, &image, &encode, &file, &error), &error);
    assert_int_equal(out.size, file.size);
    assert_memory_equal(out.data, file.data, file.size);
}

/* For scores between those of the qualities, and beyond all. */
static void trials_find_what_files_do(void **state)
{
    if (!dl2_codec_find("jpeg"))
        skip();
    for (unsigned m = 0; dl2_metric_at(m); m++) {
        const struct dl2_metric *const metric = dl2_metric_at(m);
        const uint32_t side = metric->min_side > SIDE ? metric->min_side : SIDE;
        double scores[HIGH + 1];
        sample_picture(&image, side, side + 7, m % 2 ? 3 : 1);
        score_all(dl2_codec_find("jpeg"), metric, scores);
        const int places[] = {LOW + 1, (LOW + HIGH) / 2, HIGH};
        for (unsigned i = 0; i < 4; i++)
            for (int rule = 0; rule < 2; rule++) {
                const double last = scores[HIGH], end = metric->lower_is_better ? 0.5 : 1;
                struct dl2_quality_target target = {
                    .name = metric->name,
                    .metric = metric,
                    .value = i < 3 ? (scores[places[i]] + scores[places[i] - 1]) / 2
                                   : end * (metric->of_mse ? last + 20 : last + (1 - last) / 2),
                    .low = LOW,
                    .high = HIGH,
                    .rule = (enum dl2_target_rule)rule,
                    .probes = 8,
                };
                if (metric->lower_is_better && i == 3)
                    target.value = last / 2;
                check_scan(&target, scores);
            }
    }
}

/* What is met is met, and nothing is missed that the ends of the range meet; limits are kept. */
static void searches_keep_their_promises(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    static const char *const targets[] = {"bytes=600", "bpp=2", "ssim=0.9", "ciede2000=3",
                                          "psnr_y=33"};
    for (size_t c = 0; dl2_codec_at(c); c++) {
        const struct dl2_codec *const codec = dl2_codec_at(c);
        if (!codec->encode || !codec->lossy)
            continue;
        for (unsigned i = 0; i < 4 * sizeof targets / sizeof *targets; i++) {
            struct dl2_quality_target target, rest = {
                                                  .low = LOW,
                                                  .high = HIGH + 30,
                                                  .rule = (enum dl2_target_rule)(i / 5 % 2),
                                                  .tolerance = i / 10 ? 0.2 : 0,
                                                  .probes = i / 10 ? 3 : 100,
                                              };
            struct dl2_target_curve curve = {.known = false};
            struct dl2_target_result result;
            const struct dl2_target_job job = {&searcher, &target,   &curve, codec,
                                               &image,    &defaults, &out,   &result};
            double evens[1][DL2_TARGET_SAMPLES];
            expect_ok(dl2_target_parse(targets[i % 5], &rest, &target, &error), &error);
            if (dl2_target_is_scanned(&target, codec))
                continue;
            sample_picture(&image, 32, 30 + i, 3);
            expect_ok(dl2_target_sample(&job, evens[0], &error), &error);
            dl2_target_curve_make(&curve, &target, (const double(*)[DL2_TARGET_SAMPLES])evens,
                                  i % 3 > 0);
            assert_int_equal(curve.known, i % 3 > 0);
            for (int q = 2; q <= 100; q++)
                assert_true(curve.even[q] > curve.even[q - 1]);
            expect_ok(dl2_target_search(&job, &error), &error);
            assert_in_range(result.probes, 1, rest.probes);
            assert_in_range(result.quality, target.low, target.high);
            if (target.rule == DL2_TARGET_AT_LEAST)
                assert_int_equal(result.met, dl2_target_meets(&target, result.score));
            if (!target.metric)
                assert_true(fabs(result.score * (strcmp(target.name, "bpp")
                                                     ? 1
                                                     : (double)image.width * image.height / 8) -
                                 (double)out.size) < 1e-6);
            if (result.met || rest.probes < 100)
                continue;
            /* Every quality misses, on the same side. */
            double score;
            expect_ok(
                dl2_target_try(&job, target.metric ? target.high : target.low, &score, &error),
                &error);
            if (target.rule == DL2_TARGET_AT_LEAST)
                assert_false(dl2_target_meets(&target, score));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trials_find_what_files_do),
        cmocka_unit_test(searches_keep_their_promises),
    };
    return cmocka_run_group_tests(tests, NULL, free_all);
}
