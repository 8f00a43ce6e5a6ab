/* SPDX-License-Identifier: BSD-2-Clause */
/* Sliding windows: where they lie, how they are weighed, and whole volumes against plain loops over
 * all windows. */
#include "tests/dataset/scratch.h"
#include "train/sliding_window.h"

#include <math.h>

/* -- places and weights -- */

static void windows_lie_evenly(void **state)
{
    (void)state;
    /* nnU-Net's example. */
    assert_int_equal(dl2_window_count(110, 64), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(dl2_window_first(110, 64, i), 23 * i);
    for (size_t size = 1; size < 70; size++)
        for (size_t window = 1; window < 40; window++) {
            const size_t count = dl2_window_count(size, window);
            assert_int_equal(dl2_window_first(size, window, 0), 0);
            if (size <= window) {
                assert_int_equal(count, 1);
                continue;
            }
            assert_int_equal(count,
                             (size_t)ceil((double)(size - window) / ((double)window / 2)) + 1);
            assert_int_equal(dl2_window_first(size, window, count - 1), size - window);
            for (size_t i = 1; i < count; i++)
                assert_in_range(dl2_window_first(size, window, i) -
                                    dl2_window_first(size, window, i - 1),
                                window > 1, (window + 1) / 2);
        }
}

static void weights_are_a_gaussian(void **state)
{
    (void)state;
    float weights[128];
    for (size_t window = 1; window <= 128; window++) {
        dl2_window_weights(weights, window);
        for (size_t i = 0; i < window; i++) {
            const double x = (double)i - ((double)window - 1) / 2, s = (double)window / 8;
            assert_true(weights[i] > 0 && weights[i] == weights[window - 1 - i]);
            assert_true(fabs(weights[i] - exp(-x * x / (2 * s * s))) < 1e-6);
        }
        assert_true(window % 2 == 0 || weights[window / 2] == 1);
    }
}

/* -- whole volumes -- */

enum { CHANNELS = 2, CLASSES = 3, BATCH = 3, MOST = 24 * 40 * 40 };

struct volume {
    size_t size[3];
    float voxels[CHANNELS * MOST];
    float logits[CLASSES * MOST];
    size_t planes;  /* taken */
    unsigned calls; /* of predict() */
    bool fails;
};

static struct volume volume;
static size_t window[3];

/* What the "network" says of a voxel, at a place in its window. */
static double logit(const float *channels, size_t z, size_t y, size_t x, size_t class)
{
    return class < CHANNELS ? channels[class] * (1 + 0.01 * (double)(z + 2 * y + 3 * x))
                            : (double)(z * y) - (double)x;
}

static int predict(void *context, const float *windows, unsigned count, float *logits,
                   struct dl2_error *error)
{
    struct volume *v = context;
    if (v->fails && v->calls == 1)
        return dl2_error_set(error, DL2_ERR_CANCELED, "no more");
    v->calls++;
    assert_in_range(count, 1, BATCH);
    for (size_t n = 0; n < count * window[0] * window[1] * window[2]; n++)
        for (size_t k = 0; k < CLASSES; k++)
            logits[n * CLASSES + k] =
                (float)logit(windows + n * CHANNELS, n / window[2] / window[1] % window[0],
                             n / window[2] % window[1], n % window[2], k);
    return DL2_OK;
}

/* A network that gives back what it sees, and 0 for the last class. */
static int give_back(void *context, const float *windows, unsigned count, float *logits,
                     struct dl2_error *error)
{
    (void)error;
    ((struct volume *)context)->calls++;
    for (size_t n = 0; n < count * window[0] * window[1] * window[2]; n++)
        for (size_t k = 0; k < CLASSES; k++)
            logits[n * CLASSES + k] = k < CHANNELS ? windows[n * CHANNELS + k] : 0;
    return DL2_OK;
}

static int take(void *context, size_t first, size_t planes, const float *logits,
                struct dl2_error *error)
{
    struct volume *v = context;
    const size_t plane = v->size[1] * v->size[2] * CLASSES;
    (void)error;
    assert_int_equal(first, v->planes);
    assert_true(planes > 0 && first + planes <= v->size[0]);
    memcpy(v->logits + first * plane, logits, planes * plane * sizeof *logits);
    v->planes += planes;
    return DL2_OK;
}

static const char *write_volume(void)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    char header[128];
    const size_t count = CHANNELS * volume.size[0] * volume.size[1] * volume.size[2];
    assert_true(count <= CHANNELS * MOST);
    for (size_t i = 0; i < count; i++)
        volume.voxels[i] = (float)((i * 7919 + i / 13 * 104729) % 2003) / 100.0f;
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\1\0\166", 10);
    const int length = snprintf(header + 10, sizeof header - 10,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %zu, %zu, "
                                "%zu), }",
                                CHANNELS, volume.size[0], volume.size[1], volume.size[2]);
    header[10 + length] = ' ';
    header[127] = '\n';
    assert_int_equal(dl2_bytes_append(&file, header, sizeof header, NULL), DL2_OK);
    assert_int_equal(dl2_bytes_append(&file, volume.voxels, count * sizeof(float), NULL), DL2_OK);
    put_bytes("volume.npy", file.data, file.size);
    dl2_bytes_free(&file);
    return at("volume.npy");
}

static struct dl2_loader_config loader_of(enum dl2_normalization normalization)
{
    struct dl2_loader_config loader = DL2_LOADER_DEFAULTS;
    loader.batch = BATCH;
    loader.volume_depth = (unsigned)window[0];
    loader.height = (unsigned)window[1];
    loader.width = (unsigned)window[2];
    loader.channels = CHANNELS;
    loader.dtype = DL2_FLOAT32;
    loader.normalization = normalization;
    return loader;
}

static int slide(const struct dl2_loader_config *loader,
                 int (*network)(void *, const float *, unsigned, float *, struct dl2_error *),
                 struct dl2_error *error)
{
    const struct dl2_sliding_window how = {loader, CLASSES, network, take, &volume};
    struct dl2_volume *file;
    assert_int_equal(dl2_volume_open(write_volume(), NULL, &file, error), DL2_OK);
    volume.planes = volume.calls = 0;
    const int status = dl2_sliding_window_run(&how, file, error);
    dl2_volume_close(file);
    return status;
}

/* A window with its corner at `corner` of the volume, of which `part` voxels lie in it from `at`
 * on, [depth][height][width][channels], of mean 0 and deviation 1. */
static void cut(const size_t corner[3], const size_t part[3], const size_t from[3], float *out)
{
    memset(out, 0, CHANNELS * window[0] * window[1] * window[2] * sizeof *out);
    for (size_t c = 0; c < CHANNELS; c++) {
        double sums[3] = {0};
        for (int round = 0; round < 3; round++) /* the mean, the deviation, the values */
            for (size_t z = 0; z < part[0]; z++)
                for (size_t y = 0; y < part[1]; y++)
                    for (size_t x = 0; x < part[2]; x++) {
                        const double count = (double)(part[0] * part[1] * part[2]);
                        const double mean = sums[0] / count, deviation = sqrt(sums[1] / count);
                        const double value =
                            volume.voxels[((c * volume.size[0] + corner[0] + z) * volume.size[1] +
                                           corner[1] + y) *
                                              volume.size[2] +
                                          corner[2] + x];
                        sums[round] += round ? (value - mean) * (value - mean) : value;
                        if (round == 2)
                            out[(((from[0] + z) * window[1] + from[1] + y) * window[2] + from[2] +
                                 x) *
                                    CHANNELS +
                                c] = (float)((value - mean) / deviation);
                    }
    }
}

/* All windows, one after the other, over the whole volume. */
static void compare_with_plain_loops(void)
{
    static double sums[CLASSES * MOST], weights[MOST];
    static float own[CHANNELS * MOST];
    float gaussians[3][64];
    size_t part[3], from[3], counts[3], corner[3];
    memset(sums, 0, sizeof sums);
    memset(weights, 0, sizeof weights);
    for (int i = 0; i < 3; i++) {
        part[i] = volume.size[i] < window[i] ? volume.size[i] : window[i];
        from[i] = (window[i] - part[i]) / 2;
        counts[i] = dl2_window_count(volume.size[i], window[i]);
        dl2_window_weights(gaussians[i], window[i]);
    }
    for (size_t n = 0; n < counts[0] * counts[1] * counts[2]; n++) {
        corner[0] = dl2_window_first(volume.size[0], window[0], n / counts[2] / counts[1]);
        corner[1] = dl2_window_first(volume.size[1], window[1], n / counts[2] % counts[1]);
        corner[2] = dl2_window_first(volume.size[2], window[2], n % counts[2]);
        cut(corner, part, from, own);
        for (size_t z = from[0]; z < from[0] + part[0]; z++)
            for (size_t y = from[1]; y < from[1] + part[1]; y++)
                for (size_t x = from[2]; x < from[2] + part[2]; x++) {
                    const double weight =
                        (double)gaussians[0][z] * (double)gaussians[1][y] * (double)gaussians[2][x];
                    const size_t to =
                        ((corner[0] + z - from[0]) * volume.size[1] + corner[1] + y - from[1]) *
                            volume.size[2] +
                        corner[2] + x - from[2];
                    const float *channels = own + ((z * window[1] + y) * window[2] + x) * CHANNELS;
                    weights[to] += weight;
                    for (size_t k = 0; k < CLASSES; k++)
                        sums[to * CLASSES + k] += weight * logit(channels, z, y, x, k);
                }
    }
    for (size_t i = 0; i < volume.size[0] * volume.size[1] * volume.size[2]; i++)
        for (size_t k = 0; k < CLASSES; k++) {
            const double want = sums[i * CLASSES + k] / weights[i];
            const double got = volume.logits[i * CLASSES + k];
            if (!(fabs(got - want) <= 1e-4 * (1 + fabs(want))))
                fail_msg("voxel %zu of %zux%zux%zu, class %zu: %g, not %g", i, volume.size[0],
                         volume.size[1], volume.size[2], k, got, want);
        }
}

static void volumes_as_by_plain_loops(void **state)
{
    (void)state;
    /* Larger than the window, smaller, along some axes alone, not divisible, and as large. */
    static const size_t sizes[][3] = {{20, 37, 40}, {24, 16, 9}, {5, 33, 17}, {3, 4, 5},
                                      {8, 12, 16},  {9, 13, 17}, {16, 5, 40}, {1, 1, 1}};
    static const size_t windows[][3] = {{8, 12, 16}, {7, 9, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < 2; k++) {
            struct dl2_error error = DL2_ERROR_INIT;
            memcpy(volume.size, sizes[i], sizeof volume.size);
            memcpy(window, windows[k], sizeof window);
            struct dl2_loader_config loader = loader_of(DL2_NORMALIZATION_NONE);
            assert_int_equal(slide(&loader, give_back, &error), DL2_OK);
            assert_int_equal(volume.planes, volume.size[0]);
            const size_t count = volume.size[0] * volume.size[1] * volume.size[2];
            for (size_t n = 0; n < count; n++)
                for (size_t c = 0; c < CHANNELS; c++)
                    assert_true(fabsf(volume.logits[n * CLASSES + c] -
                                      volume.voxels[c * count + n]) <= 1e-4f);
            if (count == 1) /* has no deviation */
                continue;
            loader = loader_of(DL2_NORMALIZATION_ZSCORE);
            assert_int_equal(slide(&loader, predict, &error), DL2_OK);
            compare_with_plain_loops();
        }
}

static void errors_end_it(void **state)
{
    (void)state;
    struct dl2_error error = DL2_ERROR_INIT;
    memcpy(volume.size, (size_t[]){20, 30, 30}, sizeof volume.size);
    memcpy(window, (size_t[]){8, 8, 8}, sizeof window);
    struct dl2_loader_config loader = loader_of(DL2_NORMALIZATION_NONE);
    volume.fails = true;
    assert_int_equal(slide(&loader, predict, &error), DL2_ERR_CANCELED);
    assert_int_equal(volume.calls, 1);
    volume.fails = false;
    dl2_error_clear(&error);
    loader.channels = 1;
    assert_int_equal(slide(&loader, predict, &error), DL2_ERR_FORMAT);
    assert_string_equal(error.message, "it has 2 channels, and 1 are loaded");
    assert_int_equal(volume.planes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_lie_evenly),
        cmocka_unit_test(weights_are_a_gaussian),
        TEST(volumes_as_by_plain_loops),
        TEST(errors_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
