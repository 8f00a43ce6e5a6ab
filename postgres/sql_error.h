/* SPDX-License-Identifier: BSD-2-Clause */
/* How an error of dl2 ends a query. Include postgres.h first. Only this room's files include this.
 */
#ifndef DL2_POSTGRES_SQL_ERROR_H
#define DL2_POSTGRES_SQL_ERROR_H

#include "common/error.h"

#include <miscadmin.h>

static inline int dl2_sql_code(int status)
{
    switch (status) {
    case DL2_ERR_MEMORY:
        return ERRCODE_OUT_OF_MEMORY;
    case DL2_ERR_FORMAT:
        return ERRCODE_INVALID_BINARY_REPRESENTATION;
    case DL2_ERR_UNSUPPORTED:
        return ERRCODE_FEATURE_NOT_SUPPORTED;
    case DL2_ERR_LIMIT:
        return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    case DL2_ERR_ARGUMENT:
        return ERRCODE_INVALID_PARAMETER_VALUE;
    default:
        return ERRCODE_EXTERNAL_ROUTINE_EXCEPTION;
    }
}

/* Ends the query if a step has failed, or if the user or the server wants it to end. `limits` says
 * which settings limit what, for DL2_ERR_LIMIT. */
static inline void dl2_sql_end_step(const char *function, int status, const struct dl2_error *error,
                                    const char *limits)
{
    if (status < 0)
        ereport(ERROR, errcode(dl2_sql_code(status)), errmsg("%s: %s", function, error->message),
                status == DL2_ERR_LIMIT ? errhint("%s", limits) : 0);
    CHECK_FOR_INTERRUPTS();
}

/* A bytea of these bytes, which `what` names for the message that they are too many. */
static inline bytea *dl2_sql_bytea(const char *function, const char *what, const void *data,
                                   size_t size)
{
    if (size > MaxAllocSize - VARHDRSZ)
        ereport(
            ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("%s: the %s has %zu bytes, and a bytea less than 1 GiB", function, what, size));
    bytea *out = palloc(size + VARHDRSZ);
    SET_VARSIZE(out, size + VARHDRSZ);
    memcpy(VARDATA(out), data, size);
    return out;
}

#endif
