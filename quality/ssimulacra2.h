/* SPDX-License-Identifier: BSD-2-Clause */
/* The inner loops of SSIMULACRA 2, whose definition is in ssimulacra2.c. metric_loops.h has them;
 * each path of struct dl2_metric_kernels compiles them once. Private to this room and its tests. */
#ifndef DL2_QUALITY_SSIMULACRA2_H
#define DL2_QUALITY_SSIMULACRA2_H

#include <stdbool.h>
#include <stddef.h>

enum {
    DL2_SSIMULACRA2_TAPS = 9, /* of the Gaussian */
    /* All loops work on whole blocks of so many columns. */
    DL2_SSIMULACRA2_BLOCK = 16,
};

/* The Gaussian's five different weights, the middle one first. */
#define DL2_SSIMULACRA2_WEIGHTS                                                                    \
    {                                                                                              \
        0.264621105f, 0.212928592f, 0.109335373f, 0.0360111147f, 0.00941436781f                    \
    }

/* C2 of the structure's term. */
#define DL2_SSIMULACRA2_C2 0.0009f

/* What is summed over the pixels of one channel at one scale: each error, and its fourth power. */
enum {
    DL2_SSIMULACRA2_STRUCTURE,
    DL2_SSIMULACRA2_ARTIFACT, /* an edge in the variant, none in the reference */
    DL2_SSIMULACRA2_LOST,     /* an edge in the reference, none in the variant */
    DL2_SSIMULACRA2_MAPS,
};

/* A row of one channel. Rows from mean_a on are filtered down the columns, not yet along the row;
 * they have 4 readable columns before the first and behind the last block. */
struct dl2_ssimulacra2_row {
    const float *a, *b;                        /* the reference, the variant */
    const float *mean_a, *mean_b;              /* of a, b */
    const float *mean_squares, *mean_distance; /* of a^2 + b^2, (a - b)^2; for structure alone */
    const float *mask;                         /* 1 for columns that count, 0 behind them */
    bool structure, edges;                     /* which errors are wanted */
};

#endif
