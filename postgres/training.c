/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SQL functions that train (dl2.sql declares them), for one backend and its only thread. A
 * model hangs on the memory of its aggregate and goes with it, also when an error or a cancel
 * request ends the query. Between two rows the server may stop it.
 */
#include <postgres.h>

#include <fmgr.h>
#include <utils/builtins.h>
#include <utils/fmgrprotos.h>
#include <utils/guc.h>
#include <utils/jsonb.h>
#include <utils/memutils.h>

#include "postgres/sql_error.h"
#include "train/fit.h"

#include <limits.h>
#include <math.h>

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/* The setting dl2.max_training_memory, in KiB. */
static int max_memory = 1 << 20;

void _PG_init(void)
{
    DefineCustomIntVariable("dl2.max_training_memory",
                            "Most memory that a model may take, with all that its training needs.",
                            "Each dl2_fit() and dl2_evaluate() of a query has a model.",
                            &max_memory, 1 << 20, 1024, INT_MAX, PGC_SUSET, GUC_UNIT_KB, NULL, NULL,
                            NULL);
    /* The other library defines dl2.max_pixels. */
    load_external_function("$libdir/dl2", "dl2_sql_info", true, NULL);
}

static struct dl2_fit_limits limits_now(void)
{
    const char *pixels = GetConfigOption("dl2.max_pixels", false, false);
    return (struct dl2_fit_limits){.memory = (uint64_t)max_memory * 1024,
                                   .max_pixels = strtoull(pixels, NULL, 10)};
}

static void end_step(const char *function, int status, const struct dl2_error *error)
{
    dl2_sql_end_step(function, status, error,
                     "dl2.max_training_memory limits a model's memory, dl2.max_pixels an "
                     "image's pixels.");
}

/* What hangs on an aggregate, or on a call. */
struct held {
    struct dl2_fit *fit;
    struct dl2_bytes bytes;
    int64 rows;
};

static void let_go(void *argument)
{
    struct held *held = argument;
    dl2_fit_close(held->fit);
    dl2_bytes_free(&held->bytes);
    held->fit = NULL;
}

static struct held *hold(MemoryContext context)
{
    struct held *held = MemoryContextAllocZero(context, sizeof *held);
    MemoryContextCallback *callback =
        MemoryContextAllocZero(context, sizeof(MemoryContextCallback));
    callback->func = let_go;
    callback->arg = held;
    MemoryContextRegisterResetCallback(context, callback);
    return held;
}

static char *text_of(Jsonb *json)
{
    return JsonbToCString(NULL, &json->root, VARSIZE(json));
}

static bytea *bytes_to_bytea(const char *function, struct dl2_bytes *bytes)
{
    bytea *out = dl2_sql_bytea(function, "model", bytes->data, bytes->size);
    dl2_bytes_free(bytes);
    return out;
}

/* ---- dl2_model */

PG_FUNCTION_INFO_V1(dl2_sql_model);

Datum dl2_sql_model(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_fit_limits limits = limits_now();
    const char *settings = text_of(PG_GETARG_JSONB_P(0));
    struct held *held = hold(CurrentMemoryContext);
    end_step("dl2_model", dl2_fit_make(settings, &limits, &held->bytes, &error), &error);
    PG_RETURN_BYTEA_P(bytes_to_bytea("dl2_model", &held->bytes));
}

/* ---- dl2_order */

PG_FUNCTION_INFO_V1(dl2_sql_order);

Datum dl2_sql_order(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const int64 images = PG_GETARG_INT64(0), epoch = PG_GETARG_INT64(2);
    const int64 most = MaxAllocSize / sizeof(Datum); /* an array is less than 1 GiB */
    if (images < 1 || images > most || epoch < 0)
        ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                errmsg("dl2_order: 1 to %lld images and an epoch from 0 have an order, not %lld "
                       "images and epoch %lld",
                       (long long)most, (long long)images, (long long)epoch));
    Datum *numbers = palloc((Size)images * sizeof *numbers);
    uint32_t *order = palloc((Size)images * sizeof *order);
    end_step("dl2_order",
             dl2_fit_order((uint32_t)images, (uint64_t)PG_GETARG_INT64(1), (uint64_t)epoch, order,
                           &error),
             &error);
    for (int64 i = 0; i < images; i++)
        numbers[i] = Int32GetDatum((int32)order[i]);
    PG_RETURN_ARRAYTYPE_P(
        construct_array(numbers, (int)images, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* ---- dl2_fit and dl2_evaluate */

static struct held *begin_rows(FunctionCallInfo fcinfo, enum dl2_fit_kind kind,
                               const char *function)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_fit_limits limits = limits_now();
    MemoryContext context;
    if (!AggCheckCallContext(fcinfo, &context))
        elog(ERROR, "%s is an aggregate", function);
    if (PG_ARGISNULL(3))
        ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                errmsg("%s: the model is null", function), errhint("dl2_model() makes one."));
    const char *options = PG_NARGS() > 4 && !PG_ARGISNULL(4) ? text_of(PG_GETARG_JSONB_P(4)) : "{}";
    bytea *model = PG_GETARG_BYTEA_PP(3);
    struct held *held = hold(context);
    end_step(function,
             dl2_fit_open(kind, VARDATA_ANY(model), VARSIZE_ANY_EXHDR(model), options, &limits,
                          &held->fit, &error),
             &error);
    return held;
}

/* The row's number, from 0, unless the query has numbers. */
static uint32_t number_of(FunctionCallInfo fcinfo, const struct held *held, const char *function)
{
    const int64 number = PG_NARGS() > 5 && !PG_ARGISNULL(5) ? PG_GETARG_INT64(5) : held->rows;
    if (number < 0 || number > UINT32_MAX)
        ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                errmsg("%s: row %lld: the number is not within 0 and 4294967295", function,
                       (long long)held->rows + 1));
    return (uint32_t)number;
}

static Datum add_row(FunctionCallInfo fcinfo, enum dl2_fit_kind kind, const char *function)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct held *held =
        PG_ARGISNULL(0) ? begin_rows(fcinfo, kind, function) : (struct held *)PG_GETARG_POINTER(0);
    const uint32_t number = number_of(fcinfo, held, function);
    held->rows++;
    if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
        ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                errmsg("%s: row %lld: the %s is null", function, (long long)held->rows,
                       PG_ARGISNULL(1) ? "image" : "label"));
    bytea *image = PG_GETARG_BYTEA_PP(1);
    const int status = dl2_fit_add(held->fit, VARDATA_ANY(image), VARSIZE_ANY_EXHDR(image),
                                   PG_GETARG_INT32(2), number, &error);
    if (status != DL2_OK)
        dl2_error_prefix(&error, "row %lld", (long long)held->rows);
    if (status > 0)
        ereport(WARNING, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                errmsg("%s: %s", function, error.message));
    end_step(function, status, &error);
    PG_RETURN_POINTER(held);
}

PG_FUNCTION_INFO_V1(dl2_sql_fit);

Datum dl2_sql_fit(PG_FUNCTION_ARGS)
{
    return add_row(fcinfo, DL2_FIT_TRAIN, "dl2_fit");
}

PG_FUNCTION_INFO_V1(dl2_sql_fitted);

Datum dl2_sql_fitted(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_fit_figures figures;
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    struct held *held = (struct held *)PG_GETARG_POINTER(0);
    int status = dl2_fit_end(held->fit, &figures, &error);
    if (status == DL2_OK)
        status = dl2_fit_save(held->fit, &held->bytes, &error);
    end_step("dl2_fit", status, &error);
    dl2_fit_close(held->fit);
    held->fit = NULL;
    PG_RETURN_BYTEA_P(bytes_to_bytea("dl2_fit", &held->bytes));
}

PG_FUNCTION_INFO_V1(dl2_sql_evaluate);

Datum dl2_sql_evaluate(PG_FUNCTION_ARGS)
{
    return add_row(fcinfo, DL2_FIT_EVALUATE, "dl2_evaluate");
}

/* As JSON, which has no NAN. */
static char *number_text(double number)
{
    return isfinite(number) ? psprintf("%.17g", number) : "null";
}

PG_FUNCTION_INFO_V1(dl2_sql_evaluated);

Datum dl2_sql_evaluated(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_fit_figures figures;
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    struct held *held = (struct held *)PG_GETARG_POINTER(0);
    end_step("dl2_evaluate", dl2_fit_end(held->fit, &figures, &error), &error);
    char *text = psprintf("{\"images\": %llu, \"bad\": %llu, \"loss\": %s, \"top1\": %s}",
                          (unsigned long long)figures.images, (unsigned long long)figures.bad,
                          number_text(figures.loss), number_text(figures.top1));
    PG_RETURN_DATUM(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}
