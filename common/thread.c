/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/thread.h"

#include "common/memory.h"
#include "common/scope.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

unsigned dl2_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

/*
 * The loop's items are taken in order, so the items in flight always lie in [emitted, emitted +
 * window):
 *
 *     0 ..... emitted ......... next ........ emitted + window ..... count
 *       out     done or at work   waits for a worker    waits for a slot
 *
 * A worker that finishes emits everything ready from `emitted` on, unless another one is at it
 * already.
 */
struct loop {
    const struct dl2_parallel *plan;
    pthread_mutex_t mutex;
    pthread_cond_t slot_free;
    size_t next, emitted;
    bool emitting, failed;
    bool *done; /* per slot */
    struct dl2_error error;
};

struct worker {
    struct loop *loop;
    unsigned number;
    pthread_t thread;
};

static void loop_fail(struct loop *loop, int status, const struct dl2_error *error)
{
    if (!loop->failed) {
        loop->failed = true;
        loop->error = *error;
        loop->error.status = status;
    }
    pthread_cond_broadcast(&loop->slot_free);
}

/* Emits what is ready, in order. Called and left with the mutex held. */
static void emit_ready(struct loop *loop)
{
    const struct dl2_parallel *plan = loop->plan;
    if (loop->emitting)
        return;
    loop->emitting = true;
    while (!loop->failed && loop->emitted < plan->count && loop->emitted < loop->next &&
           loop->done[loop->emitted % plan->window]) {
        size_t item = loop->emitted, slot = item % plan->window;
        if (plan->emit) {
            pthread_mutex_unlock(&loop->mutex);
            struct dl2_error error = DL2_ERROR_INIT;
            int status = plan->emit(plan->context, slot, item, &error);
            pthread_mutex_lock(&loop->mutex);
            if (status < 0)
                loop_fail(loop, status, &error);
        }
        loop->done[slot] = false;
        loop->emitted++;
        pthread_cond_broadcast(&loop->slot_free);
    }
    loop->emitting = false;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct loop *loop = worker->loop;
    const struct dl2_parallel *plan = loop->plan;
    pthread_mutex_lock(&loop->mutex);
    for (;;) {
        while (!loop->failed && loop->next < plan->count &&
               loop->next >= loop->emitted + plan->window)
            pthread_cond_wait(&loop->slot_free, &loop->mutex);
        if (loop->failed || loop->next >= plan->count)
            break;
        size_t item = loop->next++, slot = item % plan->window;
        pthread_mutex_unlock(&loop->mutex);
        struct dl2_error error = DL2_ERROR_INIT;
        int status = plan->work(plan->context, worker->number, slot, item, &error);
        pthread_mutex_lock(&loop->mutex);
        if (status < 0) {
            loop_fail(loop, status, &error);
        } else {
            loop->done[slot] = true;
            emit_ready(loop);
        }
    }
    pthread_mutex_unlock(&loop->mutex);
    return NULL;
}

void dl2_parallel_resolve(struct dl2_parallel *plan)
{
    if (!plan->jobs)
        plan->jobs = dl2_cpu_count();
    if (!plan->window)
        plan->window = 4 * (size_t)plan->jobs;
    if (plan->window < plan->jobs)
        plan->window = plan->jobs;
}

int dl2_parallel_run(const struct dl2_parallel *given, struct dl2_error *error)
{
    struct dl2_parallel plan = *given;
    dl2_parallel_resolve(&plan);
    struct loop loop = {.plan = &plan, .error = DL2_ERROR_INIT};
    DL2_AUTO_FREE struct worker *workers = NULL;
    DL2_TRY(DL2_NEW(&workers, plan.jobs, "workers", error));
    DL2_TRY(DL2_NEW(&loop.done, plan.window, "workers", error));
    pthread_mutex_init(&loop.mutex, NULL);
    pthread_cond_init(&loop.slot_free, NULL);
    unsigned started = 0;
    for (; started < plan.jobs; started++) {
        workers[started].loop = &loop;
        workers[started].number = started;
        if (pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]) != 0)
            break;
    }
    /* With fewer threads than asked for the work still gets done; with none it can't. */
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    int status = DL2_OK;
    if (started == 0)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "no thread could be started");
    else if (loop.failed)
        status = dl2_error_copy(error, &loop.error);
    pthread_mutex_destroy(&loop.mutex);
    pthread_cond_destroy(&loop.slot_free);
    free(loop.done);
    return status;
}
