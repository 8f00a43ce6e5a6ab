/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PBM, PGM and PPM, as in the netpbm manual: text (P1 to P3), of which a binary copy is made first,
 * and binary (P4 to P6). They need no library, so every build has this codec. Samples of another
 * maximum than 255 are scaled to it, and bits, of which 1 is black, are 0 and 255. The first of
 * several images in a file is read. A gray image is written as P5, also under the extension .ppm:
 * readers look at the first two bytes.
 */
#include "codec/codecs.h"

#include <stdio.h>
#include <string.h>

struct pnm_header {
    uint32_t width, height, channels, maximum;
    bool text, bits; /* P1 to P3; P1 and P4, whose maximum is 255 once they are bytes */
    size_t pixels_at;
};

static bool pnm_is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* The next number of the header, behind white space and comments; false where there is none. */
static bool pnm_read_number(const uint8_t *data, size_t size, size_t *at, uint32_t *out)
{
    size_t i = *at;
    while (i < size && (pnm_is_space(data[i]) || data[i] == '#')) {
        if (data[i] == '#') {
            while (i < size && data[i] != '\n' && data[i] != '\r')
                i++;
        } else {
            i++;
        }
    }
    size_t start = i;
    uint32_t value = 0;
    for (; i < size && data[i] >= '0' && data[i] <= '9'; i++) {
        if (i - start == 9)
            return false;
        value = value * 10 + (uint32_t)(data[i] - '0');
    }
    *at = i;
    *out = value;
    return i > start;
}

/* Text may begin like an image of text: there has to be a number, or a comment, behind. */
static bool pnm_sniff(const uint8_t *data, size_t size)
{
    size_t at = 2;
    uint32_t width;
    if (size < 3 || data[0] != 'P' || data[1] < '1' || data[1] > '6')
        return false;
    if (data[1] >= '5')
        return pnm_is_space(data[2]) || data[2] == '#';
    return pnm_is_space(data[2]) && (pnm_read_number(data, size, &at, &width) || at == size);
}

static int pnm_parse_header(const uint8_t *data, size_t size, struct pnm_header *header,
                            struct dl2_error *error)
{
    size_t at = 2;
    header->channels = data[1] == '3' || data[1] == '6' ? 3 : 1;
    header->text = data[1] <= '3';
    header->bits = data[1] == '1' || data[1] == '4';
    header->maximum = 255;
    if (!pnm_read_number(data, size, &at, &header->width) ||
        !pnm_read_number(data, size, &at, &header->height) ||
        (!header->bits && !pnm_read_number(data, size, &at, &header->maximum)) || at == size ||
        !pnm_is_space(data[at]))
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNM: the header is damaged or cut short");
    if (!header->width || !header->height || !header->maximum || header->maximum > 65535)
        return dl2_error_set(
            error, DL2_ERR_FORMAT, "PNM: a header of %u x %u pixels up to %u makes no sense",
            (unsigned)header->width, (unsigned)header->height, (unsigned)header->maximum);
    header->pixels_at = at + 1;
    return DL2_OK;
}

static size_t pnm_sample_bytes(const struct pnm_header *header)
{
    return header->maximum > 255 ? 2 : 1;
}

static int pnm_fail_short(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "PNM: the file is cut short");
}

/* A sample at `in`; false if it is above the maximum. */
static inline bool pnm_sample(const struct pnm_header *header, const uint8_t *in, size_t step,
                              uint32_t *out, struct dl2_error *error)
{
    *out = step == 2 ? (uint32_t)in[0] << 8 | in[1] : in[0];
    if (*out > header->maximum)
        dl2_error_set(error, DL2_ERR_FORMAT, "PNM: a sample of %u is above the maximum of %u",
                      (unsigned)*out, (unsigned)header->maximum);
    return *out <= header->maximum;
}

/* The rectangle at (x, y) that fills `image`, scaled to a maximum of 255. */
static int pnm_scale_samples(const struct pnm_header *header, const uint8_t *samples, uint32_t x,
                             uint32_t y, struct dl2_image *image, struct dl2_error *error)
{
    const uint32_t maximum = header->maximum;
    const size_t step = pnm_sample_bytes(header), pixel = step * header->channels;
    for (uint32_t row = 0; row < image->height; row++) {
        const uint8_t *in = samples + ((uint64_t)(y + row) * header->width + x) * pixel;
        uint8_t *out = image->data + row * image->stride;
        for (size_t i = 0; i < image->stride; i++, in += step) {
            uint32_t value;
            if (!pnm_sample(header, in, step, &value, error))
                return DL2_ERR_FORMAT;
            out[i] = (uint8_t)((value * 255 + maximum / 2) / maximum);
        }
    }
    return DL2_OK;
}

struct pnm_state {
    struct dl2_codec_state base; /* block: the binary copy of text and bits */
    struct pnm_header header;
};

/* The samples of text, as a binary file has them. Bits need no blank between them. */
static int pnm_copy_text(const struct pnm_state *pnm, uint64_t samples, uint8_t *out,
                         struct dl2_error *error)
{
    const struct pnm_header *header = &pnm->header;
    const uint8_t *const data = pnm->base.data;
    const size_t step = pnm_sample_bytes(header);
    size_t at = header->pixels_at;
    for (; samples; samples--, out += step) {
        uint32_t value;
        /* A bit is one digit: "101" is three. */
        while (header->bits && at < pnm->base.size && pnm_is_space(data[at]))
            at++;
        const size_t size =
            header->bits && at < pnm->base.size && data[at] != '#' ? at + 1 : pnm->base.size;
        if (!pnm_read_number(data, size, &at, &value))
            return at < pnm->base.size
                       ? dl2_error_set(error, DL2_ERR_FORMAT, "PNM: byte %zu is no number", at)
                       : pnm_fail_short(error);
        if (value > (header->bits ? 1 : header->maximum))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "PNM: a sample of %u is above the maximum of %u", (unsigned)value,
                                 (unsigned)(header->bits ? 1 : header->maximum));
        value = header->bits ? 255 * !value : value;
        if (step == 2)
            out[0] = (uint8_t)(value >> 8);
        out[step - 1] = (uint8_t)value;
    }
    return DL2_OK;
}

/* Rows of bits begin at whole bytes. */
static void pnm_copy_bits(const struct pnm_state *pnm, uint8_t *out)
{
    const struct pnm_header *header = &pnm->header;
    const uint8_t *row = pnm->base.data + header->pixels_at;
    for (uint32_t y = 0; y < header->height; y++, row += ((size_t)header->width + 7) / 8)
        for (uint32_t x = 0; x < header->width; x++)
            *out++ = row[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
}

/* Sets *out to the samples as a binary file of bytes has them. The size is within the limit, so
 * that nothing overflows: at most 2^32 pixels. */
static int pnm_find_samples(struct pnm_state *pnm, const uint8_t **out, struct dl2_error *error)
{
    const struct pnm_header *header = &pnm->header;
    const uint64_t samples = (uint64_t)header->width * header->height * header->channels;
    const size_t left = pnm->base.size - header->pixels_at;
    const uint64_t least = header->text   ? header->bits ? samples : 2 * samples - 1
                           : header->bits ? ((uint64_t)header->width + 7) / 8 * header->height
                                          : samples * pnm_sample_bytes(header);
    if (least > left)
        return pnm_fail_short(error);
    *out = pnm->base.data + header->pixels_at;
    if (!header->text && !header->bits)
        return DL2_OK;
    DL2_TRY(dl2_bytes_resize(&pnm->base.block, (size_t)samples * pnm_sample_bytes(header), error));
    *out = pnm->base.block.data;
    if (header->text)
        return pnm_copy_text(pnm, samples, pnm->base.block.data, error);
    pnm_copy_bits(pnm, pnm->base.block.data);
    return DL2_OK;
}

static int pnm_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct pnm_state *pnm = state;
    const struct pnm_header *header = &pnm->header;
    DL2_TRY(pnm_parse_header(pnm->base.data, pnm->base.size, &pnm->header, error));
    info->width = header->width;
    info->height = header->height;
    info->channels = header->channels;
    info->bits = header->bits ? 1 : header->maximum > 255 ? 16 : 8;
    return DL2_OK;
}

static int pnm_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    struct pnm_state *pnm = state;
    const struct pnm_header *header = &pnm->header;
    const uint8_t *samples;
    DL2_TRY(pnm_find_samples(pnm, &samples, error));
    if (header->maximum == 255) { /* the file's own bytes, or the copy */
        *raster = (struct dl2_raster){
            .color = header->channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
            .planes[0] = {.data = samples,
                          .stride = (size_t)header->width * header->channels,
                          .width = header->width,
                          .height = header->height,
                          .step_x = 1,
                          .step_y = 1},
        };
        return DL2_OK;
    }
    DL2_TRY(dl2_image_reshape(image, request->width, request->height, header->channels, error));
    DL2_TRY(pnm_scale_samples(header, samples, request->x, request->y, image, error));
    *raster = dl2_raster_of(image, request->x, request->y);
    return DL2_OK;
}

static int pnm_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    struct pnm_state *pnm = state;
    const struct pnm_header *header = &pnm->header;
    const size_t step = pnm_sample_bytes(header);
    (void)background;
    const uint8_t *in;
    DL2_TRY(pnm_find_samples(pnm, &in, error));
    DL2_TRY(dl2_deep_reshape(image, header->width, header->height, header->channels, error));
    uint16_t *out = dl2_deep_row(image, 0);
    for (size_t i = image->bytes.size / sizeof *out; i; i--, in += step) {
        uint32_t value;
        if (!pnm_sample(header, in, step, &value, error))
            return DL2_ERR_FORMAT;
        *out++ = dl2_deep_sample(value, header->maximum);
    }
    return DL2_OK;
}

static int pnm_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    (void)options;
    char header[64];
    int length =
        snprintf(header, sizeof header, "P%c\n%u %u\n255\n", image->channels == 3 ? '6' : '5',
                 (unsigned)image->width, (unsigned)image->height);
    size_t pixels = image->stride * image->height;
    DL2_TRY(dl2_bytes_resize(out, (size_t)length + pixels, error));
    memcpy(out->data, header, (size_t)length);
    memcpy(out->data + length, image->data, pixels);
    return DL2_OK;
}

static json_t *pnm_parameters(const struct dl2_encode_options *options)
{
    (void)options;
    return json_pack("{s:i}", "maxval", 255);
}

const struct dl2_codec dl2_codec_ppm = {
    .name = "ppm",
    .extension = "ppm",
    .extensions = {"ppm", "pgm", "pnm", "pbm"},
    .max_side = UINT32_MAX,
    .max_effort = -1,
    .pixel_bytes = 3,
    .version = "built in",
    .sniff = pnm_sniff,
    .state_size = sizeof(struct pnm_state),
    .open = pnm_open,
    .read = pnm_read,
    .read_deep = pnm_read_deep,
    .encode = pnm_encode,
    .encoder_parameters = pnm_parameters,
};
