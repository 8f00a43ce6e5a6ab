/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boxes of JP2 files (ISO/IEC 15444-1, annex I; 15444-2 for some color spaces) and the main
 * header of codestreams, which are read and written here without OpenJPEG: it reserves memory for
 * as many tiles and components as a header claims, and knows neither profiles nor metadata when it
 * writes.
 *
 * Threads: any number.
 */
#ifndef DL2_CODEC_JP2_BOXES_H
#define DL2_CODEC_JP2_BOXES_H

#include "codec/codecs.h"

#define DL2_JP2_CODESTREAM "\xff\x4f\xff\x51" /* SOC, SIZ */

/* Each has its row in `spaces`. */
enum dl2_jp2_space {
    DL2_JP2_UNNAMED, /* what the number of components suggests */
    DL2_JP2_RGB,     /* or gray */
    DL2_JP2_SYCC,
    DL2_JP2_CMYK,
    DL2_JP2_LAB,
    DL2_JP2_FOREIGN, /* can't be converted */
};

/* How samples, in parts of their maximum, become L*, a* and b*: times `range`, and `zero` is 0. */
struct dl2_jp2_lab {
    uint32_t range[3], zero[3];
    bool has_zero; /* else `zero` is that of the bits of a sample */
    bool d65;      /* the illuminant; false: D50 */
};

/* What a color specification box says. */
struct dl2_jp2_color {
    enum dl2_jp2_space space;
    char foreign[48]; /* the name, or number, of a color space that can't be converted */
    struct dl2_jp2_lab lab;
    uint32_t enumerated; /* EnumCS, or 0 */
    const uint8_t *profile;
    size_t profile_size;
};

/* The facts in the boxes and the main header. */
struct dl2_jp2_header {
    uint32_t width, height;
    uint32_t components; /* after the palette, where there is one */
    uint32_t bits;
    struct dl2_jp2_color color;
    bool palette;
    bool no_alpha; /* the channel definitions give the last component another meaning */
    bool high_throughput;
    bool is_signed;
    bool plain; /* at the grid's origin, all components at full resolution */
};

bool dl2_jp2_is_codestream(const uint8_t *data, size_t size);

/* Reads a JP2 file or a bare codestream. DL2_ERR_FORMAT for a damaged one, DL2_ERR_UNSUPPORTED and
 * DL2_ERR_LIMIT for what is not to be decoded. header->color.profile points into data. */
int dl2_jp2_read_header(const uint8_t *data, size_t size, struct dl2_jp2_header *header,
                        struct dl2_error *error);
/* A component behind the colors, which are gray or RGB: an opacity, unless the file says that it
 * is none. */
uint32_t dl2_jp2_extra(const struct dl2_jp2_header *header);
bool dl2_jp2_has_alpha(const struct dl2_jp2_header *header);
/* Colors: 1 or 3. */
uint32_t dl2_jp2_channels(const struct dl2_jp2_header *header);

/* The bytes of tile-parts: the codestream behind its main header. */
size_t dl2_jp2_coded_bytes(const uint8_t *data, size_t size);

int dl2_jp2_read_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                          struct dl2_error *error);

/* Puts a profile where the file in *out names a color space by its number. */
int dl2_jp2_put_profile(struct dl2_bytes *out, const struct dl2_bytes *profile,
                        struct dl2_error *error);
/* Puts EXIF and XMP, as far as there are any, behind the file in *out. */
int dl2_jp2_put_metadata(struct dl2_bytes *out, const struct dl2_metadata *metadata,
                         struct dl2_error *error);

#endif
