/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The training device's kernels against the reference device: every kernel, each element, sizes
 * that are no multiple of anything, tensors that begin anywhere. Each case runs twice, which must
 * give the same bits.
 *
 * Compiled for this machine (emulate.h), the second run goes from the last block and thread to the
 * first. With DL2_CARD the same tests run on a card, in host memory that it reaches, without
 * cuDNN's or cublasLt's kernels, so that compute-sanitizer has ours alone to watch.
 */
#include "common/random.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

#ifdef DL2_CARD
#include "cuda/gpu.h"
static bool dl2_emulate_backwards; /* which run it is */

static void *allocate(size_t bytes)
{
    void *block = NULL;
    assert_int_equal(cudaHostAlloc(&block, bytes, cudaHostAllocPortable), cudaSuccess);
    return block;
}

static void release(void *block)
{
    cudaFreeHost(block);
}

static int finished(int status)
{
    return status ? status : (int)cudaStreamSynchronize(NULL);
}
#else
extern bool dl2_emulate_backwards;

static void *allocate(size_t bytes)
{
    void *block = NULL;
    assert_int_equal(posix_memalign(&block, 64, bytes), 0);
    return block;
}

static void release(void *block)
{
    free(block);
}

static int finished(int status)
{
    return status;
}
#endif

#define RUN(call) assert_int_equal(finished(call), 0)

static struct dl2_device *ref;
static struct dl2_random random_stream;
static struct dl2_gpu_state *state;
static uint64_t digests[2]; /* of all output, by run */

/* -- memory: exactly as large as it must be, so that sanitizers see what goes beyond -- */

static void *blocks[256];
static unsigned block_count;

/* Poisoned; begins `misfit` bytes after a 64-byte boundary. */
static void *place(size_t bytes, size_t misfit)
{
    assert_true(block_count < 256);
    char *block = allocate(bytes + misfit ? bytes + misfit : 1);
    memset(block, 0xff, bytes + misfit);
    blocks[block_count++] = block;
    return block + misfit;
}

static void free_all(void)
{
    while (block_count)
        release(blocks[--block_count]);
}

static float *fresh(size_t count)
{
    float *values = place(count * sizeof *values, 0);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(2 * dl2_random_uniform(&random_stream) - 1);
    return values;
}

/* The same numbers, for a kernel to change. `misfit` is in floats. */
static float *copy_of(const float *values, size_t count, size_t misfit)
{
    return memcpy(place(count * sizeof *values, misfit * sizeof *values), values,
                  count * sizeof *values);
}

/* `values` as elements, to which they are rounded too. `misfit` is in elements. */
static void *low_precision(enum dl2_element element, float *values, size_t count, size_t misfit)
{
    size_t size = dl2_element_size(element);
    void *elements = place(count * size, misfit * size);
    dl2_elements_from_floats(element, values, elements, count);
    dl2_elements_to_floats(element, elements, values, count);
    return elements;
}

static void *room(enum dl2_element element, size_t count, size_t misfit)
{
    size_t size = dl2_element_size(element);
    return place(count * size, misfit * size);
}

/* Tests of some kernels; all that they test on is freed after them. */
struct kernels {
    const char *name;
    void (*test)(enum dl2_element element);
};

/* -- comparisons -- */

static void digest(const void *data, size_t bytes)
{
    const unsigned char *c = data;
    uint64_t h = digests[dl2_emulate_backwards];
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ c[i]) * 1099511628211u;
    digests[dl2_emulate_backwards] = h;
}

/* Within the device's promise, relative to the value or the tensor's mean size, whichever is more;
 * `loose` times as far where roundings add up. */
static void near(const char *what, enum dl2_element element, const void *got, const float *want,
                 size_t count, double loose)
{
    double tolerance = loose * (element == DL2_ELEMENT_F32    ? 2e-5
                                : element == DL2_ELEMENT_BF16 ? 5e-3
                                                              : 1e-3);
    float *values = malloc((count + 1) * sizeof *values);
    double mean = 0;
    assert_non_null(values);
    dl2_elements_to_floats(element, got, values, count);
    for (size_t i = 0; i < count; i++)
        mean += fabs(want[i]) / (double)count;
    for (size_t i = 0; i < count; i++)
        if (!(fabs(values[i] - want[i]) <=
              tolerance * (fabs(want[i]) > mean ? fabs(want[i]) : mean)))
            fail_msg("%s (element %d): [%zu of %zu] is %.9g, not %.9g", what, element, i, count,
                     values[i], want[i]);
    free(values);
    digest(got, count * dl2_element_size(element));
}

static void equal(const char *what, const float *got, const float *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(got + i, want + i, sizeof *got))
            fail_msg("%s: [%zu of %zu] is %.9g, not %.9g", what, i, count, got[i], want[i]);
    digest(got, count * sizeof *got);
}

/* Runs a test for each element, twice from the same random numbers. */
static void both_orders(void **test)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device_options options = {0};
    assert_int_equal(dl2_device_open("ref", &options, &ref, &error), DL2_OK);
    for (int element = DL2_ELEMENT_F32; element <= DL2_ELEMENT_F16; element++) {
        for (int order = 0; order < 2; order++) {
            dl2_random_init(&random_stream, 5, DL2_RANDOM_TEST, (uint64_t)element, 0);
            *state = (struct dl2_gpu_state){.loss_scale.scale = 1};
            digests[order] = 14695981039346656037u;
            dl2_emulate_backwards = order;
            ((const struct kernels *)*test)->test((enum dl2_element)element);
            free_all();
        }
        assert_int_equal(digests[0], digests[1]);
    }
    dl2_emulate_backwards = false;
    dl2_device_close(ref);
}

/* -- elementwise -- */

static const size_t counts[] = {1, 3, 8, 31, 255, 2048 + 5};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void elementwise_case(enum dl2_element element, size_t n, size_t misfit)
{
    float *a = fresh(n), *b = fresh(n), *want = fresh(n), *sum = fresh(n);
    for (size_t i = 0; i < n; i++)
        a[i] = i ? a[i] * 9 : 7; /* beyond 6; the first, in the shortest too */
    void *la = low_precision(element, a, n, misfit), *lb = low_precision(element, b, n, misfit);
    void *y = room(element, n, misfit), *z = room(element, n, misfit);
    float *wide = place(n * sizeof *wide, misfit * sizeof *wide);

    RUN(dl2_gpu_convert_weights(element, a, y, n, NULL));
    near("lower", element, y, a, n, 0);
    RUN(dl2_gpu_widen(element, la, wide, n, false, NULL));
    equal("widen", wide, a, n);
    RUN(dl2_gpu_widen(element, lb, wide, n, true, NULL));
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
    equal("widen, accumulated", wide, sum, n);
    RUN(dl2_gpu_scale(wide, n, 0.25f, NULL));
    for (size_t i = 0; i < n; i++)
        sum[i] *= 0.25f;
    equal("scale", wide, sum, n);

    for (int activation = DL2_IDENTITY; activation <= DL2_RELU; activation++) {
        ref->ops->add(ref, a, b, activation, want, n);
        RUN(dl2_gpu_add(element, la, lb, activation, y, n, NULL));
        near("add", element, y, want, n, 1);
    }
    for (int activation = DL2_IDENTITY; activation <= DL2_RELU6; activation++) {
        for (size_t i = 0; i < n; i++)
            want[i] = activation && a[i] < 0 ? 0 : activation == DL2_RELU6 && a[i] > 6 ? 6 : a[i];
        RUN(dl2_gpu_convert_weights(element, want, z, n, NULL));
        ref->ops->activate_backward(ref, activation, want, b, sum, n);
        RUN(dl2_gpu_activate_backward(element, activation, z, lb, y, n, NULL));
        near("activate_backward", element, y, sum, n, 0);
        /* in place */
        memcpy(y, lb, n * dl2_element_size(element));
        RUN(dl2_gpu_activate_backward(element, activation, z, y, y, n, NULL));
        near("activate_backward in place", element, y, sum, n, 0);
    }
    for (int kind = DL2_GELU; kind <= DL2_SILU; kind++) {
        ref->ops->smooth(ref, kind, a, want, n);
        RUN(dl2_gpu_smooth(element, kind, la, z, n, NULL));
        near("smooth", element, z, want, n, 1);
        ref->ops->smooth_backward(ref, kind, a, b, sum, n);
        RUN(dl2_gpu_smooth_backward(element, kind, la, lb, y, n, NULL));
        near("smooth_backward", element, y, sum, n, 1);
        memcpy(y, lb, n * dl2_element_size(element));
        RUN(dl2_gpu_smooth_backward(element, kind, la, y, y, n, NULL));
        near("smooth_backward in place", element, y, sum, n, 1);
        memcpy(z, la, n * dl2_element_size(element));
        RUN(dl2_gpu_smooth(element, kind, z, z, n, NULL));
        near("smooth in place", element, z, want, n, 1);
    }
    RUN(dl2_gpu_noise(element, y, n, NULL));
    dl2_elements_to_floats(element, y, wide, n);
    for (size_t i = 0; i < n; i++)
        assert_true(wide[i] >= -1 && wide[i] <= 1);
}

static void elementwise(enum dl2_element element)
{
    for (size_t i = 0; i < COUNTS; i++)
        for (size_t misfit = 0; misfit < 8; misfit += i ? 3 : 1) {
            elementwise_case(element, counts[i], misfit);
            free_all();
        }
    /* Tensors that begin at different places within 16 bytes. */
    size_t n = 333;
    float *a = fresh(n), *b = fresh(n), *want = fresh(n);
    void *la = low_precision(element, a, n, 0), *lb = low_precision(element, b, n, 1);
    void *y = room(element, n, 2);
    ref->ops->add(ref, a, b, DL2_IDENTITY, want, n);
    RUN(dl2_gpu_add(element, la, lb, DL2_IDENTITY, y, n, NULL));
    near("add, unlike", element, y, want, n, 1);
}

/* The very numbers of the header's stream: what is kept, and its value, exactly. */
static void dropout(enum dl2_element element)
{
    static const float rates[] = {0, 0.1f, 0.5f, 0.75f};
    const size_t n = 17 * 487; /* beyond two blocks of numbers */
    for (size_t misfit = 0; misfit < 2; misfit++)
        for (int r = 0; r < 4; r++) {
            float *x = fresh(n), *want = fresh(n);
            void *lx = low_precision(element, x, n, misfit), *y = room(element, n, misfit);
            float *got = place(n * sizeof *got, 0);
            state->params.step = r == 2 ? (uint64_t)7 << 33 : 12;
            ref->ops->set_step_params(ref, &state->params);
            uint64_t seed = 0x123456789abcdef0u, layer = r == 3 ? 0xfedc : 3;
            const size_t each = r == 1 ? 17 : 1;
            ref->ops->dropout(ref, x, want, n, each, rates[r], seed, layer);
            RUN(dl2_gpu_dropout(element, lx, y, n, each, rates[r], seed, layer, state, NULL));
            void *rounded = low_precision(element, want, n, 0);
            (void)rounded;
            dl2_elements_to_floats(element, y, got, n);
            equal("dropout", got, want, n);
            free_all();
        }
}

static void gates(enum dl2_element element)
{
    static const struct dl2_gate_shape shapes[] = {
        {2, 3, 5}, {1, 1, 1}, {3, 1, 40}, {2, 17, 72}, {5, 9, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct dl2_gate_shape s = shapes[i];
        const size_t few = (size_t)s.batch * s.channels, n = few * s.rows;
        float *x = fresh(n), *g = fresh(few), *dy = fresh(n), *want = fresh(n),
              *dgates = fresh(few);
        void *lx = low_precision(element, x, n, 0), *lg = low_precision(element, g, few, 0);
        void *ldy = low_precision(element, dy, n, 0);
        void *y = room(element, n, 0), *small = room(element, few, 0);
        ref->ops->gate(ref, &s, x, g, want);
        RUN(dl2_gpu_gate(element, &s, lx, lg, y, NULL));
        near("gate", element, y, want, n, 1);
        ref->ops->gate_backward(ref, &s, x, g, dy, want, dgates);
        RUN(dl2_gpu_gate_backward(element, &s, lx, lg, ldy, y, small, NULL));
        near("gate backward", element, y, want, n, 1);
        near("gate's own gradient", element, small, dgates, few, 1);
        free_all();
    }
}

/* -- optimizer -- */

static void optimizer(enum dl2_element element)
{
    for (int variant = 0; variant < 8; variant++) {
        bool decays = variant & 1, nesterov = variant & 2;
        size_t n = variant & 4 ? 777 : 4096, misfit = variant & 4 ? 5 : 0;
        const struct dl2_step_params params = {
            .rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f};
        float *w = fresh(n), *g = fresh(n), *m = fresh(n);
        float *gw = copy_of(w, n, misfit), *gm = copy_of(m, n, misfit);
        float *gg = copy_of(g, n, misfit);
        const bool has_low_precision = !(variant & 4 && element == DL2_ELEMENT_F32);
        void *image = room(element, n, misfit);
        const struct dl2_optimizer_step on_card = {
            DL2_SGD, decays, nesterov, n, gw, has_low_precision ? image : NULL, gg, gm, NULL};
        for (size_t i = 0; i < n; i++)
            gg[i] *= 256 * 2; /* a loss scale of 256, two ranks */
        *state = (struct dl2_gpu_state){.loss_scale.scale = 256};
        RUN(dl2_gpu_set_step_params(state, &params, NULL));
        ref->ops->set_step_params(ref, &params);
        for (int step = 0; step < 2; step++) {
            ref->ops->optimizer_step(ref, &(struct dl2_optimizer_step){DL2_SGD, decays, nesterov, n,
                                                                       w, NULL, g, m, NULL});
            RUN(dl2_gpu_check_gradients(gg, n, state, NULL));
            RUN(dl2_gpu_update(element, &on_card, 2, state, NULL));
            RUN(dl2_gpu_end_update(state, NULL));
        }
        near("weights", DL2_ELEMENT_F32, gw, w, n, 1);
        near("momentum", DL2_ELEMENT_F32, gm, m, n, 1);
        if (has_low_precision)
            near("low-precision weights", element, image, w, n, 1);

        /* One that isn't finite, anywhere, and nothing moves. */
        memcpy(w, gw, n * sizeof *w);
        gg[n - 1 - (size_t)variant] = variant & 2 ? NAN : -INFINITY;
        RUN(dl2_gpu_check_gradients(gg, n, state, NULL));
        assert_int_equal(state->overflow, 1);
        RUN(dl2_gpu_update(element, &on_card, 2, state, NULL));
        equal("weights that stay", gw, w, n);
        RUN(dl2_gpu_end_update(state, NULL));
        assert_int_equal(state->overflow, 0);
        assert_int_equal(state->loss_scale.skipped, 1);
        free_all();
    }
}

static void two_moments_step(enum dl2_optimizer kind, enum dl2_element element, int variant)
{
    const bool decays = variant & 1;
    const size_t n = variant & 2 ? 777 : 4096, misfit = variant & 2 ? 5 : 0;
    const bool has_low_precision = !(variant & 2 && element == DL2_ELEMENT_F32);
    struct dl2_step_params params = {
        .rate = 0.01f, .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-4f, .weight_decay = 0.1f};
    float *w = fresh(n), *g = fresh(n), *m = fresh(n), *v = fresh(n);
    memset(m, 0, n * sizeof *m);
    memset(v, 0, n * sizeof *v);
    float *gw = copy_of(w, n, misfit), *gm = copy_of(m, n, misfit);
    float *gv = copy_of(v, n, misfit), *gg = copy_of(g, n, misfit);
    void *image = room(element, n, misfit);
    const struct dl2_optimizer_step on_card = {
        kind, decays, false, n, gw, has_low_precision ? image : NULL, gg, gm, gv};
    for (size_t i = 0; i < n; i++)
        gg[i] *= 256 * 2; /* a loss scale of 256, two ranks */
    *state = (struct dl2_gpu_state){.loss_scale.scale = 256};
    for (int step = 1; step <= 4; step++) {
        const bool spoilt = step == 2; /* left out, and not counted */
        const float whole = gg[n - 1];
        params.update = (uint64_t)(step - (step > 2));
        ref->ops->set_step_params(ref, &params);
        params.update = (uint64_t)step;
        RUN(dl2_gpu_set_step_params(state, &params, NULL));
        gg[n - 1] = spoilt ? -INFINITY : whole;
        if (!spoilt)
            ref->ops->optimizer_step(
                ref, &(struct dl2_optimizer_step){kind, decays, false, n, w, NULL, g, m, v});
        RUN(dl2_gpu_check_gradients(gg, n, state, NULL));
        RUN(dl2_gpu_update(element, &on_card, 2, state, NULL));
        RUN(dl2_gpu_end_update(state, NULL));
        gg[n - 1] = whole;
        near("weights", DL2_ELEMENT_F32, gw, w, n, 1);
        near("first moments", DL2_ELEMENT_F32, gm, m, n, 1);
        near("second moments", DL2_ELEMENT_F32, gv, v, n, 1);
        if (has_low_precision)
            near("low-precision weights", element, image, w, n, 1);
    }
    assert_int_equal(state->loss_scale.skipped, 1);
    free_all();
}

static void optimizers_of_two_moments(enum dl2_element element)
{
    for (int kind = 0; dl2_optimizer_words[kind]; kind++) {
        if (!dl2_optimizer_facts((enum dl2_optimizer)kind)->adaptive)
            continue;
        print_message("%s\n", dl2_optimizer_words[kind]);
        for (int variant = 0; variant < 4; variant++)
            two_moments_step((enum dl2_optimizer)kind, element, variant);
    }
}

static void clip(enum dl2_element element)
{
    if (element != DL2_ELEMENT_F32)
        return;
    static const size_t sizes[] = {1, 255, 4096, 256 * DL2_GPU_CLIP_PARTIALS + 777};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int misfit = 0; misfit < 6; misfit += 5) {
            const size_t n = sizes[i];
            float *g = fresh(n), *gg = copy_of(g, n, (size_t)misfit);
            float *partials = fresh(DL2_GPU_CLIP_PARTIALS);
            double squares = 0;
            for (size_t k = 0; k < n; k++) {
                squares += (double)g[k] * g[k];
                gg[k] *= 256 * 2; /* a loss scale of 256, two ranks */
            }
            *state = (struct dl2_gpu_state){.loss_scale.scale = 256};
            const float norm = (float)sqrt(squares);
            RUN(dl2_gpu_clip_gradients(gg, n, 1.01f * norm, 2, partials, state, NULL));
            for (size_t k = 0; k < n; k++)
                g[k] *= 256 * 2;
            equal("gradients within the limit", gg, g, n);
            RUN(dl2_gpu_clip_gradients(gg, n, norm / 8, 2, partials, state, NULL));
            for (size_t k = 0; k < n; k++)
                g[k] /= 8;
            near("clipped gradients", DL2_ELEMENT_F32, gg, g, n, 1);
            free_all();
        }
}

static void average(enum dl2_element element)
{
    if (element != DL2_ELEMENT_F32)
        return;
    for (int variant = 0; variant < 3; variant++) {
        const size_t n = variant ? 777 : 4096, misfit = variant == 2 ? 5 : 0;
        const struct dl2_step_params params = {.average_decay = 0.9f};
        float *values = copy_of(fresh(n), n, misfit), *want = fresh(n), *got = copy_of(want, n, 0);
        *state = (struct dl2_gpu_state){.loss_scale.scale = 1};
        RUN(dl2_gpu_set_step_params(state, &params, NULL));
        ref->ops->set_step_params(ref, &params);
        for (int step = 0; step < 3; step++) {
            ref->ops->move_average(ref, want, values, n);
            RUN(dl2_gpu_move_average(got, values, n, state, NULL));
        }
        near("averages", DL2_ELEMENT_F32, got, want, n, 1);
        free_all();
    }
}

static void loss_scale(enum dl2_element element)
{
    if (element != DL2_ELEMENT_F32)
        return;
    const struct dl2_loss_scale *scale = &state->loss_scale;
    *state = (struct dl2_gpu_state){.loss_scale.scale = 1024, .dynamic = 1, .overflow = 1};
    RUN(dl2_gpu_end_update(state, NULL));
    assert_true(scale->scale == 512 && scale->skipped == 1 && scale->good == 0);
    for (int i = 0; i < 1999; i++)
        RUN(dl2_gpu_end_update(state, NULL));
    assert_true(scale->scale == 512);
    RUN(dl2_gpu_end_update(state, NULL));
    assert_true(scale->scale == 1024 && scale->good == 0);
    state->dynamic = 0;
    state->overflow = 1;
    RUN(dl2_gpu_end_update(state, NULL));
    assert_true(scale->scale == 1024 && scale->skipped == 2);
}

/* -- ingest -- */

static void ingest(enum dl2_element element)
{
    static const struct dl2_ingest_shape shapes[] = {
        {5, 16, 16, 3, {122.655f, 116.535f, 104.04f}, {59.415f, 58.395f, 58.65f}},
        {3, 7, 5, 3, {122.655f, 116.535f, 104.04f}, {59.415f, 58.395f, 58.65f}},
        {4, 9, 8, 1, {33.3f, 0, 0}, {78.6f, 0, 0}},
        {2, 5, 5, 1, {33.3f, 0, 0}, {78.6f, 0, 0}},
    };
    static const uint32_t partner[] = {4, 0, 1, 1, 2};
    for (int i = 0; i < 4; i++)
        for (int mixes = 0; mixes < 2; mixes++) {
            struct dl2_ingest_shape s = shapes[i];
            struct dl2_error error = DL2_ERROR_INIT;
            struct dl2_ingest *plan = NULL;
            size_t n = (size_t)s.batch * s.height * s.width * s.channels;
            uint8_t *images = place(n, 0);
            uint32_t *other = place(s.batch * sizeof *other, 0);
            for (size_t k = 0; k < n; k++)
                images[k] = (uint8_t)dl2_random_u32(&random_stream);
            for (unsigned k = 0; k < s.batch; k++)
                other[k] = partner[k] % s.batch;
            float *want = fresh(n);
            void *y = room(element, n, 0);
            state->params.lambda = 0.3f;
            ref->ops->set_step_params(ref, &state->params);
            assert_int_equal(ref->ops->ingest_create(ref, &s, &plan, &error), DL2_OK);
            ref->ops->ingest_run(plan, images, mixes ? other : NULL, want);
            RUN(dl2_gpu_ingest(element, &s, images, mixes ? other : NULL, y, state, NULL));
            near("ingest", element, y, want, n, 1);
            dl2_device_plan_free(plan);
            free_all();
        }
    for (unsigned width = 8; width <= 9; width++) { /* whole vectors, and not */
        const struct dl2_ingest_shape s = {
            .batch = 3, .height = 5, .width = width, .channels = 1, .floats = true};
        const size_t n = (size_t)s.batch * s.height * s.width;
        float *want = fresh(n);
        void *y = room(element, n, 0);
        RUN(dl2_gpu_ingest(element, &s, want, NULL, y, state, NULL));
        near("ingest of floats", element, y, want, n, 1);
        free_all();
    }
}

/* -- loss -- */

static void loss_case(enum dl2_element element, unsigned batch, unsigned classes, bool mixes,
                      float smoothing, int missing)
{
    struct dl2_loss_shape s = {batch, classes, smoothing};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss *plan = NULL;
    size_t n = (size_t)batch * classes;
    float *logits = fresh(n), *want = fresh(n), *losses = fresh(batch), *got = fresh(batch);
    int32_t *labels = place(batch * sizeof *labels, 0);
    uint32_t *partner = place(batch * sizeof *partner, 0);
    for (unsigned i = 0; i < batch; i++) {
        labels[i] = missing == 2 || (missing == 1 && i % 3 == 1)
                        ? -1
                        : (int32_t)dl2_random_below(&random_stream, classes);
        partner[i] = (i * 7 + 3) % batch;
    }
    for (size_t i = 0; i < n; i++) /* some are equal, some large */
        logits[i] = i % 5 ? logits[i] * 6 : 2;
    void *l = low_precision(element, logits, n, 0), *d = room(element, n, 0);
    struct dl2_loss_sums sums = {1, 2, 3, 4}, *other = place(sizeof *other, 0);
    *other = sums;
    struct dl2_gpu_sample_loss *each = place(batch * sizeof *each, 0);
    state->params = (struct dl2_step_params){.lambda = 0.7f, .scale = 0.5f};
    state->loss_scale.scale = 8;
    const struct dl2_step_params params = {.lambda = 0.7f, .scale = 4};
    ref->ops->set_step_params(ref, &params);
    assert_int_equal(ref->ops->loss_create(ref, &s, &plan, &error), DL2_OK);
    ref->ops->loss_run(plan, logits, labels, mixes ? partner : NULL, losses, want, &sums);
    RUN(dl2_gpu_loss(element, &s, l, labels, mixes ? partner : NULL, got, d, other, each, state,
                     NULL));
    near("losses", DL2_ELEMENT_F32, got, losses, batch, 1);
    near("dlogits", element, d, want, n, 1);
    assert_true(fabs(sums.loss - other->loss) <= 1e-5 * fabs(sums.loss));
    assert_int_equal(sums.counted, other->counted);
    assert_int_equal(sums.top1, other->top1);
    assert_int_equal(sums.top5, other->top5);
    digest(&other->loss, sizeof other->loss);
    /* Without what may be left out. */
    RUN(dl2_gpu_loss(element, &s, l, labels, mixes ? partner : NULL, NULL, NULL, other, each, state,
                     NULL));
    assert_int_equal(other->counted, 2 * sums.counted - 2);
    dl2_device_plan_free(plan);
    free_all();
}

/* A sample with a NAN is neither in top1 nor in top5. */
static void loss_of_no_number(enum dl2_element element)
{
    const struct dl2_loss_shape s = {3, 3, 0};
    const float values[] = {NAN, 0, 0, 0, 1, NAN, 0, 1, 0};
    float *logits = fresh(9);
    int32_t *labels = place(3 * sizeof *labels, 0);
    struct dl2_loss_sums *sums = place(sizeof *sums, 0);
    struct dl2_gpu_sample_loss *each = place(3 * sizeof *each, 0);
    memcpy(logits, values, sizeof values);
    for (int i = 0; i < 3; i++)
        labels[i] = i > 0;
    *sums = (struct dl2_loss_sums){.loss = 0};
    RUN(dl2_gpu_loss(element, &s, low_precision(element, logits, 9, 0), labels, NULL, NULL, NULL,
                     sums, each, state, NULL));
    assert_true(sums->counted == 3 && sums->top1 == 1 && sums->top5 == 1);
    free_all();
}

static void loss(enum dl2_element element)
{
    loss_of_no_number(element);
    for (int mixes = 0; mixes < 2; mixes++)
        for (int missing = 0; missing < 3; missing++) {
            loss_case(element, 13, 10, mixes, 0.1f, missing);
            loss_case(element, 3, 1000, mixes, 0, missing);
            loss_case(element, 200, 3, mixes, 0.2f, missing);
            loss_case(element, 1, 1, false, 0.1f, missing);
        }
}

/* -- pooling -- */

static void pool(enum dl2_element element)
{
    static const struct dl2_pool_shape shapes[] = {
        {DL2_POOL_MAX, 2, {1, 12, 11}, 16, {1, 6, 6}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}},
        {DL2_POOL_MAX, 2, {1, 9, 7}, 5, {1, 4, 3}, {1, 3, 3}, {1, 2, 2}, {0, 0, 0}},
        {DL2_POOL_MAX, 1, {1, 8, 8}, 24, {1, 4, 4}, {1, 2, 2}, {1, 2, 2}, {0, 0, 0}},
        {DL2_POOL_MAX, 1, {1, 7, 7}, 8, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}},
        {DL2_POOL_MAX, 1, {1, 16, 16}, 8, {1, 1, 1}, {1, 16, 16}, {1, 1, 1}, {0, 0, 0}},
        {DL2_POOL_ADAPTIVE_AVERAGE, 3, {1, 7, 7}, 64, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, {0, 0, 0}},
        {DL2_POOL_ADAPTIVE_AVERAGE, 2, {1, 7, 10}, 8, {1, 3, 4}, {1, 0, 0}, {1, 0, 0}, {0, 0, 0}},
        {DL2_POOL_ADAPTIVE_AVERAGE, 2, {1, 3, 4}, 5, {1, 6, 7}, {1, 0, 0}, {1, 0, 0}, {0, 0, 0}},
        {DL2_POOL_MAX, 2, {5, 6, 7}, 16, {2, 3, 3}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}},
        {DL2_POOL_MAX, 1, {4, 7, 6}, 5, {4, 4, 3}, {3, 3, 2}, {1, 2, 2}, {1, 1, 0}},
        {DL2_POOL_ADAPTIVE_AVERAGE, 2, {4, 5, 3}, 16, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
        {DL2_POOL_ADAPTIVE_AVERAGE, 1, {5, 3, 4}, 3, {3, 2, 5}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct dl2_pool_shape *s = &shapes[i];
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_pool *plan = NULL;
        size_t in = (size_t)s->batch * s->in.depth * s->in.height * s->in.width * s->channels;
        size_t out = (size_t)s->batch * s->out.depth * s->out.height * s->out.width * s->channels;
        float *x = fresh(in), *dy = fresh(out), *want = fresh(out), *dwant = fresh(in);
        for (size_t k = 0; k < in; k += 3) /* ties, and windows of negative numbers */
            x[k] = -2;
        void *lx = low_precision(element, x, in, 0), *ldy = low_precision(element, dy, out, 0);
        void *y = room(element, out, 0), *dx = room(element, in, 0);
        uint8_t *winner = place(s->kind == DL2_POOL_MAX ? out : 0, 0);
        assert_int_equal(ref->ops->pool_create(ref, s, &plan, &error), DL2_OK);
        ref->ops->pool_forward(plan, x, want);
        ref->ops->pool_backward(plan, dy, dwant);
        RUN(dl2_gpu_pool(element, s, lx, y, winner, NULL));
        near("pool", element, y, want, out, 1);
        RUN(dl2_gpu_pool_backward(element, s, ldy, winner, dx, NULL));
        near("pool_backward", element, dx, dwant, in, 1);
        dl2_device_plan_free(plan);
        free_all();
    }
}

/* -- sums over rows, bias -- */

static void columns(enum dl2_element element)
{
    static const struct {
        size_t rows;
        unsigned channels;
    } shapes[] = {{1, 1}, {37, 5}, {1000, 16}, {9, 2048}, {5, 2056}, {700, 72}, {4200, 8}};
    for (int i = 0; i < 7; i++) {
        size_t rows = shapes[i].rows, n = rows * shapes[i].channels;
        unsigned channels = shapes[i].channels;
        float *x = fresh(n), *want = fresh(channels), *bias = fresh(channels);
        void *lx = low_precision(element, x, n, 0);
        float *partials = place(dl2_gpu_partials(channels) * sizeof *partials, 0);
        float *got = place(channels * sizeof *got, 0);
        for (unsigned c = 0; c < channels; c++) {
            double sum = 0;
            for (size_t r = 0; r < rows; r++)
                sum += x[r * channels + c];
            want[c] = (float)sum;
        }
        RUN(dl2_gpu_column_sums(element, lx, rows, channels, partials, got, false, NULL));
        near("column sums", DL2_ELEMENT_F32, got, want, channels, 1);
        RUN(dl2_gpu_column_sums(element, lx, rows, channels, partials, got, true, NULL));
        for (unsigned c = 0; c < channels; c++)
            want[c] *= 2;
        near("column sums, accumulated", DL2_ELEMENT_F32, got, want, channels, 1);
        RUN(dl2_gpu_add_bias(element, bias, lx, rows, channels, DL2_IDENTITY, NULL));
        for (size_t k = 0; k < n; k++)
            x[k] += bias[k % channels];
        near("bias", element, lx, x, n, 1);
        RUN(dl2_gpu_add_bias(element, bias, lx, rows, channels, DL2_RELU, NULL));
        for (size_t k = 0; k < n; k++)
            x[k] = fmaxf(x[k] + bias[k % channels], 0);
        near("bias and ReLU", element, lx, x, n, 2);
        free_all();
    }
}

/* -- batch norm -- */

struct norm_case {
    size_t rows;
    unsigned channels;
    enum dl2_activation activation;
    bool residual, two, accumulate, in_place;
    float offset; /* of the means */
};

static void norm_one(enum dl2_element element, const struct norm_case *test, bool evaluates)
{
    struct dl2_norm_shape s = {.rows = test->rows,
                               .channels = test->channels,
                               .epsilon = 1e-5f,
                               .momentum = 0.1f,
                               .activation = test->activation,
                               .residual = test->residual};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_norm *plan = NULL;
    size_t n = s.rows * s.channels, size = dl2_element_size(element);
    unsigned c = s.channels;
    float *x = fresh(n), *residual = fresh(n), *dy = fresh(n), *dy2 = fresh(n), *y = fresh(n);
    float *gamma = fresh(c), *beta = fresh(c), *mean = fresh(c), *var = fresh(c);
    float *dx = fresh(n), *dresidual = fresh(n), *dgamma = fresh(c), *dbeta = fresh(c);
    for (size_t i = 0; i < n; i++)
        x[i] += test->offset * (float)(1 + i % c % 5);
    for (unsigned i = 0; i < c; i++) {
        gamma[i] += test->activation == DL2_RELU6 ? 9 : 1.5f;
        var[i] += 2;
    }
    void *lx = low_precision(element, x, n, 0), *lr = low_precision(element, residual, n, 0);
    void *ldy = low_precision(element, dy, n, 0), *ldy2 = low_precision(element, dy2, n, 0);
    void *gy = room(element, n, 0), *gdx = room(element, n, 0), *gdr = room(element, n, 0);
    float *partials = place(dl2_gpu_partials(c) * sizeof *partials, 0);
    float *moments = place(2 * c * sizeof *moments, 0), *kept = place(2 * c * sizeof *kept, 0);
    float *sums = place(2 * c * sizeof *sums, 0);
    float *two_calls = place(2 * c * sizeof *two_calls, 0);
    float *gmean = copy_of(mean, c, 0), *gvar = copy_of(var, c, 0);
    float *gdgamma = copy_of(dgamma, c, 0), *gdbeta = copy_of(dbeta, c, 0);
    if (!test->residual)
        residual = NULL, lr = NULL, dresidual = NULL, gdr = NULL;
    if (!test->two)
        dy2 = NULL, ldy2 = NULL;

    assert_int_equal(ref->ops->norm_create(ref, &s, &plan, &error), DL2_OK);
    if (evaluates) {
        ref->ops->norm_eval(plan, x, residual, gamma, beta, mean, var, y);
        RUN(dl2_gpu_norm_keep_running(gmean, gvar, &s, kept, NULL));
        RUN(dl2_gpu_norm_apply(element, &s, lx, lr, gamma, beta, kept, gy, NULL, NULL));
        near("norm, evaluated", element, gy, y, n, 2);
        dl2_device_plan_free(plan);
        free_all();
        return;
    }
    ref->ops->norm_train(plan, x, residual, gamma, beta, mean, var, y);
    RUN(dl2_gpu_norm_moments(element, lx, s.rows, c, partials, moments, NULL));
    RUN(dl2_gpu_norm_keep(moments, s.rows, &s, copy_of(gmean, c, 0), copy_of(gvar, c, 0), two_calls,
                          NULL));
    RUN(dl2_gpu_norm_statistics(element, &s, lx, partials, moments, gmean, gvar, kept, NULL));
    equal("statistics in one call", kept, two_calls, 2 * c);
    const bool masks = dl2_gpu_norm_masks(element, &s, lx, lr, gamma, beta, kept, gy);
    assert_int_equal(masks, test->residual && test->activation != DL2_IDENTITY && c % 8 == 0);
    uint8_t *mask = masks ? place(n * size / 16, 0) : NULL;
    RUN(dl2_gpu_norm_apply(element, &s, lx, lr, gamma, beta, kept, gy, mask, NULL));
    near("norm", element, gy, y, n, 2);
    near("running mean", DL2_ELEMENT_F32, gmean, mean, c, 1);
    near("running variance", DL2_ELEMENT_F32, gvar, var, c, 2);

    /* The reference's mask is that of the y that backward really gets. */
    dl2_elements_to_floats(element, gy, y, n);
    ref->ops->norm_backward(plan, x, y, dy, dy2, gamma, beta, dx, dresidual, dgamma, dbeta,
                            test->accumulate);
    if (test->in_place) { /* as the header allows it */
        gdr = gdr ? ldy : NULL;
        gdx = gdr && ldy2 ? ldy2 : gdr ? lx : ldy;
    }
    const struct dl2_gpu_norm_gradient g = {.shape = &s,
                                            .x = lx,
                                            .y = masks ? NULL : gy,
                                            .dy = ldy,
                                            .dy2 = ldy2,
                                            .mask = mask, /* takes the place of y */
                                            .gamma = gamma,
                                            .beta = beta,
                                            .kept = kept,
                                            .sums = sums,
                                            .dresidual = gdr};
    RUN(dl2_gpu_norm_backward_sums(element, &g, partials, gdgamma, gdbeta, test->accumulate, NULL));
    RUN(dl2_gpu_norm_backward_data(element, &g, s.rows, gdx, NULL));
    near("dgamma", DL2_ELEMENT_F32, gdgamma, dgamma, c, 2);
    near("dbeta", DL2_ELEMENT_F32, gdbeta, dbeta, c, 2);
    if (gdr)
        near("dresidual", element, gdr, dresidual, n, 1);
    near("dx", element, gdx, dx, n, 4);
    dl2_device_plan_free(plan);
    free_all();
}

static void norm(enum dl2_element element)
{
    static const struct norm_case cases[] = {
        {200, 16, DL2_RELU, false, false, false, false, 3},
        {200, 16, DL2_RELU, true, true, true, false, 3},
        {200, 16, DL2_RELU, true, true, false, true, 3},
        {200, 16, DL2_RELU, true, false, false, true, 3},
        {200, 16, DL2_RELU, false, true, false, true, 3},
        {200, 16, DL2_RELU6, true, false, false, false, 0.5f},
        {333, 24, DL2_RELU6, false, true, true, false, 0.5f},
        {97, 40, DL2_IDENTITY, false, false, false, false, 3},
        {97, 40, DL2_IDENTITY, true, true, false, false, 3},
        {61, 7, DL2_RELU, true, true, true, false, 3},
        {61, 7, DL2_RELU6, false, false, false, true, 3},
        {1, 8, DL2_IDENTITY, false, false, false, false, 1},
        {7, 1032, DL2_RELU, true, false, true, false, 1},
        {6000, 8, DL2_RELU, false, false, false, false, 30}, /* a mean far from 0 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int evaluates = 0; evaluates < 2; evaluates++)
            norm_one(element, &cases[i], evaluates);
}

/* Moments of two ranks, put together as the device does it, are those of the whole. */
static void norm_of_two_ranks(enum dl2_element element)
{
    enum { ROWS = 90, C = 12 };
    if (element != DL2_ELEMENT_F32)
        return;
    float *x = fresh(ROWS * C), *whole = fresh(2 * C), mean[C], squares[C];
    float *part[] = {fresh(2 * C), fresh(2 * C)}, *mean_there = fresh(C);
    float *partials = place(dl2_gpu_partials(C) * sizeof *partials, 0);
    for (int i = 0; i < ROWS * C; i++)
        x[i] += (float)(i % C) + (i < ROWS * C / 2 ? 5 : 0);
    RUN(dl2_gpu_norm_moments(DL2_ELEMENT_F32, x, ROWS, C, partials, whole, NULL));
    for (int rank = 0; rank < 2; rank++)
        RUN(dl2_gpu_norm_moments(DL2_ELEMENT_F32, x + rank * ROWS / 2 * C, ROWS / 2, C, partials,
                                 part[rank], NULL));
    for (int c = 0; c < C; c++)
        mean[c] = mean_there[c] = (part[0][c] + part[1][c]) / 2;
    for (int rank = 0; rank < 2; rank++)
        RUN(dl2_gpu_norm_recenter(part[rank], mean_there, ROWS / 2, C, NULL));
    for (int c = 0; c < C; c++)
        squares[c] = part[0][C + c] + part[1][C + c];
    near("mean", DL2_ELEMENT_F32, mean, whole, C, 1);
    near("squares", DL2_ELEMENT_F32, squares, whole + C, C, 1);
}

/* -- layer norm -- */

struct layer_norm_case {
    size_t rows;
    unsigned channels;
    size_t misfit; /* elements */
    bool accumulate, in_place;
    float offset; /* of the means */
};

static void layer_norm_one(enum dl2_element element, const struct layer_norm_case *test)
{
    const struct dl2_layer_norm_shape s = {
        .rows = test->rows, .channels = test->channels, .epsilon = 1e-5f};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_layer_norm *plan = NULL;
    const size_t n = s.rows * s.channels, c = s.channels, misfit = test->misfit;
    float *x = fresh(n), *dy = fresh(n), *y = fresh(n), *dx = fresh(n);
    float *gamma = fresh(c), *beta = fresh(c), *dgamma = fresh(c), *dbeta = fresh(c);
    for (size_t i = 0; i < n; i++)
        x[i] += test->offset * (float)(1 + i / c % 5);
    void *lx = low_precision(element, x, n, misfit), *ldy = low_precision(element, dy, n, misfit);
    void *gy = room(element, n, misfit), *gdx = test->in_place ? ldy : room(element, n, misfit);
    float *partials = place(dl2_gpu_partials(s.channels) * sizeof *partials, 0);
    float *kept = place(2 * s.rows * sizeof *kept, 0);
    float *gdgamma = copy_of(dgamma, c, 0), *gdbeta = copy_of(dbeta, c, 0);
    assert_int_equal(ref->ops->layer_norm_create(ref, &s, &plan, &error), DL2_OK);
    ref->ops->layer_norm_forward(plan, x, gamma, beta, y);
    ref->ops->layer_norm_backward(plan, x, dy, gamma, dx, dgamma, dbeta, test->accumulate);
    RUN(dl2_gpu_layer_norm(element, &s, lx, gamma, beta, kept, gy, NULL));
    /* One element or two of a row may be nearly equal, and what is left of them is all rounding. */
    const double loose = test->offset > 9 || c < 3 ? 40 : 4;
    near("layer norm", element, gy, y, n, loose);
    RUN(dl2_gpu_layer_norm_backward_sums(element, &s, lx, ldy, kept, partials, gdgamma, gdbeta,
                                         test->accumulate, NULL));
    RUN(dl2_gpu_layer_norm_backward_data(element, &s, lx, ldy, gamma, kept, gdx, NULL));
    near("layer norm's dgamma", DL2_ELEMENT_F32, gdgamma, dgamma, c, loose);
    near("layer norm's dbeta", DL2_ELEMENT_F32, gdbeta, dbeta, c, 1);
    if (c > 2) /* else it is 0, but for rounding */
        near("layer norm's dx", element, gdx, dx, n, loose);
    dl2_device_plan_free(plan);
    free_all();
}

static void layer_norm(enum dl2_element element)
{
    static const struct layer_norm_case cases[] = {
        {197, 192, 0, false, false, 0}, {17, 768, 0, true, true, 1}, {5, 8, 0, false, true, 0},
        {1, 264, 0, false, false, 3},   {33, 5, 0, true, false, 0},  {3, 1030, 0, false, true, 1},
        {9, 24, 1, false, false, 0},    {64, 4, 0, false, false, 0}, {2, 1, 0, false, false, 0},
        {7, 384, 0, false, false, 100}, {300, 8, 0, true, false, 0}, {1, 2, 0, true, true, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        layer_norm_one(element, &cases[i]);
}

/* -- softmax of scores, by plain C -- */

static void softmax_one(enum dl2_element element, size_t rows, unsigned count)
{
    const unsigned step = (count + 7) / 8 * 8;
    const size_t n = rows * step;
    const float scale = 0.125f;
    float *scores = fresh(n), *dp = fresh(n), *p = fresh(n), *ds = fresh(n);
    void *gp = room(element, n, 0);
    void *gds = element == DL2_ELEMENT_F32 ? dp : room(element, n, 0);
    float *rounded = place(n * sizeof *rounded, 0);
    for (size_t i = 0; i < n; i++) {
        const bool meant = i % step < count;
        scores[i] = !meant ? NAN : i / step % 3 == 1 ? scores[i] * 60 + 900 : scores[i] * 6;
        dp[i] = meant ? dp[i] : NAN;
    }
    for (size_t r = 0; r < rows; r++) {
        const float *s = scores + r * step;
        double highest = -INFINITY, sum = 0;
        for (unsigned c = 0; c < count; c++)
            highest = fmax(highest, s[c]);
        for (unsigned c = 0; c < count; c++)
            sum += exp(s[c] - highest);
        for (unsigned c = 0; c < step; c++)
            p[r * step + c] = c < count ? (float)(exp(s[c] - highest) / sum) : 0;
    }
    RUN(dl2_gpu_softmax(element, scores, rows, count, step, gp, NULL));
    near("softmax", element, gp, p, n, 1);
    dl2_elements_to_floats(element, gp, rounded, n); /* what backward gets */
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        for (unsigned c = 0; c < count; c++)
            sum += (double)rounded[r * step + c] * dp[r * step + c];
        for (unsigned c = 0; c < step; c++)
            ds[r * step + c] =
                c < count ? (float)(scale * rounded[r * step + c] * (dp[r * step + c] - sum)) : 0;
    }
    RUN(dl2_gpu_softmax_backward(element, gp, dp, rows, count, step, scale, gds, NULL));
    if (count > 1) /* else it is 0, but for rounding */
        near("softmax_backward", element, gds, ds, n, 1);
    dl2_elements_to_floats(element, gp, p, n);
    dl2_elements_to_floats(element, gds, ds, n);
    for (size_t i = 0; i < n; i++)
        if (i % step >= count)
            assert_true(p[i] == 0 && ds[i] == 0);
    free_all();
}

static void softmax(enum dl2_element element)
{
    static const unsigned counts_of_tokens[] = {1, 5, 8, 17, 197, 577};
    for (size_t i = 0; i < 6; i++)
        for (size_t rows = 1; rows < 60; rows = rows * 5 + 2)
            softmax_one(element, rows, counts_of_tokens[i]);
}

/* -- tokens -- */

static void tokens_one(enum dl2_element element, const struct dl2_tokens_shape *s, size_t misfit,
                       bool accumulate)
{
    const size_t c = s->channels, size = s->tokens * c, n = s->batch * size;
    const size_t patches = n - s->batch * c;
    float *x = fresh(patches), *y = fresh(n), *dy = fresh(n), *dx = fresh(patches);
    float *class_token = fresh(c), *positions = fresh(size);
    float *dclass = fresh(c), *dpositions = fresh(size);
    void *lx = low_precision(element, x, patches, misfit),
         *ldy = low_precision(element, dy, n, misfit);
    void *gy = room(element, n, misfit), *gdx = room(element, patches, misfit);
    float *gdclass = copy_of(dclass, c, 0), *gdpositions = copy_of(dpositions, size, 0);
    ref->ops->tokens_forward(ref, s, x, class_token, positions, y);
    ref->ops->tokens_backward(ref, s, dy, dx, dclass, dpositions, accumulate);
    RUN(dl2_gpu_tokens(element, s, lx, class_token, positions, gy, NULL));
    near("tokens", element, gy, y, n, 1);
    RUN(dl2_gpu_tokens_backward(element, s, ldy, gdx, gdclass, gdpositions, accumulate, NULL));
    near("tokens' dx", element, gdx, dx, patches, 0);
    near("dclass_token", DL2_ELEMENT_F32, gdclass, dclass, c, 1);
    near("dpositions", DL2_ELEMENT_F32, gdpositions, dpositions, size, 1);
    free_all();
}

static void tokens(enum dl2_element element)
{
    static const struct dl2_tokens_shape shapes[] = {{1, 1, 8},   {3, 5, 5},   {1, 17, 24},
                                                     {3, 197, 8}, {20, 5, 16}, {9, 2, 1}};
    for (size_t i = 0; i < 6; i++) {
        tokens_one(element, &shapes[i], 0, i % 2);
        tokens_one(element, &shapes[i], 1, i % 2 == 0);
    }
}

/* -- depthwise convolutions -- */

static void depthwise(enum dl2_element element)
{
    static const struct {
        unsigned batch, height, width, channels, stride, pad;
    } cases[] = {{2, 9, 8, 16, 1, 1}, {2, 9, 8, 24, 2, 1},  {1, 5, 6, 7, 1, 1},
                 {3, 7, 7, 5, 2, 0},  {1, 3, 3, 264, 1, 1}, {2, 12, 5, 8, 3, 2}};
    for (int i = 0; i < 6; i++) {
        unsigned c = cases[i].channels;
        struct dl2_conv_shape s = {.batch = cases[i].batch,
                                   .in.depth = 1,
                                   .in.height = cases[i].height,
                                   .in.width = cases[i].width,
                                   .in_channels = c,
                                   .out_channels = c,
                                   .kernel.depth = 1,
                                   .kernel.height = 3,
                                   .kernel.width = 3,
                                   .stride.depth = 1,
                                   .stride.height = cases[i].stride,
                                   .stride.width = cases[i].stride,
                                   .pad.height = cases[i].pad,
                                   .pad.width = cases[i].pad,
                                   .groups = c};
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_conv *plan = NULL;
        size_t in = (size_t)s.batch * s.in.height * s.in.width * c;
        size_t out = s.batch * dl2_sides_count(dl2_conv_out(&s)) * c;
        float *x = fresh(in), *w = fresh(9 * c), *dy = fresh(out);
        float *y = fresh(out), *dx = fresh(in), *dw = fresh(9 * c);
        void *lx = low_precision(element, x, in, 0), *lw = low_precision(element, w, 9 * c, 0);
        void *ldy = low_precision(element, dy, out, 0);
        void *gy = room(element, out, 0), *gdx = room(element, in, 0);
        float *gdw = place(9 * c * sizeof *gdw, 0);
        float *partials = place(dl2_gpu_partials(c) * sizeof *partials, 0);
        assert_true(dl2_gpu_depthwise(&s));
        assert_int_equal(ref->ops->conv_create(ref, &s, &plan, &error), DL2_OK);
        ref->ops->conv_forward(plan, x, w, NULL, y);
        ref->ops->conv_backward_data(plan, dy, w, dx);
        ref->ops->conv_backward_weights(plan, x, dy, dw, NULL, false);
        RUN(dl2_gpu_depthwise_forward(element, &s, lx, lw, gy, NULL));
        near("depthwise", element, gy, y, out, 1);
        RUN(dl2_gpu_depthwise_backward_data(element, &s, ldy, lw, gdx, NULL));
        near("depthwise backward data", element, gdx, dx, in, 1);
        RUN(dl2_gpu_depthwise_backward_weights(element, &s, lx, ldy, partials, gdw, false, NULL));
        near("depthwise backward weights", DL2_ELEMENT_F32, gdw, dw, 9 * c, 1);
        RUN(dl2_gpu_depthwise_backward_weights(element, &s, lx, ldy, partials, gdw, true, NULL));
        for (unsigned k = 0; k < 9 * c; k++)
            dw[k] *= 2;
        near("depthwise backward weights, accumulated", DL2_ELEMENT_F32, gdw, dw, 9 * c, 1);
        dl2_device_plan_free(plan);
        free_all();
    }
}

int main(void)
{
    static const struct kernels all[] = {
        {"elementwise", elementwise},
        {"dropout", dropout},
        {"gates", gates},
        {"optimizer", optimizer},
        {"two_moments", optimizers_of_two_moments},
        {"clip", clip},
        {"loss_scale", loss_scale},
        {"average", average},
        {"ingest", ingest},
        {"loss", loss},
        {"pool", pool},
        {"columns", columns},
        {"norm", norm},
        {"norm_of_two_ranks", norm_of_two_ranks},
        {"layer_norm", layer_norm},
        {"softmax", softmax},
        {"tokens", tokens},
        {"depthwise", depthwise},
    };
    enum { ALL = sizeof all / sizeof all[0] };
    struct CMUnitTest tests[ALL];
#ifdef DL2_CARD
    if (!dl2_gpu_present()) {
        puts("SKIP: there is no card here");
        return 77;
    }
#endif
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that a hang tells where */
    state = allocate(sizeof *state);
    for (size_t i = 0; i < ALL; i++)
        tests[i] =
            (struct CMUnitTest){all[i].name, both_orders, NULL, NULL, (void *)(uintptr_t)&all[i]};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    release(state);
    return failed;
}
