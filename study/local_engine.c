/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This machine as the engine. Each step is a process, the leader of a group that its programs
 * belong to: a signal to the group reaches what scripts have started, too, and one from the
 * terminal reaches this process alone. Whatever loses its parent becomes this process's child, so
 * no program outlives it unseen. If this process is killed itself, its steps are killed by the
 * kernel, and their programs get SIGTERM.
 */
#include "study/child.h"
#include "study/engine.h"
#include "study/progress.h"
#include "study/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum state { WAITS, RUNS, DONE, FAILED };

struct engine {
    const struct dl2_study_plan *plan;
    enum state *states; /* of the plan's steps */
    pid_t *processes;
    size_t running, at_once;
    bool is_alone;     /* what runs is alone */
    size_t *card_user; /* of the study's GPUS: the step that has it, from 1; 0: nobody */
    sigset_t heeded, usual;
    int stopped_by; /* a signal, or 0 */
};

/* ---- Signals */

/* Signals that are ignored, as by nohup, stay so. */
static void hold_signals(struct engine *engine)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP};
    sigemptyset(&engine->heeded);
    sigaddset(&engine->heeded, SIGCHLD);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&engine->heeded, signals[i]);
    }
    sigset_t held = engine->heeded;
    sigaddset(&held, SIGTTOU); /* for tcsetpgrp() */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &held, &engine->usual);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void send_all(const struct engine *engine, int signal)
{
    for (size_t i = 0; i < engine->plan->count; i++)
        if (engine->processes[i])
            kill(-engine->processes[i], signal);
}

/* Whether anything of a step is still there, be it only what its programs have left. */
static bool is_any_left(const struct engine *engine)
{
    for (size_t i = 0; i < engine->plan->count; i++)
        if (engine->processes[i] && kill(-engine->processes[i], 0) == 0)
            return true;
    return false;
}

/* ---- Steps */

static bool may_begin(const struct engine *engine, size_t i)
{
    const struct dl2_step *step = engine->plan->steps[i];
    if (!step->needed || engine->states[i] != WAITS || engine->is_alone ||
        engine->running >= (step->alone ? 1 : engine->at_once))
        return false;
    for (size_t n = 0; n < step->need_count; n++)
        if (engine->states[step->needs[n]] != DONE)
            return false;
    return true;
}

/* Passes the terminal on for a step that may ask. The step cannot be suspended then, since nobody
 * would let it go on. */
static void lend_terminal(const struct dl2_step *step, pid_t from, pid_t to)
{
    if (step->asks && tcgetpgrp(STDIN_FILENO) == from)
        tcsetpgrp(STDIN_FILENO, to);
}

/* Takes as many free cards as a step gets; their names, as CUDA_VISIBLE_DEVICES has them, or NULL.
 */
static const char *take_cards(struct engine *engine, size_t i)
{
    const struct dl2_study_settings *study = engine->plan->study;
    struct dl2_words cards = {0};
    if (!study->gpus.count || !engine->plan->steps[i]->uses_device)
        return NULL;
    for (size_t c = 0; c < study->gpus.count && cards.count < study->gpus_each; c++)
        if (!engine->card_user[c]) {
            engine->card_user[c] = i + 1;
            dl2_words_add(&cards, study->gpus.at[c]);
        }
    return dl2_words_join(cards, ",");
}

static void give_cards(struct engine *engine, size_t i)
{
    for (size_t c = 0; c < engine->plan->study->gpus.count; c++)
        if (engine->card_user[c] == i + 1)
            engine->card_user[c] = 0;
}

static void begin(struct engine *engine, size_t i)
{
    const struct dl2_step *step = engine->plan->steps[i];
    const char *cards = take_cards(engine, i);
    fflush(NULL);
    const pid_t parent = getpid(), group = getpgrp(), process = fork();
    if (process == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(DL2_EXIT_FAILED);
        lend_terminal(step, group, getpgrp());
        if (step->asks)
            signal(SIGTSTP, SIG_IGN);
        if (cards)
            setenv("CUDA_VISIBLE_DEVICES", cards, 1);
        dl2_child_outlast(&engine->usual);
        exit(dl2_work_do(engine->plan, step));
    }
    if (process < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be begun: %s", step->name, strerror(errno));
    setpgid(process, process); /* whichever of the two comes first */
    engine->processes[i] = process;
    engine->states[i] = RUNS;
    engine->is_alone = step->alone;
    engine->running++;
}

static void begin_what_may(struct engine *engine)
{
    for (size_t i = 0; i < engine->plan->count && !engine->stopped_by; i++)
        if (may_begin(engine, i))
            begin(engine, i);
}

/* A signal that ends a step is its failure, unless all are stopped. A step that has the terminal
 * gets the signals from there, and stops all, too. */
static void end(struct engine *engine, size_t i, int status)
{
    const struct dl2_step *step = engine->plan->steps[i];
    engine->states[i] = status == 0 ? DONE : FAILED;
    engine->is_alone = false;
    engine->running--;
    give_cards(engine, i);
    lend_terminal(step, engine->processes[i], getpgrp());
    if (WIFSIGNALED(status) && step->asks && !engine->stopped_by)
        engine->stopped_by = WTERMSIG(status);
    if (engine->stopped_by)
        return;
    engine->processes[i] = 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s was ended by signal %d\n", step->name, WTERMSIG(status));
    if (status)
        dl2_progress_note_failed(engine->plan->out, step->name);
}

static void reap(struct engine *engine)
{
    int status;
    for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < engine->plan->count; i++)
            if (engine->processes[i] == process && engine->states[i] == RUNS)
                end(engine, i, status);
}

/* Waits until a step has ended, or for a moment, or until a signal has come. */
static void heed(struct engine *engine)
{
    const int signal = sigtimedwait(&engine->heeded, NULL, &(struct timespec){0, 200000000});
    if (signal == SIGTSTP) {
        send_all(engine, SIGSTOP);
        raise(SIGSTOP);
        send_all(engine, SIGCONT);
    } else if (signal > 0 && signal != SIGCHLD) {
        send_all(engine, engine->stopped_by ? SIGKILL : SIGTERM);
        engine->stopped_by = signal;
    }
    reap(engine);
}

int dl2_local_run(const struct dl2_study_plan *plan, unsigned at_once)
{
    struct engine engine = {
        .plan = plan,
        .states = dl2_keep(plan->count + 1, sizeof *engine.states, "the steps"),
        .processes = dl2_keep(plan->count + 1, sizeof *engine.processes, "the steps"),
        .at_once = at_once,
        .card_user = dl2_keep(plan->study->gpus.count + 1, sizeof *engine.card_user, "the cards")};
    dl2_plan_save_settings(plan);
    hold_signals(&engine);
    begin_what_may(&engine);
    while (engine.running || (engine.stopped_by && is_any_left(&engine))) {
        heed(&engine);
        begin_what_may(&engine);
    }
    dl2_progress_line_clear();
    if (engine.stopped_by)
        fputs("dl2-study: stopped; the same command goes on from here\n", stderr);
    fflush(NULL);
    sigprocmask(SIG_SETMASK, &engine.usual, NULL);
    if (engine.stopped_by)
        raise(engine.stopped_by);
    if (dl2_progress_is_done(plan))
        return DL2_EXIT_OK;
    dl2_progress_tell_failed(plan);
    return DL2_EXIT_FAILED;
}
