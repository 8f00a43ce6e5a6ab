/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/postgresql/heap_page.h"

#include <endian.h>
#include <string.h>

/* Offsets in a page, in the header of a row, in an entry of an index. */
enum {
    PAGE_LOWER = 12,
    PAGE_UPPER = 14,
    PAGE_SPECIAL = 16,
    PAGE_VERSION = 18,
    PAGE_ITEMS = 24,
    ROW_COLUMNS = 18,
    ROW_FLAGS = 20,
    ROW_HEADER = 22,
    ROW_NULLS = 23,
    ENTRY_INFO = 6,
    ENTRY_KEY = 8,
    ENTRY_SIZE = 16,
    LEAF_NEXT = 4,
    LEAF_FLAGS = 12,
    LEAF_SPECIAL = 16
};

enum { LAYOUT_VERSION = 4, ITEM_NORMAL = 1, MAX_COLUMNS = 0x7ff, HAS_NULLS = 1 };

/* Flags of a page of a B-tree. */
enum { BTREE_LEAF = 1, BTREE_DELETED = 4, BTREE_META = 8, BTREE_HALF_DEAD = 16 };

/* What the first byte of a value with a length says; a pointer to a value on disk. */
enum { VALUE_POINTER = 1, VALUE_SHORT = 1, VALUE_COMPRESSED = 2, TAG_ON_DISK = 18 };

static uint16_t page_u16(const uint8_t *at)
{
    uint16_t number;
    memcpy(&number, at, sizeof number);
    return le16toh(number);
}

static uint32_t page_u32(const uint8_t *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return le32toh(number);
}

/* The number of line pointers; 0 if the header does not fit its page, or the page is new. */
static unsigned count_items(const uint8_t *page)
{
    const unsigned lower = page_u16(page + PAGE_LOWER), upper = page_u16(page + PAGE_UPPER);
    const unsigned special = page_u16(page + PAGE_SPECIAL);
    if (page_u16(page + PAGE_VERSION) != (DL2_HEAP_PAGE | LAYOUT_VERSION) || lower < PAGE_ITEMS ||
        lower > upper || upper > special || special > DL2_HEAP_PAGE)
        return 0;
    return (lower - PAGE_ITEMS) / 4;
}

/* What a line pointer points at: at least `least` bytes. NULL if there is no such thing. */
static const uint8_t *find_item(const uint8_t *page, unsigned item, uint32_t least, uint32_t *size)
{
    if (item < 1 || item > count_items(page))
        return NULL;
    const uint32_t pointer = page_u32(page + PAGE_ITEMS + 4 * (item - 1));
    const uint32_t offset = pointer & 0x7fff, flags = pointer >> 15 & 3;
    *size = pointer >> 17;
    if (flags != ITEM_NORMAL || offset < page_u16(page + PAGE_UPPER) ||
        offset + *size > page_u16(page + PAGE_SPECIAL) || *size < least)
        return NULL;
    return page + offset;
}

bool dl2_heap_row(const uint8_t *page, unsigned item, struct dl2_heap_row *row)
{
    *row = (struct dl2_heap_row){0};
    row->data = find_item(page, item, ROW_NULLS + 1, &row->size);
    if (!row->data)
        return false;
    row->xmin = page_u32(row->data);
    row->columns = page_u16(row->data + ROW_COLUMNS) & MAX_COLUMNS;
    row->header = row->data[ROW_HEADER];
    const bool has_nulls = page_u16(row->data + ROW_FLAGS) & HAS_NULLS;
    if (has_nulls)
        row->nulls = row->data + ROW_NULLS;
    const uint32_t least = ROW_NULLS + (has_nulls ? (row->columns + 7) / 8 : 0);
    return row->header >= least && row->header % 8 == 0 && row->header <= row->size;
}

static bool is_null(const struct dl2_heap_row *row, size_t number)
{
    return row->nulls && !(row->nulls[number / 8] >> number % 8 & 1);
}

/* The whole length of a value that says its own; 0 if it does not lie in the row. */
static uint32_t value_length(const uint8_t *value, uint32_t left)
{
    uint32_t length = 0;
    if (left < 1)
        return 0;
    if (*value == VALUE_POINTER)
        length = left >= 2 && value[1] == TAG_ON_DISK ? 2 + 16 : 0;
    else if (*value & VALUE_SHORT)
        length = *value >> 1;
    else if (left >= 4)
        length = page_u32(value) >> 2 >= 4 ? page_u32(value) >> 2 : 0;
    return length <= left ? length : 0;
}

static uint32_t align_up(uint32_t offset, uint32_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

/* Where a column begins behind `offset`. A value with a short header is not aligned. */
static uint32_t begin_column(const struct dl2_heap_row *row, const struct dl2_heap_column *column,
                             uint32_t offset)
{
    if (column->length == -1 && offset < row->size && row->data[offset])
        return offset;
    return align_up(offset, column->alignment);
}

/* The length of a column's value at `offset`, 0 if it does not lie in the row. */
static uint32_t column_length(const struct dl2_heap_row *row, const struct dl2_heap_column *column,
                              uint32_t offset)
{
    if (offset >= row->size)
        return 0;
    const uint32_t left = row->size - offset;
    if (column->length == -1)
        return value_length(row->data + offset, left);
    if (column->length > 0)
        return (uint32_t)column->length <= left ? (uint32_t)column->length : 0;
    const uint8_t *zero = memchr(row->data + offset, 0, left); /* a text that ends with one */
    return zero ? (uint32_t)(zero - (row->data + offset)) + 1 : 0;
}

bool dl2_heap_value(const struct dl2_heap_row *row, const struct dl2_heap_column *columns,
                    size_t number, struct dl2_heap_value *value)
{
    *value = (struct dl2_heap_value){0};
    if (number >= row->columns || columns[number].length != -1 || is_null(row, number))
        return false;
    uint32_t offset = row->header;
    for (size_t i = 0; i < number; i++) {
        if (is_null(row, i))
            continue;
        offset = begin_column(row, &columns[i], offset);
        const uint32_t length = column_length(row, &columns[i], offset);
        if (!length)
            return false;
        offset += length;
    }
    offset = begin_column(row, &columns[number], offset);
    const uint32_t length = column_length(row, &columns[number], offset);
    if (!length)
        return false;
    const uint8_t *data = row->data + offset;
    if (*data == VALUE_POINTER) {
        /* Both sizes: with the header of a value in memory, and as it is stored. */
        const uint32_t raw = page_u32(data + 2), stored = page_u32(data + 6);
        value->bytes = raw - 4;
        value->is_large = true;
        value->chunk_id = page_u32(data + 10);
        return raw > 4 && stored == raw - 4; /* smaller, or with a method: compressed */
    }
    const uint32_t header = *data & VALUE_SHORT ? 1 : 4;
    value->bytes = length - header;
    value->offset = offset + header;
    return *data & VALUE_SHORT || (*data & 3) != VALUE_COMPRESSED;
}

const uint8_t *dl2_heap_chunk(const struct dl2_heap_row *row, uint32_t chunk_id, uint32_t sequence,
                              uint32_t bytes)
{
    static const struct dl2_heap_column columns[] = {{4, 4}, {4, 4}, {-1, 4}};
    const uint32_t head = row->header + 8;
    struct dl2_heap_value value;
    if (row->columns != 3 || row->nulls || head > row->size ||
        page_u32(row->data + row->header) != chunk_id ||
        page_u32(row->data + row->header + 4) != sequence ||
        !dl2_heap_value(row, columns, 2, &value) || value.is_large || value.bytes != bytes)
        return NULL;
    return row->data + value.offset;
}

unsigned dl2_heap_entries(const uint8_t *page)
{
    const unsigned items = count_items(page);
    if (!items || page_u16(page + PAGE_SPECIAL) != DL2_HEAP_PAGE - LEAF_SPECIAL)
        return 0;
    const unsigned flags = page_u16(page + DL2_HEAP_PAGE - LEAF_SPECIAL + LEAF_FLAGS);
    return (flags & (BTREE_LEAF | BTREE_DELETED | BTREE_META | BTREE_HALF_DEAD)) == BTREE_LEAF
               ? items
               : 0;
}

bool dl2_heap_entry(const uint8_t *page, unsigned item, struct dl2_heap_entry *entry)
{
    uint32_t size;
    const uint8_t *data = find_item(page, item, ENTRY_SIZE, &size);
    /* The first line pointer of a leaf that has a right neighbor is its upper bound. */
    const bool is_bound = item == 1 && page_u32(page + DL2_HEAP_PAGE - LEAF_SPECIAL + LEAF_NEXT);
    /* The size and flags: nulls, and lists of several places, make it another number. */
    if (!data || is_bound || page_u16(data + ENTRY_INFO) != ENTRY_SIZE)
        return false;
    entry->block = (uint32_t)page_u16(data) << 16 | page_u16(data + 2);
    entry->item = page_u16(data + 4);
    entry->chunk_id = page_u32(data + ENTRY_KEY);
    entry->sequence = page_u32(data + ENTRY_KEY + 4);
    return true;
}
