/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a source image's colors, depth, transparency and metadata in a variant: the one
 * rule of dl2-transcode --color and --metadata, for files that are encoded and for files that are
 * copied, and the record of what the variant's files lack.
 */
#ifndef DL2_TRANSCODE_COLORS_H
#define DL2_TRANSCODE_COLORS_H

#include "codec/codec.h"

#include <jansson.h>
#include <stdio.h>

enum dl2_color_rule {
    DL2_COLORS_KEEP,    /* numbers and description stay */
    DL2_COLORS_CONVERT, /* numbers become sRGB */
    DL2_COLORS_DROP,    /* numbers stay, the description goes */
};
/* Their names, NULL-ended. */
extern const char *const dl2_color_rules[];

/* What becomes of EXIF and XMP. */
enum dl2_metadata_rule {
    DL2_METADATA_USUAL, /* files that are encoded have none, files that are copied keep theirs */
    DL2_METADATA_KEEP,
    DL2_METADATA_DROP, /* so files that have any are not copied */
};
/* Their names, NULL-ended. */
extern const char *const dl2_metadata_rules[];

/* What happened to a description that isn't sRGB. */
enum dl2_color_fate { DL2_FATE_KEPT, DL2_FATE_CONVERTED, DL2_FATE_DROPPED, DL2_FATES };

/* What an image of a variant lacks of its source, or has because of it. */
struct dl2_reduction {
    char *color;   /* the source's description if that isn't sRGB, to free; else NULL */
    uint8_t fate;  /* enum dl2_color_fate, of the description */
    uint8_t bits;  /* of the source's samples, if the file has 8 instead; else 0 */
    bool alpha;    /* the source has transparency, which was laid over the background */
    bool cmyk;     /* the source has inks, which became RGB without their profile */
    bool frames;   /* the source has more than its first frame or page, which alone is there */
    bool bands;    /* the source has further bands */
    bool black;    /* the source has data of 12 bits in 16: dl2_image_is_nearly_black() */
    bool metadata; /* the source has EXIF or XMP that was to be kept and is not there */
    bool turned;   /* the source's EXIF orientation turned it upright */
};

/* A source image's facts; zeroed before first use. */
struct dl2_source_colors {
    enum dl2_color_rule rule;
    struct dl2_image_info info;
    bool nearly_black;
    struct dl2_color_space color;  /* of the pixels, once the rule was applied to them */
    bool described;                /* the source has a description that isn't sRGB... */
    char name[80];                 /* ...called so */
    struct dl2_color_space fitted; /* for the codec of the last dl2_colors_fit() */
    enum dl2_metadata_rule metadata_rule;
    struct dl2_metadata metadata, written; /* the source's; that for the codec, likewise */
};

/* Reads the facts, and converts the decoded pixels where the rule says so. Decoding them has set
 * source->info (struct dl2_decode_options). */
int dl2_colors_apply(struct dl2_source_colors *source, enum dl2_color_rule rule,
                     const uint8_t *data, size_t size, struct dl2_image *image,
                     struct dl2_error *error);

/* Reads the metadata, if the rule asks for that. */
int dl2_colors_read_metadata(struct dl2_source_colors *source, enum dl2_metadata_rule rule,
                             const uint8_t *data, size_t size, struct dl2_error *error);

/* May a variant have the source's file, or what is recompressed from it, byte for byte? */
bool dl2_colors_allow_source(const struct dl2_source_colors *source);

/* The description and the metadata for files of a codec: sets encode->color and
 * encode->metadata, which are valid until the next call.
 * DL2_ERR_UNSUPPORTED where the codec can't hold it and can't go without one. */
int dl2_colors_fit(struct dl2_source_colors *source, const struct dl2_codec *codec,
                   const struct dl2_image *image, struct dl2_encode_options *encode,
                   struct dl2_error *error);

/* What a file lacks that was encoded after dl2_colors_fit(), or copied. */
int dl2_colors_note(const struct dl2_source_colors *source, bool copied, struct dl2_reduction *out,
                    struct dl2_error *error);

void dl2_colors_free(struct dl2_source_colors *source);

/* -- the record -- */

/* Prints the fields of a line of dl2-variant.jsonl, each with a comma in front. */
void dl2_reduction_print(const struct dl2_reduction *reduction, FILE *out);
/* Reads them from a line; what is there already is freed. */
int dl2_reduction_read(struct dl2_reduction *reduction, const json_t *line,
                       struct dl2_error *error);
/* Adds an image's to sums, which begin as {}; false if memory runs out. */
bool dl2_reduction_count(const struct dl2_reduction *reduction, json_t *sums);
/* Says in words what the sums hold, lines that each end with a newline: to free, or NULL. "" if
 * there is nothing to say. */
char *dl2_reduction_describe(const json_t *sums);

#endif
