/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding of clips: the frames of one clip become one MP4, by a codec of the registry that has
 * dl2_codec's `video`. The quality is the encoder's CRF (constant rate factor).
 *
 * Colors are YCbCr of 8 bits in limited range, by the matrix of BT.601, which the file names;
 * codec/video.h reverts it. Primaries and transfer are those of the frames and are not named.
 * Chroma lies in the middle of its pixels. All frames are shown equally long. The same frames and
 * options give the same bytes, with the same versions of the libraries.
 *
 * Threads: one at a time for each encoder; any number of encoders.
 */
#ifndef DL2_CODEC_VIDEO_ENCODER_H
#define DL2_CODEC_VIDEO_ENCODER_H

#include "codec/codec.h"
#include "codec/video.h"

struct dl2_video_encoder;

/* A row of the registry: an encoder and its settings. */
struct dl2_video_coding {
    const char *encoder;    /* FFmpeg's name of it */
    const char *library;    /* how the name of its library's file begins */
    int max_crf, usual_crf; /* a CRF is 1 to max_crf, lower is better */
    uint32_t min_side;      /* of frames, pixels */
    unsigned frame_bytes;   /* roughly what it takes for each pixel of a frame */
    bool own_threads;       /* it works on a thread of its own while the caller waits */
    const char *options[2]; /* of FFmpeg, beside those of settings: a name and its value */
    const char *filter;     /* FFmpeg's bitstream filters; NULL: none */

    /* Why it cannot encode here, for messages; NULL: it can. Loads the libraries. */
    const char *(*missing)(const struct dl2_codec *codec);
    /* Begins a video. DL2_ERR_UNSUPPORTED without the libraries or the encoder, and for sides that
     * are no multiples of 2 where chroma is subsampled along them; DL2_ERR_ARGUMENT for a quality,
     * or a chroma subsampling, that the codec has not. */
    int (*open)(const struct dl2_codec *codec, const struct dl2_encode_options *options,
                uint32_t width, uint32_t height, struct dl2_frame_rate rate,
                struct dl2_video_encoder **out, struct dl2_error *error);
    /* Adds a frame, gray or RGB. DL2_ERR_FORMAT if it is of another size. */
    int (*add)(struct dl2_video_encoder *encoder, const struct dl2_image *image,
               struct dl2_error *error);
    /* Replaces out's contents by the file, after at least one frame, and looks into it: it has as
     * many frames as were added, of their size. */
    int (*finish)(struct dl2_video_encoder *encoder, struct dl2_bytes *out,
                  struct dl2_error *error);
    /* Frees it, finished or not; NULL is allowed. */
    void (*close)(struct dl2_video_encoder *encoder);
};

/* Frames a second of clips whose source names none. The CRF of x264 and x265 is made for it. */
enum { DL2_USUAL_FRAME_RATE = 25 };

#endif
