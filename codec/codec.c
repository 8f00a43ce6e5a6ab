/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/codec.h"

#include "codec/codecs.h"
#include "codec/video.h"
#include "common/file.h"

#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const dl2_pixels_only_words[DL2_PIXELS_ONLY_COUNT] = {
    [DL2_PIXELS_OF_CMYK] = "CMYK",
    [DL2_PIXELS_OF_ARITHMETIC] = "arithmetic codes",
    [DL2_PIXELS_OF_RGB] = "RGB with subsampling",
    [DL2_PIXELS_OF_TAIL] = "too much behind the image",
    [DL2_PIXELS_OF_OTHERS] = "not restored by libjxl"};

extern const struct dl2_codec dl2_codec_jpeg, dl2_codec_webp, dl2_codec_avif, dl2_codec_jp2,
    dl2_codec_jxl, dl2_codec_jxl_lossless, dl2_codec_png, dl2_codec_ppm, dl2_codec_tiff,
    dl2_codec_gif, dl2_codec_bmp, dl2_codec_h264, dl2_codec_h265, dl2_codec_av1, dl2_codec_external;

/*
 * The one table, in the order in which files are sniffed and --help names them. What a build lacks
 * is missing here and nowhere else.
 */
static const struct dl2_codec *const codecs[] = {
#ifdef HAVE_JPEG
    &dl2_codec_jpeg,
#endif
#ifdef HAVE_WEBP
    &dl2_codec_webp,
#endif
#ifdef HAVE_AVIF
    &dl2_codec_avif,
#endif
#ifdef HAVE_JP2
    &dl2_codec_jp2,
#endif
#ifdef HAVE_JXL
    &dl2_codec_jxl,      &dl2_codec_jxl_lossless,
#endif
#ifdef HAVE_PNG
    &dl2_codec_png,
#endif
    &dl2_codec_ppm,
#ifdef HAVE_TIFF
    &dl2_codec_tiff,
#endif
#ifdef HAVE_GIF
    &dl2_codec_gif,
#endif
    &dl2_codec_bmp,
#ifdef HAVE_FFMPEG
    &dl2_codec_h264,     &dl2_codec_h265,
    &dl2_codec_av1,
#endif
    &dl2_codec_external, NULL,
};

/* Images that this build, or any build, can't read are listed too: reading them is an error, which
 * names the format. */
static const char *const other_extensions[] = {
    "jpg", "jpeg", "jpe",  "jfif", "png",  "apng", "webp", "avif", "jp2", "j2k",
    "jpf", "jpx",  "j2c",  "jpc",  "ppm",  "pgm",  "pnm",  "pbm",  "pam", "gif",
    "bmp", "tif",  "tiff", "heic", "heif", "jxl",  "jls",  "jxr",  "tga", "psd",
    "exr", "hdr",  "dds",  "ico",  "svg",  "dng",  "cr2",  "nef",  "arw", NULL,
};

size_t dl2_codec_take(struct dl2_codec_state *state, void *out, size_t count)
{
    const size_t left = state->at < state->size ? state->size - state->at : 0;
    const size_t taken = count < left ? count : left;
    if (taken)
        memcpy(out, state->data + state->at, taken);
    state->at += taken;
    return taken;
}

const struct dl2_codec *dl2_codec_at(size_t index)
{
    return index < sizeof codecs / sizeof *codecs ? codecs[index] : NULL;
}

const struct dl2_codec *dl2_codec_find(const char *name)
{
    for (size_t i = 0; codecs[i]; i++) {
        if (!strcmp(codecs[i]->name, name))
            return codecs[i];
    }
    return NULL;
}

static bool codec_starts(const uint8_t *data, size_t size, const struct dl2_signature *signature)
{
    bool same = size >= signature->length;
    for (unsigned i = 0; same && i < signature->length; i++)
        same = signature->bytes[i] == '?' || (uint8_t)signature->bytes[i] == data[i];
    return same;
}

const struct dl2_codec *dl2_codec_sniff(const uint8_t *data, size_t size)
{
    for (size_t i = 0; codecs[i]; i++) {
        for (const struct dl2_signature *one = codecs[i]->signatures; one->length; one++)
            if (codec_starts(data, size, one))
                return codecs[i];
        if (codecs[i]->sniff && codecs[i]->sniff(data, size))
            return codecs[i];
    }
    return NULL;
}

static bool codec_lists(const char *const *extensions, const char *extension)
{
    for (; *extensions; extensions++)
        if (!strcasecmp(*extensions, extension))
            return true;
    return false;
}

/* Is it a usual extension of files that a codec here decodes? */
static bool codec_has_extension(const char *extension)
{
    for (size_t i = 0; codecs[i]; i++)
        if (codec_lists(codecs[i]->extensions, extension))
            return true;
    return false;
}

bool dl2_codec_is_image_extension(const char *extension)
{
    return codec_has_extension(extension) || codec_lists(other_extensions, extension);
}

bool dl2_codec_reads(const char *extension, const uint8_t *start, size_t size)
{
    if (codec_has_extension(extension))
        return true;
    return size ? dl2_codec_sniff(start, size) != NULL : !codec_lists(other_extensions, extension);
}

bool dl2_codec_is_image_file(const char *path)
{
    if (dl2_codec_is_image_extension(dl2_path_extension(path)))
        return true;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    uint8_t start[64];
    size_t size = fread(start, 1, sizeof start, file);
    fclose(file);
    return dl2_codec_sniff(start, size) != NULL;
}

/* The name of a format that no codec here knows, for the message. */
static const char *codec_foreign_format(const uint8_t *data, size_t size)
{
    static const struct {
        struct dl2_signature signature;
        const char *name;
    } formats[] = {
        {{3, "\xff\xd8\xff"}, "JPEG"},
        {{8, "\x89PNG\r\n\x1a\n"}, "PNG"},
        {{4, "GIF8"}, "GIF"},
        {{2, "BM"}, "this kind of BMP, if it is one"},
        {{4, "II*\0"}, "TIFF"},
        {{4, "MM\0*"}, "TIFF"},
        {{4, "II+\0"}, "TIFF"},
        {{4, "MM\0+"}, "TIFF"},
        {{12, "????????WEBP"}, "WebP"},
        {{12, "????ftypavif"}, "AVIF"},
        {{12, "????ftypavis"}, "AVIF"},
        {{12, "????ftypheic"}, "HEIC"},
        {{12, "????ftypmif1"}, "HEIF"},
        {{12, "????jP  \r\n\x87\n"}, "JPEG 2000"},
        {{4, "\xff\x4f\xff\x51"}, "JPEG 2000"},
        {{2, "\xff\x0a"}, "JPEG XL"},
        {{12, "????JXL \r\n\x87\n"}, "JPEG XL"},
        {{4, "8BPS"}, "Photoshop"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (codec_starts(data, size, &formats[i].signature))
            return formats[i].name;
    if (size >= 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7')
        return "this kind of PNM (P1 to P6 with a size are read)";
    return NULL;
}

int dl2_codec_recognize(const uint8_t *data, size_t size, const struct dl2_codec **out,
                        struct dl2_error *error)
{
    *out = dl2_codec_sniff(data, size);
    if (*out)
        return DL2_OK;
    if (!size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "an empty file");
    const char *name = codec_foreign_format(data, size);
    if (name)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "this build can't read %s", name);
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "not an image of a known kind (it starts with no known signature)");
}

int dl2_image_slice(const uint8_t *data, size_t size, struct dl2_slicing *slicing,
                    struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    return codec && codec->slice ? codec->slice(data, size, slicing, error) : 0;
}

struct dl2_slice_range dl2_image_slices_of(const struct dl2_cuts *cuts, uint32_t x, uint32_t y,
                                           uint32_t width, uint32_t height)
{
    const struct dl2_codec *codec = dl2_codec_sniff(cuts->head, cuts->head_size);
    if (!codec || !codec->join_slices)
        return (struct dl2_slice_range){0};
    const bool transposed = dl2_orientation_transposes(cuts->orientation);
    uint32_t row = transposed ? x : y;
    const uint32_t rows = transposed ? width : height;
    if (dl2_orientation_flips_y(cuts->orientation))
        row = cuts->height - row - rows;
    const uint32_t top = row < codec->slice_margin ? 0 : row - codec->slice_margin;
    const uint64_t bottom = (uint64_t)row + rows + codec->slice_margin;
    const uint64_t end = bottom < cuts->height ? (bottom - 1) / cuts->rows + 1 : cuts->count;
    const uint32_t first = top / cuts->rows, count = (uint32_t)end - first;
    return count < cuts->count ? (struct dl2_slice_range){first, count}
                               : (struct dl2_slice_range){0};
}

int dl2_image_join_slices(const struct dl2_cuts *cuts, struct dl2_slice_range range,
                          const uint8_t *data, size_t size, struct dl2_bytes *out,
                          struct dl2_error *error)
{
    const struct dl2_codec *codec;
    DL2_TRY(dl2_codec_recognize(cuts->head, cuts->head_size, &codec, error));
    return codec->join_slices(cuts, range, data, size, out, error);
}

void dl2_image_slices_origin(const struct dl2_cuts *cuts, struct dl2_slice_range range, uint32_t *x,
                             uint32_t *y)
{
    const uint64_t end = ((uint64_t)range.first + range.count) * cuts->rows;
    const uint32_t before = range.first * cuts->rows;
    const uint32_t behind = end < cuts->height ? cuts->height - (uint32_t)end : 0;
    const uint32_t skipped = dl2_orientation_flips_y(cuts->orientation) ? behind : before;
    const bool transposed = dl2_orientation_transposes(cuts->orientation);
    *x = transposed ? skipped : 0;
    *y = transposed ? 0 : skipped;
}

void dl2_flatten(const uint8_t *in, uint8_t *out, size_t pixels, uint32_t channels,
                 const uint8_t background[3])
{
    const uint8_t gray = dl2_luma(background[0], background[1], background[2]);
    for (; pixels; pixels--, in += channels + 1, out += channels) {
        const uint8_t alpha = in[channels];
        if (channels == 1) {
            out[0] = dl2_blend(in[0], alpha, gray);
        } else {
            for (int c = 0; c < 3; c++)
                out[c] = dl2_blend(in[c], alpha, background[c]);
        }
    }
}

void dl2_flatten_deep(struct dl2_deep_image *image, const uint8_t background[3], bool multiplied)
{
    enum { WHITE = UINT16_MAX };
    const uint32_t channels = image->channels - 1;
    const uint8_t gray = dl2_luma(background[0], background[1], background[2]);
    uint16_t *out = dl2_deep_row(image, 0);
    const uint16_t *in = out;
    if (channels != 1 && channels != 3)
        return;
    for (size_t i = (size_t)image->width * image->height; i; i--, in += channels + 1) {
        const uint32_t alpha = in[channels];
        for (uint32_t c = 0; c < channels; c++) {
            const uint64_t own = (uint64_t)in[c] * (multiplied ? WHITE : alpha);
            const uint64_t behind = (uint64_t)257 * (channels == 1 ? gray : background[c]);
            const uint64_t sum = (own + behind * (WHITE - alpha) + WHITE / 2) / WHITE;
            *out++ = (uint16_t)(sum < WHITE ? sum : WHITE);
        }
    }
    image->channels = channels;
}

static int codec_check_encode(const struct dl2_codec *codec, const struct dl2_image *image,
                              const struct dl2_encode_options *options, struct dl2_error *error)
{
    if (!codec->encode)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s can be read but not written",
                             codec->name);
    if (codec->lossy && (options->quality < 1 || options->quality > 100))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "quality %d is not within 1 to 100",
                             options->quality);
    if (!image->data || (image->channels != 1 && image->channels != 3))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no image to encode");
    if (image->width > codec->max_side || image->height > codec->max_side)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%ux%u pixels: %s takes at most %u pixels a side",
                             (unsigned)image->width, (unsigned)image->height, codec->name,
                             (unsigned)codec->max_side);
    if (options->effort > codec->max_effort || options->effort < -1)
        return codec->max_effort < 0
                   ? dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no effort to choose",
                                   codec->name)
                   : dl2_error_set(error, DL2_ERR_ARGUMENT, "the effort of %s is 0 to %d, not %d",
                                   codec->name, codec->max_effort, options->effort);
    if (options->indices && (!codec->has_palette || image->channels != 1 || !options->source))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s can't write numbers of a palette",
                             codec->name);
    if (codec->has_subsampling && !dl2_subsampling_find(options->subsampling))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no chroma subsampling called \"%s\": 420, 422 or 444",
                             options->subsampling);
    if (codec->has_restart && !dl2_restart_find(options->restart))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no restart intervals called \"%s\": tiles or none", options->restart);
    return DL2_OK;
}

int dl2_image_encode(const struct dl2_codec *codec, const struct dl2_image *image,
                     const struct dl2_encode_options *options, struct dl2_bytes *out,
                     struct dl2_error *error)
{
    return dl2_image_encode_sweep(codec, image, options, &options->quality, out, 1, error);
}

int dl2_image_encode_sweep(const struct dl2_codec *codec, const struct dl2_image *image,
                           const struct dl2_encode_options *options, const int *qualities,
                           struct dl2_bytes *outs, size_t count, struct dl2_error *error)
{
    struct dl2_encode_options one = *options;
    for (size_t i = 0; i < count; i++) {
        one.quality = qualities[i];
        DL2_TRY(codec_check_encode(codec, image, &one, error));
        outs[i].size = 0;
    }
    if (codec->encode_sweep)
        return codec->encode_sweep(image, options, qualities, outs, count, error);
    for (size_t i = 0; i < count; i++) {
        one.quality = qualities[i];
        DL2_TRY(codec->encode(image, &one, &outs[i], error));
    }
    return DL2_OK;
}

int dl2_gray_encode(const struct dl2_codec *codec, const struct dl2_gray *image,
                    const struct dl2_encode_options *options, struct dl2_bytes *out,
                    struct dl2_error *error)
{
    const struct dl2_image shape = {.data = (uint8_t *)image->samples,
                                    .width = image->width,
                                    .height = image->height,
                                    .channels = 1};
    if (!codec->encode_gray)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s is written with 8 bits a sample, too few for slices of volumes",
                             codec->name);
    if (image->bits < DL2_GRAY_MIN_BITS || image->bits > DL2_GRAY_MAX_BITS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%u bits a sample, not %d to %d", image->bits,
                             DL2_GRAY_MIN_BITS, DL2_GRAY_MAX_BITS);
    struct dl2_encode_options own = *options;
    own.gray = true;
    DL2_TRY(codec_check_encode(codec, &shape, &own, error));
    out->size = 0;
    return codec->encode_gray(image, &own, out, error);
}

const char *dl2_codec_version(const struct dl2_codec *codec, char memory[DL2_CODEC_VERSION_SIZE])
{
    if (codec->version)
        return codec->version;
    codec->find_version(memory);
    return memory;
}

json_t *dl2_codec_versions(void)
{
    char memory[DL2_CODEC_VERSION_SIZE];
    json_t *versions = json_object();
    for (size_t i = 0; versions && codecs[i]; i++)
        if (!codecs[i]->video && /* whose libraries would be loaded */
            json_object_set_new(versions, codecs[i]->name,
                                json_string(dl2_codec_version(codecs[i], memory))) < 0) {
            json_decref(versions);
            return NULL;
        }
    return versions;
}

void dl2_codec_print_versions(FILE *out)
{
    char memory[DL2_CODEC_VERSION_SIZE];
    for (size_t i = 0; codecs[i]; i++)
        fprintf(out, "  %s: %s\n", codecs[i]->name, dl2_codec_version(codecs[i], memory));
    if (*dl2_video_version())
        fprintf(out, "  videos: %s\n", dl2_video_version());
}

void dl2_codec_list(FILE *out)
{
    for (size_t i = 0; codecs[i]; i++)
        if (dl2_codec_encodes(codecs[i]))
            fprintf(out, "%s\t%s\t%s%s\n", codecs[i]->name, codecs[i]->lossy ? "lossy" : "lossless",
                    codecs[i]->extension, codecs[i]->video ? "\tvideo" : "");
}

const char *const dl2_subsamplings[] = {"420", "422", "444", NULL};
const char *const dl2_restarts[] = {"tiles", "none", NULL};

/* The first for NULL. */
static const char *codec_find_word(const char *wanted, const char *const *known)
{
    while (wanted && *known && strcmp(wanted, *known) != 0)
        known++;
    return *known;
}

const char *dl2_subsampling_find(const char *wanted)
{
    return codec_find_word(wanted, dl2_subsamplings);
}

const char *dl2_restart_find(const char *wanted)
{
    return codec_find_word(wanted, dl2_restarts);
}
