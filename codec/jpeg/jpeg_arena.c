/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_arena.h"

#include "common/memory.h"

#include <stdlib.h>

#include <jerror.h>

enum {
    FIRST_BLOCK = 256 << 10, /* what a baseline image of some hundred pixels a side takes */
    /* libjpeg-turbo's SIMD code writes whole vectors: a row is padded to two of the widest. */
    ROW = 2 * DL2_ALIGNMENT,
};

struct dl2_jpeg_block {
    struct dl2_jpeg_block *older;
    size_t size;
    _Alignas(DL2_ALIGNMENT) uint8_t data[];
};

static struct dl2_jpeg_arena *arena_from(j_common_ptr cinfo)
{
    return (struct dl2_jpeg_arena *)cinfo;
}

static _Noreturn void arena_out_of_memory(j_common_ptr cinfo)
{
    cinfo->err->msg_code = JERR_OUT_OF_MEMORY;
    cinfo->err->msg_parm.i[0] = 0;
    cinfo->err->error_exit(cinfo);
    abort(); /* error_exit never returns */
}

static bool arena_add_block(struct dl2_jpeg_arena *arena, size_t size)
{
    struct dl2_jpeg_block *block = NULL;
    size_t bytes;
    if (dl2_size_add(size, sizeof *block, &bytes))
        block = dl2_alloc_aligned(bytes, 1);
    if (!block)
        return false;
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->next = block->data;
    arena->left = size;
    arena->total += size;
    return true;
}

static void *arena_acquire(j_common_ptr cinfo, size_t size)
{
    struct dl2_jpeg_arena *arena = arena_from(cinfo);
    if (!dl2_size_add(size, DL2_ALIGNMENT - 1, &size))
        arena_out_of_memory(cinfo);
    size = size / DL2_ALIGNMENT * DL2_ALIGNMENT;
    if (size > arena->left &&
        !arena_add_block(arena, size > FIRST_BLOCK / 2 ? size + FIRST_BLOCK : FIRST_BLOCK))
        arena_out_of_memory(cinfo);
    void *found = arena->next;
    arena->next += size;
    arena->left -= size;
    return found;
}

static void *arena_alloc(j_common_ptr cinfo, int pool, size_t size)
{
    (void)pool;
    return arena_acquire(cinfo, size);
}

/* `rows` pointers and what they point to. */
static void *arena_take_rows(j_common_ptr cinfo, size_t row_bytes, size_t rows)
{
    size_t bytes;
    if (!dl2_size_add(row_bytes, ROW - 1, &row_bytes) ||
        !dl2_size_mul(row_bytes / ROW * ROW, rows, &bytes))
        arena_out_of_memory(cinfo);
    row_bytes = row_bytes / ROW * ROW;
    uint8_t **pointers = arena_acquire(cinfo, rows * sizeof *pointers);
    uint8_t *data = arena_acquire(cinfo, bytes);
    for (size_t i = 0; i < rows; i++)
        pointers[i] = data + i * row_bytes;
    return pointers;
}

static JSAMPARRAY arena_alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION samples,
                                     JDIMENSION rows)
{
    (void)pool;
    return arena_take_rows(cinfo, (size_t)samples * sizeof(JSAMPLE), rows);
}

static JBLOCKARRAY arena_alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION blocks,
                                      JDIMENSION rows)
{
    (void)pool;
    return arena_take_rows(cinfo, (size_t)blocks * sizeof(JBLOCK), rows);
}

/* Only virtual arrays are in libjpeg's own pools; the arena's memory goes at once, by reset(). */
static void arena_free_pool(j_common_ptr cinfo, int pool)
{
    arena_from(cinfo)->free_pool(cinfo, pool);
}

static void arena_free_blocks(struct dl2_jpeg_arena *arena)
{
    while (arena->blocks) {
        struct dl2_jpeg_block *block = arena->blocks;
        arena->blocks = block->older;
        free(block);
    }
    arena->next = NULL;
    arena->left = arena->total = 0;
}

void dl2_jpeg_arena_create(struct dl2_jpeg_arena *arena)
{
    j_decompress_ptr cinfo = &arena->cinfo;
    jpeg_create_decompress(cinfo);
    /* The source's struct, which libjpeg makes once and keeps. */
    static const unsigned char nothing[1];
    jpeg_mem_src(cinfo, nothing, sizeof nothing);
    arena->free_pool = cinfo->mem->free_pool;
    cinfo->mem->alloc_small = arena_alloc;
    cinfo->mem->alloc_large = arena_alloc;
    cinfo->mem->alloc_sarray = arena_alloc_sarray;
    cinfo->mem->alloc_barray = arena_alloc_barray;
    cinfo->mem->free_pool = arena_free_pool;
}

void dl2_jpeg_arena_reset(struct dl2_jpeg_arena *arena)
{
    j_decompress_ptr cinfo = &arena->cinfo;
    jpeg_abort_decompress(cinfo);
    /* Tables outlive jpeg_abort(): the next file must not be decoded with this one's. */
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        cinfo->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++)
        cinfo->dc_huff_tbl_ptrs[i] = cinfo->ac_huff_tbl_ptrs[i] = NULL;

    if (arena->blocks && arena->blocks->older) { /* one block that would have held it all */
        const size_t total = arena->total;
        arena_free_blocks(arena);
        arena_add_block(arena, total); /* where that fails, arena_acquire() tries again */
    } else if (arena->blocks) {
        arena->next = arena->blocks->data;
        arena->left = arena->blocks->size;
    }
}

void dl2_jpeg_arena_destroy(struct dl2_jpeg_arena *arena)
{
    jpeg_destroy_decompress(&arena->cinfo);
    arena_free_blocks(arena);
}
