/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GIF through giflib: the first image of a file, on its canvas; has_more says that others follow.
 * Its transparent pixels, and what it leaves of the canvas, are alpha 0. A canvas that is too small
 * for it grows. Without a palette the numbers are gray levels, like those that a palette lacks.
 * Nothing is written.
 */
#include "codec/codecs.h"

#include <stdio.h>
#include <string.h>

#include <gif_lib.h>

enum { NOT_TRANSPARENT = -1 };

struct gif_state {
    struct dl2_codec_state base; /* block: a line's numbers */
    GifFileType *file;           /* at the first image's pixels; NULL: none is open */
    const ColorMapObject *map;
    uint32_t width, height;
    int transparent; /* the number of that color, or NOT_TRANSPARENT */
};

/* A file may lack the zero that ends its last image: where a block's size should stand there is
 * one. Pixels cannot end with it. */
static int gif_read_source(GifFileType *file, GifByteType *out, int count)
{
    const int taken = (int)dl2_codec_take(file->UserData, out, (size_t)count);
    if (taken || count != 1)
        return taken;
    *out = 0;
    return 1;
}

static int gif_fail(int code, struct dl2_error *error)
{
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return dl2_error_memory(error, "a GIF image");
    const char *text = GifErrorString(code);
    return dl2_error_set(error, DL2_ERR_FORMAT, "GIF: %s", text ? text : "the file is damaged");
}

static void gif_close(void *state)
{
    struct gif_state *gif = state;
    if (gif->file)
        DGifCloseFile(gif->file, NULL);
    gif->file = NULL;
}

/* Steps over blocks from `at` on; false if they do not end. */
static bool gif_skip_blocks(const struct dl2_codec_state *source, size_t *at)
{
    while (*at < source->size && source->data[*at]) {
        const size_t block = (size_t)source->data[*at] + 1;
        if (block > source->size - *at)
            return false;
        *at += block;
    }
    return ++*at <= source->size;
}

/* Is there another image behind the one whose pixels giflib comes to next? */
static bool gif_has_more(const struct dl2_codec_state *source)
{
    size_t at = source->at; /* giflib has read the byte with the size of codes */
    if (!gif_skip_blocks(source, &at))
        return false;
    while (at + 1 < source->size && source->data[at] == '!') {
        at += 2;
        if (!gif_skip_blocks(source, &at))
            return false;
    }
    return at < source->size && source->data[at] == ',';
}

static int gif_read_extensions(struct gif_state *gif, struct dl2_error *error)
{
    int code;
    GifByteType *block;
    int status = DGifGetExtension(gif->file, &code, &block);
    while (status == GIF_OK && block) {
        GraphicsControlBlock control;
        if (code == GRAPHICS_EXT_FUNC_CODE &&
            DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
            gif->transparent = control.TransparentColor;
        status = DGifGetExtensionNext(gif->file, &block);
    }
    return status == GIF_OK ? DL2_OK : gif_fail(gif->file->Error, error);
}

/* Goes on to the first image. */
static int gif_find_image(struct gif_state *gif, struct dl2_error *error)
{
    GifRecordType type;
    for (;;) {
        if (DGifGetRecordType(gif->file, &type) != GIF_OK)
            return gif_fail(gif->file->Error, error);
        if (type == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif->file) == GIF_OK ? DL2_OK
                                                         : gif_fail(gif->file->Error, error);
        if (type != EXTENSION_RECORD_TYPE)
            return dl2_error_set(error, DL2_ERR_FORMAT, "GIF: there is no image in the file");
        DL2_TRY(gif_read_extensions(gif, error));
    }
}

static uint32_t gif_larger(int canvas, int start, int length)
{
    return (uint32_t)(canvas > start + length ? canvas : start + length);
}

static int gif_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct gif_state *gif = state;
    int code = 0;
    gif_close(gif);
    gif->transparent = NOT_TRANSPARENT;
    gif->file = DGifOpen(&gif->base, gif_read_source, &code);
    if (!gif->file)
        return gif_fail(code, error);
    DL2_TRY(gif_find_image(gif, error));
    const GifImageDesc *image = &gif->file->Image;
    if (image->Width < 1 || image->Height < 1 || image->Left < 0 || image->Top < 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "GIF: a size of %dx%d makes no sense",
                             image->Width, image->Height);
    gif->map = image->ColorMap ? image->ColorMap : gif->file->SColorMap;
    gif->width = gif_larger(gif->file->SWidth, image->Left, image->Width);
    gif->height = gif_larger(gif->file->SHeight, image->Top, image->Height);
    info->width = gif->width;
    info->height = gif->height;
    info->channels = gif->map ? 3 : 1;
    info->bits = 8;
    info->alpha = gif->transparent != NOT_TRANSPARENT || image->Width < (int)gif->width ||
                  image->Height < (int)gif->height;
    info->has_more = gif_has_more(&gif->base);
    return DL2_OK;
}

/* The row of an image that line `line` of the file has. */
static int gif_row(const GifImageDesc *image, int line)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    for (int pass = 0; image->Interlace && pass < 4; pass++) {
        const int rows = (image->Height - starts[pass] + steps[pass] - 1) / steps[pass];
        if (line < rows)
            return starts[pass] + line * steps[pass];
        line -= rows;
    }
    return line;
}

static void gif_fill(struct dl2_image *image, const uint8_t background[3])
{
    const uint8_t gray = dl2_luma(background[0], background[1], background[2]);
    for (size_t i = 0; i < image->stride * image->height; i++)
        image->data[i] = image->channels == 1 ? gray : background[i % 3];
}

/* Puts the part of a line that lies in the rectangle there. */
static void gif_take_line(const struct gif_state *gif, uint32_t y,
                          const struct dl2_decode_request *request, struct dl2_image *image)
{
    const uint32_t left = (uint32_t)gif->file->Image.Left;
    for (uint32_t i = 0; i < (uint32_t)gif->file->Image.Width; i++) {
        const uint32_t x = left + i;
        const int number = gif->base.block.data[i];
        if (x < request->x || x - request->x >= request->width || number == gif->transparent)
            continue;
        uint8_t *out = image->data + (y - request->y) * image->stride +
                       (size_t)(x - request->x) * image->channels;
        const bool known = gif->map && number < gif->map->ColorCount;
        const GifColorType gray = {(uint8_t)number, (uint8_t)number, (uint8_t)number};
        const GifColorType color = known ? gif->map->Colors[number] : gray;
        out[0] = color.Red;
        if (image->channels == 3) {
            out[1] = color.Green;
            out[2] = color.Blue;
        }
    }
}

static int gif_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    struct gif_state *gif = state;
    const GifImageDesc *desc = &gif->file->Image;
    DL2_TRY(dl2_image_reshape(image, request->width, request->height, gif->map ? 3 : 1, error));
    DL2_TRY(dl2_bytes_resize(&gif->base.block, (size_t)desc->Width, error));
    gif_fill(image, request->background);
    for (int line = 0; line < desc->Height; line++) {
        if (DGifGetLine(gif->file, gif->base.block.data, desc->Width) != GIF_OK)
            return gif_fail(gif->file->Error, error);
        const uint32_t y = (uint32_t)(desc->Top + gif_row(desc, line));
        if (y >= request->y && y - request->y < request->height)
            gif_take_line(gif, y, request, image);
    }
    *raster = dl2_raster_of(image, request->x, request->y);
    return DL2_OK;
}

const struct dl2_codec dl2_codec_gif = {
    .name = "gif",
    .extension = "gif",
    .extensions = {"gif"},
    .max_effort = -1,
    .pixel_bytes = 3,
    .version = "giflib " DL2_TEXT_VALUE(GIFLIB_MAJOR) "." DL2_TEXT_VALUE(
        GIFLIB_MINOR) "." DL2_TEXT_VALUE(GIFLIB_RELEASE),
    .signatures = {{13, "GIF87a???????"}, {13, "GIF89a???????"}},
    .state_size = sizeof(struct gif_state),
    .open = gif_open,
    .read = gif_read,
    .close = gif_close,
};
