/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of what a layer computes, with the plan that was chosen for its shape, against float32:
 * on noise, all elements of the result, on the card.
 */
#ifndef DL2_CUDA_DEVICE_CHECK_H
#define DL2_CUDA_DEVICE_CHECK_H

#include "cuda/cudnn_plan.h"
#include "cuda/device_cuda.h"

enum { DL2_CHECK_TENSORS = 4 };

enum dl2_check_role {
    DL2_CHECK_NONE,
    DL2_CHECK_INPUT,
    DL2_CHECK_OUTPUT,
    DL2_CHECK_FLOATS, /* an output that is float32 whatever the element */
};

struct dl2_check_tensor {
    size_t count;
    enum dl2_check_role role;
};

/* The tensors of a layer as the device has them, and as float32. */
struct dl2_check {
    struct cuda *cuda;
    struct dl2_check_tensor tensors[DL2_CHECK_TENSORS];
    enum dl2_gpu_pass pass; /* of dl2_check_open_pass() */
    void *elements[DL2_CHECK_TENSORS], *floats[DL2_CHECK_TENSORS];
    float *moments;
};

/* Which of x, w and y a pass computes. */
int dl2_check_output(enum dl2_gpu_pass pass);

/* Makes the tensors and fills the inputs. `channels`: most of an output. Returns false, and tells
 * the user, where there is no memory for it. Call dl2_check_close() in either case. */
bool dl2_check_open(struct dl2_check *check, struct cuda *cuda,
                    const struct dl2_check_tensor tensors[DL2_CHECK_TENSORS], unsigned channels,
                    const char *what);
/* For a pass between x, w and y, or their gradients. The gradient of w is float32. */
bool dl2_check_open_pass(struct dl2_check *check, struct cuda *cuda, enum dl2_gpu_pass pass,
                         const size_t counts[3], unsigned channels, const char *what);
void dl2_check_close(struct dl2_check *check);

/*
 * Compares output number `out` in `elements` with that in `floats`, which it overwrites; both are
 * [rows][channels]. `terms` is the number of products in each sum, `roundings` how often what
 * becomes a result is rounded to an element. The message of an error names `what`, `plan`, the
 * error and its bound.
 */
int dl2_check_compare(struct dl2_check *check, int out, size_t rows, unsigned channels,
                      double terms, unsigned roundings, const char *what, const char *plan,
                      struct dl2_error *error);

#endif
