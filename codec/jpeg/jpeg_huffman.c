/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_huffman.h"

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = DL2_JPEG_WINDOW,
    SIZE = 1 << WINDOW,
    MAX_DC = 15,
    RUN_16 = 0xf0, /* the symbol for sixteen zeros */
};

/* What one symbol at the start of a window is. */
struct single {
    uint8_t length;  /* of code and value; 0: not all of it is in the window */
    bool end;        /* the block ends here */
    uint8_t offset;  /* of the value, as in struct dl2_jpeg_entry */
    uint8_t advance; /* to the next coefficient, but for an end */
    int16_t value;
};

/* T.81, annex C, with what libjpeg demands of a table. */
static bool huffman_list_codes(struct dl2_jpeg_table *table, const struct dl2_jpeg_codes *codes,
                               bool dc)
{
    uint32_t code = 0, index = 0;
    for (unsigned length = 1; length <= 16; length++, code <<= 1) {
        table->offsets[length] = (int32_t)index - (int32_t)code;
        index += codes->counts[length];
        code += codes->counts[length];
        if (index > 256 || code >= 1u << length) /* all ones are no code */
            return false;
        table->limits[length] = code << (16 - length);
    }
    memcpy(table->symbols, codes->symbols, index);
    for (uint32_t i = 0; i < index && dc; i++)
        if (table->symbols[i] > MAX_DC)
            return false;
    return true;
}

static struct dl2_jpeg_entry huffman_entry(const struct single *single, uint32_t code,
                                           unsigned length)
{
    return (struct dl2_jpeg_entry){
        .length = single->length,
        .shift = (uint8_t)(64 - single->length),
        .base = (int16_t)(single->value - (int32_t)(code << (single->length - length))),
        .first = single->offset,
        .second = single->offset,
        .advance = single->end ? DL2_JPEG_BLOCK_END : single->advance,
    };
}

/* All windows that begin with one code: `size` bits of value follow it. */
static void huffman_fill_code(struct dl2_jpeg_table *table, struct single *singles, uint32_t code,
                              unsigned length, unsigned symbol, bool dc)
{
    const unsigned size = symbol & 15, run = dc ? 0 : symbol >> 4, rest = WINDOW - length;
    const uint32_t start = code << rest;
    struct single single = {
        .length = (uint8_t)(length + size),
        .end = !dc && !size && symbol != RUN_16,
        .offset = (uint8_t)(2 * run),
        .advance = (uint8_t)(2 * run + 2),
    };
    if (single.end)
        single.offset = 0;
    if (size <= rest) {
        const uint32_t same = 1u << (rest - size);
        for (uint32_t bits = 0, at = start; bits < 1u << size; bits++) {
            single.value = (int16_t)(size ? dl2_jpeg_extend(bits, size) : 0);
            struct dl2_jpeg_entry entry = huffman_entry(&single, code, length);
            entry.base = (int16_t)(entry.base - (int32_t)bits);
            for (uint32_t i = 0; i < same; i++, at++) {
                table->entries[at] = entry;
                singles[at] = single;
            }
        }
        return;
    }
    /* The sign is in the window and decides the base; the buffer has the rest of the value. */
    for (uint32_t i = 0; i < 1u << rest; i++) {
        singles[start + i] = (struct single){0};
        single.value = rest && i >> (rest - 1) ? 0 : (int16_t)(1 - (int32_t)(1u << size));
        table->entries[start + i] = huffman_entry(&single, code, length);
        if (!rest || length + size > DL2_JPEG_LONGEST)
            table->entries[start + i] = (struct dl2_jpeg_entry){.second = DL2_JPEG_BLOCK_END};
    }
}

/* Entries of one symbol. */
static void huffman_fill(struct dl2_jpeg_table *table, const struct dl2_jpeg_codes *codes,
                         struct single *singles, bool dc)
{
    uint32_t code = 0, index = 0;
    for (unsigned length = 1; length <= WINDOW; length++, code <<= 1)
        for (unsigned i = 0; i < codes->counts[length]; i++, code++, index++) {
            const unsigned symbol = table->symbols[index];
            const uint32_t start = code << (WINDOW - length), count = 1u << (WINDOW - length);
            for (uint32_t at = start; at < start + count; at++)
                table->codes[at] = (uint16_t)(length << 8 | symbol);
            huffman_fill_code(table, singles, code, length, symbol, dc);
        }
    /* Windows that begin with a longer code, or none. */
    for (uint32_t at = code >> 1; at < SIZE; at++) {
        table->codes[at] = 0;
        table->entries[at] = (struct dl2_jpeg_entry){.second = DL2_JPEG_BLOCK_END};
        singles[at] = (struct single){0};
    }
}

/* Adds to each entry of one symbol what the window has room for behind it. */
static void huffman_add_second(struct dl2_jpeg_table *table, const struct single *singles,
                               const struct single *ac)
{
    for (uint32_t at = 0; at < SIZE; at++) {
        const struct single *const one = &singles[at];
        struct dl2_jpeg_entry *const entry = &table->entries[at];
        if (!one->length || one->end)
            continue;
        const uint32_t behind = at << one->length & (SIZE - 1);
        const struct single *const two = &ac[behind];
        const unsigned length = one->length + two->length;
        if (!two->length || length > WINDOW)
            continue;
        if (two->end) {
            entry->length = (uint8_t)length;
            entry->advance = DL2_JPEG_BLOCK_END;
            continue;
        }
        if (two->value < INT8_MIN || two->value > INT8_MAX)
            continue;
        entry->length = (uint8_t)length;
        entry->second = (uint8_t)(one->advance + two->offset);
        entry->second_value = (int8_t)two->value;
        entry->advance = (uint8_t)(one->advance + two->advance);
        const struct single *const three = &ac[behind << two->length & (SIZE - 1)];
        if (three->end && length + three->length <= WINDOW) {
            entry->length = (uint8_t)(length + three->length);
            entry->advance = DL2_JPEG_BLOCK_END;
        }
    }
}

static bool huffman_make(struct dl2_jpeg_huffman *pair, const struct dl2_jpeg_component *component)
{
    struct single dc[SIZE], ac[SIZE];
    if (!huffman_list_codes(&pair->dc, &component->dc, true) ||
        !huffman_list_codes(&pair->ac, &component->ac, false))
        return false;
    huffman_fill(&pair->dc, &component->dc, dc, true);
    huffman_fill(&pair->ac, &component->ac, ac, false);
    huffman_add_second(&pair->dc, dc, ac);
    huffman_add_second(&pair->ac, ac, ac);
    return true;
}

static void huffman_write_key(uint8_t *key, const struct dl2_jpeg_component *component)
{
    const struct dl2_jpeg_codes *const codes[2] = {&component->dc, &component->ac};
    for (size_t i = 0; i < 2; i++, key += 17 + 256) {
        key[0] = 0;
        memcpy(key + 1, codes[i]->counts + 1, 16);
        size_t symbols = 0;
        for (size_t length = 1; length <= 16; length++)
            symbols += codes[i]->counts[length];
        memset(key + 17, 0, 256);
        memcpy(key + 17, codes[i]->symbols, symbols < 256 ? symbols : 256);
    }
}

/* Was it missed before? If not, it is now. */
static bool huffman_was_missed(struct dl2_jpeg_huffman_cache *cache, const uint8_t *key)
{
    for (size_t i = 0; i < DL2_JPEG_COMPONENTS; i++)
        if (!memcmp(cache->missed[i], key, DL2_JPEG_KEY))
            return true;
    memcpy(cache->missed[cache->clock % DL2_JPEG_COMPONENTS], key, DL2_JPEG_KEY);
    return false;
}

int dl2_jpeg_huffman_find(struct dl2_jpeg_huffman_cache *cache,
                          const struct dl2_jpeg_component *component, bool small,
                          const struct dl2_jpeg_huffman **out, struct dl2_error *error)
{
    uint8_t key[DL2_JPEG_KEY];
    huffman_write_key(key, component);
    struct dl2_jpeg_huffman **oldest = cache->pairs;
    cache->clock++;
    for (struct dl2_jpeg_huffman **pair = cache->pairs; pair < cache->pairs + DL2_JPEG_PAIRS;
         pair++) {
        const uint64_t used = *pair ? (*pair)->used : 0;
        if (used && !memcmp((*pair)->key, key, sizeof key)) {
            (*pair)->used = cache->clock;
            *out = *pair;
            return 1;
        }
        if (*oldest && used < (*oldest)->used)
            oldest = pair;
    }
    if (small && !huffman_was_missed(cache, key))
        return 0;
    if (!*oldest)
        *oldest = dl2_alloc_aligned(1, sizeof **oldest);
    if (!*oldest)
        return dl2_error_memory(error, "Huffman tables");
    (*oldest)->used = 0;
    if (!huffman_make(*oldest, component))
        return 0;
    memcpy((*oldest)->key, key, sizeof key);
    (*oldest)->used = cache->clock;
    *out = *oldest;
    return 1;
}

size_t dl2_jpeg_huffman_memory(const struct dl2_jpeg_huffman_cache *cache)
{
    size_t bytes = 0;
    for (size_t i = 0; i < DL2_JPEG_PAIRS; i++)
        bytes += cache->pairs[i] ? sizeof *cache->pairs[i] : 0;
    return bytes;
}

void dl2_jpeg_huffman_free(struct dl2_jpeg_huffman_cache *cache)
{
    for (size_t i = 0; i < DL2_JPEG_PAIRS; i++) {
        free(cache->pairs[i]);
        cache->pairs[i] = NULL;
    }
}
