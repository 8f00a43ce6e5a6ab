/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * External codecs, as external.h describes them: the commands, and a row of the registry that reads
 * their files.
 *
 * A file, numbers little-endian:
 *
 *   "DL2X"   u8 version (1)   u8 channels (1, 3)   u8 length of name   u8 0   u32 width
 *   u32 height   name   what the encoder wrote
 */
#include "codec/codecs.h"
#include "codec/external.h"
#include "common/file.h"
#include "common/json.h"
#include "common/process.h"
#include "common/scope.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 1, HEADER = 16, MAX_NAME = 32 };
static const char magic[4] = "DL2X";

/* Largest file that a command may write, bytes. */
#define MAX_FILE_BYTES ((uint64_t)1 << 31)

struct dl2_external {
    struct dl2_codec codec; /* its name is `name` */
    char name[MAX_NAME + 1];
    char *encode, *decode; /* commands */
    double timeout;        /* seconds; 0: the default */
};

/* ---- Names and commands */

/* `text` need not end with a zero. */
static bool external_is_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (length < 1 || length > MAX_NAME)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!memchr(letters, text[i], sizeof letters - 1))
            return false;
    return true;
}

/* "NAME=..." into a name and what follows. */
static int external_take_name(const char *text, char name[MAX_NAME + 1], const char **rest,
                              struct dl2_error *error)
{
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    if (!equals || !external_is_name(text, length))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' does not begin with NAME=, a name of at most %d letters, digits "
                             "and underscores",
                             text, MAX_NAME);
    memcpy(name, text, length);
    name[length] = '\0';
    *rest = equals + 1;
    return DL2_OK;
}

/* Checks a command's words and placeholders. Sets *quality, unless it is NULL, to whether it has
 * %q, which only a command that encodes may have. */
static int external_check_command(const char *command, bool *quality, struct dl2_error *error)
{
    DL2_AUTO_FREE char **words = NULL;
    bool input = false, output = false, graded = false;
    const char *end = dl2_command_find(command, ';');
    if (*end)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s': another command follows at character %zu: '%s'; quote a "
                             "semicolon that belongs to the command",
                             command, (size_t)(end - command) + 1, end);
    DL2_TRY(dl2_command_words(command, &words, error));
    char wrong = '\0';
    for (char **word = words; *word; word++)
        for (const char *at = strchr(*word, '%'); at; at = strchr(at + 1 + (at[1] != 0), '%')) {
            input |= at[1] == 'i';
            output |= at[1] == 'o';
            graded |= at[1] == 'q';
            if (!at[1] || !strchr(quality ? "ioq%" : "io%", at[1]))
                wrong = at[1] ? at[1] : ' ';
        }
    if (wrong)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': %%%c has no meaning; %s", command,
                             wrong,
                             quality ? "there are %i, %o, %q and %%" : "there are %i, %o and %%");
    if (!input || !output)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' lacks %s, the %s file", command,
                             input ? "%o" : "%i", input ? "output" : "input");
    if (quality)
        *quality = graded;
    return DL2_OK;
}

static int external_check_decoder(const struct dl2_external_decoders *decoders, size_t number,
                                  struct dl2_error *error)
{
    char name[MAX_NAME + 1], other[MAX_NAME + 1];
    const char *command;
    DL2_TRY(external_take_name(decoders->commands[number], name, &command, error));
    for (size_t i = 0; i < number; i++)
        if (external_take_name(decoders->commands[i], other, &command, NULL) == DL2_OK &&
            !strcmp(name, other))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has a decoder already", name);
    return external_check_command(strchr(decoders->commands[number], '=') + 1, NULL, error);
}

static bool external_is_timeout(double seconds)
{
    return seconds > 0 && seconds <= 86400;
}

int dl2_external_decoders_check(const struct dl2_external_decoders *decoders,
                                struct dl2_error *error)
{
    size_t count = 0;
    for (; count < DL2_EXTERNAL_DECODERS && decoders->commands[count]; count++)
        DL2_TRY(external_check_decoder(decoders, count, error));
    if (decoders->commands[count])
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "at most %d decoders", DL2_EXTERNAL_DECODERS);
    if (decoders->timeout != 0 && !external_is_timeout(decoders->timeout))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a time-out of %g s is not above 0 and at most 86400",
                             decoders->timeout);
    return DL2_OK;
}

/* ---- Options */

static int external_add_decoder(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_external_decoders *decoders = value;
    size_t count = 0;
    while (decoders->commands[count])
        count++;
    if (count == DL2_EXTERNAL_DECODERS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "at most %d decoders", DL2_EXTERNAL_DECODERS);
    decoders->commands[count] = text;
    const int status = external_check_decoder(decoders, count, error);
    if (status < 0)
        decoders->commands[count] = NULL;
    return status;
}

static json_t *external_show_decoders(const void *value)
{
    const struct dl2_external_decoders *decoders = value;
    json_t *list = json_array();
    for (size_t i = 0; list && decoders->commands[i]; i++)
        json_array_append_new(list, dl2_json_text(decoders->commands[i]));
    return list;
}

static int external_set_timeout(const char *text, void *value, struct dl2_error *error)
{
    char *end;
    const double seconds = strtod(text, &end);
    if (end == text || *end || !external_is_timeout(seconds))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a number of seconds", text);
    *(double *)value = seconds;
    return DL2_OK;
}

static double external_timeout(double seconds)
{
    return seconds > 0 ? seconds : 300;
}

static json_t *external_show_timeout(const void *value)
{
    return json_real(external_timeout(*(const double *)value));
}

_Static_assert(offsetof(struct dl2_external_decoders, commands) == 0,
               "the option's value is the struct");

const struct dl2_option dl2_external_options[] = {
    {DL2_OPTION_PARSE, "decoder", 0, "NAME=COMMAND",
     "Command that decodes the files of the external codec NAME, from %i to %o, for example "
     "'cjxl=djxl %i %o'; may be given several times",
     0, .parse = external_add_decoder, .show = external_show_decoders, .unset = "none"},
    {DL2_OPTION_PARSE, "external-timeout", 0, "SECONDS",
     "Kill a command of an external codec after this time",
     offsetof(struct dl2_external_decoders, timeout), .parse = external_set_timeout,
     .show = external_show_timeout},
    {DL2_OPTION_END},
};

const struct dl2_option dl2_bands_options[] = {
    {DL2_OPTION_FLAG, "drop-bands", 0, NULL,
     "Of images with more bands than gray or RGB and alpha, take those that the file calls gray or "
     "RGB; without this, such images cannot be read",
     0, .roles = DL2_OPTION_FIXED | DL2_OPTION_COMPARED},
    {DL2_OPTION_END},
};

/* ---- Running a command */

/* A command's files. */
struct external_work {
    struct dl2_process_group group;
    char input[PATH_MAX + 64], output[PATH_MAX + 64];
};

/* The format that images are passed in. */
static const struct dl2_codec *external_image_codec(void)
{
    const struct dl2_codec *png = dl2_codec_find("png");
    return png && png->encode ? png : dl2_codec_find("ppm");
}

static int external_begin(struct external_work *work, const char *input_extension,
                          const char *output_extension, struct dl2_error *error)
{
    DL2_TRY(dl2_process_group_begin(&work->group, "dl2-external", error));
    const char *folder = work->group.folder;
    snprintf(work->input, sizeof work->input, "%s/input.%s", folder, input_extension);
    snprintf(work->output, sizeof work->output, "%s/output.%s", folder, output_extension);
    return DL2_OK;
}

/* `word` with its placeholders filled in; a new string or NULL. */
static char *external_fill_in(const char *word, const struct external_work *work, int quality)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (const char *at = word; out && *at; at++) {
        if (*at != '%' || !at[1])
            fputc(*at, out);
        else if (*++at == 'q')
            fprintf(out, "%d", quality);
        else if (*at == '%')
            fputc('%', out);
        else
            fputs(*at == 'i' ? work->input : work->output, out);
    }
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Runs a command and reads its output file. */
static int external_run(const char *command, const struct external_work *work, int quality,
                        double timeout, struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_AUTO_FREE char **words = NULL;
    DL2_AUTO_LIST char **filled = NULL;
    size_t count = 0;
    struct stat info;
    DL2_TRY(dl2_command_words(command, &words, error));
    for (char **word = words; *word; word++)
        DL2_TRY(dl2_list_append(&filled, &count, external_fill_in(*word, work, quality), error));
    DL2_TRY(dl2_process_run(&work->group, filled, external_timeout(timeout), error));
    if (stat(work->output, &info) < 0 || !S_ISREG(info.st_mode) || !info.st_size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s exited with status 0 but wrote no %%o",
                             words[0]);
    return dl2_file_read(work->output, MAX_FILE_BYTES, out, error);
}

/* ---- Encoding */

static int external_frame(const struct dl2_image *image, const char *name,
                          const struct dl2_bytes *coded, struct dl2_bytes *out,
                          struct dl2_error *error)
{
    const uint8_t length = (uint8_t)strlen(name);
    uint8_t header[HEADER] = {[4] = VERSION, [5] = (uint8_t)image->channels, [6] = length};
    memcpy(header, magic, sizeof magic);
    dl2_write_le(header + 8, image->width, 4);
    dl2_write_le(header + 12, image->height, 4);
    out->size = 0;
    DL2_TRY(dl2_bytes_append(out, header, sizeof header, error));
    DL2_TRY(dl2_bytes_append(out, name, length, error));
    return dl2_bytes_append(out, coded->data, coded->size, error);
}

static int external_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                           struct dl2_bytes *out, struct dl2_error *error)
{
    const struct dl2_external *external = options->external;
    const struct dl2_codec *image_codec = external_image_codec();
    struct dl2_encode_options plain = DL2_ENCODE_DEFAULTS;
    struct external_work work;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes coded = DL2_BYTES_INIT;
    plain.effort = image_codec->max_effort < 0 ? -1 : 1; /* it is read once */
    DL2_TRY(external_begin(&work, image_codec->extension, external->name, error));
    int status = dl2_image_encode(image_codec, image, &plain, out, error);
    if (status == DL2_OK)
        status = dl2_file_write(work.input, out->data, out->size, error);
    if (status == DL2_OK)
        status = external_run(external->encode, &work, options->quality, external->timeout, &coded,
                              error);
    dl2_process_group_end(&work.group);
    return status == DL2_OK ? external_frame(image, external->name, &coded, out, error) : status;
}

static json_t *external_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:o, s:o, s:s}", "encode", dl2_json_text(options->external->encode),
                     "decode", dl2_json_text(options->external->decode), "image",
                     external_image_codec()->name);
}

/* ---- Decoding */

struct external_state {
    struct dl2_codec_state base; /* block: the file that the decoder wrote */
    const uint8_t *coded;        /* as the encoder wrote it */
    size_t coded_size;
    uint32_t width, height, channels;
    char name[MAX_NAME + 1];
};

static bool external_sniff(const uint8_t *data, size_t size)
{
    return size >= HEADER && !memcmp(data, magic, sizeof magic);
}

static int external_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct external_state *external = state;
    const uint8_t *const data = external->base.data;
    const size_t size = external->base.size, length = data[6];
    if (data[4] != VERSION)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "an external codec's file of version %u; this build reads version %d",
                             (unsigned)data[4], VERSION);
    external->channels = data[5];
    external->width = dl2_read_le32(data + 8);
    external->height = dl2_read_le32(data + 12);
    if ((external->channels != 1 && external->channels != 3) || !external->width ||
        !external->height || size - HEADER <= length ||
        !external_is_name((const char *)data + HEADER, length))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "an external codec's file with a damaged header");
    memcpy(external->name, data + HEADER, length);
    external->name[length] = '\0';
    external->coded = data + HEADER + length;
    external->coded_size = size - HEADER - length;
    info->width = external->width;
    info->height = external->height;
    info->channels = external->channels;
    info->bits = 8;
    return DL2_OK;
}

/* The command that decodes, or NULL. `decoders` may be NULL. */
static const char *external_find_decoder(const struct dl2_external_decoders *decoders,
                                         const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; decoders && decoders->commands[i]; i++)
        if (!strncmp(decoders->commands[i], name, length) && decoders->commands[i][length] == '=')
            return decoders->commands[i] + length + 1;
    return NULL;
}

static int external_decode(struct external_state *external, const char *command,
                           const struct dl2_decode_request *request, struct dl2_image *image,
                           struct dl2_error *error)
{
    struct external_work work;
    DL2_TRY(external_begin(&work, external->name, external_image_codec()->extension, error));
    struct dl2_bytes *const decoded = &external->base.block;
    int status = dl2_file_write(work.input, external->coded, external->coded_size, error);
    if (status == DL2_OK)
        status = external_run(command, &work, 0, request->external->timeout, decoded, error);
    dl2_process_group_end(&work.group);
    DL2_TRY(status);
    struct dl2_decode_options options = {.max_pixels = (uint64_t)external->width * external->height,
                                         .channels = external->channels};
    if (options.max_pixels < DL2_DEFAULT_MAX_PIXELS) /* another size is told apart from a limit */
        options.max_pixels = DL2_DEFAULT_MAX_PIXELS;
    memcpy(options.background, request->background, sizeof options.background);
    if (external_sniff(decoded->data, decoded->size))
        return dl2_error_set(error, DL2_ERR_FORMAT, "the decoder wrote no image");
    DL2_CLEANUP(dl2_image_free) struct dl2_image scratch = DL2_IMAGE_INIT;
    if (dl2_image_decode(decoded->data, decoded->size, &options, image, &scratch, error) < 0) {
        dl2_error_prefix(error, "what the decoder wrote");
        return DL2_ERR_FORMAT;
    }
    if (image->width != external->width || image->height != external->height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the decoder wrote %ux%u pixels, and the image has %ux%u",
                             (unsigned)image->width, (unsigned)image->height,
                             (unsigned)external->width, (unsigned)external->height);
    return DL2_OK;
}

static int external_read(void *state, const struct dl2_decode_request *request,
                         struct dl2_image *image, struct dl2_raster *raster,
                         struct dl2_error *error)
{
    struct external_state *external = state;
    const char *command = external_find_decoder(request->external, external->name);
    if (!command)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "encoded by the external codec %s: pass --decoder='%s=COMMAND %%i "
                             "%%o' (in Python external={'%s': 'COMMAND %%i %%o'}), as \"encoder\" "
                             "in the dataset's dl2-variant.json has it",
                             external->name, external->name, external->name);
    const int status = external_decode(external, command, request, image, error);
    if (status < 0) {
        dl2_error_prefix(error, "%s", external->name);
        return status;
    }
    *raster = dl2_raster_of(image, 0, 0);
    return DL2_OK;
}

/* ---- The rows */

/* Reads the files of all external codecs. */
const struct dl2_codec dl2_codec_external = {
    .name = "external",
    .extension = "dl2x",
    .extensions = {"dl2x"},
    .lossy = true,
    .max_side = UINT32_MAX,
    .max_effort = -1,
    .pixel_bytes = 12,
    .version = "built in; the commands have versions of their own",
    .sniff = external_sniff,
    .state_size = sizeof(struct external_state),
    .open = external_open,
    .read = external_read,
};

int dl2_external_parse(const char *text, double timeout, struct dl2_external **out,
                       struct dl2_error *error)
{
    char name[MAX_NAME + 1];
    const char *encode;
    *out = NULL;
    DL2_TRY(external_take_name(text, name, &encode, error));
    const char *semicolon = dl2_command_find(encode, ';');
    if (dl2_codec_find(name))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s is a codec of this build; give the external one another name",
                             name);
    if (!*semicolon)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: a command that decodes must follow a semicolon: 'NAME=ENCODE %%i "
                             "%%o %%q; DECODE %%i %%o'",
                             name);
    struct dl2_external *external;
    DL2_TRY(DL2_NEW(&external, 1, "a codec", error));
    strcpy(external->name, name);
    external->timeout = timeout;
    external->encode = strndup(encode, (size_t)(semicolon - encode));
    external->decode = strdup(semicolon + 1 + strspn(semicolon + 1, " \t"));
    bool graded = false;
    int status = external->encode && external->decode ? DL2_OK : dl2_error_memory(error, "a codec");
    if (status == DL2_OK)
        status = external_check_command(external->encode, &graded, error);
    if (status == DL2_OK)
        status = external_check_command(external->decode, NULL, error);
    if (status < 0) {
        dl2_external_free(external);
        return status;
    }
    external->codec = dl2_codec_external;
    external->codec.name = external->name;
    external->codec.lossy = graded;
    external->codec.sniff = NULL;
    external->codec.open = NULL;
    external->codec.read = NULL;
    external->codec.encode = external_encode;
    external->codec.encoder_parameters = external_parameters;
    *out = external;
    return DL2_OK;
}

void dl2_external_free(struct dl2_external *external)
{
    if (!external)
        return;
    free(external->encode);
    free(external->decode);
    free(external);
}

const struct dl2_codec *dl2_external_codec(const struct dl2_external *external)
{
    return &external->codec;
}

/* ---- Versions */

/* Finds a program, or a file; false where the word is neither. */
static bool external_locate(const char *word, bool program, char path[PATH_MAX], struct stat *info)
{
    if (program)
        return dl2_program_find(word, path) && stat(path, info) == 0;
    snprintf(path, PATH_MAX, "%s", word);
    return stat(path, info) == 0 && S_ISREG(info->st_mode);
}

void dl2_external_version(const struct dl2_external *external, char out[DL2_CODEC_VERSION_SIZE])
{
    dl2_external_command_version(external->encode, out);
}

void dl2_external_command_version(const char *command, char out[DL2_CODEC_VERSION_SIZE])
{
    DL2_AUTO_FREE char **words = NULL;
    size_t used = 0;
    out[0] = '\0';
    if (dl2_command_words(command, &words, NULL) < 0)
        return;
    for (size_t i = 0; words[i] && used < DL2_CODEC_VERSION_SIZE; i++) {
        char path[PATH_MAX];
        struct stat info;
        if (!external_locate(words[i], i == 0, path, &info))
            continue;
        used += (size_t)snprintf(out + used, DL2_CODEC_VERSION_SIZE - used,
                                 "%s%s (%lld bytes, modified %lld)", used ? ", " : "", path,
                                 (long long)info.st_size, (long long)info.st_mtime);
    }
}
