/* SPDX-License-Identifier: BSD-2-Clause */
/* H.264, H.265 and AV1 by the encoders in FFmpeg's libraries, in MP4. */
#include "codec/ffmpeg_libraries.h"
#include "codec/video_encoder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct dl2_ffmpeg *const ffmpeg = &dl2_ffmpeg;

struct dl2_video_encoder {
    const struct dl2_codec *codec;
    AVCodecContext *context;
    AVFormatContext *format; /* its `pb` is in memory */
    AVBSFContext *filter;
    AVPacket *packet;
    AVFrame *frame;
    struct SwsContext *scaler;
    struct dl2_bytes rgb;
    size_t frames;
};

/* ---- Errors */

static int fail(const struct dl2_video_encoder *encoder, int code, const char *doing,
                struct dl2_error *error)
{
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    ffmpeg->av_strerror(code, why, sizeof why);
    return dl2_error_set(error, code == AVERROR(ENOMEM) ? DL2_ERR_MEMORY : DL2_ERR_UNSUPPORTED,
                         "%s: %s %s: %s", encoder->codec->name, encoder->codec->video->encoder,
                         doing, why);
}

static int no_memory(struct dl2_error *error)
{
    return dl2_error_memory(error, "a video");
}

static const char *find_missing(const struct dl2_codec *codec)
{
    static _Thread_local char message[160];
    const char *none = dl2_ffmpeg_missing();
    if (none)
        return none;
    if (ffmpeg->avcodec_find_encoder_by_name(codec->video->encoder))
        return NULL;
    snprintf(message, sizeof message,
             "FFmpeg's libraries here lack the encoder %s (Debian: libavcodec%d has it)",
             codec->video->encoder, LIBAVCODEC_VERSION_MAJOR);
    return message;
}

/* ---- What options come to */

static enum AVPixelFormat find_format(const struct dl2_encode_options *options)
{
    const char *subsampling = dl2_subsampling_find(options->subsampling);
    return !subsampling                  ? AV_PIX_FMT_NONE
           : !strcmp(subsampling, "444") ? AV_PIX_FMT_YUV444P
           : !strcmp(subsampling, "422") ? AV_PIX_FMT_YUV422P
                                         : AV_PIX_FMT_YUV420P;
}

#define GOP "gop"

/* The value of a setting as FFmpeg takes it. */
static void print_value(const struct dl2_setting *row, double value, char *out, size_t size)
{
    if (row->words)
        snprintf(out, size, "%s", row->words[(int)value]);
    else
        snprintf(out, size, "%g", value);
}

/* FFmpeg's name of a setting, which has no "_". */
static void print_name(const struct dl2_setting *row, char *out, size_t size)
{
    snprintf(out, size, "%s", row->name);
    for (char *at = out; (at = strchr(at, '_'));)
        *at = '-';
}

static json_t *describe(const struct dl2_codec *codec, const struct dl2_encode_options *options)
{
    const struct dl2_video_coding *video = codec->video;
    json_t *json = json_pack("{s:s, s:i, s:s, s:s, s:s}", "encoder", video->encoder, "crf",
                             options->quality, "chroma", dl2_subsampling_find(options->subsampling),
                             "matrix", "BT.601", "range", "limited");
    bool bad = !json;
    if (video->options[0])
        bad |= json_object_set_new(json, video->options[0], json_string(video->options[1]));
    for (unsigned i = 0; !bad && codec->settings[i].name; i++) {
        char value[32];
        print_value(&codec->settings[i], dl2_setting_value(codec->settings, options, i), value,
                    sizeof value);
        bad |= json_object_set_new(json, codec->settings[i].name, json_string(value)) < 0;
    }
    if (!bad)
        return json;
    json_decref(json);
    return NULL;
}

static void print_version(const struct dl2_codec *codec, char out[DL2_CODEC_VERSION_SIZE])
{
    char library[64];
    const char *version = dl2_ffmpeg_version();
    if (!*version) {
        snprintf(out, DL2_CODEC_VERSION_SIZE, "FFmpeg's libraries are not installed");
        return;
    }
    dl2_ffmpeg_find_library(codec->video->library, library, sizeof library);
    snprintf(out, DL2_CODEC_VERSION_SIZE, "%s, %s", *library ? library : codec->video->encoder,
             version);
}

/* ---- Opening */

static int set_options(const struct dl2_video_encoder *encoder,
                       const struct dl2_encode_options *options, AVDictionary **out)
{
    const struct dl2_codec *codec = encoder->codec;
    const struct dl2_video_coding *video = codec->video;
    char name[32], value[32];
    snprintf(value, sizeof value, "%d", options->quality);
    int code = ffmpeg->av_dict_set(out, "crf", value, 0);
    if (code >= 0 && video->options[0])
        code = ffmpeg->av_dict_set(out, video->options[0], video->options[1], 0);
    for (unsigned i = 0; code >= 0 && codec->settings[i].name; i++) {
        const double given = dl2_setting_value(codec->settings, options, i);
        print_name(&codec->settings[i], name, sizeof name);
        print_value(&codec->settings[i], given, value, sizeof value);
        if (!strcmp(name, GOP))
            encoder->context->gop_size = (int)given;
        else
            code = ffmpeg->av_dict_set(out, name, value, 0);
    }
    return code;
}

static int open_context(struct dl2_video_encoder *encoder, const struct dl2_encode_options *options,
                        uint32_t width, uint32_t height, struct dl2_frame_rate rate,
                        struct dl2_error *error)
{
    const AVCodec *codec = ffmpeg->avcodec_find_encoder_by_name(encoder->codec->video->encoder);
    AVCodecContext *context = encoder->context = ffmpeg->avcodec_alloc_context3(codec);
    AVDictionary *given = NULL;
    if (!context)
        return no_memory(error);
    context->width = (int)width;
    context->height = (int)height;
    context->pix_fmt = find_format(options);
    context->time_base = (AVRational){(int)rate.denominator, (int)rate.numerator};
    context->framerate = (AVRational){(int)rate.numerator, (int)rate.denominator};
    context->sample_aspect_ratio = (AVRational){1, 1};
    context->color_range = AVCOL_RANGE_MPEG;
    context->colorspace = AVCOL_SPC_SMPTE170M;
    context->chroma_sample_location = AVCHROMA_LOC_CENTER;
    context->thread_count = 1; /* the same bytes on each machine */
    context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
    int code = set_options(encoder, options, &given);
    if (code >= 0)
        code = ffmpeg->avcodec_open2(context, codec, &given);
    ffmpeg->av_dict_free(&given);
    return code < 0 ? fail(encoder, code, "cannot encode with these settings or this size", error)
                    : DL2_OK;
}

static int open_file(struct dl2_video_encoder *encoder, struct dl2_error *error)
{
    const char *filter = encoder->codec->video->filter;
    int code = ffmpeg->avformat_alloc_output_context2(&encoder->format, NULL, "mp4", NULL);
    AVFormatContext *format = encoder->format;
    AVStream *stream = code < 0 ? NULL : ffmpeg->avformat_new_stream(format, NULL);
    if (!stream)
        return no_memory(error);
    format->flags |= AVFMT_FLAG_BITEXACT; /* no time, no names of libraries */
    stream->time_base = encoder->context->time_base;
    stream->avg_frame_rate = encoder->context->framerate;
    code = ffmpeg->av_bsf_list_parse_str(filter ? filter : "null", &encoder->filter);
    if (code >= 0)
        code = ffmpeg->avcodec_parameters_from_context(encoder->filter->par_in, encoder->context);
    if (code >= 0) {
        encoder->filter->time_base_in = encoder->context->time_base;
        code = ffmpeg->av_bsf_init(encoder->filter);
    }
    if (code >= 0)
        code = ffmpeg->avcodec_parameters_copy(stream->codecpar, encoder->filter->par_out);
    if (code >= 0)
        code = ffmpeg->avio_open_dyn_buf(&format->pb);
    if (code >= 0)
        code = ffmpeg->avformat_write_header(format, NULL);
    return code < 0 ? fail(encoder, code, "cannot begin an MP4", error) : DL2_OK;
}

static int open_frame(struct dl2_video_encoder *encoder, struct dl2_error *error)
{
    const AVCodecContext *context = encoder->context;
    encoder->packet = ffmpeg->av_packet_alloc();
    AVFrame *frame = encoder->frame = ffmpeg->av_frame_alloc();
    if (!encoder->packet || !frame)
        return no_memory(error);
    frame->width = context->width;
    frame->height = context->height;
    frame->format = context->pix_fmt;
    frame->color_range = context->color_range;
    frame->colorspace = context->colorspace;
    frame->chroma_location = context->chroma_sample_location;
    frame->sample_aspect_ratio = context->sample_aspect_ratio;
    if (ffmpeg->av_frame_get_buffer(frame, 0) < 0)
        return no_memory(error);
    encoder->scaler = ffmpeg->sws_getCachedContext(
        NULL, context->width, context->height, AV_PIX_FMT_RGB24, context->width, context->height,
        context->pix_fmt,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
        NULL, NULL, NULL);
    if (!encoder->scaler)
        return no_memory(error);
    ffmpeg->sws_setColorspaceDetails(encoder->scaler, ffmpeg->sws_getCoefficients(SWS_CS_DEFAULT),
                                     1, ffmpeg->sws_getCoefficients(SWS_CS_SMPTE170M), 0, 0,
                                     1 << 16, 1 << 16);
    return DL2_OK;
}

static int check_shape(const struct dl2_codec *codec, const struct dl2_encode_options *options,
                       uint32_t width, uint32_t height, struct dl2_error *error)
{
    const enum AVPixelFormat format = find_format(options);
    if (options->quality < 1 || options->quality > codec->video->max_crf)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the CRF of %s is 1 to %d, not %d",
                             codec->name, codec->video->max_crf, options->quality);
    if (format == AV_PIX_FMT_NONE)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no chroma subsampling called \"%s\"",
                             options->subsampling);
    if (!width || !height || width > codec->max_side || height > codec->max_side)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%" PRIu32 "x%" PRIu32 " pixels: %s takes at most %" PRIu32
                             " pixels a side",
                             width, height, codec->name, codec->max_side);
    if (width < codec->video->min_side || height < codec->video->min_side)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "frames of %" PRIu32 "x%" PRIu32 " pixels: %s takes at least %" PRIu32
                             " pixels a side",
                             width, height, codec->name, codec->video->min_side);
    if ((width % 2 && format != AV_PIX_FMT_YUV444P) || (height % 2 && format == AV_PIX_FMT_YUV420P))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "frames of %" PRIu32 "x%" PRIu32 " pixels have an odd side, which "
                             "subsampled chroma cannot have; pass --subsampling 444, or resize "
                             "them to even sides",
                             width, height);
    return DL2_OK;
}

static void close_encoder(struct dl2_video_encoder *encoder)
{
    uint8_t *data = NULL;
    if (!encoder)
        return;
    if (encoder->format && encoder->format->pb)
        ffmpeg->avio_close_dyn_buf(encoder->format->pb, &data);
    if (encoder->format)
        encoder->format->pb = NULL;
    ffmpeg->av_free(data);
    ffmpeg->avformat_free_context(encoder->format);
    ffmpeg->avcodec_free_context(&encoder->context);
    ffmpeg->av_bsf_free(&encoder->filter);
    ffmpeg->av_packet_free(&encoder->packet);
    ffmpeg->av_frame_free(&encoder->frame);
    ffmpeg->sws_freeContext(encoder->scaler);
    dl2_bytes_free(&encoder->rgb);
    free(encoder);
}

static int open_encoder(const struct dl2_codec *codec, const struct dl2_encode_options *options,
                        uint32_t width, uint32_t height, struct dl2_frame_rate rate,
                        struct dl2_video_encoder **out, struct dl2_error *error)
{
    struct dl2_video_encoder *encoder;
    const char *missing = find_missing(codec);
    if (missing)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s: %s", codec->name, missing);
    DL2_TRY(check_shape(codec, options, width, height, error));
    dl2_ffmpeg_be_quiet();
    DL2_TRY(DL2_NEW(&encoder, 1, "a video", error));
    encoder->codec = codec;
    int status = open_context(encoder, options, width, height, rate, error);
    if (status == DL2_OK)
        status = open_file(encoder, error);
    if (status == DL2_OK)
        status = open_frame(encoder, error);
    if (status < 0)
        close_encoder(encoder);
    else
        *out = encoder;
    return status;
}

/* ---- Frames */

/* Passes the encoder's packet through the filter to the file; `packet` NULL: there are no more. */
static int write_packet(struct dl2_video_encoder *encoder, AVPacket *packet)
{
    AVStream *stream = encoder->format->streams[0];
    int code = ffmpeg->av_bsf_send_packet(encoder->filter, packet);
    while (code >= 0 &&
           (code = ffmpeg->av_bsf_receive_packet(encoder->filter, encoder->packet)) >= 0) {
        encoder->packet->stream_index = stream->index;
        if (!encoder->packet->duration)
            encoder->packet->duration = 1;
        ffmpeg->av_packet_rescale_ts(encoder->packet, encoder->context->time_base,
                                     stream->time_base);
        code = ffmpeg->av_interleaved_write_frame(encoder->format, encoder->packet);
    }
    return code == AVERROR(EAGAIN) || code == AVERROR_EOF ? 0 : code;
}

/* `frame` NULL: there are no more. */
static int encode(struct dl2_video_encoder *encoder, const AVFrame *frame, struct dl2_error *error)
{
    int code = ffmpeg->avcodec_send_frame(encoder->context, frame);
    while (code >= 0 &&
           (code = ffmpeg->avcodec_receive_packet(encoder->context, encoder->packet)) >= 0)
        code = write_packet(encoder, encoder->packet);
    if (code == AVERROR_EOF)
        code = write_packet(encoder, NULL);
    return code < 0 && code != AVERROR(EAGAIN) ? fail(encoder, code, "cannot encode a frame", error)
                                               : DL2_OK;
}

/* The frame's pixels in RGB, in rows with room behind them, which the scaler reads in steps. */
static int to_rgb(struct dl2_video_encoder *encoder, const struct dl2_image *image, size_t *stride,
                  struct dl2_error *error)
{
    enum { ROOM = 64 };
    const size_t width = image->width;
    *stride = (3 * width + 2 * ROOM - 1) / ROOM * ROOM;
    DL2_TRY(dl2_bytes_resize(&encoder->rgb, *stride * image->height, error));
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t *from = image->data + y * image->stride;
        uint8_t *to = encoder->rgb.data + y * *stride;
        if (image->channels == 3)
            memcpy(to, from, 3 * width);
        for (size_t x = 0; image->channels == 1 && x < width; x++)
            memset(to + 3 * x, from[x], 3);
        memset(to + 3 * width, 0, *stride - 3 * width);
    }
    return DL2_OK;
}

static int add_frame(struct dl2_video_encoder *encoder, const struct dl2_image *image,
                     struct dl2_error *error)
{
    const AVCodecContext *context = encoder->context;
    AVFrame *frame = encoder->frame;
    size_t stride;
    if ((int)image->width != context->width || (int)image->height != context->height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is of %" PRIu32 "x%" PRIu32 " pixels, the first frame of its clip "
                             "of %dx%d; frames of a video are of one size",
                             image->width, image->height, context->width, context->height);
    DL2_TRY(to_rgb(encoder, image, &stride, error));
    if (ffmpeg->av_frame_make_writable(frame) < 0)
        return no_memory(error);
    for (size_t i = 0; i < sizeof frame->buf / sizeof *frame->buf && frame->buf[i]; i++)
        memset(frame->buf[i]->data, 0, frame->buf[i]->size); /* encoders read behind rows */
    const int strides[4] = {(int)stride};
    const uint8_t *const from[4] = {encoder->rgb.data};
    ffmpeg->sws_scale(encoder->scaler, from, strides, 0, context->height, frame->data,
                      frame->linesize);
    frame->pts = (int64_t)encoder->frames++;
    return encode(encoder, frame, error);
}

/* ---- The file */

static int check_file(const struct dl2_video_encoder *encoder, const struct dl2_bytes *file,
                      struct dl2_error *error)
{
    struct dl2_video *video;
    DL2_TRY(dl2_video_open(file->data, file->size, UINT32_MAX, &video, error));
    const struct dl2_video_info *info = dl2_video_info(video);
    int status = dl2_video_seek(video, 0, error);
    if (status == DL2_OK &&
        (info->frames != encoder->frames || info->width != (uint32_t)encoder->context->width ||
         info->height != (uint32_t)encoder->context->height))
        status =
            dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                          "the file of %s has %zu frames of %" PRIu32 "x%" PRIu32
                          " pixels instead of %zu of %dx%d",
                          encoder->codec->video->encoder, info->frames, info->width, info->height,
                          encoder->frames, encoder->context->width, encoder->context->height);
    dl2_video_close(video);
    return status;
}

static int finish_file(struct dl2_video_encoder *encoder, struct dl2_bytes *out,
                       struct dl2_error *error)
{
    uint8_t *data = NULL;
    DL2_TRY(encode(encoder, NULL, error));
    const int code = ffmpeg->av_write_trailer(encoder->format);
    const int size = ffmpeg->avio_close_dyn_buf(encoder->format->pb, &data);
    encoder->format->pb = NULL;
    int status = code < 0 || size <= 0 || !data ? fail(encoder, code < 0 ? code : AVERROR(ENOMEM),
                                                       "cannot write an MP4", error)
                                                : DL2_OK;
    out->size = 0;
    if (status == DL2_OK)
        status = dl2_bytes_append(out, data, (size_t)size, error);
    ffmpeg->av_free(data);
    return status == DL2_OK ? check_file(encoder, out, error) : status;
}

/* ---- The rows */

/* clang-format off */
#define FUNCTIONS .missing = find_missing, .open = open_encoder, .add = add_frame,                  \
                  .finish = finish_file, .close = close_encoder

/* The encoders' own default of key frames, of AV1 not: its is never. */
#define GOP_ROW {.name = GOP, .min = 1, .max = 1000, .usual = 250, .whole = true,                   \
                 .help = "frames from one key frame to the next, at most; fewer make reading a "    \
                         "part of a clip faster, and files larger"}
/* clang-format on */

static const char *const presets[] = {"ultrafast", "superfast", "veryfast", "faster",   "fast",
                                      "medium",    "slow",      "slower",   "veryslow", NULL};
enum { MEDIUM = 5 };

static const struct dl2_setting x264_settings[] = {
    {.name = "preset", .words = presets, .usual = MEDIUM, .help = "x264's or x265's speed"},
    GOP_ROW,
    {NULL}};

static const struct dl2_setting aom_settings[] = {
    {.name = "cpu_used",
     .min = 0,
     .max = 8,
     .usual = 6,
     .whole = true,
     .help = "libaom's speed; higher is faster, and files are larger"},
    GOP_ROW,
    {NULL}};

static const struct dl2_video_coding x264 = {
    .encoder = "libx264",
    .library = "libx264.so",
    .max_crf = 51,
    .usual_crf = 23,
    .frame_bytes = 100,
    .filter = "filter_units=remove_types=6", /* 700 bytes that name its settings */
    FUNCTIONS};

static const struct dl2_video_coding x265 = {
    .encoder = "libx265",
    .library = "libx265.so",
    .max_crf = 51,
    .usual_crf = 28,
    .min_side = 64, /* x265 3.5 writes behind its memory where frames are narrower */
    .frame_bytes = 150,
    .own_threads = true,
    .options = {"x265-params", "pools=none:frame-threads=1:info=0:log-level=none"},
    FUNCTIONS};

static const struct dl2_video_coding aom = {.encoder = "libaom-av1",
                                            .library = "libaom.so",
                                            .max_crf = 63,
                                            .usual_crf = 35,
                                            .frame_bytes = 150,
                                            .options = {"row-mt", "0"},
                                            FUNCTIONS};

/* dl2_codec's functions of a row know no row. */
#define ROW_FUNCTIONS(name)                                                                        \
    static json_t *name##_parameters(const struct dl2_encode_options *options)                     \
    {                                                                                              \
        return describe(&dl2_codec_##name, options);                                               \
    }                                                                                              \
    static void name##_version(char out[DL2_CODEC_VERSION_SIZE])                                   \
    {                                                                                              \
        print_version(&dl2_codec_##name, out);                                                     \
    }

extern const struct dl2_codec dl2_codec_h264, dl2_codec_h265, dl2_codec_av1;
ROW_FUNCTIONS(h264)
ROW_FUNCTIONS(h265)
ROW_FUNCTIONS(av1)

/* Extensions are those of videos, which dataset/ knows: files of these codecs are no images. */
const struct dl2_codec dl2_codec_h264 = {.name = "h264",
                                         .extension = "mp4",
                                         .lossy = true,
                                         .max_side = 16384,
                                         .has_subsampling = true,
                                         .no_gray = true,
                                         .max_effort = -1,
                                         .settings = x264_settings,
                                         .find_version = h264_version,
                                         .encoder_parameters = h264_parameters,
                                         .video = &x264};

const struct dl2_codec dl2_codec_h265 = {.name = "h265",
                                         .extension = "mp4",
                                         .lossy = true,
                                         .max_side = 8192,
                                         .has_subsampling = true,
                                         .no_gray = true,
                                         .max_effort = -1,
                                         .settings = x264_settings,
                                         .find_version = h265_version,
                                         .encoder_parameters = h265_parameters,
                                         .video = &x265};

const struct dl2_codec dl2_codec_av1 = {.name = "av1",
                                        .extension = "mp4",
                                        .lossy = true,
                                        .max_side = 65535,
                                        .has_subsampling = true,
                                        .no_gray = true,
                                        .max_effort = -1,
                                        .settings = aom_settings,
                                        .find_version = av1_version,
                                        .encoder_parameters = av1_parameters,
                                        .video = &aom};
