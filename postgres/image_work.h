/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extension's work on images, in steps, without PostgreSQL: it knows none of its headers, and
 * functions.c none of the codecs'. (Jansson's header and PostgreSQL's both declare json_object.)
 *
 * Nothing here makes a thread, handles a signal or calls into PostgreSQL, so that an error of the
 * server never leaves a step halfway. Between steps the server may stop for good: whoever frees the
 * work frees all of its memory.
 */
#ifndef DL2_POSTGRES_IMAGE_WORK_H
#define DL2_POSTGRES_IMAGE_WORK_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

/* Memory that is reused from row to row: of two images, of a scorer, of encoded bytes. */
struct dl2_image_work;

int dl2_image_work_create(struct dl2_image_work **out, struct dl2_error *error);
/* NULL is allowed. */
void dl2_image_work_destroy(struct dl2_image_work *work);

/* Frees what one large image has left behind; to be called after each row. */
void dl2_image_work_trim(struct dl2_image_work *work);

/* What the headers of a file tell. */
struct dl2_image_facts {
    const char *format; /* the codec's name */
    uint32_t width, height, channels, bits;
    bool alpha;
    int orientation;
    int quality;             /* 0: not known */
    const char *subsampling; /* NULL: not known */
    int progressive;         /* -1: not known */
    char color[80];          /* UTF-8: the description of colors that are not sRGB, else "" */
};

int dl2_image_work_look(const void *data, size_t size, struct dl2_image_facts *facts,
                        struct dl2_error *error);

enum dl2_image_role { DL2_IMAGE_REFERENCE, DL2_IMAGE_VARIANT, DL2_IMAGE_ROLES };

/* Decodes a file, as dl2-quality and dl2-transcode do. */
int dl2_image_work_decode(struct dl2_image_work *work, enum dl2_image_role role, const void *data,
                          size_t size, uint64_t max_pixels, struct dl2_error *error);

/* Scores the two images by a metric of quality/metric.h. NAN: the pair has no value. */
int dl2_image_work_score(struct dl2_image_work *work, const char *metric, double *value,
                         struct dl2_error *error);

/*
 * Encodes the reference, which was decoded of `data`, as dl2-transcode does unless told otherwise.
 * The bytes are the work's, until the next step.
 */
int dl2_image_work_encode(struct dl2_image_work *work, const char *codec, int quality,
                          const void *data, size_t size, const uint8_t **out, size_t *out_size,
                          struct dl2_error *error);

#endif
