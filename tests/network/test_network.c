/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks above the seam: whole ones against PyTorch's figures (vectors-*.txt, from
 * make_vectors.py) on every device, and what the interface promises.
 */
#include "common/memory.h"
#include "network/arch.h"
#include "network/graph.h"
#include "network/network.h"
#include "tests/unit.h"

#include <math.h>

/* As in make_vectors.py. */
static double fill(uint64_t k, uint64_t seed)
{
    return (double)((k * 7919 + seed * 104729) % 2003) / 1001.5 - 1;
}

static struct dl2_device *opened(const struct dl2_device_class *ops, unsigned threads)
{
    struct dl2_error error = DL2_ERROR_INIT;
#ifdef __SANITIZE_THREAD__
    threads = 1; /* GCC's OpenMP runtime is not instrumented: its barriers look like races */
#endif
    struct dl2_device_options options = {.threads = threads};
    struct dl2_device *device = NULL;
    expect_ok(ops->open(&options, &device, &error), &error);
    return device;
}

/* The next device that is here, opened with two threads, or NULL. `at` starts at 0. */
static struct dl2_device *next_device(size_t *at)
{
    const struct dl2_device_class *ops;
    while ((ops = dl2_device_at((*at)++))) {
        if (!ops->present || ops->present())
            return opened(ops, 2);
        print_message("not on %s, which isn't here\n", ops->name);
    }
    return NULL;
}

static struct dl2_network_config config_of(const char *arch, unsigned pixels, unsigned batch,
                                           unsigned classes)
{
    return (struct dl2_network_config){.arch = arch,
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
}

static struct dl2_network *created(struct dl2_device *device,
                                   const struct dl2_network_config *config)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network *net = NULL;
    expect_ok(dl2_network_create(device, config, &net, &error), &error);
    return net;
}

static struct dl2_network *made(struct dl2_device *device, const char *arch, unsigned pixels,
                                unsigned batch, unsigned classes)
{
    const struct dl2_network_config config = config_of(arch, pixels, batch, classes);
    return created(device, &config);
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
    expect_ok(dl2_network_train(net, input, &step, &error), &error);
    expect_ok(dl2_network_take_sums(net, &sums, &error), &error);
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
    expect_ok(dl2_network_get(net, index, part, values, &error), &error);
    for (size_t k = 0; k < tensor.count; k++) {
        got += values[k] * fill(k, 7);
        square += (double)values[k] * values[k];
    }
    free(values);
    /* That of a bias before batch norm is 0, but for rounding. */
    scale = sqrt(want_square) + (tensor.rank == 1 ? 1e-2 : 1e-6);
    if (fabs(got - want) > tolerance * scale ||
        fabs(sqrt(square) - sqrt(want_square)) > tolerance * scale)
        fail_msg("%s of %s: %.9g %.9g, not %.9g %.9g", kind, tensor.name, got, square, want,
                 want_square);
}

/* As make_vectors.py's fill_state(). */
static void fill_network(struct dl2_network *net, bool unet)
{
    struct dl2_error error = DL2_ERROR_INIT;
    for (size_t i = 0; i < dl2_network_tensor_count(net); i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        float *values = dl2_calloc(t.count, sizeof *values);
        assert_non_null(values);
        double spread = sqrt(2 / (double)(t.count / t.dims[0]));
        const bool weight = strstr(t.name, ".weight"), bias = strstr(t.name, ".bias");
        const bool around_one = strstr(t.name, "running_var") ||
                                ((strstr(t.name, ".bn") || strstr(t.name, "conv")) && weight);
        for (size_t k = 0; k < t.count; k++) {
            double value = t.rank > 1   ? spread * fill(k, i + 1)
                           : around_one ? 1 + 0.25 * fill(k, i + 1)
                                        : 0.1 * fill(k, i + 1);
            if (unet && t.rank == 1 && weight)
                value *= 0.15;
            else if (unet && bias)
                value += k % 2 ? -1 : 1;
            values[k] = (float)value;
        }
        expect_ok(dl2_network_set(net, i, DL2_NETWORK_VALUE, values, &error), &error);
        free(values);
    }
}

/* make_vectors.py's train(). */
static void train(FILE *file, const char *what, struct dl2_network *net,
                  const struct dl2_network_input *input, const struct dl2_update *update,
                  uint64_t steps, bool gradients, double tolerance)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const size_t tensors = dl2_network_tensor_count(net);
    double want;
    for (uint64_t step = 0; step < steps; step++) {
        double loss = one_step(net, input, step);
        expect_line(file, "loss", NULL, &want, NULL);
        if (fabs(loss - want) > 1e-5)
            fail_msg("%s, step %d: loss %.9g, not %.9g", what, (int)step, loss, want);
        for (size_t i = 0; step == 0 && gradients && i < tensors; i++) {
            struct dl2_network_tensor t;
            dl2_network_tensor(net, i, &t);
            if (t.parameter)
                compare_digest(file, "gradient", net, i, DL2_NETWORK_GRADIENT, tolerance);
        }
        expect_ok(dl2_network_update(net, update, &error), &error);
    }
    for (size_t i = 0; i < tensors; i++)
        compare_digest(file, "value", net, i, DL2_NETWORK_VALUE, tolerance);
}

/* The ways of training that follow in convnet's vectors. */
static void other_ways(FILE *file, struct dl2_device *device, const struct dl2_network_input *input)
{
    static const struct {
        const char *name;
        enum dl2_optimizer optimizer;
        struct dl2_update update;
        bool freeze;
    } ways[] = {
        {"rmsprop",
         DL2_RMSPROP,
         {.rate = 1e-3f, .momentum = 0.5f, .weight_decay = 0.01f, .beta2 = 0.9f, .epsilon = 1e-2f},
         false},
        {"clip",
         DL2_SGD,
         {.rate = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f, .clip = 0.25f},
         false},
        {"freeze", DL2_SGD, {.rate = 0.2f, .momentum = 0.9f, .weight_decay = 0.01f}, true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_network_config config = config_of("convnet", PIXELS, BATCH, 3);
        double unused;
        config.optimizer = ways[i].optimizer;
        struct dl2_network *net = created(device, &config);
        fill_network(net, false);
        expect_ok(dl2_network_freeze(net, ways[i].freeze, &error), &error);
        expect_line(file, ways[i].name, NULL, &unused, NULL);
        train(file, ways[i].name, net, input, &ways[i].update, 3, false, 2e-4);
        dl2_network_destroy(net);
    }
}

/* Those of make_vectors.py; the caller frees them. */
static int32_t *labels_for(const struct dl2_network *net, unsigned batch)
{
    const struct dl2_label_shape shape = dl2_network_labels(net);
    const size_t count = batch * dl2_label_count(&shape);
    int32_t *all = dl2_calloc(count, sizeof *all);
    assert_non_null(all);
    for (size_t k = 0; k < count; k++)
        all[k] = shape.kind == DL2_LABEL_CLASS ? labels[k]
                 : k % 11 == 3                 ? -1
                                               : (int32_t)((k / 5 + k / 37) % 3);
    return all;
}

/* The confusion of the last evaluation must count the pixels that the sums do. */
static void check_confusion(struct dl2_network *net, const struct dl2_loss_sums *sums)
{
    struct dl2_error error = DL2_ERROR_INIT;
    uint64_t matrix[9], all = 0;
    const struct dl2_label_shape shape = dl2_network_labels(net);
    if (shape.kind == DL2_LABEL_CLASS) {
        assert_int_equal(dl2_network_take_confusion(net, matrix, &error), DL2_ERR_ARGUMENT);
        return;
    }
    expect_ok(dl2_network_take_confusion(net, matrix, &error), &error);
    for (int i = 0; i < 9; i++)
        all += matrix[i];
    assert_true(all == sums->counted);
    assert_true(matrix[0] + matrix[4] + matrix[8] == sums->top1);
}

/* `frames` 0: of images. `quick`: on fast devices alone. `tolerance`: as compare_digest()'s. */
static void compare_with_pytorch(const char *arch, unsigned frames, unsigned pixels, uint64_t steps,
                                 unsigned batch, bool quick, double tolerance)
{
    struct dl2_device *device;
    const size_t bytes = (size_t)batch * (frames ? frames : 1) * pixels * pixels * 3;
    uint8_t *noise = dl2_calloc(bytes, 1);
    assert_non_null(noise);
    for (size_t i = 0; i < bytes; i++)
        noise[i] = (uint8_t)((fill(i, 723) + 1) * 127); /* as in make_vectors.py */
    unsigned compared = 0;
    for (size_t at = 0; (device = next_device(&at)); dl2_device_close(device)) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_network_config config = config_of(arch, pixels, batch, 3);
        if (quick && !strcmp(device->ops->name, "ref"))
            continue;
        compared++;
        config.frames = frames;
        struct dl2_network *net = created(device, &config);
        fill_network(net, strstr(arch, "unet"));
        int32_t *own = labels_for(net, batch);
        char path[4096];
        const char *srcdir = getenv("srcdir");
        snprintf(path, sizeof path, "%s/tests/network/vectors-%s.txt", srcdir ? srcdir : ".", arch);
        FILE *file = fopen(path, "r");
        if (!file)
            fail_msg("%s is missing", path);
        const struct dl2_network_input input = {noise, own, batch, NULL, 1};
        const struct dl2_update update = {0.01f, 0.9f, 0.01f, true};
        double want;
        train(file, device->ops->name, net, &input, &update, steps, true, tolerance);
        struct dl2_loss_sums sums;
        expect_ok(dl2_network_evaluate(net, &input, &error), &error);
        expect_ok(dl2_network_take_sums(net, &sums, &error), &error);
        expect_line(file, "evaluation", NULL, &want, NULL);
        assert_true(fabs(sums.loss / (double)sums.counted - want) < 1e-4);
        check_confusion(net, &sums);
        if (strcmp(arch, "convnet") == 0)
            other_ways(file, device, &input);
        fclose(file);
        free(own);
        dl2_network_destroy(net);
    }
    free(noise);
    if (!compared) {
        print_message("%s takes device ref too long, and there is no other\n", arch);
        skip();
    }
}

static void convnet_as_in_pytorch(void **state)
{
    compare_with_pytorch("convnet", 0, PIXELS, 3, BATCH, false, 2e-4);
}

/* Residual blocks, with and without a projection. One step: in the next, how sums are rounded
 * decides on the sign of some ReLU's input, which changes gradients by percents. */
static void resnet20_as_in_pytorch(void **state)
{
    compare_with_pytorch("resnet20", 0, 16, 1, BATCH, false, 2e-4);
}

/* Clips: 3-D convolutions with biases, ELU, pooling over time, too. */
static void convcolumn_as_in_pytorch(void **state)
{
    compare_with_pytorch("convcolumn", 8, 16, 1, BATCH, false, 2e-4);
}

/* Masks: transposed convolutions, skip connections, cross-entropy of pixels some of which have no
 * label. */
static void unet_as_in_pytorch(void **state)
{
    compare_with_pytorch("unet", 0, 16, 1, BATCH, false, 2e-4);
}

/* Volumes: the same in 3-D, instance norm, the Dice loss. */
static void unet3d_as_in_pytorch(void **state)
{
    compare_with_pytorch("unet3d_small", 32, 64, 1, 1, true, 2e-4);
}

/* Floats that are normalized already are what a network makes of bytes; they may be of any number
 * of channels. */
static void floats_are_not_normalized(void **state)
{
    enum { COUNT = BATCH * PIXELS * PIXELS * 3 };
    static uint8_t bytes[COUNT];
    static float values[2 * COUNT];
    struct dl2_device *device;
    for (size_t at = 0; (device = next_device(&at)); dl2_device_close(device)) {
        double losses[3];
        for (int way = 0; way < 3; way++) {
            struct dl2_error error = DL2_ERROR_INIT;
            struct dl2_network_config config = config_of("convnet", PIXELS, BATCH, 3);
            struct dl2_loss_sums sums;
            for (size_t i = 0; i < COUNT; i++) {
                bytes[i] = (uint8_t)(i * 37 % 251);
                values[i] = ((float)bytes[i] - config.mean[i % 3]) / config.std[i % 3];
            }
            config.floats = way;
            config.channels = way == 2 ? 6 : 3;
            struct dl2_network *net = created(device, &config);
            fill_network(net, false);
            const struct dl2_network_input input = {way ? (const void *)values : bytes, labels,
                                                    BATCH, NULL, 1};
            expect_ok(dl2_network_evaluate(net, &input, &error), &error);
            expect_ok(dl2_network_take_sums(net, &sums, &error), &error);
            losses[way] = sums.loss / (double)sums.counted;
            dl2_network_destroy(net);
        }
        assert_true(fabs(losses[0] - losses[1]) < 1e-5 * losses[0]);
        assert_true(isfinite(losses[2]));
    }
}

/* Networks for images and clips refuse each other's, and clips that are too short, by name. */
static void clips_and_images(void **state)
{
    static const struct {
        const char *arch;
        unsigned frames, pixels;
        const char *says;
    } cases[] = {{"convcolumn", 0, 32, "convcolumn sees clips: choose a network for images"},
                 {"resnet10", 8, 32, "resnet10 sees single images: choose a network for clips"},
                 {"convcolumn", 7, 32, "clips of 7 frames of 32x32 are too small for convcolumn"},
                 {"convcolumn", 8, 12, "clips of 8 frames of 12x12 are too small for convcolumn"},
                 {"unet", 8, 16, "unet sees single images"},
                 {"unet", 0, 24, "images of 24x24 do not fit unet"},
                 {"unet3d", 0, 32, "unet3d sees clips: choose a network for images"},
                 {"unet3d_small", 16, 32, "volumes of 16x32x32 do not fit unet3d_small"}};
    struct dl2_device *device = opened(dl2_device_at(0), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_network *net = NULL;
        struct dl2_network_config config = config_of(cases[i].arch, cases[i].pixels, BATCH, 3);
        config.frames = cases[i].frames;
        assert_int_equal(dl2_network_create(device, &config, &net, &error), DL2_ERR_ARGUMENT);
        if (!strstr(error.message, cases[i].says))
            fail_msg("%s, not %s", error.message, cases[i].says);
    }
    dl2_device_close(device);
}

/* All of one part, tensor after tensor; *count (may be NULL): how much. */
static float *all_of(struct dl2_network *net, enum dl2_network_part part, size_t *count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    float *all = NULL;
    size_t total = 0;
    for (size_t i = 0; i < dl2_network_tensor_count(net); i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        all = dl2_realloc(all, total + t.count, sizeof *all);
        assert_non_null(all);
        expect_ok(dl2_network_get(net, i, part, all + total, &error), &error);
        total += t.count;
    }
    if (count)
        *count = total;
    return all;
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
    const struct dl2_update update = {0.05f, 0.9f, 0.01f, true};
    for (unsigned step = 0; step < 2; step++) {
        const struct dl2_network_input input = {large, labels, BATCH - step, NULL, 1};
        one_step(net, &input, step);
        expect_ok(dl2_network_update(net, &update, &error), &error);
    }
    float *all = all_of(net, DL2_NETWORK_VALUE, count);
    free(large);
    dl2_network_destroy(net);
    return all;
}

static void two_runs_are_the_same_bits(void **state)
{
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

/* Only the targets are mixed of images that are mixed already: with share 0, the loss is that of
 * the same images with their partners' labels. */
static void pasted_images_are_not_blended(void **state)
{
    static const uint32_t partner[BATCH] = {1, 2, 3, 0};
    const int32_t theirs[BATCH] = {labels[1], labels[2], labels[3], labels[0]};
    const struct dl2_network_input inputs[] = {{images, theirs, BATCH, NULL, 1},
                                               {images, labels, BATCH, partner, 0, true},
                                               {images, labels, BATCH, partner, 0, false}};
    const struct dl2_device_class *ops;
    double losses[3];
    for (size_t d = 0; (ops = dl2_device_at(d)); d++) {
        if (ops->present && !ops->present())
            continue;
        struct dl2_device *device = opened(ops, 2);
        for (int i = 0; i < 3; i++) {
            struct dl2_network *net = made(device, "convnet", PIXELS, BATCH, 3);
            losses[i] = one_step(net, &inputs[i], 0);
            dl2_network_destroy(net);
        }
        assert_float_equal(losses[0], losses[1], 1e-6);
        assert_true(fabs(losses[0] - losses[2]) > 1e-3);
        dl2_device_close(device);
    }
}

static double evaluated(struct dl2_network *net, const struct dl2_network_input *input)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss_sums sums;
    expect_ok(dl2_network_evaluate(net, input, &error), &error);
    expect_ok(dl2_network_take_sums(net, &sums, &error), &error);
    return sums.loss / (double)sums.counted;
}

/* Averages follow weights and running statistics, stand in for them, and
 * go again without a trace. */
static void averages(struct dl2_device *device)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network_config config = config_of("convnet", PIXELS, BATCH, 3);
    config.average = true;
    struct dl2_network *net = created(device, &config);
    const struct dl2_network_input input = {images, labels, BATCH, NULL, 1};
    const float decays[] = {0, 0.25f, 0.75f};
    size_t count;
    float *want = all_of(net, DL2_NETWORK_VALUE, &count);
    for (unsigned n = 0; n < 3; n++) {
        const struct dl2_update update = {0.1f, 0.9f, 0.01f, false, decays[n]};
        one_step(net, &input, n);
        expect_ok(dl2_network_update(net, &update, &error), &error);
        float *values = all_of(net, DL2_NETWORK_VALUE, NULL);
        for (size_t i = 0; i < count; i++)
            want[i] = decays[n] * want[i] + (1 - decays[n]) * values[i];
        free(values);
    }
    float *weights = all_of(net, DL2_NETWORK_VALUE, NULL);
    float *average = all_of(net, DL2_NETWORK_AVERAGE, NULL);
    for (size_t i = 0; i < count; i++)
        assert_true(fabsf(average[i] - want[i]) <= 1e-6f * (1 + fabsf(want[i])));

    const double own = evaluated(net, &input);
    expect_ok(dl2_network_use_average(net, true, &error), &error);
    expect_ok(dl2_network_use_average(net, true, &error), &error);
    const double averaged = evaluated(net, &input);
    assert_true(fabs(own - averaged) > 1e-3);
    float *shown = all_of(net, DL2_NETWORK_VALUE, NULL);
    assert_memory_equal(shown, average, count * sizeof *shown);
    const struct dl2_network_step step = {3, 1, false, false};
    assert_int_equal(dl2_network_train(net, &input, &step, &error), DL2_ERR_ARGUMENT);
    dl2_error_clear(&error);
    expect_ok(dl2_network_use_average(net, false, &error), &error);
    assert_true(fabs(evaluated(net, &input) - own) < 1e-6);
    free(shown);
    shown = all_of(net, DL2_NETWORK_VALUE, NULL);
    assert_memory_equal(shown, weights, count * sizeof *shown);
    dl2_network_destroy(net);

    /* A network that has the averages for weights says the same; it keeps none itself. */
    net = made(device, "convnet", PIXELS, BATCH, 3);
    for (size_t i = 0, at = 0; i < dl2_network_tensor_count(net); i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        expect_ok(dl2_network_set(net, i, DL2_NETWORK_VALUE, average + at, &error), &error);
        at += t.count;
    }
    assert_true(fabs(evaluated(net, &input) - averaged) < 1e-6);
    assert_false(dl2_network_has(net, 0, DL2_NETWORK_AVERAGE));
    assert_int_equal(dl2_network_use_average(net, true, &error), DL2_ERR_ARGUMENT);
    dl2_error_clear(&error);
    assert_int_equal(dl2_network_get(net, 0, DL2_NETWORK_AVERAGE, shown, &error), DL2_ERR_ARGUMENT);
    dl2_error_clear(&error);
    dl2_network_destroy(net);
    free(want);
    free(weights);
    free(average);
    free(shown);
}

static void averages_stand_in(void **state)
{
    struct dl2_device *device;
    for (size_t at = 0; (device = next_device(&at)); dl2_device_close(device))
        averages(device);
    /* Where layers read an image of the weights. */
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_device_options options = {.precision = DL2_PRECISION_BF16};
    expect_ok(dl2_device_open("ref", &options, &device, &error), &error);
    averages(device);
    dl2_device_close(device);
}

/* The same batch twice at half the loss's scale gives the gradient of once. */
static void micro_batches_add_up(void **state)
{
    struct dl2_device *device;
    for (size_t at = 0; (device = next_device(&at)); dl2_device_close(device)) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_network *net = made(device, "convnet", PIXELS, BATCH, 3);
        struct dl2_network_tensor t;
        const struct dl2_network_input input = {images, labels, BATCH, NULL, 1};
        size_t last = dl2_network_tensor_count(net) - 2;
        dl2_network_tensor(net, last, &t);
        float *once = dl2_calloc(t.count, sizeof *once),
              *twice = dl2_calloc(t.count, sizeof *twice);
        one_step(net, &input, 0);
        expect_ok(dl2_network_get(net, last, DL2_NETWORK_GRADIENT, once, &error), &error);
        for (int i = 0; i < 2; i++) {
            const struct dl2_network_step half = {0, 0.5f, i > 0, false};
            expect_ok(dl2_network_train(net, &input, &half, &error), &error);
        }
        expect_ok(dl2_network_get(net, last, DL2_NETWORK_GRADIENT, twice, &error), &error);
        for (size_t k = 0; k < t.count; k++)
            assert_true(fabsf(once[k] - twice[k]) < 1e-5f);
        free(once);
        free(twice);
        dl2_network_destroy(net);
    }
}

/*
 * A training of all kinds of calls, over and over: two batch sizes, mixup, several micro-batches,
 * evaluation in between. Losses of all of them, then logits, into `out`; returns how many.
 */
enum { ROUNDS = 4, FIGURES = ROUNDS * 5 + BATCH * 3 };

static const struct learner {
    const char *arch;
    enum dl2_optimizer optimizer;
    struct dl2_update update;
    unsigned rounds; /* at most ROUNDS; in the second, what was recorded in the first runs again */
} learners[] = {
    {"convnet", DL2_SGD, {0.001f, 0.9f, 0.001f, true, 0, 0, 0, 0}, ROUNDS},
    {"vit_tiny", DL2_ADAMW, {1e-5f, 0.9f, 0.05f, false, 0, 0.99f, 1e-8f, 0}, 2},
};

static size_t all_kinds(struct dl2_device *device, const struct learner *learner, double *out)
{
    static const uint32_t partner[BATCH] = {3, 0, 1, 2};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network_config config = config_of(learner->arch, PIXELS, BATCH, 3);
    config.optimizer = learner->optimizer;
    struct dl2_network *net = created(device, &config);
    struct dl2_update update = learner->update;
    uint8_t other[BYTES];
    size_t count = 0;
    for (uint64_t round = 0; round < learner->rounds; round++) {
        for (size_t i = 0; i < BYTES; i++)
            other[i] = (uint8_t)(images[i] + 16 * round);
        const struct dl2_network_input plain = {images, labels, BATCH, NULL, 1};
        const struct dl2_network_input fewer = {other, labels, BATCH - 1, NULL, 1};
        const struct dl2_network_input mixed = {other, labels, BATCH, partner,
                                                0.6f + 0.1f * (float)round};
        const struct {
            const struct dl2_network_input *input;
            struct dl2_network_step step;
        } calls[] = {{&plain, {4 * round, 1, false, false}},
                     {&mixed, {4 * round + 1, 1, false, false}},
                     {&fewer, {4 * round + 2, 0.5f, false, true}},
                     {&mixed, {4 * round + 3, 0.5f, true, false}}};
        for (int i = 0; i < 4; i++) {
            struct dl2_loss_sums sums;
            expect_ok(dl2_network_train(net, calls[i].input, &calls[i].step, &error), &error);
            update.number += !calls[i].step.more;
            if (!calls[i].step.more)
                expect_ok(dl2_network_update(net, &update, &error), &error);
            expect_ok(dl2_network_take_sums(net, &sums, &error), &error);
            out[count++] = sums.loss / (double)sums.counted;
        }
        /* Without a look in between, as a trainer has it. */
        expect_ok(dl2_network_evaluate(net, &fewer, &error), &error);
        expect_ok(dl2_network_evaluate(net, &plain, &error), &error);
        struct dl2_loss_sums sums;
        expect_ok(dl2_network_take_sums(net, &sums, &error), &error);
        assert_int_equal(sums.counted, 2 * BATCH - 1);
        out[count++] = sums.loss / (double)sums.counted;
    }
    float logits[BATCH * 3];
    expect_ok(dl2_network_last(net, NULL, logits, &error), &error);
    for (int i = 0; i < BATCH * 3; i++)
        out[count++] = logits[i];
    dl2_network_destroy(net);
    return count;
}

static void learn_alike(const struct learner *learner)
{
    /* Rounding moves weights that little, and the batches are small: lost labels move them more. */
    static const double within[] = {[DL2_PRECISION_FP32] = 1e-3,
                                    [DL2_PRECISION_TF32] = 5e-2,
                                    [DL2_PRECISION_BF16] = 0.12,
                                    [DL2_PRECISION_FP16] = 6e-2};
    double want[FIGURES], got[FIGURES];
    const struct dl2_device_class *ops;
    struct dl2_device *ref = opened(dl2_device_at(0), 1);
    const size_t figures = all_kinds(ref, learner, want);
    assert_true(figures > 0 && figures <= FIGURES);
    dl2_device_close(ref);
    for (size_t d = 0; (ops = dl2_device_at(d)); d++)
        for (int p = DL2_PRECISION_FP32; p <= DL2_PRECISION_FP16; p++) {
            struct dl2_error error = DL2_ERROR_INIT;
            const struct dl2_device_options options = {
                .threads = 1, .precision = (enum dl2_precision)p, .loss_scale = 1024};
            struct dl2_device *device;
            if (ops->present && !ops->present())
                continue;
            int status = ops->open(&options, &device, &error);
            if (status == DL2_ERR_UNSUPPORTED && p != DL2_PRECISION_FP32)
                continue;
            expect_ok(status, &error);
            all_kinds(device, learner, got);
            for (size_t i = 0; i < figures; i++)
                if (!(fabs(got[i] - want[i]) < within[p]))
                    fail_msg("%s on %s, %s, figure %zu: %g, not %g", learner->arch, ops->name,
                             dl2_precision_name(p), i, got[i], want[i]);
            dl2_device_close(device);
        }
}

static void devices_and_precisions_learn_alike(void **state)
{
    for (size_t i = 0; i < sizeof learners / sizeof learners[0]; i++)
        learn_alike(&learners[i]);
}

/*
 * The reference with ears: what a network calls on a device that records, has two batches staged,
 * and little memory.
 */
static struct {
    struct dl2_device_class ops;
    const struct dl2_device_class *ref;
    bool recording;
    unsigned begun, replayed, freed, convs, backwards, ingests;
    const void *from; /* the images of the last ingest */
    size_t memory;    /* what a call may allocate at most */
} spy;

static void spy_upload(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    assert_false(spy.recording);
    spy.ref->upload(device, to, from, bytes);
}

static void spy_set_step_params(struct dl2_device *device, const struct dl2_step_params *params)
{
    assert_false(spy.recording);
    spy.ref->set_step_params(device, params);
}

static int spy_alloc(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error)
{
    assert_false(spy.recording);
    if (bytes > spy.memory)
        return dl2_error_set(error, DL2_ERR_MEMORY, "no memory");
    return spy.ref->alloc(device, bytes, out, error);
}

static void spy_conv_forward(struct dl2_conv *conv, const void *x, const void *weights,
                             const float *bias, void *y)
{
    spy.convs++;
    spy.ref->conv_forward(conv, x, weights, bias, y);
}

static void spy_conv_backward_weights(struct dl2_conv *conv, const void *x, const void *dy,
                                      float *dweights, float *dbias, bool accumulate)
{
    spy.backwards++;
    spy.ref->conv_backward_weights(conv, x, dy, dweights, dbias, accumulate);
}

static void spy_conv_backward_data(struct dl2_conv *conv, const void *dy, const void *weights,
                                   void *dx)
{
    spy.backwards++;
    spy.ref->conv_backward_data(conv, dy, weights, dx);
}

static void spy_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                              const void *dy2, const float *gamma, const float *beta, void *dx,
                              void *dresidual, float *dgamma, float *dbeta, bool accumulate)
{
    spy.backwards++;
    spy.ref->norm_backward(norm, x, y, dy, dy2, gamma, beta, dx, dresidual, dgamma, dbeta,
                           accumulate);
}

static void spy_ingest_run(struct dl2_ingest *ingest, const void *from, const uint32_t *partner,
                           void *y)
{
    assert_false(spy.recording);
    assert_ptr_not_equal(from, spy.from); /* the batch before may still be at work */
    spy.from = from;
    spy.ingests++;
    spy.ref->ingest_run(ingest, from, partner, y);
}

static bool spy_record_begin(struct dl2_device *device)
{
    assert_false(spy.recording);
    spy.recording = true;
    spy.begun++;
    return true;
}

static struct dl2_recording *spy_record_end(struct dl2_device *device)
{
    assert_true(spy.recording);
    spy.recording = false;
    return (struct dl2_recording *)&spy;
}

static void spy_replay(struct dl2_recording *recording)
{
    assert_ptr_equal(recording, &spy);
    spy.replayed++;
}

static void spy_recording_free(struct dl2_recording *recording)
{
    assert_ptr_equal(recording, &spy);
    spy.freed++;
}

static struct dl2_device *spied(void)
{
    struct dl2_device *device = opened(dl2_device_at(0), 1);
    memset(&spy, 0, sizeof spy);
    spy.ref = device->ops;
    spy.ops = *device->ops;
    spy.memory = SIZE_MAX;
    spy.ops.alloc = spy_alloc;
    spy.ops.upload = spy_upload;
    spy.ops.set_step_params = spy_set_step_params;
    spy.ops.conv_forward = spy_conv_forward;
    spy.ops.conv_backward_weights = spy_conv_backward_weights;
    spy.ops.conv_backward_data = spy_conv_backward_data;
    spy.ops.norm_backward = spy_norm_backward;
    spy.ops.ingest_run = spy_ingest_run;
    spy.ops.record_begin = spy_record_begin;
    spy.ops.record_end = spy_record_end;
    spy.ops.replay = spy_replay;
    spy.ops.recording_free = spy_recording_free;
    device->ops = &spy.ops;
    device->staging = 2;
    return device;
}

/* What is done a second time is recorded, and replayed from the third time on. */
static void steps_are_recorded(void **state)
{
    enum { CONVS = 6 }; /* of convnet */
    static const uint32_t partner[BATCH] = {3, 0, 1, 2};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *device = spied();
    struct dl2_network *net = made(device, "convnet", PIXELS, BATCH, 3);
    const struct dl2_network_input plain = {images, labels, BATCH, NULL, 1};
    const struct dl2_network_input mixed = {images, labels, BATCH, partner, 0.5f};
    const struct dl2_network_step steps[] = {{0, 1, false, false}, {1, 1, true, false}};
    unsigned kinds = 0, runs = 0;
    for (int evaluated = 0; evaluated < 2; evaluated++)
        for (int mix = 0; mix < 2 - evaluated; mix++)
            for (int accumulate = 0; accumulate < 2 - evaluated; accumulate++, kinds++)
                for (int time = 0; time < 5; time++, runs++) {
                    const struct dl2_network_input *input = mix ? &mixed : &plain;
                    if (evaluated)
                        expect_ok(dl2_network_evaluate(net, input, &error), &error);
                    else
                        expect_ok(dl2_network_train(net, input, &steps[accumulate], &error),
                                  &error);
                }
    assert_int_equal(kinds, 5);
    assert_int_equal(spy.ingests, runs);
    assert_int_equal(spy.begun, kinds);
    assert_int_equal(spy.replayed, 3 * kinds);
    assert_int_equal(spy.convs, 2 * kinds * CONVS);
    /* A batch of another size is another row of calls. */
    for (unsigned count = 1; count < BATCH; count++)
        for (int time = 0; time < 3; time++) {
            const struct dl2_network_input fewer = {images, labels, count, NULL, 1};
            expect_ok(dl2_network_evaluate(net, &fewer, &error), &error);
        }
    assert_int_equal(spy.begun, kinds + BATCH - 1);
    dl2_network_destroy(net);
    assert_int_equal(spy.freed, spy.begun);
    device->ops = spy.ref;
    dl2_device_close(device);
}

static bool same_part(struct dl2_network *net, size_t index, enum dl2_network_part part,
                      const float *values)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_network_tensor t;
    dl2_network_tensor(net, index, &t);
    float *now = dl2_calloc(t.count, sizeof *now);
    assert_non_null(now);
    expect_ok(dl2_network_get(net, index, part, now, &error), &error);
    const bool same = memcmp(now, values, t.count * sizeof *now) == 0;
    free(now);
    return same;
}

/* Frozen layers keep weights and statistics, bit for bit, and go nowhere backward; the last layer
 * learns. Nothing that was recorded before is replayed. */
static void frozen_layers_do_nothing_backward(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *device = spied();
    struct dl2_network_config config = config_of("convnet", PIXELS, BATCH, 3);
    config.optimizer = DL2_ADAMW;
    struct dl2_network *net = created(device, &config);
    const size_t tensors = dl2_network_tensor_count(net);
    const struct dl2_network_input input = {images, labels, BATCH, NULL, 1};
    struct dl2_update update = {
        .rate = 0.01f, .momentum = 0.9f, .weight_decay = 0.1f, .beta2 = 0.99f, .epsilon = 1e-8f};
    update.number = 1;
    one_step(net, &input, 0);
    expect_ok(dl2_network_update(net, &update, &error), &error);
    assert_int_equal(spy.backwards, 6 + 5 + 6); /* convolutions' weights and data, norms */
    float *before = all_of(net, DL2_NETWORK_VALUE, NULL);
    spy.backwards = spy.convs = 0;
    expect_ok(dl2_network_freeze(net, true, &error), &error);
    for (uint64_t step = 1; step < 3; step++) {
        update.number = step + 1;
        one_step(net, &input, step);
        expect_ok(dl2_network_update(net, &update, &error), &error);
    }
    assert_int_equal(spy.backwards, 0);
    assert_int_equal(spy.convs, 2 * 6); /* recorded apart from steps that train all layers */
    for (size_t i = 0, at = 0; i < tensors; i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        assert_int_equal(same_part(net, i, DL2_NETWORK_VALUE, before + at), i + 2 < tensors);
        at += t.count;
    }
    free(before);
    /* Another batch size, as the spy replays none: all learn again, from fresh moments. */
    const struct dl2_network_input fewer = {images, labels, BATCH - 1, NULL, 1};
    before = all_of(net, DL2_NETWORK_VALUE, NULL);
    expect_ok(dl2_network_freeze(net, false, &error), &error);
    expect_ok(dl2_network_forget_moments(net, &error), &error);
    for (size_t i = 0; i < tensors; i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        float *zeros = dl2_calloc(t.count, sizeof *zeros);
        assert_non_null(zeros);
        assert_true(!t.parameter || (same_part(net, i, DL2_NETWORK_MOMENTUM, zeros) &&
                                     same_part(net, i, DL2_NETWORK_SECOND_MOMENT, zeros)));
        free(zeros);
    }
    update.number = 1;
    one_step(net, &fewer, 3);
    expect_ok(dl2_network_update(net, &update, &error), &error);
    assert_int_equal(spy.backwards, 6 + 5 + 6);
    for (size_t i = 0, at = 0; i < tensors; i++) {
        struct dl2_network_tensor t;
        dl2_network_tensor(net, i, &t);
        assert_false(same_part(net, i, DL2_NETWORK_VALUE, before + at));
        at += t.count;
    }
    free(before);
    dl2_network_destroy(net);
    device->ops = spy.ref;
    dl2_device_close(device);
}

/* The weights of one size serve another, as they would in a network made for it; and back. */
static void sizes(struct dl2_device *device)
{
    enum { LARGE = 12, LARGE_BYTES = BATCH * LARGE * LARGE * 3 };
    struct dl2_error error = DL2_ERROR_INIT;
    uint8_t *large = dl2_calloc(LARGE_BYTES, 1);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (uint8_t)((fill(i, 31) + 1) * 127);
    struct dl2_network *one = made(device, "convnet", PIXELS, BATCH, 3);
    struct dl2_network *other = made(device, "convnet", LARGE, BATCH, 3);
    const struct dl2_network_input small = {images, labels, BATCH, NULL, 1};
    const struct dl2_network_input wide = {large, labels, BATCH, NULL, 1};
    const struct dl2_update update = {0.05f, 0.9f, 0.01f, true};
    const double untrained = evaluated(one, &small);
    for (unsigned step = 0; step < 3; step++) {
        expect_ok(dl2_network_use_size(one, LARGE, LARGE, &error), &error);
        assert_true(one_step(one, &wide, step) == one_step(other, &wide, step));
        expect_ok(dl2_network_update(one, &update, &error), &error);
        expect_ok(dl2_network_update(other, &update, &error), &error);
        expect_ok(dl2_network_use_size(one, PIXELS, PIXELS, &error), &error);
        evaluated(one, &small);
    }
    size_t count;
    float *got = all_of(one, DL2_NETWORK_VALUE, &count);
    float *want = all_of(other, DL2_NETWORK_VALUE, NULL);
    assert_memory_equal(got, want, count * sizeof *got);
    assert_true(fabs(evaluated(one, &small) - untrained) > 1e-3);
    expect_ok(dl2_network_use_size(other, PIXELS, PIXELS, &error), &error);
    assert_true(evaluated(one, &small) == evaluated(other, &small));
    /* A third takes the second's place, which comes again; what is too small leaves its own. */
    expect_ok(dl2_network_use_size(one, LARGE + 4, LARGE + 4, &error), &error);
    expect_ok(dl2_network_use_size(one, LARGE, LARGE, &error), &error);
    one_step(one, &wide, 3);
    assert_int_equal(dl2_network_use_size(one, 4, 4, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "4x4"));
    dl2_error_clear(&error);
    evaluated(one, &small);
    dl2_network_destroy(one);
    dl2_network_destroy(other);
    one = made(device, "vit_tiny", 16, BATCH, 3);
    assert_int_equal(dl2_network_use_size(one, 24, 24, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "vit_tiny"));
    dl2_error_clear(&error);
    dl2_network_destroy(one);
    free(got);
    free(want);
    free(large);
}

static void one_network_of_two_sizes(void **state)
{
    struct dl2_device *device;
    for (size_t at = 0; (device = next_device(&at)); dl2_device_close(device))
        sizes(device);
}

/* Nothing else is tried, as plans can take minutes, and nothing stays behind. */
static void a_batch_that_does_not_fit_is_named(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *device = spied();
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    struct dl2_network *net = NULL;
    config.arch = "convnet";
    config.batch = 300;
    config.height = config.width = PIXELS;
    spy.memory = 3 << 20;
    assert_int_equal(dl2_network_create(device, &config, &net, &error), DL2_ERR_MEMORY);
    assert_null(net);
    assert_non_null(strstr(error.message, "a batch of 300 does not fit"));
    spy.memory = SIZE_MAX;
    expect_ok(dl2_network_create(device, &config, &net, NULL), &error);
    dl2_network_destroy(net);
    device->ops = spy.ref;
    dl2_device_close(device);
}

/* Names and counts as torchvision has them. */
static void architectures(void **state)
{
    static const struct {
        const char *arch;
        unsigned pixels;
        size_t parameters;
        const char *name;
        size_t dims[DL2_NETWORK_DIMS];
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
        {"resnext50_32x4d", 32, 25028904, "layer4.0.conv2.weight", {1024, 32, 3, 3}},
        {"resnext101_32x8d", 32, 88791336, "layer1.0.conv2.weight", {256, 8, 3, 3}},
        {"seresnext50_32x4d", 32, 27559896, "layer4.2.se.fc1.weight", {128, 2048, 1, 1}},
        {"efficientnet_b0", 32, 5288548, "features.6.0.block.2.fc1.weight", {28, 672, 1, 1}},
        {"efficientnet_lite0", 32, 4652008, "blocks.6.0.conv_dw.weight", {1152, 1, 3, 3}},
        {"densenet121", 32, 7978856, "features.norm5.running_mean", {1024}},
        {"squeezenet1_0", 32, 1248424, "features.12.squeeze.weight", {64, 512, 1, 1}},
        {"squeezenet1_1", 32, 1235496, "classifier.1.weight", {1000, 512, 1, 1}},
        {"vit_b_16", 224, 86567656, "encoder.pos_embedding", {1, 197, 768}},
        {"r3d_18", 112, 33679272, "stem.0.weight", {64, 3, 3, 7, 7}},
        {"convcolumn", 84, 9949800, "fc5.weight", {512, 12800}},
        {"unet", 32, 7796008, "up1.up.weight", {512, 256, 2, 2}},
        {"unet3d", 32, 31224872, "upsample.1.upsample_conv.0.weight", {320, 256, 2, 2, 2}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_graph graph = {.arch = known[i].arch, .batch = 1, .train = true};
        const struct dl2_arch *arch = dl2_arch_find(known[i].arch, &error);
        assert_non_null(arch);
        graph.error = &error;
        int first = dl2_graph_images(&graph, arch->frames, known[i].pixels, known[i].pixels, 3);
        graph.logits = arch->build(&graph, first, 1000);
        expect_ok(dl2_graph_plan(&graph, 4), &error);
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

/* The work of one image: torchvision's by its own count (GFLOPS of its models' pages, in
 * multiply-adds); ours by hand. */
static void work_is_counted(void **state)
{
    static const struct {
        const char *arch;
        unsigned pixels;
        double millions;
    } known[] = {
        {"alexnet", 224, 714},          {"resnet18", 224, 1814},
        {"resnet34", 224, 3664},        {"resnet50", 224, 4089},
        {"vgg16", 224, 15470},          {"mobilenet_v2", 224, 301},
        {"vit_b_16", 224, 17564},       {"resnet20", 32, 40.8},
        {"resnext50_32x4d", 224, 4230}, {"resnext101_32x8d", 224, 16414},
        {"efficientnet_b0", 224, 386},  {"densenet121", 224, 2834},
        {"squeezenet1_0", 224, 819},    {"squeezenet1_1", 224, 349},
        {"convnet", 64, 154.7}, /* 3.5 + 37.7 + 18.9 + 37.7 + 18.9 + 37.7 + 0.1 */
        {"resnet10", 64, 16.9},
    };
    double found[sizeof known / sizeof known[0]];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct dl2_arch *arch = dl2_arch_find(known[i].arch, NULL);
        found[i] = 1e-6 * dl2_arch_multiply_adds(arch, known[i].pixels);
        if (!(fabs(found[i] / known[i].millions - 1) < 5e-3))
            fail_msg("%s: %g million, not %g", known[i].arch, found[i], known[i].millions);
    }
    /* No summary claims a speed that the count contradicts. */
    for (size_t i = 0; dl2_arch_at(i); i++)
        assert_null(strstr(dl2_arch_at(i)->summary, "fast"));
}

/* The gradient of the images is the slope of the loss, by central differences of two gray levels on
 * either side. */
static void compare_slopes(struct dl2_network *net, const struct dl2_network_config *config)
{
    enum { STEP = 2 };
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_network_input input = {images, labels, BATCH, NULL, 1};
    float gradient[BYTES];
    double off = 0, all = 0;
    one_step(net, &input, 0);
    expect_ok(dl2_network_images_gradient(net, gradient, &error), &error);
    for (size_t i = 5; i < BYTES; i += 37) {
        const uint8_t kept = images[i];
        const int middle = kept < STEP ? STEP : kept > 255 - STEP ? 255 - STEP : kept;
        images[i] = (uint8_t)(middle + STEP);
        const double above = one_step(net, &input, 0);
        images[i] = (uint8_t)(middle - STEP);
        const double below = one_step(net, &input, 0);
        images[i] = kept;
        const double slope = (above - below) / (2 * STEP) * (double)config->std[i % 3];
        off += (slope - (double)gradient[i]) * (slope - (double)gradient[i]);
        all += slope * slope;
    }
    assert_true(all > 0);
    if (off > 0.05 * all)
        fail_msg("slopes differ from the gradient by %g of their squares", off / all);
    /* After an evaluation there is none. */
    expect_ok(dl2_network_evaluate(net, &input, &error), &error);
    assert_int_equal(dl2_network_images_gradient(net, gradient, &error), DL2_ERR_ARGUMENT);
}

static void images_have_gradients(void **state)
{
    struct dl2_device *device;
    struct dl2_network_config config = config_of("convnet", PIXELS, BATCH, 3);
    (void)state;
    for (size_t at = 0; (device = next_device(&at)); dl2_device_close(device))
        for (int with = 0; with < 2; with++) {
            struct dl2_error error = DL2_ERROR_INIT;
            const struct dl2_network_input input = {images, labels, BATCH, NULL, 1};
            float none;
            config.images_gradient = with;
            struct dl2_network *net = created(device, &config);
            fill_network(net, false);
            if (with) {
                compare_slopes(net, &config);
            } else {
                one_step(net, &input, 0);
                assert_int_equal(dl2_network_images_gradient(net, &none, &error), DL2_ERR_ARGUMENT);
            }
            dl2_network_destroy(net);
        }
}

/* How the loss changes along the gradient of the images, with samples and elements that are dropped
 * alike: what test_torchvision.sh, where nothing is dropped, does not see. */
static void gradients_of_what_is_kept(void **state)
{
    enum { SIDE = 64, COUNT = BATCH * SIDE * SIDE * 3 };
    static const char *const archs[] = {"efficientnet_b0", "squeezenet1_1", "seresnext50_32x4d"};
    static float at[COUNT], gradient[COUNT];
    const struct dl2_network_input input = {at, labels, BATCH, NULL, 1};
    (void)state;
    for (int a = 0; a < 3; a++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_device *device = opened(dl2_device_default(), 2);
        struct dl2_network_config config = config_of(archs[a], SIDE, BATCH, 3);
        double square = 0, losses[2];
        config.floats = config.images_gradient = true;
        struct dl2_network *net = created(device, &config);
        for (size_t i = 0; i < COUNT; i++)
            at[i] = (float)fill(i, 3);
        one_step(net, &input, 7);
        expect_ok(dl2_network_images_gradient(net, gradient, &error), &error);
        for (size_t i = 0; i < COUNT; i++)
            square += (double)gradient[i] * (double)gradient[i];
        for (int side = 0; side < 2; side++) {
            const double step = (side ? -1e-3 : 1e-3) / square;
            for (size_t i = 0; i < COUNT; i++)
                at[i] = (float)(fill(i, 3) + step * (double)gradient[i]);
            losses[side] = one_step(net, &input, 7);
        }
        assert_true(fabs((losses[0] - losses[1]) / 2e-3 - 1) < 0.04);
        dl2_network_destroy(net);
        dl2_device_close(device);
    }
}

static void what_makes_no_sense(void **state)
{
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
        cmocka_unit_test(convcolumn_as_in_pytorch),
        cmocka_unit_test(unet_as_in_pytorch),
        cmocka_unit_test(unet3d_as_in_pytorch),
        cmocka_unit_test(floats_are_not_normalized),
        cmocka_unit_test(clips_and_images),
        cmocka_unit_test(two_runs_are_the_same_bits),
        cmocka_unit_test(pasted_images_are_not_blended),
        cmocka_unit_test(averages_stand_in),
        cmocka_unit_test(micro_batches_add_up),
        cmocka_unit_test(devices_and_precisions_learn_alike),
        cmocka_unit_test(steps_are_recorded),
        cmocka_unit_test(frozen_layers_do_nothing_backward),
        cmocka_unit_test(one_network_of_two_sizes),
        cmocka_unit_test(a_batch_that_does_not_fit_is_named),
        cmocka_unit_test(architectures),
        cmocka_unit_test(work_is_counted),
        cmocka_unit_test(images_have_gradients),
        cmocka_unit_test(gradients_of_what_is_kept),
        cmocka_unit_test(what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
