/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of PostgreSQL's files, built here byte by byte: what is in them is found, what cannot be
 * used is refused, and no damaged page leads out of itself.
 */
#include "dataset/postgresql/heap_page.h"

#include "common/random.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
/* cmocka's header needs the four above. */
#include <cmocka.h>

static void put_u16(uint8_t *at, unsigned number)
{
    at[0] = (uint8_t)number;
    at[1] = (uint8_t)(number >> 8);
}

static void put_u32(uint8_t *at, uint32_t number)
{
    put_u16(at, number & 0xffff);
    put_u16(at + 2, number >> 16);
}

static unsigned get_u16(const uint8_t *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

/* An empty page, of its own allocation so that a sanitizer sees its ends. */
static uint8_t *make_page(unsigned special)
{
    uint8_t *page = calloc(1, DL2_HEAP_PAGE);
    assert_non_null(page);
    put_u16(page + 12, 24);
    put_u16(page + 14, DL2_HEAP_PAGE - special);
    put_u16(page + 16, DL2_HEAP_PAGE - special);
    put_u16(page + 18, DL2_HEAP_PAGE | 4);
    return page;
}

/* Adds an item and returns its number. */
static unsigned add_item(uint8_t *page, const uint8_t *data, unsigned size)
{
    const unsigned lower = get_u16(page + 12), upper = (get_u16(page + 14) - size) / 8 * 8;
    memcpy(page + upper, data, size);
    put_u32(page + lower, upper | 1u << 15 | size << 17);
    put_u16(page + 12, lower + 4);
    put_u16(page + 14, upper);
    return (lower - 24) / 4 + 1;
}

/* A row without nulls, with the bytes of its columns as they are. */
static unsigned add_row(uint8_t *page, unsigned columns, const void *data, unsigned size)
{
    uint8_t row[DL2_HEAP_PAGE] = {0};
    put_u32(row, 4711);
    put_u16(row + 18, columns);
    row[22] = 24;
    memcpy(row + 24, data, size);
    return add_item(page, row, 24 + size);
}

static const struct dl2_heap_column text = {-1, 4}, int4 = {4, 4}, int8 = {8, 8}, cstring = {-2, 1};

static bool find_value(const uint8_t *page, unsigned item, const struct dl2_heap_column *columns,
                       size_t number, struct dl2_heap_value *value)
{
    struct dl2_heap_row row;
    assert_true(dl2_heap_row(page, item, &row));
    assert_int_equal(row.xmin, 4711);
    return dl2_heap_value(&row, columns, number, value);
}

static void finds_values(void **state)
{
    (void)state;
    uint8_t *page = make_page(0);
    const struct dl2_heap_column columns[] = {text, int8, cstring, int4, text, text};
    struct dl2_heap_row row;
    struct dl2_heap_value value;
    /* "ab" with a short header, 5 bytes to the next multiple of 8, 8 bytes, "x", 2 to 4, 4 */
    uint8_t data[64] = {7, 'a', 'b', 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 'x', 0, 0, 0, 9, 9, 9};
    data[24] = 3 << 1 | 1; /* a short header and two bytes */
    data[25] = 'y';
    data[26] = 'z';
    put_u32(data + 28, (4 + 5) << 2); /* a long header, aligned, and five bytes */
    memcpy(data + 32, "hello", 5);
    const unsigned item = add_row(page, 6, data, 37);
    assert_true(find_value(page, item, columns, 0, &value));
    assert_int_equal(value.bytes, 2);
    assert_true(find_value(page, item, columns, 4, &value));
    assert_int_equal(value.bytes, 2);
    assert_true(dl2_heap_row(page, item, &row));
    assert_memory_equal(row.data + value.offset, "yz", 2);
    assert_true(find_value(page, item, columns, 5, &value));
    assert_int_equal(value.bytes, 5);
    assert_false(value.is_large);
    assert_memory_equal(row.data + value.offset, "hello", 5);
    assert_false(find_value(page, item, columns, 3, &value)); /* no value that has a length */
    put_u32(data + 28, (4 + 5) << 2 | 2);
    assert_false(find_value(page, add_row(page, 6, data, 37), columns, 5, &value)); /* compressed */
    put_u32(data + 28, (4 + 6) << 2);
    assert_false(find_value(page, add_row(page, 6, data, 37), columns, 5, &value)); /* too long */
    assert_false(find_value(page, add_row(page, 5, data, 37), columns, 5, &value)); /* not there */
    for (unsigned wrong = 0; wrong < 12; wrong += 11)
        assert_false(dl2_heap_row(page, wrong, &row));
    free(page);
}

static void passes_over_nulls(void **state)
{
    (void)state;
    uint8_t *page = make_page(0), data[64] = {0};
    const struct dl2_heap_column columns[] = {int8, text, int4, text};
    struct dl2_heap_value value;
    struct dl2_heap_row row;
    put_u32(data, 4711);
    put_u16(data + 18, 4);
    put_u16(data + 20, 1);
    data[22] = 24;
    data[23] = 1 << 1 | 1 << 3; /* the first and the third are null */
    memcpy(data + 24, "\7ab\11end", 7);
    const unsigned item = add_item(page, data, 31);
    assert_true(find_value(page, item, columns, 3, &value));
    assert_true(dl2_heap_row(page, item, &row));
    assert_int_equal(value.bytes, 3);
    assert_memory_equal(row.data + value.offset, "end", 3);
    data[23] = 1 << 1;
    assert_false(find_value(page, add_item(page, data, 31), columns, 3, &value));
    free(page);
}

/* A pointer to a large value: both sizes, its number, its table. */
static unsigned add_pointer(uint8_t *page, uint32_t raw, uint32_t stored, unsigned tag)
{
    uint8_t data[18] = {1, (uint8_t)tag};
    put_u32(data + 2, raw);
    put_u32(data + 6, stored);
    put_u32(data + 10, 99);
    put_u32(data + 14, 100);
    return add_row(page, 1, data, sizeof data);
}

static void knows_large_values(void **state)
{
    (void)state;
    uint8_t *page = make_page(0);
    struct dl2_heap_value value;
    assert_true(find_value(page, add_pointer(page, 5004, 5000, 18), &text, 0, &value));
    assert_true(value.is_large);
    assert_int_equal(value.bytes, 5000);
    assert_int_equal(value.chunk_id, 99);
    assert_false(find_value(page, add_pointer(page, 5004, 4000, 18), &text, 0, &value));
    assert_false(find_value(page, add_pointer(page, 5004, 5000 | 1u << 30, 18), &text, 0, &value));
    assert_false(find_value(page, add_pointer(page, 5004, 5000, 1), &text, 0, &value));
    assert_false(find_value(page, add_pointer(page, 2, (uint32_t)-2, 18), &text, 0, &value));
    free(page);
}

static void knows_chunks(void **state)
{
    (void)state;
    uint8_t *page = make_page(0), data[12 + DL2_HEAP_CHUNK] = {0};
    struct dl2_heap_row row;
    put_u32(data, 99);
    put_u32(data + 4, 3);
    put_u32(data + 8, (4 + DL2_HEAP_CHUNK) << 2);
    memset(data + 12, 'c', DL2_HEAP_CHUNK);
    const unsigned item = add_row(page, 3, data, sizeof data);
    assert_true(dl2_heap_row(page, item, &row));
    const uint8_t *chunk = dl2_heap_chunk(&row, 99, 3, DL2_HEAP_CHUNK);
    assert_non_null(chunk);
    assert_memory_equal(chunk, data + 12, DL2_HEAP_CHUNK);
    assert_null(dl2_heap_chunk(&row, 98, 3, DL2_HEAP_CHUNK));
    assert_null(dl2_heap_chunk(&row, 99, 2, DL2_HEAP_CHUNK));
    assert_null(dl2_heap_chunk(&row, 99, 3, DL2_HEAP_CHUNK - 1));
    assert_true(dl2_heap_row(page, add_row(page, 2, data, sizeof data), &row));
    assert_null(dl2_heap_chunk(&row, 99, 3, DL2_HEAP_CHUNK));
    free(page);
}

static uint8_t *make_leaf(unsigned flags, uint32_t next)
{
    uint8_t *page = make_page(16);
    put_u32(page + DL2_HEAP_PAGE - 12, next);
    put_u16(page + DL2_HEAP_PAGE - 4, flags);
    for (unsigned i = 0; i < 5; i++) {
        uint8_t data[24] = {0};
        put_u16(data, 1); /* block 65536 + i */
        put_u16(data + 2, i);
        put_u16(data + 4, i + 10);
        put_u16(data + 6, i == 4 ? 24 | 0x2000 : 16); /* the last: a list of places */
        put_u32(data + 8, 99);
        put_u32(data + 12, i);
        assert_int_equal(add_item(page, data, i == 4 ? 24 : 16), i + 1);
    }
    return page;
}

static void reads_leaves(void **state)
{
    (void)state;
    struct dl2_heap_entry entry;
    uint8_t *page = make_leaf(1, 0);
    assert_int_equal(dl2_heap_entries(page), 5);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(dl2_heap_entry(page, i + 1, &entry));
        assert_int_equal(entry.block, 65536 + i);
        assert_int_equal(entry.item, i + 10);
        assert_int_equal(entry.chunk_id, 99);
        assert_int_equal(entry.sequence, i);
    }
    assert_false(dl2_heap_entry(page, 5, &entry));
    free(page);
    page = make_leaf(1, 7); /* not the last leaf: its first item is a bound */
    assert_false(dl2_heap_entry(page, 1, &entry));
    assert_true(dl2_heap_entry(page, 2, &entry));
    free(page);
    static const unsigned others[] = {0, 2, 1 | 4, 8, 1 | 16};
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        page = make_leaf(others[i], 0);
        assert_int_equal(dl2_heap_entries(page), 0);
        free(page);
    }
}

/* Uses all that a page seems to hold; returns how much of it was accepted. */
static unsigned use_page(const uint8_t *page)
{
    static const struct dl2_heap_column columns[] = {{-1, 4}, {8, 8}, {-2, 1}, {4, 4}, {-1, 4}};
    unsigned used = 0;
    for (unsigned item = 0; item < 2100; item++) {
        struct dl2_heap_row row;
        struct dl2_heap_value value;
        struct dl2_heap_entry entry;
        used += item <= dl2_heap_entries(page) && dl2_heap_entry(page, item, &entry);
        if (!dl2_heap_row(page, item, &row))
            continue;
        assert_true(row.data >= page && row.data + row.size <= page + DL2_HEAP_PAGE);
        assert_true(row.header <= row.size);
        for (size_t i = 0; i < 5; i++)
            if (dl2_heap_value(&row, columns, i, &value)) {
                used++;
                assert_true(value.is_large || value.offset + value.bytes <= row.size);
            }
        const uint8_t *chunk = dl2_heap_chunk(&row, 99, 3, 100);
        used += chunk != NULL;
        assert_true(!chunk || (chunk >= row.data && chunk + 100 <= row.data + row.size));
    }
    return used;
}

static void survives_damage(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, 0);
    uint8_t chunk[112] = {0};
    put_u32(chunk, 99);
    put_u32(chunk + 4, 3);
    put_u32(chunk + 8, 104 << 2);
    uint8_t *pages[] = {make_page(0), make_leaf(1, 0)}, *damaged = make_page(0);
    for (unsigned i = 0; i < 20; i++) {
        add_row(pages[0], 3, chunk, sizeof chunk);
        add_row(pages[0], 5, "\7ab\0\0\0\0\0_int8_8_x\0\0\0int4\11end", 28);
        add_pointer(pages[0], 5004, 5000, 18);
    }
    unsigned whole[] = {use_page(pages[0]), use_page(pages[1])}, fewer = 0;
    assert_true(whole[0] > 60 && whole[1] == 4);
    for (unsigned round = 0; round < ROUNDS; round++) {
        memcpy(damaged, pages[round % 2], DL2_HEAP_PAGE);
        const uint32_t times = 1 + dl2_random_below(&random, 8);
        /* Headers, line pointers and what is behind them matter more than the empty middle. */
        const unsigned upper = get_u16(damaged + 14);
        for (uint32_t i = 0; i < times; i++) {
            const bool front = dl2_random_below(&random, 2);
            const uint32_t at = front ? dl2_random_below(&random, get_u16(pages[round % 2] + 12))
                                      : upper + dl2_random_below(&random, DL2_HEAP_PAGE - upper);
            damaged[at] = (uint8_t)dl2_random_below(&random, 256);
        }
        fewer += use_page(damaged) < whole[round % 2];
    }
    assert_in_range(fewer, ROUNDS / 10, ROUNDS - 1);
    for (unsigned i = 0; i < DL2_HEAP_PAGE; i++)
        damaged[i] = (uint8_t)dl2_random_below(&random, 256);
    assert_int_equal(use_page(damaged), 0);
    free(damaged);
    free(pages[0]);
    free(pages[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_values),       cmocka_unit_test(passes_over_nulls),
        cmocka_unit_test(knows_large_values), cmocka_unit_test(knows_chunks),
        cmocka_unit_test(reads_leaves),       cmocka_unit_test(survives_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
