/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plug-in to test with: roll moves the rows of an image and of its mask alike; breaks fails
 * without a zero behind its reason; each of the others breaks a rule of the header. -DABI=99 makes
 * a plug-in of another version.
 */
#include "pixels/operation_plugin.h"

#include <math.h>
#include <string.h>

#ifndef ABI
#define ABI DL2_OPERATION_PLUGIN_ABI
#endif

/* Row after row goes from the top to the bottom. */
static int roll(const double *values, uint64_t *random, const struct dl2_operation_image *image,
                char *reason, size_t size)
{
    uint8_t row[4096];
    const size_t length = (size_t)image->width * image->channels;
    const double part = values[0] + (1 - values[0]) * dl2_operation_uniform(random);
    (void)reason, (void)size;
    if (length > sizeof row)
        return 1;
    for (uint32_t n = (uint32_t)(part * image->height); n; n--) {
        memcpy(row, image->data, length);
        for (uint32_t y = 1; y < image->height; y++)
            memcpy(image->data + (y - 1) * image->stride, image->data + y * image->stride, length);
        memcpy(image->data + (image->height - 1) * image->stride, row, length);
    }
    return 0;
}

static int breaks(const double *values, uint64_t *random, const struct dl2_operation_image *image,
                  char *reason, size_t size)
{
    (void)values, (void)random, (void)image;
    memset(reason, 'x', size);
    return 7;
}

static const struct dl2_operation_setting rolls[] = {{"least", 0, 1, 0, false},
                                                     {NULL, 0, 0, 0, false}};

/* Settings that break a rule. */
static const struct dl2_operation_setting wrong[][DL2_OPERATION_SETTINGS + 2] = {
    {{"p", 0, 1, 0, false}},
    {{"a=b", 0, 1, 0, false}},
    {{"", 0, 1, 0, false}},
    {{"a", 0, 1, 0, false}, {"a", 0, 1, 0, false}},
    {{"a", 0, 1, 2, false}},
    {{"a", 1, 0, 1, false}},
    {{"a", 0, 1, 0.5, true}},
    {{"a", 0, INFINITY, 0, false}},
    {{"a", 0, 1, NAN, false}},
    {{"a", 0, 1, 0, false},
     {"b", 0, 1, 0, false},
     {"c", 0, 1, 0, false},
     {"d", 0, 1, 0, false},
     {"e", 0, 1, 0, false},
     {"f", 0, 1, 0, false},
     {"g", 0, 1, 0, false},
     {"h", 0, 1, 0, false},
     {"i", 0, 1, 0, false}},
};

static const struct dl2_plugin_operation operations[] = {
    {"roll", rolls, true, roll},       {"breaks", NULL, false, breaks},
    {"empty", NULL, false, NULL},      {"wrong0", wrong[0], false, roll},
    {"wrong1", wrong[1], false, roll}, {"wrong2", wrong[2], false, roll},
    {"wrong3", wrong[3], false, roll}, {"wrong4", wrong[4], false, roll},
    {"wrong5", wrong[5], false, roll}, {"wrong6", wrong[6], false, roll},
    {"wrong7", wrong[7], false, roll}, {"wrong8", wrong[8], false, roll},
    {"wrong9", wrong[9], false, roll}, {NULL, NULL, false, NULL},
};

const struct dl2_operation_plugin dl2_operation_plugin = {ABI, operations};
