/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_volumes DIR TRAIN VAL SIDE [CHANNELS [CLASSES]]: writes DIR/{train,val}/N.npy, TRAIN and VAL
 * volumes of float32 of about SIDE voxels along each axis. In noise lie a bright ball and a dark
 * cube, in each channel. N.mask.npy has the labels, uint8: 0 the rest, 1 the ball, 2 the cube (with
 * 2 CLASSES, 1), and 255, no label, in a corner.
 */
#include "common/error.h"
#include "common/file.h"
#include "common/memory.h"
#include "common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 128, UNKNOWN = 255, CORNER = 2 };

struct shape {
    bool is_ball;
    int middle[3], radius;
};

static bool holds(const struct shape *shape, const int at[3])
{
    int square = 0, most = 0;
    for (int i = 0; i < 3; i++) {
        const int distance = abs(at[i] - shape->middle[i]);
        square += distance * distance;
        most = distance > most ? distance : most;
    }
    return shape->is_ball ? square <= shape->radius * shape->radius : most <= shape->radius;
}

/* A file of NumPy's, version 1.0; `shape` is "2, 3, 4". */
static int write_npy(const char *path, const char *type, const char *shape, const void *data,
                     size_t bytes, struct dl2_error *error)
{
    uint8_t *file = dl2_calloc(HEADER + bytes, 1);
    if (!file)
        return dl2_error_memory(error, "a volume");
    memset(file, ' ', HEADER);
    memcpy(file, "\x93NUMPY\1\0\x76", 10); /* 118 bytes follow */
    char text[112];
    const int length = snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memcpy(file + 10, text, (size_t)length);
    file[HEADER - 1] = '\n';
    memcpy(file + HEADER, data, bytes);
    const int status = dl2_file_write(path, file, HEADER + bytes, error);
    free(file);
    return status;
}

/* Two shapes that do not touch. */
static void draw_shapes(struct shape shapes[2], const int size[3], struct dl2_random *random)
{
    const int least = size[0] < size[1] ? size[0] : size[1];
    int apart = 0;
    for (int i = 0; i < 2; i++) {
        shapes[i].is_ball = i == 0;
        shapes[i].radius =
            least / (i ? 6 : 5) + (int)dl2_random_below(random, (unsigned)least / 12 + 1);
    }
    while (apart <= shapes[0].radius + shapes[1].radius + 1)
        for (int k = apart = 0; k < 3; k++) {
            for (int i = 0; i < 2; i++)
                shapes[i].middle[k] = (int)dl2_random_below(random, (unsigned)size[k]);
            const int distance = abs(shapes[0].middle[k] - shapes[1].middle[k]);
            apart = distance > apart ? distance : apart;
        }
}

static int write_volume(const char *stem, int side, int channels, int classes,
                        struct dl2_random *random, struct dl2_error *error)
{
    int size[3];
    struct shape shapes[2];
    char path[1100], dims[80];
    for (int i = 0; i < 3; i++)
        size[i] = side - side / 8 + (int)dl2_random_below(random, (unsigned)side / 4 + 1);
    const size_t count = (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
    float *voxels = dl2_calloc(count, (size_t)channels * sizeof *voxels);
    uint8_t *labels = dl2_calloc(count, 1);
    int status = voxels && labels ? DL2_OK : dl2_error_memory(error, "a volume");
    draw_shapes(shapes, size, random);
    for (size_t n = 0; n < count && status == DL2_OK; n++) {
        const int at[3] = {(int)(n / (size_t)(size[1] * size[2])),
                           (int)(n / (size_t)size[2]) % size[1], (int)(n % (size_t)size[2])};
        const bool ball = holds(&shapes[0], at), cube = holds(&shapes[1], at);
        labels[n] = (uint8_t)(ball ? 1 : cube ? classes - 1 : 0);
        for (int c = 0; c < channels; c++)
            voxels[(size_t)c * count + n] = (float)((ball   ? 150
                                                     : cube ? 50
                                                            : 100) +
                                                    (int)dl2_random_below(random, 60) - 30);
        if (at[0] < CORNER && at[1] < CORNER && at[2] < CORNER)
            labels[n] = UNKNOWN;
    }
    snprintf(dims, sizeof dims, "%d, %d, %d, %d", channels, size[0], size[1], size[2]);
    snprintf(path, sizeof path, "%s.npy", stem);
    if (status == DL2_OK)
        status =
            write_npy(path, "<f4", dims, voxels, count * (size_t)channels * sizeof *voxels, error);
    snprintf(path, sizeof path, "%s.mask.npy", stem);
    if (status == DL2_OK)
        status = write_npy(path, "|u1", strchr(dims, ' ') + 1, labels, count, error);
    free(voxels);
    free(labels);
    return status;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc < 5)
        return 2;
    const unsigned counts[2] = {(unsigned)atoi(argv[2]), (unsigned)atoi(argv[3])};
    const int side = atoi(argv[4]), channels = argc > 5 ? atoi(argv[5]) : 1;
    const int classes = argc > 6 ? atoi(argv[6]) : 3;
    if (side < 16 || side > 512 || channels < 1 || channels > 8 || classes < 2 || classes > 3)
        return 2;
    for (unsigned split = 0; split < 2; split++) {
        char folder[1024], stem[1040];
        snprintf(folder, sizeof folder, "%s/%s", argv[1], split ? "val" : "train");
        if (dl2_make_folders(folder, &error) < 0)
            break;
        for (unsigned i = 0; i < counts[split] && error.status == 0; i++) {
            struct dl2_random random;
            dl2_random_init(&random, 0, DL2_RANDOM_TEST, split, i);
            snprintf(stem, sizeof stem, "%s/%04u", folder, i);
            write_volume(stem, side, channels, classes, &random, &error);
        }
    }
    if (error.status < 0)
        fprintf(stderr, "make_volumes: %s\n", error.message);
    return error.status < 0;
}
