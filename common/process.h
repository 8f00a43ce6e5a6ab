/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs other programs, without a shell. */
#ifndef DL2_COMMON_PROCESS_H
#define DL2_COMMON_PROCESS_H

#include "common/error.h"

/*
 * Splits a command line into words at blanks. Single or double quotes keep blanks in a word;
 * nothing else has a meaning. *out ends with NULL and is one block to free. DL2_ERR_ARGUMENT for
 * no word at all or a quote that does not end.
 */
int dl2_command_words(const char *text, char ***out, struct dl2_error *error);

/*
 * Runs a program, which is looked up on the PATH, and waits for it. Its standard input is empty;
 * what it prints is dropped, but for the last line, which the message of a failure has. Its CPU
 * time counts as the calling thread's (common/clock.h).
 *
 * DL2_ERR_SYSTEM if it cannot be started, DL2_ERR_FORMAT if it exits with another status than 0 or
 * is killed by a signal, DL2_ERR_LIMIT after `timeout` seconds, when it and its own children are
 * killed.
 *
 * Threads: any number at once.
 */
int dl2_process_run(char *const *words, double timeout, struct dl2_error *error);

#endif
