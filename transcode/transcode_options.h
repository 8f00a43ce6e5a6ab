/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of dl2-transcode: its table of options, and the text of --help. */
#ifndef DL2_TRANSCODE_TRANSCODE_OPTIONS_H
#define DL2_TRANSCODE_TRANSCODE_OPTIONS_H

#include "transcode/target/select_targets.h"

/* The commands, in their order; as bits, the rows' `commands`. */
enum dl2_transcode_command {
    DL2_ENCODE,
    DL2_COPY,
    DL2_INDEX,
    DL2_SURVEY,
    DL2_IDENTIFY,
    DL2_FIT_TABLES,
    DL2_MAKE_FRAMES,
    DL2_PREPROCESS,
    DL2_ENCODE_VOLUMES, /* no command: what encoding is where SOURCE holds volumes */
};
enum {
    DL2_ENCODES = 1 << DL2_ENCODE,
    DL2_MAKES_FRAMES = 1 << DL2_MAKE_FRAMES,
    DL2_PREPROCESSES = 1 << DL2_PREPROCESS,
    DL2_ENCODES_ALL = DL2_ENCODES | 1 << DL2_ENCODE_VOLUMES,
    DL2_WRITES = DL2_ENCODES | 1 << DL2_COPY | DL2_MAKES_FRAMES,
    DL2_SURVEYS = 1 << DL2_SURVEY,
    DL2_IDENTIFIES = 1 << DL2_IDENTIFY,
    DL2_FITS = 1 << DL2_FIT_TABLES,
};

/* The rows of a struct dl2_transcode_arguments. */
extern const struct dl2_option dl2_transcode_rows[];

/* This build's codecs and containers, one line each, then what encoding does: the details of that
 * command. To free; NULL: no memory. To be called before the options are parsed. */
char *dl2_transcode_details(void);

#endif
