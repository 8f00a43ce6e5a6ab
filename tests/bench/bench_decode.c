/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What decoding a random crop of an image takes, each way that there is.
 *
 * usage: bench_decode VARIANT ROUNDS IMAGE...
 *
 * Encodes the images (any that dl2 reads) as VARIANT says, "jpeg-90" or "webp-75", JPEG at 4:2:0
 * without and with restart intervals, then decodes the same random crops (8 to 100% of the area,
 * sides 3:4 to 4:3) of all of them each way in turns, from memory, and prints microseconds of CPU
 * time an image: the best of the rounds. A reduction of 2, 4 or 8 is allowed where the crop is so
 * many times 224 pixels. Nothing is resized here.
 */
#include "codec/decoder.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 224 };

struct sample {
    struct dl2_bytes files[2]; /* plain, tiles */
    uint32_t width, height;
};

struct way {
    const char *name;
    bool tiles, planes, crop, reduce;
    double best;
};

static struct way ways[] = {
    {"the whole, RGB", false, false, false, false, INFINITY},
    {"crop, RGB", false, false, true, false, INFINITY},
    {"the same, reduced", false, false, true, true, INFINITY},
    {"crop, RGB, from tiles", true, false, true, false, INFINITY},
    {"crop, planes", false, true, true, false, INFINITY},
    {"the same, reduced", false, true, true, true, INFINITY},
    {"crop, planes, from tiles", true, true, true, false, INFINITY},
    {"the same, reduced", true, true, true, true, INFINITY},
};

static void check(int status, const struct dl2_error *error)
{
    if (status < 0) {
        fprintf(stderr, "bench_decode: %s\n", error->message);
        exit(1);
    }
}

/* JPEG comes a second time, with restart intervals. */
static bool has_tiles(const struct dl2_codec *codec)
{
    return !strcmp(codec->name, "jpeg");
}

static void load(const char *path, const struct dl2_codec *codec, int quality,
                 struct sample *sample)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    const struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    check(dl2_file_read(path, SIZE_MAX, &file, &error), &error);
    check(dl2_image_decode(file.data, file.size, &options, &image, &scratch, &error), &error);
    for (size_t i = 0; i < (has_tiles(codec) ? 2 : 1); i++) {
        const struct dl2_encode_options encode = {
            .quality = quality, .effort = -1, .restart = i ? "tiles" : "none"};
        check(dl2_image_encode(codec, &image, &encode, &sample->files[i], &error), &error);
    }
    sample->width = image.width;
    sample->height = image.height;
    dl2_bytes_free(&file);
    dl2_image_free(&image);
    dl2_image_free(&scratch);
}

/* As torchvision's RandomResizedCrop; the whole where ten tries don't fit. */
static void choose_crop(const struct sample *sample, uint64_t index,
                        struct dl2_decode_request *request)
{
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, index, 0);
    *request = (struct dl2_decode_request)DL2_DECODE_REQUEST_DEFAULTS;
    request->width = sample->width;
    request->height = sample->height;
    for (int i = 0; i < 10; i++) {
        const double area =
            (double)sample->width * sample->height * (0.08 + 0.92 * dl2_random_uniform(&random));
        const double ratio = pow(4. / 3, 2 * dl2_random_uniform(&random) - 1);
        const uint32_t width = (uint32_t)lround(sqrt(area * ratio));
        const uint32_t height = (uint32_t)lround(sqrt(area / ratio));
        if (width < 1 || height < 1 || width > sample->width || height > sample->height)
            continue;
        request->width = width;
        request->height = height;
        request->x = dl2_random_below(&random, sample->width - width + 1);
        request->y = dl2_random_below(&random, sample->height - height + 1);
        return;
    }
}

static double run(struct dl2_decoder *decoder, const struct way *way, const struct sample *samples,
                  size_t count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const double start = dl2_clock_thread_cpu();
    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &samples[i];
        const struct dl2_bytes *file = &sample->files[way->tiles];
        struct dl2_decode_request request;
        struct dl2_image_info info;
        struct dl2_raster raster;
        choose_crop(sample, i, &request);
        const uint32_t least = request.width < request.height ? request.width : request.height;
        while (way->reduce && request.reduction < 8 && least >= SIDE * 2 * request.reduction)
            request.reduction *= 2;
        request.planes = way->planes;
        if (!way->crop) {
            request.x = request.y = 0;
            request.width = sample->width;
            request.height = sample->height;
        }
        check(dl2_decoder_open(decoder, file->data, file->size, 0, &info, &error), &error);
        check(dl2_decoder_decode(decoder, &request, &raster, &error), &error);
    }
    return (dl2_clock_thread_cpu() - start) / (double)count;
}

int main(int argc, char **argv)
{
    char name[16];
    int quality;
    const struct dl2_codec *codec = NULL;
    if (argc >= 4 && sscanf(argv[1], "%15[^-]-%d", name, &quality) == 2)
        codec = dl2_codec_find(name);
    if (!codec) {
        fprintf(stderr, "usage: bench_decode VARIANT ROUNDS IMAGE..., VARIANT as jpeg-90\n");
        return 2;
    }
    const size_t count = (size_t)argc - 3;
    struct sample *samples = calloc(count, sizeof *samples);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_decoder *decoder;
    check(samples ? dl2_decoder_create(&decoder, &error) : DL2_ERR_MEMORY, &error);
    size_t bytes[2] = {0};
    for (size_t i = 0; i < count; i++) {
        load(argv[3 + i], codec, quality, &samples[i]);
        for (size_t j = 0; j < 2; j++)
            bytes[j] += samples[i].files[j].size;
    }
    for (int round = 0; round < atoi(argv[2]); round++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            if (ways[i].tiles && !has_tiles(codec))
                continue;
            const double seconds = run(decoder, &ways[i], samples, count);
            ways[i].best = seconds < ways[i].best ? seconds : ways[i].best;
        }
    printf("%zu images, %.1f kB each", count, 1e-3 * (double)bytes[0] / (double)count);
    if (has_tiles(codec))
        printf(", with tiles %.1f kB (%+.2f%%)", 1e-3 * (double)bytes[1] / (double)count,
               100 * ((double)bytes[1] / (double)bytes[0] - 1));
    printf("\n");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].best < INFINITY)
            printf("%-44s %6.0f us  %5.2f\n", ways[i].name, 1e6 * ways[i].best,
                   ways[0].best / ways[i].best);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < 2; j++)
            dl2_bytes_free(&samples[i].files[j]);
    free(samples);
    dl2_decoder_destroy(decoder);
    return 0;
}
