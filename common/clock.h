/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks, all in seconds. CPU time is user and system time, with that of programs that were run and
 * have ended (common/process.h).
 */
#ifndef DL2_COMMON_CLOCK_H
#define DL2_COMMON_CLOCK_H

double dl2_clock_wall(void);        /* monotonic, from an arbitrary start */
double dl2_clock_thread_cpu(void);  /* this thread's CPU time */
double dl2_clock_process_cpu(void); /* all threads' CPU time */

/* Adds to this thread's CPU time what a program took that it has run. */
void dl2_clock_add_child_cpu(double cpu_seconds);

#endif
