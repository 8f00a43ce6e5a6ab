/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quantization tables by rate-distortion optimization (Ratnakar, Livny: "RD-OPT", DCC 1995). Each
 * coefficient has a curve: for each step, what its quantization costs in bits, the entropy of its
 * levels, and in weighted squared error, both from counts of the dataset's own coefficients. For a
 * price lambda of a bit each takes the step with the least error + lambda * bits. Quality q has the
 * price at which all coefficients together take as many bits as with libjpeg's tables of quality q.
 */
#ifndef DL2_TRANSCODE_FIT_STEPS_H
#define DL2_TRANSCODE_FIT_STEPS_H

#include "codec/codec.h"
#include "codec/jpeg_tables.h"
#include "common/error.h"

/* `weights`: of Y, Cb and Cr. Sets the family's steps and prices. `codec` takes tables. */
int dl2_fit_steps(const struct dl2_codec *codec, const struct dl2_coefficient_counts *counts,
                  double weights[3][64], struct dl2_jpeg_family *family, struct dl2_error *error);

#endif
