/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/colour.h"

#include "codec/codecs.h"
#include "codec/icc.h"

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct dl2_colour_engine dl2_colour_lcms;

/* The colour engine of this build, or none. */
static const struct dl2_colour_engine *const engines[] = {
#ifdef HAVE_LCMS
    &dl2_colour_lcms,
#endif
    NULL,
};

/* Primaries and white of H.273, table 2: red, green, blue, white. */
static const struct {
    unsigned number;
    const char *name;
    double xy[8];
} primaries[] = {
    {1, "BT.709", {0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290}},
    {4, "BT.470 M", {0.67, 0.33, 0.21, 0.71, 0.14, 0.08, 0.310, 0.316}},
    {5, "BT.470 BG", {0.64, 0.33, 0.29, 0.60, 0.15, 0.06, 0.3127, 0.3290}},
    {6, "BT.601", {0.630, 0.340, 0.310, 0.595, 0.155, 0.070, 0.3127, 0.3290}},
    {7, "SMPTE 240M", {0.630, 0.340, 0.310, 0.595, 0.155, 0.070, 0.3127, 0.3290}},
    {8, "film", {0.681, 0.319, 0.243, 0.692, 0.145, 0.049, 0.310, 0.316}},
    {9, "BT.2020", {0.708, 0.292, 0.170, 0.797, 0.131, 0.046, 0.3127, 0.3290}},
    {11, "DCI P3", {0.680, 0.320, 0.265, 0.690, 0.150, 0.060, 0.314, 0.351}},
    {12, "Display P3", {0.680, 0.320, 0.265, 0.690, 0.150, 0.060, 0.3127, 0.3290}},
    {22, "EBU Tech 3213", {0.630, 0.340, 0.295, 0.605, 0.155, 0.077, 0.3127, 0.3290}},
};

/* Transfer characteristics of H.273, table 3, that are a curve here. */
static const struct {
    unsigned number;
    const char *name;
    enum dl2_colour_curve curve;
    double gamma;
} transfers[] = {
    {1, "BT.709", DL2_CURVE_709, 0},
    {4, "gamma 2.2", DL2_CURVE_GAMMA, 2.2},
    {5, "gamma 2.8", DL2_CURVE_GAMMA, 2.8},
    {6, "BT.601", DL2_CURVE_709, 0},
    {8, "linear", DL2_CURVE_GAMMA, 1},
    {13, "sRGB's curve", DL2_CURVE_SRGB, 0},
    {14, "BT.2020", DL2_CURVE_709, 0},
    {15, "BT.2020", DL2_CURVE_709, 0},
    {16, "PQ", DL2_CURVE_PQ, 0},
    {18, "HLG", DL2_CURVE_HLG, 0},
};

const struct dl2_colour_parameters dl2_colour_srgb = {
    .xy = {0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290}, .curve = DL2_CURVE_SRGB};

enum { UNSPECIFIED = 2, BT709 = 1, SRGB_CURVE = 13 };
#define ROWS(table) (sizeof(table) / sizeof *(table))

static size_t colour_find_primaries(unsigned number)
{
    size_t row = 0;
    while (row < ROWS(primaries) && primaries[row].number != number)
        row++;
    return row;
}

static size_t colour_find_transfer(unsigned number)
{
    size_t row = 0;
    while (row < ROWS(transfers) && transfers[row].number != number)
        row++;
    return row;
}

void dl2_colour_free(struct dl2_colour *colour)
{
    dl2_bytes_free(&colour->icc);
}

/* Says nothing any more; keeps the memory. */
static void colour_clear(struct dl2_colour *colour)
{
    const struct dl2_bytes kept = {colour->icc.data, 0, colour->icc.capacity};
    *colour = (struct dl2_colour){.icc = kept};
}

static int colour_copy(struct dl2_colour *out, const struct dl2_colour *in, struct dl2_error *error)
{
    const struct dl2_bytes kept = out->icc;
    *out = *in;
    out->icc = kept;
    out->icc.size = 0;
    return dl2_bytes_append(&out->icc, in->icc.data, in->icc.size, error);
}

void dl2_colour_set_cicp(struct dl2_colour *colour, unsigned primaries_number,
                         unsigned transfer_number)
{
    const unsigned p = primaries_number == UNSPECIFIED ? BT709 : primaries_number;
    const unsigned t = transfer_number == UNSPECIFIED ? SRGB_CURVE : transfer_number;
    const size_t p_row = colour_find_primaries(p), t_row = colour_find_transfer(t);
    char p_number[16], t_number[16];
    if (p == BT709 && t == SRGB_CURVE)
        return;
    snprintf(p_number, sizeof p_number, "primaries %u", p);
    snprintf(t_number, sizeof t_number, "transfer %u", t);
    colour->form = DL2_COLOUR_CICP;
    colour->primaries = (uint8_t)p;
    colour->transfer = (uint8_t)t;
    snprintf(colour->name, sizeof colour->name, "%s with %s (CICP %u/%u)",
             p_row < ROWS(primaries) ? primaries[p_row].name : p_number,
             t_row < ROWS(transfers) ? transfers[t_row].name : t_number, p, t);
}

int dl2_colour_set_icc(struct dl2_colour *colour, const uint8_t *icc, size_t size,
                       struct dl2_error *error)
{
    colour->form = DL2_COLOUR_ICC;
    colour->icc.size = 0;
    return dl2_bytes_append(&colour->icc, icc, size, error);
}

/* A profile as a codec found it becomes what it means for these pixels. */
static void colour_judge_profile(struct dl2_colour *colour, const struct dl2_image_info *info)
{
    struct dl2_icc icc;
    const char *why = NULL;
    if (!dl2_icc_read(&icc, colour->icc.data, colour->icc.size))
        snprintf(icc.name, sizeof icc.name, "a damaged profile");
    else if (info->cmyk)
        why = "of CMYK";
    else if (icc.srgb && (icc.channels == 3 || info->channels == 1)) {
        snprintf(colour->name, sizeof colour->name, "%s", icc.name);
        colour->form = DL2_COLOUR_SRGB;
        return;
    } else if (icc.channels == info->channels) {
        snprintf(colour->name, sizeof colour->name, "%s", icc.name);
        return;
    } else {
        why = info->channels == 1 ? "not of gray, on gray" : "not of RGB, on RGB";
    }
    colour->form = DL2_COLOUR_UNKNOWN;
    snprintf(colour->name, sizeof colour->name, why ? "%.50s, %s" : "%.50s", icc.name, why);
}

int dl2_image_read_colour(const uint8_t *data, size_t size, const struct dl2_image_info *info,
                          struct dl2_colour *colour, struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    colour_clear(colour);
    if (!codec || !codec->colour)
        return DL2_OK;
    DL2_TRY(codec->colour(data, size, colour, error));
    if (colour->form == DL2_COLOUR_ICC)
        colour_judge_profile(colour, info);
    if (colour->form == DL2_COLOUR_GAMMA)
        snprintf(colour->name, sizeof colour->name, "gamma %.3f%s", colour->gamma,
                 memcmp(colour->xy, dl2_colour_srgb.xy, sizeof colour->xy) ? " with primaries"
                                                                           : "");
    return DL2_OK;
}

/* Do two profiles have one curve, and one matrix where both are of RGB? */
static bool colour_same_matrix(const struct dl2_colour *a, const struct dl2_colour *b)
{
    struct dl2_icc one, two;
    if (a->form != DL2_COLOUR_ICC || b->form != DL2_COLOUR_ICC ||
        !dl2_icc_read(&one, a->icc.data, a->icc.size) || !one.matrix ||
        !dl2_icc_read(&two, b->icc.data, b->icc.size) || !two.matrix)
        return false;
    for (int v = 0; v < 256; v++)
        if (!(fabsf(one.light[v] - two.light[v]) < 1.0f / 4096))
            return false;
    for (int i = 0; one.channels == 3 && two.channels == 3 && i < 9; i++)
        if (!(fabs(one.columns[i] - two.columns[i]) < 0.002))
            return false;
    return true;
}

bool dl2_colour_equal(const struct dl2_colour *a, const struct dl2_colour *b)
{
    struct dl2_colour_parameters one, two;
    if (a->form == DL2_COLOUR_SRGB || b->form == DL2_COLOUR_SRGB)
        return a->form == b->form;
    if (a->form == DL2_COLOUR_UNKNOWN || b->form == DL2_COLOUR_UNKNOWN)
        return a->form == b->form && !strcmp(a->name, b->name);
    if (a->form == b->form && a->icc.size == b->icc.size && a->icc.size &&
        !memcmp(a->icc.data, b->icc.data, a->icc.size))
        return true;
    if (colour_same_matrix(a, b))
        return true;
    if (!dl2_colour_parameters(a, &one) || !dl2_colour_parameters(b, &two) ||
        one.curve != two.curve || fabs(one.gamma - two.gamma) > 0.01)
        return false;
    for (int i = 0; i < 8; i++)
        if (!(fabs(one.xy[i] - two.xy[i]) < 0.005))
            return false;
    return true;
}

/* XYZ under D50 to D65, by Bradford. */
static void colour_to_d65(const double in[3], double out[3])
{
    static const double matrix[9] = {0.9555766, -0.0230393, 0.0631636,  -0.0282895, 1.0099416,
                                     0.0210077, 0.0122982,  -0.0204830, 1.3299098};
    for (int i = 0; i < 3; i++)
        out[i] = matrix[3 * i] * in[0] + matrix[3 * i + 1] * in[1] + matrix[3 * i + 2] * in[2];
}

static bool colour_profile_parameters(const struct dl2_bytes *profile,
                                      struct dl2_colour_parameters *out)
{
    struct dl2_icc icc;
    if (!dl2_icc_read(&icc, profile->data, profile->size) || !icc.matrix ||
        (!icc.srgb_curve && !icc.bt709_curve && icc.gamma <= 0))
        return false;
    memcpy(out->xy, dl2_colour_srgb.xy, sizeof out->xy);
    out->curve = icc.srgb_curve    ? DL2_CURVE_SRGB
                 : icc.bt709_curve ? DL2_CURVE_709
                                   : DL2_CURVE_GAMMA;
    out->gamma = out->curve == DL2_CURVE_GAMMA ? icc.gamma : 0;
    for (int c = 0; icc.channels == 3 && c < 3; c++) {
        double xyz[3];
        colour_to_d65(icc.columns + 3 * c, xyz);
        const double sum = xyz[0] + xyz[1] + xyz[2];
        if (!(sum > 0))
            return false;
        out->xy[2 * c] = xyz[0] / sum;
        out->xy[2 * c + 1] = xyz[1] / sum;
    }
    return true;
}

bool dl2_colour_parameters(const struct dl2_colour *colour, struct dl2_colour_parameters *out)
{
    *out = (struct dl2_colour_parameters){0};
    switch (colour->form) {
    case DL2_COLOUR_ICC:
        return colour_profile_parameters(&colour->icc, out);
    case DL2_COLOUR_GAMMA:
        memcpy(out->xy, colour->xy, sizeof out->xy);
        out->curve = DL2_CURVE_GAMMA;
        out->gamma = colour->gamma;
        return colour->gamma > 0;
    case DL2_COLOUR_CICP: {
        const size_t p = colour_find_primaries(colour->primaries);
        const size_t t = colour_find_transfer(colour->transfer);
        if (p == ROWS(primaries) || t == ROWS(transfers))
            return false;
        memcpy(out->xy, primaries[p].xy, sizeof out->xy);
        out->curve = transfers[t].curve;
        out->gamma = transfers[t].gamma;
        return true;
    }
    default:
        return false;
    }
}

/* Can a profile say it? */
static bool colour_has_light(const struct dl2_colour_parameters *parameters)
{
    return parameters->curve != DL2_CURVE_PQ && parameters->curve != DL2_CURVE_HLG;
}

/* A profile of `channels` that says the same, to `out`; 0: there can be none. */
static int colour_make_profile(const struct dl2_colour *colour, uint32_t channels,
                               struct dl2_bytes *out, struct dl2_error *error)
{
    const struct dl2_colour_engine *engine = engines[0];
    struct dl2_colour_parameters parameters;
    struct dl2_icc icc;
    int status;
    if (colour->form == DL2_COLOUR_ICC) {
        if (!dl2_icc_read(&icc, colour->icc.data, colour->icc.size))
            return 0;
        if (icc.channels == channels) {
            out->size = 0;
            DL2_TRY(dl2_bytes_append(out, colour->icc.data, colour->icc.size, error));
            return 1;
        }
        if (!engine || icc.channels != 1)
            return 0;
        status = engine->gray_to_rgb(colour, out, error);
    } else if (engine && dl2_colour_parameters(colour, &parameters) &&
               colour_has_light(&parameters)) {
        status = engine->make_profile(&parameters, channels, colour->name, out, error);
    } else {
        return 0;
    }
    return status == DL2_OK ? 1 : status == DL2_ERR_MEMORY ? status : 0;
}

static bool colour_is_matrix(const struct dl2_bytes *profile)
{
    struct dl2_icc icc;
    return dl2_icc_read(&icc, profile->data, profile->size) && icc.matrix;
}

int dl2_colour_fit(const struct dl2_colour *colour, const struct dl2_codec *codec,
                   uint32_t channels, struct dl2_colour *out, struct dl2_error *error)
{
    const unsigned holds = codec->colours;
    struct dl2_colour_parameters parameters;
    const uint32_t stored = codec->no_gray ? 3 : channels;
    DL2_TRY(colour_copy(out, colour, error));
    if (colour->form == DL2_COLOUR_SRGB)
        return 1;
    if (colour->form != DL2_COLOUR_UNKNOWN && colour->form != DL2_COLOUR_ICC &&
        holds & (unsigned)colour->form)
        return 1;
    if (holds & DL2_COLOUR_PARAMETERS && dl2_colour_parameters(colour, &parameters))
        return 1;
    if (colour->form != DL2_COLOUR_UNKNOWN && holds & (DL2_COLOUR_ICC | DL2_COLOUR_MATRIX)) {
        const int made = colour_make_profile(colour, stored, &out->icc, error);
        if (made < 0)
            return made;
        out->form = DL2_COLOUR_ICC;
        if (made && (holds & DL2_COLOUR_ICC || colour_is_matrix(&out->icc)))
            return 1;
    }
    out->form = DL2_COLOUR_UNKNOWN;
    return 0;
}

int dl2_colour_convert(const struct dl2_colour *colour, struct dl2_image *image,
                       struct dl2_error *error)
{
    struct dl2_bytes icc = DL2_BYTES_INIT;
    if (colour->form == DL2_COLOUR_SRGB)
        return DL2_OK;
    if (!engines[0])
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "this build cannot convert colours: it has no Little CMS "
                             "(Debian: liblcms2-dev)");
    int status = colour->form == DL2_COLOUR_UNKNOWN
                     ? 0
                     : colour_make_profile(colour, image->channels, &icc, error);
    if (status > 0)
        status = engines[0]->to_srgb(icc.data, icc.size, image, error);
    else if (status == 0)
        status = dl2_error_set(error, DL2_ERR_UNSUPPORTED, "nothing converts it to sRGB");
    dl2_bytes_free(&icc);
    if (status < 0)
        dl2_error_prefix(error, "%s", colour->name);
    return status;
}

const char *dl2_colour_engine(void)
{
    return engines[0] ? engines[0]->name : NULL;
}

static double srgb_curve(double light)
{
    return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static double lab_inverse(double value)
{
    return value > 6.0 / 29 ? value * value * value : 108.0 / 841 * (value - 4.0 / 29);
}

void dl2_lab_to_srgb(const double lab[3], bool d65, uint8_t rgb[3])
{
    static const double whites[2][3] = {{0.9642, 1, 0.8251}, {0.9505, 1, 1.0891}};
    static const double matrices[2][3][3] = {
        /* with the adaptation in it */
        {{3.1338561, -1.6168667, -0.4906146},
         {-0.9787684, 1.9161415, 0.0334540},
         {0.0719453, -0.2289914, 1.4052427}},
        {{3.2404542, -1.5371385, -0.4985314},
         {-0.9692660, 1.8760108, 0.0415560},
         {0.0556434, -0.2040259, 1.0572252}},
    };
    const double y = (lab[0] + 16) / 116;
    const double xyz[3] = {whites[d65][0] * lab_inverse(y + lab[1] / 500),
                           whites[d65][1] * lab_inverse(y),
                           whites[d65][2] * lab_inverse(y - lab[2] / 200)};
    for (int c = 0; c < 3; c++) {
        const double *row = matrices[d65][c];
        const double light = row[0] * xyz[0] + row[1] * xyz[1] + row[2] * xyz[2];
        rgb[c] = (uint8_t)(255 * srgb_curve(light < 0 ? 0 : light > 1 ? 1 : light) + 0.5);
    }
}
