/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/icc.h"

#include "codec/codecs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 128, ENTRY = 12, MAX_TAGS = 1024, LEVELS = 256 };

/* Colorants that differ by less mean the same: a third of a level of 8 bits. */
#define SAME_COLORANT 0.002

/* The tag's data of at least `least` bytes, or NULL. */
static const uint8_t *icc_find_tag(const uint8_t *data, size_t size, const char *name, size_t least,
                                   size_t *length)
{
    const uint32_t count = dl2_read_u32(data + HEADER);
    for (uint32_t i = 0; i < count && i < MAX_TAGS; i++) {
        const size_t at = HEADER + 4 + (size_t)i * ENTRY;
        if (at + ENTRY > size)
            return NULL;
        if (memcmp(data + at, name, 4) != 0)
            continue;
        const size_t offset = dl2_read_u32(data + at + 4);
        *length = dl2_read_u32(data + at + 8);
        return offset <= size && *length <= size - offset && *length >= least ? data + offset
                                                                              : NULL;
    }
    return NULL;
}

static double icc_fixed(const uint8_t *p)
{
    return (int32_t)dl2_read_u32(p) / 65536.0;
}

/* Adds a character where there is room, as UTF-8; control characters are left out. */
static void icc_add_character(char *name, size_t room, unsigned code)
{
    const size_t at = strlen(name);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0xd800 && code < 0xe000) ||
        at + 4 > room)
        return;
    if (code < 0x80)
        snprintf(name + at, room - at, "%c", (int)code);
    else if (code < 0x800)
        snprintf(name + at, room - at, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 63)));
    else
        snprintf(name + at, room - at, "%c%c%c", (int)(0xe0 | code >> 12),
                 (int)(0x80 | (code >> 6 & 63)), (int)(0x80 | (code & 63)));
}

/* The description: ASCII in version 2, UTF-16 of the first language in version 4. */
static void icc_read_name(struct dl2_icc *icc, const uint8_t *data, size_t size)
{
    size_t length;
    const uint8_t *tag = icc_find_tag(data, size, "desc", 12, &length);
    if (tag && !memcmp(tag, "desc", 4)) {
        for (size_t i = 12; i < length && i - 12 < dl2_read_u32(tag + 8) && tag[i]; i++)
            icc_add_character(icc->name, sizeof icc->name, tag[i] < 0x80 ? tag[i] : '?');
    } else if (tag && !memcmp(tag, "mluc", 4) && length >= 28 && dl2_read_u32(tag + 8)) {
        const size_t bytes = dl2_read_u32(tag + 20), start = dl2_read_u32(tag + 24);
        for (size_t i = 0; start <= length && i + 2 <= bytes && start + i + 2 <= length; i += 2)
            icc_add_character(icc->name, sizeof icc->name, dl2_read_u16(tag + start + i));
    }
    if (!*icc->name)
        snprintf(icc->name, sizeof icc->name, "a profile without a name");
}

/* A parametric curve's light, ICC.1 10.18; g, a, b, c, d, e, f. */
static double icc_parametric(unsigned type, const double p[7], double x)
{
    static const double zero = 0;
    const double g = p[0], a = p[1], b = p[2], c = p[3], d = p[4];
    const double power = pow(fmax(type ? a * x + b : x, zero), g);
    switch (type) {
    case 0:
        return power;
    case 1:
        return a * x + b >= 0 ? power : 0;
    case 2:
        return a * x + b >= 0 ? power + c : c;
    case 3:
        return x >= d ? power : c * x;
    default:
        return x >= d ? power + p[5] : c * x + p[6];
    }
}

/* The curve in a tag at the levels of 8 bits; false for one of no known kind. */
static bool icc_read_curve(const uint8_t *data, size_t size, const char *name, double light[LEVELS])
{
    static const unsigned parameters[] = {1, 3, 4, 5, 7};
    size_t length;
    const uint8_t *tag = icc_find_tag(data, size, name, 12, &length);
    if (!tag)
        return false;
    if (!memcmp(tag, "para", 4)) {
        const unsigned type = dl2_read_u16(tag + 8);
        double p[7] = {0};
        if (type > 4 || length < 12 + 4 * (size_t)parameters[type])
            return false;
        for (unsigned i = 0; i < parameters[type]; i++)
            p[i] = icc_fixed(tag + 12 + 4 * i);
        for (int v = 0; v < LEVELS; v++)
            light[v] = icc_parametric(type, p, v / 255.0);
        return true;
    }
    if (memcmp(tag, "curv", 4) != 0)
        return false;
    const uint32_t count = dl2_read_u32(tag + 8);
    if (count > (length - 12) / 2)
        return false;
    for (int v = 0; v < LEVELS; v++) {
        const double x = v / 255.0;
        if (count < 2) {
            light[v] = count ? pow(x, dl2_read_u16(tag + 12) / 256.0) : x;
            continue;
        }
        const double at = x * (count - 1);
        const uint32_t low = at >= count - 1 ? count - 2 : (uint32_t)at;
        const double a = dl2_read_u16(tag + 12 + 2 * (size_t)low),
                     b = dl2_read_u16(tag + 14 + 2 * (size_t)low);
        light[v] = (a + (b - a) * (at - low)) / 65535;
    }
    return true;
}

/* The value for a light, from 0 to 1. */
struct icc_curve {
    double limit, slope;         /* slope * light below the limit */
    double scale, power, offset; /* else scale * light ^ power - offset */
};

/* Is the curve that one, to within a level? */
static bool icc_follows(const struct dl2_icc *icc, struct icc_curve curve)
{
    for (int v = 0; v < LEVELS; v++) {
        const double light = fmin(fmax((double)icc->light[v], 0), 1);
        const double value = light < curve.limit
                                 ? curve.slope * light
                                 : curve.scale * pow(light, curve.power) - curve.offset;
        if (!(fabs(value * 255 - v) <= 1))
            return false;
    }
    return true;
}

/* Is the curve sRGB's, BT.709's, or a gamma's? No curve is two of them. */
static void icc_name_curve(struct dl2_icc *icc)
{
    static const struct icc_curve srgb = {0.0031308, 12.92, 1.055, 1 / 2.4, 0.055};
    static const struct icc_curve bt709 = {0.018, 4.5, 1.099, 0.45, 0.099};
    const double middle = (double)icc->light[128];
    const double gamma = middle > 0 && middle < 1 ? log(middle) / log(128 / 255.0) : 0;
    icc->srgb_curve = icc_follows(icc, srgb);
    icc->bt709_curve = !icc->srgb_curve && icc_follows(icc, bt709);
    if (!icc->srgb_curve && !icc->bt709_curve && gamma > 0.1 && gamma < 10 &&
        icc_follows(icc, (struct icc_curve){0, 0, 1, 1 / gamma, 0}))
        icc->gamma = gamma;
}

static bool icc_read_matrix(struct dl2_icc *icc, const uint8_t *data, size_t size)
{
    static const char *const columns[] = {"rXYZ", "gXYZ", "bXYZ"};
    static const char *const curves[] = {"rTRC", "gTRC", "bTRC"};
    double light[3][LEVELS];
    size_t length;
    const bool color = icc->channels == 3;
    if (icc_find_tag(data, size, "A2B0", 0, &length) || (icc->channels != 1 && !color) ||
        memcmp(data + 20, "XYZ ", 4) != 0)
        return false;
    for (int c = 0; c < (color ? 3 : 1); c++) {
        if (!icc_read_curve(data, size, color ? curves[c] : "kTRC", light[c]))
            return false;
        for (int v = 0; v < LEVELS; v++) {
            if (!isfinite(light[c][v]) || fabs(light[c][v] - light[0][v]) > 1.0 / 4096)
                return false;
            icc->light[v] = (float)light[0][v];
        }
        const uint8_t *tag = color ? icc_find_tag(data, size, columns[c], 20, &length) : NULL;
        if (color && !tag)
            return false;
        for (int i = 0; color && i < 3; i++)
            icc->columns[3 * c + i] = icc_fixed(tag + 8 + 4 * i);
    }
    return true;
}

static bool icc_is_srgb(const struct dl2_icc *icc)
{
    static const double srgb[9] = {0.4361, 0.2225, 0.0139, 0.3851, 0.7169,
                                   0.0971, 0.1431, 0.0606, 0.7139};
    bool same = icc->matrix && icc->srgb_curve;
    for (int i = 0; icc->channels == 3 && i < 9; i++)
        same = same && fabs(icc->columns[i] - srgb[i]) < SAME_COLORANT;
    return same;
}

bool dl2_icc_read(struct dl2_icc *icc, const uint8_t *data, size_t size)
{
    static const struct {
        const char *signature;
        uint32_t channels;
    } spaces[] = {{"GRAY", 1}, {"RGB ", 3}, {"CMYK", 4}};
    *icc = (struct dl2_icc){0};
    if (size < HEADER + 4 || memcmp(data + 36, "acsp", 4) != 0 || dl2_read_u32(data) > size ||
        dl2_read_u32(data) < HEADER + 4)
        return false;
    size = dl2_read_u32(data);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!memcmp(data + 16, spaces[i].signature, 4))
            icc->channels = spaces[i].channels;
    icc_read_name(icc, data, size);
    icc->matrix = icc_read_matrix(icc, data, size);
    if (icc->matrix)
        icc_name_curve(icc);
    icc->srgb = icc_is_srgb(icc);
    return true;
}
