/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/metadata.h"

#include "codec/codec.h"
#include "codec/exif.h"

#include <string.h>

int dl2_image_read_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                            struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    metadata->exif.size = metadata->xmp.size = 0;
    metadata->partial = metadata->other = false;
    if (!codec || !codec->metadata)
        return DL2_OK;
    const int status = codec->metadata(data, size, metadata, error);
    if (status == DL2_ERR_MEMORY)
        return status;
    metadata->partial = metadata->partial || status < 0;
    return DL2_OK;
}

/* Sets the digits that follow a word in the packet, with a quote or ">" between, to 1. */
static void set_upright(uint8_t *xmp, size_t size, const char *word)
{
    const size_t length = strlen(word);
    for (size_t at = 0; at + length + 1 < size; at++)
        if (!memcmp(xmp + at, word, length) && memchr("\"'>", xmp[at + length], 3) &&
            xmp[at + length + 1] >= '1' && xmp[at + length + 1] <= '8')
            xmp[at + length + 1] = '1';
}

void dl2_metadata_make_upright(struct dl2_metadata *metadata)
{
    if (metadata->exif.size && !dl2_exif_make_upright(metadata->exif.data, metadata->exif.size)) {
        metadata->exif.size = 0;
        metadata->partial = true;
    }
    set_upright(metadata->xmp.data, metadata->xmp.size, "tiff:Orientation=");
    set_upright(metadata->xmp.data, metadata->xmp.size, "tiff:Orientation");
}

void dl2_metadata_limit(struct dl2_metadata *metadata, size_t most)
{
    metadata->partial =
        metadata->partial || metadata->exif.size > most || metadata->xmp.size > most;
    if (metadata->exif.size > most)
        metadata->exif.size = 0;
    if (metadata->xmp.size > most)
        metadata->xmp.size = 0;
}

void dl2_metadata_free(struct dl2_metadata *metadata)
{
    dl2_bytes_free(&metadata->exif);
    dl2_bytes_free(&metadata->xmp);
}

static int set_block(struct dl2_metadata *metadata, struct dl2_bytes *block, const uint8_t *data,
                     size_t size, struct dl2_error *error)
{
    if (!size || block->size) {
        metadata->partial = true;
        return DL2_OK;
    }
    return dl2_bytes_append(block, data, size, error);
}

int dl2_metadata_set_exif(struct dl2_metadata *metadata, const uint8_t *data, size_t size,
                          struct dl2_error *error)
{
    enum { MARK = 6 };
    const bool marked = size >= MARK && !memcmp(data, "Exif\0\0", MARK);
    return set_block(metadata, &metadata->exif, data + (marked ? MARK : 0),
                     size - (marked ? MARK : 0), error);
}

int dl2_metadata_set_xmp(struct dl2_metadata *metadata, const uint8_t *data, size_t size,
                         struct dl2_error *error)
{
    return set_block(metadata, &metadata->xmp, data, size, error);
}
