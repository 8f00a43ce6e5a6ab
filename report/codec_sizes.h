/* SPDX-License-Identifier: BSD-2-Clause */
/* Codecs compared by the sizes of their variants at equal image quality. */
#ifndef DL2_REPORT_CODEC_SIZES_H
#define DL2_REPORT_CODEC_SIZES_H

#include "report/study.h"

/*
 * Mean size of a codec's files at equal metric, in percent of another codec's: the geometric mean
 * over the range of the metric that both have, with log sizes interpolated linearly. NAN if they
 * share none. `first` and `reference` are the codecs' first variants; the metric is at offset
 * `field` of struct dl2_study_variant.
 */
double dl2_codec_relative_size(const struct dl2_study *study, size_t first, size_t reference,
                               size_t field);

#endif
