#include "codec/jpeg/jpeg_common.h"

#include "codec/exif.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

/* Real progressive files have about ten scans; each scan of a large image costs real time. */
enum { MAX_SCANS = 100 };

static int status_of(int code)
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

static void fail_with_message(j_common_ptr cinfo, int status)
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

static void on_error(j_common_ptr cinfo)
{
    fail_with_message(cinfo, status_of(cinfo->err->msg_code));
}

/* Level -1 is a warning; the others are traces. */
static void on_message(j_common_ptr cinfo, int level)
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
    case JWRN_JPEG_EOF: /* decode() judges, when it knows whether all pixels came */
        trap->end_missing = true;
        return;
    default:
        fail_with_message(cinfo, DL2_ERR_FORMAT);
    }
}

static void no_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

void dl2_jpeg_set_trap(struct dl2_jpeg_trap *trap, struct dl2_error *error)
{
    jpeg_std_error(&trap->manager);
    trap->manager.error_exit = on_error;
    trap->manager.emit_message = on_message;
    trap->manager.output_message = no_output;
    trap->error = error;
    trap->status = DL2_OK;
    trap->end_missing = false;
}

void dl2_jpeg_count_scans(j_common_ptr common)
{
    j_decompress_ptr cinfo = (j_decompress_ptr)common;
    struct dl2_jpeg_trap *trap = cinfo->client_data;
    if (cinfo->input_scan_number <= MAX_SCANS)
        return;
    trap->status =
        dl2_error_set(trap->error, DL2_ERR_LIMIT, "JPEG: more than %d scans", (int)MAX_SCANS);
    longjmp(trap->jump, 1);
}

int dl2_jpeg_channels(const struct jpeg_decompress_struct *cinfo)
{
    switch (cinfo->jpeg_color_space) {
    case JCS_GRAYSCALE:
        return 1;
    case JCS_RGB:
    case JCS_YCbCr:
    case JCS_CMYK:
    case JCS_YCCK:
        return 3;
    default:
        return 0;
    }
}

int dl2_jpeg_read_header(struct jpeg_decompress_struct *cinfo, const uint8_t *data, size_t size,
                         struct dl2_error *error)
{
    jpeg_mem_src(cinfo, data, size);
    jpeg_read_header(cinfo, TRUE);
    if (!dl2_jpeg_channels(cinfo))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG: %d components of an unknown colour space",
                             cinfo->num_components);
    return DL2_OK;
}

/* Adobe's programs store inks inverted, and say who they are; others store them as they are. */
void dl2_jpeg_cmyk_to_rgb(const uint8_t *in, uint8_t *out, uint32_t width, bool inverted)
{
    for (uint32_t x = 0; x < width; x++, in += 4, out += 3) {
        unsigned flip = inverted ? 0 : 255, k = in[3] ^ flip;
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)(((in[c] ^ flip) * k + 127) / 255);
    }
}

void dl2_jpeg_describe(const struct jpeg_decompress_struct *cinfo, struct dl2_image_info *info)
{
    *info = (struct dl2_image_info){.width = cinfo->image_width,
                                    .height = cinfo->image_height,
                                    .channels = (uint32_t)dl2_jpeg_channels(cinfo),
                                    .bits = (uint32_t)cinfo->data_precision,
                                    .orientation = 1};
    for (jpeg_saved_marker_ptr marker = cinfo->marker_list; marker; marker = marker->next) {
        if (marker->data_length >= 6 && !memcmp(marker->data, "Exif\0\0", 6)) {
            info->orientation = dl2_exif_orientation(marker->data, marker->data_length);
            return;
        }
    }
}

int dl2_jpeg_check_end(const struct jpeg_decompress_struct *cinfo, struct dl2_error *error)
{
    /*
     * Where all components come in one Huffman-coded scan, libjpeg has warned (and we have left)
     * if even one block was short of bits, and only the end marker is missing. Otherwise what is
     * missing may be whole scans.
     */
    const struct dl2_jpeg_trap *trap = cinfo->client_data;
    const bool one_scan = !cinfo->progressive_mode && !cinfo->arith_code &&
                          cinfo->comps_in_scan == cinfo->num_components;
    if (trap->end_missing && !one_scan)
        return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG: the file is cut short");
    return DL2_OK;
}
