/*
 * JPEG through libjpeg-turbo.
 *
 * libjpeg ends the process on errors and only warns of damaged data; here an error jumps back, and
 * a warning that means lost pixels is an error. CMYK and YCCK are converted without colour
 * management.
 *
 * Quality is libjpeg's own (IJG tables scaled, baseline: no table entry above 255), so figures
 * compare with everyone else's. By default 4:2:0 and the standard Huffman tables, as cjpeg does it
 * and as the published rate-distortion figures were made. Effort 1 makes Huffman tables for each
 * image (some 6% smaller), effort 2 is progressive (smaller again, several times slower to decode).
 */
#include "codec/codecs.h"
#include "codec/exif.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
    /* Real progressive files have about ten scans; each scan of a large image costs real time. */
    MAX_SCANS = 100,
    MAX_EFFORT = 2,
    BLOCK = 16384,
};

/* What is behind cinfo->err and cinfo->client_data. */
struct trap {
    struct jpeg_error_mgr manager;
    jmp_buf jump;
    struct dl2_error *error;
    int status;
    bool end_missing; /* the bytes ended before the end-of-image marker */
};

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
    struct trap *trap = cinfo->client_data;
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
    struct trap *trap = cinfo->client_data;
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

static void set_trap(struct trap *trap, struct dl2_error *error)
{
    jpeg_std_error(&trap->manager);
    trap->manager.error_exit = on_error;
    trap->manager.emit_message = on_message;
    trap->manager.output_message = no_output;
    trap->error = error;
    trap->status = DL2_OK;
    trap->end_missing = false;
}

static void count_scans(j_common_ptr common)
{
    j_decompress_ptr cinfo = (j_decompress_ptr)common;
    struct trap *trap = cinfo->client_data;
    if (cinfo->input_scan_number <= MAX_SCANS)
        return;
    trap->status =
        dl2_error_set(trap->error, DL2_ERR_LIMIT, "JPEG: more than %d scans", (int)MAX_SCANS);
    longjmp(trap->jump, 1);
}

static int colour_channels(const struct jpeg_decompress_struct *cinfo)
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

static int read_header(struct jpeg_decompress_struct *cinfo, const uint8_t *data, size_t size,
                       struct dl2_error *error)
{
    jpeg_mem_src(cinfo, data, size);
    jpeg_read_header(cinfo, TRUE);
    if (!colour_channels(cinfo))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG: %d components of an unknown colour space",
                             cinfo->num_components);
    return DL2_OK;
}

static bool sniff(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

static int read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    struct jpeg_decompress_struct cinfo;
    struct trap trap;
    set_trap(&trap, error);
    memset(&cinfo, 0, sizeof cinfo);
    cinfo.err = &trap.manager;
    cinfo.client_data = &trap;
    if (setjmp(trap.jump)) {
        jpeg_destroy_decompress(&cinfo);
        return trap.status;
    }
    jpeg_create_decompress(&cinfo);
    jpeg_save_markers(&cinfo, JPEG_APP0 + 1, 0xffff);
    int status = read_header(&cinfo, data, size, error);
    if (status == DL2_OK) {
        *info = (struct dl2_image_info){.width = cinfo.image_width,
                                        .height = cinfo.image_height,
                                        .channels = (uint32_t)colour_channels(&cinfo),
                                        .bits = (uint32_t)cinfo.data_precision,
                                        .orientation = 1};
        for (jpeg_saved_marker_ptr marker = cinfo.marker_list; marker; marker = marker->next) {
            if (marker->data_length >= 6 && !memcmp(marker->data, "Exif\0\0", 6)) {
                info->orientation = dl2_exif_orientation(marker->data, marker->data_length);
                break;
            }
        }
    }
    jpeg_destroy_decompress(&cinfo);
    return status;
}

/* Adobe's programs store inks inverted, and say who they are; others store them as they are. */
static void cmyk_to_rgb(const uint8_t *in, uint8_t *out, uint32_t width, bool inverted)
{
    for (uint32_t x = 0; x < width; x++, in += 4, out += 3) {
        unsigned flip = inverted ? 0 : 255, k = in[3] ^ flip;
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)(((in[c] ^ flip) * k + 127) / 255);
    }
}

static int decode_rows(struct jpeg_decompress_struct *cinfo,
                       const struct dl2_decode_options *options, struct dl2_image *image,
                       struct dl2_error *error)
{
    uint64_t max_pixels = options->max_pixels ? options->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(dl2_image_check_size(cinfo->image_width, cinfo->image_height, max_pixels, error));
    uint32_t channels = (uint32_t)colour_channels(cinfo);
    DL2_TRY(dl2_image_reshape(image, cinfo->image_width, cinfo->image_height, channels, error));

    bool cmyk = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
    cinfo->out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(cinfo);
    JSAMPARRAY inks = NULL; /* in libjpeg's pool, which goes with cinfo */
    if (cmyk)
        inks = cinfo->mem->alloc_sarray((j_common_ptr)cinfo, JPOOL_IMAGE, 4 * image->width, 1);
    while (cinfo->output_scanline < cinfo->output_height) {
        uint8_t *row = image->data + cinfo->output_scanline * image->stride;
        if (cmyk) {
            jpeg_read_scanlines(cinfo, inks, 1);
            cmyk_to_rgb(inks[0], row, image->width, cinfo->saw_Adobe_marker);
            continue;
        }
        /* As many rows as libjpeg makes at once, at most, and then it needs no buffer of its own.
         */
        JSAMPROW rows[4];
        JDIMENSION count = 0, left = cinfo->output_height - cinfo->output_scanline;
        for (; count < 4 && count < left; count++)
            rows[count] = row + count * image->stride;
        jpeg_read_scanlines(cinfo, rows, count);
    }
    return DL2_OK;
}

static int decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_error *error)
{
    struct jpeg_decompress_struct cinfo;
    struct jpeg_progress_mgr progress = {.progress_monitor = count_scans};
    struct trap trap;
    set_trap(&trap, error);
    memset(&cinfo, 0, sizeof cinfo);
    cinfo.err = &trap.manager;
    cinfo.client_data = &trap;
    if (setjmp(trap.jump)) {
        jpeg_destroy_decompress(&cinfo);
        return trap.status;
    }
    jpeg_create_decompress(&cinfo);
    cinfo.progress = &progress;
    int status = read_header(&cinfo, data, size, error);
    if (status == DL2_OK)
        status = decode_rows(&cinfo, options, image, error);
    if (status == DL2_OK) {
        /*
         * Where all components come in one Huffman-coded scan, libjpeg has warned (and we have
         * left) if even one block was short of bits, and only the end marker is missing. Otherwise
         * what is missing may be whole scans.
         */
        bool one_scan = !cinfo.progressive_mode && !cinfo.arith_code &&
                        cinfo.comps_in_scan == cinfo.num_components;
        if (trap.end_missing && !one_scan)
            status = dl2_error_set(error, DL2_ERR_FORMAT, "JPEG: the file is cut short");
    }
    jpeg_destroy_decompress(&cinfo);
    return status;
}

/* Collects what libjpeg writes in the caller's bytes. */
struct sink {
    struct jpeg_destination_mgr manager;
    struct dl2_bytes *out;
    uint8_t block[BLOCK];
};

static void sink_reset(struct sink *sink)
{
    sink->manager.next_output_byte = sink->block;
    sink->manager.free_in_buffer = sizeof sink->block;
}

static void sink_take(j_compress_ptr cinfo, size_t size)
{
    struct sink *sink = (struct sink *)cinfo->dest;
    struct trap *trap = cinfo->client_data;
    trap->status = dl2_bytes_append(sink->out, sink->block, size, trap->error);
    if (trap->status < 0)
        longjmp(trap->jump, 1);
    sink_reset(sink);
}

static void sink_begin(j_compress_ptr cinfo)
{
    sink_reset((struct sink *)cinfo->dest);
}

static boolean sink_full(j_compress_ptr cinfo)
{
    sink_take(cinfo, BLOCK);
    return TRUE;
}

static void sink_end(j_compress_ptr cinfo)
{
    sink_take(cinfo, BLOCK - cinfo->dest->free_in_buffer);
}

static int encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                  struct dl2_bytes *out, struct dl2_error *error)
{
    struct jpeg_compress_struct cinfo;
    struct trap trap;
    struct sink sink = {.manager = {.init_destination = sink_begin,
                                    .empty_output_buffer = sink_full,
                                    .term_destination = sink_end},
                        .out = out};
    set_trap(&trap, error);
    memset(&cinfo, 0, sizeof cinfo);
    cinfo.err = &trap.manager;
    cinfo.client_data = &trap;
    if (setjmp(trap.jump)) {
        jpeg_destroy_compress(&cinfo);
        return trap.status;
    }
    jpeg_create_compress(&cinfo);
    cinfo.dest = &sink.manager;
    cinfo.image_width = image->width;
    cinfo.image_height = image->height;
    cinfo.input_components = (int)image->channels;
    cinfo.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, options->quality, TRUE);
    cinfo.optimize_coding = options->effort >= 1;
    if (options->effort >= 2)
        jpeg_simple_progression(&cinfo);
    if (image->channels == 3) {
        const char *subsampling = dl2_subsampling_find(options->subsampling);
        cinfo.comp_info[0].h_samp_factor = subsampling[1] == '4' ? 1 : 2;
        cinfo.comp_info[0].v_samp_factor = subsampling[2] == '0' ? 2 : 1;
    }
    jpeg_start_compress(&cinfo, TRUE);
    while (cinfo.next_scanline < cinfo.image_height) {
        JSAMPROW rows[16];
        JDIMENSION count = 0, left = cinfo.image_height - cinfo.next_scanline;
        for (; count < 16 && count < left; count++)
            rows[count] = image->data + (cinfo.next_scanline + count) * image->stride;
        jpeg_write_scanlines(&cinfo, rows, count);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    return DL2_OK;
}

static json_t *encoder_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:i, s:s, s:b, s:b, s:b, s:s}", "quality", options->quality, "subsampling",
                     dl2_subsampling_find(options->subsampling), "optimize_coding",
                     options->effort >= 1, "progressive", options->effort >= 2, "force_baseline", 1,
                     "dct_method", "islow");
}

#define TEXT(x)       #x
#define TEXT_VALUE(x) TEXT(x)

static const char *version(void)
{
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " TEXT_VALUE(LIBJPEG_TURBO_VERSION);
#else
    return "libjpeg " TEXT_VALUE(JPEG_LIB_VERSION);
#endif
}

static const char *const extensions[] = {"jpg", "jpeg", "jpe", "jfif", NULL};

const struct dl2_codec dl2_codec_jpeg = {
    .name = "jpeg",
    .extension = "jpg",
    .extensions = extensions,
    .lossy = true,
    .max_side = 65500,
    .has_subsampling = true,
    .max_effort = MAX_EFFORT,
    .effort_help = "0 standard Huffman tables, 1 optimised, 2 progressive; default 0",
    .pixel_bytes = 6,
    .version = version,
    .sniff = sniff,
    .read_info = read_info,
    .decode = decode,
    .encode = encode,
    .encoder_parameters = encoder_parameters,
};
