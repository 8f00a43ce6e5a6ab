/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/slices.h"

void dl2_slicing_free(struct dl2_slicing *slicing)
{
    dl2_bytes_free(&slicing->head);
    dl2_bytes_free(&slicing->offsets);
}
