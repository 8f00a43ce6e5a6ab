/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_retile.h"

#include "codec/jpeg/jpeg_coding.h"
#include "codec/jpeg/jpeg_header.h"
#include "codec/jpeg/jpeg_metadata.h"
#include "codec/jpeg/jpeg_tiles.h"
#include "codec/jpeg/jpeg_trap.h"

#include <string.h>

static bool same_table(const JHUFF_TBL *a, const JHUFF_TBL *b)
{
    return !a || !b ||
           (memcmp(a->bits, b->bits, sizeof a->bits) == 0 &&
            memcmp(a->huffval, b->huffval, sizeof a->huffval) == 0);
}

/* Are the file's Huffman tables those that libjpeg writes unless told otherwise? */
static bool has_standard_tables(const struct jpeg_decompress_struct *source,
                                const struct jpeg_compress_struct *target)
{
    for (int i = 0; i < 2; i++)
        if (!same_table(source->dc_huff_tbl_ptrs[i], target->dc_huff_tbl_ptrs[i]) ||
            !same_table(source->ac_huff_tbl_ptrs[i], target->ac_huff_tbl_ptrs[i]))
            return false;
    return true;
}

/* All of the file's metadata, but for what libjpeg writes by itself. */
static void copy_markers(const struct jpeg_decompress_struct *source, j_compress_ptr target)
{
    for (const struct jpeg_marker_struct *m = source->marker_list; m; m = m->next) {
        if (target->write_JFIF_header && m->marker == JPEG_APP0 && m->data_length >= 5 &&
            memcmp(m->data, "JFIF", 5) == 0)
            continue;
        if (target->write_Adobe_marker && m->marker == JPEG_APP0 + 14 && m->data_length >= 5 &&
            memcmp(m->data, "Adobe", 5) == 0)
            continue;
        jpeg_write_marker(target, m->marker, m->data, m->data_length);
    }
}

/* Do only zeros follow the image's end, if anything does? Else its metadata say where it lies. */
static bool ends_with_image(const struct jpeg_decompress_struct *source)
{
    const uint8_t *rest = source->src->next_input_byte;
    for (size_t left = source->src->bytes_in_buffer; left; left--)
        if (*rest++)
            return false;
    return true;
}

int dl2_jpeg_retile(const uint8_t *data, size_t size, int quality, struct dl2_bytes *out,
                    struct dl2_error *error)
{
    struct dl2_jpeg_header header;
    struct dl2_coding coding;
    if (size > UINT32_MAX || !dl2_jpeg_header_read(&header, data, size) || header.interval ||
        dl2_jpeg_has_more(data, size))
        return 0;
    if (dl2_jpeg_coding(data, size, &coding) && coding.quality)
        quality = coding.quality;
    const unsigned interval =
        dl2_jpeg_tile_interval(header.width, header.mcu_width, header.mcu_height, quality);
    if (!interval)
        return 0;

    struct jpeg_decompress_struct source = {0};
    struct jpeg_compress_struct target = {0};
    struct dl2_jpeg_trap trap;
    struct dl2_jpeg_sink sink;
    struct dl2_error own = DL2_ERROR_INIT; /* of damage, which is no error here */
    dl2_jpeg_set_trap(&trap, (j_common_ptr)&source, &own);
    dl2_jpeg_set_trap(&trap, (j_common_ptr)&target, &own);
    if (setjmp(trap.jump)) {
        jpeg_destroy_compress(&target);
        jpeg_destroy_decompress(&source);
        return trap.status == DL2_ERR_MEMORY ? dl2_error_set(error, trap.status, "%s", own.message)
                                             : 0;
    }
    jpeg_create_decompress(&source);
    jpeg_create_compress(&target);
    jpeg_mem_src(&source, data, (unsigned long)size);
    jpeg_save_markers(&source, JPEG_COM, 0xffff);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(&source, JPEG_APP0 + i, 0xffff);
    jpeg_read_header(&source, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&source);
    jpeg_copy_critical_parameters(&source, &target);
    target.optimize_coding = !has_standard_tables(&source, &target);
    target.restart_interval = interval;
    out->size = 0;
    dl2_jpeg_sink_set(&sink, &target, out);
    jpeg_write_coefficients(&target, coefficients);
    copy_markers(&source, &target);
    jpeg_finish_compress(&target);
    jpeg_destroy_compress(&target);
    jpeg_finish_decompress(&source);
    const bool whole = !trap.end_missing && ends_with_image(&source);
    jpeg_destroy_decompress(&source);
    return whole;
}
