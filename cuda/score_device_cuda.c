/*
 * A lane has a stream, both images on the card, and pinned memory that they pass through; the
 * reference stays there for all its variants. Images are packed without padding on the way.
 *
 * Never yet run on a card: docs/performance.md says how to.
 */
#include "cuda/score_device_cuda.h"

#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/score.h"

#include <stdlib.h>
#include <string.h>

struct device {
    struct dl2_score_device base;
    unsigned card;
};

/* The card's memory, and pinned memory of as many bytes. */
struct twin {
    uint8_t *card, *host;
    size_t room;
};

struct dl2_score_lane {
    const struct device *device;
    cudaStream_t stream;
    struct twin reference, variant, scores;
    uint32_t width, height, channels; /* of the reference */
};

static void twin_free(struct twin *twin)
{
    cudaFree(twin->card);
    cudaFreeHost(twin->host);
    *twin = (struct twin){NULL, NULL, 0};
}

/* With some to spare; what was there is gone. Nothing may be under way. */
static int twin_reserve(struct twin *twin, size_t size, struct dl2_error *error)
{
    if (size <= twin->room)
        return DL2_OK;
    twin_free(twin);
    const size_t room = size + size / 4;
    DL2_TRY(dl2_gpu_check(cudaMalloc((void **)&twin->card, room), "cudaMalloc (an image)", error));
    DL2_TRY(dl2_gpu_check(cudaHostAlloc((void **)&twin->host, room, cudaHostAllocPortable),
                          "cudaHostAlloc (an image)", error));
    twin->room = room;
    return DL2_OK;
}

static int upload(struct dl2_score_lane *lane, struct twin *twin, const struct dl2_image *image,
                  struct dl2_error *error)
{
    const size_t row = (size_t)image->width * image->channels, size = row * image->height;
    DL2_TRY(twin_reserve(twin, size, error));
    for (uint32_t y = 0; y < image->height; y++)
        memcpy(twin->host + y * row, image->data + y * image->stride, row);
    return dl2_gpu_check(
        cudaMemcpyAsync(twin->card, twin->host, size, cudaMemcpyHostToDevice, lane->stream),
        "cudaMemcpyAsync (an image)", error);
}

static int cuda_set_reference(struct dl2_score_lane *lane, const struct dl2_image *reference,
                              struct dl2_error *error)
{
    DL2_TRY(dl2_gpu_check(cudaSetDevice((int)lane->device->card), "cudaSetDevice", error));
    lane->width = reference->width;
    lane->height = reference->height;
    lane->channels = reference->channels;
    return upload(lane, &lane->reference, reference, error);
}

static int cuda_score(struct dl2_score_lane *lane, const struct dl2_image *variant,
                      struct dl2_score_sums *sums, struct dl2_error *error)
{
    const size_t blocks = dl2_gpu_score_blocks(variant->width, variant->height);
    DL2_TRY(dl2_gpu_check(cudaSetDevice((int)lane->device->card), "cudaSetDevice", error));
    DL2_TRY(upload(lane, &lane->variant, variant, error));
    DL2_TRY(twin_reserve(&lane->scores, blocks * sizeof(struct dl2_gpu_score), error));
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
    *sums = (struct dl2_score_sums){0, 0, 0};
    for (size_t i = 0; i < blocks; i++) {
        sums->samples += (double)scores[i].samples;
        sums->luma += (double)scores[i].luma;
        sums->ssim += scores[i].ssim;
    }
    return DL2_OK;
}

static void cuda_lane_free(struct dl2_score_lane *lane)
{
    if (!lane)
        return;
    cudaSetDevice((int)lane->device->card);
    if (lane->stream) {
        cudaStreamSynchronize(lane->stream);
        cudaStreamDestroy(lane->stream);
    }
    twin_free(&lane->reference);
    twin_free(&lane->variant);
    twin_free(&lane->scores);
    free(lane);
}

static int cuda_lane_create(struct dl2_score_device *base, struct dl2_score_lane **out,
                            struct dl2_error *error)
{
    struct dl2_score_lane *lane = *out = dl2_calloc(1, sizeof *lane);
    if (!lane)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a lane of the card");
    lane->device = (const struct device *)base;
    int status = dl2_gpu_check(cudaSetDevice((int)lane->device->card), "cudaSetDevice", error);
    if (status == DL2_OK)
        status = dl2_gpu_check(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking),
                               "cudaStreamCreateWithFlags", error);
    if (status == DL2_OK)
        return DL2_OK;
    cuda_lane_free(lane);
    *out = NULL;
    return status;
}

static void cuda_close(struct dl2_score_device *base)
{
    free(base);
}

static const struct dl2_score_device_class cuda_class = {
    .name = "cuda",
    .close = cuda_close,
    .lane_create = cuda_lane_create,
    .lane_free = cuda_lane_free,
    .set_reference = cuda_set_reference,
    .score = cuda_score,
};

int dl2_score_cuda_open(unsigned card, struct dl2_score_device **out, struct dl2_error *error)
{
    *out = NULL;
    DL2_TRY(dl2_gpu_use(card, error));
    struct device *device = dl2_calloc(1, sizeof *device);
    if (!device)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a device");
    device->base.ops = &cuda_class;
    device->card = card;
    *out = &device->base;
    return DL2_OK;
}
