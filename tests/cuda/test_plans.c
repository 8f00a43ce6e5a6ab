/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does cuDNN have a plan for every convolution and attention of every network, in each precision,
 * on the card that we know best? cuDNN's own heuristics say, from a description of the card's
 * properties, where there is no card at all. It is cuDNN's JSON with an H200's figures: those that
 * cudaDeviceGetAttribute() gives.
 *
 *     test_plans [LIBRARY]
 *
 * Attention's kernels are compiled when their plans are made, so that cuDNN lists none where there
 * is no driver. LIBRARY stands in for it: the toolkit's stub of libcuda.so.1, which fails in all
 * calls. Then attention alone is asked for, and no plan can be made.
 */
#include "cuda/cudnn_plan.h"
#include "network/arch.h"
#include "network/graph.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

static const char card[] =
    "{\"cudaDeviceId\":0,\"deviceId\":0,\"deviceVer\":900,\"driverVer\":13000,"
    "\"totalGlobalMem\":150754820096,\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":132,"
    "\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,"
    "\"l2CacheSize\":62914560,\"deviceName\":\"NVIDIA H200\"}";

/* cuDNN leaks what it can't start without a card; that we don't is seen by test_fake_device.sh. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

static cudnnBackendDescriptor_t properties;

/* What was asked already: layers repeat. */
static struct dl2_conv_shape seen[512];
static bool can_make = true;
static struct dl2_attention_shape seen_attention[16];
static unsigned seen_count, seen_attention_count;

static struct counts {
    unsigned requests, plans, compiled;
} counts[3]; /* of convolutions, of attention, and of convolutions with their bias */

static bool is_new(const struct dl2_conv_shape *s)
{
    for (unsigned i = 0; i < seen_count; i++)
        if (!memcmp(&seen[i], s, sizeof *s))
            return false;
    assert_true(seen_count < 512);
    seen[seen_count++] = *s;
    return true;
}

/* Would it be compiled on the card's machine, in seconds and by NVRTC? */
static bool is_compiled(const struct dl2_cudnn_plan *plan)
{
    cudnnBackendDescriptor_t engine;
    cudnnBackendBehaviorNote_t notes[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t count = 0;
    bool compiled = false;
    assert_int_equal(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine), 0);
    assert_int_equal(cudnnBackendGetAttribute(plan->config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine),
                     0);
    assert_int_equal(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                              CUDNN_TYPE_BEHAVIOR_NOTE,
                                              CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count, notes),
                     0);
    for (int64_t i = 0; i < count && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++)
        compiled = compiled || notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    cudnnBackendDestroyDescriptor(engine);
    return compiled;
}

enum { MADE = 10 }; /* plans of a request, in cuDNN's order */

static void ask(struct dl2_cudnn_request request)
{
    const bool attention = dl2_cudnn_is_attention(&request);
    const char *precision = dl2_precision_name(request.precision);
    struct counts *sums = &counts[attention ? 1 : request.pass == DL2_PASS_BIASED ? 2 : 0];
    struct dl2_cudnn_plans plans;
    struct dl2_error error = DL2_ERROR_INIT;
    char text[256];
    unsigned made = 0;
    bool tensor_cores = false;
    request.workspace = (size_t)1 << 30;
    dl2_cudnn_request_text(&request, text, sizeof text);
    if (dl2_cudnn_plans_find(&request, NULL, properties, &plans, &error) < 0)
        fail_msg("%s: %s", precision, error.message);
    assert_true(plans.count >= 1);
    for (unsigned i = 0; i < plans.count; i++) {
        struct dl2_cudnn_plan *plan = &plans.list[i];
        assert_true(strlen(plan->name) < sizeof plan->name - 1); /* whole */
        sums->plans++;
        if (request.precision == DL2_PRECISION_FP32 && plan->tensor_cores)
            fail_msg("%s: tensor cores with fp32", text);
        if (!can_make || made >= MADE ||
            dl2_cudnn_plan_make(&request, NULL, properties, plan, NULL) < 0)
            continue;
        made++;
        tensor_cores = tensor_cores || plan->tensor_cores;
        assert_true(plan->workspace <= request.workspace);
        sums->compiled += is_compiled(plan);
    }
    if (!made && can_make)
        fail_msg("%s, %s: none of %u plans can be made", text, precision, plans.count);
    /* Where channels come by eights. */
    if (!attention && request.precision != DL2_PRECISION_FP32 && !request.deterministic &&
        request.conv.in_channels % 8 == 0 && request.conv.out_channels % 8 == 0 && !tensor_cores)
        fail_msg("%s: no tensor cores with %s", text, precision);
    sums->requests++;
    dl2_cudnn_plans_free(&plans);
}

static void ask_all(const struct dl2_conv_shape *shape)
{
    if (!is_new(shape))
        return;
    for (int precision = DL2_PRECISION_FP32; precision <= DL2_PRECISION_FP16; precision++)
        for (int pass = DL2_PASS_FORWARD; pass <= DL2_PASS_WEIGHTS; pass++)
            for (int deterministic = 0; deterministic < 2; deterministic++)
                ask((struct dl2_cudnn_request){.conv = *shape,
                                               .pass = (enum dl2_gpu_pass)pass,
                                               .precision = (enum dl2_precision)precision,
                                               .deterministic = deterministic});
}

static void ask_biased(const struct dl2_conv_shape *shape)
{
    if (!is_new(shape))
        return;
    for (int precision = DL2_PRECISION_FP32; precision <= DL2_PRECISION_FP16; precision++)
        for (int deterministic = 0; deterministic < 2; deterministic++)
            ask((struct dl2_cudnn_request){.conv = *shape,
                                           .pass = DL2_PASS_BIASED,
                                           .precision = (enum dl2_precision)precision,
                                           .deterministic = deterministic});
}

static void ask_attention(struct dl2_attention_shape shape)
{
    for (unsigned i = 0; i < seen_attention_count; i++)
        if (!memcmp(&seen_attention[i], &shape, sizeof shape))
            return;
    assert_true(seen_attention_count < 16);
    seen_attention[seen_attention_count++] = shape;
    for (int precision = DL2_PRECISION_BF16; precision <= DL2_PRECISION_FP16; precision++)
        for (int pass = DL2_PASS_ATTENTION; pass <= DL2_PASS_ATTENTION_GRADIENT; pass++)
            for (int deterministic = 0; deterministic < 2; deterministic++)
                ask((struct dl2_cudnn_request){.attention = shape,
                                               .pass = (enum dl2_gpu_pass)pass,
                                               .precision = (enum dl2_precision)precision,
                                               .deterministic = deterministic});
}

static void ask_network(const struct dl2_arch *arch, unsigned batch, unsigned pixels,
                        bool attention)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_graph graph = {.arch = arch->name, .batch = batch, .train = true, .error = &error};
    int images = dl2_graph_images(&graph, arch->frames, pixels, pixels, 3);
    graph.logits = arch->build(&graph, images, arch->labels == DL2_LABEL_CLASS ? 1000 : 21);
    if (dl2_graph_plan(&graph, 2) < 0)
        fail_msg("%s: %s", arch->name, error.message);
    for (size_t i = 0; i < graph.layer_count; i++) {
        const struct dl2_layer *l = &graph.layers[i];
        const struct dl2_value *in = &graph.values[l->in], *out = &graph.values[l->out];
        if (attention && l->kind == DL2_LAYER_ATTENTION)
            ask_attention(
                (struct dl2_attention_shape){batch, in->sides.height, out->channels, l->heads});
        if (attention || l->kind != DL2_LAYER_CONV ||
            l->groups > 1) /* depthwise ones have our own kernels */
            continue;
        struct dl2_conv_shape shape;
        memset(&shape, 0, sizeof shape);
        shape.batch = batch;
        shape.in = in->sides;
        shape.in_channels = in->channels;
        shape.out_channels = out->channels;
        shape.kernel = l->window.kernel;
        shape.stride = l->window.stride;
        shape.pad = l->window.pad;
        shape.groups = l->groups;
        ask_all(&shape);
        shape.bias = l->bias;
        shape.activation = l->activation;
        if (shape.bias)
            ask_biased(&shape);
    }
    dl2_graph_free(&graph);
}

static void ask_networks(bool attention)
{
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++)
        ask_network(arch,
                    arch->labels != DL2_LABEL_CLASS ? 2
                    : arch->frames                  ? 16
                    : arch->image_size == 64        ? 128
                                                    : 256,
                    arch->image_size, attention);
    for (int kind = attention ? 1 : 0; kind < 3; kind += 2) {
        static const char *const names[] = {"convolutions", "attention", "convolutions with bias"};
        assert_true(counts[kind].requests > 0);
        printf("%u plans for %u passes of %s", counts[kind].plans, counts[kind].requests,
               names[kind]);
        if (can_make)
            printf(", %u of them compiled at run time", counts[kind].compiled);
        printf("\n");
    }
}

static void every_convolution_has_plans(void **state)
{
    (void)state;
    /* Odd sizes, too. */
    ask_all(&(struct dl2_conv_shape){.batch = 3,
                                     .in.depth = 1,
                                     .in.height = 13,
                                     .in.width = 11,
                                     .in_channels = 5,
                                     .out_channels = 7,
                                     .kernel.depth = 1,
                                     .kernel.height = 3,
                                     .kernel.width = 2,
                                     .stride.depth = 1,
                                     .stride.height = 2,
                                     .stride.width = 1,
                                     .pad.height = 1,
                                     .groups = 1});
    ask_networks(false);
}

/* In 16 bits. */
static void every_attention_has_plans(void **state)
{
    (void)state;
    ask_networks(true);
}

static void what_cannot_be_is_named(void **state)
{
    (void)state;
    const struct dl2_cudnn_request request = {.conv = {.batch = 4,
                                                       .in.depth = 1,
                                                       .in.height = 8,
                                                       .in.width = 8,
                                                       .in_channels = 8,
                                                       .out_channels = 9,
                                                       .kernel.depth = 1,
                                                       .kernel.height = 3,
                                                       .kernel.width = 3,
                                                       .stride.depth = 1,
                                                       .stride.height = 1,
                                                       .stride.width = 1,
                                                       .groups = 8}};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_cudnn_plans plans;
    assert_int_not_equal(dl2_cudnn_plans_find(&request, NULL, properties, &plans, &error), DL2_OK);
    assert_non_null(strstr(error.message, "from 8 to 9 channels"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convolution_has_plans),
        cmocka_unit_test(what_cannot_be_is_named),
    };
    const struct CMUnitTest attention[] = {cmocka_unit_test(every_attention_has_plans)};
    const bool driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc > 1 && !driver) {
        can_make = false;
        if (!dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
            printf("SKIP: no driver, and nothing that stands in for it: %s\n", dlerror());
            return 77;
        }
    }
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties) ||
        cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, sizeof card - 1, card) ||
        cudnnBackendFinalize(properties)) {
        printf("SKIP: cuDNN %zu doesn't understand the description of a card\n", cudnnGetVersion());
        return 77;
    }
    int failed = argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
    if (argc > 1 || driver)
        failed += cmocka_run_group_tests(attention, NULL, NULL);
    cudnnBackendDestroyDescriptor(properties);
    return failed;
}
