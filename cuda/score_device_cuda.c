/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane has a stream, both images on the card, and pinned memory that they pass through; the
 * reference stays on the card for all its variants. Images are packed without padding on the way.
 *
 * Untested on hardware: no GPU was available (docs/gpu.md).
 */
#include "cuda/score_device_cuda.h"

#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/score.h"

#include <stdlib.h>
#include <string.h>

struct score_cuda {
    struct dl2_score_device base;
    unsigned card;
};

/* Memory on the card, and pinned memory of the same size. */
struct score_buffer {
    uint8_t *card, *host;
    size_t room;
};

struct dl2_score_lane {
    const struct score_cuda *device;
    cudaStream_t stream;
    struct score_buffer reference, variant, scores;
    uint32_t width, height, channels; /* of the reference */
};

static void score_buffer_free(struct score_buffer *buffer)
{
    cudaFree(buffer->card);
    cudaFreeHost(buffer->host);
    *buffer = (struct score_buffer){NULL, NULL, 0};
}

/* At least `size` bytes, whose contents are undefined. No copy may be under way. */
static int score_buffer_reserve(struct score_buffer *buffer, size_t size, struct dl2_error *error)
{
    if (size <= buffer->room)
        return DL2_OK;
    score_buffer_free(buffer);
    const size_t room = size + size / 4;
    DL2_TRY(
        dl2_gpu_check(cudaMalloc((void **)&buffer->card, room), "cudaMalloc (an image)", error));
    DL2_TRY(dl2_gpu_check(cudaHostAlloc((void **)&buffer->host, room, cudaHostAllocPortable),
                          "cudaHostAlloc (an image)", error));
    buffer->room = room;
    return DL2_OK;
}

static int score_cuda_upload(struct dl2_score_lane *lane, struct score_buffer *buffer,
                             const struct dl2_image *image, struct dl2_error *error)
{
    const size_t row = (size_t)image->width * image->channels, size = row * image->height;
    DL2_TRY(score_buffer_reserve(buffer, size, error));
    for (uint32_t y = 0; y < image->height; y++)
        memcpy(buffer->host + y * row, image->data + y * image->stride, row);
    return dl2_gpu_check(
        cudaMemcpyAsync(buffer->card, buffer->host, size, cudaMemcpyHostToDevice, lane->stream),
        "cudaMemcpyAsync (an image)", error);
}

/* The metrics that the card scores, in the order of its sums. */
enum { PSNR_RGB, PSNR_Y, SSIM, SCORED };
static const struct dl2_metric *const scored[SCORED + 1] = {
    [PSNR_RGB] = &dl2_metric_psnr_rgb,
    [PSNR_Y] = &dl2_metric_psnr_y,
    [SSIM] = &dl2_metric_ssim,
};

static int score_cuda_set_reference(struct dl2_score_lane *lane, const struct dl2_image *reference,
                                    struct dl2_error *error)
{
    DL2_TRY(dl2_gpu_check(cudaSetDevice((int)lane->device->card), "cudaSetDevice", error));
    lane->width = reference->width;
    lane->height = reference->height;
    lane->channels = reference->channels;
    return score_cuda_upload(lane, &lane->reference, reference, error);
}

static int score_cuda_pair(struct dl2_score_lane *lane, const struct dl2_image *variant,
                           double (*sums)[DL2_METRIC_SUMS], struct dl2_error *error)
{
    const size_t blocks = dl2_gpu_score_blocks(variant->width, variant->height);
    DL2_TRY(dl2_gpu_check(cudaSetDevice((int)lane->device->card), "cudaSetDevice", error));
    DL2_TRY(score_cuda_upload(lane, &lane->variant, variant, error));
    DL2_TRY(score_buffer_reserve(&lane->scores, blocks * sizeof(struct dl2_gpu_score), error));
    const struct dl2_gpu_pair pair = {.a = lane->reference.card,
                                      .b = lane->variant.card,
                                      .stride_a = (size_t)lane->width * lane->channels,
                                      .stride_b = (size_t)variant->width * variant->channels,
                                      .channels_a = lane->channels,
                                      .channels_b = variant->channels,
                                      .width = lane->width,
                                      .height = lane->height};
    DL2_TRY(
        dl2_gpu_check((cudaError_t)dl2_gpu_score_pair(
                          &pair, (struct dl2_gpu_score *)(void *)lane->scores.card, lane->stream),
                      "the scores of a pair", error));
    DL2_TRY(dl2_gpu_check(cudaMemcpyAsync(lane->scores.host, lane->scores.card,
                                          blocks * sizeof(struct dl2_gpu_score),
                                          cudaMemcpyDeviceToHost, lane->stream),
                          "cudaMemcpyAsync (scores)", error));
    DL2_TRY(dl2_gpu_check(cudaStreamSynchronize(lane->stream),
                          "cudaStreamSynchronize (the scores of a pair)", error));
    const struct dl2_gpu_score *scores = (const struct dl2_gpu_score *)(void *)lane->scores.host;
    for (int i = 0; i < SCORED; i++)
        sums[i][0] = 0;
    for (size_t i = 0; i < blocks; i++) {
        sums[PSNR_RGB][0] += (double)scores[i].samples;
        sums[PSNR_Y][0] += (double)scores[i].luma;
        sums[SSIM][0] += scores[i].ssim;
    }
    return DL2_OK;
}

static void score_cuda_lane_free(struct dl2_score_lane *lane)
{
    if (!lane)
        return;
    cudaSetDevice((int)lane->device->card);
    if (lane->stream) {
        cudaStreamSynchronize(lane->stream);
        cudaStreamDestroy(lane->stream);
    }
    score_buffer_free(&lane->reference);
    score_buffer_free(&lane->variant);
    score_buffer_free(&lane->scores);
    free(lane);
}

static int score_cuda_lane_create(struct dl2_score_device *base, struct dl2_score_lane **out,
                                  struct dl2_error *error)
{
    struct dl2_score_lane *lane = *out = dl2_calloc(1, sizeof *lane);
    if (!lane)
        return dl2_error_memory(error, "a lane of the card");
    lane->device = (const struct score_cuda *)base;
    int status = dl2_gpu_check(cudaSetDevice((int)lane->device->card), "cudaSetDevice", error);
    if (status == DL2_OK)
        status = dl2_gpu_check(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking),
                               "cudaStreamCreateWithFlags", error);
    if (status == DL2_OK)
        return DL2_OK;
    score_cuda_lane_free(lane);
    *out = NULL;
    return status;
}

static void score_cuda_close(struct dl2_score_device *base)
{
    free(base);
}

static int score_cuda_open(unsigned card, struct dl2_score_device **out, struct dl2_error *error)
{
    *out = NULL;
    DL2_TRY(dl2_gpu_use(card, error));
    struct score_cuda *device = dl2_calloc(1, sizeof *device);
    if (!device)
        return dl2_error_memory(error, "a device");
    device->base.ops = &dl2_score_cuda;
    device->card = card;
    *out = &device->base;
    return DL2_OK;
}

const struct dl2_score_device_class dl2_score_cuda = {
    .name = "cuda",
    .summary = "an NVIDIA card; cuda:1 is the second",
    .metrics = scored,
    .open = score_cuda_open,
    .close = score_cuda_close,
    .lane_create = score_cuda_lane_create,
    .lane_free = score_cuda_lane_free,
    .set_reference = score_cuda_set_reference,
    .score = score_cuda_pair,
};
