/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Film grain, an augmentation as a plug-in of dl2:
 *
 *     gcc -O2 -shared -fPIC grain.c -o libgrain.so $(pkg-config --cflags dl2)
 *     dl2-train -d photos -e 3 --augment vflip,grain@./libgrain.so:strength=20:p=0.5 --out grainy
 */
#include <pixels/operation_plugin.h>
#include <stdio.h>

enum { STRENGTH, COARSE };

static const struct dl2_operation_setting settings[] = {
    {"strength", 0, 255, 16, false}, /* largest change up or down, in gray levels */
    {"coarse", 1, 64, 1, true},      /* side of a grain, in pixels */
    {NULL, 0, 0, 0, false},
};

static uint8_t clamp(double value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)(value + 0.5);
}

/* Adds `by` to the pixels of one grain that lie inside the image. */
static void change(const struct dl2_operation_image *image, uint32_t x, uint32_t y, uint32_t side,
                   double by)
{
    for (uint32_t row = y; row < y + side && row < image->height; row++)
        for (uint32_t column = x; column < x + side && column < image->width; column++)
            for (uint32_t c = 0; c < image->channels; c++) {
                uint8_t *value = image->data + row * image->stride + column * image->channels + c;
                *value = clamp(*value + by);
            }
}

static int grain(const double *values, uint64_t *random, const struct dl2_operation_image *image,
                 char *reason, size_t size)
{
    const uint32_t side = (uint32_t)values[COARSE];
    if (side > image->width || side > image->height) {
        snprintf(reason, size, "a grain of %u pixels in an image of %ux%u", (unsigned)side,
                 (unsigned)image->width, (unsigned)image->height);
        return -1;
    }
    for (uint32_t y = 0; y < image->height; y += side)
        for (uint32_t x = 0; x < image->width; x += side)
            change(image, x, y, side, values[STRENGTH] * (2 * dl2_operation_uniform(random) - 1));
    return 0;
}

static const struct dl2_plugin_operation operations[] = {
    {.name = "grain", .settings = settings, .run = grain},
    {.name = NULL},
};

const struct dl2_operation_plugin dl2_operation_plugin = {DL2_OPERATION_PLUGIN_ABI, operations};
