/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as an augmentation: an error, or one whose own text is read as the same again, and which
 * runs on an image, in color or gray. */
#include "pixels/augment.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct dl2_augmentation *augmentation, uint32_t channels, bool mask)
{
    struct dl2_pixels pixels = {0};
    struct dl2_random random;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_pixels_init(&pixels, 11, 7, channels, &error) == DL2_OK) {
        pixels.is_mask = mask;
        for (uint32_t i = 0; i < 11 * 7 * channels; i++)
            pixels.data[i] = (uint8_t)(i * 37);
        dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 2, 3);
        if (dl2_augmentation_run(augmentation, &random, &pixels, &error) < 0)
            abort(); /* only a plug-in's operation can fail */
    }
    dl2_pixels_free(&pixels);
}

/* Those on volumes may stand among some on images. */
static void run_volume(const struct dl2_augmentation *augmentation)
{
    static const size_t size[3] = {3, 5, 4};
    struct dl2_voxels voxels;
    struct dl2_random random;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_augmentation_check(augmentation, true, &error) < 0)
        return;
    if (dl2_voxels_init(&voxels, 2, size, true, &error) == DL2_OK) {
        for (int i = 0; i < 120; i++) {
            voxels.data[i] = (float)(i * 37 % 11);
            voxels.labels[i % 60] = (uint8_t)(i % 3);
        }
        dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 2, 3);
        for (size_t i = 0; i < dl2_augmentation_count(augmentation); i++)
            dl2_augmentation_run_volume(augmentation, i, &random, &voxels);
    }
    dl2_voxels_free(&voxels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_augmentation *augmentation, *again;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    /* A file that is named is code to run. */
    if (dl2_augmentation_names_file(text)) {
        free(text);
        return 0;
    }
    if (dl2_augmentation_parse(text, &augmentation, &error) < 0) {
        if (!error.message[0] || augmentation)
            abort();
        free(text);
        return 0;
    }
    free(text);
    if (dl2_augmentation_parse(dl2_augmentation_text(augmentation), &again, &error) < 0 ||
        strcmp(dl2_augmentation_text(augmentation), dl2_augmentation_text(again)) != 0)
        abort();
    if (dl2_augmentation_check(augmentation, false, &error) < 0) {
        run_volume(augmentation);
        dl2_augmentation_free(augmentation);
        dl2_augmentation_free(again);
        return 0;
    }
    run(augmentation, 3, false);
    run(augmentation, 1, false);
    run(again, 1, true);
    dl2_augmentation_free(augmentation);
    dl2_augmentation_free(again);
    return 0;
}
