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

static void fill_info(const struct header *header, struct dl2_image_info *info)
{
    *info = (struct dl2_image_info){.width = header->width,
                                    .height = header->height,
                                    .channels = header->channels,
                                    .bits = header->maximum > 255 ? 16 : 8,
                                    .orientation = 1};
}

static int read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    struct header header;
    DL2_TRY(read_header(data, size, &header, error));
    fill_info(&header, info);
    return DL2_OK;
}

static size_t sample_bytes(const struct header *header)
{
    return header->maximum > 255 ? 2 : 1;
}

/* For a size within the limit, so that nothing overflows: at most 2^32 pixels. */
static int check_length(const struct header *header, size_t size, struct dl2_error *error)
{
    uint64_t samples = (uint64_t)header->width * header->height * header->channels;
    if (samples > (size - header->pixels_at) / sample_bytes(header))
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNM: the file is cut short");
    return DL2_OK;
}

/* The part at (x, y) that fills `image`. */
static int read_pixels(const struct header *header, const uint8_t *data, uint32_t x, uint32_t y,
                       struct dl2_image *image, struct dl2_error *error)
{
    const uint32_t maximum = header->maximum;
    const size_t step = sample_bytes(header), pixel = step * header->channels;
    for (uint32_t row = 0; row < image->height; row++) {
        const uint8_t *in =
            data + header->pixels_at + ((uint64_t)(y + row) * header->width + x) * pixel;
        uint8_t *out = image->data + row * image->stride;
        if (maximum == 255) {
            memcpy(out, in, image->stride);
            continue;
        }
        for (size_t i = 0; i < image->stride; i++, in += step) {
            uint32_t value = step == 2 ? (uint32_t)in[0] << 8 | in[1] : in[0];
            if (value > maximum)
                return dl2_error_set(error, DL2_ERR_FORMAT,
                                     "PNM: a sample of %u is above the maximum of %u",
                                     (unsigned)value, (unsigned)maximum);
            out[i] = (uint8_t)((value * 255 + maximum / 2) / maximum);
        }
    }
    return DL2_OK;
}

static int decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_error *error)
{
    struct header header;
    uint64_t max_pixels = options->max_pixels ? options->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(read_header(data, size, &header, error));
    DL2_TRY(dl2_image_check_size(header.width, header.height, max_pixels, error));
    DL2_TRY(check_length(&header, size, error));
    DL2_TRY(dl2_image_reshape(image, header.width, header.height, header.channels, error));
    return read_pixels(&header, data, 0, 0, image, error);
}

/* ---- A part */

struct region {
    const uint8_t *data;
    size_t size;
    struct header header;
    struct dl2_image image; /* where the file's own bytes won't do */
};

static void region_destroy(void *state)
{
    struct region *region = state;
    dl2_image_free(&region->image);
}

static int region_open(void *state, const uint8_t *data, size_t size, struct dl2_image_info *info,
                       struct dl2_error *error)
{
    struct region *region = state;
    region->data = data;
    region->size = size;
    DL2_TRY(read_header(data, size, &region->header, error));
    fill_info(&region->header, info);
    return DL2_OK;
}

static int region_decode(void *state, const struct dl2_decode_request *request,
                         struct dl2_raster *raster, struct dl2_error *error)
{
    struct region *region = state;
    const struct header *header = &region->header;
    DL2_TRY(check_length(header, region->size, error));
    if (header->maximum == 255 && (header->channels == 1 || request->channels != 1)) {
        *raster = (struct dl2_raster){
            .color = header->channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
            .planes[0] = {.data = region->data + header->pixels_at,
                          .stride = (size_t)header->width * header->channels,
                          .width = header->width,
                          .height = header->height,
                          .step_x = 1,
                          .step_y = 1},
        };
        dl2_raster_narrow(raster, request);
        return DL2_OK;
    }
    DL2_TRY(dl2_image_reshape(&region->image, request->width, request->height, header->channels,
                              error));
    DL2_TRY(read_pixels(header, region->data, request->x, request->y, &region->image, error));
    if (request->channels == 1)
        DL2_TRY(dl2_image_to_gray(&region->image, error));
    *raster = dl2_raster_of(&region->image, request->x, request->y);
    return DL2_OK;
}

static size_t region_memory(const void *state)
{
    const struct region *region = state;
    return sizeof *region + region->image.capacity;
}

static const struct dl2_region_codec region_codec = {
    .state_size = sizeof(struct region),
    .destroy = region_destroy,
    .open = region_open,
    .decode = region_decode,
    .memory = region_memory,
};

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
    .region = &region_codec,
    .encode = encode,
    .encoder_parameters = encoder_parameters,
};
