/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/loader/photos.h"

#include "codec/codec.h"
#include "common/random.h"

static void photo_name(unsigned number, char *name)
{
    sprintf(name, "class%u/%03u.jpg", number % 3, number);
}

void make_photo(unsigned number, struct dl2_bytes *file)
{
    struct dl2_random random;
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    dl2_random_init(&random, number, DL2_RANDOM_TEST, 1, 0);
    /* Those that can be cut are as wide as pays. */
    const unsigned width = number == 4  ? 33
                           : number % 2 ? 256 + dl2_random_below(&random, 80)
                                        : 20 + dl2_random_below(&random, 300);
    const unsigned height = 20 + dl2_random_below(&random, 200);
    const unsigned channels = number % 7 == 3 ? 1 : 3;
    assert_int_equal(dl2_image_reshape(&image, width, height, channels, NULL), DL2_OK);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width * channels; x++)
            image.data[y * image.stride + x] =
                (uint8_t)(x * number / 9 + y * 2 + dl2_random_below(&random, 40));
    options.quality = 90;
    options.subsampling = number % 4 == 1 ? "444" : number % 4 == 2 ? "422" : "420";
    options.restart = number % 2 ? "tiles" : "none";
    assert_int_equal(dl2_image_encode(dl2_codec_find(number % 9 == 8 ? "png" : "jpeg"), &image,
                                      &options, file, NULL),
                     DL2_OK);
    dl2_image_free(&image);
}

void make_large_photo(struct dl2_bytes *file)
{
    struct dl2_random random;
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    dl2_random_init(&random, 1000, DL2_RANDOM_TEST, 1, 0);
    assert_int_equal(dl2_image_reshape(&image, 150, 4500, 3, NULL), DL2_OK);
    for (unsigned y = 0; y < image.height; y++)
        for (unsigned x = 0; x < image.width * 3; x++)
            image.data[y * image.stride + x] = (uint8_t)dl2_random_below(&random, 256);
    options.quality = 95;
    assert_int_equal(dl2_image_encode(dl2_codec_find("jpeg"), &image, &options, file, NULL),
                     DL2_OK);
    dl2_image_free(&image);
}

int make_photos(void **state)
{
    if (make_root(state) != 0)
        return -1;
    struct dl2_bytes file = DL2_BYTES_INIT;
    for (unsigned i = 0; i < PHOTOS; i++) {
        char name[32];
        photo_name(i, name);
        make_photo(i, &file);
        put(name, file.data, file.size);
    }
    dl2_bytes_free(&file);
    reopen();
    return 0;
}

void spoil_photo(unsigned number, bool within)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    char name[32];
    photo_name(number, name);
    make_photo(number, &file);
    if (within)
        for (size_t i = file.size / 2; i < file.size - 2; i++)
            file.data[i] = 0xff;
    put(name, file.data, within ? file.size : file.size / 2);
    dl2_bytes_free(&file);
}

void repair_photo(unsigned number)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    char name[32];
    photo_name(number, name);
    make_photo(number, &file);
    put(name, file.data, file.size);
    dl2_bytes_free(&file);
}
