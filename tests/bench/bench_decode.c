/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What decoding a random crop of an image takes, each way that there is. JPEG is decoded by
 * libjpeg-turbo alone (DL2_JPEG=libjpeg) and with our own decoder, in turns.
 *
 * usage: bench_decode VARIANT ROUNDS IMAGE...
 *
 * Encodes the images (any that dl2 reads) as VARIANT says, "jpeg-90" or "webp-75", JPEG at 4:2:0
 * without and with restart intervals, then decodes the same random crops (8 to 100% of the area,
 * sides 3:4 to 4:3) of all of them each way in turns, from memory, and prints microseconds of CPU
 * time an image: the best of the rounds, and of the two decoders' ratios the median. A reduction of
 * 2, 4 or 8 is allowed where the crop is so many times 224 pixels. Nothing is resized here.
 */
#include "codec/decoder.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 224, MAX_ROUNDS = 100 };

struct sample {
    struct dl2_bytes files[2]; /* plain, tiles */
    uint32_t width, height;
};

struct way {
    const char *name;
    bool tiles, planes, crop, reduce;
    double best[2]; /* by decoder: libjpeg alone, our own */
    double ratios[MAX_ROUNDS];
};

#define BEST                                                                                       \
    {                                                                                              \
        INFINITY, INFINITY                                                                         \
    }

static struct way ways[] = {
    {"the whole, RGB", false, false, false, false, BEST, {0}},
    {"crop, RGB", false, false, true, false, BEST, {0}},
    {"the same, reduced", false, false, true, true, BEST, {0}},
    {"crop, RGB, from tiles", true, false, true, false, BEST, {0}},
    {"crop, planes", false, true, true, false, BEST, {0}},
    {"the same, reduced", false, true, true, true, BEST, {0}},
    {"crop, planes, from tiles", true, true, true, false, BEST, {0}},
    {"the same, reduced", true, true, true, true, BEST, {0}},
    {"the whole, planes", false, true, false, false, BEST, {0}},
    {"the whole, planes, from tiles", true, true, false, false, BEST, {0}},
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

/* A decoder that opens its first image under DL2_JPEG, which is when it looks. */
static struct dl2_decoder *make_decoder(const char *by, const struct sample *sample)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_decoder *decoder;
    struct dl2_image_info info;
    const struct dl2_bytes *file = &sample->files[0];
    setenv("DL2_JPEG", by, 1);
    check(dl2_decoder_create(&decoder, &error), &error);
    check(dl2_decoder_open(decoder, file->data, file->size, 0, &info, &error), &error);
    return decoder;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    char name[16];
    int quality;
    const struct dl2_codec *codec = NULL;
    if (argc >= 4 && sscanf(argv[1], "%15[^-]-%d", name, &quality) == 2)
        codec = dl2_codec_find(name);
    const int rounds = argc >= 4 ? atoi(argv[2]) : 0;
    if (!codec || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr,
                "usage: bench_decode VARIANT ROUNDS IMAGE..., VARIANT as jpeg-90, "
                "at most %d rounds\n",
                (int)MAX_ROUNDS);
        return 2;
    }
    const size_t count = (size_t)argc - 3, decoders = has_tiles(codec) ? 2 : 1;
    struct sample *samples = calloc(count, sizeof *samples);
    size_t bytes[2] = {0};
    check(samples ? DL2_OK : DL2_ERR_MEMORY, &(struct dl2_error){.message = "out of memory"});
    for (size_t i = 0; i < count; i++) {
        load(argv[3 + i], codec, quality, &samples[i]);
        for (size_t j = 0; j < 2; j++)
            bytes[j] += samples[i].files[j].size;
    }
    struct dl2_decoder *decoder[2] = {make_decoder("libjpeg", &samples[0]),
                                      make_decoder("own", &samples[0])};
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            struct way *const way = &ways[i];
            double seconds[2] = {1, 1};
            if (way->tiles && !has_tiles(codec))
                continue;
            for (size_t j = 0; j < decoders; j++) {
                seconds[j] = run(decoder[j], way, samples, count);
                way->best[j] = seconds[j] < way->best[j] ? seconds[j] : way->best[j];
            }
            way->ratios[round] = seconds[0] / seconds[1];
        }
    printf("%zu images, %.1f kB each", count, 1e-3 * (double)bytes[0] / (double)count);
    if (has_tiles(codec))
        printf(", with tiles %.1f kB (%+.2f%%)", 1e-3 * (double)bytes[1] / (double)count,
               100 * ((double)bytes[1] / (double)bytes[0] - 1));
    printf("\n%-32s %10s%s\n", "", "us", decoders > 1 ? "     own us  ratio" : "");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct way *const way = &ways[i];
        if (way->best[0] == INFINITY)
            continue;
        printf("%-32s %10.0f", way->name, 1e6 * way->best[0]);
        qsort(way->ratios, (size_t)rounds, sizeof(double), compare_doubles);
        if (decoders > 1)
            printf(" %10.0f  %5.2f", 1e6 * way->best[1], way->ratios[rounds / 2]);
        printf("\n");
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < 2; j++)
            dl2_bytes_free(&samples[i].files[j]);
    free(samples);
    for (size_t j = 0; j < 2; j++)
        dl2_decoder_destroy(decoder[j]);
    return 0;
}
