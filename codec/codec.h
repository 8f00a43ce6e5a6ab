/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of image codecs: one table, one file for each codec. Only that file includes the
 * codec's library. A codec whose library was absent at configure time is absent here.
 *
 * To decode, use codec/decoder.h, or dl2_image_decode() below for one whole image.
 *
 * Threads: every function may run on many threads at once; only constant tables are shared.
 */
#ifndef DL2_CODEC_CODEC_H
#define DL2_CODEC_CODEC_H

#include "codec/color.h"
#include "codec/image_file.h"
#include "codec/metadata.h"
#include "common/error.h"
#include "common/gray.h"
#include "common/memory.h"
#include "common/slices.h"
#include "pixels/deep_image.h"
#include "pixels/image.h"
#include "pixels/raster.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* The facts in a header, known before any pixel is decoded. */
struct dl2_image_info {
    uint32_t width, height; /* as coded, before orientation */
    uint32_t channels; /* 1 gray or 3 color, what decoding gives; palettes and CMYK count as 3 */
    uint32_t bits;     /* per sample as coded; decoding gives 8, dl2_image_decode_deep() 16 */
    uint32_t left_out; /* further bands, such as infrared, that decoding does not give */
    bool alpha;
    bool cmyk;       /* inks; decoding turns them into RGB, without their profile */
    bool palette;    /* of PNG: its numbers can be asked for */
    bool has_more;   /* frames or pages follow, which are not read */
    int orientation; /* EXIF, 1 to 8; irot and imir of AVIF are expressed this way */
};

/* The size of the upright image. */
static inline uint32_t dl2_upright_width(const struct dl2_image_info *info)
{
    return dl2_orientation_transposes(info->orientation) ? info->height : info->width;
}

static inline uint32_t dl2_upright_height(const struct dl2_image_info *info)
{
    return dl2_orientation_transposes(info->orientation) ? info->width : info->height;
}

/* How a file was encoded, as far as its headers tell. */
struct dl2_coding {
    int quality;             /* the nearest of the codec's qualities, 1 to 100; 0: not known */
    bool exact;              /* it is of just that quality */
    const char *subsampling; /* "444", "422", "420", "440", "411", "gray" or "other" */
    const char *color;       /* "gray", "YCbCr", "RGB" or "inks" */
    bool progressive, arithmetic;
    size_t tail; /* bytes behind the image's end */
    bool common; /* every program reads it, and alike: gray or YCbCr, 8 bits, Huffman codes */
};

/* Why jxl_lossless stores a JPEG's pixels and not its file. */
enum dl2_pixels_only {
    DL2_PIXELS_NOT_ONLY,
    DL2_PIXELS_OF_CMYK,
    DL2_PIXELS_OF_ARITHMETIC,
    DL2_PIXELS_OF_RGB,
    DL2_PIXELS_OF_TAIL,
    DL2_PIXELS_OF_OTHERS,
    DL2_PIXELS_ONLY_COUNT
};
extern const char *const dl2_pixels_only_words[DL2_PIXELS_ONLY_COUNT]; /* of the first: NULL */

struct dl2_decoder; /* codec/decoder.h */

struct dl2_decode_options {
    /* DL2_ERR_LIMIT above, before memory is taken; 0: DL2_DEFAULT_MAX_PIXELS */
    uint64_t max_pixels;
    uint32_t channels;     /* 0: as coded; 1 or 3: convert (BT.601 luma, or gray three times) */
    uint8_t background[3]; /* R, G, B under alpha */
    bool keep_orientation; /* true: pixels as coded. false: turned upright */
    bool drop_bands;       /* decode a file with info.left_out; else DL2_ERR_UNSUPPORTED */
    const struct dl2_external_decoders *external; /* codec/external_decoders.h; NULL: none */
    /* Becomes the file's, as dl2_image_read_info() gives it; NULL: not wanted. */
    struct dl2_image_info *info;
    /* With `external`: a decoder for further calls of one thread, which keeps the programs that
     * stay. Made where it is NULL; to be destroyed. NULL: each call has a decoder of its own. */
    struct dl2_decoder **keep;
};

/* Default: white background (what viewers show), upright. */
#define DL2_DECODE_DEFAULTS                                                                        \
    {                                                                                              \
        0, 0, {255, 255, 255}, false, false, NULL, NULL, NULL                                      \
    }

/* The part of an image to decode, and how finely. */
struct dl2_decode_request {
    uint32_t x, y, width, height; /* the rectangle, in pixels */
    /*
     * 1, 2, 4 or 8: at most so much coarser. The result may be finer (where a codec can't reduce,
     * or a reduction doesn't pay), never coarser.
     */
    uint32_t reduction;
    uint32_t channels;     /* 0: as coded; 1: gray; 3: color, or gray where the image is gray */
    bool indices;          /* of an image with a palette: its numbers, as gray, and no colors */
    bool planes;           /* allows YCbCr planes; false: gray or RGB, chroma at full resolution */
    bool drop_bands;       /* as in struct dl2_decode_options */
    uint8_t background[3]; /* R, G, B under alpha */
    const struct dl2_external_decoders *external; /* codec/external_decoders.h; NULL: none */
};

#define DL2_DECODE_REQUEST_DEFAULTS                                                                \
    {                                                                                              \
        .reduction = 1, .planes = true, .background = { 255, 255, 255 }                            \
    }

/* A file's planes, as decoders in hardware have to know them. */
struct dl2_coded_frame {
    uint32_t width, height;  /* pixels */
    uint32_t components;     /* 1 or 3 */
    uint32_t step_x, step_y; /* pixels from chroma sample to chroma sample, 1 or 2; gray: 1 */
};

/* The bytes of a crop: a file that shows at least the crop, for decoders in hardware. */
struct dl2_crop_bytes {
    const uint8_t *data;
    size_t size;
    struct dl2_coded_frame frame;
    uint32_t x, y; /* where its first pixel lies in the image, but for shifts */
    /* For each row of MCUs (8 * step pixels each way): how many MCUs further to the right it lies
     * than x says. NULL: 0 for all rows. */
    const uint32_t *shift;
};

/* codec/jpeg_tables.h, codec/jpeg/jpeg_trial.h */
struct dl2_jpeg_trial;
struct dl2_jpeg_family;
struct dl2_jpeg_steps;
struct dl2_coefficient_counts;
struct dl2_video_coding;

struct dl2_encode_options {
    /* 1 to 100, higher is better; ignored by lossless codecs. Of videos it is the CRF. */
    int quality;
    /* Chroma of JPEG, AVIF and videos: "420", "422", "444"; NULL: the default, 420. Others ignore
     * it. */
    const char *subsampling;
    int effort; /* 0 to max_effort, -1: the codec's default; higher is smaller and slower */
    /* JPEG: "tiles" makes the file crop-addressable (codec/jpeg/jpeg_tiles.h), "none" doesn't;
     * NULL: tiles, but for progressive files. Others ignore it. */
    const char *restart;
    /* JPEG: quantization tables of its own; they stay where they are. NULL: libjpeg's. */
    const struct dl2_jpeg_family *tables;
    /* The encoded file that the image comes from, if there is one: jxl_lossless stores a JPEG file
     * itself. Others ignore it. */
    const uint8_t *source;
    size_t source_size;
    /* PNG: the image, of one channel, has numbers of the palette of `source`, a PNG, which the file
     * gets, too. Others refuse it. */
    bool indices;
    /* What the numbers mean, as dl2_color_fit() made it for the codec; the file says so. NULL and
     * SRGB: nothing, or sRGB where files of the codec have to name something. UNKNOWN: nothing, or
     * sRGB where always_tagged. */
    const struct dl2_color_space *color;
    /* Values of the codec's own settings, in the order of its table; NULL: all as usual. */
    const double *settings;
    /* The image is one of dl2_gray_encode(), which sets it: of JPEG 2000 qualities reach further
     * than they do of photographs of 8 bits. */
    bool gray;
    const struct dl2_external *external; /* of an external codec (codec/external.h); else NULL */
    /* What the file is to say beside; no block is above the codec's metadata_bytes. NULL: nothing.
     */
    const struct dl2_metadata *metadata;
    /* Set where the source is a JPEG file that jxl_lossless cannot store, so that it stores the
     * image's pixels; else left alone. NULL: not wanted. */
    enum dl2_pixels_only *pixels_only;
};

#define DL2_ENCODE_DEFAULTS                                                                        \
    {                                                                                              \
        .quality = 75, .effort = -1                                                                \
    }

enum { DL2_CODEC_VERSION_SIZE = 320, DL2_MAX_SETTINGS = 8 };

/* A setting of an encoder beside those of struct dl2_encode_options. */
struct dl2_setting {
    const char *name;         /* letters and "_"; NULL ends a table */
    const char *const *words; /* its values, NULL-ended, by number; NULL: a number */
    double min, max, usual;   /* of numbers; `usual` is the default, of words a word's number */
    bool whole;               /* no fractions */
    bool is_file;             /* a path instead of words or a number */
    bool replaces_quality;    /* if it is not the usual one, the quality has no effect */
    const char *help;         /* one line */
};
extern const char *const dl2_setting_no_yes[]; /* the words of a switch */

struct dl2_codec {
    const char *name;          /* "jpeg": on command lines and in variant names; without "-" */
    const char *extension;     /* "jpg": of the files that are written */
    const char *extensions[8]; /* NULL-ended: of all files of this kind, lower case */
    bool lossy;
    uint32_t max_side;       /* longest side that it can encode, pixels */
    bool has_subsampling;    /* is there a choice? */
    bool has_restart;        /* is there a choice of restart intervals? */
    unsigned colors;         /* enum dl2_color_form: descriptions that its files can hold */
    bool always_tagged;      /* its files cannot but name a color space */
    bool no_gray;            /* gray is stored as RGB */
    bool has_palette;        /* can write numbers of a palette */
    bool reduces;            /* can read() honor a reduction? */
    int max_effort;          /* -1: there is no choice */
    int usual_effort;        /* the default; -1: "auto", which chooses for each image */
    const char *effort_help; /* what effort means, for --help; NULL where there is no choice */
    const struct dl2_setting *settings; /* at most DL2_MAX_SETTINGS; NULL: none */
    unsigned pixel_bytes; /* roughly what encoding or decoding takes, with the image itself */

    /* Library and version for --version and reports, "libjpeg-turbo 2.1.5"; NULL: the library says
     * so when it runs, and find_version() writes it. */
    const char *version;
    void (*find_version)(char out[DL2_CODEC_VERSION_SIZE]);
    /* How files of this codec start, one way or another: "?" stands for any byte. Where bytes alone
     * don't tell, sniff() does, by the first 64 or fewer. Neither: it only encodes, and another
     * codec decodes its files. */
    struct dl2_signature {
        unsigned length; /* 0 ends the list */
        const char *bytes;
    } signatures[5];
    bool (*sniff)(const uint8_t *data, size_t size);

    /* How the file was encoded; false for damaged headers. NULL: the headers do not tell. */
    bool (*coding)(const uint8_t *data, size_t size, struct dl2_coding *coding);

    /* What the file says of its colors, for dl2_image_read_color(), which has found the header
     * good: sets form, and name but for ICC and GAMMA; `color` comes as SRGB. NULL: files of this
     * codec say nothing. */
    int (*color)(const uint8_t *data, size_t size, struct dl2_color_space *color,
                 struct dl2_error *error);

    /* EXIF, XMP and whether there is more, of a file that may be damaged: makes `metadata`, which
     * comes empty. NULL: files of this codec have none that we know. */
    int (*metadata)(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                    struct dl2_error *error);
    size_t metadata_bytes; /* that files can hold of EXIF and of XMP; 0: nothing */

    /* Bytes of a whole file that hold the coded image, so that the rest are headers, tables,
     * markers and metadata; 0 where it is damaged. NULL: not known. */
    size_t (*coded_bytes)(const uint8_t *data, size_t size);

    /*
     * The same file with the restart intervals that the options ask for: quantized coefficients,
     * and so every pixel, stay as they are. 1: it is in `out`; 0: the file has them, or can't have
     * them, or is damaged; negative: out of memory. NULL: files of this codec have none.
     */
    int (*set_restart_intervals)(const uint8_t *data, size_t size,
                                 const struct dl2_encode_options *options, struct dl2_bytes *out,
                                 struct dl2_error *error);

    /*
     * Files that can be read in part, in slices of whole pixel rows (common/slices.h). slice()
     * finds the cuts. Rows of slices have the pixels of the whole image, at any reduction, but for
     * the margin at either end. join_slices() makes of slices `range` and the head a file of their
     * rows, whose bytes replace `out`; DL2_ERR_FORMAT where they are not what slices are made of.
     * NULL: files of this codec are never cut.
     */
    dl2_slice_function slice;
    uint32_t slice_margin; /* pixel rows */
    int (*join_slices)(const struct dl2_cuts *cuts, struct dl2_slice_range range,
                       const uint8_t *data, size_t size, struct dl2_bytes *out,
                       struct dl2_error *error);

    /*
     * Decoding, as codec/decoder.c calls it: open() and read() for each image, close() once at the
     * end. A state begins with a struct dl2_codec_state (codec/codecs.h), which has the file; its
     * other bytes are zero before the first open(). It keeps its memory from image to image and
     * may be opened again at any time, also after an error. Coordinates are pixels as coded:
     * decoder.c deals with orientation, with the limit on pixels and with gray from color.
     */
    size_t state_size;
    /* Parses the header; `info` comes zeroed, with orientation 1. The bytes stay where they are
     * until the raster is no longer used. The caller checks info. */
    int (*open)(void *state, struct dl2_image_info *info, struct dl2_error *error);
    /*
     * Decodes what open() opened, once: the rectangle, which lies within the image, or more (a
     * codec that decodes only whole images gives the whole). The raster's samples are in `image`,
     * in the state or in the file's bytes. Interleaved pixels that need memory are made in `image`,
     * so that a whole image needs no copy. Alpha is laid over the background. RGB may come where
     * gray is requested. Damage outside the rectangle need not be noticed.
     */
    int (*read)(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                struct dl2_raster *raster, struct dl2_error *error);
    /*
     * In place of read(), of an image of more than 8 bits, without inks: all of it at 16 bits, not
     * turned, with alpha laid over the background. DL2_ERR_UNSUPPORTED for kinds of files that it
     * does not know. NULL: it knows none.
     */
    int (*read_deep)(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                     struct dl2_error *error);
    /* In place of read(): a part of an image of one channel, common/gray.h. The caller has compared
     * the size, and the part is within it. NULL: the codec has no such images. */
    int (*read_gray)(void *state, const struct dl2_gray_part *part, uint16_t *out,
                     struct dl2_error *error);
    /*
     * The bytes of a rectangle of the open file, for decoders in hardware: the file itself, or if
     * `small` a file made of its part, where one can be made. They stay until the state's next use;
     * read() may follow. False: such decoders don't know the file. NULL: they don't know the codec.
     */
    bool (*crop_bytes)(void *state, const struct dl2_decode_request *crop, bool small,
                       struct dl2_crop_bytes *out);
    /*
     * Finds the file of another codec that the open file was made of without loss: 1, with bytes
     * that stay until the state's next use; 0: there is none. In both cases read() may follow.
     * NULL: there never is.
     */
    int (*unwrap)(void *state, const uint8_t **data, size_t *size, struct dl2_error *error);
    /* Frees what the state holds beside its block, not the state itself; NULL: nothing. */
    void (*close)(void *state);
    /* Bytes that the state holds from image to image, without state_size and block; NULL: none. */
    size_t (*memory)(const void *state);

    /* Replaces out's contents. The same input always gives the same bytes, unless an external
     * codec's command sees to the contrary. NULL: decode only. */
    int (*encode)(const struct dl2_image *image, const struct dl2_encode_options *options,
                  struct dl2_bytes *out, struct dl2_error *error);
    /* The same of an image of common/gray.h, which read_gray() gives back, exactly if the codec is
     * lossless. NULL: files of this codec have 8 bits a sample. */
    int (*encode_gray)(const struct dl2_gray *image, const struct dl2_encode_options *options,
                       struct dl2_bytes *out, struct dl2_error *error);
    /*
     * encode() at `count` qualities, whatever the options' own: outs[i] gets qualities[i]. What the
     * files have in common is computed once. NULL: they have nothing in common.
     */
    int (*encode_sweep)(const struct dl2_image *image, const struct dl2_encode_options *options,
                        const int *qualities, struct dl2_bytes *outs, size_t count,
                        struct dl2_error *error);
    /* Adds the coefficients of an image with the options' subsampling. NULL: the codec takes no
     * tables of codec/jpeg_tables.h. */
    int (*count_coefficients)(const struct dl2_image *image,
                              const struct dl2_encode_options *options,
                              struct dl2_coefficient_counts *counts, struct dl2_error *error);
    /* The quantization tables that files have otherwise. Likewise. */
    int (*usual_steps)(struct dl2_jpeg_steps *steps, struct dl2_error *error);
    /*
     * What decoding files of an image gives at any quality, whatever the options' own, without
     * making the files. trial_new() makes *trial, for an image and options that stay where they
     * are, or NULL where only files tell; the others are those of codec/jpeg/jpeg_trial.h. NULL:
     * only files tell.
     */
    int (*trial_new)(const struct dl2_image *image, const struct dl2_encode_options *options,
                     struct dl2_jpeg_trial **trial, struct dl2_error *error);
    int (*trial_rows)(struct dl2_jpeg_trial *trial, int quality, uint32_t top, uint32_t bottom,
                      const struct dl2_image **out, struct dl2_error *error);
    void (*trial_free)(struct dl2_jpeg_trial *trial);
    /* The library's own settings that `options` comes to, for the record. A new object. */
    json_t *(*encoder_parameters)(const struct dl2_encode_options *options);

    /* It makes a video of each clip (codec/video_encoder.h), and nothing of single images, so that
     * encode() is NULL. NULL: it makes none. */
    const struct dl2_video_coding *video;
};

/* The value of a row of a codec's settings: a number, or that of a word. */
static inline double dl2_setting_value(const struct dl2_setting *settings,
                                       const struct dl2_encode_options *options, unsigned row)
{
    return options->settings ? options->settings[row] : settings[row].usual;
}

/* The table: codecs in a fixed order; dl2_codec_at() is NULL at the end. */
const struct dl2_codec *dl2_codec_at(size_t index);
/* By name; NULL if there is none. */
const struct dl2_codec *dl2_codec_find(const char *name);
/* By the first bytes, whatever the file's name says; NULL if none knows it. */
const struct dl2_codec *dl2_codec_sniff(const uint8_t *data, size_t size);
/* Sniffs, then parses the header. DL2_ERR_UNSUPPORTED when no codec knows the bytes. */
int dl2_image_read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                        struct dl2_error *error);
/*
 * Slices (common/slices.h) of a file of any codec. dl2_image_slice() is a dl2_slice_function. The
 * second gives the slices that decoding a rectangle of the upright image needs; count 0: it takes
 * about all of them, so the file is better read whole. The third is the codec's join_slices(); its
 * file shows pixels as coded (dl2_decoder_turn()). The fourth says where in the upright image
 * these begin, once they are turned.
 */
int dl2_image_slice(const uint8_t *data, size_t size, struct dl2_slicing *slicing,
                    struct dl2_error *error);
struct dl2_slice_range dl2_image_slices_of(const struct dl2_cuts *cuts, uint32_t x, uint32_t y,
                                           uint32_t width, uint32_t height);
int dl2_image_join_slices(const struct dl2_cuts *cuts, struct dl2_slice_range range,
                          const uint8_t *data, size_t size, struct dl2_bytes *out,
                          struct dl2_error *error);
void dl2_image_slices_origin(const struct dl2_cuts *cuts, struct dl2_slice_range range, uint32_t *x,
                             uint32_t *y);
/*
 * Decodes a whole image: sniffs, checks the size against the limit, reads, turns upright, converts
 * channels. `scratch` is reused memory for turning and may be any image struct. A truncated or
 * corrupt file is DL2_ERR_FORMAT; the contents of `image` are undefined then.
 */
int dl2_image_decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                     struct dl2_image *image, struct dl2_image *scratch, struct dl2_error *error);
/*
 * Decodes a whole image of more than 8 bits a sample at 16, by the options' limit, background and
 * orientation: 1. 0: it has no more than 8, or inks, or is of a kind that no codec gives at that
 * depth. Negative: an error, as of dl2_image_decode().
 */
int dl2_image_decode_deep(const uint8_t *data, size_t size,
                          const struct dl2_decode_options *options, struct dl2_deep_image *image,
                          struct dl2_error *error);
/* Has an image of more than 12 bits no value above a sixteenth of the range, as data of 12 bits in
 * 16 have? The raster is what was decoded. */
bool dl2_image_is_nearly_black(const struct dl2_image_info *info, const struct dl2_raster *raster);
/* Checks quality, size and channels, then calls the codec. */
int dl2_image_encode(const struct dl2_codec *codec, const struct dl2_image *image,
                     const struct dl2_encode_options *options, struct dl2_bytes *out,
                     struct dl2_error *error);
/* The same at `count` qualities, at least one, whatever the options' own: outs[i] gets
 * qualities[i]. Cheaper than one after the other for codecs that have encode_sweep(). */
int dl2_image_encode_sweep(const struct dl2_codec *codec, const struct dl2_image *image,
                           const struct dl2_encode_options *options, const int *qualities,
                           struct dl2_bytes *outs, size_t count, struct dl2_error *error);

/* Encodes an image of one channel and 8 to 16 bits; dl2_gray_decode() (codec/image_file.h) decodes
 * it. DL2_ERR_UNSUPPORTED for a codec that has no such images. */
int dl2_gray_encode(const struct dl2_codec *codec, const struct dl2_gray *image,
                    const struct dl2_encode_options *options, struct dl2_bytes *out,
                    struct dl2_error *error);

/* The words of two settings that several codecs may have, NULL-ended: "420", "422", "444"; "tiles",
 * "none". The first is the default. */
extern const char *const dl2_subsamplings[], *const dl2_restarts[];

/* The chroma subsampling that an encode option comes to, the default for NULL; NULL where `wanted`
 * is none of them. */
const char *dl2_subsampling_find(const char *wanted);

/* The name and version of every codec of images as a JSON object, and of every codec as lines for
 * --version. */
json_t *dl2_codec_versions(void);
/* The version of a codec's library. */
const char *dl2_codec_version(const struct dl2_codec *codec, char memory[DL2_CODEC_VERSION_SIZE]);
void dl2_codec_print_versions(FILE *out);
/* Can it encode, images or clips? */
static inline bool dl2_codec_encodes(const struct dl2_codec *codec)
{
    return codec->encode || codec->video;
}

/* For --list codecs: a line for each codec that encodes; name, lossy or lossless, extension,
 * separated by tabs; then "video" for those of clips. */
void dl2_codec_list(FILE *out);

#endif
