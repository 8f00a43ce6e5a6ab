/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs other programs, without a shell. */
#ifndef DL2_COMMON_PROCESS_H
#define DL2_COMMON_PROCESS_H

#include "common/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Where `separator` is in a text, outside of quotes; else the text's end. */
const char *dl2_command_find(const char *text, char separator);

/*
 * Splits a command line into words at blanks. Single or double quotes keep blanks in a word;
 * nothing else has a meaning. *out ends with NULL and is one block to free. DL2_ERR_ARGUMENT for
 * no word at all or a quote that does not end.
 */
int dl2_command_words(const char *text, char ***out, struct dl2_error *error);

/* Finds a program as dl2_process_run() does: a word with a slash is a path, others are looked up on
 * the PATH. False if there is no such file that can be run. */
bool dl2_program_find(const char *word, char path[PATH_MAX]);

/*
 * The programs that a piece of work runs, and a folder for their files. When the group ends, or
 * this process ends in whatever way, SIGKILL included, the folder goes with all that is in it, and
 * so do the programs and what they have started, but for what has left their group of processes
 * (setsid()).
 */
struct dl2_process_group {
    char folder[PATH_MAX]; /* $TMPDIR/NAME.NUMBER */
    pid_t keeper;          /* the group's leader */
    int lifeline;          /* a pipe to it */
};

/* Makes the folder. DL2_ERR_SYSTEM, DL2_ERR_LIMIT. */
int dl2_process_group_begin(struct dl2_process_group *group, const char *name,
                            struct dl2_error *error);

/* Kills what still runs in the group, and removes its folder. */
void dl2_process_group_end(const struct dl2_process_group *group);

/*
 * Runs a program, which is looked up on the PATH, in the group and waits for it; not for what it
 * has started. Its standard input is empty; what it prints is dropped, but for the last line, which
 * the message of a failure has. Its CPU time counts as the calling thread's (common/clock.h), and
 * so does what the group itself takes.
 *
 * DL2_ERR_SYSTEM if it cannot be started, DL2_ERR_FORMAT if it exits with another status than 0 or
 * is killed by a signal, DL2_ERR_LIMIT after `timeout` seconds, when it is killed.
 *
 * Threads: any number at once, each with a group of its own.
 */
int dl2_process_run(const struct dl2_process_group *group, char *const *words, double timeout,
                    struct dl2_error *error);

/*
 * A program that stays: it reads requests from its standard input and writes answers to its
 * standard output, which are one socket. What it prints on its standard error is kept for messages.
 * One thread at a time talks to it. It ends as its group does.
 */
struct dl2_server;

/* DL2_ERR_SYSTEM if it cannot be started. */
int dl2_server_start(char *const *words, struct dl2_server **out, struct dl2_error *error);
/* Kills it; NULL is allowed. */
void dl2_server_stop(struct dl2_server *server);

/*
 * Each sends, or receives, all bytes until `deadline`, a time of dl2_clock_wall(). DL2_ERR_LIMIT
 * when that has passed, DL2_ERR_FORMAT if the program has ended, both with the last line of its
 * standard error. After an error it is of no more use.
 */
int dl2_server_send(struct dl2_server *server, const void *data, size_t size, double deadline,
                    struct dl2_error *error);
int dl2_server_receive(struct dl2_server *server, void *data, size_t size, double deadline,
                       struct dl2_error *error);
/* Receives a line, without its newline; DL2_ERR_FORMAT where it has more than `size` - 1 bytes. */
int dl2_server_receive_line(struct dl2_server *server, char *line, size_t size, double deadline,
                            struct dl2_error *error);
/* Adds to the calling thread's CPU time (common/clock.h) what the program took since the last call.
 */
void dl2_server_count_cpu(struct dl2_server *server);

#endif
