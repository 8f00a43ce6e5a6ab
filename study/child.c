/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/child.h"

#include "common/clock.h"
#include "common/option.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signals as commands get them, where this process waits for its commands to end by a signal first.
 */
static sigset_t usual_signals;
static bool outlasts;

void dl2_child_outlast(const sigset_t *usual)
{
    sigset_t signals = *usual;
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    usual_signals = *usual;
    outlasts = true;
    sigprocmask(SIG_SETMASK, &signals, NULL);
}

/* Ends this process if a signal waits for that. */
static void heed_signals(void)
{
    sigset_t signals;
    if (!outlasts)
        return;
    sigprocmask(SIG_SETMASK, &usual_signals, &signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
}

/* In a new process: the command in its place, which `death` ends if `parent` ends. */
_Noreturn static void become(char **words, int out, int err, int death, pid_t parent)
{
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, death);
    if (getppid() != parent)
        _exit(127);
    dup2(in, STDIN_FILENO);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (err >= 0)
        dup2(err, STDERR_FILENO);
    if (outlasts)
        sigprocmask(SIG_SETMASK, &usual_signals, NULL);
    execvp(words[0], words);
    fprintf(stderr, "dl2-study: %s: can't be run: %s\n", words[0], strerror(errno));
    _exit(127);
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- What keeps a command */

/* Sends a signal to all children of this process. */
static void signal_children(int signal)
{
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300], text[512] = "";
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = isdigit((unsigned char)*entry->d_name) ? fopen(path, "r") : NULL;
        if (!file)
            continue;
        if (!fgets(text, sizeof text, file))
            *text = '\0';
        fclose(file);
        const char *name_end = strrchr(text, ')'); /* "PID (NAME) STATE PARENT ..." */
        if (name_end && strlen(name_end) > 4 && atoi(name_end + 4) == (int)getpid())
            kill((pid_t)atoi(entry->d_name), signal);
    }
    if (folder)
        closedir(folder);
}

/* Waits for children, orphans of others included, until `child` has ended or, with 0, all have;
 * false if it took longer than so many seconds, or a signal other than SIGCHLD came. */
static bool wait_for(pid_t child, double seconds, const sigset_t *signals, int *status)
{
    const double until = dl2_clock_wall() + seconds;
    for (;;) {
        int own;
        pid_t ended;
        while ((ended = waitpid(-1, &own, WNOHANG)) > 0)
            if (ended == child) {
                *status = own;
                return true;
            }
        if (ended < 0)
            return true;
        const double left = fmin(until - dl2_clock_wall(), 3600);
        if (left <= 0)
            return false;
        const struct timespec time = {(time_t)left, (long)(1e9 * (left - floor(left)))};
        const int signal = sigtimedwait(signals, NULL, &time);
        if (signal > 0 && signal != SIGCHLD)
            return false;
    }
}

/* The process between: `parent`'s end is a SIGUSR1 to it. */
_Noreturn static void keep(char **words, int out, int err, unsigned limit, pid_t parent)
{
    enum { GRACE = 30, MOMENT = 2 };
    sigset_t signals, held;
    int status = 127 << 8;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGUSR1);
    held = signals;
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    if (!outlasts) {
        sigprocmask(SIG_SETMASK, NULL, &usual_signals);
        outlasts = true;
    }
    sigprocmask(SIG_BLOCK, &held, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    const pid_t self = getpid(), child = getppid() == parent ? fork() : -1;
    if (child == 0)
        become(words, out, err, SIGKILL, self);
    if (child < 0)
        _exit(127);
    if (!wait_for(child, limit ? limit : INFINITY, &signals, &status)) {
        kill(child, SIGTERM);
        wait_for(child, GRACE, &signals, &status);
    }
    for (double time = MOMENT; !wait_for(0, time, &signals, &status); time = 0.05)
        signal_children(SIGKILL);
    _exit(status_of(status));
}

/* ---- */

static int run(struct dl2_words command, int out, int err, bool keeps, unsigned limit)
{
    char **words = dl2_room(command.count + 1, sizeof *words, "a command");
    for (size_t i = 0; i < command.count; i++)
        words[i] = (char *)command.at[i];
    fflush(NULL);
    const pid_t parent = getpid(), child = fork();
    if (child == 0 && keeps)
        keep(words, out, err, limit, parent);
    if (child == 0)
        become(words, out, err, SIGTERM, parent);
    free(words);
    if (child < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be run: %s", command.at[0], strerror(errno));
    heed_signals(); /* one that came before the child was there */
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    heed_signals();
    return status_of(status);
}

int dl2_child_run(struct dl2_words command, int out, int err)
{
    return run(command, out, err, false, 0);
}

int dl2_child_keep(struct dl2_words command, int out, int err, unsigned limit)
{
    return run(command, out, err, true, limit);
}

static const char *text_of(int fd)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    char *text = dl2_keep(size < 0 ? 1 : (size_t)size + 1, 1, "a program's output");
    if (size < 0 || pread(fd, text, (size_t)size, 0) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "a program's output can't be read");
    close(fd);
    return text;
}

int dl2_child_ask(struct dl2_words command, const char **output, const char **messages)
{
    const int out = memfd_create("output", MFD_CLOEXEC);
    const int err = messages ? memfd_create("messages", MFD_CLOEXEC) : -1;
    if (out < 0 || (messages && err < 0))
        dl2_study_fail(DL2_EXIT_FAILED, "a program's output can't be read: %s", strerror(errno));
    const int status = dl2_child_run(command, out, err);
    *output = text_of(out);
    if (messages)
        *messages = text_of(err);
    return status;
}
