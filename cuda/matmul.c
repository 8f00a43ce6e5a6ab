/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/matmul.h"

#include "common/memory.h"

#include <stdlib.h>

/*
 * cublasLt counts columns first, so it is asked for the transposed product: d' = b' * a'. What is
 * [rows][columns] here is a matrix of `columns` rows there, with the same bytes.
 */
struct dl2_product {
    struct dl2_product_shape s;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t first, second, result; /* b, a and d */
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
};

int dl2_cublas_check(cublasStatus_t status, const char *call, const struct dl2_product_shape *s,
                     struct dl2_error *error)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return DL2_OK;
    enum dl2_status code = status == CUBLAS_STATUS_ALLOC_FAILED      ? DL2_ERR_MEMORY
                           : status == CUBLAS_STATUS_NOT_SUPPORTED   ? DL2_ERR_UNSUPPORTED
                           : status == CUBLAS_STATUS_ARCH_MISMATCH   ? DL2_ERR_UNSUPPORTED
                           : status == CUBLAS_STATUS_NOT_INITIALIZED ? DL2_ERR_UNSUPPORTED
                                                                     : DL2_ERR_SYSTEM;
    if (!s)
        return dl2_error_set(error, code, "%s: %s", call, cublasLtGetStatusString(status));
    return dl2_error_set(error, code, "%s for the %s (%u x %u, from %u): %s", call, s->what,
                         s->rows, s->columns, s->inner, cublasLtGetStatusString(status));
}

void dl2_product_free(struct dl2_product *p)
{
    if (!p)
        return;
    if (p->operation)
        cublasLtMatmulDescDestroy(p->operation);
    cublasLtMatrixLayout_t layouts[] = {p->first, p->second, p->result};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            cublasLtMatrixLayoutDestroy(layouts[i]);
    free(p);
}

static cudaDataType_t type_of(enum dl2_precision precision)
{
    return precision == DL2_PRECISION_BF16   ? CUDA_R_16BF
           : precision == DL2_PRECISION_FP16 ? CUDA_R_16F
                                             : CUDA_R_32F;
}

/* Makes the layout of a matrix of `high` rows. */
static int lay_out(const struct dl2_product_shape *s, const struct dl2_product_matrix *m,
                   cudaDataType_t type, unsigned high, unsigned wide, cublasLtMatrixLayout_t *out,
                   struct dl2_error *error)
{
    const int64_t step = m->step ? (int64_t)m->step : (int64_t)wide;
    const int64_t stride = m->stride ? (int64_t)m->stride : step * high;
    const int32_t batch = (int32_t)s->batch;
    DL2_TRY(dl2_cublas_check(cublasLtMatrixLayoutCreate(out, type, wide, high, step),
                             "cublasLtMatrixLayoutCreate", s, error));
    if (batch <= 1)
        return DL2_OK;
    DL2_TRY(dl2_cublas_check(cublasLtMatrixLayoutSetAttribute(
                                 *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                             "cublasLtMatrixLayoutSetAttribute", s, error));
    return dl2_cublas_check(
        cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof stride),
        "cublasLtMatrixLayoutSetAttribute", s, error);
}

static int set_operation(struct dl2_product *p, cublasLtMatmulDescAttributes_t name,
                         const void *value, size_t size, struct dl2_error *error)
{
    return dl2_cublas_check(cublasLtMatmulDescSetAttribute(p->operation, name, value, size),
                            "cublasLtMatmulDescSetAttribute", &p->s, error);
}

static int describe(struct dl2_product *p, struct dl2_error *error)
{
    const struct dl2_product_shape *s = &p->s;
    cudaDataType_t in = type_of(s->precision), out = s->float_result ? CUDA_R_32F : in;
    cublasComputeType_t compute =
        s->precision == DL2_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t first = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = s->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    DL2_TRY(dl2_cublas_check(cublasLtMatmulDescCreate(&p->operation, compute, CUDA_R_32F),
                             "cublasLtMatmulDescCreate", s, error));
    DL2_TRY(set_operation(p, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first, error));
    DL2_TRY(set_operation(p, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second, error));
    if (s->bias)
        DL2_TRY(set_operation(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, error));
    DL2_TRY(lay_out(s, &s->b, in, s->b_transposed ? s->columns : s->inner,
                    s->b_transposed ? s->inner : s->columns, &p->first, error));
    DL2_TRY(lay_out(s, &s->a, in, s->a_transposed ? s->inner : s->rows,
                    s->a_transposed ? s->rows : s->inner, &p->second, error));
    return lay_out(s, &s->d, out, s->rows, s->columns, &p->result, error);
}

static int set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
               const void *value, size_t size, const struct dl2_product_shape *s,
               struct dl2_error *error)
{
    return dl2_cublas_check(cublasLtMatmulPreferenceSetAttribute(preference, name, value, size),
                            "cublasLtMatmulPreferenceSetAttribute", s, error);
}

static int choose_with(struct dl2_product *p, cublasLtHandle_t handle,
                       cublasLtMatmulPreference_t preference, size_t workspace,
                       struct dl2_error *error)
{
    /* Parts of a sum that several blocks make are added in float32, never in a 16-bit result. */
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        uint32_t bytes;
    } aligned[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p->s.b.alignment},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p->s.a.alignment},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p->s.d.alignment},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p->s.d.alignment}};
    DL2_TRY(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace,
                &p->s, error));
    DL2_TRY(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                sizeof reductions, &p->s, error));
    for (int i = 0; i < 4; i++) {
        const uint32_t bytes = aligned[i].bytes ? aligned[i].bytes : 16;
        DL2_TRY(set(preference, aligned[i].name, &bytes, sizeof bytes, &p->s, error));
    }
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    DL2_TRY(dl2_cublas_check(cublasLtMatmulAlgoGetHeuristic(handle, p->operation, p->first,
                                                            p->second, p->result, p->result,
                                                            preference, 1, &found, &count),
                             "cublasLtMatmulAlgoGetHeuristic", &p->s, error));
    if (!count || found.state != CUBLAS_STATUS_SUCCESS)
        return dl2_cublas_check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic",
                                &p->s, error);
    p->algorithm = found.algo;
    p->workspace = found.workspaceSize;
    return DL2_OK;
}

int dl2_product_create(cublasLtHandle_t handle, const struct dl2_product_shape *shape,
                       size_t workspace, struct dl2_product **out, struct dl2_error *error)
{
    cublasLtMatmulPreference_t preference = NULL;
    struct dl2_product *p = dl2_calloc(1, sizeof *p);
    if (!p)
        return dl2_error_memory(error, "a product");
    p->s = *shape;
    int status = describe(p, error);
    if (status == DL2_OK)
        status = dl2_cublas_check(cublasLtMatmulPreferenceCreate(&preference),
                                  "cublasLtMatmulPreferenceCreate", shape, error);
    if (status == DL2_OK)
        status = choose_with(p, handle, preference, workspace, error);
    if (preference)
        cublasLtMatmulPreferenceDestroy(preference);
    if (status < 0) {
        dl2_product_free(p);
        return status;
    }
    *out = p;
    return DL2_OK;
}

size_t dl2_product_workspace(const struct dl2_product *product)
{
    return product->workspace;
}

int dl2_product_run(struct dl2_product *p, cublasLtHandle_t handle, const void *a, const void *b,
                    const void *bias, void *d, bool accumulate, void *workspace,
                    cudaStream_t stream, struct dl2_error *error)
{
    const float alpha = p->s.factor != 0 ? p->s.factor : 1, beta = accumulate ? 1 : 0;
    if (p->s.bias)
        DL2_TRY(set_operation(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias, error));
    return dl2_cublas_check(cublasLtMatmul(handle, p->operation, &alpha, b, p->first, a, p->second,
                                           &beta, d, p->result, d, p->result, &p->algorithm,
                                           workspace, p->workspace, stream),
                            "cublasLtMatmul", &p->s, error);
}
