/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors in words; what holds with and without a card. */
#include "cuda/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void errors_say_call_reason_and_what_to_do(void **state)
{
    (void)state;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_gpu_check(cudaSuccess, "cudaMalloc", &error), DL2_OK);
    assert_int_equal(error.status, DL2_OK);
    assert_int_equal(dl2_gpu_check(cudaErrorMemoryAllocation, "cudaMalloc", &error),
                     DL2_ERR_MEMORY);
    assert_non_null(strstr(error.message, "cudaMalloc"));
    assert_non_null(strstr(error.message, "smaller batch"));
    dl2_error_clear(&error);
    assert_int_equal(dl2_gpu_check(cudaErrorIllegalAddress, "cudaStreamSynchronize", &error),
                     DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, "checkpoint"));
    dl2_error_clear(&error);
    assert_int_equal(dl2_gpu_check(cudaErrorInitializationError, "cudaGetDeviceCount", &error),
                     DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, "spawn"));
}

static void a_card_that_is_not_there(void **state)
{
    (void)state;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_gpu_present()) {
        assert_int_equal(dl2_gpu_use(0, &error), DL2_OK);
        assert_int_equal(dl2_gpu_use(4095, &error), DL2_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "4095"));
    } else {
        assert_int_equal(dl2_gpu_use(0, &error), DL2_ERR_UNSUPPORTED);
        assert_non_null(strstr(error.message, "--device cpu"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_say_call_reason_and_what_to_do),
        cmocka_unit_test(a_card_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
