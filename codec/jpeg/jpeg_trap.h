/* SPDX-License-Identifier: BSD-2-Clause */
/* What libjpeg calls: its errors jump back to the caller instead of ending the process, and what it
 * writes is collected in the caller's bytes. */
#ifndef DL2_CODEC_JPEG_JPEG_TRAP_H
#define DL2_CODEC_JPEG_JPEG_TRAP_H

#include "common/error.h"
#include "common/memory.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct dl2_jpeg_trap {
    struct jpeg_error_mgr manager;
    jmp_buf jump;
    struct dl2_error *error;
    int status;
    bool end_missing; /* the bytes ended before the end-of-image marker */
};

/* From now on errors of `cinfo`, and warnings that mean lost pixels, set trap->status and jump to
 * trap->jump, which the caller sets. `cinfo` need not have been created yet. */
void dl2_jpeg_set_trap(struct dl2_jpeg_trap *trap, j_common_ptr cinfo, struct dl2_error *error);

enum { DL2_JPEG_SINK_BLOCK = 16384 };

struct dl2_jpeg_sink {
    struct jpeg_destination_mgr manager;
    struct dl2_bytes *out;
    uint8_t block[DL2_JPEG_SINK_BLOCK];
};

/* Makes `cinfo`, whose client_data is a trap, append what it writes to `out`. The sink stays where
 * it is until then. */
void dl2_jpeg_sink_set(struct dl2_jpeg_sink *sink, j_compress_ptr cinfo, struct dl2_bytes *out);

#endif
