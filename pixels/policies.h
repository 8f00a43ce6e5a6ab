/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Policies: each draws operations of pixels/operations.h and how strong they are, as torchvision's
 * transforms of the same names do (torchvision/transforms/autoaugment.py).
 */
#ifndef DL2_PIXELS_POLICIES_H
#define DL2_PIXELS_POLICIES_H

#include "common/random.h"
#include "pixels/operations.h"

/* RandAugment (Cubuk et al., 2019): `count` operations, all of magnitude number `number` of
 * `bins`. */
void dl2_policy_randaugment(struct dl2_pixels *pixels, struct dl2_random *random, unsigned count,
                            unsigned number, unsigned bins, uint8_t fill);
/* TrivialAugment, the wide space (Müller and Hutter, 2021): one operation, of any magnitude. */
void dl2_policy_trivialaugment(struct dl2_pixels *pixels, struct dl2_random *random, unsigned bins,
                               uint8_t fill);
/* AutoAugment's policy for ImageNet (Cubuk et al., 2018): one of 25 pairs of operations. */
void dl2_policy_autoaugment(struct dl2_pixels *pixels, struct dl2_random *random, uint8_t fill);

/* ---- for tests ---- */

/* How far the magnitudes reach. */
enum dl2_policy_space {
    DL2_POLICY_NARROW, /* RandAugment, AutoAugment */
    DL2_POLICY_WIDE    /* TrivialAugment */
};

struct dl2_policy_operation {
    const char *name; /* torchvision's */
    bool is_signed;   /* half of the magnitudes are negated */
    /* The last magnitude of each space. Others lie on a line from 0; but Posterize drops so many of
     * 8 bits, Solarize goes down from there, and a translation in the narrow space is a part of the
     * image's side. */
    double last[2];
    /* One of these; none: nothing is done. */
    void (*plain)(struct dl2_pixels *pixels);
    void (*blend)(struct dl2_pixels *pixels, float factor); /* 1 + magnitude */
    void (*limit)(struct dl2_pixels *pixels, double magnitude);
    struct dl2_affine (*affine)(const struct dl2_pixels *pixels, double magnitude);
};

/* The operations of RandAugment and TrivialAugment, then Invert. */
enum { DL2_POLICY_SHARED = 14, DL2_POLICY_ALL };
extern const struct dl2_policy_operation dl2_policy_operations[DL2_POLICY_ALL];

/* Magnitude number `number` of `bins` for images of this size. */
double dl2_policy_magnitude(const struct dl2_policy_operation *operation,
                            enum dl2_policy_space space, unsigned number, unsigned bins,
                            const struct dl2_pixels *pixels);

/* One half of a pair of AutoAugment's. */
struct dl2_policy_step {
    const struct dl2_policy_operation *operation;
    double chance;
    unsigned number; /* of 10 bins */
};
enum { DL2_POLICY_PAIRS = 25 };
extern const struct dl2_policy_step dl2_policy_imagenet[DL2_POLICY_PAIRS][2];

#endif
