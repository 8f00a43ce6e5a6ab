/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inner loop. Decoding a Huffman code means waiting: the bits say which entry of a table to
 * load, and only the entry says where the next bits are. A core can wait for four such loads as
 * well as for one, so four segments, which restart markers make independent, take turns:
 *
 *     lane 0:  refill  step  step  step | refill  step ...
 *     lane 1:  refill  step  step  step | refill  step ...      all in one loop without branches,
 *     lane 2:  refill  step  step  step | refill  step ...      but for rare slow steps and the
 *     lane 3:  refill  step  step  step | refill  step ...      ends of chunks
 *
 * A step takes an entry of one or two coefficients (codec/jpeg/jpeg_huffman.h). So that the end of
 * a block is arithmetic and no branch, a block's cell is 256 bytes at an address that 256 divides:
 *
 *     cell + 0         2k            126 128         136
 *          | c0 | c1 | .. | ck | .. | c63 | AC table | next block's DC table | unused |
 *                           ^
 *                           at: where the next coefficient goes
 *
 * The low byte of `at` is the place in the block. An entry moves `at` on; the end of a block moves
 * it by 128 more, so that bit 7 says "this block is done": then `at` becomes the next cell's start
 * and the DC table the lane's table, otherwise the lane goes on with the AC table. Behind a chunk's
 * last block both tables are `idle`, whose entries take no bits and move nowhere: a lane that is
 * done waits there for the others.
 *
 * An entry whose last coefficient would be c63 or lie beyond takes the slow step: one symbol,
 * checked. So no store leaves the block, whatever the bits are.
 *
 * Bits: the next ones are at the top of `bits`; below the last valid one is a 1 and then zeros, so
 * that counting the zeros says how many were used since the refill. A refill leaves 56 or more:
 * enough for three entries (DL2_JPEG_LONGEST each) or one symbol (31). It reads 8 bytes at `next`.
 * A chunk takes at most CHUNK_BYTES, and each begins within its segment (or is refused), so
 * `next` stays within DL2_JPEG_SLACK behind the last segment.
 */
#include "codec/jpeg/jpeg_entropy.h"

#include <assert.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES = 4,
    STEPS = 3,        /* from refill to refill */
    REFILLED = 56,    /* bits after a refill, at least */
    SYMBOL_BITS = 31, /* of a code and a value, at most */
    CHUNK_BLOCKS = 32,
    CHUNK_BYTES = CHUNK_BLOCKS * DL2_JPEG_COEFFICIENTS * SYMBOL_BITS / 8 + 1,
    LAST = 2 * (DL2_JPEG_COEFFICIENTS - 1), /* place of the last coefficient */
};

static_assert(STEPS * DL2_JPEG_LONGEST <= REFILLED && SYMBOL_BITS <= REFILLED, "bits of a refill");
static_assert(CHUNK_BYTES + 2 * sizeof(uint64_t) <= DL2_JPEG_SLACK, "reads behind a segment");
static_assert(CHUNK_BLOCKS >= (int)DL2_JPEG_MCU_BLOCKS, "a chunk has an MCU");

struct cell {
    int16_t coefficients[DL2_JPEG_COEFFICIENTS];
    const struct dl2_jpeg_table *tables[2]; /* its AC table, the next block's DC table */
    uint8_t unused[128 - 2 * sizeof(void *)];
};

enum { CELL_BYTES = sizeof(struct cell), BLOCK_MASK = CELL_BYTES - 1 };

static_assert(CELL_BYTES == 256 && CELL_BYTES == DL2_JPEG_CELL * sizeof(int16_t), "a cell");

struct lane {
    uint64_t bits;
    const uint8_t *next; /* where `bits` was read from */
    const struct dl2_jpeg_table *table;
    uintptr_t at;
};

struct stream {
    struct lane lane;
    uintptr_t end; /* `at` when the chunk is decoded; 0: no chunk is under way */
    uint8_t *cells;
    uint32_t blocks;           /* of the chunk */
    uint32_t mcu, count, left; /* the chunk's first and number; of the segment after the chunk */
    const struct dl2_jpeg_segment *segment;
    uint16_t before[DL2_JPEG_COMPONENTS];
    bool failed;
};

struct dl2_jpeg_entropy {
    const struct dl2_jpeg_frame *frame;
    const struct dl2_jpeg_huffman *tables[DL2_JPEG_COMPONENTS];
    const struct dl2_jpeg_segment *segment, *segments_end; /* the next one to be taken */
    struct stream streams[LANES];
    unsigned lanes;       /* 1 or LANES */
    uint32_t chunk;       /* MCUs of a chunk, at most */
    struct stream *shown; /* its chunk is the caller's */
    /* For each stream the cells of a chunk and one to wait in; and one for idle streams. */
    uint8_t memory[(LANES * (CHUNK_BLOCKS + 1) + 1) * CELL_BYTES + BLOCK_MASK];
};

static const struct dl2_jpeg_table idle;

/* ---- The inner loop */

/* Big-endian. */
INLINE uint64_t read_u64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

INLINE unsigned lane_used(const struct lane *lane)
{
    return (unsigned)__builtin_ctzll(lane->bits);
}

INLINE void lane_refill(struct lane *lane)
{
    const unsigned used = lane_used(lane);
    lane->next += used >> 3;
    lane->bits = (read_u64(lane->next) | 1) << (used & 7);
}

INLINE struct cell *lane_cell(const struct lane *lane)
{
    return (struct cell *)(lane->at & ~(uintptr_t)BLOCK_MASK);
}

/* One symbol, of any length, checked. Where it is bad, the lane fails and waits. */
static __attribute__((noinline)) struct lane lane_slow(struct lane lane, struct stream *stream)
{
    struct cell *const cell = lane_cell(&lane);
    const unsigned place = (unsigned)(lane.at & BLOCK_MASK) / 2;
    unsigned symbol;
    lane_refill(&lane);
    const unsigned length = dl2_jpeg_find_symbol(lane.table, lane.bits, &symbol);
    const unsigned size = symbol & 15, run = place ? symbol >> 4 : 0;
    const bool end = place && !size && run < 15;
    if (!length || (!end && place + run >= DL2_JPEG_COEFFICIENTS)) {
        stream->failed = true;
        lane.table = &idle;
        lane.at = stream->end;
        return lane;
    }
    lane.bits <<= length;
    if (!end) /* also a zero: a lane that waited here has left something in the DC's place */
        cell->coefficients[place + run] =
            (int16_t)(size ? dl2_jpeg_extend((uint32_t)(lane.bits >> (64 - size)), size) : 0);
    lane.bits <<= size;
    lane_refill(&lane);
    const bool done = end || place + run + 1 == DL2_JPEG_COEFFICIENTS;
    lane.table = cell->tables[done];
    lane.at = done ? (uintptr_t)(cell + 1) : (uintptr_t)&cell->coefficients[place + run + 1];
    return lane;
}

/*
 * None of four lanes waits for the arithmetic at a block's end, and a branch would be predicted
 * wrongly once a block. A lane that is `alone` waits for it at each step, and does better to guess.
 */
INLINE void lane_step(struct lane *lane, struct stream *stream, const unsigned window,
                      const bool alone)
{
    const struct dl2_jpeg_entry *const entry = &lane->table->entries[lane->bits >> (64 - window)];
    const uintptr_t second = lane->at + entry->second;
    if (__builtin_expect((second & BLOCK_MASK) >= LAST, 0)) {
        *lane = lane_slow(*lane, stream);
        return;
    }
    const struct cell *const cell = lane_cell(lane);
    const uint32_t value = (uint32_t)(lane->bits >> entry->shift) + (uint32_t)entry->base;
    *(int16_t *)second = entry->second_value;
    *(int16_t *)(lane->at + entry->first) = (int16_t)value;
    lane->bits <<= entry->length;
    const uintptr_t at = lane->at + entry->advance;
    const uintptr_t done = at / DL2_JPEG_BLOCK_END & 1;
    if (alone) {
        lane->table = done ? cell->tables[1] : cell->tables[0];
        lane->at = done ? (at | BLOCK_MASK) + 1 : at;
        return;
    }
    lane->table = cell->tables[done];
    lane->at = (at | (-done & BLOCK_MASK)) + done;
}

/* Until one of the lanes is at its end. */
INLINE void run_four(struct stream *streams, const unsigned window)
{
    struct lane a = streams[0].lane, b = streams[1].lane, c = streams[2].lane, d = streams[3].lane;
    do {
        lane_refill(&a);
        lane_refill(&b);
        lane_refill(&c);
        lane_refill(&d);
        for (int i = 0; i < STEPS; i++) {
            lane_step(&a, &streams[0], window, false);
            lane_step(&b, &streams[1], window, false);
            lane_step(&c, &streams[2], window, false);
            lane_step(&d, &streams[3], window, false);
        }
    } while ((a.at != streams[0].end) & (b.at != streams[1].end) & (c.at != streams[2].end) &
             (d.at != streams[3].end));
    streams[0].lane = a;
    streams[1].lane = b;
    streams[2].lane = c;
    streams[3].lane = d;
}

INLINE void run_one(struct stream *stream, const unsigned window)
{
    struct lane lane = stream->lane;
    do {
        lane_refill(&lane);
        for (int i = 0; i < STEPS; i++)
            lane_step(&lane, stream, window, true);
    } while (lane.at != stream->end);
    stream->lane = lane;
}

/* Each window has loops of its own, in which it is a constant. */
static void entropy_run(struct dl2_jpeg_entropy *entropy)
{
    const bool narrow = entropy->tables[0]->window == DL2_JPEG_NARROW;
    if (entropy->lanes == 1 && narrow)
        run_one(entropy->streams, DL2_JPEG_NARROW);
    else if (entropy->lanes == 1)
        run_one(entropy->streams, DL2_JPEG_WINDOW);
    else if (narrow)
        run_four(entropy->streams, DL2_JPEG_NARROW);
    else
        run_four(entropy->streams, DL2_JPEG_WINDOW);
}

/* ---- Around it */

/* Writes the tables of a stream's cells `from` to `to` - 1; from `blocks` on they are idle. */
static void stream_set_tables(const struct dl2_jpeg_entropy *entropy, struct stream *stream,
                              uint32_t from, uint32_t to, uint32_t blocks)
{
    const struct dl2_jpeg_frame *const frame = entropy->frame;
    struct cell *const cells = (struct cell *)(void *)stream->cells;
    for (uint32_t i = from; i < to; i++) {
        const uint8_t *const owner = frame->owner;
        cells[i].tables[0] = i < blocks ? &entropy->tables[owner[i % frame->blocks]]->ac : &idle;
        cells[i].tables[1] =
            i + 1 < blocks ? &entropy->tables[owner[(i + 1) % frame->blocks]]->dc : &idle;
    }
}

static uint64_t stream_used(const struct stream *stream)
{
    return (uint64_t)(stream->lane.next - stream->segment->data) * 8 + lane_used(&stream->lane);
}

/* False where the segment's bits are used up. */
static bool stream_begin_chunk(const struct dl2_jpeg_entropy *entropy, struct stream *stream)
{
    stream->count = stream->left < entropy->chunk ? stream->left : entropy->chunk;
    stream->left -= stream->count;
    const uint32_t blocks = stream->count * entropy->frame->blocks;
    if (blocks != stream->blocks) { /* move the end */
        const uint32_t low = blocks < stream->blocks ? blocks : stream->blocks;
        const uint32_t high = blocks < stream->blocks ? stream->blocks : blocks;
        stream_set_tables(entropy, stream, low - 1, high + 1, blocks);
        stream->blocks = blocks;
    }
    stream->lane.table = &entropy->tables[entropy->frame->owner[0]]->dc;
    stream->lane.at = (uintptr_t)stream->cells;
    stream->end = stream->lane.at + (uintptr_t)blocks * CELL_BYTES;
    return stream_used(stream) <= (uint64_t)stream->segment->size * 8;
}

static bool stream_begin_segment(struct dl2_jpeg_entropy *entropy, struct stream *stream)
{
    const struct dl2_jpeg_segment *const segment = entropy->segment++;
    stream->segment = segment;
    stream->mcu = segment->mcu;
    stream->left = segment->count;
    stream->lane.next = segment->data;
    stream->lane.bits = read_u64(segment->data) | 1;
    memset(stream->before, 0, sizeof stream->before);
    return stream_begin_chunk(entropy, stream);
}

/* Was all that the chunk is made of there, and nothing else where the segment ends? */
static bool stream_check_chunk(const struct stream *stream)
{
    const uint64_t used = stream_used(stream);
    const uint64_t bits = (uint64_t)stream->segment->size * 8;
    if (stream->failed || used > bits)
        return false;
    return stream->left || !stream->segment->ends || (stream->segment->marked && bits - used < 8);
}

size_t dl2_jpeg_entropy_memory(void)
{
    return sizeof(struct dl2_jpeg_entropy);
}

void dl2_jpeg_entropy_start(struct dl2_jpeg_entropy *entropy, const struct dl2_jpeg_frame *frame,
                            const struct dl2_jpeg_huffman *const tables[DL2_JPEG_COMPONENTS],
                            const struct dl2_jpeg_segments *segments)
{
    uint8_t *cells = entropy->memory + (-(uintptr_t)entropy->memory & BLOCK_MASK);
    entropy->frame = frame;
    for (uint32_t i = 0; i < frame->components; i++)
        entropy->tables[i] = tables[i];
    entropy->segment = (const struct dl2_jpeg_segment *)(const void *)segments->list.data;
    entropy->segments_end = entropy->segment + segments->count;
    entropy->lanes = segments->count > 1 ? LANES : 1;
    entropy->chunk = CHUNK_BLOCKS / frame->blocks;
    entropy->shown = NULL;
    memset(cells, 0, (LANES * (CHUNK_BLOCKS + 1) + 1) * CELL_BYTES);
    struct cell *const nowhere =
        (struct cell *)(void *)(cells + LANES * (CHUNK_BLOCKS + 1) * CELL_BYTES);
    nowhere->tables[0] = nowhere->tables[1] = &idle;
    for (unsigned i = 0; i < LANES; i++, cells += (CHUNK_BLOCKS + 1) * CELL_BYTES) {
        struct stream *const stream = &entropy->streams[i];
        *stream = (struct stream){
            .lane = {.bits = 1,
                     .next = segments->data.data,
                     .table = &idle,
                     .at = (uintptr_t)nowhere},
            .cells = cells,
            .blocks = CHUNK_BLOCKS,
        };
        stream_set_tables(entropy, stream, 0, CHUNK_BLOCKS + 1, CHUNK_BLOCKS);
    }
}

int dl2_jpeg_entropy_next(struct dl2_jpeg_entropy *entropy, struct dl2_jpeg_chunk *chunk)
{
    struct stream *const shown = entropy->shown;
    entropy->shown = NULL;
    if (shown) {
        shown->mcu += shown->count;
        shown->end = 0;
        if (shown->left && !stream_begin_chunk(entropy, shown))
            return -1;
    }
    for (;;) {
        unsigned busy = 0;
        for (unsigned i = 0; i < entropy->lanes; i++) {
            struct stream *const stream = &entropy->streams[i];
            if (!stream->end && entropy->segment < entropy->segments_end &&
                !stream_begin_segment(entropy, stream))
                return -1;
            if (!stream->end)
                continue;
            busy++;
            if (stream->lane.at != stream->end)
                continue;
            if (!stream_check_chunk(stream))
                return -1;
            entropy->shown = stream;
            *chunk = (struct dl2_jpeg_chunk){.mcu = stream->mcu,
                                             .count = stream->count,
                                             .blocks = (int16_t *)(void *)stream->cells,
                                             .before = stream->before};
            return 1;
        }
        if (!busy)
            return 0;
        entropy_run(entropy);
    }
}
