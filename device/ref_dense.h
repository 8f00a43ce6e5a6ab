/* SPDX-License-Identifier: BSD-2-Clause */
/* Methods of the reference device for labels of pixels and voxels. Private to that device. */
#ifndef DL2_DEVICE_REF_DENSE_H
#define DL2_DEVICE_REF_DENSE_H

#include "device/device.h"

#define DL2_REF_DENSE_METHODS(ROW)                                                                 \
    ROW(dice_create)                                                                               \
    ROW(dice_run)                                                                                  \
    ROW(add_bias)                                                                                  \
    ROW(sum_rows)                                                                                  \
    ROW(copy_columns)

/* dl2_ref_NAME(), with the parameters that the table gives NAME. */
#define DL2_REF_DECLARE(name) __typeof__(*((struct dl2_device_class *)0)->name) dl2_ref_##name;
DL2_REF_DENSE_METHODS(DL2_REF_DECLARE)
#undef DL2_REF_DECLARE

#endif
