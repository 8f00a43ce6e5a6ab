/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks, all in seconds. */
#ifndef DL2_COMMON_CLOCK_H
#define DL2_COMMON_CLOCK_H

double dl2_clock_wall(void);        /* monotonic, from an arbitrary start */
double dl2_clock_thread_cpu(void);  /* this thread's CPU time */
double dl2_clock_process_cpu(void); /* all threads' CPU time, user and system */

#endif
