/* SPDX-License-Identifier: BSD-2-Clause */
/* The extension's work on hostile bytes, in the order of its SQL functions. */
#include "postgres/image_work.h"
#include "quality/metric.h"

#include <stdlib.h>

enum { MAX_PIXELS = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_image_facts facts;
    struct dl2_image_work *work;
    double value;
    const uint8_t *out;
    size_t out_size;
    if (dl2_image_work_create(&work, NULL) < 0)
        abort();
    (void)dl2_image_work_look(data, size, &facts, NULL);
    if (dl2_image_work_decode(work, DL2_IMAGE_REFERENCE, data, size, MAX_PIXELS, NULL) == DL2_OK &&
        dl2_image_work_decode(work, DL2_IMAGE_VARIANT, data, size, MAX_PIXELS, NULL) == DL2_OK) {
        /* A file has the size of itself, and can be stored without loss. */
        for (unsigned i = 0; dl2_metric_at(i); i++)
            if (dl2_image_work_score(work, dl2_metric_at(i)->name, &value, NULL) < 0)
                abort();
        if (dl2_image_work_encode(work, "ppm", 50, data, size, &out, &out_size, NULL) < 0 ||
            out_size < 8)
            abort();
        (void)dl2_image_work_encode(work, "jpeg", 50, data, size, &out, &out_size, NULL);
    }
    dl2_image_work_trim(work);
    dl2_image_work_destroy(work);
    return 0;
}
