/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_sweep.h"

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_forward.h"
#include "codec/jpeg/jpeg_writer.h"
#include "common/simd.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, PIXELS = DL2_JPEG_FORWARD_PIXELS, MAX_SIDE = 65500 };

/* A component: its samples of a row of MCUs, and the coefficients of that row or of all. */
struct sweep_plane {
    uint8_t *samples;      /* rows of `width` */
    int16_t *coefficients; /* rows of width / 8 blocks */
    size_t width;
    size_t next;     /* coefficients to the next row of MCUs; 0: it takes their place */
    uint32_t rows;   /* of blocks */
    uint32_t filled; /* blocks across that are of the image; others complete the last MCU */
};

struct dl2_jpeg_sweep {
    const struct dl2_image *image;
    const struct dl2_jpeg_forward *forward;
    uint32_t across, down; /* blocks of luma in an MCU */
    uint32_t mcus_x, mcus_y;
    uint32_t components;
    size_t kept;  /* rows of coefficients, of `width` */
    size_t width; /* pixels of a row of MCUs, and more that make whole calls of kernels */
    struct sweep_plane planes[DL2_JPEG_COMPONENTS];
    uint8_t *chroma[2]; /* `down` rows that aren't averaged yet */
    uint8_t *samples;   /* memory of all of them */
    int16_t *coefficients;
    enum dl2_jpeg_codes_kind tables;
    struct dl2_jpeg_coders standard[2], optimized[2]; /* of luma and chroma */
    struct dl2_jpeg_writer *writers;
    size_t count, room;
};

static int sweep_make_planes(struct dl2_jpeg_sweep *sweep, struct dl2_error *error)
{
    const size_t width = sweep->width, down = sweep->down;
    const size_t kept = sweep->tables ? sweep->mcus_y : 1; /* rows of MCUs */
    sweep->kept = kept * SIDE * (down + 2);
    const size_t rows = SIDE * down + (sweep->components > 1 ? 2 * (SIDE + down) : 0);
    sweep->samples = dl2_alloc_aligned(rows, width);
    sweep->coefficients = dl2_alloc_aligned(sweep->kept * sizeof(int16_t), width);
    if (!sweep->samples || !sweep->coefficients)
        return dl2_error_memory(error, "rows of %zu pixels", width);
    uint8_t *samples = sweep->samples;
    int16_t *coefficients = sweep->coefficients;
    for (uint32_t c = 0; c < sweep->components; c++) {
        struct sweep_plane *const plane = &sweep->planes[c];
        const uint32_t across = c ? sweep->across : 1;
        *plane = (struct sweep_plane){
            .samples = samples,
            .coefficients = coefficients,
            .width = width / across,
            .rows = c ? 1 : sweep->down,
            .filled = dl2_divide_up(sweep->image->width, SIDE * across),
        };
        const size_t size = SIDE * plane->rows * plane->width;
        plane->next = sweep->tables ? size : 0;
        samples += size;
        coefficients += kept * size;
    }
    sweep->chroma[0] = samples;
    sweep->chroma[1] = samples + down * width;
    return DL2_OK;
}

int dl2_jpeg_sweep_new(struct dl2_jpeg_sweep **out, const struct dl2_image *image, uint32_t across,
                       uint32_t down, enum dl2_jpeg_codes_kind tables, size_t count,
                       struct dl2_error *error)
{
    *out = NULL;
    if (image->width > MAX_SIDE || image->height > MAX_SIDE)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%ux%u pixels: JPEG takes at most %d a side",
                             (unsigned)image->width, (unsigned)image->height, (int)MAX_SIDE);
    struct dl2_jpeg_sweep *const sweep = dl2_calloc(1, sizeof *sweep);
    if (!sweep)
        return dl2_error_memory(error, "a JPEG encoder");
    sweep->image = image;
    sweep->forward = dl2_jpeg_forward_for(dl2_simd_flags());
    sweep->across = across;
    sweep->down = down;
    sweep->mcus_x = dl2_divide_up(image->width, SIDE * across);
    sweep->mcus_y = dl2_divide_up(image->height, SIDE * down);
    sweep->components = image->channels;
    sweep->width = (size_t)dl2_divide_up(sweep->mcus_x * SIDE * across, PIXELS) * PIXELS;
    sweep->tables = tables;
    sweep->room = count;
    sweep->writers = dl2_alloc_aligned(count, sizeof *sweep->writers);
    const int status = sweep->writers ? sweep_make_planes(sweep, error)
                                      : dl2_error_memory(error, "%zu JPEG encoders", count);
    if (status < 0)
        dl2_jpeg_sweep_free(sweep);
    else
        *out = sweep;
    return status;
}

int dl2_jpeg_sweep_add(struct dl2_jpeg_sweep *sweep, const struct jpeg_compress_struct *cinfo,
                       struct dl2_bytes *out, struct dl2_error *error)
{
    if (sweep->count == sweep->room)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "more JPEGs than planned");
    for (int i = 0; !sweep->count && i < 2; i++) {
        dl2_jpeg_coder_set(&sweep->standard[i].dc, cinfo->dc_huff_tbl_ptrs[i]);
        dl2_jpeg_coder_set(&sweep->standard[i].ac, cinfo->ac_huff_tbl_ptrs[i]);
    }
    struct dl2_jpeg_writer *const writer = &sweep->writers[sweep->count++];
    DL2_TRY(dl2_jpeg_writer_begin(writer, cinfo, out, error));
    return sweep->tables ? DL2_OK : dl2_jpeg_writer_scan(writer, sweep->standard, error);
}

/* ---- Samples */

/* Repeats a row's last sample to the right. */
static void sweep_extend_row(const struct dl2_jpeg_sweep *sweep, uint8_t *row)
{
    const size_t width = sweep->image->width;
    memset(row + width, row[width - 1], sweep->width - width);
}

static void sweep_convert_row(const struct dl2_jpeg_sweep *sweep, const uint8_t *rgb, uint8_t *y,
                              uint8_t *cb, uint8_t *cr)
{
    const size_t width = sweep->image->width, rest = width % PIXELS, whole = width - rest;
    sweep->forward->ycc(rgb, whole, y, cb, cr);
    if (rest) {
        uint8_t last[3 * PIXELS] = {0};
        memcpy(last, rgb + 3 * whole, 3 * rest);
        sweep->forward->ycc(last, PIXELS, y + whole, cb + whole, cr + whole);
    }
    sweep_extend_row(sweep, y);
    sweep_extend_row(sweep, cb);
    sweep_extend_row(sweep, cr);
}

/* `count` lines of the image from `top` on, the last one repeated, to line `group` of chroma. */
static void sweep_take_group(const struct dl2_jpeg_sweep *sweep, uint32_t top, uint32_t group)
{
    const struct dl2_image *const image = sweep->image;
    const uint32_t down = sweep->down;
    uint8_t *chroma[2];
    for (uint32_t c = 1; c < sweep->components; c++)
        chroma[c - 1] = sweep->planes[c].samples + group * sweep->planes[c].width;
    for (uint32_t i = 0; i < down; i++) {
        const uint32_t line = dl2_smaller(top + group * down + i, image->height - 1);
        const uint8_t *const pixels = image->data + line * image->stride;
        uint8_t *const luma = sweep->planes[0].samples + (group * down + i) * sweep->width;
        if (sweep->components == 1) {
            memcpy(luma, pixels, image->width);
            sweep_extend_row(sweep, luma);
        } else if (sweep->across == 1) {
            sweep_convert_row(sweep, pixels, luma, chroma[0], chroma[1]);
        } else {
            sweep_convert_row(sweep, pixels, luma, sweep->chroma[0] + i * sweep->width,
                              sweep->chroma[1] + i * sweep->width);
        }
    }
    if (sweep->components > 1 && sweep->across == 2)
        for (int c = 0; c < 2; c++) {
            const uint8_t *const rows = sweep->chroma[c];
            sweep->forward->halve(rows, rows + (down - 1) * sweep->width, sweep->width, chroma[c]);
        }
}

/* The samples of a row of MCUs; below the image, each component's last line is repeated. */
static void sweep_take_samples(const struct dl2_jpeg_sweep *sweep, uint32_t row)
{
    const uint32_t top = row * SIDE * sweep->down;
    const uint32_t lines = dl2_smaller(SIDE * sweep->down, sweep->image->height - top);
    const uint32_t groups = dl2_divide_up(lines, sweep->down);
    for (uint32_t group = 0; group < groups; group++)
        sweep_take_group(sweep, top, group);
    for (uint32_t c = 0; c < sweep->components; c++) {
        const struct sweep_plane *const plane = &sweep->planes[c];
        const uint32_t first = groups * plane->rows;
        const uint8_t *const last = plane->samples + (first - 1) * plane->width;
        for (uint32_t y = first; y < SIDE * plane->rows; y++)
            memcpy(plane->samples + y * plane->width, last, plane->width);
    }
}

/* ---- Coefficients */

/* Blocks that complete MCUs have only a DC coefficient, the same as the block before: it takes the
 * fewest bits. */
static void sweep_set_flat(int16_t *block, const int16_t *before)
{
    memset(block, 0, 64 * sizeof *block);
    block[0] = before[0];
}

static void sweep_transform(const struct dl2_jpeg_sweep *sweep, uint32_t row)
{
    const uint32_t lines = sweep->image->height - row * SIDE * sweep->down;
    for (uint32_t c = 0; c < sweep->components; c++) {
        const struct sweep_plane *const plane = &sweep->planes[c];
        const uint32_t across = c ? 1 : sweep->across, total = across * sweep->mcus_x;
        const size_t stride = SIDE * plane->width;
        for (uint32_t y = 0; y < plane->rows; y++) {
            int16_t *const blocks = plane->coefficients + row * plane->next + y * stride;
            if (c || y * SIDE < lines) {
                sweep->forward->transform(plane->samples + y * stride, plane->width,
                                          plane->width / SIDE, blocks);
                for (uint32_t x = plane->filled; x < total; x++)
                    sweep_set_flat(blocks + 64 * (size_t)x, blocks + 64 * ((size_t)x - 1));
                continue;
            }
            for (uint32_t x = 0; x < total; x++)
                sweep_set_flat(blocks + 64 * (size_t)x,
                               blocks - stride + 64 * ((size_t)x / across * across + across - 1));
        }
    }
}

struct dl2_jpeg_blocks dl2_jpeg_sweep_blocks(const struct dl2_jpeg_sweep *sweep, uint32_t row)
{
    struct dl2_jpeg_blocks blocks = {.mcus = sweep->mcus_x, .components = sweep->components};
    for (uint32_t c = 0; c < sweep->components; c++) {
        const struct sweep_plane *const plane = &sweep->planes[c];
        blocks.across[c] = c ? 1 : sweep->across;
        blocks.down[c] = plane->rows;
        blocks.blocks[c] = plane->coefficients + row * plane->next;
        blocks.stride[c] = SIDE * plane->width;
    }
    return blocks;
}

uint32_t dl2_jpeg_sweep_rows(const struct dl2_jpeg_sweep *sweep)
{
    return sweep->mcus_y;
}

/* The coders of a file whose symbols were counted. */
static const struct dl2_jpeg_coders *sweep_choose_coders(struct dl2_jpeg_sweep *sweep,
                                                         struct dl2_jpeg_counts counts[2])
{
    uint64_t standard = 0, optimized = 0;
    for (int kind = 0; kind < (sweep->components > 1 ? 2 : 1); kind++) {
        dl2_jpeg_coders_optimize(&sweep->optimized[kind], &counts[kind]);
        standard += dl2_jpeg_coders_bits(&sweep->standard[kind], &counts[kind]);
        optimized += dl2_jpeg_coders_bits(&sweep->optimized[kind], &counts[kind]);
    }
    return sweep->tables == DL2_JPEG_SMALLER && standard <= optimized ? sweep->standard
                                                                      : sweep->optimized;
}

/* The coders that suit these coefficients. */
static const struct dl2_jpeg_coders *sweep_count(struct dl2_jpeg_sweep *sweep,
                                                 struct dl2_jpeg_writer *writer)
{
    struct dl2_jpeg_counts counts[2];
    memset(counts, 0, sizeof counts);
    dl2_jpeg_writer_rewind(writer);
    for (uint32_t row = 0; row < sweep->mcus_y; row++) {
        const struct dl2_jpeg_blocks blocks = dl2_jpeg_sweep_blocks(sweep, row);
        dl2_jpeg_writer_count(writer, sweep->forward, &blocks, counts);
    }
    return sweep_choose_coders(sweep, counts);
}

/* All rows of MCUs to one file, after all of them were counted. */
static int sweep_write_counted(struct dl2_jpeg_sweep *sweep, size_t file, struct dl2_error *error)
{
    struct dl2_jpeg_writer *const writer = &sweep->writers[file];
    const struct dl2_jpeg_coders *coders = sweep_count(sweep, writer);
    DL2_TRY(dl2_jpeg_writer_scan(writer, coders, error));
    for (uint32_t row = 0; row < sweep->mcus_y; row++) {
        const struct dl2_jpeg_blocks blocks = dl2_jpeg_sweep_blocks(sweep, row);
        DL2_TRY(dl2_jpeg_writer_row(writer, sweep->forward, coders, &blocks, error));
    }
    return DL2_OK;
}

void dl2_jpeg_sweep_transform(struct dl2_jpeg_sweep *sweep)
{
    for (uint32_t row = 0; row < sweep->mcus_y; row++) {
        sweep_take_samples(sweep, row);
        sweep_transform(sweep, row);
    }
}

int dl2_jpeg_sweep_run(struct dl2_jpeg_sweep *sweep, struct dl2_error *error)
{
    for (uint32_t row = 0; row < sweep->mcus_y; row++) {
        sweep_take_samples(sweep, row);
        sweep_transform(sweep, row);
        const struct dl2_jpeg_blocks blocks = dl2_jpeg_sweep_blocks(sweep, row);
        for (size_t i = 0; !sweep->tables && i < sweep->count; i++)
            DL2_TRY(dl2_jpeg_writer_row(&sweep->writers[i], sweep->forward, sweep->standard,
                                        &blocks, error));
    }
    for (size_t i = 0; i < sweep->count; i++) {
        if (sweep->tables)
            DL2_TRY(sweep_write_counted(sweep, i, error));
        DL2_TRY(dl2_jpeg_writer_end(&sweep->writers[i], error));
    }
    return DL2_OK;
}

void dl2_jpeg_sweep_free(struct dl2_jpeg_sweep *sweep)
{
    if (!sweep)
        return;
    free(sweep->samples);
    free(sweep->coefficients);
    free(sweep->writers);
    free(sweep);
}
