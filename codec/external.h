/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * External codecs: two commands, one that encodes a file and one that decodes it.
 *
 *   NAME=ENCODE COMMAND; DECODE COMMAND
 *
 * A semicolon within quotes belongs to its command.
 *
 * In a command %i is the input file, %o the output file, %q the quality and %% a percent sign. The
 * encoder's input is a PNG file (PPM in a build without PNG) and its output ends in .NAME; what the
 * decoder writes may be any format that this build reads, under a name that ends as the encoder's
 * input does. Commands run without a shell (common/process.h), in no particular folder, several at
 * once. An encode command without %q has one quality.
 *
 * "pipe:COMMAND" is a program that stays, without placeholders. Each worker thread has one of its
 * own, which gets one request after the other on its standard input, and answers on its standard
 * output (docs/formats/transcode.md, Programs that stay).
 *
 * Programs cannot know such files by their first bytes. So each is stored behind a header, which
 * names the codec and the image's size (docs/formats/transcode.md), and every container and program
 * treats it like any other image. Decoding it takes a command that the user names
 * (codec/external_decoders.h): no program runs commands that a dataset comes with.
 */
#ifndef DL2_CODEC_EXTERNAL_H
#define DL2_CODEC_EXTERNAL_H

#include "codec/codec.h"
#include "codec/external_decoders.h"
#include "common/option.h"

/* An external codec to encode with. */
struct dl2_external;

/* DL2_ERR_ARGUMENT with a message that says what is wrong with the text. `timeout`: seconds after
 * which the encode command is killed; 0: the default. */
int dl2_external_parse(const char *text, double timeout, struct dl2_external **out,
                       struct dl2_error *error);
/* NULL is allowed. */
void dl2_external_free(struct dl2_external *external);

/* Its row, for dl2_image_encode() with encode options whose `external` it is. Lives as long. */
const struct dl2_codec *dl2_external_codec(const struct dl2_external *external);

/*
 * The files that the encode command names, with size and modification time: a text that changes
 * when the encoder is replaced. Writes it like a codec's version.
 */
void dl2_external_version(const struct dl2_external *external, char out[DL2_CODEC_VERSION_SIZE]);
/* The same of any command. */
void dl2_external_command_version(const char *command, char out[DL2_CODEC_VERSION_SIZE]);

/* DL2_ERR_ARGUMENT with a message that says what is wrong with the commands or the time-out. */
int dl2_external_decoders_check(const struct dl2_external_decoders *decoders,
                                struct dl2_error *error);

/* The options --decoder and --external-timeout: a table of struct dl2_external_decoders. */
extern const struct dl2_option dl2_external_options[];
/* The option --drop-bands: a table of the bool of struct dl2_decode_options. */
extern const struct dl2_option dl2_bands_options[];

#endif
