/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quantization tables that were fitted to a dataset and its use (transcode/tables/fit_tables.h), in
 * a file of JSON, dl2-tables/1 of docs/formats/transcode.md. A file has a family of tables for each
 * resolution and chroma subsampling that it was fitted for: a pair for each quality from 1 to 100,
 * luma's and chroma's, which makes files about as large as libjpeg's tables of that quality do.
 */
#ifndef DL2_CODEC_JPEG_TABLES_H
#define DL2_CODEC_JPEG_TABLES_H

#include "common/error.h"
#include "pixels/resolution.h"

#include <jansson.h>
#include <stdint.h>

enum { DL2_TABLES_QUALITIES = 100, DL2_TABLES_NAME_SIZE = 32 };
#define DL2_TABLES_SCHEMA "dl2-tables/1"

/* Quantization steps of luma and chroma at the qualities 1 to 100, in natural order, 1 to 255. */
struct dl2_jpeg_steps {
    uint16_t steps[101][2][64]; /* [0] is not used */
};

struct dl2_jpeg_family {
    char resolution[DL2_RESOLUTION_NAME_SIZE]; /* dl2_resolution_name() */
    char subsampling[4];                       /* "420" */
    /* For quality q at q - 1: the steps, 1 to 255, in natural order (k is row k / 8, column
     * k % 8); and what a bit was worth when they were fitted, in weighted squares of coefficients
     * (JPEG's, whose DC is eight times the mean). */
    uint8_t steps[DL2_TABLES_QUALITIES][2][64];
    double lambda[DL2_TABLES_QUALITIES]; /* not read from files */
    uint64_t sum; /* of steps and subsampling, on which files depend; dl2_jpeg_tables_load()'s */
};

enum {
    DL2_COEFFICIENT_BINS = 8193, /* magnitudes, in eighths */
    DL2_DIFFERENCE_BINS = 16385,
};

/* How often the coefficients of images have which magnitude, in eighths and before quantization;
 * Y, Cb and Cr. Natural order. */
struct dl2_coefficient_counts {
    uint64_t blocks[3];
    uint64_t differences[3][DL2_DIFFERENCE_BINS]; /* of DC to the block before */
    uint64_t magnitudes[3][64][DL2_COEFFICIENT_BINS];
};

struct dl2_jpeg_tables {
    char name[DL2_TABLES_NAME_SIZE]; /* of the file, without folder and extension */
    char *path;
    struct dl2_jpeg_family *families;
    size_t count;
    json_t *about; /* what the file says of how it was made */
};

/* Only takes the path and the name of tables, which need not be there yet. DL2_ERR_ARGUMENT for a
 * name with other than letters and digits, which variants could not have. Free *out in any case. */
int dl2_jpeg_tables_name(const char *path, struct dl2_jpeg_tables **out, struct dl2_error *error);
/* Reads the families of named tables, once. DL2_ERR_FORMAT for a file that is not such tables. */
int dl2_jpeg_tables_load(struct dl2_jpeg_tables *tables, struct dl2_error *error);
void dl2_jpeg_tables_free(struct dl2_jpeg_tables *tables);

/* The family for a resolution and subsampling; NULL: DL2_ERR_ARGUMENT, and the message lists what
 * there is. */
const struct dl2_jpeg_family *dl2_jpeg_tables_find(const struct dl2_jpeg_tables *tables,
                                                   const char *resolution, const char *subsampling,
                                                   struct dl2_error *error);

/* Writes families as a file; `about` is part of it and taken over. */
int dl2_jpeg_tables_save(const char *path, const struct dl2_jpeg_family *families, size_t count,
                         json_t *about, struct dl2_error *error);

#endif
