/*
 * The registry of image codecs: one table, one file a codec, each library's header seen only by
 * its own file. A codec whose library was absent at configure time is absent here.
 *
 * Threads: every function may run on many threads at once; nothing is shared but constant tables.
 */
#ifndef DL2_CODEC_CODEC_H
#define DL2_CODEC_CODEC_H

#include "codec/image_file.h"
#include "common/error.h"
#include "common/memory.h"
#include "pixels/image.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* What a header says, before any pixel is decoded. */
struct dl2_image_info {
    uint32_t width, height; /* as coded, before orientation */
    uint32_t channels; /* 1 gray or 3 colour, what decoding gives; palettes and CMYK count as 3 */
    uint32_t bits;     /* per sample as coded; decoding always gives 8 */
    bool alpha;
    int orientation; /* EXIF, 1 to 8; irot/imir of AVIF are expressed this way */
};

/* Of the upright image. */
static inline uint32_t dl2_upright_width(const struct dl2_image_info *info)
{
    return info->orientation >= 5 ? info->height : info->width;
}

static inline uint32_t dl2_upright_height(const struct dl2_image_info *info)
{
    return info->orientation >= 5 ? info->width : info->height;
}

struct dl2_decode_options {
    /* DL2_ERR_LIMIT above, before memory is taken; 0: DL2_DEFAULT_MAX_PIXELS */
    uint64_t max_pixels;
    uint32_t channels;     /* 0: as coded; 1 or 3: convert (BT.601 luma, or gray three times) */
    uint8_t background[3]; /* R, G, B under alpha */
    bool keep_orientation; /* true: pixels as coded. false: turned upright */
};

/* Default: white background (what viewers show), upright. */
#define DL2_DECODE_DEFAULTS                                                                        \
    {                                                                                              \
        0, 0, {255, 255, 255}, false                                                               \
    }

struct dl2_encode_options {
    int quality; /* 1 to 100, higher is better; ignored by lossless codecs */
    /* Chroma of JPEG and AVIF: "420", "422", "444"; NULL: the default, 420. Others ignore it. */
    const char *subsampling;
    int effort; /* 0 to max_effort, -1: the codec's default. WebP: method; AVIF: speed */
    /* JPEG: "tiles" makes the file crop-addressable (codec/jpeg/jpeg_tiles.h), "none" doesn't;
     * NULL: tiles, but for progressive files. Others ignore it. */
    const char *restart;
};

#define DL2_ENCODE_DEFAULTS                                                                        \
    {                                                                                              \
        75, NULL, -1, NULL                                                                         \
    }

struct dl2_decode_request;
struct dl2_raster;

/*
 * What a codec has that can decode part of an image; codec/decoder.h is how it is used. The state
 * is one thread's and keeps its memory from image to image. Coordinates here are pixels as coded:
 * the decoder deals with orientation.
 */
struct dl2_region_codec {
    size_t state_size;
    /* Makes zeroed memory a state; NULL: it is one. After an error there is nothing to destroy. */
    int (*init)(void *state, struct dl2_error *error);
    /* Frees what the state holds, not its own memory. */
    void (*destroy)(void *state);
    /* Reads the header; `info` comes with orientation 1. The bytes stay where they are until
     * decode(). After an error the state is as good as new. */
    int (*open)(void *state, const uint8_t *data, size_t size, struct dl2_image_info *info,
                struct dl2_error *error);
    /* What open() opened, once: the checked rectangle, or more, in memory of the state. Colour
     * planes only where the request welcomes them; gray alone where it has one channel. */
    int (*decode)(void *state, const struct dl2_decode_request *request, struct dl2_raster *raster,
                  struct dl2_error *error);
    /* Bytes that the state holds from image to image. */
    size_t (*memory)(const void *state);
};

struct dl2_codec {
    const char *name;      /* "jpeg": on command lines and in variant names */
    const char *extension; /* "jpg": of the files that are written */
    /* NULL-ended: what files of this kind are usually called, lower case */
    const char *const *extensions;
    bool lossy;
    uint32_t max_side;       /* of what it can encode, pixels */
    bool has_subsampling;    /* is there a choice? */
    bool has_restart;        /* the same of restart intervals */
    int max_effort;          /* -1: there is no choice */
    const char *effort_help; /* what effort means, for --help; NULL where there is no choice */
    unsigned pixel_bytes;    /* roughly what encoding or decoding takes, with the image itself */

    /* Library and version for --version and reports: "libjpeg-turbo 2.1.5". */
    const char *(*version)(void);
    /* Does `data` start like a file of this codec? Reads only the first 64 bytes or fewer. */
    bool (*sniff)(const uint8_t *data, size_t size);
    int (*read_info)(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error);
    /* The whole first image as coded: no orientation, channels as dl2_image_info says, alpha
     * flattened. */
    int (*decode)(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_error *error);
    /* Decoding of a part; NULL: only as a whole. */
    const struct dl2_region_codec *region;
    /* Replaces out's contents. The same input gives the same bytes, always. NULL: decode only. */
    int (*encode)(const struct dl2_image *image, const struct dl2_encode_options *options,
                  struct dl2_bytes *out, struct dl2_error *error);
    /* The library's own knobs that `options` comes to, for the record. A new object. */
    json_t *(*encoder_parameters)(const struct dl2_encode_options *options);
};

/* The table: codecs in a fixed order; dl2_codec_at() is NULL at the end. */
const struct dl2_codec *dl2_codec_at(size_t index);
/* By name; NULL if there is none. */
const struct dl2_codec *dl2_codec_find(const char *name);
/* By the first bytes, whatever the file's name says; NULL if none knows it. */
const struct dl2_codec *dl2_codec_sniff(const uint8_t *data, size_t size);
/* Sniffs, then reads the header. DL2_ERR_UNSUPPORTED when no codec knows the bytes. */
int dl2_image_read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                        struct dl2_error *error);
/*
 * Sniffs, checks the size against the limit, decodes, turns upright, converts channels. `scratch`
 * is reused memory for turning and may be any image struct. A truncated or corrupt file is
 * DL2_ERR_FORMAT; `image` holds nothing of use then.
 */
int dl2_image_decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                     struct dl2_image *image, struct dl2_image *scratch, struct dl2_error *error);
/* Checks quality, size and channels, then calls the codec. */
int dl2_image_encode(const struct dl2_codec *codec, const struct dl2_image *image,
                     const struct dl2_encode_options *options, struct dl2_bytes *out,
                     struct dl2_error *error);

/* Every codec's name and version as a JSON object, and as lines for --version. */
json_t *dl2_codec_versions(void);
void dl2_codec_print_versions(FILE *out);

#endif
