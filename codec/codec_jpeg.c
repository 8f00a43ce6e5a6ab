/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JPEG: the codec's row and encoding. libjpeg-turbo has the parameters and the tables; our own
 * encoder (codec/jpeg/jpeg_sweep.h) makes baseline files, to the same bytes, and libjpeg-turbo the
 * progressive ones. Decoding is in codec/jpeg/jpeg_decode.c.
 *
 * Quality is libjpeg's own (IJG tables scaled, baseline: no table entry above 255), so figures
 * compare with everyone else's. The default is 4:2:0, as with cjpeg, and Huffman tables for each
 * image unless the standard ones make the smaller file. Effort 0 has the standard tables, as cjpeg
 * and the published rate-distortion figures, effort 1 those for the image, and effort 2 is
 * progressive (smaller again, several times slower to decode).
 *
 * The files of codec/jpeg/; each header says more:
 *
 *     what a file's headers say
 *       jpeg_header.c     markers of a baseline file and of its restart intervals
 *       jpeg_frame.h      what decoding a scan needs of the headers
 *       jpeg_coding.c     quality, subsampling, progressive or not
 *       jpeg_metadata.c   the ICC profile, EXIF and XMP in a file, and putting them there
 *       jpeg_plain.c      is it a file that decoders in hardware know?
 *     decoding
 *       jpeg_decode.c     chooses between libjpeg-turbo and our own decoder
 *       jpeg_baseline.c   our own decoder, of these stages (map in its header):
 *       jpeg_segments.c, jpeg_huffman.c, jpeg_entropy.c, jpeg_inverse*.c
 *       jpeg_color*.c     planes to RGB
 *     encoding several qualities
 *       jpeg_sweep.c      our own encoder, of these stages:
 *       jpeg_forward*.c   pixels to quantized coefficients
 *       jpeg_optimal.c    Huffman tables for an image
 *       jpeg_writer.c     headers and Huffman coding
 *       jpeg_trial.c      what decoding files would give, without making them
 *     parts of files, without decoding them
 *       jpeg_tiles.c      restart intervals that make a crop addressable, and splicing them
 *       jpeg_retile.c     gives a file restart intervals
 *       jpeg_slices.c     MCU rows that can be read alone
 *     calling libjpeg-turbo
 *       jpeg_arena.c, jpeg_trap.c: its memory, its errors and output
 *
 * NAME_avx2.c, NAME_avx512.c and NAME_neon.c hold the SIMD variants of NAME.c. The first two
 * compile NAME_simd.inc, and jpeg_color_x86.c is compiled for both; jpeg_lanes_*.inc have the
 * operations on vectors that they share.
 */
#include "codec/codecs.h"
#include "codec/jpeg/jpeg_coding.h"
#include "codec/jpeg/jpeg_decode.h"
#include "codec/jpeg/jpeg_forward.h"
#include "codec/jpeg/jpeg_metadata.h"
#include "codec/jpeg/jpeg_retile.h"
#include "codec/jpeg/jpeg_slices.h"
#include "codec/jpeg/jpeg_sweep.h"
#include "codec/jpeg/jpeg_tiles.h"
#include "codec/jpeg/jpeg_trap.h"
#include "codec/jpeg/jpeg_trial.h"
#include "codec/jpeg/jpeg_writer.h"
#include "codec/jpeg_tables.h"
#include "common/scope.h"
#include "common/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AUTO = -1, STANDARD, OPTIMIZED, PROGRESSIVE };

enum { TURN };
static const struct dl2_setting jpeg_settings[] = {
    [TURN] = {.name = "turn",
              .words = dl2_setting_no_yes,
              .help = "wide images on their side, with an EXIF orientation: crops read less"},
    {.name = NULL},
};

/* The scans of a progressive file can't be taken apart. */
static bool jpeg_has_tiles(const struct dl2_encode_options *options)
{
    return options->effort < PROGRESSIVE && !strcmp(dl2_restart_find(options->restart), "tiles");
}

/* Slices are rows as coded: of a wide image crops need fewer bytes if it lies on its side. */
static bool is_turned(const struct dl2_image *image, const struct dl2_encode_options *options)
{
    return image->width > image->height && dl2_setting_value(jpeg_settings, options, TURN) > 0;
}

/* Pixels of a chroma sample; 1 of a gray image. */
static uint32_t jpeg_chroma_across(const struct dl2_image *image,
                                   const struct dl2_encode_options *options)
{
    return image->channels == 3 && dl2_subsampling_find(options->subsampling)[1] != '4' ? 2 : 1;
}

static uint32_t jpeg_chroma_down(const struct dl2_image *image,
                                 const struct dl2_encode_options *options)
{
    return image->channels == 3 && dl2_subsampling_find(options->subsampling)[2] == '0' ? 2 : 1;
}

/* Parameters that don't depend on the quality. */
static void jpeg_configure(struct jpeg_compress_struct *cinfo, const struct dl2_image *image,
                           const struct dl2_encode_options *options)
{
    cinfo->image_width = image->width;
    cinfo->image_height = image->height;
    cinfo->input_components = (int)image->channels;
    cinfo->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(cinfo);
    cinfo->comp_info[0].h_samp_factor = (int)jpeg_chroma_across(image, options);
    cinfo->comp_info[0].v_samp_factor = (int)jpeg_chroma_down(image, options);
}

static void jpeg_configure_quality(struct jpeg_compress_struct *cinfo,
                                   const struct dl2_encode_options *options, int quality)
{
    jpeg_set_quality(cinfo, quality, TRUE);
    for (int kind = 0; options->tables && kind < 2; kind++)
        for (int i = 0; i < 64; i++)
            cinfo->quant_tbl_ptrs[kind]->quantval[i] = options->tables->steps[quality - 1][kind][i];
    if (jpeg_has_tiles(options))
        cinfo->restart_interval = dl2_jpeg_tile_interval(
            cinfo->image_width, 8 * (uint32_t)cinfo->comp_info[0].h_samp_factor,
            8 * (uint32_t)cinfo->comp_info[0].v_samp_factor, quality);
}

/* `effort`: none but AUTO. */
static int jpeg_encode_by_libjpeg(const struct dl2_image *image,
                                  const struct dl2_encode_options *options, int quality, int effort,
                                  struct dl2_bytes *out, struct dl2_error *error)
{
    struct jpeg_compress_struct cinfo = {0};
    struct dl2_jpeg_trap trap;
    struct dl2_jpeg_sink sink;
    dl2_jpeg_set_trap(&trap, (j_common_ptr)&cinfo, error);
    if (setjmp(trap.jump)) {
        jpeg_destroy_compress(&cinfo);
        return trap.status;
    }
    jpeg_create_compress(&cinfo);
    dl2_jpeg_sink_set(&sink, &cinfo, out);
    jpeg_configure(&cinfo, image, options);
    jpeg_configure_quality(&cinfo, options, quality);
    cinfo.optimize_coding = effort >= OPTIMIZED;
    if (effort == PROGRESSIVE)
        jpeg_simple_progression(&cinfo);
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

static int jpeg_encode_smaller_by_libjpeg(const struct dl2_image *image,
                                          const struct dl2_encode_options *options, int quality,
                                          struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes other = DL2_BYTES_INIT;
    DL2_TRY(jpeg_encode_by_libjpeg(image, options, quality, OPTIMIZED, out, error));
    DL2_TRY(jpeg_encode_by_libjpeg(image, options, quality, STANDARD, &other, error));
    if (other.size <= out->size)
        dl2_bytes_swap(&other, out);
    return DL2_OK;
}

/* Begins a file of each quality with the parameters that libjpeg would have. */
static int jpeg_plan_sweep(struct dl2_jpeg_sweep *sweep, const struct dl2_image *image,
                           const struct dl2_encode_options *options, const int *qualities,
                           struct dl2_bytes *outs, size_t count, struct dl2_error *error)
{
    struct jpeg_compress_struct cinfo = {0};
    struct dl2_jpeg_trap trap;
    dl2_jpeg_set_trap(&trap, (j_common_ptr)&cinfo, error);
    if (setjmp(trap.jump)) {
        jpeg_destroy_compress(&cinfo);
        return trap.status;
    }
    jpeg_create_compress(&cinfo);
    jpeg_configure(&cinfo, image, options);
    for (size_t i = 0; trap.status == DL2_OK && i < count; i++) {
        jpeg_configure_quality(&cinfo, options, qualities[i]);
        trap.status = dl2_jpeg_sweep_add(sweep, &cinfo, &outs[i], error);
    }
    jpeg_destroy_compress(&cinfo);
    return trap.status;
}

/* Has libjpeg-turbo vectors for this kind of processor? */
#if defined __x86_64__ || defined __i386__ || defined __aarch64__ || defined __arm__ ||            \
    defined __powerpc__ || defined __mips__
enum { LIBJPEG_HAS_VECTORS = 1 };
#else
enum { LIBJPEG_HAS_VECTORS = 0 };
#endif

/*
 * Progressive files; and, where our encoder has no vectors and libjpeg-turbo has, so few files
 * that sharing the transform doesn't make up for that: one or two, or one with Huffman tables
 * of its own. Not where the smaller of two is looked for, which libjpeg-turbo would have to
 * make both. For comparisons, DL2_JPEG=libjpeg or own in the environment decides.
 */
static bool jpeg_needs_libjpeg(const struct dl2_encode_options *options, size_t count)
{
    const char *const wanted = getenv("DL2_JPEG");
    if (options->effort == PROGRESSIVE || (wanted && !strcmp(wanted, "libjpeg")))
        return true;
    return LIBJPEG_HAS_VECTORS && !(wanted && !strcmp(wanted, "own")) && options->effort != AUTO &&
           count < (options->effort == OPTIMIZED ? 2 : 3) &&
           dl2_jpeg_forward_for(dl2_simd_flags()) == &dl2_jpeg_forward_c;
}

static int jpeg_encode_pixels(const struct dl2_image *image,
                              const struct dl2_encode_options *options, const int *qualities,
                              struct dl2_bytes *outs, size_t count, struct dl2_error *error)
{
    if (options->effort == PROGRESSIVE && options->restart && !strcmp(options->restart, "tiles"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a progressive JPEG can't have tiles");
    if (jpeg_needs_libjpeg(options, count)) {
        for (size_t i = 0; i < count; i++)
            DL2_TRY(
                options->effort == AUTO
                    ? jpeg_encode_smaller_by_libjpeg(image, options, qualities[i], &outs[i], error)
                    : jpeg_encode_by_libjpeg(image, options, qualities[i], options->effort,
                                             &outs[i], error));
        return DL2_OK;
    }
    static const enum dl2_jpeg_codes_kind tables[] = {DL2_JPEG_SMALLER, DL2_JPEG_STANDARD,
                                                      DL2_JPEG_OPTIMIZED};
    struct dl2_jpeg_sweep *sweep;
    DL2_TRY(dl2_jpeg_sweep_new(&sweep, image, jpeg_chroma_across(image, options),
                               jpeg_chroma_down(image, options), tables[options->effort + 1], count,
                               error));
    int status = jpeg_plan_sweep(sweep, image, options, qualities, outs, count, error);
    if (status == DL2_OK)
        status = dl2_jpeg_sweep_run(sweep, error);
    dl2_jpeg_sweep_free(sweep);
    return status;
}

static int jpeg_encode_as_given(const struct dl2_image *image,
                                const struct dl2_encode_options *options, const int *qualities,
                                struct dl2_bytes *outs, size_t count, struct dl2_error *error)
{
    const struct dl2_color_space *const color = options->color;
    DL2_TRY(jpeg_encode_pixels(image, options, qualities, outs, count, error));
    for (size_t i = 0; color && color->form == DL2_COLOR_SPACE_ICC && i < count; i++)
        DL2_TRY(dl2_jpeg_put_profile(&outs[i], &color->icc, error));
    for (size_t i = 0; options->metadata && i < count; i++)
        DL2_TRY(dl2_jpeg_put_metadata(&outs[i], options->metadata, error));
    return DL2_OK;
}

/* An image on its side, and what goes with it. */
struct turned {
    struct dl2_image image;
    struct dl2_encode_options options; /* with tables for it, where there are any */
    struct dl2_jpeg_family *tables;
};

static void jpeg_turned_free(struct turned *turned)
{
    dl2_image_free(&turned->image);
    free(turned->tables);
}

/* The EXIF orientation that exchanges rows and columns. No side runs backwards, so that blocks and
 * chroma samples lie as in an upright file, whatever the size. */
enum { ON_ITS_SIDE = 5 };

/* Rows of pixels and steps become columns. Free it in any case. */
static int jpeg_turn(struct turned *turned, const struct dl2_image *image,
                     const struct dl2_encode_options *options, struct dl2_error *error)
{
    const struct dl2_jpeg_family *const upright = options->tables;
    turned->options = *options;
    if (upright) {
        DL2_TRY(DL2_NEW(&turned->tables, 1, "quantization tables", error));
        *turned->tables = *upright;
        turned->options.tables = turned->tables;
    }
    for (int at = 0; upright && at < 2 * 64; at++) {
        const int kind = at / 64, to = at % 64, from = to % 8 * 8 + to / 8;
        for (int q = 0; q < DL2_TABLES_QUALITIES; q++)
            turned->tables->steps[q][kind][to] = upright->steps[q][kind][from];
    }
    DL2_TRY(dl2_image_reshape(&turned->image, image->height, image->width, image->channels, error));
    dl2_orient_pixels(image->data, image->stride, image->width, image->height, image->channels,
                      ON_ITS_SIDE, turned->image.data, turned->image.stride);
    return DL2_OK;
}

static int jpeg_encode_turned(const struct dl2_image *image,
                              const struct dl2_encode_options *options, const int *qualities,
                              struct dl2_bytes *outs, size_t count, struct dl2_error *error)
{
    static const uint8_t exif[] = {
        'M', 'M', 0, '*',  0, 0, 0, 8,                             /* a TIFF header */
        0,   1,   1, 0x12, 0, 3, 0, 0, 0, 1, 0, ON_ITS_SIDE, 0, 0, /* a folder: the orientation */
        0,   0,   0, 0,
    };
    const struct dl2_metadata metadata = {.exif = {.data = (uint8_t *)exif, .size = sizeof exif}};
    DL2_CLEANUP(jpeg_turned_free) struct turned turned = {.image = DL2_IMAGE_INIT};
    DL2_TRY(jpeg_turn(&turned, image, options, error));
    turned.options.metadata = &metadata;
    return jpeg_encode_as_given(&turned.image, &turned.options, qualities, outs, count, error);
}

static int jpeg_encode_sweep(const struct dl2_image *image,
                             const struct dl2_encode_options *options, const int *qualities,
                             struct dl2_bytes *outs, size_t count, struct dl2_error *error)
{
    if (dl2_setting_value(jpeg_settings, options, TURN) > 0) {
        if (!jpeg_has_tiles(options))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "a JPEG's turn=yes has no effect without tiles: leave out "
                                 "restart=none and effort=2");
        if (options->metadata)
            return dl2_error_set(
                error, DL2_ERR_ARGUMENT,
                "a JPEG's turn=yes sets the EXIF orientation, and can't keep other "
                "EXIF or XMP: leave out --metadata keep");
    }
    return is_turned(image, options)
               ? jpeg_encode_turned(image, options, qualities, outs, count, error)
               : jpeg_encode_as_given(image, options, qualities, outs, count, error);
}

static int jpeg_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                       struct dl2_bytes *out, struct dl2_error *error)
{
    return jpeg_encode_sweep(image, options, &options->quality, out, 1, error);
}

static void jpeg_list_steps(struct jpeg_compress_struct *cinfo, struct dl2_jpeg_steps *steps)
{
    for (int quality = 1; quality <= 100; quality++) {
        jpeg_set_quality(cinfo, quality, TRUE);
        for (int kind = 0; kind < 2; kind++)
            memcpy(steps->steps[quality][kind], cinfo->quant_tbl_ptrs[kind]->quantval,
                   sizeof steps->steps[quality][kind]);
    }
}

static int jpeg_usual_steps(struct dl2_jpeg_steps *steps, struct dl2_error *error)
{
    struct jpeg_compress_struct cinfo = {0};
    struct dl2_jpeg_trap trap;
    dl2_jpeg_set_trap(&trap, (j_common_ptr)&cinfo, error);
    if (!setjmp(trap.jump)) {
        jpeg_create_compress(&cinfo);
        jpeg_list_steps(&cinfo, steps);
    }
    jpeg_destroy_compress(&cinfo);
    return trap.status;
}

/* The steps of files with these options. */
static int jpeg_make_steps(const struct dl2_encode_options *options, struct dl2_jpeg_steps *steps,
                           struct dl2_error *error)
{
    if (!options->tables)
        return jpeg_usual_steps(steps, error);
    for (int quality = 1; quality <= 100; quality++)
        for (int kind = 0; kind < 2; kind++)
            for (int i = 0; i < 64; i++)
                steps->steps[quality][kind][i] = options->tables->steps[quality - 1][kind][i];
    return DL2_OK;
}

static int jpeg_trial_as_given(const struct dl2_image *image,
                               const struct dl2_encode_options *options, int orientation,
                               struct dl2_jpeg_trial **trial, struct dl2_error *error)
{
    DL2_AUTO_FREE struct dl2_jpeg_steps *steps = dl2_alloc_aligned(1, sizeof *steps);
    if (!steps)
        return dl2_error_memory(error, "quantization tables");
    DL2_TRY(jpeg_make_steps(options, steps, error));
    return dl2_jpeg_trial_new(trial, image, jpeg_chroma_across(image, options),
                              jpeg_chroma_down(image, options), steps, orientation, error);
}

static int jpeg_trial_new(const struct dl2_image *image, const struct dl2_encode_options *options,
                          struct dl2_jpeg_trial **trial, struct dl2_error *error)
{
    *trial = NULL;
    if (!is_turned(image, options))
        return jpeg_trial_as_given(image, options, 1, trial, error);
    DL2_CLEANUP(jpeg_turned_free) struct turned turned = {.image = DL2_IMAGE_INIT};
    DL2_TRY(jpeg_turn(&turned, image, options, error));
    return jpeg_trial_as_given(&turned.image, &turned.options, ON_ITS_SIDE, trial, error);
}

static int jpeg_set_restart_intervals(const uint8_t *data, size_t size,
                                      const struct dl2_encode_options *options,
                                      struct dl2_bytes *out, struct dl2_error *error)
{
    if (strcmp(dl2_restart_find(options->restart), "tiles"))
        return 0;
    return dl2_jpeg_retile(data, size, options->quality, out, error);
}

struct counting {
    struct dl2_coefficient_counts *counts;
    int last_dc[DL2_JPEG_COMPONENTS];
};

static void count_block(struct counting *counting, uint32_t c, const int16_t *block)
{
    struct dl2_coefficient_counts *const counts = counting->counts;
    counts->blocks[c]++;
    counts->differences[c][abs(block[0] - counting->last_dc[c])]++;
    counting->last_dc[c] = block[0];
    for (int i = 0; i < 64; i++)
        counts->magnitudes[c][dl2_jpeg_natural[i]][abs(block[i])]++;
}

/* In the order of coding. */
static void count_row(struct counting *counting, const struct dl2_jpeg_blocks *blocks)
{
    for (uint32_t mcu = 0; mcu < blocks->mcus; mcu++)
        for (uint32_t c = 0; c < blocks->components; c++)
            for (uint32_t y = 0; y < blocks->down[c]; y++)
                for (uint32_t x = 0; x < blocks->across[c]; x++)
                    count_block(counting, c,
                                blocks->blocks[c] + y * blocks->stride[c] +
                                    64 * ((size_t)mcu * blocks->across[c] + x));
}

static int jpeg_count_coefficients(const struct dl2_image *image,
                                   const struct dl2_encode_options *options,
                                   struct dl2_coefficient_counts *counts, struct dl2_error *error)
{
    struct dl2_jpeg_sweep *sweep;
    struct counting counting = {.counts = counts};
    DL2_TRY(dl2_jpeg_sweep_new(&sweep, image, jpeg_chroma_across(image, options),
                               jpeg_chroma_down(image, options), DL2_JPEG_OPTIMIZED, 1, error));
    dl2_jpeg_sweep_transform(sweep);
    for (uint32_t row = 0; row < dl2_jpeg_sweep_rows(sweep); row++) {
        const struct dl2_jpeg_blocks blocks = dl2_jpeg_sweep_blocks(sweep, row);
        count_row(&counting, &blocks);
    }
    dl2_jpeg_sweep_free(sweep);
    return DL2_OK;
}

/* The tables of the quality, as far as a file has one quality. */
static json_t *jpeg_tables(const struct dl2_encode_options *options)
{
    char sum[17];
    const struct dl2_jpeg_family *const tables = options->tables;
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)tables->sum);
    json_t *const luma = json_array(), *const chroma = json_array();
    for (int i = 0; i < 64; i++) {
        json_array_append_new(luma, json_integer(tables->steps[options->quality - 1][0][i]));
        json_array_append_new(chroma, json_integer(tables->steps[options->quality - 1][1][i]));
    }
    return json_pack("{s:s, s:o, s:o}", "sum", sum, "luma", luma, "chroma", chroma);
}

static json_t *jpeg_parameters(const struct dl2_encode_options *options)
{
    static const char *const tables[] = {"smaller", "standard", "optimized", "optimized"};
    json_t *const parameters = json_pack(
        "{s:i, s:s, s:s, s:b, s:b, s:s, s:s}", "quality", options->quality, "subsampling",
        dl2_subsampling_find(options->subsampling), "huffman_tables", tables[options->effort + 1],
        "progressive", options->effort == PROGRESSIVE, "force_baseline", 1, "dct_method", "islow",
        "restart", jpeg_has_tiles(options) ? "tiles" : "none");
    if (parameters && dl2_setting_value(jpeg_settings, options, TURN) > 0)
        json_object_set_new(parameters, "turn", json_true());
    if (parameters && options->tables)
        json_object_set_new(parameters, "tables", jpeg_tables(options));
    return parameters;
}

#ifdef LIBJPEG_TURBO_VERSION
#define JPEG_VERSION "libjpeg-turbo " DL2_TEXT_VALUE(LIBJPEG_TURBO_VERSION)
#else
#define JPEG_VERSION "libjpeg " DL2_TEXT_VALUE(JPEG_LIB_VERSION)
#endif

const struct dl2_codec dl2_codec_jpeg = {
    .name = "jpeg",
    .metadata = dl2_jpeg_metadata,
    .metadata_bytes = DL2_JPEG_METADATA_BYTES,
    .extension = "jpg",
    .extensions = {"jpg", "jpeg", "jpe", "jfif"},
    .lossy = true,
    .max_side = 65500,
    .has_subsampling = true,
    .has_restart = true,
    .colors = DL2_COLOR_SPACE_ICC,
    .reduces = true,
    .max_effort = PROGRESSIVE,
    .usual_effort = AUTO,
    .settings = jpeg_settings,
    .effort_help = "0 standard tables, 1 optimized, auto the smaller of both, 2 progressive",
    /* 3 of the image and 3 if it is turned, 6 of the coefficients of a progressive or optimized
       file */
    .pixel_bytes = 12,
    .version = JPEG_VERSION,
    .signatures = {{3, "\xff\xd8\xff"}},
    .coding = dl2_jpeg_coding,
    .coded_bytes = dl2_jpeg_coded_bytes,
    .color = dl2_jpeg_color,
    .set_restart_intervals = jpeg_set_restart_intervals,
    .slice = dl2_jpeg_slice,
    .slice_margin = DL2_JPEG_SLICE_MARGIN,
    .join_slices = dl2_jpeg_join_slices,
    .state_size = sizeof(struct dl2_jpeg_decoder),
    .open = dl2_jpeg_open,
    .read = dl2_jpeg_read,
    .crop_bytes = dl2_jpeg_crop_bytes,
    .close = dl2_jpeg_close,
    .memory = dl2_jpeg_memory,
    .encode = jpeg_encode,
    .encode_sweep = jpeg_encode_sweep,
    .count_coefficients = jpeg_count_coefficients,
    .usual_steps = jpeg_usual_steps,
    .trial_new = jpeg_trial_new,
    .trial_rows = dl2_jpeg_trial_rows,
    .trial_free = dl2_jpeg_trial_free,
    .encoder_parameters = jpeg_parameters,
};
