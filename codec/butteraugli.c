/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/butteraugli.h"

#include "common/memory.h"

#include <jxl/butteraugli.h>

#include <stdlib.h>

/* Packed R, G, B; to free. NULL: no memory. */
static uint8_t *pack_pixels(const struct dl2_image *image)
{
    const size_t width = image->width, green = image->channels == 1 ? 0 : 1;
    uint8_t *pixels = dl2_calloc(width * image->height, 3), *out = pixels;
    for (uint32_t y = 0; pixels && y < image->height; y++) {
        const uint8_t *in = image->data + y * image->stride;
        for (size_t x = 0; x < width; x++, in += image->channels, out += 3) {
            out[0] = in[0];
            out[1] = in[green];
            out[2] = in[2 * green];
        }
    }
    return pixels;
}

int dl2_butteraugli_compare(const struct dl2_image *reference, const struct dl2_image *variant,
                            struct dl2_butteraugli *out, struct dl2_error *error)
{
    const JxlPixelFormat format = {3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    const size_t size = (size_t)reference->width * reference->height * 3;
    uint8_t *one = pack_pixels(reference), *other = pack_pixels(variant);
    JxlButteraugliApi *api = JxlButteraugliApiCreate(NULL);
    JxlButteraugliResult *result = NULL;
    int status = DL2_OK;
    if (!one || !other || !api) {
        status = dl2_error_memory(error, "Butteraugli");
    } else {
        JxlButteraugliApiSetIntensityTarget(api, DL2_BUTTERAUGLI_INTENSITY);
        JxlButteraugliApiSetHFAsymmetry(api, (float)DL2_BUTTERAUGLI_HF_ASYMMETRY);
        result = JxlButteraugliCompute(api, reference->width, reference->height, &format, one, size,
                                       &format, other, size);
        if (!result)
            status = dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                   "JPEG XL's library computes no Butteraugli of %ux%u pixels",
                                   (unsigned)reference->width, (unsigned)reference->height);
    }
    if (result) {
        out->max = (double)JxlButteraugliResultGetMaxDistance(result);
        out->norm_3 = (double)JxlButteraugliResultGetDistance(result, 3);
        JxlButteraugliResultDestroy(result);
    }
    if (api)
        JxlButteraugliApiDestroy(api);
    free(one);
    free(other);
    return status;
}
