/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes on other grids, against SciPy's and PyTorch's values (gen_resample.py), and turned. */
#include "pixels/volume_resample.h"
#include "tests/pixels/resample_golden.h"
#include "tests/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t old[3] = {5, 7, 6}, new[3] = {8, 4, 9};

enum { OLD = 5 * 7 * 6, NEW = 8 * 4 * 9, TIE = 255 };

static float *new_voxels(void)
{
    float *voxels = calloc(OLD, sizeof *voxels);
    assert_non_null(voxels);
    for (size_t z = 0, i = 0; z < old[0]; z++)
        for (size_t y = 0; y < old[1]; y++)
            for (size_t x = 0; x < old[2]; x++)
                voxels[i++] = (float)((37 * z * z + 11 * y + 53 * x * y) % 101);
    return voxels;
}

static uint8_t *new_labels(void)
{
    uint8_t *labels = calloc(OLD, 1);
    assert_non_null(labels);
    for (size_t z = 0, i = 0; z < old[0]; z++)
        for (size_t y = 0; y < old[1]; y++)
            for (size_t x = 0; x < old[2]; x++)
                labels[i++] = (uint8_t)((z + y * x) / 3 % 4);
    return labels;
}

static void check_values(unsigned order, const float *golden)
{
    float *voxels = new_voxels();
    assert_int_equal(dl2_volume_resample(&voxels, old, new, order, NULL), DL2_OK);
    for (size_t i = 0; i < NEW; i++)
        assert_true(fabsf(voxels[i] - golden[i]) < 2e-4F);
    free(voxels);
}

static void test_values(void **state)
{
    (void)state;
    check_values(1, order_1);
    check_values(3, order_3);
}

static void check_labels(enum dl2_label_rule rule, const uint8_t *golden)
{
    uint8_t *labels = new_labels();
    assert_int_equal(dl2_labels_resample(&labels, old, new, rule, NULL), DL2_OK);
    for (size_t i = 0; i < NEW; i++)
        if (golden[i] != TIE)
            assert_int_equal(labels[i], golden[i]);
    free(labels);
}

static void test_labels(void **state)
{
    (void)state;
    check_labels(DL2_LABELS_NEAREST, labels_0);
    check_labels(DL2_LABELS_LINEAR, labels_1);
    check_labels(DL2_LABELS_MLPERF, labels_mlperf);
}

/* One voxel is spread, several become the first; the same size changes nothing. */
static void test_single_voxels(void **state)
{
    (void)state;
    const size_t one[3] = {1, 1, 1}, many[3] = {2, 3, 2};
    for (unsigned order = 1; order <= 3; order += 2) {
        float *voxels = malloc(sizeof *voxels);
        voxels[0] = 7;
        assert_int_equal(dl2_volume_resample(&voxels, one, many, order, NULL), DL2_OK);
        for (size_t i = 0; i < 12; i++)
            assert_true(fabsf(voxels[i] - 7) < 1e-5F);
        voxels[0] = 3;
        assert_int_equal(dl2_volume_resample(&voxels, many, one, 1, NULL), DL2_OK);
        assert_true(voxels[0] == 3);
        free(voxels);
        voxels = new_voxels();
        float *same = new_voxels();
        assert_int_equal(dl2_volume_resample(&voxels, old, old, order, NULL), DL2_OK);
        assert_memory_equal(voxels, same, OLD * sizeof *same);
        free(voxels);
        free(same);
    }
}

static void test_turn(void **state)
{
    (void)state;
    const struct dl2_volume_turn turn = {{2, 0, 1}, {true, false, true}};
    float *before = new_voxels();
    void *voxels = new_voxels();
    size_t size[3] = {old[0], old[1], old[2]};
    assert_int_equal(dl2_volume_turn(&voxels, sizeof *before, size, &turn, NULL), DL2_OK);
    assert_int_equal(size[0], 6);
    assert_int_equal(size[1], 5);
    assert_int_equal(size[2], 7);
    for (size_t x = 0, i = 0; x < 6; x++)
        for (size_t z = 0; z < 5; z++)
            for (size_t y = 0; y < 7; y++, i++)
                assert_true(((float *)voxels)[i] == before[(z * 7 + 6 - y) * 6 + 5 - x]);
    free(voxels);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_single_voxels),
        cmocka_unit_test(test_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
