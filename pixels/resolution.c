/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/resolution.h"

#include "pixels/resize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool dl2_resolution_is_full(const struct dl2_resolution *resolution)
{
    return !resolution->short_side && !resolution->width;
}

bool dl2_resolution_equal(const struct dl2_resolution *a, const struct dl2_resolution *b)
{
    return a->short_side == b->short_side && a->width == b->width && a->height == b->height &&
           (a->filter == b->filter || dl2_resolution_is_full(a));
}

/* value * numerator / denominator, rounded, at least 1. */
static uint32_t scale(uint32_t value, uint32_t numerator, uint32_t denominator)
{
    const uint64_t scaled = ((uint64_t)value * numerator + denominator / 2) / denominator;
    return scaled ? (uint32_t)scaled : 1;
}

bool dl2_resolution_apply(const struct dl2_resolution *resolution, uint32_t *width,
                          uint32_t *height)
{
    const uint32_t w = *width, h = *height, side = resolution->short_side;
    if (side && (w < h ? w : h) > side) {
        *width = w <= h ? side : scale(w, side, h);
        *height = w <= h ? scale(h, side, w) : side;
    } else if (resolution->width && (w > resolution->width || h > resolution->height)) {
        const bool by_width = (uint64_t)w * resolution->height >= (uint64_t)h * resolution->width;
        *width = by_width ? resolution->width : scale(w, resolution->height, h);
        *height = by_width ? scale(h, resolution->width, w) : resolution->height;
    }
    return *width != w || *height != h;
}

bool dl2_is_resized(uint32_t width, uint32_t height, uint32_t of_width, uint32_t of_height)
{
    if (width > of_width)
        return dl2_is_resized(of_width, of_height, width, height);
    return fabs(width - (double)of_width * height / of_height) <= 1 ||
           fabs(height - (double)of_height * width / of_width) <= 1;
}

void dl2_resolution_name(const struct dl2_resolution *resolution,
                         char out[DL2_RESOLUTION_NAME_SIZE])
{
    const bool usual = resolution->filter == DL2_LANCZOS;
    const char *filter = usual ? "" : dl2_interpolation_words[resolution->filter];
    out[0] = '\0';
    if (resolution->short_side)
        snprintf(out, DL2_RESOLUTION_NAME_SIZE, "@%u%s%s", resolution->short_side, usual ? "" : "-",
                 filter);
    else if (resolution->width)
        snprintf(out, DL2_RESOLUTION_NAME_SIZE, "@%ux%u%s%s", resolution->width, resolution->height,
                 usual ? "" : "-", filter);
}

json_t *dl2_resolution_json(const struct dl2_resolution *resolution)
{
    const char *filter = dl2_interpolation_words[resolution->filter];
    return resolution->short_side
               ? json_pack("{s:I, s:s}", "short", (json_int_t)resolution->short_side, "filter",
                           filter)
               : json_pack("{s:[I,I], s:s}", "fit", (json_int_t)resolution->width,
                           (json_int_t)resolution->height, "filter", filter);
}

/* A number of the record; 0: it is none. */
static uint32_t side_of(const json_t *json)
{
    const json_int_t side = json_integer_value(json);
    return side > 0 && side <= DL2_RESOLUTION_MAX ? (uint32_t)side : 0;
}

bool dl2_resolution_from_json(const json_t *json, struct dl2_resolution *out)
{
    *out = (struct dl2_resolution){0};
    if (!json)
        return true;
    const json_t *fit = json_object_get(json, "fit");
    const char *filter = json_string_value(json_object_get(json, "filter"));
    int number = 0;
    while (filter && dl2_interpolation_words[number] &&
           strcmp(dl2_interpolation_words[number], filter) != 0)
        number++;
    if (!filter || !dl2_interpolation_words[number])
        return false;
    out->filter = (enum dl2_interpolation)number;
    out->short_side = side_of(json_object_get(json, "short"));
    out->width = side_of(json_array_get(fit, 0));
    out->height = side_of(json_array_get(fit, 1));
    return fit ? out->width && out->height && !out->short_side : out->short_side;
}
