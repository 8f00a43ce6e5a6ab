/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects what libjpeg writes in the caller's bytes. */
#ifndef DL2_CODEC_JPEG_JPEG_SINK_H
#define DL2_CODEC_JPEG_JPEG_SINK_H

#include "codec/jpeg/jpeg_trap.h"
#include "common/memory.h"

#include <stdint.h>

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
