/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the codecs; other rooms include codec/codec.h. */
#ifndef DL2_CODEC_CODECS_H
#define DL2_CODEC_CODECS_H

#include "codec/codec.h"

/* What the state of each codec begins with; codec/decoder.c sets the file and frees the block. */
struct dl2_codec_state {
    const uint8_t *data;    /* the open file */
    size_t size, at;        /* `at`: what dl2_codec_take() takes next, 0 at first */
    uint64_t max_pixels;    /* for libraries that can be given a limit; decoder.c checks it, too */
    struct dl2_bytes block; /* memory that is kept from image to image */
};

/* Copies the file's next bytes, at most `count`; returns how many there were. */
size_t dl2_codec_take(struct dl2_codec_state *state, void *out, size_t count);

/* dl2_codec_sniff(), with an error that says why there is none. */
int dl2_codec_recognize(const uint8_t *data, size_t size, const struct dl2_codec **out,
                        struct dl2_error *error);

static inline uint32_t dl2_divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static inline uint32_t dl2_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t dl2_read_le16(const uint8_t *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t dl2_read_le32(const uint8_t *p)
{
    return dl2_read_le16(p + 2) << 16 | dl2_read_le16(p);
}

/* The lowest `bytes` bytes of a number. */
static inline void dl2_write_le(uint8_t *p, size_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

/* Makes part of an axis of `size` pixels larger: by `margin` on both sides as far as the axis goes,
 * and from a multiple of `step` on, a power of two. */
static inline void dl2_widen(uint32_t *start, uint32_t *length, uint32_t margin, uint32_t step,
                             uint32_t size)
{
    const uint64_t end = (uint64_t)*start + *length + margin;
    *start = *start > margin ? (*start - margin) & ~(step - 1) : 0;
    *length = (end < size ? (uint32_t)end : size) - *start;
}

/* Big-endian. */
static inline uint32_t dl2_read_u16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t dl2_read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void dl2_write_u32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (24 - 8 * i));
}

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

/*
 * Lays `pixels` pixels of `channels` (1 or 3) and an opacity, interleaved, over the background, or
 * its luma under gray. `out` may be `in`.
 */
void dl2_flatten(const uint8_t *in, uint8_t *out, size_t pixels, uint32_t channels,
                 const uint8_t background[3]);

/* Lays an image of 2 or 4 channels over the background, as dl2_flatten(), so that it has 1 or 3;
 * others stay. `multiplied`: its samples have been multiplied by their opacities. */
void dl2_flatten_deep(struct dl2_deep_image *image, const uint8_t background[3], bool multiplied);

/* "tiles" or "none", as dl2_subsampling_find(). */
const char *dl2_restart_find(const char *wanted);

/* The value of a macro as a text. */
#define DL2_TEXT(x)       #x
#define DL2_TEXT_VALUE(x) DL2_TEXT(x)

#endif
