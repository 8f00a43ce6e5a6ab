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
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/process.h"
#include "common/scope.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 1, HEADER = 16, MAX_NAME = 32 };
static const char magic[4] = "DL2X";

/* Largest file that a command may write, bytes. */
#define MAX_FILE_BYTES ((uint64_t)1 << 31)

/* A program that stays, and its command. */
struct external_server {
    struct dl2_server *server;
    unsigned long long asked; /* requests */
    char *command;
    struct external_server *next;
};

/* Those that no thread uses. */
struct external_pool {
    pthread_mutex_t mutex;
    struct external_server *idle;
};

struct dl2_external {
    struct dl2_codec codec; /* its name is `name` */
    char name[MAX_NAME + 1];
    char *encode, *decode; /* commands */
    double timeout;        /* seconds; 0: the default */
    struct external_pool *pool;
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

/* The command of a program that stays; NULL: it is another. */
static const char *external_piped(const char *command)
{
    static const char pipe[] = "pipe:";
    return strncmp(command, pipe, sizeof pipe - 1) == 0 ? command + sizeof pipe - 1 : NULL;
}

static int external_check_piped(const char *command, const char *piped, struct dl2_error *error)
{
    DL2_AUTO_FREE char **words = NULL;
    if (strchr(piped, '%'))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s': a program that stays has no placeholders; it gets images and "
                             "qualities on its standard input",
                             command);
    return dl2_command_words(piped, &words, error);
}

/* Checks a command's words and placeholders. Sets *quality, unless it is NULL, to whether it has
 * %q, which only a command that encodes may have. */
static int external_check_command(const char *command, bool *quality, struct dl2_error *error)
{
    DL2_AUTO_FREE char **words = NULL;
    const char *piped = external_piped(command);
    bool input = false, output = false, graded = false;
    const char *end = dl2_command_find(command, ';');
    if (*end)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s': another command follows at character %zu: '%s'; quote a "
                             "semicolon that belongs to the command",
                             command, (size_t)(end - command) + 1, end);
    if (piped && quality)
        *quality = true;
    if (piped)
        return external_check_piped(command, piped, error);
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
     "'cjxl=djxl %i %o', or a program that stays, 'NAME=pipe:COMMAND'; may be given several times",
     0, .parse = external_add_decoder, .show = external_show_decoders, .unset = "none"},
    {DL2_OPTION_PARSE, "external-timeout", 0, "SECONDS",
     "Kill a command of an external codec, or a program that stays, after this time for an image",
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

/* ---- Programs that stay */

static void external_end(struct external_server *piped)
{
    if (!piped)
        return;
    dl2_server_stop(piped->server);
    free(piped->command);
    free(piped);
}

/* A program of this command: *kept, or, where that is NULL or another's, a new one. */
static int external_keep(const char *command, struct external_server **kept,
                         struct dl2_error *error)
{
    DL2_AUTO_FREE char **words = NULL;
    if (*kept && !strcmp((*kept)->command, command))
        return DL2_OK;
    external_end(*kept);
    *kept = NULL;
    DL2_TRY(dl2_command_words(external_piped(command), &words, error));
    DL2_TRY(DL2_NEW(kept, 1, "a program", error));
    (*kept)->command = strdup(command);
    const int status = (*kept)->command ? dl2_server_start(words, &(*kept)->server, error)
                                        : dl2_error_memory(error, "a program");
    if (status < 0) {
        external_end(*kept);
        *kept = NULL;
    }
    return status;
}

/* A request, without its number, and the bytes that follow it. */
struct external_request {
    const char *what; /* "encode" or "decode" */
    const char *rest;
    const void *data;
    size_t size;
    uint64_t wanted; /* bytes of the answer; 0: any number */
};

/* Sends a request, and receives the answer, which has its number: what else a program wrote is no
 * answer to it. */
static int external_ask(struct external_server *piped, const struct external_request *request,
                        double timeout, struct dl2_bytes *out, struct dl2_error *error)
{
    const double deadline = dl2_clock_wall() + external_timeout(timeout);
    const uint64_t most = request->wanted > MAX_FILE_BYTES ? request->wanted : MAX_FILE_BYTES;
    struct dl2_server *server = piped->server;
    unsigned long long number = 0, bytes;
    char line[512], kind[8] = "", rest;
    int length = 0;
    snprintf(line, sizeof line, "%s %llu %s\n", request->what, ++piped->asked, request->rest);
    DL2_TRY(dl2_server_send(server, line, strlen(line), deadline, error));
    DL2_TRY(dl2_server_send(server, request->data, request->size, deadline, error));
    DL2_TRY(dl2_server_receive_line(server, line, sizeof line, deadline, error));
    const bool is_answer = sscanf(line, "%7s %llu %n", kind, &number, &length) == 2 && length;
    if (is_answer && number == piped->asked && !strcmp(kind, "error"))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", line + length);
    if (!is_answer || number != piped->asked || strcmp(kind, "ok") != 0 ||
        sscanf(line + length, "%llu%c", &bytes, &rest) != 1 || !bytes || bytes > most)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "its answer is neither 'ok %llu SIZE' nor 'error %llu MESSAGE': '%s'",
                             piped->asked, piped->asked, line);
    if (request->wanted && bytes != request->wanted)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it answered with %llu bytes of pixels, and the image has %llu", bytes,
                             (unsigned long long)request->wanted);
    DL2_TRY(dl2_bytes_resize(out, (size_t)bytes, error));
    return dl2_server_receive(server, out->data, (size_t)bytes, deadline, error);
}

/* The same, of a program that is kept. One that failed is ended, unless it said itself why. */
static int external_serve(const char *command, struct external_server **kept,
                          const struct external_request *request, double timeout,
                          struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_TRY(external_keep(command, kept, error));
    const int status = external_ask(*kept, request, timeout, out, &own);
    dl2_server_count_cpu((*kept)->server);
    if (status == DL2_OK)
        return DL2_OK;
    if (status != DL2_ERR_UNSUPPORTED) {
        external_end(*kept);
        *kept = NULL;
    }
    dl2_error_copy(error, &own);
    return status == DL2_ERR_UNSUPPORTED ? DL2_ERR_FORMAT : status;
}

static int external_encode_piped(const struct dl2_external *external, const struct dl2_image *image,
                                 int quality, struct dl2_bytes *coded, struct dl2_error *error)
{
    const size_t row = (size_t)image->width * image->channels;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes pixels = DL2_BYTES_INIT;
    char rest[128];
    DL2_TRY(dl2_bytes_resize(&pixels, row * image->height, error));
    for (uint32_t y = 0; y < image->height; y++)
        memcpy(pixels.data + y * row, image->data + y * image->stride, row);
    snprintf(rest, sizeof rest, "%u %u %u %d", (unsigned)image->width, (unsigned)image->height,
             (unsigned)image->channels, quality);
    const struct external_request request = {"encode", rest, pixels.data, pixels.size, 0};
    struct external_pool *pool = external->pool;
    pthread_mutex_lock(&pool->mutex);
    struct external_server *piped = pool->idle;
    if (piped)
        pool->idle = piped->next;
    pthread_mutex_unlock(&pool->mutex);
    const int status =
        external_serve(external->encode, &piped, &request, external->timeout, coded, error);
    if (piped) {
        pthread_mutex_lock(&pool->mutex);
        piped->next = pool->idle;
        pool->idle = piped;
        pthread_mutex_unlock(&pool->mutex);
    }
    return status;
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
    if (external_piped(external->encode)) {
        DL2_TRY(external_encode_piped(external, image, options->quality, &coded, error));
        return external_frame(image, external->name, &coded, out, error);
    }
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
    const bool piped = external_piped(options->external->encode);
    return json_pack("{s:o, s:o, s:s}", "encode", dl2_json_text(options->external->encode),
                     "decode", dl2_json_text(options->external->decode), "image",
                     piped ? "pixels" : external_image_codec()->name);
}

/* ---- Decoding */

struct external_state {
    struct dl2_codec_state base; /* block: the file that the decoder wrote */
    const uint8_t *coded;        /* as the encoder wrote it */
    size_t coded_size;
    uint32_t width, height, channels;
    char name[MAX_NAME + 1];
    struct external_server *kept; /* the program that decodes, or NULL */
};

static void external_close(void *state)
{
    struct external_state *external = state;
    external_end(external->kept);
}

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

static int external_decode_piped(struct external_state *external, const char *command,
                                 const struct dl2_decode_request *request, struct dl2_image *image,
                                 struct dl2_error *error)
{
    const size_t row = (size_t)external->width * external->channels;
    struct dl2_bytes *const pixels = &external->base.block;
    char rest[128];
    snprintf(rest, sizeof rest, "%u %u %u %zu", (unsigned)external->width,
             (unsigned)external->height, (unsigned)external->channels, external->coded_size);
    const struct external_request ask = {"decode", rest, external->coded, external->coded_size,
                                         row * external->height};
    DL2_TRY(dl2_image_reshape(image, external->width, external->height, external->channels, error));
    DL2_TRY(
        external_serve(command, &external->kept, &ask, request->external->timeout, pixels, error));
    for (uint32_t y = 0; y < external->height; y++)
        memcpy(image->data + y * image->stride, pixels->data + y * row, row);
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
    const int status = (external_piped(command) ? external_decode_piped : external_decode)(
        external, command, request, image, error);
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
    .close = external_close,
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
    external->pool = dl2_calloc(1, sizeof *external->pool);
    if (external->pool)
        pthread_mutex_init(&external->pool->mutex, NULL);
    external->encode = strndup(encode, (size_t)(semicolon - encode));
    external->decode = strdup(semicolon + 1 + strspn(semicolon + 1, " \t"));
    bool graded = false;
    int status = external->encode && external->decode && external->pool
                     ? DL2_OK
                     : dl2_error_memory(error, "a codec");
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
    external->codec.close = NULL;
    external->codec.encode = external_encode;
    external->codec.encoder_parameters = external_parameters;
    *out = external;
    return DL2_OK;
}

void dl2_external_free(struct dl2_external *external)
{
    if (!external)
        return;
    while (external->pool && external->pool->idle) {
        struct external_server *const piped = external->pool->idle;
        external->pool->idle = piped->next;
        external_end(piped);
    }
    if (external->pool)
        pthread_mutex_destroy(&external->pool->mutex);
    free(external->pool);
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
    if (dl2_command_words(external_piped(command) ? external_piped(command) : command, &words,
                          NULL) < 0)
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
