/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options about loading that several programs share, as tables to include in their own
 * (common/option.h), and the words that name the loader's enums in options and reports. Beside them
 * is the table of loader/loader_settings.h.
 */
#ifndef DL2_LOADER_LOADER_OPTIONS_H
#define DL2_LOADER_LOADER_OPTIONS_H

#include "common/option.h"
#include "loader/loader_settings.h"

/* What dl2_loader_settings() returns. */
extern const struct dl2_loader_setting dl2_loader_setting_rows[];

/* Crops, augmentation, batching, order, reading and caching, of a struct dl2_loader_config. */
extern const struct dl2_option dl2_loader_options[];

/* Which images an epoch of training has: weights, repeats and draws, of the same struct. */
extern const struct dl2_option dl2_sampling_options[];
/* The first of them on the command line of a program that includes them; NULL: none
 * is. */
const char *dl2_sampling_given(const struct dl2_program *program,
                               const struct dl2_common_options *common);
/* Volumes: a table of struct dl2_loader_config. */
extern const struct dl2_option dl2_volume_options[];
/* Decoding on a card: a table of struct dl2_decode_choice. */
extern const struct dl2_option dl2_decode_options[];

/* A program's settings of a loader. */
struct dl2_loader_user {
    const struct dl2_program *program;
    const struct dl2_common_options *common;
    const struct dl2_option *options; /* a table of the struct `values` */
    void *values;
    const struct dl2_loader_config *config; /* in it; channels 0: to be known later */
    unsigned modes;                         /* of struct dl2_loader_source */
    bool decodes_on_card;
};
/* dl2_loader_check(): refuses settings that exclude or need each other, or would have no effect.
 * Returns 0, or an exit status after an error message. */
int dl2_loader_options_check(const struct dl2_loader_user *user);

/* Each ends with NULL. */
extern const char *const dl2_split_words[];         /* "all", "train"...: offered */
extern const char *const dl2_dtype_words[];         /* enum dl2_dtype: "uint8"... */
extern const char *const dl2_layout_words[];        /* enum dl2_layout: "nhwc"... */
extern const char *const dl2_batching_words[];      /* enum dl2_batching: "strict"... */
extern const char *const dl2_io_words[];            /* enum dl2_io: "auto"... */
extern const char *const dl2_val_crop_words[];      /* enum dl2_val_crop: "center"... */
extern const char *const dl2_decode_mode_words[];   /* enum dl2_decode_mode: "cpu"... */
extern const char *const dl2_decode_input_words[];  /* enum dl2_decode_input: "plain"... */
extern const char *const dl2_decode_engine_words[]; /* enum dl2_decode_engine: "auto"... */

/*
 * Parses an aspect ratio, "MIN,MAX" with 0 < MIN <= MAX, into two doubles: struct
 * dl2_loader_config's aspect_min and the member after it. Shows such a pair, or an area, as JSON.
 */
int dl2_parse_aspect(const char *text, void *value, struct dl2_error *error);
json_t *dl2_show_range(const void *value);

/*
 * Parses an image size, "224" or HEIGHTxWIDTH, "192x256", into struct dl2_loader_config's
 * height and width; a square leaves the latter 0. Shows it as JSON: a number, or such a
 * text.
 */
int dl2_parse_image_size(const char *text, void *value, struct dl2_error *error);
json_t *dl2_show_image_size(const void *value);
/* The same, and DEPTHxHEIGHTxWIDTH, "64x128x128", with volume_depth. */
int dl2_parse_output_size(const char *text, void *value, struct dl2_error *error);
json_t *dl2_show_output_size(const void *value);
/* The first two members of a JSON value. */
int dl2_take_image_size(const json_t *json, struct dl2_loader_config *config,
                        struct dl2_error *error);

/* Shows dl2_loader_config.augment with every setting, so that equal ones are equal; null: none. */
json_t *dl2_show_augment(const void *value);

#endif
