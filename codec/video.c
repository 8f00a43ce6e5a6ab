/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/video.h"

#include "config.h"

#include <string.h>

extern const struct dl2_video_engine dl2_video_ffmpeg;

/* The engine of this build, or none. */
static const struct dl2_video_engine *const engines[] = {
#ifdef HAVE_FFMPEG
    &dl2_video_ffmpeg,
#endif
    NULL,
};

const char *dl2_video_missing(void)
{
    return engines[0] ? engines[0]->missing()
                      : "this build cannot read videos: configure found no FFmpeg libraries "
                        "(Debian: libavformat-dev libavcodec-dev libavutil-dev libswscale-dev)";
}

const char *dl2_video_version(void)
{
    return engines[0] ? engines[0]->version() : "";
}

int dl2_video_open(const uint8_t *data, size_t size, uint64_t max_pixels, struct dl2_video **out,
                   struct dl2_error *error)
{
    *out = NULL;
    const char *none = dl2_video_missing();
    if (none)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", none);
    if (!size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the file is empty");
    const uint64_t missing = dl2_video_bytes_missing(data, size);
    if (missing)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the video is cut off after %zu bytes, where %llu more should follow; "
                             "copy it again",
                             size, (unsigned long long)missing);
    return engines[0]->open(data, size, max_pixels ? max_pixels : DL2_DEFAULT_MAX_PIXELS, out,
                            error);
}

/* Only an engine makes a video, so there is one below. */
void dl2_video_close(struct dl2_video *video)
{
    if (video)
        engines[0]->close(video);
}

const struct dl2_video_info *dl2_video_info(const struct dl2_video *video)
{
    return engines[0]->info(video);
}

size_t dl2_video_memory(const struct dl2_video *video)
{
    return video ? engines[0]->memory(video) : 0;
}

int dl2_video_seek(struct dl2_video *video, size_t number, struct dl2_error *error)
{
    return engines[0]->seek(video, number, error);
}

uint64_t dl2_video_times_before(const struct dl2_video *video, size_t number,
                                struct dl2_frame_rate rate)
{
    return engines[0]->times_before(video, number, rate);
}

int dl2_video_pixels(struct dl2_video *video, struct dl2_raster *raster, struct dl2_error *error)
{
    return engines[0]->pixels(video, raster, error);
}

int dl2_video_image(struct dl2_video *video, size_t number, const struct dl2_resolution *resolution,
                    struct dl2_resizer *resizer, struct dl2_image *image, struct dl2_error *error)
{
    const struct dl2_video_info *info = dl2_video_info(video);
    struct dl2_raster raster;
    DL2_TRY(dl2_video_seek(video, number, error));
    DL2_TRY(dl2_video_pixels(video, &raster, error));
    uint32_t width = info->width, height = info->height; /* the first frame has said them */
    if (resolution)
        dl2_resolution_apply(resolution, &width, &height);
    DL2_TRY(dl2_image_reshape(image, width, height, 3, error));
    const struct dl2_box whole = {0, 0, info->width, info->height};
    const struct dl2_resize_output out = {.data = image->data,
                                          .width = width,
                                          .height = height,
                                          .channels = 3,
                                          .dtype = DL2_UINT8,
                                          .layout = DL2_NHWC,
                                          .interpolation =
                                              resolution ? resolution->filter : DL2_BILINEAR};
    return dl2_resize_raster(resizer, &raster, &whole, &whole, &out, error);
}

/* ---- Files that are cut off */

static uint64_t big_endian(const uint8_t *data, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | data[i];
    return value;
}

/* ISO/IEC 14496-12: boxes of a size, a type and contents. Others than these end the walk. */
static uint64_t missing_of_mp4(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"ftyp", "moov", "mdat", "moof", "free", "skip", "wide",
                                        "styp", "sidx", "mfra", "uuid", "pdin", "meta", "udta"};
    for (size_t at = 0; size - at >= 8;) {
        uint64_t length = big_endian(data + at, 4);
        bool known = false;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            known |= !memcmp(data + at + 4, types[i], 4);
        if (length == 1 && size - at >= 16)
            length = big_endian(data + at + 8, 8);
        if (!known || length < 8) /* 0: to the end of the file */
            return 0;
        if (length > size - at)
            return length - (size - at);
        at += (size_t)length;
    }
    return 0;
}

/* An EBML number (RFC 8794) of 1 to 8 bytes: its length; 0: it is none. UINT64_MAX is unknown. */
static size_t read_ebml(const uint8_t *data, size_t size, uint64_t *value)
{
    size_t length = 1;
    while (length <= 8 && size && !(data[0] >> (8 - length) & 1))
        length++;
    if (length > 8 || length > size)
        return 0;
    const uint64_t all = ((uint64_t)1 << 7 * length) - 1;
    *value = big_endian(data, (unsigned)length) & all;
    if (*value == all)
        *value = UINT64_MAX;
    return length;
}

/* The EBML header, then a segment with everything. */
static uint64_t missing_of_matroska(const uint8_t *data, size_t size)
{
    uint64_t length;
    size_t digits = read_ebml(data + 4, size - 4, &length);
    if (!digits || length > size - 4 - digits)
        return 0;
    size_t at = 4 + digits + (size_t)length;
    if (size - at < 4 || memcmp(data + at, "\x18\x53\x80\x67", 4) != 0)
        return 0;
    at += 4;
    digits = read_ebml(data + at, size - at, &length);
    at += digits;
    return digits && length != UINT64_MAX && length > size - at ? length - (size - at) : 0;
}

/* RIFF: "RIFF", a size in little endian, a type. Larger files have several of these chunks. */
static uint64_t missing_of_avi(const uint8_t *data, size_t size)
{
    for (size_t at = 0; size - at >= 12 && !memcmp(data + at, "RIFF", 4);) {
        const uint64_t length = (uint64_t)data[at + 7] << 24 | (uint64_t)data[at + 6] << 16 |
                                (uint64_t)data[at + 5] << 8 | data[at + 4];
        if (length < 4) /* an encoder that could not go back to write it */
            return 0;
        if (length > size - at - 8)
            return length - (size - at - 8);
        at += 8 + (size_t)length + (length & 1 && length < size - at - 8);
    }
    return 0;
}

uint64_t dl2_video_bytes_missing(const uint8_t *data, size_t size)
{
    if (size < 12)
        return 0;
    if (!memcmp(data, "\x1a\x45\xdf\xa3", 4))
        return missing_of_matroska(data, size);
    if (!memcmp(data, "RIFF", 4))
        return missing_of_avi(data, size);
    return missing_of_mp4(data, size);
}
