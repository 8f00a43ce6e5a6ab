/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which samples are slow: an online percentile of the time that recent samples took, and the time
 * that each sample took in earlier epochs. (After MinatoLoader, whose threshold comes from a
 * warm-up and which forgets earlier epochs.)
 *
 * Memory: one byte a sample, and a histogram of fixed size. Threads: the caller's lock guards all.
 */
#ifndef DL2_LOADER_SLOW_SAMPLES_H
#define DL2_LOADER_SLOW_SAMPLES_H

#include "common/error.h"

#include <stdint.h>

/* Times are counted in buckets an eighth of an octave wide, from a microsecond to over an hour. */
#define DL2_SLOW_BUCKETS 256

/* No sample is slow before this many were timed. */
#define DL2_SLOW_WARM_UP 64

struct dl2_slow_samples {
    double share;                      /* the percentile / 100 */
    uint8_t *past;                     /* per sample: the bucket of its last time; 0: not known */
    uint32_t recent[DL2_SLOW_BUCKETS]; /* halved now and then, so that old times fade */
    uint32_t count;                    /* samples in `recent` */
    uint32_t slow_count;               /* those of them that were above the threshold */
    uint32_t since;                    /* samples since the threshold was last computed */
    double threshold; /* seconds; INFINITY for the first DL2_SLOW_WARM_UP samples */
};

/* `percentile` is above 0 and below 100. */
int dl2_slow_samples_init(struct dl2_slow_samples *times, uint32_t samples, double percentile,
                          struct dl2_error *error);
void dl2_slow_samples_free(struct dl2_slow_samples *times);

/*
 * Records that a sample took `seconds` to prepare, without waiting; `slow`: that was above the
 * threshold. The threshold is the percentile, but at least twice the median, so that nothing is
 * slow where all samples take about as long. Where twice as many samples are slow as the percentile
 * implies, the threshold is the 90th percentile if that is higher.
 */
void dl2_slow_samples_add(struct dl2_slow_samples *times, uint32_t sample, double seconds,
                          bool slow);

/* Did the sample take longer than the threshold when it was last prepared? */
bool dl2_slow_samples_has(const struct dl2_slow_samples *times, uint32_t sample);

#endif
