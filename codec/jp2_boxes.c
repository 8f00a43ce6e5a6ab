/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jp2_boxes.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_COMPONENTS = 4,
    MAX_TILES = 16384, /* 256-pixel tiles would cover 2^30 pixels */
    LAB_PARAMETERS = 7,
};

bool dl2_jp2_is_codestream(const uint8_t *data, size_t size)
{
    return size >= 4 && !memcmp(data, DL2_JP2_CODESTREAM, 4);
}

static const struct {
    uint32_t number;   /* EnumCS; 0 where a profile alone has it */
    char signature[5]; /* of a profile's data; empty where a number alone has it */
    enum dl2_jp2_space space;
    const char *name;
} spaces[] = {
    {16, "RGB ", DL2_JP2_RGB, "sRGB"},
    {17, "GRAY", DL2_JP2_RGB, "gray"},
    {18, "", DL2_JP2_SYCC, "sYCC"},
    {12, "CMYK", DL2_JP2_CMYK, "CMYK"},
    {14, "", DL2_JP2_LAB, "CIELab"},
    {20, "", DL2_JP2_RGB, "e-sRGB"},
    {21, "", DL2_JP2_RGB, "ROMM RGB"},
    {1, "", DL2_JP2_FOREIGN, "YCbCr of BT.709"},
    {3, "", DL2_JP2_FOREIGN, "YCbCr of BT.601"},
    {4, "", DL2_JP2_FOREIGN, "YCbCr of BT.601 for video"},
    {9, "", DL2_JP2_FOREIGN, "PhotoYCC"},
    {11, "CMY ", DL2_JP2_FOREIGN, "CMY"},
    {13, "", DL2_JP2_FOREIGN, "YCCK"},
    {15, "", DL2_JP2_FOREIGN, "bi-level with black as 1"},
    {19, "", DL2_JP2_FOREIGN, "CIEJab"},
    {22, "", DL2_JP2_FOREIGN, "YPbPr of 60 Hz"},
    {23, "", DL2_JP2_FOREIGN, "YPbPr of 50 Hz"},
    {24, "", DL2_JP2_FOREIGN, "e-YCC"},
    {0, "Lab ", DL2_JP2_FOREIGN, "a profile of CIELab"},
    {0, "XYZ ", DL2_JP2_FOREIGN, "a profile of CIEXYZ"},
    {0, "YCbr", DL2_JP2_FOREIGN, "a profile of YCbCr"},
};

/* The box at *at, which moves behind it; false at the end or where it is damaged. */
static bool next_box(const uint8_t *data, size_t size, size_t *at, const uint8_t **type,
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

static void set_foreign(struct dl2_jp2_color *color, const char *name)
{
    color->space = DL2_JP2_FOREIGN;
    snprintf(color->foreign, sizeof color->foreign, "%s", name);
}

/* Ranges, offsets and illuminant of CIELab; none: those of the standard. */
static void read_lab(const uint8_t *parameters, size_t length, struct dl2_jp2_color *color)
{
    enum { D50 = 0x00443530, D65 = 0x00443635 };
    struct dl2_jp2_lab *lab = &color->lab;
    *lab = (struct dl2_jp2_lab){.range = {100, 170, 200}};
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
        set_foreign(color, "CIELab under another light than D50 and D65");
}

/* By a color specification box; false for one of a method that says nothing here. */
static bool read_color(const uint8_t *content, size_t length, struct dl2_jp2_color *color)
{
    enum { ENUMERATED = 1, RESTRICTED = 2, ANY = 3, START = 3, SIGNATURE = START + 16 };
    const size_t count = sizeof spaces / sizeof *spaces;
    size_t row = 0;
    char name[48];
    if (length >= START + 4 && content[0] == ENUMERATED) {
        const uint32_t number = dl2_read_u32(content + START);
        while (row < count && !(spaces[row].number == number && number))
            row++;
        color->enumerated = number;
        snprintf(name, sizeof name, "number %u", (unsigned)number);
        if (row < count && spaces[row].space == DL2_JP2_LAB)
            read_lab(content + START + 4, length - START - 4, color);
    } else if (length >= SIGNATURE + 4 && (content[0] == RESTRICTED || content[0] == ANY)) {
        const char *signature = (const char *)content + SIGNATURE;
        for (int i = 0; i < 4; i++)
            if (signature[i] < ' ' || signature[i] > '~')
                return false; /* no profile */
        while (row < count && strncmp(spaces[row].signature, signature, 4) != 0)
            row++;
        snprintf(name, sizeof name, "a profile of %.4s", signature);
        color->profile = content + START;
        color->profile_size = length - START;
    } else {
        return false;
    }
    if (row == count)
        set_foreign(color, name);
    else if (spaces[row].space == DL2_JP2_FOREIGN)
        set_foreign(color, spaces[row].name);
    else if (color->space != DL2_JP2_FOREIGN)
        color->space = spaces[row].space;
    return true;
}

/* Is one of the channels an opacity, by their definitions: number, kind, color? */
static bool defines_alpha(const uint8_t *content, size_t length)
{
    enum { OPACITY = 1, PREMULTIPLIED = 2 };
    for (size_t at = 2; at + 6 <= length; at += 6) {
        const uint32_t kind = dl2_read_u16(content + at + 2);
        if (kind == OPACITY || kind == PREMULTIPLIED)
            return true;
    }
    return false;
}

/*
 * The first color specification of methods that every reader knows counts, as it does with
 * OpenJPEG; where there is none, the first of any profile.
 */
static void read_image_header(const uint8_t *data, size_t size, struct dl2_jp2_header *header)
{
    const uint8_t *type, *content;
    size_t at = 0, length;
    bool known = false, any = false;
    while (next_box(data, size, &at, &type, &content, &length)) {
        if (!memcmp(type, "colr", 4) && length && !known) {
            const bool other = content[0] != 1 && content[0] != 2;
            if (other && any)
                continue;
            struct dl2_jp2_color tried = {0};
            if (!read_color(content, length, &tried))
                continue;
            header->color = tried;
            known = !other;
            any = true;
        } else if (!memcmp(type, "pclr", 4) && length >= 3) {
            header->components = content[2];
            header->palette = true;
        } else if (!memcmp(type, "cdef", 4)) {
            header->no_alpha = !defines_alpha(content, length);
        }
    }
}

/*
 * Do the codestream's capabilities, or the code blocks' style, say that it is HTJ2K? In the main
 * header, which ends where the first tile begins.
 */
static bool is_high_throughput(const uint8_t *data, size_t size)
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

/* Is the color one that can be converted, and are there components enough for it? */
static int check_color(const struct dl2_jp2_header *header, struct dl2_error *error)
{
    if (header->color.space == DL2_JP2_FOREIGN)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: color space %s is not supported", header->color.foreign);
    if (header->color.space == DL2_JP2_LAB && (header->components != 3 || header->is_signed))
        return dl2_error_set(
            error, DL2_ERR_UNSUPPORTED, "JPEG 2000: CIELab of %u components, %s, is not supported",
            (unsigned)header->components, header->is_signed ? "signed" : "unsigned");
    if (header->color.space == DL2_JP2_CMYK && header->components != 4)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: CMYK of %u components is not supported",
                             (unsigned)header->components);
    return DL2_OK;
}

static int read_siz(const uint8_t *data, size_t size, struct dl2_jp2_header *header,
                    struct dl2_error *error)
{
    if (!dl2_jp2_is_codestream(data, size) || size < 45)
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
    header->high_throughput = is_high_throughput(data, size);
    header->plain = !left && !top && size >= 42 + 3 * (size_t)components;
    for (uint32_t c = 0; header->plain && c < components; c++)
        header->plain = data[43 + 3 * c] == 1 && data[44 + 3 * c] == 1;
    if (!header->components)
        header->components = components;
    return check_color(header, error);
}

int dl2_jp2_read_header(const uint8_t *data, size_t size, struct dl2_jp2_header *header,
                        struct dl2_error *error)
{
    *header = (struct dl2_jp2_header){0};
    if (dl2_jp2_is_codestream(data, size))
        return read_siz(data, size, header, error);
    const uint8_t *type, *content;
    size_t at = 0, length;
    while (next_box(data, size, &at, &type, &content, &length)) {
        if (!memcmp(type, "jp2h", 4))
            read_image_header(content, length, header);
        else if (!memcmp(type, "jp2c", 4))
            return read_siz(content, length, header, error);
    }
    return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG 2000: the file is cut short or has no image");
}

size_t dl2_jp2_coded_bytes(const uint8_t *data, size_t size)
{
    enum { START_OF_TILE = 0xff90 };
    const uint8_t *type, *content;
    size_t at = 0, length;
    while (!dl2_jp2_is_codestream(data, size)) {
        if (!next_box(data, size, &at, &type, &content, &length))
            return 0;
        if (!memcmp(type, "jp2c", 4)) {
            if (!dl2_jp2_is_codestream(content, length))
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

bool dl2_jp2_has_alpha(const struct dl2_jp2_header *header)
{
    return dl2_jp2_extra(header) && !header->no_alpha;
}

uint32_t dl2_jp2_extra(const struct dl2_jp2_header *header)
{
    return header->color.space == DL2_JP2_CMYK ? 0 : header->components - dl2_jp2_channels(header);
}

uint32_t dl2_jp2_channels(const struct dl2_jp2_header *header)
{
    return header->components >= 3 ? 3 : 1;
}

/* Puts the profile into the box "colr" in "jp2h", whose method becomes 2. */
int dl2_jp2_put_profile(struct dl2_bytes *out, const struct dl2_bytes *profile,
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
static const uint8_t exif_uuid[] = "JpgTiffExif->JP2";
static const uint8_t xmp_uuid[] = {0xbe, 0x7a, 0xcf, 0xcb, 0x97, 0xa9, 0x42, 0xe8,
                                   0x9c, 0x71, 0x99, 0x94, 0x91, 0xe3, 0xaf, 0xac};
enum { UUID = sizeof xmp_uuid };

int dl2_jp2_read_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                          struct dl2_error *error)
{
    const uint8_t *type, *content;
    size_t at = 0, length;
    while (!dl2_jp2_is_codestream(data, size) &&
           next_box(data, size, &at, &type, &content, &length)) {
        const bool uuid = !memcmp(type, "uuid", 4) && length >= UUID;
        if (uuid && !memcmp(content, exif_uuid, UUID))
            DL2_TRY(dl2_metadata_set_exif(metadata, content + UUID, length - UUID, error));
        else if (uuid && !memcmp(content, xmp_uuid, UUID))
            DL2_TRY(dl2_metadata_set_xmp(metadata, content + UUID, length - UUID, error));
        else if (uuid || !memcmp(type, "xml ", 4))
            metadata->other = true;
    }
    return DL2_OK;
}

static int put_uuid(struct dl2_bytes *out, const uint8_t *uuid, const struct dl2_bytes *content,
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

int dl2_jp2_put_metadata(struct dl2_bytes *out, const struct dl2_metadata *metadata,
                         struct dl2_error *error)
{
    DL2_TRY(put_uuid(out, exif_uuid, &metadata->exif, error));
    return put_uuid(out, xmp_uuid, &metadata->xmp, error);
}
