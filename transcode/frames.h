/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dl2-transcode --frames: a dataset of videos becomes one of clips of images, in class folders,
 * GulpIO or tar.
 *
 * Of each video, frame k of its clip is the frame that is shown at (k + 1/2) / rate seconds, for
 * all such times before the last frame ends; the first frame is shown from 0 on. So a frame that is
 * shown at several of these times comes as often. A video that is too short for any gives its first
 * frame.
 *
 * A hidden file in DEST, .dl2-frames, says how clips were made and from what: a line of JSON for
 * the settings, then one for each clip. In folders only clips are made whose source has another
 * size or time, that lack a file, or that were made with other settings or versions of the
 * libraries; a packed DEST is made as a whole where anything differs.
 */
#ifndef DL2_TRANSCODE_FRAMES_H
#define DL2_TRANSCODE_FRAMES_H

#include "codec/video.h"
#include "common/progress.h"
#include "dataset/writer.h"
#include "transcode/transcode.h"

/* Frames of a clip at most: their numbers have five digits. */
enum { DL2_FRAMES_MOST = 100000 };

struct dl2_frames_options {
    const char *source, *dest; /* DEST is a folder of this machine */
    const char *labels;        /* dl2_dataset_options.labels; NULL: folders say the classes */
    struct dl2_frame_rate rate;
    const struct dl2_transcode_target *target; /* how frames are resized and encoded */
    struct dl2_writer_options pack;            /* what clips lie in; it may be "folder" */
    const uint64_t *shuffle;                   /* packs clips in a random order; or NULL */
    uint64_t max_pixels;                       /* of a video's frame */
    unsigned jobs;                             /* 0: one a processor; each holds one video */
    bool force;                                /* make everything again */
    bool prune; /* remove clips of earlier runs from a folder whose video is gone */
    struct dl2_progress *progress; /* also names videos that cannot be read, and what was dropped */
};

/* Of the whole DEST, with what earlier runs made. */
struct dl2_frames_result {
    size_t clips, written; /* all, and those of this run */
    size_t failed;         /* videos that cannot be read, and lines of lists without a video */
    uint64_t frames, bytes;
};

/* "fps=8,short=128": frames per second, a number such as 12.5 or 30000/1001, and perhaps the
 * shorter side in pixels (0: not given). DL2_ERR_ARGUMENT. */
int dl2_frames_parse(const char *text, struct dl2_frame_rate *rate, uint32_t *short_side,
                     struct dl2_error *error);

/* DL2_ERR_ARGUMENT where DEST and SOURCE are in each other's way. Videos that cannot be read are no
 * error here but counted. */
int dl2_frames_make(const struct dl2_frames_options *options, struct dl2_frames_result *result,
                    struct dl2_error *error);

#endif
