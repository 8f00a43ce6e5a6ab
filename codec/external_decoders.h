/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the files of external codecs are decoded: by commands that the user names, never by those
 * that a dataset comes with. Such files are what dl2-transcode --codec 'NAME=ENCODE; DECODE' wrote.
 */
#ifndef DL2_CODEC_EXTERNAL_DECODERS_H
#define DL2_CODEC_EXTERNAL_DECODERS_H

enum { DL2_EXTERNAL_DECODERS = 16 }; /* at most */

struct dl2_external_decoders {
    /* "NAME=COMMAND", such as "cjxl=djxl %i %o": in a command %i is the input file, %o the output
     * file, of any format that this build reads, and %% a percent sign. Commands run without a
     * shell, several at once. The first NULL ends them. */
    const char *commands[DL2_EXTERNAL_DECODERS + 1];
    double timeout; /* seconds after which a command is killed, 86,400 at most; 0: 300 */
};

#endif
