/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/unusual.h"

#define ROW(member, title, text)                                                                   \
    {                                                                                              \
#member, title, text, offsetof(struct dl2_loader_stats, member)                            \
    }

static const struct dl2_unusual rows[DL2_UNUSUAL + 1] = {
    ROW(oblong, "pixels not square", "videos have pixels that are not square: they look stretched"),
    ROW(wide_color, "HDR or wide gamut",
        "videos are HDR or of a wide gamut, which is not converted: they look pale"),
    ROW(interlaced, "interlaced videos",
        "videos are interlaced, which stays so: they show combs where something moves"),
    ROW(above_8_bits, "above 8 bits", "images have more than 8 bits a sample, and are loaded at 8"),
    ROW(nearly_black, "nearly black",
        "images have 16 bits a sample and no value above a sixteenth of the range, as data of 12 "
        "bits have: they load nearly black, unless their values are multiplied first"),
    ROW(several_frames, "several frames",
        "images have several frames, pages or pictures, of which the first is loaded"),
    ROW(dropped_bands, "bands dropped", "images have further bands, which are not loaded"),
    ROW(no_label_file, "without a label file", "images have no label file: they are background"),
};

const struct dl2_unusual *dl2_unusual_rows(void)
{
    return rows;
}

uint64_t dl2_unusual_count(const struct dl2_loader_stats *stats, const struct dl2_unusual *row)
{
    return *(const uint64_t *)(const void *)((const char *)stats + row->offset);
}

void dl2_unusual_add(struct dl2_loader_stats *sum, const struct dl2_loader_stats *part)
{
    for (const struct dl2_unusual *row = rows; row->name; row++)
        *(uint64_t *)(void *)((char *)sum + row->offset) += dl2_unusual_count(part, row);
}

void dl2_unusual_note(struct dl2_loader_stats *stats, const struct dl2_image_info *info,
                      const struct dl2_raster *raster)
{
    stats->several_frames += info->has_more;
    stats->dropped_bands += info->left_out > 0;
    stats->above_8_bits += info->bits > 8;
    stats->nearly_black += dl2_image_is_nearly_black(info, raster);
}

void dl2_unusual_note_video(struct dl2_loader_stats *stats, const struct dl2_video_info *info)
{
    stats->oblong += !info->square_pixels;
    stats->wide_color += info->wide_color;
    stats->interlaced += info->interlaced;
}
