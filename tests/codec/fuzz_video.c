/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: a video is found to be whole or not, opened, and its first and last frames decoded.
 */
#include "codec/video.h"

#include <stdlib.h>

enum { MAX_PIXELS = 1 << 16, FRAMES = 3 };

static void look(struct dl2_video *video, size_t number)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_raster raster;
    if (dl2_video_seek(video, number, &error) < 0 || dl2_video_pixels(video, &raster, &error) < 0) {
        if (!error.message[0])
            abort();
        return;
    }
    const struct dl2_video_info *info = dl2_video_info(video);
    if (!info->width || !info->height || (uint64_t)info->width * info->height > MAX_PIXELS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_video *video;
    dl2_video_bytes_missing(data, size);
    if (dl2_video_missing())
        return 0;
    if (dl2_video_open(data, size, MAX_PIXELS, &video, &error) < 0) {
        if (!error.message[0])
            abort();
        return 0;
    }
    const size_t frames = dl2_video_info(video)->frames;
    for (size_t i = 0; i < frames && i < FRAMES; i++)
        look(video, i);
    look(video, frames - 1);
    const struct dl2_frame_rate rate = {30000, 1001};
    for (size_t i = 1; i <= frames && i < FRAMES; i++)
        if (dl2_video_times_before(video, i, rate) < dl2_video_times_before(video, i - 1, rate))
            abort();
    dl2_video_close(video);
    return 0;
}
