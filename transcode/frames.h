/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dl2-transcode frames: a dataset of videos becomes one of clips of images, in class folders,
 * GulpIO or tar.
 *
 * Frame k of a video's clip is the frame that is shown at (k + 1/2) / rate seconds, for
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
#include "transcode/transcode.h"

/* Frames of a clip at most: their numbers have five digits. */
enum { DL2_FRAMES_MOST = 100000 };

/* Counts the whole DEST, with what earlier runs made. */
struct dl2_frames_result {
    size_t clips, written; /* all, and those of this run */
    size_t failed;         /* videos that cannot be read, and lines of lists without a video */
    uint64_t frames, bytes;
};

/* Frames per second, a number such as 12.5 or 30000/1001, into a struct dl2_frame_rate, as the
 * parse() of an option. DL2_ERR_ARGUMENT. */
int dl2_frame_rate_parse(const char *text, void *rate, struct dl2_error *error);

/* DL2_ERR_ARGUMENT where DEST and SOURCE are in each other's way. Videos that cannot be read are no
 * error here but counted. Of the options: source, dest, labels, the first target, by which frames
 * are resized and encoded, decode's max_pixels, pack, shuffle, force, prune, progress and jobs, of
 * which each holds one video. */
int dl2_frames_make(const struct dl2_transcode_options *options, struct dl2_frame_rate rate,
                    struct dl2_frames_result *result, struct dl2_error *error);

#endif
