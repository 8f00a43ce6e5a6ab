/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attention and its gradient as graphs of cuDNN, which it computes block by block: the scores are
 * in no memory. Source: Dao, "FlashAttention-2" (2023), sections 3.1 and 3.2; the operations and
 * types are those by which NVIDIA's cudnn-frontend (node/scaled_dot_product_flash_attention.h)
 * asks for it, since cuDNN knows no others.
 *
 * Tensors are [batch][heads][tokens][channels of a head] to cuDNN, whatever their strides.
 */
#include "cuda/cudnn_plan.h"

#include <math.h>

/* The tensors of both graphs: those of element, then float32. P is the softmax, which forward has
 * yet to divide by SUM. */
enum { Q, K_TURNED, V, V_TURNED, K, O, DO, DQ, DK, DV, P_TURNED, DS_TURNED, P_LOWERED, FLOATS };
enum { S = FLOATS, SCALED, MAXIMUM, CENTERED, P, SUM, LOGARITHM, STATS, DO_O, DO_O_SUM, DELTA, DP };
enum { DP_CENTERED = DP + 1, DP_P, DS, DQ_SUM, SCALE, ONE, NOTHING };

enum layout { SCORES, ROWS, INPUTS, OUTPUTS, DENSE, NUMBER };

/* Those that are not [tokens][tokens] of scores between two operations. */
static const struct {
    enum layout layout;
    int place;     /* 1 + the number of the caller's tensor; 0: it is in no memory */
    unsigned part; /* of an input's three; of the scratch: behind DELTA */
    bool turned;   /* rows are columns */
} tensors[NOTHING] = {
    [Q] = {INPUTS, 1 + DL2_ATTENTION_QKV, 0, false},
    [K_TURNED] = {INPUTS, 1 + DL2_ATTENTION_QKV, 1, true},
    [V] = {INPUTS, 1 + DL2_ATTENTION_QKV, 2, false},
    [V_TURNED] = {INPUTS, 1 + DL2_ATTENTION_QKV, 2, true},
    [K] = {INPUTS, 0, 1, false},
    [O] = {OUTPUTS, 1 + DL2_ATTENTION_Y, 0, false},
    [DO] = {OUTPUTS, 1 + DL2_ATTENTION_DY, 0, false},
    [DQ] = {INPUTS, 1 + DL2_ATTENTION_DQKV, 0, false},
    [DK] = {INPUTS, 1 + DL2_ATTENTION_DQKV, 1, false},
    [DV] = {INPUTS, 1 + DL2_ATTENTION_DQKV, 2, false},
    [P_TURNED] = {SCORES, 0, 0, true},
    [DS_TURNED] = {SCORES, 0, 0, true},
    [MAXIMUM] = {ROWS, 0, 0, false},
    [SUM] = {ROWS, 0, 0, false},
    [LOGARITHM] = {ROWS, 0, 0, false},
    [STATS] = {ROWS, 1 + DL2_ATTENTION_STATS, 0, false},
    [DO_O] = {DENSE, 0, 0, false},
    [DO_O_SUM] = {ROWS, 0, 0, false},
    [DELTA] = {ROWS, 1 + DL2_ATTENTION_SCRATCH, 0, false},
    [DQ_SUM] = {DENSE, 1 + DL2_ATTENTION_SCRATCH, 1, false},
    [SCALE] = {NUMBER, 0, 0, false},
    [ONE] = {NUMBER, 0, 0, false},
};

enum kind { MATMUL, RESHAPE, MAX_OF_ROW, SUM_OF_ROW, MUL, SUB, ADD, DIV, EXP, LOG, IDENTITY };

struct step {
    enum kind kind;
    int a, b, out; /* b: NOTHING where there is one operand */
};

/* softmax(scale * Q K') V; STATS is the logarithm of the sums that the softmax divides by. */
static const struct step forward[] = {
    {MATMUL, Q, K_TURNED, S},
    {MUL, S, SCALE, SCALED},
    {MAX_OF_ROW, SCALED, NOTHING, MAXIMUM},
    {SUB, SCALED, MAXIMUM, CENTERED},
    {EXP, CENTERED, NOTHING, P},
    {SUM_OF_ROW, P, NOTHING, SUM},
    {LOG, SUM, NOTHING, LOGARITHM},
    {ADD, MAXIMUM, LOGARITHM, STATS},
    {DIV, P, SUM, P_LOWERED},
    {MATMUL, P_LOWERED, V, O},
};

/* All but the gradient of Q. The softmax is computed anew. */
static const struct step backward[] = {
    {MUL, DO, O, DO_O},
    {SUM_OF_ROW, DO_O, NOTHING, DO_O_SUM},
    {MUL, DO_O_SUM, ONE, DELTA},
    {MATMUL, Q, K_TURNED, S},
    {MUL, S, SCALE, SCALED},
    {SUB, SCALED, STATS, CENTERED},
    {EXP, CENTERED, NOTHING, P},
    {RESHAPE, P, NOTHING, P_TURNED},
    {MATMUL, P_TURNED, DO, DV},
    {MATMUL, DO, V_TURNED, DP},
    {SUB, DP, DELTA, DP_CENTERED},
    {MUL, DP_CENTERED, P, DP_P},
    {MUL, DP_P, SCALE, DS},
    {RESHAPE, DS, NOTHING, DS_TURNED},
    {MATMUL, DS_TURNED, Q, DK},
    {RESHAPE, K_TURNED, NOTHING, K},
};

/* The gradient of Q: added up in memory by all blocks that have a part of it, in any order; or,
 * where bits must repeat, of what one block has of all. */
static const struct step backward_q[] = {{MATMUL, DS, K, DQ_SUM}, {IDENTITY, DQ_SUM, NOTHING, DQ}};
static const struct step backward_q_repeats[] = {{MATMUL, DS, K, DQ}};

static size_t rows_bytes(const struct dl2_attention_shape *s)
{
    return ((size_t)s->batch * s->heads * s->tokens * sizeof(float) + 255) / 256 * 256;
}

void dl2_attention_bytes(const struct dl2_attention_shape *s, size_t element, bool gradient,
                         size_t bytes[DL2_ATTENTION_TENSORS])
{
    const size_t count = (size_t)s->batch * s->tokens * s->channels;
    for (int i = 0; i < DL2_ATTENTION_TENSORS; i++)
        bytes[i] = 0;
    bytes[DL2_ATTENTION_QKV] = 3 * count * element;
    bytes[DL2_ATTENTION_Y] = count * element;
    bytes[DL2_ATTENTION_STATS] = rows_bytes(s);
    if (!gradient)
        return;
    bytes[DL2_ATTENTION_DY] = count * element;
    bytes[DL2_ATTENTION_DQKV] = 3 * count * element;
    bytes[DL2_ATTENTION_SCRATCH] = rows_bytes(s) + count * sizeof(float);
}

/* Tensor `t`, made when it is first needed. */
static cudnnBackendDescriptor_t tensor(struct dl2_cudnn_graph *graph,
                                       const struct dl2_cudnn_request *request,
                                       cudnnBackendDescriptor_t made[NOTHING], int t)
{
    const struct dl2_attention_shape *s = &request->attention;
    const int64_t heads = s->heads, tokens = s->tokens, size = s->channels / s->heads;
    const int64_t channels = s->channels;
    const bool scores = tensors[t].layout == SCORES, rows = tensors[t].layout == ROWS;
    const struct dl2_cudnn_tensor number = {
        .type = CUDNN_DATA_FLOAT,
        .rank = 4,
        .dims = {1, 1, 1, 1},
        .strides = {1, 1, 1, 1},
        .tensor = DL2_CUDNN_VALUE,
        .value = t == SCALE ? (float)(1 / sqrt((double)size)) : 1,
    };
    if (made[t])
        return made[t];
    if (tensors[t].layout == NUMBER)
        return made[t] = dl2_cudnn_tensor(graph, &number);
    struct dl2_cudnn_tensor made_of = {
        .type = t < FLOATS ? dl2_cudnn_type(request->precision) : CUDNN_DATA_FLOAT,
        .rank = 4,
        .dims = {s->batch, heads, tokens,
                 scores ? tokens
                 : rows ? 1
                        : size},
        .tensor = tensors[t].place - 1,
    };
    int64_t *d = made_of.dims, *strides = made_of.strides;
    strides[3] = 1;
    if (tensors[t].layout == INPUTS || tensors[t].layout == OUTPUTS) {
        strides[2] = channels * (tensors[t].layout == INPUTS ? 3 : 1);
        strides[1] = size;
        strides[0] = tokens * strides[2];
        made_of.offset = (size_t)tensors[t].part * s->channels * 2; /* bytes of an element */
    } else {
        strides[2] = d[3];
        strides[1] = tokens * d[3];
        strides[0] = heads * strides[1];
        made_of.offset = tensors[t].part ? rows_bytes(s) : 0;
    }
    if (tensors[t].turned) {
        const int64_t dim = d[2], stride = strides[2];
        d[2] = d[3];
        d[3] = dim;
        strides[2] = strides[3];
        strides[3] = stride;
    }
    return made[t] = dl2_cudnn_tensor(graph, &made_of);
}

/* What is said of an operation's kind, and where its tensors go. */
struct words {
    cudnnBackendDescriptorType_t operation, how;
    cudnnBackendAttributeName_t a, b, out, how_name, precision;
};

static const struct words matmul = {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                    CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                                    CUDNN_ATTR_OPERATION_MATMUL_ADESC,
                                    CUDNN_ATTR_OPERATION_MATMUL_BDESC,
                                    CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                                    CUDNN_ATTR_OPERATION_MATMUL_DESC,
                                    CUDNN_ATTR_MATMUL_COMP_TYPE};
static const struct words reduction = {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                       CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
                                       CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
                                       CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                                       CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                                       CUDNN_ATTR_REDUCTION_COMP_TYPE};
static void add_step(struct dl2_cudnn_graph *graph, const struct dl2_cudnn_request *request,
                     cudnnBackendDescriptor_t made[NOTHING], const struct step *step)
{
    static const cudnnPointwiseMode_t modes[] = {
        [MUL] = CUDNN_POINTWISE_MUL,           [SUB] = CUDNN_POINTWISE_SUB,
        [ADD] = CUDNN_POINTWISE_ADD,           [DIV] = CUDNN_POINTWISE_DIV,
        [EXP] = CUDNN_POINTWISE_EXP,           [LOG] = CUDNN_POINTWISE_LOG,
        [IDENTITY] = CUDNN_POINTWISE_IDENTITY,
    };
    const cudnnReduceTensorOp_t reduce =
        step->kind == MAX_OF_ROW ? CUDNN_REDUCE_TENSOR_MAX : CUDNN_REDUCE_TENSOR_ADD;
    const cudnnDataType_t floats = CUDNN_DATA_FLOAT;
    const bool reduces = step->kind == MAX_OF_ROW || step->kind == SUM_OF_ROW;
    const struct words *w = reduces ? &reduction : &matmul;
    const cudnnBackendDescriptor_t a = tensor(graph, request, made, step->a);
    const cudnnBackendDescriptor_t b =
        step->b != NOTHING ? tensor(graph, request, made, step->b) : NULL;
    const cudnnBackendDescriptor_t out = tensor(graph, request, made, step->out);
    if (step->kind == RESHAPE) {
        const cudnnBackendDescriptor_t turn =
            dl2_cudnn_operation(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
        dl2_cudnn_link(graph, turn, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, a);
        dl2_cudnn_link(graph, turn, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out);
        dl2_cudnn_finalize(graph, turn);
        return;
    }
    if (!reduces && step->kind != MATMUL) {
        dl2_cudnn_pointwise(graph, modes[step->kind], a, b, out);
        return;
    }
    const cudnnBackendDescriptor_t how = dl2_cudnn_make(graph, w->how);
    dl2_cudnn_set(graph, how, w->precision, CUDNN_TYPE_DATA_TYPE, 1, &floats);
    if (reduces)
        dl2_cudnn_set(graph, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                      1, &reduce);
    dl2_cudnn_finalize(graph, how);
    const cudnnBackendDescriptor_t operation = dl2_cudnn_operation(graph, w->operation);
    dl2_cudnn_link(graph, operation, w->how_name, how);
    dl2_cudnn_link(graph, operation, w->a, a);
    if (b)
        dl2_cudnn_link(graph, operation, w->b, b);
    dl2_cudnn_link(graph, operation, w->out, out);
    dl2_cudnn_finalize(graph, operation);
}

static void add_steps(struct dl2_cudnn_graph *graph, const struct dl2_cudnn_request *request,
                      cudnnBackendDescriptor_t made[NOTHING], const struct step *steps,
                      size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *steps; i++)
        add_step(graph, request, made, &steps[i]);
}

void dl2_attention_graph(struct dl2_cudnn_graph *graph, const struct dl2_cudnn_request *request)
{
    cudnnBackendDescriptor_t made[NOTHING] = {NULL};
    if (request->pass == DL2_PASS_ATTENTION) {
        add_steps(graph, request, made, forward, sizeof forward);
        return;
    }
    add_steps(graph, request, made, backward, sizeof backward);
    if (request->deterministic)
        add_steps(graph, request, made, backward_q_repeats, sizeof backward_q_repeats);
    else
        add_steps(graph, request, made, backward_q, sizeof backward_q);
}
