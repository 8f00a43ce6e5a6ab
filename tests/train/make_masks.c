/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_masks DIR TRAIN VAL SIDE: writes DIR/{train,val}/N.ppm, TRAIN and VAL images that look a
 * little like photographs: light that changes from corner to corner, and noise. A red disc and a
 * blue square lie on each, in either order. N.mask.pgm is the mask: 0 the rest, 1 the disc, 2 the
 * square, and 255 along their edges, as in PASCAL VOC.
 */
#include "common/error.h"
#include "common/file.h"
#include "common/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_SIDE = 256, EDGE = 255 };

struct shape {
    bool is_disc;
    int x, y, radius;
};

/* How far a pixel lies within the shape; below 0: outside. */
static int depth_in(const struct shape *shape, int x, int y)
{
    const int dx = abs(x - shape->x), dy = abs(y - shape->y);
    if (!shape->is_disc)
        return shape->radius - (dx > dy ? dx : dy);
    int distance = 0;
    while (distance * distance < dx * dx + dy * dy)
        distance++;
    return shape->radius - distance;
}

static uint8_t label_at(const struct shape *shapes, int x, int y)
{
    uint8_t label = 0;
    for (int i = 0; i < 2; i++) {
        const int depth = depth_in(&shapes[i], x, y);
        if (depth >= 0)
            label = depth == 0 ? EDGE : shapes[i].is_disc ? 1 : 2;
    }
    return label;
}

static const struct shape *shape_at(const struct shape *shapes, int x, int y)
{
    for (int i = 1; i >= 0; i--) /* the second is in front */
        if (depth_in(&shapes[i], x, y) >= 0)
            return &shapes[i];
    return NULL;
}

static int write_image(const char *stem, int side, struct dl2_random *random,
                       struct dl2_error *error)
{
    static uint8_t image[64 + 3 * MAX_SIDE * MAX_SIDE], mask[64 + MAX_SIDE * MAX_SIDE];
    uint8_t *p = image + snprintf((char *)image, 64, "P6\n%d %d\n255\n", side, side);
    uint8_t *m = mask + snprintf((char *)mask, 64, "P5\n%d %d\n255\n", side, side);
    const bool first = dl2_random_below(random, 2);
    struct shape shapes[2];
    int corners[2][2];
    char path[1100];
    for (int i = 0; i < 2; i++) {
        const int least = side / 6, radius = least + (int)dl2_random_below(random, (unsigned)least);
        shapes[i] = (struct shape){(i == 0) == first, (int)dl2_random_below(random, (unsigned)side),
                                   (int)dl2_random_below(random, (unsigned)side), radius};
        for (int k = 0; k < 2; k++)
            corners[i][k] = (int)dl2_random_below(random, 120);
    }
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            const struct shape *shape = shape_at(shapes, x, y);
            const int left = corners[0][0] * (side - y) + corners[0][1] * y;
            const int right = corners[1][0] * (side - y) + corners[1][1] * y;
            const int light = (left * (side - x) + right * x) / (side * side);
            for (int c = 0; c < 3; c++) {
                const bool lit = shape && (shape->is_disc ? c == 0 : c == 2);
                *p++ = (uint8_t)(light + (lit ? 70 : 20) + (int)dl2_random_below(random, 60));
            }
            *m++ = label_at(shapes, x, y);
        }
    snprintf(path, sizeof path, "%s.ppm", stem);
    DL2_TRY(dl2_file_write(path, image, (size_t)(p - image), error));
    snprintf(path, sizeof path, "%s.mask.pgm", stem);
    return dl2_file_write(path, mask, (size_t)(m - mask), error);
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc != 5)
        return 2;
    const unsigned counts[2] = {(unsigned)atoi(argv[2]), (unsigned)atoi(argv[3])};
    const int side = atoi(argv[4]);
    if (side < 12 || side > MAX_SIDE)
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
            write_image(stem, side, &random, &error);
        }
    }
    if (error.status < 0)
        fprintf(stderr, "make_masks: %s\n", error.message);
    return error.status < 0;
}
