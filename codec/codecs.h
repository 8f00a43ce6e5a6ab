/* What the codecs share among themselves; others include codec/codec.h. */
#ifndef DL2_CODEC_CODECS_H
#define DL2_CODEC_CODECS_H

#include "codec/codec.h"

/* One a file; only codec.c, which knows which of them were built, names them. */
extern const struct dl2_codec dl2_codec_jpeg, dl2_codec_webp, dl2_codec_avif, dl2_codec_jp2,
    dl2_codec_png, dl2_codec_ppm;

/* BT.601 luma, full range, rounded. */
static inline uint8_t dl2_luma(unsigned r, unsigned g, unsigned b)
{
    return (uint8_t)((19595u * r + 38470u * g + 7471u * b + 32768u) >> 16);
}

/* `value` with opacity `alpha`/255 over `background`. */
static inline uint8_t dl2_blend(unsigned value, unsigned alpha, unsigned background)
{
    return (uint8_t)((value * alpha + background * (255 - alpha) + 127) / 255);
}

/* "420", "422" or "444", the first for NULL; NULL where `wanted` is none of them. */
const char *dl2_subsampling_find(const char *wanted);

#endif
