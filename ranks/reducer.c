/* SPDX-License-Identifier: BSD-2-Clause */
#include "ranks/reducer.h"
#include "common/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Begun and not done; who begins more waits. Networks have fewer buckets than that. */
#define QUEUE 64

struct dl2_reducer {
    const struct dl2_world *world;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct piece {
        float *data;
        size_t count;
    } queue[QUEUE];
    unsigned first, count; /* the first is being added up */
    bool closing;
    struct dl2_error failure;
};

static void *run(void *context)
{
    struct dl2_reducer *reducer = context;
    pthread_mutex_lock(&reducer->mutex);
    for (;;) {
        while (!reducer->count && !reducer->closing)
            pthread_cond_wait(&reducer->changed, &reducer->mutex);
        if (!reducer->count)
            break;
        const struct piece piece = reducer->queue[reducer->first];
        struct dl2_error error = DL2_ERROR_INIT;
        if (!reducer->failure.status) {
            pthread_mutex_unlock(&reducer->mutex);
            reducer->world->ops->sum(reducer->world, 1, DL2_WORLD_FLOATS, piece.data, piece.count,
                                     &error);
            pthread_mutex_lock(&reducer->mutex);
        }
        if (error.status)
            reducer->failure = error;
        reducer->first = (reducer->first + 1) % QUEUE;
        reducer->count--;
        pthread_cond_broadcast(&reducer->changed);
    }
    pthread_mutex_unlock(&reducer->mutex);
    return NULL;
}

int dl2_reducer_start(const struct dl2_world *world, struct dl2_reducer **out,
                      struct dl2_error *error)
{
    struct dl2_reducer *reducer;
    DL2_TRY(DL2_NEW(&reducer, 1, "adding up gradients", error));
    reducer->world = world;
    pthread_mutex_init(&reducer->mutex, NULL);
    pthread_cond_init(&reducer->changed, NULL);
    int reason = pthread_create(&reducer->thread, NULL, run, reducer);
    if (reason) {
        pthread_cond_destroy(&reducer->changed);
        pthread_mutex_destroy(&reducer->mutex);
        free(reducer);
        return dl2_error_set(error, DL2_ERR_SYSTEM, "can't start a thread to add up gradients: %s",
                             strerror(reason));
    }
    *out = reducer;
    return DL2_OK;
}

void dl2_reducer_stop(struct dl2_reducer *reducer)
{
    if (!reducer)
        return;
    pthread_mutex_lock(&reducer->mutex);
    reducer->closing = true;
    pthread_cond_broadcast(&reducer->changed);
    pthread_mutex_unlock(&reducer->mutex);
    pthread_join(reducer->thread, NULL);
    pthread_cond_destroy(&reducer->changed);
    pthread_mutex_destroy(&reducer->mutex);
    free(reducer);
}

void dl2_reducer_add(struct dl2_reducer *reducer, float *data, size_t count)
{
    pthread_mutex_lock(&reducer->mutex);
    while (reducer->count == QUEUE)
        pthread_cond_wait(&reducer->changed, &reducer->mutex);
    reducer->queue[(reducer->first + reducer->count++) % QUEUE] = (struct piece){data, count};
    pthread_cond_broadcast(&reducer->changed);
    pthread_mutex_unlock(&reducer->mutex);
}

int dl2_reducer_wait(struct dl2_reducer *reducer, struct dl2_error *error)
{
    pthread_mutex_lock(&reducer->mutex);
    while (reducer->count)
        pthread_cond_wait(&reducer->changed, &reducer->mutex);
    const int status = dl2_error_copy(error, &reducer->failure);
    pthread_mutex_unlock(&reducer->mutex);
    return status;
}
