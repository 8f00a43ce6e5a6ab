/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our own JPEG decoder against libjpeg-turbo. The first eight bytes choose the rectangle, what is
 * wanted of it and the SIMD variant; the rest is the file. Where libjpeg decodes the file, so do
 * we, and to the same samples. A whole image that our own decoder takes, libjpeg decodes; a part
 * may end before the damage that libjpeg, which reads whole rows, finds.
 */
#include "common/simd.h"
#include "tests/codec/jpeg_compare.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICE = 8 };
#define MAX_PIXELS (1u << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer calls the one and has the other; the driver that replays has neither. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

/* Where the coded data begins: behind the first scan's header, or 0. */
static size_t scan_start(const uint8_t *data, size_t size)
{
    size_t at = CHOICE + 2;
    while (at + 4 <= size && data[at] == 0xff) {
        const size_t next = at + 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
        if (data[at + 1] == 0xda)
            return next < size ? next : 0;
        at = next;
    }
    return 0;
}

/*
 * Most damage to a header ends an input there, so three of four inputs keep theirs, and one of
 * these its coded data as well: only the choice differs.
 */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (!LLVMFuzzerMutate)
        return size;
    const size_t start = seed % 4 ? scan_start(data, size) : 0;
    if (start && seed % 4 == 1) {
        LLVMFuzzerMutate(data, CHOICE, CHOICE);
        return size;
    }
    return start + LLVMFuzzerMutate(data + start, size - start, max_size - start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned levels[] = {0, DL2_SIMD_AVX2 | DL2_SIMD_NEON,
                                      DL2_SIMD_AVX2 | DL2_SIMD_AVX512 | DL2_SIMD_NEON,
                                      DL2_SIMD_AVX2 | DL2_SIMD_NEON};
    if (size < CHOICE + 3 || memcmp(data + CHOICE, "\xff\xd8\xff", 3) != 0)
        return 0;
    struct jpeg_compare *compare = calloc(1, sizeof *compare);
    struct dl2_image_info info;
    if (!compare)
        abort();
    if (jpeg_compare_open(compare, data + CHOICE, size - CHOICE, &info) &&
        (uint64_t)info.width * info.height <= MAX_PIXELS) {
        const bool whole = data[7] & 4;
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        struct jpeg_verdict verdict;
        request.x = whole ? 0 : (data[0] | (uint32_t)data[1] << 8) % info.width;
        request.y = whole ? 0 : (data[2] | (uint32_t)data[3] << 8) % info.height;
        request.width = whole ? info.width : 1 + data[4] * (info.width - request.x - 1) / 255;
        request.height = whole ? info.height : 1 + data[5] * (info.height - request.y - 1) / 255;
        request.reduction = 1u << data[6] % 4;
        request.planes = data[7] & 1;
        request.channels = data[7] & 2 ? 1 : 0;
        jpeg_compare_read(compare, &request, levels[data[7] >> 3 & 3] & dl2_simd_flags(), &verdict);
        if (verdict.libjpeg == DL2_OK && verdict.own < 0)
            abort();
        if (!verdict.same || (whole && verdict.taken && verdict.libjpeg < 0))
            abort();
    }
    jpeg_compare_free(compare);
    free(compare);
    return 0;
}
