/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scoring on a graphics card: a device makes the sums of a pair of images for the metrics that it
 * knows, and the metrics' rows turn sums into scores. Definitions are the same as on the
 * processors; values differ by less than 1e-5, and those of squared errors not at all. What a
 * device doesn't know, the processors score.
 *
 * Threads: any thread may use a device; a lane belongs to one thread at a time.
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

/* A row of the registry of devices. */
struct dl2_score_device_class {
    const char *name;    /* "cuda" */
    const char *summary; /* one line, for lists */
    /* What it can score; NULL ends them. The processors, which score everything, have no list and
     * no functions. */
    const struct dl2_metric *const *metrics;
    /* `number` counts the machine's cards from 0. */
    int (*open)(unsigned number, struct dl2_score_device **out, struct dl2_error *error);
    void (*close)(struct dl2_score_device *device); /* NULL is fine; lanes must be gone */
    int (*lane_create)(struct dl2_score_device *device, struct dl2_score_lane **out,
                       struct dl2_error *error);
    void (*lane_free)(struct dl2_score_lane *lane); /* NULL is fine */
    /* All following scores are against this image; the device keeps a copy. */
    int (*set_reference)(struct dl2_score_lane *lane, const struct dl2_image *reference,
                         struct dl2_error *error);
    /* `variant` has the reference's size. sums[i] are those of metrics[i]. */
    int (*score)(struct dl2_score_lane *lane, const struct dl2_image *variant,
                 double (*sums)[DL2_METRIC_SUMS], struct dl2_error *error);
};

/* quality/score_devices.c, for programs: the devices of this build, the processors among them. NULL
 * at the end. */
const struct dl2_score_device_class *dl2_score_device_at(unsigned index);
/*
 * quality/score_devices.c, for programs: opens the device that `text` names (common/device_name.h).
 * For "cpu" *out is NULL: the processors need none. DL2_ERR_ARGUMENT for a name that this build
 * does not have, DL2_ERR_UNSUPPORTED where there is no such card.
 */
int dl2_score_device_open(const char *text, struct dl2_score_device **out, struct dl2_error *error);
/* Checks the name alone. */
int dl2_score_device_check(const char *text, struct dl2_error *error);
void dl2_score_device_close(struct dl2_score_device *device);

#endif
