#include "loader/pace.h"

#include "common/memory.h"

#include <math.h>
#include <stdlib.h>

/* Above so many samples all counts are halved; how often the threshold is computed anew. */
#define MEMORY   2048
#define INTERVAL 16

static unsigned bucket_of(double seconds)
{
    const double bucket = 1 + 8 * log2(seconds * 1e6);
    return bucket < 1 ? 1 : bucket > DL2_PACE_BUCKETS - 1 ? DL2_PACE_BUCKETS - 1 : (unsigned)bucket;
}

/* The upper end of a bucket, so that what fell into it is not above it. */
static double seconds_of(unsigned bucket)
{
    return exp2(bucket / 8.0) * 1e-6;
}

int dl2_pace_init(struct dl2_pace *pace, uint32_t samples, double percentile,
                  struct dl2_error *error)
{
    *pace = (struct dl2_pace){.share = percentile / 100, .threshold = INFINITY};
    pace->past = dl2_calloc(samples, sizeof *pace->past);
    if (!pace->past)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %u samples", samples);
    return DL2_OK;
}

void dl2_pace_free(struct dl2_pace *pace)
{
    free(pace->past);
    pace->past = NULL;
}

static double percentile(const struct dl2_pace *pace, double share)
{
    uint32_t below = 0;
    unsigned bucket = 0;
    while (bucket + 1 < DL2_PACE_BUCKETS && below + pace->recent[bucket] < share * pace->count)
        below += pace->recent[bucket++];
    return seconds_of(bucket);
}

static void compute_threshold(struct dl2_pace *pace)
{
    const bool too_many = pace->slow > 2 * (1 - pace->share) * pace->count;
    const double limit = percentile(pace, too_many ? fmax(pace->share, 0.9) : pace->share);
    pace->threshold = fmax(limit, 2 * percentile(pace, 0.5));
    pace->since = 0;
}

static void fade(struct dl2_pace *pace)
{
    pace->count = 0;
    for (unsigned i = 0; i < DL2_PACE_BUCKETS; i++)
        pace->count += pace->recent[i] /= 2;
    pace->slow /= 2;
}

void dl2_pace_add(struct dl2_pace *pace, uint32_t sample, double seconds, bool slow)
{
    const unsigned bucket = bucket_of(seconds);
    pace->past[sample] = (uint8_t)bucket;
    pace->recent[bucket]++;
    pace->count++;
    pace->slow += slow;
    pace->since++;
    if (pace->count >= MEMORY)
        fade(pace);
    if (pace->since >= INTERVAL && (pace->count >= DL2_PACE_WARM_UP || pace->threshold < INFINITY))
        compute_threshold(pace);
}

bool dl2_pace_was_slow(const struct dl2_pace *pace, uint32_t sample)
{
    return pace->past[sample] && seconds_of(pace->past[sample]) > pace->threshold;
}
