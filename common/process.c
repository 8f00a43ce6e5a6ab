/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/process.h"

#include "common/clock.h"
#include "common/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- Words */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies the word at *text to *out, without quotes; false where a quote does not end. */
static bool take_word(const char **text, char **out)
{
    char quote = '\0';
    for (; **text && (quote || !is_blank(**text)); ++*text) {
        if (quote ? **text == quote : **text == '"' || **text == '\'')
            quote = quote ? '\0' : **text;
        else
            *(*out)++ = **text;
    }
    *(*out)++ = '\0';
    return !quote;
}

int dl2_command_words(const char *text, char ***out, struct dl2_error *error)
{
    const size_t length = strlen(text), most = length / 2 + 2; /* words and the NULL */
    char **words = dl2_calloc(1, most * sizeof *words + length + 1);
    size_t count = 0;
    *out = NULL;
    if (!words)
        return dl2_error_memory(error, "a command");
    char *place = (char *)(words + most);
    for (const char *at = text;;) {
        while (is_blank(*at))
            at++;
        if (!*at)
            break;
        words[count++] = place;
        if (!take_word(&at, &place)) {
            free(words);
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': a quote does not end", text);
        }
    }
    if (!count) {
        free(words);
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': a command is missing", text);
    }
    *out = words;
    return DL2_OK;
}

/* ---- A run */

/* What a program printed last. */
struct tail {
    char text[512];
    size_t size;
};

static void tail_add(struct tail *tail, const char *text, size_t size)
{
    if (size >= sizeof tail->text) {
        text += size - sizeof tail->text;
        size = sizeof tail->text;
    }
    const size_t room = sizeof tail->text - size, keep = tail->size < room ? tail->size : room;
    memmove(tail->text, tail->text + tail->size - keep, keep);
    memcpy(tail->text + keep, text, size);
    tail->size = keep + size;
}

/* The last line that is not blank, as a string in the tail. */
static const char *tail_line(struct tail *tail)
{
    size_t end = tail->size < sizeof tail->text ? tail->size : sizeof tail->text - 1;
    while (end && (is_blank(tail->text[end - 1]) || !tail->text[end - 1]))
        end--;
    tail->text[end] = '\0';
    const char *line = memrchr(tail->text, '\n', end);
    return line ? line + 1 : tail->text;
}

static int start(char *const *words, pid_t *child, int *output, struct dl2_error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return dl2_error_system(error, "%s cannot be run", words[0]);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, pipe_alone;
    sigemptyset(&none);
    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed && (failed = posix_spawnattr_init(&attributes)) != 0)
        posix_spawn_file_actions_destroy(&actions);
    if (!failed) {
        /* A group of its own, so that what it starts can be killed with it. */
        failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) ||
                         posix_spawn_file_actions_adddup2(&actions, ends[1], 1) ||
                         posix_spawn_file_actions_adddup2(&actions, ends[1], 2) ||
                         posix_spawnattr_setpgroup(&attributes, 0) ||
                         posix_spawnattr_setsigmask(&attributes, &none) ||
                         posix_spawnattr_setsigdefault(&attributes, &pipe_alone) ||
                         posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                                                   POSIX_SPAWN_SETSIGMASK |
                                                                   POSIX_SPAWN_SETSIGDEF)
                     ? ENOMEM
                     : posix_spawnp(child, words[0], &actions, &attributes, words, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    close(ends[1]);
    if (!failed) {
        *output = ends[0];
        return DL2_OK;
    }
    close(ends[0]);
    errno = failed;
    return dl2_error_system(error, "%s cannot be run", words[0]);
}

static void pause_for(double seconds)
{
    const struct timespec time = {0, (long)(seconds * 1e9)};
    nanosleep(&time, NULL);
}

/*
 * Reads what the child prints until it ends, and waits for it. Something that it left running may
 * keep its output open. False if it was killed, because the time was up.
 */
static bool wait_for(pid_t child, int output, double deadline, struct tail *tail, int *ended,
                     struct rusage *usage)
{
    const double longest = 0.1;
    bool open = true, killed = false;
    for (double pause = 20e-6;;) {
        const double left = deadline - dl2_clock_wall();
        if (left <= 0 && !killed) {
            kill(-child, SIGKILL);
            killed = true;
        }
        struct pollfd ready = {.fd = output, .events = POLLIN};
        const double most = killed ? longest : fmin(left, longest);
        if (open && poll(&ready, 1, (int)ceil(1000 * most)) > 0) {
            char text[4096];
            const ssize_t size = read(output, text, sizeof text);
            open = size > 0 || (size < 0 && errno == EINTR);
            if (size > 0)
                tail_add(tail, text, (size_t)size);
            if (open)
                continue;
        }
        const pid_t waited = wait4(child, ended, WNOHANG, usage);
        if (waited < 0 && errno == ECHILD) /* a caller that ignores SIGCHLD never learns more */
            *ended = 0;
        if (waited == child || (waited < 0 && errno == ECHILD))
            return !killed;
        if (!open) { /* it is about to end, most likely */
            pause_for(pause);
            pause = fmin(2 * pause, longest);
        }
    }
}

static double seconds_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

int dl2_process_run(char *const *words, double timeout, struct dl2_error *error)
{
    pid_t child;
    int output = -1, ended = 0;
    DL2_TRY(start(words, &child, &output, error));
    struct tail tail = {.size = 0};
    struct rusage usage = {0};
    const double deadline = dl2_clock_wall() + timeout;
    const bool in_time = wait_for(child, output, deadline, &tail, &ended, &usage);
    close(output);
    dl2_clock_add_child_cpu(seconds_of(&usage));
    const char *line = tail_line(&tail), *colon = *line ? ": " : "";
    if (!in_time)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s was killed after %g s%s%s", words[0],
                             timeout, colon, line);
    if (WIFSIGNALED(ended))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s was killed by signal %d (%s)%s%s", words[0],
                             WTERMSIG(ended), strsignal(WTERMSIG(ended)), colon, line);
    if (WEXITSTATUS(ended) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s exited with status %d%s%s", words[0],
                             WEXITSTATUS(ended), colon, line);
    return DL2_OK;
}
