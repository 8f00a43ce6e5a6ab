/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_metadata.h"

#include "codec/jpeg/jpeg_header.h"

#include <string.h>

enum { APP1 = DL2_JPEG_APP0 + 1, APP13 = DL2_JPEG_APP0 + 13, COM = 0xfe, EXIF_HEAD = 6 };
static const uint8_t exif_head[EXIF_HEAD] = "Exif\0";
static const uint8_t xmp_head[29] = "http://ns.adobe.com/xap/1.0/";
static const uint8_t extended_head[] = "http://ns.adobe.com/xmp/extension/";

static bool starts_with(const struct dl2_jpeg_marker *marker, const uint8_t *head, size_t size)
{
    return marker->code == APP1 && marker->size >= size && !memcmp(marker->body, head, size);
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
        else if (marker.code == APP1 || marker.code == APP13 || marker.code == COM)
            metadata->other = true;
    }
    return DL2_OK;
}

/* Puts a segment behind the first one, if that is JFIF's. */
static int put_segment(struct dl2_bytes *file, const uint8_t *head, size_t head_bytes,
                       const struct dl2_bytes *content, struct dl2_error *error)
{
    struct dl2_jpeg_marker first = {.end = 2};
    const size_t whole = 2 + head_bytes + content->size;
    const uint8_t marker[4] = {0xff, APP1, (uint8_t)(whole >> 8), (uint8_t)whole};
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
    DL2_TRY(put_segment(file, xmp_head, sizeof xmp_head, &metadata->xmp, error));
    return put_segment(file, exif_head, EXIF_HEAD, &metadata->exif, error);
}
