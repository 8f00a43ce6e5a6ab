/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding of JPEG: what the codec's row (codec/codec_jpeg.c) needs. */
#ifndef DL2_CODEC_JPEG_JPEG_DECODE_H
#define DL2_CODEC_JPEG_JPEG_DECODE_H

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_arena.h"
#include "codec/jpeg/jpeg_baseline.h"
#include "codec/jpeg/jpeg_color.h"
#include "codec/jpeg/jpeg_tiles.h"
#include "codec/jpeg/jpeg_trap.h"

enum { DL2_JPEG_PLANES = 3 };

/* The codec's state. */
struct dl2_jpeg_decoder {
    struct dl2_codec_state base; /* block: lines on their way from planes to pixels */
    struct dl2_jpeg_arena arena;
    bool has_arena; /* made for the first image */
    struct dl2_jpeg_trap trap;
    struct jpeg_progress_mgr progress;
    struct dl2_jpeg_splice splice;
    struct dl2_bytes planes[DL2_JPEG_PLANES];
    struct dl2_jpeg_baseline baseline;
    const struct dl2_jpeg_color_kernels *color; /* NULL: chosen at first use */
    bool libjpeg_only;    /* DL2_JPEG=libjpeg in the environment when the arena was made */
    uint64_t own, handed; /* images that our own decoder made, and that it handed over */
};

/* As in struct dl2_codec; the state is a struct dl2_jpeg_decoder. */
int dl2_jpeg_open(void *state, struct dl2_image_info *info, struct dl2_error *error);
int dl2_jpeg_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                  struct dl2_raster *raster, struct dl2_error *error);
bool dl2_jpeg_crop_bytes(void *state, const struct dl2_decode_request *crop, bool small,
                         struct dl2_crop_bytes *out);
void dl2_jpeg_close(void *state);
size_t dl2_jpeg_memory(const void *state);

#endif
