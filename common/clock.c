/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/clock.h"

#include <sys/resource.h>
#include <time.h>

/* Each thread sees its own. */
static _Thread_local double children_of_thread;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double dl2_clock_wall(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double dl2_clock_thread_cpu(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID) + children_of_thread;
}

double dl2_clock_process_cpu(void)
{
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds(CLOCK_PROCESS_CPUTIME_ID) +
           (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           1e-6 * (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
}

void dl2_clock_add_child_cpu(double cpu_seconds)
{
    children_of_thread += cpu_seconds;
}
