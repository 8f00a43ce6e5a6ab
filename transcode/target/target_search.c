/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/target/target_search.h"

#include <math.h>
#include <string.h>

/* ---- A quality that is tried */

/* A file's size in the unit of the target: bytes, or bits per pixel. */
static double size_of(const struct dl2_quality_target *target, const struct dl2_image *image,
                      const struct dl2_bytes *file)
{
    const double pixels = (double)image->width * image->height;
    return (double)file->size * (strcmp(target->name, "bpp") ? 1 : 8 / pixels);
}

/* The score by the target's metric of an image of the job's size. */
static int score_of(const struct dl2_target_job *job, const struct dl2_image *image, double *score,
                    struct dl2_error *error)
{
    struct dl2_score value;
    DL2_TRY(dl2_scorer_score(job->searcher->scorer, job->target->metric, image, &value, error));
    *score = value.value;
    if (isnan(*score) && dl2_images_equal(job->image, image))
        *score = INFINITY; /* of dB */
    return DL2_OK;
}

int dl2_target_try(const struct dl2_target_job *job, int quality, double *score,
                   struct dl2_error *error)
{
    struct dl2_target_searcher *const searcher = job->searcher;
    struct dl2_bytes *const file = &searcher->trial;
    const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_encode_options encode = *job->encode;
    encode.quality = quality;
    DL2_TRY(dl2_image_encode(job->codec, job->image, &encode, file, error));
    if (!job->target->metric) {
        *score = size_of(job->target, job->image, file);
        return DL2_OK;
    }
    DL2_TRY(dl2_image_decode(file->data, file->size, &decode, &searcher->decoded,
                             &searcher->scratch, error));
    return score_of(job, &searcher->decoded, score, error);
}

/* Makes the image the scorer's reference. */
static int begin(const struct dl2_target_job *job, struct dl2_error *error)
{
    const struct dl2_metric *const metric = job->target->metric;
    const struct dl2_image *const image = job->image;
    if (metric && (image->width < metric->min_side || image->height < metric->min_side))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%ux%u pixels are too few for a target of %s", (unsigned)image->width,
                             (unsigned)image->height, job->target->name);
    if (!job->searcher->scorer)
        DL2_TRY(dl2_scorer_create(&job->searcher->scorer, error));
    dl2_scorer_set_reference(job->searcher->scorer, image);
    if (job->target->input_size)
        dl2_scorer_set_input_size(job->searcher->scorer, job->target->input_size);
    return DL2_OK;
}

void dl2_target_searcher_free(struct dl2_target_searcher *searcher)
{
    dl2_scorer_free(searcher->scorer);
    dl2_image_free(&searcher->decoded);
    dl2_image_free(&searcher->scratch);
    dl2_bytes_free(&searcher->trial);
}

/* ---- The mean curve */

#define SLOPE 0.03 /* of a curve that isn't known: about that of JPEG, WebP and JPEG 2000 */

static int sample_quality(const struct dl2_quality_target *target, int number)
{
    static const double places[DL2_TARGET_SAMPLES] = {0.1, 0.35, 0.6, 0.8, 0.95};
    return target->low + (int)((target->high - target->low) * places[number]);
}

int dl2_target_sample(const struct dl2_target_job *job, double evens[DL2_TARGET_SAMPLES],
                      struct dl2_error *error)
{
    DL2_TRY(begin(job, error));
    for (int i = 0; i < DL2_TARGET_SAMPLES; i++) {
        double score;
        DL2_TRY(dl2_target_try(job, sample_quality(job->target, i), &score, error));
        evens[i] = dl2_target_even(job->target, score);
    }
    return DL2_OK;
}

static bool all_finite(const double evens[DL2_TARGET_SAMPLES])
{
    for (int i = 0; i < DL2_TARGET_SAMPLES; i++)
        if (!isfinite(evens[i]))
            return false;
    return true;
}

/* Straight lines through the means, whose ends go on; it rises everywhere. */
static void draw_curve(struct dl2_target_curve *curve, const struct dl2_quality_target *target,
                       const double means[DL2_TARGET_SAMPLES])
{
    const double least = SLOPE / 30;
    int left = 0;
    for (int quality = 1; quality <= 100; quality++) {
        while (left + 2 < DL2_TARGET_SAMPLES && sample_quality(target, left + 1) <= quality)
            left++;
        const int from = sample_quality(target, left),
                  width = sample_quality(target, left + 1) - from;
        const double slope = width ? (means[left + 1] - means[left]) / width : SLOPE;
        const double even = means[left] + slope * (quality - from);
        curve->even[quality] = quality > 1 ? fmax(even, curve->even[quality - 1] + least) : even;
    }
}

void dl2_target_curve_make(struct dl2_target_curve *curve, const struct dl2_quality_target *target,
                           const double (*evens)[DL2_TARGET_SAMPLES], size_t count)
{
    double means[DL2_TARGET_SAMPLES] = {0};
    size_t used = 0;
    for (size_t n = 0; n < count; n++) {
        if (!all_finite(evens[n]))
            continue;
        used++;
        for (int i = 0; i < DL2_TARGET_SAMPLES; i++)
            means[i] += evens[n][i];
    }
    curve->known = used > 0;
    for (int i = 0; i < DL2_TARGET_SAMPLES; i++)
        means[i] = used ? means[i] / (double)used : SLOPE * sample_quality(target, i);
    draw_curve(curve, target, means);
}

/* ---- All qualities of an image, by its codec's trials */

/*
 * Qualities from the lowest on, each as the pixels that its file would have. Most of the time is
 * the metric's, so a quality is given up as soon as some of the image's rows have lost more than
 * the whole image may: the rows that lost most at the quality before come first. A quality that is
 * not given up is scored as a whole, so that the result is the same as without strips.
 */
enum { MOST_STRIPS = 16, LEAST_ROWS = 32 };

/* Rows whose mean score counts as much as their weight. */
struct strip {
    uint32_t top, bottom;
    double weight;
    double loss; /* at the quality before, times the weight */
};

struct scan {
    const struct dl2_target_job *job;
    struct dl2_jpeg_trial *trial;
    struct strip strips[MOST_STRIPS];
    size_t count;  /* 0: the metric is none that adds up */
    double weight; /* of all strips */
    int quality;   /* the best so far; 0: none */
    double score, even;
    bool scored[101];
};

static void scan_cut(struct scan *scan)
{
    const struct dl2_metric *const metric = scan->job->target->metric;
    const uint32_t windows = scan->job->image->height - metric->overlap;
    uint32_t rows = (windows + MOST_STRIPS - 1) / MOST_STRIPS;
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows;
    scan->weight = windows;
    for (uint32_t top = 0; metric->adds_up && top < windows; top += rows) {
        const uint32_t own = windows - top < rows ? windows - top : rows;
        scan->strips[scan->count++] =
            (struct strip){.top = top, .bottom = top + own + metric->overlap, .weight = own};
    }
}

/* What an image of this even score has lost, as a mean. */
static double scan_loss(const struct scan *scan, double even)
{
    return exp(-even) * (scan->job->target->metric->of_mse ? 255.0 * 255.0 : 1);
}

/* Scores a strip of the trial's image. */
static int scan_strip(const struct scan *scan, struct strip *strip, const struct dl2_image *image,
                      struct dl2_error *error)
{
    const struct dl2_target_job *const job = scan->job;
    struct dl2_image reference = *job->image, shown = *image;
    struct dl2_score score;
    reference.data += strip->top * reference.stride;
    shown.data += strip->top * shown.stride;
    reference.height = shown.height = strip->bottom - strip->top;
    dl2_scorer_set_reference(job->searcher->scorer, &reference);
    const int status =
        dl2_scorer_score(job->searcher->scorer, job->target->metric, &shown, &score, error);
    dl2_scorer_set_reference(job->searcher->scorer, job->image);
    strip->loss = strip->weight * (job->target->metric->one_is_best ? 1 - score.mean : score.mean);
    return status;
}

static void scan_sort(struct scan *scan)
{
    for (size_t i = 1; i < scan->count; i++)
        for (size_t k = i; k && scan->strips[k - 1].loss < scan->strips[k].loss; k--) {
            const struct strip other = scan->strips[k];
            scan->strips[k] = scan->strips[k - 1];
            scan->strips[k - 1] = other;
        }
}

/* Is a quality certain to score less than `even`? 1, or 0 where it isn't; the margin is more than
 * sums in another order differ by. */
static int scan_is_below(struct scan *scan, int quality, double even, struct dl2_error *error)
{
    const double margin = 1e-6, allowed = scan_loss(scan, even) * (1 + margin) +
                                          (scan->job->target->metric->one_is_best ? margin : 0);
    const struct dl2_image *image;
    double lost = 0;
    scan_sort(scan);
    for (size_t i = 0; i < scan->count; i++) {
        struct strip *const strip = &scan->strips[i];
        const int known = scan->job->codec->trial_rows(scan->trial, quality, strip->top,
                                                       strip->bottom, &image, error);
        if (known <= 0)
            return known;
        DL2_TRY(scan_strip(scan, strip, image, error));
        lost += strip->loss;
        if (lost > allowed * scan->weight)
            return 1;
    }
    return 0;
}

/* Scores a quality, as its file would be. */
static int scan_score(struct scan *scan, int quality, double *score, struct dl2_error *error)
{
    const struct dl2_target_job *const job = scan->job;
    const struct dl2_image *image;
    scan->scored[quality] = true;
    const int known =
        job->codec->trial_rows(scan->trial, quality, 0, job->image->height, &image, error);
    if (known < 0)
        return known;
    return known ? score_of(job, image, score, error) : dl2_target_try(job, quality, score, error);
}

static void scan_take(struct scan *scan, int quality, double score)
{
    scan->quality = quality;
    scan->score = score;
    scan->even = dl2_target_even(scan->job->target, score);
}

/* The lowest quality that meets the target. */
static int scan_lowest(struct scan *scan, double wanted, struct dl2_error *error)
{
    const struct dl2_quality_target *const target = scan->job->target;
    for (int quality = target->low; quality <= target->high; quality++) {
        double score;
        scan->job->result->probes++;
        const int below = scan_is_below(scan, quality, wanted, error);
        if (below < 0)
            return below;
        if (below)
            continue;
        DL2_TRY(scan_score(scan, quality, &score, error));
        scan->job->result->met = dl2_target_meets(target, score);
        if (scan->job->result->met || !scan->quality || dl2_target_even(target, score) > scan->even)
            scan_take(scan, quality, score);
        if (scan->job->result->met)
            return DL2_OK;
    }
    return DL2_OK;
}

/* The quality of the highest score, where none meets the target: what wasn't scored yet. */
static int scan_highest(struct scan *scan, struct dl2_error *error)
{
    const struct dl2_quality_target *const target = scan->job->target;
    for (int quality = target->high; quality >= target->low; quality--) {
        double score;
        if (scan->scored[quality])
            continue;
        const int below = scan->quality ? scan_is_below(scan, quality, scan->even, error) : 0;
        if (below < 0)
            return below;
        if (below)
            continue;
        DL2_TRY(scan_score(scan, quality, &score, error));
        if (!scan->quality || dl2_target_even(target, score) >= scan->even)
            scan_take(scan, quality, score);
    }
    return DL2_OK;
}

/* The quality whose score is nearest, the lowest of equals. From the highest on, so that those
 * below the target are given up early. */
static int scan_nearest(struct scan *scan, double wanted, struct dl2_error *error)
{
    const struct dl2_quality_target *const target = scan->job->target;
    struct dl2_target_result *const result = scan->job->result;
    bool above = false, under = false;
    double nearest = INFINITY;
    for (int quality = target->high; quality >= target->low; quality--) {
        double score;
        result->probes++;
        const int below =
            isfinite(nearest) ? scan_is_below(scan, quality, wanted - nearest, error) : 0;
        if (below < 0)
            return below;
        under = under || below;
        if (below)
            continue;
        DL2_TRY(scan_score(scan, quality, &score, error));
        const double even = dl2_target_even(target, score), distance = fabs(even - wanted);
        *(even < wanted ? &under : &above) = true;
        if (distance <= nearest) {
            scan_take(scan, quality, score);
            nearest = distance;
        }
    }
    result->met = nearest <= target->tolerance || (above && under);
    return DL2_OK;
}

/* Makes job->out the file of the quality that is found, and fills in the result. */
static int scan_all(const struct dl2_target_job *job, struct dl2_error *error)
{
    struct scan scan = {.job = job};
    struct dl2_encode_options encode = *job->encode;
    const double wanted = dl2_target_even(job->target, job->target->value);
    scan_cut(&scan);
    DL2_TRY(job->codec->trial_new(job->image, job->encode, &scan.trial, error));
    int status = job->target->rule == DL2_TARGET_NEAREST ? scan_nearest(&scan, wanted, error)
                                                         : scan_lowest(&scan, wanted, error);
    if (status == DL2_OK && !job->result->met && job->target->rule == DL2_TARGET_AT_LEAST)
        status = scan_highest(&scan, error);
    job->codec->trial_free(scan.trial);
    DL2_TRY(status);
    job->result->quality = (uint8_t)scan.quality;
    job->result->score = scan.score;
    encode.quality = scan.quality;
    return dl2_image_encode(job->codec, job->image, &encode, job->out, error);
}

/* ---- Some qualities of an image */

/* A quality that was tried, or one beyond the range. */
struct known {
    int quality;
    bool tried;
    double even;
};

struct bracket {
    const struct dl2_target_job *job;
    double wanted;
    struct known low, high;
    double nearest; /* of what was tried, to `wanted` */
};

/* What the image is expected to have at a quality: the curve, moved to what was tried. */
static double expect(const struct bracket *bracket, int quality)
{
    const double *const even = bracket->job->curve->even;
    const struct known *const low = &bracket->low, *const high = &bracket->high;
    const double below = low->tried ? low->even - even[low->quality] : 0;
    const double above = high->tried ? high->even - even[high->quality] : 0;
    if (!low->tried || !high->tried)
        return even[quality] + (low->tried ? below : above);
    const double share = (double)(quality - low->quality) / (high->quality - low->quality);
    return even[quality] + below + share * (above - below);
}

/* Is the side of high qualities the good one? Of sizes it is the other. */
static bool wants_score(const struct bracket *bracket)
{
    return bracket->job->target->metric != NULL;
}

/* The quality to try next, between low and high. */
static int choose(const struct bracket *bracket, unsigned probes)
{
    const struct dl2_quality_target *const target = bracket->job->target;
    const int first = bracket->low.quality + 1, last = bracket->high.quality - 1;
    const bool nearest = target->rule == DL2_TARGET_NEAREST;
    const bool known = bracket->job->curve->known || bracket->low.tried || bracket->high.tried;
    if (!known || (probes >= 5 && probes % 2 && bracket->low.tried && bracket->high.tried))
        return (first + last + 1) / 2;
    int quality = first;
    while (quality < last && expect(bracket, quality) < bracket->wanted)
        quality++;
    /* The one before it for sizes, and the nearer one for what is nearest. */
    if (quality > first &&
        (nearest ? bracket->wanted - expect(bracket, quality - 1) <
                       expect(bracket, quality) - bracket->wanted
                 : !wants_score(bracket) && expect(bracket, quality) > bracket->wanted))
        quality--;
    return quality;
}

/* Is what was found as good as it gets, or good enough? */
static bool is_found(const struct bracket *bracket)
{
    const struct dl2_quality_target *const target = bracket->job->target;
    const struct known *const good = wants_score(bracket) ? &bracket->high : &bracket->low;
    if (bracket->high.quality - bracket->low.quality <= 1)
        return true;
    if (target->rule == DL2_TARGET_NEAREST)
        return bracket->nearest <= target->tolerance;
    if (!good->tried)
        return false;
    return fabs(good->even - bracket->wanted) <= target->tolerance;
}

/* Takes the file that was tried over as the result, or leaves it. */
static void take(struct bracket *bracket, int quality, double score, double even)
{
    const struct dl2_target_job *const job = bracket->job;
    struct dl2_target_result *const result = job->result;
    const double distance = fabs(even - bracket->wanted);
    const bool good = dl2_target_meets(job->target, score);
    const bool nearer = result->probes == 1 || distance < bracket->nearest;
    const bool at_least = job->target->rule == DL2_TARGET_AT_LEAST;
    if (at_least ? good || (!result->met && nearer) : nearer) {
        dl2_bytes_swap(job->out, &job->searcher->trial);
        result->quality = (uint8_t)quality;
        result->score = score;
        result->met = good;
    }
    if (nearer)
        bracket->nearest = distance;
}

/* Narrows down where it begins to meet the target, or ends to. */
static int narrow(const struct dl2_target_job *job, struct dl2_error *error)
{
    const struct dl2_quality_target *const target = job->target;
    struct dl2_target_result *const result = job->result;
    struct bracket bracket = {.job = job,
                              .wanted = dl2_target_even(target, target->value),
                              .low = {.quality = target->low - 1},
                              .high = {.quality = target->high + 1},
                              .nearest = INFINITY};
    while (result->probes < target->probes && !is_found(&bracket)) {
        const int quality = choose(&bracket, result->probes);
        double score;
        DL2_TRY(dl2_target_try(job, quality, &score, error));
        result->probes++;
        const struct known here = {quality, true, dl2_target_even(target, score)};
        take(&bracket, quality, score, here.even);
        if (dl2_target_meets(target, score) == wants_score(&bracket))
            bracket.high = here;
        else
            bracket.low = here;
    }
    if (target->rule == DL2_TARGET_NEAREST)
        result->met =
            bracket.nearest <= target->tolerance || (bracket.low.tried && bracket.high.tried);
    return DL2_OK;
}

int dl2_target_search(const struct dl2_target_job *job, struct dl2_error *error)
{
    const struct dl2_quality_target *const target = job->target;
    struct dl2_target_result *const result = job->result;
    *result = (struct dl2_target_result){.score = NAN};
    DL2_TRY(begin(job, error));
    DL2_TRY(dl2_target_is_scanned(target, job->codec) ? scan_all(job, error) : narrow(job, error));
    if (result->met || target->miss != DL2_MISS_FAIL)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "no quality that was tried reaches %s %g: %g at quality %u", target->name,
                         target->value, result->score, (unsigned)result->quality);
}

void dl2_target_take_source(const struct dl2_target_job *job)
{
    const struct dl2_quality_target *const target = job->target;
    struct dl2_target_result *const result = job->result;
    result->score = target->metric ? (double)NAN : size_of(target, job->image, job->out);
    result->met = target->metric || dl2_target_meets(target, result->score);
}
