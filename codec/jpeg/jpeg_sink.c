/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_sink.h"

static void sink_reset(struct dl2_jpeg_sink *sink)
{
    sink->manager.next_output_byte = sink->block;
    sink->manager.free_in_buffer = sizeof sink->block;
}

static void sink_take(j_compress_ptr cinfo, size_t size)
{
    struct dl2_jpeg_sink *sink = (struct dl2_jpeg_sink *)cinfo->dest;
    struct dl2_jpeg_trap *trap = cinfo->client_data;
    trap->status = dl2_bytes_append(sink->out, sink->block, size, trap->error);
    if (trap->status < 0)
        longjmp(trap->jump, 1);
    sink_reset(sink);
}

static void sink_begin(j_compress_ptr cinfo)
{
    sink_reset((struct dl2_jpeg_sink *)cinfo->dest);
}

static boolean sink_full(j_compress_ptr cinfo)
{
    sink_take(cinfo, DL2_JPEG_SINK_BLOCK);
    return TRUE;
}

static void sink_end(j_compress_ptr cinfo)
{
    sink_take(cinfo, DL2_JPEG_SINK_BLOCK - cinfo->dest->free_in_buffer);
}

void dl2_jpeg_sink_set(struct dl2_jpeg_sink *sink, j_compress_ptr cinfo, struct dl2_bytes *out)
{
    sink->manager.init_destination = sink_begin;
    sink->manager.empty_output_buffer = sink_full;
    sink->manager.term_destination = sink_end;
    sink->out = out;
    cinfo->dest = &sink->manager;
}
