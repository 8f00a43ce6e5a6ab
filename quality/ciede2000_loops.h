/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CIEDE2000 over vectors of LANES floats; metric_loops.h includes this and says why all paths give
 * the same bits. Against the formula in double precision, a pixel's difference is off by less than
 * 1e-3, and a mean by less than 1e-4: CIELAB in single precision is good for 1e-5 of its scale.
 */
#ifndef DL2_QUALITY_CIEDE2000_LOOPS_H
#define DL2_QUALITY_CIEDE2000_LOOPS_H

static inline lanes choose(lane_bits condition, lanes yes, lanes no)
{
    return (lanes)((condition & (lane_bits)yes) | (~condition & (lane_bits)no));
}

/* 1 / sqrt(x + 1e-30), to 1e-7 of it, and so finite for 0. Estimated from the exponent to 4%, then
 * improved twice by three terms of the series of (1 - h)^(-1/2). */
static inline lanes inverse_root(lanes x)
{
    const lanes positive_x = x + 1e-30f;
    lanes r = (lanes)(0x5f3759df - ((lane_bits)positive_x >> 1));
    for (int i = 0; i < 2; i++) {
        const lanes h = 1.0f - positive_x * (r * r);
        r += r * (h * (0.5f + h * 0.375f));
    }
    return r;
}

static inline lanes root(lanes x)
{
    return x * inverse_root(x);
}

/* exp(-w) for w from 0 on; below exp(-80), that. */
static inline lanes exp_of_minus(lanes w)
{
    const lanes t = choose(w < 80.0f, w, w - w + 80.0f) * -1.44269504f;
    const lane_bits n = __builtin_convertvector(t - 0.5f, lane_bits);
    const lanes f = t - __builtin_convertvector(n, lanes);
    const lanes p =
        1.0f +
        f * (0.693147181f +
             f * (0.240226507f + f * (0.0555041087f + f * (0.00961812911f + f * 0.00133335581f))));
    return (lanes)((lane_bits)p + (n << 23));
}

/* Abramowitz, Stegun: 4.4.49, for |t| <= 1. */
static inline lanes arc_tangent(lanes t)
{
    const lanes s = t * t;
    lanes sum = 0.0218612288f - s * 0.0040540580f;
    sum = -0.0559098861f + s * sum;
    sum = 0.0964200441f + s * sum;
    sum = -0.1390853351f + s * sum;
    sum = 0.1994653599f + s * sum;
    sum = -0.3332985605f + s * sum;
    return t * (0.9999993329f + s * sum);
}

/* For 0 <= t <= 1.05. */
static inline lanes sine(lanes t)
{
    const lanes s = t * t;
    return t * (1.0f - s * (1.0f / 6 - s * (1.0f / 120 - s * (1.0f / 5040 - s * (1.0f / 362880)))));
}

struct lab_lanes {
    lanes l, a, b;
};

static inline lanes lab_curve(lanes t)
{
    return choose(t > 0.008856f, cube_root(t), 7.787f * t + 16.0f / 116);
}

static inline struct lab_lanes lab_at(const float *const rgb[3], size_t i)
{
    const lanes r = load(rgb[0] + i), g = load(rgb[1] + i), b = load(rgb[2] + i);
    const lanes x = lab_curve(0.43394636f * r + 0.37621387f * g + 0.18982503f * b);
    const lanes y = lab_curve(0.212671f * r + 0.715160f * g + 0.072169f * b);
    const lanes z = lab_curve(0.01775668f * r + 0.10947072f * g + 0.87270429f * b);
    return (struct lab_lanes){116.0f * y - 16.0f, 500.0f * (x - y), 200.0f * (y - z)};
}

/* sqrt(C^7 / (C^7 + 25^7)) */
static inline lanes chroma_share(lanes chroma)
{
    const lanes cube = chroma * chroma * chroma, power = cube * cube * chroma;
    return root(power / (power + 6103515625.0f));
}

/* A color with its chroma and the direction of its hue; none for gray. */
struct hue_lanes {
    lanes chroma, x, y;
};

static inline struct hue_lanes hue_of(lanes a, lanes b)
{
    const lanes square = a * a + b * b, inverse = inverse_root(square);
    return (struct hue_lanes){square * inverse, a * inverse, b * inverse};
}

/* The direction of the mean hue: of the sum of both; where they are opposite, half way from the
 * lower angle; 0 of grays. */
static inline void mean_hue(const struct hue_lanes *p, const struct hue_lanes *q, lanes *x,
                            lanes *y)
{
    const lanes sum_x = p->x + q->x, sum_y = p->y + q->y, square = sum_x * sum_x + sum_y * sum_y;
    const lanes inverse = inverse_root(square), zero = square - square;
    const lane_bits known = square > 1e-10f;
    const lane_bits opposite = (p->chroma > 0.0f) & (q->chroma > 0.0f);
    const lane_bits lower = (p->y < 0.0f) | ((p->y == 0.0f) & (p->x < 0.0f));
    *x = choose(known, sum_x * inverse, choose(opposite, choose(lower, p->y, -p->y), zero + 1.0f));
    *y = choose(known, sum_y * inverse, choose(opposite, choose(lower, -p->x, p->x), zero));
}

/*
 * sin(60 exp(-((h - 275) / 25)^2)), in degrees, of the mean hue h. With a direction that is turned
 * by 275 degrees, tan(half the angle from there) = y / (1 + x). Beyond 90 degrees, the sine is
 * below 1e-5 and counts as 0.
 */
static inline lanes rotation_of(lanes x, lanes y)
{
    const lanes along = x * 0.08715574275f - y * 0.99619469809f;
    const lanes aside = x * 0.99619469809f + y * 0.08715574275f;
    const lane_bits near = along > 0.0f;
    const lanes half = arc_tangent(choose(near, aside / (1.0f + along), aside - aside));
    const lanes off = half * (2 * 57.29577951f / 25);
    return choose(near, sine(1.04719755f * exp_of_minus(off * off)), aside - aside);
}

static inline lanes difference_of(const struct lab_lanes *one, const struct lab_lanes *two)
{
    const lanes chroma =
        root(one->a * one->a + one->b * one->b) + root(two->a * two->a + two->b * two->b);
    const lanes stretch = 1.5f - 0.5f * chroma_share(0.5f * chroma);
    const struct hue_lanes p = hue_of(stretch * one->a, one->b);
    const struct hue_lanes q = hue_of(stretch * two->a, two->b);
    const lanes dx = q.x - p.x, dy = q.y - p.y;
    /* The chord between two directions is twice the sine of half their angle. */
    const lanes chord = root(p.chroma * q.chroma) * root(dx * dx + dy * dy);
    const lanes dh = choose(p.x * q.y - p.y * q.x < 0.0f, -chord, chord);
    const lanes mean_l = 0.5f * (one->l + two->l), mean_c = 0.5f * (p.chroma + q.chroma);
    lanes x, y;
    mean_hue(&p, &q, &x, &y);
    const lanes cos_2 = x * x - y * y, sin_2 = 2.0f * x * y;
    const lanes cos_3 = x * cos_2 - y * sin_2, sin_3 = y * cos_2 + x * sin_2;
    const lanes cos_4 = cos_2 * cos_2 - sin_2 * sin_2, sin_4 = 2.0f * sin_2 * cos_2;
    /* 1 - 0.17 cos(h - 30) + 0.24 cos(2h) + 0.32 cos(3h + 6) - 0.20 cos(4h - 63), in degrees */
    const lanes t = 1.0f - 0.17f * (x * 0.86602540378f + y * 0.5f) + 0.24f * cos_2 +
                    0.32f * (cos_3 * 0.99452189537f - sin_3 * 0.10452846327f) -
                    0.20f * (cos_4 * 0.45399049974f + sin_4 * 0.89100652419f);
    const lanes rotation = -2.0f * chroma_share(mean_c) * rotation_of(x, y);
    const lanes light = (mean_l - 50.0f) * (mean_l - 50.0f);
    const lanes l = (two->l - one->l) / (1.0f + 0.015f * light * inverse_root(20.0f + light));
    const lanes c = (q.chroma - p.chroma) / (1.0f + 0.045f * mean_c);
    const lanes h = dh / (1.0f + 0.015f * mean_c * t);
    return root(positive(l * l + c * c + h * h + rotation * c * h));
}

/* For whole blocks of pixels. */
static void ciede2000_loop(const float *const a[3], const float *const b[3], size_t count,
                           float *out)
{
    for (size_t i = 0; i < count; i += LANES) {
        const struct lab_lanes one = lab_at(a, i), two = lab_at(b, i);
        store(out + i, difference_of(&one, &two));
    }
}

#endif
