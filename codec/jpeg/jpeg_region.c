/*
 * Decoding of part of a JPEG, two ways.
 *
 * Planes: libjpeg's raw output, luma and chroma as the inverse DCT leaves them. Where the file has
 * restart intervals, of a small JPEG spliced from the segments that cover the rectangle
 * (codec/jpeg/jpeg_tiles.h); each of its MCU rows is written to the place in the planes that undoes
 * its shift. Otherwise of the whole file up to the rectangle's end; rows above it are
 * entropy-decoded only (a component that isn't needed has no inverse DCT). That takes 0.69 to 0.92
 * of the time of pixels, although libjpeg can't crop the columns of raw output (crops of 8 to 100%;
 * docs/performance.md).
 *
 * Pixels: rows above are skipped and columns cropped by libjpeg-turbo, which is exact only away
 * from the edges of what it decodes: fancy upsampling looks at the neighbouring chroma. So a margin
 * of an MCU is decoded and left out.
 */
#include "codec/decoder.h"

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_arena.h"
#include "codec/jpeg/jpeg_common.h"
#include "codec/jpeg/jpeg_header.h"
#include "codec/jpeg/jpeg_tiles.h"

#include <string.h>

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((uint32_t)(component)->DCT_h_scaled_size)
#define MIN_SCALED_SIZE(cinfo) ((uint32_t)(cinfo)->min_DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((uint32_t)(component)->DCT_scaled_size)
#define MIN_SCALED_SIZE(cinfo) ((uint32_t)(cinfo)->min_DCT_scaled_size)
#endif

enum { MAX_PLANES = 3, MAX_ROWS = MAX_SAMP_FACTOR * DCTSIZE };

struct rectangle {
    uint32_t x, y, width, height;
};

struct region {
    struct dl2_jpeg_arena arena;
    struct dl2_jpeg_trap trap;
    struct jpeg_progress_mgr progress;
    struct dl2_jpeg_splice splice;
    const uint8_t *data;
    size_t size;
    struct dl2_bytes planes[MAX_PLANES];
};

static void set_up(struct region *region)
{
    struct jpeg_decompress_struct *cinfo = &region->arena.cinfo;
    dl2_jpeg_arena_create(&region->arena);
    region->progress.progress_monitor = dl2_jpeg_count_scans;
    cinfo->progress = &region->progress;
    jpeg_save_markers(cinfo, JPEG_APP0 + 1, 0xffff);
}

static void destroy(void *state)
{
    struct region *region = state;
    dl2_jpeg_arena_destroy(&region->arena);
    dl2_jpeg_splice_free(&region->splice);
    for (size_t i = 0; i < MAX_PLANES; i++)
        dl2_bytes_free(&region->planes[i]);
}

static int init(void *state, struct dl2_error *error)
{
    struct region *const region = state;
    dl2_jpeg_set_trap(&region->trap, error);
    region->arena.cinfo.err = &region->trap.manager;
    region->arena.cinfo.client_data = &region->trap;
    if (setjmp(region->trap.jump)) {
        destroy(region);
        return region->trap.status;
    }
    set_up(region);
    return DL2_OK;
}

static int read_header(struct region *region, const uint8_t *data, size_t size,
                       struct dl2_error *error)
{
    dl2_jpeg_arena_reset(&region->arena);
    return dl2_jpeg_read_header(&region->arena.cinfo, data, size, error);
}

static int open_file(void *state, const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    struct region *const region = state;
    region->data = data;
    region->size = size;
    dl2_jpeg_set_trap(&region->trap, error);
    if (setjmp(region->trap.jump))
        return region->trap.status;
    DL2_TRY(read_header(region, data, size, error));
    dl2_jpeg_describe(&region->arena.cinfo, info);
    return DL2_OK;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t usable_reduction(uint32_t wanted)
{
    return wanted >= 8 ? 8 : wanted >= 4 ? 4 : wanted >= 2 ? 2 : 1;
}

/*
 * Is the luma alone, or are the planes together, what a raster can hold? Chroma is never finer than
 * luma then, and coarser by whole factors, which are also the files that libjpeg can upsample.
 */
static bool has_planes(const struct jpeg_decompress_struct *cinfo, bool gray)
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

static bool may_splice(const struct jpeg_decompress_struct *cinfo)
{
    return cinfo->restart_interval && !cinfo->progressive_mode && !cinfo->arith_code &&
           cinfo->comps_in_scan == cinfo->num_components;
}

/* A run of planes in the making: where libjpeg's MCU rows go. */
struct planes {
    uint32_t count;
    bool gray;
    uint32_t reduction;
    uint32_t mcu_width, mcu_height; /* pixels */
    /* MCUs of the image that the planes cover, and what lies beside them in memory. */
    uint32_t left, right, top, bottom, margin;
    uint32_t columns[MAX_PLANES], rows[MAX_PLANES]; /* samples of an MCU */
    size_t stride[MAX_PLANES];
    bool ready; /* is the memory there? */
};

/* Once libjpeg has chosen each component's scaled size. */
static int make_room(struct region *region, struct planes *planes, struct dl2_error *error)
{
    const struct jpeg_decompress_struct *cinfo = &region->arena.cinfo;
    for (uint32_t i = 0; i < planes->count && !planes->ready; i++) {
        const jpeg_component_info *component = &cinfo->comp_info[i];
        planes->columns[i] = SCALED_SIZE(component) * (uint32_t)component->h_samp_factor;
        planes->rows[i] = SCALED_SIZE(component) * (uint32_t)component->v_samp_factor;
        size_t bytes, stride = (planes->right - planes->left + 2 * (size_t)planes->margin) *
                               planes->columns[i];
        stride = (stride + DL2_ALIGNMENT - 1) / DL2_ALIGNMENT * DL2_ALIGNMENT;
        if (!dl2_size_mul(stride, (size_t)(planes->bottom - planes->top) * planes->rows[i], &bytes))
            return dl2_error_set(error, DL2_ERR_LIMIT, "JPEG: planes pass the address space");
        DL2_TRY(dl2_jpeg_reserve(&region->planes[i], bytes, error));
        planes->stride[i] = stride;
    }
    planes->ready = true;
    return DL2_OK;
}

static void start_planes(struct jpeg_decompress_struct *cinfo, const struct planes *planes)
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
static void read_plane_row(struct region *region, const struct planes *planes, uint32_t row,
                           int64_t begin)
{
    JSAMPROW rows[MAX_PLANES][MAX_ROWS];
    JSAMPARRAY arrays[MAX_COMPONENTS] = {NULL};
    for (uint32_t i = 0; i < planes->count; i++) {
        const int64_t first = (begin + planes->margin) * planes->columns[i];
        uint8_t *at = region->planes[i].data + (size_t)row * planes->rows[i] * planes->stride[i] +
                      (size_t)first;
        for (uint32_t j = 0; j < planes->rows[i]; j++, at += planes->stride[i])
            rows[i][j] = at;
        arrays[i] = rows[i];
    }
    jpeg_read_raw_data(&region->arena.cinfo, arrays, MAX_ROWS);
}

/* From the segments that cover the planes. 1: done, 0: not that way. */
static int splice_planes(struct region *region, struct planes *planes,
                         const struct rectangle *wanted, struct dl2_error *error)
{
    struct dl2_jpeg_splice *const splice = &region->splice;
    const uint32_t bottom = wanted->y + wanted->height;
    /* Where the last row is a small JPEG of its own, this goes round a second time. */
    for (uint32_t y = wanted->y; y < bottom; y = splice->y + splice->height) {
        const int found = dl2_jpeg_splice(splice, region->data, region->size, wanted->x, y,
                                          wanted->width, bottom - y, error);
        if (found < 0 || (found == 0 && y == wanted->y))
            return found;
        if (found == 0) /* it has just been there */
            return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG: the last segment can't be found");
        DL2_TRY(read_header(region, splice->jpeg.data, splice->jpeg.size, error));
        start_planes(&region->arena.cinfo, planes);
        DL2_TRY(make_room(region, planes, error));
        const uint32_t *shift = (const uint32_t *)(const void *)splice->shift.data;
        const uint32_t top = splice->y / splice->mcu_height - planes->top;
        const int64_t x = (int64_t)(splice->x / splice->mcu_width) - planes->left;
        for (uint32_t row = 0; row < splice->rows; row++)
            read_plane_row(region, planes, top + row, x - shift[row]);
    }
    return 1;
}

static void show_planes(const struct region *region, const struct planes *planes,
                        const struct rectangle *image, struct dl2_raster *raster)
{
    const uint32_t mcu_width = planes->mcu_width, mcu_height = planes->mcu_height;
    *raster = (struct dl2_raster){.color = planes->gray ? DL2_COLOR_GRAY : DL2_COLOR_YCBCR};
    for (uint32_t i = 0; i < planes->count; i++) {
        struct dl2_plane *const plane = &raster->planes[i];
        plane->data = region->planes[i].data + (size_t)planes->margin * planes->columns[i];
        plane->stride = planes->stride[i];
        plane->step_x = mcu_width / planes->columns[i];
        plane->step_y = mcu_height / planes->rows[i];
        plane->x = planes->left * mcu_width;
        plane->y = planes->top * mcu_height;
        const uint32_t right = smaller(planes->right * mcu_width, image->width);
        const uint32_t bottom = smaller(planes->bottom * mcu_height, image->height);
        plane->width = dl2_divide_up(right - plane->x, plane->step_x);
        plane->height = dl2_divide_up(bottom - plane->y, plane->step_y);
    }
}

/* The MCUs under a rectangle. */
static void cover(struct planes *planes, const struct rectangle *wanted, uint32_t mcu_width,
                  uint32_t mcu_height)
{
    planes->mcu_width = mcu_width;
    planes->mcu_height = mcu_height;
    planes->left = wanted->x / mcu_width;
    planes->right = dl2_divide_up(wanted->x + wanted->width, mcu_width);
    planes->top = wanted->y / mcu_height;
    planes->bottom = dl2_divide_up(wanted->y + wanted->height, mcu_height);
}

static int decode_planes(struct region *region, const struct rectangle *wanted, bool gray,
                         uint32_t reduction, struct dl2_raster *raster, struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &region->arena.cinfo;
    const struct rectangle image = {.width = cinfo->image_width, .height = cinfo->image_height};
    const uint32_t mcu_width = DCTSIZE * (uint32_t)cinfo->max_h_samp_factor;
    const uint32_t mcu_height = DCTSIZE * (uint32_t)cinfo->max_v_samp_factor;
    struct planes planes = {.count = gray ? 1 : MAX_PLANES, .gray = gray, .reduction = reduction};
    if (may_splice(cinfo)) {
        /* A lone component's factors mean nothing to a scan, but libjpeg's raw rows go by them. */
        const bool lone = cinfo->num_components == 1;
        cover(&planes, wanted, lone ? DCTSIZE : mcu_width, lone ? DCTSIZE : mcu_height);
        /* Segments reach less than two intervals beyond what was asked for. */
        planes.margin = 2 * cinfo->restart_interval;
        const int spliced = splice_planes(region, &planes, wanted, error);
        if (spliced < 0)
            return spliced;
        if (spliced) {
            show_planes(region, &planes, &image, raster);
            return DL2_OK;
        }
        planes.margin = 0;
    }
    const struct rectangle rows = {0, wanted->y, image.width, wanted->height};
    cover(&planes, &rows, mcu_width, mcu_height);
    start_planes(cinfo, &planes);
    DL2_TRY(make_room(region, &planes, error));
    for (uint32_t i = 0; i < planes.count; i++)
        cinfo->comp_info[i].component_needed = FALSE;
    for (uint32_t row = 0; row < planes.top; row++)
        read_plane_row(region, &planes, 0, 0); /* which writes nothing */
    for (uint32_t i = 0; i < planes.count; i++)
        cinfo->comp_info[i].component_needed = TRUE;
    for (uint32_t row = planes.top; row < planes.bottom; row++)
        read_plane_row(region, &planes, row - planes.top, 0);
    show_planes(region, &planes, &image, raster);
    return dl2_jpeg_check_end(cinfo, error);
}

/* What is written of one row of pixels. */
static void convert_row(const struct jpeg_decompress_struct *cinfo, const uint8_t *in, uint8_t *out,
                        uint32_t width, bool to_gray)
{
    if (cinfo->out_color_space == JCS_CMYK)
        dl2_jpeg_cmyk_to_rgb(in, out, width, cinfo->saw_Adobe_marker);
    if (!to_gray)
        return;
    for (uint32_t x = 0; x < width; x++)
        out[x] = dl2_luma(out[3 * x], out[3 * x + 1], out[3 * x + 2]);
}

/*
 * jpeg_crop_scanline() takes every component to be reduced like the luma (libjpeg-turbo 2.1.5),
 * which matters where one that isn't still has to be upsampled, either way.
 */
static bool may_crop(const struct jpeg_decompress_struct *cinfo)
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

/* `wanted` lies in the image that cinfo has the header of; `found` tells where it is in memory. */
static int read_pixels(struct region *region, const struct rectangle *wanted, bool gray,
                       uint32_t reduction, struct dl2_plane *found, struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &region->arena.cinfo;
    const bool cmyk = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
    const bool luma =
        cinfo->jpeg_color_space == JCS_GRAYSCALE || (cinfo->jpeg_color_space == JCS_YCbCr && gray);
    cinfo->out_color_space = cmyk ? JCS_CMYK : luma ? JCS_GRAYSCALE : JCS_RGB;
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
    const uint32_t to = smaller(right + mcu_width, cinfo->output_width);
    JDIMENSION x = from, width = to - from;
    if (width < cinfo->output_width && may_crop(cinfo))
        jpeg_crop_scanline(cinfo, &x, &width);
    else
        x = 0;
    uint32_t skipped = top > mcu_height ? (top - mcu_height) / mcu_height * mcu_height : 0;
    if (skipped)
        jpeg_skip_scanlines(cinfo, skipped);

    const uint32_t channels = luma ? 1 : cmyk ? 3 : (uint32_t)cinfo->out_color_components;
    const size_t stride = ((size_t)cinfo->output_width * channels + DL2_ALIGNMENT - 1) /
                          DL2_ALIGNMENT * DL2_ALIGNMENT;
    size_t bytes;
    if (!dl2_size_mul(stride, bottom - skipped, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "JPEG: pixels pass the address space");
    DL2_TRY(dl2_jpeg_reserve(&region->planes[0], bytes, error));
    JSAMPARRAY inks = NULL; /* in the arena */
    if (cmyk)
        inks =
            cinfo->mem->alloc_sarray((j_common_ptr)cinfo, JPOOL_IMAGE, 4 * cinfo->output_width, 1);
    while (cinfo->output_scanline < bottom) {
        uint8_t *row = region->planes[0].data + (cinfo->output_scanline - skipped) * stride;
        if (cmyk || (gray && !luma)) {
            jpeg_read_scanlines(cinfo, cmyk ? inks : &row, 1);
            convert_row(cinfo, cmyk ? inks[0] : row, row, cinfo->output_width, gray);
            continue;
        }
        /* As many rows as libjpeg makes at once, at most. */
        JSAMPROW rows[4];
        JDIMENSION count = 0, rest = bottom - cinfo->output_scanline;
        for (; count < 4 && count < rest; count++)
            rows[count] = row + count * stride;
        jpeg_read_scanlines(cinfo, rows, count);
    }
    const uint32_t shown = gray ? 1 : channels;
    *found = (struct dl2_plane){
        .data = region->planes[0].data + (top - skipped) * stride + (size_t)(left - x) * shown,
        .stride = stride,
        .width = right - left,
        .height = bottom - top,
        .x = left * reduction,
        .y = top * reduction,
        .step_x = reduction,
        .step_y = reduction,
    };
    return dl2_jpeg_check_end(cinfo, error);
}

static int decode_pixels(struct region *region, const struct rectangle *wanted, bool gray,
                         uint32_t reduction, struct dl2_raster *raster, struct dl2_error *error)
{
    struct jpeg_decompress_struct *cinfo = &region->arena.cinfo;
    struct dl2_jpeg_splice *const splice = &region->splice;
    const uint32_t mcu_width = DCTSIZE * (uint32_t)cinfo->max_h_samp_factor;
    const uint32_t mcu_height = DCTSIZE * (uint32_t)cinfo->max_v_samp_factor;
    struct rectangle place = *wanted;
    uint32_t x = 0, y = 0;
    /* Rows that are shifted against each other can't be upsampled together. */
    if (may_splice(cinfo) &&
        dl2_divide_up(cinfo->image_width, mcu_width) % cinfo->restart_interval == 0) {
        const uint32_t left = wanted->x > mcu_width ? wanted->x - mcu_width : 0;
        const uint32_t top = wanted->y > mcu_height ? wanted->y - mcu_height : 0;
        const uint32_t right = smaller(wanted->x + wanted->width + mcu_width, cinfo->image_width);
        const uint32_t bottom =
            smaller(wanted->y + wanted->height + mcu_height, cinfo->image_height);
        const int spliced = dl2_jpeg_splice(splice, region->data, region->size, left, top,
                                            right - left, bottom - top, error);
        if (spliced < 0)
            return spliced;
        if (spliced && !splice->shifted) {
            DL2_TRY(read_header(region, splice->jpeg.data, splice->jpeg.size, error));
            x = splice->x;
            y = splice->y;
            place.x -= x;
            place.y -= y;
        }
    }
    struct dl2_plane plane;
    DL2_TRY(read_pixels(region, &place, gray, reduction, &plane, error));
    plane.x += x;
    plane.y += y;
    *raster = (struct dl2_raster){
        .color = gray ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
        .planes[0] = plane,
    };
    return DL2_OK;
}

static int decode(void *state, const struct dl2_decode_request *request, struct dl2_raster *raster,
                  struct dl2_error *error)
{
    struct region *const region = state;
    struct jpeg_decompress_struct *cinfo = &region->arena.cinfo;
    const struct rectangle wanted = {request->x, request->y, request->width, request->height};
    dl2_jpeg_set_trap(&region->trap, error);
    if (setjmp(region->trap.jump))
        return region->trap.status;
    const bool gray = cinfo->jpeg_color_space == JCS_GRAYSCALE || request->channels == 1;
    const uint32_t reduction = usable_reduction(request->reduction);
    if ((request->planes || gray) && has_planes(cinfo, gray))
        return decode_planes(region, &wanted, gray, reduction, raster, error);
    return decode_pixels(region, &wanted, gray, reduction, raster, error);
}

static size_t memory(const void *state)
{
    const struct region *region = state;
    size_t bytes = sizeof *region + region->arena.total + region->splice.jpeg.capacity +
                   region->splice.shift.capacity + region->splice.segments.capacity;
    for (int i = 0; i < MAX_PLANES; i++)
        bytes += region->planes[i].capacity;
    return bytes;
}

const struct dl2_region_codec dl2_jpeg_region = {
    .state_size = sizeof(struct region),
    .init = init,
    .destroy = destroy,
    .open = open_file,
    .decode = decode,
    .memory = memory,
};
