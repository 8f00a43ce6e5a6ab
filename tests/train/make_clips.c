/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_clips DIR TRAIN VAL FRAMES SIDE: writes DIR/{train,val}/{down,left,right,up}/N/FRAME.ppm,
 * TRAIN and VAL clips a class. On noise, a bright square moves that way by two pixels a frame. It
 * begins anywhere, and where it leaves it comes back on the other side, so that no single frame
 * tells its class.
 */
#include "common/error.h"
#include "common/file.h"
#include "common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 128, SPEED = 2 };

static const struct {
    const char *name;
    int x, y;
} ways[] = {{"down", 0, 1}, {"left", -1, 0}, {"right", 1, 0}, {"up", 0, -1}};

/* Is it in the square of a third of the side that begins at `first`, and goes on behind `side`? */
static bool is_within(unsigned at, unsigned first, unsigned side)
{
    return (at + side - first) % side < side / 3;
}

static int write_frame(const char *path, unsigned side, unsigned left, unsigned top,
                       struct dl2_random *random, struct dl2_error *error)
{
    static uint8_t file[64 + 3 * MAX_SIDE * MAX_SIDE];
    uint8_t *p = file + snprintf((char *)file, 64, "P6\n%u %u\n255\n", side, side);
    for (unsigned y = 0; y < side; y++)
        for (unsigned x = 0; x < side; x++) {
            const unsigned level = is_within(x, left, side) && is_within(y, top, side) ? 140 : 20;
            for (int c = 0; c < 3; c++)
                *p++ = (uint8_t)(level + dl2_random_below(random, 90));
        }
    return dl2_file_write(path, file, (size_t)(p - file), error);
}

static int write_clip(const char *folder, unsigned way, unsigned frames, unsigned side,
                      struct dl2_random *random, struct dl2_error *error)
{
    unsigned left = dl2_random_below(random, side), top = dl2_random_below(random, side);
    DL2_TRY(dl2_make_folders(folder, error));
    for (unsigned f = 0; f < frames; f++) {
        char path[1100];
        snprintf(path, sizeof path, "%s/%03u.ppm", folder, f);
        DL2_TRY(write_frame(path, side, left, top, random, error));
        left = (left + side + (unsigned)(SPEED * ways[way].x)) % side;
        top = (top + side + (unsigned)(SPEED * ways[way].y)) % side;
    }
    return DL2_OK;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc != 6)
        return 2;
    const unsigned counts[2] = {(unsigned)atoi(argv[2]), (unsigned)atoi(argv[3])};
    const unsigned frames = (unsigned)atoi(argv[4]), side = (unsigned)atoi(argv[5]);
    if (side < 6 || side > MAX_SIDE)
        return 2;
    for (unsigned split = 0; split < 2; split++)
        for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++)
            for (unsigned i = 0; i < counts[split] && error.status == 0; i++) {
                char folder[1024];
                struct dl2_random random;
                dl2_random_init(&random, 0, DL2_RANDOM_TEST, way, 2 * i + split);
                snprintf(folder, sizeof folder, "%s/%s/%s/%04u", argv[1], split ? "val" : "train",
                         ways[way].name, i);
                write_clip(folder, way, frames, side, &random, &error);
            }
    if (error.status < 0)
        fprintf(stderr, "make_clips: %s\n", error.message);
    return error.status < 0;
}
