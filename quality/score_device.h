/*
 * Scoring on a graphics card: what a device makes of a pair of images, from which
 * quality/metric.h's scores follow. Definitions are the same as on the processors; figures differ
 * by less than 1e-5, and those of squared errors not at all.
 *
 * Threads: a lane is one thread's at a time, lanes share nothing; devices any.
 */
#ifndef DL2_QUALITY_SCORE_DEVICE_H
#define DL2_QUALITY_SCORE_DEVICE_H

#include "quality/metric.h"

struct dl2_score_device_class;

/* First member of every device's context. */
struct dl2_score_device {
    const struct dl2_score_device_class *ops;
};

struct dl2_score_lane; /* each device has its own struct behind this name */

/* Of a pair of images. */
struct dl2_score_sums {
    double samples; /* of (a - b)^2 over all samples; gray against colour counts three times */
    double luma;    /* of (a - b)^2 over luma in thousandths */
    double ssim;    /* over all windows; 0 where there are none */
};

struct dl2_score_device_class {
    const char *name;                               /* "cuda" */
    void (*close)(struct dl2_score_device *device); /* NULL is fine; lanes must be gone */
    int (*lane_create)(struct dl2_score_device *device, struct dl2_score_lane **out,
                       struct dl2_error *error);
    void (*lane_free)(struct dl2_score_lane *lane); /* NULL is fine */
    /* All following scores are against this image, which is copied. */
    int (*set_reference)(struct dl2_score_lane *lane, const struct dl2_image *reference,
                         struct dl2_error *error);
    /* `variant` is of the reference's size. */
    int (*score)(struct dl2_score_lane *lane, const struct dl2_image *variant,
                 struct dl2_score_sums *sums, struct dl2_error *error);
};

/* Scores from a pair's sums, one for each metric of the registry, with the gaps that the processors
 * find. */
void dl2_scores_of_sums(const struct dl2_score_sums *sums, const struct dl2_image *reference,
                        const struct dl2_image *variant, struct dl2_score *scores);

/*
 * quality/score_devices.c, for programs. "cuda" or "cuda:1"; "cpu" is NULL. DL2_ERR_ARGUMENT for
 * another name, DL2_ERR_UNSUPPORTED where this build has none or there is no card.
 */
int dl2_score_device_open(const char *name, struct dl2_score_device **out, struct dl2_error *error);
/* Can a name be right in this build? The error says why not. */
int dl2_score_device_check(const char *name, struct dl2_error *error);
void dl2_score_device_close(struct dl2_score_device *device);

#endif
