/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does cuDNN have a plan for every convolution of every network, in each precision, on the card
 * that we know best? cuDNN's own heuristics say, from a description of the card's properties, where
 * there is no card at all. It is cuDNN's JSON with an H200's figures: those that
 * cudaDeviceGetAttribute() gives.
 */
#include "cuda/conv_plan.h"
#include "network/arch.h"
#include "network/graph.h"

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
static unsigned seen_count, plan_count, compiled_count, request_count;

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
static bool is_compiled(const struct dl2_conv_plan *plan)
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

static void ask(const struct dl2_conv_shape *shape, enum dl2_precision precision,
                enum dl2_conv_pass pass, bool deterministic)
{
    struct dl2_conv_request request = {.shape = *shape,
                                       .pass = pass,
                                       .precision = precision,
                                       .deterministic = deterministic,
                                       .workspace = (size_t)1 << 30};
    struct dl2_conv_plans plans;
    struct dl2_error error = DL2_ERROR_INIT;
    char text[256];
    unsigned made = 0;
    dl2_conv_request_text(&request, text, sizeof text);
    if (dl2_conv_plans_find(&request, NULL, properties, &plans, &error) < 0)
        fail_msg("%s: %s", dl2_precision_name(precision), error.message);
    assert_true(plans.count >= 1);
    bool tensor_cores = false;
    for (unsigned i = 0; i < plans.count; i++) {
        struct dl2_conv_plan *plan = &plans.list[i];
        assert_true(strlen(plan->name) < sizeof plan->name - 1); /* whole */
        plan_count++;
        if (precision == DL2_PRECISION_FP32 && plan->tensor_cores)
            fail_msg("%s: tensor cores with fp32", text);
        if (made >= MADE || !dl2_conv_plan_make(&request, NULL, properties, plan))
            continue;
        made++;
        tensor_cores = tensor_cores || plan->tensor_cores;
        assert_true(plan->workspace <= request.workspace);
        compiled_count += is_compiled(plan);
    }
    if (!made)
        fail_msg("%s, %s: none of %u plans can be made", text, dl2_precision_name(precision),
                 plans.count);
    /* Where channels come by eights. */
    if (precision != DL2_PRECISION_FP32 && !deterministic && shape->in_channels % 8 == 0 &&
        shape->out_channels % 8 == 0 && !tensor_cores)
        fail_msg("%s: no tensor cores with %s", text, dl2_precision_name(precision));
    request_count++;
    dl2_conv_plans_free(&plans);
}

static void ask_all(const struct dl2_conv_shape *shape)
{
    if (!is_new(shape))
        return;
    for (int precision = DL2_PRECISION_FP32; precision <= DL2_PRECISION_FP16; precision++)
        for (int pass = DL2_CONV_FORWARD; pass <= DL2_CONV_WEIGHTS; pass++)
            for (int deterministic = 0; deterministic < 2; deterministic++)
                ask(shape, (enum dl2_precision)precision, (enum dl2_conv_pass)pass, deterministic);
}

static void ask_network(const struct dl2_arch *arch, unsigned batch, unsigned pixels)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_graph graph = {.arch = arch->name, .batch = batch, .train = true, .error = &error};
    int images = dl2_graph_images(&graph, pixels, pixels, 3);
    graph.logits = arch->build(&graph, images, 1000);
    if (dl2_graph_plan(&graph, 2) < 0)
        fail_msg("%s: %s", arch->name, error.message);
    for (size_t i = 0; i < graph.layer_count; i++) {
        const struct dl2_layer *l = &graph.layers[i];
        if (l->kind != DL2_LAYER_CONV || l->groups > 1) /* depthwise ones have our own kernels */
            continue;
        const struct dl2_value *in = &graph.values[l->in], *out = &graph.values[l->out];
        struct dl2_conv_shape shape;
        memset(&shape, 0, sizeof shape);
        shape.batch = batch;
        shape.in_height = in->height;
        shape.in_width = in->width;
        shape.in_channels = in->channels;
        shape.out_channels = out->channels;
        shape.kernel_height = shape.kernel_width = l->kernel;
        shape.stride_height = shape.stride_width = l->stride;
        shape.pad_height = shape.pad_width = l->pad;
        shape.groups = l->groups;
        ask_all(&shape);
    }
    dl2_graph_free(&graph);
}

static void every_network_has_plans(void **state)
{
    (void)state;
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++) {
        ask_network(arch, arch->image_size == 64 ? 128 : 256, arch->image_size);
    }
    /* Odd sizes, too. */
    ask_all(&(struct dl2_conv_shape){.batch = 3,
                                     .in_height = 13,
                                     .in_width = 11,
                                     .in_channels = 5,
                                     .out_channels = 7,
                                     .kernel_height = 3,
                                     .kernel_width = 2,
                                     .stride_height = 2,
                                     .stride_width = 1,
                                     .pad_height = 1,
                                     .groups = 1});
    printf("%u plans for %u passes of %u convolutions, %u of them compiled at run time\n",
           plan_count, request_count, seen_count, compiled_count);
}

static void what_cannot_be_is_named(void **state)
{
    (void)state;
    const struct dl2_conv_request request = {.shape = {.batch = 4,
                                                       .in_height = 8,
                                                       .in_width = 8,
                                                       .in_channels = 8,
                                                       .out_channels = 9,
                                                       .kernel_height = 3,
                                                       .kernel_width = 3,
                                                       .stride_height = 1,
                                                       .stride_width = 1,
                                                       .groups = 8}};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_conv_plans plans;
    assert_int_not_equal(dl2_conv_plans_find(&request, NULL, properties, &plans, &error), DL2_OK);
    assert_non_null(strstr(error.message, "from 8 to 9 channels"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_has_plans),
        cmocka_unit_test(what_cannot_be_is_named),
    };
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties) ||
        cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, sizeof card - 1, card) ||
        cudnnBackendFinalize(properties)) {
        printf("SKIP: cuDNN %zu doesn't understand the description of a card\n", cudnnGetVersion());
        return 77;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cudnnBackendDestroyDescriptor(properties);
    return failed;
}
