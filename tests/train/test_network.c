/*
 * Networks above the seam: whole ones against PyTorch's figures (vectors-*.txt, from
 * make_vectors.py) on every device, and what the interface promises.
 */
#include "common/memory.h"
#include "train/arch.h"
#include "train/graph.h"
#include "train/network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

/* As in make_vectors.py. */
static double fill(uint64_t k, uint64_t seed)
{
    return (double)((k * 7919 + seed * 104729) % 2003) / 1001.5 - 1;
}

static void ok(int status, const struct dl2_error *error)
{
    if (status)
        fail_msg("%s", error->message);
}

static struct dl2_device *opened(const struct dl2_device_class *ops, unsigned threads)
{
    struct dl2_error error = DL2_ERROR_INIT;
#ifdef __SANITIZE_THREAD__
    threads = 1; /* GCC's OpenMP runtime is not instrumented: its barriers look like races */
#endif
    struct dl2_device_options options = {.threads = threads};
    struct dl2_device *device = NULL;
    ok(ops->open(&options, &device, &error), &error);
    return device;
}

static struct dl2_network *made(struct dl2_device *device, const char *arch, unsigned pixels,
                                unsigned batch, unsigned classes)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network_config config = {.arch = arch,
                                        .batch = batch,
                                        .height = pixels,
                                        .width = pixels,
                                        .channels = 3,
                                        .classes = classes,
                                        .mean = {122, 116, 104},
                                        .std = {59, 58, 60},
                                        .smoothing = 0.1f,
                                        .seed = 5,
                                        .train = true};
    struct dl2_network *net = NULL;
    ok(dl2_network_create(device, &config, &net, &error), &error);
    return net;
}

enum { BATCH = 4, PIXELS = 8, BYTES = BATCH * PIXELS * PIXELS * 3 };
static const int32_t labels[BATCH] = {0, 2, 1, 2};
static uint8_t images[BYTES];

static double one_step(struct dl2_network *net, const struct dl2_network_input *input,
                       uint64_t number)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_network_step step = {number, 1, false, false};
    struct dl2_loss_sums sums;
    ok(dl2_network_train(net, input, &step, &error), &error);
    ok(dl2_network_take_sums(net, &sums, &error), &error);
    return sums.loss / (double)sums.counted;
}

/* The next line of the vectors must be `kind`, and `name` where not NULL; returns its numbers. */
static void expect_line(FILE *file, const char *kind, const char *name, double *a, double *b)
{
    char got_kind[32], got_name[64] = "";
    int count = name ? fscanf(file, "%31s %63s %lf %lf", got_kind, got_name, a, b)
                     : fscanf(file, "%31s %lf", got_kind, a);
    assert_int_equal(count, name ? 4 : 2);
    assert_string_equal(got_kind, kind);
    if (name)
        assert_string_equal(got_name, name);
}

/* `tolerance` is relative to the tensor's norm: floats here, doubles there. */
static void compare_digest(FILE *file, const char *kind, struct dl2_network *net, size_t index,
                           enum dl2_network_part part, double tolerance)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network_tensor tensor;
    double want, want_square, got = 0, square = 0, scale;
    dl2_network_tensor(net, index, &tensor);
    expect_line(file, kind, tensor.name, &want, &want_square);
    float *values = dl2_calloc(tensor.count, sizeof *values);
    assert_non_null(values);
    ok(dl2_network_get(net, index, part, values, &error), &error);
    for (size_t k = 0; k < tensor.count; k++) {
        got += values[k] * fill(k, 7);
        square += (double)values[k] * values[k];
    }
    free(values);
    scale = sqrt(want_square) + 1e-6;
    if (fabs(got - want) > tolerance * scale ||
        fabs(sqrt(square) - sqrt(want_square)) > tolerance * scale)
        fail_msg("%s of %s: %.9g %.9g, not %.9g %.9g", kind, tensor.name, got, square, want,
                 want_square);
}

/* values_within: after three steps, through which a deep network's rounding grows. */
static void compare_with_pytorch(const char *arch, unsigned pixels, double values_within)
{
    const struct dl2_device_class *ops;
    const size_t bytes = (size_t)BATCH * pixels * pixels * 3;
    uint8_t *noise = dl2_calloc(bytes, 1);
    assert_non_null(noise);
    for (size_t i = 0; i < bytes; i++)
        noise[i] = (uint8_t)((fill(i, 99) + 1) * 127);
    for (size_t d = 0; (ops = dl2_device_at(d)); d++) {
        struct dl2_error error = DL2_ERROR_INIT;
        if (ops->present && !ops->present()) {
            print_message("not on %s, which isn't here\n", ops->name);
            continue;
        }
        struct dl2_device *device = opened(ops, 2);
        struct dl2_network *net = made(device, arch, pixels, BATCH, 3);
        size_t tensors = dl2_network_tensor_count(net);
        for (size_t i = 0; i < tensors; i++) {
            struct dl2_network_tensor t;
            dl2_network_tensor(net, i, &t);
            float *values = dl2_calloc(t.count, sizeof *values);
            assert_non_null(values);
            double spread = sqrt(2 / (double)(t.count / t.dims[0]));
            bool around_one = strstr(t.name, "running_var") ||
                              (strstr(t.name, ".bn") && strstr(t.name, ".weight"));
            for (size_t k = 0; k < t.count; k++)
                values[k] = (float)(t.rank > 1   ? spread * fill(k, i + 1)
                                    : around_one ? 1 + 0.25 * fill(k, i + 1)
                                                 : 0.1 * fill(k, i + 1));
            ok(dl2_network_set(net, i, DL2_NETWORK_VALUE, values, &error), &error);
            free(values);
        }
        char path[4096];
        const char *srcdir = getenv("srcdir");
        snprintf(path, sizeof path, "%s/tests/train/vectors-%s.txt", srcdir ? srcdir : ".", arch);
        FILE *file = fopen(path, "r");
        if (!file)
            fail_msg("%s is missing", path);
        const struct dl2_network_input input = {noise, labels, BATCH, NULL, 1};
        const struct dl2_sgd sgd = {0.01f, 0.9f, 0.01f, true};
        double want;
        for (uint64_t step = 0; step < 3; step++) {
            double loss = one_step(net, &input, step);
            expect_line(file, "loss", NULL, &want, NULL);
            if (fabs(loss - want) > (step ? values_within / 20 : 1e-5))
                fail_msg("%s, step %d: loss %.9g, not %.9g", ops->name, (int)step, loss, want);
            for (size_t i = 0; step == 0 && i < tensors; i++) {
                struct dl2_network_tensor t;
                dl2_network_tensor(net, i, &t);
                if (t.parameter)
                    compare_digest(file, "gradient", net, i, DL2_NETWORK_GRADIENT, 2e-4);
            }
            ok(dl2_network_update(net, &sgd, &error), &error);
        }
        for (size_t i = 0; i < tensors; i++)
            compare_digest(file, "value", net, i, DL2_NETWORK_VALUE, values_within);
        struct dl2_loss_sums sums;
        ok(dl2_network_evaluate(net, &input, &error), &error);
        ok(dl2_network_take_sums(net, &sums, &error), &error);
        expect_line(file, "evaluation", NULL, &want, NULL);
        assert_true(fabs(sums.loss / BATCH - want) < 1e-4);
        fclose(file);
        dl2_network_destroy(net);
        dl2_device_close(device);
    }
    free(noise);
}

static void convnet_as_in_pytorch(void **state)
{
    (void)state;
    compare_with_pytorch("convnet", PIXELS, 2e-4);
}

/* Residual blocks, with and without a projection. */
static void resnet20_as_in_pytorch(void **state)
{
    (void)state;
    compare_with_pytorch("resnet20", 16, 1e-3);
}

/* All values after two steps; `count` floats to free. */
static float *trained(struct dl2_device *device, const char *arch, unsigned pixels, size_t *count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network *net = made(device, arch, pixels, BATCH, 3);
    uint8_t *large = dl2_calloc((size_t)BATCH * pixels * pixels, 3);
    assert_non_null(large);
    for (size_t i = 0; i < (size_t)BATCH * pixels * pixels * 3; i++)
        large[i] = (uint8_t)((fill(i, 3) + 1) * 127);
    const struct dl2_sgd sgd = {0.05f, 0.9f, 0.01f, true};
    for (unsigned step = 0; step < 2; step++) {
        const struct dl2_network_input input = {large, labels, BATCH - step, NULL, 1};
        one_step(net, &input, step);
        ok(dl2_network_update(net, &sgd, &error), &error);
    }
    float *all = NULL;
    *count = 0;
    for (size_t i = 0; i < dl2_network_tensor_count(net); i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        all = dl2_realloc(all, *count + t.count, sizeof *all);
        assert_non_null(all);
        ok(dl2_network_get(net, i, DL2_NETWORK_VALUE, all + *count, &error), &error);
        *count += t.count;
    }
    free(large);
    dl2_network_destroy(net);
    return all;
}

static void two_runs_are_the_same_bits(void **state)
{
    (void)state;
    const struct dl2_device_class *ops = dl2_device_default();
    for (unsigned threads = 1; threads <= 2; threads++) {
        size_t count, again_count;
        struct dl2_device *device = opened(ops, threads);
        float *first = trained(device, "resnet20", 16, &count);
        float *again = trained(device, "resnet20", 16, &again_count);
        assert_int_equal(count, again_count);
        assert_memory_equal(first, again, count * sizeof *first);
        free(first);
        free(again);
        dl2_device_close(device);
    }
}

/* The same batch twice at half the loss's scale gives the gradient of once. */
static void micro_batches_add_up(void **state)
{
    (void)state;
    const struct dl2_device_class *ops;
    for (size_t d = 0; (ops = dl2_device_at(d)); d++) {
        struct dl2_error error = DL2_ERROR_INIT;
        if (ops->present && !ops->present()) {
            print_message("not on %s, which isn't here\n", ops->name);
            continue;
        }
        struct dl2_device *device = opened(ops, 2);
        struct dl2_network *net = made(device, "convnet", PIXELS, BATCH, 3);
        struct dl2_network_tensor t;
        const struct dl2_network_input input = {images, labels, BATCH, NULL, 1};
        size_t last = dl2_network_tensor_count(net) - 2;
        dl2_network_tensor(net, last, &t);
        float *once = dl2_calloc(t.count, sizeof *once),
              *twice = dl2_calloc(t.count, sizeof *twice);
        one_step(net, &input, 0);
        ok(dl2_network_get(net, last, DL2_NETWORK_GRADIENT, once, &error), &error);
        for (int i = 0; i < 2; i++) {
            const struct dl2_network_step half = {0, 0.5f, i > 0, false};
            ok(dl2_network_train(net, &input, &half, &error), &error);
        }
        ok(dl2_network_get(net, last, DL2_NETWORK_GRADIENT, twice, &error), &error);
        for (size_t k = 0; k < t.count; k++)
            assert_true(fabsf(once[k] - twice[k]) < 1e-5f);
        free(once);
        free(twice);
        dl2_network_destroy(net);
        dl2_device_close(device);
    }
}

/* Names and counts as torchvision has them. */
static void architectures(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        unsigned pixels;
        size_t parameters;
        const char *name;
        unsigned dims[4];
    } known[] = {
        {"alexnet", 64, 61100840, "classifier.1.weight", {4096, 9216}},
        {"resnet18", 32, 11689512, "layer2.0.downsample.0.weight", {128, 64, 1, 1}},
        {"resnet34", 32, 21797672, "layer3.5.bn2.running_var", {256}},
        {"resnet50", 32, 25557032, "layer4.2.conv3.weight", {2048, 512, 1, 1}},
        {"resnet101", 32, 44549160, "layer3.22.bn3.bias", {1024}},
        {"resnet152", 32, 60192808, "layer3.35.conv2.weight", {256, 256, 3, 3}},
        {"vgg16", 32, 138357544, "features.28.bias", {512}},
        {"vgg16_bn", 32, 138365992, "features.41.running_mean", {512}},
        {"mobilenet_v2", 32, 3504872, "features.17.conv.1.0.weight", {960, 1, 3, 3}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_graph graph = {.arch = known[i].arch, .batch = 1, .train = true};
        const struct dl2_arch *arch = dl2_arch_at(0);
        for (size_t a = 0; arch && strcmp(arch->name, known[i].arch) != 0; a++)
            arch = dl2_arch_at(a);
        assert_non_null(arch);
        graph.error = &error;
        int first = dl2_graph_images(&graph, known[i].pixels, known[i].pixels, 3);
        graph.logits = arch->build(&graph, first, 1000);
        ok(dl2_graph_plan(&graph, 4), &error);
        size_t parameters = 0;
        const struct dl2_tensor *found = NULL;
        for (size_t k = 0; k < graph.tensor_count; k++) {
            const struct dl2_tensor *t = &graph.tensors[k];
            parameters += t->parameter ? t->count : 0;
            found = strcmp(t->name, known[i].name) ? found : t;
        }
        assert_int_equal(parameters, known[i].parameters);
        assert_non_null(found);
        assert_memory_equal(found->dims, known[i].dims, sizeof found->dims);
        dl2_graph_free(&graph);
    }
}

static void what_makes_no_sense(void **state)
{
    (void)state;
    struct dl2_device *device = opened(dl2_device_default(), 1);
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network *net = NULL;
    config.arch = "resnet9000";
    assert_int_equal(dl2_network_create(device, &config, &net, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "resnet18"));
    dl2_error_clear(&error);
    config.arch = "alexnet";
    config.height = config.width = 32;
    assert_int_equal(dl2_network_create(device, &config, &net, &error), DL2_ERR_ARGUMENT);
    dl2_error_clear(&error);
    net = made(device, "convnet", PIXELS, BATCH, 3);
    const int32_t wrong[BATCH] = {0, 1, 3, 0};
    const uint32_t partner[BATCH] = {0, 1, 4, 2};
    const struct dl2_network_step step = {0, 1, false, false};
    const struct dl2_network_input inputs[] = {{images, wrong, BATCH, NULL, 1},
                                               {images, labels, BATCH + 1, NULL, 1},
                                               {images, labels, 0, NULL, 1},
                                               {images, labels, BATCH, partner, 0.5f}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dl2_network_train(net, &inputs[i], &step, &error), DL2_ERR_ARGUMENT);
        dl2_error_clear(&error);
    }
    dl2_network_destroy(net);
    dl2_device_close(device);
}

int main(void)
{
    for (uint64_t i = 0; i < BYTES; i++)
        images[i] = (uint8_t)((fill(i, 99) + 1) * 127);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convnet_as_in_pytorch),
        cmocka_unit_test(resnet20_as_in_pytorch),
        cmocka_unit_test(two_runs_are_the_same_bits),
        cmocka_unit_test(micro_batches_add_up),
        cmocka_unit_test(architectures),
        cmocka_unit_test(what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
