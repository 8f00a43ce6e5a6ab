/* SPDX-License-Identifier: BSD-2-Clause */
/* How pixels are made and lie in a batch: the filter, the type of a value, the order of the axes.
 */
#ifndef DL2_PIXELS_PIXEL_FORMAT_H
#define DL2_PIXELS_PIXEL_FORMAT_H

#ifdef __cplusplus
extern "C" {
#endif

enum dl2_dtype {
    DL2_UINT8,    /* 0 to 255 */
    DL2_FLOAT32,  /* (value / 255 - mean) / std */
    DL2_BFLOAT16, /* the same, rounded to nearest even; two bytes each */
    DL2_FLOAT16   /* the same; beyond 65504, which a small std can lead to, it is infinite */
};

enum dl2_layout { DL2_NHWC, DL2_NCHW };

/*
 * The filter of a resize, by Pillow's definitions: all but the nearest are widened by the scale
 * where the image becomes smaller (antialiased).
 */
enum dl2_interpolation {
    DL2_BILINEAR, /* a triangle */
    DL2_NEAREST,  /* one sample; pixels between are left out */
    DL2_BOX,      /* the mean of the area that becomes a pixel */
    DL2_BICUBIC,  /* Keys' cubic with a = -0.5 */
    DL2_LANCZOS   /* a sinc, windowed to three lobes */
};

#ifdef __cplusplus
}
#endif

#endif
