/* What the codecs share among themselves; others include codec/codec.h. */
#ifndef DL2_CODEC_CODECS_H
#define DL2_CODEC_CODECS_H

#include "codec/codec.h"
#include "codec/decoder.h"

/* One a file; only codec.c, which knows which of them were built, names them. */
extern const struct dl2_codec dl2_codec_jpeg, dl2_codec_webp, dl2_codec_avif, dl2_codec_jp2,
    dl2_codec_png, dl2_codec_ppm;

static inline uint32_t dl2_divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
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

/* Turns colour into luma, in place; leaves gray as it is. */
int dl2_image_to_gray(struct dl2_image *image, struct dl2_error *error);

/* One interleaved plane whose first sample is the pixel (x, y). */
static inline struct dl2_raster dl2_raster_of(const struct dl2_image *image, uint32_t x, uint32_t y)
{
    return (struct dl2_raster){
        .color = image->channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
        .planes[0] = {.data = image->data,
                      .stride = image->stride,
                      .width = image->width,
                      .height = image->height,
                      .x = x,
                      .y = y,
                      .step_x = 1,
                      .step_y = 1},
    };
}

/* Leaves of one interleaved plane at full resolution only what was asked for. */
static inline void dl2_raster_narrow(struct dl2_raster *raster,
                                     const struct dl2_decode_request *request)
{
    struct dl2_plane *plane = &raster->planes[0];
    plane->data += (request->y - plane->y) * plane->stride +
                   (size_t)(request->x - plane->x) * dl2_raster_channels(raster);
    plane->x = request->x;
    plane->y = request->y;
    plane->width = request->width;
    plane->height = request->height;
}

/* "420", "422" or "444", the first for NULL; NULL where `wanted` is none of them. */
const char *dl2_subsampling_find(const char *wanted);

/* "tiles" or "none", likewise. */
const char *dl2_restart_find(const char *wanted);

#endif
