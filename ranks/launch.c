/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting the ranks of the transport "local", and looking after them. They are forks of this
 * process, which does nothing else from then on than wait: for their ends, and for signals.
 *
 * Where ranks have parted (ranks/world.h), one that is killed is started again, and none is waited
 * for by the others.
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
    double deadline;    /* for those that run; 0: none */
    bool told;          /* a signal was handed on */
    bool struck;        /* those that ran were killed here */
    unsigned *restarts; /* of each rank */
    unsigned killed;    /* the rank to start again; `ranks`: none */
    pid_t starter;
    const sigset_t *before; /* signals that were blocked before */
};

static void send_all(const struct launch *launch, int number)
{
    for (unsigned i = 0; i < launch->ranks; i++)
        if (launch->processes[i])
            kill(launch->processes[i], number);
}

static void strike_all(struct launch *launch)
{
    launch->struck = true;
    send_all(launch, SIGKILL);
}

static void rank_ended(struct launch *launch, unsigned rank, int status, struct dl2_error *error)
{
    const bool killed = WIFSIGNALED(status), parted = dl2_local_parted(launch->local);
    if (killed && parted && !launch->told && launch->restarts[rank] < DL2_WORLD_RESTARTS) {
        launch->processes[rank] = 0;
        launch->running--;
        launch->restarts[rank]++;
        launch->killed = rank;
        return;
    }
    const int code = killed ? 1 : WEXITSTATUS(status);
    if (killed && !launch->struck) /* also after another one has failed, perhaps for this */
        dl2_error_set(error, DL2_ERR_SYSTEM,
                      "rank %u of %u (process %ld) was killed by signal %d (%s)", rank,
                      launch->ranks, (long)launch->processes[rank], WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    launch->processes[rank] = 0;
    launch->running--;
    dl2_local_leave(launch->local, rank);
    if (code && !launch->deadline && !parted)
        launch->deadline = dl2_clock_wall() + GRACE_SECONDS;
    /* Rank 0's is the run's own, wherever it has something to say. */
    if (code && (rank == 0 || !launch->exit_status))
        launch->exit_status = code;
}

static void reap(struct launch *launch, struct dl2_error *error)
{
    int status;
    pid_t process;
    while (launch->running && launch->killed == launch->ranks &&
           (process = waitpid(-1, &status, WNOHANG)) > 0)
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
        strike_all(launch);
        return;
    }
    launch->told = true;
    send_all(launch, number);
}

/* In the rank's process. */
static int become_rank(struct launch *launch, unsigned rank, struct dl2_world **out,
                       struct dl2_error *error)
{
    const bool again = launch->restarts[rank] > 0;
    sigprocmask(SIG_SETMASK, launch->before, NULL);
    free(launch->processes);
    free(launch->restarts);
    /* getppid(): for a starter that was gone before prctl(). */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != launch->starter)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the process that started rank %u is gone",
                             rank);
    DL2_TRY(dl2_local_join(launch->local, rank, true, out, error));
    (*out)->again = again;
    return DL2_OK;
}

/* Returns DL2_WORLD_ENDED, or what become_rank() does in a rank that was started again. */
static int look_after(struct launch *launch, struct dl2_world **out, struct dl2_error *error)
{
    while (launch->running || launch->killed < launch->ranks) {
        if (launch->killed < launch->ranks) {
            const unsigned rank = launch->killed;
            const pid_t process = fork();
            if (process == 0)
                return become_rank(launch, rank, out, error);
            launch->killed = launch->ranks;
            if (process > 0) {
                launch->processes[rank] = process;
                launch->running++;
            } else {
                dl2_error_system(error, "can't start rank %u again", rank);
                launch->exit_status = 1;
                dl2_local_leave(launch->local, rank);
            }
            reap(launch, error);
            continue;
        }
        const struct timespec pause = {.tv_sec = 1};
        const int number = sigtimedwait(&launch->signals, NULL, &pause);
        if (number > 0 && number != SIGCHLD)
            on_signal(launch, number, error);
        reap(launch, error);
        if (launch->deadline && dl2_clock_wall() > launch->deadline)
            strike_all(launch);
    }
    return DL2_WORLD_ENDED;
}

static int start(struct launch *launch, struct dl2_world **out, struct dl2_error *error)
{
    fflush(NULL); /* or each rank would write out what is in the buffers */
    for (unsigned i = 0; i < launch->ranks; i++) {
        const pid_t process = fork();
        if (process == 0)
            return become_rank(launch, i, out, error);
        if (process < 0) {
            dl2_error_system(error, "can't start rank %u of %u", i, launch->ranks);
            launch->exit_status = 1;
            launch->deadline = dl2_clock_wall();
            strike_all(launch);
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
    sigset_t before;
    struct launch launch = {
        .ranks = ranks, .killed = ranks, .starter = getpid(), .before = &before};
    *out = NULL;
    *exit_status = 0;
    DL2_TRY(dl2_local_create(ranks, &launch.local, error));
    launch.processes = dl2_calloc(ranks, sizeof *launch.processes);
    launch.restarts = dl2_calloc(ranks, sizeof *launch.restarts);
    if (!launch.processes || !launch.restarts) {
        free(launch.processes);
        free(launch.restarts);
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
    int status = start(&launch, out, error);
    if (status == DL2_WORLD_ENDED)
        status = look_after(&launch, out, error);
    if (status != DL2_WORLD_ENDED)
        return status; /* in a rank */
    *exit_status = launch.exit_status;
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(launch.processes);
    free(launch.restarts);
    dl2_local_destroy(launch.local);
    return DL2_WORLD_ENDED;
}
