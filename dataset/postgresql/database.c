/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/postgresql/database.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"

#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 8, MAX_PARAMETERS = 5 };

/* After a restart of the server one query may meet every connection that was open before. */
enum { MAX_LOSSES = 2 * MAX_CONNECTIONS };

/* Between two looks at whether a query is to be canceled. */
#define LOOK_MS 100

struct dl2_database_pool {
    char *server, *what;
    double timeout; /* seconds */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    PGconn *idle[MAX_CONNECTIONS];
    unsigned idle_count;
    unsigned live;      /* idle or in use */
    unsigned open;      /* the same, and those that are being opened */
    unsigned most;      /* that may be open: MAX_CONNECTIONS, or what the server grants */
    bool given_up;      /* the server was never there, or did not come back: nobody waits for it */
    atomic_int process; /* whose connections these are; negative: of that one, which begins anew */
};

/* ---- Values in binary */

int dl2_database_put_number(struct dl2_bytes *out, uint32_t number, struct dl2_error *error)
{
    const uint32_t big_endian = htobe32(number);
    return dl2_bytes_append(out, &big_endian, sizeof big_endian, error);
}

int dl2_database_put_array(struct dl2_bytes *out, uint32_t type, size_t count,
                           struct dl2_error *error)
{
    const uint32_t header[DL2_DATABASE_ARRAY_HEADER / 4] = {1, 0, type, (uint32_t)count, 1};
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        DL2_TRY(dl2_database_put_number(out, header[i], error));
    return DL2_OK;
}

int dl2_database_put_bytes(struct dl2_bytes *out, const void *data, size_t size,
                           struct dl2_error *error)
{
    DL2_TRY(dl2_database_put_number(out, (uint32_t)size, error));
    return size ? dl2_bytes_append(out, data, size, error) : DL2_OK;
}

/* ---- One connection */

/* libpq's messages have several lines: "ERROR:  ...\nDETAIL:  ...\n". */
static void join_lines(const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text && used + 2 < size) {
        const char byte = *text++;
        if (byte != '\n' && byte != '\t')
            out[used++] = byte;
        else if (byte == '\n' && *text)
            out[used++] = ' ';
    }
    out[used] = '\0';
}

static int tell(int status, const char *message, const char *what, struct dl2_error *error)
{
    char line[512];
    join_lines(message, line, sizeof line);
    return dl2_error_set(error, status, "%s: %s", what,
                         *line ? line : "the server gives no reason");
}

/* Did a command fail because of its connection? The result may be NULL. */
static bool is_lost(const PGconn *connection, const PGresult *result)
{
    const char *code = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    /* An error without a code is libpq's own: it may tell of a loss before the status does. */
    return PQstatus(connection) == CONNECTION_BAD || !code || !strncmp(code, "08", 2) ||
           !strncmp(code, "57P", 3);
}

/* Records the failure as `status`, and clears the result. */
static int tell_failed(int status, const PGconn *connection, PGresult *result, const char *what,
                       struct dl2_error *error)
{
    const char *message = result ? PQresultErrorMessage(result) : "";
    tell(status, *message ? message : PQerrorMessage(connection), what, error);
    PQclear(result);
    return status;
}

int dl2_database_failed(PGconn *connection, PGresult *result, const char *what,
                        struct dl2_error *error)
{
    const bool lost = is_lost(connection, result);
    return tell_failed(lost ? DL2_ERR_LOST : DL2_ERR_SYSTEM, connection, result, what, error);
}

int dl2_database_run(PGconn *connection, const char *what, struct dl2_error *error,
                     const char *format, ...)
{
    DL2_AUTO_FREE char *command = NULL;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&command, format, args);
    va_end(args);
    if (length < 0) {
        command = NULL;
        return dl2_error_memory(error, "a command");
    }
    PGresult *result = PQexec(connection, command);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return dl2_database_failed(connection, result, what, error);
    PQclear(result);
    return DL2_OK;
}

int dl2_database_ask(PGconn *connection, const char *what, const char *command, int count,
                     const char *const *values, PGresult **result, struct dl2_error *error)
{
    *result = PQexecParams(connection, command, count, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(*result) == PGRES_TUPLES_OK)
        return DL2_OK;
    const int status = dl2_database_failed(connection, *result, what, error);
    *result = NULL;
    return status;
}

int dl2_database_each_row(PGconn *connection, const char *what, const char *command, int format,
                          int (*take)(void *context, const PGresult *row, struct dl2_error *error),
                          void *context, struct dl2_error *error)
{
    PGresult *result;
    int status = DL2_OK;
    if (!PQsendQueryParams(connection, command, 0, NULL, NULL, NULL, NULL, format) ||
        !PQsetSingleRowMode(connection))
        return dl2_database_failed(connection, NULL, what, error);
    while ((result = PQgetResult(connection))) {
        const ExecStatusType kind = PQresultStatus(result);
        if (status == DL2_OK && kind != PGRES_SINGLE_TUPLE && kind != PGRES_TUPLES_OK) {
            status = dl2_database_failed(connection, result, what, error);
            continue;
        }
        if (status == DL2_OK && kind == PGRES_SINGLE_TUPLE) {
            status = take(context, result, error);
            if (status < 0) /* the rest is of no use */
                PQrequestCancel(connection);
        }
        PQclear(result);
    }
    return status;
}

/* libpq prints warnings on stderr, if it is not told otherwise. */
static void ignore_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
}

/* A URI that libpq refuses: its reason may hold a piece of a password. */
static int check_server(const char *server, const char *what, struct dl2_error *error)
{
    char *reason = NULL;
    PQconninfoOption *options = PQconninfoParse(server, &reason);
    const bool good = options, secret = strchr(server, '@') || strstr(server, "password");
    PQconninfoFree(options);
    if (!good && reason && !secret)
        tell(DL2_ERR_ARGUMENT, reason, what, error);
    else if (!good)
        dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "%s: no connection URI that libpq understands; characters such as %% @ / in a "
            "name or a password must be percent-encoded",
            what);
    PQfreemem(reason);
    return good ? DL2_OK : DL2_ERR_ARGUMENT;
}

/* Connects for one thread. `what` is the address for messages. */
static int connect_to(const char *server, const char *what, PGconn **out, struct dl2_error *error)
{
    static const char *const names[] = {"dbname", "client_encoding", "fallback_application_name",
                                        NULL};
    const char *const values[] = {server, "UTF8", "dl2", NULL};
    *out = NULL;
    DL2_TRY(check_server(server, what, error));
    PGconn *connection = PQconnectdbParams(names, values, 1);
    if (!connection)
        return dl2_error_memory(error, "a connection");
    PQsetNoticeReceiver(connection, ignore_notice, NULL);
    if (PQstatus(connection) != CONNECTION_OK) {
        const int status = tell(DL2_ERR_SYSTEM, PQerrorMessage(connection), what, error);
        PQfinish(connection);
        return status;
    }
    *out = connection;
    return DL2_OK;
}

char *dl2_database_table(PGconn *connection, const struct dl2_database_uri *uri,
                         struct dl2_error *error)
{
    char *table = PQescapeIdentifier(connection, uri->table, strlen(uri->table));
    if (!uri->schema || !table) {
        if (!table)
            tell(DL2_ERR_ARGUMENT, PQerrorMessage(connection), uri->table, error);
        return table;
    }
    char *schema = PQescapeIdentifier(connection, uri->schema, strlen(uri->schema));
    char *both = schema ? malloc(strlen(schema) + strlen(table) + 2) : NULL;
    if (both)
        stpcpy(stpcpy(stpcpy(both, schema), "."), table);
    else
        tell(DL2_ERR_ARGUMENT, PQerrorMessage(connection), uri->schema, error);
    PQfreemem(schema);
    PQfreemem(table);
    return both;
}

int dl2_database_comment(PGconn *connection, const char *table, const char *what, char **comment,
                         struct dl2_error *error)
{
    *comment = NULL;
    DL2_CLEANUP(dl2_database_clear) PGresult *result = NULL;
    DL2_TRY(dl2_database_ask(connection, what,
                             "SELECT to_regclass($1) IS NOT NULL, "
                             "obj_description(to_regclass($1)::oid, 'pg_class')",
                             1, &table, &result, error));
    if (*PQgetvalue(result, 0, 0) != 't')
        return DL2_OK;
    return dl2_format(comment, error, "%s", PQgetvalue(result, 0, 1));
}

int dl2_database_no_table(const char *what, const char *table, struct dl2_error *error)
{
    return dl2_error_set(
        error, DL2_ERR_FORMAT, "%s: there is no table %s%s", what, table,
        strchr(table, '.') ? "; if a name has a dot, pass schema=SCHEMA beside table=NAME" : "");
}

int dl2_database_open(struct dl2_database_place *place, const char *what, bool grouped,
                      struct dl2_error *error)
{
    *place = (struct dl2_database_place){.what = what};
    DL2_TRY(dl2_database_uri_parse(what, grouped, &place->uri, error));
    DL2_TRY(connect_to(place->uri.server, what, &place->connection, error));
    place->table = dl2_database_table(place->connection, &place->uri, error);
    return place->table ? DL2_OK : DL2_ERR_ARGUMENT;
}

void dl2_database_close(struct dl2_database_place *place)
{
    PQfinish(place->connection);
    PQfreemem(place->table);
    dl2_database_uri_free(&place->uri);
}

/* ---- Several */

int dl2_database_pool_create(const struct dl2_database_uri *uri, const char *what,
                             struct dl2_database_pool **out, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(out, 1, "connections", error));
    struct dl2_database_pool *pool = *out;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->most = MAX_CONNECTIONS;
    pool->given_up = true;
    atomic_init(&pool->process, getpid());
    pool->timeout = uri->timeout;
    DL2_TRY(dl2_format(&pool->server, error, "%s", uri->server));
    return dl2_format(&pool->what, error, "%s", what);
}

void dl2_database_pool_destroy(struct dl2_database_pool *pool)
{
    if (!pool)
        return;
    /* To end a connection of the process that forked this one would end it there. */
    for (unsigned i = 0; i < pool->idle_count && atomic_load(&pool->process) == getpid(); i++)
        PQfinish(pool->idle[i]);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->server);
    free(pool->what);
    free(pool);
}

const char *dl2_database_pool_what(const struct dl2_database_pool *pool)
{
    return pool->what;
}

void dl2_database_pool_release(struct dl2_database_pool *pool, PGconn *connection, bool lost)
{
    if (lost)
        PQfinish(connection);
    pthread_mutex_lock(&pool->mutex);
    if (!lost)
        pool->idle[pool->idle_count++] = connection;
    pool->live -= lost;
    pool->open -= lost;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

void dl2_database_pool_give_away(struct dl2_database_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->live--;
    pool->open--;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

static void wait_a_while(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/*
 * Connects, and goes on trying for a while: a server that restarts refuses at first. If there are
 * connections, it may be that the server grants no more: DL2_ERR_LIMIT without a message.
 */
static int pool_connect(struct dl2_database_pool *pool, PGconn **connection,
                        struct dl2_error *error)
{
    const double start = dl2_clock_wall();
    for (double pause = 0.05;; pause = pause < 1 ? 2 * pause : 1) {
        struct dl2_error own = DL2_ERROR_INIT;
        const int status = connect_to(pool->server, pool->what, connection, &own);
        pthread_mutex_lock(&pool->mutex);
        const unsigned live = pool->live;
        const bool over = pool->given_up || dl2_clock_wall() - start >= pool->timeout;
        if (status == DL2_OK) {
            pool->live++;
            pool->most += pool->most < MAX_CONNECTIONS;
        } else if (live) {
            pool->most = live;
        }
        pool->given_up = status < 0 && over;
        pthread_mutex_unlock(&pool->mutex);
        if (status == DL2_OK)
            return DL2_OK;
        if (status != DL2_ERR_SYSTEM)
            return dl2_error_copy(error, &own);
        if (live)
            return DL2_ERR_LIMIT;
        if (over)
            return dl2_error_set(error, DL2_ERR_LOST, "%s", own.message);
        wait_a_while(pause);
    }
}

/*
 * The connections belong to the process that made them: two that send on one socket get each
 * other's rows. So the child of a fork begins with none. Its memory shows the pool as it was at the
 * fork, perhaps locked by a thread that the child does not have.
 */
static void begin_in_child(struct dl2_database_pool *pool)
{
    const int own = getpid();
    int owner = atomic_load(&pool->process);
    while (owner != own) {
        if (owner != -own && atomic_compare_exchange_strong(&pool->process, &owner, -own)) {
            pthread_mutex_init(&pool->mutex, NULL);
            pthread_cond_init(&pool->changed, NULL);
            pool->idle_count = pool->live = pool->open = 0;
            atomic_store(&pool->process, own);
        } else {
            sched_yield(); /* another thread is at it */
        }
        owner = atomic_load(&pool->process);
    }
}

int dl2_database_pool_acquire(struct dl2_database_pool *pool, PGconn **connection,
                              struct dl2_error *error)
{
    begin_in_child(pool);
    for (;;) {
        pthread_mutex_lock(&pool->mutex);
        while (!pool->idle_count && pool->open && pool->open >= pool->most)
            pthread_cond_wait(&pool->changed, &pool->mutex);
        if (pool->idle_count) {
            *connection = pool->idle[--pool->idle_count];
            pthread_mutex_unlock(&pool->mutex);
            return DL2_OK;
        }
        pool->open++;
        pthread_mutex_unlock(&pool->mutex);
        const int status = pool_connect(pool, connection, error);
        pthread_mutex_lock(&pool->mutex);
        pool->open -= status < 0;
        pthread_cond_broadcast(&pool->changed);
        pthread_mutex_unlock(&pool->mutex);
        if (status != DL2_ERR_LIMIT)
            return status;
    }
}

/* Is the error's SQLSTATE in one of the classes? */
static bool is_of_classes(const PGresult *result, const char *const *classes)
{
    const char *code = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    while (code && *classes && strncmp(code, *classes, 2) != 0)
        classes++;
    return code && *classes;
}

/* Transactions that were rolled back by others, such as by a standby that catches up. */
static bool is_worth_another_try(const PGresult *result)
{
    static const char *const classes[] = {"40", NULL};
    return is_of_classes(result, classes);
}

/* Errors that are no row's fault: of the query, such as a table that was dropped, of rights, of the
 * server's means, of locks, and queries that were canceled or took too long. */
static bool is_refused(const PGresult *result)
{
    static const char *const classes[] = {"25", "28", "3D", "3F", "40",
                                          "42", "53", "55", "57", NULL};
    return is_of_classes(result, classes);
}

static bool cancel(const PGconn *connection)
{
    char unused[256];
    PGcancel *request = PQgetCancel((PGconn *)connection);
    const bool sent = request && PQcancel(request, unused, sizeof unused);
    PQfreeCancel(request);
    return sent;
}

/* Waits for the query that was sent, and cancels it when that is asked for. A signal may come
 * before poll() begins, so this looks from time to time. */
static void wait_for_result(PGconn *connection, const volatile sig_atomic_t *stop)
{
    bool canceled = false;
    while (PQconsumeInput(connection) && PQisBusy(connection)) {
        struct pollfd ready = {PQsocket(connection), POLLIN, 0};
        poll(&ready, 1, LOOK_MS);
        if (*stop && !canceled)
            canceled = cancel(connection);
    }
}

static PGresult *run_query(PGconn *connection, const struct dl2_database_query *query,
                           const int *formats)
{
    PGresult *result = NULL, *next;
    if (!query->stop)
        return PQexecParams(connection, query->command, query->count, NULL, query->values,
                            query->lengths, formats, 1);
    if (!PQsendQueryParams(connection, query->command, query->count, NULL, query->values,
                           query->lengths, formats, 1))
        return NULL;
    wait_for_result(connection, query->stop);
    while ((next = PQgetResult(connection))) {
        PQclear(result);
        result = next;
    }
    return result;
}

/* Runs the query with its receiver of warnings, which the user's settings may not hold back. */
static PGresult *run_with_notices(PGconn *connection, const struct dl2_database_query *query,
                                  const int *formats)
{
    if (!query->notice)
        return run_query(connection, query, formats);
    PQclear(PQexec(connection, "SET client_min_messages TO warning"));
    PQsetNoticeReceiver(connection, query->notice, query->context);
    PGresult *result = run_query(connection, query, formats);
    PQsetNoticeReceiver(connection, ignore_notice, NULL);
    return result;
}

int dl2_database_read(struct dl2_database_pool *pool, const struct dl2_database_query *query,
                      PGresult **result, struct dl2_error *error)
{
    int formats[MAX_PARAMETERS];
    for (int i = 0; i < query->count && i < MAX_PARAMETERS; i++)
        formats[i] = 1;
    *result = NULL;
    for (unsigned losses = 0;;) {
        PGconn *connection;
        DL2_TRY(dl2_database_pool_acquire(pool, &connection, error));
        PGresult *answer = run_with_notices(connection, query, formats);
        if (PQresultStatus(answer) == PGRES_TUPLES_OK) {
            dl2_database_pool_release(pool, connection, false);
            *result = answer;
            return DL2_OK;
        }
        const bool lost = is_lost(connection, answer);
        const bool canceled = query->stop && *query->stop;
        const bool again = lost || is_worth_another_try(answer);
        if (!again || canceled || ++losses == MAX_LOSSES) {
            const int status = canceled                     ? DL2_ERR_CANCELED
                               : lost || is_refused(answer) ? DL2_ERR_LOST
                                                            : DL2_ERR_SYSTEM;
            tell_failed(status, connection, answer, pool->what, error);
            dl2_database_pool_release(pool, connection, lost);
            return status;
        }
        PQclear(answer);
        dl2_database_pool_release(pool, connection, lost);
    }
}
