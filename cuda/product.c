#include "cuda/product.h"

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
    return dl2_error_set(error, code, "%s for the %s of a linear layer (%u x %u, from %u): %s",
                         call, s->what, s->rows, s->columns, s->inner,
                         cublasLtGetStatusString(status));
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

static int describe(struct dl2_product *p, struct dl2_error *error)
{
    const struct dl2_product_shape *s = &p->s;
    cudaDataType_t in = type_of(s->precision), out = s->float_result ? CUDA_R_32F : in;
    cublasComputeType_t compute =
        s->precision == DL2_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t first = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    DL2_TRY(dl2_cublas_check(cublasLtMatmulDescCreate(&p->operation, compute, CUDA_R_32F),
                             "cublasLtMatmulDescCreate", s, error));
    DL2_TRY(dl2_cublas_check(cublasLtMatmulDescSetAttribute(
                                 p->operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
                             "cublasLtMatmulDescSetAttribute", s, error));
    DL2_TRY(dl2_cublas_check(cublasLtMatmulDescSetAttribute(
                                 p->operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
                             "cublasLtMatmulDescSetAttribute", s, error));
    if (s->bias)
        DL2_TRY(dl2_cublas_check(cublasLtMatmulDescSetAttribute(p->operation,
                                                                CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                                &epilogue, sizeof epilogue),
                                 "cublasLtMatmulDescSetAttribute", s, error));
    uint64_t wide_b = s->b_transposed ? s->inner : s->columns;
    uint64_t high_b = s->b_transposed ? s->columns : s->inner;
    uint64_t wide_a = s->a_transposed ? s->rows : s->inner;
    uint64_t high_a = s->a_transposed ? s->inner : s->rows;
    DL2_TRY(
        dl2_cublas_check(cublasLtMatrixLayoutCreate(&p->first, in, wide_b, high_b, (int64_t)wide_b),
                         "cublasLtMatrixLayoutCreate", s, error));
    DL2_TRY(dl2_cublas_check(
        cublasLtMatrixLayoutCreate(&p->second, in, wide_a, high_a, (int64_t)wide_a),
        "cublasLtMatrixLayoutCreate", s, error));
    return dl2_cublas_check(
        cublasLtMatrixLayoutCreate(&p->result, out, s->columns, s->rows, s->columns),
        "cublasLtMatrixLayoutCreate", s, error);
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
    const uint32_t alignment = 16;
    /* Parts of a sum that several blocks make are added in float32, never in a 16-bit result. */
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    DL2_TRY(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace,
                &p->s, error));
    DL2_TRY(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                sizeof reductions, &p->s, error));
    for (int i = 0; i < 4; i++)
        DL2_TRY(set(preference, aligned[i], &alignment, sizeof alignment, &p->s, error));
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
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a linear layer");
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
    const float alpha = 1, beta = accumulate ? 1 : 0;
    if (p->s.bias)
        DL2_TRY(dl2_cublas_check(cublasLtMatmulDescSetAttribute(p->operation,
                                                                CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                                &bias, sizeof bias),
                                 "cublasLtMatmulDescSetAttribute", &p->s, error));
    return dl2_cublas_check(cublasLtMatmul(handle, p->operation, &alpha, b, p->first, a, p->second,
                                           &beta, d, p->result, d, p->result, &p->algorithm,
                                           workspace, p->workspace, stream),
                            "cublasLtMatmul", &p->s, error);
}
