/* SPDX-License-Identifier: BSD-2-Clause */
/* How the images of a variant, and their sources, spread in size: counts of its list of images. */
#ifndef DL2_REPORT_IMAGE_HISTOGRAMS_H
#define DL2_REPORT_IMAGE_HISTOGRAMS_H

#include "common/error.h"

#include <stddef.h>

enum dl2_image_figure {
    DL2_IMAGE_BYTES,
    DL2_IMAGE_BITS_PER_PIXEL, /* of its own pixels, of all frames; of a volume's voxels */
    DL2_IMAGE_SHORT,          /* the shorter side, pixels */
    DL2_IMAGE_FIGURES,
};

/* Bins are quarters of an octave, from 2^-16 to 2^48; what is beyond counts in the outer ones. */
enum { DL2_IMAGE_BINS = 4 * 64 };

struct dl2_image_histogram {
    double images[DL2_IMAGE_BINS];
};

/* Where bin `bin` begins; its end is the next one's start. */
double dl2_image_bin(size_t bin);

/*
 * Reads a dl2-variant.jsonl: own[DL2_IMAGE_FIGURES] are its images, source[DL2_IMAGE_FIGURES] their
 * sources. A figure that an image lacks, or of 0, is not counted. DL2_ERR_SYSTEM, DL2_ERR_FORMAT.
 */
int dl2_image_histograms_read(const char *path, struct dl2_image_histogram *own,
                              struct dl2_image_histogram *source, struct dl2_error *error);

#endif
