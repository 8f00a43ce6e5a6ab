/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/cudnn_plan.h"

#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With fewer plans than these, cuDNN is asked for those without any expectation of speed, too: of
 * 16 bits they are slow, and some take half a second to compile; of float32 there are hardly
 * others. */
enum { FEW = 5 };

bool dl2_cudnn_is_attention(const struct dl2_cudnn_request *request)
{
    return request->pass == DL2_PASS_ATTENTION || request->pass == DL2_PASS_ATTENTION_GRADIENT;
}

bool dl2_cudnn_is_optional(const struct dl2_cudnn_request *request)
{
    return dl2_cudnn_is_attention(request) || request->pass == DL2_PASS_BIASED;
}

void dl2_cudnn_request_text(const struct dl2_cudnn_request *request, char *text, size_t size)
{
    static const char *const passes[] = {
        [DL2_PASS_FORWARD] = "forward pass",
        [DL2_PASS_DATA] = "gradient of the input",
        [DL2_PASS_WEIGHTS] = "gradient of the weights",
        [DL2_PASS_ATTENTION] = "forward pass",
        [DL2_PASS_ATTENTION_GRADIENT] = "gradient",
        [DL2_PASS_BIASED] = "forward pass with bias",
    };
    const struct dl2_conv_shape *s = &request->conv;
    const struct dl2_attention_shape *t = &request->attention;
    char shape[200];
    if (dl2_cudnn_is_attention(request))
        snprintf(text, size,
                 "%s of attention of %u heads between %u tokens of %u channels, in %u samples",
                 passes[request->pass], t->heads, t->tokens, t->channels, t->batch);
    if (dl2_cudnn_is_attention(request))
        return;
    dl2_conv_shape_text(s, shape, sizeof shape);
    snprintf(text, size, "%s%s of the %s", passes[request->pass],
             request->pass == DL2_PASS_BIASED && s->activation == DL2_RELU ? " and ReLU" : "",
             shape);
}

void dl2_cudnn_request_bytes(const struct dl2_cudnn_request *request,
                             size_t bytes[DL2_CUDNN_TENSORS])
{
    const size_t element = dl2_cudnn_type(request->precision) == CUDNN_DATA_FLOAT ? 4 : 2;
    for (int i = 0; i < DL2_CUDNN_TENSORS; i++)
        bytes[i] = 0;
    if (dl2_cudnn_is_attention(request)) {
        dl2_attention_bytes(&request->attention, element,
                            request->pass == DL2_PASS_ATTENTION_GRADIENT, bytes);
        return;
    }
    dl2_conv_counts(&request->conv, bytes);
    for (int i = 0; i < 3; i++)
        bytes[i] *= element;
    if (request->pass == DL2_PASS_BIASED)
        bytes[DL2_CONV_BIAS] = request->conv.out_channels * element;
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
                      char name[DL2_CUDNN_PLAN_NAME])
{
    cudnnBackendDescriptor_t knobs[CUDNN_KNOB_TYPE_COUNTS];
    const int64_t count =
        get_descriptors(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                        CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, knobs);
    int at = snprintf(name, DL2_CUDNN_PLAN_NAME, "eng%lld",
                      (long long)get_number(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    for (int64_t i = 0; i < count; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t one;
        if (at < DL2_CUDNN_PLAN_NAME &&
            cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                     CUDNN_TYPE_KNOB_TYPE, 1, &one, &type) == CUDNN_STATUS_SUCCESS)
            at += snprintf(name + at, (size_t)(DL2_CUDNN_PLAN_NAME - at), "_k%d=%lld", (int)type,
                           (long long)get_number(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
        cudnnBackendDestroyDescriptor(knobs[i]);
    }
}

/* Returns the notes that make an engine unfit for the request. */
static unsigned unwanted(const struct dl2_cudnn_request *request)
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
static bool add_plan(const struct dl2_cudnn_request *request, const struct dl2_cudnn_graph *graph,
                     cudnnBackendDescriptor_t config, struct dl2_cudnn_plans *plans)
{
    struct dl2_cudnn_plan plan = {.config = config, .place_count = graph->place_count};
    memcpy(plan.places, graph->places, sizeof plan.places);
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
static void add_plans(const struct dl2_cudnn_request *request, struct dl2_cudnn_graph *graph,
                      cudnnBackendDescriptor_t properties, cudnnBackendDescriptor_t operations,
                      cudnnBackendHeurMode_t mode, struct dl2_cudnn_plans *plans)
{
    int64_t count = 0;
    const cudnnBackendDescriptor_t heuristics =
        dl2_cudnn_make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    dl2_cudnn_link(graph, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    dl2_cudnn_set(graph, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (properties)
        dl2_cudnn_link(graph, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
    if (graph->status || cudnnBackendFinalize(heuristics) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                 NULL) != CUDNN_STATUS_SUCCESS ||
        count <= 0)
        return; /* it knows nothing; another may */
    const size_t room = plans->count + (size_t)count;
    cudnnBackendDescriptor_t *configs = dl2_calloc((size_t)count, sizeof *configs);
    struct dl2_cudnn_plan *list = realloc(plans->list, room * sizeof *list);
    plans->list = list ? list : plans->list;
    if (!list || !configs) {
        free(configs);
        graph->status = dl2_error_memory(graph->error, "plans of cuDNN");
        return;
    }
    count = get_descriptors(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                            CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count, configs);
    for (int64_t i = 0; i < count; i++)
        if (!add_plan(request, graph, configs[i], plans))
            cudnnBackendDestroyDescriptor(configs[i]);
    free(configs);
}

static int no_plans(const struct dl2_cudnn_request *request, struct dl2_error *error)
{
    char what[256];
    dl2_cudnn_request_text(request, what, sizeof what);
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "cuDNN %zu has nothing for the %s with %zu MiB of workspace; try another "
                         "--amp or batch",
                         cudnnGetVersion(), what, request->workspace >> 20);
}

int dl2_cudnn_plans_find(const struct dl2_cudnn_request *request, cudnnHandle_t handle,
                         cudnnBackendDescriptor_t properties, struct dl2_cudnn_plans *plans,
                         struct dl2_error *error)
{
    char what[256];
    struct dl2_cudnn_graph graph = {.what = what, .error = error};
    dl2_cudnn_request_text(request, what, sizeof what);
    *plans = (struct dl2_cudnn_plans){0};
    if (dl2_cudnn_is_attention(request))
        dl2_attention_graph(&graph, request);
    else
        dl2_conv_graph(&graph, request);
    const cudnnBackendDescriptor_t operations = dl2_cudnn_close(&graph, handle);
    add_plans(request, &graph, properties, operations, CUDNN_HEUR_MODE_A, plans);
    if (plans->count < FEW)
        add_plans(request, &graph, properties, operations, CUDNN_HEUR_MODE_FALLBACK, plans);
    if (!graph.status && !plans->count)
        graph.status = no_plans(request, error);
    dl2_cudnn_graph_free(&graph);
    if (graph.status < 0)
        dl2_cudnn_plans_free(plans);
    return graph.status;
}

void dl2_cudnn_plans_free(struct dl2_cudnn_plans *plans)
{
    for (unsigned i = 0; i < plans->count; i++)
        dl2_cudnn_plan_free(&plans->list[i]);
    free(plans->list);
    *plans = (struct dl2_cudnn_plans){0};
}

int dl2_cudnn_plan_make(const struct dl2_cudnn_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_cudnn_plan *out,
                        struct dl2_error *error)
{
    struct dl2_cudnn_graph own = {.what = "plan", .error = error};
    int64_t workspace = 0;
    if (out->plan)
        return DL2_OK;
    const cudnnBackendDescriptor_t plan =
        dl2_cudnn_make(&own, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    dl2_cudnn_link(&own, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, out->config);
    if (handle)
        dl2_cudnn_set(&own, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    else
        dl2_cudnn_link(&own, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
    dl2_cudnn_finalize(&own, plan);
    if (!own.status)
        workspace = get_number(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if (workspace < 0 || (uint64_t)workspace > request->workspace)
        own.status =
            dl2_error_set(error, DL2_ERR_UNSUPPORTED, "it wants %lld bytes of workspace, not %zu",
                          (long long)workspace, request->workspace);
    if (own.status) {
        dl2_cudnn_graph_free(&own);
        return own.status;
    }
    out->plan = plan; /* no longer the graph's */
    out->workspace = (size_t)workspace;
    return DL2_OK;
}

void dl2_cudnn_plan_free(struct dl2_cudnn_plan *plan)
{
    if (plan->plan)
        cudnnBackendDestroyDescriptor(plan->plan);
    if (plan->config)
        cudnnBackendDestroyDescriptor(plan->config);
    *plan = (struct dl2_cudnn_plan){0};
}

int dl2_cudnn_plan_run(const struct dl2_cudnn_plan *plan, cudnnHandle_t handle,
                       const void *const *tensors, void *workspace, struct dl2_error *error)
{
    int64_t names[DL2_CUDNN_PLACES];
    const void *addresses[DL2_CUDNN_PLACES];
    const int64_t count = plan->place_count;
    struct dl2_cudnn_graph own = {.what = "variant pack", .error = error};
    for (int64_t i = 0; i < count; i++) {
        const struct dl2_cudnn_place *p = &plan->places[i];
        names[i] = p->name;
        addresses[i] = &p->value;
        if (p->tensor == DL2_CUDNN_VALUE)
            continue;
        addresses[i] = (const char *)tensors[p->tensor] + p->offset;
        if ((uintptr_t)addresses[i] % 16)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "a tensor does not begin at a multiple of 16 bytes");
    }
    const cudnnBackendDescriptor_t pack =
        dl2_cudnn_make(&own, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dl2_cudnn_set(&own, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
    dl2_cudnn_set(&own, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                  addresses);
    dl2_cudnn_set(&own, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                  &workspace);
    dl2_cudnn_finalize(&own, pack);
    if (!own.status)
        own.status = dl2_cudnn_check(cudnnBackendExecute(handle, plan->plan, pack),
                                     "cudnnBackendExecute", NULL, error);
    dl2_cudnn_graph_free(&own);
    return own.status;
}
