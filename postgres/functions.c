/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SQL functions of the extension dl2 (dl2.sql declares them), for one backend and its only
 * thread. Memory outside PostgreSQL's contexts hangs on the calling query's and goes with it, also
 * when an error or a cancel request ends the query.
 */
#include <postgres.h>

#include <fmgr.h>
#include <funcapi.h>
#include <mb/pg_wchar.h>
#include <utils/builtins.h>
#include <utils/guc.h>
#include <utils/memutils.h>

#include "postgres/image_work.h"
#include "postgres/sql_error.h"

#include <limits.h>
#include <math.h>

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/* The setting dl2.max_pixels. Backends are processes: each has its own. */
static int max_pixels = 1 << 26;

void _PG_init(void)
{
    DefineCustomIntVariable("dl2.max_pixels",
                            "Largest image that dl2's functions decode, in pixels.",
                            "Two such images may be in memory, with 3 bytes a pixel, beside what "
                            "their codec needs.",
                            &max_pixels, 1 << 26, 1, INT_MAX, PGC_SUSET, 0, NULL, NULL, NULL);
}

/* ---- What all functions need */

static void end_step(const char *function, int status, const struct dl2_error *error)
{
    dl2_sql_end_step(function, status, error, "dl2.max_pixels limits the pixels of an image.");
}

static void destroy_work(void *work)
{
    dl2_image_work_destroy(work);
}

/* The memory of this call's place in the query, which all its rows share. */
static struct dl2_image_work *take_work(FunctionCallInfo fcinfo, const char *function)
{
    struct dl2_error error = DL2_ERROR_INIT;
    FmgrInfo *place = fcinfo->flinfo;
    if (place->fn_extra)
        return place->fn_extra;
    /* Registered first: whatever ends the query from here on frees the work. */
    MemoryContextCallback *callback =
        MemoryContextAllocZero(place->fn_mcxt, sizeof(MemoryContextCallback));
    callback->func = destroy_work;
    MemoryContextRegisterResetCallback(place->fn_mcxt, callback);
    struct dl2_image_work *work;
    const int status = dl2_image_work_create(&work, &error);
    callback->arg = work;
    end_step(function, status, &error);
    place->fn_extra = work;
    return work;
}

static void decode(struct dl2_image_work *work, enum dl2_image_role role, bytea *image,
                   const char *function, const char *which)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const int status = dl2_image_work_decode(work, role, VARDATA_ANY(image),
                                             VARSIZE_ANY_EXHDR(image), max_pixels, &error);
    if (which)
        dl2_error_prefix(&error, "%s", which);
    if (status < 0)
        dl2_image_work_trim(work);
    end_step(function, status, &error);
}

/* ---- dl2_info */

PG_FUNCTION_INFO_V1(dl2_sql_info);

Datum dl2_sql_info(PG_FUNCTION_ARGS)
{
    enum { COLUMNS = 11 };
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_facts facts;
    TupleDesc row;
    bytea *image = PG_GETARG_BYTEA_PP(0);
    if (get_call_result_type(fcinfo, NULL, &row) != TYPEFUNC_COMPOSITE || row->natts != COLUMNS)
        elog(ERROR, "dl2_info: the extension's library and its SQL are of different versions");
    end_step("dl2_info",
             dl2_image_work_look(VARDATA_ANY(image), VARSIZE_ANY_EXHDR(image), &facts, &error),
             &error);
    const bool coded = facts.subsampling != NULL;
    Datum values[COLUMNS] = {
        CStringGetTextDatum(facts.format),
        Int32GetDatum((int32)facts.width),
        Int32GetDatum((int32)facts.height),
        Int32GetDatum((int32)facts.channels),
        Int32GetDatum((int32)facts.bits),
        BoolGetDatum(facts.alpha),
        Int32GetDatum(facts.orientation),
        Int32GetDatum(facts.quality),
        coded ? CStringGetTextDatum(facts.subsampling) : (Datum)0,
        BoolGetDatum(facts.progressive > 0),
        CStringGetTextDatum(facts.color),
    };
    bool nulls[COLUMNS] = {
        [7] = !facts.quality, [8] = !coded, [9] = facts.progressive < 0, [10] = !*facts.color};
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row), values, nulls)));
}

/* ---- dl2_check */

PG_FUNCTION_INFO_V1(dl2_sql_check);

Datum dl2_sql_check(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    bytea *image = PG_GETARG_BYTEA_PP(0);
    struct dl2_image_work *work = take_work(fcinfo, "dl2_check");
    const int status = dl2_image_work_decode(work, DL2_IMAGE_REFERENCE, VARDATA_ANY(image),
                                             VARSIZE_ANY_EXHDR(image), max_pixels, &error);
    dl2_image_work_trim(work);
    end_step("dl2_check", status == DL2_ERR_MEMORY ? status : DL2_OK, &error);
    if (status == DL2_OK)
        PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(error.message));
}

/* ---- dl2_score */

PG_FUNCTION_INFO_V1(dl2_sql_score);

Datum dl2_sql_score(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    double value = NAN;
    bytea *reference = PG_GETARG_BYTEA_PP(0), *variant = PG_GETARG_BYTEA_PP(1);
    const char *metric = text_to_cstring(PG_GETARG_TEXT_PP(2));
    struct dl2_image_work *work = take_work(fcinfo, "dl2_score");
    decode(work, DL2_IMAGE_REFERENCE, reference, "dl2_score", "the reference");
    decode(work, DL2_IMAGE_VARIANT, variant, "dl2_score", "the variant");
    const int status = dl2_image_work_score(work, metric, &value, &error);
    dl2_image_work_trim(work);
    end_step("dl2_score", status, &error);
    if (isnan(value))
        PG_RETURN_NULL();
    PG_RETURN_FLOAT8(value);
}

/* ---- dl2_transcode */

PG_FUNCTION_INFO_V1(dl2_sql_transcode);

Datum dl2_sql_transcode(PG_FUNCTION_ARGS)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const uint8_t *data;
    size_t size;
    bytea *image = PG_GETARG_BYTEA_PP(0);
    const char *codec = text_to_cstring(PG_GETARG_TEXT_PP(1));
    struct dl2_image_work *work = take_work(fcinfo, "dl2_transcode");
    decode(work, DL2_IMAGE_REFERENCE, image, "dl2_transcode", NULL);
    end_step("dl2_transcode",
             dl2_image_work_encode(work, codec, PG_GETARG_INT32(2), VARDATA_ANY(image),
                                   VARSIZE_ANY_EXHDR(image), &data, &size, &error),
             &error);
    bytea *out = dl2_sql_bytea("dl2_transcode", "encoded image", data, size);
    dl2_image_work_trim(work);
    PG_RETURN_BYTEA_P(out);
}
