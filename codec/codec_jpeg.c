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
#include "codec/jpeg/jpeg_common.h"
#include "codec/jpeg/jpeg_tiles.h"

#include <string.h>

enum {
    MAX_EFFORT = 2,
    BLOCK = 16384,
};

static bool sniff(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

static int read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    struct jpeg_decompress_struct cinfo;
    struct dl2_jpeg_trap trap;
    dl2_jpeg_set_trap(&trap, error);
    memset(&cinfo, 0, sizeof cinfo);
    cinfo.err = &trap.manager;
    cinfo.client_data = &trap;
    if (setjmp(trap.jump)) {
        jpeg_destroy_decompress(&cinfo);
        return trap.status;
    }
    jpeg_create_decompress(&cinfo);
    jpeg_save_markers(&cinfo, JPEG_APP0 + 1, 0xffff);
    int status = dl2_jpeg_read_header(&cinfo, data, size, error);
    if (status == DL2_OK)
        dl2_jpeg_describe(&cinfo, info);
    jpeg_destroy_decompress(&cinfo);
    return status;
}

static int decode_rows(struct jpeg_decompress_struct *cinfo,
                       const struct dl2_decode_options *options, struct dl2_image *image,
                       struct dl2_error *error)
{
    uint64_t max_pixels = options->max_pixels ? options->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(dl2_image_check_size(cinfo->image_width, cinfo->image_height, max_pixels, error));
    uint32_t channels = (uint32_t)dl2_jpeg_channels(cinfo);
    if (options->channels == 1 && cinfo->jpeg_color_space == JCS_YCbCr)
        channels = 1; /* the luma as it is coded, without a detour by RGB */
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
            dl2_jpeg_cmyk_to_rgb(inks[0], row, image->width, cinfo->saw_Adobe_marker);
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
    struct jpeg_progress_mgr progress = {.progress_monitor = dl2_jpeg_count_scans};
    struct dl2_jpeg_trap trap;
    dl2_jpeg_set_trap(&trap, error);
    memset(&cinfo, 0, sizeof cinfo);
    cinfo.err = &trap.manager;
    cinfo.client_data = &trap;
    if (setjmp(trap.jump)) {
        jpeg_destroy_decompress(&cinfo);
        return trap.status;
    }
    jpeg_create_decompress(&cinfo);
    cinfo.progress = &progress;
    int status = dl2_jpeg_read_header(&cinfo, data, size, error);
    if (status == DL2_OK)
        status = decode_rows(&cinfo, options, image, error);
    if (status == DL2_OK)
        status = dl2_jpeg_check_end(&cinfo, error);
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
    struct dl2_jpeg_trap *trap = cinfo->client_data;
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

/* The scans of a progressive file can't be taken apart. */
static bool has_tiles(const struct dl2_encode_options *options)
{
    return options->effort < 2 && !strcmp(dl2_restart_find(options->restart), "tiles");
}

static int encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                  struct dl2_bytes *out, struct dl2_error *error)
{
    struct jpeg_compress_struct cinfo;
    struct dl2_jpeg_trap trap;
    struct sink sink = {.manager = {.init_destination = sink_begin,
                                    .empty_output_buffer = sink_full,
                                    .term_destination = sink_end},
                        .out = out};
    if (options->effort >= 2 && options->restart && !strcmp(options->restart, "tiles"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a progressive JPEG can't have tiles");
    dl2_jpeg_set_trap(&trap, error);
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
    if (has_tiles(options))
        cinfo.restart_interval = dl2_jpeg_tile_interval(
            image->width, 8 * (uint32_t)cinfo.comp_info[0].h_samp_factor,
            8 * (uint32_t)cinfo.comp_info[0].v_samp_factor, options->quality);
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
    return json_pack("{s:i, s:s, s:b, s:b, s:b, s:s, s:s}", "quality", options->quality,
                     "subsampling", dl2_subsampling_find(options->subsampling), "optimize_coding",
                     options->effort >= 1, "progressive", options->effort >= 2, "force_baseline", 1,
                     "dct_method", "islow", "restart", has_tiles(options) ? "tiles" : "none");
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
    .has_restart = true,
    .max_effort = MAX_EFFORT,
    .effort_help = "0 standard tables, 1 optimised, 2 progressive; default 0",
    .pixel_bytes = 6,
    .version = version,
    .sniff = sniff,
    .read_info = read_info,
    .decode = decode,
    .region = &dl2_jpeg_region,
    .encode = encode,
    .encoder_parameters = encoder_parameters,
};
