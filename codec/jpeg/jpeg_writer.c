/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_writer.h"

#include "codec/jpeg/jpeg_header.h"
#include "codec/jpeg/jpeg_optimal.h"

#include <stdlib.h>
#include <string.h>

enum { END_OF_BLOCK = 0x00, SIXTEEN_ZEROS = 0xf0 };

/* ---- Headers */

/* The headers before the scan and those of the scan are shorter: two quantization tables or four
 * Huffman tables. */
enum { MAX_HEADER = 2048 };

struct header_text {
    uint8_t bytes[MAX_HEADER];
    size_t size;
};

static void header_put(struct header_text *text, unsigned byte)
{
    text->bytes[text->size++] = (uint8_t)byte;
}

static void header_put_two(struct header_text *text, unsigned value)
{
    header_put(text, value >> 8);
    header_put(text, value & 255);
}

/* A marker, and the length of `size` bytes that follow. */
static void header_marker(struct header_text *text, unsigned code, unsigned size)
{
    header_put(text, 0xff);
    header_put(text, code);
    header_put_two(text, size + 2);
}

/* Luma and chroma, or luma alone. */
static unsigned header_kinds(unsigned components)
{
    return components > 1 ? 2 : 1;
}

static void header_huffman(struct header_text *text, const JHUFF_TBL *table, unsigned number)
{
    unsigned count = 0;
    for (int i = 1; i <= 16; i++)
        count += table->bits[i];
    header_marker(text, DL2_JPEG_DHT, 17 + count);
    header_put(text, number);
    for (int i = 1; i <= 16; i++)
        header_put(text, table->bits[i]);
    for (unsigned i = 0; i < count; i++)
        header_put(text, table->huffval[i]);
}

/* Headers are in the order in which libjpeg writes them; chroma's two components share their
 * tables, and components are numbered from 1 on, as in JFIF. */
static void header_begin(struct header_text *text, const struct jpeg_compress_struct *cinfo)
{
    static const uint8_t jfif[] = {'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};
    const unsigned components = (unsigned)cinfo->num_components;
    header_put(text, 0xff);
    header_put(text, DL2_JPEG_SOI);
    header_marker(text, DL2_JPEG_APP0, sizeof jfif);
    for (size_t i = 0; i < sizeof jfif; i++)
        header_put(text, jfif[i]);
    for (unsigned kind = 0; kind < header_kinds(components); kind++) {
        header_marker(text, DL2_JPEG_DQT, 65);
        header_put(text, kind);
        for (int i = 0; i < 64; i++)
            header_put(text, cinfo->quant_tbl_ptrs[kind]->quantval[dl2_jpeg_natural[i]]);
    }
    header_marker(text, DL2_JPEG_SOF0, 6 + 3 * components);
    header_put(text, 8);
    header_put_two(text, cinfo->image_height);
    header_put_two(text, cinfo->image_width);
    header_put(text, components);
    for (unsigned i = 0; i < components; i++) {
        const jpeg_component_info *const component = &cinfo->comp_info[i];
        header_put(text, i + 1);
        header_put(text,
                   (unsigned)component->h_samp_factor << 4 | (unsigned)component->v_samp_factor);
        header_put(text, i ? 1 : 0);
    }
}

static void header_scan(struct header_text *text, unsigned components, unsigned interval,
                        const struct dl2_jpeg_coders coders[2])
{
    for (unsigned kind = 0; kind < header_kinds(components); kind++) {
        header_huffman(text, &coders[kind].dc.table, kind);
        header_huffman(text, &coders[kind].ac.table, 0x10 | kind);
    }
    if (interval) {
        header_marker(text, DL2_JPEG_DRI, 2);
        header_put_two(text, interval);
    }
    header_marker(text, DL2_JPEG_SOS, 4 + 2 * components);
    header_put(text, components);
    for (unsigned i = 0; i < components; i++) {
        header_put(text, i + 1);
        header_put(text, i ? 0x11 : 0x00);
    }
    header_put(text, 0);
    header_put(text, 63);
    header_put(text, 0);
}

/* ---- Entropy coding */

/* Bits of a magnitude; 0 for 0. */
static inline unsigned size_of(uint32_t magnitude)
{
    return 31 - (unsigned)__builtin_clz(2 * magnitude + 1);
}

/* The lowest bits of a coefficient as they stand behind its code (T.81, F.1.2.1.1). */
static inline uint32_t bits_of(int32_t value, unsigned size)
{
    return (uint32_t)(value - (value < 0)) & ((1u << size) - 1);
}

/* Does a coder have a code for a coefficient, biased, behind so many zeros? Which? */
static inline bool has_code(unsigned zeros, unsigned biased)
{
    return (zeros << 1 | biased) < 2 * DL2_JPEG_BIAS;
}

static inline unsigned code_of(unsigned zeros, unsigned biased)
{
    return zeros << 5 | biased;
}

void dl2_jpeg_coder_set(struct dl2_jpeg_coder *coder, const JHUFF_TBL *table)
{
    memset(coder, 0, sizeof *coder);
    coder->table = *table;
    uint64_t code = 0;
    unsigned next = 0;
    for (unsigned length = 1; length <= 16; length++, code <<= 1)
        for (unsigned i = 0; i < table->bits[length]; i++, code++) {
            const unsigned symbol = table->huffval[next++];
            coder->symbols[symbol] = code << (64 - length);
            coder->symbol_lengths[symbol] = (uint8_t)(length + (symbol & 15));
        }
    for (int value = -DL2_JPEG_BIAS; value < DL2_JPEG_BIAS; value++) {
        const unsigned size = size_of((uint32_t)abs(value));
        const uint64_t bits = bits_of(value, size);
        for (unsigned zeros = 0; zeros < 16; zeros++) {
            const unsigned at = code_of(zeros, (unsigned)(value + DL2_JPEG_BIAS));
            const unsigned symbol = zeros << 4 | size, length = coder->symbol_lengths[symbol];
            coder->codes[at] = coder->symbols[symbol] | (length ? bits << (64 - length) : 0);
            coder->lengths[at] = (uint8_t)length;
        }
    }
}

void dl2_jpeg_coders_optimize(struct dl2_jpeg_coders *coders, struct dl2_jpeg_counts *counts)
{
    JHUFF_TBL table;
    for (int value = -DL2_JPEG_BIAS; value < DL2_JPEG_BIAS; value++)
        for (unsigned zeros = 0; zeros < 16; zeros++) {
            uint64_t *const count =
                &counts->codes[code_of(zeros, (unsigned)(value + DL2_JPEG_BIAS))];
            counts->ac[zeros << 4 | size_of((uint32_t)abs(value))] += *count;
            *count = 0;
        }
    memset(&table, 0, sizeof table);
    dl2_jpeg_optimal_table(counts->dc, &table);
    dl2_jpeg_coder_set(&coders->dc, &table);
    dl2_jpeg_optimal_table(counts->ac, &table);
    dl2_jpeg_coder_set(&coders->ac, &table);
}

uint64_t dl2_jpeg_coders_bits(const struct dl2_jpeg_coders *coders,
                              const struct dl2_jpeg_counts *counts)
{
    uint64_t bits = 0;
    for (int i = 1; i <= 16; i++)
        bits += 8 * (uint64_t)(coders->dc.table.bits[i] + coders->ac.table.bits[i]);
    for (int symbol = 0; symbol < 256; symbol++)
        bits += counts->dc[symbol] * coders->dc.symbol_lengths[symbol] +
                counts->ac[symbol] * coders->ac.symbol_lengths[symbol];
    return bits;
}

/* Copies `raw` to the file, with a zero behind each byte of 255. */
static int writer_drain(struct dl2_jpeg_writer *writer, struct dl2_error *error)
{
    const uint8_t *from = writer->raw;
    size_t left = (size_t)(writer->at - writer->raw);
    struct dl2_bytes *const out = writer->out;
    writer->at = writer->raw;
    while (left) {
        const uint8_t *const found = memchr(from, 0xff, left);
        const size_t size = found ? (size_t)(found - from) + 1 : left;
        DL2_TRY(dl2_bytes_append(out, from, size, error));
        if (found)
            DL2_TRY(dl2_bytes_append(out, "", 1, error));
        from += size;
        left -= size;
    }
    return DL2_OK;
}

/* What the inner loop keeps in registers. */
struct writer_bits {
    uint64_t pending;
    unsigned count;
    uint8_t *at;
};

#define INLINE static inline __attribute__((always_inline))

/* Appends the highest `length` bits of `code`; the others are zero. */
INLINE void put_bits(struct writer_bits *bits, uint64_t code, unsigned length)
{
    bits->pending |= code >> bits->count;
    bits->count += length;
}

/* Stores whole bytes. At most 64 bits may have been put since the last time, with those that were
 * left. */
INLINE void put_bytes(struct writer_bits *bits)
{
    uint64_t bytes = bits->pending;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    memcpy(bits->at, &bytes, sizeof bytes);
    bits->at += bits->count / 8;
    bits->pending <<= bits->count & 56;
    bits->count &= 7;
}

/* A symbol and the bits of a coefficient behind it, if it has any. */
INLINE void put_symbol(struct writer_bits *bits, const struct dl2_jpeg_coder *coder,
                       unsigned symbol, int32_t value)
{
    const unsigned length = coder->symbol_lengths[symbol];
    const uint64_t more = bits_of(value, symbol & 15);
    put_bits(bits, coder->symbols[symbol] | more << (64 - length), length);
}

/* Runs of more than 15 zeros, and large coefficients. Leaves less than eight bits. */
static __attribute__((noinline)) void put_rare(struct writer_bits *bits,
                                               const struct dl2_jpeg_coder *coder, unsigned zeros,
                                               int32_t value)
{
    for (; zeros > 15; zeros -= 16) {
        put_bytes(bits);
        put_symbol(bits, coder, SIXTEEN_ZEROS, 0);
    }
    put_bytes(bits);
    put_symbol(bits, coder, zeros << 4 | size_of((uint32_t)abs(value)), value);
    put_bytes(bits);
}

/* At most 26 bits, or less than eight: an AC coefficient and the zeros before it. */
INLINE void put_coefficient(struct writer_bits *bits, const struct dl2_jpeg_coder *coder,
                            unsigned zeros, unsigned biased)
{
    if (__builtin_expect(has_code(zeros, biased), 1)) {
        const unsigned at = code_of(zeros, biased);
        put_bits(bits, coder->codes[at], coder->lengths[at]);
    } else {
        struct writer_bits rare = *bits;
        put_rare(&rare, coder, zeros, (int16_t)(biased - DL2_JPEG_BIAS));
        *bits = rare;
    }
}

/* `block` is quantized and biased; `filled`: its coefficients that aren't zero. Each symbol has at
 * most 26 bits, so bytes are stored after two. */
INLINE void put_block(struct writer_bits *bits, const struct dl2_jpeg_coders *coders,
                      const uint16_t block[64], uint64_t filled, int32_t difference)
{
    put_symbol(bits, &coders->dc, size_of((uint32_t)abs(difference)), difference);
    unsigned next = 1;
    for (filled &= ~(uint64_t)1; filled; filled &= filled - 1) {
        unsigned at = (unsigned)__builtin_ctzll(filled);
        put_coefficient(bits, &coders->ac, at - next, block[at]);
        next = at + 1;
        put_bytes(bits);
        filled &= filled - 1;
        if (!filled)
            break;
        at = (unsigned)__builtin_ctzll(filled);
        put_coefficient(bits, &coders->ac, at - next, block[at]);
        next = at + 1;
    }
    if (next < 64)
        put_bits(bits, coders->ac.symbols[END_OF_BLOCK], coders->ac.symbol_lengths[END_OF_BLOCK]);
    put_bytes(bits);
}

/* The symbols of put_rare(). */
static __attribute__((noinline)) void count_rare(struct dl2_jpeg_counts *counts, unsigned zeros,
                                                 int32_t value)
{
    counts->ac[SIXTEEN_ZEROS] += zeros / 16;
    counts->ac[zeros % 16 << 4 | size_of((uint32_t)abs(value))]++;
}

/* The symbols of put_block(). */
INLINE void count_block(struct dl2_jpeg_counts *counts, const uint16_t block[64], uint64_t filled,
                        int32_t difference)
{
    counts->dc[size_of((uint32_t)abs(difference))]++;
    unsigned next = 1;
    for (filled &= ~(uint64_t)1; filled; filled &= filled - 1) {
        const unsigned at = (unsigned)__builtin_ctzll(filled), zeros = at - next;
        if (__builtin_expect(has_code(zeros, block[at]), 1))
            counts->codes[code_of(zeros, block[at])]++;
        else
            count_rare(counts, zeros, (int16_t)(block[at] - DL2_JPEG_BIAS));
        next = at + 1;
    }
    counts->ac[END_OF_BLOCK] += next < 64;
}

/* Fills the last byte with ones and drains. */
static int writer_align(struct dl2_jpeg_writer *writer, struct dl2_error *error)
{
    if (writer->pending_bits)
        *writer->at++ = (uint8_t)(writer->pending >> 56 | 0xffu >> writer->pending_bits);
    writer->pending = 0;
    writer->pending_bits = 0;
    return writer_drain(writer, error);
}

/* Prediction starts again at the beginning and after a restart marker. */
static void writer_reset(struct dl2_jpeg_writer *writer)
{
    writer->left = writer->interval;
    memset(writer->last_dc, 0, sizeof writer->last_dc);
}

/* Goes on to the next MCU. Is there a restart marker before it? */
static inline bool writer_next(struct dl2_jpeg_writer *writer)
{
    if (!writer->interval)
        return false;
    const bool restarts = !writer->left;
    if (restarts)
        writer_reset(writer);
    writer->left--;
    return restarts;
}

static int writer_restart(struct dl2_jpeg_writer *writer, struct dl2_error *error)
{
    DL2_TRY(writer_align(writer, error));
    const uint8_t marker[] = {0xff, (uint8_t)(DL2_JPEG_RST0 + writer->restarts)};
    writer->restarts = (writer->restarts + 1) % 8;
    return dl2_bytes_append(writer->out, marker, sizeof marker, error);
}

/* An MCU's blocks of component `c`; `mcu`: its number in the row. Counts them where there are
 * `counts`, which is known where this is inlined, and codes them otherwise. Inlined, as all of
 * these are, so that *bits is registers. */
INLINE void take_component(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_forward *forward,
                           const struct dl2_jpeg_blocks *blocks, uint32_t c, uint32_t mcu,
                           struct dl2_jpeg_counts *counts, struct writer_bits *bits,
                           const struct dl2_jpeg_coders *coders)
{
    _Alignas(64) uint16_t levels[64];
    const uint32_t across = blocks->across[c];
    for (uint32_t y = 0; y < blocks->down[c]; y++)
        for (uint32_t x = 0; x < across; x++) {
            const int16_t *const block =
                blocks->blocks[c] + y * blocks->stride[c] + 64 * ((size_t)mcu * across + x);
            const uint64_t filled = forward->quantize(block, &writer->divisors[c > 0], levels);
            const int32_t dc = (int16_t)(levels[0] - DL2_JPEG_BIAS);
            if (counts)
                count_block(counts, levels, filled, dc - writer->last_dc[c]);
            else
                put_block(bits, coders, levels, filled, dc - writer->last_dc[c]);
            writer->last_dc[c] = dc;
        }
}

void dl2_jpeg_writer_count(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_forward *forward,
                           const struct dl2_jpeg_blocks *blocks, struct dl2_jpeg_counts counts[2])
{
    for (uint32_t mcu = 0; mcu < blocks->mcus; mcu++) {
        writer_next(writer);
        for (uint32_t c = 0; c < blocks->components; c++)
            take_component(writer, forward, blocks, c, mcu, &counts[c > 0], NULL, NULL);
    }
}

void dl2_jpeg_writer_rewind(struct dl2_jpeg_writer *writer)
{
    writer_reset(writer);
}

int dl2_jpeg_writer_row(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_forward *forward,
                        const struct dl2_jpeg_coders coders[2],
                        const struct dl2_jpeg_blocks *blocks, struct dl2_error *error)
{
    /* Whole MCUs, and what put_bits() writes beyond. */
    enum { MARGIN = DL2_JPEG_MCU_BLOCKS * DL2_JPEG_BLOCK_BYTES + 8 };
    for (uint32_t mcu = 0; mcu < blocks->mcus; mcu++) {
        if (writer_next(writer))
            DL2_TRY(writer_restart(writer, error));
        if (writer->raw + DL2_JPEG_RAW - writer->at < MARGIN)
            DL2_TRY(writer_drain(writer, error));
        struct writer_bits bits = {writer->pending, writer->pending_bits, writer->at};
        for (uint32_t c = 0; c < blocks->components; c++)
            take_component(writer, forward, blocks, c, mcu, NULL, &bits, &coders[c > 0]);
        writer->pending = bits.pending;
        writer->pending_bits = bits.count;
        writer->at = bits.at;
    }
    return DL2_OK;
}

int dl2_jpeg_writer_begin(struct dl2_jpeg_writer *writer, const struct jpeg_compress_struct *cinfo,
                          struct dl2_bytes *out, struct dl2_error *error)
{
    struct header_text text = {.size = 0};
    header_begin(&text, cinfo);
    writer->out = out;
    writer->components = (uint32_t)cinfo->num_components;
    for (unsigned kind = 0; kind < header_kinds(writer->components); kind++)
        dl2_jpeg_divisors_set(&writer->divisors[kind], cinfo->quant_tbl_ptrs[kind]->quantval);
    writer->interval = cinfo->restart_interval;
    writer_reset(writer);
    out->size = 0;
    return dl2_bytes_append(out, text.bytes, text.size, error);
}

int dl2_jpeg_writer_scan(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_coders coders[2],
                         struct dl2_error *error)
{
    struct header_text text = {.size = 0};
    header_scan(&text, writer->components, writer->interval, coders);
    writer->pending = 0;
    writer->pending_bits = 0;
    writer->at = writer->raw;
    writer->restarts = 0;
    writer_reset(writer);
    return dl2_bytes_append(writer->out, text.bytes, text.size, error);
}

int dl2_jpeg_writer_end(struct dl2_jpeg_writer *writer, struct dl2_error *error)
{
    static const uint8_t marker[] = {0xff, DL2_JPEG_EOI};
    DL2_TRY(writer_align(writer, error));
    return dl2_bytes_append(writer->out, marker, sizeof marker, error);
}
