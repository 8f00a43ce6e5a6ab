/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads videos by FFmpeg's libraries. */
#include "codec/ffmpeg_libraries.h"
#include "codec/video.h"
#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dl2_ffmpeg *const ffmpeg = &dl2_ffmpeg;

enum { READ_BYTES = 1 << 16, MAX_PACKETS = 1 << 24, PACKETS_SPARE = 64 << 20 };

/* FFmpeg's names of the demuxers; others might open files and addresses that a file names. */
#define FORMATS "mov,matroska,avi"

/* A packet, which is a frame, in the order of decoding. */
struct packet {
    AVPacket *data;
    int64_t time;  /* its presentation time; AV_NOPTS_VALUE: not known */
    bool is_start; /* decoding may begin here: no frame that follows needs an earlier one */
};

struct dl2_video {
    struct dl2_video_info info;
    uint64_t max_pixels; /* of a frame */
    AVCodecContext *decoder;
    AVRational time_base, rate; /* rate: the file's own, 0/1 if it has none */
    AVRational shape;           /* of pixels, by the container; 0/1: it does not say */
    int orientation;            /* EXIF's */
    struct packet *packets;
    size_t packet_count;
    /* When the file's first frame is shown, and whether frames behind it may refer to ones that a
     * cut has left behind: decoding may not begin with it, or they are shown before it. */
    int64_t first_time;
    bool begins_open;
    size_t packet_bytes;
    int64_t *times; /* [info.frames], ascending */
    int64_t end;    /* of the last frame */
    bool timed;     /* the packets' times are those of frames; else frames come one by one */

    size_t next;    /* the packet to be sent next; behind the last the decoder is drained */
    size_t start;   /* the first that was sent since the decoder was flushed */
    bool drained;   /* nothing more is to be sent */
    AVFrame *frame; /* the current one */
    int64_t time;   /* its time; AV_NOPTS_VALUE: there is none */
    size_t number;  /* of the current frame, where frames come one by one */
    AVFrame *spare; /* to receive the next */
    struct SwsContext *scaler;
    struct dl2_bytes rgb;
    struct dl2_image image, scratch; /* of a frame that is turned */
};

/* The file in memory, while it is read. */
struct source {
    const uint8_t *data;
    size_t size, at;
};

/* ---- Errors */

/* What a damaged file asks for may be more than there is, so lack of memory is the file's fault. */
static int fail(int code, const char *doing, struct dl2_error *error)
{
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    ffmpeg->av_strerror(code, why, sizeof why);
    const bool foreign = code == AVERROR_DECODER_NOT_FOUND || code == AVERROR_DEMUXER_NOT_FOUND ||
                         code == AVERROR_PATCHWELCOME;
    return dl2_error_set(error,
                         code == AVERROR(ENOMEM) ? DL2_ERR_LIMIT
                         : foreign               ? DL2_ERR_UNSUPPORTED
                                                 : DL2_ERR_FORMAT,
                         "%s: %s", doing, why);
}

static int no_memory(struct dl2_error *error)
{
    return dl2_error_memory(error, "a video");
}

/* ---- Reading the file */

static int read_source(void *context, uint8_t *out, int size)
{
    struct source *source = context;
    const size_t left = source->size - source->at;
    const size_t taken = (size_t)size < left ? (size_t)size : left;
    if (!taken)
        return AVERROR_EOF;
    memcpy(out, source->data + source->at, taken);
    source->at += taken;
    return (int)taken;
}

static int64_t seek_source(void *context, int64_t offset, int whence)
{
    struct source *source = context;
    const int64_t base = whence == SEEK_CUR   ? (int64_t)source->at
                         : whence == SEEK_END ? (int64_t)source->size
                                              : 0;
    if (whence & AVSEEK_SIZE)
        return (int64_t)source->size;
    if (offset < -base || offset > (int64_t)source->size - base)
        return AVERROR(EINVAL);
    source->at = (size_t)(base + offset);
    return base + offset;
}

/* No file that a video names is opened. */
static int refuse_to_open(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                          AVDictionary **options)
{
    (void)format, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

static void close_format(AVFormatContext *format, AVIOContext *io)
{
    ffmpeg->avformat_close_input(&format);
    if (io)
        ffmpeg->av_freep(&io->buffer);
    ffmpeg->avio_context_free(&io);
}

static int open_format(struct source *source, AVFormatContext **out, AVIOContext **io,
                       struct dl2_error *error)
{
    uint8_t *buffer = ffmpeg->av_malloc(READ_BYTES);
    *io = buffer ? ffmpeg->avio_alloc_context(buffer, READ_BYTES, 0, source, read_source, NULL,
                                              seek_source)
                 : NULL;
    if (!*io)
        ffmpeg->av_free(buffer);
    AVFormatContext *format = *io ? ffmpeg->avformat_alloc_context() : NULL;
    if (!format)
        return no_memory(error);
    format->pb = *io;
    format->io_open = refuse_to_open;
    format->format_whitelist = ffmpeg->av_strdup(FORMATS);
    /* After a failure it is freed. */
    int code = ffmpeg->avformat_open_input(&format, "", NULL, NULL);
    if (code < 0)
        return fail(code, "no video in MP4, Matroska or AVI", error);
    *out = format;
    /* Looks into frames for what AVI's header lacks; other headers say enough, and it takes longer
     * than to decode a short clip. */
    code =
        strcmp(format->iformat->name, "avi") ? 0 : ffmpeg->avformat_find_stream_info(format, NULL);
    return code < 0 ? fail(code, "the video's header", error) : DL2_OK;
}

/* NULL: the stream has none, of nine numbers. */
static const int32_t *find_display_matrix(const AVStream *stream)
{
    const int32_t *matrix = NULL;
    size_t size = 0;
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    const AVPacketSideData *data = ffmpeg->av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data,
        AV_PKT_DATA_DISPLAYMATRIX);
    matrix = data ? (const int32_t *)data->data : NULL;
    size = data ? data->size : 0;
#else
    matrix =
        (const int32_t *)ffmpeg->av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
#endif
    return size < 9 * sizeof *matrix ? NULL : matrix;
}

/* The matrix takes pixels from where they are to where they are shown. */
static int find_orientation(const AVStream *stream, int *orientation, struct dl2_error *error)
{
    const int32_t *matrix = find_display_matrix(stream);
    *orientation = 1;
    if (!matrix)
        return DL2_OK;
    const int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (a && d && !b && !c)
        *orientation = a > 0 ? d > 0 ? 1 : 4 : d > 0 ? 2 : 3;
    else if (!a && !d && b && c)
        *orientation = b > 0 ? c > 0 ? 5 : 6 : c > 0 ? 8 : 7;
    else if (a || b || c || d)
        return dl2_error_set(
            error, DL2_ERR_UNSUPPORTED,
            "its display matrix turns it by %.0f degrees; only multiples of 90 are "
            "supported",
            -ffmpeg->av_display_rotation_get(matrix));
    return DL2_OK;
}

static int open_decoder(struct dl2_video *video, const AVStream *stream, const AVCodec *codec,
                        uint64_t max_pixels, struct dl2_error *error)
{
    AVCodecContext *decoder = video->decoder = ffmpeg->avcodec_alloc_context3(codec);
    if (!decoder)
        return no_memory(error);
    int code = ffmpeg->avcodec_parameters_to_context(decoder, stream->codecpar);
    decoder->thread_count = 1;
    decoder->pkt_timebase = stream->time_base;
    /* FFmpeg counts the frame's edges and padding, too, so its limit only bounds the memory. */
    decoder->max_pixels =
        max_pixels > INT64_MAX / 8 ? INT64_MAX : (int64_t)max_pixels * 4 + (1 << 17);
    video->max_pixels = max_pixels;
    decoder->err_recognition = AV_EF_EXPLODE;
    decoder->flags |= AV_CODEC_FLAG_BITEXACT;
    if (code >= 0)
        code = ffmpeg->avcodec_open2(decoder, codec, NULL);
    return code < 0 ? fail(code, "the video's decoder", error) : DL2_OK;
}

/* A frame of VP8 that is not shown has a packet of its own. */
static bool is_hidden(const AVStream *stream, const AVPacket *packet)
{
    return !packet->size || (packet->flags & AV_PKT_FLAG_DISCARD) ||
           (stream->codecpar->codec_id == AV_CODEC_ID_VP8 && !(packet->data[0] & 0x10));
}

/* Bytes of the size before each unit of H.264 or HEVC, by their configuration; 0: start codes. */
static unsigned unit_digits(const AVCodecContext *decoder)
{
    const unsigned at = decoder->codec_id == AV_CODEC_ID_H264 ? 4 : 21;
    return decoder->extradata_size > (int)at && decoder->extradata[0] == 1
               ? (decoder->extradata[at] & 3u) + 1
               : 0;
}

/* The unit behind data[*at], whose first byte is then at *at; false: there is none. */
static bool next_unit(const uint8_t *data, size_t size, unsigned digits, size_t *end, size_t *at)
{
    size_t length = 0;
    *at = *end;
    for (; !digits && *at + 3 < size; (*at)++)
        if (!data[*at] && !data[*at + 1] && data[*at + 2] == 1) {
            *at += 3;
            *end = *at;
            return true;
        }
    if (!digits || size - *at <= digits)
        return false;
    for (unsigned i = 0; i < digits; i++)
        length = length << 8 | data[(*at)++];
    *end = length < size - *at ? *at + length : size;
    return true;
}

/* Key frames of H.264 and HEVC may be such that later frames refer to earlier ones: only one that
 * begins anew (IDR; of HEVC also BLA, and CRA if find_starts() agrees) is safe to begin with. */
static bool refreshes_all(const AVCodecContext *decoder, const AVPacket *packet)
{
    const bool hevc = decoder->codec_id == AV_CODEC_ID_HEVC;
    const size_t size = (size_t)packet->size;
    const unsigned digits = unit_digits(decoder);
    if (!hevc && decoder->codec_id != AV_CODEC_ID_H264)
        return true;
    for (size_t at, end = 0; next_unit(packet->data, size, digits, &end, &at) && at < size;) {
        const unsigned type = hevc ? packet->data[at] >> 1 & 63 : packet->data[at] & 31;
        if (hevc ? type >= 16 && type <= 21 : type == 5)
            return true;
    }
    return false;
}

static int keep_packet(struct dl2_video *video, const AVStream *stream, size_t limit,
                       AVPacket *packet, struct dl2_error *error)
{
    if (packet->flags & AV_PKT_FLAG_CORRUPT)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the video is damaged in its frame %zu",
                             video->packet_count);
    if (video->packet_count == MAX_PACKETS || (size_t)packet->size > limit - video->packet_bytes)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "the video has more than %d frames, or more bytes in its frames than "
                             "in the file",
                             MAX_PACKETS);
    if (!(video->packet_count & (video->packet_count - 1))) { /* room for twice as many */
        const size_t room = video->packet_count ? 2 * video->packet_count : 1;
        struct packet *grown = dl2_realloc(video->packets, room, sizeof *grown);
        if (!grown)
            return no_memory(error);
        video->packets = grown;
    }
    struct packet *kept = &video->packets[video->packet_count];
    *kept = (struct packet){.data = ffmpeg->av_packet_alloc(),
                            .time = packet->pts,
                            .is_start = (packet->flags & AV_PKT_FLAG_KEY) &&
                                        refreshes_all(video->decoder, packet)};
    if (!kept->data)
        return no_memory(error);
    video->packet_count++;
    video->packet_bytes += (size_t)packet->size;
    video->info.frames += !is_hidden(stream, packet);
    video->timed &= is_hidden(stream, packet) || packet->pts != AV_NOPTS_VALUE;
    if (is_hidden(stream, packet))
        kept->time = AV_NOPTS_VALUE;
    else if (packet->pts != AV_NOPTS_VALUE && packet->duration > 0 &&
             packet->pts <= INT64_MAX - packet->duration &&
             packet->pts + packet->duration > video->end)
        video->end = packet->pts + packet->duration;
    if (video->packet_count == 1) {
        video->first_time = packet->pts;
        video->begins_open = !kept->is_start;
    }
    video->begins_open |= packet->pts != AV_NOPTS_VALUE && packet->pts < video->first_time;
    ffmpeg->av_packet_move_ref(kept->data, packet);
    return DL2_OK;
}

static int read_packets(struct dl2_video *video, AVFormatContext *format, const AVStream *stream,
                        size_t size, struct dl2_error *error)
{
    AVPacket *packet = ffmpeg->av_packet_alloc();
    int status = packet ? DL2_OK : no_memory(error), code = 0;
    const size_t limit = size + PACKETS_SPARE; /* some formats leave out what frames share */
    video->timed = true;
    video->end = INT64_MIN;
    while (status == DL2_OK && (code = ffmpeg->av_read_frame(format, packet)) >= 0) {
        if (packet->stream_index == stream->index)
            status = keep_packet(video, stream, limit, packet, error);
        ffmpeg->av_packet_unref(packet);
    }
    ffmpeg->av_packet_free(&packet);
    if (status == DL2_OK && code != AVERROR_EOF)
        status = fail(code, "the video is damaged or cut off", error);
    if (status == DL2_OK && !video->info.frames)
        status = dl2_error_set(error, DL2_ERR_FORMAT, "the video has no frames");
    return status;
}

static int read_file(struct dl2_video *video, AVFormatContext *format, size_t size,
                     uint64_t max_pixels, struct dl2_error *error)
{
    const AVCodec *codec = NULL;
    const int number = ffmpeg->av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    AVStream *stream = number >= 0 ? format->streams[number] : NULL;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        video->info.has_sound |= format->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        if (format->streams[i] != stream)
            format->streams[i]->discard = AVDISCARD_ALL;
    }
    if (number == AVERROR_DECODER_NOT_FOUND)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "FFmpeg's libraries have no decoder for the video's codec");
    if (!stream || (stream->disposition & AV_DISPOSITION_ATTACHED_PIC))
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has no video stream%s",
                             video->info.has_sound ? ", only sound" : "");
    const AVCodecParameters *coded = stream->codecpar;
    if (coded->width > 0 && coded->height > 0) /* else the first frame says it */
        DL2_TRY(dl2_image_check_size((uint64_t)coded->width, (uint64_t)coded->height, max_pixels,
                                     error));
    DL2_TRY(find_orientation(stream, &video->orientation, error));
    DL2_TRY(open_decoder(video, stream, codec, max_pixels, error));
    video->shape =
        stream->sample_aspect_ratio.num ? stream->sample_aspect_ratio : coded->sample_aspect_ratio;
    video->time_base = stream->time_base;
    video->rate = stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate;
    return read_packets(video, format, stream, size, error);
}

/* ---- Decoding */

static void flush(struct dl2_video *video, size_t packet)
{
    ffmpeg->avcodec_flush_buffers(video->decoder);
    video->next = video->start = packet;
    video->drained = false;
    video->time = AV_NOPTS_VALUE;
    video->number = SIZE_MAX;
}

/* The first frame decides the size of all. */
static int take_size(struct dl2_video *video, const AVFrame *frame, struct dl2_error *error)
{
    const bool turned = dl2_orientation_transposes(video->orientation);
    const AVRational shape = video->shape.num > 0 ? video->shape : frame->sample_aspect_ratio;
    DL2_TRY(dl2_image_check_size((uint64_t)frame->width, (uint64_t)frame->height, video->max_pixels,
                                 error));
    video->info.width = (uint32_t)(turned ? frame->height : frame->width);
    video->info.height = (uint32_t)(turned ? frame->width : frame->height);
    video->info.square_pixels = shape.num <= 0 || shape.num == shape.den;
    return DL2_OK;
}

static bool has_wide_color(const AVFrame *frame)
{
    return frame->color_trc == AVCOL_TRC_SMPTE2084 || frame->color_trc == AVCOL_TRC_ARIB_STD_B67 ||
           frame->color_primaries == AVCOL_PRI_BT2020 ||
           frame->color_primaries == AVCOL_PRI_SMPTE431 ||
           frame->color_primaries == AVCOL_PRI_SMPTE432;
}

static bool is_interlaced(const AVFrame *frame)
{
#ifdef AV_FRAME_FLAG_INTERLACED
    return frame->flags & AV_FRAME_FLAG_INTERLACED;
#else
    return frame->interlaced_frame;
#endif
}

static int check_frame(struct dl2_video *video, const AVFrame *frame, struct dl2_error *error)
{
    const bool turned = dl2_orientation_transposes(video->orientation);
    if ((frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags)
        return dl2_error_set(error, DL2_ERR_FORMAT, "a frame of the video is damaged");
    if (!video->info.width)
        DL2_TRY(take_size(video, frame, error));
    video->info.wide_color |= has_wide_color(frame);
    video->info.interlaced |= is_interlaced(frame);
    const uint32_t width = turned ? video->info.height : video->info.width;
    const uint32_t height = turned ? video->info.width : video->info.height;
    if ((uint32_t)frame->width != width || (uint32_t)frame->height != height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "a frame of the video is of %dx%d, others of %" PRIu32 "x%" PRIu32
                             "; frames of one clip must be of one size",
                             frame->width, frame->height, width, height);
    return DL2_OK;
}

static int decode_packets(struct dl2_video *video, int64_t time, struct dl2_error *error)
{
    for (;;) {
        int code = ffmpeg->avcodec_receive_frame(video->decoder, video->spare);
        if (code == AVERROR_EOF)
            return 0;
        if (code == 0) {
            AVFrame *frame = video->spare;
            DL2_TRY(check_frame(video, frame, error));
            video->spare = video->frame;
            video->frame = frame;
            video->time = frame->best_effort_timestamp;
            video->number++; /* from SIZE_MAX on */
            return 1;
        }
        if (code != AVERROR(EAGAIN) || video->drained)
            return fail(code, "a frame of the video", error);
        const struct packet *packet =
            video->next < video->packet_count ? &video->packets[video->next] : NULL;
        const bool early = packet && packet->time != AV_NOPTS_VALUE;
        video->decoder->skip_frame =
            video->timed && early && packet->time < time ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
        code = ffmpeg->avcodec_send_packet(video->decoder, packet ? packet->data : NULL);
        video->drained = !packet;
        video->next += packet != NULL;
        if (code < 0)
            return fail(code, "a frame of the video", error);
    }
}

/*
 * Decodes the next frame in the order of presentation: 1, or 0 behind the last one, and the current
 * frame stays. Frames that are shown before `time` may be left out if no other one needs them.
 */
static int decode_next(struct dl2_video *video, int64_t time, struct dl2_error *error)
{
    const int status = decode_packets(video, time, error);
    const bool begins =
        video->number == SIZE_MAX || (video->timed && video->time < video->first_time);
    if (status != DL2_ERR_FORMAT || !video->begins_open || !begins)
        return status;
    dl2_error_clear(error); /* that the data are invalid is the least of it */
    return dl2_error_set(error, status,
                         "its first frames refer to frames before its first key frame, which the "
                         "file lacks: it was cut out of a longer video at an open group of "
                         "pictures; cut it with `ffmpeg -ss TIME -i VIDEO OUTPUT`, which encodes "
                         "it again, and not with `-c copy`");
}

/* The last packet from `first` on that decoding may begin with and that is not shown after a time;
 * SIZE_MAX: there is none. */
static size_t find_key(const struct dl2_video *video, size_t first, int64_t time)
{
    size_t key = SIZE_MAX;
    for (size_t i = first; i < video->packet_count; i++) {
        const struct packet *packet = &video->packets[i];
        if (!packet->is_start || packet->time == AV_NOPTS_VALUE)
            continue;
        if (packet->time > time) /* and so are all that follow: find_starts() */
            break;
        key = i;
    }
    return key;
}

static int decode_until(struct dl2_video *video, int64_t time, struct dl2_error *error)
{
    int got = 1;
    while (got == 1 && (video->time == AV_NOPTS_VALUE || video->time < time))
        got = decode_next(video, time, error);
    return got < 0 ? got : DL2_OK;
}

static int no_such_frame(const struct dl2_video *video, size_t number, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "frame %zu of the video's %zu cannot be decoded; it may be damaged",
                         number, video->info.frames);
}

/* Where packets say when their frames are shown. */
static int seek_by_time(struct dl2_video *video, size_t number, struct dl2_error *error)
{
    const int64_t time = video->times[number];
    const bool goes_on = video->time != AV_NOPTS_VALUE && video->time <= time;
    const size_t key = find_key(video, goes_on ? video->next : 0, time);
    if (!goes_on || key != SIZE_MAX)
        flush(video, key == SIZE_MAX ? 0 : key);
    DL2_TRY(decode_until(video, time, error));
    if (video->time != time && video->start) { /* it was no place to begin */
        flush(video, 0);
        DL2_TRY(decode_until(video, time, error));
    }
    /* A frame that does not come out leaves its time to the one after it, or to the last. */
    return video->time == AV_NOPTS_VALUE ? no_such_frame(video, number, error) : DL2_OK;
}

static int seek_by_number(struct dl2_video *video, size_t number, struct dl2_error *error)
{
    if (video->number != SIZE_MAX && video->number > number)
        flush(video, 0);
    int got = 1;
    while (got == 1 && (video->number == SIZE_MAX || video->number < number))
        got = decode_next(video, INT64_MIN, error);
    DL2_TRY(got);
    return got ? DL2_OK : no_such_frame(video, number, error);
}

static int ffmpeg_seek(struct dl2_video *video, size_t number, struct dl2_error *error)
{
    return number >= video->info.frames ? no_such_frame(video, number, error)
           : video->timed               ? seek_by_time(video, number, error)
                                        : seek_by_number(video, number, error);
}

/* ---- Opening */

static int compare_times(const void *a, const void *b)
{
    const int64_t *one = a, *two = b;
    return (*one > *two) - (*one < *two);
}

/* Tells the decoder how many frames may have to wait for one that is shown before them; otherwise
 * it guesses, and may leave out the first ones. */
static void set_delay(struct dl2_video *video)
{
    enum { MOST = 16 };
    int delay = 0;
    if (!video->timed) {
        video->decoder->strict_std_compliance = FF_COMPLIANCE_STRICT; /* the most by its level */
        return;
    }
    for (size_t i = 0; i < video->packet_count; i++) {
        const int64_t time = video->packets[i].time;
        int later = 0;
        for (size_t k = i > 2 * MOST ? i - 2 * MOST : 0; k < i && time != AV_NOPTS_VALUE; k++)
            later += video->packets[k].time != AV_NOPTS_VALUE && video->packets[k].time > time;
        delay = later > delay ? later : delay;
    }
    delay = delay < MOST ? delay : MOST;
    if (video->decoder->has_b_frames < delay)
        video->decoder->has_b_frames = delay;
}

/* Frames behind a key frame that are shown before it may need what came earlier. */
static void find_starts(struct dl2_video *video)
{
    int64_t least = INT64_MAX;
    for (size_t i = video->packet_count; i-- > 0;) {
        struct packet *packet = &video->packets[i];
        if (packet->time == AV_NOPTS_VALUE)
            continue;
        packet->is_start &= packet->time <= least;
        least = packet->time < least ? packet->time : least;
    }
}

/* Numbers the frames by what the packets say. */
static int find_times(struct dl2_video *video, struct dl2_error *error)
{
    size_t count = 0;
    DL2_TRY(DL2_NEW(&video->times, video->info.frames, "a video", error));
    for (size_t i = 0; i < video->packet_count; i++)
        if (video->packets[i].time != AV_NOPTS_VALUE)
            video->times[count++] = video->packets[i].time;
    qsort(video->times, count, sizeof *video->times, compare_times);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || video->times[i] != video->times[kept - 1])
            video->times[kept++] = video->times[i];
    video->info.frames = kept;
    return DL2_OK;
}

/* Shows `count` frames as far apart as they are decoded: an AVI repeats a frame by an empty one
 * behind it, and so may have twice the rate of its frames. If more or fewer frames come out than
 * go in, all are as far apart as the closest. */
static void take_decoding_times(struct dl2_video *video, size_t count)
{
    size_t found = 0;
    int64_t before = AV_NOPTS_VALUE, step = INT64_MAX;
    bool known = true;
    for (size_t i = 0; i < video->packet_count; i++) {
        const AVPacket *packet = video->packets[i].data;
        if (!packet->size || (packet->flags & AV_PKT_FLAG_DISCARD))
            continue;
        const int64_t time = packet->dts;
        const bool later = time != AV_NOPTS_VALUE && (!found || time > before);
        if (later && found && (uint64_t)time - (uint64_t)before < (uint64_t)step)
            step = time - before;
        known = known && later;
        if (found < count)
            video->times[found] = time;
        found++;
        before = time;
    }
    if (known && found == count)
        return;
    if (step == INT64_MAX)
        step = video->rate.num > 0 && video->time_base.num > 0
                   ? ffmpeg->av_rescale_q(1, av_inv_q(video->rate), video->time_base)
                   : 1;
    const int64_t most = INT64_MAX / (int64_t)(count + 1);
    for (size_t i = 0; i < count; i++)
        video->times[i] = (int64_t)i * (step < 1 ? 1 : step < most ? step : most);
}

/* AVI says when frames are decoded, and not when they are shown: decodes all of them to know how
 * many there are. */
static int count_frames(struct dl2_video *video, struct dl2_error *error)
{
    size_t count = 0;
    int got;
    while ((got = decode_next(video, INT64_MIN, error)) == 1)
        count++;
    DL2_TRY(got);
    flush(video, 0);
    if (!count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "no frame of the video can be decoded");
    free(video->times);
    video->times = NULL;
    DL2_TRY(DL2_NEW(&video->times, count, "a video", error));
    video->info.frames = count;
    take_decoding_times(video, count);
    video->end = INT64_MIN;
    return DL2_OK;
}

/* The last frame is shown as long as its packet says, or as the one before it. */
static void find_end(struct dl2_video *video)
{
    const int64_t last = video->times[video->info.frames - 1];
    int64_t length = 1;
    if (video->end > last)
        return;
    const int64_t before = video->info.frames > 1 ? video->times[video->info.frames - 2] : last;
    if (before < last)
        length = before < 0 && last > INT64_MAX + before ? 1 : last - before;
    else if (video->rate.num > 0 && video->time_base.num > 0)
        length = ffmpeg->av_rescale_q(1, av_inv_q(video->rate), video->time_base);
    length = length < 1 ? 1 : length;
    video->end = last <= INT64_MAX - length ? last + length : INT64_MAX;
}

/* The rate of the frames that are closest together; 0/1: it is not known. */
static AVRational find_highest_rate(const struct dl2_video *video)
{
    int64_t least = INT32_MAX;
    AVRational rate = {0, 1};
    for (size_t i = 1; i < video->info.frames; i++)
        if ((uint64_t)video->times[i] - (uint64_t)video->times[i - 1] < (uint64_t)least)
            least = video->times[i] - video->times[i - 1];
    if (least < INT32_MAX && least > 0 && video->time_base.num > 0)
        ffmpeg->av_reduce(&rate.num, &rate.den, video->time_base.den, least * video->time_base.num,
                          INT32_MAX);
    return rate;
}

/* By the container unless all frames are further apart, or as many as there are in their time. */
static void find_rate(struct dl2_video *video)
{
    enum { MAX_RATE = 1000, MAX_TERM = 1000000 };
    const int64_t first = video->times[0];
    int64_t length = first < 0 && video->end > INT64_MAX + first ? INT64_MAX : video->end - first;
    const AVRational highest = find_highest_rate(video);
    AVRational rate = video->rate;
    if (highest.num > 0 && rate.num > 0 && rate.den > 0 &&
        rate.num / (double)rate.den > 1.5 * highest.num / highest.den)
        rate = highest;
    if (rate.num <= 0 || rate.den <= 0) {
        const int64_t most = INT64_MAX / (video->time_base.num > 0 ? video->time_base.num : 1);
        length = length < most ? length : most;
        if (video->time_base.num <= 0 || length <= 0 ||
            video->info.frames > (size_t)(INT64_MAX / video->time_base.den))
            return;
        ffmpeg->av_reduce(&rate.num, &rate.den, (int64_t)video->info.frames * video->time_base.den,
                          length * video->time_base.num, MAX_TERM);
    }
    if (rate.num > 0 && rate.den > 0 && rate.num / rate.den < MAX_RATE)
        video->info.rate = (struct dl2_frame_rate){(uint32_t)rate.num, (uint32_t)rate.den};
}

static void ffmpeg_close(struct dl2_video *video)
{
    for (size_t i = 0; i < video->packet_count; i++)
        ffmpeg->av_packet_free(&video->packets[i].data);
    free(video->packets);
    free(video->times);
    ffmpeg->avcodec_free_context(&video->decoder);
    ffmpeg->av_frame_free(&video->frame);
    ffmpeg->av_frame_free(&video->spare);
    ffmpeg->sws_freeContext(video->scaler);
    dl2_bytes_free(&video->rgb);
    dl2_image_free(&video->image);
    dl2_image_free(&video->scratch);
    free(video);
}

static int open_video(struct dl2_video *video, struct source *source, uint64_t max_pixels,
                      struct dl2_error *error)
{
    AVFormatContext *format = NULL;
    AVIOContext *io = NULL;
    int status = open_format(source, &format, &io, error);
    if (status == DL2_OK)
        status = read_file(video, format, source->size, max_pixels, error);
    close_format(format, io);
    DL2_TRY(status);
    video->frame = ffmpeg->av_frame_alloc();
    video->spare = ffmpeg->av_frame_alloc();
    if (!video->frame || !video->spare)
        return no_memory(error);
    flush(video, 0);
    set_delay(video);
    find_starts(video);
    DL2_TRY(video->timed ? find_times(video, error) : count_frames(video, error));
    find_end(video);
    find_rate(video);
    return DL2_OK;
}

static int ffmpeg_open(const uint8_t *data, size_t size, uint64_t max_pixels,
                       struct dl2_video **out, struct dl2_error *error)
{
    struct source source = {data, size, 0};
    struct dl2_video *video;
    dl2_ffmpeg_be_quiet();
    DL2_TRY(DL2_NEW(&video, 1, "a video", error));
    const int status = open_video(video, &source, max_pixels, error);
    if (status < 0)
        ffmpeg_close(video);
    else
        *out = video;
    return status;
}

static const struct dl2_video_info *ffmpeg_info(const struct dl2_video *video)
{
    return &video->info;
}

static size_t ffmpeg_memory(const struct dl2_video *video)
{
    enum { FRAMES = 8 }; /* that decoders keep, at 1.5 bytes a pixel */
    return sizeof *video + video->packet_bytes +
           video->packet_count * (sizeof *video->packets + sizeof(AVPacket)) +
           video->info.frames * sizeof *video->times +
           (size_t)video->info.width * video->info.height * FRAMES * 3 / 2 + video->rgb.capacity +
           video->image.capacity + video->scratch.capacity;
}

static uint64_t ffmpeg_times_before(const struct dl2_video *video, size_t number,
                                    struct dl2_frame_rate rate)
{
    const int64_t time = number < video->info.frames ? video->times[number] : video->end;
    const int64_t first = video->times[0];
    const AVRational period = {(int)rate.denominator, (int)rate.numerator};
    if (first < 0 && time > INT64_MAX + first)
        return UINT64_MAX;
    const int64_t count =
        ffmpeg->av_rescale_q_rnd(time - first, video->time_base, period, AV_ROUND_NEAR_INF);
    return count < 0 ? UINT64_MAX : (uint64_t)count;
}

/* ---- Pixels */

/* Can a raster have the frame's planes? */
static bool is_planar(const AVFrame *frame, enum dl2_color *color)
{
    const AVPixFmtDescriptor *format = ffmpeg->av_pix_fmt_desc_get(frame->format);
    const unsigned others = AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM |
                            AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_ALPHA |
                            AV_PIX_FMT_FLAG_FLOAT | AV_PIX_FMT_FLAG_BAYER;
    if (!format || (format->flags & others) || format->nb_components != 3)
        return false;
    for (int c = 0; c < 3; c++)
        if (format->comp[c].plane != c || format->comp[c].depth != 8 || format->comp[c].step != 1 ||
            format->comp[c].shift || frame->linesize[c] <= 0)
            return false;
    const bool full =
        frame->color_range == AVCOL_RANGE_JPEG || frame->format == AV_PIX_FMT_YUVJ420P ||
        frame->format == AV_PIX_FMT_YUVJ422P || frame->format == AV_PIX_FMT_YUVJ444P ||
        frame->format == AV_PIX_FMT_YUVJ440P || frame->format == AV_PIX_FMT_YUVJ411P;
    switch (frame->colorspace) {
    case AVCOL_SPC_BT709:
        *color = full ? DL2_COLOR_BT709 : DL2_COLOR_BT709_LIMITED;
        return true;
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
        *color = full ? DL2_COLOR_YCBCR : DL2_COLOR_YCBCR_LIMITED;
        return true;
    default:
        return false;
    }
}

static void take_planes(const AVFrame *frame, enum dl2_color color, struct dl2_raster *raster)
{
    const AVPixFmtDescriptor *format = ffmpeg->av_pix_fmt_desc_get(frame->format);
    *raster = (struct dl2_raster){.color = color};
    for (int c = 0; c < 3; c++) {
        const unsigned across = c ? format->log2_chroma_w : 0, down = c ? format->log2_chroma_h : 0;
        raster->planes[c] =
            dl2_plane_of(frame->data[c], (size_t)frame->linesize[c], (uint32_t)frame->width,
                         (uint32_t)frame->height, across, down);
    }
}

/* Converts the frame to RGB, in rows with room for what the library may write behind them. */
static int convert_frame(struct dl2_video *video, size_t *stride, struct dl2_error *error)
{
    enum { ROOM = 64 };
    const AVFrame *frame = video->frame;
    const int width = frame->width, height = frame->height;
    size_t bytes;
    *stride = ((size_t)width * 3 + 2 * ROOM - 1) / ROOM * ROOM;
    if (!dl2_size_mul(*stride, (size_t)height, &bytes) || *stride > INT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "the video's frames are too large");
    DL2_TRY(dl2_bytes_resize(&video->rgb, bytes, error));
    video->scaler = ffmpeg->sws_getCachedContext(
        video->scaler, width, height, (enum AVPixelFormat)frame->format, width, height,
        AV_PIX_FMT_RGB24,
        SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
        NULL, NULL, NULL);
    if (!video->scaler)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "FFmpeg's libraries cannot convert the video's pixels (%s) to RGB",
                             ffmpeg->av_get_pix_fmt_name((enum AVPixelFormat)frame->format));
    ffmpeg->sws_setColorspaceDetails(
        video->scaler, ffmpeg->sws_getCoefficients((int)frame->colorspace),
        frame->color_range == AVCOL_RANGE_JPEG, ffmpeg->sws_getCoefficients(SWS_CS_DEFAULT), 1, 0,
        1 << 16, 1 << 16);
    uint8_t *const to[4] = {video->rgb.data};
    const int strides[4] = {(int)*stride};
    const int rows = ffmpeg->sws_scale(video->scaler, (const uint8_t *const *)frame->data,
                                       frame->linesize, 0, height, to, strides);
    return rows == height ? DL2_OK
                          : dl2_error_set(error, DL2_ERR_FORMAT,
                                          "the video's pixels cannot be converted to RGB");
}

static int ffmpeg_pixels(struct dl2_video *video, struct dl2_raster *raster,
                         struct dl2_error *error)
{
    const AVFrame *frame = video->frame;
    const uint32_t width = (uint32_t)frame->width, height = (uint32_t)frame->height;
    enum dl2_color color;
    size_t stride;
    if (video->orientation == 1 && is_planar(frame, &color)) {
        take_planes(frame, color, raster);
        return DL2_OK;
    }
    DL2_TRY(convert_frame(video, &stride, error));
    if (video->orientation == 1) {
        *raster = (struct dl2_raster){
            .color = DL2_COLOR_RGB,
            .planes = {dl2_plane_of(video->rgb.data, stride, width, height, 0, 0)}};
        return DL2_OK;
    }
    DL2_TRY(dl2_image_reshape(&video->image, width, height, 3, error));
    for (uint32_t y = 0; y < height; y++)
        memcpy(video->image.data + y * video->image.stride, video->rgb.data + y * stride,
               video->image.stride);
    DL2_TRY(dl2_image_orient(&video->image, video->orientation, &video->scratch, error));
    *raster = dl2_raster_of(&video->image, 0, 0);
    return DL2_OK;
}

const struct dl2_video_engine dl2_video_ffmpeg = {
    .missing = dl2_ffmpeg_missing,
    .version = dl2_ffmpeg_version,
    .open = ffmpeg_open,
    .close = ffmpeg_close,
    .info = ffmpeg_info,
    .memory = ffmpeg_memory,
    .seek = ffmpeg_seek,
    .times_before = ffmpeg_times_before,
    .pixels = ffmpeg_pixels,
};
