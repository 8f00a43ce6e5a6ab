/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/slow_samples.h"

#include "common/memory.h"

#include <math.h>
#include <stdlib.h>

/* All counts are halved at MEMORY samples; the threshold is computed every INTERVAL samples. */
#define MEMORY   2048
#define INTERVAL 16

static unsigned bucket_of(double seconds)
{
    const double bucket = 1 + 8 * log2(seconds * 1e6);
    return bucket < 1 ? 1 : bucket > DL2_SLOW_BUCKETS - 1 ? DL2_SLOW_BUCKETS - 1 : (unsigned)bucket;
}

/* The upper end of a bucket, so that no time in the bucket is above it. */
static double seconds_of(unsigned bucket)
{
    return exp2(bucket / 8.0) * 1e-6;
}

int dl2_slow_samples_init(struct dl2_slow_samples *times, uint32_t samples, double percentile,
                          struct dl2_error *error)
{
    *times = (struct dl2_slow_samples){.share = percentile / 100, .threshold = INFINITY};
    return DL2_NEW(&times->past, samples, "slow samples", error);
}

void dl2_slow_samples_free(struct dl2_slow_samples *times)
{
    free(times->past);
    times->past = NULL;
}

static double percentile_of(const struct dl2_slow_samples *times, double share)
{
    uint32_t below = 0;
    unsigned bucket = 0;
    while (bucket + 1 < DL2_SLOW_BUCKETS && below + times->recent[bucket] < share * times->count)
        below += times->recent[bucket++];
    return seconds_of(bucket);
}

static void compute_threshold(struct dl2_slow_samples *times)
{
    const bool too_many = times->slow_count > 2 * (1 - times->share) * times->count;
    const double limit = percentile_of(times, too_many ? fmax(times->share, 0.9) : times->share);
    times->threshold = fmax(limit, 2 * percentile_of(times, 0.5));
    times->since = 0;
}

static void fade_times(struct dl2_slow_samples *times)
{
    times->count = 0;
    for (unsigned i = 0; i < DL2_SLOW_BUCKETS; i++)
        times->count += times->recent[i] /= 2;
    times->slow_count /= 2;
}

void dl2_slow_samples_add(struct dl2_slow_samples *times, uint32_t sample, double seconds,
                          bool slow)
{
    const unsigned bucket = bucket_of(seconds);
    times->past[sample] = (uint8_t)bucket;
    times->recent[bucket]++;
    times->count++;
    times->slow_count += slow;
    times->since++;
    if (times->count >= MEMORY)
        fade_times(times);
    if (times->since >= INTERVAL &&
        (times->count >= DL2_SLOW_WARM_UP || times->threshold < INFINITY))
        compute_threshold(times);
}

bool dl2_slow_samples_has(const struct dl2_slow_samples *times, uint32_t sample)
{
    return times->past[sample] && seconds_of(times->past[sample]) > times->threshold;
}
