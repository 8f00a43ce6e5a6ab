/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of encoders as people write them: CODEC:NAME=VALUE:NAME=VALUE, for example
 * jpeg:effort=1:subsampling=444. Each codec has effort, subsampling and restart as far as its row
 * says, and the settings of its own table (codec/codec.h).
 */
#ifndef DL2_CODEC_SETTINGS_H
#define DL2_CODEC_SETTINGS_H

#include "codec/codec.h"
#include "codec/jpeg_tables.h"

/* "jpeg_444_effort1" and its zero. */
enum { DL2_SETTINGS_NAME_SIZE = 128 };

/* A codec with settings. */
struct dl2_settings {
    const struct dl2_codec *codec;
    int effort;                        /* -1: the default */
    bool has_effort;                   /* one was given */
    const char *subsampling, *restart; /* NULL: not given */
    struct dl2_jpeg_tables *tables;    /* to free; NULL: not given */
    double values[DL2_MAX_SETTINGS];   /* of the codec's table */
    /* The codec's name, and the settings that are not the usual ones, each with a "_" in front. It
     * can be a file's name. */
    char name[DL2_SETTINGS_NAME_SIZE];
};

/* All settings as usual. */
void dl2_settings_init(struct dl2_settings *settings, const struct dl2_codec *codec);

/* `text` is what follows the codec's name and a colon. DL2_ERR_ARGUMENT for a setting that the
 * codec does not have or that is given twice, and for a value that it does not take. Tables
 * are named and not loaded. Free settings->tables in any case. */
int dl2_settings_parse(struct dl2_settings *settings, const struct dl2_codec *codec,
                       const char *text, struct dl2_error *error);

/* Are the settings of the codec's table the same? */
bool dl2_settings_equal(const struct dl2_codec *codec, const struct dl2_encode_options *a,
                        const struct dl2_encode_options *b);

/* Is the quality of any effect? Not of a lossless codec's, and not with a setting in its place. */
bool dl2_settings_use_quality(const struct dl2_codec *codec,
                              const struct dl2_encode_options *options);

/* The settings of the codec's table that are not the usual ones, by name: a new object. */
json_t *dl2_settings_json(const struct dl2_codec *codec, const struct dl2_encode_options *options);

/* For --list settings: a line for each setting of each codec; codec, name, values, what is usual,
 * help, separated by tabs. */
void dl2_settings_list(FILE *out);

#endif
