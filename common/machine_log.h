/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of how the machine was used while a process did its work, by the wall clock:
 * dl2-timeline/1 of docs/formats/train.md. It is written at the start, once in a while, and at the
 * process's exit(), so that a process that is killed leaves what it was up to a minute ago.
 */
#ifndef DL2_COMMON_MACHINE_LOG_H
#define DL2_COMMON_MACHINE_LOG_H

#include "common/error.h"

/*
 * Begins FOLDER/PROGRAM-HOST-PID.json; makes the folder. A process has one such file: another that
 * it began ends. A child of fork() has none of its parent's. `command`: what the program does, or
 * NULL. A failure to write later is told on stderr. DL2_ERR_SYSTEM: it can't be written.
 * Call from the main thread.
 */
int dl2_machine_log_begin(const char *folder, const char *program, const char *command,
                          struct dl2_error *error);

#endif
