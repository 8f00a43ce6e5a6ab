/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation of the seam: gradients of the reference device against finite differences, then
 * each other device that is present, in each precision that it has, against the reference in
 * float32, over shapes that are no multiple of anything.
 *
 *     test_device [DEVICE [PRECISION [OPERATION]]]     only these: "cuda bf16 convolution"
 *     test_device --list                               the operations, simplest first
 */
#include "tests/device/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tests of devices. Those of one operation stand together. The simplest operations come first,
 * because the first that fails on a card says most. */
static const struct test {
    const char *operation, *name;
    CMUnitTestFunction function;
    const struct operation *of;
} tests[] = {
    {"activation", "activations", activations, NULL},
    {"activation", "sums_end_with_relu", sums_end_with_relu, NULL},
    {"smooth", "smooth", devices, &smooth_operation},
    {"smooth", "smooth_near_and_far", smooth_near_and_far, NULL},
    {"activation", "elu_near_and_far", elu_near_and_far, NULL},
    {"smooth", "smooth_of_no_number", not_a_number, &smooth_operation},
    {"gate", "gate", devices, &gate_operation},
    {"ingest", "ingest", ingest, NULL},
    {"ingest_of_floats", "ingest", ingest_of_floats, NULL},
    {"dropout", "dropout_is_the_same_everywhere", dropout_is_the_same_everywhere, NULL},
    {"dropout", "runs_are_dropped_whole", runs_are_dropped_whole, NULL},
    {"linear", "linear", devices, &linear_operation},
    {"convolution", "convolution", devices, &convolution_operation},
    {"batch_norm", "batch_norm", devices, &batch_norm_operation},
    {"batch_norm", "batch_norm_of_no_number", not_a_number, &batch_norm_operation},
    {"batch_norm", "norm_one_row", norm_one_row, NULL},
    {"batch_norm", "norm_eval", norm_eval, NULL},
    {"pooling", "pooling", devices, &pooling_operation},
    {"loss", "loss", devices, &loss_operation},
    {"loss", "loss_by_hand", loss_by_hand, NULL},
    {"loss", "loss_of_no_number", loss_of_no_number, NULL},
    {"dense", "transposed_convolution", devices, &transposed_operation},
    {"dense", "instance_norm", devices, &instance_norm_operation},
    {"dense", "concatenation", devices, &concat_operation},
    {"dense", "dice", devices, &dice_operation},
    {"dense", "confusion", confusion, NULL},
    {"dense", "pixels_of_no_number", pixels_of_no_number, NULL},
    {"optimizer", "optimizers", optimizers, NULL},
    {"optimizer", "clipping", clipping, NULL},
    {"optimizer", "adamw_by_hand", adamw_by_hand, NULL},
    {"optimizer", "averages", averages, NULL},
    {"loss_scale", "loss_scale", loss_scale, NULL},
    {"recording", "recordings", recordings, NULL},
    {"layer_norm", "layer_norm", devices, &layer_norm_operation},
    {"layer_norm", "layer_norm_constant_rows", layer_norm_constant_rows, NULL},
    {"layer_norm", "layer_norm_of_no_number", not_a_number, &layer_norm_operation},
    {"attention", "attention", devices, &attention_operation},
    {"attention", "attention_to_all_alike", attention_to_all_alike, NULL},
    {"attention", "attention_is_exponential", attention_is_exponential, NULL},
    {"attention", "attention_of_no_number", not_a_number, &attention_operation},
    {"tokens", "tokens", devices, &tokens_operation},
    {"errors", "shapes_that_make_no_sense", shapes_that_make_no_sense, NULL},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

static struct CMUnitTest unit(const char *name, CMUnitTestFunction function,
                              const struct operation *of)
{
    return (struct CMUnitTest){name, function, seed, NULL, (void *)(uintptr_t)of};
}

/* The tests of `operation`, or all, of the subjects. Number of failures. */
static int test_devices(const char *title, const char *operation)
{
    struct CMUnitTest units[TESTS];
    size_t count = 0;
    for (size_t i = 0; i < TESTS; i++)
        if (!operation || strcmp(operation, tests[i].operation) == 0)
            units[count++] = unit(tests[i].name, tests[i].function, tests[i].of);
    return _cmocka_run_group_tests(title, units, count, NULL, NULL);
}

static int test_gradients(void)
{
    static const struct operation *const all[] = {
        &convolution_operation, &linear_operation, &pooling_operation,
        &batch_norm_operation,  &smooth_operation, &layer_norm_operation,
        &attention_operation,   &tokens_operation, &loss_operation,
        &transposed_operation,  &concat_operation, &instance_norm_operation,
        &dice_operation,        &gate_operation};
    enum { ALL = sizeof all / sizeof all[0] };
    struct CMUnitTest units[ALL + 1] = {[ALL] = unit("elements", elements, NULL)};
    for (size_t i = 0; i < ALL; i++)
        units[i] = unit(all[i]->name, gradients, all[i]);
    return _cmocka_run_group_tests("gradients", units, ALL + 1, NULL, NULL);
}

static bool is_operation(const char *name)
{
    for (size_t i = 0; i < TESTS; i++)
        if (strcmp(name, tests[i].operation) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL, *precision = argc > 2 ? argv[2] : NULL;
    const char *operation = argc > 3 ? argv[3] : NULL;
    if (name && strcmp(name, "--list") == 0) {
        for (size_t i = 0; i < TESTS; i++)
            if (!i || strcmp(tests[i].operation, tests[i - 1].operation) != 0)
                puts(tests[i].operation);
        return 0;
    }
    if (operation && !is_operation(operation)) {
        fprintf(stderr, "test_device: no operation '%s'; --list names them\n", operation);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that a hang tells where */
    find_subjects(name, precision, false);
    if (name && subject_count < 2) {
        printf("SKIP: there is no device %s%s%s here\n", name, precision ? " with " : "",
               precision ? precision : "");
        close_subjects();
        return 77;
    }
    int failed = operation ? 0 : test_gradients();
    /* The processor's once more for each SIMD level; the one it lacks repeats the best below. */
    static const char *const levels[] = {"c", "avx2", "avx512"};
    for (int i = 0; i < 3; i++) {
        setenv("DL2_SIMD", levels[i], 1);
        find_subjects(name, precision, i > 0);
        if (subject_count > 1)
            failed += test_devices(levels[i], operation);
    }
    close_subjects();
    return failed != 0;
}
