/* SPDX-License-Identifier: BSD-2-Clause */
/* The plan of a resize, as pixels/resize.c makes it, for transform.cu. */
#include "cuda/decode/transform.h"

#include "pixels/resize_kernels.h"

#include <math.h>

static size_t axes_at(uint32_t images)
{
    return (images * sizeof(struct dl2_gpu_resize) + 15) / 16 * 16;
}

size_t dl2_gpu_plan_bytes(uint32_t images)
{
    return axes_at(images) + (size_t)images * DL2_GPU_AXES * sizeof(struct dl2_gpu_axis);
}

void dl2_gpu_plan_begin(struct dl2_gpu_plan *plan, void *table, uint32_t images, uint32_t side,
                        uint32_t channels)
{
    *plan = (struct dl2_gpu_plan){.side = side,
                                  .channels = channels,
                                  .resizes = table,
                                  .axes = (void *)((uint8_t *)table + axes_at(images))};
}

size_t dl2_gpu_plan_scratch(const struct dl2_gpu_plan *plan)
{
    return plan->windows * 2 * sizeof(uint32_t) + plan->weights * sizeof(int16_t);
}

static void add_axis(struct dl2_gpu_plan *plan, const struct dl2_resize_axis *axis, bool flip)
{
    const double scale = (axis->end - axis->start) / plan->side;
    const float width = scale < 1 ? 1 : (float)scale;
    const double widest = ceil(2 * (double)width);
    const uint32_t samples = axis->high - axis->low;
    const uint32_t most = widest < samples ? (uint32_t)widest : samples;
    plan->axes[plan->axis_count++] = (struct dl2_gpu_axis){
        .start = axis->start,
        .scale = scale,
        .width = width,
        .inverse = 1 / width,
        .low = axis->low,
        .size = samples,
        .most = most,
        .flip = flip,
        .window = plan->windows,
        .weight = plan->weights,
    };
    plan->windows += plan->side;
    plan->weights += (size_t)most * plan->side;
}

bool dl2_gpu_plan_add(struct dl2_gpu_plan *plan, const struct dl2_gpu_image *image)
{
    const struct dl2_raster *raster = &image->raster;
    const unsigned planes = plan->channels == 1 ? 1 : dl2_raster_planes(raster);
    struct dl2_gpu_resize *resize = &plan->resizes[plan->images];
    const uint32_t per_sample = raster->color == DL2_COLOR_RGB ? 3 : 1;
    const struct dl2_gpu_plan before = *plan;
    *resize =
        (struct dl2_gpu_resize){.color = raster->color, .shift = image->shift, .out = image->out};
    if (raster->color == DL2_COLOR_YCBCR_LIMITED)
        return false;
    for (unsigned p = 0; p < planes; p++) {
        const struct dl2_plane *plane = &raster->planes[p];
        resize->data[p] = plane->data;
        resize->stride[p] = (uint32_t)plane->stride;
        resize->shift_bytes[p] = plane->step_x ? 8 * image->mcu_x / plane->step_x * per_sample : 0;
        resize->shift_rows[p] = plane->step_y ? 8 * image->mcu_y / plane->step_y : 0;
        if ((uintptr_t)plane->data % 4 || plane->stride % 4 || plane->stride > UINT32_MAX) {
            *plan = before;
            return false;
        }
        if (p && dl2_same_geometry(plane, plane - 1)) {
            resize->columns[p] = resize->columns[p - 1];
            resize->rows[p] = resize->rows[p - 1];
            continue;
        }
        struct dl2_resize_axis across, down;
        if (plan->axis_count + 2 > before.axis_count + DL2_GPU_AXES ||
            !dl2_resize_axes(plane, &image->limit, &image->box, &across, &down)) {
            *plan = before;
            return false;
        }
        resize->columns[p] = plan->axis_count;
        resize->rows[p] = plan->axis_count + 1;
        add_axis(plan, &across, image->flip);
        add_axis(plan, &down, false);
    }
    plan->images++;
    return true;
}
