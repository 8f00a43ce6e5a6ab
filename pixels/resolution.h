/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The resolution of a variant (dl2-transcode --resize-shorter, --max-side, --fit): a limit on the
 * sides of its images. An image beyond it is resized, with its aspect, until it keeps the limit; no
 * image is enlarged. One rule, one name and one record for whoever writes such a variant and
 * whoever compares it with its source.
 */
#ifndef DL2_PIXELS_RESOLUTION_H
#define DL2_PIXELS_RESOLUTION_H

#include "pixels/pixel_format.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: no limit, "full". */
struct dl2_resolution {
    uint32_t short_side;    /* of the shorter side, pixels; 0: none */
    uint32_t width, height; /* of both sides, pixels; 0: none */
    enum dl2_interpolation filter;
};

enum {
    DL2_RESOLUTION_MAX = 65535, /* of each number */
    DL2_RESOLUTION_NAME_SIZE = 32
};

bool dl2_resolution_is_full(const struct dl2_resolution *resolution);
bool dl2_resolution_equal(const struct dl2_resolution *a, const struct dl2_resolution *b);

/*
 * The size of an upright image at the resolution, in place; false where the image keeps its size.
 * The side that the limit is on has that length, the other one is rounded to the nearest, halves
 * upwards, and is 1 at least.
 */
bool dl2_resolution_apply(const struct dl2_resolution *resolution, uint32_t *width,
                          uint32_t *height);

/*
 * Is an image of one size one of the other, resized with its aspect, in whichever direction?
 * Whoever resizes rounds at least one side to whole pixels: a pixel of the smaller image is let
 * pass.
 */
bool dl2_is_resized(uint32_t width, uint32_t height, uint32_t of_width, uint32_t of_height);

/* What a variant's name ends in: "@320", "@640x480", "@320-box" of a filter that is not the usual
 * one, "" if full. */
void dl2_resolution_name(const struct dl2_resolution *resolution,
                         char out[DL2_RESOLUTION_NAME_SIZE]);

/* The record, `resize` of docs/formats/transcode.md: a new object. */
json_t *dl2_resolution_json(const struct dl2_resolution *resolution);
/* From the record; NULL is full. False where the record is not one. */
bool dl2_resolution_from_json(const json_t *json, struct dl2_resolution *out);

#endif
