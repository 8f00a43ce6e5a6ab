/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an image file says beside its pixels and colors: the EXIF block (CIPA DC-008) and the XMP
 * packet (ISO 16684-1). Where they lie is each codec's matter (struct dl2_codec).
 *
 * Threads: one at a time for each object.
 */
#ifndef DL2_CODEC_METADATA_H
#define DL2_CODEC_METADATA_H

#include "common/error.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed at first; read again and again, it keeps its memory. */
struct dl2_metadata {
    struct dl2_bytes exif; /* from its TIFF header on; empty: none */
    struct dl2_bytes xmp;  /* empty: none */
    bool partial;          /* there is EXIF or XMP that is not in these */
    bool other;            /* the file also has comments, IPTC, or others' data */
};

/*
 * Reads a file's. Nothing where it has none or is damaged, or no codec knows the bytes: damaged
 * metadata is no reason to refuse a picture, but `partial`. Fails only where memory runs out.
 */
int dl2_image_read_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                            struct dl2_error *error);

/* Makes it fit upright pixels: the orientation becomes 1, in EXIF and in XMP's tiff:Orientation,
 * and EXIF's thumbnail is no longer found. A block that is no EXIF is emptied, and `partial` set.
 */
void dl2_metadata_make_upright(struct dl2_metadata *metadata);

/* Empties blocks of more than `most` bytes, and sets `partial`. */
void dl2_metadata_limit(struct dl2_metadata *metadata, size_t most);

void dl2_metadata_free(struct dl2_metadata *metadata);

/* For codecs: makes a block of these bytes, without "Exif\0\0" before them. A second one is only
 * noted, in `partial`. */
int dl2_metadata_set_exif(struct dl2_metadata *metadata, const uint8_t *data, size_t size,
                          struct dl2_error *error);
int dl2_metadata_set_xmp(struct dl2_metadata *metadata, const uint8_t *data, size_t size,
                         struct dl2_error *error);

#endif
