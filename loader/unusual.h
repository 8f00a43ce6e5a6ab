/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts what files have and samples do not show (struct dl2_unusual of loader/loader.h). */
#ifndef DL2_LOADER_UNUSUAL_H
#define DL2_LOADER_UNUSUAL_H

#include "codec/codec.h"
#include "codec/video.h"
#include "loader/loader.h"

/* Counts an image that was decoded; the raster's values are of 8 bits. */
void dl2_unusual_note(struct dl2_loader_stats *stats, const struct dl2_image_info *info,
                      const struct dl2_raster *raster);
/* Counts a video whose frames were decoded. */
void dl2_unusual_note_video(struct dl2_loader_stats *stats, const struct dl2_video_info *info);
void dl2_unusual_add(struct dl2_loader_stats *sum, const struct dl2_loader_stats *part);

#endif
