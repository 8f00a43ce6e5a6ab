/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/video_notes.h"

void dl2_video_notes_add(struct dl2_video_notes *notes, const struct dl2_video_info *video)
{
    notes->sound += video->has_sound;
    notes->oblong += !video->square_pixels;
    notes->wide_color += video->wide_color;
    notes->interlaced += video->interlaced;
}

void dl2_video_notes_sum(struct dl2_video_notes *sum, const struct dl2_video_notes *other)
{
    sum->sound += other->sound;
    sum->oblong += other->oblong;
    sum->wide_color += other->wide_color;
    sum->interlaced += other->interlaced;
}

void dl2_video_notes_tell(const struct dl2_video_notes *notes, const char *source, const char *made,
                          struct dl2_progress *progress)
{
    if (notes->sound)
        dl2_progress_message(progress, "%s: sound is dropped: %zu videos have it", source,
                             notes->sound);
    if (notes->oblong)
        dl2_progress_message(progress,
                             "%s: pixels that are not square stay so, and %s look stretched: %zu "
                             "videos have them",
                             source, made, notes->oblong);
    if (notes->wide_color)
        dl2_progress_message(progress,
                             "%s: HDR and wide gamuts are not converted, and %s look pale: %zu "
                             "videos have them",
                             source, made, notes->wide_color);
    if (notes->interlaced)
        dl2_progress_message(progress,
                             "%s: frames are not deinterlaced, and %s show combs where something "
                             "moves: %zu videos are interlaced",
                             source, made, notes->interlaced);
}
