/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_baseline.h"

#include "common/simd.h"

#include <stdlib.h>
#include <string.h>

/* Entropy-coded bytes that are decoded faster than wide tables are made. */
enum { SMALL = 4096 };

/* The way of the blocks of one image to their places. */
struct placing {
    const struct dl2_jpeg_kernels *kernels;
    const struct dl2_jpeg_frame *frame;
    const struct dl2_jpeg_cover *cover;
    const struct dl2_jpeg_target *targets;
    uint32_t count;
    unsigned kernel[DL2_JPEG_COMPONENTS]; /* the place of the size's kernel in the table */
    /* Bytes from a component's first sample of an MCU to that of each block, the next MCU to the
     * right and the next below. */
    size_t block[DL2_JPEG_MCU_BLOCKS], right[DL2_JPEG_COMPONENTS], below[DL2_JPEG_COMPONENTS];
};

/* Blocks of a component that wait until a kernel's lanes are full. */
struct queue {
    struct dl2_jpeg_inverse_job blocks[DL2_JPEG_LANES];
    unsigned count;
};

static void placing_measure(struct placing *placing)
{
    uint32_t block = 0;
    for (uint32_t i = 0; i < placing->frame->components; i++) {
        const struct dl2_jpeg_component *const component = &placing->frame->component[i];
        const struct dl2_jpeg_target *const target = &placing->targets[i < placing->count ? i : 0];
        placing->kernel[i] = target->size == 8   ? 3
                             : target->size == 4 ? 2
                             : target->size == 2 ? 1
                                                 : 0;
        placing->right[i] = (size_t)component->across * target->size;
        placing->below[i] = (size_t)component->down * target->size * target->stride;
        for (uint32_t y = 0; y < component->down; y++)
            for (uint32_t x = 0; x < component->across; x++)
                placing->block[block++] = (y * target->stride + x) * target->size;
    }
}

/* Empty places get the first block once more. */
static bool queue_run(struct queue *queue, const struct placing *placing, uint32_t component)
{
    const unsigned kernel = placing->kernel[component];
    for (unsigned i = queue->count; i < placing->kernels->lanes[kernel]; i++)
        queue->blocks[i] = queue->blocks[0];
    queue->count = 0;
    return placing->kernels->inverse[kernel](queue->blocks,
                                             placing->frame->component[component].steps,
                                             placing->targets[component].stride);
}

static bool place_mcu(const struct placing *placing, struct queue *queues, int16_t *coefficients,
                      uint16_t *before, uint32_t column, uint32_t row)
{
    const struct dl2_jpeg_frame *const frame = placing->frame;
    bool good = true;
    for (uint32_t b = 0; b < frame->blocks; b++, coefficients += DL2_JPEG_CELL) {
        const uint32_t c = frame->owner[b];
        struct queue *const queue = &queues[c];
        before[c] = (uint16_t)(before[c] + coefficients[0]);
        if (c >= placing->count) {
            memset(coefficients, 0, DL2_JPEG_COEFFICIENTS * sizeof *coefficients);
            continue;
        }
        coefficients[0] = (int16_t)before[c];
        queue->blocks[queue->count++] = (struct dl2_jpeg_inverse_job){
            .coefficients = coefficients,
            .out = placing->targets[c].data + row * placing->below[c] + column * placing->right[c] +
                   placing->block[b],
        };
        if (queue->count == placing->kernels->lanes[placing->kernel[c]])
            good &= queue_run(queue, placing, c);
    }
    return good;
}

static void skip_mcu(const struct dl2_jpeg_frame *frame, int16_t *coefficients, uint16_t *before)
{
    for (uint32_t b = 0; b < frame->blocks; b++, coefficients += DL2_JPEG_CELL) {
        before[frame->owner[b]] = (uint16_t)(before[frame->owner[b]] + coefficients[0]);
        memset(coefficients, 0, DL2_JPEG_COEFFICIENTS * sizeof *coefficients);
    }
}

static bool place_chunk(const struct placing *placing, const struct dl2_jpeg_chunk *chunk)
{
    const struct dl2_jpeg_frame *const frame = placing->frame;
    const struct dl2_jpeg_cover *const cover = placing->cover;
    struct queue queues[DL2_JPEG_COMPONENTS] = {{.count = 0}};
    uint32_t row = chunk->mcu / frame->mcus_x, column = chunk->mcu % frame->mcus_x;
    int16_t *coefficients = chunk->blocks;
    bool good = true;
    for (uint32_t i = 0; i < chunk->count; i++) {
        if (row >= cover->top && row < cover->bottom && column >= cover->left &&
            column < cover->right)
            good &= place_mcu(placing, queues, coefficients, chunk->before, column - cover->left,
                              row - cover->top);
        else
            skip_mcu(frame, coefficients, chunk->before);
        coefficients += (size_t)frame->blocks * DL2_JPEG_CELL;
        if (++column == frame->mcus_x) {
            column = 0;
            row++;
        }
    }
    for (uint32_t c = 0; c < placing->count; c++)
        if (queues[c].count)
            good &= queue_run(&queues[c], placing, c);
    return good;
}

int dl2_jpeg_baseline_decode(struct dl2_jpeg_baseline *baseline, const struct dl2_jpeg_frame *frame,
                             const struct dl2_jpeg_cover *cover,
                             const struct dl2_jpeg_target *targets, uint32_t count,
                             struct dl2_error *error)
{
    const struct dl2_jpeg_huffman *tables[DL2_JPEG_COMPONENTS] = {NULL};
    if (!baseline->kernels)
        baseline->kernels = dl2_jpeg_kernels_for(dl2_simd_flags());
    /* libjpeg-turbo's vectors are faster than our plain C, which is there to be compared with. */
    if (baseline->kernels == &dl2_jpeg_kernels_c && !baseline->eager)
        return 0;
    int found = dl2_jpeg_huffman_find(&baseline->tables, frame, frame->size < SMALL, tables, error);
    if (found <= 0)
        return found;
    if (!baseline->entropy)
        baseline->entropy = dl2_alloc_aligned(dl2_jpeg_entropy_memory(), 1);
    if (!baseline->entropy)
        return dl2_error_memory(error, "a JPEG decoder");
    found = dl2_jpeg_segments_find(&baseline->segments, frame, cover, error);
    if (found <= 0)
        return found;
    struct placing placing = {.kernels = baseline->kernels,
                              .frame = frame,
                              .cover = cover,
                              .targets = targets,
                              .count = count};
    placing_measure(&placing);
    dl2_jpeg_entropy_start(baseline->entropy, frame, tables, &baseline->segments);
    struct dl2_jpeg_chunk chunk;
    int status;
    while ((status = dl2_jpeg_entropy_next(baseline->entropy, &chunk)) > 0)
        if (!place_chunk(&placing, &chunk))
            return 0;
    return status == 0;
}

size_t dl2_jpeg_baseline_memory(const struct dl2_jpeg_baseline *baseline)
{
    return dl2_jpeg_huffman_memory(&baseline->tables) + baseline->segments.data.capacity +
           baseline->segments.list.capacity + (baseline->entropy ? dl2_jpeg_entropy_memory() : 0);
}

void dl2_jpeg_baseline_free(struct dl2_jpeg_baseline *baseline)
{
    dl2_jpeg_huffman_free(&baseline->tables);
    dl2_jpeg_segments_free(&baseline->segments);
    free(baseline->entropy);
    baseline->entropy = NULL;
}
