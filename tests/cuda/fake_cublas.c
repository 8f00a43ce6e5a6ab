/*
 * cublasLtMatmul() by its documentation, columns first, in plain C. Descriptors and layouts are the
 * real library's, which needs no card for them.
 */
#include "tests/cuda/fake_cuda.h"

#include "train/element.h"

#include <cublasLt.h>
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

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int room,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    uint32_t alignment = 0;
    size_t size;
    (void)handle, (void)op, (void)a, (void)b, (void)c, (void)d;
    if (room < 1 ||
        cublasLtMatmulPreferenceGetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                             &alignment, sizeof alignment,
                                             &size) != CUBLAS_STATUS_SUCCESS ||
        alignment > 16)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(results, 0, sizeof results[0]);
    results[0].workspaceSize = WORKSPACE;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* A matrix, columns first. */
struct matrix {
    void *at;
    uint64_t rows, columns;
    int64_t leading;
    enum dl2_element element;
};

struct call {
    struct matrix a, b, d;
    bool transposed_a, transposed_b, biased;
    const void *bias;
    float alpha, beta;
    void *workspace;
};

static struct matrix matrix_of(cublasLtMatrixLayout_t layout, const void *at)
{
    struct matrix m = {.at = (void *)(uintptr_t)at};
    uint32_t type = 0;
    size_t size;
    if (cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type,
                                         &size) ||
        cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &m.rows,
                                         sizeof m.rows, &size) ||
        cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &m.columns,
                                         sizeof m.columns, &size) ||
        cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, &m.leading,
                                         sizeof m.leading, &size))
        abort();
    m.element = type == CUDA_R_16BF  ? DL2_ELEMENT_BF16
                : type == CUDA_R_16F ? DL2_ELEMENT_F16
                                     : DL2_ELEMENT_F32;
    return m;
}

static float get(const struct matrix *m, uint64_t row, uint64_t column, bool transposed)
{
    uint64_t i =
        transposed ? column + row * (uint64_t)m->leading : row + column * (uint64_t)m->leading;
    float value;
    dl2_elements_to_floats(m->element, (const char *)m->at + i * dl2_element_size(m->element),
                           &value, 1);
    return value;
}

static void multiply(void *from)
{
    const struct call *c = from;
    uint64_t inner = c->transposed_a ? c->a.rows : c->a.columns;
    memset(c->workspace, 0xdd, WORKSPACE);
    for (uint64_t column = 0; column < c->d.columns; column++)
        for (uint64_t row = 0; row < c->d.rows; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < inner; k++)
                sum += (double)get(&c->a, row, k, c->transposed_a) *
                       get(&c->b, k, column, c->transposed_b);
            sum *= c->alpha;
            if (c->beta != 0)
                sum += c->beta * get(&c->d, row, column, false);
            if (c->biased) {
                const struct matrix bias = {(void *)(uintptr_t)c->bias, c->d.rows, 1,
                                            (int64_t)c->d.rows, c->d.element};
                sum += get(&bias, row, 0, false);
            }
            float value = (float)sum;
            size_t i = row + column * (uint64_t)c->d.leading;
            dl2_elements_from_floats(c->d.element, &value,
                                     (char *)c->d.at + i * dl2_element_size(c->d.element), 1);
        }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_size, cudaStream_t stream)
{
    int32_t first = 0, second = 0;
    uint32_t epilogue = 0;
    size_t size;
    (void)handle;
    struct call call = {.a = matrix_of(a_layout, a),
                        .b = matrix_of(b_layout, b),
                        .d = matrix_of(d_layout, d),
                        .alpha = *(const float *)alpha,
                        .beta = *(const float *)beta,
                        .workspace = workspace};
    if (cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first,
                                       &size) ||
        cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second,
                                       &size) ||
        cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                       sizeof epilogue, &size) ||
        cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call.bias,
                                       sizeof call.bias, &size))
        return CUBLAS_STATUS_INVALID_VALUE;
    call.transposed_a = first == CUBLAS_OP_T;
    call.transposed_b = second == CUBLAS_OP_T;
    call.biased = epilogue == CUBLASLT_EPILOGUE_BIAS;
    uint64_t rows = call.transposed_a ? call.a.columns : call.a.rows;
    uint64_t columns = call.transposed_b ? call.b.rows : call.b.columns;
    uint64_t inner = call.transposed_a ? call.a.rows : call.a.columns;
    uint64_t other = call.transposed_b ? call.b.columns : call.b.rows;
    if (c != d || c_layout != d_layout || rows != call.d.rows || columns != call.d.columns ||
        inner != other || call.a.leading < (int64_t)call.a.rows ||
        call.b.leading < (int64_t)call.b.rows || workspace_size < WORKSPACE || !algorithm ||
        (call.biased && !call.bias))
        return CUBLAS_STATUS_INVALID_VALUE;
    dl2_fake_queue(stream, multiply, &call, sizeof call);
    return CUBLAS_STATUS_SUCCESS;
}
