/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of test_device: device_subjects.c has the devices under test and tensors on
 * them, device_operations.c the operations that are tested alike, device_cases.c those and the
 * cases that are tested by themselves, test_device.c the table of all tests.
 */
#ifndef DL2_TESTS_TEST_DEVICE_H
#define DL2_TESTS_TEST_DEVICE_H

#include "common/memory.h"
#include "common/random.h"
#include "device/device.h"
#include "device/element.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after those above */
#include <cmocka.h>

#define F sizeof(float)

/* The shapes of images, without what clips have beside. */
#define FLAT_CONV(batch, h, w, in, out, kh, kw, sh, sw, ph, pw, ...)                               \
    {                                                                                              \
        batch, {1, h, w}, in, out, {1, kh, kw}, {1, sh, sw}, {0, ph, pw}, __VA_ARGS__              \
    }
#define FLAT_POOL(kind, batch, h, w, channels, oh, ow, kh, kw, sh, sw, ph, pw)                     \
    {                                                                                              \
        kind, batch, {1, h, w}, channels, {1, oh, ow}, {1, kh, kw}, {1, sh, sw},                   \
        {                                                                                          \
            0, ph, pw                                                                              \
        }                                                                                          \
    }

/* -- device_subjects.c: tensors, a host copy and a place on a device -- */

extern struct dl2_random stream; /* the same at the beginning of each test */

/* `count` random values between -1 and 1; the caller frees them. */
float *fresh(size_t count);
/* Fails with the error's message, but for DL2_OK. */
void ok(int status, const struct dl2_error *error);

/* What is copied: elements of the device, which are floats on the host; or bytes as they are. */
enum kind { ELEMENTS, BYTES };

/* Copies `from` to the device, for finish() to copy back to `to` where that is not NULL. The
 * address on the device; NULL for NULL. */
void *hold(struct dl2_device *d, enum kind kind, const void *from, void *to, size_t count);
/* Copies back what is wanted, and frees all that hold() put there. */
void finish(struct dl2_device *d);

/* -- device_subjects.c: devices under test -- */

enum { MAX_SUBJECTS = 16 };

struct subject {
    const struct dl2_device_class *ops;
    enum dl2_precision precision;
    unsigned threads;
    char name[32];
    struct dl2_device *device;
};

extern struct subject subjects[MAX_SUBJECTS]; /* [0]: the reference, in float32 */
extern size_t subject_count;

/* The reference, and all that are wanted and can be opened here; says why others can't. */
void find_subjects(const char *name, const char *precision, bool cpu_only);
void close_subjects(void);

/* How near to the reference a device must come: `plain` on the processor in float32. */
double tolerance_of(const struct subject *subject, double plain);
/* To what the device's elements can hold. */
void round_to(const struct subject *subject, float *values, size_t count);
/* By which the device's gradients are larger. */
double loss_scale_of(struct dl2_device *device);

/* Before each test, for cmocka. */
int seed(void **state);

/* -- device_operations.c -- */

/*
 * One operation, forward and backward: `in` are its differentiable inputs, dy the gradient of its
 * output; run() fills y and the gradients. The rest of what it needs lies in `shape`.
 */
enum { INPUTS = 4 };

struct op {
    const char *name;
    void (*run)(const struct op *op, struct dl2_device *device);
    const void *shape;
    size_t counts[INPUTS], out_count;
    float *in[INPUTS], *gradient[INPUTS], *dy, *y;
    float *extra[2]; /* further outputs: running mean and variance */
    bool again;      /* run backward twice, adding up gradients of weights; or work in place */
    float kink;      /* of an activation, above 0; 0: none */
};

/* `op` with its tensors. */
struct op op_of(struct op op);
void op_free(struct op *op);
/* Input i and its gradient, as elements or as floats. */
void *hold_in(const struct op *op, struct dl2_device *d, enum kind kind, int i);
void *hold_gradient(const struct op *op, struct dl2_device *d, enum kind kind, int i);

/* What a layer of weights and biases reads and writes, on the device. In other operations w and b
 * are other parameters, in float32. */
struct layer {
    void *x, *w, *b, *dy, *y, *dx, *dw, *db;
};
struct layer hold_layer(const struct op *op, struct dl2_device *d, enum kind weights);

/* in: x, gamma, beta, residual. Where `two_gradients`, dy comes as the sum of two. Backward is not
 * in place where it runs twice: the second call would read what the first has overwritten. */
struct norm_case {
    struct dl2_norm_shape shape;
    bool two_gradients, in_place;
};

struct smooth_case {
    enum dl2_smooth kind;
    size_t count;
};

struct loss_case {
    struct dl2_loss_shape shape;
    const int32_t *labels;
    const uint32_t *partner;
    float lambda, scale;
};

/* Operations of a shape, with random tensors. */
struct op norm_op(const void *shape);
struct op activation_op(const void *shape);
struct op smooth_op(const void *shape);
struct op layer_norm_op(const void *shape);
struct op attention_op(const void *shape);
struct op loss_op(const void *shape);

/* Fails where values are further apart than `tolerance` of the largest that is wanted. */
void near(const char *what, const char *part, const float *want, const float *got, size_t count,
          double tolerance);
/* Does every subject give what the reference gives, all of it, and the same bits twice? Leaves what
 * the last one gave. */
void against_reference(struct op *op, double tolerance);

/* What inputs are made for: finite differences; devices; devices once more, with op.again set. */
enum purpose { DIFFERENCES, ONCE, AGAIN };

struct operation {
    const char *name;
    struct op (*make)(const void *shape);
    const void *shapes;
    size_t count, size; /* of the shapes */
    size_t small;       /* so many, the first, are small enough for differences */
    double step, slope; /* of differences: their width, and how near they come */
    double plain;       /* how near to the reference a processor comes */
    /* Makes inputs special: for differences, and for each of the two runs on devices. Optional. */
    void (*prepare)(struct op *op, enum purpose purpose);
};

extern const struct operation convolution_operation, linear_operation, pooling_operation,
    batch_norm_operation, smooth_operation, gate_operation, layer_norm_operation,
    attention_operation, tokens_operation, loss_operation;
/* -- device_dense.c -- */
extern const struct operation transposed_operation, instance_norm_operation, concat_operation,
    dice_operation;
void confusion(void **state);
void pixels_of_no_number(void **state);

/* Tests whose state is an operation. */
void gradients(void **state);
void devices(void **state);
void not_a_number(void **state);

/* -- device_cases.c -- */

void norm_one_row(void **state);
void norm_eval(void **state);
void activations(void **state);
void smooth_near_and_far(void **state);
void elu_near_and_far(void **state);
void layer_norm_constant_rows(void **state);
void attention_to_all_alike(void **state);
void attention_is_exponential(void **state);
void loss_by_hand(void **state);
void loss_of_no_number(void **state);
void dropout_is_the_same_everywhere(void **state);
void runs_are_dropped_whole(void **state);
void sums_end_with_relu(void **state);
void ingest(void **state);
void ingest_of_floats(void **state);
void optimizers(void **state);
void adamw_by_hand(void **state);
void clipping(void **state);
void averages(void **state);
void loss_scale(void **state);
void recordings(void **state);
void shapes_that_make_no_sense(void **state);
void elements(void **state);

#endif
