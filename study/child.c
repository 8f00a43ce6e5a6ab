/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/child.h"

#include "common/option.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

int dl2_child_run(struct dl2_words command, int out, int err)
{
    char **words = dl2_room(command.count + 1, sizeof *words, "a command");
    for (size_t i = 0; i < command.count; i++)
        words[i] = (char *)command.at[i];
    fflush(NULL);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
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
    free(words);
    close(in);
    if (child < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be run: %s", command.at[0], strerror(errno));
    heed_signals(); /* one that came before the child was there */
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    heed_signals();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
