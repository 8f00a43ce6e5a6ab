/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of what a layer computes, with the plan that was chosen for its shape, against float32:
 * on noise, all elements of the result, on the card.
 */
#ifndef DL2_CUDA_DEVICE_CHECK_H
#define DL2_CUDA_DEVICE_CHECK_H

#include "cuda/conv_plan.h"
#include "cuda/device_cuda.h"

/* x, w and y of a layer, or their gradients, as the device has them, and as float32. */
struct dl2_check {
    struct cuda *cuda;
    enum dl2_conv_pass pass;
    void *elements[3];
    float *floats[3];
    float *result; /* of the weights' gradient, which is float32 whatever the element */
    float *moments;
};

/* Which of the three a pass computes. */
int dl2_check_output(enum dl2_conv_pass pass);

/* Makes the tensors and fills the pass' inputs. Returns false, and tells the user, where there is
 * no memory for it. Call dl2_check_close() in either case. */
bool dl2_check_open(struct dl2_check *check, struct cuda *cuda, enum dl2_conv_pass pass,
                    const size_t counts[3], unsigned channels, const char *what);
void dl2_check_close(struct dl2_check *check);

/*
 * Compares the result, which is `result` for DL2_CONV_WEIGHTS and else the output's `elements`,
 * with the output's `floats`, which it overwrites; both are [rows][channels]. `terms` is the number
 * of products in each sum. The message of an error names `what`, `plan`, the error and its bound.
 */
int dl2_check_compare(struct dl2_check *check, size_t rows, unsigned channels, double terms,
                      const char *what, const char *plan, struct dl2_error *error);

#endif
