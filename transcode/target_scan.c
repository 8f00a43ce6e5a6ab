/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualities from the lowest on, each as the pixels that its file would have. Most of the time is
 * the metric's, so a quality is given up as soon as some of the image's rows have lost more than
 * the whole image may: the rows that lost most at the quality before come first. A quality that is
 * not given up is scored as a whole, so that the result is the same as without strips.
 */
#include "transcode/target_search.h"

#include <math.h>

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
    return known ? dl2_target_score(job, image, score, error)
                 : dl2_target_try(job, quality, score, error);
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

int dl2_target_scan(const struct dl2_target_job *job, struct dl2_error *error)
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
