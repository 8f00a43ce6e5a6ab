/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/codec/jpeg_compare.h"

#include <stdlib.h>

bool jpeg_compare_open(struct jpeg_compare *compare, const uint8_t *data, size_t size,
                       struct dl2_image_info *info)
{
    struct dl2_image_info other = {.orientation = 1};
    *info = other;
    compare->own.base.data = compare->libjpeg.base.data = data;
    compare->own.base.size = compare->libjpeg.base.size = size;
    const int own = dl2_jpeg_open(&compare->own, info, NULL);
    const int libjpeg = dl2_jpeg_open(&compare->libjpeg, &other, NULL);
    if (own != libjpeg)
        abort();
    compare->own.libjpeg_only = false;
    compare->own.baseline.eager = true;
    compare->libjpeg.libjpeg_only = true;
    return own == DL2_OK;
}

static uint8_t sample_at(const struct dl2_plane *plane, uint32_t channels, uint32_t column,
                         uint32_t row, uint32_t channel)
{
    const uint32_t x = column - plane->x / plane->step_x, y = row - plane->y / plane->step_y;
    if (x >= plane->width || y >= plane->height) /* every plane has the rectangle */
        abort();
    return plane->data[y * plane->stride + (size_t)x * channels + channel];
}

static bool compare_planes(const struct dl2_raster rasters[2], unsigned i,
                           const struct dl2_decode_request *request, struct jpeg_verdict *verdict)
{
    const struct dl2_plane *const a = &rasters[0].planes[i], *const b = &rasters[1].planes[i];
    const uint32_t channels =
        dl2_raster_planes(&rasters[0]) == 1 ? dl2_raster_channels(&rasters[0]) : 1;
    if (a->step_x != b->step_x || a->step_y != b->step_y)
        abort();
    verdict->plane = i;
    for (uint32_t row = request->y / a->step_y; row * a->step_y < request->y + request->height;
         row++)
        for (uint32_t column = request->x / a->step_x;
             column * a->step_x < request->x + request->width; column++)
            for (uint32_t c = 0; c < channels; c++) {
                verdict->values[0] = sample_at(a, channels, column, row, c);
                verdict->values[1] = sample_at(b, channels, column, row, c);
                verdict->column = column;
                verdict->row = row;
                if (verdict->values[0] != verdict->values[1])
                    return false;
            }
    return true;
}

void jpeg_compare_read(struct jpeg_compare *compare, const struct dl2_decode_request *request,
                       unsigned simd_flags, struct jpeg_verdict *verdict)
{
    struct dl2_raster rasters[2];
    const uint64_t own = compare->own.own, handed = compare->own.handed;
    *verdict = (struct jpeg_verdict){.same = true};
    compare->own.baseline.kernels = dl2_jpeg_kernels_for(simd_flags);
    compare->own.color = dl2_jpeg_color_kernels_for(simd_flags);
    verdict->own = dl2_jpeg_read(&compare->own, request, &compare->images[0], &rasters[0], NULL);
    verdict->libjpeg =
        dl2_jpeg_read(&compare->libjpeg, request, &compare->images[1], &rasters[1], NULL);
    if (compare->libjpeg.own || compare->libjpeg.handed)
        abort();
    verdict->taken = compare->own.own > own && compare->own.handed == handed;
    if (verdict->own < 0 || verdict->libjpeg < 0)
        return;
    if (rasters[0].color != rasters[1].color)
        abort();
    for (unsigned i = 0; i < dl2_raster_planes(&rasters[0]) && verdict->same; i++)
        verdict->same = compare_planes(rasters, i, request, verdict);
}

void jpeg_compare_free(struct jpeg_compare *compare)
{
    dl2_jpeg_close(&compare->own);
    dl2_jpeg_close(&compare->libjpeg);
    dl2_bytes_free(&compare->own.base.block);
    dl2_bytes_free(&compare->libjpeg.base.block);
    for (size_t i = 0; i < 2; i++)
        dl2_image_free(&compare->images[i]);
}
