/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/random.h"
#include "tests/train/schedule_vectors.h"
#include "tests/unit.h"
#include "train/mixup.h"
#include "train/schedule.h"
#include "train/several/budget.h"

#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void agrees(const struct dl2_schedule *schedule, const double *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_float_equal(dl2_schedule_lr(schedule, (double)i), expected[i], 1e-12);
}

static void policies_equal_pytorch(void **state)
{
    struct dl2_schedule schedule = {DL2_LR_COSINE, 0.4, 0.01, 10, 0, 1};
    agrees(&schedule, torch_cosine, COUNT(torch_cosine));
    schedule.policy = DL2_LR_LINEAR;
    agrees(&schedule, torch_linear, COUNT(torch_linear));
    schedule.policy = DL2_LR_EXPONENTIAL;
    agrees(&schedule, torch_exponential, COUNT(torch_exponential));
    schedule = (struct dl2_schedule){DL2_LR_STEP, 0.4, 0, 90, 0, 1};
    agrees(&schedule, torch_step, COUNT(torch_step));
    schedule = (struct dl2_schedule){DL2_LR_STEP, 0.4, 0, 90, 5, 1};
    agrees(&schedule, torch_warmup, COUNT(torch_warmup));
}

/* (DL)2: warm-up lr (e + 1) / W, then cosine over what is left; worked out by hand for lr 1, W 4,
 * 12 epochs. */
static void warmup_comes_first(void **state)
{
    struct dl2_schedule schedule = {DL2_LR_COSINE, 1, 0, 12, 4, 1};
    const double angle = acos(-1) / 8, c = cos(angle) / 2, s = sin(angle) / 2, root = sqrt(0.125);
    const double expected[] = {0.25,    0.5, 0.75,    1,          1,       0.5 + c, 0.5 + root,
                               0.5 + s, 0.5, 0.5 - s, 0.5 - root, 0.5 - c, 0};
    agrees(&schedule, expected, COUNT(expected));
    /* By the step, the rate moves within an epoch and reaches the peak at
     * the warm-up's last step. */
    schedule.interval = 0.1;
    assert_float_equal(dl2_schedule_lr(&schedule, 0), 0.025, 1e-12);
    assert_float_equal(dl2_schedule_lr(&schedule, 3.9), 1, 1e-12);
    assert_true(dl2_schedule_lr(&schedule, 4.5) < 1);
    assert_true(dl2_schedule_lr(&schedule, 4.6) < dl2_schedule_lr(&schedule, 4.5));
}

static void ends_where_it_should(void **state)
{
    for (int policy = DL2_LR_COSINE; policy <= DL2_LR_EXPONENTIAL; policy++) {
        struct dl2_schedule schedule = {(enum dl2_lr_policy)policy, 0.5, 0.02, 2.7, 0.3, 0.01};
        assert_float_equal(dl2_schedule_lr(&schedule, 2.7), 0.02, 1e-12);
        assert_float_equal(dl2_schedule_lr(&schedule, 99), 0.02, 1e-12);
        double last = dl2_schedule_lr(&schedule, 0.3);
        assert_float_equal(last, 0.5, 1e-12);
        for (double at = 0.3; at < 3; at += 0.01) {
            double lr = dl2_schedule_lr(&schedule, at);
            assert_true(lr <= last && lr >= 0.02 - 1e-12);
            last = lr;
        }
    }
    struct dl2_schedule schedule = {DL2_LR_EXPONENTIAL, 0.5, 0, 10, 0, 1};
    assert_float_equal(dl2_schedule_lr(&schedule, 10), 0.0005, 1e-12);
}

/*
 * A simulated run: steps of `step` seconds (noisy), a hundred an epoch, validations of `validate`
 * seconds. Returns the seconds used; *epochs is how far it came.
 */
static double simulate(double seconds, double every, double step, double validate, double *epochs)
{
    struct dl2_budget budget = {
        .seconds = seconds, .validate_every = every, .validate_guess = 0.9 * validate};
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, 0);
    double elapsed = 0, position = 0, validated = -1;
    for (int i = 0; i < 100000; i++) {
        double total = dl2_budget_epochs(&budget, position, elapsed);
        if (position >= total - 0.005)
            break;
        double took = step * (0.7 + 0.6 * dl2_random_uniform(&random)) + (i == 0 ? 10 * step : 0);
        elapsed += took;
        position = (i + 1) * 0.01;
        dl2_budget_trained(&budget, 0.01, took);
        if (every > 0 && fmod(position + 1e-9, every) < 2e-9 && validate > 0 &&
            position < dl2_budget_epochs(&budget, position, elapsed) - 0.005) {
            elapsed += validate;
            validated = position;
            dl2_budget_validated(&budget, validate);
        }
    }
    *epochs = position;
    return validated < position ? elapsed + validate : elapsed;
}

static void a_budget_is_kept_and_used(void **state)
{
    static const struct {
        double seconds, every, step, validate;
    } runs[] = {
        {600, 1, 0.1, 2},   {600, 1, 0.1, 0},  {600, 1, 0.01, 0.5}, {60, 1, 0.1, 3},
        {20, 1, 0.1, 2},    {5, 1, 0.1, 1},    {600, 2, 0.1, 30},   {600, 0, 0.1, 20},
        {3600, 1, 1.0, 20}, {300, 1, 0.5, 20},
    };
    for (size_t i = 0; i < COUNT(runs); i++) {
        double epochs;
        double used =
            simulate(runs[i].seconds, runs[i].every, runs[i].step, runs[i].validate, &epochs);
        assert_true(used <= runs[i].seconds);
        assert_true(epochs > 0);
        /* What may stay unused: the reserve, and a validation that no
         * longer fits before the last. */
        assert_true(used >= runs[i].seconds * 0.98 - 2 * runs[i].validate);
    }
}

static void a_budget_without_a_speed_knows_nothing(void **state)
{
    struct dl2_budget budget = {.seconds = 10};
    assert_true(isinf(dl2_budget_epochs(&budget, 0, 0)));
    for (int i = 0; i < 5; i++)
        dl2_budget_trained(&budget, 0.1, 1);
    assert_float_equal(dl2_budget_epochs(&budget, 0.1, 1), 0.1 + (9.9 - 1) / 10, 1e-9);
    /* Time that is over ends the run where it is. */
    assert_float_equal(dl2_budget_epochs(&budget, 0.5, 11), 0.5, 1e-9);
}

/* Beta(a, a): mean 1/2, variance 1 / (4 (2 a + 1)). */
static void mixup_draws_from_beta(void **state)
{
    static const double alphas[] = {0.05, 0.2, 1, 3};
    for (size_t i = 0; i < COUNT(alphas); i++) {
        double sum = 0, squares = 0;
        const int draws = 20000;
        uint32_t partner[7];
        for (int step = 0; step < draws; step++) {
            double share = dl2_mixup_draw(5, (uint64_t)step, alphas[i], partner, 7);
            assert_true(share >= 0 && share <= 1);
            sum += share;
            squares += (share - 0.5) * (share - 0.5);
            unsigned seen = 0;
            for (int k = 0; k < 7; k++)
                seen |= 1u << partner[k];
            assert_int_equal(seen, 127);
        }
        double variance = 1 / (4 * (2 * alphas[i] + 1));
        assert_float_equal(sum / draws, 0.5, 0.015);
        assert_float_equal(squares / draws, variance, 0.03 * variance);
    }
    uint32_t a[5], b[5];
    assert_true(dl2_mixup_draw(1, 2, 0.4, a, 5) == dl2_mixup_draw(1, 2, 0.4, b, 5));
    assert_memory_equal(a, b, sizeof a);
    assert_true(dl2_mixup_draw(1, 2, 0.4, a, 5) != dl2_mixup_draw(1, 3, 0.4, b, 5));
}

/*
 * The rectangle's mean area, which edges cut down: a side s of the image's has a mean of s - s^2 /
 * 4 within the image, and with alpha 1, where s^2 is uniform, its square has the mean 77 / 240.
 * With both, each comes for half of the batches.
 */
static void cutmix_draws_rectangles(void **state)
{
    enum { SIDE = 224, DRAWS = 20000 };
    uint32_t partner[3];
    double sum = 0;
    unsigned cuts = 0;
    for (uint64_t step = 0; step < DRAWS; step++) {
        const struct dl2_mix mix = dl2_mix_draw(5, step, 0, 1, SIDE, SIDE, partner, 3);
        assert_true(mix.cuts && mix.x + mix.width <= SIDE && mix.y + mix.height <= SIDE);
        assert_float_equal(mix.share, 1 - (double)mix.width * mix.height / (SIDE * SIDE), 1e-12);
        sum += 1 - mix.share;
        const struct dl2_mix both = dl2_mix_draw(5, step, 0.2, 1, SIDE, SIDE, partner, 3);
        cuts += both.cuts;
        uint32_t again[3];
        if (!both.cuts)
            assert_true(both.share == dl2_mixup_draw(5, step, 0.2, again, 3));
    }
    assert_float_equal(sum / DRAWS, 77.0 / 240, 0.01);
    assert_float_equal((double)cuts / DRAWS, 0.5, 0.02);
}

/* The rectangle comes to every frame of a clip. */
static void cutmix_pastes_in_every_frame(void **state)
{
    enum { SIDE = 5, FRAMES = 3, CLIPS = 2 };
    static const uint32_t partner[CLIPS] = {1, 0};
    const struct dl2_mix mix = {.cuts = true, .x = 1, .y = 2, .width = 3, .height = 2};
    uint8_t clips[CLIPS][FRAMES][SIDE][SIDE], spare[SIDE];
    (void)state;
    for (int i = 0; i < CLIPS; i++)
        for (int f = 0; f < FRAMES; f++)
            memset(clips[i][f], 10 * i + f, sizeof clips[i][f]);
    dl2_mix_paste(&mix, &clips[0][0][0][0], FRAMES, SIDE, SIDE, 1, partner, CLIPS, spare);
    for (int i = 0; i < CLIPS; i++)
        for (int f = 0; f < FRAMES; f++)
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++) {
                    const bool within = x >= 1 && x < 4 && y >= 2 && y < 4;
                    assert_int_equal(clips[i][f][y][x], 10 * (within ? 1 - i : i) + f);
                }
}

/* Images of one value each, in permutations of cycles of one to four. */
static void cutmix_pastes_the_partner(void **state)
{
    enum { SIDE = 5, CHANNELS = 3, IMAGES = 8 };
    static const uint32_t partner[IMAGES] = {2, 1, 5, 7, 4, 0, 3, 6};
    const struct dl2_mix mix = {.cuts = true, .x = 1, .y = 2, .width = 3, .height = 2};
    uint8_t images[IMAGES][SIDE][SIDE][CHANNELS], spare[SIDE * CHANNELS];
    for (unsigned i = 0; i < IMAGES; i++)
        memset(images[i], (int)(10 + i), sizeof images[i]);
    dl2_mix_paste(&mix, &images[0][0][0][0], 1, SIDE, SIDE, CHANNELS, partner, IMAGES, spare);
    for (unsigned i = 0; i < IMAGES; i++)
        for (unsigned y = 0; y < SIDE; y++)
            for (unsigned x = 0; x < SIDE; x++)
                for (unsigned c = 0; c < CHANNELS; c++) {
                    const bool within = x >= 1 && x < 4 && y >= 2 && y < 4;
                    assert_int_equal(images[i][y][x][c], 10 + (within ? partner[i] : i));
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_equal_pytorch),
        cmocka_unit_test(warmup_comes_first),
        cmocka_unit_test(ends_where_it_should),
        cmocka_unit_test(a_budget_is_kept_and_used),
        cmocka_unit_test(a_budget_without_a_speed_knows_nothing),
        cmocka_unit_test(mixup_draws_from_beta),
        cmocka_unit_test(cutmix_draws_rectangles),
        cmocka_unit_test(cutmix_pastes_the_partner),
        cmocka_unit_test(cutmix_pastes_in_every_frame),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
