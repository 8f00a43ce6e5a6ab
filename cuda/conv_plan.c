/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/conv_plan.h"

#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dl2_cudnn_check(cudnnStatus_t status, const char *call, const char *what,
                    struct dl2_error *error)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return DL2_OK;
    char reason[400] = "";
    cudnnGetLastErrorString(reason, sizeof reason);
    for (char *c = reason; *c; c++)
        if (*c == '\n')
            *c = ' ';
    enum dl2_status code = DL2_ERR_SYSTEM;
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        code = DL2_ERR_MEMORY;
    else if (status / 1000 == 3) /* CUDNN_STATUS_NOT_SUPPORTED and its kinds */
        code = DL2_ERR_UNSUPPORTED;
    return dl2_error_set(error, code, "%s%s%s: %s%s%s", call, what ? " for the " : "",
                         what ? what : "", cudnnGetErrorString(status), reason[0] ? ": " : "",
                         reason);
}

void dl2_conv_request_text(const struct dl2_conv_request *request, char *text, size_t size)
{
    static const char *const passes[] = {"forward pass", "gradient of the input",
                                         "gradient of the weights"};
    const struct dl2_conv_shape *s = &request->shape;
    snprintf(text, size,
             "%s of the %ux%u convolution (stride %u, padding %u, groups %u) from %u to %u "
             "channels on %u images of %ux%u",
             passes[request->pass], s->kernel_width, s->kernel_height, s->stride_width,
             s->pad_width, s->groups, s->in_channels, s->out_channels, s->batch, s->in_width,
             s->in_height);
}

/* The descriptors of one search, which end with it. */
struct search {
    const char *what;
    struct dl2_error *error;
    cudnnBackendDescriptor_t made[16];
    unsigned count;
};

static int make(struct search *search, cudnnBackendDescriptorType_t type,
                cudnnBackendDescriptor_t *out)
{
    DL2_TRY(dl2_cudnn_check(cudnnBackendCreateDescriptor(type, out), "cudnnBackendCreateDescriptor",
                            search->what, search->error));
    search->made[search->count++] = *out;
    return DL2_OK;
}

static int set(struct search *search, cudnnBackendDescriptor_t descriptor,
               cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
               const void *values)
{
    return dl2_cudnn_check(cudnnBackendSetAttribute(descriptor, name, type, count, values),
                           "cudnnBackendSetAttribute", search->what, search->error);
}

static int finalize(struct search *search, cudnnBackendDescriptor_t descriptor)
{
    return dl2_cudnn_check(cudnnBackendFinalize(descriptor), "cudnnBackendFinalize", search->what,
                           search->error);
}

enum { X = 1, W, Y }; /* names of the tensors */

/* A dense tensor whose second dimension lies innermost: NHWC, OHWI. */
static int make_tensor(struct search *search, int64_t name, cudnnDataType_t type, unsigned n,
                       unsigned c, unsigned h, unsigned w, cudnnBackendDescriptor_t *out)
{
    const int64_t dims[] = {n, c, h, w}, alignment = 16;
    const int64_t strides[] = {(int64_t)h * w * c, 1, (int64_t)w * c, c};
    DL2_TRY(make(search, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out));
    DL2_TRY(set(search, *out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    DL2_TRY(set(search, *out, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims));
    DL2_TRY(set(search, *out, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides));
    DL2_TRY(set(search, *out, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name));
    DL2_TRY(set(search, *out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment));
    return finalize(search, *out);
}

static int make_convolution(struct search *search, const struct dl2_conv_shape *s,
                            cudnnBackendDescriptor_t *out)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t two = 2, dilations[] = {1, 1}, strides[] = {s->stride_height, s->stride_width};
    const int64_t pads[] = {s->pad_height, s->pad_width};
    DL2_TRY(make(search, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out));
    DL2_TRY(set(search, *out, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums));
    DL2_TRY(
        set(search, *out, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
    DL2_TRY(set(search, *out, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &two));
    DL2_TRY(set(search, *out, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations));
    DL2_TRY(set(search, *out, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides));
    DL2_TRY(set(search, *out, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads));
    DL2_TRY(set(search, *out, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads));
    return finalize(search, *out);
}

/* The graph: one operation between three tensors. */
static int make_graph(struct search *search, const struct dl2_conv_request *request,
                      cudnnHandle_t handle, cudnnBackendDescriptor_t *out)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
    } operations[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    };
    const struct dl2_conv_shape *s = &request->shape;
    cudnnDataType_t type = request->precision == DL2_PRECISION_BF16   ? CUDNN_DATA_BFLOAT16
                           : request->precision == DL2_PRECISION_FP16 ? CUDNN_DATA_HALF
                                                                      : CUDNN_DATA_FLOAT;
    unsigned out_height =
        dl2_window_out(s->in_height, s->kernel_height, s->stride_height, s->pad_height);
    unsigned out_width =
        dl2_window_out(s->in_width, s->kernel_width, s->stride_width, s->pad_width);
    cudnnBackendDescriptor_t x, w, y, convolution, operation;
    const float alpha = 1, beta = 0;
    DL2_TRY(make_tensor(search, X, type, s->batch, s->in_channels, s->in_height, s->in_width, &x));
    /* cuDNN takes the number of groups from the two numbers of channels. */
    DL2_TRY(make_tensor(search, W, type, s->out_channels, s->in_channels / s->groups,
                        s->kernel_height, s->kernel_width, &w));
    DL2_TRY(make_tensor(search, Y, type, s->batch, s->out_channels, out_height, out_width, &y));
    DL2_TRY(make_convolution(search, s, &convolution));
    DL2_TRY(make(search, operations[request->pass].type, &operation));
    const struct {
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
        const void *value;
    } attributes[] = {
        {operations[request->pass].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, &x},
        {operations[request->pass].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, &w},
        {operations[request->pass].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, &y},
        {operations[request->pass].convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, &convolution},
        {operations[request->pass].alpha, CUDNN_TYPE_FLOAT, &alpha},
        {operations[request->pass].beta, CUDNN_TYPE_FLOAT, &beta},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        DL2_TRY(
            set(search, operation, attributes[i].name, attributes[i].type, 1, attributes[i].value));
    DL2_TRY(finalize(search, operation));
    DL2_TRY(make(search, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, out));
    DL2_TRY(set(search, *out, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                &operation));
    if (handle)
        DL2_TRY(set(search, *out, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
    return finalize(search, *out);
}

/* An attribute's values, which are descriptors: as many as there is room for in `out`. They are the
 * caller's to destroy; 0 where they can't be had. */
static int64_t get_descriptors(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                               cudnnBackendDescriptorType_t type, int64_t room,
                               cudnnBackendDescriptor_t *out)
{
    int64_t made = 0, count = 0;
    while (made < room && cudnnBackendCreateDescriptor(type, &out[made]) == CUDNN_STATUS_SUCCESS)
        made++;
    if (!made || cudnnBackendGetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &count,
                                          out) != CUDNN_STATUS_SUCCESS)
        count = 0;
    count = count < made ? count : made;
    while (made > count)
        cudnnBackendDestroyDescriptor(out[--made]);
    return count;
}

static int64_t get_number(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name)
{
    int64_t value = -1, count;
    return cudnnBackendGetAttribute(of, name, CUDNN_TYPE_INT64, 1, &count, &value) ==
                   CUDNN_STATUS_SUCCESS
               ? value
               : -1;
}

/* Bits of cuDNN's numerical notes on an engine; all where they can't be had. */
static unsigned notes_of(cudnnBackendDescriptor_t engine)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    unsigned bits = 0;
    if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                                 notes) != CUDNN_STATUS_SUCCESS)
        return ~0u;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
        bits |= 1u << notes[i];
    return bits;
}

/* A name by which another process finds the same plan. */
static void name_plan(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t engine,
                      char name[DL2_CONV_PLAN_NAME])
{
    cudnnBackendDescriptor_t knobs[CUDNN_KNOB_TYPE_COUNTS];
    const int64_t count =
        get_descriptors(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                        CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, knobs);
    int at = snprintf(name, DL2_CONV_PLAN_NAME, "eng%lld",
                      (long long)get_number(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    for (int64_t i = 0; i < count; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t one;
        if (at < DL2_CONV_PLAN_NAME &&
            cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                     CUDNN_TYPE_KNOB_TYPE, 1, &one, &type) == CUDNN_STATUS_SUCCESS)
            at += snprintf(name + at, (size_t)(DL2_CONV_PLAN_NAME - at), "_k%d=%lld", (int)type,
                           (long long)get_number(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
        cudnnBackendDestroyDescriptor(knobs[i]);
    }
}

/* Returns the notes that make an engine unfit for the request. */
static unsigned unwanted(const struct dl2_conv_request *request)
{
    /* Sums in 16 bits lose what the header promises, and so do Winograd's largest tiles. */
    unsigned bits = 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |
                    1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    if (request->precision == DL2_PRECISION_FP32) /* tensor cores would round inputs to TF32 */
        bits |=
            1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    if (request->deterministic)
        bits |= 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return bits;
}

/* Appends the configuration, unless it is unfit or there already. */
static bool add_plan(const struct dl2_conv_request *request, cudnnBackendDescriptor_t config,
                     struct dl2_conv_plans *plans)
{
    struct dl2_conv_plan plan = {.config = config};
    cudnnBackendDescriptor_t engine;
    if (!get_descriptors(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1,
                         &engine))
        return false;
    const unsigned notes = notes_of(engine);
    name_plan(config, engine, plan.name);
    cudnnBackendDestroyDescriptor(engine);
    plan.tensor_cores = notes >> CUDNN_NUMERICAL_NOTE_TENSOR_CORE & 1;
    for (unsigned i = 0; i < plans->count; i++)
        if (!strcmp(plans->list[i].name, plan.name))
            return false;
    if (notes & unwanted(request))
        return false;
    plans->list[plans->count++] = plan;
    return true;
}

/* Adds the plans of one of cuDNN's heuristics. */
static int add_plans(struct search *search, const struct dl2_conv_request *request,
                     cudnnBackendDescriptor_t properties, cudnnBackendDescriptor_t graph,
                     cudnnBackendHeurMode_t mode, struct dl2_conv_plans *plans)
{
    cudnnBackendDescriptor_t heuristics;
    int64_t count = 0;
    DL2_TRY(make(search, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics));
    DL2_TRY(set(search, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph));
    DL2_TRY(set(search, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
    if (properties)
        DL2_TRY(set(search, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties));
    if (cudnnBackendFinalize(heuristics) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                 NULL) != CUDNN_STATUS_SUCCESS ||
        count <= 0)
        return DL2_OK; /* it knows nothing; another may */
    const size_t room = plans->count + (size_t)count;
    cudnnBackendDescriptor_t *configs = dl2_calloc((size_t)count, sizeof *configs);
    struct dl2_conv_plan *list = realloc(plans->list, room * sizeof *list);
    plans->list = list ? list : plans->list;
    if (!list || !configs) {
        free(configs);
        return dl2_error_memory(search->error, "plans of a convolution");
    }
    count = get_descriptors(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                            CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count, configs);
    for (int64_t i = 0; i < count; i++)
        if (!add_plan(request, configs[i], plans))
            cudnnBackendDestroyDescriptor(configs[i]);
    free(configs);
    return DL2_OK;
}

int dl2_conv_plans_none(const struct dl2_conv_request *request, struct dl2_error *error)
{
    char what[256];
    dl2_conv_request_text(request, what, sizeof what);
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "cuDNN %zu has nothing for the %s with %zu MiB of workspace; try another "
                         "--amp or batch",
                         cudnnGetVersion(), what, request->workspace >> 20);
}

int dl2_conv_plans_find(const struct dl2_conv_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_conv_plans *plans,
                        struct dl2_error *error)
{
    char what[256];
    dl2_conv_request_text(request, what, sizeof what);
    struct search search = {.what = what, .error = error};
    cudnnBackendDescriptor_t graph;
    *plans = (struct dl2_conv_plans){0};
    int status = make_graph(&search, request, handle, &graph);
    if (status == DL2_OK)
        status = add_plans(&search, request, properties, graph, CUDNN_HEUR_MODE_A, plans);
    if (status == DL2_OK)
        status = add_plans(&search, request, properties, graph, CUDNN_HEUR_MODE_FALLBACK, plans);
    for (unsigned i = search.count; i-- > 0;)
        cudnnBackendDestroyDescriptor(search.made[i]);
    if (status == DL2_OK && !plans->count)
        status = dl2_conv_plans_none(request, error);
    if (status < 0)
        dl2_conv_plans_free(plans);
    return status;
}

void dl2_conv_plans_free(struct dl2_conv_plans *plans)
{
    for (unsigned i = 0; i < plans->count; i++)
        dl2_conv_plan_free(&plans->list[i]);
    free(plans->list);
    *plans = (struct dl2_conv_plans){0};
}

bool dl2_conv_plan_make(const struct dl2_conv_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_conv_plan *out)
{
    cudnnBackendDescriptor_t plan;
    if (out->plan)
        return true;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    cudnnStatus_t status = cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &out->config);
    if (status == CUDNN_STATUS_SUCCESS)
        status = handle ? cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                                   CUDNN_TYPE_HANDLE, 1, &handle)
                        : cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(plan);
    const int64_t workspace = status == CUDNN_STATUS_SUCCESS
                                  ? get_number(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
                                  : -1;
    if (workspace < 0 || (uint64_t)workspace > request->workspace) {
        cudnnBackendDestroyDescriptor(plan);
        return false;
    }
    out->plan = plan;
    out->workspace = (size_t)workspace;
    return true;
}

void dl2_conv_plan_free(struct dl2_conv_plan *plan)
{
    if (plan->plan)
        cudnnBackendDestroyDescriptor(plan->plan);
    if (plan->config)
        cudnnBackendDestroyDescriptor(plan->config);
    *plan = (struct dl2_conv_plan){0};
}

int dl2_conv_plan_run(const struct dl2_conv_plan *plan, cudnnHandle_t handle, const void *x,
                      const void *w, const void *y, void *workspace, struct dl2_error *error)
{
    const int64_t names[] = {X, W, Y};
    const void *addresses[] = {x, w, y};
    cudnnBackendDescriptor_t pack;
    DL2_TRY(
        dl2_cudnn_check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack),
                        "cudnnBackendCreateDescriptor", NULL, error));
    cudnnStatus_t status = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                                    CUDNN_TYPE_INT64, 3, names);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, 3, addresses);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendExecute(handle, plan->plan, pack);
    int result = dl2_cudnn_check(status, "cudnnBackendExecute", NULL, error);
    cudnnBackendDestroyDescriptor(pack);
    return result;
}
