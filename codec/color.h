/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the numbers of an image's pixels mean, as far as its file says: sRGB, an ICC profile, code
 * points of ITU-T H.273, or a gamma with primaries. Decoding ignores all this and gives the numbers
 * as they are stored; a description travels beside them, from one file into the next.
 *
 * An image that says nothing means sRGB, as on the web.
 *
 * Threads: every function may run on many threads at once.
 */
#ifndef DL2_CODEC_COLOR_H
#define DL2_CODEC_COLOR_H

#include "common/error.h"
#include "common/memory.h"
#include "pixels/image.h"

#include <stdbool.h>
#include <stdint.h>

struct dl2_codec;
struct dl2_image_info;

/* The kind of a description; as bits, what a codec's files can hold (struct dl2_codec). */
enum dl2_color_form {
    DL2_COLOR_SPACE_SRGB = 0,    /* sRGB, by a profile that means it, or because nothing is said */
    DL2_COLOR_SPACE_UNKNOWN = 1, /* another color space, of which nothing usable is said */
    DL2_COLOR_SPACE_ICC = 2,     /* any profile of gray or RGB */
    DL2_COLOR_SPACE_CICP = 4,    /* primaries and transfer characteristics of H.273 */
    DL2_COLOR_SPACE_GAMMA = 8,   /* PNG's gAMA and cHRM */
    DL2_COLOR_SPACE_MATRIX = 16, /* of a codec: profiles of a matrix and curves alone */
    DL2_COLOR_SPACE_PARAMETERS = 32, /* of a codec: what dl2_color_parameters() finds numbers for */
};

/* Zeroed, it is sRGB. */
struct dl2_color_space {
    enum dl2_color_form form;
    struct dl2_bytes icc;        /* of ICC */
    uint8_t primaries, transfer; /* of CICP */
    double gamma;                /* of GAMMA: of the decoder, 1 is linear */
    double xy[8];                /* of GAMMA: red, green, blue, white */
    char name[80];               /* for people, UTF-8: "Adobe RGB (1998)", "gamma 1.000" */
};

/* Frees the profile; the rest stays. */
void dl2_color_free(struct dl2_color_space *color);

/*
 * What the file says of its colors, for pixels as dl2_image_decode() gives them with as many
 * channels as coded. `info` is the file's own, by dl2_image_read_info() or dl2_image_decode(), so
 * its header is known to be good. Replaces the contents of `color`, which keeps its memory. A
 * profile that means sRGB comes as SRGB, with its name. A damaged profile, or one of other channels
 * than the pixels (of CMYK, which decoding has turned into RGB), comes as UNKNOWN; `name` says
 * which.
 */
int dl2_image_read_color(const uint8_t *data, size_t size, const struct dl2_image_info *info,
                         struct dl2_color_space *color, struct dl2_error *error);

/*
 * The description in a form that files of `codec` can hold for an image of `channels`. 1: `out` has
 * it; 0: they can't, and `out` is UNKNOWN, with the name; negative: out of memory.
 */
int dl2_color_fit(const struct dl2_color_space *color, const struct dl2_codec *codec,
                  uint32_t channels, struct dl2_color_space *out, struct dl2_error *error);

/* Do the two mean the same, as far as their forms and numbers or bytes say? Two UNKNOWN ones do if
 * they have one name. */
bool dl2_color_equal(const struct dl2_color_space *a, const struct dl2_color_space *b);

/*
 * Converts the pixels to sRGB, gray to gray with sRGB's curve: relative colorimetric with black
 * point compensation. DL2_ERR_UNSUPPORTED with the reason where the description is of no use, or
 * this build has no color engine (Little CMS).
 */
int dl2_color_convert(const struct dl2_color_space *color, struct dl2_image *image,
                      struct dl2_error *error);

/* The engine's name and version, for the record; NULL: this build has none. */
const char *dl2_color_engine(void);

/* -- for the codecs -- */

/* Colors by numbers: the light of a channel is a curve of its value. */
struct dl2_color_parameters {
    double xy[8]; /* red, green, blue, white */
    enum dl2_color_curve {
        DL2_CURVE_SRGB,
        DL2_CURVE_GAMMA, /* light = value ^ gamma */
        DL2_CURVE_709,
        DL2_CURVE_PQ,
        DL2_CURVE_HLG,
    } curve;
    double gamma;
};

/* False where the description is of something else. A profile's white becomes D65, its primaries
 * those that mean the same beside it. */
bool dl2_color_parameters(const struct dl2_color_space *color, struct dl2_color_parameters *out);

/* sRGB in these numbers. */
extern const struct dl2_color_parameters dl2_color_srgb;

/* Sets form and code points; 2 (unspecified) and what means sRGB is SRGB. */
void dl2_color_set_cicp(struct dl2_color_space *color, unsigned primaries, unsigned transfer);
/* Sets form and profile, a copy. */
int dl2_color_set_icc(struct dl2_color_space *color, const uint8_t *icc, size_t size,
                      struct dl2_error *error);

/* What a color engine does; the file that includes its library has the one row. */
struct dl2_color_engine {
    const char *name;
    /* A profile for `channels` of the parameters, by the name. The same bytes each time. */
    int (*make_profile)(const struct dl2_color_parameters *parameters, uint32_t channels,
                        const char *name, struct dl2_bytes *icc, struct dl2_error *error);
    /* A profile of RGB that means the same for gray pixels as this one of gray. */
    int (*gray_to_rgb)(const struct dl2_color_space *gray, struct dl2_bytes *icc,
                       struct dl2_error *error);
    int (*to_srgb)(const uint8_t *icc, size_t size, struct dl2_image *image,
                   struct dl2_error *error);
};

/* L* from 0 to 100, a* and b*, under D50, or D65, to 8 bits of sRGB, whose white is D65: XYZ is
 * adapted by Bradford's transform. */
void dl2_lab_to_srgb(const double lab[3], bool d65, uint8_t rgb[3]);

#endif
