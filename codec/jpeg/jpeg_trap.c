/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_trap.h"

#include <jerror.h>

static int jpeg_error_status(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return DL2_ERR_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
        return DL2_ERR_UNSUPPORTED;
    default:
        return DL2_ERR_FORMAT;
    }
}

static void jpeg_fail(j_common_ptr cinfo, int status)
{
    struct dl2_jpeg_trap *trap = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    if (cinfo->err->msg_code == JERR_BAD_PRECISION)
        snprintf(text, sizeof text, "%d bits a sample are not supported, only 8",
                 cinfo->err->msg_parm.i[0]);
    else if (cinfo->err->msg_code == JERR_SOF_UNSUPPORTED)
        snprintf(text, sizeof text,
                 "lossless or hierarchical JPEG (frame type 0x%02x) is not supported",
                 (unsigned)cinfo->err->msg_parm.i[0]);
    trap->status = dl2_error_set(trap->error, status, "JPEG: %s", text);
    longjmp(trap->jump, 1);
}

static void jpeg_on_error(j_common_ptr cinfo)
{
    jpeg_fail(cinfo, jpeg_error_status(cinfo->err->msg_code));
}

/* Level -1 is a warning; the others are traces. */
static void jpeg_on_message(j_common_ptr cinfo, int level)
{
    struct dl2_jpeg_trap *trap = cinfo->client_data;
    if (level >= 0)
        return;
    switch (cinfo->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_EXTRANEOUS_DATA: /* padding before a marker; the pixels are all there */
    case JWRN_BOGUS_PROGRESSION:
        return;
    case JWRN_JPEG_EOF: /* jpeg_check_end() judges once all rows have been read */
        trap->end_missing = true;
        return;
    default:
        jpeg_fail(cinfo, DL2_ERR_FORMAT);
    }
}

static void jpeg_print_nothing(j_common_ptr cinfo)
{
    (void)cinfo;
}

void dl2_jpeg_set_trap(struct dl2_jpeg_trap *trap, j_common_ptr cinfo, struct dl2_error *error)
{
    cinfo->err = &trap->manager;
    cinfo->client_data = trap;
    jpeg_std_error(&trap->manager);
    trap->manager.error_exit = jpeg_on_error;
    trap->manager.emit_message = jpeg_on_message;
    trap->manager.output_message = jpeg_print_nothing;
    trap->error = error;
    trap->status = DL2_OK;
    trap->end_missing = false;
}

/* ---- Output */

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
