/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of NumPy's .npy files (numpy.lib.format): "\x93NUMPY", two bytes of a version, the
 * length of the text, 2 bytes in version 1 and 4 later, and the text, a Python dict of three keys:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (4, 64, 128, 128), }
 */
#include "volumes/volume.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_HEADER = 65536, MAX_AXES = 4 };

struct text {
    const char *at, *end;
};

static void skip_blanks(struct text *text)
{
    while (text->at < text->end && strchr(" \t\n\r", *text->at) && *text->at)
        text->at++;
}

static bool take(struct text *text, char c)
{
    skip_blanks(text);
    if (text->at >= text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

/* A string in quotes without escapes, at most `size` - 1 bytes. */
static bool take_string(struct text *text, char *out, size_t size)
{
    skip_blanks(text);
    if (text->at >= text->end || (*text->at != '\'' && *text->at != '"'))
        return false;
    const char quote = *text->at++;
    size_t length = 0;
    while (text->at < text->end && *text->at != quote && *text->at != '\\' && length + 1 < size)
        out[length++] = *text->at++;
    out[length] = '\0';
    return take(text, quote);
}

static bool take_word(struct text *text, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* A tuple of numbers below 2^31; at most MAX_AXES of them are kept, all are counted. */
static bool take_shape(struct text *text, size_t shape[MAX_AXES], size_t *axes)
{
    *axes = 0;
    if (!take(text, '('))
        return false;
    while (!take(text, ')')) {
        uint64_t value = 0;
        skip_blanks(text);
        const char *start = text->at;
        for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
            if ((value = value * 10 + (uint64_t)(*text->at - '0')) > INT32_MAX)
                return false;
        if (text->at == start)
            return false;
        if (*axes < MAX_AXES)
            shape[*axes] = (size_t)value;
        if (++*axes > 64 || (!take(text, ',') && (text->at >= text->end || *text->at != ')')))
            return false;
    }
    return true;
}

static int read_type(const char *descr, struct dl2_volume_info *info, struct dl2_error *error)
{
    static const struct {
        const char *name;
        enum dl2_voxel_type type;
    } types[] = {
        {"b1", DL2_VOXEL_U8},  {"u1", DL2_VOXEL_U8},  {"i1", DL2_VOXEL_I8},  {"u2", DL2_VOXEL_U16},
        {"i2", DL2_VOXEL_I16}, {"u4", DL2_VOXEL_U32}, {"i4", DL2_VOXEL_I32}, {"u8", DL2_VOXEL_U64},
        {"i8", DL2_VOXEL_I64}, {"f4", DL2_VOXEL_F32}, {"f8", DL2_VOXEL_F64},
    };
    for (size_t i = 0; strchr("<>|=", descr[0]) && descr[0] && i < sizeof types / sizeof *types;
         i++) {
        if (strcmp(descr + 1, types[i].name) != 0)
            continue;
        info->type = types[i].type;
        info->swapped = descr[0] == (BYTE_ORDER == LITTLE_ENDIAN ? '>' : '<');
        return DL2_OK;
    }
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "its type '%.16s' is not supported; convert it to float32, for example",
                         descr);
}

static int read_text(struct text text, struct dl2_volume_info *info, struct dl2_error *error)
{
    char key[32], descr[32] = "";
    size_t shape[MAX_AXES] = {0}, axes = SIZE_MAX;
    bool good = take(&text, '{'), fortran = false, has_order = false;
    while (good && !take(&text, '}')) {
        good = take_string(&text, key, sizeof key) && take(&text, ':');
        if (!good)
            break;
        if (!strcmp(key, "descr") && !descr[0]) {
            skip_blanks(&text);
            if (text.at < text.end && *text.at == '[')
                return dl2_error_set(error, DL2_ERR_FORMAT,
                                     "it holds records, not numbers: save one field of them");
            good = take_string(&text, descr, sizeof descr) && descr[0];
        } else if (!strcmp(key, "fortran_order") && !has_order) {
            has_order = true;
            fortran = take_word(&text, "True");
            good = fortran || take_word(&text, "False");
        } else {
            good = !strcmp(key, "shape") && axes == SIZE_MAX && take_shape(&text, shape, &axes);
        }
        if (good && !take(&text, ',')) {
            good = take(&text, '}');
            break;
        }
    }
    skip_blanks(&text);
    if (!good || text.at != text.end || !descr[0] || !has_order || axes == SIZE_MAX)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its .npy header is damaged");
    DL2_TRY(read_type(descr, info, error));
    if (axes != 3 && axes != 4)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "an array of %zu dimensions is no volume: it has to be [depth, "
                             "height, width] or [channels, depth, height, width]",
                             axes);
    if (fortran)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is in Fortran order: save numpy.ascontiguousarray() of it");
    info->channels = axes == 4 ? shape[0] : 1;
    for (size_t i = 0; i < 3; i++)
        info->size[i] = shape[axes - 3 + i];
    return DL2_OK;
}

int dl2_npy_parse(const uint8_t *data, size_t have, struct dl2_volume_info *info, size_t *need,
                  struct dl2_error *error)
{
    *info = (struct dl2_volume_info){.slope = 1};
    *need = 12;
    if (have && memcmp(data, "\x93NUMPY", have < 6 ? have : 6) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it does not begin as an .npy file does");
    if (have < 12)
        return 0;
    if (data[6] < 1 || data[6] > 3)
        return dl2_error_set(error, DL2_ERR_FORMAT, ".npy version %u is not supported, only 1 to 3",
                             data[6]);
    const size_t start = data[6] == 1 ? 10 : 12;
    const uint64_t length = data[6] == 1 ? data[8] | (uint64_t)data[9] << 8
                                         : data[8] | (uint64_t)data[9] << 8 |
                                               (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24;
    if (length > MAX_HEADER)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "its .npy header of %" PRIu64 " bytes passes the limit of %d", length,
                             MAX_HEADER);
    *need = start + (size_t)length;
    if (have < *need)
        return 0;
    const struct text text = {(const char *)data + start, (const char *)data + *need};
    info->offset = *need;
    DL2_TRY(read_text(text, info, error));
    return 1;
}
