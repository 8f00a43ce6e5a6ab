/*
 * Which samples are slow: an online percentile of what samples took of late, and what each took in
 * earlier epochs. (MinatoLoader; there the threshold comes from a warm-up and a sample's past is
 * forgotten.)
 *
 * Memory: one byte a sample, and a histogram of fixed size. Threads: the caller's lock guards all.
 */
#ifndef DL2_LOADER_PACE_H
#define DL2_LOADER_PACE_H

#include "common/error.h"

#include <stdint.h>

/* Times are counted in buckets an eighth of an octave wide, from a microsecond to over an hour. */
#define DL2_PACE_BUCKETS 256

struct dl2_pace {
    double share;  /* the percentile, as a part of 1 */
    uint8_t *past; /* per sample: the bucket of what it last took; 0: not known */
    uint32_t recent[DL2_PACE_BUCKETS]; /* halved now and then, so that old times fade */
    uint32_t count;
    uint32_t slow;    /* of those, put aside: were there more than the percentile allows? */
    uint32_t since;   /* samples since the threshold was last computed */
    double threshold; /* seconds; INFINITY in the first DL2_PACE_WARM_UP samples */
};

#define DL2_PACE_WARM_UP 64

/* `percentile` is above 0 and below 100. */
int dl2_pace_init(struct dl2_pace *pace, uint32_t samples, double percentile,
                  struct dl2_error *error);
void dl2_pace_free(struct dl2_pace *pace);

/*
 * A sample was prepared in so many seconds, waiting left out; `slow`: it was above the threshold.
 * The threshold is the percentile, but at least twice the median, so that nothing is slow where all
 * samples are much alike; where twice as many are slow as the percentile lets expect, it is the
 * 90th if that is higher.
 */
void dl2_pace_add(struct dl2_pace *pace, uint32_t sample, double seconds, bool slow);

/* Did it take longer than the threshold when it was last prepared? */
bool dl2_pace_was_slow(const struct dl2_pace *pace, uint32_t sample);

#endif
