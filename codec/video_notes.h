/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of source videos is dropped, or stays as it is though networks would not expect it: counted,
 * and said once. Threads: one at a time.
 */
#ifndef DL2_CODEC_VIDEO_NOTES_H
#define DL2_CODEC_VIDEO_NOTES_H

#include "codec/video.h"
#include "common/progress.h"

/* Numbers of videos. */
struct dl2_video_notes {
    size_t sound, oblong, wide_color, interlaced;
};

/* Counts a video all of whose frames were decoded. */
void dl2_video_notes_add(struct dl2_video_notes *notes, const struct dl2_video_info *video);
void dl2_video_notes_sum(struct dl2_video_notes *sum, const struct dl2_video_notes *other);

/* `made`: what is made of them, "clips" or "variants". */
void dl2_video_notes_tell(const struct dl2_video_notes *notes, const char *source, const char *made,
                          struct dl2_progress *progress);

#endif
