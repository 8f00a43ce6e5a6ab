#include "codec/codec.h"

#include "codec/codecs.h"
#include "common/file.h"

#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
#ifdef HAVE_PNG
    &dl2_codec_png,
#endif
    &dl2_codec_ppm,  NULL,
};

/* Images that this build, or any build, can't read are still images, and a reader says so. */
static const char *const other_extensions[] = {
    "jpg", "jpeg", "jpe",  "jfif", "png",  "apng", "webp", "avif", "jp2", "j2k",
    "jpf", "jpx",  "j2c",  "jpc",  "ppm",  "pgm",  "pnm",  "pbm",  "pam", "gif",
    "bmp", "tif",  "tiff", "heic", "heif", "jxl",  "jls",  "jxr",  "tga", "psd",
    "exr", "hdr",  "dds",  "ico",  "svg",  "dng",  "cr2",  "nef",  "arw", NULL,
};

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

const struct dl2_codec *dl2_codec_sniff(const uint8_t *data, size_t size)
{
    for (size_t i = 0; codecs[i]; i++) {
        if (codecs[i]->sniff(data, size))
            return codecs[i];
    }
    return NULL;
}

bool dl2_codec_is_image_extension(const char *extension)
{
    for (size_t i = 0; codecs[i]; i++) {
        for (const char *const *known = codecs[i]->extensions; *known; known++) {
            if (!strcasecmp(*known, extension))
                return true;
        }
    }
    for (const char *const *known = other_extensions; *known; known++) {
        if (!strcasecmp(*known, extension))
            return true;
    }
    return false;
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

/* What bytes that no codec here knows are, so that the message can name it. */
static const char *foreign_format(const uint8_t *data, size_t size)
{
    static const struct {
        size_t at, length;
        const char *magic, *name;
    } formats[] = {
        {0, 3, "\xff\xd8\xff", "JPEG"},
        {0, 8, "\x89PNG\r\n\x1a\n", "PNG"},
        {0, 4, "GIF8", "GIF"},
        {0, 2, "BM", "BMP"},
        {0, 4, "II*\0", "TIFF"},
        {0, 4, "MM\0*", "TIFF"},
        {8, 4, "WEBP", "WebP"},
        {4, 8, "ftypavif", "AVIF"},
        {4, 8, "ftypavis", "AVIF"},
        {4, 8, "ftypheic", "HEIC"},
        {4, 8, "ftypmif1", "HEIF"},
        {4, 8, "jP  \r\n\x87\n", "JPEG 2000"},
        {0, 4, "\xff\x4f\xff\x51", "JPEG 2000"},
        {0, 2, "\xff\x0a", "JPEG XL"},
        {4, 8, "JXL \r\n\x87\n", "JPEG XL"},
        {0, 4, "8BPS", "Photoshop"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t end = formats[i].at + formats[i].length;
        if (size >= end && !memcmp(data + formats[i].at, formats[i].magic, formats[i].length))
            return formats[i].name;
    }
    if (size >= 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7')
        return "this kind of PNM (only P5 and P6 are read)";
    return NULL;
}

static int sniff_or_say_why(const uint8_t *data, size_t size, const struct dl2_codec **out,
                            struct dl2_error *error)
{
    *out = dl2_codec_sniff(data, size);
    if (*out)
        return DL2_OK;
    if (!size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "an empty file");
    const char *name = foreign_format(data, size);
    if (name)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "this build can't read %s", name);
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "not an image of a known kind (it starts with no known signature)");
}

static int read_info(const struct dl2_codec *codec, const uint8_t *data, size_t size,
                     struct dl2_image_info *info, struct dl2_error *error)
{
    *info = (struct dl2_image_info){.orientation = 1};
    return codec->read_info(data, size, info, error);
}

int dl2_image_read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                        struct dl2_error *error)
{
    const struct dl2_codec *codec;
    DL2_TRY(sniff_or_say_why(data, size, &codec, error));
    return read_info(codec, data, size, info, error);
}

/* BT.601 luma, in place: a gray pixel never lies behind the colour pixel that it comes from. */
int dl2_image_to_gray(struct dl2_image *image, struct dl2_error *error)
{
    if (image->channels == 1)
        return DL2_OK;
    size_t pixels = (size_t)image->width * image->height;
    const uint8_t *in = image->data;
    uint8_t *out = image->data;
    for (size_t i = 0; i < pixels; i++, in += 3)
        out[i] = dl2_luma(in[0], in[1], in[2]);
    return dl2_image_reshape(image, image->width, image->height, 1, error);
}

static int convert_to_rgb(struct dl2_image *image, struct dl2_image *scratch,
                          struct dl2_error *error)
{
    DL2_TRY(dl2_image_reshape(scratch, image->width, image->height, 3, error));
    size_t pixels = (size_t)image->width * image->height;
    const uint8_t *in = image->data;
    uint8_t *out = scratch->data;
    for (size_t i = 0; i < pixels; i++, out += 3)
        out[0] = out[1] = out[2] = in[i];
    struct dl2_image swapped = *scratch;
    *scratch = *image;
    *image = swapped;
    return DL2_OK;
}

static int decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_image *scratch, struct dl2_error *error)
{
    const struct dl2_codec *codec;
    struct dl2_image_info info;
    DL2_TRY(sniff_or_say_why(data, size, &codec, error));
    DL2_TRY(read_info(codec, data, size, &info, error));
    DL2_TRY(dl2_image_check_size(info.width, info.height, options->max_pixels, error));
    DL2_TRY(codec->decode(data, size, options, image, error));
    if (options->channels == 1)
        DL2_TRY(dl2_image_to_gray(image, error));
    if (!options->keep_orientation)
        DL2_TRY(dl2_image_orient(image, info.orientation, scratch, error));
    if (options->channels == 3 && image->channels == 1)
        DL2_TRY(convert_to_rgb(image, scratch, error));
    return DL2_OK;
}

int dl2_image_decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                     struct dl2_image *image, struct dl2_image *scratch, struct dl2_error *error)
{
    struct dl2_decode_options resolved = *options;
    if (!resolved.max_pixels)
        resolved.max_pixels = DL2_DEFAULT_MAX_PIXELS;
    if (resolved.channels != 0 && resolved.channels != 1 && resolved.channels != 3)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "an image can't have %u channels",
                             (unsigned)resolved.channels);
    return decode(data, size, &resolved, image, scratch, error);
}

int dl2_image_encode(const struct dl2_codec *codec, const struct dl2_image *image,
                     const struct dl2_encode_options *options, struct dl2_bytes *out,
                     struct dl2_error *error)
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
    if (options->effort > codec->max_effort)
        return codec->max_effort < 0
                   ? dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no effort to choose",
                                   codec->name)
                   : dl2_error_set(error, DL2_ERR_ARGUMENT, "the effort of %s is 0 to %d, not %d",
                                   codec->name, codec->max_effort, options->effort);
    if (codec->has_subsampling && !dl2_subsampling_find(options->subsampling))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no chroma subsampling called \"%s\": 420, 422 or 444",
                             options->subsampling);
    if (codec->has_restart && !dl2_restart_find(options->restart))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no restart intervals called \"%s\": tiles or none", options->restart);
    out->size = 0;
    return codec->encode(image, options, out, error);
}

json_t *dl2_codec_versions(void)
{
    json_t *versions = json_object();
    for (size_t i = 0; versions && codecs[i]; i++) {
        if (json_object_set_new(versions, codecs[i]->name, json_string(codecs[i]->version())) < 0) {
            json_decref(versions);
            return NULL;
        }
    }
    return versions;
}

void dl2_codec_print_versions(FILE *out)
{
    for (size_t i = 0; codecs[i]; i++)
        fprintf(out, "  %s: %s\n", codecs[i]->name, codecs[i]->version());
}

/* The first for NULL. */
static const char *find_word(const char *wanted, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!wanted || !strcmp(wanted, known[i]))
            return known[i];
    }
    return NULL;
}

const char *dl2_subsampling_find(const char *wanted)
{
    static const char *const known[] = {"420", "422", "444"};
    return find_word(wanted, known, sizeof known / sizeof *known);
}

const char *dl2_restart_find(const char *wanted)
{
    static const char *const known[] = {"tiles", "none"};
    return find_word(wanted, known, sizeof known / sizeof *known);
}
