/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Videos: pictures in the order in which they are shown, out of a file of FFmpeg's formats MP4
 * (also .m4v, .mov), Matroska (.mkv, .webm) and AVI. Only the first video stream is decoded; sound
 * is not.
 *
 * Frames are numbered from 0 by presentation time. A file is read once, without decoding, when it
 * is opened: its packets stay in memory, so that any frame can be decoded from the key frame before
 * it.
 *
 * Pixels have 8 bits a sample and are upright, as the file's display matrix has it. They are the
 * decoder's planes if a raster can have these, else RGB. The matrix of the colors is the file's,
 * BT.601 if it names none; primaries and transfer stay as they are. Chroma counts as in the middle
 * of its pixels, and frames are not deinterlaced.
 *
 * Threads: one at a time for each video; any number of videos. Decoding runs on the caller's
 * thread.
 */
#ifndef DL2_CODEC_VIDEO_H
#define DL2_CODEC_VIDEO_H

#include "common/error.h"
#include "pixels/image.h"
#include "pixels/raster.h"
#include "pixels/resize.h"
#include "pixels/resolution.h"

#include <stdint.h>

/* Frames per second: numerator / denominator, both above 0. */
struct dl2_frame_rate {
    uint32_t numerator, denominator;
};

struct dl2_video_info {
    size_t frames; /* at least 1 */
    bool has_sound;
    struct dl2_frame_rate rate; /* that the file names, or the mean; 0/0: there is none */
    /* Once a frame was decoded: */
    uint32_t width, height; /* of the upright frames */
    bool square_pixels;     /* or the file says nothing of their shape */
    /* What the frames that were decoded so far are: */
    bool wide_color; /* HDR (PQ, HLG), or primaries of a wide gamut (BT.2020, P3) */
    bool interlaced; /* at least one frame */
};

struct dl2_video;

/* Why videos cannot be read here, for messages; NULL: they can. Loads the libraries. */
const char *dl2_video_missing(void);
/* The libraries and their versions, "libavcodec 59.37.100, ..."; "" without them. Loads them. */
const char *dl2_video_version(void);

/*
 * Opens a file in memory. The bytes are not needed afterwards. DL2_ERR_FORMAT for a file that is
 * damaged, cut off, empty or has no pictures; DL2_ERR_UNSUPPORTED for formats and codecs that the
 * libraries lack, and where there are no libraries; DL2_ERR_LIMIT if frames have more than
 * `max_pixels` (0: DL2_DEFAULT_MAX_PIXELS).
 */
int dl2_video_open(const uint8_t *data, size_t size, uint64_t max_pixels, struct dl2_video **out,
                   struct dl2_error *error);
void dl2_video_close(struct dl2_video *video);
const struct dl2_video_info *dl2_video_info(const struct dl2_video *video);
/* The bytes that it holds, about. */
size_t dl2_video_memory(const struct dl2_video *video);

/*
 * Decodes frame `number`, which then is the current one. In ascending order no frame is decoded
 * twice, and key frames that are skipped are not decoded at all. DL2_ERR_FORMAT for damage, also if
 * the frame has another size than the first one.
 */
int dl2_video_seek(struct dl2_video *video, size_t number, struct dl2_error *error);

/*
 * How many of the times (k + 1/2) / rate seconds, k = 0, 1, 2..., are not after the moment at which
 * frame `number` is first shown; of the number of frames, at which the last one ends. The first
 * frame is shown from 0 on. UINT64_MAX if there are too many. This is the rounding of FFmpeg's
 * filter fps.
 */
uint64_t dl2_video_times_before(const struct dl2_video *video, size_t number,
                                struct dl2_frame_rate rate);

/*
 * All pixels of the current frame. The raster's memory is the video's until the next call of
 * dl2_video_seek().
 */
int dl2_video_pixels(struct dl2_video *video, struct dl2_raster *raster, struct dl2_error *error);

/*
 * Frame `number` at a resolution, NULL: as it is, in RGB. The next calls of a resizer and a video
 * may be on other threads.
 */
int dl2_video_image(struct dl2_video *video, size_t number, const struct dl2_resolution *resolution,
                    struct dl2_resizer *resizer, struct dl2_image *image, struct dl2_error *error);

/*
 * Bytes that a file lacks, by the sizes that its outermost boxes (MP4), elements (Matroska) or
 * chunks (AVI) have: 0 if it is whole, or of another format.
 */
uint64_t dl2_video_bytes_missing(const uint8_t *data, size_t size);

/* For video_ffmpeg.c. */
struct dl2_video_engine {
    const char *(*missing)(void); /* loads the libraries */
    const char *(*version)(void);
    int (*open)(const uint8_t *data, size_t size, uint64_t max_pixels, struct dl2_video **out,
                struct dl2_error *error);
    void (*close)(struct dl2_video *video);
    const struct dl2_video_info *(*info)(const struct dl2_video *video);
    size_t (*memory)(const struct dl2_video *video);
    int (*seek)(struct dl2_video *video, size_t number, struct dl2_error *error);
    uint64_t (*times_before)(const struct dl2_video *video, size_t number,
                             struct dl2_frame_rate rate);
    int (*pixels)(struct dl2_video *video, struct dl2_raster *raster, struct dl2_error *error);
};

#endif
