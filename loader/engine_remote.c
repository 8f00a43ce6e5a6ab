/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads from servers with one thread, which hands requests to remote/ and takes what has
 * come: as many are under way at once as the dataset allows, so that their latency does not add up.
 */
#include "loader/engine.h"

#include "remote/remote.h"

#include <stdlib.h>

struct flight {
    struct remote *engine;
    struct dl2_read_request *request;
    struct dl2_remote_read read;
    struct flight *after; /* in a list of free flights, or of landed ones */
};

struct remote {
    struct dl2_read_ahead *ahead;
    struct flight *flights, *free;
    unsigned count, under_way;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards: */
    pthread_cond_t changed;
    struct flight *landed;
    bool woken;
};

static void remote_wake(void *state)
{
    struct remote *remote = state;
    pthread_mutex_lock(&remote->mutex);
    remote->woken = true;
    pthread_cond_signal(&remote->changed);
    pthread_mutex_unlock(&remote->mutex);
}

/* On the transport's thread. */
static void flight_landed(void *context)
{
    struct flight *flight = context;
    struct remote *remote = flight->engine;
    pthread_mutex_lock(&remote->mutex);
    flight->after = remote->landed;
    remote->landed = flight;
    pthread_cond_signal(&remote->changed);
    pthread_mutex_unlock(&remote->mutex);
}

static void end_flight(struct remote *remote, struct flight *flight)
{
    const bool good = dl2_remote_read_end(&flight->read, NULL) == DL2_OK;
    dl2_read_ahead_done(remote->ahead, flight->request, good);
    flight->after = remote->free;
    remote->free = flight;
    remote->under_way--;
}

static void begin_flight(struct remote *remote, struct dl2_read_request *request)
{
    struct flight *flight = remote->free;
    remote->free = flight->after;
    remote->under_way++;
    flight->request = request;
    flight->read = (struct dl2_remote_read){
        .file = request->remote,
        .offset = request->offset,
        .size = request->bytes,
        .data = request->buffer,
        .unit = request->start,
        .done = flight_landed,
        .context = flight,
    };
    if (dl2_remote_read_begin(&flight->read)) /* the cache had it */
        end_flight(remote, flight);
}

static struct flight *wait_for_landing(struct remote *remote)
{
    pthread_mutex_lock(&remote->mutex);
    while (!remote->landed && !remote->woken)
        pthread_cond_wait(&remote->changed, &remote->mutex);
    struct flight *landed = remote->landed;
    remote->landed = NULL;
    remote->woken = false;
    pthread_mutex_unlock(&remote->mutex);
    return landed;
}

static void *remote_serve(void *context)
{
    struct remote *remote = context;
    bool over = false;
    while (!over || remote->under_way) {
        struct dl2_read_request *request;
        while (!over && remote->free &&
               (request = dl2_read_ahead_next(remote->ahead, false, &over)))
            begin_flight(remote, request);
        if (over && !remote->under_way)
            break;
        for (struct flight *flight = wait_for_landing(remote), *after; flight; flight = after) {
            after = flight->after;
            end_flight(remote, flight);
        }
    }
    return NULL;
}

static void free_remote(struct remote *remote)
{
    pthread_cond_destroy(&remote->changed);
    pthread_mutex_destroy(&remote->mutex);
    free(remote->flights);
    free(remote);
}

static void remote_stop(void *state)
{
    struct remote *remote = state;
    pthread_join(remote->thread, NULL);
    free_remote(remote);
}

static int remote_start(struct dl2_read_ahead *ahead, void **state, struct dl2_error *error)
{
    struct remote *remote;
    DL2_TRY(DL2_NEW(&remote, 1, "reading ahead", error));
    pthread_mutex_init(&remote->mutex, NULL);
    pthread_cond_init(&remote->changed, NULL);
    remote->ahead = ahead;
    remote->count = dl2_read_ahead_requests(ahead);
    remote->flights = dl2_calloc(remote->count, sizeof *remote->flights);
    int status = remote->flights ? DL2_OK : dl2_error_memory(error, "reading ahead");
    for (unsigned i = 0; status == DL2_OK && i < remote->count; i++) {
        remote->flights[i] = (struct flight){.engine = remote, .after = remote->free};
        remote->free = &remote->flights[i];
    }
    *state = remote;
    if (status == DL2_OK && pthread_create(&remote->thread, NULL, remote_serve, remote) != 0)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "no thread to read ahead could be started");
    if (status < 0)
        free_remote(remote);
    return status;
}

const struct dl2_read_engine dl2_read_engine_remote = {DL2_IO_AUTO, remote_start, remote_wake,
                                                       remote_stop};
