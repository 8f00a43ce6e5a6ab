/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/process.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- Programs */

static bool can_be_run(const char *path)
{
    struct stat info;
    return access(path, X_OK) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool dl2_program_find(const char *word, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    snprintf(path, PATH_MAX, "%s", word);
    if (strchr(word, '/'))
        return can_be_run(path);
    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at; at += *at == ':') {
        const size_t length = strcspn(at, ":");
        snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, word);
        if (can_be_run(path))
            return true;
        at += length;
    }
    return false;
}

/* ---- Words */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The quote that the text is in behind `byte`; 0: none. */
static char next_quote(char quote, char byte)
{
    if (quote)
        return byte == quote ? '\0' : quote;
    return byte == '"' || byte == '\'' ? byte : '\0';
}

const char *dl2_command_find(const char *text, char separator)
{
    for (char quote = '\0'; *text && (quote || *text != separator); text++)
        quote = next_quote(quote, *text);
    return text;
}

/* Copies the word at *text to *out, without quotes; false where a quote does not end. */
static bool take_word(const char **text, char **out)
{
    char quote = '\0';
    for (; **text && (quote || !is_blank(**text)); ++*text) {
        const char next = next_quote(quote, **text);
        if (next == quote)
            *(*out)++ = **text;
        quote = next;
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

/* Descriptors of a program; input -1: empty; output -1: dropped; messages -1: with the output. */
struct program_files {
    int input, output, messages;
};

/* Starts a program in a group of processes (0: its own). */
static int start_program(char *const *words, pid_t group, struct program_files files, pid_t *child,
                         struct dl2_error *error)
{
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
        failed =
            (files.input < 0
                 ? posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
                 : posix_spawn_file_actions_adddup2(&actions, files.input, 0)) ||
                    (files.output < 0
                         ? posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
                         : posix_spawn_file_actions_adddup2(&actions, files.output, 1)) ||
                    posix_spawn_file_actions_adddup2(&actions,
                                                     files.messages < 0 ? 1 : files.messages, 2) ||
                    posix_spawnattr_setpgroup(&attributes, group) ||
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
    errno = failed;
    return failed ? dl2_error_system(error, "%s cannot be run", words[0]) : DL2_OK;
}

static int start(pid_t group, char *const *words, pid_t *child, int *output,
                 struct dl2_error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return dl2_error_system(error, "%s cannot be run", words[0]);
    const int status =
        start_program(words, group, (struct program_files){-1, ends[1], -1}, child, error);
    close(ends[1]);
    if (status < 0)
        close(ends[0]);
    *output = ends[0];
    return status;
}

/*
 * A keeper (below) that has ended keeps its group as long as nobody waits for it. Where SIGCHLD is
 * ignored the group goes with it, and no program can join one that isn't there.
 */
static int start_in_group(const struct dl2_process_group *group, char *const *words, pid_t *child,
                          int *output, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    if (start(group->keeper, words, child, output, &own) == DL2_OK)
        return DL2_OK;
    if (kill(-group->keeper, 0) < 0 && errno == ESRCH)
        return dl2_error_set(error, DL2_ERR_SYSTEM,
                             "%s cannot be run: the /bin/sh that is to end it with this program "
                             "has ended itself; does /bin/sh run here, with this environment?",
                             words[0]);
    return dl2_error_copy(error, &own);
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
            kill(child, SIGKILL);
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

int dl2_process_run(const struct dl2_process_group *group, char *const *words, double timeout,
                    struct dl2_error *error)
{
    pid_t child;
    int output = -1, ended = 0;
    DL2_TRY(start_in_group(group, words, &child, &output, error));
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

/* ---- Groups */

/*
 * Nothing that this process does can end the group when it is killed itself. So the group's leader
 * is a shell, the keeper, which waits for the end of a pipe whose other end is here alone. Then it
 * asks the group to end, removes the folder, and kills what is left, itself included.
 */
static int start_keeper(struct dl2_process_group *group, struct dl2_error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return dl2_error_system(error, "no pipe for a command");
    char shell[] = "/bin/sh", option[] = "-c";
    char script[] = "trap '' HUP INT QUIT TERM; read -r end; kill 0; rm -rf -- \"$0\"; kill -9 0";
    char *const words[] = {shell, option, script, group->folder, NULL};
    const int status =
        start_program(words, 0, (struct program_files){ends[0], -1, -1}, &group->keeper, error);
    close(ends[0]);
    if (status < 0)
        close(ends[1]);
    else /* QEMU's posix_spawn() doesn't wait until the shell has done that */
        setpgid(group->keeper, group->keeper);
    group->lifeline = ends[1];
    return status;
}

static void end_keeper(const struct dl2_process_group *group)
{
    struct rusage usage = {0};
    kill(-group->keeper, SIGKILL);
    close(group->lifeline);
    while (wait4(group->keeper, NULL, 0, &usage) < 0 && errno == EINTR)
        ;
    dl2_clock_add_child_cpu(seconds_of(&usage));
}

int dl2_process_group_begin(struct dl2_process_group *group, const char *name,
                            struct dl2_error *error)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent)
        parent = "/tmp";
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) < 0)
        return dl2_error_system(error, "no random number");
    const int length =
        snprintf(group->folder, sizeof group->folder, "%s/%s.%016" PRIx64, parent, name, number);
    if (length < 0 || (size_t)length >= sizeof group->folder)
        return dl2_error_set(error, DL2_ERR_LIMIT, "TMPDIR is too long");
    /* The keeper is there before the folder: no moment is left in which both could remain. */
    DL2_TRY(start_keeper(group, error));
    if (mkdir(group->folder, 0700) == 0)
        return DL2_OK;
    dl2_error_system(error, "%s: cannot be made", group->folder);
    end_keeper(group);
    return DL2_ERR_SYSTEM;
}

void dl2_process_group_end(const struct dl2_process_group *group)
{
    /* First, as the keeper ends with the group; again, for what the group wrote meanwhile. */
    dl2_remove_tree(group->folder);
    end_keeper(group);
    dl2_remove_tree(group->folder);
}

/* ---- Programs that stay */

struct dl2_server {
    struct dl2_process_group group;
    pid_t child;
    int socket;
    double cpu; /* seconds that were counted */
    char name[128];
    char messages[PATH_MAX + 16]; /* file of its standard error */
};

static int start_server(struct dl2_server *server, char *const *words, struct dl2_error *error)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return dl2_error_system(error, "%s cannot be run", words[0]);
    const int messages = open(server->messages, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int status = messages < 0
                           ? dl2_error_system(error, "%s", server->messages)
                           : start_program(words, server->group.keeper,
                                           (struct program_files){ends[1], ends[1], messages},
                                           &server->child, error);
    if (messages >= 0)
        close(messages);
    close(ends[1]);
    if (status < 0)
        close(ends[0]);
    server->socket = ends[0];
    return status;
}

int dl2_server_start(char *const *words, struct dl2_server **out, struct dl2_error *error)
{
    struct dl2_server *server = *out = dl2_calloc(1, sizeof *server);
    if (!server)
        return dl2_error_memory(error, "a program");
    snprintf(server->name, sizeof server->name, "%s", words[0]);
    int status = dl2_process_group_begin(&server->group, "dl2-server", error);
    if (status == DL2_OK) {
        snprintf(server->messages, sizeof server->messages, "%s/messages", server->group.folder);
        status = start_server(server, words, error);
        if (status < 0)
            dl2_process_group_end(&server->group);
    }
    if (status < 0) {
        free(server);
        *out = NULL;
    }
    return status;
}

void dl2_server_stop(struct dl2_server *server)
{
    if (!server)
        return;
    close(server->socket);
    kill(server->child, SIGKILL);
    while (waitpid(server->child, NULL, 0) < 0 && errno == EINTR)
        ;
    dl2_process_group_end(&server->group);
    free(server);
}

/* An error with what the program printed last. */
static int server_failed(const struct dl2_server *server, int status, const char *what,
                         struct dl2_error *error)
{
    struct tail tail = {.size = 0};
    char text[4096];
    const int messages = open(server->messages, O_RDONLY | O_CLOEXEC);
    for (ssize_t size; messages >= 0 && (size = read(messages, text, sizeof text)) > 0;)
        tail_add(&tail, text, (size_t)size);
    if (messages >= 0)
        close(messages);
    const char *line = tail_line(&tail), *colon = *line ? ": " : "";
    return dl2_error_set(error, status, "%s %s%s%s", server->name, what, colon, line);
}

/* Waits until the socket is ready for `events`. */
static int server_wait(const struct dl2_server *server, short events, double deadline,
                       struct dl2_error *error)
{
    struct pollfd ready = {.fd = server->socket, .events = events};
    for (;;) {
        const double left = deadline - dl2_clock_wall();
        if (left <= 0)
            return server_failed(server, DL2_ERR_LIMIT, "did not answer in time, and was killed",
                                 error);
        const int count = poll(&ready, 1, (int)ceil(1000 * fmin(left, 60)));
        if (count > 0)
            return DL2_OK;
        if (count < 0 && errno != EINTR)
            return dl2_error_system(error, "%s", server->name);
    }
}

/* Sends or receives all bytes. */
static int server_move(const struct dl2_server *server, char *data, size_t size, bool sends,
                       double deadline, struct dl2_error *error)
{
    for (size_t at = 0; at < size;) {
        DL2_TRY(server_wait(server, sends ? POLLOUT : POLLIN, deadline, error));
        const ssize_t moved =
            sends ? send(server->socket, data + at, size - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                  : recv(server->socket, data + at, size - at, MSG_DONTWAIT);
        if (moved > 0)
            at += (size_t)moved;
        else if (moved == 0 || (errno != EINTR && errno != EAGAIN))
            return server_failed(server, DL2_ERR_FORMAT, "ended before it had answered", error);
    }
    return DL2_OK;
}

int dl2_server_send(struct dl2_server *server, const void *data, size_t size, double deadline,
                    struct dl2_error *error)
{
    return server_move(server, (char *)data, size, true, deadline, error);
}

int dl2_server_receive(struct dl2_server *server, void *data, size_t size, double deadline,
                       struct dl2_error *error)
{
    return server_move(server, data, size, false, deadline, error);
}

int dl2_server_receive_line(struct dl2_server *server, char *line, size_t size, double deadline,
                            struct dl2_error *error)
{
    for (size_t at = 0; at < size; at++) {
        DL2_TRY(dl2_server_receive(server, line + at, 1, deadline, error));
        if (line[at] == '\n') {
            line[at] = '\0';
            return DL2_OK;
        }
    }
    return server_failed(server, DL2_ERR_FORMAT, "answered with too long a line", error);
}

void dl2_server_count_cpu(struct dl2_server *server)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(server->child, &clock) != 0 || clock_gettime(clock, &time) < 0)
        return;
    const double cpu = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
    dl2_clock_add_child_cpu(cpu - server->cpu);
    server->cpu = cpu;
}
