/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cublasLtMatmul() by its documentation, columns first, in plain C. Descriptors and layouts are the
 * real library's, which needs no card for them.
 */
#include "tests/cuda/fake_cuda.h"

#include "device/element.h"

#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = malloc(1);
    return *out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

enum { WORKSPACE = 2000 };

/* A matrix, columns first; of a batch, the first. */
struct matrix {
    void *at;
    uint64_t rows, columns;
    int64_t leading, stride;
    int32_t batch;
    enum dl2_element element;
};

static struct matrix matrix_of(cublasLtMatrixLayout_t layout, const void *at)
{
    struct matrix m = {.at = (void *)(uintptr_t)at};
    uint32_t type = 0;
    size_t size;
    const struct {
        cublasLtMatrixLayoutAttribute_t name;
        void *value;
        size_t size;
    } attributes[] = {
        {CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type},
        {CUBLASLT_MATRIX_LAYOUT_ROWS, &m.rows, sizeof m.rows},
        {CUBLASLT_MATRIX_LAYOUT_COLS, &m.columns, sizeof m.columns},
        {CUBLASLT_MATRIX_LAYOUT_LD, &m.leading, sizeof m.leading},
        {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &m.batch, sizeof m.batch},
        {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.stride, sizeof m.stride},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (cublasLtMatrixLayoutGetAttribute(layout, attributes[i].name, attributes[i].value,
                                             attributes[i].size, &size))
            abort();
    m.element = type == CUDA_R_16BF  ? DL2_ELEMENT_BF16
                : type == CUDA_R_16F ? DL2_ELEMENT_F16
                                     : DL2_ELEMENT_F32;
    return m;
}

struct call {
    struct matrix a, b, d;
    bool transposed_a, transposed_b, biased, relu;
    const void *bias;
    float alpha, beta;
    void *workspace;
};

static bool good_matrix(const struct matrix *m)
{
    return m->leading >= (int64_t)m->rows && m->batch >= 1;
}

/* All that a call is but for addresses and factors; false where it makes no sense. */
static bool describe(struct call *call, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d)
{
    int32_t first = 0, second = 0;
    uint32_t epilogue = 0;
    size_t size;
    if (!a || !b || !d)
        return false;
    call->a = matrix_of(a, NULL);
    call->b = matrix_of(b, NULL);
    call->d = matrix_of(d, NULL);
    if (cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first,
                                       &size) ||
        cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second,
                                       &size) ||
        cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                       sizeof epilogue, &size) ||
        cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call->bias,
                                       sizeof call->bias, &size))
        return false;
    call->transposed_a = first == CUBLAS_OP_T;
    call->transposed_b = second == CUBLAS_OP_T;
    call->relu = epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    call->biased = call->relu || epilogue == CUBLASLT_EPILOGUE_BIAS;
    const struct matrix *x = &call->a, *y = &call->b, *z = &call->d;
    /* What is written may not overlap; what is read may. */
    const int64_t extent = z->leading * ((int64_t)z->columns - 1) + (int64_t)z->rows;
    const bool apart = z->batch == 1 || z->stride >= extent ||
                       (z->stride >= (int64_t)z->rows && z->leading >= z->stride * z->batch);
    return good_matrix(x) && good_matrix(y) && good_matrix(z) && apart && x->batch == z->batch &&
           y->batch == z->batch && x->element == y->element &&
           (call->transposed_a ? x->columns : x->rows) == z->rows &&
           (call->transposed_b ? y->rows : y->columns) == z->columns &&
           (call->transposed_a ? x->rows : x->columns) ==
               (call->transposed_b ? y->columns : y->rows);
}

/* Are the matrices of all the batch where an algorithm that wants `alignment` can read them? */
static bool is_aligned(const struct matrix *m, uint64_t alignment)
{
    const uint64_t stride = (uint64_t)m->stride * dl2_element_size(m->element);
    return (uintptr_t)m->at % alignment == 0 && (m->batch == 1 || stride % alignment == 0);
}

/* An algorithm is the alignments that were promised: of A, B and D (C is D). */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int room,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    static const cublasLtMatmulPreferenceAttributes_t names[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES};
    uint32_t alignments[4];
    uint64_t workspace = 0;
    struct call call = {.alpha = 0};
    size_t size;
    (void)handle;
    if (room < 1 || c != d || !describe(&call, op, a, b, d) ||
        cublasLtMatmulPreferenceGetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace,
                                             &size) != CUBLAS_STATUS_SUCCESS)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < 4; i++)
        if (cublasLtMatmulPreferenceGetAttribute(preference, names[i], &alignments[i],
                                                 sizeof alignments[i],
                                                 &size) != CUBLAS_STATUS_SUCCESS ||
            !alignments[i] || alignments[i] > 16 || alignments[i] & (alignments[i] - 1))
            return CUBLAS_STATUS_INVALID_VALUE;
    *count = 0;
    if (!is_aligned(&call.a, alignments[0]) || !is_aligned(&call.b, alignments[1]) ||
        !is_aligned(&call.d, alignments[2]) || alignments[3] != alignments[2] ||
        workspace < WORKSPACE ||
        (call.biased && call.d.element != DL2_ELEMENT_F32 && getenv("DL2_FAKE_BIAS") &&
         !strcmp(getenv("DL2_FAKE_BIAS"), "none")))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(results, 0, sizeof results[0]);
    for (int i = 0; i < 3; i++)
        results[0].algo.data[i] = alignments[i];
    results[0].workspaceSize = WORKSPACE;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* Where element (row, column) of matrix n of the batch is. */
static char *place(const struct matrix *m, int32_t n, uint64_t row, uint64_t column)
{
    const int64_t i = n * m->stride + (int64_t)row + (int64_t)column * m->leading;
    return (char *)m->at + (size_t)i * dl2_element_size(m->element);
}

static float get(const struct matrix *m, int32_t n, uint64_t row, uint64_t column)
{
    float value;
    dl2_elements_to_floats(m->element, place(m, n, row, column), &value, 1);
    return value;
}

/* Matrix n as [high][inner], rows first, so that sums run along memory. */
static float *spread(const struct matrix *m, int32_t n, bool by_rows, uint64_t high, uint64_t inner)
{
    float *values = malloc(high * inner * sizeof *values);
    if (!values)
        abort();
    for (uint64_t i = 0; i < high; i++)
        for (uint64_t k = 0; k < inner; k++)
            values[i * inner + k] = by_rows ? get(m, n, i, k) : get(m, n, k, i);
    return values;
}

static void multiply_one(const struct call *c, int32_t n)
{
    const uint64_t inner = c->transposed_a ? c->a.rows : c->a.columns;
    const uint64_t rows = c->d.rows, columns = c->d.columns;
    float *a = spread(&c->a, n, !c->transposed_a, rows, inner);
    float *b = spread(&c->b, n, c->transposed_b, columns, inner);
    const struct matrix bias = {
        .at = (void *)(uintptr_t)c->bias, .leading = (int64_t)rows, .element = c->d.element};
    for (uint64_t column = 0; column < columns; column++)
        for (uint64_t row = 0; row < rows; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < inner; k++)
                sum += (double)a[row * inner + k] * b[column * inner + k];
            sum *= c->alpha;
            if (c->beta != 0)
                sum += c->beta * get(&c->d, n, row, column);
            if (c->biased)
                sum += get(&bias, 0, row, 0);
            float value = c->relu && !(sum > 0) ? 0 : (float)sum;
            dl2_elements_from_floats(c->d.element, &value, place(&c->d, n, row, column), 1);
        }
    free(a);
    free(b);
}

static void multiply(void *from)
{
    const struct call *c = from;
    memset(c->workspace, 0xdd, WORKSPACE);
    for (int32_t n = 0; n < c->d.batch; n++)
        multiply_one(c, n);
    static int wrong;
    const char *told = getenv("DL2_FAKE_WRONG");
    const bool nan = told && !strcmp(told, "nan");
    const float value = nan ? NAN : (float)++wrong;
    if (nan || (told && !strcmp(told, "product")))
        dl2_elements_from_floats(c->d.element, &value,
                                 place(&c->d, c->d.batch - 1, c->d.rows - 1, c->d.columns - 1), 1);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_size, cudaStream_t stream)
{
    struct call call = {
        .alpha = *(const float *)alpha, .beta = *(const float *)beta, .workspace = workspace};
    (void)handle;
    if (c != d || c_layout != d_layout || workspace_size < WORKSPACE || !algorithm ||
        !describe(&call, op, a_layout, b_layout, d_layout) || (call.biased && !call.bias))
        return CUBLAS_STATUS_INVALID_VALUE;
    call.a.at = (void *)(uintptr_t)a;
    call.b.at = (void *)(uintptr_t)b;
    call.d.at = d;
    /* A card would stop at a misaligned address. */
    if (!is_aligned(&call.a, algorithm->data[0]) || !is_aligned(&call.b, algorithm->data[1]) ||
        !is_aligned(&call.d, algorithm->data[2]))
        return CUBLAS_STATUS_INVALID_VALUE;
    dl2_fake_queue(stream, multiply, &call, sizeof call);
    return CUBLAS_STATUS_SUCCESS;
}
