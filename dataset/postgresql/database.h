/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to PostgreSQL: a few that the threads of a dataset share, and queries that survive
 * the loss of one. Only this room's files include this header.
 */
#ifndef DL2_DATASET_DATABASE_H
#define DL2_DATASET_DATABASE_H

#include "dataset/postgresql/database_uri.h"

#include "common/json.h"
#include "common/memory.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stddef.h>

/* Largest image, bytes: PostgreSQL's limit for a value is 1 GiB with all that goes with it. */
#define DL2_DATABASE_MAX_BYTES (((size_t)1 << 30) - ((size_t)1 << 16))

/* Limits of texts, in bytes: a longer label counts as none, a longer key cannot be read. */
enum { DL2_DATABASE_MAX_KEY = 4096, DL2_DATABASE_MAX_LABEL = 1000, DL2_DATABASE_MAX_SPLIT = 255 };

/* What the comment of a table that dl2-transcode wrote begins with, in "schema". */
#define DL2_DATABASE_SCHEMA "dl2-table/1"

/* Types by the numbers that every server gives them. */
enum {
    DL2_OID_BYTEA = 17,
    DL2_OID_INT8 = 20,
    DL2_OID_INT4 = 23,
    DL2_OID_TEXT = 25,
    DL2_OID_BYTEA_ARRAY = 1001,
    DL2_OID_TEXT_ARRAY = 1009,
    DL2_OID_VARCHAR = 1043
};

/* The table's name, quoted, with its schema if there is one: to be freed with PQfreemem(). */
char *dl2_database_table(PGconn *connection, const struct dl2_database_uri *uri,
                         struct dl2_error *error);

/*
 * The table's comment, "" if it has none; NULL in *comment if there is no such table. A string to
 * free. `table` is quoted.
 */
int dl2_database_comment(PGconn *connection, const char *table, const char *what, char **comment,
                         struct dl2_error *error);

/* Records that there is no such table, whose name is quoted. */
int dl2_database_no_table(const char *what, const char *table, struct dl2_error *error);

/* Makes JSON the table's comment. */
int dl2_database_set_comment(PGconn *connection, const char *table, const char *what,
                             const json_t *comment, struct dl2_error *error);

/* Records what the server says of a failed command, in one line, and clears the result. */
int dl2_database_failed(PGconn *connection, PGresult *result, const char *what,
                        struct dl2_error *error);

/* A number, and the header of an array without nulls, whose elements follow. */
enum { DL2_DATABASE_ARRAY_HEADER = 20 }; /* bytes */
int dl2_database_put_number(struct dl2_bytes *out, uint32_t number, struct dl2_error *error);
int dl2_database_put_array(struct dl2_bytes *out, uint32_t type, size_t count,
                           struct dl2_error *error);
/* Bytes with their length before them, as an element or a field has them. */
int dl2_database_put_bytes(struct dl2_bytes *out, const void *data, size_t size,
                           struct dl2_error *error);

/* Runs a command, which a format makes, without a result. */
int dl2_database_run(PGconn *connection, const char *what, struct dl2_error *error,
                     const char *format, ...) DL2_PRINTF(4, 5);

/* Runs a query with `count` texts for its parameters; *result is to be cleared. */
int dl2_database_ask(PGconn *connection, const char *what, const char *command, int count,
                     const char *const *values, PGresult **result, struct dl2_error *error);

/* Hands a query's rows to take(), one by one, so that no more than one is held; in `format`, 0 for
 * texts and 1 for binary. Cancels the query at the first error. */
int dl2_database_each_row(PGconn *connection, const char *what, const char *command, int format,
                          int (*take)(void *context, const PGresult *row, struct dl2_error *error),
                          void *context, struct dl2_error *error);

/* For DL2_CLEANUP() of a result. */
static inline void dl2_database_clear(PGresult **result)
{
    PQclear(*result);
}

/* A table, with a connection of its own. */
struct dl2_database_place {
    struct dl2_database_uri uri;
    const char *what; /* the address, borrowed */
    PGconn *connection;
    char *table; /* quoted */
};
/* To be closed also after an error; closing rolls back what was not committed. `grouped` is that of
 * dl2_database_uri_parse(). */
int dl2_database_open(struct dl2_database_place *place, const char *what, bool grouped,
                      struct dl2_error *error);
void dl2_database_close(struct dl2_database_place *place);

/* ---- Connections that threads share */

/* The child of a fork may use its copy of a pool: it opens connections of its own. */
struct dl2_database_pool;

/* For the server of an address, which messages name as `what`. */
int dl2_database_pool_create(const struct dl2_database_uri *uri, const char *what,
                             struct dl2_database_pool **out, struct dl2_error *error);
void dl2_database_pool_destroy(struct dl2_database_pool *pool);
/* What messages name it as; lives as long as the pool. */
const char *dl2_database_pool_what(const struct dl2_database_pool *pool);

/*
 * Hands over a connection for this thread alone, to be put back, as lost if it is of no more use.
 * Waits above eight connections, or above as many as the server grants. If a server that was there
 * does not answer, tries for uri->timeout seconds; then DL2_ERR_LOST.
 */
int dl2_database_pool_acquire(struct dl2_database_pool *pool, PGconn **connection,
                              struct dl2_error *error);
void dl2_database_pool_release(struct dl2_database_pool *pool, PGconn *connection, bool lost);
/* Instead of putting it back: the connection is the caller's now, beside those of the pool. */
void dl2_database_pool_give_away(struct dl2_database_pool *pool);

/*
 * Runs a query that only reads, with parameters and results in binary, on a connection of the pool;
 * again on another if that is lost. DL2_ERR_CANCELED: by query->stop. DL2_ERR_LOST: also where the
 * server refuses the query, whatever row it asks for. DL2_ERR_SYSTEM: other errors of the server.
 */
struct dl2_database_query {
    const char *command;
    int count; /* of parameters */
    const char *const *values;
    const int *lengths;
    const volatile sig_atomic_t *stop; /* becomes non-zero to cancel it; NULL: nothing does */
    PQnoticeReceiver notice;           /* of the server's warnings; NULL: they are ignored */
    void *context;                     /* its first argument */
};
int dl2_database_read(struct dl2_database_pool *pool, const struct dl2_database_query *query,
                      PGresult **result, struct dl2_error *error);

/* ---- postgresql_write.c, postgresql_facts.c, postgresql_parts.c */

struct dl2_sink;
struct dl2_facts_store;
struct dl2_parts_store;
extern const struct dl2_sink dl2_database_sink;
extern const struct dl2_facts_store dl2_database_facts;
extern const struct dl2_parts_store dl2_database_parts;

#endif
