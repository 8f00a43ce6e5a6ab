/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/color.h"

#include "codec/codecs.h"
#include "codec/icc.h"

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct dl2_color_engine dl2_color_lcms;

/* The color engine of this build, or none. */
static const struct dl2_color_engine *const engines[] = {
#ifdef HAVE_LCMS
    &dl2_color_lcms,
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
    enum dl2_color_curve curve;
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

const struct dl2_color_parameters dl2_color_srgb = {
    .xy = {0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290}, .curve = DL2_CURVE_SRGB};

enum { UNSPECIFIED = 2, BT709 = 1, SRGB_CURVE = 13 };
#define ROWS(table) (sizeof(table) / sizeof *(table))

static size_t color_find_primaries(unsigned number)
{
    size_t row = 0;
    while (row < ROWS(primaries) && primaries[row].number != number)
        row++;
    return row;
}

static size_t color_find_transfer(unsigned number)
{
    size_t row = 0;
    while (row < ROWS(transfers) && transfers[row].number != number)
        row++;
    return row;
}

void dl2_color_free(struct dl2_color_space *color)
{
    dl2_bytes_free(&color->icc);
}

/* Says nothing any more; keeps the memory. */
static void color_clear(struct dl2_color_space *color)
{
    const struct dl2_bytes kept = {color->icc.data, 0, color->icc.capacity};
    *color = (struct dl2_color_space){.icc = kept};
}

static int color_copy(struct dl2_color_space *out, const struct dl2_color_space *in,
                      struct dl2_error *error)
{
    const struct dl2_bytes kept = out->icc;
    *out = *in;
    out->icc = kept;
    out->icc.size = 0;
    return dl2_bytes_append(&out->icc, in->icc.data, in->icc.size, error);
}

void dl2_color_set_cicp(struct dl2_color_space *color, unsigned primaries_number,
                        unsigned transfer_number)
{
    const unsigned p = primaries_number == UNSPECIFIED ? BT709 : primaries_number;
    const unsigned t = transfer_number == UNSPECIFIED ? SRGB_CURVE : transfer_number;
    const size_t p_row = color_find_primaries(p), t_row = color_find_transfer(t);
    char p_number[16], t_number[16];
    if (p == BT709 && t == SRGB_CURVE)
        return;
    snprintf(p_number, sizeof p_number, "primaries %u", p);
    snprintf(t_number, sizeof t_number, "transfer %u", t);
    color->form = DL2_COLOR_SPACE_CICP;
    color->primaries = (uint8_t)p;
    color->transfer = (uint8_t)t;
    snprintf(color->name, sizeof color->name, "%s with %s (CICP %u/%u)",
             p_row < ROWS(primaries) ? primaries[p_row].name : p_number,
             t_row < ROWS(transfers) ? transfers[t_row].name : t_number, p, t);
}

int dl2_color_set_icc(struct dl2_color_space *color, const uint8_t *icc, size_t size,
                      struct dl2_error *error)
{
    color->form = DL2_COLOR_SPACE_ICC;
    color->icc.size = 0;
    return dl2_bytes_append(&color->icc, icc, size, error);
}

/* A profile as a codec found it becomes what it means for these pixels. */
static void color_judge_profile(struct dl2_color_space *color, const struct dl2_image_info *info)
{
    struct dl2_icc icc;
    const char *why = NULL;
    if (!dl2_icc_read(&icc, color->icc.data, color->icc.size))
        snprintf(icc.name, sizeof icc.name, "a damaged profile");
    else if (info->cmyk)
        why = "of CMYK";
    else if (icc.srgb && (icc.channels == 3 || info->channels == 1)) {
        snprintf(color->name, sizeof color->name, "%s", icc.name);
        color->form = DL2_COLOR_SPACE_SRGB;
        return;
    } else if (icc.channels == info->channels) {
        snprintf(color->name, sizeof color->name, "%s", icc.name);
        return;
    } else {
        why = info->channels == 1 ? "not of gray, on gray" : "not of RGB, on RGB";
    }
    color->form = DL2_COLOR_SPACE_UNKNOWN;
    snprintf(color->name, sizeof color->name, why ? "%.50s, %s" : "%.50s", icc.name, why);
}

int dl2_image_read_color(const uint8_t *data, size_t size, const struct dl2_image_info *info,
                         struct dl2_color_space *color, struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    color_clear(color);
    if (!codec || !codec->color)
        return DL2_OK;
    DL2_TRY(codec->color(data, size, color, error));
    if (color->form == DL2_COLOR_SPACE_ICC)
        color_judge_profile(color, info);
    if (color->form == DL2_COLOR_SPACE_GAMMA)
        snprintf(color->name, sizeof color->name, "gamma %.3f%s", color->gamma,
                 memcmp(color->xy, dl2_color_srgb.xy, sizeof color->xy) ? " with primaries" : "");
    return DL2_OK;
}

/* Do two profiles have one curve, and one matrix where both are of RGB? */
static bool color_same_matrix(const struct dl2_color_space *a, const struct dl2_color_space *b)
{
    struct dl2_icc one, two;
    if (a->form != DL2_COLOR_SPACE_ICC || b->form != DL2_COLOR_SPACE_ICC ||
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

bool dl2_color_equal(const struct dl2_color_space *a, const struct dl2_color_space *b)
{
    struct dl2_color_parameters one, two;
    if (a->form == DL2_COLOR_SPACE_SRGB || b->form == DL2_COLOR_SPACE_SRGB)
        return a->form == b->form;
    if (a->form == DL2_COLOR_SPACE_UNKNOWN || b->form == DL2_COLOR_SPACE_UNKNOWN)
        return a->form == b->form && !strcmp(a->name, b->name);
    if (a->form == b->form && a->icc.size == b->icc.size && a->icc.size &&
        !memcmp(a->icc.data, b->icc.data, a->icc.size))
        return true;
    if (color_same_matrix(a, b))
        return true;
    if (!dl2_color_parameters(a, &one) || !dl2_color_parameters(b, &two) ||
        one.curve != two.curve || fabs(one.gamma - two.gamma) > 0.01)
        return false;
    for (int i = 0; i < 8; i++)
        if (!(fabs(one.xy[i] - two.xy[i]) < 0.005))
            return false;
    return true;
}

/* XYZ under D50 to D65, by Bradford. */
static void color_to_d65(const double in[3], double out[3])
{
    static const double matrix[9] = {0.9555766, -0.0230393, 0.0631636,  -0.0282895, 1.0099416,
                                     0.0210077, 0.0122982,  -0.0204830, 1.3299098};
    for (int i = 0; i < 3; i++)
        out[i] = matrix[3 * i] * in[0] + matrix[3 * i + 1] * in[1] + matrix[3 * i + 2] * in[2];
}

static bool color_profile_parameters(const struct dl2_bytes *profile,
                                     struct dl2_color_parameters *out)
{
    struct dl2_icc icc;
    if (!dl2_icc_read(&icc, profile->data, profile->size) || !icc.matrix ||
        (!icc.srgb_curve && !icc.bt709_curve && icc.gamma <= 0))
        return false;
    memcpy(out->xy, dl2_color_srgb.xy, sizeof out->xy);
    out->curve = icc.srgb_curve    ? DL2_CURVE_SRGB
                 : icc.bt709_curve ? DL2_CURVE_709
                                   : DL2_CURVE_GAMMA;
    out->gamma = out->curve == DL2_CURVE_GAMMA ? icc.gamma : 0;
    for (int c = 0; icc.channels == 3 && c < 3; c++) {
        double xyz[3];
        color_to_d65(icc.columns + 3 * c, xyz);
        const double sum = xyz[0] + xyz[1] + xyz[2];
        if (!(sum > 0))
            return false;
        out->xy[2 * c] = xyz[0] / sum;
        out->xy[2 * c + 1] = xyz[1] / sum;
    }
    return true;
}

bool dl2_color_parameters(const struct dl2_color_space *color, struct dl2_color_parameters *out)
{
    *out = (struct dl2_color_parameters){0};
    switch (color->form) {
    case DL2_COLOR_SPACE_ICC:
        return color_profile_parameters(&color->icc, out);
    case DL2_COLOR_SPACE_GAMMA:
        memcpy(out->xy, color->xy, sizeof out->xy);
        out->curve = DL2_CURVE_GAMMA;
        out->gamma = color->gamma;
        return color->gamma > 0;
    case DL2_COLOR_SPACE_CICP: {
        const size_t p = color_find_primaries(color->primaries);
        const size_t t = color_find_transfer(color->transfer);
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
static bool color_has_light(const struct dl2_color_parameters *parameters)
{
    return parameters->curve != DL2_CURVE_PQ && parameters->curve != DL2_CURVE_HLG;
}

/* A profile of `channels` that says the same, to `out`; 0: there can be none. */
static int color_make_profile(const struct dl2_color_space *color, uint32_t channels,
                              struct dl2_bytes *out, struct dl2_error *error)
{
    const struct dl2_color_engine *engine = engines[0];
    struct dl2_color_parameters parameters;
    struct dl2_icc icc;
    int status;
    if (color->form == DL2_COLOR_SPACE_ICC) {
        if (!dl2_icc_read(&icc, color->icc.data, color->icc.size))
            return 0;
        if (icc.channels == channels) {
            out->size = 0;
            DL2_TRY(dl2_bytes_append(out, color->icc.data, color->icc.size, error));
            return 1;
        }
        if (!engine || icc.channels != 1)
            return 0;
        status = engine->gray_to_rgb(color, out, error);
    } else if (engine && dl2_color_parameters(color, &parameters) && color_has_light(&parameters)) {
        status = engine->make_profile(&parameters, channels, color->name, out, error);
    } else {
        return 0;
    }
    return status == DL2_OK ? 1 : status == DL2_ERR_MEMORY ? status : 0;
}

static bool color_is_matrix(const struct dl2_bytes *profile)
{
    struct dl2_icc icc;
    return dl2_icc_read(&icc, profile->data, profile->size) && icc.matrix;
}

int dl2_color_fit(const struct dl2_color_space *color, const struct dl2_codec *codec,
                  uint32_t channels, struct dl2_color_space *out, struct dl2_error *error)
{
    const unsigned holds = codec->colors;
    struct dl2_color_parameters parameters;
    const uint32_t stored = codec->no_gray ? 3 : channels;
    DL2_TRY(color_copy(out, color, error));
    if (color->form == DL2_COLOR_SPACE_SRGB)
        return 1;
    if (color->form != DL2_COLOR_SPACE_UNKNOWN && color->form != DL2_COLOR_SPACE_ICC &&
        holds & (unsigned)color->form)
        return 1;
    if (holds & DL2_COLOR_SPACE_PARAMETERS && dl2_color_parameters(color, &parameters))
        return 1;
    if (color->form != DL2_COLOR_SPACE_UNKNOWN &&
        holds & (DL2_COLOR_SPACE_ICC | DL2_COLOR_SPACE_MATRIX)) {
        const int made = color_make_profile(color, stored, &out->icc, error);
        if (made < 0)
            return made;
        out->form = DL2_COLOR_SPACE_ICC;
        if (made && (holds & DL2_COLOR_SPACE_ICC || color_is_matrix(&out->icc)))
            return 1;
    }
    out->form = DL2_COLOR_SPACE_UNKNOWN;
    return 0;
}

int dl2_color_convert(const struct dl2_color_space *color, struct dl2_image *image,
                      struct dl2_error *error)
{
    struct dl2_bytes icc = DL2_BYTES_INIT;
    if (color->form == DL2_COLOR_SPACE_SRGB)
        return DL2_OK;
    if (!engines[0])
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "this build cannot convert colors: it has no Little CMS "
                             "(Debian: liblcms2-dev)");
    int status = color->form == DL2_COLOR_SPACE_UNKNOWN
                     ? 0
                     : color_make_profile(color, image->channels, &icc, error);
    if (status > 0)
        status = engines[0]->to_srgb(icc.data, icc.size, image, error);
    else if (status == 0)
        status = dl2_error_set(error, DL2_ERR_UNSUPPORTED, "nothing converts it to sRGB");
    dl2_bytes_free(&icc);
    if (status < 0)
        dl2_error_prefix(error, "%s", color->name);
    return status;
}

const char *dl2_color_engine(void)
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
