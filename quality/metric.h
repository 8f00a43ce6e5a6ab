/*
 * The registry of quality metrics: full-reference, on 8-bit images in memory, no files. dl2-quality
 * scores datasets with it; a search for a target quality can call it just as well.
 *
 *     struct dl2_scorer *scorer;
 *     dl2_scorer_create(&scorer, &error);
 *     dl2_scorer_set_reference(scorer, &reference);
 *     dl2_scorer_score(scorer, dl2_metric_find("ssim"), &variant, &score, &error);   ... any number
 *     dl2_scorer_free(scorer);
 *
 * Luma is BT.601, full range, not rounded: 0.299 R + 0.587 G + 0.114 B, of the samples as coded. It
 * is held in thousandths (299 R + 587 G + 114 B), which is a whole number below 2^18 and so exact
 * in a float.
 *
 * Where one image is gray and the other colour, the gray one stands for R = G = B; its luma is its
 * gray.
 *
 * Threads: the registry is constant. A scorer belongs to one thread at a time; its memory is
 * of one size (730 kB) whatever the images', and scoring allocates nothing.
 */
#ifndef DL2_QUALITY_METRIC_H
#define DL2_QUALITY_METRIC_H

#include "common/error.h"
#include "pixels/image.h"

/* Why a pair has no value of a metric. */
enum dl2_score_gap {
    DL2_SCORE_PRESENT = 0,
    DL2_SCORE_IDENTICAL, /* PSNR of two signals without any difference: infinite */
    DL2_SCORE_TOO_SMALL, /* SSIM of an image that is narrower or lower than its window */
};

/* What one metric makes of one pair. */
struct dl2_score {
    double value; /* in the metric's unit; NAN where there is a gap */
    double mse;   /* PSNR: the mean squared error, on the 0-255 scale; others: NAN */
    enum dl2_score_gap gap;
};

struct dl2_scorer;

struct dl2_metric {
    const char *name;       /* in files and options: "psnr_rgb" */
    const char *title;      /* in tables: "PSNR RGB" */
    const char *unit;       /* "dB", or "" */
    const char *definition; /* one line that tells it from its namesakes */
    bool from_mse;          /* a function of a mean squared error: 10 log10(255^2 / MSE) */
    /* Called by dl2_scorer_score(), which has checked the shapes. */
    int (*score)(struct dl2_scorer *scorer, const struct dl2_image *variant,
                 struct dl2_score *score, struct dl2_error *error);
};

/* The table, in a fixed order; dl2_metric_at() is NULL at the end, dl2_metric_find() where there is
 * none. */
enum { DL2_METRIC_COUNT = 3 };
const struct dl2_metric *dl2_metric_at(unsigned index);
const struct dl2_metric *dl2_metric_find(const char *name);

/* What a score is called where there is no value: "identical", "smaller than 11x11"; NULL if there
 * is one. */
const char *dl2_score_gap_text(enum dl2_score_gap gap);

/* 10 log10(255^2 / mse); INFINITY for 0. */
double dl2_psnr_of_mse(double mse);

/* Uses the fastest code that dl2_simd_flags() allows. */
int dl2_scorer_create(struct dl2_scorer **out, struct dl2_error *error);
void dl2_scorer_free(struct dl2_scorer *scorer);

/* All following scores are against this image, which stays the caller's. */
void dl2_scorer_set_reference(struct dl2_scorer *scorer, const struct dl2_image *reference);

/* DL2_ERR_ARGUMENT where the sizes differ, DL2_ERR_MEMORY. A gap is no error. */
int dl2_scorer_score(struct dl2_scorer *scorer, const struct dl2_metric *metric,
                     const struct dl2_image *variant, struct dl2_score *score,
                     struct dl2_error *error);

/* Are all samples equal, gray standing for R = G = B? Sizes must match. */
bool dl2_images_equal(const struct dl2_image *a, const struct dl2_image *b);

#endif
