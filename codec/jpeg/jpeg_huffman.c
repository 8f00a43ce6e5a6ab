/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_huffman.h"

#include "common/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE = 1 << DL2_JPEG_WINDOW,
    MAX_DC = 15,
    RUN_16 = 0xf0, /* the symbol for sixteen zeros */
    VALUE_BITS = 7 /* a second coefficient has at most as many, as it is stored in eight */
};

/* A symbol whose code is within a window. */
struct symbol {
    uint32_t code;
    uint8_t length, size; /* bits of the code, of the value behind it */
    uint8_t offset;       /* of the value, as in struct dl2_jpeg_entry */
    bool end;             /* the block ends here */
};

struct symbol_list {
    struct symbol symbols[256]; /* by ascending code */
    size_t count;
    unsigned window;
    uint32_t codes; /* windows that begin with one of the symbols; others follow */
};

/*
 * An entry as a number, so that entries are added up in one operation: of the fields of two that
 * are added, one is zero where they are signed, and the sums of the others are below 256.
 */
typedef uint64_t entry_bits;

/*
 * What the bits of a window behind its first symbol add to the entry: a second coefficient that is
 * all in the window, and the end of the block behind it, or that end alone. `rest` bits have the
 * tails from [1 << rest] on.
 */
struct tails {
    entry_bits bits[2 * SIZE];
    unsigned shortest; /* bits that have a tail */
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

static void huffman_list_symbols(struct symbol_list *list, const struct dl2_jpeg_table *table,
                                 const struct dl2_jpeg_codes *codes, unsigned window, bool dc)
{
    uint32_t code = 0;
    list->window = window;
    list->count = 0;
    for (unsigned length = 1; length <= window; length++, code <<= 1)
        for (unsigned i = 0; i < codes->counts[length]; i++, code++) {
            const unsigned symbol = table->symbols[list->count];
            const bool end = !dc && !(symbol & 15) && symbol != RUN_16;
            list->symbols[list->count++] =
                (struct symbol){.code = code,
                                .length = (uint8_t)length,
                                .size = symbol & 15,
                                .offset = (uint8_t)(dc || end ? 0 : 2 * (symbol >> 4)),
                                .end = end};
        }
    list->codes = code >> 1;
}

/* The table for single symbols. */
static void huffman_fill_codes(struct dl2_jpeg_table *table, const struct symbol_list *list)
{
    enum { LOOK = DL2_JPEG_LOOK };
    uint32_t at = 0;
    for (size_t i = 0; i < list->count && list->symbols[i].length <= LOOK; i++) {
        const unsigned length = list->symbols[i].length;
        for (uint32_t same = 0; same < 1u << (LOOK - length); same++)
            table->codes[at++] = (uint16_t)(length << 8 | table->symbols[i]);
    }
    memset(table->codes + at, 0, ((1 << LOOK) - at) * sizeof *table->codes);
}

static entry_bits entry_to_bits(struct dl2_jpeg_entry entry)
{
    entry_bits bits;
    static_assert(sizeof bits == sizeof entry, "an entry is a number");
    memcpy(&bits, &entry, sizeof bits);
    return bits;
}

/* Loops of eight, which compilers make vectors of. */
enum { TOGETHER = 8 };

static void fill_entries(entry_bits *out, size_t count, entry_bits value)
{
    size_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER)
        for (size_t j = 0; j < TOGETHER; j++)
            out[i + j] = value;
    for (; i < count; i++)
        out[i] = value;
}

/* Entries that begin with the same symbol and value, behind which `count` tails are. */
static void add_tails(entry_bits *out, const entry_bits *tails, size_t count, entry_bits entry)
{
    size_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER)
        for (size_t j = 0; j < TOGETHER; j++)
            out[i + j] = tails[i + j] + entry;
    for (; i < count; i++)
        out[i] = tails[i] + entry;
}

/* Adds the ends of blocks to the tails of one coefficient, of which `rest` bits are left. */
static void tails_add_ends(entry_bits *out, unsigned rest, const struct symbol *end)
{
    if (!end || end->length > rest)
        return;
    const entry_bits more = entry_to_bits(
        (struct dl2_jpeg_entry){.length = end->length, .advance = DL2_JPEG_BLOCK_END});
    const unsigned same = rest - end->length;
    for (uint32_t i = 0; i < 1u << same; i++)
        out[(end->code << same) + i] += more;
}

/* The tails of `rest` bits that begin with a symbol, which fits. */
static void tails_set_symbol(entry_bits *out, unsigned rest, const struct symbol *symbol,
                             const struct symbol *end)
{
    const unsigned size = symbol->size, left = rest - symbol->length - size;
    out += symbol->code << (rest - symbol->length);
    for (uint32_t bits = 0; bits < 1u << size; bits++, out += 1u << left) {
        const int32_t value = size ? dl2_jpeg_extend(bits, size) : 0;
        fill_entries(out, 1u << left,
                     entry_to_bits((struct dl2_jpeg_entry){
                         .length = (uint8_t)(symbol->length + size),
                         .second_value = (int8_t)value,
                         .second = (uint8_t)(symbol->offset + 2),
                         .advance = (uint8_t)(symbol->offset + 2),
                     }));
        tails_add_ends(out, left, end);
    }
}

/* The tails of up to `longest` bits. */
static void tails_make(struct tails *tails, const struct symbol_list *ac, unsigned longest)
{
    const struct symbol *end = NULL;
    tails->shortest = SIZE;
    for (size_t i = 0; i < ac->count; i++) {
        const struct symbol *const symbol = &ac->symbols[i];
        const unsigned length = symbol->length + symbol->size;
        if (symbol->end && !end)
            end = symbol;
        if (length < tails->shortest)
            tails->shortest = length;
    }
    memset(tails->bits, 0, (sizeof *tails->bits) << (longest + 1));
    for (unsigned rest = 1; rest <= longest; rest++) {
        entry_bits *const out = tails->bits + ((size_t)1 << rest);
        tails_add_ends(out, rest, end);
        for (size_t i = 0; i < ac->count && ac->symbols[i].length <= rest; i++) {
            const struct symbol *const symbol = &ac->symbols[i];
            if (!symbol->end && symbol->size <= VALUE_BITS && symbol->length + symbol->size <= rest)
                tails_set_symbol(out, rest, symbol, end);
        }
    }
}

/* The entry of a symbol alone whose value has the sign bit `positive`. */
static entry_bits symbol_entry(const struct symbol *symbol, bool positive)
{
    const unsigned length = symbol->length + symbol->size;
    const uint32_t code = symbol->code << symbol->size;
    const int32_t least = symbol->size && !positive ? 1 - (int32_t)(1u << symbol->size) : 0;
    return entry_to_bits((struct dl2_jpeg_entry){
        .length = (uint8_t)length,
        .shift = (uint8_t)(64 - length),
        .base = (int16_t)(least - (int32_t)code),
        .first = symbol->offset,
        .second = symbol->offset,
        .advance = symbol->end ? DL2_JPEG_BLOCK_END : (uint8_t)(symbol->offset + 2),
    });
}

/* All windows that begin with a symbol. */
static void huffman_fill_symbol(entry_bits *out, const struct symbol *symbol, unsigned window,
                                const struct tails *tails, entry_bits none)
{
    const unsigned rest = window - symbol->length, size = symbol->size;
    const size_t count = (size_t)1 << rest, half = size ? count / 2 : count;
    const entry_bits entries[2] = {symbol_entry(symbol, false), symbol_entry(symbol, true)};
    if (symbol->end || symbol->length + size > DL2_JPEG_LONGEST || (size && !rest)) {
        fill_entries(out, count, symbol->end ? entries[0] : none);
        return;
    }
    /* Where no tail fits, the buffer may have the rest of the value. */
    const size_t same = size + tails->shortest > rest ? 0 : (size_t)1 << (rest - size);
    for (size_t at = 0; at < count; at += half) {
        const entry_bits entry = entries[at > 0];
        if (!same)
            fill_entries(out + at, half, entry);
        for (size_t i = 0; same && i < half; i += same)
            add_tails(out + at + i, tails->bits + same, same, entry);
    }
}

static void huffman_fill(struct dl2_jpeg_table *table, const struct symbol_list *list,
                         const struct tails *tails)
{
    const entry_bits none = entry_to_bits((struct dl2_jpeg_entry){.second = DL2_JPEG_BLOCK_END});
    entry_bits *const out = table->bits;
    const unsigned window = list->window;
    huffman_fill_codes(table, list);
    for (size_t i = 0; i < list->count; i++)
        huffman_fill_symbol(out + (list->symbols[i].code << (window - list->symbols[i].length)),
                            &list->symbols[i], window, tails, none);
    fill_entries(out + list->codes, (1u << window) - list->codes, none);
}

/* Bits that are left in a window behind the shortest symbol of which a block doesn't end. */
static unsigned huffman_longest_tail(const struct symbol_list *list)
{
    unsigned least = list->window;
    for (size_t i = 0; i < list->count; i++) {
        const unsigned length = list->symbols[i].length + list->symbols[i].size;
        if (!list->symbols[i].end && length < least)
            least = length;
    }
    return list->window - least;
}

static bool huffman_make(struct dl2_jpeg_huffman *pair, const struct dl2_jpeg_component *component,
                         unsigned window)
{
    struct symbol_list dc, ac;
    struct tails tails;
    if (!huffman_list_codes(&pair->dc, &component->dc, true) ||
        !huffman_list_codes(&pair->ac, &component->ac, false))
        return false;
    huffman_list_symbols(&dc, &pair->dc, &component->dc, window, true);
    huffman_list_symbols(&ac, &pair->ac, &component->ac, window, false);
    const unsigned longest[] = {huffman_longest_tail(&dc), huffman_longest_tail(&ac)};
    tails_make(&tails, &ac, longest[longest[1] > longest[0]]);
    huffman_fill(&pair->dc, &dc, &tails);
    huffman_fill(&pair->ac, &ac, &tails);
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

/* The pair that was made of `key`, or NULL. */
static struct dl2_jpeg_huffman *huffman_look_up(struct dl2_jpeg_huffman_cache *cache,
                                                const uint8_t *key)
{
    for (size_t i = 0; i < DL2_JPEG_PAIRS; i++) {
        struct dl2_jpeg_huffman *const pair = cache->pairs[i];
        if (pair && pair->used && !memcmp(pair->key, key, DL2_JPEG_KEY)) {
            pair->used = ++cache->clock;
            return pair;
        }
    }
    return NULL;
}

/* A place for a pair: the one whose pair wasn't used for longest. NULL: out of memory. */
static struct dl2_jpeg_huffman *huffman_replace(struct dl2_jpeg_huffman_cache *cache)
{
    struct dl2_jpeg_huffman **oldest = cache->pairs;
    for (size_t i = 0; i < DL2_JPEG_PAIRS && *oldest; i++)
        if (!cache->pairs[i] || cache->pairs[i]->used < (*oldest)->used)
            oldest = &cache->pairs[i];
    if (!*oldest)
        *oldest = dl2_alloc_aligned(1, sizeof **oldest);
    return *oldest;
}

int dl2_jpeg_huffman_find(struct dl2_jpeg_huffman_cache *cache, const struct dl2_jpeg_frame *frame,
                          bool small, const struct dl2_jpeg_huffman *tables[DL2_JPEG_COMPONENTS],
                          struct dl2_error *error)
{
    uint8_t keys[DL2_JPEG_COMPONENTS][DL2_JPEG_KEY];
    unsigned window = DL2_JPEG_WINDOW;
    for (uint32_t i = 0; i < frame->components; i++) {
        huffman_write_key(keys[i], &frame->component[i]);
        if (!huffman_look_up(cache, keys[i]) && small)
            window = DL2_JPEG_NARROW;
    }
    for (uint32_t i = 0; i < frame->components; i++) {
        struct dl2_jpeg_huffman *pair = huffman_look_up(cache, keys[i]);
        tables[i] = pair;
        if (pair && pair->window == window)
            continue;
        if (!pair)
            tables[i] = pair = huffman_replace(cache);
        if (!pair)
            return dl2_error_memory(error, "Huffman tables");
        pair->used = 0;
        if (!huffman_make(pair, &frame->component[i], window))
            return 0;
        memcpy(pair->key, keys[i], sizeof pair->key);
        pair->window = window;
        pair->used = ++cache->clock;
    }
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
