/*
 * PGM and PPM, binary (P5 and P6), as the netpbm manual has them: no library needed, so every build
 * has at least this. Samples of another maximum than 255 are scaled to it. Of several images in a
 * file the first is taken. A gray image is written as P5, also under the extension .ppm; readers go
 * by the first two bytes.
 */
#include "codec/codecs.h"

#include <stdio.h>
#include <string.h>

struct header {
    uint32_t width, height, channels, maximum;
    size_t pixels_at;
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool sniff(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 'P' && (data[1] == '5' || data[1] == '6') &&
           (is_space(data[2]) || data[2] == '#');
}

/* The next number of the header, behind white space and comments; false where there is none. */
static bool read_number(const uint8_t *data, size_t size, size_t *at, uint32_t *out)
{
    size_t i = *at;
    while (i < size && (is_space(data[i]) || data[i] == '#')) {
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

static int read_header(const uint8_t *data, size_t size, struct header *header,
                       struct dl2_error *error)
{
    size_t at = 2;
    header->channels = data[1] == '6' ? 3 : 1;
    if (!read_number(data, size, &at, &header->width) ||
        !read_number(data, size, &at, &header->height) ||
        !read_number(data, size, &at, &header->maximum) || at == size || !is_space(data[at]))
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNM: the header is damaged or cut short");
    if (!header->width || !header->height || !header->maximum || header->maximum > 65535)
        return dl2_error_set(
            error, DL2_ERR_FORMAT, "PNM: a header of %u x %u pixels up to %u makes no sense",
            (unsigned)header->width, (unsigned)header->height, (unsigned)header->maximum);
    header->pixels_at = at + 1;
    return DL2_OK;
}

static int read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    struct header header;
    DL2_TRY(read_header(data, size, &header, error));
    *info = (struct dl2_image_info){.width = header.width,
                                    .height = header.height,
                                    .channels = header.channels,
                                    .bits = header.maximum > 255 ? 16 : 8,
                                    .orientation = 1};
    return DL2_OK;
}

static int decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_error *error)
{
    struct header header;
    uint64_t max_pixels = options->max_pixels ? options->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(read_header(data, size, &header, error));
    DL2_TRY(dl2_image_check_size(header.width, header.height, max_pixels, error));
    size_t sample_bytes = header.maximum > 255 ? 2 : 1;
    /* Can't overflow: at most max_pixels pixels, and no more than 2^32 of them a side. */
    uint64_t samples = (uint64_t)header.width * header.height * header.channels;
    if (samples > (size - header.pixels_at) / sample_bytes)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNM: the file is cut short");
    DL2_TRY(dl2_image_reshape(image, header.width, header.height, header.channels, error));
    const uint8_t *in = data + header.pixels_at;
    if (header.maximum == 255) {
        memcpy(image->data, in, samples);
        return DL2_OK;
    }
    for (uint64_t i = 0; i < samples; i++, in += sample_bytes) {
        uint32_t value = sample_bytes == 2 ? (uint32_t)in[0] << 8 | in[1] : in[0];
        if (value > header.maximum)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "PNM: a sample of %u is above the maximum of %u", (unsigned)value,
                                 (unsigned)header.maximum);
        image->data[i] = (uint8_t)((value * 255 + header.maximum / 2) / header.maximum);
    }
    return DL2_OK;
}

static int encode(const struct dl2_image *image, const struct dl2_encode_options *options,
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

static json_t *encoder_parameters(const struct dl2_encode_options *options)
{
    (void)options;
    return json_pack("{s:i}", "maxval", 255);
}

static const char *version(void)
{
    return "built in";
}

static const char *const extensions[] = {"ppm", "pgm", "pnm", NULL};

const struct dl2_codec dl2_codec_ppm = {
    .name = "ppm",
    .extension = "ppm",
    .extensions = extensions,
    .lossy = false,
    .max_side = UINT32_MAX,
    .max_effort = -1,
    .pixel_bytes = 3,
    .version = version,
    .sniff = sniff,
    .read_info = read_info,
    .decode = decode,
    .encode = encode,
    .encoder_parameters = encoder_parameters,
};
