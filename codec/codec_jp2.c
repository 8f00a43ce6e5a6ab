/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JPEG 2000 through OpenJPEG: JP2 files and bare codestreams in, JP2 files out.
 *
 * Quality is a target: PSNR = 22 + quality / 5 dB for each image (OpenJPEG's tcp_distoratio), so 50
 * asks for 32 dB, about what JPEG gives at 50 on photographs, and 100 for 42. A target of quality
 * and not of size, since that is what a quality means with the other codecs: simple images come out
 * small, and hard ones aren't starved (a size target would give every image the same bits per
 * pixel). Of slices of volumes PSNR = 30 + 2 * quality / 5 dB, from 34 at 10 to 70 at 100, at the
 * peak of their bits: a scan's noise alone lies 40 to 60 dB below that. 9/7 wavelet, colour
 * transform for RGB, one tile, one layer; gray stays gray. There is no effort to choose.
 *
 * The header is read here, without the library, before it may allocate anything: OpenJPEG
 * reserves memory for as many tiles and components as a header claims.
 *
 * Colour: gray, sRGB, sYCC, CMYK and CIELab are converted, e-sRGB, ROMM RGB and what a profile says
 * of RGB or gray are left as their numbers, and every other colour space is refused by its name.
 * Profiles that a JP2 file may hold have a matrix and curves, or are of gray.
 *
 * Rectangles: OpenJPEG (2.5.0 at least) decodes rectangles of high-throughput (HTJ2K) files
 * wrongly. It also reduces samples that aren't colours yet: numbers of a palette's entries, inks,
 * CIELab, and colours under an alpha of zero. More than the rectangle is decoded of such files, and
 * at full resolution.
 */
#include "codec/codecs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <openjpeg.h>

enum {
    MAX_COMPONENTS = 4,
    MAX_TILES = 16384, /* 256-pixel tiles would cover 2^30 pixels */
    MAX_BITS = 31,
    MAX_RESOLUTIONS = 6,
    STREAM_BLOCK = 1 << 16,
    LAB_PARAMETERS = 7,
};

#define CODESTREAM "\xff\x4f\xff\x51" /* SOC, SIZ */

static bool jp2_is_codestream(const uint8_t *data, size_t size)
{
    return size >= 4 && !memcmp(data, CODESTREAM, 4);
}

/* Each has its row in `spaces`. */
enum jp2_space {
    SPACE_UNNAMED, /* what the number of components suggests */
    SPACE_RGB,     /* or gray */
    SPACE_SYCC,
    SPACE_CMYK,
    SPACE_LAB,
    SPACE_FOREIGN, /* can't be converted */
};

static const struct {
    uint32_t number;   /* EnumCS; 0 where a profile alone has it */
    char signature[5]; /* of a profile's data; empty where a number alone has it */
    enum jp2_space space;
    const char *name;
} spaces[] = {
    {16, "RGB ", SPACE_RGB, "sRGB"},
    {17, "GRAY", SPACE_RGB, "gray"},
    {18, "", SPACE_SYCC, "sYCC"},
    {12, "CMYK", SPACE_CMYK, "CMYK"},
    {14, "", SPACE_LAB, "CIELab"},
    {20, "", SPACE_RGB, "e-sRGB"},
    {21, "", SPACE_RGB, "ROMM RGB"},
    {1, "", SPACE_FOREIGN, "YCbCr of BT.709"},
    {3, "", SPACE_FOREIGN, "YCbCr of BT.601"},
    {4, "", SPACE_FOREIGN, "YCbCr of BT.601 for video"},
    {9, "", SPACE_FOREIGN, "PhotoYCC"},
    {11, "CMY ", SPACE_FOREIGN, "CMY"},
    {13, "", SPACE_FOREIGN, "YCCK"},
    {15, "", SPACE_FOREIGN, "bi-level with black as 1"},
    {19, "", SPACE_FOREIGN, "CIEJab"},
    {22, "", SPACE_FOREIGN, "YPbPr of 60 Hz"},
    {23, "", SPACE_FOREIGN, "YPbPr of 50 Hz"},
    {24, "", SPACE_FOREIGN, "e-YCC"},
    {0, "Lab ", SPACE_FOREIGN, "a profile of CIELab"},
    {0, "XYZ ", SPACE_FOREIGN, "a profile of CIEXYZ"},
    {0, "YCbr", SPACE_FOREIGN, "a profile of YCbCr"},
};

/* How samples, in parts of their maximum, become L*, a* and b*: times `range`, and `zero` is 0. */
struct jp2_lab {
    uint32_t range[3], zero[3];
    bool has_zero; /* else `zero` is that of the bits of a sample */
    bool d65;      /* the illuminant; false: D50 */
};

/* What a colour specification box says. */
struct jp2_colour {
    enum jp2_space space;
    char foreign[48]; /* the name, or number, of a colour space that can't be converted */
    struct jp2_lab lab;
    uint32_t enumerated; /* EnumCS, or 0 */
    const uint8_t *profile;
    size_t profile_size;
};

/* The facts in the boxes and the main header. */
struct jp2_header {
    uint32_t width, height;
    uint32_t components; /* after the palette, where there is one */
    uint32_t bits;
    struct jp2_colour colour;
    bool palette;
    bool high_throughput;
    bool is_signed;
    bool plain; /* at the grid's origin, all components at full resolution */
};

/* The box at *at, which moves behind it; false at the end or where it is damaged. */
static bool jp2_next_box(const uint8_t *data, size_t size, size_t *at, const uint8_t **type,
                         const uint8_t **content, size_t *length)
{
    size_t left = size - *at, header = 8;
    if (left < header)
        return false;
    const uint8_t *box = data + *at;
    uint64_t whole = dl2_read_u32(box);
    if (whole == 1) {
        header = 16;
        if (left < header)
            return false;
        whole = (uint64_t)dl2_read_u32(box + 8) << 32 | dl2_read_u32(box + 12);
    } else if (whole == 0) {
        whole = left;
    }
    if (whole < header)
        return false;
    if (whole > left)
        whole = left; /* cut short: its start is still of use */
    *type = box + 4;
    *content = box + header;
    *length = (size_t)whole - header;
    *at += (size_t)whole;
    return true;
}

static void jp2_set_foreign(struct jp2_colour *colour, const char *name)
{
    colour->space = SPACE_FOREIGN;
    snprintf(colour->foreign, sizeof colour->foreign, "%s", name);
}

/* Ranges, offsets and illuminant of CIELab; none: those of the standard. */
static void jp2_read_lab(const uint8_t *parameters, size_t length, struct jp2_colour *colour)
{
    enum { D50 = 0x00443530, D65 = 0x00443635 };
    struct jp2_lab *lab = &colour->lab;
    *lab = (struct jp2_lab){.range = {100, 170, 200}};
    if (length < 4 * (size_t)LAB_PARAMETERS)
        return;
    lab->has_zero = true;
    for (size_t i = 0; i < 3; i++) {
        lab->range[i] = dl2_read_u32(parameters + 8 * i);
        lab->zero[i] = dl2_read_u32(parameters + 8 * i + 4);
    }
    const uint32_t illuminant = dl2_read_u32(parameters + 24);
    lab->d65 = illuminant == D65;
    if (illuminant != D50 && illuminant != D65)
        jp2_set_foreign(colour, "CIELab under another light than D50 and D65");
}

/* By a colour specification box; false for one of a method that says nothing here. */
static bool jp2_read_colour(const uint8_t *content, size_t length, struct jp2_colour *colour)
{
    enum { ENUMERATED = 1, RESTRICTED = 2, ANY = 3, START = 3, SIGNATURE = START + 16 };
    const size_t count = sizeof spaces / sizeof *spaces;
    size_t row = 0;
    char name[48];
    if (length >= START + 4 && content[0] == ENUMERATED) {
        const uint32_t number = dl2_read_u32(content + START);
        while (row < count && !(spaces[row].number == number && number))
            row++;
        colour->enumerated = number;
        snprintf(name, sizeof name, "number %u", (unsigned)number);
        if (row < count && spaces[row].space == SPACE_LAB)
            jp2_read_lab(content + START + 4, length - START - 4, colour);
    } else if (length >= SIGNATURE + 4 && (content[0] == RESTRICTED || content[0] == ANY)) {
        const char *signature = (const char *)content + SIGNATURE;
        for (int i = 0; i < 4; i++)
            if (signature[i] < ' ' || signature[i] > '~')
                return false; /* no profile */
        while (row < count && strncmp(spaces[row].signature, signature, 4) != 0)
            row++;
        snprintf(name, sizeof name, "a profile of %.4s", signature);
        colour->profile = content + START;
        colour->profile_size = length - START;
    } else {
        return false;
    }
    if (row == count)
        jp2_set_foreign(colour, name);
    else if (spaces[row].space == SPACE_FOREIGN)
        jp2_set_foreign(colour, spaces[row].name);
    else if (colour->space != SPACE_FOREIGN)
        colour->space = spaces[row].space;
    return true;
}

/*
 * The first colour specification of methods that every reader knows counts, as it does with
 * OpenJPEG; where there is none, the first of any profile.
 */
static void jp2_read_image_header(const uint8_t *data, size_t size, struct jp2_header *header)
{
    const uint8_t *type, *content;
    size_t at = 0, length;
    bool known = false, any = false;
    while (jp2_next_box(data, size, &at, &type, &content, &length)) {
        if (!memcmp(type, "colr", 4) && length && !known) {
            const bool other = content[0] != 1 && content[0] != 2;
            if (other && any)
                continue;
            struct jp2_colour tried = {0};
            if (!jp2_read_colour(content, length, &tried))
                continue;
            header->colour = tried;
            known = !other;
            any = true;
        } else if (!memcmp(type, "pclr", 4) && length >= 3) {
            header->components = content[2];
            header->palette = true;
        }
    }
}

/*
 * Do the codestream's capabilities, or the code blocks' style, say that it is HTJ2K? In the main
 * header, which ends where the first tile begins.
 */
static bool jp2_is_high_throughput(const uint8_t *data, size_t size)
{
    enum { SIZ = 0xff51, CAP = 0xff50, COD = 0xff52, COC = 0xff53, SOT = 0xff90 };
    enum { HIGH_THROUGHPUT = 0x40, MANY_COMPONENTS = 257 };
    uint32_t components = 0;
    for (size_t at = 2; size - at >= 4;) {
        const uint32_t marker = dl2_read_u16(data + at);
        const size_t length = dl2_read_u16(data + at + 2);
        const uint8_t *segment = data + at + 4;
        at += 2;
        if (marker == SOT || marker >> 8 != 0xff || length < 2 || length > size - at)
            return false;
        if (marker == SIZ && length >= 40)
            components = dl2_read_u16(segment + 34);
        /* The style of code blocks: the fourth byte of SPcod and SPcoc. */
        const size_t style = marker == COD   ? 5 + 3
                             : marker == COC ? (components < MANY_COMPONENTS ? 2u : 3u) + 3
                                             : 0;
        if (marker == CAP || (style && length - 2 > style && segment[style] & HIGH_THROUGHPUT))
            return true;
        at += length;
    }
    return false;
}

/* Is the colour one that can be converted, and are there components enough for it? */
static int jp2_check_colour(const struct jp2_header *header, struct dl2_error *error)
{
    if (header->colour.space == SPACE_FOREIGN)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: colour space %s is not supported", header->colour.foreign);
    if (header->colour.space == SPACE_LAB && (header->components != 3 || header->is_signed))
        return dl2_error_set(
            error, DL2_ERR_UNSUPPORTED, "JPEG 2000: CIELab of %u components, %s, is not supported",
            (unsigned)header->components, header->is_signed ? "signed" : "unsigned");
    if (header->colour.space == SPACE_CMYK && header->components != 4)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: CMYK of %u components is not supported",
                             (unsigned)header->components);
    return DL2_OK;
}

static int jp2_read_siz(const uint8_t *data, size_t size, struct jp2_header *header,
                        struct dl2_error *error)
{
    if (!jp2_is_codestream(data, size) || size < 45)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: the codestream's header is damaged or cut short");
    uint32_t right = dl2_read_u32(data + 8), bottom = dl2_read_u32(data + 12);
    uint32_t left = dl2_read_u32(data + 16), top = dl2_read_u32(data + 20);
    uint32_t tile_width = dl2_read_u32(data + 24), tile_height = dl2_read_u32(data + 28);
    uint32_t tile_left = dl2_read_u32(data + 32), tile_top = dl2_read_u32(data + 36);
    uint32_t components = dl2_read_u16(data + 40);
    uint32_t dx = data[43], dy = data[44];
    if (left >= right || top >= bottom || !tile_width || !tile_height || tile_left > left ||
        tile_top > top || !components || !dx || !dy)
        return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG 2000: the header makes no sense");
    if (components > MAX_COMPONENTS)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: %u components, more than %d, are not supported",
                             (unsigned)components, (int)MAX_COMPONENTS);
    uint64_t tiles = (uint64_t)dl2_divide_up(right - tile_left, tile_width) *
                     dl2_divide_up(bottom - tile_top, tile_height);
    if (tiles > MAX_TILES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "JPEG 2000: more than %d tiles", (int)MAX_TILES);
    header->width = dl2_divide_up(right, dx) - dl2_divide_up(left, dx);
    header->height = dl2_divide_up(bottom, dy) - dl2_divide_up(top, dy);
    header->bits = (data[42] & 0x7fu) + 1;
    header->is_signed = data[42] >> 7;
    header->high_throughput = jp2_is_high_throughput(data, size);
    header->plain = !left && !top && size >= 42 + 3 * (size_t)components;
    for (uint32_t c = 0; header->plain && c < components; c++)
        header->plain = data[43 + 3 * c] == 1 && data[44 + 3 * c] == 1;
    if (!header->components)
        header->components = components;
    return jp2_check_colour(header, error);
}

static int jp2_parse_header(const uint8_t *data, size_t size, struct jp2_header *header,
                            struct dl2_error *error)
{
    *header = (struct jp2_header){0};
    if (jp2_is_codestream(data, size))
        return jp2_read_siz(data, size, header, error);
    const uint8_t *type, *content;
    size_t at = 0, length;
    while (jp2_next_box(data, size, &at, &type, &content, &length)) {
        if (!memcmp(type, "jp2h", 4))
            jp2_read_image_header(content, length, header);
        else if (!memcmp(type, "jp2c", 4))
            return jp2_read_siz(content, length, header, error);
    }
    return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG 2000: the file is cut short or has no image");
}

/* Tile-parts: the codestream behind its main header. */
static size_t jp2_coded_bytes(const uint8_t *data, size_t size)
{
    enum { START_OF_TILE = 0xff90 };
    const uint8_t *type, *content;
    size_t at = 0, length;
    while (!jp2_is_codestream(data, size)) {
        if (!jp2_next_box(data, size, &at, &type, &content, &length))
            return 0;
        if (!memcmp(type, "jp2c", 4)) {
            if (!jp2_is_codestream(content, length))
                return 0;
            data = content;
            size = length;
        }
    }
    for (at = 2; at <= size && size - at >= 4; at += 2 + (size_t)dl2_read_u16(data + at + 2))
        if (dl2_read_u16(data + at) == START_OF_TILE)
            return size - at;
    return 0;
}

static bool jp2_has_alpha(const struct jp2_header *header)
{
    return header->components == 2 ||
           (header->components == 4 && header->colour.space != SPACE_CMYK);
}

static uint32_t jp2_channels(const struct jp2_header *header)
{
    return header->components >= 3 ? 3 : 1;
}

static void jp2_on_error(const char *message, void *error)
{
    dl2_error_set(error, DL2_ERR_FORMAT, "JPEG 2000: %.*s", (int)strcspn(message, "\n"), message);
}

static void jp2_on_message(const char *message, void *error)
{
    (void)message, (void)error;
}

/* Errors go to `error`; nothing is printed. */
static void jp2_set_handlers(opj_codec_t *codec, struct dl2_error *error)
{
    opj_set_error_handler(codec, jp2_on_error, error);
    opj_set_warning_handler(codec, jp2_on_message, NULL);
    opj_set_info_handler(codec, jp2_on_message, NULL);
}

static OPJ_SIZE_T jp2_source_read(void *out, OPJ_SIZE_T count, void *user)
{
    const size_t taken = dl2_codec_take(user, out, count);
    return taken ? taken : (OPJ_SIZE_T)-1;
}

static OPJ_BOOL jp2_source_seek(OPJ_OFF_T position, void *user)
{
    struct dl2_codec_state *source = user;
    if (position < 0 || (uint64_t)position > source->size)
        return OPJ_FALSE;
    source->at = (size_t)position;
    return OPJ_TRUE;
}

static OPJ_OFF_T jp2_source_skip(OPJ_OFF_T count, void *user)
{
    struct dl2_codec_state *source = user;
    if (count < 0)
        return -1;
    if ((uint64_t)count > source->size - source->at)
        count = (OPJ_OFF_T)(source->size - source->at);
    source->at += (size_t)count;
    return count;
}

static uint8_t jp2_clamp(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static int64_t jp2_maximum(const opj_image_comp_t *component)
{
    return ((int64_t)1 << component->prec) - 1;
}

/* A sample as a level from 0 to the maximum. */
static inline int64_t jp2_level(const opj_image_comp_t *component, int64_t value)
{
    const int64_t maximum = jp2_maximum(component);
    value += component->sgnd ? (int64_t)1 << (component->prec - 1) : 0;
    return value < 0 ? 0 : value > maximum ? maximum : value;
}

/* A component as 8-bit samples of the image's size, rows of `stride`, every `step` bytes. */
static int jp2_take_component(const opj_image_comp_t *component, uint32_t width, uint32_t height,
                              uint8_t *out, size_t step, struct dl2_error *error)
{
    if (!component->data || !component->w || !component->h || component->w > width ||
        component->h > height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: the components' sizes contradict each other");
    if (component->prec < 1 || component->prec > MAX_BITS)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: %u bits a sample",
                             (unsigned)component->prec);
    bool same = component->w == width && component->h == height;
    if (same && component->prec == 8 && !component->sgnd) {
        const OPJ_INT32 *in = component->data;
        for (size_t left = (size_t)width * height; left; left--, in++, out += step)
            *out = jp2_clamp(*in);
        return DL2_OK;
    }
    const int64_t maximum = jp2_maximum(component);
    for (uint32_t y = 0; y < height; y++) {
        uint32_t from_y = same ? y : (uint32_t)((uint64_t)y * component->h / height);
        const OPJ_INT32 *in = component->data + (size_t)from_y * component->w;
        for (uint32_t x = 0; x < width; x++, out += step) {
            const int64_t value =
                jp2_level(component, in[same ? x : (uint64_t)x * component->w / width]);
            *out = (uint8_t)(maximum == 255 ? value : (value * 255 + maximum / 2) / maximum);
        }
    }
    return DL2_OK;
}

/* BT.601, full range, in place. */
static void jp2_ycc_to_rgb(uint8_t *pixel, size_t pixels)
{
    for (; pixels; pixels--, pixel += 3) {
        int y = pixel[0] * 65536 + 32768, cb = pixel[1] - 128, cr = pixel[2] - 128;
        pixel[0] = jp2_clamp((y + 91881 * cr) >> 16);
        pixel[1] = jp2_clamp((y - 22554 * cb - 46802 * cr) >> 16);
        pixel[2] = jp2_clamp((y + 116130 * cb) >> 16);
    }
}

/* Lays what has the opacities, or inks of black, of `last` over the background, in place. */
static void jp2_apply_last_component(struct dl2_image *image, const uint8_t *last, bool cmyk,
                                     const uint8_t background[3])
{
    size_t pixels = (size_t)image->width * image->height;
    uint8_t *out = image->data;
    uint8_t gray = dl2_luma(background[0], background[1], background[2]);
    for (size_t i = 0; i < pixels; i++, out += image->channels) {
        for (uint32_t c = 0; c < image->channels; c++) {
            if (cmyk)
                out[c] = (uint8_t)(((255 - out[c]) * (255 - last[i]) + 127) / 255);
            else
                out[c] = dl2_blend(out[c], last[i], image->channels == 1 ? gray : background[c]);
        }
    }
}

/* From linear light to the sRGB curve. */
static double jp2_srgb_curve(double light)
{
    return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static double jp2_lab_inverse(double value)
{
    return value > 6.0 / 29 ? value * value * value : 108.0 / 841 * (value - 4.0 / 29);
}

/*
 * CIELab to sRGB, in place. XYZ under D50 is adapted to D65, sRGB's white, by Bradford's transform,
 * which the first matrix has in it.
 */
static void jp2_lab_to_rgb(const struct jp2_lab *lab, uint32_t bits, uint8_t *pixel, size_t pixels)
{
    static const double whites[2][3] = {{0.9642, 1, 0.8251}, {0.9505, 1, 1.0891}};
    static const double matrices[2][3][3] = {
        {{3.1338561, -1.6168667, -0.4906146},
         {-0.9787684, 1.9161415, 0.0334540},
         {0.0719453, -0.2289914, 1.4052427}},
        {{3.2404542, -1.5371385, -0.4985314},
         {-0.9692660, 1.8760108, 0.0415560},
         {0.0556434, -0.2040259, 1.0572252}},
    };
    const double maximum = (double)(((uint64_t)1 << bits) - 1), half = (maximum + 1) / 2;
    const double standard[3] = {0, half, half / 2 + half / 4};
    const double *white = whites[lab->d65];
    for (; pixels; pixels--, pixel += 3) {
        double value[3];
        for (int c = 0; c < 3; c++)
            value[c] = lab->range[c] *
                       (pixel[c] / 255.0 - (lab->has_zero ? lab->zero[c] : standard[c]) / maximum);
        const double y = (value[0] + 16) / 116;
        const double xyz[3] = {white[0] * jp2_lab_inverse(y + value[1] / 500),
                               white[1] * jp2_lab_inverse(y),
                               white[2] * jp2_lab_inverse(y - value[2] / 200)};
        for (int c = 0; c < 3; c++) {
            const double *row = matrices[lab->d65][c];
            const double light = row[0] * xyz[0] + row[1] * xyz[1] + row[2] * xyz[2];
            const double curved = jp2_srgb_curve(light < 0 ? 0 : light > 1 ? 1 : light);
            pixel[c] = (uint8_t)(255 * curved + 0.5);
        }
    }
}

static bool jp2_is_ycc(const opj_image_t *decoded, const struct jp2_header *header)
{
    if (decoded->numcomps < 3 || header->colour.space == SPACE_CMYK ||
        header->colour.space == SPACE_LAB)
        return false;
    const opj_image_comp_t *components = decoded->comps;
    return header->colour.space == SPACE_SYCC || decoded->color_space == OPJ_CLRSPC_SYCC ||
           (components[1].dx > components[0].dx && components[2].dx > components[0].dx);
}

/* `last` is memory for opacities or black. */
static int jp2_take_image(const opj_image_t *decoded, const struct jp2_header *header,
                          uint32_t width, uint32_t height, const uint8_t background[3],
                          struct dl2_bytes *last, struct dl2_image *image, struct dl2_error *error)
{
    if (decoded->numcomps != header->components)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: %u components where the header has %u",
                             (unsigned)decoded->numcomps, (unsigned)header->components);
    if (decoded->color_space == OPJ_CLRSPC_EYCC)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: e-YCC colour is not supported");
    DL2_TRY(dl2_image_reshape(image, width, height, jp2_channels(header), error));
    for (uint32_t c = 0; c < image->channels; c++)
        DL2_TRY(jp2_take_component(&decoded->comps[c], width, height, image->data + c,
                                   image->channels, error));
    if (jp2_is_ycc(decoded, header))
        jp2_ycc_to_rgb(image->data, (size_t)width * height);
    else if (header->colour.space == SPACE_LAB)
        jp2_lab_to_rgb(&header->colour.lab, decoded->comps[0].prec, image->data,
                       (size_t)width * height);
    if (decoded->numcomps == image->channels)
        return DL2_OK;
    DL2_TRY(dl2_bytes_resize(last, (size_t)width * height, error));
    DL2_TRY(
        jp2_take_component(&decoded->comps[image->channels], width, height, last->data, 1, error));
    jp2_apply_last_component(image, last->data, header->colour.space == SPACE_CMYK, background);
    return DL2_OK;
}

/* Gray and RGB, with opacities or without, whose components all have the image's size. */
static bool jp2_is_plain_deep(const struct jp2_header *header)
{
    return header->plain && !header->palette &&
           header->components == jp2_channels(header) + jp2_has_alpha(header) &&
           header->colour.space != SPACE_LAB && header->colour.space != SPACE_SYCC;
}

static int jp2_take_deep(const opj_image_t *decoded, const struct jp2_header *header,
                         const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    const uint32_t width = header->width, height = header->height, step = header->components;
    if (decoded->numcomps != step || decoded->color_space == OPJ_CLRSPC_EYCC ||
        jp2_is_ycc(decoded, header))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: not read at 16 bits");
    DL2_TRY(dl2_deep_reshape(image, width, height, step, error));
    for (uint32_t c = 0; c < step; c++) {
        const opj_image_comp_t *component = &decoded->comps[c];
        if (!component->data || component->w != width || component->h != height ||
            component->prec < 1 || component->prec > MAX_BITS)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "JPEG 2000: the components' sizes contradict each other");
        uint16_t *out = dl2_deep_row(image, 0) + c;
        for (size_t i = 0; i < (size_t)width * height; i++, out += step)
            *out = dl2_deep_sample((uint64_t)jp2_level(component, component->data[i]),
                                   (uint64_t)jp2_maximum(component));
    }
    dl2_flatten_deep(image, background, false);
    return DL2_OK;
}

/* The area that OpenJPEG decodes: pixels [left, right) x [top, bottom),
 * 2^reduction times coarser. */
struct jp2_area {
    uint32_t left, top, right, bottom, reduction;
    bool whole; /* no area is set, and OpenJPEG reads the file to its end */
};

struct jp2_state {
    struct dl2_codec_state base; /* block: opacities or black */
    struct jp2_header header;
};

/* The part of what was decoded of `area`. */
static int jp2_take_gray(const opj_image_t *decoded, const struct jp2_area *area,
                         const struct dl2_gray_part *part, uint16_t *out, struct dl2_error *error)
{
    const opj_image_comp_t *component = decoded->comps;
    if (decoded->numcomps != 1 || !component->data || component->prec != part->bits ||
        component->w != area->right - area->left || component->h != area->bottom - area->top)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: the components' sizes contradict each other");
    for (uint32_t y = 0; y < part->rows; y++, out += part->columns) {
        const OPJ_INT32 *in = component->data + (size_t)(part->y - area->top + y) * component->w +
                              (part->x - area->left);
        for (uint32_t x = 0; x < part->columns; x++)
            out[x] = (uint16_t)jp2_level(component, in[x]);
    }
    return DL2_OK;
}

/* Where samples go: one of these. */
struct jp2_output {
    struct dl2_image *image;
    struct dl2_deep_image *deep; /* all of them */
    const struct dl2_gray_part *part;
    uint16_t *gray;
};

/* The levels of resolution that every component has. */
static uint32_t jp2_resolutions(opj_codec_t *codec, uint32_t components)
{
    opj_codestream_info_v2_t *info = opj_get_cstr_info(codec);
    uint32_t least = info && info->m_default_tile_info.tccp_info ? UINT32_MAX : 1;
    for (uint32_t c = 0; least > 1 && c < components && c < info->nbcomps; c++) {
        uint32_t levels = info->m_default_tile_info.tccp_info[c].numresolutions;
        least = levels < least ? levels : least;
    }
    if (info)
        opj_destroy_cstr_info(&info);
    return least;
}

/* Tells OpenJPEG what is wanted; lowers the reduction to what the file has. */
static bool jp2_choose_area(opj_codec_t *codec, opj_image_t *image, const struct jp2_header *header,
                            struct jp2_area *area)
{
    const uint32_t levels = jp2_resolutions(codec, header->components);
    if (area->reduction >= levels)
        area->reduction = levels ? levels - 1 : 0;
    if (area->reduction && !opj_set_decoded_resolution_factor(codec, area->reduction))
        return false;
    return opj_set_decode_area(codec, image, (OPJ_INT32)area->left, (OPJ_INT32)area->top,
                               (OPJ_INT32)area->right, (OPJ_INT32)area->bottom);
}

static int jp2_run(struct jp2_state *jp2, struct jp2_area *area, const uint8_t background[3],
                   const struct jp2_output *output, struct dl2_error *error)
{
    struct dl2_error own =
        DL2_ERROR_INIT; /* so that a message of OpenJPEG's counts even if error is NULL */
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_image_t *decoded = NULL;
    opj_codec_t *codec = opj_create_decompress(
        jp2_is_codestream(jp2->base.data, jp2->base.size) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(STREAM_BLOCK, OPJ_TRUE);
    if (!codec || !stream) {
        dl2_error_memory(&own, "OpenJPEG");
        goto done;
    }
    jp2_set_handlers(codec, &own);
    jp2->base.at = 0;
    opj_stream_set_user_data(stream, &jp2->base, NULL);
    opj_stream_set_user_data_length(stream, jp2->base.size);
    opj_stream_set_read_function(stream, jp2_source_read);
    opj_stream_set_seek_function(stream, jp2_source_seek);
    opj_stream_set_skip_function(stream, jp2_source_skip);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, &decoded) ||
        (!area->whole && !jp2_choose_area(codec, decoded, &jp2->header, area)) ||
        !opj_decode(codec, stream, decoded) ||
        (area->whole && !opj_end_decompress(codec, stream))) {
        dl2_error_set(&own, DL2_ERR_FORMAT, "JPEG 2000: OpenJPEG can't decode it");
    } else if (output->gray) {
        jp2_take_gray(decoded, area, output->part, output->gray, &own);
    } else if (output->deep) {
        jp2_take_deep(decoded, &jp2->header, background, output->deep, &own);
    } else {
        const uint32_t up = (1u << area->reduction) - 1;
        jp2_take_image(decoded, &jp2->header,
                       ((area->right + up) >> area->reduction) - (area->left >> area->reduction),
                       ((area->bottom + up) >> area->reduction) - (area->top >> area->reduction),
                       background, &jp2->base.block, output->image, &own);
    }
done:
    opj_image_destroy(decoded);
    opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    return dl2_error_copy(error, &own);
}

static int jp2_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct jp2_state *jp2 = state;
    const struct jp2_header *header = &jp2->header;
    DL2_TRY(jp2_parse_header(jp2->base.data, jp2->base.size, &jp2->header, error));
    info->width = header->width;
    info->height = header->height;
    info->channels = jp2_channels(header);
    info->bits = header->bits;
    info->alpha = jp2_has_alpha(header);
    info->cmyk = header->colour.space == SPACE_CMYK;
    return DL2_OK;
}

/* What decoding converts by itself (sYCC, CIELab) is sRGB afterwards. */
static int jp2_colour(const uint8_t *data, size_t size, struct dl2_colour *colour,
                      struct dl2_error *error)
{
    enum { E_SRGB = 20, ROMM_RGB = 21 };
    static const double romm[8] = {0.7347, 0.2653, 0.1596, 0.8404, 0.0366, 0.0001, 0.3457, 0.3585};
    struct jp2_header header;
    DL2_TRY(jp2_parse_header(data, size, &header, error));
    if (header.colour.profile)
        return dl2_colour_set_icc(colour, header.colour.profile, header.colour.profile_size, error);
    if (header.colour.enumerated == ROMM_RGB) {
        colour->form = DL2_COLOUR_GAMMA;
        colour->gamma = 1.8;
        memcpy(colour->xy, romm, sizeof romm);
    } else if (header.colour.enumerated == E_SRGB) {
        colour->form = DL2_COLOUR_UNKNOWN;
        snprintf(colour->name, sizeof colour->name, "e-sRGB");
    }
    return DL2_OK;
}

/* See the top of the file. */
static bool jp2_may_reduce(const struct jp2_header *header)
{
    return !header->palette && !jp2_has_alpha(header) && header->colour.space != SPACE_CMYK &&
           header->colour.space != SPACE_LAB;
}

/* Samples at the edges of what OpenJPEG decodes may be rounded otherwise than in the whole. */
enum { MARGIN = 2 };

/* The rectangle with its margin, or all of a high-throughput file. */
static struct jp2_area jp2_area_of(const struct jp2_header *header,
                                   const struct dl2_decode_request *request)
{
    struct jp2_area area = {.right = header->width, .bottom = header->height};
    const bool reduce = jp2_may_reduce(header);
    while (reduce && area.reduction < 3 && 2u << area.reduction <= request->reduction)
        area.reduction++;
    if (header->high_throughput)
        return area;
    const uint32_t step = 1u << area.reduction;
    uint32_t width = request->width, height = request->height;
    area.left = request->x;
    area.top = request->y;
    dl2_widen(&area.left, &width, MARGIN * step, step, header->width);
    dl2_widen(&area.top, &height, MARGIN * step, step, header->height);
    area.right = area.left + width;
    area.bottom = area.top + height;
    return area;
}

/* Decodes at least the requested rectangle; *area becomes what was. The library refuses some files
 * in part, such as those with a tile of fewer resolutions. It may decode them as a whole. */
static int jp2_run_request(struct jp2_state *jp2, const struct dl2_decode_request *request,
                           const struct jp2_output *output, struct jp2_area *area,
                           struct dl2_error *error)
{
    const struct jp2_header *header = &jp2->header;
    *area = jp2_area_of(header, request);
    area->whole = !header->plain || (!area->reduction && request->width == header->width &&
                                     request->height == header->height);
    if (!area->whole && jp2_run(jp2, area, request->background, output, NULL) == DL2_OK)
        return DL2_OK;
    *area = (struct jp2_area){.right = header->width, .bottom = header->height, .whole = true};
    return jp2_run(jp2, area, request->background, output, error);
}

static int jp2_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    const struct jp2_output output = {.image = image};
    struct jp2_area area;
    DL2_TRY(jp2_run_request(state, request, &output, &area, error));
    *raster = dl2_raster_of(image, area.left, area.top);
    const uint32_t step = 1u << area.reduction;
    raster->planes[0].step_x = raster->planes[0].step_y = step;
    raster->planes[0].shift_x = raster->planes[0].shift_y = (1 - (float)step) / 2;
    return DL2_OK;
}

static int jp2_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    struct jp2_state *jp2 = state;
    struct jp2_area area = {
        .right = jp2->header.width, .bottom = jp2->header.height, .whole = true};
    if (!jp2_is_plain_deep(&jp2->header))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: not read at 16 bits");
    const struct jp2_output output = {.deep = image};
    return jp2_run(jp2, &area, background, &output, error);
}

static int jp2_read_gray(void *state, const struct dl2_gray_part *part, uint16_t *out,
                         struct dl2_error *error)
{
    struct jp2_state *jp2 = state;
    const struct dl2_decode_request request = {
        .x = part->x, .y = part->y, .width = part->columns, .height = part->rows, .reduction = 1};
    const struct jp2_output output = {.part = part, .gray = out};
    struct jp2_area area;
    if (!jp2_is_plain_deep(&jp2->header) || jp2->header.is_signed)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: not of one unsigned component at full resolution");
    return jp2_run_request(jp2, &request, &output, &area, error);
}

/* OpenJPEG goes back to fill in lengths, so this is a file in memory, with a position. */
struct jp2_sink {
    struct dl2_bytes *out;
    size_t at;
    struct dl2_error *error;
};

/* Makes the file at least `end` bytes long. */
static bool jp2_sink_reach(struct jp2_sink *sink, size_t end)
{
    static const uint8_t zeros[256];
    while (sink->out->size < end) {
        size_t count = end - sink->out->size;
        if (dl2_bytes_append(sink->out, zeros, count < sizeof zeros ? count : sizeof zeros,
                             sink->error) < 0)
            return false;
    }
    return true;
}

static OPJ_SIZE_T jp2_sink_write(void *data, OPJ_SIZE_T count, void *user)
{
    struct jp2_sink *sink = user;
    if (!jp2_sink_reach(sink, sink->at + count))
        return (OPJ_SIZE_T)-1;
    memcpy(sink->out->data + sink->at, data, count);
    sink->at += count;
    return count;
}

static OPJ_BOOL jp2_sink_seek(OPJ_OFF_T position, void *user)
{
    struct jp2_sink *sink = user;
    if (position < 0 || !jp2_sink_reach(sink, (size_t)position))
        return OPJ_FALSE;
    sink->at = (size_t)position;
    return OPJ_TRUE;
}

static OPJ_OFF_T jp2_sink_skip(OPJ_OFF_T count, void *user)
{
    struct jp2_sink *sink = user;
    return jp2_sink_seek((OPJ_OFF_T)sink->at + count, user) ? count : -1;
}

static double jp2_psnr(const struct dl2_encode_options *options)
{
    return options->gray ? 30 + 2 * options->quality / 5.0 : 22 + options->quality / 5.0;
}

/* Planes without samples; NULL: no memory. */
static opj_image_t *jp2_new_planes(uint32_t width, uint32_t height, uint32_t channels,
                                   unsigned bits)
{
    opj_image_cmptparm_t planes[3];
    memset(planes, 0, sizeof planes);
    for (uint32_t c = 0; c < channels; c++) {
        planes[c].dx = planes[c].dy = 1;
        planes[c].w = width;
        planes[c].h = height;
        planes[c].prec = bits;
    }
    opj_image_t *made =
        opj_image_create(channels, planes, channels == 1 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB);
    if (made) {
        made->x1 = width;
        made->y1 = height;
    }
    return made;
}

static opj_image_t *jp2_make_planes(const struct dl2_image *image)
{
    opj_image_t *made = jp2_new_planes(image->width, image->height, image->channels, 8);
    if (!made)
        return NULL;
    size_t pixels = (size_t)image->width * image->height;
    for (uint32_t c = 0; c < image->channels; c++) {
        const uint8_t *in = image->data + c;
        for (size_t i = 0; i < pixels; i++, in += image->channels)
            made->comps[c].data[i] = *in;
    }
    return made;
}

enum { RATE };
static const struct dl2_setting jp2_settings[] = {
    [RATE] =
        {.name = "rate",
         .min = 1,
         .max = 1000,
         .usual = 0,
         .replaces_quality = true,
         .help =
             "compression ratio to samples of the bits that they have, the same for all images"},
    {.name = NULL}};

/* 0: by quality. */
static double jp2_rate(const struct dl2_encode_options *options)
{
    return dl2_setting_value(jp2_settings, options, RATE);
}

static void jp2_set_parameters(const opj_image_t *image, const struct dl2_encode_options *options,
                               opj_cparameters_t *parameters)
{
    const uint32_t side = dl2_smaller(image->x1, image->y1);
    opj_set_default_encoder_parameters(parameters);
    parameters->tcp_numlayers = 1;
    parameters->cp_fixed_quality = !(jp2_rate(options) > 0);
    parameters->cp_disto_alloc = jp2_rate(options) > 0;
    if (jp2_rate(options) > 0)
        parameters->tcp_rates[0] = (float)jp2_rate(options);
    else
        parameters->tcp_distoratio[0] = (float)jp2_psnr(options);
    parameters->irreversible = 1;
    parameters->tcp_mct = image->numcomps == 3;
    parameters->numresolution = 1;
    while (parameters->numresolution < MAX_RESOLUTIONS && side >> parameters->numresolution)
        parameters->numresolution++;
}

/* Puts a profile where the file that was written names a colour space by its number: of the boxes
 * "jp2h" and in it "colr", whose method becomes 2. */
static int jp2_put_profile(struct dl2_bytes *out, const struct dl2_bytes *profile,
                           struct dl2_error *error)
{
    enum { BOX = 8, METHOD = BOX, NUMBER = BOX + 3, NUMBER_BYTES = 4 };
    size_t at = 0, outer = 0, inner = 0;
    while (!inner && out->size - at > BOX) {
        const uint8_t *const box = out->data + at;
        const uint32_t size = dl2_read_u32(box);
        const bool header = !memcmp(box + 4, "jp2h", 4);
        if (size < BOX || size > out->size - at)
            break;
        if (header)
            outer = at;
        else if (!memcmp(box + 4, "colr", 4))
            inner = at;
        at += header ? BOX : size;
    }
    if (!outer || !inner || out->data[inner + METHOD] != 1)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: OpenJPEG has left no place for a profile");
    const uint32_t more = (uint32_t)profile->size - NUMBER_BYTES;
    dl2_write_u32(out->data + outer, dl2_read_u32(out->data + outer) + more);
    dl2_write_u32(out->data + inner, dl2_read_u32(out->data + inner) + more);
    out->data[inner + METHOD] = 2;
    memcpy(out->data + inner + NUMBER, profile->data, NUMBER_BYTES);
    return dl2_bytes_insert(out, inner + NUMBER + NUMBER_BYTES, profile->data + NUMBER_BYTES, more,
                            error);
}

/* How boxes "uuid" begin that hold EXIF and XMP (ISO 16684-1, 7.2; exiftool's and Exiv2's EXIF). */
static const uint8_t jp2_exif[] = "JpgTiffExif->JP2";
static const uint8_t jp2_xmp[] = {0xbe, 0x7a, 0xcf, 0xcb, 0x97, 0xa9, 0x42, 0xe8,
                                  0x9c, 0x71, 0x99, 0x94, 0x91, 0xe3, 0xaf, 0xac};
enum { UUID = sizeof jp2_xmp };

static int jp2_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                        struct dl2_error *error)
{
    const uint8_t *type, *content;
    size_t at = 0, length;
    while (!jp2_is_codestream(data, size) &&
           jp2_next_box(data, size, &at, &type, &content, &length)) {
        const bool uuid = !memcmp(type, "uuid", 4) && length >= UUID;
        if (uuid && !memcmp(content, jp2_exif, UUID))
            DL2_TRY(dl2_metadata_set_exif(metadata, content + UUID, length - UUID, error));
        else if (uuid && !memcmp(content, jp2_xmp, UUID))
            DL2_TRY(dl2_metadata_set_xmp(metadata, content + UUID, length - UUID, error));
        else if (uuid || !memcmp(type, "xml ", 4))
            metadata->other = true;
    }
    return DL2_OK;
}

static int jp2_put_uuid(struct dl2_bytes *out, const uint8_t *uuid, const struct dl2_bytes *content,
                        struct dl2_error *error)
{
    uint8_t head[8 + UUID] = "\0\0\0\0uuid";
    if (!content->size)
        return DL2_OK;
    dl2_write_u32(head, (uint32_t)(sizeof head + content->size));
    memcpy(head + 8, uuid, UUID);
    DL2_TRY(dl2_bytes_append(out, head, sizeof head, error));
    return dl2_bytes_append(out, content->data, content->size, error);
}

/* Takes over the planes; NULL: there was no memory for them. */
static int jp2_encode_planes(opj_image_t *planes, const struct dl2_encode_options *options,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct jp2_sink sink = {out, 0, &own};
    opj_cparameters_t parameters;
    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(STREAM_BLOCK, OPJ_FALSE);
    if (!planes || !codec || !stream) {
        dl2_error_memory(&own, "a JPEG 2000 image");
        goto done;
    }
    jp2_set_parameters(planes, options, &parameters);
    jp2_set_handlers(codec, &own);
    opj_stream_set_user_data(stream, &sink, NULL);
    opj_stream_set_write_function(stream, jp2_sink_write);
    opj_stream_set_seek_function(stream, jp2_sink_seek);
    opj_stream_set_skip_function(stream, jp2_sink_skip);
    if (!opj_setup_encoder(codec, &parameters, planes) ||
        !opj_start_compress(codec, planes, stream) || !opj_encode(codec, stream) ||
        !opj_end_compress(codec, stream))
        dl2_error_set(&own, DL2_ERR_UNSUPPORTED, "JPEG 2000: OpenJPEG can't encode this");
done:
    opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    opj_image_destroy(planes);
    if (own.status == DL2_OK && options->colour && options->colour->form == DL2_COLOUR_ICC)
        jp2_put_profile(out, &options->colour->icc, &own);
    if (own.status == DL2_OK && options->metadata &&
        jp2_put_uuid(out, jp2_exif, &options->metadata->exif, &own) == DL2_OK)
        jp2_put_uuid(out, jp2_xmp, &options->metadata->xmp, &own);
    return dl2_error_copy(error, &own);
}

static int jp2_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    return jp2_encode_planes(jp2_make_planes(image), options, out, error);
}

static int jp2_encode_gray(const struct dl2_gray *image, const struct dl2_encode_options *options,
                           struct dl2_bytes *out, struct dl2_error *error)
{
    opj_image_t *planes = jp2_new_planes(image->width, image->height, 1, image->bits);
    for (size_t i = 0; planes && i < (size_t)image->width * image->height; i++)
        planes->comps[0].data[i] = image->samples[i];
    return jp2_encode_planes(planes, options, out, error);
}

static json_t *jp2_parameters(const struct dl2_encode_options *options)
{
    const bool by_rate = jp2_rate(options) > 0;
    return json_pack("{s:f, s:b, s:s, s:i, s:s, s:s}", by_rate ? "tcp_rates" : "tcp_distoratio",
                     by_rate ? jp2_rate(options) : jp2_psnr(options), "irreversible", 1, "wavelet",
                     "9/7", "tcp_numlayers", 1, "tcp_mct", "1 for colour, 0 for gray",
                     "numresolution", "6, or as many as the shorter side has bits");
}

static void jp2_version(char out[DL2_CODEC_VERSION_SIZE])
{
    snprintf(out, DL2_CODEC_VERSION_SIZE, "OpenJPEG %s", opj_version());
}

const struct dl2_codec dl2_codec_jp2 = {
    .name = "jp2",
    .metadata = jp2_metadata,
    .metadata_bytes = INT32_MAX,
    .extension = "jp2",
    .extensions = {"jp2", "j2k", "jpf", "jpx", "j2c", "jpc"},
    .lossy = true,
    .max_side = 65535,
    .colours = DL2_COLOUR_MATRIX,
    .always_tagged = true,
    .reduces = true,
    .max_effort = -1,
    .settings = jp2_settings,
    .pixel_bytes = 40,
    .find_version = jp2_version,
    .signatures = {{4, CODESTREAM}, {12, "\0\0\0\14jP  \r\n\x87\n"}},
    .colour = jp2_colour,
    .coded_bytes = jp2_coded_bytes,
    .state_size = sizeof(struct jp2_state),
    .open = jp2_open,
    .read = jp2_read,
    .read_deep = jp2_read_deep,
    .read_gray = jp2_read_gray,
    .encode = jp2_encode,
    .encode_gray = jp2_encode_gray,
    .encoder_parameters = jp2_parameters,
};
