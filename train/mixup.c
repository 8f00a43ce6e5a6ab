/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/mixup.h"
#include "common/random.h"

#include <math.h>
#include <string.h>

/*
 * Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), with their boost
 * below 1, which is applied to the logarithm: for a small alpha the variables themselves underflow.
 */
static double log_gamma_variate(struct dl2_random *random, double alpha)
{
    double boost = 0;
    if (alpha < 1) {
        boost = log(1 - dl2_random_uniform(random)) / alpha;
        alpha += 1;
    }
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = dl2_random_normal(random);
        double v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = 1 - dl2_random_uniform(random);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return boost + log(d * v);
    }
}

/* From Beta(alpha, alpha). */
static double beta_variate(struct dl2_random *random, double alpha)
{
    const double a = log_gamma_variate(random, alpha);
    const double b = log_gamma_variate(random, alpha);
    return 1 / (1 + exp(b - a));
}

double dl2_mixup_draw(uint64_t seed, uint64_t step, double alpha, uint32_t *partner, unsigned count)
{
    struct dl2_random random;
    dl2_random_init(&random, seed, DL2_RANDOM_MIXUP, step, 0);
    const double share = beta_variate(&random, alpha);
    dl2_random_permutation(&random, partner, count);
    return share;
}

/* Along one axis: `reach` to both sides of a place, within the image. */
static void draw_side(struct dl2_random *random, uint32_t side, uint32_t reach, uint32_t *first,
                      uint32_t *length)
{
    const uint32_t middle = dl2_random_below(random, side);
    const uint32_t end = middle + reach < side ? middle + reach : side;
    *first = middle > reach ? middle - reach : 0;
    *length = end - *first;
}

struct dl2_mix dl2_mix_draw(uint64_t seed, uint64_t step, double mixup, double cutmix,
                            uint32_t height, uint32_t width, uint32_t *partner, unsigned count)
{
    struct dl2_random random;
    struct dl2_mix mix = {0};
    dl2_random_init(&random, seed, DL2_RANDOM_MIXUP, step, 1); /* mixup alone is 0 */
    const bool second = dl2_random_below(&random, 2);
    mix.cuts = cutmix > 0 && (!(mixup > 0) || second);
    if (!mix.cuts) {
        mix.share = dl2_mixup_draw(seed, step, mixup, partner, count);
        return mix;
    }
    const double part = 1 - beta_variate(&random, cutmix);
    const double reach = 0.5 * sqrt(part);
    draw_side(&random, width, (uint32_t)(reach * width), &mix.x, &mix.width);
    draw_side(&random, height, (uint32_t)(reach * height), &mix.y, &mix.height);
    dl2_random_permutation(&random, partner, count);
    mix.share = 1 - (double)mix.width * mix.height / ((double)width * height);
    return mix;
}

/* Whether `first` is the smallest number of its cycle of the permutation. */
static bool leads(const uint32_t *partner, uint32_t first)
{
    uint32_t at = partner[first];
    while (at > first)
        at = partner[at];
    return at == first;
}

void dl2_mix_paste(const struct dl2_mix *mix, uint8_t *images, uint32_t frames, uint32_t height,
                   uint32_t width, uint32_t channels, const uint32_t *partner, unsigned count,
                   uint8_t *spare)
{
    const size_t stride = (size_t)width * channels, frame = stride * height, image = frame * frames;
    const size_t bytes = (size_t)mix->width * channels;
    for (uint32_t first = 0; first < count; first++) {
        if (partner[first] == first || !leads(partner, first))
            continue;
        for (uint64_t row = 0; row < (uint64_t)frames * mix->height; row++) {
            const size_t y = mix->y + row % mix->height;
            uint8_t *rows =
                images + row / mix->height * frame + y * stride + (size_t)mix->x * channels;
            memcpy(spare, rows + first * image, bytes);
            uint32_t at = first;
            for (; partner[at] != first; at = partner[at])
                memcpy(rows + at * image, rows + partner[at] * image, bytes);
            memcpy(rows + at * image, spare, bytes);
        }
    }
}
