/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting the ranks of the transport "local", and looking after them. They are forks of this
 * process, which does nothing else from then on than wait: for their ends, and for signals.
 *
 * Nobody hangs: a rank that ends, however, leaves the shared memory, so that the others' calls
 * fail. Nobody is left over: ranks that don't end when one has failed are killed after a while, and
 * all are by the kernel when this process ends.
 */
#include "common/clock.h"
#include "common/memory.h"
#include "ranks/world_local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* For the others, from when one has failed. */
#define GRACE_SECONDS 5

struct launch {
    struct dl2_local *local;
    unsigned ranks, running;
    pid_t *processes; /* 0: has ended */
    sigset_t signals; /* that are waited for */
    int exit_status;
    double deadline; /* for those that run; 0: none */
    bool told;       /* a signal was handed on */
};

static void send_all(const struct launch *launch, int number)
{
    for (unsigned i = 0; i < launch->ranks; i++)
        if (launch->processes[i])
            kill(launch->processes[i], number);
}

static void rank_ended(struct launch *launch, unsigned rank, int status, struct dl2_error *error)
{
    const bool killed = WIFSIGNALED(status);
    const int code = killed ? 1 : WEXITSTATUS(status);
    if (killed && !launch->deadline)
        dl2_error_set(error, DL2_ERR_SYSTEM,
                      "rank %u of %u (process %ld) was killed by signal %d (%s)", rank,
                      launch->ranks, (long)launch->processes[rank], WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    launch->processes[rank] = 0;
    launch->running--;
    dl2_local_leave(launch->local, rank);
    if (code && !launch->deadline)
        launch->deadline = dl2_clock_wall() + GRACE_SECONDS;
    /* Rank 0's is the run's own, wherever it has something to say. */
    if (code && (rank == 0 || !launch->exit_status))
        launch->exit_status = code;
}

static void reap(struct launch *launch, struct dl2_error *error)
{
    int status;
    pid_t process;
    while (launch->running && (process = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < launch->ranks; i++)
            if (launch->processes[i] == process)
                rank_ended(launch, i, status, error);
}

static void on_signal(struct launch *launch, int number, struct dl2_error *error)
{
    if (launch->told) {
        dl2_error_set(error, DL2_ERR_CANCELED, "killed all %u ranks at a second signal (%s)",
                      launch->ranks, strsignal(number));
        launch->exit_status = 1;
        launch->deadline = dl2_clock_wall();
        send_all(launch, SIGKILL);
        return;
    }
    launch->told = true;
    send_all(launch, number);
}

static void look_after(struct launch *launch, struct dl2_error *error)
{
    while (launch->running) {
        const struct timespec pause = {.tv_sec = 1};
        const int number = sigtimedwait(&launch->signals, NULL, &pause);
        if (number > 0 && number != SIGCHLD)
            on_signal(launch, number, error);
        reap(launch, error);
        if (launch->deadline && dl2_clock_wall() > launch->deadline)
            send_all(launch, SIGKILL);
    }
}

/* In the rank's process. */
static int become_rank(struct launch *launch, unsigned rank, pid_t starter, const sigset_t *before,
                       struct dl2_world **out, struct dl2_error *error)
{
    sigprocmask(SIG_SETMASK, before, NULL);
    free(launch->processes);
    /* getppid(): for a starter that was gone before prctl(). */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != starter)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the process that started rank %u is gone",
                             rank);
    return dl2_local_join(launch->local, rank, true, out, error);
}

static int start(struct launch *launch, const sigset_t *before, struct dl2_world **out,
                 struct dl2_error *error)
{
    const pid_t starter = getpid();
    fflush(NULL); /* or each rank would write out what is in the buffers */
    for (unsigned i = 0; i < launch->ranks; i++) {
        const pid_t process = fork();
        if (process == 0)
            return become_rank(launch, i, starter, before, out, error);
        if (process < 0) {
            dl2_error_system(error, "can't start rank %u of %u", i, launch->ranks);
            launch->exit_status = 1;
            launch->deadline = dl2_clock_wall();
            send_all(launch, SIGKILL);
            break;
        }
        launch->processes[i] = process;
        launch->running++;
    }
    return DL2_WORLD_ENDED;
}

int dl2_local_launch(unsigned ranks, struct dl2_world **out, int *exit_status,
                     struct dl2_error *error)
{
    struct launch launch = {.ranks = ranks};
    sigset_t before;
    *out = NULL;
    *exit_status = 0;
    DL2_TRY(dl2_local_create(ranks, &launch.local, error));
    launch.processes = dl2_calloc(ranks, sizeof *launch.processes);
    if (!launch.processes) {
        dl2_local_destroy(launch.local);
        return dl2_error_memory(error, "%u ranks", ranks);
    }
    sigemptyset(&launch.signals);
    sigaddset(&launch.signals, SIGCHLD);
    sigaddset(&launch.signals, SIGINT);
    sigaddset(&launch.signals, SIGTERM);
    /* If the parent of this process ignores SIGCHLD, the ends of ranks would go unnoticed. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &launch.signals, &before);
    const int status = start(&launch, &before, out, error);
    if (status != DL2_WORLD_ENDED)
        return status; /* in a rank */
    look_after(&launch, error);
    *exit_status = launch.exit_status;
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(launch.processes);
    dl2_local_destroy(launch.local);
    return DL2_WORLD_ENDED;
}
