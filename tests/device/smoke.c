/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first minute on a machine with a card: libraries, a convolution, a linear layer, a batch
 * norm, and training steps, of which the later ones are replayed. Says what it begins before it
 * begins, at once, so that a hang tells where.
 *
 *     smoke DEVICE PRECISION
 *
 * Exit status 1: something failed; it is named, and what can still be tried goes on.
 */
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "device/element.h"
#include "network/network.h"

#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static double began;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    printf("%7.3f s  ", dl2_clock_wall() - began);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* Where each library is, or why it can't be opened. */
static void name_libraries(void)
{
    static const char *const names[] = {
        "libcuda.so.1",      /* the driver */
        "libnvidia-ml.so.1", /* NVML: clocks, watts, memory in use */
        "libnvcuvid.so.1",   /* nvJPEG's engines */
        "libcudart.so.13",   "libcudnn.so.9",
        "libcublasLt.so.13", "libnvrtc.so.13", /* cuDNN's compiler, for attention */
        "libnccl.so.2",      "libnvjpeg.so.13",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct link_map *map = NULL;
        say("%s: opening", names[i]);
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
            say("%s: %s", names[i], dlerror());
        else {
            char *path = realpath(map->l_name, NULL);
            say("%s: %s", names[i], path ? path : map->l_name);
            free(path);
        }
    }
}

/* NVML's word on the driver, by the path that training takes for clocks and watts. */
static void ask_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    int (*init)(void) = NULL, (*version)(char *, unsigned) = NULL;
    char driver[96] = "";
    if (!library)
        return;
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&version = dlsym(library, "nvmlSystemGetDriverVersion");
    say("NVML: asking for the driver's version");
    if (!init || !version || init() != 0 || version(driver, sizeof driver) != 0)
        say("NVML: gives none");
    else
        say("NVML: driver %s", driver);
}

/* -- one call of a layer, beside the reference device -- */

/* Runs a layer's forward pass from x and w to y, which are the device's elements. */
typedef int layer_run(struct dl2_device *d, const void *x, const void *w, void *y,
                      struct dl2_error *error);

static int convolve(struct dl2_device *d, const void *x, const void *w, void *y,
                    struct dl2_error *error)
{
    const struct dl2_conv_shape shape = {8,         {1, 16, 16}, 64, 64,   {1, 3, 3},
                                         {1, 1, 1}, {0, 1, 1},   1,  false};
    struct dl2_conv *conv = NULL;
    DL2_TRY(d->ops->conv_create(d, &shape, &conv, error));
    d->ops->conv_forward(conv, x, w, NULL, y);
    int status = d->ops->sync(d, error);
    dl2_device_plan_free(conv);
    return status;
}

static int multiply(struct dl2_device *d, const void *x, const void *w, void *y,
                    struct dl2_error *error)
{
    const struct dl2_linear_shape shape = {2048, 64, 64, false};
    struct dl2_linear *linear = NULL;
    DL2_TRY(d->ops->linear_create(d, &shape, &linear, error));
    d->ops->linear_forward(linear, x, w, NULL, y);
    int status = d->ops->sync(d, error);
    dl2_device_plan_free(linear);
    return status;
}

/* Also with a residual and a ReLU; w has the elements of other layers and is left alone. */
static int normalize(struct dl2_device *d, const void *x, const void *w, void *y,
                     struct dl2_error *error)
{
    enum { CHANNELS = 64 };
    const struct dl2_norm_shape shape = {2048, CHANNELS, 1e-5f, 0.1f, DL2_RELU, true, false};
    struct dl2_norm *norm = NULL;
    float numbers[4 * CHANNELS]; /* gamma, beta, running mean and variance */
    void *memory = NULL;
    (void)w;
    for (int i = 0; i < 4 * CHANNELS; i++)
        numbers[i] = (float)(i % 7) / 4;
    DL2_TRY(d->ops->alloc(d, sizeof numbers, &memory, error));
    d->ops->upload(d, memory, numbers, sizeof numbers);
    d->ops->wait_uploads(d);
    int status = d->ops->norm_create(d, &shape, &norm, error);
    if (status == DL2_OK) {
        float *at = memory;
        d->ops->norm_train(norm, x, x, at, at + CHANNELS, at + 2 * CHANNELS, at + 3 * CHANNELS, y);
        status = d->ops->sync(d, error);
        dl2_device_plan_free(norm);
    }
    d->ops->free(d, memory);
    return status;
}

enum { MOST = 8 * 16 * 16 * 64, WEIGHTS = 64 * 9 * 64 };

/* Runs it on tensors of the host; x and w are rounded to the device's elements. */
static int run_layer(struct dl2_device *d, layer_run *run, float *x, float *w, float *y,
                     struct dl2_error *error)
{
    static uint16_t halves[MOST]; /* or nothing, where elements are float32 */
    float *const host[] = {x, w, y};
    const size_t counts[] = {MOST, WEIGHTS, MOST};
    const bool wide = d->element == DL2_ELEMENT_F32;
    const size_t size = dl2_element_size(d->element);
    void *memory[3] = {0};
    int status = DL2_OK;
    for (int i = 0; i < 3 && status == DL2_OK; i++) {
        status = d->ops->alloc(d, counts[i] * size, &memory[i], error);
        if (status != DL2_OK || i == 2)
            break;
        if (!wide) {
            dl2_elements_from_floats(d->element, host[i], halves, counts[i]);
            dl2_elements_to_floats(d->element, halves, host[i], counts[i]);
        }
        d->ops->upload(d, memory[i], wide ? (void *)host[i] : halves, counts[i] * size);
        d->ops->wait_uploads(d);
    }
    if (status == DL2_OK)
        status = run(d, memory[0], memory[1], memory[2], error);
    if (status == DL2_OK)
        status = d->ops->download(d, wide ? (void *)y : halves, memory[2], MOST * size, error);
    if (status == DL2_OK && !wide)
        dl2_elements_to_floats(d->element, halves, y, MOST);
    for (int i = 0; i < 3; i++)
        d->ops->free(d, memory[i]);
    return status;
}

static int try_layer(const char *name, layer_run *run, struct dl2_device *device,
                     struct dl2_device *ref, struct dl2_error *error)
{
    static float x[MOST], w[WEIGHTS], got[MOST], want[MOST];
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < MOST; i++)
        x[i] = (float)(2 * dl2_random_uniform(&random) - 1);
    for (size_t i = 0; i < WEIGHTS; i++)
        w[i] = (float)(2 * dl2_random_uniform(&random) - 1);
    say("%s: begins", name);
    DL2_TRY(run_layer(device, run, x, w, got, error));
    say("%s: done; now the reference", name);
    DL2_TRY(run_layer(ref, run, x, w, want, error));
    double off = 0, all = 0;
    for (size_t i = 0; i < MOST; i++) {
        off += pow((double)got[i] - want[i], 2);
        all += pow(want[i], 2);
    }
    const double error_of_all = sqrt(off / all);
    say("%s: %.2g of its length off the reference", name, error_of_all);
    return error_of_all < 2e-2 /* bfloat16 rounds to 4e-3 */
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_SYSTEM, "%s is wrong", name);
}

/* -- a few steps -- */

static int train(struct dl2_device *device, struct dl2_error *error)
{
    enum { BATCH = 16, SIDE = 32, STEPS = 5 };
    static uint8_t images[BATCH * SIDE * SIDE * 3];
    int32_t labels[BATCH];
    struct dl2_random random;
    struct dl2_network *network = NULL;
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    config.arch = "convnet";
    config.batch = BATCH;
    config.height = config.width = SIDE;
    dl2_random_init(&random, 2, DL2_RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)dl2_random_below(&random, 256);
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % 10;
    say("a network: begins");
    DL2_TRY(dl2_network_create(device, &config, &network, error));
    const struct dl2_network_input input = {.images = images, .labels = labels, .count = BATCH};
    int status = DL2_OK;
    for (unsigned i = 0; i < STEPS && status == DL2_OK; i++) {
        struct dl2_loss_sums sums = {0};
        say("step %u: begins%s", i,
            !device->ops->record_begin ? ""
            : i == 1                   ? ", recorded"
            : i > 1                    ? ", replayed"
                                       : "");
        status = dl2_network_train(network, &input,
                                   &(struct dl2_network_step){.step = i, .scale = 1}, error);
        if (status == DL2_OK)
            status = dl2_network_update(
                network, &(struct dl2_update){.rate = 0.01f, .momentum = 0.9f, .number = i + 1},
                error);
        if (status == DL2_OK)
            status = dl2_network_take_sums(network, &sums, error);
        const double loss = sums.counted ? sums.loss / (double)sums.counted : NAN;
        if (status == DL2_OK)
            say("step %u: loss %.4f", i, loss);
        if (status == DL2_OK && !(loss > 0 && loss < 10)) /* log(10) is 2.3 */
            status = dl2_error_set(error, DL2_ERR_SYSTEM, "that is no loss");
    }
    dl2_network_destroy(network);
    return status;
}

/* What the device did in another way: device.py looks for it. */
static void say_note(void *context, const char *text)
{
    (void)context;
    printf("note: %s\n", text);
    fflush(stdout);
}

/* Says what failed; returns how many. */
static int failed(int status, struct dl2_error *error)
{
    if (status == DL2_OK)
        return 0;
    say("FAILED: %s", error->message);
    dl2_error_clear(error);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: smoke DEVICE PRECISION\n");
        return 2;
    }
    /* Without measuring plans: the first that runs. */
    struct dl2_device_options options = {.deterministic = true, .note = say_note};
    while (strcmp(dl2_precision_name(options.precision), argv[2]) != 0)
        if (options.precision++ == DL2_PRECISION_FP16) {
            fprintf(stderr, "smoke: no precision '%s'\n", argv[2]);
            return 2;
        }
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *device = NULL, *ref = NULL;
    began = dl2_clock_wall();
    name_libraries();
    ask_nvml();
    say("device %s: opening", argv[1]);
    if (failed(dl2_device_open("ref", NULL, &ref, &error), &error) ||
        failed(dl2_device_open(argv[1], &options, &device, &error), &error)) {
        dl2_device_close(ref);
        return 1;
    }
    json_t *about = device->ops->describe ? device->ops->describe(device) : NULL;
    char *text = about ? json_dumps(about, 0) : NULL;
    say("device %s: %s %s", argv[1], device->ops->version ? device->ops->version() : "",
        text ? text : "");
    free(text);
    json_decref(about);
    int failures = failed(try_layer("linear layer", multiply, device, ref, &error), &error);
    failures += failed(try_layer("convolution", convolve, device, ref, &error), &error);
    failures += failed(try_layer("batch norm", normalize, device, ref, &error), &error);
    failures += failed(train(device, &error), &error);
    say("closing");
    dl2_device_close(device);
    dl2_device_close(ref);
    say("%s", failures ? "something FAILED" : "all well");
    return failures > 0;
}
