/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_profile.h"

#include "codec/jpeg/jpeg_header.h"

#include <string.h>

enum { APP2 = 0xe2, NAME = 12, HEAD = NAME + 2, PART = 65533 - HEAD };

static const uint8_t profile_name[NAME] = "ICC_PROFILE";

/* The next segment that is part `number`, from 1 on, of a profile; 0: any. */
static bool profile_next_part(struct dl2_jpeg_marker *marker, const uint8_t *data, size_t size,
                              unsigned number)
{
    while (dl2_jpeg_next_marker(marker, data, size) && marker->code != DL2_JPEG_SOS)
        if (marker->code == APP2 && marker->size >= HEAD &&
            !memcmp(marker->body, profile_name, NAME) && (!number || marker->body[NAME] == number))
            return true;
    return false;
}

/* Parts may come in any order. What is missing makes the profile damaged, as its own length says.
 */
int dl2_jpeg_colour(const uint8_t *data, size_t size, struct dl2_colour *colour,
                    struct dl2_error *error)
{
    struct dl2_jpeg_marker any = {.end = 2};
    if (!profile_next_part(&any, data, size, 0))
        return DL2_OK;
    colour->form = DL2_COLOUR_ICC;
    for (unsigned number = 1; number <= any.body[NAME + 1]; number++) {
        struct dl2_jpeg_marker part = {.end = 2};
        if (profile_next_part(&part, data, size, number))
            DL2_TRY(dl2_bytes_append(&colour->icc, part.body + HEAD, part.size - HEAD, error));
    }
    return DL2_OK;
}

int dl2_jpeg_put_profile(struct dl2_bytes *file, const struct dl2_bytes *profile,
                         struct dl2_error *error)
{
    struct dl2_jpeg_marker first = {.end = 2};
    const size_t parts = (profile->size + PART - 1) / PART;
    if (parts < 1 || parts > 255)
        return dl2_error_set(error, DL2_ERR_LIMIT, "JPEG: a profile of %zu bytes", profile->size);
    size_t at = dl2_jpeg_next_marker(&first, file->data, file->size) && first.code == DL2_JPEG_APP0
                    ? first.end
                    : 2;
    for (size_t part = 0; part < parts; part++) {
        const size_t begin = part * PART;
        const size_t length = profile->size - begin < PART ? profile->size - begin : PART;
        const size_t whole = length + HEAD + 2;
        uint8_t head[4 + HEAD] = {0xff, APP2, (uint8_t)(whole >> 8), (uint8_t)whole};
        memcpy(head + 4, profile_name, NAME);
        head[4 + NAME] = (uint8_t)(part + 1);
        head[5 + NAME] = (uint8_t)parts;
        DL2_TRY(dl2_bytes_insert(file, at, head, sizeof head, error));
        DL2_TRY(dl2_bytes_insert(file, at + sizeof head, profile->data + begin, length, error));
        at += sizeof head + length;
    }
    return DL2_OK;
}
