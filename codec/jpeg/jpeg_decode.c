/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding of JPEG. libjpeg-turbo parses the headers. Our own decoder (jpeg_baseline.h) makes
 * planes, and from them pixels (jpeg_color.h), of the files that it knows. libjpeg-turbo decodes
 * the rest in two ways, to the same samples. DL2_JPEG=libjpeg in the environment leaves everything
 * to it.
 *
 * Planes: libjpeg's raw output, luma and chroma as the inverse DCT leaves them. Where the file has
 * restart intervals, they come from a small JPEG spliced from the segments that cover the rectangle
 * (codec/jpeg/jpeg_tiles.h); each of its MCU rows is written to the place in the planes that undoes
 * its shift. Otherwise they come from the whole file up to the rectangle's end; rows above it are
 * entropy-decoded only (a component that isn't needed has no inverse DCT). This takes 0.69 to 0.92
 * times as long as pixels, although libjpeg can't crop the columns of raw output (crops of 8 to
 * 100%; docs/measurements/codec.md).
 *
 * Pixels: rows above are skipped and columns cropped by libjpeg-turbo, which is exact only away
 * from the edges of what it decodes: fancy upsampling looks at the neighboring chroma. So a margin
 * of an MCU is decoded and left out. A whole image has no margin, and the pixels are libjpeg's.
 *
 * CMYK and YCCK are converted without color management.
 */
#include "codec/jpeg/jpeg_decode.h"

#include "codec/exif.h"
#include "codec/jpeg/jpeg_header.h"
#include "codec/jpeg/jpeg_metadata.h"
#include "codec/jpeg/jpeg_plain.h"
#include "common/simd.h"

#include <stdlib.h>
#include <string.h>

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((uint32_t)(component)->DCT_h_scaled_size)
#define MIN_SCALED_SIZE(cinfo) ((uint32_t)(cinfo)->min_DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((uint32_t)(component)->DCT_scaled_size)
#define MIN_SCALED_SIZE(cinfo) ((uint32_t)(cinfo)->min_DCT_scaled_size)
#endif

enum {
    MAX_ROWS = MAX_SAMP_FACTOR * DCTSIZE,
    MAX_SCANS = 100, /* real progressive files have about ten; each of a large image is slow */
};

struct jpeg_rectangle {
    uint32_t x, y, width, height; /* pixels */
};

/* A progress monitor: refuses files of far more scans than any encoder writes. */
static void jpeg_count_scans(j_common_ptr common)
{
    j_decompress_ptr cinfo = (j_decompress_ptr)common;
    struct dl2_jpeg_trap *trap = cinfo->client_data;
    if (cinfo->input_scan_number <= MAX_SCANS)
        return;
    trap->status =
        dl2_error_set(trap->error, DL2_ERR_LIMIT, "JPEG: more than %d scans", (int)MAX_SCANS);
    longjmp(trap->jump, 1);
}

/* 1 gray, 3 color, 0 for an unknown color space. */
static uint32_t jpeg_channels(const struct jpeg_decompress_struct *cinfo)
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

static void jpeg_fill_info(const struct jpeg_decompress_struct *cinfo, struct dl2_image_info *info)
{
    info->width = cinfo->image_width;
    info->height = cinfo->image_height;
    info->channels = jpeg_channels(cinfo);
    info->bits = (uint32_t)cinfo->data_precision;
    info->cmyk = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
    for (jpeg_saved_marker_ptr marker = cinfo->marker_list; marker; marker = marker->next) {
        if (marker->data_length >= 6 && !memcmp(marker->data, "Exif\0\0", 6)) {
            info->orientation = dl2_exif_orientation(marker->data, marker->data_length);
            return;
        }
    }
}

/* DL2_ERR_FORMAT where whole scans may be missing, of which libjpeg doesn't warn. */
static int jpeg_check_end(const struct jpeg_decompress_struct *cinfo, struct dl2_error *error)
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

/* Sets the arena up; jumps on errors. */
static void jpeg_make_arena(struct dl2_jpeg_decoder *jpeg)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    dl2_jpeg_arena_create(&jpeg->arena);
    jpeg->progress.progress_monitor = jpeg_count_scans;
    cinfo->progress = &jpeg->progress;
    jpeg_save_markers(cinfo, JPEG_APP0 + 1, 0xffff);
    const char *const wanted = getenv("DL2_JPEG");
    jpeg->libjpeg_only = wanted && !strcmp(wanted, "libjpeg");
    jpeg->has_arena = true;
}

/* The header of a file or of a splice; jumps on errors of libjpeg. */
static int jpeg_parse_header(struct dl2_jpeg_decoder *jpeg, const uint8_t *data, size_t size,
                             struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    dl2_jpeg_arena_reset(&jpeg->arena);
    jpeg_mem_src(cinfo, data, size);
    jpeg_read_header(cinfo, TRUE);
    if (!jpeg_channels(cinfo))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG: %d components of an unknown color space",
                             cinfo->num_components);
    return DL2_OK;
}

int dl2_jpeg_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct dl2_jpeg_decoder *const jpeg = state;
    dl2_jpeg_set_trap(&jpeg->trap, (j_common_ptr)&jpeg->arena.cinfo, error);
    if (setjmp(jpeg->trap.jump)) {
        if (!jpeg->has_arena)
            dl2_jpeg_arena_destroy(&jpeg->arena);
        return jpeg->trap.status;
    }
    if (!jpeg->has_arena)
        jpeg_make_arena(jpeg);
    DL2_TRY(jpeg_parse_header(jpeg, jpeg->base.data, jpeg->base.size, error));
    jpeg_fill_info(&jpeg->arena.cinfo, info);
    info->has_more = dl2_jpeg_has_more(jpeg->base.data, jpeg->base.size);
    return DL2_OK;
}

void dl2_jpeg_close(void *state)
{
    struct dl2_jpeg_decoder *jpeg = state;
    dl2_jpeg_arena_destroy(&jpeg->arena);
    dl2_jpeg_splice_free(&jpeg->splice);
    dl2_jpeg_baseline_free(&jpeg->baseline);
    for (size_t i = 0; i < DL2_JPEG_PLANES; i++)
        dl2_bytes_free(&jpeg->planes[i]);
}

static uint32_t jpeg_usable_reduction(uint32_t wanted)
{
    return wanted >= 8 ? 8 : wanted >= 4 ? 4 : wanted >= 2 ? 2 : 1;
}

/*
 * Is the luma alone, or are the planes together, what a raster can hold? Chroma is never finer than
 * luma then, and coarser by whole factors, which are also the files that libjpeg can upsample.
 */
static bool jpeg_has_planes(const struct jpeg_decompress_struct *cinfo, bool gray)
{
    if (cinfo->jpeg_color_space == JCS_GRAYSCALE)
        return true;
    if (cinfo->jpeg_color_space != JCS_YCbCr || cinfo->CCIR601_sampling)
        return false;
    const jpeg_component_info *luma = cinfo->comp_info;
    if (luma->h_samp_factor != cinfo->max_h_samp_factor ||
        luma->v_samp_factor != cinfo->max_v_samp_factor)
        return false;
    for (int i = 1; i < cinfo->num_components && !gray; i++)
        if (luma->h_samp_factor % cinfo->comp_info[i].h_samp_factor ||
            luma->v_samp_factor % cinfo->comp_info[i].v_samp_factor)
            return false;
    return true;
}

static bool jpeg_may_splice(const struct jpeg_decompress_struct *cinfo)
{
    return cinfo->restart_interval && !cinfo->progressive_mode && !cinfo->arith_code &&
           cinfo->comps_in_scan == cinfo->num_components;
}

/* A run of planes in the making: where libjpeg's MCU rows go. */
struct jpeg_planes {
    uint32_t width, height; /* of the image, pixels */
    uint32_t count;
    bool gray;
    uint32_t reduction;
    uint32_t mcu_width, mcu_height; /* pixels */
    /* MCUs of the image that the planes cover, and what lies beside them in memory. */
    uint32_t left, right, top, bottom, margin;
    uint32_t columns[DL2_JPEG_PLANES], rows[DL2_JPEG_PLANES]; /* samples of an MCU */
    size_t stride[DL2_JPEG_PLANES];
    bool ready; /* is the memory there? */
};

/* Once libjpeg has chosen each component's scaled size. */
static int jpeg_make_room(struct dl2_jpeg_decoder *jpeg, struct jpeg_planes *planes,
                          struct dl2_error *error)
{
    const struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    for (uint32_t i = 0; i < planes->count && !planes->ready; i++) {
        const jpeg_component_info *component = &cinfo->comp_info[i];
        planes->columns[i] = SCALED_SIZE(component) * (uint32_t)component->h_samp_factor;
        planes->rows[i] = SCALED_SIZE(component) * (uint32_t)component->v_samp_factor;
        size_t bytes, stride = (planes->right - planes->left + 2 * (size_t)planes->margin) *
                               planes->columns[i];
        stride = (stride + DL2_ALIGNMENT - 1) / DL2_ALIGNMENT * DL2_ALIGNMENT;
        if (!dl2_size_mul(stride, (size_t)(planes->bottom - planes->top) * planes->rows[i],
                          &bytes) ||
            !dl2_size_add(bytes, DL2_JPEG_COLOR_SLACK, &bytes))
            return dl2_error_set(error, DL2_ERR_LIMIT, "JPEG: planes pass the address space");
        DL2_TRY(dl2_jpeg_reserve(&jpeg->planes[i], bytes, error));
        planes->stride[i] = stride;
    }
    planes->ready = true;
    return DL2_OK;
}

static void jpeg_start_planes(struct jpeg_decompress_struct *cinfo,
                              const struct jpeg_planes *planes)
{
    cinfo->raw_data_out = TRUE;
    cinfo->out_color_space = cinfo->jpeg_color_space;
    cinfo->scale_num = 1;
    cinfo->scale_denom = planes->reduction;
    for (int i = (int)planes->count; i < cinfo->num_components; i++)
        cinfo->comp_info[i].component_needed = FALSE;
    jpeg_start_decompress(cinfo);
}

/* One MCU row to row `row` of the planes, `begin` MCUs right of their first column. */
static void jpeg_read_plane_row(struct dl2_jpeg_decoder *jpeg, const struct jpeg_planes *planes,
                                uint32_t row, int64_t begin)
{
    JSAMPROW rows[DL2_JPEG_PLANES][MAX_ROWS];
    JSAMPARRAY arrays[MAX_COMPONENTS] = {NULL};
    for (uint32_t i = 0; i < planes->count; i++) {
        const int64_t first = (begin + planes->margin) * planes->columns[i];
        uint8_t *at = jpeg->planes[i].data + (size_t)row * planes->rows[i] * planes->stride[i] +
                      (size_t)first;
        for (uint32_t j = 0; j < planes->rows[i]; j++, at += planes->stride[i])
            rows[i][j] = at;
        arrays[i] = rows[i];
    }
    jpeg_read_raw_data(&jpeg->arena.cinfo, arrays, MAX_ROWS);
}

/* From the segments that cover the planes. 1: done, 0: not that way. */
static int jpeg_splice_planes(struct dl2_jpeg_decoder *jpeg, struct jpeg_planes *planes,
                              const struct jpeg_rectangle *wanted, struct dl2_error *error)
{
    struct dl2_jpeg_splice *const splice = &jpeg->splice;
    const uint32_t bottom = wanted->y + wanted->height;
    /* A second round decodes a last row that is a small JPEG of its own. */
    for (uint32_t y = wanted->y; y < bottom; y = splice->y + splice->height) {
        const int found = dl2_jpeg_splice(splice, jpeg->base.data, jpeg->base.size, wanted->x, y,
                                          wanted->width, bottom - y, error);
        if (found < 0 || (found == 0 && y == wanted->y))
            return found;
        if (found == 0) /* it has just been there */
            return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG: the last segment can't be found");
        DL2_TRY(jpeg_parse_header(jpeg, splice->jpeg.data, splice->jpeg.size, error));
        jpeg_start_planes(&jpeg->arena.cinfo, planes);
        DL2_TRY(jpeg_make_room(jpeg, planes, error));
        const uint32_t *shift = (const uint32_t *)(const void *)splice->shift.data;
        const uint32_t top = splice->y / splice->mcu_height - planes->top;
        const int64_t x = (int64_t)(splice->x / splice->mcu_width) - planes->left;
        for (uint32_t row = 0; row < splice->rows; row++)
            jpeg_read_plane_row(jpeg, planes, top + row, x - shift[row]);
    }
    return 1;
}

static void jpeg_show_planes(const struct dl2_jpeg_decoder *jpeg, const struct jpeg_planes *planes,
                             struct dl2_raster *raster)
{
    const uint32_t mcu_width = planes->mcu_width, mcu_height = planes->mcu_height;
    *raster = (struct dl2_raster){.color = planes->gray ? DL2_COLOR_GRAY : DL2_COLOR_YCBCR};
    for (uint32_t i = 0; i < planes->count; i++) {
        struct dl2_plane *const plane = &raster->planes[i];
        plane->data = jpeg->planes[i].data + (size_t)planes->margin * planes->columns[i];
        plane->stride = planes->stride[i];
        plane->step_x = mcu_width / planes->columns[i];
        plane->step_y = mcu_height / planes->rows[i];
        plane->x = planes->left * mcu_width;
        plane->y = planes->top * mcu_height;
        const uint32_t right = dl2_smaller(planes->right * mcu_width, planes->width);
        const uint32_t bottom = dl2_smaller(planes->bottom * mcu_height, planes->height);
        plane->width = dl2_divide_up(right - plane->x, plane->step_x);
        plane->height = dl2_divide_up(bottom - plane->y, plane->step_y);
    }
}

static uint32_t jpeg_mcu_width(const struct jpeg_decompress_struct *cinfo)
{
    return DCTSIZE * (uint32_t)cinfo->max_h_samp_factor;
}

static uint32_t jpeg_mcu_height(const struct jpeg_decompress_struct *cinfo)
{
    return DCTSIZE * (uint32_t)cinfo->max_v_samp_factor;
}

static struct jpeg_planes jpeg_begin_planes(const struct jpeg_decompress_struct *cinfo, bool gray,
                                            uint32_t reduction)
{
    return (struct jpeg_planes){.width = cinfo->image_width,
                                .height = cinfo->image_height,
                                .count = gray ? 1 : DL2_JPEG_PLANES,
                                .gray = gray,
                                .reduction = reduction};
}

/* The MCUs under a rectangle. */
static void jpeg_cover(struct jpeg_planes *planes, const struct jpeg_rectangle *wanted,
                       uint32_t mcu_width, uint32_t mcu_height)
{
    planes->mcu_width = mcu_width;
    planes->mcu_height = mcu_height;
    planes->left = wanted->x / mcu_width;
    planes->right = dl2_divide_up(wanted->x + wanted->width, mcu_width);
    planes->top = wanted->y / mcu_height;
    planes->bottom = dl2_divide_up(wanted->y + wanted->height, mcu_height);
}

/* ---- Planes by our own decoder */

static bool jpeg_fill_component(const struct jpeg_decompress_struct *cinfo,
                                const jpeg_component_info *from, struct dl2_jpeg_component *to)
{
    const JQUANT_TBL *const steps = cinfo->quant_tbl_ptrs[from->quant_tbl_no & 3];
    const JHUFF_TBL *const dc = cinfo->dc_huff_tbl_ptrs[from->dc_tbl_no & 3];
    const JHUFF_TBL *const ac = cinfo->ac_huff_tbl_ptrs[from->ac_tbl_no & 3];
    if ((from->quant_tbl_no | from->dc_tbl_no | from->ac_tbl_no) & ~3 || !steps || !dc || !ac)
        return false;
    for (int i = 0; i < DCTSIZE2; i++)
        if (steps->quantval[i] > INT16_MAX)
            return false;
    *to = (struct dl2_jpeg_component){
        .across = (uint32_t)from->h_samp_factor,
        .down = (uint32_t)from->v_samp_factor,
        .steps = steps->quantval,
        .dc = {.counts = dc->bits, .symbols = dc->huffval},
        .ac = {.counts = ac->bits, .symbols = ac->huffval},
    };
    return true;
}

/* From what jpeg_read_header() found; false for what is libjpeg's alone. */
static bool jpeg_fill_frame(const struct dl2_jpeg_decoder *jpeg, struct dl2_jpeg_frame *frame)
{
    const struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    const uint32_t count = (uint32_t)cinfo->num_components;
    const uint8_t *const scan = cinfo->src->next_input_byte;
    if (cinfo->progressive_mode || cinfo->arith_code || cinfo->data_precision != 8 ||
        (count != 1 && count != DL2_JPEG_COMPONENTS) ||
        cinfo->comps_in_scan != cinfo->num_components || cinfo->Ss != 0 ||
        cinfo->Se != DCTSIZE2 - 1 || cinfo->Ah != 0 || cinfo->Al != 0 || cinfo->unread_marker)
        return false;
    /* Where the bytes end with the headers, libjpeg has put an end of its own in their place. */
    if (scan < jpeg->base.data || scan > jpeg->base.data + jpeg->base.size)
        return false;
    *frame = (struct dl2_jpeg_frame){
        .mcus_x = dl2_divide_up(cinfo->image_width, jpeg_mcu_width(cinfo)),
        .mcus_y = dl2_divide_up(cinfo->image_height, jpeg_mcu_height(cinfo)),
        .interval = cinfo->restart_interval,
        .components = count,
        .scan = scan,
        .size = (size_t)(jpeg->base.data + jpeg->base.size - scan),
    };
    for (uint32_t i = 0; i < count; i++) {
        struct dl2_jpeg_component *const component = &frame->component[i];
        if (cinfo->cur_comp_info[i] != &cinfo->comp_info[i] ||
            !jpeg_fill_component(cinfo, &cinfo->comp_info[i], component))
            return false;
        const uint32_t blocks = component->across * component->down;
        /* An MCU of a lone component is one block, whatever its factors. */
        if (frame->blocks + blocks > DL2_JPEG_MCU_BLOCKS || (count == 1 && blocks != 1))
            return false;
        memset(frame->owner + frame->blocks, (int)i, blocks);
        frame->blocks += blocks;
    }
    return true;
}

/* 1: done, 0: libjpeg must. */
static int jpeg_own_planes(struct dl2_jpeg_decoder *jpeg, struct jpeg_planes *planes,
                           struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    struct dl2_jpeg_frame frame;
    struct dl2_jpeg_target targets[DL2_JPEG_PLANES];
    if (jpeg->libjpeg_only || !jpeg_fill_frame(jpeg, &frame))
        return 0;
    cinfo->scale_num = 1;
    cinfo->scale_denom = planes->reduction;
    jpeg_calc_output_dimensions(cinfo); /* chooses each component's scaled size */
    DL2_TRY(jpeg_make_room(jpeg, planes, error));
    for (uint32_t i = 0; i < planes->count; i++)
        targets[i] = (struct dl2_jpeg_target){.data = jpeg->planes[i].data,
                                              .stride = planes->stride[i],
                                              .size = SCALED_SIZE(&cinfo->comp_info[i])};
    const struct dl2_jpeg_cover cover = {planes->left, planes->top, planes->right, planes->bottom};
    const int done =
        dl2_jpeg_baseline_decode(&jpeg->baseline, &frame, &cover, targets, planes->count, error);
    jpeg->own += done == 1;
    jpeg->handed += done == 0;
    return done;
}

/* Component `i` of planes that our own decoder made. */
static struct dl2_jpeg_part jpeg_part(const struct dl2_jpeg_decoder *jpeg,
                                      const struct jpeg_planes *planes, uint32_t i)
{
    const struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    const jpeg_component_info *const component = &cinfo->comp_info[i];
    const uint32_t least = MIN_SCALED_SIZE(cinfo);
    struct dl2_jpeg_part part = {
        .data = jpeg->planes[i].data,
        .stride = planes->stride[i],
        .x = planes->left * planes->columns[i],
        .y = planes->top * planes->rows[i],
        .width = component->downsampled_width,
        .height = component->downsampled_height,
        .across = (uint32_t)cinfo->max_h_samp_factor * least / planes->columns[i],
        .down = (uint32_t)cinfo->max_v_samp_factor * least / planes->rows[i],
    };
    /* As libjpeg chooses (jdsample.c). */
    part.smooth = least > 1 && ((part.across == 2 && part.down <= 2 && part.width > 2) ||
                                (part.across == 1 && part.down == 2));
    return part;
}

/* Interleaved pixels, or gray as it is coded. 1: done, 0: libjpeg must. */
static int jpeg_own_pixels(struct dl2_jpeg_decoder *jpeg, const struct jpeg_rectangle *wanted,
                           bool gray, uint32_t reduction, struct dl2_image *image,
                           struct dl2_raster *raster, struct dl2_error *error)
{
    const struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    struct jpeg_planes planes = jpeg_begin_planes(cinfo, gray, reduction);
    if (!jpeg_has_planes(cinfo, gray))
        return 0;
    /* Interpolation of chroma of half the resolution looks three pixels of the output beyond. */
    const uint32_t margin = gray ? 0 : 3 * reduction;
    struct jpeg_rectangle around = *wanted;
    dl2_widen(&around.x, &around.width, margin, 1, planes.width);
    dl2_widen(&around.y, &around.height, margin, 1, planes.height);
    jpeg_cover(&planes, &around, jpeg_mcu_width(cinfo), jpeg_mcu_height(cinfo));
    const int done = jpeg_own_planes(jpeg, &planes, error);
    if (done <= 0)
        return done;
    if (gray) {
        jpeg_show_planes(jpeg, &planes, raster);
        return 1;
    }
    const struct dl2_jpeg_part parts[DL2_JPEG_PLANES] = {
        jpeg_part(jpeg, &planes, 0), jpeg_part(jpeg, &planes, 1), jpeg_part(jpeg, &planes, 2)};
    const uint32_t left = wanted->x / reduction, top = wanted->y / reduction;
    const uint32_t right = dl2_divide_up(wanted->x + wanted->width, reduction);
    const uint32_t bottom = dl2_divide_up(wanted->y + wanted->height, reduction);
    if (!jpeg->color)
        jpeg->color = dl2_jpeg_color_kernels_for(dl2_simd_flags());
    DL2_TRY(dl2_image_reshape(image, right - left, bottom - top, 3, error));
    DL2_TRY(dl2_jpeg_color_convert(jpeg->color, parts, left, top, right - left, bottom - top,
                                   image->data, image->stride, &jpeg->base.block, error));
    *raster = dl2_raster_of(image, left * reduction, top * reduction);
    raster->planes[0].step_x = raster->planes[0].step_y = reduction;
    return 1;
}

static int jpeg_read_planes(struct dl2_jpeg_decoder *jpeg, const struct jpeg_rectangle *wanted,
                            bool gray, uint32_t reduction, struct dl2_raster *raster,
                            struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    const uint32_t mcu_width = jpeg_mcu_width(cinfo), mcu_height = jpeg_mcu_height(cinfo);
    struct jpeg_planes planes = jpeg_begin_planes(cinfo, gray, reduction);
    jpeg_cover(&planes, wanted, mcu_width, mcu_height);
    const int own = jpeg_own_planes(jpeg, &planes, error);
    if (own < 0)
        return own;
    if (own) {
        jpeg_show_planes(jpeg, &planes, raster);
        return DL2_OK;
    }
    planes.ready = false;
    if (jpeg_may_splice(cinfo)) {
        /* A lone component's factors mean nothing to a scan, but libjpeg's raw rows go by them. */
        const bool lone = cinfo->num_components == 1;
        jpeg_cover(&planes, wanted, lone ? DCTSIZE : mcu_width, lone ? DCTSIZE : mcu_height);
        /* Segments reach less than two intervals beyond what was asked for. */
        planes.margin = 2 * cinfo->restart_interval;
        const int spliced = jpeg_splice_planes(jpeg, &planes, wanted, error);
        if (spliced < 0)
            return spliced;
        if (spliced) {
            jpeg_show_planes(jpeg, &planes, raster);
            return DL2_OK;
        }
        planes.margin = 0;
    }
    const struct jpeg_rectangle rows = {0, wanted->y, planes.width, wanted->height};
    jpeg_cover(&planes, &rows, mcu_width, mcu_height);
    jpeg_start_planes(cinfo, &planes);
    DL2_TRY(jpeg_make_room(jpeg, &planes, error));
    for (uint32_t i = 0; i < planes.count; i++)
        cinfo->comp_info[i].component_needed = FALSE;
    for (uint32_t row = 0; row < planes.top; row++)
        jpeg_read_plane_row(jpeg, &planes, 0, 0); /* which writes nothing */
    for (uint32_t i = 0; i < planes.count; i++)
        cinfo->comp_info[i].component_needed = TRUE;
    for (uint32_t row = planes.top; row < planes.bottom; row++)
        jpeg_read_plane_row(jpeg, &planes, row - planes.top, 0);
    jpeg_show_planes(jpeg, &planes, raster);
    return jpeg_check_end(cinfo, error);
}

/* Adobe's programs store inks inverted, and say who they are; others store them as they are. */
static void jpeg_cmyk_to_rgb(const uint8_t *in, uint8_t *out, uint32_t width, bool inverted)
{
    for (uint32_t x = 0; x < width; x++, in += 4, out += 3) {
        unsigned flip = inverted ? 0 : 255, k = in[3] ^ flip;
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)(((in[c] ^ flip) * k + 127) / 255);
    }
}

/*
 * jpeg_crop_scanline() takes every component to be reduced like the luma (libjpeg-turbo 2.1.5),
 * which matters where one that isn't still has to be upsampled, either way.
 */
static bool jpeg_may_crop(const struct jpeg_decompress_struct *cinfo)
{
    const uint32_t least = MIN_SCALED_SIZE(cinfo);
    for (int i = 0; i < cinfo->num_components; i++) {
        const jpeg_component_info *component = &cinfo->comp_info[i];
        const uint32_t scaled = SCALED_SIZE(component);
        if (scaled != least && (scaled * (uint32_t)component->h_samp_factor !=
                                    least * (uint32_t)cinfo->max_h_samp_factor ||
                                scaled * (uint32_t)component->v_samp_factor !=
                                    least * (uint32_t)cinfo->max_v_samp_factor))
            return false;
    }
    return true;
}

/*
 * Interleaved pixels, in `image`. `wanted` lies in the image that cinfo has the header of; `found`
 * says where it is in memory.
 */
static int jpeg_read_rows(struct jpeg_decompress_struct *cinfo, const struct jpeg_rectangle *wanted,
                          bool gray, uint32_t reduction, struct dl2_image *image,
                          struct dl2_plane *found, struct dl2_error *error)
{
    const bool cmyk = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
    cinfo->out_color_space = cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;
    cinfo->scale_num = 1;
    cinfo->scale_denom = reduction;
    jpeg_start_decompress(cinfo);

    const uint32_t size = MIN_SCALED_SIZE(cinfo);
    const uint32_t mcu_width = size * (uint32_t)cinfo->max_h_samp_factor;
    const uint32_t mcu_height = size * (uint32_t)cinfo->max_v_samp_factor;
    const uint32_t left = wanted->x / reduction, top = wanted->y / reduction;
    const uint32_t right = dl2_divide_up(wanted->x + wanted->width, reduction);
    const uint32_t bottom = dl2_divide_up(wanted->y + wanted->height, reduction);
    const uint32_t from = left > mcu_width ? left - mcu_width : 0;
    const uint32_t to = dl2_smaller(right + mcu_width, cinfo->output_width);
    JDIMENSION x = from, width = to - from;
    if (width < cinfo->output_width && jpeg_may_crop(cinfo))
        jpeg_crop_scanline(cinfo, &x, &width);
    else
        x = 0;
    const uint32_t skipped = top > mcu_height ? (top - mcu_height) / mcu_height * mcu_height : 0;
    if (skipped)
        jpeg_skip_scanlines(cinfo, skipped);

    const uint32_t channels = gray ? 1 : 3;
    DL2_TRY(dl2_image_reshape(image, cinfo->output_width, bottom - skipped, channels, error));
    JSAMPARRAY inks = NULL; /* in the arena */
    if (cmyk)
        inks =
            cinfo->mem->alloc_sarray((j_common_ptr)cinfo, JPOOL_IMAGE, 4 * cinfo->output_width, 1);
    while (cinfo->output_scanline < bottom) {
        uint8_t *row = image->data + (cinfo->output_scanline - skipped) * image->stride;
        if (cmyk) {
            jpeg_read_scanlines(cinfo, inks, 1);
            jpeg_cmyk_to_rgb(inks[0], row, cinfo->output_width, cinfo->saw_Adobe_marker);
            continue;
        }
        /* At most as many rows as libjpeg makes at once: then it needs no buffer of its own. */
        JSAMPROW rows[4];
        JDIMENSION count = 0, rest = bottom - cinfo->output_scanline;
        for (; count < 4 && count < rest; count++)
            rows[count] = row + count * image->stride;
        jpeg_read_scanlines(cinfo, rows, count);
    }
    *found = (struct dl2_plane){
        .data = image->data + (top - skipped) * image->stride + (size_t)(left - x) * channels,
        .stride = image->stride,
        .width = right - left,
        .height = bottom - top,
        .x = left * reduction,
        .y = top * reduction,
        .step_x = reduction,
        .step_y = reduction,
    };
    return jpeg_check_end(cinfo, error);
}

static int jpeg_read_pixels(struct dl2_jpeg_decoder *jpeg, const struct jpeg_rectangle *wanted,
                            bool gray, uint32_t reduction, struct dl2_image *image,
                            struct dl2_raster *raster, struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    struct dl2_jpeg_splice *const splice = &jpeg->splice;
    const uint32_t mcu_width = jpeg_mcu_width(cinfo);
    struct jpeg_rectangle place = *wanted;
    uint32_t x = 0, y = 0;
    const int own = jpeg_own_pixels(jpeg, wanted, gray, reduction, image, raster, error);
    if (own != 0)
        return own < 0 ? own : DL2_OK;
    /* Rows that are shifted against each other can't be upsampled together. */
    if (jpeg_may_splice(cinfo) &&
        dl2_divide_up(cinfo->image_width, mcu_width) % cinfo->restart_interval == 0) {
        struct jpeg_rectangle around = *wanted;
        dl2_widen(&around.x, &around.width, mcu_width, 1, cinfo->image_width);
        dl2_widen(&around.y, &around.height, jpeg_mcu_height(cinfo), 1, cinfo->image_height);
        const int spliced = dl2_jpeg_splice(splice, jpeg->base.data, jpeg->base.size, around.x,
                                            around.y, around.width, around.height, error);
        if (spliced < 0)
            return spliced;
        if (spliced && !splice->shifted) {
            DL2_TRY(jpeg_parse_header(jpeg, splice->jpeg.data, splice->jpeg.size, error));
            x = splice->x;
            y = splice->y;
            place.x -= x;
            place.y -= y;
        }
    }
    struct dl2_plane plane;
    DL2_TRY(jpeg_read_rows(cinfo, &place, gray, reduction, image, &plane, error));
    plane.x += x;
    plane.y += y;
    *raster = (struct dl2_raster){
        .color = gray ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
        .planes[0] = plane,
    };
    return DL2_OK;
}

int dl2_jpeg_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                  struct dl2_raster *raster, struct dl2_error *error)
{
    struct dl2_jpeg_decoder *const jpeg = state;
    struct jpeg_decompress_struct *cinfo = &jpeg->arena.cinfo;
    const struct jpeg_rectangle wanted = {request->x, request->y, request->width, request->height};
    dl2_jpeg_set_trap(&jpeg->trap, (j_common_ptr)cinfo, error);
    if (setjmp(jpeg->trap.jump))
        return jpeg->trap.status;
    /* The luma as it is coded; RGB and CMYK have none. */
    const bool gray = cinfo->jpeg_color_space == JCS_GRAYSCALE ||
                      (cinfo->jpeg_color_space == JCS_YCbCr && request->channels == 1);
    const uint32_t reduction = jpeg_usable_reduction(request->reduction);
    if (request->planes && jpeg_has_planes(cinfo, gray))
        return jpeg_read_planes(jpeg, &wanted, gray, reduction, raster, error);
    return jpeg_read_pixels(jpeg, &wanted, gray, reduction, image, raster, error);
}

/* The small file is spliced of the segments under the crop, unless that does not cover it. */
bool dl2_jpeg_crop_bytes(void *state, const struct dl2_decode_request *crop, bool small,
                         struct dl2_crop_bytes *out)
{
    struct dl2_jpeg_decoder *const jpeg = state;
    struct dl2_jpeg_splice *const splice = &jpeg->splice;
    *out = (struct dl2_crop_bytes){.data = jpeg->base.data, .size = jpeg->base.size};
    if (!dl2_jpeg_plain_read(&out->frame, jpeg->base.data, jpeg->base.size))
        return false;
    if (!small ||
        dl2_jpeg_splice(splice, jpeg->base.data, jpeg->base.size, crop->x, crop->y, crop->width,
                        crop->height, NULL) != 1 ||
        splice->y + splice->height < crop->y + crop->height)
        return true;
    out->data = splice->jpeg.data;
    out->size = splice->jpeg.size;
    out->frame.width = splice->width;
    out->frame.height = splice->height;
    out->x = splice->x;
    out->y = splice->y;
    if (splice->shifted)
        out->shift = (const uint32_t *)(const void *)splice->shift.data;
    return true;
}

size_t dl2_jpeg_memory(const void *state)
{
    const struct dl2_jpeg_decoder *jpeg = state;
    size_t bytes = jpeg->arena.total + jpeg->splice.jpeg.capacity + jpeg->splice.shift.capacity +
                   jpeg->splice.segments.capacity + dl2_jpeg_baseline_memory(&jpeg->baseline);
    for (int i = 0; i < DL2_JPEG_PLANES; i++)
        bytes += jpeg->planes[i].capacity;
    return bytes;
}
