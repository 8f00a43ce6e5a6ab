/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SSIMULACRA 2.1 after Jon Sneyers (Cloudinary), as in tools/ssimulacra2.cc of the JPEG XL project,
 * whose values are its definition.
 *
 * Both images become opponent colors of cube roots of linear light (JPEG XL's XYB), each channel
 * moved to about 0 to 1. At each of six scales, the one a 2x2 mean of the other's linear light,
 * each channel has three maps of errors: of structure, 1 - (1 - e) (2 cov + C2) / (var a + var b +
 * C2) with e = (mean a - mean b)^2; and where the variant has more of an edge than the reference,
 * or less of it: the ratio of 1 + |pixel - mean|. The score is a polynomial of the weighted sum of
 * the maps' means and 4-norms, 100 for identical images. Most of the 108 weights are 0; a map
 * without a weight is not made.
 *
 * Means are by a Gaussian of sigma 1.5, with zeros outside the image. The tool filters recursively
 * (Charalampidis, IEEE TSP 64(19), 2016), which is the same as nine taps, each the sum of three
 * cosines; make_golden.py derives them. The recursion keeps its rounding errors, and errors of
 * structure are rounded up to 0, so that the tool scores a little lower, the more so the better and
 * the wider the images: by up to 0.06 on Kodak's at JPEG qualities 50 and 85. How much depends on
 * the processor; its AVX2 and SSE2 code differ by as much. With the recursion in double precision,
 * the tool agrees with this file to 0.001 there.
 *
 * As with SSIM, products are replaced by squares of the difference: with d = a - b, the error of
 * structure is (var d + e (var a + var b + C2 - var d)) / (var a + var b + C2), which is not the
 * difference of two nearly equal numbers.
 *
 * Images whose shorter side is below 113 pixels have fewer scales, because a scale follows only
 * where both sides of the one before are at least 8. The reference tool then takes the weights in
 * the order of the scales that there are, so that they belong to other scales and channels than
 * those that they were fitted for; so does this.
 *
 * An image is worked through in strips of columns, each from top to bottom. A scorer allocates 8
 * bytes for each pixel of the largest image, and 500 kB.
 */
#include "quality/ssimulacra2.h"
#include "quality/scorer.h"

#include <math.h>
#include <string.h>

enum {
    SCALES = 6,
    MIN_SIDE = 8,
    CHANNELS = 3,
    NORMS = 2,
    TAPS = DL2_SSIMULACRA2_TAPS,
    REACH = TAPS / 2,
    BLOCK = DL2_SSIMULACRA2_BLOCK,
    /* Columns; even, so that no 2x2 pixels are in two strips. Rings of narrower strips fit more of
     * a cache, but touch as many pages of large images for fewer pixels. */
    STRIP = 1024,
    /* Column x of the strip that begins at `left` lies at x - left + BLOCK. */
    STRIDE = BLOCK + STRIP + BLOCK,
};

/* By channel, scale and norm (1, 4) a row, with the maps in the order of enum
 * DL2_SSIMULACRA2_...; see weight_of(). */
static const double weights[CHANNELS * SCALES * NORMS][DL2_SSIMULACRA2_MAPS] = {
    /* X */
    {0, 0.0007376606707406586, 0},
    {0, 0.0007793481682867309, 0},
    {0, 0.0004371155730107379, 0},
    {1.1041726426657346, 0.00066284834129271, 0.00015231632783718752},
    {0, 0.0016406437456599754, 0},
    {1.8422455520539298, 11.441172603757666, 0},
    {0.0007989109436015163, 0.000176816438078653, 0},
    {1.8787594979546387, 10.94906990605142, 0},
    {0.0007289346991508072, 0.9677937080626833, 0},
    {0.00014003424285435884, 0.9981766977854967, 0.00031949755934435053},
    {0.0004550992113792063, 0, 0},
    {0.0013648766163243398, 0, 0},
    /* Y */
    {0, 0, 0},
    {7.466890328078848, 0, 17.445833984131262},
    {0.0006235601634041466, 0, 0},
    {6.683678146179332, 0.00037724407979611296, 1.027889937768264},
    {225.20515300849274, 0, 0},
    {19.213238186143016, 0.0011401524586618361, 0.001237755635509985},
    {176.39317598450694, 0, 0},
    {24.43300999870476, 0.28520802612117757, 0.0004485436923833408},
    {0, 0, 0},
    {34.77906344483772, 44.835625328877896, 0},
    {0, 0, 0},
    {0, 0, 0},
    /* B - Y */
    {0, 0.0008680556573291698, 0},
    {0, 0, 0},
    {0, 0.0005313191874358747, 0},
    {0.00016533814161379112, 0, 0},
    {0, 0, 0},
    {0.0004179171803251336, 0.0017290828234722833, 0},
    {0.0020827005846636437, 0, 0},
    {8.826982764996862, 23.19243343998926, 0},
    {95.1080498811086, 0.9863978034400682, 0.9834382792465353},
    {0.0012286405048278493, 171.2667255897307, 0.9807858872435379},
    {0, 0, 0},
    {0.0005130064588990679, 0, 0.00010854057858411537},
};

/* Images at one scale: the reference's and the variant's linear light. */
struct scale {
    size_t width, height;
    float *planes[2][CHANNELS]; /* [height][width]; NULL at scale 1, which is made of pixels */
};

/* The rows at work. Rings hold rows y - 4 to y + 4, row y at y % TAPS. */
struct ssimulacra2_strip {
    float linear[2][2][CHANNELS][STRIDE]; /* by image and y % 2 */
    float xyb[2][CHANNELS][TAPS][STRIDE];
    float squares[CHANNELS][TAPS][STRIDE], distance[CHANNELS][TAPS][STRIDE];
    float zeros[STRIDE]; /* every row above and below the image */
    float mean[4][STRIDE];
    float mask[STRIDE];
};

/* A strip of a scale: columns left to left + width. */
struct strip_at {
    struct dl2_scorer *scorer;
    const struct dl2_image *images[2];
    const struct scale *scale, *next; /* next: NULL at the last */
    struct ssimulacra2_strip *rows;
    size_t left, width;
    size_t columns; /* of rows: whole blocks, with what lies left and right of the strip */
    bool structure[CHANNELS], edges[CHANNELS]; /* what has a weight */
};

/* Where fewer scales are, the weights follow each other all the same. */
static double weight_of(size_t scales, size_t channel, size_t scale, size_t norm, size_t map)
{
    return weights[(channel * scales + scale) * NORMS + norm][map];
}

static void load_pixels(const struct dl2_scorer *scorer, const struct dl2_image *image, size_t x,
                        size_t y, size_t count, float out[CHANNELS][STRIDE], size_t at)
{
    const uint8_t *pixel = image->data + y * image->stride + x * image->channels;
    const size_t green = image->channels == 1 ? 0 : 1, blue = 2 * green;
    for (size_t i = 0; i < count; i++, pixel += image->channels) {
        out[0][at + i] = scorer->linear[pixel[0]];
        out[1][at + i] = scorer->linear[pixel[green]];
        out[2][at + i] = scorer->linear[pixel[blue]];
    }
}

/* Makes a row of the next scale, of the last two rows; `linear` is the image's. */
static void make_next(const struct strip_at *at, size_t image, size_t y)
{
    float(*linear)[CHANNELS][STRIDE] = at->rows->linear[image];
    const bool is_last = y + 1 == at->scale->height;
    if (!at->next || (y % 2 == 0 && !is_last))
        return;
    for (size_t c = 0; c < CHANNELS; c++) {
        float *above = linear[0][c] + BLOCK, *below = linear[y % 2][c] + BLOCK;
        if (at->width % 2) { /* the last strip: repeat the last column */
            above[at->width] = above[at->width - 1];
            below[at->width] = below[at->width - 1];
        }
        at->scorer->kernels->halve(above, below, (at->width + 1) / 2,
                                   at->next->planes[image][c] + y / 2 * at->next->width +
                                       at->left / 2);
    }
}

static size_t round_up(size_t count)
{
    return (count + BLOCK - 1) / BLOCK * BLOCK;
}

/* Loads row y of both images, with what is made of it. */
static void load_row(const struct strip_at *at, size_t y)
{
    struct ssimulacra2_strip *rows = at->rows;
    const size_t from = at->left ? at->left - REACH : 0, end = at->left + at->width + REACH;
    const size_t to = end < at->scale->width ? end : at->scale->width, count = to - from;
    const size_t first = from + BLOCK - at->left, ring = y % TAPS;
    for (size_t i = 0; i < 2; i++) {
        float(*linear)[STRIDE] = rows->linear[i][y % 2];
        float *rgb[CHANNELS], *xyb[CHANNELS];
        if (!at->scale->planes[0][0])
            load_pixels(at->scorer, at->images[i], from, y, count, linear, first);
        for (size_t c = 0; c < CHANNELS; c++) {
            if (at->scale->planes[0][0])
                memcpy(linear[c] + first, at->scale->planes[i][c] + y * at->scale->width + from,
                       count * sizeof(float));
            rgb[c] = linear[c] + first;
            xyb[c] = rows->xyb[i][c][ring] + first;
        }
        at->scorer->kernels->xyb(rgb, round_up(count), xyb);
        for (size_t c = 0; c < CHANNELS; c++) { /* what lies outside the image is 0 */
            memset(xyb[c] - first, 0, first * sizeof(float));
            memset(xyb[c] + count, 0, (STRIDE - first - count) * sizeof(float));
        }
        make_next(at, i, y);
    }
    for (size_t c = 0; c < CHANNELS; c++)
        if (at->structure[c])
            at->scorer->kernels->squares(rows->xyb[0][c][ring], rows->xyb[1][c][ring], at->columns,
                                         rows->squares[c][ring], rows->distance[c][ring]);
}

/* Filters the ring of rows around row y down the columns. */
static const float *blur_ring(const struct strip_at *at, float (*ring)[STRIDE], size_t y,
                              float *out)
{
    const float *rows[TAPS];
    for (size_t tap = 0; tap < TAPS; tap++) {
        const bool inside = y + tap >= REACH && y + tap - REACH < at->scale->height;
        rows[tap] = inside ? ring[(y + tap - REACH) % TAPS] : at->rows->zeros;
    }
    at->scorer->kernels->blur_columns(rows, at->columns, out);
    return out + BLOCK;
}

/* Adds the errors of row y. */
static void add_row(const struct strip_at *at, size_t y,
                    double sums[CHANNELS][DL2_SSIMULACRA2_MAPS][2])
{
    struct ssimulacra2_strip *rows = at->rows;
    for (size_t c = 0; c < CHANNELS; c++) {
        struct dl2_ssimulacra2_row row = {.a = rows->xyb[0][c][y % TAPS] + BLOCK,
                                          .b = rows->xyb[1][c][y % TAPS] + BLOCK,
                                          .mask = rows->mask + BLOCK,
                                          .structure = at->structure[c],
                                          .edges = at->edges[c]};
        if (!row.structure && !row.edges)
            continue;
        row.mean_a = blur_ring(at, rows->xyb[0][c], y, rows->mean[0]);
        row.mean_b = blur_ring(at, rows->xyb[1][c], y, rows->mean[1]);
        if (row.structure) {
            row.mean_squares = blur_ring(at, rows->squares[c], y, rows->mean[2]);
            row.mean_distance = blur_ring(at, rows->distance[c], y, rows->mean[3]);
        }
        at->scorer->kernels->maps(&row, round_up(at->width), sums[c]);
    }
}

static void measure_strip(const struct strip_at *at, double sums[CHANNELS][DL2_SSIMULACRA2_MAPS][2])
{
    size_t loaded = 0;
    for (size_t x = 0; x < STRIP; x++)
        at->rows->mask[BLOCK + x] = x < at->width;
    for (size_t y = 0; y < at->scale->height; y++) {
        for (; loaded < at->scale->height && loaded <= y + REACH; loaded++)
            load_row(at, loaded);
        add_row(at, y, sums);
    }
}

/* Returns how many scales there are, and fills in their sizes. */
static size_t find_scales(const struct dl2_image *image, struct scale scales[SCALES])
{
    size_t count = 0, width = image->width, height = image->height;
    while (count < SCALES) {
        scales[count++] = (struct scale){.width = width, .height = height};
        if (width < MIN_SIDE || height < MIN_SIDE)
            break;
        width = (width + 1) / 2;
        height = (height + 1) / 2;
    }
    return count;
}

static double score_of(double sum)
{
    sum *= 0.9562382616834844;
    sum = 2.326765642916932 * sum - 0.020884521182843837 * sum * sum +
          6.248496625763138e-05 * sum * sum * sum;
    return sum > 0 ? 100 - 10 * pow(sum, 0.6276336467831387) : 100;
}

static int ssimulacra2_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                               double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    struct scale scales[SCALES];
    const size_t count = find_scales(variant, scales);
    size_t floats = 0;
    double sum = 0;
    for (size_t s = 1; s < count; s++)
        floats += 2 * CHANNELS * scales[s].width * scales[s].height;
    DL2_TRY(dl2_bytes_resize(&scorer->scratch,
                             sizeof(struct ssimulacra2_strip) + floats * sizeof(float), error));
    struct ssimulacra2_strip *rows = (void *)scorer->scratch.data;
    float *plane = (float *)(void *)(rows + 1);
    memset(rows, 0, sizeof *rows);
    for (size_t s = 1; s < count; s++)
        for (size_t i = 0; i < 2 * CHANNELS; i++, plane += scales[s].width * scales[s].height)
            scales[s].planes[i / CHANNELS][i % CHANNELS] = plane;
    for (size_t s = 0; s < count; s++) {
        double errors[CHANNELS][DL2_SSIMULACRA2_MAPS][2] = {{{0}}};
        struct strip_at at = {.scorer = scorer,
                              .images = {scorer->reference, variant},
                              .scale = &scales[s],
                              .next = s + 1 < count ? &scales[s + 1] : NULL,
                              .rows = rows};
        for (size_t c = 0; c < CHANNELS; c++)
            for (size_t norm = 0; norm < NORMS; norm++)
                for (size_t map = 0; map < DL2_SSIMULACRA2_MAPS; map++)
                    if (weight_of(count, c, s, norm, map) > 0)
                        *(map == DL2_SSIMULACRA2_STRUCTURE ? &at.structure[c] : &at.edges[c]) =
                            true;
        /* Strips of equal width, so that the last isn't a sliver. */
        const size_t strips = (scales[s].width + STRIP - 1) / STRIP;
        const size_t width = ((scales[s].width + strips - 1) / strips + 1) / 2 * 2;
        for (; at.left < scales[s].width; at.left += width) {
            at.width = scales[s].width - at.left < width ? scales[s].width - at.left : width;
            at.columns = round_up(BLOCK + at.width + REACH);
            measure_strip(&at, errors);
        }
        const double pixels = (double)scales[s].width * (double)scales[s].height;
        for (size_t c = 0; c < CHANNELS; c++)
            for (size_t map = 0; map < DL2_SSIMULACRA2_MAPS; map++)
                sum += weight_of(count, c, s, 0, map) * errors[c][map][0] / pixels +
                       weight_of(count, c, s, 1, map) * sqrt(sqrt(errors[c][map][1] / pixels));
    }
    sums[0] = score_of(sum);
    return DL2_OK;
}

/* Its sum is the score itself. */
const struct dl2_metric dl2_metric_ssimulacra2 = {
    .name = "ssimulacra2",
    .title = "SSIMULACRA2",
    .unit = "",
    .definition =
        "SSIMULACRA 2.1 by Sneyers, as the JPEG XL project's tool of April 2023: up to 100 for "
        "identical images "
        "(30 low, 50 medium, 70 high quality, 90 visually lossless), below 0 where the images have "
        "little in common; samples count as sRGB; images with a side below 113 pixels have fewer "
        "scales",
    .digits = 3,
    .missing = "too_small",
    .missing_note = "too small for SSIMULACRA2",
    .min_side = MIN_SIDE,
    .measure = ssimulacra2_measure,
};
