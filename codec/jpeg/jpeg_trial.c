/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_trial.h"

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_color.h"
#include "codec/jpeg/jpeg_forward.h"
#include "codec/jpeg/jpeg_inverse.h"
#include "codec/jpeg/jpeg_sweep.h"
#include "common/memory.h"
#include "common/simd.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, SIZE_8 = DL2_JPEG_SIZES - 1 /* the kernel's place */ };

struct dl2_jpeg_trial {
    struct dl2_jpeg_steps steps;
    const struct dl2_jpeg_forward *forward;
    const struct dl2_jpeg_kernels *inverse;
    const struct dl2_jpeg_color_kernels *color;
    struct dl2_jpeg_sweep *sweep;
    uint32_t width, height, down; /* pixels; blocks of luma down an MCU */
    uint32_t mcus, components;    /* rows of MCUs */
    struct dl2_jpeg_part parts[3];
    uint8_t *planes; /* memory of the parts' samples */
    uint8_t *made;   /* [mcus] the quality of the planes' rows; 0: none */
    uint8_t *shown;  /* [height] the quality of the image's rows */
    int quality;
    struct dl2_jpeg_divisors divisors[2]; /* of luma and chroma */
    struct dl2_image image;               /* RGB; a gray image is its plane */
    struct dl2_bytes lines;
    int orientation;          /* that files have; 1: `upright` is not used */
    struct dl2_image upright; /* a whole file's pixels */
    int upright_quality;
};

static int trial_make_planes(struct dl2_jpeg_trial *trial, uint32_t across, uint32_t down,
                             struct dl2_error *error)
{
    size_t sizes[3], total = DL2_JPEG_COLOR_SLACK;
    for (uint32_t c = 0; c < trial->components; c++) {
        struct dl2_jpeg_part *const part = &trial->parts[c];
        *part = (struct dl2_jpeg_part){.across = c ? across : 1, .down = c ? down : 1};
        part->width = dl2_divide_up(trial->width, part->across);
        part->height = dl2_divide_up(trial->height, part->down);
        /* As libjpeg chooses (jdsample.c). */
        part->smooth =
            (part->across == 2 && part->width > 2) || (part->across == 1 && part->down == 2);
        part->stride = (size_t)dl2_divide_up(part->width, DL2_ALIGNMENT) * DL2_ALIGNMENT;
        sizes[c] = part->stride * SIDE * dl2_divide_up(part->height, SIDE);
        total += sizes[c];
    }
    trial->planes = dl2_alloc_aligned(total, 1);
    trial->made = dl2_calloc(trial->mcus, 1);
    trial->shown = dl2_calloc(trial->height, 1);
    if (!trial->planes || !trial->made || !trial->shown)
        return dl2_error_memory(error, "planes of %ux%u pixels", (unsigned)trial->width,
                                (unsigned)trial->height);
    uint8_t *at = trial->planes;
    for (uint32_t c = 0; c < trial->components; at += sizes[c++])
        trial->parts[c].data = at;
    if (trial->components > 1)
        return dl2_image_reshape(&trial->image, trial->width, trial->height, 3, error);
    trial->image = (struct dl2_image){.data = trial->planes,
                                      .width = trial->width,
                                      .height = trial->height,
                                      .channels = 1,
                                      .stride = trial->parts[0].stride};
    return DL2_OK;
}

int dl2_jpeg_trial_new(struct dl2_jpeg_trial **out, const struct dl2_image *image, uint32_t across,
                       uint32_t down, const struct dl2_jpeg_steps *steps, int orientation,
                       struct dl2_error *error)
{
    struct dl2_jpeg_trial *const trial = dl2_alloc_aligned(1, sizeof *trial);
    *out = NULL;
    if (!trial)
        return dl2_error_memory(error, "a JPEG encoder");
    *trial = (struct dl2_jpeg_trial){
        .steps = *steps,
        .forward = dl2_jpeg_forward_for(dl2_simd_flags()),
        .inverse = dl2_jpeg_kernels_for(dl2_simd_flags()),
        .color = dl2_jpeg_color_kernels_for(dl2_simd_flags()),
        .width = image->width,
        .height = image->height,
        .down = down,
        .mcus = dl2_divide_up(image->height, SIDE * down),
        .components = image->channels,
        .image = DL2_IMAGE_INIT,
        .orientation = orientation,
        .upright = DL2_IMAGE_INIT,
    };
    int status =
        dl2_jpeg_sweep_new(&trial->sweep, image, across, down, DL2_JPEG_OPTIMIZED, 1, error);
    if (status == DL2_OK)
        status = trial_make_planes(trial, across, down, error);
    if (status == DL2_OK)
        dl2_jpeg_sweep_transform(trial->sweep);
    if (status == DL2_OK)
        *out = trial;
    else
        dl2_jpeg_trial_free(trial);
    return status;
}

/* Blocks side by side of a component: as many as the kernel has lanes, the first one again in the
 * place of those beyond the row's last. */
static bool trial_make_blocks(const struct dl2_jpeg_trial *trial, uint32_t c, const int16_t *from,
                              uint32_t count, uint8_t *out)
{
    _Alignas(64) uint16_t levels[DL2_JPEG_LANES][64];
    struct dl2_jpeg_inverse_job jobs[DL2_JPEG_LANES];
    const uint32_t lanes = trial->inverse->lanes[SIZE_8];
    for (uint32_t i = 0; i < lanes; i++) {
        if (i >= count) {
            jobs[i] = jobs[0];
            continue;
        }
        trial->forward->quantize(from + 64 * (size_t)i, &trial->divisors[c > 0], levels[i]);
        for (int k = 0; k < 64; k++)
            levels[i][k] = (uint16_t)(levels[i][k] - DL2_JPEG_BIAS);
        jobs[i] = (struct dl2_jpeg_inverse_job){(int16_t *)levels[i], out + SIDE * (size_t)i};
    }
    return trial->inverse->inverse[SIZE_8](jobs, trial->steps.steps[trial->quality][c > 0],
                                           trial->parts[c].stride);
}

/* The planes of a row of MCUs, as far as the image goes. */
static bool trial_make_row(const struct dl2_jpeg_trial *trial, uint32_t row)
{
    const struct dl2_jpeg_blocks blocks = dl2_jpeg_sweep_blocks(trial->sweep, row);
    const uint32_t lanes = trial->inverse->lanes[SIZE_8];
    bool good = true;
    for (uint32_t c = 0; c < trial->components; c++) {
        const struct dl2_jpeg_part *const part = &trial->parts[c];
        const uint32_t across = dl2_divide_up(part->width, SIDE);
        for (uint32_t y = 0; y < blocks.down[c]; y++) {
            const uint32_t line = SIDE * (row * blocks.down[c] + y);
            uint8_t *const out = (uint8_t *)part->data + line * part->stride;
            for (uint32_t x = 0; line < part->height && x < across; x += lanes)
                good &= trial_make_blocks(trial, c,
                                          blocks.blocks[c] + y * blocks.stride[c] + 64 * (size_t)x,
                                          across - x, out + SIDE * (size_t)x);
        }
    }
    return good;
}

static void trial_set_quality(struct dl2_jpeg_trial *trial, int quality)
{
    if (quality == trial->quality)
        return;
    trial->quality = quality;
    for (int kind = 0; kind < 2; kind++)
        dl2_jpeg_divisors_set(&trial->divisors[kind], trial->steps.steps[quality][kind]);
}

/* Converts those of the rows that aren't yet. */
static int trial_show_rows(struct dl2_jpeg_trial *trial, uint32_t top, uint32_t bottom,
                           struct dl2_error *error)
{
    while (top < bottom) {
        uint32_t end = top;
        while (end < bottom && trial->shown[end] != trial->quality)
            trial->shown[end++] = (uint8_t)trial->quality;
        if (end > top)
            DL2_TRY(dl2_jpeg_color_convert(trial->color, trial->parts, 0, top, trial->width,
                                           end - top, trial->image.data + top * trial->image.stride,
                                           trial->image.stride, &trial->lines, error));
        top = end + (end == top);
    }
    return DL2_OK;
}

/* As dl2_jpeg_trial_rows() of pixels that are not turned. */
static int trial_coded_rows(struct dl2_jpeg_trial *trial, int quality, uint32_t top,
                            uint32_t bottom, const struct dl2_image **out, struct dl2_error *error)
{
    /* Interpolation of chroma looks at the rows around, three pixels away at most. */
    enum { MARGIN = 3 };
    const uint32_t mcu = SIDE * trial->down;
    const uint32_t end = dl2_divide_up(dl2_smaller(bottom + MARGIN, trial->height), mcu);
    trial_set_quality(trial, quality);
    for (uint32_t row = (top < MARGIN ? 0 : top - MARGIN) / mcu; row < end; row++) {
        if (trial->made[row] == quality)
            continue;
        trial->made[row] = 0;
        if (!trial_make_row(trial, row))
            return 0;
        trial->made[row] = (uint8_t)quality;
    }
    if (trial->components > 1)
        DL2_TRY(trial_show_rows(trial, top, bottom, error));
    *out = &trial->image;
    return 1;
}

int dl2_jpeg_trial_rows(struct dl2_jpeg_trial *trial, int quality, uint32_t top, uint32_t bottom,
                        const struct dl2_image **out, struct dl2_error *error)
{
    const struct dl2_image *coded;
    if (!trial)
        return 0;
    if (trial->orientation == 1)
        return trial_coded_rows(trial, quality, top, bottom, out, error);
    *out = &trial->upright;
    if (trial->upright_quality == quality)
        return 1;
    trial->upright_quality = 0;
    const int known = trial_coded_rows(trial, quality, 0, trial->height, &coded, error);
    if (known <= 0)
        return known;
    const bool transposed = dl2_orientation_transposes(trial->orientation);
    DL2_TRY(dl2_image_reshape(&trial->upright, transposed ? coded->height : coded->width,
                              transposed ? coded->width : coded->height, coded->channels, error));
    dl2_orient_pixels(coded->data, coded->stride, coded->width, coded->height, coded->channels,
                      trial->orientation, trial->upright.data, trial->upright.stride);
    trial->upright_quality = quality;
    return 1;
}

void dl2_jpeg_trial_free(struct dl2_jpeg_trial *trial)
{
    if (!trial)
        return;
    dl2_jpeg_sweep_free(trial->sweep);
    free(trial->planes);
    free(trial->made);
    free(trial->shown);
    dl2_bytes_free(&trial->lines);
    if (trial->components > 1)
        dl2_image_free(&trial->image);
    dl2_image_free(&trial->upright);
    free(trial);
}
