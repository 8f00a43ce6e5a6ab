/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_metadata.h"

#include "codec/jpeg/jpeg_header.h"

#include <string.h>

enum { APP1 = DL2_JPEG_APP0 + 1, APP13 = DL2_JPEG_APP0 + 13, COM = 0xfe, EXIF_HEAD = 6 };
/* Parts of profiles: a name, the part's number and how many there are, and what fits behind. */
enum { APP2 = DL2_JPEG_APP0 + 2, NAME = 12, PART_HEAD = NAME + 2, PART = 65533 - PART_HEAD };
static const uint8_t profile_name[NAME] = "ICC_PROFILE";
static const uint8_t exif_head[EXIF_HEAD] = "Exif\0";
static const uint8_t xmp_head[29] = "http://ns.adobe.com/xap/1.0/";
static const uint8_t extended_head[] = "http://ns.adobe.com/xmp/extension/";

static bool starts_with(const struct dl2_jpeg_marker *marker, const uint8_t *head, size_t size)
{
    return marker->code == APP1 && marker->size >= size && !memcmp(marker->body, head, size);
}

/* CIPA DC-007: an index of the pictures in the file, with where they begin. */
static bool is_index(const struct dl2_jpeg_marker *marker)
{
    return marker->code == APP2 && marker->size >= 4 && !memcmp(marker->body, "MPF", 4);
}

bool dl2_jpeg_has_more(const uint8_t *data, size_t size)
{
    struct dl2_jpeg_marker marker = {.end = 2};
    while (dl2_jpeg_next_marker(&marker, data, size) && marker.code != DL2_JPEG_SOS)
        if (is_index(&marker))
            return true;
    return false;
}

int dl2_jpeg_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                      struct dl2_error *error)
{
    struct dl2_jpeg_marker marker = {.end = 2};
    while (dl2_jpeg_next_marker(&marker, data, size) && marker.code != DL2_JPEG_SOS) {
        if (starts_with(&marker, exif_head, EXIF_HEAD))
            DL2_TRY(dl2_metadata_set_exif(metadata, marker.body, marker.size, error));
        else if (starts_with(&marker, xmp_head, sizeof xmp_head))
            DL2_TRY(dl2_metadata_set_xmp(metadata, marker.body + sizeof xmp_head,
                                         marker.size - sizeof xmp_head, error));
        else if (starts_with(&marker, extended_head, sizeof extended_head))
            metadata->partial = true;
        else if (marker.code == APP1 || marker.code == APP13 || marker.code == COM ||
                 is_index(&marker)) /* other pictures have EXIF of their own */
            metadata->other = true;
    }
    return DL2_OK;
}

/* The next segment that is part `number`, from 1 on, of a profile; 0: any. */
static bool next_part(struct dl2_jpeg_marker *marker, const uint8_t *data, size_t size,
                      unsigned number)
{
    while (dl2_jpeg_next_marker(marker, data, size) && marker->code != DL2_JPEG_SOS)
        if (marker->code == APP2 && marker->size >= PART_HEAD &&
            !memcmp(marker->body, profile_name, NAME) && (!number || marker->body[NAME] == number))
            return true;
    return false;
}

/* Parts may come in any order. What is missing makes the profile damaged, as its own length says.
 */
int dl2_jpeg_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                   struct dl2_error *error)
{
    struct dl2_jpeg_marker any = {.end = 2};
    if (!next_part(&any, data, size, 0))
        return DL2_OK;
    color->form = DL2_COLOR_SPACE_ICC;
    for (unsigned number = 1; number <= any.body[NAME + 1]; number++) {
        struct dl2_jpeg_marker part = {.end = 2};
        if (next_part(&part, data, size, number))
            DL2_TRY(
                dl2_bytes_append(&color->icc, part.body + PART_HEAD, part.size - PART_HEAD, error));
    }
    return DL2_OK;
}

/* Puts a segment behind the first one, if that is JFIF's. */
static int put_segment(struct dl2_bytes *file, uint8_t code, const uint8_t *head, size_t head_bytes,
                       const struct dl2_bytes *content, struct dl2_error *error)
{
    struct dl2_jpeg_marker first = {.end = 2};
    const size_t whole = 2 + head_bytes + content->size;
    const uint8_t marker[4] = {0xff, code, (uint8_t)(whole >> 8), (uint8_t)whole};
    if (!content->size)
        return DL2_OK;
    const bool jfif =
        dl2_jpeg_next_marker(&first, file->data, file->size) && first.code == DL2_JPEG_APP0;
    const size_t at = jfif ? first.end : 2;
    DL2_TRY(dl2_bytes_insert(file, at, content->data, content->size, error));
    DL2_TRY(dl2_bytes_insert(file, at, head, head_bytes, error));
    return dl2_bytes_insert(file, at, marker, sizeof marker, error);
}

int dl2_jpeg_put_metadata(struct dl2_bytes *file, const struct dl2_metadata *metadata,
                          struct dl2_error *error)
{
    DL2_TRY(put_segment(file, APP1, xmp_head, sizeof xmp_head, &metadata->xmp, error));
    return put_segment(file, APP1, exif_head, EXIF_HEAD, &metadata->exif, error);
}

int dl2_jpeg_put_profile(struct dl2_bytes *file, const struct dl2_bytes *profile,
                         struct dl2_error *error)
{
    const size_t parts = (profile->size + PART - 1) / PART;
    uint8_t head[PART_HEAD];
    if (parts < 1 || parts > 255)
        return dl2_error_set(error, DL2_ERR_LIMIT, "JPEG: a profile of %zu bytes", profile->size);
    memcpy(head, profile_name, NAME);
    head[NAME + 1] = (uint8_t)parts;
    for (size_t part = parts; part > 0; part--) { /* each goes before the one behind it */
        const size_t begin = (part - 1) * PART, rest = profile->size - begin;
        const struct dl2_bytes own = {.data = profile->data + begin,
                                      .size = rest < PART ? rest : PART};
        head[NAME] = (uint8_t)part;
        DL2_TRY(put_segment(file, APP2, head, sizeof head, &own, error));
    }
    return DL2_OK;
}
