/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PSNR and SSIM of what a network sees: both images after the loader's validation geometry, so that
 * the shorter side becomes 256/224 of the input's, by the loader's antialiased bilinear filter
 * (pixels/resize.h), and the middle is cut out. Each image is resized from its own size. The loader
 * itself may decode an image at a reduced size if that is enough for the input (pixels/crop.h);
 * here, whole images are resized.
 *
 * A scorer keeps both inputs: 6 bytes for each pixel of an input.
 */
#include "pixels/crop.h"
#include "quality/scorer.h"

int dl2_scorer_make_input(struct dl2_scorer *scorer, const struct dl2_image *image,
                          struct dl2_image *out, struct dl2_error *error)
{
    const unsigned size = scorer->input_size;
    const struct dl2_crop_config config = {.height = size,
                                           .width = size,
                                           .resize = dl2_crop_usual_resize(size),
                                           .interpolation = DL2_BILINEAR};
    struct dl2_crop crop;
    DL2_TRY(dl2_image_reshape(out, size, size, image->channels, error));
    dl2_crop_for_validation(&config, image->width, image->height, &crop);
    const struct dl2_raster raster = dl2_raster_of(image, 0, 0);
    return dl2_crop_resize(&scorer->resizer, &raster, &crop,
                           (struct dl2_resize_output){.data = out->data,
                                                      .width = size,
                                                      .height = size,
                                                      .channels = image->channels,
                                                      .dtype = DL2_UINT8,
                                                      .layout = DL2_NHWC,
                                                      .interpolation = DL2_BILINEAR},
                           error);
}

#define AS_INPUT                                                                                   \
    " of both images as a network gets them (--input-size): each resized from its own size and "   \
    "cropped to the middle, as the loader does in validation; a resized image is compared with "   \
    "the original"

const struct dl2_metric dl2_metric_input_psnr = {
    .name = "input_psnr",
    .title = "Input PSNR",
    .unit = "dB",
    .definition = "psnr_rgb" AS_INPUT,
    .digits = 3,
    .missing = "identical_inputs",
    .missing_note = "without a difference as inputs",
    .of_input = &dl2_metric_psnr_rgb,
    .of_mse = dl2_psnr_of_mse,
};

const struct dl2_metric dl2_metric_input_ssim = {
    .name = "input_ssim",
    .title = "Input SSIM",
    .unit = "",
    .definition = "ssim" AS_INPUT,
    .digits = 6,
    .one_is_best = true,
    .missing = "too_small",
    .missing_note = "with inputs too small for SSIM",
    .of_input = &dl2_metric_ssim,
};
