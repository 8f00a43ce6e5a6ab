/* SPDX-License-Identifier: BSD-2-Clause */
/* How pixels lie in a batch: the type of a value, and the order of the axes. */
#ifndef DL2_PIXELS_PIXEL_FORMAT_H
#define DL2_PIXELS_PIXEL_FORMAT_H

#ifdef __cplusplus
extern "C" {
#endif

enum dl2_dtype {
    DL2_UINT8,   /* 0 to 255 */
    DL2_FLOAT32, /* (value / 255 - mean) / std */
    DL2_BFLOAT16 /* the same, rounded to nearest even; two bytes each */
};

enum dl2_layout { DL2_NHWC, DL2_NCHW };

#ifdef __cplusplus
}
#endif

#endif
