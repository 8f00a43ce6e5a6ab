/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of .npy files: the voxels, and how many bytes are read for them. */
#include "tests/dataset/scratch.h"
#include "volumes/volume.h"
#include "volumes/volume_slices.h"

#include <inttypes.h>

enum { CHANNELS = 2, DEPTH = 20, HEIGHT = 50, WIDTH = 64 };

static float value_at(size_t c, size_t z, size_t y, size_t x)
{
    return (float)(((c * DEPTH + z) * HEIGHT + y) * WIDTH + x);
}

/* A header of 128 bytes, then the voxels. */
static const char *write_npy(const char *name, const char *type, const char *shape,
                             const void *data, size_t size)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\1\0\166", 10);
    const int length =
        snprintf(header + 10, sizeof header - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    header[10 + length] = ' ';
    header[127] = '\n';
    assert_int_equal(dl2_bytes_append(&file, header, sizeof header, NULL), DL2_OK);
    assert_int_equal(dl2_bytes_append(&file, data, size, NULL), DL2_OK);
    put_bytes(name, file.data, file.size);
    dl2_bytes_free(&file);
    return at(name);
}

static const char *write_ramp(void)
{
    static float data[CHANNELS * DEPTH * HEIGHT * WIDTH];
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        data[i] = (float)i;
    return write_npy("ramp.npy", "<f4", "2, 20, 50, 64", data, sizeof data);
}

/* Reads a part into the middle of a larger array. */
static void check_part(const char *path, const size_t first[3], const size_t size[3])
{
    struct dl2_volume *volume;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_volume_part part;
    uint64_t header, bytes, reads, before;
    assert_int_equal(dl2_volume_open(path, NULL, &volume, &error), DL2_OK);
    dl2_volume_counts(volume, &header, &before);
    size_t count = CHANNELS;
    for (int i = 0; i < 3; i++) {
        part.first[i] = first[i];
        part.size[i] = size[i];
        part.at[i] = (size_t)i;
        part.out[i] = size[i] + 3;
        count *= part.out[i];
    }
    float *out = dl2_calloc(count, sizeof *out);
    assert_non_null(out);
    assert_int_equal(dl2_volume_read(volume, &part, out, &error), DL2_OK);
    dl2_volume_counts(volume, &bytes, &reads);
    size_t needed = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t x = i % part.out[2], y = i / part.out[2] % part.out[1];
        const size_t z = i / part.out[2] / part.out[1] % part.out[0];
        const size_t c = i / part.out[2] / part.out[1] / part.out[0];
        const bool inside = z < size[0] && y >= 1 && y - 1 < size[1] && x >= 2 && x - 2 < size[2];
        needed += inside;
        assert_true(out[i] ==
                    (inside ? value_at(c, first[0] + z, first[1] + y - 1, first[2] + x - 2) : 0));
    }
    assert_int_equal(needed, CHANNELS * size[0] * size[1] * size[2]);
    assert_int_equal(header, 128);
    assert_in_range(bytes - header, needed * sizeof(float), needed * sizeof(float) * 6 / 5);
    free(out);
    dl2_volume_close(volume);
}

/* A part takes at most 1.2 times its bytes, whichever it is. */
static void test_bytes(void **state)
{
    (void)state;
    const char *path = write_ramp();
    static const size_t parts[][2][3] = {
        {{0, 0, 0}, {DEPTH, HEIGHT, WIDTH}},
        {{3, 4, 5}, {7, 8, 9}},
        {{0, 0, 0}, {1, 1, 1}},
        {{19, 49, 63}, {1, 1, 1}},
        {{2, 0, 0}, {5, HEIGHT, WIDTH}},
        {{2, 7, 0}, {5, 30, WIDTH}},
        {{2, 7, 5}, {5, 30, 54}},
        {{2, 7, 5}, {5, 30, 53}},
        {{2, 7, 1}, {5, 30, 63}},
        {{0, 0, 10}, {DEPTH, HEIGHT, 32}},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_part(path, parts[i][0], parts[i][1]);
}

static void expect_error(const char *path, const char *words)
{
    struct dl2_volume *volume;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_volume_open(path, NULL, &volume, &error), DL2_ERR_FORMAT);
    assert_null(volume);
    if (!strstr(error.message, words) || strncmp(error.message, path, strlen(path)) != 0)
        fail_msg("'%s' says nothing of '%s'", error.message, words);
}

static void test_damage(void **state)
{
    (void)state;
    uint8_t data[24] = {0};
    expect_error(write_npy("bad.npy", "|u1", "2, 3, 5", data, sizeof data),
                 "truncated: 152 of 158 bytes");
    expect_error(write_npy("bad.npy", "|u1", "2, 3", data, sizeof data), "2 dimensions");
    expect_error(write_npy("bad.npy", "|u1", "2, 0, 3", data, sizeof data), "no voxels");
    expect_error(write_npy("bad.npy", "<f2", "2, 2, 3", data, sizeof data), "'<f2'");
    expect_error(
        write_npy("bad.npy", "<f8", "2147483647, 2147483647, 2147483647", data, sizeof data),
        "limit");
    expect_error(write_npy("bad.npy", "|u1", "65, 1, 1, 1", data, sizeof data), "65 channels");
    put_bytes("bad.npy", "\x93NUMPY\1\0\166\0{'descr", 17);
    expect_error(at("bad.npy"), "truncated in its header: 17 of 128 bytes");
}

static void count_labels(void *context, uint64_t first, const uint8_t *labels, size_t count)
{
    uint64_t *sums = context;
    assert_int_equal(first, sums[0]);
    sums[0] += count;
    for (size_t i = 0; i < count; i++)
        sums[1] += labels[i];
}

static void test_labels(void **state)
{
    (void)state;
    enum { COUNT = 50 * 60 * 70 };
    static uint16_t data[COUNT];
    uint64_t sums[2] = {0, 0}, sum = 0;
    struct dl2_volume *volume;
    struct dl2_error error = DL2_ERROR_INIT;
    for (size_t i = 0; i < COUNT; i++) {
        data[i] = (uint16_t)(i % 251);
        sum += data[i];
    }
    const char *path = write_npy("labels.npy", "<u2", "50, 60, 70", data, sizeof data);
    assert_int_equal(dl2_volume_open(path, NULL, &volume, &error), DL2_OK);
    assert_int_equal(dl2_volume_scan_labels(volume, count_labels, sums, &error), DL2_OK);
    assert_int_equal(sums[0], COUNT);
    assert_int_equal(sums[1], sum);
    dl2_volume_close(volume);
    data[COUNT - 1] = 256;
    path = write_npy("labels.npy", "<u2", "50, 60, 70", data, sizeof data);
    assert_int_equal(dl2_volume_open(path, NULL, &volume, &error), DL2_OK);
    sums[0] = 0;
    assert_int_equal(dl2_volume_scan_labels(volume, count_labels, sums, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "256"));
    dl2_volume_close(volume);
}

static bool no_image(const char *path)
{
    (void)path;
    return false;
}

static int no_slices(const uint8_t *data, size_t size, const struct dl2_gray_part *part,
                     uint16_t *out, struct dl2_error *error)
{
    (void)data, (void)size, (void)part, (void)out;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "no slices");
}

/* Folders of volumes are found, and refused to callers that take images alone. */
static void test_dataset(void **state)
{
    (void)state;
    uint8_t data[24] = {0};
    struct dl2_dataset *dataset;
    struct dl2_volume *volume;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    write_npy("set/a/1.npy", "|u1", "2, 3, 4", data, sizeof data);
    write_npy("set/a/1.mask.npy", "|u1", "2, 3, 4", data, sizeof data);
    put("set/b/2.npy");
    put("set/b/2.json");
    options.keep = no_image;
    assert_int_equal(dl2_dataset_open(at("set"), &options, &dataset, &error), DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "volumes"));
    options.decode_slice = no_slices;
    assert_int_equal(dl2_dataset_open(at("set"), &options, &dataset, &error), DL2_OK);
    assert_int_equal(dl2_dataset_kind(dataset), DL2_SAMPLE_VOLUME);
    assert_int_equal(dl2_dataset_count(dataset), 2);
    assert_int_equal(dl2_dataset_open_volume(dataset, 0, NULL, &volume, &error), DL2_OK);
    assert_int_equal(dl2_volume_info(volume)->size[2], 4);
    dl2_volume_close(volume);
    assert_int_equal(dl2_dataset_open_volume(dataset, 0, "mask.npy", &volume, &error), DL2_OK);
    assert_non_null(volume);
    dl2_volume_close(volume);
    assert_int_equal(dl2_dataset_open_volume(dataset, 1, "mask.npy", &volume, &error), DL2_OK);
    assert_null(volume);
    dl2_dataset_close(dataset);
}

/* A "codec" of plain numbers. */
static int plain_slices(const uint8_t *data, size_t size, const struct dl2_gray_part *part,
                        uint16_t *out, struct dl2_error *error)
{
    if (size != (size_t)part->width * part->height * 2)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is damaged");
    for (uint32_t y = 0; y < part->rows; y++)
        for (uint32_t x = 0; x < part->columns; x++) {
            const size_t pixel = (size_t)(part->y + y) * part->width + part->x + x;
            memcpy(&out[y * part->columns + x], data + 2 * pixel, 2);
        }
    return DL2_OK;
}

/* Two channels of 3x4x5 voxels that count up from -100, by steps of 0.5. */
static void make_slices(struct dl2_bytes *file, size_t lacking)
{
    struct dl2_volume_slices_writer writer = {.extension = "raw"};
    struct dl2_volume_info info = {.channels = 2,
                                   .size = {3, 4, 5},
                                   .spacing = {2, 1, 1},
                                   .slope = 0.5,
                                   .intercept = 7,
                                   .minimum = -100};
    writer.slices.bits = 12;
    for (size_t s = 0; s < 6; s++) {
        uint16_t samples[20];
        struct dl2_bytes image = {.data = (uint8_t *)samples, .size = sizeof samples - lacking};
        for (size_t i = 0; i < 20; i++)
            samples[i] = (uint16_t)(20 * s + i);
        assert_int_equal(dl2_volume_slices_add(&writer, &info, &image, NULL), DL2_OK);
    }
    assert_int_equal(dl2_volume_slices_finish(&writer, &info, "int16", file, NULL), DL2_OK);
    dl2_volume_slices_writer_free(&writer);
}

static void test_slices(void **state)
{
    (void)state;
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_volume *volume;
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_volume_part part = {{1, 1, 2}, {2, 3, 2}, {0, 0, 0}, {2, 3, 2}};
    float out[24];
    double stored[20];
    make_slices(&file, 0);
    put_bytes("a.slices", file.data, file.size);
    assert_int_equal(dl2_volume_open(at("a.slices"), plain_slices, &volume, &error), DL2_OK);
    assert_int_equal(dl2_volume_info(volume)->channels, 2);
    assert_true(dl2_volume_info(volume)->spacing[0] == 2);
    assert_int_equal(dl2_volume_read(volume, &part, out, &error), DL2_OK);
    for (size_t i = 0; i < 24; i++) {
        const size_t x = 2 + i % 2, y = 1 + i / 2 % 3, z = 1 + i / 6 % 2, c = i / 12;
        const double sample = (double)(20 * (3 * c + z) + 5 * y + x);
        assert_true((double)out[i] == 0.5 * (sample - 100) + 7);
    }
    assert_int_equal(dl2_volume_read_stored(volume, 1, 2, stored, &error), DL2_OK);
    assert_true(stored[0] == 0 && stored[19] == 19);
    dl2_volume_close(volume);

    assert_int_equal(dl2_volume_open(at("a.slices"), NULL, &volume, &error), DL2_ERR_UNSUPPORTED);
    for (size_t size = 0; size < file.size - 1024 - 472; size += 97) { /* the rest is padding */
        put_bytes("cut.slices", file.data, size);
        error = (struct dl2_error)DL2_ERROR_INIT;
        assert_int_equal(dl2_volume_open(at("cut.slices"), plain_slices, &volume, &error),
                         DL2_ERR_FORMAT);
        assert_null(volume);
        assert_non_null(strstr(error.message, "cut.slices"));
    }
    make_slices(&file, 2);
    put_bytes("bad.slices", file.data, file.size);
    error = (struct dl2_error)DL2_ERROR_INIT;
    assert_int_equal(dl2_volume_open(at("bad.slices"), plain_slices, &volume, &error), DL2_OK);
    assert_int_equal(dl2_volume_read(volume, &part, out, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "bad.slices: slice 1 of channel 0: it is damaged"));
    dl2_volume_close(volume);
    dl2_bytes_free(&file);
}

/* The name of a volume ends where its extension begins, also where that has two parts. */
static void test_sidecar(void **state)
{
    (void)state;
    struct dl2_dataset *dataset;
    struct dl2_bytes text = DL2_BYTES_INIT;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    if (dl2_volume_unreadable("1.nii.gz"))
        skip();
    put("scans/a/1.nii.gz");
    put_bytes("scans/a/1.json", "{}", 2);
    options.keep = no_image;
    options.decode_slice = no_slices;
    assert_int_equal(dl2_dataset_open(at("scans"), &options, &dataset, NULL), DL2_OK);
    assert_int_equal(dl2_dataset_read_sidecar(dataset, 0, "json", &text, NULL), 1);
    assert_int_equal(text.size, 2);
    dl2_bytes_free(&text);
    dl2_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bytes),   TEST(test_damage), TEST(test_labels),
        TEST(test_dataset), TEST(test_slices), TEST(test_sidecar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
