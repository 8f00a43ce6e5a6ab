#include "codec/jpeg_tiles.h"

#include <string.h>

unsigned dl2_jpeg_tile_interval(uint32_t mcus_across)
{
    /* Four saves most time for its bytes; one that divides the row needs no shifting. */
    static const unsigned wanted[] = {4, 5, 3, 6};
    if (mcus_across < 8) /* so few that a crop mostly needs all of them */
        return mcus_across;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (mcus_across % wanted[i] == 0)
            return wanted[i];
    return 4;
}

/* What a sequential file's header says that matters here. */
struct layout {
    size_t header_size;     /* bytes up to the entropy-coded data */
    size_t frame_at;        /* of the SOF marker's contents: precision, height, width, ... */
    uint32_t width, height; /* pixels */
    uint32_t mcu_width, mcu_height;
    uint32_t across, down; /* MCUs */
    uint32_t interval;     /* MCUs */
    uint32_t segments;
};

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* Sizes and sampling. False for what is not told by a SOF0 or SOF1 of 8 bits. */
static bool read_frame(struct layout *layout, const uint8_t *p, size_t size)
{
    if (size < 6 || p[0] != 8)
        return false;
    const unsigned components = p[5];
    layout->height = be16(p + 1);
    layout->width = be16(p + 3);
    if (!layout->width || !layout->height || size != 6 + 3 * (size_t)components ||
        (components != 1 && components != 3))
        return false;
    unsigned most_h = 1, most_v = 1;
    for (unsigned i = 0; i < components; i++) {
        const unsigned h = p[7 + 3 * i] >> 4, v = p[7 + 3 * i] & 15;
        if (!h || h > 4 || !v || v > 4)
            return false;
        most_h = h > most_h ? h : most_h;
        most_v = v > most_v ? v : most_v;
    }
    if (components == 1) /* not interleaved: an MCU is a block (T.81, A.2.2) */
        most_h = most_v = 1;
    layout->mcu_width = 8 * most_h;
    layout->mcu_height = 8 * most_v;
    layout->across = (layout->width + layout->mcu_width - 1) / layout->mcu_width;
    layout->down = (layout->height + layout->mcu_height - 1) / layout->mcu_height;
    return true;
}

static bool read_header(struct layout *layout, const uint8_t *data, size_t size)
{
    *layout = (struct layout){0};
    unsigned components = 0;
    if (size < 4 || data[0] != 0xff || data[1] != 0xd8)
        return false;
    for (size_t at = 2; at + 4 <= size;) {
        const unsigned marker = data[at + 1];
        const size_t length = be16(data + at + 2);
        if (data[at] != 0xff || marker < 0xc0 || marker == 0xff ||
            (marker >= 0xd0 && marker <= 0xd9) || length < 2 || length > size - at - 2)
            return false;
        const uint8_t *p = data + at + 4;
        if (marker == 0xc0 || marker == 0xc1) {
            if (layout->frame_at || !read_frame(layout, p, length - 2))
                return false;
            layout->frame_at = at + 4;
            components = p[5];
        } else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4) {
            return false; /* progressive, arithmetic, lossless... */
        } else if (marker == 0xdd) {
            if (length != 4)
                return false;
            layout->interval = be16(p);
        } else if (marker == 0xda) { /* one scan has it all, or somebody else decodes it */
            if (!components || length < 3 || p[0] != components || !layout->interval)
                return false;
            layout->header_size = at + 2 + length;
            const uint64_t mcus = (uint64_t)layout->across * layout->down;
            layout->segments = (uint32_t)((mcus + layout->interval - 1) / layout->interval);
            return true;
        }
        at += 2 + length;
    }
    return false;
}

/*
 * marks[s] becomes the offset where segment s begins, marks[segments] that of the end marker.
 * False unless exactly the markers come that the header promises, in their order.
 */
static bool find_segments(const struct layout *layout, const uint8_t *data, size_t size,
                          size_t *marks)
{
    const uint8_t *p = data + layout->header_size, *end = data + size;
    uint32_t segment = 0;
    marks[0] = layout->header_size;
    while ((p = memchr(p, 0xff, (size_t)(end - p))) && end - p >= 2) {
        const unsigned marker = p[1];
        if (marker == 0) {
            p += 2;
        } else if (marker == 0xd0 + segment % 8 && segment + 1 < layout->segments) {
            p += 2;
            marks[++segment] = (size_t)(p - data);
        } else if (marker == 0xd9 && segment + 1 == layout->segments) {
            marks[segment + 1] = (size_t)(p - data);
            return true;
        } else {
            return false;
        }
    }
    return false;
}

/* Which segments show the rectangle: in each of its rows of MCUs, `count` from begin(row) on. */
struct cover {
    uint32_t left, top, right, bottom; /* MCUs, the last ones included */
    uint32_t count;
};

static uint32_t first_segment(const struct layout *layout, const struct cover *cover, uint32_t row)
{
    const uint64_t mcu = (uint64_t)row * layout->across + cover->left;
    const uint32_t first = (uint32_t)(mcu / layout->interval);
    return first + cover->count > layout->segments ? layout->segments - cover->count : first;
}

static bool choose_cover(const struct layout *layout, uint32_t x, uint32_t y, uint32_t width,
                         uint32_t height, struct cover *cover)
{
    const uint64_t across = layout->across, interval = layout->interval;
    *cover = (struct cover){x / layout->mcu_width, y / layout->mcu_height,
                            (x + width - 1) / layout->mcu_width,
                            (y + height - 1) / layout->mcu_height, 0};
    for (uint32_t row = cover->top; row <= cover->bottom; row++) {
        const uint64_t first = (row * across + cover->left) / interval;
        const uint64_t last = (row * across + cover->right) / interval;
        if (last - first + 1 > cover->count)
            cover->count = (uint32_t)(last - first + 1);
    }
    const uint64_t rows = cover->bottom - cover->top + 1, made = rows * cover->count * interval;
    /* Nothing is saved if all above and beside it could as well be decoded. */
    if (made >= across * (cover->bottom + 1) || cover->count * interval * layout->mcu_width > 65500)
        return false;
    /* A last segment that is shorter than the rest can't stand at a row's end but the image's. */
    const uint32_t end = first_segment(layout, cover, cover->bottom) + cover->count;
    return end < layout->segments || across * layout->down % interval == 0;
}

static bool keep_marker(unsigned marker)
{
    /* JFIF's and Adobe's say what the colours mean; the rest of APPn and comments do not matter. */
    return marker == 0xe0 || marker == 0xee || marker < 0xe0 || marker > 0xfe ||
           (marker >= 0xf0 && marker < 0xfe);
}

static int copy_header(struct dl2_jpeg_splice *splice, const struct layout *layout,
                       const uint8_t *data, struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_append(&splice->jpeg, data, 2, error));
    for (size_t at = 2; at < layout->header_size;) {
        const size_t length = 2 + be16(data + at + 2);
        if (keep_marker(data[at + 1])) {
            DL2_TRY(dl2_bytes_append(&splice->jpeg, data + at, length, error));
            if (at + 4 == layout->frame_at) {
                uint8_t *frame = splice->jpeg.data + splice->jpeg.size - length + 4;
                frame[1] = (uint8_t)(splice->height >> 8);
                frame[2] = (uint8_t)splice->height;
                frame[3] = (uint8_t)(splice->width >> 8);
                frame[4] = (uint8_t)splice->width;
            }
        }
        at += length;
    }
    return DL2_OK;
}

/* The rows' segments one behind the other, their restart markers renumbered, and an end. */
static int copy_segments(struct dl2_jpeg_splice *splice, const struct layout *layout,
                         const struct cover *cover, const uint8_t *data, const size_t *marks,
                         struct dl2_error *error)
{
    unsigned number = 0;
    for (uint32_t row = cover->top; row <= cover->bottom; row++) {
        const uint32_t first = first_segment(layout, cover, row), end = first + cover->count;
        const size_t start = splice->jpeg.size;
        DL2_TRY(
            dl2_bytes_append(&splice->jpeg, data + marks[first], marks[end] - marks[first], error));
        /* All but the image's last segment have a marker behind them. */
        if (end == layout->segments)
            DL2_TRY(dl2_bytes_append(&splice->jpeg, "\xff\xd0", 2, error));
        for (uint32_t segment = first; segment < end; segment++) {
            size_t behind = marks[segment + 1] - marks[first];
            behind += segment + 1 == layout->segments ? 2 : 0;
            splice->jpeg.data[start + behind - 1] = (uint8_t)(0xd0 + number++ % 8);
        }
    }
    splice->jpeg.data[splice->jpeg.size - 1] = 0xd9;
    return 1;
}

static int place_rows(struct dl2_jpeg_splice *splice, const struct layout *layout,
                      const struct cover *cover, struct dl2_error *error)
{
    splice->rows = cover->bottom - cover->top + 1;
    DL2_TRY(dl2_bytes_resize(&splice->shifts, splice->rows * sizeof *splice->shift, error));
    splice->shift = (uint32_t *)splice->shifts.data;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < splice->rows; i++) {
        const uint64_t row = cover->top + i;
        const uint64_t begins =
            (uint64_t)first_segment(layout, cover, (uint32_t)row) * layout->interval;
        const uint32_t shift = (uint32_t)(row * layout->across + cover->left - begins);
        splice->shift[i] = shift;
        least = shift < least ? shift : least;
        most = shift > most ? shift : most;
    }
    for (uint32_t i = 0; i < splice->rows; i++)
        splice->shift[i] -= least;
    splice->max_shift = most - least;
    splice->shifted = most != least;
    splice->mcu_width = layout->mcu_width;
    splice->mcu_height = layout->mcu_height;
    splice->y = cover->top * layout->mcu_height;
    splice->height = splice->rows * layout->mcu_height;
    if (splice->height > layout->height - splice->y)
        splice->height = layout->height - splice->y;
    splice->width = cover->count * layout->interval * layout->mcu_width;
    /* Where `least` reaches back beyond the row's beginning, the row before shines in on the left.
     */
    if (least > cover->left) {
        splice->shifted = true;
        for (uint32_t i = 0; i < splice->rows; i++)
            splice->shift[i] += least - cover->left;
        splice->max_shift += least - cover->left;
        least = cover->left;
    }
    splice->x = (cover->left - least) * layout->mcu_width;
    if (!splice->shifted && splice->width > layout->width - splice->x) {
        if (cover->left - least + cover->count * layout->interval > layout->across)
            splice->shifted = true; /* the next row shines in on the right */
        else
            splice->width = layout->width - splice->x;
    }
    return DL2_OK;
}

int dl2_jpeg_splice(struct dl2_jpeg_splice *splice, const uint8_t *data, size_t size, uint32_t x,
                    uint32_t y, uint32_t width, uint32_t height, bool straight,
                    struct dl2_error *error)
{
    struct layout layout;
    struct cover cover;
    if (!read_header(&layout, data, size) || !width || !height || x >= layout.width ||
        y >= layout.height || width > layout.width - x || height > layout.height - y ||
        !choose_cover(&layout, x, y, width, height, &cover))
        return 0;
    if (layout.segments > size / 2) /* each takes two bytes at least */
        return 0;
    DL2_TRY(place_rows(splice, &layout, &cover, error));
    if (straight && splice->shifted)
        return 0;
    DL2_TRY(
        dl2_bytes_resize(&splice->marks, (layout.segments + (size_t)1) * sizeof(size_t), error));
    size_t *marks = (size_t *)splice->marks.data;
    if (!find_segments(&layout, data, size, marks))
        return 0;
    splice->jpeg.size = 0;
    DL2_TRY(copy_header(splice, &layout, data, error));
    return copy_segments(splice, &layout, &cover, data, marks, error);
}

void dl2_jpeg_splice_free(struct dl2_jpeg_splice *splice)
{
    dl2_bytes_free(&splice->jpeg);
    dl2_bytes_free(&splice->marks);
    dl2_bytes_free(&splice->shifts);
}
