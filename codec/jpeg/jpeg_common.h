/* What the parts of the JPEG codec share: libjpeg's errors, its header, its colour spaces. */
#ifndef DL2_CODEC_JPEG_JPEG_COMMON_H
#define DL2_CODEC_JPEG_JPEG_COMMON_H

#include "codec/codec.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* What is behind cinfo->err and cinfo->client_data. */
struct dl2_jpeg_trap {
    struct jpeg_error_mgr manager;
    jmp_buf jump;
    struct dl2_error *error;
    int status;
    bool end_missing; /* the bytes ended before the end-of-image marker */
};

/* Errors, and warnings that mean lost pixels, jump to trap->jump with trap->status set. */
void dl2_jpeg_set_trap(struct dl2_jpeg_trap *trap, struct dl2_error *error);

/* A progress monitor: gives up on files of far more scans than any encoder writes. */
void dl2_jpeg_count_scans(j_common_ptr common);

/* 1 gray, 3 colour, 0 for a colour space that nothing here knows. */
int dl2_jpeg_channels(const struct jpeg_decompress_struct *cinfo);

/* jpeg_read_header() of bytes that stay where they are. */
int dl2_jpeg_read_header(struct jpeg_decompress_struct *cinfo, const uint8_t *data, size_t size,
                         struct dl2_error *error);

/* What the header, read with saved APP1 markers, says of the image. */
void dl2_jpeg_describe(const struct jpeg_decompress_struct *cinfo, struct dl2_image_info *info);

/* DL2_ERR_FORMAT where whole scans may be missing, which libjpeg doesn't warn of. */
int dl2_jpeg_check_end(const struct jpeg_decompress_struct *cinfo, struct dl2_error *error);

/* `inverted`: Adobe's programs store inks inverted, and say who they are. */
void dl2_jpeg_cmyk_to_rgb(const uint8_t *in, uint8_t *out, uint32_t width, bool inverted);

/* Decoding of a part: codec/jpeg/jpeg_region.c. */
extern const struct dl2_region_codec dl2_jpeg_region;

#endif
