/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FFmpeg's libraries, loaded when the first video is read or made: they bring a hundred others
 * along, which would triple the time in which every program starts. Private to the files that read
 * and make videos; with them the only ones that include FFmpeg's headers.
 *
 * Threads: any, after dl2_ffmpeg_missing() has said that nothing is missing.
 */
#ifndef DL2_CODEC_FFMPEG_LIBRARIES_H
#define DL2_CODEC_FFMPEG_LIBRARIES_H

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
#define DL2_FFMPEG_SIDE_DATA(F) F(codec, av_packet_side_data_get)
#else
#define DL2_FFMPEG_SIDE_DATA(F) F(format, av_stream_get_side_data)
#endif
/* What is used of each library. */
#define DL2_FFMPEG_FUNCTIONS(F)                                                                    \
    DL2_FFMPEG_SIDE_DATA(F)                                                                        \
    F(format, av_find_best_stream)                                                                 \
    F(format, av_interleaved_write_frame)                                                          \
    F(format, av_read_frame)                                                                       \
    F(format, av_write_trailer)                                                                    \
    F(format, avformat_alloc_context)                                                              \
    F(format, avformat_alloc_output_context2)                                                      \
    F(format, avformat_close_input)                                                                \
    F(format, avformat_find_stream_info)                                                           \
    F(format, avformat_free_context)                                                               \
    F(format, avformat_new_stream)                                                                 \
    F(format, avformat_open_input)                                                                 \
    F(format, avformat_version)                                                                    \
    F(format, avformat_write_header)                                                               \
    F(format, avio_alloc_context)                                                                  \
    F(format, avio_close_dyn_buf)                                                                  \
    F(format, avio_context_free)                                                                   \
    F(format, avio_open_dyn_buf)                                                                   \
    F(codec, av_bsf_free)                                                                          \
    F(codec, av_bsf_init)                                                                          \
    F(codec, av_bsf_list_parse_str)                                                                \
    F(codec, av_bsf_receive_packet)                                                                \
    F(codec, av_bsf_send_packet)                                                                   \
    F(codec, av_packet_alloc)                                                                      \
    F(codec, av_packet_free)                                                                       \
    F(codec, av_packet_move_ref)                                                                   \
    F(codec, av_packet_rescale_ts)                                                                 \
    F(codec, av_packet_unref)                                                                      \
    F(codec, avcodec_alloc_context3)                                                               \
    F(codec, avcodec_find_encoder_by_name)                                                         \
    F(codec, avcodec_flush_buffers)                                                                \
    F(codec, avcodec_free_context)                                                                 \
    F(codec, avcodec_open2)                                                                        \
    F(codec, avcodec_parameters_copy)                                                              \
    F(codec, avcodec_parameters_from_context)                                                      \
    F(codec, avcodec_parameters_to_context)                                                        \
    F(codec, avcodec_receive_frame)                                                                \
    F(codec, avcodec_receive_packet)                                                               \
    F(codec, avcodec_send_frame)                                                                   \
    F(codec, avcodec_send_packet)                                                                  \
    F(codec, avcodec_version)                                                                      \
    F(sws, sws_freeContext)                                                                        \
    F(sws, sws_getCachedContext)                                                                   \
    F(sws, sws_getCoefficients)                                                                    \
    F(sws, sws_scale)                                                                              \
    F(sws, sws_setColorspaceDetails)                                                               \
    F(sws, swscale_version)                                                                        \
    F(util, av_dict_free)                                                                          \
    F(util, av_dict_set)                                                                           \
    F(util, av_display_rotation_get)                                                               \
    F(util, av_frame_alloc)                                                                        \
    F(util, av_frame_free)                                                                         \
    F(util, av_frame_get_buffer)                                                                   \
    F(util, av_frame_make_writable)                                                                \
    F(util, av_free)                                                                               \
    F(util, av_freep)                                                                              \
    F(util, av_get_pix_fmt_name)                                                                   \
    F(util, av_log_get_level)                                                                      \
    F(util, av_log_set_level)                                                                      \
    F(util, av_malloc)                                                                             \
    F(util, av_pix_fmt_desc_get)                                                                   \
    F(util, av_reduce)                                                                             \
    F(util, av_rescale_q)                                                                          \
    F(util, av_rescale_q_rnd)                                                                      \
    F(util, av_strdup)                                                                             \
    F(util, av_strerror)

struct dl2_ffmpeg {
#define DL2_FFMPEG_MEMBER(library, name) __typeof__(name) *name;
    DL2_FFMPEG_FUNCTIONS(DL2_FFMPEG_MEMBER)
#undef DL2_FFMPEG_MEMBER
    char missing[512]; /* why they cannot be loaded */
    char versions[96];
};

/* Set once, by the first call of a function below. */
extern struct dl2_ffmpeg dl2_ffmpeg;

/* Why videos cannot be read here; NULL: they can. */
const char *dl2_ffmpeg_missing(void);
/* The version of the loaded libraries, which may be newer than those of the build. */
const char *dl2_ffmpeg_version(void);

/* The libraries print what they find on stderr, unless the host program has said otherwise. */
void dl2_ffmpeg_be_quiet(void);

/* The name of the file of a library that is loaded, by what that begins with: "libx264.so" finds
 * "libx264.so.164". `out` becomes "" if there is none. */
void dl2_ffmpeg_find_library(const char *start, char *out, size_t size);

#endif
